//! Where records come from.

use std::fmt::Debug;
use std::sync::Arc;

use logpond_record::TimeRange;
use logpond_search::Filter;
use logpond_search::aggregate::FieldTypes;
use logpond_search::columns::{ColumnKind, ColumnRequest, Columns};
use logpond_search::order::Direction;

use crate::error::SqlError;

/// What there is to ask for.
#[derive(Clone, Debug, Default)]
pub struct Tables {
    /// The fields that records have.
    pub fields: FieldTypes,
    /// Tables of some of the records.
    pub views: Vec<View>,
}

/// Some of the records as a table of their own.
#[derive(Clone, Debug)]
pub struct View {
    /// The table's name.
    pub name: String,
    /// Which records.
    pub filter: Filter,
    /// The fields that the table has; those that do not occur have empty columns.
    pub fields: Vec<ViewField>,
}

/// A column of such a table.
#[derive(Clone, Debug)]
pub struct ViewField {
    /// Its name.
    pub name: Box<str>,
    /// The field that it has. `_time` is the event time; as a whole number it is in seconds since 1970.
    pub field: Box<str>,
    /// What its column holds, whatever other records have in this field; values that are none of it are
    /// nulls.
    pub kind: ColumnKind,
}

/// A pattern of messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternRow {
    /// The words that its messages share.
    pub pattern: String,
    /// The level of its records, if they have one.
    pub level: Option<String>,
    /// The number of records.
    pub count: u64,
    /// The newest message that has it, and its event time in nanoseconds since 1970.
    pub sample: Option<(i64, String)>,
}

/// What is wanted of the records.
#[derive(Clone, Debug)]
pub struct Scan {
    /// Which records.
    pub filter: Filter,
    /// Their event times.
    pub range: TimeRange,
    /// What of them; may be nothing, then only their number counts.
    pub columns: Arc<[ColumnRequest]>,
    /// In which order, by event time; `None` is any.
    pub order: Option<Direction>,
    /// How many are enough.
    pub limit: Option<u64>,
}

/// Takes records.
pub trait Take: Send + Sync + 'static {
    /// Takes some; says whether further ones are wanted. May block; threads may call it side by side.
    fn take(&self, columns: Columns) -> bool;

    /// Whether further ones are wanted: to be asked every few milliseconds.
    fn is_wanted(&self) -> bool;
}

/// The memory of the process, of which a statement asks for some before it takes it.
pub trait Memory: Debug + Send + Sync + 'static {
    /// Has so many bytes until the returned value is dropped. Waits for a moment at most.
    ///
    /// # Errors
    /// When there are not as many, with why.
    fn hold(&self, bytes: u64) -> Result<Box<dyn Send>, String>;
}

/// Where records come from. Calls block.
pub trait Source: Debug + Send + Sync + 'static {
    /// What there is to ask for.
    ///
    /// # Errors
    /// Why that cannot be said.
    fn tables(&self) -> Result<Tables, SqlError>;

    /// Counts the messages of all records by their patterns, the most frequent first.
    ///
    /// # Errors
    /// Why they cannot be counted.
    fn patterns(&self) -> Result<Vec<PatternRow>, SqlError>;

    /// Takes what is to be said beside the answer, as a sentence without its end.
    fn note(&self, message: String) {
        let _ = message;
    }

    /// Hands over the records that are wanted, each exactly once, as long as they are.
    ///
    /// # Errors
    /// Why there are not all of them. What the source could not read, but is no reason to
    /// stop, it keeps for whoever made it.
    fn scan(&self, scan: &Scan, take: Arc<dyn Take>) -> Result<(), SqlError>;
}
