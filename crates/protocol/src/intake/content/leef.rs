//! IBM QRadar's Log Event Extended Format: `LEEF:1.0|vendor|product|version|id|key=value<TAB>…`,
//! and `LEEF:2.0|vendor|product|version|id|delimiter|key=value…`.
//!
//! The header's fields are `leef.version`, `leef.vendor`, `leef.product`, `leef.product_version` and
//! `leef.id`; the others keep their keys. The delimiter is a character, or `x` and its hexadecimal
//! code, or a tab if nothing is given.

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
    let end = text.trim_end_matches(['\n', '\r', '\0']).len().max(at);
    while at < end {
        let length = text[at..end].find(delimiter).unwrap_or(end - at);
        let (key, _) = text[at..at + length]
            .split_once('=')
            .filter(|(key, _)| !key.is_empty())?;
        let span = (at + key.len() + 1, at + length);
        let read = logfmt::bare_value(&text[span.0..span.1]);
        outline.add(&mut parts, key.as_bytes(), text, span, read);
        at += length + delimiter.len_utf8();
    }
    Some(parts)
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
