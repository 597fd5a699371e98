//! Clients that stand still, or are many, on purpose.

use std::io::{BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use socket2::{Domain, Socket, Type};

use super::TestServer;
use super::client::{PATIENCE, connect, metric, push, read_answer};
use logpond_host::telemetry::Intake;
use logpond_listen::net;

/// A connection from another address of this machine.
fn connect_from(own: [u8; 4], address: SocketAddr) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    let own = SocketAddr::from((Ipv4Addr::from(own), 0));
    socket.bind(&own.into()).unwrap();
    socket.connect(&address.into()).unwrap();
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

#[test]
fn one_address_cannot_keep_others_out() {
    let server = TestServer::new();
    let bulk = server.address(Intake::Bulk);
    let most = net::connections_per_address_max(net::BULK_CONNECTIONS_MAX);
    let mut idle: Vec<_> = (0..most).map(|_| connect(bulk)).collect();
    // One more of the same address is closed, and others are served.
    let mut more = connect(bulk);
    assert_eq!(more.read(&mut [0; 8]).unwrap_or(0), 0);
    let mut other = connect_from([127, 0, 0, 2], bulk);
    other.write_all(b"{no journal file}").unwrap();
    let mut said = [0; 8];
    assert_eq!(other.read(&mut said).unwrap(), said.len());
    let refused = "logpond_connections_refused_total{intake=\"bulk\"}";
    assert_eq!(metric(server.http(), refused), 1);
    // One that waits gets a place that is given back.
    let mut next = connect(bulk);
    next.write_all(b"{no journal file}").unwrap();
    idle.pop();
    assert_eq!(next.read(&mut said).unwrap(), said.len());
}

fn lines(bytes: usize) -> Vec<u8> {
    let mut lines = [&[b'x'; 1023][..], b"\n"].concat().repeat(bytes >> 10);
    lines.truncate(bytes);
    lines
}

#[test]
fn bodies_that_stand_still_do_not_keep_others_out() {
    let server = TestServer::new();
    let part = lines(16 << 20);
    let stalled = (0..4).map(|_| {
        let mut stream = connect(server.http());
        let head = format!(
            "POST /api/v1/push HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\n\
             Content-Length: {}\r\n\r\n",
            part.len() + 1
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(&part).unwrap();
        stream
    });
    let stalled: Vec<TcpStream> = stalled.collect();
    let answer = push(server.http(), "text/plain", &lines(1 << 20));
    assert_eq!(
        answer.status,
        200,
        "{}",
        String::from_utf8_lossy(&answer.body)
    );
    // Whoever was dropped is told; the others may go on.
    let mut statuses = Vec::new();
    for mut stream in stalled {
        stream
            .set_read_timeout(Some(Duration::from_millis(1)))
            .unwrap();
        let is_answered = stream.peek(&mut [0]).is_ok();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        if !is_answered {
            stream.write_all(b"x").unwrap();
        }
        statuses.push(read_answer(&mut BufReader::new(stream)).status);
    }
    statuses.sort_unstable();
    assert_eq!((statuses[0], statuses[3]), (200, 408), "{statuses:?}");
}
