use super::*;

/// What is said of a filter where records have these fields.
fn said(filter: &Filter, names: &[&str]) -> Vec<Hint> {
    hints(&HintRequest {
        filter,
        written: None,
        field: None,
        names: (!names.is_empty()).then_some(names),
        values: &[],
        any_case: None,
        any_separator: None,
        before: None,
        behind: None,
    })
}

const NAMES: [&str; 5] = ["app", "level", "path", "status", "user"];

/// The text, the question that is suggested, and its arguments.
const QUERIES: &[(&str, &str, &str)] = &[
    ("level=error", "level=error", "-f level=error"),
    ("level: error", "level:\"error\"", "-f 'level:\"error\"'"),
    ("status>=500", "status>=500", "-f 'status>=500'"),
    ("level = error", "level=error", "-f level=error"),
    ("level==error", "level=error", "-f level=error"),
    ("status:>=500", "status>=500", "-f 'status>=500'"),
    ("status<>200", "status!=200", "-f 'status!=200'"),
    ("user=\"a b\"", "user=\"a b\"", "-f 'user=\"a b\"'"),
    ("user:*", "user:*", "-f 'user:*'"),
    (
        "\"connection refused\"",
        "\"connection refused\"",
        "'connection refused'",
    ),
    ("'timeout'", "\"timeout\"", "timeout"),
    ("%failed%", "\"failed\"", "failed"),
    ("\"disk full", "\"disk full\"", "'disk full'"),
    ("not paid", "NOT \"paid\"", "--where 'NOT \"paid\"'"),
    (
        "(status=500 OR status=404",
        "status=500 OR status=404",
        "--where 'status=500 OR status=404'",
    ),
    (
        "timeout last 5 minutes",
        "\"timeout\"",
        "--since 5m timeout",
    ),
    ("path=~/^\\/api/", "path~/^\\/api/", "-f 'path~/^\\/api/'"),
    (
        "level=error status=500",
        "level=error AND status=500",
        "-f level=error -f status=500",
    ),
    (
        "timeout level=error",
        "\"timeout\" AND level=error",
        "timeout -f level=error",
    ),
    (
        "status=500 OR status=404",
        "status=500 OR status=404",
        "--where 'status=500 OR status=404'",
    ),
    ("{app=\"x\"} |= \"y\"", "app=x AND \"y\"", "y -f app=x"),
    (
        "{app=~\"x|z\", level!=\"info\"} |~ \"y+\" | json | status >= 500",
        "app~/^(?:x|z)$/ AND \"level\"!=info AND /y+/ AND status>=500",
        "-f 'app~/^(?:x|z)$/' -f '\"level\"!=info' -e y+ -f 'status>=500'",
    ),
    (
        "{app=\"x\"} != \"y\"",
        "app=x AND NOT \"y\"",
        "-f app=x --where 'NOT \"y\"'",
    ),
    (
        "timeout OR error",
        "\"timeout\" OR \"error\"",
        "-e 'timeout|error'",
    ),
    (
        "timeout or error",
        "\"timeout\" OR \"error\"",
        "-e 'timeout|error'",
    ),
    ("a.b || c d", "\"a.b\" OR \"c d\"", "-e 'a\\.b|c d'"),
    (
        "timeout AND error",
        "\"timeout\" AND \"error\"",
        "timeout --where '\"error\"'",
    ),
    ("NOT error", "NOT \"error\"", "--where 'NOT \"error\"'"),
    ("-status=200", "status!=200", "-f 'status!=200'"),
    ("!status=200", "status!=200", "-f 'status!=200'"),
    (
        "failed -debug",
        "\"failed\" AND NOT \"debug\"",
        "failed --where 'NOT \"debug\"'",
    ),
    ("pay*failed", "/pay.*failed/", "-e 'pay.*failed'"),
    ("*.failed", "\".failed\"", ".failed"),
    ("err?r", "/err.r/", "-e err.r"),
    ("/time(d )?out/i", "/time(d )?out/i", "-e 'time(d )?out' -i"),
    ("pay.*failed", "/pay.*failed/", "-e 'pay.*failed'"),
    ("timeout|error", "/timeout|error/", "-e 'timeout|error'"),
    ("order [0-9]+", "/order [0-9]+/", "-e 'order [0-9]+'"),
    ("statsu=500", "status=500", "-f status=500"),
    ("Level=error", "level=error", "-f level=error"),
];

#[test]
fn texts_that_look_like_queries_are_recognised() {
    for (text, query, arguments) in QUERIES {
        let hints = said(&Filter::substring(text.as_bytes(), false), &NAMES);
        let hint = hints.first().unwrap_or_else(|| panic!("{text}: no hint"));
        assert_eq!(hint.query.as_deref(), Some(*query), "{text}");
        let command = format!("logpond query {arguments}");
        assert_eq!(hint.command.as_deref(), Some(&*command), "{text}");
        assert_eq!(hints.len(), 1, "{text}");
    }
}

#[test]
fn texts_are_left_alone() {
    for text in [
        "connection refused",
        "error: disk full",
        "12:30:01",
        "std::vec",
        "http://x/y?a=b",
        "is it over?",
        "C:\\windows",
        "{\"a\":1}",
        "f(a, b)",
        "said that this and that were not there",
        "user not found",
        "not found",
        "f(x",
        "--force",
        "***",
        "|",
        "",
    ] {
        let hints = said(&Filter::substring(text.as_bytes(), false), &NAMES);
        assert_eq!(hints, [], "{text}");
    }
}

#[test]
fn what_cannot_be_said_here_is_named() {
    for (text, command) in [
        (
            "sum(rate({app=\"x\"}[5m]))",
            "logpond saved run 'sum(rate({app=\"x\"}[5m]))'",
        ),
        (
            "{app=\"x\"} | line_format \"{{.a}}\"",
            "logpond saved run '{app=\"x\"} | line_format \"{{.a}}\"'",
        ),
        (
            "SELECT count(*) FROM logs",
            "logpond sql 'SELECT count(*) FROM logs'",
        ),
    ] {
        let hints = said(&Filter::substring(text.as_bytes(), false), &NAMES);
        assert_eq!(hints[0].command.as_deref(), Some(command));
        assert_eq!(hints[0].query, None);
    }
}

#[test]
fn unknown_fields_are_named_with_the_nearest() {
    let filter = query::parse("statsu=500 (usr:* OR nowhere=1) x").unwrap();
    let hints = said(&filter, &NAMES);
    assert_eq!(
        hints[0].message,
        "no record of the range has a field 'statsu'; the nearest is 'status'"
    );
    assert_eq!(
        hints[0].query.as_deref(),
        Some("status=500 AND (user:* OR nowhere=1) AND \"x\"")
    );
    let filter = query::parse("nowhere=1").unwrap();
    let hints = said(&filter, &NAMES);
    assert_eq!(
        hints[0].message,
        "no record of the range has a field 'nowhere'"
    );
    assert_eq!(hints[0].query, None);
    // Not all names are known, or they are reserved.
    assert_eq!(said(&filter, &[]), []);
    let reserved = query::parse("_msg:x _logpond_label.ap=y").unwrap();
    assert_eq!(said(&reserved, &NAMES), []);
    for (asked, meant) in [
        ("message:slog", "_msg:\"slog\""),
        ("_message=slog", "_msg:\"slog\""),
        ("Timestamp>2026-11-01", "_time>2026-11-01"),
        ("line:slog", "_raw:\"slog\""),
    ] {
        let hints = said(&query::parse(asked).unwrap(), &NAMES);
        let found = hints[0].query.as_deref().map(query::parse);
        assert_eq!(found, Some(query::parse(meant)), "{asked}");
    }
    // It may be a field.
    let own = query::parse("message:slog").unwrap();
    assert_eq!(said(&own, &["message"]), []);
    let counted = hints_of_field("statsu");
    assert_eq!(
        counted[0].message,
        "no record of the range has a field 'statsu'; did you mean 'status'?"
    );
    assert_eq!(hints_of_field("status"), []);
}

fn hints_of_field(field: &str) -> Vec<Hint> {
    hints(&HintRequest {
        filter: &Filter::All,
        written: None,
        field: Some(field),
        names: Some(&NAMES),
        values: &[],
        any_case: None,
        any_separator: None,
        before: None,
        behind: None,
    })
}

#[test]
fn the_rest_of_the_question_stays() {
    let filter = Filter::and([
        Filter::substring(b"level=error", true),
        query::parse("status=500").unwrap(),
    ]);
    let hints = said(&filter, &NAMES);
    assert_eq!(
        hints[0].query.as_deref(),
        Some("level=error AND status=500")
    );
    let folded = said(&Filter::substring(b"a OR b", true), &NAMES);
    assert_eq!(folded[0].query.as_deref(), Some("i\"a\" OR i\"b\""));
    assert_eq!(
        folded[0].command.as_deref(),
        Some("logpond query -e 'a|b' -i")
    );
}

#[test]
fn matches_outside_of_the_range_are_counted() {
    let hints = hints(&HintRequest {
        filter: &Filter::All,
        written: None,
        field: None,
        names: None,
        values: &[],
        any_case: None,
        any_separator: None,
        before: Some(Outside {
            count: 1000,
            is_all: false,
            nearest: Timestamp(1_000_000_000),
        }),
        behind: Some(Outside {
            count: 1,
            is_all: true,
            nearest: Timestamp(5_000_000_000),
        }),
    });
    let said: Vec<&str> = hints.iter().map(|hint| &*hint.message).collect();
    assert_eq!(
        said,
        [
            "at least 1000 records match before the range; the newest is of \
             1970-01-01T00:00:01.000000000Z",
            "1 record matches after the range; the oldest is of 1970-01-01T00:00:05.000000000Z",
        ]
    );
    assert_eq!(hints[0].from, Some(Timestamp(1_000_000_000)));
    assert_eq!(hints[1].to, Some(Timestamp(5_000_000_001)));
}

#[test]
fn messages_are_short_and_clean() {
    let text = format!("level=\u{1b}[31m{}", "x".repeat(200));
    let hints = said(&Filter::substring(text.as_bytes(), false), &NAMES);
    assert!(hints[0].message.chars().count() < 140, "{:?}", hints[0]);
    assert!(!hints[0].message.contains('\u{1b}'));
    let long = "a OR ".repeat(TEXT_BYTES_MAX);
    assert_eq!(said(&Filter::substring(long.as_bytes(), false), &NAMES), []);
}

#[test]
fn names_are_wanted_where_they_matter() {
    for (text, wanted) in [
        ("level=error", true),
        ("x level=error", true),
        ("timeout", false),
        ("a OR b", false),
    ] {
        assert_eq!(
            wants_names(&Filter::substring(text.as_bytes(), false), None),
            wanted
        );
    }
    let wanted = |text: &str| wants_names(&query::parse(text).unwrap(), Some(text));
    assert!(wanted("NOT a=1") && wanted("{app=\"x\"} |= \"pay\""));
    assert!(!wanted("*") && !wanted("/a/"));
}

#[test]
fn words_are_quoted_for_a_shell() {
    for (word, quoted) in [
        ("a=b", "a=b"),
        ("", "''"),
        ("a b", "'a b'"),
        ("it's", r"'it'\''s'"),
        ("$x", "'$x'"),
    ] {
        assert_eq!(shell_word(word), quoted);
    }
}

/// The hints for a filter if the fields have these values, and so many records match in any case.
fn said_of_values(query: &str, values: &[(&str, &[&str])], any_case: u64) -> Vec<Hint> {
    let owned = |(name, values): &(&str, &[&str])| FieldValues {
        name: (*name).to_owned(),
        values: values.iter().map(|value| (*value).to_owned()).collect(),
        is_all: true,
    };
    let values: Vec<FieldValues> = values.iter().map(owned).collect();
    hints(&HintRequest {
        filter: &query::parse(query).unwrap(),
        written: None,
        field: None,
        names: Some(&NAMES),
        values: &values,
        any_case: Some((any_case, true)),
        any_separator: None,
        before: None,
        behind: None,
    })
}

#[test]
fn values_that_no_record_has_are_named_with_the_nearest() {
    let hosts: &[(&str, &[&str])] = &[("app", &["web-1", "web-2", "db"])];
    let one = &said_of_values("app=WEB-1", hosts, 7)[0];
    assert_eq!(
        one.message,
        "no record of the range has 'WEB-1' in 'app'; the nearest is 'web-1'"
    );
    assert_eq!(one.query.as_deref(), Some("app=web-1"));
    let two = &said_of_values("app=dbb AND status=500", hosts, 0)[0];
    assert_eq!(two.query.as_deref(), Some("app=db AND status=500"));
    let levels: &[(&str, &[&str])] = &[("level", &["info", "warning"])];
    let level = &said_of_values("level=warnin", levels, 0)[0];
    assert_eq!(
        level.message,
        "no record of the range has 'warnin' in 'level'; the nearest is 'warning'"
    );
    assert_eq!(said_of_values("level=fatal", levels, 0), []);
    let none = said_of_values("app=mail", hosts, 0);
    assert_eq!(
        none[0].message,
        "no record of the range has 'mail' in 'app'; there are 'web-1', 'web-2', 'db'"
    );
    assert_eq!((none.len(), &none[0].query), (1, &None));
    let statuses: &[(&str, &[&str])] = &[("status", &["200", "503"])];
    let class = said_of_values("status=5xx", statuses, 0);
    assert_eq!(class[0].query.as_deref(), Some("status~/^5\\d\\d$/"));
    let lists: &[(&str, &[&str])] = &[("app", &["[\"a\",\"b\"]"])];
    let part = &said_of_values("app=a", lists, 0)[0];
    assert_eq!(part.query.as_deref(), Some("app:\"a\""));
    let both: &[(&str, &[&str])] = &[("app", &["a", "[\"a\",\"b\"]"])];
    assert_eq!(said_of_values("app=a", both, 0), []);
    let more = &said_of_values("app=\"web-1,level=error\"", hosts, 0)[0];
    assert_eq!(more.query.as_deref(), Some("app=web-1 AND level=error"));
    let text = &said(&Filter::substring(b"_msg=timeout", false), &NAMES)[0];
    assert_eq!(text.query.as_deref(), Some("_msg:\"timeout\""));
    let number = said_of_values("status=501", statuses, 0);
    assert_eq!(
        number[0].message,
        "no record of the range has '501' in 'status'; there are '200', '503'"
    );
    assert_eq!(number[0].query, None);
    for query in ["app=db", "NOT app=mail", "user=mail", "app:mail"] {
        assert_eq!(said_of_values(query, hosts, 0), [], "{query}");
    }
    for query in ["status=503.0", "status=2e2"] {
        assert_eq!(said_of_values(query, statuses, 0), [], "{query}");
    }
}

#[test]
fn another_case_of_texts_is_suggested() {
    let table = [
        ("Timeout", "i\"Timeout\""),
        ("user=Ann", "user~/^Ann$/i"),
        ("path:Api AND \"GET\"", "path:i\"Api\" AND i\"GET\""),
    ];
    for (query, meant) in table {
        let hints = said_of_values(query, &[], 3);
        let hint = hints.last().unwrap();
        assert_eq!(
            hint.message, "3 records match if upper and lower case are alike",
            "{query}"
        );
        let same = query::parse(hint.query.as_deref().unwrap()).unwrap();
        assert_eq!(same, query::parse(meant).unwrap(), "{query}: {hint:?}");
    }
    for query in ["i\"Timeout\"", "status=500", "*"] {
        assert_eq!(in_any_case(&query::parse(query).unwrap()), None, "{query}");
    }
}

#[test]
fn compared_fields_are_those_that_are_known() {
    let filter = query::parse("app=a OR (nothing=b AND path=c) OR user:d OR level=warn").unwrap();
    assert_eq!(compared_fields(&filter, Some(&NAMES)), ["app", "path"]);
}

#[test]
fn texts_are_neither_larger_nor_smaller() {
    let texts: &[(&str, &[&str])] = &[("path", &["3ms", "12ms"]), ("app", &["web", "db"])];
    let said = |query| said_of_values(query, texts, 0);
    assert_eq!(
        said("path>5")[0].message,
        "larger and smaller are for numbers, and 'path' has texts in the range, such as '3ms'; LogQL compares \
         durations and sizes with their units"
    );
    assert_eq!(
        said("app<=7")[0].message,
        "larger and smaller are for numbers, and 'app' has texts in the range, such as 'web'"
    );
    let numbers: &[(&str, &[&str])] = &[("path", &["3ms", "4"])];
    assert_eq!(said_of_values("path>5", numbers, 0), []);
}

#[test]
fn a_message_is_seldom_meant_as_a_whole() {
    for (query, message, meant) in [
        (
            "_msg=timeout",
            "'_msg=' compares the whole message; '_msg:' finds a text in it",
            "_msg:\"timeout\"",
        ),
        (
            "_raw=\"a b\" AND status=500",
            "'_raw=' compares the whole line; '_raw:' finds a text in it",
            "_raw:\"a b\" AND status=500",
        ),
    ] {
        let hints = said(&query::parse(query).unwrap(), &NAMES);
        assert_eq!(hints[0].message, message);
        let same = query::parse(hints[0].query.as_deref().unwrap()).unwrap();
        assert_eq!(same, query::parse(meant).unwrap());
    }
}

#[test]
fn a_severity_of_another_name_is_the_level() {
    let suggested = |query: &str, names: &[&str]| {
        let hints = said(&query::parse(query).unwrap(), names);
        hints[0].query.clone()
    };
    let names = ["app", "status"];
    for (query, meant) in [
        ("severity=error", Some("level=error")),
        (
            "loglevel=warn AND status=5",
            Some("level=warn AND status=5"),
        ),
        ("priority=3", None),
        ("severity:*", None),
    ] {
        assert_eq!(suggested(query, &names).as_deref(), meant, "{query}");
    }
    assert_eq!(suggested("priority=3", &NAMES).as_deref(), Some("level=3"));
    assert_eq!(
        said(&query::parse("severity=error").unwrap(), &["severity"]),
        []
    );
}

#[test]
fn commas_between_conditions_are_not_of_their_values() {
    let meant = "app=web-1 AND level=error";
    let text = said(&Filter::substring(b"app=web-1,level=error", false), &NAMES);
    assert_eq!(text[0].query.as_deref(), Some(meant));
    let condition = "app=web-1,level=error";
    let filter = query::parse(condition).unwrap();
    let hints = hints(&HintRequest {
        filter: &filter,
        written: Some(condition),
        field: None,
        names: Some(&NAMES),
        values: &[],
        any_case: None,
        any_separator: None,
        before: None,
        behind: None,
    });
    assert_eq!(hints[0].query.as_deref(), Some(meant));
    for text in ["app=a,b", "a,b", "took=1,5", "x=1, then y=2 failed"] {
        assert_eq!(
            reading::reading(text, false).and_then(|found| commas_of(&found)),
            None,
            "{text}"
        );
    }
}

fn commas_of(found: &Interpretation) -> Option<String> {
    found
        .looks_like
        .contains("commas")
        .then(|| found.looks_like.clone())
}

#[test]
fn signs_between_parts_of_names_are_alike() {
    for (query, meant) in [
        ("app=web_1", "app~/^web[-_. ]1$/i"),
        ("web_1", "/web[-_. ]1/i"),
        ("user=a.b@c", "user~/^a[-_. ]b@c$/i"),
    ] {
        let found = in_any_separator(&query::parse(query).unwrap()).unwrap();
        assert_eq!(found, query::parse(meant).unwrap(), "{query}");
    }
    for query in ["1.5", "status=500", "timeout", "-x", "\"disk full\""] {
        assert_eq!(
            in_any_separator(&query::parse(query).unwrap()),
            None,
            "{query}"
        );
    }
    let hints = hints(&HintRequest {
        filter: &query::parse("web_1").unwrap(),
        written: None,
        field: None,
        names: None,
        values: &[],
        any_case: Some((0, true)),
        any_separator: Some((2, true)),
        before: None,
        behind: None,
    });
    assert_eq!(
        hints[0].message,
        "2 records match if '-', '_', '.' and spaces are alike"
    );
    assert!(hints[0].query.is_some());
}

#[test]
fn suggestions_are_tried() {
    let hint = |query: &str| Hint {
        message: "it looks like a condition".to_owned(),
        ..suggested(Some(&query::parse(query).unwrap()))
    };
    let counted = |of: &'static str, count| {
        let of = query::parse(of).unwrap();
        move |filter: &Filter| Some((if *filter == of { count } else { 0 }, true))
    };
    let found = tried(hint("app=web"), counted("app=web", 3));
    assert_eq!(found, hint("app=web"));
    let other_case = tried(hint("_msg:\"TIMEOUT\""), counted("_msg:i\"TIMEOUT\"", 3));
    assert_eq!(
        other_case.message,
        "it looks like a condition; records match it in another case"
    );
    assert_eq!(other_case.query.as_deref(), Some("_msg:i\"TIMEOUT\""));
    let none = tried(hint("app=web"), counted("app=db", 3));
    assert_eq!(
        none.message,
        "it looks like a condition; no record of the range matches that, either"
    );
    assert_eq!(none.query.as_deref(), Some("app=web"));
    let unknown = tried(hint("app=web"), |_| None);
    assert_eq!(unknown, hint("app=web"));
}
