//! HTTP/2 by curl, with TLS and without.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::access::certificate;
use crate::pond::{ALL_TIME, Scratch, TestServer};
use crate::surroundings::{has_program, program, skip};

/// The version and the status of an answer, and its body.
fn ask(ca: &Path, version: &str, arguments: &[&str]) -> (String, String) {
    let ca = ca.to_str().unwrap();
    ask_plain(version, &[&["--cacert", ca][..], arguments].concat())
}

/// The exit code of curl for a stream that ends by RST_STREAM.
const STREAM_ENDED: i32 = 92;

/// What curl says.
fn curl(version: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new("curl");
    command.args(["--silent", "--show-error", "--max-time", "60", version]);
    command.args(["--write-out", "\n%{http_version} %{http_code}"]);
    command.args(arguments).output().unwrap()
}

/// As [`ask`], without TLS.
fn ask_plain(version: &str, arguments: &[&str]) -> (String, String) {
    let output = curl(version, arguments);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{output:?}");
    let (body, how) = text.rsplit_once('\n').unwrap();
    (how.to_owned(), body.to_owned())
}

/// A refusal that comes before the body has been sent is an answer all the same.
fn refusals_arrive(server: &TestServer, ca: &Path, scratch: &Path) {
    let (http, grpc) = (server.address("http"), server.address("otlp_grpc"));
    let big = scratch.join("big");
    fs::write(&big, vec![b'x'; 40 << 20]).unwrap();
    let body = format!("@{}", big.display());
    let plain = "content-type: text/plain";
    let table = [
        ("/api/v1/push", plain, "413"),
        ("/loki/api/v1/push", plain, "413"),
        ("/_bulk", "content-type: application/x-ndjson", "413"),
        ("/api/v1/query", plain, "413"),
        ("/nowhere", plain, "404"),
        ("/-/ready", plain, "405"),
        ("/api/v1/push", "origin: https://elsewhere.example", "403"),
        ("/api/v1/push", "sec-fetch-site: cross-site", "403"),
        ("/api/v1/push", "host: elsewhere.example", "421"),
    ];
    for (path, header, status) in table {
        for version in ["--http2", "--http1.1"] {
            let url = format!("https://{http}{path}");
            let sent = ["--data-binary", &body, "--header", header, &url];
            let (how, said) = ask(ca, version, &sent);
            assert!(how.ends_with(status), "{path} {header}: {how} {said}");
        }
    }
    // A body that nobody asked for is no reason to miss an answer.
    for path in ["/-/healthy", "/metrics", "/api/v1/saved-queries"] {
        let url = format!("https://{http}{path}");
        let sent = ["--request", "GET", "--data-binary", &body, &url];
        let (how, said) = ask(ca, "--http2", &sent);
        assert!(how.ends_with("200"), "{path}: {how} {said}");
    }
    let export = "/opentelemetry.proto.collector.logs.v1.LogsService/Export";
    let table = [("x-nothing: x", "8"), ("host: elsewhere.example", "14")];
    for (header, status) in table {
        let url = format!("https://{grpc}{export}");
        let kind = "content-type: application/grpc";
        let headers = ["--dump-header", "-", "--header", header, "--header", kind];
        let sent = ["--data-binary", &body, &url];
        let (how, said) = ask(ca, "--http2", &[&headers[..], &sent].concat());
        assert_eq!(how, "2 200");
        let status = format!("grpc-status: {status}\r");
        assert!(said.contains(&status), "{header}: {said}");
    }
}

#[test]
fn clients_that_offer_it_are_answered_over_http2() {
    if !has_program("curl") {
        return skip("HTTP/2", "there is no curl");
    }
    let scratch = Scratch::new("http2").unwrap();
    let path = |name: &str| scratch.path().join(name);
    certificate(&path("ca"), &path("node"));
    let [pem, key] = ["node.pem", "node.key"].map(|name| path("node").join(name));
    let flags = [
        "--tls-certificate",
        pem.to_str().unwrap(),
        "--tls-key",
        key.to_str().unwrap(),
    ];
    let server = TestServer::start(program(), &path("data"), &flags).unwrap();
    let (url, ca) = (
        format!("https://{}", server.address("http")),
        path("ca/ca.pem"),
    );
    // More than the windows of a stream and of a connection.
    let lines: String = (0..50_000)
        .map(|at| format!("line {at} {:>60}\n", "x"))
        .collect();
    let file = path("lines");
    fs::write(&file, &lines).unwrap();
    let push = format!("{url}/api/v1/push");
    let body = format!("@{}", file.display());
    let query = format!("{url}/api/v1/query?{ALL_TIME}&limit=0&q=line");
    let plain = "content-type: text/plain";
    for (version, expected) in [("--http2", "2"), ("--http1.1", "1.1")] {
        let pushed = ["--data-binary", &body, "--header", plain, &push];
        let (how, said) = ask(&ca, version, &pushed);
        assert_eq!(how, format!("{expected} 200"), "{said}");
        assert!(said.contains("\"accepted\":50000"), "{said}");
        let (how, rows) = ask(&ca, version, &[&query]);
        assert_eq!(how, format!("{expected} 200"));
        let found = rows.lines().filter(|row| row.contains("\"line ")).count();
        assert!(found >= 50_000, "{found}");
        // The page of the server itself may ask, others may not: with both, the host is known.
        for (origin, status) in [(&*url, "200"), ("https://elsewhere.example", "403")] {
            let origin = format!("origin: {origin}");
            let (how, said) = ask(&ca, version, &["--header", &origin, &query]);
            assert_eq!(how, format!("{expected} {status}"), "{said}");
        }
        let (how, said) = ask(&ca, version, &[&format!("{url}/nothing")]);
        assert_eq!(how, format!("{expected} 404"), "{said}");
    }
    refusals_arrive(&server, &ca, scratch.path());
    // Many at a time over one connection.
    let mut command = Command::new("curl");
    command.args([
        "--silent",
        "--show-error",
        "--max-time",
        "60",
        "--parallel",
        "--http2",
    ]);
    command.args(["--parallel-max", "60", "--cacert"]).arg(&ca);
    let ready = format!("{url}/-/ready");
    for _ in 0..200 {
        command.args([
            "--output",
            "/dev/null",
            "--write-out",
            "%{http_version} %{http_code}\n",
            &ready,
        ]);
    }
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(text.matches("2 200\n").count(), 200, "{output:?}");
    assert_eq!(server.terminate().unwrap().code(), Some(0));
}

#[test]
fn clients_that_know_of_it_need_no_tls() {
    if !has_program("curl") {
        return skip("HTTP/2", "there is no curl");
    }
    const KNOWN: &str = "--http2-prior-knowledge";
    let scratch = Scratch::new("http2-plain").unwrap();
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    let (http, grpc) = (server.address("http"), server.address("otlp_grpc"));
    let push = format!("http://{http}/api/v1/push");
    let plain = "content-type: text/plain";
    let pushed = ["--data-binary", "one\ntwo\n", "--header", plain, &push];
    let (how, said) = ask_plain(KNOWN, &pushed);
    assert_eq!(how, "2 200", "{said}");
    let query = format!("http://{http}/api/v1/query?{ALL_TIME}&q=two");
    for (version, expected) in [(KNOWN, "2 200"), ("--http1.1", "1.1 200")] {
        let (how, rows) = ask_plain(version, &[&query]);
        assert_eq!(how, expected);
        assert!(rows.contains("\"_msg\":\"two\""), "{rows}");
    }
    // A browser's rules are the same.
    let origin = ["--header", "origin: https://elsewhere.example", &query];
    assert_eq!(ask_plain(KNOWN, &origin).0, "2 403");
    let host = ["--header", "host: elsewhere.example", &query];
    assert_eq!(ask_plain(KNOWN, &host).0, "2 421");
    // More than is read of a body that is refused: the answer comes, and its stream ends.
    let big = scratch.path().join("big");
    fs::write(&big, vec![b'x'; 80 << 20]).unwrap();
    let body = format!("@{}", big.display());
    let (how, said) = ask_plain(KNOWN, &["--data-binary", &body, "--header", plain, &push]);
    assert_eq!(how, "2 413", "{said}");
    let export = "/opentelemetry.proto.collector.logs.v1.LogsService/Export";
    let export = format!("http://{grpc}{export}");
    let kind = "content-type: application/grpc";
    let headers = ["--dump-header", "-", "--header", kind];
    let output = curl(
        KNOWN,
        &[&headers[..], &["--data-binary", &body, &export]].concat(),
    );
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("grpc-status: 8\r"), "{output:?}");
    // To curl 7.88 a stream that ends while it sends is an error, whatever was answered.
    assert!(
        matches!(output.status.code(), Some(0 | STREAM_ENDED)),
        "{output:?}"
    );
    assert_eq!(server.terminate().unwrap().code(), Some(0));
}
