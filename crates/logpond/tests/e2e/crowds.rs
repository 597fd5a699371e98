//! Clients that keep a server busy, or its places taken, without any use of it: others are served all the same.

use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::pond::{ALL_TIME, Scratch, TestServer};
use crate::surroundings::program;

/// Of the places for queries, those that followers may have.
const FOLLOWERS_MAX: usize = 48;

/// Sends the same bytes over and over, and reads nothing, until it is told to end.
fn flood(address: &str, bytes: &[u8], is_over: &AtomicBool) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .set_write_timeout(Some(Duration::from_millis(100)))
        .unwrap();
    let block = bytes.repeat((64 << 10) / bytes.len());
    while !is_over.load(Ordering::Relaxed) {
        match stream.write(&block) {
            Err(error) if !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                // The server may end such a connection.
                return;
            }
            _ => {}
        }
    }
}

/// Each flood goes on until the server has answered others.
#[test]
fn a_flood_without_records_holds_nobody_up() {
    let scratch = Scratch::new("flood").unwrap();
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    let table: [(&str, &[u8]); 5] = [
        ("syslog_tcp", b"\n"),
        ("gelf_tcp", b"\0"),
        ("fast", b"x"),
        ("relp", b"1 x 0\n"),
        ("fluent", b"\x93"),
    ];
    for (listener, bytes) in table {
        let (address, is_over) = (server.address(listener), AtomicBool::new(false));
        thread::scope(|scope| {
            scope.spawn(|| flood(&address, bytes, &is_over));
            for _ in 0..3 {
                let healthy = server.get("/-/healthy");
                if healthy.is_err() {
                    is_over.store(true, Ordering::Relaxed);
                }
                healthy.unwrap_or_else(|error| panic!("{listener}: {error}"));
            }
            is_over.store(true, Ordering::Relaxed);
        });
    }
    assert_eq!(server.terminate().unwrap().code(), Some(0));
}

/// The server may hold so many bytes of records that are not whole, of all connections together.
const UNFINISHED_BYTES_MAX: usize = 64 << 20;

/// Waits until the server ends one of these connections.
fn one_ends(connections: &[TcpStream]) -> bool {
    let (ended, ends) = mpsc::channel();
    thread::scope(|scope| {
        for mut stream in connections {
            let ended = ended.clone();
            scope.spawn(move || {
                let read = stream.read(&mut [0; 64]);
                let is_reset = |error: &Error| error.kind() == ErrorKind::ConnectionReset;
                if matches!(read, Ok(0)) || read.as_ref().is_err_and(is_reset) {
                    // Only the first one is waited for.
                    let _ = ended.send(());
                }
            });
        }
        let has_ended = ends.recv_timeout(Duration::from_secs(60)).is_ok();
        for stream in connections {
            // Ends the reading of those that are still open.
            let _ = stream.shutdown(Shutdown::Both);
        }
        has_ended
    })
}

/// Connections of the same kind hold more than that together: some of them end.
#[test]
fn parts_of_records_share_their_memory() {
    let scratch = Scratch::new("parts-of-records").unwrap();
    let options = ["--line-bytes-max", "4MiB"];
    let server = TestServer::start(program(), &scratch.path().join("data"), &options).unwrap();
    // A message of the Forward protocol begins with an array, and a tag of 16 MiB.
    let table: [(&str, &[u8], usize); 3] = [
        ("syslog_tcp", b"<13>1 - - a - - - ", 1 << 20),
        ("gelf_tcp", b"{\"short_message\":\"", 1 << 20),
        ("fluent", b"\x93\xdb\x01\0\0\0", 192 << 10),
    ];
    for (listener, begin, bytes) in table {
        let address = server.address(listener);
        let part = [begin, &vec![b'x'; bytes]].concat();
        let count = UNFINISHED_BYTES_MAX / bytes + 8;
        let connections = (0..count).map(|_| {
            let mut stream = TcpStream::connect(&address).unwrap();
            stream.write_all(&part).unwrap();
            stream
        });
        let connections: Vec<TcpStream> = connections.collect();
        assert!(one_ends(&connections), "{listener}");
        server.get("/-/healthy").unwrap();
    }
    assert_eq!(server.terminate().unwrap().code(), Some(0));
}

/// Begins to follow; gives the connection and the status of the answer.
fn follow(server: &TestServer) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(server.address("http")).unwrap();
    let request = format!(
        "GET /api/v1/query?{ALL_TIME}&follow=true&q=nothing HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut status = String::new();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    reader.by_ref().read_line(&mut status).unwrap();
    (stream, status)
}

#[test]
fn queries_are_answered_beside_idle_followers() {
    let scratch = Scratch::new("followers").unwrap();
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    server.push("text/plain", b"something\n").unwrap();
    let followers: Vec<_> = (0..FOLLOWERS_MAX).map(|_| follow(&server)).collect();
    assert!(followers.iter().all(|(_, status)| status.contains("200")));
    let (_, status) = follow(&server);
    assert!(status.contains("429"), "{status}");
    let (rows, _) = server.query("something").unwrap();
    assert_eq!(rows.len(), 1);
    drop(followers);
    assert_eq!(server.terminate().unwrap().code(), Some(0));
}
