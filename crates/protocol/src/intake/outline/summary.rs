//! The level of a document and times in two fields, by the names of its fields.
//!
//! It depends on the names and the kinds of the fields only; the values are read from the record's parts, so
//! that lines of an outline that is known are read by it, too.

use logpond_record::{Assumption, Severity, TimeSource, Timestamp, Value, cast};

use super::names::How;
use super::scale::Scale;
use crate::intake::sketch::Parts;
use crate::intake::timestamps::{Reading, TimeReader};

/// A level that a document says in its product's own way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DocumentLevel {
    /// The level.
    pub(crate) severity: Severity,
    /// True if a field of the document would be read as another level.
    pub(crate) beats: bool,
}

/// The level and the pair of time fields of a document, by its names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Summary {
    /// The source of the level.
    pub(crate) level: SaidLevel,
    /// Two fields that are an instant.
    pub(crate) pair: Option<TimePair>,
}

/// Two fields that are an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimePair {
    /// Index of the first one's slot.
    pub(crate) first: u32,
    /// Index of the second one's slot, if there is one.
    pub(crate) second: Option<u32>,
    /// Index of the slot with their zone, if there is one.
    pub(crate) zone: Option<u32>,
    /// True if they are UTC by definition.
    pub(crate) is_utc: bool,
    /// How they are one.
    pub(crate) how: How,
}

/// The source of a document's level.
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
        /// True if its name would be read on another scale.
        beats: bool,
        /// True if its name is one of those that every record may have a level by.
        is_usual: bool,
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
            SaidLevel::At {
                slot,
                scale,
                beats,
                is_usual,
            } => {
                let text = parts.values.get(slot as usize)?.to_text();
                let severity = scale.severity(&text)?;
                // Read as usual, many say the same.
                let is_usual = is_usual && Scale::Usual.severity(&text) == Some(severity);
                (!is_usual).then_some(DocumentLevel { severity, beats })
            }
        }
    }

    /// Fills in the time that two fields are; there is no other one then.
    pub(crate) fn complete(&self, parts: &mut Parts<'_>, received: Timestamp, times: &TimeReader) {
        let Some(pair) = self.pair else {
            return;
        };
        let value = |slot: u32| parts.values.get(slot as usize);
        let (first, second) = (value(pair.first), pair.second.and_then(value));
        let found = match pair.how {
            How::Nanos => with_nanos(first, second).map(|time| (time, Assumption::Nothing)),
            How::Text => {
                let texts = [first, second, pair.zone.and_then(value)];
                joined(texts, received, times, pair.is_utc)
            }
        };
        if let Some((time, assumed)) = found {
            parts.time = Some(time);
            parts.time_source = TimeSource::Field(assumed);
        }
    }
}

fn with_nanos(seconds: Option<&Value<'_>>, nanos: Option<&Value<'_>>) -> Option<Timestamp> {
    let seconds = whole_number(seconds?).filter(|seconds| SECONDS.contains(seconds))?;
    let nanos = match nanos {
        None => 0,
        Some(nanos) => whole_number(nanos).filter(|nanos| (0..1_000_000_000).contains(nanos))?,
    };
    Timestamp::from_seconds(seconds, cast::low_u32(nanos))
}

/// The instant of texts with spaces between them: of a date, a time and a zone that may be missing, of the
/// first two, or of the first one.
fn joined(
    texts: [Option<&Value<'_>>; 3],
    received: Timestamp,
    times: &TimeReader,
    is_utc: bool,
) -> Option<(Timestamp, Assumption)> {
    let text = |value: Option<&'_ Value<'_>>| match value {
        Some(Value::Str(text)) => Some(text.to_string()),
        _ => None,
    };
    let (first, second, zone) = (text(texts[0])?, text(texts[1])?, text(texts[2]));
    if first.len() + second.len() + zone.as_ref().map_or(0, String::len) > TEXTS_BYTES_MAX {
        return None;
    }
    let both = format!("{first} {second}");
    let all = zone.map(|zone| format!("{both} {zone}"));
    let mut tried = all.iter().chain([&both, &first]);
    let reading = Reading {
        is_certain: false,
        is_utc,
        may_be_day: false,
    };
    let written = tried.find_map(|text| times.read(text.as_bytes(), received, reading))?;
    Some((written.time, reading.assumed(&written)))
}

/// Longer texts are no time and no name of a zone.
const TEXTS_BYTES_MAX: usize = 100;

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
