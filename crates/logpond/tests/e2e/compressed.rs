//! Answers that are compressed for clients that take it.

use std::io::{BufRead, BufReader, Read};

use flate2::read::GzDecoder;
use serde_json::Value;

use crate::http::Client;
use crate::pond::{ALL_TIME, Scratch, TestServer};
use crate::surroundings::program;

const TAKES_GZIP: [(&str, &str); 1] = [("accept-encoding", "gzip, br")];

fn coding(headers: &[(String, String)]) -> Option<&str> {
    let coding = headers.iter().find(|(name, _)| name == "content-encoding");
    coding.map(|(_, value)| value.as_str())
}

#[test]
fn answers_are_smaller_and_say_the_same() {
    let scratch = Scratch::new("compressed").unwrap();
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    let lines: String = (0..3_000)
        .map(|n| format!("{{\"message\":\"a request was served\",\"n\":{n}}}\n"))
        .collect();
    server
        .push("application/x-ndjson", lines.as_bytes())
        .unwrap();
    let targets = [
        "/api/v1/query?limit=3000",
        "/api/v1/top?field=n&n=500",
        "/metrics",
    ];
    for target in targets {
        let target = if target.contains('?') {
            format!("{target}&{ALL_TIME}")
        } else {
            target.to_owned()
        };
        let mut client = server.client().unwrap();
        let response = client.send("GET", &target, &TAKES_GZIP, b"").unwrap();
        assert_eq!(response.status, 200, "{target}");
        assert_eq!(coding(&response.headers), Some("gzip"), "{target}");
        let packed = response.bytes().unwrap();
        let mut text = String::new();
        GzDecoder::new(&packed[..])
            .read_to_string(&mut text)
            .unwrap();
        assert!(packed.len() * 3 < text.len(), "{target}: {}", packed.len());
        // What differs from answer to answer is in the last line.
        let without_end = |text: &str| {
            let lines = text.lines().filter(|line| !line.contains("_trailer"));
            lines.map(str::to_owned).collect::<Vec<_>>()
        };
        let plain = client.send("GET", &target, &[], b"").unwrap();
        assert_eq!(coding(&plain.headers), None, "{target}");
        let plain = String::from_utf8(plain.bytes().unwrap()).unwrap();
        if target != "/metrics" {
            assert_eq!(without_end(&text), without_end(&plain), "{target}");
        }
    }
    // What is short stays as it is.
    let mut client = server.client().unwrap();
    let response = client
        .send("GET", "/api/v1/nothing", &TAKES_GZIP, b"")
        .unwrap();
    assert_eq!((response.status, coding(&response.headers)), (404, None));
}

/// Each record can be read when it has come, though the stream does not end.
#[test]
fn followers_read_compressed_records_at_once() {
    let scratch = Scratch::new("compressed-follow").unwrap();
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    let mut client = Client::connect(&server.address("http")).unwrap();
    let target = "/api/v1/query?follow=true&q=word";
    let response = client.send("GET", target, &TAKES_GZIP, b"").unwrap();
    assert_eq!(coding(&response.headers), Some("gzip"));
    let push = |n: usize| {
        let line = format!("word {n}\n");
        server.push("text/plain", line.as_bytes()).unwrap();
    };
    // The decoder waits for the head of the stream, which comes with the first record.
    push(0);
    let mut rows = BufReader::new(GzDecoder::new(response)).lines();
    for n in 0..3 {
        let message = rows.by_ref().find_map(|row| {
            let row: Value = serde_json::from_str(&row.unwrap()).unwrap();
            row["_msg"].as_str().map(str::to_owned)
        });
        assert_eq!(message, Some(format!("word {n}")));
        push(n + 1);
    }
}
