//! Values of variables that Grafana has put into a text.
//!
//! It writes them for regular expressions, with a backslash before what has a meaning there, wherever they stand:
//! `{host=~"a\.example"}`. In a text of LogQL that is no escape.

use std::borrow::Cow;

/// What may stand behind a backslash in a text of LogQL.
const KNOWN: &str = "abfnrtv\\'\"xuU01234567";

/// Operators whose right side is a regular expression.
const OF_PATTERNS: [&str; 3] = ["=~", "!~", "|~"];

/// LogQL in which each escape is one that it knows: of a regular expression the others are parts of it, elsewhere
/// the character itself is meant.
pub(super) fn known(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut quote = None;
    let mut is_pattern = false;
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        match (quote, char) {
            (None, '"' | '`') => {
                let before = out.trim_end();
                is_pattern = OF_PATTERNS
                    .iter()
                    .any(|operator| before.ends_with(operator));
                quote = Some(char);
                out.push(char);
            }
            (Some('"'), '\\') => match chars.next() {
                Some(next) if KNOWN.contains(next) => out.extend(['\\', next]),
                Some(next) if is_pattern => out.extend(['\\', '\\', next]),
                Some(next) => out.push(next),
                None => out.push('\\'),
            },
            (Some(open), char) if open == char => {
                quote = None;
                out.push(char);
            }
            (_, char) => out.push(char),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_of_patterns_are_kept_where_there_are_patterns() {
        let table = [
            (r#"{a=~"b\.c"}"#, r#"{a=~"b\\.c"}"#),
            (r#"{a =~ "(b\.c|d\-e)"}"#, r#"{a =~ "(b\\.c|d\\-e)"}"#),
            (r#"{a!~"b\/c", d="e\.f"}"#, r#"{a!~"b\\/c", d="e.f"}"#),
            (r#"{a!="b\.c"} |~ "\d\.""#, r#"{a!="b.c"} |~ "\\d\\.""#),
            (r#"{a="b"} |= "c\.d""#, r#"{a="b"} |= "c.d""#),
            (r#"{a=~"b\\.c\n\"\x41"}"#, r#"{a=~"b\\.c\n\"\x41"}"#),
            (r#"{a=~`b\.c`} |= `"\.`"#, r#"{a=~`b\.c`} |= `"\.`"#),
            (r#"{a="b"}"#, r#"{a="b"}"#),
            (r#"{a="b\"#, r#"{a="b\"#),
        ];
        for (text, expected) in table {
            assert_eq!(known(text), expected, "{text}");
        }
    }
}
