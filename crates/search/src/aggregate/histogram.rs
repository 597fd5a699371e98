//! Records per time bucket, in all and by the value of a field.
//!
//! Buckets are as wide as the step, begin at multiples of it since the epoch (moved by the
//! phase), and cover the range; the first and last may reach beyond it, but only records inside
//! of the range count.

mod split;

use std::fmt;
use std::ops::Range;

use logpond_record::{Record, TimeRange, Timestamp, Value, cast};
use logpond_segment::timeline::{Kind, Timeline};
use logpond_segment::wire::{DecodeError, Decoder, Encoder};

use self::split::FieldSplit;
use super::with_named;
use crate::field::Target;
use crate::label::ComputedLabel;

/// The most buckets of one histogram; more than any screen has columns.
pub const BUCKETS_MAX: usize = 11_000;

/// Steps that read well.
const NICE_STEPS_S: [i64; 19] = [
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400,
    604_800,
];

/// A histogram that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistogramSpec {
    /// The range whose records count.
    pub range: TimeRange,
    /// Width of a bucket in nanoseconds.
    pub step_ns: i64,
    /// The field whose values split the counts.
    pub by: Option<Box<str>>,
}

impl HistogramSpec {
    /// An empty histogram.
    ///
    /// # Errors
    /// See [`Histogram::new`].
    pub fn empty(&self) -> Result<Histogram, HistogramError> {
        let histogram = Histogram::new(self.range, self.step_ns, 0)?;
        Ok(match &self.by {
            Some(field) => histogram.split_by(field),
            None => histogram,
        })
    }
}

/// Counts records by time.
#[derive(Clone, Debug)]
pub struct Histogram {
    range: TimeRange,
    step_ns: i64,
    first_start: i128,
    totals: Vec<u64>,
    split: Option<FieldSplit>,
}

/// Why there can be no such histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HistogramError {
    /// The step is not above zero.
    Step,
    /// The range is empty.
    Range,
    /// The range has more than [`BUCKETS_MAX`] steps.
    TooManyBuckets {
        /// The smallest step that would do, in nanoseconds.
        step_ns_min: i64,
    },
}

impl fmt::Display for HistogramError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HistogramError::Step => f.write_str("the step must be longer than nothing"),
            HistogramError::Range => f.write_str("the time range is empty"),
            HistogramError::TooManyBuckets { step_ns_min } => write!(
                f,
                "more than {BUCKETS_MAX} buckets; take a step of at least {} s",
                step_ns_min.div_euclid(1_000_000_000) + 1
            ),
        }
    }
}

impl std::error::Error for HistogramError {}

/// One bucket of the finished histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// First instant of the bucket.
    pub start: Timestamp,
    /// Records in it.
    pub count: u64,
}

/// Counts of one value of the field that splits the histogram, bucket by bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    /// The value's text; `None` for records without the field.
    pub value: Option<Box<[u8]>>,
    /// One count per bucket.
    pub counts: Vec<u64>,
    /// Records in all buckets.
    pub total: u64,
}

/// The finished histogram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistogramAnswer {
    /// Width of a bucket in nanoseconds.
    pub step_ns: i64,
    /// All buckets of the range in order of time, empty ones included.
    pub buckets: Vec<Bucket>,
    /// The 64 values with the largest totals, the largest first, equal ones by their bytes, and then the records
    /// without the field; empty without a split.
    pub series: Vec<Series>,
    /// Counts of all other values.
    pub other: Option<Series>,
    /// Records whose values found no room. While this is 0, the counts are exact; all are in `other`.
    pub unplaced: u64,
}

impl Series {
    fn new(value: Option<Box<[u8]>>, counts: Vec<u64>) -> Series {
        let total = counts
            .iter()
            .fold(0u64, |sum, count| sum.saturating_add(*count));
        Series {
            value,
            counts,
            total,
        }
    }
}

/// The step that reads well and gives about so many buckets, and no more than [`BUCKETS_MAX`].
pub fn nice_step_ns(range: TimeRange, buckets_wanted: u32) -> i64 {
    const SECOND_NS: i128 = 1_000_000_000;
    let span = i128::from(range.to.0) - i128::from(range.from.0);
    let exact = span.max(1) / i128::from(buckets_wanted.clamp(1, cast::low_u32(BUCKETS_MAX) / 2));
    if exact < SECOND_NS {
        // 1, 2 and 5 times powers of ten of nanoseconds.
        let mut power = 1i64;
        loop {
            for factor in [1, 2, 5] {
                if i128::from(power * factor) >= exact {
                    return power * factor;
                }
            }
            power *= 10;
        }
    }
    let nice = NICE_STEPS_S
        .into_iter()
        .map(|s| i128::from(s) * SECOND_NS)
        .find(|s| *s >= exact);
    let week = 604_800 * SECOND_NS;
    cast::low_i64(nice.unwrap_or((exact / week + 1) * week))
}

/// The severity of records of a kind.
fn severity_of(kind: &Kind) -> Option<Value<'static>> {
    let label = ComputedLabel::Severity;
    label.value(&label.of_kind(kind)).map(Value::into_owned)
}

impl Histogram {
    /// About the memory that it takes.
    pub fn bytes(&self) -> usize {
        let split = self.split.as_ref().map_or(0, FieldSplit::bytes);
        self.totals.len() * size_of::<u64>() + split
    }

    /// An empty histogram of a range. `phase_ns` moves where buckets begin: with the offset of a
    /// time zone, days begin at its midnight.
    pub fn new(range: TimeRange, step_ns: i64, phase_ns: i64) -> Result<Histogram, HistogramError> {
        if step_ns <= 0 {
            return Err(HistogramError::Step);
        }
        if range.from >= range.to {
            return Err(HistogramError::Range);
        }
        let (from, to) = (i128::from(range.from.0), i128::from(range.to.0));
        let (step, phase) = (i128::from(step_ns), i128::from(phase_ns));
        let first_start = (from + phase).div_euclid(step) * step - phase;
        let count = (to - first_start + step - 1) / step;
        if count > BUCKETS_MAX as i128 {
            let step_ns_min = cast::low_i64((to - from) / (BUCKETS_MAX as i128 - 1) + 1);
            return Err(HistogramError::TooManyBuckets { step_ns_min });
        }
        Ok(Histogram {
            range,
            step_ns,
            first_start,
            totals: vec![0; cast::to_usize(cast::low_u64(count))],
            split: None,
        })
    }

    /// Splits the counts by the values of this field too.
    pub fn split_by(mut self, field: &str) -> Histogram {
        self.split = Some(FieldSplit::new(field, self.totals.len()));
        self
    }

    /// Answers nodes of the first version, which read the largest values only.
    pub fn of_first_version(mut self) -> Histogram {
        if let Some(split) = &mut self.split {
            split.is_of_first_version = true;
        }
        self
    }

    /// True if it answers a node of the first version.
    pub fn is_of_first_version(&self) -> bool {
        self.split
            .as_ref()
            .is_some_and(|split| split.is_of_first_version)
    }

    /// The range whose records count.
    pub fn range(&self) -> TimeRange {
        self.range
    }

    /// How it was asked for.
    pub fn spec(&self) -> HistogramSpec {
        HistogramSpec {
            range: self.range,
            step_ns: self.step_ns,
            by: self.split_field().map(Into::into),
        }
    }

    /// The field that splits the counts.
    pub fn split_field(&self) -> Option<&str> {
        self.split.as_ref().map(|s| &*s.field)
    }

    /// Counts a record, if it lies in the range.
    pub fn add(&mut self, record: &Record<'_>) {
        let field = match &mut self.split {
            Some(split) => std::mem::take(&mut split.field),
            None => return self.add_value(record.time, None, 1),
        };
        with_named(record, &field, |value| {
            self.add_value(record.time, value, 1);
        });
        if let Some(split) = &mut self.split {
            split.field = field;
        }
    }

    /// Counts `rows` records of this instant with this value of the field that splits, or without
    /// the field. The value does not matter without a split.
    pub fn add_value(&mut self, time: Timestamp, value: Option<&Value<'_>>, rows: u64) {
        if !self.range.contains(time) {
            return;
        }
        let index = (i128::from(time.0) - self.first_start) / i128::from(self.step_ns);
        let index = cast::to_usize(cast::low_u64(index));
        self.totals[index] += rows;
        if let Some(split) = &mut self.split {
            match value {
                Some(value) => split.add(&value.to_text(), index, rows),
                None => split.missing[index] += rows,
            }
        }
    }

    /// True if each bucket is made of whole steps of this length.
    fn has_steps_of(&self, step_ns: i64) -> bool {
        self.step_ns % step_ns == 0 && self.first_start % i128::from(step_ns) == 0
    }

    /// True if timelines of segments may tell it.
    pub fn may_be_of_timelines(&self) -> bool {
        let split = self.split_field().map(Target::new);
        let is_known = matches!(
            split,
            None | Some(Target::Computed(ComputedLabel::Severity))
        );
        is_known && self.has_steps_of(Timeline::STEP_NS_MIN)
    }

    /// Counts all records of a segment; `false` if its timeline does not tell enough. The range has all of them.
    pub fn add_timeline(&mut self, timeline: &Timeline) -> bool {
        if !self.has_steps_of(timeline.step_ns()) {
            return false;
        }
        let values = match (self.split_field().map(Target::new), timeline.kinds()) {
            (None, _) => Vec::new(),
            (Some(Target::Computed(ComputedLabel::Severity)), Some(kinds)) => {
                kinds.iter().map(severity_of).collect()
            }
            _ => return false,
        };
        for (start, kind, rows) in timeline.counts() {
            let value = values.get(kind as usize).and_then(Option::as_ref);
            // A step may begin before the range does.
            let start = start.max(self.range.from.0);
            self.add_value(Timestamp(start), value, rows);
        }
        true
    }

    /// The part of the range that is in the same bucket as an instant; `None` outside of the range.
    pub(crate) fn bucket_of(&self, time: i64) -> Option<Range<i64>> {
        if !self.range.contains(Timestamp(time)) {
            return None;
        }
        let step = i128::from(self.step_ns);
        let start = i128::from(time) - (i128::from(time) - self.first_start) % step;
        let (from, to) = (i128::from(self.range.from.0), i128::from(self.range.to.0));
        Some(cast::low_i64(start.max(from))..cast::low_i64((start + step).min(to)))
    }

    /// Adds what another counted with the same range, step, phase and split.
    pub fn merge(&mut self, other: Histogram) {
        debug_assert_eq!(self.first_start, other.first_start);
        debug_assert_eq!(self.step_ns, other.step_ns);
        add_counts(&mut self.totals, &other.totals);
        if let (Some(mine), Some(theirs)) = (&mut self.split, other.split) {
            mine.merge(theirs);
        }
    }

    /// Appends what was counted to a message between nodes.
    ///
    /// ```text
    /// counts of all buckets; with a split also what it counted
    /// ```
    pub fn encode(&self, out: &mut Encoder) {
        encode_counts(&self.totals, out);
        if let Some(split) = &self.split {
            split.encode(out);
        }
    }

    /// Adds what another node counted with the same range, step, phase and split, as
    /// [`Histogram::encode`] wrote it.
    ///
    /// # Errors
    /// When the bytes are something else.
    pub fn merge_encoded(&mut self, from: &mut Decoder<'_>) -> Result<(), DecodeError> {
        let buckets = self.totals.len();
        add_counts(&mut self.totals, &decode_counts(buckets, from)?);
        match &mut self.split {
            Some(split) => split.merge_encoded(from),
            None => Ok(()),
        }
    }

    /// The finished histogram.
    pub fn finish(self) -> HistogramAnswer {
        let (first, step) = (self.first_start, i128::from(self.step_ns));
        let start =
            |at: usize| cast::low_i64((first + step * at as i128).max(i128::from(i64::MIN)));
        let buckets = self
            .totals
            .iter()
            .enumerate()
            .map(|(at, count)| Bucket {
                start: Timestamp(start(at)),
                count: *count,
            })
            .collect();
        let mut answer = HistogramAnswer {
            step_ns: self.step_ns,
            buckets,
            series: Vec::new(),
            other: None,
            unplaced: 0,
        };
        if let Some(split) = self.split.map(FieldSplit::finish) {
            answer.series = split.series;
            answer
                .series
                .extend(Some(split.missing).filter(|s| s.total > 0));
            answer.other = Some(split.other).filter(|s| s.total > 0);
            answer.unplaced = split.unplaced;
        }
        answer
    }
}

fn encode_counts(counts: &[u64], out: &mut Encoder) {
    out.count(counts.len());
    counts.iter().for_each(|count| out.number(*count));
}

fn decode_counts(buckets: usize, from: &mut Decoder<'_>) -> Result<Vec<u64>, DecodeError> {
    if from.count(1, "the buckets")? != buckets {
        return Err(DecodeError::Malformed("the number of buckets"));
    }
    (0..buckets).map(|_| from.number("a count")).collect()
}

fn add_counts(mine: &mut [u64], theirs: &[u64]) {
    for (count, more) in mine.iter_mut().zip(theirs) {
        *count = count.saturating_add(*more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    #[test]
    fn what_is_sent_arrives() {
        let new = || Histogram::new(seconds(0, 4), SECOND, 0).unwrap();
        let (mut here, mut there) = (new(), new());
        here.add_value(Timestamp(SECOND), None, 2);
        there.add_value(Timestamp(SECOND), None, 3);
        there.add_value(Timestamp(3 * SECOND), None, 300);
        let mut sent = Encoder::new(1);
        there.encode(&mut sent);
        let sent = sent.finish();
        let mut from = Decoder::new(&sent, 1).unwrap();
        assert_eq!(here.merge_encoded(&mut from), Ok(()));
        let counts: Vec<_> = here.finish().buckets.iter().map(|b| b.count).collect();
        assert_eq!(counts, [0, 5, 0, 300]);
        let mut other = Histogram::new(seconds(0, 5), SECOND, 0).unwrap();
        let mut from = Decoder::new(&sent, 1).unwrap();
        assert!(other.merge_encoded(&mut from).is_err());
    }

    fn seconds(from: i64, to: i64) -> TimeRange {
        TimeRange {
            from: Timestamp(from * SECOND),
            to: Timestamp(to * SECOND),
        }
    }

    #[test]
    fn buckets_are_aligned_and_the_range_is_kept() {
        let mut histogram = Histogram::new(seconds(-5, 25), 10 * SECOND, 0).unwrap();
        for second in [-6, -5, -1, 0, 9, 10, 24, 25] {
            histogram.add_value(Timestamp(second * SECOND), None, 1);
        }
        let found: Vec<_> = histogram
            .finish()
            .buckets
            .iter()
            .map(|b| (b.start.0 / SECOND, b.count))
            .collect();
        assert_eq!(found, [(-10, 2), (0, 2), (10, 1), (20, 1)]);
        let phased = Histogram::new(seconds(0, 10), 10 * SECOND, 3 * SECOND).unwrap();
        assert_eq!(phased.finish().buckets[0].start.0, -3 * SECOND);
    }

    #[test]
    fn wrong_requests_are_refused() {
        assert_eq!(
            Histogram::new(seconds(0, 1), 0, 0).unwrap_err(),
            HistogramError::Step
        );
        assert_eq!(
            Histogram::new(seconds(1, 1), 1, 0).unwrap_err(),
            HistogramError::Range
        );
        let error = Histogram::new(TimeRange::ALL, SECOND, 0).unwrap_err();
        let HistogramError::TooManyBuckets { step_ns_min } = error else {
            panic!("{error}");
        };
        assert!(Histogram::new(TimeRange::ALL, step_ns_min, 0).is_ok());
        assert!(error.to_string().ends_with(" s"));
    }

    #[test]
    fn series_are_split_merged_and_bounded() {
        let new = || {
            Histogram::new(seconds(0, 20), 10 * SECOND, 0)
                .unwrap()
                .split_by("level")
        };
        let (mut a, mut b) = (new(), new());
        a.add_value(Timestamp(0), Some(&Value::Str("info".into())), 3);
        a.add_value(Timestamp(0), None, 1);
        b.add_value(Timestamp(10 * SECOND), Some(&Value::Str("error".into())), 5);
        b.add_value(Timestamp(0), Some(&Value::Str("info".into())), 1);
        a.merge(b);
        let mut crowded = a.clone();
        let answer = a.finish();
        let found: Vec<_> = answer
            .series
            .iter()
            .map(|s| (s.value.as_deref(), s.counts.clone()))
            .collect();
        let expected = [
            (Some(&b"error"[..]), vec![0, 5]),
            (Some(b"info"), vec![4, 0]),
            (None, vec![1, 0]),
        ];
        assert_eq!(found, expected);
        assert_eq!(answer.other, None);
        for i in 0..100 {
            crowded.add_value(Timestamp(0), Some(&Value::Int(i)), 1);
        }
        let answer = crowded.finish();
        assert_eq!(answer.other.unwrap().total, 100 - 62);
        assert_eq!(answer.buckets[0].count, 105);
    }

    #[test]
    fn split_counts_that_are_sent_arrive() {
        let spec = HistogramSpec {
            range: seconds(0, 2),
            step_ns: SECOND,
            by: Some("level".into()),
        };
        let (mut here, mut there) = (spec.empty().unwrap(), spec.empty().unwrap());
        assert_eq!(here.spec(), spec);
        let word = |word: &'static str| Value::Str(word.into());
        here.add_value(Timestamp(0), Some(&word("info")), 1);
        there.add_value(Timestamp(0), Some(&word("info")), 2);
        there.add_value(Timestamp(SECOND), Some(&word("error")), 3);
        there.add_value(Timestamp(SECOND), None, 4);
        let mut sent = Encoder::new(1);
        there.encode(&mut sent);
        let sent = sent.finish();
        here.merge_encoded(&mut Decoder::new(&sent, 1).unwrap())
            .unwrap();
        let answer = here.finish();
        let found: Vec<_> = answer
            .series
            .iter()
            .map(|s| (s.value.as_deref(), s.counts.clone()))
            .collect();
        let expected = [
            (Some(&b"error"[..]), vec![0, 3]),
            (Some(b"info"), vec![3, 0]),
            (None, vec![0, 4]),
        ];
        assert_eq!(found, expected);
        for length in 0..sent.len() {
            let mut empty = spec.empty().unwrap();
            let cut = Decoder::new(&sent[..length], 1);
            assert!(
                cut.and_then(|mut cut| empty.merge_encoded(&mut cut))
                    .is_err()
            );
        }
    }

    #[test]
    fn steps_read_well() {
        let table = [
            (seconds(0, 3600), 60, 60 * SECOND),
            (seconds(0, 3601), 60, 120 * SECOND),
            (seconds(0, 86_400), 50, 1800 * SECOND),
            (seconds(0, 1), 100, 10_000_000),
            (seconds(0, 3_000_000_000), 10, 497 * 604_800 * SECOND),
        ];
        for (range, wanted, expected) in table {
            assert_eq!(nice_step_ns(range, wanted), expected, "{range:?}");
        }
        assert!(Histogram::new(TimeRange::ALL, nice_step_ns(TimeRange::ALL, u32::MAX), 0).is_ok());
    }
}
