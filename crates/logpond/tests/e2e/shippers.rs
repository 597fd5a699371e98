//! The clients of other systems, as programs use them: what they ship is stored, and they take the
//! answers for those of the systems that they know.

use std::path::Path;
use std::process::Command;

use crate::pond::{Pond, Scratch, wait_until};
use crate::surroundings::{program, python};

/// Has a client ship so many records to HTTP.
fn ship(python: &Path, pond: &Pond, kind: &str, count: usize) {
    ship_to(python, &pond.url(), kind, count);
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
fn count(pond: &Pond, q: &str) -> usize {
    let (rows, trailer) = pond.query(q).unwrap();
    assert_eq!(trailer["complete"], true, "{trailer}");
    rows.len()
}

fn start(name: &str) -> (Scratch, Pond) {
    let scratch = Scratch::new(name).unwrap();
    let pond = Pond::start(program(), &scratch.path().join("data"), &[]).unwrap();
    (scratch, pond)
}

#[test]
fn the_client_of_elasticsearch_ships_here() {
    let Some(python) = python("shippers") else {
        return;
    };
    let (_scratch, pond) = start("elasticsearch");
    ship(&python, &pond, "elasticsearch", 2000);
    assert_eq!(count(&pond, "shipped"), 2000);
    assert_eq!(count(&pond, "\"a single one\""), 1);
    assert_eq!(
        count(&pond, "host.name=web-1 number<1000 _index=logs-app"),
        333
    );
    assert_eq!(pond.terminate().unwrap().code(), Some(0));
}

#[test]
fn the_client_of_loki_ships_here() {
    let Some(python) = python("shippers") else {
        return;
    };
    let (_scratch, pond) = start("loki");
    ship(&python, &pond, "loki", 200);
    assert_eq!(count(&pond, "application=shop severity=warning"), 200);
    assert_eq!(count(&pond, "number=17"), 1);
    assert_eq!(pond.terminate().unwrap().code(), Some(0));
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
        let (_scratch, pond) = start(kind);
        ship_to(&python, &pond.address(listener), kind, shipped);
        // Senders over UDP and TCP are told nothing.
        wait_until("everything is here", || {
            pond.query("app=shop")
                .is_ok_and(|(rows, _)| rows.len() == shipped + 2)
        })
        .unwrap();
        assert_eq!(count(&pond, "severity=4 shipped"), shipped, "{kind}");
        assert_eq!(count(&pond, "number=17 \"shipped 17\""), 1);
        assert_eq!(count(&pond, "\"a long one\""), 1);
        // The text of the message, and that of the exception.
        assert_eq!(
            count(&pond, "\"it failed\" AND \"ValueError: something odd\""),
            1
        );
        assert_eq!(pond.metric("logpond_ingest_malformed_total").unwrap(), 0.0);
        assert_eq!(pond.metric("logpond_ingest_lost_total").unwrap(), 0.0);
        assert_eq!(pond.terminate().unwrap().code(), Some(0));
    }
}

#[test]
fn the_client_of_fluentd_ships_here() {
    let Some(python) = python("shippers") else {
        return;
    };
    let (_scratch, pond) = start("fluent-logger");
    ship_to(&python, &pond.address("fluent"), "fluent", 500);
    // It waits for no acknowledgement.
    wait_until("everything is here", || {
        pond.query("tag~/^shop/")
            .is_ok_and(|(rows, _)| rows.len() == 501)
    })
    .unwrap();
    assert_eq!(count(&pond, "shipped level=WARNING"), 500);
    assert_eq!(count(&pond, "number=17 \"shipped 17\" of.n:17"), 1);
    assert_eq!(count(&pond, "tag=shop.orders order=7 paid=true"), 1);
    assert_eq!(pond.metric("logpond_ingest_malformed_total").unwrap(), 0.0);
    assert_eq!(pond.terminate().unwrap().code(), Some(0));
}
