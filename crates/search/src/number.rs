//! Numbers as filters compare them: exactly, whatever their size and how they are written.

use std::cmp::Ordering;
use std::fmt;

use logpond_record::{Decimal, Value, cast};

/// Floats below this have no whole number between them and the next one.
pub const EXACT_END: f64 = 9_007_199_254_740_992.0;

/// A number of a record or a query.
#[derive(Clone, Debug, PartialEq)]
pub enum Number {
    /// A whole number.
    Int(i64),
    /// Any other number that a float is.
    Float(f64),
    /// Any other number.
    ///
    /// Invariant: [`Decimal::parse`] reads it.
    Decimal(Box<str>),
}

impl Number {
    /// The number that this text is, white space around it aside.
    ///
    /// Words that mean no finite number (`inf`, `nan`) are text.
    pub fn parse(text: &[u8]) -> Option<Number> {
        let text = std::str::from_utf8(text).ok()?.trim();
        if let Ok(int) = text.parse() {
            return Some(Number::Int(int));
        }
        let decimal = Decimal::parse(text.as_bytes())?;
        // What is written like this reads as a float, if only an infinite one.
        let float: f64 = text.parse().ok()?;
        Some(if decimal.is_written_float(float) {
            Number::Float(float)
        } else {
            Number::Decimal(text.into())
        })
    }

    /// The number that this value is, also where it is text that reads as one.
    pub fn of(value: &Value<'_>) -> Option<Number> {
        match value {
            Value::Str(text) => Number::parse(text.as_bytes()),
            other => Number::of_typed(other),
        }
    }

    /// The number that this value is by its type.
    pub fn of_typed(value: &Value<'_>) -> Option<Number> {
        match value {
            Value::Int(int) => Some(Number::Int(*int)),
            Value::Float(float) if float.is_finite() => Some(Number::Float(*float)),
            other => Number::parse(other.number_text()?.as_bytes()),
        }
    }

    /// The nearest float; an infinite one where the number is larger than all others.
    pub fn to_float(&self) -> f64 {
        match self {
            Number::Int(int) => cast::float(*int),
            Number::Float(float) => *float,
            // Floats are written in all ways that decimals are.
            Number::Decimal(text) => text.parse().unwrap_or(f64::NAN),
        }
    }

    /// Bytes that have the order of [`Number::compare`], and are equal for equal numbers.
    pub fn sort_key(&self) -> Vec<u8> {
        match self {
            Number::Int(int) => read(&int.to_string()),
            Number::Float(float) => Some(Decimal::of_float(*float)),
            Number::Decimal(text) => read(text),
        }
        .map_or_else(Vec::new, |decimal| decimal.sort_key())
    }

    /// The order of two numbers by value: `5` and `5.0` are equal.
    pub fn compare(&self, other: &Number) -> Ordering {
        match (self, other) {
            (Number::Int(a), Number::Int(b)) => a.cmp(b),
            (Number::Int(a), Number::Float(b)) if b.abs() < EXACT_END => compare_mixed(*a, *b),
            (Number::Float(a), Number::Int(b)) if a.abs() < EXACT_END => {
                compare_mixed(*b, *a).reverse()
            }
            // Both are finite, so that there always is an order.
            (Number::Float(a), Number::Float(b)) => a.partial_cmp(b).unwrap_or(Ordering::Equal),
            (a, b) => compare_written(a, b),
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Number::Int(int) => int.fmt(f),
            Number::Float(float) => float.fmt(f),
            Number::Decimal(text) => f.write_str(text),
        }
    }
}

/// By the decimals that numbers are written as.
fn compare_written(a: &Number, b: &Number) -> Ordering {
    let digits = |number: &Number| match number {
        Number::Int(int) => int.to_string(),
        _ => String::new(),
    };
    let (of_a, of_b) = (digits(a), digits(b));
    let decimal = |number: &Number, digits: &str| match number {
        Number::Float(float) => Some(Decimal::of_float(*float)),
        Number::Int(_) => read(digits),
        Number::Decimal(text) => read(text),
    };
    match (decimal(a, &of_a), decimal(b, &of_b)) {
        (Some(a), Some(b)) => a.compare(&b),
        // The invariant of numbers says that there is no such.
        _ => Ordering::Equal,
    }
}

fn read(text: &str) -> Option<Decimal<'static>> {
    Decimal::parse(text.as_bytes()).map(Decimal::into_owned)
}

/// The float is below [`EXACT_END`].
fn compare_mixed(int: i64, float: f64) -> Ordering {
    let whole = float.trunc();
    let fraction = 0.0f64.partial_cmp(&(float - whole));
    int.cmp(&cast::whole_i64(whole))
        .then(fraction.unwrap_or(Ordering::Equal))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_compare_exactly() {
        let table = [
            ("500", "500.0", Ordering::Equal),
            ("9007199254740993", "9007199254740992.0", Ordering::Greater),
            ("9223372036854775807", "9223372036854775808", Ordering::Less),
            (
                "-9223372036854775808",
                "-9223372036854775808.0",
                Ordering::Equal,
            ),
            ("-5", "-5.5", Ordering::Greater),
            ("5", "5.5", Ordering::Less),
            ("1e3", " 1000 ", Ordering::Equal),
            ("-1e300", "-9223372036854775808", Ordering::Less),
            (
                "18446744073709551613",
                "18446744073709551615",
                Ordering::Less,
            ),
            (
                "18446744073709551615",
                "18446744073709551615.0",
                Ordering::Equal,
            ),
            (
                "18446744073709551616",
                "1.8446744073709551616e19",
                Ordering::Equal,
            ),
            (
                "18446744073709551615",
                "9223372036854775807",
                Ordering::Greater,
            ),
            ("18446744073709551615", "5.5", Ordering::Greater),
            (
                "0.1234567890123456789",
                "0.1234567890123456788",
                Ordering::Greater,
            ),
            ("9007199254740993.0", "9007199254740993", Ordering::Equal),
            ("9007199254740993.5", "9007199254740993", Ordering::Greater),
            ("1e999", "1e998", Ordering::Greater),
            ("1e-999", "0", Ordering::Greater),
        ];
        for (a, b, order) in table {
            let (left, right) = (Number::parse(a.as_bytes()), Number::parse(b.as_bytes()));
            assert_eq!(
                left.as_ref().unwrap().compare(right.as_ref().unwrap()),
                order,
                "{a} {b}"
            );
            assert_eq!(
                right.unwrap().compare(&left.unwrap()),
                order.reverse(),
                "{b} {a}"
            );
        }
        for text in ["inf", "nan", "", "infinity", "0x10", "1_0"] {
            assert_eq!(Number::parse(text.as_bytes()), None, "{text}");
        }
    }
}
