//! `GET|POST /loki/api/v1/detected_fields` and `…/detected_field/NAME/values`: what the newest lines of a
//! query have for fields, by `json` or `logfmt`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hyper::Response;
use logpond_record::cast;
use logpond_search::Filter;
use logpond_search::label;
use logpond_search::logql::{self, LogQuery, Query, bytes_of, duration_ns, number_of};
use logpond_search::pipeline::{Labels, Origin, Pipeline, Work};
use serde_json::{Value, json};

use super::reply::{failed, gathered, write_warnings};
use super::{LokiRequest, selector, times};
use crate::App;
use crate::body::Body;
use crate::error::ApiError;
use crate::params;
use logpond_engine::query::{Direction, Line, LineQuery, Output};

/// Lines that are looked at where the question does not say how many.
const LINES_DEFAULT: u64 = 1000;

/// The most lines that are looked at: the newest ones show which fields there are.
const LINES_MAX: u64 = 10_000;

/// Fields or values of an answer where the question does not say how many.
const LIMIT_DEFAULT: u64 = 1000;

/// The most values of a field that are told apart.
const VALUES_MAX: usize = cast::to_usize(LINES_MAX);

/// From how many values on a label of the lines that are looked at may be an identifier.
const IDENTIFIERS_MIN: usize = 100;

/// Lines that there are at most for each value of an identifier, on average.
const LINES_PER_IDENTIFIER_MAX: usize = 5;

/// What the name of a label that a stream has too ends with where a parser finds it.
const DUPLICATE_SUFFIX: &str = "_extracted";

/// How deep members of objects are named.
const DEPTH_MAX: usize = 32;

/// What a field was found by.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum FoundBy {
    Json,
    Logfmt,
}

impl FoundBy {
    fn as_str(self) -> &'static str {
        match self {
            FoundBy::Json => "json",
            FoundBy::Logfmt => "logfmt",
        }
    }
}

/// What values of a field are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Int,
    Float,
    Boolean,
    Duration,
    Bytes,
    String,
}

/// How Go writes truth values, which Loki reads; `1` and `0` are numbers before.
const TRUTH: [&str; 10] = [
    "t", "T", "true", "True", "TRUE", "f", "F", "false", "False", "FALSE",
];

impl Kind {
    fn of(text: &str) -> Kind {
        match text {
            text if text.parse::<i64>().is_ok() => Kind::Int,
            text if number_of(text).is_some() => Kind::Float,
            text if TRUTH.contains(&text) => Kind::Boolean,
            text if duration_ns(text).is_some() => Kind::Duration,
            text if bytes_of(text).is_some() => Kind::Bytes,
            _ => Kind::String,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Kind::Int => "int",
            Kind::Float => "float",
            Kind::Boolean => "boolean",
            Kind::Duration => "duration",
            Kind::Bytes => "bytes",
            Kind::String => "string",
        }
    }
}

/// How many values are of which kind.
#[derive(Default)]
struct Kinds([u64; 6]);

impl Kinds {
    /// Counts a value; one without text is of no kind.
    fn count(&mut self, text: &str) {
        if !text.is_empty() {
            self.0[Kind::of(text) as usize] += 1;
        }
    }

    /// What most values are, so that an odd one changes nothing: Loki says what a single one is that it
    /// comes across. Numbers are counted together; of as many, they are texts.
    fn most(&self) -> Kind {
        let count = |kind: Kind| self.0[kind as usize];
        let number = match count(Kind::Float) {
            0 => Kind::Int,
            _ => Kind::Float,
        };
        let groups = [
            (number, count(Kind::Int) + count(Kind::Float)),
            (Kind::Boolean, count(Kind::Boolean)),
            (Kind::Duration, count(Kind::Duration)),
            (Kind::Bytes, count(Kind::Bytes)),
            (Kind::String, count(Kind::String)),
        ];
        let most = groups.into_iter().max_by_key(|(_, count)| *count);
        most.filter(|(_, count)| *count > 0)
            .map_or(Kind::String, |(kind, _)| kind)
    }
}

/// A field of lines.
#[derive(Default)]
struct Field {
    kinds: Kinds,
    found_by: BTreeSet<FoundBy>,
    values: BTreeSet<Box<str>>,
    /// The names that lead to it in a line of JSON.
    path: Vec<String>,
}

type Fields = BTreeMap<Box<str>, Field>;

/// Lists the fields.
pub(super) async fn answer(
    app: &Arc<App>,
    request: LokiRequest,
) -> Result<Response<Body>, ApiError> {
    let (limit, query) = (limit(&request)?, query(&request)?);
    let gather = move |app: &App, out: &mut Output| {
        let found = app.engine.lines(&query, out).map_err(failed)?;
        Ok((fields(found.lines)?, found.trailer))
    };
    gathered(
        app,
        &request.headers,
        gather,
        move |fields, warnings, to| {
            let shown = fields.iter().take(cast::to_usize(limit));
            let shown = shown.map(|(name, field)| {
                let parsers: Vec<_> = field.found_by.iter().map(|p| p.as_str()).collect();
                let mut row = json!({
                    "label": name,
                    "type": field.kinds.most().as_str(),
                    "cardinality": field.values.len(),
                    "parsers": if parsers.is_empty() { Value::Null } else { json!(parsers) },
                });
                if !field.path.is_empty() {
                    row["jsonPath"] = json!(field.path);
                }
                row
            });
            let shown: Vec<Value> = shown.collect();
            write!(to, "{{\"fields\":{},\"limit\":{limit}", Value::from(shown))?;
            write_warnings(warnings, to)?;
            to.write_all(b"}\n")
        },
    )
    .await
}

/// Lists the values of a field.
pub(super) async fn values(
    app: &Arc<App>,
    request: LokiRequest,
    names: &[&str],
) -> Result<Response<Body>, ApiError> {
    let name = params::of_path(names.first().copied().unwrap_or_default())?;
    let (limit, query) = (limit(&request)?, query(&request)?);
    let gather = move |app: &App, out: &mut Output| {
        let found = app.engine.lines(&query, out).map_err(failed)?;
        let field = fields(found.lines)?.remove(&*name);
        Ok((field, found.trailer))
    };
    gathered(
        app,
        &request.headers,
        gather,
        move |field: Option<Field>, warnings, to| {
            let values = field.map(|field| field.values).unwrap_or_default();
            let values: Vec<_> = values.iter().take(cast::to_usize(limit)).collect();
            write!(to, "{{\"values\":{},\"limit\":{limit}", json!(values))?;
            write_warnings(warnings, to)?;
            to.write_all(b"}\n")
        },
    )
    .await
}

fn count(request: &LokiRequest, name: &str) -> Result<Option<u64>, ApiError> {
    match request.text(name).map(str::parse::<u64>) {
        None => Ok(None),
        Some(Ok(count)) if count > 0 => Ok(Some(count)),
        Some(_) => Err(ApiError::bad_request(format!(
            "{name} must be a positive value"
        ))),
    }
}

fn limit(request: &LokiRequest) -> Result<u64, ApiError> {
    let limit = match count(request, "field_limit")? {
        None => count(request, "limit")?,
        limit => limit,
    };
    Ok(limit.unwrap_or(LIMIT_DEFAULT))
}

fn query(request: &LokiRequest) -> Result<LineQuery, ApiError> {
    let text = request.text("query").unwrap_or("{}");
    let Query::Log(log) = logql::parse(text).map_err(selector::refused)? else {
        return Err(ApiError::bad_request(
            "fields are those of lines: leave the functions out",
        ));
    };
    Ok(LineQuery {
        log,
        range: times::range(request)?,
        limit: count(request, "line_limit")?
            .unwrap_or(LINES_DEFAULT)
            .min(LINES_MAX),
        direction: Direction::Backward,
        behind: None,
        interval_ns: 0,
        now: request.now,
        only: Filter::All,
    })
}

/// The stages that take a line of this form apart.
fn stages(text: &str) -> Result<Pipeline, ApiError> {
    let log: LogQuery = logql::parse_log(text).map_err(selector::refused)?;
    Pipeline::new(&log.stages, 0).map_err(ApiError::bad_request)
}

/// The fields of lines: what stands beside them and tells no streams apart, and what parsers find in them.
fn fields(lines: Vec<Line>) -> Result<Fields, ApiError> {
    let (json, logfmt) = (stages("{} | json")?, stages("{} | logfmt")?);
    let mut fields = Fields::new();
    let mut labels = Fields::new();
    let count = lines.len();
    let mut work = Work::new();
    for line in lines {
        work.labels.clear();
        for (name, value, origin) in &line.labels {
            match *origin {
                Origin::Stream => {
                    add(&mut labels, name, value, None);
                    // What a parser finds under its name has another one.
                    work.labels.add_base(Origin::Stream, name, value);
                }
                // Of errors, and of what is no one's but Loki's.
                _ if name.starts_with("__") => {}
                _ => _ = add(&mut fields, name, value, None),
            }
        }
        let members = members(&line.line);
        let (found_by, pipeline) = if members.is_some() {
            (FoundBy::Json, &json)
        } else {
            (FoundBy::Logfmt, &logfmt)
        };
        work.line = line.line.into();
        pipeline.run(&mut work);
        let is_usable = work.labels.error().is_none() || found_by == FoundBy::Json;
        for (name, value) in parsed(&work.labels).filter(|_| is_usable) {
            let field = add(&mut fields, name, value, Some(found_by));
            if field.path.is_empty()
                && let Some(path) = members.as_ref().and_then(|members| path_of(name, members))
            {
                field.path.clone_from(path);
            }
        }
    }
    labels.retain(|_, label| is_identifier(label, count));
    fields.extend(labels);
    Ok(fields)
}

/// Whether a label of so many lines tells them apart rather than their streams, as the id of a trace does.
fn is_identifier(label: &Field, lines: usize) -> bool {
    label.values.len() >= IDENTIFIERS_MIN && label.values.len() * LINES_PER_IDENTIFIER_MAX >= lines
}

/// The names that lead to what a label has from a line of JSON.
fn path_of<'m>(name: &str, members: &'m BTreeMap<String, Vec<String>>) -> Option<&'m Vec<String>> {
    let plain = || name.strip_suffix(DUPLICATE_SUFFIX);
    members.get(name).or_else(|| members.get(plain()?))
}

fn parsed(labels: &Labels) -> impl Iterator<Item = (&str, &str)> {
    let labels = labels.iter();
    let labels = labels.filter(|(_, _, origin)| *origin == Origin::Parsed);
    labels.map(|(name, value, _)| (name, value))
}

fn add<'f>(
    fields: &'f mut Fields,
    name: &str,
    value: &str,
    found_by: Option<FoundBy>,
) -> &'f mut Field {
    let field: &mut Field = fields.entry(name.into()).or_default();
    field.kinds.count(value);
    field.found_by.extend(found_by);
    if field.values.len() < VALUES_MAX {
        field.values.insert(value.into());
    }
    field
}

/// The members of a line of JSON, nested ones too: by the labels that they become, the names that lead
/// there.
fn members(line: &[u8]) -> Option<BTreeMap<String, Vec<String>>> {
    let object: serde_json::Map<String, Value> = logpond_client::exact::from_slice(line).ok()?;
    let mut members = BTreeMap::new();
    note(&object, &mut Vec::new(), &mut members);
    Some(members)
}

fn note(
    object: &serde_json::Map<String, Value>,
    path: &mut Vec<String>,
    members: &mut BTreeMap<String, Vec<String>>,
) {
    for (name, value) in object {
        path.push(name.clone());
        match value {
            Value::Object(inner) if path.len() < DEPTH_MAX => note(inner, path, members),
            _ => {
                let label = label::sanitised(&path.join("_")).into_owned();
                members.entry(label).or_insert_with(|| path.clone());
            }
        }
        path.pop();
    }
}

#[cfg(test)]
mod tests {
    use logpond_record::{Id, Timestamp};

    use super::*;
    use logpond_engine::query::Key;

    #[test]
    fn kinds_are_those_of_most_values() {
        let table: [(&[&str], Kind); 13] = [
            (&["1", "-20"], Kind::Int),
            (&["1", "2.5", "3"], Kind::Float),
            (&["1", "2.5", "x", "y"], Kind::String),
            (&["true", "F", "TRUE"], Kind::Boolean),
            (&["5ms", "1h30m"], Kind::Duration),
            (&["5KB", "42MiB"], Kind::Bytes),
            (&["1", "x"], Kind::String),
            (&["5ms", "7", "9ms"], Kind::Duration),
            (&["7", "8", "-", "9"], Kind::Int),
            (&["0x1p4", "Inf"], Kind::Float),
            (&["", "", "7"], Kind::Int),
            (&["x"], Kind::String),
            (&[""], Kind::String),
        ];
        for (values, expected) in table {
            let mut kinds = Kinds::default();
            values.iter().for_each(|value| kinds.count(value));
            assert_eq!(kinds.most(), expected, "{values:?}");
        }
    }

    #[test]
    fn labels_that_tell_lines_apart_are_fields() {
        let line = |number: usize| Line {
            key: Key {
                time: Timestamp(0),
                id: Id(0),
            },
            line: "plain words".into(),
            labels: [("pod", 50), ("trace", 300), ("zone", 2)]
                .map(|(name, values)| {
                    let value = format!("{}", number % values);
                    (name.into(), value.into(), Origin::Stream)
                })
                .into(),
        };
        let lines = (0..1000).map(line).collect();
        let fields = fields(lines).unwrap_or_else(|_| panic!("no fields"));
        let shown = fields
            .iter()
            .map(|(name, field)| (&**name, field.values.len()));
        assert_eq!(shown.collect::<Vec<_>>(), [("trace", 300)]);
    }

    #[test]
    fn fields_are_found_in_lines() {
        let line = |text: &str| Line {
            key: Key {
                time: Timestamp(0),
                id: Id(0),
            },
            line: text.into(),
            labels: vec![
                ("app".into(), "a".into(), Origin::Stream),
                ("detected_level".into(), "info".into(), Origin::Metadata),
            ],
        };
        let lines = [
            "{\"app\":\"b\",\"http\":{\"code\":200,\"note\":\"\"}}",
            "took=5ms n=1 empty=",
            "plain words",
            "took=7ms",
        ];
        let fields = fields(lines.map(line).into()).unwrap_or_else(|_| panic!("no fields"));
        let shown: Vec<_> = fields
            .iter()
            .map(|(name, field)| {
                let found_by: Vec<_> = field.found_by.iter().map(|f| f.as_str()).collect();
                let (kind, count) = (field.kinds.most().as_str(), field.values.len());
                format!("{name} {kind} {count} {found_by:?} {:?}", field.path)
            })
            .collect();
        let expected = [
            r#"app_extracted string 1 ["json"] ["app"]"#,
            r#"detected_level string 1 [] []"#,
            r#"http_code int 1 ["json"] ["http", "code"]"#,
            r#"http_note string 1 ["json"] ["http", "note"]"#,
            r#"n int 1 ["logfmt"] []"#,
            r#"took duration 2 ["logfmt"] []"#,
        ];
        assert_eq!(shown, expected);
    }
}
