//! Backups of a server that goes on, and servers of what was restored.

use std::fs;
use std::net::SocketAddr;

use logpond_bucket::{Location, Store};

use super::super::Server;
use super::client::{compact, get, push};
use super::{TestServer, settings};
use logpond_engine::backup::{BackupReport, Job, Progress, make, restore};
use logpond_host::clock;
use logpond_host::disk::RealDisk;

fn add(http: SocketAddr, numbers: std::ops::Range<u64>) {
    let lines = numbers.map(|n| format!("{{\"time\":\"2026-03-02T00:00:00Z\",\"n\":{n}}}\n"));
    let body: String = lines.collect();
    let answer = push(http, "application/x-ndjson", body.as_bytes());
    assert_eq!(answer.status, 200);
}

/// Closes the journal and makes a segment of it.
fn count(http: SocketAddr) -> u64 {
    let (_, trailer) = get(http, "/api/v1/query?from=@0&count=true").rows();
    assert_eq!(trailer["complete"], true);
    trailer["rows"].as_u64().unwrap()
}

fn back_up(pond: &TestServer, store: &Store, nonce: u128) -> BackupReport {
    make(&Job {
        disk: &RealDisk::open(pond.directory.path()).unwrap(),
        objects: store,
        host: "ash",
        now: clock::now(),
        nonce,
        progress: &Progress::default(),
    })
    .unwrap()
}

#[test]
fn a_server_answers_from_what_was_restored() {
    let place = tempfile::tempdir().unwrap();
    let location = Location::Directory(place.path().to_owned());
    let store = Store::open(&location, &[]).unwrap();
    let mut pond = TestServer::new();
    add(pond.http(), 0..300);
    compact(pond.http());
    add(pond.http(), 300..400);
    let first = back_up(&pond, &store, 1);
    // The second batch is in the open file, unless that has been closed in the meantime.
    let rows = first.snapshot.rows();
    assert_eq!(rows + first.snapshot.left_out.open_rows, 400);
    assert!(rows >= 300);
    compact(pond.http());
    add(pond.http(), 400..450);
    pond.stop();
    let second = back_up(&pond, &store, 2);
    assert_eq!(second.snapshot.rows(), 450);

    let restored = tempfile::tempdir().unwrap();
    let name = second.name.to_string();
    let progress = Progress::default();
    restore(&store, "file:/place", &name, restored.path(), &progress).unwrap();
    let reached = progress.reached();
    assert_eq!(reached.files, second.snapshot.files.len() as u64);
    assert_eq!(reached.bytes, second.snapshot.bytes());
    assert_eq!(
        (reached.files_total, reached.bytes_total),
        (reached.files, reached.bytes)
    );
    let server = Server::start(&settings(restored.path())).unwrap();
    assert_eq!(count(server.addresses().http), 450);
    add(server.addresses().http, 450..460);
    compact(server.addresses().http);
    assert_eq!(count(server.addresses().http), 460);
    server.stop();
    server.join().unwrap();

    fs::write(restored.path().join("restoring"), "it").unwrap();
    let error = Server::start(&settings(restored.path())).err().unwrap();
    let text = logpond_host::terminal::with_causes(&error);
    assert!(text.contains("a restore of it was not finished"), "{text}");
}
