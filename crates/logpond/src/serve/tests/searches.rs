//! The reading side of Elasticsearch's interface, as its clients ask.

use serde_json::{Value, json};

use super::TestServer;
use super::client::{Answer, compact, request};

const JSON: (&str, &str) = ("Content-Type", "application/json");

/// 2026-11-21T10:00:00Z in milliseconds.
const START_MS: i64 = 1_795_255_200_000;

pub(super) fn ask(server: &TestServer, method: &str, path: &str, body: &Value) -> Answer {
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    request(server.http(), method, path, &[JSON], body.as_bytes())
}

pub(super) fn post(server: &TestServer, path: &str, body: &Value) -> Value {
    let answer = ask(server, "POST", path, body);
    assert_eq!(answer.status, 200, "{path} {body}: {}", answer.json());
    answer.json()
}

/// Stores documents in an index.
pub(super) fn store(server: &TestServer, index: &str, documents: &[Value]) {
    let mut body = String::new();
    for document in documents {
        body += &format!("{{\"create\":{{}}}}\n{document}\n");
    }
    let answer = request(
        server.http(),
        "POST",
        &format!("/{index}/_bulk"),
        &[("Content-Type", "application/x-ndjson")],
        body.as_bytes(),
    );
    assert_eq!(
        (answer.status, &answer.json()["errors"]),
        (200, &json!(false))
    );
}

fn iso(ms: i64) -> String {
    logpond_record::Timestamp(ms * 1_000_000).to_string()
}

/// Ten requests of two hosts, ten seconds apart.
fn requests() -> Vec<Value> {
    let one = |number: i64| {
        json!({
            "@timestamp": iso(START_MS + number * 10_000),
            "message": format!("request {number} took a while"),
            "host": { "name": if number % 3 == 0 { "b" } else { "a" } },
            "status": if number == 7 { 500 } else { 200 },
            "ms": number * 5,
        })
    };
    (0..10).map(one).collect()
}

pub(super) fn filled() -> TestServer {
    let server = TestServer::new();
    store(&server, "logs-a", &requests());
    store(
        &server,
        "logs-b",
        &[json!({"@timestamp": iso(START_MS), "message": "pool is full", "level": "error"})],
    );
    server
}

/// Before and after everything has gone into a segment.
pub(super) fn in_both_states(server: &TestServer, assert: impl Fn()) {
    assert();
    compact(server.http());
    assert();
}

fn hits(answer: &Value) -> &Vec<Value> {
    answer["hits"]["hits"].as_array().unwrap()
}

#[test]
fn searches_have_hits_with_their_sources() {
    let server = filled();
    in_both_states(&server, || {
        let query = json!({"query": {"bool": {"filter": [{"term": {"status": 500}}]}}});
        let found = post(&server, "/logs-a/_search", &query);
        assert_eq!(
            found["hits"]["total"],
            json!({"value": 1, "relation": "eq"})
        );
        assert_eq!(found["_shards"]["failed"], 0);
        let hit = &hits(&found)[0];
        assert_eq!(
            (&hit["_index"], &hit["_score"]),
            (&json!("logs-a"), &json!(1.0))
        );
        assert_eq!(hit["_source"]["message"], "request 7 took a while");
        assert_eq!(hit["_source"]["host"], json!({"name": "a"}));
        assert_eq!(hit["_source"]["@timestamp"], iso(START_MS + 70_000));
        let id = hit["_id"].as_str().unwrap();
        let one = ask(&server, "GET", &format!("/logs-a/_doc/{id}"), &Value::Null);
        assert_eq!((one.status, &one.json()["_source"]), (200, &hit["_source"]));
        let source = ask(
            &server,
            "GET",
            &format!("/logs-a/_source/{id}"),
            &Value::Null,
        );
        assert_eq!(source.json(), hit["_source"]);
        let none = ask(&server, "GET", "/logs-a/_doc/none", &Value::Null);
        assert_eq!((none.status, &none.json()["found"]), (404, &json!(false)));
        // Indices are fields, and all of them exist.
        for (path, total) in [
            ("/_search", 11),
            ("/logs-*/_search", 11),
            ("/logs-b,x/_search", 1),
            ("/x/_search", 0),
        ] {
            assert_eq!(
                post(&server, path, &json!({}))["hits"]["total"]["value"],
                total,
                "{path}"
            );
        }
        let count = post(
            &server,
            "/logs-*/_count",
            &json!({"query": {"match": {"message": "FULL"}}}),
        );
        assert_eq!(count["count"], 1);
        let text = ask(
            &server,
            "GET",
            "/_search?q=host.name:b%20AND%20ms:%3E20&size=1&_source_includes=ms",
            &Value::Null,
        );
        assert_eq!(text.json()["hits"]["total"]["value"], 2);
        assert_eq!(hits(&text.json())[0]["_source"], json!({"ms": 45}));
    });
}

#[test]
fn pages_follow_one_another_to_the_end() {
    let server = filled();
    let sort = json!([{"@timestamp": {"order": "asc"}}, {"_doc": {"order": "asc"}}]);
    in_both_states(&server, || {
        // By place.
        let (mut seen, mut after) = (Vec::new(), Value::Null);
        loop {
            let page = json!({"size": 3, "sort": sort, "search_after": after, "_source": false, "fields": ["ms"]});
            let page = post(&server, "/logs-a/_search", &page);
            let Some(last) = hits(&page).last() else {
                break;
            };
            assert_eq!(page["hits"]["total"]["value"], 10);
            after = last["sort"].clone();
            seen.extend(
                hits(&page)
                    .iter()
                    .map(|hit| hit["fields"]["ms"][0].as_i64().unwrap()),
            );
        }
        assert_eq!(seen, (0..10).map(|number| number * 5).collect::<Vec<_>>());
        // By a scroll.
        let mut page = post(
            &server,
            "/logs-a/_search?scroll=1m",
            &json!({"size": 4, "sort": ["_doc"]}),
        );
        let mut seen = 0;
        while !hits(&page).is_empty() {
            seen += hits(&page).len();
            let id = page["_scroll_id"].clone();
            page = post(
                &server,
                "/_search/scroll",
                &json!({"scroll": "1m", "scroll_id": id}),
            );
            assert_eq!(page["hits"]["total"]["value"], 10);
        }
        assert_eq!(seen, 10);
        let ended = ask(
            &server,
            "DELETE",
            "/_search/scroll",
            &json!({"scroll_id": [page["_scroll_id"]]}),
        );
        assert_eq!(ended.json(), json!({"succeeded": true, "num_freed": 1}));
        let window = ask(
            &server,
            "POST",
            "/_search",
            &json!({"from": 9_999, "size": 2}),
        );
        assert_eq!(
            (
                window.status,
                window.json()["error"]["type"].as_str().unwrap()
            ),
            (400, "illegal_argument_exception")
        );
    });
}

#[test]
fn a_point_in_time_does_not_move() {
    let server = filled();
    let opened = ask(&server, "POST", "/logs-*/_pit?keep_alive=1m", &Value::Null).json();
    store(
        &server,
        "logs-a",
        &[json!({"@timestamp": iso(START_MS), "message": "late"})],
    );
    let body =
        json!({"pit": {"id": opened["id"], "keep_alive": "1m"}, "sort": [{"@timestamp": "asc"}]});
    let found = post(&server, "/_search", &body);
    assert_eq!(
        (&found["hits"]["total"]["value"], &found["pit_id"]),
        (&json!(11), &opened["id"])
    );
    assert_eq!(hits(&found)[0]["sort"].as_array().unwrap().len(), 2);
    assert_eq!(post(&server, "/_count", &Value::Null)["count"], 12);
    let closed = ask(&server, "DELETE", "/_pit", &json!({"id": opened["id"]}));
    assert_eq!(closed.json()["succeeded"], true);
    assert_eq!(ask(&server, "POST", "/logs-a/_search", &body).status, 400);
}

/// The searches of panels, as Grafana's data source builds them.
fn panels() -> Vec<Value> {
    let (from, to) = (START_MS, START_MS + 100_000);
    let range =
        json!({"range": {"@timestamp": {"gte": from, "lte": to, "format": "epoch_millis"}}});
    let text = |text: &str| json!({"query_string": {"analyze_wildcard": true, "query": text}});
    let filter = |query: &str| json!({"bool": {"filter": [range, text(query)]}});
    let bounds = json!({"min": from, "max": to});
    let histogram = json!({"date_histogram": {"field": "@timestamp", "fixed_interval": "20s", "min_doc_count": 0,
        "extended_bounds": bounds, "format": "epoch_millis"}});
    let mut average = histogram.clone();
    average["aggs"] = json!({"1": {"avg": {"field": "ms"}}});
    let by_host = json!({"3": {"terms": {"field": "host.name", "size": 10, "order": {"_key": "desc"}, "min_doc_count": 1},
        "aggs": {"2": average}}});
    let logs = json!({"size": 500, "query": filter("request"), "sort": {"@timestamp": {"order": "desc", "unmapped_type": "boolean"}, "_doc": {"order": "desc"}}, "script_fields": {}, "docvalue_fields": ["@timestamp"],
        "highlight": {"fields": {"*": {}}, "pre_tags": ["@HIGHLIGHT@"], "post_tags": ["@/HIGHLIGHT@"], "fragment_size": 2_147_483_647},
        "fields": [{"field": "*", "format": "strict_date_optional_time_nanos"}]});
    let mut pipelines = histogram.clone();
    pipelines["aggs"] = json!({
        "1": {"max": {"field": "ms"}},
        "3": {"derivative": {"buckets_path": "1", "unit": "1s"}},
        "4": {"moving_fn": {"buckets_path": "_count", "window": "2", "script": "MovingFunctions.unweightedAvg(values)"}},
        "5": {"bucket_script": {"buckets_path": {"c": "_count", "m": "1"}, "script": "params.m * params.c"}},
        "6": {"cumulative_sum": {"buckets_path": "_count", "format": ""}},
        "7": {"serial_diff": {"buckets_path": "_count", "lag": "1"}},
        "8": {"top_metrics": {"metrics": [{"field": "host.name"}], "size": "1", "sort": [{"@timestamp": "desc"}]}},
        "9": {"rate": {"unit": "minute"}}});
    vec![
        json!({"size": 0, "query": filter("*"), "aggs": {"2": histogram}}),
        json!({"size": 0, "query": filter("host.name:*"), "aggs": by_host}),
        logs,
        json!({"size": 0, "query": filter("*"), "aggs": {"1": {"derivative": {"buckets_path": "2"}}}}),
        json!({"size": 0, "query": {"bool": {"filter": [range]}}, "aggs": {"1": {"terms": {"field": "host.name", "size": 500, "order": {"_key": "asc"}}}}}),
        json!({"size": 0, "query": filter("*"), "aggs": {"2": pipelines}}),
    ]
}

#[test]
fn panels_of_grafana_are_answered() {
    let server = filled();
    let from = START_MS;
    let header =
        json!({"search_type": "query_then_fetch", "ignore_unavailable": true, "index": "logs-*"});
    let lines: String = panels()
        .iter()
        .map(|body| format!("{header}\n{body}\n"))
        .collect();
    in_both_states(&server, || {
        let answer = request(
            server.http(),
            "POST",
            "/_msearch?max_concurrent_shard_requests=5",
            &[("Content-Type", "application/x-ndjson")],
            lines.as_bytes(),
        );
        assert_eq!(answer.status, 200, "{}", answer.json());
        let answer = answer.json();
        let responses = answer["responses"].as_array().unwrap();
        let buckets = responses[0]["aggregations"]["2"]["buckets"]
            .as_array()
            .unwrap();
        let counts: Vec<_> = buckets
            .iter()
            .map(|bucket| bucket["doc_count"].as_u64().unwrap())
            .collect();
        assert_eq!(
            (counts, &buckets[0]["key_as_string"]),
            (vec![3, 2, 2, 2, 2, 0], &json!(from.to_string()))
        );
        let hosts = responses[1]["aggregations"]["3"]["buckets"]
            .as_array()
            .unwrap();
        assert_eq!(
            (&hosts[0]["key"], &hosts[0]["doc_count"], &hosts[1]["key"]),
            (&json!("b"), &json!(4), &json!("a"))
        );
        assert_eq!(hosts[0]["2"]["buckets"][1]["1"]["value"], json!(15.0));
        assert_eq!(hosts[0]["2"]["buckets"][2]["1"]["value"], Value::Null);
        assert_eq!(hits(&responses[2]).len(), 10);
        let newest = &hits(&responses[2])[0];
        assert_eq!(newest["sort"][0], START_MS + 90_000);
        assert_eq!(newest["fields"]["host.name"], json!(["b"]));
        assert_eq!(newest["_source"]["ms"], 45);
        assert_eq!(
            (&responses[3]["status"], &responses[3]["error"]["type"]),
            (&json!(400), &json!("parsing_exception"))
        );
        assert_eq!(
            responses[4]["aggregations"]["1"]["buckets"][0],
            json!({"key": "a", "doc_count": 6})
        );
        pipelines_are_computed(&responses[5]["aggregations"]["2"]["buckets"]);
    });
}

/// The buckets of 20 seconds have 3, 2, 2, 2, 2 and no records, whose largest `ms` are 5, 15, 25, 35 and 45.
fn pipelines_are_computed(buckets: &Value) {
    let second = &buckets[1];
    let values = ["1", "3", "4", "5", "6", "7", "9"].map(|name| second[name]["value"].as_f64());
    let expected = [15.0, 10.0, 3.0, 30.0, 5.0, -1.0, 6.0].map(Some);
    assert_eq!(values, expected, "{second}");
    assert_eq!(second["3"]["normalized_value"], json!(0.5));
    assert_eq!(second["8"]["top"][0]["metrics"]["host.name"], "b");
    let last = &buckets[5];
    assert_eq!(
        (&last["5"], &last["6"]["value"], &last["8"]["top"]),
        (&Value::Null, &json!(11.0), &json!([]))
    );
}

/// To test the data source, and for the lists of fields.
#[test]
fn data_sources_of_grafana_are_tested() {
    let server = filled();
    let health = ask(
        &server,
        "GET",
        "/_cluster/health?wait_for_status=yellow",
        &Value::Null,
    )
    .json();
    assert_eq!(health["status"], "green");
    let fields = ask(
        &server,
        "GET",
        "/logs-*/_field_caps?fields=@timestamp",
        &Value::Null,
    )
    .json();
    assert_eq!(fields["fields"]["@timestamp"]["date"]["aggregatable"], true);
    let mapping = ask(&server, "GET", "/logs-*/_mapping", &Value::Null).json();
    let properties = &mapping["logs-a"]["mappings"]["properties"];
    assert_eq!(properties["@timestamp"]["type"], "date");
    assert_eq!(properties["host"]["properties"]["name"]["type"], "keyword");
    assert_eq!(
        (&properties["ms"]["type"], &properties["message"]["type"]),
        (&json!("long"), &json!("text"))
    );
    assert_eq!(mapping.as_object().unwrap().len(), 2);
}

#[test]
fn buckets_have_their_newest_hits() {
    let server = filled();
    let aggs = json!({"hosts": {"terms": {"field": "host.name"}, "aggs": {"last": {"top_hits":
        {"size": 1, "sort": [{"@timestamp": "desc"}], "_source": ["ms"]}}}}});
    in_both_states(&server, || {
        let found = post(
            &server,
            "/_search?typed_keys=true",
            &json!({"size": 0, "aggs": aggs}),
        );
        let buckets = &found["aggregations"]["sterms#hosts"]["buckets"];
        let last = |at: usize| &buckets[at]["top_hits#last"]["hits"]["hits"][0]["_source"];
        assert_eq!((last(0), last(1)), (&json!({"ms": 40}), &json!({"ms": 45})));
        assert_eq!(
            found["hits"],
            json!({"max_score": null, "hits": [], "total": {"value": 11, "relation": "eq"}})
        );
    });
}

type Refusal = (&'static str, &'static str, Value, u16, &'static str);

fn refusals() -> Vec<Refusal> {
    vec![
        (
            "POST",
            "/_search",
            json!({"query": {"nested": {}}}),
            400,
            "[nested] is not supported",
        ),
        (
            "POST",
            "/_search",
            json!({"sort": ["_score"]}),
            400,
            "sort by @timestamp",
        ),
        (
            "POST",
            "/_search",
            json!({"knn": {"field": "a"}}),
            400,
            "[knn] is not supported",
        ),
        (
            "POST",
            "/_search",
            json!({"queri": {}}),
            400,
            "unknown key [queri]",
        ),
        (
            "POST",
            "/_search",
            json!({"slice": {"id": 0, "max": 2}}),
            400,
            "[slice]",
        ),
        ("POST", "/_search?routing=a", json!({}), 400, "routing"),
        (
            "POST",
            "/%3Clogs-%7Bnow%7D%3E/_search",
            json!({}),
            400,
            "date math in names",
        ),
        (
            "POST",
            "/_search/scroll",
            json!({"scroll_id": "x"}),
            400,
            "not one that this server gave",
        ),
        ("POST", "/_sql", json!({}), 404, "there is nothing at /_sql"),
        ("DELETE", "/a/_search", json!({}), 405, "takes GET"),
        (
            "POST",
            "/_delete_by_query",
            json!({}),
            404,
            "there is nothing",
        ),
    ]
}

/// Errors have the form of Elasticsearch, with what to use instead.
#[test]
fn what_is_not_supported_is_refused() {
    let server = TestServer::new();
    for (method, path, body, status, part) in refusals() {
        let answer = ask(&server, method, path, &body);
        let json = answer.json();
        assert_eq!(
            (answer.status, &json["status"]),
            (status, &json!(status)),
            "{path} {json}"
        );
        let reason = json["error"]["reason"].as_str().unwrap();
        assert!(reason.contains(part), "{path}: {reason}");
        assert_eq!(json["error"]["root_cause"][0]["reason"], reason);
    }
}

/// Numbers from a seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    fn one<'c, T>(&mut self, choices: &'c [T]) -> &'c T {
        &choices[self.roll(choices.len() as u64) as usize]
    }
}

const WORDS: [&str; 5] = ["pool", "full", "Error", "10.0.0.1", "pool_full"];

fn document(dice: &mut Dice, number: i64) -> Value {
    let words: Vec<&str> = (0..1 + dice.roll(4)).map(|_| *dice.one(&WORDS)).collect();
    let mut document = json!({"@timestamp": iso(START_MS + number * 1000), "message": words.join(" "), "n": number});
    if dice.roll(3) > 0 {
        document["status"] = json!(200 + dice.roll(4) * 100);
    }
    if dice.roll(3) > 0 {
        document["host"] = json!(dice.one(&["a", "b", "ab", "A"]));
    }
    document
}

/// A random query of the DSL.
fn query(dice: &mut Dice, depth: u64) -> Value {
    let sides = if depth == 0 { 9 } else { 11 };
    let word = *dice.one(&WORDS);
    match dice.roll(sides) {
        0 => json!({"term": {"host": dice.one(&["a", "b", "ab"])}}),
        1 => json!({"terms": {"status": [200, 200 + dice.roll(4) * 100]}}),
        2 => json!({"range": {"status": {"gte": 200 + dice.roll(4) * 100, "lt": 450}}}),
        3 => {
            json!({"range": {"@timestamp": {"gt": iso(START_MS + dice.roll(40) as i64 * 1000), "lte": START_MS + 30_000}}})
        }
        4 => json!({"exists": {"field": dice.one(&["host", "status", "none"])}}),
        5 => {
            json!({"match": {"message": {"query": format!("{word} {}", dice.one(&WORDS)), "operator": dice.one(&["and", "or"])}}})
        }
        6 => json!({"match_phrase": {"message": format!("{word} {}", dice.one(&WORDS))}}),
        7 => json!({"prefix": {"host": "a"}}),
        8 => json!({"wildcard": {"host": {"value": dice.one(&["a*", "*b", "?", "A"])}}}),
        _ => {
            let mut some = |most: u64| -> Vec<Value> {
                (0..dice.roll(most))
                    .map(|_| query(dice, depth - 1))
                    .collect()
            };
            let (must, should, not) = (some(3), some(3), some(2));
            json!({"bool": {"must": must, "should": should, "must_not": not}})
        }
    }
}

/// Words as the message is searched by.
fn words(text: &str) -> Vec<String> {
    let parts = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    parts
        .filter(|part| !part.is_empty())
        .map(str::to_lowercase)
        .collect()
}

fn has_row(message: &str, phrase: &str) -> bool {
    let (all, wanted) = (words(message), words(phrase));
    all.windows(wanted.len()).any(|window| window == wanted)
}

/// True if a document matches, computed from its JSON alone.
fn is_match(query: &Value, document: &Value) -> bool {
    let (name, body) = query.as_object().unwrap().iter().next().unwrap();
    let each = |of: &Value| of.as_array().unwrap().clone();
    let member = |of: &Value| {
        let (name, value) = of.as_object().unwrap().iter().next().unwrap();
        (name.clone(), value.clone())
    };
    let message = document["message"].as_str().unwrap();
    match name.as_str() {
        "term" => document["host"] == body["host"],
        "terms" => each(&body["status"]).contains(&document["status"]),
        "range" if body["status"].is_object() => {
            let status = document["status"].as_i64();
            status.is_some_and(|status| {
                status >= body["status"]["gte"].as_i64().unwrap() && status < 450
            })
        }
        "range" => {
            let time = document["@timestamp"].as_str().unwrap();
            let range = &body["@timestamp"];
            // All times are whole seconds; the end of a date with nanoseconds is itself.
            time > range["gt"].as_str().unwrap()
                && time <= iso(range["lte"].as_i64().unwrap()).as_str()
        }
        "exists" => !document[body["field"].as_str().unwrap()].is_null(),
        "match" => {
            let options = &body["message"];
            let text = options["query"].as_str().unwrap();
            let mut parts = text.split_whitespace();
            if options["operator"] == "and" {
                parts.all(|part| has_row(message, part))
            } else {
                parts.any(|part| has_row(message, part))
            }
        }
        "match_phrase" => has_row(message, body["message"].as_str().unwrap()),
        "prefix" => document["host"]
            .as_str()
            .is_some_and(|host| host.starts_with('a')),
        "wildcard" => document["host"].as_str().is_some_and(|host| {
            match member(&body["host"]).1.as_str().unwrap() {
                "a*" => host.starts_with('a'),
                "*b" => host.ends_with('b'),
                "?" => host.len() == 1,
                other => host == other,
            }
        }),
        "bool" => {
            let (must, should, not) = (
                each(&body["must"]),
                each(&body["should"]),
                each(&body["must_not"]),
            );
            let needs_should = must.is_empty() && !should.is_empty();
            must.iter().all(|query| is_match(query, document))
                && (!needs_should || should.iter().any(|query| is_match(query, document)))
                && !not.iter().any(|query| is_match(query, document))
        }
        other => panic!("{other}"),
    }
}

/// A histogram alone is counted by the engine's own, and otherwise from columns: both are the same.
fn check_histogram(server: &TestServer, query: &Value, count: usize) {
    let bounded = json!({"bool": {"filter": [query, {"range": {"@timestamp": {"gte": START_MS, "lt": START_MS + 60_000}}}]}});
    let histogram = json!({"date_histogram": {"field": "@timestamp", "fixed_interval": "7s"}});
    let aggs = json!({"a": histogram});
    let mut inner = histogram.clone();
    inner["aggs"] = json!({"n": {"sum": {"field": "n"}}});
    // Alone it is counted by the engine's histogram.
    let alone = post(
        server,
        "/logs/_search",
        &json!({"size": 0, "query": bounded, "aggs": aggs}),
    );
    let filled = post(
        server,
        "/logs/_search",
        &json!({"size": 0, "query": bounded, "aggs": {"a": inner}}),
    );
    let counts = |found: &Value| -> Vec<(i64, u64)> {
        let buckets = found["aggregations"]["a"]["buckets"]
            .as_array()
            .unwrap()
            .iter();
        buckets
            .map(|b| (b["key"].as_i64().unwrap(), b["doc_count"].as_u64().unwrap()))
            .collect()
    };
    assert_eq!(counts(&alone), counts(&filled), "{query}");
    assert_eq!(alone["hits"]["total"]["value"], count, "{query}");
}

/// Random queries over random documents match as a naive evaluation of the JSON says.
#[test]
fn random_queries_match_as_their_documents_say() {
    let seed = 20_261_128;
    let mut dice = Dice(seed);
    let server = TestServer::new();
    let documents: Vec<Value> = (0..60).map(|number| document(&mut dice, number)).collect();
    store(&server, "logs", &documents[..30]);
    compact(server.http());
    store(&server, "logs", &documents[30..]);
    for _ in 0..300 {
        let query = query(&mut dice, 2);
        let body = json!({"query": query, "size": 100, "sort": ["_doc"], "_source": ["n"],
            "aggs": {"all": {"filter": query}, "n": {"sum": {"field": "n"}}}});
        let found = post(&server, "/logs/_search", &body);
        let numbers: Vec<i64> = hits(&found)
            .iter()
            .map(|hit| hit["_source"]["n"].as_i64().unwrap())
            .collect();
        let matching = documents
            .iter()
            .filter(|document| is_match(&query, document));
        let expected: Vec<i64> = matching
            .map(|document| document["n"].as_i64().unwrap())
            .collect();
        assert_eq!(numbers, expected, "seed {seed}: {query}");
        assert_eq!(found["hits"]["total"]["value"], expected.len(), "{query}");
        // The same query as an aggregation is evaluated on columns.
        let aggregated = &found["aggregations"];
        assert_eq!(
            aggregated["all"]["doc_count"],
            expected.len(),
            "seed {seed}: {query}"
        );
        assert_eq!(
            aggregated["n"]["value"],
            json!(expected.iter().sum::<i64>() as f64),
            "{query}"
        );
        check_histogram(&server, &query, expected.len());
        let everything = post(
            &server,
            "/logs/_search",
            &json!({"size": 0, "aggs": {"all": {"filter": query}}}),
        );
        assert_eq!(
            everything["aggregations"]["all"]["doc_count"],
            expected.len(),
            "seed {seed}: {query}"
        );
    }
}
