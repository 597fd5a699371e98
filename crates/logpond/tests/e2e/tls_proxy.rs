//! `logpond proxy` as a process: what it refuses to start with, what it says of connections, new
//! certificates, and its end.

mod sandbox;

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rustix::process::{Pid, Signal, kill_process};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::Value;

use crate::pond::{ALL_TIME, Scratch, TestServer, wait_until};
use crate::surroundings::program;

/// What it says when files that changed are good.
const READ_AGAIN: &str = "logpond: the proxy has read its settings and certificates again";

/// A certificate for `localhost` and its key, as PEM.
fn certificate() -> (String, String) {
    let key = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
}

/// Files of a certificate, in a directory.
struct Files {
    certificate: PathBuf,
    key: PathBuf,
}

impl Files {
    fn new(directory: &Path) -> Files {
        let files = Files {
            certificate: directory.join("server.pem"),
            key: directory.join("server.key"),
        };
        files.put(&certificate());
        files
    }

    fn put(&self, (certificate, key): &(String, String)) {
        fs::write(&self.certificate, certificate).unwrap();
        fs::write(&self.key, key).unwrap();
    }

    fn arguments(&self) -> [&str; 4] {
        let [certificate, key] = [&self.certificate, &self.key].map(|path| path.to_str().unwrap());
        ["--cert", certificate, "--key", key]
    }
}

/// What a proxy prints.
struct Records {
    printed: Arc<Mutex<String>>,
    reader: Option<JoinHandle<()>>,
}

impl Records {
    fn of(output: ChildStdout) -> Records {
        let printed: Arc<Mutex<String>> = Arc::default();
        let shared = Arc::clone(&printed);
        let reader = std::thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                *shared.lock().unwrap() += &(line.unwrap() + "\n");
            }
        });
        let reader = Some(reader);
        Records { printed, reader }
    }

    fn so_far(&self) -> String {
        self.printed.lock().unwrap().clone()
    }

    /// All of them, once nobody prints any more.
    fn all(&mut self) -> String {
        self.reader.take().unwrap().join().unwrap();
        self.so_far()
    }
}

/// How many records have this reason for a connection's end.
fn ended_by(records: &str, reason: &str) -> usize {
    records
        .matches(&format!("\"close_reason\":\"{reason}\""))
        .count()
}

/// A running proxy.
struct Proxy {
    child: Child,
    said: BufReader<ChildStderr>,
    records: Records,
    address: SocketAddr,
}

impl Proxy {
    fn start(files: &Files, upstream: &str, more: &[&str]) -> Proxy {
        let mut arguments = vec!["--listen", "127.0.0.1:0", "--to", upstream];
        arguments.extend(files.arguments());
        arguments.extend(more);
        let (mut proxy, line) = Proxy::start_with(&arguments);
        proxy.address = line.parse().unwrap();
        proxy
    }

    /// Gives where it listens, too, as it says it.
    fn start_with(arguments: &[&str]) -> (Proxy, String) {
        let mut child = Command::new(program())
            .arg("proxy")
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let records = Records::of(child.stdout.take().unwrap());
        let said = BufReader::new(child.stderr.take().unwrap());
        let mut proxy = Proxy {
            child,
            said,
            records,
            address: "127.0.0.1:0".parse().unwrap(),
        };
        let line = proxy.next_line();
        let addresses = line.strip_prefix("logpond: the proxy listens on ");
        (proxy, addresses.unwrap().to_owned())
    }

    /// The next line that it says on standard error.
    fn next_line(&mut self) -> String {
        let mut line = String::new();
        self.said.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for its end; gives its exit status and its records.
    fn wait(mut self) -> (Option<i32>, String) {
        let code = self.child.wait().unwrap().code();
        (code, self.records.all())
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

type Client = StreamOwned<ClientConnection, TcpStream>;

/// Connects, trusting this certificate alone, and shakes hands.
fn connect(address: SocketAddr, certificate: &str) -> std::io::Result<Client> {
    let mut roots = RootCertStore::empty();
    let own = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
    roots.add(own).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut client = StreamOwned::new(connection, TcpStream::connect(address)?);
    client.conn.complete_io(&mut client.sock)?;
    Ok(client)
}

/// Asks whether the pond behind the proxy is well.
fn ask(client: &mut Client) -> String {
    client
        .write_all(b"GET /-/healthy HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .unwrap();
    client.flush().unwrap();
    let mut answer = Vec::new();
    let mut byte = [0];
    while !answer.ends_with(b"\r\n\r\nhealthy\n") {
        client.read_exact(&mut byte).unwrap();
        answer.extend(byte);
    }
    String::from_utf8_lossy(&answer[..15]).into_owned()
}

/// Ends in order, and waits for the other end.
fn end(mut client: Client) {
    client.conn.send_close_notify();
    client.flush().unwrap();
    client.sock.shutdown(Shutdown::Write).unwrap();
    client.read_to_end(&mut Vec::new()).unwrap();
}

#[test]
fn what_cannot_work_is_said_at_the_start() {
    let scratch = Scratch::new("proxy-start").unwrap();
    let files = Files::new(scratch.path());
    let of_other = scratch.path().join("other.key");
    fs::write(&of_other, certificate().1).unwrap();
    let nothing = scratch.path().join("nothing.pem");
    fs::write(&nothing, "nothing").unwrap();
    let [cert, key] = [&files.certificate, &files.key].map(|path| path.to_str().unwrap());
    let (of_other, nothing) = (of_other.to_str().unwrap(), nothing.to_str().unwrap());
    let upstream = ["--to", "tcp:127.0.0.1:1"];
    let table: [(&[&str], &str); 8] = [
        (
            &["--cert", cert, "--key", of_other],
            "is not that of the certificate",
        ),
        (
            &["--cert", nothing, "--key", key],
            "holds no certificate in PEM",
        ),
        (
            &["--cert", cert, "--key", "/nowhere"],
            "/nowhere cannot be read",
        ),
        (
            &["--cert", cert, "--cert", cert, "--key", key],
            "each certificate needs its key",
        ),
        (
            &["--cert", cert, "--key", key, "--to", "http://app:80"],
            "'http://app:80' is no upstream",
        ),
        (
            &["--cert", cert, "--key", key, "--idle-timeout", "soon"],
            "--idle-timeout: ",
        ),
        (
            &[
                "--cert",
                cert,
                "--key",
                key,
                "--accept-proxy",
                "10.0.0.0/33",
            ],
            "--accept-proxy: ",
        ),
        (
            &[
                "--cert",
                cert,
                "--key",
                key,
                "--connections-max",
                "4000000000",
            ],
            "raise the limit",
        ),
    ];
    for (arguments, expected) in table {
        let output = Command::new(program())
            .args(["proxy", "--listen", "127.0.0.1:0"])
            .args(upstream)
            .args(arguments)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(expected), "{arguments:?}: {said}");
        assert!(output.stdout.is_empty());
    }
}

#[cfg(not(feature = "acme"))]
#[test]
fn builds_without_acme_say_which_have_it() {
    let output = Command::new(program())
        .args([
            "proxy",
            "--listen",
            "127.0.0.1:0",
            "--to",
            "tcp:127.0.0.1:1",
        ])
        .args(["--acme", "a.test", "--acme-dir", "acme"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("was built without ACME") && said.contains("--features acme"),
        "{said}"
    );
}

#[test]
fn its_records_are_good_input() {
    let scratch = Scratch::new("proxy-records").unwrap();
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    let files = Files::new(scratch.path());
    let own = fs::read_to_string(&files.certificate).unwrap();
    let upstream = format!("tcp:{}", server.address("http"));
    let proxy = Proxy::start(&files, &upstream, &["--workers", "2"]);
    for _ in 0..3 {
        let mut client = connect(proxy.address, &own).unwrap();
        assert_eq!(ask(&mut client), "HTTP/1.1 200 OK");
        end(client);
    }
    drop(TcpStream::connect(proxy.address).unwrap());
    proxy.signal(Signal::TERM);
    let (code, records) = proxy.wait();
    assert_eq!(code, Some(0));
    let lines: Vec<Value> = records
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 4, "{records}");
    for name in [
        "time",
        "client",
        "client_port",
        "sni",
        "version",
        "cipher",
        "resumed",
        "upstream",
        "close_reason",
        "bytes_from_client",
        "bytes_to_client",
        "handshake_s",
        "duration_s",
    ] {
        let count = lines.iter().filter(|line| line.get(name).is_some()).count();
        assert!(count >= 3, "{name}: {records}");
    }
    let pushed = server
        .push("application/x-ndjson", records.as_bytes())
        .unwrap();
    assert_eq!(pushed.accepted(), 4, "{}", pushed.body);
    let question = format!("close_reason=client bytes_to_client>0 upstream=\"{upstream}\"");
    let (rows, _) = server.query(&question).unwrap();
    assert_eq!(rows.len(), 3, "{ALL_TIME}: {rows:?}");
}

#[test]
fn new_certificates_are_shown_and_bad_ones_are_not() {
    let scratch = Scratch::new("proxy-reload").unwrap();
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    let files = Files::new(scratch.path());
    let first = fs::read_to_string(&files.certificate).unwrap();
    let mut proxy = Proxy::start(&files, &format!("tcp:{}", server.address("http")), &[]);
    let mut old = connect(proxy.address, &first).unwrap();
    assert_eq!(ask(&mut old), "HTTP/1.1 200 OK");
    // Files that changed are seen without being told.
    let second = certificate();
    files.put(&second);
    assert_eq!(proxy.next_line(), READ_AGAIN);
    assert!(connect(proxy.address, &first).is_err());
    let mut new = connect(proxy.address, &second.0).unwrap();
    assert_eq!(ask(&mut new), "HTTP/1.1 200 OK");
    // Bad ones are complained of and change nothing.
    fs::write(&files.key, "nothing").unwrap();
    let said = proxy.next_line();
    assert!(
        said.starts_with("logpond: warning: ") && said.contains("in use stay"),
        "{said}"
    );
    proxy.signal(Signal::HUP);
    assert_eq!(proxy.next_line(), said);
    connect(proxy.address, &second.0).unwrap();
    end(old);
    end(new);
}

#[test]
fn a_file_has_several_frontends_and_may_change() {
    let scratch = Scratch::new("proxy-file").unwrap();
    let path = scratch.path().join("logpond.toml");
    let path_text = path.to_str().unwrap();
    let data = scratch.path().join("data");
    let server = TestServer::start(program(), &data, &[]).unwrap();
    let files = Files::new(scratch.path());
    let own = fs::read_to_string(&files.certificate).unwrap();
    let (good, nobody) = (format!("tcp:{}", server.address("http")), "tcp:127.0.0.1:1");
    let section = |name: &str, more: &str| {
        let [certificate, key] = [&files.certificate, &files.key].map(|path| path.display());
        format!(
            "[[proxy]]\nname = '{name}'\nlisten = '127.0.0.1:0'\ncert = '{certificate}'\n\
             key = '{key}'\n{more}\n"
        )
    };
    let first = section("first", &format!("to = '{good}'"));
    let second = |route: &str| {
        let routes = format!("[[proxy.route]]\nsni = 'localhost'\nto = '{route}'");
        section("second", &format!("to = '{nobody}'\n{routes}"))
    };
    fs::write(&path, format!("{first}{}", second(nobody))).unwrap();
    let (mut proxy, listens) = Proxy::start_with(&["--config", path_text]);
    let addresses: Vec<SocketAddr> = listens
        .split(", ")
        .map(|one| one.parse().unwrap())
        .collect();
    let well = |address| ask(&mut connect(address, &own).unwrap());
    assert_eq!(well(addresses[0]), "HTTP/1.1 200 OK");
    let mut client = connect(addresses[1], &own).unwrap();
    assert!(client.read(&mut [0]).is_err());
    // A route that leads elsewhere is followed without being told.
    fs::write(&path, format!("{first}{}", second(&good))).unwrap();
    assert_eq!(proxy.next_line(), READ_AGAIN);
    assert_eq!(well(addresses[1]), "HTTP/1.1 200 OK");
    // What is wrong is said with its place, and so is what cannot change; both change nothing.
    for (text, expected) in [
        (
            format!("{first}{}", second("app")),
            "logpond.toml:15:6: 'app' is no upstream",
        ),
        (
            first.clone(),
            "where the proxy listens can be changed by starting it anew only",
        ),
    ] {
        fs::write(&path, text).unwrap();
        let said = proxy.next_line();
        assert!(
            said.contains(expected) && said.ends_with("in use stay"),
            "{said}"
        );
        assert_eq!(well(addresses[1]), "HTTP/1.1 200 OK");
    }
    proxy.signal(Signal::TERM);
    let (code, records) = proxy.wait();
    assert_eq!(code, Some(0));
    let frontends = ["first", "second"].map(|name| records.matches(name).count());
    assert_eq!(frontends, [1, 4], "{records}");
    // A server has no use for these sections, and does not mind them.
    fs::write(&path, format!("fast = 'off'\n{first}")).unwrap();
    let other = scratch.path().join("other");
    TestServer::start(program(), &other, &["--config", path_text]).unwrap();
}

#[test]
fn its_end_waits_for_connections_but_not_for_ever() {
    let scratch = Scratch::new("proxy-end").unwrap();
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    let files = Files::new(scratch.path());
    let own = fs::read_to_string(&files.certificate).unwrap();
    let upstream = format!("tcp:{}", server.address("http"));
    let proxy = Proxy::start(&files, &upstream, &["--drain-timeout", "1h"]);
    let mut client = connect(proxy.address, &own).unwrap();
    let mut other = connect(proxy.address, &own).unwrap();
    assert_eq!(ask(&mut client), "HTTP/1.1 200 OK");
    assert_eq!(ask(&mut other), "HTTP/1.1 200 OK");
    proxy.signal(Signal::TERM);
    while TcpStream::connect(proxy.address).is_ok() {
        std::thread::yield_now();
    }
    // The connection is as it was, until it ends by itself.
    client
        .write_all(b"GET /-/healthy HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("HTTP/1.1 200 OK"), "{answer}");
    end(client);
    let has_ended = || ended_by(&proxy.records.so_far(), "upstream") == 1;
    wait_until("the connection has ended", has_ended).unwrap();
    // The other one is cut by the second signal.
    proxy.signal(Signal::TERM);
    let (code, records) = proxy.wait();
    assert_eq!(code, Some(0));
    let ended = ["upstream", "drained"].map(|reason| ended_by(&records, reason));
    assert_eq!(ended, [1, 1], "{records}");
}

/// Asks the operators' address for something; gives the status and the body.
fn operate(address: &str, method: &str, path: &str) -> (u16, String) {
    let mut client = crate::http::Client::connect(address).unwrap();
    let response = client.send(method, path, &[], b"").unwrap();
    let status = response.status;
    (status, response.text().unwrap())
}

#[test]
fn operators_see_what_it_does_and_have_it_read_files() {
    let scratch = Scratch::new("proxy-admin").unwrap();
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    let files = Files::new(scratch.path());
    let own = fs::read_to_string(&files.certificate).unwrap();
    let upstream = format!("tcp:{}", server.address("http"));
    let mut proxy = Proxy::start(&files, &upstream, &["--admin", "127.0.0.1:0"]);
    let line = proxy.next_line();
    let admin = line.rsplit_once("http://").unwrap().1.to_owned();
    let mut client = connect(proxy.address, &own).unwrap();
    assert_eq!(ask(&mut client), "HTTP/1.1 200 OK");
    let (status, body) = operate(&admin, "GET", "/metrics");
    assert_eq!(status, 200);
    for sample in [
        "logpond_proxy_connections{frontend=\"0\"} 1\n".to_owned(),
        "logpond_proxy_handshakes_total{frontend=\"0\",version=\"TLSv1.3\",resumed=\"false\"} 1\n"
            .to_owned(),
        format!("logpond_proxy_upstream_up{{upstream=\"{upstream}\"}} 1\n"),
        format!("logpond_proxy_upstream_connections{{upstream=\"{upstream}\"}} 1\n"),
        "logpond_proxy_handshake_seconds_count{frontend=\"0\"} 1\n".to_owned(),
        "logpond_proxy_waiting_bytes 0\n".to_owned(),
        "process_open_fds ".to_owned(),
        "names=\"localhost\"".to_owned(),
    ] {
        assert!(body.contains(&sample), "{sample}: {body}");
    }
    let (_, body) = operate(&admin, "GET", "/api/v1/proxy/clients?order=active&limit=5");
    let clients: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(clients["clients"][0]["client"], "127.0.0.1", "{body}");
    assert_eq!(clients["clients"][0]["active"], 1, "{body}");
    let (_, body) = operate(&admin, "GET", "/api/v1/proxy/upstreams");
    assert!(body.contains("\"is_up\":true"), "{body}");
    // Files are read when operators ask, and it is said what is wrong with them.
    let (status, _) = operate(&admin, "POST", "/-/reload");
    assert_eq!((status, proxy.next_line().as_str()), (200, READ_AGAIN));
    let key = fs::read(&files.key).unwrap();
    fs::write(&files.key, "nothing").unwrap();
    let (status, body) = operate(&admin, "POST", "/-/reload");
    assert_eq!(status, 409);
    assert!(body.contains("holds no private key"), "{body}");
    assert!(proxy.next_line().contains("in use stay"));
    fs::write(&files.key, key).unwrap();
    for (method, path, expected) in [
        ("GET", "/-/healthy", 200),
        ("GET", "/-/ready", 200),
        ("GET", "/-/reload", 405),
        ("GET", "/", 404),
        ("GET", "/api/v1/proxy/clients?order=name", 400),
        ("GET", "/api/v1/proxy/clients?n=1", 400),
    ] {
        assert_eq!(operate(&admin, method, path).0, expected, "{method} {path}");
    }
    end(client);
    proxy.signal(Signal::TERM);
    assert_eq!(proxy.wait().0, Some(0));
    // Others do not get there by mistake.
    let output = Command::new(program())
        .args(["proxy", "--listen", "127.0.0.1:0", "--to", &upstream])
        .args(files.arguments())
        .args(["--admin", "0.0.0.0:0"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(said.contains("--insecure"), "{said}");
}

#[test]
fn records_are_sent_and_none_is_lost_when_a_server_dies() {
    let scratch = Scratch::new("proxy-sent").unwrap();
    let [data, of_other] = ["data", "other"].map(|name| scratch.path().join(name));
    let server = TestServer::start(program(), &data, &[]).unwrap();
    let other = TestServer::start(program(), &of_other, &[]).unwrap();
    let files = Files::new(scratch.path());
    let own = fs::read_to_string(&files.certificate).unwrap();
    // An upstream of its own: connections go on while a pond is down.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let upstream = format!("tcp:{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0]);
        }
    });
    let spool = scratch.path().join("spool");
    let servers = format!("{},{}", server.url(), other.url());
    let spool = ["--records-spool", spool.to_str().unwrap()];
    let sent = [&["--records", &servers][..], &spool].concat();
    let proxy = Proxy::start(&files, &upstream, &sent);
    let visit = || {
        let mut client = connect(proxy.address, &own).unwrap();
        client.write_all(b"x").unwrap();
        client.flush().unwrap();
        let _ = client.read_to_end(&mut Vec::new());
    };
    visit();
    let ports = |server: &TestServer| {
        let (rows, _) = server.query("close_reason=upstream").unwrap();
        let ports = rows.iter().map(|row| row["client_port"].to_string());
        ports.collect::<BTreeSet<String>>()
    };
    while ports(&server).is_empty() && ports(&other).is_empty() {
        std::thread::yield_now();
    }
    (0..20).for_each(|_| visit());
    server.kill();
    (0..20).for_each(|_| visit());
    proxy.signal(Signal::TERM);
    let (code, records) = proxy.wait();
    assert_eq!((code, records.as_str()), (Some(0), ""));
    // Two servers on their own may both have what was sent while one died; nothing is missing.
    let server = TestServer::start(program(), &data, &[]).unwrap();
    let all: BTreeSet<String> = ports(&server).union(&ports(&other)).cloned().collect();
    assert_eq!(all.len(), 41, "{all:?}");
    let (rows, _) = other.query("close_reason=upstream").unwrap();
    assert!(rows[0].get("hostname").is_some(), "{rows:?}");
}

#[test]
fn it_goes_on_as_somebody_else() {
    let scratch = Scratch::new("proxy-user").unwrap();
    let files = Files::new(scratch.path());
    let own = fs::read_to_string(&files.certificate).unwrap();
    let upstream = "tcp:127.0.0.1:1";
    let is_root = rustix::process::geteuid().is_root();
    if is_root {
        let mut proxy = Proxy::start(&files, upstream, &["--user", "nobody"]);
        let status = fs::read_to_string(format!("/proc/{}/status", proxy.child.id())).unwrap();
        let line = |name: &str| {
            let mut lines = status.lines();
            let line = lines.find_map(|line| line.strip_prefix(name)).unwrap();
            line.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert!(line("Uid:").iter().all(|id| id != "0"), "{status}");
        assert!(line("Gid:").iter().all(|id| id != "0"), "{status}");
        assert!(!line("Groups:").contains(&"0".to_owned()), "{status}");
        assert_eq!(line("NoNewPrivs:"), ["1"]);
        connect(proxy.address, &own).unwrap();
        proxy.signal(Signal::HUP);
        assert_eq!(proxy.next_line(), READ_AGAIN);
    }
    let other = if is_root { "no-such-user-here" } else { "root" };
    let output = Command::new(program())
        .args(["proxy", "--listen", "127.0.0.1:0", "--to", upstream])
        .args(files.arguments())
        .args(["--user", other])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(said.contains(&format!("--user {other}: ")), "{said}");
}

/// A process that was started by another one.
struct Successor(Pid);

impl Successor {
    fn signal(&self, signal: Signal) {
        kill_process(self.0, signal).unwrap();
    }
}

impl Drop for Successor {
    fn drop(&mut self) {
        // It has ended, unless the test has failed.
        let _ = kill_process(self.0, Signal::KILL);
    }
}

#[test]
fn a_new_process_takes_over_and_nobody_notices() {
    let scratch = Scratch::new("proxy-upgrade").unwrap();
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    let files = Files::new(scratch.path());
    let own = fs::read_to_string(&files.certificate).unwrap();
    let key = fs::read(&files.key).unwrap();
    let upstream = format!("tcp:{}", server.address("http"));
    let spool = scratch.path().join("spool");
    let (url, spool) = (server.url(), spool.to_str().unwrap());
    let more = [
        "--admin",
        "127.0.0.1:0",
        "--records",
        &url,
        "--records-spool",
        spool,
    ];
    let mut proxy = Proxy::start(&files, &upstream, &more);
    let line = proxy.next_line();
    let admin = line.rsplit_once("http://").unwrap().1.to_owned();
    let mut old = connect(proxy.address, &own).unwrap();
    assert_eq!(ask(&mut old), "HTTP/1.1 200 OK");
    // One that cannot start leaves everything as it was.
    fs::write(&files.key, "nothing").unwrap();
    proxy.signal(Signal::USR2);
    let said: Vec<String> = (0..)
        .map(|_| proxy.next_line())
        .take_while(|line| !line.contains("goes on"))
        .collect();
    assert!(
        said.iter()
            .any(|line| line.contains("holds no private key")),
        "{said:?}"
    );
    fs::write(&files.key, key).unwrap();
    assert_eq!(ask(&mut old), "HTTP/1.1 200 OK");
    proxy.signal(Signal::USR2);
    let process = loop {
        let line = proxy.next_line();
        let process = line.strip_prefix("logpond: process ");
        if let Some((process, _)) = process.and_then(|rest| rest.split_once(" has taken over")) {
            break process.parse().unwrap();
        }
    };
    let next = Successor(Pid::from_raw(process).unwrap());
    // Open connections stay where they are, and new ones come to the new process as soon as the first
    // accepts no more.
    assert_eq!(ask(&mut old), "HTTP/1.1 200 OK");
    let mut all = vec![old];
    wait_until("new connections come to the new process", || {
        let mut new = connect(proxy.address, &own).unwrap();
        assert_eq!(ask(&mut new), "HTTP/1.1 200 OK");
        all.push(new);
        let (_, metrics) = operate(&admin, "GET", "/metrics");
        metrics.contains("logpond_proxy_connections{frontend=\"0\"} 1\n")
    })
    .unwrap();
    let (connections, mut new) = (all.len(), all.pop().unwrap());
    all.into_iter().for_each(end);
    assert_eq!(proxy.child.wait().unwrap().code(), Some(0));
    assert_eq!(ask(&mut new), "HTTP/1.1 200 OK");
    end(new);
    next.signal(Signal::TERM);
    while TcpStream::connect(proxy.address).is_ok() {
        std::thread::yield_now();
    }
    // Its output ends with it, and its records are there with those of the first.
    assert_eq!(proxy.records.all(), "");
    let (rows, _) = server.query("close_reason=client").unwrap();
    assert_eq!(rows.len(), connections, "{rows:?}");
}
