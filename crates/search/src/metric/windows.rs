//! The instants of a query, and the pieces of time between the ends of their windows.

use std::fmt;

use logpond_record::{TimeRange, Timestamp, cast};

/// The most instants of a query, as Loki has it; more than any screen has columns.
pub const STEPS_MAX: u64 = 11_000;

/// The instants for which numbers are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// The first one, in nanoseconds since the epoch.
    pub start_ns: i64,
    /// How far apart they are, in nanoseconds. Invariant: above zero.
    pub step_ns: i64,
    /// How many. Invariant: from 1 to [`STEPS_MAX`] + 1.
    pub count: u64,
}

/// Why there are no such instants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowError {
    /// The end is before the start.
    Backwards,
    /// The step is not above zero.
    Step,
    /// There would be more than [`STEPS_MAX`].
    TooMany,
}

impl fmt::Display for WindowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WindowError::Backwards => f.write_str("the end is before the start"),
            WindowError::Step => f.write_str("the step must be longer than nothing"),
            WindowError::TooMany => f.write_str(
                "exceeded maximum resolution of 11,000 points per time series: take a longer step",
            ),
        }
    }
}

impl std::error::Error for WindowError {}

impl Times {
    /// One instant.
    pub fn instant(at: Timestamp) -> Times {
        Times {
            start_ns: at.0,
            step_ns: 1,
            count: 1,
        }
    }

    /// From a start in steps up to an end, which counts if a step ends there.
    ///
    /// # Errors
    /// See [`WindowError`].
    pub fn range(start: Timestamp, end: Timestamp, step_ns: i64) -> Result<Times, WindowError> {
        if step_ns <= 0 {
            return Err(WindowError::Step);
        }
        let span = i128::from(end.0) - i128::from(start.0);
        if span < 0 {
            return Err(WindowError::Backwards);
        }
        let steps = span / i128::from(step_ns);
        if steps > i128::from(STEPS_MAX) {
            return Err(WindowError::TooMany);
        }
        Ok(Times {
            start_ns: start.0,
            step_ns,
            count: cast::low_u64(steps) + 1,
        })
    }

    /// The instant of this number.
    pub fn at(&self, number: u64) -> i64 {
        let behind = self.step_ns.saturating_mul(cast::signed(number));
        self.start_ns.saturating_add(behind)
    }
}

/// What stands for a piece where there is none.
pub(super) const NO_PIECE: u32 = u32::MAX;

/// The pieces of time between the ends of windows. A window is a run of pieces, and a piece is in a
/// window as a whole or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Windows {
    times: Times,
    range_ns: i64,
    offset_ns: i64,
    /// All ends of windows, in order, each once; piece `n` is behind the end `n`, up to the next.
    ends: Vec<i64>,
}

impl Windows {
    pub(super) fn new(times: Times, range_ns: i64, offset_ns: i64) -> Windows {
        let mut windows = Windows {
            times,
            range_ns,
            offset_ns,
            ends: Vec::new(),
        };
        let mut ends: Vec<i64> = (0..times.count)
            .flat_map(|number| {
                let (from, to) = windows.bounds(number);
                [from, to]
            })
            .collect();
        ends.sort_unstable();
        ends.dedup();
        windows.ends = ends;
        windows
    }

    /// A window: what is behind the first time, up to the second.
    pub(super) fn bounds(&self, number: u64) -> (i64, i64) {
        let to = self.times.at(number).saturating_sub(self.offset_ns);
        (to.saturating_sub(self.range_ns), to)
    }

    /// The times that lie in any window, and perhaps some between.
    pub(super) fn range(&self) -> TimeRange {
        let (from, _) = self.bounds(0);
        let (_, to) = self.bounds(self.times.count - 1);
        TimeRange {
            from: Timestamp(from.saturating_add(1)),
            to: Timestamp(to.saturating_add(1)),
        }
    }

    /// The piece that a time lies in, if it is one of a window.
    pub(super) fn piece_of(&self, time_ns: i64) -> Option<u32> {
        let after = self.ends.partition_point(|end| *end < time_ns);
        let piece = after.checked_sub(1).filter(|_| after < self.ends.len())?;
        // Between windows that are shorter than the steps.
        let is_in = self.range_ns >= self.times.step_ns || {
            let behind = self.ends[after].saturating_sub(self.bounds(0).1);
            behind.rem_euclid(self.times.step_ns) == 0
        };
        (is_in || self.times.count == 1).then_some(cast::low_u32(piece))
    }

    /// The end that a piece is behind.
    pub(super) fn start_of(&self, piece: u32) -> i64 {
        self.ends.get(piece as usize).copied().unwrap_or(i64::MIN)
    }

    /// What the pieces of times from one to another depend on: where it is the same, the pieces are. `None`
    /// near the ends of the first and the last window, where pieces are longer.
    pub(super) fn grid(&self, from: i64, to: i64) -> Option<[i64; 3]> {
        if self.piece_of_span(from, to).is_some() {
            return Some([0; 3]);
        }
        let (first_from, first_to) = self.bounds(0);
        let (last_from, last_to) = self.bounds(self.times.count - 1);
        let step = self.times.step_ns;
        let rest = self.range_ns % step;
        // Both ends of windows fall on the same instants and leave none out between, or each on its own.
        let is_one_row = rest == 0 && self.times.count >= (self.range_ns / step).unsigned_abs();
        let is_whole = if is_one_row {
            first_from < from && to <= last_to
        } else {
            first_to < from && to <= last_from
        };
        is_whole.then_some([step, first_to.rem_euclid(step), rest])
    }

    /// The piece that all times from one to another lie in, if there is one.
    pub(super) fn piece_of_span(&self, from: i64, to: i64) -> Option<u32> {
        let piece = self.piece_of(from)?;
        (self.piece_of(to) == Some(piece)).then_some(piece)
    }

    /// The pieces that times lie in, [`NO_PIECE`] for those that are in no window. Times near each other
    /// cost least.
    pub(super) fn pieces_of(&self, times: impl Iterator<Item = i64>) -> Vec<u32> {
        let mut last = (i64::MAX, i64::MIN, NO_PIECE);
        let piece = |time: i64| {
            if !(last.0 < time && time <= last.1) {
                last = match self.piece_of(time) {
                    Some(piece) => {
                        let at = piece as usize;
                        (self.ends[at], self.ends[at + 1], piece)
                    }
                    None => (i64::MAX, i64::MIN, NO_PIECE),
                };
            }
            last.2
        };
        times.map(piece).collect()
    }

    /// The pieces of a window: from one up to before another.
    pub(super) fn pieces(&self, number: u64) -> (u32, u32) {
        let (from, to) = self.bounds(number);
        let place = |time: i64| cast::low_u32(self.ends.partition_point(|end| *end < time));
        (place(from), place(to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn pieces_are_windows(
            start in -50i64..50,
            step in 1i64..20,
            count in 1u64..12,
            range in 1i64..60,
            offset in -30i64..30,
            time in -200i64..300,
        ) {
            let times = Times { start_ns: start, step_ns: step, count };
            let windows = Windows::new(times, range, offset);
            let piece = windows.piece_of(time);
            let mut is_in_any = false;
            for number in 0..count {
                let at = start + step * number as i64 - offset;
                let is_in = at - range < time && time <= at;
                is_in_any |= is_in;
                let (from, to) = windows.pieces(number);
                let found = piece.is_some_and(|piece| (from..to).contains(&piece));
                prop_assert_eq!(found, is_in, "{} {:?}", number, piece);
            }
            prop_assert_eq!(piece.is_some(), is_in_any);
            let near = [time, time + 1, time - 2, time];
            let pieces = windows.pieces_of(near.into_iter());
            let one_by_one = near.map(|time| windows.piece_of(time).unwrap_or(NO_PIECE));
            prop_assert_eq!(&pieces, &one_by_one);
            // Where the grid is the same, the same times are in one piece.
            let later = Times { start_ns: start + step * 2, count: count + 3, ..times };
            let later = Windows::new(later, range, offset);
            if let (Some(a), Some(b)) = (windows.grid(time - 2, time + 1), later.grid(time - 2, time + 1))
                && a == b
            {
                let starts = |windows: &Windows| {
                    let pieces = windows.pieces_of(near.into_iter()).into_iter();
                    let place = |piece| match (piece, a) {
                        (NO_PIECE, _) => None,
                        (_, [0, ..]) => Some(0),
                        (piece, _) => Some(windows.start_of(piece)),
                    };
                    pieces.map(place).collect::<Vec<_>>()
                };
                prop_assert_eq!(starts(&windows), starts(&later));
            }
            let all = windows.piece_of_span(time - 2, time + 1);
            prop_assert!(all.is_none_or(|all| pieces.iter().all(|piece| *piece == all)));
            prop_assert!(!is_in_any || windows.range().contains(Timestamp(time)));
        }
    }

    #[test]
    fn instants_are_bounded() {
        let range = |end, step| Times::range(Timestamp(0), Timestamp(end), step);
        assert_eq!(range(10, 0), Err(WindowError::Step));
        assert_eq!(range(-1, 1), Err(WindowError::Backwards));
        assert_eq!(range(11_001, 1), Err(WindowError::TooMany));
        assert_eq!(range(11_000, 1).unwrap().count, 11_001);
        assert_eq!(range(10, 3).unwrap().count, 4);
    }
}
