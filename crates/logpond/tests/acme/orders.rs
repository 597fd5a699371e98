//! Orders: what comes of them, what is kept, and what is said where nothing comes.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::pebble::{Pebble, connect};
use crate::pond::Scratch;
use crate::surroundings::{program, skip};

/// What a certificate is ordered for.
const NAMES: [&str; 2] = ["app.example.test", "www.example.test"];

/// A running proxy.
struct Proxy {
    child: Child,
    said: BufReader<ChildStderr>,
    address: SocketAddr,
    /// Lines before that with the address.
    first: Vec<String>,
}

impl Proxy {
    /// One that writes its records into a file.
    fn start(arguments: &[&str], records: &Path) -> Proxy {
        let records = fs::File::create(records).unwrap();
        let mut child = Command::new(program())
            .arg("proxy")
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(records)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut proxy = Proxy {
            said: BufReader::new(child.stderr.take().unwrap()),
            child,
            address: ([127, 0, 0, 1], 0).into(),
            first: Vec::new(),
        };
        let mut first = proxy.until("the proxy listens on ");
        let line = first.pop().unwrap();
        proxy.address = line.rsplit(' ').next().unwrap().parse().unwrap();
        proxy.first = first;
        proxy
    }

    /// The lines that it says up to one that has this.
    fn until(&mut self, expected: &str) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        loop {
            let mut line = String::new();
            let length = self.said.read_line(&mut line).unwrap();
            assert!(length > 0, "no '{expected}' in {lines:#?}");
            lines.push(line.trim_end().to_owned());
            if line.contains(expected) {
                return lines;
            }
        }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A certificate for a name and its key, in files.
fn certificate(directory: &Path, name: &str) -> [PathBuf; 2] {
    let key = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap();
    let files = ["own.pem", "own.key"].map(|file| directory.join(file));
    fs::write(&files[0], params.self_signed(&key).unwrap().pem()).unwrap();
    fs::write(&files[1], key.serialize_pem()).unwrap();
    files
}

/// An upstream that sends back a byte, and how many connections it had.
fn upstream() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = format!("tcp:{}", listener.local_addr().unwrap());
    let connected = Arc::new(AtomicUsize::new(0));
    let count = connected.clone();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            count.fetch_add(1, Ordering::SeqCst);
            let mut byte = [0];
            if stream.read_exact(&mut byte).is_ok() {
                let _ = stream.write_all(&byte);
            }
        }
    });
    (target, connected)
}

/// Whether a client that trusts this comes through to the upstream.
fn comes_through(address: SocketAddr, trusted: &str, name: &str) -> bool {
    let Ok(mut client) = connect(address, trusted, name) else {
        return false;
    };
    let mut byte = [0];
    client.write_all(b"x").unwrap();
    client.read_exact(&mut byte).unwrap();
    &byte == b"x"
}

/// A proxy that has got a certificate after it had one of a file only.
struct OrderedProxy {
    proxy: Proxy,
    pebble: Pebble,
    /// What the proxy said from then on.
    said: Vec<String>,
    target: String,
    connected: Arc<AtomicUsize>,
    /// Where it keeps what came.
    store: PathBuf,
    records: PathBuf,
    /// The certificate of the file.
    own: String,
    _scratch: Scratch,
}

impl OrderedProxy {
    /// With a certificate that holds so long; none where there is no authority.
    fn new(what: &str, validity_s: u64) -> Option<OrderedProxy> {
        let scratch = Scratch::new(what).unwrap();
        let [own, key] = certificate(scratch.path(), "own.test");
        let (target, connected) = upstream();
        let [settings, store, records] =
            ["logpond.toml", "acme", "records"].map(|name| scratch.path().join(name));
        let section = format!(
            "[[proxy]]\nlisten = '127.0.0.1:0'\nto = '{target}'\ncert = {own:?}\nkey = {key:?}\n"
        );
        fs::write(&settings, &section).unwrap();
        let mut proxy = Proxy::start(&["--config", settings.to_str().unwrap()], &records);
        let port = proxy.address.port();
        let Some(pebble) = Pebble::start(scratch.path(), port, validity_s) else {
            skip(what, "there is no pebble (./test unpacks it)");
            return None;
        };
        let acme = format!(
            "acme = ['{}', '{}']\nacme-contact = 'mailto:a@example.test'\nacme-directory = '{}'\n\
             acme-dir = {store:?}\nacme-ca = {:?}\n",
            NAMES[0], NAMES[1], pebble.directory, pebble.authority
        );
        fs::write(&settings, section + &acme).unwrap();
        let said = proxy.until("holds until");
        Some(OrderedProxy {
            proxy,
            pebble,
            said,
            target,
            connected,
            store,
            records,
            own: fs::read_to_string(own).unwrap(),
            _scratch: scratch,
        })
    }
}

/// Whether all names are those of a certificate of this authority.
fn all_come_through(address: SocketAddr, root: &str) -> bool {
    NAMES.iter().all(|name| comes_through(address, root, name))
}

/// Long enough for all tests.
const DAY_S: u64 = 86_400;

#[test]
fn certificates_come_while_it_runs() {
    let Some(supplied) = OrderedProxy::new("acme-order", DAY_S) else {
        return;
    };
    let said = &supplied.said;
    let mut lines = said.iter();
    for expected in [
        "is ordered at",
        "the key of a new account at",
        "has come",
        "holds until",
    ] {
        let is_said = lines.any(|line| line.contains(expected));
        assert!(is_said, "{expected}: {said:#?}");
    }
    let connected = supplied.connected.load(Ordering::SeqCst);
    assert_eq!(connected, 0, "a proof went upstream");
    let address = supplied.proxy.address;
    assert!(all_come_through(address, &supplied.pebble.root));
    assert!(comes_through(address, &supplied.own, "own.test"));
    assert!(!comes_through(address, &supplied.own, NAMES[0]));
    let files = fs::read_dir(&supplied.store).unwrap();
    let files: Vec<_> = files.map(Result::unwrap).collect();
    assert_eq!(files.len(), 2, "{files:?}");
    for file in &files {
        let mode = file.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file:?}");
    }
    let records = fs::read_to_string(&supplied.records).unwrap();
    let proofs: Vec<Value> = records
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .filter(|record: &Value| record["close_reason"] == "acme")
        .collect();
    assert!(proofs.len() >= NAMES.len(), "{records}");
    assert!(proofs.iter().all(|proof| proof.get("upstream").is_none()));
}

#[test]
fn what_was_kept_is_shown_again_and_nobody_is_asked() {
    let Some(supplied) = OrderedProxy::new("acme-again", DAY_S) else {
        return;
    };
    let OrderedProxy {
        mut proxy, pebble, ..
    } = supplied;
    let (root, directory) = (pebble.root.clone(), pebble.directory.clone());
    let authority = pebble.authority.clone();
    drop(pebble);
    proxy.signal(Signal::USR2);
    let said = proxy.until("has taken over");
    let is_kept = |line: &String| line.contains("which holds until");
    assert!(said.iter().any(is_kept), "{said:#?}");
    let successor = said.last().unwrap().split(' ').nth(2).unwrap();
    let successor = Pid::from_raw(successor.parse().unwrap()).unwrap();
    let comes_through = all_come_through(proxy.address, &root);
    kill_process(successor, Signal::TERM).unwrap();
    assert!(comes_through);

    // By flags alone, it is the same order.
    let again = Proxy::start(
        &[
            "--listen",
            "127.0.0.1:0",
            "--to",
            &supplied.target,
            "--acme",
            &NAMES.join(","),
            "--acme-contact",
            "mailto:a@example.test",
            "--acme-directory",
            &directory,
            "--acme-dir",
            supplied.store.to_str().unwrap(),
            "--acme-ca",
            authority.to_str().unwrap(),
        ],
        &supplied.records,
    );
    assert!(is_kept(&again.first[0]), "{:?}", again.first);
    assert!(all_come_through(again.address, &root));
}

#[test]
fn certificates_are_renewed_before_they_end() {
    // Two thirds of this are waited for.
    let Some(mut supplied) = OrderedProxy::new("acme-renewal", 9) else {
        return;
    };
    let said = supplied.proxy.until("holds until");
    assert!(
        said.iter().all(|line| !line.contains("warning")),
        "{said:#?}"
    );
    let (first, second) = (supplied.said.last(), said.last());
    assert_ne!(first, second, "the same moment");
    assert!(all_come_through(
        supplied.proxy.address,
        &supplied.pebble.root
    ));
}

#[test]
fn where_nobody_answers_files_are_shown_and_it_is_asked_again() {
    let scratch = Scratch::new("acme-nobody").unwrap();
    let own = certificate(scratch.path(), NAMES[0]);
    let (target, _) = upstream();
    let [own_text, key, store] = [&own[0], &own[1], &scratch.path().join("acme")]
        .map(|path| path.to_str().unwrap().to_owned());
    let mut proxy = Proxy::start(
        &[
            "--listen",
            "127.0.0.1:0",
            "--to",
            &target,
            "--cert",
            &own_text,
            "--key",
            &key,
            "--acme",
            NAMES[0],
            "--acme-directory",
            "https://localhost:1/dir",
            "--acme-ca",
            &own_text,
            "--acme-dir",
            &store,
        ],
        &scratch.path().join("records"),
    );
    for pause_s in [1, 2] {
        let said = proxy.until("warning: no certificate for");
        let line = said.last().unwrap();
        for part in [
            NAMES[0],
            "https://localhost:1/dir",
            "Connection refused; see that it can be reached",
            &format!("asked again in {pause_s} s"),
        ] {
            assert!(line.contains(part), "{part}: {line}");
        }
        let own_text = fs::read_to_string(&own[0]).unwrap();
        assert!(comes_through(proxy.address, &own_text, NAMES[0]));
    }
}

#[test]
fn what_cannot_be_ordered_is_said_at_the_start() {
    let scratch = Scratch::new("acme-start").unwrap();
    let file = scratch.path().join("file");
    fs::write(&file, "").unwrap();
    let (file, store) = (file.to_str().unwrap(), scratch.path().join("acme"));
    let store = store.to_str().unwrap();
    let table: [(&[&str], &str); 7] = [
        (&["--acme", "a.test"], "--acme-dir"),
        (
            &["--acme", "*.a.test", "--acme-dir", store],
            "name each host",
        ),
        (
            &["--acme", "a b", "--acme-dir", store],
            "'a b' is no host's name",
        ),
        (
            &["--acme", "127.0.0.1", "--acme-dir", store],
            "is an address",
        ),
        (
            &[
                "--acme",
                "a.test",
                "--acme-dir",
                store,
                "--acme-contact",
                "a@b.test",
            ],
            "write mailto:",
        ),
        (
            &[
                "--acme",
                "a.test",
                "--acme-dir",
                store,
                "--acme-directory",
                "http://a.test/",
            ],
            "begins with https://",
        ),
        (
            &["--acme", "a.test", "--acme-dir", store, "--acme-ca", file],
            "holds no certificate in PEM",
        ),
    ];
    for (arguments, expected) in table {
        let output = Command::new(program())
            .args([
                "proxy",
                "--listen",
                "127.0.0.1:0",
                "--to",
                "tcp:127.0.0.1:1",
            ])
            .args(arguments)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
}
