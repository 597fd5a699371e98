use std::io::Write;

use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use logpond_record::line_of;

use super::*;
use crate::intake::body::BODY_BYTES_MAX;

/// Each record: its time, fields and line.
fn records(batch: &Batch) -> Vec<String> {
    let each = batch.iter().map(|held| {
        let (kind, envelope, line) = line_of(batch.kind, held);
        assert_eq!(kind, EntryKind::Line);
        let mut out = format!("{:?}", envelope.time.map(|time| time.0));
        for (name, value) in envelope.fields() {
            out += &format!(" {name}={}", value.to_text().escape_ascii());
        }
        out + " | " + &line.escape_ascii().to_string()
    });
    each.collect()
}

fn body(text: &str) -> Result<Vec<String>, String> {
    let pushed =
        decode_body(text.as_bytes(), BODY_BYTES_MAX, 64).map_err(|error| error.to_string())?;
    assert_eq!(
        (pushed.accepted, pushed.rejected_total),
        (pushed.batch.len(), 0)
    );
    Ok(records(&pushed.batch))
}

#[test]
fn messages_become_records() {
    let table = [
        (
            r#"{"version":"1.1","host":"web-1","short_message":"started","level":6,
                "timestamp":1763805600.123456789,"_app":"shop","_n":1,"_o":{"a":{"b":true}},"_l":[1],
                "facility":"f","line":7,"_id":"own","__x":1,"_":2}"#,
            "Some(1763805600123456789) hostname=web-1 severity=6 app=shop n=1 o.a.b=true l=[1] \
             facility=f line=7 id=own _x=1 _=2 | started",
        ),
        // What senders do with less care.
        (
            r#"{"short_message":"x","level":"3","timestamp":"1763805600","host":""}"#,
            "Some(1763805600000000000) severity=3 | x",
        ),
        (
            r#"{"short_message":"x","timestamp":1.7638056e9}"#,
            "Some(1763805600000000000) | x",
        ),
        (
            r#"{"short_message":"x","level":"warn","timestamp":"noon","host":7}"#,
            "None hostname=7 level=warn timestamp=noon | x",
        ),
        (
            r#"{"short_message":"x","level":8,"timestamp":-1}"#,
            "None level=8 timestamp=-1 | x",
        ),
        (r#"{"short_message":{"a":1}}"#, r#"None | {\"a\":1}"#),
        (r#"{"short_message":""}"#, "None | "),
        (r#"{"full_message":"only"}"#, "None | only"),
        // All words are in the line.
        (
            r#"{"short_message":"boom","full_message":"boom\n at f"}"#,
            r"None short_message=boom | boom\n at f",
        ),
        (
            r#"{"short_message":"boom","full_message":"Traceback\n at f"}"#,
            r"None short_message=boom | boom\nTraceback\n at f",
        ),
        (r#"{"short_message":"a","full_message":"a"}"#, "None | a"),
    ];
    for (message, record) in table {
        assert_eq!(body(message), Ok(vec![record.to_owned()]), "{message}");
    }
}

#[test]
fn deviations_of_libraries_are_read() {
    let table = [
        // Milliseconds, and text.
        (
            r#"{"short_message":"x","timestamp":1763805600500}"#,
            "Some(1763805600500000000) | x",
        ),
        (
            r#"{"short_message":"x","timestamp":"2025-11-22T10:00:00.5Z"}"#,
            "Some(1763805600500000000) | x",
        ),
        // winston-gelf and others send the time among the additional fields.
        (
            r#"{"short_message":"x","_timestamp":"2025-11-22T10:00:00.500Z"}"#,
            "Some(1763805600500000000) timestamp=2025-11-22T10:00:00.500Z | x",
        ),
        (
            r#"{"short_message":"x","timestamp":1763805600,"_timestamp":"2025-11-22T11:00:00Z"}"#,
            "Some(1763805600000000000) timestamp=2025-11-22T11:00:00Z | x",
        ),
        (
            r#"{"short_message":"x","_time":1763805600500,"_timestamp":"noon"}"#,
            "Some(1763805600500000000) time=1763805600500 timestamp=noon | x",
        ),
        (
            r#"{"short_message":"x","_time":17.5}"#,
            "None time=17.5 | x",
        ),
        // logback-gelf's layout has a line end.
        (r#"{"short_message":"a","full_message":"a\n"}"#, "None | a"),
        (
            r#"{"short_message":"a","full_message":"a\n at f\r\n"}"#,
            r"None short_message=a | a\n at f",
        ),
        // Lists of indented objects.
        (
            "{\"short_message\":\"a\",\"_l\":[\n  1,\n  \"b c\"\n],\"_o\":{\"e\":[ ]}}",
            r#"None l=[1,\"b c\"] o.e=[ ] | a"#,
        ),
        (r#"{"short_message":"a","full_message":""}"#, "None | a"),
        (r#"{"short_message":"a","full_message":null}"#, "None | a"),
    ];
    for (message, record) in table {
        assert_eq!(body(message), Ok(vec![record.to_owned()]), "{message}");
    }
}

#[test]
fn a_body_is_one_message_or_several_lines() {
    let two = "{\"short_message\":\"a\"}\n\n{\"short_message\":\"b\"}\r\n";
    assert_eq!(
        body(two),
        Ok(vec!["None | a".to_owned(), "None | b".to_owned()])
    );
    let long = format!("{{\"short_message\":\"{}\"}}", "x".repeat(65));
    let many = |n| (0..n).map(|n| format!("\"_n{n}\":0")).collect::<Vec<_>>();
    let object = |n| format!("{{\"short_message\":\"x\",{}}}", many(n).join(","));
    assert!(body(&object(1024)).is_ok());
    let (many, very_many) = (object(1025), object(2000));
    let table = [
        ("", "message 1 is no GELF: it is no JSON object: EOF"),
        ("[]", "message 1 is no GELF: it is no JSON object: invalid"),
        ("{\n}", "message 1 is no GELF: it has no short_message"),
        (
            "{\"short_message\":\n1",
            "message 1 is no GELF: it is no JSON object: EOF",
        ),
        (&long, "message 1 is no GELF: the line has 65 bytes"),
        (&many, "message 1 is no GELF: it has more than 1024 fields"),
        (
            &very_many,
            "message 1 is no GELF: it is no JSON object: it has more than",
        ),
        ("\x1f\u{8b}", "message 1 is no GELF: it is no JSON object"),
    ];
    for (text, error) in table {
        let said = body(text).unwrap_err();
        assert!(said.starts_with(error), "{text}: {said}");
    }
}

#[test]
fn a_bad_message_costs_no_other() {
    let text = "{\"short_message\":\"a\"}\nx\n{\"short_message\":\"b\"}";
    let pushed = decode_body(text.as_bytes(), BODY_BYTES_MAX, 64).unwrap();
    assert_eq!(records(&pushed.batch), ["None | a", "None | b"]);
    let said: Vec<String> = pushed.rejected.iter().map(ToString::to_string).collect();
    assert_eq!((pushed.accepted, pushed.rejected_total), (2, 1));
    assert!(
        said[0].starts_with("line 2: it is no JSON object"),
        "{said:?}"
    );
}

#[test]
fn the_last_member_of_a_name_counts() {
    let text = r#"{"host":"h1","host":"h2","level":3,"level":6,"_hostname":"h3","_x":1,"_x":2,"short_message":"a",
        "short_message":"b"}"#;
    let expected = "None hostname=h2 severity=6 hostname@label=h3 x=2 | b";
    assert_eq!(body(text), Ok(vec![expected.to_owned()]));
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zlib(bytes: &[u8], level: Compression) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), level);
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn where_nobody_is_told_everything_is_kept_or_counted() {
    let good = br#"{"host":"h","short_message":"good"}"#;
    let labels = vec![
        ("hostname".into(), "peer".into()),
        ("other".into(), "label".into()),
    ];
    let mut messages = Batch::new(EntryKind::Line, labels);
    messages.push(good);
    messages.push(&gzip(good));
    for level in [0, 1, 6, 9] {
        messages.push(&zlib(good, Compression::new(level)));
    }
    messages.push(b"{\"short_message\":\"with its end\"}\r\n\0");
    messages.push(b"plain \xff text\n");
    messages.push(br#"{"no":"message"}"#);
    messages.push(format!("{{\"short_message\":\"{}\"}}", "x".repeat(50)).as_bytes());
    messages.push(&gzip(good)[..20]);
    // A bomb.
    messages.push(&gzip(&vec![b' '; 4 << 20]));
    let decoded = decode(&messages, 0, 40);
    let mut expected = vec!["None hostname=h | good".to_owned(); 6];
    expected.extend([
        "None hostname=peer | with its end".to_owned(),
        "None hostname=peer | plain \\xff text".to_owned(),
        "None hostname=peer | {\\\"no\\\":\\\"message\\\"}".to_owned(),
        format!(
            "None hostname=peer _truncated_bytes=50 | {}",
            "x".repeat(40)
        ),
    ]);
    assert_eq!(records(&decoded.batch), expected);
    assert_eq!(decoded.batch.labels, [("other".into(), "label".into())]);
    let counts = (decoded.malformed, decoded.truncated, decoded.lost);
    assert_eq!((decoded.taken, counts), (12, (4, 1, 2)));
    assert_eq!(decode(&messages, 11, 40).taken, 1);
    assert_eq!(decode(&messages, 12, 40).taken, 0);
}

/// However well they are compressed, few are decoded at a time.
#[test]
fn what_is_decoded_at_a_time_is_bounded() {
    let message = format!("{{\"short_message\":\"{}\"}}", "x".repeat(1 << 20));
    let mut messages = Batch::new(EntryKind::Line, Labels::new());
    (0..100).for_each(|_| messages.push(&gzip(message.as_bytes())));
    let decoded = decode(&messages, 0, 2 << 20);
    assert!((1..10).contains(&decoded.taken), "{}", decoded.taken);
    assert_eq!(decoded.batch.len(), decoded.taken);
}
