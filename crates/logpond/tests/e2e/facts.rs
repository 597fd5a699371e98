//! Exact answers against the facts that a generator counted over its own corpora.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::http::encode;
use crate::pond::{ALL_TIME, Scratch, TestServer, push};
use crate::surroundings::{Corpus, corpus, program, say};

/// How much of each corpus is generated.
const CORPUS_BYTES: &str = "10M";

/// The most bytes in one push.
const PUSH_BYTES: usize = 4 << 20;

/// A server that holds a corpus, and a count of what was checked.
struct FactServer {
    server: TestServer,
    corpus: Corpus,
    /// What distinguishes this state in messages: `journal` or `segments`.
    place: &'static str,
    checks: usize,
}

/// Loads a corpus and runs the checks twice: over the journal and over compacted segments.
fn with_corpus(kind: &str, content_type: &str, checks: fn(&mut FactServer)) {
    let Some(corpus) = corpus(kind, CORPUS_BYTES) else {
        return;
    };
    let scratch = Scratch::new(kind).unwrap();
    let server = TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    load(&server, &corpus, content_type);
    let mut checked = FactServer {
        server,
        corpus,
        place: "journal",
        checks: 0,
    };
    checks(&mut checked);
    let output = Command::new(program())
        .args([
            "compact",
            "--wait",
            "--cold",
            "--addr",
            &checked.server.url(),
        ])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    checked.place = "segments";
    checks(&mut checked);
    say(&format!(
        "facts: {kind}: {} answers were exact",
        checked.checks
    ));
    assert!(checked.checks >= 40, "too few checks");
}

/// Brings the file in, by HTTP or by syslog.
fn load(server: &TestServer, corpus: &Corpus, content_type: &str) {
    let bytes = fs::read(&corpus.file).unwrap();
    let lines = corpus.facts["lines"].as_u64().unwrap();
    if content_type == "syslog" {
        server.send_tcp("syslog_tcp", &bytes).unwrap();
        crate::pond::wait_until("all syslog records are visible", || {
            count(server, "").is_ok_and(|found| found == lines)
        })
        .unwrap_or_else(|e| panic!("{e}: {:?} of {lines}", count(server, "")));
        return;
    }
    let mut client = server.client().unwrap();
    let mut accepted = 0;
    let mut rest = &bytes[..];
    while !rest.is_empty() {
        let limit = rest.len().min(PUSH_BYTES);
        let end = rest[..limit].iter().rposition(|b| *b == b'\n').unwrap() + 1;
        let pushed = push(&mut client, content_type, "", &rest[..end]).unwrap();
        assert_eq!(pushed.status, 200, "{}", pushed.body);
        accepted += pushed.accepted();
        rest = &rest[end..];
    }
    assert_eq!(accepted, lines);
}

/// The number of matches.
fn count(server: &TestServer, q: &str) -> Result<u64, String> {
    let target = format!("/api/v1/histogram?{ALL_TIME}&step=100y&q={}", encode(q));
    let text = server.get(&target)?;
    let counts = text.lines().filter_map(|line| {
        let row: Value = serde_json::from_str(line).ok()?;
        row["count"].as_u64()
    });
    Ok(counts.sum())
}

impl FactServer {
    fn fact(&self, name: &str) -> Value {
        let fact = &self.corpus.facts[name];
        assert!(!fact.is_null(), "no fact {name}");
        fact.clone()
    }

    /// The command line's `-c`.
    fn count_is(&mut self, what: &str, arguments: &[&str], expected: u64) {
        let all_time: &[&str] = if arguments.contains(&"--since") {
            &[]
        } else {
            &["--since", "@0", "--until", "2100-01-01"]
        };
        let output = Command::new(program())
            .args(["query", "-c", "--addr", &self.server.url()])
            .args(all_time)
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            text.trim(),
            expected.to_string(),
            "{what} from the {}: {arguments:?}: {said}",
            self.place
        );
        assert_eq!(
            output.status.code(),
            Some(i32::from(expected == 0)),
            "{what}: {said}"
        );
        self.checks += 1;
    }

    /// All values of a field with their counts, in the order of the answer.
    fn top(&self, field: &str, n: usize) -> Vec<(String, u64)> {
        let target = format!("/api/v1/top?{ALL_TIME}&n={n}&field={field}");
        let text = self.server.get(&target).unwrap();
        let rows = text.lines().filter_map(|line| {
            let row: Value = serde_json::from_str(line).unwrap();
            let value = match &row["value"] {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            Some((value, row["count"].as_u64()?))
        });
        rows.collect()
    }

    /// A fact of the form `{"value": count}`.
    fn counts_are(&mut self, field: &str, fact: &str) {
        let mut found = self.top(field, 100_000);
        found.sort();
        let mut wanted: Vec<(String, u64)> = self
            .fact(fact)
            .as_object()
            .unwrap()
            .iter()
            .map(|(value, count)| (value.clone(), count.as_u64().unwrap()))
            .collect();
        wanted.sort();
        assert_eq!(found, wanted, "{field} from the {}", self.place);
        self.checks += 1;
    }

    /// A fact of the form `[["value", count], …]`; equal counts may stand in any order.
    fn top_is(&mut self, field: &str, fact: &str) {
        let wanted: Vec<(String, u64)> = self
            .fact(fact)
            .as_array()
            .unwrap()
            .iter()
            .map(|pair| (pair[0].as_str().unwrap().into(), pair[1].as_u64().unwrap()))
            .collect();
        let found = self.top(field, wanted.len());
        let counts = |rows: &[(String, u64)]| rows.iter().map(|r| r.1).collect::<Vec<_>>();
        assert_eq!(
            counts(&found),
            counts(&wanted),
            "{field} from the {}",
            self.place
        );
        let least = wanted.last().map_or(0, |row| row.1);
        for row in wanted.iter().filter(|row| row.1 > least) {
            assert!(
                found.contains(row),
                "{field} {row:?} from the {}",
                self.place
            );
        }
        self.checks += 1;
    }

    fn distinct_is(&mut self, field: &str, fact: &str) {
        let found = self.top(field, 100_000).len() as u64;
        assert_eq!(
            Some(found),
            self.fact(fact).as_u64(),
            "{fact} from the {}",
            self.place
        );
        self.checks += 1;
    }

    /// What every corpus has: lines, planted words, regex, counts per minute and per day.
    fn common(&mut self) {
        self.count_is("lines", &[""], self.fact("lines").as_u64().unwrap());
        for (needle, fact) in self.fact("needles").as_object().unwrap() {
            self.count_is(needle, &[needle], fact["lines_substring"].as_u64().unwrap());
        }
        let any_case = self.fact("needle_any_case");
        let token = any_case["token"].as_str().unwrap();
        self.count_is(
            "any case",
            &["-i", token],
            any_case["lines"].as_u64().unwrap(),
        );
        let regex = self.fact("regex");
        let pattern = regex["pattern"].as_str().unwrap();
        self.count_is("regex", &["-e", pattern], regex["lines"].as_u64().unwrap());
        self.count_is("absent word", &["neverlogged9q"], 0);
        self.minutes_are();
    }

    /// Counts per minute by the histogram.
    fn minutes_are(&mut self) {
        let fact = self.fact("per_minute");
        let start = "2026-03-02T00:00:00Z";
        assert_eq!(fact["start"], "2026-03-02T00:00Z");
        let wanted: Vec<u64> = fact["counts"]
            .as_array()
            .unwrap()
            .iter()
            .map(|n| n.as_u64().unwrap())
            .collect();
        let target = format!("/api/v1/histogram?from={start}&to=2026-03-09T00:00:00Z&step=60s");
        let text = self.server.get(&target).unwrap();
        let mut found = vec![0; wanted.len()];
        for line in text.lines() {
            let row: Value = serde_json::from_str(line).unwrap();
            let Some(count) = row["count"].as_u64() else {
                continue;
            };
            let minute = minute_of(row["from"].as_str().unwrap());
            if count > 0 {
                found[minute] = count;
            }
        }
        assert!(found == wanted, "counts per minute from the {}", self.place);
        self.checks += 1;
    }

    /// The numbered entry of `checks`.
    fn check_is(&mut self, index: usize, start_of_what: &str, arguments: &[&str]) {
        let check = self.fact("checks")[index].clone();
        let what = check["what"].as_str().unwrap();
        assert!(what.starts_with(start_of_what), "check {index} is {what}");
        self.count_is(what, arguments, check["lines"].as_u64().unwrap());
    }
}

/// Minutes since the start of the corpora, of `2026-03-DDThh:mm:…Z`.
fn minute_of(time: &str) -> usize {
    let number = |range: std::ops::Range<usize>| time[range].parse::<usize>().unwrap();
    assert!(
        time.starts_with("2026-03-") && time.ends_with('Z'),
        "{time}"
    );
    (number(8..10) - 2) * 1440 + number(11..13) * 60 + number(14..16)
}

#[test]
fn access_logs_are_answered_exactly() {
    with_corpus("nginx", "text/plain", |c| {
        c.common();
        c.counts_are("status", "status");
        c.counts_are("method", "methods");
        c.counts_are("host", "hosts");
        c.top_is("remote_addr", "top_ips");
        c.top_is("path", "top_paths_without_query");
        c.top_is("agent", "top_user_agents");
        c.distinct_is("remote_addr", "distinct_ips");
        c.distinct_is("path", "distinct_paths");
        c.distinct_is("agent", "distinct_user_agents");
        c.check_is(0, "status 404", &["", "-f", "status=404"]);
        let post = [
            "",
            "-f",
            "method=POST",
            "-f",
            "status>=400",
            "-f",
            "status<500",
        ];
        c.check_is(1, "method POST and status 400 to 499", &post);
        c.check_is(
            2,
            "host api",
            &["", "-f", "host=api.example.com", "-f", "status>=500"],
        );
        c.check_is(3, "body bytes", &["", "-f", "bytes>=100000"]);
        c.check_is(
            4,
            "client 198",
            &["", "-f", "remote_addr=198.51.100.23", "-f", "status=401"],
        );
        let within = [
            "--since",
            "2026-03-06T11:31:00Z",
            "--until",
            "2026-03-06T11:36:00Z",
        ];
        let orders = ["-e", "^[^\"]*\"GET /v1/orders/[0-9]+ ", "-f", "status=503"];
        c.check_is(5, "GET /v1/orders", &[&orders[..], &within[..]].concat());
    });
}

#[test]
fn application_logs_are_answered_exactly() {
    with_corpus("app", "application/x-ndjson", |c| {
        c.common();
        c.counts_are("level", "level");
        c.counts_are("service", "services");
        c.counts_are("user.country", "user_country");
        c.counts_are("k8s.pod", "pods");
        c.top_is("user.id", "top_users");
        let errors = ["", "-f", "level=error", "-f", "status>=500"];
        c.check_is(0, "level error and status >= 500", &errors);
        let get = [
            "",
            "-f",
            "http.method=GET",
            "-f",
            "status>=400",
            "-f",
            "status<500",
        ];
        c.check_is(1, "http.method GET", &get);
        let trace = c.fact("checks")[2]["what"]
            .as_str()
            .unwrap()
            .replace("trace_id ", "trace_id=");
        c.check_is(2, "trace_id", &["", "-f", &trace]);
        c.check_is(3, "user.id vip", &["", "-f", "user.id=vip-customer-17"]);
        c.check_is(4, "service frontend", &["", "-f", "service=frontend"]);
        let statuses = c.fact("status");
        for (status, lines) in statuses.as_object().unwrap() {
            let filter = format!("status={status}");
            c.count_is(&filter, &["", "-f", &filter], lines.as_u64().unwrap());
        }
    });
}

#[test]
fn syslog_is_answered_exactly() {
    with_corpus("mixed", "syslog", |c| {
        c.common();
        c.counts_are("severity", "severity");
        c.counts_are("facility", "facility");
        c.counts_are("hostname", "hosts");
        c.counts_are("app", "apps");
        c.top_is("app", "top_apps");
        c.top_is("hostname", "top_hosts");
        c.check_is(0, "severity <= 3", &["", "-f", "severity<=3"]);
        c.check_is(1, "app sshd", &["", "-f", "app=sshd", "-f", "severity=4"]);
        c.check_is(2, "host web-03", &["", "-f", "hostname=web-03"]);
        c.check_is(3, "message contains okapi-17", &["okapi-17"]);
        c.check_is(4, "app postgres", &["", "-f", "app=postgres"]);
    });
}
