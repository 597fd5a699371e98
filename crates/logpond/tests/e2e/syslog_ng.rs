//! syslog-ng as the sender, by each of its transports, and the tools that load and try out syslog.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use crate::pond::{Scratch, TestServer, wait_until};
use crate::surroundings::{program, skip};
use crate::unpacked::unpacked;

/// Messages that are sent by each transport.
const MESSAGES: usize = 2000;

/// Messages of each connection of `loggen`.
const LOADED: usize = 5000;

/// A daemon that passes on what comes to a socket of this machine.
struct SyslogNg {
    child: Child,
    socket: PathBuf,
}

impl SyslogNg {
    /// Starts it with this destination; none where it is not installed, or lacks what the destination needs.
    fn start(scratch: &Scratch, destination: &str) -> Option<SyslogNg> {
        let directory = scratch.path();
        let socket = directory.join("socket");
        let path = directory.join("syslog-ng.conf");
        // It has blocks of configuration that others are made of.
        let include = match destination.split_once('(') {
            Some(("elasticsearch-http", _)) => "@include \"scl/elasticsearch/elastic-http.conf\"\n",
            _ => "",
        };
        let configuration = format!(
            "@version: 3.38\n{include}\
             options {{ keep-hostname(yes); time-reopen(1); frac-digits(3); log-msg-size(1MiB); }};\n\
             source s {{ unix-stream(\"{}\" flags(syslog-protocol)); }};\n\
             destination d {{ {destination} }};\n\
             log {{ source(s); destination(d); flags(flow-control); }};\n",
            socket.display(),
        );
        fs::write(&path, configuration).unwrap();
        let command = || {
            let mut command = unpacked("syslog-ng", "syslog-ng")?;
            command.arg("-f").arg(&path).stdin(Stdio::null());
            command.stdout(Stdio::null()).stderr(Stdio::null());
            Some(command)
        };
        let mut check = command()?;
        if !check.arg("-s").status().is_ok_and(|s| s.success()) {
            return None;
        }
        let mut command = command()?;
        command.arg("-F");
        let files = [("-R", "persist"), ("-p", "pid"), ("-c", "control")];
        for (flag, file) in files {
            command.arg(flag).arg(directory.join(file));
        }
        let child = command.spawn().unwrap();
        let daemon = SyslogNg { child, socket };
        wait_until("syslog-ng listens", || {
            UnixStream::connect(&daemon.socket).is_ok()
        })
        .unwrap();
        Some(daemon)
    }
}

impl Drop for SyslogNg {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn messages_by_every_transport_of_syslog_ng_are_here_once() {
    let scratch = Scratch::new("syslog-ng").unwrap();
    let local = scratch.path().join("log").display().to_string();
    let of_server = ["--dev-log-stream", &local];
    let server = TestServer::start(program(), &scratch.path().join("data"), &of_server).unwrap();
    let port = |listener: &str| {
        let address = server.address(listener);
        address.rsplit(':').next().unwrap().to_owned()
    };
    let (tcp, udp) = (port("syslog_tcp"), port("syslog_udp"));
    let ways = [
        ("lines", format!("network(\"127.0.0.1\" port({tcp}));")),
        // It counts a line end with each message.
        ("counted", format!("syslog(\"127.0.0.1\" port({tcp}));")),
        (
            "structured",
            format!("network(\"127.0.0.1\" port({tcp}) flags(syslog-protocol));"),
        ),
        (
            "datagrams",
            format!("network(\"127.0.0.1\" port({udp}) transport(udp));"),
        ),
        ("streamed", format!("unix-stream(\"{local}\");")),
    ];
    for (way, destination) in ways {
        let Some(daemon) = SyslogNg::start(&scratch, &destination) else {
            return skip("syslog-ng", "it is not installed (./test does it)");
        };
        let mut stream = UnixStream::connect(&daemon.socket).unwrap();
        for number in 0..MESSAGES {
            let line = format!(
                "<165>1 2026-03-02T01:00:00.250+01:00 ash app 7 ID [ex@1 n=\"{number}\"] \
                 {way} {number} \u{e4}\u{20ac}\n"
            );
            stream.write_all(line.as_bytes()).unwrap();
        }
        drop(stream);
        wait_until("all messages are here", || {
            server
                .query(way)
                .is_ok_and(|(rows, _)| rows.len() >= MESSAGES)
        })
        .unwrap();
        let (rows, trailer) = server.query(way).unwrap();
        assert_eq!(trailer["complete"], true);
        let found: BTreeSet<_> = rows.iter().map(|row| row["_msg"].as_str()).collect();
        let sent: Vec<_> = (0..MESSAGES)
            .map(|number| format!("{way} {number} \u{e4}\u{20ac}"))
            .collect();
        let wanted: BTreeSet<_> = sent.iter().map(|text| Some(&**text)).collect();
        assert_eq!(rows.len(), MESSAGES, "{way}");
        assert!(found == wanted, "{way}: {:?}", rows[0]);
        for row in &rows {
            let fields = ["hostname", "app", "procid"].map(|name| row[name].as_str());
            assert_eq!(fields, [Some("ash"), Some("app"), Some("7")], "{row}");
            assert_eq!(
                (&row["facility"], &row["severity"]),
                (&20.into(), &5.into())
            );
        }
        if matches!(way, "counted" | "structured") {
            assert!(rows.iter().all(|row| row["msgid"] == "ID"));
            let (found, _) = server.query(&format!("{way} ex@1.n=17")).unwrap();
            assert_eq!(found.len(), 1);
            assert_eq!(rows[0]["_time"], "2026-03-02T00:00:00.250000000Z");
        }
    }
    assert_eq!(server.metric("logpond_ingest_lost_total"), Ok(0.0));
    assert_eq!(server.terminate().unwrap().code(), Some(0));
}

/// syslog-ng's output for Elasticsearch, with its template of documents.
#[test]
fn messages_in_documents_are_here_once() {
    let scratch = Scratch::new("syslog-ng-documents").unwrap();
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    let destination = format!(
        "elasticsearch-http(url(\"{}/_bulk\") index(\"logs-syslog\") type(\"\"));",
        server.url()
    );
    let Some(daemon) = SyslogNg::start(&scratch, &destination) else {
        return skip(
            "syslog-ng",
            "there is none with its module for HTTP (./test unpacks both)",
        );
    };
    let mut stream = UnixStream::connect(&daemon.socket).unwrap();
    for number in 0..MESSAGES {
        let line = format!(
            "<164>1 2026-03-02T01:00:00.250+01:00 ash app 7 ID [ex@1 n=\"{number}\"] \
             indexed {number} \u{e4}\u{20ac}\n"
        );
        stream.write_all(line.as_bytes()).unwrap();
    }
    drop(stream);
    let q = "indexed level=warn HOST=ash PROGRAM=app";
    let count = || server.query(q).map_or(0, |(rows, _)| rows.len());
    wait_until("all messages are here", || count() >= MESSAGES).unwrap();
    let (rows, trailer) = server.query("indexed").unwrap();
    assert_eq!(trailer["complete"], true);
    let found: BTreeSet<_> = rows.iter().map(|row| row["_msg"].as_str()).collect();
    assert_eq!((rows.len(), found.len()), (MESSAGES, MESSAGES));
    let is_right = |row: &serde_json::Value| {
        let number = row["_SDATA.ex@1.n"].as_str().unwrap_or_default();
        row["_time"] == "2026-03-02T00:00:00.250000000Z"
            && row["_index"] == "logs-syslog"
            && row["_msg"] == format!("indexed {number} \u{e4}\u{20ac}")
    };
    assert!(rows.iter().all(is_right), "{}", rows[0]);
    assert_eq!(server.terminate().unwrap().code(), Some(0));
}

#[test]
fn all_that_loggen_sends_is_here() {
    let scratch = Scratch::new("loggen").unwrap();
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    let ways: [(&[&str], usize); 2] = [
        (&["--active-connections", "3"], 3 * LOADED),
        (&["--syslog-proto"], LOADED),
    ];
    let mut sent = 0;
    for (arguments, count) in ways {
        let Some(mut loggen) = unpacked("syslog-ng", "loggen") else {
            return skip("loggen", "it is not installed (./test does it)");
        };
        let address = server.address("syslog_tcp");
        let (host, port) = address.rsplit_once(':').unwrap();
        let done = loggen
            .args(["--inet", "--stream", "--rate", "1000000", "--size", "200"])
            .args(["--interval", "60", "--number", &LOADED.to_string()])
            .args(arguments)
            .args([host, port])
            .output()
            .unwrap();
        assert!(done.status.success(), "{done:?}");
        sent += count;
        wait_until("all messages are here", || {
            server
                .metric("logpond_ingest_records_total")
                .is_ok_and(|records| records >= sent as f64)
        })
        .unwrap();
        let (rows, _) = server.query("PADD").unwrap_or_default();
        assert!(rows.iter().all(|row| row["hostname"] == "localhost"));
    }
    let (rows, trailer) = server.query("seq").unwrap();
    assert_eq!((rows.len(), &trailer["complete"]), (sent, &true.into()));
    let messages: BTreeSet<_> = rows.iter().map(|row| row["_msg"].as_str()).collect();
    assert_eq!(messages.len(), sent);
    let ends = |row: &&serde_json::Value| row["_msg"].as_str().unwrap().ends_with('\n');
    assert_eq!(rows.iter().find(ends), None);
    assert_eq!(server.terminate().unwrap().code(), Some(0));
}

#[test]
fn what_logger_sends_is_here_as_it_was() {
    if Command::new("logger").arg("--version").output().is_err() {
        return skip("logger", "it is not installed");
    }
    let scratch = Scratch::new("logger").unwrap();
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    let long = "x".repeat(50_000);
    let text = format!("sent by logger\nin lines: \u{e4}\u{20ac} {long}");
    let ways: [(&str, &[&str]); 5] = [
        ("syslog_udp", &["--udp"]),
        ("syslog_udp", &["--udp", "--rfc3164"]),
        ("syslog_tcp", &["--tcp", "--octet-count"]),
        ("syslog_tcp", &["--tcp", "--octet-count", "--rfc3164"]),
        (
            "syslog_tcp",
            &[
                "--tcp",
                "--octet-count",
                "--msgid",
                "ID",
                "--sd-id",
                "zoo@1",
                "--sd-param",
                "tiger=\"hungry\"",
            ],
        ),
    ];
    for (number, (listener, arguments)) in ways.into_iter().enumerate() {
        let address = server.address(listener);
        let (host, port) = address.rsplit_once(':').unwrap();
        let tag = format!("tester-{number}");
        let done = Command::new("logger")
            .args(["--server", host, "--port", port, "--tag", &tag])
            .args(["--priority", "local3.warning", "--id=77", "--size", "60000"])
            .args(arguments)
            .arg(&text)
            .output()
            .unwrap();
        assert!(done.status.success(), "{done:?}");
        let question = format!("app={tag}");
        wait_until("it is here", || {
            server
                .query(&question)
                .is_ok_and(|(rows, _)| rows.len() == 1)
        })
        .unwrap();
        let row = server.query(&question).unwrap().0.remove(0);
        assert!(row["_msg"].as_str() == Some(&text), "{arguments:?}: {row}");
        assert_eq!(
            (&row["facility"], &row["severity"]),
            (&19.into(), &4.into())
        );
        assert_eq!(row["procid"], "77", "{arguments:?}");
        let is_structured = arguments.contains(&"--sd-id");
        let structured = [row["msgid"].as_str(), row["zoo@1.tiger"].as_str()];
        let wanted = if is_structured {
            [Some("ID"), Some("hungry")]
        } else {
            [None; 2]
        };
        assert_eq!(structured, wanted, "{arguments:?}");
    }
    assert_eq!(server.terminate().unwrap().code(), Some(0));
}
