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
}
