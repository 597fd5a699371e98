//! Partial answers that merge: counts, top values, histograms, what fields and what kinds of messages
//! there are.
//!
//! Each takes records row by row (`add`) or values of a column with how often they occur
//! (`add_value`), merges with others of its kind in any order, and finishes in an order that does
//! not depend on either: by count, largest first, then by the bytes of the value.
//!
//! Each is bounded in memory, and says so when a bound made its answer less than exact.

mod count;
mod top;
mod histogram;
mod fields;
mod field_types;
mod patterns;
mod label_values;
mod streams;

use logpond_record::{Message, Record, Value};
pub(crate) use logpond_segment::fixed_map::FixedMap;

use crate::journal::names;
use crate::label::{self, ComputedLabel};

pub use count::Count;
pub use field_types::FieldTypes;
pub use fields::{EXACT_VALUES_MAX, FieldRow, FieldStats, FieldsAnswer};
pub use histogram::{
    BUCKETS_MAX, Bucket, Histogram, HistogramAnswer, HistogramError, HistogramSpec, Series,
    nice_step_ns,
};
pub use label_values::LabelValues;
pub use logpond_record::{TypeSet, ValueType};
pub use patterns::{Pattern, Patterns, PatternsAnswer, Sample};
pub use streams::{
    LabelSet, STREAMS_BYTES_MAX, StreamRow, StreamTally, Streams, StreamsAnswer, StreamsRequest,
    stream_of,
};
pub use top::{Top, TopAnswer, TopRow};

/// Calls `with` with the value that this name has in a record: a field, or one of the reserved
/// names, rendered as text.
fn with_named<R>(record: &Record<'_>, name: &str, with: impl FnOnce(Option<&Value<'_>>) -> R) -> R {
    let text = |text: String| Some(Value::Str(text.into()));
    let line = || {
        let mut line = Vec::new();
        record.write_line(&mut line);
        line
    };
    let rendered = match name {
        "_time" => text(record.time.to_string()),
        "_received" => text(record.received.to_string()),
        "_id" => text(record.id.to_string()),
        "_time_source" => text(record.time_source.as_str().to_owned()),
        label::SEVERITY => ComputedLabel::Severity.value_of(record),
        label::SEVERITY_NUMBER => ComputedLabel::SeverityNumber.value_of(record),
        "_raw" => return with(Some(&Value::text(&line()))),
        "_msg" => match &record.message {
            Message::Absent => None,
            Message::Part(value) => return with(Some(value)),
            Message::Line => return with(Some(&Value::text(&line()))),
        },
        name => {
            return with(match name.strip_prefix(names::ENTRY_PREFIX) {
                Some(name) => names::value(record, name),
                None => record.field(name),
            });
        }
    };
    with(rendered.as_ref())
}
