//! Patterns of lines and messages are counted by columns as by records.

use super::*;
use crate::aggregate::Patterns;

/// Values of slots: with digits, letters that may be hexadecimal numbers, signs that join, and line ends.
const VALUES: [&str; 22] = [
    "",
    "GET",
    "/a/b-7",
    "/wiki/Main_Page",
    "bad",
    "deadbeef",
    "cafe-7",
    "7-cafe",
    "-",
    "--",
    "10.0.0.7",
    "::1",
    ":",
    "größe",
    "x\"y",
    "back\\slash7",
    "two\nlines",
    "tab\there",
    "<_>",
    " ",
    "feed",
    "Mozilla/5.0 (X11; Linux x86_64)",
];

const SHAPES: [&str; 9] = [
    // Values of clients are left out, wherever they stand.
    "⟨remote_addr:t⟩⟨user:t⟩x \"⟨path:t⟩\" ⟨agent:q⟩-⟨referer:t⟩",
    "⟨host:t⟩ - - [⟨_time:%d/%b/%Y:%H:%M:%S %z[+0530]⟩] \"⟨app:q⟩ ⟨path:t⟩ HTTP/1.1\" ⟨status:i⟩ ⟨ms:f⟩",
    // Tokens go on from slot to literal, and slot to slot.
    "⟨host:t⟩x⟨app:t⟩ -⟨path:t⟩-7",
    "⟨host:t⟩⟨app:t⟩ end",
    r#"{"host":"⟨host:j⟩","ok":⟨ok:b⟩,"user":⟨user:n⟩,"list":⟨list:r⟩,"at":"⟨_time:%Y-%m-%dT%H:%M:%S.%6f%z[Z]⟩"}"#,
    "time=⟨_time:%b %e %H:%M:%S⟩: ⟨host:t⟩:⟨status:i⟩:⟨app:t⟩",
    "<⟨facility:p⟩⟨severity:v⟩>⟨host:t⟩ ⟨app:t⟩",
    "first ⟨host:t⟩\nsecond ⟨app:t⟩",
    "⟨_msg:t⟩",
];

pub(super) fn lines(seed: u64, count: u64) -> Vec<Record<'static>> {
    let mut shapes = ShapeTable::new();
    let record = |n: u64| {
        let drawn = |salt: u64, of: usize| (mix(seed ^ n ^ (salt << 40)) % of as u64) as usize;
        let shape = SHAPES[drawn(1, SHAPES.len())];
        let shape = shapes.intern(shape.as_bytes()).unwrap();
        let mut record = unlabelled(n);
        // Days, so that months and weekdays change.
        record.time = Timestamp(START_NS + (n as i64 / 3) * 7_200_000_000_000);
        let value = |(slot, spec): (usize, &logpond_record::Slot)| match &spec.kind {
            SlotKind::Time(_) | SlotKind::Null => Value::Null,
            SlotKind::Int if drawn(9, 9) == 0 => Value::Int(-5),
            SlotKind::Int | SlotKind::Facility => Value::Int(drawn(2, 3) as i64),
            SlotKind::Severity => Value::Int(drawn(3, 8) as i64),
            SlotKind::Float => Value::Float(drawn(4, 40) as f64 / 8.0 - 1.0),
            SlotKind::Bool => Value::Bool(drawn(5, 2) == 0),
            SlotKind::Json => Value::Json(["[1,\"a\"]", "{}", "[]"][drawn(6, 3)].into()),
            _ if drawn(7, 60) == 0 => Value::Str("long word 5 ".repeat(90).into()),
            _ => Value::Str(VALUES[drawn(10 + slot as u64, VALUES.len())].into()),
        };
        record.values = shape.slots().iter().enumerate().map(value).collect();
        record.message = match shape.message_slot() {
            Some(slot) => Message::Part(record.values[slot].clone()),
            None if shape.message_is_line() => Message::Line,
            None => Message::Absent,
        };
        (record.whole, record.fixes) = (None, Vec::new());
        if drawn(8, 40) == 0 && shape.slots().len() > 2 {
            let text = b"fixed-7".as_slice().into();
            record.fixes.push(Fix { slot: 0, text });
        }
        if drawn(11, 50) == 0 {
            record.whole = Some(b"kept whole 7".as_slice().into());
        }
        if drawn(12, 3) == 0 {
            let level = ["error", "warn", "odd"][drawn(13, 3)];
            record
                .labels
                .push(("level".into(), Value::Str(level.into())));
        }
        record.shape = shape;
        record
    };
    (0..count).map(record).collect()
}

const ALL: TimeRange = TimeRange {
    from: Timestamp(START_NS),
    to: Timestamp(START_NS + 1000 * 7_200_000_000_000),
};

const STEP_NS: i64 = 86_400_000_000_000;

fn assert_same(found: Patterns, expected: Patterns, seed: u64) {
    let (found, expected) = (found.finish(0), expected.finish(0));
    for (found, expected) in found.patterns.iter().zip(&expected.patterns) {
        let text = String::from_utf8_lossy(&found.text);
        assert!(
            found == expected,
            "seed {seed}: {text}, {found:?}, not {expected:?}"
        );
    }
    assert_eq!(found.distinct, expected.distinct, "seed {seed}");
}

#[test]
fn lines_have_the_patterns_of_their_records() {
    for seed in 0..8 {
        let records = lines(seed, 900);
        let segment = segment_of_blocks(&records, 1, 300);
        let directory = segment.read_directory().unwrap();
        let mut expected = Patterns::new(ALL, STEP_NS).unwrap();
        records.iter().for_each(|record| expected.add(record));
        let mut found = Patterns::new(ALL, STEP_NS).unwrap();
        let evaluator = Evaluator::new(&Filter::All, ALL).unwrap();
        let shared = SegmentScan::new(&segment, &directory, &evaluator, &SourceSet::new());
        let mut put_together = 0;
        for number in 0..directory.row_groups.len() {
            let mut scan = GroupScan::new(&shared, number);
            scan.for_each_block(|scan, selected| {
                put_together += scan.rows_by_line_template(&selected.rows)?.found.len();
                scan.add_to_patterns(&selected, &mut found)?;
                Ok(true)
            })
            .unwrap();
            assert!(scan.damages().is_empty());
        }
        assert!(put_together > 200, "{put_together} lines of seed {seed}");
        assert_same(found, expected, seed);
    }
}

/// A block that cannot be read costs its own rows; what was learned before it stays right behind it.
#[test]
fn a_damaged_block_changes_no_pattern_of_the_others() {
    let mut records = lines(3, 900);
    records.retain(|record| !matches!(record.message, Message::Part(_)));
    let file = file_of_blocks(&records, 1, 300);
    let segment = SegmentFile::open(Arc::new(file.clone())).unwrap();
    let directory = segment.read_directory().unwrap();
    let group = &directory.row_groups[0];
    // Behind the fixed columns.
    let column = 12 + directory.schema.column("status").unwrap();
    let evaluator = Evaluator::new(&Filter::All, ALL).unwrap();
    let shared = SegmentScan::new(&segment, &directory, &evaluator, &SourceSet::new());
    let mut read = 0;
    for damaged in 0..group.blocks.len() {
        let count = |is_skipped: bool| {
            let mut patterns = Patterns::new(ALL, STEP_NS).unwrap();
            let mut scan = GroupScan::new(&shared, 0);
            scan.for_each_block(|scan, selected| {
                if !(is_skipped && selected.block == damaged) {
                    scan.add_to_patterns(&selected, &mut patterns)?;
                }
                Ok(true)
            })
            .unwrap();
            (patterns, scan.damages().len())
        };
        let page = &group.columns[column].pages[damaged];
        let at = usize::try_from(page.offset).unwrap() + page.bytes as usize - 1;
        let (expected, damages) = count(true);
        assert_eq!(damages, 0);
        file.0.lock().unwrap()[at] ^= 1;
        let (found, damages) = count(false);
        file.0.lock().unwrap()[at] ^= 1;
        // Some blocks have no line with this column.
        if damages > 0 {
            assert_same(found, expected, 3);
            read += 1;
        }
    }
    assert!(read > 2, "{read} damaged pages were read");
}
