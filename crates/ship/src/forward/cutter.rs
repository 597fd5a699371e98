//! Bytes of an input, cut into batches of whole lines.

use logpond_record::limits::LINE_BYTES_MAX;
use logpond_segment::journal::{FRAME_ENTRIES_MAX, FRAME_PAYLOAD_BYTES_MAX};

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
/// [`LINE_BYTES_MAX`], which come out not at all and are reported; holds at most a batch, a line
/// and a chunk.
#[derive(Default)]
pub(super) struct Cutter {
    buffer: Vec<u8>,
    /// End of the last whole line in the buffer.
    whole: usize,
    /// Bytes of an over-long line that were thrown away, while its end has not come yet.
    skipped: Option<u64>,
}

/// A line that is longer than any server takes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OverLong {
    /// Whole lines in the buffer before it.
    pub(super) lines_before: u64,
}

impl Cutter {
    /// Takes bytes; says if a line has just become too long to be kept.
    pub(super) fn push(&mut self, mut bytes: &[u8]) -> Option<OverLong> {
        if let Some(skipped) = &mut self.skipped {
            let Some(end) = memchr::memchr(b'\n', bytes) else {
                *skipped += bytes.len() as u64;
                return None;
            };
            bytes = &bytes[end + 1..];
            self.skipped = None;
        }
        let start = self.buffer.len();
        self.buffer.extend_from_slice(bytes);
        if let Some(end) = memchr::memrchr(b'\n', bytes) {
            self.whole = start + end + 1;
        }
        if self.buffer.len() - self.whole <= LINE_BYTES_MAX {
            return None;
        }
        self.skipped = Some((self.buffer.len() - self.whole) as u64);
        self.buffer.truncate(self.whole);
        Some(OverLong {
            lines_before: count_lines(&self.buffer),
        })
    }

    /// Whether there are so many bytes of whole lines.
    pub(super) fn is_full(&self, bytes: usize) -> bool {
        self.whole >= bytes
    }

    /// Bytes that are held.
    pub(super) fn bytes(&self) -> usize {
        self.buffer.len()
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

    #[test]
    fn lines_stay_whole() {
        let mut cutter = Cutter::default();
        assert_eq!(cutter.push(b"a\nb"), None);
        assert!(cutter.has_lines() && !cutter.is_full(BATCH_BYTES));
        assert_eq!(cutter.take(), b"a\n");
        assert!(!cutter.has_lines());
        cutter.push(b"c\n\0\xff");
        assert_eq!(cutter.take(), b"bc\n");
        assert_eq!(cutter.take_rest(), b"\0\xff");
        assert_eq!(cutter.take_rest(), b"");
    }

    #[test]
    fn a_line_that_no_server_takes_costs_itself_only() {
        let mut cutter = Cutter::default();
        cutter.push(b"a\n");
        let half = vec![b'x'; LINE_BYTES_MAX / 2 + 1];
        assert_eq!(cutter.push(&half), None);
        assert_eq!(cutter.push(&half), Some(OverLong { lines_before: 1 }));
        assert_eq!(cutter.push(&half), None);
        assert_eq!(cutter.push(b"x\nb"), None);
        assert_eq!(cutter.take_rest(), b"a\nb");
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
