//! Topics of Kafka, if the settings name some: composition only.

use std::sync::Arc;
use std::thread::JoinHandle;

#[cfg(feature = "kafka")]
use logpond_segment::batches::BatchSet;

use super::{Roles, ServeError};
#[cfg(feature = "kafka")]
use logpond_engine::kafka::RemoteBatches;
#[cfg(feature = "kafka")]
use logpond_engine::query::Nodes;
use logpond_host::shutdown::{Shutdown, Stopper};
use logpond_host::telemetry::Metrics;
#[cfg(feature = "kafka")]
use logpond_node::cluster::Member;
use logpond_settings::Settings;

/// Starts what reads them. To be called before the member is moved on.
#[cfg(feature = "kafka")]
pub(super) fn start(
    settings: &Settings,
    roles: &Roles,
    metrics: &Arc<Metrics>,
    (stopper, shutdown): (&Arc<Stopper>, &Shutdown),
) -> Result<Option<JoinHandle<()>>, ServeError> {
    use logpond_segment::sources::Interval;

    use logpond_engine::kafka::{self, Held, PeerNodes};
    use logpond_host::panics::StopAtPanic;

    if settings.kafka.topics.is_empty() {
        return Ok(None);
    }
    let all_of = |epoch| {
        let mut all = BatchSet::default();
        let (from, to) = (0, u64::MAX);
        all.insert_run(epoch, Interval { from, to });
        all
    };
    let (durability, store) = (roles.ingest.durability().clone(), roles.store.clone());
    let held: Held = Arc::new(move |epoch| {
        // Files of the journal first: what leaves them meanwhile is in a segment by then.
        let mut held = durability.states(&all_of(epoch)).durable;
        held.union_with(&store.batches_of(epoch));
        held
    });
    let others = roles.node.as_ref().map(|(member, _)| {
        let others: Arc<dyn PeerNodes> = Arc::new(OtherNodes(member.clone()));
        others
    });
    let parts = kafka::Parts {
        ingest: roles.ingest.clone(),
        metrics: metrics.clone(),
        disk: roles.disk.clone(),
        held,
        others,
        line_bytes_max: settings.line_bytes_max,
        clock: logpond_host::clock::now,
        shutdown: shutdown.clone(),
    };
    let at_panic = StopAtPanic(stopper.clone());
    let started = kafka::start(&settings.kafka, parts, at_panic);
    started
        .map(Some)
        .map_err(|error| ServeError::Kafka(Box::new(error)))
}

/// The nodes that this one knows.
#[cfg(feature = "kafka")]
struct OtherNodes(Arc<Member>);

#[cfg(feature = "kafka")]
impl logpond_engine::kafka::PeerNodes for OtherNodes {
    fn held(&self, wanted: &BatchSet) -> Result<RemoteBatches, String> {
        let OtherNodes(member) = self;
        let unmet = member.unmet();
        if !unmet.is_empty() {
            return Err(format!("{} was not met yet", unmet.join(", ")));
        }
        let silent = |node, error| format!("{}: {error}", member.name(node));
        let others = member.others();
        let held = logpond_engine::kafka::of_all(&others, |node| {
            let held = member.originals(node, wanted);
            held.map_err(|error| silent(node, error))
        })?;
        // Of what is in a bucket a node knows only once it has read that, so nothing can be told to be nowhere.
        let mut has_bucket = member.own_inventory().inventory().has_bucket();
        for node in others {
            let inventory = member.inventory(node);
            let inventory = inventory.map_err(|error| silent(node, error))?;
            has_bucket |= inventory.inventory().has_bucket();
        }
        let registry = Member::registry(member);
        let mut nodes = registry.nodes();
        Ok(RemoteBatches {
            held,
            is_one_lost: !has_bucket && nodes.any(|(_, node)| node.is_forgotten()),
        })
    }

    fn taken(&self, wanted: &BatchSet) -> BatchSet {
        let OtherNodes(member) = self;
        let mut taken = BatchSet::default();
        let own = member.identity().node;
        // Of two the one with the lower name goes on, so that exactly one gives up.
        for node in member.live_others().into_iter().filter(|node| *node < own) {
            if let Ok(of_node) = member.taken_by(node, wanted) {
                taken.union_with(&of_node);
            }
        }
        taken
    }
}

/// Without the feature there are none: settings that name one are refused.
#[cfg(not(feature = "kafka"))]
pub(super) fn start(
    _: &Settings,
    _: &Roles,
    _: &Arc<Metrics>,
    _: (&Arc<Stopper>, &Shutdown),
) -> Result<Option<JoinHandle<()>>, ServeError> {
    Ok(None)
}
