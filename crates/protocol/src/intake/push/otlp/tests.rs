use logpond_record::{Labels, line_of};

use super::*;
use crate::intake::protobuf::write;
use crate::intake::push::DecodedBody;

/// Each record: kind and time, its fields and its line.
fn records(pushed: &DecodedBody) -> Vec<String> {
    let each = pushed.batch.iter().map(|held| {
        let (kind, envelope, line) = line_of(pushed.batch.kind, held);
        let mut out = format!("{kind:?} {:?}", envelope.time.map(|time| time.0));
        for (name, value) in envelope.fields() {
            out += &format!(" {name}={}", value.to_text().escape_ascii());
        }
        out + " | " + &line.escape_ascii().to_string()
    });
    each.collect()
}

const JSON: &str = r#"{"resourceLogs":[
  {"scopeLogs":[
    {"logRecords":[
      {"timeUnixNano":"1544712660300000000","observedTimeUnixNano":"7","severityNumber":10,
       "severityText":"Information","traceId":"5B8EFFF798038103D269B633813FC60C",
       "spanId":"eee19b7ec3c1b174","body":{"stringValue":"plain {\"a\":1}"},"unknown":[{}],
       "attributes":[
         {"key":"s","value":{"stringValue":"text"}},
         {"key":"b","value":{"boolValue":true}},
         {"key":"i","value":{"intValue":"-7"}},
         {"key":"d","value":{"doubleValue":0.5}},
         {"key":"nan","value":{"doubleValue":"NaN"}},
         {"key":"l","value":{"arrayValue":{"values":[{"intValue":1},{"stringValue":"x"},{}]}}},
         {"key":"m","value":{"kvlistValue":{"values":[
            {"key":"in","value":{"stringValue":"deep"}},{"key":"none","value":{}}]}}},
         {"key":"raw","value":{"bytesValue":"/wA="}},
         {"key":"empty","value":{"kvlistValue":{}}}]},
      {"observedTimeUnixNano":9,"severityNumber":17,"eventName":"checkout",
       "body":{"kvlistValue":{"values":[{"key":"n","value":{"intValue":1}}]}}},
      {"body":{"arrayValue":{"values":[{"boolValue":false}]}}},
      {}],
     "scope":{"name":"lib","version":"1.0","attributes":[{"key":"own","value":{"intValue":2}}]}}],
   "resource":{"attributes":[{"key":"service.name","value":{"stringValue":"shop"}}]}},
  {"scopeLogs":[{"logRecords":[{"body":{"stringValue":"this line is longer than forty bytes, so it is not taken"}}]}]}
]}"#;

const SHARED: &str = "own=2 scope.name=lib scope.version=1.0 service.name=shop";

fn expected() -> Vec<String> {
    vec![
        format!(
            "Line Some(1544712660300000000) s=text b=true i=-7 d=0.5 nan=NaN l=[1,\\\"x\\\",null] \
             m.in=deep m.none=null raw=\\xff\\x00 empty={{}} severity_text=Information \
             trace_id=5b8efff798038103d269b633813fc60c span_id=eee19b7ec3c1b174 severity_number=10 \
             {SHARED} | plain {{\\\"a\\\":1}}"
        ),
        format!(
            "Json Some(9) severity_text=ERROR event_name=checkout severity_number=17 {SHARED} | \
             {{\\\"n\\\":1}}"
        ),
        format!("Line None {SHARED} | [false]"),
        format!("Line None {SHARED} | "),
    ]
}

#[test]
fn json_bodies() {
    let pushed = decode_json(JSON.as_bytes(), Labels::new(), 40).unwrap();
    assert_eq!(records(&pushed), expected());
    assert_eq!((pushed.accepted, pushed.rejected_total), (4, 1));
    assert_eq!(pushed.rejected[0].line, 5);
    assert_eq!(decode_json(b"{}", Labels::new(), 40).unwrap().accepted, 0);
    for bad in [
        "",
        "7",
        "{\"resourceLogs\":{}}",
        "{\"resourceLogs\":[7]}",
        "{} x",
    ] {
        let error = decode_json(bad.as_bytes(), Labels::new(), 40).unwrap_err();
        assert!(matches!(error, OtlpError::Body(_)), "{bad}: {error}");
    }
}

fn message(parts: &[(u64, &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    parts
        .iter()
        .for_each(|(field, bytes)| write::bytes(*field, bytes, &mut out));
    out
}

fn any(field: u64, bytes: &[u8]) -> Vec<u8> {
    message(&[(field, bytes)])
}

fn any_number(field: u64, value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    write::number(field, value, &mut out);
    out
}

fn pair(name: &str, any: &[u8]) -> Vec<u8> {
    message(&[(1, name.as_bytes()), (2, any)])
}

fn protobuf() -> Vec<u8> {
    let double = |value: f64| {
        let mut out = Vec::new();
        write::fixed64(4, value.to_bits(), &mut out);
        out
    };
    let list = message(&[(1, &any_number(3, 1)), (1, &any(1, b"x")), (1, b"")]);
    let map = message(&[(1, &pair("in", &any(1, b"deep"))), (1, &pair("none", b""))]);
    let attributes = [
        pair("s", &any(1, b"text")),
        pair("b", &any_number(2, 1)),
        pair("i", &any_number(3, -7i64 as u64)),
        pair("d", &double(0.5)),
        pair("nan", &double(f64::NAN)),
        pair("l", &any(5, &list)),
        pair("m", &any(6, &map)),
        pair("raw", &any(7, b"\xff\0")),
        pair("empty", &any(6, b"")),
    ];
    let mut first = Vec::new();
    write::fixed64(1, 1_544_712_660_300_000_000, &mut first);
    write::fixed64(11, 7, &mut first);
    write::number(2, 10, &mut first);
    write::bytes(3, b"Information", &mut first);
    write::bytes(5, &any(1, b"plain {\"a\":1}"), &mut first);
    attributes
        .iter()
        .for_each(|pair| write::bytes(6, pair, &mut first));
    let trace = 0x5b8e_fff7_9803_8103_d269_b633_813f_c60c_u128;
    write::bytes(9, &trace.to_be_bytes(), &mut first);
    write::bytes(10, &0xeee1_9b7e_c3c1_b174_u64.to_be_bytes(), &mut first);
    let mut second = Vec::new();
    write::fixed64(11, 9, &mut second);
    write::number(2, 17, &mut second);
    write::bytes(12, b"checkout", &mut second);
    let body = any(6, &message(&[(1, &pair("n", &any_number(3, 1)))]));
    write::bytes(5, &body, &mut second);
    // Ids of zeros are none.
    write::bytes(9, &[0; 16], &mut second);
    let third = message(&[(5, &any(5, &message(&[(1, &any_number(2, 0))])))]);
    let scope = message(&[
        (1, b"lib"),
        (2, b"1.0"),
        (3, &pair("own", &any_number(3, 2))),
    ]);
    let of_scope = message(&[
        (2, &first),
        (2, &second),
        (2, &third),
        (2, b""),
        (1, &scope),
    ]);
    let resource = message(&[(1, &pair("service.name", &any(1, b"shop")))]);
    let long = any(
        1,
        b"this line is longer than forty bytes, so it is not taken",
    );
    let too_long = message(&[(2, &message(&[(2, &message(&[(5, &long)]))]))]);
    message(&[
        (1, &message(&[(2, &of_scope), (1, &resource)])),
        (1, &too_long),
    ])
}

#[test]
fn protobuf_bodies() {
    let body = protobuf();
    let pushed = decode_protobuf(&body, Labels::new(), 40).unwrap();
    assert_eq!(records(&pushed), expected());
    assert_eq!((pushed.accepted, pushed.rejected_total), (4, 1));
    assert_eq!(decode_protobuf(b"", Labels::new(), 40).unwrap().accepted, 0);
    assert!(decode_protobuf(b"\xff", Labels::new(), 40).is_err());
    for end in 0..body.len() {
        let _ = decode_protobuf(&body[..end], Labels::new(), 40);
    }
}

#[test]
fn a_bad_record_takes_no_other_with_it() {
    let record = |line: &[u8], id: &[u8]| message(&[(5, &any(1, line)), (9, id)]);
    let digits = b"4bf92f3577b34da6a3ce929d0e0e4736";
    let all = [
        record(b"bad \xff tail", b""),
        record(b"short id", b"0123"),
        vec![0xff],
        record(b"good", digits),
    ];
    let parts: Vec<(u64, &[u8])> = all.iter().map(|record| (2, &record[..])).collect();
    let resource = |name: &[u8]| message(&[(1, &message(&[(1, b"service"), (2, &any(1, name))]))]);
    let body = message(&[
        (1, &message(&[(2, &message(&parts)), (1, &resource(b"a"))])),
        (
            1,
            &message(&[(1, &resource(b"\xff")), (2, &message(&parts[3..]))]),
        ),
    ]);
    let pushed = decode_protobuf(&body, Labels::new(), 40).unwrap();
    let expected = ["Line None trace_id=4bf92f3577b34da6a3ce929d0e0e4736 service=a | good"];
    assert_eq!(records(&pushed), expected);
    let lines: Vec<usize> = pushed.rejected.iter().map(|one| one.line).collect();
    assert_eq!((lines, pushed.rejected_total), (vec![1, 2, 3, 5], 4));
    let json = b"{\"resourceLogs\":[{\"scopeLogs\":[{\"logRecords\":[\
        {\"body\":{\"stringValue\":\"bad \xff\"}},\
        {\"body\":{\"stringValue\":7}},\
        {\"traceId\":\"S/kvNXezTaajzpKdDg5HNg==\",\"body\":{\"stringValue\":\"good\"}},\
        {\"traceId\":\"nonsense\"}]}]}]}";
    let pushed = decode_json(json, Labels::new(), 40).unwrap();
    let expected = ["Line None trace_id=4bf92f3577b34da6a3ce929d0e0e4736 | good"];
    assert_eq!(records(&pushed), expected);
    assert_eq!(pushed.rejected_total, 3);
}

/// A number counts where its words are not known.
#[test]
fn unknown_words_do_not_hide_a_severity() {
    let json = br#"{"resourceLogs":[{"scopeLogs":[{"logRecords":[
        {"severityNumber":17,"severityText":"Sev2"},{"severityNumber":9,"severityText":"Info"}]}]}]}"#;
    let pushed = decode_json(json, Labels::new(), 40).unwrap();
    assert_eq!(
        records(&pushed),
        [
            "Line None severity_text=Sev2 severity_number=17 detected_level=error | ",
            "Line None severity_text=Info severity_number=9 | ",
        ]
    );
}

/// Values that nest too deep are left out, and the stack holds.
#[test]
fn nesting_is_bounded() {
    let mut deep = any(1, b"x");
    for _ in 0..5000 {
        deep = any(5, &message(&[(1, &deep)]));
    }
    let record = message(&[(5, &deep)]);
    let body = message(&[(1, &message(&[(2, &message(&[(2, &record)]))]))]);
    let pushed = decode_protobuf(&body, Labels::new(), 1 << 20).unwrap();
    assert_eq!(pushed.accepted, 1);
    let mut deep = "{\"stringValue\":\"x\"}".to_owned();
    for _ in 0..5000 {
        deep = format!("{{\"arrayValue\":{{\"values\":[{deep}]}}}}");
    }
    let body = format!(
        "{{\"resourceLogs\":[{{\"scopeLogs\":[{{\"logRecords\":[{{\"body\":{deep}}}]}}]}}]}}"
    );
    let pushed = decode_json(body.as_bytes(), Labels::new(), 1 << 20);
    assert!(pushed.is_err() || pushed.is_ok_and(|pushed| pushed.rejected_total == 1));
}

#[test]
fn records_with_too_many_fields_are_rejected() {
    let attribute = pair("a", b"");
    let parts: Vec<(u64, &[u8])> = vec![(6, &attribute); 2000];
    let record = message(&parts);
    let body = message(&[(1, &message(&[(2, &message(&[(2, &record), (2, b"")]))]))]);
    let pushed = decode_protobuf(&body, Labels::new(), 40).unwrap();
    assert_eq!((pushed.accepted, pushed.rejected_total), (1, 1));
    let reason = pushed.rejected[0].reason.to_string();
    assert_eq!(reason, "it has more than 1024 fields");
}

/// As `protoc` encodes code 14, "busy" and a delay of 5 s.
#[test]
fn failures_say_when_to_try_again() {
    let expected = b"\x08\x0e\x12\x04busy\x1a\x30\x0a\x28type.googleapis.com/google.rpc.RetryInfo\
        \x12\x04\x0a\x02\x08\x05";
    assert_eq!(write_failure(14, "busy", Some(5)), expected);
    assert_eq!(write_failure(14, "busy", None), &expected[..8]);
}
