//! Templates of lines that have no message, put together from those of the values of their slots.
//!
//! ```text
//! 10.0.0.7 - - [22/Nov/2026:10:00:00 +0000] "GET /a HTTP/1.1" 200
//! {client}  …  {time}                        {method} {path}   {status}
//! ```
//!
//! A line's template ([`write_template`]) is that of each literal and of each value, one behind another, if at
//! every border between them stands a byte of the literal that is part of no token and joins none. So the
//! values of a dictionary are looked at once, and rows are told apart by the templates of their values.
//!
//! Bounds: [`STEPS_MAX`] steps and [`TEXTS_BYTES_MAX`] bytes of templates for a row group; rows beyond them,
//! and lines too long for a template, are left to those who make records of them.

use std::collections::HashMap;
use std::sync::Arc;

use logpond_record::{Piece, Shape, SlotKind, TimePattern, Timestamp, cast};

use super::text::{is_of_client, write_pattern};
use crate::fixed_map::FixedMap;
use crate::rows::{
    Column, ColumnType, MESSAGE_BYTES_MAX, NULL, Schema, StringColumn, Strings, VARIABLE, as_slot,
    column_value, write_template,
};
use crate::tokens::is_token_byte;

/// The most steps from one slot to the next.
const STEPS_MAX: usize = 1 << 20;

/// The most bytes of templates of values.
const TEXTS_BYTES_MAX: usize = 16 << 20;

/// The most bytes of a whole number.
const INT_BYTES_MAX: u32 = 20;

/// The most bytes of a rendered time.
const TIME_BYTES_MAX: u32 = 64;

/// A time as it is written has the same template all minute long: offsets are whole minutes.
const MINUTE_NS: i64 = 60_000_000_000;

/// The step of a line, and the code of a value, that has no template of its own.
pub const ODD: u32 = u32::MAX;

/// The code of a value that was not looked at.
const UNKNOWN: u32 = u32::MAX - 1;

/// The template of a value by its code, and the bytes of the value, or more.
type CodedValue = (u32, u32);

/// The columns that lines are made of.
pub trait LineColumns {
    /// The reason why a column cannot be read.
    type Error;

    /// Event times in nanoseconds.
    ///
    /// # Errors
    /// When the column cannot be read.
    fn times(&mut self) -> Result<&[i64], Self::Error>;

    /// A column of the schema, with true if its texts are a dictionary that other rows share.
    ///
    /// # Errors
    /// When the column cannot be read.
    fn field(&mut self, column: usize) -> Result<(&Column, bool), Self::Error>;
}

/// The templates of the lines of a row group.
#[derive(Default)]
pub struct LineTemplates {
    texts: Texts,
    /// Each step with the one before it, or a number from [`FIRST_PLAN`] up.
    steps: Vec<(u32, u32)>,
    known: FixedMap<u64, u32>,
    /// The plans by number.
    plans: Vec<Arc<Plan>>,
    plan_numbers: HashMap<Box<[u8]>, u32>,
    /// The dictionaries that all blocks share, by the place of their column and the form in which a slot shows them.
    dictionaries: HashMap<(usize, Escapes), KnownDictionary>,
    /// The templates of times by the text of their pattern and the minute.
    times: HashMap<Box<str>, FixedMap<i64, u32>>,
    /// The patterns of lines by the steps that they come to.
    patterns: FixedMap<u32, Arc<[u8]>>,
}

/// The least number of a plan as a step before the first.
const FIRST_PLAN: u32 = 1 << 24;

const _: () = assert!(STEPS_MAX <= FIRST_PLAN as usize);

/// A dictionary, which is kept so that its address stays its own, with its values.
type KnownDictionary = (Arc<Strings>, Arc<[CodedValue]>);

/// The escapes of a kind of slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Escapes {
    Nothing,
    Json,
    Quoted,
    StructuredData,
}

impl Escapes {
    fn of(kind: &SlotKind) -> Escapes {
        match kind {
            SlotKind::JsonString => Escapes::Json,
            SlotKind::Quoted => Escapes::Quoted,
            SlotKind::StructuredData => Escapes::StructuredData,
            _ => Escapes::Nothing,
        }
    }
}

/// Templates of values, each once.
#[derive(Default)]
struct Texts {
    by_code: Vec<Arc<[u8]>>,
    codes: FixedMap<Arc<[u8]>, u32>,
    bytes: usize,
    template: Vec<u8>,
    shown: Vec<u8>,
}

impl Texts {
    /// The code of a text as a slot of this kind shows it, and its bytes there.
    fn coded(&mut self, text: &[u8], kind: &SlotKind) -> CodedValue {
        if Escapes::of(kind) == Escapes::Nothing {
            return (self.code_of(text), cast::low_u32(text.len()));
        }
        let mut shown = std::mem::take(&mut self.shown);
        shown.clear();
        kind.write_text(text, &mut shown);
        let coded = (self.code_of(&shown), cast::low_u32(shown.len()));
        self.shown = shown;
        coded
    }

    /// The code of the template of a value as it is shown; [`ODD`] if a line with it has none that is put
    /// together, or there is no room.
    fn code_of(&mut self, shown: &[u8]) -> u32 {
        if shown.len() > MESSAGE_BYTES_MAX || memchr::memchr(b'\n', shown).is_some() {
            return ODD;
        }
        self.template.clear();
        write_template(shown, &mut self.template);
        if let Some(code) = self.codes.get(&self.template[..]) {
            return *code;
        }
        if self.bytes + self.template.len() > TEXTS_BYTES_MAX {
            return ODD;
        }
        self.bytes += self.template.len();
        let text: Arc<[u8]> = self.template[..].into();
        let code = cast::low_u32(self.by_code.len());
        self.by_code.push(Arc::clone(&text));
        self.codes.insert(text, code);
        code
    }
}

/// How lines of a shape are put together.
struct Plan {
    shape: Arc<Shape>,
    /// The templates of the pieces that are the same in all lines: literals, and marks for the values of clients.
    fixed: Vec<Option<Box<[u8]>>>,
    /// The columns of the slots.
    columns: Vec<Option<usize>>,
    /// Bytes of these pieces.
    bytes: u32,
}

impl Plan {
    /// `None` if lines of the shape have templates that are not put together.
    fn new(shape: Arc<Shape>, schema: &Schema) -> Option<Plan> {
        let pieces = shape.pieces();
        let is_apart = |byte: Option<u8>| byte.is_some_and(|b| !is_token_byte(b) && b != b'-');
        let are_apart = pieces.windows(2).all(|pair| match pair {
            [Piece::Literal(text), Piece::Slot(_)] => is_apart(text.bytes().last()),
            [Piece::Slot(_), Piece::Literal(text)] => is_apart(text.bytes().next()),
            _ => false,
        });
        let is_known = |kind: &SlotKind| !matches!(kind, SlotKind::Facility | SlotKind::Severity);
        let slots = shape.slots();
        let are_known = slots
            .iter()
            .all(|slot| is_known(&slot.kind) && !slot.is_message());
        let mut bytes = 0;
        let mut fixed = Vec::with_capacity(pieces.len());
        for piece in pieces {
            let text = match piece {
                Piece::Literal(text) => text.as_bytes(),
                Piece::Slot(slot) if is_of_client(&slots[*slot].name) => VARIABLE,
                Piece::Slot(_) => {
                    fixed.push(None);
                    continue;
                }
            };
            if text.contains(&b'\n') {
                return None;
            }
            bytes += text.len();
            let mut template = Vec::new();
            write_template(text, &mut template);
            fixed.push(Some(template.into()));
        }
        (are_apart && are_known && bytes <= MESSAGE_BYTES_MAX).then(|| Plan {
            shape: Arc::clone(&shape),
            fixed,
            columns: slots.iter().map(|slot| schema.column(&slot.name)).collect(),
            bytes: cast::low_u32(bytes),
        })
    }
}

/// The way of some rows of a shape, slot by slot.
struct Progress {
    /// Of each row the step that it has come to, [`ODD`] if it has none.
    steps: Vec<u32>,
    /// Of each row the bytes of its line so far, or more.
    bytes: Vec<u32>,
}

impl LineTemplates {
    /// The number of the plan of a shape, by its text; `None` if it has none.
    fn plan_of(&mut self, shape: &Arc<Shape>, text: &[u8], schema: &Schema) -> Option<u32> {
        if let Some(number) = self.plan_numbers.get(text) {
            return (*number != ODD).then_some(*number);
        }
        let plan = Plan::new(Arc::clone(shape), schema);
        let number = plan.map_or(ODD, |plan| {
            self.plans.push(Arc::new(plan));
            cast::low_u32(self.plans.len()) - 1
        });
        self.plan_numbers.insert(text.into(), number);
        (number != ODD).then_some(number)
    }

    /// Goes on from a step by the code of a value.
    fn step(&mut self, from: u32, code: u32) -> u32 {
        let key = u64::from(from) << 32 | u64::from(code);
        if let Some(step) = self.known.get(&key) {
            return *step;
        }
        if self.steps.len() >= STEPS_MAX {
            return ODD;
        }
        let step = cast::low_u32(self.steps.len());
        self.steps.push((from, code));
        self.known.insert(key, step);
        step
    }

    /// The pattern of lines that come to this step at their end, made once.
    pub fn pattern_of(&mut self, step: u32) -> Arc<[u8]> {
        if let Some(known) = self.patterns.get(&step) {
            return Arc::clone(known);
        }
        let mut pattern = Vec::new();
        write_pattern(&self.template_of(step), &mut pattern);
        let pattern: Arc<[u8]> = pattern.into();
        self.patterns.insert(step, Arc::clone(&pattern));
        pattern
    }

    /// The template of lines that come to this step at their end.
    pub(super) fn template_of(&self, step: u32) -> Vec<u8> {
        let mut codes = Vec::new();
        let mut at = step;
        while at < FIRST_PLAN {
            let (before, code) = self.steps[at as usize];
            codes.push(code);
            at = before;
        }
        let plan = &self.plans[(at - FIRST_PLAN) as usize];
        let mut template = Vec::new();
        for fixed in &plan.fixed {
            match fixed {
                Some(fixed) => template.extend_from_slice(fixed),
                None => {
                    let code = codes.pop().unwrap_or_default();
                    template.extend_from_slice(&self.texts.by_code[code as usize]);
                }
            }
        }
        template
    }

    /// The values of some rows in a column of texts, as a slot of this kind shows them.
    fn strings_of(
        &mut self,
        (column, is_shared): (usize, bool),
        strings: &StringColumn,
        kind: &SlotKind,
        rows: &[u32],
    ) -> Vec<CodedValue> {
        let mut own = Vec::new();
        let shared;
        if is_shared {
            shared = self.shared_strings(column, &strings.values, kind);
        } else {
            shared = Arc::default();
            own.resize(strings.values.len(), (UNKNOWN, 0));
        }
        let mut value = |row: &u32| match strings.codes[*row as usize] {
            NULL => (ODD, 0),
            code if is_shared => shared[code as usize],
            code => {
                let coded = &mut own[code as usize];
                if coded.0 == UNKNOWN {
                    *coded = self.texts.coded(strings.values.get(code), kind);
                }
                *coded
            }
        };
        rows.iter().map(&mut value).collect()
    }

    /// The values of a dictionary that other rows share, as a slot of this kind shows them.
    fn shared_strings(
        &mut self,
        column: usize,
        values: &Arc<Strings>,
        kind: &SlotKind,
    ) -> Arc<[CodedValue]> {
        let key = (column, Escapes::of(kind));
        if let Some((same, coded)) = self.dictionaries.get(&key)
            && Arc::ptr_eq(same, values)
        {
            return Arc::clone(coded);
        }
        let coded = values.iter().map(|text| self.texts.coded(text, kind));
        let coded: Arc<[CodedValue]> = coded.collect();
        let kept = (Arc::clone(values), Arc::clone(&coded));
        self.dictionaries.insert(key, kept);
        coded
    }

    /// The codes of times by their minutes since the epoch.
    fn codes_of_times(
        &mut self,
        pattern: &TimePattern,
        minutes: impl Iterator<Item = i64>,
    ) -> Vec<u32> {
        let LineTemplates { texts, times, .. } = self;
        let known = times.entry(format!("{pattern:?}").into()).or_default();
        let mut text = Vec::new();
        let code = |minute: i64| {
            *known.entry(minute).or_insert_with(|| {
                text.clear();
                let time = Timestamp(minute.saturating_mul(MINUTE_NS));
                pattern.render(time, &mut text);
                texts.code_of(&text)
            })
        };
        minutes.map(code).collect()
    }
}

impl Progress {
    /// Goes on with the values of a slot.
    fn go_on(&mut self, values: impl Iterator<Item = CodedValue>, templates: &mut LineTemplates) {
        // Rows beside each other mostly have the same values.
        let mut last = ((ODD, ODD), ODD);
        for ((step, bytes), (code, more)) in self.steps.iter_mut().zip(&mut self.bytes).zip(values)
        {
            *bytes = bytes.saturating_add(more);
            if *step == ODD || code == ODD {
                *step = ODD;
                continue;
            }
            if last.0 != (*step, code) {
                last = ((*step, code), templates.step(*step, code));
            }
            *step = last.1;
        }
    }
}

impl LineTemplates {
    /// The step that the line of each of some rows of a shape comes to; [`ODD`] where only the line tells. None
    /// of the rows has a message, a line that is kept whole, or a slot that is written differently.
    ///
    /// # Errors
    /// When a column cannot be read.
    pub fn steps_of<C: LineColumns>(
        &mut self,
        (shape, text): (&Arc<Shape>, &[u8]),
        schema: &Schema,
        rows: &[u32],
        columns: &mut C,
    ) -> Result<Vec<u32>, C::Error> {
        let Some(number) = self.plan_of(shape, text, schema) else {
            return Ok(vec![ODD; rows.len()]);
        };
        let plan = Arc::clone(&self.plans[number as usize]);
        let mut progress = Progress {
            steps: vec![FIRST_PLAN + number; rows.len()],
            bytes: vec![plan.bytes; rows.len()],
        };
        for piece in shape.pieces().iter().zip(&plan.fixed) {
            if let (Piece::Slot(slot), None) = piece {
                self.go_on_with((&plan, *slot), schema, rows, &mut progress, columns)?;
            }
        }
        let Progress { mut steps, bytes } = progress;
        for (step, bytes) in steps.iter_mut().zip(bytes) {
            if bytes as usize > MESSAGE_BYTES_MAX {
                *step = ODD;
            }
        }
        Ok(steps)
    }

    /// Goes on with the values that rows of a shape have in a slot.
    fn go_on_with<C: LineColumns>(
        &mut self,
        (plan, number): (&Plan, usize),
        schema: &Schema,
        rows: &[u32],
        progress: &mut Progress,
        columns: &mut C,
    ) -> Result<(), C::Error> {
        let slot = &plan.shape.slots()[number];
        match &slot.kind {
            SlotKind::Null => {
                let code = self.texts.code_of(b"null");
                progress.go_on(std::iter::repeat_n((code, 4), rows.len()), self);
                return Ok(());
            }
            SlotKind::Time(pattern) => {
                let times = columns.times()?;
                let minutes = rows
                    .iter()
                    .map(|row| times[*row as usize].div_euclid(MINUTE_NS));
                let codes = self.codes_of_times(pattern, minutes);
                let all = codes.into_iter().map(|code| (code, TIME_BYTES_MAX));
                progress.go_on(all, self);
                return Ok(());
            }
            _ => {}
        }
        let Some(column) = plan.columns[number] else {
            progress.steps.fill(ODD);
            return Ok(());
        };
        let kind = schema.columns[column].kind;
        let (values, is_shared) = columns.field(column)?;
        match values {
            Column::Strings(strings) => {
                let coded = self.strings_of((column, is_shared), strings, &slot.kind, rows);
                progress.go_on(coded.into_iter(), self);
            }
            Column::Ints(numbers) if kind == ColumnType::Int && slot.kind == SlotKind::Int => {
                // All that are not negative have the same template.
                let signs = [b"0", &b"-1"[..]].map(|text| self.texts.code_of(text));
                let value = |row: &u32| match numbers.get(*row as usize) {
                    None => (ODD, 0),
                    Some(number) => (signs[usize::from(number < 0)], INT_BYTES_MAX),
                };
                progress.go_on(rows.iter().map(value), self);
            }
            values => {
                let coded = coded_numbers((values, kind), (&plan.shape, number), rows, self);
                progress.go_on(coded.into_iter(), self);
            }
        }
        Ok(())
    }
}

/// The values of a slot for numbers and truth values.
fn coded_numbers(
    (values, kind): (&Column, ColumnType),
    (shape, number): (&Shape, usize),
    rows: &[u32],
    templates: &mut LineTemplates,
) -> Vec<CodedValue> {
    let is_whole = shape.slots()[number].kind.is_whole_number();
    let mut text = Vec::new();
    let mut coded = |row: &u32| {
        let Some(value) = column_value(values, kind, *row as usize) else {
            return (ODD, 0);
        };
        text.clear();
        let value = as_slot(value, is_whole);
        shape.render_slot(number, Timestamp(0), &value, &mut text);
        (templates.texts.code_of(&text), cast::low_u32(text.len()))
    };
    rows.iter().map(&mut coded).collect()
}
