//! Bytes of an input, cut into batches of whole lines.

use logpond_record::limits::LINE_BYTES_MAX;
use logpond_segment::journal::{FRAME_ENTRIES_MAX, FRAME_PAYLOAD_BYTES_MAX};

use super::lines::LongLine;
use crate::input::text::Encoding;

/// A batch is sent once it has this many bytes: large enough to make the cost of a request and a
/// sync small, small enough to be sent again cheaply.
pub(super) const BATCH_BYTES: usize = 1 << 20;

/// The most lines of a batch: those that one frame of a journal takes.
pub(super) const BATCH_LINES_MAX: usize = FRAME_ENTRIES_MAX;

/// The most bytes of a batch of several lines, well below what one frame takes.
const BATCH_BYTES_MAX: usize = 8 * BATCH_BYTES;

const _: () = assert!(BATCH_BYTES_MAX <= FRAME_PAYLOAD_BYTES_MAX);

/// Collects bytes and gives whole lines.
///
/// Invariants: bytes come out in the order and form they went in, but for lines beyond
/// [`LINE_BYTES_MAX`], of which the beginning comes out by itself; holds at most a batch, a line
/// and a chunk.
pub(super) struct Cutter {
    encoding: Encoding,
    buffer: Vec<u8>,
    /// End of the last whole line in the buffer.
    whole: usize,
    /// A line that is too long, while its end has not come yet.
    long: Option<LongLine>,
}

/// The outcome of taking bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Pushed {
    /// There may be whole lines.
    Lines,
    /// The line behind the whole lines became too long to be kept.
    LongBegins,
    /// This line, which was too long, has ended. It stands before what is in the cutter.
    LongEnds(LongLine),
}

impl Cutter {
    /// A cutter for text of an encoding.
    pub(super) fn new(encoding: Encoding) -> Cutter {
        Cutter {
            encoding,
            buffer: Vec::new(),
            whole: 0,
            long: None,
        }
    }

    /// Takes bytes. The whole lines must be taken before more is pushed behind [`Pushed::LongBegins`].
    pub(super) fn push(&mut self, bytes: &[u8]) -> Pushed {
        let width = self.encoding.unit_bytes();
        let start = self.buffer.len() - self.buffer.len() % width;
        self.buffer.extend_from_slice(bytes);
        if let Some(mut long) = self.long.take() {
            let Some(end) = self.encoding.first_line(&self.buffer) else {
                let part = self.buffer.len() - self.encoding.unfinished(&self.buffer);
                long.go_on(&self.buffer[..part], self.encoding);
                self.buffer.drain(..part);
                self.long = Some(long);
                return Pushed::Lines;
            };
            long.go_on(&self.buffer[..end], self.encoding);
            self.buffer.drain(..end);
            self.whole = self.encoding.whole_lines(&self.buffer).unwrap_or(0);
            return Pushed::LongEnds(long);
        }
        if let Some(end) = self.encoding.whole_lines(&self.buffer[start..]) {
            self.whole = start + end;
        }
        let rest = &self.buffer[self.whole..];
        if rest.len() <= LINE_BYTES_MAX {
            return Pushed::Lines;
        }
        let part = rest.len() - self.encoding.unfinished(rest);
        self.long = Some(LongLine::of(&rest[..part], self.encoding));
        self.buffer.drain(self.whole..self.whole + part);
        Pushed::LongBegins
    }

    /// Whether there are so many bytes of whole lines.
    pub(super) fn is_full(&self, bytes: usize) -> bool {
        self.whole >= bytes
    }

    /// Bytes that are held, or were a part of a line that did not end.
    pub(super) fn bytes(&self) -> u64 {
        let long = self.long.as_ref().map_or(0, |long| long.raw_bytes);
        self.buffer.len() as u64 + long
    }

    /// Whether there are whole lines.
    pub(super) fn has_lines(&self) -> bool {
        self.whole > 0
    }

    /// Takes the whole lines.
    pub(super) fn take(&mut self) -> Vec<u8> {
        let rest = self.buffer.split_off(self.whole);
        self.whole = 0;
        std::mem::replace(&mut self.buffer, rest)
    }

    /// Takes a line that is too long, at the end of the input.
    pub(super) fn take_long(&mut self) -> Option<LongLine> {
        let mut long = self.long.take()?;
        long.go_on(&std::mem::take(&mut self.buffer), self.encoding);
        Some(long)
    }

    /// Takes everything at the end of the input, the last line without its end included.
    pub(super) fn take_rest(&mut self) -> Vec<u8> {
        self.whole = 0;
        std::mem::take(&mut self.buffer)
    }
}

/// How much of some lines goes into one batch: all, unless they are very many or very long.
pub(super) fn first_batch(lines: &[u8]) -> usize {
    let mut taken = 0;
    for (index, at) in memchr::memchr_iter(b'\n', lines).enumerate() {
        let end = at + 1;
        if index > 0 && end > BATCH_BYTES_MAX {
            return taken;
        }
        if index + 1 == BATCH_LINES_MAX || end > BATCH_BYTES_MAX {
            return end;
        }
        taken = end;
    }
    if taken > 0 && lines.len() > BATCH_BYTES_MAX {
        taken
    } else {
        lines.len()
    }
}

/// Lines in a batch; a last one without its end counts.
pub(super) fn count_lines(batch: &[u8]) -> u64 {
    let ends = memchr::memchr_iter(b'\n', batch).count() as u64;
    ends + u64::from(batch.last().is_some_and(|&b| b != b'\n'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::text::Order;

    #[test]
    fn lines_stay_whole() {
        let mut cutter = Cutter::new(Encoding::Bytes);
        assert_eq!(cutter.push(b"a\nb"), Pushed::Lines);
        assert!(cutter.has_lines() && !cutter.is_full(BATCH_BYTES));
        assert_eq!(cutter.take(), b"a\n");
        assert!(!cutter.has_lines());
        cutter.push(b"c\n\0\xff");
        assert_eq!(cutter.take(), b"bc\n");
        assert_eq!(cutter.take_rest(), b"\0\xff");
        assert_eq!(cutter.take_rest(), b"");
    }

    /// A unit of which one byte is that of a line's end ends none.
    #[test]
    fn units_stay_whole() {
        let mut cutter = Cutter::new(Encoding::Utf16(Order::Little));
        for byte in b"a\0\x0d\x0a\n\0b\0" {
            cutter.push(&[*byte]);
        }
        assert_eq!(cutter.take(), b"a\0\x0d\x0a\n\0");
        assert_eq!(cutter.take_rest(), b"b\0");
    }

    #[test]
    fn of_a_line_that_no_server_takes_the_beginning_is_kept() {
        let mut cutter = Cutter::new(Encoding::Bytes);
        cutter.push(b"a\n");
        let half = vec![b'x'; LINE_BYTES_MAX / 2 + 1];
        assert_eq!(cutter.push(&half), Pushed::Lines);
        assert_eq!(cutter.push(&half), Pushed::LongBegins);
        assert_eq!(cutter.take(), b"a\n");
        assert_eq!(cutter.push(&half), Pushed::Lines);
        let bytes = 3 * half.len() + 1;
        assert_eq!(cutter.bytes(), bytes as u64 - 1);
        let Pushed::LongEnds(long) = cutter.push(b"x\nb") else {
            panic!("it has ended");
        };
        assert_eq!(long.head, vec![b'x'; 1 << 20]);
        assert_eq!(long.head.len() + long.cut_bytes(), bytes);
        assert_eq!(long.raw_bytes, bytes as u64 + 1);
        assert_eq!(cutter.take_long(), None);
        assert_eq!(cutter.take_rest(), b"b");
    }

    #[test]
    fn a_line_that_no_server_takes_may_have_other_units() {
        let encoding = Encoding::Utf16(Order::Big);
        let mut cutter = Cutter::new(encoding);
        let text = "é".repeat(LINE_BYTES_MAX / 2 + 9);
        let raw: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        for chunk in raw.chunks((1 << 20) + 1) {
            cutter.push(chunk);
        }
        let long = cutter.take_long().unwrap();
        assert_eq!(long.head, &text.as_bytes()[..1 << 20]);
        assert_eq!(long.head.len() + long.cut_bytes(), text.len());
        assert_eq!(long.raw_bytes, raw.len() as u64);
    }

    #[test]
    fn batches_fit_a_frame() {
        let long = [&vec![b'x'; BATCH_BYTES_MAX + 5][..], b"\n"].concat();
        let many = vec![b'\n'; BATCH_LINES_MAX];
        let table: [(Vec<u8>, usize); 9] = [
            (b"".to_vec(), 0),
            (b"a\nb".to_vec(), 3),
            (b"a\nb\n".to_vec(), 4),
            (many.clone(), BATCH_LINES_MAX),
            ([&many[..], b"a"].concat(), BATCH_LINES_MAX),
            (long.clone(), long.len()),
            ([&long[..], b"a\n"].concat(), long.len()),
            ([b"a\nb\n", &long[..]].concat(), 4),
            ([b"a\nb\n", &long[..long.len() - 1]].concat(), 4),
        ];
        for (lines, taken) in table {
            assert_eq!(first_batch(&lines), taken, "{} bytes", lines.len());
        }
    }

    #[test]
    fn lines_are_counted() {
        for (text, lines) in [
            (&b""[..], 0),
            (b"a", 1),
            (b"a\n", 1),
            (b"\n\n", 2),
            (b"a\nb", 2),
        ] {
            assert_eq!(count_lines(text), lines);
        }
    }
}
