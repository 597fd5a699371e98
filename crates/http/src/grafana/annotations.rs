//! `POST /annotations`: lines as marks in a panel.

use serde_json::{Value as Json, json};

use super::asked::QueryRequest;
use super::lookup::Warned;
use crate::App;
use crate::error::ApiError;
use crate::logql::found::QueryResult;
use crate::logql::resolve::Resolver;
use crate::logql::run::{self, QueryParameters};
use logpond_engine::query::{Direction, Line, Output};
use logpond_engine::saved::Format;

/// The most marks: more are a wall.
const MARKS_MAX: u64 = 1_000;

/// The labels of a mark: of what it is.
const TAGS: [&str; 2] = ["service_name", "detected_level"];

/// Marks the newest lines of a query.
pub(super) fn answer(
    app: &App,
    request: &QueryRequest,
    out: &mut Output,
) -> Result<Warned<Json>, ApiError> {
    let annotation = &request.body["annotation"];
    let text = annotation["query"].as_str().unwrap_or_default().trim();
    if text.is_empty() {
        return Err(ApiError::bad_request(
            "'annotation.query' is missing: LogQL for lines, or the name of a saved query",
        ));
    }
    let resolver = Resolver {
        saved: &app.saved,
        window: request.window(),
        filters: &request.filters,
        format: Some(Format::Table),
    };
    let resolved = resolver.resolve(text, |name| request.variable(name))?;
    let wanted = QueryParameters {
        range: request.range,
        step_ns: request.step_ns,
        format: Format::Table,
        limit: MARKS_MAX,
        direction: Direction::Backward,
        behind: None,
        now: request.now,
    };
    let (found, trailer) = run::run(&*app.engine, resolved.query, &wanted, out)?;
    let mut absent = run::absent(&trailer);
    let QueryResult::Lines {
        lines, warnings, ..
    } = found
    else {
        return Err(ApiError::bad_request(
            "marks are lines: leave the functions of the query out",
        ));
    };
    absent.extend(warnings);
    let marks = lines.iter().map(|line| mark(annotation, line)).collect();
    Ok((marks, absent))
}

fn mark(annotation: &Json, line: &Line) -> Json {
    let label = |wanted: &str| {
        let mut labels = line.labels.iter();
        let found = labels.find(|(name, value, _)| **name == *wanted && !value.is_empty());
        found.map(|(_, value, _)| value.to_string())
    };
    let title = label(TAGS[0]).unwrap_or_default();
    let tags: Vec<String> = TAGS.iter().filter_map(|name| label(name)).collect();
    json!({
        "annotation": annotation,
        "time": line.key.time.unix_ms(),
        "title": title,
        "tags": tags,
        "text": String::from_utf8_lossy(&line.line),
    })
}
