//! A record whose fields are found one by one and whose time and message are chosen at the end.
//!
//! JSON objects and logfmt lines name their fields freely; which field is the time or the message
//! is known only when all names are. So slots are collected first, and the shape is drawn from the
//! line and the slots when the line ends.
//!
//! A line is *irregular* where slots cannot rebuild it: a field's name holds `⟨` or `⟩`, reads like
//! a slot for the time (`_time:%…`), is longer than `FIELD_NAME_BYTES_MAX`, or occurs twice; or
//! there are more than `FIELDS_MAX` fields, or more literal text than a shape may have. Its line is
//! kept whole, and its shape just lists the slots of its fields. Of several fields with one name the
//! last one counts, as with nearly all readers of JSON; in records of the audit system the first one,
//! which is the kernel's.
//!
//! Invariant: every field is listed, or counted as one that is not. No line has a field of the name by which
//! that is said: a sender could make answers incomplete by it.
//!
//! A field that is neither the time nor the message and has a reserved name is called `NAME@label`.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use logpond_record::limits::{
    FIELD_NAME_BYTES_MAX, FIELDS_MAX, LISTING_BYTES_MAX, SHAPE_BYTES_MAX, UNLISTED_FIELD,
};
use logpond_record::{Fix, LABEL_SUFFIX, Message, Shape, TimeSource, Timestamp, Value, unreserved};

use super::audit;
use super::shapes::Shapes;
use super::sketch::{Parts, Sketch};
use super::timestamps::{Form, TimeReader, Written};

/// Names of the time field; the first of these that is an instant counts.
const TIME_NAMES: [&[u8]; 5] = [b"_time", b"time", b"timestamp", b"ts", b"@timestamp"];

/// Names of the message field; the first of these that is text counts. `log` is what Fluentd, Fluent
/// Bit and Docker call a line.
pub(crate) const MESSAGE_NAMES: [&str; 4] = ["_msg", "message", "msg", "log"];

/// What is put before names of a message's fields that its header has, too, and before those that
/// begin like what an intake vouches for.
pub(crate) const BODY_PREFIX: &str = "body.";

/// Bytes of a slot's text beside its name: two marks, a colon and a letter.
const SLOT_BYTES: usize = 8;

/// Words of the filter that tells most new names from known ones: sixteen bits for each of as many
/// fields as a shape that rebuilds its line may have.
const SEEN_WORDS: usize = FIELDS_MAX * 16 / 64;

/// Lines with more fields than this find a name among them by its hash; the filter is of no use to them.
const NAMES_SEARCHED_MAX: usize = 256;

/// Bytes that a listing keeps free: for braces, and for a header before it.
const LISTING_RESERVE_BYTES: usize = 2 * SHAPE_BYTES_MAX;

/// A field's place in the line.
#[derive(Clone, Copy)]
pub(crate) struct OutlineSlot {
    name: (u32, u32),
    /// First byte in the line and the first after it.
    pub(crate) span: (u32, u32),
    /// Letter of the slot's kind, as shapes write it.
    pub(crate) kind: u8,
    /// Whether it counts among the fields of its name.
    listed: bool,
}

/// The fields of one line.
pub(crate) struct Outline {
    slots: Vec<OutlineSlot>,
    names: Vec<u8>,
    seen: [u64; SEEN_WORDS],
    /// The last slot of each name, once there are more than [`NAMES_SEARCHED_MAX`].
    by_name: HashMap<Box<[u8]>, u32>,
    /// Fields without room in a listing.
    unlisted: usize,
    times: [Option<u32>; TIME_NAMES.len()],
    messages: [Option<u32>; MESSAGE_NAMES.len()],
    irregular: bool,
    first_counts: bool,
}

/// The time field that was chosen.
#[derive(Clone, Copy)]
pub(crate) struct ChosenTime {
    /// Index of its slot.
    pub(crate) slot: u32,
    /// How it is written.
    pub(crate) form: Form,
    /// Whether its name says that it can be nothing but a time.
    pub(crate) certain: bool,
}

/// How a line ended.
pub(crate) struct Outcome {
    /// The shape, or `None` if the line is kept whole without fields.
    pub(crate) shape: Option<Arc<Shape>>,
    /// Whether the line is kept whole.
    pub(crate) whole: bool,
    /// Whether every line with these names and kinds has the same shape, and this one was seen
    /// before.
    pub(crate) repeats: bool,
    /// The time field.
    pub(crate) time: Option<ChosenTime>,
    /// Index of the message's slot.
    pub(crate) message: Option<u32>,
    /// Fields of the line that the shape does not list.
    pub(crate) unlisted: usize,
}

impl Outline {
    /// An empty outline.
    pub(crate) fn new() -> Outline {
        Outline {
            slots: Vec::new(),
            names: Vec::new(),
            seen: [0; SEEN_WORDS],
            by_name: HashMap::new(),
            unlisted: 0,
            times: [None; TIME_NAMES.len()],
            messages: [None; MESSAGE_NAMES.len()],
            irregular: false,
            first_counts: false,
        }
    }

    /// Forgets the last line.
    pub(crate) fn clear(&mut self) {
        self.slots.clear();
        self.names.clear();
        self.seen = [0; SEEN_WORDS];
        self.by_name = HashMap::new();
        self.unlisted = 0;
        self.times = [None; TIME_NAMES.len()];
        self.messages = [None; MESSAGE_NAMES.len()];
        self.irregular = false;
        self.first_counts = false;
    }

    /// Has the first of several fields with one name count.
    pub(crate) fn let_first_count(&mut self) {
        self.first_counts = true;
    }

    /// The slots so far.
    pub(crate) fn slots(&self) -> &[OutlineSlot] {
        &self.slots
    }

    /// Keeps the line whole, whatever fields it has.
    pub(crate) fn set_irregular(&mut self) {
        self.irregular = true;
    }

    /// Adds a field whose name is `prefix` and `key`. Gives false, and only counts the field, if its name
    /// has no room; its value must then be dropped.
    pub(crate) fn push(
        &mut self,
        prefix: &[u8],
        key: &[u8],
        span: (usize, usize),
        kind: u8,
    ) -> bool {
        let index = self.slots.len() as u32;
        let start = self.names.len();
        let taken = start + prefix.len() + key.len() + self.slots.len() * SLOT_BYTES;
        if taken > LISTING_BYTES_MAX - LISTING_RESERVE_BYTES {
            self.irregular = true;
            self.unlisted += 1;
            return false;
        }
        self.names.extend_from_slice(prefix);
        self.names.extend_from_slice(key);
        let name = &self.names[start..];
        self.irregular |= self.slots.len() >= FIELDS_MAX
            || name.len() > FIELD_NAME_BYTES_MAX
            || has_marks(name)
            || is_pattern(name)
            || is_unlisted_count(name);
        let mut listed = true;
        if let Some(earlier) = self.earlier(start) {
            self.irregular = true;
            listed = !self.first_counts;
            self.slots[earlier as usize].listed &= !listed;
        }
        if listed && prefix.is_empty() && !key.is_empty() {
            self.note(key, index);
        }
        self.slots.push(OutlineSlot {
            name: (start as u32, self.names.len() as u32),
            span: (span.0 as u32, span.1 as u32),
            kind,
            listed,
        });
        true
    }

    /// Adds a field of `text`, which stands at `span`, with its value, the letter of its slot's kind,
    /// and whether the value is written as it would be rendered.
    pub(crate) fn add<'a>(
        &mut self,
        parts: &mut Parts<'a>,
        key: &[u8],
        text: &'a str,
        span: (usize, usize),
        (value, kind, canonical): (Value<'a>, u8, bool),
    ) {
        if !self.push(b"", key, span, kind) {
            return;
        }
        if !canonical {
            // A shape that rebuilds its line has far fewer slots; other lines have no fixes.
            let slot = parts.values.len() as u16;
            let text = Cow::Borrowed(&text.as_bytes()[span.0..span.1]);
            parts.fixes.push(Fix { slot, text });
        }
        parts.values.push(value);
    }

    /// Notes whether `key` may be the time or the message.
    fn note(&mut self, key: &[u8], index: u32) {
        if !matches!(key[0], b'_' | b't' | b'@' | b'm' | b'l') {
            return;
        }
        if let Some(rank) = TIME_NAMES.iter().position(|name| *name == key) {
            self.times[rank] = Some(index);
        } else if let Some(rank) = MESSAGE_NAMES.iter().position(|name| name.as_bytes() == key) {
            self.messages[rank] = Some(index);
        }
    }

    /// The last slot so far with the name that begins at `start` of the names; notes that the next one
    /// has it, too.
    fn earlier(&mut self, start: usize) -> Option<u32> {
        if self.slots.len() >= NAMES_SEARCHED_MAX {
            return self.earlier_of_many(start);
        }
        let name = &self.names[start..];
        let hash = hash(name) as usize % (SEEN_WORDS * 64);
        let (word, bit) = (hash / 64, 1u64 << (hash % 64));
        let maybe = self.seen[word] & bit != 0;
        self.seen[word] |= bit;
        if !maybe {
            return None;
        }
        let is_it = |slot: &OutlineSlot| self.name(slot) == name;
        self.slots.iter().rposition(is_it).map(|slot| slot as u32)
    }

    #[cold]
    fn earlier_of_many(&mut self, start: usize) -> Option<u32> {
        let next = self.slots.len() as u32;
        if self.by_name.is_empty() {
            for (index, slot) in self.slots.iter().enumerate() {
                let name = &self.names[slot.name.0 as usize..slot.name.1 as usize];
                self.by_name.insert(name.into(), index as u32);
            }
        }
        self.by_name.insert(self.names[start..].into(), next)
    }

    fn name(&self, slot: &OutlineSlot) -> &[u8] {
        &self.names[slot.name.0 as usize..slot.name.1 as usize]
    }

    /// Ends the line: chooses time and message, draws the shape into `scratch` and compiles it.
    ///
    /// `parts` holds one value per slot and the fixes in the order of the slots.
    pub(crate) fn finish<'a>(
        &mut self,
        raw: &'a [u8],
        parts: &mut Parts<'a>,
        received: Timestamp,
        times: &TimeReader,
        shapes: &mut Shapes,
        scratch: &mut Vec<u8>,
    ) -> Outcome {
        debug_assert_eq!(parts.values.len(), self.slots.len());
        let message = self.choose_message(parts);
        let (time, same) = self.choose_time(raw, parts, received, times);
        scratch.clear();
        let mut found = None;
        if !self.irregular && self.literal_bytes(raw) <= SHAPE_BYTES_MAX {
            self.draw(raw, time, message, &[], scratch);
            found = shapes.find(scratch);
        }
        if let Some(found) = found {
            return Outcome {
                shape: Some(found.shape),
                whole: false,
                repeats: found.known && same,
                time,
                message,
                unlisted: 0,
            };
        }
        let braced = raw.trim_ascii_start().first() == Some(&b'{');
        scratch.clear();
        scratch.extend_from_slice(if braced { b"{" } else { b"" });
        let unlisted = self.list(time, message, &[], parts, scratch);
        scratch.extend_from_slice(if braced { b"}" } else { b"" });
        Outcome {
            shape: shapes.find_listing(scratch),
            whole: true,
            repeats: false,
            time,
            message,
            unlisted,
        }
    }

    /// Ends a message that stands behind a header: draws it into the header's sketch, or lists its fields
    /// there if slots cannot rebuild it.
    pub(crate) fn draw_in<'a>(
        &mut self,
        sketch: &mut Sketch<'_, 'a>,
        raw: &'a str,
        mut parts: Parts<'a>,
        received: Timestamp,
        times: &TimeReader,
    ) {
        let raw = raw.as_bytes();
        let names = self.names.len() + self.slots.len() * (BODY_PREFIX.len() + SLOT_BYTES);
        let text_bytes = sketch.shape().len() + self.literal_bytes(raw) + names;
        let message = self.choose_message(&mut parts);
        let time = match sketch.parts.time {
            Some(_) => None,
            None => self.choose_time(raw, &mut parts, received, times).0,
        };
        let taken = self.taken(sketch);
        if sketch.is_listing() || self.irregular || text_bytes > SHAPE_BYTES_MAX {
            let list = |text: &mut Vec<u8>, parts: &mut Parts<'a>| {
                // The shape tells that the line has JSON.
                text.extend_from_slice(if raw.starts_with(b"{") { b"{" } else { b"" });
                self.list(time, message, &taken, parts, text)
            };
            sketch.append_listing(list, parts);
        } else {
            sketch.append(|text| self.draw(raw, time, message, &taken, text), parts);
        }
    }

    /// Of each slot whether its name must be another one behind a header.
    fn taken(&self, sketch: &Sketch<'_, '_>) -> Vec<bool> {
        let in_header = sketch.slot_names();
        let taken = |slot| {
            let name = self.name(slot);
            let is_vouched_for = name.starts_with(b"_") && !audit::is_own_field(name);
            is_vouched_for || in_header.contains(name)
        };
        self.slots.iter().map(taken).collect()
    }

    fn choose_message(&self, parts: &mut Parts<'_>) -> Option<u32> {
        let slot = self
            .messages
            .iter()
            .flatten()
            .copied()
            .find(|slot| is_text(self.slots[*slot as usize].kind))?;
        let value = std::mem::replace(&mut parts.values[slot as usize], Value::Null);
        parts.message = Message::Part(value);
        Some(slot)
    }

    /// The time field, and whether all lines with these names and kinds have the same one.
    fn choose_time<'a>(
        &self,
        raw: &'a [u8],
        parts: &mut Parts<'a>,
        received: Timestamp,
        times: &TimeReader,
    ) -> (Option<ChosenTime>, bool) {
        let mut same = true;
        for (rank, slot) in self.times.iter().enumerate() {
            let Some(slot) = *slot else { continue };
            let OutlineSlot { span, kind, .. } = self.slots[slot as usize];
            if !is_text(kind) && !matches!(kind, b'i' | b'f') {
                continue;
            }
            let text = &raw[span.0 as usize..span.1 as usize];
            let certain = rank == 0;
            let Some(written) = times.whole(text, received, certain) else {
                same = false;
                continue;
            };
            set_time(parts, slot, &written, text);
            let form = written.form;
            let chosen = ChosenTime {
                slot,
                form,
                certain,
            };
            return (Some(chosen), same);
        }
        (None, same)
    }

    /// Bytes of the line that are in no slot.
    fn literal_bytes(&self, raw: &[u8]) -> usize {
        let spans = self.slots.iter().map(|slot| slot.span.1 - slot.span.0);
        raw.len() - spans.sum::<u32>() as usize
    }

    /// Draws the line. Of slots that are `taken` the name stands in the sketch already.
    fn draw(
        &self,
        raw: &[u8],
        time: Option<ChosenTime>,
        message: Option<u32>,
        taken: &[bool],
        out: &mut Vec<u8>,
    ) {
        let mut after = 0;
        for (index, slot) in self.slots.iter().enumerate() {
            out.extend_from_slice(&raw[after..slot.span.0 as usize]);
            after = slot.span.1 as usize;
            match time {
                Some(time) if time.slot as usize == index => {
                    out.extend_from_slice("⟨_time:".as_bytes());
                    time.form.write_pattern(out);
                    out.extend_from_slice("⟩".as_bytes());
                }
                _ => {
                    let is_message = message == Some(index as u32);
                    let is_taken = taken.get(index) == Some(&true);
                    self.draw_slot(slot, is_message, is_taken, out);
                }
            }
        }
        out.extend_from_slice(&raw[after..]);
    }

    fn draw_slot(&self, slot: &OutlineSlot, is_message: bool, is_taken: bool, out: &mut Vec<u8>) {
        out.extend_from_slice("⟨".as_bytes());
        match is_message {
            true => out.extend_from_slice(b"_msg"),
            false => {
                let start = out.len();
                if is_taken {
                    out.extend_from_slice(BODY_PREFIX.as_bytes());
                }
                out.extend_from_slice(self.name(slot));
                if is_reserved(&out[start..]) {
                    self.set_apart(start, out);
                }
            }
        }
        out.extend_from_slice(&[b':', slot.kind]);
        out.extend_from_slice("⟩".as_bytes());
    }

    /// Appends suffixes to a reserved name until no slot has it.
    fn set_apart(&self, start: usize, out: &mut Vec<u8>) {
        let is_known = |name: &[u8]| {
            let mut slots = self.slots.iter().filter(|slot| slot.listed);
            slots.any(|slot| self.name(slot) == name)
        };
        while is_known(&out[start..]) {
            out.extend_from_slice(LABEL_SUFFIX.as_bytes());
        }
    }

    /// Lists the slots of a line that is kept whole, and keeps their values only; of slots that are `taken`
    /// the name stands in the sketch already. Gives how many fields are not listed.
    fn list(
        &self,
        time: Option<ChosenTime>,
        message: Option<u32>,
        taken: &[bool],
        parts: &mut Parts<'_>,
        out: &mut Vec<u8>,
    ) -> usize {
        parts.fixes.clear();
        let mut unlisted = self.unlisted;
        let mut index = 0;
        parts.values.retain(|_| {
            let at = index;
            index += 1;
            let slot = &self.slots[at];
            if !slot.listed || time.is_some_and(|time| time.slot as usize == at) {
                return false;
            }
            let is_message = message == Some(at as u32);
            let before = out.len();
            self.draw_listed(slot, is_message, taken.get(at) == Some(&true), out);
            // Names with many escapes may take more than was thought.
            if out.len() > LISTING_BYTES_MAX - SLOT_BYTES && !is_message {
                out.truncate(before);
                unlisted += 1;
                return false;
            }
            true
        });
        unlisted
    }

    fn draw_listed(&self, slot: &OutlineSlot, is_message: bool, is_taken: bool, out: &mut Vec<u8>) {
        let name = self.name(slot);
        let is_taken = is_taken || is_unlisted_count(name);
        if is_message || !(has_marks(name) || is_pattern(name)) {
            return self.draw_slot(slot, is_message, is_taken, out);
        }
        out.extend_from_slice("⟨".as_bytes());
        out.extend_from_slice(if is_taken { BODY_PREFIX } else { "" }.as_bytes());
        Shape::write_listed_name(&String::from_utf8_lossy(name), out);
        out.extend_from_slice(&[b':', slot.kind]);
        out.extend_from_slice("⟩".as_bytes());
    }
}

/// The message of a record that has no message field: the line, or none if the line is JSON.
pub(crate) fn without_message<'a>(is_json: bool) -> Message<'a> {
    match is_json {
        true => Message::Absent,
        false => Message::Line,
    }
}

/// Makes `written` the record's time, filling slot `slot`, where it stands as `text`.
pub(crate) fn set_time<'a>(parts: &mut Parts<'a>, slot: u32, written: &Written, text: &'a [u8]) {
    parts.time = Some(written.time);
    parts.time_source = TimeSource::Field(written.form.assumed());
    parts.values[slot as usize] = Value::Null;
    let slot = slot as u16;
    parts.fixes.retain(|fix| fix.slot != slot);
    if !written.exact {
        let at = parts.fixes.partition_point(|fix| fix.slot < slot);
        let text = Cow::Borrowed(text);
        parts.fixes.insert(at, Fix { slot, text });
    }
}

/// Whether slots of this kind hold text.
fn is_text(kind: u8) -> bool {
    matches!(kind, b'j' | b't' | b'q')
}

/// True for names that no field has, see [`logpond_record::RESERVED_NAMES`].
fn is_reserved(name: &[u8]) -> bool {
    name.first() == Some(&b'_')
        && std::str::from_utf8(name).is_ok_and(|name| unreserved(name).is_some())
}

/// Whether a shape would take a field of this name for the time in some pattern.
fn is_pattern(name: &[u8]) -> bool {
    name.starts_with(b"_time:") && name.contains(&b'%')
}

/// Whether a name says that fields are not listed.
fn is_unlisted_count(name: &[u8]) -> bool {
    name == UNLISTED_FIELD.as_bytes()
}

/// Whether a name holds `⟨` or `⟩`, the marks of slots, or the code point that lists of fields have before
/// these.
fn has_marks(name: &[u8]) -> bool {
    let marks = ["⟨", "⟩", "\u{fdd0}"].map(str::as_bytes);
    let has = |mark| memchr::memmem::find(name, mark).is_some();
    !name.is_ascii() && marks.into_iter().any(has)
}

/// Spreads short names well enough for a filter.
fn hash(name: &[u8]) -> u64 {
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut hash = name.len() as u64;
    for chunk in name.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        hash = (hash ^ u64::from_le_bytes(word)).wrapping_mul(SPREAD);
        hash ^= hash >> 29;
    }
    hash >> 32
}
