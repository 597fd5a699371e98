//! Loggers of other languages, as programs use them: each record of a burst is here once, with the time, the level, the
//! text and the fields that the logger gave it.
//!
//! The programs are in `testdata/clients`, and say there which records they send. Some write files, which `forward`
//! sends: a record of several lines is one then, too.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::pond::{Scratch, TestServer, wait_until};
use crate::surroundings::{go_program, java_packages, monolog, node_packages, program, python};

/// Records of a burst.
const BURST: usize = 1000;

/// The time of the record of long ago.
const LONG_AGO: &str = "2025-11-21T10:00:00.123000000Z";

/// A logger with its transport.
#[derive(Clone, Copy)]
struct Sender {
    kind: &'static str,
    listener: &'static str,
    burst: usize,
    /// The field of the identity in the object within an object; empty if the logger has no fields.
    nested: &'static str,
    /// A condition that the stack of the error meets.
    stack: &'static str,
    /// True if the logger sends the time of the record.
    has_time: bool,
    /// True if it can send a record of another time than now.
    has_past: bool,
}

const SENDER: Sender = Sender {
    kind: "",
    listener: "http",
    burst: BURST,
    nested: "user.id",
    stack: "\"it failed\" \"ship.\"",
    has_time: true,
    has_past: true,
};

const NODE: [Sender; 12] = [
    Sender {
        kind: "pino-loki",
        ..SENDER
    },
    Sender {
        kind: "pino-elasticsearch",
        ..SENDER
    },
    Sender {
        kind: "pino-socket",
        listener: "fast",
        ..SENDER
    },
    Sender {
        kind: "pino-syslog",
        listener: "syslog_tcp",
        ..SENDER
    },
    Sender {
        kind: "winston-loki",
        ..SENDER
    },
    Sender {
        kind: "winston-elasticsearch",
        nested: "fields.user.id",
        ..SENDER
    },
    // The header has the time of sending.
    Sender {
        kind: "winston-syslog",
        listener: "syslog_tcp",
        has_past: false,
        ..SENDER
    },
    // Datagrams of a longer burst may find no room.
    Sender {
        kind: "winston-gelf",
        listener: "gelf_udp",
        burst: 100,
        nested: "user_id",
        stack: "stack~/it failed/",
        ..SENDER
    },
    // It opens a connection for each record.
    Sender {
        kind: "winston-http",
        ..SENDER
    },
    Sender {
        kind: "bunyan",
        listener: "fast",
        ..SENDER
    },
    Sender {
        kind: "fluent-logger",
        listener: "fluent",
        stack: "stack~/it failed/",
        ..SENDER
    },
    Sender {
        kind: "splunk-logging",
        nested: "message.user.id",
        ..SENDER
    },
];

const PYTHON: [Sender; 8] = [
    Sender {
        kind: "graypy",
        listener: "gelf_tcp",
        ..SENDER
    },
    Sender {
        kind: "loguru",
        listener: "fast",
        nested: "record.extra.user.id",
        has_past: false,
        ..SENDER
    },
    Sender {
        kind: "python-json-logger",
        listener: "fast",
        ..SENDER
    },
    // The collector's event has the time of sending.
    Sender {
        kind: "splunk-handler",
        has_past: false,
        ..SENDER
    },
    Sender {
        kind: "structlog",
        listener: "fast",
        has_past: false,
        ..SENDER
    },
    Sender {
        kind: "structlog-pairs",
        listener: "fast",
        nested: "",
        has_past: false,
        ..SENDER
    },
    Sender {
        kind: "SysLogHandler",
        listener: "syslog_tcp",
        nested: "",
        has_time: false,
        has_past: false,
        ..SENDER
    },
    Sender {
        kind: "SysLogHandler-json",
        listener: "syslog_tcp",
        ..SENDER
    },
];

/// The same with a file.
const FILE: Sender = Sender {
    listener: "",
    ..SENDER
};

const NODE_FILES: [Sender; 4] = [
    Sender {
        kind: "bunyan-file",
        ..FILE
    },
    Sender {
        kind: "pino-file",
        ..FILE
    },
    // Its format shows no fields.
    Sender {
        kind: "winston-file",
        nested: "",
        ..FILE
    },
    Sender {
        kind: "winston-json-file",
        ..FILE
    },
];

const PYTHON_FILES: [Sender; 6] = [
    Sender {
        kind: "logging-file",
        nested: "",
        ..FILE
    },
    Sender {
        kind: "loguru-file",
        nested: "",
        has_past: false,
        ..FILE
    },
    Sender {
        kind: "loguru-json-file",
        nested: "record.extra.user.id",
        has_past: false,
        ..FILE
    },
    Sender {
        kind: "python-json-logger-file",
        ..FILE
    },
    Sender {
        kind: "structlog-console-file",
        nested: "",
        has_past: false,
        ..FILE
    },
    Sender {
        kind: "structlog-json-file",
        has_past: false,
        ..FILE
    },
];

/// Libraries of Java. One process sends by all of them.
const JAVA: Sender = Sender {
    burst: 200,
    stack: "\"it failed\" \"Ship.java\"",
    nested: "user.id",
    ..SENDER
};

/// The layouts of log4j2, and Elastic's client.
const JAVAS: [Sender; 9] = [
    Sender {
        kind: "log4j2-gelf",
        listener: "gelf_tcp",
        ..JAVA
    },
    Sender {
        kind: "log4j2-ecs",
        listener: "fast",
        ..JAVA
    },
    Sender {
        kind: "elasticsearch-java",
        ..JAVA
    },
    Sender {
        kind: "log4j2-ecs-file",
        listener: "",
        ..JAVA
    },
    Sender {
        kind: "log4j2-gcp-file",
        listener: "",
        nested: "",
        ..JAVA
    },
    Sender {
        kind: "log4j2-gelf-template-file",
        listener: "",
        nested: "",
        ..JAVA
    },
    Sender {
        kind: "log4j2-json-file",
        listener: "",
        nested: "contextMap.user.id",
        ..JAVA
    },
    Sender {
        kind: "log4j2-logstash-file",
        listener: "",
        nested: "mdc.user.id",
        ..JAVA
    },
    // Its pattern shows no fields.
    Sender {
        kind: "log4j2-pattern-file",
        listener: "",
        nested: "",
        ..JAVA
    },
];

/// Monolog with its formatters.
const MONOLOG: Sender = Sender {
    burst: 200,
    stack: "\"it failed\" \"ship.php\"",
    nested: "context.user.id",
    ..SENDER
};

const MONOLOGS: [Sender; 5] = [
    Sender {
        kind: "monolog-json",
        listener: "fast",
        ..MONOLOG
    },
    Sender {
        kind: "monolog-file",
        listener: "",
        nested: "",
        ..MONOLOG
    },
    Sender {
        kind: "monolog-iso-file",
        listener: "",
        nested: "",
        ..MONOLOG
    },
    Sender {
        kind: "monolog-json-file",
        listener: "",
        ..MONOLOG
    },
    Sender {
        kind: "monolog-logstash-file",
        listener: "",
        ..MONOLOG
    },
];

/// olivere's client of Elasticsearch for Go. It reads what it has sent, too.
const OLIVERE: Sender = Sender {
    burst: 200,
    stack: "\"it failed\" \"ship.go\"",
    ..SENDER
};

const OLIVERES: [Sender; 2] = [
    Sender {
        kind: "olivere-index",
        ..OLIVERE
    },
    Sender {
        kind: "olivere-bulk",
        ..OLIVERE
    },
];

fn programs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/clients")
}

/// Has all of them send at once, as the programs of a machine do, and checks what is stored.
fn send(name: &str, senders: &[Sender], command: impl Fn() -> Command) {
    let scratch = Scratch::new(name).unwrap();
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    let running = senders.iter().map(|sender| {
        let child = command()
            .args([sender.kind, &server.address(sender.listener)])
            .arg(sender.burst.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        (sender, child)
    });
    let running: Vec<_> = running.collect();
    for sender in senders {
        check(&server, sender);
    }
    for (sender, child) in running {
        // Some send in the background, and go on until their standard input ends.
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {said}", sender.kind);
    }
    assert_eq!(
        server.metric("logpond_ingest_malformed_total").unwrap(),
        0.0
    );
    assert_eq!(server.metric("logpond_ingest_lost_total").unwrap(), 0.0);
    assert_eq!(server.terminate().unwrap().code(), Some(0));
}

/// Has each write a file, and checks what is stored once `forward` has sent the files.
fn write_and_forward(name: &str, senders: &[Sender], command: impl Fn() -> Command) {
    let scratch = Scratch::new(name).unwrap();
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    let running = senders.iter().map(|sender| {
        let path = scratch.path().join(sender.kind);
        let child = command()
            .arg(sender.kind)
            .arg(&path)
            .arg(sender.burst.to_string())
            // Some write times without a zone.
            .env("TZ", "UTC")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        (path, sender.burst, child)
    });
    let running: Vec<_> = running.collect();
    let mut forward = Command::new(program());
    forward.args(["forward", "--multiline", "auto", "--addr", &server.url()]);
    for (path, burst, child) in running {
        let last = format!("burst {}", burst - 1);
        let is_written = || fs::read_to_string(&path).is_ok_and(|text| text.contains(&last));
        wait_until("everything is written", is_written).unwrap();
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {said}", path.display());
        forward.arg(path);
    }
    let output = forward.stderr(Stdio::piped()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    for sender in senders {
        assert!(
            said.contains(&format!("/{}: --multiline auto chose ", sender.kind)),
            "{said}"
        );
        check(&server, sender);
    }
    // No line is a record of its own that belongs to another one.
    let records = |sender: &Sender| sender.burst + 6 + usize::from(sender.has_past);
    let (rows, _) = server.query("").unwrap();
    assert_eq!(rows.len(), senders.iter().map(records).sum::<usize>());
    assert_eq!(server.terminate().unwrap().code(), Some(0));
}

/// Has one process send by all of them, and `forward` the files that it writes.
fn send_as_one(name: &str, senders: &[Sender], mut command: Command) {
    let scratch = Scratch::new(name).unwrap();
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    command.arg(senders[0].burst.to_string()).env("TZ", "UTC");
    let mut forward = Command::new(program());
    forward.args(["forward", "--multiline", "auto", "--addr", &server.url()]);
    for sender in senders {
        command.arg(sender.kind);
        match sender.listener {
            "" => {
                let path = scratch.path().join(sender.kind);
                command.arg(&path);
                forward.arg(&path);
            }
            listener => {
                command.arg(server.address(listener));
            }
        }
    }
    for command in [&mut command, &mut forward] {
        let output = command.stdout(Stdio::null()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {said}");
    }
    senders.iter().for_each(|sender| check(&server, sender));
    let (rows, _) = server.query("").unwrap();
    assert_eq!(rows.len(), senders.len() * (senders[0].burst + 7));
    assert_eq!(
        server.metric("logpond_ingest_malformed_total").unwrap(),
        0.0
    );
    assert_eq!(server.terminate().unwrap().code(), Some(0));
}

fn check(server: &TestServer, sender: &Sender) {
    let kind = sender.kind;
    let count = |q: &str| {
        let (rows, trailer) = server.query(q).unwrap();
        assert_eq!(trailer["complete"], true, "{trailer}");
        rows.len()
    };
    // Most loggers are told nothing, and some send side by side.
    let burst = format!("\"{kind} burst\"");
    wait_until("everything is here", || count(&burst) >= sender.burst).unwrap();
    let once = [
        "it started",
        "it is slow",
        "order failed",
        "nested",
        "first line",
    ];
    let past = sender.has_past.then_some("long ago");
    for text in once.into_iter().chain(past) {
        let text = format!("\"{kind} {text}\"");
        wait_until("everything is here", || count(&text) > 0).unwrap();
    }
    let own_time = if sender.has_time { 0 } else { sender.burst };
    let nested = match sender.nested {
        "" => String::new(),
        field => format!("{field}=7"),
    };
    let expected = [
        (burst.clone(), sender.burst),
        (format!("{burst} level=info"), sender.burst),
        (format!("{burst} _time_source=received"), own_time),
        (format!("\"{kind} it started\" level=info"), 1),
        (format!("\"{kind} it is slow\" level=warn"), 1),
        (
            format!("\"{kind} order failed\" level=error {}", sender.stack),
            1,
        ),
        (format!("\"{kind} grüße 日本 🎉\""), 1),
        (format!("\"{kind} nested\" {nested}"), 1),
        (format!("\"{kind} first line\" \"second line\""), 1),
    ];
    for (q, count_expected) in expected {
        assert_eq!(count(&q), count_expected, "{q}");
    }
    if sender.has_past {
        let (rows, _) = server.query(&format!("\"{kind} long ago\"")).unwrap();
        let times: Vec<_> = rows.iter().map(|row| row["_time"].as_str()).collect();
        assert_eq!(times, [Some(LONG_AGO)], "{kind}");
    }
}

fn node(packages: &Path) -> Command {
    let mut command = Command::new("node");
    command
        .arg(programs().join("node/ship.js"))
        .env("NODE_PATH", packages);
    command
}

fn python_program(python: &Path) -> Command {
    let mut command = Command::new(python);
    command.arg(programs().join("python/ship.py"));
    command
}

#[test]
fn loggers_of_node_send_here() {
    if let Some(packages) = node_packages("loggers of Node") {
        send("node", &NODE, || node(&packages));
    }
}

#[test]
fn loggers_of_python_send_here() {
    if let Some(python) = python("loggers of Python") {
        send("python", &PYTHON, || python_program(&python));
    }
}

#[test]
fn files_of_loggers_of_node_are_forwarded() {
    if let Some(packages) = node_packages("loggers of Node") {
        write_and_forward("node-files", &NODE_FILES, || node(&packages));
    }
}

#[test]
fn files_of_loggers_of_python_are_forwarded() {
    if let Some(python) = python("loggers of Python") {
        write_and_forward("python-files", &PYTHON_FILES, || python_program(&python));
    }
}

#[test]
fn libraries_of_java_send_here() {
    if let Some(packages) = java_packages("libraries of Java") {
        let mut command = Command::new("java");
        command.arg("-cp").arg(packages.join("*"));
        command.arg(programs().join("java/Ship.java"));
        send_as_one("java", &JAVAS, command);
    }
}

#[test]
fn a_client_for_go_sends_here() {
    if let Some(program) = go_program("olivere's client") {
        send_as_one("olivere", &OLIVERES, Command::new(program));
    }
}

#[test]
fn monolog_sends_here() {
    if monolog("Monolog") {
        let mut command = Command::new("php");
        command.arg(programs().join("php/ship.php"));
        send_as_one("monolog", &MONOLOGS, command);
    }
}
