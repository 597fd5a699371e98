//! Makes durable what was fetched.

use std::sync::Arc;

use futures_util::future::join_all;
use logpond_record::Batch;
use logpond_segment::batches::{BatchId, BatchSet};

use super::reader::{End, PAUSES, Partition, Reader};
use crate::ingest::IngestError;
use logpond_host::telemetry::Intake;

/// A batch to store.
pub(super) struct Piece {
    pub(super) id: BatchId,
    pub(super) batch: Arc<Batch>,
}

/// What is to be stored of a partition, in order.
pub(super) struct Work {
    pub(super) partition: Partition,
    pub(super) pieces: Vec<Piece>,
    /// Behind it.
    pub(super) end: u64,
}

/// Stores what was fetched, partitions side by side.
pub(super) async fn store_all(reader: &Reader, work: &[Work]) -> Result<(), End> {
    let each = work.iter().map(|work| store(reader, work, true));
    join_all(each).await.into_iter().collect()
}

/// Stores what was fetched of a partition, one batch after the other: each is offered until it is
/// durable, so that none is there before the one before it.
pub(super) async fn store(reader: &Reader, work: &Work, are_messages: bool) -> Result<(), End> {
    let shared = &*reader.shared;
    let of = &work.partition;
    for Piece { id, batch } in &work.pieces {
        offer(reader, of, batch, *id).await?;
        if are_messages {
            let metrics = shared.parts.metrics.intake(Intake::Kafka);
            metrics.records.add(batch.len() as u64);
            metrics.bytes.add(batch.payload().len() as u64);
        }
        shared.counters.of(&of.topic, of.number, |counted| {
            counted.stored += if are_messages { batch.len() as u64 } else { 0 };
            counted.next = id.run().to + 1;
        });
    }
    shared
        .counters
        .of(&of.topic, of.number, |counted| counted.next = work.end);
    shared.positions().note(of.epoch, work.end, || of.name());
    Ok(())
}

async fn offer(
    reader: &Reader,
    of: &Partition,
    batch: &Arc<Batch>,
    id: BatchId,
) -> Result<(), End> {
    let shared = &*reader.shared;
    let mut pause = PAUSES.0;
    loop {
        let refused = match shared
            .parts
            .ingest
            .submit_named(batch.clone(), Some(id), true)
            .await
        {
            Ok(_) => return Ok(()),
            Err(IngestError::Stopping) => return Err(End::Stop),
            Err(refused) => refused,
        };
        reader.complain(&of.name(), &format!("messages cannot be stored: {refused}"));
        if let IngestError::Invalid(why) = refused {
            // What is held says anew where to go on.
            return Err(End::Failed(why.to_string()));
        }
        if reader.shutdown.is_stopping() {
            return Err(End::Stop);
        }
        reader.wait(pause).await;
        pause = (pause * 2).min(PAUSES.1);
        let held = (shared.parts.held)(id.epoch);
        if is_held(&held, id) {
            return Ok(());
        }
    }
}

/// Whether a set has all of a batch. What is behind it in the set says nothing: it may be a copy of what
/// another node has read.
fn is_held(held: &BatchSet, id: BatchId) -> bool {
    let mut wanted = BatchSet::default();
    wanted.insert_run(id.epoch, id.run());
    wanted.without(held).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use logpond_record::Timestamp;
    use logpond_segment::sources::Interval;

    #[test]
    fn a_batch_is_held_if_all_of_it_is() {
        let id = BatchId {
            epoch: 1,
            sequence: 10,
            attempt: 0,
            first_sent: Timestamp(0),
            more: 9,
        };
        let cases = [
            (10, 19, true),
            (5, 30, true),
            (10, 18, false),
            (20, 40, false),
        ];
        for (from, to, expected) in cases {
            let mut held = BatchSet::default();
            held.insert_run(1, Interval { from, to });
            assert_eq!(is_held(&held, id), expected, "{from} {to}");
        }
    }
}
