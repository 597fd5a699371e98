//! Topics of Kafka, if the settings name some: composition only.

use std::sync::Arc;
use std::thread::JoinHandle;

use super::{Roles, ServeError};
use crate::settings::Settings;
use crate::shutdown::{Shutdown, Stopper};
use crate::telemetry::Metrics;

/// Starts what reads them. To be called before the member is moved on.
#[cfg(feature = "kafka")]
pub(super) fn start(
    settings: &Settings,
    roles: &Roles,
    metrics: &Arc<Metrics>,
    (stopper, shutdown): (&Arc<Stopper>, &Shutdown),
) -> Result<Option<JoinHandle<()>>, ServeError> {
    use logpond_segment::batches::BatchSet;
    use logpond_segment::sources::Interval;

    use crate::kafka::{self, Elsewhere, Held};
    use crate::panics::StopAtPanic;
    use crate::query::Nodes;

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
    let elsewhere = roles.node.as_ref().map(|(member, _)| {
        let member = member.clone();
        let elsewhere: Elsewhere = Arc::new(move |wanted| {
            let unmet = member.unmet();
            if !unmet.is_empty() {
                return Err(format!("{} was not met yet", unmet.join(", ")));
            }
            let mut held = BatchSet::default();
            for node in member.others() {
                match member.originals(node, wanted) {
                    Ok(of_node) => held.union_with(&of_node),
                    Err(error) => return Err(format!("{}: {error}", member.name(node))),
                }
            }
            Ok(held)
        });
        elsewhere
    });
    let parts = kafka::Parts {
        ingest: roles.ingest.clone(),
        metrics: metrics.clone(),
        disk: roles.disk.clone(),
        held,
        elsewhere,
        line_bytes_max: settings.line_bytes_max,
        clock: crate::clock::now,
        shutdown: shutdown.clone(),
    };
    let at_panic = StopAtPanic(stopper.clone());
    let started = kafka::start(&settings.kafka, parts, at_panic);
    started
        .map(Some)
        .map_err(|error| ServeError::Kafka(Box::new(error)))
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
