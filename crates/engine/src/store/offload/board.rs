//! What the store and the thread that knows the bucket tell each other.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use logpond_cluster::Day;
use logpond_cluster::chain::SegmentEntry;
use logpond_cluster::expiry::OFF_NS_MAX;
use logpond_record::{Id, Timestamp};
use logpond_segment::inventory::BucketDay;
use logpond_segment::sources::SourceSet;

use crate::store::LiveSegment;

/// Segments of the bucket that were opened, by id.
pub(in crate::store) type Opened = Arc<BTreeMap<Id, Arc<LiveSegment>>>;

/// What is known of the bucket. Cheap to clone; all clones are the same.
#[derive(Clone, Default)]
pub struct Board(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// What the chains list.
    listed: Arc<BTreeSet<Id>>,
    /// The sources in that.
    sources: Arc<SourceSet>,
    /// The same by day, once the bucket was read.
    days: Option<Arc<BTreeMap<String, BucketDay>>>,
    /// The sources that were listed and have expired, whoever let them go.
    expired_sources: Arc<SourceSet>,
    opened: Opened,
    /// What could not be read of it, with the reasons.
    missing: Vec<String>,
    /// Local segments that are to be given up once all their sources can be read from the bucket.
    leaving: BTreeSet<Id>,
    /// Local segments whose names are used up in the bucket: what they hold is to get another one.
    renewing: BTreeSet<Id>,
    /// Segments that are too old or too many.
    expired: BTreeSet<Id>,
    /// The last time of the store's clock.
    clock: Option<StoreClock>,
}

/// The segments that the chains list, by day, and the sources that have expired.
#[derive(Clone, Default)]
pub(in crate::store) struct Listing {
    pub(in crate::store) days: Arc<BTreeMap<String, BucketDay>>,
    pub(in crate::store) sources: Arc<SourceSet>,
    pub(in crate::store) expired: Arc<SourceSet>,
}

impl Listing {
    /// True if both are the same reading.
    pub(in crate::store) fn is(&self, other: &Listing) -> bool {
        Arc::ptr_eq(&self.days, &other.days) && Arc::ptr_eq(&self.expired, &other.expired)
    }
}

/// A reading of the clock of an object store, which is not this machine's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) struct StoreClock {
    /// Its time.
    pub(super) time: Timestamp,
    /// When it was asked, by [`logpond_host::clock::Boot::now_ms`].
    pub(super) asked_ms: u64,
}

impl StoreClock {
    /// True if a clock that says `now` is right by this one, which was asked not long ago.
    pub(in crate::store) fn agrees(&self, now: Timestamp, now_ms: u64) -> bool {
        let since_ms = now_ms.saturating_sub(self.asked_ms);
        let since_ns = i64::try_from(since_ms).map_or(i64::MAX, |ms| ms.saturating_mul(1_000_000));
        let time = self.time.saturating_add(since_ns);
        let is_recent = since_ms <= CLOCK_AGE_MS_MAX;
        is_recent && now.0.saturating_sub(time.0).unsigned_abs() <= OFF_NS_MAX.unsigned_abs()
    }
}

/// How long what the store's clock said counts: it is asked at each sweep, twice in this time.
const CLOCK_AGE_MS_MAX: u64 = 1_260_000;

impl Board {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The segments that count in the bucket, as they were read last.
    pub(in crate::store) fn listed(&self) -> Arc<BTreeSet<Id>> {
        Arc::clone(&self.state().listed)
    }

    /// The last time of the store's clock.
    pub(in crate::store) fn clock(&self) -> Option<StoreClock> {
        self.state().clock
    }

    /// Notes what it says.
    pub(super) fn note_clock(&self, clock: StoreClock) {
        self.state().clock = Some(clock);
    }

    /// The sources in them.
    pub fn sources(&self) -> Arc<SourceSet> {
        Arc::clone(&self.state().sources)
    }

    /// The sources that were in such segments and have expired, whoever let them go.
    pub(in crate::store) fn expired_sources(&self) -> Arc<SourceSet> {
        Arc::clone(&self.state().expired_sources)
    }

    /// The segments among those that count that were opened.
    pub(in crate::store) fn opened(&self) -> Opened {
        Arc::clone(&self.state().opened)
    }

    /// The segments that the chains list; `None` until the bucket was read.
    pub(in crate::store) fn listing(&self) -> Option<Listing> {
        let state = self.state();
        Some(Listing {
            days: Arc::clone(state.days.as_ref()?),
            sources: Arc::clone(&state.sources),
            expired: Arc::clone(&state.expired_sources),
        })
    }

    /// What could not be read of it, with the reasons.
    pub(in crate::store) fn missing(&self) -> Vec<String> {
        self.state().missing.clone()
    }

    /// Says why nothing is known yet.
    pub(super) fn set_missing(&self, missing: Vec<String>) {
        self.state().missing = missing;
    }

    /// Shows what is in the bucket now, and what of it could not be opened. Gives whether that is news.
    pub(super) fn publish(
        &self,
        (listed, expired): (&BTreeMap<Id, (Day, &SegmentEntry)>, SourceSet),
        opened: BTreeMap<Id, Arc<LiveSegment>>,
        missing: Vec<String>,
    ) -> bool {
        let mut state = self.state();
        let is_relisted = state.days.is_none() || !state.listed.iter().eq(listed.keys());
        let has_expired = *state.expired_sources != expired;
        let is_new = is_relisted
            || has_expired
            || !state.opened.keys().eq(opened.keys())
            || state.missing != missing;
        if !is_new {
            return false;
        }
        state.missing = missing;
        if has_expired {
            state.expired_sources = Arc::new(expired);
        }
        state.expired.retain(|id| listed.contains_key(id));
        if is_relisted {
            let sources = listed.values().map(|(_, segment)| &segment.sources);
            state.sources = Arc::new(SourceSet::union_of(sources));
            state.days = Some(Arc::new(by_day(listed)));
            state.listed = Arc::new(listed.keys().copied().collect());
        }
        state.opened = Arc::new(opened);
        true
    }

    /// Asks for what a local segment holds to be opened, so that it can be given up.
    pub(in crate::store) fn leave(&self, id: Id) {
        self.state().leaving.insert(id);
    }

    /// Notes that a local segment was given up, or is not there any more.
    pub(in crate::store) fn left(&self, id: Id) {
        self.state().leaving.remove(&id);
    }

    /// The local segments that are to be given up.
    pub(in crate::store) fn leaving(&self) -> BTreeSet<Id> {
        self.state().leaving.clone()
    }

    /// Asks for what a local segment holds to be put into a new one.
    pub(super) fn renew(&self, id: Id) {
        self.state().renewing.insert(id);
    }

    /// The local segments that are to be replaced by new ones, once.
    pub(in crate::store) fn take_renewing(&self) -> BTreeSet<Id> {
        std::mem::take(&mut self.state().renewing)
    }

    /// Asks for segments to be let go.
    pub(in crate::store) fn expire(&self, ids: impl IntoIterator<Item = Id>) {
        self.state().expired.extend(ids);
    }

    /// The segments that are to be let go and are listed still.
    pub(in crate::store) fn expired(&self) -> BTreeSet<Id> {
        self.state().expired.clone()
    }
}

/// The segments of each day.
fn by_day(listed: &BTreeMap<Id, (Day, &SegmentEntry)>) -> BTreeMap<String, BucketDay> {
    let mut days: BTreeMap<String, BucketDay> = BTreeMap::new();
    for (day, segment) in listed.values() {
        let one = BucketDay {
            segments: 1,
            rows: segment.rows,
            received: segment.received,
            times: segment.time,
            sources: segment.sources.clone(),
        };
        let entry = days.entry(day.to_string());
        entry.and_modify(|day| day.add(&one)).or_insert(one);
    }
    days
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_vouches_for_a_clock_for_a_while() {
        let clock = StoreClock {
            time: Timestamp(1_000_000 * 1_000_000_000),
            asked_ms: 5_000,
        };
        let at = |s: i64| Timestamp(s * 1_000_000_000);
        assert!(clock.agrees(at(1_000_000), 5_000));
        assert!(clock.agrees(at(1_000_060), 65_000));
        assert!(clock.agrees(at(1_000_000 + 300), 5_000));
        assert!(!clock.agrees(at(1_000_000 + 301), 5_000));
        assert!(!clock.agrees(at(1_000_000 - 301), 5_000));
        assert!(!clock.agrees(at(1_001_261), 5_000 + 1_261_000));
    }
}
