//! A sender that speaks RELP and sends again what was not acknowledged to it, after restarts and compactions.

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::pond::{ALL_TIME, Scratch, TestServer, wait_until};
use crate::surroundings::program;

/// An open, and messages of these numbers.
fn frames(numbers: std::ops::Range<usize>) -> String {
    let mut frames = String::from("1 open 15 commands=syslog\n");
    for number in numbers {
        let message = format!("<13>1 2026-03-02T00:00:00.{number:06}Z ash app - - - relp {number}");
        let length = message.len();
        frames.push_str(&format!("{} syslog {length} {message}\n", number + 2));
    }
    frames
}

/// Sends messages, and is cut off before it reads what became of them. They are stored then.
fn send(server: &TestServer, numbers: std::ops::Range<usize>) {
    let mut stream = TcpStream::connect(server.address("relp")).unwrap();
    let last = numbers.end + 1;
    stream.write_all(frames(numbers).as_bytes()).unwrap();
    let mut said = String::new();
    let mut buffer = [0; 4096];
    while !said.contains(&format!("\n{last} rsp ")) {
        let read = stream.read(&mut buffer).unwrap();
        assert!(read > 0, "{said}");
        said.push_str(&String::from_utf8_lossy(&buffer[..read]));
    }
}

fn count(server: &TestServer) -> usize {
    let target = format!("/api/v1/query?{ALL_TIME}&count=true&q=relp");
    let answer = server.get(&target).unwrap();
    let trailer: serde_json::Value = serde_json::from_str(answer.lines().last().unwrap()).unwrap();
    trailer["_trailer"]["rows"].as_u64().unwrap() as usize
}

#[test]
fn what_is_sent_again_after_restarts_and_compactions_is_there_once() {
    let scratch = Scratch::new("relp-resends").unwrap();
    let data = scratch.path().join("data");
    let mut stored = 20;
    let mut server = TestServer::start(program(), &data, &[]).unwrap();
    send(&server, 0..stored);
    assert_eq!(count(&server), stored);
    // Restarts in order, a compaction, and kills.
    for steps in ["rr", "c", "cr", "rcr", "k", "kk", "ckk"] {
        for step in steps.chars() {
            match step {
                'c' => server.compact().unwrap(),
                'k' => {
                    server.kill();
                    server = TestServer::start(program(), &data, &[]).unwrap();
                }
                _ => {
                    server.terminate().unwrap();
                    server = TestServer::start(program(), &data, &[]).unwrap();
                }
            }
        }
        // The last ten again, and five new ones behind them.
        send(&server, stored - 10..stored + 5);
        stored += 5;
        wait_until("they are there", || count(&server) >= stored).unwrap();
        assert_eq!(count(&server), stored, "after {steps}");
    }
}

/// A client that is cut off, and back before its messages are on the disk, or even read.
#[test]
fn what_is_sent_again_while_it_is_on_its_way_is_there_once() {
    const EACH: usize = 1000;
    let scratch = Scratch::new("relp-on-its-way").unwrap();
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    for round in 1..=10 {
        let numbers = (round - 1) * EACH..round * EACH;
        let mut stream = TcpStream::connect(server.address("relp")).unwrap();
        let sent = frames(numbers.clone());
        stream.write_all(sent.as_bytes()).unwrap();
        drop(stream);
        send(&server, numbers);
        assert_eq!(count(&server), round * EACH);
    }
}
