//! When the records of a segment are, counted when it is made, and what says how severe they are.
//!
//! A histogram of all records of a segment, in all or by severity, is answered from here without reading its
//! rows. The timeline of a merged segment is made of those of its inputs. `docs/format/segment.md` is
//! normative.
//!
//! Severities are not decided here: a [`Kind`] has the fields that may say one, as they are.
//!
//! Bounds: [`STEPS_MAX`] steps, [`KINDS_MAX`] kinds.

mod collect;
mod kinds;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use logpond_record::{SEVERITY_LABELS, cast};
use xxhash_rust::xxh3::xxh3_64;

pub use collect::TimelineBuilder;
pub(crate) use kinds::RowKinds;

use crate::encoding::{unzigzag, zigzag};
use crate::wire::{DecodeError, Decoder, Encoder};

/// The lengths of steps in seconds, each a multiple of the one before: the shortest that gives no more than
/// [`STEPS_MAX`] of them is taken.
const STEPS_S: [u32; 4] = [60, 600, 3600, 86_400];

/// The most steps of a timeline: two days and twenty hours of minutes. A year has 366 days.
const STEPS_MAX: usize = 4096;

/// The most kinds of records: where there are more, they are not told apart …
pub(crate) const KINDS_MAX: usize = 64;

/// … as where their texts have more bytes together.
pub(crate) const KINDS_BYTES_MAX: usize = 4 << 10;

/// Nanoseconds of a second.
pub(crate) const SECOND_NS: i64 = 1_000_000_000;

/// The version of the bytes of a timeline.
const VERSION: u64 = 1;

/// The largest timeline that is read, in bytes after decompression: all kinds in all steps, and their texts.
pub(crate) const TIMELINE_BYTES_MAX: usize = 4 << 20;

/// The fields that say how severe a record is, with their texts, by name. Fields without a value, and nulls,
/// are left out.
pub type Kind = Vec<(Box<str>, Box<[u8]>)>;

/// Records by time and kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeline {
    /// Records.
    rows: u64,
    /// The length of a step, as its place in [`STEPS_S`].
    step: usize,
    /// The kinds by their numbers; `None` if they are too many.
    kinds: Option<Vec<Kind>>,
    /// For each step, by its number since the epoch, the records of each kind that it has, by number; all of
    /// them under 0 if kinds are not told apart.
    steps: BTreeMap<i64, BTreeMap<u32, u64>>,
}

impl Default for Timeline {
    fn default() -> Timeline {
        Timeline {
            rows: 0,
            step: 0,
            kinds: Some(Vec::new()),
            steps: BTreeMap::new(),
        }
    }
}

/// The names of the fields that say a severity, in one number: whoever knows other ones cannot use the kinds.
fn vocabulary() -> u64 {
    static VOCABULARY: LazyLock<u64> =
        LazyLock::new(|| xxh3_64(SEVERITY_LABELS.join("\n").as_bytes()));
    *VOCABULARY
}

impl Timeline {
    /// The length of the shortest steps in nanoseconds; all others are multiples of it.
    pub const STEP_NS_MIN: i64 = STEPS_S[0] as i64 * SECOND_NS;

    /// Records.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The length of a step in nanoseconds; steps begin at multiples of it since the epoch.
    pub fn step_ns(&self) -> i64 {
        i64::from(STEPS_S[self.step]) * SECOND_NS
    }

    /// The kinds by their numbers; `None` if they are not told apart.
    pub fn kinds(&self) -> Option<&[Kind]> {
        self.kinds.as_deref()
    }

    /// Every step's beginning in nanoseconds since the epoch, with the number of a kind that it has and its
    /// records.
    pub fn counts(&self) -> impl Iterator<Item = (i64, u32, u64)> {
        let step_ns = self.step_ns();
        self.steps.iter().flat_map(move |(step, counts)| {
            let start = step.saturating_mul(step_ns);
            counts.iter().map(move |(kind, rows)| (start, *kind, *rows))
        })
    }

    /// The number of a kind, which is known afterwards; 0 if kinds are not told apart.
    fn number_of(&mut self, kind: Kind) -> u32 {
        let Some(kinds) = &mut self.kinds else {
            return 0;
        };
        if let Some(at) = kinds.iter().position(|known| *known == kind) {
            return cast::low_u32(at);
        }
        let all = kinds.iter().map(kind_bytes).sum::<usize>() + kind_bytes(&kind);
        if kinds.len() < KINDS_MAX && all <= KINDS_BYTES_MAX {
            kinds.push(kind);
            return cast::low_u32(kinds.len()) - 1;
        }
        self.join_kinds();
        0
    }

    /// Tells kinds apart no more.
    fn join_kinds(&mut self) {
        self.kinds = None;
        for counts in self.steps.values_mut() {
            let rows = counts.values().sum();
            *counts = BTreeMap::from([(0, rows)]);
        }
    }

    /// Adds records of an instant in nanoseconds since the epoch.
    fn add(&mut self, time_ns: i64, kind: u32, rows: u64) {
        let kind = if self.kinds.is_some() { kind } else { 0 };
        let step = time_ns.div_euclid(self.step_ns());
        *self.steps.entry(step).or_default().entry(kind).or_default() += rows;
        self.rows += rows;
        while self.steps.len() > STEPS_MAX && self.step + 1 < STEPS_S.len() {
            self.lengthen(self.step + 1);
        }
    }

    /// Makes the steps as long as those of this place in [`STEPS_S`].
    fn lengthen(&mut self, step: usize) {
        let times = i64::from(STEPS_S[step] / STEPS_S[self.step]);
        self.step = step;
        for (short, counts) in std::mem::take(&mut self.steps) {
            let long = self.steps.entry(short.div_euclid(times)).or_default();
            for (kind, rows) in counts {
                *long.entry(kind).or_default() += rows;
            }
        }
    }

    /// Adds what other records have.
    pub fn merge(&mut self, other: &Timeline) {
        if other.step > self.step {
            self.lengthen(other.step);
        }
        let numbers: Option<Vec<u32>> = other.kinds.as_ref().map(|kinds| {
            let kinds = kinds.iter().cloned();
            kinds.map(|kind| self.number_of(kind)).collect()
        });
        if numbers.is_none() && self.kinds.is_some() {
            self.join_kinds();
        }
        for (start, kind, rows) in other.counts() {
            let kind = numbers.as_ref().map_or(0, |numbers| numbers[kind as usize]);
            self.add(start, kind, rows);
        }
    }

    /// True if it is within its bounds.
    pub(crate) fn is_bounded(&self) -> bool {
        self.steps.len() <= STEPS_MAX
    }

    /// The timeline as it is stored, before compression.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Encoder::new(VERSION);
        out.number(self.rows);
        out.count(self.step);
        out.flag(self.kinds.is_some());
        if let Some(kinds) = &self.kinds {
            out.number(vocabulary());
            write_kinds(kinds, &mut out);
        }
        out.count(self.steps.len());
        let mut before = 0i64;
        for (step, counts) in &self.steps {
            // Ascending, but for the first one, which may be before the epoch.
            out.number(zigzag(step.wrapping_sub(before)));
            before = *step;
            out.count(counts.len());
            for (kind, rows) in counts {
                out.number(u64::from(*kind));
                out.number(*rows);
            }
        }
        out.finish()
    }

    /// Reads what [`Timeline::encode`] wrote.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Timeline, DecodeError> {
        let mut from = Decoder::new(bytes, VERSION)?;
        let rows = from.number("the records")?;
        let step = from.number("the length of a step")?;
        let step = usize::try_from(step)
            .ok()
            .filter(|step| *step < STEPS_S.len());
        let mut timeline = Timeline {
            rows,
            step: step.ok_or(DecodeError::Malformed("the length of a step"))?,
            kinds: None,
            steps: BTreeMap::new(),
        };
        let mut is_other_vocabulary = false;
        if from.flag("whether kinds are told apart")? {
            is_other_vocabulary = from.number("the vocabulary")? != vocabulary();
            timeline.kinds = Some(read_kinds(&mut from)?);
        }
        let kinds = timeline.kinds.as_ref().map_or(1, Vec::len);
        let mut before = 0i64;
        for _ in 0..from.count(2, "the steps")? {
            before = before.wrapping_add(unzigzag(from.number("a step")?));
            let mut counts = BTreeMap::new();
            for _ in 0..from.count(2, "the kinds of a step")? {
                let kind = from.number("a kind")?;
                let kind = u32::try_from(kind)
                    .ok()
                    .filter(|kind| (*kind as usize) < kinds);
                let kind = kind.ok_or(DecodeError::Malformed("a kind"))?;
                counts.insert(kind, from.number("the records of a kind")?);
            }
            timeline.steps.insert(before, counts);
        }
        from.finish()?;
        if is_other_vocabulary {
            timeline.join_kinds();
        }
        Ok(timeline)
    }
}

/// The bytes of the names and texts of a kind.
pub(crate) fn kind_bytes(kind: &Kind) -> usize {
    let fields = kind.iter().map(|(name, text)| name.len() + text.len());
    fields.sum()
}

/// Appends the kinds of records to a summary.
pub(crate) fn write_kinds(kinds: &[Kind], out: &mut Encoder) {
    out.count(kinds.len());
    for kind in kinds {
        out.count(kind.len());
        for (name, text) in kind {
            out.bytes(name.as_bytes());
            out.bytes(text);
        }
    }
}

/// Reads what [`write_kinds`] wrote.
pub(crate) fn read_kinds(from: &mut Decoder<'_>) -> Result<Vec<Kind>, DecodeError> {
    let kinds = from.count(1, "the kinds")?;
    (0..kinds).map(|_| read_kind(from)).collect()
}

fn read_kind(from: &mut Decoder<'_>) -> Result<Kind, DecodeError> {
    let fields = from.count(2, "the fields of a kind")?;
    let field = |from: &mut Decoder<'_>| {
        let name = from.text(usize::MAX, "the name of a field")?.into();
        Ok((name, from.bytes(usize::MAX, "the text of a field")?.into()))
    };
    (0..fields).map(|_| field(from)).collect()
}

#[cfg(test)]
mod tests;
