//! Functions on texts.

use super::OUTPUT_BYTES_MAX;

/// `a b&c` as in the query of an address.
pub(super) fn url_encode(text: &[u8]) -> String {
    let mut out = String::with_capacity(text.len());
    for &byte in text {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                out.push(char::from(byte));
            }
            b' ' => out.push('+'),
            other => out.push_str(&format!("%{other:02X}")),
        }
    }
    out
}

/// The opposite.
pub(super) fn url_decode(text: &[u8]) -> Result<Vec<u8>, String> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        match byte {
            b'+' => out.push(b' '),
            b'%' => {
                let digits = behind.get(..2).and_then(|d| std::str::from_utf8(d).ok());
                let value = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
                out.push(value.ok_or_else(|| {
                    let shown = &behind[..behind.len().min(2)];
                    format!("invalid URL escape \"%{}\"", String::from_utf8_lossy(shown))
                })?);
                rest = &behind[2..];
            }
            other => out.push(other),
        }
    }
    Ok(out)
}

/// Checks that a text is not much longer than the one that it is made of.
///
/// # Errors
/// When it is.
pub(super) fn check_growth(made_bytes: usize, of_bytes: usize) -> Result<(), String> {
    if made_bytes > of_bytes + OUTPUT_BYTES_MAX {
        let message = format!("the text becomes longer by more than {OUTPUT_BYTES_MAX} bytes");
        return Err(message);
    }
    Ok(())
}

/// Puts a text in the place of another one, so many times at most.
///
/// # Errors
/// When that becomes too long.
pub(super) fn replace(
    text: &str,
    old: &str,
    new: &str,
    times: Option<usize>,
) -> Result<String, String> {
    let mut out = String::new();
    let mut behind = 0;
    for (at, found) in text.match_indices(old).take(times.unwrap_or(usize::MAX)) {
        out.push_str(&text[behind..at]);
        check_growth(out.len() + new.len(), text.len())?;
        out.push_str(new);
        behind = at + found.len();
    }
    out.push_str(&text[behind..]);
    Ok(out)
}

/// A text so many times; as often as there is room for it.
pub(super) fn repeat(text: &str, times: i64) -> String {
    let room = OUTPUT_BYTES_MAX / text.len().max(1);
    text.repeat(usize::try_from(times).unwrap_or(0).min(room))
}

/// The first so many bytes, or the last ones for a negative number. Of a character that is cut, U+FFFD
/// is left.
pub(super) fn truncated(text: &str, count: i64) -> String {
    let wanted = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    let bytes = text.as_bytes();
    let wanted = wanted.min(bytes.len());
    let part = if count < 0 {
        &bytes[bytes.len() - wanted..]
    } else {
        &bytes[..wanted]
    };
    String::from_utf8_lossy(part).into_owned()
}

/// Bytes from one to before another; a negative end, or one too large, is the end. Of a character that is
/// cut, U+FFFD is left.
pub(super) fn substring(text: &str, start: i64, end: i64) -> String {
    let bytes = text.as_bytes();
    let to = usize::try_from(end).map_or(bytes.len(), |end| end.min(bytes.len()));
    let from = usize::try_from(start).unwrap_or(0).min(to);
    String::from_utf8_lossy(&bytes[from..to]).into_owned()
}

/// Spaces before each line.
///
/// # Errors
/// When that becomes too long.
pub(super) fn indent(text: &str, spaces: i64) -> Result<String, String> {
    let spaces = usize::try_from(spaces).unwrap_or(0).min(OUTPUT_BYTES_MAX);
    let lines = 1 + text.matches('\n').count();
    check_growth(text.len() + lines * spaces, text.len())?;
    let pad = " ".repeat(spaces);
    Ok(format!("{pad}{}", text.replace('\n', &format!("\n{pad}"))))
}

/// Each word with a capital letter. Words end as those of Go do: at all of ASCII but letters, digits and
/// `_`, and at blanks.
pub(super) fn title(text: &str) -> String {
    let mut is_start = true;
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_start {
            out.extend(c.to_uppercase())
        } else {
            out.push(c)
        }
        is_start = if c.is_ascii() {
            !c.is_ascii_alphanumeric() && c != '_'
        } else {
            c.is_whitespace()
        };
    }
    out
}

/// So many characters of a text, filled up with spaces.
pub(super) fn aligned(text: &str, width: i64, is_left: bool) -> String {
    let width = usize::try_from(width).unwrap_or(0).min(OUTPUT_BYTES_MAX);
    let count = text.chars().count();
    if count >= width {
        return if is_left {
            text.chars().take(width).collect()
        } else {
            text.chars().skip(count - width).collect()
        };
    }
    let pad = " ".repeat(width - count);
    if is_left {
        format!("{text}{pad}")
    } else {
        format!("{pad}{text}")
    }
}

/// A replacement with `$1`, `${name}` and `$$` filled in, as Go does it: a name is as long as it
/// can be. It ends early once [`check_growth`] fails for what is appended.
pub(crate) fn expand(replacement: &str, mut group: impl FnMut(&str) -> Vec<u8>, out: &mut Vec<u8>) {
    let mut rest = replacement;
    let before = out.len();
    while let Some(at) = rest.find('$') {
        if check_growth(out.len() - before, replacement.len()).is_err() {
            return;
        }
        out.extend_from_slice(&rest.as_bytes()[..at]);
        let behind = &rest[at + 1..];
        if let Some(behind) = behind.strip_prefix('$') {
            out.push(b'$');
            rest = behind;
            continue;
        }
        let is_name = |c: char| c.is_alphanumeric() || c == '_';
        let (name, used) = match behind.strip_prefix('{') {
            Some(inside) => match inside.find('}') {
                Some(end) if end > 0 && inside[..end].chars().all(is_name) => {
                    (&inside[..end], end + 2)
                }
                _ => ("", 0),
            },
            None => {
                let end = behind.find(|c| !is_name(c)).unwrap_or(behind.len());
                (&behind[..end], end)
            }
        };
        if name.is_empty() {
            out.push(b'$')
        } else {
            out.extend(group(name))
        }
        rest = &behind[used..];
    }
    out.extend_from_slice(rest.as_bytes());
}
