use proptest::prelude::*;

use super::collect::TestRow;
use super::*;

const WORDS: [&str; 6] = ["up", "down", "eth0 is up", "é", "two\nlines", ""];

/// An instant in minutes, a message and the number of a level.
type Drawn = (i32, Vec<u8>, u8);

fn records() -> impl Strategy<Value = Vec<Drawn>> {
    let times = prop_oneof![
        0i32..100,
        -100_000i32..100_000,
        -150_000_000i32..150_000_000
    ];
    let word = prop_oneof![
        4 => proptest::sample::select(&WORDS[..]).prop_map(str::to_owned),
        2 => (0u16..300).prop_map(|number| number.to_string()),
        1 => Just("long ".repeat(200)),
    ];
    let message = proptest::collection::vec(word, 1..4).prop_map(|words| words.join(" "));
    let message = message.prop_map(String::into_bytes);
    let levels = prop_oneof![4 => 0u8..4, 1 => any::<u8>()];
    proptest::collection::vec((times, message, levels), 0..120)
}

fn kind(level: u8) -> Kind {
    match level % 80 {
        0 => Vec::new(),
        level => vec![("level".into(), level.to_string().into_bytes().into())],
    }
}

fn builder(records: &[Drawn]) -> PatternTableBuilder {
    let mut builder = PatternTableBuilder::default();
    let rows = records.iter().map(|(minute, message, level)| TestRow {
        time: i64::from(*minute) * 60 * SECOND_NS + 7,
        message,
        kind: kind(*level),
        is_part: level % 5 == 0,
    });
    builder.add_test_rows(rows);
    builder
}

/// An entry with its kind as text: kinds have other numbers in parts.
type Counted<'t> = (&'t [u8], &'t Kind, bool, Vec<(i64, u64)>, &'t [Sample]);

fn counted(table: &PatternTable) -> (i64, u64, Vec<Counted<'_>>) {
    let entries = table.entries().unwrap().iter().map(|entry| {
        let kind = &table.kinds()[entry.kind as usize];
        let counts = table.counts(entry).collect();
        (
            &*entry.pattern,
            kind,
            entry.is_part,
            counts,
            entry.samples.list(),
        )
    });
    let mut entries: Vec<_> = entries.collect();
    entries.sort();
    (table.step_ns(), table.rows(), entries)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    #[test]
    fn parts_merge_to_the_whole_and_come_back(records in records(), at in any::<usize>()) {
        let (first, second) = records.split_at(at % (records.len() + 1));
        let parts = [first, second].map(|part| builder(part).finish());
        let whole = builder(&records).finish();
        let Some(whole) = whole else {
            return Ok(());
        };
        let mut merged = PatternTableBuilder::default();
        for part in parts {
            prop_assert!(merged.merge(&part.unwrap()));
        }
        let merged = merged.finish().unwrap();
        prop_assert_eq!(counted(&merged), counted(&whole));
        let bytes = whole.encode();
        prop_assert!(PatternTable::decode(&bytes[..bytes.len() - 1]).is_err());
        prop_assert_eq!(PatternTable::decode(&bytes), Ok(whole));
    }

    #[test]
    fn garbage_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = PatternTable::decode(&bytes);
        let mut behind = Encoder::new(VERSION);
        behind.number(rules());
        behind.raw(&bytes);
        let _ = PatternTable::decode(&behind.finish());
    }
}

fn drawn(minute: i32, message: &str, level: u8) -> Drawn {
    (minute, message.as_bytes().to_vec(), level)
}

#[test]
fn the_bytes_are_those_of_the_format() {
    let long = "word ".repeat(300);
    let records = [
        drawn(0, "link eth0 is up", 1),
        drawn(1, "link eth1 is up", 1),
        drawn(7, "link eth2 is up", 0),
        drawn(1, &long, 1),
    ];
    let bytes = builder(&records).finish().unwrap().encode();
    // Behind the version and the rules.
    let from = 1 + {
        let mut rules_alone = Encoder::default();
        rules_alone.number(rules());
        rules_alone.finish().len()
    };
    let hex: String = bytes[from..]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    expect_test::expect!["0400000201056c6576656c0131000e03000203f9cfcdcf9c0c03f9ffea91fc0d0206010101030103f9af9dc2df01010001000103f9cfcdcf9c0c010601b50c0f6c696e6b20657468312069732075700f6c696e6b2065746830206973207570000f6c696e6b2065746832206973207570008004776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f8008776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f726420776f7264203c5f3e"].assert_eq(&hex);
    assert_eq!(PatternTable::decode(&bytes).unwrap().encode(), bytes);
    // The pattern of a message that is longer than a sample is not that of the sample.
    let pattern = [&b"word "[..]; 204].concat();
    let text = [pattern.trim_ascii_end(), b" <_>"].concat();
    let holds = |part: &[u8]| bytes.windows(part.len()).any(|window| window == part);
    assert!(holds(&text) && holds(b"link eth0 is up"));
    assert!(!holds(b"link <_> is up"), "a sample tells it");
}

#[test]
fn steps_become_longer_where_there_are_many() {
    let minutes = |every: i32, patterns: i32| {
        let records = (-40_000_i32..40_000).map(|at| {
            let name = "x".repeat(at.rem_euclid(patterns) as usize);
            drawn(at * every, &name, 1)
        });
        builder(&records.collect::<Vec<_>>()).finish()
    };
    // 512 of three hours are more than 55 days, of six more than 111.
    let table = [(1, 1, 10_800), (2, 1, 21_600), (1440, 1, 86_400)];
    for (every, patterns, step_s) in table {
        let table = minutes(every, patterns).unwrap();
        assert_eq!(table.step_ns(), step_s * SECOND_NS, "{every} {patterns}");
        assert!(!table.is_coarse());
        assert_eq!(rows_of(&table), 80_000);
    }
}

/// The records that entries count.
fn rows_of(table: &PatternTable) -> u64 {
    let entries = table.entries().unwrap().iter();
    let counts = entries.flat_map(|entry| table.counts(entry));
    let rows = counts.map(|(_, rows)| rows).sum();
    assert_eq!(table.rows(), rows);
    rows
}

/// Messages of three words; of so many numbers each has another first one.
fn event(at: usize) -> String {
    let letters = |number: usize| char::from(b'a' + (number % 26) as u8);
    let word: String = (0..4)
        .map(|place| letters(at / 26_usize.pow(place)))
        .collect();
    format!("{word} went away")
}

#[test]
fn too_many_patterns_are_put_together() {
    let of = |count: usize| {
        // The last ones are frequent.
        let records = (0..count).flat_map(|at| {
            let times = if at + 10 >= count { 1000 } else { 1 };
            std::iter::repeat_n(drawn(at as i32 % 50, &event(at), (at % 2) as u8), times)
        });
        builder(&records.collect::<Vec<_>>()).finish().unwrap()
    };
    let fine = of(16_384);
    assert_eq!(
        (fine.entries().unwrap().len(), fine.is_coarse()),
        (16_384, false)
    );
    let coarse = of(20_000);
    assert!(coarse.is_coarse());
    assert_eq!(rows_of(&coarse), 19_990 + 10_000);
    let entries = coarse.entries().unwrap();
    let patterns: Vec<&str> = entries
        .iter()
        .map(|entry| std::str::from_utf8(&entry.pattern).unwrap())
        .collect();
    assert_eq!(patterns.len(), 12, "{patterns:?}");
    // Two kinds, and what is frequent stays.
    let together = patterns.iter().filter(|text| **text == "<_> went away");
    assert_eq!(together.count(), 2);
    assert!((19_990..20_000).all(|at| patterns.contains(&&*event(at))));
    let kinds = (0..70).map(|level| drawn(0, "up", level));
    assert_eq!(builder(&kinds.collect::<Vec<_>>()).finish(), None);
}

/// Patterns of which no two are alike.
fn unlike(count: usize) -> Vec<Drawn> {
    let words = |at: usize| {
        let word = |place: usize| event(at * 7919 + place * 104_729)[..4].to_owned();
        (0..4).map(word).collect::<Vec<_>>().join(" ")
    };
    let records = (0..count).flat_map(|at| {
        let times = if at < 100 { 5 } else { 1 };
        std::iter::repeat_n(drawn(0, &words(at), 1), times)
    });
    records.collect()
}

#[test]
fn the_rarest_patterns_are_one_where_nothing_else_helps() {
    let table = builder(&unlike(20_000)).finish().unwrap();
    assert!(table.is_coarse());
    assert_eq!(rows_of(&table), 20_400);
    let entries = table.entries().unwrap();
    assert!(
        (1000..=ENTRIES_MAX).contains(&entries.len()),
        "{}",
        entries.len()
    );
    let rare = entries.iter().find(|entry| *entry.pattern == *WILDCARD);
    let rare: u64 = table.counts(rare.unwrap()).map(|(_, rows)| rows).sum();
    assert!(rare > 10_000, "{rare}");
    let frequent = entries
        .iter()
        .filter(|entry| table.counts(entry).any(|(_, rows)| rows == 5));
    assert!(frequent.count() >= 90);
}

/// A pattern and its records by step.
type EntryCounts = (Box<[u8]>, Vec<(i64, u64)>);

#[test]
fn a_lighter_table_has_fewer_samples_and_the_same_counts() {
    let mut table = builder(&unlike(3000)).finish().unwrap();
    let counts = |table: &PatternTable| -> Vec<EntryCounts> {
        let entries = table.entries().unwrap().iter();
        let counts = |entry: &PatternEntry| table.counts(entry).collect();
        entries
            .map(|entry| (entry.pattern.clone(), counts(entry)))
            .collect()
    };
    let samples = |table: &PatternTable| -> usize {
        let entries = table.entries().unwrap().iter();
        entries.map(|entry| entry.samples.bytes()).sum()
    };
    let expected = counts(&table);
    let mut rounds = 0;
    while let Some(lighter) = table.lighter() {
        assert!(samples(&lighter) <= samples(&table) / 2);
        assert_eq!(
            (counts(&lighter), lighter.is_coarse()),
            (expected.clone(), false)
        );
        assert_eq!(PatternTable::decode(&lighter.encode()), Ok(lighter.clone()));
        table = lighter;
        rounds += 1;
    }
    assert_eq!(samples(&table), 0);
    assert!((5..40).contains(&rounds), "{rounds}");
}

#[test]
fn the_rarest_patterns_lose_their_samples_where_texts_are_long() {
    let long = "word ".repeat(90);
    let records = (0..12_000).flat_map(|at| {
        let times = if at < 10 { 3 } else { 1 };
        std::iter::repeat_n(drawn(0, &format!("{} {long}", event(at)), 1), times)
    });
    let table = builder(&records.collect::<Vec<_>>()).finish().unwrap();
    assert!(table.is_coarse(), "the patterns alone are too long");
    let numbers = "7".repeat(400);
    let records = (0..6000).flat_map(|at| {
        let times = if at < 10 { 3 } else { 1 };
        std::iter::repeat_n(drawn(0, &format!("{} {numbers}", event(at)), 1), times)
    });
    let table = builder(&records.collect::<Vec<_>>()).finish().unwrap();
    assert!(!table.is_coarse());
    assert_eq!(rows_of(&table), 6020);
    let entries = table.entries().unwrap();
    assert_eq!(entries.len(), 6000);
    let without = entries
        .iter()
        .filter(|entry| entry.samples.list().is_empty());
    assert!((1000..5990).contains(&without.count()));
}

#[test]
fn other_rules_are_not_used() {
    let table = builder(&[drawn(0, "up", 1)]).finish().unwrap();
    let bytes = table.encode();
    let mut other = Encoder::new(VERSION);
    other.number(rules() ^ 1);
    let from = other.clone().finish().len();
    other.raw(&bytes[from..]);
    let read = PatternTable::decode(&other.finish()).unwrap();
    assert_eq!((read.rows(), read.entries()), (1, None));
    assert!(!PatternTableBuilder::default().merge(&read));
}
