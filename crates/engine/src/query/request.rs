//! What is asked, ready to run.

use std::fmt;
use std::sync::Arc;

use logpond_record::{Id, Record, TimeRange, Timestamp};
use logpond_search::columns::{self, ColumnRequest};
use logpond_search::logql::NamedLabels;
use logpond_search::order::{Direction, Key};
use logpond_search::query::Filter;
use logpond_search::{Matcher, SyntaxError};

use super::positions::{Positions, Region};
use super::restricted::Restriction;
use super::{RowParts, encode, entry, line_rows, row_values};

/// Which records are meant.
#[derive(Debug)]
pub struct Scope {
    /// The filter as it was written, for other nodes.
    pub text: String,
    /// The filter, for pruning. Invariant: it wants results of recording rules only if it names them, but
    /// for [`Scope::all`].
    pub filter: Filter,
    /// The same, compiled.
    pub matcher: Matcher,
    /// Event times.
    pub range: TimeRange,
    /// True if results of recording rules are left out because nobody names them.
    hides_results: bool,
    /// True if a condition that was asked for looks at a field.
    pub looks_at_fields: bool,
    /// The condition that rows around matches have to meet, too, if not all records may be read. Invariant: the
    /// filter has it.
    only: Option<Arc<Filter>>,
}

impl Scope {
    /// Every record of a range.
    pub fn all(range: TimeRange) -> Scope {
        let filter = Filter::All;
        // The filter that wants everything always compiles.
        let matcher = Matcher::new(&filter).unwrap_or_else(|_| unreachable!());
        Scope {
            text: String::new(),
            filter,
            matcher,
            range,
            hides_results: false,
            looks_at_fields: false,
            only: None,
        }
    }

    /// The records of this scope that may be read.
    ///
    /// # Errors
    /// When the filters together are longer than one may be.
    pub(super) fn within(&self, restriction: &Restriction) -> Result<Scope, SyntaxError> {
        let only = restriction.beside(!self.hides_results);
        if only == Filter::All {
            return Ok(self.copied());
        }
        let text = Filter::and([self.asked(), only.clone()]).to_string();
        // Other nodes read it.
        logpond_search::query::parse(&text)?;
        let filter = Filter::and([self.filter.clone(), only.clone()]);
        Ok(Scope {
            text,
            matcher: Matcher::new(&filter)?,
            filter,
            range: self.range,
            hides_results: self.hides_results,
            looks_at_fields: self.looks_at_fields || only.looks_at_fields(),
            only: Some(Arc::new(only)),
        })
    }

    /// The condition that rows around matches have to meet, if there is one.
    pub(super) fn only(&self) -> Option<&Filter> {
        self.only.as_deref()
    }

    /// The same scope, whose filter has this condition, and whose surroundings have to meet it.
    pub(super) fn bound_to(self, only: Filter) -> Scope {
        Scope {
            only: Some(Arc::new(only)),
            ..self
        }
    }

    /// Compiles a filter, with the bounds that its text has for other nodes.
    ///
    /// # Errors
    /// When it does not compile, or is larger than filters may be.
    pub fn of_filter(filter: &Filter, range: TimeRange) -> Result<Scope, SyntaxError> {
        Scope::new(&filter.to_string(), range)
    }

    /// The records that may be shown around those of this scope: everything, or all but results of recording rules
    /// where it does not name them.
    pub fn surroundings(&self) -> Filter {
        let only = self.only().cloned().unwrap_or(Filter::All);
        if self.hides_results {
            Filter::and([Filter::no_rule_results(), only])
        } else {
            only
        }
    }

    /// The scope of these records, in the same range.
    ///
    /// # Errors
    /// None for a scope whose filter compiles.
    pub fn around(&self) -> Result<Scope, SyntaxError> {
        let filter = self.surroundings();
        let only = self.only().cloned().unwrap_or(Filter::All);
        Ok(Scope {
            // Text without a condition leaves results of rules out.
            text: only.to_string(),
            matcher: Matcher::new(&filter)?,
            filter,
            range: self.range,
            hides_results: self.hides_results,
            looks_at_fields: only.looks_at_fields(),
            only: self.only.clone(),
        })
    }

    /// The filter as it was asked for: results of recording rules are left out beside it.
    pub fn asked(&self) -> Filter {
        logpond_search::query::parse(&self.text).unwrap_or_else(|_| self.filter.clone())
    }

    /// The same records.
    pub fn copied(&self) -> Scope {
        Scope {
            text: self.text.clone(),
            filter: self.filter.clone(),
            matcher: self.matcher.clone(),
            range: self.range,
            hides_results: self.hides_results,
            looks_at_fields: self.looks_at_fields,
            only: self.only.clone(),
        }
    }

    /// Parses and compiles a filter. Takes up to milliseconds for a large regular expression.
    ///
    /// # Errors
    /// When the text is not a filter.
    pub fn new(text: &str, range: TimeRange) -> Result<Scope, SyntaxError> {
        let asked = logpond_search::query::parse(text)?;
        let hides_results = !asked.names_rule_results();
        // Results of rules have a listed name: leaving them out misses nothing.
        let looks_at_fields = asked.looks_at_fields();
        let filter = asked.without_rule_results();
        let matcher = Matcher::new(&filter)?;
        Ok(Scope {
            text: text.to_owned(),
            filter,
            matcher,
            range,
            hides_results,
            looks_at_fields,
            only: None,
        })
    }
}

/// A search for rows.
#[derive(Debug)]
pub struct Search {
    /// Which records.
    pub scope: Scope,
    /// Matches at most; `None` is no limit.
    pub limit: Option<u64>,
    /// In which order.
    pub direction: Direction,
    /// Only rows behind this place; for a followed search, records received after it.
    pub behind: Option<Key>,
    /// Goes on with records as they come.
    pub is_followed: bool,
    /// Rows before each match, earlier in time.
    pub rows_before: usize,
    /// Rows after each match, later in time.
    pub rows_after: usize,
    /// Only the trailer's count is wanted.
    pub is_count: bool,
    /// Emits `_progress` objects.
    pub wants_progress: bool,
    /// What rows have beside their fields.
    pub parts: RowParts,
    /// Rows are lines with their labels rather than objects: with those that were declared, and those
    /// of these names.
    pub labels: Option<Box<NamedLabels>>,
    /// Rows are the values of these columns rather than objects.
    pub columns: Option<Arc<[ColumnRequest]>>,
    /// Rows that are lines have their places, too: for those who follow.
    pub has_places: bool,
    /// Rows are the values of records rather than objects: for answers in other forms.
    pub(super) has_values: bool,
    /// Where rows are looked for, in the order of time without overlaps; nothing is the whole
    /// range of the scope.
    pub(super) within: Vec<TimeRange>,
    /// What was shown already and is left out.
    pub(super) shown: Vec<Region>,
    /// Where a follower that comes back goes on; it gets no rows from before.
    pub positions: Option<Positions>,
    /// Whether an answer is worth nothing unless it is complete: it ends once something is
    /// missing.
    pub is_strict: bool,
    /// Whether the answer says where a follower may go on.
    pub wants_positions: bool,
    /// Rows are read beside those of the answer: they do not count as shown to a follower.
    pub(super) is_beside: bool,
}

impl Search {
    /// A search for everything that the scope means, oldest first.
    pub fn new(scope: Scope) -> Search {
        Search {
            scope,
            limit: None,
            direction: Direction::Forward,
            behind: None,
            is_followed: false,
            rows_before: 0,
            rows_after: 0,
            is_count: false,
            wants_progress: false,
            parts: RowParts::default(),
            labels: None,
            columns: None,
            has_places: false,
            has_values: false,
            within: Vec::new(),
            shown: Vec::new(),
            positions: None,
            is_strict: false,
            wants_positions: false,
            is_beside: false,
        }
    }

    /// Leaves out what arrived before a record; its journal frames are not even read.
    pub fn begin_at(&mut self, first: Id) {
        if let Some(before) = first.0.checked_sub(1) {
            self.shown.push(Region::arrived(Id(before)));
        }
    }

    /// Nothing that arrived up to here is wanted, whatever it is.
    pub(super) fn arrived_after(&self) -> Option<Id> {
        let whole = self.shown.iter().filter(|region| region.is_whole());
        let shown = whole.map(|region| region.up_to).max();
        let behind = self.behind.filter(|_| self.is_followed);
        shown.max(behind.map(|cursor| cursor.id))
    }

    /// The same search for matches alone.
    pub(super) fn without_context(&self) -> Search {
        Search {
            rows_before: 0,
            rows_after: 0,
            wants_progress: false,
            ..self.narrowed(Vec::new())
        }
    }

    /// A search for other records whose rows have the same form, read beside those of the answer.
    pub(super) fn beside(&self, scope: Scope) -> Search {
        Search {
            parts: self.parts,
            labels: self.labels.clone(),
            columns: self.columns.clone(),
            has_places: self.has_places,
            has_values: self.has_values,
            is_beside: true,
            ..Search::new(scope)
        }
    }

    /// The same search, whose rows are values.
    pub(super) fn for_values(&self) -> Search {
        Search {
            has_values: true,
            ..self.in_scope(self.scope.copied())
        }
    }

    /// The same search in another scope.
    pub(super) fn in_scope(&self, scope: Scope) -> Search {
        Search {
            scope,
            positions: self.positions.clone(),
            ..self.narrowed(self.within.clone())
        }
    }

    /// The same search, looking only into these ranges.
    pub(super) fn narrowed(&self, within: Vec<TimeRange>) -> Search {
        Search {
            scope: self.scope.copied(),
            within,
            shown: self.shown.clone(),
            positions: None,
            labels: self.labels.clone(),
            columns: self.columns.clone(),
            ..*self
        }
    }

    /// Appends a record in the form that rows have.
    pub(super) fn write_row(&self, record: &Record<'_>, out: &mut Vec<u8>) {
        if let Some(asked) = &self.columns {
            return columns::write_row(record, asked, out);
        }
        match &self.labels {
            None if self.has_values => row_values::write(record, self.parts, out),
            None => encode::write_row(record, self.parts, out),
            Some(names) if self.has_places => entry::write(record, names, out),
            Some(names) => line_rows::write(record, names, out),
        }
    }

    /// Whether rows of this time are looked for.
    pub(super) fn looks_at(&self, time: Timestamp) -> bool {
        if self.within.is_empty() {
            return self.scope.range.contains(time);
        }
        let next = self.within.partition_point(|range| range.to <= time);
        self.scope.range.contains(time)
            && self
                .within
                .get(next)
                .is_some_and(|range| range.contains(time))
    }

    /// Whether rows between these times, both included, may be looked for.
    pub(super) fn looks_between(&self, min: Timestamp, max: Timestamp) -> bool {
        self.scope.range.overlaps(min, max)
            && (self.within.is_empty() || self.within.iter().any(|range| range.overlaps(min, max)))
    }

    /// Whether rows around the matches are wanted.
    pub fn has_context(&self) -> bool {
        self.rows_before > 0 || self.rows_after > 0
    }
}

/// A text is not a cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CursorError;

impl fmt::Display for CursorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a cursor is the `_time` and the `_id` of a row with '_' between")
    }
}

impl std::error::Error for CursorError {}

/// The text of the place right behind a row: its `_time` and `_id` with `_` between, so that a
/// reader can make one from the last row it saw.
pub fn cursor_text(key: Key) -> String {
    format!("{}_{}", key.time, key.id)
}

/// Reads what [`cursor_text`] wrote.
///
/// # Errors
/// When the text is something else.
pub fn parse_cursor(text: &str) -> Result<Key, CursorError> {
    let (time, id) = text.rsplit_once('_').ok_or(CursorError)?;
    let time: Timestamp = logpond_search::when::absolute(time).ok_or(CursorError)?;
    let id: Id = id.parse().map_err(|_| CursorError)?;
    Ok(Key { time, id })
}
