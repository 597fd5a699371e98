//! Definitions as they stand in a server's configuration: in quotes, in several parts.

use super::{DEFINITION_BYTES_MAX, Escape, FormatError, FormatReason};

/// A definition without its quotes.
#[derive(Debug)]
pub(super) struct UnquotedFormat {
    pub(super) text: String,
    pub(super) escape: Escape,
}

/// Takes `escape=…` and the quotes off. Text that does not begin with a quote is as it is, but for
/// `\"`, which is how it stands between quotes.
pub(super) fn unquote(definition: &str) -> Result<UnquotedFormat, FormatError> {
    if definition.len() > DEFINITION_BYTES_MAX {
        return Err(error(0, FormatReason::TooLong));
    }
    let mut rest = definition.trim().trim_end_matches(';').trim_end();
    let mut escape = Escape::Backslash;
    if let Some(after) = rest.strip_prefix("escape=") {
        let (name, format) = after.split_once([' ', '\n', '\t']).unwrap_or((after, ""));
        escape = match name {
            "default" => Escape::Backslash,
            "json" => Escape::Json,
            "none" => Escape::None,
            _ => return Err(error(0, FormatReason::EscapeName(name.to_owned()))),
        };
        rest = format.trim_start();
    }
    let text = if rest.starts_with(['\'', '"']) {
        parts(rest, definition)?
    } else {
        None
    };
    let text = text.unwrap_or_else(|| rest.replace("\\\"", "\""));
    if let Some(at) = text.find(['⟨', '⟩']) {
        return Err(error(at, FormatReason::Mark));
    }
    Ok(UnquotedFormat { text, escape })
}

/// Joins `'…' '…'`. `None` if more than a name stands behind them: then the quotes are part of the
/// format.
fn parts(mut rest: &str, definition: &str) -> Result<Option<String>, FormatError> {
    let mut text = String::new();
    while let Some(quote @ ('\'' | '"')) = rest.chars().next() {
        let mut is_closed = false;
        let mut inside = rest[1..].char_indices();
        while let Some((at, character)) = inside.next() {
            match character {
                '\\' => match inside.next() {
                    Some((_, 't')) => text.push('\t'),
                    Some((_, 'n')) => text.push('\n'),
                    Some((_, escaped @ ('\\' | '"' | '\''))) => text.push(escaped),
                    Some((_, other)) => text.extend(['\\', other]),
                    None => break,
                },
                character if character == quote => {
                    rest = rest[1 + at + 1..].trim_start();
                    is_closed = true;
                    break;
                }
                character => text.push(character),
            }
        }
        if !is_closed {
            let at = definition.len() - rest.len();
            return Err(error(at, FormatReason::Unclosed(quote)));
        }
    }
    // Apache's directive ends with the format's name.
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    Ok(rest.bytes().all(is_name).then_some(text))
}

fn error(at: usize, reason: FormatReason) -> FormatError {
    FormatError { at, reason }
}
