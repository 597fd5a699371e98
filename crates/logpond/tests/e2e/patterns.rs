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
