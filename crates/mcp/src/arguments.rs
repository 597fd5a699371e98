//! The arguments of tools and prompts: their declarations, and what was given.

use std::sync::Arc;

use rmcp::model::JsonObject;
use serde_json::{Value, json};

/// The longest text of an argument. Encoded in a URL three times as long, it fits into an address of 64 KiB.
const TEXT_BYTES_MAX: usize = 16 << 10;

/// Values of a list, or variables, at most.
const ITEMS_MAX: usize = 32;

/// The form of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentKind {
    /// A text.
    Text,
    /// A whole number.
    Number {
        /// The number if none is given.
        default: u64,
        /// The least number.
        min: u64,
        /// The largest number.
        max: u64,
    },
    /// A list of texts.
    Texts,
    /// An object whose members are texts.
    Members,
}

/// An argument of a tool or a prompt.
#[derive(Clone, Copy, Debug)]
pub struct Argument {
    /// Its name.
    pub name: &'static str,
    /// Its form.
    pub kind: ArgumentKind,
    /// Its meaning, in a sentence.
    pub help: &'static str,
    /// True if there is no call without it.
    pub is_required: bool,
}

/// An argument that may be left out.
pub(crate) const fn optional(name: &'static str, help: &'static str) -> Argument {
    Argument {
        name,
        kind: ArgumentKind::Text,
        help,
        is_required: false,
    }
}

/// An argument that a call must have.
pub(crate) const fn required(name: &'static str, help: &'static str) -> Argument {
    Argument {
        is_required: true,
        ..optional(name, help)
    }
}

/// A number with its default and its bounds.
pub(crate) const fn number(
    name: &'static str,
    (default, min, max): (u64, u64, u64),
    help: &'static str,
) -> Argument {
    Argument {
        kind: ArgumentKind::Number { default, min, max },
        ..optional(name, help)
    }
}

/// The query of records.
pub(crate) const QUERY: Argument = optional(
    "query",
    "The records, as text and field:value terms, such as `timeout level=error`; all records if it is left out.",
);

/// The beginning of the range.
pub(crate) const FROM: Argument = optional(
    "from",
    "Earliest time: a UTC time such as 2026-11-21T10:00:00Z, or an age such as 15m, 2h or 7d. The default is an hour \
     before `to`.",
);

/// The end of the range.
pub(crate) const TO: Argument = optional(
    "to",
    "Latest time, excluded, in the same forms. The default is now.",
);

/// The schema (JSON Schema) of some arguments.
pub(crate) fn schema<'a>(arguments: impl Iterator<Item = &'a Argument>) -> Arc<JsonObject> {
    let mut properties = JsonObject::new();
    let mut required = Vec::new();
    for argument in arguments {
        let help = argument.help;
        let property = match argument.kind {
            ArgumentKind::Text => json!({ "type": "string", "description": help }),
            ArgumentKind::Number { default, min, max } => json!({
                "type": "integer", "description": help, "default": default, "minimum": min, "maximum": max,
            }),
            ArgumentKind::Texts => json!({
                "type": "array", "description": help, "items": { "type": "string" }, "maxItems": ITEMS_MAX,
            }),
            ArgumentKind::Members => json!({
                "type": "object", "description": help, "additionalProperties": { "type": "string" },
            }),
        };
        properties.insert(argument.name.to_owned(), property);
        if argument.is_required {
            required.push(argument.name);
        }
    }
    let schema = json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    });
    Arc::new(schema.as_object().cloned().unwrap_or_default())
}

/// The values of arguments, checked against their declarations.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arguments(JsonObject);

impl Arguments {
    /// Checks what was given; the error is a sentence for the caller.
    pub(crate) fn check<'a>(
        given: Option<JsonObject>,
        known: impl Iterator<Item = &'a Argument> + Clone,
    ) -> Result<Arguments, String> {
        let mut given = given.unwrap_or_default();
        // Many clients send null for an argument that they leave out.
        given.retain(|_, value| !value.is_null());
        for (name, value) in &given {
            let Some(argument) = known.clone().find(|argument| argument.name == name) else {
                let names: Vec<&str> = known.map(|argument| argument.name).collect();
                let names = names.join(", ");
                return Err(format!(
                    "there is no such argument; the arguments are {names}"
                ));
            };
            check_value(argument, value)?;
        }
        let is_missing =
            |argument: &&Argument| argument.is_required && !given.contains_key(argument.name);
        match known.clone().find(is_missing) {
            Some(missing) => Err(format!(
                "the argument '{}' is missing: {}",
                missing.name, missing.help
            )),
            None => Ok(Arguments(given)),
        }
    }

    /// A text, if it was given and is not empty.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        let text = self.0.get(name)?.as_str()?.trim();
        (!text.is_empty()).then_some(text)
    }

    /// A number, or the default of its declaration.
    pub(crate) fn number(&self, argument: &Argument) -> u64 {
        let ArgumentKind::Number { default, .. } = argument.kind else {
            return 0;
        };
        let given = self.0.get(argument.name);
        given.and_then(whole).unwrap_or(default)
    }

    /// The texts of a list.
    pub(crate) fn texts(&self, name: &str) -> Vec<String> {
        let list = self.0.get(name).and_then(Value::as_array);
        let texts = list.into_iter().flatten().filter_map(Value::as_str);
        texts.map(str::to_owned).collect()
    }

    /// The members of an object.
    pub(crate) fn members(&self, name: &str) -> Vec<(String, String)> {
        let object = self.0.get(name).and_then(Value::as_object);
        let members = object.into_iter().flatten();
        let text = |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.into()));
        members.filter_map(text).collect()
    }
}

/// A whole number; some clients send numbers as texts.
fn whole(value: &Value) -> Option<u64> {
    value
        .as_u64()
        .or_else(|| value.as_str()?.trim().parse().ok())
}

fn check_value(argument: &Argument, value: &Value) -> Result<(), String> {
    let name = argument.name;
    let is_text = |value: &Value| {
        value
            .as_str()
            .is_some_and(|text| text.len() <= TEXT_BYTES_MAX)
    };
    match argument.kind {
        ArgumentKind::Text if is_text(value) => Ok(()),
        ArgumentKind::Text => Err(format!(
            "the argument '{name}' is a text of at most {TEXT_BYTES_MAX} bytes"
        )),
        ArgumentKind::Number { min, max, .. } => match whole(value) {
            Some(number) if (min..=max).contains(&number) => Ok(()),
            _ => Err(format!(
                "the argument '{name}' is a whole number from {min} to {max}"
            )),
        },
        ArgumentKind::Texts => {
            let list = value.as_array().map_or(&[][..], Vec::as_slice);
            if value.is_array() && list.len() <= ITEMS_MAX && list.iter().all(is_text) {
                return Ok(());
            }
            Err(format!(
                "the argument '{name}' is a list of at most {ITEMS_MAX} texts"
            ))
        }
        ArgumentKind::Members => {
            let is_right = value
                .as_object()
                .is_some_and(|object| object.len() <= ITEMS_MAX && object.values().all(is_text));
            if is_right {
                return Ok(());
            }
            Err(format!(
                "the argument '{name}' is an object of at most {ITEMS_MAX} texts"
            ))
        }
    }
}
