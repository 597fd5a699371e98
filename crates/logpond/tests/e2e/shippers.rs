//! The clients of other systems, as programs use them: what they ship is stored, and they take the
//! answers for those of the systems that they know.

use std::path::Path;
use std::process::Command;

use crate::access::{certificate, create};
use crate::http::Client;
use crate::pond::{ALL_TIME, Scratch, TestServer, wait_until};
use crate::surroundings::{program, python};

/// Has a client ship so many records to HTTP.
fn ship(python: &Path, server: &TestServer, kind: &str, count: usize) {
    ship_to(python, &server.url(), kind, count);
}

/// Has a client ship so many records.
fn ship_to(python: &Path, address: &str, kind: &str, count: usize) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/ship_with_clients.py");
    let output = Command::new(python)
        .arg(script)
        .args([kind, address, &count.to_string()])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{kind}: {said}");
}

/// How many records match, in a complete answer.
fn count(server: &TestServer, q: &str) -> usize {
    let (rows, trailer) = server.query(q).unwrap();
    assert_eq!(trailer["complete"], true, "{trailer}");
    rows.len()
}

fn start(name: &str) -> (Scratch, TestServer) {
    let scratch = Scratch::new(name).unwrap();
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    (scratch, server)
}

#[test]
fn the_client_of_elasticsearch_ships_here() {
    let Some(python) = python("shippers") else {
        return;
    };
    let (_scratch, server) = start("elasticsearch");
    ship(&python, &server, "elasticsearch", 2000);
    assert_eq!(count(&server, "shipped"), 2000);
    assert_eq!(count(&server, "\"a single one\""), 1);
    assert_eq!(count(&server, "\"a named one\""), 3);
    assert_eq!(count(&server, "_document_id=\"a/b c\""), 1);
    assert_eq!(count(&server, "_document_id=7 OR _document_id=8"), 2);
    assert_eq!(
        count(&server, "host.name=web-1 number<1000 _index=logs-app"),
        333
    );
    assert_eq!(server.terminate().unwrap().code(), Some(0));
}

#[test]
fn the_client_of_loki_ships_here() {
    let Some(python) = python("shippers") else {
        return;
    };
    let (_scratch, server) = start("loki");
    ship(&python, &server, "loki", 200);
    assert_eq!(count(&server, "application=shop severity=warning"), 200);
    assert_eq!(count(&server, "number=17"), 1);
    assert_eq!(server.terminate().unwrap().code(), Some(0));
}

#[test]
fn the_clients_of_gelf_ship_here() {
    let Some(python) = python("shippers") else {
        return;
    };
    // Even counts are compressed.
    let ways = [
        ("gelf-udp", 200, "gelf_udp"),
        ("gelf-udp", 101, "gelf_udp"),
        ("gelf-tcp", 200, "gelf_tcp"),
        ("gelf-http", 50, "http"),
    ];
    for (kind, shipped, listener) in ways {
        let (_scratch, server) = start(kind);
        ship_to(&python, &server.address(listener), kind, shipped);
        // Senders over UDP and TCP are told nothing.
        wait_until("everything is here", || {
            server
                .query("app=shop")
                .is_ok_and(|(rows, _)| rows.len() == shipped + 2)
        })
        .unwrap();
        assert_eq!(count(&server, "severity=4 shipped"), shipped, "{kind}");
        assert_eq!(count(&server, "number=17 \"shipped 17\""), 1);
        assert_eq!(count(&server, "\"a long one\""), 1);
        // The text of the message, and that of the exception.
        assert_eq!(
            count(&server, "\"it failed\" AND \"ValueError: something odd\""),
            1
        );
        assert_eq!(
            server.metric("logpond_ingest_malformed_total").unwrap(),
            0.0
        );
        assert_eq!(server.metric("logpond_ingest_lost_total").unwrap(), 0.0);
        assert_eq!(server.terminate().unwrap().code(), Some(0));
    }
}

#[test]
fn the_client_of_fluentd_ships_here() {
    let Some(python) = python("shippers") else {
        return;
    };
    let (_scratch, server) = start("fluent-logger");
    ship_to(&python, &server.address("fluent"), "fluent", 500);
    // It waits for no acknowledgement.
    wait_until("everything is here", || {
        server
            .query("tag~/^shop/")
            .is_ok_and(|(rows, _)| rows.len() == 501)
    })
    .unwrap();
    assert_eq!(count(&server, "shipped level=WARNING"), 500);
    assert_eq!(count(&server, "number=17 \"shipped 17\" of.n:17"), 1);
    assert_eq!(count(&server, "tag=shop.orders order=7 paid=true"), 1);
    assert_eq!(
        server.metric("logpond_ingest_malformed_total").unwrap(),
        0.0
    );
    assert_eq!(server.terminate().unwrap().code(), Some(0));
}

#[test]
fn the_exporters_of_opentelemetry_ship_here() {
    let Some(python) = python("shippers") else {
        return;
    };
    let (_scratch, server) = start("opentelemetry");
    ship_to(&python, &server.address("otlp_grpc"), "otlp-grpc", 1000);
    ship(&python, &server, "otlp-http", 500);
    assert_eq!(
        count(&server, "shipped severity_text=WARN service.name=shop"),
        1500
    );
    assert_eq!(
        count(
            &server,
            "number=17 \"shipped 17\" _time>=2026-03-02T00:00:00Z"
        ),
        2
    );
    let metrics = server.get("/metrics").unwrap();
    assert!(metrics.contains("logpond_ingest_records_total{intake=\"otlp_grpc\"} 1000\n"));
    assert_eq!(server.terminate().unwrap().code(), Some(0));
}

/// With a token and encrypted, as other machines have to.
#[test]
fn the_library_of_grpc_reads_every_answer() {
    let Some(python) = python("shippers") else {
        return;
    };
    let scratch = Scratch::new("grpc").unwrap();
    let data = scratch.path().join("data");
    let (writer, reader) = (create(&data, "write"), create(&data, "read"));
    let path = |name: &str| scratch.path().join(name).to_str().unwrap().to_owned();
    certificate(Path::new(&path("ca")), Path::new(&path("node")));
    let (pem, key) = (path("node/node.pem"), path("node/node.key"));
    let tls = ["--tls-certificate", &pem, "--tls-key", &key];
    for tls in [&[][..], &tls] {
        let all = [&["--require-token", "--line-bytes-max", "2MiB"], tls].concat();
        let server = TestServer::start(program(), &data, &all).unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/ship_with_clients.py");
        let mut command = Command::new(&python);
        command
            .arg(script)
            .args(["grpc", &server.address("otlp_grpc"), "2097152"])
            .env("TOKEN", writer.trim())
            .env("READER", reader.trim());
        if !tls.is_empty() {
            command.env("CA", path("ca/ca.pem"));
        }
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        assert_eq!(server.terminate().unwrap().code(), Some(0));
    }
    let server = TestServer::start(program(), &data, &[]).unwrap();
    // Each of three compressions, and one beside what was too long; twice.
    assert_eq!(count(&server, "\"by gRPC\""), 8);
    let target = format!("/api/v1/query?{ALL_TIME}&count=true&q=yyyy");
    let counted = server.get(&target).unwrap();
    assert!(counted.contains("\"rows\":80"), "{counted}");
    assert_eq!(count(&server, "\"not by\""), 0);
}

#[test]
fn the_client_of_elasticsearch_reads_here() {
    let Some(python) = python("shippers") else {
        return;
    };
    let (_scratch, server) = start("elasticsearch-reads");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/read_with_elasticsearch.py");
    let output = Command::new(python)
        .arg(script)
        .arg(server.url())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert_eq!(server.terminate().unwrap().code(), Some(0));
}

#[test]
fn apis_of_others_have_ports_of_their_own() {
    let Some(python) = python("shippers") else {
        return;
    };
    let scratch = Scratch::new("ports").unwrap();
    let any = "127.0.0.1:0";
    let flags = ["--loki", "--elasticsearch", "--otlp-http", "--splunk"];
    let flags: Vec<_> = flags.iter().flat_map(|flag| [*flag, any]).collect();
    let server = TestServer::start(program(), &scratch.path().join("data"), &flags).unwrap();
    let ways = [
        ("loki", "loki", 50),
        ("elasticsearch", "elasticsearch", 100),
        ("otlp_http", "otlp-http", 100),
    ];
    for (listener, kind, shipped) in ways {
        let url = format!("http://{}", server.address(listener));
        ship_to(&python, &url, kind, shipped);
    }
    assert_eq!(count(&server, "shipped"), 250);
    let splunk = server.address("splunk");
    let mut client = Client::connect(&splunk).unwrap();
    let event = br#"{"event":"by Splunk"}"#;
    let answer = client
        .send("POST", "/services/collector", &[], event)
        .unwrap();
    assert_eq!(answer.status, 200);
    assert_eq!(count(&server, "\"by Splunk\""), 1);
    assert_eq!(server.terminate().unwrap().code(), Some(0));
}
