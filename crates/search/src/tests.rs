//! The matcher, the token formula and the prefilter against a plain model.

use std::borrow::Cow;
use std::sync::Arc;

use logpond_record::{Assumption, Fix, Id, Message, Record, Shape, TimeSource, Timestamp, Value};
use logpond_segment::tokens::tokens;
use proptest::prelude::*;

use crate::query::{Comparison, FieldFilter, FieldTest, Pattern, parse};
use crate::{Filter, Matcher, Number, RawGrams, Scratch, token_query};

/// A record as its writer sent it, and as it was decoded.
#[derive(Clone, Debug)]
struct SentRecord {
    raw: Vec<u8>,
    record: Record<'static>,
}

pub(crate) fn record(
    shape: &str,
    values: Vec<Value<'static>>,
    message: Message<'static>,
) -> Record<'static> {
    Record {
        id: Id(7),
        time: Timestamp(1_795_293_000_000_000_000),
        time_source: TimeSource::Header(Assumption::Nothing),
        received: Timestamp(1_795_293_001_000_000_000),
        message,
        shape: Arc::new(Shape::new(shape).unwrap()),
        values,
        fixes: Vec::new(),
        labels: vec![("hostname".into(), Value::Str("web-1".into()))],
        whole: None,
    }
}

fn line(record: &Record<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    record.write_line(&mut out);
    out
}

/// What was received is the line itself.
fn as_rendered(record: Record<'static>) -> SentRecord {
    SentRecord {
        raw: line(&record),
        record,
    }
}

fn text(value: &str) -> Value<'static> {
    Value::Str(Cow::Owned(value.to_owned()))
}

fn plain(words: &str) -> SentRecord {
    let message = Message::Part(text(words));
    as_rendered(record(Shape::TEXT, vec![Value::Null], message))
}

fn bytes(message: Vec<u8>) -> SentRecord {
    let message = Message::Part(Value::text(&message).into_owned());
    as_rendered(record(Shape::TEXT, vec![Value::Null], message))
}

fn access(path: &str, status: i64) -> SentRecord {
    let shape = "⟨remote_addr:t⟩ - - \"⟨method:t⟩ ⟨path:t⟩ HTTP/1.1\" ⟨status:i⟩";
    let values = vec![
        text("10.0.0.1"),
        text("GET"),
        text(path),
        Value::Int(status),
    ];
    as_rendered(record(shape, values, Message::Line))
}

fn syslog(words: &str) -> SentRecord {
    let shape = "<⟨facility:p⟩⟨severity:v⟩>1 ⟨_time:%Y-%m-%dT%H:%M:%SZ⟩ h app - - - ⟨_msg:t⟩";
    let values = vec![Value::Int(3), Value::Int(4), Value::Null, Value::Null];
    as_rendered(record(shape, values, Message::Part(text(words))))
}

fn logfmt(words: &str, k: &str) -> SentRecord {
    let shape = "k=\"⟨k:q⟩\" msg=\"⟨_msg:q⟩\"";
    let values = vec![text(k), Value::Null];
    as_rendered(record(shape, values, Message::Part(text(words))))
}

/// A JSON line that was pushed with white space and needless escapes, and stored without them
/// (`fix` keeps the escapes in the line).
fn json(words: &str, k: &str, n: f64, how: (bool, bool, bool)) -> SentRecord {
    let (spaced, escaped, fix) = how;
    let shape = "{\"m\":\"⟨_msg:j⟩\",\"k\":\"⟨k:j⟩\",\"n\":⟨n:f⟩,\"b\":⟨b:b⟩}";
    let values = vec![Value::Null, text(k), Value::Float(n), Value::Bool(true)];
    let mut record = record(shape, values, Message::Part(text(words)));
    let colon = if spaced { " : " } else { ":" };
    let inside = json_string(words, escaped);
    let raw = format!(
        "{{\"m\"{colon}\"{inside}\",\"k\"{colon}\"{}\",\"n\"{colon}{n:e},\"b\"{colon}true}}",
        json_string(k, escaped)
    );
    if fix {
        record.fixes.push(Fix {
            slot: 0,
            text: Cow::Owned(inside.into_bytes()),
        });
    }
    SentRecord {
        raw: raw.into_bytes(),
        record,
    }
}

fn json_string(text: &str, escaped: bool) -> String {
    let mut out = String::new();
    for (at, c) in text.chars().enumerate() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '/' if escaped => out.push_str("\\/"),
            c if escaped && at % 3 == 1 && (c as u32) < 0x10000 => {
                out.push_str(&format!("\\u{:04x}", c as u32));
            }
            c => out.push(c),
        }
    }
    out
}

fn sent() -> impl Strategy<Value = SentRecord> {
    let words = || "(a|b|ab|é|Ü| |\n|\"|\\\\|/|1|5e2|-|user_1|x=y){0,6}";
    let how = (any::<bool>(), any::<bool>(), any::<bool>());
    prop_oneof![
        words().prop_map(|w| plain(&w)),
        proptest::collection::vec(0u8..=255, 0..6).prop_map(bytes),
        (words(), 498i64..502).prop_map(|(w, s)| access(&w, s)),
        words().prop_map(|w| syslog(&w)),
        (words(), words()).prop_map(|(w, k)| logfmt(&w, &k)),
        (words(), words(), 498.0f64..502.0, how).prop_map(|(w, k, n, how)| json(&w, &k, n, how)),
        (words(), how).prop_map(|(w, how)| json(&w, "k", 500.0, how)),
        words().prop_map(|w| {
            let mut sent = plain(&w);
            sent.raw = [b"\t", &sent.raw[..]].concat();
            sent.record.whole = Some(Cow::Owned(sent.raw.clone()));
            sent
        }),
    ]
}

/// Expressions with what they mean.
type Meaning = fn(&[u8]) -> bool;
const EXPRESSIONS: [(&str, Meaning); 6] = [
    ("ab?", |t| t.contains(&b'a')),
    ("^a", |t| t.starts_with(b"a")),
    ("b$", |t| t.ends_with(b"b")),
    ("user_[0-9]", |t| {
        t.windows(6)
            .any(|w| &w[..5] == b"user_" && w[5].is_ascii_digit())
    }),
    ("( a | b )", |t| {
        t.windows(3).any(|w| w == b" a " || w == b" b ")
    }),
    ("(ab){2}", |t| t.windows(4).any(|w| w == b"abab")),
];

fn pattern() -> impl Strategy<Value = Pattern> {
    prop_oneof![
        "(a|B|b|ab|é| |\n|\"|\\\\|/|1|:|-|,|user|x=y|500|:true|\\\\n|u00){0,4}"
            .prop_map(|t| Pattern::substring(t.as_bytes(), false)),
        "(a|B|b|Ab| |1|-){0,4}".prop_map(|t| Pattern::substring(t.as_bytes(), true)),
        (0..EXPRESSIONS.len()).prop_map(|i| Pattern::regex(EXPRESSIONS[i].0, false)),
    ]
}

fn filter() -> impl Strategy<Value = Filter> {
    let comparison = prop_oneof![
        Just(Comparison::Equal),
        Just(Comparison::Less),
        Just(Comparison::LessOrEqual),
        Just(Comparison::Greater),
        Just(Comparison::GreaterOrEqual),
    ];
    let number = prop_oneof![
        Just("500"),
        Just("500.0"),
        Just("5e2"),
        Just("501"),
        Just("-3")
    ];
    let test = prop_oneof![
        Just(FieldTest::Exists),
        (comparison, number).prop_map(|(c, n)| FieldTest::Compare(c, n.as_bytes().into())),
        "(a|b|ab| |é|\"|-|5e2){0,3}"
            .prop_map(|v| FieldTest::Compare(Comparison::Equal, v.into_bytes().into())),
        pattern().prop_map(FieldTest::Contains),
    ];
    let name = prop_oneof![
        Just("k"),
        Just("n"),
        Just("status"),
        Just("path"),
        Just("_msg"),
        Just("_raw"),
        Just("hostname"),
        Just("none"),
    ];
    let leaf = prop_oneof![
        3 => pattern().prop_map(Filter::Text),
        2 => (name, test).prop_map(|(name, test)| Filter::field(name, test)),
    ];
    leaf.prop_recursive(3, 8, 3, |inner| {
        let many = proptest::collection::vec(inner.clone(), 1..3);
        prop_oneof![
            many.clone().prop_map(Filter::and),
            many.prop_map(Filter::or),
            inner.prop_map(Filter::negate),
        ]
    })
}

/// What the filter means, without any cleverness.
fn model(filter: &Filter, record: &Record<'_>) -> bool {
    match filter {
        Filter::All => true,
        Filter::And(parts) => parts.iter().all(|p| model(p, record)),
        Filter::Or(parts) => parts.iter().any(|p| model(p, record)),
        Filter::Not(inner) => !model(inner, record),
        Filter::Text(pattern) => {
            let mut message = Vec::new();
            record.write_message(&mut message);
            let has_message = !matches!(record.message, Message::Absent);
            occurs(pattern, &line(record)) || (has_message && occurs(pattern, &message))
        }
        Filter::Field(field) => model_value(field, record).is_some_and(|v| holds(field, &v)),
    }
}

fn model_value(field: &FieldFilter, record: &Record<'_>) -> Option<Value<'static>> {
    match &*field.name {
        "_raw" => Some(Value::text(&line(record)).into_owned()),
        "_msg" => match &record.message {
            Message::Absent => None,
            Message::Part(value) => Some(value.clone().into_owned()),
            Message::Line => Some(Value::text(&line(record)).into_owned()),
        },
        name => record.field(name).cloned().map(Value::into_owned),
    }
}

fn holds(field: &FieldFilter, value: &Value<'_>) -> bool {
    let shown = value.to_text();
    match &field.test {
        FieldTest::Exists => true,
        FieldTest::Contains(pattern) => occurs(pattern, &shown),
        FieldTest::Compare(comparison, wanted) => {
            let number = |text: &[u8]| Number::parse(text);
            let typed =
                matches!(value, Value::Int(_) | Value::Float(_)) || value.number_text().is_some();
            match (number(&shown), number(wanted)) {
                (Some(a), Some(b)) if typed || *comparison != Comparison::Equal => {
                    comparison.accepts(a.compare(&b))
                }
                _ => *comparison == Comparison::Equal && *shown == **wanted,
            }
        }
    }
}

fn occurs(pattern: &Pattern, text: &[u8]) -> bool {
    let within = |needle: &[u8], text: &[u8]| {
        needle.is_empty() || text.windows(needle.len()).any(|w| w == needle)
    };
    match pattern {
        Pattern::Substring {
            text: needle,
            case_insensitive: false,
        } => within(needle, text),
        Pattern::Substring { text: needle, .. } => {
            within(&needle.to_ascii_lowercase(), &text.to_ascii_lowercase())
        }
        Pattern::Regex { source, .. } => {
            let known = EXPRESSIONS.iter().find(|(s, _)| *s == &**source);
            known.unwrap().1(text)
        }
    }
}

/// The tokens that an index has of a record.
fn has_token(record: &Record<'_>, fits: &dyn Fn(&[u8]) -> bool) -> bool {
    let mut message = Vec::new();
    record.write_message(&mut message);
    let values: Vec<Vec<u8>> = record
        .fields()
        .map(|(_, v)| v.to_text().into_owned())
        .collect();
    let mut texts = [line(record), message].into_iter().chain(values);
    texts.any(|text| tokens(&text).any(fits))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn the_matcher_equals_the_model(filter in filter(), sent in proptest::collection::vec(sent(), 1..4)) {
        let matcher = Matcher::new(&filter).unwrap();
        let mut scratch = Scratch::new();
        for sent in &sent {
            let found = matcher.matches(&sent.record, &mut scratch);
            prop_assert_eq!(found, model(&filter, &sent.record), "{} on {:?}", filter, sent);
        }
    }

    #[test]
    fn what_is_skipped_does_not_match(filter in filter(), sent in sent()) {
        let matcher = Matcher::new(&filter).unwrap();
        if !matcher.matches(&sent.record, &mut Scratch::new()) {
            return Ok(());
        }
        if let Some(prefilter) = matcher.raw_prefilter() {
            prop_assert!(prefilter.may_match(&sent.raw), "{} on {:?}", filter, sent);
            let frame = [b"{\"a\":1}x\"", &sent.raw[..], b"y"].concat();
            prop_assert!(prefilter.may_match(&frame), "{} on {:?}", filter, sent);
            let mut seen = RawGrams::for_bytes(frame.len());
            [&b"other"[..], &frame].iter().for_each(|raw| seen.add(raw));
            prop_assert!(prefilter.may_match_any(&seen), "{} on {:?}", filter, sent);
        }
        for whole_edges in [false, true] {
            let query = token_query(&filter, whole_edges);
            let may = query.may_match(&mut |fits| has_token(&sent.record, fits));
            prop_assert!(may, "{} needs {:?} on {:?}", filter, query, sent);
        }
    }
}

#[test]
fn prefilters_are_there_where_they_help() {
    let table: [(&str, &str, Option<bool>); 22] = [
        // A message that is made of a list, or of a text with escapes of its own.
        ("\"a needle\"", r#"{"message": ["a","needle"]}"#, Some(true)),
        (
            "\"blunt needle\"",
            r#"{"message":["a","needle"]}"#,
            Some(false),
        ),
        (
            "\"blunt needle\"",
            r#"{"message":"needle blunt"}"#,
            Some(false),
        ),
        ("needle", r#"{"log":"{\"m\":\"h\\u0061y\"}"}"#, Some(true)),
        ("needle", r#"{"log":"C:\\users\\hay"}"#, Some(false)),
        ("\"a=b needle\"", r#"{"log":"a\\=b needle"}"#, Some(true)),
        ("needle", r#"{"log":"{\"m\":\"hay\\\\n\"}"}"#, Some(false)),
        ("needle", "hay needle hay", Some(true)),
        ("needle", "hay", Some(false)),
        ("\"a needle, b\"", "x needle x", Some(false)),
        ("\"needle\\nin hay\"", "needle\\nin hay", Some(true)),
        ("needle AND x=1", "hay", Some(false)),
        ("needle OR pin", "a pin", Some(true)),
        ("needle OR x=1", "hay", None),
        ("NOT needle", "hay", None),
        ("i\"needle\"", "hay", None),
        ("/need(le|ing)/", "need", Some(false)),
        ("_msg=\"a needle\"", "hay", Some(false)),
        ("hostname=web-1", "hay", None),
        ("12345", "hay", None),
        ("needle", "h\\u0061y", Some(true)),
        ("\":true\"", "{\"a\": true}", Some(true)),
    ];
    for (query, raw, expected) in table {
        let matcher = Matcher::new(&parse(query).unwrap()).unwrap();
        let found = matcher.raw_prefilter().map(|p| p.may_match(raw.as_bytes()));
        assert_eq!(found, expected, "{query} on {raw}");
        let mut seen = RawGrams::for_bytes(1000);
        seen.add(raw.as_bytes());
        let remembered = matcher.raw_prefilter().map(|p| p.may_match_any(&seen));
        // Of what is shorter than a run of bytes, such as `le` and `ing`, nothing is remembered.
        let expected = if query == "/need(le|ing)/" {
            Some(true)
        } else {
            expected
        };
        assert_eq!(
            remembered, expected,
            "{query} on {raw}, as it is remembered"
        );
    }
}

#[test]
fn conditions_hold() {
    let sent = json("the message", "v", 500.0, (false, false, false));
    let table = [
        ("n=500", true),
        ("n=500.0", true),
        ("n=\"5e2\"", true),
        ("n>499.5 n<=500", true),
        ("n>500", false),
        ("k=v", true),
        ("k=V", false),
        ("k!=v", false),
        ("none=v", false),
        ("none!=v", true),
        ("NOT none:*", true),
        ("none!~/v/", true),
        ("k~/^v$/", true),
        ("hostname=web-1", true),
        ("_msg=\"the message\"", true),
        ("_msg:mess", true),
        ("_raw:m\\\":", false),
        ("_raw:\"\\\"m\\\":\"", true),
        ("_time=2026-11-21T20:30:00Z", true),
        ("_time>=2026-11-21", true),
        ("_time:2026-11-21T20", true),
        ("_received>2026-11-21T20:30:00Z", true),
        ("_id=00000000000000000000000007", true),
        ("_id>00000000000000000000000007", false),
        ("_time_source=header", true),
        ("the message", true),
        ("\"m\\\":\\\"the\"", true),
    ];
    for (query, expected) in table {
        let matcher = Matcher::new(&parse(query).unwrap_or_else(|e| panic!("{query}: {e}")));
        let found = matcher.unwrap().matches(&sent.record, &mut Scratch::new());
        assert_eq!(found, expected, "{query}");
    }
}

#[test]
fn highlights_are_merged() {
    let table: [(&str, &[(usize, usize)]); 6] = [
        ("ab", &[(0, 2), (4, 6)]),
        ("ab OR bx", &[(0, 3), (4, 6)]),
        ("ab AND NOT x", &[(0, 2), (4, 6)]),
        ("i\"X\" _msg:y", &[(2, 4)]),
        ("/b*/", &[(1, 2), (5, 6)]),
        ("k=ab", &[]),
    ];
    for (query, expected) in table {
        let matcher = Matcher::new(&parse(query).unwrap()).unwrap();
        let found: Vec<_> = matcher
            .spans(b"abxyab")
            .iter()
            .map(|s| (s.start, s.end))
            .collect();
        assert_eq!(found, expected, "{query}");
    }
}
