//! `logpond load`: what it says it sent is there.

use std::process::{Command, Output};

use crate::pond::{Scratch, TestServer};
use crate::surroundings::program;

fn load(addresses: &str, arguments: &[&str]) -> (Output, serde_json::Value) {
    let output = Command::new(program())
        .args(["load", "--addr", addresses, "-o", "json"])
        .args(arguments)
        .output()
        .unwrap();
    let said = serde_json::from_slice(&output.stdout);
    let said = said.unwrap_or_else(|e| panic!("{e}: {output:?}"));
    (output, said)
}

#[test]
fn a_load_has_the_rate_and_the_size_that_it_says() {
    let scratch = Scratch::new("load").unwrap();
    let ponds = [0, 1].map(|number| {
        let data = scratch.path().join(format!("data-{number}"));
        TestServer::start(program(), &data, &[]).unwrap()
    });
    let addresses = format!("{},{}", ponds[0].url(), ponds[1].url());
    let flags = [
        "--rate",
        "2000",
        "--for",
        "1s",
        "--connections",
        "3",
        "--size",
        "200B",
    ];
    let (output, said) = load(&addresses, &flags);
    assert!(output.status.success(), "{output:?}");
    let count = |name: &str| said[name].as_u64().unwrap();
    let sent = count("sent");
    // Never more than are due, however slow this machine is.
    assert!((1..=2003).contains(&sent), "{said}");
    assert_eq!(count("acknowledged"), sent);
    assert_eq!(count("bytes"), 201 * sent);
    assert!(said["latency_ms_p99"].as_f64() >= said["latency_ms_p50"].as_f64());
    let rows = |server: &TestServer| server.query("load").unwrap().0;
    let (first, second) = (rows(&ponds[0]), rows(&ponds[1]));
    assert_eq!((first.len() + second.len()) as u64, sent);
    // Two connections to the one, one to the other.
    assert!(!first.is_empty() && !second.is_empty());
    assert_eq!(first[0]["_msg"].as_str().unwrap().len(), 200);
}

#[test]
fn what_is_not_taken_is_counted() {
    let scratch = Scratch::new("load-refused").unwrap();
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    let address = server.url();
    server.kill();
    let (output, said) = load(&address, &["--rate", "100", "--for", "300ms"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert_eq!(said["acknowledged"], 0);
    assert_eq!(said["failed"], said["sent"]);
    assert!(said["last_error"].is_string());
}
