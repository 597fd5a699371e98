//! Counts of the values of a field, bucket by bucket.
//!
//! Invariants: the values take at most [`BYTES_MAX`], and there are at most [`VALUES_MAX`]. Each record is counted
//! once: with its value, as one without the field, or as one that found no room. While none of the latter
//! exists, the counts are exact, and the order in which records were counted and tables merged does not matter.

use std::cmp::Ordering;

use logpond_segment::wire::{DecodeError, Decoder, Encoder};

use super::super::FixedMap;
use super::{Series, add_counts, decode_counts, encode_counts};

/// The most values that are shown; at most 6 MB of counters together.
pub(super) const SERIES_MAX: usize = 64;

/// The most distinct values that are counted.
const VALUES_MAX: usize = 1 << 20;

/// The most memory that the values take with their counts.
const BYTES_MAX: usize = 64 << 20;

/// The memory of a value beside its text and its counts: key, list and the map's free places.
const VALUE_OVERHEAD_BYTES: usize = 96;

/// The memory of a count with the number of its bucket.
const CELL_BYTES: usize = size_of::<(usize, u64)>();

/// The first room of a list of counts.
const CELLS_MIN: usize = 4;

/// The counts of each value.
#[derive(Clone, Debug)]
pub(super) struct FieldSplit {
    pub(super) field: Box<str>,
    values: FixedMap<Box<[u8]>, BucketCounts>,
    /// Bytes of the values with their counts.
    bytes: usize,
    pub(super) missing: Vec<u64>,
    /// Records whose values found no room.
    unplaced: Vec<u64>,
    /// True if the table answers a node of the first version, which reads [`SERIES_MAX`] values at most.
    pub(super) is_of_first_version: bool,
}

/// Counts of a value.
#[derive(Clone, Debug)]
struct BucketCounts {
    total: u64,
    cells: Cells,
}

#[derive(Clone, Debug)]
enum Cells {
    /// The buckets that have counts, in their order.
    Filled(Vec<(usize, u64)>),
    /// All buckets, once that takes less memory.
    All(Vec<u64>),
}

/// The finished counts of a table.
pub(super) struct SplitAnswer {
    /// The values with the largest totals.
    pub(super) series: Vec<Series>,
    /// All other values.
    pub(super) other: Series,
    /// Records without the field.
    pub(super) missing: Series,
    /// Records whose values found no room. They are in `other`.
    pub(super) unplaced: u64,
}

impl FieldSplit {
    /// An empty table for so many buckets.
    pub(super) fn new(field: &str, buckets: usize) -> FieldSplit {
        FieldSplit {
            field: field.into(),
            values: FixedMap::default(),
            bytes: 0,
            missing: vec![0; buckets],
            unplaced: vec![0; buckets],
            is_of_first_version: false,
        }
    }

    /// About the memory that it takes.
    pub(super) fn bytes(&self) -> usize {
        let lists = 2 * self.missing.len() * size_of::<u64>();
        let map = self.values.capacity() * size_of::<(Box<[u8]>, BucketCounts)>();
        lists + self.bytes.max(map)
    }

    /// Counts records with a value.
    pub(super) fn add(&mut self, value: &[u8], bucket: usize, rows: u64) {
        let buckets = self.missing.len();
        if let Some(counts) = self.values.get_mut(value) {
            let growth = counts.growth_bytes(bucket, buckets);
            if self.bytes + growth > BYTES_MAX {
                self.unplaced[bucket] = self.unplaced[bucket].saturating_add(rows);
                return;
            }
            self.bytes += growth;
            return counts.add(bucket, rows, buckets);
        }
        let mut counts = BucketCounts::new();
        let own = value.len() + VALUE_OVERHEAD_BYTES + counts.growth_bytes(bucket, buckets);
        if self.values.len() >= VALUES_MAX || self.bytes + own > BYTES_MAX {
            self.unplaced[bucket] = self.unplaced[bucket].saturating_add(rows);
            return;
        }
        self.bytes += own;
        counts.add(bucket, rows, buckets);
        self.values.insert(value.into(), counts);
    }

    /// Adds the counts of another table of the same field and buckets.
    pub(super) fn merge(&mut self, mut other: FieldSplit) {
        if other.values.len() > self.values.len() {
            std::mem::swap(&mut self.values, &mut other.values);
            std::mem::swap(&mut self.bytes, &mut other.bytes);
        }
        add_counts(&mut self.missing, &other.missing);
        add_counts(&mut self.unplaced, &other.unplaced);
        let has_room = self.values.len() + other.values.len() <= VALUES_MAX
            && self.bytes + other.bytes <= BYTES_MAX;
        let mut others: Vec<(Box<[u8]>, BucketCounts)> = other.values.into_iter().collect();
        if !has_room {
            // Frequent values first: only rare ones may find no room.
            sort(&mut others);
        }
        for (value, counts) in &others {
            counts.each(|bucket, rows| self.add(value, bucket, rows));
        }
    }

    /// Appends the counts to a message between nodes, the largest totals first.
    ///
    /// ```text
    /// counts without the field, counts of values without room, number of values, and for each its text, the
    /// number of its counts, and for each count its bucket and rows
    /// ```
    ///
    /// For a node of the first version the second list has all values that are not in the list, and a value has
    /// the counts of all buckets.
    pub(super) fn encode(&self, out: &mut Encoder) {
        encode_counts(&self.missing, out);
        if self.is_of_first_version {
            let answer = self.clone().finish();
            encode_counts(&answer.other.counts, out);
            out.count(answer.series.len());
            for series in &answer.series {
                out.bytes(series.value.as_deref().unwrap_or_default());
                encode_counts(&series.counts, out);
            }
            return;
        }
        encode_counts(&self.unplaced, out);
        let mut values: Vec<(&Box<[u8]>, &BucketCounts)> = self.values.iter().collect();
        values.sort_unstable_by(|a, b| order((a.0, a.1), (b.0, b.1)));
        out.count(values.len());
        for (value, counts) in values {
            out.bytes(value);
            out.count(counts.len());
            counts.each(|bucket, rows| {
                out.count(bucket);
                out.number(rows);
            });
        }
    }

    /// Adds the counts that [`FieldSplit::encode`] wrote on another node.
    pub(super) fn merge_encoded(&mut self, from: &mut Decoder<'_>) -> Result<(), DecodeError> {
        let buckets = self.missing.len();
        add_counts(&mut self.missing, &decode_counts(buckets, from)?);
        add_counts(&mut self.unplaced, &decode_counts(buckets, from)?);
        for _ in 0..from.count(2, "the values")? {
            let value = from.bytes(usize::MAX, "a value")?;
            for _ in 0..from.count(2, "the counts of a value")? {
                let bucket = usize::try_from(from.number("a bucket")?);
                let bucket = bucket.ok().filter(|bucket| *bucket < buckets);
                let bucket = bucket.ok_or(DecodeError::Malformed("a bucket"))?;
                self.add(value, bucket, from.number("a count")?);
            }
        }
        Ok(())
    }

    /// The values with the largest totals, and the sums of all others.
    pub(super) fn finish(self) -> SplitAnswer {
        let buckets = self.missing.len();
        let mut values: Vec<(Box<[u8]>, BucketCounts)> = self.values.into_iter().collect();
        sort(&mut values);
        let unplaced = self.unplaced.iter().sum();
        let mut other = self.unplaced;
        let rest = values.split_off(values.len().min(SERIES_MAX));
        for (_, counts) in rest {
            counts.each(|bucket, rows| other[bucket] = other[bucket].saturating_add(rows));
        }
        let series = values.into_iter();
        let series = series.map(|(value, counts)| Series::new(Some(value), counts.to_all(buckets)));
        SplitAnswer {
            series: series.collect(),
            other: Series::new(None, other),
            missing: Series::new(None, self.missing),
            unplaced,
        }
    }
}

/// Sorts values by their totals, the largest first; equal ones by their bytes.
fn sort(values: &mut [(Box<[u8]>, BucketCounts)]) {
    values.sort_unstable_by(|a, b| order((&a.0, &a.1), (&b.0, &b.1)));
}

fn order(a: (&[u8], &BucketCounts), b: (&[u8], &BucketCounts)) -> Ordering {
    b.1.total.cmp(&a.1.total).then_with(|| a.0.cmp(b.0))
}

impl BucketCounts {
    fn new() -> BucketCounts {
        BucketCounts {
            total: 0,
            cells: Cells::Filled(Vec::new()),
        }
    }

    /// The number of counts.
    fn len(&self) -> usize {
        match &self.cells {
            Cells::Filled(cells) => cells.len(),
            Cells::All(counts) => counts.len(),
        }
    }

    fn each(&self, mut visit: impl FnMut(usize, u64)) {
        match &self.cells {
            Cells::Filled(cells) => cells.iter().for_each(|(at, rows)| visit(*at, *rows)),
            Cells::All(counts) => {
                let each = counts.iter().enumerate();
                each.for_each(|(at, rows)| visit(at, *rows));
            }
        }
    }

    /// The memory that a count in a bucket takes more.
    fn growth_bytes(&self, bucket: usize, buckets: usize) -> usize {
        let Cells::Filled(cells) = &self.cells else {
            return 0;
        };
        if cells.len() < cells.capacity() || place(cells, bucket).is_ok() {
            return 0;
        }
        let grown = grown(cells) * CELL_BYTES;
        grown.min(buckets * size_of::<u64>()) - cells.capacity() * CELL_BYTES
    }

    /// Adds to the count of a bucket.
    fn add(&mut self, bucket: usize, rows: u64, buckets: usize) {
        self.total = self.total.saturating_add(rows);
        let cells = match &mut self.cells {
            Cells::All(counts) => {
                counts[bucket] = counts[bucket].saturating_add(rows);
                return;
            }
            Cells::Filled(cells) => cells,
        };
        match place(cells, bucket) {
            Ok(at) => cells[at].1 = cells[at].1.saturating_add(rows),
            Err(at) if cells.len() < cells.capacity() => cells.insert(at, (bucket, rows)),
            Err(at) if grown(cells) * CELL_BYTES < buckets * size_of::<u64>() => {
                cells.reserve_exact(grown(cells) - cells.len());
                cells.insert(at, (bucket, rows));
            }
            Err(_) => {
                let mut all = self.to_all(buckets);
                all[bucket] = rows;
                self.cells = Cells::All(all);
            }
        }
    }

    /// The counts of all buckets.
    fn to_all(&self, buckets: usize) -> Vec<u64> {
        let mut all = vec![0; buckets];
        self.each(|bucket, rows| all[bucket] = rows);
        all
    }
}

/// The room of a list that is full, once it has grown.
fn grown(cells: &Vec<(usize, u64)>) -> usize {
    cells.capacity() + cells.capacity().max(CELLS_MIN)
}

/// The place of a bucket's count, or its future one. Records mostly come in the order of time.
fn place(cells: &[(usize, u64)], bucket: usize) -> Result<usize, usize> {
    match cells.last() {
        Some((last, _)) if *last == bucket => Ok(cells.len() - 1),
        Some((last, _)) if *last > bucket => cells.binary_search_by_key(&bucket, |(at, _)| *at),
        _ => Err(cells.len()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    const BUCKETS: usize = 20;

    fn table(rows: &[(u16, usize)]) -> FieldSplit {
        let mut table = FieldSplit::new("x", BUCKETS);
        for (value, bucket) in rows {
            table.add(value.to_string().as_bytes(), *bucket, 1);
        }
        table
    }

    fn encoded(table: &FieldSplit) -> Vec<u8> {
        let mut sent = Encoder::new(1);
        table.encode(&mut sent);
        sent.finish()
    }

    fn shown(table: FieldSplit) -> (Vec<Series>, Series, u64) {
        let answer = table.finish();
        (answer.series, answer.other, answer.unplaced)
    }

    #[test]
    fn the_largest_values_are_shown_whenever_they_come() {
        let mut table = table(&(0..1000).map(|value| (value, 3)).collect::<Vec<_>>());
        for value in [900u16, 901, 902] {
            table.add(value.to_string().as_bytes(), 4, 7);
        }
        let (series, other, unplaced) = shown(table);
        let first = series.iter().take(4);
        let first: Vec<_> = first.map(|s| (s.value.as_deref(), s.total)).collect();
        let expected = [
            (Some(&b"900"[..]), 8),
            (Some(b"901"), 8),
            (Some(b"902"), 8),
            (Some(b"0"), 1),
        ];
        assert_eq!(first, expected);
        assert_eq!(
            (series.len(), other.total, unplaced),
            (SERIES_MAX, 1000 - 64, 0)
        );
        assert_eq!(
            (series[0].counts[3], series[0].counts[4], other.counts[3]),
            (1, 7, 936)
        );
    }

    #[test]
    fn memory_is_bounded_and_records_without_room_are_counted() {
        let mut table = FieldSplit::new("x", 11_000);
        let long = "v".repeat(1 << 20);
        for value in 0..100 {
            table.add(format!("{long}{value}").as_bytes(), 7, 2);
        }
        assert!(table.bytes() <= BYTES_MAX + 2 * 11_000 * 8);
        // A value that has room has it for some of its buckets only.
        for bucket in 0..11_000 {
            table.add(format!("{long}0").as_bytes(), bucket, 1);
        }
        for value in 0..2000 {
            table.add(format!("{value}").as_bytes(), value, 1);
            (0..11_000).for_each(|bucket| table.add(b"short", bucket, 1));
        }
        assert!(table.bytes() <= BYTES_MAX + 2 * 11_000 * 8);
        let answer = table.finish();
        assert!(answer.unplaced > 0);
        let series = answer.series.iter().map(|series| series.total).sum::<u64>();
        assert_eq!(series + answer.other.total, 200 + 11_000 + 2000 * 11_001);
    }

    #[test]
    fn nodes_of_the_first_version_get_the_largest_values_and_the_sum_of_others() {
        let mut there = table(&(0..100).map(|value| (value, 1)).collect::<Vec<_>>());
        there.add(b"99", 2, 5);
        there.is_of_first_version = true;
        let sent = encoded(&there);
        let mut from = Decoder::new(&sent, 1).unwrap();
        let lists = [(); 2].map(|()| decode_counts(BUCKETS, &mut from).unwrap());
        assert_eq!((lists[0].iter().sum::<u64>(), lists[1][1]), (0, 36));
        assert_eq!(from.count(2, "the values"), Ok(SERIES_MAX));
        assert_eq!(from.bytes(9, "a value"), Ok(&b"99"[..]));
        let counts = decode_counts(BUCKETS, &mut from).unwrap();
        assert_eq!((counts[1], counts[2]), (1, 5));
    }

    #[test]
    fn messages_with_other_buckets_are_refused() {
        let sent = encoded(&table(&[(1, 19)]));
        let mut narrow = FieldSplit::new("x", BUCKETS - 1);
        assert!(
            narrow
                .merge_encoded(&mut Decoder::new(&sent, 1).unwrap())
                .is_err()
        );
        let mut out = Encoder::new(1);
        encode_counts(&[0; BUCKETS], &mut out);
        encode_counts(&[0; BUCKETS], &mut out);
        out.count(1);
        out.bytes(b"a");
        [1, 20, 1].iter().for_each(|number| out.number(*number));
        let sent = out.finish();
        let mut other = FieldSplit::new("x", BUCKETS);
        let outcome = other.merge_encoded(&mut Decoder::new(&sent, 1).unwrap());
        assert_eq!(outcome, Err(DecodeError::Malformed("a bucket")));
    }

    proptest! {
        #[test]
        fn merging_in_any_order_equals_counting_at_once(
            rows in proptest::collection::vec((0u16..150, 0usize..BUCKETS), 0..600),
            split in 0usize..600,
        ) {
            let split = split.min(rows.len());
            let (a, b) = (table(&rows[..split]), table(&rows[split..]));
            let mut received = a.clone();
            let sent = encoded(&b);
            let mut from = Decoder::new(&sent, 1).expect("this version");
            prop_assert_eq!(received.merge_encoded(&mut from), Ok(()));
            let (mut there, mut back) = (a.clone(), b.clone());
            there.merge(b);
            back.merge(a);
            let answer = shown(there);
            prop_assert_eq!(&answer, &shown(back));
            prop_assert_eq!(&answer, &shown(received));
            let mut model: BTreeMap<String, Vec<u64>> = BTreeMap::new();
            for (value, bucket) in &rows {
                let counts = model.entry(value.to_string()).or_insert_with(|| vec![0; BUCKETS]);
                counts[*bucket] += 1;
            }
            let mut model: Vec<_> = model.into_iter().collect();
            model.sort_by_key(|(_, counts)| std::cmp::Reverse(counts.iter().sum::<u64>()));
            let series = answer.0.into_iter().map(|series| {
                let value = series.value.unwrap_or_default();
                (String::from_utf8_lossy(&value).into_owned(), series.counts)
            });
            prop_assert_eq!(series.collect::<Vec<_>>(), model.into_iter().take(SERIES_MAX).collect::<Vec<_>>());
        }
    }
}
