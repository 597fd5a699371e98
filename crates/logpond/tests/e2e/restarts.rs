//! Programs of this machine notice nothing of a restart: their sockets and streams are kept.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use command_fds::{CommandFdExt, FdMapping};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use serde_json::Value;

use crate::pond::{Scratch, TestServer, wait_until};
use crate::surroundings::{program, say};

/// How long a program waits between two lines.
const PACE: Duration = Duration::from_millis(1);

/// How long one waits beside that whose lines are large: what waits for a slow disk is bounded.
const LARGE_PACE: Duration = Duration::from_millis(10);

/// How many lines each writes at least between two restarts.
const PROGRESS: u64 = 30;

/// Longer than a start takes on the busiest machine.
const LONG: [&str; 2] = ["--keep-sockets", "100s"];

/// Length of a large line: a few of them wait in the kernel, and further ones make their writer wait.
const LARGE_BYTES: usize = 20_000;

/// What a stream begins with.
pub(crate) fn header(name: &str) -> String {
    format!("{name}\n\n30\n1\n0\n0\n0\n")
}

/// Programs that write numbered lines until they are stopped, and a server that they write to.
pub(crate) struct Machine {
    scratch: Scratch,
    is_over: Arc<AtomicBool>,
    writers: Vec<Writer>,
    flags: Vec<String>,
}

/// Writes `WORD NUMBER`.
struct Writer {
    word: &'static str,
    count: Arc<AtomicU64>,
    thread: JoinHandle<io::Result<()>>,
}

impl Machine {
    /// A machine with nothing on it; its servers have these flags beside others.
    pub(crate) fn new(name: &str, flags: &[&str]) -> Machine {
        Machine {
            scratch: Scratch::new(name).unwrap(),
            is_over: Arc::default(),
            writers: Vec::new(),
            flags: flags.iter().map(|flag| (*flag).to_owned()).collect(),
        }
    }

    /// Where its files are.
    pub(crate) fn scratch(&self) -> &Scratch {
        &self.scratch
    }

    /// A path of its own.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    /// Where the sockets of journald are.
    pub(crate) fn directory(&self) -> PathBuf {
        self.path("journald")
    }

    fn start(&self) -> TestServer {
        self.try_start().unwrap()
    }

    fn try_start(&self) -> Result<TestServer, String> {
        let directory = self.directory().display().to_string();
        let flags = self.flags.iter().map(String::as_str);
        let flags: Vec<&str> = ["--journald", &directory]
            .into_iter()
            .chain(flags)
            .collect();
        TestServer::start(program(), &self.path("data"), &flags)
    }

    /// Has a thread write with what `open` gives.
    fn write<W: FnMut(&str) -> io::Result<()>>(
        &mut self,
        word: &'static str,
        open: impl FnOnce(PathBuf) -> io::Result<W> + Send + 'static,
    ) {
        let count = Arc::new(AtomicU64::new(0));
        let (counted, is_over, directory) = (count.clone(), self.is_over.clone(), self.directory());
        let thread = thread::spawn(move || {
            let mut write = open(directory)?;
            while !is_over.load(Ordering::Relaxed) {
                let number = counted.load(Ordering::Relaxed);
                write(&format!("{word} {number}"))?;
                counted.store(number + 1, Ordering::Relaxed);
                thread::park_timeout(PACE);
            }
            Ok(())
        });
        self.writers.push(Writer {
            word,
            count,
            thread,
        });
    }

    /// The writers of every kind.
    pub(crate) fn write_all(&mut self) {
        self.write("whole", |directory| {
            let mut stream = UnixStream::connect(directory.join("stdout"))?;
            stream.write_all(header("printer").as_bytes())?;
            Ok(move |line: &str| stream.write_all(format!("{line}\n").as_bytes()))
        });
        self.write("halves", |directory| {
            let mut stream = UnixStream::connect(directory.join("stdout"))?;
            stream.write_all(header("printer").as_bytes())?;
            Ok(move |line: &str| {
                let (first, last) = line.split_at(line.len() / 2);
                stream.write_all(first.as_bytes())?;
                thread::park_timeout(PACE);
                writeln!(stream, "{last}")
            })
        });
        // As much as fills the kernel's buffers while no server reads.
        self.write("large", |directory| {
            let mut stream = UnixStream::connect(directory.join("stdout"))?;
            stream.write_all(header("printer").as_bytes())?;
            let rest = "x".repeat(LARGE_BYTES);
            Ok(move |line: &str| {
                thread::park_timeout(LARGE_PACE);
                writeln!(stream, "{line} {rest}")
            })
        });
        self.write("brief", |directory| {
            Ok(move |line: &str| {
                let mut stream = UnixStream::connect(directory.join("stdout"))?;
                let all = format!("{}{line}\n", header("printer"));
                stream.write_all(all.as_bytes())
            })
        });
        self.write("syslog", |directory| {
            let socket = UnixDatagram::unbound()?;
            socket.connect(directory.join("dev-log"))?;
            Ok(move |line: &str| {
                socket
                    .send(format!("<30>Nov 22 13:00:00 printer[1]: {line}").as_bytes())
                    .map(drop)
            })
        });
        self.write("native", |directory| {
            let socket = UnixDatagram::unbound()?;
            let path = directory.join("socket");
            Ok(move |line: &str| {
                let entry = format!("MESSAGE={line}\nSYSLOG_IDENTIFIER=printer\n");
                socket.send_to(entry.as_bytes(), &path).map(drop)
            })
        });
    }

    /// Waits until all have written some more.
    pub(crate) fn progress(&self) {
        let count = |writer: &Writer| writer.count.load(Ordering::Relaxed);
        let before: Vec<u64> = self.writers.iter().map(count).collect();
        wait_until("all have written more", || {
            let mut pairs = self.writers.iter().zip(&before);
            pairs.all(|(w, before)| w.thread.is_finished() || count(w) >= before + PROGRESS)
        })
        .unwrap();
    }

    /// How much one has written, that writes small lines.
    fn written(&self) -> u64 {
        let writer = self.writers.iter().find(|writer| writer.word == "whole");
        writer.unwrap().count.load(Ordering::Relaxed)
    }

    /// Waits until that one has written some more than this; the kernel has room for it.
    fn goes_on(&self, before: u64) {
        wait_until("it has written more", || {
            self.written() >= before + PROGRESS
        })
        .unwrap();
    }

    /// Stops the writers; none of them may have failed. Gives how much each has written.
    pub(crate) fn stop(&mut self) -> BTreeMap<&'static str, u64> {
        self.is_over.store(true, Ordering::Relaxed);
        let stopped = self.writers.drain(..).map(|writer| {
            let written = writer.thread.join().unwrap();
            assert!(written.is_ok(), "{}: {written:?}", writer.word);
            (writer.word, writer.count.load(Ordering::Relaxed))
        });
        stopped.collect()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // The server may be dropped after this: its keeper ends with it then.
        if let Some(keeper) = keeper_of(&self.directory()) {
            let _ = crate::pond::signal("TERM", keeper);
        }
    }
}

/// What is there of a writer, by the number; each only once.
pub(crate) fn there(server: &TestServer, word: &str) -> BTreeMap<u64, Value> {
    let (rows, _) = server.query(word).unwrap();
    let mut found = BTreeMap::new();
    for row in rows {
        let message = row["_msg"].as_str().unwrap_or_default();
        let mut words = message.split(' ');
        assert_eq!(words.next(), Some(word), "{row}");
        let Some(Ok(number)) = words.next().map(str::parse) else {
            panic!("{row}");
        };
        let rest = words.next().map_or(0, str::len);
        assert!([0, LARGE_BYTES].contains(&rest), "{row}");
        assert_eq!(row["app"], "printer", "{row}");
        assert!(row["_LINE_BREAK"].is_null(), "{row}");
        let double = found.insert(number, row);
        assert!(
            double.is_none(),
            "{word} {number} is there twice: {double:?}"
        );
    }
    found
}

#[test]
fn a_restart_loses_and_doubles_nothing() {
    let mut machine = Machine::new("restarts", &LONG);
    let mut server = machine.start();
    machine.write_all();
    let cat = systemd_cat(&machine);
    let mut torn = UnixStream::connect(machine.directory().join("stdout")).unwrap();
    torn.write_all(header("printer").as_bytes()).unwrap();
    let mut quiet = UnixStream::connect(machine.directory().join("stdout")).unwrap();
    let (before, after) = ("printer\n\n3", "0\n1\n0\n0\n0\n<3>late\n");
    quiet.write_all(before.as_bytes()).unwrap();
    for round in 0..4 {
        machine.progress();
        // Both in one piece: where the one is there, the beginning of the other was read.
        write!(torn, "marker{round} is there\n<4>the beginning{round} of").unwrap();
        let marker = format!("marker{round}");
        wait_until("the marker is there", || {
            server
                .query(&marker)
                .is_ok_and(|(rows, _)| !rows.is_empty())
        })
        .unwrap();
        let before = machine.written();
        assert_eq!(server.terminate().unwrap().code(), Some(0));
        writeln!(torn, " a line").unwrap();
        machine.goes_on(before);
        server = machine.start();
    }
    quiet.write_all(after.as_bytes()).unwrap();
    let written = machine.stop();
    for (word, count) in &written {
        let mut found = BTreeMap::new();
        wait_until("all is there", || {
            found = there(&server, word);
            found.len() as u64 >= *count
        })
        .unwrap_or_else(|e| panic!("{e}: {word}: {} of {count}", found.len()));
        assert!(found.keys().copied().eq(0..*count), "{word}: {found:?}");
        // Who writes is known as it was before.
        let pids: BTreeSet<String> = found.values().map(|row| row["_PID"].to_string()).collect();
        assert_eq!(pids.len(), 1, "{word}: {pids:?}");
    }
    for round in 0..4 {
        let (rows, _) = server.query(&format!("beginning{round}")).unwrap();
        assert_eq!(rows.len(), 1, "{rows:?}");
        assert_eq!(rows[0]["_msg"], format!("the beginning{round} of a line"));
        assert_eq!(rows[0]["severity"], 4);
    }
    wait_until("what had no header is there", || {
        server.query("late").is_ok_and(|(rows, _)| rows.len() == 1)
    })
    .unwrap();
    if let Some((mut cat, count_file)) = cat {
        fs::write(machine.scratch.path().join("over"), "").unwrap();
        assert!(cat.wait().unwrap().success(), "it could write all the time");
        let count: u64 = fs::read_to_string(count_file)
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        let mut found = BTreeMap::new();
        wait_until("all is there", || {
            found = there(&server, "shell");
            found.len() as u64 >= count
        })
        .unwrap_or_else(|e| panic!("{e}: systemd-cat: {} of {count}", found.len()));
        assert!(found.keys().copied().eq(0..count), "{found:?}");
    }
    assert_eq!(server.metric("logpond_ingest_lost_total"), Ok(0.0));
    say(&format!("restarts: {written:?} over 4 restarts, each once"));
}

/// A program under the real client, which knows one place only; it numbers its lines, too.
fn systemd_cat(machine: &Machine) -> Option<(Child, PathBuf)> {
    let count_file = machine.scratch.path().join("count");
    let is_there = Command::new("systemd-cat").arg("--version").output();
    let can_mount = Command::new("unshare").args(["--mount", "true"]).status();
    let can_run = is_there.is_ok() && can_mount.is_ok_and(|status| status.success());
    if !can_run {
        say("skipped: systemd-cat, which does not run here");
        return None;
    }
    let child = Command::new("unshare")
        .args(["--mount", "sh", "-ec"])
        .arg(
            "mkdir -p /run/systemd/journal; mount -t tmpfs none /run/systemd; \
             mkdir /run/systemd/journal; mount --bind \"$0\" /run/systemd/journal; \
             exec systemd-cat -t printer sh -ec \
             'i=0; until [ -e \"$0\" ]; do echo shell $i; i=$((i+1)); sleep 0.01; done; echo $i > \"$1\"' \
             \"$1\" \"$2\"",
        )
        .arg(machine.directory())
        .arg(machine.scratch.path().join("over"))
        .arg(&count_file)
        .spawn();
    Some((child.unwrap(), count_file))
}

#[test]
fn a_kill_breaks_no_stream() {
    const KILLS: usize = 4;
    let mut machine = Machine::new("restarts-killed", &LONG);
    let mut server = machine.start();
    machine.write_all();
    let mut bounds: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for _ in 0..KILLS {
        machine.progress();
        let before = machine.written();
        server.kill();
        for writer in &machine.writers {
            let count = writer.count.load(Ordering::Relaxed);
            bounds.entry(writer.word).or_default().push(count);
        }
        machine.goes_on(before);
        server = machine.start();
    }
    machine.progress();
    let written = machine.stop();
    for (word, count) in &written {
        let last = bounds[word].last().unwrap();
        let mut found = BTreeMap::new();
        wait_until("all is there that was written after the last kill", || {
            found = there(&server, word);
            (last + 1..*count).all(|number| found.contains_key(&number))
        })
        .unwrap_or_else(|e| panic!("{e}: {word}: {:?}", found.keys()));
        // Only what was read just before a kill, and not on the disk yet.
        let missing: Vec<u64> = (0..*count).filter(|n| !found.contains_key(n)).collect();
        say(&format!(
            "killed: {word}: {} of {count} are missing",
            missing.len()
        ));
        let begins = missing
            .iter()
            .filter(|n| **n == 0 || found.contains_key(&(**n - 1)));
        let runs = begins.count();
        assert!(*word == "brief" || runs <= KILLS, "{word}: {missing:?}");
    }
}

/// The process that keeps what a server has at this directory.
fn keeper_of(directory: &Path) -> Option<u32> {
    keeper_at(&format!("{}/keeper", directory.display()))
}

fn keeper_at(control: &str) -> Option<u32> {
    let wanted = format!("logpond\0keep\0{control}\0");
    let processes = fs::read_dir("/proc").unwrap();
    let mut pids = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.find(|pid: &u32| {
        fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|said| said == wanted.as_bytes())
    })
}

#[test]
fn nothing_is_kept_for_ever() {
    let machine = Machine::new("restarts-kept", &["--keep-sockets", "300ms"]);
    let directory = machine.directory();
    let server = machine.start();
    let keeper = keeper_of(&directory).unwrap();
    // It has nothing of whom it was started by.
    for number in 1..=2 {
        let to = fs::read_link(format!("/proc/{keeper}/fd/{number}")).unwrap();
        assert_eq!(to, Path::new("/dev/null"));
    }
    let session = rustix::process::Pid::from_raw(keeper.cast_signed());
    assert_eq!(rustix::process::getsid(session).ok(), session);
    let mut stream = UnixStream::connect(directory.join("stdout")).unwrap();
    stream.write_all(header("printer").as_bytes()).unwrap();
    stream.write_all(b"first\n").unwrap();
    wait_until("it is there", || {
        server.query("first").is_ok_and(|(rows, _)| rows.len() == 1)
    })
    .unwrap();
    // Another server is refused, whatever its data.
    let other = TestServer::start(
        program(),
        &machine.scratch.path().join("other"),
        &["--journald", &directory.display().to_string()],
    );
    let refused = other.err().map(|error| error.to_string());
    let refused = refused.unwrap_or_default();
    assert!(
        refused.contains("another program receives there"),
        "{refused}"
    );
    assert_eq!(keeper_of(&directory), Some(keeper), "it was not disturbed");
    assert_eq!(server.terminate().unwrap().code(), Some(0));
    wait_until("the writer is told", || {
        stream.write_all(b"lost\n").is_err()
    })
    .unwrap();
    wait_until("the keeper is gone", || keeper_of(&directory).is_none()).unwrap();
    let left: Vec<_> = fs::read_dir(&directory).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
    // A server whose keeper was killed starts again, and so does one that wants none.
    let server = machine.start();
    let keeper = keeper_of(&directory).unwrap();
    // In this order: a server that lives has another keeper started, which is no one's if it dies in the middle.
    server.kill();
    // It may have gone by itself.
    let _ = crate::pond::signal("KILL", keeper);
    wait_until("the keeper is gone", || keeper_of(&directory).is_none()).unwrap();
    let server = machine.start();
    crate::pond::signal("TERM", keeper_of(&directory).unwrap()).unwrap();
    assert_eq!(server.terminate().unwrap().code(), Some(0));
    wait_until("it ends at once if it is told to", || {
        keeper_of(&directory).is_none()
    })
    .unwrap();
}

/// A keeper that is killed while the server runs is replaced, and the next one has all of it.
#[test]
fn a_keeper_that_is_killed_is_replaced() {
    let machine = Machine::new("restarts-replaced", &LONG);
    let directory = machine.directory();
    let server = machine.start();
    let mut stream = UnixStream::connect(directory.join("stdout")).unwrap();
    stream.write_all(header("printer").as_bytes()).unwrap();
    let is_there = |server: &TestServer, word: &str| {
        wait_until(word, || {
            server.query(word).is_ok_and(|(rows, _)| rows.len() == 1)
        })
        .unwrap();
    };
    let mut known = vec![keeper_of(&directory).unwrap()];
    for word in ["first", "second"] {
        stream.write_all(format!("{word}\n").as_bytes()).unwrap();
        is_there(&server, word);
        crate::pond::signal("KILL", known[known.len() - 1]).unwrap();
        wait_until("there is another one", || {
            keeper_of(&directory).is_some_and(|keeper| !known.contains(&keeper))
        })
        .unwrap();
        known.push(keeper_of(&directory).unwrap());
        wait_until("it is said", || {
            server.stderr().matches("another one does so now").count() == known.len() - 1
        })
        .unwrap();
    }
    // The one that was killed is not left as a zombie.
    assert!(!Path::new(&format!("/proc/{}", known[0])).exists());
    server.kill();
    stream.write_all(b"third\n").unwrap();
    let datagrams = UnixDatagram::unbound().unwrap();
    let sent = datagrams.send_to(
        b"<13>Mar  2 00:00:00 app: fourth",
        directory.join("dev-log"),
    );
    sent.unwrap();
    let server = machine.start();
    for word in ["third", "fourth"] {
        is_there(&server, word);
    }
    stream.write_all(b"fifth\n").unwrap();
    is_there(&server, "fifth");
}

/// What keeps a socket alone, without streams, does so as long as the server is there.
#[test]
fn a_socket_alone_is_kept_while_its_server_runs() {
    let scratch = Scratch::new("restarts-alone").unwrap();
    for flag in ["--dev-log", "--dev-log-stream"] {
        let path = scratch.path().join(flag);
        let socket = path.display().to_string();
        let start = |data: &str| {
            let flags = [flag, &socket, "--keep-sockets", "100s"];
            TestServer::start(program(), &scratch.path().join(data), &flags)
        };
        let server = start("data").unwrap();
        // One that is let go of would be taken over.
        let refused = start("other").err().map(|error| error.to_string());
        let refused = refused.unwrap_or_default();
        assert!(
            refused.contains("another program receives there"),
            "{flag}: {refused}"
        );
        assert_eq!(server.terminate().unwrap().code(), Some(0));
        let server = start("data").unwrap();
        assert!(path.exists());
        crate::pond::signal("TERM", keeper_at(&format!("{socket}.keeper")).unwrap()).unwrap();
        assert_eq!(server.terminate().unwrap().code(), Some(0));
    }
}

/// What was taken over goes back to the keeper if nothing comes of the start.
#[test]
fn a_start_that_fails_breaks_nothing() {
    let mut machine = Machine::new("restarts-failed", &LONG);
    let path = machine.path("log");
    let stream = ["--dev-log-stream".to_owned(), path.display().to_string()];
    machine.flags.extend(stream);
    let server = machine.start();
    let mut stream = UnixStream::connect(machine.directory().join("stdout")).unwrap();
    stream.write_all(header("printer").as_bytes()).unwrap();
    stream.write_all(b"before\nbegun ").unwrap();
    wait_until("it is there", || {
        server
            .query("before")
            .is_ok_and(|(rows, _)| rows.len() == 1)
    })
    .unwrap();
    server.kill();
    let sent = || -> io::Result<()> {
        let mut socket = UnixStream::connect(&path)?;
        socket.write_all(b"<13>Nov 22 13:00:00 sender[1]: meanwhile\n")
    };
    sent().unwrap();
    for _ in 0..2 {
        machine
            .flags
            .extend(["--fluent-security".to_owned(), "/nonexistent".to_owned()]);
        let failed = machine.try_start().err().unwrap_or_default();
        assert!(failed.contains("/nonexistent"), "{failed}");
        machine.flags.truncate(LONG.len() + 2);
        sent().unwrap();
    }
    let server = machine.start();
    stream.write_all(b"and ended\n").unwrap();
    wait_until("it goes on", || {
        server.query("ended").is_ok_and(|(rows, _)| rows.len() == 1)
            && server
                .query("meanwhile")
                .is_ok_and(|(rows, _)| rows.len() == 3)
    })
    .unwrap();
    let (rows, _) = server.query("ended").unwrap();
    assert_eq!(rows[0]["app"], "printer", "{rows:?}");
}

/// Stands in for the service manager: keeps the descriptors that it is sent, and starts the server with
/// them.
struct Manager {
    path: PathBuf,
    said: Arc<Mutex<Vec<String>>>,
    kept: Arc<Mutex<Vec<(String, OwnedFd)>>>,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Manager {
    fn new(path: PathBuf) -> Manager {
        let socket = UnixDatagram::bind(&path).unwrap();
        let (said, kept, is_over) = <(Arc<Mutex<Vec<String>>>, _, Arc<AtomicBool>)>::default();
        let kept: Arc<Mutex<Vec<(String, OwnedFd)>>> = kept;
        let (saying, keeping, ending) = (said.clone(), kept.clone(), is_over.clone());
        let thread = thread::spawn(move || {
            while !ending.load(Ordering::Relaxed) {
                let (text, descriptor) = receive(&socket);
                let value = |name: &str| {
                    let mut lines = text.lines();
                    lines.find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
                };
                let name = value("FDNAME").unwrap_or("stored").to_owned();
                let mut kept = keeping.lock().unwrap();
                if value("FDSTOREREMOVE") == Some("1") {
                    kept.retain(|(of, _)| *of != name);
                } else if value("FDSTORE") == Some("1") {
                    assert_eq!(value("FDPOLL"), Some("0"), "{text}");
                    kept.push((name, descriptor.unwrap()));
                }
                saying.lock().unwrap().push(text);
            }
        });
        Manager {
            path,
            said,
            kept,
            is_over,
            thread: Some(thread),
        }
    }

    /// Starts the server as a service with what is kept, from descriptor 3 on.
    fn start(&self, data: &Path, directory: &Path) -> TestServer {
        let mut command = Command::new("sh");
        let kept = self.kept.lock().unwrap();
        let names: Vec<&str> = kept.iter().map(|(name, _)| &**name).collect();
        command
            .args(["-c", "LISTEN_PID=$$ exec \"$0\" \"$@\""])
            .arg(program())
            .env("NOTIFY_SOCKET", &self.path)
            .env("FDSTORE", "4200");
        if !names.is_empty() {
            command
                .env("LISTEN_FDS", names.len().to_string())
                .env("LISTEN_FDNAMES", names.join(":"));
        }
        let mappings = (3..).zip(kept.iter()).map(|(child_fd, (_, descriptor))| {
            let parent_fd = descriptor.try_clone().unwrap();
            FdMapping {
                parent_fd,
                child_fd,
            }
        });
        command.fd_mappings(mappings.collect()).unwrap();
        drop(kept);
        TestServer::start_under(
            command,
            data,
            &["--journald", &directory.display().to_string()],
        )
        .unwrap()
    }

    fn has_heard(&self, text: &str) -> usize {
        let said = self.said.lock().unwrap();
        said.iter().filter(|said| *said == text).count()
    }

    fn names(&self) -> Vec<String> {
        let kept = self.kept.lock().unwrap();
        kept.iter().map(|(name, _)| name.clone()).collect()
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let wake = UnixDatagram::unbound().and_then(|socket| socket.send_to(b"END=1", &self.path));
        let joined = self.thread.take().map(JoinHandle::join);
        if !thread::panicking() {
            wake.unwrap();
            joined.unwrap().unwrap();
        }
    }
}

fn receive(socket: &UnixDatagram) -> (String, Option<OwnedFd>) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut bytes = [0; 1024];
    let mut parts = [IoSliceMut::new(&mut bytes)];
    let received = recvmsg(socket, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC).unwrap();
    let mut descriptors = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    let descriptor = descriptors.next();
    drop(descriptors);
    let text = String::from_utf8(bytes[..received.bytes].to_vec()).unwrap();
    (text, descriptor)
}

#[test]
fn a_service_manager_keeps_what_a_service_has() {
    let mut machine = Machine::new("restarts-managed", &[]);
    let manager = Manager::new(machine.scratch.path().join("notify"));
    let (data, directory) = (machine.scratch.path().join("data"), machine.directory());
    let mut server = manager.start(&data, &directory);
    wait_until("it says that it is ready", || {
        manager.has_heard("READY=1") == 1
    })
    .unwrap();
    // The board and three sockets.
    assert_eq!(manager.names().len(), 4, "{:?}", manager.names());
    assert_eq!(keeper_of(&directory), None, "there is one keeper");
    machine.write_all();
    for round in 1..4 {
        machine.progress();
        let before = machine.written();
        match round {
            3 => server.kill(),
            _ => {
                assert_eq!(server.terminate().unwrap().code(), Some(0));
                wait_until("it said so", || manager.has_heard("STOPPING=1") == round).unwrap();
            }
        }
        machine.goes_on(before);
        server = manager.start(&data, &directory);
        wait_until("it is ready again", || {
            manager.has_heard("READY=1") == round + 1
        })
        .unwrap();
    }
    machine.progress();
    let written = machine.stop();
    for (word, count) in &written {
        wait_until("the last is there", || {
            there(&server, word).contains_key(&(count - 1))
        })
        .unwrap();
    }
    // Streams that have ended are forgotten.
    wait_until("only sockets are kept", || manager.names().len() == 4).unwrap();
    let stream = UnixStream::connect(directory.join("stdout")).unwrap();
    wait_until("a stream is kept", || manager.names().len() == 5).unwrap();
    drop(stream);
    wait_until("it is forgotten", || manager.names().len() == 4).unwrap();
    assert_eq!(server.terminate().unwrap().code(), Some(0));
    // Whoever finds nobody there is told, once the manager lets go.
    manager.kept.lock().unwrap().clear();
    // A process that another test starts has a copy of every socket until it has loaded its program.
    wait_until("a connection is refused", || {
        let connected = UnixStream::connect(directory.join("stdout"));
        connected.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
    })
    .unwrap();
}
