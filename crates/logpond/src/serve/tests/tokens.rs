use std::io::{BufReader, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Instant;

use base64::Engine as _;

use super::client::{PATIENCE, connect, get, read_head, request};
use super::{TestServer, settings};
use crate::serve::{ServeError, Server};
use logpond_http::routes;
use logpond_listen::tokens::{self, Bounds, Entry, ROLES, Role, Token};

/// A server that asks for tokens.
fn guarded() -> TestServer {
    let directory = tempfile::tempdir().unwrap();
    let mut settings = settings(directory.path());
    settings.require_token = true;
    let server = Some(Server::start(&settings).unwrap());
    TestServer { server, directory }
}

fn file(server: &TestServer) -> std::path::PathBuf {
    server.directory.path().join("tokens.toml")
}

fn create(path: &Path, role: Role) -> Token {
    let token = Token::mint().unwrap();
    let entry = Entry::new(&token, None, role, logpond_host::clock::now(), None);
    tokens::update(path, |tokens| tokens.add(entry)).unwrap();
    token
}

fn bearer(token: &Token) -> String {
    format!("Bearer {}", token.expose())
}

/// The status and the head of an answer; its body, which HEAD has none of, is not read.
fn head(address: SocketAddr, method: &str, path: &str, token: Option<&Token>) -> (u16, String) {
    let authorization = match token {
        Some(token) => format!("Authorization: {}\r\n", bearer(token)),
        None => String::new(),
    };
    let mut stream = connect(address);
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{authorization}\
         Content-Length: 0\r\n\r\n"
    )
    .unwrap();
    let head = read_head(&mut BufReader::new(stream));
    (head.split(' ').nth(1).unwrap().parse().unwrap(), head)
}

/// Asks again until the answer to a query has this status.
fn wait_for_status(server: &TestServer, token: &Token, status: u16) {
    let started = Instant::now();
    while head(server.http(), "GET", "/api/v1/query", Some(token)).0 != status {
        assert!(started.elapsed() < PATIENCE, "status {status} never came");
    }
}

#[test]
fn every_route_wants_a_token_of_its_role() {
    let server = guarded();
    let granted = ROLES.map(|role| (role, create(&file(&server), role)));
    wait_for_status(&server, &granted[2].1, 200);
    let mut open = Vec::new();
    for (path, methods, needed) in routes() {
        for method in methods {
            let (status, said) = head(server.http(), method.as_str(), path, None);
            let Some(needed) = needed else {
                open.push(path);
                assert!(!matches!(status, 401 | 403), "{method} {path}");
                continue;
            };
            assert_eq!(status, 401, "{method} {path}");
            let challenge = "www-authenticate: bearer realm=\"logpond\"";
            assert!(said.to_lowercase().contains(challenge), "{said}");
            for (role, token) in &granted {
                let (status, _) = head(server.http(), method.as_str(), path, Some(token));
                let is_refused = matches!(status, 401 | 403);
                let what = format!("{method} {path} with {role:?}: {status}");
                assert_eq!(is_refused, !role.allows(needed), "{what}");
                assert!(!is_refused || status == 403, "{what}");
            }
        }
    }
    open.dedup();
    let expected = [
        // The first questions of clients of Elasticsearch, be they readers or writers: the same for all.
        "/_license",
        "/_xpack",
        "/_cluster/health",
        "/_nodes",
        "/_nodes/{}",
        "/_cluster/health/{}",
        "/_cat/health",
        "/-/healthy",
        "/-/ready",
        "/ready",
        "/elasticsearch/",
        "/elasticsearch",
        "/",
        "/web/{}",
        "/api/v1/session",
        "/{}",
    ];
    assert_eq!(open, expected, "what is open to everybody");
}

/// Signs in; gives the status and the cookie.
fn sign_in(server: &TestServer, token: &str) -> (u16, String) {
    let body = format!("{{\"token\":\"{token}\"}}");
    let json = [("Content-Type", "application/json")];
    let answer = request(
        server.http(),
        "POST",
        "/api/v1/session",
        &json,
        body.as_bytes(),
    );
    let cookie = answer.head.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("set-cookie")
            .then(|| value.to_owned())
    });
    (answer.status, cookie.unwrap_or_default())
}

#[test]
fn a_browser_signs_in_by_a_cookie() {
    let server = guarded();
    let reader = create(&file(&server), Role::Read);
    let writer = create(&file(&server), Role::Write);
    wait_for_status(&server, &reader, 200);
    let (status, cookie) = sign_in(&server, reader.expose());
    assert_eq!(status, 204);
    for part in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert!(
        !cookie.contains("Secure"),
        "HTTP is not encrypted: {cookie}"
    );
    let pair = cookie.split(';').next().unwrap();
    let ask = |headers: &[(&str, &str)]| {
        request(server.http(), "GET", "/api/v1/query", headers, b"").status
    };
    assert_eq!(ask(&[("Cookie", pair)]), 200);
    assert_eq!(ask(&[("Cookie", &format!("a=b; {pair}"))]), 200);
    assert_eq!(ask(&[("Cookie", "logpond_session=lp_x_y")]), 401);
    // A page of another site has nothing of it.
    let foreign = [("Cookie", pair), ("Sec-Fetch-Site", "cross-site")];
    assert_eq!(ask(&foreign), 403);
    // Behind a proxy that encrypts, a browser sends the cookie over nothing else.
    let body = format!("{{\"token\":\"{}\"}}", reader.expose());
    let headers = [
        ("Content-Type", "application/json"),
        ("X-Forwarded-Proto", "https"),
    ];
    let answer = request(
        server.http(),
        "POST",
        "/api/v1/session",
        &headers,
        body.as_bytes(),
    );
    assert!(answer.head.contains("; Secure"), "{}", answer.head);
    assert_eq!(sign_in(&server, "lp_unknown").0, 401);
    assert_eq!(sign_in(&server, writer.expose()).0, 403);
    let out = request(server.http(), "DELETE", "/api/v1/session", &[], b"");
    assert_eq!(out.status, 204);
    assert!(out.head.contains("Max-Age=0"), "{}", out.head);
}

/// A token that is sent counts also if none is required.
#[test]
fn a_token_that_is_sent_counts() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tokens.toml");
    let bound = Token::mint().unwrap();
    let mut entry = Entry::new(&bound, None, Role::Read, logpond_host::clock::now(), None);
    entry.bounds = Bounds::new(Some("team=b".to_owned()), Vec::new()).unwrap();
    tokens::update(&path, |tokens| tokens.add(entry)).unwrap();
    let settings = settings(directory.path());
    let server = Some(Server::start(&settings).unwrap());
    let server = TestServer { server, directory };
    let lines = b"{\"team\":\"a\"}\n{\"team\":\"b\"}\n";
    let json = ("Content-Type", "application/x-ndjson");
    assert_eq!(
        request(server.http(), "POST", "/api/v1/push", &[json], lines).status,
        200
    );
    let rows = |headers: &[(&str, &str)]| {
        let answer = request(server.http(), "GET", "/api/v1/query", headers, b"");
        let lines = answer
            .body
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty());
        let rows = lines.count().saturating_sub(1);
        (answer.status, rows)
    };
    let of = |token: &Token| bearer(token);
    let other = Token::mint().unwrap();
    assert_eq!(rows(&[]), (200, 2));
    assert_eq!(rows(&[("Authorization", &of(&bound))]), (200, 1));
    // One that was revoked is unknown.
    assert_eq!(rows(&[("Authorization", &of(&other))]).0, 401);
    assert_eq!(rows(&[("Authorization", "Bearer changeme")]), (200, 2));
    let cookie = format!("logpond_session={}", other.expose());
    assert_eq!(rows(&[("Cookie", &cookie)]), (200, 2));
    let push = [json, ("Authorization", &*of(&bound))];
    let refused = request(server.http(), "POST", "/api/v1/push", &push, lines);
    assert_eq!(refused.status, 403, "it may only read");
}

#[test]
fn refusals_say_what_to_do() {
    let server = guarded();
    let reader = create(&file(&server), Role::Read);
    wait_for_status(&server, &reader, 200);
    let answer = get(server.http(), "/metrics");
    let error = answer.json()["error"].clone();
    assert_eq!(
        (answer.status, &error["code"]),
        (401, &"token_missing".into())
    );
    assert!(
        error["hint"]
            .as_str()
            .unwrap()
            .contains("logpond token create")
    );
    let push = |authorization: &str| {
        let headers = [
            ("Content-Type", "text/plain"),
            ("Authorization", authorization),
        ];
        request(server.http(), "POST", "/api/v1/push", &headers, b"x\n")
    };
    let answer = push(&bearer(&reader));
    let error = answer.json()["error"].clone();
    assert_eq!(
        (answer.status, &error["code"]),
        (403, &"role_missing".into())
    );
    assert!(error["message"].as_str().unwrap().contains("role write"));
    let answer = push("Bearer nonsense");
    assert_eq!(answer.status, 401);
    assert!(answer.head.contains("invalid_token"), "{}", answer.head);
    assert_eq!(answer.json()["error"]["code"], "token_refused");
    let writer = create(&file(&server), Role::Write);
    let pair = format!("shipper:{}", writer.expose());
    let basic = base64::engine::general_purpose::STANDARD.encode(pair);
    let started = Instant::now();
    while push(&format!("Basic {basic}")).status != 200 {
        assert!(started.elapsed() < PATIENCE, "never taken");
    }
    let metrics = &server.server().metrics().access;
    assert!(metrics.no_token.get() >= 1);
    assert!(metrics.unknown_token.get() >= 1);
    assert_eq!(metrics.role.get(), 1);
    // What was refused left nothing behind.
    let headers = [("Authorization", &*bearer(&reader))];
    let answer = request(server.http(), "GET", "/api/v1/query", &headers, b"");
    assert_eq!(answer.rows().0.len(), 1);
}

#[test]
fn changes_of_the_file_are_noticed_and_bad_ones_change_nothing() {
    let server = guarded();
    let kept = create(&file(&server), Role::Read);
    let revoked = create(&file(&server), Role::Admin);
    wait_for_status(&server, &revoked, 200);
    tokens::update(&file(&server), |tokens| tokens.remove(revoked.id())).unwrap();
    wait_for_status(&server, &revoked, 401);
    let reloads = server
        .server()
        .metrics()
        .access
        .reloads(logpond_host::telemetry::ReloadTarget::Tokens);
    let failed = reloads.failed.get();
    std::fs::write(file(&server), "[[token]").unwrap();
    let started = Instant::now();
    while reloads.failed.get() == failed {
        assert!(started.elapsed() < PATIENCE, "the bad file went unnoticed");
        std::thread::yield_now();
    }
    wait_for_status(&server, &kept, 200);
    std::fs::remove_file(file(&server)).unwrap();
    wait_for_status(&server, &kept, 401);
}

#[test]
fn a_bad_file_of_tokens_is_no_start() {
    let directory = tempfile::tempdir().unwrap();
    let mut settings = settings(directory.path());
    std::fs::write(&settings.tokens, "x").unwrap();
    // Where no token is asked for, nobody reads it.
    let server = Server::start(&settings).unwrap();
    assert_eq!(get(server.addresses().http, "/metrics").status, 200);
    server.stop();
    server.join().unwrap();
    settings.require_token = true;
    let error = Server::start(&settings).err().unwrap();
    assert!(matches!(error, ServeError::Tokens(_)), "{error:?}");
    assert!(error.to_string().contains("tokens.toml: line 1"), "{error}");
}
