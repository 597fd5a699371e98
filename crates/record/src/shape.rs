//! Shapes: how the original line of a record is rebuilt from its fields.
//!
//! A shape is literal text with slots, written as it is stored:
//!
//! ```text
//! {"ts":"⟨_time:%Y-%m-%dT%H:%M:%S.%6f%z[Z]⟩","level":"⟨level:j⟩","status":⟨status:i⟩}
//! ⟨remote_addr:t⟩ - - [⟨_time:%d/%b/%Y:%H:%M:%S %z[+0000]⟩] "⟨method:t⟩ ⟨path:t⟩ …
//! ```
//!
//! A slot names the field that fills it and the kind of text it becomes (see [`SlotKind`]).
//! `_time` is the record's time and `_msg` its message; every other name is a field. A line that
//! contains `⟨` or `⟩` itself has no shape and is kept whole.
//!
//! The shape of a line that is kept whole only lists fields. There, names hold what slots cannot as it
//! is behind U+FDD0: `<` for `⟨`, `>` for `⟩`, `:` for a colon that would make the name a time, and
//! U+FDD0 for itself.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use crate::cast;
use crate::json::escape_json;
use crate::label_name::TakenNames;
use crate::limits::{LISTING_BYTES_MAX, SHAPE_BYTES_MAX, SHAPES_MAX};
use crate::time::Timestamp;
use crate::time_pattern::TimePattern;
use crate::value::Value;

/// Opens a slot in a shape's text.
const OPEN: &str = "⟨";
/// Closes a slot in a shape's text.
const CLOSE: &str = "⟩";
/// Stands in a name before what a slot cannot hold as it is. No text means anything by this code point.
const ESCAPE: char = '\u{fdd0}';

/// Shapes with more slots than this find them by name without looking at each.
const SLOTS_SEARCHED_MAX: usize = 32;

/// What kind of text a slot's value becomes in the line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SlotKind {
    /// `t`: the value's text as it is.
    Text,
    /// `j`: the inside of a JSON string, with the escapes of RFC 8259 where they are needed only.
    JsonString,
    /// `q`: the inside of a quoted string in which `"` and `\` are preceded by `\` (logfmt).
    Quoted,
    /// `d`: the inside of an RFC 5424 parameter value: `"`, `\` and `]` are preceded by `\`.
    StructuredData,
    /// `i`: a whole number.
    Int,
    /// `f`: a number with a fraction.
    Float,
    /// `b`: `true` or `false`.
    Bool,
    /// `n`: `null`.
    Null,
    /// `r`: JSON text of an array or an empty object.
    Json,
    /// `p`: the syslog facility; it prints nothing and is added to the severity that follows.
    Facility,
    /// `v`: the syslog severity, printed as facility * 8 + severity.
    Severity,
    /// `%…`: the record's time in this form.
    Time(TimePattern),
}

impl SlotKind {
    /// True if its values are whole numbers.
    pub fn is_whole_number(&self) -> bool {
        matches!(
            self,
            SlotKind::Int | SlotKind::Facility | SlotKind::Severity
        )
    }

    /// Appends a text as this kind of slot shows it, with its escapes.
    pub fn write_text(&self, text: &[u8], out: &mut Vec<u8>) {
        match self {
            SlotKind::JsonString => escape_json(text, out),
            SlotKind::Quoted => escape_with_backslash(text, b"\"\\", out),
            SlotKind::StructuredData => escape_with_backslash(text, b"\"\\]", out),
            _ => out.extend_from_slice(text),
        }
    }
}

/// A place in a shape that a field fills.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The field's name, `_time` or `_msg`.
    pub name: Box<str>,
    /// What its value becomes in the line.
    pub kind: SlotKind,
}

impl Slot {
    /// Whether the record's message fills the slot. A field may be called `_msg` too: then it is
    /// no text.
    pub fn is_message(&self) -> bool {
        &*self.name == "_msg"
            && matches!(
                self.kind,
                SlotKind::Text | SlotKind::JsonString | SlotKind::Quoted | SlotKind::StructuredData
            )
    }

    /// Whether a field of the record fills the slot.
    pub fn is_field(&self) -> bool {
        !self.is_message() && !matches!(self.kind, SlotKind::Time(_))
    }
}

/// A part of a shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Text that every line of the shape has here.
    Literal(Box<str>),
    /// The slot with this index.
    Slot(usize),
}

/// How a line is rebuilt. See the module's documentation.
pub struct Shape {
    text: Box<str>,
    pieces: Box<[Piece]>,
    slots: Box<[Slot]>,
    message_slot: Option<usize>,
    /// True if the line is a JSON object, or ends with one.
    has_json: bool,
    taken: TakenNames,
    /// The slots of fields by name, if there are more than [`SLOTS_SEARCHED_MAX`].
    by_name: Box<[u32]>,
}

/// Why a text is not a shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShapeError {
    /// A slot is not closed, or its closing mark stands alone.
    Unbalanced,
    /// A slot has no kind, or one that is not known.
    Kind(String),
    /// The text is longer than [`LISTING_BYTES_MAX`], or what is literal in it than [`SHAPE_BYTES_MAX`].
    TooLong,
}

impl fmt::Display for ShapeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ShapeError::Unbalanced => f.write_str("a slot of the shape is not closed"),
            ShapeError::Kind(slot) => write!(f, "slot {slot:?} of the shape has no known kind"),
            ShapeError::TooLong => write!(
                f,
                "the shape is longer than {LISTING_BYTES_MAX} bytes, or its literal text than \
                 {SHAPE_BYTES_MAX}"
            ),
        }
    }
}

impl std::error::Error for ShapeError {}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl PartialEq for Shape {
    fn eq(&self, other: &Shape) -> bool {
        self.text == other.text
    }
}

impl Eq for Shape {}

impl Shape {
    /// The shape of a line that is its message: `⟨_msg:t⟩`.
    pub const TEXT: &str = "⟨_msg:t⟩";

    /// Compiles a shape.
    pub fn new(text: &str) -> Result<Shape, ShapeError> {
        if text.len() > LISTING_BYTES_MAX {
            return Err(ShapeError::TooLong);
        }
        let mut pieces = Vec::new();
        let mut slots: Vec<Slot> = Vec::new();
        let mut rest = text;
        let mut literal_bytes = 0;
        while let Some(open) = rest.find(OPEN) {
            literal_bytes += open;
            push_literal(&rest[..open], &mut pieces)?;
            let inside = &rest[open + OPEN.len()..];
            let close = inside.find(CLOSE).ok_or(ShapeError::Unbalanced)?;
            pieces.push(Piece::Slot(slots.len()));
            slots.push(slot(&inside[..close])?);
            rest = &inside[close + CLOSE.len()..];
        }
        if literal_bytes + rest.len() > SHAPE_BYTES_MAX {
            return Err(ShapeError::TooLong);
        }
        push_literal(rest, &mut pieces)?;
        let message_slot = slots.iter().position(Slot::is_message);
        let fields = slots.iter().filter(|slot| slot.is_field());
        Ok(Shape {
            text: text.into(),
            has_json: has_json(&pieces, &slots),
            pieces: pieces.into(),
            taken: TakenNames::new(fields.map(|slot| &*slot.name)),
            by_name: by_name(&slots),
            slots: slots.into(),
            message_slot,
        })
    }

    /// The shape of a line that is its message.
    pub fn text() -> Shape {
        Shape {
            text: Shape::TEXT.into(),
            pieces: [Piece::Slot(0)].into(),
            slots: [Slot {
                name: "_msg".into(),
                kind: SlotKind::Text,
            }]
            .into(),
            message_slot: Some(0),
            has_json: false,
            taken: TakenNames::default(),
            by_name: Box::default(),
        }
    }

    /// The slot that the field of this name fills: the last one, should there be several.
    pub fn field_slot(&self, name: &str) -> Option<usize> {
        if self.by_name.is_empty() {
            let is_it = |slot: &Slot| *slot.name == *name && slot.is_field();
            return self.slots.iter().rposition(is_it);
        }
        let name_of = |slot: u32| &*self.slots[slot as usize].name;
        let end = self.by_name.partition_point(|slot| name_of(*slot) <= name);
        let last = *self.by_name[..end].last()?;
        (name_of(last) == name).then_some(last as usize)
    }

    /// Appends a name as it stands in a slot of a shape that only lists fields.
    pub fn write_listed_name(name: &str, out: &mut Vec<u8>) {
        let is_time = name.starts_with("_time:");
        let (mut rest, mut at) = (name, 0);
        let mark = |c: char| match c {
            '⟨' => Some('<'),
            '⟩' => Some('>'),
            ESCAPE => Some(ESCAPE),
            ':' if is_time => Some(':'),
            _ => None,
        };
        while let Some(c) = rest[at..].chars().next() {
            let after = at + c.len_utf8();
            let Some(mark) = mark(c) else {
                at = after;
                continue;
            };
            out.extend_from_slice(&rest.as_bytes()[..at]);
            let mut buffer = [0; 4];
            out.extend_from_slice(ESCAPE.encode_utf8(&mut buffer).as_bytes());
            out.extend_from_slice(mark.encode_utf8(&mut buffer).as_bytes());
            (rest, at) = (&rest[after..], 0);
        }
        out.extend_from_slice(rest.as_bytes());
    }

    /// The shape as it is stored.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Literals and slots in the order of the line.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// The slots in the order of the line.
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// The names that fields may have.
    pub(crate) fn taken(&self) -> TakenNames {
        self.taken
    }

    /// The slot that is the message.
    pub fn message_slot(&self) -> Option<usize> {
        self.message_slot
    }

    /// True if the message is the whole line: there is no `_msg` slot, and the line is no JSON object, nor one
    /// behind a header.
    pub fn message_is_line(&self) -> bool {
        self.message_slot.is_none() && !self.has_json && !self.is_json()
    }

    /// Whether lines of this shape are JSON objects.
    pub fn is_json(&self) -> bool {
        self.text.trim_ascii_start().starts_with('{')
    }

    /// Whether a text next to a slot can run together with the slot's text into one word, so that
    /// the words of the line are not just those of its parts.
    ///
    /// `is_word_byte` says which bytes words consist of.
    pub fn is_glued(&self, is_word_byte: impl Fn(u8) -> bool) -> bool {
        self.pieces.windows(2).any(|pair| match pair {
            [Piece::Slot(index), Piece::Slot(_)] => self.slots[*index].kind != SlotKind::Facility,
            [Piece::Literal(text), Piece::Slot(_)] => {
                text.bytes().last().is_some_and(&is_word_byte)
            }
            [Piece::Slot(_), Piece::Literal(text)] => {
                text.bytes().next().is_some_and(&is_word_byte)
            }
            _ => false,
        })
    }

    /// Appends one slot's text.
    pub fn render_slot(&self, index: usize, time: Timestamp, value: &Value<'_>, out: &mut Vec<u8>) {
        let kind = &self.slots[index].kind;
        match kind {
            SlotKind::Time(pattern) => pattern.render(time, out),
            SlotKind::Null => out.extend_from_slice(b"null"),
            SlotKind::Facility => {}
            // A column may hold whole numbers as floats and the reverse; the kind decides.
            SlotKind::Int => match value {
                Value::Float(f) => crate::value::write_int(cast::whole_i64(*f), out),
                other => other.write_text(out),
            },
            SlotKind::Float => match value {
                Value::Int(i) => crate::value::write_float(cast::float(*i), out),
                other => other.write_text(out),
            },
            SlotKind::Bool | SlotKind::Json | SlotKind::Severity => value.write_text(out),
            SlotKind::Text | SlotKind::JsonString | SlotKind::Quoted | SlotKind::StructuredData => {
                kind.write_text(&value.to_text(), out);
            }
        }
    }

    /// Appends the line: `value` gives what fills each slot (by its index), and is not asked for
    /// `Time` and `Null` slots; `fix` gives the text of the slots that render differently.
    pub fn render_fixed<'v, 'f>(
        &self,
        time: Timestamp,
        mut value: impl FnMut(usize) -> Value<'v>,
        mut fix: impl FnMut(usize) -> Option<&'f [u8]>,
        out: &mut Vec<u8>,
    ) {
        let mut facility = 0;
        for piece in &self.pieces {
            let index = match piece {
                Piece::Literal(text) => {
                    out.extend_from_slice(text.as_bytes());
                    continue;
                }
                Piece::Slot(index) => *index,
            };
            if let Some(text) = fix(index) {
                out.extend_from_slice(text);
                continue;
            }
            match &self.slots[index].kind {
                SlotKind::Time(pattern) => pattern.render(time, out),
                SlotKind::Null => out.extend_from_slice(b"null"),
                SlotKind::Facility => facility = as_int(&value(index)),
                SlotKind::Severity => {
                    let priority = facility.wrapping_mul(8).wrapping_add(as_int(&value(index)));
                    crate::value::write_int(priority, out);
                }
                _ => self.render_slot(index, time, &value(index), out),
            }
        }
    }

    /// Appends the line of a record without fixes.
    pub fn render<'v>(
        &self,
        time: Timestamp,
        value: impl FnMut(usize) -> Value<'v>,
        out: &mut Vec<u8>,
    ) {
        self.render_fixed(time, value, |_| None, out);
    }
}

/// True if a line ends with a JSON object: from an opening brace on, slots are of kinds that JSON has. Of a
/// line that is kept whole the shape lists fields behind the brace and does not close it.
fn has_json(pieces: &[Piece], slots: &[Slot]) -> bool {
    let (mut is_object, mut is_listing) = (false, false);
    for (at, piece) in pieces.iter().enumerate() {
        match piece {
            Piece::Slot(slot) if may_be_in_json(&slots[*slot].kind) => {}
            Piece::Slot(_) => (is_object, is_listing) = (false, false),
            Piece::Literal(text) => {
                is_object |= opens_object(text);
                is_listing &= !text.contains('}');
                is_listing |= text.ends_with('{') && at + 1 < pieces.len();
            }
        }
    }
    let is_closed = |text: &str| text.trim_ascii_end().ends_with('}');
    let is_at_end = matches!(pieces.last(), Some(Piece::Literal(text)) if is_closed(text));
    is_object && is_at_end || is_listing
}

/// True if a literal has a brace with a name or a closing brace behind it.
fn opens_object(literal: &str) -> bool {
    let mut braces = literal.match_indices('{');
    braces.any(|(at, _)| literal[at + 1..].trim_ascii_start().starts_with(['"', '}']))
}

fn may_be_in_json(kind: &SlotKind) -> bool {
    matches!(
        kind,
        SlotKind::JsonString
            | SlotKind::Int
            | SlotKind::Float
            | SlotKind::Bool
            | SlotKind::Null
            | SlotKind::Json
            | SlotKind::Time(_)
    )
}

/// The slots of fields by name, of one name in their order; nothing if they are few.
fn by_name(slots: &[Slot]) -> Box<[u32]> {
    if slots.len() <= SLOTS_SEARCHED_MAX {
        return Box::default();
    }
    let fields = (0..cast::low_u32(slots.len())).filter(|slot| slots[*slot as usize].is_field());
    let mut fields: Vec<u32> = fields.collect();
    fields.sort_by_key(|slot| &slots[*slot as usize].name);
    fields.into()
}

/// A name without the escapes of [`Shape::write_listed_name`].
fn listed_name(written: &str) -> Box<str> {
    if !written.contains(ESCAPE) {
        return written.into();
    }
    let mut name = String::with_capacity(written.len());
    let mut chars = written.chars();
    while let Some(c) = chars.next() {
        let mut behind = chars.clone();
        let meant = match (c, behind.next()) {
            (ESCAPE, Some('<')) => '⟨',
            (ESCAPE, Some('>')) => '⟩',
            (ESCAPE, Some(c @ (':' | ESCAPE))) => c,
            _ => {
                name.push(c);
                continue;
            }
        };
        chars = behind;
        name.push(meant);
    }
    name.into()
}

fn as_int(value: &Value<'_>) -> i64 {
    cast::whole_i64(value.as_number().unwrap_or(0.0))
}

fn push_literal(text: &str, pieces: &mut Vec<Piece>) -> Result<(), ShapeError> {
    if text.contains(CLOSE) {
        return Err(ShapeError::Unbalanced);
    }
    if !text.is_empty() {
        pieces.push(Piece::Literal(text.into()));
    }
    Ok(())
}

/// Compiles the inside of a slot: `name:kind`. Names may hold colons, kinds begin after the last
/// one, except times, whose patterns hold colons too and begin at `:%`.
fn slot(inside: &str) -> Result<Slot, ShapeError> {
    let unknown = || ShapeError::Kind(inside.to_owned());
    if let Some(pattern) = inside.strip_prefix("_time:").filter(|p| p.contains('%')) {
        let pattern = TimePattern::new(pattern).map_err(|_| unknown())?;
        return Ok(Slot {
            name: "_time".into(),
            kind: SlotKind::Time(pattern),
        });
    }
    let (name, kind) = inside.rsplit_once(':').ok_or_else(unknown)?;
    let kind = match kind {
        "t" => SlotKind::Text,
        "j" => SlotKind::JsonString,
        "q" => SlotKind::Quoted,
        "d" => SlotKind::StructuredData,
        "i" => SlotKind::Int,
        "f" => SlotKind::Float,
        "b" => SlotKind::Bool,
        "n" => SlotKind::Null,
        "r" => SlotKind::Json,
        "p" => SlotKind::Facility,
        "v" => SlotKind::Severity,
        _ => return Err(unknown()),
    };
    Ok(Slot {
        name: listed_name(name),
        kind,
    })
}

fn escape_with_backslash(text: &[u8], special: &[u8], out: &mut Vec<u8>) {
    for &byte in text {
        if special.contains(&byte) {
            out.push(b'\\');
        }
        out.push(byte);
    }
}

/// The distinct shapes of a stream of lines, compiled once each.
pub struct ShapeTable {
    shapes: HashMap<Box<[u8]>, Option<Arc<Shape>>>,
    text: Arc<Shape>,
}

impl Default for ShapeTable {
    fn default() -> ShapeTable {
        ShapeTable::new()
    }
}

impl ShapeTable {
    /// An empty table.
    pub fn new() -> ShapeTable {
        ShapeTable {
            shapes: HashMap::new(),
            text: Arc::new(Shape::text()),
        }
    }

    /// The shape of a line that is its message.
    pub fn text(&self) -> Arc<Shape> {
        Arc::clone(&self.text)
    }

    /// How many distinct texts the table has seen.
    pub fn len(&self) -> usize {
        self.shapes.len()
    }

    /// Whether the table has seen no text yet.
    pub fn is_empty(&self) -> bool {
        self.shapes.is_empty()
    }

    /// The shape with this text, or `None` if it does not compile or the table is full.
    pub fn intern(&mut self, text: &[u8]) -> Option<Arc<Shape>> {
        if let Some(known) = self.shapes.get(text) {
            return known.clone();
        }
        if self.shapes.len() >= SHAPES_MAX || text.len() > SHAPE_BYTES_MAX {
            return None;
        }
        let shape = std::str::from_utf8(text)
            .ok()
            .and_then(|t| Shape::new(t).ok())
            .map(Arc::new);
        self.shapes.insert(text.into(), shape.clone());
        shape
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::borrow::Cow;

    fn render(shape: &str, values: &[Value<'_>]) -> String {
        let shape = Shape::new(shape).unwrap();
        let mut out = Vec::new();
        shape.render(
            Timestamp(1_772_409_752_465_922_000),
            |i| values[i].clone(),
            &mut out,
        );
        String::from_utf8(out).unwrap()
    }

    fn text(s: &str) -> Value<'_> {
        Value::Str(Cow::Borrowed(s))
    }

    #[test]
    fn lines_are_rebuilt() {
        let table = [
            (
                r#"{"ts":"⟨_time:%Y-%m-%dT%H:%M:%S.%6f%z[Z]⟩","m":"⟨_msg:j⟩","a":{"b":⟨a.b:i⟩,"n":⟨n:n⟩}}"#,
                vec![
                    Value::Null,
                    text("x\"\n\u{1}é"),
                    Value::Int(-3),
                    Value::Null,
                ],
                "{\"ts\":\"2026-03-02T00:02:32.465922Z\",\"m\":\"x\\\"\\n\\u0001é\",\"a\":{\"b\":-3,\"n\":null}}",
            ),
            (
                "<⟨facility:p⟩⟨severity:v⟩>1",
                vec![Value::Int(3), Value::Int(4)],
                "<28>1",
            ),
            (
                "[x a=\"⟨x.a:d⟩\"]",
                vec![text("]\"\\")],
                "[x a=\"\\]\\\"\\\\\"]",
            ),
            (
                "⟨a:b:t⟩⟨f:f⟩ ⟨i:i⟩",
                vec![text("v"), Value::Int(5), Value::Float(7.0)],
                "v5.0 7",
            ),
        ];
        for (shape, values, line) in table {
            assert_eq!(render(shape, &values), line);
        }
    }

    #[test]
    fn wrong_shapes_are_refused() {
        assert_eq!(Shape::new("⟨a:t").unwrap_err(), ShapeError::Unbalanced);
        assert_eq!(Shape::new("a⟩").unwrap_err(), ShapeError::Unbalanced);
        assert_eq!(
            Shape::new("⟨a:?⟩").unwrap_err(),
            ShapeError::Kind("a:?".into())
        );
        assert_eq!(
            Shape::new(&"x".repeat(1 << 20)).unwrap_err(),
            ShapeError::TooLong
        );
    }

    #[test]
    fn shapes_list_any_name() {
        let names = [
            "a",
            "",
            "⟨",
            "⟩x⟨",
            "_time:%Y",
            "_time:t",
            "\u{fdd0}",
            "\u{fdd0}<",
            "a:b",
            "\u{fdd0}\u{fdd0}>",
            "é",
        ];
        let mut text = b"{".to_vec();
        for name in names.iter().copied().cycle().take(names.len() * 9) {
            text.extend_from_slice("⟨".as_bytes());
            Shape::write_listed_name(name, &mut text);
            text.extend_from_slice(":i⟩".as_bytes());
        }
        text.push(b'}');
        let text = String::from_utf8(text).unwrap();
        for (text, count) in [(&*text, names.len() * 9), ("⟨a:i⟩⟨b:i⟩⟨a:i⟩", 3)] {
            let shape = Shape::new(text).unwrap();
            assert_eq!(shape.slots().len(), count);
            for (at, slot) in shape.slots().iter().enumerate() {
                let expected = names[at % names.len()];
                assert!(count == 3 || *slot.name == *expected, "{expected}");
                let found = shape.field_slot(&slot.name).unwrap();
                assert_eq!(shape.slots()[found].name, slot.name);
                // The last one of a name.
                let later = &shape.slots()[found + 1..];
                assert!(later.iter().all(|other| other.name != slot.name));
            }
            assert_eq!(shape.field_slot("no such"), None);
        }
        // What an escape does not stand before is itself.
        let shape = Shape::new("⟨\u{fdd0}a:i⟩").unwrap();
        assert_eq!(&*shape.slots()[0].name, "\u{fdd0}a");
    }

    /// Fields of `{"status":200}` without a text are not a message, wherever the object stands.
    #[test]
    fn lines_with_json_and_without_a_text_have_no_message() {
        let table = [
            // Access logs, pairs and lists.
            ("⟨host:t⟩ - - \"GET ⟨path:t⟩\" ⟨status:i⟩", true),
            ("k=⟨k:t⟩ code=⟨code:i⟩", true),
            (
                "<⟨facility:p⟩⟨severity:v⟩>1 - ⟨hostname:t⟩ - - - k=⟨k:t⟩",
                true,
            ),
            ("CEF:0|⟨vendor:t⟩|src=⟨src:t⟩", true),
            ("[src:\"⟨src:j⟩\"; ]", true),
            // Braces of a format that is no JSON.
            ("⟨host:t⟩ {⟨status:i⟩} ⟨path:t⟩", true),
            ("⟨host:t⟩ {⟨status:i⟩}", true),
            ("⟨host:t⟩ {\"⟨path:t⟩\"}", true),
            ("⟨host:t⟩ {\"a\":⟨a:i⟩} ⟨path:t⟩", true),
            ("⟨host:t⟩ {\"a\":⟨a:i⟩} x", true),
            // A message.
            (Shape::TEXT, false),
            (r#"{"msg":"⟨_msg:j⟩"}"#, false),
            (r#"<13>x: {"msg":"⟨_msg:j⟩"}"#, false),
            // JSON.
            (r#"{"a":"⟨a:j⟩"}"#, false),
            (r#" {"a":⟨a:i⟩} "#, false),
            ("{⟨a:i⟩⟨b:j⟩", false),
            ("{}", false),
            // JSON behind headers: RFC 5424, RFC 3164, with a cookie, without a priority.
            (
                r#"<⟨facility:p⟩⟨severity:v⟩>1 ⟨_time:%s⟩ ⟨hostname:t⟩ ⟨app:t⟩ - - - {"k":"⟨k:j⟩","code":⟨code:i⟩}"#,
                false,
            ),
            (
                r#"<⟨facility:p⟩⟨severity:v⟩>⟨_time:%b %e %H:%M:%S⟩ ⟨hostname:t⟩ ⟨app:t⟩: { "a":⟨a:n⟩,"b":⟨b:r⟩} "#,
                false,
            ),
            (
                r#"<⟨facility:p⟩⟨severity:v⟩>1 - h - - - @cee: {"k":{"l":⟨k.l:f⟩}}"#,
                false,
            ),
            (
                r#"⟨hostname:t⟩ [x {="⟨x.y:d⟩"] {"t":"⟨_time:%Y⟩","b":⟨b:b⟩}"#,
                false,
            ),
            ("<⟨facility:p⟩⟨severity:v⟩>1 - h - - - {}", false),
            // The shape of such a line that is kept whole.
            (
                "<⟨facility:p⟩⟨severity:v⟩>1 - ⟨hostname:t⟩ - - - {⟨k:j⟩⟨code:i⟩",
                false,
            ),
        ];
        for (text, is_line) in table {
            let shape = Shape::new(text).unwrap();
            assert_eq!(shape.message_is_line(), is_line, "{text}");
        }
    }

    #[test]
    fn listings_may_be_long() {
        let name = "n".repeat(SHAPE_BYTES_MAX);
        let listing = format!("{{⟨{name}1:i⟩⟨{name}2:i⟩}}");
        assert_eq!(Shape::new(&listing).unwrap().slots().len(), 2);
        let longer = format!("{{⟨{}:i⟩}}", "n".repeat(LISTING_BYTES_MAX));
        assert_eq!(Shape::new(&longer).unwrap_err(), ShapeError::TooLong);
        assert!(ShapeTable::new().intern(listing.as_bytes()).is_none());
    }

    #[test]
    fn a_table_is_bounded() {
        let mut table = ShapeTable::new();
        for i in 0..SHAPES_MAX {
            assert!(table.intern(format!("{i}⟨_msg:t⟩").as_bytes()).is_some());
        }
        assert!(table.intern(b"one more").is_none());
        assert!(table.intern("0⟨_msg:t⟩".as_bytes()).is_some());
    }
}
