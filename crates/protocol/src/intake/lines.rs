//! Newline framing of raw text.
//!
//! Invariants: the bytes of all lines, with a LF behind each but perhaps the last, are the bytes
//! that were fed, but for the ends of lines that are longer than the limit; those are counted. At
//! most one line of limited length is buffered. How the input is cut into chunks does not matter.

use logpond_record::limits::{LINE_BYTES_DEFAULT, LINE_BYTES_MAX};
use memchr::memchr;

/// A line without its LF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// What was kept of the line; a CR before the LF is part of it.
    pub bytes: &'a [u8],
    /// Bytes that were cut off its end; 0 if it is complete.
    pub truncated_bytes: usize,
}

/// A line of which the end has not come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnfinishedLine {
    /// What was kept of it.
    pub bytes: Vec<u8>,
    /// Bytes behind these that were left out, because it is too long.
    pub truncated_bytes: usize,
}

/// Splits a stream of bytes into lines.
#[derive(Debug)]
pub struct LineSplitter {
    partial: Vec<u8>,
    /// Bytes of the unfinished line beyond the limit.
    truncated_bytes: usize,
    line_bytes_max: usize,
}

impl Default for LineSplitter {
    fn default() -> LineSplitter {
        LineSplitter::new(LINE_BYTES_DEFAULT)
    }
}

impl LineSplitter {
    /// A splitter that cuts lines to `line_bytes_max`, at most [`LINE_BYTES_MAX`].
    pub fn new(line_bytes_max: usize) -> LineSplitter {
        LineSplitter {
            partial: Vec::new(),
            truncated_bytes: 0,
            line_bytes_max: line_bytes_max.clamp(1, LINE_BYTES_MAX),
        }
    }

    /// Takes the next bytes of the stream and gives each line that ends in them.
    pub fn feed(&mut self, mut input: &[u8], mut take: impl FnMut(Line<'_>)) {
        while let Some(end) = memchr(b'\n', input) {
            let (line, after) = (&input[..end], &input[end + 1..]);
            if self.is_idle() && line.len() <= self.line_bytes_max {
                take(Line {
                    bytes: line,
                    truncated_bytes: 0,
                });
            } else {
                self.hold(line);
                self.give(&mut take);
            }
            input = after;
        }
        self.hold(input);
    }

    /// Gives the last line, if the stream does not end with LF.
    pub fn finish(&mut self, mut take: impl FnMut(Line<'_>)) {
        if !self.is_idle() {
            self.give(&mut take);
        }
    }

    /// Takes the unfinished line out, if there is one, for somebody else to go on with.
    pub fn take_unfinished(&mut self) -> Option<UnfinishedLine> {
        if self.is_idle() {
            return None;
        }
        Some(UnfinishedLine {
            bytes: std::mem::take(&mut self.partial),
            truncated_bytes: std::mem::take(&mut self.truncated_bytes),
        })
    }

    /// Goes on with an unfinished line; nothing was fed yet.
    pub fn resume(&mut self, line: &UnfinishedLine) {
        self.hold(&line.bytes);
        self.truncated_bytes += line.truncated_bytes;
    }

    /// Bytes of the unfinished line that are held.
    pub fn held_bytes(&self) -> usize {
        self.partial.len()
    }

    fn is_idle(&self) -> bool {
        self.partial.is_empty() && self.truncated_bytes == 0
    }

    fn hold(&mut self, bytes: &[u8]) {
        let room = self.line_bytes_max - self.partial.len();
        let kept = bytes.len().min(room);
        self.partial.extend_from_slice(&bytes[..kept]);
        self.truncated_bytes += bytes.len() - kept;
    }

    fn give(&mut self, take: &mut impl FnMut(Line<'_>)) {
        let kept = match self.truncated_bytes {
            0 => self.partial.len(),
            _ => character_end(&self.partial),
        };
        take(Line {
            bytes: &self.partial[..kept],
            truncated_bytes: self.truncated_bytes + self.partial.len() - kept,
        });
        clear(&mut self.partial);
        self.truncated_bytes = 0;
    }
}

/// Where to cut so that no UTF-8 character is split: up to three bytes before the end.
pub(super) fn character_end(bytes: &[u8]) -> usize {
    let tail = &bytes[bytes.len().saturating_sub(3)..];
    match tail.iter().rposition(|b| *b >= 0xc0) {
        Some(at) if bytes.len() > tail.len() && std::str::from_utf8(&tail[at..]).is_err() => {
            bytes.len() - (tail.len() - at)
        }
        _ => bytes.len(),
    }
}

/// Buffers that one long line has grown are given back: thousands of connections may hold one.
const KEPT_BYTES_MAX: usize = 64 << 10;

/// Empties a buffer and keeps it unless it is large.
pub(super) fn clear(buffer: &mut Vec<u8>) {
    if buffer.capacity() > KEPT_BYTES_MAX {
        *buffer = Vec::new()
    } else {
        buffer.clear()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn split(chunks: &[&[u8]], max: usize) -> Vec<(Vec<u8>, usize)> {
        let mut splitter = LineSplitter::new(max);
        let mut lines = Vec::new();
        let mut take = |line: Line<'_>| lines.push((line.bytes.to_vec(), line.truncated_bytes));
        for chunk in chunks {
            splitter.feed(chunk, &mut take);
        }
        splitter.finish(&mut take);
        lines
    }

    #[test]
    fn another_splitter_goes_on_where_one_left() {
        let stream = b"one\n\nlong line 01234\n<end";
        let whole = split(&[stream], 10);
        for at in 0..=stream.len() {
            let mut lines = Vec::new();
            let mut take = |line: Line<'_>| lines.push((line.bytes.to_vec(), line.truncated_bytes));
            let mut first = LineSplitter::new(10);
            first.feed(&stream[..at], &mut take);
            let mut second = LineSplitter::new(10);
            if let Some(line) = first.take_unfinished() {
                second.resume(&line);
            }
            first.finish(&mut take);
            second.feed(&stream[at..], &mut take);
            second.finish(&mut take);
            assert_eq!(lines, whole, "cut at {at}");
        }
    }

    #[test]
    fn lines_are_split() {
        type Row<'a> = (&'a [u8], usize, &'a [(&'a [u8], usize)]);
        let table: [Row<'_>; 7] = [
            (b"", 8, &[]),
            (b"\n", 8, &[(b"", 0)]),
            (b"a\n\nb", 8, &[(b"a", 0), (b"", 0), (b"b", 0)]),
            (b"a\r\n\0%\xff\n", 8, &[(b"a\r", 0), (b"\0%\xff", 0)]),
            (
                b"12345678\n123456789\nx",
                8,
                &[(b"12345678", 0), (b"12345678", 1), (b"x", 0)],
            ),
            // A character of two bytes at the limit is not split.
            ("1234567é\n".as_bytes(), 8, &[(b"1234567", 2)]),
            (b"123456789", 8, &[(b"12345678", 1)]),
        ];
        for (input, max, expected) in table {
            let lines = split(&[input], max);
            let lines: Vec<_> = lines.iter().map(|(l, t)| (&l[..], *t)).collect();
            assert_eq!(lines, expected, "{}", input.escape_ascii());
        }
    }

    proptest! {
        #[test]
        fn chunks_do_not_matter(
            input in "[a-dé\n]{0,60}",
            cuts in proptest::collection::vec(0usize..60, 0..6),
            max in 1usize..12,
        ) {
            let input = input.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|c| c.min(input.len())).collect();
            cuts.extend([0, input.len()]);
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> = cuts.windows(2).map(|w| &input[w[0]..w[1]]).collect();
            let lines = split(&chunks, max);
            prop_assert_eq!(&lines, &split(&[input], max));
            let bytes: usize = lines.iter().map(|(l, t)| l.len() + t).sum();
            let newlines = input.iter().filter(|b| **b == b'\n').count();
            prop_assert_eq!(bytes + newlines, input.len());
            prop_assert!(lines.iter().all(|(l, _)| l.len() <= max));
        }
    }
}
