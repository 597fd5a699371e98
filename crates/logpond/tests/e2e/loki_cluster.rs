//! Loki's interface over real logs: of a cluster each node answers as a single one with the same lines.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::http::encode;
use crate::loki_api::ship_all;
use crate::nodes::{hand_over, node};
use crate::pond::{Scratch, TestServer, wait_until};
use crate::surroundings::{program, shared};

/// When the first line was, in seconds: a whole number of steps.
const START: i64 = 1_700_000_040;

/// How far lines are apart.
const EVERY_NS: i64 = 250_000_000;

/// Lines that are taken of the fixture.
const LINES: usize = 3_000;

const STEP: i64 = 60;

/// Lines of a day on which many tried to log in.
struct Lines(Vec<String>);

impl Lines {
    /// `None` where the fixture is absent.
    fn read() -> Option<Lines> {
        let shared = shared("real lines through Loki's interface")?;
        let text = read(&shared.join("fixtures/rootly/openssh"));
        let lines: Vec<String> = text.lines().take(LINES).map(str::to_owned).collect();
        assert_eq!(lines.len(), LINES);
        Some(Lines(lines))
    }

    /// Sends every so many-th line, from one on, as shippers do: some at a time.
    fn ship(&self, server: &TestServer, first: usize, every: usize) {
        let lines = self.0.iter().enumerate().skip(first).step_by(every);
        let values: Vec<Value> = lines
            .map(|(number, line)| json!([time_ns(number).to_string(), line]))
            .collect();
        for (number, values) in values.chunks(500).enumerate() {
            let labels = json!({ "app": "sshd", "part": number.to_string() });
            ship_all(
                server,
                &json!({ "streams": [{ "stream": labels, "values": values }] }),
            );
        }
    }

    /// How many lines with a word there are, step by step.
    fn counts(&self, word: &str) -> BTreeMap<i64, u64> {
        let mut counts = BTreeMap::new();
        let lines = self.0.iter().enumerate();
        for (number, _) in lines.filter(|(_, line)| line.contains(word)) {
            let second = time_ns(number).div_euclid(1_000_000_000);
            *counts.entry(second - second % STEP).or_default() += 1;
        }
        counts
    }
}

/// The only file of a folder, whatever it is called.
fn read(folder: &Path) -> String {
    let files = fs::read_dir(folder).unwrap();
    let mut paths: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    paths.sort();
    fs::read_to_string(&paths[0]).unwrap()
}

fn time_ns(number: usize) -> i64 {
    START * 1_000_000_000 + number as i64 * EVERY_NS
}

/// What is answered over all of the lines, without what differs from server to server.
fn asked(server: &TestServer, path: &str, parameters: &str) -> Value {
    let end = START + LINES as i64 / 4;
    let range = format!("start={START}&end={end}");
    let target = format!("/loki/api/v1/{path}?{range}&{parameters}");
    let text = server
        .get(&target)
        .unwrap_or_else(|e| panic!("{target}: {e}"));
    let mut answer: Value = serde_json::from_str(&text).unwrap();
    if let Some(Value::Object(data)) = answer.get_mut("data") {
        data.remove("stats");
        data.remove("cursor");
    }
    answer
}

/// The counts of all patterns together, step by step.
fn totals(answer: &Value) -> BTreeMap<i64, u64> {
    let mut totals = BTreeMap::new();
    for pattern in answer["data"].as_array().unwrap() {
        for sample in pattern["samples"].as_array().unwrap() {
            let count = sample[1].as_u64().unwrap();
            *totals.entry(sample[0].as_i64().unwrap()).or_default() += count;
        }
    }
    totals
}

fn check_patterns(server: &TestServer, lines: &Lines) {
    for word in ["", "Invalid user", "nothing says this"] {
        let query = format!(r#"{{app="sshd"}} |= "{word}""#);
        let parameters = format!("query={}&step={STEP}", encode(&query));
        let answer = asked(server, "patterns", &parameters);
        assert_eq!(answer["status"], "success");
        assert_eq!(totals(&answer), lines.counts(word), "{word}");
        let patterns = answer["data"].as_array().unwrap();
        let texts = patterns.iter().map(|one| one["pattern"].as_str().unwrap());
        let is_of_word = |text: &str| text.contains(word);
        assert!(texts.clone().all(is_of_word), "{word}: {patterns:?}");
        // Names, addresses and ports are no part of them.
        assert!(patterns.len() < 100, "{word}: {}", patterns.len());
        assert!(texts.filter(|text| !text.contains("<_>")).count() < 20);
    }
}

#[test]
fn patterns_of_real_lines_count_each() {
    let Some(lines) = Lines::read() else {
        return;
    };
    let scratch = Scratch::new("loki-patterns").unwrap();
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    lines.ship(&server, 0, 1);
    check_patterns(&server, &lines);
    server.compact().unwrap();
    check_patterns(&server, &lines);
}

/// Questions whose answers are the same on all servers with the same lines.
fn questions() -> Vec<(&'static str, String)> {
    let query = |text: &str| format!("query={}", encode(text));
    let failed = query(r#"{app="sshd"} |= "Invalid user""#);
    let logs = [
        format!("{failed}&limit=5000"),
        format!("{failed}&limit=70&direction=forward"),
        format!("{failed}&limit=70"),
    ];
    let numbers = [
        r#"sum by (part) (count_over_time({app="sshd"} |= "Invalid" [1m]))"#,
        r#"topk(3, sum by (user) (rate({app="sshd"} |= "Invalid" | pattern "<_>Invalid user <user> from <_>" [2m])))"#,
        r#"sum(bytes_over_time({app="sshd"}[1m])) / sum(count_over_time({app="sshd"}[1m]))"#,
    ];
    let numbers = numbers.map(|text| format!("{}&step={STEP}", query(text)));
    let mut questions: Vec<_> = logs
        .into_iter()
        .chain(numbers)
        .map(|p| ("query_range", p))
        .collect();
    let all = query(r#"{app="sshd"}"#);
    for path in ["index/volume", "index/stats", "labels", "detected_labels"] {
        questions.push((path, all.clone()));
    }
    questions.push(("index/volume", format!("{all}&targetLabels=part&limit=2")));
    questions.push((
        "index/volume_range",
        format!("{all}&targetLabels=part&step={STEP}"),
    ));
    questions
}

#[test]
fn a_node_answers_as_one_that_has_all() {
    let Some(lines) = Lines::read() else {
        return;
    };
    let scratch = Scratch::new("loki-nodes").unwrap();
    let single = TestServer::start(program(), &scratch.path().join("single"), &[]).unwrap();
    let first = node(&scratch, 0, None).unwrap();
    let second = node(&scratch, 1, Some(&first)).unwrap();
    let third = node(&scratch, 2, Some(&second)).unwrap();
    let nodes = [first, second, third];
    for (number, node) in nodes.iter().enumerate() {
        lines.ship(node, number, nodes.len());
        lines.ship(&single, number, nodes.len());
    }
    for node in &nodes {
        let complete = || asked(node, "series", "").get("warnings").is_none();
        wait_until("the nodes know each other", complete).unwrap();
    }
    let expected: Vec<_> = questions()
        .into_iter()
        .map(|(path, parameters)| (asked(&single, path, &parameters), path, parameters))
        .collect();
    let check = |is_in_segments: bool| {
        for node in &nodes {
            for (expected, path, parameters) in &expected {
                let answer = asked(node, path, parameters);
                // There a line counts as long as those around it on average.
                if is_in_segments && path.starts_with("index/") {
                    assert!(is_near(&answer, expected), "{answer} {expected}");
                } else {
                    assert_eq!(&answer, expected, "{path}?{parameters}");
                }
            }
            check_patterns(node, &lines);
        }
    };
    check(false);
    // Some of the segments are copies.
    nodes.iter().for_each(hand_over);
    check(true);
}

/// Whether two answers differ in nothing but bytes, and so in what has the most, and in these by little.
fn is_near(one: &Value, other: &Value) -> bool {
    let is_so = |one: f64, other: f64| (one - other).abs() <= other / 20.0;
    match (one, other) {
        (Value::Array(one), Value::Array(other)) => {
            let has = |one: &Value| other.iter().any(|other| is_near(one, other));
            one.len() == other.len() && one.iter().all(has)
        }
        (Value::Object(one), Value::Object(other)) => {
            let names = one.keys().eq(other.keys());
            names && one.iter().all(|(name, one)| is_near(one, &other[name]))
        }
        // Bytes are numbers of several digits; the parts, which are labels, have one.
        (Value::String(one), Value::String(other)) if one.len() > 3 => {
            match (one.parse(), other.parse()) {
                (Ok(one), Ok(other)) => is_so(one, other),
                _ => one == other,
            }
        }
        (Value::Number(one), Value::Number(other)) => {
            let (one, other) = (one.as_f64().unwrap(), other.as_f64().unwrap());
            // Times must be equal.
            one.to_bits() == other.to_bits() || other < START as f64 && is_so(one, other)
        }
        _ => one == other,
    }
}
