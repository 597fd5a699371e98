//! The push API of Loki: streams of lines that share labels, as JSON or as Protocol Buffers.
//!
//! Labels and structured metadata are fields beside the line, and the entry's time is the record's.
//! Metadata comes before labels of the same name.
//!
//! Invariants: an entry that cannot be taken takes no other with it; a body that is no push takes
//! all, and nothing was taken then.

mod json;
mod labels;
mod protobuf;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;

use logpond_record::limits::LINE_BYTES_MAX;
use logpond_record::{Batch, EntryKind, Labels, Timestamp, Value};

use super::{BATCH_BYTES_MAX, Pushed, RejectReason, TooLarge, check, check_names, check_time};

pub use json::decode as decode_json;
pub use protobuf::decode as decode_protobuf;

/// Names and values.
type Pairs<'a> = Vec<(Cow<'a, str>, Value<'a>)>;

/// Why a body is refused as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LokiError {
    /// It is no push.
    Body(String),
    /// The labels of a stream cannot be read.
    Labels {
        /// The labels.
        labels: String,
        /// What is expected.
        reason: &'static str,
    },
    /// More than can be taken at once.
    TooLarge(TooLarge),
}

impl fmt::Display for LokiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LokiError::Body(reason) => write!(f, "the body is no push: {reason}"),
            LokiError::Labels { labels, reason } => {
                write!(
                    f,
                    "labels '{}' of a stream: {reason}",
                    labels.escape_debug()
                )
            }
            LokiError::TooLarge(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for LokiError {}

/// Takes entries in, one by one.
struct Sink {
    pushed: Pushed,
    line_bytes_max: usize,
    /// Entries so far, taken or not.
    entries: usize,
}

impl Sink {
    fn new(labels: Labels, line_bytes_max: usize) -> Sink {
        Sink {
            pushed: Pushed::new(Batch::new(EntryKind::Enveloped, labels)),
            line_bytes_max: line_bytes_max.min(LINE_BYTES_MAX),
            entries: 0,
        }
    }

    fn add(
        &mut self,
        time: Result<Timestamp, RejectReason>,
        metadata: &Pairs<'_>,
        labels: &Pairs<'_>,
        line: &[u8],
    ) -> Result<(), LokiError> {
        self.entries += 1;
        let names = metadata.iter().chain(labels).map(|(name, _)| &**name);
        let checked = check(EntryKind::Line, line, self.line_bytes_max);
        let checked = checked.and_then(|()| check_names(names)).and(time);
        let checked = checked.and_then(|time| check_time(Some(time)).map(|()| time));
        match checked {
            Ok(time) => {
                let fields = metadata.iter().chain(labels);
                let fields = fields.map(|(name, value)| (&**name, value));
                let batch = &mut self.pushed.batch;
                batch.push_enveloped(EntryKind::Line, Some(time), fields, line);
            }
            Err(reason) => self.pushed.reject(self.entries, reason),
        }
        match self.pushed.batch.payload().len() > BATCH_BYTES_MAX {
            true => Err(LokiError::TooLarge(TooLarge)),
            false => Ok(()),
        }
    }

    fn finish(self) -> Pushed {
        self.pushed.finished()
    }
}
