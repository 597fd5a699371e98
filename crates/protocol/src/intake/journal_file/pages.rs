//! A file by pages, of which the last ones that were read are kept.
//!
//! Entries share their data and refer to it by offset, so reading goes back and forth within what is
//! small and near.

use logpond_record::cast;

use super::{Source, Trouble, damage};

/// Bytes of a page.
const PAGE_BYTES: u64 = 16 << 10;

/// Pages that are kept: 4 MiB.
const PAGES: usize = 256;

/// A file by pages.
pub(super) struct Pages<S> {
    source: S,
    length: u64,
    /// Page `n` is at place `n % PAGES`, with its number.
    kept: Vec<Option<(u64, Vec<u8>)>>,
}

impl<S: Source> Pages<S> {
    pub(super) fn new(source: S, length: u64) -> Pages<S> {
        let kept = std::iter::repeat_with(|| None).take(PAGES).collect();
        Pages {
            source,
            length,
            kept,
        }
    }

    /// Length of the file.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Fills the buffer with what is at this offset.
    pub(super) fn read(&mut self, offset: u64, buffer: &mut [u8]) -> Result<(), Trouble> {
        let end = offset.checked_add(buffer.len() as u64);
        if end.is_none_or(|end| end > self.length) {
            return damage(offset, "the file ends before that");
        }
        let (mut offset, mut filled) = (offset, 0);
        while filled < buffer.len() {
            let within = (offset % PAGE_BYTES) as usize;
            let page = self.page(offset / PAGE_BYTES)?;
            let part = &page[within..];
            let count = part.len().min(buffer.len() - filled);
            buffer[filled..filled + count].copy_from_slice(&part[..count]);
            filled += count;
            offset += count as u64;
        }
        Ok(())
    }

    pub(super) fn u8(&mut self, offset: u64) -> Result<u8, Trouble> {
        let mut bytes = [0];
        self.read(offset, &mut bytes)?;
        Ok(bytes[0])
    }

    pub(super) fn u32(&mut self, offset: u64) -> Result<u32, Trouble> {
        let mut bytes = [0; 4];
        self.read(offset, &mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    pub(super) fn u64(&mut self, offset: u64) -> Result<u64, Trouble> {
        let mut bytes = [0; 8];
        self.read(offset, &mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// A page that begins within the file.
    fn page(&mut self, number: u64) -> Result<&[u8], Trouble> {
        let place = &mut self.kept[cast::to_usize(number % PAGES as u64)];
        let is_kept = place.as_ref().is_some_and(|(kept, _)| *kept == number);
        if !is_kept {
            let from = number * PAGE_BYTES;
            let mut bytes = match place.take() {
                Some((_, bytes)) => bytes,
                None => Vec::new(),
            };
            bytes.resize(cast::to_usize(PAGE_BYTES.min(self.length - from)), 0);
            self.source.read_at(from, &mut bytes)?;
            *place = Some((number, bytes));
        }
        Ok(place.as_ref().map_or(&[], |(_, bytes)| &bytes[..]))
    }
}
