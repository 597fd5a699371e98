use expect_test::{Expect, expect};
use jiff::tz::TimeZone;
use logpond_record::{Timestamp, Value};

use super::*;

fn style(colour: bool) -> Style {
    Style {
        colour,
        zone: TimeZone::fixed(jiff::tz::offset(1)),
        defuses_formulas: false,
        spans: Some(Box::new(|text: &[u8]| {
            memchr::memmem::find_iter(text, b"time")
                .map(|at| at..at + 4)
                .collect()
        })),
    }
}

const ROWS: [&str; 7] = [
    r#"{"_time":"2026-03-02T00:02:32.465922000Z","_id":"A","_msg":"upstream timeout","level":"error","hostname":"web-1","app":"shop","n":42,"took":2.5,"ok":true,"user":"a b","none":null,"tags":["x", 1],"empty":""}"#,
    r#"{"_time":"2026-03-02T00:02:33.000000001Z","_id":"B","_msg":"10.0.0.1 - - \"GET /x\" 200","remote_addr":"10.0.0.1","path":"/x","status":200,"hostname":"web-1"}"#,
    r#"{"_time":"2026-03-02T00:02:34.000000000Z","_id":"C","a":1,"a b=":"q\"uo\\te"}"#,
    r#"{"_time":"2026-03-02T00:02:35.100000000Z","_id":"D","_msg":"two\nlines\u001b[31m\tred \u202e","severity":4}"#,
    r#"{"_time":"2026-03-02T00:02:36.000000000Z","_id":"E","_msg":"\ufffdx","_msg_bin":"/wB4"}"#,
    r#"{"_time":"2026-03-02T00:02:37.000000000Z","_id":"F","_msg":"","app":"cron"}"#,
    r#"{"_time":"2026-03-02T00:02:38.000000000Z","_id":"G","_msg":"m","_line_b64":"bf8NAA==","big":18446744073709551615}"#,
];

fn check(format: Format, style: Style, want: Expect) {
    let mut renderer = renderer(format, style, &[]);
    let mut out = Vec::new();
    for text in ROWS {
        renderer.row(&Row::from_json(text.as_bytes()).unwrap(), &mut out);
    }
    renderer.gap(&mut out);
    renderer.end(&mut out);
    want.assert_eq(&out.escape_ascii().to_string().replace("\\n", "\n"));
}

#[test]
fn line() {
    check(
        Format::Line,
        style(false),
        expect![[r#"
            2026-03-02T00:02:32.465922Z web-1 shop: upstream timeout level=error n=42 took=2.5 ok=true user=\"a b\" none=null tags=\"[\\\"x\\\", 1]\" empty=\"\"
            2026-03-02T00:02:33.000000001Z web-1: 10.0.0.1 - - \"GET /x\" 200
            2026-03-02T00:02:34.000000Z a=1 a_b_=\"q\\\"uo\\\\te\"
            2026-03-02T00:02:35.100000Z two\
            lines\\x1b[31m\tred \\u202e severity=4
            2026-03-02T00:02:36.000000Z \\xff\\x00x
            2026-03-02T00:02:37.000000Z cron:
            2026-03-02T00:02:38.000000Z m big=18446744073709551615
            --
        "#]],
    );
}

#[test]
fn pretty_without_colours() {
    check(
        Format::Pretty,
        style(false),
        expect![[r#"
            2026-03-02 01:02:32.465922+01:00 ERROR web-1 shop: upstream timeout n=42 took=2.5 ok=true user=\"a b\" none=null tags=\"[\\\"x\\\", 1]\" empty=\"\"
            2026-03-02 01:02:33.000000001+01:00 web-1 10.0.0.1 - - \"GET /x\" 200
            2026-03-02 01:02:34.000+01:00 a=1 a_b_=\"q\\\"uo\\\\te\"
            2026-03-02 01:02:35.100+01:00 WARN  two
            lines\\x1b[31m\tred \\u202e
            2026-03-02 01:02:36.000+01:00 \\xff\\x00x
            2026-03-02 01:02:37.000+01:00 cron:
            2026-03-02 01:02:38.000+01:00 m big=18446744073709551615
            --
        "#]],
    );
}

#[test]
fn pretty_with_colours() {
    check(
        Format::Pretty,
        style(true),
        expect![[r#"
            \x1b[2m2026-03-02 01:02:32.465922+01:00\x1b[0m \x1b[31mERROR\x1b[0m \x1b[36mweb-1\x1b[0m \x1b[36mshop\x1b[0m: upstream \x1b[1;31mtime\x1b[0mout \x1b[2mn=\x1b[0m42 \x1b[2mtook=\x1b[0m2.5 \x1b[2mok=\x1b[0mtrue \x1b[2muser=\x1b[0m\"a b\" \x1b[2mnone=\x1b[0mnull \x1b[2mtags=\x1b[0m\"[\\\"x\\\", 1]\" \x1b[2mempty=\x1b[0m\"\"
            \x1b[2m2026-03-02 01:02:33.000000001+01:00\x1b[0m \x1b[36mweb-1\x1b[0m 10.0.0.1 - - \"GET /x\" 200
            \x1b[2m2026-03-02 01:02:34.000+01:00\x1b[0m \x1b[2ma=\x1b[0m1 \x1b[2ma_b_=\x1b[0m\"q\\\"uo\\\\te\"
            \x1b[2m2026-03-02 01:02:35.100+01:00\x1b[0m \x1b[33mWARN \x1b[0m two
            lines\\x1b[31m\tred \\u202e
            \x1b[2m2026-03-02 01:02:36.000+01:00\x1b[0m \\xff\\x00x
            \x1b[2m2026-03-02 01:02:37.000+01:00\x1b[0m \x1b[36mcron\x1b[0m:
            \x1b[2m2026-03-02 01:02:38.000+01:00\x1b[0m m \x1b[2mbig=\x1b[0m18446744073709551615
            \x1b[2m--\x1b[0m
        "#]],
    );
}

#[test]
fn raw() {
    check(
        Format::Raw,
        style(false),
        expect![[r#"
        upstream timeout
        10.0.0.1 - - \"GET /x\" 200

        two
        lines\x1b[31m\tred \xe2\x80\xae
        \xff\x00x

        m\xff\r\x00
        --
    "#]],
    );
}

#[test]
fn json() {
    check(
        Format::Json,
        style(false),
        expect![[r#"
            {\"_time\":\"2026-03-02T00:02:32.465922000Z\",\"_id\":\"A\",\"_msg\":\"upstream timeout\",\"level\":\"error\",\"hostname\":\"web-1\",\"app\":\"shop\",\"n\":42,\"took\":2.5,\"ok\":true,\"user\":\"a b\",\"none\":null,\"tags\":[\"x\", 1],\"empty\":\"\"}
            {\"_time\":\"2026-03-02T00:02:33.000000001Z\",\"_id\":\"B\",\"_msg\":\"10.0.0.1 - - \\\"GET /x\\\" 200\",\"remote_addr\":\"10.0.0.1\",\"path\":\"/x\",\"status\":200,\"hostname\":\"web-1\"}
            {\"_time\":\"2026-03-02T00:02:34.000000000Z\",\"_id\":\"C\",\"a\":1,\"a b=\":\"q\\\"uo\\\\te\"}
            {\"_time\":\"2026-03-02T00:02:35.100000000Z\",\"_id\":\"D\",\"_msg\":\"two\
            lines\\u001b[31m\\tred \xe2\x80\xae\",\"severity\":4}
            {\"_time\":\"2026-03-02T00:02:36.000000000Z\",\"_id\":\"E\",\"_msg\":\"\xef\xbf\xbd\\u0000x\",\"_msg_bin\":\"/wB4\"}
            {\"_time\":\"2026-03-02T00:02:37.000000000Z\",\"_id\":\"F\",\"_msg\":\"\",\"app\":\"cron\"}
            {\"_time\":\"2026-03-02T00:02:38.000000000Z\",\"_id\":\"G\",\"_msg\":\"m\",\"big\":18446744073709551615}
            {\"_gap\":true}
        "#]],
    );
}

#[test]
fn logfmt() {
    check(
        Format::Logfmt,
        style(false),
        expect![[r#"
            time=2026-03-02T00:02:32.465922Z id=A msg=\"upstream timeout\" level=error hostname=web-1 app=shop n=42 took=2.5 ok=true user=\"a b\" none=null tags=\"[\\\"x\\\", 1]\" empty=\"\"
            time=2026-03-02T00:02:33.000000001Z id=B msg=\"10.0.0.1 - - \\\"GET /x\\\" 200\" remote_addr=10.0.0.1 path=/x status=200 hostname=web-1
            time=2026-03-02T00:02:34.000000Z id=C a=1 a_b_=\"q\\\"uo\\\\te\"
            time=2026-03-02T00:02:35.100000Z id=D msg=\"two\
            lines\\x1b[31m\tred \\u202e\" severity=4
            time=2026-03-02T00:02:36.000000Z id=E msg=\"\\xff\\x00x\"
            time=2026-03-02T00:02:37.000000Z id=F msg=\"\" app=cron
            time=2026-03-02T00:02:38.000000Z id=G msg=m big=18446744073709551615
            --
        "#]],
    );
}

#[test]
fn csv() {
    check(
        Format::Csv,
        style(false),
        expect![[r#"
            _time,_id,_msg,level,hostname,app,n,took,ok,user,none,tags,empty,remote_addr,path,status,a,a b=,severity,big,_more\r
            2026-03-02T00:02:32.465922000Z,A,upstream timeout,error,web-1,shop,42,2.5,true,a b,,\"[\"\"x\"\", 1]\",\"\",,,,,,,,\r
            2026-03-02T00:02:33.000000001Z,B,\"10.0.0.1 - - \"\"GET /x\"\" 200\",,web-1,,,,,,,,,10.0.0.1,/x,200,,,,,\r
            2026-03-02T00:02:34.000000000Z,C,,,,,,,,,,,,,,,1,\"q\"\"uo\\te\",,,\r
            2026-03-02T00:02:35.100000000Z,D,\"two
            lines\x1b[31m\tred \xe2\x80\xae\",,,,,,,,,,,,,,,,4,,\r
            2026-03-02T00:02:36.000000000Z,E,\xff\x00x,,,,,,,,,,,,,,,,,,\r
            2026-03-02T00:02:37.000000000Z,F,,,,cron,,,,,,,,,,,,,,,\r
            2026-03-02T00:02:38.000000000Z,G,m,,,,,,,,,,,,,,,,,18446744073709551615,\r
        "#]],
    );
}

#[test]
fn csv_puts_late_fields_into_more() {
    let mut renderer = renderer(Format::Csv, style(false), &[]);
    let mut out = Vec::new();
    let field = |name: &'static str| Row {
        fields: vec![(name.into(), Value::Int(1))],
        ..Row::default()
    };
    (0..1000).for_each(|_| renderer.row(&field("early"), &mut out));
    renderer.row(&field("late"), &mut out);
    renderer.end(&mut out);
    let text = String::from_utf8(out).unwrap();
    assert_eq!(text.lines().next(), Some("_time,_id,_msg,early,_more"));
    assert_eq!(text.lines().last(), Some(",,,,\"{\"\"late\"\":1}\""));
}

#[test]
fn csv_with_chosen_columns_has_no_others() {
    let columns = [
        "n".to_string(),
        "_msg".into(),
        "_id".into(),
        "absent".into(),
    ];
    let mut renderer = renderer(Format::Csv, style(false), &columns);
    let mut out = Vec::new();
    let mut row = Row::from_json(ROWS[0].as_bytes()).unwrap();
    row.keep_only(&columns);
    renderer.row(&row, &mut out);
    renderer.end(&mut out);
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "_time,_id,n,_msg,absent\r\n2026-03-02T00:02:32.465922000Z,A,42,upstream timeout,\r\n"
    );
}

#[test]
fn a_line_is_not_told_twice_because_of_its_labels() {
    let access = r#"{"_msg":"10.0.0.1 - - \"GET /x\" 200 \"a b\"","remote_addr":"10.0.0.1","path":"/x","status":200,"agent":"a b","file":"/var/log/a.log","hostname":"web-1"}"#;
    let event = r#"{"_msg":"took 200 of 1","status":200,"n":1,"user":"u","app":"x"}"#;
    let line = |text: &str, format| {
        let mut out = Vec::new();
        let row = Row::from_json(text.as_bytes()).unwrap();
        renderer(format, style(false), &[]).row(&row, &mut out);
        String::from_utf8(out).unwrap()
    };
    let said = r#"10.0.0.1 - - "GET /x" 200 "a b" file=/var/log/a.log"#;
    assert_eq!(line(access, Format::Line), format!("web-1: {said}\n"));
    assert_eq!(line(access, Format::Pretty), format!("web-1 {said}\n"));
    assert_eq!(
        line(event, Format::Line),
        "x: took 200 of 1 status=200 n=1 user=u\n"
    );
}

#[test]
fn no_control_character_leaves_a_text_format() {
    let nasty: Vec<u8> = (0..=255).collect();
    let row = Row {
        time: Some(Timestamp(0)),
        message: Some(nasty.as_slice().into()),
        fields: vec![("k\x1b\n".into(), Value::Bytes(nasty.as_slice().into()))],
        ..Row::default()
    };
    for format in [Format::Line, Format::Pretty, Format::Logfmt] {
        let mut out = Vec::new();
        renderer(format, style(false), &[]).row(&row, &mut out);
        let text = String::from_utf8(out).unwrap();
        let bad = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
        assert!(!text.contains(bad), "{format:?}: {text:?}");
        let is_line = format != Format::Pretty;
        assert!(!is_line || text.trim_end().lines().count() == 1);
    }
}

#[test]
fn base64() {
    let table: [(&[u8], Option<&[u8]>); 6] = [
        (b"", Some(b"")),
        (b"Zg==", Some(b"f")),
        (b"Zm8", Some(b"fo")),
        (b"Zm9v", Some(b"foo")),
        (b"Z", None),
        (b"Zm-v", None),
    ];
    for (text, want) in table {
        assert_eq!(decode_base64(text).as_deref(), want);
    }
}

#[test]
fn what_is_no_row_is_refused() {
    for text in ["", "1", "{", "{} x", r#"{"_line_b64":"?"}"#] {
        assert!(Row::from_json(text.as_bytes()).is_err(), "{text}");
    }
}

#[test]
fn bars_and_tables() {
    let mut out = Vec::new();
    let bar = |label: &str, count, by: &[(&str, u64)]| Bar {
        label: label.into(),
        count,
        by: by.iter().map(|(value, n)| ((*value).into(), *n)).collect(),
    };
    let bars = Bars::new(vec![
        bar("09:00", 4211, &[]),
        bar("09:01", 0, &[]),
        bar("09:02", 700, &[]),
    ]);
    bars.write(Some(30), &mut out);
    bars.write(None, &mut out);
    let bars = Bars::new(vec![
        bar("09:00", 30, &[("info", 20), ("a\nb", 10)]),
        bar("09:01", 3, &[("error", 3)]),
    ]);
    bars.write(Some(44), &mut out);
    bars.write(None, &mut out);
    let mut table = Table::new(&[("count", true), ("value", false)]);
    table.row(vec!["10".into(), "a\nb".into()]);
    table.row(vec!["1,000".into(), "c".into()]);
    table.write(&mut out);
    expect![[r#"
        09:00  4,211  ████████████████
        09:01      0
        09:02    700  ██▋
        09:00	4211
        09:01	0
        09:02	700
        09:00  30  info=20  a\nb=10  ███████████████
        09:01   3  error=3           █▌
        09:00	30	info=20	a\nb=10
        09:01	3	error=3
        count  value
           10  a\nb
        1,000  c
    "#]]
    .assert_eq(&String::from_utf8(out).unwrap());
}

fn shown(format: Format, row: &str) -> String {
    let mut out = Vec::new();
    let mut renderer = renderer(format, style(false), &[]);
    renderer.row(&Row::from_json(row.as_bytes()).unwrap(), &mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn stack_traces_stay_lines() {
    let row = r#"{"_time":"2026-03-02T00:02:32Z","_id":"A","_msg":"boom","level":"error","stack":"Error: x\n    at foo (a.js:1)\r\n\u001b[31mend\n","user":"ann"}"#;
    expect![[r#"
        2026-03-02 01:02:32.000+01:00 ERROR boom user=ann
          stack=
            Error: x
                at foo (a.js:1)
            \x1b[31mend
    "#]]
    .assert_eq(&shown(Format::Pretty, row));
    assert_eq!(shown(Format::Line, row).lines().count(), 1);
}

#[test]
fn a_header_that_is_shown_is_not_shown_again() {
    let row = r#"{"_time":"2026-03-02T00:02:32Z","_id":"A","_msg":"<134>1 2026-03-02T00:02:32Z web-1 nginx 12 - - 192.0.2.1 - - [02/Mar/2026:00:02:32 +0000] \"GET /x HTTP/1.1\" 200 5","hostname":"web-1","app":"nginx","procid":"12","remote_addr":"192.0.2.1","path":"/x","status":200,"method":"GET","protocol":"HTTP/1.1"}"#;
    expect![[r#"
        2026-03-02T00:02:32.000000Z web-1 nginx: 192.0.2.1 - - [02/Mar/2026:00:02:32 +0000] "GET /x HTTP/1.1" 200 5 procid=12
        2026-03-02 01:02:32.000+01:00 web-1 nginx: 192.0.2.1 - - [02/Mar/2026:00:02:32 +0000] "GET /x HTTP/1.1" 200 5 procid=12
    "#]]
    .assert_eq(&[Format::Line, Format::Pretty].map(|format| shown(format, row)).concat());
}
