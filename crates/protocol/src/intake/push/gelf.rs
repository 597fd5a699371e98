//! GELF 1.1, the Graylog Extended Log Format: a JSON object for each message.
//!
//! ```text
//! {"version":"1.1","host":"web-1","short_message":"started","level":6,"timestamp":1763805600.5,"_app":"shop"}
//! ```
//!
//! The line is all that the message says in words, so that text is found wherever it stood:
//! `full_message` if that has `short_message` in it, otherwise both, one below the other; then
//! `short_message` is a field as well. `host` becomes the field `hostname`, `level` becomes `severity`
//! (syslog's numbers, 0 to 7), `timestamp` the record's time, and other names lose the one underscore
//! that they begin with, also `_id`, which servers may leave out. Objects are flattened with dots.
//! `version` is not looked at. Source: the GELF specification of Graylog.
//!
//! Libraries deviate from it: times in milliseconds or as text, no `timestamp` but the time among the
//! additional fields, line ends behind `full_message`. All of these are read, too.
//!
//! Invariants: what cannot be a field as it is (a level that is none, a time that is none) is one under
//! its own name; where nobody can be told, what is no GELF is kept as a line of text.

mod chunks;
mod stream;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;

use logpond_record::limits::LINE_BYTES_MAX;
use logpond_record::{Batch, EntryKind, LABEL_SUFFIX, Labels, Timestamp, Value, cast};

use super::members::{Fields, Members, flatten, keep_last, text_of};
use super::splunk::seconds;
use super::{DecodedBody, Lines, RejectReason, TooLarge, check, check_names, check_time, put};
use crate::intake::body::{BodyError, Encoding, decompressed};
use crate::intake::timestamps;

pub use chunks::{ASSEMBLY_TIME_MAX, Chunks};
pub use stream::{DecodedMessages, decode};

/// How long a message may be, decompressed, where lines may have `line_bytes_max`: the text may stand
/// in it twice, as `short_message` and within `full_message`.
pub const fn message_bytes_max(line_bytes_max: usize) -> usize {
    if line_bytes_max > LINE_BYTES_MAX / 2 {
        LINE_BYTES_MAX
    } else {
        2 * line_bytes_max
    }
}

/// Why a body is refused; nothing of it is taken then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GelfError {
    /// It cannot be decompressed.
    Compressed(BodyError),
    /// A message of it is none.
    Message {
        /// Its number, counted from 1.
        number: usize,
        /// Why.
        reason: RejectReason,
    },
    /// More than can be taken at once.
    TooLarge(TooLarge),
}

impl fmt::Display for GelfError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GelfError::Compressed(error) => write!(f, "{error}"),
            GelfError::Message { number, reason } => {
                write!(f, "message {number} is no GELF: {reason}")
            }
            GelfError::TooLarge(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for GelfError {}

/// A message as a record.
struct Message<'a> {
    time: Option<Timestamp>,
    fields: Fields<'a>,
    line: Cow<'a, str>,
}

/// Decodes the body of a request, of at most `bytes_max` bytes when decompressed: one message, or several with line ends
/// between them. Of several each is taken or rejected by itself.
///
/// # Errors
/// See [`GelfError`].
pub fn decode_body(
    body: &[u8],
    bytes_max: usize,
    line_bytes_max: usize,
) -> Result<DecodedBody, GelfError> {
    let body = decompress(body, bytes_max).map_err(GelfError::Compressed)?;
    let line_bytes_max = line_bytes_max.min(LINE_BYTES_MAX);
    let mut pushed = DecodedBody::new(Batch::new(EntryKind::Enveloped, Labels::new()));
    let mut take = |number, message: &[u8]| {
        let message = read(message).and_then(|message| {
            check(EntryKind::Line, message.line.as_bytes(), line_bytes_max).map(|()| message)
        });
        let message = message.map_err(|reason| GelfError::Message { number, reason })?;
        message.put(&mut pushed.batch).map_err(GelfError::TooLarge)
    };
    // White space within an object may be line ends, too.
    let whole = take(1, &body);
    let mut lines = Lines(&body).filter(|line| !line.trim_ascii().is_empty());
    match (whole, lines.nth(1)) {
        (Ok(()), _) => {}
        (Err(error), None) => return Err(error),
        (Err(whole), Some(_)) => {
            let lines = Lines(&body).filter(|line| !line.trim_ascii().is_empty());
            let mut rejected = Vec::new();
            for (number, line) in (1..).zip(lines) {
                match take(number, line) {
                    Ok(()) => {}
                    Err(GelfError::Message { number, reason }) => rejected.push((number, reason)),
                    Err(error) => return Err(error),
                }
            }
            // Without a message in any line it is meant as one.
            if pushed.batch.is_empty() {
                return Err(whole);
            }
            for (number, reason) in rejected {
                pushed.reject(number, reason);
            }
        }
    }
    Ok(pushed.finished())
}

/// A message as it is, also if it is compressed by gzip, zlib or zstd.
fn decompress(raw: &[u8], bytes_max: usize) -> Result<Cow<'_, [u8]>, BodyError> {
    decompressed(raw, encoding_of(raw), bytes_max)
}

/// How a message is compressed, if it is.
fn encoding_of(raw: &[u8]) -> Encoding {
    match raw {
        [0x1f, 0x8b, ..] => Encoding::Gzip,
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Encoding::Zstd,
        // RFC 1950: method 8, a window of at most 32 KiB, and a check of both bytes.
        [method, flags, ..]
            if method & 0x0f == 8
                && method >> 4 <= 7
                && u16::from_be_bytes([*method, *flags]) % 31 == 0 =>
        {
            Encoding::Deflate
        }
        _ => Encoding::Identity,
    }
}

/// Reads a message.
fn read(raw: &[u8]) -> Result<Message<'_>, RejectReason> {
    let malformed = |reason: String| RejectReason::Malformed(reason);
    let members: Members<'_> = serde_json::from_slice(raw)
        .map_err(|error| malformed(format!("it is no JSON object: {error}")))?;
    let (mut short, mut full, mut time) = (None, None, None);
    let (mut header, mut fields) = (Fields::new(), Fields::new());
    for (name, value) in members.0 {
        match &*name {
            "version" => {}
            "short_message" => short = text_of(value).or(short),
            "full_message" => full = text_of(value).or(full),
            "host" => {
                let host = text_of(value).filter(|host| !host.is_empty());
                header.extend(host.map(|host| (HOSTNAME.into(), Value::Str(host))));
            }
            "timestamp" => match time_of(value.get()) {
                Some(given) => time = Some(given),
                None => flatten(name, value, &mut fields),
            },
            "level" => match severity_of(value.get()) {
                Some(severity) => header.push(("severity".into(), Value::Int(severity))),
                None => flatten(name, value, &mut fields),
            },
            _ => flatten(without_underscore(name), value, &mut fields),
        }
    }
    let time = time.or_else(|| time_beside(&fields));
    keep_last(&mut header, 0);
    keep_last(&mut fields, 0);
    let line = line_of(short, full, &mut fields)
        .ok_or_else(|| malformed("it has no short_message".to_owned()))?;
    // An additional field does not replace what the header says.
    for (name, _) in &mut fields {
        if header.iter().any(|(taken, _)| taken == name) {
            *name = format!("{name}{LABEL_SUFFIX}").into();
        }
    }
    header.append(&mut fields);
    check_names(header.iter().map(|(name, _)| &**name))?;
    Ok(Message {
        time,
        fields: header,
        line,
    })
}

/// The field of the machine that a record comes from.
const HOSTNAME: &str = "hostname";

fn without_underscore(name: Cow<'_, str>) -> Cow<'_, str> {
    match name {
        Cow::Borrowed(name) => match name.strip_prefix('_') {
            Some(rest) if !rest.is_empty() => rest.into(),
            _ => name.into(),
        },
        Cow::Owned(name) => match name.strip_prefix('_') {
            Some(rest) if !rest.is_empty() => rest.to_owned().into(),
            _ => name.into(),
        },
    }
}

/// Names of additional fields with the time, as libraries have it there that send no `timestamp`.
const TIMES_BESIDE: [&str; 3] = ["timestamp", "@timestamp", "time"];

/// The time of a message without a `timestamp`: of an additional field that is an instant.
fn time_beside(fields: &Fields<'_>) -> Option<Timestamp> {
    let of_name = |name: &&str| {
        let (_, value) = fields.iter().rev().find(|(field, _)| field == name)?;
        let text = value.to_text();
        timestamps::rfc3339(&text).or_else(|| timestamps::unix_instant(&text))
    };
    TIMES_BESIDE.iter().find_map(of_name)
}

/// The time of the header: seconds, or what senders have there instead: milliseconds, or text of RFC 3339.
fn time_of(json: &str) -> Option<Timestamp> {
    const NANOS: f64 = 1e9;
    let text = json.trim_matches('"');
    let is_valid = |time: &Timestamp| time.0 > 0 && check_time(Some(*time)).is_ok();
    let as_specified = seconds(text).ok().or_else(|| {
        // With an exponent.
        let seconds: f64 = text.parse().ok()?;
        Some(Timestamp(cast::whole_i64(seconds * NANOS)))
    });
    let finer = || timestamps::unix_instant(text.as_bytes());
    as_specified
        .filter(is_valid)
        .or_else(|| timestamps::rfc3339(text.as_bytes()).filter(is_valid))
        .or_else(|| finer().filter(is_valid))
}

fn severity_of(json: &str) -> Option<i64> {
    let level: i64 = json.trim_matches('"').parse().ok()?;
    (0..=7).contains(&level).then_some(level)
}

/// Text without the line ends behind it, with which layouts of loggers end each message.
fn without_line_ends(text: Cow<'_, str>) -> Cow<'_, str> {
    let is_end = |letter: char| matches!(letter, '\n' | '\r');
    match text {
        Cow::Borrowed(text) => text.trim_end_matches(is_end).into(),
        Cow::Owned(text) => text.trim_end_matches(is_end).to_owned().into(),
    }
}

/// The line of a message with these texts; `None` without any.
fn line_of<'a>(
    short: Option<Cow<'a, str>>,
    full: Option<Cow<'a, str>>,
    fields: &mut Fields<'a>,
) -> Option<Cow<'a, str>> {
    let full = full.map(without_line_ends).filter(|full| !full.is_empty());
    let (short, full) = match (short, full) {
        (None, line) | (line, None) => return line,
        (Some(short), Some(full)) if short == full => return Some(full),
        (Some(short), Some(full)) => (short, full),
    };
    let line = if full.contains(&*short) {
        full
    } else {
        format!("{short}\n{full}").into()
    };
    fields.push(("short_message".into(), Value::Str(short)));
    Some(line)
}

impl Message<'_> {
    /// Takes it in.
    fn put(&self, batch: &mut Batch) -> Result<(), TooLarge> {
        let each = self.fields.iter().map(|(name, value)| (&**name, value));
        let line = self.line.as_bytes();
        put(batch, EntryKind::Line, self.time, each, line)
    }
}
