//! SQL over HTTP: rows, and a count.

use serde_json::Value;

use super::super::read_trailer;
use super::{Inquiry, Interface, Rows, Told, Trailer, complete, incomplete, parse};
use crate::run::Outcome;

pub(super) const ROWS: Interface = Interface {
    name: "sql",
    is_one_view: true,
    can_be_complete: true,
    ask: rows,
};

pub(super) const COUNT: Interface = Interface {
    name: "sql count",
    is_one_view: true,
    can_be_complete: true,
    ask: count,
};

/// The statement for the rows of records.
pub(super) fn statement(inquiry: &Inquiry<'_>) -> String {
    let (name, range) = (inquiry.name(), &inquiry.range);
    let (start, end) = (range.start, range.end.min(i64::MAX as u64));
    format!(
        "SELECT client, n, v, message FROM logs WHERE client = '{name}' AND n >= {start} AND n < {end}"
    )
}

/// True if an error says that no record has a field of this name. This is an answer that claims to have no rows.
pub(super) fn is_without_column(text: &str) -> bool {
    text.contains("no column client") || text.contains("no column n;")
}

/// Sends a statement; its rows and its trailer.
fn post(inquiry: &Inquiry<'_>, statement: &str) -> Outcome<(Vec<Value>, Trailer)> {
    let headers = [("content-type", "text/plain")];
    let (status, text) = inquiry.send("POST", "/api/v1/sql", &headers, statement)?;
    if status == 503 {
        return Ok((Vec::new(), incomplete(text)));
    }
    if status == 400 && is_without_column(&text) {
        return Ok((Vec::new(), complete()));
    }
    if status != 200 {
        return Err(format!("{statement}: status {status}: {text}"));
    }
    let mut rows = text.lines().map(parse).collect::<Outcome<Vec<Value>>>()?;
    let last = rows.pop().unwrap_or_default();
    match last.get("_trailer") {
        Some(trailer) => Ok((rows, read_trailer(trailer))),
        None => Err(format!("{statement}: no trailer")),
    }
}

fn rows(inquiry: &mut Inquiry<'_>) -> Told {
    let (found, trailer) = post(inquiry, &statement(inquiry))?;
    let mut rows = Rows::default();
    for row in &found {
        rows.add_object(inquiry, row, "message")?;
    }
    rows.answer(trailer)
}

fn count(inquiry: &mut Inquiry<'_>) -> Told {
    let name = inquiry.name();
    let statement = format!("SELECT count(*) AS n FROM logs WHERE client = '{name}'");
    let (rows, trailer) = post(inquiry, &statement)?;
    match rows.first().and_then(|row| row["n"].as_u64()) {
        Some(count) => inquiry.count(count, trailer),
        // No record has a field of this name, or the node refuses to give an incomplete answer.
        None => inquiry.count(0, trailer),
    }
}
