//! A JSON object with some of its values changed; all else stays as it is written.

use std::borrow::Cow;

use logpond_record::limits::JSON_DEPTH_MAX;
use logpond_record::{Value, write_json_string};

use super::{Escapes, JsonError, Scanner, unescape};

/// What a value becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum JsonChange {
    /// This text.
    Text(String),
    /// This JSON.
    Json(String),
    /// Null.
    Null,
}

/// The object that `text` is with the values changed that `decide` names; it is asked for each by the
/// names of the objects around with dots between, as fields are called, also for those whose names
/// occurred before. `None` if nothing is to be changed.
pub(crate) fn edit(
    text: &str,
    mut decide: impl FnMut(&str, &Value<'_>) -> Option<JsonChange>,
) -> Result<Option<String>, JsonError> {
    let mut scanner = Scanner::new(text);
    scanner.space();
    scanner.byte(b'{', "'{'")?;
    scanner.space();
    if scanner.peek() == Some(b'}') {
        return Ok(None);
    }
    let mut out = Vec::new();
    let mut copied = 0;
    let mut path = String::new();
    let mut ends = [0usize; JSON_DEPTH_MAX];
    let mut depth = 1;
    loop {
        let (lexeme, escapes) = scanner.name()?;
        let outer = path.len();
        match escapes {
            Escapes::None => path.push_str(lexeme),
            _ => path.push_str(&unescape(lexeme)),
        }
        let before = scanner.at;
        let Some(token) = scanner.token()? else {
            let level = depth;
            scanner.nest(&mut depth, scanner.at)?;
            ends[level] = outer;
            path.push('.');
            scanner.at += 1;
            scanner.space();
            continue;
        };
        if let Some(change) = decide(&path, &token.value) {
            // All of the value, with the quotes of a string.
            out.extend_from_slice(&text.as_bytes()[copied..before]);
            copied = scanner.at;
            match change {
                JsonChange::Text(text) => write_json_string(&text, &mut out),
                JsonChange::Json(text) => out.extend_from_slice(text.as_bytes()),
                JsonChange::Null => out.extend_from_slice(b"null"),
            }
        }
        path.truncate(outer);
        let inner = depth;
        if !scanner.next_member(&mut depth)? {
            break;
        }
        if depth < inner {
            path.truncate(ends[depth]);
        }
    }
    scanner.end()?;
    if copied == 0 {
        return Ok(None);
    }
    out.extend_from_slice(&text.as_bytes()[copied..]);
    // Made of texts, cut where values begin and end.
    Ok(Some(match String::from_utf8_lossy(&out) {
        Cow::Borrowed(_) => String::from_utf8(out).unwrap_or_default(),
        Cow::Owned(text) => text,
    }))
}

/// The list that `text` is with values changed in the objects that it holds, as [`edit`] changes them. Lists
/// add nothing to a path. `None` if nothing is to be changed.
pub(crate) fn edit_list(
    text: &str,
    decide: &mut dyn FnMut(&str, &Value<'_>) -> Option<JsonChange>,
) -> Result<Option<String>, JsonError> {
    let mut scanner = Scanner::new(text);
    scanner.byte(b'[', "'['")?;
    scanner.space();
    let mut out = String::new();
    let mut copied = 0;
    while scanner.peek() != Some(b']') {
        let start = scanner.at;
        scanner.skip_value()?;
        let element = &text[start..scanner.at];
        let changed = match element.as_bytes().first() {
            Some(b'{') => edit(element, &mut *decide)?,
            Some(b'[') => edit_list(element, decide)?,
            _ => None,
        };
        if let Some(changed) = changed {
            out.push_str(&text[copied..start]);
            out.push_str(&changed);
            copied = scanner.at;
        }
        scanner.space();
        if scanner.peek() != Some(b']') {
            scanner.byte(b',', "',' or ']'")?;
            scanner.space();
        }
    }
    if copied == 0 {
        return Ok(None);
    }
    out.push_str(&text[copied..]);
    Ok(Some(out))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_changed_and_all_else_stays() {
        let table = [
            (r#"{"a":1}"#, None),
            (r#"{}"#, None),
            (
                r#" { "secret" : "x\"y" , "b":[ 1 ] } "#,
                Some(r#" { "secret" : "R" , "b":[ 1 ] } "#),
            ),
            (
                r#"{"secret":1,"o":{"secret":2,"p":{"gone":true}},"secret":3}"#,
                Some(r#"{"secret":"R","o":{"secret":2,"p":{"gone":null}},"secret":"R"}"#),
            ),
            (
                r#"{"o":{"p":{},"q":[{"secret":1}]},"s\u0065cret":{}}"#,
                Some(r#"{"o":{"p":{},"q":[{"secret":1}]},"s\u0065cret":"R"}"#),
            ),
            (
                r#"{"o":{"x":{"y":1}},"secret":null}"#,
                Some(r#"{"o":{"x":{"y":1}},"secret":"R"}"#),
            ),
        ];
        for (text, expected) in table {
            let edited = edit(text, |name, _| match name {
                "secret" => Some(JsonChange::Text("R".to_owned())),
                "o.p.gone" => Some(JsonChange::Null),
                _ => None,
            });
            assert_eq!(edited.unwrap().as_deref(), expected, "{text}");
        }
        assert!(edit(r#"{"secret":1"#, |_, _| None).is_err());
    }

    #[test]
    fn values_within_lists_are_changed() {
        let table = [
            ("[]", None),
            ("[1, \"{\", [2]]", None),
            (
                r#"[{"a":1},{"secret":2}]"#,
                Some(r#"[{"a":1},{"secret":"R"}]"#),
            ),
            (
                r#"[ 1, [ {"o":{"p":{"gone":"x"}}} , {} ], {"secret":"[{"} ]"#,
                Some(r#"[ 1, [ {"o":{"p":{"gone":null}}} , {} ], {"secret":"R"} ]"#),
            ),
        ];
        for (text, expected) in table {
            let edited = edit_list(text, &mut |name, _| match name {
                "secret" => Some(JsonChange::Text("R".to_owned())),
                "o.p.gone" => Some(JsonChange::Null),
                _ => None,
            });
            assert_eq!(edited.unwrap().as_deref(), expected, "{text}");
        }
        for broken in ["", "{}", "[", "[1", "[1 2]", "[1,"] {
            assert!(edit_list(broken, &mut |_, _| None).is_err(), "{broken}");
        }
    }
}
