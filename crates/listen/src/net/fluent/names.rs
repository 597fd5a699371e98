//! Names of chunks as names of batches, so that a chunk that is sent again counts once.
//!
//! Senders give a chunk an id and send it again, as it is, until it is acknowledged; they do not say
//! that they do. The epoch of the batches is the identity of the chunk, a hash of its id and its events:
//! clients whose ids are not unique lose nothing.

use std::sync::{Mutex, PoisonError};

use logpond_protocol::intake::push::fluent::DecodedEvents;
use logpond_record::Timestamp;
use logpond_segment::batches::{BatchId, BatchSet};
use logpond_segment::sources::Interval;

use super::InSegments;
use logpond_engine::ingest::Durability;
use logpond_host::clock;
use logpond_host::recent::Recent;

/// Chunks that came lately, with how often each came. What is forgotten is recognised in the journal all the same.
#[derive(Default)]
pub(super) struct Names(Mutex<Recent<u32>>);

impl Names {
    /// How often a chunk of this name came before.
    pub(super) fn attempt(&self, name: u128) -> u32 {
        let mut recent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let times = recent.of(name);
        let before = *times;
        *times = before.saturating_add(1);
        before
    }
}

/// Names of the batches of a chunk.
pub(super) fn ids(epoch: u128, attempt: u32) -> impl Iterator<Item = BatchId> {
    let first_sent = Timestamp(clock::now().0 / 1_000_000 * 1_000_000);
    (0..).map(move |sequence| BatchId {
        epoch,
        sequence,
        attempt,
        first_sent,
        more: 0,
    })
}

/// Whether the journal holds all batches of a chunk, synced, or did so lately.
pub(super) fn is_durable(durability: &Durability, epoch: u128, batches: usize) -> bool {
    let wanted = batches_of(epoch, batches);
    durability.states(&wanted).durable == wanted
}

/// Whether segments hold all batches of a chunk.
pub(super) fn are_all(in_segments: &InSegments, epoch: u128, part: &DecodedEvents) -> bool {
    in_segments(epoch) == batches_of(epoch, part.batches.len())
}

fn batches_of(epoch: u128, batches: usize) -> BatchSet {
    let mut all = BatchSet::default();
    if let Some(last) = batches.checked_sub(1) {
        let to = last as u64;
        all.insert_run(epoch, Interval { from: 0, to });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use logpond_host::recent::IDENTITIES_MAX;

    #[test]
    fn repetitions_are_counted_and_the_memory_is_bounded() {
        let names = Names::default();
        assert_eq!((names.attempt(1), names.attempt(2)), (0, 0));
        assert_eq!((names.attempt(1), names.attempt(1)), (1, 2));
        for name in 0..2 * IDENTITIES_MAX as u128 {
            names.attempt(1000 + name);
        }
        assert_eq!(names.attempt(1), 0, "it is forgotten");
        assert_eq!(names.0.lock().unwrap().count(), IDENTITIES_MAX);
    }
}
