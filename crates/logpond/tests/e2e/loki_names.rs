//! Labels of streams whose lines have members of the same names.

use serde_json::{Value, json};

use crate::http::encode;
use crate::loki_api::{lines_of, range_of, ship};
use crate::nodes::{hand_over, node};
use crate::pond::{Scratch, TestServer, wait_until};
use crate::surroundings::program;

/// All of what is shipped.
const RANGE: &str = "start=1699999999&end=1700010000";

fn ship_streams(server: &TestServer) {
    ship(
        server,
        &[
            (
                json!({ "app": "a", "env": "prod" }),
                &[
                    r#"{"app":"y","n":1}"#,
                    r#"{"app":"a","n":2}"#,
                    "app=z n=3",
                    "plain",
                ],
            ),
            (json!({ "app": "y" }), &[r#"{"app":"a","env":"dev"}"#]),
        ],
    );
}

fn data_of(server: &TestServer, path: &str, parameters: &str) -> Value {
    let target = format!("/loki/api/v1/{path}?{RANGE}&{parameters}");
    let answer: Value = serde_json::from_str(&server.get(&target).unwrap()).unwrap();
    answer.get("data").cloned().unwrap_or(answer)
}

/// The times of lines that a query finds.
fn found(server: &TestServer, query: &str) -> Vec<i64> {
    let mut lines = lines_of(&range_of(server, query, ""));
    lines.sort();
    lines.into_iter().map(|(second, _)| second).collect()
}

fn check_lines(server: &TestServer) {
    let table: [(&str, &[i64]); 10] = [
        (r#"{app="a"}"#, &[0, 1, 2, 3]),
        (r#"{app="y"}"#, &[0]),
        (r#"{app!="a"}"#, &[0]),
        (r#"{app=~"y|z"}"#, &[0]),
        (r#"{app!~"y|z"}"#, &[0, 1, 2, 3]),
        (r#"{app="z"}"#, &[]),
        (r#"{env=~".+"} | app="a""#, &[0, 1, 2, 3]),
        (r#"{app="a"} | json | app="y""#, &[]),
        (r#"{app="a"} | json | app_extracted="y""#, &[0]),
        (r#"{app="a"} | logfmt | app_extracted="z""#, &[2]),
    ];
    for (query, expected) in table {
        assert_eq!(found(server, query), expected, "{query}");
    }
    let answer = range_of(server, r#"{app="a"} |= "\"n\":1""#, "");
    let stream = &answer["data"]["result"][0]["stream"];
    let expected = json!({
        "app": "a", "env": "prod", "service_name": "a", "detected_level": "unknown",
    });
    assert_eq!(stream, &expected);
    let parsed = range_of(server, r#"{app="a"} |= "\"n\":1" | json"#, "");
    let stream = &parsed["data"]["result"][0]["stream"];
    let names = [&stream["app"], &stream["app_extracted"], &stream["n"]];
    assert_eq!(names, ["a", "y", "1"]);
    // Fields are what they are.
    for (query, count) in [
        ("app=y", 1),
        ("app=a", 3),
        ("\"app@label\"=a", 3),
        ("\"app@label\"=y", 1),
    ] {
        assert_eq!(server.query(query).unwrap().0.len(), count, "{query}");
    }
}

fn check_labels(server: &TestServer) {
    let names = data_of(server, "labels", "");
    assert_eq!(names, json!(["app", "env", "service_name"]));
    assert_eq!(data_of(server, "label/app/values", ""), json!(["a", "y"]));
    // A field of a line is a label where the stream has none.
    assert_eq!(
        data_of(server, "label/env/values", ""),
        json!(["dev", "prod"])
    );
    let services = data_of(server, "label/service_name/values", "");
    assert_eq!(services, json!(["a", "y"]));
    let a = json!({ "app": "a", "env": "prod", "service_name": "a" });
    let y = json!({ "app": "y", "service_name": "y" });
    assert_eq!(data_of(server, "series", ""), json!([a, y]));
    let of_a = format!("match[]={}", encode(r#"{app="a"}"#));
    assert_eq!(data_of(server, "series", &of_a), json!([a]));
    let detected = data_of(server, "detected_labels", "");
    let detected = detected["detectedLabels"].as_array().unwrap();
    let shown = detected.iter().map(|row| row["label"].as_str().unwrap());
    let mut shown: Vec<&str> = shown.collect();
    shown.sort_unstable();
    assert_eq!(shown, ["app", "env", "service_name"]);
    let volumes = data_of(server, "index/volume", "targetLabels=app");
    let volumes = volumes["result"].as_array().unwrap().iter();
    let mut volumes: Vec<String> = volumes.map(|v| v["metric"].to_string()).collect();
    volumes.sort();
    assert_eq!(volumes, [r#"{"app":"a"}"#, r#"{"app":"y"}"#]);
    let stats = data_of(
        server,
        "index/stats",
        &format!("query={}", encode("{app=\"a\"}")),
    );
    let counts = [&stats["streams"], &stats["entries"]];
    assert_eq!(counts, [&json!(1), &json!(4)]);
    let fields = data_of(server, "detected_fields", "query=%7B%7D");
    let fields = fields["fields"].as_array().unwrap().iter();
    let fields: Vec<&str> = fields.map(|row| row["label"].as_str().unwrap()).collect();
    assert!(fields.contains(&"app_extracted"), "{fields:?}");
    assert!(
        !fields.iter().any(|name| name.contains("label")),
        "{fields:?}"
    );
}

fn check_numbers(server: &TestServer) {
    let counts = |query: &str| -> Vec<(String, String)> {
        let asked = format!("query={}&time=1700009999", encode(query));
        let target = format!("/loki/api/v1/query?{asked}");
        let answer: Value = serde_json::from_str(&server.get(&target).unwrap()).unwrap();
        let series = answer["data"]["result"].as_array().unwrap().iter();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let row = |s: &Value| (s["metric"].to_string(), text(&s["value"][1]));
        let mut counts: Vec<_> = series.map(row).collect();
        counts.sort();
        counts
    };
    let row = |metric: Value, count: &str| (metric.to_string(), count.to_owned());
    let by_app = [row(json!({"app":"a"}), "4"), row(json!({"app":"y"}), "1")];
    for query in [
        "sum by (app) (count_over_time({}[1d]))",
        r#"sum by (app) (count_over_time({app=~".+"}[1d]))"#,
        "sum by (app) (count_over_time({} | json | drop __error__, __error_details__ [1d]))",
    ] {
        assert_eq!(counts(query), by_app, "{query}");
    }
    let by_member = [
        row(json!({"app_extracted":"a"}), "1"),
        row(json!({"app_extracted":"y"}), "1"),
    ];
    let query = r#"sum by (app_extracted) (count_over_time({app="a"} |= "n\":" | json [1d]))"#;
    assert_eq!(counts(query), by_member);
    let by_stream = counts("count_over_time({}[1d])");
    assert_eq!(by_stream.len(), 2, "{by_stream:?}");
}

fn check(server: &TestServer) {
    check_lines(server);
    check_labels(server);
    check_numbers(server);
}

#[test]
fn streams_are_found_by_their_labels_whatever_lines_say() {
    let scratch = Scratch::new("loki-names").unwrap();
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    ship_streams(&server);
    check(&server);
    server.compact().unwrap();
    check(&server);
    // Unsealed beside sealed.
    ship(&server, &[(json!({ "app": "a" }), &[r#"{"app":"new"}"#])]);
    assert_eq!(found(&server, r#"{app="a"}"#).len(), 5);
    assert!(found(&server, r#"{app="new"}"#).is_empty());
}

#[test]
fn nodes_agree_on_labels_that_lines_have_too() {
    let scratch = Scratch::new("loki-names-cluster").unwrap();
    let first = node(&scratch, 0, None).unwrap();
    let second = node(&scratch, 1, Some(&first)).unwrap();
    ship_streams(&first);
    let knows = || found(&second, r#"{app="a"}"#).len() == 4;
    wait_until("the nodes know each other", knows).unwrap();
    [&first, &second].into_iter().for_each(check_labels);
    hand_over(&first);
    for server in [&first, &second] {
        check_labels(server);
        check_numbers(server);
    }
}
