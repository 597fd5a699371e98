//! Connections that speak HTTP or TLS to listeners for records.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, UdpSocket};

use super::TestServer;
use super::client::{connect, get, metric};
use super::lines::wait_for_count;
use logpond_host::telemetry::Intake;

/// Every listener for records over TCP, by the name of its intake.
fn listeners(server: &TestServer) -> [(&'static str, SocketAddr); 7] {
    [
        ("fast", server.address(Intake::Fast)),
        ("durable", server.address(Intake::Durable)),
        ("bulk", server.address(Intake::Bulk)),
        ("syslog_tcp", server.address(Intake::SyslogTcp)),
        ("relp", server.address(Intake::Relp)),
        ("gelf_tcp", server.address(Intake::GelfTcp)),
        ("fluent", server.address(Intake::Fluent)),
    ]
}

/// What comes back for some pieces, each sent once the one before has arrived.
fn send(address: SocketAddr, pieces: &[&[u8]]) -> Vec<u8> {
    let mut stream = connect(address);
    stream.set_nodelay(true).unwrap();
    for piece in pieces {
        // The server may have ended it.
        let _ = stream.write_all(piece);
    }
    let _ = stream.shutdown(Shutdown::Write);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    answer
}

fn foreign(server: &TestServer, intake: &str) -> i64 {
    let name = format!("logpond_ingest_foreign_connections_total{{intake=\"{intake}\"}}");
    metric(server.http(), &name)
}

#[test]
fn nothing_of_http_or_tls_becomes_a_record() {
    let server = TestServer::new();
    // A body whose lines are good records of every listener.
    let body = "<13>1 2026-03-02T00:00:00Z ash app - - - forged\n{\"short_message\":\"forged\"}\n\
                1 open 15 commands=syslog\n2 syslog 9 <13>x y z\n";
    let post = format!("POST /<13>forged HTTP/1.1\r\nHost: evil.example\r\n\r\n{body}");
    let long = format!("GET /{} HTTP/1.1\r\n{body}", "a".repeat(200_000));
    let counted = format!("9 /forged HTTP/1.1\r\n{body}");
    let (head, rest) = post.split_at(7);
    let hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\nforged\n\0forged\n";
    let attempts: [&[&[u8]]; 7] = [
        &[post.as_bytes()],
        &[head.as_bytes(), rest.as_bytes()],
        &[counted.as_bytes()],
        &[b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"forged\n"],
        &[hello],
        // The length of a hello has the byte that ends a line, or a frame.
        &[b"\x16\x03\x01\x01\n", b"\x01\0\x01\x06\x03\x03"],
        &[b"\x16\x03\x01\x02\0", b"\x01\0\x01\xfc\x03\x03"],
    ];
    let hello_first = attempts.len() - 3;
    for (name, address) in listeners(&server) {
        for (at, attempt) in attempts.into_iter().enumerate() {
            let answer = send(address, attempt);
            let said = String::from_utf8_lossy(&answer);
            assert!(!said.contains("OK"), "{name} {at}: {said}");
            let is_tls = at >= hello_first;
            if is_tls {
                assert!(
                    matches!(answer.first(), None | Some(21 | b'{')),
                    "{name}: {said}"
                )
            } else {
                assert!(
                    answer.is_empty() || said.starts_with("HTTP/1.1 400 "),
                    "{said}"
                )
            }
        }
        assert_eq!(foreign(&server, name), attempts.len() as i64, "{name}");
        let answer = send(address, &[long.as_bytes()]);
        assert!(!String::from_utf8_lossy(&answer).contains("OK"), "{name}");
    }
    // The connections before were ended before this one was taken.
    let mark = send(listeners(&server)[1].1, &[b"mark\n"]);
    assert_eq!(String::from_utf8_lossy(&mark), "OK 1\n");
    let (rows, _) = get(server.http(), "/api/v1/query?from=@0").rows();
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_eq!(rows[0]["_msg"], "mark");
}

/// A page chooses the name of a user of STUN and the port, and the browser sends it.
#[test]
fn no_datagram_of_a_browser_becomes_a_record() {
    let server = TestServer::new();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let head = b"\0\x01\0\x0c\x21\x12\xa4\x42transaction!";
    let stun = [&head[..], b"\0\x06\0\x08forged+a"].concat();
    let hello = [&[22, 254, 253][..], &[0; 10], b"\x01\nforged\n"].concat();
    let records: [(&str, Intake, &[u8]); 2] = [
        ("syslog_udp", Intake::SyslogUdp, b"<13>mark"),
        (
            "gelf_udp",
            Intake::GelfUdp,
            b"{\"version\":\"1.1\",\"host\":\"h\",\"short_message\":\"mark\"}",
        ),
    ];
    for (_, intake, record) in records {
        for datagram in [&stun[..], &hello, record] {
            socket.send_to(datagram, server.address(intake)).unwrap();
        }
    }
    wait_for_count(&server, 2);
    for (name, ..) in records {
        assert_eq!(foreign(&server, name), 2, "{name}");
    }
    let (rows, _) = get(server.http(), "/api/v1/query?from=@0&q=forged").rows();
    assert_eq!(rows.len(), 0, "{rows:?}");
}

#[test]
fn text_that_only_looks_like_a_request_is_kept() {
    let server = TestServer::new();
    let lines = [
        "GET / took 5 ms",
        "GET / HTTP/1.1 200 12",
        "POST failed",
        "PUT",
        "\"GET / HTTP/1.1\" 200",
    ];
    let durable = server.address(Intake::Durable);
    for line in lines {
        let answer = send(durable, &[line.as_bytes(), b"\n"]);
        assert_eq!(String::from_utf8_lossy(&answer), "OK 1\n", "{line}");
    }
    // Behind the first line of a connection anything is a record.
    let answer = send(durable, &[b"first\n", b"GET / HTTP/1.1\r\nHost: a\r\n"]);
    let said = String::from_utf8_lossy(&answer).into_owned();
    let acknowledged = said.lines().map(|line| line[3..].parse::<u64>().unwrap());
    assert_eq!(acknowledged.sum::<u64>(), 3, "{said}");
    let syslog = server.address(Intake::SyslogTcp);
    send(syslog, &[b"<13>GET / HTTP/1.1\n"]);
    send(syslog, &[b"18 <13>GET / HTTP/1.1"]);
    wait_for_count(&server, lines.len() as u64 + 5);
    for (name, _) in listeners(&server) {
        assert_eq!(foreign(&server, name), 0, "{name}");
    }
}
