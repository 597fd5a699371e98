//! JSON read without loss: a tree holds numbers in 64 bits, and records have longer ones.
//!
//! A number that no 64 bits hold exactly (`18446744073709551616`, `0.1234567890123456789`, `1e400`) is read as
//! a text of its digits. All others are numbers.

use std::borrow::Cow;

use logpond_record::{Decimal, Value};
use serde::de::DeserializeOwned;

/// Decimals of so many digits are exact in 64 bits, as far as their exponents are small.
const EXACT_DIGITS: usize = 15;

/// Reads JSON.
///
/// # Errors
/// When it is none, or has another shape than is wanted.
pub fn from_slice<T: DeserializeOwned>(json: &[u8]) -> serde_json::Result<T> {
    serde_json::from_slice(&quoted(json))
}

/// A value of a record as the tree that is read of it.
pub fn of_value(value: &Value<'_>) -> serde_json::Value {
    match value {
        Value::Null => serde_json::Value::Null,
        Value::Bool(is_true) => (*is_true).into(),
        Value::Int(number) => (*number).into(),
        Value::Str(text) => serde_json::Value::from(&**text),
        Value::Float(_) | Value::Json(_) | Value::Bytes(_) => {
            let mut text = Vec::new();
            value.write_json(&mut text);
            from_slice(&text).unwrap_or_default()
        }
    }
}

/// The same with quotes around the numbers that 64 bits do not hold. Text that is no JSON stays so.
fn quoted(json: &[u8]) -> Cow<'_, [u8]> {
    let mut changed: Vec<u8> = Vec::new();
    let (mut at, mut copied) = (0, 0);
    while let Some(&byte) = json.get(at) {
        match byte {
            b'"' => at = end_of_text(json, at + 1),
            b'-' | b'0'..=b'9' => {
                let end = at + json[at..].iter().take_while(|b| is_of_number(**b)).count();
                let number = &json[at..end];
                if !is_exact(number) {
                    changed.extend_from_slice(&json[copied..at]);
                    changed.push(b'"');
                    changed.extend_from_slice(number);
                    changed.push(b'"');
                    copied = end;
                }
                at = end;
            }
            _ => at += 1,
        }
    }
    if copied == 0 {
        return Cow::Borrowed(json);
    }
    changed.extend_from_slice(&json[copied..]);
    Cow::Owned(changed)
}

/// The place behind the quote that ends a text.
fn end_of_text(json: &[u8], mut at: usize) -> usize {
    while let Some(found) = memchr::memchr2(b'"', b'\\', &json[at.min(json.len())..]) {
        at += found;
        if json[at] == b'"' {
            return at + 1;
        }
        at += 2;
    }
    json.len()
}

fn is_of_number(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E')
}

/// True if 64 bits hold a number as it is written, and of what is no number.
fn is_exact(number: &[u8]) -> bool {
    let is_plain = number
        .iter()
        .all(|b| b.is_ascii_digit() || matches!(b, b'-' | b'.'));
    if is_plain && number.len() <= EXACT_DIGITS {
        return true;
    }
    let Ok(text) = std::str::from_utf8(number) else {
        return true;
    };
    if text.parse::<i64>().is_ok() || text.parse::<u64>().is_ok() {
        return true;
    }
    let (Some(written), Ok(float)) = (Decimal::parse(number), text.parse::<f64>()) else {
        return true;
    };
    float.is_finite() && Decimal::of_float(float) == written
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn numbers_are_exact_or_texts() {
        let table = [
            ("18446744073709551615", json!(u64::MAX)),
            ("-9223372036854775808", json!(i64::MIN)),
            ("18446744073709551616", json!("18446744073709551616")),
            ("-9223372036854775809", json!("-9223372036854775809")),
            ("9007199254740993", json!(9_007_199_254_740_993_u64)),
            ("9007199254740993.5", json!("9007199254740993.5")),
            ("0.1", json!(0.1)),
            ("251.46039135425553", json!(251.460_391_354_255_53)),
            ("1.7976931348623157e308", json!(f64::MAX)),
            ("-1.7976931348623157e308", json!(f64::MIN)),
            ("5e-324", json!(5e-324)),
            ("1.50", json!(1.5)),
            ("0.1234567890123456789", json!("0.1234567890123456789")),
            ("1e400", json!("1e400")),
            ("-1E+400", json!("-1E+400")),
            ("1e-400", json!("1e-400")),
            ("1e2", json!(100.0)),
            ("0", json!(0)),
            ("0.0000000000000000000", json!(0.0)),
            ("-0", json!(-0.0)),
        ];
        for (text, value) in table {
            assert_eq!(
                from_slice::<Value>(text.as_bytes()).unwrap(),
                value,
                "{text}"
            );
            let inside = format!("{{\"1e400\":[{text},\"1e400\"],\"a\\\\\":{text}}}");
            let wanted = json!({"1e400": [value, "1e400"], "a\\": value});
            assert_eq!(from_slice::<Value>(inside.as_bytes()).unwrap(), wanted);
        }
    }

    #[test]
    fn no_json_is_refused_as_ever() {
        for text in [
            "",
            "{",
            "\"",
            "\"\\",
            "1e",
            "--1",
            "1.2.3",
            "[1e400",
            "{\"a\":1e400",
        ] {
            assert!(from_slice::<Value>(text.as_bytes()).is_err(), "{text}");
        }
    }
}
