//! Questions of other languages, as texts of the command line and as questions of the API.

use proptest::prelude::*;

use super::*;
use crate::query::{Comparison, FieldTest};

/// Names of fields that the questions have.
const NAMES: [&str; 8] = [
    "app", "index", "level", "msg", "path", "status", "took", "user",
];

fn compared(name: &str, comparison: Comparison, value: &str) -> Filter {
    query::by_severity(FieldFilter {
        name: name.into(),
        test: FieldTest::Compare(comparison, value.as_bytes().into()),
    })
}

fn eq(name: &str, value: &str) -> Filter {
    compared(name, Comparison::Equal, value)
}

fn has(name: &str, text: &str) -> Filter {
    Filter::field(
        name,
        FieldTest::Contains(Pattern::substring(text.as_bytes(), false)),
    )
}

fn like(name: &str, source: &str) -> Filter {
    Filter::field(name, FieldTest::Contains(Pattern::regex(source, false)))
}

fn exists(name: &str) -> Filter {
    Filter::field(name, FieldTest::Exists)
}

fn text(text: &str) -> Filter {
    Filter::substring(text.as_bytes(), false)
}

fn not(filter: Filter) -> Filter {
    Filter::negate(filter)
}

fn any<const N: usize>(filters: [Filter; N]) -> Filter {
    Filter::or(filters)
}

fn all<const N: usize>(filters: [Filter; N]) -> Filter {
    Filter::and(filters)
}

/// Questions as they are written, and what they mean.
type Question = (&'static str, Filter);

fn questions() -> Vec<Question> {
    let parts = [
        joined_by_words(),
        joined_by_signs(),
        sql(),
        logql(),
        lucene(),
        splunk(),
        jq(),
        choices(),
        mixed(),
    ];
    parts.into_iter().flatten().collect()
}

fn either() -> Filter {
    any([eq("status", "500"), eq("status", "501")])
}

fn both() -> Filter {
    all([eq("status", "500"), eq("user", "ann")])
}

fn levels() -> Filter {
    any([eq("level", "error"), eq("level", "warn")])
}

fn at_least(status: &str) -> Filter {
    compared("status", Comparison::GreaterOrEqual, status)
}

/// A status from 400 to 499.
fn client() -> Filter {
    let end = compared("status", Comparison::LessOrEqual, "499");
    all([at_least("400"), end])
}

fn outside() -> Filter {
    any([
        compared("status", Comparison::Greater, "499"),
        compared("status", Comparison::Less, "100"),
    ])
}

fn pay() -> Filter {
    all([eq("app", "x"), text("pay")])
}

fn joined_by_words() -> Vec<Question> {
    vec![
        ("status=500 or status=501", either()),
        ("status=500 Or status=501", either()),
        ("status = 500 or status = 501", either()),
        ("(status=500) or (status=501)", either()),
        (
            "app=\"x\" and user=\"ann\"",
            all([eq("app", "x"), eq("user", "ann")]),
        ),
        (
            "app='x' and user='ann'",
            all([eq("app", "x"), eq("user", "ann")]),
        ),
        ("\"pay\" or \"other\"", any([text("pay"), text("other")])),
        ("'pay' or 'other'", any([text("pay"), text("other")])),
        (
            "\"pay\" and not \"other\"",
            all([text("pay"), not(text("other"))]),
        ),
        (
            "status=500 and not user=ann",
            all([eq("status", "500"), not(eq("user", "ann"))]),
        ),
        ("not (status=500 or status=501)", not(either())),
        (
            "status=500 or status=501 or status=502 or status=503",
            any(["500", "501", "502", "503"].map(|status| eq("status", status))),
        ),
        (
            "(status=500 or status=501) and user=ann and \"card declined\"",
            all([either(), eq("user", "ann"), text("card declined")]),
        ),
        (
            "level=error and card was declined",
            all([eq("level", "error"), text("card was declined")]),
        ),
        ("not status=500", not(eq("status", "500"))),
    ]
}

fn joined_by_signs() -> Vec<Question> {
    vec![
        ("status=500 || status=501", either()),
        ("status=500||status=501", either()),
        ("status == 500 || status == 501", either()),
        ("status=500 and user=ann", both()),
        ("status=500 && user=ann", both()),
        ("status=500&&user=ann", both()),
        ("status=500, user=ann", both()),
        ("status>499 || status<100", outside()),
        ("status>499||status<100", outside()),
        (
            "status=500 and !user=ann",
            all([eq("status", "500"), not(eq("user", "ann"))]),
        ),
        (
            "status=500 -user=ann",
            all([eq("status", "500"), not(eq("user", "ann"))]),
        ),
        ("!(status=500 || status=501)", not(either())),
    ]
}

fn sql() -> Vec<Question> {
    vec![
        ("level in (error, warn)", levels()),
        ("level IN ('error', 'warn')", levels()),
        ("level in (\"error\",\"warn\")", levels()),
        ("level in(error,warn)", levels()),
        ("level in [\"error\", \"warn\"]", levels()),
        ("level not in (error, warn)", not(levels())),
        (
            "app=x and level in (error, warn)",
            all([eq("app", "x"), levels()]),
        ),
        ("where status = 500 and user = 'ann'", both()),
        ("status = 500 AND user = 'ann'", both()),
        ("status between 400 and 499", client()),
        ("path LIKE '/api%'", like("path", "^/api")),
        (
            "path like '%api%' and status <> 200",
            all([has("path", "api"), not(eq("status", "200"))]),
        ),
        ("path NOT LIKE '%.css'", not(like("path", "\\.css$"))),
        (
            "user IS NOT NULL AND status = 500",
            all([exists("user"), eq("status", "500")]),
        ),
        ("user IS NULL", not(exists("user"))),
        ("user is null", not(exists("user"))),
        ("user is not null", exists("user")),
        ("exists(user)", exists("user")),
        ("isnull(user)", not(exists("user"))),
        ("path LIKE /api%", like("path", "^/api")),
        ("path like /api%", like("path", "^/api")),
        ("user LIKE bob", like("user", "^bob$")),
        ("status in 500,501", either()),
        ("| where user=\"ann\"", eq("user", "ann")),
        ("select * where user=\"ann\"", eq("user", "ann")),
        (
            "select user, path where status = 500 and user = 'ann'",
            both(),
        ),
        ("path like /order [0-9]+/", like("path", "order [0-9]+")),
    ]
}

fn logql() -> Vec<Question> {
    vec![
        ("{app=\"x\"} |= \"pay\"", pay()),
        (
            "{app=\"x\"} |~ \"pay.*\"",
            all([eq("app", "x"), Filter::regex("pay.*", false)]),
        ),
        (
            "{app=\"x\"} |= \"pay\" != \"other\"",
            all([pay(), not(text("other"))]),
        ),
        (
            "{app=\"x\"} | json | status >= 500",
            all([eq("app", "x"), at_least("500")]),
        ),
        (
            "{app=\"x\"} | json | status = 500 or status = 501",
            all([eq("app", "x"), either()]),
        ),
        (
            "{app=\"x\", user=~\"a.*\"}",
            all([eq("app", "x"), like("user", "^(?:a.*)$")]),
        ),
        ("app=\"x\" |= \"pay\"", pay()),
        (
            "app=\"x\" | json | status=500",
            all([eq("app", "x"), eq("status", "500")]),
        ),
        (
            "app=x | status=500",
            all([eq("app", "x"), eq("status", "500")]),
        ),
    ]
}

fn lucene() -> Vec<Question> {
    vec![
        (
            "level:(error OR warn)",
            any([has("level", "error"), has("level", "warn")]),
        ),
        (
            "level:(error or warn) and user:ann",
            all([
                any([has("level", "error"), has("level", "warn")]),
                has("user", "ann"),
            ]),
        ),
        ("user:an*", like("user", "^an")),
        ("path:*api*", has("path", "api")),
        ("status:[400 TO 499]", client()),
        ("status:[400 TO *]", at_least("400")),
        ("_exists_:user", exists("user")),
        (
            "level : \"error\" and user : \"ann\"",
            all([has("level", "error"), has("user", "ann")]),
        ),
        (
            "user:ann and status>=500",
            all([has("user", "ann"), at_least("500")]),
        ),
        (
            "user:ann || user:bob",
            any([has("user", "ann"), has("user", "bob")]),
        ),
        ("path:/api.*/", like("path", "api.*")),
        ("+order +paid", all([text("order"), text("paid")])),
        (
            "-level:error +user:bob",
            all([not(has("level", "error")), has("user", "bob")]),
        ),
        (
            "+\"card declined\" +user:bob -path:*api*",
            all([
                text("card declined"),
                has("user", "bob"),
                not(has("path", "api")),
            ]),
        ),
        ("\"card declined\"~5", all([text("card"), text("declined")])),
    ]
}

fn splunk() -> Vec<Question> {
    vec![
        (
            "index=x foo or status=500",
            any([all([eq("index", "x"), text("foo")]), eq("status", "500")]),
        ),
        (
            "index=x foo | stats count by user",
            all([eq("index", "x"), text("foo")]),
        ),
        (
            "search index=x status=500 | head 10",
            all([eq("index", "x"), eq("status", "500")]),
        ),
        (
            "index=x user=an*",
            all([eq("index", "x"), like("user", "^an")]),
        ),
        (
            "index=x | where status>=500",
            all([eq("index", "x"), at_least("500")]),
        ),
    ]
}

fn jq() -> Vec<Question> {
    vec![
        (
            "msg contains \"pay\" and status == 500",
            all([has("msg", "pay"), eq("status", "500")]),
        ),
        ("path startswith \"/api\"", like("path", "^/api")),
        (".status == 500 and .user == \"ann\"", both()),
        ("select(.status == 500)", eq("status", "500")),
        (".[] | select(.status == 500 or .status == 501)", either()),
        ("select(.msg | contains(\"pay\"))", has("msg", "pay")),
    ]
}

fn choices() -> Vec<Question> {
    vec![("level=error|warn", levels()), ("status=500,501", either())]
}

fn mixed() -> Vec<Question> {
    vec![
        ("level=(error OR warn)", levels()),
        ("level=(error or warn)", levels()),
        (
            "level:(error OR warn)",
            any([has("level", "error"), has("level", "warn")]),
        ),
        (
            "level:(error warn)",
            any([has("level", "error"), has("level", "warn")]),
        ),
        ("status=(500 501)", either()),
        ("level = (error OR warn)", levels()),
        ("level=(\"error\" OR \"warn\")", levels()),
        (
            "user=ann status=(500 OR 501)",
            all([eq("user", "ann"), either()]),
        ),
        ("status=(500 OR 501) pay", all([either(), text("pay")])),
        ("path=~\"^/api\"", like("path", "^/api")),
        ("path =~ \"^/api\"", like("path", "^/api")),
        (
            "level:error AND -user:ann",
            all([has("level", "error"), not(has("user", "ann"))]),
        ),
        (
            "status=500 AND !user=ann",
            all([eq("status", "500"), not(eq("user", "ann"))]),
        ),
        ("logs | where status == 500", eq("status", "500")),
        ("logs | where status == 500 | take 5", eq("status", "500")),
        ("AppRequests | where status == 500", eq("status", "500")),
        (
            "pay | where status == 500",
            all([text("pay"), eq("status", "500")]),
        ),
        ("WHERE status = 500 AND user = 'ann'", both()),
        ("grep -i timeout", Filter::substring(b"timeout", true)),
        ("grep timeout", text("timeout")),
        ("grep -v debug", not(text("debug"))),
        (
            "grep -iE 'time.?out' app.log",
            Filter::regex("time.?out", true),
        ),
        ("level!=(error OR warn)", not(levels())),
        ("level= (error OR warn)", levels()),
        (
            "level : (error, warn)",
            any([has("level", "error"), has("level", "warn")]),
        ),
        ("status not in (500, 501)", not(either())),
        ("-i timeout", Filter::substring(b"timeout", true)),
        ("timeout -i", Filter::substring(b"timeout", true)),
    ]
}

fn said(filter: &Filter, written: Option<&str>, names: &[&str]) -> Vec<Hint> {
    hints(&HintRequest {
        filter,
        written,
        field: None,
        names: Some(names),
        values: &[],
        any_case: None,
        any_separator: None,
        before: None,
        behind: None,
    })
}

/// The question that is suggested, parsed.
fn suggestion(hints: &[Hint], of: &str) -> Filter {
    assert_eq!(hints.len(), 1, "{of}: {hints:?}");
    let query = hints[0].query.as_deref();
    let query = query.unwrap_or_else(|| panic!("{of}: {hints:?}"));
    assert!(hints[0].command.is_some(), "{of}");
    query::parse(query).unwrap_or_else(|error| panic!("{of}: {query}: {error}"))
}

#[test]
fn texts_of_other_languages_are_translated() {
    for (written, meant) in questions() {
        let hints = said(&text(written), None, &NAMES);
        assert_eq!(suggestion(&hints, written), meant, "{written}");
    }
}

/// Many of them are questions of this language, too, which find nothing.
#[test]
fn questions_of_other_languages_are_translated() {
    let mut count = 0;
    for (written, meant) in questions() {
        // The others are refused, with a hint of their own.
        let Ok(filter) = query::parse(written) else {
            continue;
        };
        let hints = said(&filter, Some(written), &NAMES);
        if filter == meant {
            assert_eq!(hints, [], "{written}");
            continue;
        }
        assert_eq!(suggestion(&hints, written), meant, "{written}");
        count += 1;
    }
    assert!(count >= 40, "{count}");
}

#[test]
fn questions_of_this_language_are_left_alone() {
    for written in [
        "level=error",
        "level:error",
        "status>=500 timeout",
        "timeout  of the database  level=error",
        "status=500 not found",
        "user not found status=404",
        "/a or b/ level=error",
        "level=error /a || b/i",
        "i\"a or b\" level=error",
        "\"or\" level=error",
        "\"a or b\" level=error",
        "level=error \"it's and that's\"",
        "NOT (status=500 OR status=501)",
        "user=\"x or y\" status=500",
        "msg:\"a and b\" status=500",
        "path~/a b or c/ status=500",
        "status=500 AND user=ann OR user=bob",
        "http://x/y?a=b&&c=d status=500",
        "http://x/y status=500",
        "error: disk full status=500",
        "f(a, b) status=500",
        "user 'ann' failed status=500",
    ] {
        let filter = query::parse(written).unwrap_or_else(|error| panic!("{written}: {error}"));
        let hints = said(&filter, Some(written), &NAMES);
        let is_expected = hints
            .iter()
            .all(|hint| hint.message.contains("was searched for as text"));
        assert!(is_expected, "{written}: {hints:?}");
        let canonical = filter.to_string();
        assert!(
            foreign_reading(&filter, &canonical).is_none(),
            "{canonical}"
        );
    }
}

#[test]
fn sentences_are_left_alone() {
    for written in [
        "the value is not (yet) there",
        "user 'ann' not found",
        "cd ~/x",
        "a => b",
        "is it this or that or something else",
        "error: disk full",
        "failed in production",
        "value is null",
        "looks like rain",
        "or",
        "in (a)",
        "and so on",
        "select(2)",
        "|| &&",
        "&&",
        "( or )",
        "level in ()",
        "level in (",
        "'",
        "!",
        "é=ü or",
    ] {
        let hints = said(&text(written), None, &NAMES);
        assert_eq!(hints, [], "{written}");
    }
}

/// A question that cannot be told is not told by pieces of it.
#[test]
fn other_statements_are_taken_whole() {
    for (written, command) in [
        (
            "SELECT * FROM logs WHERE status=500",
            "logpond sql 'SELECT * FROM logs WHERE status=500'",
        ),
        (
            "sum by (app) (rate({app=\"x\"} | status=500 [5m]))",
            "logpond saved run 'sum by (app) (rate({app=\"x\"} | status=500 [5m]))'",
        ),
    ] {
        let filter = query::parse(written).unwrap();
        let hints = said(&filter, Some(written), &NAMES);
        assert_eq!(hints.len(), 1, "{hints:?}");
        assert_eq!(
            (hints[0].command.as_deref(), &hints[0].query),
            (Some(command), &None)
        );
    }
}

#[test]
fn unknown_names_of_other_languages_are_mended() {
    let written = "statsu=500 or status=501";
    let filter = query::parse(written).unwrap();
    let hints = said(&filter, Some(written), &NAMES);
    assert_eq!(hints[0].query.as_deref(), Some("status=500 OR status=501"));
    assert_eq!(
        hints[0].message,
        "'statsu=500 or status=501' means statsu=500 AND \"or\" AND status=501 here; it looks like \
         conditions of the query language; no record of the range has a field 'statsu'; the nearest \
         is 'status'"
    );
}

#[test]
fn suggestions_are_written_shortly() {
    for (written, query, command) in [
        (
            "status=500 or status=501",
            "status=500 OR status=501",
            "logpond query --where 'status=500 OR status=501'",
        ),
        (
            "level in (error, warn)",
            "level=error OR level=warn",
            "logpond query --where 'level=error OR level=warn'",
        ),
        (
            "status=500 && user=ann",
            "status=500 AND user=ann",
            "logpond query -f status=500 -f user=ann",
        ),
        (
            "\"pay\" or \"other\"",
            "\"pay\" OR \"other\"",
            "logpond query -e 'pay|other'",
        ),
    ] {
        let filter = query::parse(written).unwrap();
        for hints in [
            said(&text(written), None, &NAMES),
            said(&filter, Some(written), &NAMES),
        ] {
            assert_eq!(hints[0].query.as_deref(), Some(query), "{written}");
            assert_eq!(hints[0].command.as_deref(), Some(command), "{written}");
        }
    }
}

proptest! {
    #[test]
    fn no_suggestion_looks_for_an_operator(
        written in "(a|b=1|level|or|and|not|in|like|is|null|between|where|select[(]|[|]|&&|[|][|]|!|-|[(]|[)]|[\\[]|[\\]]|\"|'|`|/|:|=|>=|,|[*]|ü|  | ){0,14}",
    ) {
        let filter = query::parse(&written).unwrap_or(text(&written));
        for hints in [said(&text(&written), None, &NAMES), said(&filter, Some(&written), &NAMES)] {
            for query in hints.iter().filter_map(|hint| hint.query.as_deref()) {
                let meant = query::parse(query).unwrap();
                prop_assert!(!has_stray_joint(&meant), "{written}: {query}");
            }
        }
    }
}
