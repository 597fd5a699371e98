//! What is accepted and what is refused, with the canonical text and the errors.

use proptest::prelude::*;

use super::*;
use crate::query;

/// Queries that are accepted, and their canonical text where it differs.
const ACCEPTED: &[(&str, &str)] = &[
    ("{}", ""),
    (r#"{app="shop"}"#, ""),
    (
        r#"{ app = `shop` , env != "x" }"#,
        r#"{app="shop", env!="x"}"#,
    ),
    (r#"{app!="shop"}"#, ""),
    (r#"{app=~".*", b!~"x|y"}"#, ""),
    (r#"{rate="x", by="y", count_over_time="z"}"#, ""),
    (r#"({app="a"})"#, r#"{app="a"}"#),
    (r#"({app="a"} |= "x")"#, r#"{app="a"} |= "x""#),
    ("{a=\"b\"} # what\n |= \"x\" # end", r#"{a="b"} |= "x""#),
    (
        "/* of\nwhich */{a=\"b\"} // what\n |= \"/* x\" /**/ // end",
        r#"{a="b"} |= "/* x""#,
    ),
    (
        r#"{a="b"} |= "x" != "y" |~ "z.*" !~ `w\d`"#,
        r#"{a="b"} |= "x" != "y" |~ "z.*" !~ "w\\d""#,
    ),
    (r#"{a="b"} |> "<_> foo" !> "x <_>""#, ""),
    (r#"{a="b"} |= "x" or "y" or ip("10.0.0.0/8")"#, ""),
    (r#"{a="b"} != ip("1.2.3.4-1.2.3.9") |= ip("::1")"#, ""),
    (r#"{a="b"}|json"#, r#"{a="b"} | json"#),
    (
        r#"{a="b"} | JSON x="a.b[0]", y"#,
        r#"{a="b"} | json x="a.b[0]", y="y""#,
    ),
    (
        r#"{a="b"} | logfmt --strict --keep-empty x="y", z"#,
        r#"{a="b"} | logfmt --strict --keep-empty x="y", z="z""#,
    ),
    (
        r#"{a="b"} | regexp "(?P<n>..)" | pattern "<x> - <_>" | unpack"#,
        "",
    ),
    (
        r#"{a="b"} | x="5" and y!~"z" or w>5"#,
        r#"{a="b"} | ((x="5" and y!~"z") or w>5)"#,
    ),
    (r#"{a="b"} | x=5 y=6"#, r#"{a="b"} | (x==5 and y==6)"#),
    (
        r#"{a="b"} | x=5, y=6 or z=7"#,
        r#"{a="b"} | (x==5 and (y==6 or z==7))"#,
    ),
    (
        r#"{a="b"} | (x=5 or y=6) and z=7"#,
        r#"{a="b"} | ((x==5 or y==6) and z==7)"#,
    ),
    (
        r#"{a="b"} | d >= 1h30m | d < 1.5s | d != 100us | d > -5m"#,
        r#"{a="b"} | d>=1h30m | d<1s500ms | d!=100us | d>-5m"#,
    ),
    (
        r#"{a="b"} | size > 5KB | size <= 1.5KiB"#,
        r#"{a="b"} | size>5000B | size<=1536B"#,
    ),
    (
        r#"{a="b"} | id == 18446744073709551614 | id > -9007199254740993 or (x = 5.0 and y != 1e3)"#,
        r#"{a="b"} | id==18446744073709551614 | (id>-9007199254740993 or (x==5 and y!=1000))"#,
    ),
    (
        r#"{a="b"} | id = 0x1p3 | id < 0.1234567890123456789 | id = -9223372036854775808"#,
        r#"{a="b"} | id==8 | id<0.1234567890123456789 | id==-9223372036854775808"#,
    ),
    (
        r#"{a="b"} | addr = ip("10.0.0.0/8") | addr != ip("::1")"#,
        r#"{a="b"} | addr=ip("10.0.0.0/8") | addr!=ip("::1")"#,
    ),
    (
        r#"{a="b"} | line_format "{{.x}}" | label_format a=b, c="{{.d}}""#,
        "",
    ),
    (
        r#"{a="b"} | decolorize | drop x, y="z", w=~"v" | keep u"#,
        "",
    ),
    (r#"{a="b"} | json="x""#, ""),
    (r#"{a="b"} | json != "x""#, ""),
    (
        r#"{a="b"} | unpack !~ "x" or "y" | logfmt != ip("::1")"#,
        "",
    ),
    (r#"{a="b"} | (json != "x")"#, r#"{a="b"} | (json!="x")"#),
    (
        r#"{a="b"} | c="d" and json!="x""#,
        r#"{a="b"} | (c="d" and json!="x")"#,
    ),
    (r#"{a="\x41\u00e9\n\101"}"#, "{a=\"Aé\\nA\"}"),
    (
        r#"count_over_time({a="b"}[5m])"#,
        r#"count_over_time({a="b"} [5m])"#,
    ),
    (
        r#"rate({a="b"}[1d2h] |= "x" | json)"#,
        r#"rate({a="b"} |= "x" | json [26h])"#,
    ),
    (
        r#"rate(({a="b"} |= "x")[5m])"#,
        r#"rate({a="b"} |= "x" [5m])"#,
    ),
    (
        r#"rate(({a="b"} |= "x" [5m] offset 1h))"#,
        r#"rate({a="b"} |= "x" [5m] offset 1h)"#,
    ),
    (
        r#"rate({a="b"}[5m] offset -10m |= "x")"#,
        r#"rate({a="b"} |= "x" [5m] offset -10m)"#,
    ),
    (
        r#"sum_over_time({a="b"} | json | unwrap bytes(x) | __error__="" [5m])"#,
        "",
    ),
    (
        r#"quantile_over_time(0.99, {a="b"} | unwrap duration_seconds(x) [5m]) by (c)"#,
        "",
    ),
    (
        r#"first_over_time({a="b"} | unwrap x [5m]) without (c, d)"#,
        "",
    ),
    (
        r#"absent_over_time({a="b"}[5m]) + rate_counter({a="b"} | unwrap x [5m])"#,
        r#"absent_over_time({a="b"} [5m]) + rate_counter({a="b"} | unwrap x [5m])"#,
    ),
    (
        r#"sum by (app) (rate({a="b"}[5m]))"#,
        r#"sum(rate({a="b"} [5m])) by (app)"#,
    ),
    (
        r#"sum(rate({a="b"}[5m])) without ()"#,
        r#"sum(rate({a="b"} [5m])) without ()"#,
    ),
    (
        r#"topk(10, rate({a="b"}[5m])) by (x)"#,
        r#"topk(10, rate({a="b"} [5m])) by (x)"#,
    ),
    (
        r#"sort_desc(approx_topk(3, rate({a="b"}[5m])))"#,
        r#"sort_desc(approx_topk(3, rate({a="b"} [5m])))"#,
    ),
    (r#"label_replace(vector(1), "a", "$1", "b", "(.*)")"#, ""),
    ("1 + 2 * 3 ^ 2 ^ 2", "1 + (2 * (3 ^ (2 ^ 2)))"),
    ("10 - 3 - 2", "10 - 3 - 2"),
    ("10 - (3 - 2)", "10 - (3 - 2)"),
    ("(10 + 3) - 2", "(10 + 3) - 2"),
    ("1 > bool 2 or vector(0)", "(1 > bool 2) or vector(0)"),
    (
        "vector(1) and vector(2) unless vector(3)",
        "(vector(1) and vector(2)) unless vector(3)",
    ),
    ("-1 + +2 % 0x1p3", "-1 + (2 % 8)"),
    ("vector(1) / on (a, b) group_left (c) vector(2)", ""),
    (
        "vector(1) * ignoring (a) group_right vector(2)",
        "vector(1) * ignoring (a) group_right () vector(2)",
    ),
    (
        "vector(1) / on () group_left (vector(2))",
        "vector(1) / on () group_left () vector(2)",
    ),
    ("vector(1) == on (a) vector(2)", ""),
];

/// Queries that are refused, and a part of the error.
const REFUSED: &[(&str, &str)] = &[
    ("", "line 1, col 1: syntax error: unexpected $end"),
    ("{", "expecting IDENTIFIER"),
    (r#"{a="b",}"#, "take the last comma away"),
    (r#"{"a.b"="c"}"#, "labels stand without quotes: a_b"),
    (r#"{a.b="c"}"#, "write _ for every other character"),
    (r#"{a=b}"#, "did you forget the quotes? write \"b\""),
    (r#"{a=="b"}"#, "did you mean = ?"),
    (r#"{a=~"("}"#, "error parsing regexp: a ( is not closed"),
    (r#"{a="b"#, "literal not terminated"),
    ("{a='b'}", "texts stand in \" or `"),
    (r#"{a="\q"}"#, "invalid char escape"),
    (r#"{a="b"} |= 5"#, "unexpected NUMBER, expecting STRING"),
    (r#"{a="b"} |= ip("x")"#, "ip: invalid pattern"),
    (r#"{a="b"} |~ ip("10.0.0.1")"#, "ip: invalid operation |~"),
    (r#"{a="b"} |> "<x>""#, "named captures are not allowed"),
    (r#"{a="b"} | jsn"#, "did you mean json?"),
    (
        r#"{a="b"} | json | distinct x"#,
        "there is no stage distinct; values are told by sum by",
    ),
    (
        r#"{a="b"} | unwrap x | x > 5"#,
        "line 1, col 11: syntax error: unexpected unwrap; it stands within an aggregation",
    ),
    (
        r#"{a="b"} |= "x" or |= "y""#,
        r#"line 1, col 19: syntax error: unexpected |=, expecting STRING or ip; write |= "…" or"#,
    ),
    (
        r#"{a="b"} or {a="c"}"#,
        "line 1, col 9: syntax error: unexpected or; one selector asks for several",
    ),
    (r#"{a="b"} /* c"#, "col 9: comment not terminated"),
    (
        r#"sum by x (rate({a="b"}[5m]))"#,
        "col 8: syntax error: unexpected IDENTIFIER, expecting (; labels stand in parentheses: (x)",
    ),
    (
        r#"sum(rate({a="b"}[5m])) offset 5m"#,
        "col 24: syntax error: unexpected offset; the offset stands behind the range",
    ),
    (
        r#"topk(2, 3, rate({a="b"}[5m]))"#,
        "col 9: syntax error: unexpected literal, expecting series",
    ),
    (r#"{a="b"} | logfmt --strct"#, "did you mean --strict?"),
    (
        r#"{a="b"} | label_format a=b, a=c"#,
        "multiple label name 'a'",
    ),
    (
        r#"{a="b"} | label_format __error__=b"#,
        "cannot be formatted",
    ),
    (r#"{a="b"} | x > "5""#, "leave the quotes away"),
    (
        r#"{a="b"} | x > 0o17"#,
        "unable to parse literal as a float",
    ),
    (r#"{a="b"}[5m]"#, "unexpected RANGE"),
    (r#"rate({a="b"})"#, "expecting RANGE"),
    (r#"rate({a="b"}[5])"#, "did you mean [5s] or [5m]?"),
    (r#"rate({a="b"}[5m:1m])"#, "no subqueries"),
    (
        r#"rate({a="b"} offset 1h [5m])"#,
        "the offset stands behind the range",
    ),
    (r#"rate({a="b"}[5m]) @ 100"#, "there is no `@`"),
    (r#"rat({a="b"}[5m])"#, "did you mean rate?"),
    (
        r#"count_values("x", rate({a="b"}[5m]))"#,
        "unexpected IDENTIFIER",
    ),
    (r#"abs(rate({a="b"}[5m]))"#, "unexpected IDENTIFIER"),
    (r#"-rate({a="b"}[5m])"#, "write 0 - "),
    (
        r#"stddev_over_time({a="b"}[5m])"#,
        "invalid aggregation stddev_over_time without unwrap",
    ),
    (
        r#"count_over_time({a="b"} | unwrap x [5m])"#,
        "invalid aggregation count_over_time with unwrap",
    ),
    (
        r#"sum_over_time({a="b"} | unwrap x [5m]) without (y)"#,
        "grouping not allowed for sum_over_time",
    ),
    (
        r#"rate_counter({a="b"} | unwrap x [5m]) by (y)"#,
        "grouping not allowed for rate_counter",
    ),
    (
        r#"sum_over_time({a="b"} | unwrap byte(x) [5m])"#,
        "did you mean bytes?",
    ),
    (r#"sum by (x,) (rate({a="b"}[5m]))"#, "expecting IDENTIFIER"),
    (
        r#"topk(rate({a="b"}[5m]))"#,
        "parameter required for operation topk",
    ),
    (r#"topk(0, rate({a="b"}[5m]))"#, "invalid parameter"),
    (r#"sum(5, rate({a="b"}[5m]))"#, "unsupported parameter"),
    (
        r#"approx_topk(2, rate({a="b"}[5m])) by (a)"#,
        "grouping not allowed for approx_topk",
    ),
    (
        r#"sort(rate({a="b"}[5m])) by (a)"#,
        "grouping not allowed for sort",
    ),
    ("1 and vector(1)", "unexpected literal for left leg"),
    ("vector(1) or 1", "unexpected literal for right leg"),
    ("vector(1) + bool vector(2)", "bool does not go with +"),
    ("vector(x)", "expecting NUMBER"),
    (
        "vector(1) and on (a) group_left vector(2)",
        "no grouping allowed for and",
    ),
    (r#"app="shop""#, "labels stand in braces"),
    ("timeout", "lines with a text are {} |= \"text\""),
    ("{a=\"b\"}\n  |= x", "line 2, col 6"),
    (r#"vector(1))"#, "there is no ( that it closes"),
];

#[test]
fn queries_are_accepted() {
    for (text, canonical) in ACCEPTED {
        let query = parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        let printed = query.to_string();
        let expected = if canonical.is_empty() {
            text
        } else {
            canonical
        };
        assert_eq!(&printed, expected);
        assert_eq!(parse(&printed).as_ref(), Ok(&query), "{printed}");
        fuzz_logql(text.as_bytes());
    }
}

#[test]
fn queries_are_refused() {
    for (text, part) in REFUSED {
        match parse(text) {
            Ok(query) => panic!("{text} is {query}"),
            Err(error) => {
                let error = error.to_string();
                assert!(error.starts_with("parse error at line "), "{error}");
                assert!(error.contains(part), "{text}: {error}");
            }
        }
        fuzz_logql(text.as_bytes());
    }
}

#[test]
fn size_is_bounded() {
    let deep = "(".repeat(100_000);
    assert!(parse(&deep).unwrap_err().message.contains("nests deeper"));
    let deep = format!("{{}} | {}x=5", "(".repeat(1000));
    assert!(parse(&deep).unwrap_err().message.contains("nests deeper"));
    let wide = format!("1{}", "+1".repeat(2000));
    assert!(parse(&wide).unwrap_err().message.contains("more than 1000"));
    let long = format!("{{a=\"{}\"}}", "x".repeat(QUERY_BYTES_MAX));
    assert!(parse(&long).unwrap_err().message.contains("longer than"));
    let many: Vec<String> = (0..2000).map(|i| format!("a{i}=\"\"")).collect();
    let many = parse(&format!("{{{}}}", many.join(",")));
    assert!(
        many.unwrap_err()
            .message
            .contains("more than 1000 matchers")
    );
}

/// They nest no deeper than they are written: parts of queries go to other nodes as text.
#[test]
fn long_chains_parse_back() {
    let chain = |part: &str, operator: &str| vec![part; 300].join(operator);
    let conditions = [" and ", " or "].map(|operator| chain("a=\"x\"", operator));
    let numbers = [" + ", " == bool ", " % "].map(|operator| chain("1", operator));
    let queries = conditions.map(|chain| format!("count_over_time({{a=\"b\"}} | {chain} [5m])"));
    for query in queries.iter().chain(&numbers) {
        let parsed = parse(query).unwrap();
        assert_eq!(parse(&parsed.to_string()), Ok(parsed), "{query}");
    }
}

#[test]
fn queries_require() {
    let table = [
        ("{}", "*"),
        (r#"{app="shop"}"#, "_logpond_label.app=shop"),
        (r#"{app!="shop"}"#, "_logpond_label.app!=shop"),
        (r#"{code="500"}"#, "_logpond_label.code~/^500$/"),
        (
            r#"{app=""}"#,
            r#"NOT (_logpond_label.app:* AND _logpond_label.app!="")"#,
        ),
        (r#"{app=~"a|b"}"#, "_logpond_label.app~/^(?s:a|b)$/"),
        (
            r#"{app=~".*"}"#,
            r#"_logpond_label.app~/^(?s:.*)$/ OR NOT (_logpond_label.app:* AND _logpond_label.app!="")"#,
        ),
        (r#"{app!~"a.*"}"#, "_logpond_label.app!~/^(?s:a.*)$/"),
        (
            r#"{app="a"} |= "x" != "y""#,
            r#"_logpond_label.app=a AND _raw:"x" AND NOT _raw:"y""#,
        ),
        (
            r#"{app="a"} |= "x" or "y""#,
            r#"_logpond_label.app=a AND (_raw:"x" OR _raw:"y")"#,
        ),
        (r#"{} |> "<_> foo <_>""#, r#"_raw:" foo ""#),
        (r#"{} |~ "a.*" | decolorize |= "x""#, "_raw~/a.*/"),
        (r#"{} |= ip("10.0.0.1") or "x""#, "*"),
        (r#"{} !~ "a" or "b""#, "NOT (_raw~/a/ OR _raw~/b/)"),
        (r#"{} !> "<_> foo <_>""#, "*"),
        (
            r#"{} | app="a" or app!="b" | json | x!="1""#,
            "_logpond_label.app=a OR _logpond_label.app!=b",
        ),
        (
            r#"{} | status >= 500"#,
            r#"_logpond_label.status:* AND _logpond_label.status!="" AND NOT _logpond_label.status<500"#,
        ),
        (
            r#"{} | id = 18446744073709551614"#,
            r#"_logpond_label.id:* AND _logpond_label.id!="" AND NOT (_logpond_label.id<18446744073709551614 OR _logpond_label.id>18446744073709551614)"#,
        ),
        (
            r#"{} | took > 1.5s and __error__="""#,
            r#"_logpond_label.took:* AND _logpond_label.took!="""#,
        ),
        (r#"{} | drop app | app="a""#, "*"),
        (
            r#"{} | json | level="error" | status > 499 != "x""#,
            r#"(_logpond_label.level=error OR NOT (_logpond_label.level:* AND _logpond_label.level!="")) AND ((_logpond_label.status:* AND _logpond_label.status!="" AND NOT _logpond_label.status<=499) OR NOT (_logpond_label.status:* AND _logpond_label.status!="")) AND NOT _raw:"x""#,
        ),
        (r#"{} | json | a!="x" | b=~"y" | c="" | d > 5s"#, "*"),
        (
            r#"{} | json | a="x" and b!="y""#,
            r#"_logpond_label.a=x OR NOT (_logpond_label.a:* AND _logpond_label.a!="")"#,
        ),
        (r#"{} | json | a="x" or b!="y""#, "*"),
        (r#"{} | json a="b" | a="x""#, "*"),
        (r#"{} | json | label_format a=b | a="x""#, "*"),
        (r#"{} | regexp "(?P<a>x)" | a="x""#, "*"),
        (r#"{} | addr=ip("10.0.0.1") or app="a""#, "*"),
    ];
    for (text, expected) in table {
        let filter = filter_of(&parse_log(text).unwrap());
        assert_eq!(filter.to_string(), expected, "{text}");
        let parsed = query::parse(expected).unwrap();
        assert_eq!(parsed.to_string(), expected);
    }
}

/// Conditions on the labels that stand for many fields come through another node's parser.
#[test]
fn filters_of_computed_labels_parse_back() {
    for text in [
        r#"{service_name="shop"}"#,
        r#"{service_name!~"shop|cart"}"#,
        r#"{service_name="unknown_service", detected_level="error"}"#,
        r#"{service_name=~".+", detected_level=~"unknown|info"}"#,
        r#"{service_name=~"a.*", detected_level!="debug"}"#,
    ] {
        let filter = filter_of(&parse_log(text).unwrap());
        let printed = filter.to_string();
        let parsed = query::parse(&printed).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(parsed, filter, "{text}");
    }
}

proptest! {
    #[test]
    fn any_text_ends(text in "[{}()\\[\\]a-c=!~|<>\"`,.0-9+*/^% -]{0,40}|\\PC{0,20}") {
        fuzz_logql(text.as_bytes());
    }

    #[test]
    fn mixtures_of_queries_end(
        from in 0..ACCEPTED.len(),
        to in 0..ACCEPTED.len(),
        cut in 0usize..60,
        rest in 0usize..60,
    ) {
        let (a, b) = (ACCEPTED[from].0, ACCEPTED[to].0);
        let a = &a[..a.floor_char_boundary(cut.min(a.len()))];
        let b = &b[b.ceil_char_boundary(rest.min(b.len()))..];
        fuzz_logql(format!("{a}{b}").as_bytes());
    }
}
