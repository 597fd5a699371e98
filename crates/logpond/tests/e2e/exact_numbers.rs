//! Numbers that 64 bits do not hold are in every form of answer, and hide no record.

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;

use crate::pond::{ALL_TIME, Scratch, TestServer};
use crate::surroundings::program;

/// Numbers as they are written, and those among them that a tree of JSON has as texts.
const NUMBERS: [(&str, bool); 6] = [
    ("1", false),
    ("18446744073709551615", false),
    ("18446744073709551616", true),
    ("0.1234567890123456789", true),
    ("1e400", true),
    ("-1e-400", true),
];

fn json(answer: &str) -> Value {
    serde_json::from_str(answer).unwrap_or_else(|error| panic!("{error}: {answer}"))
}

#[test]
fn long_numbers_hide_no_record() {
    let scratch = Scratch::new("numbers").unwrap();
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    let line = |(number, _): &(&str, bool)| format!("{{\"message\":\"m\",\"n\":{number}}}\n");
    let body: String = NUMBERS.iter().map(line).collect();
    let pushed = server
        .push("application/x-ndjson", body.as_bytes())
        .unwrap();
    assert_eq!(pushed.accepted(), NUMBERS.len() as u64);
    let written: BTreeSet<&str> = NUMBERS.iter().map(|(number, _)| *number).collect();
    let shown = |value: &Value| match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    // Elasticsearch's documents, in the order of the number and of nothing.
    for sort in ["n", "nosuch", "_doc"] {
        let answer = json(
            &server
                .get(&format!("/_search?size=100&sort={sort}"))
                .unwrap(),
        );
        let hits = answer["hits"]["hits"].as_array().unwrap();
        let found: Vec<String> = hits.iter().map(|hit| shown(&hit["_source"]["n"])).collect();
        let found: BTreeSet<&str> = found.iter().map(|number| &**number).collect();
        assert_eq!(found, written, "{sort}: {answer}");
        for hit in hits {
            let number = &hit["_source"]["n"];
            let (_, is_text) = NUMBERS
                .iter()
                .find(|(text, _)| *text == shown(number))
                .unwrap();
            assert_eq!(number.is_string(), *is_text, "{number}");
        }
    }
    let rows = server.get("/select/logsql/query?query=*").unwrap();
    let found: Vec<String> = rows.lines().map(|row| shown(&json(row)["n"])).collect();
    let found: BTreeSet<&str> = found.iter().map(|number| &**number).collect();
    assert_eq!(found, written, "{rows}");
    let mut top = Command::new(program());
    top.args(["top", "n", "--from", "@0", "--addr", &server.url()]);
    let output = top.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    for number in written {
        assert!(text.contains(number), "{number}: {text}");
    }
    let answer = server
        .get(&format!("/api/v1/query?{ALL_TIME}&q=n%3D1e400"))
        .unwrap();
    assert!(answer.contains("\"n\":1e400"), "{answer}");
}
