use std::io::{Read, Write};

use super::client::{begin, connect, get, push, read_chunk};
use super::{TestServer, settings};
use crate::serve::{ServeError, Server};
use logpond_host::telemetry::Intake;

#[test]
fn the_drain_keeps_what_was_sent_and_the_next_start_finds_it() {
    let mut server = TestServer::new();
    assert_eq!(push(server.http(), "text/plain", b"by http\n").status, 200);
    let mut fast = connect(server.address(Intake::Fast));
    fast.write_all(b"fast\nwithout end").unwrap();
    let mut durable = connect(server.address(Intake::Durable));
    durable.write_all(b"durable\n").unwrap();
    let mut ok = [0; 5];
    durable.read_exact(&mut ok).unwrap();
    assert_eq!(&ok, b"OK 1\n");
    server.restart();
    for stream in [&mut fast, &mut durable] {
        assert_eq!(
            stream.read(&mut [0; 8]).unwrap(),
            0,
            "open connections are closed in order"
        );
    }
    let (rows, trailer) = get(server.http(), "/api/v1/query").rows();
    let mut found: Vec<_> = rows.iter().map(|r| r["_msg"].as_str().unwrap()).collect();
    found.sort_unstable();
    assert_eq!(
        found,
        ["by http", "durable", "fast", "without end"],
        "{trailer}"
    );
    let recovered = server.server().recovered();
    assert_eq!(
        (recovered.closed.len(), recovered.cuts.len()),
        (1, 0),
        "closed in order"
    );
}

#[test]
fn a_thread_that_panicked_does_not_keep_the_others_from_their_end() {
    let directory = tempfile::tempdir().unwrap();
    let mut server = Server::start(&settings(directory.path())).unwrap();
    assert_eq!(
        push(server.addresses().http, "text/plain", b"x\n").status,
        200
    );
    let panicking = std::thread::spawn(|| panic!("a defect"));
    server.members.insert(0, panicking);
    server.stop();
    assert!(matches!(server.join(), Err(ServeError::Panic)));
    let server = Server::start(&settings(directory.path())).unwrap();
    let recovered = server.recovered();
    assert_eq!((recovered.closed.len(), recovered.cuts.len()), (1, 0));
    server.stop();
    server.join().unwrap();
}

#[test]
fn a_followed_query_ends_with_its_trailer() {
    let mut server = TestServer::new();
    push(server.http(), "text/plain", b"x\n");
    let mut reader = begin(server.http(), "/api/v1/query?follow=true");
    assert!(read_chunk(&mut reader).is_some());
    server.stop();
    let last = read_chunk(&mut reader).expect("a trailer");
    let last: serde_json::Value = serde_json::from_slice(&last).unwrap();
    // It counts what was sent, and says that more might have come.
    assert_eq!(last["_trailer"]["rows"], 1, "{last}");
    assert_eq!(last["_trailer"]["complete"], false, "{last}");
    assert!(read_chunk(&mut reader).is_none());
}

#[test]
fn a_port_in_use_names_the_flag_and_a_directory_in_use_the_directory() {
    let server = TestServer::new();
    let directory = tempfile::tempdir().unwrap();
    let mut taken = settings(directory.path());
    let fast = server.address(Intake::Fast);
    taken.listeners.set(Intake::Fast, Some(fast));
    let error = Server::start(&taken).err().unwrap();
    assert!(matches!(error, ServeError::Bind(_)), "{error:?}");
    assert!(error.to_string().contains("(--fast)") && error.to_string().contains("in use"));
    let error = Server::start(&settings(server.directory.path()))
        .err()
        .unwrap();
    assert!(matches!(&error, ServeError::Data(_)), "{error:?}");
}
