//! Uploads of a journal: bodies of `systemd-journal-upload`, of any length and in any encoding, as
//! batches of records.
//!
//! Invariants: entries come in the order of the stream; a part has at most about
//! [`PART_ENTRIES`] of them or [`PART_BYTES`], also at the end, so that memory does not grow with the body;
//! every entry is in a part or is counted as rejected; a body has at most one entry for each of its bytes, and
//! [`ENTRIES_FREE`] more.

use std::fmt;

use logpond_record::{Batch, EntryKind, Labels};

use super::body::{BodyError, Encoding};
use super::journal_entry::{Position, Sealer};
use super::journal_export::{ExportError, ExportSplitter, Exported, Partial};
use super::push::{RejectReason, Rejection};
use super::unpack::Unpacker;

/// A part ends once it has so many entries: enough that a sync is shared by many.
const PART_ENTRIES: usize = 1024;

/// A part ends once its records have so many bytes.
const PART_BYTES: usize = 1 << 20;

/// So much of the stream is read before it is looked whether the part has to end.
const PIECE_BYTES: usize = 32 << 10;

/// Entries of an upload beyond one for each byte of its body, as it came. No journal has as many: the cursors and
/// times of its entries take some bytes each, however they are compressed.
const ENTRIES_FREE: u64 = 1 << 16;

/// Rejections of a part that are listed.
const REJECTIONS_MAX: usize = 16;

/// Why an upload cannot be read on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UploadError {
    /// It is not compressed as it says.
    Body {
        /// What is wrong.
        error: BodyError,
        /// Bytes of the body, as it came, that were taken before.
        at: u64,
    },
    /// It is no journal in export format.
    Export(ExportError),
    /// It has more entries than bytes, so that a small body becomes any number of records.
    Dense {
        /// Bytes of the body, as it came, that were taken before.
        at: u64,
    },
    /// It ends within an entry.
    Partial(Partial),
}

impl fmt::Display for UploadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UploadError::Body { error, at } => write!(f, "{error}; seen at its byte {at}"),
            UploadError::Export(error) => write!(f, "{error}"),
            UploadError::Dense { at } => write!(
                f,
                "the journal has more entries than one for each byte of the body, and {ENTRIES_FREE} \
                 more; seen at its byte {at}"
            ),
            UploadError::Partial(partial) => write!(
                f,
                "the journal ends within an entry, after {} whole fields of it: no empty line follows \
                 the last one",
                partial.fields
            ),
        }
    }
}

impl std::error::Error for UploadError {}

/// An entry as a batch of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedEntry {
    /// Its record.
    pub batch: Batch,
    /// Which entry of which journal it is, if it says so.
    pub position: Option<Position>,
}

/// Some entries of an upload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// The entries.
    pub entries: Vec<SealedEntry>,
    /// The first entries that cannot be taken, with their numbers in the upload.
    pub rejected: Vec<Rejection>,
    /// How many cannot be taken.
    pub rejected_total: usize,
}

/// Reads one upload.
pub struct UploadReader {
    unpacker: Unpacker,
    splitter: ExportSplitter,
    sealer: Sealer,
    labels: Labels,
    /// What came and is not decompressed yet, from `input_at` on.
    input: Vec<u8>,
    input_at: usize,
    /// What came before `input`.
    input_bytes_before: u64,
    /// What is decompressed and not read yet, from `unpacked_at` on.
    unpacked: Vec<u8>,
    unpacked_at: usize,
    entries: usize,
    /// The body has ended, and what is decompressed is all there is.
    has_ended: bool,
}

impl UploadReader {
    /// At the beginning of an upload; `None` as for [`Unpacker::new`]. Messages longer than
    /// `line_bytes_max` are rejected; `labels` are fields of all records.
    pub fn new(encoding: Encoding, line_bytes_max: usize, labels: Labels) -> Option<UploadReader> {
        Some(UploadReader {
            unpacker: Unpacker::new(encoding)?,
            splitter: ExportSplitter::new(),
            sealer: Sealer::new(line_bytes_max),
            labels,
            input: Vec::new(),
            input_at: 0,
            input_bytes_before: 0,
            unpacked: Vec::new(),
            unpacked_at: 0,
            entries: 0,
            has_ended: false,
        })
    }

    /// Takes the next bytes of the body, once what came before [is read](UploadReader::is_drained).
    pub fn give(&mut self, bytes: Vec<u8>) {
        debug_assert!(self.is_drained());
        self.input_bytes_before += self.input.len() as u64;
        self.input = bytes;
        self.input_at = 0;
    }

    /// Whether everything that came is read.
    pub fn is_drained(&self) -> bool {
        self.input_at == self.input.len()
            && self.unpacked_at == self.unpacked.len()
            && !self.unpacker.is_pending()
    }

    /// Memory that is held once everything that came is read: of an entry and of a compressed stream
    /// that have not ended.
    pub fn held_bytes(&self) -> usize {
        self.splitter.held_bytes() + self.unpacker.held_bytes()
    }

    /// The next part of what came.
    ///
    /// # Errors
    /// When the body is none; the entries before that are lost with it, and sent again by those who
    /// learn of it.
    pub fn read(&mut self) -> Result<Part, UploadError> {
        let (mut part, mut bytes) = (Part::default(), 0);
        while !self.is_drained() && part.entries.len() < PART_ENTRIES && bytes < PART_BYTES {
            if self.unpacked_at == self.unpacked.len() {
                let input = &self.input[self.input_at..];
                let taken = self.unpacker.step(input, &mut self.unpacked);
                self.input_at += taken.map_err(|error| self.broken(error))?;
                self.unpacked_at = 0;
            }
            bytes += self.read_piece(&mut part)?;
        }
        let at = self.input_bytes_before + self.input_at as u64;
        if self.entries as u64 > at.saturating_add(ENTRIES_FREE) {
            return Err(UploadError::Dense { at });
        }
        if self.is_drained() {
            // The next bytes may come in hours.
            self.input_bytes_before += self.input.len() as u64;
            (self.input, self.input_at) = (Vec::new(), 0);
            (self.unpacked, self.unpacked_at) = (Vec::new(), 0);
        }
        Ok(part)
    }

    /// The next part of what is left at the end of the body; `None` if the upload is complete.
    ///
    /// # Errors
    /// When it ends early, wherever that is.
    pub fn finish(&mut self) -> Result<Option<Part>, UploadError> {
        if !self.has_ended {
            self.end()?;
        }
        if !self.is_drained() {
            return self.read().map(Some);
        }
        match self.splitter.partial() {
            Some(partial) => Err(UploadError::Partial(partial)),
            None => Ok(None),
        }
    }

    /// Takes the rest out of the decompression.
    fn end(&mut self) -> Result<(), UploadError> {
        debug_assert!(self.is_drained());
        self.has_ended = true;
        if let Some(identity) = Unpacker::new(Encoding::Identity) {
            let unpacker = std::mem::replace(&mut self.unpacker, identity);
            self.unpacked = unpacker.finish().map_err(|error| self.broken(error))?;
            self.unpacked_at = 0;
        }
        Ok(())
    }

    fn broken(&self, error: BodyError) -> UploadError {
        let at = self.input_bytes_before + self.input_at as u64;
        UploadError::Body { error, at }
    }

    /// Reads a piece of what is decompressed; gives the bytes of its records.
    fn read_piece(&mut self, part: &mut Part) -> Result<usize, UploadError> {
        let piece = &self.unpacked[self.unpacked_at..];
        let piece = &piece[..piece.len().min(PIECE_BYTES)];
        self.unpacked_at += piece.len();
        let (sealer, labels) = (&mut self.sealer, &self.labels);
        let entries = &mut self.entries;
        let mut bytes = 0;
        let take = |entry: Exported<'_>| {
            *entries += 1;
            let mut batch = Batch::new(EntryKind::Enveloped, labels.clone());
            let sealed = match entry {
                Ok(fields) => sealer.seal(fields.iter(), &mut batch),
                Err(fault) => Err(RejectReason::Malformed(fault.to_string())),
            };
            match sealed {
                Ok(position) => {
                    bytes += batch.payload().len();
                    part.entries.push(SealedEntry { batch, position });
                }
                Err(reason) => part.reject(*entries, reason),
            }
        };
        self.splitter
            .feed(piece, take)
            .map_err(UploadError::Export)?;
        Ok(bytes)
    }
}

impl Part {
    fn reject(&mut self, line: usize, reason: RejectReason) {
        self.rejected_total += 1;
        if self.rejected.len() < REJECTIONS_MAX {
            self.rejected.push(Rejection { line, reason });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::unpack::samples::{DICTIONARY_8_MIB, lz4, xz};
    use super::*;

    fn read(reader: &mut UploadReader, chunks: &[&[u8]]) -> Result<Vec<Part>, UploadError> {
        let mut parts = Vec::new();
        for chunk in chunks {
            reader.give(chunk.to_vec());
            while !reader.is_drained() {
                parts.push(reader.read()?);
            }
        }
        Ok(parts)
    }

    fn rest(reader: &mut UploadReader) -> Result<Vec<Part>, UploadError> {
        std::iter::from_fn(|| reader.finish().transpose()).collect()
    }

    #[test]
    fn parts_are_bounded_whatever_a_body_becomes() {
        let entries = 40_000;
        let body = zstd::encode_all(&b"MESSAGE=x\n\n".repeat(entries)[..], 3).unwrap();
        assert!(body.len() < 1000);
        let mut reader = UploadReader::new(Encoding::Zstd, 100, Labels::new()).unwrap();
        let parts = read(&mut reader, &[&body]).unwrap();
        let most = PART_ENTRIES + PIECE_BYTES;
        assert!(parts.len() > 8 && parts.iter().all(|part| part.entries.len() < most));
        let last = rest(&mut reader).unwrap();
        assert!(last.iter().all(|part| part.entries.len() < most));
        let all = parts.iter().chain(&last);
        assert_eq!(all.map(|part| part.entries.len()).sum::<usize>(), entries);
    }

    #[test]
    fn a_small_body_has_no_more_entries_than_bytes() {
        let text = b"M=x\n\n".repeat(100_000);
        let body = zstd::encode_all(&text[..], 3).unwrap();
        assert!(body.len() < 2000);
        let mut reader = UploadReader::new(Encoding::Zstd, 100, Labels::new()).unwrap();
        let refused = read(&mut reader, &[&body]).and_then(|_| rest(&mut reader));
        assert!(matches!(refused, Err(UploadError::Dense { .. })));
        let mut reader = UploadReader::new(Encoding::Identity, 100, Labels::new()).unwrap();
        read(&mut reader, &[&text]).unwrap();
        assert_eq!(reader.finish(), Ok(None));
    }

    #[test]
    fn memory_is_held_for_what_has_not_ended() {
        let entry = [&b"MESSAGE="[..], &[b'x'; 60], b"\n\n"].concat();
        let text = entry.repeat(40 << 10);
        let most = 3 << 20;
        let encodings = [
            (Encoding::Xz, xz(&text, DICTIONARY_8_MIB), text.len()),
            (
                Encoding::Zstd,
                zstd::encode_all(&text[..], 3).unwrap(),
                1 << 20,
            ),
            (Encoding::Lz4Blocks, lz4(&text, 1 << 20), 1 << 10),
            (Encoding::Identity, text.clone(), 0),
        ];
        for (encoding, body, least) in encodings {
            let mut reader = UploadReader::new(encoding, 100, Labels::new()).unwrap();
            let (begin, end) = body.split_at(body.len() - 60);
            read(&mut reader, &[begin]).unwrap();
            let held = reader.held_bytes();
            assert!(
                (least.min(2 << 20)..most).contains(&held),
                "{encoding:?} {held}"
            );
            assert_eq!(reader.input.capacity() + reader.unpacked.capacity(), 0);
            read(&mut reader, &[end]).unwrap();
            assert!(reader.held_bytes() <= 64 << 10, "{encoding:?}");
            rest(&mut reader).unwrap();
        }
    }

    #[test]
    fn where_a_body_breaks_is_said() {
        let whole = b"MESSAGE=x\n\n".repeat(100);
        for (encoding, mut body, encoded) in [
            (Encoding::Xz, xz(&whole, DICTIONARY_8_MIB), "xz"),
            (Encoding::Lz4Blocks, lz4(&whole, 64 << 10), "LZ4"),
            (
                Encoding::Zstd,
                zstd::encode_all(&whole[..], 3).unwrap(),
                "zstd",
            ),
        ] {
            let first = body.len() as u64;
            body.extend([0xff; 30]);
            let mut reader = UploadReader::new(encoding, 100, Labels::new()).unwrap();
            let broken = read(&mut reader, &[&body[..20], &body[20..]]).unwrap_err();
            let UploadError::Body { error, at } = &broken else {
                panic!("{broken:?}");
            };
            assert!(*at >= first && *at <= first + 30, "{at} of {first}");
            assert_eq!(*error, BodyError::Corrupt(encoding));
            let said = broken.to_string();
            assert!(said.contains(encoded) && said.ends_with(&format!("at its byte {at}")));
        }
    }

    #[test]
    fn rejected_entries_are_named() {
        let mut reader = UploadReader::new(Encoding::Identity, 5, Labels::new()).unwrap();
        let body = b"MESSAGE=short\n\nMESSAGE=longer\n\n=\n\nMESSAGE=last\n\n";
        let parts = read(&mut reader, &[&body[..20], &body[20..]]).unwrap();
        let numbers: Vec<usize> = parts
            .iter()
            .flat_map(|part| part.rejected.iter().map(|rejection| rejection.line))
            .collect();
        assert_eq!(numbers, [2, 3]);
        let taken: usize = parts.iter().map(|part| part.entries.len()).sum();
        assert_eq!((taken, reader.finish()), (2, Ok(None)));
    }

    #[test]
    fn bodies_that_end_early_are_refused() {
        let end = |encoding, body: &[u8]| {
            let mut reader = UploadReader::new(encoding, 100, Labels::new()).unwrap();
            read(&mut reader, &[body])?;
            rest(&mut reader)
        };
        let whole = b"MESSAGE=x\n\n";
        assert!(end(Encoding::Identity, whole).is_ok());
        assert!(end(Encoding::Identity, b"").is_ok());
        let partial = end(Encoding::Identity, b"MESSAGE=x\n\nMESSAGE=y\n");
        assert!(matches!(partial, Err(UploadError::Partial(_))));
        let packed = zstd::encode_all(&whole[..], 3).unwrap();
        assert!(end(Encoding::Zstd, &packed).is_ok());
        let cut = end(Encoding::Zstd, &packed[..packed.len() - 1]);
        assert!(matches!(cut, Err(UploadError::Body { .. })), "{cut:?}");
        let text = end(Encoding::Identity, b"text\nof no journal\n");
        assert!(matches!(text, Err(UploadError::Export(_))));
    }
}
