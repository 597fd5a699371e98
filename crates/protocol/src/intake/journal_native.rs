//! journald's native protocol: what `sd_journal_send` writes to a socket.
//!
//! A datagram, or a sealed file in its place, has one entry or several with empty lines between them.
//! Its fields are as those of the export format: `NAME=value` and a line end, or the name, a line end,
//! the value's length (8 bytes, little-endian), the value and a line end. Lines that begin with `.` or
//! `#` mean nothing. Source: "Native Journal Protocol", systemd.io/JOURNAL_NATIVE_PROTOCOL.
//!
//! Invariants: any bytes are entries, and what of them is not taken is counted; names that begin with
//! `_` are the receiver's words and are not taken from a sender; nothing is copied, and nothing is
//! allocated by a length that the bytes do not have.

use logpond_record::limits::FIELDS_MAX;
use memchr::memchr;

/// The longest name of a field (systemd.journal-fields(7)).
const NAME_BYTES_MAX: usize = 64;

/// The most fields of an entry that are taken, so that there is room for what the receiver adds.
const ENTRY_FIELDS_MAX: usize = FIELDS_MAX - 64;

/// An entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NativeEntry<'a> {
    /// Names and values, in their order. Names may repeat.
    pub fields: Vec<(&'a str, &'a [u8])>,
    /// Fields that were left out: of names that are none, that are not the sender's to say, cut off, or
    /// too many.
    pub left_out: usize,
}

impl NativeEntry<'_> {
    fn is_any(&self) -> bool {
        !self.fields.is_empty() || self.left_out > 0
    }
}

/// The entries of a datagram; one without a field has fields that were left out.
#[derive(Clone, Debug)]
pub struct NativeEntries<'a> {
    rest: &'a [u8],
}

impl<'a> NativeEntries<'a> {
    /// Entries of these bytes.
    pub fn new(bytes: &'a [u8]) -> NativeEntries<'a> {
        NativeEntries { rest: bytes }
    }
}

impl<'a> Iterator for NativeEntries<'a> {
    type Item = NativeEntry<'a>;

    fn next(&mut self) -> Option<NativeEntry<'a>> {
        let mut entry = NativeEntry::default();
        while !self.rest.is_empty() {
            match take_line(self.rest) {
                Line::End(after) => {
                    self.rest = after;
                    if entry.is_any() {
                        return Some(entry);
                    }
                }
                Line::Nothing(after) => self.rest = after,
                Line::Field(name, value, after) => {
                    self.rest = after;
                    match name_of(name).filter(|_| entry.fields.len() < ENTRY_FIELDS_MAX) {
                        Some(name) => entry.fields.push((name, value)),
                        None => entry.left_out += 1,
                    }
                }
                Line::CutOff => {
                    self.rest = &[];
                    entry.left_out += 1;
                }
            }
        }
        entry.is_any().then_some(entry)
    }
}

/// What bytes begin with, and what follows it.
enum Line<'a> {
    /// The end of an entry.
    End(&'a [u8]),
    /// A line that means nothing.
    Nothing(&'a [u8]),
    /// A name, a value.
    Field(&'a [u8], &'a [u8], &'a [u8]),
    /// Less than a field.
    CutOff,
}

fn take_line(bytes: &[u8]) -> Line<'_> {
    let Some(end) = memchr(b'\n', bytes) else {
        return Line::CutOff;
    };
    let (line, after) = (&bytes[..end], &bytes[end + 1..]);
    match line.first() {
        None => return Line::End(after),
        Some(b'.' | b'#') => return Line::Nothing(after),
        Some(_) => {}
    }
    if let Some(equals) = memchr(b'=', line) {
        return Line::Field(&line[..equals], &line[equals + 1..], after);
    }
    let value = after.split_first_chunk().and_then(|(length, rest)| {
        let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
        let (value, rest) = rest.split_at_checked(length)?;
        Some((value, rest.strip_prefix(b"\n")?))
    });
    match value {
        Some((value, after)) => Line::Field(line, value, after),
        None => Line::CutOff,
    }
}

/// A name that a sender may give.
fn name_of(name: &[u8]) -> Option<&str> {
    let is_allowed = |byte: &u8| matches!(byte, b'A'..=b'Z' | b'0'..=b'9' | b'_');
    let is_name = (1..=NAME_BYTES_MAX).contains(&name.len())
        && name.iter().all(is_allowed)
        && !matches!(name[0], b'0'..=b'9' | b'_');
    std::str::from_utf8(name).ok().filter(|_| is_name)
}

/// Reads any bytes as a datagram. A fuzz target.
pub fn fuzz_native(bytes: &[u8]) {
    let mut fields = 0;
    for entry in NativeEntries::new(bytes) {
        assert!(entry.is_any() && entry.fields.len() <= ENTRY_FIELDS_MAX);
        fields += entry.fields.len() + entry.left_out;
    }
    assert!(fields <= bytes.len());
}

#[cfg(test)]
mod tests {
    use super::*;

    type Described = (Vec<(&'static str, &'static [u8])>, usize);

    fn entries(bytes: &'static [u8]) -> Vec<Described> {
        let each = NativeEntries::new(bytes);
        each.map(|entry| (entry.fields, entry.left_out)).collect()
    }

    #[test]
    fn datagrams_hold_entries() {
        let message = |text: &'static [u8]| ("MESSAGE", text);
        let table: [(&'static [u8], Vec<Described>); 12] = [
            (b"", vec![]),
            (b"\n\n", vec![]),
            (b"MESSAGE=a=b\n", vec![(vec![message(b"a=b")], 0)]),
            (
                b"MESSAGE=a\nA=\nA=2\n",
                vec![(vec![message(b"a"), ("A", b""), ("A", b"2")], 0)],
            ),
            (
                b"MESSAGE=a\n\nMESSAGE=b\n\n\n",
                vec![(vec![message(b"a")], 0), (vec![message(b"b")], 0)],
            ),
            (
                b"MESSAGE\n\x03\0\0\0\0\0\0\0a\nb\nA=1\n",
                vec![(vec![message(b"a\nb"), ("A", b"1")], 0)],
            ),
            (b"# x\n.y=1\nMESSAGE=a\n", vec![(vec![message(b"a")], 0)]),
            (
                b"_PID=1\n1A=2\na=3\n=4\nMESSAGE=a\n",
                vec![(vec![message(b"a")], 4)],
            ),
            (b"MESSAGE=a\nA=cut", vec![(vec![message(b"a")], 1)]),
            (
                b"MESSAGE=a\nA\n\x09\0\0\0\0\0\0\0x\n",
                vec![(vec![message(b"a")], 1)],
            ),
            (
                b"MESSAGE=a\nA\n\xff\xff\xff\xff\xff\xff\xff\xffx\n",
                vec![(vec![message(b"a")], 1)],
            ),
            (b"nothing at all", vec![(vec![], 1)]),
        ];
        for (bytes, expected) in table {
            assert_eq!(entries(bytes), expected, "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn fields_beyond_the_most_are_counted() {
        let mut bytes = b"A=1\n".repeat(ENTRY_FIELDS_MAX + 3);
        bytes.extend_from_slice(b"\nB=2\n");
        let found: Vec<_> = NativeEntries::new(&bytes).collect();
        assert_eq!(found.len(), 2);
        assert_eq!(
            (found[0].fields.len(), found[0].left_out),
            (ENTRY_FIELDS_MAX, 3)
        );
    }
}
