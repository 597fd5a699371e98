use proptest::prelude::*;

use super::*;

/// An instant in minutes, and the number of a level.
fn records() -> impl Strategy<Value = Vec<(i32, u8)>> {
    let times = prop_oneof![
        0i32..100,
        -100_000i32..100_000,
        -150_000_000i32..150_000_000
    ];
    let levels = prop_oneof![4 => 0u8..4, 1 => any::<u8>()];
    proptest::collection::vec((times, levels), 0..200)
}

fn kind(level: u8) -> Kind {
    match level {
        0 => Vec::new(),
        level => vec![("level".into(), level.to_string().into_bytes().into())],
    }
}

fn timeline(records: &[(i32, u8)]) -> Timeline {
    let mut timeline = Timeline::default();
    for (minute, level) in records {
        let number = timeline.number_of(kind(*level));
        timeline.add(i64::from(*minute) * 60 * SECOND_NS + 7, number, 1);
    }
    timeline
}

/// The records of each step by the texts of their kinds, which have other numbers in parts.
fn counted(timeline: &Timeline) -> (i64, bool, BTreeMap<(i64, Kind), u64>) {
    let kinds = timeline.kinds();
    let counts = timeline.counts().map(|(start, number, rows)| {
        let kind = kinds.map_or_else(Kind::new, |kinds| kinds[number as usize].clone());
        ((start, kind), rows)
    });
    (timeline.step_ns(), kinds.is_some(), counts.collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn parts_merge_to_the_whole_and_come_back(records in records(), at in any::<usize>()) {
        let whole = timeline(&records);
        let (first, second) = records.split_at(at % (records.len() + 1));
        let mut merged = timeline(first);
        merged.merge(&timeline(second));
        prop_assert_eq!(counted(&merged), counted(&whole));
        prop_assert_eq!(merged.rows(), records.len() as u64);
        let bytes = whole.encode();
        prop_assert!(Timeline::decode(&bytes[..bytes.len() - 1]).is_err());
        prop_assert_eq!(Timeline::decode(&bytes), Ok(whole));
    }

    #[test]
    fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = Timeline::decode(&bytes);
    }
}

#[test]
fn steps_become_longer_where_there_are_many() {
    let minutes = |every: i32| {
        let records: Vec<(i32, u8)> = (-2500..2500).map(|at| (at * every, 1)).collect();
        timeline(&records)
    };
    let table = [(1, 600), (60, 86_400), (10, 3600)];
    for (every, step_s) in table {
        let timeline = minutes(every);
        assert_eq!(timeline.step_ns(), step_s * SECOND_NS, "{every}");
        assert_eq!(timeline.rows(), 5000);
        assert!(timeline.is_bounded());
        assert_eq!(timeline.counts().map(|(.., rows)| rows).sum::<u64>(), 5000);
    }
    let mut years = timeline(&[(0, 1)]);
    for day in 0..5000 {
        years.add(day * 86_400 * SECOND_NS, 0, 1);
    }
    assert!(!years.is_bounded());
}

#[test]
fn many_kinds_are_one() {
    let records: Vec<(i32, u8)> = (0..200).map(|at| (at, at as u8)).collect();
    let timeline = timeline(&records);
    assert_eq!(timeline.kinds(), None);
    assert_eq!(timeline.counts().count(), 200);
}
