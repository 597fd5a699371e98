//! Clients of the Forward protocol, byte by byte.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream, UdpSocket};

use aws_lc_rs::digest::{SHA512, digest};
use serde_json::Value;

use super::client::{PATIENCE, compact, connect, get};
use super::lines::wait_for_count;
use super::{Server, TestServer, settings};
use logpond_host::telemetry::Intake;

fn fluent(pond: &TestServer) -> TcpStream {
    connect(pond.address(Intake::Fluent))
}

fn text(value: &str) -> Vec<u8> {
    let length = u8::try_from(value.len()).unwrap();
    [&[0xd9, length], value.as_bytes()].concat()
}

fn bytes(value: &[u8]) -> Vec<u8> {
    let length = u32::try_from(value.len()).unwrap().to_be_bytes();
    [&[0xc6][..], &length, value].concat()
}

fn list(values: &[Vec<u8>]) -> Vec<u8> {
    [vec![0x90 | values.len() as u8], values.concat()].concat()
}

fn map(members: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let members = members
        .iter()
        .map(|(name, value)| [text(name), value.clone()].concat());
    let members: Vec<_> = members.collect();
    [vec![0x80 | members.len() as u8], members.concat()].concat()
}

/// An entry of 2026-03-02T00:00:00Z.
fn entry(line: &str) -> Vec<u8> {
    let time = b"\xd7\0\x69\xa4\xd3\0\0\0\0\x07".to_vec();
    list(&[time, map(&[("log", text(line))])])
}

fn chunk(name: &str, lines: &[&str]) -> Vec<u8> {
    let entries: Vec<_> = lines.iter().flat_map(|line| entry(line)).collect();
    list(&[text("app"), bytes(&entries), map(&[("chunk", text(name))])])
}

/// The bytes of an acknowledgement, as the server writes short names.
fn ack(name: &str) -> Vec<u8> {
    let name = name.as_bytes();
    [b"\x81\xa3ack", &[0xa0 | name.len() as u8][..], name].concat()
}

fn read(stream: &mut TcpStream, expected: &[u8]) {
    let mut answer = vec![0; expected.len()];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(
        answer.escape_ascii().to_string(),
        expected.escape_ascii().to_string()
    );
}

fn rest(stream: &mut TcpStream) -> Vec<u8> {
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    rest
}

fn records(pond: &TestServer) -> Vec<Value> {
    let (rows, trailer) = get(pond.http(), "/api/v1/query?from=@0&to=2100-01-01").rows();
    assert_eq!(trailer["complete"], true, "{trailer}");
    rows
}

fn words(pond: &TestServer) -> Vec<String> {
    let rows = records(pond);
    let words = rows
        .iter()
        .map(|row| row["_msg"].as_str().unwrap().to_owned());
    let mut words: Vec<_> = words.collect();
    words.sort();
    words
}

#[test]
fn chunks_are_acknowledged_once_they_are_durable() {
    let pond = TestServer::new();
    let mut stream = fluent(&pond);
    stream.write_all(&chunk("c1", &["one", "two"])).unwrap();
    read(&mut stream, &ack("c1"));
    let rows = records(&pond);
    assert_eq!(words(&pond), ["one", "two"]);
    assert!(rows.iter().all(|row| row["tag"] == "app"
        && row["hostname"] == *logpond_host::hostname::own()
        && row["_time"] == "2026-03-02T00:00:00.000000007Z"));
    // Several on their way, cut anywhere, with a sign of life between them.
    let stream_of = [chunk("c2", &["three"]), vec![0xc0], chunk("c3", &["four"])].concat();
    for part in stream_of.chunks(7) {
        stream.write_all(part).unwrap();
    }
    read(&mut stream, &[ack("c2"), ack("c3")].concat());
    assert_eq!(words(&pond), ["four", "one", "three", "two"]);
    // A long one, which needs a slot.
    let long = "x".repeat(250);
    let lines = vec![&*long; 5000];
    stream.write_all(&chunk("c4", &lines)).unwrap();
    read(&mut stream, &ack("c4"));
    assert_eq!(words(&pond).len(), 5004);
}

#[test]
fn a_chunk_that_is_sent_again_counts_once() {
    let mut pond = TestServer::new();
    let first = chunk("c1", &["one", "two"]);
    let mut stream = fluent(&pond);
    stream.write_all(&first).unwrap();
    read(&mut stream, &ack("c1"));
    stream.write_all(&first).unwrap();
    read(&mut stream, &ack("c1"));
    let mut other = fluent(&pond);
    other.write_all(&[&first[..], &first].concat()).unwrap();
    read(&mut other, &[ack("c1"), ack("c1")].concat());
    assert_eq!(words(&pond), ["one", "two"]);
    // When its records are in a segment, too.
    compact(pond.http());
    other.write_all(&first).unwrap();
    read(&mut other, &ack("c1"));
    assert_eq!(words(&pond), ["one", "two"]);
    // The same name with other records is another chunk.
    other.write_all(&chunk("c1", &["three"])).unwrap();
    read(&mut other, &ack("c1"));
    assert_eq!(words(&pond), ["one", "three", "two"]);
    // And after a restart.
    let last = chunk("c2", &["four"]);
    other.write_all(&last).unwrap();
    read(&mut other, &ack("c2"));
    drop((stream, other));
    pond.restart();
    let mut stream = fluent(&pond);
    stream.write_all(&last).unwrap();
    read(&mut stream, &ack("c2"));
    assert_eq!(words(&pond), ["four", "one", "three", "two"]);
    // When only a segment tells, too.
    pond.restart();
    let (_, trailer) = get(
        pond.http(),
        "/api/v1/query?count=true&from=@0&to=2100-01-01",
    )
    .rows();
    assert_eq!(trailer["rows"], 4);
    let mut stream = fluent(&pond);
    stream.write_all(&first).unwrap();
    read(&mut stream, &ack("c1"));
    assert_eq!(words(&pond), ["four", "one", "three", "two"]);
}

#[test]
fn without_a_chunk_nothing_is_answered() {
    let pond = TestServer::new();
    let mut stream = fluent(&pond);
    let message = list(&[text("app"), vec![0], map(&[("message", text("by one"))])]);
    stream
        .write_all(&[&message[..], &message, b"\xc0"].concat())
        .unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    assert_eq!(rest(&mut stream), b"");
    wait_for_count(&pond, 2);
}

#[test]
fn what_is_no_message_ends_the_connection_and_is_not_acknowledged() {
    let pond = TestServer::new();
    for bad in [
        b"\xc1".to_vec(),
        b"\x07".to_vec(),
        b"\xdd\xff\xff\xff\xff".to_vec(),
        list(&[text("app"), bytes(b"\xc1"), map(&[("chunk", text("c2"))])]),
    ] {
        let mut stream = fluent(&pond);
        let good = chunk("c1", &["good"]);
        // What came before it is taken.
        stream.write_all(&good).unwrap();
        read(&mut stream, &ack("c1"));
        stream.write_all(&bad).unwrap();
        assert_eq!(rest(&mut stream), b"", "{}", bad.escape_ascii());
    }
    assert_eq!(words(&pond), ["good"]);
    let metrics = String::from_utf8(get(pond.http(), "/metrics").body).unwrap();
    assert!(metrics.contains("logpond_ingest_malformed_total{intake=\"fluent\"} 4\n"));
}

fn hash(parts: &[&[u8]]) -> String {
    let digest = digest(&SHA512, &parts.concat());
    digest
        .as_ref()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// The nonce and the salt of a greeting.
fn greeting(stream: &mut TcpStream, user_salt_bytes: usize) -> (Vec<u8>, Vec<u8>) {
    let mut until = |marker: &[u8]| {
        let mut seen = Vec::new();
        while !seen.ends_with(marker) {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            seen.push(byte[0]);
        }
    };
    until(b"\x92\xa4HELO\x83\xa5nonce\xc6\0\0\0\x10");
    let mut nonce = vec![0; 16];
    stream.read_exact(&mut nonce).unwrap();
    let mut head = [0; 10];
    stream.read_exact(&mut head).unwrap();
    assert_eq!(head[..6], *b"\xa4auth\xc6");
    assert_eq!(usize::from(head[9]), user_salt_bytes);
    let mut salt = vec![0; user_salt_bytes];
    stream.read_exact(&mut salt).unwrap();
    read(stream, b"\xa9keepalive\xc3");
    (nonce, salt)
}

#[test]
fn with_a_shared_key_clients_say_who_they_are() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("security.toml");
    std::fs::write(&path, "shared-key = \"key\"\n[users]\nann = \"secret\"\n").unwrap();
    let mut wanted = settings(&directory.path().join("data"));
    wanted.fluent_security = Some(path);
    let server = Server::start(&wanted).unwrap();
    let pond = TestServer {
        server: Some(server),
        directory,
    };
    let shake = |key: &str, password: &str| {
        let mut stream = fluent(&pond);
        let (nonce, salt) = greeting(&mut stream, 16);
        let proof = hash(&[b"s", b"client", &nonce, key.as_bytes()]);
        let password = hash(&[&salt, b"ann", password.as_bytes()]);
        let texts = ["PING", "client", "s", &proof, "ann", &password];
        stream.write_all(&list(&texts.map(text))).unwrap();
        (stream, nonce)
    };
    for (key, password, why) in [
        ("other", "secret", "shared_key mismatch"),
        ("key", "other", "username/password mismatch"),
    ] {
        let (mut stream, _) = shake(key, password);
        let answer = rest(&mut stream).escape_ascii().to_string();
        assert!(
            answer.starts_with("\\x95\\xa4PONG\\xc2") && answer.contains(why),
            "{answer}"
        );
    }
    let mut stream = fluent(&pond);
    greeting(&mut stream, 16);
    stream.write_all(&chunk("c1", &["not believed"])).unwrap();
    assert!(rest(&mut stream).starts_with(b"\x95\xa4PONG\xc2"));
    let (mut stream, nonce) = shake("key", "secret");
    let own = logpond_host::hostname::own();
    let proof = hash(&[b"s", own.as_bytes(), &nonce, b"key"]);
    read(&mut stream, b"\x95\xa4PONG\xc3\xa0");
    let mut rest_of_pong = vec![0; 1 + own.len() + 2 + proof.len()];
    stream.read_exact(&mut rest_of_pong).unwrap();
    assert!(rest_of_pong.ends_with(proof.as_bytes()));
    stream.write_all(&chunk("c1", &["believed"])).unwrap();
    read(&mut stream, &ack("c1"));
    let rows = records(&pond);
    assert_eq!(rows.len(), 1);
    assert_eq!(
        (&rows[0]["_msg"], &rows[0]["hostname"]),
        (&"believed".into(), &"client".into())
    );
}

#[test]
fn heartbeats_are_answered_on_the_same_port() {
    let pond = TestServer::new();
    let address = pond.address(Intake::Fluent);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.send_to(b"longer ones are not", address).unwrap();
    socket.send_to(&[0], address).unwrap();
    let mut answer = [9; 2];
    let (length, from) = socket.recv_from(&mut answer).unwrap();
    assert_eq!((length, answer[0], from), (1, 0, address));
}
