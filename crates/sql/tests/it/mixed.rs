//! Texts beside numbers: one odd value is no reason to refuse a question.

use crate::source::{Records, run};
use logpond_sql::Sql;

/// A field that has numbers in most records.
const TABLE: &str =
    "(VALUES ('200'), ('OK'), ('200.0'), ('404'), ('9.5'), (NULL), ('9007199254740993')) t(s)";

#[test]
fn what_is_no_number_does_not_match() {
    let directory = tempfile::tempdir().unwrap();
    let sql = Sql::new(directory.path().join("spill"));
    let records = Records::new(1);
    let table = [
        ("s = 200", "200;200.0"),
        ("200 = s", "200;200.0"),
        ("s = 200.0", "200;200.0"),
        ("s <> 200", "404;9.5;9007199254740993"),
        ("s < 10", "9.5"),
        ("s >= 404", "404;9007199254740993"),
        ("s > -1 AND s < 100", "9.5"),
        ("s IN (404, 200)", "200;200.0;404"),
        ("s NOT IN (404, 200)", "9.5;9007199254740993"),
        ("s BETWEEN 9 AND 300", "200;200.0;9.5"),
        ("s = 9007199254740993", "9007199254740993"),
        ("s = 9007199254740992 + 1", "9007199254740993"),
        ("s = '200'", "200"),
        ("s IN ('200', 'OK')", "200;OK"),
        ("s < '3'", "200;200.0"),
    ];
    for (condition, expected) in table {
        let statement = format!("SELECT s FROM {TABLE} WHERE {condition}");
        let text = run(&sql, &records, &statement).unwrap_or_else(|e| panic!("{condition}: {e}"));
        let found: Vec<&str> = text.lines().skip(1).collect();
        assert_eq!(found.join(";"), expected, "{condition}");
    }
}

#[test]
fn a_cast_that_fails_names_its_column() {
    let directory = tempfile::tempdir().unwrap();
    let sql = Sql::new(directory.path().join("spill"));
    let records = Records::new(10);
    let table = [
        (
            format!("SELECT CAST(s AS BIGINT) FROM {TABLE}"),
            "a value of column s, 'OK', is no BIGINT: TRY_CAST(s AS BIGINT)",
        ),
        (
            "SELECT abs(CAST(message AS INT)) FROM logs".to_owned(),
            "is no INTEGER: TRY_CAST(message AS INTEGER)",
        ),
        (
            "SELECT sum(CAST(message AS DOUBLE)) FROM logs".to_owned(),
            "is no DOUBLE: TRY_CAST(message AS DOUBLE)",
        ),
        (
            "SELECT * FROM logs WHERE n = 'many'".to_owned(),
            "column n is a BIGINT, which 'many' is not",
        ),
    ];
    for (statement, expected) in table {
        let error = run(&sql, &records, &statement).unwrap_err();
        assert!(error.message.contains(expected), "{statement}: {error}");
    }
}

/// Numbers that no `DOUBLE` tells from others, as fields have them that are texts for that reason.
const WIDE: &str = "(VALUES ('18446744073709551610'), ('18446744073709551613'), \
    ('18446744073709551616'), ('5'), ('0.1234567890123456789'), ('none')) t(s)";

#[test]
fn numbers_are_compared_exactly() {
    let directory = tempfile::tempdir().unwrap();
    let sql = Sql::new(directory.path().join("spill"));
    let records = Records::new(1);
    let table = [
        ("s = 18446744073709551613", "18446744073709551613"),
        ("s = 18446744073709551616", "18446744073709551616"),
        (
            "18446744073709551616 > s AND s > 5",
            "18446744073709551610;18446744073709551613",
        ),
        (
            "s <> 18446744073709551613 AND s > 6",
            "18446744073709551610;18446744073709551616",
        ),
        ("s IN (18446744073709551616, 5)", "18446744073709551616;5"),
        (
            "s BETWEEN 18446744073709551611 AND 18446744073709551615",
            "18446744073709551613",
        ),
        (
            "s > -18446744073709551616 AND s < 1",
            "0.1234567890123456789",
        ),
        ("s = 0.1234567890123456789", "0.1234567890123456789"),
        ("s = 0.1234567890123456788", ""),
        ("s = '18446744073709551613'", "18446744073709551613"),
    ];
    for (condition, expected) in table {
        let statement = format!("SELECT s FROM {WIDE} WHERE {condition}");
        let text = run(&sql, &records, &statement).unwrap_or_else(|e| panic!("{condition}: {e}"));
        let found: Vec<&str> = text.lines().skip(1).collect();
        assert_eq!(found.join(";"), expected, "{condition}");
    }
}

/// Numbers of any size and form.
const ANY: &str = "(VALUES ('100000000000000000001'), ('100000000000000000000'), \
    ('-9223372036854775808'), ('-9223372036854775809'), ('99999999999999991611392'), ('1E3'), \
    ('10e-1'), ('1e39'), ('1e300'), ('5e-324'), ('none'), (NULL)) t(s)";

#[test]
fn numbers_of_any_size_and_form_are_compared_exactly() {
    let directory = tempfile::tempdir().unwrap();
    let sql = Sql::new(directory.path().join("spill"));
    let records = Records::new(1);
    let table = [
        ("s = 100000000000000000000", "100000000000000000000"),
        (
            "s > 100000000000000000000",
            "100000000000000000001;99999999999999991611392;1e39;1e300",
        ),
        ("s = -9223372036854775809", "-9223372036854775809"),
        ("s IN (-9223372036854775809)", "-9223372036854775809"),
        ("s < -9223372036854775808", "-9223372036854775809"),
        (
            "s <> -9223372036854775809 AND s < 0",
            "-9223372036854775808",
        ),
        (
            "s BETWEEN 100000000000000000001 AND 100000000000000000005",
            "100000000000000000001",
        ),
        ("s = 1e23", ""),
        ("s < 9007199254740993 AND s > 0", "1E3;10e-1;5e-324"),
        ("s > 9007199254740993 AND s > 1e24", "1e39;1e300"),
        ("s <> 9007199254740993 AND s > 1e38", "1e39;1e300"),
        ("s = 1000", "1E3"),
        ("s = 1", "10e-1"),
        ("s > 'Infinity'::DOUBLE", ""),
        ("s NOT IN (1000, 1) AND s BETWEEN 0 AND 5000", "5e-324"),
    ];
    for (condition, expected) in table {
        let statement = format!("SELECT s FROM {ANY} WHERE {condition}");
        let text = run(&sql, &records, &statement).unwrap_or_else(|e| panic!("{condition}: {e}"));
        let found: Vec<&str> = text.lines().skip(1).collect();
        assert_eq!(found.join(";"), expected, "{condition}");
    }
}
