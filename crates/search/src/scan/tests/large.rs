//! Numbers that no integer of 64 bits and no float is, beside others and beside lists: columns find and count
//! them as records do.

use super::numbers::{by_column, by_line, by_record};
use super::*;
use crate::logql::{Query, parse as parse_logql};
use crate::metric::{Answer, Plan, RangeTable, Times};

const SHAPES: [&str; 4] = [
    r#"{"id":⟨id:r⟩,"app":"⟨app:j⟩"}"#,
    r#"{"id":⟨id:i⟩,"app":"⟨app:j⟩"}"#,
    r#"{"id":⟨id:f⟩,"app":"⟨app:j⟩"}"#,
    r#"{"id":"⟨id:j⟩","app":"⟨app:j⟩"}"#,
];

fn large(count: u64) -> Vec<Record<'static>> {
    let mut shapes = ShapeTable::new();
    let shape = |text: &str| shapes.intern(text.as_bytes()).unwrap();
    let compiled = SHAPES.map(shape);
    (0..count)
        .map(|n| {
            let digits = match n % 3 {
                0 => format!("1844674407370955161{}", n % 10),
                1 => format!("[{}]", n % 10),
                _ => format!("-9223372036854775809.{}", n % 10),
            };
            let (kind, id) = match n / 30 % 5 {
                0 | 1 => (0, Value::Json(digits.into())),
                2 => (1, Value::Int(i64::MAX - (n % 10) as i64)),
                3 => (2, Value::Float(0.5 + (n % 10) as f64)),
                _ => (
                    3,
                    Value::Str(format!("1844674407370955161{}", n % 10).into()),
                ),
            };
            let app = Value::Str(format!("a{}", n % 4).into());
            let mut record = Record {
                id: Id::new(1_772_409_600_000 + n, INCARNATION, n),
                time: Timestamp(START_NS + n as i64 * STEP_NS),
                time_source: TimeSource::Line(Assumption::Nothing),
                received: Timestamp(START_NS + n as i64 * 1_000_000),
                message: Message::Absent,
                shape: Arc::clone(&compiled[kind]),
                values: vec![id, app],
                fixes: Vec::new(),
                labels: Vec::new(),
                whole: None,
            };
            if n % 11 == 0 {
                let mut line = Vec::new();
                record.write_line(&mut line);
                line.push(b' ');
                record.whole = Some(line.into());
            }
            record
        })
        .collect()
}

#[test]
fn conditions_on_columns_are_those_on_records() {
    let records = large(3000);
    let segment = segment_of(&records);
    let directory = segment.read_directory().unwrap();
    let queries = [
        ("id=18446744073709551613", true),
        ("id=18446744073709551613.0", true),
        ("id>18446744073709551613", true),
        ("id<=18446744073709551613 id>9223372036854775807", true),
        ("id>=9223372036854775807", true),
        ("id<-9223372036854775808", true),
        ("id=-9223372036854775809.5", true),
        ("id<=-9223372036854775809.5", true),
        ("id!=18446744073709551613", true),
        ("id:*", true),
        ("id~/^184/", true),
        ("id:\"[4]\"", true),
        ("id=\"[4]\"", true),
        ("id=18446744073709551620", false),
        ("id=18446744073709551613.0000000000000000001", false),
        ("18446744073709551613", true),
    ];
    for (query, is_any) in queries {
        let filter = parse(query).unwrap();
        let wanted = wanted(&records, &filter);
        let mut expected: Vec<Id> = wanted.iter().map(|record| record.id).collect();
        let evaluator = Evaluator::new(&filter, TimeRange::ALL).unwrap();
        let shared = SegmentScan::new(&segment, &directory, &evaluator, &SourceSet::new());
        let mut found = Vec::new();
        for group in 0..directory.row_groups.len() {
            let mut scan = GroupScan::new(&shared, group);
            scan.for_each_block(|scan, selected| {
                scan.each_record(&selected, |record| found.push(record.id))?;
                Ok(true)
            })
            .unwrap();
        }
        expected.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, expected, "{query}");
        assert_eq!(!found.is_empty(), is_any, "{query}");
    }
}

#[test]
fn logql_finds_large_numbers_in_columns_as_in_lines() {
    let records = large(3000);
    let segment = segment_of(&records);
    let at = |seconds: i64| Timestamp(START_NS + seconds * 1_000_000_000);
    let times = Times::range(at(100), at(1500), 130_000_000_000).unwrap();
    let kept = ColumnCache::new(KEPT_BYTES);
    for query in [
        "sum by (id) (count_over_time({} | json [5m]))",
        "sum by (id, app) (count_over_time({} | json | id != \"\" [5m]))",
        "sum by (app) (count_over_time({} | json | id = \"18446744073709551613\" [5m]))",
        "sum by (app) (count_over_time({} | json | id > 9223372036854775807 [5m]))",
        "sum by (app) (count_over_time({} | json | id >= 18446744073709551613 [5m]))",
        "sum by (app) (count_over_time({} | id == 18446744073709551613 | __error__=\"\" [5m]))",
        "sum by (app) (count_over_time({} | id <= 5.5 | __error__=\"\" [5m]))",
        "sum by (app) (count_over_time({} | id > 18446744073709551613 | __error__=\"\" [5m]))",
        "sum by (app) (count_over_time({} | json | id < -9223372036854775809.5 or id == 3.5 [5m]))",
        "sum by (app) (count_over_time({} | json | (id != 9223372036854775806) and id > 0 [5m]))",
        "sum by (app) (sum_over_time({} | json | unwrap id | __error__=\"\" [5m]))",
        "max by (app) (max_over_time({} | unwrap id | __error__=\"\" [5m]))",
        "sum by (x) (count_over_time({} | json x=\"id\" [5m]))",
    ] {
        let Query::Metric(metric) = parse_logql(query).unwrap() else {
            panic!("{query} asks for lines");
        };
        let plan = Plan::range(metric, times, 0).unwrap();
        let leaf = &plan.leaves()[0];
        let answer = |table: RangeTable| plan.evaluate(vec![table], || true).unwrap();
        let expected = answer(by_line(leaf, &records));
        assert_eq!(expected, answer(by_record(leaf, &records)), "{query}");
        assert_eq!(
            expected,
            answer(by_column(leaf, &segment, &kept)),
            "{query}"
        );
    }
}

#[test]
fn logql_compares_exactly_as_the_query_language_does() {
    let records = large(3000);
    let segment = segment_of(&records);
    let at = Timestamp(START_NS + 3_000_000_000_000);
    let kept = ColumnCache::new(KEPT_BYTES);
    for condition in [
        "id = 18446744073709551614",
        "id > 18446744073709551613",
        "id >= 18446744073709551614",
        "id < 18446744073709551611",
        "id = 9223372036854775806",
        "id < 9223372036854775806",
        "id <= -9223372036854775809.2",
        "id > 9223372036854775806",
    ] {
        let matcher = Matcher::new(&parse(&condition.replace(' ', "")).unwrap()).unwrap();
        let mut scratch = Scratch::new();
        let wanted = records
            .iter()
            .filter(|record| matcher.matches(record, &mut scratch));
        let wanted = wanted.count() as f64;
        for parser in ["", "| json"] {
            let query =
                format!("sum(count_over_time({{}} {parser} | {condition} | __error__=\"\" [5h]))");
            let Query::Metric(metric) = parse_logql(&query).unwrap() else {
                panic!("{query} asks for lines");
            };
            let plan = Plan::instant(metric, at, 0).unwrap();
            let leaf = &plan.leaves()[0];
            for table in [
                by_line(leaf, &records),
                by_record(leaf, &records),
                by_column(leaf, &segment, &kept),
            ] {
                let answer = plan.evaluate(vec![table], || true).unwrap();
                let Answer::Vector(series) = answer else {
                    panic!("an instant has a vector");
                };
                assert_eq!(series[0].value, wanted, "{query}");
            }
        }
    }
}
