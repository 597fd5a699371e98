//! `logpond query -o html`, `logpond config` and `logpond health`, as they are called.

use std::fs;
use std::process::{Command, Output};

use crate::pond::{Scratch, TestServer};
use crate::surroundings::program;

fn run(arguments: &[&str]) -> Output {
    let mut command = Command::new(program());
    // Settings of this machine are none of the test's.
    command
        .env("XDG_CONFIG_HOME", "/nowhere")
        .env_remove("LOGPOND_ADDR");
    command.args(arguments).output().unwrap()
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn a_report_has_the_rows_the_histogram_and_no_markup_of_records() {
    let scratch = Scratch::new("report").unwrap();
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    let lines: String = (0..1500)
        .map(|number| {
            let level = if number % 3 == 0 { "error" } else { "info" };
            format!(
                "{{\"time\":\"2026-03-02T09:{:02}:00Z\",\"level\":\"{level}\",\
                 \"message\":\"<script>{number}</script>\"}}\n",
                number % 60
            )
        })
        .collect();
    server
        .push("application/x-ndjson", lines.as_bytes())
        .unwrap();
    let url = server.url();
    let range = ["--since", "2026-03-02", "--until", "2026-03-03", "--utc"];
    let asked = ["query", "script", "-o", "html", "--addr", &url];
    let page = text(&run(&[&asked[..], &range[..]].concat()));
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
    assert!(!page.contains("<script"), "{page}");
    assert!(page.contains("1,000 rows of 1,500 that match"), "{page}");
    assert!(page.contains("yes: no part of the range is missing"));
    assert!(page.contains("<rect class=error") && page.contains("<rect class=info"));
    assert_eq!(page.matches("<tr><td").count(), 1000);
    let few = text(&run(&[&asked[..], &range[..], &["-n", "7"]].concat()));
    assert!(few.contains("7 rows of 1,500 that match"), "{few}");
    for flag in ["--follow", "-c", "-q"] {
        let output = run(&[&asked[..], &[flag]].concat());
        assert_eq!(output.status.code(), Some(2), "{flag}");
        assert!(output.stdout.is_empty(), "{flag}");
    }
    let file = scratch.path().join("app.jsonl");
    fs::write(&file, lines).unwrap();
    let file = file.display().to_string();
    let page = text(&run(&["query", "script", "-o", "html", "--file", &file]));
    assert!(page.contains("1,000 rows; more match"), "{page}");
}

#[test]
fn health_says_if_a_server_lives() {
    let scratch = Scratch::new("health").unwrap();
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    let url = server.url();
    assert_eq!(text(&run(&["health", "--addr", &url])), "healthy\n");
    assert!(text(&run(&["health", "--ready", "--addr", &url])).starts_with("ready\n"));
    assert_eq!(text(&run(&["health", "-q", "--addr", &url])), "");
    server.kill();
    assert_eq!(run(&["health", "--addr", &url]).status.code(), Some(2));
}

#[test]
fn settings_are_checked_and_shown_with_their_origin() {
    let scratch = Scratch::new("config").unwrap();
    let file = scratch.path().join("logpond.toml");
    let path = file.display().to_string();
    let default = text(&run(&["config", "default"]));
    fs::write(&file, &default).unwrap();
    let said = text(&run(&["config", "check", &path]));
    assert_eq!(said, format!("{path}: valid, 0 settings\n"));
    let own =
        "retain-age = \"30d\"\nalert-rules = \"/x\"\nalert-webhook = \"http://u:secret@h/\"\n";
    fs::write(&file, default + own).unwrap();
    let said = text(&run(&["config", "check", &path]));
    assert_eq!(said, format!("{path}: valid, 3 settings\n"));
    let shown = [
        "config", "show", "-o", "json", "--config", &path, "--http", "7777",
    ];
    let mut command = Command::new(program());
    let output = command.args(shown).env("LOGPOND_MEMORY", "1GiB").output();
    let said = text(&output.unwrap());
    let row = |name: &str| {
        let mut rows = said
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        let row = rows.find(|row| row["name"] == name).unwrap();
        let text = |name: &str| row[name].as_str().unwrap().to_owned();
        (text("value"), text("origin"))
    };
    let pair = |value: &str, origin: &str| (value.to_owned(), origin.to_owned());
    assert_eq!(row("http"), pair("7777", "--http"));
    assert_eq!(row("memory"), pair("1GiB", "LOGPOND_MEMORY"));
    assert_eq!(row("fast"), pair("127.0.0.1:7651", "default"));
    assert!(row("retain-age").1.starts_with(&path), "{said}");
    assert!(!said.contains("secret"), "{said}");
    fs::write(&file, "retain-agee = \"30d\"\n").unwrap();
    let output = run(&["config", "check", &path]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("logpond.toml:1:1") && said.contains("retain-age"),
        "{said}"
    );
}
