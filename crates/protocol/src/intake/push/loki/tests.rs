use logpond_record::{Labels, line_of};

use super::*;
use crate::intake::protobuf::write;
use crate::intake::push::DecodedBody;

/// Each entry: its time, its fields and its line.
fn entries(pushed: &DecodedBody) -> Vec<String> {
    let each = pushed.batch.iter().map(|held| {
        let (kind, envelope, line) = line_of(pushed.batch.kind, held);
        assert_eq!(kind, EntryKind::Line);
        let mut out = envelope.time.unwrap().0.to_string();
        for (name, value) in envelope.fields() {
            out += &format!(" {name}={}", String::from_utf8_lossy(&value.to_text()));
        }
        out + " | " + &line.escape_ascii().to_string()
    });
    each.collect()
}

fn json(body: &str) -> Result<DecodedBody, LokiError> {
    decode_json(body.as_bytes(), Labels::new(), 20)
}

#[test]
fn json_bodies() {
    let pushed = json(
        r#"{"streams":[
            {"stream":{"app":"shop","esc\n":"\u00e4"},"values":[
                ["1763805600000000001","one"],
                ["1763805600000000002","two\n",{"trace":"abc","app":"own"}],
                ["12x","no time"],
                ["3","twenty-one bytes long"],
                ["4","null is no metadata",null]]},
            {"values":[["5",""]],"stream":{"late":"labels"},"more":[1,{}]},
            {"stream":{},"values":[]}
        ],"unknown":{}}"#,
    )
    .unwrap();
    assert_eq!(
        entries(&pushed),
        [
            "1763805600000000001 app=shop esc\n=ä | one",
            "1763805600000000002 trace=abc app=own app@label=shop esc\n=ä | two\\n",
            "4 app=shop esc\n=ä | null is no metadata",
            "5 late=labels | ",
        ]
    );
    let reasons: Vec<_> = pushed.rejected.iter().map(ToString::to_string).collect();
    assert_eq!(
        reasons,
        [
            "line 3: time '12x' is no number of nanoseconds",
            "line 4: the line has 21 bytes, more than the limit of 20 bytes a line \
             (line-bytes-max)",
        ]
    );
    assert_eq!((pushed.accepted, pushed.rejected_total), (4, 2));
    let empty = json(r#"{"streams":[{"stream":{},"values":[]}]}"#);
    assert_eq!(empty.unwrap().accepted, 0);
}

#[test]
fn labels_that_are_no_texts_are_taken_as_they_are_written() {
    let pushed = json(
        r#"{"streams":[{"stream":{"a":5,"b":1.50e3,"c":true,"d":null,"e":{"f": "g"},"h":"\u00e4"},
            "values":[["1","x"]]}]}"#,
    );
    let expected = r#"1 a=5 b=1.50e3 c=true d=null e={"f": "g"} h=ä | x"#;
    assert_eq!(entries(&pushed.unwrap()), [expected]);
}

#[test]
fn an_entry_that_is_none_takes_no_other_with_it() {
    let pushed = json(
        r#"{"streams":[{"stream":{"app":"a"},"values":[
            ["1","one",{"n":200,"f":1.50,"b":true,"z":null,"o":{"p":[1]}}],
            [2,"two"],["3"],["4",5],["5","x",[1]],{},7,["6","six",{"k":"v"}],[1.5,"x"]]}]}"#,
    )
    .unwrap();
    assert_eq!(
        entries(&pushed),
        [
            r#"1 n=200 f=1.50 b=true z=null o={"p":[1]} app=a | one"#,
            "2 app=a | two",
            "6 k=v app=a | six",
        ]
    );
    let lines: Vec<usize> = pushed.rejected.iter().map(|one| one.line).collect();
    assert_eq!((lines, pushed.rejected_total), (vec![3, 4, 5, 6, 7, 9], 6));
}

#[test]
fn a_push_without_a_stream_is_refused() {
    for body in ["{}", "{\"streams\":[]}"] {
        assert_eq!(json(body).unwrap_err(), LokiError::NoStreams, "{body}");
    }
    let encoded = decode_protobuf(b"", Labels::new(), 20);
    assert_eq!(encoded.unwrap_err(), LokiError::NoStreams);
}

#[test]
fn what_is_no_push_takes_all() {
    for body in [
        "",
        "7",
        "{\"streams\":{}}",
        "{\"streams\":[{\"stream\":{}}]}",
        "{\"streams\":[{\"stream\":{\"a\":1x},\"values\":[]}]}",
        "{\"streams\":[{\"stream\":{},\"values\":{}}]}",
        "{\"streams\":[]} x",
    ] {
        assert!(matches!(json(body), Err(LokiError::Body(_))), "{body}");
    }
}

fn entry(seconds: u64, nanos: u64, line: &[u8], metadata: &[(&str, &str)]) -> Vec<u8> {
    let (mut stamp, mut out) = (Vec::new(), Vec::new());
    write::number(1, seconds, &mut stamp);
    write::number(2, nanos, &mut stamp);
    write::bytes(1, &stamp, &mut out);
    write::bytes(2, line, &mut out);
    for (name, value) in metadata {
        let mut pair = Vec::new();
        write::bytes(1, name.as_bytes(), &mut pair);
        write::bytes(2, value.as_bytes(), &mut pair);
        write::bytes(3, &pair, &mut out);
    }
    out
}

fn stream(labels: &str, entries: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    write::bytes(1, labels.as_bytes(), &mut out);
    entries
        .iter()
        .for_each(|entry| write::bytes(2, entry, &mut out));
    write::number(3, 77, &mut out);
    out
}

fn request(streams: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    streams
        .iter()
        .for_each(|stream| write::bytes(1, stream, &mut out));
    out
}

#[test]
fn protobuf_bodies() {
    let body = request(&[
        stream(
            r#"{app="shop", pod="a\"b"}"#,
            &[
                entry(1_763_805_600, 1, b"one \xff", &[]),
                entry(1_763_805_600, 2, b"two", &[("trace", "abc")]),
                entry(u64::MAX / 4, 0, b"far", &[]),
                entry(0, 0, &[b'x'; 30], &[]),
                entry(u64::MAX, 0, b"before 1970", &[]),
            ],
        ),
        stream("{}", &[vec![]]),
    ]);
    let pushed = decode_protobuf(&body, Labels::new(), 20).unwrap();
    assert_eq!(
        entries(&pushed),
        [
            "1763805600000000001 app=shop pod=a\"b | one \\xff",
            "1763805600000000002 trace=abc app=shop pod=a\"b | two",
            "0 | ",
        ]
    );
    assert_eq!((pushed.accepted, pushed.rejected_total), (3, 3));
    let last = pushed.rejected[2].reason.to_string();
    assert_eq!(last, "its time is before 1970 or after 2199");
    // Wherever it is cut: all of it, or an error; never a panic.
    for end in 0..body.len() {
        let _ = decode_protobuf(&body[..end], Labels::new(), 20);
    }
    let bad = request(&[stream("app=1", &[])]);
    let error = decode_protobuf(&bad, Labels::new(), 20).unwrap_err();
    assert!(matches!(error, LokiError::Labels { .. }), "{error}");
    let error = decode_protobuf(b"\xff\xff", Labels::new(), 20).unwrap_err();
    assert!(matches!(error, LokiError::Body(_)), "{error}");
}

#[test]
fn an_encoded_entry_that_is_none_takes_no_other_with_it() {
    let mut bad = Vec::new();
    write::bytes(3, b"\x0a\x01\xff", &mut bad);
    let good = entry(1, 0, b"good", &[]);
    let body = request(&[stream("{}", &[bad, vec![0xff], good])]);
    let pushed = decode_protobuf(&body, Labels::new(), 20).unwrap();
    assert_eq!(entries(&pushed), ["1000000000 | good"]);
    assert_eq!(pushed.rejected_total, 2);
}

/// A small body whose labels make it large.
#[test]
fn labels_do_not_multiply_without_bounds() {
    let label = format!("{{a=\"{}\"}}", "x".repeat(1 << 20));
    let body = request(&[stream(&label, &vec![vec![]; 200])]);
    let error = decode_protobuf(&body, Labels::new(), 20).unwrap_err();
    assert_eq!(error, LokiError::TooLarge(TooLarge::Bytes));
}
