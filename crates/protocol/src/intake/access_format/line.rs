//! A line read by a format.

use logpond_record::{Assumption, SlotKind, TimeSource, Timestamp, Value, cast};
use memchr::{memchr, memmem};

use super::{AccessFormat, Clock, End, Escape, FieldMeaning, Step, Variable};
use crate::intake::access::{canonical_int, closing_quote, parts_of};
use crate::intake::json;
use crate::intake::outline::BODY_PREFIX;
use crate::intake::sketch::Sketch;
use crate::intake::timestamps::{self, TimeReader, TimestampText};

/// What a line says beside the fields that it is made of.
#[derive(Debug, Default)]
pub(crate) struct DerivedFields<'a> {
    /// Its time, and what is a guess about it.
    pub(crate) time: Option<(Timestamp, Assumption)>,
    /// The host of its referer.
    pub(crate) referer_host: Option<&'a str>,
    /// Host and port that are all of its target.
    pub(crate) authority: Option<(&'a str, i64)>,
    /// How long the request took, in seconds.
    pub(crate) duration_s: Option<f64>,
}

/// What is needed to read times.
#[derive(Clone, Copy)]
pub(crate) struct Times<'t> {
    pub(crate) reader: &'t TimeReader,
    pub(crate) received: Timestamp,
}

impl AccessFormat {
    /// Whether lines of the format are JSON objects.
    pub(crate) fn is_json(&self) -> bool {
        self.is_json
    }

    /// Draws a line. `None` if it does not fit; the sketch is spoilt then.
    pub(crate) fn draw<'a>(
        &self,
        line: &'a str,
        times: Times<'_>,
        sketch: &mut Sketch<'_, 'a>,
    ) -> Option<DerivedFields<'a>> {
        let (line, carriage_return) = match line.strip_suffix('\r') {
            Some(line) => (line, "\r"),
            None => (line, ""),
        };
        if let Some(listed) = &self.listed {
            let drawn = listed.draw(line, times, sketch)?;
            sketch.literal(carriage_return);
            return Some(drawn);
        }
        let mut reading = LineReader {
            rest: line,
            escape: self.escape,
            times,
            is_within: !sketch.parts.values.is_empty(),
            drawn: DerivedFields::default(),
        };
        for step in &self.steps {
            match step {
                Step::Literal(text) => {
                    reading.rest = reading.rest.strip_prefix(&**text)?;
                    sketch.literal(text);
                }
                Step::Variable(variable) => reading.take(variable, sketch)?,
            }
        }
        sketch.literal(carriage_return);
        reading.rest.is_empty().then_some(reading.drawn)
    }
}

/// A line while it is read.
struct LineReader<'a, 't> {
    rest: &'a str,
    escape: Escape,
    times: Times<'t>,
    /// Whether the line stands behind a header, whose fields keep their names.
    is_within: bool,
    drawn: DerivedFields<'a>,
}

impl<'a> LineReader<'a, '_> {
    fn take(&mut self, variable: &Variable, sketch: &mut Sketch<'_, 'a>) -> Option<()> {
        if let FieldMeaning::Time(clock, name) = &variable.meaning {
            return self.take_time(*clock, name, &variable.end, sketch);
        }
        let value = self.value(&variable.end)?;
        match &variable.meaning {
            FieldMeaning::Text(name) => match value {
                "-" => sketch.literal("-"),
                _ => self.text(name, value, sketch),
            },
            FieldMeaning::Plain(name) => {
                if &**name == "referer" {
                    self.drawn.referer_host = host_of(value);
                }
                self.text(name, value, sketch);
            }
            FieldMeaning::Number(name) => match value {
                "-" => sketch.literal("-"),
                _ => self.slot(name, "i", Value::Int(canonical_int(value)?), sketch),
            },
            FieldMeaning::Duration(name, unit_ns) => {
                self.drawn.duration_s = seconds(value, *unit_ns);
                match value {
                    "-" => sketch.literal("-"),
                    _ => self.text(name, value, sketch),
                }
            }
            FieldMeaning::Request => self.request(value, sketch),
            FieldMeaning::Target => self.target(value, sketch),
            FieldMeaning::Time(..) => {}
        }
        Some(())
    }

    /// The text up to where a value ends.
    fn value(&mut self, end: &End) -> Option<&'a str> {
        let bytes = match end {
            End::Line => self.rest.len(),
            End::Quote => closing_quote(self.rest)?,
            End::Text(text) => find(self.rest, text)?,
            End::List(text) => find_behind_list(self.rest, text)?,
        };
        let (value, rest) = self.rest.split_at(bytes);
        self.rest = rest;
        Some(value)
    }

    /// The first time of a record is its own; where it has one, a further time is text.
    fn take_time(
        &mut self,
        clock: Clock,
        name: &str,
        end: &End,
        sketch: &mut Sketch<'_, 'a>,
    ) -> Option<()> {
        let (written, text) = self.time(clock, end)?;
        self.drawn.time = Some((written.time, written.form.assumed()));
        match sketch.parts.time {
            None => sketch.time(&written, text.as_bytes(), TimeSource::Line),
            Some(_) => self.slot(name, "t", Value::Str(text.into()), sketch),
        }
        Some(())
    }

    fn time(&mut self, clock: Clock, end: &End) -> Option<(TimestampText, &'a str)> {
        let written = match clock {
            Clock::Access => timestamps::access(self.rest.as_bytes())?,
            Clock::Iso => {
                let Times { reader, received } = self.times;
                reader.iso(self.rest.as_bytes(), received)?
            }
            Clock::Other => {
                let text = self.value(end)?;
                let Times { reader, received } = self.times;
                let written = reader.whole(text.as_bytes(), received, true)?;
                return Some((written, text));
            }
        };
        let (text, rest) = self.rest.split_at_checked(written.bytes)?;
        self.rest = rest;
        Some((written, text))
    }

    fn slot(&self, name: &str, kind: &str, value: Value<'a>, sketch: &mut Sketch<'_, 'a>) {
        let prefix = if self.is_within && sketch.has_slot(name.as_bytes()) {
            BODY_PREFIX
        } else {
            ""
        };
        sketch.prefixed_slot(prefix, name, kind, value);
    }

    /// Draws text, which may be escaped.
    fn text(&self, name: &str, text: &'a str, sketch: &mut Sketch<'_, 'a>) {
        if self.escape != Escape::Json {
            return self.slot(name, "t", Value::Str(text.into()), sketch);
        }
        if json::is_plain(text) {
            return self.slot(name, "j", Value::Str(text.into()), sketch);
        }
        let Ok(value) = serde_json::from_str::<String>(&format!("\"{text}\"")) else {
            return self.slot(name, "t", Value::Str(text.into()), sketch);
        };
        let mut escaped = Vec::with_capacity(text.len());
        SlotKind::JsonString.write_text(value.as_bytes(), &mut escaped);
        self.slot(name, "j", Value::Str(value.into()), sketch);
        if escaped != text.as_bytes() {
            sketch.fix(text.as_bytes());
        }
    }

    fn request(&self, request: &'a str, sketch: &mut Sketch<'_, 'a>) {
        match parts_of(request) {
            Some((method, target, protocol)) => {
                self.slot("method", "t", Value::Str(method.into()), sketch);
                sketch.literal(" ");
                self.target(target, sketch);
                sketch.literal(" ");
                self.slot("protocol", "t", Value::Str(protocol.into()), sketch);
            }
            None if request == "-" => sketch.literal("-"),
            None => self.text("request", request, sketch),
        }
    }

    fn target(&self, target: &'a str, sketch: &mut Sketch<'_, 'a>) {
        match memchr(b'?', target.as_bytes()) {
            Some(mark) => {
                self.text("path", &target[..mark], sketch);
                sketch.literal("?");
                self.text("query", &target[mark + 1..], sketch);
            }
            None => self.text("path", target, sketch),
        }
    }
}

/// Where `end` first stands.
fn find(text: &str, end: &str) -> Option<usize> {
    match end.as_bytes() {
        [byte] => memchr(*byte, text.as_bytes()),
        bytes => memmem::find(text.as_bytes(), bytes),
    }
}

/// Where `end` first stands but within a list: behind a comma, or around a colon.
fn find_behind_list(text: &str, end: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut found = memmem::find_iter(bytes, end.as_bytes());
    found.find(|&at| {
        let before = &bytes[..at];
        let is_within = before.ends_with(b",")
            || before.ends_with(b" :")
            || end.starts_with(' ') && bytes[at..].starts_with(b" : ");
        !is_within
    })
}

/// The host of a web address, without user and port.
pub(crate) fn host_of(address: &str) -> Option<&str> {
    let (_, behind) = address.split_once("://")?;
    let end = behind.find(['/', '?', '#']).unwrap_or(behind.len());
    let authority = &behind[..end];
    let (_, host) = authority.rsplit_once('@').unwrap_or(("", authority));
    let host = match host.find(']') {
        Some(bracket) if host.starts_with('[') => &host[..=bracket],
        _ => host.split(':').next().unwrap_or(host),
    };
    (!host.is_empty()).then_some(host)
}

/// A decimal number of units, in seconds.
fn seconds(text: &str, unit_ns: u64) -> Option<f64> {
    let is_number = |byte: u8| byte.is_ascii_digit() || byte == b'.';
    if !text.bytes().all(is_number) {
        return None;
    }
    let value: f64 = text.parse().ok()?;
    // Divided, not multiplied by a fraction that no float is.
    Some(value / (1e9 / cast::float(unit_ns)))
}
