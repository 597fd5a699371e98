//! `context`: the records around a record.

use jiff::{Span, Timestamp};
use serde_json::Value;

use super::super::answer::Rows;
use super::super::arguments::{Argument, QUERY, number, required};
use super::super::report::{Report, cursor_of};
use super::{Call, Tool, ToolError, parameter};

const BEFORE: Argument = number("before", (10, 0, 200), "Records before it.");
const AFTER: Argument = number("after", (10, 0, 200), "Records after it.");
const MINUTES: Argument = number(
    "minutes",
    (60, 1, 10_080),
    "Records are looked for at most so many minutes before and after it.",
);

/// Records of the same nanosecond among which the record is looked for.
const SAME_TIME_MAX: u64 = 1_000;

pub(super) const TOOL: Tool = Tool {
    name: "context",
    title: "Show the context of a record",
    help: "Shows the records right before and after a record, in the order of time. Give a query such as \
           `host=web1` to stay with one source.",
    arguments: &[
        required("time", "`_time` of the record."),
        required("id", "`_id` of the record."),
        QUERY,
        BEFORE,
        AFTER,
        MINUTES,
    ],
    run: |call| Box::pin(run(call)),
};

async fn run(call: Call) -> Result<Report, ToolError> {
    let (time, id) = (call.arguments.text("time"), call.arguments.text("id"));
    let (time, id) = (time.unwrap_or_default(), id.unwrap_or_default());
    let (from, next, to) = around(time, call.arguments.number(&MINUTES)).ok_or_else(|| {
        let message = "the argument 'time' is a time such as 2026-11-21T10:00:00.123456789Z";
        ToolError::Arguments(message.to_owned())
    })?;
    let mut here = call.rows("/api/v1/query", here(time, &next)).await?;
    here.rows.retain(|row| row["_id"] == id);
    let Some(record) = here.rows.first().cloned() else {
        let mut report = Report::of(here);
        report.facts.clear();
        report
            .facts
            .push("there is no record of this time and id".to_owned());
        return Ok(report);
    };
    let cursor = cursor_of(&record).unwrap_or_default();
    let part = |direction: &'static str, limit: &Argument, (from, to): (String, String)| {
        let mut parameters = call.parameters(&[("query", "q")]);
        let limit = call.arguments.number(limit);
        parameters.extend([
            parameter("from", from),
            parameter("to", to),
            parameter("direction", direction),
            parameter("cursor", &cursor),
            parameter("limit", limit),
        ]);
        let call = call.clone();
        async move {
            if limit == 0 {
                return Ok(None);
            }
            let rows = call.rows("/api/v1/query", parameters).await;
            rows.map(Some)
        }
    };
    let before = part("backward", &BEFORE, (from, next)).await?;
    let after = part("forward", &AFTER, (time.to_owned(), to)).await?;
    Ok(joined(before, (here, record), after))
}

/// The beginning, the nanosecond after the record, and the end.
fn around(time: &str, minutes: u64) -> Option<(String, String, String)> {
    let time: Timestamp = time.parse().ok()?;
    let span = Span::new().try_minutes(i64::try_from(minutes).ok()?).ok()?;
    let next = time.checked_add(Span::new().nanoseconds(1)).ok()?;
    let from = time.checked_sub(span).ok()?;
    let to = time.checked_add(span).ok()?;
    Some((from.to_string(), next.to_string(), to.to_string()))
}

/// The parameters of all records of the time.
fn here(time: &str, next: &str) -> Vec<(String, String)> {
    vec![
        parameter("from", time),
        parameter("to", next),
        parameter("limit", SAME_TIME_MAX),
    ]
}

fn joined(before: Option<Rows>, (here, record): (Rows, Value), after: Option<Rows>) -> Report {
    let mut report = Report::complete(Vec::new());
    report.lack(here.trailer.as_ref());
    let mut rows = Vec::new();
    if let Some(before) = before {
        report.lack(before.trailer.as_ref());
        report
            .facts
            .push(format!("before: {} records", before.rows.len()));
        rows.extend(before.rows.into_iter().rev());
    }
    rows.push(record);
    if let Some(after) = after {
        report.lack(after.trailer.as_ref());
        report
            .facts
            .push(format!("after: {} records", after.rows.len()));
        rows.extend(after.rows);
    }
    report.rows = rows;
    report
}
