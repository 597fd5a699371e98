use std::io::{BufReader, Read, Write};

use super::TestServer;
use super::client::{connect, get, push, read_answer, request};

const NDJSON: &str = "application/x-ndjson";

#[test]
fn bad_lines_are_named_and_good_ones_kept() {
    let server = TestServer::new();
    let body = b"{\"msg\":\"a\"}\n{\"msg\":\n\n[1]\n{\"msg\":\"b\",\"n\":1}";
    let answer = push(server.http(), NDJSON, body);
    assert_eq!(answer.status, 200);
    let json = answer.json();
    assert_eq!(
        (&json["accepted"], &json["rejected_total"]),
        (&2.into(), &2.into())
    );
    assert_eq!(
        (&json["rejected"][0]["line"], &json["rejected"][1]["line"]),
        (&2.into(), &4.into())
    );
    let (rows, trailer) = get(server.http(), "/api/v1/query").rows();
    assert_eq!(
        (&rows[0]["_msg"], &rows[1]["_msg"], &rows[1]["n"]),
        (&"a".into(), &"b".into(), &1.into())
    );
    assert_eq!(
        (&trailer["rows"], &trailer["complete"]),
        (&2.into(), &true.into())
    );

    let answer = push(server.http(), NDJSON, b"nothing good\n");
    assert_eq!(
        (answer.status, &answer.json()["accepted"]),
        (400, &0.into())
    );
    let answer = push(server.http(), NDJSON, b"");
    assert_eq!(
        (answer.status, &answer.json()["accepted"]),
        (200, &0.into())
    );
}

#[test]
fn text_labels_and_compression() {
    let server = TestServer::new();
    let path = "/api/v1/push?durable=false&label=hostname=web-1&label=file=%2Fvar%2Fa=b";
    let headers = [("Content-Type", "text/plain; charset=utf-8")];
    let answer = request(server.http(), "POST", path, &headers, b"one\r\ntwo");
    assert_eq!(
        (answer.status, &answer.json()["accepted"]),
        (200, &2.into())
    );
    let zstd = zstd::encode_all(&b"packed\n"[..], 1).unwrap();
    let headers = [("Content-Type", "text/plain"), ("Content-Encoding", "zstd")];
    let answer = request(server.http(), "POST", "/api/v1/push", &headers, &zstd);
    assert_eq!(
        (answer.status, &answer.json()["accepted"]),
        (200, &1.into())
    );
    let broken = request(
        server.http(),
        "POST",
        "/api/v1/push",
        &headers,
        &zstd[..zstd.len() - 1],
    );
    assert_eq!(broken.status, 400);
    let (rows, _) = get(server.http(), "/api/v1/query?q=hostname=web-1&fields=raw").rows();
    assert_eq!(
        (&rows[0]["_line"], &rows[0]["file"]),
        (&"one\r".into(), &"/var/a=b".into())
    );
    // Who pushes may be a proxy: nothing is made of the connection.
    let (rows, _) = get(server.http(), "/api/v1/query?q=packed").rows();
    assert_eq!(rows[0].get("hostname"), None);
}

#[test]
fn errors_have_a_status_a_code_and_a_span() {
    let server = TestServer::new();
    let form = "application/x-www-form-urlencoded";
    let table = [
        (get(server.http(), "/nowhere"), 404, "not_found"),
        (
            get(server.http(), "/api/v1/push"),
            405,
            "method_not_allowed",
        ),
        (
            get(server.http(), "/api/v1/query?limit=x"),
            400,
            "bad_request",
        ),
        (
            get(server.http(), "/api/v1/query?nonsense=1"),
            400,
            "bad_request",
        ),
        (
            get(server.http(), "/api/v1/query?from=whenever"),
            400,
            "bad_request",
        ),
        (
            get(server.http(), "/api/v1/query?from=now&to=1h"),
            400,
            "bad_request",
        ),
        (
            get(server.http(), "/api/v1/query?cursor=x"),
            400,
            "bad_request",
        ),
        (get(server.http(), "/api/v1/top"), 400, "bad_request"),
        (
            push(server.http(), form, b"x"),
            415,
            "unsupported_media_type",
        ),
    ];
    for (answer, status, code) in table {
        assert_eq!(answer.status, status, "{code}");
        assert_eq!(answer.json()["error"]["code"], code);
    }
    let answer = get(server.http(), "/api/v1/query?q=%C3%A4+AND+%28b");
    let error = answer.json()["error"].clone();
    assert_eq!((answer.status, &error["code"]), (400, &"bad_query".into()));
    assert!(error["start"].is_u64() && error["end"].is_u64(), "{error}");
}

#[test]
fn other_sites_cannot_use_a_browser() {
    let server = TestServer::new();
    let headers = [
        ("Content-Type", "text/plain"),
        ("Origin", "http://evil.example"),
    ];
    let answer = request(server.http(), "POST", "/api/v1/push", &headers, b"x");
    assert_eq!(
        (answer.status, &answer.json()["error"]["code"]),
        (403, &"foreign_origin".into())
    );
}

/// Many clients read nothing before they have sent everything.
#[test]
fn a_refusal_reaches_who_sends_everything_first() {
    let server = TestServer::new();
    let body = vec![b'x'; 40 << 20];
    let table = [
        ("/api/v1/push", "", 413),
        ("/nowhere", "", 404),
        ("/api/v1/top", "", 413),
        ("/api/v1/push", "Origin: http://evil.example\r\n", 403),
    ];
    for (path, header, status) in table {
        let mut stream = connect(server.http());
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let length = body.len();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n{header}\
             Content-Length: {length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(&body).unwrap();
        assert_eq!(read_answer(&mut reader).status, status, "{path} {header}");
        stream
            .write_all(b"GET /-/ready HTTP/1.1\r\nHost: localhost\r\n\r\n")
            .unwrap();
        assert_eq!(read_answer(&mut reader).status, 200, "{path} {header}");
    }
    // Who waits for a word is told to send nothing.
    let mut stream = connect(server.http());
    let head = "POST /nowhere HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    let answer = read_answer(&mut BufReader::new(stream));
    assert_eq!(answer.status, 404, "{}", answer.head);
}

#[test]
fn malformed_requests_harm_nobody() {
    let server = TestServer::new();
    let long = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(100_000));
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(1000));
    let broken = [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..],
        b"GET\r\n\r\n",
        b"POST /api/v1/push HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: -1\r\n\r\n",
        b"POST /api/v1/push HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        long.as_bytes(),
        many.as_bytes(),
    ];
    for bytes in broken {
        let mut stream = connect(server.http());
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        // A reset is an answer too.
        let _ = stream.read_to_end(&mut answer);
        assert!(
            !answer.starts_with(b"HTTP/1.1 2"),
            "{}",
            String::from_utf8_lossy(&answer)
        );
    }
    assert_eq!(get(server.http(), "/-/healthy").status, 200);
}

#[test]
fn a_body_that_breaks_off_is_not_kept() {
    let server = TestServer::new();
    let mut stream = connect(server.http());
    let head = "POST /api/v1/push HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: 100\r\n\r\nhalf\n";
    stream.write_all(head.as_bytes()).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP/1.1 2"));
    let (rows, trailer) = get(server.http(), "/api/v1/query").rows();
    assert!(rows.is_empty() && trailer["newest"].is_null());
}

#[test]
fn connections_are_kept_open() {
    let server = TestServer::new();
    let mut stream = connect(server.http());
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    for _ in 0..3 {
        stream
            .write_all(b"GET /-/ready HTTP/1.1\r\nHost: localhost\r\n\r\n")
            .unwrap();
        let answer = read_answer(&mut reader);
        assert_eq!((answer.status, &answer.body[..]), (200, &b"ready\n"[..]));
    }
    stream
        .write_all(b"HEAD / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut rest = String::new();
    reader.read_to_string(&mut rest).unwrap();
    assert!(
        rest.starts_with("HTTP/1.1 200") && rest.ends_with("\r\n\r\n"),
        "{rest}"
    );
}

#[test]
fn the_page_is_for_browsers_and_loads_only_what_is_served() {
    let server = TestServer::new();
    let greeting = get(server.http(), "/");
    assert_eq!(greeting.json()["name"], "logpond");
    let page = request(
        server.http(),
        "GET",
        "/",
        &[("Accept", "text/html,*/*")],
        b"",
    );
    assert!(page.head.contains("default-src 'none'"), "{}", page.head);
    let html = String::from_utf8(page.body).unwrap();
    let mut bytes = html.len();
    let mut loaded = 0;
    let parts = html.split(['"']).map(|part| part.trim_start_matches("./"));
    for part in parts.filter(|part| part.starts_with("web/")) {
        let asset = get(server.http(), &format!("/{part}"));
        assert_eq!(asset.status, 200, "{part}");
        bytes += asset.body.len();
        loaded += 1;
    }
    assert!(loaded >= 3 && bytes < 300_000, "{loaded} {bytes}");
    assert!(!html.contains("style=") && !html.contains("://"));
}
