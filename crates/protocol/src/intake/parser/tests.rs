use logpond_record::{Assumption, Batch, EntryKind, Envelope, Id, Labels, Timestamp, line_of};
use proptest::prelude::*;

use super::*;
use crate::intake::fuzz;

/// 2026-03-02T00:00:00Z.
pub(crate) const RECEIVED: Timestamp = Timestamp(1_772_409_600_000_000_000);

/// A line that was sent alone.
pub(crate) fn entry<'a>(kind: EntryKind, labels: &'a Labels, raw: &'a [u8]) -> Entry<'a> {
    Entry {
        id: Id::MIN,
        received: RECEIVED,
        kind,
        labels,
        envelope: Envelope::default(),
        raw,
    }
}

/// What a line becomes, in a form that tables can state: shape, fields, message, and marks for
/// what is unusual.
pub(crate) fn describe(kind: EntryKind, raw: &[u8]) -> String {
    let labels = Labels::new();
    let record = Parser::new().parse(&entry(kind, &labels, raw));
    assert!(rebuilds(&record, raw));
    describe_record(&record)
}

pub(crate) fn describe_record(record: &Record<'_>) -> String {
    let text = |bytes: &[u8]| {
        bytes
            .escape_ascii()
            .to_string()
            .replace("\\\"", "\"")
            .replace("\\'", "'")
    };
    let mut out = String::new();
    if record.time_source != TimeSource::Received {
        let (seconds, nanos) = record.time.seconds();
        let seconds = format!("{seconds}.{nanos:09}");
        let seconds = seconds.trim_end_matches('0').trim_end_matches('.');
        out += &format!("{}={seconds} ", record.time_source.as_str());
    }
    for (name, value) in record.fields() {
        out += &format!("{name}={} ", text(&value.to_text()));
    }
    match &record.message {
        Message::Absent => out += "| none",
        Message::Line => out += "| line",
        Message::Part(message) => out += &format!("| {}", text(&message.to_text())),
    }
    for fix in &record.fixes {
        out += &format!(" fix{}={}", fix.slot, text(&fix.text));
    }
    if record.whole.is_some() {
        out += " whole";
    }
    out
}

/// The mark of byte order that a file begins with is no part of what its first line says.
#[test]
fn a_mark_of_byte_order_hides_nothing() {
    let lines = [
        r#"{"time":"2026-03-01T10:00:00Z","level":"error","msg":"a","password":"b"}"#,
        "ts=2026-03-01T10:00:00Z level=info msg=a",
        "10.0.0.1 - - [02/Mar/2026:00:00:06 +0000] \"GET / HTTP/1.1\" 200 5",
        "2026-03-01 10:00:00,123 ERROR [main] a.B - c",
    ];
    for line in lines {
        let plain = describe(EntryKind::Line, line.as_bytes());
        let marked = [b"\xef\xbb\xbf", line.as_bytes()].concat();
        let marked = describe(EntryKind::Line, &marked);
        let marked = marked.trim_end_matches(" whole");
        // The message that is the whole line is written out.
        assert_eq!(
            marked.split(" |").next(),
            plain.split(" |").next(),
            "{line}"
        );
    }
}

/// A sender's time replaces that of the line, whose text stays; its fields come before those of the
/// batch.
#[test]
fn envelopes_say_time_and_fields() {
    let access = "10.0.0.1 - - [02/Mar/2026:00:00:06 +0000] \"GET / HTTP/1.1\" 200 5";
    let app = "app";
    let table: [(EntryKind, &str, usize, &str); 6] = [
        (EntryKind::Line, "plain", 0, app),
        (
            EntryKind::Line,
            "2026-03-01T10:00:00Z plain with a time",
            0,
            app,
        ),
        (
            EntryKind::Json,
            r#"{"time":"2026-03-01T10:00:00Z","_msg":"a"}"#,
            1,
            app,
        ),
        (
            EntryKind::Line,
            "ts=2026-03-01T10:00:00Z level=info msg=a",
            1,
            app,
        ),
        (
            EntryKind::Syslog,
            "<13>1 2026-03-01T10:00:00Z ash app - - - a",
            1,
            // The header says one, too.
            "app@label",
        ),
        (EntryKind::Line, access, 1, app),
    ];
    let said = Timestamp(RECEIVED.0 - 77_000_000_123);
    let labels: Labels = vec![("app".into(), "batch".into()), ("own".into(), "x".into())];
    let fields = [("app", Value::Str("sender".into())), ("n", Value::Int(7))];
    for (kind, line, fixes, app) in table {
        let mut batch = Batch::new(EntryKind::Enveloped, labels.clone());
        let each = fields.iter().map(|(name, value)| (*name, value));
        assert_eq!(
            batch.push_enveloped(kind, Some(said), each, line.as_bytes()),
            0
        );
        let held = batch.iter().next().unwrap();
        let (found, envelope, raw) = line_of(batch.kind, held);
        assert_eq!((found, raw), (kind, line.as_bytes()));
        let record = Parser::new().parse(&Entry {
            id: Id::MIN,
            received: RECEIVED,
            kind: found,
            labels: &labels,
            envelope,
            raw,
        });
        assert!(rebuilds(&record, raw), "{line}");
        assert_eq!(
            (record.time, record.time_source),
            (said, TimeSource::Header(Assumption::Nothing))
        );
        assert_eq!(record.fixes.len(), fixes, "{line}: {:?}", record.fixes);
        let own = record
            .labels
            .iter()
            .map(|(name, value)| (&**name, value.to_text()));
        let own: Vec<(&str, String)> = own
            .map(|(name, value)| (name, String::from_utf8(value.into_owned()).unwrap()))
            .collect();
        let expected = [(app, "sender"), ("n", "7"), (app, "batch"), ("own", "x")];
        assert_eq!(own, expected.map(|(name, value)| (name, value.to_owned())));
    }
}

#[test]
fn lines_are_told_apart() {
    let table: [(&[u8], &str); 12] = [
        (b"", "| "),
        (b"plain text", "| plain text"),
        (b"{\"a\":1}", "a=1 | none"),
        (b"{\"a\":1", "| {\"a\":1"),
        (b"{not json}", "| {not json}"),
        (b"[1,2]", "| [1,2]"),
        (b"<13>no header", "| <13>no header"),
        (
            b"<14>1 2026-03-02T00:00:00Z h a p m - x",
            "header=1772409600 facility=1 severity=6 hostname=h app=a procid=p msgid=m | x",
        ),
        (b"a=1 b=\"x y\"", "a=1 b=x y | line"),
        (
            b"2026-03-02 00:00:06 x",
            "line-zone-assumed=1772409606 | 2026-03-02 00:00:06 x",
        ),
        (b"\xff\xfeh\0i\0", "| \\xff\\xfeh\\x00i\\x00"),
        (b"{\"a\":\"\xff\"}", "| {\"a\":\"\\xff\"}"),
    ];
    for (line, expected) in table {
        assert_eq!(
            describe(EntryKind::Line, line),
            expected,
            "{}",
            line.escape_ascii()
        );
    }
}

#[test]
fn labels_are_fields_behind_those_of_the_line() {
    let labels: Labels = vec![
        ("hostname".into(), "label".into()),
        ("file".into(), "f".into()),
    ];
    let entry = Entry {
        id: Id::MIN,
        received: RECEIVED,
        kind: EntryKind::Syslog,
        labels: &labels,
        envelope: Envelope::default(),
        raw: b"<14>1 - header - - - - x",
    };
    let record = Parser::new().parse(&entry);
    assert_eq!(record.field("hostname"), Some(&Value::Str("header".into())));
    assert_eq!(record.field("file"), Some(&Value::Str("f".into())));
}

/// Names with texts.
type Pairs = &'static [(&'static str, &'static str)];

/// A line, the labels that it was sent with, those of its batch, and the fields of its record.
const LABELS_APART: [(&str, Pairs, Pairs, &str); 14] = [
    // Metadata and a label of one name, beside a line that has it, too.
    (
        r#"{"app":"y"}"#,
        &[("app", "meta"), ("app@label", "real")],
        &[],
        "app=y app@label=meta app@label@label=real",
    ),
    (
        r#"{"app":"y"}"#,
        &[
            ("app@label", "real"),
            ("app", "meta"),
            ("app@label@label", "first"),
        ],
        &[],
        "app=y app@label@label=real app@label=meta app@label@label@label=first",
    ),
    (
        r#"{"app":"y","n":1}"#,
        &[("app", "a"), ("job", "j")],
        &[],
        "app=y n=1 app@label=a job=j",
    ),
    (r#"{"app":"a"}"#, &[("app", "a")], &[], "app=a app@label=a"),
    (
        r#"{"app":null}"#,
        &[("app", "a")],
        &[],
        "app=null app@label=a",
    ),
    (r#"{"app":"y"}"#, &[("app", "")], &[], "app=y app="),
    (
        r#"{"app@label":"y"}"#,
        &[("app", "a")],
        &[],
        "app@label=y app@label@label=a",
    ),
    (
        "file=x.go hostname=h n=1",
        &[],
        &[("file", "/f"), ("hostname", "peer")],
        "file=x.go hostname=h n=1 file@label=/f hostname=peer",
    ),
    (
        r#"{"hostname":"h"}"#,
        &[("hostname", "sent")],
        &[("hostname", "peer")],
        "hostname=h hostname@label=sent hostname=peer",
    ),
    (
        r#"{"severity":"ERROR","app":"y"}"#,
        &[
            ("PRIORITY", "6"),
            ("severity", "6"),
            ("_COMM", "c"),
            ("app", "a"),
        ],
        &[],
        "severity=ERROR app=y PRIORITY=6 severity=6 _COMM=c app@label=a",
    ),
    ("plain", &[("_msg", "a")], &[], "_msg@label=a"),
    (
        r#"{"_gap":1,"msg":"m"}"#,
        &[("_gap", "a"), ("_trailer", "b")],
        &[("_id", "c"), ("_time", "")],
        "_gap@label=1 _gap@label@label=a _trailer@label=b _id@label=c _time@label=",
    ),
    // Only the server itself declares it for a batch: that of a sender has another name before.
    (
        r#"{"_rule":"forged","a":1}"#,
        &[("_rule", "x")],
        &[],
        "_rule@label=forged a=1 _rule@label@label=x",
    ),
    (
        r#"{"value":1,"_rule@label":2}"#,
        &[],
        &[("_rule", "own")],
        "value=1 _rule@label=2 _rule=own",
    ),
];

/// A line keeps the names of its fields, and no label of its sender is lost for that; but what only
/// stands in for what a line does not say yields to the line.
#[test]
fn labels_are_set_apart_from_fields_of_the_line() {
    for (line, own, of_batch, expected) in LABELS_APART {
        let own = own
            .iter()
            .map(|(name, text)| (*name, Value::Str((*text).into())));
        let own: Vec<(&str, Value<'_>)> = own.collect();
        let mut batch = Batch::new(EntryKind::Enveloped, Labels::new());
        let each = own.iter().map(|(name, value)| (*name, value));
        batch.push_enveloped(EntryKind::Line, None, each, line.as_bytes());
        let (kind, envelope, raw) = line_of(batch.kind, batch.iter().next().unwrap());
        let of_batch = of_batch.iter();
        let labels: Labels = of_batch.map(|(n, v)| ((*n).into(), (*v).into())).collect();
        let entry = Entry {
            envelope,
            ..entry(kind, &labels, raw)
        };
        let record = Parser::new().parse(&entry);
        let described = describe_record(&record);
        let (fields, _) = described.rsplit_once(" | ").unwrap();
        assert_eq!(fields, expected, "{line}");
        // Rules seal again what was sent.
        let as_sent = Parser::new().parse_as_sent(&entry);
        let names = as_sent.labels.iter().map(|(name, _)| &**name);
        let sent = own.iter().map(|(name, _)| *name);
        assert!(names.eq(sent.chain(labels.iter().map(|(name, _)| &**name))));
    }
}

#[test]
fn an_entry_whose_reading_panics_is_kept_without_fields() {
    let labels: Labels = vec![("app".into(), "web".into())];
    let line = br#"{"level":"info","ts":"2026-03-02T00:00:00Z"}"#;
    let entry = entry(EntryKind::Line, &labels, line);
    let mut parser = Parser::new();
    let expected = describe_record(&parser.parse(&entry));
    let record = parser.guarded(&entry, |_, _| panic!("a defect"));
    assert!(rebuilds(&record, line));
    assert_eq!(record.message, Message::Part(Value::text(line)));
    assert_eq!(
        (record.time, record.time_source),
        (RECEIVED, TimeSource::Received)
    );
    assert_eq!(record.labels, [("app".into(), Value::Str("web".into()))]);
    // Nothing of it stays behind.
    assert_eq!(describe_record(&parser.parse(&entry)), expected);
    let met = ParserStats {
        unfit: 0,
        panicked: 1,
    };
    assert_eq!(parser.take_met(), met);
    assert_eq!(parser.take_met(), ParserStats::default());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_bytes_are_rebuilt(data in proptest::collection::vec(any::<u8>(), 0..80)) {
        fuzz::fuzz_line(&data);
        fuzz::fuzz_syslog(&data);
        fuzz::fuzz_json(&data);
        fuzz::fuzz_push(&data);
        fuzz::fuzz_shippers(&data);
        fuzz::fuzz_frames(&data);
        fuzz::fuzz_access(&data);
    }

    #[test]
    fn almost_logs_are_rebuilt(
        json in "\\{(\"(_msg|msg|ts|time|_time|a|a.b|⟨|)\" ?: ?(\"[a-z\\\\\"/nu00e9⟩]{0,8}\"|-?[0-9]{1,20}(\\.[0-9]{1,5})?(e[0-9]{1,3})?|\\{\\}|\\{\"b\":1\\}|\\[1, 2\\]|null|true),?){0,5}\\}\r?",
        logfmt in "((msg|ts|time|_time|_msg|a|b|c)=([a-z0-9.\\-é]{0,6}|\"[a-z\\\\\" n=]{0,8}\"|1772409752) ?){1,5}",
        syslog in "<[0-9]{1,3}>1? ?(-|2026-03-02T00:00:0[0-9]Z|Mar  [0-9] 00:00:00( 2026)?|x) [a-z:\\[\\]\\-]{0,5} [a-z:\\-]{0,4} - - (-|\\[[a-z@ ]{1,3}( [ab]=\"[a-z\\\\\"\\]é]{0,4}\"){0,3}\\])( \u{feff}?[a-zé]{0,5})?",
        access in "(h:80 |h )?1.2.3.4 - (-|u|u v) \\[02/Mar/2026:00:00:[0-6]0 [+-]0[0-9]00\\] \"(-|GET /a(\\?b)? HTTP/1.1|[a-zA-Z \\\\\"]{0,9})\" (200|-|007|1) (0|-|12|01)( \"[a-z\\\\\" ]{0,5}\"){0,4}( [a-z0-9.]{1,4}){0,3} ?\r?",
    ) {
        fuzz::fuzz_line(json.as_bytes());
        fuzz::fuzz_json(json.as_bytes());
        fuzz::fuzz_line(logfmt.as_bytes());
        fuzz::fuzz_line(syslog.as_bytes());
        fuzz::fuzz_syslog(syslog.as_bytes());
        fuzz::fuzz_line(access.as_bytes());
    }
}

/// The level of a line is a field unless its sender says one.
#[test]
fn text_has_its_level() {
    let labels: Labels = vec![("severity".into(), "4".into())];
    let table = [
        (EntryKind::Line, Labels::new(), Some("warn")),
        (EntryKind::Line, labels, None),
        (EntryKind::Text, Labels::new(), None),
    ];
    for (kind, labels, level) in table {
        let record = Parser::new().parse(&entry(kind, &labels, b"[warn] low on memory"));
        let found = record
            .field("level")
            .map(|value| value.to_text().into_owned());
        assert_eq!(found.as_deref(), level.map(str::as_bytes));
    }
}

/// A level that a sender says beside a line counts, by whatever name it says it.
#[test]
fn a_stated_level_comes_before_one_of_the_text() {
    let names = [
        "level",
        "severity",
        "log_level",
        "Severity",
        "lvl",
        "severity_number",
        "PRIORITY",
    ];
    for name in names {
        let labels: Labels = vec![(name.into(), "3".into())];
        for line in [
            "INFO started",
            r#"{"message":"INFO started"}"#,
            r#"{"s":"I","t":{"$date":"x"}}"#,
        ] {
            let record = Parser::new().parse(&entry(EntryKind::Line, &labels, line.as_bytes()));
            let own = record
                .labels
                .iter()
                .filter(|(name, _)| is_severity_field(name));
            assert_eq!(own.count(), 1, "{name}: {line}");
        }
    }
    // The field that comes before all others says a level that would be read otherwise.
    let osquery = r#"{"severity":"0","calendarTime":"x","message":"m"}"#;
    let described = describe(EntryKind::Json, osquery.as_bytes());
    assert_eq!(
        described,
        "severity=0 calendarTime=x detected_level=info | m"
    );
}

/// Messages are read as lines a few levels deep, and what is deeper is text.
#[test]
fn messages_within_messages_are_bounded() {
    let mut line = r#"{"msg":"x","depth":0}"#.to_owned();
    for depth in 1..6 {
        let mut quoted = Vec::new();
        logpond_record::write_json_string(&line, &mut quoted);
        let quoted = String::from_utf8(quoted).unwrap();
        line = format!(r#"{{"msg":{quoted},"at{depth}":{depth}}}"#);
    }
    let record = describe(EntryKind::Json, line.as_bytes());
    assert!(record.contains("at5=5") && record.contains("at4=4") && record.contains("at3=3"));
    assert!(!record.contains("at2=2"), "{record}");
}

#[test]
fn a_severity_that_the_sender_states_counts() {
    type Row<'r> = (&'r [(&'r str, Value<'r>)], &'r str, Option<&'r str>);
    let table: [Row<'_>; 5] = [
        (
            &[
                ("severity_text", Value::Str("ERROR".into())),
                ("severity_number", Value::Int(17)),
            ],
            r#"{"level":"info","msg":"x"}"#,
            Some("error"),
        ),
        (
            &[("severity", Value::Int(3))],
            r#"{"level":"info","msg":"x"}"#,
            Some("error"),
        ),
        (
            &[("severity", Value::Int(3))],
            r#"{"level":"error","msg":"x"}"#,
            None,
        ),
        (&[("severity", Value::Int(3))], "INFO started", None),
        (
            &[("PRIORITY", Value::Int(6)), ("severity", Value::Int(6))],
            r#"{"level":"error","msg":"x"}"#,
            None,
        ),
    ];
    for (fields, line, expected) in table {
        let mut batch = Batch::new(EntryKind::Enveloped, Labels::new());
        let each = fields.iter().map(|(name, value)| (*name, value));
        let kind = if line.starts_with('{') {
            EntryKind::Json
        } else {
            EntryKind::Line
        };
        batch.push_enveloped(kind, None, each, line.as_bytes());
        let (kind, envelope, raw) = line_of(batch.kind, batch.iter().next().unwrap());
        let labels = Labels::new();
        let record = Parser::new().parse(&Entry {
            id: Id::MIN,
            received: RECEIVED,
            kind,
            labels: &labels,
            envelope,
            raw,
        });
        let detected = record
            .field("detected_level")
            .map(|value| value.to_text().into_owned());
        assert_eq!(
            detected.as_deref(),
            expected.map(str::as_bytes),
            "{fields:?} {line}"
        );
        if line.starts_with('{') {
            assert!(record.field("level").is_some(), "{line}");
        }
    }
}
