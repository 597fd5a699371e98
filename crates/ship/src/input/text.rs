//! Text as other systems write it, as UTF-8.
//!
//! Files of Windows are often UTF-16, with a byte order mark or without. A file that was truncated while
//! a program went on writing at its old place begins with a hole of NUL bytes, of which the program wrote
//! none. Sources: The Unicode Standard, section 3.10; logrotate's `copytruncate`.
//!
//! Invariants:
//! - UTF-8 passes as it is, but for its byte order mark and for holes.
//! - Other encodings lose no character; what is none becomes U+FFFD.

use std::io::{self, Read};

use logpond_host::terminal::note;
use logpond_record::cast;

/// Bytes that are looked at to recognise an encoding without a mark: of a text with other letters the first
/// ones are ASCII, too, as a time or a name.
pub const SAMPLE_BYTES: usize = 32;

/// Fewer bytes recognise none.
const SAMPLE_BYTES_MIN: usize = 8;

/// The longest byte order mark.
const MARK_BYTES_MAX: usize = 4;

/// So many NUL bytes at the beginning of a line are a hole. Programs that write NUL write one.
pub const HOLE_BYTES_MIN: u64 = 16;

/// Bytes read at a time.
const READ_BYTES: usize = 64 << 10;

/// How the bytes of a unit are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The lowest byte first.
    Little,
    /// The highest byte first.
    Big,
}

/// How characters are bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// As in UTF-8, or in any other encoding whose line ends are a byte.
    Bytes,
    /// Units of two bytes.
    Utf16(Order),
    /// Units of four bytes.
    Utf32(Order),
}

/// Byte order marks; the longer of two that begin alike comes first.
const MARKS: [(&[u8], Encoding); 5] = [
    (b"\xff\xfe\0\0", Encoding::Utf32(Order::Little)),
    (b"\0\0\xfe\xff", Encoding::Utf32(Order::Big)),
    (b"\xef\xbb\xbf", Encoding::Bytes),
    (b"\xff\xfe", Encoding::Utf16(Order::Little)),
    (b"\xfe\xff", Encoding::Utf16(Order::Big)),
];

impl Encoding {
    /// The encoding of a text that starts like this, and the length of its byte order mark.
    pub fn detect(start: &[u8]) -> (Encoding, usize) {
        let marked = MARKS.iter().find(|(mark, _)| start.starts_with(mark));
        if let Some((mark, encoding)) = marked {
            return (*encoding, mark.len());
        }
        let wide = [
            Encoding::Utf16(Order::Little),
            Encoding::Utf16(Order::Big),
            Encoding::Utf32(Order::Little),
            Encoding::Utf32(Order::Big),
        ];
        let sample = &start[..start.len().min(SAMPLE_BYTES)];
        let found = wide.into_iter().find(|wide| wide.is_of(sample));
        (found.unwrap_or(Encoding::Bytes), 0)
    }

    /// True if more bytes may make a byte order mark of this start.
    pub fn may_be_mark(start: &[u8]) -> bool {
        let begins = |mark: &[u8]| mark.len() > start.len() && mark.starts_with(start);
        start.len() < MARK_BYTES_MAX && MARKS.iter().any(|(mark, _)| begins(mark))
    }

    /// True if a sample is ASCII text in units of this width.
    fn is_of(self, sample: &[u8]) -> bool {
        let units = sample.chunks_exact(self.unit_bytes());
        let is_text = |code| matches!(code, 0x09 | 0x0a | 0x0d | 0x20..=0x7e);
        sample.len() >= SAMPLE_BYTES_MIN && units.into_iter().all(|unit| is_text(self.code(unit)))
    }

    /// Bytes of a unit.
    pub fn unit_bytes(self) -> usize {
        match self {
            Encoding::Bytes => 1,
            Encoding::Utf16(_) => 2,
            Encoding::Utf32(_) => 4,
        }
    }

    /// The number that a unit is.
    fn code(self, unit: &[u8]) -> u32 {
        let add = |code: u32, byte: &u8| code << 8 | u32::from(*byte);
        match self {
            Encoding::Utf16(Order::Little) | Encoding::Utf32(Order::Little) => {
                unit.iter().rev().fold(0, add)
            }
            _ => unit.iter().fold(0, add),
        }
    }

    /// The length of the first line of a text that begins with a unit, with its end; `None` if its end
    /// is not there.
    pub fn first_line(self, text: &[u8]) -> Option<usize> {
        let width = self.unit_bytes();
        if width == 1 {
            return memchr::memchr(b'\n', text).map(|at| at + 1);
        }
        let mut units = text.chunks_exact(width);
        let at = units.position(|unit| self.code(unit) == u32::from(b'\n'))?;
        Some((at + 1) * width)
    }

    /// The length of all lines whose ends are there.
    pub fn whole_lines(self, text: &[u8]) -> Option<usize> {
        let width = self.unit_bytes();
        if width == 1 {
            return memchr::memrchr(b'\n', text).map(|at| at + 1);
        }
        let mut units = text.chunks_exact(width);
        let at = units.rposition(|unit| self.code(unit) == u32::from(b'\n'))?;
        Some((at + 1) * width)
    }

    /// Appends a text as UTF-8; units that are no character, and bytes that are no unit, as U+FFFD.
    pub fn decode(self, text: &[u8], out: &mut Vec<u8>) {
        let width = self.unit_bytes();
        if width == 1 {
            return out.extend_from_slice(text);
        }
        let mut put = |c: char| out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        let units = text.chunks_exact(width);
        let rest = units.remainder();
        let codes = units.map(|unit| self.code(unit));
        match self {
            Encoding::Utf16(_) => {
                // Units of UTF-16 have 16 bits.
                let units = char::decode_utf16(codes.map(cast::low_u16));
                units.for_each(|c| put(c.unwrap_or(char::REPLACEMENT_CHARACTER)));
            }
            _ => codes.for_each(|code| {
                put(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }),
        }
        if !rest.is_empty() {
            put(char::REPLACEMENT_CHARACTER);
        }
    }

    /// Bytes at the end of a text that are no whole character yet: a part of a unit, or the first unit of
    /// a pair.
    pub fn unfinished(self, text: &[u8]) -> usize {
        let width = self.unit_bytes();
        let part = text.len() % width;
        let whole = &text[..text.len() - part];
        let is_first = |unit: &[u8]| matches!(self.code(unit), 0xd800..=0xdbff);
        match whole.last_chunk::<2>() {
            Some(last) if matches!(self, Encoding::Utf16(_)) && is_first(last) => part + width,
            _ => part,
        }
    }
}

/// A stream of text as UTF-8, without its byte order mark and without holes. Each hole is said.
pub struct TextReader<R> {
    inner: R,
    /// The input's name in messages.
    name: String,
    encoding: Option<Encoding>,
    /// Bytes that were read and are not decoded.
    raw: Vec<u8>,
    /// Text that is to be given, from `at` on.
    text: Vec<u8>,
    at: usize,
    holes: Holes,
    is_over: bool,
}

impl<R: Read> TextReader<R> {
    /// The text of a stream of bytes.
    pub fn new(inner: R, name: &str) -> TextReader<R> {
        TextReader {
            inner,
            name: name.to_owned(),
            encoding: None,
            raw: Vec::new(),
            text: Vec::new(),
            at: 0,
            holes: Holes::default(),
            is_over: false,
        }
    }

    /// Reads some bytes, and makes text of what is whole.
    fn fill(&mut self) -> io::Result<()> {
        let before = self.raw.len();
        self.raw.resize(before + READ_BYTES, 0);
        let read = self.inner.read(&mut self.raw[before..]);
        self.raw
            .truncate(before + read.as_ref().copied().unwrap_or(0));
        self.is_over = read? == 0;
        if self.encoding.is_none() {
            // A terminal may have sent one short line: only a part of a mark waits for more.
            if !self.is_over && Encoding::may_be_mark(&self.raw) {
                return Ok(());
            }
            let (encoding, mark_bytes) = Encoding::detect(&self.raw);
            self.encoding = Some(encoding);
            self.raw.drain(..mark_bytes);
        }
        let encoding = self.encoding.unwrap_or(Encoding::Bytes);
        let unfinished = if self.is_over {
            0
        } else {
            encoding.unfinished(&self.raw)
        };
        let whole = self.raw.len() - unfinished;
        self.at = 0;
        self.text.clear();
        let mut decoded = Vec::new();
        let text = match encoding {
            Encoding::Bytes => &self.raw[..whole],
            _ => {
                encoding.decode(&self.raw[..whole], &mut decoded);
                &decoded
            }
        };
        let name = &self.name;
        let mut said = |bytes: u64| say_hole(name, bytes);
        self.holes.pass(text, &mut self.text, &mut said);
        if self.is_over {
            self.holes.finish(&mut self.text, &mut said);
        }
        self.raw.drain(..whole);
        Ok(())
    }
}

impl<R: Read> Read for TextReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.at == self.text.len() && !self.is_over {
            self.fill()?;
        }
        let left = &self.text[self.at..];
        let count = left.len().min(buffer.len());
        buffer[..count].copy_from_slice(&left[..count]);
        self.at += count;
        Ok(count)
    }
}

/// Says that a hole was left out.
pub fn say_hole(name: &str, bytes: u64) {
    note(&format!(
        "logpond: {name}: skipped a hole of {bytes} NUL bytes, as truncating a file leaves it while it \
         is written"
    ));
}

/// Leaves holes out.
struct Holes {
    /// NUL bytes at the beginning of a line of which nothing else came.
    nuls: u64,
    is_line_start: bool,
}

impl Default for Holes {
    fn default() -> Holes {
        Holes {
            nuls: 0,
            is_line_start: true,
        }
    }
}

impl Holes {
    /// Appends a text without its holes; calls `said` with the length of each.
    fn pass(&mut self, mut text: &[u8], out: &mut Vec<u8>, said: &mut impl FnMut(u64)) {
        while !text.is_empty() {
            if self.is_line_start {
                let run = text.iter().take_while(|byte| **byte == 0).count();
                self.nuls += run as u64;
                text = &text[run..];
                if text.is_empty() {
                    return;
                }
                self.finish(out, said);
            }
            // Only a line that begins with a NUL byte is looked at.
            let end = memchr::memmem::find(text, b"\n\0").map_or(text.len(), |at| at + 1);
            out.extend_from_slice(&text[..end]);
            self.is_line_start = text[end - 1] == b'\n';
            text = &text[end..];
        }
    }

    /// Nothing but the NUL bytes so far is at the beginning of the line.
    fn finish(&mut self, out: &mut Vec<u8>, said: &mut impl FnMut(u64)) {
        let nuls = std::mem::take(&mut self.nuls);
        if nuls >= HOLE_BYTES_MIN {
            said(nuls);
        } else {
            out.extend((0..nuls).map(|_| 0));
        }
        self.is_line_start = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives a few bytes at a time.
    struct SlowReader<'a>(&'a [u8], usize);

    impl Read for SlowReader<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let count = self.1.min(self.0.len()).min(buffer.len());
            buffer[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    fn encoded(text: &str, encoding: Encoding) -> Vec<u8> {
        let units = text.encode_utf16();
        match encoding {
            Encoding::Bytes => text.as_bytes().to_vec(),
            Encoding::Utf16(Order::Little) => units.flat_map(u16::to_le_bytes).collect(),
            Encoding::Utf16(Order::Big) => units.flat_map(u16::to_be_bytes).collect(),
            Encoding::Utf32(Order::Little) => text
                .chars()
                .flat_map(|c| u32::from(c).to_le_bytes())
                .collect(),
            Encoding::Utf32(Order::Big) => text
                .chars()
                .flat_map(|c| u32::from(c).to_be_bytes())
                .collect(),
        }
    }

    fn read(bytes: &[u8], at_once: usize) -> Vec<u8> {
        let mut text = Vec::new();
        TextReader::new(SlowReader(bytes, at_once), "a file")
            .read_to_end(&mut text)
            .unwrap();
        text
    }

    #[test]
    fn all_encodings_are_read_however_they_come() {
        let text = "Login failed for 'sa'.\r\nmore: é€😀\n\nlast without an end";
        for (mark, encoding) in MARKS {
            let marked = [mark, &encoded(text, encoding)].concat();
            for at_once in [1, 3, 4096] {
                assert_eq!(
                    read(&marked, at_once),
                    text.as_bytes(),
                    "{encoding:?} {at_once}"
                );
            }
            // Without a mark it takes some ASCII text at once.
            assert_eq!(
                read(&encoded(text, encoding), 40),
                text.as_bytes(),
                "{encoding:?}"
            );
        }
    }

    #[test]
    fn other_bytes_pass_as_they_are() {
        let table: [&[u8]; 7] = [
            b"",
            b"\xff",
            b"\xef\xbb",
            b"\xe9t\xe9 in Latin-1\n",
            b"a\0b\0c\n",
            b"\0\0short run\n\0\n",
            b"\xfe\xfd\xfc",
        ];
        for bytes in table {
            for at_once in [1, 2, 64] {
                assert_eq!(read(bytes, at_once), bytes);
            }
        }
        let lone = [b"\xff\xfe".as_slice(), b"a\0\0\xd8b\0c"].concat();
        assert_eq!(read(&lone, 1), "a\u{fffd}b\u{fffd}".as_bytes());
    }

    #[test]
    fn holes_are_left_out_and_the_line_behind_them_is_kept() {
        let hole = vec![0; 5000];
        let table: [(&[&[u8]], &[u8]); 4] = [
            (&[&hole, b"first\nsecond\n"], b"first\nsecond\n"),
            (&[b"before\n", &hole, b"behind\n"], b"before\nbehind\n"),
            (&[b"before\n", &hole], b"before\n"),
            (
                &[b"in ", &hole[..20], b"a line\n"],
                b"in \0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0a line\n",
            ),
        ];
        for (parts, text) in table {
            for at_once in [1, 7, 1 << 20] {
                assert_eq!(read(&parts.concat(), at_once), text);
            }
        }
    }

    #[test]
    fn lines_end_at_whole_units() {
        // U+0A0D and U+0D0A have the byte of a line end.
        let text = "a\u{a0d}\u{d0a}\nb\n";
        for (_, encoding) in MARKS {
            let bytes = encoded(text, encoding);
            let first = encoded("a\u{a0d}\u{d0a}\n", encoding).len();
            assert_eq!(encoding.first_line(&bytes), Some(first), "{encoding:?}");
            assert_eq!(encoding.whole_lines(&bytes), Some(bytes.len()));
            let cut = &bytes[..bytes.len() - encoding.unit_bytes()];
            assert_eq!(encoding.whole_lines(cut), Some(first));
            assert_eq!(encoding.first_line(&cut[first..]), None);
        }
    }
}
