//! rsyslog as the sender: every message of its that is acknowledged is here.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::ops::Range;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::pond::{Scratch, TestServer, wait_until};
use crate::proxy::{CutPoint, Proxy};
use crate::surroundings::{program, say, skip};

/// Messages that are sent.
const MESSAGES: usize = 5000;

/// A daemon that passes on what comes over TCP.
struct Rsyslog {
    child: Child,
    address: String,
}

impl Rsyslog {
    /// Starts it with this action; none where there is no rsyslog with the module.
    fn start(scratch: &Scratch, action: &str) -> Option<Rsyslog> {
        let directory = scratch.path();
        let port = directory.join("port");
        let configuration = format!(
            "global(workDirectory=\"{0}\")\n\
             module(load=\"imtcp\")\n\
             input(type=\"imtcp\" port=\"0\" address=\"127.0.0.1\" listenPortFileName=\"{1}\" \
             ruleset=\"out\")\n\
             {action}\n",
            directory.display(),
            port.display(),
        );
        let path = directory.join("rsyslog.conf");
        fs::write(&path, configuration).unwrap();
        let command = || {
            let mut command = Command::new("rsyslogd");
            command.arg("-f").arg(&path).stdin(Stdio::null());
            command.stdout(Stdio::null()).stderr(Stdio::null());
            command
        };
        // It looks for the modules, too.
        let checks_out = command().arg("-N1").status().is_ok_and(|s| s.success());
        if !checks_out {
            skip(
                "rsyslog",
                "there is no rsyslog with the module (./test installs it)",
            );
            return None;
        }
        let child = command()
            .arg("-n")
            .arg("-i")
            .arg(directory.join("pid"))
            .spawn()
            .unwrap();
        let mut address = String::new();
        wait_until("rsyslog listens", || {
            let text = fs::read_to_string(&port).unwrap_or_default();
            address = format!("127.0.0.1:{}", text.trim());
            TcpStream::connect(&address).is_ok()
        })
        .unwrap();
        Some(Rsyslog { child, address })
    }

    /// Gives it messages with a text and each of these numbers.
    fn pass_on(&self, text: &str, numbers: Range<usize>) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        for number in numbers {
            let line = format!("<13>1 2026-03-02T00:00:00Z ash app 7 - - {text} {number}\n");
            stream.write_all(line.as_bytes()).unwrap();
        }
    }
}

impl Drop for Rsyslog {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits for all messages that a query finds; each is there once.
fn all_once(server: &TestServer, q: &str) -> Vec<Value> {
    wait_until("all messages are here", || {
        count_here(server, q) >= MESSAGES
    })
    .unwrap();
    let (rows, trailer) = server.query(q).unwrap();
    assert_eq!(trailer["complete"], true);
    let messages: BTreeSet<_> = rows.iter().map(|row| row["_msg"].to_string()).collect();
    assert_eq!((rows.len(), messages.len()), (MESSAGES, MESSAGES));
    rows
}

#[test]
fn messages_over_relp_are_here_once() {
    let scratch = Scratch::new("rsyslog").unwrap();
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    let relp = server.address("relp");
    let port = relp.rsplit(':').next().unwrap();
    let action = format!(
        "module(load=\"omrelp\")\n\
         ruleset(name=\"out\") {{ action(type=\"omrelp\" target=\"127.0.0.1\" port=\"{port}\" \
         template=\"RSYSLOG_SyslogProtocol23Format\") }}"
    );
    let Some(rsyslog) = Rsyslog::start(&scratch, &action) else {
        return;
    };
    rsyslog.pass_on("relayed", 0..MESSAGES);
    let rows = all_once(&server, "relayed");
    assert!(
        rows.iter()
            .all(|row| row["hostname"] == "ash" && row["app"] == "app")
    );
}

/// rsyslog's output for Elasticsearch, with its template of documents and its own.
#[test]
fn messages_in_documents_are_here_once() {
    let scratch = Scratch::new("rsyslog-documents").unwrap();
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    let address = server.address("http");
    let (host, port) = address.rsplit_once(':').unwrap();
    let action = format!(
        "module(load=\"omelasticsearch\")\n\
         template(name=\"document\" type=\"list\" option.json=\"on\") {{\n\
         constant(value=\"{{\\\"@timestamp\\\":\\\"\") property(name=\"timereported\" dateFormat=\"rfc3339\")\n\
         constant(value=\"\\\",\\\"host\\\":\\\"\") property(name=\"hostname\")\n\
         constant(value=\"\\\",\\\"severity\\\":\\\"\") property(name=\"syslogseverity-text\")\n\
         constant(value=\"\\\",\\\"tag\\\":\\\"\") property(name=\"syslogtag\")\n\
         constant(value=\"\\\",\\\"message\\\":\\\"\") property(name=\"msg\")\n\
         constant(value=\"\\\"}}\") }}\n\
         ruleset(name=\"out\") {{ action(type=\"omelasticsearch\" server=\"{host}\" serverport=\"{port}\" \
         template=\"document\" searchIndex=\"logs-syslog\" bulkmode=\"on\" errorFile=\"{}\" \
         action.resumeRetryCount=\"-1\") }}",
        scratch.path().join("refused").display(),
    );
    let Some(rsyslog) = Rsyslog::start(&scratch, &action) else {
        return;
    };
    rsyslog.pass_on("indexed", 0..MESSAGES);
    all_once(&server, "indexed");
    let rows = all_once(&server, "indexed level=notice host=ash");
    let is_right = |row: &Value| {
        row["_time"] == "2026-03-02T00:00:00.000000000Z" && row["_index"] == "logs-syslog"
    };
    assert!(rows.iter().all(is_right), "{}", rows[0]);
    assert!(!scratch.path().join("refused").exists());
}

/// How often the server is killed while rsyslog sends.
const KILLS: usize = 4;

/// Messages that are sent for each kill: more than rsyslog gets through before it.
const MESSAGES_A_KILL: usize = 10_000;

/// Messages that a server has taken when it is killed.
const TAKEN: f64 = 1000.0;

#[test]
fn messages_over_relp_are_here_once_whatever_breaks() {
    let scratch = Scratch::new("rsyslog-kills").unwrap();
    let data = scratch.path().join("data");
    let start = || TestServer::start(program(), &data, &[]).unwrap();
    let mut server = start();
    let late = |number| (10 + 3 * number, CutPoint::Answer);
    let proxy = Proxy::start_cutting(&server.address("relp"), late);
    let action = format!(
        "module(load=\"omrelp\")\n\
         ruleset(name=\"out\") {{ action(type=\"omrelp\" target=\"127.0.0.1\" port=\"{}\" \
         template=\"RSYSLOG_SyslogProtocol23Format\" queue.type=\"LinkedList\" queue.size=\"100000\" \
         action.resumeRetryCount=\"-1\" action.resumeInterval=\"1\") }}",
        proxy.port()
    );
    let Some(rsyslog) = Rsyslog::start(&scratch, &action) else {
        return;
    };
    let metric = |server: &TestServer, name: &str| {
        let name = format!("logpond_ingest_{name}_total");
        server.metric(&name).unwrap()
    };
    let mut recognised = 0.0;
    for kill in 0..KILLS {
        let first = kill * MESSAGES_A_KILL;
        rsyslog.pass_on("kept", first..first + MESSAGES_A_KILL);
        wait_until("some are taken", || metric(&server, "records") >= TAKEN).unwrap();
        recognised += metric(&server, "resent_records");
        server = proxy.replace(server, "relp", start);
    }
    let all = KILLS * MESSAGES_A_KILL;
    wait_until("all messages are here", || {
        count_here(&server, "kept") >= all
    })
    .unwrap();
    recognised += metric(&server, "resent_records");
    let (rows, _) = server.query("kept").unwrap();
    let messages: BTreeSet<_> = rows.iter().map(|row| row["_msg"].to_string()).collect();
    say(&format!(
        "RELP: {KILLS} kills, {} connections cut, {recognised} messages sent again and known",
        proxy.cuts()
    ));
    assert_eq!((rows.len(), messages.len()), (all, all));
    assert!(recognised > 0.0, "nothing was sent again");
}

/// Records that a server finds.
fn count_here(server: &TestServer, q: &str) -> usize {
    server.query(q).map_or(0, |(rows, _)| rows.len())
}

/// Makes an authority and two certificates of it, and one of a stranger.
fn certificates(directory: &Path) {
    let run = |arguments: &[&str]| {
        let done = Command::new(program())
            .args(["cluster"])
            .args(arguments)
            .output();
        let done = done.unwrap();
        assert!(
            done.status.success(),
            "{}",
            String::from_utf8_lossy(&done.stderr)
        );
    };
    let path = |name: &str| directory.join(name).display().to_string();
    for ca in ["ca", "strange-ca"] {
        run(&["ca", "create", "--out", &path(ca)]);
    }
    for (ca, name, host) in [
        ("ca", "server", "127.0.0.1"),
        ("ca", "client", "sender.example.org"),
        ("ca", "other", "other.example.net"),
        ("strange-ca", "stranger", "sender.example.org"),
    ] {
        let (ca, out) = (path(ca), path(name));
        let names = ["--name", name, "--address", host, "--out", &out];
        run(&[&["certificate", "--ca", &ca][..], &names].concat());
    }
}

/// Records with a text that a server finds which speaks HTTPS.
fn count(server: &TestServer, text: &str, directory: &Path) -> usize {
    count_by(&[text], server, directory)
}

/// The same of those of a client.
fn count_of(client: &str, server: &TestServer, text: &str, directory: &Path) -> usize {
    let field = format!("_tls_client={client}");
    count_by(&[text, "--field", &field], server, directory)
}

fn count_by(arguments: &[&str], server: &TestServer, directory: &Path) -> usize {
    let done = Command::new(program())
        .arg("query")
        .args(arguments)
        .args(["--count", "--since", "2000-01-01", "--addr"])
        .arg(server.url().replace("http://", "https://"))
        .arg("--ca-file")
        .arg(directory.join("ca/ca.pem"))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    text.trim().parse().unwrap_or_else(|_| panic!("{done:?}"))
}

/// `openssl s_client` with the certificate of one of them.
fn s_client(who: Option<&str>, directory: &Path, address: &str) -> Command {
    let path = |name: &str| directory.join(name).display().to_string();
    let mut command = Command::new("openssl");
    command
        .args(["s_client", "-quiet", "-connect", address])
        .args(["-verify_return_error", "-CAfile", &path("ca/ca.pem")])
        .stdin(Stdio::piped())
        .stderr(Stdio::null());
    if let Some(who) = who {
        let files = [format!("{who}/node.pem"), format!("{who}/node.key")];
        command.args(["-cert", &path(&files[0]), "-key", &path(&files[1])]);
    }
    command
}

/// What becomes of a connection with the certificate of one of them.
fn sends_as(who: Option<&str>, directory: &Path, address: &str, message: &str) -> bool {
    let mut command = s_client(who, directory, address);
    command.arg("-no_ign_eof").stdout(Stdio::null());
    let mut client = command.spawn().unwrap();
    let mut input = client.stdin.take().unwrap();
    let framed = format!("<13>1 - ash app - - - {message}");
    // A refused client may be gone already.
    let _ = input.write_all(format!("{} {framed}", framed.len()).as_bytes());
    drop(input);
    client.wait().unwrap().success()
}

#[test]
fn syslog_over_tls_is_taken_from_those_who_may_send() {
    let scratch = Scratch::new("syslog-tls").unwrap();
    let directory = scratch.path();
    certificates(directory);
    if Command::new("openssl").arg("version").output().is_err() {
        return skip("syslog over TLS", "there is no openssl");
    }
    let path = |name: &str| directory.join(name).display().to_string();
    let stranger = Command::new("openssl")
        .args(["x509", "-noout", "-fingerprint", "-sha256", "-in"])
        .arg(path("stranger/node.pem"))
        .output()
        .unwrap();
    let stranger = String::from_utf8_lossy(&stranger.stdout).into_owned();
    let (_, digits) = stranger.trim().split_once('=').unwrap();
    let by_fingerprint = format!("sha-256:{digits}");
    // Who is let in by which rule: the client, one of another name, a stranger, nobody's; and what the
    // first of them that showed a certificate is called.
    let ca = path("ca/ca.pem");
    let table: [(&[&str], [bool; 4], &str); 4] = [
        (&[], [true, true, true, true], ""),
        (
            &["--syslog-tls-ca", &ca],
            [true, true, false, false],
            "sender.example.org",
        ),
        (
            &[
                "--syslog-tls-ca",
                &ca,
                "--syslog-tls-peers",
                "*.example.org",
            ],
            [true, false, false, false],
            "sender.example.org",
        ),
        (
            &["--syslog-tls-peers", &by_fingerprint],
            [false, false, true, false],
            &by_fingerprint,
        ),
    ];
    for (number, (rules, expected, name)) in table.into_iter().enumerate() {
        let (certificate, key) = (path("server/node.pem"), path("server/node.key"));
        let of_server = ["--tls-certificate", &certificate, "--tls-key", &key];
        let listening = ["--syslog-tls", "127.0.0.1:0"];
        let arguments = [&of_server[..], &listening, rules].concat();
        let data = directory.join(format!("data-{number}"));
        let server = TestServer::start(program(), &data, &arguments).unwrap();
        let address = server.address("syslog_tls");
        let clients = [Some("client"), Some("other"), Some("stranger"), None];
        for (who, is_let_in) in clients.into_iter().zip(expected) {
            let message = format!("from-{}", who.unwrap_or("nobody"));
            sends_as(who, directory, &address, &message);
            if is_let_in {
                wait_until(&message, || count(&server, &message, directory) == 1).unwrap();
            }
        }
        let sent = expected.iter().filter(|is_let_in| **is_let_in).count();
        assert_eq!(count(&server, "from", directory), sent, "{rules:?}");
        let named = count_of(name, &server, "from", directory);
        assert_eq!(named, usize::from(!name.is_empty()), "{rules:?}");
        assert_eq!(server.terminate().unwrap().code(), Some(0));
    }
}

/// A server that listens by TLS for clients of the authority; `listener` is the flag.
fn start_tls(directory: &Path, listener: &str) -> TestServer {
    let path = |name: &str| directory.join(name).display().to_string();
    let (certificate, key) = (path("server/node.pem"), path("server/node.key"));
    let authorities = path("ca/ca.pem");
    let arguments = [
        ["--tls-certificate", &*certificate],
        ["--tls-key", &key],
        [listener, "127.0.0.1:0"],
        ["--syslog-tls-ca", &authorities],
    ]
    .concat();
    TestServer::start(program(), &directory.join("data"), &arguments).unwrap()
}

/// rsyslog's action that sends by RELP over TLS with the certificate of one of them.
fn relp_tls_action(directory: &Path, who: &str, server: &TestServer) -> String {
    let address = server.address("relp_tls");
    let port = address.rsplit(':').next().unwrap();
    let path = |name: &str| directory.join(name).display().to_string();
    format!(
        "module(load=\"omrelp\" tls.tlslib=\"openssl\")\n\
         ruleset(name=\"out\") {{ action(type=\"omrelp\" target=\"127.0.0.1\" port=\"{port}\" \
         tls=\"on\" tls.authmode=\"certvalid\" tls.cacert=\"{}\" tls.mycert=\"{}\" \
         tls.myprivkey=\"{}\" template=\"RSYSLOG_SyslogProtocol23Format\" \
         action.resumeRetryCount=\"-1\" action.resumeInterval=\"1\") }}",
        path("ca/ca.pem"),
        path(&format!("{who}/node.pem")),
        path(&format!("{who}/node.key")),
    )
}

#[test]
fn messages_over_relp_and_tls_are_here_once() {
    let scratch = Scratch::new("rsyslog-relp-tls").unwrap();
    let directory = scratch.path();
    certificates(directory);
    let server = start_tls(directory, "--relp-tls");
    let action = relp_tls_action(directory, "client", &server);
    let Some(rsyslog) = Rsyslog::start(&scratch, &action) else {
        return;
    };
    rsyslog.pass_on("secured", 0..MESSAGES);
    wait_until("all messages are here", || {
        count(&server, "secured", directory) >= MESSAGES
    })
    .unwrap();
    let named = count_of("sender.example.org", &server, "secured", directory);
    assert_eq!(named, MESSAGES);
    assert_eq!(count(&server, "secured", directory), MESSAGES);
}

/// What a client with the certificate of one of them is answered to a message, up to its
/// acknowledgement or the end of the connection.
fn answered(who: Option<&str>, directory: &Path, address: &str, message: &str) -> String {
    let mut command = s_client(who, directory, address);
    command.arg("-ign_eof").stdout(Stdio::piped());
    let mut client = command.spawn().unwrap();
    let mut input = client.stdin.take().unwrap();
    let syslog = format!("<13>1 - ash app - - - {message}");
    let sent = format!(
        "1 open 31 relp_version=0\ncommands=syslog\n\n2 syslog {} {syslog}\n",
        syslog.len()
    );
    // A refused client may be gone already.
    let _ = input.write_all(sent.as_bytes());
    let mut answers = String::new();
    let output = BufReader::new(client.stdout.take().unwrap());
    for line in output.lines() {
        let line = line.unwrap();
        answers.push_str(&line);
        answers.push('\n');
        if line.starts_with("2 rsp") {
            break;
        }
    }
    let _ = client.kill();
    client.wait().unwrap();
    answers
}

#[test]
fn only_clients_are_answered_and_only_what_is_durable() {
    let scratch = Scratch::new("relp-tls").unwrap();
    let directory = scratch.path();
    certificates(directory);
    if Command::new("openssl").arg("version").output().is_err() {
        return skip("RELP over TLS", "there is no openssl");
    }
    let server = start_tls(directory, "--relp-tls");
    let address = server.address("relp_tls");
    for stranger in [Some("stranger"), None] {
        assert_eq!(answered(stranger, directory, &address, "strange"), "");
    }
    let answers = answered(Some("client"), directory, &address, "kept");
    assert!(answers.ends_with("2 rsp 6 200 OK\n"), "{answers}");
    server.kill();
    let server = start_tls(directory, "--relp-tls");
    assert_eq!(count(&server, "kept", directory), 1);
    assert_eq!(count(&server, "strange", directory), 0);
    // Who does not speak TLS is not heard.
    let mut plain = TcpStream::connect(server.address("relp_tls")).unwrap();
    plain.write_all(b"1 open 16 commands=syslog\n\n").unwrap();
    let mut answer = String::new();
    let _ = plain.read_to_string(&mut answer);
    assert_eq!(answer, "");
}

#[test]
fn rsyslog_sends_over_tls() {
    let modules = fs::read_dir("/usr/lib").unwrap().filter_map(Result::ok);
    let mut drivers = modules.map(|entry| entry.path().join("rsyslog/lmnsd_ossl.so"));
    if !drivers.any(|driver| driver.exists()) {
        let what = "there is no rsyslog with OpenSSL (./test installs it)";
        return skip("rsyslog over TLS", what);
    }
    let scratch = Scratch::new("rsyslog-tls").unwrap();
    let directory = scratch.path();
    certificates(directory);
    let path = |name: &str| directory.join(name).display().to_string();
    let server = start_tls(directory, "--syslog-tls");
    let address = server.address("syslog_tls");
    let port = address.rsplit(':').next().unwrap();
    let action = format!(
        "global(defaultNetstreamDriverCAFile=\"{}\" defaultNetstreamDriverCertFile=\"{}\" \
         defaultNetstreamDriverKeyFile=\"{}\")\n\
         ruleset(name=\"out\") {{ action(type=\"omfwd\" protocol=\"tcp\" target=\"127.0.0.1\" \
         port=\"{port}\" StreamDriver=\"ossl\" StreamDriverMode=\"1\" \
         StreamDriverAuthMode=\"x509/certvalid\" TCP_Framing=\"octet-counted\" \
         template=\"RSYSLOG_SyslogProtocol23Format\") }}",
        path("ca/ca.pem"),
        path("client/node.pem"),
        path("client/node.key"),
    );
    let Some(rsyslog) = Rsyslog::start(&scratch, &action) else {
        return;
    };
    rsyslog.pass_on("encrypted", 0..MESSAGES);
    wait_until("all messages are here", || {
        count(&server, "encrypted", directory) >= MESSAGES
    })
    .unwrap();
    assert_eq!(count(&server, "encrypted", directory), MESSAGES);
}
