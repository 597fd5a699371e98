//! Differences of times: what they are compared with, and what is made of them.

use crate::source::{Records, run};
use logpond_sql::Sql;

/// Conditions that hold. The records' times are the first nanoseconds of 1970.
const TRUE: [&str; 27] = [
    "time - TIMESTAMP '1969-12-30' > INTERVAL '1 day'",
    "time - TIMESTAMP '1969-12-30' > INTERVAL '47 hours 59 minutes'",
    "time - TIMESTAMP '1969-12-30' < INTERVAL '2 days 1 second'",
    "INTERVAL '2 days 1 second' > time - TIMESTAMP '1969-12-30'",
    "time - TIMESTAMP '1969-12-30' BETWEEN INTERVAL '1 day' AND INTERVAL '3 days'",
    "time - TIMESTAMP '1969-12-30' NOT BETWEEN INTERVAL '3 days' AND INTERVAL '4 days'",
    "NOT time - TIMESTAMP '1969-12-30' > INTERVAL '49 hours'",
    "TIMESTAMP '1970-01-03' - TIMESTAMP '1970-01-01' IN (INTERVAL '48 hours', INTERVAL '1 day')",
    "TIMESTAMP '1970-01-03' - TIMESTAMP '1970-01-01' = INTERVAL '2 days'",
    "TIMESTAMP '1970-01-03' - TIMESTAMP '1970-01-01' IS NOT DISTINCT FROM INTERVAL '2 days'",
    "to_timestamp_seconds(100000) - to_timestamp_millis(0) > INTERVAL '1 day'",
    "now() - time > INTERVAL '1 day'",
    "now() - time > '1 day'",
    "now() - '90 minutes' < now() - '1 hour'",
    "time - '1969-12-30' > '1 day'",
    "INTERVAL '25 hours' > INTERVAL '1 day'",
    "INTERVAL '1 day 1 hour' = INTERVAL '25 hours'",
    "greatest(time - TIMESTAMP '1969-12-31 23:00', INTERVAL '2 hours') = INTERVAL '2 hours'",
    "coalesce(time - NULL, INTERVAL '2 hours') = INTERVAL '120 minutes'",
    "CASE WHEN n < 0 THEN time - now() ELSE INTERVAL '1 day' END = INTERVAL '24 hours'",
    "(time - TIMESTAMP '1969-12-30') + INTERVAL '1 hour' > INTERVAL '2 days'",
    "(TIMESTAMP '1970-01-03' - TIMESTAMP '1970-01-01') / 2 = INTERVAL '1 day'",
    "1.5 * (TIMESTAMP '1970-01-03' - TIMESTAMP '1970-01-01') = INTERVAL '3 days'",
    "INTERVAL '1 hour' * 24 = INTERVAL '1 day'",
    "(TIMESTAMP '1970-01-03' - TIMESTAMP '1970-01-01') / INTERVAL '1 hour' = 48",
    "now() - 2 * INTERVAL '1 hour' < now()",
    "extract(epoch FROM TIMESTAMP '1970-01-03' - TIMESTAMP '1970-01-01') = 172800",
];

#[test]
fn differences_of_times_are_compared_by_what_they_last() {
    let directory = tempfile::tempdir().unwrap();
    let sql = Sql::new(directory.path().join("spill"));
    let records = Records::new(10);
    for condition in TRUE {
        let statement = format!("SELECT count(*) FROM logs WHERE n IS NOT NULL AND ({condition})");
        let text = run(&sql, &records, &statement).unwrap_or_else(|e| panic!("{condition}: {e}"));
        assert_eq!(text.lines().nth(1), Some("10"), "{condition}");
        let statement = format!("SELECT min(CASE WHEN {condition} THEN 1 ELSE 0 END) FROM logs");
        let text = run(&sql, &records, &statement).unwrap_or_else(|e| panic!("{condition}: {e}"));
        assert_eq!(text.lines().nth(1), Some("1"), "{condition}");
    }
}

#[test]
fn differences_of_times_are_sorted_summed_and_shown() {
    let directory = tempfile::tempdir().unwrap();
    let sql = Sql::new(directory.path().join("spill"));
    let records = Records::new(10);
    let spans = "(VALUES (INTERVAL '25 hours'), (INTERVAL '1 day'), (INTERVAL '23 hours')) t(x)";
    let gaps = "(SELECT time, time - lag(time) OVER (ORDER BY time) AS gap FROM logs)";
    let times = "(VALUES (TIMESTAMP '1970-01-02 03:00'), (TIMESTAMP '1970-01-05'), (NULL)) t(x)";
    let since = "x - TIMESTAMP '1970-01-01'";
    let table = [
        (
            format!("SELECT array_agg(extract(epoch FROM x) ORDER BY x) FROM {spans}"),
            "\"[82800.0,86400.0,90000.0]\"",
        ),
        (format!("SELECT x FROM {spans} ORDER BY x"), "23 hours"),
        (
            format!("SELECT x, row_number() OVER (ORDER BY x DESC) AS r FROM {spans} ORDER BY r"),
            "25 hours,1",
        ),
        (
            format!(
                "SELECT rank() OVER (ORDER BY gap DESC NULLS LAST), sum(1) OVER (ORDER BY gap NULLS LAST) FROM {gaps}"
            ),
            "1,9",
        ),
        (
            format!("SELECT min(x), max(x) FROM {spans}"),
            "PT82800S,PT90000S",
        ),
        (
            format!("SELECT min({since}), max({since}), avg({since}), sum({since}) FROM {times}"),
            "PT97200S,PT345600S,PT221400S,PT442800S",
        ),
        (
            format!("SELECT {since} AS d FROM {times} ORDER BY d DESC NULLS LAST"),
            "PT345600S",
        ),
        (
            format!(
                "SELECT count(gap), max(gap), max(gap) < INTERVAL '1 day', \
                 count(*) FILTER (WHERE gap < INTERVAL '1 day') FROM {gaps}"
            ),
            "9,PT0.000000001S,true,9",
        ),
        (
            "SELECT (max(time) - min(time)) / (count(*) - 1) AS each FROM logs".to_owned(),
            "PT0.000000001S",
        ),
        (
            format!("SELECT CAST(max({since}) AS VARCHAR) FROM {times}"),
            "4 days 0 hours 0 mins 0.000000000 secs",
        ),
        // The parts of a duration are those of an interval, as in other databases.
        (
            format!(
                "SELECT extract(day FROM min({since})), extract(hour FROM min({since} + INTERVAL '61 s')), \
                 extract(minute FROM min({since} + INTERVAL '61 s')), extract(epoch FROM min({since})) FROM {times}"
            ),
            "1,3,1,97200.0",
        ),
    ];
    for (statement, expected) in table {
        let text = run(&sql, &records, &statement).unwrap_or_else(|e| panic!("{statement}: {e}"));
        assert_eq!(text.lines().nth(1), Some(expected), "{statement}");
    }
}

#[test]
fn what_a_difference_of_times_cannot_be_is_said() {
    let directory = tempfile::tempdir().unwrap();
    let sql = Sql::new(directory.path().join("spill"));
    let records = Records::new(10);
    let months = "an interval of months or years lasts longer or shorter as they come";
    let spans = "(VALUES (INTERVAL '25 hours'), (INTERVAL '1 month')) t(x)";
    let table = [
        ("SELECT now() - time > INTERVAL '1 month' FROM logs", months),
        ("SELECT INTERVAL '1 month' * 2", months),
        (&format!("SELECT x FROM {spans} ORDER BY x"), months),
        (&format!("SELECT max(x) FROM {spans}"), months),
        (&format!("SELECT x > INTERVAL '1 day' FROM {spans}"), months),
        (
            "SELECT now() - time > 5 FROM logs",
            "a number is compared with an interval",
        ),
        (
            "SELECT now() - time > 'often' FROM logs",
            "'often' is no interval",
        ),
        (
            "SELECT INTERVAL '1 hour' * 9223372036854775807",
            "is out of range",
        ),
    ];
    for (statement, expected) in table {
        let error = run(&sql, &records, statement).unwrap_err();
        assert!(error.message.contains(expected), "{statement}: {error}");
    }
    // A time is moved by months.
    let statement = "SELECT count(*) FROM logs WHERE time < now() - INTERVAL '1 month'";
    assert!(run(&sql, &records, statement).unwrap().ends_with("\n10\n"));
}

#[test]
fn conditions_on_differences_decide_what_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let sql = Sql::new(directory.path().join("spill"));
    let records = Records::new(10);
    let table = [
        (
            "time - TIMESTAMP '2026-01-01' > INTERVAL '1 day'",
            "from=2026-01-02T00:00:00.000000001Z",
        ),
        (
            "TIMESTAMP '2026-01-03' - time <= INTERVAL '1 day'",
            "from=2026-01-02T00:00:00.000000000Z",
        ),
        (
            "INTERVAL '1 day' > time - '2026-01-01'",
            "to=2026-01-02T00:00:00.000000000Z",
        ),
        (
            "TIMESTAMP '2026-01-03' - time BETWEEN INTERVAL '1 hour' AND INTERVAL '1 day'",
            "from=2026-01-02T00:00:00.000000000Z, to=2026-01-02T23:00:00.000000001Z",
        ),
        ("now() - time < INTERVAL '1 hour'", "columns=[]"),
    ];
    for (condition, expected) in table {
        let statement = format!("EXPLAIN SELECT count(*) FROM logs WHERE {condition}");
        let text = run(&sql, &records, &statement).unwrap();
        let scan = text.split("Scan: filter=*, ").last().unwrap();
        assert!(scan.contains(expected), "{condition}: {scan}");
        assert!(!text.contains("FilterExec"), "{condition}: {text}");
    }
}
