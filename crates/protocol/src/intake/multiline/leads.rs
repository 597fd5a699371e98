//! Lines that begin a record for certain.

use logpond_record::Timestamp;

use super::traces;
use crate::intake::timestamps::TimeReader;
use crate::intake::{frames, programs};

/// The receive time that lines without a year are read with. Only the presence of a time matters.
const RECEIVED: Timestamp = Timestamp(1_772_409_600_000_000_000);

/// How far into a line its level may end, in bytes.
const LEVEL_BYTES_MAX: usize = 24;

/// The start of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lead {
    /// A time, or the priority of a syslog message.
    Time,
    /// A level.
    Level,
    /// A line that is a record by itself: an object of JSON from its start to its end, or a directive such
    /// as `#Fields: …`.
    Alone,
}

/// True if a line begins with a time, in any form, or with one in brackets as access logs do. An indented
/// line does not: it quotes another one.
pub(super) fn begins_with_time(times: &TimeReader, line: &[u8]) -> bool {
    !matches!(line.first(), None | Some(b' ' | b'\t'))
        && !line.starts_with(traces::APT_END.as_bytes())
        && (times.is_at_start(line, RECEIVED) || programs::is_firebird(line))
}

/// The lead of a line, if it has one.
pub(super) fn lead(times: &TimeReader, line: &[u8]) -> Option<Lead> {
    match line {
        // Programs that align levels put one space before some of them.
        [b' ', rest @ ..] => {
            let is_lead = matches!(rest, [b'0'..=b'9' | b'[' | b'A'..=b'Z', ..]);
            return (is_lead && begins_with_time(times, rest)).then_some(Lead::Time);
        }
        [] | [b'\t', ..] => return None,
        [b'{', ..] => return traces::is_object(line).then_some(Lead::Alone),
        [b'<', ..] if frames::begins_with_priority(line) => return Some(Lead::Time),
        // Values of a statement, ends of brackets, calls of a trace.
        [b'(', b'\'', ..] | [b'\'' | b'}' | b']' | b')' | b',', ..] => return None,
        [b'#', b'0'..=b'9', ..] => return None,
        [b'#', b'A'..=b'Z' | b'a'..=b'z', ..] => return Some(Lead::Alone),
        [b'=', ..] if traces::is_report(line) => return Some(Lead::Time),
        _ => {}
    }
    if begins_with_clock(line) || begins_with_time(times, line) {
        Some(Lead::Time)
    } else {
        begins_with_level(line).then_some(Lead::Level)
    }
}

/// `00:51:25.123 [error] failed`, `[00:51:25] failed`, `4711 00:51:25.123 failed`: a time of day, perhaps behind
/// the number of a process.
fn begins_with_clock(line: &[u8]) -> bool {
    let line = traces::visible(line);
    let line = line.strip_prefix(b"[").unwrap_or(line);
    let digits = line.iter().take_while(|b| b.is_ascii_digit()).count();
    let clock = match line.get(digits) {
        Some(b' ') if digits > 2 => &line[digits + 1..],
        _ => line,
    };
    let is_clock = |(byte, shape): (&u8, &u8)| match shape {
        b'0' => byte.is_ascii_digit(),
        shape => byte == shape,
    };
    clock.len() > 8
        && clock.iter().zip(b"00:00:00").all(is_clock)
        && matches!(clock[8], b' ' | b'.' | b',' | b']' | b'\t' | b':')
}

/// `INFO: started`, `[error] started`, `ERROR:root:failed`, `E/Tag(12): failed`, `E (818) wifi: failed`, `level=info msg=…`
fn begins_with_level(line: &[u8]) -> bool {
    const NAMES: [&str; 5] = ["level=", "lvl=", "severity=", "loglevel=", "msg="];
    let line = traces::visible(line);
    if NAMES.iter().any(|name| line.starts_with(name.as_bytes())) {
        return true;
    }
    // `E/Tag(12): `
    if let [
        b'V' | b'D' | b'I' | b'W' | b'E' | b'F',
        b'/',
        b'A'..=b'Z' | b'a'..=b'z',
        ..,
    ] = line
    {
        let head = &line[..line.len().min(LEVEL_BYTES_MAX * 2)];
        return memchr::memmem::find(head, b": ").is_some();
    }
    // `E( 12) `, `E (818) `
    if let [b'V' | b'D' | b'I' | b'W' | b'E' | b'F', rest @ ..] = line
        && let Some(inside) = rest.strip_prefix(b"(").or(rest.strip_prefix(b" ("))
    {
        let is_part = |byte: &&u8| byte.is_ascii_digit() || matches!(byte, b' ' | b':');
        let length = inside.iter().take_while(is_part).count();
        return length > 0 && inside[length..].starts_with(b") ");
    }
    let (word, is_bracketed) = match line {
        [b'[' | b'<', inside @ ..] => (inside, true),
        _ => (line, false),
    };
    let head = &word[..word.len().min(LEVEL_BYTES_MAX)];
    let letters = head.iter().take_while(|b| b.is_ascii_alphabetic()).count();
    let (name, behind) = head.split_at(letters);
    // In small letters it is a level only between brackets.
    let is_upper = name.iter().all(u8::is_ascii_uppercase);
    if letters < 3 || !(is_bracketed || is_upper) {
        return false;
    }
    let is_ended = match behind.first() {
        Some(b']' | b'>') => is_bracketed,
        Some(b' ' | b'\t' | b'|') => is_upper,
        Some(b':' | b'[' | b'(' | b'/') => is_upper,
        _ => false,
    };
    is_ended && crate::intake::timestamps::is_level(name)
}
