//! `logpond serve` as a process: ready file, drain, exit codes.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Longer than anything may take; a test that waits so long has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server process of this test's own; killed if the test fails.
struct Server {
    child: Child,
    addresses: Value,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn command(directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_logpond"));
    command
        .arg("serve")
        .arg("--data")
        .arg(directory.join("data"));
    command
        .arg("--ready-file")
        .arg(directory.join("ready.json"));
    for name in [
        "HTTP",
        "FAST",
        "DURABLE",
        "BULK",
        "SYSLOG_UDP",
        "SYSLOG_TCP",
        "RELP",
        "GELF_UDP",
        "GELF_TCP",
        "FLUENT",
        "OTLP_GRPC",
    ] {
        command.env(format!("LOGPOND_{name}"), ":0");
    }
    command
        .env("XDG_CONFIG_HOME", directory)
        .stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Starts a server and waits for its ready file.
fn start(directory: &Path) -> Server {
    let ready = directory.join("ready.json");
    let _ = std::fs::remove_file(&ready);
    let mut child = command(directory).spawn().unwrap();
    let started = Instant::now();
    // The file appears whole or not at all.
    let text = loop {
        if let Ok(text) = std::fs::read_to_string(&ready) {
            break text;
        }
        let ended = child.try_wait().unwrap();
        assert!(
            ended.is_none() && started.elapsed() < PATIENCE,
            "not ready: {ended:?}"
        );
        std::thread::yield_now();
    };
    let addresses = serde_json::from_str(&text).unwrap();
    Server { child, addresses }
}

impl Server {
    fn connect(&self, name: &str) -> TcpStream {
        let stream = TcpStream::connect(self.addresses[name].as_str().unwrap()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    fn get(&self, path: &str) -> String {
        let mut stream = self.connect("http");
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Asks for the end as a service manager does, and gives the exit code.
    fn terminate(mut self) -> Option<i32> {
        let id = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
        self.child.wait().unwrap().code()
    }
}

#[test]
fn a_server_tells_its_addresses_drains_and_finds_its_records_again() {
    let directory = tempfile::tempdir().unwrap();
    let server = start(directory.path());
    let mut names: Vec<_> = server
        .addresses
        .as_object()
        .unwrap()
        .keys()
        .cloned()
        .collect();
    names.sort();
    assert_eq!(
        names,
        [
            "bulk",
            "durable",
            "elasticsearch",
            "fast",
            "fluent",
            "gelf_tcp",
            "gelf_udp",
            "gossip",
            "http",
            "lines_udp",
            "loki",
            "otlp_grpc",
            "otlp_http",
            "postgres",
            "relp",
            "relp_tls",
            "splunk",
            "syslog_tcp",
            "syslog_tls",
            "syslog_udp"
        ]
    );
    assert!(server.get("/-/ready").starts_with("HTTP/1.1 200"));
    let mut durable = server.connect("durable");
    durable.write_all(b"first\n").unwrap();
    let mut ok = String::new();
    BufReader::new(&durable).read_line(&mut ok).unwrap();
    assert_eq!(ok, "OK 1\n");
    let mut fast = server.connect("fast");
    fast.write_all(b"second, without its end").unwrap();
    fast.shutdown(std::net::Shutdown::Write).unwrap();
    // The end of the answer says that the server has taken what was sent.
    fast.read_to_end(&mut Vec::new()).unwrap();
    assert_eq!(server.terminate(), Some(0));

    let server = start(directory.path());
    let answer = server.get("/api/v1/query?count=true");
    assert!(answer.contains("\"rows\":2"), "{answer}");
    assert_eq!(server.terminate(), Some(0));
}

#[test]
fn a_port_or_a_directory_in_use_is_an_error_that_says_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let server = start(directory.path());
    let output = command(directory.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        said.contains("another logpond uses this directory"),
        "{said}"
    );

    let other = tempfile::tempdir().unwrap();
    let taken = server.addresses["durable"].as_str().unwrap();
    let output = command(other.path())
        .args(["--durable", taken])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        said.contains("(--durable)")
            && said.contains("in use")
            && said.contains("or none with --durable off"),
        "{said}"
    );
    assert!(output.stdout.is_empty());
}

/// Runs `logpond verify` on a server's data: exit code, standard output and error.
fn verify(data: &Path) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_logpond"))
        .arg("verify")
        .arg("--data")
        .arg(data)
        .env("XDG_CONFIG_HOME", data)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (
        output.status.code(),
        text(output.stdout),
        text(output.stderr),
    )
}

#[test]
fn verify_works_beside_a_server_and_names_damage() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let (code, out, err) = verify(&data);
    assert_eq!((code, &*out), (Some(2), ""), "{err}");

    let server = start(directory.path());
    let mut durable = server.connect("durable");
    durable.write_all(b"one\ntwo\n").unwrap();
    let mut answers = BufReader::new(&durable).lines().map(Result::unwrap);
    assert!(answers.any(|line| line == "OK 2"));
    let (code, out, err) = verify(&data);
    assert_eq!((code, &*out), (Some(0), ""), "{err}");
    assert!(err.contains("2 rows") && err.contains("no damage"), "{err}");
    assert_eq!(server.terminate(), Some(0));

    let files = std::fs::read_dir(data.join("journal")).unwrap();
    let path = files.map(|file| file.unwrap().path()).next().unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let (code, out, err) = verify(&data);
    assert_eq!(code, Some(1), "{err}");
    let name = path.file_name().unwrap().to_str().unwrap();
    assert!(out.starts_with(&format!("journal/{name}: ")), "{out}");
    assert!(
        out.trim_end().ends_with(&format!("to {})", last + 1)),
        "{out}"
    );
    assert!(err.contains("1 damage"), "{err}");
}
