//! `logpond proxy --sandbox` as a process.

use std::collections::BTreeMap;
use std::os::unix::net::UnixListener;

use landlock::{AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr};
use nix::libc;
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};

use super::*;

/// Whether the kernel can do it; says so if it cannot.
fn has_landlock() -> bool {
    let asked = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    let has = asked.handle_access(AccessNet::BindTcp).is_ok();
    if !has {
        let _ = writeln!(
            std::io::stderr(),
            "skipped: there is no Landlock with ports"
        );
    }
    has
}

/// Answers each request of HTTP, whatever it is.
fn answer_at(path: &Path) {
    let listener = UnixListener::bind(path).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            std::thread::spawn(move || {
                let mut stream = BufReader::new(stream.unwrap());
                let mut line = String::new();
                while let Ok(1..) = stream.read_line(&mut line) {
                    if line == "\r\n" {
                        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\nhealthy\n";
                        stream.get_mut().write_all(answer).unwrap();
                    }
                    line.clear();
                }
            });
        }
    });
}

/// All threads of a process are held.
fn assert_is_held(process: u32) {
    for thread in fs::read_dir(format!("/proc/{process}/task")).unwrap() {
        let status = fs::read_to_string(thread.unwrap().path().join("status")).unwrap();
        for line in ["NoNewPrivs:\t1\n", "Seccomp:\t2\n"] {
            assert!(status.contains(line), "{status}");
        }
    }
}

/// Waits for a line that begins so; gives the rest of it.
fn wait_for(proxy: &mut Proxy, beginning: &str) -> String {
    loop {
        let line = proxy.next_line();
        assert!(
            !line.is_empty(),
            "it has ended before it said '{beginning}'"
        );
        if let Some(rest) = line.strip_prefix(beginning) {
            return rest.to_owned();
        }
    }
}

/// Has a process hand over; gives the one that it hands over to.
fn hand_over(proxy: &mut Proxy, process: Pid) -> Successor {
    kill_process(process, Signal::USR2).unwrap();
    let rest = wait_for(proxy, "logpond: process ");
    let (next, _) = rest.split_once(" has taken over").unwrap();
    Successor(Pid::from_raw(next.parse().unwrap()).unwrap())
}

/// Directories: of its files, and one that it has nothing to do with.
struct Place {
    scratch: Scratch,
    own: Files,
    other: Files,
    settings: PathBuf,
}

impl Place {
    fn new() -> Place {
        let scratch = Scratch::new("proxy-sandbox").unwrap();
        let [own, other] = ["own", "other"].map(|name| {
            let directory = scratch.path().join(name);
            fs::create_dir(&directory).unwrap();
            Files::new(&directory)
        });
        let settings = scratch.path().join("own/settings.toml");
        answer_at(&scratch.path().join("app.sock"));
        Place {
            scratch,
            own,
            other,
            settings,
        }
    }

    /// Has the settings name these files, by a renamed file as editors do it.
    fn name(&self, files: &Files, listen: &str) {
        let text = format!(
            "[[proxy]]\nlisten = [{listen}]\ncert = [{:?}]\nkey = [{:?}]\nto = [\"unix:{}\"]\n",
            files.certificate,
            files.key,
            self.scratch.path().join("app.sock").display()
        );
        let renamed = self.settings.with_extension("new");
        fs::write(&renamed, text).unwrap();
        fs::rename(renamed, &self.settings).unwrap();
    }

    /// Renews the certificate by renamed files; gives it.
    fn renew(&self) -> String {
        let (certificate, key) = certificate();
        let files = [(&self.own.certificate, &certificate), (&self.own.key, &key)];
        for (path, text) in files {
            fs::write(path.with_extension("new"), text).unwrap();
            fs::rename(path.with_extension("new"), path).unwrap();
        }
        certificate
    }
}

const LISTEN: &str = "\"127.0.0.1:0\"";

#[test]
fn a_held_process_serves_and_another_one_takes_over() {
    if !has_landlock() {
        return;
    }
    let place = Place::new();
    place.name(&place.own, LISTEN);
    let data = place.scratch.path().join("data");
    let server = TestServer::start(program(), &data, &[]).unwrap();
    let spool = place.scratch.path().join("spool");
    let arguments = [
        "--config",
        place.settings.to_str().unwrap(),
        "--sandbox",
        "--records",
        &server.url(),
        "--records-spool",
        spool.to_str().unwrap(),
    ];
    let (mut proxy, line) = Proxy::start_with(&arguments);
    proxy.address = line.parse().unwrap();
    let process = Pid::from_child(&proxy.child);
    assert_is_held(proxy.child.id());
    let own = fs::read_to_string(&place.own.certificate).unwrap();
    let mut client = connect(proxy.address, &own).unwrap();
    assert_eq!(ask(&mut client), "HTTP/1.1 200 OK");
    // What is replaced where it was is read, and nothing else is.
    let own = place.renew();
    assert_eq!(proxy.next_line(), READ_AGAIN);
    end(connect(proxy.address, &own).unwrap());
    place.name(&place.other, LISTEN);
    let said = proxy.next_line();
    for part in [
        "Permission denied",
        "other/server.pem is not beneath what --sandbox lets be read",
        "certificates in use stay",
    ] {
        assert!(said.contains(part), "{said}");
    }
    end(connect(proxy.address, &own).unwrap());
    // Nor does it listen elsewhere, by way of another process either.
    place.name(&place.own, &[LISTEN, LISTEN].join(", "));
    wait_for(&mut proxy, "logpond: ");
    kill_process(process, Signal::USR2).unwrap();
    let said = proxy.next_line();
    assert!(said.contains("Permission denied"), "{said}");
    wait_for(
        &mut proxy,
        "logpond: warning: the new process does not serve",
    );
    place.name(&place.own, LISTEN);
    wait_for(&mut proxy, READ_AGAIN);
    // A process that takes over is held as this one is, and so is the one after it.
    let second = hand_over(&mut proxy, process);
    assert_is_held(second.0.as_raw_nonzero().get().unsigned_abs());
    assert_eq!(ask(&mut client), "HTTP/1.1 200 OK");
    end(client);
    assert_eq!(proxy.child.wait().unwrap().code(), Some(0));
    let own = place.renew();
    wait_for(&mut proxy, READ_AGAIN);
    let third = hand_over(&mut proxy, second.0);
    assert_is_held(third.0.as_raw_nonzero().get().unsigned_abs());
    let mut client = connect(proxy.address, &own).unwrap();
    assert_eq!(ask(&mut client), "HTTP/1.1 200 OK");
    end(client);
    third.signal(Signal::TERM);
    // Their output ends with them, and their records are where they were to go.
    assert_eq!(proxy.records.all(), "");
    let (rows, _) = server.query("close_reason=client").unwrap();
    assert_eq!(rows.len(), 4, "{rows:?}");
}

#[test]
fn nothing_is_served_where_the_kernel_cannot_hold_it() {
    let place = Place::new();
    place.name(&place.own, LISTEN);
    // A kernel without Landlock, for this thread and the process that it starts.
    let calls = BTreeMap::from([(libc::SYS_landlock_create_ruleset, Vec::new())]);
    let not_there = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
    let platform = std::env::consts::ARCH.try_into().unwrap();
    let filter = SeccompFilter::new(calls, SeccompAction::Allow, not_there, platform);
    let filter: BpfProgram = filter.unwrap().try_into().unwrap();
    let settings = place.settings.clone();
    let started = std::thread::spawn(move || {
        seccompiler::apply_filter(&filter).unwrap();
        let mut command = Command::new(program());
        command
            .args(["proxy", "--sandbox", "--config"])
            .arg(settings);
        command.output().unwrap()
    });
    let output = started.join().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("--sandbox: the kernel does not hold files"),
        "{said}"
    );
    assert!(!said.contains("listens"), "{said}");
}
