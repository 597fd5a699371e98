//! Pattern tables of segments tell what their rows do.

use logpond_segment::build::{self, SUFFIX_LIVE};
use logpond_segment::disk::Disk;
use logpond_segment::mem_disk::MemDisk;
use logpond_segment::tally::Tally;

use super::line_patterns::lines;
use super::overviews::add_severity;
use super::*;
use crate::aggregate::{Patterns, PatternsAnswer};

const MINUTE_NS: i64 = 60_000_000_000;

/// Records of a few hundred patterns, some of which come in each of several segments.
fn records(seed: u64, count: u64) -> Vec<Record<'static>> {
    let lines = lines(seed, 300);
    let messages = samples(700);
    let texts = ["up", "went down 7 times", "two\nlines", "ends ", "é 7"];
    let record = |n: u64| {
        let drawn = mix(seed ^ n);
        let mut record = match drawn % 3 {
            0 => {
                let mut record = lines[(drawn >> 8) as usize % lines.len()].clone();
                let mut slots = record.shape.slots().iter();
                // Else there would be too many kinds.
                if slots.any(|slot| slot.kind == SlotKind::Severity) {
                    record.labels.clear();
                }
                record
            }
            1 => messages[(drawn >> 8) as usize % messages.len()].clone(),
            _ => {
                let mut record = unlabelled(n);
                let text = texts[(drawn >> 8) as usize % texts.len()];
                let long = "a very long message ".repeat((drawn >> 16) as usize % 3 * 20);
                let text = Value::Str(format!("{long}{text} {}", drawn >> 58).into());
                record.shape = Arc::new(Shape::text());
                record.message = Message::Part(text.clone());
                record.values = vec![text];
                (record.whole, record.fixes) = (None, Vec::new());
                add_severity(&mut record, drawn >> 32);
                record
            }
        };
        let of = unlabelled(n);
        (record.id, record.received) = (of.id, of.received);
        // Some of the same time.
        record.time = Timestamp(START_NS + (n / 4) as i64 * 19_000_000_000);
        // So that a table is a small part of the file.
        let padding: String = (0..60)
            .map(|at| format!("{:016x}", mix(drawn ^ at)))
            .collect();
        record
            .labels
            .push(("padding".into(), Value::Str(padding.into())));
        record
    };
    (0..count).map(record).collect()
}

/// Writes a segment of these records, the first of which has this number.
fn write(disk: &MemDisk, id: Id, sequence: u64, first: u64, records: &[Record<'_>]) -> SegmentFile {
    let mut builder = RowsBuilder::new();
    let mut tally = Tally::default();
    for (record, number) in records.iter().zip(first..) {
        let mut line = Vec::new();
        record.write_line(&mut line);
        builder.push(record, number, 0, line.len());
        tally.add_row(record.id, &line);
    }
    let counts = builder.counts();
    let schema = counts.schema();
    let entry = SourceEntry {
        source: source(sequence),
        rows: tally.rows,
        hash: tally.hash_sum,
        retry: None,
    };
    disk.create_directory(build::DIRECTORY).unwrap();
    let path = build::path(id, SUFFIX_LIVE);
    let file = disk.create(&path).unwrap();
    let mut writer =
        SegmentWriter::new(file, id, Profile::Hot, counts, schema.clone(), vec![entry]).unwrap();
    writer.write(&builder.take(&schema)).unwrap();
    writer.finish().unwrap();
    build::open(disk, id).unwrap()
}

fn empty(step_ns: i64) -> Patterns {
    let range = TimeRange {
        from: Timestamp(START_NS),
        to: Timestamp(START_NS + 3000 * MINUTE_NS),
    };
    Patterns::new(range, step_ns).unwrap()
}

fn of_rows(segment: &SegmentFile, step_ns: i64) -> Patterns {
    let directory = segment.read_directory().unwrap();
    let evaluator = Evaluator::new(&Filter::All, TimeRange::ALL).unwrap();
    let shared = SegmentScan::new(segment, &directory, &evaluator, &SourceSet::new());
    let mut patterns = empty(step_ns);
    for group in 0..directory.row_groups.len() {
        let mut scan = GroupScan::new(&shared, group);
        scan.for_each_block(|scan, s| scan.add_to_patterns(&s, &mut patterns).map(|()| true))
            .unwrap();
        assert!(scan.damages().is_empty());
    }
    patterns
}

/// The patterns that its table tells; `None` if it has none.
fn of_table(segment: &SegmentFile, step_ns: i64) -> Option<Patterns> {
    let directory = segment.read_directory().unwrap();
    let table = segment.patterns(&directory).unwrap()?;
    assert_eq!(table.rows(), segment.manifest().rows);
    let mut patterns = empty(step_ns);
    (patterns.may_be_of_tables() && patterns.add_table(&table)).then_some(patterns)
}

fn assert_same(found: Patterns, expected: Patterns, what: &str) {
    for count in [1, 50, 10_000] {
        let answers = [&found, &expected].map(|patterns| patterns.clone().finish(count));
        let [found, expected]: [PatternsAnswer; 2] = answers;
        assert_eq!(found.distinct, expected.distinct, "{what}");
        assert_eq!(found.patterns.len(), expected.patterns.len(), "{what}");
        for (found, expected) in found.patterns.iter().zip(&expected.patterns) {
            assert!(found == expected, "{what}: {found:?}, not {expected:?}");
        }
    }
}

const STEPS: [i64; 4] = [MINUTE_NS, 15 * MINUTE_NS, 180 * MINUTE_NS, 1440 * MINUTE_NS];

#[test]
fn tables_count_as_rows_and_records_do() {
    for seed in 0..3 {
        let records = records(seed, 9000);
        let segment = write(&MemDisk::new(), Id(1), 0, 0, &records);
        let mut told = 0;
        for step_ns in STEPS {
            let Some(found) = of_table(&segment, step_ns) else {
                continue;
            };
            told += 1;
            let mut expected = empty(step_ns);
            records.iter().for_each(|record| expected.add(record));
            assert_same(found, expected, &format!("records of {seed}, {step_ns}"));
            let found = of_table(&segment, step_ns).unwrap();
            assert_same(
                found,
                of_rows(&segment, step_ns),
                &format!("rows of {seed}"),
            );
        }
        assert!(told >= 2, "{told} steps of {seed}");
        assert!(of_table(&segment, MINUTE_NS / 2).is_none());
    }
}

/// Tables of merged segments are made of those of their inputs, or of the rows if an input lacks one.
#[test]
fn tables_of_merged_segments_count_as_their_rows_do() {
    let disk = MemDisk::new();
    let all = records(7, 30_000);
    let cuts = [0, 9000, 19_000, 20_000, 30_000];
    let mut inputs = Vec::new();
    for (number, cut) in cuts.windows(2).enumerate() {
        let (from, to) = (cut[0], cut[1]);
        let id = Id(10 + number as u128);
        inputs.push(write(&disk, id, number as u64, from as u64, &all[from..to]));
    }
    let has_table = |segment: &SegmentFile| {
        let directory = segment.read_directory().unwrap();
        directory.patterns.is_some()
    };
    let have: Vec<bool> = inputs.iter().map(has_table).collect();
    assert_eq!(have, [true, true, false, true], "the third one is small");
    let large = [inputs.remove(0), inputs.remove(0)];
    let merge = |id: u128, inputs: &[SegmentFile], profile: Profile| {
        build::merge(&disk, Id(id), inputs, profile, &|| false).unwrap();
        build::open(&disk, Id(id)).unwrap()
    };
    let added = merge(20, &large, Profile::Hot);
    let counted = merge(21, &inputs, Profile::Cold);
    let cold = merge(22, &[added, counted], Profile::Cold);
    for segment in [&cold, &inputs[1]] {
        let mut told = 0;
        for step_ns in STEPS {
            if let Some(found) = of_table(segment, step_ns) {
                told += 1;
                assert_same(found, of_rows(segment, step_ns), &format!("{step_ns}"));
            }
        }
        assert!(told > 0, "days are told in any case");
    }
    // Rows of a table and of a segment without one count together.
    let mut found = of_table(&cold, STEPS[3]).unwrap();
    found.merge(of_rows(&inputs[0], STEPS[3]));
    let mut expected = of_rows(&cold, STEPS[3]);
    expected.merge(of_rows(&inputs[0], STEPS[3]));
    assert_same(found, expected, "both");
}

/// Rows of sources that are left out are in no table.
#[test]
fn a_trimmed_segment_counts_the_rows_that_it_has() {
    let disk = MemDisk::new();
    let all = records(9, 20_000);
    let first = write(&disk, Id(1), 0, 0, &all[..10_000]);
    let second = write(&disk, Id(2), 1, 10_000, &all[10_000..]);
    build::merge(&disk, Id(3), &[first, second], Profile::Hot, &|| false).unwrap();
    let merged = build::open(&disk, Id(3)).unwrap();
    let left_out = [source(0)].into_iter().collect();
    build::trim(&disk, Id(4), &merged, &left_out, Profile::Hot, &|| false).unwrap();
    let trimmed = build::open(&disk, Id(4)).unwrap();
    let found = of_table(&trimmed, STEPS[3]).unwrap();
    let mut expected = empty(STEPS[3]);
    all[10_000..].iter().for_each(|record| expected.add(record));
    assert_same(found, expected, "trimmed");
}
