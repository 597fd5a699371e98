//! Expressions for the elements of a list, which a record keeps as the JSON text that was sent.
//!
//! The text is as its writer wrote it: with white space or without, and with any escapes.

use std::fmt::Write;

/// A string of JSON.
const STRING: &str = r#""(?:[^"\\]|\\.)*""#;

/// The expression for a text as JSON writes it, in quotes, with the escapes that writers choose.
pub fn quoted(text: &str) -> String {
    let mut expression = String::from("\"");
    text.chars().for_each(|c| push(&mut expression, c));
    expression.push('"');
    expression
}

/// The expression for a character within a string of JSON.
fn push(expression: &mut String, c: char) {
    let short = match c {
        '"' | '\\' | '/' => Some(c),
        '\n' => Some('n'),
        '\r' => Some('r'),
        '\t' => Some('t'),
        '\u{8}' => Some('b'),
        '\u{c}' => Some('f'),
        _ => None,
    };
    let is_escaped_always = matches!(c, '"' | '\\') || c < ' ';
    // What writers of HTML escape, and those who write ASCII only.
    let is_escaped_by_some = c == '/' || "<>&'\u{7f}".contains(c) || !c.is_ascii();
    if !is_escaped_always && !is_escaped_by_some {
        expression.push_str(&regex_syntax::escape(c.encode_utf8(&mut [0; 4])));
        return;
    }
    expression.push_str("(?:");
    if !is_escaped_always {
        expression.push_str(&regex_syntax::escape(c.encode_utf8(&mut [0; 4])));
        expression.push('|');
    }
    if let Some(short) = short {
        expression.push_str(r"\\");
        expression.push_str(&regex_syntax::escape(short.encode_utf8(&mut [0; 4])));
        expression.push('|');
    }
    for unit in c.encode_utf16(&mut [0; 2]) {
        let _ = write!(expression, r"\\u(?i:{unit:04x})");
    }
    expression.push(')');
}

/// The expression for a list with an element that `element` matches as a whole. Elements of lists within it count;
/// those of objects do not.
pub fn list_with(element: &str) -> String {
    let object = format!(r#"\{{(?:{STRING}|[^"{{}}])*\}}"#);
    let before = format!(r#"(?:(?:{STRING}|{object}|[^"{{}}])*[,\[])?"#);
    format!(r"^\[{before}\s*(?:{element})\s*[,\]]")
}

#[cfg(test)]
mod tests {
    use regex_automata::meta::Regex;

    use super::*;

    #[test]
    fn elements_are_found_as_any_writer_writes_them() {
        let table = [
            (r#"["a","b"]"#, "b", true),
            (r#"[ "a" , "b" ]"#, "b", true),
            ("[\n  \"a\",\n  \"b\"\n]", "b", true),
            (r#"["a", "b"]"#, "c", false),
            (r#"["caf\u00e9"]"#, "café", true),
            (r#"["caf\u00E9"]"#, "café", true),
            (r#"["café"]"#, "café", true),
            (r#"["\ud83d\ude00!"]"#, "😀!", true),
            (r#"["a\/b"]"#, "a/b", true),
            (r#"["a/b"]"#, "a/b", true),
            (r#"["\u003ca\u003e"]"#, "<a>", true),
            (r#"["a\nb"]"#, "a\nb", true),
            (r#"["a\u000ab"]"#, "a\nb", true),
            (r#"["a\"b"]"#, "a\"b", true),
            (r#"["a\\b"]"#, "a\\b", true),
            (r#"["x, \"b\", y"]"#, "b", false),
            (r#"[["a"], [ "b" ]]"#, "b", true),
            (r#"[{"b": "b"}]"#, "b", false),
            (r#"[{"k": ["b"]}]"#, "b", false),
            (r#"[{"k": 1}, "b"]"#, "b", true),
        ];
        for (list, text, expected) in table {
            let regex = Regex::new(&list_with(&quoted(text))).unwrap();
            assert_eq!(regex.is_match(list.as_bytes()), expected, "{list} {text}");
        }
        let number = Regex::new(&list_with("20")).unwrap();
        for (list, expected) in [
            ("[1,20]", true),
            ("[ 20 ]", true),
            ("[1, 20, 3]", true),
            ("[120]", false),
            ("[20.5]", false),
            (r#"["1, 20, 3"]"#, false),
        ] {
            assert_eq!(number.is_match(list.as_bytes()), expected, "{list}");
        }
    }
}
