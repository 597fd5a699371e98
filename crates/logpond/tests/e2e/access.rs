//! Who gets in: tokens and TLS, end to end.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocket};

use crate::pond::{Scratch, TestServer, signal, wait_until};
use crate::surroundings::program;

fn run(arguments: &[&str], token: Option<&str>, input: &str) -> Output {
    let mut command = Command::new(program());
    command.args(arguments).env_remove("LOGPOND_TOKEN_FILE");
    match token {
        Some(token) => command.env("LOGPOND_TOKEN", token),
        None => command.env_remove("LOGPOND_TOKEN"),
    };
    let pipes = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = pipes.spawn().unwrap();
    // It may refuse before it reads.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    child.wait_with_output().unwrap()
}

pub(crate) fn create(data: &Path, role: &str) -> String {
    let data = data.to_str().unwrap();
    let output = run(
        &["token", "create", "--role", role, "--data", data],
        None,
        "",
    );
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn tokens_open_what_they_are_for() {
    let scratch = Scratch::new("tokens").unwrap();
    let data = scratch.path().join("data");
    let writer = scratch.path().join("writer.token");
    std::fs::write(&writer, create(&data, "write")).unwrap();
    let reader = create(&data, "read");
    let server = TestServer::start(program(), &data, &["--require-token"]).unwrap();
    let url = server.url();
    let query = |token| run(&["query", "-c", "--addr", &url], token, "");
    let refused = query(None);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("--token-file FILE"), "{said}");
    let forward = |file: &Path| {
        let file = file.to_str().unwrap();
        let arguments = ["forward", "--addr", &url, "--token-file", file];
        run(&arguments, None, "one\ntwo\n")
    };
    let output = forward(&writer);
    assert!(output.status.success(), "{output:?}");
    let found = query(Some(reader.trim()));
    assert_eq!(found.stdout, b"2\n", "{found:?}");
    // Each is for its own purpose.
    let text = std::fs::read_to_string(&writer).unwrap();
    let said = String::from_utf8(query(Some(text.trim())).stderr).unwrap();
    assert!(
        said.contains("role read") && said.contains("role write"),
        "{said}"
    );
    let id = &text[3..11];
    let arguments = ["token", "revoke", id, "--data", data.to_str().unwrap()];
    assert!(run(&arguments, None, "").status.success());
    // SIGHUP has it read at once, and ends nothing.
    signal("HUP", server.pid()).unwrap();
    wait_until("the token is revoked", || {
        !forward(&writer).status.success()
    })
    .unwrap();
    assert_eq!(server.terminate().unwrap().code(), Some(0));
}

/// Begins a request; gives the connection once the head of the answer with this status has come.
fn begin(server: &TestServer, target: &str, token: &str, status: &str, headers: &str) -> TcpStream {
    let address = server.address("http");
    let mut stream = TcpStream::connect(&address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    let head = format!(
        "GET {target} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n{headers}\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    assert!(head.starts_with(&format!("HTTP/1.1 {status}")), "{head}");
    stream
}

const WEBSOCKET: &str = "upgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-version: 13\r\n\
                         sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

/// The reason that the server gives when it closes a tail.
fn reason_of(tail: TcpStream) -> String {
    let mut tail = WebSocket::from_raw_socket(tail, Role::Client, None);
    loop {
        match tail.read().unwrap() {
            Message::Close(Some(frame)) => return frame.reason.to_string(),
            Message::Text(_) | Message::Ping(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

/// The rest of an answer, also of one that breaks off.
fn rest_of(stream: TcpStream) -> String {
    let mut rest = String::new();
    for line in BufReader::new(stream).lines() {
        match line {
            Ok(line) if line == "0" => break,
            Ok(line) => rest.push_str(&(line + "\n")),
            Err(_) => break,
        }
    }
    rest
}

/// The rest of an answer to its very end, and whether that is where it ends in order.
fn all_of(stream: TcpStream) -> (String, bool) {
    let mut rest = String::new();
    let mut reader = BufReader::new(stream);
    loop {
        let before = rest.len();
        match reader.read_line(&mut rest) {
            Ok(0) | Err(_) => return (rest, false),
            Ok(_) if &rest[before..] == "0\r\n" => return (rest, true),
            Ok(_) => {}
        }
    }
}

/// The forms of `/entries`; of these only a stream of events has a place for a reason.
const ENTRY_FORMS: [&str; 4] = [
    "text/plain",
    "application/json",
    "application/vnd.fdo.journal",
    "text/event-stream",
];

/// From a change of the file to the end of what it ends: the promise is two seconds, of which this machine
/// may be busy with others for some.
const ENDED_WITHIN: Duration = Duration::from_secs(10);

/// A server that asks for tokens, and who has which.
struct TokenServer {
    scratch: Scratch,
    server: TestServer,
}

const FOLLOW: &str = "/api/v1/query?from=@0&follow=true&q=";
const TAIL: &str = "/loki/api/v1/tail?query=%7Bapp%3D~%22.%2B%22%7D";

impl TokenServer {
    fn start(name: &str) -> TokenServer {
        let scratch = Scratch::new(name).unwrap();
        let data = scratch.path().join("data");
        let server = TestServer::start(program(), &data, &["--require-token"]).unwrap();
        TokenServer { scratch, server }
    }

    fn token(&self, arguments: &[&str]) -> String {
        let data = self.scratch.path().join("data");
        let arguments = [&["token"], arguments, &["--data", data.to_str().unwrap()]].concat();
        let output = run(&arguments, None, "");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Pushes records, as soon as the server knows the token.
    fn push(&self, writer: &str, content_type: &str, body: &[u8]) {
        let head = [
            ("authorization", &*format!("Bearer {writer}")),
            ("content-type", content_type),
        ];
        wait_until("the records are there", || {
            let mut client = self.server.client().unwrap();
            let pushed = client.send("POST", "/api/v1/push", &head, body);
            pushed.unwrap().status == 200
        })
        .unwrap();
    }

    /// Makes a token, and waits until the server knows it.
    fn reader(&self, name: &str, more: &[&str]) -> String {
        let arguments = [&["create", "--role", "read", "--name", name], more].concat();
        let token = self.token(&arguments);
        let head = [("authorization", &*format!("Bearer {token}"))];
        wait_until("the token is known", || {
            let mut client = self.server.client().unwrap();
            let answer = client.send("GET", "/metrics", &head, b"");
            answer.unwrap().status == 200
        })
        .unwrap();
        token
    }
}

#[test]
fn what_goes_on_ends_with_its_token() {
    let guarded = TokenServer::start("tokens-follow");
    let server = &guarded.server;
    let (ann, bob) = (guarded.reader("ann", &[]), guarded.reader("bob", &[]));
    let following = begin(server, FOLLOW, &ann, "200", "");
    let entries = ENTRY_FORMS.map(|form| {
        let accept = format!("accept: {form}\r\n");
        (form, begin(server, "/entries?follow", &ann, "200", &accept))
    });
    let tailing = begin(server, TAIL, &ann, "101", WEBSOCKET);
    let kept = begin(server, FOLLOW, &bob, "200", "");
    let began = Instant::now();
    guarded.token(&["revoke", "ann"]);
    let said = rest_of(following);
    assert!(said.contains("the token 'ann' was revoked"), "{said}");
    assert!(said.contains("\"complete\":false"), "{said}");
    assert_eq!(reason_of(tailing), "the token 'ann' was revoked");
    for (form, entries) in entries {
        let (rest, is_whole) = all_of(entries);
        assert!(!is_whole, "{form} breaks off: {rest}");
        let is_said = rest.contains(": the token 'ann' was revoked\n\n");
        assert_eq!(is_said, form == "text/event-stream", "{form}: {rest}");
    }
    server.said("an answer was ended: the token 'ann' was revoked");
    assert!(began.elapsed() < ENDED_WITHIN, "{:?}", began.elapsed());
    // An answer with another token goes on.
    let head = [("authorization", &*format!("Bearer {bob}"))];
    let mut client = server.client().unwrap();
    let metrics = client.send("GET", "/metrics", &head, b"").unwrap();
    let metrics = metrics.text().unwrap();
    assert!(
        metrics.contains("\nlogpond_http_ended_answers_total 6\n"),
        "{metrics}"
    );
    drop(kept);
}

/// A table of rows has no place for a reason: its reader sees that the transfer is broken.
#[test]
fn rows_without_a_trailer_break_off_with_their_token() {
    let guarded = TokenServer::start("tokens-csv");
    let server = &guarded.server;
    let ann = guarded.reader("ann", &[]);
    let writer = guarded.token(&["create", "--role", "write"]);
    // More than sockets and queues hold on the way to a reader that does not read.
    let line = [&[b'x'; 100_000][..], b"\n"].concat().repeat(100);
    for _ in 0..4 {
        guarded.push(&writer, "text/plain", &line);
    }
    let target = "/api/v1/query?from=@0&q=&format=csv";
    let (rest, is_whole) = all_of(begin(server, target, &ann, "200", ""));
    assert!(is_whole && rest.len() > 40_000_000, "{}", rest.len());
    let mut slow = begin(server, target, &ann, "200", "");
    guarded.token(&["revoke", "ann"]);
    // At full speed it could have all before the server looks at the token again.
    let mut piece = [0; 16 << 10];
    wait_until("the answer is ended", || {
        // What comes behind the end is of no interest.
        let _ = slow.read(&mut piece);
        let ended = "an answer was ended: the token 'ann' was revoked";
        server.stderr().contains(ended)
    })
    .unwrap();
    let (rest, is_whole) = all_of(slow);
    assert!(!is_whole && rest.len() < 40_000_000, "{}", rest.len());
    assert!(!rest.contains("token"));
}

/// Lines that wait for the delay that a tail asked for are not sent any more.
#[test]
fn a_delayed_tail_ends_with_its_token() {
    let guarded = TokenServer::start("tokens-delay");
    let server = &guarded.server;
    let ann = guarded.reader("ann", &[]);
    let writer = guarded.token(&["create", "--role", "write"]);
    let line = b"{\"app\":\"a\",\"message\":\"x\"}\n";
    guarded.push(&writer, "application/x-ndjson", line);
    let began = Instant::now();
    let tailing = begin(
        server,
        &format!("{TAIL}&delay_for=5"),
        &ann,
        "101",
        WEBSOCKET,
    );
    guarded.token(&["revoke", "ann"]);
    let mut tail = WebSocket::from_raw_socket(tailing, Role::Client, None);
    let mut texts = 0;
    let reason = loop {
        match tail.read().unwrap() {
            Message::Close(Some(frame)) => break frame.reason.to_string(),
            Message::Text(_) => texts += 1,
            Message::Ping(_) => {}
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(reason, "the token 'ann' was revoked");
    // On a machine so busy that the delay was over before the revocation, lines may have come.
    let is_early = began.elapsed() < Duration::from_secs(4);
    assert!(!is_early || texts == 0, "{texts}");
}

#[test]
fn a_follower_of_our_own_says_why_it_ends() {
    let guarded = TokenServer::start("tokens-tail");
    let server = &guarded.server;
    let ann = guarded.reader("ann", &[]);
    let url = server.url();
    let follow = |command: &[&str]| {
        let mut follower = Command::new(program());
        let follower = follower
            .args(command)
            .args(["--addr", &url])
            .env("LOGPOND_TOKEN", &ann)
            .env_remove("LOGPOND_TOKEN_FILE")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        follower.spawn().unwrap()
    };
    let followers = [
        follow(&["query", "--follow", "-o", "csv"]),
        follow(&["journal", "-f", "-o", "export"]),
    ];
    let following = |count: usize| {
        let head = [("authorization", &*format!("Bearer {ann}"))];
        let mut client = server.client().unwrap();
        let metrics = client.send("GET", "/metrics", &head, b"").unwrap();
        let active = format!("\nlogpond_queries_active {count}\n");
        metrics.text().unwrap().contains(&active)
    };
    wait_until("both follow", || following(2)).unwrap();
    guarded.token(&["revoke", "ann"]);
    for follower in followers {
        let output = follower.wait_with_output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("it may be revoked"), "{said}");
    }
}

#[test]
fn what_goes_on_ends_when_its_token_expires() {
    let guarded = TokenServer::start("tokens-expire");
    let server = &guarded.server;
    let token = guarded.reader("brief", &["--expires", "5s"]);
    let following = begin(server, FOLLOW, &token, "200", "");
    let tailing = begin(server, TAIL, &token, "101", WEBSOCKET);
    let expired = "the token 'brief' expired at ";
    let said = rest_of(following);
    assert!(said.contains(expired), "{said}");
    assert!(reason_of(tailing).starts_with(expired));
}

/// Makes an authority and the certificate of a node of it.
pub(crate) fn certificate(ca: &Path, out: &Path) {
    let (ca, out) = (ca.to_str().unwrap(), out.to_str().unwrap());
    let table: [&[&str]; 2] = [
        &["cluster", "ca", "create", "--out", ca],
        &[
            "cluster",
            "certificate",
            "--ca",
            ca,
            "--name",
            "node-1",
            "--address",
            "127.0.0.1",
            "--out",
            out,
        ],
    ];
    for arguments in table {
        let output = run(arguments, None, "");
        assert!(output.status.success(), "{output:?}");
    }
}

#[test]
fn certificates_of_our_own_encrypt_http_and_follow_their_files() {
    let scratch = Scratch::new("tls").unwrap();
    let path = |name: &str| scratch.path().join(name);
    let (old, new) = (path("old-ca"), path("new-ca"));
    certificate(&old, &path("node"));
    certificate(&new, &path("new-node"));
    let text = |path: std::path::PathBuf| path.to_str().unwrap().to_owned();
    let (pem, key) = (text(path("node/node.pem")), text(path("node/node.key")));
    let flags = [
        "--tls-certificate",
        &pem,
        "--tls-key",
        &key,
        "--cluster-tls",
        &text(path("node")),
    ];
    let server = TestServer::start(program(), &path("data"), &flags).unwrap();
    let url = format!("https://{}", server.address("http"));
    let forward = |ca: &Path| {
        let ca = text(ca.join("ca.pem"));
        let arguments = [
            "forward",
            "--addr",
            &url,
            "--ca-file",
            &ca,
            "--give-up-after",
            "0s",
        ];
        run(&arguments, None, "one\n")
    };
    let output = forward(&old);
    assert!(output.status.success(), "{output:?}");
    let output = forward(&new);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success() && said.contains("not trusted here"),
        "{said}"
    );
    for name in ["node.pem", "node.key", "ca.pem"] {
        std::fs::copy(path("new-node").join(name), path("node").join(name)).unwrap();
    }
    signal("HUP", server.pid()).unwrap();
    wait_until("the new certificate is shown", || {
        forward(&new).status.success()
    })
    .unwrap();
    let ca = text(new.join("ca.pem"));
    let arguments = ["query", "-c", "--addr", &url, "--ca-file", &ca];
    assert_eq!(run(&arguments, None, "").stdout, b"2\n");
    // A key that cannot be used leaves what is there, and says so.
    std::fs::write(&key, "x").unwrap();
    signal("HUP", server.pid()).unwrap();
    server.said("node.key holds no private key");
    assert_eq!(run(&arguments, None, "").stdout, b"2\n");
    let without = run(
        &[
            "query",
            "--addr",
            &format!("http://{}", server.address("http")),
        ],
        None,
        "",
    );
    let said = String::from_utf8_lossy(&without.stderr).into_owned();
    assert!(said.contains("ask at https://"), "{said}");
    assert_eq!(server.terminate().unwrap().code(), Some(0));
}
