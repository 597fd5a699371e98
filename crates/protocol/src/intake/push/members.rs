//! JSON objects of others as the fields of a record: in the sender's order, nothing rounded.
//!
//! Invariant: objects nest at most `JSON_DEPTH_MAX` levels as fields; what is deeper, like lists, is
//! one field with its JSON text. One field more than a record may have is the last that is read, so that
//! the record is refused; of more than [`MEMBERS_MAX`] members nothing is read.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use logpond_record::limits::{FIELDS_MAX, JSON_DEPTH_MAX};
use logpond_record::{Value, json_on_one_line};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::intake::json::{number_value, unescape};

/// The most members of an object: what protocols say in members of their own is not a field.
const MEMBERS_MAX: usize = FIELDS_MAX + 16;

/// Names and values of a record.
pub(super) type Fields<'a> = Vec<(Cow<'a, str>, Value<'a>)>;

/// The members of an object in their order, also those whose name was there before.
pub(super) struct Members<'a>(pub(super) Vec<(Cow<'a, str>, &'a RawValue)>);

/// A name, borrowed where it has no escapes.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Members<'a>, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Members<'de>, M::Error> {
                let mut members = Vec::new();
                while let Some(Name(name)) = map.next_key()? {
                    if members.len() == MEMBERS_MAX {
                        let reason = format!("it has more than {MEMBERS_MAX} members");
                        return Err(serde::de::Error::custom(reason));
                    }
                    members.push((name, map.next_value()?));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}

/// The text that a value is: of a string its content, of anything else but `null` its JSON.
pub(super) fn text_of(value: &RawValue) -> Option<Cow<'_, str>> {
    let json = value.get();
    match inside(json) {
        Some(inside) => Some(inside),
        None => (json != "null").then_some(Cow::Borrowed(json)),
    }
}

/// The content of a string.
fn inside(json: &str) -> Option<Cow<'_, str>> {
    let inside = json.strip_prefix('"')?.strip_suffix('"')?;
    Some(if inside.contains('\\') {
        Cow::Owned(unescape(inside))
    } else {
        Cow::Borrowed(inside)
    })
}

/// Adds a value as a field of this name, an object as several whose names are joined by dots.
pub(super) fn flatten<'a>(name: Cow<'a, str>, value: &'a RawValue, to: &mut Fields<'a>) {
    flatten_within(name, value, 1, to);
}

fn flatten_within<'a>(name: Cow<'a, str>, value: &'a RawValue, depth: usize, to: &mut Fields<'a>) {
    if to.len() > FIELDS_MAX {
        return;
    }
    let json = value.get();
    let field = match json.as_bytes().first() {
        Some(b'{') if depth < JSON_DEPTH_MAX => match serde_json::from_str(json) {
            Ok(Members(members)) if !members.is_empty() => {
                for (member, value) in members {
                    flatten_within(format!("{name}.{member}").into(), value, depth + 1, to);
                }
                return;
            }
            _ => Value::Json(json_on_one_line(json)),
        },
        Some(b'"') => inside(json).map_or(Value::Json(json.into()), Value::Str),
        Some(b'-' | b'0'..=b'9') => number(json),
        _ => match json {
            "null" => Value::Null,
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            _ => Value::Json(json_on_one_line(json)),
        },
    };
    to.push((name, field));
}

/// A number.
fn number(json: &str) -> Value<'_> {
    number_value(json, json.contains(['.', 'e', 'E'])).0
}

/// Keeps the last one of several fields with one name, of those from this place on: what one object or
/// list of attributes says twice counts as in JSON. More fields than a record may have are left as they
/// are, to be refused.
pub(crate) fn keep_last<V>(fields: &mut Vec<(Cow<'_, str>, V)>, from: usize) {
    if fields.len() > FIELDS_MAX {
        return;
    }
    let mut names = HashSet::with_capacity(fields.len() - from);
    let backwards = fields[from..].iter().rev();
    let is_last = backwards.map(|(name, _)| names.insert(&**name));
    let is_last: Vec<bool> = is_last.collect();
    if is_last.iter().all(|is_last| *is_last) {
        return;
    }
    drop(names);
    let mut kept = std::iter::repeat_n(true, from).chain(is_last.into_iter().rev());
    fields.retain(|_| kept.next().unwrap_or(true));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_a_name_counts() {
        let list = ["a", "b", "a", "c", "b"];
        let mut fields: Vec<(Cow<'_, str>, usize)> = list
            .iter()
            .enumerate()
            .map(|(at, name)| ((*name).into(), at))
            .collect();
        let places =
            |fields: &[(Cow<'_, str>, usize)]| fields.iter().map(|(_, at)| *at).collect::<Vec<_>>();
        keep_last(&mut fields, 3);
        assert_eq!(places(&fields), [0, 1, 2, 3, 4]);
        keep_last(&mut fields, 1);
        assert_eq!(places(&fields), [0, 2, 3, 4]);
        keep_last(&mut fields, 0);
        assert_eq!(places(&fields), [2, 3, 4]);
    }

    fn fields(json: &str) -> Vec<String> {
        let members: Members<'_> = serde_json::from_str(json).unwrap();
        let mut fields = Fields::new();
        for (name, value) in members.0 {
            flatten(name, value, &mut fields);
        }
        let each = fields.iter();
        each.map(|(name, value)| format!("{name}={value:?}"))
            .collect()
    }

    #[test]
    fn members_become_fields_in_their_order() {
        let json = r#"{"b":1,"a\n":"x\u00e4","o":{"i":{"n":null},"e":{}},"l":[1, 2],"b":true,
            "big":9007199254740993,"bigger":18446744073709551615,"f":1.50,"huge":1e999,"pair":"\ud83d\ude00","lone":"\ud800"}"#;
        assert_eq!(
            fields(json),
            [
                "b=Int(1)",
                "a\n=Str(\"xä\")",
                "o.i.n=Null",
                "o.e=Json(\"{}\")",
                "l=Json(\"[1, 2]\")",
                "b=Bool(true)",
                "big=Int(9007199254740993)",
                "bigger=Json(\"18446744073709551615\")",
                "f=Float(1.5)",
                "huge=Json(\"1e999\")",
                "pair=Str(\"😀\")",
                "lone=Str(\"\u{fffd}\")",
            ]
        );
    }

    #[test]
    fn depth_and_number_of_fields_are_bounded() {
        let deep = format!("{}1{}", "{\"a\":".repeat(5000), "}".repeat(5000));
        let found = fields(&format!("{{\"d\":{deep}}}"));
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("d.a.a.a") && found[0].contains("=Json(\"{"));
        let many = |n| (0..n).map(|n| format!("\"n{n}\":1")).collect::<Vec<_>>();
        let object = |n| format!("{{{}}}", many(n).join(","));
        let both = format!("{{\"a\":{},\"b\":{0}}}", object(MEMBERS_MAX));
        assert_eq!(fields(&both).len(), FIELDS_MAX + 1);
        let too_many = object(MEMBERS_MAX + 1);
        assert!(serde_json::from_str::<Members<'_>>(&too_many).is_err());
        assert!(serde_json::from_str::<Members<'_>>("[1]").is_err());
    }
}
