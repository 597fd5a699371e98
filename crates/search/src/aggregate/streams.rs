//! Which streams there are: records told apart by labels, with how many there are of each and how
//! long their lines are.

use std::borrow::Cow;
use std::collections::BTreeMap;

use logpond_record::{Record, Timestamp, cast};
use logpond_segment::wire::{DecodeError, Decoder, Encoder};

use crate::label::{self, ComputedLabel};

/// The most memory that streams take, so that whoever has an id among the labels is told so
/// instead of costing all memory there is.
pub const STREAMS_BYTES_MAX: usize = 64 << 20;

/// What a stream costs beside its labels: counters and its part of the map.
const STREAM_OVERHEAD_BYTES: usize = 64;

/// Labels with their values, in the order of their names.
///
/// Layout: of each label the length of its name as four bytes, the name, the length of its value
/// as four bytes, the value. Equal sets have equal bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct LabelSet(Box<[u8]>);

impl LabelSet {
    /// The set of these labels; of a name that occurs twice the first one counts, and a label
    /// without text is none.
    pub fn new<'a>(labels: impl IntoIterator<Item = (Cow<'a, str>, Cow<'a, [u8]>)>) -> LabelSet {
        let mut labels: Vec<_> = labels.into_iter().collect();
        labels.sort_by(|(a, _), (b, _)| a.cmp(b));
        labels.dedup_by(|(a, _), (b, _)| a == b);
        let mut bytes = Vec::new();
        for (name, value) in &labels {
            LabelSet::write(name, value, &mut bytes);
        }
        LabelSet(bytes.into())
    }

    /// Appends a label to what is to become a set, behind those with smaller names.
    pub(crate) fn write(name: &str, value: &[u8], out: &mut Vec<u8>) {
        if value.is_empty() {
            return;
        }
        for part in [name.as_bytes(), value] {
            out.extend_from_slice(&cast::low_u32(part.len()).to_le_bytes());
            out.extend_from_slice(part);
        }
    }

    /// The set of what [`LabelSet::write`] wrote.
    pub(crate) fn written(bytes: &[u8]) -> LabelSet {
        LabelSet(bytes.into())
    }

    /// See the layout.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The set of a label of which only the name matters.
    pub fn of_name(name: &str) -> LabelSet {
        LabelSet::new([(Cow::Borrowed(name), Cow::Borrowed(name.as_bytes()))])
    }

    /// The labels in the order of their names. Values that are no text have the replacement
    /// character in place of what is none.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Cow<'_, str>)> {
        let mut rest = &self.0[..];
        let mut read = move || {
            let (length, behind) = rest.split_first_chunk()?;
            let (part, behind) = behind.split_at_checked(u32::from_le_bytes(*length) as usize)?;
            rest = behind;
            Some(part)
        };
        std::iter::from_fn(move || {
            let name = std::str::from_utf8(read()?).ok()?;
            Some((name, String::from_utf8_lossy(read()?)))
        })
    }

    /// Whether there is no label in it.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The labels by which streams are told apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamsRequest {
    /// By these labels alone, any field may be one; by what was declared beside the lines and the
    /// service if it is `None`.
    pub by: Option<Vec<Box<str>>>,
    /// By the time, too: from when, and how many nanoseconds a part of time is long, above 0.
    pub steps: Option<(Timestamp, i64)>,
}

/// Records of one stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamTally {
    /// How many.
    pub rows: u64,
    /// Bytes of their lines without line ends. Of a block of a segment only the sum is known: where it has
    /// several streams, some lines of each tell how they share it.
    pub bytes: u64,
}

/// A stream, or what it has in one part of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamRow {
    /// Which part of time, counted from 0; 0 where time does not count.
    pub step: i64,
    /// Its labels.
    pub labels: LabelSet,
    /// Its records.
    pub tally: StreamTally,
}

/// The finished answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamsAnswer {
    /// By the step, then by the labels.
    pub streams: Vec<StreamRow>,
    /// Records of streams that found no room; while this is 0 the answer is exact.
    pub uncounted: u64,
}

/// Collects streams.
#[derive(Clone, Debug)]
pub struct Streams {
    asked: StreamsRequest,
    streams: BTreeMap<(i64, LabelSet), StreamTally>,
    bytes: usize,
    uncounted: u64,
    scratch: Vec<u8>,
}

impl Streams {
    /// Nothing seen yet.
    pub fn new(asked: StreamsRequest) -> Streams {
        Streams {
            asked,
            streams: BTreeMap::new(),
            bytes: 0,
            uncounted: 0,
            scratch: Vec::new(),
        }
    }

    /// How streams are told apart.
    pub fn asked(&self) -> &StreamsRequest {
        &self.asked
    }

    /// About the memory that it takes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Counts a record.
    pub fn add(&mut self, record: &Record<'_>) {
        let labels = match &self.asked.by {
            None => stream_of(record),
            Some(by) => chosen(record, by),
        };
        let mut line = std::mem::take(&mut self.scratch);
        line.clear();
        record.write_line(&mut line);
        let (rows, bytes) = (1, line.len() as u64);
        self.scratch = line;
        let step = self.step_of(record.time);
        self.add_stream(step, labels, StreamTally { rows, bytes });
    }

    /// The part of time that an instant is in.
    pub fn step_of(&self, time: Timestamp) -> i64 {
        let Some((from, step_ns)) = self.asked.steps else {
            return 0;
        };
        let since = i128::from(time.0) - i128::from(from.0);
        i64::try_from(since.div_euclid(i128::from(step_ns.max(1)))).unwrap_or(i64::MAX)
    }

    /// Counts records of a stream.
    pub fn add_stream(&mut self, step: i64, labels: LabelSet, tally: StreamTally) {
        let cost = labels.0.len() + STREAM_OVERHEAD_BYTES;
        let key = (step, labels);
        if let Some(mine) = self.streams.get_mut(&key) {
            mine.rows += tally.rows;
            mine.bytes += tally.bytes;
        } else if self.bytes + cost > STREAMS_BYTES_MAX {
            self.uncounted += tally.rows;
        } else {
            self.bytes += cost;
            self.streams.insert(key, tally);
        }
    }

    /// Adds what another saw that tells streams apart in the same way.
    pub fn merge(&mut self, other: Streams) {
        debug_assert_eq!(self.asked, other.asked);
        self.uncounted += other.uncounted;
        for ((step, labels), tally) in other.streams {
            self.add_stream(step, labels, tally);
        }
    }

    /// Appends what was seen to a message between nodes.
    pub fn encode(&self, out: &mut Encoder) {
        out.number(self.uncounted);
        out.count(self.streams.len());
        for ((step, labels), tally) in &self.streams {
            out.time(Timestamp(*step));
            out.bytes(&labels.0);
            out.number(tally.rows);
            out.number(tally.bytes);
        }
    }

    /// Adds what another node saw, as [`Streams::encode`] wrote it.
    ///
    /// # Errors
    /// When the bytes are something else; a part may have been added then.
    pub fn merge_encoded(&mut self, from: &mut Decoder<'_>) -> Result<(), DecodeError> {
        self.uncounted += from.number("the records without room")?;
        for _ in 0..from.count(11, "the streams")? {
            let step = from.time("a stream's time")?.0;
            let labels = LabelSet(from.bytes(STREAMS_BYTES_MAX, "a stream")?.into());
            let tally = StreamTally {
                rows: from.number("a stream's records")?,
                bytes: from.number("a stream's bytes")?,
            };
            self.add_stream(step, labels, tally);
        }
        Ok(())
    }

    /// The finished answer.
    pub fn finish(self) -> StreamsAnswer {
        let streams = self.streams.into_iter();
        let streams = streams.map(|((step, labels), tally)| StreamRow {
            step,
            labels,
            tally,
        });
        StreamsAnswer {
            streams: streams.collect(),
            uncounted: self.uncounted,
        }
    }
}

/// The stream of a record: what was declared beside its line, and its service.
pub fn stream_of(record: &Record<'_>) -> LabelSet {
    let service = (
        Cow::Borrowed(label::SERVICE_NAME),
        ComputedLabel::Service.of(record),
    );
    let declared = label::declared(record).into_iter();
    let declared = declared.map(|(label, value)| (label, value.to_text()));
    LabelSet::new(std::iter::once(service).chain(declared))
}

fn chosen(record: &Record<'_>, by: &[Box<str>]) -> LabelSet {
    let value = |name: &'_ str| -> Option<Cow<'_, [u8]>> {
        match ComputedLabel::named(name) {
            Some(label) => Some(label.of(record)),
            None => label::value(record, name).map(|value| value.to_text()),
        }
    };
    let labels = by.iter().filter_map(|name| {
        let name = &**name;
        value(name).map(|value| (Cow::Borrowed(name), value))
    });
    LabelSet::new(labels)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(labels: &[(&'static str, &'static str)]) -> LabelSet {
        let labels = labels.iter();
        LabelSet::new(labels.map(|(name, value)| (Cow::from(*name), Cow::from(value.as_bytes()))))
    }

    #[test]
    fn sets_are_in_order_and_without_repetition() {
        let one = set(&[("b", "2"), ("a", "1"), ("b", "3"), ("c", "")]);
        assert_eq!(one, set(&[("a", "1"), ("b", "2")]));
        let labels: Vec<_> = one.iter().map(|(n, v)| format!("{n}={v}")).collect();
        assert_eq!(labels, ["a=1", "b=2"]);
        assert!(set(&[]).is_empty() && !one.is_empty());
    }

    #[test]
    fn merging_equals_counting_at_once() {
        let asked = StreamsRequest {
            by: None,
            steps: Some((Timestamp(100), 10)),
        };
        let (mut all, mut a, mut b) = (
            Streams::new(asked.clone()),
            Streams::new(asked.clone()),
            Streams::new(asked.clone()),
        );
        for n in 0..50i64 {
            let labels = set(&[("app", ["x", "y", "z"][(n % 3) as usize])]);
            let step = all.step_of(Timestamp(90 + n));
            let tally = StreamTally { rows: 1, bytes: 7 };
            all.add_stream(step, labels.clone(), tally);
            let half = if n % 2 == 0 { &mut a } else { &mut b };
            half.add_stream(step, labels, tally);
        }
        let mut sent = Encoder::new(1);
        b.encode(&mut sent);
        let sent = sent.finish();
        let mut received = a.clone();
        let mut from = Decoder::new(&sent, 1).unwrap();
        assert_eq!(received.merge_encoded(&mut from), Ok(()));
        a.merge(b);
        let answer = all.finish();
        assert_eq!(answer.streams[0].step, -1);
        assert_eq!((&a.finish(), &received.finish()), (&answer, &answer));
    }

    #[test]
    fn memory_is_bounded_and_told() {
        let mut streams = Streams::new(StreamsRequest::default());
        let long = "v".repeat(1 << 20);
        for n in 0..100 {
            let value = format!("{long}{n}");
            let labels = LabelSet::new([("id".into(), value.into_bytes().into())]);
            streams.add_stream(0, labels, StreamTally { rows: 1, bytes: 1 });
        }
        let answer = streams.finish();
        let counted = answer.streams.len() as u64;
        assert!(counted < 64 && counted + answer.uncounted == 100);
    }
}
