//! Tokens that are bound to a condition, asked at every endpoint: the answer is that of a server that holds their
//! part of the records only.

mod pushes;
mod questions;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};

use super::client::{Answer, PATIENCE, request};
use super::{TestServer, settings};
use crate::serve::Server;
use logpond_http::routes;
use logpond_listen::tokens::{self, Bounds, Entry, Role, Token, read_label};
use logpond_settings::{AuditLevel, Settings};
use pushes::{Push, pushes_of_another_team};
use questions::{Question, RANGE, questions};

/// The condition of the bound reader.
const CONDITION: &str = "team=payments";

fn create(path: &Path, role: Role, only: Option<&str>, labels: &[&str]) -> Token {
    let token = Token::mint().unwrap();
    let labels = labels.iter().map(|text| read_label(text).unwrap());
    let bounds = Bounds::new(only.map(str::to_owned), labels.collect()).unwrap();
    let entry = Entry::new(&token, None, role, logpond_host::clock::now(), None);
    let entry = entry.bound_by(bounds).unwrap();
    tokens::update(path, |tokens| tokens.add(entry)).unwrap();
    token
}

/// A server with its administrator, and a reader who may be bound.
struct GuardedServer {
    server: TestServer,
    admin: Token,
    reader: Token,
}

impl GuardedServer {
    fn new(only: Option<&str>, change: impl FnOnce(&mut Settings)) -> GuardedServer {
        let directory = tempfile::tempdir().unwrap();
        let mut settings = settings(directory.path());
        settings.require_token = true;
        change(&mut settings);
        let admin = create(&settings.tokens, Role::Admin, None, &[]);
        let reader = create(&settings.tokens, Role::Read, only, &[]);
        let server = Some(Server::start(&settings).unwrap());
        GuardedServer {
            server: TestServer { server, directory },
            admin,
            reader,
        }
    }

    fn ask_by(
        &self,
        token: &Token,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let bearer = format!("Bearer {}", token.expose());
        let mut all = vec![("Authorization", &*bearer)];
        all.extend(headers);
        request(self.server.http(), method, path, &all, body.as_bytes())
    }

    fn ask(&self, token: &Token, method: &str, path: &str, body: &str) -> Answer {
        let content_type = match body {
            "" => "text/plain",
            _ => "application/json",
        };
        let mut headers = vec![("Content-Type", content_type)];
        if path == "/mcp" {
            headers.push(("Accept", "application/json, text/event-stream"));
        }
        self.ask_by(token, method, path, &headers, body)
    }

    fn push(&self, lines: &str) {
        let headers = [("Content-Type", "application/x-ndjson")];
        let answer = self.ask_by(&self.admin, "POST", "/api/v1/push", &headers, lines);
        assert_eq!(answer.status, 200, "{}", text(&answer));
    }

    fn compact(&self) {
        let done = self.ask(&self.admin, "POST", "/api/v1/compact?wait", "");
        assert_eq!(done.status, 200);
    }
}

fn text(answer: &Answer) -> String {
    String::from_utf8_lossy(&answer.body).into_owned()
}

/// Records of two teams and of none, some with fields that only one team has.
fn records() -> Vec<(Value, bool)> {
    let mut all = Vec::new();
    for number in 0..40 {
        let time = format!("2026-11-20T10:00:{number:02}.5Z");
        let record = match number % 5 {
            0 | 3 => json!({
                "time": time, "team": "payments", "level": "info", "app": "till", "status": 200 + number,
                "duration_ms": number, "_msg": format!("paid order {number}"),
            }),
            1 => json!({
                "time": time, "team": "fraud", "level": "error", "app": "watch", "status": 500 + number,
                "suspect": format!("user-{number}"), "secret": true, "_msg": format!("declined card {number}"),
            }),
            2 => json!({
                "time": time, "level": "warn", "app": "till", "_index": "odd",
                "_msg": format!("team=payments says nobody {number}"),
            }),
            _ => json!({
                "time": time, "team": ["payments"], "note": "team=payments", "app": "list",
                "_msg": format!("several teams {number}"),
            }),
        };
        all.push((record, matches!(number % 5, 0 | 3)));
    }
    all
}

fn lines(of: impl Fn(bool) -> bool) -> String {
    let kept = records().into_iter().filter(|(_, is_own)| of(*is_own));
    kept.map(|(record, _)| format!("{record}\n")).collect()
}

/// A server with the records of all for a bound reader, and one with those of the team alone.
fn mixed_and_part() -> (GuardedServer, GuardedServer) {
    let mixed = GuardedServer::new(Some(CONDITION), |_| {});
    let part = GuardedServer::new(None, |_| {});
    mixed.push(&lines(|_| true));
    part.push(&lines(|is_own| is_own));
    (mixed, part)
}

/// An answer without what differs between two servers with the same records: ids, and how long it took.
fn normal(answer: &Answer) -> String {
    let body = text(answer);
    let lines = body.lines().filter(|line| !line.starts_with("__"));
    let lines: Vec<String> = lines
        .map(|line| match serde_json::from_str::<Value>(line) {
            Ok(mut json) => {
                strip(&mut json);
                json.to_string()
            }
            Err(_) => without_ids(line),
        })
        .collect();
    let whole = match serde_json::from_str::<Value>(&body) {
        Ok(mut json) => {
            strip(&mut json);
            json.to_string()
        }
        Err(_) => lines.join("\n"),
    };
    format!("{} {whole}", answer.status)
}

/// Members that differ between two servers with the same records.
const OWN: [&str; 20] = [
    "elapsed_ms",
    "took",
    "bytes_scanned",
    "newest",
    "_received",
    "position",
    "_scroll_id",
    "pit_id",
    "id",
    "execTime",
    "queueTime",
    "subqueries",
    "totalBytesProcessed",
    "bytesProcessedPerSecond",
    "linesProcessedPerSecond",
    "decompressedBytes",
    "totalLinesProcessed",
    "_seq_no",
    "__SEQNUM",
    "__CURSOR",
];

fn strip(json: &mut Value) {
    match json {
        Value::Object(members) => {
            members.retain(|name, _| !OWN.contains(&&**name) && !name.starts_with("__"));
            members.values_mut().for_each(strip);
        }
        Value::Array(values) => values.iter_mut().for_each(strip),
        Value::String(text) => match serde_json::from_str::<Value>(text) {
            // Answers of tools are texts within JSON.
            Ok(mut inner) if inner.is_object() || inner.is_array() => {
                strip(&mut inner);
                *text = inner.to_string();
            }
            _ => {
                let lines: Vec<String> = text.lines().map(without_ids).collect();
                *text = lines.join("\n");
            }
        },
        _ => {}
    }
}

/// A line with `ID` for each id, and without durations.
fn without_ids(line: &str) -> String {
    let is_part = |c: char| c.is_ascii_alphanumeric();
    let mut out = String::new();
    let mut rest = line;
    while let Some(at) = rest.find(is_part) {
        out.push_str(&rest[..at]);
        let word = &rest[at..];
        let end = word.find(|c| !is_part(c)).unwrap_or(word.len());
        let (word, after) = word.split_at(end);
        let is_id = word.len() == 26 && !word.contains(|c: char| c.is_ascii_lowercase());
        // Answers of tools stand between lines with a random name.
        let is_name = word.len() == 32 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
        out.push_str(if is_id || is_name { "ID" } else { word });
        rest = after;
    }
    out.push_str(rest);
    out
}

/// A text with one digit for each number.
fn without_numbers(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        let is_digit = c.is_ascii_digit();
        if !is_digit || !out.ends_with('0') {
            out.push(if is_digit { '0' } else { c });
        }
    }
    out
}

/// Routes that a bound reader is refused.
const REFUSED: [&str; 6] = [
    "GET /api/v1/segments",
    "GET /api/v1/listeners",
    "GET /api/v1/cluster",
    "GET /loki/api/v1/delete",
    "GET /machine",
    "GET /metrics",
];

#[test]
fn a_bound_reader_sees_a_server_with_its_part_only() {
    let (mixed, part) = mixed_and_part();
    let mine = json!({"query": "{team=\"fraud\"}", "description": "of the other team"});
    let saved = mixed.ask(
        &mixed.admin,
        "PUT",
        "/api/v1/saved-queries/mine",
        &mine.to_string(),
    );
    assert_eq!(saved.status, 201, "{}", text(&saved));
    let (mut refused, mut wrong) = (BTreeSet::new(), Vec::new());
    for state in ["journal", "segments"] {
        for (route, methods, needed) in routes() {
            if needed != Some(Role::Read) {
                continue;
            }
            let mut methods = methods.iter().map(|method| method.as_str());
            let method = methods.next().unwrap();
            let asked = questions(method, route);
            assert!(!asked.is_empty(), "{method} {route} is not asked");
            let mut answered = 0;
            for Question { method, path, body } in asked {
                let bound = mixed.ask(&mixed.reader, method, &path, &body);
                if bound.status == 403 {
                    let said = text(&bound);
                    assert!(said.contains("a part of them"), "{method} {path}: {said}");
                    refused.insert(format!("{method} {route}"));
                    continue;
                }
                answered += u32::from(bound.status == 200);
                let alone = part.ask(&part.reader, method, &path, &body);
                let (mut seen, mut expected) = (normal(&bound), normal(&alone));
                if route.starts_with("/loki/api/v1/index/") {
                    // Bytes are estimated from some lines of a block.
                    (seen, expected) = (without_numbers(&seen), without_numbers(&expected));
                }
                if seen != expected {
                    wrong.push(format!(
                        "{state}: {method} {path} {body}\n  {seen}\n  {expected}"
                    ));
                }
                let said = text(&bound);
                for secret in ["user-", "declined card", "says nobody", "several teams"] {
                    if said.contains(secret) {
                        wrong.push(format!("{state}: {method} {path} tells {secret}: {said}"));
                    }
                }
            }
            let is_refused = refused.contains(&format!("{method} {route}"));
            // A tail is no answer but a connection; without rules there are none to list.
            let no_answer = [
                "/loki/api/v1/tail",
                "/loki/api/v1/rules",
                "/api/prom/rules",
                "/_pit",
                "/browse",
            ];
            let needs_id = route.contains("scroll")
                || route.contains("_doc")
                || route.contains("_source")
                || route.contains("_mget")
                || route.contains("/rules/");
            if answered == 0 && !is_refused && !needs_id && !no_answer.contains(&route) {
                wrong.push(format!("{state}: {method} {route} answered nothing"));
            }
        }
        mixed.compact();
        part.compact();
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(refused, REFUSED.map(str::to_owned).into());
}

/// The rows of all records of a server in one page of its administrator.
fn rows(server: &GuardedServer, token: &Token, query: &str) -> Vec<Value> {
    let path = format!("/api/v1/query?from=2026-01-01&to=2036-01-01&q={query}");
    server.ask(token, "GET", &path, "").rows().0
}

fn push_all(server: &GuardedServer, writer: &Token, pushes: &[Push]) {
    for Push {
        path,
        headers,
        body,
    } in pushes
    {
        let answer = server.ask_by(writer, "POST", path, headers, body);
        let said = text(&answer);
        assert!(answer.status < 300, "{path}: {} {said}", answer.status);
    }
}

#[test]
fn a_writer_labels_all_its_records_over_what_they_say() {
    let server = GuardedServer::new(Some("team=payments"), |_| {});
    let path = server.server.directory.path().join("tokens.toml");
    let writer = create(&path, Role::Write, None, &["team=payments"]);
    let other = create(&path, Role::Write, None, &["team=fraud"]);
    let pushes = pushes_of_another_team();
    wait_for(&server, &writer, "POST", "/api/v1/push");
    push_all(&server, &writer, &pushes);
    for state in ["journal", "segments"] {
        let seen = rows(&server, &server.reader, "by");
        assert_eq!(seen.len(), pushes.len(), "{state}: {seen:?}");
        assert_eq!(
            rows(&server, &server.admin, "by").len(),
            pushes.len(),
            "{state}"
        );
        server.compact();
    }
    // The same bytes of another sender are other records, and the reader does not see them.
    wait_for(&server, &other, "POST", "/api/v1/push");
    push_all(&server, &other, &pushes);
    assert_eq!(rows(&server, &server.reader, "by").len(), pushes.len());
    assert_eq!(rows(&server, &server.admin, "by").len(), 2 * pushes.len());
    let metrics = server.server.server().metrics().expose();
    for team in ["payments", "fraud"] {
        let line = format!(
            "logpond_tenant_records_total{{tenant=\"team={team}\"}} {}\n",
            pushes.len()
        );
        assert!(metrics.contains(&line), "{line} in {metrics}");
    }
}

/// Asks until a new token is known.
fn wait_for(server: &GuardedServer, token: &Token, method: &str, path: &str) {
    let started = Instant::now();
    while server.ask(token, method, path, "").status == 401 {
        assert!(started.elapsed() < PATIENCE, "the token is never known");
    }
}

#[test]
fn a_header_names_the_tenant() {
    let server = GuardedServer::new(None, |settings| {
        settings.tenant_header = "X-Scope-OrgID".to_owned();
    });
    let path = server.server.directory.path().join("tokens.toml");
    let writer = create(&path, Role::Write, None, &[]);
    wait_for(&server, &writer, "POST", "/api/v1/push");
    let text_type = ("Content-Type", "text/plain");
    let push = |tenant: &str, body: &str| {
        let headers = [text_type, ("X-Scope-OrgID", tenant)];
        server
            .ask_by(
                &writer,
                "POST",
                "/api/v1/push?label=tenant=x",
                &headers,
                body,
            )
            .status
    };
    assert_eq!(push("5", "tenant=5.0 first\n"), 200);
    assert_eq!(push("5.0", "second\n"), 200);
    assert_eq!(push("b", "{\"tenant\":\"5\"} third\n"), 200);
    assert_eq!(push("a|b", "fourth\n"), 400);
    assert_eq!(push("a b", "fifth\n"), 400);
    let without = server.ask_by(&writer, "POST", "/api/v1/push", &[text_type], "sixth\n");
    assert_eq!(without.status, 403, "{}", text(&without));
    let count = |tenant: &str| {
        let path = "/api/v1/query?from=2026-01-01&to=2036-01-01";
        let answer = server.ask_by(
            &server.reader,
            "GET",
            path,
            &[("X-Scope-OrgID", tenant)],
            "",
        );
        assert_eq!(answer.status, 200, "{}", text(&answer));
        answer.rows().0.len()
    };
    assert_eq!(["5", "5.0", "b", "c"].map(count), [1, 1, 1, 0]);
    assert_eq!(count("5|b"), 2);
    let refused = server.ask(&server.reader, "GET", "/api/v1/query", "");
    assert_eq!(refused.status, 403);
    assert_eq!(rows(&server, &server.admin, "").len(), 3);
    let segments = server.ask_by(
        &server.reader,
        "GET",
        "/api/v1/segments",
        &[("X-Scope-OrgID", "b")],
        "",
    );
    assert_eq!(segments.status, 403);
}

/// Waits for the records of the audit, and checks them.
fn check_audit(server: &GuardedServer) {
    let started = Instant::now();
    let audit = loop {
        let found = rows(server, &server.admin, "record%3Dlogpond.audit");
        let has =
            |name: &str, value: &str| found.iter().any(|row| row[name].as_str() == Some(value));
        if has("action", "tokens")
            && has("endpoint", "POST /api/v1/compact")
            && has("endpoint", "POST /api/v1/sql")
            && has("endpoint", "POST /api/v1/vacuum")
        {
            break found;
        }
        assert!(started.elapsed() < PATIENCE, "{found:?}");
    };
    let of = |endpoint: &str| {
        audit
            .iter()
            .find(|row| row["endpoint"] == endpoint)
            .unwrap()
    };
    let query = of("GET /api/v1/query");
    assert_eq!(query["token"], server.reader.id());
    assert_eq!((&query["status"], &query["rows"]), (&json!(200), &json!(1)));
    assert_eq!(
        (&query["address"], &query["protocol"]),
        (&json!("127.0.0.1"), &json!("http"))
    );
    assert!(
        query["query"].as_str().unwrap().contains("q=hello"),
        "{query}"
    );
    assert!(query["bytes_sent"].as_u64().unwrap() > 0, "{query}");
    assert!(
        query["from"].as_str().unwrap().starts_with("2026-01-01"),
        "{query}"
    );
    assert!(
        of("POST /api/v1/sql")["query"]
            .as_str()
            .unwrap()
            .contains("SELECT count")
    );
    // Refused for its role, and known all the same.
    let refused = of("POST /api/v1/vacuum");
    assert_eq!(refused["token"], server.reader.id());
    assert_eq!(refused["status"], 403);
    assert_eq!(of("POST /api/v1/compact")["action"], "administer");
    assert_eq!(of("POST /api/v1/compact")["what"], "/api/v1/compact?wait");
    let tokens = audit.iter().find(|row| row["action"] == "tokens").unwrap();
    assert!(
        tokens["what"]
            .as_str()
            .unwrap()
            .contains("only team=payments"),
        "{tokens}"
    );
}

fn others_do_not_see_the_audit(server: &GuardedServer) {
    for query in [
        "record%3Dlogpond.audit",
        "_rule:*",
        "record:*",
        "NOT%20_rule%3Dx",
        "administer",
    ] {
        let seen = rows(server, &server.reader, query);
        assert!(
            seen.iter().all(|row| row["action"].is_null()),
            "{query}: {seen:?}"
        );
    }
    let count = server.ask(&server.reader, "GET", "/api/v1/sql?query=SELECT%20count(*)%20AS%20n%20FROM%20logs%20WHERE%20record%3D'logpond.audit'", "");
    assert!(text(&count).contains("\"n\":0"), "{}", text(&count));
}

#[test]
fn the_audit_is_for_administrators() {
    let server = GuardedServer::new(None, |settings| settings.audit_log = AuditLevel::Queries);
    server.push("{\"_msg\":\"hello\"}\n");
    let asked = "/api/v1/query?from=2026-01-01&to=2036-01-01&q=hello";
    assert_eq!(server.ask(&server.reader, "GET", asked, "").status, 200);
    let statement = json!({"query": "SELECT count(*) FROM logs"});
    assert_eq!(
        server
            .ask(
                &server.reader,
                "POST",
                "/api/v1/sql",
                &statement.to_string()
            )
            .status,
        200
    );
    let vacuum = server.ask(&server.reader, "POST", "/api/v1/vacuum?size=1GiB", "");
    assert_eq!(vacuum.status, 403);
    server.compact();
    let path = server.server.directory.path().join("tokens.toml");
    let late = create(&path, Role::Read, Some("team=payments"), &[]);
    wait_for(&server, &late, "GET", "/api/v1/query");
    check_audit(&server);
    others_do_not_see_the_audit(&server);
    // A sender cannot write what passes for it.
    server.push("{\"_msg\":\"forged\",\"_rule\":\"logpond.audit\",\"record\":\"logpond.audit\"}\n");
    let forged = rows(&server, &server.admin, "_rule%3Dlogpond.audit%20forged");
    assert_eq!(forged, Vec::<Value>::new());
    // Reading it is noted once.
    let reads = |found: &[Value]| {
        found
            .iter()
            .filter(|row| {
                row["query"]
                    .as_str()
                    .is_some_and(|text| text.contains("_rule=logpond"))
            })
            .count()
    };
    let started = Instant::now();
    while reads(&rows(&server, &server.admin, "record%3Dlogpond.audit")) == 0 {
        assert!(started.elapsed() < PATIENCE, "never noted");
    }
    assert_eq!(
        reads(&rows(&server, &server.admin, "record%3Dlogpond.audit")),
        1
    );
}

#[test]
fn other_ways_to_a_record_are_closed() {
    let (mixed, _) = mixed_and_part();
    let path = format!("/api/v1/query?{RANGE}&q=declined");
    let rows = mixed.ask(&mixed.admin, "GET", &path, "").rows().0;
    let id = rows[0]["_id"].as_str().unwrap();
    for path in [
        format!("/logpond/_doc/{id}"),
        format!("/logpond/_source/{id}"),
    ] {
        assert_eq!(
            mixed.ask(&mixed.admin, "GET", &path, "").status,
            200,
            "{path}"
        );
        assert_eq!(
            mixed.ask(&mixed.reader, "GET", &path, "").status,
            404,
            "{path}"
        );
    }
    let by_id = format!("/api/v1/query?{RANGE}&q=_id%3D{id}");
    assert_eq!(
        mixed.ask(&mixed.reader, "GET", &by_id, "").rows().0.len(),
        0
    );
    // A scroll of another reader goes on with the part of the one who asks.
    let page = json!({"size": 2, "sort": ["_doc"]}).to_string();
    let scroll = mixed
        .ask(&mixed.admin, "POST", "/_search?scroll=1m", &page)
        .json();
    let next = json!({"scroll": "1m", "scroll_id": scroll["_scroll_id"]}).to_string();
    let said = text(&mixed.ask(&mixed.reader, "POST", "/_search/scroll", &next));
    for secret in ["user-", "declined", "says nobody", "several teams"] {
        assert!(!said.contains(secret), "{said}");
    }
    // A bound token neither changes nor administrates.
    for (method, path) in [
        ("POST", "/api/v1/compact"),
        ("POST", "/api/v1/push"),
        ("PUT", "/api/v1/saved-queries/a"),
    ] {
        assert_eq!(
            mixed.ask(&mixed.reader, method, path, "").status,
            403,
            "{path}"
        );
    }
}
