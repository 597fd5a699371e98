//! What ships logs to other systems, byte for byte as its clients write and read it.

use serde_json::Value;

use super::TestServer;
use super::client::{Answer, compact, get, request};

const JSON: (&str, &str) = ("Content-Type", "application/json");
const NDJSON: (&str, &str) = ("Content-Type", "application/x-ndjson");

fn post(server: &TestServer, path: &str, header: (&str, &str), body: &[u8]) -> Answer {
    request(server.http(), "POST", path, &[header], body)
}

fn text(answer: &Answer) -> &str {
    std::str::from_utf8(&answer.body).unwrap()
}

/// All records in the order of their times.
fn records(server: &TestServer) -> Vec<Value> {
    let (rows, trailer) = get(server.http(), "/api/v1/query?from=@0&to=2100-01-01").rows();
    assert_eq!(trailer["complete"], true, "{trailer}");
    rows
}

fn lines(server: &TestServer) -> Vec<String> {
    let (rows, _) = get(
        server.http(),
        "/api/v1/query?from=@0&to=2100-01-01&fields=raw",
    )
    .rows();
    let lines = rows
        .iter()
        .map(|row| row["_line"].as_str().unwrap().to_owned());
    lines.collect()
}

/// Before and after everything has gone into a segment.
fn in_both_states(server: &TestServer, assert: impl Fn()) {
    assert();
    compact(server.http());
    assert();
}

#[test]
fn loki_entries_keep_their_time_line_and_fields() {
    let server = TestServer::new();
    let body = br#"{"streams":[
        {"stream":{"app":"shop","env":"prod"},"values":[
            ["1772409600000000001","{\"level\":\"info\",\"time\":\"2026-01-01T00:00:00Z\",\"n\":1}"],
            ["1772409600000000002","<13>1 2026-01-02T00:00:00Z ash app - - - hello",{"trace":"4bf9"}]]},
        {"stream":{"app":"web"},"values":[
            ["1772409600000000003","10.0.0.1 - - [03/Jan/2026:00:00:06 +0000] \"GET /a HTTP/1.1\" 200 5"]]}]}"#;
    let answer = post(&server, "/loki/api/v1/push", JSON, body);
    assert_eq!((answer.status, text(&answer)), (204, ""));
    in_both_states(&server, || {
        let rows = records(&server);
        let times: Vec<_> = rows
            .iter()
            .map(|row| row["_time"].as_str().unwrap())
            .collect();
        assert_eq!(
            times,
            [1, 2, 3].map(|n| format!("2026-03-02T00:00:00.00000000{n}Z"))
        );
        assert_eq!(rows[0]["app"], "shop");
        assert_eq!(
            (&rows[0]["level"], &rows[0]["n"]),
            (&"info".into(), &1.into())
        );
        assert_eq!(
            (&rows[1]["trace"], &rows[1]["_msg"]),
            (&"4bf9".into(), &"hello".into())
        );
        assert_eq!(
            (&rows[2]["app"], &rows[2]["status"]),
            (&"web".into(), &200.into())
        );
        let lines = lines(&server);
        assert!(
            lines[0].contains("\"time\":\"2026-01-01T00:00:00Z\""),
            "{lines:?}"
        );
        assert!(
            lines[1].starts_with("<13>1 2026-01-02T00:00:00Z ash"),
            "{lines:?}"
        );
        assert!(
            lines[2].contains("[03/Jan/2026:00:00:06 +0000]"),
            "{lines:?}"
        );
        let found = get(
            server.http(),
            "/api/v1/query?from=@0&q=trace%3D4bf9&count=true",
        )
        .rows();
        assert_eq!(found.1["rows"], 1);
    });
}

#[test]
fn loki_takes_what_it_can_and_says_what_it_cannot() {
    let server = TestServer::new();
    let push = |body: &str| post(&server, "/loki/api/v1/push", JSON, body.as_bytes());
    let answer =
        push(r#"{"streams":[{"stream":{},"values":[["1","good"],["x","bad"],["2","good too"]]}]}"#);
    assert_eq!(answer.status, 400);
    assert_eq!(
        text(&answer),
        "2 entries are stored, 1 are not: entry 2: time 'x' is no number of nanoseconds\n"
    );
    assert_eq!(lines(&server), ["good", "good too"]);
    let answer = push("{\"streams\":7}");
    assert_eq!(answer.status, 400);
    assert!(
        text(&answer).starts_with("the body is no push: "),
        "{}",
        text(&answer)
    );
    // What is neither JSON nor Snappy.
    let header = ("Content-Type", "application/x-protobuf");
    let answer = post(&server, "/loki/api/v1/push", header, b"hello");
    assert_eq!(answer.status, 400);
    assert_eq!(
        text(&answer),
        "the body is not one complete block of Snappy\n"
    );
    assert_eq!(get(server.http(), "/ready").status, 200);
}

#[test]
fn elastic_answers_as_its_clients_read_it() {
    let server = TestServer::new();
    let body = b"{\"create\":{\"_index\":\"logs\"}}\n{\"@timestamp\":\"2026-03-02T00:00:01Z\",\"message\":\"a\"}\n\
                 {\"index\":{\"_index\":\"logs\",\"_id\":\"7\"}}\n{\"@timestamp\":1772409602000,\"message\":\"b\"}\n";
    let answer = post(
        &server,
        "/_bulk?filter_path=errors,items.*.error",
        NDJSON,
        body,
    );
    assert_eq!(answer.status, 200);
    let head = answer.head.to_ascii_lowercase();
    assert!(head.contains("x-elastic-product: elasticsearch"), "{head}");
    // Some clients look for exactly this text.
    let adjacent = "\"errors\":false,\"items\":[{\"create\":{";
    assert!(text(&answer).contains(adjacent), "{}", text(&answer));
    let items = answer.json()["items"].clone();
    assert_eq!(items[0]["create"]["status"], 201);
    assert_eq!(
        (&items[1]["index"]["_id"], &items[1]["index"]["status"]),
        (&"7".into(), &201.into())
    );

    let mixed = b"{\"create\":{}}\n{\"message\":\"c\",\"@timestamp\":\"2026-03-02T00:00:03Z\"}\n\
                  {\"create\":{}}\nno json\n{\"delete\":{\"_id\":\"7\"}}\n";
    let answer = post(&server, "/elasticsearch/other/_bulk", NDJSON, mixed);
    assert_eq!(
        (answer.status, &answer.json()["errors"]),
        (200, &true.into())
    );
    let items = answer.json()["items"].clone();
    let statuses = ["create", "create", "delete"].iter().enumerate();
    let statuses = statuses.map(|(at, action)| items[at][action]["status"].as_u64().unwrap());
    assert_eq!(statuses.collect::<Vec<_>>(), [201, 400, 400]);
    assert_eq!(
        items[1]["create"]["error"]["type"],
        "document_parsing_exception"
    );
    in_both_states(&server, || {
        let rows = records(&server);
        let found: Vec<_> = rows
            .iter()
            .map(|row| format!("{} {} {}", row["_time"], row["_msg"], row["_index"]))
            .collect();
        assert_eq!(
            found,
            [
                "\"2026-03-02T00:00:01.000000000Z\" \"a\" \"logs\"",
                "\"2026-03-02T00:00:02.000000000Z\" \"b\" \"logs\"",
                "\"2026-03-02T00:00:03.000000000Z\" \"c\" \"other\"",
            ]
        );
    });
    let answer = post(&server, "/_bulk", NDJSON, b"{\"create\":{}}\n{}\n");
    assert_eq!(
        (answer.status, &answer.json()["status"]),
        (400, &400.into())
    );
    assert_eq!(answer.json()["error"]["type"], "illegal_argument_exception");
    let document = b"{\n \"message\": \"one\"\n}";
    let answer = post(&server, "/logs/_doc", JSON, document);
    assert_eq!(
        (answer.status, &answer.json()["result"]),
        (201, &"created".into())
    );
}

#[test]
fn elastic_clients_find_what_they_ask_for_first() {
    let server = TestServer::new();
    let ask = |method, path| request(server.http(), method, path, &[JSON], b"");
    let greeting = ask("GET", "/").json();
    assert_eq!(greeting["tagline"], "You Know, for Search");
    assert_eq!(
        ask("GET", "/elasticsearch/").json()["tagline"],
        greeting["tagline"]
    );
    for path in [
        "/_license?human=false",
        "/_xpack",
        "/_nodes/http",
        "/_index_template/filebeat-8.15.1",
        "/_ilm/policy/filebeat",
        "/elasticsearch/_data_stream/filebeat-8.15.1",
    ] {
        let answer = ask("GET", path);
        assert_eq!(answer.status, 200, "{path}");
        let head = answer.head.to_ascii_lowercase();
        assert!(
            head.contains("x-elastic-product: elasticsearch"),
            "{path}: {head}"
        );
    }
    // Beats 7 give up unless the answer to this holds the name.
    let templates = ask("GET", "/_cat/templates/filebeat-7.17.0");
    assert_eq!(templates.status, 200);
    assert_eq!(templates.json()[0]["name"], "filebeat-7.17.0");
    let health = ask("GET", "/_cluster/health").json();
    assert_eq!(health["status"], "green");
    assert_eq!(health["active_shards_percent_as_number"], 100.0);
    // Clients that sniff go to the address that they came by.
    let nodes = ask("GET", "/_nodes/http").json();
    let address = &nodes["nodes"]["logpond"]["http"]["publish_address"];
    assert_eq!(address, &server.http().to_string());
    let template = vec![b' '; 300_000];
    let answer = request(
        server.http(),
        "PUT",
        "/_index_template/a",
        &[JSON],
        &template,
    );
    assert_eq!(answer.json()["acknowledged"], true);
    // Names do not reach into other paths.
    assert_eq!(ask("POST", "//_bulk").status, 404);
    assert_eq!(ask("POST", "/a/b/c/_bulk").status, 404);
    assert_eq!(ask("GET", "/elasticsearch/metrics").status, 404);
}

/// As clients of Elasticsearch 6 send: the path has a type, and maybe an id.
#[test]
fn elastic_clients_may_name_a_type() {
    let server = TestServer::new();
    let document = br#"{"message":"typed"}"#;
    let table = [
        ("POST", "/system/events?timeout=1m", None),
        ("PUT", "/system/events/17", Some("17")),
        ("POST", "/logs-2026.11.27/logs", None),
        ("POST", "/beat/doc", None),
    ];
    for (method, path, id) in table {
        let answer = request(server.http(), method, path, &[JSON], document);
        assert_eq!(answer.status, 201, "{path}: {}", text(&answer));
        let index = path.split('/').nth(1).unwrap();
        assert_eq!(answer.json()["_index"], index);
        if let Some(id) = id {
            assert_eq!(answer.json()["_id"], id);
        }
    }
    let bulk = b"{\"index\":{}}\n{\"message\":\"in bulk\"}\n";
    let answer = request(server.http(), "POST", "/logs/flb_type/_bulk", &[JSON], bulk);
    let answer = answer.json();
    let item = &answer["items"][0]["index"];
    assert_eq!(
        (&item["_index"], &item["status"]),
        (&"logs".into(), &201.into())
    );
    for path in ["/a/b", "/api/v1/nothing", "/v1/traces", "/a/b/c"] {
        assert_eq!(
            request(server.http(), "POST", path, &[JSON], document).status,
            404,
            "{path}"
        );
    }
}

/// As Java's, Go's and other typed clients send single documents, and read what they are answered.
#[test]
fn typed_elastic_clients_read_their_answers() {
    let server = TestServer::new();
    let table = [
        ("PUT", "/logs/_doc/a%2Fb", "a/b"),
        ("POST", "/logs/_doc/7", "7"),
        ("PUT", "/logs/_create/8", "8"),
        (
            "POST",
            "/elasticsearch/logs/_create/9?refresh=wait_for",
            "9",
        ),
        ("POST", "/logs/_doc/", ""),
    ];
    for (method, path, id) in table {
        let document = format!("{{\"message\":\"to {path}\"}}");
        let answer = request(server.http(), method, path, &[JSON], document.as_bytes());
        let said = answer.json();
        assert_eq!((answer.status, &said["_index"]), (201, &"logs".into()));
        let given = said["_id"].as_str().unwrap();
        assert!(
            given == id || (id.is_empty() && given.len() == 22),
            "{said}"
        );
        assert_eq!(said["_shards"]["successful"], 1);
        assert_eq!(
            (&said["_seq_no"], &said["_primary_term"]),
            (&0.into(), &1.into())
        );
    }
    let bulk = b"{\"index\":{\"_index\":\"logs\"},\"pipeline\":\"p\"}\n{\"message\":\"in bulk\"}\n";
    let item = post(&server, "/_bulk", NDJSON, bulk).json()["items"][0]["index"].clone();
    assert_eq!(item["_id"].as_str().map(str::len), Some(22));
    assert_eq!(
        (&item["_shards"]["failed"], &item["_seq_no"]),
        (&0.into(), &0.into())
    );
    let ids: Vec<_> = records(&server)
        .iter()
        .map(|row| row["_document_id"].clone())
        .collect();
    let null = serde_json::Value::Null;
    assert_eq!(
        ids,
        [
            "a/b".into(),
            "7".into(),
            "8".into(),
            "9".into(),
            null.clone(),
            null
        ]
    );
    let long = format!("/logs/_doc/{}", "i".repeat(513));
    assert_eq!(post(&server, &long, JSON, b"{}").status, 400);
}

#[test]
fn every_index_of_elastic_exists() {
    let server = TestServer::new();
    let ask = |method, path| request(server.http(), method, path, &[JSON], b"");
    let created = ask("PUT", "/logs-2026.11.27").json();
    assert_eq!(
        (&created["acknowledged"], &created["index"]),
        (&true.into(), &"logs-2026.11.27".into())
    );
    for path in ["/_refresh", "/logs/_refresh", "/logs/_flush"] {
        assert_eq!(ask("POST", path).json()["_shards"]["failed"], 0, "{path}");
    }
    assert_eq!(ask("PUT", "/logs/_mapping").json()["acknowledged"], true);
    assert!(text(&ask("GET", "/_cat/health")).contains(" green "));
    // Others still learn that there is nothing.
    for (method, path) in [("GET", "/logs"), ("DELETE", "/logs"), ("PUT", "/_logs")] {
        assert_eq!(ask(method, path).status, 404, "{method} {path}");
    }
}

#[test]
fn logstash_sends_to_an_address_without_a_path() {
    let server = TestServer::new();
    let one = br#"{"@timestamp":"2026-03-02T00:00:01.000Z","@version":"1","message":"an event"}"#;
    assert_eq!(post(&server, "/", JSON, one).status, 200);
    let several = br#"[{"@timestamp":"2026-03-02T00:00:02.000Z","message":"one of a batch"},{"message":"another"}]"#;
    assert_eq!(
        request(server.http(), "PUT", "/", &[JSON], several).status,
        200
    );
    let rows = records(&server);
    let found: Vec<_> = rows
        .iter()
        .map(|row| row["_msg"].as_str().unwrap())
        .collect();
    assert_eq!(found, ["an event", "one of a batch", "another"]);
}

/// Fluent Bit puts the line of a file under `log`, whomever it sends to.
#[test]
fn lines_under_log_are_messages() {
    let server = TestServer::new();
    let bulk = "{\"create\":{\"_index\":\"logstash-2026.03.02\"}}\n\
        {\"@timestamp\":\"2026-03-02T00:00:00.001Z\",\"log\":\"by es\",\"stream\":\"stderr\"}\n";
    assert_eq!(post(&server, "/_bulk", NDJSON, bulk.as_bytes()).status, 200);
    let event = br#"{"time":1772409600.002,"event":{"log":"by splunk"}}"#;
    assert_eq!(
        post(&server, "/services/collector/event", JSON, event).status,
        200
    );
    let loki = br#"{"streams":[{"stream":{"job":"fluent-bit"},"values":[
        ["1772409600003000000","{\"log\":\"by loki\"}"]]}]}"#;
    assert_eq!(post(&server, "/loki/api/v1/push", JSON, loki).status, 204);
    let line = br#"{"date":1772409600.004,"time":1772409600.004,"log":"by http"}"#;
    assert_eq!(post(&server, "/api/v1/push", NDJSON, line).status, 200);
    in_both_states(&server, || {
        let rows = records(&server);
        let messages: Vec<_> = rows.iter().map(|row| row["_msg"].as_str()).collect();
        assert_eq!(
            messages,
            ["by es", "by splunk", "by loki", "by http"].map(Some)
        );
        assert_eq!(rows[0]["stream"], "stderr");
    });
}

#[test]
fn opentelemetry_is_answered_in_its_own_encoding() {
    let server = TestServer::new();
    let body = br#"{"resourceLogs":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"shop"}}]},
        "scopeLogs":[{"logRecords":[
            {"timeUnixNano":"1772409600000000001","severityNumber":17,"body":{"stringValue":"one"}},
            {"timeUnixNano":"1772409600000000002","body":{"kvlistValue":{"values":[{"key":"n","value":{"intValue":"2"}}]}}}]}]}]}"#;
    let answer = post(&server, "/v1/logs", JSON, body);
    assert_eq!((answer.status, text(&answer)), (200, "{}"));
    in_both_states(&server, || {
        let rows = records(&server);
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[0]["service.name"], "shop");
        assert_eq!(
            (&rows[0]["_msg"], &rows[0]["severity_text"]),
            (&"one".into(), &"ERROR".into())
        );
        assert_eq!(
            (&rows[1]["n"], &rows[1]["_time"]),
            (&2.into(), &"2026-03-02T00:00:00.000000002Z".into(),)
        );
    });
    // A record of the longest line and one more: the others are stored.
    let long = "x".repeat((1 << 20) + 1);
    let body = format!(
        "{{\"resourceLogs\":[{{\"scopeLogs\":[{{\"logRecords\":[{{\"body\":{{\"stringValue\":\"{long}\"}}}},\
         {{\"body\":{{\"stringValue\":\"short\"}}}}]}}]}}]}}"
    );
    let answer = post(&server, "/otlp/v1/logs", JSON, body.as_bytes());
    assert_eq!(answer.status, 200);
    let partial = answer.json()["partialSuccess"].clone();
    assert_eq!(partial["rejectedLogRecords"], "1");
    let message = partial["errorMessage"].as_str().unwrap();
    assert!(
        message.starts_with("record 1: the line has 1048577 bytes"),
        "{message}"
    );
    assert_eq!(records(&server).len(), 3);
    // Errors: INVALID_ARGUMENT, as JSON and as Protocol Buffers.
    let answer = post(&server, "/v1/logs", JSON, b"[");
    assert_eq!((answer.status, &answer.json()["code"]), (400, &3.into()));
    let protobuf = ("Content-Type", "application/x-protobuf");
    let answer = post(&server, "/v1/logs", protobuf, b"\xff");
    assert_eq!((answer.status, &answer.body[..2]), (400, &b"\x08\x03"[..]));
    assert!(
        answer
            .head
            .to_ascii_lowercase()
            .contains("content-type: application/x-protobuf")
    );
    let answer = post(&server, "/v1/logs", protobuf, b"");
    assert_eq!((answer.status, &answer.body[..]), (200, &b""[..]));
    assert_eq!(post(&server, "/v1/logs", NDJSON, b"").status, 415);
}

#[test]
fn bad_splunk_events_cost_no_good_ones() {
    let server = TestServer::new();
    let body = br#"{"time":1772409600.25,"host":"web-1","event":"one","fields":{"n":1}}{"event":{"message":"two"}}"#;
    let answer = post(&server, "/services/collector/event?index=main", JSON, body);
    assert_eq!(
        (answer.status, text(&answer)),
        (200, "{\"code\":0,\"text\":\"Success\"}\n")
    );
    let body = b"{\"event\":\"three\"}{\"event\":\"\"}{\"event\":\"\xff\"}\n{\"event\":\"six\"}";
    let answer = post(&server, "/services/collector", JSON, body);
    assert_eq!(answer.status, 400);
    let json = answer.json();
    assert_eq!(
        (&json["code"], &json["invalid-event-number"]),
        (&13.into(), &1.into())
    );
    let bad = json["invalid-events"].as_array().unwrap().iter();
    let bad: Vec<_> = bad.map(|bad| (&bad["number"], &bad["code"])).collect();
    assert_eq!(
        bad,
        [(&1.into(), &13.into()), (&2.into(), &6.into())],
        "{json}"
    );
    let counts = (&json["invalid-events-total"], &json["accepted"]);
    assert_eq!(counts, (&2.into(), &2.into()));
    let raw = ("X-Splunk-Request-Channel", "c");
    let answer = post(
        &server,
        "/services/collector/raw/1.0?host=h&source=s",
        raw,
        b"four\nfive\n",
    );
    assert_eq!((answer.status, &answer.json()["ackId"]), (200, &0.into()));
    let answer = post(
        &server,
        "/services/collector/ack?channel=c",
        JSON,
        b"{\"acks\":[0,7]}",
    );
    assert_eq!(
        answer.json()["acks"],
        serde_json::json!({ "0": true, "7": true })
    );
    in_both_states(&server, || {
        let rows = records(&server);
        let mut found: Vec<_> = rows
            .iter()
            .map(|row| row["_msg"].as_str().unwrap())
            .collect();
        found.sort_unstable();
        assert_eq!(found, ["five", "four", "one", "six", "three", "two"]);
        let one = &rows[0];
        assert_eq!(one["_time"], "2026-03-02T00:00:00.250000000Z");
        let fields = (&one["hostname"], &one["n"], &one["index"]);
        assert_eq!(fields, (&"web-1".into(), &1.into(), &"main".into()));
        let four = rows.iter().find(|row| row["_msg"] == "four").unwrap();
        assert_eq!(
            (&four["hostname"], &four["source"]),
            (&"h".into(), &"s".into())
        );
    });
    let answer = get(server.http(), "/services/collector/health");
    assert_eq!((answer.status, &answer.json()["code"]), (200, &17.into()));
    let path = "/services/collector/event/1.0";
    assert_eq!(
        request(server.http(), "OPTIONS", path, &[], b"").status,
        200
    );
    let answer = post(&server, "/services/collector", JSON, b"");
    assert_eq!((answer.status, &answer.json()["code"]), (400, &5.into()));
}

/// What senders say of a record is the same once it is in a segment, whatever its type.
#[test]
fn every_kind_of_value_survives_a_segment() {
    let server = TestServer::new();
    let values = [
        r#"{"stringValue":"text"}"#,
        r#"{"stringValue":""}"#,
        r#"{"boolValue":true}"#,
        r#"{"intValue":"-9223372036854775808"}"#,
        r#"{"doubleValue":0.1}"#,
        r#"{"doubleValue":-1e300}"#,
        r#"{"doubleValue":"Infinity"}"#,
        r#"{"bytesValue":"/wA="}"#,
        r#"{"arrayValue":{"values":[{"intValue":1},{"stringValue":"x"}]}}"#,
        r#"{"kvlistValue":{}}"#,
        "{}",
    ];
    // Each value under a name of its own, and all kinds under one name.
    let sent: Vec<String> = (0..values.len())
        .map(|n| {
            let own = format!("{{\"key\":\"own-{n}\",\"value\":{}}}", values[n]);
            let same = format!("{{\"key\":\"same\",\"value\":{}}}", values[n]);
            format!(
                "{{\"timeUnixNano\":{},\"attributes\":[{own},{same}]}}",
                n + 1
            )
        })
        .collect();
    let body = format!(
        "{{\"resourceLogs\":[{{\"scopeLogs\":[{{\"logRecords\":[{}]}}]}}]}}",
        sent.join(",")
    );
    let answer = post(&server, "/v1/logs", JSON, body.as_bytes());
    assert_eq!((answer.status, text(&answer)), (200, "{}"));
    let before = records(&server);
    assert_eq!(before.len(), values.len());
    assert_eq!(before[3]["same"], i64::MIN);
    in_both_states(&server, || assert_eq!(records(&server), before));
}
