//! What the store and the thread that knows the bucket tell each other.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use logpond_record::Id;

use crate::store::LiveSegment;

/// Segments of the bucket that were opened, by id.
pub(in crate::store) type Opened = Arc<BTreeMap<Id, Arc<LiveSegment>>>;

/// What is known of the bucket. Cheap to clone; all clones are the same.
#[derive(Clone, Default)]
pub(in crate::store) struct Board(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// What the chains list.
    listed: Arc<BTreeSet<Id>>,
    opened: Opened,
    /// What could not be read of it, with the reasons.
    missing: Vec<String>,
    /// Segments that the store wants to read from the bucket from now on.
    wanted: BTreeSet<Id>,
    /// Segments that are too old or too many.
    expired: BTreeSet<Id>,
}

impl Board {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The segments that count in the bucket, as they were read last.
    pub(in crate::store) fn listed(&self) -> Arc<BTreeSet<Id>> {
        Arc::clone(&self.state().listed)
    }

    /// Those among them that were opened.
    pub(in crate::store) fn opened(&self) -> Opened {
        Arc::clone(&self.state().opened)
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
        listed: BTreeSet<Id>,
        opened: BTreeMap<Id, Arc<LiveSegment>>,
        missing: Vec<String>,
    ) -> bool {
        let mut state = self.state();
        let is_new = *state.listed != listed
            || !state.opened.keys().eq(opened.keys())
            || state.missing != missing;
        if !is_new {
            return false;
        }
        state.missing = missing;
        state.wanted.retain(|id| listed.contains(id));
        state.expired.retain(|id| listed.contains(id));
        state.listed = Arc::new(listed);
        state.opened = Arc::new(opened);
        true
    }

    /// Asks for a segment to be opened.
    pub(in crate::store) fn want(&self, id: Id) {
        self.state().wanted.insert(id);
    }

    /// The segments that were asked for.
    pub(in crate::store) fn wanted(&self) -> BTreeSet<Id> {
        self.state().wanted.clone()
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
