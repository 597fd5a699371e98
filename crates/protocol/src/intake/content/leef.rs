//! IBM QRadar's Log Event Extended Format: `LEEF:1.0|vendor|product|version|id|key=value<TAB>…`,
//! and `LEEF:2.0|vendor|product|version|id|delimiter|key=value…`.
//!
//! The header's fields are `leef.version`, `leef.vendor`, `leef.product`, `leef.product_version` and
//! `leef.id`; the others keep their keys. The delimiter is a character, or `x` and its hexadecimal
//! code, or a tab if nothing is given, or a bar where there is no tab. A part without a key belongs to the value before it, which holds
//! the delimiter then; an empty part is nothing.

use crate::intake::logfmt;
use crate::intake::outline::Outline;
use crate::intake::sketch::Parts;

const HEADER: [&str; 5] = [
    "leef.version",
    "leef.vendor",
    "leef.product",
    "leef.product_version",
    "leef.id",
];

const START: &str = "LEEF:";

/// Reads an event; `None` if it is none.
pub(super) fn read<'a>(text: &'a str, outline: &mut Outline) -> Option<Parts<'a>> {
    outline.clear();
    let mut parts = Parts::new(24);
    let mut at = START.len();
    for name in HEADER {
        let length = text[at..].find('|')?;
        let span = (at, at + length);
        let read = logfmt::bare_value(&text[span.0..span.1]);
        outline.add(&mut parts, name.as_bytes(), text, span, read);
        at += length + 1;
    }
    let mut delimiter = '\t';
    if text[START.len()..].starts_with("2.")
        && let Some((given, _)) = text[at..].split_once('|').filter(|(d, _)| d.len() <= 5)
    {
        delimiter = delimiter_of(given)?;
        at += given.len() + 1;
    }
    // Palo Alto Networks' firewalls put bars between them.
    if !text[at..].contains(delimiter) && text[at..].contains('|') {
        delimiter = '|';
    }
    let end = text.trim_end_matches(['\n', '\r', '\0']).len().max(at);
    attributes(&text[..end], at, delimiter, outline, &mut parts)?;
    Some(parts)
}

/// Reads the attributes from `at` to the end; `None` if anything stands before the first.
fn attributes<'a>(
    text: &'a str,
    mut at: usize,
    delimiter: char,
    outline: &mut Outline,
    parts: &mut Parts<'a>,
) -> Option<()> {
    let mut pending: Option<Attribute<'a>> = None;
    while at < text.len() {
        let length = text[at..].find(delimiter).unwrap_or(text.len() - at);
        let part = &text[at..at + length];
        let key = part.split_once('=').map(|(key, _)| key);
        match key.filter(|key| !key.is_empty()) {
            Some(key) => {
                let span = (at + key.len() + 1, at + length);
                if let Some(done) = pending.replace(Attribute { key, span }) {
                    done.add(text, outline, parts);
                }
            }
            None if part.is_empty() => {}
            None => pending.as_mut()?.span.1 = at + length,
        }
        at += length + delimiter.len_utf8();
    }
    if let Some(last) = pending {
        last.add(text, outline, parts);
    }
    Some(())
}

/// An attribute whose value may go on.
struct Attribute<'a> {
    key: &'a str,
    span: (usize, usize),
}

impl<'a> Attribute<'a> {
    fn add(self, text: &'a str, outline: &mut Outline, parts: &mut Parts<'a>) {
        let read = logfmt::bare_value(&text[self.span.0..self.span.1]);
        outline.add(parts, self.key.as_bytes(), text, self.span, read);
    }
}

fn delimiter_of(given: &str) -> Option<char> {
    let mut letters = given.chars();
    match (letters.next(), letters.as_str()) {
        (None, _) => Some('\t'),
        (Some(one), "") => Some(one).filter(char::is_ascii),
        (Some('x'), code) | (Some('0'), code) => {
            let code = code.trim_start_matches('x');
            u32::from_str_radix(code, 16).ok().and_then(char::from_u32)
        }
        _ => None,
    }
}
