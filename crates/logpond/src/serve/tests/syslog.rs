use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, UdpSocket};

use super::TestServer;
use super::client::{connect, get};
use super::lines::wait_for_count;
use logpond_host::telemetry::Intake;

#[test]
fn datagrams_become_records_with_their_own_hostname_or_that_of_the_sender() {
    let server = TestServer::new();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = server.address(Intake::SyslogUdp);
    let datagrams = [
        &b"<34>1 2026-03-02T00:02:32Z web-1 app 7 - - with a name\n"[..],
        b"not syslog at all",
        b"",
        b"<13>Oct 11 22:14:15 web-2 app: old\0",
    ];
    for datagram in datagrams {
        socket.send_to(datagram, address).unwrap();
    }
    wait_for_count(&server, 3);
    let (rows, _) = get(server.http(), "/api/v1/query?from=@0&q=with").rows();
    assert_eq!(
        (&rows[0]["hostname"], &rows[0]["_msg"]),
        (&"web-1".into(), &"with a name".into())
    );
    let (rows, _) = get(server.http(), "/api/v1/query?from=@0&q=%22not+syslog%22").rows();
    assert_eq!(rows[0]["hostname"], logpond_host::hostname::own());
    let metrics = String::from_utf8(get(server.http(), "/metrics").body).unwrap();
    assert!(metrics.contains("logpond_ingest_records_total{intake=\"syslog_udp\"} 3\n"));
    assert!(
        metrics.contains("logpond_syslog_udp_kernel_drops_total 0\n"),
        "{metrics}"
    );
}

/// Datagrams are received many at once: none loses its length or its place.
#[test]
fn bursts_of_datagrams_are_told_apart() {
    let server = TestServer::new();
    let address = server.address(Intake::SyslogUdp);
    let senders = ["127.0.0.1:0", "127.0.0.2:0"].map(|from| UdpSocket::bind(from).unwrap());
    let longest = 65_507;
    let messages: Vec<String> = (0..200)
        .map(|number| {
            let head = format!("burst {number} ");
            let length = match number % 50 {
                49 => longest,
                _ => 20 + number * 37 % 3000,
            };
            head.clone() + &"x".repeat(length - head.len())
        })
        .collect();
    for (number, message) in messages.iter().enumerate() {
        let sender = &senders[number % 2];
        sender.send_to(message.as_bytes(), address).unwrap();
    }
    wait_for_count(&server, messages.len() as u64);
    let (rows, _) = get(server.http(), "/api/v1/query?from=@0&limit=0&q=burst").rows();
    let found = rows.iter().map(|row| row["_msg"].as_str().unwrap());
    let number_of = |message: &str| message.split(' ').nth(1).unwrap().parse::<usize>().unwrap();
    // Those of each sender are in their order.
    let (even, odd): (Vec<_>, Vec<_>) = found.partition(|message| number_of(message) % 2 == 0);
    for (sender, found) in [even, odd].iter().enumerate() {
        let sent: Vec<_> = messages.iter().skip(sender).step_by(2).collect();
        assert!(
            found == &sent,
            "{sender}: {} of {}",
            found.len(),
            sent.len()
        );
    }
}

#[test]
fn both_framings_on_one_connection() {
    let server = TestServer::new();
    let mut stream = connect(server.address(Intake::SyslogTcp));
    let counted = b"<13>1 - h a - - - counted\nline";
    stream
        .write_all(format!("{} ", counted.len()).as_bytes())
        .unwrap();
    stream.write_all(counted).unwrap();
    stream
        .write_all(b"<13>1 - h a - - - by line\n<13>1 - h a - - - last")
        .unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
    let mut answers = Vec::new();
    stream.read_to_end(&mut answers).unwrap();
    assert!(answers.is_empty());
    wait_for_count(&server, 3);
    let (rows, _) = get(server.http(), "/api/v1/query").rows();
    let messages: Vec<_> = rows.iter().map(|r| r["_msg"].as_str().unwrap()).collect();
    assert_eq!(messages, ["counted\nline", "by line", "last"]);
}

/// As librelp does it: open, messages with others on their way, close.
#[test]
fn relp_messages_are_acknowledged_once_they_are_durable() {
    let server = TestServer::new();
    let mut stream = connect(server.address(Intake::Relp));
    stream
        .write_all(b"1 open 31 relp_version=0\ncommands=syslog\n\n")
        .unwrap();
    let mut answers = BufReader::new(stream.try_clone().unwrap());
    let mut line = || {
        let mut line = String::new();
        answers.read_line(&mut line).unwrap();
        line
    };
    assert_eq!(line(), "1 rsp 59 200 OK\n");
    for offer in [
        "relp_version=0\n",
        "relp_software=logpond\n",
        "commands=syslog\n",
    ] {
        assert_eq!(line(), offer);
    }
    stream
        .write_all(b"2 syslog 33 <13>Mar  2 00:00:00 ash app: one\n\n3 syslog 32 <13>Mar  2 00:00:01 ash app: two\n")
        .unwrap();
    assert_eq!(
        (line(), line()),
        ("2 rsp 6 200 OK\n".into(), "3 rsp 6 200 OK\n".into())
    );
    let (rows, _) = get(server.http(), "/api/v1/query?from=@0&to=2100-01-01").rows();
    let found: Vec<_> = rows
        .iter()
        .map(|row| row["_msg"].as_str().unwrap())
        .collect();
    assert_eq!(found, ["one", "two"]);
    assert!(
        rows.iter()
            .all(|row| row["hostname"] == "ash" && row["app"] == "app")
    );
    stream.write_all(b"4 close 0\n").unwrap();
    assert_eq!(
        (line(), line()),
        ("4 rsp 0\n".into(), "0 serverclose 0\n".into())
    );
    assert_eq!(line(), "", "the connection ends");

    // What is no RELP is not stored, and ends the connection.
    let mut stream = connect(server.address(Intake::Relp));
    stream.write_all(b"<13>plain\n").unwrap();
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    assert_eq!(rest, b"");
    let (_, trailer) = get(
        server.http(),
        "/api/v1/query?count=true&from=@0&to=2100-01-01",
    )
    .rows();
    assert_eq!(trailer["rows"], 2);
}

/// Sends messages of these numbers in a session and gives what was answered up to the last of them; the
/// session is not closed.
fn send_by_relp(server: &TestServer, numbers: std::ops::Range<usize>) -> String {
    let mut stream = connect(server.address(Intake::Relp));
    let mut sent = String::from("1 open 15 commands=syslog\n");
    let last = format!("\n{} rsp 6 200 OK\n", numbers.end + 1);
    for number in numbers {
        let message = format!("<13>Mar  2 00:00:00 ash app: {number:03}");
        let length = message.len();
        sent.push_str(&format!("{} syslog {length} {message}\n", number + 2));
    }
    stream.write_all(sent.as_bytes()).unwrap();
    let mut answers = String::new();
    let mut buffer = [0; 1000];
    while !answers.ends_with(&last) {
        let bytes = stream.read(&mut buffer).unwrap();
        assert!(bytes > 0, "{answers}");
        answers.push_str(std::str::from_utf8(&buffer[..bytes]).unwrap());
    }
    answers
}

#[test]
fn what_a_relp_client_sends_again_is_not_stored_again() {
    let mut server = TestServer::new();
    let resent = |server: &TestServer| {
        let metrics = String::from_utf8(get(server.http(), "/metrics").body).unwrap();
        let name = "logpond_ingest_resent_records_total{intake=\"relp\"} ";
        let line = metrics.lines().find(|line| line.starts_with(name));
        line.unwrap()[name.len()..].parse::<u64>().unwrap()
    };
    send_by_relp(&server, 0..10);
    // The first session ends when the server reads its end, before or after the next one begins.
    let wait_for_end = |server: &TestServer| {
        let open = "logpond_connections{intake=\"relp\"} 0\n";
        while !String::from_utf8(get(server.http(), "/metrics").body)
            .unwrap()
            .contains(open)
        {
            std::thread::yield_now();
        }
    };
    wait_for_end(&server);
    send_by_relp(&server, 7..15);
    assert_eq!(resent(&server), 3);
    wait_for_end(&server);
    server.restart();
    send_by_relp(&server, 12..20);
    assert_eq!(resent(&server), 3, "12 to 14 were in the journal");
    wait_for_count(&server, 20);
}
