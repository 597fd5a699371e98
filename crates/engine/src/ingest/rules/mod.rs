//! What happens to records on their way in: the places of their addresses are added, some are dropped or thinned out, fields are redacted, hashed
//! or added, and no source sends more than its share.
//!
//! ```text
//! batch ─▶ Stage::apply: places, rules in order, quotas ─▶ what is kept ─▶ journal ─▶ settled: counted
//!   (on the threads that decode bodies)                             └ refused, or known: given back
//! ```
//!
//! Invariants:
//! - What a rule changed is changed before the journal: the old value is in no file.
//! - Everything is counted once: a batch that is refused, or that was there already, leaves neither
//!   counters nor quotas changed.
//! - [`Stage::apply`] reads no clock and no file; all work on records is on blocking threads.
//! - What a quota did not let in is told by a record at the end of its window, or at the end of the
//!   process.

mod address;
mod ansi;
mod changes;
mod counters;
mod error;
mod file;
mod locating;
mod losses;
mod names;
mod output;
mod quota;
mod rule;
mod sample;
mod stage;
mod watch;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use logpond_record::{Batch, Timestamp};
use logpond_segment::batches::BatchId;

use counters::Totals;
pub use error::RulesError;
use logpond_host::telemetry::{Exposition, Metrics};
pub(super) use losses::{Loss, batch as batch_of};
use names::Names;
use quota::RetiredQuota;
pub use stage::Stage;
use stage::{Tally, Worker};
pub use watch::WatchedRules;

/// The rules of a server, kept up to date. One per process.
pub struct Rules {
    stage: Mutex<Arc<Stage>>,
    /// Quotas of earlier files whose losses are not told yet.
    retired: Mutex<Vec<RetiredQuota>>,
    /// Losses that could not be told yet.
    untold: Mutex<Vec<Loss>>,
    /// Parsers that nobody uses now; there are as many as batches were worked on at a time.
    workers: Mutex<Vec<Worker>>,
    names: Mutex<Names>,
    totals: Totals,
}

/// The result of the rules for a batch: the records to store, and the counts to add once these are accepted.
pub(super) struct RuleOutcome {
    pub(super) batch: Arc<Batch>,
    pub(super) reservation: Reservation,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Rules {
    /// Reads the rules of a file.
    ///
    /// # Errors
    /// When it cannot be read or understood.
    pub fn read(path: &Path) -> Result<Rules, RulesError> {
        Ok(Rules::new(Stage::new(file::read(path)?, None)))
    }

    fn new(stage: Stage) -> Rules {
        Rules {
            stage: Mutex::new(Arc::new(stage)),
            retired: Mutex::default(),
            untold: Mutex::default(),
            workers: Mutex::default(),
            names: Mutex::default(),
            totals: Totals::default(),
        }
    }

    /// What rules and quotas apply now.
    pub fn stage(&self) -> Arc<Stage> {
        locked(&self.stage).clone()
    }

    /// Whether everything stays as it is.
    pub(super) fn is_empty(&self) -> bool {
        locked(&self.stage).is_empty()
    }

    /// Applies what a file says from now on. What it says as before goes on counting.
    fn replace(&self, definition: file::Definition) {
        let mut stage = locked(&self.stage);
        let next = Stage::new(definition, Some(&**stage));
        let retired = stage.retired_by(&next);
        *stage = Arc::new(next);
        drop(stage);
        locked(&self.retired).extend(retired);
    }

    /// Adds their counters to the exposition.
    pub fn expose_in(self: &Arc<Rules>, metrics: &Metrics) {
        let rules = self.clone();
        let expose = move |out: &mut Exposition| {
            rules.totals.expose(out);
            rules.stage().expose(out);
        };
        metrics.register(Box::new(expose));
    }

    /// Whether all records of a batch of this name were dropped: then it was accepted, and the journal
    /// does not know.
    pub(super) fn has_dropped(&self, id: &BatchId) -> bool {
        locked(&self.names).is_dropped(id)
    }

    /// Applies the rules to a batch. Blocks: for threads that may.
    pub(super) fn apply(
        self: &Arc<Rules>,
        batch: &Arc<Batch>,
        id: Option<BatchId>,
        now: Timestamp,
    ) -> RuleOutcome {
        let stage = self.stage();
        let mut worker = locked(&self.workers).pop().unwrap_or_default();
        let outcome = stage.apply(batch, &mut worker, now);
        locked(&self.workers).push(worker);
        RuleOutcome {
            reservation: Reservation {
                rules: self.clone(),
                stage,
                tally: Some(outcome.tally),
                id,
                is_dropped: outcome.batch.is_empty(),
                sent: batch.len() as u64,
            },
            batch: outcome.batch,
        }
    }

    /// What quotas did not let in and is to be told now: of windows that have ended, or of all.
    pub(super) fn take_losses(&self, now: Timestamp, is_end: bool) -> Vec<Loss> {
        let mut losses = std::mem::take(&mut *locked(&self.untold));
        self.stage().take_losses(now, is_end, &mut losses);
        let mut retired = locked(&self.retired);
        retired.retain(|quota| quota.take_losses(now, &mut losses));
        losses
    }

    /// Keeps losses that could not be told.
    pub(super) fn put_back(&self, losses: Vec<Loss>) {
        let mut untold = locked(&self.untold);
        for loss in losses {
            losses::add(&mut untold, loss);
        }
    }
}

/// What a batch takes of quotas and adds to counters, once it is accepted; without that it is all given
/// back.
pub(super) struct Reservation {
    rules: Arc<Rules>,
    stage: Arc<Stage>,
    tally: Option<Tally>,
    id: Option<BatchId>,
    is_dropped: bool,
    /// How many records were sent.
    pub(super) sent: u64,
}

impl Reservation {
    /// Counts everything, unless a batch of this name was counted before.
    pub(super) fn commit(mut self) {
        let is_new = self.id.is_none_or(|id| {
            let mut names = locked(&self.rules.names);
            names.add(&id, self.is_dropped)
        });
        if let Some(tally) = self.tally.take_if(|_| is_new) {
            self.rules.totals.add(&tally);
            self.stage.commit(&tally);
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if let Some(tally) = self.tally.take() {
            self.stage.give_back(&tally);
        }
    }
}
