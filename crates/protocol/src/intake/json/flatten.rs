//! Any JSON object as a record's fields.

use std::borrow::Cow;

use logpond_record::limits::JSON_DEPTH_MAX;
use logpond_record::{Fix, cast};

use super::{Escapes, JsonError, JsonReason, Scanner, Token, unescape};
use crate::intake::outline::{Outline, without_message};
use crate::intake::sketch::Parts;

/// Reads the object that `text` is, with white space around it or not: the fields go to `outline`,
/// their values to the parts that are given back.
pub(crate) fn flatten<'a>(
    text: &'a str,
    outline: &mut Outline,
    capacity: usize,
) -> Result<Parts<'a>, JsonError> {
    read(Scanner::new(text), outline, capacity)
}

/// The same for the object of a line, which may nest deeper than one that is pushed: what is deeper is one
/// text.
pub(crate) fn flatten_line<'a>(
    text: &'a str,
    outline: &mut Outline,
    capacity: usize,
) -> Result<Parts<'a>, JsonError> {
    match flatten(text, outline, capacity) {
        Err(error) if error.reason == JsonReason::TooDeep => flatten_deep(text, outline),
        read => read,
    }
}

#[cold]
fn flatten_deep<'a>(text: &'a str, outline: &mut Outline) -> Result<Parts<'a>, JsonError> {
    let scanner = Scanner {
        is_deep: true,
        ..Scanner::new(text)
    };
    read(scanner, outline, 0)
}

fn read<'a>(
    mut scanner: Scanner<'a>,
    outline: &mut Outline,
    capacity: usize,
) -> Result<Parts<'a>, JsonError> {
    outline.clear();
    if scanner.is_deep {
        outline.set_irregular();
    }
    let mut parts = Parts::new(capacity);
    parts.message = without_message(true);
    scanner.space();
    scanner.byte(b'{', "'{'")?;
    scanner.space();
    if scanner.peek() == Some(b'}') {
        scanner.at += 1;
    } else {
        members(&mut scanner, outline, &mut parts)?;
    }
    scanner.end()?;
    Ok(parts)
}

/// Reads the members of an object that is not empty, and its closing brace.
fn members<'a>(
    scanner: &mut Scanner<'a>,
    outline: &mut Outline,
    parts: &mut Parts<'a>,
) -> Result<(), JsonError> {
    // Names of the objects around, each followed by a dot, and where each of them ends.
    let mut prefix: Vec<u8> = Vec::new();
    let mut ends = [0usize; JSON_DEPTH_MAX];
    let mut depth = 1;
    loop {
        let (lexeme, escapes) = scanner.name()?;
        let key = match escapes {
            Escapes::None => Cow::Borrowed(lexeme),
            _ => Cow::Owned(unescape(lexeme)),
        };
        let token = match scanner.token()? {
            None if scanner.is_deep && depth == JSON_DEPTH_MAX => Some(scanner.deep_token()?),
            token => token,
        };
        match token {
            Some(token) => take(token, &prefix, &key, scanner, outline, parts),
            None => {
                let outer = depth;
                scanner.nest(&mut depth, scanner.at)?;
                ends[outer] = prefix.len();
                prefix.extend_from_slice(key.as_bytes());
                prefix.push(b'.');
                scanner.at += 1;
                scanner.space();
                continue;
            }
        }
        let inner = depth;
        if !scanner.next_member(&mut depth)? {
            return Ok(());
        }
        if depth < inner {
            prefix.truncate(ends[depth]);
        }
    }
}

fn take<'a>(
    token: Token<'a>,
    prefix: &[u8],
    key: &str,
    scanner: &Scanner<'a>,
    outline: &mut Outline,
    parts: &mut Parts<'a>,
) {
    if !outline.push(prefix, key.as_bytes(), token.span, token.kind) {
        return;
    }
    if !token.canonical {
        parts
            .fixes
            .push(fix(parts.values.len(), token.span, scanner));
    }
    parts.values.push(token.value);
}

/// The text of slot number `slot`, which rendering would not give.
pub(super) fn fix<'a>(slot: usize, span: (usize, usize), scanner: &Scanner<'a>) -> Fix<'a> {
    Fix {
        slot: cast::low_u16(slot),
        text: Cow::Borrowed(&scanner.bytes()[span.0..span.1]),
    }
}

/// Whether `text` is an object, as [`flatten`] reads it.
pub(crate) fn is_object(text: &str) -> bool {
    flatten(text, &mut Outline::new(), 0).is_ok()
}
