//! Loki's live tailing as its clients use it.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::{Message, WebSocket, protocol};

use crate::http::encode;
use crate::loki_api::{START, ask, ship, ship_all, shop};
use crate::pond::{Scratch, TestServer};
use crate::surroundings::program;

const SECOND_NS: i64 = 1_000_000_000;

/// A client that follows.
struct Tail(WebSocket<TcpStream>);

impl Tail {
    fn open(server: &TestServer, parameters: &str) -> Tail {
        let address = server.address("http");
        let mut stream = TcpStream::connect(&address).unwrap();
        write!(
            stream,
            "GET /loki/api/v1/tail?{parameters} HTTP/1.1\r\nhost: {address}\r\n\
             upgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-version: 13\r\n\
             sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        )
        .unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).unwrap().to_lowercase();
        assert!(head.starts_with("http/1.1 101 "), "{head}");
        assert!(
            head.contains("sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo="),
            "{head}"
        );
        Tail(WebSocket::from_raw_socket(
            stream,
            protocol::Role::Client,
            None,
        ))
    }

    /// The lines of the next message, with their times in nanoseconds.
    fn entries(&mut self) -> Vec<(i64, String)> {
        loop {
            if let Message::Text(text) = self.0.read().unwrap() {
                let message: Value = serde_json::from_str(&text).unwrap();
                assert_eq!(message.get("dropped_entries"), None, "{message}");
                let streams = message["streams"].as_array().unwrap().iter();
                let values = streams.flat_map(|stream| stream["values"].as_array().unwrap());
                let text = |value: &Value| value.as_str().unwrap().to_owned();
                let entry = |value: &Value| (text(&value[0]).parse().unwrap(), text(&value[1]));
                return values.map(entry).collect();
            }
        }
    }

    /// Waits for the connection to break, without a word of the server: clients come back to such a one only.
    fn until_broken(mut self) {
        loop {
            match self.0.read() {
                Ok(Message::Close(frame)) => panic!("closed: {frame:?}"),
                Ok(_) => {}
                Err(_) => return,
            }
        }
    }

    /// Lines until there are so many.
    fn lines(&mut self, count: usize) -> Vec<String> {
        let mut lines = Vec::new();
        while lines.len() < count {
            lines.extend(self.entries().into_iter().map(|(_, line)| line));
        }
        lines
    }
}

#[test]
fn lines_are_followed_over_a_websocket() {
    let scratch = Scratch::new("loki-tail").unwrap();
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    shop(&server);
    let sell = |text: &str| ship(&server, &[(json!({ "app": "shop" }), &[text])]);
    let query = encode(r#"{app="shop"} |~ "l[ao]t?" | json | line_format "{{.msg}}""#);
    let start = START - 10;
    let mut tail = Tail::open(&server, &format!("query={query}&start={start}"));
    // Lines of one message are in order within their streams only, and here each is one of its own.
    let sorted = |mut lines: Vec<String>| {
        lines.sort();
        lines
    };
    assert_eq!(sorted(tail.lines(2)), ["late", "lost"]);
    sell(r#"{"msg":"lately"}"#);
    sell(r#"{"msg":"other"}"#);
    sell(r#"{"msg":"last"}"#);
    assert_eq!(sorted(tail.lines(2)), ["last", "lately"]);
    // Of what is there the newest are shown, and then everything.
    let all = format!("query={}&start={start}&limit=2", encode("{app=\"cart\"}"));
    let mut newest = Tail::open(&server, &all);
    let shown = sorted(newest.lines(2));
    assert_eq!(shown, ["level=debug took=7ms", "level=info took=5ms"]);
    ship(&server, &[(json!({ "app": "cart" }), &["level=info new"])]);
    assert_eq!(newest.lines(1), ["level=info new"]);
    newest.0.close(None).unwrap();
    // Those whose lines wait are let go, too.
    let held = Tail::open(&server, &format!("{all}&delay_for=5"));
    let ended = [tail, held].map(|tail| std::thread::spawn(move || tail.until_broken()));
    server.terminate().unwrap();
    for ended in ended {
        ended.join().unwrap();
    }
}

/// Takes a line in, so long after the first record.
fn ship_at(server: &TestServer, labels: &Value, after_ns: i64, line: &str) {
    let time = (START * SECOND_NS + after_ns).to_string();
    ship_all(
        server,
        &json!({ "streams": [{ "stream": labels, "values": [[time, line]] }] }),
    );
}

#[test]
fn a_client_that_comes_back_misses_nothing() {
    const LINES: usize = 300;
    let scratch = Scratch::new("loki-tail-again").unwrap();
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    let query = encode(r#"{app="shop"}"#);
    let mut seen: Vec<(i64, String)> = Vec::new();
    let mut clients = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let labels = json!({ "app": "shop" });
            for number in 0..LINES {
                ship_at(
                    &server,
                    &labels,
                    number as i64 * 1_000,
                    &format!("line {number}"),
                );
                if number % 100 == 50 {
                    server.compact().unwrap();
                }
            }
        });
        while seen.len() < LINES {
            let start_ns = seen.last().map_or(START * SECOND_NS, |(time, _)| time + 1);
            let parameters = format!("query={query}&start={start_ns}&limit=5000");
            let mut tail = Tail::open(&server, &parameters);
            clients += 1;
            // It goes away in the middle, without a word.
            for _ in 0..3 {
                if seen.len() < LINES {
                    seen.extend(tail.entries());
                }
            }
        }
    });
    let lines: Vec<_> = seen.into_iter().map(|(_, line)| line).collect();
    let expected: Vec<_> = (0..LINES).map(|number| format!("line {number}")).collect();
    assert_eq!(lines, expected, "{clients} clients");
}

#[test]
fn lines_that_come_late_are_followed() {
    let scratch = Scratch::new("loki-tail-late").unwrap();
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    let labels = json!({ "app": "shop" });
    let hour_ns = 3_600 * SECOND_NS;
    for number in 0..20 {
        ship_at(
            &server,
            &labels,
            hour_ns + number * SECOND_NS,
            &format!("line {number}"),
        );
    }
    let query = encode(r#"{app="shop"}"#);
    let open = |limit: u64| {
        let parameters = format!("query={query}&start={START}&limit={limit}");
        Tail::open(&server, &parameters)
    };
    // The one shows the newest ones first, the other all that there are.
    let mut tails = [(5, open(5)), (20, open(1_000))];
    for (count, tail) in &mut tails {
        let mut lines = tail.lines(*count);
        lines.sort_by_key(|line| line[5..].parse::<usize>().unwrap());
        assert_eq!(lines.last().unwrap(), "line 19");
        assert_eq!(lines.len(), *count);
    }
    let mut come = |after_ns: i64, line: &str| {
        ship_at(&server, &labels, after_ns, line);
        for (_, tail) in &mut tails {
            assert_eq!(tail.lines(1), [line]);
        }
    };
    come(hour_ns + 7, "late");
    come(hour_ns - 300 * SECOND_NS, "five minutes late");
    server.compact().unwrap();
    come(hour_ns - 299 * SECOND_NS, "behind a segment");
    come(hour_ns + 60 * SECOND_NS, "in time");
}

#[test]
fn what_cannot_be_followed_is_said_before() {
    let scratch = Scratch::new("loki-tail-errors").unwrap();
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    let upgrade = [
        ("upgrade", "websocket"),
        ("connection", "Upgrade"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];
    let wrong = [
        (encode("rate({app=\"a\"}[1m])"), "only queries for logs"),
        (
            format!("{}&delay_for=9", encode("{app=\"a\"}")),
            "delay_for",
        ),
        (encode("{app"), "parse error at line 1"),
    ];
    for (query, part) in wrong {
        let target = format!("/loki/api/v1/tail?query={query}");
        let (status, text) = ask(&server, "GET", &target, &upgrade, b"");
        assert_eq!(status, 400, "{text}");
        assert!(text.contains(part), "{text}");
    }
    let target = format!("/loki/api/v1/tail?query={}", encode("{}"));
    let (status, text) = ask(&server, "GET", &target, &[], b"");
    assert_eq!(status, 400);
    assert!(text.contains("WebSocket"), "{text}");
}
