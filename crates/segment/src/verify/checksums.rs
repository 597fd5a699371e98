//! Comparing the bytes of a segment with their checksums, a piece at a time.
//!
//! Invariants:
//! - After the last step every byte of the file was compared, or what hides it is named as damaged.
//! - Nothing is decompressed or decoded: bytes with the right checksum are those that were written.
//! - Pieces are bounded, and read from the front of the file to its end; what was read is not left in
//!   memory, neither here nor, where the disk takes hints, in the system's cache.

use std::io;

use logpond_record::cast;

use crate::file::{Damage, Part, ReadError, SegmentFile};

/// Bytes read at a time, but for the footer and the directory, which are read whole: enough that a
/// rotating disk spends its time on reading, little enough that nobody waits long behind it.
const PIECE_BYTES: u64 = 1 << 20;

/// A segment that is being compared with its checksums.
pub struct Checksums {
    segment: SegmentFile,
    /// What is to be compared, in the order of the file; `None` until the directory was read.
    /// Invariant: each has bytes, all of them within the file.
    parts: Option<Vec<Part>>,
    /// The first part that was not compared to its end.
    next: usize,
    /// How many of its bytes were read, and their checksum.
    done: (u64, u32),
    piece: Vec<u8>,
    damages: Vec<Damage>,
}

impl Checksums {
    /// Nothing of this segment was read yet.
    pub fn new(segment: &SegmentFile) -> Checksums {
        Checksums {
            segment: segment.clone(),
            parts: None,
            next: 0,
            done: (0, 0),
            piece: Vec::new(),
            damages: Vec::new(),
        }
    }

    /// Reads and compares one piece more; gives how many bytes it had, or `None` behind the last one.
    ///
    /// # Errors
    /// When the disk fails; damage is no error.
    pub fn step(&mut self) -> io::Result<Option<u64>> {
        match self.parts.take() {
            None => {
                let (parts, bytes) = self.begin()?;
                self.parts = Some(parts);
                Ok(Some(bytes))
            }
            Some(parts) => {
                let read = self.compare_piece(&parts);
                self.parts = Some(parts);
                read
            }
        }
    }

    /// What is damaged, at most [`super::DAMAGES_MAX`] places, of what was compared.
    pub fn into_damages(self) -> Vec<Damage> {
        self.damages
    }

    /// Reads what says where everything is: the footer, as if the file were opened for the first
    /// time, and the directory.
    fn begin(&mut self) -> io::Result<(Vec<Part>, u64)> {
        // What is in the system's cache may be sound although the medium is not.
        self.segment.on_disk().forget(0, self.segment.bytes());
        let index_bytes = self.segment.bytes() - self.segment.index_from();
        let opened = self.segment.reopen().and_then(|segment| {
            let directory = segment.read_directory()?;
            Ok((segment, directory))
        });
        let (segment, directory) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                super::note(error, &mut self.damages)?;
                return Ok((Vec::new(), index_bytes));
            }
        };
        if let Err(error) = segment.check_start() {
            super::note(error, &mut self.damages)?;
        }
        super::note_directory(&segment, &mut self.damages)?;
        super::note_gaps(&segment, &directory, &mut self.damages)?;
        let mut parts = directory.parts();
        let end = segment.bytes();
        for part in parts.iter().filter(|part| !is_within(part, end)) {
            self.note(part, "it is beyond the end of the file")?;
        }
        parts.retain(|part| part.bytes > 0 && is_within(part, end));
        let (from, bytes) = (segment.index_from(), index_bytes);
        segment.on_disk().forget(from, bytes);
        self.segment = segment;
        Ok((parts, index_bytes))
    }

    fn compare_piece(&mut self, parts: &[Part]) -> io::Result<Option<u64>> {
        let Some(first) = parts.get(self.next) else {
            return Ok(None);
        };
        let from = first.offset + self.done.0;
        let bytes = PIECE_BYTES.min(self.segment.bytes() - from);
        let mut piece = std::mem::take(&mut self.piece);
        piece.resize(cast::to_usize(bytes), 0);
        match self.segment.on_disk().read_at(from, &mut piece) {
            Ok(()) => {}
            Err(error) => {
                // It is shorter than it was, or the disk fails.
                super::note(ReadError::from(error), &mut self.damages)?;
                self.next = parts.len();
                return Ok(None);
            }
        }
        self.segment.on_disk().forget(from, bytes);
        while let Some(part) = parts.get(self.next) {
            let (done, crc) = self.done;
            // Of parts that overlap the second is read again.
            let at = (part.offset + done).checked_sub(from);
            let Some(rest) = at.and_then(|at| piece.get(cast::to_usize(at)..)) else {
                break;
            };
            let length = rest.len().min(cast::to_usize(part.bytes - done));
            let crc = crc32c::crc32c_append(crc, &rest[..length]);
            self.done = (done + length as u64, crc);
            if self.done.0 < part.bytes {
                break;
            }
            if part.crc != Some(crc) {
                self.note(part, part.what)?;
            }
            (self.next, self.done) = (self.next + 1, (0, 0));
        }
        self.piece = piece;
        Ok(Some(bytes))
    }

    fn note(&mut self, part: &Part, what: &'static str) -> io::Result<()> {
        let damage = Damage {
            offset: part.offset,
            bytes: part.bytes,
            what,
        };
        super::note(ReadError::Damaged(damage), &mut self.damages)
    }
}

fn is_within(part: &Part, end: u64) -> bool {
    let behind = part.offset.checked_add(part.bytes);
    behind.is_some_and(|behind| behind <= end)
}
