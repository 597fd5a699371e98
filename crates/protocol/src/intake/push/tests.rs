use super::*;

/// Kind, time, fields and line of each record that has an envelope.
pub(super) fn records(pushed: &DecodedBody) -> Vec<String> {
    let each = pushed.batch.iter().map(|held| {
        let (kind, envelope, line) = logpond_record::line_of(pushed.batch.kind, held);
        let mut out = format!("{kind:?} {:?}", envelope.time.map(|time| time.0));
        for (name, value) in envelope.fields() {
            out += &format!(" {name}={}", String::from_utf8_lossy(&value.to_text()));
        }
        out + " | " + &String::from_utf8_lossy(line).replace('\n', "\\n")
    });
    each.collect()
}

fn entries(pushed: &DecodedBody) -> Vec<String> {
    let lines = pushed.batch.iter();
    lines.map(|l| l.escape_ascii().to_string()).collect()
}

fn reasons(pushed: &DecodedBody) -> Vec<String> {
    pushed.rejected.iter().map(Rejection::to_string).collect()
}

#[test]
fn a_bad_line_takes_no_good_one_with_it() {
    let body = b"{\"a\":1}\r\n\n  \n[1]\n{\"a\":12345,\"b\":1 2}\n{\"b\":2}\n\xff\n{\"c\":3}";
    let pushed = decode_default(PushForm::NdJson, body, Labels::new()).unwrap();
    assert_eq!(
        entries(&pushed),
        [r#"{\"a\":1}"#, r#"{\"b\":2}"#, r#"{\"c\":3}"#]
    );
    assert_eq!(
        reasons(&pushed),
        [
            "line 4: not a JSON object: expected '{' at byte 0",
            "line 5: not a JSON object: expected ',' or '}' at byte 17",
            "line 7: not a JSON object: not UTF-8 at byte 0",
        ]
    );
    assert_eq!((pushed.accepted, pushed.rejected_total), (3, 3));
    assert_eq!(pushed.batch.kind, EntryKind::Json);
}

#[test]
fn text_keeps_every_byte() {
    let body = b"a\r\n\n\0%\xff\n last";
    let pushed = decode_default(PushForm::Text, body, Labels::new()).unwrap();
    assert_eq!(entries(&pushed), ["a\\r", "", "\\x00%\\xff", " last"]);
    assert_eq!(pushed.batch.kind, EntryKind::Line);
    let empty = decode_default(PushForm::Text, b"", Labels::new()).unwrap();
    assert_eq!((empty.accepted, empty.rejected_total), (0, 0));
}

#[test]
fn limits_are_named_and_lists_are_cut() {
    let body = b"123456789\n1\n".repeat(150);
    let pushed = decode(PushForm::Text, &body, Labels::new(), 8).unwrap();
    assert_eq!(pushed.accepted, 150);
    assert_eq!(
        (pushed.rejected.len(), pushed.rejected_total),
        (REJECTIONS_MAX, 150)
    );
    assert_eq!(
        reasons(&pushed)[1],
        "line 3: the line has 9 bytes, more than the limit of 8 bytes a line (line-bytes-max)"
    );
}

#[test]
fn headers_name_forms() {
    let form = |value| PushForm::from_header(value);
    assert_eq!(form("application/x-ndjson"), Some(PushForm::NdJson));
    assert_eq!(form("Text/Plain; charset=utf-8"), Some(PushForm::Text));
    assert_eq!(form("text/html"), None);
}

/// What stands beside a line does not count for its limit.
#[test]
fn batches_that_come_whole_are_screened_by_their_lines() {
    let mut batch = Batch::new(EntryKind::Enveloped, Labels::new());
    let fields = [("a long name", &Value::Str("a long value".into()))];
    for line in [&b"12345678"[..], b"123456789"] {
        batch.push_enveloped(EntryKind::Line, None, fields, line);
    }
    batch.push_enveloped(EntryKind::Json, None, [], b"no JSON");
    let pushed = screen(batch, 8);
    assert_eq!((pushed.accepted, pushed.rejected_total), (1, 2));
    assert_eq!(
        reasons(&pushed),
        [
            "line 2: the line has 9 bytes, more than the limit of 8 bytes a line (line-bytes-max)",
            "line 3: not a JSON object: expected '{' at byte 0",
        ]
    );
}

/// An entry has the room of the longest line, whatever it holds: what is larger fits no frame.
#[test]
fn entries_have_a_limit_of_their_own() {
    let value = Value::Str("x".repeat(LINE_BYTES_MAX).into());
    let mut batch = Batch::new(EntryKind::Enveloped, Labels::new());
    batch.push_enveloped(EntryKind::Line, None, [("a", &value)], b"a");
    let pushed = screen(batch, 8);
    assert_eq!((pushed.accepted, pushed.rejected_total), (0, 1));
}

/// The lines that were taken, and the rejections as text.
fn taken(body: &str) -> (Vec<String>, Vec<String>) {
    let pushed = decode_default(PushForm::NdJson, body.as_bytes(), Labels::new()).unwrap();
    let lines = pushed.batch.iter();
    let lines = lines.map(|line| String::from_utf8_lossy(line).into_owned());
    let rejected = pushed.rejected.iter().map(ToString::to_string);
    (lines.collect(), rejected.collect())
}

#[test]
fn elements_of_arrays_are_records() {
    for body in [
        r#"[{"a":1},{"b":"]},\\\"["}]"#,
        "[{\"a\":1},\n {\"b\":\"]},\\\\\\\"[\"}\n]\n",
        "\u{feff}[\n{\"a\":1}\n,\n{\"b\":\"]},\\\\\\\"[\"}\n]",
        "[{\"a\":1}]\r\n[{\"b\":\"]},\\\\\\\"[\"}]\r\n",
    ] {
        let (lines, rejected) = taken(body);
        assert_eq!(rejected, [""; 0], "{body}");
        assert_eq!(lines, [r#"{"a":1}"#, r#"{"b":"]},\\\"["}"#], "{body}");
    }
    assert_eq!(
        taken("[]\n[ ]\n{\"a\":1}"),
        (vec![r#"{"a":1}"#.into()], vec![])
    );
    let pretty = "{\n  \"a\": {\n    \"b\": 1\n  }\n}\n{\"c\":2}\n";
    let (lines, rejected) = taken(pretty);
    assert_eq!(rejected, [""; 0]);
    assert_eq!(lines, ["{\n  \"a\": {\n    \"b\": 1\n  }\n}", "{\"c\":2}"]);
}

#[test]
fn a_bad_element_takes_no_other_with_it() {
    let (lines, rejected) = taken("[{\"a\":1},\n7,\n{\"b\":},{\"c\":3},]\n{\"d\":4}");
    assert_eq!(lines, [r#"{"a":1}"#, r#"{"c":3}"#, r#"{"d":4}"#]);
    assert_eq!(
        rejected,
        [
            "line 2: element 2 of the array: not a JSON object: expected '{' at byte 0",
            "line 3: element 3 of the array: not a JSON object: expected a value at byte 5",
            "line 3: element 5 of the array: not a JSON object: expected '{' at byte 0",
        ]
    );
    // What does not end, or is none, is one bad line.
    for bad in [
        "[{\"a\":1},",
        "[ERROR] x",
        "{",
        "[{\"a\":\"",
        "[{}] x",
        "[1]",
    ] {
        let (lines, rejected) = taken(&format!("{bad}\n{{\"b\":2}}\n{{\"c\":3}}\n"));
        assert_eq!(lines, [r#"{"b":2}"#, r#"{"c":3}"#], "{bad}");
        assert_eq!(rejected.len(), 1, "{bad}");
        assert!(rejected[0].starts_with("line 1: "), "{rejected:?}");
    }
}

#[test]
fn arrays_without_an_end_take_no_time() {
    let body = "[{\"a\":\n".repeat(300_000);
    let pushed = decode_default(PushForm::NdJson, body.as_bytes(), Labels::new()).unwrap();
    assert_eq!((pushed.accepted, pushed.rejected_total), (0, 300_000));
}

/// A record more than a batch may have: the body is refused, and nothing is left out of one that is not.
#[test]
fn bodies_of_too_many_records_are_refused_as_a_whole() {
    let metadata = splunk::Metadata::default();
    let times = |part: &[u8], count: usize| part.repeat(count);
    let texts = |form, body: &[u8]| decode_default(form, body, Labels::new()).map(|p| p.accepted);
    let raw = |body: &[u8]| splunk::decode_raw(body, &metadata, 100).map(|p| p.accepted);
    let in_loki = |count| {
        let values = times(br#",["1",""]"#, count);
        let body = [
            br#"{"streams":[{"stream":{},"values":["#,
            &values[1..],
            b"]}]}",
        ]
        .concat();
        match loki::decode_json(&body, Labels::new(), 100) {
            Err(loki::LokiError::TooLarge(error)) => Err(error),
            pushed => Ok(pushed.unwrap().accepted),
        }
    };
    let full = BATCH_RECORDS_MAX;
    for (count, expected) in [(full, Ok(full)), (full + 1, Err(TooLarge::Records))] {
        assert_eq!(texts(PushForm::Text, &times(b"\n", count)), expected);
        assert_eq!(texts(PushForm::NdJson, &times(b"{}\n", count)), expected);
        assert_eq!(raw(&times(b"x\r\n", count)), expected);
        assert_eq!(in_loki(count), expected);
    }
    // Blank lines between objects are no records, and are passed over however many they are.
    assert_eq!(texts(PushForm::NdJson, &times(b"\n", full + 1)), Ok(0));
}
