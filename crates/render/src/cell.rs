//! Cells of CSV, RFC 4180; for spreadsheets also without formulas.
//!
//! A spreadsheet takes a cell for a formula that begins with `=`, `+`, `-` or `@`, and some also behind blanks, with the
//! wide forms of these characters, or behind a semicolon, a tab or a line end where they split cells. Without
//! formulas an apostrophe stands before each such place, which a spreadsheet takes for the mark of a text. A
//! number stays one.

use std::borrow::Cow;

/// How cells are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cells {
    /// Texts that spreadsheets would take for formulas are made texts.
    pub are_defused: bool,
}

/// The mark before a text that is to be no formula.
const MARK: u8 = b'\'';

impl Cells {
    /// Appends a cell that is no text of a record.
    pub fn write(self, text: &[u8], out: &mut Vec<u8>) {
        let splits = |byte: &u8| match byte {
            b'"' | b',' | b'\r' | b'\n' => true,
            b';' | b'\t' => self.are_defused,
            _ => false,
        };
        if !text.iter().any(splits) {
            out.extend_from_slice(text);
            return;
        }
        out.push(b'"');
        for &byte in text {
            if byte == b'"' {
                out.push(b'"');
            }
            out.push(byte);
        }
        out.push(b'"');
    }

    /// Appends a text as a cell.
    pub fn write_text(self, text: &[u8], out: &mut Vec<u8>) {
        if self.are_defused {
            self.write(&without_formulas(text), out)
        } else {
            self.write(text, out)
        }
    }
}

/// The text with marks where a cell would be a formula.
#[cfg(feature = "sql")]
pub fn defused(text: &str) -> Cow<'_, str> {
    match without_formulas(text.as_bytes()) {
        Cow::Borrowed(_) => Cow::Borrowed(text),
        // Marks stand between characters.
        Cow::Owned(marked) => Cow::Owned(String::from_utf8_lossy(&marked).into_owned()),
    }
}

fn without_formulas(text: &[u8]) -> Cow<'_, [u8]> {
    let may_split = |byte: &u8| matches!(byte, b';' | b'\t' | b'\r' | b'\n');
    // The begin of the part that was not written yet, and of the one that may be a cell of its own.
    let (mut written, mut begin) = (0, 0);
    let mut out = Vec::new();
    loop {
        let part = &text[begin..];
        let length = part.iter().position(may_split);
        let cell = &part[..length.unwrap_or(part.len())];
        let is_split_at_once = begin == 0 && length == Some(0) && part[0] != b';';
        if is_split_at_once || is_formula(cell) {
            out.extend_from_slice(&text[written..begin]);
            out.push(MARK);
            written = begin;
        }
        match length {
            Some(length) => begin += length + 1,
            None => break,
        }
    }
    if out.is_empty() {
        Cow::Borrowed(text)
    } else {
        out.extend_from_slice(&text[written..]);
        Cow::Owned(out)
    }
}

/// True if a spreadsheet computes it.
fn is_formula(cell: &[u8]) -> bool {
    let cell = String::from_utf8_lossy(cell);
    let is_blank =
        |c: char| c.is_whitespace() || c.is_control() || matches!(c, '\u{200b}' | '\u{feff}');
    let cell = cell.trim_matches(is_blank);
    let is_sign = |c: char| {
        matches!(
            c,
            '=' | '+' | '-' | '@' | '\u{ff1d}' | '\u{ff0b}' | '\u{ff0d}' | '\u{ff20}'
        )
    };
    cell.starts_with(is_sign) && !is_number(cell)
}

/// True for numbers as programs write them.
fn is_number(text: &str) -> bool {
    let is_part = |c: char| matches!(c, '0'..='9' | '+' | '-' | '.' | 'e' | 'E');
    text.chars().all(is_part) && text.parse::<f64>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_become_texts() {
        let table = [
            ("plain", "plain"),
            ("=cmd|'/c calc'!A1", "'=cmd|'/c calc'!A1"),
            ("@SUM(1)", "'@SUM(1)"),
            ("+1+1", "'+1+1"),
            ("-1+1", "'-1+1"),
            ("-5", "-5"),
            ("+5.0", "+5.0"),
            ("-1.5e-7", "-1.5e-7"),
            ("-inf", "'-inf"),
            ("-", "'-"),
            ("=", "'="),
            (" =1", "' =1"),
            ("\u{feff}=1", "'\u{feff}=1"),
            ("\u{ff1d}1", "'\u{ff1d}1"),
            ("\t=1", "\"'\t'=1\""),
            ("\tx", "\"'\tx\""),
            ("\rx", "\"'\rx\""),
            ("a;=1;-5;b", "\"a;'=1;-5;b\""),
            ("a\n=1", "\"a\n'=1\""),
            ("a,\"=1", "\"a,\"\"=1\""),
            ("a=1", "a=1"),
            ("", ""),
        ];
        let cells = Cells { are_defused: true };
        for (text, expected) in table {
            let mut out = Vec::new();
            cells.write_text(text.as_bytes(), &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), expected, "{text:?}");
            let mut out = Vec::new();
            Cells::default().write_text(text.as_bytes(), &mut out);
            let bare = String::from_utf8(out).unwrap();
            let quoted = text.contains(['"', ',', '\r', '\n']);
            let whole = format!("\"{}\"", text.replace('"', "\"\""));
            assert_eq!(bare, if quoted { &whole } else { text });
        }
    }
}
