//! Programs that are made for Loki, if there are any: what they ask and ship, they ask and ship here.

use std::process::Command;

use crate::loki_api::shop;
use crate::pond::{Pond, Scratch};
use crate::surroundings::{program, say};

/// A real client of Loki, if there is one.
#[test]
fn logcli_asks_what_it_asks_of_loki() {
    let Some(logcli) = std::env::var_os("LOGPOND_LOGCLI") else {
        // Its licence keeps it out of what CI sets up.
        return say("skipped: logcli because LOGPOND_LOGCLI names none");
    };
    let scratch = Scratch::new("loki-logcli").unwrap();
    let pond = Pond::start(program(), &scratch.path().join("data"), &[]).unwrap();
    shop(&pond);
    let range = ["--from=2023-11-14T22:00:00Z", "--to=2023-11-15T00:00:00Z"];
    let run = |arguments: &[&str]| {
        let (command, rest) = arguments.split_first().unwrap();
        let times: &[&str] = if *command == "instant-query" {
            &[]
        } else {
            &range
        };
        let output = Command::new(&logcli)
            .args(["--quiet", "--addr", &pond.url(), command])
            .args(times)
            .args(rest)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{arguments:?}: {said}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert_eq!(run(&["labels"]), "app\nenv\nhost\nk8s_pod\nservice_name\n");
    assert_eq!(run(&["labels", "app"]), "cart\nshop\n");
    assert!(run(&["series", "{}", "--analyze-labels"]).contains("Total Streams:  3"));
    assert!(run(&["stats", "{app=\"cart\"}"]).contains("entries: 2"));
    assert!(run(&["volume", "{app=~\".+\"}"]).contains("\"cart\""));
    assert!(run(&["detected-fields", "{}"]).contains("status"));
    let raw = ["query", "-o", "raw", "--forward", "{app=\"cart\"}"];
    assert_eq!(run(&raw), "level=info took=5ms\nlevel=debug took=7ms\n");
    let sum = "sum(count_over_time({app=\"shop\"}[1h]))";
    let instant = run(&["instant-query", "--now=2023-11-14T22:30:00Z", sum]);
    assert!(instant.contains("\"3\""), "{instant}");
    let range = run(&["query", "--step=1h", "-o", "raw", sum]);
    assert!(range.contains('3'), "{range}");
}
