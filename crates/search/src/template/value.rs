//! What expressions of a template are.

use std::collections::BTreeMap;

use jiff::tz::TimeZone;
use logpond_record::cast;

use super::format::write_float;

/// A value.
#[derive(Clone, Debug)]
pub enum Value {
    /// No value.
    Nil,
    /// True or false.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number with a fraction.
    Float(f64),
    /// Text; bytes that are not UTF-8 are kept.
    Text(Vec<u8>),
    /// Nanoseconds since the epoch, and the zone in which they are shown.
    Time(i128, TimeZone),
    /// Several values.
    List(Vec<Value>),
    /// Values by name.
    Map(BTreeMap<String, Value>),
    /// Texts by name: one that is not there is empty, not nothing.
    Labels(BTreeMap<String, Value>),
}

impl Value {
    /// A text.
    pub(super) fn text(text: impl AsRef<[u8]>) -> Value {
        Value::Text(text.as_ref().to_vec())
    }

    /// About the memory that it takes.
    pub(super) fn bytes(&self) -> usize {
        let own = size_of::<Value>();
        let of_map = |map: &BTreeMap<String, Value>| -> usize {
            map.iter()
                .map(|(name, value)| name.len() + value.bytes())
                .sum()
        };
        own + match self {
            Value::Text(text) => text.len(),
            Value::List(list) => list.iter().map(Value::bytes).sum(),
            Value::Map(map) | Value::Labels(map) => of_map(map),
            _ => 0,
        }
    }

    /// Whether it counts as true: neither zero, nor empty, nor nothing.
    pub(super) fn is_true(&self) -> bool {
        match self {
            Value::Nil => false,
            Value::Bool(is_true) => *is_true,
            Value::Int(int) => *int != 0,
            Value::Float(float) => *float != 0.0,
            Value::Text(text) => !text.is_empty(),
            Value::Time(..) => true,
            Value::List(list) => !list.is_empty(),
            Value::Map(map) | Value::Labels(map) => !map.is_empty(),
        }
    }

    /// What kind of value it is, for errors.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Value::Nil => "nil",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int",
            Value::Float(_) => "float64",
            Value::Text(_) => "string",
            Value::Time(..) => "time.Time",
            Value::List(_) => "list",
            Value::Map(_) | Value::Labels(_) => "map",
        }
    }

    /// Appends the value as functions print it; a template that shows nothing but nil has other words
    /// for it.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        match self {
            Value::Nil => out.extend_from_slice(b"<nil>"),
            Value::Bool(is_true) => {
                out.extend_from_slice(if *is_true { &b"true"[..] } else { b"false" });
            }
            Value::Int(int) => out.extend_from_slice(int.to_string().as_bytes()),
            Value::Float(float) => write_float(*float, out),
            Value::Text(text) => out.extend_from_slice(text),
            Value::Time(ns, zone) => {
                let layout = "2006-01-02 15:04:05.999999999 -0700 MST";
                let text = super::layout::format(layout, *ns, zone).unwrap_or_default();
                out.extend_from_slice(text.as_bytes());
            }
            Value::List(list) => {
                out.push(b'[');
                for (at, value) in list.iter().enumerate() {
                    if at > 0 {
                        out.push(b' ');
                    }
                    value.write(out);
                }
                out.push(b']');
            }
            Value::Map(map) | Value::Labels(map) => {
                out.extend_from_slice(b"map[");
                for (at, (name, value)) in map.iter().enumerate() {
                    if at > 0 {
                        out.push(b' ');
                    }
                    out.extend_from_slice(name.as_bytes());
                    out.push(b':');
                    value.write(out);
                }
                out.push(b']');
            }
        }
    }

    /// The value as it is printed.
    pub(super) fn printed(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write(&mut out);
        out
    }

    /// The value as text, with what is not UTF-8 replaced.
    pub(super) fn to_str(&self) -> String {
        String::from_utf8_lossy(&self.printed()).into_owned()
    }

    /// The value as a whole number: 0 where it is none.
    pub(super) fn to_int(&self) -> i64 {
        match self {
            Value::Int(int) => *int,
            Value::Float(float) => cast::whole_i64(*float),
            Value::Bool(is_true) => i64::from(*is_true),
            Value::Text(text) => whole_number(&String::from_utf8_lossy(text)).unwrap_or(0),
            _ => 0,
        }
    }

    /// The value as a number: 0 where it is none.
    pub(super) fn to_float(&self) -> f64 {
        match self {
            Value::Int(int) => cast::float(*int),
            Value::Float(float) => *float,
            Value::Bool(is_true) => f64::from(u8::from(*is_true)),
            Value::Text(text) => {
                let text = String::from_utf8_lossy(text);
                crate::logql::number_of(&text).unwrap_or(0.0)
            }
            _ => 0.0,
        }
    }
}

/// The whole number that a text is, as Go reads its own literals: with a base, of which a zero in front
/// is one. Digits behind a point are left out.
fn whole_number(text: &str) -> Option<i64> {
    let is_digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let unsigned = match unsigned.split_once('.') {
        Some((whole, fraction)) if is_digits(whole) && is_digits(fraction) => match whole {
            "" => "0",
            whole => whole,
        },
        _ => unsigned,
    };
    let lower = unsigned.to_ascii_lowercase();
    let based = [("0x", 16), ("0b", 2), ("0o", 8)].into_iter();
    let mut based = based.filter_map(|(prefix, base)| Some((lower.strip_prefix(prefix)?, base)));
    let (digits, base) = match (based.next(), lower.strip_prefix('0')) {
        (Some(found), _) => found,
        (None, Some(rest)) if !rest.is_empty() => (rest, 8),
        _ => (&*lower, 10),
    };
    let digits = digits
        .bytes()
        .next()
        .filter(u8::is_ascii_alphanumeric)
        .map(|_| digits)?;
    let sign = if text.starts_with('-') { "-" } else { "" };
    i64::from_str_radix(&format!("{sign}{digits}"), base).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_numbers_as_go_reads_them() {
        let table = [
            ("12", Some(12)),
            ("-12.7", Some(-12)),
            ("+3", Some(3)),
            ("12.", Some(12)),
            (".5", Some(0)),
            ("0", Some(0)),
            ("010", Some(8)),
            ("08", None),
            ("0x1F", Some(31)),
            ("-0b11", Some(-3)),
            ("1e3", None),
            (" 5", None),
            ("--5", None),
            ("0x-5", None),
            ("", None),
            ("x", None),
        ];
        for (text, expected) in table {
            assert_eq!(whole_number(text), expected, "{text:?}");
        }
    }
}
