//! Which offsets are to be read, and which go into which batch. No IO.

use std::ops::Range;

use logpond_segment::sources::Interval;

/// Bytes of lines and fields after which a batch ends: as much as a frame of the journal takes, so that
/// damage costs little.
pub(super) const BATCH_BYTES: usize = 1 << 20;

/// Messages after which a batch ends.
pub(super) const BATCH_MESSAGES: usize = 16_384;

/// A batch to make: these of the messages, which are all that there is of these offsets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BatchSlice {
    /// Indexes of the messages.
    pub(super) messages: Range<usize>,
    /// The offsets.
    pub(super) run: Interval,
}

/// The place at which reading of a partition resumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ResumePoint {
    /// The first offset that is not held.
    pub(super) next: u64,
    /// Behind all that was ever read. If this is greater there are holes: what only a node had that is
    /// lost, what has expired, and what Kafka had nothing of.
    pub(super) behind: u64,
}

/// Where reading goes on of a partition of which these runs are held and that was read so far on this
/// node; nothing if nobody ever read it. What is before the oldest run has expired, or was never read.
pub(super) fn place(held: &[Interval], noted: Option<u64>) -> Option<ResumePoint> {
    let oldest = held.first().map(|run| run.from);
    let newest = held.last().map(|run| run.to.saturating_add(1));
    let next = first_missing(held, oldest.max(noted)?);
    Some(ResumePoint {
        next,
        behind: newest.max(noted)?,
    })
}

/// The first number that is not in any of some runs, from one on.
pub(super) fn first_missing(held: &[Interval], from: u64) -> u64 {
    let first = held.partition_point(|run| run.to < from);
    match held.get(first) {
        Some(run) if run.from <= from => run.to.saturating_add(1),
        _ => from,
    }
}

/// The numbers from one on up to another that are in none of some runs.
pub(super) fn gaps(held: &[Interval], from: u64, end: u64) -> Vec<Interval> {
    let first = held.partition_point(|run| run.to < from);
    let (mut at, mut gaps) = (from, Vec::new());
    for run in held[first..].iter().take_while(|run| run.from < end) {
        if run.from > at {
            let (from, to) = (at, run.from - 1);
            gaps.push(Interval { from, to });
        }
        at = run.to.saturating_add(1);
    }
    if at < end {
        let (from, to) = (at, end - 1);
        gaps.push(Interval { from, to });
    }
    gaps
}

/// Cuts messages that were fetched together, which are given by offset (increasing) and size in bytes.
/// All that there is in some gaps is among them; others are passed over. The runs of a gap follow each
/// other from its first number to its last.
pub(super) fn cut(messages: &[(u64, usize)], gaps: &[Interval]) -> Vec<BatchSlice> {
    gaps.iter()
        .flat_map(|gap| cut_gap(messages, *gap))
        .collect()
}

fn cut_gap(messages: &[(u64, usize)], gap: Interval) -> Vec<BatchSlice> {
    let mut cuts: Vec<BatchSlice> = Vec::new();
    let mut bytes = 0;
    let first = messages.partition_point(|(offset, _)| *offset < gap.from);
    let in_gap = messages[first..].iter();
    let in_gap = in_gap.take_while(|(offset, _)| *offset <= gap.to);
    for (index, &(offset, size)) in (first..).zip(in_gap) {
        bytes += size;
        match cuts.last_mut() {
            Some(last) if bytes <= BATCH_BYTES && last.messages.len() < BATCH_MESSAGES => {
                last.messages.end = index + 1;
                last.run.to = offset;
            }
            last => {
                // Numbers without messages before this one belong to the batch before.
                if let Some(last) = last {
                    last.run.to = offset - 1;
                }
                let from = if cuts.is_empty() { gap.from } else { offset };
                bytes = size;
                cuts.push(BatchSlice {
                    messages: index..index + 1,
                    run: Interval { from, to: offset },
                });
            }
        }
    }
    if let Some(last) = cuts.last_mut() {
        last.run.to = gap.to;
    }
    cuts
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn interval(from: u64, to: u64) -> Interval {
        Interval { from, to }
    }

    #[test]
    fn runs_follow_each_other() {
        let cases = [
            // Nothing, nothing new, nothing but holes: a position is moved without a batch.
            (vec![], 5, 5, vec![]),
            (vec![(3, 1), (4, 1)], 5, 5, vec![]),
            (vec![], 5, 9, vec![]),
            // Holes before, between and behind.
            (vec![(7, 1), (9, 1)], 5, 12, vec![(0..2, interval(5, 11))]),
            // What is known is passed over.
            (
                vec![(3, 1), (4, 1), (5, 1)],
                5,
                6,
                vec![(2..3, interval(5, 5))],
            ),
            // A large message has a batch to itself; the hole behind it is in it.
            (
                vec![(0, 10), (1, 2 * BATCH_BYTES), (4, 10)],
                0,
                5,
                vec![
                    (0..1, interval(0, 0)),
                    (1..2, interval(1, 3)),
                    (2..3, interval(4, 4)),
                ],
            ),
        ];
        for (messages, next, end, expected) in cases {
            let cuts = cut(&messages, &gaps(&[], next, end));
            let got: Vec<_> = cuts.into_iter().map(|c| (c.messages, c.run)).collect();
            assert_eq!(got, expected, "{messages:?}");
        }
    }

    #[test]
    fn reading_goes_on_at_the_first_hole() {
        let held = [interval(10, 19), interval(30, 39)];
        // What is held, what was noted, the first hole, and behind all.
        let cases: [(&[_], _, _); 8] = [
            (&[], None, None),
            (&[], Some(7), Some((7, 7))),
            (&held[..1], None, Some((20, 20))),
            (&held, None, Some((20, 40))),
            // Never before the oldest, which others may have noted: what is missing there has expired.
            (&held, Some(5), Some((20, 40))),
            // What this node has read is no hole.
            (&held, Some(25), Some((25, 40))),
            (&held, Some(30), Some((40, 40))),
            (&held, Some(50), Some((50, 50))),
        ];
        for (held, noted, expected) in cases {
            let expected = expected.map(|(next, behind)| ResumePoint { next, behind });
            assert_eq!(place(held, noted), expected, "{held:?} {noted:?}");
        }
    }

    #[test]
    fn what_is_held_is_passed_over() {
        let held = [interval(3, 5), interval(8, 8)];
        let found = gaps(&held, 4, 12);
        assert_eq!(found, [interval(6, 7), interval(9, 11)]);
        assert_eq!(gaps(&held, 3, 6), []);
        assert_eq!(gaps(&held, 8, 8), []);
        let messages: Vec<_> = (4..12).map(|offset| (offset, 1)).collect();
        let cuts = cut(&messages, &found);
        let got: Vec<_> = cuts.into_iter().map(|c| (c.messages, c.run)).collect();
        assert_eq!(got, [(2..4, interval(6, 7)), (5..8, interval(9, 11))]);
        // A hole that Kafka has nothing of makes no batch.
        assert_eq!(cut(&[(4, 1)], &[interval(6, 7)]), []);
    }

    proptest! {
        /// However fetches are cut, each message that is not held is in one batch, whose run has its
        /// offset and nothing that is held.
        #[test]
        fn every_message_is_in_one_run(
            distances in prop::collection::vec((0u64..4, 0usize..BATCH_BYTES), 0..40),
            runs in prop::collection::vec((1u64..20, 0u64..20), 0..4),
            from in 0u64..60,
            behind in 0u64..5,
        ) {
            let mut offset = 20;
            let messages: Vec<(u64, usize)> = distances
                .iter()
                .map(|(distance, size)| {
                    offset += distance + 1;
                    (offset, *size)
                })
                .collect();
            let mut at = 20;
            let held: Vec<Interval> = runs
                .iter()
                .map(|(before, more)| {
                    let from = at + before;
                    at = from + more + 1;
                    interval(from, at - 1)
                })
                .collect();
            let is_held = |offset: u64| held.iter().any(|run| (run.from..=run.to).contains(&offset));
            let next = 20 + from;
            let end = messages.last().map_or(next, |(last, _)| (last + 1).max(next)) + behind;
            let gaps = gaps(&held, next, end);
            let missing: Vec<u64> = gaps.iter().flat_map(|gap| gap.from..=gap.to).collect();
            prop_assert_eq!(missing, (next..end).filter(|n| !is_held(*n)).collect::<Vec<_>>());
            prop_assert_eq!(first_missing(&held, next), (next..).find(|n| !is_held(*n)).unwrap());
            let cuts = cut(&messages, &gaps);
            let mut covered: Vec<u64> = Vec::new();
            for BatchSlice { messages: range, run } in &cuts {
                covered.extend(run.from..=run.to);
                let offsets = messages[range.clone()].iter().map(|(offset, _)| *offset);
                for offset in offsets {
                    prop_assert!((run.from..=run.to).contains(&offset));
                }
                prop_assert!(range.len() <= BATCH_MESSAGES);
                let bytes: usize = messages[range.clone()].iter().map(|(_, size)| size).sum();
                prop_assert!(range.len() == 1 || bytes <= BATCH_BYTES);
            }
            let has_message = |gap: &&Interval| messages.iter().any(|(n, _)| (gap.from..=gap.to).contains(n));
            let expected: Vec<u64> = gaps.iter().filter(has_message).flat_map(|gap| gap.from..=gap.to).collect();
            prop_assert_eq!(covered, expected);
            let taken: Vec<usize> = cuts.iter().flat_map(|c| c.messages.clone()).collect();
            let new = messages.iter().enumerate().filter(|(_, (offset, _))| *offset >= next && !is_held(*offset));
            prop_assert_eq!(taken, new.map(|(index, _)| index).collect::<Vec<_>>());
        }
    }
}
