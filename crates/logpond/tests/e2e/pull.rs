//! `logpond import` from Loki and Elasticsearch, with a server of our own as the source: killed in the middle and started
//! again, it stores each record once.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::loki_api::{START, ship_all};
use crate::pond::{Scratch, TestServer, wait_until};
use crate::surroundings::program;

/// Records of the source.
const RECORDS: usize = 3_000;

fn start(scratch: &Scratch, name: &str) -> TestServer {
    TestServer::start(program(), &scratch.path().join(name), &[]).unwrap()
}

fn command(target: &str, state: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program());
    command
        .args(["import", "--addr", target, "--state"])
        .arg(state)
        .args(arguments)
        .env_remove("LOGPOND_ADDR")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    command
}

fn import(target: &TestServer, state: &Path, arguments: &[&str]) -> Output {
    command(&target.url(), state, arguments).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A way to the target that swallows its answers from some number on. The records of the first swallowed one are durable,
/// and the import cannot know it.
struct Gate {
    url: String,
    is_shut: Arc<AtomicBool>,
}

impl Gate {
    fn new(target: &TestServer, answers: usize) -> Gate {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (is_shut, address) = (Arc::new(AtomicBool::new(false)), target.address("http"));
        let shut = Arc::clone(&is_shut);
        std::thread::spawn(move || {
            let mut left = answers;
            for client in listener.incoming().map_while(Result::ok) {
                let server = TcpStream::connect(&address).unwrap();
                let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                std::thread::spawn(move || std::io::copy(&mut from, &mut to));
                pass(server, client, &mut left, &shut);
            }
        });
        Gate { url, is_shut }
    }
}

/// Passes answers on until none is left, and nothing from then on.
fn pass(mut server: TcpStream, mut client: TcpStream, left: &mut usize, is_shut: &AtomicBool) {
    let mut chunk = vec![0; 1 << 20];
    while let Ok(bytes) = server.read(&mut chunk) {
        if bytes == 0 {
            return;
        }
        if chunk[..bytes].starts_with(b"HTTP/1.1 ") {
            if *left == 0 {
                is_shut.store(true, Ordering::Relaxed);
            } else {
                *left -= 1;
            }
        }
        if !is_shut.load(Ordering::Relaxed) && client.write_all(&chunk[..bytes]).is_err() {
            return;
        }
    }
}

/// Kills imports that wait for an answer to records that are durable, and lets the last one end.
fn import_with_kills(target: &TestServer, state: &Path, arguments: &[&str]) -> Output {
    for answers in [2, 0, 5] {
        let gate = Gate::new(target, answers);
        let mut command = command(&gate.url, state, arguments);
        let mut child: Child = command.spawn().unwrap();
        let shut = || gate.is_shut.load(Ordering::Relaxed);
        wait_until("an answer is held back", shut).unwrap();
        child.kill().unwrap();
        assert_eq!(child.wait().unwrap().code(), None, "it was killed");
    }
    import(target, state, arguments)
}

/// All records without what each server adds itself, sorted.
fn records(server: &TestServer, own: &[&str]) -> Vec<String> {
    let (rows, _) = server.query("").unwrap();
    let mut texts: Vec<String> = rows
        .into_iter()
        .map(|mut row| {
            let members = row.as_object_mut().unwrap();
            members.retain(|name, _| !own.contains(&name.as_str()));
            row.to_string()
        })
        .collect();
    texts.sort_unstable();
    texts
}

/// Fields that each server gives a record itself.
const OWN: [&str; 3] = ["_id", "_received", "_source"];

/// Streams whose records have equal times now and then, within nanoseconds of each other.
fn fill(source: &TestServer) {
    for part in 0..3 {
        let values = |stream: usize| -> Vec<Value> {
            let numbers = (0..RECORDS / 6).map(|n| part * RECORDS / 6 + n);
            let entry = |n: usize| {
                let time = START as u64 * 1_000_000_000 + (n / 7) as u64 * 40_000_000_001;
                json!([time.to_string(), format!("level=info n={n} stream={stream}"), { "trace": format!("t{n}") }])
            };
            numbers.map(entry).collect()
        };
        let streams = json!({ "streams": [
            { "stream": { "app": "shop", "env": "prod" }, "values": values(1) },
            { "stream": { "job": "cron" }, "values": values(2) },
        ] });
        ship_all(source, &streams);
    }
}

const SINCE: &str = "@1699999999";
const UNTIL: &str = "@1700100000";

#[test]
fn records_of_loki_are_imported_once_whatever_is_killed() {
    let scratch = Scratch::new("pull-loki").unwrap();
    let (source, target) = (start(&scratch, "source"), start(&scratch, "target"));
    fill(&source);
    let wanted = records(&source, &OWN);
    assert_eq!(wanted.len(), RECORDS);
    let state = scratch.path().join("state.json");
    let (from, page) = (source.url(), ["--page-size", "100"]);
    let range = ["--since", SINCE, "--until", UNTIL, "--from-loki", &from];
    let arguments = [&range[..], &page].concat();
    let output = import_with_kills(&target, &state, &arguments);
    let text = said(&output);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("the source counts 3,000 too"), "{text}");
    assert_eq!(records(&target, &OWN), wanted);
    // Again: it is known to be complete.
    let output = import(&target, &state, &arguments);
    assert!(
        said(&output).contains("this import is complete"),
        "{}",
        said(&output)
    );
    // Anew: the target knows the bodies.
    let again = import(&target, &scratch.path().join("again.json"), &arguments);
    assert!(again.status.success(), "{}", said(&again));
    assert_eq!(records(&target, &OWN), wanted);
    // Another import with the same file is refused.
    let other = import(
        &target,
        &state,
        &[&arguments[..], &["--query", "{app=\"shop\"}"]].concat(),
    );
    assert_eq!(other.status.code(), Some(2));
    assert!(
        said(&other).contains("is of another import"),
        "{}",
        said(&other)
    );
}

#[test]
fn entries_of_one_nanosecond_are_read_stream_by_stream() {
    let scratch = Scratch::new("pull-loki-instant").unwrap();
    let (source, target) = (start(&scratch, "source"), start(&scratch, "target"));
    let time = format!("{START}000000007");
    let stream = |name: &str, count: usize| {
        let values: Vec<Value> = (0..count)
            .map(|n| json!([time, format!("{name} {n}")]))
            .collect();
        json!({ "stream": { "app": name }, "values": values })
    };
    ship_all(
        &source,
        &json!({ "streams": [stream("a", 12), stream("b", 12)] }),
    );
    let state = scratch.path().join("state.json");
    let from = source.url();
    let arguments = [
        "--since",
        SINCE,
        "--until",
        UNTIL,
        "--from-loki",
        &from,
        "--page-size",
        "16",
    ];
    let output = import(&target, &state, &arguments);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(records(&target, &OWN), records(&source, &OWN));
    // One stream that does not fit is named.
    ship_all(&source, &json!({ "streams": [stream("c", 20)] }));
    let output = import(&target, &scratch.path().join("other.json"), &arguments);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        said(&output).contains("of the stream {app=\"c\""),
        "{}",
        said(&output)
    );
}

#[test]
fn documents_of_elasticsearch_are_imported_once_whatever_is_killed() {
    let scratch = Scratch::new("pull-elastic").unwrap();
    let (source, target) = (start(&scratch, "source"), start(&scratch, "target"));
    let mut body = String::new();
    for n in 0..RECORDS {
        let index = if n % 3 == 0 { "other" } else { "logs-app" };
        body += &json!({ "create": { "_index": index, "_id": format!("id{n}") } }).to_string();
        let time = format!("2026-11-21T10:{:02}:00.123456789Z", n / 60);
        let document = json!({ "@timestamp": time, "message": format!("m{n}"), "n": n, "host": { "name": "web1" } });
        body += &format!("\n{document}\n");
    }
    let mut client = source.client().unwrap();
    let headers = [("content-type", "application/x-ndjson")];
    let response = client
        .send("POST", "/_bulk", &headers, body.as_bytes())
        .unwrap();
    assert_eq!(response.status, 200);
    let state = scratch.path().join("state.json");
    let from = source.url();
    let arguments = [
        "--from-elasticsearch",
        &from,
        "--index",
        "logs-*",
        "--page-size",
        "50",
    ];
    let output = import_with_kills(&target, &state, &arguments);
    let text = said(&output);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("the source counts 2,000 too"), "{text}");
    // The document of a hit of this server has its fields beside those that were sent.
    let texts = |server: &TestServer| {
        let (rows, _) = server.query("_index=logs-app").unwrap();
        let names = ["_time", "_index", "message", "n", "host.name", "hostname"];
        let of_row = |row: Value| names.map(|name| row[name].to_string()).join(" ");
        let mut texts: Vec<String> = rows.into_iter().map(of_row).collect();
        texts.sort_unstable();
        texts
    };
    let wanted = texts(&source);
    assert_eq!(wanted.len(), 2_000);
    assert!(wanted[0].contains(".123456789Z"), "{}", wanted[0]);
    assert_eq!(texts(&target), wanted);
    assert_eq!(target.query("").unwrap().0.len(), 2_000);
}

#[test]
fn what_is_wrong_with_a_source_is_said_with_a_remedy() {
    let scratch = Scratch::new("pull-errors").unwrap();
    let target = start(&scratch, "target");
    let state = scratch.path().join("state.json");
    let from = target.url();
    let table: [(&[&str], &str); 4] = [
        (&["--from-loki", &from], "--since"),
        (&["--from-elasticsearch", &from], "--index"),
        (
            &["--from-loki", &from, "--since", "1h", "x.journal"],
            "cannot be used with",
        ),
        (
            &["--from-loki", &from, "--since", "1h", "--query", "{a="],
            "see --query and --since",
        ),
    ];
    for (arguments, wanted) in table {
        let output = import(&target, &state, arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(
            said(&output).contains(wanted),
            "{arguments:?}: {}",
            said(&output)
        );
    }
    // Nobody answers at a port that was bound and left.
    let closed = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let url = format!("http://{closed}");
    let output = import(
        &target,
        &state,
        &[
            "--from-loki",
            &url,
            "--since",
            "1h",
            "--give-up-after",
            "0s",
        ],
    );
    assert_eq!(output.status.code(), Some(2));
    assert!(said(&output).contains("gave up after"), "{}", said(&output));
}
