//! `serve --bucket`: servers that are killed while they upload, several beside each other, and stores
//! that are away or refuse.

use std::collections::BTreeSet;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::http::Client;
use crate::pond::{self, Scratch, TestServer, wait_until};
use crate::s3::{Gate, Moment, S3Server, Trap};
use crate::surroundings::{program, python, say};

/// Records in a batch.
const BATCH: u64 = 40;

/// The prefix of all names in the bucket.
const PREFIX: &str = "pond";

/// Starts a server whose store is at this endpoint.
fn try_start(endpoint: &str, data: &Path, bucket: &str) -> Result<TestServer, String> {
    let mut command = Command::new(program());
    for (name, value) in [
        ("AWS_ENDPOINT_URL", endpoint.to_string()),
        ("AWS_REGION", "us-east-1".to_string()),
        ("AWS_ACCESS_KEY_ID", "test".to_string()),
        ("AWS_SECRET_ACCESS_KEY", "test".to_string()),
    ] {
        command.env(name, value);
    }
    TestServer::start_under(command, data, &["--bucket", bucket])
}

fn start(store: SocketAddr, data: &Path) -> TestServer {
    let bucket = format!("s3://logs/{PREFIX}");
    try_start(&format!("http://{store}"), data, &bucket).unwrap()
}

/// Numbered records.
fn body(numbers: std::ops::Range<u64>) -> String {
    numbers
        .map(|n| format!("{{\"_msg\":\"ledger\",\"n\":{n}}}\n"))
        .collect()
}

fn push(server: &TestServer, numbers: std::ops::Range<u64>) {
    let pushed = server
        .push("application/x-ndjson", body(numbers).as_bytes())
        .unwrap();
    assert_eq!(pushed.status, 200, "{}", pushed.body);
}

/// The numbers of all records, each of which must be there once, and whether these are all.
fn numbers(server: &TestServer) -> (BTreeSet<u64>, bool) {
    let (rows, trailer) = server.query("ledger").unwrap();
    let numbers: BTreeSet<u64> = rows.iter().map(|row| row["n"].as_u64().unwrap()).collect();
    assert_eq!(numbers.len(), rows.len(), "records are there twice");
    (numbers, trailer["complete"] == true)
}

/// Waits until the bucket lists so many records.
fn until_listed(s3: &S3Server, rows: u64) {
    let what = format!("{rows} records are in the bucket");
    wait_until(&what, || s3.listed_rows(PREFIX) == rows).unwrap();
}

/// What clients know of their records.
#[derive(Default)]
struct Ledger {
    sent: AtomicU64,
    acknowledged: Vec<u64>,
}

impl Ledger {
    /// Pushes until the server is gone. Nothing is sent again: a batch without an answer may be there
    /// or not.
    fn push_until_gone(&self, address: &str) -> Vec<u64> {
        let mut acknowledged = Vec::new();
        let Ok(mut client) = Client::connect(address) else {
            return acknowledged;
        };
        loop {
            let first = self.sent.fetch_add(BATCH, Ordering::SeqCst);
            let body = body(first..first + BATCH);
            let pushed = pond::push(&mut client, "application/x-ndjson", "", body.as_bytes());
            match pushed {
                Ok(pushed) if pushed.accepted() == BATCH => {
                    acknowledged.extend(first..first + BATCH);
                }
                Ok(pushed) => panic!("push answered {} {}", pushed.status, pushed.body),
                Err(_) => return acknowledged,
            }
        }
    }

    /// Nothing acknowledged is missing, and nothing was never sent.
    fn check(&self, found: &BTreeSet<u64>) {
        let missing = self.acknowledged.iter().filter(|n| !found.contains(n));
        assert_eq!(missing.count(), 0, "acknowledged records are lost");
        let sent = self.sent.load(Ordering::SeqCst);
        assert!(found.iter().all(|n| *n < sent), "invented records");
    }
}

/// Makes segments again and again until the server is gone.
fn compact_until_gone(address: &str) {
    let compact = || -> std::io::Result<()> {
        let mut client = Client::connect(address)?;
        let response = client.send("POST", "/api/v1/compact?wait", &[], b"")?;
        response.text().map(drop)
    };
    while compact().is_ok() {}
}

/// Loads a server until a write of its to the store is stuck, and kills it.
fn kill_at(trap: Trap, gate: &Gate, server: TestServer, ledger: &mut Ledger) {
    let address = server.address("http");
    let acknowledged = thread::scope(|scope| {
        let pushing = scope.spawn(|| ledger.push_until_gone(&address));
        scope.spawn(|| compact_until_gone(&address));
        // In the middle of work: something has been uploaded before.
        let writes = || server.metric("logpond_bucket_commits_total").unwrap();
        wait_until("something is uploaded", || writes() >= 1.0).unwrap();
        gate.set(trap);
        wait_until("a write is stuck", || gate.has_caught()).unwrap();
        server.kill();
        pushing.join().unwrap()
    });
    ledger.acknowledged.extend(acknowledged);
}

/// An empty directory has with the bucket what the bucket lists, each record once.
fn check_with_empty_disk(s3: &S3Server, ledger: &Ledger, data: &Path) -> BTreeSet<u64> {
    let server = start(s3.address(), data);
    let (found, is_complete) = numbers(&server);
    assert!(is_complete);
    assert_eq!(found.len() as u64, s3.listed_rows(PREFIX));
    let sent = ledger.sent.load(Ordering::SeqCst);
    assert!(found.iter().all(|n| *n < sent), "invented records");
    found
}

#[test]
fn kills_while_uploading_neither_lose_nor_repeat() {
    let Some(python) = python("killing a server that uploads") else {
        return;
    };
    let s3 = S3Server::start(&python);
    let gate = Gate::before(s3.address());
    let scratch = Scratch::new("bucket-kill").unwrap();
    let data = scratch.path().join("data");
    let mut ledger = Ledger::default();
    let traps = ["/segments/", "/m/"]
        .map(|part| [Moment::Before, Moment::After].map(|moment| Trap { part, moment }));
    let traps = traps.concat();
    let mut listed = 0;
    for (round, trap) in traps.iter().chain(&traps).enumerate() {
        let server = start(gate.address(), &data);
        let (found, is_complete) = numbers(&server);
        assert!(is_complete, "{trap:?}");
        ledger.check(&found);
        kill_at(*trap, &gate, server, &mut ledger);
        let empty = scratch.path().join(format!("empty-{round}"));
        let found = check_with_empty_disk(&s3, &ledger, &empty);
        assert!(
            found.len() >= listed,
            "{trap:?}: the bucket has lost records"
        );
        listed = found.len();
    }
    let server = start(gate.address(), &data);
    let (found, is_complete) = numbers(&server);
    assert!(is_complete);
    ledger.check(&found);
    server.compact().unwrap();
    until_listed(&s3, found.len() as u64);
    let elsewhere = check_with_empty_disk(&s3, &ledger, &scratch.path().join("last"));
    assert_eq!(elsewhere, found);
    say(&format!(
        "bucket: {} records acknowledged, {} kills while uploading, {} records there",
        ledger.acknowledged.len(),
        traps.len() * 2,
        found.len()
    ));
}

#[test]
fn servers_beside_each_other_have_all_of_it() {
    let Some(python) = python("two servers with one bucket") else {
        return;
    };
    let s3 = S3Server::start(&python);
    let scratch = Scratch::new("bucket-two").unwrap();
    let ponds = ["one", "two"].map(|name| start(s3.address(), &scratch.path().join(name)));
    let (rounds, records) = (4, 150);
    thread::scope(|scope| {
        for (number, server) in (0_u64..).zip(&ponds) {
            scope.spawn(move || {
                for round in 0..rounds {
                    let first = (round * 2 + number) * records;
                    push(server, first..first + records);
                    server.compact().unwrap();
                    numbers(server);
                }
            });
        }
    });
    let all = rounds * 2 * records;
    until_listed(&s3, all);
    let since = Instant::now();
    for server in &ponds {
        wait_until("it has the other's records", || {
            let (found, is_complete) = numbers(server);
            is_complete && found == (0..all).collect()
        })
        .unwrap();
    }
    say(&format!(
        "bucket: two servers agree {:.1} s after all is listed",
        since.elapsed().as_secs_f64()
    ));
}

/// How long anything may take that does not wait for the store; the store's limits are far above.
const PROMPT: Duration = Duration::from_secs(5);

/// How long a start may take while the store is away: it waits for five seconds.
const START_MAX: Duration = Duration::from_secs(15);

/// Two servers while the store is away: one that had been there before, and one that starts.
fn live_without_a_store(s3: &S3Server, store: SocketAddr, leave: impl Fn(), come_back: impl Fn()) {
    let scratch = Scratch::new("bucket-away").unwrap();
    let old = start(store, &scratch.path().join("old"));
    push(&old, 0..100);
    old.compact().unwrap();
    until_listed(s3, 100);
    leave();
    let since = Instant::now();
    push(&old, 100..200);
    assert!(since.elapsed() < PROMPT, "{:?}", since.elapsed());
    assert_eq!(numbers(&old), ((0..200).collect(), true));
    old.compact().unwrap();
    assert_eq!(numbers(&old), ((0..200).collect(), true));
    assert!(since.elapsed() < 3 * PROMPT, "{:?}", since.elapsed());
    let new = start(store, &scratch.path().join("new"));
    assert!(new.start_time < START_MAX, "{:?}", new.start_time);
    push(&new, 200..250);
    assert_eq!(numbers(&new), ((200..250).collect(), false));
    new.compact().unwrap();
    assert_eq!(numbers(&new), ((200..250).collect(), false));
    come_back();
    until_listed(s3, 250);
    for server in [&old, &new] {
        wait_until("it has everything", || {
            numbers(server) == ((0..250).collect(), true)
        })
        .unwrap();
    }
}

#[test]
fn a_store_that_hangs_stops_nothing() {
    let Some(python) = python("a store that hangs") else {
        return;
    };
    let s3 = S3Server::start(&python);
    live_without_a_store(
        &s3,
        s3.address(),
        || s3.signal("STOP"),
        || s3.signal("CONT"),
    );
}

#[test]
fn a_store_that_is_gone_stops_nothing() {
    let Some(python) = python("a store that is gone") else {
        return;
    };
    let s3 = S3Server::start(&python);
    let gate = Gate::before(s3.address());
    live_without_a_store(&s3, gate.address(), || gate.close(), || gate.open());
}

/// What a server says that does not start with this bucket.
fn refusal(endpoint: &str, bucket: &str) -> String {
    let scratch = Scratch::new("bucket-refused").unwrap();
    match try_start(endpoint, &scratch.path().join("data"), bucket) {
        Ok(server) => panic!("it started with {bucket}: {}", server.stderr()),
        Err(said) => said,
    }
}

#[test]
fn refusals_say_where_what_and_what_to_do() {
    let Some(python) = python("a store that refuses") else {
        return;
    };
    let s3 = S3Server::start_refusing(&python);
    let said = refusal(&format!("http://{}", s3.address()), "s3://logs/pond");
    for part in ["s3://logs/pond", "403", "InvalidAccessKeyId", "credentials"] {
        assert!(said.contains(part), "{part} in {said}");
    }
    let s3 = S3Server::start(&python);
    let said = refusal(&format!("http://{}", s3.address()), "s3://nowhere/pond");
    for part in ["s3://nowhere/pond", "no such bucket", "NoSuchBucket"] {
        assert!(said.contains(part), "{part} in {said}");
    }
    assert_eq!(said.matches("NoSuchBucket").count(), 1, "twice: {said}");
    let said = refusal(&s3.address().to_string(), "s3://logs/pond");
    for part in ["s3://logs/pond", "AWS_ENDPOINT_URL", "write https://"] {
        assert!(said.contains(part), "{part} in {said}");
    }
}

#[test]
fn a_store_that_does_not_answer_is_named_soon() {
    // Connections come about, and nobody reads from them.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", silent.local_addr().unwrap());
    let scratch = Scratch::new("bucket-silent").unwrap();
    let server = try_start(&endpoint, &scratch.path().join("data"), "s3://logs/pond").unwrap();
    let is_named = || {
        server
            .stderr()
            .contains("s3://logs/pond has not answered for 5s")
    };
    wait_until("the store is named", is_named).unwrap();
    push(&server, 0..BATCH);
    let (found, is_complete) = numbers(&server);
    assert_eq!((found.len() as u64, is_complete), (BATCH, false));
    // Nor is it a failure of the store that the server ends.
    pond::signal("TERM", server.pid()).unwrap();
    wait_until("the server has drained", || server.client().is_err()).unwrap();
    assert!(
        !server.stderr().contains("trying again"),
        "{}",
        server.stderr()
    );
}

/// Of a bucket in a directory: a damaged head and one that is gone cost nothing, and are made anew.
#[test]
fn a_lost_list_is_made_anew_of_what_lies_there() {
    let scratch = Scratch::new("bucket-head").unwrap();
    let there = scratch.path().join("bucket");
    std::fs::create_dir_all(&there).unwrap();
    let bucket = format!("file:{}", there.display());
    let begin = |name: &str| {
        let data = scratch.path().join(name);
        TestServer::start(program(), &data, &["--bucket", &bucket]).unwrap()
    };
    let server = begin("first");
    push(&server, 0..BATCH);
    server.compact().unwrap();
    let links = || pond::files_below(&there.join("m"), ".json");
    wait_until("it is listed", || !links().is_empty()).unwrap();
    assert_eq!(server.terminate().unwrap().code(), Some(0));
    for (life, damage) in ["damaged", "gone"].into_iter().enumerate() {
        let head = links().into_iter().max().unwrap();
        match damage {
            "damaged" => std::fs::write(&head, b"{").unwrap(),
            _ => links()
                .iter()
                .for_each(|link| std::fs::remove_file(link).unwrap()),
        }
        // A server with nothing of its own.
        let server = begin(&format!("empty-{life}"));
        let expected: BTreeSet<u64> = (0..BATCH).collect();
        wait_until("all of it is there", || {
            let (found, is_complete) = numbers(&server);
            assert!(!is_complete || found == expected, "{damage}");
            is_complete
        })
        .unwrap();
        server.said("was made anew");
        assert_eq!(server.terminate().unwrap().code(), Some(0));
        assert!(!links().is_empty());
    }
}

/// A command that has no mask of its own for the rights of what it makes.
fn unmasked() -> Command {
    let mut command = Command::new("sh");
    command
        .args(["-c", "umask 0; exec \"$@\"", "sh"])
        .arg(program());
    command
}

/// Copies of logs hold what the logs hold, wherever they are.
#[test]
fn other_users_read_no_copies() {
    let scratch = Scratch::new("withheld").unwrap();
    let [data, bucket, backup] = ["data", "bucket", "backup"].map(|name| scratch.path().join(name));
    let url = |directory: &Path| format!("file:{}", directory.display());
    let token = |arguments: &[&str]| {
        let data = ["--data", data.to_str().unwrap()];
        let made = Command::new(program())
            .args(["token", "create"])
            .args(arguments)
            .args(data)
            .output();
        assert!(made.unwrap().status.success());
    };
    token(&["--role", "admin"]);
    let place = url(&bucket);
    let server = TestServer::start_under(unmasked(), &data, &["--bucket", &place]).unwrap();
    push(&server, 0..100);
    server.compact().unwrap();
    let commits = || server.metric("logpond_bucket_commits_total").unwrap();
    wait_until("it is uploaded", || commits() >= 1.0).unwrap();
    let mut command = unmasked();
    let copied = command.args([
        "backup",
        "--to",
        &url(&backup),
        "--data",
        data.to_str().unwrap(),
    ]);
    let copied = copied.output().unwrap();
    assert!(
        copied.status.success(),
        "{}",
        String::from_utf8_lossy(&copied.stderr)
    );
    for directory in [&data, &bucket, &backup] {
        let files = pond::files_below(directory, "");
        assert!(!files.is_empty(), "{}", directory.display());
        for path in files.iter().chain([directory]) {
            let mode = path.metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o027, 0, "{}: {mode:o}", path.display());
        }
    }
}
