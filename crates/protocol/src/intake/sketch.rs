//! A record whose parts are found in the order of its line.
//!
//! Invariant: `text` is the shape of what was drawn so far, `values` has one value per slot of it.

use logpond_record::{Fix, Message, TimeSource, Timestamp, Value};
use std::borrow::Cow;

use super::timestamps::Written;

/// What a parser has made of a line: all of a record but its identity and its compiled shape.
pub(crate) struct Parts<'a> {
    pub(crate) time: Option<Timestamp>,
    pub(crate) time_source: TimeSource,
    pub(crate) message: Message<'a>,
    pub(crate) values: Vec<Value<'a>>,
    pub(crate) fixes: Vec<Fix<'a>>,
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
        }
    }
}

/// A shape's text with the values of its slots, drawn from left to right.
pub(crate) struct Sketch<'s, 'a> {
    text: &'s mut Vec<u8>,
    pub(crate) parts: Parts<'a>,
}

impl<'s, 'a> Sketch<'s, 'a> {
    /// An empty sketch that draws into `text` and expects about `capacity` slots.
    pub(crate) fn new(text: &'s mut Vec<u8>, capacity: usize) -> Sketch<'s, 'a> {
        text.clear();
        Sketch {
            text,
            parts: Parts::new(capacity),
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
        self.text.extend_from_slice("⟨".as_bytes());
        self.text.extend_from_slice(slot.as_bytes());
        self.text.extend_from_slice("⟩".as_bytes());
        self.parts.values.push(value);
    }

    /// Draws literal ASCII text. Invariant: callers have checked that it is.
    pub(crate) fn ascii(&mut self, literal: &[u8]) {
        debug_assert!(literal.is_ascii());
        self.literal(std::str::from_utf8(literal).unwrap_or("?"));
    }

    /// Draws a slot whose name is `first.second`.
    pub(crate) fn named_slot(&mut self, first: &str, second: &str, kind: &str, value: Value<'a>) {
        self.text.extend_from_slice("⟨".as_bytes());
        for part in [first, ".", second, ":"] {
            self.text.extend_from_slice(part.as_bytes());
        }
        self.text.extend_from_slice(kind.as_bytes());
        self.text.extend_from_slice("⟩".as_bytes());
        self.parts.values.push(value);
    }

    /// Forgets what was drawn.
    pub(crate) fn clear(&mut self) {
        self.text.clear();
        self.parts = Parts::new(self.parts.values.capacity());
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
        let slot = self.parts.values.len().saturating_sub(1) as u16;
        self.parts.fixes.push(Fix {
            slot,
            text: Cow::Borrowed(text),
        });
    }

    /// Draws the record's time, which was written as `text`.
    pub(crate) fn time(&mut self, written: &Written, text: &'a [u8], source: TimeSource) {
        self.text.extend_from_slice("⟨_time:".as_bytes());
        written.form.write_pattern(self.text);
        self.text.extend_from_slice("⟩".as_bytes());
        self.parts.values.push(Value::Null);
        self.parts.time = Some(written.time);
        self.parts.time_source = source;
        if !written.exact {
            self.fix(text);
        }
    }

    /// Draws the message as text.
    pub(crate) fn message(&mut self, message: &'a [u8]) {
        self.slot("_msg:t", Value::Null);
        self.parts.message = Message::Part(Value::text(message));
    }
}
