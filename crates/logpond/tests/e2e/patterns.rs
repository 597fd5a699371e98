//! Kinds of messages, as people and Grafana ask for them.

use serde_json::Value;

use crate::pond::{Scratch, TestServer};
use crate::surroundings::program;

/// The rows of an answer, without its trailer.
fn rows(body: &str) -> Vec<Value> {
    let rows = body.lines().map(|line| serde_json::from_str(line).unwrap());
    rows.filter(|row: &Value| row["_trailer"].is_null())
        .collect()
}

/// Records of syslog and of journals say their level by a number, and an hour is a curve within years.
#[test]
fn levels_are_those_of_every_origin_and_curves_those_of_the_records() {
    let scratch = Scratch::new("patterns").unwrap();
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    let lines: String = (0..40)
        .map(|n| {
            // Errors of the facility user, and infos.
            let priority = if n % 4 == 0 { 11 } else { 14 };
            format!("<{priority}>1 2024-01-01T10:{n:02}:00Z web app 7 - - job {n} ended\n")
        })
        .collect();
    server.push("text/plain", lines.as_bytes()).unwrap();
    let check = || {
        let asked = "/api/v1/patterns?from=2000-01-01T00:00:00Z";
        let found = rows(&server.get(asked).unwrap());
        let counts: Vec<_> = found
            .iter()
            .map(|row| (row["level"].as_str(), row["count"].as_u64()))
            .collect();
        assert_eq!(
            counts,
            [(Some("info"), Some(30)), (Some("error"), Some(10))]
        );
        let buckets = found[0]["buckets"].as_array().unwrap().len();
        assert!((15..=40).contains(&buckets), "{buckets}");
        let found = rows(&server.get(&format!("{asked}&step=1d")).unwrap());
        assert_eq!(found[0]["buckets"].as_array().unwrap().len(), 1);
        let asked = "/loki/api/v1/patterns?query=%7B%7D&start=1704067200&end=1704153600";
        let found: Value = serde_json::from_str(&server.get(asked).unwrap()).unwrap();
        let levels = found["data"].as_array().unwrap().iter();
        let levels: Vec<_> = levels.map(|row| row["level"].as_str().unwrap()).collect();
        assert_eq!(levels, ["info", "error"]);
    };
    check();
    server.compact().unwrap();
    check();
    assert_eq!(server.terminate().unwrap().code(), Some(0));
}

/// A segment's table of patterns gives the answer that its rows gave in the journal, and reads next to nothing.
#[test]
fn a_pond_at_rest_answers_as_its_journal_did() {
    let scratch = Scratch::new("patterns-at-rest").unwrap();
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    let line = |n: u64| {
        let (minute, second) = (n / 60 % 60, n % 60);
        let time = format!("2024-01-01T1{}:{minute:02}:{second:02}Z", n / 3600);
        let random = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        match random >> 40 & 3 {
            0 => format!(
                r#"{{"time":"{time}","path":"/item/{n}","status":{}}}"#,
                random >> 62
            ),
            1 => format!("<11>1 {time} web app 7 - - job {random:016x} of ann failed"),
            _ => format!("<14>1 {time} web app {n} - - job {random} ended"),
        }
    };
    let lines: String = (0..10_000).map(|n| line(n) + "\n").collect();
    server.push("text/plain", lines.as_bytes()).unwrap();
    let ask = |parameters: &str| {
        let range = "from=2024-01-01T09:00:00Z&to=2024-01-01T14:00:00Z";
        let asked = format!("/api/v1/patterns?{range}{parameters}");
        server.get(&asked).unwrap()
    };
    let parameters = ["", "&n=0&step=1h", "&n=2&step=1d", "&step=10s"];
    let before = parameters.map(|parameters| rows(&ask(parameters)));
    assert_eq!(before[1].len(), 3);
    server.compact().unwrap();
    for (parameters, before) in parameters.iter().zip(before) {
        let answer = ask(parameters);
        assert_eq!(rows(&answer), before, "{parameters}");
        let trailer = answer.lines().last().unwrap();
        let trailer: Value = serde_json::from_str(trailer).unwrap();
        let trailer = &trailer["_trailer"];
        assert_eq!(trailer["rows"], 10_000, "{parameters}");
        let scanned = trailer["bytes_scanned"].as_u64().unwrap();
        let is_told = !parameters.ends_with("10s");
        assert_eq!(scanned < 10_000, is_told, "{parameters}: {scanned} bytes");
    }
    assert_eq!(server.terminate().unwrap().code(), Some(0));
}
