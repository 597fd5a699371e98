//! Overviews and timelines of segments tell what their rows do.

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

/// A record's severity in one of the places that senders have for it, or in several.
pub(super) fn add_severity(record: &mut Record<'static>, n: u64) {
    let text = |text: &str| Value::Str(text.to_owned().into());
    let levels = ["info", "WARN", "err", "shouted", ""];
    let level = levels[n as usize / 3 % levels.len()];
    let field = match n % 8 {
        0 => ("level", text(level)),
        1 => ("@level", text(level)),
        2 => ("level@label", text(level)),
        3 => ("lvl", Value::Float(30.0)),
        4 => ("lvl", Value::Int(50)),
        5 => ("lvl", Value::Float(0.5)),
        6 => ("Level", Value::Null),
        _ => return,
    };
    record.labels.push((field.0.into(), field.1));
    if n % 1000 == 7 {
        // So rare that it goes without a column.
        record.labels.push(("log.level".into(), text("fatal")));
    }
}

#[test]
fn timelines_count_as_rows_do() {
    let mut records = samples(9000);
    for (n, record) in records.iter_mut().enumerate() {
        add_severity(record, n as u64);
        record.time = Timestamp(START_NS + n as i64 * 700_000_000);
    }
    let segment = segment_of(&records);
    let directory = segment.read_directory().unwrap();
    let timeline = segment.timeline(&directory).unwrap().unwrap();
    assert!(timeline.kinds().is_some_and(|kinds| kinds.len() > 20));
    let evaluator = Evaluator::new(&Filter::All, TimeRange::ALL).unwrap();
    let shared = SegmentScan::new(&segment, &directory, &evaluator, &SourceSet::new());
    let times = records.iter().map(|record| record.time);
    let (first, last) = (times.clone().min().unwrap(), times.max().unwrap());
    let range = TimeRange {
        from: Timestamp(first.0 - 1),
        to: Timestamp(last.0 + 1),
    };
    let fields = [None, Some("_level")];
    for (step_s, by) in [60, 600, 86_400]
        .into_iter()
        .flat_map(|step| fields.map(|by| (step, by)))
    {
        let empty = || {
            let histogram = Histogram::new(range, step_s * 1_000_000_000, 0).unwrap();
            match by {
                Some(field) => histogram.split_by(field),
                None => histogram,
            }
        };
        let mut known = empty();
        assert!(known.may_be_of_timelines() && known.add_timeline(&timeline));
        let mut counted = empty();
        for group in 0..directory.row_groups.len() {
            let mut scan = GroupScan::new(&shared, group);
            scan.for_each_block(|scan, s| scan.add_to_histogram(&s, &mut counted).map(|()| true))
                .unwrap();
        }
        assert_eq!(known.finish(), counted.finish(), "{step_s} {by:?}");
    }
    // Neither of these is told by minutes.
    let minute_ns = 60_000_000_000;
    for (step, phase, by) in [
        (minute_ns / 2, 0, "_level"),
        (minute_ns, 1, "_level"),
        (minute_ns, 0, "app"),
        (minute_ns, 0, "service_name"),
    ] {
        let histogram = Histogram::new(range, step, phase).unwrap().split_by(by);
        assert!(!histogram.may_be_of_timelines(), "{step} {phase} {by}");
        assert!(
            !histogram.clone().add_timeline(&timeline),
            "{step} {phase} {by}"
        );
    }
}
