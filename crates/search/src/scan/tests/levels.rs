//! The severity of records with several fields that may say it, of which some say a word that is no level.

use super::*;

/// Records with texts for three fields that may say the severity; nothing is no field.
fn levels() -> Vec<Record<'static>> {
    let firsts = [None, Some("odd"), Some("warn"), Some("")];
    let seconds = [None, Some("error"), Some("later")];
    let mut records = Vec::new();
    for n in 0..96 {
        let mut record = unlabelled(n);
        let fields = [
            ("level", firsts[n as usize % 4]),
            ("severity", seconds[n as usize / 4 % 3]),
            ("PRIORITY", [None, Some("6")][n as usize / 12 % 2]),
        ];
        let fields = fields.into_iter();
        let present = fields.filter_map(|(name, text)| Some((name, text?)));
        let labels = present.map(|(name, text)| (name.into(), Value::Str(text.into())));
        record.labels.extend(labels);
        records.push(record);
    }
    records
}

#[test]
fn the_first_text_decides_also_if_it_is_no_level() {
    let records = levels();
    let segment = segment_of(&records);
    let directory = segment.read_directory().unwrap();
    let evaluator = Evaluator::new(&Filter::All, TimeRange::ALL).unwrap();
    let shared = SegmentScan::new(&segment, &directory, &evaluator, &SourceSet::new());
    let range = TimeRange {
        from: Timestamp(START_NS),
        to: Timestamp(START_NS + 96 * STEP_NS),
    };
    for field in ["_level", "_level_number"] {
        let histogram = || {
            Histogram::new(range, 10 * STEP_NS, 0)
                .unwrap()
                .split_by(field)
        };
        let (mut top, mut top_of_rows) = (Top::new(field), Top::new(field));
        let (mut steps, mut steps_of_rows) = (histogram(), histogram());
        for record in &records {
            top.add(record);
            steps.add(record);
        }
        let mut scan = GroupScan::new(&shared, 0);
        scan.for_each_block(|scan, selected| {
            scan.add_to_top(field, &selected, &mut top_of_rows)?;
            scan.add_to_histogram(&selected, &mut steps_of_rows)?;
            Ok(true)
        })
        .unwrap();
        assert_eq!(top_of_rows.finish(0), top.clone().finish(0), "{field}");
        assert_eq!(steps_of_rows.finish(), steps.finish(), "{field}");
        // A quarter begins with a word that is no level, and has no number.
        let odd = top.clone().finish(0);
        let odd = odd.rows.iter().find(|row| &*row.value == b"odd");
        let expected = Some(24).filter(|_| field == "_level");
        assert_eq!(odd.map(|row| row.count), expected);
    }
}
