//! What the names of a document say beside which fields are its time and its message.
//!
//! It depends on the names and the kinds of the fields only; the values are read from the record's parts, so
//! that lines of an outline that is known are read by it, too.

use logpond_record::{Assumed, Severity, TimeSource, Timestamp, Value};

use super::names::Scale;
use crate::intake::sketch::Parts;

/// A level that a document says in its product's own way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DocumentLevel {
    /// The level.
    pub(crate) severity: Severity,
    /// Whether a field of the document would be read as another one.
    pub(crate) beats: bool,
}

/// What the names of a document say beside its time and its message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Summary {
    /// Where the level is.
    pub(crate) level: SaidLevel,
    /// Slots of the seconds and nanoseconds of an instant.
    pub(crate) pair: Option<(u32, Option<u32>)>,
}

/// What a document says of its level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SaidLevel {
    /// Nothing.
    #[default]
    Nothing,
    /// It has a field that says it as in any record.
    Stated,
    /// A field says it in its product's own way.
    At {
        /// Index of its slot.
        slot: u32,
        /// How it is read.
        scale: Scale,
        /// Whether its name would be read otherwise.
        beats: bool,
    },
    /// It says none where its product leaves out the usual one.
    Implied(Severity),
}

impl Summary {
    /// The level that a field says in its product's own way.
    pub(crate) fn level(&self, parts: &Parts<'_>) -> Option<DocumentLevel> {
        match self.level {
            SaidLevel::Nothing | SaidLevel::Stated => None,
            SaidLevel::Implied(severity) => Some(DocumentLevel {
                severity,
                beats: false,
            }),
            SaidLevel::At { slot, scale, beats } => {
                let text = parts.values.get(slot as usize)?.to_text();
                let severity = scale.severity(&text)?;
                Some(DocumentLevel { severity, beats })
            }
        }
    }

    /// Fills in the time that two fields are; there is no other one then.
    pub(crate) fn complete(&self, parts: &mut Parts<'_>) {
        let Some((seconds, nanos)) = self.pair else {
            return;
        };
        let number = |slot: u32| whole_number(&parts.values[slot as usize]);
        let nanos = nanos.map_or(Some(0), number);
        let (Some(seconds), Some(nanos @ 0..1_000_000_000)) = (number(seconds), nanos) else {
            return;
        };
        if SECONDS.contains(&seconds) {
            parts.time = Timestamp::from_seconds(seconds, nanos as u32);
            parts.time_source = TimeSource::Field(Assumed::Nothing);
        }
    }
}

/// Seconds that are an instant for certain, as with Unix time in one field: from 1990 up to 2100.
const SECONDS: std::ops::Range<i64> = 631_152_000..4_102_444_800;

fn whole_number(value: &Value<'_>) -> Option<i64> {
    match value {
        Value::Int(number) => Some(*number),
        // As Protocol Buffers write 64 bits.
        Value::Str(text) => text.parse().ok(),
        _ => None,
    }
}
