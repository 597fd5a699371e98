//! Programs of this machine that log through a stream socket.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::local::{log_from_a_shell, log_on_while_the_disk_is_full, record};
use crate::pond::{Scratch, TestServer, wait_until};
use crate::surroundings::{program, say};

fn start(scratch: &Scratch, socket: &Path) -> TestServer {
    let socket = socket.display().to_string();
    let data = scratch.path().join("data");
    let flags = ["--dev-log-stream", &socket, "--keep-sockets", "off"];
    TestServer::start(program(), &data, &flags).unwrap()
}

#[test]
fn messages_are_told_apart_however_they_end() {
    let scratch = Scratch::new("dev-log-stream").unwrap();
    let path = scratch.path().join("log");
    let server = start(&scratch, &path);
    let counted = "<13>Nov 22 13:00:00 app[7]: counted one\nin two lines";
    let structured = "<165>1 2026-03-02T00:00:00Z ash app 7 ID [ex@1 n=\"5\"] structured";
    let stream: Vec<u8> = [
        &b"<28>Nov 22 13:00:00 app[1]: ended by NUL\0"[..],
        b"<29>Nov 22 13:00:00 app[2]: ended by LF\n",
        b"<30>Nov 22 13:00:00 app[3]: ended by CR and LF\r\n",
        format!("{} {counted}", counted.len()).as_bytes(),
        format!("{structured}\n\0").as_bytes(),
        b"a message without a header\n",
        b"<31>Nov 22 13:00:00 app[4]: ended by nothing",
    ]
    .concat();
    let mut socket = UnixStream::connect(&path).unwrap();
    // Wherever it is cut.
    for part in stream.chunks(7) {
        socket.write_all(part).unwrap();
    }
    drop(socket);
    let last = record(&server, "\"ended by nothing\"");
    let (rows, _) = server.query("").unwrap();
    assert_eq!(rows.len(), 7, "{rows:?}");
    let expected = [
        ("NUL", "ended by NUL", 4),
        ("\"by LF\"", "ended by LF", 5),
        ("CR", "ended by CR and LF", 6),
        ("counted", "counted one\nin two lines", 5),
        ("structured", "structured", 5),
    ];
    for (words, message, severity) in expected {
        let row = record(&server, words);
        assert_eq!(
            (&row["_msg"], &row["severity"]),
            (&message.into(), &severity.into())
        );
        assert_eq!(row["app"], "app");
    }
    assert_eq!(record(&server, "structured")["ex@1.n"], "5");
    assert_eq!(
        record(&server, "header")["_msg"],
        "a message without a header"
    );
    let mine = std::process::id().to_string();
    assert!(rows.iter().all(|row| row["_PID"].as_str() == Some(&mine)));
    assert!(rows.iter().all(|row| row["_TRANSPORT"] == "syslog"));
    assert_eq!(last["procid"], "4");
    assert_eq!(server.terminate().unwrap().code(), Some(0));
    assert!(!path.exists(), "the socket is taken away");
}

/// The interpreter that has the C library's `syslog()` and a handler of its own.
const PYTHON: &str = "/usr/bin/python3";

/// Logs by the C library, which knows one place only, and goes on until its input ends.
const BY_LIBRARY: &str = "import syslog, sys\n\
    syslog.openlog('library', syslog.LOG_PID, syslog.LOG_LOCAL3)\n\
    syslog.syslog(syslog.LOG_ERR, 'first by the library')\n\
    syslog.syslog(syslog.LOG_ERR, 'second by the library')\n\
    sys.stdin.read()\n";

/// Logs by a handler, to the socket that its argument names.
const BY_HANDLER: &str = "import logging, logging.handlers, socket, sys\n\
    handler = logging.handlers.SysLogHandler(sys.argv[1], socktype=socket.SOCK_STREAM)\n\
    logging.getLogger().addHandler(handler)\n\
    logging.error('handler: by the handler')\n\
    sys.stdin.read()\n";

/// Runs a program until these words of its are there, which must be of its process. Gives false where
/// it does not run.
fn logs(server: &TestServer, arguments: &[&str], words: &str) -> bool {
    let mut command = Command::new(arguments[0]);
    command.args(&arguments[1..]).stdin(Stdio::piped());
    let Ok(mut child) = command.spawn() else {
        say(&format!(
            "skipped: {words}, for there is no {}",
            arguments[0]
        ));
        return false;
    };
    let mut found: Vec<Value> = Vec::new();
    wait_until("it has logged, or cannot", || {
        found = server.query(words).unwrap().0;
        !found.is_empty() || child.try_wait().unwrap().is_some()
    })
    .unwrap();
    let mine = child.id().to_string();
    drop(child.stdin.take());
    let ended = child.wait().unwrap();
    let Some(row) = found.first() else {
        assert!(!ended.success(), "nobody has {words}");
        say(&format!(
            "skipped: {words}, by a program that does not run here"
        ));
        return false;
    };
    assert_eq!(row["_PID"].as_str(), Some(&*mine), "{row}");
    let command_line = row["_CMDLINE"].as_str().unwrap();
    assert!(command_line.contains(PYTHON), "{row}");
    true
}

/// Programs that run long enough to be looked at are told apart by the kernel's word.
#[test]
fn each_record_says_which_process_connected() {
    let scratch = Scratch::new("dev-log-stream-programs").unwrap();
    let path = scratch.path().join("log");
    let server = start(&scratch, &path);
    let named = path.display().to_string();
    let place = "mount -t tmpfs none /dev; ln -s \"$0\" /dev/log; exec \"$1\" -c \"$2\"";
    let by_library = [
        "unshare", "--mount", "sh", "-ec", place, &named, PYTHON, BY_LIBRARY,
    ];
    if logs(&server, &by_library, "\"first by the library\"") {
        let row = record(&server, "\"second by the library\"");
        let found = (&row["app"], &row["severity"], &row["procid"]);
        assert_eq!(found, (&"library".into(), &3.into(), &row["_PID"]), "{row}");
    }
    logs(
        &server,
        &[PYTHON, "-c", BY_HANDLER, &named],
        "\"by the handler\"",
    );
    log_from_a_shell(&server, &path);
    assert_eq!(server.terminate().unwrap().code(), Some(0));
}

#[test]
fn no_program_waits_for_a_full_disk() {
    log_on_while_the_disk_is_full("dev-log-stream", |path| {
        let mut stream = UnixStream::connect(path).unwrap();
        Box::new(move |message| {
            stream
                .write_all(format!("{} ", message.len()).as_bytes())
                .unwrap();
            stream.write_all(message).unwrap();
        })
    });
}

/// What programs have sent that are gone is taken, also by a server that is asked to end.
#[test]
fn what_was_sent_before_the_end_is_there() {
    let scratch = Scratch::new("dev-log-stream-end").unwrap();
    let path = scratch.path().join("log");
    let server = start(&scratch, &path);
    let senders = 200;
    let mut open = Vec::new();
    for number in 0..senders {
        let mut stream = UnixStream::connect(&path).unwrap();
        write!(stream, "<13>last words {number}\0").unwrap();
        if number % 2 == 0 {
            open.push(stream);
        }
    }
    assert_eq!(server.terminate().unwrap().code(), Some(0));
    let server = start(&scratch, &path);
    let (rows, _) = server.query("\"last words\"").unwrap();
    assert_eq!(rows.len(), senders);
}

/// A program that sends faster than it is read holds up neither others nor the end.
#[test]
fn who_sends_without_end_holds_up_nobody() {
    let scratch = Scratch::new("dev-log-stream-endless").unwrap();
    let path = scratch.path().join("log");
    let server = start(&scratch, &path);
    let mut stream = UnixStream::connect(&path).unwrap();
    let messages = b"<13>y\0".repeat(16 << 10);
    std::thread::scope(|scope| {
        let sending = scope.spawn(|| while stream.write_all(&messages).is_ok() {});
        assert!((0..20).all(|_| server.get("/-/healthy").is_ok()));
        let mut other = UnixStream::connect(&path).unwrap();
        other.write_all(b"<13>the other\0").unwrap();
        record(&server, "other");
        // The sender hears of the end by its stream.
        assert_eq!(server.terminate().unwrap().code(), Some(0));
        sending.join().unwrap();
    });
}
