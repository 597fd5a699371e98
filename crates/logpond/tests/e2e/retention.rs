//! A wrong setting or a wrong clock at a start removes nothing, and the log says so.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::nodes::{RECORDS, push, records};
use crate::pond::{Scratch, TestServer, files_below, wait_until};
use crate::surroundings::{program, skip};

fn count(server: &TestServer) -> usize {
    let (rows, trailer) = server.query("").unwrap();
    assert_eq!(trailer["complete"], true, "{trailer}");
    rows.len()
}

/// Has a pond with records in one segment, and stops it.
fn fill(data: &Path) {
    let server = TestServer::start(program(), data, &[]).unwrap();
    push(&server, &records(0..RECORDS));
    server.compact().unwrap();
    assert_eq!(server.terminate().unwrap().code(), Some(0));
}

#[test]
fn a_size_without_a_unit_is_refused() {
    let scratch = Scratch::new("retain-unit").unwrap();
    let data = scratch.path().join("data");
    let config = scratch.path().join("logpond.toml");
    let what = "the unit is missing; write `10GiB`, `10MiB` or `10B`";
    for flag in ["--retain-size", "--line-bytes-max", "--bucket-cache"] {
        let error = TestServer::start(program(), &data, &[flag, "10"])
            .err()
            .unwrap();
        assert!(error.contains(what) && error.contains(flag), "{error}");
    }
    std::fs::write(&config, "retain-size = 10\n").unwrap();
    let config = config.to_str().unwrap();
    let error = TestServer::start(program(), &data, &["--config", config]).err();
    let error = error.unwrap();
    assert!(
        error.contains(what) && error.contains("logpond.toml:1:15"),
        "{error}"
    );
    let mut command = Command::new(program());
    command.env("LOGPOND_LOCAL_SIZE", "10");
    let error = TestServer::start_under(command, &data, &[]).err().unwrap();
    assert!(
        error.contains(what) && error.contains("LOGPOND_LOCAL_SIZE"),
        "{error}"
    );
}

#[test]
fn a_limit_that_would_remove_most_waits_over_restarts_or_is_confirmed() {
    let scratch = Scratch::new("retain-hold").unwrap();
    let data = scratch.path().join("data");
    fill(&data);
    let flags = ["--retain-age", "1ms"];
    let waits = "more than half of the";
    let kept = || std::fs::read_to_string(data.join("retention/state")).unwrap_or_default();
    for _ in 0..2 {
        let server = TestServer::start(program(), &data, &flags).unwrap();
        let text = server.said(waits);
        assert!(text.contains(&format!("{RECORDS} records")), "{text}");
        assert!(
            text.contains("Z warning: retention: --retain-age 1 ms would"),
            "{text}"
        );
        assert!(text.contains("--confirm-retention"), "{text}");
        wait_until("it is kept", || kept().contains("\nhold 1000000 off ")).unwrap();
        assert_eq!(count(&server), RECORDS);
        let held = server.metric("logpond_retention_held_records").unwrap();
        assert_eq!(held as usize, RECORDS);
        assert!(server.metric("logpond_retention_waits_ms").unwrap() > 86_000_000.0);
        assert_eq!(server.terminate().unwrap().code(), Some(0));
    }
    // Nothing to wait for is no reason to say anything.
    let server = TestServer::start(program(), &data, &["--retain-age", "1d"]).unwrap();
    assert_eq!(count(&server), RECORDS);
    assert!(!server.stderr().contains(waits), "{}", server.stderr());
    assert_eq!(server.terminate().unwrap().code(), Some(0));
    let confirmed = [&flags[..], &["--confirm-retention"]].concat();
    let server = TestServer::start(program(), &data, &confirmed).unwrap();
    let text = server.said("older than --retain-age 1 ms");
    let line = text.lines().find(|line| line.contains("retention removes"));
    let line = line.unwrap();
    assert!(
        line.contains("Z info: ") && line.contains(" received from "),
        "{line}"
    );
    assert!(
        line.contains(&format!("{RECORDS} records in 1 file")),
        "{line}"
    );
    wait_until("it is removed", || count(&server) == 0).unwrap();
    // It can still be taken back.
    assert_eq!(files_below(&data, ".trash").len(), 1);
    assert!(server.metric("logpond_trash_bytes").unwrap() > 0.0);
}

/// A library that sets the clock of a process, if it is here.
fn faketime() -> Option<PathBuf> {
    let libraries = std::fs::read_dir("/usr/lib").ok()?;
    let mut paths = libraries
        .flatten()
        .map(|entry| entry.path().join("faketime/libfaketime.so.1"));
    let found = paths.find(|path| path.exists());
    if found.is_none() {
        skip("a wrong clock at the start", "there is no libfaketime");
    }
    found
}

fn start_with_clock(library: &Path, offset: &str, data: &Path, flags: &[&str]) -> TestServer {
    let mut command = Command::new(program());
    command
        .env("LD_PRELOAD", library)
        .env("FAKETIME", offset)
        .env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    TestServer::start_under(command, data, flags).unwrap()
}

#[test]
fn a_wrong_clock_at_the_start_removes_nothing() {
    let Some(library) = faketime() else { return };
    let scratch = Scratch::new("retain-clock").unwrap();
    let data = scratch.path().join("data");
    fill(&data);
    let start = |flags: &[&str]| start_with_clock(&library, "+40d", &data, flags);
    let doubted = "no time server, other node or bucket agrees with it";
    for is_known in [true, false] {
        if !is_known {
            // Without it the newest record says what time it was, unless it came by the wrong clock.
            std::fs::remove_file(data.join("retention/state")).unwrap();
        }
        let server = start(&[]);
        let text = server.said(doubted);
        assert!(text.contains("--trust-clock"), "{text}");
        assert!(
            text.contains(&format!("{RECORDS} records in 1 file")),
            "{text}"
        );
        let lag_ms = server.metric("logpond_expiry_lag_ms").unwrap();
        assert!(lag_ms > 39.0 * 86_400_000.0, "{lag_ms}");
        let mut client = server.client().unwrap();
        let target = "/api/v1/vacuum?age=20d";
        let vacuumed = client.send("POST", target, &[], b"").unwrap();
        assert_eq!(vacuumed.status, 409);
        assert!(vacuumed.text().unwrap().contains("--trust-clock"));
        assert_eq!(count(&server), RECORDS);
        assert_eq!(server.terminate().unwrap().code(), Some(0));
    }
    // Records of the wrong clock prove nothing, and another start neither.
    let server = start(&[]);
    server.said(doubted);
    push(&server, &records(RECORDS..RECORDS + 5));
    assert_eq!(server.terminate().unwrap().code(), Some(0));
    let server = start(&[]);
    wait_until("the clock is doubted", || {
        server.metric("logpond_expiry_lag_ms").unwrap() > 39.0 * 86_400_000.0
    })
    .unwrap();
    assert_eq!(count(&server), RECORDS + 5);
    assert_eq!(server.terminate().unwrap().code(), Some(0));
    // The right clock is believed at once: it says nothing new.
    let server = TestServer::start(program(), &data, &[]).unwrap();
    assert_eq!(count(&server), RECORDS + 5);
    assert!(!server.stderr().contains(doubted), "{}", server.stderr());
    assert_eq!(server.terminate().unwrap().code(), Some(0));
    let server = start(&["--trust-clock", "--retain-age", "30d"]);
    wait_until("the operator is believed", || {
        server.metric("logpond_expiry_lag_ms").unwrap() == 0.0
    })
    .unwrap();
}
