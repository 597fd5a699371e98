//! A range aggregation as a table that many threads and nodes fill together.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::mem::size_of;
use std::sync::Arc;

use logpond_record::{TimeRange, Timestamp};
use logpond_segment::wire::{DecodeError, Decoder, Encoder};

use super::cells::{Cell, CellKind};
use super::series::SeriesLabels;
use super::windows::{Times, Windows};
use crate::aggregate::FixedMap;
use crate::logql::{
    self, Grouping, LabelChoice, Metric, Query, RangeAggregation, RangeFunction, Stage, StageKind,
};
use crate::pipeline::{ERROR, ERROR_DETAILS, Labels, Origin, Pipeline, StageError, Unwrap, Work};

/// The most memory of one table.
pub const TABLE_BYTES_MAX: usize = 256 << 20;

/// What a series costs beside its labels, and a cell beside its numbers: the maps that they are in.
const OVERHEAD_BYTES: usize = 96;

/// What a table is of: all that other nodes need to fill the same one.
#[derive(Clone, Debug, PartialEq)]
pub struct LeafSpec {
    /// The range aggregation.
    pub aggregation: RangeAggregation,
    /// The labels by which series may be put together at once, as what is made of them does it anyway.
    pub reduce: Option<Grouping>,
    /// The instants.
    pub times: Times,
    /// The time of the query, for templates.
    pub now_ns: i64,
}

impl LeafSpec {
    /// Appends the specification to a message.
    pub fn encode(&self, out: &mut Encoder) {
        let text = Metric::Range(Box::new(self.aggregation.clone())).to_string();
        out.bytes(text.as_bytes());
        out.flag(self.reduce.is_some());
        if let Some(grouping) = &self.reduce {
            out.flag(grouping.is_without);
            out.count(grouping.labels.len());
            grouping
                .labels
                .iter()
                .for_each(|label| out.bytes(label.as_bytes()));
        }
        out.time(Timestamp(self.times.start_ns));
        out.time(Timestamp(self.times.step_ns));
        out.number(self.times.count);
        out.time(Timestamp(self.now_ns));
    }

    /// Reads what [`LeafSpec::encode`] wrote.
    ///
    /// # Errors
    /// When the bytes are something else.
    pub fn decode(from: &mut Decoder<'_>) -> Result<LeafSpec, DecodeError> {
        const WHAT: &str = "a range aggregation";
        let text = from.text(logql::QUERY_BYTES_MAX * 2, WHAT)?;
        let aggregation = match logql::parse(text) {
            Ok(Query::Metric(Metric::Range(aggregation))) => *aggregation,
            _ => return Err(DecodeError::Malformed(WHAT)),
        };
        let mut reduce = None;
        if from.flag(WHAT)? {
            let is_without = from.flag(WHAT)?;
            let count = from.count(1, WHAT)?;
            let labels: Result<Vec<Box<str>>, DecodeError> = (0..count)
                .map(|_| Ok(from.text(logql::QUERY_BYTES_MAX, WHAT)?.into()))
                .collect();
            reduce = Some(Grouping {
                is_without,
                labels: labels?,
            });
        }
        let (start, step) = (from.time("a start")?, from.time("a step")?);
        let times = Times {
            start_ns: start.0,
            step_ns: step.0,
            count: from.number("the steps")?,
        };
        if times.step_ns <= 0 || times.count == 0 || times.count > super::STEPS_MAX + 1 {
            return Err(DecodeError::Malformed("the steps"));
        }
        Ok(LeafSpec {
            aggregation,
            reduce,
            times,
            now_ns: from.time("now")?.0,
        })
    }
}

/// A compiled range aggregation. It is shared by all tables of it.
#[derive(Debug)]
pub struct Leaf {
    spec: LeafSpec,
    windows: Windows,
    pipeline: Pipeline,
    unwrap: Option<Unwrap>,
    cells: CellKind,
    /// The fields that are labels as they are named.
    named: Vec<Box<str>>,
    /// By which labels series are told apart.
    grouping: Option<Grouping>,
}

impl Leaf {
    /// Compiles a range aggregation.
    ///
    /// # Errors
    /// What is wrong with a stage; what was parsed always compiles.
    pub fn new(spec: LeafSpec) -> Result<Leaf, String> {
        let aggregation = &spec.aggregation;
        let pipeline = Pipeline::new(&effective(&aggregation.log.stages), spec.now_ns)?;
        let unwrap = aggregation.unwrap.as_ref().map(Unwrap::new).transpose()?;
        let windows = Windows::new(spec.times, aggregation.range_ns, aggregation.offset_ns);
        let cells = CellKind::new(aggregation.function, unwrap.is_some());
        let grouping = grouping_of(&spec, unwrap.as_ref());
        let mut named = logql::names_of(&aggregation.log.matchers);
        // Where no stage makes labels, the fields that are grouped by are labels.
        let grouped = grouping.as_ref().filter(|grouping| !grouping.is_without);
        let makes_labels = aggregation
            .log
            .stages
            .iter()
            .any(|stage| stage.kind.makes_labels());
        if let Some(grouped) = grouped.filter(|_| !makes_labels) {
            named.extend(grouped.labels.iter().cloned());
            named.sort_unstable();
            named.dedup();
        }
        Ok(Leaf {
            named,
            windows,
            pipeline,
            unwrap,
            cells,
            grouping,
            spec,
        })
    }

    /// What was compiled.
    pub fn spec(&self) -> &LeafSpec {
        &self.spec
    }

    /// The times of the lines that count.
    pub fn range(&self) -> TimeRange {
        self.windows.range()
    }

    /// By which labels series are told apart; by all without one.
    pub fn grouping(&self) -> Option<&Grouping> {
        self.grouping.as_ref()
    }

    /// Whether lines count as they come: no stage looks at them, and no label's number is taken.
    pub fn takes_lines_as_they_are(&self) -> bool {
        self.pipeline.is_empty() && self.unwrap.is_none()
    }

    /// The fields that are labels as they are named.
    pub(super) fn named(&self) -> &[Box<str>] {
        &self.named
    }

    /// Which records may count.
    pub fn filter(&self) -> crate::query::Filter {
        logql::filter_of(&self.spec.aggregation.log)
    }

    /// Whether the lines themselves count, or are looked at.
    pub(super) fn looks_at_lines(&self) -> bool {
        !self.pipeline.is_empty() || (self.unwrap.is_none() && self.counts_bytes())
    }

    /// The labels that count, if these are known and no others are looked at.
    pub(super) fn only_labels(&self) -> Option<&[Box<str>]> {
        let grouping = self.grouping.as_ref()?;
        let is_all = self.takes_lines_as_they_are() && !grouping.is_without;
        is_all.then_some(&*grouping.labels)
    }

    /// Whether lines are told apart by nothing.
    fn is_one_series(&self) -> bool {
        let grouping = self.grouping.as_ref();
        grouping.is_some_and(|grouping| !grouping.is_without && grouping.labels.is_empty())
    }

    /// Whether only the times of lines count.
    pub(super) fn counts_times(&self) -> bool {
        self.takes_lines_as_they_are() && self.is_one_series() && !self.counts_bytes()
    }

    fn counts_bytes(&self) -> bool {
        matches!(
            self.spec.aggregation.function,
            RangeFunction::BytesOverTime | RangeFunction::BytesRate
        )
    }
}

/// The stages that do something: dropping errors where there can be none, as Grafana's volumes do it,
/// does nothing.
fn effective(stages: &[Stage]) -> Vec<Stage> {
    let mut may_fail = false;
    let is_wanted = |stage: &&Stage| {
        let drops_errors = match &stage.kind {
            StageKind::Drop(choices) => choices.iter().all(|choice| match choice {
                LabelChoice::Name(name) => [ERROR, ERROR_DETAILS].contains(&&**name),
                LabelChoice::Matcher(_) => false,
            }),
            _ => false,
        };
        may_fail |= !drops_errors && !matches!(stage.kind, StageKind::LineFilter(_));
        may_fail || !drops_errors
    };
    stages.iter().filter(is_wanted).cloned().collect()
}

/// The grouping of a leaf: its own, then what can be reduced of it; without the label that is a number.
fn grouping_of(spec: &LeafSpec, unwrap: Option<&Unwrap>) -> Option<Grouping> {
    let aggregation = &spec.aggregation;
    if aggregation.function == RangeFunction::AbsentOverTime {
        return Some(Grouping::default());
    }
    let own = aggregation.grouping.clone().or_else(|| spec.reduce.clone());
    let Some(unwrap) = unwrap else { return own };
    let label: Box<str> = unwrap.label().into();
    match own {
        // Without labels nothing is put together: an empty list is as good as none.
        Some(grouping) if !grouping.is_without && spec.reduce.is_some() => Some(grouping),
        Some(grouping) if !grouping.is_without => Some(grouping),
        Some(mut grouping) => {
            grouping.labels.push(label);
            Some(grouping)
        }
        None => Some(Grouping {
            is_without: true,
            labels: vec![label],
        }),
    }
}

/// Series with their cells in order of time.
pub(super) type Rows = Vec<(Arc<SeriesLabels>, Vec<(u32, Cell)>)>;

/// The cells of a series, by piece of time.
type Cells = BTreeMap<u32, Cell>;

/// The numbers of a range aggregation, as far as they were read.
#[derive(Debug)]
pub struct RangeTable {
    leaf: Arc<Leaf>,
    series: FixedMap<Box<[u8]>, Cells>,
    bytes: usize,
    is_full: bool,
    /// Lines by what a stage could not do with them.
    errors: BTreeMap<StageError, u64>,
    work: Work<'static>,
    key: Vec<u8>,
}

impl Clone for RangeTable {
    fn clone(&self) -> RangeTable {
        RangeTable {
            leaf: Arc::clone(&self.leaf),
            series: self.series.clone(),
            bytes: self.bytes,
            is_full: self.is_full,
            errors: self.errors.clone(),
            work: Work::new(),
            key: Vec::new(),
        }
    }
}

impl RangeTable {
    /// An empty table.
    pub fn new(leaf: Arc<Leaf>) -> RangeTable {
        RangeTable {
            leaf,
            series: FixedMap::default(),
            bytes: 0,
            is_full: false,
            errors: BTreeMap::new(),
            work: Work::new(),
            key: Vec::new(),
        }
    }

    /// What the table is of.
    pub fn leaf(&self) -> &Arc<Leaf> {
        &self.leaf
    }

    /// Adds a line; `labels` gives those that it comes with.
    pub fn add_line(&mut self, time_ns: i64, line: &[u8], labels: impl FnOnce(&mut Labels)) {
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
        let value = match leaf.pipeline.run(&mut work) {
            false => None,
            true => match &leaf.unwrap {
                Some(unwrap) => unwrap.run(&mut work),
                None => Some(work.line.len() as f64),
            },
        };
        let is_failed = work.labels.error().is_some_and(|(error, _)| {
            *self.errors.entry(error).or_default() += u64::from(value.is_some());
            // What is no number has no place among numbers.
            error == StageError::SampleExtraction
        });
        if let Some(value) = value.filter(|_| !is_failed) {
            let mut key = std::mem::take(&mut self.key);
            key.clear();
            write_key(&work.labels, leaf.grouping.as_ref(), &mut key);
            self.add_cell(&key, piece, leaf.cells.cell(time_ns, value));
            self.key = key;
        }
        (self.work.labels, self.work.scratch) = (work.labels, work.scratch);
    }

    /// Adds lines of a series by their times, where nothing else counts.
    pub(super) fn add_times(&mut self, key: &[u8], times: impl Iterator<Item = i64>) {
        let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
        for piece in times.filter_map(|time| self.leaf.windows.piece_of(time)) {
            *counts.entry(piece).or_default() += 1;
        }
        for (piece, count) in counts {
            self.add_cell(key, piece, Cell::Count(count));
        }
    }

    fn add_cell(&mut self, key: &[u8], piece: u32, cell: Cell) {
        if self.is_full {
            return;
        }
        let kind = self.leaf.cells;
        if !self.series.contains_key(key) {
            self.bytes += key.len() + OVERHEAD_BYTES;
            self.series.insert(key.into(), Cells::new());
        }
        self.bytes += cell.values() * kind.value_bytes();
        if let Some(cells) = self.series.get_mut(key) {
            match cells.get_mut(&piece) {
                Some(known) => kind.merge(known, cell),
                None => {
                    self.bytes += size_of::<Cell>() + OVERHEAD_BYTES / 4;
                    cells.insert(piece, cell);
                }
            }
        }
        self.is_full = self.bytes > TABLE_BYTES_MAX;
        if self.is_full {
            // It is worth nothing any more, and others need the memory.
            self.series.clear();
        }
    }

    /// Adds what another table of the same has.
    pub fn merge(&mut self, other: RangeTable) {
        self.is_full |= other.is_full;
        for (error, count) in other.errors {
            *self.errors.entry(error).or_default() += count;
        }
        let mut series: Vec<_> = other.series.into_iter().collect();
        series.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        for (key, cells) in series {
            for (piece, cell) in cells {
                self.add_cell(&key, piece, cell);
            }
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
            if SeriesLabels::of_key(key).is_none() {
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

    /// The series with their cells, in the order of their labels.
    pub(super) fn into_series(self) -> Rows {
        let series = self.series.into_iter();
        let mut series: Vec<_> = series
            .map(|(key, cells)| {
                // Keys are written here or checked when they come.
                let labels = SeriesLabels::of_key(&key).unwrap_or_default();
                (Arc::new(labels), cells.into_iter().collect())
            })
            .collect();
        series.sort_by(|a: &(Arc<SeriesLabels>, _), b| a.0.cmp(&b.0));
        series
    }

    /// The number of a window of some cells.
    pub(super) fn value_of(leaf: &Leaf, cells: &[(u32, Cell)], step: u64) -> Option<f64> {
        let (from, to) = leaf.windows.pieces(step);
        let first = cells.partition_point(|(piece, _)| *piece < from);
        let in_window = cells[first..].iter().take_while(|(piece, _)| *piece < to);
        let window = leaf.windows.bounds(step);
        let parameter = leaf.spec.aggregation.parameter;
        leaf.cells
            .value(in_window.map(|(_, cell)| cell), window, parameter)
    }
}

fn write_key(labels: &Labels, grouping: Option<&Grouping>, key: &mut Vec<u8>) {
    let is_wanted = |name: &str| {
        grouping.is_none_or(|grouping| {
            grouping.labels.iter().any(|label| **label == *name) != grouping.is_without
        })
    };
    let all = labels.iter().filter(|(name, ..)| is_wanted(name));
    let mut all: Vec<(&str, &str, Origin)> = all.collect();
    if let Some(error) = labels.get(ERROR).filter(|_| is_wanted(ERROR)) {
        all.push((ERROR, error, Origin::Parsed));
    }
    all.sort_unstable_by_key(|(name, ..)| *name);
    SeriesLabels::write_key(all.iter().map(|(name, value, _)| (*name, *value)), key);
}
