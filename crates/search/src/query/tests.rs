use super::*;
use proptest::prelude::*;

#[test]
fn queries_are_read() {
    // Each with its canonical form.
    let table = [
        ("", "*"),
        ("  ", "*"),
        ("*", "*"),
        ("connection refused", r#""connection refused""#),
        ("  a  b\tc ", r#""a  b\tc""#),
        (r#""a \"b\" \\ \n\x00\xff""#, r#""a \"b\" \\ \n\x00\xff""#),
        (r#"i"Error""#, r#"i"Error""#),
        (r"/time(d )?out/", "/time(d )?out/"),
        (r"/a\/b/i", r"/a\/b/i"),
        ("status=500", "status=500"),
        ("status!=500", "status!=500"),
        ("NOT status=500", "status!=500"),
        ("status>=5e2", "status>=5e2"),
        (r#"user="a b""#, r#"user="a b""#),
        (r#"user="""#, r#"user="""#),
        (r#""odd name"=x"#, r#""odd name"=x"#),
        ("user:*", "user:*"),
        (r#"user:"*""#, r#"user:"*""#),
        ("agent:curl", r#"agent:"curl""#),
        (r#"agent:i"curl""#, r#"agent:i"curl""#),
        (r"path~/^\/api/", r"path~/^\/api/"),
        ("path!~/x/i", "path!~/x/i"),
        ("path~^/api", r"path~/^\/api/"),
        (r#"path~"a b""#, "path~/a b/"),
        ("a AND b", r#""a" AND "b""#),
        ("a b AND c", r#""a b" AND "c""#),
        ("a OR b c OR d", r#""a" OR "b c" OR "d""#),
        ("a OR b AND c", r#""a" OR ("b" AND "c")"#),
        ("(a OR b) AND c", r#"("a" OR "b") AND "c""#),
        ("NOT a AND b", r#"NOT "a" AND "b""#),
        ("NOT (a b)", r#"NOT "a b""#),
        ("NOT(a OR b)", r#"NOT ("a" OR "b")"#),
        ("NOT NOT a", r#"NOT NOT "a""#),
        (
            "level=error timeout status=5",
            r#"level=error AND "timeout" AND status=5"#,
        ),
        (r#""a" "b""#, r#""a" AND "b""#),
        ("((a))", r#""a""#),
        ("(a) (b AND c)", r#""a" AND "b" AND "c""#),
        ("NOT *", "NOT *"),
        ("a AND *", r#""a""#),
        ("_time>=2026-11-21T10:00:00Z", "_time>=2026-11-21T10:00:00Z"),
        ("é=ü ☃", r#"é="ü" AND "☃""#),
    ];
    for (query, expected) in table {
        let filter = parse(query).unwrap_or_else(|e| panic!("{query}: {e}"));
        assert_eq!(filter.to_string(), expected, "{query}");
        assert_eq!(parse(expected).unwrap(), filter, "{query}");
    }
}

#[test]
fn words_for_levels_mean_the_severity() {
    // Each with its canonical form.
    let table = [
        ("level>=warn", "level>=warn"),
        ("_level>=warn", "level>=warn"),
        ("_level=warn", "_level=warn"),
        ("level=error OR a", r#"level=error OR "a""#),
        (
            "(level=error OR a) AND b",
            r#"(level=error OR "a") AND "b""#,
        ),
        ("level<=WARNING", "level<=WARNING"),
        ("level!=info", "level!=info"),
        ("NOT level>=warn", "NOT level>=warn"),
        (r#""level"=error"#, r#""level"=error"#),
        (r#""level"!=error"#, r#""level"!=error"#),
        ("level=50", "level=50"),
        ("level>=50", "level>=50"),
        ("level=odd", "level=odd"),
        ("level:err", r#"level:"err""#),
        ("severity=error", "severity=error"),
    ];
    for (query, expected) in table {
        let filter = parse(query).unwrap_or_else(|e| panic!("{query}: {e}"));
        assert_eq!(filter.to_string(), expected, "{query}");
        assert_eq!(parse(expected).unwrap(), filter, "{query}");
    }
}

#[test]
fn what_only_looks_like_a_condition_is_text() {
    let texts = [
        "12:30:01",
        "127.0.0.1:8080",
        "std::vec::Vec",
        "error: it failed",
        "p->next",
        "http://example.org/?a=b",
        r"C:\Windows",
        "main()",
        "f(a, b)",
        "f(a OR (b AND c)) called",
        "open( here",
        "/var/log/messages",
        "GET /index.html HTTP/1.1",
        "/",
        "//",
        "and or not",
        "ANDROID",
        "{\"a\":1}",
        "!important",
        "50%",
        "a:",
    ];
    for text in texts {
        let expected = Filter::substring(text.as_bytes(), false);
        assert_eq!(parse(text), Ok(expected), "{text}");
    }
}

#[test]
fn errors_say_where_and_what_to_do() {
    // Query, bytes at fault, message, part of the hint.
    let table = [
        ("status==500", 6..8, "unknown operator `==`", "`=`"),
        ("path=~x", 4..6, "unknown operator `=~`", "`~`"),
        ("status:>5", 6..8, "unknown operator `:>`", "`>`"),
        ("status=>5", 6..8, "unknown operator `=>`", "`>=`"),
        (
            "a status >= 500",
            9..11,
            "`>=` stands alone",
            "FIELD>=VALUE",
        ),
        ("a=", 0..2, "the value is missing", "\"\""),
        ("a=*", 0..3, "`*` is no value", "FIELD:*"),
        (
            "severity>warn",
            9..13,
            "`>` compares numbers and times only",
            "a number",
        ),
        (
            "_time>noon",
            6..10,
            "times are compared with an instant",
            "RFC 3339",
        ),
        ("_id=1", 4..5, "ids are compared", "_id"),
        ("x \"ab", 2..5, "the quote is not closed", "end it"),
        ("\"a\\d\"", 2..4, "unknown escape", "`\\\\`"),
        ("\"a\"b", 0..4, "text after the closing quote", "a space"),
        (
            "é /a(b/",
            5..6,
            "regular expression: unclosed group",
            "backslash",
        ),
        (
            r"p~/\/\/(/",
            7..8,
            "regular expression: unclosed group",
            "backslash",
        ),
        ("p~/a", 2..4, "the expression does not end", r"`\/`"),
        ("p~/a/g", 2..6, "the expression does not end", "`/i`"),
        ("(a", 0..1, "`(` without `)`", "quote"),
        ("a)", 1..2, "`)` without `(`", "quote"),
        ("()", 0..2, "nothing between", "quote"),
        ("a AND", 5..5, "the query ends", ""),
        ("OR a", 0..2, "a term is missing before `OR`", "\"OR\""),
        ("(a OR )", 6..7, "a term is missing before `)`", "quote"),
        ("a=i\"x\"", 2..4, "i\"…\" works with `:` only", "FIELD:i"),
    ];
    for (query, span, message, hint) in table {
        let error = parse(query).expect_err(query);
        assert_eq!(error.start..error.end, span, "{query}: {error}");
        assert!(error.message.starts_with(message), "{query}: {error}");
        assert!(
            error.hint.clone().unwrap_or_default().contains(hint),
            "{query}: {error}"
        );
    }
    let error = parse("é /a(b/").unwrap_err();
    assert_eq!((error.start_char, error.end_char), (4, 5));
    assert_eq!(error.underline("é /a(b/"), "é /a(b/\n    ^");
}

#[test]
fn queries_are_bounded() {
    let refused = [
        "x".repeat(QUERY_BYTES_MAX + 1),
        "(".repeat(1000),
        "NOT ".repeat(1000),
        vec!["a"; 2000].join(" OR "),
        vec!["/a/"; 100].join(" "),
        vec!["i\"a\""; 100].join(" "),
        r"/(\w{200}){200}/".to_owned(),
    ];
    for query in refused {
        assert!(parse(&query).is_err(), "{:.40}", query);
    }
}

#[test]
fn conditions_stand_alone_in_an_argument() {
    let table = [
        ("status>=500", Some("status>=500")),
        ("user=a b (c", Some(r#"user="a b (c""#)),
        ("user=", Some(r#"user="""#)),
        ("user=\"a b\"", Some(r#"user="a b""#)),
        ("user!=x", Some("user!=x")),
        ("status >= 500", Some("status>=500")),
        (" user = a b", Some(r#"user="a b""#)),
        ("user= a", Some(r#"user=" a""#)),
        ("user : *", Some("user:*")),
        (" =5", None),
        ("odd name=x", Some(r#""odd name"=x"#)),
        ("\"a=b\"=x", Some(r#""a=b"=x"#)),
        ("user:*", Some("user:*")),
        ("a=*", Some(r#"a="*""#)),
        ("path~^/a b", Some(r"path~/^\/a b/")),
        ("path~/^a b/i", Some("path~/^a b/i")),
        ("path!~x", Some("path!~/x/")),
        ("http://x", Some(r#"http:"//x""#)),
        ("status", None),
        ("=5", None),
        ("status==5", None),
        ("status>x", None),
        ("a~(", None),
        ("a=\"b\"c", None),
    ];
    for (text, expected) in table {
        let found = parse_condition(text).ok().map(|f| f.to_string());
        assert_eq!(found.as_deref(), expected, "{text}");
    }
}

fn pattern() -> impl Strategy<Value = Pattern> {
    let text = prop_oneof![
        "\\PC{0,8}".prop_map(String::into_bytes),
        proptest::collection::vec(any::<u8>(), 0..8),
    ];
    prop_oneof![
        (text, any::<bool>()).prop_map(|(t, i)| Pattern::substring(&t, i)),
        (
            "(a|/|\\\\/|\\\\\\\\|\\.\\*|[0-9]|\\\\\\.|\"| ){1,6}",
            any::<bool>()
        )
            .prop_filter("a valid expression", |(s, _)| regex_syntax::parse(s)
                .is_ok())
            .prop_map(|(s, i)| Pattern::regex(&s, i)),
    ]
}

fn filter() -> impl Strategy<Value = Filter> {
    let comparison = prop_oneof![
        Just(Comparison::Equal),
        Just(Comparison::Less),
        Just(Comparison::GreaterOrEqual),
    ];
    let test = prop_oneof![
        Just(FieldTest::Exists),
        (comparison, any::<i32>())
            .prop_map(|(c, n)| FieldTest::Compare(c, n.to_string().into_bytes().into())),
        "\\PC{0,6}".prop_map(|v| FieldTest::Compare(Comparison::Equal, v.into_bytes().into())),
        pattern().prop_map(FieldTest::Contains),
    ];
    let leaf = prop_oneof![
        Just(Filter::All),
        pattern().prop_map(Filter::Text),
        ("([a-z_.]{1,6}|\\PC{0,6})", test).prop_filter_map("no reserved name", |(name, test)| {
            (!name.starts_with('_')).then(|| Filter::field(&name, test))
        }),
    ];
    leaf.prop_recursive(4, 20, 4, |inner| {
        let many = proptest::collection::vec(inner.clone(), 0..4);
        prop_oneof![
            many.clone().prop_map(Filter::and),
            many.prop_map(Filter::or),
            inner.prop_map(Filter::negate),
        ]
    })
}

proptest! {
    #[test]
    fn printed_filters_parse_back(filter in filter()) {
        let printed = filter.to_string();
        prop_assert_eq!(parse(&printed), Ok(filter), "{}", printed);
    }

    #[test]
    fn nothing_panics(text in "\\PC{0,40}") {
        fuzz_query(text.as_bytes());
    }

    #[test]
    fn nothing_like_a_query_panics(
        text in "(a|é|bc|\"|\\\\|/|i|=|!|~|<|>|:|\\*|\\(|\\)| |AND|OR|NOT|5|\\[|\\?|_time|-){0,24}",
    ) {
        fuzz_query(text.as_bytes());
        let _ = parse_condition(&text);
    }
}
