//! SQL over real servers: the same records as in all other answers, each once, and no more read than
//! is asked for.

use std::io::Write;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::http::encode;
use crate::nodes::{hand_over, push, three};
use crate::pond::{ALL_TIME, Scratch, TestServer, wait_until};
use crate::surroundings::program;

/// Records that are put into segments, and records that stay in the journal.
pub(crate) const STORED: usize = 6000;
pub(crate) const WAITING: usize = 500;

/// The status of a record.
fn status(number: usize) -> u64 {
    [200, 200, 404, 500][number % 4]
}

/// The records from one number to another.
fn records(from: usize, to: usize) -> String {
    let record = |number: usize| {
        let (minute, second) = (number / 60, number % 60);
        let record = json!({
            "time": format!("2026-03-02T{:02}:{:02}:{second:02}Z", minute / 60, minute % 60),
            "_msg": format!("request {number} of {}", number % 97),
            "status": status(number),
            "took": number as f64 / 8.0,
            "ok": number % 4 < 2,
            "host": format!("web-{}", number % 7),
            "mixed": if number.is_multiple_of(2) { json!(number % 5) } else { json!("odd") },
        });
        format!("{record}\n")
    };
    (from..to).map(record).collect()
}

/// A server with records in segments and in the journal.
fn filled(scratch: &Scratch) -> TestServer {
    filled_with(scratch, &[])
}

/// The same with flags.
pub(crate) fn filled_with(scratch: &Scratch, flags: &[&str]) -> TestServer {
    let server = TestServer::start(program(), &scratch.path().join("data"), flags).unwrap();
    let half = STORED / 2;
    for (from, to) in [(0, half), (half, STORED)] {
        let pushed = server.push("application/x-ndjson", records(from, to).as_bytes());
        assert_eq!(pushed.unwrap().status, 200);
        server.compact().unwrap();
    }
    let waiting = records(STORED, STORED + WAITING);
    assert_eq!(
        server
            .push("application/x-ndjson", waiting.as_bytes())
            .unwrap()
            .status,
        200
    );
    server
}

fn send(
    server: &TestServer,
    method: &str,
    target: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> (u16, Vec<u8>) {
    let mut client = server.client().unwrap();
    let response = client
        .send(method, target, headers, body.as_bytes())
        .unwrap();
    (response.status, response.bytes().unwrap())
}

/// The rows of a statement, and the trailer.
pub(crate) fn ask(server: &TestServer, statement: &str) -> (Vec<Value>, Value) {
    let target = format!("/api/v1/sql?query={}", encode(statement));
    let text = server
        .get(&target)
        .unwrap_or_else(|e| panic!("{statement}: {e}"));
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    let mut rows: Vec<Value> = lines.collect();
    let trailer = rows.pop().unwrap()["_trailer"].take();
    assert!(trailer.is_object(), "{statement}: {text}");
    (rows, trailer)
}

/// The rows of a statement whose answer is complete.
pub(crate) fn rows(server: &TestServer, statement: &str) -> Vec<Value> {
    let (rows, trailer) = ask(server, statement);
    assert_eq!(trailer["complete"], true, "{statement}: {trailer}");
    rows
}

/// The only value of the only row.
pub(crate) fn one(server: &TestServer, statement: &str) -> Value {
    let rows = rows(server, statement);
    assert_eq!(rows.len(), 1, "{statement}: {rows:?}");
    rows[0]
        .as_object()
        .unwrap()
        .values()
        .next()
        .unwrap()
        .clone()
}

fn run(server: &TestServer, arguments: &[&str]) -> Output {
    Command::new(program())
        .args(arguments)
        .args(["--addr", &server.url()])
        .output()
        .unwrap()
}

fn printed(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Conditions of SQL, and what the query language has for them.
const CONDITIONS: [(&str, &str); 28] = [
    ("WHERE status = 404", "status=404"),
    ("WHERE status >= 404", "status>=404"),
    ("WHERE status <> 404", "status!=404"),
    ("WHERE status IN (404, 500)", "status=404 OR status=500"),
    ("WHERE took < 10.5", "took<10.5"),
    ("WHERE ok", "ok=true"),
    ("WHERE NOT ok", "ok=false"),
    ("WHERE host = 'web-3'", "host=web-3"),
    (
        "WHERE host = 'web-3' OR status = 500",
        "host=web-3 OR status=500",
    ),
    ("WHERE host LIKE '%b-3%'", "host:\"b-3\""),
    ("WHERE message LIKE '%of 17'", "_msg~/of 17$/"),
    ("WHERE message NOT LIKE '%of 17%'", "NOT _msg:\"of 17\""),
    ("WHERE contains(message, '33')", "_msg:\"33\""),
    (
        "WHERE message ILIKE '%REQUEST 33 %'",
        "_msg:\"request 33 \"",
    ),
    (
        "WHERE message ~ 'request [0-9]3 '",
        "_msg~/request [0-9]3 /",
    ),
    (
        "WHERE line LIKE '%\"status\":500%'",
        "_raw:\"\\\"status\\\":500\"",
    ),
    ("WHERE mixed = 'odd'", "mixed=odd"),
    ("WHERE mixed = '3'", "mixed=3"),
    ("WHERE mixed = 3", "mixed=3"),
    ("WHERE mixed IN (1, 4)", "mixed=1 OR mixed=4"),
    ("WHERE mixed < 3", "mixed<3"),
    ("WHERE mixed BETWEEN 2 AND 3", "mixed>=2 mixed<=3"),
    ("WHERE mixed IS NOT NULL", "mixed:*"),
    ("WHERE level IS NULL", ""),
    (
        "WHERE time >= '2026-03-02T01:00:00Z'",
        "_time>=2026-03-02T01:00:00Z",
    ),
    (
        "WHERE time BETWEEN '2026-03-02T00:00:10Z' AND '2026-03-02T00:00:20Z'",
        "_time>=2026-03-02T00:00:10Z _time<=2026-03-02T00:00:20Z",
    ),
    (
        "WHERE time > '2026-03-02T01:00:00Z' OR host = 'web-1'",
        "_time>2026-03-02T01:00:00Z OR host=web-1",
    ),
    ("WHERE host = 'nobody'", "host=nobody"),
];

#[test]
fn records_of_segments_and_of_the_journal_are_there_once() {
    let scratch = Scratch::new("sql").unwrap();
    let server = filled(&scratch);
    let all = STORED + WAITING;
    let count = |condition: &str| {
        let statement = format!("SELECT count(*) FROM logs {condition}");
        one(&server, &statement).as_u64().unwrap()
    };
    assert_eq!(count(""), all as u64);
    // Conditions that decide what is read count what the query language counts.
    for (condition, filter) in CONDITIONS {
        let (found, trailer) = server.query(filter).unwrap();
        assert_eq!(trailer["complete"], true);
        assert_eq!(count(condition), found.len() as u64, "{condition}");
    }
    let sums = rows(
        &server,
        "SELECT host, count(*) AS n, sum(status) AS s, min(time) AS first FROM logs GROUP BY host ORDER BY host",
    );
    let expected: Vec<Value> = (0..7)
        .map(|host| {
            let numbers: Vec<usize> = (0..all).filter(|n| n % 7 == host).collect();
            let sum: u64 = numbers.iter().map(|n| status(*n)).sum();
            json!({
                "host": format!("web-{host}"),
                "n": numbers.len(),
                "s": sum,
                "first": format!("2026-03-02T00:00:{host:02}Z"),
            })
        })
        .collect();
    assert_eq!(sums, expected);
    // Numbers and texts in one field are texts, and none is lost.
    let mixed = rows(
        &server,
        "SELECT mixed, count(*) AS n FROM logs GROUP BY mixed ORDER BY n DESC, mixed",
    );
    assert_eq!(mixed[0], json!({ "mixed": "odd", "n": all / 2 }));
    assert_eq!(mixed.len(), 6);
    let newest = rows(
        &server,
        "SELECT message, status FROM logs ORDER BY time DESC LIMIT 3",
    );
    let expected: Vec<Value> = (all - 3..all)
        .rev()
        .map(|n| json!({ "message": format!("request {n} of {}", n % 97), "status": status(n) }))
        .collect();
    assert_eq!(newest, expected);
    assert_eq!(rows(&server, "SELECT * FROM logs LIMIT 7").len(), 7);
    let self_join = "SELECT count(*) FROM logs a JOIN logs b ON a._id = b._id";
    assert_eq!(one(&server, self_join), all);
}

#[test]
fn next_to_nothing_is_read_in_vain() {
    let scratch = Scratch::new("sql-pushdown").unwrap();
    let server = filled(&scratch);
    let more = records(STORED + WAITING, 40_000);
    assert_eq!(
        server
            .push("application/x-ndjson", more.as_bytes())
            .unwrap()
            .status,
        200
    );
    // All in segments: what is read of the journal is the same for all.
    server.compact().unwrap();
    server.terminate().unwrap();
    let start = || TestServer::start(program(), &scratch.path().join("data"), &[]).unwrap();
    // By a server of its own: columns that were read are kept for the next statement.
    let read = |statement: &str| {
        let server = start();
        let (_, trailer) = ask(&server, statement);
        assert_eq!(trailer["complete"], true, "{trailer}");
        server.terminate().unwrap();
        trailer["bytes_scanned"].as_u64().unwrap()
    };
    let everything = read("SELECT * FROM logs");
    assert_eq!(read("SELECT count(*) FROM logs"), 0);
    assert_eq!(
        read("SELECT count(*) FROM logs WHERE time > '2027-01-01'"),
        0
    );
    let one_column = read("SELECT host, count(*) FROM logs GROUP BY host");
    let conditions = read("SELECT count(*) FROM logs WHERE host = 'web-1'");
    let rare = read("SELECT message FROM logs WHERE message LIKE '%zebra%'");
    let newest = read("SELECT message FROM logs ORDER BY time DESC LIMIT 1");
    for (what, bytes) in [
        ("column", one_column),
        ("condition", conditions),
        ("word", rare),
        ("newest", newest),
    ] {
        assert!(
            bytes > 0 && bytes * 2 < everything,
            "{what}: {bytes} of {everything}"
        );
    }
    let server = start();
    let one_column = "SELECT host, count(*) FROM logs GROUP BY host";
    let bytes = |statement: &str| ask(&server, statement).1["bytes_scanned"].as_u64();
    assert!(bytes(one_column) > Some(0));
    assert_eq!(bytes(one_column), Some(0), "what was read is kept");
    let explained = rows(
        &server,
        "EXPLAIN SELECT host FROM logs WHERE status = 404 AND message LIKE '%x%' ORDER BY time DESC LIMIT 5",
    );
    let plan = explained
        .iter()
        .map(|row| row["plan"].as_str().unwrap_or_default());
    let plan: String = plan.collect();
    let scan =
        "Scan: filter=status=404 AND _msg:\"x\", columns=[_time, host], order=Backward, limit=5";
    assert!(plan.contains(scan), "{plan}");
    assert!(
        !plan.contains("FilterExec") && !plan.contains("SortExec"),
        "{plan}"
    );
}

/// A statement whose answer has what forms must quote.
const ODD: &str = "SELECT status, count(*) AS n, 'a,\"b' AS odd FROM logs WHERE status > 300 GROUP BY status ORDER BY status";

#[test]
fn answers_come_in_every_form() {
    let scratch = Scratch::new("sql-forms").unwrap();
    let server = filled(&scratch);
    let statement = ODD;
    let (n404, n500) = (1625, 1625);
    let json = printed(&run(&server, &["sql", statement, "-o", "json"]));
    let expected = format!(
        "{{\"status\":404,\"n\":{n404},\"odd\":\"a,\\\"b\"}}\n{{\"status\":500,\"n\":{n500},\"odd\":\"a,\\\"b\"}}\n"
    );
    assert_eq!(json, expected);
    let csv = printed(&run(&server, &["sql", statement, "-o", "csv"]));
    let expected = format!("status,n,odd\r\n404,{n404},\"a,\"\"b\"\r\n500,{n500},\"a,\"\"b\"\r\n");
    assert_eq!(csv, expected);
    let table = printed(&run(&server, &["sql", statement]));
    let cells: Vec<Vec<&str>> = table
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    assert_eq!(cells[0], ["status", "n", "odd"]);
    assert_eq!(cells[1], ["404", "1625", "a,\"b"]);
    // Numbers have the digits that the server sent.
    let exact = "SELECT 1.5e-300 AS a, 'NaN'::double AS b, \
                 '12345678901234567890.123456789'::decimal(38, 9) AS c";
    assert_eq!(
        printed(&run(&server, &["sql", exact, "-o", "csv"])),
        "a,b,c\r\n1.5e-300,NaN,12345678901234567890.123456789\r\n"
    );
    // Times bound the tables.
    let since = [
        "sql",
        "SELECT count(*) AS n FROM logs",
        "-o",
        "csv",
        "--since",
        "2026-03-02T00:01:00Z",
        "--until",
        "2026-03-02T00:02:00Z",
    ];
    assert_eq!(printed(&run(&server, &since)), "n\r\n60\r\n");
    let nothing = run(
        &server,
        &["sql", "SELECT host FROM logs WHERE host = 'nobody'"],
    );
    assert_eq!(nothing.status.code(), Some(1));
}

#[test]
fn statements_come_in_every_form() {
    let scratch = Scratch::new("sql-requests").unwrap();
    let server = filled(&scratch);
    let target = "/api/v1/sql";
    let text = [("content-type", "text/plain")];
    let form = [("content-type", "application/x-www-form-urlencoded")];
    let object = [("content-type", "application/json")];
    let count = "SELECT count(*) AS n FROM logs WHERE host='web-1'";
    let expected = send(&server, "POST", target, &text, count);
    assert_eq!(expected.0, 200);
    let expected = String::from_utf8(expected.1).unwrap();
    let expected = expected.lines().next().unwrap();
    for (headers, body) in [
        (&form, count.to_owned()),
        (&form, format!("query={}", encode(count))),
        (&object, json!({ "query": count }).to_string()),
    ] {
        let (status, answer) = send(&server, "POST", target, headers, &body);
        let answer = String::from_utf8(answer).unwrap();
        assert_eq!(
            (status, answer.lines().next()),
            (200, Some(expected)),
            "{body}"
        );
    }
}

#[test]
fn answers_have_the_form_that_is_asked_for() {
    let scratch = Scratch::new("sql-formats").unwrap();
    let server = filled(&scratch);
    let target = "/api/v1/sql";
    let text = [("content-type", "text/plain")];
    let statement = ODD;
    for (format, media_type, begin, end) in [
        ("csv", "text/csv", &b"status,n,odd\n404,"[..], &b"\n"[..]),
        (
            "arrow",
            "application/vnd.apache.arrow.stream",
            b"\xff\xff\xff\xff",
            b"\xff\xff\xff\xff\0\0\0\0",
        ),
        (
            "parquet",
            "application/vnd.apache.parquet",
            b"PAR1",
            b"PAR1",
        ),
    ] {
        let by_name = format!("{target}?format={format}");
        let by_name = send(&server, "POST", &by_name, &text, statement);
        let accept = [("content-type", "text/plain"), ("accept", media_type)];
        let by_type = send(&server, "POST", target, &accept, statement);
        assert_eq!(by_name, by_type, "{format}");
        let (status, bytes) = by_name;
        assert_eq!(status, 200);
        assert!(
            bytes.starts_with(begin) && bytes.ends_with(end),
            "{format}: {bytes:?}"
        );
    }
    // A filter of the query language bounds the tables, too.
    let target = format!(
        "{target}?q={}&query={}",
        encode("host=web-1 status=500"),
        encode("SELECT count(*) AS n FROM logs WHERE took > 100")
    );
    let both = server
        .query("host=web-1 status=500 took>100")
        .unwrap()
        .0
        .len();
    assert!(
        server
            .get(&target)
            .unwrap()
            .starts_with(&format!("{{\"n\":{both}}}\n"))
    );
}

/// Statements that have no answer, and what is said of them.
const REFUSED: [(&str, &str); 16] = [
    ("SELEC 1", "Expected: an SQL statement"),
    (
        "SELECT nothing FROM logs",
        "no column nothing; there are time, message, ",
    ),
    (
        "SELECT HOST FROM logs WHERE \"Host\" = 'a'",
        "no column Host; there is \"host\": names in double quotes",
    ),
    ("SELECT 1 FROM nowhere", "nowhere"),
    ("SELECT host FROM logs GROUP BY status", "host"),
    ("SELECT count(*) FROM logs WHERE host", "host"),
    ("SELECT frobnicate(host) FROM logs", "frobnicate"),
    (
        "SELECT CAST(message AS INT) FROM logs",
        "is no INTEGER: TRY_CAST(message AS INTEGER)",
    ),
    ("SELECT status / 0 FROM logs", "Divide by zero"),
    ("SELECT * FROM '/etc/passwd'", "/etc/passwd"),
    ("DROP TABLE logs", "DROP is no question"),
    ("COPY logs TO '/tmp/x'", "COPY is no question"),
    (
        "CREATE EXTERNAL TABLE a STORED AS CSV LOCATION '/etc/passwd'",
        "CREATE is no question",
    ),
    (
        "SET datafusion.execution.batch_size = 1",
        "SET is no question",
    ),
    ("SELECT 1; SELECT 2", "more than one statement"),
    ("   ", "there is no statement"),
];

#[test]
fn what_cannot_be_answered_is_said() {
    let scratch = Scratch::new("sql-errors").unwrap();
    let server = filled(&scratch);
    let text = [("content-type", "text/plain")];
    for (statement, why) in REFUSED {
        let (status, answer) = send(&server, "POST", "/api/v1/sql", &text, statement);
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        let message = answer["error"]["message"].as_str().unwrap();
        assert_eq!(status, 400, "{statement}: {answer}");
        assert!(message.contains(why), "{statement}: {message}");
        assert!(message.len() < 600, "{statement}: {message}");
    }
    for (target, status) in [
        ("/api/v1/sql?format=xml&query=SELECT+1", 400),
        ("/api/v1/sql?unknown=1&query=SELECT+1", 400),
        ("/api/v1/sql?q=%28&query=SELECT+1", 400),
        (
            "/api/v1/sql?format=parquet&query=SELECT+INTERVAL+'1+day'+AS+a",
            400,
        ),
        ("/api/v1/sql?format=csv&query=SELECT+[1,+2]+AS+a", 200),
        ("/api/v1/sql", 400),
    ] {
        assert_eq!(send(&server, "GET", target, &[], "").0, status, "{target}");
    }
    let image = [("content-type", "image/png")];
    assert_eq!(send(&server, "POST", "/api/v1/sql", &image, "x").0, 415);
    // As large as statements may be, and as deep as operators go without brackets.
    let sum = vec!["1"; 30_000].join("+");
    let deep = vec!["status = 1"; 4_000].join(" OR ");
    for statement in [
        format!("SELECT {sum} AS n"),
        format!("SELECT count(*) FROM logs WHERE {deep}"),
    ] {
        let (status, _) = send(&server, "POST", "/api/v1/sql", &text, &statement);
        assert!(matches!(status, 200 | 400), "{status}");
    }
    let output = run(&server, &["sql", "SELECT\n a FROM FROM logs"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("line"),
        "{output:?}"
    );
    assert_eq!(one(&server, "SELECT count(*) FROM logs"), STORED + WAITING);
}

/// Results of functions that no statement has memory for, with records and without.
#[test]
fn results_without_room_get_memory_full() {
    let scratch = Scratch::new("sql-memory").unwrap();
    let server = filled(&scratch);
    let text = [("content-type", "text/plain")];
    for statement in [
        "SELECT encode(repeat('x', 30000000), 'hex')",
        "SELECT upper(repeat('x', 60000000))",
        "SELECT max(length(repeat(line, 100000))) FROM logs",
    ] {
        let (status, answer) = send(&server, "POST", "/api/v1/sql", &text, statement);
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        assert_eq!(status, 429, "{statement}: {answer}");
        assert_eq!(answer["error"]["code"], "memory_full", "{statement}");
    }
    assert_eq!(one(&server, "SELECT count(*) FROM logs"), STORED + WAITING);
}

/// A statement that takes longer than anybody waits, in little memory.
const ENDLESS: &str = "SELECT count(*) FROM logs a JOIN (SELECT b.status FROM logs b JOIN \
    (SELECT c.status FROM logs c JOIN logs d ON c.status = d.status) e ON b.status = e.status) f \
    ON a.status = f.status";

/// Sends a statement, and hears nothing of it.
fn begin(server: &TestServer, statement: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server.address("http")).unwrap();
    let target = format!("/api/v1/sql?query={}", encode(statement));
    write!(stream, "GET {target} HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    stream
}

#[test]
fn statements_end_with_their_readers_and_are_only_so_many() {
    let scratch = Scratch::new("sql-cancel").unwrap();
    let server = filled(&scratch);
    let metric = |name: &str| server.metric(name).unwrap();
    let waiting: Vec<TcpStream> = (0..4).map(|_| begin(&server, ENDLESS)).collect();
    wait_until("four statements run", || {
        metric("logpond_queries_active") == 4.0
    })
    .unwrap();
    let mut last = 0;
    // A thread is there before its statement is counted; the fifth waits for its turn in vain.
    wait_until("a fifth is refused", || {
        last = send(&server, "GET", "/api/v1/sql?query=SELECT+1", &[], "").0;
        last == 429
    })
    .unwrap_or_else(|e| panic!("{e}: {last}"));
    assert_eq!(
        server.query("status=404").unwrap().0.len(),
        (STORED + WAITING) / 4
    );
    drop(waiting);
    wait_until("they end", || metric("logpond_queries_active") == 0.0).unwrap();
    assert_eq!(metric("logpond_queries_cancelled_total"), 4.0);
    assert_eq!(one(&server, "SELECT 1 AS n"), 1);
    // A server that stops does not wait for statements.
    let _waiting = begin(&server, ENDLESS);
    wait_until("it runs", || metric("logpond_queries_active") == 1.0).unwrap();
    assert!(server.terminate().unwrap().success());
}

#[test]
fn what_is_spilled_is_gone_after_a_crash() {
    let scratch = Scratch::new("sql-spill").unwrap();
    let data = scratch.path().join("data");
    let spill = data.join("sql-spill");
    let server = TestServer::start(program(), &data, &[]).unwrap();
    assert_eq!(one(&server, "SELECT count(*) FROM logs"), 0);
    assert!(spill.is_dir());
    std::fs::write(spill.join("left"), b"x").unwrap();
    server.kill();
    let server = TestServer::start(program(), &data, &[]).unwrap();
    assert!(!spill.exists());
    // Tables are there before there are records.
    assert_eq!(
        rows(&server, "SELECT time, hostname, level, message FROM logs").len(),
        0
    );
    drop(server);
}

#[test]
fn nodes_answer_for_all_nodes() {
    let scratch = Scratch::new("sql-cluster").unwrap();
    let nodes = three(&scratch);
    let all = 3 * crate::nodes::RECORDS;
    let grouped =
        "SELECT host, status, count(*) AS n FROM logs GROUP BY host, status ORDER BY host, status";
    let check = |nodes: &[TestServer], expected: &[Value]| {
        for node in nodes {
            assert_eq!(one(node, "SELECT count(*) FROM logs"), all);
            assert_eq!(
                one(node, "SELECT count(*) FROM logs WHERE status = 404"),
                all / 4
            );
            assert_eq!(one(node, "SELECT count(DISTINCT message) FROM logs"), all);
            assert_eq!(rows(node, grouped), expected);
            let newest = rows(node, "SELECT message FROM logs ORDER BY time DESC LIMIT 2");
            let message = |n: usize| json!({ "message": format!("request {n} done") });
            assert_eq!(newest, [message(all - 1), message(all - 2)]);
        }
    };
    wait_until("nodes know each other", || {
        nodes
            .iter()
            .all(|node| ask(node, "SELECT count(*) AS n FROM logs").0[0]["n"] == all)
    })
    .unwrap();
    let expected = rows(&nodes[0], grouped);
    assert_eq!(expected.len(), 21);
    check(&nodes, &expected);
    // Two copies of each record, in segments.
    nodes.iter().for_each(hand_over);
    check(&nodes, &expected);
    // Some in segments, some in journals.
    push(&nodes[1], "{\"host\":\"late\",\"_msg\":\"late\"}\n");
    for node in &nodes {
        assert_eq!(one(node, "SELECT count(*) FROM logs"), all + 1);
        assert_eq!(
            one(node, "SELECT message FROM logs WHERE host = 'late'"),
            "late"
        );
    }
    // What only a lost node had is missing, and said; nothing is counted twice.
    let mut nodes = nodes;
    nodes.remove(1).kill();
    let statement = "SELECT count(*) AS n FROM logs";
    wait_until("the node is missed", || {
        let output = run(&nodes[0], &["sql", statement, "-o", "csv"]);
        let count = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            count == format!("n\r\n{all}\r\n") || output.stdout.is_empty(),
            "{output:?}"
        );
        output.status.code() == Some(3)
    })
    .unwrap();
    let strict = run(&nodes[0], &["sql", statement, "--strict"]);
    assert_eq!(
        (strict.status.code(), strict.stdout.is_empty()),
        (Some(3), true),
        "{strict:?}"
    );
}

/// The bytes of a file, and whether one is there that is not complete.
fn exported(path: &Path) -> (Vec<u8>, bool) {
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    (std::fs::read(path).unwrap(), Path::new(&partial).exists())
}

#[test]
fn records_are_exported() {
    let scratch = Scratch::new("sql-export").unwrap();
    let server = filled(&scratch);
    let path = scratch.path().join("logs.parquet");
    let file = path.to_str().unwrap();
    let output = run(
        &server,
        &[
            "export",
            "-o",
            "parquet",
            "-O",
            file,
            "--query",
            "status=404",
        ],
    );
    assert!(output.status.success(), "{output:?}");
    let (bytes, is_partial) = exported(&path);
    assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1") && !is_partial);
    let target = format!("/api/v1/query?{ALL_TIME}&limit=0&q=status%3D404");
    let expected = server.get(&target).unwrap();
    let expected: Vec<&str> = expected.lines().collect();
    let output = run(&server, &["export", "--query", "status=404"]);
    let found = printed(&output);
    assert_eq!(
        found.lines().collect::<Vec<_>>(),
        expected[..expected.len() - 1]
    );
    let nothing = run(&server, &["export", "-q", "--query", "host=nobody"]);
    assert_eq!(
        (nothing.status.code(), nothing.stdout.is_empty()),
        (Some(0), true)
    );
}
