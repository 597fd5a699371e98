//! Saved queries: what can be saved, how catalogs become one, and what is on disk.

use std::fs;
use std::sync::Arc;

use logpond_record::Timestamp;
use proptest::prelude::*;
use serde_json::json;

use super::text::{parse, render};
use super::*;
use logpond_host::disk::RealDisk;

const SECOND: i64 = 1_000_000_000;

fn at(seconds: i64) -> Timestamp {
    Timestamp(seconds * SECOND)
}

fn query(text: &str) -> SavedQuery {
    SavedQuery {
        query: text.to_owned(),
        ..SavedQuery::default()
    }
}

fn open(directory: &tempfile::TempDir) -> Result<SavedQueries, SavedError> {
    let disk = RealDisk::create(directory.path()).unwrap();
    SavedQueries::open(Arc::new(disk), at(0))
}

#[test]
fn the_built_in_queries_can_be_saved() {
    let mut names = Vec::new();
    for (name, query) in built_in() {
        query.check(name).unwrap();
        names.push(name);
    }
    assert!(names.is_sorted() && names.len() == 3, "{names:?}");
}

#[test]
fn what_cannot_be_asked_cannot_be_saved() {
    let table = [
        (json!({}), "'query' should be LogQL"),
        (json!({ "query": "{app=" }), "line 1"),
        (json!({ "query": "{app=\"$app\"}" }), "$app"),
        (json!({ "query": "{}", "colour": "red" }), "not 'colour'"),
        (json!({ "query": 5 }), "not 'query'"),
        (
            json!({ "query": "{}", "format": "pie" }),
            "time_series or table",
        ),
        (
            json!({ "query": "{}", "variables": { "1a": "" } }),
            "begin with no digit",
        ),
        (
            json!({ "query": "{}", "variables": { "__a": "" } }),
            "begin with no digit",
        ),
        (
            json!({ "query": "{}", "variables": { "a": 1 } }),
            "defaults as texts",
        ),
        (
            json!({ "query": "{}", "legend": "x".repeat(2000) }),
            "at most 1024 bytes",
        ),
        (json!("{}"), "JSON object"),
        (
            json!({ "query": "{}", "language": "kql" }),
            "logql, native or sql",
        ),
        (
            json!({ "query": "status=500 AND", "language": "native" }),
            "'query' should be a query",
        ),
        (
            json!({ "query": "select 1", "language": "sql", "variables": { "a": "" } }),
            "only LogQL has variables",
        ),
        (
            json!({ "query": "{}", "view": "x".repeat(5000) }),
            "at most 4096 bytes",
        ),
    ];
    for (body, part) in table {
        let checked = SavedQuery::from_json(&body).and_then(|query| query.check("x"));
        let error = checked.unwrap_err().to_string();
        assert!(error.contains(part), "{body}: {error}");
    }
    for name in ["", ".", "..", "a b", "a/b", "ä", &"x".repeat(65)] {
        let error = query("{}").check(name).unwrap_err();
        assert!(matches!(error, SavedError::Name(_)), "{name}");
    }
    let whole = json!({
        "query": "sum by (app) (count_over_time({app=~\"$app\"}[$__interval]))",
        "description": null, "legend": "{{app}}", "format": "table", "variables": { "app": ".+" },
    });
    let saved = SavedQuery::from_json(&whole).unwrap();
    saved.check("errors").unwrap();
    assert_eq!(saved.to_json("errors")["format"], "table");
}

#[test]
fn queries_of_other_languages_are_kept_with_their_views() {
    let mut catalog = Catalog::default();
    for (name, query) in [
        (
            "paid",
            json!({ "query": "status=200 AND \"paid\"", "language": "native" }),
        ),
        (
            "top",
            json!({ "query": "select 1", "language": "sql", "view": "?from=1h&cols=app" }),
        ),
    ] {
        let query = SavedQuery::from_json(&query).unwrap();
        query.check(name).unwrap();
        let entry = Entry {
            changed: at(5),
            query: Some(query),
        };
        assert!(catalog.insert(name.to_owned(), entry));
    }
    let text = render(&catalog);
    assert!(text.contains("language = \"sql\"\nview = \"?from=1h&cols=app\""));
    assert_eq!(render(&parse(&text, at(0)).unwrap()), text);
    let read = parse(&text, at(0)).unwrap();
    let (_, paid) = read.entries().next().unwrap();
    assert_eq!(paid.query.as_ref().unwrap().language, Language::Native);
}

#[test]
fn the_file_has_its_form() {
    let golden = include_str!("../../../../testdata/queries/queries.toml");
    let catalog = parse(golden, at(0)).unwrap();
    assert_eq!(render(&catalog), golden);
    let (name, errors) = catalog.entries().next().unwrap();
    assert_eq!(
        (name, errors.changed.unix_ms()),
        ("errors", 1_795_316_400_125)
    );
    assert_eq!(errors.query.as_ref().unwrap().variables["app"], ".+");
    assert_eq!((catalog.count(), catalog.entries().count()), (2, 3));
    let table = [
        (
            "[[query]]\nname = 'a'\nquery = '{}'\ncolour = 'red'",
            "line 1: 'colour'",
        ),
        ("[[removed]]\nname = 'a'\nquery = '{}'", "line 1: 'query'"),
        ("x = 1", "line 1: expected [[query]]"),
        (
            "[[query]]\nname = 'a'\nquery = '{}'\n[[removed]]\nname = 'a'",
            "line 4: there are two",
        ),
        (
            "[[query]]\nname = 'a'\nquery = '{}'\nchanged = 'now'",
            "line 1: 'changed'",
        ),
        ("\n[[query", "line 2"),
    ];
    for (text, part) in table {
        let error = parse(text, at(0)).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn the_number_of_queries_is_bounded() {
    let mut catalog = Catalog::default();
    for number in 0..QUERIES_MAX {
        catalog
            .set(&format!("q{number}"), query("{}"), at(1))
            .unwrap();
    }
    let full = catalog.set("more", query("{}"), at(1)).unwrap_err();
    assert!(matches!(full, SavedError::TooMany), "{full}");
    // Another text for one that is there is no further one.
    catalog.set("q0", query("{} | json"), at(1)).unwrap();
    // Removals are kept, but not all.
    for number in 0..QUERIES_MAX {
        catalog
            .remove(&format!("q{number}"), at(2 + number as i64))
            .unwrap();
        catalog.set("other", query("{}"), at(0)).unwrap();
        catalog.remove("other", at(0)).unwrap();
    }
    assert_eq!(catalog.entries().count(), 1000);
}

#[test]
fn the_file_survives_and_others_may_edit_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(PATH);
    let saved = open(&directory).unwrap();
    assert!(saved.get("top-articles").is_some() && saved.all().len() == 3);
    let mut mine = query("{app=\"$app\"} |= `a\"b`\n| json # \u{7f} ä");
    mine.variables
        .insert("app".to_owned(), "a\\b\"c".to_owned());
    saved.set("mine", mine.clone(), at(10)).unwrap();
    saved.set("top-articles", query("{}"), at(10)).unwrap();
    assert!(saved.remove("nobody", at(11)).is_err());
    let refused = saved.remove("outbound-bytes", at(11)).unwrap_err();
    assert!(matches!(refused, SavedError::BuiltIn(_)), "{refused}");
    let again = open(&directory).unwrap();
    assert_eq!(again.get("mine"), Some(mine.clone()));
    assert_eq!(again.digest(), saved.digest());

    // By hand: one more, another one gone.
    let text = fs::read_to_string(&path).unwrap();
    let (head, rest) = text.split_once("[[query]]").unwrap();
    let (first, _) = rest.split_once("[[query]]").unwrap();
    let edited = format!("{head}[[query]]{first}[[query]]\nname = 'new'\nquery = '{{}}'\n");
    fs::write(&path, edited).unwrap();
    assert!(saved.look(at(20)).unwrap());
    assert!(!saved.look(at(21)).unwrap());
    assert_eq!(saved.get("mine"), Some(mine));
    assert_eq!(saved.get("new"), Some(query("{}")));
    let shown = saved.get("top-articles").unwrap();
    assert_ne!(shown.query, "{}", "what every server has is there again");
    let changed = |name: &str| {
        let catalog = saved.catalog();
        let found = catalog.entries().find(|(entry, _)| *entry == name);
        found.unwrap().1.changed
    };
    assert_eq!((changed("new"), changed("top-articles")), (at(20), at(20)));
    assert_eq!(changed("mine"), at(10));

    // What is no catalog changes nothing, and is not overwritten.
    fs::write(&path, "[[query]]\nname = 'x'\n").unwrap();
    let error = saved.look(at(30)).unwrap_err().to_string();
    assert!(
        error.contains("queries.toml") && error.contains("line 1"),
        "{error}"
    );
    assert!(saved.set("y", query("{}"), at(31)).is_err());
    assert!(saved.get("new").is_some() && open(&directory).is_err());
    // A server starts all the same, and finds the queries once the file is right.
    let disk = Arc::new(RealDisk::open(directory.path()).unwrap());
    let (started, wrong) = SavedQueries::open_at_start(disk, at(32)).unwrap();
    assert!(wrong.unwrap().to_string().contains("line 1"));
    assert!(started.set("y", query("{}"), at(33)).is_err());
    let damaged = fs::read(&path).unwrap();
    fs::write(&path, saved.to_text()).unwrap();
    assert!(started.look(at(34)).unwrap());
    assert!(started.get("new").is_some());
    fs::write(&path, damaged).unwrap();
    // A file that is gone is written anew.
    fs::remove_file(&path).unwrap();
    assert!(!saved.look(at(40)).unwrap());
    saved.set("y", query("{}"), at(41)).unwrap();
    assert_eq!(open(&directory).unwrap().digest(), saved.digest());
}

#[test]
fn a_later_change_counts_whatever_the_clock_says() {
    let mut catalog = Catalog::default();
    catalog.set("a", query("{}"), at(100)).unwrap();
    // This clock is behind, but the change was made later.
    catalog.set("a", query("{} | json"), at(50)).unwrap();
    catalog.remove("a", at(50)).unwrap();
    let (_, entry) = catalog.entries().next().unwrap();
    assert_eq!(entry.changed, Timestamp(at(100).0 + 2_000_000));
    let mut other = Catalog::default();
    other.set("a", query("{}"), at(100)).unwrap();
    assert!(other.merge(&catalog).unwrap());
    assert_eq!(other, catalog);
    assert!(!other.merge(&catalog).unwrap());
}

/// A change: of which name, when, and to what.
fn changes() -> impl Strategy<Value = Vec<(u8, i64, Option<u8>)>> {
    prop::collection::vec((0u8..4, 0i64..6, prop::option::of(0u8..3)), 0..12)
}

fn catalog(changes: &[(u8, i64, Option<u8>)]) -> Catalog {
    let mut catalog = Catalog::default();
    for (name, time, text) in changes {
        let name = format!("q{name}");
        let change = match text {
            Some(text) => catalog.set(&name, query(&format!("{{a=\"{text}\"}}")), at(*time)),
            None => catalog.remove(&name, at(*time)),
        };
        // There may be nothing to remove.
        let _ = change;
    }
    catalog
}

fn merged(a: &Catalog, b: &Catalog) -> Catalog {
    let mut merged = a.clone();
    merged.merge(b).unwrap();
    merged
}

proptest! {
    #[test]
    fn catalogs_become_one_in_any_order(a in changes(), b in changes(), c in changes()) {
        let (a, b, c) = (catalog(&a), catalog(&b), catalog(&c));
        prop_assert_eq!(merged(&a, &b), merged(&b, &a));
        prop_assert_eq!(merged(&merged(&a, &b), &c), merged(&a, &merged(&b, &c)));
        prop_assert_eq!(merged(&a, &a), a.clone());
        let both = merged(&a, &b);
        prop_assert_eq!(merged(&both, &a), both.clone());
        prop_assert_eq!(parse(&render(&both), at(9)).unwrap(), both);
    }

    #[test]
    fn any_text_is_kept_as_it_is(description in any::<String>(), value in any::<String>()) {
        let mut mine = query("{}");
        mine.description = description.chars().take(500).collect();
        mine.variables.insert("v".to_owned(), value.chars().take(500).collect());
        let mut catalog = Catalog::default();
        catalog.set("a", mine, at(1)).unwrap();
        prop_assert_eq!(parse(&render(&catalog), at(9)).unwrap(), catalog);
    }
}
