//! Brokers that ask who is there, over TLS.

use std::fs;
use std::path::Path;

use serde_json::json;

use crate::broker::{Broker, Client, USER};
use crate::pond::{Scratch, TestServer, wait_until};
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
        TestServer::start(program(), &data.path().join("data"), &extra).unwrap()
    };
    for mechanism in ["scram-sha-512", "plain"] {
        say(mechanism, password);
        let data = Scratch::new("kafka-security").unwrap();
        let server = start(&data);
        wait_until("all is read", || {
            server.metric("logpond_kafka_stored_total").unwrap() >= 100.0
        })
        .unwrap();
        assert!(server.terminate().unwrap().success());
    }
    say("scram-sha-512", "something else");
    let data = Scratch::new("kafka-security").unwrap();
    let server = start(&data);
    server.said("authentication error");
    assert!(
        !server.stderr().contains("something else"),
        "{}",
        server.stderr()
    );
    assert!(server.metric("logpond_kafka_errors_total").unwrap() >= 1.0);
    assert!(server.terminate().unwrap().success());
    say("scram-sha-512", password);
    rights_are_missed(&broker, &mut client, &file);
}

/// What a user may not read is said, though a broker answers as if there were nothing new.
fn rights_are_missed(broker: &Broker, client: &mut Client, security: &Path) {
    let user = format!("User:{}", USER.0);
    for (topic, right) in [("unread", "READ"), ("hidden", "DESCRIBE")] {
        client.call(json!({"do": "create", "topic": topic, "partitions": 1}));
        client.call(json!({"do": "deny", "topic": topic, "user": user, "right": right}));
        client.call(json!({"do": "send", "topic": topic, "from": 0, "to": 10, "partitions": 1}));
    }
    let [unread, hidden] =
        ["unread", "hidden"].map(|topic| format!("{}/{topic}", broker.secure_address()));
    let security = security.display().to_string();
    let extra = [
        "--kafka",
        &unread,
        "--kafka",
        &hidden,
        "--kafka-security",
        &security,
    ];
    let data = Scratch::new("kafka-rights").unwrap();
    let server = TestServer::start(program(), &data.path().join("data"), &extra).unwrap();
    wait_until("it says what is missing", || {
        let said = server.stderr();
        said.contains("/hidden: there is no such topic, or the user may not describe it")
            && said.contains("/unread/0: there are messages from 0 on up to 10, and none come")
    })
    .unwrap();
    assert_eq!(server.metric("logpond_kafka_reading").unwrap(), 0.0);
    assert_eq!(server.metric("logpond_kafka_lag").unwrap(), 10.0);
    assert!(server.terminate().unwrap().success());
}
