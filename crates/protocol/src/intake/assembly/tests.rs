use super::super::group;
use super::*;
use proptest::prelude::*;

const NOW: Duration = Duration::from_secs(1);

/// A record as text: stream, line, bytes that are missing.
fn told(record: AssembledRecord<'_>) -> String {
    let cut = match record.truncated_bytes {
        0 => String::new(),
        bytes => format!(" -{bytes}"),
    };
    let stream = record.stream.name().unwrap_or("none");
    format!("{stream} {}{cut}", record.line.escape_ascii())
}

/// The records of a whole file whose lines come at the same time.
fn records(settings: &Settings, file: &str) -> Vec<String> {
    let mut assembler = Assembler::new(settings.clone());
    let mut records = Vec::new();
    let mut take = |record: AssembledRecord<'_>| records.push(told(record));
    feed(&mut assembler, file, 0, &mut take);
    assembler.finish(&mut take);
    records
}

/// Feeds the whole lines from an offset on; gives the offset behind them.
fn feed(
    assembler: &mut Assembler,
    file: &str,
    from: u64,
    take: &mut impl FnMut(AssembledRecord<'_>),
) -> u64 {
    let mut offset = from;
    for line in file[from as usize..].split_inclusive('\n') {
        assembler.push(
            line.trim_end_matches('\n').as_bytes(),
            offset,
            NOW,
            &mut *take,
        );
        offset += line.len() as u64;
    }
    offset
}

fn cri(stream: &str, tag: &str, text: &str) -> String {
    format!("2026-03-02T00:00:06.1Z {stream} {tag} {text}\n")
}

fn docker(stream: &str, is_last: bool, text: &str) -> String {
    let end = if is_last { "\\n" } else { "" };
    format!(
        "{{\"log\":\"{text}{end}\",\"stream\":\"{stream}\",\"time\":\"2026-03-02T00:00:06Z\"}}\n"
    )
}

#[test]
fn parts_are_joined_for_each_stream() {
    let file = [
        cri("stdout", "P", "one "),
        cri("stderr", "P", "two "),
        cri("stdout", "P", ""),
        cri("stderr", "F", "three"),
        cri("stdout", "F", "line"),
        cri("stdout", "F", ""),
    ];
    let settings = Settings::of(Format::Cri);
    assert_eq!(
        records(&settings, &file.concat()),
        ["stderr two three", "stdout one line", "stdout "]
    );
    let file = [
        docker("stdout", false, "2020-03-24 Single "),
        docker("stdout", false, "li"),
        docker("stdout", true, "ne"),
        docker("stderr", false, "last"),
    ];
    let settings = Settings::of(Format::Docker);
    assert_eq!(
        records(&settings, &file.concat()),
        ["stdout 2020-03-24 Single line", "stderr last"]
    );
}

#[test]
fn lines_that_do_not_fit_are_kept_and_counted() {
    let file = docker("stdout", false, "a") + "\0\0 not JSON\n" + &docker("stdout", true, "b");
    let mut assembler = Assembler::new(Settings::of(Format::Docker));
    let mut records = Vec::new();
    feed(&mut assembler, &file, 0, &mut |r| records.push(told(r)));
    assert_eq!(records, [r"none \x00\x00 not JSON", "stdout ab"]);
    let counts = assembler.take_counts();
    assert_eq!((counts.unfit, counts.cut, counts.unfinished), (1, 0, 0));
    assert_eq!(assembler.take_counts(), Counts::default());
}

#[test]
fn long_lines_are_cut_and_counted() {
    let settings = Settings {
        line_bytes_max: 8,
        ..Settings::of(Format::Cri)
    };
    let file = [
        cri("stdout", "F", "12345678"),
        cri("stdout", "F", "123456789"),
        cri("stdout", "F", "1234567é"),
        cri("stdout", "P", "12345"),
        cri("stdout", "P", "67é"),
        cri("stdout", "F", "90"),
        cri("stdout", "P", "12345"),
        cri("stdout", "F", "678"),
        "no line of a runtime\n".to_owned(),
    ];
    assert_eq!(
        records(&settings, &file.concat()),
        [
            "stdout 12345678",
            "stdout 12345678 -1",
            "stdout 1234567 -2",
            "stdout 1234567 -4",
            "stdout 12345678",
            "none no line  -12",
        ]
    );
    let mut assembler = Assembler::new(settings);
    feed(&mut assembler, &file.concat(), 0, &mut |_| {});
    assert_eq!(assembler.take_counts().cut, 4);
}

#[test]
fn a_line_without_end_is_given_at_the_hard_limit() {
    let mut assembler = Assembler::new(Settings::of(Format::Cri));
    let part = cri("stdout", "P", &"x".repeat(1 << 20));
    let mut given = Vec::new();
    for at in 0..32 {
        let start = at * part.len() as u64;
        assembler.push(part.trim_end().as_bytes(), start, NOW, &mut |r| {
            given.push((r.line.len(), r.truncated_bytes));
        });
    }
    assert_eq!(given, [(LINE_BYTES_DEFAULT, 31 << 20)]);
    assert!(!assembler.is_holding());
}

#[test]
fn what_waits_too_long_is_given() {
    let mut assembler = Assembler::new(Settings::of(Format::Cri));
    let file = cri("stdout", "P", "password: ") + &cri("stderr", "F", "a");
    let mut records = Vec::new();
    let mut take = |r: AssembledRecord<'_>| records.push(told(r));
    let end = feed(&mut assembler, &file, 0, &mut take);
    assert_eq!(assembler.held(), [Some(0), None, None]);
    assembler.flush_due(NOW + PART_WAIT - Duration::from_millis(1), &mut take);
    assert!(assembler.is_holding());
    assembler.flush_due(NOW + PART_WAIT, &mut take);
    assert!(!assembler.is_holding());
    // What comes after all is a record of its own.
    let rest = cri("stdout", "F", "x");
    assembler.push(rest.trim_end().as_bytes(), end, NOW, &mut take);
    assert_eq!(records, ["stderr a", "stdout password: ", "stdout x"]);
    assert_eq!(assembler.take_counts().unfinished, 1);
}

#[test]
fn fields_are_beside_the_line() {
    let mut batch = Batch::new(EntryKind::Enveloped, Vec::new());
    let line = r#"{"log":"a long line\n","stream":"stderr","attrs":{"tag":"x"},"time":"2026-03-02T00:00:06Z"}"#;
    let settings = Settings {
        line_bytes_max: 6,
        ..Settings::of(Format::Docker)
    };
    let mut assembler = Assembler::new(settings);
    assembler.push(line.as_bytes(), 0, NOW, &mut |r| r.push_to(&mut batch));
    let held = batch.iter().next().unwrap();
    let (kind, envelope, line) = logpond_record::envelope::open(held).unwrap();
    assert_eq!((kind, line), (EntryKind::Line, &b"a long"[..]));
    assert_eq!(envelope.time, Some(Timestamp(1_772_409_606_000_000_000)));
    let fields: Vec<_> = envelope
        .fields()
        .map(|(name, value)| format!("{name}={}", String::from_utf8_lossy(&value.to_text())))
        .collect();
    assert_eq!(fields, ["stream=stderr", "_truncated_bytes=11", "tag=x"]);
}

/// A part of no stream, and a line that does not fit behind it, which is no part of it.
#[test]
fn lines_that_do_not_fit_are_given_once() {
    let file = "{\"log\":\"a\"}\nnone\n{\"log\":\"b\\n\"}\n";
    let settings = Settings::of(Format::Docker);
    let mut found = Vec::new();
    let mut take = |r: AssembledRecord<'_>| found.push(told(r));
    let mut first = Assembler::new(settings.clone());
    let end = feed(&mut first, &file[..17], 0, &mut take);
    let mut second = Assembler::resume(settings, end, first.held());
    let from = second.reads_from();
    feed(&mut second, file, from, &mut take);
    assert_eq!((from, end), (0, 17));
    assert_eq!(found, ["none none", "none ab"]);
}

#[test]
fn lines_of_a_record_are_put_together_for_each_stream() {
    let settings = Settings {
        rule: Some(Rule::stacktrace()),
        ..Settings::of(Format::Cri)
    };
    let file = [
        cri("stdout", "F", "one"),
        cri("stderr", "F", "failed"),
        cri("stdout", "F", "two"),
        cri("stderr", "P", "java.lang.Err"),
        cri("stderr", "F", "or: x"),
        "no line of a runtime\n".to_owned(),
        cri("stderr", "F", "\tat a.b(c:1)"),
        cri("stderr", "F", "next"),
    ];
    assert_eq!(
        records(&settings, &file.concat()),
        [
            "stdout one",
            "none no line of a runtime",
            r"stderr failed\njava.lang.Error: x\n\tat a.b(c:1)",
            "stdout two",
            "stderr next",
        ]
    );
}

#[test]
fn records_have_bounds() {
    let settings = Settings {
        rule: Some(Rule::indent()),
        line_bytes_max: 8,
        ..Settings::of(Format::Lines)
    };
    let file = "a\n bc\n def\n gh\n123456789\n i\nj\n";
    assert_eq!(
        records(&settings, file),
        [
            r"none a\n bc",
            r"none  def\n gh",
            "none 12345678 -1",
            "none  i",
            "none j"
        ]
    );
    let settings = Settings {
        rule: Some(Rule::indent()),
        ..Settings::of(Format::Lines)
    };
    let many = "a\n".to_owned() + &" \n".repeat(group::RECORD_LINES_MAX);
    let mut assembler = Assembler::new(settings);
    let mut lines = Vec::new();
    let mut take =
        |r: AssembledRecord<'_>| lines.push(r.line.iter().filter(|b| **b == b'\n').count());
    feed(&mut assembler, &many, 0, &mut take);
    assembler.finish(&mut take);
    assert_eq!(lines, [group::RECORD_LINES_MAX - 1, 0]);
    assert_eq!(assembler.take_counts().split, 1);
}

#[test]
fn a_record_waits_a_moment_for_more_lines() {
    let settings = Settings {
        rule: Some(Rule::indent()),
        ..Settings::of(Format::Cri)
    };
    let mut assembler = Assembler::new(settings);
    let mut records = Vec::new();
    let mut take = |r: AssembledRecord<'_>| records.push(told(r));
    let end = feed(&mut assembler, &cri("stdout", "F", "a"), 0, &mut take);
    assembler.flush_due(NOW + RECORD_WAIT / 2, &mut take);
    assert_eq!(assembler.held(), [Some(0), None, None]);
    // While a line of it is on its way, it waits for that.
    let file = cri("stdout", "F", "a") + &cri("stdout", "P", " b");
    feed(&mut assembler, &file, end, &mut take);
    assembler.flush_due(NOW + RECORD_WAIT, &mut take);
    assert_eq!(assembler.held(), [Some(0), None, None]);
    assembler.flush_due(NOW + PART_WAIT, &mut take);
    assert_eq!(records, [r"stdout a\n b"]);
    assert!(!assembler.is_holding());
}

/// Lines that are held where a file ends go into the next one with their record.
#[test]
fn held_lines_are_carried() {
    let settings = Settings {
        rule: Some(Rule::auto()),
        ..Settings::of(Format::Lines)
    };
    let mut found = Vec::new();
    let mut take = |r: AssembledRecord<'_>| found.push(told(r));
    let mut before = Assembler::new(settings.clone());
    feed(&mut before, "java.lang.Error: x\ny\n", 0, &mut take);
    assert_eq!(before.held(), [None, None, Some(0)]);
    let mut next = Assembler::new(settings);
    next.carry_on(&mut before, [true; 3]);
    assert!(!before.is_holding() && next.carried()[2]);
    feed(&mut next, "\tat b.c(d:1)\nINFO next\nlast\n", 0, &mut take);
    next.finish(&mut take);
    assert_eq!(
        found,
        [
            r"none java.lang.Error: x\ny\n\tat b.c(d:1)",
            "none INFO next",
            "none last"
        ]
    );
}

/// A line that a runtime read later than the wait is another record.
#[test]
fn late_lines_are_apart() {
    let settings = Settings {
        rule: Some(Rule::stacktrace()),
        ..Settings::of(Format::Cri)
    };
    let file = "2026-03-02T00:00:06Z stdout F a\n\
                2026-03-02T00:00:07Z stdout F  b\n\
                2026-03-02T00:00:08.1Z stdout F  c\n";
    assert_eq!(records(&settings, file), [r"stdout a\n b", "stdout  c"]);
}

/// Lines that rules know.
const SHAPED: [&str; 8] = [
    "2026-03-02 00:00:06 a",
    "java.lang.Error: a",
    "    at a.b(c:1)",
    "Caused by: a",
    "Traceback (most recent call last):",
    "  File a",
    "ERROR: a",
    "{",
];

/// Lines of two streams, each in parts, as tokens that are laid between each other.
fn parts() -> impl Strategy<Value = Vec<(bool, bool, String)>> {
    let text = prop_oneof![
        "[a-cé ]{0,5}",
        proptest::sample::select(&SHAPED[..]).prop_map(str::to_owned)
    ];
    proptest::collection::vec((any::<bool>(), any::<bool>(), text), 0..24)
}

fn file_of(parts: &[(bool, bool, String)], format: Format) -> String {
    let line = |(is_error, is_last, text): &(bool, bool, String)| {
        let stream = if *is_error { "stderr" } else { "stdout" };
        match format {
            Format::Cri => cri(stream, if *is_last { "F" } else { "P" }, text),
            _ => docker(stream, *is_last, text),
        }
    };
    parts.iter().map(line).collect()
}

proptest! {
    /// Each stream's lines are its texts, joined up to each last part, however the streams are mixed.
    #[test]
    fn streams_do_not_matter_to_each_other(parts in parts(), is_cri in any::<bool>()) {
        let format = if is_cri { Format::Cri } else { Format::Docker };
        let found = records(&Settings::of(format), &file_of(&parts, format));
        for (is_error, name) in [(false, "stdout"), (true, "stderr")] {
            let mut expected = Vec::new();
            let mut open: Option<String> = None;
            for (_, is_last, text) in parts.iter().filter(|(e, _, _)| *e == is_error) {
                open.get_or_insert_default().push_str(text);
                if *is_last {
                    expected.extend(open.take());
                }
            }
            expected.extend(open);
            let expected = expected.iter().map(|l| format!("{name} {}", l.as_bytes().escape_ascii()));
            let found = found.iter().filter(|r| r.starts_with(name)).cloned();
            prop_assert_eq!(found.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
        }
    }

    /// Reading that is interrupted anywhere, and resumed from what was held, gives the same records.
    #[test]
    fn interruptions_do_not_matter(
        parts in parts(),
        is_cri in any::<bool>(),
        stops in proptest::collection::vec(0usize..24, 0..4),
        max in 1usize..120,
        number in 0usize..4,
    ) {
        let format = if is_cri { Format::Cri } else { Format::Docker };
        let rules = [None, Some(Rule::indent()), Some(Rule::stacktrace()), Some(Rule::auto())];
        let rule = rules[number].clone();
        let settings = Settings { line_bytes_max: max, rule, ..Settings::of(format) };
        let file = file_of(&parts, format);
        let mut stops: Vec<usize> = stops.into_iter().map(|s| s.min(parts.len())).collect();
        stops.sort_unstable();
        let mut found = Vec::new();
        let mut take = |r: AssembledRecord<'_>| found.push(told(r));
        let (mut offset, mut held) = (0, [None; 3]);
        for stop in stops.into_iter().chain([parts.len()]) {
            let end = file_of(&parts[..stop], format).len();
            let mut assembler = Assembler::resume(settings.clone(), offset, held);
            assembler.learn(file.as_bytes());
            let from = assembler.reads_from();
            offset = feed(&mut assembler, &file[..end], from, &mut take);
            held = assembler.held();
            if end == file.len() {
                assembler.finish(&mut take);
                held = [None; 3];
            }
        }
        prop_assert_eq!(found, records(&settings, &file));
    }
}
