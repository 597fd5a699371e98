//! Pages in a browser on the same machine, which may have any name resolve to it.

use std::io::{BufReader, Write};
use std::net::SocketAddr;

use super::client::{Answer, connect, get, metric, read_answer, request};
use super::{TestServer, settings};
use crate::serve::Server;
use logpond_listen::tokens::{self, Entry, Role, Token};
use logpond_settings::{Protocol, host_names};

/// What a page might try: to read, to push in the form of each shipper, and to remove.
const ATTEMPTS: [(&str, &str); 14] = [
    ("GET", "/"),
    ("GET", "/web/app.js"),
    ("GET", "/-/ready"),
    ("GET", "/nowhere"),
    ("GET", "/metrics"),
    ("GET", "/entries"),
    ("GET", "/api/v1/query"),
    ("GET", "/loki/api/v1/labels"),
    ("POST", "/api/v1/push"),
    ("POST", "/loki/api/v1/push"),
    ("POST", "/_bulk"),
    ("POST", "/services/collector/raw"),
    ("POST", "/v1/logs"),
    ("POST", "/api/v1/vacuum?files=0"),
];

fn ask(address: SocketAddr, (method, path): (&str, &str), headers: &str) -> Answer {
    let mut stream = connect(address);
    let head = format!("{method} {path} HTTP/1.1\r\n{headers}Connection: close\r\n");
    let body = "Content-Type: text/plain\r\nContent-Length: 7\r\n\r\nsecret\n";
    stream.write_all((head + body).as_bytes()).unwrap();
    read_answer(&mut BufReader::new(stream))
}

/// Everywhere that HTTP is spoken.
fn listeners(server: &TestServer) -> Vec<SocketAddr> {
    let addresses = server.server().addresses();
    let on = addresses.intakes.on();
    let shippers = on.filter(|(listener, _)| listener.protocol == Protocol::Http);
    let shippers: Vec<SocketAddr> = shippers.map(|(_, address)| address).collect();
    assert_eq!(shippers.len(), 4);
    [vec![addresses.http], shippers].concat()
}

#[test]
fn a_name_that_is_not_the_servers_is_answered_nothing() {
    let server = TestServer::new();
    for address in listeners(&server) {
        for attempt in ATTEMPTS {
            let port = address.port();
            let answer = ask(address, attempt, &format!("Host: evil.example:{port}\r\n"));
            assert_eq!(answer.status, 421, "{attempt:?}");
            let said = String::from_utf8_lossy(&answer.body);
            assert!(said.contains("--http-host evil.example"), "{said}");
            let own = ask(address, attempt, &format!("Host: localhost:{port}\r\n"));
            assert_ne!(own.status, 421, "{attempt:?}");
        }
    }
    let page = ("GET", "http://evil.example/");
    let http = server.http();
    assert_eq!(ask(http, page, "Host: 127.0.0.1\r\n").status, 421);
    let twice = "Host: 127.0.0.1\r\nHost: evil.example\r\n";
    assert_ne!(ask(http, ("GET", "/"), twice).status, 200);
    // What speaks for itself, and for no browser.
    assert_eq!(ask(http, ("GET", "/-/ready"), "").status, 200);
    let own = logpond_host::hostname::own();
    for host in [
        &*own,
        own.split('.').next().unwrap(),
        "[::1]:7650",
        "192.0.2.1",
    ] {
        let answer = ask(http, ("GET", "/"), &format!("Host: {host}\r\n"));
        assert_eq!(answer.status, 200, "{host}");
    }
    let refused = "logpond_http_refused_requests_total{reason=\"foreign_host\"}";
    assert!(metric(http, refused) >= (5 * ATTEMPTS.len()) as i64);
}

#[test]
fn a_page_of_another_site_is_answered_nothing_but_by_a_link() {
    let server = TestServer::new();
    for address in listeners(&server) {
        let host = format!("Host: {address}\r\n");
        for site in ["cross-site", "same-site"] {
            for attempt in ATTEMPTS.into_iter().filter(|(_, path)| *path != "/nowhere") {
                let headers =
                    format!("{host}Sec-Fetch-Site: {site}\r\nSec-Fetch-Mode: no-cors\r\n");
                let answer = ask(address, attempt, &headers);
                assert_eq!(answer.status, 403, "{attempt:?}");
                let said = String::from_utf8_lossy(&answer.body);
                assert!(said.contains("another site"), "{said}");
            }
            let link = format!(
                "{host}Sec-Fetch-Site: {site}\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: "
            );
            let status = |attempt, destination| {
                ask(address, attempt, &format!("{link}{destination}\r\n")).status
            };
            assert_eq!(status(("GET", "/"), "document"), 200);
            assert_eq!(status(("GET", "/"), "iframe"), 403);
            assert_eq!(status(("POST", "/api/v1/push"), "document"), 403);
        }
        let own = format!("{host}Sec-Fetch-Site: same-origin\r\n");
        assert_eq!(ask(address, ("GET", "/-/ready"), &own).status, 200);
    }
    let (rows, _) = get(server.http(), "/api/v1/query?from=@0").rows();
    assert!(rows.is_empty(), "{rows:?}");
}

#[test]
fn other_names_are_answered_where_they_are_configured_or_a_token_is_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let mut wanted = settings(directory.path());
    wanted.http_host = host_names("logs.example.org,*.internal").unwrap();
    let server = Server::start(&wanted).unwrap();
    let http = server.addresses().http;
    let page = |http, host: &str| ask(http, ("GET", "/"), &format!("Host: {host}\r\n")).status;
    assert_eq!(page(http, "logs.example.org:7650"), 200);
    assert_eq!(page(http, "a.internal"), 200);
    assert_eq!(page(http, "example.org"), 421);
    server.stop();
    server.join().unwrap();

    let mut wanted = settings(directory.path());
    wanted.require_token = true;
    let token = Token::mint().unwrap();
    let entry = Entry::new(&token, None, Role::Read, logpond_host::clock::now(), None);
    tokens::update(&wanted.tokens, |tokens| tokens.add(entry)).unwrap();
    let server = Server::start(&wanted).unwrap();
    let http = server.addresses().http;
    assert_eq!(page(http, "anything.example"), 200);
    let query = ("GET", "/api/v1/query");
    assert_eq!(ask(http, query, "Host: anything.example\r\n").status, 401);
    let bearer = format!(
        "Host: anything.example\r\nAuthorization: Bearer {}\r\n",
        token.expose()
    );
    assert_eq!(ask(http, query, &bearer).status, 200);
    server.stop();
    server.join().unwrap();
}

#[test]
fn other_nodes_are_asked_by_addresses_only() {
    let directory = tempfile::tempdir().unwrap();
    let mut wanted = settings(directory.path());
    wanted.gossip = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    let server = Server::start(&wanted).unwrap();
    let gossip = server.addresses().gossip.unwrap();
    let status = ("GET", "/cluster/v1/status");
    assert_eq!(ask(gossip, status, "Host: evil.example\r\n").status, 421);
    let foreign = format!("Host: {gossip}\r\nOrigin: http://evil.example\r\n");
    assert_eq!(ask(gossip, status, &foreign).status, 403);
    assert_eq!(request(gossip, "GET", status.1, &[], b"").status, 200);
    server.stop();
    server.join().unwrap();
}
