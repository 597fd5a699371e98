//! Templates of messages: their texts without the tokens that vary.
//!
//! ```text
//! Failed password for root from 10.0.0.7 port 4022
//! Failed password for root from <_>.<_>.<_>.<_> port <_>
//! ```
//!
//! A template is derived from its message alone. A writer groups rows by it, and a search decides about
//! all rows of a template at once. `docs/format/segment.md` is normative.
//!
//! Invariants:
//! - A template without its variables is literal text of the message, in order.
//! - Only tokens that [`may_vary`] accepts are left out, and what comes behind the first line or behind
//!   [`MESSAGE_BYTES_MAX`], which [`OPEN_END`] stands for.

use std::sync::Arc;

use logpond_record::cast;

use super::builder::Rows;
use super::column::{NULL, StringColumn, Strings};
use super::interned::Interner;
use crate::tokens::token_ranges;

/// Stands for a token that varies.
pub const VARIABLE: &[u8] = b"<_>";

/// Ends a template whose message goes on.
pub const OPEN_END: &[u8] = b"\n<_>";

/// The bytes of a message that a template is made of.
pub const MESSAGE_BYTES_MAX: usize = 1024;

/// The fewest letters of a token that may be a hexadecimal number without a digit.
const HEX_LETTERS_MIN: usize = 4;

/// A token of so many letters from `a` to `f` is no word.
const HEX_LETTERS_SURE: usize = 8;

/// The most bytes of the templates of a row group.
const TEMPLATES_BYTES_MAX: usize = 512 << 10;

/// A row group of fewer rows for a template gains nothing by them.
const ROWS_PER_TEMPLATE_MIN: usize = 8;

/// A code of messages that was not looked at.
const UNKNOWN: u32 = u32::MAX - 1;

/// Appends the template of a message.
pub fn write_template(message: &[u8], out: &mut Vec<u8>) {
    let line_end = memchr::memchr(b'\n', message).unwrap_or(message.len());
    let end = line_end.min(MESSAGE_BYTES_MAX);
    let mut at = 0;
    let mut tokens = token_ranges(&message[..end]).peekable();
    let mut before: Option<(usize, bool)> = None;
    while let Some((from, to)) = tokens.next() {
        if to == end && end < line_end {
            // The token may go on: it is a part of the rest.
            out.extend_from_slice(&message[at..from]);
            at = end;
            break;
        }
        let token = &message[from..to];
        let has_digit = has_digit(token);
        let is_joined = |gap: &[u8]| gap == b"-";
        let varies = has_digit
            || is_hex_letters(token) && {
                let follows =
                    before.is_some_and(|(end, digit)| digit && is_joined(&message[end..from]));
                let mut precedes = || {
                    let next = tokens.peek();
                    next.is_some_and(|(start, end)| {
                        is_joined(&message[to..*start]) && self::has_digit(&message[*start..*end])
                    })
                };
                token.len() >= HEX_LETTERS_SURE || follows || precedes()
            };
        if varies {
            out.extend_from_slice(&message[at..from]);
            out.extend_from_slice(VARIABLE);
            at = to;
        }
        before = Some((to, has_digit));
    }
    let is_rest_blank = message[end..].trim_ascii_end().is_empty();
    let end = if is_rest_blank { message.len() } else { end };
    out.extend_from_slice(&message[at..end]);
    if !is_rest_blank {
        out.extend_from_slice(OPEN_END);
    }
}

/// Whether a token of this text may be left out of a template.
pub fn may_vary(token: &[u8]) -> bool {
    has_digit(token) || is_hex_letters(token)
}

fn has_digit(token: &[u8]) -> bool {
    // To its end in any case: many bytes are compared at once then.
    token
        .iter()
        .fold(false, |has, byte| has | byte.is_ascii_digit())
}

fn is_hex_letters(token: &[u8]) -> bool {
    token.len() >= HEX_LETTERS_MIN && token.iter().all(|byte| matches!(byte | 0x20, b'a'..=b'f'))
}

/// The templates of the messages of some rows; other rows have none. `None` if they are too many to be
/// of use.
pub(crate) fn templates_of(rows: &Rows, slice: &[u32]) -> Option<StringColumn> {
    let messages = &rows.message;
    let mut templates = Interner::default();
    let mut text = Vec::new();
    let mut known = vec![UNKNOWN; messages.values.len()];
    let mut codes = vec![NULL; rows.len()];
    let mut present = 0;
    for row in slice {
        let message = messages.codes[*row as usize];
        if message == NULL {
            continue;
        }
        present += 1;
        let code = &mut known[message as usize];
        if *code == UNKNOWN {
            text.clear();
            write_template(messages.values.get(message), &mut text);
            *code = templates.intern(&text);
        }
        codes[*row as usize] = *code;
        let is_too_many = templates.values.len() * ROWS_PER_TEMPLATE_MIN > slice.len();
        if is_too_many || templates.values.bytes().len() > TEMPLATES_BYTES_MAX {
            return None;
        }
    }
    (present > 0).then(|| in_order(codes, &templates.values))
}

/// The same column whose texts are in order: those that messages go on behind come first, so that these
/// messages, which their templates do not tell all of, share few blocks.
fn in_order(mut codes: Vec<u32>, texts: &Strings) -> StringColumn {
    let mut order: Vec<u32> = (0..cast::low_u32(texts.len())).collect();
    let key = |code: u32| {
        let text = texts.get(code);
        (!text.ends_with(OPEN_END), text)
    };
    order.sort_unstable_by(|a, b| key(*a).cmp(&key(*b)));
    let mut places = vec![0; order.len()];
    let mut values = Strings::with_capacity(texts.len(), texts.bytes().len());
    for (code, place) in order.into_iter().zip(0..) {
        places[code as usize] = place;
        values.push(texts.get(code));
    }
    for code in codes.iter_mut().filter(|code| **code != NULL) {
        *code = places[*code as usize];
    }
    StringColumn {
        codes,
        values: Arc::new(values),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::tokens;
    use proptest::prelude::*;

    fn template(message: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        write_template(message, &mut out);
        out
    }

    #[test]
    fn tokens_that_vary_are_left_out() {
        let table = [
            ("", ""),
            ("link eth0 is up ", "link <_> is up "),
            ("took 12ms, 1.5 s", "took <_>, <_>.<_> s"),
            ("2026-11-22T10:00:00Z up", "<_>-<_>-<_>:<_>:<_> up"),
            (
                "id deadbeef-cafe-4bad-babe-c0ffee123456",
                "id <_>-<_>-<_>-<_>-<_>",
            ),
            ("a dead-letter cafe, facade", "a dead-letter cafe, facade"),
            ("key AbCdEfAb", "key <_>"),
            ("größe5 größer", "<_> größer"),
            ("at first\n  at second1", "at first\n<_>"),
            ("ends \n\n", "ends \n\n"),
            ("<_> stays", "<_> stays"),
        ];
        for (message, expected) in table {
            let found = template(message.as_bytes());
            assert_eq!(String::from_utf8_lossy(&found), expected, "{message}");
        }
    }

    #[test]
    fn long_messages_are_cut_before_a_token() {
        let long = [&b"ab ".repeat(340)[..], b"wordwordword end"].concat();
        let expected = [&b"ab ".repeat(340)[..], OPEN_END].concat();
        assert_eq!(template(&long), expected);
        let exact = [&b"ab ".repeat(340)[..], b"word"].concat();
        assert_eq!(template(&exact), exact);
    }

    proptest! {
        #[test]
        fn what_is_left_out_may_vary(message in "([a-f0-9]{1,9}|[g-z]{1,4}|[-. :é<>_\n]){0,40}") {
            let template = template(message.as_bytes());
            let open = template.ends_with(OPEN_END);
            let body = if open { &template[..template.len() - OPEN_END.len()] } else { &template[..] };
            // What the message has beyond the literal parts is tokens that may vary.
            let mut rest = message.as_bytes();
            let mut parts = split(body).into_iter();
            let first = parts.next().unwrap();
            prop_assert!(rest.starts_with(first));
            rest = &rest[first.len()..];
            for part in parts {
                let length = rest.iter().position(|b| !crate::tokens::is_token_byte(*b)).unwrap_or(rest.len());
                let token = &rest[..length];
                // A message may hold the mark itself.
                let is_mark = rest.starts_with(VARIABLE);
                prop_assert!(is_mark || may_vary(token), "{:?} of {:?}", token, message);
                let length = if is_mark { VARIABLE.len() } else { length };
                prop_assert!(rest[length..].starts_with(part));
                rest = &rest[length + part.len()..];
            }
            prop_assert!(open || rest.is_empty());
            let literal = tokens(body).filter(|token| *token != b"_");
            prop_assert!(literal.filter(|t| has_digit(t)).count() == 0);
        }
    }

    fn split(text: &[u8]) -> Vec<&[u8]> {
        let mut parts = Vec::new();
        let mut from = 0;
        for at in memchr::memmem::find_iter(text, VARIABLE) {
            parts.push(&text[from..at]);
            from = at + VARIABLE.len();
        }
        parts.push(&text[from..]);
        parts
    }
}
