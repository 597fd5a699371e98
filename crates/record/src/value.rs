//! Typed field values.

use std::borrow::Cow;

use crate::cast;
use crate::json::{json_on_one_line, write_json_string};

/// What a field holds.
///
/// A missing field has no value at all, an empty string is `Str("")`, a JSON null is `Null`: three
/// different things.
#[derive(Clone, Debug, PartialEq)]
pub enum Value<'a> {
    /// JSON null.
    Null,
    /// True or false.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number with a fraction or an exponent that a float is.
    Float(f64),
    /// Text.
    Str(Cow<'a, str>),
    /// JSON text of an array or an empty object, which are not flattened, or of a number that would be
    /// another one as an integer of 64 bits or as a float.
    Json(Cow<'a, str>),
    /// Bytes that are not UTF-8.
    Bytes(Cow<'a, [u8]>),
}

impl<'a> Value<'a> {
    /// Text or bytes, whichever the input is.
    pub fn text(bytes: &'a [u8]) -> Value<'a> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Value::Str(Cow::Borrowed(text)),
            Err(_) => Value::Bytes(Cow::Borrowed(bytes)),
        }
    }

    /// The same value without borrowed parts.
    pub fn into_owned(self) -> Value<'static> {
        match self {
            Value::Null => Value::Null,
            Value::Bool(b) => Value::Bool(b),
            Value::Int(i) => Value::Int(i),
            Value::Float(f) => Value::Float(f),
            Value::Str(s) => Value::Str(Cow::Owned(s.into_owned())),
            Value::Json(s) => Value::Json(Cow::Owned(s.into_owned())),
            Value::Bytes(b) => Value::Bytes(Cow::Owned(b.into_owned())),
        }
    }

    /// Appends the value as plain text, without quotes: what a filter on text compares.
    ///
    /// Null is `null`. A float without a fraction keeps its point: `5.0`.
    pub fn write_text(&self, out: &mut Vec<u8>) {
        match self {
            Value::Null => out.extend_from_slice(b"null"),
            Value::Bool(true) => out.extend_from_slice(b"true"),
            Value::Bool(false) => out.extend_from_slice(b"false"),
            Value::Int(i) => write_int(*i, out),
            Value::Float(f) => write_float(*f, out),
            Value::Str(s) | Value::Json(s) => out.extend_from_slice(s.as_bytes()),
            Value::Bytes(b) => out.extend_from_slice(b),
        }
    }

    /// Appends the value as JSON, on one line. Bytes that are not UTF-8 become replacement characters; a
    /// number that JSON cannot write becomes a string.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        match self {
            Value::Str(text) => write_json_string(text, out),
            Value::Bytes(bytes) => write_json_string(&String::from_utf8_lossy(bytes), out),
            Value::Float(f) if !f.is_finite() => write_json_string(&f.to_string(), out),
            Value::Json(text) => out.extend_from_slice(json_on_one_line(text).as_bytes()),
            other => other.write_text(out),
        }
    }

    /// The value as plain text; borrowed where it is text already.
    pub fn to_text(&self) -> Cow<'_, [u8]> {
        match self {
            Value::Str(s) | Value::Json(s) => Cow::Borrowed(s.as_bytes()),
            Value::Bytes(b) => Cow::Borrowed(b),
            other => {
                let mut out = Vec::with_capacity(20);
                other.write_text(&mut out);
                Cow::Owned(out)
            }
        }
    }

    /// The text of a number that no integer of 64 bits and no float is.
    pub fn number_text(&self) -> Option<&str> {
        match self {
            Value::Json(text) if text.starts_with(|c: char| c == '-' || c.is_ascii_digit()) => {
                Some(text)
            }
            _ => None,
        }
    }

    /// The value as the nearest float, also where it is text that reads as a number.
    pub fn as_number(&self) -> Option<f64> {
        match self {
            Value::Int(i) => Some(cast::float(*i)),
            Value::Float(f) => Some(*f),
            Value::Str(s) => s.trim().parse().ok().filter(|f: &f64| f.is_finite()),
            other => other.number_text()?.parse().ok(),
        }
    }
}

/// Appends a whole number in decimal.
pub fn write_int(value: i64, out: &mut Vec<u8>) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    let mut rest = value.unsigned_abs();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(&digits[at..]);
}

/// Appends the shortest decimal that reads back as the same float, never with an exponent.
pub fn write_float(value: f64, out: &mut Vec<u8>) {
    use std::io::Write;
    let start = out.len();
    // Writing to a vector cannot fail.
    let _ = write!(out, "{value}");
    if value.is_finite() && !out[start..].contains(&b'.') {
        out.extend_from_slice(b".0");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_as_text() {
        let table = [
            (Value::Int(i64::MIN), "-9223372036854775808"),
            (Value::Int(0), "0"),
            (Value::Float(5.0), "5.0"),
            (Value::Float(-0.1), "-0.1"),
            (Value::Float(1e21), "1000000000000000000000.0"),
            (Value::Bool(true), "true"),
            (Value::Null, "null"),
            (Value::Str("".into()), ""),
        ];
        for (value, text) in table {
            assert_eq!(value.to_text(), text.as_bytes(), "{value:?}");
        }
    }

    #[test]
    fn values_as_json_have_no_line_end() {
        let table = [
            (Value::Json("[\n  1,\n  \"two\"\n]".into()), "[1,\"two\"]"),
            (Value::Json("[1, 2]".into()), "[1, 2]"),
            (Value::Str("a\nb".into()), "\"a\\nb\""),
        ];
        for (value, json) in table {
            let mut out = Vec::new();
            value.write_json(&mut out);
            assert_eq!(String::from_utf8(out).unwrap(), json, "{value:?}");
        }
    }
}
