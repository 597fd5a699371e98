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

use logpond_record::limits::FIELDS_MAX;
use logpond_record::{EntryKind, Timestamp, Value};

use super::{RejectReason, Shipment, TooLarge};

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
    /// It has no stream.
    NoStreams,
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
            LokiError::NoStreams => f.write_str("a push has at least one stream"),
            LokiError::TooLarge(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for LokiError {}

impl From<TooLarge> for LokiError {
    fn from(error: TooLarge) -> LokiError {
        LokiError::TooLarge(error)
    }
}

/// Adds a pair. One more than a record may have fields is the last that is held, so that the record is
/// refused.
fn hold<'a>(pair: (Cow<'a, str>, Value<'a>), to: &mut Pairs<'a>) {
    if to.len() <= FIELDS_MAX {
        to.push(pair);
    }
}

/// Takes an entry in.
fn add(
    shipment: &mut Shipment,
    time: Result<Timestamp, RejectReason>,
    metadata: &Pairs<'_>,
    labels: &Pairs<'_>,
    line: &[u8],
) -> Result<(), LokiError> {
    let fields = metadata.iter().chain(labels);
    let fields = fields.map(|(name, value)| (&**name, value));
    Ok(shipment.add(EntryKind::Line, time.map(Some), fields, line)?)
}
