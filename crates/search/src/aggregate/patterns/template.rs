//! The template of a message: its words, with those that name a number left out.

/// What stands for a part that differs.
pub(super) const WILDCARD: &[u8] = b"<_>";

/// The most bytes of a message that are looked at; what comes behind is one wildcard.
const MESSAGE_BYTES_MAX: usize = 1024;

/// Appends the template of a message: of its first line, every word with a number in it is replaced by
/// [`WILDCARD`]. Times and addresses, which are several such words, become one.
pub(super) fn write_template(message: &[u8], out: &mut Vec<u8>) {
    let line_end = memchr::memchr(b'\n', message).unwrap_or(message.len());
    let end = line_end.min(MESSAGE_BYTES_MAX);
    let from = out.len();
    let mut rest = message[..end].trim_ascii_end();
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
    if end < message.trim_ascii_end().len() {
        out.push(b' ');
        out.extend_from_slice(WILDCARD);
    }
}

fn is_between_words(byte: u8) -> bool {
    byte.is_ascii_whitespace() || b"\"'()[]{}<>,;:=|/?&@#".contains(&byte)
}

fn write_word(word: &[u8], from: usize, out: &mut Vec<u8>) {
    // The end of a sentence is none of a number.
    let (word, end) = match word.split_last() {
        Some((b'.', rest)) if !rest.is_empty() => (rest, &b"."[..]),
        _ => (word, &b""[..]),
    };
    match names_a_number(word) {
        true => write_wildcard(from, out),
        false => out.extend_from_slice(word),
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

/// Whether a word is a number, an amount, an address or an id rather than a name such as `eth0`
/// or `utf-8`: it begins with a digit, or has many.
fn names_a_number(word: &[u8]) -> bool {
    let digits = word.iter().filter(|byte| byte.is_ascii_digit()).count();
    let unsigned = word.trim_ascii_start();
    let unsigned = match unsigned.first() {
        Some(b'-' | b'+' | b'$' | b'~') => &unsigned[1..],
        _ => unsigned,
    };
    let begins = unsigned.first().is_some_and(u8::is_ascii_digit);
    begins || digits >= 3 || digits > 0 && digits * 2 >= word.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(message: &str) -> String {
        let mut out = Vec::new();
        write_template(message.as_bytes(), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers_are_left_out_and_names_stay() {
        let table = [
            ("", ""),
            ("link eth0 is up", "link eth0 is up"),
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
            ("charset utf-8 on x86_64", "charset utf-8 on <_>"),
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
    fn long_messages_are_cut() {
        let long = "word ".repeat(1000);
        let found = template(&long);
        assert!(
            found.len() < MESSAGE_BYTES_MAX + 10 && found.ends_with(" <_>"),
            "{found}"
        );
    }
}
