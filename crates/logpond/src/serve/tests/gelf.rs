use std::io::{Read, Write};
use std::net::{Shutdown, UdpSocket};

use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use serde_json::Value;

use super::TestServer;
use super::client::{connect, get, request};
use super::lines::wait_for_count;
use logpond_host::telemetry::Intake;

/// All records, oldest first.
fn records(server: &TestServer) -> Vec<Value> {
    let (rows, trailer) = get(server.http(), "/api/v1/query?from=@0&to=2100-01-01").rows();
    assert_eq!(trailer["complete"], true, "{trailer}");
    rows
}

fn metrics(server: &TestServer) -> String {
    String::from_utf8(get(server.http(), "/metrics").body).unwrap()
}

fn message(number: u32, text: &str) -> Vec<u8> {
    format!(
        "{{\"version\":\"1.1\",\"host\":\"web-1\",\"short_message\":\"{text}\",\"level\":3,\
         \"timestamp\":{}.5,\"_number\":{number}}}",
        1_772_409_600 + number
    )
    .into_bytes()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A message in datagrams of this many bytes, last first.
fn chunks(id: u64, message: &[u8], bytes: usize) -> Vec<Vec<u8>> {
    let count = message.len().div_ceil(bytes) as u8;
    let parts = message.chunks(bytes).zip(0..);
    let datagrams = parts.map(|(part, index): (&[u8], u8)| {
        [&b"\x1e\x0f"[..], &id.to_be_bytes(), &[index, count], part].concat()
    });
    let mut datagrams: Vec<_> = datagrams.collect();
    datagrams.reverse();
    datagrams
}

#[test]
fn datagrams_plain_compressed_and_in_chunks() {
    let server = TestServer::new();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = server.address(Intake::GelfUdp);
    let long = "x".repeat(100_000);
    let mut datagrams = vec![message(0, "plain"), gzip(&message(1, "gzip"))];
    datagrams.push(zlib(&message(2, "zlib")));
    datagrams.extend(chunks(7, &message(3, &long), 1420));
    datagrams.extend(chunks(8, &gzip(&message(4, "both")), 50));
    // Incomplete, no chunk at all, and no GELF.
    datagrams.push(chunks(9, &message(5, "incomplete"), 50).remove(0));
    datagrams.push(b"\x1e\x0fshort".to_vec());
    datagrams.push(b"not GELF at all\n".to_vec());
    for datagram in &datagrams {
        socket.send_to(datagram, address).unwrap();
    }
    wait_for_count(&server, 6);
    let rows = records(&server);
    for (row, (number, text)) in rows
        .iter()
        .zip((0..).zip(["plain", "gzip", "zlib", &long, "both"]))
    {
        assert_eq!(
            (&row["_msg"], &row["number"]),
            (&text.into(), &number.into())
        );
        assert_eq!(
            (&row["hostname"], &row["severity"]),
            (&"web-1".into(), &3.into())
        );
        let time = format!("2026-03-02T00:00:0{number}.500000000Z");
        assert_eq!(row["_time"], *time);
    }
    assert_eq!(rows[5]["_msg"], "not GELF at all");
    assert_eq!(rows[5]["hostname"], logpond_host::hostname::own());
    let said = metrics(&server);
    for line in [
        "logpond_ingest_records_total{intake=\"gelf_udp\"} 6\n",
        "logpond_ingest_lost_total{intake=\"gelf_udp\"} 1\n",
        "logpond_ingest_malformed_total{intake=\"gelf_udp\"} 2\n",
        "logpond_gelf_udp_kernel_drops_total 0\n",
    ] {
        assert!(said.contains(line), "{line} in {said}");
    }
}

#[test]
fn messages_over_tcp_end_with_nul_or_a_line_end() {
    let server = TestServer::new();
    let mut stream = connect(server.address(Intake::GelfTcp));
    let mut bytes = message(0, "first");
    bytes.push(0);
    bytes.extend(message(1, "second"));
    bytes.extend(b"\r\n\0{\"no\":\"message\"}\0");
    bytes.extend(message(2, "without its end"));
    stream.write_all(&bytes).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answers = Vec::new();
    stream.read_to_end(&mut answers).unwrap();
    assert!(answers.is_empty());
    wait_for_count(&server, 4);
    let rows = records(&server);
    let words: Vec<_> = rows.iter().map(|row| row["_msg"].as_str()).collect();
    assert_eq!(words[..3], ["first", "second", "without its end"].map(Some));
    assert_eq!(rows[3]["no"], "message");
    let said = metrics(&server);
    assert!(said.contains("logpond_ingest_records_total{intake=\"gelf_tcp\"} 4\n"));
    assert!(said.contains("logpond_ingest_malformed_total{intake=\"gelf_tcp\"} 1\n"));
}

#[test]
fn over_http_messages_are_durable_or_refused() {
    let server = TestServer::new();
    let gelf = |headers: &[(&str, &str)], body: &[u8]| {
        request(server.http(), "POST", "/gelf", headers, body).status
    };
    assert_eq!(gelf(&[], &message(0, "one")), 202);
    let both = [&message(1, "two")[..], b"\n", &message(2, "three")].concat();
    assert_eq!(gelf(&[("Content-Encoding", "gzip")], &gzip(&both)), 202);
    // As pygelf says it, and what it means by it.
    let header = ("Content-Encoding", "gzip,deflate");
    assert_eq!(gelf(&[header], &zlib(&message(3, "four"))), 202);
    assert_eq!(gelf(&[], b"{\"no\":\"message\"}"), 400);
    assert_eq!(gelf(&[("Content-Encoding", "gzip")], b"x"), 400);
    let rows = records(&server);
    let words: Vec<_> = rows
        .iter()
        .map(|row| row["_msg"].as_str().unwrap())
        .collect();
    assert_eq!(words, ["one", "two", "three", "four"]);
    let said = metrics(&server);
    assert!(said.contains("logpond_ingest_records_total{intake=\"gelf_http\"} 4\n"));
    assert!(said.contains("logpond_ingest_malformed_total{intake=\"gelf_http\"} 2\n"));
}

/// As clients do that send each message so, and never read.
#[test]
fn over_http_the_answer_does_not_have_to_be_waited_for() {
    const MESSAGES: u32 = 100;
    let server = TestServer::new();
    for number in 0..MESSAGES {
        let body = message(number, "unread");
        let head = format!(
            "POST /gelf HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let mut stream = connect(server.http());
        stream
            .write_all(&[head.as_bytes(), &body].concat())
            .unwrap();
        drop(stream);
    }
    wait_for_count(&server, u64::from(MESSAGES));
}
