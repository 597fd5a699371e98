//! Lines of a file in any encoding, and a line that is longer than any server takes.

use std::borrow::Cow;

use logpond_record::limits::{LINE_BYTES_DEFAULT, LINE_BYTES_MAX};

use super::cutter::{BATCH_BYTES, BATCH_LINES_MAX};
use crate::input::text::Encoding;

/// Lines of a file as UTF-8, and where they are in the file.
pub(super) struct Lines<'b> {
    pub(super) text: Cow<'b, [u8]>,
    /// The places at which lines begin, in the text and in the file; the end of the last one, too.
    starts: Vec<(usize, u64)>,
}

impl<'b> Lines<'b> {
    /// About a batch of the lines that begin at `offset`, at least one.
    pub(super) fn of(bytes: &'b [u8], encoding: Encoding, offset: u64) -> Lines<'b> {
        if encoding == Encoding::Bytes {
            let ends = [(0, offset), (bytes.len(), offset + bytes.len() as u64)];
            return Lines {
                text: Cow::Borrowed(bytes),
                starts: ends.to_vec(),
            };
        }
        let (mut text, mut starts, mut at) = (Vec::new(), vec![(0, offset)], 0);
        while at < bytes.len() && text.len() < BATCH_BYTES && starts.len() <= BATCH_LINES_MAX {
            let rest = &bytes[at..];
            let line = &rest[..encoding.first_line(rest).unwrap_or(rest.len())];
            encoding.decode(line, &mut text);
            at += line.len();
            starts.push((text.len(), offset + at as u64));
        }
        Lines {
            text: Cow::Owned(text),
            starts,
        }
    }

    /// The place in the file of the line that begins at this place of the text.
    pub(super) fn place(&self, at: usize) -> u64 {
        let behind = self.starts.partition_point(|(start, _)| *start <= at);
        let (start, place) = self.starts[behind.saturating_sub(1)];
        // Only lines of bytes begin between those places.
        place + (at - start) as u64
    }

    /// The place in the file behind them.
    pub(super) fn end(&self) -> u64 {
        self.place(self.text.len())
    }
}

/// A line that is longer than [`LINE_BYTES_MAX`], while it is read and when it has ended. As of a line that is longer
/// than servers take by default, its beginning is kept.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LongLine {
    /// The beginning that is kept, as UTF-8.
    pub(super) head: Vec<u8>,
    /// Bytes of it as UTF-8, without its end.
    text_bytes: u64,
    /// Bytes of it in the input, its end included.
    pub(super) raw_bytes: u64,
}

impl LongLine {
    /// A line that begins with these bytes, which hold no end of it.
    pub(super) fn of(raw: &[u8], encoding: Encoding) -> LongLine {
        let mut line = LongLine {
            head: Vec::new(),
            text_bytes: 0,
            raw_bytes: 0,
        };
        let first = raw.len().min(LINE_BYTES_DEFAULT * encoding.unit_bytes());
        let first = first - encoding.unfinished(&raw[..first]);
        encoding.decode(&raw[..first], &mut line.head);
        line.head.truncate(LINE_BYTES_DEFAULT);
        line.head.truncate(character_end(&line.head));
        line.go_on(raw, encoding);
        line
    }

    /// Counts what follows; the end of the line may be the last of it.
    pub(super) fn go_on(&mut self, raw: &[u8], encoding: Encoding) {
        self.raw_bytes += raw.len() as u64;
        let is_ended = encoding.whole_lines(raw) == Some(raw.len());
        let text = &raw[..raw.len() - usize::from(is_ended) * encoding.unit_bytes()];
        self.text_bytes += match encoding {
            Encoding::Bytes => text.len() as u64,
            _ => {
                let mut decoded = Vec::new();
                encoding.decode(text, &mut decoded);
                decoded.len() as u64
            }
        };
    }

    /// Bytes of its text that are not kept.
    pub(super) fn cut_bytes(&self) -> usize {
        usize::try_from(self.text_bytes)
            .unwrap_or(usize::MAX)
            .saturating_sub(self.head.len())
    }
}

/// The length of a text without a part of a character at its end.
fn character_end(text: &[u8]) -> usize {
    match std::str::from_utf8(text) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => text.len(),
    }
}

const _: () = assert!(LINE_BYTES_DEFAULT <= LINE_BYTES_MAX);
