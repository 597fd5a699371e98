//! Loki's interface as its clients use it.

use std::io::Read;

use flate2::read::GzDecoder;
use serde_json::{Value, json};

use crate::cluster::{hand_over, node};
use crate::http::encode;
use crate::pond::{Pond, Scratch, wait_until};
use crate::surroundings::program;

/// When the first record of a test was, in seconds.
const START: i64 = 1_700_000_000;

/// All of it.
const RANGE: &str = "start=1699999999&end=1700010000";

/// Takes streams in as shippers for Loki send them: of each its labels and lines, a second apart.
fn ship(pond: &Pond, streams: &[(Value, &[&str])]) {
    let streams: Vec<Value> = streams
        .iter()
        .map(|(labels, lines)| {
            let entry =
                |(n, line): (usize, &&str)| json!([format!("{}000000000", START + n as i64), line]);
            let values: Vec<Value> = lines.iter().enumerate().map(entry).collect();
            json!({ "stream": labels, "values": values })
        })
        .collect();
    let body = json!({ "streams": streams }).to_string();
    let headers = [("content-type", "application/json")];
    let mut answer = (0, String::new());
    // A node of a cluster takes nothing before others know of it.
    let taken = || {
        let path = "/loki/api/v1/push";
        answer = ask(pond, "POST", path, &headers, body.as_bytes());
        answer.0 != 503
    };
    wait_until("records are taken", taken).unwrap();
    assert_eq!(answer.0, 204, "{}", answer.1);
}

fn ask(
    pond: &Pond,
    method: &str,
    target: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> (u16, String) {
    let mut client = pond.client().unwrap();
    let response = client.send(method, target, headers, body).unwrap();
    (response.status, response.text().unwrap())
}

/// An answer of JSON to a question with these parameters.
fn json_of(pond: &Pond, path: &str, parameters: &str) -> Value {
    let text = pond.get(&format!("/loki/api/v1/{path}?{RANGE}&{parameters}"));
    serde_json::from_str(&text.unwrap()).unwrap()
}

fn shop(pond: &Pond) {
    ship(
        pond,
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
fn check_labels(pond: &Pond) {
    let labels = |parameters: &str| json_of(pond, "labels", parameters);
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
        json_of(pond, &format!("label/{name}/values"), parameters)["data"].clone()
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
    let series = |parameters: &str| json_of(pond, "series", parameters)["data"].clone();
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
fn check_volumes(pond: &Pond) {
    let query = |text: &str| format!("query={}", encode(text));
    let stats = json_of(pond, "index/stats", &query(r#"{app="cart"}"#));
    assert_eq!(
        (&stats["streams"], &stats["entries"]),
        (&json!(1), &json!(2))
    );
    let stats = json_of(pond, "index/stats", "");
    assert_eq!(
        (&stats["streams"], &stats["entries"]),
        (&json!(3), &json!(6))
    );
    // The lengths of all lines together.
    let length = stats["bytes"].as_u64().unwrap();
    assert!(length.abs_diff(176) < 6, "{length}");

    let volume = |parameters: &str| json_of(pond, "index/volume", parameters)["data"].clone();
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
    let parts = json_of(pond, "index/volume_range", "targetLabels=app&step=5000");
    assert_eq!(parts["data"]["resultType"], "matrix");
    let first = &parts["data"]["result"][0]["values"][0][0];
    assert_eq!(first, &json!(1_700_004_999));

    let detected = json_of(pond, "detected_labels", "");
    let detected = detected["detectedLabels"].as_array().unwrap();
    let row = |label: &str, cardinality: u64| json!({ "label": label, "cardinality": cardinality });
    assert_eq!(detected.len(), 5);
    assert!(detected.contains(&row("service_name", 3)), "{detected:?}");
    assert!(detected.contains(&row("app", 2)), "{detected:?}");
}

#[test]
fn labels_and_streams_are_listed() {
    let scratch = Scratch::new("loki-labels").unwrap();
    let pond = Pond::start(program(), &scratch.path().join("data"), &[]).unwrap();
    shop(&pond);
    check_labels(&pond);
    check_volumes(&pond);
    pond.compact().unwrap();
    check_labels(&pond);
    check_volumes(&pond);
    // Before and after the records there is nothing.
    let before = "start=1699990000&end=1700000000";
    let text = pond.get(&format!("/loki/api/v1/labels?{before}")).unwrap();
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
    for pond in [&first, &second] {
        let services = json_of(pond, "label/service_name/values", "");
        assert_eq!(services["data"], json!(["cart", "shop", "unknown_service"]));
        let stats = json_of(pond, "index/stats", "");
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
    let pond = Pond::start(program(), &scratch.path().join("data"), &[]).unwrap();
    shop(&pond);
    let wrong = [
        ("labels?start=x", "could not parse 'start' parameter"),
        ("labels?start=2&end=1", "end timestamp must not be before"),
        ("labels?query=%7Bapp", "parse error at line 1, col 5"),
        ("index/volume?limit=0", "limit must be a positive value"),
        ("index/volume?aggregateBy=x", "invalid aggregateBy"),
        (
            "index/volume_range?step=0",
            "zero or negative query resolution",
        ),
        (
            "index/volume_range?step=1&since=365d",
            "maximum resolution of 11,000",
        ),
        ("format_query?query=sum(", "parse error at line 1, col "),
    ];
    for (target, part) in wrong {
        let mut client = pond.client().unwrap();
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
    let form = format!("{RANGE}&query={}", encode("{app=\"cart\"}"));
    let headers = [("content-type", "application/x-www-form-urlencoded")];
    let (status, text) = ask(
        &pond,
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
    let pond = Pond::start(program(), &scratch.path().join("data"), &[]).unwrap();
    shop(&pond);
    let mut client = pond.client().unwrap();
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
    assert_eq!(text, pond.get(&target).unwrap());
}

#[test]
fn what_clients_ask_about_the_server_is_answered() {
    let scratch = Scratch::new("loki-server").unwrap();
    let pond = Pond::start(program(), &scratch.path().join("data"), &[]).unwrap();
    let get = |target: &str| -> Value { serde_json::from_str(&pond.get(target).unwrap()).unwrap() };
    assert!(get("/loki/api/v1/status/buildinfo")["version"].is_string());
    let limits = get("/loki/api/v1/drilldown-limits");
    assert_eq!(limits["limits"]["volume_enabled"], true);
    assert_eq!(limits["pattern_ingester_enabled"], false);
    assert_eq!(get("/prometheus/api/v1/rules")["data"]["groups"], json!([]));
    assert_eq!(
        get("/prometheus/api/v1/alerts")["data"]["alerts"],
        json!([])
    );
    for path in ["/loki/api/v1/rules", "/api/prom/rules"] {
        let answer = ask(&pond, "GET", path, &[], b"");
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
