//! Tables, and plans carried out on a model of the store.

use logpond_record::{Incarnation, SourceId};
use proptest::prelude::*;

use super::*;

const DAY: i64 = 86_400_000_000_000;

const SETTINGS: Settings = Settings {
    target_raw_bytes: 1 << 20,
    fan_in_min: 4,
    fan_in_max: 8,
    pack_in_max: 64,
    bucket_ns: DAY,
    cold_age_ns: DAY,
};

fn sources(list: impl IntoIterator<Item = u64>) -> SourceSet {
    let source = |sequence| SourceId {
        incarnation: Incarnation(1),
        sequence,
    };
    list.into_iter().map(source).collect()
}

fn live(id: u128, list: impl IntoIterator<Item = u64>, received: i64, raw_bytes: u64) -> Live {
    Live {
        id: Id(id),
        sources: sources(list),
        time_min: Timestamp(received),
        time_max: Timestamp(received),
        received_min: Timestamp(received),
        received_max: Timestamp(received),
        rows: 1 + raw_bytes / 100,
        bytes: raw_bytes / 10,
        raw_bytes,
        cold: false,
        is_damaged: false,
    }
}

fn merge_of(ids: &[u128], cold: bool, shared: bool) -> Job {
    Job::Merge {
        inputs: ids.iter().map(|id| Id(*id)).collect(),
        cold,
        shared,
    }
}

#[test]
fn an_output_beside_its_inputs_retires_them() {
    // As found after a crash between writing the output and retiring the inputs.
    let segments = [
        live(1, [0], 0, 100),
        live(2, [1], 1, 100),
        live(3, [0, 1], 0, 200),
    ];
    let expected = [Job::Retire(Id(1)), Job::Retire(Id(2))];
    assert_eq!(plan(&segments, Timestamp(10), &SETTINGS), expected);
    assert!(is_covered(Id(1), &segments));
    assert!(!is_covered(Id(3), &segments[1..]));
    assert!(is_covered(Id(3), &segments));
    assert!(!is_covered(Id(9), &segments));
}

#[test]
fn of_equal_segments_one_stays() {
    let segments = [live(1, [0], 0, 100), live(2, [0], 0, 100)];
    assert_eq!(
        plan(&segments, Timestamp(10), &SETTINGS),
        [Job::Retire(Id(1))]
    );
}

#[test]
fn what_counts_lists_every_source_once_where_that_is_possible() {
    let table: &[(&[&[u64]], &[u128])] = &[
        (&[], &[]),
        (&[&[0], &[1]], &[0, 1]),
        // A merge and its inputs, also merged again.
        (&[&[0], &[1], &[0, 1]], &[2]),
        (&[&[0], &[1], &[2], &[0, 1], &[0, 1, 2]], &[4]),
        // Equal ones: the newest.
        (&[&[0], &[0], &[0]], &[2]),
        // Two merges that share an input: one of them, and the rest from elsewhere.
        (&[&[0], &[1], &[2], &[0, 1], &[1, 2]], &[0, 4]),
        // Without that rest both count, until they are merged.
        (&[&[0, 1], &[1, 2]], &[0, 1]),
    ];
    for (sets, expected) in table {
        let live: Vec<Live> = sets
            .iter()
            .enumerate()
            .map(|(id, list)| live(id as u128, list.iter().copied(), 0, 100))
            .collect();
        let expected: Vec<Id> = expected.iter().map(|id| Id(*id)).collect();
        assert_eq!(cover(&live), expected, "{sets:?}");
    }
}

#[test]
fn a_sound_segment_counts_before_a_damaged_one() {
    let damaged = |segment: Live| Live {
        is_damaged: true,
        ..segment
    };
    // An output that rotted beside its inputs.
    let segments = [
        live(1, [0], 0, 100),
        live(2, [1], 1, 100),
        damaged(live(3, [0, 1], 0, 200)),
    ];
    assert_eq!(cover(&segments), [Id(1), Id(2)]);
    assert!(is_covered(Id(3), &segments) && !is_covered(Id(1), &segments));
    let jobs = plan(&segments, Timestamp(10), &SETTINGS);
    assert_eq!(jobs, [Job::Retire(Id(3))]);
    // A source that only the damaged one lists is read from there.
    assert_eq!(cover(&segments[1..]), [Id(2), Id(3)]);
    // Of two damaged ones nothing is given up.
    let both = [damaged(live(1, [0], 0, 100)), damaged(live(2, [0], 0, 100))];
    assert_eq!(plan(&both, Timestamp(10), &SETTINGS), []);
}

proptest! {
    /// Whatever is live: no source is lost, and what is left out is covered.
    #[test]
    fn what_counts_loses_no_source(sets in prop::collection::vec(prop::collection::btree_set(0u64..12, 0..6), 0..10)) {
        let live: Vec<Live> = sets
            .iter()
            .enumerate()
            .map(|(id, list)| live(id as u128, list.iter().copied(), 0, 100))
            .collect();
        let counting = cover(&live);
        let (kept, left): (Vec<&Live>, Vec<&Live>) =
            live.iter().partition(|segment| counting.contains(&segment.id));
        for segment in left {
            prop_assert!(covers(kept.iter().copied(), &segment.sources));
        }
    }

    /// Merges of merges, with any of them and of their inputs still there.
    #[test]
    fn merges_and_their_inputs_count_once(
        joins in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..8),
        gone in prop::collection::vec(any::<bool>(), 24),
    ) {
        let mut roots: Vec<Vec<u64>> = (0..8).map(|source| vec![source]).collect();
        let mut all = roots.clone();
        for (a, b) in joins {
            if roots.len() > 1 {
                let first = roots.swap_remove(a.index(roots.len()));
                let at = b.index(roots.len());
                roots[at].extend(first);
                all.push(roots[at].clone());
            }
        }
        let there = all.iter().enumerate().filter(|(at, _)| !gone[*at]);
        let live: Vec<Live> = there
            .map(|(id, list)| live(id as u128, list.iter().copied(), 0, 100))
            .collect();
        let mut counted = SourceSet::new();
        let counting = cover(&live);
        for segment in live.iter().filter(|segment| counting.contains(&segment.id)) {
            prop_assert!(counted.is_disjoint(&segment.sources));
            counted.union_with(&segment.sources);
        }
        prop_assert!(live.iter().all(|segment| counted.contains_all(&segment.sources)));
    }
}

#[test]
fn segments_that_share_a_source_become_one() {
    let segments = [
        live(1, [0, 1], 5, 100),
        live(2, [1, 2], 3, 100),
        live(3, [3], 4, 100),
    ];
    let expected = [merge_of(&[2, 1], false, true)];
    assert_eq!(plan(&segments, Timestamp(10), &SETTINGS), expected);
}

#[test]
fn neighbours_of_a_tier_are_merged_while_the_bucket_fills() {
    let mut segments: Vec<Live> = (0..4)
        .map(|i| live(i, [i as u64], i as i64, 2000))
        .collect();
    segments.push(live(9, [9], 2, 90_000));
    let expected = [merge_of(&[0, 1, 2, 3], false, false)];
    assert_eq!(plan(&segments, Timestamp(10), &SETTINGS), expected);
    assert_eq!(plan(&segments[1..], Timestamp(10), &SETTINGS), []);
    let large: Vec<Live> = (0..5)
        .map(|i| live(i, [i as u64], i as i64, 300_000))
        .collect();
    assert_eq!(
        plan(&large, Timestamp(10), &SETTINGS),
        [],
        "four are more than the target"
    );
}

#[test]
fn what_is_left_is_packed_when_the_bucket_is_over() {
    let segments = [
        live(1, [1], 1, 600_000),
        live(2, [2], 2, 300_000),
        live(3, [3], 3, 300_000),
        live(4, [4], DAY, 100),
    ];
    let expected = [merge_of(&[1, 2], false, false)];
    assert_eq!(plan(&segments, Timestamp(DAY), &SETTINGS), expected);
    // A day later it is cold as well: one rewriting for both.
    let expected = [merge_of(&[1, 2], true, false), merge_of(&[3], true, false)];
    assert_eq!(plan(&segments, Timestamp(DAY + 3), &SETTINGS), expected);
    // All at once, on request.
    let expected = [
        merge_of(&[1, 2], true, false),
        merge_of(&[3], true, false),
        merge_of(&[4], true, false),
    ];
    assert_eq!(plan_all(&segments, true, &SETTINGS), expected);
    assert_eq!(
        plan_all(&segments, false, &SETTINGS),
        [merge_of(&[1, 2], false, false)]
    );
}

/// Carries out a plan; gives the raw bytes that were written.
fn carry_out(jobs: &[Job], segments: &mut Vec<Live>, next_id: &mut u128) -> u64 {
    let mut written = 0;
    for job in jobs {
        match job {
            Job::Retire(id) => {
                assert!(is_covered(*id, segments));
                segments.retain(|segment| segment.id != *id);
            }
            Job::Merge {
                inputs,
                cold,
                shared,
            } => {
                let position = |id: &Id| segments.iter().position(|s| s.id == *id).expect("live");
                let taken: Vec<Live> = inputs
                    .iter()
                    .map(|id| segments[position(id)].clone())
                    .collect();
                segments.retain(|segment| !inputs.contains(&segment.id));
                assert!(taken.iter().map(|s| s.time_min).is_sorted());
                let mut merged = taken[0].clone();
                merged.id = Id(*next_id);
                *next_id += 1;
                merged.cold = *cold;
                for input in &taken[1..] {
                    assert!(*shared || merged.sources.is_disjoint(&input.sources));
                    merged.sources.union_with(&input.sources);
                    merged.time_max = merged.time_max.max(input.time_max);
                    merged.received_min = merged.received_min.min(input.received_min);
                    merged.received_max = merged.received_max.max(input.received_max);
                    merged.rows += input.rows;
                    merged.raw_bytes += input.raw_bytes;
                }
                written += merged.raw_bytes;
                segments.push(merged);
            }
        }
    }
    written
}

fn all_sources(segments: &[Live]) -> SourceSet {
    let mut all = SourceSet::new();
    segments
        .iter()
        .for_each(|segment| all.union_with(&segment.sources));
    all
}

#[test]
fn rewriting_is_bounded_by_the_number_of_tiers() {
    let (mut segments, mut next_id) = (Vec::new(), 1_000_000);
    let (mut ingested, mut written, mut most) = (0, 0, 0);
    // Three days of small segments, one every 90 seconds.
    for step in 0..2880u64 {
        let now = step as i64 * 90_000_000_000;
        segments.push(live(u128::from(step), [step], now, 1500));
        ingested += 1500;
        let jobs = plan(&segments, Timestamp(now), &SETTINGS);
        written += carry_out(&jobs, &mut segments, &mut next_id);
        most = most.max(segments.len());
    }
    let later = Timestamp(10 * DAY);
    for _ in 0..3 {
        let jobs = plan(&segments, later, &SETTINGS);
        written += carry_out(&jobs, &mut segments, &mut next_id);
    }
    // Six tiers from 1 KiB to the target, the packing and the cold rewriting.
    assert!(written <= ingested * 8, "{written} of {ingested}");
    assert!(most <= 3 * 8 + 8 + 6, "{most} segments at once");
    assert_eq!(segments.len(), 6, "3 days of 1.4 MB each, 1 MiB at most");
    assert!(segments.iter().all(|segment| segment.cold));
    assert_eq!(all_sources(&segments), sources(0..2880));
}

fn any_live() -> impl Strategy<Value = Vec<Live>> {
    let one = (
        prop::collection::vec(0u64..40, 1..4),
        0i64..(4 * DAY),
        0u64..2_000_000,
        any::<bool>(),
    );
    prop::collection::vec(one, 0..30).prop_map(|list| {
        let each = list.into_iter().enumerate();
        each.map(|(id, (list, received, raw_bytes, cold))| Live {
            cold,
            ..live(id as u128, list, received, raw_bytes)
        })
        .collect()
    })
}

proptest! {
    #[test]
    fn plans_lose_nothing_and_end(
        segments in any_live(),
        now in 0i64..(6 * DAY),
        all: bool,
        cold: bool,
    ) {
        let before = all_sources(&segments);
        let (mut segments, mut next_id) = (segments, 1000);
        let make = |segments: &[Live]| if all {
plan_all(segments, cold, &SETTINGS)
} else {
plan(segments, Timestamp(now), &SETTINGS)
};
        let mut rounds = 0;
        loop {
            let jobs = make(&segments);
            if jobs.is_empty() {
                break;
            }
            let mut named: Vec<Id> = jobs
                .iter()
                .flat_map(|job| match job {
                    Job::Retire(id) => vec![*id],
                    Job::Merge { inputs, .. } => inputs.clone(),
                })
                .collect();
            let count = named.len();
            named.sort();
            named.dedup();
            prop_assert_eq!(named.len(), count, "a segment is in one job only");
            carry_out(&jobs, &mut segments, &mut next_id);
            prop_assert_eq!(&all_sources(&segments), &before);
            rounds += 1;
            prop_assert!(rounds <= 12, "still planning: {:?}", jobs);
        }
        // No source is held twice in the end.
        let held: u64 = segments.iter().map(|segment| segment.sources.len()).sum();
        prop_assert_eq!(held, before.len());
        if all && cold {
            prop_assert!(segments.iter().all(|segment| segment.cold));
        }
    }
}
