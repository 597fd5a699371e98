//! Which statements may be run: one that asks.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::sql::parser::{DFParserBuilder, Statement};
use datafusion::sql::sqlparser::ast::{
    Expr, Statement as Ast, UnaryOperator, Value, visit_expressions_mut,
};
use datafusion::sql::sqlparser::dialect::{Dialect, GenericDialect, PostgreSqlDialect};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};
use logpond_record::Decimal;

use crate::error::{Blame, SqlError};
use crate::layout::FIELD_PREFIX;
use crate::postgres;

/// The longest statement. Planning takes memory and time for each of its words.
pub const STATEMENT_BYTES_MAX: usize = 64 << 10;

/// Digits of a decimal before the point and behind it: as many as have room in the longest one.
const DECIMAL_DIGITS: usize = 38;

/// How deep a statement may nest.
pub(crate) const DEPTH_MAX: usize = 50;

/// The most parts of a statement: its words and operators without the constants and commas of lists. As
/// many levels a chain of operators may have: each takes some stack, and planning takes their square.
pub(crate) const PARTS_MAX: usize = 1000;

/// True if a statement may have a recursive query; others may have the word in a text.
pub(crate) fn may_recurse(text: &str) -> bool {
    text.to_ascii_lowercase().contains("recursive")
}

/// Refuses what is too long, or has more parts than these.
pub(crate) fn measure(text: &str, parts_max: usize) -> Result<(), SqlError> {
    let refused = |message| Err(SqlError::new(Blame::Statement, message));
    if text.len() > STATEMENT_BYTES_MAX {
        let kib = STATEMENT_BYTES_MAX >> 10;
        return refused(format!("the statement is longer than {kib} KiB"));
    }
    // What is wrong with its words the parser says.
    let tokens = Tokenizer::new(&GenericDialect {}, text).tokenize();
    let is_part = |token: &&Token| {
        let is_constant = matches!(token, Token::Number(..) | Token::SingleQuotedString(_));
        !is_constant && !matches!(token, Token::Comma | Token::Whitespace(_))
    };
    let parts = tokens.iter().flatten().filter(is_part).count();
    if parts > parts_max {
        refused(format!(
            "the statement has more than {parts_max} words and operators"
        ))
    } else {
        Ok(())
    }
}

/// The names in a statement, as columns and fields are called, and true if it wants all columns.
pub(crate) fn names(text: &str) -> (HashSet<String>, bool) {
    let tokens = Tokenizer::new(&GenericDialect {}, text).tokenize();
    let (mut names, mut wants_all) = (HashSet::new(), false);
    for token in tokens.into_iter().flatten() {
        match token {
            Token::Word(word) if word.quote_style.is_some() => _ = names.insert(word.value),
            Token::Word(word) => {
                let describes = [Keyword::DESCRIBE, Keyword::DESC, Keyword::COLUMNS];
                wants_all |= describes.contains(&word.keyword);
                names.insert(word.value.to_lowercase());
            }
            Token::Mul => wants_all = true,
            _ => {}
        }
    }
    let fields: Vec<String> = names
        .iter()
        .filter_map(|name| name.strip_prefix(FIELD_PREFIX).map(str::to_owned))
        .collect();
    names.extend(fields);
    (names, wants_all)
}

/// Parses a statement, and refuses all that does something else than ask.
pub(crate) fn parse(text: &str) -> Result<Statement, SqlError> {
    parse_by(text, &GenericDialect {})
}

/// The same of a statement in the dialect of Postgres. A statement that only the own dialect has is read by that.
pub(crate) fn parse_postgres(text: &str) -> Result<Statement, SqlError> {
    let mut statement = match parse_by(text, &PostgreSqlDialect {}) {
        Ok(statement) => statement,
        Err(error) => parse(text).map_err(|_| error)?,
    };
    postgres::rewrite(&mut statement);
    Ok(statement)
}

fn parse_by(text: &str, dialect: &dyn Dialect) -> Result<Statement, SqlError> {
    let parsed = DFParserBuilder::new(text)
        .with_dialect(dialect)
        .with_recursion_limit(DEPTH_MAX)
        .build()
        .and_then(|mut parser| parser.parse_statements());
    let mut statements = parsed.map_err(|error| SqlError::of(&error))?;
    match (statements.pop_front(), statements.len()) {
        (Some(mut statement), 0) => {
            check(&statement)?;
            keep_digits(&mut statement)?;
            Ok(statement)
        }
        (None, _) => Err(SqlError::new(Blame::Statement, "there is no statement")),
        _ => Err(SqlError::new(
            Blame::Statement,
            "more than one statement: ask one at a time",
        )),
    }
}

/// Makes decimals of the numbers that would become the nearest `DOUBLE`, and so another number.
///
/// # Errors
/// When a number is beyond each `DOUBLE`: it would be infinite or 0.
fn keep_digits(statement: &mut Statement) -> Result<(), SqlError> {
    let Statement::Statement(ast) = statement else {
        return Ok(());
    };
    let flow = visit_expressions_mut(&mut **ast, |expr| {
        let exact = match expr {
            Expr::Value(value) => match &value.value {
                Value::Number(digits, _) => match decimal(digits) {
                    None if is_beyond_double(digits) => return ControlFlow::Break(digits.clone()),
                    exact => exact,
                },
                _ => None,
            },
            Expr::UnaryOp {
                op: UnaryOperator::Minus,
                expr: inner,
            } => below_bigint(inner),
            _ => None,
        };
        if let Some(exact) = exact {
            *expr = exact;
        }
        ControlFlow::Continue(())
    });
    match flow {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(digits) => Err(SqlError::new(
            Blame::Statement,
            format!(
                "{digits} has no DOUBLE: numbers here are at most 1.8e308 and at least 4.9e-324; without an exponent \
                 they have up to {DECIMAL_DIGITS} digits before the point and behind it"
            ),
        )),
    }
}

/// True for a number that as a `DOUBLE` would be infinite, or 0 without being 0.
fn is_beyond_double(digits: &str) -> bool {
    let Ok(float) = digits.parse::<f64>() else {
        return false;
    };
    let mantissa = digits.split(['e', 'E']).next().unwrap_or_default();
    let is_zero = mantissa.bytes().all(|b| matches!(b, b'0' | b'.'));
    float.is_infinite() || (float == 0.0 && !is_zero)
}

/// A number as a decimal, if it is no integer of 64 bits, and no `DOUBLE`, and has room.
fn decimal(digits: &str) -> Option<Expr> {
    if digits.parse::<u64>().is_ok() {
        return None;
    }
    let float: f64 = digits.parse().ok()?;
    let is_float = Decimal::parse(digits.as_bytes())?.is_written_float(float);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let has_room = whole.len() <= DECIMAL_DIGITS && fraction.len() <= DECIMAL_DIGITS;
    let is_plain = digits.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    if is_float || !has_room || !is_plain {
        return None;
    }
    cast(digits)
}

/// The opposite of a whole number, if that is less than every `BIGINT`: the engine makes a `DOUBLE` of it.
fn below_bigint(inner: &Expr) -> Option<Expr> {
    let Expr::Value(value) = inner else {
        return None;
    };
    let Value::Number(digits, _) = &value.value else {
        return None;
    };
    let whole: u64 = digits.parse().ok()?;
    let is_below = whole > i64::MIN.unsigned_abs();
    is_below.then(|| cast(&format!("-{whole}"))).flatten()
}

/// The decimal of these digits.
fn cast(digits: &str) -> Option<Expr> {
    let precision = 2 * DECIMAL_DIGITS;
    let cast = format!("CAST('{digits}' AS DECIMAL({precision}, {DECIMAL_DIGITS}))");
    let parser = Parser::new(&GenericDialect {}).try_with_sql(&cast);
    parser.ok()?.parse_expr().ok()
}

/// Whether a statement asks which columns there are.
pub(crate) fn is_description(statement: &Statement) -> bool {
    match statement {
        Statement::Statement(ast) => {
            matches!(**ast, Ast::ExplainTable { .. } | Ast::ShowColumns { .. })
        }
        _ => false,
    }
}

fn check(statement: &Statement) -> Result<(), SqlError> {
    match statement {
        Statement::Explain(explain) => check(&explain.statement),
        Statement::Statement(ast) => match &**ast {
            Ast::Query(_) | Ast::ShowTables { .. } | Ast::ShowColumns { .. } => Ok(()),
            Ast::ExplainTable { .. } => Ok(()),
            Ast::Explain { statement, .. } => match &**statement {
                Ast::Query(_) => Ok(()),
                other => Err(refused(&other.to_string())),
            },
            other => Err(refused(&other.to_string())),
        },
        other => Err(refused(&other.to_string())),
    }
}

/// The refusal of a statement that begins so.
fn refused(text: &str) -> SqlError {
    let first = text
        .split_whitespace()
        .next()
        .unwrap_or("it")
        .to_uppercase();
    let message = format!(
        "{first} is no question: nothing can be changed by SQL; there are SELECT, EXPLAIN, DESCRIBE \
         and SHOW TABLES"
    );
    SqlError::new(Blame::Statement, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_without_a_double_are_refused() {
        for digits in ["1e400", "1E-400", "1.5e999", &"9".repeat(400)] {
            for text in [
                format!("SELECT {digits}"),
                format!("SELECT 1 FROM logs WHERE f_n > -{digits}"),
            ] {
                let error = parse(&text).map(drop).unwrap_err();
                assert_eq!(error.blame, Blame::Statement, "{text}");
                assert!(error.message.starts_with(digits), "{}", error.message);
                parse_postgres(&text).map(drop).unwrap_err();
            }
        }
        let small = format!("0.{}1", "0".repeat(37));
        for digits in ["0e400", "0.0e-400", "1e308", "5e-324", "0", &small] {
            parse(&format!("SELECT {digits}")).map(drop).unwrap();
        }
    }

    #[test]
    fn questions_are_let_through() {
        let table = [
            "SELECT 1",
            "select * from logs limit 3;",
            "WITH a AS (SELECT 1) SELECT * FROM a",
            "(SELECT 1) UNION ALL (SELECT 2)",
            "VALUES (1), (2)",
            "EXPLAIN SELECT 1",
            "EXPLAIN ANALYZE SELECT 1",
            "DESCRIBE logs",
            "SHOW TABLES",
            "SHOW COLUMNS FROM logs",
        ];
        for text in table {
            assert!(parse(text).is_ok(), "{text}: {:?}", parse(text));
        }
    }

    #[test]
    fn all_else_is_refused() {
        let table = [
            ("CREATE TABLE a (b int)", "CREATE is no question"),
            ("CREATE TABLE a AS SELECT 1", "CREATE is no question"),
            ("CREATE VIEW a AS SELECT 1", "CREATE is no question"),
            (
                "CREATE EXTERNAL TABLE a STORED AS CSV LOCATION '/etc/passwd'",
                "CREATE is no question",
            ),
            (
                "CREATE FUNCTION f() RETURNS int RETURN 1",
                "CREATE is no question",
            ),
            ("CREATE DATABASE a", "CREATE is no question"),
            ("CREATE SCHEMA a", "CREATE is no question"),
            ("DROP TABLE logs", "DROP is no question"),
            ("DROP VIEW logs", "DROP is no question"),
            ("ALTER TABLE logs ADD COLUMN a int", "ALTER is no question"),
            ("INSERT INTO logs VALUES (1)", "INSERT is no question"),
            ("UPDATE logs SET a = 1", "UPDATE is no question"),
            ("DELETE FROM logs", "DELETE is no question"),
            ("TRUNCATE TABLE logs", "TRUNCATE is no question"),
            ("COPY logs TO '/tmp/x.csv'", "COPY is no question"),
            (
                "COPY (SELECT 1) TO '/tmp/x.csv' STORED AS CSV",
                "COPY is no question",
            ),
            ("EXPLAIN COPY logs TO '/tmp/x'", "COPY is no question"),
            (
                "EXPLAIN INSERT INTO logs VALUES (1)",
                "INSERT is no question",
            ),
            (
                "SET datafusion.execution.batch_size = 1",
                "SET is no question",
            ),
            (
                "RESET datafusion.execution.batch_size",
                "RESET is no question",
            ),
            ("PREPARE a AS SELECT 1", "PREPARE is no question"),
            ("EXECUTE a", "EXECUTE is no question"),
            ("DEALLOCATE a", "DEALLOCATE is no question"),
            ("START TRANSACTION", "START is no question"),
            ("COMMIT", "COMMIT is no question"),
            ("ANALYZE TABLE logs", "ANALYZE is no question"),
            ("SELECT 1; DROP TABLE logs", "more than one statement"),
            ("", "there is no statement"),
            (" ; ", "there is no statement"),
        ];
        for (text, why) in table {
            let error = parse(text).unwrap_err();
            assert!(error.message.starts_with(why), "{text}: {error}");
        }
    }

    #[test]
    fn what_is_wrong_has_a_place() {
        let error = parse("SELECT a,\n ,b FROM logs").unwrap_err();
        assert_eq!(error.blame, Blame::Statement);
        assert_eq!(error.place, Some((2, 2)), "{error:?}");
        let long = format!("SELECT '{}'", "a".repeat(STATEMENT_BYTES_MAX));
        assert!(
            measure(&long, PARTS_MAX)
                .unwrap_err()
                .message
                .contains("64 KiB")
        );
        let many = vec!["1"; 5000].join("+");
        assert!(
            measure(&many, PARTS_MAX)
                .unwrap_err()
                .message
                .contains("1000 words")
        );
        let list = format!("SELECT 1 IN ({})", vec!["'a'"; 5000].join(","));
        assert_eq!(measure(&list, PARTS_MAX), Ok(()));
        let deep = format!("SELECT {}1{}", "(".repeat(500), ")".repeat(500));
        assert!(parse(&deep).is_err());
    }
}
