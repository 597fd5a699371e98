//! Listeners whose ports others have, and the page that names all listeners.

use std::io::Write;
use std::net::{Shutdown, SocketAddr, TcpListener, UdpSocket};
use std::time::Instant;

use super::client::{PATIENCE, connect, get, metric};
use super::lines::wait_for_count;
use super::{TestServer, settings};
use crate::serve::{ServeError, Server};
use logpond_host::telemetry::Intake;
use logpond_listen::net;
use logpond_settings::{Protection, Protocol, TABLE, Transport, listeners};

const PAGE: &str = include_str!("../../../../../docs/security.md");

fn is_up(http: SocketAddr, name: &str) -> bool {
    metric(http, &format!("logpond_listener_up{{listener=\"{name}\"}}")) == 1
}

fn ready(http: SocketAddr) -> String {
    let answer = get(http, "/-/ready");
    assert_eq!(answer.status, 200);
    String::from_utf8(answer.body).unwrap()
}

#[test]
fn what_nobody_asked_for_may_be_absent_and_comes_later() {
    let (stream, datagram) = (
        TcpListener::bind("127.0.0.1:0").unwrap(),
        UdpSocket::bind("127.0.0.1:0").unwrap(),
    );
    let directory = tempfile::tempdir().unwrap();
    let mut wanted = settings(directory.path());
    let (fast, udp) = (stream.local_addr().unwrap(), datagram.local_addr().unwrap());
    wanted.listeners.set(Intake::Fast, Some(fast));
    wanted.listeners.set(Intake::SyslogUdp, Some(udp));
    wanted.default_listeners = vec!["fast", "syslog-udp", "durable"];
    let server = Server::start(&wanted).unwrap();
    let addresses = *server.addresses();
    assert_eq!(
        (
            addresses.intakes.of(Intake::Fast),
            addresses.intakes.of(Intake::SyslogUdp)
        ),
        (None, None)
    );
    let http = addresses.http;
    let said = ready(http);
    assert!(said.starts_with("ready\n"), "{said}");
    for line in [
        format!("off: fast at {fast}: the port is in use"),
        format!("off: syslog-udp at {udp}"),
    ] {
        assert!(said.contains(&line), "{said}");
    }
    assert!(!is_up(http, "fast") && !is_up(http, "syslog-udp"));
    assert!(is_up(http, "durable") && is_up(http, "http"));
    drop((stream, datagram));
    let started = Instant::now();
    while !(is_up(http, "fast") && is_up(http, "syslog-udp")) {
        assert!(started.elapsed() < PATIENCE, "{}", ready(http));
    }
    assert_eq!(ready(http), "ready\n");
    let mut lines = connect(fast);
    lines.write_all(b"late\n").unwrap();
    lines.shutdown(Shutdown::Write).unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.send_to(b"<13>late\n", udp).unwrap();
    let mut pond = TestServer {
        server: Some(server),
        directory,
    };
    wait_for_count(&pond, 2);
    pond.stop();
}

#[test]
fn what_was_asked_for_stops_the_start_and_comes_first() {
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = holder.local_addr().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let mut wanted = settings(directory.path());
    wanted.listeners.set(Intake::Fast, Some(address));
    let error = Server::start(&wanted).err().unwrap();
    assert!(
        matches!(&error, ServeError::Bind(error) if error.flag == "fast"),
        "{error:?}"
    );
    // HTTP nobody needs to ask for.
    let mut wanted = settings(directory.path());
    wanted.http = address;
    wanted.default_listeners = vec!["http"];
    let error = Server::start(&wanted).err().unwrap();
    assert!(
        matches!(&error, ServeError::Bind(error) if error.flag == "http"),
        "{error:?}"
    );
    drop(holder);
    // One port for two: who asked has it.
    let mut wanted = settings(directory.path());
    wanted.listeners.set(Intake::Fast, Some(address));
    wanted.listeners.set(Intake::Relp, Some(address));
    wanted.default_listeners = vec!["fast"];
    let server = Server::start(&wanted).unwrap();
    let addresses = server.addresses();
    assert_eq!(
        (
            addresses.intakes.of(Intake::Fast),
            addresses.intakes.of(Intake::Relp)
        ),
        (None, Some(address))
    );
    server.stop();
    server.join().unwrap();
}

/// The cells of the rows of the table of listeners.
fn rows() -> Vec<Vec<&'static str>> {
    let lines = PAGE.lines();
    let rows = lines.skip_while(|line| !line.starts_with("| listener | default |"));
    let rows = rows.skip(2);
    let rows = rows.map_while(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    rows.map(|row| row.split(" | ").collect()).collect()
}

#[test]
fn the_page_has_every_listener_as_it_is() {
    let rows = rows();
    let named: Vec<_> = rows.iter().map(|row| row[0].trim_matches('`')).collect();
    let of_network: Vec<_> = listeners().map(|listener| listener.name).collect();
    // Sockets and devices of this machine.
    let local = ["dev-log", "dev-log-stream", "journald", "kmsg", "audit"];
    assert_eq!(named, [&of_network[..], &local].concat());
    for (listener, row) in listeners().zip(&rows) {
        let name = listener.name;
        let default = TABLE.iter().find(|row| row.name == name).unwrap().default;
        let port = listener.port;
        let transport = match listener.transport() {
            Transport::Tcp => "TCP",
            Transport::Udp => "UDP",
        };
        let default = match default {
            "off" => format!("off; port {port}, {transport}"),
            default => {
                assert!(default.ends_with(&format!(":{port}")), "{name}");
                format!("`{default}`, {transport}")
            }
        };
        let (token, tls) = match listener.protection {
            Protection::Http => ("yes", "`tls-certificate`"),
            Protection::Open => ("no", "no"),
            Protection::ClientCertificates => (
                "no",
                "always; clients by `syslog-tls-ca`, `syslog-tls-peers`",
            ),
            Protection::Nodes => ("no", "`cluster-tls`"),
        };
        assert_eq!((row[1], row[3], row[4]), (&*default, token, tls), "{name}");
        let connections = match listener.protocol {
            Protocol::Bulk => net::BULK_CONNECTIONS_MAX,
            _ => net::CONNECTIONS_MAX,
        };
        let limit = match listener.transport() {
            Transport::Tcp => format!("{connections} connections"),
            Transport::Udp => "datagrams".to_owned(),
        };
        assert!(row[6].starts_with(&limit), "{name}: {}", row[6]);
    }
    for (name, row) in local.iter().zip(&rows[of_network.len()..]) {
        let setting = TABLE.iter().find(|row| row.name == *name).unwrap();
        let default = setting.default.replace("false", "off");
        assert_eq!(row[1], default, "{name}");
    }
}
