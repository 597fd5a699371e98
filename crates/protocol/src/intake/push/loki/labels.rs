//! Labels of a stream as text: `{app="shop", pod="shop-1"}`, with the quoting of Go.

use std::borrow::Cow;

use logpond_record::Value;

use super::{LokiError, Pairs};
use crate::intake::push::members::keep_last;

/// Reads labels.
pub(super) fn read(text: &str) -> Result<Pairs<'_>, LokiError> {
    let refuse = |reason| LokiError::Labels {
        labels: text.chars().take(200).collect(),
        reason,
    };
    let inside = text
        .trim()
        .strip_prefix('{')
        .and_then(|t| t.strip_suffix('}'));
    let mut rest = inside.ok_or(refuse("expected {NAME=\"VALUE\", …}"))?.trim();
    let mut pairs = Pairs::new();
    while !rest.is_empty() {
        let (name, after) = rest
            .split_once('=')
            .ok_or(refuse("expected '=' behind a name"))?;
        let (value, after) = quoted(after.trim_start()).ok_or(refuse("expected a quoted value"))?;
        let name = name.trim();
        if name.is_empty() || name.contains(['"', '{', '}', ',']) {
            return Err(refuse("expected a name"));
        }
        super::hold((Cow::Borrowed(name), Value::Str(value)), &mut pairs);
        rest = match after.trim_start() {
            "" => "",
            after => {
                let after = after.strip_prefix(',');
                after
                    .ok_or(refuse("expected ',' behind a value"))?
                    .trim_start()
            }
        };
    }
    // A later one of the same name replaces it, as in JSON.
    keep_last(&mut pairs, 0);
    Ok(pairs)
}

/// The text in quotes that `text` begins with, and what follows.
fn quoted(text: &str) -> Option<(Cow<'_, str>, &str)> {
    if let Some(raw) = text.strip_prefix('`') {
        let (inside, after) = raw.split_once('`')?;
        return Some((Cow::Borrowed(inside), after));
    }
    let inside = text.strip_prefix('"')?;
    let plain = inside.find(['"', '\\'])?;
    if inside.as_bytes()[plain] == b'"' {
        return Some((Cow::Borrowed(&inside[..plain]), &inside[plain + 1..]));
    }
    let mut bytes = inside.as_bytes()[..plain].to_vec();
    let mut rest = &inside[plain..];
    loop {
        let mut letters = rest.chars();
        match letters.next()? {
            '"' => {
                // `\x` gives bytes that need not be text; then there is no such label.
                let value = String::from_utf8(bytes).ok()?;
                return Some((Cow::Owned(value), letters.as_str()));
            }
            '\\' => rest = escaped(letters.as_str(), &mut bytes)?,
            letter => {
                bytes.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
                rest = letters.as_str();
            }
        }
    }
}

/// Appends what stands behind a backslash; gives what follows it.
fn escaped<'a>(text: &'a str, out: &mut Vec<u8>) -> Option<&'a str> {
    let mut letters = text.chars();
    let letter = letters.next()?;
    let rest = letters.as_str();
    let simple = match letter {
        'n' => b'\n',
        't' => b'\t',
        'r' => b'\r',
        'a' => 7,
        'b' => 8,
        'f' => 12,
        'v' => 11,
        '\\' | '"' | '\'' => letter as u8,
        'x' => {
            let (digits, after) = rest.split_at_checked(2)?;
            out.push(u8::from_str_radix(digits, 16).ok()?);
            return Some(after);
        }
        'u' | 'U' => {
            let (digits, after) = rest.split_at_checked(if letter == 'u' { 4 } else { 8 })?;
            let letter = char::from_u32(u32::from_str_radix(digits, 16).ok()?)?;
            out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
            return Some(after);
        }
        '0'..='7' => {
            let (digits, after) = text.split_at_checked(3)?;
            out.push(u8::from_str_radix(digits, 8).ok()?);
            return Some(after);
        }
        _ => return None,
    };
    out.push(simple);
    Some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_read_as_go_writes_them() {
        let table = [
            ("{}", ""),
            (" { } ", ""),
            (r#"{app="shop"}"#, "app=shop"),
            (
                r#"{app="shop", pod = "a,b=\"c\"",}"#,
                r#"app=shop pod=a,b="c""#,
            ),
            (r#"{a="\u00e4\t\x41\101\U0001F600"}"#, "a=ä\tAA😀"),
            (r#"{a=`raw\n"`}"#, r#"a=raw\n""#),
            (r#"{a.b="1"}"#, "a.b=1"),
            (r#"{a="1",b="2",a="3"}"#, "b=2 a=3"),
        ];
        for (text, expected) in table {
            let pairs = read(text).unwrap_or_else(|e| panic!("{e}"));
            let found: Vec<_> = pairs
                .iter()
                .map(|(name, value)| {
                    format!("{name}={}", String::from_utf8_lossy(&value.to_text()))
                })
                .collect();
            assert_eq!(found.join(" "), expected);
        }
        for bad in [
            "",
            "app",
            "{",
            "{app}",
            "{app=}",
            "{app=shop}",
            r#"{app="shop}"#,
            r#"{="x"}"#,
            r#"{a="1" b="2"}"#,
            r#"{a="\q"}"#,
            r#"{a="\xff"}"#,
            r#"{a="\ud800"}"#,
            r#"{a="\x4"}"#,
        ] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
