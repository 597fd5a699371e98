//! Numbers that texts are.

use std::borrow::Cow;

use logpond_search::Number;

/// A number that a text is, written as numbers are written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum WrittenNumber {
    Whole(i64),
    Float(f64),
    /// A number that neither of these is.
    Decimal,
}

/// The number that a text is, if it is written as the number would be: in digits, without zeros that mean nothing.
pub(super) fn number(text: &str) -> Option<WrittenNumber> {
    let digits = text.strip_prefix('-').unwrap_or(text).as_bytes();
    let is_plain = match digits {
        [b'0', b'.', ..] | [b'0'] | [b'1'..=b'9', ..] => {
            digits.iter().all(|byte| b"0123456789.".contains(byte))
        }
        _ => false,
    };
    if !is_plain || text.ends_with('.') {
        return None;
    }
    let number = Number::parse(text.as_bytes())?;
    let own = number.to_string();
    match number {
        Number::Int(whole) => (own == text).then_some(WrittenNumber::Whole(whole)),
        Number::Float(float) => {
            let is_own = own == text || text.strip_suffix(".0") == Some(&own);
            is_own.then_some(WrittenNumber::Float(float))
        }
        Number::Decimal(_) => Some(WrittenNumber::Decimal),
    }
}

/// The text of a value, the same for equal numbers: `5.0` is `5`. So buckets, and the place behind a bucket, are the same
/// for clients that write numbers otherwise.
pub(super) fn canonical(text: &[u8]) -> Cow<'_, [u8]> {
    let written = std::str::from_utf8(text).ok().and_then(number);
    match written {
        Some(WrittenNumber::Float(0.0)) => Cow::Borrowed(b"0"),
        Some(WrittenNumber::Float(_)) => Cow::Borrowed(text.strip_suffix(b".0").unwrap_or(text)),
        _ => Cow::Borrowed(text),
    }
}

/// The text of a number of JSON, as that of a field with this number.
pub(super) fn of_json(token: &str) -> String {
    let number = Number::parse(token.as_bytes());
    match number {
        Some(Number::Float(0.0)) | Some(Number::Int(0)) => "0".to_owned(),
        Some(number) => number.to_string(),
        None => token.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_they_are_written() {
        let table = [
            ("5", Some(WrittenNumber::Whole(5))),
            ("-5", Some(WrittenNumber::Whole(-5))),
            ("5.0", Some(WrittenNumber::Float(5.0))),
            ("0.5", Some(WrittenNumber::Float(0.5))),
            ("-0.0", Some(WrittenNumber::Float(0.0))),
            ("18446744073709551615", Some(WrittenNumber::Decimal)),
            ("9223372036854775808", Some(WrittenNumber::Decimal)),
            ("12345678901234567.5", Some(WrittenNumber::Decimal)),
            ("1000000000000000000000.0", Some(WrittenNumber::Float(1e21))),
            ("1.50", None),
            ("02", None),
            ("1e2", None),
            ("+5", None),
            (" 5", None),
            ("5.", None),
            (".5", None),
            ("1.2.3", None),
            ("-", None),
            ("", None),
            ("a", None),
        ];
        for (text, expected) in table {
            assert_eq!(number(text), expected, "{text}");
        }
    }

    #[test]
    fn equal_numbers_have_one_text() {
        let table = [
            ("5.0", "5"),
            ("5", "5"),
            ("-0.0", "0"),
            ("2.5", "2.5"),
            ("1.50", "1.50"),
            ("1000000000000000000000.0", "1000000000000000000000"),
            ("18446744073709551615", "18446744073709551615"),
            ("a", "a"),
        ];
        for (text, expected) in table {
            assert_eq!(canonical(text.as_bytes()), expected.as_bytes(), "{text}");
        }
        let table = [
            ("5.0", "5"),
            ("-0", "0"),
            ("-0.0", "0"),
            ("2e1", "20"),
            ("1e21", "1000000000000000000000"),
            ("-9223372036854775809", "-9223372036854775809"),
            ("18446744073709551615", "18446744073709551615"),
        ];
        for (token, expected) in table {
            assert_eq!(of_json(token), expected, "{token}");
        }
    }
}
