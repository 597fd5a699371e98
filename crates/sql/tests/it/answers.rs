//! What statements answer that the engine alone would answer otherwise.

use crate::source::{Records, run};
use logpond_sql::Sql;

/// More than half of what a `BIGINT` can be.
const LARGE: &str =
    "(VALUES (9223372036854775807, 1), (9223372036854775807, 1), (5, 2), (NULL, 3)) t(x, g)";

#[test]
fn sums_of_whole_numbers_are_right_or_refused() {
    let directory = tempfile::tempdir().unwrap();
    let sql = Sql::new(directory.path().join("spill"));
    let records = Records::new(1000);
    let refused = [
        format!("SELECT sum(x) FROM {LARGE}"),
        format!("SELECT g, sum(x) FROM {LARGE} GROUP BY g"),
        format!("SELECT sum(x) OVER (PARTITION BY g) FROM {LARGE}"),
        format!(
            "SELECT sum(x) OVER (ORDER BY g ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM {LARGE}"
        ),
        format!("SELECT sum(x + 0) FROM {LARGE}"),
        format!("SELECT sum(DISTINCT x) OVER (ORDER BY g) FROM {LARGE}"),
    ];
    for statement in refused {
        let error = run(&sql, &records, &statement).unwrap_err();
        let expected = "a sum is larger than a BIGINT can be";
        assert!(error.message.contains(expected), "{statement}: {error}");
    }
    let table = [
        (
            format!("SELECT sum(CAST(x AS DECIMAL(20, 0))) FROM {LARGE}"),
            "18446744073709551619",
        ),
        (
            format!("SELECT sum(DISTINCT x) FROM {LARGE}"),
            "9223372036854775812",
        ),
        (format!("SELECT sum(x) FROM {LARGE} WHERE g = 2"), "5"),
        (format!("SELECT sum(x) FROM {LARGE} WHERE g = 3"), "\"\""),
        (format!("SELECT sum(x) FROM {LARGE} WHERE false"), "\"\""),
        (
            format!("SELECT sum(x) FROM {LARGE} WHERE x < 6 GROUP BY g"),
            "5",
        ),
        (format!("SELECT sum(-x) - 1 FROM {LARGE} WHERE g = 2"), "-6"),
        (
            "SELECT sum(n), sum(n + 1) FROM logs".to_owned(),
            "501002509,501003509",
        ),
        (
            "SELECT sum(s) FROM (SELECT n % 7, sum(n) AS s FROM logs GROUP BY 1)".to_owned(),
            "501002509",
        ),
        (
            "SELECT max(s) FROM (SELECT sum(n) OVER (ORDER BY time) AS s FROM logs)".to_owned(),
            "501002509",
        ),
        (
            "SELECT sum(1.5), sum(CAST(1 AS INT)) FROM logs".to_owned(),
            "1500.0,1000",
        ),
        ("SELECT arrow_typeof(sum(n)) FROM logs".to_owned(), "Int64"),
    ];
    let total = run(
        &sql,
        &records,
        "SELECT sum(CAST(n AS DECIMAL(20, 0))) FROM logs",
    )
    .unwrap();
    let total = total.lines().nth(1).unwrap();
    let more = total.parse::<i64>().unwrap() + 1000;
    for (statement, expected) in table {
        let text = run(&sql, &records, &statement).unwrap_or_else(|e| panic!("{statement}: {e}"));
        let expected = expected
            .replace("501002509", total)
            .replace("501003509", &more.to_string());
        assert_eq!(text.lines().nth(1), Some(&*expected), "{statement}");
    }
}

#[test]
fn whole_numbers_do_not_wrap() {
    let directory = tempfile::tempdir().unwrap();
    let sql = Sql::new(directory.path().join("spill"));
    let records = Records::new(10);
    for expression in [
        "9223372036854775807 + 1",
        "max(n) * 1000000000000000",
        "-9223372036854775807 - max(n)",
        "sum(n * 9223372036854775807)",
    ] {
        let error = run(&sql, &records, &format!("SELECT {expression} FROM logs")).unwrap_err();
        let expected = "a number is larger than a BIGINT can be";
        assert!(error.message.contains(expected), "{expression}: {error}");
    }
    let table = [
        ("SELECT 2 + 3 * 4 - 1", "13"),
        ("SELECT NULL + 1, CAST(NULL AS BIGINT) * 2", ","),
        (
            "SELECT n % 2 + 1 AS odd, count(*) FROM logs GROUP BY n % 2 + 1 ORDER BY n % 2 + 1",
            "1,5",
        ),
        ("SELECT count(*) FROM logs WHERE n + 1 > 1", "9"),
        (
            "SELECT n - 1 FROM logs ORDER BY n - 1 LIMIT 1 + 1 OFFSET 2 - 2",
            "-1",
        ),
        (
            "SELECT max(CAST(n AS DECIMAL(20, 0)) * 1000000000000000) > 9223372036854775807 FROM logs",
            "true",
        ),
        (
            "SELECT CAST(1 AS INT) + 1, 1 + 0.5, variance(n % 2) FROM logs LIMIT 1",
            "2,1.5,0.2777777777777778",
        ),
    ];
    for (statement, expected) in table {
        let text = run(&sql, &records, statement).unwrap_or_else(|e| panic!("{statement}: {e}"));
        assert_eq!(text.lines().nth(1), Some(expected), "{statement}");
    }
    let text = run(
        &sql,
        &records,
        "SELECT n + 1, sum(n * 2) FROM logs GROUP BY n + 1",
    )
    .unwrap();
    assert!(
        text.starts_with("logs.n + Int64(1),sum(logs.n * Int64(2))\n"),
        "{text}"
    );
    let error = run(&sql, &records, "SELECT max(n)").unwrap_err();
    assert!(
        error.message.contains("the statement has no FROM logs"),
        "{error}"
    );
}

#[test]
fn fractions_leave_nothing_in_a_frame() {
    let directory = tempfile::tempdir().unwrap();
    let sql = Sql::new(directory.path().join("spill"));
    let rows = "(VALUES (1, 1e300), (2, 1e-300), (3, 5.5), (4, 'Infinity'), (5, 0.5), (6, NULL), (7, 'NaN'), (8, 2.0), \
                (9, 4.0)) t(i, v)";
    let table = [
        ("sum(x)", "1e300 1e300 5.5 inf inf 0.5 NaN NaN 6.0"),
        ("avg(x)", "1e300 5e299 2.75 inf inf 0.5 NaN NaN 3.0"),
        ("var_pop(i)", "0.0 0.25 0.25 0.25 0.25 0.25 0.25 0.25 0.25"),
        (
            "stddev(i * 2)",
            " 1.4142135623730951 1.4142135623730951 1.4142135623730951 1.4142135623730951 \
          1.4142135623730951 1.4142135623730951 1.4142135623730951 1.4142135623730951",
        ),
        ("avg(i)", "1.0 1.5 2.5 3.5 4.5 5.5 6.5 7.5 8.5"),
        ("sum(i)", "1 3 5 7 9 11 13 15 17"),
    ];
    for (function, expected) in table {
        let statement = format!(
            "SELECT i, {function} OVER (ORDER BY i ROWS 1 PRECEDING) FROM \
             (SELECT i, CAST(v AS DOUBLE) AS x FROM {rows}) ORDER BY i"
        );
        let text =
            run(&sql, &Records::new(1), &statement).unwrap_or_else(|e| panic!("{function}: {e}"));
        let found: Vec<&str> = text.lines().skip(1).map(|line| &line[2..]).collect();
        assert_eq!(found.join(" "), expected, "{function}");
    }
    // Against frames that only grow, of the same rows.
    let statement = "SELECT count(*) FROM (SELECT avg(n / 7.0) OVER (ORDER BY time ROWS 99 PRECEDING) AS a, \
                     avg(n / 7.0) OVER (ORDER BY time) AS b, row_number() OVER (ORDER BY time) AS r FROM logs) \
                     WHERE abs(a - b) <= 1e-6 * abs(b) AND r <= 100";
    let text = run(&sql, &Records::new(1000), statement).unwrap();
    assert!(text.ends_with("\n100\n"), "{text}");
}

#[test]
fn distinct_values_are_those_of_the_frame() {
    let directory = tempfile::tempdir().unwrap();
    let sql = Sql::new(directory.path().join("spill"));
    let rows = "(VALUES (1, 3), (2, NULL), (3, 5), (4, 3), (5, 3), (6, NULL), (7, NULL)) t(i, x)";
    let table = [
        (
            "ROWS BETWEEN 1 PRECEDING AND CURRENT ROW",
            "1:3 1:3 1:5 2:8 1:3 1:3 0:",
        ),
        (
            "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
            "2:8 2:8 2:8 1:3 1:3 0: 0:",
        ),
        (
            "ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING",
            "1:5 2:8 1:3 1:3 0: 0: 0:",
        ),
        (
            "RANGE BETWEEN 2 PRECEDING AND 1 PRECEDING",
            "0: 1:3 1:3 1:5 2:8 1:3 1:3",
        ),
        (
            "GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
            "1:3 2:8 2:8 2:8 1:3 1:3 0:",
        ),
        ("", "1:3 1:3 2:8 2:8 2:8 2:8 2:8"),
    ];
    for (frame, expected) in table {
        let statement = format!(
            "SELECT count(DISTINCT x) OVER w || ':' || coalesce(CAST(sum(DISTINCT x) OVER w AS VARCHAR), '') \
             FROM {rows} WINDOW w AS (ORDER BY i {frame}) ORDER BY i"
        );
        let text =
            run(&sql, &Records::new(1), &statement).unwrap_or_else(|e| panic!("{frame}: {e}"));
        let found: Vec<&str> = text.lines().skip(1).collect();
        assert_eq!(found.join(" "), expected, "{frame}");
    }
    let moving = "(ORDER BY i ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)";
    let statement = format!("SELECT avg(DISTINCT x) OVER {moving} FROM {rows}");
    let error = run(&sql, &Records::new(1), &statement).unwrap_err();
    let expected = "avg(DISTINCT t.x) has no frame whose beginning moves";
    assert!(error.message.starts_with(expected), "{error}");
}

#[test]
fn similar_to_means_the_whole_text() {
    let directory = tempfile::tempdir().unwrap();
    let sql = Sql::new(directory.path().join("spill"));
    let table = [
        ("'abc' SIMILAR TO 'a%'", "true"),
        ("'abc' SIMILAR TO 'b'", "false"),
        ("'abc' SIMILAR TO 'a(b|c)_'", "true"),
        ("'abc' SIMILAR TO 'a.c'", "false"),
        ("'a.c' SIMILAR TO 'a.c'", "true"),
        ("'abc' NOT SIMILAR TO '%b%'", "false"),
        ("'a\nc' SIMILAR TO 'a_c'", "true"),
        ("NULL SIMILAR TO 'a'", "\"\""),
    ];
    for (condition, expected) in table {
        let statement = format!("SELECT {condition}");
        let text = run(&sql, &Records::new(1), &statement).unwrap();
        assert_eq!(text.lines().last(), Some(expected), "{condition}");
    }
}

#[test]
fn times_need_no_seconds_and_are_in_utc() {
    let directory = tempfile::tempdir().unwrap();
    let sql = Sql::new(directory.path().join("spill"));
    let records = Records::new(10);
    let table = [
        ("time < '2026-03-02 01:00'", "10"),
        ("'1970-01-01T00:00' <= time", "10"),
        (
            "time BETWEEN '1970-01-01 00:00' AND '1970-01-01T00:01Z'",
            "10",
        ),
        ("time < TIMESTAMP '2026-03-02 01:00'", "10"),
        ("time IN ('1970-01-01 00:00', '1970-01-01 00:01')", "10"),
        (
            "time < now() AND n >= 0 AND time < now() - INTERVAL '1 day'",
            "10",
        ),
    ];
    for (condition, expected) in table {
        let statement = format!("SELECT count(*) FROM logs WHERE {condition} AND n + 1 > 0");
        let text = run(&sql, &records, &statement).unwrap_or_else(|e| panic!("{condition}: {e}"));
        assert_eq!(text.lines().nth(1), Some(expected), "{condition}");
    }
    let now = run(&sql, &records, "SELECT now()").unwrap();
    assert!(now.trim_end().ends_with('Z'), "{now}");
}

#[test]
fn answers_have_names_and_types_that_can_be_used() {
    let directory = tempfile::tempdir().unwrap();
    let sql = Sql::new(directory.path().join("spill"));
    let records = Records::new(10);
    let statement = "SELECT a.n, b.n FROM logs a JOIN logs b USING (message) ORDER BY a.n LIMIT 1";
    let text = run(&sql, &records, statement).unwrap();
    assert_eq!(text, "n,n:1\n0,0\n");
    for statement in ["DESCRIBE logs", "SHOW COLUMNS FROM logs"] {
        let text = run(&sql, &records, statement).unwrap();
        for row in [
            "n,BIGINT,",
            "time,TIMESTAMP WITH TIME ZONE,",
            "message,VARCHAR,",
        ] {
            assert!(text.contains(row), "{statement}: {text}");
        }
    }
}

#[test]
fn what_is_not_there_is_said_with_what_is() {
    let directory = tempfile::tempdir().unwrap();
    let sql = Sql::new(directory.path().join("spill"));
    let records = Records::new(10);
    let table = [
        (
            "SELECT mesage FROM logs",
            "no column mesage: did you mean message? There are time, ",
        ),
        (
            "SELECT 1 FROM log",
            "no table log: did you mean logs? There are logs, fields, patterns (SHOW TABLES lists all)",
        ),
        ("SELECT frobnicate(n) FROM logs", "no function frobnicate"),
        (
            "SELECT date_trunk('hour', time) FROM logs",
            "did you mean date_trunc?",
        ),
        (
            "SELECT avg(message) FROM logs",
            "avg takes numbers, and this is text: TRY_CAST(",
        ),
        (
            "SELECT sum(message) FROM logs",
            "sum takes numbers, and this is text: TRY_CAST(",
        ),
        (
            "SELECT stddev(message) FROM logs",
            "stddev takes numbers, and this is text: TRY_CAST(",
        ),
        (
            "SELECT round(message) FROM logs",
            "round takes numbers, and this is text: TRY_CAST(",
        ),
        (
            "SELECT message + 1 FROM logs",
            "the operator + takes numbers, and this is text: TRY_CAST(",
        ),
    ];
    for (statement, expected) in table {
        let error = run(&sql, &records, statement).unwrap_err();
        assert!(error.message.contains(expected), "{statement}: {error}");
    }
}
