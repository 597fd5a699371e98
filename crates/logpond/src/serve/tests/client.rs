//! A small HTTP client, so that tests see the bytes of the protocol.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// Longer than anything may take; a test that waits so long has failed.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: Vec<u8>,
}

impl Answer {
    pub(super) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// All lines of an NDJSON answer but the trailer, and the trailer.
    pub(super) fn rows(&self) -> (Vec<Value>, Value) {
        let text = std::str::from_utf8(&self.body).unwrap();
        let mut rows: Vec<Value> = text
            .lines()
            .map(|l| serde_json::from_str(l).unwrap())
            .collect();
        let trailer = rows.pop().expect("a trailer");
        (rows, trailer["_trailer"].clone())
    }
}

pub(super) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Asks for what is read piece by piece; the head of the answer has been read.
pub(super) fn begin(address: SocketAddr, path: &str) -> BufReader<TcpStream> {
    let mut stream = connect(address);
    let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut reader = BufReader::new(stream);
    read_head(&mut reader);
    reader
}

/// Puts everything into segments.
pub(super) fn compact(address: SocketAddr) {
    let answer = request(address, "POST", "/api/v1/compact?wait", &[], b"");
    assert_eq!(answer.status, 200);
}

pub(super) fn get(address: SocketAddr, path: &str) -> Answer {
    request(address, "GET", path, &[], b"")
}

/// A number of the metrics.
pub(super) fn metric(address: SocketAddr, name: &str) -> i64 {
    let page = String::from_utf8(get(address, "/metrics").body).unwrap();
    let line = page
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name} in {page}"))
        .parse()
        .unwrap()
}

pub(super) fn push(address: SocketAddr, content_type: &str, body: &[u8]) -> Answer {
    request(
        address,
        "POST",
        "/api/v1/push",
        &[("Content-Type", content_type)],
        body,
    )
}

pub(super) fn request(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Answer {
    let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
    let mut stream = connect(address);
    stream.write_all(head.as_bytes()).unwrap();
    // The server may answer and close before it has read everything.
    let _ = stream.write_all(body);
    read_answer(&mut BufReader::new(stream))
}

/// Reads head and body, chunked or of a known length or to the end.
pub(super) fn read_answer(stream: &mut impl BufRead) -> Answer {
    let head = read_head(stream);
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let mut body = Vec::new();
    let lower = head.to_ascii_lowercase();
    if lower.contains("transfer-encoding: chunked") {
        while let Some(chunk) = read_chunk(stream) {
            body.extend_from_slice(&chunk);
        }
    } else if let Some((_, rest)) = lower.split_once("content-length: ") {
        let length = rest.split("\r\n").next().unwrap().parse().unwrap();
        body.resize(length, 0);
        stream.read_exact(&mut body).unwrap();
    } else {
        stream.read_to_end(&mut body).unwrap();
    }
    Answer { status, head, body }
}

pub(super) fn read_head(stream: &mut impl BufRead) -> String {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert_ne!(stream.read_line(&mut head).unwrap(), 0, "no answer: {head}");
    }
    head
}

/// The next chunk of a chunked body; `None` is its end.
pub(super) fn read_chunk(stream: &mut impl BufRead) -> Option<Vec<u8>> {
    let mut size = String::new();
    stream.read_line(&mut size).unwrap();
    let size = usize::from_str_radix(size.trim_end(), 16).unwrap();
    let mut chunk = vec![0; size + 2];
    stream.read_exact(&mut chunk).unwrap();
    chunk.truncate(size);
    (size > 0).then_some(chunk)
}
