//! LogQL: lines of `query_range` in pages by cursor, and a number of `query`.

use serde_json::Value;

use super::{Inquiry, Interface, Row, Rows, Told, Trailer, complete, incomplete, parse};
use crate::e2e::http::encode;
use crate::run::Outcome;

pub(super) const LINES: Interface = Interface {
    name: "logql",
    is_one_view: false,
    can_be_complete: true,
    ask: lines,
};

pub(super) const NUMBER: Interface = Interface {
    name: "logql number",
    is_one_view: true,
    can_be_complete: true,
    ask: number,
};

/// Lines of a page: so few that several pages are needed.
const PAGE_LINES: usize = 170;

/// The end of all ranges, in seconds since 1970: after the time of any clock that is ahead.
const END_S: u64 = 2_000_000_000;

/// Sends a query; its answer, or the reason of a node that refuses to give an incomplete one.
fn get(inquiry: &Inquiry<'_>, target: &str) -> Outcome<Result<Value, String>> {
    let (status, text) = inquiry.send("GET", target, &[], "")?;
    match status {
        200 => parse(&text).map(Ok),
        503 => Ok(Err(text)),
        _ => Err(format!("{target}: status {status}: {text}")),
    }
}

/// The warnings of an answer name what it lacks.
fn trailer(answer: &Value) -> Trailer {
    match answer["warnings"].as_array() {
        Some(warnings) if !warnings.is_empty() => incomplete(answer["warnings"].to_string()),
        _ => complete(),
    }
}

/// The query for the lines of records.
pub(super) fn query(inquiry: &Inquiry<'_>) -> String {
    let (name, range) = (inquiry.name(), &inquiry.range);
    let (start, end) = (range.start, range.end);
    format!("{{client=\"{name}\"}} | n>={start} | n<{end} | v=~\".+\"")
}

/// Adds the lines of streams.
pub(super) fn add_streams(
    inquiry: &Inquiry<'_>,
    rows: &mut Rows,
    streams: &Value,
) -> Outcome<usize> {
    let mut count = 0;
    for stream in streams.as_array().into_iter().flatten() {
        let label = |name: &str| stream["stream"][name].as_str().unwrap_or_default();
        for _ in stream["values"].as_array().into_iter().flatten() {
            count += 1;
            let row = Row {
                client: label("client"),
                number: label("n"),
                value: label("v"),
                message: None,
            };
            rows.add(inquiry, &row)?;
        }
    }
    Ok(count)
}

fn lines(inquiry: &mut Inquiry<'_>) -> Told {
    let mut rows = Rows::default();
    let mut whole = complete();
    let first = format!(
        "/loki/api/v1/query_range?start=0&end={END_S}&limit={PAGE_LINES}&direction=forward&query={}",
        encode(&query(inquiry))
    );
    let mut target = first.clone();
    loop {
        let answer = match get(inquiry, &target)? {
            Ok(answer) => answer,
            Err(why) => return rows.answer(incomplete(why)),
        };
        let page = trailer(&answer);
        if !page.is_complete {
            whole = page;
        }
        add_streams(inquiry, &mut rows, &answer["data"]["result"])?;
        match answer["data"]["cursor"].as_str() {
            Some(cursor) => target = format!("{first}&cursor={}", encode(cursor)),
            None => return rows.answer(whole),
        }
        inquiry.place = (inquiry.whom)();
    }
}

fn number(inquiry: &mut Inquiry<'_>) -> Told {
    let query = format!(
        "sum(count_over_time({{client=\"{}\"}}[{END_S}s]))",
        inquiry.name()
    );
    let target = format!("/loki/api/v1/query?time={END_S}&query={}", encode(&query));
    let answer = match get(inquiry, &target)? {
        Ok(answer) => answer,
        Err(why) => return inquiry.count(0, incomplete(why)),
    };
    let result = answer["data"]["result"].as_array();
    let count = match result.map(Vec::as_slice) {
        Some([]) => 0,
        Some([one]) => {
            let text = one["value"][1].as_str().unwrap_or_default();
            text.parse().map_err(|e| format!("{e}: {answer}"))?
        }
        _ => return Err(format!("a sum is not one number: {answer}")),
    };
    inquiry.count(count, trailer(&answer))
}
