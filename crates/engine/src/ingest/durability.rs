//! What has become of batches: whether they are durable, and whether they are replicated.
//!
//! Invariants: *durable* means synced here, or gone from the journal in order; *replicated* means
//! that as many nodes as configured have synced copies, so that this node's disk may be lost. A
//! batch that is not known may be anywhere; its producer sends it again.

use std::sync::Arc;

use logpond_record::SourceId;
use logpond_segment::batches::BatchSet;
use logpond_segment::journal::Visible;
use logpond_segment::sources::SourceSet;
use tokio::sync::watch;

/// Knows which sources have as many copies as configured.
pub trait Replication: Send + Sync + 'static {
    /// Whether a source, which is durable here, is durable on as many nodes as configured.
    fn is_replicated(&self, source: SourceId) -> bool;

    /// Changes whenever further sources may be replicated.
    fn changes(&self) -> watch::Receiver<u64>;
}

/// With one copy configured, what is durable is replicated.
#[derive(Clone, Copy, Debug, Default)]
pub struct OneCopy;

impl Replication for OneCopy {
    fn is_replicated(&self, _source: SourceId) -> bool {
        true
    }

    fn changes(&self) -> watch::Receiver<u64> {
        watch::Sender::new(0).subscribe()
    }
}

/// What a node says of batches that it was asked about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct States {
    /// Those that are durable, replicated or not.
    pub durable: BatchSet,
    /// Those that are replicated.
    pub replicated: BatchSet,
}

/// Answers what has become of batches. Cheap to clone.
#[derive(Clone)]
pub struct Durability {
    visible: Arc<Visible>,
    replication: Arc<dyn Replication>,
}

impl Durability {
    pub(super) fn new(visible: Arc<Visible>, replication: Arc<dyn Replication>) -> Durability {
        Durability {
            visible,
            replication,
        }
    }

    /// Whether the durable records of a source are replicated.
    pub fn is_replicated(&self, source: SourceId) -> bool {
        self.replication.is_replicated(source)
    }

    /// Waits until the durable records of these sources are replicated: for ever, if the node has
    /// stopped seeing to it.
    pub async fn replicated(&self, sources: &SourceSet) {
        // Before the first look, so that no change is missed.
        let mut changes = self.replication.changes();
        while !sources.iter().all(|source| self.is_replicated(source)) {
            if changes.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }

    /// What has become of these batches. What left the journal was replicated by then, or has
    /// expired; that is remembered for some time only, and not over a restart.
    pub fn states(&self, wanted: &BatchSet) -> States {
        let mut states = States::default();
        let snapshot = self.visible.snapshot();
        let closed = snapshot.closed.iter().map(|c| (c.source, &c.batches));
        let open = snapshot.open.iter().map(|o| (o.source, &o.batches));
        for (source, batches) in closed.chain(open) {
            let found = batches.intersection(wanted);
            if found.is_empty() {
                continue;
            }
            states.durable.union_with(&found);
            if self.is_replicated(source) {
                states.replicated.union_with(&found);
            }
        }
        let released = snapshot.released.intersection(wanted);
        states.durable.union_with(&released);
        states.replicated.union_with(&released);
        states
    }
}
