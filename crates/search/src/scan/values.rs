//! Patterns in the values of a shape's slots, each distinct value searched once.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use logpond_record::{Shape, Slot, SlotKind, TimePattern, Timestamp, Value, cast};
use logpond_segment::file::ReadError;
use logpond_segment::rows::{
    BYTES_MARK, Column, ColumnType, Fixes, NULL, Overflow, OverflowField, StringColumn, Strings,
    number_value,
};

use super::crossing::Crossing;
use super::group::GroupScan;
use super::templates::{Verdict, literal_end};
use super::text::Place;
use crate::pattern::{Finder, Needle};

/// Decisions about dictionaries that were made in earlier blocks: by condition, dictionary, and
/// what was asked. The dictionaries are kept, so that their addresses stay theirs.
pub(super) type TextDecisions =
    HashMap<(usize, usize, StringTest), (Arc<Strings>, Arc<StringDecisions>)>;

/// A test of the strings of a dictionary.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum StringTest {
    /// Whether the pattern is in them.
    Holds(ValueForm),
    /// Whether a match may cross from or into them, at an end of a slot, if it is cut there.
    Crosses {
        cuts: Arc<[usize]>,
        is_end: bool,
        shown: ValueForm,
    },
}

/// An answer for each string of a dictionary.
pub(super) struct StringDecisions {
    by_code: Vec<bool>,
    /// Whether it is yes for any.
    any: bool,
}

impl StringDecisions {
    fn new(by_code: Vec<bool>) -> StringDecisions {
        let any = by_code.contains(&true);
        StringDecisions { by_code, any }
    }

    fn is_yes(&self, code: u32) -> bool {
        code != NULL && self.by_code[code as usize]
    }
}

/// The form of a value in its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum ValueForm {
    /// As it is.
    Plain,
    /// With the escapes of its kind of slot.
    Escaped(Escape),
    /// Escaped, and its decoded form counts too: a message.
    Both(Escape),
}

/// The escapes of a kind of slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Escape {
    Json,
    Quoted,
    StructuredData,
}

impl Escape {
    fn kind(self) -> SlotKind {
        match self {
            Escape::Json => SlotKind::JsonString,
            Escape::Quoted => SlotKind::Quoted,
            Escape::StructuredData => SlotKind::StructuredData,
        }
    }
}

impl ValueForm {
    pub(super) fn new(kind: &SlotKind, decoded_counts: bool) -> ValueForm {
        let escape = match kind {
            SlotKind::JsonString => Escape::Json,
            SlotKind::Quoted => Escape::Quoted,
            SlotKind::StructuredData => Escape::StructuredData,
            _ => return ValueForm::Plain,
        };
        if decoded_counts {
            ValueForm::Both(escape)
        } else {
            ValueForm::Escaped(escape)
        }
    }
}

/// What the values of a row say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hit {
    No,
    /// The line must be looked at.
    Maybe,
    /// The value of this slot, unless the line shows it differently.
    Yes(u16),
}

/// The search in the rows of one shape.
pub(super) struct ShapeSearch<'a> {
    finder: &'a Finder,
    shape: &'a Shape,
    rows: &'a [u32],
    /// Where a match may go beyond a slot.
    crossings: &'a [Crossing<'a>],
    /// The fields of these slots.
    crossed_fields: Vec<OverflowField>,
    /// Which texts a slot may show with escapes that make a difference.
    is_affected: fn(&[u8]) -> bool,
    hits: Vec<Hit>,
    /// The slot at hand.
    slot: u16,
}

/// Decisions about the columns of one block, made once for all shapes.
pub(super) struct BlockDecisions {
    /// Number of the condition.
    number: usize,
    place: Place,
    fields: HashMap<(usize, ValueForm), Arc<StringDecisions>>,
    /// Messages that are UTF-8 (0), and those that are not (1).
    messages: HashMap<(usize, ValueForm), Arc<StringDecisions>>,
    /// Which objects of the overflow column need a look, whatever the shape.
    objects: Option<StringDecisions>,
}

impl BlockDecisions {
    /// For the condition of this number.
    pub(super) fn new(number: usize, place: Place) -> BlockDecisions {
        BlockDecisions {
            number,
            place,
            fields: HashMap::new(),
            messages: HashMap::new(),
            objects: None,
        }
    }
}

impl<'a> ShapeSearch<'a> {
    pub(super) fn new(
        finder: &'a Finder,
        shape: &'a Shape,
        rows: &'a [u32],
        crossings: &'a [Crossing<'a>],
    ) -> ShapeSearch<'a> {
        ShapeSearch {
            finder,
            shape,
            rows,
            crossings,
            crossed_fields: crossed_fields(shape, crossings),
            is_affected: escapes_that_matter(finder),
            hits: vec![Hit::No; rows.len()],
            slot: 0,
        }
    }

    pub(super) fn run(
        &mut self,
        scan: &mut GroupScan<'_>,
        decisions: &mut BlockDecisions,
    ) -> Result<(), ReadError> {
        for (number, slot) in self.shape.slots().iter().enumerate() {
            self.slot = cast::low_u16(number);
            match &slot.kind {
                SlotKind::Null | SlotKind::Facility => {}
                SlotKind::Time(pattern) => self.search_times(pattern, scan)?,
                SlotKind::Severity => self.search_priority(),
                kind if slot.is_message() => {
                    let decoded_counts = decisions.place == Place::LineOrMessage;
                    self.search_messages(ValueForm::new(kind, decoded_counts), scan, decisions)?;
                }
                kind => {
                    if let Some(column) = scan.directory.schema.column(&slot.name) {
                        self.search_column(column, kind, scan, decisions)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Marks the rows in which a match may go beyond a slot.
    pub(super) fn search_crossings(
        &mut self,
        scan: &mut GroupScan<'_>,
        decisions: &BlockDecisions,
    ) -> Result<(), ReadError> {
        for crossing in self.crossings {
            let slot = &self.shape.slots()[crossing.slot];
            match &slot.kind {
                SlotKind::Facility => {}
                SlotKind::Null => self.mark_maybe(|_| crossing.fits(b"null")),
                SlotKind::Severity => self.mark_maybe(|_| crossing.fits_numbers()),
                SlotKind::Time(pattern) => self.cross_times(pattern, crossing, scan)?,
                kind if slot.is_message() => {
                    self.cross_messages((decisions.number, kind), crossing, scan)?;
                }
                kind => {
                    if let Some(column) = scan.directory.schema.column(&slot.name) {
                        let asked = StringTest::Crosses {
                            cuts: Arc::clone(&crossing.cuts),
                            is_end: crossing.is_end,
                            shown: ValueForm::new(kind, false),
                        };
                        let asked = (decisions.number, column, asked);
                        self.cross_column(asked, kind, crossing, scan)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn cross_messages(
        &mut self,
        (number, kind): (usize, &SlotKind),
        crossing: &Crossing<'_>,
        scan: &mut GroupScan<'_>,
    ) -> Result<(), ReadError> {
        if let Some(texts) = scan.template_texts()? {
            let (block, reader, decisions) = scan.text_parts();
            let asked = StringTest::Crosses {
                cuts: Arc::clone(&crossing.cuts),
                is_end: crossing.is_end,
                shown: ValueForm::new(kind, false),
            };
            let fits = |text: &[u8]| match literal_end(text, crossing.is_end) {
                Some(literal) => crossing.fits(&shown_text(literal, kind)),
                None => true,
            };
            let decide = || StringDecisions::new(texts.iter().map(fits).collect());
            let decided = decide_once((number, asked), &texts, decisions, decide);
            let templates = block.templates(reader)?;
            let may_cross = |row: &u32| match templates.codes[*row as usize] {
                NULL => true,
                code => decided.is_yes(code),
            };
            if !self.rows.iter().any(may_cross) {
                return Ok(());
            }
        }
        let (block, reader, _) = scan.parts();
        for messages in block.messages(reader)? {
            self.cross_strings(messages, kind, crossing);
        }
        Ok(())
    }

    fn cross_times(
        &mut self,
        pattern: &TimePattern,
        crossing: &Crossing<'_>,
        scan: &mut GroupScan<'_>,
    ) -> Result<(), ReadError> {
        let times = scan.times()?;
        let mut sample = Vec::new();
        if let Some(row) = self.rows.first() {
            pattern.render(Timestamp(times[*row as usize]), &mut sample);
        }
        if crossing.fits_times(&sample) {
            self.mark_maybe(|_| true);
        }
        Ok(())
    }

    fn cross_column(
        &mut self,
        (number, column, asked): (usize, usize, StringTest),
        kind: &SlotKind,
        crossing: &Crossing<'_>,
        scan: &mut GroupScan<'_>,
    ) -> Result<(), ReadError> {
        let (block, reader, texts) = scan.text_parts();
        if let Some(values) = reader.text_dictionary(column)? {
            let fits = |text: &[u8]| crossing.fits(&shown_text(text, kind));
            let decide = || StringDecisions::new(values.iter().map(fits).collect());
            let decided = decide_once((number, asked), &values, texts, decide);
            if !decided.any {
                return Ok(());
            }
            if let Column::Strings(strings) = block.field(column, reader)? {
                self.mark_maybe(|row| decided.is_yes(strings.codes[row]));
            }
            return Ok(());
        }
        match block.field(column, reader)? {
            Column::Absent => {}
            Column::Strings(strings) => self.cross_strings(strings, kind, crossing),
            Column::Bools(numbers) => {
                let fits = [crossing.fits(b"false"), crossing.fits(b"true")];
                self.mark_maybe(|row| numbers.get(row).is_some_and(|b| fits[usize::from(b)]));
            }
            Column::Ints(_) | Column::Floats(_) => {
                if crossing.fits_numbers() {
                    self.mark_maybe(|_| true);
                }
            }
        }
        Ok(())
    }

    fn cross_strings(&mut self, strings: &StringColumn, kind: &SlotKind, crossing: &Crossing<'_>) {
        self.mark_maybe(|row| {
            let text = strings.get(row);
            text.is_some_and(|text| crossing.fits(&shown_text(text, kind)))
        });
    }

    fn mark_maybe(&mut self, test: impl FnMut(usize) -> bool) {
        self.mark_as(Hit::Maybe, test);
    }

    /// Gives the rows without a hit for which the test says yes this one.
    fn mark_as(&mut self, hit: Hit, mut test: impl FnMut(usize) -> bool) {
        for (known, row) in self.hits.iter_mut().zip(self.rows) {
            if *known == Hit::No && test(*row as usize) {
                *known = hit;
            }
        }
    }

    /// Whether a match can consist of these bytes alone, as far as it is known.
    fn fits_in(&self, bytes: &[u8]) -> bool {
        let has = |byte: u8, folded: bool| {
            bytes.contains(&byte) || folded && bytes.contains(&byte.to_ascii_uppercase())
        };
        self.finder
            .needle()
            .is_none_or(|needle| needle.text.iter().all(|b| has(*b, needle.folded)))
    }

    /// Marks the rows of which the test says that the value of the slot at hand matches.
    fn mark(&mut self, mut test: impl FnMut(&Finder, usize) -> bool) {
        let finder = self.finder;
        self.mark_as(Hit::Yes(self.slot), |row| test(finder, row));
    }

    fn mark_codes(&mut self, strings: &StringColumn, decided: &StringDecisions) {
        if decided.any {
            self.mark(|_, row| decided.is_yes(strings.codes[row]));
        }
    }

    fn search_times(
        &mut self,
        pattern: &TimePattern,
        scan: &mut GroupScan<'_>,
    ) -> Result<(), ReadError> {
        let has_letters = |needle: Needle<'_>| pattern.has_letters_of(needle.text);
        if !self.fits_in(TIME_BYTES) || !self.finder.needle().is_none_or(has_letters) {
            return Ok(());
        }
        let times = scan.times()?;
        let mut text = Vec::new();
        self.mark(|finder, row| {
            text.clear();
            pattern.render(Timestamp(times[row]), &mut text);
            finder.is_match(&text)
        });
        Ok(())
    }

    fn search_priority(&mut self) {
        if self.fits_in(b"0123456789") {
            self.mark_maybe(|_| true);
        }
    }

    fn search_column(
        &mut self,
        number: usize,
        kind: &SlotKind,
        scan: &mut GroupScan<'_>,
        decisions: &mut BlockDecisions,
    ) -> Result<(), ReadError> {
        let spec = scan.directory.schema.columns[number].kind;
        let is_number = matches!(
            spec,
            ColumnType::Int | ColumnType::Float | ColumnType::Decimal(_)
        );
        if is_number && !self.fits_in(NUMBER_BYTES) {
            return Ok(());
        }
        let shown = ValueForm::new(kind, false);
        let (block, reader, texts) = scan.text_parts();
        if !decisions.fields.contains_key(&(number, shown))
            && let Some(values) = reader.text_dictionary(number)?
        {
            let asked = (decisions.number, StringTest::Holds(shown));
            let decide = || decide(self.finder, &values, shown);
            let made = decide_once(asked, &values, texts, decide);
            decisions.fields.insert((number, shown), made);
        }
        if let Some(known) = decisions.fields.get(&(number, shown))
            && !known.any
        {
            return Ok(());
        }
        match block.field(number, reader)? {
            Column::Absent => {}
            Column::Strings(strings) => {
                let made = || Arc::new(decide(self.finder, &strings.values, shown));
                let known = decisions.fields.entry((number, shown)).or_insert_with(made);
                self.mark_codes(strings, known);
            }
            Column::Bools(numbers) => {
                let matches =
                    [false, true].map(|b| self.finder.is_match(if b { b"true" } else { b"false" }));
                self.mark(|_, row| numbers.get(row).is_some_and(|b| matches[usize::from(b)]));
            }
            Column::Ints(numbers) => {
                self.mark_numbers(|row| {
                    Some(slot_number(kind, number_value(spec, numbers.get(row)?)))
                });
            }
            Column::Floats(numbers) => {
                self.mark_numbers(|row| Some(slot_number(kind, Value::Float(numbers.get(row)?))));
            }
        }
        Ok(())
    }

    fn mark_numbers(&mut self, number: impl Fn(usize) -> Option<Value<'static>>) {
        let mut text = Vec::new();
        self.mark(|finder, row| {
            let Some(value) = number(row) else {
                return false;
            };
            text.clear();
            value.write_text(&mut text);
            finder.is_match(&text)
        });
    }

    fn search_messages(
        &mut self,
        shown: ValueForm,
        scan: &mut GroupScan<'_>,
        decisions: &mut BlockDecisions,
    ) -> Result<(), ReadError> {
        if self.settle_by_templates(shown, scan, decisions.number)? {
            return Ok(());
        }
        let (block, reader, _) = scan.parts();
        for (at, messages) in block.messages(reader)?.into_iter().enumerate() {
            let made = || Arc::new(decide(self.finder, &messages.values, shown));
            let known = decisions.messages.entry((at, shown)).or_insert_with(made);
            self.mark_codes(messages, known);
        }
        Ok(())
    }

    /// Marks the rows whose messages match by their templates; gives whether no other message needs a look.
    fn settle_by_templates(
        &mut self,
        shown: ValueForm,
        scan: &mut GroupScan<'_>,
        number: usize,
    ) -> Result<bool, ReadError> {
        let is_escaped = shown != ValueForm::Plain;
        let Some(decision) = scan.decide_templates((number, self.finder), is_escaped)? else {
            return Ok(false);
        };
        let (block, reader, _) = scan.parts();
        let number = block.number();
        let templates = block.templates(reader)?;
        let mut are_settled = true;
        for (hit, row) in self.hits.iter_mut().zip(self.rows) {
            if *hit != Hit::No {
                continue;
            }
            match decision.of(templates.codes[*row as usize], number) {
                Verdict::All => *hit = Hit::Yes(self.slot),
                Verdict::None => {}
                Verdict::Unknown => are_settled = false,
            }
        }
        Ok(are_settled)
    }

    /// Sorts the rows into those that match and those whose lines must be looked at.
    pub(super) fn sort(
        self,
        (scan, decisions): (&mut GroupScan<'_>, &mut BlockDecisions),
        wanted: &mut Vec<u32>,
        open: &mut Vec<u32>,
    ) -> Result<(), ReadError> {
        let (block, reader, _) = scan.parts();
        block.exceptions(reader)?;
        block.more(reader)?;
        let known = block.known_rows();
        let objects = &mut decisions.objects;
        for (hit, &row) in self.hits.iter().zip(self.rows) {
            let more = known.more.get(row as usize);
            // Objects are read only if a row needs it: one that matches already needs none.
            let mut decide = || {
                let decide = || decide_objects(self.finder, &known.more.values);
                let objects = objects.get_or_insert_with(decide);
                objects.is_yes(known.more.codes[row as usize])
            };
            let beside = Beside {
                fix: known.fix.get(row as usize),
                more,
                needs_look: *hit == Hit::No && more.is_some() && decide(),
            };
            let hit = match hit {
                Hit::Yes(slot) if beside.is_fixed(usize::from(*slot)) => Hit::Maybe,
                Hit::No => self.look_beside(&beside),
                hit => *hit,
            };
            match hit {
                Hit::Yes(_) => wanted.push(row),
                Hit::Maybe => open.push(row),
                Hit::No => {}
            }
        }
        Ok(())
    }

    /// What the texts say that a row shows instead of the values of columns.
    fn look_beside(&self, beside: &Beside<'_>) -> Hit {
        for (slot, text) in Fixes::new(beside.fix) {
            if self.finder.is_match(text) {
                return Hit::Yes(cast::low_u16(slot));
            }
            if self.crosses(slot, text) {
                return Hit::Maybe;
            }
        }
        let needs_look = |object: &&[u8]| beside.needs_look || self.may_be_in(object);
        let Some(object) = beside.more.filter(needs_look) else {
            return Hit::No;
        };
        let mut found = Hit::No;
        for (name, value) in Overflow::new(object) {
            let slots = self.shape.slots().iter().enumerate();
            for (number, slot) in slots.filter(|(_, slot)| *slot.name == *name) {
                match self.look_at(number, &slot.kind, &value) {
                    Hit::Yes(_) if beside.is_fixed(number) => found = Hit::Maybe,
                    hit @ Hit::Yes(_) => return hit,
                    Hit::Maybe => found = Hit::Maybe,
                    Hit::No => {}
                }
            }
        }
        found
    }

    /// What a value of the overflow column says that a slot shows.
    fn look_at(&self, number: usize, kind: &SlotKind, value: &Value<'_>) -> Hit {
        let text = value.to_text();
        let Value::Str(_) = value else {
            // Numbers may be shown in another form than their own.
            let crosses = self.crossings.iter().any(|c| c.slot == number);
            let may_match = self.finder.is_match(&text) || (self.is_affected)(&text) || crosses;
            return if may_match { Hit::Maybe } else { Hit::No };
        };
        let shown = shown_text(&text, kind);
        if self.finder.is_match(&shown) {
            Hit::Yes(cast::low_u16(number))
        } else if self.crosses(number, &shown) {
            Hit::Maybe
        } else {
            Hit::No
        }
    }

    fn crosses(&self, slot: usize, shown: &[u8]) -> bool {
        let mut crossings = self.crossings.iter().filter(|c| c.slot == slot);
        crossings.any(|crossing| crossing.fits(shown))
    }

    /// Whether the values of an object of the overflow column need a look because of this shape.
    fn may_be_in(&self, object: &[u8]) -> bool {
        let has_escapes = || {
            let is_escaped = |slot: &Slot| slot.kind == SlotKind::StructuredData;
            (self.is_affected)(b"]")
                && self.shape.slots().iter().any(is_escaped)
                && memchr::memchr(b']', object).is_some()
        };
        let mut fields = self.crossed_fields.iter();
        fields.any(|field| field.may_be_in(object)) || has_escapes()
    }
}

/// The fields of slots with crossings.
fn crossed_fields(shape: &Shape, crossings: &[Crossing<'_>]) -> Vec<OverflowField> {
    let mut slots: Vec<usize> = crossings.iter().map(|crossing| crossing.slot).collect();
    slots.dedup();
    let slots = slots.into_iter();
    slots
        .map(|slot| OverflowField::new(&shape.slots()[slot].name))
        .collect()
}

/// Which objects of the overflow column need a look: a value stands in one as in the line, nested ones too, but
/// for bytes, which nobody could recognise, and for escapes that make a difference.
fn decide_objects(finder: &Finder, objects: &Strings) -> StringDecisions {
    let is_affected = escapes_that_matter(finder);
    let affects = |object: &[u8]| {
        let has_escape = memchr::memchr(b'\\', object).is_some();
        // Control characters stand in an object as escapes.
        has_escape
            && (is_affected(b"\n") || memchr::memmem::find(object, BYTES_MARK.as_bytes()).is_some())
    };
    let mut decisions = decide_each(finder, objects, ValueForm::Plain);
    for (decision, object) in decisions.iter_mut().zip(objects.iter()) {
        *decision = *decision || affects(object);
    }
    StringDecisions::new(decisions)
}

/// What a row shows instead of the values of columns.
struct Beside<'a> {
    fix: Option<&'a [u8]>,
    more: Option<&'a [u8]>,
    /// Whether the object in `more` needs a look, whatever the shape.
    needs_look: bool,
}

impl Beside<'_> {
    fn is_fixed(&self, slot: usize) -> bool {
        Fixes::new(self.fix).any(|(fixed, _)| fixed == slot)
    }
}

/// Decides about a dictionary, which is the same for all blocks, once.
fn decide_once(
    (number, asked): (usize, StringTest),
    dictionary: &Arc<Strings>,
    known: &mut TextDecisions,
    decide: impl FnOnce() -> StringDecisions,
) -> Arc<StringDecisions> {
    let key = (number, Arc::as_ptr(dictionary) as usize, asked);
    let made = || (Arc::clone(dictionary), Arc::new(decide()));
    Arc::clone(&known.entry(key).or_insert_with(made).1)
}

/// Bytes that times are written with.
const TIME_BYTES: &[u8] = b"0123456789 -:/.,+TZabcdefghijlmnoprstuvyADFJMNOSTW";

/// Bytes that numbers are written with.
const NUMBER_BYTES: &[u8] = b"0123456789.-";

/// A number as its slot shows it: a column of fractions holds whole numbers too.
fn slot_number(kind: &SlotKind, value: Value<'static>) -> Value<'static> {
    match (kind, value) {
        (kind, Value::Float(f)) if kind.is_whole_number() => Value::Int(cast::whole_i64(f)),
        (_, value) => value,
    }
}

/// For each string whether the pattern is in it, as it is shown.
fn decide(finder: &Finder, strings: &Strings, shown: ValueForm) -> StringDecisions {
    StringDecisions::new(decide_each(finder, strings, shown))
}

/// A value as a slot of this kind shows it.
pub(super) fn shown_text<'t>(text: &'t [u8], kind: &SlotKind) -> Cow<'t, [u8]> {
    let is_escaped = matches!(
        kind,
        SlotKind::JsonString | SlotKind::Quoted | SlotKind::StructuredData
    );
    if !is_escaped || !needs_escapes(text) {
        return Cow::Borrowed(text);
    }
    let mut out = Vec::with_capacity(text.len() + 8);
    kind.write_text(text, &mut out);
    Cow::Owned(out)
}

/// For each string whether the pattern is in it.
pub(super) fn decide_plain(finder: &Finder, strings: &Strings) -> Vec<bool> {
    // Each string is stored behind its length, whose last byte is 0: a match without zeros stays
    // within one string.
    if !finder.alphabet().contains(0) && strings.all_shorter_than(1 << 24) {
        find_in_all(finder, strings)
    } else {
        strings.iter().map(|text| finder.is_match(text)).collect()
    }
}

fn decide_each(finder: &Finder, strings: &Strings, shown: ValueForm) -> Vec<bool> {
    let mut decisions = decide_plain(finder, strings);
    let (escape, decoded_counts) = match shown {
        ValueForm::Plain => return decisions,
        ValueForm::Escaped(escape) => (escape, false),
        ValueForm::Both(escape) => (escape, true),
    };
    let (affects, kind) = (escapes_that_matter(finder), escape.kind());
    for (decision, text) in decisions.iter_mut().zip(strings.iter()) {
        if affects(text) {
            *decision = *decision && decoded_counts || finder.is_match(&shown_text(text, &kind));
        }
    }
    decisions
}

/// Which texts need their escaped form looked at: whether a match may differ there.
pub(super) fn escapes_that_matter(finder: &Finder) -> fn(&[u8]) -> bool {
    let needle = finder.needle().map(|needle| needle.text);
    match needle.filter(|needle| !needs_escapes(needle)) {
        // Without bytes that are escaped it is found in both forms or in none, unless it begins
        // with the letters of an escape, which only control characters have.
        Some([b'b' | b't' | b'n' | b'f' | b'r' | b'u', ..]) => has_control,
        Some([first, ..]) if first.is_ascii_hexdigit() => has_control,
        Some(_) => |_| false,
        None => needs_escapes,
    }
}

fn has_control(text: &[u8]) -> bool {
    // To its end in any case: many bytes are compared at once then.
    text.iter().fold(false, |any, byte| any | (*byte < 0x20))
}

/// Finds a pattern in all strings with one pass over their buffer.
fn find_in_all(finder: &Finder, strings: &Strings) -> Vec<bool> {
    let mut found = vec![false; strings.len()];
    let bytes = strings.bytes();
    let (mut at, mut code) = (0, 0);
    while let Some(hit) = finder.find(bytes, at) {
        // The strings lie in the order of their codes.
        while code < strings.len() && strings.range(cast::low_u32(code)).1 as usize <= hit.start {
            code += 1;
        }
        if code == strings.len() {
            break;
        }
        let range = range_of(strings, code);
        if range.start <= hit.start && hit.end <= range.end {
            found[code] = true;
            at = range.end;
        } else {
            at = hit.start + 1;
        }
    }
    found
}

fn range_of(strings: &Strings, code: usize) -> Range<usize> {
    let (from, to) = strings.range(cast::low_u32(code));
    from as usize..to as usize
}

/// Whether any kind of slot might show the text with escapes.
pub(super) fn needs_escapes(text: &[u8]) -> bool {
    text.iter().fold(false, |any, b| {
        any | (*b < 0x20) | (*b == b'"') | (*b == b'\\') | (*b == b']')
    })
}
