//! Alert rules with a real server: records make alerts fire and resolve, and receivers are told of it
//! through sockets, also across restarts.

use std::collections::{BTreeSet, VecDeque};
use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::http::{Client, encode};
use crate::nodes::start_node;
use crate::pond::{Scratch, TestServer, wait_until};
use crate::surroundings::{program, say};

/// How long a message may take; only a broken server reaches it.
const MESSAGE_TIME_MAX: Duration = Duration::from_secs(60);

/// A request that was received.
struct Message {
    /// Its first line.
    target: String,
    authorization: String,
    body: Value,
}

/// A receiver of alerts.
struct AlertReceiver {
    address: String,
    messages: Receiver<Message>,
    /// Statuses of the next answers; then all are well.
    statuses: Arc<Mutex<VecDeque<u16>>>,
}

impl AlertReceiver {
    fn listen() -> AlertReceiver {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (sender, messages) = mpsc::channel();
        let statuses = Arc::new(Mutex::new(VecDeque::new()));
        let of_thread = statuses.clone();
        // It ends with the process of the tests.
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (sender, statuses) = (sender.clone(), of_thread.clone());
                thread::spawn(move || {
                    let stream = stream.unwrap();
                    while let Some(message) = receive(&stream, &statuses) {
                        if sender.send(message).is_err() {
                            return;
                        }
                    }
                });
            }
        });
        AlertReceiver {
            address,
            messages,
            statuses,
        }
    }

    fn next(&self) -> Message {
        self.messages
            .recv_timeout(MESSAGE_TIME_MAX)
            .expect("a message")
    }

    /// The next message that this holds for.
    fn next_with(&self, holds: impl Fn(&Message) -> bool) -> Message {
        loop {
            let message = self.next();
            if holds(&message) {
                return message;
            }
        }
    }
}

/// Receives one request and answers it; nothing when the peer is gone.
fn receive(stream: &TcpStream, statuses: &Mutex<VecDeque<u16>>) -> Option<Message> {
    let mut reader = BufReader::new(stream);
    let mut target = String::new();
    reader
        .read_line(&mut target)
        .ok()
        .filter(|bytes| *bytes > 0)?;
    let (mut length, mut authorization) = (0, String::new());
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim().split_once(": ") else {
            break;
        };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.parse().unwrap(),
            "authorization" => authorization = value.to_owned(),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let status = statuses.lock().unwrap().pop_front().unwrap_or(200);
    let answer = format!("HTTP/1.1 {status} x\r\ncontent-length: 0\r\n\r\n");
    let mut to = stream;
    to.write_all(answer.as_bytes()).ok()?;
    Some(Message {
        target: target.trim().to_owned(),
        authorization,
        body: serde_json::from_slice(&body).unwrap(),
    })
}

/// A rule that fires once there are two errors, and until somebody says that they are fixed.
const ERRORS: &str = r#"
groups:
  - name: shop
    interval: 200ms
    rules:
      - alert: Errors
        expr: >
          (sum by (app) (count_over_time({app="shop"} |= "error" [1h])) > 1)
          unless sum by (app) (count_over_time({app="shop"} |= "fixed" [1h]))
        for: 300ms
        labels:
          severity: page
        annotations:
          summary: '{{ $labels.app }} has {{ $value | humanize }} errors'
"#;

fn rules(scratch: &Scratch, text: &str) -> PathBuf {
    let path = scratch.path().join("rules.yml");
    fs::write(&path, text).unwrap();
    path
}

fn start(scratch: &Scratch, rules: &Path, more: &[&str]) -> TestServer {
    let data = scratch.path().join("data");
    let rules = rules.display().to_string();
    let mut flags = vec!["--alert-rules", &rules];
    flags.extend(more);
    TestServer::start(program(), &data, &flags).unwrap()
}

fn push(server: &TestServer, text: &str) {
    let line = format!("{{\"app\":\"shop\",\"_msg\":\"{text}\"}}\n");
    let pushed = server
        .push("application/x-ndjson", line.as_bytes())
        .unwrap();
    assert_eq!(pushed.status, 200, "{}", pushed.body);
}

fn json_of(server: &TestServer, target: &str) -> Value {
    serde_json::from_str(&server.get(target).unwrap()).unwrap()
}

/// The first rule that there is.
fn first_rule(server: &TestServer) -> Value {
    json_of(server, "/prometheus/api/v1/rules")["data"]["groups"][0]["rules"][0].take()
}

fn wait_for_state(server: &TestServer, state: &str) {
    let mut rule = Value::Null;
    wait_until("the rule gets there", || {
        rule = first_rule(server);
        rule["state"] == state
    })
    .unwrap_or_else(|e| panic!("{e}: {state}: {rule}"));
}

/// What a server shows while an alert fires that a receiver took at the third attempt.
fn shows_what_fires(server: &TestServer, starts_at: &Value) {
    let rule = first_rule(server);
    assert_eq!(
        (&rule["state"], &rule["type"]),
        (&"firing".into(), &"alerting".into())
    );
    assert_eq!(
        (&rule["duration"], &rule["alerts"][0]["value"]),
        (&0.3.into(), &"2e+00".into())
    );
    let alerts = json_of(server, "/prometheus/api/v1/alerts");
    assert_eq!(alerts["data"]["alerts"][0]["state"], "firing");
    assert!(alerts["data"]["alerts"][0]["activeAt"].as_str() <= starts_at.as_str());
    let metrics = server.get("/metrics").unwrap();
    assert!(
        metrics.contains("logpond_alerts{state=\"firing\"} 1"),
        "{metrics}"
    );
    let failed = "logpond_alert_notice_failures_total{receiver=\"webhook\",number=\"1\"} 2";
    assert!(metrics.contains(failed), "{metrics}");
}

#[test]
fn an_alert_fires_and_resolves_and_receivers_are_told() {
    let scratch = Scratch::new("alerts").unwrap();
    let (manager, hook) = (AlertReceiver::listen(), AlertReceiver::listen());
    // The first attempts fail, and are repeated.
    hook.statuses.lock().unwrap().extend([500, 503]);
    let manager_url = format!("http://{}/prefix", manager.address);
    let hook_url = format!("http://user:pass@{}/hooks/SECRET?key=SECRET", hook.address);
    let server = start(
        &scratch,
        &rules(&scratch, ERRORS),
        &[
            "--alertmanager",
            &manager_url,
            "--alert-webhook",
            &hook_url,
            "--external-url",
            "http://logs.example.org/",
        ],
    );
    wait_until("it was evaluated", || first_rule(&server)["health"] == "ok").unwrap();
    assert_eq!(first_rule(&server)["state"], "inactive");
    push(&server, "error 1");
    push(&server, "error 2");

    let fired = hook.next();
    assert_eq!(fired.target, "POST /hooks/SECRET?key=SECRET HTTP/1.1");
    assert_eq!(fired.authorization, "Basic dXNlcjpwYXNz");
    let body = &fired.body;
    assert_eq!(
        (&body["version"], &body["status"]),
        (&"4".into(), &"firing".into())
    );
    assert_eq!(body["externalURL"], "http://logs.example.org");
    let alert = &body["alerts"][0];
    assert_eq!(alert["labels"]["severity"], "page");
    assert_eq!(alert["labels"]["alertname"], "Errors");
    assert_eq!(alert["labels"]["app"], "shop");
    assert_eq!(alert["annotations"]["summary"], "shop has 2 errors");
    let generator = alert["generatorURL"].as_str().unwrap();
    assert!(
        generator.starts_with("http://logs.example.org/?logql=%28"),
        "{generator}"
    );
    let starts_at = alert["startsAt"].clone();
    // The same again, until it is taken.
    for _ in 0..2 {
        assert_eq!(hook.next().body["alerts"][0]["startsAt"], starts_at);
    }

    let sent = manager.next();
    assert_eq!(sent.target, "POST /prefix/api/v2/alerts HTTP/1.1");
    assert_eq!(sent.body[0]["labels"], alert["labels"]);
    assert_eq!(sent.body[0]["startsAt"], starts_at);
    assert!(sent.body[0]["endsAt"].as_str() > starts_at.as_str());

    shows_what_fires(&server, &starts_at);
    push(&server, "fixed");
    let ended = hook.next();
    assert_eq!(ended.body["status"], "resolved");
    assert_eq!(ended.body["alerts"][0]["startsAt"], starts_at);
    assert_eq!(ended.body["alerts"][0]["fingerprint"], alert["fingerprint"]);
    let sent =
        manager.next_with(|message| message.body[0]["endsAt"] == ended.body["alerts"][0]["endsAt"]);
    assert_eq!(sent.body[0]["startsAt"], starts_at);
    wait_for_state(&server, "inactive");
    server.said("webhook http://127.0.0.1");
    let said = server.said("status 500");
    assert!(!said.contains("SECRET") && !said.contains("pass"), "{said}");
    assert!(server.terminate().unwrap().success());
}

#[test]
fn a_restart_neither_resolves_nor_repeats() {
    let scratch = Scratch::new("alerts-restart").unwrap();
    let hook = AlertReceiver::listen();
    let url = format!("http://{}/", hook.address);
    let rules = rules(&scratch, ERRORS);
    let server = start(&scratch, &rules, &["--alert-webhook", &url]);
    push(&server, "error 1");
    push(&server, "error 2");
    let fired = hook.next();
    let active_at = first_rule(&server)["alerts"][0]["activeAt"].clone();
    assert!(active_at.is_string());
    // A crash: what was known is on the disk.
    server.kill();
    let server = start(&scratch, &rules, &["--alert-webhook", &url]);
    let rule = first_rule(&server);
    assert_eq!(rule["state"], "firing", "before any evaluation: {rule}");
    assert_eq!(rule["alerts"][0]["activeAt"], active_at);
    wait_until("it was evaluated", || {
        first_rule(&server)["lastEvaluation"] != rule["lastEvaluation"]
    })
    .unwrap();
    assert!(server.terminate().unwrap().success());
    let server = start(&scratch, &rules, &["--alert-webhook", &url]);
    push(&server, "fixed");
    // After the crash it may have been told once more, never with another beginning.
    let ended = hook.next_with(|message| {
        let starts_at = &message.body["alerts"][0]["startsAt"];
        assert_eq!(*starts_at, fired.body["alerts"][0]["startsAt"]);
        message.body["status"] == "resolved"
    });
    assert_eq!(ended.body["alerts"].as_array().unwrap().len(), 1);
}

/// Rules that always fire, of two groups.
fn always(groups: [&[&str]; 2]) -> String {
    let mut text = "groups:\n".to_owned();
    for (name, alerts) in ["one", "two"].iter().zip(groups) {
        if alerts.is_empty() {
            continue;
        }
        text.push_str(&format!("- name: {name}\n  interval: 200ms\n  rules:\n"));
        for alert in alerts {
            text.push_str(&format!("  - {{ alert: {alert}, expr: vector(1) }}\n"));
        }
    }
    text
}

/// Whoever was told that an alert fires is told that it ended, also when that is because its rule is gone.
#[test]
fn an_alert_ends_with_its_rule() {
    let scratch = Scratch::new("alerts-gone").unwrap();
    let hook = AlertReceiver::listen();
    let url = format!("http://{}/", hook.address);
    let path = rules(&scratch, &always([&["A", "B"], &["C"]]));
    let server = start(&scratch, &path, &["--alert-webhook", &url]);
    let names_of = |status: &str, count: usize| {
        let mut names = Vec::new();
        while names.len() < count {
            let message = hook.next();
            assert_eq!(message.body["status"], status, "{}", message.body);
            let alerts = message.body["alerts"].as_array().unwrap();
            names.extend(alerts.iter().map(|alert| {
                let name = alert["labels"]["alertname"].as_str();
                name.unwrap().to_owned()
            }));
        }
        names.sort();
        names
    };
    assert_eq!(names_of("firing", 3), ["A", "B", "C"]);
    // One rule less, and a group.
    rules(&scratch, &always([&["A"], &[]]));
    assert_eq!(names_of("resolved", 2), ["B", "C"]);
    assert!(server.terminate().unwrap().success());
    // The same while there is no server.
    rules(&scratch, &always([&[], &["D"]]));
    let server = start(&scratch, &path, &["--alert-webhook", &url]);
    // What was told and not noted as told is told again.
    let mut told = BTreeSet::new();
    while told.len() < 2 {
        let body = hook.next().body;
        let name = body["alerts"][0]["labels"]["alertname"].as_str();
        let status = body["status"].as_str();
        told.insert(format!("{} {}", name.unwrap(), status.unwrap()));
    }
    assert_eq!(told, ["A resolved", "D firing"].map(str::to_owned).into());
    assert!(server.terminate().unwrap().success());
}

#[test]
fn bad_files_are_refused_at_the_start_and_passed_over_later() {
    let scratch = Scratch::new("alerts-files").unwrap();
    let bad = ERRORS.replace("for: 300ms", "for: soon");
    let path = rules(&scratch, &bad);
    let output = logpond(&["alerts", "check", path.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("rules.yml:10:14: 'soon' is no duration for for"),
        "{said}"
    );
    let data = scratch.path().join("data");
    let refused = TestServer::start(program(), &data, &["--alert-rules", path.to_str().unwrap()]);
    let refused = refused.err().unwrap();
    assert!(refused.contains("rules.yml:10:14"), "{refused}");

    let directory = scratch.path().join("rules");
    fs::create_dir(&directory).unwrap();
    fs::write(directory.join("a.yml"), ERRORS).unwrap();
    let output = logpond(&["alerts", "check", directory.to_str().unwrap()]);
    assert!(String::from_utf8_lossy(&output.stdout).ends_with(": 1 rule in 1 group\n"));
    let server = start(&scratch, &directory, &[]);
    fs::write(directory.join("b.yaml"), bad).unwrap();
    // The bad file is reported.
    server.said("b.yaml:10:14");
    assert_eq!(first_rule(&server)["name"], "Errors");
    fs::write(
        directory.join("b.yaml"),
        ERRORS.replace("name: shop", "name: other"),
    )
    .unwrap();
    wait_until("the good file is taken in", || {
        let answer = json_of(
            &server,
            "/prometheus/api/v1/rules?rule_group[]=other&type=alert",
        );
        answer["data"]["groups"][0]["rules"][0]["health"] == "ok"
    })
    .unwrap();
    let page = json_of(&server, "/prometheus/api/v1/rules?group_limit=1");
    assert_eq!(page["data"]["groups"][0]["name"], "shop");
    let token = page["data"]["groupNextToken"].as_str().unwrap();
    let page = json_of(
        &server,
        &format!("/prometheus/api/v1/rules?group_limit=1&group_next_token={token}"),
    );
    assert_eq!(page["data"]["groups"][0]["name"], "other");
    assert!(page["data"]["groupNextToken"].is_null());
}

fn logpond(arguments: &[&str]) -> Output {
    let mut command = Command::new(program());
    command.args(arguments).stdin(Stdio::null());
    command.output().unwrap()
}

fn status(server: &TestServer, method: &str, target: &str) -> (u16, String) {
    let mut client = server.client().unwrap();
    let response = client.send(method, target, &[], b"").unwrap();
    (response.status, response.text().unwrap())
}

#[test]
fn rules_are_shown_as_files_and_as_a_table() {
    let scratch = Scratch::new("alerts-shown").unwrap();
    let server = start(&scratch, &rules(&scratch, ERRORS), &[]);
    for prefix in ["/loki/api/v1/rules", "/api/prom/rules"] {
        let (found, all) = status(&server, "GET", prefix);
        assert_eq!(found, 200);
        assert!(
            all.starts_with("\"rules.yml\":\n    - name: \"shop\"\n      interval: 200ms\n"),
            "{all}"
        );
        assert!(all.contains("          for: 300ms\n"), "{all}");
        let (found, group) = status(&server, "GET", &format!("{prefix}/rules.yml/shop"));
        assert_eq!(found, 200);
        // What is shown is a file of rules again.
        let indented: String = group.lines().map(|line| format!("    {line}\n")).collect();
        let again = scratch.path().join("again.yml");
        fs::write(&again, format!("groups:\n  -\n{indented}")).unwrap();
        let output = logpond(&["alerts", "check", again.to_str().unwrap()]);
        assert!(output.status.success(), "{group}: {output:?}");
        assert_eq!(
            status(&server, "GET", &format!("{prefix}/test/test")),
            (404, "group does not exist\n".into())
        );
        assert_eq!(
            status(&server, "GET", &format!("{prefix}/test")),
            (404, "no rule groups found\n".into())
        );
        for method in ["POST", "DELETE"] {
            let (refused, text) = status(&server, method, &format!("{prefix}/rules.yml"));
            assert!(refused == 405 && text.contains("--alert-rules"), "{text}");
        }
    }
    let (refused, text) = status(&server, "POST", "/loki/api/v1/delete?query={}&start=1");
    assert!(
        refused == 404 && text.contains("deletion is not available"),
        "{text}"
    );

    push(&server, "error 1");
    push(&server, "error 2");
    wait_for_state(&server, "firing");
    let output = logpond(&["alerts", "list", "--addr", &server.url()]);
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{output:?}");
    for part in [
        "shop",
        "Errors",
        "firing",
        "ok",
        r#"app="shop" severity="page""#,
    ] {
        assert!(table.contains(part), "{part}: {table}");
    }
    let output = logpond(&[
        "alerts",
        "list",
        "-o",
        "json",
        "--active",
        "--addr",
        &server.url(),
    ]);
    let rule: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(rule["alerts"][0]["labels"]["app"], "shop");
}

#[test]
fn results_of_recording_rules_are_records() {
    let scratch = Scratch::new("alerts-record").unwrap();
    let text = r#"
groups:
  - name: shop
    interval: 200ms
    rules:
      - record: shop:errors:count
        expr: sum by (app) (count_over_time({app="shop"} |= "error" [1h]))
        labels:
          team: web
"#;
    let server = start(&scratch, &rules(&scratch, text), &[]);
    push(&server, "error 1");
    push(&server, "error 2");
    let mut last = Value::Null;
    wait_until("a number is written down", || {
        let (rows, _) = server.query("record=shop:errors:count").unwrap();
        last = rows.into_iter().next_back().unwrap_or_default();
        last["value"].as_f64() == Some(2.0)
    })
    .unwrap_or_else(|e| panic!("{e}: {last}"));
    assert_eq!(
        (&last["app"], &last["team"]),
        (&"shop".into(), &"web".into())
    );
    // As the documentation has it: one series for each set of labels, however many points there are.
    wait_until("there are several points", || {
        server.query("record=shop:errors:count").unwrap().0.len() > 2
    })
    .unwrap();
    let query = r#"max_over_time({record="shop:errors:count"} | json app, value | unwrap value [1h]) by (app)"#;
    let answer = json_of(
        &server,
        &format!("/loki/api/v1/query?query={}", encode(query)),
    );
    let result = answer["data"]["result"].as_array().unwrap();
    assert_eq!(result.len(), 1, "{answer}");
    assert_eq!(result[0]["metric"], serde_json::json!({ "app": "shop" }));
    assert_eq!(result[0]["value"][1], "2");
    let rule = first_rule(&server);
    assert_eq!(
        (&rule["type"], &rule["health"]),
        (&"recording".into(), &"ok".into())
    );
}

/// A rule over all streams must not count what it has written itself, and nobody looks for numbers among logs.
#[test]
fn results_of_rules_are_seen_by_those_who_name_them() {
    let scratch = Scratch::new("alerts-hidden").unwrap();
    let text = r#"
groups:
  - name: all
    interval: 100ms
    rules:
      - record: all:lines:count
        expr: sum by (app) (count_over_time({app=~".+"} [1h]))
"#;
    let server = start(&scratch, &rules(&scratch, text), &[]);
    push(&server, "error 1");
    push(&server, "error 2");
    for is_compacted in [false, true] {
        let before = server.query("_rule:*").unwrap().0.len();
        wait_until("numbers are written down", || {
            server.query("record=all:lines:count").unwrap().0.len() > before + 3
        })
        .unwrap();
        let (numbers, _) = server.query("record:*").unwrap();
        for number in &numbers {
            assert_eq!(number["_rule"], "all:lines:count", "{number}");
            assert_eq!(number["app"], "shop", "{number}");
            assert!(number["value"].as_f64().unwrap() <= 2.0, "{number}");
        }
        for q in ["", "*", "app=shop", "NOT record=other", "value:*"] {
            let (rows, trailer) = server.query(q).unwrap();
            let hidden = rows.iter().all(|row| row.get("_rule").is_none());
            assert!(hidden, "{q}: {rows:?}");
            let expected = if q == "value:*" { 0 } else { 2 };
            assert_eq!(rows.len(), expected, "{q}: {trailer}");
        }
        let get = |target: &str| server.get(target).unwrap();
        let counted = get("/api/v1/query?from=@0&count=true&q=");
        assert!(counted.contains("\"rows\":2,"), "{counted}");
        let around = get("/api/v1/query?from=@0&q=error&before=9&after=9");
        assert!(!around.contains("_rule"), "{around}");
        assert!(!get("/api/v1/fields?from=@0").contains("_rule"));
        assert!(!get("/api/v1/top?from=@0&field=record").contains("all:lines"));
        let all = encode(r#"{app=~".+"}"#);
        assert!(!get(&format!("/loki/api/v1/query_range?query={all}")).contains("all:lines"));
        assert!(!get("/loki/api/v1/labels").contains("record"));
        assert!(!get("/loki/api/v1/series").contains("all:lines"));
        let named = encode(r#"{record="all:lines:count"}"#);
        assert!(get(&format!("/loki/api/v1/query_range?query={named}")).contains("all:lines"));
        if !is_compacted {
            server.compact().unwrap();
        }
    }
}

/// Who evaluates the first group, as a node shows it: nothing if it does so itself.
fn evaluated_by(server: &TestServer) -> Option<String> {
    let groups = json_of(server, "/prometheus/api/v1/rules");
    let owner = groups["data"]["groups"][0]["evaluatedBy"].as_str();
    owner.map(str::to_owned)
}

#[test]
fn another_node_goes_on_when_the_one_that_evaluates_is_gone() {
    let scratch = Scratch::new("alerts-cluster").unwrap();
    let hook = AlertReceiver::listen();
    let url = format!("http://{}/", hook.address);
    let rules = rules(
        &scratch,
        &ERRORS.replace("app=\"shop\"", "app=~\"shop|mail\""),
    );
    let flags = [
        "--alert-rules",
        rules.to_str().unwrap(),
        "--alert-webhook",
        &url,
    ];
    let node = |number: usize, join: Option<&TestServer>| {
        let data = scratch.path().join(format!("node-{number}"));
        start_node(&data, "serve", join, &flags).unwrap()
    };
    let first = node(0, None);
    let mut nodes = [node(1, Some(&first)), first];
    wait_until("one of them evaluates", || {
        let owners = nodes.each_ref().map(evaluated_by);
        owners.iter().flatten().count() == 1
    })
    .unwrap();
    if evaluated_by(&nodes[0]).is_none() {
        nodes.reverse();
    }
    let [other, owner] = nodes;
    assert_eq!(evaluated_by(&other), Some(owner.address("gossip")));
    // The records stay when the node goes that evaluates, but for one that only it has.
    push(&owner, "nothing");
    push(&other, "error 1");
    push(&other, "error 2");
    let fired = hook.next();
    assert_eq!(fired.body["alerts"][0]["labels"]["app"], "shop");
    wait_for_state(&owner, "firing");
    wait_for_state(&other, "firing");
    let of_owner = first_rule(&owner);
    let active_at = of_owner["alerts"][0]["activeAt"].clone();
    assert_eq!(first_rule(&other)["alerts"][0]["activeAt"], active_at);
    let evaluated = first_rule(&other)["lastEvaluation"].clone();

    owner.kill();
    wait_until("the other node evaluates", || {
        evaluated_by(&other).is_none()
            && first_rule(&other)["lastEvaluation"].as_str() > evaluated.as_str()
    })
    .unwrap();
    let rule = first_rule(&other);
    assert_eq!(rule["state"], "firing", "{rule}");
    assert_eq!(
        rule["alerts"][0]["activeAt"], active_at,
        "it has not begun anew"
    );
    for text in ["error 1", "error 2"] {
        let line = format!("{{\"app\":\"mail\",\"_msg\":\"{text}\"}}\n");
        crate::nodes::push(&other, &line);
    }
    // Nothing resolves because a node is silent.
    hook.next_with(|message| {
        assert_eq!(message.body["status"], "firing");
        let mut alerts = message.body["alerts"].as_array().unwrap().iter();
        alerts.any(|alert| alert["labels"]["app"] == "mail")
    });
    let rule = first_rule(&other);
    assert_eq!(rule["health"], "err");
    assert!(
        rule["lastError"].as_str().unwrap().contains("not complete"),
        "{rule}"
    );
}

/// An Alertmanager that runs; dropping it kills the process.
struct Alertmanager {
    child: Child,
    address: String,
}

impl Alertmanager {
    /// Starts one that tells `hook` of what it is told.
    fn start(program: &OsStr, scratch: &Scratch, hook: &AlertReceiver) -> Alertmanager {
        let config = scratch.path().join("alertmanager.yml");
        let text = format!(
            "route: {{ receiver: hook, group_by: [alertname], group_wait: 1s, group_interval: 1s }}\n\
             receivers:\n- name: hook\n  webhook_configs:\n  - url: http://{}/from-alertmanager\n    \
             send_resolved: true\n",
            hook.address
        );
        fs::write(&config, text).unwrap();
        let mut child = Command::new(program)
            .arg(format!("--config.file={}", config.display()))
            .arg(format!(
                "--storage.path={}",
                scratch.path().join("am").display()
            ))
            .args([
                "--web.listen-address=127.0.0.1:0",
                "--cluster.listen-address=",
            ])
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let address = lines.find_map(|line| {
            let line = line.unwrap();
            let behind = line
                .contains("Listening on")
                .then(|| line.split_once("address="))??
                .1;
            Some(behind.split_whitespace().next()?.to_owned())
        });
        // It must not wait for somebody who reads.
        thread::spawn(move || lines.for_each(drop));
        Alertmanager {
            child,
            address: address.expect("an address"),
        }
    }

    /// The alerts that it has.
    fn alerts(&self) -> Vec<Value> {
        let mut client = Client::connect(&self.address).unwrap();
        let response = client.send("GET", "/api/v2/alerts", &[], b"").unwrap();
        serde_json::from_str(&response.text().unwrap()).unwrap()
    }
}

impl Drop for Alertmanager {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A real Alertmanager, if there is one.
#[test]
fn an_alertmanager_takes_what_it_is_sent() {
    let Some(alertmanager) = std::env::var_os("LOGPOND_TEST_ALERTMANAGER") else {
        return say("skipped: Alertmanager because LOGPOND_TEST_ALERTMANAGER names none");
    };
    let scratch = Scratch::new("alerts-alertmanager").unwrap();
    let (behind, hook) = (AlertReceiver::listen(), AlertReceiver::listen());
    let alertmanager = Alertmanager::start(&alertmanager, &scratch, &behind);
    let url = format!("http://{}", alertmanager.address);
    let hook_url = format!("http://{}/", hook.address);
    let flags = ["--alertmanager", &url, "--alert-webhook", &hook_url];
    let server = start(&scratch, &rules(&scratch, ERRORS), &flags);
    push(&server, "error 1");
    push(&server, "error 2");
    wait_until("the Alertmanager has it", || {
        !alertmanager.alerts().is_empty()
    })
    .unwrap();
    let has = alertmanager.alerts();
    let own = &hook.next().body["alerts"][0];
    assert_eq!(has[0]["labels"], own["labels"]);
    assert_eq!(has[0]["annotations"]["summary"], "shop has 2 errors");
    assert_eq!(
        has[0]["fingerprint"], own["fingerprint"],
        "as it makes them"
    );
    assert_eq!(has[0]["generatorURL"], own["generatorURL"]);
    // What it tells its webhook is what ours tells, but for what it knows better.
    let fired = behind.next().body;
    assert_eq!(fired["status"], "firing");
    for name in ["version", "truncatedAlerts"] {
        assert!(!fired[name].is_null(), "{name}");
    }
    let members = |of: &Value| of.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(members(&fired["alerts"][0]), members(own));
    push(&server, "fixed");
    let ended = behind
        .next_with(|message| message.body["status"] == "resolved")
        .body;
    assert_eq!(ended["alerts"][0]["labels"], own["labels"]);
}
