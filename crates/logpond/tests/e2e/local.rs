//! Programs of this machine log through sockets, as they do with a syslog daemon.

use std::fs;
use std::io::Write;
use std::mem::MaybeUninit;
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{MemfdFlags, SealFlags};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use serde_json::Value;

use crate::disk_full::{SmallDisk, noise};
use crate::pond::{ALL_TIME, Scratch, TestServer, signal, wait_until};
use crate::surroundings::{program, say};

/// Size of a disk that is full at first: what waits finds room afterwards.
const DISK_BYTES: usize = 256 << 20;

/// What is free on it.
const FREE_BYTES: usize = 12 << 20;

fn start(data: &Path, socket: &Path) -> TestServer {
    let socket = socket.display().to_string();
    let flags = ["--dev-log", &socket, "--keep-sockets", "off"];
    TestServer::start(program(), data, &flags).unwrap()
}

/// The only record that has these words.
pub(crate) fn record(server: &TestServer, q: &str) -> Value {
    let mut found = Vec::new();
    wait_until("the record is there", || {
        found = server.query(q).unwrap().0;
        !found.is_empty()
    })
    .unwrap();
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

/// Has `logger` write to a socket, whatever kind it is.
pub(crate) fn log_from_a_shell(server: &TestServer, socket: &Path) {
    let logged = Command::new("logger")
        .args(["-t", "tester", "-p", "local3.err", "-u"])
        .arg(socket)
        .arg("from a shell")
        .status();
    match logged {
        Ok(status) => {
            assert!(status.success());
            let row = record(server, "shell");
            assert_eq!(
                (&row["app"], &row["severity"]),
                (&"tester".into(), &3.into())
            );
        }
        Err(_) => say("skipped: logger, which is not installed"),
    }
}

#[test]
fn each_record_says_which_process_sent_it() {
    let scratch = Scratch::new("dev-log").unwrap();
    let path = scratch.path().join("log");
    let server = start(&scratch.path().join("data"), &path);
    let socket = UnixDatagram::unbound().unwrap();
    socket.connect(&path).unwrap();
    let mine = std::process::id();
    socket
        .send(b"<28>Nov 22 13:00:00 app[1]: first _PID=1\n")
        .unwrap();
    let row = record(&server, "first");
    let value = |name: &str| {
        row[name]
            .as_str()
            .map_or(row[name].to_string(), str::to_owned)
    };
    assert_eq!(value("_msg"), "first _PID=1");
    assert_eq!(
        (value("app"), value("procid")),
        ("app".to_owned(), "1".to_owned())
    );
    assert_eq!(
        (value("severity"), value("facility")),
        ("4".to_owned(), "3".to_owned())
    );
    assert_eq!(value("_PID"), mine.to_string());
    assert_eq!(value("_TRANSPORT"), "syslog");
    assert_eq!(
        value("_COMM"),
        fs::read_to_string("/proc/self/comm").unwrap().trim_end()
    );
    let me = std::env::current_exe().unwrap();
    assert_eq!(value("_EXE"), me.display().to_string());
    // Whole, whatever is in it, up to what the system lets through.
    let long = [b"<13>long ".as_slice(), &[b'x'; 150_000], b"\nsecond line"].concat();
    socket.send(&long).unwrap();
    let row = record(&server, "long");
    assert_eq!(row["_msg"].as_str().map(str::len), Some(long.len() - 4));
    log_from_a_shell(&server, &path);
    assert_eq!(server.terminate().unwrap().code(), Some(0));
    assert!(!path.exists(), "the socket is taken away");
}

#[test]
fn a_killed_server_leaves_its_place_to_the_next() {
    let scratch = Scratch::new("dev-log-killed").unwrap();
    let (path, data) = (scratch.path().join("log"), scratch.path().join("data"));
    start(&data, &path).kill();
    assert!(path.exists());
    let server = start(&data, &path);
    let socket = UnixDatagram::unbound().unwrap();
    socket.send_to(b"<13>after", &path).unwrap();
    record(&server, "after");
    let second = TestServer::start(
        program(),
        &scratch.path().join("other"),
        &["--dev-log", &path.display().to_string()],
    );
    let refused = second
        .err()
        .map(|error| error.to_string())
        .unwrap_or_default();
    assert!(
        refused.contains("another program receives there"),
        "{refused}"
    );
}

/// More than wait by the kernel's default, fewer than a sender's buffer takes.
const AT_ONCE: usize = 100;

#[test]
fn many_messages_wait_for_a_server_that_is_held_up() {
    let scratch = Scratch::new("local-backlog").unwrap();
    let socket = scratch.path().join("log");
    let server = start(&scratch.path().join("data"), &socket);
    let limit = fs::read_to_string("/proc/sys/net/unix/max_dgram_qlen").unwrap();
    // It may be that it cannot be raised here.
    let messages = AT_ONCE.min(limit.trim().parse().unwrap());
    let sender = UnixDatagram::unbound().unwrap();
    sender.connect(&socket).unwrap();
    sender.set_nonblocking(true).unwrap();
    signal("STOP", server.pid()).unwrap();
    for number in 0..messages {
        let message = format!("<13>Mar  2 00:00:00 app: waited {number}");
        sender.send(message.as_bytes()).unwrap();
    }
    signal("CONT", server.pid()).unwrap();
    wait_until("all messages are here", || {
        server
            .query("waited")
            .is_ok_and(|(rows, _)| rows.len() == messages)
    })
    .unwrap();
}

#[test]
fn no_program_waits_for_a_full_disk() {
    log_on_while_the_disk_is_full("dev-log", |path| {
        let socket = UnixDatagram::unbound().unwrap();
        socket.connect(path).unwrap();
        Box::new(move |message| assert_eq!(socket.send(message).unwrap(), message.len()))
    });
}

/// While the disk is full a program logs on, and what was lost is known to the last record.
pub(crate) fn log_on_while_the_disk_is_full(
    setting: &str,
    connect: impl Fn(&Path) -> Box<dyn FnMut(&[u8])>,
) {
    let scratch = Scratch::new(&format!("{setting}-full")).unwrap();
    let flag = format!("--{setting}");
    let start = |data: &Path, socket: &Path| {
        let socket = socket.display().to_string();
        TestServer::start(program(), data, &[&flag, &socket]).unwrap()
    };
    let Some(disk) = SmallDisk::mount(&scratch.path().join("disk"), DISK_BYTES) else {
        say("skipped: a full disk because mounting a small file system is not permitted here");
        return;
    };
    let ballast = disk.path.join("ballast");
    fs::write(&ballast, vec![0; DISK_BYTES - FREE_BYTES]).unwrap();
    let path = scratch.path().join("log");
    let server = start(&disk.path.join("data"), &path);
    let mut send = connect(&path);
    let text = noise(7, 100_000);
    // More than the disk and the memory for waiting records take.
    let count = 1_000;
    for number in 0..count {
        let sent = [format!("<13>many {number} ").as_bytes(), &text].concat();
        send(&sent);
    }
    fs::remove_file(&ballast).unwrap();
    let target = format!("/api/v1/query?{ALL_TIME}&count=true&q=many");
    let (mut rows, mut lost) = (0.0, 0.0);
    wait_until("all is there or lost", || {
        lost = server.metric("logpond_ingest_lost_total").unwrap();
        let answer: Value = serde_json::from_str(server.get(&target).unwrap().trim()).unwrap();
        rows = answer["_trailer"]["rows"].as_f64().unwrap();
        rows + lost >= f64::from(count)
    })
    .unwrap_or_else(|e| panic!("{e}: {rows} rows, {lost} lost"));
    assert_eq!(rows + lost, f64::from(count));
    // The end says what nobody was told yet.
    assert_eq!(server.terminate().unwrap().code(), Some(0));
    let server = start(&disk.path.join("data"), &path);
    let (told, _) = server.query("\"were lost\"").unwrap();
    let told: f64 = told.iter().map(|row| row["lost"].as_f64().unwrap()).sum();
    assert_eq!(told, lost);
    say(&format!(
        "{setting}: of {count} records {lost} lost while the disk was full"
    ));
}

/// A server with journald's sockets in a directory.
fn start_journald(scratch: &Scratch, extra: &[&str]) -> (TestServer, PathBuf) {
    let directory = scratch.path().join("journald");
    let named = directory.display().to_string();
    let arguments = [&["--journald", &named], extra].concat();
    let server = TestServer::start(program(), &scratch.path().join("data"), &arguments).unwrap();
    (server, directory)
}

fn text(row: &Value, name: &str) -> String {
    row[name]
        .as_str()
        .map_or(row[name].to_string(), str::to_owned)
}

#[test]
fn entries_with_fields_come_as_datagrams_and_as_files() {
    let scratch = Scratch::new("journald").unwrap();
    let (server, directory) = start_journald(&scratch, &["--line-bytes-max", "32MiB"]);
    let path = directory.join("socket");
    let socket = UnixDatagram::unbound().unwrap();
    socket.connect(&path).unwrap();
    let me = std::process::id().to_string();
    // Two entries in one, a value with a line end, a name twice, and a word that is not the sender's.
    let datagram =
        b"MESSAGE=one of two\nPRIORITY=3\nCODE_LINE=7\nX=1\nX=2\n_PID=1\nSYSLOG_IDENTIFIER=me\n\n\
        MESSAGE\n\x0f\0\0\0\0\0\0\0two\nof the two!\nY=z\n";
    let before = jiff::Timestamp::now().as_microsecond();
    socket.send(datagram).unwrap();
    let after = jiff::Timestamp::now().as_microsecond();
    let row = record(&server, "\"one of two\"");
    let at_us = row["_SOURCE_REALTIME_TIMESTAMP"].as_i64().unwrap();
    assert!(
        (before..=after).contains(&at_us),
        "{before} {at_us} {after}"
    );
    let time: jiff::Timestamp = text(&row, "_time").parse().unwrap();
    assert_eq!(time.as_microsecond(), at_us);
    assert_eq!(
        (text(&row, "severity"), text(&row, "CODE_LINE")),
        ("3".into(), "7".into())
    );
    assert_eq!(
        (text(&row, "_PID"), text(&row, "app")),
        (me.clone(), "me".into())
    );
    assert_eq!(row["X"], serde_json::json!(["1", "2"]), "{row}");
    assert_eq!(text(&row, "_TRANSPORT"), "journal");
    let row = record(&server, "\"of the two\"");
    assert_eq!(
        (text(&row, "_msg"), text(&row, "Y")),
        ("two\nof the two!".into(), "z".into())
    );
    assert_eq!(text(&row, "severity"), "6");
    // What is too large for a datagram comes as a sealed file, and is whole.
    let message = format!("large {}", "x".repeat(20 << 20));
    let file = rustix::fs::memfd_create("entry", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING);
    let mut file = fs::File::from(file.unwrap());
    write!(file, "MESSAGE={message}\nZ=1\n").unwrap();
    let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE | SealFlags::SEAL;
    rustix::fs::fcntl_add_seals(&file, seals).unwrap();
    send_file(&socket, &file);
    let row = record(&server, "large");
    assert!(row["_msg"].as_str() == Some(&message), "it is not whole");
    // A file that the sender could not read is not read for it.
    let secret = scratch.path().join("secret");
    fs::write(&secret, "MESSAGE=secret\n").unwrap();
    send_file(&socket, &fs::File::open(&secret).unwrap());
    wait_until("it is counted", || {
        server.metric("logpond_ingest_lost_total") == Ok(1.0)
    })
    .unwrap();
    assert_eq!(server.query("secret").unwrap().0.len(), 0);
    assert_eq!(server.terminate().unwrap().code(), Some(0));
}

fn send_file(socket: &UnixDatagram, file: &fs::File) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let files = [file.as_fd()];
    assert!(control.push(SendAncillaryMessage::ScmRights(&files)));
    sendmsg(socket, &[], &mut control, SendFlags::empty()).unwrap();
}

#[test]
fn what_services_print_comes_line_by_line() {
    let scratch = Scratch::new("journald-stdout").unwrap();
    let (server, directory) = start_journald(&scratch, &[]);
    let mut stream = UnixStream::connect(directory.join("stdout")).unwrap();
    stream
        .write_all(b"printer\n\n30\n1\n0\n0\n0\nplain\n<3>bad thing\n\nno end")
        .unwrap();
    let row = record(&server, "plain");
    let found = (
        text(&row, "app"),
        text(&row, "severity"),
        text(&row, "facility"),
    );
    assert_eq!(found, ("printer".into(), "6".into(), "3".into()));
    assert_eq!(text(&row, "_PID"), std::process::id().to_string());
    let row = record(&server, "thing");
    assert_eq!(
        (text(&row, "_msg"), text(&row, "severity")),
        ("bad thing".into(), "3".into())
    );
    drop(stream);
    let row = record(&server, "\"no end\"");
    assert_eq!(text(&row, "_LINE_BREAK"), "eof");
    // The real client, which knows one place only.
    let mounted = Command::new("unshare")
        .args(["--mount", "sh", "-ec"])
        .arg(
            "mkdir -p /run/systemd/journal; mount -t tmpfs none /run/systemd; \
             mkdir /run/systemd/journal; mount --bind \"$0\" /run/systemd/journal; \
             exec systemd-cat -t tester -p warning echo printed by a program",
        )
        .arg(&directory)
        .output();
    match mounted {
        Ok(done) if done.status.success() => {
            let row = record(&server, "\"printed by a program\"");
            let found = (
                text(&row, "app"),
                text(&row, "severity"),
                text(&row, "_TRANSPORT"),
            );
            assert_eq!(found, ("tester".into(), "4".into(), "stdout".into()));
        }
        done => say(&format!(
            "skipped: systemd-cat, which does not run here: {done:?}"
        )),
    }
    assert_eq!(server.terminate().unwrap().code(), Some(0));
}

/// A service that prints faster than it is read does not keep the server from others.
#[test]
fn who_prints_without_end_holds_up_nobody() {
    let scratch = Scratch::new("journald-endless").unwrap();
    let (server, directory) = start_journald(&scratch, &[]);
    let mut stream = UnixStream::connect(directory.join("stdout")).unwrap();
    stream.write_all(b"printer\n\n30\n0\n0\n0\n0\n").unwrap();
    let lines = b"y\n".repeat(32 << 10);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                stream.write_all(&lines).unwrap();
            }
        });
        let is_answered = (0..20).all(|_| server.get("/-/healthy").is_ok());
        is_over.store(true, Ordering::Relaxed);
        assert!(is_answered);
    });
}

/// A program may write its last words just before the whole machine is shut down.
#[test]
fn what_was_sent_before_the_stop_is_taken() {
    const PROGRAMS: usize = 10;
    let scratch = Scratch::new("local-last").unwrap();
    let socket = scratch.path().join("log");
    let socket_flag = socket.display().to_string();
    let extra = ["--dev-log-stream", &socket_flag, "--keep-sockets", "off"];
    let (server, directory) = start_journald(&scratch, &extra);
    let mut line = TcpStream::connect(server.address("fast")).unwrap();
    line.write_all(b"first\n").unwrap();
    record(&server, "first");
    // Nothing is seen one after the other.
    signal("STOP", server.pid()).unwrap();
    line.write_all(b"lasttcp\n").unwrap();
    let mut programs = Vec::new();
    for _ in 0..PROGRAMS {
        let mut printing = UnixStream::connect(directory.join("stdout")).unwrap();
        printing
            .write_all(b"printer\n\n30\n0\n0\n0\n0\nlastprinter\n")
            .unwrap();
        let mut logging = UnixStream::connect(&socket).unwrap();
        logging.write_all(b"<13>app: lastlogger\0").unwrap();
        programs.extend([printing, logging]);
    }
    signal("TERM", server.pid()).unwrap();
    signal("CONT", server.pid()).unwrap();
    assert_eq!(server.ended().unwrap().code(), Some(0));
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    for (of, expected) in [("tcp", 1), ("printer", PROGRAMS), ("logger", PROGRAMS)] {
        let (rows, _) = server.query(&format!("last{of}")).unwrap();
        assert_eq!(rows.len(), expected, "{of}");
    }
}
