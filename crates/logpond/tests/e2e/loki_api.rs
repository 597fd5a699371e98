//! Loki's interface as its clients use it.

use std::io::Read;

use flate2::read::GzDecoder;
use serde_json::{Value, json};

use crate::http::encode;
use crate::nodes::{hand_over, node};
use crate::pond::{Scratch, TestServer, wait_until};
use crate::surroundings::program;

/// When the first record of a test was, in seconds.
pub(crate) const START: i64 = 1_700_000_000;

/// All of it.
const RANGE: &str = "start=1699999999&end=1700010000";

/// Takes streams in as shippers for Loki send them: of each its labels and lines, a second apart.
pub(crate) fn ship(server: &TestServer, streams: &[(Value, &[&str])]) {
    let streams: Vec<Value> = streams
        .iter()
        .map(|(labels, lines)| {
            let entry =
                |(n, line): (usize, &&str)| json!([format!("{}000000000", START + n as i64), line]);
            let values: Vec<Value> = lines.iter().enumerate().map(entry).collect();
            json!({ "stream": labels, "values": values })
        })
        .collect();
    ship_all(server, &json!({ "streams": streams }));
}

/// Takes in what a shipper sends.
pub(crate) fn ship_all(server: &TestServer, body: &Value) {
    let body = body.to_string();
    let headers = [("content-type", "application/json")];
    let mut answer = (0, String::new());
    // A node of a cluster takes nothing before others know of it.
    let taken = || {
        let path = "/loki/api/v1/push";
        answer = ask(server, "POST", path, &headers, body.as_bytes());
        answer.0 != 503
    };
    wait_until("records are taken", taken).unwrap();
    assert_eq!(answer.0, 204, "{}", answer.1);
}

pub(crate) fn ask(
    server: &TestServer,
    method: &str,
    target: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> (u16, String) {
    let mut client = server.client().unwrap();
    let response = client.send(method, target, headers, body).unwrap();
    (response.status, response.text().unwrap())
}

/// An answer of JSON to a question with these parameters.
fn json_of(server: &TestServer, path: &str, parameters: &str) -> Value {
    let text = server.get(&format!("/loki/api/v1/{path}?{RANGE}&{parameters}"));
    serde_json::from_str(&text.unwrap()).unwrap()
}

pub(crate) fn shop(server: &TestServer) {
    ship(
        server,
        &[
            (
                json!({ "app": "shop", "env": "prod" }),
                &[
                    r#"{"level":"info","msg":"sold","status":200}"#,
                    r#"{"level":"error","msg":"lost","status":500}"#,
                    r#"{"level":"warn","msg":"late","status":200}"#,
                ],
            ),
            (
                json!({ "app": "cart", "k8s.pod": "cart-1" }),
                &["level=info took=5ms", "level=debug took=7ms"],
            ),
            (json!({ "host": "web-1" }), &["plain text"]),
        ],
    );
}

/// What labels, series and volumes say, whatever the records are stored in.
fn check_labels(server: &TestServer) {
    let labels = |parameters: &str| json_of(server, "labels", parameters);
    assert_eq!(
        labels(""),
        json!({ "status": "success", "data": ["app", "env", "host", "k8s_pod", "service_name"] })
    );
    let query = |text: &str| format!("query={}", encode(text));
    assert_eq!(
        labels(&query(r#"{app="cart"}"#))["data"],
        json!(["app", "k8s_pod", "service_name"])
    );
    assert_eq!(
        labels(&query(r#"{app="nobody"}"#)),
        json!({ "status": "success" }),
        "there is no data"
    );
    let values = |name: &str, parameters: &str| {
        json_of(server, &format!("label/{name}/values"), parameters)["data"].clone()
    };
    let services = json!(["cart", "shop", "unknown_service"]);
    assert_eq!(values("service_name", ""), services);
    assert_eq!(values("k8s_pod", ""), json!(["cart-1"]));
    assert_eq!(values("k8s%5Fpod", ""), json!(["cart-1"]));
    // Fields of lines are labels, too.
    assert_eq!(values("status", ""), json!(["200", "500"]));
    assert_eq!(values("app", &query("{status=\"500\"}")), json!(["shop"]));
    let levels = json!(["debug", "error", "info", "unknown", "warn"]);
    assert_eq!(values("detected_level", ""), levels);
    assert_eq!(values("nobody", ""), Value::Null);

    let shop = json!({ "app": "shop", "env": "prod", "service_name": "shop" });
    let cart = json!({ "app": "cart", "k8s_pod": "cart-1", "service_name": "cart" });
    let web = json!({ "host": "web-1", "service_name": "unknown_service" });
    let series = |parameters: &str| json_of(server, "series", parameters)["data"].clone();
    assert_eq!(series(""), json!([cart, shop, web]));
    let of = |name: &str, text: &str| format!("{name}={}", encode(text));
    let two = format!(
        "{}&{}",
        of("match[]", r#"{env=~"p.+"}"#),
        of("match[]", r#"{k8s_pod!=""}"#)
    );
    assert_eq!(series(&two), json!([cart, shop]));
    assert_eq!(
        series(&of("match", "{detected_level=\"error\"}")),
        json!([shop])
    );
    assert_eq!(series(&of("match", "{app=\"nobody\"}")), json!([]));
}

/// What statistics and volumes say, whatever the records are stored in.
fn check_volumes(server: &TestServer) {
    let query = |text: &str| format!("query={}", encode(text));
    let stats = json_of(server, "index/stats", &query(r#"{app="cart"}"#));
    assert_eq!(
        (&stats["streams"], &stats["entries"]),
        (&json!(1), &json!(2))
    );
    let stats = json_of(server, "index/stats", "");
    assert_eq!(
        (&stats["streams"], &stats["entries"]),
        (&json!(3), &json!(6))
    );
    // The lengths of all lines together.
    let length = stats["bytes"].as_u64().unwrap();
    assert!(length.abs_diff(176) < 6, "{length}");

    let volume = |parameters: &str| json_of(server, "index/volume", parameters)["data"].clone();
    let by_service = volume("targetLabels=service_name&limit=5000");
    assert_eq!(by_service["resultType"], "vector");
    let found = by_service["result"].as_array().unwrap();
    let names: Vec<_> = found.iter().map(|v| v["metric"].clone()).collect();
    let named = |name: &str| json!({ "service_name": name });
    assert!(
        names.contains(&named("shop")) && names.len() == 3,
        "{names:?}"
    );
    let bytes = |volume: &Value| volume["value"][1].as_str().unwrap().parse::<u64>().unwrap();
    assert!(found.windows(2).all(|two| bytes(&two[0]) >= bytes(&two[1])));
    assert_eq!(found[0]["value"][0], 1_700_010_000);
    let levels = volume("targetLabels=detected_level");
    assert_eq!(levels["result"].as_array().unwrap().len(), 5);
    let of_matchers = volume(&query(r#"{app=~".+"}"#));
    assert_eq!(of_matchers["result"].as_array().unwrap().len(), 2);
    let labels = volume("aggregateBy=labels&limit=1");
    assert_eq!(labels["result"][0]["metric"], json!({ "service_name": "" }));
    check_steps(server);

    let detected = json_of(server, "detected_labels", "");
    let detected = detected["detectedLabels"].as_array().unwrap();
    let row = |label: &str, cardinality: u64| json!({ "label": label, "cardinality": cardinality });
    assert_eq!(detected.len(), 5);
    assert!(detected.contains(&row("service_name", 3)), "{detected:?}");
    assert!(detected.contains(&row("app", 2)), "{detected:?}");
}

/// What volumes over time say: steps begin at multiples of their length, and bytes stand before the end of
/// theirs.
fn check_steps(server: &TestServer) {
    let of_steps = |parameters: &str| {
        let parameters = format!("targetLabels=app&{parameters}");
        json_of(server, "index/volume_range", &parameters)["data"].clone()
    };
    let times = |series: &Value| -> Vec<Value> {
        let values = series["values"].as_array().unwrap().iter();
        values.map(|value| value[0].clone()).collect()
    };
    let parts = of_steps("step=2");
    assert_eq!(parts["resultType"], "matrix");
    let shop = &parts["result"][0];
    assert_eq!(shop["metric"], json!({ "app": "shop" }));
    assert_eq!(times(shop), [1_700_000_001.999, 1_700_000_003.999]);
    let cart = &parts["result"][1];
    assert_eq!(cart["metric"], json!({ "app": "cart" }));
    assert_eq!(times(cart), [1_700_000_001.999]);
    // As in Loki, a point a series is a vector, and so is no series at all.
    let whole = of_steps("step=5000");
    assert_eq!(whole["resultType"], "vector");
    assert_eq!(whole["result"][0]["value"][0], 1_700_004_999.999);
    let rest = of_steps("step=20000");
    assert_eq!(rest["result"][0]["value"][0], 1_700_010_000);
    let none = of_steps(&format!("step=2&query={}", encode("{app=\"nobody\"}")));
    assert_eq!(
        (&none["resultType"], &none["result"]),
        (&json!("vector"), &json!([]))
    );
}

#[test]
fn labels_and_streams_are_listed() {
    let scratch = Scratch::new("loki-labels").unwrap();
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    shop(&server);
    check_labels(&server);
    check_volumes(&server);
    server.compact().unwrap();
    check_labels(&server);
    check_volumes(&server);
    // Before and after the records there is nothing.
    let before = "start=1699990000&end=1700000000";
    let text = server
        .get(&format!("/loki/api/v1/labels?{before}"))
        .unwrap();
    assert_eq!(text, "{\"status\":\"success\"}\n");
}

#[test]
fn every_node_lists_the_labels_of_all() {
    let scratch = Scratch::new("loki-cluster").unwrap();
    let first = node(&scratch, 0, None).unwrap();
    let second = node(&scratch, 1, Some(&first)).unwrap();
    shop(&first);
    let web = json!({ "host": "web-1" });
    ship(&second, &[(web.clone(), &["plain text"])]);
    let complete = || json_of(&first, "series", "").get("warnings").is_none();
    wait_until("the nodes know each other", complete).unwrap();
    for server in [&first, &second] {
        let services = json_of(server, "label/service_name/values", "");
        assert_eq!(services["data"], json!(["cart", "shop", "unknown_service"]));
        let stats = json_of(server, "index/stats", "");
        assert_eq!(
            (&stats["streams"], &stats["entries"]),
            (&json!(3), &json!(7))
        );
    }
    hand_over(&first);
    hand_over(&second);
    let stats = json_of(&second, "index/stats", "");
    assert_eq!(
        (&stats["streams"], &stats["entries"]),
        (&json!(3), &json!(7))
    );
}

#[test]
fn errors_are_text_and_forms_are_read() {
    let scratch = Scratch::new("loki-errors").unwrap();
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    shop(&server);
    let wrong = [
        ("labels?start=x", "could not parse 'start' parameter"),
        ("labels?start=2&end=1", "end timestamp must not be before"),
        ("labels?query=%7Bapp", "parse error at line 1, col 5"),
        ("index/volume?limit=-1", "limit must be a positive value"),
        ("index/volume?aggregateBy=x", "invalid aggregateBy"),
        (
            "index/volume_range?step=0",
            "zero or negative query resolution",
        ),
        (
            "index/volume_range?step=1&since=365d",
            "maximum resolution of 11,000",
        ),
    ];
    for (target, part) in wrong {
        let mut client = server.client().unwrap();
        let target = format!("/loki/api/v1/{target}");
        let response = client.send("GET", &target, &[], b"").unwrap();
        assert_eq!(response.status, 400, "{target}");
        let text_plain = (
            "content-type".to_owned(),
            "text/plain; charset=utf-8".to_owned(),
        );
        assert!(response.headers.contains(&text_plain), "{target}");
        let text = response.text().unwrap();
        assert!(text.contains(part), "{target}: {text}");
    }
    // Other than all else, and volumes take the default for 0.
    let get = |target: &str| ask(&server, "GET", target, &[], b"");
    let (status, text) = get("/loki/api/v1/format_query?query=sum(");
    let told: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((status, &told["status"]), (400, &json!("invalid-query")));
    assert_eq!(get("/loki/api/v1/index/volume?limit=0").0, 200);
    let older = [
        ("/loki/api/v1/label", "/loki/api/v1/labels"),
        ("/api/prom/label", "/loki/api/v1/labels"),
        (
            "/api/prom/label/app/values",
            "/loki/api/v1/label/app/values",
        ),
    ];
    for (old, new) in older {
        let [old, new] = [old, new].map(|path| get(&format!("{path}?{RANGE}")));
        assert_eq!(old, new);
        assert!(old.1.contains("\"data\""), "{old:?}");
    }
    let form = format!("{RANGE}&query={}", encode("{app=\"cart\"}"));
    let headers = [("content-type", "application/x-www-form-urlencoded")];
    let (status, text) = ask(
        &server,
        "POST",
        "/loki/api/v1/labels",
        &headers,
        form.as_bytes(),
    );
    assert_eq!(status, 200);
    assert!(text.contains("k8s_pod") && !text.contains("host"), "{text}");
}

#[test]
fn answers_are_compressed_for_those_that_take_it() {
    let scratch = Scratch::new("loki-gzip").unwrap();
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    shop(&server);
    let mut client = server.client().unwrap();
    let target = format!("/loki/api/v1/series?{RANGE}");
    let headers = [("accept-encoding", "gzip"), ("x-scope-orgid", "a|b")];
    let response = client.send("GET", &target, &headers, b"").unwrap();
    let coding = ("content-encoding".to_owned(), "gzip".to_owned());
    assert!(response.headers.contains(&coding), "{:?}", response.headers);
    let mut text = String::new();
    let bytes = response.bytes().unwrap();
    GzDecoder::new(&bytes[..])
        .read_to_string(&mut text)
        .unwrap();
    assert_eq!(text, server.get(&target).unwrap());
}

#[test]
fn what_clients_ask_about_the_server_is_answered() {
    let scratch = Scratch::new("loki-server").unwrap();
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    let get =
        |target: &str| -> Value { serde_json::from_str(&server.get(target).unwrap()).unwrap() };
    assert!(get("/loki/api/v1/status/buildinfo")["version"].is_string());
    let limits = get("/loki/api/v1/drilldown-limits");
    assert_eq!(limits["limits"]["volume_enabled"], true);
    assert_eq!(
        limits["pattern_ingester_enabled"], true,
        "Drilldown hides patterns else"
    );
    assert_eq!(get("/prometheus/api/v1/rules")["data"]["groups"], json!([]));
    assert_eq!(
        get("/prometheus/api/v1/alerts")["data"]["alerts"],
        json!([])
    );
    for path in ["/loki/api/v1/rules", "/api/prom/rules"] {
        let answer = ask(&server, "GET", path, &[], b"");
        assert_eq!(answer, (404, "no rule groups found\n".to_owned()));
    }
    let query = encode("sum by(app)(rate({app=\"shop\"}|=\"x\"[5m]))");
    let formatted = get(&format!("/loki/api/v1/format_query?query={query}"));
    let text = formatted["data"].as_str().unwrap();
    assert!(
        text.starts_with("sum") && text.contains("|= \"x\""),
        "{text}"
    );
}

/// What a query over all of the range gives.
pub(crate) fn range_of(server: &TestServer, query: &str, parameters: &str) -> Value {
    json_of(
        server,
        "query_range",
        &format!("query={}&{parameters}", encode(query)),
    )
}

/// The lines of an answer with their times in seconds since the first, stream by stream.
pub(crate) fn lines_of(answer: &Value) -> Vec<(i64, String)> {
    let streams = answer["data"]["result"].as_array().unwrap().iter();
    let values = streams.flat_map(|stream| stream["values"].as_array().unwrap());
    let line = |value: &Value| {
        let time: i64 = value[0].as_str().unwrap().parse().unwrap();
        (
            time / 1_000_000_000 - START,
            value[1].as_str().unwrap().to_owned(),
        )
    };
    values.map(line).collect()
}

fn check_lines(server: &TestServer) {
    let answer = range_of(server, r#"{app="cart"}"#, "");
    assert_eq!(answer["data"]["resultType"], "streams");
    let streams = answer["data"]["result"].as_array().unwrap();
    assert_eq!(streams.len(), 2, "the level tells lines apart: {streams:?}");
    let stream = json!({ "app": "cart", "k8s_pod": "cart-1", "service_name": "cart", "detected_level": "debug" });
    assert_eq!(streams[0]["stream"]["detected_level"], "debug");
    for (name, value) in stream.as_object().unwrap() {
        assert_eq!(&streams[0]["stream"][name], value);
    }
    let parsed = range_of(
        server,
        r#"{app="shop"} | json | status >= 500 | line_format "{{.msg}}""#,
        "",
    );
    assert_eq!(lines_of(&parsed), [(1, "lost".to_owned())]);
    assert_eq!(parsed["data"]["result"][0]["stream"]["status"], "500");
    let one = |direction: &str| {
        let parameters = format!("limit=1&direction={direction}");
        lines_of(&range_of(server, r#"{app="shop"}"#, &parameters))[0].0
    };
    assert_eq!((one("BACKWARD"), one("forward")), (2, 0));
    // Of all streams together lines are so far apart, and the limit counts those that are left.
    let apart = |parameters: &str| {
        let lines = lines_of(&range_of(server, "{}", parameters));
        let mut seconds: Vec<i64> = lines.into_iter().map(|(second, _)| second).collect();
        seconds.sort_unstable();
        seconds
    };
    assert_eq!(apart("interval=1s&limit=3"), [0, 1, 2]);
    assert_eq!(apart("interval=1.5&limit=3&direction=forward"), [0, 2]);
    assert_eq!(apart("interval=2s&limit=1"), [2]);
    // A label that a stage made is shown, without text too.
    let labelled = range_of(server, r#"{host="web-1"} | label_format note="""#, "");
    assert_eq!(labelled["data"]["result"][0]["stream"]["note"], "");
    let none = range_of(server, r#"{app="nobody"}"#, "");
    assert_eq!(none["data"]["result"], json!([]));
}

#[test]
fn lines_come_in_streams() {
    let scratch = Scratch::new("loki-lines").unwrap();
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    shop(&server);
    check_lines(&server);
    server.compact().unwrap();
    check_lines(&server);

    // Ranges begin at their start and end before their end.
    let query = encode(r#"{app="shop"}"#);
    let range = format!("start={}&end={}&query={query}", START + 1, START + 2);
    let answer = server
        .get(&format!("/loki/api/v1/query_range?{range}"))
        .unwrap();
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(lines_of(&answer).len(), 1);

    // Clients that ask for it get labels by where they come from, and the flag before the lines.
    let target = format!("/loki/api/v1/query_range?{RANGE}&query={query}");
    let headers = [("x-loki-response-encoding-flags", "categorize-labels")];
    let (status, text) = ask(&server, "GET", &target, &headers, b"");
    assert_eq!(status, 200);
    let place = |part: &str| {
        text.find(part)
            .unwrap_or_else(|| panic!("{part} in {text}"))
    };
    assert!(place("\"resultType\"") < place("\"encodingFlags\""));
    assert!(place("\"encodingFlags\"") < place("\"result\""));
    assert!(place("\"result\"") < place("\"stats\""));
    let answer: Value = serde_json::from_str(&text).unwrap();
    let streams = answer["data"]["result"].as_array().unwrap();
    assert_eq!(streams.len(), 1, "{streams:?}");
    let newest = &streams[0]["values"][0];
    assert_eq!(
        newest[2],
        json!({ "structuredMetadata": { "detected_level": "warn" } })
    );

    // Pages follow each other by their cursors.
    let mut seen = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = range_of(
            &server,
            "{}",
            &format!("limit=2&cursor={}", encode(&cursor)),
        );
        seen.extend(lines_of(&page).into_iter().map(|(_, line)| line));
        match page["data"]["cursor"].as_str() {
            Some(next) => cursor = next.to_owned(),
            None => break,
        }
    }
    let count = seen.len();
    seen.sort();
    seen.dedup();
    assert_eq!((count, seen.len()), (6, 6));
}

#[test]
fn numbers_come_as_prometheus_has_them() {
    let scratch = Scratch::new("loki-numbers").unwrap();
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    shop(&server);
    // How Grafana sees whether a data source works.
    let health = format!(
        "/loki/api/v1/query?direction=backward&query={}&time=4000000000",
        encode("vector(1)+vector(1)")
    );
    let answer: Value = serde_json::from_str(&server.get(&health).unwrap()).unwrap();
    assert_eq!(answer["data"]["resultType"], "vector");
    assert_eq!(
        answer["data"]["result"],
        json!([{ "metric": {}, "value": [4_000_000_000_u64, "2"] }])
    );
    // How it shows how many lines there are.
    let volume =
        r#"sum by (level, detected_level) (count_over_time({app=~".+"} | drop __error__ [1h]))"#;
    let answer = range_of(&server, volume, "step=3600000ms");
    assert_eq!(answer["data"]["resultType"], "matrix");
    let series = answer["data"]["result"].as_array().unwrap();
    let count = |series: &Value| -> f64 {
        let values = series["values"].as_array().unwrap().iter();
        let numbers = values.map(|value| value[1].as_str().unwrap().parse::<f64>().unwrap());
        numbers.sum()
    };
    assert_eq!(series.iter().map(count).sum::<f64>(), 5.0, "{series:?}");
    let levels = series
        .iter()
        .map(|s| s["metric"]["detected_level"].as_str().unwrap());
    assert_eq!(
        levels.collect::<Vec<_>>(),
        ["debug", "error", "info", "warn"]
    );

    let get = |target: &str| ask(&server, "GET", &format!("/loki/api/v1/{target}"), &[], b"");
    let (status, text) = get(&format!("query?query={}", encode("{app=\"shop\"}")));
    assert_eq!(status, 400);
    assert!(
        text.starts_with("log queries are not supported as an instant query type"),
        "{text}"
    );
    let (status, text) = get(&format!(
        "query_range?query={}&limit=0",
        encode("{app=\"shop\"}")
    ));
    assert_eq!((status, &*text), (400, "limit must be a positive value\n"));
}

#[test]
fn fields_of_lines_are_detected() {
    let scratch = Scratch::new("loki-fields").unwrap();
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    shop(&server);
    let fields = json_of(&server, "detected_fields", "query=%7B%7D");
    let rows = fields["fields"].as_array().unwrap();
    let row = |name: &str| {
        rows.iter()
            .find(|row| row["label"] == name)
            .cloned()
            .unwrap_or_default()
    };
    let status = json!({
        "label": "status", "type": "int", "cardinality": 2, "parsers": ["json"],
        "jsonPath": ["status"],
    });
    assert_eq!(row("status"), status);
    let took =
        json!({ "label": "took", "type": "duration", "cardinality": 2, "parsers": ["logfmt"] });
    assert_eq!(row("took"), took);
    let level = json!({
        "label": "detected_level", "type": "string", "cardinality": 5, "parsers": null,
    });
    assert_eq!(row("detected_level"), level);
    let values = json_of(
        &server,
        "detected_field/detected_level/values",
        "query=%7B%7D",
    );
    let levels = json!(["debug", "error", "info", "unknown", "warn"]);
    assert_eq!(values["values"], levels);
    let values = json_of(&server, "detected_field/status/values", "query=%7B%7D");
    assert_eq!(values, json!({ "values": ["200", "500"], "limit": 1000 }));
}
