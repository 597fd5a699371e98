//! Which of the files that there are belong into a snapshot. No IO.

use std::collections::BTreeSet;

use logpond_record::{Id, SourceId};
use logpond_segment::compact::{self, Live};
use logpond_segment::sources::SourceSet;

/// What belongs into a snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Choice {
    /// The segments.
    pub(super) segments: BTreeSet<Id>,
    /// The sources that are in their journal files only.
    pub(super) journal: Vec<SourceId>,
    /// All sources that are in it.
    pub(super) sources: SourceSet,
}

/// Chooses segments and closed journal files so that together they hold each source that any of
/// them holds, and hold it once wherever that is possible: inputs of a merge are left out once its
/// output is there, and journal files once a segment holds them.
pub(super) fn choose(closed: &[SourceId], live: &[Live]) -> Choice {
    let segments: BTreeSet<Id> = compact::cover(live).into_iter().collect();
    let counting = live.iter().filter(|segment| segments.contains(&segment.id));
    let mut sources = SourceSet::union_of(counting.map(|segment| &segment.sources));
    let alone = closed.iter().filter(|source| !sources.contains(**source));
    let journal: Vec<SourceId> = alone.copied().collect();
    for source in &journal {
        sources.insert(*source);
    }
    Choice {
        segments,
        journal,
        sources,
    }
}

#[cfg(test)]
mod tests {
    use logpond_record::{Incarnation, Timestamp};
    use proptest::prelude::*;

    use super::*;

    fn source(sequence: u64) -> SourceId {
        SourceId {
            incarnation: Incarnation(1),
            sequence,
        }
    }

    fn live(id: u128, sequences: impl IntoIterator<Item = u64>) -> Live {
        let sources: SourceSet = sequences.into_iter().map(source).collect();
        Live {
            id: Id(id),
            rows: sources.len(),
            sources,
            time_min: Timestamp(0),
            time_max: Timestamp(0),
            received_min: Timestamp(0),
            received_max: Timestamp(0),
            bytes: 1,
            raw_bytes: 1,
            cold: false,
            is_damaged: false,
        }
    }

    #[test]
    fn what_is_in_two_places_is_taken_from_the_wider_one() {
        let segments = [
            live(1, [0, 1]),
            live(2, [2]),
            live(3, [0, 1, 2]),
            live(4, [9]),
        ];
        let choice = choose(&[source(2), source(9), source(10)], &segments);
        assert_eq!(choice.segments, [Id(3), Id(4)].into());
        assert_eq!(choice.journal, [source(10)]);
        assert_eq!(choice.sources.len(), 5);
    }

    proptest! {
        #[test]
        fn nothing_is_left_out(
            closed in prop::collection::btree_set(0u64..30, 0..6),
            segments in prop::collection::vec(prop::collection::vec(0u64..30, 1..6), 0..8),
        ) {
            let closed: Vec<SourceId> = closed.into_iter().map(source).collect();
            let segments: Vec<Live> = segments
                .into_iter()
                .enumerate()
                .map(|(id, sequences)| live(id as u128, sequences))
                .collect();
            let choice = choose(&closed, &segments);
            let mut held = SourceSet::new();
            for segment in segments.iter().filter(|s| choice.segments.contains(&s.id)) {
                held.union_with(&segment.sources);
            }
            for source in &choice.journal {
                prop_assert!(!held.contains(*source));
                held.insert(*source);
            }
            for source in closed.iter().copied().chain(segments.iter().flat_map(|s| s.sources.iter())) {
                prop_assert!(held.contains(source));
            }
            prop_assert_eq!(held, choice.sources);
        }
    }
}
