//! What the commands that print tables have in common.

use std::io::Write;

use super::{Exit, Failure};
use logpond_client::{Answer, Item, Trailer, exact};
use logpond_host::terminal::{Out, note};

/// Most lines of a table that are held to be aligned.
const ROWS_MAX: usize = 100_000;

/// Reads an answer's lines, parsed as JSON, and its trailer.
pub(super) fn rows(mut answer: Answer) -> Result<(Vec<serde_json::Value>, Trailer), Failure> {
    let mut rows = Vec::new();
    loop {
        match answer.next_item()? {
            Item::Row(line) if rows.len() < ROWS_MAX => rows.push(exact::from_slice(line)?),
            Item::Notice(notice) => note(&notice),
            Item::Row(_) | Item::Gap | Item::Progress(_) | Item::Position(_) => {}
            Item::Trailer(trailer) => return Ok((rows, trailer)),
        }
    }
}

/// Prints an answer's lines as they are; gives how many, and the trailer.
pub(super) fn print_lines(mut answer: Answer) -> Result<(u64, Trailer), Failure> {
    let mut out = Out::of_text();
    let mut count = 0;
    loop {
        match answer.next_item()? {
            Item::Row(line) => {
                out.write_all(line)?;
                out.write_all(b"\n")?;
                count += 1;
            }
            Item::Notice(notice) => note(&notice),
            Item::Gap | Item::Progress(_) | Item::Position(_) => {}
            Item::Trailer(trailer) => {
                out.finish()?;
                return Ok((count, trailer));
            }
        }
    }
}

/// Prints bytes; on a terminal, what it may be sent of them.
pub(super) fn print(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = Out::of_text();
    out.write_all(bytes)?;
    Ok(out.finish()?)
}

/// Says on standard error that there is `none`, and when the newest record was.
pub(super) fn note_nothing(none: &str, newest: Option<&str>) {
    note(&match newest {
        Some(newest) => format!("{none}; the newest record is of {newest}"),
        None => format!("{none}; there are none at all"),
    });
}

/// Says on standard error what an answer lacks: what could not be read, and what is lost for good. Gives
/// the exit code if it lacks anything.
pub(super) fn lacks(trailer: &Trailer) -> Option<Exit> {
    if !trailer.complete {
        note("logpond: the answer is not complete");
        for missing in &trailer.missing {
            match missing.as_str() {
                Some(text) => note(&format!("  missing: {text}")),
                None => note(&format!("  missing: {missing}")),
            }
        }
    }
    if !trailer.lost.is_empty() {
        note("logpond: records are lost for good, since their node was given up");
        for lost in &trailer.lost {
            note(&format!("  lost: {lost}"));
        }
    }
    let has_all = trailer.complete && trailer.lost.is_empty();
    (!has_all).then_some(Exit::Incomplete)
}

/// The exit code of a table, after saying what it lacks; `none` says that it is empty.
pub(super) fn exit(is_empty: bool, trailer: &Trailer, none: &str) -> Exit {
    if let Some(lacking) = lacks(trailer) {
        return lacking;
    }
    if !is_empty {
        return Exit::Found;
    }
    note_nothing(none, trailer.newest.as_deref());
    Exit::None
}

/// A member of a row as text: strings without quotes, nothing for what is missing.
pub(super) fn text(row: &serde_json::Value, name: &str) -> String {
    match &row[name] {
        serde_json::Value::Null => String::new(),
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A member of a row as a count.
pub(super) fn count(row: &serde_json::Value, name: &str) -> u64 {
    row[name].as_u64().unwrap_or(0)
}
