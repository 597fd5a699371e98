//! Escape sequences by which terminals are told colours (ECMA-48).

use memchr::memchr;

const ESCAPE: u8 = 0x1b;

/// The text without its escape sequences: CSI (`ESC [ … letter`), OSC and other strings (`ESC ] …`, up to
/// BEL or `ESC \`), and those of two or three bytes. `None` if there are none.
///
/// A sequence that does not end takes all of the text behind it only where it is a CSI of which nothing
/// else can come; a string without end is taken as two bytes, so that no text is lost by it.
pub(super) fn without_sequences(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = memchr(ESCAPE, rest) {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at + sequence_bytes(&rest[at..])..];
    }
    if rest.len() == text.len() {
        return None;
    }
    out.extend_from_slice(rest);
    Some(out)
}

/// Bytes of the sequence that begins here.
fn sequence_bytes(text: &[u8]) -> usize {
    match text.get(1) {
        Some(b'[') => {
            let inside = text[2..].iter().take_while(|b| (0x20..0x40).contains(*b));
            let end = 2 + inside.count();
            let is_ended = text.get(end).is_some_and(|b| (0x40..0x7f).contains(b));
            end + usize::from(is_ended)
        }
        Some(b']' | b'P' | b'X' | b'^' | b'_') => string_bytes(text).unwrap_or(2),
        // Intermediate bytes and a final one, such as `ESC ( B`.
        Some(0x20..0x30) => {
            let between = text[1..].iter().take_while(|b| (0x20..0x30).contains(*b));
            let end = 1 + between.count();
            end + usize::from(text.get(end).is_some_and(|b| (0x30..0x7f).contains(b)))
        }
        Some(0x30..0x7f) => 2,
        _ => 1,
    }
}

/// Bytes of a control string, with its end.
fn string_bytes(text: &[u8]) -> Option<usize> {
    let end = text[2..].iter().position(|b| matches!(*b, 0x07 | ESCAPE))? + 2;
    match (text[end], text.get(end + 1)) {
        (0x07, _) => Some(end + 1),
        (_, Some(b'\\')) => Some(end + 2),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_are_taken_out() {
        let table: [(&[u8], Option<&[u8]>); 12] = [
            (b"plain", None),
            (b"\x1b[31mred\x1b[0m end", Some(b"red end")),
            (b"\x1b[1;38;5;196mx\x1b[m", Some(b"x")),
            (b"\x1b[?25lx\x1b[2K", Some(b"x")),
            (b"\x1b]0;title\x07x", Some(b"x")),
            (b"\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\", Some(b"link")),
            (b"\x1b]no end of it", Some(b"no end of it")),
            (b"\x1b(Bx\x1b7y\x1bc", Some(b"xy")),
            (b"x\x1b", Some(b"x")),
            (b"x\x1b[", Some(b"x")),
            (b"x\x1b[31", Some(b"x")),
            (b"x\x1b\xc3\xa4", Some(b"x\xc3\xa4")),
        ];
        for (text, expected) in table {
            let found = without_sequences(text);
            assert_eq!(found.as_deref(), expected, "{}", text.escape_ascii());
        }
    }
}
