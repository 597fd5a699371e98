//! Lists that joins, `unnest`, groups and windows would multiply: one test, since it looks at the memory of the
//! process.
#![cfg(feature = "engine")]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "tests cast numbers that they know"
)]

#[allow(dead_code, reason = "each test uses a part")]
mod source;

use logpond_sql::{Blame, Sql};
use source::{Records, run};

const MEMORY_BYTES: usize = 64 << 20;

/// What the process may have: the memory of statements, the texts of results, what waits between operators, and
/// itself.
const RESIDENT_BYTES_MAX: u64 = 700 << 20;

/// The list of all messages, and many records.
const LIST: &str = "(SELECT array_agg(message) AS l, array_agg(n) AS l2 FROM logs)";

/// Each would take gigabytes.
const REFUSED: [&str; 12] = [
    "SELECT sum(cardinality(l)) FROM {LIST} CROSS JOIN logs",
    "SELECT count(*) FROM (SELECT unnest(l) FROM {LIST} CROSS JOIN logs)",
    "SELECT max(cardinality(array_append(l, message))) FROM {LIST}, logs WHERE n % 2 = 0",
    "SELECT count(DISTINCT l) FROM {LIST} JOIN logs ON n > cardinality(l) - 200000",
    "SELECT logs.n, l FROM logs JOIN (SELECT 1 AS one, l FROM {LIST}) ON n % 2 = one ORDER BY n",
    "SELECT count(x), count(l2) FROM (SELECT l2, unnest(l) AS x FROM {LIST})",
    "WITH a AS (SELECT array_concat(l, l) AS l FROM {LIST}), b AS (SELECT array_concat(l, l, l) AS l FROM a), \
     c AS (SELECT array_concat(l, l, l) AS l FROM b), d AS (SELECT array_concat(l, l, l) AS l FROM c) \
     SELECT cardinality(array_concat(l, l)) FROM d",
    "SELECT max(cardinality(x)) FROM (SELECT array_agg(a.n) AS x FROM logs a JOIN logs b ON a.n % 100 = b.n % 100 \
     GROUP BY a.n % 100)",
    "SELECT max(cardinality(x)) FROM (SELECT array_agg(a.message) AS x FROM logs a JOIN logs b \
     ON a.n % 100 = b.n % 100 GROUP BY a.n % 100)",
    "SELECT max(cardinality(l)) FROM (SELECT array_agg(message) OVER () AS l FROM logs)",
    "SELECT max(cardinality(l)) FROM (SELECT array_agg(message) OVER (ORDER BY time) AS l FROM logs)",
    "SELECT max(length(l)) FROM (SELECT string_agg(message, ',') OVER (ORDER BY time) AS l FROM logs)",
];

const ANSWERED: [(&str, &str); 7] = [
    (
        "SELECT count(*) FROM (SELECT unnest(l) FROM {LIST})",
        "40000",
    ),
    (
        "SELECT count(*), max(c) FROM (SELECT unnest(l) AS x, cardinality(l) AS c FROM {LIST})",
        "40000,40000",
    ),
    (
        "SELECT sum(cardinality(l)) FROM (SELECT array_agg(DISTINCT n % 1000) AS l FROM logs), logs",
        "40000000",
    ),
    (
        "SELECT sum(cardinality(x)) FROM (SELECT array_agg(n) AS x FROM logs GROUP BY n % 7)",
        "40000",
    ),
    (
        "SELECT sum(cardinality(x)) FROM (SELECT array_agg(message) AS x FROM logs GROUP BY n % 9999)",
        "40000",
    ),
    (
        "SELECT sum(cardinality(l)) FROM (SELECT array_agg(message) OVER (ORDER BY time ROWS 2 PRECEDING) AS l \
         FROM logs)",
        "119997",
    ),
    (
        "SELECT max(c) FROM (SELECT message, count(*) OVER () AS c FROM logs)",
        "40000",
    ),
];

#[test]
fn lists_are_not_multiplied_without_bound() {
    let directory = tempfile::tempdir().unwrap();
    let sql = Sql::with_memory(directory.path().join("spill"), MEMORY_BYTES);
    let records = Records::new(40_000);
    for statement in REFUSED {
        let statement = statement.replace("{LIST}", LIST);
        let error = run(&sql, &records, &statement).unwrap_err();
        let is_refused = matches!(error.blame, Blame::Statement | Blame::Memory);
        assert!(is_refused, "{statement}: {error}");
        let is_told = error.message.contains("iB") || error.message.contains("needs more memory");
        assert!(is_told, "{statement}: {error}");
    }
    for (statement, expected) in ANSWERED {
        let statement = statement.replace("{LIST}", LIST);
        let text = run(&sql, &records, &statement).unwrap_or_else(|e| panic!("{statement}: {e}"));
        assert_eq!(text.lines().nth(1), Some(expected), "{statement}");
    }
    // A window over everything keeps it.
    let small = Sql::with_memory(directory.path().join("small"), 1 << 20);
    let error = run(
        &small,
        &records,
        "SELECT message, count(*) OVER () FROM logs",
    )
    .unwrap_err();
    assert!(error.message.contains("needs more memory"), "{error}");
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else {
        return;
    };
    let peak = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(peak << 10 <= RESIDENT_BYTES_MAX, "{} MiB", peak >> 10);
}
