//! Text in lines, searched column by column.
//!
//! A line is its shape's literals and the texts of its slots. A match lies within one of them, or
//! it crosses from one into the next and then holds a byte that stands at such a boundary. So
//! where a pattern has none of these bytes, the values of the columns are searched, each distinct
//! one once; lines are rendered only where a match could cross, and to settle rows whose lines
//! deviate from their values.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use logpond_record::{Piece, Shape, SlotKind, TimePattern, Timestamp, Value};
use logpond_segment::file::ReadError;
use logpond_segment::rows::{
    Column, ColumnType, Fixes, NULL, Overflow, RowsView, StringColumn, Strings,
};

use super::block::number_value;
use super::group::GroupScan;
use crate::pattern::Finder;

/// Decisions about dictionaries that were made in earlier blocks: by condition, dictionary and
/// [`Shown`]. The dictionaries are kept, so that their addresses stay theirs.
pub(super) type TextDecisions = HashMap<(usize, usize, Shown), (Arc<Strings>, Arc<Decided>)>;

/// For each string of a dictionary whether the pattern is in it.
pub(super) struct Decided {
    by_code: Vec<bool>,
    /// Whether it is in any.
    any: bool,
}

/// How a value stands in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Shown {
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

impl Shown {
    fn new(kind: &SlotKind, is_message: bool) -> Shown {
        let escape = match kind {
            SlotKind::JsonString => Escape::Json,
            SlotKind::Quoted => Escape::Quoted,
            SlotKind::StructuredData => Escape::StructuredData,
            _ => return Shown::Plain,
        };
        if is_message {
            Shown::Both(escape)
        } else {
            Shown::Escaped(escape)
        }
    }
}

/// The rows of the block at hand whose line or message the pattern is in.
pub(super) fn select_by_text(
    finder: &Finder,
    number: usize,
    scan: &mut GroupScan<'_>,
    rows: Vec<u32>,
) -> Result<Vec<u32>, ReadError> {
    if !finder.ignores_ends() {
        return render_and_match(finder, scan, rows);
    }
    let RowsByShape {
        dictionary,
        shapes,
        mut wanted,
        mut open,
    } = RowsByShape::new(finder, scan, &rows)?;
    let mut decisions = BlockDecisions {
        number,
        ..BlockDecisions::default()
    };
    for (code, rows) in shapes {
        let shape = scan.shape(&dictionary, code);
        if literals_match(&shape, finder) {
            wanted.extend(rows);
        } else if can_cross(&shape, finder) {
            open.extend(rows);
        } else {
            let mut search = ShapeSearch::new(finder, &shape, &rows);
            search.run(scan, &mut decisions)?;
            search.sort(scan, &mut wanted, &mut open)?;
        }
    }
    if !open.is_empty() {
        open.sort_unstable();
        wanted.extend(render_and_match(finder, scan, open)?);
    }
    wanted.sort_unstable();
    Ok(wanted)
}

/// Rows of a block by the shape of their lines.
struct RowsByShape {
    dictionary: Arc<Strings>,
    /// Code of the shape, and its rows in order.
    shapes: Vec<(u32, Vec<u32>)>,
    /// Rows without a shape whose whole line matches.
    wanted: Vec<u32>,
    /// The others without a shape: their message may still be decoded from a part of the line.
    open: Vec<u32>,
}

impl RowsByShape {
    fn new(
        finder: &Finder,
        scan: &mut GroupScan<'_>,
        rows: &[u32],
    ) -> Result<RowsByShape, ReadError> {
        let (block, reader, _) = scan.parts();
        block.shapes(reader)?;
        block.exceptions(reader)?;
        let known = block.known_rows();
        let mut by_shape = RowsByShape {
            dictionary: Arc::clone(&known.shape.values),
            shapes: Vec::new(),
            wanted: Vec::new(),
            open: Vec::new(),
        };
        let mut places: HashMap<u32, usize> = HashMap::new();
        let mut last = (NULL, 0);
        for &row in rows {
            match known.whole.get(row as usize) {
                Some(line) if finder.is_match(line) => by_shape.wanted.push(row),
                Some(_) => by_shape.open.push(row),
                None => {
                    let code = known.shape.codes[row as usize];
                    if code != last.0 {
                        let next = by_shape.shapes.len();
                        last = (code, *places.entry(code).or_insert(next));
                        if last.1 == next {
                            by_shape.shapes.push((code, Vec::new()));
                        }
                    }
                    by_shape.shapes[last.1].1.push(row);
                }
            }
        }
        Ok(by_shape)
    }
}

/// Decides by the line and the message themselves.
fn render_and_match(
    finder: &Finder,
    scan: &mut GroupScan<'_>,
    rows: Vec<u32>,
) -> Result<Vec<u32>, ReadError> {
    let found: Vec<u32> = scan.with_lines(&rows, |view| {
        let mut line = Vec::new();
        let matches = |row: &u32| text_matches(finder, view, *row as usize, &mut line);
        rows.iter().copied().filter(matches).collect()
    })?;
    Ok(found)
}

/// The same decision as for a record: the pattern is in the line or in the decoded message.
fn text_matches(finder: &Finder, view: &RowsView<'_>, row: usize, line: &mut Vec<u8>) -> bool {
    line.clear();
    view.write_line(row, line);
    if finder.is_match(line) {
        return true;
    }
    let rows = view.rows();
    let Some(message) = rows
        .message
        .get(row)
        .or_else(|| rows.message_bytes.get(row))
    else {
        return false;
    };
    let seen = finder.ignores_ends()
        && rows.whole.codes[row] == NULL
        && is_shown_as_it_is(view.shape(row), message);
    !seen && message != &line[..] && finder.is_match(message)
}

/// Whether a message stands in the line without escapes.
fn is_shown_as_it_is(shape: &Shape, message: &[u8]) -> bool {
    let Some(slot) = shape.message_slot() else {
        return false;
    };
    shape.slots()[slot].kind == SlotKind::Text || !needs_escapes(message)
}

/// Whether any kind of slot might show the text with escapes.
fn needs_escapes(text: &[u8]) -> bool {
    text.iter().fold(false, |any, b| {
        any | (*b < 0x20) | (*b == b'"') | (*b == b'\\') | (*b == b']')
    })
}

fn literals_match(shape: &Shape, finder: &Finder) -> bool {
    let null =
        || shape.slots().iter().any(|slot| slot.kind == SlotKind::Null) && finder.is_match(b"null");
    let literal =
        |piece: &Piece| matches!(piece, Piece::Literal(text) if finder.is_match(text.as_bytes()));
    shape.pieces().iter().any(literal) || null()
}

/// Whether a match could reach from a slot into what stands next to it.
fn can_cross(shape: &Shape, finder: &Finder) -> bool {
    let alphabet = finder.alphabet();
    let is_silent = |slot: usize| shape.slots()[slot].kind == SlotKind::Facility;
    let at_end = |text: &str| text.bytes().last().is_some_and(|b| alphabet.contains(b));
    let at_start = |text: &str| text.bytes().next().is_some_and(|b| alphabet.contains(b));
    shape.pieces().windows(2).any(|pair| match pair {
        [Piece::Slot(slot), Piece::Slot(_)] => !is_silent(*slot),
        [Piece::Literal(text), Piece::Slot(_)] => at_end(text),
        [Piece::Slot(_), Piece::Literal(text)] => at_start(text),
        _ => false,
    })
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
struct ShapeSearch<'a> {
    finder: &'a Finder,
    shape: &'a Shape,
    rows: &'a [u32],
    hits: Vec<Hit>,
    /// The slot at hand.
    slot: u16,
}

/// Decisions about the columns of one block, made once for all shapes.
#[derive(Default)]
struct BlockDecisions {
    /// Number of the condition.
    number: usize,
    fields: HashMap<(usize, Shown), Arc<Decided>>,
    /// Messages that are UTF-8 (0), and those that are not (1).
    messages: HashMap<(usize, Shown), Arc<Decided>>,
}

impl<'a> ShapeSearch<'a> {
    fn new(finder: &'a Finder, shape: &'a Shape, rows: &'a [u32]) -> ShapeSearch<'a> {
        ShapeSearch {
            finder,
            shape,
            rows,
            hits: vec![Hit::No; rows.len()],
            slot: 0,
        }
    }

    fn run(
        &mut self,
        scan: &mut GroupScan<'_>,
        decisions: &mut BlockDecisions,
    ) -> Result<(), ReadError> {
        for (number, slot) in self.shape.slots().iter().enumerate() {
            self.slot = number as u16;
            match &slot.kind {
                SlotKind::Null | SlotKind::Facility => {}
                SlotKind::Time(pattern) => self.search_times(pattern, scan)?,
                SlotKind::Severity => self.search_priority(),
                kind if slot.is_message() => {
                    self.search_messages(Shown::new(kind, true), scan, decisions)?
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

    /// Whether a match can consist of these bytes alone, as far as it is known.
    fn fits_in(&self, bytes: &[u8]) -> bool {
        self.finder
            .literal()
            .is_none_or(|literal| literal.iter().all(|b| bytes.contains(b)))
    }

    /// Marks the rows of which the test says that the value of the slot at hand matches.
    fn mark(&mut self, mut test: impl FnMut(&Finder, usize) -> bool) {
        for (known, row) in self.hits.iter_mut().zip(self.rows) {
            if *known == Hit::No && test(self.finder, *row as usize) {
                *known = Hit::Yes(self.slot);
            }
        }
    }

    fn mark_codes(&mut self, strings: &StringColumn, decided: &Decided) {
        if decided.any {
            self.mark(|_, row| match strings.codes[row] {
                NULL => false,
                code => decided.by_code[code as usize],
            });
        }
    }

    fn search_times(
        &mut self,
        pattern: &TimePattern,
        scan: &mut GroupScan<'_>,
    ) -> Result<(), ReadError> {
        if !self.fits_in(TIME_BYTES) {
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
            let undecided = self.hits.iter_mut().filter(|hit| **hit == Hit::No);
            undecided.for_each(|hit| *hit = Hit::Maybe);
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
        let shown = Shown::new(kind, false);
        let (block, reader, texts) = scan.text_parts();
        if !decisions.fields.contains_key(&(number, shown))
            && let Some(values) = reader.text_dictionary(number)?
        {
            let made = decide_once(self.finder, decisions.number, &values, shown, texts);
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
        shown: Shown,
        scan: &mut GroupScan<'_>,
        decisions: &mut BlockDecisions,
    ) -> Result<(), ReadError> {
        let (block, reader, _) = scan.parts();
        for (at, messages) in block.messages(reader)?.into_iter().enumerate() {
            let made = || Arc::new(decide(self.finder, &messages.values, shown));
            let known = decisions.messages.entry((at, shown)).or_insert_with(made);
            self.mark_codes(messages, known);
        }
        Ok(())
    }

    /// Sorts the rows into those that match and those whose lines must be looked at.
    fn sort(
        self,
        scan: &mut GroupScan<'_>,
        wanted: &mut Vec<u32>,
        open: &mut Vec<u32>,
    ) -> Result<(), ReadError> {
        let (block, reader, _) = scan.parts();
        block.exceptions(reader)?;
        block.more(reader)?;
        let known = block.known_rows();
        for (hit, &row) in self.hits.iter().zip(self.rows) {
            let at = row as usize;
            let fixed = known.fix.get(at);
            let elsewhere = || {
                Fixes::new(fixed).any(|(_, text)| self.finder.is_match(text))
                    || known
                        .more
                        .get(at)
                        .is_some_and(|object| overflow_may_match(object, self.finder))
            };
            let is_fixed = |slot| Fixes::new(fixed).any(|(fixed, _)| fixed == usize::from(slot));
            match hit {
                Hit::Yes(slot) if !is_fixed(*slot) => wanted.push(row),
                Hit::Yes(_) | Hit::Maybe => open.push(row),
                Hit::No if elsewhere() => open.push(row),
                Hit::No => {}
            }
        }
        Ok(())
    }
}

/// Decides about a dictionary, which is the same for all blocks, once.
fn decide_once(
    finder: &Finder,
    number: usize,
    dictionary: &Arc<Strings>,
    shown: Shown,
    known: &mut TextDecisions,
) -> Arc<Decided> {
    let key = (number, Arc::as_ptr(dictionary) as usize, shown);
    let made = || {
        (
            Arc::clone(dictionary),
            Arc::new(decide(finder, dictionary, shown)),
        )
    };
    Arc::clone(&known.entry(key).or_insert_with(made).1)
}

/// Bytes that times are written with.
const TIME_BYTES: &[u8] = b"0123456789 -:/.,+TZabcdefghijlmnoprstuvyADFJMNOSTW";

/// Bytes that numbers are written with.
const NUMBER_BYTES: &[u8] = b"0123456789.-";

/// A number as its slot shows it: a column of fractions holds whole numbers too.
fn slot_number(kind: &SlotKind, value: Value<'static>) -> Value<'static> {
    match (kind, value) {
        (SlotKind::Int, Value::Float(f)) => Value::Int(f as i64),
        (_, value) => value,
    }
}

/// Whether a value in the overflow column may stand in the line with a match.
fn overflow_may_match(object: &[u8], finder: &Finder) -> bool {
    // Values without escapes and nesting stand in the object as they are.
    let has_more = || memchr::memchr3(b'\\', b']', b'{', object.get(1..).unwrap_or(b"")).is_some();
    if !finder.is_match(object) && !has_more() {
        return false;
    }
    Overflow::new(object).any(|(_, value)| {
        let text = value.to_text();
        finder.is_match(&text) || needs_escapes(&text)
    })
}

/// For each string whether the pattern is in it, as it is shown.
fn decide(finder: &Finder, strings: &Strings, shown: Shown) -> Decided {
    let by_code = decide_each(finder, strings, shown);
    let any = by_code.contains(&true);
    Decided { by_code, any }
}

fn decide_each(finder: &Finder, strings: &Strings, shown: Shown) -> Vec<bool> {
    let escaped = |text: &[u8], escape: Escape| {
        let mut out = Vec::with_capacity(text.len() + 8);
        escape.kind().write_text(text, &mut out);
        finder.is_match(&out)
    };
    // Each string is stored behind its length, whose last byte is 0: a match without zeros stays
    // within one string.
    let mut decisions = match finder.alphabet().contains(0) {
        false if strings.all_shorter_than(1 << 24) => find_in_all(finder, strings),
        _ => strings.iter().map(|text| finder.is_match(text)).collect(),
    };
    let (escape, decoded_counts) = match shown {
        Shown::Plain => return decisions,
        Shown::Escaped(escape) => (escape, false),
        Shown::Both(escape) => (escape, true),
    };
    for (decision, text) in decisions.iter_mut().zip(strings.iter()) {
        if needs_escapes(text) {
            *decision = *decision && decoded_counts || escaped(text, escape);
        }
    }
    decisions
}

/// Finds a pattern in all strings with one pass over their buffer.
fn find_in_all(finder: &Finder, strings: &Strings) -> Vec<bool> {
    let mut found = vec![false; strings.len()];
    let bytes = strings.bytes();
    let (mut at, mut code) = (0, 0);
    while let Some(hit) = finder.find(bytes, at) {
        // The strings lie in the order of their codes.
        while code < strings.len() && strings.range(code as u32).1 as usize <= hit.start {
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
    let (from, to) = strings.range(code as u32);
    from as usize..to as usize
}
