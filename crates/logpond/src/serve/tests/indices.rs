//! Indices and documents of Elasticsearch's interface, as its clients ask for them beside searches.

use serde_json::{Value, json};

use super::searches::{ask, filled, in_both_states, post, store};

#[test]
fn indices_are_listed() {
    let server = filled();
    let table = ask(
        &server,
        "GET",
        "/_cat/indices?h=index,docs.count&v",
        &Value::Null,
    );
    assert_eq!(
        String::from_utf8_lossy(&table.body),
        "index docs.count\nlogpond 0\nlogs-a 10\nlogs-b 1\n"
    );
    let json = ask(
        &server,
        "GET",
        "/_cat/indices/logs-b?format=json",
        &Value::Null,
    )
    .json();
    assert_eq!(
        (&json[0]["index"], &json[0]["docs.count"]),
        (&json!("logs-b"), &json!("1"))
    );
    let resolved = ask(&server, "GET", "/_resolve/index/logs-*", &Value::Null).json();
    assert_eq!(resolved["indices"][1]["name"], "logs-b");
}

#[test]
fn indices_are_described_and_counted() {
    let server = filled();
    let get = |path: &str| ask(&server, "GET", path, &Value::Null);
    let index = get("/logs-a").json();
    let properties = &index["logs-a"]["mappings"]["properties"];
    assert_eq!(properties["status"]["type"], "long", "{index}");
    assert_eq!(index.as_object().unwrap().len(), 1);
    let all = get("/elasticsearch/logs-*").json();
    assert_eq!(all.as_object().unwrap().len(), 2);
    let said = "there is nothing at /nowhere, and no record is of an index [nowhere]";
    for (path, member) in [
        ("/nowhere", "message"),
        ("/elasticsearch/nowhere", "reason"),
    ] {
        let nowhere = get(path);
        assert_eq!(nowhere.status, 404);
        assert_eq!(nowhere.json()["error"][member], said);
    }
    let stats = get("/logs-*/_stats").json();
    let count = |of: &Value| of["primaries"]["docs"]["count"].clone();
    assert_eq!(count(&stats["_all"]), 11);
    assert_eq!(count(&stats["indices"]["logs-b"]), 1);
    let counted = get("/_cat/count?format=json").json();
    assert_eq!(counted[0]["count"], "11");
    let line = get("/_cat/count/logs-a?h=count&v");
    assert_eq!(String::from_utf8_lossy(&line.body), "count\n10\n");
}

#[test]
fn several_documents_are_given_at_once() {
    let server = filled();
    store(&server, "logs-c", &[json!({"message": "one"})]);
    let found = post(&server, "/logs-*/_search", &json!({"size": 2}));
    let ids: Vec<Value> = (0..2)
        .map(|at| found["hits"]["hits"][at]["_id"].clone())
        .collect();
    let answer = post(&server, "/logs-*/_mget", &json!({"ids": [ids[1], "none"]}));
    let docs = &answer["docs"];
    assert_eq!(
        (&docs[0]["_id"], &docs[0]["found"]),
        (&ids[1], &json!(true))
    );
    assert_eq!(docs[0]["_source"], found["hits"]["hits"][1]["_source"]);
    assert_eq!(
        docs[1],
        json!({"_index": "logs-*", "_id": "none", "found": false})
    );
    let wanted = json!({"docs": [{"_index": "*", "_id": ids[0], "_source": ["status"]}]});
    let docs = &post(&server, "/_mget", &wanted)["docs"];
    let names: Vec<&String> = docs[0]["_source"].as_object().unwrap().keys().collect();
    assert!(names.iter().all(|name| *name == "status"), "{docs}");
    let many: Vec<String> = (0..1001).map(|n| n.to_string()).collect();
    for wrong in [json!({}), json!({"docs": [{}]}), json!({"ids": many})] {
        assert_eq!(
            ask(&server, "POST", "/_mget", &wrong).status,
            400,
            "{wrong}"
        );
    }
}

#[test]
fn queries_are_validated() {
    let server = filled();
    let right = json!({"query": {"term": {"status": 500}}});
    let answer = post(&server, "/logs-a/_validate/query?explain=true", &right);
    assert_eq!(answer["valid"], true);
    assert_eq!(answer["explanations"][0]["explanation"], "status=500");
    let wrong = json!({"query": {"nested": {}}});
    let answer = post(&server, "/_validate/query?explain=true", &wrong);
    assert_eq!(answer["valid"], false);
    let error = answer["explanations"][0]["error"].as_str().unwrap();
    assert!(error.contains("[nested] is not supported"), "{error}");
}

#[test]
fn objects_are_there_if_a_member_is() {
    let server = filled();
    in_both_states(&server, || {
        for (query, expected) in [
            (json!({"exists": {"field": "host"}}), 10),
            (json!({"exists": {"field": "host.*"}}), 10),
            (
                json!({"query_string": {"query": "_exists_:host AND status:500"}}),
                1,
            ),
            (
                json!({"bool": {"must_not": {"exists": {"field": "host"}}}}),
                1,
            ),
            (json!({"exists": {"field": "hos"}}), 0),
        ] {
            let asked = json!({"query": query});
            assert_eq!(
                post(&server, "/_count", &asked)["count"],
                expected,
                "{query}"
            );
            let found = post(&server, "/_search", &asked);
            assert_eq!(found["hits"]["total"]["value"], expected, "{query}");
        }
    });
}

#[test]
fn equal_numbers_and_truth_values_are_one_bucket() {
    let server = filled();
    let document = |n: &str, is_new: bool| {
        let text = format!(r#"{{"n": {n}, "is_new": {is_new}}}"#);
        serde_json::from_str::<Value>(&text).unwrap()
    };
    let documents = [
        document("1", true),
        document("1.0", false),
        document("2.5", true),
    ];
    store(&server, "numbers", &documents);
    let terms = |field: &str| json!({"terms": {"field": field, "order": {"_key": "asc"}}});
    let asked = json!({"size": 0, "aggs": {"n": terms("n"), "is_new": terms("is_new")}});
    in_both_states(&server, || {
        let found = post(&server, "/numbers/_search", &asked);
        let buckets = |name: &str| found["aggregations"][name]["buckets"].clone();
        let expected = json!([{"key": 1.0, "doc_count": 2}, {"key": 2.5, "doc_count": 1}]);
        assert_eq!(buckets("n"), expected);
        let expected = json!([
            {"key": 0, "key_as_string": "false", "doc_count": 1},
            {"key": 1, "key_as_string": "true", "doc_count": 2},
        ]);
        assert_eq!(buckets("is_new"), expected);
    });
}

#[test]
fn days_are_times_of_documents() {
    let server = filled();
    store(
        &server,
        "days",
        &[json!({"@timestamp": "2026-11-20", "message": "a day"})],
    );
    let asked = json!({"query": {"range": {"@timestamp": {"lt": "2026-11-21"}}}});
    assert_eq!(post(&server, "/days/_count", &asked)["count"], 1);
}
