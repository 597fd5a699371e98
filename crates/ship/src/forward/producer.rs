//! Names for batches, so that they can be sent again without being there twice.
//!
//! Invariants: a name is given once, because the epoch is random; the sequences of an epoch are
//! dense; the attempt of a name never counts down.

use logpond_record::Timestamp;
use logpond_segment::batches::BatchId;

use logpond_host::clock;

/// Gives batches their names.
pub(super) struct Producer {
    epoch: u128,
    sequence_next: u64,
}

impl Producer {
    /// A producer with an epoch of its own.
    pub(super) fn new() -> std::io::Result<Producer> {
        let minted = clock::mint_incarnation().map_err(|e| std::io::Error::other(e.to_string()))?;
        Ok(Producer {
            epoch: minted.0,
            sequence_next: 0,
        })
    }

    /// The name of the next batch, which is about to be sent for the first time.
    pub(super) fn name(&mut self) -> BatchId {
        let sequence = self.sequence_next;
        self.sequence_next += 1;
        BatchId {
            epoch: self.epoch,
            sequence,
            attempt: 0,
            first_sent: in_whole_ms(clock::now()),
            more: 0,
        }
    }
}

/// A time as names have it, not before 1970.
fn in_whole_ms(time: Timestamp) -> Timestamp {
    Timestamp(time.unix_ms().max(0).saturating_mul(1_000_000))
}
