//! What has expired or come to its end is noted in the registry, and may be dropped from there some day.
//!
//! By the time that the store deletes by (CLUSTER R8): a clock that jumps makes nothing past early.

use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use logpond_cluster::Day;
use logpond_cluster::expiry::{Clocks, Deletion, Permit};
use logpond_record::{Incarnation, Timestamp};
use logpond_segment::sources::SourceSet;

use super::Member;
use crate::clock;
use crate::telemetry::warn;

/// What a member goes by.
pub(super) struct Past {
    deletion: Deletion,
    began: Instant,
    /// How long a node that stores keeps records, if not for ever.
    retain_age_ns: Option<i64>,
    /// What was noted last: the registry's digest, and the days.
    noted: Mutex<Option<(u64, Days)>>,
}

/// Today, and the day before which everything has expired for its age.
type Days = (Day, Option<Day>);

impl Past {
    /// A process that has started at a time.
    pub(super) fn new(started: Timestamp, retain_age: Option<Duration>) -> Past {
        let age_ns = retain_age.map(|age| i64::try_from(age.as_nanos()).unwrap_or(i64::MAX));
        Past {
            deletion: Deletion::new(started, 0),
            began: Instant::now(),
            retain_age_ns: age_ns,
            noted: Mutex::default(),
        }
    }

    /// The days at a time; `None` while the clock is doubted.
    fn days(&self, now: Timestamp, peers: &[Timestamp]) -> Option<Days> {
        let now_ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let Permit::By(by) = self.deletion.permit(Clocks { now, now_ms, peers }) else {
            return None;
        };
        let expired = |age_ns: i64| Day::of(by.saturating_add(age_ns.saturating_neg()));
        Some((Day::of(by), self.retain_age_ns.map(expired)))
    }
}

impl Member {
    /// Notes that these sources were removed for their age or for want of room, and with them all
    /// before: they count nowhere any more. Returns once that is on disk.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn expire(&self, sources: &SourceSet) -> io::Result<()> {
        let known = self.registry();
        let ends = sources
            .intervals()
            .map(|(name, i)| (name, i.to.saturating_add(1)));
        let is_news = |(name, end): &(Incarnation, u64)| {
            known
                .fate(*name)
                .is_some_and(|fate| fate.expired_below < *end)
        };
        // It is asked every second about what has long been noted.
        let new: Vec<_> = ends.filter(is_news).collect();
        if new.is_empty() {
            return Ok(());
        }
        self.note(|registry| {
            new.iter().fold(false, |news, (name, end)| {
                registry.expire(*name, *end) | news
            })
        })
    }

    /// Notes what has come to its end, if that may have changed since the last time.
    pub(super) fn note_past(&self) {
        let days = self
            .peer_clocks()
            .and_then(|peers| self.past.days(clock::now(), &peers));
        let Some((day, expired)) = days else {
            return;
        };
        let seen = (self.registry.digest(), (day, expired));
        let mut noted = self
            .past
            .noted
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if *noted == Some(seen) {
            return;
        }
        match self.note(|registry| registry.advance(day, expired)) {
            Ok(()) => *noted = Some((self.registry.digest(), (day, expired))),
            Err(error) => warn(&format!("what has ended cannot be noted: {error}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_NS: i64 = 86_400_000_000_000;

    #[test]
    fn days_are_those_of_a_clock_that_is_believed() {
        let at = |days: i64| Timestamp(days * DAY_NS + 1);
        let past = Past::new(at(100), Some(Duration::from_secs(30 * 86_400)));
        let days = Some((Day::of(at(100)), Some(Day::of(at(70)))));
        assert_eq!(past.days(at(100), &[]), days);
        // It was set ahead by a year.
        assert_eq!(past.days(at(465), &[]), days);
        assert_eq!(past.days(at(465), &[at(100)]), None);
        let for_ever = Past::new(at(100), None);
        assert_eq!(for_ever.days(at(100), &[]), Some((Day::of(at(100)), None)));
    }
}
