//! The clients of systemd-journal-gatewayd: what journalctl prints of a journal file, they are given of
//! the records that were imported from it.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::journal_command::{
    OBJECTS, assert_text, import, in_order, journalctl, objects, ordered_journal, start, text,
};
use crate::journal_upload::tool;
use crate::pond::{Scratch, TestServer};

/// A server that has the entries of a journal file.
struct Gateway {
    remote: PathBuf,
    file: PathBuf,
    server: TestServer,
    scratch: Scratch,
}

impl Gateway {
    fn start(name: &str) -> Option<Gateway> {
        let remote = tool("systemd-journal-remote")?;
        let scratch = Scratch::new(name).unwrap();
        let file = ordered_journal(&remote, &scratch);
        let server = start(&scratch);
        import(&server, &file);
        Some(Gateway {
            remote,
            file,
            server,
            scratch,
        })
    }

    fn get(&self, target: &str, headers: &[(&str, &str)]) -> (u16, Vec<u8>) {
        let mut client = self.server.client().unwrap();
        let answer = client.send("GET", target, headers, b"").unwrap();
        let status = answer.status;
        (status, answer.bytes().unwrap())
    }

    fn journalctl(&self, arguments: &str) -> Vec<u8> {
        journalctl(&self.file, arguments).stdout
    }

    /// Cursors in the order of entries.
    fn cursors(&self) -> Vec<String> {
        let objects = objects("json", &self.journalctl("-o json"));
        let cursor = |object: &Value| object["__CURSOR"].as_str().unwrap().to_owned();
        objects.iter().map(cursor).collect()
    }
}

#[test]
fn entries_are_given_in_every_form() {
    let Some(gateway) = Gateway::start("gatewayd-forms") else {
        return;
    };
    let forms = [
        ("text/plain", "short"),
        ("application/json", "json"),
        ("text/event-stream", "json-sse"),
        ("application/vnd.fdo.journal", "export"),
    ];
    let targets = [
        ("", ""),
        ("?boot", "-b"),
        ("?PRIORITY=3&_COMM=systemd", "PRIORITY=3 _COMM=systemd"),
    ];
    for (form, format) in forms {
        for (query, arguments) in targets {
            let target = format!("/entries{query}");
            let (status, body) = gateway.get(&target, &[("accept", form)]);
            assert_eq!(status, 200, "{target}");
            let wanted = gateway.journalctl(&format!("-o {format} {arguments}"));
            if OBJECTS.contains(&format) {
                assert_eq!(objects(format, &body), objects(format, &wanted), "{target}")
            } else {
                let (found, wanted) = (in_order(format, &body), in_order(format, &wanted));
                assert_text(&found, &wanted, &target);
            }
        }
    }
    assert_eq!(gateway.server.terminate().unwrap().code(), Some(0));
}

#[test]
fn ranges_begin_where_they_say() {
    let Some(gateway) = Gateway::start("gatewayd-ranges") else {
        return;
    };
    let cursors = gateway.cursors();
    let ranged = |range: &str, query: &str| {
        let headers = [("range", range), ("accept", "application/json")];
        let (status, body) = gateway.get(&format!("/entries{query}"), &headers);
        let found = match status {
            200 => objects("json", &body),
            _ => Vec::new(),
        };
        let place = |object: &Value| {
            let known = cursors
                .iter()
                .position(|known| object["__CURSOR"] == **known);
            known.unwrap()
        };
        (status, found.iter().map(place).collect::<Vec<_>>())
    };
    let last = cursors.len() - 1;
    let from = |at: usize, more: &str| format!("entries={}{more}", cursors[at]);
    let table = [
        ("entries=:2".to_owned(), "", vec![0, 1]),
        ("entries=:3:2".to_owned(), "", vec![3, 4]),
        // As gatewayd counts: the end is a place of its own.
        ("entries=:-2:2".to_owned(), "", vec![last - 2, last - 1]),
        (from(last - 1, ""), "", vec![last - 1, last]),
        (from(5, ":1:2"), "", vec![6, 7]),
        (from(5, ":-1:2"), "", vec![4, 5]),
        (from(5, ""), "?discrete", vec![5]),
    ];
    for (range, query, wanted) in table {
        assert_eq!(ranged(&range, query), (200, wanted), "{range} {query}");
    }
    assert_eq!(ranged("realtime=1700000001:1700000003", "").1.len(), 2);
    let gone = cursors[5].replace("i=", "i=f");
    let (status, found) = ranged(&format!("entries={gone}:1"), "");
    assert_eq!(
        (status, found),
        (200, vec![5]),
        "an entry that is gone has a time"
    );
    assert_eq!(
        ranged(&format!("entries={gone}"), "?discrete"),
        (200, vec![])
    );
    for (range, query) in [
        ("entries=", "?discrete"),
        ("entries=nonsense", ""),
        ("entries=s=1;i=2", ""),
        ("entries=", "?follow=x"),
        ("entries=", "?no%20such=x"),
    ] {
        assert_eq!(ranged(range, query).0, 400, "{range} {query}");
    }
    assert_eq!(gateway.server.terminate().unwrap().code(), Some(0));
}

#[test]
fn fields_and_the_machine_are_told() {
    let Some(gateway) = Gateway::start("gatewayd-fields") else {
        return;
    };
    let (status, body) = gateway.get("/fields/PRIORITY", &[]);
    let sorted = |text: String| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    let found = sorted(String::from_utf8(body).unwrap());
    let wanted = sorted(text(&journalctl(&gateway.file, "-F PRIORITY")));
    assert_eq!((status, found), (200, wanted));
    let headers = [("accept", "application/json")];
    let (_, body) = gateway.get("/fields/_COMM", &headers);
    let values = objects("json", &body);
    assert!(
        values.contains(&serde_json::json!({ "_COMM": "sshd" })),
        "{values:?}"
    );
    let (status, body) = gateway.get("/machine", &[]);
    let machine: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(status, 200);
    let first = &objects("json", &gateway.journalctl("-o json"))[0];
    assert_eq!(
        machine["cutoff_from_realtime"],
        first["__REALTIME_TIMESTAMP"]
    );
    for name in ["machine_id", "boot_id", "hostname", "usage"] {
        assert!(machine[name].is_string(), "{name}");
    }
    assert_eq!(gateway.get("/browse", &[]).0, 307);
    assert_eq!(gateway.server.terminate().unwrap().code(), Some(0));
}

#[test]
fn what_comes_is_given_to_who_follows() {
    let Some(gateway) = Gateway::start("gatewayd-follow") else {
        return;
    };
    let mut client = gateway.server.client().unwrap();
    let headers = [("range", "entries=:-1:")];
    let answer = client.send("GET", "/entries?follow", &headers, b"");
    let mut lines = BufReader::new(answer.unwrap()).lines();
    let mut line = || lines.next().unwrap().unwrap();
    let all = text(&journalctl(&gateway.file, ""));
    let newest: Vec<&str> = all.lines().rev().take(2).collect();
    assert_eq!([line(), line()], [newest[1], newest[0]]);
    let body = b"<11>1 2024-01-01T10:00:00Z web1 sshd 77 - - new\n";
    assert_eq!(gateway.server.push("text/plain", body).unwrap().status, 200);
    assert!(line().ends_with(" web1 sshd[77]: new"));
}

#[test]
fn systemds_own_client_pulls_journals() {
    let Some(gateway) = Gateway::start("gatewayd-pull") else {
        return;
    };
    let made = gateway.scratch.path().join("pulled.journal");
    let url = format!("{}/entries?_TRANSPORT=kernel", gateway.server.url());
    let mut command = Command::new(&gateway.remote);
    let output = command
        .args(["--split-mode=none", "--url", &url, "-o"])
        .arg(&made)
        .output();
    let output = output.unwrap();
    assert!(output.status.success(), "{output:?}");
    let wanted = text(&journalctl(&gateway.file, "-o cat _TRANSPORT=kernel"));
    assert_eq!(text(&journalctl(&made, "-o cat")), wanted);
    assert_eq!(gateway.server.terminate().unwrap().code(), Some(0));
}
