//! Numbers as filters compare them: whole numbers exactly, whatever their size.

use std::cmp::Ordering;

use logpond_record::Value;

/// 2^63: the first float above every `i64`.
const I64_END: f64 = 9_223_372_036_854_775_808.0;

/// A number of a record or a query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// A whole number.
    Int(i64),
    /// Any other finite number.
    Float(f64),
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
        let float: f64 = text.parse().ok()?;
        float.is_finite().then_some(Number::Float(float))
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
            _ => None,
        }
    }

    /// The order of two numbers by value: `5` and `5.0` are equal.
    pub fn compare(self, other: Number) -> Ordering {
        match (self, other) {
            (Number::Int(a), Number::Int(b)) => a.cmp(&b),
            (Number::Int(a), Number::Float(b)) => compare_mixed(a, b),
            (Number::Float(a), Number::Int(b)) => compare_mixed(b, a).reverse(),
            // Both are finite, so that there always is an order.
            (Number::Float(a), Number::Float(b)) => a.partial_cmp(&b).unwrap_or(Ordering::Equal),
        }
    }
}

fn compare_mixed(int: i64, float: f64) -> Ordering {
    if float >= I64_END {
        return Ordering::Less;
    }
    if float < -I64_END {
        return Ordering::Greater;
    }
    let whole = float.trunc();
    let fraction = 0.0f64.partial_cmp(&(float - whole));
    int.cmp(&(whole as i64))
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
        ];
        for (a, b, order) in table {
            let (left, right) = (Number::parse(a.as_bytes()), Number::parse(b.as_bytes()));
            assert_eq!(left.unwrap().compare(right.unwrap()), order, "{a} {b}");
            assert_eq!(
                right.unwrap().compare(left.unwrap()),
                order.reverse(),
                "{b} {a}"
            );
        }
        for text in ["inf", "nan", "", "1e999", "0x10", "1_0"] {
            assert_eq!(Number::parse(text.as_bytes()), None, "{text}");
        }
    }
}
