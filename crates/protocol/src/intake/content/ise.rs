//! Messages of Cisco ISE: a text, and `Name=value` pairs that commas part.
//!
//! ```text
//! Failed-Attempt: Authentication failed, ConfigVersionId=17, Device IP Address=192.0.2.7, UserName=lena, Step=11001,
//! ```
//!
//! Names hold blanks. A comma within a value has a backslash before it. A further part of a message has pairs only.
//! Source: Cisco Identity Services Engine, "Syslogs", message format.

use memchr::memchr_iter;

use crate::intake::logfmt;
use crate::intake::outline::Outline;
use crate::intake::sketch::Parts;

/// Start of the name that all messages of Cisco ISE have instead of a program.
pub(super) const CATEGORY: &str = "CISE_";

/// The most bytes of a name.
const NAME_BYTES_MAX: usize = 96;

/// Reads a message; `None` if anything but pairs stands behind its text.
pub(super) fn read<'a>(text: &'a str, outline: &mut Outline) -> Option<Parts<'a>> {
    outline.clear();
    let mut parts = Parts::new(48);
    let mut at = 0;
    let mut pairs = 0;
    while at < text.len() {
        let end = at + value_bytes(&text[at..]);
        let part = &text[at..end];
        match name_bytes(part) {
            Some(name) => {
                let span = (at + name + 1, end);
                let read = logfmt::bare_value(&text[span.0..span.1]);
                outline.add(&mut parts, &part.as_bytes()[..name], text, span, read);
                pairs += 1;
            }
            // The text, which no name stands before.
            None if at == 0 => {
                let read = logfmt::bare_value(part);
                outline.add(&mut parts, b"message", text, (0, end), read);
            }
            None if part.trim_ascii().is_empty() => {}
            None => return None,
        }
        at = end + 1;
        at += usize::from(text.as_bytes().get(at) == Some(&b' '));
    }
    (pairs > 0).then_some(parts)
}

/// The bytes up to the first comma that no backslash stands before.
fn value_bytes(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut commas = memchr_iter(b',', bytes);
    let end = commas.find(|at| !bytes[..*at].ends_with(b"\\"));
    end.unwrap_or(bytes.len())
}

/// The bytes of the name that a pair begins with.
fn name_bytes(part: &str) -> Option<usize> {
    let head = part.as_bytes();
    let end = memchr::memchr(b'=', &head[..head.len().min(NAME_BYTES_MAX)])?;
    let name = &head[..end];
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b" _-./()#".contains(byte);
    let is_name = name.first().is_some_and(u8::is_ascii_alphabetic) && name.iter().all(is_part);
    is_name.then_some(end)
}
