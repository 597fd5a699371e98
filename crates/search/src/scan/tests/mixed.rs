//! Whole numbers and fractions in one field, of lines and beside them: readers of columns see the values of
//! the records.

use super::numbers::{by_column, by_line};
use super::*;
use crate::logql::Query;
use crate::metric::{Answer, Plan};

const QUERIES: [&str; 24] = [
    "user_id=12345",
    "user_id=12345.0",
    "user_id:12345",
    "user_id~/^12345$/",
    "user_id~/^12345.0$/",
    "user_id>12344 AND user_id<12346",
    "NOT user_id:*",
    "user_id:*",
    "_logpond_label.user_id=12345",
    "_logpond_label.user_id~/^12345$/",
    "_logpond_label.user_id!=12345",
    "big=9007199254740993",
    "big=9007199254740993 OR big=2.5",
    "big~/^[0-9]+$/",
    "severity=3",
    "severity~/^3$/",
    "severity:*",
    "_level=error",
    "level>=warn",
    "_level_number>=13",
    "_logpond_label.detected_level=error",
    "_logpond_entry.USER_ID=12345",
    "_logpond_entry.USER_ID~/^12345$/",
    "<11>",
];

/// Records with few whole numbers beside lines, or few fractions, in a field.
fn mixed(ints: u64, count: u64) -> Vec<Record<'static>> {
    let mut shapes = ShapeTable::new();
    let syslog = "<⟨facility:p⟩⟨severity:v⟩>⟨_msg:t⟩";
    let json = r#"{"severity":⟨severity:f⟩,"user_id":⟨user_id:i⟩}"#;
    let fraction = r#"{"user_id":⟨user_id:f⟩}"#;
    let record = |n: u64| {
        let text = Value::Str(format!("text {n}").into());
        let (shape, values) = match n % 7 {
            0 | 1 => (
                syslog,
                vec![Value::Int(1), Value::Int((n % 8) as i64), text.clone()],
            ),
            2 => (json, vec![Value::Float(2.5), Value::Int(12_345)]),
            3 => (fraction, vec![Value::Float(12_345.0)]),
            _ => (Shape::TEXT, vec![text.clone()]),
        };
        let mut record = Record {
            id: Id::new(1_772_409_600_000 + n, INCARNATION, n),
            time: Timestamp(START_NS + n as i64 * STEP_NS),
            time_source: TimeSource::Line(Assumption::Nothing),
            received: Timestamp(START_NS + n as i64 * 1_000_000),
            message: match shape {
                json_like if json_like.starts_with('{') => Message::Absent,
                _ => Message::Part(text),
            },
            shape: shapes.intern(shape.as_bytes()).unwrap(),
            values,
            fixes: Vec::new(),
            labels: Vec::new(),
            whole: None,
        };
        let mut label = |name: &'static str, value| record.labels.push((name.into(), value));
        if n % 7 > 3 {
            label("severity", Value::Int((n % 8) as i64));
            let value = if n % 10 < ints {
                Value::Int(12_345 + (n % 3) as i64)
            } else {
                Value::Float([2.5, 12_345.0][n as usize % 2])
            };
            label("user_id", value);
        }
        if !n.is_multiple_of(3) {
            let big = [Value::Int((1 << 53) + 1), Value::Float(2.5)];
            label("big", big[usize::from(n % 10 >= ints)].clone());
        }
        record
    };
    (0..count).map(record).collect()
}

#[test]
fn numbers_that_share_a_field_are_told_apart() {
    for ints in [0, 1, 5, 9, 10] {
        let records = mixed(ints, 900);
        let segment = segment_of(&records);
        for query in QUERIES {
            check_selected(&segment, &records, query, ints);
        }
        check_tables(&segment, &records);
        check_columns(&segment, &records);
        check_metrics(&segment, &records);
    }
}

fn check_selected(segment: &SegmentFile, records: &[Record<'_>], query: &str, ints: u64) {
    let directory = segment.read_directory().unwrap();
    let filter = parse(query).unwrap();
    let (matcher, mut scratch) = (Matcher::new(&filter).unwrap(), Scratch::new());
    let wanted = records.iter().filter(|r| matcher.matches(r, &mut scratch));
    let expected: Vec<Id> = wanted.map(|record| record.id).collect();
    let evaluator = Evaluator::new(&filter, TimeRange::ALL).unwrap();
    let shared = SegmentScan::new(segment, &directory, &evaluator, &SourceSet::new());
    let mut scan = GroupScan::new(&shared, 0);
    let mut keys = Vec::new();
    scan.for_each_block(|scan, s| scan.keys(&s, &mut keys).map(|()| true))
        .unwrap();
    keys.sort_unstable();
    let found: Vec<Id> = keys.iter().map(|key| key.id).collect();
    assert_eq!(found, expected, "{query} {ints}");
    for key in keys {
        let original = records.iter().find(|record| record.id == key.id).unwrap();
        let fields = |record: &Record<'_>| {
            let fields = record
                .fields()
                .map(|(name, value)| format!("{name}={value:?}"));
            let mut fields: Vec<_> = fields.collect();
            fields.sort();
            fields
        };
        let read = scan.record(key, |record| fields(record)).unwrap();
        assert_eq!(read, Some(fields(original)), "{query} {ints}");
    }
}

fn check_tables(segment: &SegmentFile, records: &[Record<'_>]) {
    let directory = segment.read_directory().unwrap();
    let evaluator = Evaluator::new(&Filter::All, TimeRange::ALL).unwrap();
    let shared = SegmentScan::new(segment, &directory, &evaluator, &SourceSet::new());
    for field in ["user_id", "severity", "big", "_level", "_level_number"] {
        let (mut expected, mut found) = (Top::new(field), Top::new(field));
        records.iter().for_each(|record| expected.add(record));
        let mut scan = GroupScan::new(&shared, 0);
        scan.for_each_block(|scan, s| scan.add_to_top(field, &s, &mut found).map(|()| true))
            .unwrap();
        let [found, expected] = [found, expected].map(|top| format!("{:?}", top.finish(0)));
        assert_eq!(found, expected, "{field}");
    }
    let refs: Vec<_> = records.iter().collect();
    for name in ["user_id", "severity", "big", "detected_level"] {
        check_label_values(&shared, &refs, name, "");
    }
    let (mut expected, mut found) = (FieldStats::new(), FieldStats::new());
    let (mut expected_labels, mut labels) = (FieldStats::new(), FieldStats::new());
    for record in records {
        expected.add(record);
        expected_labels.add_rows(1);
        expected_labels.add_labels(record);
    }
    let mut scan = GroupScan::new(&shared, 0);
    scan.for_each_block(|scan, s| {
        scan.add_to_fields(&s, &mut found)?;
        scan.add_to_labels(&s, &mut labels)?;
        Ok(true)
    })
    .unwrap();
    let shown = |stats: FieldStats| format!("{:?}", stats.finish());
    assert_eq!(shown(found), shown(expected));
    assert_eq!(shown(labels), shown(expected_labels));
}

fn check_columns(segment: &SegmentFile, records: &[Record<'_>]) {
    let directory = segment.read_directory().unwrap();
    let evaluator = Evaluator::new(&Filter::All, TimeRange::ALL).unwrap();
    let shared = SegmentScan::new(segment, &directory, &evaluator, &SourceSet::new());
    let by_id: std::collections::BTreeMap<_, _> = records.iter().map(|r| (r.id, r)).collect();
    for asked in all_columns(records) {
        let asked = vec![asked];
        let mut scan = GroupScan::new(&shared, 0);
        scan.for_each_block(|scan, selected| {
            let columns = scan.columns(&asked, &selected)?;
            let mut keys = Vec::new();
            scan.keys(&selected, &mut keys)?;
            let mut builder = ColumnsBuilder::new(asked.clone().into());
            keys.iter().for_each(|key| builder.add(by_id[&key.id]));
            let expected = builder.take();
            let all = |columns: &Columns| -> Vec<_> {
                (0..columns.rows).map(|row| shown(columns, row)).collect()
            };
            assert_eq!(all(&columns), all(&expected), "{asked:?}");
            assert_eq!(columns.unfit, expected.unfit, "{asked:?}");
            Ok(true)
        })
        .unwrap();
    }
}

fn check_metrics(segment: &SegmentFile, records: &[Record<'_>]) {
    let at = Timestamp(START_NS + 3_000_000_000_000);
    let kept = ColumnCache::new(KEPT_BYTES);
    for query in [
        "sum by (user_id) (count_over_time({}[1h]))",
        "sum by (user_id) (count_over_time({user_id=\"12345\"}[1h]))",
        "sum by (severity, big) (count_over_time({}[1h]))",
        "sum by (detected_level) (count_over_time({}[1h]))",
        "sum by (big) (sum_over_time({} | unwrap user_id [1h]))",
        "sum(count_over_time({} | user_id=\"12345\" [1h]))",
    ] {
        let Query::Metric(metric) = crate::logql::parse(query).unwrap() else {
            panic!("{query} asks for lines");
        };
        let plan = Plan::instant(metric, at, 0).unwrap();
        let leaf = &plan.leaves()[0];
        let answer = |table| plan.evaluate(vec![table], || true).unwrap();
        let expected = answer(by_line(leaf, records));
        assert_eq!(expected, answer(by_column(leaf, segment, &kept)), "{query}");
        assert!(matches!(expected, Answer::Vector(_)), "{query}");
    }
}

/// Of a field that says no severity there is no number, and a fraction without a part is a whole number.
#[test]
fn numbers_of_severities_are_those_of_records() {
    let text = |text: &'static str| Value::Str(text.into());
    let levels = [
        text("warn"),
        Value::Int(30),
        text("3"),
        text("30.0"),
        text(""),
        text("odd"),
        Value::Float(50.0),
        Value::Float(50.5),
        Value::Float(4.0),
        Value::Int(99),
        Value::Null,
    ];
    // Alone, beside each other, and all together, so that they are in columns and beside them.
    let alone = (0..levels.len()).map(|at| vec![at]);
    let pairs = (0..levels.len()).flat_map(|at| (0..at).map(move |other| vec![at, other]));
    for meant in alone.chain(pairs).chain([(0..levels.len()).collect()]) {
        let mut records = samples(meant.len() as u64);
        for (record, at) in records.iter_mut().zip(&meant) {
            let kind = match levels[*at] {
                Value::Int(_) => "⟨level:i⟩",
                Value::Float(_) => "⟨level:f⟩",
                Value::Null => "⟨level:n⟩",
                _ => "\"⟨level:j⟩\"",
            };
            record.shape = Arc::new(Shape::new(&format!("{{\"level\":{kind}}}")).unwrap());
            (record.values, record.message) = (vec![levels[*at].clone()], Message::Absent);
            record.labels.clear();
        }
        let segment = segment_of(&records);
        for query in [
            "_level_number:*",
            "NOT _level_number:*",
            "_level_number>=0",
            "_level_number=17 OR _level_number=9",
            "_level:*",
            "_level=error",
            "level>=warn",
            "level=info",
            "_logpond_label.detected_level=unknown",
        ] {
            let filter = parse(query).unwrap();
            let (matcher, mut scratch) = (Matcher::new(&filter).unwrap(), Scratch::new());
            let wanted = records.iter().filter(|r| matcher.matches(r, &mut scratch));
            let expected: Vec<Id> = wanted.map(|record| record.id).collect();
            assert_eq!(found_by(&segment, &filter), expected, "{query} {meant:?}");
        }
    }
}
