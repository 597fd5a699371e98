//! Which offsets go into which batch. No IO.

use std::ops::Range;

use logpond_segment::sources::Interval;

/// Bytes of lines and fields after which a batch ends: as much as a frame of the journal takes, so that
/// damage costs little.
pub(super) const BATCH_BYTES: usize = 1 << 20;

/// Messages after which a batch ends.
pub(super) const BATCH_MESSAGES: usize = 16_384;

/// A batch to make: these of the messages, which are all that there is of these offsets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    /// Indexes of the messages.
    pub(super) messages: Range<usize>,
    /// The offsets.
    pub(super) run: Interval,
}

/// Cuts messages that were fetched together, which are given by offset (increasing) and size in bytes.
/// All that there is from `next` up to `end` is among them; what is below `next` is passed over. The
/// runs follow each other without a gap from `next` to `end`.
pub(super) fn cut(messages: &[(u64, usize)], next: u64, end: u64) -> Vec<Cut> {
    let mut cuts: Vec<Cut> = Vec::new();
    let mut bytes = 0;
    for (index, &(offset, size)) in messages.iter().enumerate() {
        if offset < next || offset >= end {
            continue;
        }
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
                let from = if cuts.is_empty() { next } else { offset };
                bytes = size;
                cuts.push(Cut {
                    messages: index..index + 1,
                    run: Interval { from, to: offset },
                });
            }
        }
    }
    if let Some(last) = cuts.last_mut() {
        last.run.to = end - 1;
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
            let cuts = cut(&messages, next, end);
            let got: Vec<_> = cuts.into_iter().map(|c| (c.messages, c.run)).collect();
            assert_eq!(got, expected, "{messages:?}");
        }
    }

    proptest! {
        /// However fetches are cut, each message is in one batch, whose run has its offset.
        #[test]
        fn every_message_is_in_one_run(
            gaps in prop::collection::vec((0u64..4, 0usize..BATCH_BYTES), 0..40),
            from in 0u64..60,
            behind in 0u64..5,
        ) {
            let mut offset = 20;
            let messages: Vec<(u64, usize)> = gaps
                .iter()
                .map(|(gap, size)| {
                    offset += gap + 1;
                    (offset, *size)
                })
                .collect();
            let next = 20 + from;
            let end = messages.last().map_or(next, |(last, _)| (last + 1).max(next)) + behind;
            let cuts = cut(&messages, next, end);
            let mut at = next;
            for Cut { messages: range, run } in &cuts {
                prop_assert_eq!(run.from, at);
                at = run.to + 1;
                let offsets = messages[range.clone()].iter().map(|(offset, _)| *offset);
                for offset in offsets {
                    prop_assert!((run.from..=run.to).contains(&offset));
                }
                prop_assert!(range.len() <= BATCH_MESSAGES);
                let bytes: usize = messages[range.clone()].iter().map(|(_, size)| size).sum();
                prop_assert!(range.len() == 1 || bytes <= BATCH_BYTES);
            }
            let taken: Vec<usize> = cuts.iter().flat_map(|c| c.messages.clone()).collect();
            let new = messages.iter().enumerate().filter(|(_, (offset, _))| *offset >= next);
            prop_assert_eq!(taken, new.map(|(index, _)| index).collect::<Vec<_>>());
            prop_assert!(cuts.is_empty() || at == end);
        }
    }
}
