//! Percentiles, as the standard has them.

use crate::source::{Records, run};
use logpond_sql::Sql;

const EVEN: &str = "(VALUES (7, 'b'), (1, 'a'), (NULL, 'a'), (4, 'b'), (2, 'a')) t(x, g)";
const ODD: &str = "(VALUES (1),(2),(4),(7),(NULL),(11),(12),(13),(14),(15),(16),(20)) t(x)";
const TIMES: &str = "(VALUES (TIMESTAMP '1970-01-01 00:00'), (TIMESTAMP '1970-01-01 03:00')) t(x)";

#[test]
fn percentiles_are_exact() {
    let directory = tempfile::tempdir().unwrap();
    let sql = Sql::new(directory.path().join("spill"));
    let records = Records::new(10_000);
    let table = [
        (format!("SELECT median(x) FROM {EVEN}"), "3.0"),
        (format!("SELECT median(x) FROM {ODD}"), "12.0"),
        (
            format!(
                "SELECT percentile_cont(0.9) WITHIN GROUP (ORDER BY x), \
                 percentile_cont(0.9) WITHIN GROUP (ORDER BY x DESC), quantile_cont(x, 0.25) FROM {ODD}"
            ),
            "16.0,2.0,5.5",
        ),
        (
            format!(
                "SELECT percentile_cont(0.3333333) WITHIN GROUP (ORDER BY x * 1000000) FROM {EVEN}"
            ),
            "1999999.9",
        ),
        (
            format!(
                "SELECT quantile_cont(x, 0), quantile_cont(x, 1), quantile_cont(x, 1 - 0.5) FROM {EVEN}"
            ),
            "1.0,7.0,3.0",
        ),
        (
            format!(
                "SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY x), quantile_disc(x, 0.51), \
                 percentile_disc(0.25) WITHIN GROUP (ORDER BY x DESC), quantile_disc(x, 0) FROM {EVEN}"
            ),
            "2,4,7,1",
        ),
        (
            format!(
                "SELECT g, median(x), median(x) FILTER (WHERE x > 1) FROM {EVEN} GROUP BY g ORDER BY g"
            ),
            "a,1.5,2.0",
        ),
        (format!("SELECT median(x) FROM {EVEN} WHERE x > 99"), "\"\""),
        (format!("SELECT median(DISTINCT x / 4) FROM {ODD}"), "2.5"),
        (
            format!(
                "SELECT median(x), median(x - TIMESTAMP '1970-01-01'), quantile_disc(x, 0.5) FROM {TIMES}"
            ),
            "1970-01-01T01:30:00,PT5400S,1970-01-01T00:00:00",
        ),
    ];
    for (statement, expected) in table {
        let text = run(&sql, &records, &statement).unwrap_or_else(|e| panic!("{statement}: {e}"));
        assert_eq!(text.lines().nth(1), Some(expected), "{statement}");
    }
    // Of groups, each of which comes in parts: the same as of a sorted list.
    let by_hand = "SELECT g, (s[(count + 1) / 2] + s[(count + 2) / 2]) / 2.0 FROM (SELECT n % 30 AS g, \
                   array_agg(n ORDER BY n) AS s, count(*) AS count FROM logs GROUP BY g) ORDER BY g";
    let medians = "SELECT n % 30 AS g, median(n) FROM logs GROUP BY g ORDER BY g";
    let [by_hand, medians] = [by_hand, medians].map(|text| run(&sql, &records, text).unwrap());
    let rows = |text: &str| text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(rows(&medians), rows(&by_hand));
}

#[test]
fn percentiles_of_frames_follow_them() {
    let directory = tempfile::tempdir().unwrap();
    let sql = Sql::new(directory.path().join("spill"));
    let frame = "(ORDER BY i ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)";
    let rows = "(VALUES (1, 5), (2, 1), (3, NULL), (4, 1), (5, 9)) t(i, x)";
    let statement = format!(
        "SELECT median(x) OVER {frame}, median(DISTINCT x) OVER {frame}, percentile_disc(x, 0.5) OVER {frame} \
         FROM {rows} ORDER BY i"
    );
    let text = run(&sql, &Records::new(1), &statement).unwrap();
    let found: Vec<&str> = text.lines().skip(1).collect();
    let expected = [
        "5.0,5.0,5",
        "3.0,3.0,1",
        "3.0,3.0,1",
        "1.0,1.0,1",
        "5.0,5.0,1",
    ];
    assert_eq!(found, expected);
}

#[test]
fn what_is_no_percentile_is_refused_in_plain_words() {
    let directory = tempfile::tempdir().unwrap();
    let sql = Sql::new(directory.path().join("spill"));
    let constant = "percentile_cont takes a constant number from 0 to 1";
    let table = [
        (
            "SELECT percentile_cont(1.5) WITHIN GROUP (ORDER BY n) FROM logs",
            constant,
        ),
        ("SELECT percentile_cont(n, n) FROM logs", constant),
        (
            "SELECT percentile_cont(NULL) WITHIN GROUP (ORDER BY n) FROM logs",
            "percentile_cont takes a ",
        ),
        (
            "SELECT percentile_cont(n) FROM logs",
            "percentile_cont takes a number from 0 to 1: percentile_cont(0.9) ",
        ),
        (
            "SELECT median(true) FROM logs",
            "median takes numbers, times or durations, not Boolean",
        ),
        (
            "SELECT median(message) FROM logs",
            "median takes numbers, and this is text: TRY_CAST(",
        ),
    ];
    for (statement, expected) in table {
        let error = run(&sql, &Records::new(10), statement).unwrap_err();
        assert!(error.message.starts_with(expected), "{statement}: {error}");
    }
}

#[test]
fn values_of_percentiles_count_as_memory() {
    let directory = tempfile::tempdir().unwrap();
    let sql = Sql::with_memory(directory.path().join("spill"), 1 << 20);
    let records = Records::new(500_000);
    for statement in [
        "SELECT median(n) FROM logs",
        "SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY n) FROM logs",
        "SELECT n % 2, median(n) FROM logs GROUP BY 1",
    ] {
        let error = run(&sql, &records, statement).unwrap_err();
        assert!(
            error.message.contains("needs more memory"),
            "{statement}: {error}"
        );
    }
    // Distinct values are kept once.
    let text = run(&sql, &records, "SELECT median(DISTINCT n % 1001) FROM logs").unwrap();
    assert!(text.ends_with("\n500.0\n"), "{text}");
}
