//! `POST /query`: series and tables of all targets of a panel.

use serde_json::{Value as Json, json};

use super::asked::QueryRequest;
use super::target::Target;
use crate::App;
use crate::coding::AnswerEncoder;
use crate::error::{ApiError, Kind};
use crate::logql::found::{Numbers, QueryResult, each_point, name_of};
use crate::logql::run::{self, QueryParameters};
use crate::logql::table::{Cell, Column, Kind as ColumnKind, columns, each_row};
use logpond_engine::query::{Cancellation, Output};
use logpond_record::write_json_string;

/// The most targets of a panel; its editor has a letter for each of the first 26.
const TARGETS_MAX: usize = 64;

/// The most numbers and lines of all targets together: some hundred megabytes as text, and more than a
/// browser can show.
const SIZE_MAX: usize = 5_000_000;

/// The result of a target.
pub(super) struct TargetResult {
    found: QueryResult,
    id: String,
    /// How a series without labels is called.
    name: String,
    legend: String,
    warnings: Vec<String>,
}

/// Answers all targets.
pub(super) fn answer(
    app: &App,
    request: &QueryRequest,
    out: &mut Output,
) -> Result<Vec<TargetResult>, ApiError> {
    let targets = request.body["targets"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    if targets.len() > TARGETS_MAX {
        let message = format!("there are more than {TARGETS_MAX} targets");
        return Err(ApiError::bad_request(message));
    }
    let mut size = 0usize;
    let mut answers = Vec::new();
    for target in targets {
        let Some(target) = Target::read(target)? else {
            continue;
        };
        let of_target = |mut error: ApiError| {
            if !target.id.is_empty() {
                error.message = format!("{}: {}", target.id, error.message);
            }
            error
        };
        let answered = one(app, request, &target, out).map_err(of_target)?;
        size = size.saturating_add(answered.found.size());
        if size > SIZE_MAX {
            let message = format!(
                "the answer has more than {SIZE_MAX} points or lines: aggregate by fewer labels, or \
                 take a longer interval"
            );
            return Err(ApiError::new(Kind::BadRequest, message));
        }
        answers.push(answered);
    }
    Ok(answers)
}

fn one(
    app: &App,
    request: &QueryRequest,
    target: &Target<'_>,
    out: &mut Output,
) -> Result<TargetResult, ApiError> {
    let resolved = target.resolve(app, request)?;
    let wanted = QueryParameters {
        range: request.range,
        step_ns: request.step_ns,
        format: resolved.format,
        limit: target.limit(),
        direction: target.direction(),
        behind: None,
        now: request.now,
    };
    let (found, trailer) = run::run(&*app.engine, resolved.query, &wanted, out)?;
    app.metrics.query_bytes.add(trailer.bytes_scanned);
    let mut warnings = run::absent(&trailer);
    warnings.extend_from_slice(found.warnings());
    Ok(TargetResult {
        found,
        id: target.id.to_owned(),
        name: target.text.to_owned(),
        legend: resolved.legend,
        warnings,
    })
}

/// Writes the answers of all targets as one list.
pub(super) fn write(
    answers: &[TargetResult],
    out: &mut AnswerEncoder<'_>,
) -> Result<(), Cancellation> {
    let mut is_first = true;
    out.append(|chunk| chunk.push(b'['))?;
    for answered in answers {
        let mut begin = |out: &mut AnswerEncoder<'_>| {
            let comma = !std::mem::replace(&mut is_first, false);
            out.append(|chunk| {
                if comma {
                    chunk.push(b',');
                }
                chunk.push(b'{');
                write_head(answered, chunk);
            })
        };
        match &answered.found {
            QueryResult::Numbers {
                numbers:
                    Numbers::Series {
                        series,
                        times,
                        is_additive,
                    },
                ..
            } => {
                for one in series {
                    begin(out)?;
                    let name = name_of(&one.labels, &answered.legend, &answered.name);
                    out.append(|chunk| {
                        chunk.extend_from_slice(b"\"target\":");
                        write_json_string(&name, chunk);
                        chunk.extend_from_slice(b",\"datapoints\":[");
                    })?;
                    let mut comma = "";
                    each_point(one, times, *is_additive, |at, value| {
                        let (ms, before) = (at.unix_ms(), comma);
                        comma = ",";
                        out.append(|chunk| {
                            let text = match value.filter(|value| value.is_finite()) {
                                Some(value) => format!("{before}[{value},{ms}]"),
                                None => format!("{before}[null,{ms}]"),
                            };
                            chunk.extend_from_slice(text.as_bytes());
                        })
                    })?;
                    out.append(|chunk| chunk.extend_from_slice(b"]}"))?;
                }
            }
            found => {
                begin(out)?;
                write_table(found, out)?;
            }
        }
    }
    out.append(|chunk| chunk.extend_from_slice(b"]\n"))
}

/// Which target it is of, and what users should know.
fn write_head(answered: &TargetResult, out: &mut Vec<u8>) {
    if !answered.id.is_empty() {
        out.extend_from_slice(b"\"refId\":");
        write_json_string(&answered.id, out);
        out.push(b',');
    }
    if !answered.warnings.is_empty() {
        let notice = |text: &String| json!({ "severity": "warning", "text": text });
        let notices: Vec<Json> = answered.warnings.iter().map(notice).collect();
        let meta = json!({ "notices": notices });
        out.extend_from_slice(format!("\"meta\":{meta},").as_bytes());
    }
}

fn write_table(found: &QueryResult, out: &mut AnswerEncoder<'_>) -> Result<(), Cancellation> {
    let columns = columns(found, false);
    let described: Vec<Json> = columns.iter().map(described).collect();
    let described = Json::from(described);
    out.append(|chunk| {
        let text = format!("\"type\":\"table\",\"columns\":{described},\"rows\":[");
        chunk.extend_from_slice(text.as_bytes());
    })?;
    let mut is_first = true;
    each_row(found, &columns, |cells| {
        let comma = !std::mem::replace(&mut is_first, false);
        out.append(|chunk| {
            if comma {
                chunk.push(b',');
            }
            for (at, cell) in cells.iter().enumerate() {
                chunk.push(if at == 0 { b'[' } else { b',' });
                match cell {
                    Cell::Nothing => chunk.extend_from_slice(b"null"),
                    Cell::Text(text) => write_json_string(text, chunk),
                    Cell::Time(time) => {
                        chunk.extend_from_slice(time.unix_ms().to_string().as_bytes());
                    }
                    Cell::Number(number) => {
                        chunk.extend_from_slice(number.to_string().as_bytes());
                    }
                }
            }
            chunk.push(b']');
        })
    })?;
    out.append(|chunk| chunk.extend_from_slice(b"]}"))
}

fn described(column: &Column) -> Json {
    let kind = match column.kind {
        ColumnKind::Time => "time",
        ColumnKind::Text => "string",
        ColumnKind::Number => "number",
    };
    json!({ "text": column.name, "type": kind })
}
