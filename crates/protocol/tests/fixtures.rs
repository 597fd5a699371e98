//! Real logs: every line is rebuilt, and the fields are those that independent tools find.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "tests cast numbers that they know"
)]

mod real_logs;

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::process::Command;

use logpond_protocol::intake::Parser;
use logpond_protocol::intake::frames::FrameSplitter;
use logpond_protocol::intake::fuzz;
use logpond_protocol::intake::json::validate;
use logpond_protocol::intake::push::{loki, otlp};
use logpond_record::limits::LINE_BYTES_MAX;
use logpond_record::{
    Entry, EntryKind, Envelope, Id, Labels, Message, Record, TimeSource, Timestamp, Value, line_of,
};

use real_logs::{files_below, shared};

/// 2026-03-10T00:00:00Z: behind all that the made corpora hold.
const RECEIVED: Timestamp = Timestamp(1_773_100_800_000_000_000);

fn with_record<T>(
    parser: &mut Parser,
    kind: EntryKind,
    raw: &[u8],
    look: impl FnOnce(&Record<'_>) -> T,
) -> T {
    let labels = Labels::new();
    let record = parser.parse(&Entry {
        id: Id::MIN,
        received: RECEIVED,
        kind,
        labels: &labels,
        envelope: Envelope::default(),
        raw,
    });
    let mut line = Vec::with_capacity(raw.len());
    record.write_line(&mut line);
    assert!(line == raw, "{} is not rebuilt", raw.escape_ascii());
    assert_eq!(record.values.len(), record.shape.slots().len());
    look(&record)
}

/// What a line was recognised as.
fn form(record: &Record<'_>) -> &'static str {
    let shape = record.shape.as_str();
    match shape {
        _ if record.shape.is_json() => "json",
        "⟨_msg:t⟩" if matches!(record.time_source, TimeSource::Line(_)) => "text with a time",
        "⟨_msg:t⟩" => "text",
        _ if shape.starts_with("<⟨facility") => "syslog",
        _ if shape.contains("⟨remote_addr:t⟩") => "access",
        _ => "logfmt",
    }
}

#[derive(Default)]
struct Tally {
    lines: usize,
    whole: usize,
    fixed: usize,
}

#[test]
fn every_line_of_every_fixture_is_rebuilt() {
    let Some(shared) = shared("every_line_of_every_fixture_is_rebuilt") else {
        return;
    };
    let mut files = Vec::new();
    files_below(&shared.join("fixtures"), &mut files);
    assert!(files.len() > 1000, "only {} fixtures", files.len());
    let mut tallies: BTreeMap<(&str, &str), Tally> = BTreeMap::new();
    for path in files {
        let data = std::fs::read(&path).unwrap();
        let mut parser = Parser::new();
        for raw in data.split(|b| *b == b'\n') {
            let kinds = [
                Some((EntryKind::Line, "as line")),
                Some((EntryKind::Syslog, "as syslog")),
                validate(raw)
                    .is_ok()
                    .then_some((EntryKind::Json, "as json")),
            ];
            for (kind, name) in kinds.into_iter().flatten() {
                with_record(&mut parser, kind, raw, |record| {
                    let tally = tallies.entry((name, form(record))).or_default();
                    tally.lines += 1;
                    tally.whole += usize::from(record.whole.is_some());
                    tally.fixed += usize::from(!record.fixes.is_empty());
                    if kind == EntryKind::Json {
                        assert!(record.shape.is_json(), "{}", raw.escape_ascii());
                    }
                });
            }
        }
    }
    for ((kind, form), tally) in &tallies {
        let Tally {
            lines,
            whole,
            fixed,
        } = tally;
        println!("{kind}: {form}: {lines} lines, {whole} whole, {fixed} with fixes");
    }
    let lines = |form| tallies[&("as line", form)].lines;
    assert!(lines("json") > 27_000 && lines("access") > 16_000 && lines("syslog") > 100);
}

/// Lines that are almost real: bytes that mean something to a parser are put in, or bytes are left
/// out. `LOGPOND_MUTATIONS` sets how many of each line are tried.
#[test]
fn damaged_lines_are_rebuilt() {
    let Some(shared) = shared("damaged_lines_are_rebuilt") else {
        return;
    };
    let mutations = std::env::var("LOGPOND_MUTATIONS").ok();
    let mutations = mutations.and_then(|m| m.parse().ok()).unwrap_or(2);
    let mut files = Vec::new();
    files_below(&shared.join("fixtures"), &mut files);
    // A fixed seed: the same lines are tried each time.
    let mut seed = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = move |below: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) as usize % below.max(1)
    };
    const SPECIAL: [&[u8]; 20] = [
        b"\"",
        b"\\",
        b" ",
        b"=",
        b"[",
        b"]",
        b"{",
        b"}",
        b",",
        b":",
        b"\r",
        b"\0",
        b"-",
        b"0",
        b"\\u00e9",
        b"\xff",
        "⟨".as_bytes(),
        "⟩".as_bytes(),
        b"<13>",
        b"1 ",
    ];
    let mut tried = 0;
    for path in files {
        let data = std::fs::read(&path).unwrap();
        let lines = data
            .split(|b| *b == b'\n')
            .filter(|l| (1..2000).contains(&l.len()));
        for line in lines.take(25) {
            for _ in 0..mutations {
                let mut raw = line.to_vec();
                for _ in 0..1 + random(3) {
                    let at = random(raw.len());
                    let until = raw.len().min(at + random(3));
                    let put = SPECIAL[random(SPECIAL.len() * 2).min(SPECIAL.len() - 1)];
                    raw.splice(at..until, put.iter().copied());
                }
                fuzz::fuzz_line(&raw);
                fuzz::fuzz_syslog(&raw);
                fuzz::fuzz_json(&raw);
                tried += 1;
            }
        }
    }
    assert!(tried > 10_000, "only {tried} lines");
}

#[test]
fn the_json_test_suite_is_met() {
    let Some(shared) = shared("the_json_test_suite_is_met") else {
        return;
    };
    let mut files = Vec::new();
    files_below(
        &shared.join("fixtures/json-test-suite/test_parsing"),
        &mut files,
    );
    let mut objects = 0;
    for path in &files {
        let data = std::fs::read(path).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        // The suite is about any value, records are objects: the same text as a member's value.
        let wrapped = [b"{\"a\":", &data[..], b"}"].concat();
        for text in [&data, &wrapped] {
            let is_object = text.trim_ascii_start().first() == Some(&b'{');
            let valid = validate(text);
            match name.as_bytes()[0] {
                b'y' if is_object => assert_eq!(valid, Ok(()), "{name}"),
                b'n' => assert!(valid.is_err(), "{name}"),
                _ => {}
            }
            objects += usize::from(valid.is_ok());
            with_record(&mut Parser::new(), EntryKind::Json, text, |record| {
                // Deeper objects than a push may have are read from lines all the same.
                let is_deep = valid
                    .as_ref()
                    .is_err_and(|e| e.to_string().contains("deep"));
                let is_json = valid.is_ok() || is_deep && !name.starts_with('n');
                assert_eq!(record.shape.is_json(), is_json, "{name}");
            });
        }
    }
    assert!(
        files.len() > 300 && objects > 90,
        "{} files, {objects} objects",
        files.len()
    );
}

fn text(record: &Record<'_>, name: &str) -> Option<String> {
    let value = record.field(name)?;
    Some(String::from_utf8_lossy(&value.to_text()).into_owned())
}

#[test]
fn the_syslog_vectors_are_met() {
    let Some(shared) = shared("the_syslog_vectors_are_met") else {
        return;
    };
    let vectors = std::fs::read(shared.join("fixtures/vectors/syslog_go.jsonl")).unwrap();
    let mut parser = Parser::new();
    let (mut parsed, mut framed) = (0, 0);
    for line in vectors.split(|b| *b == b'\n').filter(|l| !l.is_empty()) {
        let (suite, valid, has_error, input) =
            with_record(&mut parser, EntryKind::Json, line, |vector| {
                let flag = |name: &str| vector.field(name) == Some(&Value::Bool(true));
                let input = match text(vector, "input_hex") {
                    Some(hex) => bytes_of(&hex),
                    None => text(vector, "input").unwrap_or_default().into_bytes(),
                };
                let suite = text(vector, "suite").unwrap();
                (suite, flag("valid"), flag("has_error"), input)
            });
        match suite.as_str() {
            "rfc5424" | "rfc3164" => {
                with_record(&mut Parser::new(), EntryKind::Syslog, &input, |record| {
                    let is_syslog = record.field("severity").is_some();
                    assert!(is_syslog || !valid, "{}", input.escape_ascii());
                    // Anything but the priority alone and the whole as content.
                    let has_header = record.shape.as_str() != "<⟨facility:p⟩⟨severity:v⟩>⟨_msg:t⟩";
                    assert!(has_header || !valid, "{}", input.escape_ascii());
                    parsed += usize::from(valid);
                });
            }
            _ => {
                let input = String::from_utf8(input).unwrap().replace("%[1]s", "\n");
                let mut splitter = FrameSplitter::new(LINE_BYTES_MAX);
                let (mut bytes, mut frames, mut missing) = (Vec::new(), 0, 0);
                let mut take = |f: logpond_protocol::intake::frames::Frame<'_>| {
                    bytes.extend_from_slice(f.bytes);
                    frames += 1;
                    missing += f.truncated_bytes;
                };
                splitter.feed(input.as_bytes(), &mut take);
                splitter.finish(&mut take);
                // All that is not framing comes out.
                let counted = input.bytes().filter(|b| *b == b'<').count();
                assert_eq!(bytes.iter().filter(|b| **b == b'<').count(), counted);
                assert!(has_error || missing == 0, "{input}");
                framed += frames;
            }
        }
    }
    assert!(
        parsed > 60 && framed > 15,
        "{parsed} messages, {framed} frames"
    );
}

fn bytes_of(hex: &str) -> Vec<u8> {
    (0..hex.len() / 2)
        .map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap())
        .collect()
}

/// A made corpus and the facts about it, as fields: `status.404` is a number.
struct Corpus {
    data: Vec<u8>,
    facts: BTreeMap<String, String>,
}

impl Corpus {
    fn make(shared: &Path, kind: &str, file: &str) -> Corpus {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(kind);
        let status = Command::new("python3")
            .arg(shared.join("tools/make-corpus.py"))
            .args([kind, "--bytes", "4M", "--out"])
            .arg(&folder)
            .stdout(std::process::Stdio::null())
            .status()
            .unwrap();
        assert!(status.success(), "the corpus is not made");
        let data = std::fs::read(folder.join(file)).unwrap();
        let facts = std::fs::read(folder.join(format!("FACTS.{kind}.json"))).unwrap();
        let facts = with_record(&mut Parser::new(), EntryKind::Json, &facts, |facts| {
            let all = facts.fields().map(|(name, value)| {
                let text = String::from_utf8_lossy(&value.to_text()).into_owned();
                (name.to_owned(), text)
            });
            all.collect()
        });
        Corpus { data, facts }
    }

    fn lines(&self) -> impl Iterator<Item = &[u8]> {
        self.data.split(|b| *b == b'\n').filter(|l| !l.is_empty())
    }

    /// Checks that the facts below `name` are `counts`.
    fn check(&self, name: &str, counts: &BTreeMap<String, u64>) {
        let prefix = format!("{name}.");
        let expected: BTreeMap<String, u64> = self
            .facts
            .iter()
            .filter_map(|(fact, count)| {
                Some((fact.strip_prefix(&prefix)?.to_owned(), count.parse().ok()?))
            })
            .collect();
        assert!(!expected.is_empty(), "no facts about {name}");
        assert_eq!(*counts, expected, "{name}");
    }

    fn number(&self, name: &str) -> u64 {
        self.facts[name].parse().unwrap()
    }

    /// Checks a ranking, which is JSON text in the facts.
    fn check_top(&self, name: &str, counts: &BTreeMap<String, u64>) {
        let mut ranked: Vec<(&String, &u64)> = counts.iter().collect();
        ranked.sort_by_key(|(value, count)| (std::cmp::Reverse(**count), value.as_str()));
        let ranking = &self.facts[name];
        let places = ranking.matches("[\"").count();
        for (value, count) in &ranked[..places] {
            // The last places may be shared.
            let listed = ranking.contains(&format!("[\"{value}\", {count}]"));
            let tied = ranked.iter().filter(|(_, other)| other == count).count() > 1;
            assert!(listed || tied, "{value}: {count} is not in {ranking}");
        }
    }
}

/// How often each value of some fields occurs.
#[derive(Default)]
struct Counts(BTreeMap<&'static str, BTreeMap<String, u64>>);

impl Counts {
    fn add(&mut self, field: &'static str, record: &Record<'_>) {
        if let Some(value) = text(record, field) {
            *self.0.entry(field).or_default().entry(value).or_default() += 1;
        }
    }
}

#[test]
fn access_logs_have_the_fields_that_are_counted() {
    let Some(shared) = shared("access_logs_have_the_fields_that_are_counted") else {
        return;
    };
    let corpus = Corpus::make(&shared, "nginx", "nginx.log");
    let mut parser = Parser::new();
    let mut counts = Counts::default();
    let (mut bytes, mut odd, mut whole, mut previous, mut unordered) = (0, 0, 0, RECEIVED, 0);
    let mut days: BTreeMap<String, u64> = BTreeMap::new();
    let mut bytes_by_host: BTreeMap<String, u64> = BTreeMap::new();
    previous.0 = 0;
    for raw in corpus.lines() {
        with_record(&mut parser, EntryKind::Line, raw, |record| {
            for field in ["status", "host", "method", "path", "agent", "remote_addr"] {
                counts.add(field, record);
            }
            let Some(Value::Int(sent)) = record.field("bytes") else {
                panic!("no bytes in {}", raw.escape_ascii());
            };
            bytes += *sent as u64;
            *bytes_by_host
                .entry(text(record, "host").unwrap())
                .or_default() += *sent as u64;
            odd += u64::from(record.field("request").is_some());
            whole += u64::from(record.whole.is_some() || !record.fixes.is_empty());
            unordered += u64::from(record.time < previous);
            previous = record.time;
            *days
                .entry(record.time.to_string()[..10].to_owned())
                .or_default() += 1;
        });
    }
    corpus.check("status", &counts.0["status"]);
    corpus.check("methods", &counts.0["method"]);
    corpus.check("hosts", &counts.0["host"]);
    corpus.check("body_bytes_sum_by_host", &bytes_by_host);
    corpus.check("per_day", &days);
    corpus.check_top("top_ips", &counts.0["remote_addr"]);
    corpus.check_top("top_paths_without_query", &counts.0["path"]);
    assert_eq!(bytes, corpus.number("body_bytes_sum"));
    assert_eq!(odd, corpus.number("requests_that_are_not_http"));
    assert_eq!(unordered, corpus.number("out_of_order"));
    for (field, fact) in [
        ("remote_addr", "distinct_ips"),
        ("path", "distinct_paths"),
        ("agent", "distinct_user_agents"),
    ] {
        assert_eq!(counts.0[field].len() as u64, corpus.number(fact), "{fact}");
    }
    assert_eq!(whole, 0, "lines that columns do not rebuild");
}

#[test]
fn syslog_has_the_fields_that_are_counted() {
    let Some(shared) = shared("syslog_has_the_fields_that_are_counted") else {
        return;
    };
    let corpus = Corpus::make(&shared, "mixed", "mixed.log");
    let mut parser = Parser::new();
    let mut counts = Counts::default();
    let mut days: BTreeMap<String, u64> = BTreeMap::new();
    for raw in corpus.lines() {
        with_record(&mut parser, EntryKind::Syslog, raw, |record| {
            counts.add("hostname", record);
            counts.add("app", record);
            assert!(matches!(record.time_source, TimeSource::Header(_)));
            assert!(record.whole.is_none());
            *days
                .entry(record.time.to_string()[..10].to_owned())
                .or_default() += 1;
        });
    }
    corpus.check("hosts", &counts.0["hostname"]);
    corpus.check("apps", &counts.0["app"]);
    corpus.check("per_day_utc", &days);
}

#[test]
fn json_lines_have_the_fields_that_are_counted() {
    let Some(shared) = shared("json_lines_have_the_fields_that_are_counted") else {
        return;
    };
    let corpus = Corpus::make(&shared, "app", "app.jsonl");
    let mut parser = Parser::new();
    let mut counts = Counts::default();
    let (mut lines, mut whole) = (0, 0);
    let mut shapes = HashSet::new();
    for raw in corpus.lines() {
        assert_eq!(validate(raw), Ok(()));
        for kind in [EntryKind::Json, EntryKind::Line] {
            with_record(&mut parser, kind, raw, |record| {
                assert!(matches!(record.time_source, TimeSource::Field(_)));
                whole += u64::from(record.whole.is_some());
                shapes.insert(record.shape.as_str().to_owned());
                if kind == EntryKind::Json {
                    // What the parser has learned changes nothing.
                    with_record(&mut Parser::new(), kind, raw, |fresh| {
                        assert_eq!(format!("{record:?}"), format!("{fresh:?}"));
                    });
                    lines += 1;
                    counts.add("level", record);
                    counts.add("service", record);
                    counts.add("k8s.pod", record);
                }
            });
        }
    }
    assert_eq!(lines, corpus.number("lines"));
    corpus.check("level", &counts.0["level"]);
    corpus.check("services", &counts.0["service"]);
    corpus.check("pods", &counts.0["k8s.pod"]);
    assert_eq!(whole, 0);
    println!("{} shapes", shapes.len());
}

/// Records of auditd and of the kernel, in files and behind syslog headers.
#[test]
fn real_audit_records_have_their_event_and_no_leftovers() {
    let Some(folder) = shared("real audit records") else {
        return;
    };
    let files = [
        "crowdsec-hub/auditd-logs__auditd-logs.log",
        "crowdsec-hub/auditd-postexploit-rm__auditd-postexploit-rm.log",
        "crowdsec-hub/auditd-suid-crash__auditd-suid-crash.log",
        "s4-encodings/RockyLinux9/messages",
    ];
    let mut parser = Parser::new();
    let mut count = 0;
    for file in files {
        let text = std::fs::read(folder.join("fixtures").join(file)).unwrap();
        let text = String::from_utf8_lossy(&text);
        for line in text.lines() {
            let Some((_, rest)) = line.split_once("audit(") else {
                continue;
            };
            let Some((time, id)) = rest
                .split_once("):")
                .and_then(|(head, _)| head.split_once(':'))
            else {
                continue;
            };
            count += 1;
            with_record(&mut parser, EntryKind::Line, line.as_bytes(), |record| {
                let value = |name: &str| {
                    let mut fields = record.fields();
                    fields
                        .find(|(found, _)| *found == name)
                        .map(|(_, value)| value.clone())
                };
                assert_eq!(
                    value("_AUDIT_ID"),
                    Some(Value::Int(id.parse().unwrap())),
                    "{line}"
                );
                assert!(
                    matches!(value("_AUDIT_TYPE"), Some(Value::Int(_))),
                    "{line}"
                );
                assert!(
                    matches!(value("_AUDIT_TYPE_NAME"), Some(Value::Str(_))),
                    "{line}"
                );
                // One is a counter, which is no time.
                let (seconds, nanos) = record.time.seconds();
                let found = format!("{seconds}.{:03}", nanos / 1_000_000);
                assert!(found == time || time.starts_with('0'), "{line}");
                let left_over = record.fields().find(|(name, _)| name.ends_with("_TEXT"));
                assert_eq!(left_over, None, "{line}");
                assert!(record.whole.is_none(), "{line}");
            });
        }
    }
    assert!(count >= 25, "{count} records");
}

/// Inputs that were read wrongly: bad records beside good ones, and names of products.
#[test]
fn field_reports_are_read() {
    let Some(shared) = shared("field_reports_are_read") else {
        return;
    };
    let report =
        |path: &str| std::fs::read(shared.join("fixtures/field-reports").join(path)).unwrap();
    let otlp = |body: &[u8]| otlp::decode_protobuf(body, Labels::new(), LINE_BYTES_MAX).unwrap();
    let bad_text = otlp(&report("16-otlp-bad-utf8/input.pb"));
    assert_eq!((bad_text.accepted, bad_text.rejected_total), (1, 1));
    let json = report("15-otlp-hex-ids/input.json");
    let ids = [
        otlp(&report("15-otlp-hex-ids/input.pb")),
        otlp::decode_json(&json, Labels::new(), LINE_BYTES_MAX).unwrap(),
    ];
    for pushed in ids {
        assert_eq!((pushed.accepted, pushed.rejected_total), (1, 0));
        let (_, envelope, _) = line_of(pushed.batch.kind, pushed.batch.payload());
        let id = envelope.fields().find(|(name, _)| *name == "trace_id");
        let id = id.map(|(_, value)| value.to_text().into_owned());
        assert_eq!(
            id.as_deref(),
            Some(&b"4bf92f3577b34da6a3ce929d0e0e4736"[..])
        );
    }
    let metadata = report("17-loki-metadata-number/input");
    let pushed = loki::decode_json(&metadata, Labels::new(), LINE_BYTES_MAX).unwrap();
    assert_eq!((pushed.accepted, pushed.rejected_total), (2, 0));
    let mut parser = Parser::new();
    let names = report("10-json-time-names/input");
    for raw in names
        .split(|byte| *byte == b'\n')
        .filter(|raw| !raw.is_empty())
    {
        with_record(&mut parser, EntryKind::Json, raw, |record| {
            let line = raw.escape_ascii();
            assert_ne!(record.time_source, TimeSource::Received, "{line}");
            let has_message = record.message != Message::Absent;
            assert_eq!(has_message, record.field("kind").is_none(), "{line}");
        });
    }
}
