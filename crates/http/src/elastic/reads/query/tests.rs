use logpond_search::elements;
use serde_json::json;

use super::super::dates::tests_now as now;
use super::super::lists;
use super::*;

fn context() -> Context {
    Context { now: now() }
}

fn queries_first() -> Vec<(Json, &'static str)> {
    vec![
        (json!({"match_all": {}}), "*"),
        (json!({"match_none": {}}), "NOT *"),
        (json!({"term": {"status": 500}}), "status=500"),
        (
            json!({"term": {"status": {"value": "500", "boost": 2}}}),
            "status=500",
        ),
        (
            json!({"term": {"host.name.keyword": "w 1"}}),
            r#"host.name="w 1""#,
        ),
        (
            json!({"term": {"host": {"value": "W.1", "case_insensitive": true}}}),
            r"host~/^(?s:W\\.1)$/i",
        ),
        (
            json!({"terms": {"status": [500, "502"]}}),
            "status=500 OR status=502",
        ),
        (json!({"terms": {"status": []}}), "NOT *"),
        (json!({"match": {"host": "w1 w2"}}), r#"host="w1 w2""#),
        (
            json!({"match": {"message": "Pool full"}}),
            r"_msg~/\\bPool\\b/i OR _msg~/\\bfull\\b/i",
        ),
        (
            json!({"match": {"message": {"query": "pool full", "operator": "and"}}}),
            r"_msg~/\\bpool\\b/i _msg~/\\bfull\\b/i",
        ),
        (
            json!({"match": {"message": "10.0.0.1"}}),
            r"_msg~/\\b10\\W+0\\W+0\\W+1\\b/i",
        ),
        (json!({"match": {"message": "--"}}), "NOT *"),
        (
            json!({"match": {"message": "/api/v1.2, don't"}}),
            r"_msg~/\\bapi\\b/i OR _msg~/\\bv1\\W+2\\b/i OR _msg~/\\bdon\\W+t\\b/i",
        ),
        (
            json!({"query_string": {"query": "level:(a", "escape": true, "default_field": "message"}}),
            r"_msg~/\\blevel\\W+a\\b/i",
        ),
        (
            json!({"match_phrase": {"message": "pool is full"}}),
            r"_msg~/\\bpool\\W+is\\W+full\\b/i",
        ),
        (
            json!({"match_phrase_prefix": {"message": "pool fu"}}),
            r"_msg~/\\bpool\\W+fu/i",
        ),
        (
            json!({"multi_match": {"query": "w1", "fields": ["host^2", "node"]}}),
            "host=w1 OR node=w1",
        ),
        (
            json!({"multi_match": {"query": "full", "fields": ["*"]}}),
            r"/\\bfull\\b/i",
        ),
        (json!({"exists": {"field": "user"}}), "user:*"),
        (json!({"exists": {"field": "@timestamp"}}), "*"),
        (json!({"prefix": {"message": "conn"}}), r"_msg~/\\bconn/i"),
        (json!({"wildcard": {"message": "*fus*"}}), r"_msg~/fus/i"),
    ]
}

fn queries_second() -> Vec<(Json, &'static str)> {
    vec![
        (
            json!({"wildcard": {"message": "conn*"}}),
            r"_msg~/\\bconn/i",
        ),
        (
            json!({"regexp": {"host": "w[0-9]+"}}),
            r"host~/^(?s:w[0-9]+)$/",
        ),
        (
            json!({"regexp": {"host": {"value": "a^b", "flags": "ALL"}}}),
            r"host~/^(?s:a\\^b)$/",
        ),
        (
            json!({"range": {"status": {"gte": 400, "lt": 500}}}),
            "status>=400 status<500",
        ),
        (
            json!({"range": {"@timestamp": {"gte": 1000, "lte": 2000, "format": "epoch_millis"}}}),
            "_time>=1970-01-01T00:00:01.000000000Z _time<1970-01-01T00:00:02.001000000Z",
        ),
        (
            json!({"range": {"@timestamp": {"gt": "2026-11-21", "time_zone": "+01:00"}}}),
            "_time>=2026-11-21T23:00:00.000000000Z",
        ),
        (
            json!({"range": {"@timestamp": {"gte": "now-1h", "to": null}}}),
            "_time>=2026-11-21T09:30:15.250000000Z",
        ),
        (json!({"ids": {"values": ["a"]}}), "_document_id=a"),
        (
            json!({"ids": {"values": ["01M80EWMK404HVRCR54AQ55Q0V"]}}),
            "_id=01M80EWMK404HVRCR54AQ55Q0V OR _document_id=01M80EWMK404HVRCR54AQ55Q0V",
        ),
        (
            json!({"constant_score": {"filter": {"term": {"a": "b"}}}}),
            "a=b",
        ),
        (
            json!({"dis_max": {"queries": [{"term": {"a": "b"}}, {"term": {"c": "d"}}]}}),
            "a=b OR c=d",
        ),
    ]
}

fn queries_third() -> Vec<(Json, &'static str)> {
    vec![
        (json!({"bool": {}}), "*"),
        (
            json!({"bool": {"should": [{"term": {"a": "b"}}, {"term": {"c": "d"}}], "minimum_should_match": "30%"}}),
            "a=b OR c=d",
        ),
        (
            json!({"range": {"@timestamp": {"lte": 1, "format": "epoch_second"}}}),
            "_time<1970-01-01T00:00:02.000000000Z",
        ),
        (
            json!({"range": {"@timestamp": {"lte": "2026-11-21||-1d"}}}),
            "_time<2026-11-20T00:00:00.001000000Z",
        ),
        (
            json!({"range": {"@timestamp": {"gt": "2026-11"}}}),
            "_time>=2026-11-02T00:00:00.000000000Z",
        ),
        (
            json!({"bool": {"must": {"term": {"a": "b"}}, "should": [{"term": {"c": "d"}}]}}),
            "a=b",
        ),
        (
            json!({"bool": {"filter": [{"term": {"a": "b"}}], "should": [{"term": {"c": "d"}}, {"term": {"e": "f"}}], "minimum_should_match": 1}}),
            "a=b (c=d OR e=f)",
        ),
        (
            json!({"bool": {"should": [{"term": {"c": "d"}}, {"term": {"e": "f"}}], "must_not": [{"term": {"a": "b"}}]}}),
            "(c=d OR e=f) a!=b",
        ),
        (
            json!({"bool": {"should": [{"term": {"a": 1}}, {"term": {"b": 1}}, {"term": {"c": 1}}], "minimum_should_match": 2}}),
            "(a=1 b=1) OR (a=1 c=1) OR (b=1 c=1)",
        ),
        (
            json!({"bool": {"should": [{"term": {"a": 1}}], "minimum_should_match": 2}}),
            "NOT *",
        ),
    ]
}

/// Each query of the DSL with the filter that it means.
#[test]
fn queries_are_filters() {
    let table = [queries_first(), queries_second(), queries_third()].concat();
    for (query, expected) in table {
        let found = translate(&query, &context()).unwrap();
        // Backslashes of the table are doubled only where the raw text has two.
        let expected = expected.replace(r"\\", r"\");
        let expected = logpond_search::query::parse(&expected).unwrap();
        assert_eq!(found.to_string(), expected.to_string(), "{query}");
    }
}

/// Patterns of a value are those of an element of a list, too.
#[test]
fn patterns_are_of_values_and_of_elements() {
    let table = [
        (
            json!({"prefix": {"host": "w."}}),
            r"^(?s:w\..*)$",
            r#""w\.TEXT""#,
        ),
        (
            json!({"wildcard": {"host": {"value": "w*\"?"}}}),
            r#"^(?s:w.*".)$"#,
            r#""wTEXT(?:\\"|\\u(?i:0022))CHARACTER""#,
        ),
        (
            json!({"query_string": {"query": "host:w*"}}),
            "^(?s:w.*)$",
            r#""wTEXT""#,
        ),
    ];
    for (query, value, element) in table {
        let found = translate(&query, &context()).unwrap();
        let test = |source| FieldTest::Contains(Pattern::regex(source, false));
        let element = element.replace("TEXT", lists::ANY_TEXT);
        let element = element.replace("CHARACTER", lists::ANY_CHARACTER);
        let element = elements::list_with(&element);
        let each = [value, &*element].map(|source| Filter::field("host", test(source)));
        assert_eq!(found, Filter::or(each), "{query}");
    }
}

fn lucene(text: &str, operator: &str) -> Filter {
    let clause = json!({"query": text, "default_operator": operator});
    translate(&json!({"query_string": clause}), &context()).unwrap()
}

/// Each text of Lucene with the filter that it means.
#[test]
fn texts_of_lucene_are_filters() {
    let table = [
        ("*", "*"),
        ("*:*", "*"),
        ("", "NOT *"),
        ("status:500", "status=500"),
        ("status:(500 OR 502)", "status=500 OR status=502"),
        ("status:500 AND host:w1", "status=500 host=w1"),
        ("status:500 && NOT host:w1", "status=500 host!=w1"),
        ("a:1 b:2", "a=1 OR b=2"),
        ("a:1 OR b:2 AND c:3", "b=2 c=3"),
        ("+a:1 b:2 -c:3", "a=1 c!=3"),
        ("!a:1", "a!=1"),
        ("NOT (a:1 OR b:2)", "NOT (a=1 OR b=2)"),
        ("error", r"/\berror\b/i"),
        ("\"pool full\"", r"/\bpool\W+full\b/i"),
        ("message:\"pool full\"", r"_msg~/\bpool\W+full\b/i"),
        ("conn*", r"/\bconn/i"),
        ("host:*", "host:*"),
        ("_exists_:user", "user:*"),
        ("status:[400 TO 499]", "status>=400 status<=499"),
        ("status:{400 TO 500}", "status>400 status<500"),
        ("status:[400 TO *}", "status>=400"),
        ("status:>=400", "status>=400"),
        ("status:<400", "status<400"),
        (
            "@timestamp:[2026-11-21 TO 2026-11-21]",
            "_time>=2026-11-21T00:00:00.000000000Z _time<2026-11-22T00:00:00.000000000Z",
        ),
        (r"path:\/a\:b", "path=/a:b"),
        ("host:/w[0-9]/", r"host~/^(?s:w[0-9])$/"),
        ("level:error^2", r#""level"=error"#),
        ("delta:-5", "delta=-5"),
        (r#"path:"/a b""#, r#"path="/a b""#),
    ];
    for (text, expected) in table {
        let found = lucene(text, "or");
        let expected = logpond_search::query::parse(expected).unwrap();
        assert_eq!(found.to_string(), expected.to_string(), "{text}");
    }
    let and = lucene("a:1 b:2", "AND");
    assert_eq!(and.to_string(), "a=1 AND b=2");
}

#[test]
fn simple_texts_are_filters() {
    let table = [
        ("error", r"/\berror\b/i"),
        ("a | b", r"/\ba\b/i OR /\bb\b/i"),
        ("a + b", r"/\ba\b/i /\bb\b/i"),
        ("a +(b | c)", r"/\ba\b/i (/\bb\b/i OR /\bc\b/i)"),
        ("a + -b", r"/\ba\b/i NOT /\bb\b/i"),
        ("\"a b\"", r"/\ba\W+b\b/i"),
        ("con*", r"/\bcon/i"),
        ("\"open", r"/\bopen\b/i"),
        ("((", "NOT *"),
    ];
    for (text, expected) in table {
        let found =
            translate(&json!({"simple_query_string": {"query": text}}), &context()).unwrap();
        let expected = logpond_search::query::parse(expected).unwrap();
        assert_eq!(found.to_string(), expected.to_string(), "{text}");
    }
}

/// Clauses that are not supported are refused, with those to use instead.
#[test]
fn clauses_that_are_not_supported_are_refused() {
    let table = [
        (json!({"nested": {}}), "nested"),
        (json!({"geo_shape": {}}), "unknown query [geo_shape]"),
        (json!({}), "empty"),
        (json!({"term": {"a": 1}, "match_all": {}}), "has one member"),
        (json!({"term": {"a": {"value": 1, "x": 2}}}), "[x]"),
        (json!({"term": {"a": [1]}}), "a list"),
        (
            json!({"match": {"message": {"query": "a", "fuzziness": "AUTO"}}}),
            "fuzziness",
        ),
        (
            json!({"match": {"message": {"query": "a", "analyzer": "english"}}}),
            "analyzer",
        ),
        (
            json!({"range": {"host": {"gte": "a"}}}),
            "compares numbers and dates",
        ),
        (
            json!({"range": {"@timestamp": {"gte": "x"}}}),
            "failed to parse date",
        ),
        (json!({"regexp": {"host": "a~b"}}), "operator ~"),
        (json!({"query_string": {"query": "a~2"}}), "[~]"),
        (json!({"query_string": {"query": "(a"}}), "not closed"),
        (json!({"query_string": {"query": "a)"}}), "no [(]"),
        (
            json!({"query_string": {"query": "a AND"}}),
            "nothing behind",
        ),
        (json!({"query_string": {"query": "a:[1 2]"}}), "a range is"),
        (
            json!({"query_string": {"query": "[1 TO 2]"}}),
            "needs a field",
        ),
        (
            json!({"query_string": {"query": "x", "fields": ["host.*"]}}),
            "wildcards",
        ),
        (json!({"terms": {"a": {"index": "b"}}}), "lookup"),
        (json!({"bool": {"filter": [], "x": 1}}), "[x]"),
        (
            json!({"bool": {"should": vec![json!({"term": {"a": 1}}); 20], "minimum_should_match": 10}}),
            "combinations",
        ),
    ];
    for (query, part) in table {
        let error = translate(&query, &context()).unwrap_err();
        assert!(error.message.contains(part), "{query}: {}", error.message);
    }
}
