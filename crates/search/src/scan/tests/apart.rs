//! Labels whose own names lines have taken: columns say of them what records do, and row groups without
//! any do not pay for them.

use super::numbers::{by_column, by_line, by_record};
use super::*;
use crate::label;
use crate::logql::{self, Query};
use crate::metric::{Answer, Plan, Times};

/// Samples with labels beside their lines, under the names that they have there.
fn apart(count: u64) -> Vec<Record<'static>> {
    let mut records = samples(count);
    for (n, record) in records.iter_mut().enumerate() {
        let shape = Arc::clone(&record.shape);
        let mut label = |name: &str, value| {
            let name = shape.label_name(name).unwrap_or_else(|| name.to_owned());
            record.labels.push((name.into(), value));
        };
        let text = |text: String| Value::Str(text.into());
        if n % 3 != 0 {
            label("status", text(["200", "404", "OK"][n / 7 % 3].into()));
        }
        if n % 2 == 0 {
            label("user", text(format!("u{}", n % 5)));
            label("host", text("beside".into()));
        }
        if n % 5 != 0 {
            label("ms", text(format!("{}", n % 11)));
        }
        if n % 4 == 0 {
            label("ok", Value::Bool(n % 8 == 0));
            label("app", text(format!("a{}", n % 3)));
        }
        if n % 600 == 5 {
            label("path", Value::Bytes(vec![0xff, b'p'].into()));
        }
    }
    records
}

const FILTERS: [&str; 14] = [
    "",
    "status=404",
    "_logpond_label.status=404",
    "_logpond_label.status!=404",
    "\"status@label\"=OK",
    "_logpond_label.user=u2",
    "_logpond_label.user=u2 AND user=u3",
    "NOT _logpond_label.user:*",
    "_logpond_label.user=null",
    "_logpond_label.ms>5 AND _logpond_label.ms<9.5",
    "_logpond_label.ms~/^5$/",
    "_logpond_label.ok=true OR _logpond_label.app=a1",
    "_logpond_label.host~/^be/ AND _logpond_label.status:*",
    "_logpond_label.path:* OR _logpond_label.host=h2",
];

/// The ids of the records that a filter wants, as columns and as records tell it.
fn ids(records: &[Record<'_>], segment: &SegmentFile, filter: &Filter) -> [Vec<Id>; 2] {
    let directory = segment.read_directory().unwrap();
    let evaluator = Evaluator::new(filter, TimeRange::ALL).unwrap();
    let shared = SegmentScan::new(segment, &directory, &evaluator, &SourceSet::new());
    let mut keys = Vec::new();
    for group in 0..directory.row_groups.len() {
        let mut scan = GroupScan::new(&shared, group);
        scan.for_each_block(|scan, selected| scan.keys(&selected, &mut keys).map(|()| true))
            .unwrap();
    }
    keys.sort_unstable();
    let matcher = Matcher::new(filter).unwrap();
    let mut scratch = Scratch::new();
    let wanted = records.iter().filter(|r| matcher.matches(r, &mut scratch));
    let found = keys.iter().map(|key| key.id).collect();
    [found, wanted.map(|record| record.id).collect()]
}

#[test]
fn columns_find_labels_apart_as_records_do() {
    let records = apart(3000);
    let segment = segment_of(&records);
    for query in FILTERS {
        let [found, expected] = ids(&records, &segment, &parse(query).unwrap());
        assert_eq!(found, expected, "{query}");
        assert!(
            !expected.is_empty() || query == "_logpond_label.user=null",
            "{query}"
        );
    }
}

#[test]
fn streams_and_values_of_labels_apart_are_those_of_records() {
    let records = apart(3000);
    let segment = segment_of(&records);
    let directory = segment.read_directory().unwrap();
    let steps = Some((Timestamp(START_NS + 5), 200 * STEP_NS));
    let by = |names: &[&str]| Some(names.iter().map(|name| (*name).into()).collect());
    for query in FILTERS {
        let filter = parse(query).unwrap();
        let matcher = Matcher::new(&filter).unwrap();
        let evaluator = Evaluator::new(&filter, TimeRange::ALL).unwrap();
        let shared = SegmentScan::new(&segment, &directory, &evaluator, &SourceSet::new());
        let mut scratch = Scratch::new();
        let wanted = records.iter().filter(|r| matcher.matches(r, &mut scratch));
        let wanted: Vec<_> = wanted.collect();
        for by in [
            None,
            by(&["app", "status"]),
            by(&["ms", "service_name"]),
            by(&["user", "path", "detected_level"]),
        ] {
            check_streams(&shared, &wanted, StreamsRequest { by, steps }, query);
        }
        let (mut expected, mut found) = (FieldStats::new(), FieldStats::new());
        expected.add_rows(wanted.len() as u64);
        wanted.iter().for_each(|record| expected.add_labels(record));
        let mut scan = GroupScan::new(&shared, 0);
        scan.for_each_block(|scan, s| scan.add_to_labels(&s, &mut found).map(|()| true))
            .unwrap();
        let found = found.finish();
        assert!(
            found
                .fields
                .iter()
                .all(|field| label::is_label_name(&field.name))
        );
        assert!(
            found
                .fields
                .iter()
                .all(|field| !field.name.ends_with("_label"))
        );
        assert_eq!(found, expected.finish(), "{query}");
        for name in [
            "service_name",
            "app",
            "user",
            "status",
            "ms",
            "host",
            "path",
        ] {
            check_label_values(&shared, &wanted, name, query);
        }
    }
}

#[test]
fn numbers_of_labels_apart_are_those_of_records() {
    let records = apart(3000);
    let segment = segment_of(&records);
    let at = |seconds: i64| Timestamp(START_NS + seconds * 1_000_000_000);
    let times = Times::range(at(100), at(1500), 130_000_000_000).unwrap();
    let kept = ColumnCache::new(KEPT_BYTES);
    for query in [
        "sum by (app) (count_over_time({}[5m]))",
        "sum by (user) (count_over_time({status=\"404\"}[5m]))",
        "sum by (status, user) (count_over_time({status=~\".+\", host!=\"\"}[5m]))",
        "count_over_time({user=~\"u[12]\"}[5m])",
        "sum by (service_name) (count_over_time({ok=\"true\"}[5m]))",
        "sum by (user) (sum_over_time({} | unwrap ms [5m]))",
        "max_over_time({user!=\"\"} | unwrap ms [5m]) by (user)",
        "sum by (user) (count_over_time({} | status = \"404\" [5m]))",
        "sum by (user, status) (count_over_time({} | json [5m]))",
        "sum by (user_extracted) (count_over_time({user=~\"u.\"} | json [5m]))",
        "sum by (user, user_extracted) (count_over_time({} | json | user = \"u2\" [5m]))",
        "sum by (status) (count_over_time({} | json | status_extracted = \"OK\" [5m]))",
        "sum by (ok, ok_extracted) (count_over_time({ok!=\"\"} | logfmt | k > 100 [5m]))",
        "sum by (user) (sum_over_time({} | json | unwrap ms [5m]))",
    ] {
        let Query::Metric(metric) = logql::parse(query).unwrap() else {
            panic!("{query} asks for lines");
        };
        let plan = Plan::range(metric, times, 0).unwrap();
        let leaf = &plan.leaves()[0];
        let answer = |table| plan.evaluate(vec![table], || true).unwrap();
        let expected = answer(by_line(leaf, &records));
        assert_eq!(expected, answer(by_record(leaf, &records)), "{query}");
        assert_eq!(
            expected,
            answer(by_column(leaf, &segment, &kept)),
            "{query}"
        );
        assert!(
            matches!(&expected, Answer::Matrix(series) if !series.is_empty()),
            "{query}"
        );
    }
}

/// Records that all have a user in their lines.
fn users(from: u64, to: u64, has_label: impl Fn(u64) -> bool) -> Vec<Record<'static>> {
    let shape = Arc::new(Shape::new(r#"{"user":"⟨user:j⟩","n":⟨n:i⟩}"#).unwrap());
    let record = |n: u64| {
        let text = |text: String| Value::Str(text.into());
        let label = ("user@label".into(), text(format!("sent-{}", n % 9)));
        Record {
            id: Id::new(1_772_409_600_000 + n, INCARNATION, n),
            time: Timestamp(START_NS + n as i64 * STEP_NS),
            time_source: TimeSource::Line(Assumption::Nothing),
            received: Timestamp(START_NS + n as i64 * 1_000_000),
            message: Message::Absent,
            shape: Arc::clone(&shape),
            values: vec![text(format!("u{}", n % 7)), Value::Int(n as i64)],
            fixes: Vec::new(),
            labels: has_label(n).then_some(label).into_iter().collect(),
            whole: None,
        }
    };
    (from..to).map(record).collect()
}

/// A segment with a row group for each of these.
fn segment_of_groups(groups: &[Vec<Record<'_>>]) -> SegmentFile {
    let push = |builder: &mut RowsBuilder, record: &Record<'_>| {
        let mut line = Vec::new();
        record.write_line(&mut line);
        let number = (record.received.0 - START_NS) / 1_000_000;
        builder.push(record, number as u64, 0, line.len());
    };
    let mut all = RowsBuilder::new();
    groups
        .iter()
        .flatten()
        .for_each(|record| push(&mut all, record));
    let (counts, file) = (all.counts(), Memory::default());
    let schema = counts.schema();
    let sources = vec![SourceEntry {
        source: source(0),
        rows: all.len() as u64,
        hash: 0,
        retry: None,
    }];
    let to: Box<dyn AppendFile> = Box::new(file.clone());
    let mut writer =
        SegmentWriter::new(to, Id(1), Profile::Hot, counts, schema.clone(), sources).unwrap();
    for group in groups {
        let mut builder = RowsBuilder::new();
        group.iter().for_each(|record| push(&mut builder, record));
        writer.write(&builder.take(&schema)).unwrap();
    }
    writer.finish().unwrap();
    SegmentFile::open(Arc::new(file)).unwrap()
}

/// Bytes that a row group is read for one condition and the values of a label, and whether a whole column
/// has them.
fn cost(segment: &SegmentFile, group: usize, query: &str) -> (u64, bool) {
    let directory = segment.read_directory().unwrap();
    let filter = parse(query).unwrap();
    let evaluator = Evaluator::new(&filter, TimeRange::ALL).unwrap();
    let shared = SegmentScan::new(segment, &directory, &evaluator, &SourceSet::new());
    let mut scan = GroupScan::new(&shared, group);
    let mut is_one_column = true;
    scan.for_each_block(|scan, selected| {
        is_one_column &= scan.text_label(&selected, "user")?.is_some();
        Ok(true)
    })
    .unwrap();
    (scan.bytes_read(), is_one_column)
}

#[test]
fn row_groups_without_labels_apart_do_not_pay_for_them() {
    let lines = |from, to| users(from, to, |_| false);
    let all = |from, to| users(from, to, |_| true);
    let without = segment_of_groups(&[lines(0, 9000), lines(9000, 18_000)]);
    let some = users(18_000, 27_000, |n| n % 3 == 0);
    let with = segment_of_groups(&[lines(0, 9000), all(9000, 18_000), some]);
    let plain = cost(&without, 0, "_logpond_label.user!=u3");
    assert!(plain.0 > 0 && plain.1);
    // The second name is in the schema, but nothing of it is read where it has no values.
    assert_eq!(cost(&with, 0, "_logpond_label.user!=u3"), plain);
    // Where all rows have a label apart, the line's field is not read.
    let own = cost(&with, 1, "_logpond_label.user!=sent-3");
    assert!(own.1);
    let directory = with.read_directory().unwrap();
    let evaluator = Evaluator::new(&parse("\"user@label\"!=sent-3").unwrap(), TimeRange::ALL);
    let evaluator = evaluator.unwrap();
    let shared = SegmentScan::new(&with, &directory, &evaluator, &SourceSet::new());
    let mut scan = GroupScan::new(&shared, 1);
    scan.for_each_block(|_, _| Ok(true)).unwrap();
    assert_eq!(scan.bytes_read(), own.0);
    assert!(!cost(&with, 2, "_logpond_label.user!=sent-3").1);
    let records = [
        lines(0, 9000),
        all(9000, 18_000),
        users(18_000, 27_000, |n| n % 3 == 0),
    ]
    .concat();
    for query in [
        "_logpond_label.user=u3",
        "_logpond_label.user=sent-3",
        "user=u3 _logpond_label.user!=u3",
    ] {
        let [found, expected] = ids(&records, &with, &parse(query).unwrap());
        assert_eq!(found, expected, "{query}");
    }
}
