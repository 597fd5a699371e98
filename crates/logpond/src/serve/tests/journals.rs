//! Uploads of systemd's journals, byte for byte.

use std::io::{BufReader, Write};
use std::net::TcpStream;
use std::thread;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;

use super::TestServer;
use super::client::{Answer, connect, get, read_answer, request};
use super::lines::wait_for_count;

const EXPORT: (&str, &str) = ("Content-Type", "application/vnd.fdo.journal");
const PLAIN: (&str, &str) = ("Content-Type", "text/plain");
const BROTLI: (&str, &str) = ("Content-Encoding", "br");
const LZ4: (&str, &str) = ("Content-Encoding", "lz4");
const XZ: (&str, &str) = ("Content-Encoding", "xz");
const ZSTD: (&str, &str) = ("Content-Encoding", "zstd");

type Headers = &'static [(&'static str, &'static str)];

/// Entries with these numbers of a journal.
fn entries(numbers: std::ops::Range<u64>) -> Vec<u8> {
    let entry = |n: u64| {
        format!(
            "__CURSOR=s=0a;i={n:x};b=0b;m=1;t=60a24181e4000;x=1\n\
             __REALTIME_TIMESTAMP={}\nPRIORITY=3\n_PID=7\nMESSAGE=entry {n}\n\n",
            1_700_000_000_000_000 + n
        )
    };
    numbers.map(entry).collect::<String>().into_bytes()
}

fn upload(server: &TestServer, headers: &[(&str, &str)], body: &[u8]) -> Answer {
    request(server.http(), "POST", "/upload", headers, body)
}

fn text(answer: &Answer) -> &str {
    std::str::from_utf8(&answer.body).unwrap()
}

fn rows(server: &TestServer, query: &str) -> Vec<serde_json::Value> {
    let (rows, trailer) = get(server.http(), &format!("/api/v1/query?from=@0&{query}")).rows();
    assert_eq!(trailer["complete"], true, "{trailer}");
    rows
}

/// An upload that goes on.
struct Open(TcpStream);

impl Open {
    fn begin(server: &TestServer) -> Open {
        let mut stream = connect(server.http());
        let head = "POST /upload HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\
                    Content-Type: application/vnd.fdo.journal\r\n\r\n";
        stream.write_all(head.as_bytes()).unwrap();
        Open(stream)
    }

    fn send(&mut self, chunk: &[u8]) {
        write!(self.0, "{:x}\r\n", chunk.len()).unwrap();
        self.0.write_all(chunk).unwrap();
        self.0.write_all(b"\r\n").unwrap();
    }

    fn answer(self) -> Answer {
        read_answer(&mut BufReader::new(self.0))
    }
}

#[test]
fn an_upload_is_acknowledged_in_the_words_of_systemd() {
    let server = TestServer::new();
    let answer = upload(&server, &[EXPORT], &entries(0..3));
    assert_eq!((answer.status, text(&answer)), (202, "OK.\n"));
    assert!(
        answer
            .head
            .to_ascii_lowercase()
            .contains("accept-encoding: zstd,lz4,gzip,xz,deflate\r\n")
    );
    let answer = upload(&server, &[EXPORT], b"");
    assert_eq!((answer.status, text(&answer)), (202, "OK.\n"));
    let found = rows(&server, "q=_PID=7%20severity=3");
    assert_eq!(found.len(), 3);
    assert_eq!(found[1]["_msg"], "entry 1");
    assert_eq!(found[1]["_time"], "2023-11-14T22:13:20.000001000Z");
}

#[test]
fn what_is_no_journal_is_refused_with_the_status_that_the_sender_knows() {
    let server = TestServer::new();
    let partial = [&entries(0..2)[..], b"MESSAGE=no end\n"].concat();
    let table: [(Headers, &[u8], u16, &str); 8] = [
        (&[PLAIN], b"", 415, "application/vnd.fdo.journal"),
        (&[], b"", 415, "application/vnd.fdo.journal"),
        (&[EXPORT, BROTLI], b"", 415, "zstd,lz4,gzip,xz,deflate"),
        (&[EXPORT], &partial, 417, "within an entry"),
        (
            &[EXPORT],
            b"text\nof no journal\n",
            400,
            "no journal in export format",
        ),
        (&[EXPORT, ZSTD], b"text", 400, "zstd"),
        (&[EXPORT, LZ4], b"text", 400, "LZ4"),
        (&[EXPORT, XZ], b"text", 400, "xz"),
    ];
    for (headers, body, status, said) in table {
        let answer = upload(&server, headers, body);
        assert_eq!(answer.status, status, "{}", text(&answer));
        assert!(text(&answer).contains(said), "{}", text(&answer));
    }
    assert_eq!(
        rows(&server, "").len(),
        2,
        "what came before the end is kept"
    );
    assert_eq!(get(server.http(), "/upload").status, 405);
}

#[test]
fn entries_are_found_while_the_upload_goes_on() {
    let mut server = TestServer::new();
    let mut open = Open::begin(&server);
    let all = entries(0..4);
    let half = all.len() / 2 + 10;
    open.send(&all[..half]);
    wait_for_count(&server, 2);
    open.send(&all[half..]);
    wait_for_count(&server, 4);
    // A server that stops does not wait for more, and what it has stays known.
    let waiting = thread::spawn(move || open.answer());
    server.restart();
    assert_eq!(waiting.join().unwrap().status, 503);
    let accept = ("Accept", "application/json");
    let answer = upload(&server, &[EXPORT, accept], &entries(0..6));
    let wanted = json!({ "accepted": 2, "known": 4, "rejected": [], "rejected_total": 0 });
    assert_eq!((answer.status, answer.json()), (202, wanted));
    assert_eq!(rows(&server, "").len(), 6);
}

#[test]
fn one_journal_sent_by_two_at_once_is_there_once() {
    let server = TestServer::new();
    let body = entries(0..3000);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert_eq!(upload(&server, &[EXPORT], &body).status, 202));
        }
    });
    assert_eq!(rows(&server, "").len(), 3000);
    // The same numbers of another boot are other entries.
    let other = String::from_utf8(entries(0..10))
        .unwrap()
        .replace("b=0b", "b=0c");
    assert_eq!(upload(&server, &[EXPORT], other.as_bytes()).status, 202);
    assert_eq!(rows(&server, "").len(), 3010);
}

#[test]
fn labels_compression_and_rejections_are_seen_to() {
    let server = TestServer::new();
    let bad = [&b"=no name\n\n"[..], &entries(0..2)].concat();
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(&bad).unwrap();
    let headers = [EXPORT, ("Content-Encoding", "gzip")];
    let path = "/upload?label=rack=r7&label=PRIORITY=9";
    let answer = request(
        server.http(),
        "POST",
        path,
        &headers,
        &gzip.finish().unwrap(),
    );
    let said = text(&answer);
    assert_eq!(answer.status, 202);
    assert!(
        said.starts_with("OK, but 1 of 3 entries were not taken:\nentry 1: "),
        "{said}"
    );
    assert_eq!(rows(&server, "q=rack=r7%20PRIORITY=3").len(), 2);
    let unknown = request(server.http(), "POST", "/upload?lable=a=b", &[EXPORT], b"");
    assert_eq!(unknown.status, 400);
}
