//! The server as a process: ports, ready file, draining, refusals.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use crate::pond::{Scratch, TestServer, wait_until};
use crate::surroundings::program;

#[test]
fn the_ready_file_names_every_bound_address() {
    let scratch = Scratch::new("ready").unwrap();
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    for name in ["http", "fast", "durable", "syslog_udp", "syslog_tcp"] {
        let address: std::net::SocketAddr = server.address(name).parse().unwrap();
        assert!(
            address.ip().is_loopback() && address.port() != 0,
            "{name} {address}"
        );
    }
    assert_eq!(server.get("/-/healthy").map(drop), Ok(()));
    assert_eq!(server.get("/-/ready").map(drop), Ok(()));
    // The chosen port is printed.
    server.said(server.address("http").rsplit(':').next().unwrap());
}

#[test]
fn as_many_files_as_may_be_are_opened() {
    let scratch = Scratch::new("files").unwrap();
    // As a login shell has it: some hundred segments and connections would be all.
    let mut command = std::process::Command::new("sh");
    command
        .args(["-c", "ulimit -Sn 256 && exec \"$0\" \"$@\""])
        .arg(program());
    let server = TestServer::start_under(command, &scratch.path().join("data"), &[]).unwrap();
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", server.pid())).unwrap();
    let files = limits
        .lines()
        .find(|line| line.starts_with("Max open files"));
    let numbers: Vec<&str> = files.unwrap().split_whitespace().skip(3).take(2).collect();
    assert_eq!(numbers[0], numbers[1], "{limits}");
}

#[test]
fn every_way_in_leads_to_the_same_answers() {
    let scratch = Scratch::new("ways").unwrap();
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    let syslog = "<34>1 2026-03-02T00:00:10Z web-01 sshd 7 - - by wayin syslog\n";
    let answers = server
        .send_tcp("durable", b"by wayin 100%d durable\nand \0 wayin")
        .unwrap();
    // The line without an end is known to be whole once the connection ends, perhaps after the
    // sync of the first one.
    let counts = answers
        .lines()
        .map(|line| line.trim_start_matches("OK ").parse::<u64>().unwrap());
    assert_eq!(counts.sum::<u64>(), 2, "{answers}");
    server
        .send_tcp("fast", b"by wayin fast, no newline")
        .unwrap();
    server.send_tcp("syslog_tcp", syslog.as_bytes()).unwrap();
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    socket
        .send_to(syslog.as_bytes(), server.address("syslog_udp"))
        .unwrap();
    let text = server.push("text/plain", b"by wayin text").unwrap();
    assert_eq!((text.status, text.accepted()), (200, 1), "{}", text.body);
    let body = b"{\"_msg\":\"by wayin json\",\"status\":500}\nnot json\n{\"_msg\":\"wayin\"}\n";
    let mixed = server.push("application/x-ndjson", body).unwrap();
    assert_eq!((mixed.status, mixed.accepted()), (200, 2), "{}", mixed.body);
    assert_eq!(mixed.body["rejected"][0]["line"], 2, "{}", mixed.body);
    wait_until("all ways are visible", || {
        server.query("wayin").is_ok_and(|(rows, _)| rows.len() == 8)
    })
    .unwrap_or_else(|e| panic!("{e}: {:?}", server.query("wayin")));
    let (rows, _) = server
        .query("\"wayin syslog\" hostname=web-01 app=sshd")
        .unwrap();
    assert_eq!(rows.len(), 2);
    let (rows, _) = server.query("wayin status>=500").unwrap();
    assert_eq!(rows.len(), 1);
    let (rows, _) = server.query("\"100%d durable\"").unwrap();
    assert_eq!(rows.len(), 1);
}

#[test]
fn sigterm_drains_and_nothing_accepted_is_lost() {
    let scratch = Scratch::new("drain").unwrap();
    let data = scratch.path().join("data");
    let server = TestServer::start(program(), &data, &[]).unwrap();
    let mut fast = TcpStream::connect(server.address("fast")).unwrap();
    fast.write_all(b"drain first\ndrain last without newline")
        .unwrap();
    server.push("text/plain", b"drain pushed\n").unwrap();
    // The first line is visible, so the connection's bytes have been read.
    wait_until("the fast line is visible", || {
        server
            .query("\"drain first\"")
            .is_ok_and(|(rows, _)| rows.len() == 1)
    })
    .unwrap();
    let status = server.terminate().unwrap();
    assert_eq!(status.code(), Some(0), "{status}");
    assert!(
        crate::pond::files_below(&data, ".open").is_empty(),
        "the journal is closed"
    );
    let server = TestServer::start(program(), &data, &[]).unwrap();
    assert_eq!(server.query("drain").unwrap().0.len(), 3);
}

#[test]
fn a_second_server_on_the_same_data_is_refused() {
    let scratch = Scratch::new("lock").unwrap();
    let data = scratch.path().join("data");
    let _pond = TestServer::start(program(), &data, &[]).unwrap();
    let other = scratch.path().join("other");
    std::os::unix::fs::symlink(&data, &other).unwrap();
    let is_refused = || {
        let Err(error) = TestServer::start(program(), &other, &[]) else {
            panic!("two servers write to one data directory");
        };
        assert!(error.contains("before it was ready"), "{error}");
    };
    is_refused();
    // The file says only who comes first.
    std::fs::remove_file(data.join("lock")).unwrap();
    is_refused();
}

#[test]
fn an_open_address_needs_an_explicit_word() {
    let scratch = Scratch::new("open").unwrap();
    let output = std::process::Command::new(program())
        .args(["serve", "--http", "0.0.0.0:0", "--data"])
        .arg(scratch.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("--insecure"), "{said}");
}

#[test]
fn a_query_that_nobody_reads_to_its_end_is_given_up() {
    let scratch = Scratch::new("cancel").unwrap();
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    let line = "cancel ".repeat(500);
    let body = vec![line.as_str(); 2_000].join("\n");
    server.push("text/plain", body.as_bytes()).unwrap();
    let mut stream = TcpStream::connect(server.address("http")).unwrap();
    let target = format!("/api/v1/query?{}&limit=0&q=cancel", crate::pond::ALL_TIME);
    write!(stream, "GET {target} HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    let mut first = String::new();
    BufReader::new(&stream).read_line(&mut first).unwrap();
    assert!(first.contains("200"), "{first}");
    drop(stream);
    assert_eq!(server.query("cancel").unwrap().0.len(), 2_000);
    assert_eq!(server.terminate().unwrap().code(), Some(0));
}
