//! What is kept of the lines of one series in one piece of time.

use std::mem::size_of;

use logpond_record::{Timestamp, cast};
use logpond_segment::wire::{DecodeError, Decoder, Encoder};

use super::sum::{Sum, decode_float, encode_float};
use crate::logql::RangeFunction;

/// What is kept, by what is computed of it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cell {
    /// How many lines, or bytes.
    Count(u64),
    /// A sum of numbers.
    Sum(Sum),
    /// The smallest or largest number; none is smaller and larger than any.
    Extreme(f64),
    /// The first or last time, and the number.
    Edge(i64, f64),
    /// What means and deviations are of; apart, as there are far more cells of other kinds.
    Moments(Box<Moments>),
    /// All numbers.
    Values(Vec<f64>),
    /// All numbers with their times; apart, so that other cells are no larger for it.
    Points(Box<Points>),
}

/// How many numbers there are, their sum, and the sum of their squares.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Moments {
    count: u64,
    sum: Sum,
    squares: Sum,
}

/// Numbers with their times, in nanoseconds.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Points(Vec<(i64, f64)>);

/// Which cells a function needs, and what it makes of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CellKind {
    function: RangeFunction,
    is_unwrapped: bool,
}

impl CellKind {
    pub(super) fn new(function: RangeFunction, is_unwrapped: bool) -> CellKind {
        CellKind {
            function,
            is_unwrapped,
        }
    }

    /// The cell of one line.
    pub(super) fn cell(self, time_ns: i64, value: f64) -> Cell {
        use RangeFunction as F;
        match self.function {
            F::Rate if self.is_unwrapped => Cell::Sum(one(value)),
            F::CountOverTime | F::Rate | F::AbsentOverTime => Cell::Count(1),
            F::BytesOverTime | F::BytesRate => Cell::Count(cast::whole_u64(value)),
            F::SumOverTime => Cell::Sum(one(value)),
            F::MinOverTime | F::MaxOverTime => Cell::Extreme(value),
            F::FirstOverTime | F::LastOverTime => Cell::Edge(time_ns, value),
            F::AvgOverTime | F::StdvarOverTime | F::StddevOverTime => {
                Cell::Moments(Box::new(Moments::of(value)))
            }
            F::QuantileOverTime => Cell::Values(vec![value]),
            F::RateCounter => Cell::Points(Box::new(Points(vec![(time_ns, value)]))),
        }
    }

    /// Whether how many lines there are is all that is kept.
    pub(super) fn counts_lines(self) -> bool {
        use RangeFunction as F;
        let counts = matches!(
            self.function,
            F::CountOverTime | F::Rate | F::AbsentOverTime
        );
        counts && !(self.function == F::Rate && self.is_unwrapped)
    }

    /// Whether cells depend on the times of lines within a piece.
    pub(super) fn needs_times(self) -> bool {
        use RangeFunction as F;
        matches!(
            self.function,
            F::FirstOverTime | F::LastOverTime | F::RateCounter
        )
    }

    /// Whether all numbers are kept.
    pub(super) fn keeps_numbers(self) -> bool {
        use RangeFunction as F;
        matches!(self.function, F::QuantileOverTime | F::RateCounter)
    }

    /// A cell without numbers yet, with room for so many; of those that keep them.
    pub(super) fn with_room(self, numbers: usize) -> Cell {
        match self.function {
            RangeFunction::RateCounter => {
                Cell::Points(Box::new(Points(Vec::with_capacity(numbers))))
            }
            _ => Cell::Values(Vec::with_capacity(numbers)),
        }
    }

    /// Adds a line to a cell that may not be there yet.
    pub(super) fn add(self, into: &mut Option<Cell>, time_ns: i64, value: f64) {
        match into {
            None => *into = Some(self.cell(time_ns, value)),
            Some(Cell::Sum(sum)) => sum.add(value),
            Some(Cell::Moments(moments)) => moments.merge(&Moments::of(value)),
            Some(Cell::Values(values)) => values.push(value),
            Some(Cell::Points(points)) => points.0.push((time_ns, value)),
            Some(known) => self.merge(known, self.cell(time_ns, value)),
        }
    }

    /// Adds a cell to another one of the same kind.
    pub(super) fn merge(self, into: &mut Cell, other: Cell) {
        match (into, other) {
            (Cell::Count(a), Cell::Count(b)) => *a += b,
            (Cell::Sum(a), Cell::Sum(b)) => a.merge(b),
            (Cell::Extreme(a), Cell::Extreme(b)) => {
                let is_better = match self.function {
                    RangeFunction::MinOverTime => b < *a,
                    _ => b > *a,
                };
                if is_better || a.is_nan() {
                    *a = b;
                }
            }
            (Cell::Edge(time, value), Cell::Edge(other_time, other)) => {
                // Of lines at one instant the smaller number counts, whoever read it first.
                let before = (other_time, other).partial_cmp(&(*time, *value));
                let is_better = match self.function {
                    RangeFunction::FirstOverTime => before == Some(std::cmp::Ordering::Less),
                    _ => other_time > *time || (other_time == *time && other > *value),
                };
                if is_better {
                    (*time, *value) = (other_time, other);
                }
            }
            (Cell::Moments(a), Cell::Moments(b)) => a.merge(&b),
            (Cell::Values(a), Cell::Values(b)) => a.extend(b),
            (Cell::Points(a), Cell::Points(b)) => a.0.extend(b.0),
            _ => {}
        }
    }

    /// The number of a window, of its cells in order of time; `None` where there are none.
    pub(super) fn value<'c>(
        self,
        cells: impl Iterator<Item = &'c Cell>,
        window: (i64, i64),
        parameter: Option<f64>,
    ) -> Option<f64> {
        let mut cells = cells;
        let mut all = cells.next()?.clone();
        cells.for_each(|cell| self.merge(&mut all, cell.clone()));
        let seconds = (cast::float(window.1) - cast::float(window.0)) / 1e9;
        use RangeFunction as F;
        Some(match (self.function, all) {
            (F::Rate | F::BytesRate, Cell::Count(count)) => cast::float(count) / seconds,
            (F::Rate, Cell::Sum(sum)) => sum.value() / seconds,
            (_, Cell::Count(count)) => cast::float(count),
            (_, Cell::Sum(sum)) => sum.value(),
            (_, Cell::Extreme(value) | Cell::Edge(_, value)) => value,
            (F::AvgOverTime, Cell::Moments(moments)) => moments.mean(),
            (F::StddevOverTime, Cell::Moments(moments)) => moments.variance().sqrt(),
            (_, Cell::Moments(moments)) => moments.variance(),
            (_, Cell::Values(values)) => quantile(parameter.unwrap_or(f64::NAN), values),
            (_, Cell::Points(points)) => counter_rate(points.0, window),
        })
    }
}

impl Moments {
    fn of(value: f64) -> Moments {
        Moments {
            count: 1,
            sum: one(value),
            squares: Sum::product(value, value),
        }
    }

    fn merge(&mut self, other: &Moments) {
        self.count += other.count;
        self.sum.merge(other.sum);
        self.squares.merge(other.squares);
    }

    fn mean(&self) -> f64 {
        self.sum.value() / cast::float(self.count)
    }

    fn variance(&self) -> f64 {
        let count = cast::float(self.count);
        let spread = self.sum.spread(self.squares, count);
        // What is no number stays none.
        if spread.is_nan() {
            f64::NAN
        } else {
            (spread / count).max(0.0)
        }
    }
}

fn one(value: f64) -> Sum {
    let mut sum = Sum::default();
    sum.add(value);
    sum
}

/// The quantile of numbers, between two of them in proportion.
fn quantile(q: f64, mut values: Vec<f64>) -> f64 {
    if q < 0.0 {
        return f64::NEG_INFINITY;
    }
    if q > 1.0 {
        return f64::INFINITY;
    }
    if values.is_empty() || q.is_nan() {
        return f64::NAN;
    }
    let rank = q * cast::float(values.len() - 1);
    let weight = rank - rank.floor();
    // Where the numbers lie is enough; they need not be in order.
    let (_, below, above) = values.select_nth_unstable_by(cast::whole_usize(rank), f64::total_cmp);
    let below = *below;
    let next = above.iter().copied().min_by(f64::total_cmp);
    below * (1.0 - weight) + next.unwrap_or(below) * weight
}

/// The increase per second of a number that only grows, but for restarts; as far beyond the first and
/// the last point as points are apart, and not below zero (Prometheus' extrapolation).
fn counter_rate(mut points: Vec<(i64, f64)>, window: (i64, i64)) -> f64 {
    points.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let (Some(first), Some(last), true) = (points.first(), points.last(), points.len() > 1) else {
        return 0.0;
    };
    let mut increase = last.1 - first.1;
    let mut before = 0.0;
    for (_, value) in &points {
        if *value < before {
            increase += before;
        }
        before = *value;
    }
    let seconds = |from: i64, to: i64| (cast::float(to) - cast::float(from)) / 1e9;
    let (mut to_start, mut to_end) = (seconds(window.0, first.0), seconds(last.0, window.1));
    let sampled = seconds(first.0, last.0);
    if sampled == 0.0 {
        // Points at one instant are no slope.
        return increase / seconds(window.0, window.1);
    }
    let apart = sampled / cast::float(points.len() - 1);
    if to_start >= apart * 1.1 {
        to_start = apart / 2.0;
    }
    if increase > 0.0 && first.1 >= 0.0 {
        to_start = to_start.min(sampled * (first.1 / increase));
    }
    if to_end >= apart * 1.1 {
        to_end = apart / 2.0;
    }
    increase * ((sampled + to_start + to_end) / sampled) / seconds(window.0, window.1)
}

impl Cell {
    pub(super) fn encode(&self, out: &mut Encoder) {
        match self {
            Cell::Count(count) => out.number(*count),
            Cell::Sum(sum) => sum.encode(out),
            Cell::Extreme(value) => encode_float(*value, out),
            Cell::Edge(time, value) => {
                out.time(Timestamp(*time));
                encode_float(*value, out);
            }
            Cell::Moments(moments) => {
                out.number(moments.count);
                moments.sum.encode(out);
                moments.squares.encode(out);
            }
            Cell::Values(values) => {
                out.count(values.len());
                values.iter().for_each(|value| encode_float(*value, out));
            }
            Cell::Points(points) => {
                out.count(points.0.len());
                for (time, value) in &points.0 {
                    out.time(Timestamp(*time));
                    encode_float(*value, out);
                }
            }
        }
    }

    /// Reads a cell of the kind of this one.
    pub(super) fn decode(&self, from: &mut Decoder<'_>) -> Result<Cell, DecodeError> {
        Ok(match self {
            Cell::Count(_) => Cell::Count(from.number("a count")?),
            Cell::Sum(_) => Cell::Sum(Sum::decode(from)?),
            Cell::Extreme(_) => Cell::Extreme(decode_float(from)?),
            Cell::Edge(..) => Cell::Edge(from.time("a time")?.0, decode_float(from)?),
            Cell::Moments(_) => Cell::Moments(Box::new(Moments {
                count: from.number("a count")?,
                sum: Sum::decode(from)?,
                squares: Sum::decode(from)?,
            })),
            Cell::Values(_) => {
                let count = from.count(8, "the numbers")?;
                let values: Result<_, _> = (0..count).map(|_| decode_float(from)).collect();
                Cell::Values(values?)
            }
            Cell::Points(_) => {
                let count = from.count(16, "the points")?;
                let points: Result<_, DecodeError> = (0..count)
                    .map(|_| Ok((from.time("a time")?.0, decode_float(from)?)))
                    .collect();
                Cell::Points(Box::new(Points(points?)))
            }
        })
    }

    /// Bytes of the numbers that are kept one by one, beside the cell's own size.
    pub(super) fn numbers_bytes(&self) -> usize {
        match self {
            Cell::Values(values) => size_of_val(&**values),
            Cell::Points(points) => size_of_val(&*points.0),
            _ => 0,
        }
    }

    /// Bytes of the moments, which are beside the cell, too.
    pub(super) fn moments_bytes(&self) -> usize {
        match self {
            Cell::Moments(_) => size_of::<Moments>(),
            _ => 0,
        }
    }
}
