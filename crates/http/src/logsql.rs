//! `/select/logsql/query`: the plain forms of LogsQL, answered as VictoriaLogs does: a JSON object of texts a line.
//!
//! Invariants: a form that is not supported gets 400 with its name. An answer that lacks something before its first row
//! is refused, later it is broken off: the lines have no place for what is missing.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::Response;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use logpond_record::{TimeRange, Timestamp, Value as RecordValue, cast};
use logpond_render::Row;
use logpond_search::logsql::{self, LogsOutput, LogsQuery};
use logpond_search::query::{FieldTest, Filter};
use serde_json::{Map, Value};

use super::body::Body;
use super::error::{ApiError, Kind};
use super::params::Params;
use super::rows::{self, Begins};
use super::{App, header_text};
use logpond_engine::query::{
    Direction, Output, QueryError, RewriteStatus, Scope, Search, TOP_VALUES_MAX, Trailer, Visitor,
};
use logpond_host::clock;

/// Parameters of a query. `timeout` is that of the sender, who closes the connection.
pub(super) const PARAMS: [&str; 5] = ["query", "start", "end", "limit", "timeout"];

/// Members of our rows that VictoriaLogs' have not.
const LEFT_OUT: [&str; 2] = ["_id", "_more"];

/// The stream of a record, which has none here: a field of this name is not shown as one.
const STREAM: (&str, &str) = ("_stream", "{}");

/// Answers a query.
pub(super) async fn answer(app: &Arc<App>, params: Params) -> Response<Body> {
    match run(app, params).await {
        Ok(mut response) => {
            let media_type = HeaderValue::from_static("application/stream+json");
            response.headers_mut().insert(CONTENT_TYPE, media_type);
            response
        }
        Err(error) => {
            let (status, _, _) = error.kind.row();
            let text = match &error.hint {
                Some(hint) => format!("{}; {hint}\n", error.message),
                None => format!("{}\n", error.message),
            };
            let response = Body::whole(status, "text/plain; charset=utf-8", text);
            error.kind.dress(response)
        }
    }
}

async fn run(app: &Arc<App>, params: Params) -> Result<Response<Body>, ApiError> {
    params.only(&PARAMS)?;
    let app_there = Arc::clone(app);
    let prepare = move || read(&params);
    let run = move |question: Question, out: &mut Output| match question {
        Question::Rows(search, fields) => {
            let visitor: Visitor = Box::new(move |row, out| write_row(row, &fields, out));
            app_there.engine.visit(&search, visitor, out)
        }
        Question::Count { all, groups, name } => {
            count(&app_there, &all, groups.as_deref(), &name, out)
        }
    };
    let response = app.threads.stream(Begins::WithRows, prepare, run).await?;
    Ok(header_text::note_losses(app, response).await)
}

/// A query that was read.
enum Question {
    /// Rows, and their fields; empty are all.
    Rows(Box<Search>, Vec<String>),
    /// Numbers of records.
    Count {
        /// All records; of groups, those without the field.
        all: Box<Search>,
        groups: Option<Box<Groups>>,
        /// The name of the number.
        name: String,
    },
}

/// Records by the values of a field.
struct Groups {
    scope: Scope,
    field: String,
    limit: Option<u64>,
}

fn read(params: &Params) -> Result<Question, ApiError> {
    let now = clock::now();
    let text = params.one("query")?.unwrap_or_default();
    if text.trim().is_empty() {
        return Err(ApiError::bad_request("parameter 'query' is missing"));
    }
    let query = logsql::parse(text, now);
    let query = query.map_err(|error| ApiError::new(Kind::BadQuery, error.to_string()))?;
    let range = range(params, &query, now)?;
    let scope = |filter: &Filter| {
        Scope::new(&filter.to_string(), range)
            .map_err(|error| ApiError::new(Kind::BadQuery, error.message))
    };
    let given = params.number("limit", 0, u64::MAX)?;
    let given = (given > 0).then_some(given);
    match query.output {
        LogsOutput::Rows {
            limit,
            fields,
            is_newest_first,
        } => {
            let mut search = Search::new(scope(&query.filter)?);
            search.limit = limit.into_iter().chain(given).min();
            // A limit means the newest.
            if is_newest_first.unwrap_or(search.limit.is_some()) {
                search.direction = Direction::Backward;
            }
            Ok(Question::Rows(Box::new(search), fields))
        }
        LogsOutput::Count { by, name, limit } => {
            let groups = by.map(|field| {
                let scope = scope(&query.filter)?;
                let limit = limit.into_iter().chain(given).min();
                Ok::<_, ApiError>(Box::new(Groups {
                    scope,
                    field,
                    limit,
                }))
            });
            let groups = groups.transpose()?;
            let counted = match &groups {
                Some(groups) => {
                    let exists = Filter::field(&groups.field, FieldTest::Exists);
                    Filter::and([query.filter, Filter::Not(Box::new(exists))])
                }
                None => query.filter,
            };
            let mut all = Search::new(scope(&counted)?);
            all.is_count = true;
            Ok(Question::Count {
                all: Box::new(all),
                groups,
                name,
            })
        }
    }
}

/// The range of the parameters, within which that of the query lies.
fn range(params: &Params, query: &LogsQuery, now: Timestamp) -> Result<TimeRange, ApiError> {
    let bound = |name: &str| match params.one(name)?.map(str::parse) {
        Some(Ok(number)) => Ok(Some(of_number(number))),
        _ => rows::time(params, name, now),
    };
    let mut range = query.range;
    if let Some(from) = bound("start")? {
        range.from = range.from.max(from);
    }
    if let Some(to) = bound("end")? {
        range.to = range.to.min(to);
    }
    range.from = range.from.min(range.to);
    Ok(range)
}

/// Unix time in seconds, milliseconds, microseconds or nanoseconds, by its size.
fn of_number(number: i64) -> Timestamp {
    let unit_ns = match number.unsigned_abs() {
        ..100_000_000_000 => 1_000_000_000,
        100_000_000_000..100_000_000_000_000 => 1_000_000,
        100_000_000_000_000..100_000_000_000_000_000 => 1_000,
        _ => 1,
    };
    Timestamp(number.saturating_mul(unit_ns))
}

/// Writes a row of ours as one of theirs.
fn write_row(row: &Row<'_>, fields: &[String], out: &mut Vec<u8>) -> RewriteStatus {
    let own = row
        .fields
        .iter()
        .filter(|(_, value)| *value != RecordValue::Null);
    let own = own.map(|(name, value)| {
        let text = value.to_text();
        (name.to_string(), String::from_utf8_lossy(&text).into())
    });
    let time = row
        .time
        .map(|time| ("_time".to_owned(), time.to_string().into()));
    let message = row.message.as_deref();
    let bytes = message.filter(|message| std::str::from_utf8(message).is_err());
    let bytes = bytes.map(|bytes| ("_msg_bin".to_owned(), STANDARD.encode(bytes).into()));
    let message = message.map(String::from_utf8_lossy);
    let message = message.map(|message| ("_msg".to_owned(), Value::from(&*message)));
    let members = own.chain(time).chain(message).chain(bytes);
    let mut members: Map<String, Value> = members.collect();
    members.retain(|name, _| !LEFT_OUT.contains(&&**name));
    members.insert(STREAM.0.to_owned(), STREAM.1.into());
    if !fields.is_empty() {
        members.retain(|name, _| fields.contains(name));
    }
    write(members, out);
    RewriteStatus::GoOn
}

fn write(members: Map<String, Value>, out: &mut Vec<u8>) {
    out.extend_from_slice(Value::Object(members).to_string().as_bytes());
    out.push(b'\n');
}

/// Writes numbers of records.
fn count(
    app: &App,
    all: &Search,
    groups: Option<&Groups>,
    name: &str,
    out: &mut Output,
) -> Result<Trailer, QueryError> {
    let field = groups.map(|groups| groups.field.clone());
    // Records whose field has no text are of the same group as those without it.
    let mut empty = 0;
    out.leave_out_trailer();
    let mut grouped = None;
    if let Some(groups) = groups {
        let limit = groups.limit.and_then(|limit| usize::try_from(limit).ok());
        let count_max = limit
            .unwrap_or(usize::MAX)
            .min(cast::to_usize(TOP_VALUES_MAX));
        let values = app
            .engine
            .top_values(&groups.scope, &groups.field, count_max, out);
        let (values, mut trailer) = values?;
        let is_full = values.len() >= count_max;
        for found in values {
            if found.text.is_empty() {
                empty += found.count;
                continue;
            }
            let pairs = [
                (&groups.field, found.text),
                (&name.to_owned(), found.count.to_string()),
            ];
            let pairs = pairs.map(|(name, text)| (name.clone(), Value::from(text)));
            out.append(|chunk| write(pairs.into_iter().collect(), chunk))?;
        }
        if limit.is_none() && is_full {
            trailer.miss(format_args!("there are more than {count_max} groups"));
        }
        grouped = Some(trailer);
    }
    let mut trailer = app.engine.search(all, out)?;
    let count = trailer.rows + empty;
    if groups.is_none() || count > 0 {
        let number = Value::from(count.to_string());
        let group = field.map(|field| (field, Value::from("")));
        let members = group.into_iter().chain([(name.to_owned(), number)]);
        let members: Map<String, Value> = members.collect();
        out.append(|chunk| write(members, chunk))?;
    }
    if let Some(grouped) = grouped.filter(|grouped| grouped.missing_count > 0) {
        let count = grouped.missing_count;
        trailer.miss(format_args!("{count} parts of the groups"));
    }
    Ok(trailer)
}
