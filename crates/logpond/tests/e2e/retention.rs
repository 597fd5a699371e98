//! A wrong setting or a wrong clock at a start removes nothing, and the log says so.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::nodes::{RECORDS, push, records};
use crate::pond::{Pond, Scratch, files_below, wait_until};
use crate::surroundings::{program, skip};

fn count(pond: &Pond) -> usize {
    let (rows, trailer) = pond.query("").unwrap();
    assert_eq!(trailer["complete"], true, "{trailer}");
    rows.len()
}

/// Has a pond with records in one segment, and stops it.
fn fill(data: &Path) {
    let pond = Pond::start(program(), data, &[]).unwrap();
    push(&pond, &records(0..RECORDS));
    pond.compact().unwrap();
    assert_eq!(pond.terminate().unwrap().code(), Some(0));
}

#[test]
fn a_size_without_a_unit_is_refused() {
    let scratch = Scratch::new("retain-unit").unwrap();
    let data = scratch.path().join("data");
    let config = scratch.path().join("logpond.toml");
    let what = "the unit is missing; write `10GiB`, `10MiB` or `10B`";
    for flag in ["--retain-size", "--line-bytes-max", "--bucket-cache"] {
        let error = Pond::start(program(), &data, &[flag, "10"]).err().unwrap();
        assert!(error.contains(what) && error.contains(flag), "{error}");
    }
    std::fs::write(&config, "retain-size = 10\n").unwrap();
    let config = config.to_str().unwrap();
    let error = Pond::start(program(), &data, &["--config", config]).err();
    let error = error.unwrap();
    assert!(
        error.contains(what) && error.contains("logpond.toml:1:15"),
        "{error}"
    );
    let mut command = Command::new(program());
    command.env("LOGPOND_LOCAL_SIZE", "10");
    let error = Pond::start_under(command, &data, &[]).err().unwrap();
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
        let pond = Pond::start(program(), &data, &flags).unwrap();
        let text = pond.said(waits);
        assert!(text.contains(&format!("{RECORDS} records")), "{text}");
        assert!(
            text.contains("Z warning: retention: --retain-age 1 ms would"),
            "{text}"
        );
        assert!(text.contains("--confirm-retention"), "{text}");
        wait_until("it is kept", || kept().contains("\nhold 1000000 off ")).unwrap();
        assert_eq!(count(&pond), RECORDS);
        let held = pond.metric("logpond_retention_held_records").unwrap();
        assert_eq!(held as usize, RECORDS);
        assert!(pond.metric("logpond_retention_waits_ms").unwrap() > 86_000_000.0);
        assert_eq!(pond.terminate().unwrap().code(), Some(0));
    }
    // Nothing to wait for is no reason to say anything.
    let pond = Pond::start(program(), &data, &["--retain-age", "1d"]).unwrap();
    assert_eq!(count(&pond), RECORDS);
    assert!(!pond.stderr().contains(waits), "{}", pond.stderr());
    assert_eq!(pond.terminate().unwrap().code(), Some(0));
    let confirmed = [&flags[..], &["--confirm-retention"]].concat();
    let pond = Pond::start(program(), &data, &confirmed).unwrap();
    let text = pond.said("older than --retain-age 1 ms");
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
    wait_until("it is removed", || count(&pond) == 0).unwrap();
    // It can still be taken back.
    assert_eq!(files_below(&data, ".trash").len(), 1);
    assert!(pond.metric("logpond_trash_bytes").unwrap() > 0.0);
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

fn start_with_clock(library: &Path, offset: &str, data: &Path, flags: &[&str]) -> Pond {
    let mut command = Command::new(program());
    command
        .env("LD_PRELOAD", library)
        .env("FAKETIME", offset)
        .env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
    Pond::start_under(command, data, flags).unwrap()
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
        let pond = start(&[]);
        let text = pond.said(doubted);
        assert!(text.contains("--trust-clock"), "{text}");
        assert!(
            text.contains(&format!("{RECORDS} records in 1 file")),
            "{text}"
        );
        let lag_ms = pond.metric("logpond_expiry_lag_ms").unwrap();
        assert!(lag_ms > 39.0 * 86_400_000.0, "{lag_ms}");
        let mut client = pond.client().unwrap();
        let target = "/api/v1/vacuum?age=20d";
        let vacuumed = client.send("POST", target, &[], b"").unwrap();
        assert_eq!(vacuumed.status, 409);
        assert!(vacuumed.text().unwrap().contains("--trust-clock"));
        assert_eq!(count(&pond), RECORDS);
        assert_eq!(pond.terminate().unwrap().code(), Some(0));
    }
    // Records of the wrong clock prove nothing, and another start neither.
    let pond = start(&[]);
    pond.said(doubted);
    push(&pond, &records(RECORDS..RECORDS + 5));
    assert_eq!(pond.terminate().unwrap().code(), Some(0));
    let pond = start(&[]);
    wait_until("the clock is doubted", || {
        pond.metric("logpond_expiry_lag_ms").unwrap() > 39.0 * 86_400_000.0
    })
    .unwrap();
    assert_eq!(count(&pond), RECORDS + 5);
    assert_eq!(pond.terminate().unwrap().code(), Some(0));
    // The right clock is believed at once: it says nothing new.
    let pond = Pond::start(program(), &data, &[]).unwrap();
    assert_eq!(count(&pond), RECORDS + 5);
    assert!(!pond.stderr().contains(doubted), "{}", pond.stderr());
    assert_eq!(pond.terminate().unwrap().code(), Some(0));
    let pond = start(&["--trust-clock", "--retain-age", "30d"]);
    wait_until("the operator is believed", || {
        pond.metric("logpond_expiry_lag_ms").unwrap() == 0.0
    })
    .unwrap();
}
