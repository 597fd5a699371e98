//! The filter in front of a terminal: one at the edge, behind all formats.
//!
//! Invariants: unless everything is handed through, what comes out is valid UTF-8 that has no control characters but
//! tabs and line ends, no marks that change the order in which text is shown, and no sequences but the
//! colours of a format that escapes all text of records itself; where a text is cut into pieces does not
//! change what comes out; at most [`HELD_BYTES_MAX`] bytes are held between two pieces.

use super::text::{is_unsafe, write_escaped, write_hex};

/// The longest sequence for a colour; those of our formats are shorter.
const COLOUR_BYTES_MAX: usize = 24;

/// Bytes that are held because what they are depends on the next ones: a sequence that is not whole.
const HELD_BYTES_MAX: usize = COLOUR_BYTES_MAX;

/// The bytes that are handed through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hands {
    /// All bytes, as they are.
    Everything,
    /// Text and sequences for colours: of formats that escape all text of records.
    TextAndColours,
    /// Text.
    Text,
}

/// See the module.
#[derive(Debug)]
pub struct Guard {
    hands: Hands,
    held: Vec<u8>,
}

impl Guard {
    /// Hands this through, and escapes the rest.
    pub fn new(hands: Hands) -> Guard {
        Guard {
            hands,
            held: Vec::new(),
        }
    }

    /// Appends what comes of the next piece of a text.
    pub fn pass(&mut self, piece: &[u8], out: &mut Vec<u8>) {
        if self.hands == Hands::Everything {
            return out.extend_from_slice(piece);
        }
        if self.held.is_empty() {
            let done = self.write(piece, false, out);
            self.held.extend_from_slice(&piece[done..]);
            return;
        }
        let mut text = std::mem::take(&mut self.held);
        text.extend_from_slice(piece);
        let done = self.write(&text, false, out);
        self.held.extend_from_slice(&text[done..]);
        debug_assert!(self.held.len() <= HELD_BYTES_MAX);
    }

    /// Appends what was held: the text has ended.
    pub fn end(&mut self, out: &mut Vec<u8>) {
        let text = std::mem::take(&mut self.held);
        self.write(&text, true, out);
    }

    /// Appends a text as far as it is known what it is; gives how far that is.
    fn write(&self, text: &[u8], is_end: bool, out: &mut Vec<u8>) -> usize {
        let mut start = 0;
        for chunk in text.utf8_chunks() {
            let valid = chunk.valid();
            let mut clean = 0;
            let mut signs = valid.char_indices();
            while let Some((at, sign)) = signs.next() {
                if !is_unsafe(sign, true) {
                    continue;
                }
                out.extend_from_slice(&valid.as_bytes()[clean..at]);
                let rest = &text[start + at..];
                match self.sequence(rest, is_end) {
                    Sequence::Unknown => return start + at,
                    Sequence::Colour(length) => {
                        out.extend_from_slice(&rest[..length]);
                        clean = at + length;
                        // The others of a sequence are ASCII.
                        signs.nth(length - 2);
                    }
                    Sequence::LineEnd => clean = at + 1,
                    Sequence::None => {
                        write_escaped(sign, out);
                        clean = at + sign.len_utf8();
                    }
                }
            }
            out.extend_from_slice(&valid.as_bytes()[clean..]);
            start += valid.len();
            let invalid = chunk.invalid();
            let is_cut = std::str::from_utf8(invalid).is_err_and(|e| e.error_len().is_none());
            if is_cut && !is_end && start + invalid.len() == text.len() {
                return start;
            }
            invalid.iter().for_each(|&byte| write_hex(byte, out));
            start += invalid.len();
        }
        start
    }

    /// The sequence that begins with a character that is not shown as it is.
    fn sequence(&self, text: &[u8], is_end: bool) -> Sequence {
        match text {
            [b'\r', b'\n', ..] => Sequence::LineEnd,
            [b'\r'] if !is_end => Sequence::Unknown,
            [b'\x1b', rest @ ..] if self.hands == Hands::TextAndColours => {
                let body = rest.strip_prefix(b"[");
                let is_parameter = |byte: &u8| byte.is_ascii_digit() || *byte == b';';
                let length = body.and_then(|body| body.iter().position(|b| !is_parameter(b)));
                let may_go_on = text.len() < COLOUR_BYTES_MAX && !is_end;
                match (body, length) {
                    (Some(body), Some(length))
                        if body[length] == b'm' && length + 3 <= COLOUR_BYTES_MAX =>
                    {
                        Sequence::Colour(length + 3)
                    }
                    (Some(_), None) if may_go_on => Sequence::Unknown,
                    (None, _) if rest.is_empty() && may_go_on => Sequence::Unknown,
                    _ => Sequence::None,
                }
            }
            _ => Sequence::None,
        }
    }
}

/// The sequence that a character belongs to which is not shown as it is.
enum Sequence {
    /// To nothing.
    None,
    /// To a line end of two characters.
    LineEnd,
    /// To a sequence of so many bytes for a colour.
    Colour(usize),
    /// The next piece tells.
    Unknown,
}

/// A whole text as a terminal may be sent it.
pub fn clean(text: &str) -> String {
    let mut guard = Guard::new(Hands::Text);
    let mut out = Vec::with_capacity(text.len());
    guard.pass(text.as_bytes(), &mut out);
    guard.end(&mut out);
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn passed(hands: Hands, pieces: &[&[u8]]) -> Vec<u8> {
        let mut guard = Guard::new(hands);
        let mut out = Vec::new();
        pieces.iter().for_each(|piece| guard.pass(piece, &mut out));
        guard.end(&mut out);
        out
    }

    #[test]
    fn a_terminal_is_sent_text() {
        let table: [(&[u8], &str, &str); 13] = [
            (b"a\tb\nc\r\n", "a\tb\nc\n", "a\tb\nc\n"),
            (b"a\rb", r"a\rb", r"a\rb"),
            (
                b"\x1b[2J\x1b]0;x\x07",
                r"\x1b[2J\x1b]0;x\x07",
                r"\x1b[2J\x1b]0;x\x07",
            ),
            (
                b"\x1b[1;31mx\x1b[0m",
                r"\x1b[1;31mx\x1b[0m",
                "\x1b[1;31mx\x1b[0m",
            ),
            (b"\x1b[8;", r"\x1b[8;", r"\x1b[8;"),
            (b"\x1b", r"\x1b", r"\x1b"),
            (
                "\u{9b}2J \u{85}".as_bytes(),
                r"\u009b2J \u0085",
                r"\u009b2J \u0085",
            ),
            (b"\x9b2J \xff", r"\x9b2J \xff", r"\x9b2J \xff"),
            (
                "\u{202e}\u{200f}\u{61c}\u{2066}\u{2028}".as_bytes(),
                r"\u202e\u200f\u061c\u2066\u2028",
                r"\u202e\u200f\u061c\u2066\u2028",
            ),
            (b"\x7f\x08\0", r"\u007f\x08\x00", r"\u007f\x08\x00"),
            ("é €\u{1f600}".as_bytes(), "é €\u{1f600}", "é €\u{1f600}"),
            (b"\xe2\x82", r"\xe2\x82", r"\xe2\x82"),
            ("a\u{e0041}".as_bytes(), r"a\udb40\udc41", r"a\udb40\udc41"),
        ];
        for (text, plain, coloured) in table {
            assert_eq!(passed(Hands::Everything, &[text]), text);
            let found = passed(Hands::Text, &[text]);
            assert_eq!(String::from_utf8(found).unwrap(), plain, "{text:?}");
            let found = passed(Hands::TextAndColours, &[text]);
            assert_eq!(String::from_utf8(found).unwrap(), coloured, "{text:?}");
        }
    }

    #[test]
    fn what_is_json_stays_json() {
        let object = "{\"a\":\"\u{7f}\u{9b}\u{202e}\u{e0041}\"}\n";
        let sent = passed(Hands::Text, &[object.as_bytes()]);
        assert!(sent.is_ascii());
        let parsed: serde_json::Value = serde_json::from_slice(&sent).unwrap();
        assert_eq!(parsed["a"], "\u{7f}\u{9b}\u{202e}\u{e0041}");
    }

    proptest! {
        #[test]
        fn pieces_come_out_as_the_whole(
            parts in prop::collection::vec(prop_oneof![
                Just(&b"\x1b[1;31m"[..]), Just(&b"\x1b["[..]), Just(&b"\r"[..]), Just(&b"\n"[..]),
                Just(&b"\xe2\x80\xae"[..]), Just(&b"\xc2\x9b"[..]), Just(&b"\x9b"[..]), Just(&b"m;0"[..]),
                Just(&b"\xf0\x9f\x98\x80"[..]),
            ], 0..20),
            cuts in prop::collection::vec(0usize..120, 0..6),
            has_colours: bool,
        ) {
            let hands = if has_colours { Hands::TextAndColours } else { Hands::Text };
            let text = parts.concat();
            let whole = passed(hands, &[&text]);
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
            cuts.sort_unstable();
            let mut pieces = Vec::new();
            let mut start = 0;
            for cut in cuts.into_iter().chain([text.len()]) {
                pieces.push(&text[start..cut]);
                start = cut;
            }
            prop_assert_eq!(&passed(hands, &pieces), &whole);
            let sent = String::from_utf8(whole).unwrap();
            prop_assert!(has_colours || !sent.contains('\x1b'));
            let is_bad = |c: char| is_unsafe(c, true) && c != '\x1b';
            prop_assert!(!sent.chars().any(is_bad));
        }
    }
}
