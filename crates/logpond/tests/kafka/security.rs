//! Brokers that ask who is there, over TLS.

use std::fs;

use serde_json::json;

use crate::broker::{Broker, USER};
use crate::pond::{Pond, Scratch, wait_until};
use crate::surroundings::program;

#[test]
fn brokers_are_told_who_we_are() {
    let what = "reading from Kafka over TLS";
    let Some(broker) = Broker::start(what) else {
        return;
    };
    let Some(mut client) = broker.client(what) else {
        return;
    };
    client.call(json!({"do": "create", "topic": "secret", "partitions": 1}));
    client.call(json!({"do": "send", "topic": "secret", "from": 0, "to": 100, "partitions": 1}));
    let kafka = format!("{}/secret", broker.secure_address());
    let file = broker.directory().join("security.toml");
    let (user, password) = USER;
    let say = |mechanism: &str, password: &str| {
        let ca = broker.certificate.display();
        let text = format!(
            "tls = true\nca = \"{ca}\"\n[sasl]\nmechanism = \"{mechanism}\"\nuser = \"{user}\"\n\
             password = \"{password}\"\n"
        );
        fs::write(&file, text).unwrap();
    };
    let start = |data: &Scratch| {
        let security = file.display().to_string();
        let extra = ["--kafka", &kafka, "--kafka-security", &security];
        Pond::start(program(), &data.path().join("data"), &extra).unwrap()
    };
    for mechanism in ["scram-sha-512", "plain"] {
        say(mechanism, password);
        let data = Scratch::new("kafka-security").unwrap();
        let pond = start(&data);
        wait_until("all is read", || {
            pond.metric("logpond_kafka_stored_total").unwrap() >= 100.0
        })
        .unwrap();
        assert!(pond.terminate().unwrap().success());
    }
    say("scram-sha-512", "something else");
    let data = Scratch::new("kafka-security").unwrap();
    let pond = start(&data);
    wait_until("it says so", || {
        pond.stderr().contains("authentication error")
    })
    .unwrap();
    assert!(
        !pond.stderr().contains("something else"),
        "{}",
        pond.stderr()
    );
    assert!(pond.metric("logpond_kafka_errors_total").unwrap() >= 1.0);
    assert!(pond.terminate().unwrap().success());
}
