//! The pattern of a message: its words, with those that name a number left out.
//!
//! It is made of the template that segments store, so records of the journal and of segments have the same.

use logpond_record::{Piece, Record, Shape, SlotKind};

use crate::rows::{OPEN_END, VARIABLE, write_template};

/// Stands for a part that differs.
pub const WILDCARD: &[u8] = b"<_>";

/// Fields of a request that tell who asked, and with what, not which kind of request it is: the columns of access
/// logs, and their names in objects, in order. Nearly each client has values of its own.
pub(super) const CLIENT_FIELDS: [&str; 22] = [
    "agent",
    "client_ip",
    "forwarded_for",
    "host",
    "http_referer",
    "http_user_agent",
    "http_x_forwarded_for",
    "ident",
    "proxies",
    "query",
    "referer",
    "referer_host",
    "referrer",
    "remote_addr",
    "remote_port",
    "remote_user",
    "request_id",
    "user",
    "user_agent",
    "user_ip",
    "vhost",
    "x_forwarded_for",
];

/// True if the values of a field are left out of the pattern of a line without a message.
pub(super) fn is_of_client(field: &str) -> bool {
    CLIENT_FIELDS.binary_search(&field).is_ok()
}

/// Appends the line of a record without a message, with marks for the values of clients.
pub fn write_request(record: &Record<'_>, out: &mut Vec<u8>) {
    let slots = record.shape.slots();
    let mark = |index: usize| is_of_client(&slots[index].name).then_some(VARIABLE);
    record.write_line_with(mark, out);
}

/// True if lines of a shape have more in them than their message, or the message in another form.
pub fn message_is_part(shape: &Shape) -> bool {
    let is_text = |slot: usize| shape.slots()[slot].kind == SlotKind::Text;
    !matches!(shape.pieces(), [Piece::Slot(slot)] if is_text(*slot))
}

/// Appends the pattern of a message: of its first line, every word with a number in it is replaced by
/// [`WILDCARD`]. Times and addresses, which are several such words, become one.
pub fn write_message_pattern(message: &[u8], out: &mut Vec<u8>) {
    let mut template = Vec::with_capacity(message.len());
    write_template(message, &mut template);
    write_pattern(&template, out);
}

/// Appends the pattern of a message with this template.
pub fn write_pattern(stored: &[u8], out: &mut Vec<u8>) {
    let closed = stored.strip_suffix(OPEN_END);
    let text = without_variables(closed.unwrap_or(stored));
    let from = out.len();
    let mut rest = text.trim_ascii_end();
    while let Some(byte) = rest.first() {
        let length = rest.iter().position(|b| is_between_words(*b));
        match length.unwrap_or(rest.len()) {
            0 => {
                out.push(*byte);
                rest = &rest[1..];
            }
            length => {
                write_word(&rest[..length], from, out);
                rest = &rest[length..];
            }
        }
    }
    if closed.is_some() {
        out.push(b' ');
        out.extend_from_slice(WILDCARD);
    }
}

/// The text with a digit instead of each variable. It has no other digits.
fn without_variables(stored: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(stored.len());
    let mut from = 0;
    for at in memchr::memmem::find_iter(stored, VARIABLE) {
        text.extend_from_slice(&stored[from..at]);
        text.push(b'0');
        from = at + VARIABLE.len();
    }
    text.extend_from_slice(&stored[from..]);
    text
}

const BETWEEN_WORDS: [bool; 256] = {
    let mut table = [false; 256];
    let between = b" \t\n\x0c\r\"'()[]{}<>,;:=|/?&@#";
    let mut at = 0;
    while at < between.len() {
        table[between[at] as usize] = true;
        at += 1;
    }
    table
};

fn is_between_words(byte: u8) -> bool {
    BETWEEN_WORDS[usize::from(byte)]
}

fn write_word(word: &[u8], from: usize, out: &mut Vec<u8>) {
    // The end of a sentence is none of a number.
    let (word, end) = match word.split_last() {
        Some((b'.', rest)) if !rest.is_empty() => (rest, &b"."[..]),
        _ => (word, &b""[..]),
    };
    if names_a_number(word) {
        write_wildcard(from, out)
    } else {
        out.extend_from_slice(word)
    }
    out.extend_from_slice(end);
}

/// Appends a wildcard, unless it continues one that ends with colons: `12:30:01`, `::1`.
fn write_wildcard(from: usize, out: &mut Vec<u8>) {
    let written = &out[from..];
    let colons = written.iter().rev().take_while(|b| **b == b':').count();
    let before = &written[..written.len() - colons];
    if colons > 0 && before.ends_with(WILDCARD) {
        out.truncate(out.len() - colons);
        return;
    }
    out.extend_from_slice(WILDCARD);
}

/// Whether a word is a number, an amount, an address, an id or a name with a number: it has a digit.
fn names_a_number(word: &[u8]) -> bool {
    word.iter().any(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(message: &str) -> String {
        let mut out = Vec::new();
        write_message_pattern(message.as_bytes(), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers_are_left_out_and_names_stay() {
        let table = [
            ("", ""),
            ("link eth0 is up", "link <_> is up"),
            ("took 12ms, 1.5 s", "took <_>, <_> s"),
            ("at 12:30:01.5 UTC", "at <_> UTC"),
            ("2026-11-22T10:00:00.123Z start", "<_> start"),
            ("from 10.0.0.1:8080 to [::1]:53", "from <_> to [::<_>]:<_>"),
            ("user=alice id=7f3a91c2", "user=alice id=<_>"),
            (
                "GET /api/users/17/orders?page=2",
                "GET /api/users/<_>/orders?page=<_>",
            ),
            ("pid -5 gave up after 3.", "pid <_> gave up after <_>."),
            ("charset utf-8 on x86_64", "charset <_> on <_>"),
            ("id 6ba7b810-9dad-11d1-80b4-00c04fd430c8", "id <_>"),
            ("first\n  at second", "first <_>"),
            ("ends with a line\n", "ends with a line"),
            ("größer als 5", "größer als <_>"),
        ];
        for (message, expected) in table {
            assert_eq!(template(message), expected, "{message}");
        }
    }

    #[test]
    fn fields_of_clients_are_in_order() {
        assert!(CLIENT_FIELDS.is_sorted());
    }

    #[test]
    fn long_messages_are_cut() {
        let long = "word ".repeat(1000);
        let found = template(&long);
        assert!(
            found.len() < crate::rows::MESSAGE_BYTES_MAX + 10 && found.ends_with(" <_>"),
            "{found}"
        );
    }
}
