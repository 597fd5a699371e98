//! Functions whose results would be far larger than what they are given, over a source in memory.

use crate::source::{Records, run};
use logpond_sql::{Blame, Sql};

/// Each would take gigabytes.
const REFUSED: [&str; 29] = [
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
    "SELECT encode(repeat('x', 30000000), 'hex')",
    "SELECT length(encode(encode(encode(repeat('x', 4000000), 'hex'), 'hex'), 'hex'))",
    "SELECT repeat('x', 60000000)",
    "SELECT upper(repeat('x', 60000000)), lower(repeat('y', 60000000)), reverse(repeat('z', 60000000))",
    "SELECT CASE WHEN n >= 0 THEN repeat('x', 6000000) END FROM logs LIMIT 1",
    "SELECT max(CASE WHEN n >= 0 THEN repeat('x', 6000000) ELSE message END) FROM logs",
    "SELECT sum(cardinality(array_replace_all(range(0, 1000), 1, n))) + sum(length(array_to_string(\
     array_replace_all(array_repeat('a', 1000), 'a', repeat(message, 20)), ''))) FROM logs",
    "SELECT cardinality(regexp_match(repeat('x', 1000000), '((((((((((((((((((((x*))))))))))))))))))))'))",
];

#[test]
fn results_that_would_fill_the_memory_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let sql = Sql::new(directory.path().join("spill"));
    let records = Records::new(10_000);
    for statement in REFUSED {
        let error = run(&sql, &records, statement).unwrap_err();
        assert_eq!(error.blame, Blame::Memory, "{statement}: {error}");
        assert!(
            error.message.contains("iB") || error.message.contains("MB"),
            "{statement}: {error}"
        );
    }
}

/// Small results that would take minutes, and frames beyond what the engine counts.
const TOO_LONG: &[&str] = &[
    "SELECT levenshtein(repeat('a', 300000), repeat('b', 300000))",
    "SELECT sum(levenshtein(repeat(message, 1000), repeat('b', 30000))) FROM logs",
    "SELECT strpos(repeat('a', 300000), repeat('a', 150000) || 'b')",
    "SELECT position(repeat('a', 150000) || 'b' IN repeat('a', 300000))",
    "SELECT array_has_all(range(0, 100000), range(0, 100000))",
    "SELECT array_has_any(range(0, 100000), range(100000, 200000))",
    "SELECT count(*) OVER (ORDER BY n ROWS BETWEEN 18446744073709551615 PRECEDING AND CURRENT ROW) FROM logs",
    "SELECT count(*) OVER (ORDER BY n ROWS BETWEEN CURRENT ROW AND 9223372036854775808 FOLLOWING) FROM logs",
];

#[test]
fn what_would_take_too_long_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let sql = Sql::new(directory.path().join("spill"));
    let records = Records::new(10);
    for statement in TOO_LONG {
        let error = run(&sql, &records, statement).unwrap_err();
        assert_eq!(error.blame, Blame::Statement, "{statement}: {error}");
        assert!(error.message.contains("at most"), "{statement}: {error}");
    }
}

#[test]
fn lists_and_results_have_a_part_of_the_memory() {
    let directory = tempfile::tempdir().unwrap();
    let sql = Sql::with_memory(directory.path().join("spill"), 512 << 10);
    let records = Records::new(10_000);
    for statement in [
        "SELECT cardinality(array_agg(message)) FROM logs",
        "SELECT length(repeat('x', 20000))",
        "SELECT sum(length(repeat(message, 10))) FROM logs",
    ] {
        let error = run(&sql, &records, statement).unwrap_err();
        assert_eq!(error.blame, Blame::Memory, "{statement}: {error}");
    }
    let few =
        "SELECT cardinality(array_agg(upper(message))) FROM (SELECT message FROM logs LIMIT 9)";
    assert!(run(&sql, &records, few).unwrap().ends_with("\n9\n"));
}

/// Statements whose results are not too large, and these.
const ANSWERED: &[(&str, &str)] = &[
    ("SELECT repeat('ab', 3)", "ababab"),
    (
        "SELECT levenshtein('kitten', 'sitting'), strpos('abc', 'c')",
        "3,3",
    ),
    (
        "SELECT array_has_all([1, 2, 3], [3, 1]), array_has_any([1], [2])",
        "true,false",
    ),
    (
        "WITH RECURSIVE t AS (SELECT 1 AS a, repeat('x', 10) AS b UNION ALL SELECT a + 1, b || b FROM t WHERE a < 3) \
         SELECT sum(length(b)) FROM t",
        "70",
    ),
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
    (
        "SELECT encode('ab', 'hex'), upper('ä'), reverse('abc')",
        "6162,Ä,cba",
    ),
    (
        "SELECT coalesce(NULL, 'a'), nullif('a', 'b'), nvl(NULL, 'c')",
        "a,a,c",
    ),
    ("SELECT arrow_cast(1, 'Utf8'), struct(1, 'a')['c1']", "1,a"),
    (
        "SELECT named_struct('a', 1)['a'], (regexp_match('abc', '(b)'))[1]",
        "1,b",
    ),
    (
        "SELECT array_to_string(array_replace_all([1, 2, 1], 1, 7), ',')",
        "\"7,2,7\"",
    ),
    (
        "SELECT split_part('a-b', '-', 2), substr('abc', 2), trim(' a ')",
        "b,bc,a",
    ),
    (
        "SELECT count(DISTINCT upper(encode(message, 'base64'))) FROM logs",
        "10000",
    ),
    ("SELECT count(DISTINCT message || n) FROM logs", "10000"),
    // Results that could be too large, and are not, are computed.
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

#[test]
fn bounded_functions_answer_as_they_always_did() {
    let directory = tempfile::tempdir().unwrap();
    let sql = Sql::new(directory.path().join("spill"));
    let records = Records::new(10_000);
    for &(statement, expected) in ANSWERED {
        let text = run(&sql, &records, statement).unwrap_or_else(|e| panic!("{statement}: {e}"));
        assert_eq!(text.lines().nth(1), Some(expected), "{statement}");
    }
    let text = run(&sql, &records, "SELECT message || 'x' FROM logs LIMIT 1").unwrap();
    assert!(
        text.starts_with("\"logs.message || Utf8(\"\"x\"\")\"\n"),
        "{text}"
    );
}

#[test]
fn few_addresses_allow_short_statements_or_none() {
    let directory = tempfile::tempdir().unwrap();
    let sql = |mib: u64| Sql::new(directory.path().join("spill")).within_addresses(mib << 20);
    let sum = |parts: usize| format!("SELECT {}", vec!["1"; parts].join(" + "));
    let records = Records::new(1);
    let refused = |mib, text: &str| run(&sql(mib), &records, text).unwrap_err();
    run(&sql(96), &records, &sum(100)).unwrap();
    let long = refused(96, &sum(200)).message;
    assert!(long.contains("more than 125 words"), "{long}");
    let none = refused(95, "SELECT 1");
    assert_eq!(none.blame, Blame::Memory);
    assert!(none.message.contains("ulimit -v leaves 95 MiB"), "{none}");
}
