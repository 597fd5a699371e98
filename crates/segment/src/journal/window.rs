//! The part of a file that is in memory while it is read.

use std::io;

use logpond_record::cast;

use crate::disk::ReadAt;

/// How much is read at once: a large share of a frame, so that few calls are made, and little
/// enough that "the last rows of an open file" costs nothing noticeable.
pub(super) const READ_BYTES: usize = 256 << 10;

/// A buffer above this is given back after the frame that needed it.
const BUFFER_BYTES_KEPT: usize = 4 << 20;

/// Part of a file in memory.
#[derive(Default)]
pub(super) struct Window {
    /// Longer than what is in memory, so that it is not cleared for each read.
    buffer: Vec<u8>,
    filled: usize,
    at: u64,
}

impl Window {
    /// Where in the file the bytes begin.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// The bytes in memory.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.buffer[..self.filled]
    }

    /// How many bytes from `offset` on are in memory.
    pub(super) fn available(&self, offset: u64) -> usize {
        let from = offset
            .checked_sub(self.at)
            .map_or(usize::MAX, cast::to_usize);
        self.filled.saturating_sub(from)
    }

    /// Makes `wanted` bytes from `offset` available, which must lie before `limit`.
    pub(super) fn fill(
        &mut self,
        file: &dyn ReadAt,
        offset: u64,
        wanted: usize,
        limit: u64,
    ) -> io::Result<&[u8]> {
        debug_assert!(offset + wanted as u64 <= limit);
        let end = self.at + self.filled as u64;
        if offset < self.at || offset + wanted as u64 > end {
            let kept = if (self.at..end).contains(&offset) {
                let from = cast::to_usize(offset - self.at);
                self.buffer.copy_within(from..self.filled, 0);
                self.filled - from
            } else {
                0
            };
            // Nothing is in memory if the disk fails.
            self.filled = 0;
            self.at = offset;
            let length = cast::to_usize((limit - offset).min(wanted.max(READ_BYTES) as u64));
            let length = length.max(kept);
            if wanted <= READ_BYTES && self.buffer.len() > BUFFER_BYTES_KEPT.max(length) {
                self.buffer.truncate(BUFFER_BYTES_KEPT.max(length));
                self.buffer.shrink_to_fit();
            }
            if self.buffer.len() < length {
                self.buffer.resize(length, 0);
            }
            file.read_at(offset + kept as u64, &mut self.buffer[kept..length])?;
            self.filled = length;
        }
        let from = cast::to_usize(offset - self.at);
        Ok(&self.buffer[from..from + wanted])
    }
}
