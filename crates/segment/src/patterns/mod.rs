//! The patterns of the messages of a segment, counted when it is made.
//!
//! The most frequent patterns of all records of a segment are answered from here without reading its rows. The
//! table of a merged segment is made of those of its inputs. `docs/format/segment.md` is normative.
//!
//! Severities are not decided here: records are counted by their [`Kind`], as in a timeline.
//!
//! Bounds: [`ENTRIES_MAX`] entries, [`TEXT_BYTES_MAX`] bytes of texts, [`COUNTS_MAX`] counts.

mod cluster;
mod collect;
mod lines;
mod samples;
mod text;

use std::sync::LazyLock;

use logpond_record::{SEVERITY_LABELS, Timestamp, cast};
use xxhash_rust::xxh3::xxh3_64;

pub use cluster::{Template, TemplateCounts, cluster};
pub use collect::PatternTableBuilder;
pub use lines::{LineColumns, LineTemplates, ODD};
pub use samples::{SAMPLE_BYTES_MAX, Sample, Samples};
pub use text::{WILDCARD, message_is_part, write_message_pattern, write_pattern, write_request};

use crate::encoding::{unzigzag, zigzag};
use crate::timeline::{Kind, SECOND_NS, read_kinds, write_kinds};
use crate::wire::{DecodeError, Decoder, Encoder};

/// The lengths of steps in seconds, each a multiple of the one before. The shortest is taken of which there are no more
/// than [`STEPS_MAX`] from the first to the last, and [`COUNTS_MAX`] counts.
const STEPS_S: [u32; 9] = [60, 300, 900, 1800, 3600, 10_800, 21_600, 43_200, 86_400];

/// The most patterns, those of records of different kinds counted each: as many as an answer keeps apart.
const ENTRIES_MAX: usize = 1 << 14;

/// The most bytes of patterns and samples together.
const TEXT_BYTES_MAX: usize = 2 << 20;

/// The most counts of a step and an entry.
const COUNTS_MAX: usize = 1 << 18;

/// The most steps from the first to the last, if shorter ones than days are taken: curves have fewer points, and their
/// steps are multiples of these.
const STEPS_MAX: i64 = 512;

/// The version of the bytes of a table.
const VERSION: u64 = 1;

/// The largest table that is read, in bytes after decompression: all texts and counts, and what goes with them.
pub(crate) const PATTERNS_BYTES_MAX: usize = 8 << 20;

/// The units of the times of samples in nanoseconds: the longest that divides a time is taken.
const UNITS_NS: [u64; 4] = [1_000_000_000, 1_000_000, 1000, 1];

/// Records by pattern, kind and time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PatternTable {
    /// Records.
    rows: u64,
    /// The length of a step, as its place in [`STEPS_S`].
    step: usize,
    /// The kinds by their numbers.
    kinds: Vec<Kind>,
    /// True if patterns that differ were put together for the bounds.
    is_coarse: bool,
    /// In ascending order of pattern and kind; `None` if other rules made them.
    entries: Option<Vec<PatternEntry>>,
}

/// The records of a pattern and kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PatternEntry {
    /// The pattern, see [`write_pattern`].
    pub pattern: Box<[u8]>,
    /// The number of the kind.
    pub kind: u32,
    /// True if a message is a part of its line.
    pub is_part: bool,
    /// Records by the number of their step since the epoch, in ascending order.
    counts: Vec<(i64, u64)>,
    /// The newest messages.
    pub samples: Samples,
}

/// The number of the rule of [`write_pattern`].
const PATTERN_RULE: &str = "1";

/// The rules by which patterns and kinds are found, in one number: a program with other ones cannot use the table.
fn rules() -> u64 {
    static RULES: LazyLock<u64> = LazyLock::new(|| {
        let names = SEVERITY_LABELS.iter().chain(&text::CLIENT_FIELDS);
        let names: Vec<&str> = std::iter::once(&PATTERN_RULE)
            .chain(names)
            .copied()
            .collect();
        xxh3_64(names.join("\n").as_bytes())
    });
    *RULES
}

impl PatternTable {
    /// The length of the shortest steps in nanoseconds; all others are multiples of it.
    pub const STEP_NS_MIN: i64 = STEPS_S[0] as i64 * SECOND_NS;

    /// Records.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The length of a step in nanoseconds; steps begin at multiples of it since the epoch.
    pub fn step_ns(&self) -> i64 {
        step_ns(self.step)
    }

    /// True if patterns that differ were put together, since there were too many.
    pub fn is_coarse(&self) -> bool {
        self.is_coarse
    }

    /// The kinds by their numbers.
    pub fn kinds(&self) -> &[Kind] {
        &self.kinds
    }

    /// The entries; `None` if they were made by other rules than those of this program.
    pub fn entries(&self) -> Option<&[PatternEntry]> {
        self.entries.as_deref()
    }

    /// The beginning of each step with records of an entry, in nanoseconds since the epoch, and their number.
    pub fn counts(&self, entry: &PatternEntry) -> impl Iterator<Item = (i64, u64)> {
        let step_ns = self.step_ns();
        let counts = entry.counts.iter();
        counts.map(move |(step, rows)| (step.saturating_mul(step_ns), *rows))
    }

    /// The same with about half of the texts: the rarest patterns have no samples. `None` if none had any.
    pub(crate) fn lighter(&self) -> Option<PatternTable> {
        let entries = self.entries()?.iter();
        let samples: usize = entries.map(|entry| entry.samples.bytes()).sum();
        let mut builder = PatternTableBuilder::default();
        (samples > 0 && builder.merge(self)).then_some(())?;
        builder.lighten(builder.text_bytes() - samples.div_ceil(2));
        builder.finish()
    }

    /// The table as it is stored, before compression.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Encoder::new(VERSION);
        out.number(rules());
        out.number(self.rows);
        out.count(self.step);
        out.flag(self.is_coarse);
        write_kinds(&self.kinds, &mut out);
        let entries = self.entries.as_deref().unwrap_or_default();
        let steps = entries.iter().filter_map(|entry| entry.counts.last());
        let last = steps.map(|(step, _)| *step).max().unwrap_or(0);
        out.number(zigzag(last));
        out.count(entries.len());
        // Numbers between texts would make both harder to compress.
        let mut texts = Encoder::default();
        let mut pattern = Vec::new();
        for entry in entries {
            entry.write_texts(&mut pattern, &mut texts);
            entry.write_numbers(last, self.step, &mut out);
        }
        out.bytes(&texts.finish());
        out.finish()
    }

    /// Reads what [`PatternTable::encode`] wrote.
    pub(crate) fn decode(bytes: &[u8]) -> Result<PatternTable, DecodeError> {
        let mut from = Decoder::new(bytes, VERSION)?;
        let is_other = from.number("the rules")? != rules();
        let rows = from.number("the records")?;
        if is_other {
            return Ok(PatternTable {
                rows,
                ..PatternTable::default()
            });
        }
        let step = usize::try_from(from.number("the length of a step")?).ok();
        let step = step.filter(|step| *step < STEPS_S.len());
        let step = step.ok_or(DecodeError::Malformed("the length of a step"))?;
        let is_coarse = from.flag("whether patterns are coarse")?;
        let kinds = read_kinds(&mut from)?;
        let last = unzigzag(from.number("the last step")?);
        let entries = from.count(3, "the patterns")?;
        if entries > ENTRIES_MAX {
            return Err(DecodeError::Malformed("the number of patterns"));
        }
        let numbers: Vec<(PatternEntry, Vec<i64>)> = (0..entries)
            .map(|_| PatternEntry::read_numbers(&mut from, (last, step), kinds.len()))
            .collect::<Result<_, _>>()?;
        let mut texts = Decoder::bare(from.bytes(usize::MAX, "the texts")?);
        from.finish()?;
        let mut entries = Vec::with_capacity(numbers.len());
        let mut pattern = Vec::new();
        for (mut entry, times) in numbers {
            entry.read_texts(&times, &mut pattern, &mut texts)?;
            entries.push(entry);
        }
        texts.finish()?;
        Ok(PatternTable {
            rows,
            step,
            is_coarse,
            kinds,
            entries: Some(entries),
        })
    }
}

fn step_ns(step: usize) -> i64 {
    i64::from(STEPS_S[step]) * SECOND_NS
}

/// The instant from which the times of samples are counted back: the end of the last step.
fn end_of(last: i64, step: usize) -> i64 {
    last.saturating_add(1).saturating_mul(step_ns(step))
}

impl PatternEntry {
    /// Appends the samples, and the pattern behind its length plus 1; only 0 if it is that of the first sample.
    fn write_texts(&self, pattern: &mut Vec<u8>, out: &mut Encoder) {
        for sample in self.samples.list() {
            out.bytes(&sample.text);
        }
        pattern.clear();
        if let Some(newest) = self.samples.list().first() {
            write_message_pattern(&newest.text, pattern);
        }
        if **pattern == *self.pattern {
            out.count(0);
        } else {
            out.count(1 + self.pattern.len());
            out.raw(&self.pattern);
        }
    }

    fn read_texts(
        &mut self,
        times: &[i64],
        pattern: &mut Vec<u8>,
        from: &mut Decoder<'_>,
    ) -> Result<(), DecodeError> {
        for time in times {
            let text = from.bytes(SAMPLE_BYTES_MAX, "a sample")?;
            self.samples.add(Timestamp(*time), text);
        }
        pattern.clear();
        match from.number("the length of a pattern")?.checked_sub(1) {
            Some(bytes) => {
                let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
                pattern.extend_from_slice(from.raw(bytes, "a pattern")?);
            }
            None => {
                if let Some(newest) = self.samples.list().first() {
                    write_message_pattern(&newest.text, pattern);
                }
            }
        }
        self.pattern = pattern.as_slice().into();
        Ok(())
    }

    /// Appends everything but the texts; `last` is the last step of the table.
    fn write_numbers(&self, last: i64, step: usize, out: &mut Encoder) {
        out.number(u64::from(self.kind) << 1 | u64::from(self.is_part));
        out.count(self.samples.list().len());
        for sample in self.samples.list() {
            let before_end = cast::unsigned(end_of(last, step).wrapping_sub(sample.time.0));
            let unit = UNITS_NS
                .iter()
                .position(|unit| before_end.is_multiple_of(*unit));
            let unit = unit.unwrap_or(UNITS_NS.len() - 1);
            out.count(unit);
            out.number(before_end / UNITS_NS[unit]);
        }
        out.count(self.counts.len());
        let mut after = last;
        for (step, _) in self.counts.iter().rev() {
            out.number(cast::unsigned(after.wrapping_sub(*step)));
            after = *step;
        }
        for (_, rows) in self.counts.iter().rev() {
            out.number(*rows);
        }
    }

    /// Reads what [`PatternEntry::write_numbers`] wrote, of a table with so many kinds; gives the times of samples.
    fn read_numbers(
        from: &mut Decoder<'_>,
        (last, step): (i64, usize),
        kinds: usize,
    ) -> Result<(PatternEntry, Vec<i64>), DecodeError> {
        let first = from.number("the kind of a pattern")?;
        let kind = u32::try_from(first >> 1).ok();
        let kind = kind.filter(|kind| (*kind as usize) < kinds);
        let mut times = Vec::new();
        for _ in 0..from.count(2, "the samples")? {
            let unit = from.number("a unit")?;
            let unit = usize::try_from(unit)
                .ok()
                .and_then(|unit| UNITS_NS.get(unit));
            let unit = unit.ok_or(DecodeError::Malformed("a unit"))?;
            let before_end = from.number("the time of a sample")?.wrapping_mul(*unit);
            times.push(end_of(last, step).wrapping_sub(cast::signed(before_end)));
        }
        let mut counts = Vec::new();
        let mut after = last;
        for _ in 0..from.count(2, "the steps of a pattern")? {
            after = after.wrapping_sub(cast::signed(from.number("a step")?));
            counts.push((after, 0));
        }
        for (_, rows) in &mut counts {
            *rows = from.number("the records of a step")?;
        }
        counts.reverse();
        let entry = PatternEntry {
            kind: kind.ok_or(DecodeError::Malformed("the kind of a pattern"))?,
            is_part: first & 1 == 1,
            counts,
            ..PatternEntry::default()
        };
        Ok((entry, times))
    }
}

#[cfg(test)]
mod tests;
