//! Chunks of the Forward protocol to a server that is killed again and again: what was acknowledged is
//! there, and what was sent again is there once.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::TcpStream;

use crate::pond::{Scratch, TestServer};
use crate::resends::{assert_each_once, line};
use crate::surroundings::{program, say};

/// Chunks that are sent, and lines of each.
const CHUNKS: usize = 600;
const CHUNK_LINES: usize = 20;

/// Chunks on their way before an acknowledgement is waited for.
const WINDOW: usize = 12;

/// How often the server is killed.
const KILLS: usize = 6;

fn text(value: &str) -> Vec<u8> {
    [
        &[0xdb][..],
        &(value.len() as u32).to_be_bytes(),
        value.as_bytes(),
    ]
    .concat()
}

/// `[tag, entries, {"chunk": name}]`
fn chunk(number: usize) -> Vec<u8> {
    let lines = number * CHUNK_LINES..(number + 1) * CHUNK_LINES;
    let entries: Vec<u8> = lines
        .flat_map(|n| {
            let record = [vec![0x81], text("log"), text(&line(n))].concat();
            [&[0x92][..], b"\xd7\0\x69\xa4\xd3\0\0\0\0\0", &record].concat()
        })
        .collect();
    let length = (entries.len() as u32).to_be_bytes();
    let packed = [&[0xc6][..], &length, &entries].concat();
    let option = [vec![0x81], text("chunk"), text(&name(number))].concat();
    [vec![0x93], text("app"), packed, option].concat()
}

/// As long as the names that Fluentd gives.
fn name(number: usize) -> String {
    format!("chunk-{number:018}")
}

/// Reads an acknowledgement; whether one came.
fn is_acknowledged(stream: &mut TcpStream, number: usize) -> bool {
    let expected = [&b"\x81\xa3ack\xb8"[..], name(number).as_bytes()].concat();
    let mut answer = vec![0; expected.len()];
    let came = stream.read_exact(&mut answer).is_ok();
    assert!(!came || answer == expected, "{}", answer.escape_ascii());
    came
}

#[test]
fn chunks_to_a_killed_server_are_there_once() {
    let scratch = Scratch::new("fluent").unwrap();
    let data = scratch.path().join("data");
    let start = || {
        let server = TestServer::start(program(), &data, &[]).unwrap();
        let stream = TcpStream::connect(server.address("fluent")).unwrap();
        (server, stream)
    };
    let (mut server, mut stream) = start();
    let (mut next, mut acknowledged, mut kills, mut resent) = (0, 0, 0, 0);
    let mut waiting = VecDeque::new();
    let mut known = 0.0;
    while acknowledged < CHUNKS {
        while waiting.len() < WINDOW && next < CHUNKS {
            // What a killed server was sent is sent again, whether it came or not.
            let _ = stream.write_all(&chunk(next));
            waiting.push_back(next);
            next += 1;
        }
        if kills < KILLS && acknowledged >= (kills + 1) * CHUNKS / (KILLS + 1) {
            kills += 1;
            known += server.metric("logpond_ingest_resends_known_total").unwrap();
            // What was taken so far goes into segments; all of it is acknowledged then, and the client
            // does not hear of it.
            let is_heard = kills % 2 == 1;
            if !is_heard {
                server.compact().unwrap();
            }
            server.kill();
            // Acknowledgements that were on their way count.
            while is_heard
                && waiting
                    .front()
                    .is_some_and(|n| is_acknowledged(&mut stream, *n))
            {
                waiting.pop_front();
                acknowledged += 1;
            }
            (server, stream) = start();
            resent += waiting.len();
            for number in &waiting {
                stream.write_all(&chunk(*number)).unwrap();
            }
        }
        let Some(number) = waiting.pop_front() else {
            continue;
        };
        assert!(is_acknowledged(&mut stream, number), "chunk {number}");
        acknowledged += 1;
    }
    known += server.metric("logpond_ingest_resends_known_total").unwrap();
    assert_eq!(acknowledged, CHUNKS);
    assert_each_once(&server, CHUNKS * CHUNK_LINES);
    say(&format!(
        "fluent: {CHUNKS} chunks, {kills} kills, {resent} chunks sent again, {known} of them known"
    ));
    assert!(kills == KILLS && resent > 0);
    server.compact().unwrap();
    assert_each_once(&server, CHUNKS * CHUNK_LINES);
    assert_eq!(server.terminate().unwrap().code(), Some(0));
}
