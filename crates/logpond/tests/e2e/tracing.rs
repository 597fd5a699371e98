//! What the server asks of the kernel, by thread: no runtime thread touches files, and no durable
//! reply leaves before the sync that it waits for.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::thread;

use crate::pond::{self, Scratch, TestServer, files_below};
use crate::surroundings::{has_program, program, say, skip};

/// System calls that may wait for a disk.
const FILE_CALLS: [&str; 16] = [
    "open",
    "openat",
    "openat2",
    "creat",
    "rename",
    "renameat",
    "renameat2",
    "unlink",
    "unlinkat",
    "fsync",
    "fdatasync",
    "sync_file_range",
    "ftruncate",
    "fallocate",
    "mkdir",
    "mkdirat",
];

/// System calls that write, to files and sockets.
const WRITE_CALLS: [&str; 7] = [
    "write", "writev", "pwrite64", "pwritev", "sendto", "sendmsg", "pwritev2",
];

/// Only event loops make these.
const LOOP_CALLS: [&str; 3] = ["epoll_wait", "epoll_pwait", "epoll_pwait2"];

/// What the C library's allocator looks at once, in any thread; it is no file of a disk.
const ALLOCATOR_FILE: &str = "\"/proc/sys/vm/overcommit_memory\"";

/// Clients of each protocol, and records that each sends one at a time.
const CLIENTS: usize = 3;
const RECORDS: usize = 40;

/// One finished system call.
struct Call {
    thread: u32,
    name: String,
    /// Arguments as strace writes them.
    arguments: String,
    result: String,
    /// Line at which the call was seen to start.
    started: usize,
    /// Line at which it was seen to end.
    ended: usize,
}

/// Parses the output of `strace -f`; a call that another thread interrupted is put together.
fn parse(text: &str) -> Vec<Call> {
    let mut open: BTreeMap<u32, (usize, String)> = BTreeMap::new();
    let mut calls = Vec::new();
    for (line_number, line) in text.lines().enumerate() {
        let Some((thread, rest)) = line.split_once(' ') else {
            continue;
        };
        let Ok(thread) = thread.parse::<u32>() else {
            continue;
        };
        let rest = rest.trim_start();
        let (started, whole) = if let Some(start) = rest.strip_suffix(" <unfinished ...>") {
            open.insert(thread, (line_number, start.to_string()));
            continue;
        } else if rest.starts_with("<... ") {
            let Some((started, start)) = open.remove(&thread) else {
                continue;
            };
            let after = rest.split_once(" resumed>").map_or("", |(_, after)| after);
            (started, start + after)
        } else {
            (line_number, rest.to_string())
        };
        let Some((name, after)) = whole.split_once('(') else {
            continue;
        };
        let Some((arguments, result)) = after.rsplit_once(" = ") else {
            continue;
        };
        calls.push(Call {
            thread,
            name: name.to_string(),
            arguments: arguments.to_string(),
            result: result.to_string(),
            started,
            ended: line_number,
        });
    }
    calls
}

/// The server under strace, which writes to `trace`.
fn traced(trace: &Path) -> Command {
    let calls = [&FILE_CALLS[..], &WRITE_CALLS[..], &LOOP_CALLS[..]].concat();
    let mut command = Command::new("strace");
    command
        .args([
            "--follow-forks",
            "--decode-fds=all",
            "--string-limit=65536",
            "--quiet=all",
        ])
        .arg(format!("--trace=?{}", calls.join(",?")))
        .arg("--output")
        .arg(trace)
        .arg(program());
    command
}

#[test]
fn the_kernel_sees_no_file_work_on_event_loops_and_no_early_reply() {
    if !has_program("strace") {
        skip(
            "tracing system calls by thread",
            "strace is not installed (./test installs it)",
        );
        return;
    }
    let scratch = Scratch::new("trace").unwrap();
    let trace = scratch.path().join("trace");
    let data = scratch.path().join("data");
    let pond = match TestServer::start_under(traced(&trace), &data, &[]) {
        Ok(pond) => pond,
        Err(error) if error.contains("PTRACE") || error.contains("ptrace") => {
            skip(
                "tracing system calls by thread",
                "tracing is not permitted here",
            );
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let ports = send_all(&pond);
    let (rows, _) = pond.query("marker").unwrap();
    assert_eq!(rows.len(), 2 * CLIENTS * RECORDS);
    let compacted = Command::new(program())
        .args(["compact", "--wait", "--addr", &pond.url()])
        .output()
        .unwrap();
    assert!(compacted.status.success(), "{compacted:?}");
    assert!(!files_below(&data.join("segments"), ".parquet").is_empty());
    let (rows, _) = pond.query("marker").unwrap();
    assert_eq!(rows.len(), 2 * CLIENTS * RECORDS);
    end(pond);
    let text = String::from_utf8_lossy(&fs::read(&trace).unwrap()).into_owned();
    let calls = parse(&text);
    no_file_work_on_loops(&calls);
    let replies = no_early_reply(&calls, &ports);
    say(&format!(
        "tracing: {} system calls, {replies} durable replies, each after its sync",
        calls.len()
    ));
    assert_eq!(replies, 2 * CLIENTS * RECORDS);
}

/// Ends the traced server: the signal goes to the server, not to its tracer.
fn end(pond: TestServer) {
    let path = format!("/proc/{0}/task/{0}/children", pond.pid());
    let children = fs::read_to_string(path).unwrap();
    let server = children.split_whitespace().next().unwrap().parse().unwrap();
    pond::signal("TERM", server).unwrap();
    pond::wait_until("the traced server has ended", || {
        !Path::new(&format!("/proc/{server}/stat")).exists()
    })
    .unwrap();
}

/// Sends markers from several clients at once; gives the client's name by its local port.
fn send_all(pond: &TestServer) -> BTreeMap<u16, String> {
    let mut ports = BTreeMap::new();
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for client in 0..CLIENTS {
            threads.push(scope.spawn(move || send_lines(pond, &format!("tcp{client}"))));
            threads.push(scope.spawn(move || push_bodies(pond, &format!("http{client}"))));
        }
        ports.extend(threads.into_iter().map(|thread| thread.join().unwrap()));
    });
    ports
}

fn send_lines(pond: &TestServer, name: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(pond.address("durable")).unwrap();
    let port = stream.local_addr().unwrap().port();
    let mut answers = BufReader::new(stream.try_clone().unwrap());
    for number in 0..RECORDS {
        stream
            .write_all(format!("marker-{name}-{number}.\n").as_bytes())
            .unwrap();
        let mut answer = String::new();
        answers.read_line(&mut answer).unwrap();
        assert_eq!(answer, "OK 1\n");
    }
    (port, name.to_string())
}

fn push_bodies(pond: &TestServer, name: &str) -> (u16, String) {
    let mut client = pond.client().unwrap();
    let port = client.local_port().unwrap();
    for number in 0..RECORDS {
        let body = format!("marker-{name}-{number}.");
        let pushed = pond::push(&mut client, "text/plain", "", body.as_bytes()).unwrap();
        assert_eq!(pushed.accepted(), 1, "{}", pushed.body);
    }
    (port, name.to_string())
}

/// Threads that run an event loop make no call that may wait for a disk once the server is ready.
fn no_file_work_on_loops(calls: &[Call]) {
    let ready = calls
        .iter()
        .filter(|c| c.name.starts_with("rename") && c.arguments.contains("ready.json"))
        .map(|c| c.ended)
        .max()
        .expect("the ready file is put in place by a rename");
    let loops: BTreeSet<u32> = calls
        .iter()
        .filter(|c| LOOP_CALLS.contains(&&*c.name))
        .map(|c| c.thread)
        .collect();
    assert!(!loops.is_empty(), "no event loop was seen");
    let bad: Vec<String> = calls
        .iter()
        .filter(|c| loops.contains(&c.thread) && c.started > ready)
        .filter(|c| FILE_CALLS.contains(&&*c.name) && !c.arguments.contains(ALLOCATOR_FILE))
        .map(|c| format!("{} {}({})", c.thread, c.name, c.arguments))
        .collect();
    assert!(bad.is_empty(), "runtime threads touch files: {bad:#?}");
    let syncs = calls
        .iter()
        .filter(|c| c.name == "fdatasync" && c.started > ready)
        .count();
    assert!(syncs > 0, "no sync was seen at all");
}

/// Every reply to a client starts after the end of a sync that started after the end of the write
/// of the record that it acknowledges. Gives the number of replies.
fn no_early_reply(calls: &[Call], ports: &BTreeMap<u16, String>) -> usize {
    let mut written: BTreeMap<String, (usize, String)> = BTreeMap::new();
    let mut syncs: Vec<(usize, usize, String)> = Vec::new();
    let mut replied: BTreeMap<u16, usize> = BTreeMap::new();
    let mut replies = 0;
    for call in calls {
        let file = descriptor(&call.arguments);
        if WRITE_CALLS.contains(&&*call.name) && file.contains("/journal/") {
            for marker in markers(&call.arguments) {
                written.insert(marker, (call.ended, file.to_string()));
            }
        } else if matches!(&*call.name, "fdatasync" | "fsync") && call.result.starts_with('0') {
            syncs.push((call.started, call.ended, file.to_string()));
        }
    }
    for call in calls.iter().filter(|c| WRITE_CALLS.contains(&&*c.name)) {
        let Some(port) = peer_port(descriptor(&call.arguments), ports) else {
            continue;
        };
        let is_reply =
            call.arguments.contains("\"OK ") || call.arguments.contains("\"HTTP/1.1 200");
        if !is_reply {
            continue;
        }
        let number = replied.entry(port).or_insert(0);
        let marker = format!("marker-{}-{number}.", ports[&port]);
        *number += 1;
        let (write_ended, file) = written
            .get(&marker)
            .unwrap_or_else(|| panic!("a reply for {marker}, which was never written"));
        let is_synced = syncs.iter().any(|(started, ended, synced)| {
            synced == file && started > write_ended && *ended < call.started
        });
        assert!(is_synced, "the reply for {marker} left before its sync");
        replies += 1;
    }
    replies
}

/// What strace says of the first argument's file: `12</path>` or `9<TCP:[a->b]>`.
fn descriptor(arguments: &str) -> &str {
    let Some(start) = arguments.find('<') else {
        return "";
    };
    let rest = &arguments[start + 1..];
    let end = rest.find([',', ')']).unwrap_or(rest.len());
    rest[..end].trim_end_matches('>')
}

/// The known client port at the other end of a socket.
fn peer_port(descriptor: &str, ports: &BTreeMap<u16, String>) -> Option<u16> {
    let (_, peer) = descriptor.strip_prefix("TCP:[")?.split_once("->")?;
    let port = peer
        .trim_end_matches(']')
        .rsplit(':')
        .next()?
        .parse()
        .ok()?;
    ports.contains_key(&port).then_some(port)
}

/// The markers in what was written: `marker-NAME-NUMBER.`
fn markers(arguments: &str) -> Vec<String> {
    let found = arguments.match_indices("marker-").filter_map(|(at, _)| {
        let end = arguments[at..].find('.')?;
        Some(arguments[at..=at + end].to_string())
    });
    found.collect()
}

#[test]
fn interrupted_calls_are_put_together() {
    let trace = "\
7 write(3</a/journal/x.open>, \"marker-a-1.\", 11 <unfinished ...>
8 epoll_wait(4, [], 1, 0)               = 0
7 <... write resumed>)                  = 11
7 fdatasync(3</a/journal/x.open>)       = 0
8 sendto(9<TCP:[127.0.0.1:1->127.0.0.1:2]>, \"OK 1\\n\", 5, 0, NULL, 0) = 5
";
    let calls = parse(trace);
    assert_eq!(calls.len(), 4);
    let ports = BTreeMap::from([(2, "a".to_string())]);
    let write = calls.iter().find(|c| c.name == "write").unwrap();
    assert_eq!(
        (write.started, write.ended, write.result.as_str()),
        (0, 2, "11")
    );
    assert_eq!(markers(&write.arguments), ["marker-a-1."]);
    assert_eq!(descriptor(&write.arguments), "/a/journal/x.open");
    assert_eq!(peer_port(descriptor(&calls[3].arguments), &ports), Some(2));
}
