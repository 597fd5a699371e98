//! JSON as this program writes it: strings, and values that others wrote.

use std::borrow::Cow;

/// Appends text as a JSON string, with the escapes of RFC 8259 where they are needed only.
pub fn write_json_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    escape_json(text.as_bytes(), out);
    out.push(b'"');
}

/// Appends the inside of a JSON string: only what must be escaped is.
pub(crate) fn escape_json(text: &[u8], out: &mut Vec<u8>) {
    let mut clean = 0;
    for (at, &byte) in text.iter().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.extend_from_slice(&text[clean..at]);
        clean = at + 1;
        let letter = match byte {
            b'"' | b'\\' => byte,
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            0x08 => b'b',
            0x0c => b'f',
            _ => {
                const HEX: &[u8; 16] = b"0123456789abcdef";
                let (high, low) = (usize::from(byte >> 4), usize::from(byte & 15));
                out.extend_from_slice(&[b'\\', b'u', b'0', b'0', HEX[high], HEX[low]]);
                continue;
            }
        };
        out.extend_from_slice(&[b'\\', letter]);
    }
    out.extend_from_slice(&text[clean..]);
}

/// A JSON value on one line: the blanks between its tokens are left out if a line ends in it, as within lists of
/// indented documents. Strings have no line ends, only escapes for them.
pub fn json_on_one_line(text: &str) -> Cow<'_, str> {
    if !text.contains(['\n', '\r']) {
        return Cow::Borrowed(text);
    }
    let (mut is_string, mut is_escape) = (false, false);
    let is_kept = |letter: &char| {
        let is_quote = *letter == '"' && !is_escape;
        is_escape = is_string && *letter == '\\' && !is_escape;
        is_string ^= is_quote;
        is_string || !matches!(letter, ' ' | '\t' | '\n' | '\r')
    };
    Cow::Owned(text.chars().filter(is_kept).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_must_be_escaped_is() {
        let mut out = Vec::new();
        write_json_string("a\"\\/\n\r\t\u{8}\u{c}\0\u{1f}\u{7f}é", &mut out);
        let expected = "\"a\\\"\\\\/\\n\\r\\t\\b\\f\\u0000\\u001f\u{7f}é\"";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn values_stand_on_one_line() {
        let table = [
            ("[1, \"a b\"]", "[1, \"a b\"]"),
            ("[\n  1,\r\n\t\"a  b\"\n]", "[1,\"a  b\"]"),
            (
                "[\n\"\\\" x\\\\\", { \"é\" : 2 }]",
                "[\"\\\" x\\\\\",{\"é\":2}]",
            ),
            ("{\n}", "{}"),
        ];
        for (text, expected) in table {
            assert_eq!(json_on_one_line(text), expected, "{text}");
        }
    }
}
