//! Lines with labels in, lines with labels out.

use super::*;
use crate::logql::parse_log;

/// What a query makes of a line of the stream `{app="a"}` with the metadata `pod="p"`.
fn run(stages: &str, line: &str) -> Option<String> {
    let log = parse_log(&format!("{{}} {stages}")).unwrap_or_else(|e| panic!("{stages}: {e}"));
    let pipeline = Pipeline::new(&log.stages, 1_772_409_752_000_000_000).unwrap();
    let mut work = Work::new();
    work.line = Cow::Borrowed(line.as_bytes());
    work.time_ns = 1_772_409_752_465_922_000;
    work.labels.add_base(Origin::Stream, "app", "a");
    work.labels.add_base(Origin::Metadata, "pod", "p");
    if !pipeline.run(&mut work) {
        return None;
    }
    let mut labels: Vec<String> = work
        .labels
        .iter()
        .filter(|(name, value, _)| !matches!((*name, *value), ("app", "a") | ("pod", "p")))
        .map(|(name, value, _)| format!("{name}={value}"))
        .collect();
    labels.sort();
    if let Some((error, _)) = work.labels.error() {
        labels.push(error.as_str().to_owned());
    }
    Some(format!(
        "{} {}",
        String::from_utf8_lossy(&work.line),
        labels.join(",")
    ))
}

/// Stages, a line, what comes out, and the labels beside those that the line had.
const TABLE: &[(&str, &str, Option<&str>)] = &[
    ("", "x", Some("x ")),
    (r#"|= "b""#, "abc", Some("abc ")),
    (r#"!= "b""#, "abc", None),
    (r#"|= "x" or "c""#, "abc", Some("abc ")),
    (r#"!= "x" or "c""#, "abc", None),
    (r#"|~ "a.c""#, "a\nc", None),
    (r#"|~ "(?s)a.c""#, "a\nc", Some("a\nc ")),
    (r#"|~ "{\"a\":{\\w""#, r#"{"a":{b"#, Some("{\"a\":{b ")),
    (r#"| regexp `{(?P<x>[^[{]+){`"#, "{b{", Some("{b{ x=b")),
    (
        r#"| line_format `{{regexReplaceAll "{" __line__ "<"}}`"#,
        "a{b",
        Some("a<b "),
    ),
    (r#"| x =~ "[&&]{""#, "{ x=&{", None),
    (r#"|> "a<_>c" !> "<_>x""#, "abc", Some("abc ")),
    (
        r#"|= ip("10.0.0.0/8")"#,
        "from 10.2.3.4",
        Some("from 10.2.3.4 "),
    ),
    (
        "| json",
        r#"{"a":"x","b":{"c":1,"d e":true},"n":null,"l":[1]}"#,
        Some(r#"{"a":"x","b":{"c":1,"d e":true},"n":null,"l":[1]} a=x,b_c=1,b_d_e=true"#),
    ),
    (
        "| json",
        r#"{"app":"y","pod":"q","x":"1","x":"2"}"#,
        Some(r#"{"app":"y","pod":"q","x":"1","x":"2"} app_extracted=y,pod_extracted=q,x=2"#),
    ),
    (
        "| json",
        r#"{"a":1,"b":2,"c":3,"a":null,"b":[4],"c":null,"c":5}"#,
        Some(r#"{"a":1,"b":2,"c":3,"a":null,"b":[4],"c":null,"c":5} c=5"#),
    ),
    ("| json", "nothing", Some("nothing JSONParserErr")),
    ("| json", r#"{"a":1,"#, Some(r#"{"a":1, a=1,JSONParserErr"#)),
    (
        r#"| json x="b.c[1]", y="q", z="b", n="n""#,
        r#"{"b":{"c":[1,"2"]},"n":null}"#,
        Some(r#"{"b":{"c":[1,"2"]},"n":null} n=,x=2,y=,z={"c":[1,"2"]}"#),
    ),
    (r#"| json x="a""#, "text", Some("text JSONParserErr")),
    (
        "| logfmt",
        r#"a=1 b="x \"y\"" c d= app=z"#,
        Some(r#"a=1 b="x \"y\"" c d= app=z a=1,app_extracted=z,b=x "y""#),
    ),
    (
        "| logfmt --keep-empty",
        "a=1 c d=",
        Some("a=1 c d= a=1,c=,d="),
    ),
    ("| logfmt", "a=1 b=\"x c=2", Some("a=1 b=\"x c=2 a=1")),
    (
        "| logfmt --strict",
        "a=1 =x c=2",
        Some("a=1 =x c=2 a=1,LogfmtParserErr"),
    ),
    ("| logfmt", "a=1 =x c=2", Some("a=1 =x c=2 a=1,c=2")),
    (r#"| logfmt x="a", y"#, "a=1 b=2", Some("a=1 b=2 x=1,y=")),
    (
        r#"| regexp "(?P<m>\\w+) (?P<p>/\\S*)""#,
        "GET /x",
        Some("GET /x m=GET,p=/x"),
    ),
    (r#"| regexp "(?P<m>\\d+)""#, "GET", Some("GET ")),
    (
        r#"| pattern "<m> <_> <s>""#,
        "GET /x 200",
        Some("GET /x 200 m=GET,s=200"),
    ),
    (
        "| unpack",
        r#"{"pod":"q","x":"y","_entry":"the \"line\""}"#,
        Some(r#"the "line" pod_extracted=q,x=y"#),
    ),
    ("| unpack", r#"{"x":"y"}"#, Some(r#"{"x":"y"} "#)),
    ("| unpack", "x", Some("x JSONParserErr")),
    ("| logfmt | a > 5", "a=7", Some("a=7 a=7")),
    ("| logfmt | a > 5", "a=5", None),
    (
        "| logfmt | a = 18446744073709551614",
        "a=18446744073709551614",
        Some("a=18446744073709551614 a=18446744073709551614"),
    ),
    (
        "| logfmt | a == 18446744073709551614",
        "a=18446744073709551613",
        None,
    ),
    (
        "| logfmt | a == 18446744073709551614",
        "a=18446744073709551615",
        None,
    ),
    (
        "| logfmt | a > 18446744073709551613",
        "a=18446744073709551614",
        Some("a=18446744073709551614 a=18446744073709551614"),
    ),
    (
        "| logfmt | a >= 18446744073709551614",
        "a=18446744073709551613",
        None,
    ),
    (
        "| logfmt | a == 9007199254740993",
        "a=9007199254740992",
        None,
    ),
    (
        "| logfmt | a < -9007199254740992",
        "a=-9007199254740993",
        Some("a=-9007199254740993 a=-9007199254740993"),
    ),
    (
        "| logfmt | (a != 9007199254740993 or b = 1) and a > 0",
        "a=9007199254740993 b=2",
        None,
    ),
    ("| logfmt | a == 1000", "a=1e3", Some("a=1e3 a=1e3")),
    ("| logfmt | a == 1000.0", "a=1000", Some("a=1000 a=1000")),
    ("| logfmt | a == 8", "a=0x1p3", Some("a=0x1p3 a=0x1p3")),
    ("| logfmt | a == 0x1p3", "a=8.0", Some("a=8.0 a=8.0")),
    ("| logfmt | a == 0.1", "a=.10", Some("a=.10 a=.10")),
    (
        "| logfmt | a > 18446744073709551615",
        "a=inf",
        Some("a=inf a=inf"),
    ),
    ("| logfmt | a < 5", "a=-Inf", Some("a=-Inf a=-Inf")),
    ("| logfmt | a != 5", "a=NaN", Some("a=NaN a=NaN")),
    ("| logfmt | a >= 5", "a=NaN", None),
    (
        "| logfmt | a = 1000",
        "a=1_000",
        Some("a=1_000 a=1_000,LabelFilterErr"),
    ),
    (
        "| logfmt | a = 16",
        "a=0x10",
        Some("a=0x10 a=0x10,LabelFilterErr"),
    ),
    (
        "| logfmt | a > 5",
        "a=1e999",
        Some("a=1e999 a=1e999,LabelFilterErr"),
    ),
    ("| logfmt | b > 5", "a=5", None),
    ("| logfmt | a > 5", "a=x", Some("a=x a=x,LabelFilterErr")),
    (r#"| logfmt | a > 5 | __error__ = """#, "a=x", None),
    (
        "| logfmt | d > 1.5s and s <= 5KB",
        "d=2s s=4KB",
        Some("d=2s s=4KB d=2s,s=4KB"),
    ),
    (
        "| logfmt | d = 1m or s > 5KiB",
        "d=60s s=1",
        Some("d=60s s=1 d=60s,s=1"),
    ),
    (r#"| logfmt | a = "1" | b != "1""#, "a=1", Some("a=1 a=1")),
    (
        r#"| logfmt | a =~ "1.*" | b !~ ".+""#,
        "a=12",
        Some("a=12 a=12"),
    ),
    (r#"| logfmt | a =~ "1""#, "a=12", None),
    (
        r#"| logfmt | a = ip("10.0.0.0/8")"#,
        "a=10.1.1.1",
        Some("a=10.1.1.1 a=10.1.1.1"),
    ),
    (r#"| logfmt | a != ip("10.0.0.0/8")"#, "a=10.1.1.1", None),
    (
        r#"| line_format "{{.app}}-{{.x}}-{{ __line__ | ToUpper }}""#,
        "l",
        Some("a--L "),
    ),
    (
        r#"| line_format "{{.nope.x | int | printf \"%03d\"}}""#,
        "l",
        Some("000 "),
    ),
    (
        r#"| line_format "{{ div 1 0 }}""#,
        "l",
        Some("l TemplateFormatErr"),
    ),
    (
        r#"| line_format "{{ __timestamp__ | date \"15:04:05.000\" }} {{ now | unixEpoch }}""#,
        "l",
        Some("00:02:32.465 1772409752 "),
    ),
    (
        r#"| label_format x=app, y="{{.x}}!""#,
        "l",
        Some("l x=a,y=a!"),
    ),
    (
        r#"| label_format x=app, y="{{.x}}", z="{{.x}}{{.y}}""#,
        "l",
        Some("l x=a,y=a,z=a"),
    ),
    (
        r#"| label_format a="x" | logfmt"#,
        "a=1 b=2",
        Some("a=1 b=2 a=x,b=2"),
    ),
    (
        r#"| logfmt | label_format c=a | drop b | logfmt"#,
        "a=1 b=2 c=3",
        Some("a=1 b=2 c=3 a=1,b=2,c=1"),
    ),
    (
        r#"| label_format app="{{.pod}}" | drop pod"#,
        "l",
        Some("l app=p"),
    ),
    (
        "| decolorize",
        "\u{1b}[31mred\u{1b}[0m x\u{1b}",
        Some("red x\u{1b} "),
    ),
    (
        r#"| logfmt | drop a, b="2", c=~"x.*""#,
        "a=1 b=2 c=y",
        Some("a=1 b=2 c=y c=y"),
    ),
    ("| logfmt | keep a, app", "a=1 b=2", Some("a=1 b=2 a=1")),
    ("| json | drop __error__", "x", Some("x ")),
    (
        r#"| json | __error__="JSONParserErr" | keep a"#,
        "x",
        Some("x JSONParserErr"),
    ),
];

#[test]
fn stages_do_what_they_should() {
    for (stages, line, expected) in TABLE {
        assert_eq!(run(stages, line).as_deref(), *expected, "{stages} {line}");
    }
}

#[test]
fn stages_that_cannot_work_are_refused() {
    for stages in [
        r#"| regexp "x""#,
        r#"| regexp "(""#,
        r#"| pattern "x""#,
        r#"| json a="b[""#,
        r#"| line_format "{{.x""#,
        r#"| line_format "{{nope .x}}""#,
        r#"| label_format a="{{end}}""#,
        r#"|~ "(""#,
        r#"|> "<_><_>""#,
    ] {
        assert!(parse_log(&format!("{{}} {stages}")).is_err(), "{stages}");
    }
}

#[test]
fn a_line_of_many_labels_is_an_error() {
    let many: Vec<String> = (0..LABELS_MAX + 10).map(|i| format!("k{i}=1")).collect();
    let out = run("| logfmt", &many.join(" ")).unwrap();
    assert!(out.ends_with("JSONParserErr"));
}

/// Conditions on labels that were left out find nothing: a later stage cannot hide that.
#[test]
fn labels_that_are_left_out_are_noted() {
    let many: Vec<String> = (0..LABELS_MAX + 10)
        .map(|i| format!("\"k{i}\":1"))
        .collect();
    let few = "{\"k1\":1}".to_owned();
    let many = format!("{{{}}}", many.join(","));
    for (stages, line, is_cut) in [
        ("| json", &many, true),
        ("| json | k2005=\"1\"", &many, true),
        ("| json | drop __error__", &many, true),
        ("| json a=\"k2005\"", &many, false),
        ("| json", &few, false),
    ] {
        let log = parse_log(&format!("{{}} {stages}")).unwrap();
        let pipeline = Pipeline::new(&log.stages, 0).unwrap();
        let mut work = Work::new();
        work.line = line.as_bytes().into();
        pipeline.run(&mut work);
        assert_eq!(work.labels.is_cut(), is_cut, "{stages}");
        work.labels.clear();
        assert!(!work.labels.is_cut());
    }
}
