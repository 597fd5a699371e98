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
use logpond_host::clock;
use logpond_host::telemetry::warn;

/// What a member goes by.
pub(super) struct Past {
    deletion: Mutex<Deletion>,
    began: Instant,
    /// How long a node that stores keeps records, if not for ever.
    retain_age_ns: Option<i64>,
    /// What was noted last: the registry's digest, and the day.
    noted: Mutex<Option<(u64, Day)>>,
}

impl Past {
    /// A process that has started at a time.
    pub(super) fn new(started: Timestamp, retain_age: Option<Duration>) -> Past {
        let age_ns = retain_age.map(|age| i64::try_from(age.as_nanos()).unwrap_or(i64::MAX));
        Past {
            deletion: Mutex::new(Deletion::new(started, 0)),
            began: Instant::now(),
            retain_age_ns: age_ns,
            noted: Mutex::default(),
        }
    }

    /// The time that ages count up to; `None` while the clock is doubted.
    fn by(&self, now: Timestamp, peers: &[Timestamp]) -> Option<Timestamp> {
        let now_ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        let clocks = Clocks {
            now,
            now_ms,
            peers,
            is_vouched_for: false,
        };
        let mut deletion = self.deletion.lock().unwrap_or_else(PoisonError::into_inner);
        match deletion.permit(clocks) {
            Permit::By(by) => Some(by),
            Permit::Ahead(_) => None,
        }
    }

    /// The day before which everything has expired for its age, by a time.
    fn expired(&self, by: Timestamp) -> Option<Day> {
        let age_ns = self.retain_age_ns?;
        Some(Day::of(by.saturating_add(age_ns.saturating_neg())))
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
        let Some(day) = self.believed_time().map(Day::of) else {
            return;
        };
        let seen = (self.registry.digest(), day);
        let mut noted = self
            .past
            .noted
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if *noted == Some(seen) {
            return;
        }
        let own = self.held.inventory(self.registry.known());
        let held = own.inventory().sources();
        let held = held.last_of_each().map(|last| last.incarnation).collect();
        match self.note(|registry| registry.advance(day, &held)) {
            Ok(()) => *noted = Some((self.registry.digest(), day)),
            Err(error) => warn(&format!("what has ended cannot be noted: {error}")),
        }
    }

    /// Sources that would have been removed by now for their age, and were not. What is lost with all its
    /// copies nobody removes.
    pub fn outlived(&self) -> SourceSet {
        let expired = self.believed_time().and_then(|by| self.past.expired(by));
        expired.map_or_else(SourceSet::new, |day| self.registry().ended_before(day))
    }

    /// What others say as well: what a wrong clock alone had noted would stay noted.
    fn believed_time(&self) -> Option<Timestamp> {
        let peers = self.peer_clocks().filter(|peers| !peers.is_empty())?;
        self.past.by(clock::now(), &peers)
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
        let day = |now, peers: &[Timestamp]| past.by(now, peers).map(Day::of);
        assert_eq!(day(at(100), &[]), Some(Day::of(at(100))));
        // It was set ahead by a year.
        assert_eq!(day(at(465), &[]), Some(Day::of(at(100))));
        assert_eq!(day(at(465), &[at(100)]), None);
        assert_eq!(past.expired(at(100)), Some(Day::of(at(70))));
        assert_eq!(Past::new(at(100), None).expired(at(100)), None);
    }
}
