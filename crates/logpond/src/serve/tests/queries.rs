use std::time::Instant;

use serde_json::{Value, json};

use super::TestServer;
use super::client::{PATIENCE, begin, compact, get, push, read_chunk, request};

/// Seven records, a second apart, pushed out of order in two batches.
fn filled_server() -> TestServer {
    let server = TestServer::new();
    for batch in [&[5, 1, 3][..], &[0, 6, 2, 4]] {
        let body: String = batch.iter().map(|n| row(*n)).collect();
        assert_eq!(
            push(server.http(), "application/x-ndjson", body.as_bytes()).status,
            200
        );
    }
    server
}

fn row(n: u64) -> String {
    let level = if n.is_multiple_of(3) { "error" } else { "info" };
    format!(r#"{{"time":"2026-03-02T00:00:0{n}Z","msg":"record {n}","level":"{level}","n":{n}}}"#)
        + "\n"
}

fn ask(server: &TestServer, parameters: &str) -> (String, Value) {
    let path = format!("/api/v1/query?from=@0&{parameters}");
    let (rows, trailer) = get(server.http(), &path).rows();
    let texts = rows.iter().map(|r| match r.get("_gap") {
        Some(_) => "|".to_owned(),
        None => r["n"].to_string(),
    });
    (texts.collect(), trailer)
}

#[test]
fn order_limits_pages_and_context() {
    let server = filled_server();
    let table = [
        ("", "0123456"),
        ("direction=backward", "6543210"),
        ("q=level=error", "036"),
        ("q=level=error&direction=backward&limit=2", "63"),
        ("limit=3", "012"),
        ("to=2026-03-02T00:00:02Z", "01"),
        ("q=%22record+3%22&before=1&after=2", "2345"),
        ("q=level=error&before=1", "0|23|56"),
        ("q=level=error&direction=backward&after=1", "6|43|10"),
        ("q=level=error&after=1&limit=2", "01|34"),
        ("q=nothing", ""),
    ];
    for (parameters, expected) in table {
        let (found, trailer) = ask(&server, parameters);
        assert_eq!(found, expected, "{parameters}");
        assert_eq!(trailer["complete"], true);
        assert_eq!(trailer["newest"], "2026-03-02T00:00:06.000000000Z");
    }
    let mut pages = String::new();
    let mut parameters = "limit=2".to_owned();
    loop {
        let (page, trailer) = ask(&server, &parameters);
        pages += &(page + "|");
        let Some(cursor) = trailer["cursor"].as_str() else {
            break;
        };
        assert_eq!(trailer["more"], true);
        parameters = format!("limit=2&cursor={cursor}");
    }
    assert_eq!(pages, "01|23|45|6|");
    let (_, trailer) = ask(&server, "count=true&q=level=info");
    assert_eq!(trailer["rows"], 4);
}

/// A message is found as it is shown, however its line has it.
#[test]
fn made_messages_are_found_in_both_states() {
    let server = TestServer::new();
    let in_object = |inner: &str, n: u64| json!({ "log": inner, "n": n }).to_string();
    let lines = [
        in_object("{\"b\":1,\"user\":\"ann\"}\n", 1),
        in_object("a=1 b=\"x y\"", 2),
        in_object("say \"hi\" to all", 3),
        in_object("{\"msg\":\"f\\u00fcr Anna\",\"k\":1}", 4),
        r#"{"message":["hello","world"],"n":5}"#.to_owned(),
        r#"{"message" : ["order",17,"paid"],"n":6}"#.to_owned(),
        r#"{"level":"info","args":["alpha","beta"],"n":7}"#.to_owned(),
        in_object("CEF:0|v|p|1|1|n|5|msg=a\\=b done", 8),
    ];
    let body = lines.join("\n");
    let pushed = push(server.http(), "application/x-ndjson", body.as_bytes());
    assert_eq!(pushed.status, 200);
    let table = [
        (r#""\"user\":\"ann\"""#, "1"),
        (r#""\"b\":1""#, "1"),
        (r#""b=\"x y\"""#, "2"),
        (r#""say \"hi\"""#, "3"),
        (r#"/"user":"a/"#, "1"),
        (r#"NOT "\"user\":\"ann\"" AND n<3"#, "2"),
        (r#""für Anna""#, "4"),
        (r#""für""#, "4"),
        (r#"_msg="für Anna""#, "4"),
        (r#""hello world""#, "5"),
        (r#"_msg="hello world""#, "5"),
        (r#""order 17 paid""#, "6"),
        (r#""alpha beta""#, "7"),
        (r#""a=b done""#, "8"),
    ];
    for state in ["journal", "segment"] {
        for (query, expected) in table {
            let mut q = String::new();
            logpond_client::encode(query.as_bytes(), &mut q);
            let (found, _) = ask(&server, &format!("q={q}"));
            assert_eq!(found, expected, "{query} in a {state}");
        }
        compact(server.http());
    }
}

#[test]
fn context_is_the_same_over_segments_and_journal() {
    let server = TestServer::new();
    // Times go back and forth and are often equal; some records go to a segment, others stay in
    // the journal.
    let body = |numbers: std::ops::Range<u64>| -> String {
        let line = |n: u64| {
            let (time, level) = (n * 7919 % 400, if n % 97 == 5 { "rare" } else { "info" });
            format!(
                "{{\"time\":{},\"level\":\"{level}\",\"n\":{n}}}\n",
                1_772_409_600 + time
            )
        };
        numbers.map(line).collect()
    };
    push(
        server.http(),
        "application/x-ndjson",
        body(0..1500).as_bytes(),
    );
    let headers = [("Content-Length", "0")];
    let compacted = request(server.http(), "POST", "/api/v1/compact?wait", &headers, b"");
    assert_eq!(compacted.status, 200);
    push(
        server.http(),
        "application/x-ndjson",
        body(1500..2000).as_bytes(),
    );
    let numbers = |parameters: &str| -> Vec<Option<u64>> {
        let path = format!("/api/v1/query?from=@0&{parameters}");
        let (rows, _) = get(server.http(), &path).rows();
        rows.iter().map(|row| row["n"].as_u64()).collect()
    };
    for direction in ["forward", "backward"] {
        let all: Vec<u64> = numbers(&format!("direction={direction}"))
            .into_iter()
            .flatten()
            .collect();
        assert_eq!(all.len(), 2000);
        for (before, after, limit) in [(1, 0, 0), (0, 3, 0), (2, 2, 5), (30, 60, 0), (0, 1, 1)] {
            let (ahead, behind) = match direction {
                "forward" => (before, after),
                _ => (after, before),
            };
            let mut context = logpond_search::context::Context::new(ahead, behind);
            let (mut expected, mut matches, mut left) = (Vec::new(), 0, 0);
            for n in &all {
                let is_match = n % 97 == 5;
                if matches == limit && limit > 0 && (is_match || left == 0) {
                    break;
                }
                matches += u64::from(is_match);
                left = if is_match {
                    behind
                } else {
                    left.saturating_sub(1)
                };
                context.push(*n, is_match, |shown| {
                    expected.push(match shown {
                        logpond_search::context::ContextItem::Separator => None,
                        logpond_search::context::ContextItem::Match(n)
                        | logpond_search::context::ContextItem::Context(n) => Some(n),
                    });
                });
            }
            let found = numbers(&format!(
                "q=level=rare&before={before}&after={after}&limit={limit}&direction={direction}"
            ));
            assert_eq!(
                found, expected,
                "{direction} -B{before} -A{after} -n{limit}"
            );
        }
    }
}

/// The rows of an answer, of all in its order: those near each match that is shown, with gaps.
fn near(all: &[u64], shown: &[usize], (ahead, behind): (usize, usize)) -> Vec<Option<u64>> {
    let is_near = |at: &usize| {
        let mut matches = shown.iter();
        matches.any(|found| at + ahead >= *found && *at <= found + behind)
    };
    let mut rows = Vec::new();
    let mut last: Option<usize> = None;
    for at in (0..all.len()).filter(is_near) {
        if last.is_some_and(|last| last + 1 < at) {
            rows.push(None);
        }
        rows.push(Some(all[at]));
        last = Some(at);
    }
    rows
}

/// Every match that is shown has its context: beyond the range, before the page, and where others match, too.
#[test]
fn context_belongs_to_each_match_that_is_shown() {
    let server = TestServer::new();
    let time = |n: u64| 1_772_409_600 + n * 7919 % 50 * 3600 * 12;
    let is_match = |n: u64| n % 7 < 2;
    let body = |numbers: std::ops::Range<u64>| -> String {
        let line = |n: u64| {
            let level = if is_match(n) { "rare" } else { "info" };
            format!("{{\"time\":{},\"level\":\"{level}\",\"n\":{n}}}\n", time(n))
        };
        numbers.map(line).collect()
    };
    let push = |numbers| {
        push(
            server.http(),
            "application/x-ndjson",
            body(numbers).as_bytes(),
        )
    };
    push(0..300);
    let headers = [("Content-Length", "0")];
    let compacted = request(server.http(), "POST", "/api/v1/compact?wait", &headers, b"");
    assert_eq!(compacted.status, 200);
    push(300..400);
    let ask = |parameters: &str| {
        let (rows, trailer) = get(server.http(), &format!("/api/v1/query?{parameters}")).rows();
        let rows = rows.iter().map(|row| row["n"].as_u64());
        (rows.collect::<Vec<_>>(), trailer)
    };
    let ranges = [
        (0, u64::MAX),
        (1_772_409_600 + 3600 * 60, 1_772_409_600 + 3600 * 200),
    ];
    for direction in ["forward", "backward"] {
        let (all, _) = ask(&format!("from=@0&direction={direction}"));
        let all: Vec<u64> = all.into_iter().flatten().collect();
        assert_eq!(all.len(), 400);
        let contexts = [(3, 0, 1), (0, 3, 1), (2, 1, 7), (1, 1, 0), (40, 40, 2)];
        for ((before, after, limit), (from, to)) in contexts
            .into_iter()
            .flat_map(|context| ranges.map(|range| (context, range)))
        {
            let around = match direction {
                "forward" => (before, after),
                _ => (after, before),
            };
            let is_found = |n: u64| is_match(n) && (from..to).contains(&time(n));
            let found: Vec<usize> = (0..all.len()).filter(|at| is_found(all[*at])).collect();
            let mut asked = format!(
                "q=level=rare&before={before}&after={after}&limit={limit}&direction={direction}&from=@{from}"
            );
            if to != u64::MAX {
                asked.push_str(&format!("&to=@{to}"));
            }
            let pages = found.chunks(if limit == 0 { found.len() } else { limit });
            let mut cursor = String::new();
            for (at, page) in pages.enumerate() {
                let (rows, trailer) = ask(&format!("{asked}{cursor}"));
                assert_eq!(rows, near(&all, page, around), "{asked}{cursor}");
                assert_eq!(trailer["rows"], page.len(), "{asked}{cursor}: {trailer}");
                assert_eq!(trailer["complete"], true, "{asked}{cursor}: {trailer}");
                let is_last = limit == 0 || (at + 1) * limit >= found.len();
                assert_eq!(trailer["more"] == true, !is_last, "{asked}{cursor}");
                // Some pages are enough of many.
                let Some(next) = trailer["cursor"].as_str().filter(|_| at < 12) else {
                    break;
                };
                cursor = format!("&cursor={next}");
            }
        }
    }
}

#[test]
fn a_long_query_may_come_as_a_form() {
    let server = filled_server();
    let headers = [("Content-Type", "application/x-www-form-urlencoded")];
    let body = b"from=%400&q=level%3Derror+AND+%22record+6%22";
    let (rows, _) = request(server.http(), "POST", "/api/v1/query", &headers, body).rows();
    assert_eq!((rows.len(), &rows[0]["n"]), (1, &6.into()));
}

#[test]
fn a_query_may_come_as_json_and_no_body_is_ignored() {
    let server = filled_server();
    let ask = |content_type: &str, body: &str| {
        let headers = [("Content-Type", content_type)];
        request(
            server.http(),
            "POST",
            "/api/v1/query",
            &headers,
            body.as_bytes(),
        )
    };
    let body = r#"{"from":"@0","q":"level=error AND \"record 6\"","limit":5}"#;
    let (rows, _) = ask("application/json; charset=utf-8", body).rows();
    assert_eq!((rows.len(), &rows[0]["n"]), (1, &6.into()));
    assert_eq!(ask("application/json", r#"{"nonsense":1}"#).status, 400);
    assert_eq!(ask("application/json", "[").status, 400);
    assert_eq!(ask("text/plain", body).status, 415);
}

#[test]
fn tables() {
    let server = filled_server();
    let (rows, trailer) = get(server.http(), "/api/v1/top?from=@0&field=level").rows();
    assert_eq!(rows[0], serde_json::json!({"value": "info", "count": 4}));
    assert_eq!((rows.len(), &trailer["rows"]), (2, &7.into()));
    let path = "/api/v1/histogram?from=2026-03-02T00:00:00Z&to=2026-03-02T00:00:08Z&step=4s";
    let (rows, _) = get(server.http(), path).rows();
    let counts: Vec<_> = rows.iter().map(|r| r["count"].as_u64().unwrap()).collect();
    assert_eq!(counts, [4, 3]);
    assert_eq!(rows[1]["from"], "2026-03-02T00:00:04.000000000Z");
    let path = "/api/v1/patterns?from=2026-03-02T00:00:00Z&to=2026-03-02T00:00:08Z&step=4s&n=1";
    let (rows, trailer) = get(server.http(), path).rows();
    let (first, pattern) = (&rows[0], &rows[0]["pattern"]);
    assert_eq!(
        (pattern, &trailer["rows"]),
        (&"record <_>".into(), &7.into())
    );
    assert_eq!(
        (&first["count"], &first["level"]),
        (&4.into(), &"info".into())
    );
    assert_eq!(first["samples"].as_array().unwrap().len(), 3);
    assert_eq!(get(server.http(), "/api/v1/patterns?step=0s").status, 400);
    let (rows, _) = get(server.http(), "/api/v1/fields?from=@0").rows();
    let level = rows.iter().find(|r| r["field"] == "level").unwrap();
    assert_eq!((&level["rows"], &level["distinct"]), (&7.into(), &2.into()));
    let (rows, trailer) = get(server.http(), "/api/v1/stats?from=@0&field=n&by=level").rows();
    let info = rows.iter().find(|row| row["value"] == "info").unwrap();
    assert_eq!((rows.len(), &trailer["rows"]), (2, &7.into()));
    let sum: u64 = rows.iter().map(|row| row["sum"].as_u64().unwrap()).sum();
    assert_eq!((&info["count"], sum), (&4.into(), (0..7).sum()));
    assert_eq!(get(server.http(), "/api/v1/stats").status, 400);
    let (rows, _) = get(server.http(), "/api/v1/segments").rows();
    assert_eq!(rows[0]["rows"], 7);
}

#[test]
fn followers_get_what_arrives_and_nothing_twice() {
    let mut server = filled_server();
    let path = "/api/v1/query?from=@0&follow=true&q=level=error";
    let mut reader = begin(server.http(), path);
    let mut seen = String::new();
    let mut last = Value::Null;
    let mut read_until = |count: usize, seen: &mut String, last: &mut Value| {
        let mut rows = 0;
        while rows < count {
            let chunk = read_chunk(&mut reader).expect("more rows");
            for line in std::str::from_utf8(&chunk).unwrap().lines() {
                *last = serde_json::from_str(line).unwrap();
                seen.push_str(&last["n"].to_string());
                rows += 1;
            }
        }
        assert_eq!(rows, count, "{seen}");
    };
    read_until(3, &mut seen, &mut last);
    for n in [9, 8] {
        push(server.http(), "application/x-ndjson", row(n).as_bytes());
    }
    read_until(1, &mut seen, &mut last);
    assert_eq!(seen, "0369");
    // Back after a restart, with the last record seen and one missed meanwhile.
    let cursor = format!(
        "{}_{}",
        last["_time"].as_str().unwrap(),
        last["_id"].as_str().unwrap()
    );
    drop(reader);
    push(server.http(), "application/x-ndjson", row(3).as_bytes());
    server.restart();
    let path = format!("/api/v1/query?from=@0&follow=true&q=level=error&limit=1&cursor={cursor}");
    let (rows, _) = get(server.http(), &path).rows();
    assert_eq!((rows.len(), &rows[0]["n"]), (1, &3.into()));
}

/// While nobody reads, files come and go that a follower never saw.
#[test]
fn followers_get_what_was_stored_before_they_came_to_it() {
    let server = TestServer::new();
    let mut reader = begin(server.http(), "/api/v1/query?from=@0&follow=true");
    // More than is on its way to somebody who does not read.
    let body = format!("{}\n", "x".repeat(1000)).repeat(20_000);
    for _ in 0..2 {
        assert_eq!(
            push(server.http(), "text/plain", body.as_bytes()).status,
            200
        );
    }
    let push_line = |line: &str| {
        assert_eq!(
            push(server.http(), "text/plain", line.as_bytes()).status,
            200
        );
    };
    for line in ["first", "second", "third"] {
        push_line(line);
        compact(server.http());
    }
    push_line("last");
    let (mut filler, mut others) = (0, Vec::new());
    while filler + others.len() < 40_004 {
        let chunk = read_chunk(&mut reader).expect("more rows");
        for line in std::str::from_utf8(&chunk).unwrap().lines() {
            let row: Value = serde_json::from_str(line).unwrap();
            let text = row["_msg"].as_str().unwrap();
            if text.starts_with('x') {
                filler += 1
            } else {
                others.push(text.to_owned())
            }
        }
    }
    assert_eq!(others, ["first", "second", "third", "last"]);
}

#[test]
fn a_reader_that_stalls_holds_little_and_one_that_leaves_ends_the_query() {
    let server = TestServer::new();
    let line = "x".repeat(1000);
    let body = format!("{line}\n").repeat(20_000);
    for _ in 0..4 {
        assert_eq!(
            push(server.http(), "text/plain", body.as_bytes()).status,
            200
        );
    }
    let before = resident_bytes();
    let mut streams: Vec<_> = (0..3)
        .map(|_| {
            let mut reader = begin(server.http(), "/api/v1/query");
            assert!(read_chunk(&mut reader).is_some());
            reader
        })
        .collect();
    // Answers of 250 MB in all wait; each query may hold a window and a few chunks.
    let held = resident_bytes().saturating_sub(before);
    assert!(held < 160 << 20, "{held} bytes are held");
    let mut whole = streams.pop().unwrap();
    drop(streams);
    let mut rows = 1;
    while let Some(chunk) = read_chunk(&mut whole) {
        rows += chunk.iter().filter(|b| **b == b'\n').count();
    }
    assert!(rows > 79_000, "{rows}");
    let metrics = server.server().metrics().clone();
    while metrics.queries_active.get() > 0 {
        std::thread::yield_now();
    }
    assert_eq!(metrics.queries_cancelled.get(), 2);
}

fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|l| l.starts_with("VmRSS:")).unwrap();
    line.split_ascii_whitespace()
        .nth(1)
        .unwrap()
        .parse::<u64>()
        .unwrap()
        * 1024
}

#[test]
fn a_compaction_is_begun_or_waited_for() {
    let server = TestServer::new();
    let states = || -> Vec<String> {
        let (rows, _) = get(server.http(), "/api/v1/segments").rows();
        let state = |row: &Value| row["state"].as_str().unwrap().to_string();
        rows.iter().map(state).collect()
    };
    push(server.http(), "text/plain", b"one\n");
    let begun = request(server.http(), "POST", "/api/v1/compact?cold", &[], b"");
    assert_eq!(
        (begun.status, begun.json()),
        (202, json!({ "started": true }))
    );
    let started = Instant::now();
    while states() != ["cold"] {
        assert!(started.elapsed() < PATIENCE, "{:?}", states());
    }
    push(server.http(), "text/plain", b"two\n");
    let done = request(server.http(), "POST", "/api/v1/compact?cold&wait", &[], b"");
    assert_eq!(
        (done.status, &done.rows().1["complete"]),
        (200, &true.into())
    );
    assert_eq!(states(), ["cold"]);
}
