//! The log record: times, ids, values, shapes, batches, limits.
//!
//! No IO, no clock, no randomness, no async: everything here is a value or a pure function.
//!
//! A record keeps its *original line* without storing it: the line is a [`Shape`] (literal text
//! with named slots) plus the values of the slots. Rendering the shape gives the line back byte
//! for byte; where that is impossible the line is kept whole beside the fields.

#![cfg_attr(
    test,
    allow(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "tests cast numbers that they know"
    )
)]

pub mod cast;
pub mod limits;
mod id;
mod time;
mod time_pattern;
mod value;
mod value_type;
mod json;
mod decimal;
mod label_name;
mod shape;
mod record;
mod time_source;
mod service;
mod severity;
mod entry;
pub mod envelope;

pub use decimal::Decimal;
pub use entry::{Batch, Entry, EntryKind, Labels, line_of};
pub use envelope::Envelope;
pub use id::{Id, IdParseError, Incarnation, SourceId};
pub use json::{json_on_one_line, write_json_string};
pub use label_name::{
    LABEL_SUFFIX, RESERVED_NAMES, RULE_FIELD, is_reserved_for_senders, name_bit, split_label_name,
    unreserved,
};
pub use record::{Fix, Message, Record};
pub use service::{SERVICE_LABELS, SERVICE_LABELS_OF_LOKI, SERVICE_NAME, UNKNOWN_SERVICE};
pub use severity::{SEVERITY_LABELS, Severity, is_severity_field};
pub use shape::{Piece, Shape, ShapeError, ShapeTable, Slot, SlotKind};
pub use time::{Civil, TimeRange, Timestamp};
pub use time_pattern::{ParsedTime, PatternError, TimePattern, write_unwritten_offset};
pub use time_source::{Assumption, TimeSource};
pub use value::{Value, write_float, write_int};
pub use value_type::{TypeSet, ValueType};
