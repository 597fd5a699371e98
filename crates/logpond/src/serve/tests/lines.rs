use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, UdpSocket};

use super::client::{connect, get};
use super::{TestServer, settings};
use crate::serve::Server;
use logpond_host::telemetry::Intake;

/// Asks until the count of records is reached; every ask is a whole round trip.
pub(super) fn wait_for_count(pond: &TestServer, wanted: u64) {
    let started = std::time::Instant::now();
    loop {
        let (_, trailer) = get(pond.http(), "/api/v1/query?count=true&from=@0").rows();
        if trailer["rows"] == wanted {
            return;
        }
        assert!(started.elapsed() < super::client::PATIENCE, "{trailer}");
    }
}

#[test]
fn durable_lines_are_acknowledged_and_visible_at_once() {
    let pond = TestServer::new();
    let mut stream = connect(pond.address(Intake::Durable));
    let mut answers = BufReader::new(stream.try_clone().unwrap());
    for round in 1..=3 {
        stream.write_all(b"one 100%d\ntwo \xff\0\n").unwrap();
        let mut acknowledged = 0;
        while acknowledged < 2 {
            let mut line = String::new();
            answers.read_line(&mut line).unwrap();
            let count = line.strip_prefix("OK ").unwrap().trim_end();
            acknowledged += count.parse::<u64>().unwrap();
        }
        assert_eq!(acknowledged, 2);
        let (rows, trailer) = get(pond.http(), "/api/v1/query?fields=raw").rows();
        assert_eq!(rows.len(), 2 * round, "{trailer}");
        assert_eq!(rows[0]["_line"], "one 100%d");
        assert_eq!(rows[1]["_line_b64"], "dHdvIP8A");
        // The peer is this machine.
        assert_eq!(rows[0]["hostname"], logpond_host::hostname::own());
    }
}

#[test]
fn a_last_line_without_its_end_is_kept() {
    let pond = TestServer::new();
    let mut stream = connect(pond.address(Intake::Durable));
    stream.write_all(b"a\nlast").unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answers = String::new();
    stream.read_to_string(&mut answers).unwrap();
    let total: u64 = answers
        .lines()
        .map(|l| l[3..].parse::<u64>().unwrap())
        .sum();
    assert_eq!(total, 2, "{answers}");

    let mut stream = connect(pond.address(Intake::Fast));
    stream.write_all(b"fast one\nfast last").unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answers = String::new();
    stream.read_to_string(&mut answers).unwrap();
    assert_eq!(answers, "");
    wait_for_count(&pond, 4);
}

#[test]
fn a_hostname_in_the_line_wins() {
    let pond = TestServer::new();
    let mut stream = connect(pond.address(Intake::Fast));
    let lines = b"{\"msg\":\"a\",\"hostname\":\"web-1\"}\n<13>1 - web-2 app - - - b\n";
    stream.write_all(lines).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    wait_for_count(&pond, 2);
    let (rows, _) = get(pond.http(), "/api/v1/query").rows();
    let names: Vec<_> = rows.iter().map(|row| row["hostname"].as_str()).collect();
    assert_eq!(names, [Some("web-1"), Some("web-2")]);
}

#[test]
fn long_lines_are_cut_and_marked() {
    let pond = TestServer::new();
    let mut stream = connect(pond.address(Intake::Durable));
    let long = vec![b'x'; (1 << 20) + 5];
    stream.write_all(b"before\n").unwrap();
    stream.write_all(&long).unwrap();
    stream.write_all(b"\nafter\n").unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answers = String::new();
    stream.read_to_string(&mut answers).unwrap();
    let (rows, _) = get(pond.http(), "/api/v1/query?q=_truncated_bytes:*").rows();
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0]["_truncated_bytes"], long.len().to_string());
    assert_eq!(rows[0]["_msg"].as_str().unwrap().len(), 1 << 20);
    wait_for_count(&pond, 3);
}

#[test]
fn many_connections_lose_nothing() {
    let pond = TestServer::new();
    let address = pond.address(Intake::Durable);
    std::thread::scope(|scope| {
        for sender in 0..8 {
            scope.spawn(move || {
                let mut stream = connect(address);
                let lines: String = (0..500).map(|n| format!("s{sender} n{n}\n")).collect();
                stream.write_all(lines.as_bytes()).unwrap();
                stream.shutdown(Shutdown::Write).unwrap();
                let mut answers = String::new();
                stream.read_to_string(&mut answers).unwrap();
                let counts = answers.lines().map(|l| l[3..].parse::<u64>().unwrap());
                assert_eq!(counts.sum::<u64>(), 500);
            });
        }
    });
    let (rows, _) = get(pond.http(), "/api/v1/query").rows();
    let mut messages: Vec<_> = rows.iter().map(|r| r["_msg"].to_string()).collect();
    messages.sort();
    messages.dedup();
    assert_eq!(messages.len(), 4000);
}

#[test]
fn each_line_of_a_datagram_is_a_record() {
    let pond = TestServer::new();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = pond.address(Intake::LinesUdp);
    let datagrams = [
        "{\"level\":\"warn\",\"message\":\"slow\",\"ms\":812}",
        "plain text\r\n\n{\"message\":\"second\"}\n",
    ];
    for datagram in datagrams {
        socket.send_to(datagram.as_bytes(), address).unwrap();
    }
    wait_for_count(&pond, 3);
    let (rows, trailer) = get(pond.http(), "/api/v1/query").rows();
    assert_eq!(
        (&rows[0]["ms"], &rows[0]["level"]),
        (&812.into(), &"warn".into())
    );
    let messages: Vec<_> = rows.iter().map(|row| &row["_msg"]).collect();
    assert_eq!(messages, ["slow", "plain text", "second"], "{trailer}");
    let said = get(pond.http(), "/metrics");
    let said = String::from_utf8(said.body).unwrap();
    assert!(said.contains("logpond_ingest_records_total{intake=\"lines_udp\"} 3\n"));
}

#[test]
fn this_machine_may_have_another_name() {
    let directory = tempfile::tempdir().unwrap();
    let mut named = settings(directory.path());
    named.hostname = "ash".to_owned();
    let mut pond = TestServer {
        server: Some(Server::start(&named).unwrap()),
        directory,
    };
    let mut stream = connect(pond.address(Intake::Fast));
    stream
        .write_all(b"a\n{\"message\":\"b\",\"hostname\":\"elm\"}\n")
        .unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    wait_for_count(&pond, 2);
    let (rows, _) = get(pond.http(), "/api/v1/query").rows();
    let names: Vec<_> = rows.iter().map(|row| &row["hostname"]).collect();
    assert_eq!(names, ["ash", "elm"]);
    pond.stop();
}
