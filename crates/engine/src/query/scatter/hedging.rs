//! What is known of late nodes, for all answers together.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use logpond_cluster::hedge::{Budget, Lateness};

use logpond_host::telemetry::{Counter, Metrics};

/// A node is not waited for, where others prove that it is not needed, once it has taken so many
/// times as long as nearly all do to say what they hold. More than for a part of an answer: it is
/// named in the answer then, and has no part in it.
const INVENTORY_PATIENCE: u32 = 4;

/// And not before this: what is asked is in memory, so one that takes longer is stuck or very busy.
const INVENTORY_PATIENCE_MIN: Duration = Duration::from_millis(100);

/// But at this at the latest: a quarter of what such a call may take.
const INVENTORY_PATIENCE_MAX: Duration = Duration::from_millis(500);

/// The latency of calls, and the counters of hedged ones.
#[derive(Default)]
pub(super) struct Hedger {
    state: Mutex<State>,
    calls: Counter,
    hedges: Counter,
    won: Counter,
    passed_over: Counter,
    /// Nodes that are being asked what they hold.
    inventories: AtomicUsize,
}

/// A node is being asked what it holds.
pub(super) struct InFlight(Arc<Hedger>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.inventories.fetch_sub(1, Ordering::Relaxed);
    }
}

#[derive(Default)]
struct State {
    answers: Lateness,
    inventories: Lateness,
    budget: Budget,
}

impl Hedger {
    /// Shows what was done.
    pub(super) fn expose(self: &Arc<Hedger>, metrics: &Metrics) {
        let hedging = Arc::downgrade(self);
        metrics.register(Box::new(move |out| {
            let Some(hedging) = hedging.upgrade() else {
                return;
            };
            out.counters([
                (
                    "logpond_query_calls_total",
                    "Other nodes asked for their part of an answer.",
                    hedging.calls.get(),
                ),
                (
                    "logpond_query_hedges_total",
                    "Further nodes asked because one was late.",
                    hedging.hedges.get(),
                ),
                (
                    "logpond_query_hedges_won_total",
                    "Late nodes whose part others gave first.",
                    hedging.won.get(),
                ),
                (
                    "logpond_query_passed_over_total",
                    "Nodes not waited for since others had all that they could have.",
                    hedging.passed_over.get(),
                ),
            ]);
        }));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How long a node may take for its part of an answer.
    pub(super) fn patience(&self) -> Duration {
        self.state().answers.patience()
    }

    /// How long one may take to say what it holds.
    pub(super) fn inventory_patience(&self) -> Duration {
        let usual = self.state().inventories.patience();
        (usual * INVENTORY_PATIENCE).clamp(INVENTORY_PATIENCE_MIN, INVENTORY_PATIENCE_MAX)
    }

    /// Notes that a node is asked for its part of an answer.
    pub(super) fn earn(&self) {
        self.calls.add(1);
        self.state().budget.earn();
    }

    /// Notes how long one took for it.
    pub(super) fn note(&self, took: Duration) {
        self.state().answers.note(took);
    }

    /// Notes how long one took to say what it holds.
    pub(super) fn note_inventory(&self, took: Duration) {
        self.state().inventories.note(took);
    }

    /// Notes that a node is being asked what it holds, until what this gives is dropped.
    pub(super) fn begin_inventory(self: &Arc<Hedger>) -> InFlight {
        self.inventories.fetch_add(1, Ordering::Relaxed);
        InFlight(Arc::clone(self))
    }

    /// How many are being asked now.
    pub(super) fn inventories(&self) -> usize {
        self.inventories.load(Ordering::Relaxed)
    }

    /// Whether so many further nodes may be asked; if so, they are.
    pub(super) fn spend(&self, calls: usize) -> bool {
        let may = self.state().budget.spend(calls);
        self.hedges.add(if may { calls as u64 } else { 0 });
        may
    }

    /// Notes that others were sooner than a late one.
    pub(super) fn won(&self) {
        self.won.add(1);
    }

    /// Notes that nodes were not waited for.
    pub(super) fn pass_over(&self, nodes: usize) {
        self.passed_over.add(nodes as u64);
    }
}
