//! Files that vanish from a data directory are missing and named, and those that go in order are not.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::pond::{ALL_TIME, Scratch, TestServer, files_below, wait_until};
use crate::surroundings::program;

fn push(server: &TestServer, from: usize, to: usize) {
    let body: String = (from..to)
        .map(|n| format!("record {n} of many\n"))
        .collect();
    let pushed = server.push("text/plain", body.as_bytes()).unwrap();
    assert_eq!(pushed.accepted(), (to - from) as u64);
}

/// How many records there are, and what the answer lacks.
fn count(server: &TestServer) -> (u64, Vec<String>) {
    let answer = server.get(&format!("/api/v1/query?{ALL_TIME}&count=true"));
    let answer = answer.unwrap();
    let trailer: serde_json::Value = serde_json::from_str(answer.lines().last().unwrap()).unwrap();
    let trailer = &trailer["_trailer"];
    let missing = trailer["missing"].as_array().into_iter().flatten();
    let missing: Vec<String> = missing.map(|what| what.as_str().unwrap().into()).collect();
    assert_eq!(trailer["complete"], missing.is_empty(), "{trailer}");
    (trailer["rows"].as_u64().unwrap(), missing)
}

fn verify(data: &Path) -> (Option<i32>, String) {
    let mut command = Command::new(program());
    let output = command.arg("verify").arg("--data").arg(data).output();
    let output = output.unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.code(), said)
}

fn forget(server: &TestServer, arguments: &[&str]) -> Output {
    let mut command = Command::new(program());
    command.arg("forget").args(arguments);
    command.env("LOGPOND_ADDR", server.url()).output().unwrap()
}

fn only(data: &Path, suffix: &str) -> std::path::PathBuf {
    let files = files_below(data, suffix);
    assert_eq!(files.len(), 1, "{files:?}");
    files[0].clone()
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

#[test]
fn what_vanished_is_missing_until_somebody_accepts_it() {
    let scratch = Scratch::new("vanished").unwrap();
    let data = scratch.path().join("data");
    let server = TestServer::start(program(), &data, &[]).unwrap();
    push(&server, 0, 1000);
    server.compact().unwrap();
    push(&server, 1000, 1200);
    server.terminate().unwrap();
    let (segment, journal) = (only(&data, ".parquet"), only(&data, ".journal"));
    assert_eq!(verify(&data).0, Some(0));
    let kept = fs::read(&journal).unwrap();
    fs::remove_file(&segment).unwrap();
    fs::remove_file(&journal).unwrap();
    let (status, said) = verify(&data);
    assert_eq!(status, Some(1), "{said}");
    for (file, records) in [(&segment, "1000 records"), (&journal, "200 records")] {
        let line = said.lines().find(|line| line.contains(&name(file)));
        assert!(line.unwrap().contains(records), "{said}");
    }
    // So are links to what is not mounted.
    for file in [&segment, &journal] {
        std::os::unix::fs::symlink("/nonexistent/x", file).unwrap();
    }
    let (status, said) = verify(&data);
    assert_eq!(status, Some(1), "{said}");
    for file in [&segment, &journal] {
        let line = said.lines().find(|line| line.contains(&name(file)));
        assert!(line.unwrap().contains("leads nowhere"), "{said}");
        fs::remove_file(file).unwrap();
    }
    for _ in 0..2 {
        let server = TestServer::start(program(), &data, &[]).unwrap();
        let (rows, missing) = count(&server);
        assert_eq!((rows, missing.len()), (0, 2), "{missing:?}");
        assert_eq!(server.metric("logpond_files_absent").unwrap(), 2.0);
        server.terminate().unwrap();
        assert_eq!(verify(&data).0, Some(1));
    }
    // One of them is put back.
    fs::write(&journal, kept).unwrap();
    let server = TestServer::start(program(), &data, &[]).unwrap();
    push(&server, 1200, 1210);
    let (rows, missing) = count(&server);
    assert_eq!((rows, missing.len()), (210, 1), "{missing:?}");
    let stem = name(&segment).replace(".parquet", "");
    assert!(missing[0].contains("1000 records") && missing[0].contains(&stem));
    // Another range has nothing of it.
    let answer = server.get("/api/v1/query?from=@0&to=@1").unwrap();
    assert!(answer.contains("\"complete\":true"), "{answer}");
    let refused = forget(&server, &["01ARZ3NDEKTSV4RRFFQ69G5FAV"]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    let done = forget(&server, &[&stem]);
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    assert!(String::from_utf8_lossy(&done.stderr).contains("1,000 records"));
    assert_eq!(count(&server), (210, vec![]));
    assert_eq!(forget(&server, &["--all"]).status.code(), Some(1));
    server.kill();
    assert_eq!(verify(&data).0, Some(0));
    let server = TestServer::start(program(), &data, &[]).unwrap();
    assert_eq!(count(&server), (210, vec![]));
}

/// A bucket that is emptied, is another one or is not set is missed at the next start, until it is back or
/// somebody accepts the loss.
#[test]
fn what_a_bucket_has_lost_is_missing() {
    let scratch = Scratch::new("bucket-vanished").unwrap();
    let data = scratch.path().join("data");
    let bucket = |name: &str| {
        let directory = scratch.path().join(name);
        fs::create_dir_all(&directory).unwrap();
        format!("file:{}", directory.display())
    };
    let begin = |name: Option<&str>| {
        let url = name.map(bucket);
        let flags = url
            .iter()
            .flat_map(|url| ["--bucket", url, "--local-age", "1ms"]);
        let flags: Vec<&str> = flags.collect();
        TestServer::start(program(), &data, &flags).unwrap()
    };
    let server = begin(Some("first"));
    push(&server, 0, 1000);
    server.compact().unwrap();
    let is_left = || files_below(&data.join("segments"), ".parquet").is_empty();
    wait_until("the bucket has it alone", is_left).unwrap();
    // A list of another time would hide what is missing.
    server.kill();
    let day = {
        let segments = scratch.path().join("first/segments");
        let days = fs::read_dir(segments).unwrap();
        let days = days.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        days.max().unwrap()
    };
    let expect = |server: &TestServer, rows: u64, said: Option<&str>| {
        let (found, missing) = count(server);
        assert_eq!(found, rows, "{missing:?}");
        let Some(said) = said else {
            assert_eq!(missing, [""; 0]);
            return;
        };
        assert_eq!(missing.len(), 1, "{missing:?}");
        let names = [
            said,
            &format!("bucket/{day}"),
            "up to 1000 records",
            &format!("logpond forget {day}"),
        ];
        for part in names {
            assert!(missing[0].contains(part), "{part}: {missing:?}");
        }
    };
    for _ in 0..2 {
        let server = begin(Some("second"));
        expect(&server, 0, Some("set the right bucket"));
        server.said("does not list these segments any more");
        server.terminate().unwrap();
    }
    let server = begin(None);
    expect(&server, 0, Some("no bucket is set"));
    push(&server, 0, 50);
    server.compact().unwrap();
    server.terminate().unwrap();
    let server = begin(Some("first"));
    expect(&server, 1050, None);
    server.terminate().unwrap();
    fs::remove_dir_all(scratch.path().join("first")).unwrap();
    let server = begin(Some("first"));
    let (_, missing) = count(&server);
    assert_eq!(missing.len(), 1, "{missing:?}");
    let done = forget(&server, &[&day]);
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    assert_eq!(count(&server).1, [""; 0]);
    server.kill();
    let server = begin(Some("first"));
    assert_eq!(count(&server).1, [""; 0]);
}

/// Retention takes segments out of a bucket in order, by whatever server.
#[test]
fn what_expires_in_a_bucket_is_not_missed() {
    let scratch = Scratch::new("bucket-expired").unwrap();
    let data = scratch.path().join("data");
    let bucket = scratch.path().join("bucket");
    let url = format!("file:{}", bucket.display());
    let flags = ["--bucket", &url, "--local-age", "1ms"];
    let server = TestServer::start(program(), &data, &flags).unwrap();
    push(&server, 0, 100);
    server.compact().unwrap();
    let is_left = || files_below(&data.join("segments"), ".parquet").is_empty();
    wait_until("the bucket has it alone", is_left).unwrap();
    server.kill();
    let other = scratch.path().join("other");
    let expire = [&flags[..2], &["--retain-age", "1ms", "--confirm-retention"]].concat();
    let expiring = TestServer::start(program(), &other, &expire).unwrap();
    let is_expired = || {
        let mut links = files_below(&bucket.join("m"), ".json");
        links.sort();
        let head = fs::read_to_string(links.last().unwrap()).unwrap();
        head.contains("\"segments\":[]")
    };
    wait_until("it has expired", is_expired).unwrap();
    expiring.terminate().unwrap();
    let server = TestServer::start(program(), &data, &flags).unwrap();
    assert_eq!(count(&server), (0, vec![]));
}

/// Rows of the journal file that was being written are missed, too, once they are on the list.
#[test]
fn what_an_open_file_has_lost_is_missing() {
    let scratch = Scratch::new("open-cut").unwrap();
    let data = scratch.path().join("data");
    let server = TestServer::start(program(), &data, &[]).unwrap();
    for batch in 0..10 {
        push(&server, 20 * batch, 20 * (batch + 1));
    }
    let is_listed = || {
        let list = fs::read_to_string(data.join("inventory")).unwrap_or_default();
        list.contains("\"open\":true,") && list.contains("\"rows\":200,")
    };
    wait_until("it is on the list", is_listed).unwrap();
    server.kill();
    let file = only(&data, ".open");
    let bytes = fs::metadata(&file).unwrap().len();
    let opened = fs::OpenOptions::new().write(true).open(&file).unwrap();
    opened.set_len(bytes / 2).unwrap();
    for is_compacted in [false, true] {
        let server = TestServer::start(program(), &data, &[]).unwrap();
        if is_compacted {
            server.compact().unwrap();
        }
        let (rows, missing) = count(&server);
        assert!((1..200).contains(&rows), "{rows}");
        assert_eq!(missing.len(), 1, "{missing:?}");
        let lost = format!("at least {} records", 200 - rows);
        for part in ["was cut", &lost, "logpond forget"] {
            assert!(missing[0].contains(part), "{part}: {missing:?}");
        }
        server.terminate().unwrap();
    }
    assert_eq!(verify(&data).0, Some(1));
    let server = TestServer::start(program(), &data, &[]).unwrap();
    assert_eq!(forget(&server, &["--all"]).status.code(), Some(0));
    assert_eq!(count(&server).1, [""; 0]);
}

#[test]
fn what_goes_in_order_is_not_missed() {
    let scratch = Scratch::new("not-vanished").unwrap();
    let data = scratch.path().join("data");
    let mut rows = 0;
    for life in 0..4 {
        let server = TestServer::start(program(), &data, &[]).unwrap();
        assert_eq!(count(&server), (rows, vec![]), "life {life}");
        push(&server, 0, 100);
        server.compact().unwrap();
        push(&server, 100, 150);
        rows += 150;
        if life == 2 {
            let mut client = server.client().unwrap();
            let target = "/api/v1/vacuum?age=1us&rotate=true";
            let answer = client.send("POST", target, &[], b"").unwrap();
            assert_eq!(answer.status, 200);
            rows = 0;
        }
        assert_eq!(count(&server), (rows, vec![]), "life {life}");
        match life % 2 {
            0 => server.kill(),
            _ => drop(server.terminate().unwrap()),
        }
        let (status, said) = verify(&data);
        assert_eq!(status, Some(0), "life {life}: {said}");
    }
    // A list that is lost or damaged is made anew, and misses nothing.
    for damage in [true, false] {
        let list = data.join("inventory");
        if damage {
            let mut bytes = fs::read(&list).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            fs::write(&list, bytes).unwrap();
        } else {
            fs::remove_file(&list).unwrap()
        }
        assert_eq!(verify(&data).0, Some(0));
        let server = TestServer::start(program(), &data, &[]).unwrap();
        assert_eq!(count(&server), (rows, vec![]));
        server.terminate().unwrap();
        assert!(list.exists());
    }
}

/// Deleted under the server that writes to it: it goes on from what it has open.
#[test]
fn a_journal_file_that_is_deleted_while_it_is_written_loses_nothing() {
    let scratch = Scratch::new("deleted-open").unwrap();
    let data = scratch.path().join("data");
    let server = TestServer::start(program(), &data, &[]).unwrap();
    push(&server, 0, 100);
    fs::remove_file(only(&data, ".open")).unwrap();
    push(&server, 100, 200);
    assert_eq!(count(&server), (200, vec![]));
    server.compact().unwrap();
    push(&server, 200, 210);
    assert_eq!(count(&server), (210, vec![]));
    server.terminate().unwrap();
    let server = TestServer::start(program(), &data, &[]).unwrap();
    assert_eq!(count(&server), (210, vec![]));
    server.terminate().unwrap();
    assert_eq!(verify(&data).0, Some(0));
}

/// The list knows more rows than the file has: a copy that is made now would lack them.
#[test]
fn a_journal_file_that_was_cut_is_damage_before_a_start_too() {
    let scratch = Scratch::new("cut-open").unwrap();
    let data = scratch.path().join("data");
    let server = TestServer::start(program(), &data, &[]).unwrap();
    push(&server, 0, 100);
    server.terminate().unwrap();
    assert_eq!(verify(&data).0, Some(0));
    let file = files_below(&data.join("journal"), "").remove(0);
    let whole = fs::read(&file).unwrap();
    for length in [0, 48, whole.len() / 2] {
        fs::write(&file, &whole[..length]).unwrap();
        let (status, said) = verify(&data);
        assert_eq!(status, Some(1), "{length} bytes: {said}");
    }
    fs::write(&file, &whole).unwrap();
    assert_eq!(verify(&data).0, Some(0));
}

#[test]
fn a_segment_with_bytes_behind_it_is_read_and_written_anew() {
    let scratch = Scratch::new("trailing").unwrap();
    let data = scratch.path().join("data");
    let server = TestServer::start(program(), &data, &[]).unwrap();
    push(&server, 0, 500);
    server.compact().unwrap();
    server.terminate().unwrap();
    // A byte too many, and without the last one.
    for what in ["longer", "shorter"] {
        let segment = only(&data, ".parquet");
        let mut bytes = fs::read(&segment).unwrap();
        match what {
            "longer" => bytes.push(b'\n'),
            _ => bytes.truncate(bytes.len() - 1),
        }
        fs::write(&segment, &bytes).unwrap();
        assert_eq!(verify(&data).0, Some(1), "{what}");
        let server = TestServer::start(program(), &data, &[]).unwrap();
        assert_eq!(count(&server), (500, vec![]), "{what}");
        wait_until("it is written anew", || {
            let files = files_below(&data, ".parquet");
            files.len() == 1 && files[0] != segment
        })
        .unwrap();
        assert_eq!(count(&server), (500, vec![]), "{what}");
        server.said("its rows are proven");
        server.terminate().unwrap();
        assert_eq!(verify(&data).0, Some(0), "{what}");
    }
}

/// Deleted under a server that has it open: it is written again.
#[test]
fn a_segment_that_is_deleted_while_it_is_open_is_written_again() {
    let scratch = Scratch::new("deleted-segment").unwrap();
    let data = scratch.path().join("data");
    let server = TestServer::start(program(), &data, &[]).unwrap();
    push(&server, 0, 300);
    server.compact().unwrap();
    let segment = only(&data, ".parquet");
    let whole = fs::read(&segment).unwrap();
    fs::remove_file(&segment).unwrap();
    assert_eq!(count(&server), (300, vec![]));
    server.terminate().unwrap();
    assert_eq!(fs::read(&segment).unwrap(), whole);
    assert_eq!(verify(&data).0, Some(0));
    let server = TestServer::start(program(), &data, &[]).unwrap();
    assert_eq!(count(&server), (300, vec![]));
}

/// The damaged one of two files with the same rows is not what answers are made of.
#[test]
fn a_sound_copy_is_used_and_nothing_is_missing() {
    let scratch = Scratch::new("copies").unwrap();
    let data = scratch.path().join("data");
    let server = TestServer::start(program(), &data, &[]).unwrap();
    push(&server, 0, 500);
    server.compact().unwrap();
    server.terminate().unwrap();
    let segment = only(&data, ".parquet");
    let whole = fs::read(&segment).unwrap();
    fs::write(data.join("segments/copy.parquet"), &whole).unwrap();
    let mut damaged = whole.clone();
    damaged[60] ^= 1;
    fs::write(&segment, damaged).unwrap();
    let server = TestServer::start(program(), &data, &[]).unwrap();
    assert_eq!(count(&server), (500, vec![]));
    server.terminate().unwrap();
    assert_eq!(fs::read(&segment).unwrap(), whole);
    assert_eq!(verify(&data).0, Some(0));
}
