//! What goes wrong when something is written.

use std::fmt;
use std::io;

use super::frame::{FRAME_ENTRIES_MAX, FRAME_PAYLOAD_BYTES_MAX, LABELS_BYTES_MAX, LABELS_MAX};
use super::salvage::is_full;
use crate::batches::BatchId;

/// Why a batch was not taken, or what was taken is not durable.
#[derive(Debug)]
pub enum WriteError {
    /// The disk is full. Nothing is damaged; try again when there is room.
    Full {
        /// What was being written.
        path: String,
        /// What the disk said.
        error: io::Error,
    },
    /// The disk failed.
    Disk {
        /// What was done.
        operation: &'static str,
        /// What it was done to.
        path: String,
        /// What the disk said.
        error: io::Error,
    },
    /// Too few other nodes know that this node writes a journal; nothing was written. Try again.
    Unannounced {
        /// Why, and what to do.
        why: String,
    },
    /// The batch has too many or too long labels; nothing was written and no other batch is
    /// affected.
    Labels {
        /// Their encoded length.
        bytes: usize,
        /// Their number.
        count: usize,
    },
    /// The batch has an entry beyond the hard limit; nothing was written and no other batch is
    /// affected.
    Entry {
        /// Its length.
        bytes: usize,
    },
    /// A named batch does not fit a frame; nothing was written and no other batch is affected.
    Batch {
        /// Its entries.
        count: usize,
        /// Their bytes.
        bytes: usize,
    },
    /// A run is a retry, or the journal has a part of its numbers and not all of them; nothing was
    /// written and no other batch is affected.
    Run {
        /// Its name.
        id: BatchId,
    },
    /// An earlier writing of the batch failed, and what is left of it could not be removed yet; nothing
    /// was written and no other batch is affected. Try again.
    Unsettled {
        /// Its name.
        id: BatchId,
    },
    /// Too many files could not be closed after errors; nothing was written.
    Unclosed {
        /// How many.
        count: usize,
    },
}

impl WriteError {
    pub(super) fn disk(operation: &'static str, path: &str, error: io::Error) -> WriteError {
        let path = path.to_owned();
        if is_full(&error) {
            WriteError::Full { path, error }
        } else {
            WriteError::Disk {
                operation,
                path,
                error,
            }
        }
    }

    /// Whether only the batch itself was refused: nothing was written, and batches that wait for
    /// a sync are not affected.
    pub fn is_refusal(&self) -> bool {
        matches!(
            self,
            WriteError::Labels { .. }
                | WriteError::Entry { .. }
                | WriteError::Batch { .. }
                | WriteError::Run { .. }
                | WriteError::Unsettled { .. }
        )
    }

    /// Whether the reason is a full disk: refuse records until there is room.
    pub fn is_full(&self) -> bool {
        matches!(self, WriteError::Full { .. })
    }
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WriteError::Full { path, .. } => {
                write!(f, "the disk is full: cannot write {path}; free some space")
            }
            WriteError::Disk {
                operation, path, ..
            } => write!(f, "cannot {operation} {path}; check the disk"),
            WriteError::Unannounced { why } => f.write_str(why),
            WriteError::Labels { bytes, count } => write!(
                f,
                "{count} labels of {bytes} bytes exceed the limit of {LABELS_MAX} labels or \
                 {LABELS_BYTES_MAX} bytes; send fewer"
            ),
            WriteError::Entry { bytes } => write!(
                f,
                "an entry of {bytes} bytes exceeds the limit of {FRAME_PAYLOAD_BYTES_MAX}; cut it"
            ),
            WriteError::Batch { count, bytes } => write!(
                f,
                "a named batch of {count} entries and {bytes} bytes exceeds the limit of \
                 {FRAME_ENTRIES_MAX} entries or {FRAME_PAYLOAD_BYTES_MAX} bytes; send smaller ones"
            ),
            WriteError::Run { id } => write!(
                f,
                "of the numbers of {id} some are there already; a run must be all new, or sent again \
                 as it was"
            ),
            WriteError::Unsettled { id } => write!(
                f,
                "{id} failed before, and what is left of that could not be removed yet; check the disk"
            ),
            WriteError::Unclosed { count } => write!(
                f,
                "{count} journal files could not be closed after disk errors; check the disk"
            ),
        }
    }
}

impl std::error::Error for WriteError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            WriteError::Full { error, .. } | WriteError::Disk { error, .. } => Some(error),
            WriteError::Unannounced { .. }
            | WriteError::Labels { .. }
            | WriteError::Entry { .. }
            | WriteError::Batch { .. }
            | WriteError::Run { .. }
            | WriteError::Unsettled { .. }
            | WriteError::Unclosed { .. } => None,
        }
    }
}
