//! A record whose parts are found in the order of its line.
//!
//! Invariant: `text` is the shape of what was drawn so far, `values` has one value per slot of it.

use logpond_record::limits::{LISTING_BYTES_MAX, SHAPE_BYTES_MAX};
use logpond_record::{Assumption, Fix, Message, Shape, TimeSource, Timestamp, Value, cast};
use std::borrow::Cow;

use super::timestamps::TimestampText;

/// The signs around the name and the kind of a slot.
const SLOT_START: &[u8] = "⟨".as_bytes();
const SLOT_END: &[u8] = "⟩".as_bytes();

/// What a parser has made of a line: all of a record but its identity and its compiled shape.
pub(crate) struct Parts<'a> {
    pub(crate) time: Option<Timestamp>,
    pub(crate) time_source: TimeSource,
    pub(crate) message: Message<'a>,
    pub(crate) values: Vec<Value<'a>>,
    pub(crate) fixes: Vec<Fix<'a>>,
    /// Fields that are made of those of the line, with other names.
    pub(crate) beside: Vec<(Cow<'a, str>, Value<'a>)>,
}

impl<'a> Parts<'a> {
    /// No values yet; the message is the line.
    pub(crate) fn new(capacity: usize) -> Parts<'a> {
        Parts {
            time: None,
            time_source: TimeSource::Received,
            message: Message::Line,
            values: Vec::with_capacity(capacity),
            fixes: Vec::new(),
            beside: Vec::new(),
        }
    }
}

impl Parts<'_> {
    /// The same without borrowed parts.
    pub(crate) fn into_owned(self) -> Parts<'static> {
        let fixes = self.fixes.into_iter().map(|fix| Fix {
            slot: fix.slot,
            text: Cow::Owned(fix.text.into_owned()),
        });
        let beside = self.beside.into_iter().map(|(name, value)| {
            let name = Cow::Owned(name.into_owned());
            (name, value.into_owned())
        });
        Parts {
            beside: beside.collect(),
            time: self.time,
            time_source: self.time_source,
            message: match self.message {
                Message::Absent => Message::Absent,
                Message::Line => Message::Line,
                Message::Part(value) => Message::Part(value.into_owned()),
            },
            values: self.values.into_iter().map(Value::into_owned).collect(),
            fixes: fixes.collect(),
        }
    }
}

/// A shape's text with the values of its slots, drawn from left to right.
pub(crate) struct Sketch<'s, 'a> {
    text: &'s mut Vec<u8>,
    pub(crate) parts: Parts<'a>,
    /// Whether it only lists fields, so that the line must be kept whole.
    is_listing: bool,
    /// Fields that it could not list.
    unlisted: usize,
}

/// How a message is drawn.
const MESSAGE_SLOT: &str = "⟨_msg:t⟩";

/// A place in a sketch.
#[derive(Clone, Copy)]
pub(crate) struct SketchMark {
    text: usize,
    values: usize,
    fixes: usize,
    time: Option<Timestamp>,
    time_source: TimeSource,
    is_listing: bool,
    unlisted: usize,
}

impl SketchMark {
    /// Whether nothing is drawn before it.
    pub(crate) fn is_start(&self) -> bool {
        self.text == 0
    }
}

impl<'s, 'a> Sketch<'s, 'a> {
    /// An empty sketch that draws into `text` and expects about `capacity` slots.
    pub(crate) fn new(text: &'s mut Vec<u8>, capacity: usize) -> Sketch<'s, 'a> {
        text.clear();
        Sketch {
            text,
            parts: Parts::new(capacity),
            is_listing: false,
            unlisted: 0,
        }
    }

    /// Draws literal text. It must not hold the marks of slots.
    #[inline]
    pub(crate) fn literal(&mut self, literal: &str) {
        self.text.extend_from_slice(literal.as_bytes());
    }

    /// Draws a slot; `slot` is its name, a colon and its kind.
    #[inline]
    pub(crate) fn slot(&mut self, slot: &str, value: Value<'a>) {
        self.text.extend_from_slice(SLOT_START);
        self.text.extend_from_slice(slot.as_bytes());
        self.text.extend_from_slice(SLOT_END);
        self.parts.values.push(value);
    }

    /// Draws literal ASCII text. Invariant: callers have checked that it is.
    pub(crate) fn ascii(&mut self, literal: &[u8]) {
        debug_assert!(literal.is_ascii());
        self.literal(std::str::from_utf8(literal).unwrap_or("?"));
    }

    /// Draws a slot whose name is `first.second`.
    pub(crate) fn named_slot(&mut self, first: &str, second: &str, kind: &str, value: Value<'a>) {
        self.text.extend_from_slice(SLOT_START);
        for part in [first, ".", second, ":"] {
            self.text.extend_from_slice(part.as_bytes());
        }
        self.text.extend_from_slice(kind.as_bytes());
        self.text.extend_from_slice(SLOT_END);
        self.parts.values.push(value);
    }

    /// Draws a slot whose name has something before it, or nothing.
    #[inline]
    pub(crate) fn prefixed_slot(&mut self, prefix: &str, name: &str, kind: &str, value: Value<'a>) {
        self.text.extend_from_slice(SLOT_START);
        for part in [prefix, name, ":", kind] {
            self.text.extend_from_slice(part.as_bytes());
        }
        self.text.extend_from_slice(SLOT_END);
        self.parts.values.push(value);
    }

    /// How far it is drawn, for [`Sketch::rewind`].
    pub(crate) fn mark(&self) -> SketchMark {
        SketchMark {
            text: self.text.len(),
            values: self.parts.values.len(),
            fixes: self.parts.fixes.len(),
            time: self.parts.time,
            time_source: self.parts.time_source,
            is_listing: self.is_listing,
            unlisted: self.unlisted,
        }
    }

    /// Forgets what was drawn since a mark. The message is drawn last, so it is none of it.
    pub(crate) fn rewind(&mut self, mark: SketchMark) {
        self.text.truncate(mark.text);
        self.parts.values.truncate(mark.values);
        self.parts.fixes.truncate(mark.fixes);
        self.parts.beside.clear();
        self.parts.time = mark.time;
        self.parts.time_source = mark.time_source;
        self.parts.message = Message::Line;
        (self.is_listing, self.unlisted) = (mark.is_listing, mark.unlisted);
    }

    /// The shape's text.
    pub(crate) fn shape(&self) -> &[u8] {
        self.text
    }

    /// Draws a slot of kind `t`.
    #[inline]
    pub(crate) fn text(&mut self, slot: &str, text: &'a str) {
        self.slot(slot, Value::Str(Cow::Borrowed(text)));
    }

    /// Keeps the text of the last slot, because rendering its value gives another one.
    pub(crate) fn fix(&mut self, text: &'a [u8]) {
        let slot = cast::low_u16(self.parts.values.len().saturating_sub(1));
        self.parts.fixes.push(Fix {
            slot,
            text: Cow::Borrowed(text),
        });
    }

    /// Draws the record's time, which was written as `text`.
    pub(crate) fn time(
        &mut self,
        written: &TimestampText,
        text: &'a [u8],
        source: fn(Assumption) -> TimeSource,
    ) {
        self.text.extend_from_slice("⟨_time:".as_bytes());
        written.form.write_pattern(self.text);
        self.text.extend_from_slice(SLOT_END);
        self.parts.values.push(Value::Null);
        self.parts.time = Some(written.time);
        self.parts.time_source = source(written.form.assumed());
        if !written.exact {
            self.fix(text);
        }
    }

    /// Draws the record's time in a concrete pattern that a caller has found.
    pub(crate) fn time_in(&mut self, pattern: &[u8], time: Timestamp, source: TimeSource) {
        self.text.extend_from_slice("⟨_time:".as_bytes());
        self.text.extend_from_slice(pattern);
        self.text.extend_from_slice(SLOT_END);
        self.parts.values.push(Value::Null);
        (self.parts.time, self.parts.time_source) = (Some(time), source);
    }

    /// The message, if it is drawn and is UTF-8.
    pub(crate) fn message_text(&self) -> Option<&'a str> {
        match self.parts.message {
            Message::Part(Value::Str(Cow::Borrowed(text))) => Some(text),
            _ => None,
        }
    }

    /// Forgets the message, which is what was drawn last; gives the place where it stood.
    pub(crate) fn take_message(&mut self) -> SketchMark {
        let mark = self.mark();
        let before = SketchMark {
            text: mark.text.saturating_sub(MESSAGE_SLOT.len()),
            values: mark.values.saturating_sub(1),
            ..mark
        };
        self.rewind(before);
        before
    }

    /// Adds what was drawn by other means: text and the values of its slots.
    pub(crate) fn append(&mut self, draw: impl FnOnce(&mut Vec<u8>), parts: Parts<'a>) {
        draw(self.text);
        let slots = cast::low_u16(self.parts.values.len());
        let fixes = parts.fixes.into_iter();
        self.parts.fixes.extend(fixes.map(|fix| Fix {
            slot: fix.slot + slots,
            ..fix
        }));
        self.parts.values.extend(parts.values);
        self.parts.beside.extend(parts.beside);
        self.parts.message = parts.message;
        if parts.time.is_some() {
            (self.parts.time, self.parts.time_source) = (parts.time, parts.time_source);
        }
    }

    /// Makes it one that only lists fields: what is drawn need not give the line back.
    pub(crate) fn become_listing(&mut self) {
        self.is_listing = true;
    }

    /// Whether it only lists fields.
    pub(crate) fn is_listing(&self) -> bool {
        self.is_listing
    }

    /// Ends the sketch: its parts, and how many fields it could not list if it only lists fields.
    pub(crate) fn finish(mut self) -> (Parts<'a>, Option<usize>) {
        if self.is_listing {
            // The line is there as it is.
            self.parts.fixes.clear();
        }
        let unlisted = self.is_listing.then_some(self.unlisted);
        (self.parts, unlisted)
    }

    /// Lists a field, if there is room for it; otherwise counts it.
    pub(crate) fn list_slot(&mut self, name: &str, kind: &str, value: Value<'a>) {
        let before = self.text.len();
        self.text.extend_from_slice(SLOT_START);
        Shape::write_listed_name(name, self.text);
        self.text.extend_from_slice(b":");
        self.text.extend_from_slice(kind.as_bytes());
        self.text.extend_from_slice(SLOT_END);
        if self.text.len() > LISTING_BYTES_MAX - SHAPE_BYTES_MAX {
            self.text.truncate(before);
            self.unlisted += 1;
            return;
        }
        self.parts.values.push(value);
    }

    /// Adds what was listed by other means, which gives how many fields it could not list; the sketch
    /// becomes a list of fields.
    pub(crate) fn append_listing(
        &mut self,
        list: impl FnOnce(&mut Vec<u8>, &mut Parts<'a>) -> usize,
        mut parts: Parts<'a>,
    ) {
        self.become_listing();
        self.unlisted += list(self.text, &mut parts);
        self.append(|_| (), parts);
    }

    /// Whether a slot of this name was drawn.
    pub(crate) fn has_slot(&self, name: &[u8]) -> bool {
        self.slots_written().any(|inside| is_slot_of(inside, name))
    }

    /// The value of the first slot of this name.
    pub(crate) fn value(&self, name: &[u8]) -> Option<&Value<'a>> {
        let mut slots = self.slots_written();
        let slot = slots.position(|inside| is_slot_of(inside, name))?;
        self.parts.values.get(slot)
    }

    /// The names of the slots so far, as they are written, in order.
    pub(crate) fn slot_names(&self) -> Vec<&[u8]> {
        let names = self.slots_written().filter_map(|inside| {
            let mut ends = memchr::memchr_iter(SLOT_END[0], inside);
            let end = ends.find(|end| inside[*end..].starts_with(SLOT_END))?;
            let inside = &inside[..end];
            // Kinds have no colon, but times.
            Some(&inside[..memchr::memrchr(b':', inside)?])
        });
        let mut names: Vec<&[u8]> = names.collect();
        names.sort_unstable();
        names
    }

    /// The text of the shape behind the start of each slot. A searcher of substrings takes longer to make than the
    /// text takes to read.
    fn slots_written(&self) -> impl Iterator<Item = &[u8]> {
        let starts = memchr::memchr_iter(SLOT_START[0], self.text);
        starts.filter_map(|at| self.text[at..].strip_prefix(SLOT_START))
    }

    /// Draws the message as text.
    pub(crate) fn message(&mut self, message: &'a [u8]) {
        self.text.extend_from_slice(MESSAGE_SLOT.as_bytes());
        self.parts.values.push(Value::Null);
        self.parts.message = Message::Part(Value::text(message));
    }
}

/// Whether a slot, of which this is the text behind its start, has this name.
fn is_slot_of(inside: &[u8], name: &[u8]) -> bool {
    inside.starts_with(name) && inside.get(name.len()) == Some(&b':')
}
