//! PostgreSQL's `csvlog` (PostgreSQL, Error Reporting and Logging, "Using CSV-Format Log Output").
//!
//! ```text
//! 2026-03-02 00:00:06.123 UTC,"user","db",77,"10.0.0.7:51234",65e0f3b1.4d,3,"SELECT",…,ERROR,42P01,"message",…
//! ```
//!
//! The fields have the names that the server gives them in `jsonlog`, so both read the same. Values in quotes have
//! `""` for a quote. A value that is missing is no field. Versions before 14 have fewer columns at the end.

use std::borrow::Cow;

use logpond_record::{Message, TimeSource, Value};
use memchr::memchr;

use super::access::canonical_int;
use super::access_format::Times;
use super::sketch::Sketch;

/// Columns behind the time. Names that end in `:i` are whole numbers.
const COLUMNS: [&str; 25] = [
    "user",
    "dbname",
    "pid:i",
    "remote_host",
    "session_id",
    "line_num:i",
    "ps",
    "session_start",
    "vxid",
    "txid:i",
    "error_severity",
    "state_code",
    MESSAGE,
    "detail",
    "hint",
    "internal_query",
    "internal_position:i",
    "context",
    "statement",
    "cursor_position:i",
    "location",
    "application_name",
    "backend_type",
    "leader_pid:i",
    "query_id:i",
];

/// The same of Greenplum and its descendants. Names that end in `:p` are whole numbers behind a letter.
const GREENPLUM: [&str; 29] = [
    "user",
    "dbname",
    "pid:p",
    "thread_id",
    "remote_host",
    "remote_port:i",
    "session_start",
    "txid:i",
    "gp_session_id",
    "gp_command_count",
    "gp_segment",
    "slice_id",
    "distributed_xid",
    "local_xid",
    "sub_xid",
    "error_severity",
    "state_code",
    MESSAGE,
    "detail",
    "hint",
    "internal_query",
    "internal_position:i",
    "context",
    "statement",
    "cursor_position:i",
    "func_name",
    "file_name",
    "file_line_num:i",
    "stack_trace",
];

/// The column that is the record's message.
const MESSAGE: &str = "message";

/// Columns that every version has.
const COLUMNS_MIN: usize = 22;

/// The most bytes of a time: with a fraction and the name of a zone.
const TIME_BYTES_MAX: usize = 40;

/// True if a line may be one: a date and a time that a comma follows, not a blank.
pub(crate) fn is_candidate(line: &[u8]) -> bool {
    let is_date = matches!(
        line,
        [
            b'0'..=b'9',
            _,
            _,
            _,
            b'-',
            _,
            _,
            b'-',
            _,
            _,
            b' ',
            _,
            _,
            b':',
            ..
        ]
    );
    is_date && {
        let head = &line[..line.len().min(TIME_BYTES_MAX)];
        let comma = memchr(b',', head);
        comma.is_some_and(|comma| comma >= 19 && matches!(line.get(comma + 1), Some(b'"' | b',')))
    }
}

/// Draws a line; `None` if it is none, and the sketch is then spoilt.
pub(crate) fn draw<'a>(line: &'a str, times: Times<'_>, sketch: &mut Sketch<'_, 'a>) -> Option<()> {
    let (line, carriage_return) = match line.strip_suffix('\r') {
        Some(line) => (line, "\r"),
        None => (line, ""),
    };
    let (time, mut rest) = line.split_once(',')?;
    match times.reader.whole(time.as_bytes(), times.received, true) {
        Some(written) => sketch.time(&written, time.as_bytes(), TimeSource::Line),
        None => sketch.text("timestamp:t", time),
    }
    let columns = if is_greenplum(rest) {
        &GREENPLUM[..]
    } else {
        &COLUMNS[..]
    };
    let mut columns = columns.iter().enumerate();
    let mut is_last = false;
    // Each round takes a column, and there are only so many.
    while !is_last {
        sketch.literal(",");
        let (at, column) = columns.next()?;
        let (value, after) = take(rest)?;
        draw_value(column, &value, sketch);
        match after.strip_prefix(',') {
            Some(after) => rest = after,
            None if after.is_empty() && at + 1 >= COLUMNS_MIN => is_last = true,
            None => return None,
        }
    }
    sketch.literal(carriage_return);
    Some(())
}

/// True for values whose third one is the number of a process behind its letter, and the fourth that of a thread.
fn is_greenplum(values: &str) -> bool {
    let mut values = values.splitn(5, ',').skip(2);
    let starts = ["p", "th"];
    starts.into_iter().all(|start| {
        let number = values.next().and_then(|value| value.strip_prefix(start));
        number.is_some_and(|digits| {
            digits
                .trim_start_matches('-')
                .bytes()
                .all(|b| b.is_ascii_digit())
        })
    })
}

/// A value of a line.
struct Column<'a> {
    is_quoted: bool,
    /// As it is written, without the quotes around it.
    written: &'a str,
}

/// Takes the value that a text begins with; gives the rest.
fn take(text: &str) -> Option<(Column<'_>, &str)> {
    let Some(inside) = text.strip_prefix('"') else {
        let length = memchr(b',', text.as_bytes()).unwrap_or(text.len());
        let (written, rest) = text.split_at(length);
        let is_quoted = false;
        return Some((Column { is_quoted, written }, rest));
    };
    let bytes = inside.as_bytes();
    let mut at = 0;
    // Each round passes a quote.
    loop {
        at += memchr(b'"', &bytes[at..])?;
        if bytes.get(at + 1) != Some(&b'"') {
            break;
        }
        at += 2;
    }
    let column = Column {
        is_quoted: true,
        written: &inside[..at],
    };
    Some((column, &inside[at + 1..]))
}

fn draw_value<'a>(name: &str, column: &Column<'a>, sketch: &mut Sketch<'_, 'a>) {
    let written = column.written;
    let quote = if column.is_quoted { "\"" } else { "" };
    sketch.literal(quote);
    let is_doubled = column.is_quoted && memchr(b'"', written.as_bytes()).is_some();
    let value = || {
        if is_doubled {
            Cow::Owned(written.replace("\"\"", "\""))
        } else {
            Cow::Borrowed(written)
        }
    };
    if let Some(name) = name.strip_suffix(":p")
        && let Some(number) = written.strip_prefix('p').and_then(canonical_int)
    {
        sketch.literal("p");
        return sketch.prefixed_slot("", name, "i", Value::Int(number));
    }
    let name = name.strip_suffix(":p").unwrap_or(name);
    match name.strip_suffix(":i") {
        _ if written.is_empty() => {}
        Some(name) => match canonical_int(written) {
            Some(number) => sketch.prefixed_slot("", name, "i", Value::Int(number)),
            None => sketch.prefixed_slot("", name, "t", Value::Str(value())),
        },
        None if name == MESSAGE => {
            sketch.message(written.as_bytes());
            sketch.parts.message = Message::Part(Value::Str(value()));
        }
        None => sketch.prefixed_slot("", name, "t", Value::Str(value())),
    }
    if is_doubled {
        sketch.fix(written.as_bytes());
    }
    sketch.literal(quote);
}
