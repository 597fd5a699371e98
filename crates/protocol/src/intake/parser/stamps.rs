//! Lines behind a time that the keeper of a program's output wrote: runit's svlogd, daemontools' multilog (TAI64N), and any
//! other before an object of JSON.
//!
//! The rest of such a line is read as the message of a syslog record is: the time is the header.

use logpond_record::{Entry, TimeSource};

use super::super::programs;
use super::super::sketch::Sketch;
use super::super::{Beside, content};
use super::{ParsedLine, Parser, behind_header, level_of_message};

/// How far into a line an object may begin, in bytes.
const HEAD_BYTES_MAX: usize = 48;

/// True for a line that may be one: a cheap test.
pub(super) fn is_candidate(line: &[u8]) -> bool {
    match line {
        [b'@', b'4', b'0', ..] => true,
        [b'0'..=b'9', ..] => is_of_runit(line) || is_before_object(line),
        _ => false,
    }
}

/// True for `2026-11-27_00:51:25.81842 `.
fn is_of_runit(line: &[u8]) -> bool {
    line.get(10) == Some(&b'_') && line.get(13) == Some(&b':') && line.get(25) == Some(&b' ')
}

/// True if an object ends the line and begins behind the digits of a time, or behind its zone.
fn is_before_object(line: &[u8]) -> bool {
    line.ends_with(b"}") && {
        let head = &line[..line.len().min(HEAD_BYTES_MAX)];
        let brace = memchr::memchr(b'{', head);
        brace.is_some_and(|at| {
            let is_digit = |byte: &u8| byte.is_ascii_digit() || *byte == b'Z';
            at > 1
                && line[at - 1] == b' '
                && is_digit(&line[at - 2])
                && line.get(at + 1) == Some(&b'"')
        })
    }
}

impl Parser {
    /// Reads a line as a time and what stands behind it.
    pub(super) fn stamped<'a>(&mut self, entry: &Entry<'a>) -> Option<ParsedLine<'a>> {
        let text = std::str::from_utf8(entry.raw).ok()?;
        let written = self.times.program(entry.raw, entry.received)?;
        let (time, behind) = text.split_at_checked(written.bytes)?;
        let message = behind.strip_prefix(' ').filter(|rest| !rest.is_empty())?;
        let is_object = message.starts_with('{');
        if !is_object && entry.raw[0] != b'@' && !is_of_runit(entry.raw) {
            return None;
        }
        let mut sketch = Sketch::new(&mut self.scratch, 12);
        sketch.time(&written, time.as_bytes(), TimeSource::Line);
        sketch.literal(" ");
        sketch.message(message.as_bytes());
        let Beside {
            mut fields,
            time,
            level,
            beats_level,
        } = content::draw(&mut sketch, &mut self.outline, &self.times, entry.received);
        if fields.is_empty() && sketch.message_text() == Some(message) {
            fields = programs::fields_of_sentence(None, message);
        }
        let level = level
            .filter(|_| beats_level)
            .or_else(|| level_of_message(&sketch, level));
        let beside = Beside {
            fields,
            time,
            level,
            beats_level,
        };
        behind_header(sketch, beside, &mut self.shapes)
    }
}
