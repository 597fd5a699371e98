//! What is said where nothing was found, and which times were searched.

use std::fs;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::pond::{Scratch, TestServer};
use crate::surroundings::program;

const RECORDS: &str = r#"{"time":"2015-05-20T10:00:00Z","message":"timeout of the database","level":"error","status":500,"app":"shop"}
{"time":"2015-05-20T10:10:00Z","message":"pay 17 failed","level":"warn","status":402,"app":"shop"}
{"time":"2015-05-20T10:20:00Z","message":"served","level":"info","status":200,"app":"web"}
"#;

/// The day of the records.
const DAY: [&str; 4] = ["--since", "2015-05-20", "--until", "2015-05-21"];

fn filled(name: &str) -> (Scratch, TestServer) {
    let scratch = Scratch::new(name).unwrap();
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    let pushed = server
        .push("application/x-ndjson", RECORDS.as_bytes())
        .unwrap();
    assert_eq!(pushed.accepted(), 3);
    (scratch, server)
}

fn run(server: &TestServer, arguments: &[&str]) -> Output {
    let mut command = Command::new(program());
    command.args(arguments).env("LOGPOND_ADDR", server.url());
    command.stdin(Stdio::null()).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Runs a suggestion as it was printed; gives what it prints.
fn tried(server: &TestServer, suggestion: &str) -> String {
    let script = format!("logpond() {{ \"$PROGRAM\" \"$@\"; }}; {suggestion} -o json");
    let output = Command::new("sh")
        .args(["-c", &script])
        .env("PROGRAM", program())
        .env("LOGPOND_ADDR", server.url())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{suggestion}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Words that are typed, the suggestion, and a word that the suggested command finds.
const TYPED: [(&[&str], &str, &str); 18] = [
    (&["level=error"], "logpond query -f level=error", "timeout"),
    (
        &[r#"{app="shop"} |= "pay""#],
        "logpond query pay -f app=shop",
        "pay 17",
    ),
    (
        &["timeout OR failed"],
        "logpond query -e 'timeout|failed'",
        "pay 17",
    ),
    (
        &["--", "-status=200"],
        "logpond query -f 'status!=200'",
        "timeout",
    ),
    (&["pay*failed"], "logpond query -e 'pay.*failed'", "pay 17"),
    (&["statsu=500"], "logpond query -f status=500", "timeout"),
    (
        &["-f", "statsu=500"],
        "logpond query -f status=500",
        "timeout",
    ),
    (
        &["-f", "status=402", "timeout or pay"],
        "logpond query -e 'timeout|pay' -f status=402",
        "pay 17",
    ),
    (
        &["status=404 or status=402"],
        "logpond query --where 'status=404 OR status=402'",
        "pay 17",
    ),
    (
        &["--where", "status=404 or status=402"],
        "logpond query --where 'status=404 OR status=402'",
        "pay 17",
    ),
    (
        &["level in (fatal, warn)"],
        "logpond query --where 'level=fatal OR level=warn'",
        "pay 17",
    ),
    (
        &["served status>=200"],
        "logpond query served -f 'status>=200'",
        "served",
    ),
    (
        &["-e", "served", "-f", "lvel=info"],
        "-f level=info",
        "served",
    ),
    (
        &["-f", "_msg=timeout"],
        "logpond query -f '_msg:\"timeout\"'",
        "timeout",
    ),
    (
        &["-f", "severity=error"],
        "logpond query -f level=error",
        "timeout",
    ),
    (
        &["message:TIMEOUT"],
        "logpond query --where '_msg:i\"TIMEOUT\"'",
        "timeout",
    ),
    (
        &["app=shop,level=error"],
        "logpond query -f app=shop -f level=error",
        "timeout",
    ),
    (&["pay_17"], "logpond query -e 'pay[-_. ]17'", "pay 17"),
];

#[test]
fn what_looks_like_a_query_is_told_with_the_command_that_means_it() {
    let (_scratch, server) = filled("hints");
    for (typed, suggested, found) in TYPED {
        let mut arguments = vec!["query"];
        arguments.extend(DAY);
        arguments.extend(typed);
        let output = run(&server, &arguments);
        assert_eq!(output.status.code(), Some(1), "{typed:?}");
        let said = said(&output);
        assert!(said.contains(suggested), "{typed:?}: {said}");
        let tries: Vec<_> = said
            .lines()
            .filter_map(|l| l.trim().strip_prefix("try: "))
            .collect();
        assert_eq!(tries.len(), 1, "{said}");
        assert!(
            tries[0].ends_with("--since 2015-05-20 --until 2015-05-21"),
            "{said}"
        );
        assert!(tried(&server, tries[0]).contains(found), "{said}");
    }
    for (typed, expected) in [
        (
            "status=501",
            "no record of the range has '501' in 'status'; there are",
        ),
        (
            "app>5",
            "larger and smaller are for numbers, and 'app' has texts",
        ),
        (
            "app=mail AND status=500",
            "no record of the range has 'mail' in 'app'; there are 'shop', 'web'",
        ),
    ] {
        let output = run(&server, &[&["query", "--where", typed][..], &DAY].concat());
        assert_eq!(output.status.code(), Some(1), "{typed}");
        assert!(said(&output).contains(expected), "{typed}: {output:?}");
    }
    let nowhere = run(&server, &[&["query", "level=fatal"][..], &DAY].concat());
    assert!(
        said(&nowhere).contains("no record of the range matches that, either"),
        "{nowhere:?}"
    );
    // With a record there is nothing to say, and with -q nothing is said.
    let found = run(&server, &[&["query", "timeout"][..], &DAY].concat());
    assert_eq!((found.status.code(), said(&found).as_str()), (Some(0), ""));
    let quiet = run(&server, &["query", "-q", "level=error"]);
    assert_eq!((quiet.status.code(), said(&quiet).as_str()), (Some(1), ""));
}

#[test]
fn tables_and_counts_say_it_too() {
    let (_scratch, server) = filled("hints-tables");
    for (arguments, suggested) in [
        (
            &["query", "-c", "level=error"][..],
            "logpond query -f level=error",
        ),
        (
            &["top", "status", "level=error"],
            "logpond top status -f level=error",
        ),
        (&["fields", "level=error"], "logpond fields -f level=error"),
        (
            &["histogram", "level=error"],
            "logpond histogram -f level=error",
        ),
        (
            &["patterns", "level=error"],
            "logpond patterns -f level=error",
        ),
        (&["top", "statsu"], "did you mean 'status'?"),
    ] {
        let output = run(&server, &[arguments, &DAY].concat());
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(said(&output).contains(suggested), "{}", said(&output));
        let cost = run(&server, &[arguments, &DAY, &["--stats"]].concat());
        assert!(said(&cost).contains(" scanned · "), "{}", said(&cost));
    }
    // Records match, and none of them has the field.
    let unknown = run(
        &server,
        &[&["histogram", "--by", "statsu"][..], &DAY].concat(),
    );
    assert!(unknown.status.success());
    let expected = "no record of the range has a field 'statsu'; did you mean 'status'?";
    assert!(said(&unknown).contains(expected), "{}", said(&unknown));
    let known = run(
        &server,
        &[&["histogram", "--by", "status"][..], &DAY].concat(),
    );
    assert!(!said(&known).contains("hint"), "{}", said(&known));
}

#[test]
fn the_range_is_said_and_what_lies_outside_of_it() {
    let (_scratch, server) = filled("hints-range");
    let before = run(&server, &["query", "timeout"]);
    assert_eq!(before.status.code(), Some(1));
    let text = said(&before);
    assert!(text.contains("1 record matches before the range"), "{text}");
    assert!(
        text.contains("--since 2015-05-20T10:00:00.000000000Z reaches it"),
        "{text}"
    );
    let behind = run(
        &server,
        &[
            "query",
            "-f",
            "app=shop",
            "--since",
            "2014-01-01",
            "--until",
            "2014-02-01",
        ],
    );
    assert!(said(&behind).contains("2 records match after the range"));
    let now = server.push("text/plain", b"a line of now\n").unwrap();
    assert_eq!(now.accepted(), 1);
    let default = run(&server, &["query", "line of now"]);
    assert_eq!(default.status.code(), Some(0));
    assert!(
        said(&default).contains("the last hour was searched"),
        "{}",
        said(&default)
    );
    let asked = run(&server, &["query", "line of now", "--since", "2h"]);
    assert_eq!(said(&asked), "");
    let target = "/api/v1/query?q=%22level%3Derror%22&from=2015-05-20&to=2015-05-21";
    let answer = server.get(target).unwrap();
    let trailer: Value = serde_json::from_str(answer.lines().last().unwrap()).unwrap();
    let trailer = &trailer["_trailer"];
    assert_eq!(trailer["from"], "2015-05-20T00:00:00.000000000Z");
    assert_eq!(trailer["to"], "2015-05-21T00:00:00.000000000Z");
    assert_eq!(trailer["hints"][0]["query"], "level=error");
    assert_eq!(
        trailer["hints"][0]["command"],
        "logpond query -f level=error"
    );
    let found = server
        .get("/api/v1/query?q=timeout&from=2015-05-20")
        .unwrap();
    assert!(!found.contains("\"hints\""), "{found}");
}

#[test]
fn exports_say_what_they_write_and_replace_nothing_unasked() {
    let (scratch, server) = filled("hints-export");
    let path = scratch.path().join("logs.ndjson");
    let file = path.to_str().unwrap();
    let export = |more: &[&str]| run(&server, &[&["export", "-O", file], more].concat());
    let first = export(&["-f", "app=shop", "-e", "timeout|pay"]);
    assert_eq!(first.status.code(), Some(0), "{first:?}");
    assert!(
        said(&first).contains("-- 2 records of all times --"),
        "{}",
        said(&first)
    );
    assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 2);
    let refused = export(&[]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(said(&refused).contains("--force"), "{}", said(&refused));
    assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 2);
    let forced = export(&["--force", "-q"]);
    assert_eq!(
        (forced.status.code(), said(&forced).as_str()),
        (Some(0), "")
    );
    assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 3);
    let none = run(&server, &["export", "level=error"]);
    assert_eq!(none.status.code(), Some(0));
    assert!(
        said(&none).contains("logpond export -f level=error"),
        "{}",
        said(&none)
    );
}

#[test]
fn a_histogram_of_a_long_range_is_of_where_records_are() {
    let (_scratch, server) = filled("hints-histogram");
    let bars = |step: &str| {
        let target = format!("/api/v1/histogram?from=2001-01-01&to=2030-01-01{step}");
        let answer = server.get(&target).unwrap();
        let rows: Vec<Value> = answer
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let counts = rows.iter().filter_map(|row| row["count"].as_u64());
        let counts: Vec<u64> = counts.collect();
        (
            counts.len(),
            counts.iter().filter(|count| **count > 0).count(),
        )
    };
    let (all, filled) = bars("");
    assert!(filled == 3 && all < 100, "{filled} of {all}");
    // Who names a step is given the whole range.
    let (all, filled) = bars("&step=30d");
    assert!(filled == 1 && all > 300, "{filled} of {all}");
}

#[test]
fn arrays_are_pushed() {
    let (_scratch, server) = filled("hints-array");
    let body = b"[{\"time\":\"2015-06-01T00:00:00Z\",\"n\":1},\n {\"time\":\"2015-06-01T00:00:01Z\",\"n\":2}]";
    let pushed = server.push("application/json", body).unwrap();
    assert_eq!(
        (pushed.status, pushed.accepted()),
        (200, 2),
        "{}",
        pushed.body
    );
    let (rows, _) = server.query("n=2").unwrap();
    assert_eq!(rows.len(), 1);
}
