//! Grafana's dashboards: every query of every panel and menu is asked of a server that has what it is about.
//!
//! Of the queries for Prometheus, which this server is not, the metrics are looked for.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::http::encode;
use crate::nodes::{node, push};
use crate::pond::{Scratch, TestServer};
use crate::surroundings::{program, shared};

/// When the first record was, in seconds.
const START: i64 = 1_772_409_600;

/// A range around all records.
const RANGE: &str = "start=1772409000&end=1772413200";

/// What Grafana would put in for variables.
const VALUES: [(&str, &str); 7] = [
    ("$__auto", "1m"),
    ("$__range", "1h"),
    ("$host", ".+"),
    ("$own_address", "192.0.2.1"),
    ("$scripts", r".*\.js"),
    ("$service", ".+"),
    ("$level", ".+"),
];

fn contrib() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib/grafana")
}

fn dashboard(name: &str) -> Value {
    let path = contrib().join("dashboards").join(name);
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap()
}

fn list<'v>(value: &'v Value, name: &str) -> &'v [Value] {
    value[name].as_array().map_or(&[], Vec::as_slice)
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    let found = value[name].as_str();
    found.unwrap_or_else(|| panic!("there is no text '{name}' in {value}"))
}

/// A query with values for all variables.
fn filled(query: &str, more: &[(&str, &str)]) -> String {
    let values = VALUES.iter().chain(more);
    let query = values.fold(query.to_owned(), |query, (name, value)| {
        query.replace(name, value)
    });
    // Regular expressions may end by a dollar sign, and none here does.
    assert!(!query.contains('$'), "a variable without a value: {query}");
    query
}

/// Checks what Grafana needs of a dashboard; gives the variables.
fn check_shape(dashboard: &Value) -> &[Value] {
    let variables = list(&dashboard["templating"], "list");
    let names: BTreeSet<_> = variables.iter().map(|v| text(v, "name")).collect();
    assert_eq!(names.len(), variables.len());
    let mut ids = BTreeSet::new();
    for panel in list(dashboard, "panels") {
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{panel}");
        assert!(!list(panel, "targets").is_empty(), "{panel}");
        let end = panel["gridPos"]["x"].as_u64().unwrap() + panel["gridPos"]["w"].as_u64().unwrap();
        assert!(end <= 24, "{panel}");
        for one in list(panel, "targets").iter().chain([panel]) {
            let source = text(&one["datasource"], "uid");
            let source = source
                .strip_prefix("${")
                .and_then(|name| name.strip_suffix('}'));
            let is_there = source.is_some_and(|name| names.contains(name));
            assert!(is_there, "no variable for the data source of {one}");
        }
    }
    assert!(!text(dashboard, "description").is_empty() && !ids.is_empty());
    variables
}

/// Asks all queries of LogQL of a dashboard; each finds something.
fn ask_all(server: &TestServer, dashboard: &Value, more: &[(&str, &str)]) {
    for variable in check_shape(dashboard) {
        let (query, kind) = (&variable["query"], text(variable, "type"));
        if kind != "query" {
            continue;
        }
        let selector = filled(text(query, "stream"), more);
        let matching = if selector.is_empty() {
            String::new()
        } else {
            format!("&query={}", encode(&selector))
        };
        let label = text(query, "label");
        let values = get(
            server,
            &format!("/loki/api/v1/label/{label}/values?{RANGE}{matching}"),
        );
        assert!(!list(&values, "data").is_empty(), "{variable}: {values}");
    }
    for panel in list(dashboard, "panels") {
        for target in list(panel, "targets") {
            let query = encode(&filled(text(target, "expr"), more));
            let answer = match text(target, "queryType") {
                "instant" => get(
                    server,
                    &format!("/loki/api/v1/query?time=1772413200&query={query}"),
                ),
                _ => get(
                    server,
                    &format!("/loki/api/v1/query_range?{RANGE}&step=60&query={query}"),
                ),
            };
            assert_eq!(answer["status"], "success", "{target}");
            assert_eq!(answer["warnings"], Value::Null, "{target}");
            let found = list(&answer["data"], "result");
            assert!(
                !found.is_empty(),
                "{} finds nothing: {target}",
                panel["title"]
            );
        }
    }
}

fn get(server: &TestServer, target: &str) -> Value {
    let answer = server.get(target).unwrap();
    serde_json::from_str(&answer).unwrap_or_else(|e| panic!("{target}: {e}: {answer}"))
}

fn line(second: i64, fields: &Value) -> String {
    let mut record = fields.clone();
    record["time"] = json!(START + second);
    format!("{record}\n")
}

#[test]
fn access_logs_are_shown() {
    let Some(shared) = shared("a database of addresses for a dashboard") else {
        return;
    };
    let scratch = Scratch::new("dashboard-access").unwrap();
    let city = shared.join("fixtures/maxmind-testdb/test-data/GeoIP2-City-Test.mmdb");
    let rules = scratch.path().join("rules.toml");
    fs::write(&rules, format!("geoip = [\"{}\"]\n", city.display())).unwrap();
    let flags = ["--rules", rules.to_str().unwrap()];
    let server = TestServer::start(program(), &scratch.path().join("data"), &flags).unwrap();
    let addresses = ["192.0.2.1", "89.160.20.112", "216.160.83.56", "10.0.0.1"];
    let mut lines = String::new();
    for n in 0..120 {
        let (address, status) = (addresses[n % 4], [200, 200, 404, 200, 503][n % 5]);
        let path = ["/", "/embed.js", "/count"][n % 3];
        let (minute, second) = (n / 60, n % 60);
        lines.push_str(&format!(
            "{address} - - [02/Mar/2026:00:{minute:02}:{second:02} +0000] \"GET {path} HTTP/2.0\" \
             {status} {} \"https://blog.example/{}\" \"agent\" \"host-{}.example\"\n",
            100 + n,
            n % 7,
            n % 2
        ));
    }
    let pushed = server.push("text/plain", lines.as_bytes()).unwrap();
    assert_eq!(pushed.accepted(), 120);
    let dashboard = dashboard("access-logs.json");
    ask_all(&server, &dashboard, &[]);
    server.compact().unwrap();
    ask_all(&server, &dashboard, &[]);
    // The first panel is about others than oneself, and not about scripts.
    let expr = text(&dashboard["panels"][0]["targets"][0], "expr");
    let query = encode(&filled(expr, &[]));
    let answer = get(
        &server,
        &format!("/loki/api/v1/query?time=1772413200&query={query}"),
    );
    let counts = list(&answer["data"], "result").iter();
    let counted: u64 = counts
        .map(|one| one["value"][1].as_str().unwrap().parse::<u64>().unwrap())
        .sum();
    let views = (0..120).filter(|n| n % 4 != 0 && n % 3 != 1);
    assert_eq!(counted, views.count() as u64);
}

#[test]
fn services_are_shown() {
    let scratch = Scratch::new("dashboard-services").unwrap();
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    let mut lines = String::new();
    for n in 0..60 {
        let level = ["info", "error", "warn"][n as usize % 3];
        let service = ["shop", "cart"][n as usize % 2];
        let fields = json!({ "service": service, "level": level, "hostname": "web-1",
            "msg": format!("request {n}") });
        lines.push_str(&line(n, &fields));
    }
    server
        .push("application/x-ndjson", lines.as_bytes())
        .unwrap();
    let dashboard = dashboard("service-logs.json");
    for search in ["", "request 1"] {
        ask_all(&server, &dashboard, &[("$search", search)]);
    }
}

#[test]
fn connections_of_a_proxy_are_shown() {
    let scratch = Scratch::new("dashboard-proxy").unwrap();
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    let mut lines = String::new();
    for n in 0..30 {
        lines.push_str(&line(
            n,
            &json!({
                "client": format!("192.0.2.{}", n % 3), "sni": "a.example", "alpn": "h2",
                "version": "TLSv1.3", "cipher": "TLS13_AES_128_GCM_SHA256", "resumed": n % 2 == 0,
                "upstream": "tcp:127.0.0.1:80", "close_reason": "client",
                "bytes_from_client": 100 * n, "bytes_to_client": 1000 * n,
                "handshake_s": 0.001, "duration_s": 0.5,
            }),
        ));
    }
    lines.push_str(&line(
        31,
        &json!({ "client": "192.0.2.9", "close_reason": "no cipher" }),
    ));
    server
        .push("application/x-ndjson", lines.as_bytes())
        .unwrap();
    let dashboard = dashboard("proxy.json");
    ask_all(&server, &dashboard, &[("$upstream", ".+")]);
    let described = text(&dashboard, "description");
    for field in [
        "client",
        "sni",
        "close_reason",
        "bytes_to_client",
        "handshake_s",
    ] {
        assert!(described.contains(field), "{described}");
    }
}

/// The member of a value that a path with points leads to, if it is there at all.
fn member<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.')
        .try_fold(value, |value, name| value.get(name))
}

/// Names of metrics in a query of PromQL.
fn metrics(expr: &str) -> BTreeSet<String> {
    let is_part = |sign: char| sign.is_ascii_alphanumeric() || sign == '_';
    let words = expr.split(|sign| !is_part(sign));
    let names = words.filter(|word| word.starts_with("logpond_") || word.starts_with("process_"));
    names.map(str::to_owned).collect()
}

#[test]
fn a_cluster_is_shown() {
    let scratch = Scratch::new("dashboard-cluster").unwrap();
    let first = node(&scratch, 0, None).unwrap();
    let second = node(&scratch, 1, Some(&first)).unwrap();
    push(&second, "{\"msg\":\"one\"}\n");
    let exposed = first.get("/metrics").unwrap();
    let dashboard = dashboard("cluster.json");
    let mut asked = BTreeSet::new();
    for variable in check_shape(&dashboard) {
        asked.extend(metrics(
            variable["query"]["query"].as_str().unwrap_or_default(),
        ));
    }
    for panel in list(&dashboard, "panels") {
        for target in list(panel, "targets") {
            if let Some(expr) = target["expr"].as_str() {
                let named = metrics(expr);
                assert!(!named.is_empty(), "{target}");
                asked.extend(named);
                continue;
            }
            let answer = get(&first, text(target, "url"));
            let root = match text(target, "root_selector") {
                "" => &answer,
                root => &answer[root][0],
            };
            for column in list(target, "columns") {
                let found = member(root, text(column, "selector"));
                assert!(found.is_some(), "{column} is not in {root}");
            }
        }
    }
    assert!(asked.len() > 15, "{asked:?}");
    for name in asked {
        let is_sample = |line: &str| {
            let rest = line.strip_prefix(&*name);
            rest.is_some_and(|rest| rest.starts_with(['{', ' ']))
        };
        assert!(exposed.lines().any(is_sample), "there is no metric {name}");
    }
}
