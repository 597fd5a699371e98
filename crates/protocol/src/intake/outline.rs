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
//!
//! The names of the time, the message and the level are tables in [`names`]; those that a batch declares come
//! before them (see [`DeclaredNames`]).

mod frameworks;
mod name_kinds;
mod names;
mod products;
mod requests;
mod scale;
mod summary;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use logpond_record::limits::{
    FIELD_NAME_BYTES_MAX, FIELDS_MAX, LISTING_BYTES_MAX, SHAPE_BYTES_MAX,
};
use logpond_record::{
    Fix, LABEL_SUFFIX, Message, Severity, Shape, TimeSource, Timestamp, Value, cast,
    is_severity_field,
};

use super::audit;
use super::declared::{DeclaredNames, NAMES_MAX};
use super::shapes::Shapes;
use super::sketch::{Parts, Sketch};
use super::timestamps::{Form, Reading, TimeReader, TimestampText};
use name_kinds::{has_marks, hash, is_pattern, is_reserved, is_unlisted_count};
use names::{How, Name, NameMeaning};

pub(crate) use names::Place;
pub(crate) use requests::RequestPlan;
pub(crate) use summary::{DocumentLevel, SaidLevel, Summary, TimePair};

/// Names of the messages that are no fields beside, see [`names`].
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
    /// Slots that may be the time, each with its rank: names that are declared, then the rows of the table.
    times: Vec<(usize, u32)>,
    /// Slots that may be the message, likewise.
    messages: Vec<(usize, u32)>,
    /// Slots that may say the level in their product's way, each with its row of the table.
    levels: Vec<(usize, u32)>,
    /// Slots that may be the first of two that are an instant, likewise.
    pairs: Vec<(usize, u32)>,
    /// The first of the products whose objects about requests have one of the fields.
    products: Vec<u8>,
    /// True if a field has one of the names by which every record may say its level.
    has_level: bool,
    declared: Option<Arc<DeclaredNames>>,
    irregular: bool,
    first_counts: bool,
}

/// The rank of a table's first row, behind those of declared names.
const TABLE_RANK: usize = NAMES_MAX;

/// The time field that was chosen.
#[derive(Clone, Copy)]
pub(crate) struct ChosenTime {
    /// Index of its slot.
    pub(crate) slot: u32,
    /// How it is written.
    pub(crate) form: Form,
    /// How its name says that it is read.
    pub(crate) reading: Reading,
    /// Its place: the record's own, or a field, too.
    pub(crate) place: Place,
}

/// A time field with its value and its text.
pub(crate) type FoundTime<'a> = (ChosenTime, TimestampText, &'a [u8]);

/// The message field that was chosen.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChosenMessage {
    /// Index of its slot.
    pub(crate) slot: u32,
    /// Its place: the record's own, or a field, too.
    pub(crate) place: Place,
}

/// A field that may be a time and is none.
#[derive(Clone, Copy)]
pub(crate) struct NoTime {
    /// Index of its slot.
    pub(crate) slot: u32,
    /// How its name says that it is read.
    pub(crate) reading: Reading,
}

/// How a line ended.
pub(crate) struct Outcome {
    /// The shape, or `None` if the line is kept whole without fields.
    pub(crate) shape: Option<Arc<Shape>>,
    /// Whether the line is kept whole.
    pub(crate) whole: bool,
    /// True if the shape was seen before.
    pub(crate) repeats: bool,
    /// The time field.
    pub(crate) time: Option<ChosenTime>,
    /// Fields that would have come before it.
    pub(crate) no_times: Vec<NoTime>,
    /// The message field.
    pub(crate) message: Option<ChosenMessage>,
    /// The level and the pair of time fields, by the names.
    pub(crate) summary: Summary,
    /// The level that the document says.
    pub(crate) level: Option<DocumentLevel>,
    /// The way to make the fields of a request.
    pub(crate) request: Option<Arc<RequestPlan>>,
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
            times: Vec::new(),
            messages: Vec::new(),
            levels: Vec::new(),
            pairs: Vec::new(),
            products: Vec::new(),
            has_level: false,
            declared: None,
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
        self.times.clear();
        self.messages.clear();
        self.levels.clear();
        self.pairs.clear();
        self.products.clear();
        self.has_level = false;
        self.irregular = false;
        self.first_counts = false;
    }

    /// Has these names of the time and the message come before all others from now on.
    pub(crate) fn set_declared(&mut self, declared: Option<Arc<DeclaredNames>>) {
        self.declared = declared;
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
        let index = cast::low_u32(self.slots.len());
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
        if listed {
            self.note(start, index);
        }
        self.slots.push(OutlineSlot {
            name: (cast::low_u32(start), cast::low_u32(self.names.len())),
            span: (cast::low_u32(span.0), cast::low_u32(span.1)),
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
            let slot = cast::low_u16(parts.values.len());
            let text = Cow::Borrowed(&text.as_bytes()[span.0..span.1]);
            parts.fixes.push(Fix { slot, text });
        }
        parts.values.push(value);
    }

    /// Notes whether the field whose name begins at `start` may be the time, the message or the level.
    fn note(&mut self, start: usize, index: u32) {
        let name = &self.names[start..];
        if let Some(declared) = &self.declared {
            if let Some(rank) = declared.time_rank(name) {
                put(&mut self.times, (rank, index));
            }
            if let Some(rank) = declared.message_rank(name) {
                put(&mut self.messages, (rank, index));
            }
        }
        names::meanings(name, |meaning| match meaning {
            NameMeaning::Time(row) => put(&mut self.times, (TABLE_RANK + usize::from(row), index)),
            NameMeaning::Message(row) => {
                put(&mut self.messages, (TABLE_RANK + usize::from(row), index));
            }
            NameMeaning::Level(row) => put(&mut self.levels, (usize::from(row), index)),
            NameMeaning::Pair(row) => put(&mut self.pairs, (usize::from(row), index)),
            NameMeaning::Request(row) => self.products.push(row),
            NameMeaning::Usual => self.has_level = true,
        });
    }

    /// True if there is a field of this name, or the name is empty.
    fn has(&self, name: &str) -> bool {
        let is_it = |slot: &OutlineSlot| self.name(slot) == name.as_bytes();
        name.is_empty() || self.slots.iter().any(is_it)
    }

    /// The last slot so far with the name that begins at `start` of the names; notes that the next one
    /// has it, too.
    fn earlier(&mut self, start: usize) -> Option<u32> {
        if self.slots.len() >= NAMES_SEARCHED_MAX {
            return self.earlier_of_many(start);
        }
        let name = &self.names[start..];
        let hash = cast::to_usize(hash(name)) % (SEEN_WORDS * 64);
        let (word, bit) = (hash / 64, 1u64 << (hash % 64));
        let maybe = self.seen[word] & bit != 0;
        self.seen[word] |= bit;
        if !maybe {
            return None;
        }
        let is_it = |slot: &OutlineSlot| self.name(slot) == name;
        self.slots.iter().rposition(is_it).map(cast::low_u32)
    }

    #[cold]
    fn earlier_of_many(&mut self, start: usize) -> Option<u32> {
        let next = cast::low_u32(self.slots.len());
        if self.by_name.is_empty() {
            for (index, slot) in self.slots.iter().enumerate() {
                let name = &self.names[slot.name.0 as usize..slot.name.1 as usize];
                self.by_name.insert(name.into(), cast::low_u32(index));
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
        let (time, no_times) = self.choose_time(raw, parts, received, times);
        let summary = self.summary(time.is_some());
        summary.complete(parts, received, times);
        let request = self.request().map(Arc::new);
        if let Some(request) = &request {
            parts.beside = request.fields(&parts.values);
        }
        let outcome = Outcome {
            shape: None,
            whole: true,
            repeats: false,
            time,
            no_times,
            message,
            level: summary.level(parts),
            request,
            summary,
            unlisted: 0,
        };
        let (time, message) = drawn(time, message);
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
                repeats: found.known,
                ..outcome
            };
        }
        let braced = raw.trim_ascii_start().first() == Some(&b'{');
        scratch.clear();
        scratch.extend_from_slice(if braced { b"{" } else { b"" });
        let unlisted = self.list(time, message, &[], parts, scratch);
        scratch.extend_from_slice(if braced { b"}" } else { b"" });
        Outcome {
            shape: shapes.find_listing(scratch),
            unlisted,
            ..outcome
        }
    }

    /// Ends a message that stands behind a header: draws it into the header's sketch, or lists its fields
    /// there if slots cannot rebuild it. Gives the level that it says in its product's own way.
    pub(crate) fn draw_in<'a>(
        &mut self,
        sketch: &mut Sketch<'_, 'a>,
        raw: &'a str,
        mut parts: Parts<'a>,
        received: Timestamp,
        times: &TimeReader,
    ) -> Option<DocumentLevel> {
        let raw = raw.as_bytes();
        let names = self.names.len() + self.slots.len() * (BODY_PREFIX.len() + SLOT_BYTES);
        let text_bytes = sketch.shape().len() + self.literal_bytes(raw) + names;
        let message = self.choose_message(&mut parts);
        let time = match sketch.parts.time {
            Some(_) => None,
            None => self.choose_time(raw, &mut parts, received, times).0,
        };
        let has_time = sketch.parts.time.is_some() || time.is_some();
        let summary = self.summary(has_time);
        if !has_time {
            summary.complete(&mut parts, received, times);
        }
        let level = summary.level(&parts);
        if let Some(request) = self.request() {
            let mut made = request.fields(&parts.values);
            made.retain(|(name, _)| !sketch.has_slot(name.as_bytes()));
            parts.beside = made;
        }
        let (time, message) = drawn(time, message);
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
        level
    }

    /// Of each slot whether its name must be another one behind a header.
    fn taken(&self, sketch: &Sketch<'_, '_>) -> Vec<bool> {
        let in_header = sketch.slot_names();
        let taken = |slot| {
            let name = self.name(slot);
            let is_vouched_for = name.starts_with(b"_") && !audit::is_own_field(name);
            is_vouched_for || in_header.binary_search(&name).is_ok()
        };
        self.slots.iter().map(taken).collect()
    }

    fn choose_message(&self, parts: &mut Parts<'_>) -> Option<ChosenMessage> {
        let candidates = self.messages.iter().filter(|(rank, slot)| {
            is_text(self.slots[*slot as usize].kind) && self.is_meant(*rank, &names::MESSAGES)
        });
        let (rank, slot) = *candidates.min_by_key(|(rank, _)| *rank)?;
        let place = place(rank, &names::MESSAGES);
        let held = &mut parts.values[slot as usize];
        let value = match place {
            Place::Own => std::mem::replace(held, Value::Null),
            Place::Field => held.clone(),
        };
        parts.message = Message::Part(value);
        Some(ChosenMessage { slot, place })
    }

    /// True if the field that the row of this rank needs is there, too.
    fn is_meant(&self, rank: usize, rows: &[Name]) -> bool {
        row(rank, rows).is_none_or(|row| self.has(row.beside))
    }

    /// The time field, and those that would have come before it and are no instants.
    fn choose_time<'a>(
        &mut self,
        raw: &'a [u8],
        parts: &mut Parts<'a>,
        received: Timestamp,
        times: &TimeReader,
    ) -> (Option<ChosenTime>, Vec<NoTime>) {
        let (found, no_times) = self.find_time(raw, received, times);
        let chosen = found.map(|(chosen, written, text)| {
            take_time(parts, &chosen, &written, text);
            chosen
        });
        (chosen, no_times)
    }

    /// The same, with its value and its text; the record's parts stay as they are.
    pub(crate) fn find_time<'a>(
        &mut self,
        raw: &'a [u8],
        received: Timestamp,
        times: &TimeReader,
    ) -> (Option<FoundTime<'a>>, Vec<NoTime>) {
        self.times.sort_unstable();
        let mut no_times = Vec::new();
        for &(rank, slot) in &self.times {
            let OutlineSlot { span, kind, .. } = self.slots[slot as usize];
            // A number with more digits than a float holds is kept as it is written.
            let may_be = is_text(kind) || matches!(kind, b'i' | b'f' | b'r');
            if !may_be || !self.is_meant(rank, &names::TIMES) {
                continue;
            }
            let text = &raw[span.0 as usize..span.1 as usize];
            let reading = Reading {
                is_certain: rank <= TABLE_RANK,
                is_utc: row(rank, &names::TIMES).is_some_and(|row| row.is_utc),
                may_be_day: row(rank, &names::TIMES).is_some_and(|row| row.name == "@timestamp"),
            };
            let Some(written) = times.read(text, received, reading) else {
                no_times.push(NoTime { slot, reading });
                continue;
            };
            let chosen = ChosenTime {
                slot,
                form: written.form,
                reading,
                place: place(rank, &names::TIMES),
            };
            return (Some((chosen, written, text)), no_times);
        }
        (None, no_times)
    }

    fn summary(&self, has_time: bool) -> Summary {
        let pairs = self.pairs.iter().filter(|_| !has_time);
        let pairs = pairs.filter_map(|&(row, first)| {
            let known = &names::PAIRS[row];
            let find = |name: &str| {
                let is_it = |slot: &OutlineSlot| {
                    slot.listed && !name.is_empty() && self.name(slot) == name.as_bytes()
                };
                self.slots.iter().position(is_it).map(cast::low_u32)
            };
            let (second, zone) = (find(known.second), find(known.zone));
            let how = known.how;
            let is_there = (second.is_some() || how == How::Nanos) && self.has(known.beside);
            let pair = TimePair {
                first,
                second,
                zone,
                is_utc: !known.beside.is_empty(),
                how,
            };
            is_there.then_some((row, pair))
        });
        // A row whose zone is there comes before those without.
        let pair = pairs.min_by_key(|(row, pair)| {
            let is_part_missing = pair.second.is_none();
            (is_part_missing, pair.zone.is_none(), *row)
        });
        let pair = pair.map(|(_, pair)| pair);
        Summary {
            level: self.said_level(),
            pair,
        }
    }

    fn said_level(&self) -> SaidLevel {
        let rows = self.levels.iter().filter_map(|&(row, slot)| {
            let known = &names::LEVELS[row];
            let kind = self.slots[slot as usize].kind;
            let is_usual = is_severity_field(known.name);
            let beats = is_usual || known.is_first && self.has_level;
            let is_list = kind == b'r' && known.scale == scale::Scale::Tags;
            let is_value = is_text(kind) || matches!(kind, b'i' | b'f') || is_list;
            let counts = (beats || !self.has_level) && is_value;
            let level = SaidLevel::At {
                slot,
                scale: known.scale,
                beats,
                is_usual,
            };
            (counts && self.has(known.beside)).then_some((row, level))
        });
        if let Some((_, level)) = rows.min_by_key(|(row, _)| *row) {
            return level;
        }
        // The compact form of Serilog leaves out the level of information.
        let has_one = |ranked: &[(usize, u32)], names: &[&str]| {
            let mut found = ranked.iter().map(|(_, slot)| &self.slots[*slot as usize]);
            found.any(|slot| names.iter().any(|name| name.as_bytes() == self.name(slot)))
        };
        if self.has_level {
            SaidLevel::Stated
        } else if has_one(&self.times, &["@t"]) && has_one(&self.messages, &["@m", "@mt"]) {
            SaidLevel::Implied(Severity::Info)
        } else {
            SaidLevel::Nothing
        }
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
                    let is_message = message == Some(cast::low_u32(index));
                    let is_taken = taken.get(index) == Some(&true);
                    self.draw_slot(slot, is_message, is_taken, out);
                }
            }
        }
        out.extend_from_slice(&raw[after..]);
    }

    fn draw_slot(&self, slot: &OutlineSlot, is_message: bool, is_taken: bool, out: &mut Vec<u8>) {
        out.extend_from_slice("⟨".as_bytes());
        if is_message {
            out.extend_from_slice(b"_msg")
        } else {
            let start = out.len();
            if is_taken {
                out.extend_from_slice(BODY_PREFIX.as_bytes());
            }
            out.extend_from_slice(self.name(slot));
            if is_reserved(&out[start..]) {
                self.set_apart(start, out);
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
            let is_message = message == Some(cast::low_u32(at));
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
    if is_json {
        Message::Absent
    } else {
        Message::Line
    }
}

/// Adds a slot with its rank, in the place of an earlier one of the same name.
fn put(to: &mut Vec<(usize, u32)>, (rank, slot): (usize, u32)) {
    match to.iter_mut().find(|(known, _)| *known == rank) {
        Some((_, held)) => *held = slot,
        None => to.push((rank, slot)),
    }
}

/// The place of a field of this rank.
fn place(rank: usize, rows: &[Name]) -> Place {
    row(rank, rows).map_or(Place::Field, |row| row.place)
}

/// The row of this rank; declared names have none.
fn row(rank: usize, rows: &[Name]) -> Option<&Name> {
    rank.checked_sub(TABLE_RANK).and_then(|row| rows.get(row))
}

/// The time and the message as slots of their own, if they are.
fn drawn(
    time: Option<ChosenTime>,
    message: Option<ChosenMessage>,
) -> (Option<ChosenTime>, Option<u32>) {
    let message = message.filter(|message| message.place == Place::Own);
    (
        time.filter(|time| time.place == Place::Own),
        message.map(|message| message.slot),
    )
}

/// Makes `written`, which stands as `text`, the record's time.
pub(crate) fn take_time<'a>(
    parts: &mut Parts<'a>,
    chosen: &ChosenTime,
    written: &TimestampText,
    text: &'a [u8],
) {
    match chosen.place {
        Place::Own => set_time(parts, chosen.slot, written, text),
        Place::Field => {
            parts.time = Some(written.time);
            parts.time_source = TimeSource::Field(chosen.reading.assumed(written));
        }
    }
}

/// Makes `written` the record's time, filling slot `slot`, where it stands as `text`.
fn set_time<'a>(parts: &mut Parts<'a>, slot: u32, written: &TimestampText, text: &'a [u8]) {
    parts.time = Some(written.time);
    parts.time_source = TimeSource::Field(written.form.assumed());
    parts.values[slot as usize] = Value::Null;
    let slot = cast::low_u16(slot);
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
