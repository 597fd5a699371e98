//! A filter as arguments of `logpond query`.

use crate::query::{self, Filter, Pattern};

/// The arguments that mean the filter, quoted for a shell: `-f level=error`, `-e 'timeout|error'`.
pub fn arguments(filter: &Filter) -> String {
    let parts = match filter {
        Filter::All => return String::new(),
        Filter::And(parts) => &parts[..],
        one => std::slice::from_ref(one),
    };
    let texts = parts.iter().map(text_of);
    let folded = texts.flatten().any(|text| text.case_insensitive);
    let mut words = Vec::new();
    let mut has_text = false;
    for part in parts {
        let word = match text_of(part).filter(|text| text.case_insensitive == folded) {
            Some(Text {
                regex: false, text, ..
            }) if !has_text && !text.starts_with('-') => {
                has_text = true;
                // The text stands first, where people look for it.
                words.insert(0, shell_word(&text));
                continue;
            }
            Some(Text {
                regex: true, text, ..
            }) => format!("-e {}", shell_word(&text)),
            _ => match condition(part) {
                Some(condition) => format!("-f {}", shell_word(&condition)),
                None => format!("--where {}", shell_word(&part.to_string())),
            },
        };
        words.push(word);
    }
    if folded {
        words.push("-i".to_owned());
    }
    words.join(" ")
}

/// A part that the command line takes as text or as an expression.
struct Text {
    regex: bool,
    text: String,
    case_insensitive: bool,
}

fn text_of(part: &Filter) -> Option<Text> {
    match part {
        Filter::Text(Pattern::Substring {
            text,
            case_insensitive,
        }) => Some(Text {
            regex: false,
            text: String::from_utf8(text.to_vec()).ok()?,
            case_insensitive: *case_insensitive,
        }),
        Filter::Text(Pattern::Regex {
            source,
            case_insensitive,
        }) => Some(Text {
            regex: true,
            text: source.to_string(),
            case_insensitive: *case_insensitive,
        }),
        // One of several texts is an expression.
        Filter::Or(choices) => {
            let choices: Option<Vec<Text>> = choices.iter().map(text_of).collect();
            let choices = choices?;
            let case_insensitive = choices.first()?.case_insensitive;
            let written = |choice: &Text| {
                if choice.regex {
                    format!("(?:{})", choice.text)
                } else {
                    escaped(&choice.text)
                }
            };
            let is_same = |choice: &Text| choice.case_insensitive == case_insensitive;
            choices.iter().all(is_same).then(|| Text {
                regex: true,
                text: choices.iter().map(written).collect::<Vec<_>>().join("|"),
                case_insensitive,
            })
        }
        _ => None,
    }
}

/// A text as a regular expression that matches it.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if r"\.+*?()|[]{}^$".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// The part as an argument of `-f`, if it is a condition that can be one.
fn condition(part: &Filter) -> Option<String> {
    let is_condition = match part {
        Filter::Not(inner) => inner.is_condition(),
        other => other.is_condition(),
    };
    let written = is_condition.then(|| part.to_string())?;
    let read = query::parse_condition(&written);
    (read.as_ref() == Ok(part)).then_some(written)
}

/// A word as a shell reads it back.
pub fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_./:=@%+,-".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}
