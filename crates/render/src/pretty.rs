//! `-o pretty`, for people: local time with its offset, level, origin, message, fields.
//!
//! Colours mark the level, keys and matches; the level is a word as well, so nothing is said by
//! colour alone. Neither black nor white is used: one of them is invisible somewhere. Lines of a
//! message stay lines, and a field of several lines stands below it.

use std::ops::Range;

use jiff::tz::TimeZone;
use logpond_record::{Severity, Timestamp, Value, cast};
use logpond_search::label;

use super::line::HEAD;
use super::{Render, Row};
use logpond_host::terminal::text::{write_name, write_pair, write_safe};

const RESET: &str = "\x1b[0m";
const DIM: &str = "\x1b[2m";
const MATCH: &str = "\x1b[1;31m";

/// Finds the parts of a text that matched.
pub type Spans = Box<dyn Fn(&[u8]) -> Vec<Range<usize>>>;

/// How `pretty` looks.
pub struct Style {
    /// Whether colours are used.
    pub colour: bool,
    /// The zone of times.
    pub zone: TimeZone,
    /// What is highlighted in messages, when there are colours.
    pub spans: Option<Spans>,
    /// Makes formulas texts in `csv`.
    pub defuses_formulas: bool,
}

/// See the module.
pub(super) struct Pretty {
    style: Style,
}

impl Pretty {
    pub(super) fn new(style: Style) -> Pretty {
        Pretty { style }
    }

    fn paint(&self, colour: &str, text: &[u8], out: &mut Vec<u8>) {
        if self.style.colour && !text.is_empty() {
            out.extend_from_slice(colour.as_bytes());
            out.extend_from_slice(text);
            out.extend_from_slice(RESET.as_bytes());
        } else {
            out.extend_from_slice(text);
        }
    }

    fn message(&self, message: &[u8], out: &mut Vec<u8>) {
        let spans = match &self.style.spans {
            Some(spans) if self.style.colour => spans(message),
            _ => Vec::new(),
        };
        let mut done = 0;
        for span in spans {
            if span.start < done || span.end > message.len() || span.is_empty() {
                continue;
            }
            write_safe(&message[done..span.start], true, out);
            let mut part = Vec::new();
            write_safe(&message[span.clone()], true, &mut part);
            self.paint(MATCH, &part, out);
            done = span.end;
        }
        write_safe(&message[done..], true, out);
    }
}

impl Pretty {
    /// A field of several lines, such as a stack trace: its name, and its lines below that.
    fn lines_below(&self, name: &str, value: &Value<'_>, out: &mut Vec<u8>) {
        let mut head = b"  ".to_vec();
        write_name(name, &mut head);
        head.push(b'=');
        self.paint(DIM, &head, out);
        out.push(b'\n');
        let text = value.to_text();
        let text = text.strip_suffix(b"\n").unwrap_or(&text);
        for line in text.split(|byte| *byte == b'\n') {
            out.extend_from_slice(b"    ");
            write_safe(line.strip_suffix(b"\r").unwrap_or(line), false, out);
            out.push(b'\n');
        }
    }
}

impl Render for Pretty {
    fn row(&mut self, row: &Row<'_>, out: &mut Vec<u8>) {
        if let Some(time) = row.time {
            let text = local(time, &self.style.zone);
            self.paint(DIM, text.as_bytes(), out);
            out.push(b' ');
        }
        let fields = row.fields.iter().map(|(name, value)| (&**name, value));
        let level = label::severity_of(fields);
        if let Some((_, severity)) = level {
            let (word, colour) = shown(severity);
            self.paint(colour, word.as_bytes(), out);
            out.push(b' ');
        }
        for (name, end) in HEAD.iter().zip([" ", ": "]) {
            if let Some(value) = row.field(name) {
                let mut part = Vec::new();
                write_safe(&value.to_text(), false, &mut part);
                self.paint("\x1b[36m", &part, out);
                out.extend_from_slice(end.as_bytes());
            }
        }
        let message = row.message_behind(&HEAD);
        if !message.is_empty() {
            self.message(message, out);
            out.push(b' ');
        }
        let skipped = [HEAD[0], HEAD[1], level.map_or("", |(name, _)| name)];
        let fields = row.fields_behind(message, &skipped).into_iter();
        let (below, behind): (Vec<_>, Vec<_>) =
            fields.partition(|(_, value)| value.to_text().contains(&b'\n'));
        for (name, value) in behind {
            let mut pair = Vec::new();
            write_pair(name, value, &mut pair);
            let split = pair.iter().position(|&b| b == b'=').map_or(0, |at| at + 1);
            self.paint(DIM, &pair[..split], out);
            out.extend_from_slice(&pair[split..]);
            out.push(b' ');
        }
        if out.last() == Some(&b' ') {
            out.pop();
        }
        out.push(b'\n');
        for (name, value) in below {
            self.lines_below(name, value, out);
        }
    }

    fn gap(&mut self, out: &mut Vec<u8>) {
        self.paint(DIM, b"--", out);
        out.push(b'\n');
    }
}

/// `2026-03-02 01:02:32.465+01:00`, with as many digits of the fraction as are needed in threes.
pub(super) fn local(time: Timestamp, zone: &TimeZone) -> String {
    let (seconds, nanos) = time.seconds();
    let Ok(instant) = jiff::Timestamp::new(seconds, cast::low_i32(nanos)) else {
        return time.to_string();
    };
    let zoned = instant.to_zoned(zone.clone());
    let fraction = match nanos {
        n if n % 1_000_000 == 0 => format!("{:03}", n / 1_000_000),
        n if n % 1000 == 0 => format!("{:06}", n / 1000),
        n => format!("{n:09}"),
    };
    format!(
        "{}.{fraction}{}",
        zoned.strftime("%Y-%m-%d %H:%M:%S"),
        zoned.strftime("%:z")
    )
}

/// How a severity is shown, five letters wide, and its colour.
fn shown(severity: Severity) -> (&'static str, &'static str) {
    match severity {
        Severity::Trace | Severity::Debug => ("DEBUG", "\x1b[34m"),
        Severity::Info | Severity::Notice => ("INFO ", "\x1b[32m"),
        Severity::Warn => ("WARN ", "\x1b[33m"),
        Severity::Error => ("ERROR", "\x1b[31m"),
        Severity::Critical | Severity::Alert | Severity::Fatal => ("FATAL", "\x1b[1;35m"),
    }
}
