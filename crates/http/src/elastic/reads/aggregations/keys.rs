//! Keys of buckets.

use logpond_search::{EXACT_END, Number};
use serde_json::{Value as Json, json};

use super::super::numbers::{WrittenNumber, number};

/// The key of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key<'k> {
    /// A number: milliseconds, or the place in a list.
    Number(i64),
    /// A value of a field.
    Text(&'k [u8]),
    /// Several values, as bytes in the order of the buckets.
    Tuple(&'k [u8]),
    /// More combinations of values than are counted.
    TooMany,
}

/// How the texts of all keys read together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum KeyKind {
    Whole,
    Float,
    /// Each is `true` or `false`.
    Bool,
    Text,
}

impl KeyKind {
    /// The kind of keys of which each is written as numbers are.
    pub(super) fn of<'k>(keys: impl Iterator<Item = &'k [u8]>) -> KeyKind {
        let mut kind = None;
        for key in keys {
            let one = of_text(key);
            let is_mixed =
                kind.is_some_and(|kind| (kind == KeyKind::Bool) != (one == KeyKind::Bool));
            if one == KeyKind::Text || is_mixed {
                return KeyKind::Text;
            }
            kind = kind.max(Some(one));
        }
        kind.unwrap_or(KeyKind::Text)
    }

    /// The members of a bucket that say its key: of a truth value a number and its text.
    pub(super) fn members(self, key: &[u8]) -> Json {
        match self {
            KeyKind::Bool => {
                let text = String::from_utf8_lossy(key);
                json!({ "key": u8::from(text == "true"), "key_as_string": text })
            }
            _ => json!({ "key": self.json(key) }),
        }
    }

    /// A key as JSON.
    pub(super) fn json(self, key: &[u8]) -> Json {
        let text = String::from_utf8_lossy(key);
        let number = match self {
            KeyKind::Bool => Some(Json::from(text == "true")),
            KeyKind::Whole => whole(&text),
            // A whole number among others is a float as long as it is the same number.
            KeyKind::Float => text
                .parse::<f64>()
                .ok()
                .filter(|float| text.contains('.') || float.abs() < EXACT_END)
                .map(Json::from)
                .or_else(|| whole(&text)),
            KeyKind::Text => None,
        };
        number.unwrap_or_else(|| text.into_owned().into())
    }

    /// The order of two keys.
    pub(super) fn compare(self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
        let numbers = || Some((Number::parse(a)?, Number::parse(b)?));
        match numbers().filter(|_| self < KeyKind::Bool) {
            Some((first, second)) => first.compare(&second).then_with(|| a.cmp(b)),
            None => a.cmp(b),
        }
    }
}

/// A whole number as JSON that reads back as the same one: of 64 bits, or a float.
fn whole(text: &str) -> Option<Json> {
    if let Ok(signed) = text.parse::<i64>() {
        return Some(signed.into());
    }
    if let Ok(unsigned) = text.parse::<u64>() {
        return Some(unsigned.into());
    }
    match number(text) {
        Some(WrittenNumber::Float(float)) => Some(float.into()),
        _ => None,
    }
}

fn of_text(key: &[u8]) -> KeyKind {
    if matches!(key, b"true" | b"false") {
        return KeyKind::Bool;
    }
    match std::str::from_utf8(key).ok().and_then(number) {
        Some(WrittenNumber::Whole(_)) => KeyKind::Whole,
        // A whole number of more digits than those of 64 bits is no less one.
        Some(WrittenNumber::Float(_) | WrittenNumber::Decimal) if !key.contains(&b'.') => {
            KeyKind::Whole
        }
        Some(WrittenNumber::Float(_) | WrittenNumber::Decimal) => KeyKind::Float,
        None => KeyKind::Text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_numbers_if_all_are_written_so() {
        let table: [(&[&str], KeyKind); 11] = [
            (&["true", "false"], KeyKind::Bool),
            (&["true", "1"], KeyKind::Text),
            (&["1", "true", "false"], KeyKind::Text),
            (&["1", "20", "-3"], KeyKind::Whole),
            (&["1", "2.5"], KeyKind::Float),
            (&["1", "18446744073709551615"], KeyKind::Whole),
            (&["1.5", "100000000000000000000"], KeyKind::Float),
            (&["1", "02"], KeyKind::Text),
            (&["1", "a"], KeyKind::Text),
            (&["1e3"], KeyKind::Text),
            (&[], KeyKind::Text),
        ];
        for (keys, expected) in table {
            assert_eq!(
                KeyKind::of(keys.iter().map(|key| key.as_bytes())),
                expected,
                "{keys:?}"
            );
        }
        assert_eq!(KeyKind::Whole.json(b"7"), Json::from(7));
        let large = Json::from(u64::MAX);
        assert_eq!(KeyKind::Whole.json(b"18446744073709551615"), large);
        let float = Json::from(1e20);
        assert_eq!(KeyKind::Whole.json(b"100000000000000000000"), float);
        let larger = "100000000000000000001";
        assert_eq!(KeyKind::Whole.json(larger.as_bytes()), Json::from(larger));
        // As floats these two would have one key.
        let exact = Json::from(9_007_199_254_740_993_i64);
        assert_eq!(KeyKind::Float.json(b"9007199254740993"), exact);
        assert_eq!(KeyKind::Float.json(b"7"), Json::from(7.0));
        let expected = json!({ "key": 1, "key_as_string": "true" });
        assert_eq!(KeyKind::Bool.members(b"true"), expected);
        assert!(KeyKind::Whole.compare(b"9", b"10").is_lt());
        assert!(KeyKind::Text.compare(b"9", b"10").is_gt());
    }
}
