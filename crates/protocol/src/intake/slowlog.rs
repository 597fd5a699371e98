//! Slow query logs of MySQL and MariaDB (MySQL Reference Manual, "The Slow Query Log"; MariaDB, "Slow Query Log
//! Overview"), each record with its remarks and its statement.
//!
//! ```text
//! # Time: 2026-03-02T00:00:06.123456Z
//! # User@Host: shop[shop] @ web1 [10.0.0.7]  Id:    77
//! # Query_time: 1.203456  Lock_time: 0.000012 Rows_sent: 1  Rows_examined: 50000
//! SET timestamp=1772409606;
//! select …;
//! ```
//!
//! Fields are `user`, `client`, `query_time`, `lock_time` and so on; what follows the remarks is the message. The
//! time is that of `SET timestamp`, the start or the end of the statement in seconds, unless `# Time` is exact.

use logpond_record::{Assumption, Timestamp, Value};
use memchr::memmem;

use super::logfmt;
use super::sketch::Sketch;
use super::timestamps::TimeReader;

/// Remarks of one record.
const REMARKS_MAX: usize = 12;

/// Values of one remark.
const VALUES_MAX: usize = 32;

/// The longest name of a value.
const NAME_BYTES_MAX: usize = 48;

/// True if a record may be one.
pub(crate) fn is_candidate(record: &[u8]) -> bool {
    record.starts_with(b"# Time: ")
        || record.starts_with(b"# User@Host: ")
        || record.starts_with(b"# Query_time: ")
}

/// Draws a record; gives its time. `None` if it is none, and the sketch is then spoilt.
pub(crate) fn draw<'a>(
    record: &'a str,
    reader: &TimeReader,
    received: Timestamp,
    sketch: &mut Sketch<'_, 'a>,
) -> Option<Option<(Timestamp, Assumption)>> {
    let mut rest = record;
    let mut time = None;
    for _ in 0..REMARKS_MAX {
        let Some(remark) = rest.strip_prefix("# ") else {
            break;
        };
        let length = memchr::memchr(b'\n', remark.as_bytes()).unwrap_or(remark.len());
        let (line, behind) = remark.split_at(length);
        sketch.literal("# ");
        if let Some(text) = line.strip_prefix("Time: ") {
            sketch.literal("Time: ");
            free(b"time", sketch)?;
            sketch.text("time:t", text);
            let written = reader.whole(text.trim().as_bytes(), received, true);
            time = written.map(|written| (written.time, written.form.assumed()));
        } else if let Some(text) = line.strip_prefix("User@Host: ") {
            sketch.literal("User@Host: ");
            account(text, sketch)?;
        } else {
            values(line, sketch)?;
        }
        rest = behind;
        if let Some(after) = rest.strip_prefix('\n') {
            sketch.literal("\n");
            rest = after;
        }
    }
    let seconds = statement_time(rest);
    // A time with a zone is exact to the microsecond.
    let is_exact = time.is_some_and(|(_, assumed)| assumed == Assumption::Nothing);
    if !is_exact && let Some(seconds) = seconds {
        time = Some((seconds, Assumption::Nothing));
    }
    // Without a statement the record is its own message.
    if !rest.is_empty() {
        sketch.message(rest.as_bytes());
    }
    Some(time)
}

/// Draws `shop[shop] @ web1 [10.0.0.7]  Id:    77`.
fn account<'a>(text: &'a str, sketch: &mut Sketch<'_, 'a>) -> Option<()> {
    for name in [&b"user"[..], b"login", b"client"] {
        free(name, sketch)?;
    }
    let (user, rest) = text
        .split_once('[')
        .filter(|(user, _)| !user.contains(' '))?;
    if !user.is_empty() {
        sketch.text("user:t", user);
    }
    sketch.literal("[");
    let (login, rest) = rest.split_once("] @ ")?;
    sketch.text("login:t", login);
    sketch.literal("] @ ");
    let id = memmem::find(rest.as_bytes(), b"Id:").unwrap_or(rest.len());
    let (client, id) = rest.split_at(id);
    let behind = client.trim_start_matches(' ');
    blanks(&client[..client.len() - behind.len()], sketch);
    let name = behind.trim_end_matches(' ');
    // Without a name of the host the address stands in brackets alone.
    let inside = name
        .strip_prefix('[')
        .and_then(|inside| inside.strip_suffix(']'));
    match inside {
        Some(address) => {
            sketch.literal("[");
            sketch.text("client:t", address);
            sketch.literal("]");
        }
        None => sketch.text("client:t", name),
    }
    blanks(&behind[name.len()..], sketch);
    if let Some(number) = id.strip_prefix("Id:") {
        sketch.literal("Id:");
        let digits = number.trim_start_matches(' ');
        blanks(&number[..number.len() - digits.len()], sketch);
        typed("connection_id", digits, sketch)?;
    }
    Some(())
}

/// Draws `Name: value` pairs with blanks between them; `None` if anything else stands there.
fn values<'a>(mut line: &'a str, sketch: &mut Sketch<'_, 'a>) -> Option<()> {
    for _ in 0..VALUES_MAX {
        if line.is_empty() {
            return Some(());
        }
        let (name, rest) = line.split_once(':')?;
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.');
        let is_name = name.len() <= NAME_BYTES_MAX && name.bytes().all(is_part);
        // Names that begin with `_` are the words of intakes.
        if name.is_empty() || name.starts_with('_') || !is_name {
            return None;
        }
        sketch.literal(name);
        sketch.literal(":");
        let value = rest.trim_start_matches(' ');
        blanks(&rest[..rest.len() - value.len()], sketch);
        let length = value.find(' ').unwrap_or(value.len());
        // A value that is missing has the next name where it would be.
        let is_next = value[..length].ends_with(':');
        let (value, rest) = value.split_at(if is_next { 0 } else { length });
        if !value.is_empty() {
            typed(&name.to_ascii_lowercase(), value, sketch)?;
        }
        line = rest.trim_start_matches(' ');
        blanks(&rest[..rest.len() - line.len()], sketch);
    }
    None
}

/// Draws blanks, of which there are few.
fn blanks(text: &str, sketch: &mut Sketch<'_, '_>) {
    debug_assert!(text.bytes().all(|byte| byte == b' '));
    sketch.literal(text);
}

/// `None` if a field has this name already.
fn free(name: &[u8], sketch: &Sketch<'_, '_>) -> Option<()> {
    (!sketch.has_slot(name)).then_some(())
}

fn typed<'a>(name: &str, value: &'a str, sketch: &mut Sketch<'_, 'a>) -> Option<()> {
    free(name.as_bytes(), sketch)?;
    let (read, kind, is_canonical) = logfmt::bare_value(value);
    let (read, kind) = if is_canonical {
        (read, kind)
    } else {
        (Value::Str(value.into()), b't')
    };
    let kind = char::from(kind).to_string();
    sketch.prefixed_slot("", name, &kind, read);
    Some(())
}

/// The seconds of `SET timestamp=…;`, which may stand behind `use database;`.
fn statement_time(statement: &str) -> Option<Timestamp> {
    let lines = statement.split('\n').take(3);
    let mut digits = lines.filter_map(|line| line.strip_prefix("SET timestamp="));
    let digits = digits.next()?.trim_end_matches([';', '\r']);
    let is_number = (9..=10).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
    let seconds: i64 = digits.parse().ok().filter(|_| is_number)?;
    Timestamp::from_seconds(seconds, 0)
}
