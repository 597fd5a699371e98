//! Functions whose results would be far larger than what they are given, over a source in memory.
#![cfg(feature = "engine")]

#[allow(dead_code, reason = "each test uses a part")]
mod source;

use logpond_sql::{Blame, Sql};
use source::{Records, run};

/// Each would take gigabytes.
const REFUSED: [&str; 21] = [
    "SELECT length(repeat('x', 2000000000))",
    "SELECT repeat('x', 9223372036854775807)",
    "SELECT sum(length(repeat(message, 100000))) FROM logs",
    "SELECT length(lpad('x', 2000000000, 'y'))",
    "SELECT length(rpad('x', 2000000000))",
    "SELECT sum(length(lpad(message, 1000000, 'y'))) FROM logs",
    "SELECT sum(length(replace(repeat(message, 500), 'e', repeat('x', 1000)))) FROM logs",
    "SELECT sum(length(regexp_replace(repeat(message, 500), '.', repeat('x', 1000), 'g'))) FROM logs",
    "SELECT cardinality(range(0, 2000000000))",
    "SELECT cardinality(range(2000000000))",
    "SELECT cardinality(generate_series(0, 9223372036854775807))",
    "SELECT cardinality(generate_series(TIMESTAMP '2020-01-01', TIMESTAMP '2026-01-01', INTERVAL '1 millisecond'))",
    "SELECT sum(cardinality(range(0, n + 1000000))) FROM logs",
    "SELECT cardinality(array_repeat('x', 2000000000))",
    "SELECT cardinality(array_resize([1], 2000000000))",
    "SELECT length(array_to_string(range(0, 100000), repeat('x', 1000)))",
    "SELECT sum(length(concat(repeat(message, 500), repeat(message, 500), repeat(message, 500)))) FROM logs",
    "SELECT repeat('x', 1000000) FROM logs",
    "SELECT repeat('x', 1000000) || message FROM logs",
    "SELECT sum(length(to_char(time, repeat('%B', 100000)))) FROM logs",
    "WITH a AS (SELECT repeat(message, 500) AS r FROM logs), b AS (SELECT r || r AS r FROM a), \
     c AS (SELECT r || r AS r FROM b) SELECT max(length(r || r)) FROM c",
];

#[test]
fn results_that_would_fill_the_memory_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let sql = Sql::new(directory.path().join("spill"));
    let records = Records::new(10_000);
    for statement in REFUSED {
        let error = run(&sql, &records, statement).unwrap_err();
        assert_eq!(error.blame, Blame::Statement, "{statement}: {error}");
        assert!(error.message.contains("iB"), "{statement}: {error}");
    }
}

#[test]
fn bounded_functions_answer_as_they_always_did() {
    let directory = tempfile::tempdir().unwrap();
    let sql = Sql::new(directory.path().join("spill"));
    let records = Records::new(10_000);
    let table = [
        ("SELECT repeat('ab', 3)", "ababab"),
        ("SELECT repeat(NULL, 3) IS NULL", "true"),
        ("SELECT length(repeat('x', 1000000))", "1000000"),
        ("SELECT lpad('x', 4, 'yz'), rpad('x', 3)", "yzyx,x  "),
        (
            "SELECT 'a' || NULL IS NULL, 'a' || 1 || true",
            "true,a1true",
        ),
        ("SELECT concat('a', NULL, 1)", "a1"),
        ("SELECT concat_ws('-', 'a', NULL, 'b')", "a-b"),
        ("SELECT replace('aXbX', 'X', 'yy')", "ayybyy"),
        ("SELECT regexp_replace('abc', '(b)', '[\\1]')", "a[b]c"),
        ("SELECT overlay('abcd' PLACING 'XX' FROM 2)", "aXXd"),
        ("SELECT array_to_string(range(0, 4), '-')", "0-1-2-3"),
        ("SELECT array_to_string([1] || [2], '-')", "1-2"),
        ("SELECT cardinality(array_repeat(1, 1000))", "1000"),
        (
            "SELECT cardinality(generate_series(DATE '2026-01-01', DATE '2026-03-01', INTERVAL '1 month'))",
            "3",
        ),
        ("SELECT count(DISTINCT message || n) FROM logs", "10000"),
        // What could be too large, and is not, is computed.
        (
            "SELECT sum(length(replace(message, 'message', repeat('x', 1000)))) FROM logs",
            "10080000",
        ),
        (
            "SELECT sum(length(regexp_replace(message, 'message', repeat('x', 1000)))) FROM logs",
            "10080000",
        ),
        (
            "SELECT max(length(a.r)) FROM (SELECT repeat('x', 10000) AS r) a, logs",
            "10000",
        ),
    ];
    for (statement, expected) in table {
        let text = run(&sql, &records, statement).unwrap_or_else(|e| panic!("{statement}: {e}"));
        assert_eq!(text.lines().nth(1), Some(expected), "{statement}");
    }
    let text = run(&sql, &records, "SELECT message || 'x' FROM logs LIMIT 1").unwrap();
    assert!(
        text.starts_with("\"logs.message || Utf8(\"\"x\"\")\"\n"),
        "{text}"
    );
}
