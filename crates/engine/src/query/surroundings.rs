//! Which parts of a range a search with context has to look at.
//!
//! Matches are found first, as without context. Each needs so many rows before and after it: the
//! times of the row groups around it tell how far these can lie, so that the rest is not read.
//!
//! Invariant: between the ends of a range that is looked at and each of its matches lie more rows
//! than the context shows, or there are no more. So rows left out between two ranges are noticed
//! as a gap.

use logpond_record::{TimeRange, Timestamp};
use logpond_search::order::Direction;

use super::QueryError;

/// Matches whose surroundings are worked out; behind the last of them everything is looked at.
/// When there are so many, their surroundings are a large part of all rows anyway.
pub(super) const MATCHES_MAX: usize = 10_000;

/// Row groups whose times are kept, 8 bytes a row: neighbouring matches need the same ones.
const KEPT_GROUPS_MAX: usize = 4;

/// The size and the direction of the context of a match.
#[derive(Clone, Copy)]
pub(super) struct ContextWindow {
    /// Rows that the context shows, before or after a match.
    pub(super) rows: usize,
    /// The range of the search.
    pub(super) range: TimeRange,
    /// Its order.
    pub(super) direction: Direction,
}

/// Works out the context of matches from row groups; `read` gives the times of one in their order.
pub(super) struct ContextRows<R> {
    wanted: ContextWindow,
    /// The earliest and the latest time of each row group.
    groups: Vec<(Timestamp, Timestamp)>,
    read: R,
    /// Times of row groups by their index, the last one used last.
    kept: Vec<(usize, Vec<Timestamp>)>,
}

impl<R: FnMut(usize) -> Result<Vec<Timestamp>, QueryError>> ContextRows<R> {
    pub(super) fn new(wanted: ContextWindow, groups: Vec<(Timestamp, Timestamp)>, read: R) -> Self {
        ContextRows {
            wanted,
            groups,
            read,
            kept: Vec::new(),
        }
    }

    /// The ranges to look at for these matches, which are in the order of the search and all there
    /// are unless there are [`MATCHES_MAX`].
    pub(super) fn of(&mut self, matches: &[Timestamp]) -> Result<Vec<TimeRange>, QueryError> {
        // One more than is shown, see the invariant.
        let rows = self.wanted.rows + 1;
        let mut ranges: Vec<TimeRange> = Vec::new();
        let mut times = matches.to_vec();
        times.sort_unstable();
        times.dedup();
        for time in times {
            let from = self.bound(time, rows, Direction::Backward)?;
            let to = self.bound(time, rows, Direction::Forward)?;
            ranges.push(TimeRange { from, to });
        }
        if matches.len() >= MATCHES_MAX
            && let Some(last) = matches.last()
        {
            let TimeRange { from, to } = self.wanted.range;
            ranges.push(match self.wanted.direction {
                Direction::Forward => TimeRange { from: *last, to },
                Direction::Backward => TimeRange {
                    from,
                    to: last.saturating_add(1),
                },
            });
        }
        Ok(merged(ranges))
    }

    /// How far from `time` one has to go to meet so many rows of other times, at most: the earliest
    /// time, or the time behind the latest one.
    fn bound(
        &mut self,
        time: Timestamp,
        rows: usize,
        direction: Direction,
    ) -> Result<Timestamp, QueryError> {
        let range = self.wanted.range;
        let is_before = direction == Direction::Backward;
        let mut near: Vec<usize> = (0..self.groups.len())
            .filter(|at| {
                let (min, max) = self.groups[*at];
                if is_before {
                    min < time && max >= range.from
                } else {
                    max > time && min < range.to
                }
            })
            .collect();
        if is_before {
            near.sort_by_key(|at| std::cmp::Reverse(self.groups[*at].1))
        } else {
            near.sort_by_key(|at| self.groups[*at].0)
        }
        let mut missing = rows;
        let mut bound = time;
        for at in near {
            let times = self.times(at)?;
            let (count, found) = if is_before {
                let count = times.partition_point(|t| *t < time);
                (count, count.checked_sub(missing).map(|i| times[i]))
            } else {
                let first = times.partition_point(|t| *t <= time);
                let found = times.get(first + missing - 1).copied();
                (times.len() - first, found)
            };
            let reached = found.or(if is_before {
                times.first()
            } else {
                times.last()
            }
            .copied());
            if let Some(reached) = reached {
                bound = if is_before {
                    bound.min(reached)
                } else {
                    bound.max(reached)
                };
            }
            if found.is_some() {
                return Ok(if is_before {
                    bound
                } else {
                    bound.saturating_add(1)
                });
            }
            missing -= count;
        }
        Ok(if is_before { range.from } else { range.to })
    }

    fn times(&mut self, at: usize) -> Result<&[Timestamp], QueryError> {
        let known = self.kept.iter().position(|(known, _)| *known == at);
        let entry = match known {
            Some(place) => self.kept.remove(place),
            None => {
                if self.kept.len() >= KEPT_GROUPS_MAX {
                    self.kept.remove(0);
                }
                (at, (self.read)(at)?)
            }
        };
        self.kept.push(entry);
        Ok(self.kept.last().map_or(&[], |(_, times)| times))
    }
}

/// The union of ranges, in order and without overlaps.
fn merged(mut ranges: Vec<TimeRange>) -> Vec<TimeRange> {
    ranges.sort_by_key(|range| range.from);
    let mut out: Vec<TimeRange> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match out.last_mut() {
            Some(last) if range.from <= last.to => last.to = last.to.max(range.to),
            _ => out.push(range),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn times_of(group: &[i64]) -> Vec<Timestamp> {
        let mut times: Vec<_> = group.iter().map(|t| Timestamp(*t)).collect();
        times.sort_unstable();
        times
    }

    proptest! {
        #[test]
        fn enough_rows_or_all_of_them_are_around_every_match(
            groups in prop::collection::vec(prop::collection::vec(0i64..200, 1..30), 0..8),
            matches in prop::collection::vec(0i64..200, 0..4),
            rows in 0usize..6,
            from in 0i64..100,
            length in 0i64..200,
        ) {
            let groups: Vec<_> = groups.iter().map(|group| times_of(group)).collect();
            let range = TimeRange { from: Timestamp(from), to: Timestamp(from + length) };
            let matches: Vec<_> = matches.iter().map(|t| Timestamp(*t)).collect();
            let matches: Vec<_> = matches.into_iter().filter(|t| range.contains(*t)).collect();
            let bounds = groups.iter().map(|g| (g[0], g[g.len() - 1])).collect();
            let wanted = ContextWindow { rows, range, direction: Direction::Forward };
            let read = |at: usize| Ok(groups[at].clone());
            let found = ContextRows::new(wanted, bounds, read).of(&matches).unwrap();
            prop_assert!(found.windows(2).all(|pair| pair[0].to < pair[1].from));
            let all = || groups.iter().flatten().filter(|t| range.contains(**t));
            for time in matches {
                let around = found.iter().find(|range| range.contains(time)).unwrap();
                let before = all().filter(|t| **t < time).count();
                let seen = all().filter(|t| **t < time && around.contains(**t)).count();
                prop_assert!(seen >= before.min(rows + 1), "{seen} of {before} before {time}");
                let after = all().filter(|t| **t > time).count();
                let seen = all().filter(|t| **t > time && around.contains(**t)).count();
                prop_assert!(seen >= after.min(rows + 1), "{seen} of {after} after {time}");
            }
        }
    }

    #[test]
    fn what_is_far_away_is_not_read() {
        let groups = (0..100).map(|g| (Timestamp(g * 1000), Timestamp(g * 1000 + 999)));
        let groups: Vec<_> = groups.collect();
        let mut reads = Vec::new();
        let read = |at: usize| {
            reads.push(at);
            Ok((0..1000).map(|n| Timestamp(at as i64 * 1000 + n)).collect())
        };
        let range = TimeRange {
            from: Timestamp(0),
            to: Timestamp(100_000),
        };
        let wanted = ContextWindow {
            rows: 2,
            range,
            direction: Direction::Forward,
        };
        let matches = [Timestamp(41_500), Timestamp(70_001)];
        let found = ContextRows::new(wanted, groups, read).of(&matches).unwrap();
        let ranges: Vec<_> = found.iter().map(|r| (r.from.0, r.to.0)).collect();
        assert_eq!(ranges, [(41_497, 41_504), (69_998, 70_005)]);
        assert_eq!(reads, [41, 70, 69]);
    }

    #[test]
    fn behind_too_many_matches_everything_is_looked_at() {
        let range = TimeRange {
            from: Timestamp(0),
            to: Timestamp(100_000),
        };
        let matches: Vec<_> = (0..MATCHES_MAX as i64)
            .map(|t| Timestamp(50_000 - t))
            .collect();
        let wanted = ContextWindow {
            rows: 1,
            range,
            direction: Direction::Backward,
        };
        let groups = vec![(Timestamp(0), Timestamp(99_999))];
        let read = |_| Ok((0..100_000).map(Timestamp).collect());
        let found = ContextRows::new(wanted, groups, read).of(&matches).unwrap();
        let ranges: Vec<_> = found.iter().map(|r| (r.from.0, r.to.0)).collect();
        assert_eq!(ranges, [(0, 50_003)]);
    }
}
