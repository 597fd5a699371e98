//! What stands behind a backslash, and characters as they are written without a meaning.

use super::error;
use crate::pattern::RegexError;

/// A class with a letter: `\d`.
pub(super) struct PerlClass {
    /// As it stands alone.
    pub(super) alone: &'static str,
    /// As it stands within brackets.
    pub(super) inside: &'static str,
}

/// The class that a text begins with, which is two bytes of it.
pub(super) fn perl_class(text: &str) -> Option<PerlClass> {
    // A vertical tab is no white space there.
    let (alone, inside) = match text.get(..2)? {
        r"\d" => ("[0-9]", "0-9"),
        r"\D" => ("[^0-9]", "[^0-9]"),
        r"\s" => (r"[\t\n\x0c\r ]", r"\t\n\x0c\r "),
        r"\S" => (r"[^\t\n\x0c\r ]", r"[^\t\n\x0c\r ]"),
        r"\w" => ("[0-9A-Za-z_]", "0-9A-Za-z_"),
        r"\W" => ("[^0-9A-Za-z_]", "[^0-9A-Za-z_]"),
        _ => return None,
    };
    Some(PerlClass { alone, inside })
}

/// A class of Unicode: `\pN`, `\p{Greek}`.
pub(super) struct UnicodeClass {
    /// As our engine has it, within brackets or alone.
    pub(super) text: String,
    /// Where it ends.
    pub(super) end: usize,
}

/// The class that stands at a place, if one does.
pub(super) fn unicode_class(written: &str, at: usize) -> Result<Option<UnicodeClass>, RegexError> {
    let text = &written[at..];
    let mut is_negated = match text.get(..2) {
        Some(r"\p") => false,
        Some(r"\P") => true,
        _ => return Ok(None),
    };
    let inside = &text[2..];
    let (mut name, bytes) = match inside.strip_prefix('{') {
        Some(named) => match named.find('}') {
            Some(end) => (&named[..end], end + 2),
            // No name is empty.
            None => ("", inside.len()),
        },
        None => {
            let bytes = inside.chars().next().map_or(0, char::len_utf8);
            (&inside[..bytes], bytes)
        }
    };
    if let Some(rest) = name.strip_prefix('^') {
        (is_negated, name) = (!is_negated, rest);
    }
    let end = at + 2 + bytes;
    let letter = if is_negated { 'P' } else { 'p' };
    let class = format!(r"\{letter}{{{name}}}");
    let is_name = !name.is_empty() && name.chars().all(|c| c == '_' || c.is_ascii_alphabetic());
    if is_name && regex_syntax::parse(&class).is_ok() {
        Ok(Some(UnicodeClass { text: class, end }))
    } else {
        let message = format!("there is no such class: `{}`", &written[at..end]);
        Err(error(at..end, message))
    }
}

/// The character that an escape at a place stands for, and where it ends. Halves of UTF-16's pairs are
/// characters here.
pub(super) fn escaped_char(written: &str, at: usize) -> Result<(u32, usize), RegexError> {
    let mut chars = written[at + 1..].chars();
    let Some(first) = chars.next() else {
        return Err(error(at..at + 1, "a backslash at the end"));
    };
    let behind = at + 1 + first.len_utf8();
    let text = &written[behind..];
    let found = match first {
        'a' => Some((7, behind)),
        'f' => Some((12, behind)),
        'n' => Some((10, behind)),
        'r' => Some((13, behind)),
        't' => Some((9, behind)),
        'v' => Some((11, behind)),
        'x' => hexadecimal(text).map(|(c, bytes)| (c, behind + bytes)),
        '0'..='7' => octal(first, text).map(|(c, bytes)| (c, behind + bytes)),
        c if c.is_ascii() && !c.is_ascii_alphanumeric() => Some((u32::from(c), behind)),
        _ => None,
    };
    found.ok_or_else(|| {
        let message = format!("there is no such escape: `{}`", &written[at..behind]);
        error(at..behind, message)
    })
}

/// `7f` or `{10ffff}`, and how many bytes it is.
fn hexadecimal(text: &str) -> Option<(u32, usize)> {
    let (digits, bytes) = match text.strip_prefix('{') {
        Some(inside) => {
            let end = inside.find('}')?;
            (&inside[..end], end + 2)
        }
        None => (text.get(..2)?, 2),
    };
    let are_digits = digits.bytes().all(|b| b.is_ascii_hexdigit());
    let c = u32::from_str_radix(digits, 16)
        .ok()
        .filter(|_| are_digits)?;
    (c <= u32::from(char::MAX)).then_some((c, bytes))
}

/// Up to two more octal digits, and how many there are. A single digit would mean a group again, which
/// no expression can.
fn octal(first: char, text: &str) -> Option<(u32, usize)> {
    let more = text
        .bytes()
        .take(2)
        .take_while(|b| (b'0'..=b'7').contains(b));
    let count = more.count();
    if first != '0' && count == 0 {
        return None;
    }
    let digits = &text[..count];
    let c = u32::from_str_radix(&format!("{first}{digits}"), 8).ok()?;
    Some((c, count))
}

/// Appends a character that means itself, within brackets or without.
pub(super) fn push_literal(c: char, out: &mut String) {
    if regex_syntax::is_meta_character(c) {
        out.push('\\');
    }
    out.push(c);
}
