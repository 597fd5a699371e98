//! Text that is safe on a terminal and stays on one line.

use logpond_record::Value;

/// Appends text with every control character escaped, and bytes that are not UTF-8 as `\xNN`.
///
/// A tab stays a tab. A line end stays one only where `lines` says so.
pub fn write_safe(text: &[u8], lines: bool, out: &mut Vec<u8>) {
    for chunk in text.utf8_chunks() {
        let valid = chunk.valid();
        let mut clean = 0;
        for (at, character) in valid.char_indices() {
            if !is_unsafe(character, lines) {
                continue;
            }
            out.extend_from_slice(&valid.as_bytes()[clean..at]);
            clean = at + character.len_utf8();
            write_escaped(character, out);
        }
        out.extend_from_slice(&valid.as_bytes()[clean..]);
        chunk
            .invalid()
            .iter()
            .for_each(|&byte| write_hex(byte, out));
    }
}

/// Control characters, the marks that make a terminal show text in another order or another form,
/// what ends lines and is no line end, and tags, which spell whole texts that no terminal shows.
pub fn is_unsafe(c: char, lines: bool) -> bool {
    match c {
        '\t' => false,
        '\n' => !lines,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' => true,
        '\u{2066}'..='\u{206f}' | '\u{fff9}'..='\u{fffb}' => true,
        '\u{e0000}'..='\u{e007f}' => true,
        c => c.is_control(),
    }
}

/// Appends the escape of a character. Of characters that a string of JSON may have, it is valid there.
pub fn write_escaped(c: char, out: &mut Vec<u8>) {
    match c {
        '\n' => out.extend_from_slice(b"\\n"),
        '\r' => out.extend_from_slice(b"\\r"),
        c if c < ' ' => write_hex(c as u8, out),
        c => {
            for unit in c.encode_utf16(&mut [0; 2]) {
                out.extend_from_slice(format!("\\u{unit:04x}").as_bytes());
            }
        }
    }
}

/// Appends a byte as `\xNN`.
pub fn write_hex(byte: u8, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("\\x{byte:02x}").as_bytes());
}

/// Appends a value as logfmt does: in quotes where it would be misread without.
pub fn write_value(value: &Value<'_>, out: &mut Vec<u8>) {
    let text = value.to_text();
    let is_string = matches!(value, Value::Str(_) | Value::Json(_) | Value::Bytes(_));
    if !is_string || is_bare(&text) {
        out.extend_from_slice(&text);
        return;
    }
    out.push(b'"');
    let mut safe = Vec::with_capacity(text.len());
    write_safe(&double_backslashes(&text), false, &mut safe);
    out.extend_from_slice(&safe);
    out.push(b'"');
}

/// Puts a backslash before backslashes and quotes.
fn double_backslashes(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 8);
    for &byte in text {
        if matches!(byte, b'"' | b'\\') {
            out.push(b'\\');
        }
        out.push(byte);
    }
    out
}

fn is_bare(text: &[u8]) -> bool {
    !text.is_empty()
        && std::str::from_utf8(text).is_ok_and(|text| {
            text.chars().all(|c| {
                !is_unsafe(c, false) && !c.is_whitespace() && !matches!(c, '"' | '=' | '\\')
            })
        })
}

/// Appends `name=value`.
pub fn write_pair(name: &str, value: &Value<'_>, out: &mut Vec<u8>) {
    write_name(name, out);
    out.push(b'=');
    write_value(value, out);
}

/// Appends a name; characters that a name cannot have become `_`.
pub fn write_name(name: &str, out: &mut Vec<u8>) {
    for c in name.chars() {
        let c = if is_unsafe(c, false) || c.is_whitespace() || matches!(c, '"' | '=') {
            '_'
        } else {
            c
        };
        out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
    }
}
