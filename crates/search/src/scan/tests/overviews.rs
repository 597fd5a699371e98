//! Overviews of segments tell what their rows do.

use super::*;

#[test]
fn overviews_count_as_rows_do() {
    let mut records = samples(9000);
    for (n, record) in records.iter_mut().enumerate() {
        // A name that only few records have goes without a column.
        let name = format!("rare-{}", n % 300);
        record.labels.push((name.into(), Value::Int(n as i64 % 3)));
        record
            .labels
            .push(("trace".into(), Value::Str(format!("t{n}").into())));
        record
            .labels
            .push(("load".into(), Value::Float(n as f64 / 2.0)));
    }
    let segment = segment_of(&records);
    let directory = segment.read_directory().unwrap();
    let overview = segment.overview(&directory).unwrap().unwrap();
    let evaluator = Evaluator::new(&Filter::All, TimeRange::ALL).unwrap();
    let shared = SegmentScan::new(&segment, &directory, &evaluator, &SourceSet::new());
    let mut stats = FieldStats::new();
    for group in 0..directory.row_groups.len() {
        let mut scan = GroupScan::new(&shared, group);
        scan.for_each_block(|scan, s| scan.add_to_fields(&s, &mut stats).map(|()| true))
            .unwrap();
    }
    let mut known = FieldStats::new();
    known.add_overview(&overview);
    let (known, stats) = (known.finish(), stats.finish());
    assert_eq!(known, stats);
    let mut told = 0;
    let names = stats.fields.iter().map(|field| &*field.name);
    for name in names.chain(["nowhere"]) {
        let mut known = Top::new(name);
        if !known.add_overview(&overview) {
            continue;
        }
        told += 1;
        let mut top = Top::new(name);
        for group in 0..directory.row_groups.len() {
            let mut scan = GroupScan::new(&shared, group);
            scan.for_each_block(|scan, s| scan.add_to_top(name, &s, &mut top).map(|()| true))
                .unwrap();
        }
        assert_eq!(known.finish(0), top.finish(0), "{name}");
    }
    assert!(told > 100, "{told} fields are told by their overview");
}
