//! The message of a JSON object, read as a line is.
//!
//! Shippers put a line into an object (`{"message":"192.0.2.1 - - […"}`), and have a pipeline of the server take
//! it apart. Here it is taken apart as the line that it is: by the same formats, with the same names.
//!
//! Invariants:
//! - The object's own fields keep their names; a field of the message that has one of them, that begins like
//!   a word of an intake, or that says a level where the object does is `body.` and its name, see [`BODY_PREFIX`].
//! - The object's own time and level count. Where it has none, those of its message do.
//! - Messages in messages are read [`DEPTH_MAX`] deep.
//!
//! The fields stand in the object's shape where the message stood: as parts of a JSON string, with literals and
//! texts escaped. Where a message is not written as it would be rendered, or stays a field as a whole, the
//! line is kept whole, and its shape lists the fields.

use std::borrow::Cow;
use std::sync::Arc;

use logpond_record::limits::SHAPE_BYTES_MAX;
use logpond_record::{
    Entry, EntryKind, Fix, Message, Shape, SlotKind, TimeSource, Timestamp, Value, cast,
    is_severity_field, write_json_string,
};

use super::super::declared::is_line_time_first;
use super::super::outline::BODY_PREFIX;
use super::super::{audit, levels};
use super::{ParsedLine, Parser, Parts};

/// How deep messages within messages are read: an object in a container's line in a shipper's object.
const DEPTH_MAX: usize = 2;

/// The name of a message's time behind [`BODY_PREFIX`], if the object has a time of its own.
const TIME: &str = "time";

/// The level of a journal's entry.
const PRIORITY: &str = "PRIORITY";

/// The marks that open and close a slot in a shape's text.
const OPEN: &str = "⟨";
const CLOSE: &str = "⟩";

impl Parser {
    /// Reads the message of an object that was read.
    pub(super) fn nest<'a>(
        &mut self,
        entry: &Entry<'a>,
        mut parsed: ParsedLine<'a>,
    ) -> ParsedLine<'a> {
        if self.depth == DEPTH_MAX {
            self.read_text(entry, &mut parsed);
            return parsed;
        }
        let text = match std::mem::replace(&mut parsed.parts.message, Message::Absent) {
            Message::Part(Value::Str(text)) => text,
            other => {
                parsed.parts.message = other;
                return parsed;
            }
        };
        let inner = self.read_message(entry, &text);
        let inner = inner.filter(|inner| inner.shape.as_str() != Shape::TEXT);
        match inner {
            Some(inner) => {
                parsed.parts.message = Message::Part(Value::Str(text.clone()));
                self.combine(entry, parsed, inner, &text)
            }
            None => {
                parsed.parts.message = Message::Part(Value::Str(text));
                self.read_text(entry, &mut parsed);
                parsed
            }
        }
    }

    /// The time and the level of a message that is text, where the object has none.
    fn read_text(&self, entry: &Entry<'_>, parsed: &mut ParsedLine<'_>) {
        let Message::Part(Value::Str(text)) = &parsed.parts.message else {
            return;
        };
        let is_given = entry.envelope.time.is_some() && !is_line_time_first(entry.labels);
        let has_time = parsed.parts.time.is_some() || is_given;
        let (text, received) = (text.as_bytes(), entry.received);
        if !parsed.has_level && parsed.level.is_none() {
            parsed.level = levels::of_line(text);
        }
        if !has_time && let Some((time, assumed)) = self.time_of_text(text, received, parsed.level)
        {
            parsed.parts.time = Some(time);
            parsed.parts.time_source = TimeSource::Line(assumed);
        }
    }

    fn read_message(&mut self, entry: &Entry<'_>, text: &str) -> Option<ParsedLine<'static>> {
        let inner = Entry {
            kind: EntryKind::Line,
            raw: without_end(text).as_bytes(),
            ..*entry
        };
        self.depth += 1;
        let read = self.recognise(&inner);
        self.depth -= 1;
        read.map(ParsedLine::into_owned)
    }

    /// Draws the object and its message as one, or lists their fields.
    fn draw_joint<'a>(
        &mut self,
        outer: &ParsedLine<'a>,
        inner: &ParsedLine<'static>,
        text: &str,
    ) -> Option<Drawn<'a>> {
        let mut joint = Joint::new(outer, inner);
        let is_drawn = joint.can_draw() && joint.draw(text);
        if !is_drawn {
            joint.list();
        }
        let Joint {
            text: shape_text,
            values,
            fixes,
            ..
        } = joint;
        let shape = if is_drawn {
            self.shapes.find(&shape_text).map(|found| found.shape)
        } else {
            self.shapes.find_listing(&shape_text)
        };
        Some((shape?, values, fixes, is_drawn))
    }

    /// The object with the fields of its message.
    fn combine<'a>(
        &mut self,
        entry: &Entry<'a>,
        mut outer: ParsedLine<'a>,
        mut inner: ParsedLine<'static>,
        text: &str,
    ) -> ParsedLine<'a> {
        let time = inner.time.filter(|_| outer.parts.time.is_none());
        let end = &text[without_end(text).len()..];
        let known = self.joints.join(&mut outer, &mut inner, end);
        let is_known = known.is_some();
        let Some((shape, values, fixes, is_drawn)) = known
            .map(|(shape, values, fixes)| (shape, values, fixes, true))
            .or_else(|| self.draw_joint(&outer, &inner, text))
        else {
            self.read_text(entry, &mut outer);
            return outer;
        };
        if is_drawn && !is_known {
            self.joints.learn(&outer, &inner, end, &shape);
        }
        let (level, derived) = (inner.level, inner.derived);
        let beside = inner.parts.beside;
        if outer.parts.time.is_none() {
            outer.parts.time = inner.parts.time;
            outer.parts.time_source = inner.parts.time_source;
        }
        if let Message::Part(message) = inner.parts.message {
            outer.parts.message = Message::Part(message);
        }
        outer.parts.values = values;
        outer.parts.fixes = fixes;
        outer.whole |= !is_drawn;
        outer.time = outer.time.or(time);
        let is_free = |name: &str| shape.field_slot(name).is_none();
        outer
            .derived
            .extend(derived.into_iter().filter(|(name, _)| is_free(name)));
        outer.parts.beside.extend(beside);
        outer.parts.beside.retain(|(name, _)| is_free(name));
        if !outer.has_level && outer.level.is_none() {
            (outer.level, outer.beats_level) = (level, inner.beats_level);
            outer.has_level = inner.has_level;
        }
        outer.shape = shape;
        outer
    }
}

/// A shape with its values and fixes, and whether it renders the line.
type Drawn<'a> = (Arc<Shape>, Vec<Value<'a>>, Vec<Fix<'a>>, bool);

/// A text without the line end that containers' runtimes leave at it.
fn without_end(text: &str) -> &str {
    text.trim_end_matches(['\n', '\r'])
}

/// The shape of an object and that of its message, as they become one.
struct Joint<'j, 'a> {
    outer: &'j ParsedLine<'a>,
    inner: &'j ParsedLine<'static>,
    /// Text of the shape so far.
    text: Vec<u8>,
    values: Vec<Value<'a>>,
    fixes: Vec<Fix<'a>>,
}

impl<'j, 'a> Joint<'j, 'a> {
    fn new(outer: &'j ParsedLine<'a>, inner: &'j ParsedLine<'static>) -> Joint<'j, 'a> {
        let slots = outer.parts.values.len() + inner.parts.values.len();
        Joint {
            outer,
            inner,
            text: Vec::new(),
            values: Vec::with_capacity(slots),
            fixes: Vec::new(),
        }
    }

    /// True if the message is a slot of its own that is rendered as it is written.
    fn can_draw(&self) -> bool {
        let Some(slot) = self.outer.shape.message_slot() else {
            return false;
        };
        let mut fixes = self.outer.parts.fixes.iter();
        let is_as_written = !fixes.any(|fix| usize::from(fix.slot) == slot);
        let bytes = self.outer.shape.as_str().len() + 2 * self.inner.shape.as_str().len();
        is_as_written && !self.outer.whole && !self.inner.whole && bytes <= SHAPE_BYTES_MAX
    }

    /// Draws the object with the parts of its message in the message's place. Gives false if that would not
    /// render the line.
    fn draw(&mut self, message: &str) -> bool {
        let outer = self.outer;
        let message_slot = outer.shape.message_slot();
        for (index, piece) in pieces(outer.shape.as_str()) {
            match index {
                None => self.text.extend_from_slice(piece.as_bytes()),
                Some(index) if Some(index) == message_slot => {
                    if !self.draw_inner(message) {
                        return false;
                    }
                }
                Some(index) => {
                    self.slot(piece);
                    let value = outer.parts.values.get(index).cloned();
                    let slot = cast::low_u16(self.values.len());
                    self.values.push(value.unwrap_or(Value::Null));
                    let mut fixes = outer.parts.fixes.iter();
                    if let Some(fix) = fixes.find(|fix| usize::from(fix.slot) == index) {
                        let text = fix.text.clone();
                        self.fixes.push(Fix { slot, text });
                    }
                }
            }
        }
        true
    }

    fn draw_inner(&mut self, message: &str) -> bool {
        let inner = self.inner;
        let mut written = Vec::with_capacity(message.len());
        for (index, piece) in pieces(inner.shape.as_str()) {
            match index {
                None => {
                    written.extend_from_slice(piece.as_bytes());
                    escape(piece.as_bytes(), &mut self.text);
                }
                Some(index) => {
                    let before = written.len();
                    self.write_inner(index, &mut written);
                    let text = written[before..].to_vec();
                    self.draw_inner_slot(index, piece, &text);
                }
            }
        }
        let line = without_end(message);
        escape(&message.as_bytes()[line.len()..], &mut self.text);
        written == line.as_bytes()
    }

    /// Appends the text of a slot of the message as it stands there.
    fn write_inner(&self, index: usize, out: &mut Vec<u8>) {
        write_slot(&self.inner.shape, &self.inner.parts, index, out);
    }

    fn draw_inner_slot(&mut self, index: usize, piece: &str, text: &[u8]) {
        let inner = self.inner;
        let slot = &inner.shape.slots()[index];
        let is_message = Some(index) == inner.shape.message_slot();
        let number = cast::low_u16(self.values.len());
        let has_time = self.outer.parts.time.is_some();
        let mut escaped = Vec::with_capacity(text.len());
        escape(text, &mut escaped);
        let value = match &slot.kind {
            SlotKind::Time(_) if has_time => {
                self.slot(&format!("{}:j", self.apart(TIME)));
                Value::text(text).into_owned()
            }
            SlotKind::Time(_) => {
                self.slot(piece);
                let mut fixes = inner.parts.fixes.iter();
                if fixes.any(|fix| usize::from(fix.slot) == index) {
                    let text = Cow::Owned(escaped);
                    self.fixes.push(Fix { slot: number, text });
                }
                self.values.push(Value::Null);
                return;
            }
            kind => {
                let letter = match kind {
                    SlotKind::Text
                    | SlotKind::JsonString
                    | SlotKind::Quoted
                    | SlotKind::StructuredData => "j",
                    _ => &piece[piece.len() - 1..],
                };
                let name = if is_message {
                    Cow::Borrowed("_msg")
                } else {
                    self.free_name(&slot.name)
                };
                self.slot(&format!("{name}:{letter}"));
                match (&inner.parts.message, is_message) {
                    (Message::Part(value), true) => value.clone(),
                    _ => inner.parts.values[index].clone(),
                }
            }
        };
        let mut rendered = Vec::with_capacity(escaped.len());
        match &slot.kind {
            SlotKind::Text
            | SlotKind::JsonString
            | SlotKind::Quoted
            | SlotKind::StructuredData
            | SlotKind::Time(_) => escape(&value.to_text(), &mut rendered),
            SlotKind::Facility => rendered.clone_from(&escaped),
            SlotKind::Severity => rendered.clone_from(&escaped),
            _ => {
                let time = Timestamp(0);
                inner.shape.render_slot(index, time, &value, &mut rendered);
            }
        }
        if rendered != escaped {
            let text = Cow::Owned(escaped);
            self.fixes.push(Fix { slot: number, text });
        }
        // The message of the record is beside the values.
        self.values
            .push(if is_message { Value::Null } else { value });
    }

    /// Lists the fields of both; the line is kept whole.
    fn list(&mut self) {
        (self.text, self.values, self.fixes) = (b"{".to_vec(), Vec::new(), Vec::new());
        let outer = self.outer;
        let outer_message = outer.shape.message_slot();
        let inner_message = matches!(self.inner.parts.message, Message::Part(_));
        for (index, piece) in pieces(outer.shape.as_str()) {
            let Some(index) = index else { continue };
            let is_time = matches!(outer.shape.slots()[index].kind, SlotKind::Time(_));
            let is_message = Some(index) == outer_message;
            if is_time || (is_message && inner_message) {
                continue;
            }
            self.slot(piece);
            let value = outer.parts.values.get(index).cloned();
            self.values.push(value.unwrap_or(Value::Null));
        }
        let inner = self.inner;
        for (index, piece) in pieces(inner.shape.as_str()) {
            let Some(index) = index else { continue };
            let slot = &inner.shape.slots()[index];
            let value = inner.parts.values[index].clone();
            match &slot.kind {
                SlotKind::Time(_) if outer.parts.time.is_none() => {}
                SlotKind::Time(_) => {
                    let mut text = Vec::new();
                    self.write_inner(index, &mut text);
                    self.slot(&format!("{}:t", self.apart(TIME)));
                    self.values.push(Value::text(&text).into_owned());
                }
                _ if slot.is_message() => {
                    self.slot("_msg:t");
                    self.values.push(Value::Null);
                }
                _ => {
                    let kind = piece.rsplit(':').next().unwrap_or("t");
                    let mut listed = Vec::new();
                    Shape::write_listed_name(&self.free_name(&slot.name), &mut listed);
                    self.slot(&format!("{}:{kind}", String::from_utf8_lossy(&listed)));
                    self.values.push(value);
                }
            }
        }
        self.text.push(b'}');
    }

    fn slot(&mut self, inside: &str) {
        for part in [OPEN, inside, CLOSE] {
            self.text.extend_from_slice(part.as_bytes());
        }
    }

    /// The name of a message's field beside those of the object.
    fn free_name<'n>(&self, name: &'n str) -> Cow<'n, str> {
        let outer = &self.outer.shape;
        let is_vouched_for = name.starts_with('_') && !audit::is_own_field(name.as_bytes());
        let is_taken = |name: &str| outer.field_slot(name).is_some();
        let is_level = || is_severity_field(name) && self.states_level();
        if !is_vouched_for && !is_taken(name) && !is_level() {
            return Cow::Borrowed(name);
        }
        Cow::Owned(self.apart(name))
    }

    /// True if the object says its level. A journal's priority is one that programs mostly leave as it is: what
    /// they print themselves comes before it, as in entries of a journal.
    fn states_level(&self) -> bool {
        let slots = self.outer.shape.slots().iter();
        let mut names = slots.filter(|slot| slot.is_field()).map(|slot| &*slot.name);
        let is_one = |name: &str| name != PRIORITY && is_severity_field(name);
        self.outer.level.is_some() || (self.outer.has_level && names.any(is_one))
    }

    /// A name with as many prefixes as it takes to be neither the object's nor its message's.
    fn apart(&self, name: &str) -> String {
        let mut other = format!("{BODY_PREFIX}{name}");
        let shapes = [&self.outer.shape, &self.inner.shape];
        while shapes
            .iter()
            .any(|shape| shape.field_slot(&other).is_some())
        {
            other.insert_str(0, BODY_PREFIX);
        }
        other
    }
}

/// Appends the text of a slot as it stands in its line.
pub(super) fn write_slot(shape: &Shape, parts: &Parts<'_>, index: usize, out: &mut Vec<u8>) {
    let mut fixes = parts.fixes.iter();
    if let Some(fix) = fixes.find(|fix| usize::from(fix.slot) == index) {
        return out.extend_from_slice(&fix.text);
    }
    let time = parts.time.unwrap_or(Timestamp(0));
    match &shape.slots()[index].kind {
        SlotKind::Severity => {
            let number = |value: Option<&Value<'_>>| match value {
                Some(Value::Int(number)) => *number,
                _ => 0,
            };
            let facility = index.checked_sub(1).and_then(|at| parts.values.get(at));
            let priority = number(facility) * 8 + number(parts.values.get(index));
            Value::Int(priority).write_text(out);
        }
        _ if Some(index) == shape.message_slot() => {
            if let Message::Part(value) = &parts.message {
                shape.render_slot(index, time, value, out);
            }
        }
        _ => shape.render_slot(index, time, &parts.values[index], out),
    }
}

/// The parts of a shape's text: what is literal, and the inside of slots with their number.
pub(super) fn pieces(text: &str) -> impl Iterator<Item = (Option<usize>, &str)> {
    let mut slots = 0;
    let mut rest = text;
    let mut is_slot = false;
    std::iter::from_fn(move || {
        if is_slot {
            is_slot = false;
            let (inside, behind) = rest.split_once(CLOSE)?;
            rest = behind;
            slots += 1;
            return Some((Some(slots - 1), inside));
        }
        if rest.is_empty() {
            return None;
        }
        let (literal, behind) = match rest.split_once(OPEN) {
            Some((literal, behind)) => {
                is_slot = true;
                (literal, behind)
            }
            None => (rest, ""),
        };
        rest = behind;
        Some((None, literal))
    })
}

/// Appends the inside of a JSON string.
pub(super) fn escape(text: &[u8], out: &mut Vec<u8>) {
    let text = String::from_utf8_lossy(text);
    let before = out.len();
    write_json_string(&text, out);
    // Without its quotes.
    out.pop();
    out.remove(before);
}
