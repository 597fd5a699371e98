//! JSON strings as this program writes them.

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
}
