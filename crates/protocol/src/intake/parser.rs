//! Entries of the journal as records.
//!
//! Invariants: [`Parser::parse`] never fails, and the record's `write_line` gives the entry's bytes
//! back. What a parser remembers makes it faster and never changes a record.
//!
//! A line is tried as JSON, syslog, access log and logfmt, each only if it begins like one; what is
//! none of them is text, whose time is a timestamp that it begins with. Text that is not UTF-8 is
//! kept as bytes.

use std::borrow::Cow;
use std::sync::Arc;

use logpond_record::limits::SHAPE_BYTES_MAX;
use logpond_record::{
    Assumed, Entry, EntryKind, Fix, Message, Record, Shape, SlotKind, TimeSource, Timestamp, Value,
};

use super::json::{self, Learned};
use super::outline::{Outcome, Outline, without_message};
use super::shapes::Shapes;
use super::sketch::{Parts, Sketch};
use super::timestamps::TimeReader;
use super::{access, content, logfmt, syslog};

/// Makes records of entries. It keeps what lines have in common, so one parser should see many
/// lines of the same senders.
pub struct Parser {
    times: TimeReader,
    shapes: Shapes,
    outline: Outline,
    learned: Learned,
    scratch: Vec<u8>,
}

impl Default for Parser {
    fn default() -> Parser {
        Parser::new()
    }
}

/// What became of a line: its shape, its parts, and whether it is kept whole.
struct Parsed<'a> {
    shape: Arc<Shape>,
    parts: Parts<'a>,
    whole: bool,
}

impl Parser {
    /// A parser that has seen nothing. It grows to a few MB at most.
    pub fn new() -> Parser {
        Parser {
            times: TimeReader::new(),
            shapes: Shapes::new(),
            outline: Outline::new(),
            learned: Learned::new(),
            scratch: Vec::with_capacity(SHAPE_BYTES_MAX),
        }
    }

    /// The record that an entry is.
    pub fn parse<'a>(&mut self, entry: &Entry<'a>) -> Record<'a> {
        let parsed = self
            .recognise(entry)
            .unwrap_or_else(|| self.plain_text(entry));
        let mut record = Record {
            id: entry.id,
            time: parsed.parts.time.unwrap_or(entry.received),
            time_source: parsed.parts.time_source,
            received: entry.received,
            message: parsed.parts.message,
            shape: parsed.shape,
            values: parsed.parts.values,
            fixes: parsed.parts.fixes,
            labels: labels_of(entry),
            whole: parsed.whole.then_some(Cow::Borrowed(entry.raw)),
        };
        if let Some(time) = entry.envelope.time {
            set_time(&mut record, time);
        }
        debug_assert!(
            rebuilds(&record, entry.raw),
            "{:?}",
            entry.raw.escape_ascii().to_string()
        );
        record
    }

    fn recognise<'a>(&mut self, entry: &Entry<'a>) -> Option<Parsed<'a>> {
        match entry.kind {
            EntryKind::Json => self.json(entry),
            EntryKind::Syslog => self.syslog(entry, true).or_else(|| self.line(entry)),
            EntryKind::Text => None,
            // Entries have been taken out of their envelopes.
            EntryKind::Line | EntryKind::Enveloped => self.line(entry),
        }
    }

    fn line<'a>(&mut self, entry: &Entry<'a>) -> Option<Parsed<'a>> {
        match entry.raw {
            [b'{' | b' ' | b'\t', ..] => self.json(entry),
            raw if syslog::is_candidate(raw) => self.syslog(entry, false),
            raw if content::is_candidate(raw) => self.fields(entry, content::read),
            raw if access::is_candidate(raw) => self.access(entry),
            raw if logfmt::is_candidate(raw) => self.fields(entry, logfmt::read),
            _ => None,
        }
    }

    fn json<'a>(&mut self, entry: &Entry<'a>) -> Option<Parsed<'a>> {
        if entry.raw.trim_ascii_start().first() != Some(&b'{') {
            return None;
        }
        let text = std::str::from_utf8(entry.raw).ok()?;
        if let Some((shape, parts)) = self.learned.read(text, entry.received, &self.times) {
            return Some(Parsed {
                shape,
                parts,
                whole: false,
            });
        }
        let capacity = self.learned.slots_hint;
        let mut parts = json::flatten(text, &mut self.outline, capacity).ok()?;
        let outcome = self.finish(entry, &mut parts);
        self.learned.learn(text, &self.outline, &outcome);
        Some(self.parsed(parts, outcome.shape, outcome.whole, true))
    }

    /// A line that is made of fields and is no JSON.
    fn fields<'a>(
        &mut self,
        entry: &Entry<'a>,
        read: fn(&'a str, &mut Outline) -> Option<Parts<'a>>,
    ) -> Option<Parsed<'a>> {
        let text = std::str::from_utf8(entry.raw).ok()?;
        let mut parts = read(text, &mut self.outline)?;
        let outcome = self.finish(entry, &mut parts);
        Some(self.parsed(parts, outcome.shape, outcome.whole, false))
    }

    /// Ends the line that the outline holds.
    fn finish<'a>(&mut self, entry: &Entry<'a>, parts: &mut Parts<'a>) -> Outcome {
        self.outline.finish(
            entry.raw,
            parts,
            entry.received,
            &self.times,
            &mut self.shapes,
            &mut self.scratch,
        )
    }

    /// A line without even a shape that lists its fields is kept whole, without fields.
    fn parsed<'a>(
        &self,
        mut parts: Parts<'a>,
        shape: Option<Arc<Shape>>,
        whole: bool,
        is_json: bool,
    ) -> Parsed<'a> {
        let Some(shape) = shape else {
            parts.values = vec![Value::Null];
            parts.fixes.clear();
            parts.message = without_message(is_json);
            return Parsed {
                shape: self.shapes.text(),
                parts,
                whole: true,
            };
        };
        debug_assert_eq!(shape.slots().len(), parts.values.len());
        Parsed {
            shape,
            parts,
            whole,
        }
    }

    fn syslog<'a>(&mut self, entry: &Entry<'a>, anything: bool) -> Option<Parsed<'a>> {
        let received = entry.received;
        let scratch = &mut self.scratch;
        let mut sketch = syslog::draw(entry.raw, received, anything, &self.times, scratch)?;
        content::draw(&mut sketch, &mut self.outline, &self.times, received);
        let shape = self.shapes.find(sketch.shape())?.shape;
        Some(Parsed {
            shape,
            parts: sketch.parts,
            whole: false,
        })
    }

    fn access<'a>(&mut self, entry: &Entry<'a>) -> Option<Parsed<'a>> {
        let text = std::str::from_utf8(entry.raw).ok()?;
        let mut sketch = Sketch::new(&mut self.scratch, 14);
        if !access::draw(text, &mut sketch) {
            return None;
        }
        let shape = self.shapes.find(sketch.shape())?.shape;
        Some(Parsed {
            shape,
            parts: sketch.parts,
            whole: false,
        })
    }

    fn plain_text<'a>(&mut self, entry: &Entry<'a>) -> Parsed<'a> {
        let mut parts = Parts::new(1);
        parts.message = Message::Part(Value::text(entry.raw));
        parts.values.push(Value::Null);
        if let Some((time, assumed)) = self.times.of_line(entry.raw, entry.received) {
            parts.time = Some(time);
            parts.time_source = TimeSource::Line(assumed);
        }
        Parsed {
            shape: self.shapes.text(),
            parts,
            whole: false,
        }
    }
}

/// What the sender said of the entry, then what was declared for all of its batch.
fn labels_of<'a>(entry: &Entry<'a>) -> Vec<(Cow<'a, str>, Value<'a>)> {
    let own = entry.envelope.fields();
    let own = own.map(|(name, value)| (Cow::Borrowed(name), value));
    let of_batch = entry.labels.iter();
    let of_batch =
        of_batch.map(|(name, value)| (Cow::Borrowed(&**name), Value::Str(Cow::Borrowed(&**value))));
    own.chain(of_batch).collect()
}

/// Gives a record the time that its sender said. A time that stands in its line stays there, as
/// text.
fn set_time(record: &mut Record<'_>, time: Timestamp) {
    let slots = record.shape.slots().iter();
    let is_time = |slot: &logpond_record::Slot| matches!(slot.kind, SlotKind::Time(_));
    let in_line = slots.enumerate().find(|(_, slot)| is_time(slot));
    if let Some((index, _)) = in_line.filter(|_| record.time != time && record.whole.is_none()) {
        let at = record
            .fixes
            .partition_point(|fix| usize::from(fix.slot) < index);
        let is_fixed = record
            .fixes
            .get(at)
            .is_some_and(|fix| usize::from(fix.slot) == index);
        if !is_fixed {
            let mut text = Vec::new();
            let shape = &record.shape;
            shape.render_slot(index, record.time, &Value::Null, &mut text);
            let (slot, text) = (index as u16, Cow::Owned(text));
            record.fixes.insert(at, Fix { slot, text });
        }
    }
    record.time = time;
    record.time_source = TimeSource::Header(Assumed::Nothing);
}

/// Whether the record's line is `raw`.
pub(crate) fn rebuilds(record: &Record<'_>, raw: &[u8]) -> bool {
    let mut line = Vec::with_capacity(raw.len());
    record.write_line(&mut line);
    line == raw
}

#[cfg(test)]
pub(crate) mod tests;
