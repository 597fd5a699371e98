use logpond_record::{Entry, EntryKind, Envelope, Id, Labels};
use proptest::prelude::*;

use super::flatten::flatten;
use super::*;
use crate::intake::parser::tests::{RECEIVED, describe};
use crate::intake::parser::{Parser, rebuilds};
use crate::intake::timestamps::TimeReader;

fn check(table: &[(&str, &str)]) {
    for (line, expected) in table {
        let described = describe(EntryKind::Json, line.as_bytes());
        assert_eq!(described, *expected, "{line}");
        validate(line.as_bytes()).unwrap();
    }
}

#[test]
fn objects_become_fields() {
    check(&[
        (r#"{}"#, "| none"),
        (r#" { } "#, "| none"),
        (
            r#"{"a":{"b":1,"c":{"d":"x"}},"e":[1, {"f":2}],"g":{}}"#,
            r#"a.b=1 a.c.d=x e=[1, {"f":2}] g={} | none"#,
        ),
        (
            r#"{"s":"","n":null,"t":true,"f":false}"#,
            "s= n=null t=true f=false | none",
        ),
        // A list is one line, also of an indented document.
        (
            "{\n  \"e\": [\n    1,\n    \"a b\"\n  ],\n  \"g\": { }\n}",
            r#"e=[1,"a b"] g={ } | none fix0=[\n    1,\n    "a b"\n  ]"#,
        ),
        (
            r#"{"msg":"hello","message":"m","_msg":"u"}"#,
            "msg=hello message=m | u",
        ),
        (r#"{"msg":5,"level":"x"}"#, "msg=5 level=x | none"),
        (r#"{"msg":5,"message":"x"}"#, "msg=5 | x"),
        (r#"{"a":{"msg":"x"}}"#, "a.msg=x | none"),
        // As a shipper's line, not as an object about logging.
        (
            r#"{"log":"hello","stream":"stderr"}"#,
            "stream=stderr | hello",
        ),
        (r#"{"log":"a.log","msg":"x"}"#, "log=a.log | x"),
        (
            r#"{"log":{"level":"info"},"a":"x"}"#,
            "log.level=info a=x | none",
        ),
        (
            r#"{"ts":"2026-03-02T00:00:00Z","msg":"x"}"#,
            "field=1772409600 | x",
        ),
        (
            r#"{"ts":1772409600,"time":"2026-03-02T00:00:01Z"}"#,
            "field=1772409601 ts=1772409600 | none",
        ),
        (r#"{"ts":1772409600.250}"#, "field=1772409600.25 | none"),
        (
            r#"{"ts":"not yet","time":null}"#,
            "ts=not yet time=null | none",
        ),
        (r#"{"time":7.53}"#, "time=7.53 | none"),
        (r#"{"_time":7}"#, "field=7 | none"),
        (
            r#"{"ts":"2026-03-02T00:00:60Z"}"#,
            "field=1772409660 | none fix0=2026-03-02T00:00:60Z",
        ),
        (
            r#"{"a":"\u00e9\/","b":"\n\u0001"}"#,
            "a=\\xc3\\xa9/ b=\\n\\x01 | none fix0=\\\\u00e9\\\\/",
        ),
        (
            r#"{"msg":"caf\u00e9"}"#,
            "| caf\\xc3\\xa9 fix0=caf\\\\u00e9",
        ),
        (
            r#"{"a":-0,"b":2.70,"c":1e3,"d":9223372036854775808}"#,
            "a=-0.0 b=2.7 c=1000.0 d=9223372036854775808 | none fix0=-0 fix1=2.70 fix2=1e3",
        ),
        (
            r#"{"a":-9223372036854775808,"b":0.1,"c":-5.0,"d":1e999}"#,
            "a=-9223372036854775808 b=0.1 c=-5.0 d=1e999 | none",
        ),
    ]);
}

#[test]
fn numbers_that_are_no_integer_and_no_float_keep_their_digits() {
    check(&[
        (
            r#"{"a":18446744073709551615,"b":-9223372036854775809,"c":1700000000.123456789}"#,
            "a=18446744073709551615 b=-9223372036854775809 c=1700000000.123456789 | none",
        ),
        (
            r#"{"a":0.10000000000000001,"b":9007199254740993.0,"c":1e-400}"#,
            "a=0.1 b=9007199254740993.0 c=1e-400 | none fix0=0.10000000000000001",
        ),
    ]);
}

#[test]
fn irregular_objects_keep_their_fields_and_their_line() {
    check(&[
        // Of fields with one name the last one counts.
        (r#"{"a":1,"a":2}"#, "a=2 | none whole"),
        (r#"{"a":1,"b":0,"a":null}"#, "b=0 a=null | none whole"),
        (r#"{"a.b":1,"a":{"b":2}}"#, "a.b=2 | none whole"),
        (r#"{"a":{"b":2,"c":3},"a.b":1}"#, "a.c=3 a.b=1 | none whole"),
        (r#"{"a":1,"\u0061":2}"#, "a=2 | none whole"),
        (r#"{"msg":"x","a":1,"msg":"y"}"#, "a=1 | y whole"),
        (
            r#"{"ts":"2026-03-02T00:00:00Z","ts":"2026-03-02T00:00:01Z"}"#,
            "field=1772409601 | none whole",
        ),
        (r#"{"a":1,"⟨":2,"b":3}"#, "a=1 ⟨=2 b=3 | none whole"),
        (r#"{"\u27e8":2,"b":3,"msg":"m\/"}"#, "⟨=2 b=3 | m/ whole"),
        (
            r#"{"_unlisted_fields":5,"a":1}"#,
            "body._unlisted_fields=5 a=1 | none whole",
        ),
        ("{\"\u{fdd0}<\":2}", "\u{fdd0}<=2 | none whole"),
        (r#"{"_msg":5,"message":"x","a":1}"#, "_msg@label=5 a=1 | x"),
        (r#"{"_time":"soon","a":1}"#, "_time@label=soon a=1 | none"),
        (
            r#"{"_id":"x","_trailer":[1],"_gap":true,"a":{"_gap":2},"_PID":3}"#,
            "_id@label=x _trailer@label=[1] _gap@label=true a._gap=2 _PID=3 | none",
        ),
        (
            r#"{"_time":"2026-03-02T00:00:00Z","_time@label":1,"_gap":2,"_gap@label":3}"#,
            "field=1772409600 _time@label=1 _gap@label@label=2 _gap@label=3 | none",
        ),
        (r#"{"_time:t":1,"a":1}"#, "_time:t=1 a=1 | none"),
        (r#"{"_time:%Y":1,"a":1}"#, "_time:%Y=1 a=1 | none whole"),
        (
            r#"{"ts":"2026-03-02T00:00:00Z","a":1,"a":1}"#,
            "field=1772409600 a=1 | none whole",
        ),
        // A value may hold the marks of slots.
        (r#"{"a":"⟨x⟩"}"#, "a=\\xe2\\x9f\\xa8x\\xe2\\x9f\\xa9 | none"),
    ]);
}

#[test]
fn wide_objects_are_kept_whole() {
    use logpond_record::limits::{FIELD_NAME_BYTES_MAX, FIELDS_MAX};
    let parse = |line: &str| {
        let labels = Labels::new();
        let entry = Entry {
            id: Id::MIN,
            received: RECEIVED,
            kind: EntryKind::Json,
            labels: &labels,
            envelope: Envelope::default(),
            raw: line.as_bytes(),
        };
        let record = Parser::new().parse(&entry);
        assert!(rebuilds(&record, line.as_bytes()));
        (record.fields().count(), record.whole.is_some())
    };
    let wide = |count: usize, name: &str| {
        let fields: Vec<String> = (0..count).map(|i| format!("\"{name}{i}\":{i}")).collect();
        format!("{{{}}}", fields.join(","))
    };
    assert_eq!(parse(&wide(500, "f")), (500, false));
    assert_eq!(parse(&wide(FIELDS_MAX + 1, "")), (FIELDS_MAX + 1, true));
    assert_eq!(parse(&wide(30_000, "")), (30_000, true));
    assert_eq!(parse(&wide(200, &"n".repeat(200))), (200, true));
    let long = format!("{{\"{}\":1,\"a\":2}}", "n".repeat(FIELD_NAME_BYTES_MAX + 1));
    assert_eq!(parse(&long), (2, true));
    // The last of many, and one that is there twice among many.
    let last = format!(
        "{{\"b\":0,{},\"a\":1,\"b\":2}}",
        &wide(2000, "x")[1..].trim_end_matches('}')
    );
    assert_eq!(parse(&last), (2002, true));
}

/// Names of nested objects may be far longer than their line: then it is said how many are left out.
#[test]
fn fields_without_room_are_counted() {
    let members: Vec<String> = (0..100).map(|i| format!("\"{i}\":{i}")).collect();
    let line = format!(
        "{{\"{}\":{{{}}},\"z\":1}}",
        "n".repeat(100_000),
        members.join(",")
    );
    let described = |kind, line: &str| {
        let labels = Labels::new();
        let entry = Entry {
            id: Id::MIN,
            received: RECEIVED,
            kind,
            labels: &labels,
            envelope: Envelope::default(),
            raw: line.as_bytes(),
        };
        let record = Parser::new().parse(&entry).into_owned();
        assert!(record.whole.is_some() && rebuilds(&record, line.as_bytes()));
        record
    };
    for line in [line.clone(), format!("<13>Mar  2 00:00:00 h a: {line}")] {
        let record = described(EntryKind::Line, &line);
        let unlisted = record.field("_unlisted_fields").cloned();
        let listed = record.fields().filter(|(name, _)| name.len() > 100_000);
        let listed = listed.count() as i64;
        assert_eq!(unlisted, Some(Value::Int(100 - listed)), "{listed}");
        assert!(listed > 30, "{listed}");
        assert_eq!(record.field("z"), Some(&Value::Int(1)));
    }
}

#[test]
fn what_is_too_deep_is_a_text() {
    let deep = |levels: usize, value: &str| {
        format!("{}{value}{}", "{\"a\":".repeat(levels), "}".repeat(levels))
    };
    let line = format!("{{\"b\":{},\"c\":[1],\"msg\":\"m\"}}", deep(70, "[[]]"));
    let described = describe(EntryKind::Line, line.as_bytes());
    let name = format!("b{}", ".a".repeat(63));
    assert_eq!(
        described,
        format!("{name}={} c=[1] | m whole", deep(7, "[[]]"))
    );
    let list = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    let line = format!("{{\"b\":{list},\"c\":[1]}}");
    let described = describe(EntryKind::Line, line.as_bytes());
    assert_eq!(described, format!("b={list} c=[1] | none whole"));
    let broken = line.replacen("]]", "]", 1);
    assert!(describe(EntryKind::Line, broken.as_bytes()).contains("| {"));
    let mixed = format!("{}1{}", "[{\"x\":".repeat(100), "}]".repeat(100));
    let line = format!("{{\"b\":{mixed}}}");
    let described = describe(EntryKind::Line, line.as_bytes());
    assert_eq!(described, format!("b={mixed} | none whole"));
    let broken = line.replacen("}]", "]}", 1);
    assert!(!describe(EntryKind::Line, broken.as_bytes()).contains("whole"));
}

#[test]
fn errors_name_the_byte() {
    let deep = format!("{}1{}", "{\"a\":".repeat(65), "}".repeat(65));
    let table = [
        ("", "expected '{' at byte 0"),
        ("[1]", "expected '{' at byte 0"),
        (r#"{"a":1 "b":2}"#, "expected ',' or '}' at byte 7"),
        (r#"{"a":1,}"#, "expected a name in quotes at byte 7"),
        (r#"{"a" 1}"#, "expected ':' at byte 5"),
        (r#"{"a":[1 2]}"#, "expected ',' or ']' at byte 8"),
        (r#"{"a":"x"#, "expected '\"' at byte 7"),
        (r#"{"a":tru}"#, "expected a value at byte 5"),
        (r#"{"a":01}"#, "expected ',' or '}' at byte 6"),
        (r#"{"a":1.}"#, "expected a digit at byte 7"),
        (r#"{"a":"\x"}"#, "expected an escape of JSON at byte 6"),
        ("{\"a\":\"\t\"}", "control character in a string at byte 6"),
        (r#"{} x"#, "expected the end of the line at byte 3"),
        (&deep, "nested deeper than 64 levels at byte 320"),
    ];
    for (line, expected) in table {
        assert_eq!(validate(line.as_bytes()).unwrap_err().to_string(), expected);
        let error = flatten(line, &mut crate::intake::outline::Outline::new(), 0).err();
        assert_eq!(error.unwrap().to_string(), expected);
    }
    let error = validate(b"{\"a\":\"\xff\"}").unwrap_err();
    assert_eq!(error.to_string(), "not UTF-8 at byte 6");
}

#[test]
fn what_was_learned_is_used_and_changes_nothing() {
    let lines = [
        r#"{"ts":"2026-03-02T00:00:00.1Z","a":"x","n":1}"#,
        r#"{"ts":"2026-03-02T00:00:00.2Z","a":"y\"\u00e9","n":-0}"#,
        r#"{"ts":"2026-03-02T00:00:00.25Z","a":"y","n":2}"#,
        r#"{"ts":"later","a":"y","n":2}"#,
        r#"{"ts":"2026-03-02T00:00:00.3Z","a":"y","n":2.5}"#,
        r#"{"ts":5,"a":"y","n":2}"#,
        r#"{"_time":5,"a":"y","n":2}"#,
        r#"{"ts":1772409600,"a":"y","n":null}"#,
        r#"{"ts":"2026-03-02T00:00:00.3Z","a":"y","n":2} "#,
        r#"{"ts":"2026-03-02T00:00:00.3Z","a":"y","n":[]}"#,
        r#"{"ts":"2026-03-02T00:00:00.3Z","a":"y","n":{ }}"#,
        r#"{"ts":"2026-03-02T00:00:00.3Z","_time":"x","n":2}"#,
        r#"{"ts":"2026-03-02T00:00:00.3Z","_time":"2026-03-02T00:00:00.3Z","n":2}"#,
        r#"{"msg":"2026","message":"y","n":2}"#,
        r#"{"msg":"2026","message":7,"n":2}"#,
        r#"{"date":"2026-03-02","Timestamp":"2026-03-02T00:00:00Z","Message":"a\u00e9"}"#,
        r#"{"date":"2026-03-02T00:00:00Z","Timestamp":"later","Message":"a"}"#,
        r#"{"date":"2026-03-02","Timestamp":"2026-03-02T00:00:00.5Z","Message":"a\n"}"#,
        r#"{"instant":{"epochSecond":1772409600,"nanoOfSecond":5},"level":"info"}"#,
        r#"{"instant":{"epochSecond":17,"nanoOfSecond":5},"level":"info"}"#,
        r#"{"t":{"$date":"2026-03-02T00:00:00Z"},"s":"W","msg":"x"}"#,
        r#"{"t":{"$date":"2026-03-02T00:00:00Z"},"s":"nothing","msg":"ERROR x"}"#,
        r#"{"date":"2026-03-02","time":"00:00:01","n":1}"#,
        r#"{"date":"2026-03-02","time":"noon","n":1}"#,
        r#"{"message":"ERROR a","n":1}"#,
        r#"{"message":"2026-03-02 00:00:00 a","n":1}"#,
        r#"{"message":"a=1 b=2","n":1}"#,
        r#"{"message":"a=1 n=2","n":1}"#,
        r#"{"message":"a=1 b=\"2\\\"\"","n":1}"#,
        r#"{"message":"{\"a\":{\"message\":\"x\"},\"n\":[1,\"b\"]}","n":1}"#,
        r#"{"severity":"2","calendarTime":"x","n":1}"#,
    ];
    let labels = Labels::new();
    let mut parser = Parser::new();
    for round in 0..4 {
        for line in lines {
            let entry = Entry {
                id: Id::MIN,
                received: RECEIVED,
                kind: EntryKind::Json,
                labels: &labels,
                envelope: Envelope::default(),
                raw: line.as_bytes(),
            };
            let learned = format!("{:?}", parser.parse(&entry));
            let fresh = format!("{:?}", Parser::new().parse(&entry));
            assert_eq!(learned, fresh, "{line} in round {round}");
        }
    }
    let mut learned = Outlines::new();
    assert!(
        learned
            .read(lines[0], RECEIVED, &TimeReader::new())
            .is_none()
    );
}

#[test]
fn full_trees_start_anew() {
    let labels = Labels::new();
    let mut parser = Parser::new();
    for key in 0..3000 {
        let fields: Vec<String> = (0..20).map(|i| format!("\"k{key}.{i}\":{i}")).collect();
        let line = format!("{{{}}}", fields.join(","));
        for _ in 0..3 {
            let entry = Entry {
                id: Id::MIN,
                received: RECEIVED,
                kind: EntryKind::Json,
                labels: &labels,
                envelope: Envelope::default(),
                raw: line.as_bytes(),
            };
            assert_eq!(parser.parse(&entry).fields().count(), 20);
        }
    }
}

/// JSON values as text, in any style that RFC 8259 allows.
fn value(depth: u32) -> BoxedStrategy<String> {
    let space = prop_oneof![4 => Just(""), 1 => Just(" "), 1 => Just("\t\n ")];
    let string = prop_oneof![
        "\"[ -!#-\\[\\]-~]{0,12}\"",
        "\"([ -!#-\\[\\]-~é⟨😀]|\\\\[\"\\\\/bfnrt]|\\\\u[0-9a-fA-F]{4}){0,6}\"",
        Just("\"2026-03-02T00:00:00.5Z\"".to_owned()),
    ];
    let scalar = prop_oneof![
        string,
        "-?(0|[1-9][0-9]{0,20})(\\.[0-9]{1,6})?([eE][-+]?[0-9]{1,3})?",
        "(true|false|null)",
    ];
    scalar
        .prop_recursive(depth, 24, 5, move |inner| {
            let key = "(a|b|msg|_msg|ts|time|_time|[a-z.]{0,4}|\\\\u00e9|é|\\\\n)";
            let member = (key, space.clone(), inner.clone(), space.clone())
                .prop_map(|(k, s, v, t)| format!("{s}\"{k}\"{t}:{s}{v}{t}"));
            let object = proptest::collection::vec(member, 0..5)
                .prop_map(|members| format!("{{{}}}", members.join(",")));
            let array = proptest::collection::vec(inner, 0..4)
                .prop_map(|values| format!("[{}]", values.join(" ,")));
            prop_oneof![3 => object, 1 => array]
        })
        .boxed()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn objects_are_rebuilt(lines in proptest::collection::vec(value(4), 1..4)) {
        let labels = Labels::new();
        let mut parser = Parser::new();
        for _ in 0..3 {
            for line in lines.iter().filter(|line| line.starts_with('{')) {
                prop_assert!(validate(line.as_bytes()).is_ok(), "{}", line);
                let entry = Entry {
                    id: Id::MIN,
                    received: RECEIVED,
                    kind: EntryKind::Json,
                    labels: &labels,
                    envelope: Envelope::default(),
                    raw: line.as_bytes(),
                };
                let record = parser.parse(&entry);
                prop_assert!(rebuilds(&record, line.as_bytes()), "{}", line);
                let fresh = Parser::new().parse(&entry);
                prop_assert_eq!(format!("{record:?}"), format!("{fresh:?}"));
            }
        }
    }

    #[test]
    fn numbers_are_read_as_the_standard_library_reads_them(
        text in "-?(0|[1-9][0-9]{0,20})(\\.[0-9]{1,20})?([eE][-+]?[0-9]{1,3})?",
    ) {
        let token = Scanner::new(&text).number_token().unwrap();
        match token.value {
            Value::Int(int) => prop_assert_eq!(Ok(int), text.parse()),
            Value::Float(float) => {
                prop_assert_eq!(float.to_bits(), text.parse::<f64>().unwrap().to_bits());
                let mut rendered = Vec::new();
                Value::Float(float).write_text(&mut rendered);
                if token.canonical {
                    prop_assert_eq!(rendered, text.as_bytes());
                }
            }
            _ => {
                let float: f64 = text.parse().unwrap();
                let written = logpond_record::Decimal::parse(text.as_bytes()).unwrap();
                prop_assert!(text.parse::<i64>().is_err());
                let is_whole = !text.contains(['.', 'e', 'E']);
                prop_assert!(is_whole || !written.is_written_float(float));
                prop_assert!(token.canonical && token.value.number_text() == Some(&*text));
            }
        }
    }

    #[test]
    fn special_bytes_are_found(text in "[ -~\u{0}-\u{1f}é]{0,40}") {
        let expected = text.bytes().position(|b| b < 0x20 || b == b'"' || b == b'\\');
        prop_assert_eq!(special(text.as_bytes(), 0), expected.unwrap_or(text.len()));
    }
}
