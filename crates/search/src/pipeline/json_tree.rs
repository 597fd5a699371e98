//! JSON as a value of a template.

use std::collections::BTreeMap;

use super::json_text::{Json, each_element, each_member, unescaped, whole};
use crate::template::Value;

/// The value of a JSON text; `None` if it is none.
pub(crate) fn json_value(text: &[u8]) -> Option<Value> {
    whole(text).ok().and_then(tree)
}

/// The reader bounds how deeply values nest, and so this recursion.
fn tree(json: Json<'_>) -> Option<Value> {
    Some(match json {
        Json::Null => Value::Nil,
        Json::Bool(is_true) => Value::Bool(is_true),
        Json::Text(inside) => Value::Text(unescaped(inside).into_owned().into_bytes()),
        Json::Number(text) => Value::Float(std::str::from_utf8(text).ok()?.parse().ok()?),
        Json::Array(text) => {
            let mut list = Vec::new();
            each_element(text, |element| {
                list.push(tree(element).unwrap_or(Value::Nil));
                Ok(true)
            })
            .ok()?;
            Value::List(list)
        }
        Json::Object(text) => {
            let mut map = BTreeMap::new();
            each_member(text, |name, member| {
                map.insert(
                    unescaped(name).into_owned(),
                    tree(member).unwrap_or(Value::Nil),
                );
                Ok(true)
            })
            .ok()?;
            Value::Map(map)
        }
    })
}
