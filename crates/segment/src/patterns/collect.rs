//! The pattern table of rows.

use std::sync::Arc;

use logpond_record::{Id, Timestamp, cast};

use super::cluster::{Template, TemplateCounts, cluster};
use super::samples::Samples;
use super::text::{WILDCARD, message_is_part, write_message_pattern, write_pattern, write_request};
use super::{
    COUNTS_MAX, ENTRIES_MAX, LineColumns, LineTemplates, ODD, PatternEntry, PatternTable,
    STEPS_MAX, STEPS_S, TEXT_BYTES_MAX, step_ns,
};
use crate::fixed_map::FixedMap;
use crate::rows::{Column, Interner, NULL, Plans, Rows, RowsView, Schema, StringColumn, VARIABLE};
use crate::timeline::{KINDS_BYTES_MAX, KINDS_MAX, Kind, RowKinds, kind_bytes};

/// Stands for a pattern that was not looked for, for no tally, and for a text that is only known once it is read.
const UNKNOWN: u32 = u32::MAX;

/// The most patterns, and bytes of them, while a row group is counted: records with further ones have the pattern
/// [`WILDCARD`].
const GROUP_PATTERNS_MAX: usize = 2 * ENTRIES_MAX;
const GROUP_TEXT_BYTES_MAX: usize = 2 * TEXT_BYTES_MAX;

/// Makes the pattern table of a segment, row group by row group.
#[derive(Default)]
pub struct PatternTableBuilder {
    rows: u64,
    step: usize,
    /// The first and the last instant, or of other tables the beginnings of their steps.
    span: Option<(i64, i64)>,
    kinds: Vec<Kind>,
    patterns: Interner,
    /// For each pattern the first of its tallies.
    first: Vec<u32>,
    tallies: Vec<Tally>,
    /// True if patterns that differ were put together.
    is_coarse: bool,
    /// True if there is no table, since a bound was passed.
    is_over: bool,
}

/// The records of a pattern and kind so far.
struct Tally {
    pattern: u32,
    kind: u32,
    /// The next one of the same pattern.
    next: u32,
    is_part: bool,
    /// Records by step, in ascending order.
    counts: Vec<(i64, u64)>,
    /// The same of the row group at hand, in any order.
    recent: Vec<(i64, u64)>,
    /// The first instant of the last step there, and the one behind it.
    recent_span: (i64, i64),
    samples: Samples,
    /// The number of the text that was the last one to be taken as a sample, and its time.
    last_text: (RowText, i64),
}

/// The text of a row: those of the same number are equal in a row group.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RowText {
    /// A message, by its code.
    Message(u32),
    /// A message that is not UTF-8.
    Bytes(u32),
    /// A line that is its template.
    Line(u32),
    /// A line.
    Unknown,
}

/// The pattern of a row, by its number, and its text.
type RowPattern = (u32, RowText);

impl Tally {
    fn new(pattern: u32, kind: u32, next: u32) -> Tally {
        Tally {
            pattern,
            kind,
            next,
            is_part: false,
            counts: Vec::new(),
            recent: Vec::new(),
            recent_span: (0, 0),
            samples: Samples::default(),
            last_text: (RowText::Unknown, 0),
        }
    }

    /// Counts a record. Neighbours are mostly of one step.
    fn count(&mut self, time: i64, step_ns: i64) {
        let (from, to) = self.recent_span;
        if from <= time
            && time < to
            && let Some((_, rows)) = self.recent.last_mut()
        {
            *rows += 1;
            return;
        }
        let step = time.div_euclid(step_ns);
        let from = step.saturating_mul(step_ns);
        self.recent_span = (from, step.saturating_add(1).saturating_mul(step_ns));
        self.recent.push((step, 1));
    }

    /// True if a text may change the samples.
    fn may_take(&self, text: RowText, time: i64) -> bool {
        let is_last = text != RowText::Unknown && self.last_text.0 == text;
        self.samples.may_have(Timestamp(time)) && !(is_last && time <= self.last_text.1)
    }

    /// Ends a row group.
    fn settle(&mut self) {
        add_counts(&mut self.counts, std::mem::take(&mut self.recent));
        self.recent_span = (0, 0);
        self.last_text = (RowText::Unknown, 0);
    }
}

impl TemplateCounts for Tally {
    fn count(&self) -> u64 {
        self.counts.iter().map(|(_, rows)| rows).sum()
    }

    fn merge(&mut self, other: Tally) {
        self.is_part |= other.is_part;
        add_counts(&mut self.counts, other.counts);
        self.samples.merge(&other.samples);
    }
}

/// Adds records of steps in any order to those in order.
fn add_counts(counts: &mut Vec<(i64, u64)>, mut more: Vec<(i64, u64)>) {
    if more.is_empty() {
        return;
    }
    let is_behind = match (counts.last(), more.first()) {
        (Some((last, _)), Some((first, _))) => more.len() == 1 && last < first,
        _ => false,
    };
    counts.append(&mut more);
    if !is_behind {
        counts.sort_unstable();
        counts.dedup_by(|(step, rows), (kept, sum)| {
            let is_same = step == kept;
            if is_same {
                *sum += *rows;
            }
            is_same
        });
    }
}

/// The columns of rows that are held together.
struct RowColumns<'r>(&'r Rows);

impl LineColumns for RowColumns<'_> {
    type Error = std::convert::Infallible;

    fn times(&mut self) -> Result<&[i64], Self::Error> {
        Ok(&self.0.time)
    }

    fn field(&mut self, column: usize) -> Result<(&Column, bool), Self::Error> {
        Ok((&self.0.fields[column], false))
    }
}

impl PatternTableBuilder {
    /// True if rows need not be added any more: there is no table.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Adds rows with their templates, as far as they have some, and their kinds, unless these are too many.
    pub(crate) fn add(
        &mut self,
        rows: &Rows,
        schema: &Schema,
        templates: &Column,
        kinds: Option<&RowKinds>,
    ) {
        if self.is_over {
            return;
        }
        let numbers = kinds.and_then(|kinds| self.numbers_of(&kinds.kinds));
        let (Some(kinds), Some(numbers)) = (kinds, numbers) else {
            self.give_up();
            return;
        };
        self.rows += rows.len() as u64;
        let mut plans = Plans::default();
        let view = RowsView::new(rows, schema, &mut plans);
        let patterns = self.patterns_of(&view, schema, templates);
        let times = || rows.time.iter().copied();
        self.widen(times().min(), times().max());
        let step_ns = step_ns(self.step);
        let mut are_parts = vec![None; rows.shape.values.len()];
        let mut line = Vec::new();
        let mut last = (UNKNOWN, UNKNOWN, 0);
        // Rows that are alike stand in order of time: the newest first, so that few texts are looked at.
        for row in (0..rows.len()).rev() {
            let (pattern, text) = patterns[row];
            let kind = numbers[kinds.of_rows[row] as usize];
            if (last.0, last.1) != (pattern, kind) {
                last = (pattern, kind, self.place(pattern, kind));
            }
            let tally = &mut self.tallies[last.2];
            let time = rows.time[row];
            tally.count(time, step_ns);
            if matches!(text, RowText::Message(_) | RowText::Bytes(_)) && !tally.is_part {
                let is_part = &mut are_parts[rows.shape.codes[row] as usize];
                let is_part = is_part.get_or_insert_with(|| message_is_part(view.shape(row)));
                tally.is_part = *is_part || rows.whole.get(row).is_some();
            }
            if tally.may_take(text, time) {
                let of_row: &[u8] = match text {
                    RowText::Message(code) => rows.message.values.get(code),
                    RowText::Bytes(code) => rows.message_bytes.values.get(code),
                    RowText::Line(_) | RowText::Unknown => {
                        line.clear();
                        view.write_line(row, &mut line);
                        &line
                    }
                };
                tally.samples.add(Timestamp(time), of_row);
                tally.last_text = (text, time);
            }
        }
        self.tallies.iter_mut().for_each(Tally::settle);
        self.check_bounds();
    }

    /// Adds the table of other rows; `false` if other rules made it.
    pub(crate) fn merge(&mut self, other: &PatternTable) -> bool {
        let Some(entries) = other.entries() else {
            return false;
        };
        if self.is_over {
            return true;
        }
        let Some(numbers) = self.numbers_of(&other.kinds) else {
            self.give_up();
            return true;
        };
        self.rows += other.rows;
        self.is_coarse |= other.is_coarse;
        if other.step > self.step {
            self.lengthen(other.step);
        }
        let starts = || entries.iter().flat_map(|entry| other.counts(entry));
        let starts = || starts().map(|(start, _)| start);
        self.widen(starts().min(), starts().max());
        let step_ns = step_ns(self.step);
        for entry in entries {
            let pattern = self.patterns.intern(&entry.pattern);
            let at = self.place(pattern, numbers[entry.kind as usize]);
            let tally = &mut self.tallies[at];
            tally.is_part |= entry.is_part;
            tally.samples.merge(&entry.samples);
            let counts = other.counts(entry);
            let counts = counts.map(|(start, rows)| (start.div_euclid(step_ns), rows));
            add_counts(&mut tally.counts, counts.collect());
        }
        self.check_bounds();
        true
    }

    /// The table; `None` if it would be too large.
    pub(crate) fn finish(self) -> Option<PatternTable> {
        if self.is_over {
            return None;
        }
        let patterns = &self.patterns.values;
        let tallies = self.tallies.into_iter();
        let entry = |tally: Tally| PatternEntry {
            pattern: patterns.get(tally.pattern).into(),
            kind: tally.kind,
            is_part: tally.is_part,
            counts: tally.counts,
            samples: tally.samples,
        };
        let mut entries: Vec<PatternEntry> = tallies.map(entry).collect();
        entries.sort_by(|a, b| (&a.pattern, a.kind).cmp(&(&b.pattern, b.kind)));
        Some(PatternTable {
            rows: self.rows,
            step: self.step,
            is_coarse: self.is_coarse,
            kinds: self.kinds,
            entries: Some(entries),
        })
    }

    /// The numbers of these kinds, which are known afterwards; `None` if there are too many.
    fn numbers_of(&mut self, kinds: &[Kind]) -> Option<Vec<u32>> {
        let mut number = |kind: &Kind| match self.kinds.iter().position(|known| known == kind) {
            Some(at) => cast::low_u32(at),
            None => {
                self.kinds.push(kind.clone());
                cast::low_u32(self.kinds.len()) - 1
            }
        };
        let numbers = kinds.iter().map(&mut number).collect();
        let bytes: usize = self.kinds.iter().map(kind_bytes).sum();
        (self.kinds.len() <= KINDS_MAX && bytes <= KINDS_BYTES_MAX).then_some(numbers)
    }

    /// The place of the tally of a pattern and kind.
    fn place(&mut self, pattern: u32, kind: u32) -> usize {
        let patterns = self.patterns.values.len();
        self.first.resize(patterns, UNKNOWN);
        let first = self.first[pattern as usize];
        let mut at = first;
        while at != UNKNOWN {
            let tally = &self.tallies[at as usize];
            if tally.kind == kind {
                return at as usize;
            }
            at = tally.next;
        }
        let at = self.tallies.len();
        self.first[pattern as usize] = cast::low_u32(at);
        self.tallies.push(Tally::new(pattern, kind, first));
        at
    }

    /// The pattern of each row.
    fn patterns_of(
        &mut self,
        view: &RowsView<'_>,
        schema: &Schema,
        templates: &Column,
    ) -> Vec<RowPattern> {
        let rows = view.rows();
        let mut patterns = vec![(UNKNOWN, RowText::Unknown); rows.len()];
        if let Column::Strings(templates) = templates {
            let mut known = vec![UNKNOWN; templates.values.len()];
            for (row, pattern) in patterns.iter_mut().enumerate() {
                let code = templates.codes[row];
                if code != NULL {
                    let known = &mut known[code as usize];
                    if *known == UNKNOWN {
                        *known = self.intern(|out| write_pattern(templates.values.get(code), out));
                    }
                    *pattern = (*known, RowText::Message(rows.message.codes[row]));
                }
            }
        } else {
            self.add_messages(&rows.message, RowText::Message, &mut patterns);
        }
        self.add_messages(&rows.message_bytes, RowText::Bytes, &mut patterns);
        self.add_lines(view, schema, &mut patterns);
        patterns
    }

    /// Finds the patterns of messages of which no template is known.
    fn add_messages(
        &mut self,
        messages: &StringColumn,
        text: impl Fn(u32) -> RowText,
        patterns: &mut [RowPattern],
    ) {
        let mut known = vec![UNKNOWN; messages.values.len()];
        for (row, pattern) in patterns.iter_mut().enumerate() {
            let code = messages.codes[row];
            if code != NULL && pattern.0 == UNKNOWN {
                let known = &mut known[code as usize];
                if *known == UNKNOWN {
                    let message = messages.values.get(code);
                    *known = self.intern(|out| write_message_pattern(message, out));
                }
                *pattern = (*known, text(code));
            }
        }
    }

    /// Finds the patterns of lines without a message.
    fn add_lines(&mut self, view: &RowsView<'_>, schema: &Schema, patterns: &mut [RowPattern]) {
        let rows = view.rows();
        let mut by_shape: Vec<Vec<u32>> = vec![Vec::new(); rows.shape.values.len()];
        let mut odd = Vec::new();
        for row in (0..rows.len()).filter(|row| patterns[*row].0 == UNKNOWN) {
            match rows.whole.get(row).or_else(|| rows.fix.get(row)) {
                Some(_) => odd.push(cast::low_u32(row)),
                None => by_shape[rows.shape.codes[row] as usize].push(cast::low_u32(row)),
            }
        }
        let mut templates = LineTemplates::default();
        let mut known: FixedMap<u32, RowPattern> = FixedMap::default();
        for (code, of_shape) in by_shape.iter().enumerate() {
            let Some(first) = of_shape.first() else {
                continue;
            };
            let shape = Arc::clone(view.shape(*first as usize));
            let text = rows.shape.values.get(cast::low_u32(code));
            let columns = &mut RowColumns(rows);
            let Ok(steps) = templates.steps_of((&shape, text), schema, of_shape, columns);
            for (row, step) in of_shape.iter().zip(steps) {
                if step == ODD {
                    odd.push(*row);
                    continue;
                }
                let pattern = match known.get(&step) {
                    Some(pattern) => *pattern,
                    None => {
                        let template = templates.template_of(step);
                        let pattern = self.intern(|out| write_pattern(&template, out));
                        let are_alike = memchr::memmem::find(&template, VARIABLE).is_none();
                        let text = are_alike.then_some(RowText::Line(step));
                        let pattern = (pattern, text.unwrap_or(RowText::Unknown));
                        known.insert(step, pattern);
                        pattern
                    }
                };
                patterns[*row as usize] = pattern;
            }
        }
        let mut line = Vec::new();
        for row in odd {
            line.clear();
            write_request(&view.record(row as usize, Id(0)), &mut line);
            let pattern = self.intern(|out| write_message_pattern(&line, out));
            patterns[row as usize] = (pattern, RowText::Unknown);
        }
    }

    /// The number of the pattern that is written, or that of all if there are too many.
    fn intern(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> u32 {
        let mut pattern = Vec::new();
        write(&mut pattern);
        let values = &self.patterns.values;
        let is_room =
            values.len() < GROUP_PATTERNS_MAX && values.bytes().len() < GROUP_TEXT_BYTES_MAX;
        if is_room {
            return self.patterns.intern(&pattern);
        }
        self.patterns.find(&pattern).unwrap_or_else(|| {
            self.is_coarse = true;
            self.patterns.intern(WILDCARD)
        })
    }

    /// Counts of all patterns and kinds.
    fn count_counts(&self) -> usize {
        self.tallies.iter().map(|tally| tally.counts.len()).sum()
    }

    /// Bytes of patterns and samples.
    pub(super) fn text_bytes(&self) -> usize {
        let samples = self.tallies.iter().map(|tally| tally.samples.bytes());
        self.patterns.values.bytes().len() + samples.sum::<usize>()
    }

    /// Steps from the first to the last.
    fn span_steps(&self) -> i64 {
        let step_ns = step_ns(self.step);
        self.span.map_or(0, |(first, last)| {
            last.div_euclid(step_ns) - first.div_euclid(step_ns) + 1
        })
    }

    /// Takes in instants from the first to the last, with longer steps if there would be too many.
    fn widen(&mut self, first: Option<i64>, last: Option<i64>) {
        let (Some(first), Some(last)) = (first, last) else {
            return;
        };
        let (from, to) = self.span.unwrap_or((first, last));
        self.span = Some((from.min(first), to.max(last)));
        while self.span_steps() > STEPS_MAX && self.step + 1 < STEPS_S.len() {
            self.lengthen(self.step + 1);
        }
    }

    /// Makes the table smaller where it is too large. Counts stay exact as long as there are few enough patterns: steps
    /// become longer, first as far as no curve loses by it, and the rarest patterns lose their samples.
    fn check_bounds(&mut self) {
        let is_last = |step: usize| step + 1 == STEPS_S.len();
        let is_long =
            |builder: &PatternTableBuilder| builder.patterns.values.bytes().len() > TEXT_BYTES_MAX;
        if self.tallies.len() > ENTRIES_MAX || is_long(self) {
            self.coarsen();
        }
        while self.count_counts() > COUNTS_MAX && !is_last(self.step) {
            self.lengthen(self.step + 1);
        }
        if self.count_counts() > COUNTS_MAX || is_long(self) {
            self.give_up();
        } else if self.text_bytes() > TEXT_BYTES_MAX {
            self.lighten(TEXT_BYTES_MAX / 4 * 3);
        }
    }

    /// Forgets the samples of the rarest patterns, so that so many bytes of patterns and samples are left.
    pub(super) fn lighten(&mut self, bytes_max: usize) {
        let values = &self.patterns.values;
        let mut by_count: Vec<(u64, &[u8], usize)> = self
            .tallies
            .iter()
            .enumerate()
            .map(|(at, tally)| (tally.count(), values.get(tally.pattern), at))
            .collect();
        by_count.sort_unstable_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(b.1)));
        let order: Vec<usize> = by_count.into_iter().map(|(.., at)| at).collect();
        let mut bytes = values.bytes().len();
        for at in order {
            let samples = &mut self.tallies[at].samples;
            bytes += samples.bytes();
            if bytes > bytes_max {
                *samples = Samples::default();
            }
        }
    }

    /// Puts patterns together that differ in few words. Of those that are left the most frequent stay; the others are one
    /// for each kind. An answer does the same with as many patterns.
    fn coarsen(&mut self) {
        self.is_coarse = true;
        let patterns = std::mem::take(&mut self.patterns).values;
        self.first.clear();
        let tallies = std::mem::take(&mut self.tallies).into_iter();
        let template = |tally: Tally| Template {
            level: tally.kind.to_be_bytes().into(),
            text: patterns.get(tally.pattern).into(),
            found: tally,
        };
        let mut templates = cluster(tallies.map(template).collect());
        templates.sort_unstable_by(Template::by_count);
        let mut bytes = 0;
        for (number, Template { text, found, .. }) in templates.into_iter().enumerate() {
            bytes += text.len();
            let is_rare = number >= ENTRIES_MAX / 2 || bytes > TEXT_BYTES_MAX / 2;
            let text = if is_rare { WILDCARD } else { &*text };
            let pattern = self.patterns.intern(text);
            let at = self.place(pattern, found.kind);
            self.tallies[at].merge(found);
        }
    }

    /// Makes the steps as long as those of this place in [`STEPS_S`].
    fn lengthen(&mut self, step: usize) {
        let times = i64::from(STEPS_S[step] / STEPS_S[self.step]);
        self.step = step;
        for tally in &mut self.tallies {
            let shorter = std::mem::take(&mut tally.counts).into_iter();
            let longer = shorter.map(|(step, rows)| (step.div_euclid(times), rows));
            add_counts(&mut tally.counts, longer.collect());
        }
    }

    /// Forgets all: there is no table.
    fn give_up(&mut self) {
        *self = PatternTableBuilder {
            is_over: true,
            ..PatternTableBuilder::default()
        };
    }
}

/// A row of a test.
#[cfg(test)]
pub(super) struct TestRow<'m> {
    pub(super) time: i64,
    pub(super) message: &'m [u8],
    pub(super) kind: Kind,
    pub(super) is_part: bool,
}

#[cfg(test)]
impl PatternTableBuilder {
    /// Adds rows without columns.
    pub(super) fn add_test_rows<'m>(&mut self, rows: impl Iterator<Item = TestRow<'m>>) {
        let rows: Vec<TestRow<'m>> = rows.collect();
        let times = || rows.iter().map(|row| row.time);
        self.widen(times().min(), times().max());
        for row in rows {
            let (Some(numbers), false) = (self.numbers_of(&[row.kind]), self.is_over) else {
                self.give_up();
                return;
            };
            let pattern = self.intern(|out| write_message_pattern(row.message, out));
            self.rows += 1;
            let at = self.place(pattern, numbers[0]);
            let tally = &mut self.tallies[at];
            tally.count(row.time, step_ns(self.step));
            tally.is_part |= row.is_part;
            tally.samples.add(Timestamp(row.time), row.message);
        }
        self.tallies.iter_mut().for_each(Tally::settle);
        self.check_bounds();
    }
}
