//! Journal files over a connection: written and read in order, a part at a time.
//!
//! An *upload* is the bytes of a journal file all of whose frames are named batches, so that it can
//! be sent again. Both ends hold one frame at a time; uploads follow each other without gaps.
//!
//! Invariants:
//! - Nothing is skipped: a part that does not check out ends the connection's use. What came before
//!   it was whole.
//! - The reader says how many bytes it needs next, and that never exceeds
//!   [`FRAME_BODY_BYTES_MAX`].
//! - Identity, times and numbers in an upload only place its checksums: whoever takes the batches
//!   gives them its own.

use std::fmt;

use logpond_record::{Batch, SourceId, Timestamp};

use super::frame::{
    self, END_MARK_BYTES, Encoder, EndMark, FILE_HEADER_BYTES, FRAME_BODY_BYTES_MAX,
    FRAME_HEADER_BYTES, FileHeader, FileHeaderError, FrameHeader, FrameParts, Head, Reason,
    Scratch,
};
use super::writer::check_bounds;
use super::{Codec, NAMED_BATCHES_MAX, WriteError};
use crate::batches::BatchId;

/// Makes the bytes of one upload.
pub struct UploadWriter {
    source: SourceId,
    offset: u64,
    counts: EndMark,
    encoder: Encoder,
    buffer: Vec<u8>,
}

impl UploadWriter {
    /// Begins an upload under a random identity; gives its first bytes.
    pub fn begin(source: SourceId, created: Timestamp) -> (UploadWriter, [u8; FILE_HEADER_BYTES]) {
        let writer = UploadWriter {
            source,
            offset: FILE_HEADER_BYTES as u64,
            counts: EndMark::default(),
            encoder: Encoder::new(Codec::None),
            buffer: Vec::new(),
        };
        (writer, FileHeader { source, created }.encode())
    }

    /// The bytes of the next frame: a batch that is not empty, and its name.
    ///
    /// # Errors
    /// When the batch does not fit a frame.
    pub fn frame(
        &mut self,
        batch: &Batch,
        id: BatchId,
        sent: Timestamp,
    ) -> Result<&[u8], WriteError> {
        check_bounds(batch, Some(id))?;
        let parts = FrameParts {
            kind: batch.kind,
            labels: &batch.labels,
            lengths: batch.lengths(),
            payload: batch.payload(),
            first_number: self.counts.entries,
            received: sent,
            batch_id: Some(id),
            synced_bytes: 0,
        };
        let (source, offset) = (self.source, self.offset);
        self.encoder
            .encode(source, offset, &parts, &mut self.buffer);
        self.offset += self.buffer.len() as u64;
        self.counts.add(batch.len() as u64);
        Ok(&self.buffer)
    }

    /// The last bytes.
    pub fn end(self) -> [u8; END_MARK_BYTES] {
        self.counts.encode(self.source, self.offset)
    }
}

/// Why bytes are no upload, or none that can be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UploadError {
    /// The first bytes are no header of a journal file.
    Header(FileHeaderError),
    /// A frame or the end mark cannot be read.
    Frame {
        /// Which one, counted from 1.
        number: u64,
        /// Why.
        reason: Reason,
    },
    /// A frame has no batch identity, or one that no producer gives.
    Unnamed {
        /// Which one, counted from 1.
        number: u64,
    },
    /// There are more than [`NAMED_BATCHES_MAX`] frames.
    TooMany,
}

impl fmt::Display for UploadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UploadError::Header(FileHeaderError::Damaged) => f.write_str(
                "no journal file begins here: expected its header of 48 bytes; lines of text are \
                 taken by the listeners for them",
            ),
            UploadError::Header(FileHeaderError::Version(version)) => write!(
                f,
                "the upload has format version {version}, this server reads {}",
                frame::FORMAT_VERSION
            ),
            UploadError::Frame { number, reason } => write!(f, "frame {number}: {reason}"),
            UploadError::Unnamed { number } => write!(
                f,
                "frame {number} has no batch identity; without one it could not be sent again \
                 safely"
            ),
            UploadError::TooMany => write!(
                f,
                "an upload has at most {NAMED_BATCHES_MAX} frames; end it and begin another one"
            ),
        }
    }
}

impl std::error::Error for UploadError {}

/// What became of the bytes that a reader was given.
#[derive(Debug)]
pub enum UploadPart {
    /// A header: more must come.
    Header,
    /// A frame's batch, and its name.
    Frame(Batch, BatchId),
    /// The upload is complete. Another one may follow.
    End,
}

/// Reads uploads, one behind the other.
#[derive(Debug, Default)]
pub struct UploadReader {
    state: State,
    offset: u64,
    counts: EndMark,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    FileHeader,
    Head(SourceId),
    Body(SourceId, FrameHeader),
}

impl UploadReader {
    /// How many bytes are needed next, at most [`FRAME_BODY_BYTES_MAX`].
    pub fn wanted_bytes(&self) -> usize {
        match &self.state {
            State::FileHeader => FILE_HEADER_BYTES,
            State::Head(_) => FRAME_HEADER_BYTES,
            State::Body(_, header) => header.body_bytes,
        }
    }

    /// The memory that what is needed next takes, with what is decoded from it: at most
    /// [`FRAME_BODY_BYTES_MAX`] and [`super::FRAME_PAYLOAD_BYTES_MAX`] together.
    pub fn memory_bytes(&self) -> usize {
        match &self.state {
            State::Body(_, header) => header.body_bytes + header.payload_bytes(),
            _ => self.wanted_bytes(),
        }
    }

    /// Whether nothing of an upload has been read that is not complete.
    pub fn is_between_uploads(&self) -> bool {
        matches!(self.state, State::FileHeader)
    }

    /// Whether what comes next is the body of a frame: large, and some work to decode.
    pub fn is_before_body(&self) -> bool {
        matches!(self.state, State::Body(..))
    }

    /// Takes the bytes that were wanted, no more and no less.
    ///
    /// # Errors
    /// When they are not what must come here; nothing that follows can be understood then.
    pub fn take(&mut self, bytes: &[u8]) -> Result<UploadPart, UploadError> {
        let offset = self.offset;
        self.offset += bytes.len() as u64;
        match self.state {
            State::FileHeader => {
                let header = FileHeader::decode(bytes).map_err(UploadError::Header)?;
                self.state = State::Head(header.source);
                Ok(UploadPart::Header)
            }
            State::Head(source) => self.take_head(bytes, source, offset),
            State::Body(source, header) => {
                self.state = State::Head(source);
                self.take_body(bytes, &header)
            }
        }
    }

    fn take_head(
        &mut self,
        bytes: &[u8],
        source: SourceId,
        offset: u64,
    ) -> Result<UploadPart, UploadError> {
        let number = self.counts.frames + 1;
        let failed = |reason| UploadError::Frame { number, reason };
        let bytes = bytes.first_chunk().ok_or(failed(Reason::Torn))?;
        match Head::decode(bytes, source, offset).map_err(failed)? {
            Head::Frame(_) if number > NAMED_BATCHES_MAX => Err(UploadError::TooMany),
            Head::Frame(header) => {
                self.state = State::Body(source, header);
                Ok(UploadPart::Header)
            }
            Head::End(end) => {
                let counts = std::mem::take(&mut self.counts);
                if (end.frames, end.entries) != (counts.frames, counts.entries) {
                    return Err(failed(Reason::EndWrong));
                }
                *self = UploadReader::default();
                Ok(UploadPart::End)
            }
        }
    }

    fn take_body(&mut self, bytes: &[u8], header: &FrameHeader) -> Result<UploadPart, UploadError> {
        self.counts.add(header.count as u64);
        let number = self.counts.frames;
        let failed = |reason| UploadError::Frame { number, reason };
        if crc32c::crc32c(bytes) != header.body_checksum {
            return Err(failed(Reason::BodyChecksum));
        }
        let mut scratch = Scratch::default();
        let body = frame::decode_body(header, bytes, &mut scratch).map_err(failed)?;
        // Only who reads by numbers has runs, and nobody may claim numbers without records.
        let is_single = |id: &BatchId| id.more == 0 && id.first_sent >= Timestamp(0);
        let id = body.batch_id.filter(is_single);
        let id = id.ok_or(UploadError::Unnamed { number })?;
        let payload = body.payload(bytes, &scratch);
        let batch = frame::batch_of(body.kind, &scratch.labels, payload, &scratch.ends);
        Ok(UploadPart::Frame(batch, id))
    }
}

/// Reads any bytes as uploads; must never panic, nor want more than a frame. A fuzz target.
pub fn fuzz_uploads(bytes: &[u8]) {
    let mut reader = UploadReader::default();
    let mut rest = bytes;
    loop {
        let wanted = reader.wanted_bytes();
        assert!(wanted <= FRAME_BODY_BYTES_MAX);
        let Some((part, after)) = rest.split_at_checked(wanted) else {
            return;
        };
        rest = after;
        match reader.take(part) {
            Ok(UploadPart::Frame(batch, _)) => assert!(!batch.is_empty()),
            Ok(_) => {}
            Err(_) => return,
        }
    }
}
