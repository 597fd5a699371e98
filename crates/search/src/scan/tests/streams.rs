//! How the streams of a block share its bytes, and what is no label of a stream.

use super::*;

/// Short and long lines of two streams in turns, each with what was made of it beside it.
fn short_and_long(count: u64) -> Vec<Record<'static>> {
    let text = |text: String| Value::Str(text.into());
    let like = samples(1).remove(0);
    let record = |n: u64| {
        let (app, bytes) = [("short", 14), ("long", 4000 + n as usize * 37 % 1000)][n as usize % 2];
        let line = text("x".repeat(bytes));
        Record {
            id: Id::new(1_772_409_600_000 + n, INCARNATION, n),
            time: Timestamp(START_NS + n as i64 * STEP_NS),
            values: vec![line.clone()],
            message: Message::Part(line),
            labels: vec![
                ("app".into(), text(app.into())),
                ("referer_host".into(), text(format!("host-{}", n % 5))),
                ("duration_s".into(), Value::Float(n as f64)),
            ],
            ..like.clone()
        }
    };
    (0..count).map(record).collect()
}

fn streams(records: &[Record<'_>], asked: &StreamsRequest) -> [StreamsAnswer; 2] {
    let by_column = streams_of(records, &Filter::All, asked);
    let mut by_record = Streams::new(asked.clone());
    records.iter().for_each(|record| by_record.add(record));
    [by_column, by_record.finish()]
}

/// The streams of the records of a segment that satisfy a filter.
fn streams_of(records: &[Record<'_>], filter: &Filter, asked: &StreamsRequest) -> StreamsAnswer {
    let segment = segment_of(records);
    let directory = segment.read_directory().unwrap();
    let evaluator = Evaluator::new(filter, TimeRange::ALL).unwrap();
    let shared = SegmentScan::new(&segment, &directory, &evaluator, &SourceSet::new());
    let mut by_column = Streams::new(asked.clone());
    let mut scan = GroupScan::new(&shared, 0);
    scan.for_each_block(|scan, selected| {
        scan.add_to_streams(&selected, &mut by_column)
            .map(|()| true)
    })
    .unwrap();
    by_column.finish()
}

/// A reader of one stream only learns nothing of the length of the others' lines.
#[test]
fn lines_that_are_not_selected_tell_nothing() {
    let records = short_and_long(2000);
    let filter = parse("app=short").unwrap();
    let found = streams_of(&records, &filter, &StreamsRequest::default());
    assert_eq!(found.streams.len(), 1, "{found:?}");
    assert_eq!(found.streams[0].tally.bytes, 1000 * 14);
}

#[test]
fn lines_are_as_long_as_those_of_their_stream() {
    let records = short_and_long(2000);
    let steps = Some((Timestamp(START_NS), 300 * STEP_NS));
    for steps in [None, steps] {
        let [found, expected] = streams(&records, &StreamsRequest { by: None, steps });
        assert_eq!(found.streams.len(), expected.streams.len());
        for (found, expected) in found.streams.iter().zip(&expected.streams) {
            assert_eq!(found.labels, expected.labels);
            let (found, expected) = (found.tally.bytes, expected.tally.bytes);
            assert!(
                found.abs_diff(expected) <= expected / 20,
                "{found} {expected}"
            );
        }
    }
    let [found, expected] = streams(&records, &StreamsRequest::default());
    let all = |answer: &StreamsAnswer| answer.streams.iter().map(|s| s.tally.bytes).sum::<u64>();
    assert!(
        all(&found).abs_diff(all(&expected)) <= 2,
        "a block's sum is known"
    );
}

#[test]
fn what_is_made_of_a_line_is_no_label_of_its_stream() {
    let records = short_and_long(100);
    for answer in streams(&records, &StreamsRequest::default()) {
        assert_eq!(answer.streams.len(), 2, "{answer:?}");
        let names = answer.streams[0]
            .labels
            .iter()
            .map(|(name, _)| name.to_owned());
        assert_eq!(names.collect::<Vec<_>>(), ["app", "service_name"]);
    }
    let by = Some(vec!["referer_host".into()]);
    for answer in streams(&records, &StreamsRequest { by, steps: None }) {
        assert_eq!(
            answer.streams.len(),
            5,
            "who asks for it has it: {answer:?}"
        );
    }
}
