//! What SQL asks: the records of an engine, whatever nodes they are on.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use logpond_record::TimeRange;
use logpond_search::Filter;
use logpond_search::columns::ColumnKind;
use logpond_search::hints::Hint;
use logpond_search::query::{Comparison, FieldTest};
use logpond_sql::{Scan, Source, Tables, Take, View, ViewField};

use super::{ColumnsQuery, Engine, Output, QueryError, Scope, Trailer};
use logpond_host::shutdown::Shutdown;

/// Where statements spill, below the data directory.
const SPILL_DIRECTORY: &str = "sql-spill";

/// What the names of tables of access logs begin with.
const VIEW_PREFIX: &str = "access_";

/// The field that names the declared format of a record.
const FORMAT_FIELD: &str = "access_log";

/// The name of the table of access logs in the formats that need no declaration.
const COMBINED: &str = "combined";

/// The fields of these formats.
const COMBINED_FIELDS: [(&str, ColumnKind); 12] = [
    ("remote_addr", ColumnKind::Text),
    ("user", ColumnKind::Text),
    ("host", ColumnKind::Text),
    ("method", ColumnKind::Text),
    ("path", ColumnKind::Text),
    ("query", ColumnKind::Text),
    ("protocol", ColumnKind::Text),
    ("status", ColumnKind::Int),
    ("bytes", ColumnKind::Int),
    ("referer", ColumnKind::Text),
    ("referer_host", ColumnKind::Text),
    ("agent", ColumnKind::Text),
];

/// Fields of access logs that are made from others and stand in no line.
const COMPUTED_FIELDS: [(&str, ColumnKind); 2] = [
    ("duration_s", ColumnKind::Float),
    ("referer_host", ColumnKind::Text),
];

/// Fields that are whole numbers in every declared format that has them.
const NUMBER_FIELDS: [&str; 12] = [
    "bytes",
    "bytes_moved",
    "bytes_received",
    "bytes_sent",
    "connection",
    "connection_requests",
    "keepalive",
    "port",
    "remote_port",
    "request_length",
    "status",
    "worker_pid",
];

/// Words of statements that may mean tables of access logs; for others they are not looked for.
const VIEW_WORDS: [&str; 3] = [VIEW_PREFIX, "show", "information_schema"];

/// The directory in which statements spill; what a crash has left there is removed.
pub fn spill_directory(data: &Path) -> PathBuf {
    let directory = data.join(SPILL_DIRECTORY);
    // What cannot be removed is in nobody's way: files have names of their own.
    let _ = std::fs::remove_dir_all(&directory);
    directory
}

/// The records of an engine, for one statement.
pub struct SqlSource {
    engine: Arc<dyn Engine>,
    /// Which records there are at all.
    filter: Filter,
    range: TimeRange,
    /// Whether the statement may ask for tables of access logs.
    has_views: bool,
    shutdown: Shutdown,
    /// What was read and what could not be, in all scans.
    trailer: Mutex<Trailer>,
}

impl fmt::Debug for SqlSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqlSource").finish_non_exhaustive()
    }
}

impl SqlSource {
    /// The records of this engine that are in a scope, for a statement.
    pub fn new(
        engine: Arc<dyn Engine>,
        scope: Scope,
        statement: &str,
        shutdown: Shutdown,
    ) -> SqlSource {
        let statement = statement.to_ascii_lowercase();
        SqlSource {
            has_views: VIEW_WORDS.iter().any(|word| statement.contains(word)),
            engine,
            // The statement may name results of recording rules where this does not.
            filter: logpond_search::query::parse(&scope.text).unwrap_or(scope.filter),
            range: scope.range,
            shutdown,
            trailer: Mutex::default(),
        }
    }

    /// What was read and what could not be, so far.
    pub fn trailer(&self) -> Trailer {
        let trailer = self.trailer.lock();
        trailer.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The tables of access logs: of the well-known formats, and of each that was declared for some
    /// record.
    fn views(&self, out: &mut Output) -> Result<Vec<View>, QueryError> {
        let exists = |field: &str| Filter::field(field, FieldTest::Exists);
        let known = ["remote_addr", "method", "status"].map(exists);
        let undeclared = Filter::negate(exists(FORMAT_FIELD));
        let mut views = vec![View {
            name: format!("{VIEW_PREFIX}{COMBINED}"),
            filter: Filter::and(known.into_iter().chain([undeclared])),
            fields: COMBINED_FIELDS.map(view_field).into(),
        }];
        let everything = Scope::all(TimeRange::ALL);
        let (formats, trailer) = self.engine.label_values(&everything, FORMAT_FIELD, out)?;
        self.add(trailer);
        for format in formats {
            let is_format = FieldTest::Compare(Comparison::Equal, format.as_bytes().into());
            let filter = Filter::field(FORMAT_FIELD, is_format);
            let scope = Scope::of_filter(&filter, TimeRange::ALL);
            let scope = scope.map_err(|error| QueryError::Impossible(error.message))?;
            let (types, trailer) = self.engine.field_types(&scope, true, out)?;
            self.add(trailer);
            let name = view_name(&format, &views);
            // What records beside them have in a field is among the types, too.
            let kind = |name, types| {
                if NUMBER_FIELDS.contains(&name) {
                    ColumnKind::Int
                } else {
                    ColumnKind::of(types)
                }
            };
            let of_lines = types
                .fields()
                .map(|(name, types)| (name, kind(name, types)));
            let mut fields: Vec<ViewField> = of_lines.map(view_field).collect();
            let computed = COMPUTED_FIELDS.into_iter();
            let computed =
                computed.filter(|field| types.fields().all(|(known, _)| known != field.0));
            fields.extend(computed.map(view_field));
            views.push(View {
                name,
                filter,
                fields,
            });
        }
        Ok(views)
    }

    fn add(&self, part: Trailer) {
        let trailer = self.trailer.lock();
        let mut trailer = trailer.unwrap_or_else(PoisonError::into_inner);
        trailer.newest = trailer.newest.max(part.newest);
        trailer.bytes_scanned += part.bytes_scanned;
        for lost in &part.lost {
            if !trailer.lost.contains(lost) {
                trailer.lost.push(lost.clone());
            }
        }
        for silent in &part.silent {
            if !trailer.silent.contains(silent) {
                trailer.silent.push(silent.clone());
            }
        }
        // What two scans could not read is missing once.
        trailer.miss_too(part);
    }
}

impl Source for SqlSource {
    fn tables(&self) -> Result<Tables, String> {
        let (mut out, _reader) = Output::new(self.shutdown.clone());
        let everything = Scope::all(TimeRange::ALL);
        let types = self.engine.field_types(&everything, false, &mut out);
        let (fields, trailer) = types.map_err(|error| error.to_string())?;
        self.add(trailer);
        let views = if self.has_views {
            self.views(&mut out).map_err(|error| error.to_string())?
        } else {
            Vec::new()
        };
        Ok(Tables { fields, views })
    }

    fn note(&self, message: String) {
        let hint = Hint {
            message,
            query: None,
            command: None,
            from: None,
            to: None,
        };
        let trailer = self.trailer.lock();
        let mut trailer = trailer.unwrap_or_else(PoisonError::into_inner);
        trailer.hints.push(hint);
    }

    fn scan(&self, scan: &Scan, take: Arc<dyn Take>) -> Result<(), String> {
        let filter = Filter::and([self.filter.clone(), scan.filter.clone()]);
        let range = TimeRange {
            from: scan.range.from.max(self.range.from),
            to: scan.range.to.min(self.range.to),
        };
        if range.from >= range.to {
            return Ok(());
        }
        let scope = Scope::of_filter(&filter, range).map_err(|error| error.message)?;
        let query = ColumnsQuery {
            scope,
            columns: Arc::clone(&scan.columns),
            order: scan.order,
            limit: scan.limit,
        };
        let (mut out, _reader) = Output::new(self.shutdown.clone());
        let wanted = Arc::clone(&take);
        out.wanted_while(move || wanted.is_wanted());
        let rows = |columns| take.take(columns);
        match self.engine.columns(&query, &rows, &mut out) {
            Ok(trailer) => self.add(trailer),
            // What was wanted is there, or nobody wants it any more.
            Err(QueryError::Cancelled) if !take.is_wanted() => {}
            Err(error) => return Err(error.to_string()),
        }
        Ok(())
    }
}

fn view_field((name, kind): (&str, ColumnKind)) -> ViewField {
    let name = name.into();
    ViewField { name, kind }
}

/// The name of the table of a format: without quotes, if no other table has that one.
fn view_name(format: &str, views: &[View]) -> String {
    let plain = |byte: char| match byte.to_ascii_lowercase() {
        byte @ ('a'..='z' | '0'..='9' | '_') => byte,
        _ => '_',
    };
    let name: String = format.chars().map(plain).collect();
    let name = format!("{VIEW_PREFIX}{name}");
    if views.iter().any(|view| view.name == name) {
        format!("{VIEW_PREFIX}{format}")
    } else {
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_have_names_of_their_own() {
        let mut views = Vec::new();
        for (format, expected) in [
            ("shop", "access_shop"),
            ("My-Shop.2", "access_my_shop_2"),
            ("my.shop.2", "access_my.shop.2"),
        ] {
            let name = view_name(format, &views);
            assert_eq!(name, expected);
            views.push(View {
                name,
                filter: Filter::All,
                fields: Vec::new(),
            });
        }
    }
}
