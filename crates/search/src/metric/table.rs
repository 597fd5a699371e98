//! A range aggregation as a table that many threads and nodes fill together.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::mem::size_of;
use std::sync::Arc;

use logpond_record::cast;
use logpond_segment::wire::{DecodeError, Decoder, Encoder};

use super::cells::Cell;
use super::coded::CodedCounts;
use super::leaf::{Leaf, OfLabels};
use super::series::SeriesLabels;
use super::series_map::{Cells, KeyLookup, SeriesHandle, SeriesMap, Tag};
use crate::aggregate::LabelSet;
use crate::logql::Grouping;
use crate::pipeline::{ERROR, Labels, Origin, Pipeline, StageError, Unwrap, Work};

/// The most memory of one table.
pub const TABLE_BYTES_MAX: usize = 256 << 20;

/// What a series costs beside its labels, and a cell beside its numbers: the maps that they are in.
pub(super) const OVERHEAD_BYTES: usize = 96;

/// The series and the number of lines with the same labels.
pub(super) struct LineSample<'s> {
    /// The key of their series.
    pub(super) key: Cow<'s, [u8]>,
    /// The number of their label; 0 where it is taken of each line, or none is.
    pub(super) number: f64,
    /// What a stage could not do with them.
    pub(super) error: Option<StageError>,
}

/// The numbers of a range aggregation, as far as they were read.
#[derive(Debug)]
pub struct RangeTable {
    leaf: Arc<Leaf>,
    series: SeriesHandle,
    bytes: usize,
    is_full: bool,
    /// Lines by what a stage could not do with them.
    errors: BTreeMap<StageError, u64>,
    work: Work<'static>,
    key: Vec<u8>,
    /// Of the row group at hand.
    pub(super) coded: Option<CodedCounts>,
}

impl Clone for RangeTable {
    fn clone(&self) -> RangeTable {
        RangeTable {
            leaf: Arc::clone(&self.leaf),
            series: self.series.clone(),
            bytes: self.bytes,
            is_full: self.is_full,
            errors: self.errors.clone(),
            work: work_of(&self.leaf),
            key: Vec::new(),
            coded: self.coded.clone(),
        }
    }
}

impl RangeTable {
    /// An empty table.
    pub fn new(leaf: Arc<Leaf>) -> RangeTable {
        RangeTable {
            work: work_of(&leaf),
            leaf,
            series: SeriesHandle::default(),
            bytes: 0,
            is_full: false,
            errors: BTreeMap::new(),
            key: Vec::new(),
            coded: None,
        }
    }

    /// What the table is of.
    pub fn leaf(&self) -> &Arc<Leaf> {
        &self.leaf
    }

    /// Adds a line; `labels` gives those that it comes with.
    pub fn add_line(&mut self, time_ns: i64, line: &[u8], labels: impl FnOnce(&mut Labels)) {
        let leaf = Arc::clone(&self.leaf);
        self.add_work(&leaf.pipeline, time_ns, line, labels);
    }

    /// Adds a line for which these stages are left.
    pub(super) fn add_work(
        &mut self,
        stages: &Pipeline,
        time_ns: i64,
        line: &[u8],
        labels: impl FnOnce(&mut Labels),
    ) {
        let Some(piece) = self.leaf.windows.piece_of(time_ns) else {
            return;
        };
        let leaf = Arc::clone(&self.leaf);
        let mut work = Work {
            time_ns,
            line: Cow::Borrowed(line),
            labels: std::mem::take(&mut self.work.labels),
            scratch: std::mem::take(&mut self.work.scratch),
        };
        work.labels.clear();
        labels(&mut work.labels);
        let value = if stages.run(&mut work) {
            match &leaf.unwrap {
                Some(unwrap) => unwrap.run(&mut work),
                None => Some(cast::float(work.line.len())),
            }
        } else {
            None
        };
        // A line without all of its labels may be missing because of that.
        let counts = value.is_some() || work.labels.is_cut();
        let is_failed = work.labels.error().is_some_and(|(error, _)| {
            *self.errors.entry(error).or_default() += u64::from(counts);
            // What is no number has no place among numbers.
            error == StageError::SampleExtraction
        });
        if let Some(value) = value.filter(|_| !is_failed) {
            let mut key = std::mem::take(&mut self.key);
            key.clear();
            write_key(&work.labels, &leaf, &mut key);
            self.add_cell(&key, piece, leaf.cells.cell(time_ns, value));
            self.key = key;
        }
        (self.work.labels, self.work.scratch) = (work.labels, work.scratch);
    }

    /// What becomes of lines with these labels and a number, if one is taken: their series, the number of
    /// their label, and what a stage could not do with them; `error` is what the parser could not. `None` if
    /// they do not count.
    pub(super) fn decide<'s>(
        &mut self,
        of_labels: &OfLabels,
        set: &'s LabelSet,
        error: Option<StageError>,
    ) -> Option<LineSample<'s>> {
        let leaf = Arc::clone(&self.leaf);
        let has_conditions =
            |unwrap: &Unwrap| of_labels.number.is_none() || unwrap.has_conditions();
        let is_text = |value: Cow<'_, str>| matches!(value, Cow::Borrowed(_));
        let is_part = |grouping: &Grouping| grouping.is_without;
        if error.is_none()
            && of_labels.rest.is_empty()
            && !leaf.grouping.as_ref().is_some_and(is_part)
            && !leaf.unwrap.as_ref().is_some_and(has_conditions)
            && set.iter().all(|(_, value)| is_text(value))
        {
            // The labels are those of the series, in the same layout.
            return Some(LineSample {
                key: Cow::Borrowed(set.as_bytes()),
                number: 0.0,
                error: None,
            });
        }
        let work = &mut self.work;
        work.labels.clear();
        for (name, value) in set.iter() {
            work.labels.add_base(Origin::Stream, name, &value);
        }
        if let Some(error) = error {
            work.labels.fail(error, "");
        }
        if !of_labels.rest.run(work) {
            return None;
        }
        let number = match &leaf.unwrap {
            None => 0.0,
            Some(unwrap) if of_labels.number.is_some() => unwrap.accepts(work).then_some(0.0)?,
            Some(unwrap) => unwrap.run(work)?,
        };
        let error = work.labels.error().map(|(error, _)| error);
        let mut key = Vec::new();
        write_key(&work.labels, &leaf, &mut key);
        Some(LineSample {
            key: Cow::Owned(key),
            number,
            error,
        })
    }

    pub(super) fn note_errors(&mut self, error: StageError, lines: u64) {
        *self.errors.entry(error).or_default() += lines;
    }

    /// Adds counts to series, at most as many as are looked for together. Several may have one key: the texts of a
    /// column need not differ.
    pub(super) fn add_counts_of(&mut self, keys: &[(Tag, &[u8])], piece: u32, counts: &[u64]) {
        let found = self.series.find_together(keys);
        for ((key, count), found) in keys.iter().zip(counts).zip(found) {
            let count = Cell::Count(*count);
            match found {
                KeyLookup::At(place) => self.add_at(place, piece, count),
                KeyLookup::Nowhere | KeyLookup::Unsure => self.add_tagged(*key, piece, count),
            }
        }
    }

    /// Adds a series whose key no other one has.
    fn add_new(&mut self, key: (Tag, &[u8]), cells: Cells) {
        if self.is_full {
            return;
        }
        let place = self.series.own().insert(key, cells);
        self.take_room(place, key.1);
    }

    /// Makes room for series of which most are new.
    pub(super) fn expect(&mut self, series: usize, key_bytes: usize) {
        if self.series.len() == 0 && !self.is_full {
            self.series.own().reserve(series, key_bytes);
        }
    }

    pub(super) fn add_cell(&mut self, key: &[u8], piece: u32, cell: Cell) {
        self.add_tagged((Tag::of(key), key), piece, cell);
    }

    /// Adds a cell to the series with this key and its tag.
    fn add_tagged(&mut self, key: (Tag, &[u8]), piece: u32, cell: Cell) {
        if self.is_full {
            return;
        }
        let mut cell = Some(cell);
        let new = || Cells::One([(piece, cell.take().unwrap_or(Cell::Count(0)))]);
        let place = self.series.own().find_or_insert(key, new);
        match cell {
            None => self.take_room(place, key.1),
            Some(cell) => self.add_at(place, piece, cell),
        }
    }

    /// Adds a cell to the series at this place.
    pub(super) fn add_at(&mut self, place: u32, piece: u32, cell: Cell) {
        // Nothing is left of the series of a full table.
        if self.is_full {
            return;
        }
        self.bytes += cell.numbers_bytes();
        let cells = self.series.own().cells_mut(place);
        let known = cells.as_mut_slice();
        // What is read comes mostly in the order of time.
        let at = match known.last() {
            Some((last, _)) if *last == piece => Ok(known.len() - 1),
            Some((last, _)) if *last > piece => {
                known.binary_search_by_key(&piece, |(known, _)| *known)
            }
            _ => Err(known.len()),
        };
        match at {
            Ok(at) => self.leaf.cells.merge(&mut known[at].1, cell),
            Err(at) => {
                self.bytes += size_of::<(u32, Cell)>() + cell.moments_bytes();
                cells.insert(at, (piece, cell));
            }
        }
        self.check_room();
    }

    /// Counts the memory of a series that was put there with all of its cells.
    fn take_room(&mut self, place: u32, key: &[u8]) {
        let cells = self.series.cells(place);
        let beside = |(_, cell): &(u32, Cell)| cell.numbers_bytes() + cell.moments_bytes();
        let beside = cells.iter().map(beside).sum::<usize>();
        self.bytes += beside + key.len() + OVERHEAD_BYTES + size_of_val(cells);
        self.check_room();
    }

    fn check_room(&mut self) {
        self.is_full = self.bytes > TABLE_BYTES_MAX;
        if self.is_full {
            // It is worth nothing any more, and others need the memory.
            self.series = SeriesHandle::default();
        }
    }

    /// Adds what another table of the same has.
    pub fn merge(&mut self, other: RangeTable) {
        self.is_full |= other.is_full;
        for (error, count) in other.errors {
            *self.errors.entry(error).or_default() += count;
        }
        debug_assert!(other.coded.is_none(), "a row group has not ended");
        // In any order: what is kept of a series does not depend on others.
        let mut series = other.series;
        if series.len() > self.series.len() {
            std::mem::swap(&mut series, &mut self.series);
            self.bytes = other.bytes;
        }
        series.into_batches(|keys, all_cells| {
            let found = self.series.find_together(keys);
            for ((key, cells), found) in keys.iter().zip(all_cells).zip(found) {
                match found {
                    KeyLookup::At(place) => self.add_cells_at(place, cells),
                    KeyLookup::Nowhere => self.add_new(*key, cells),
                    KeyLookup::Unsure => self.add_cells(*key, cells),
                }
            }
        });
    }

    fn add_cells(&mut self, key: (Tag, &[u8]), cells: Cells) {
        if self.is_full {
            return;
        }
        let mut cells = Some(cells);
        let new = || cells.take().unwrap_or(Cells::Many(Vec::new()));
        let place = self.series.own().find_or_insert(key, new);
        match cells {
            None => self.take_room(place, key.1),
            Some(cells) => self.add_cells_at(place, cells),
        }
    }

    fn add_cells_at(&mut self, place: u32, cells: Cells) {
        for (piece, cell) in cells {
            self.add_at(place, piece, cell);
        }
    }

    /// Whether the table needed more memory than [`TABLE_BYTES_MAX`]; it is worth nothing then.
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    /// Lines by what a stage could not do with them.
    pub fn errors(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.errors
            .iter()
            .map(|(error, count)| (error.as_str(), *count))
    }

    /// Appends what was added to a message between nodes.
    pub fn encode(&self, out: &mut Encoder) {
        debug_assert!(self.coded.is_none(), "a row group has not ended");
        out.flag(self.is_full);
        out.count(self.errors.len());
        for (error, count) in &self.errors {
            out.number(*error as u64);
            out.number(*count);
        }
        let mut series: Vec<_> = self.series.iter().collect();
        series.sort_unstable_by_key(|(key, _)| *key);
        out.count(series.len());
        for (key, cells) in series {
            out.bytes(key);
            out.count(cells.len());
            for (piece, cell) in cells {
                out.number(u64::from(*piece));
                cell.encode(out);
            }
        }
    }

    /// Adds what another node has encoded.
    ///
    /// # Errors
    /// When the bytes are something else; a part may have been added then.
    pub fn merge_encoded(&mut self, from: &mut Decoder<'_>) -> Result<(), DecodeError> {
        self.is_full |= from.flag("whether there was room")?;
        for _ in 0..from.count(2, "the errors")? {
            let number = from.number("an error")?;
            let known = StageError::ALL
                .iter()
                .find(|error| **error as u64 == number);
            let error = known.ok_or(DecodeError::Malformed("an error"))?;
            *self.errors.entry(*error).or_default() += from.number("an error's count")?;
        }
        let form = self.leaf.cells.cell(0, 0.0);
        for _ in 0..from.count(2, "the series")? {
            let key = from.bytes(TABLE_BYTES_MAX, "a series")?;
            if !SeriesLabels::is_key(key) {
                return Err(DecodeError::Malformed("a series"));
            }
            for _ in 0..from.count(2, "the cells")? {
                let piece = from.number("a piece")?;
                let piece = u32::try_from(piece).map_err(|_| DecodeError::Malformed("a piece"))?;
                let cell = form.decode(from)?;
                self.add_cell(key, piece, cell);
            }
        }
        Ok(())
    }

    /// The series with their cells, in any order, and what stages could not do.
    ///
    /// Nothing may wait for the end of a row group.
    pub(super) fn into_parts(self) -> (SeriesHandle, BTreeMap<StageError, u64>) {
        debug_assert!(self.coded.is_none(), "a row group has not ended");
        (self.series, self.errors)
    }

    /// Takes the series of another table, which takes so much memory, for its own, if there are none.
    pub(super) fn share(&mut self, series: &Arc<SeriesMap>, bytes: usize) -> bool {
        let is_empty = self.series.len() == 0 && !self.is_full;
        if is_empty {
            self.series = SeriesHandle::Shared(Arc::clone(series));
            self.bytes = bytes;
        }
        is_empty
    }

    /// About the memory that it takes, room for further series included.
    pub fn bytes(&self) -> usize {
        let coded = self.coded.as_ref().map_or(0, CodedCounts::bytes);
        coded + self.bytes.max(self.series.bytes())
    }

    /// The part of its bound that its series take.
    pub(super) fn counted_bytes(&self) -> usize {
        self.bytes
    }
}

/// What a line is worked on with, with the labels that matter.
fn work_of(leaf: &Leaf) -> Work<'static> {
    Work::with(Labels::among(leaf.looked_at.clone()))
}

fn write_key(labels: &Labels, leaf: &Leaf, key: &mut Vec<u8>) {
    let is_wanted = |name: &str| {
        leaf.grouping.as_ref().is_none_or(|grouping| {
            grouping.labels.iter().any(|label| **label == *name) != grouping.is_without
        })
    };
    let keeps_empty = leaf.keeps_empty_labels();
    let all = labels
        .iter()
        .filter(|(name, value, _)| is_wanted(name) && (keeps_empty || !value.is_empty()));
    let mut all: Vec<(&str, &str, Origin)> = all.collect();
    if let Some(error) = labels.get(ERROR).filter(|_| is_wanted(ERROR)) {
        all.push((ERROR, error, Origin::Parsed));
    }
    all.sort_unstable_by_key(|(name, ..)| *name);
    SeriesLabels::write_key(all.iter().map(|(name, value, _)| (*name, *value)), key);
}
