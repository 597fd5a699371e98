//! LogQL, the query language of Loki: from a text to a tree and back.
//!
//! ```text
//! {app="shop"} |= "timeout" | json | status >= 500                     lines
//! sum by (app) (rate({app=~"shop|cart"} |= "timeout" [5m])) > 0.1      numbers
//! ```
//!
//! All of the language is read, with two differences on purpose: `{}` and matchers that match
//! everything are allowed, and a label may be called like a stage (`| json="x"`).
//!
//! Invariant: the printed form of a query parses back to an equal query, unless it is longer or deeper
//! than queries may be.

mod ast;
mod display;
mod error;
mod expressions;
mod go_regex;
mod lexer;
mod names;
mod parse;
mod pushdown;
mod units;
pub mod variables;
#[cfg(test)]
mod tests;

pub use ast::{
    BinaryOperation, Comparison, Conversion, Extraction, Grouping, LabelChoice, LabelFilter,
    LabelFormat, LabelMatcher, LabelReplace, LabelSource, LineChoice, LineFilter, LineOperator,
    LogQuery, Logfmt, ManySide, MatchOperator, Matching, MatchingLabels, Metric, Operator,
    Quantity, Query, RangeAggregation, RangeFunction, Stage, StageKind, Unwrap, VectorAggregation,
    VectorFunction,
};
pub use error::ParseError;
pub(crate) use expressions::{Place, in_line, whole_label};
pub(crate) use go_regex::translate as translate_regex;
pub(crate) use lexer::escape;
pub use names::NamedLabels;
pub(crate) use names::{add_filter, looked_at};
pub use parse::{parse, parse_log, parse_matchers};
pub use pushdown::{Pushdown, filter_of, filter_of_matchers, pushdown};
pub(crate) use units::exact_number_of;
pub use units::{bytes_of, duration_ns, number_of, write_duration};

/// The longest query, in bytes: what Loki takes.
pub const QUERY_BYTES_MAX: usize = 128 << 10;

/// How deeply a query may nest; bounds the recursion of all that reads trees.
pub const DEPTH_MAX: usize = 64;

/// The most matchers of a selector: what Loki takes.
pub const MATCHERS_MAX: usize = 1000;

/// The most stages, conditions and operators of a query; each costs memory and time for each line.
pub const PARTS_MAX: usize = 1000;

/// Bytes of a query. Two are always equal, so that trees are equal whose texts differ in spaces.
#[derive(Clone, Copy, Debug, Default, Eq)]
pub struct Span {
    /// The first one.
    pub start: usize,
    /// The first one behind.
    pub end: usize,
}

impl Span {
    /// No bytes, at this place.
    pub fn at(start: usize) -> Span {
        Span { start, end: start }
    }

    /// From the beginning of this one to the end of another.
    pub fn to(self, other: Span) -> Span {
        Span {
            start: self.start,
            end: other.end.max(self.start),
        }
    }
}

impl PartialEq for Span {
    fn eq(&self, _: &Span) -> bool {
        true
    }
}

/// Reads any bytes as a query and checks what must hold for every one: parsing ends, an error lies
/// within the text, and the printed form of a query for lines parses back. An entry point for fuzzing.
///
/// # Panics
///
/// If one of these does not hold.
pub fn fuzz_logql(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match parse(&text) {
        Ok(query) => {
            let printed = query.to_string();
            // Escapes make the printed form longer than a query may be, and a chain of operators, which
            // has a parenthesis each there, makes it deeper.
            let is_log = matches!(query, Query::Log(_));
            if is_log && printed.len() <= QUERY_BYTES_MAX {
                assert_eq!(parse(&printed).as_ref(), Ok(&query), "{printed}");
            }
            if let Query::Log(log) = &query {
                let filter = filter_of(log);
                assert!(crate::Matcher::new(&filter).is_ok(), "{printed}: {filter}");
            }
        }
        Err(error) => {
            assert!(error.span.start <= error.span.end && error.span.end <= text.len());
            assert!(text.is_char_boundary(error.span.start), "{text}");
        }
    }
}
