//! Texts that are or hold a part of an id: they are found wherever they are, and few blocks are read for them.

use super::*;

const SHAPES: [&str; 3] = [
    "⟨_time:%Y-%m-%dT%H:%M:%S.%6f%z[Z]⟩ block ⟨_msg:t⟩",
    r#"{"id":"⟨id:j⟩","pid":⟨pid:i⟩}"#,
    "job ⟨_msg:t⟩",
];

fn with_ids(count: u64) -> Vec<Record<'static>> {
    let mut shapes = ShapeTable::new();
    let shapes = SHAPES.map(|text| shapes.intern(text.as_bytes()).unwrap());
    (0..count)
        .map(|n| {
            let id = mix(n);
            let text = |text: String| Value::Str(text.into());
            let kind = n as usize % 3;
            let (message, values) = match kind {
                0 => {
                    let message = text(format!("BP-{:09} of blk{id:x}x moved", id % 1_000_000_000));
                    (Message::Part(message.clone()), vec![Value::Null, message])
                }
                1 => (
                    Message::Absent,
                    vec![
                        text(format!("{id:016x}")),
                        Value::Int((id % 1_000_000) as i64),
                    ],
                ),
                _ => {
                    let message = text(format!("{id:016X}{:016X} is done", mix(id)));
                    (Message::Part(message.clone()), vec![message])
                }
            };
            Record {
                id: Id::new(1_772_409_600_000 + n, INCARNATION, n),
                time: Timestamp(START_NS + (n as i64) * 1_234_567_000),
                time_source: TimeSource::Line(Assumption::Nothing),
                received: Timestamp(START_NS + n as i64 * 1_000_000),
                message,
                shape: Arc::clone(&shapes[kind]),
                values,
                fixes: Vec::new(),
                labels: Vec::new(),
                whole: None,
            }
        })
        .collect()
}

#[test]
fn parts_of_ids_are_found_in_few_blocks() {
    let records = with_ids(24_000);
    // Each kilobyte of lines counts as one of a megabyte, so that blocks have some hundred rows.
    let segment = segment_of_blocks(&records, 1, 60);
    let directory = segment.read_directory().unwrap();
    let blocks: usize = directory
        .row_groups
        .iter()
        .map(|group| group.blocks.len())
        .sum();
    assert!(blocks > 50, "{blocks} blocks");
    let (decimal, hexadecimal) = (mix(9000) % 1_000_000_000, mix(9001));
    let long = format!("{:016X}{:016X}", mix(9002), mix(mix(9002)));
    let fraction = format!("{:06}", records[9000].time.0 / 1000 % 1_000_000);
    let queries = [
        (format!("BP-{decimal:09}"), true),
        (format!("{decimal:09}"), true),
        (format!("{decimal:09}")[2..].to_owned(), true),
        (format!("-{decimal:09} of"), true),
        (format!("{hexadecimal:016x}"), true),
        (format!("{hexadecimal:016x}")[3..12].to_owned(), true),
        (long.clone(), true),
        (long[5..25].to_owned(), true),
        (format!("i\"{}\"", long[9..20].to_lowercase()), true),
        (format!("lk{:x}", mix(9000)), true),
        ("BP-1308561380".to_owned(), false),
        ("0ab12cd34ef56".to_owned(), false),
        ("id=\"0123456789abcdef\"".to_owned(), false),
        (format!(".{fraction}"), true),
        (fraction[..5].to_owned(), true),
    ];
    for (query, is_there) in queries {
        let filter = parse(&query).unwrap_or_else(|error| panic!("{query}: {error}"));
        let wanted = wanted(&records, &filter);
        let mut expected: Vec<Id> = wanted.iter().map(|record| record.id).collect();
        expected.sort_unstable();
        let mut found = found_by(&segment, &filter);
        found.sort_unstable();
        assert_eq!(found, expected, "{query}");
        assert_eq!(!found.is_empty(), is_there, "{query}");
        let evaluator = Evaluator::new(&filter, TimeRange::ALL).unwrap();
        let shared = SegmentScan::new(&segment, &directory, &evaluator, &SourceSet::new());
        let groups = 0..directory.row_groups.len();
        let read = groups.map(|group| GroupScan::new(&shared, group).blocks().unwrap().len());
        let read: usize = read.sum();
        // A time may have any six digits.
        if !query.contains(&fraction[..5]) {
            assert!(read < 2 + blocks / 6, "{query}: {read} of {blocks} blocks");
        }
    }
}
