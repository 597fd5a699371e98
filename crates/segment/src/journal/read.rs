//! Reading journal files, damaged or not.
//!
//! Invariants: every frame that checks out is yielded, in file order, once; every other range up
//! to the limit is in the damages; memory is bounded by one frame and one read-ahead; any bytes
//! at all are fine.

use std::fmt;
use std::io;
use std::sync::Arc;

use logpond_record::{Batch, Entry, EntryKind, Id, Incarnation, Labels, SourceId, Timestamp};
use memchr::memmem;

use super::damage::{Damage, Damages};
use super::frame::{
    self, BatchId, FILE_HEADER_BYTES, FRAME_HEADER_BYTES, FRAME_MARKER, FileHeader,
    FileHeaderError, FrameHeader, Reason, Scratch,
};
use super::visible::{ClosedFile, OpenState, Summary};
use super::window::{READ_BYTES, Window};
use crate::disk::{Disk, ReadAt};

/// Why a file cannot be read as a journal file at all.
#[derive(Debug)]
pub enum OpenError {
    /// The disk failed; the file may be fine.
    Disk(io::Error),
    /// The name is none that the journal gives.
    Name(String),
    /// The file was written by a newer version.
    Version {
        /// The file.
        path: String,
        /// Its version.
        version: u32,
    },
    /// The file says that it is another source than its name says.
    Renamed {
        /// The file.
        path: String,
        /// What its header says.
        source: SourceId,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Disk(error) => write!(f, "cannot read a journal file: {error}"),
            OpenError::Name(path) => write!(f, "{path} is not named like a journal file"),
            OpenError::Version { path, version } => write!(
                f,
                "{path} has format version {version}, this program reads {}; use a newer one",
                frame::FORMAT_VERSION
            ),
            OpenError::Renamed { path, source } => write!(
                f,
                "{path} holds the source {source}; give it that name to have it read"
            ),
        }
    }
}

impl std::error::Error for OpenError {}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> OpenError {
        OpenError::Disk(error)
    }
}

/// A journal file, or its readable part.
#[derive(Clone)]
pub struct JournalFile {
    path: String,
    source: SourceId,
    created: Option<Timestamp>,
    limit: u64,
    file: Arc<dyn ReadAt>,
}

impl JournalFile {
    /// Opens a file by its path (`journal/<name>`), to be read to its end.
    ///
    /// A damaged header is not an error: the name tells the identity, and the frames check it.
    pub fn open(disk: &dyn Disk, path: &str) -> Result<JournalFile, OpenError> {
        let file = disk.open(path)?;
        let limit = file.bytes()?;
        JournalFile::with_limit(file, path, limit)
    }

    /// The synced part of a file that is still being written.
    pub fn from_open(state: &OpenState) -> Result<JournalFile, OpenError> {
        JournalFile::with_limit(state.file.clone(), &state.path, state.synced_bytes)
    }

    /// Opens a closed file.
    pub fn from_closed(disk: &dyn Disk, closed: &ClosedFile) -> Result<JournalFile, OpenError> {
        JournalFile::open(disk, &closed.path)
    }

    fn with_limit(file: Arc<dyn ReadAt>, path: &str, limit: u64) -> Result<JournalFile, OpenError> {
        let name = path.rsplit('/').next().unwrap_or(path);
        let (source, _) = super::parse_name(name).ok_or_else(|| OpenError::Name(path.into()))?;
        let mut bytes = [0u8; FILE_HEADER_BYTES];
        let header = if limit < FILE_HEADER_BYTES as u64 {
            Err(FileHeaderError::Damaged)
        } else {
            file.read_at(0, &mut bytes)?;
            FileHeader::decode(&bytes)
        };
        let path = path.to_owned();
        let created = match header {
            Ok(header) if header.source == source => Some(header.created),
            Ok(FileHeader { source, .. }) => return Err(OpenError::Renamed { path, source }),
            Err(FileHeaderError::Version(version)) => {
                return Err(OpenError::Version { path, version });
            }
            Err(FileHeaderError::Damaged) => None,
        };
        Ok(JournalFile {
            path,
            source,
            created,
            limit,
            file,
        })
    }

    /// The path that the file was opened by.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The source that the file holds.
    pub fn source(&self) -> SourceId {
        self.source
    }

    /// When it was begun; `None` if the header is damaged.
    pub fn created(&self) -> Option<Timestamp> {
        self.created
    }

    /// The bytes.
    pub(super) fn file(&self) -> &dyn ReadAt {
        &*self.file
    }

    /// How far it is read.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// The frames from the first one.
    pub fn frames(&self) -> Frames {
        let mut damages = Damages::default();
        if self.created.is_none() && self.limit > 0 {
            damages.add(Damage {
                path: self.path.clone(),
                from: 0,
                to: self.limit.min(FILE_HEADER_BYTES as u64),
                reason: Reason::FileHeader,
                rows: None,
            });
        }
        self.frames_with(FILE_HEADER_BYTES as u64, damages)
    }

    /// The frames from `offset` on, which must be the [`Frames::offset`] of an earlier reading;
    /// this is how a reader follows a file that grows.
    pub fn frames_from(&self, offset: u64) -> Frames {
        self.frames_with(offset.max(FILE_HEADER_BYTES as u64), Damages::default())
    }

    fn frames_with(&self, offset: u64, damages: Damages) -> Frames {
        Frames {
            journal: self.clone(),
            offset: offset.min(self.limit),
            good_end: offset.min(self.limit),
            window: Window::default(),
            scratch: Scratch::default(),
            damages,
        }
    }

    /// Reads everything and counts it.
    pub fn scan(&self) -> io::Result<Scanned> {
        let mut frames = self.frames();
        let mut summary = Summary::default();
        while let Some(frame) = frames.next()? {
            for entry in frame.entries() {
                summary.add_row(entry.id, entry.received, entry.raw);
            }
        }
        Ok(Scanned {
            summary,
            good_end: frames.good_end(),
            damages: frames.into_damages(),
        })
    }
}

/// The result of reading a whole file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scanned {
    /// What checks out.
    pub summary: Summary,
    /// End of the last frame that checks out, or of the header.
    pub good_end: u64,
    /// What does not.
    pub damages: Damages,
}

/// Iterates over the frames of a file. Not an `Iterator`: a frame borrows the buffer.
pub struct Frames {
    journal: JournalFile,
    offset: u64,
    good_end: u64,
    window: Window,
    scratch: Scratch,
    damages: Damages,
}

impl Frames {
    /// The next frame that checks out; `None` at the limit. Fails only if the disk fails.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> io::Result<Option<Frame<'_>>> {
        let Some((header, body)) = self.advance()? else {
            return Ok(None);
        };
        let from = self.offset;
        let body_from = (from - self.window.at()) as usize + FRAME_HEADER_BYTES;
        let bytes = &self.window.bytes()[body_from..body_from + header.body_bytes];
        self.offset += (FRAME_HEADER_BYTES + header.body_bytes) as u64;
        self.good_end = self.offset;
        Ok(Some(Frame {
            offset: from,
            bytes: self.offset - from,
            kind: body.kind,
            batch_id: body.batch_id,
            incarnation: self.journal.source.incarnation,
            first_number: header.first_number,
            received: header.received,
            labels: &self.scratch.labels,
            ends: &self.scratch.ends,
            payload: body.payload(bytes, &self.scratch),
        }))
    }

    /// Where the next frame is looked for.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// End of the last frame that checked out; the start before the first one.
    pub fn good_end(&self) -> u64 {
        self.good_end
    }

    /// What was skipped so far.
    pub fn damages(&self) -> &Damages {
        &self.damages
    }

    /// What was skipped, after the last frame.
    pub fn into_damages(self) -> Damages {
        self.damages
    }

    /// Moves to the next frame that checks out and leaves it in the window and the scratch.
    fn advance(&mut self) -> io::Result<Option<(FrameHeader, frame::Body)>> {
        let limit = self.journal.limit;
        while self.offset < limit {
            let left = limit - self.offset;
            if left < FRAME_HEADER_BYTES as u64 {
                self.skip(limit, Reason::Torn, None);
                break;
            }
            let header = match self.header_at(self.offset)? {
                Ok(header) => header,
                Err(reason) => {
                    let next = self.find_header(self.offset + 1)?;
                    self.skip(next, reason, None);
                    continue;
                }
            };
            let rows = Some(header.count as u64);
            let total = FRAME_HEADER_BYTES + header.body_bytes;
            if total as u64 > left {
                self.skip(limit, Reason::Torn, rows);
                break;
            }
            let file = &*self.journal.file;
            let bytes = self.window.fill(file, self.offset, total, limit)?;
            let body = &bytes[FRAME_HEADER_BYTES..];
            let decoded = if crc32c::crc32c(body) == header.body_checksum {
                frame::decode_body(&header, body, &mut self.scratch)
            } else {
                Err(Reason::BodyChecksum)
            };
            match decoded {
                Ok(body) => return Ok(Some((header, body))),
                Err(reason) => self.skip(self.offset + total as u64, reason, rows),
            }
        }
        Ok(None)
    }

    fn header_at(&mut self, offset: u64) -> io::Result<Result<FrameHeader, Reason>> {
        let journal = &self.journal;
        let bytes = self
            .window
            .fill(&*journal.file, offset, FRAME_HEADER_BYTES, journal.limit)?;
        let header = bytes.first_chunk().ok_or(Reason::Torn);
        Ok(header.and_then(|header| FrameHeader::decode(header, journal.source, offset)))
    }

    /// The first offset at or after `from` where a frame's header checks out, or the limit.
    fn find_header(&mut self, from: u64) -> io::Result<u64> {
        let limit = self.journal.limit;
        let finder = memmem::Finder::new(&FRAME_MARKER);
        let mut offset = from;
        while offset + FRAME_HEADER_BYTES as u64 <= limit {
            // What is in memory is searched before more is read: moving the window for every
            // marker would make the search quadratic.
            let length = match self.window.available(offset) {
                available if available >= FRAME_HEADER_BYTES => available,
                _ => (limit - offset).min(READ_BYTES as u64) as usize,
            };
            let bytes = self
                .window
                .fill(&*self.journal.file, offset, length, limit)?;
            match finder.find(bytes) {
                Some(at) => {
                    offset += at as u64;
                    if offset + FRAME_HEADER_BYTES as u64 <= limit
                        && self.header_at(offset)?.is_ok()
                    {
                        return Ok(offset);
                    }
                    offset += 1;
                }
                // A marker may begin in the last bytes.
                None => offset += (length - (FRAME_MARKER.len() - 1)) as u64,
            }
        }
        Ok(limit)
    }

    /// Reports the range up to `to` and goes on after it.
    fn skip(&mut self, to: u64, reason: Reason, rows: Option<u64>) {
        self.damages.add(Damage {
            path: self.journal.path.clone(),
            from: self.offset,
            to,
            reason,
            rows,
        });
        self.offset = to;
    }
}

/// A frame: entries of one kind with the same labels, received together.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    offset: u64,
    bytes: u64,
    kind: EntryKind,
    batch_id: Option<BatchId>,
    incarnation: Incarnation,
    first_number: u64,
    received: Timestamp,
    labels: &'a Labels,
    ends: &'a [u32],
    payload: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Where the frame begins in its file.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Length of the whole frame in the file.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How the entries are to be read.
    pub fn kind(&self) -> EntryKind {
        self.kind
    }

    /// The producer's name for the batch, if it gave one.
    pub fn batch_id(&self) -> Option<BatchId> {
        self.batch_id
    }

    /// When the entries were received.
    pub fn received(&self) -> Timestamp {
        self.received
    }

    /// Fields declared for all entries.
    pub fn labels(&self) -> &'a Labels {
        self.labels
    }

    /// Number of entries, at least 1.
    pub fn count(&self) -> usize {
        self.ends.len()
    }

    /// Number of the first entry within the incarnation.
    pub fn first_number(&self) -> u64 {
        self.first_number
    }

    /// The bytes of all entries, one behind the other: what a text search can run over before any
    /// entry is looked at. A hit counts only within one entry, see [`Frame::row_at`].
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// End of each entry in the payload; an entry begins where the one before ends.
    pub fn ends(&self) -> &'a [u32] {
        self.ends
    }

    /// Index of the entry that holds the payload's byte `at`; the count if there is none.
    pub fn row_at(&self, at: usize) -> usize {
        self.ends.partition_point(|&end| end as usize <= at)
    }

    /// The entry at an index below the count.
    pub fn entry(&self, index: usize) -> Option<Entry<'a>> {
        let end = *self.ends.get(index)? as usize;
        let from = index
            .checked_sub(1)
            .map_or(0, |before| self.ends[before] as usize);
        Some(Entry {
            id: self.id(index),
            received: self.received,
            kind: self.kind,
            labels: self.labels,
            raw: &self.payload[from..end],
        })
    }

    /// The id of the entry at an index below the count.
    pub fn id(&self, index: usize) -> Id {
        entry_id(
            self.received,
            self.incarnation,
            self.first_number + index as u64,
        )
    }

    /// The entries in order.
    pub fn entries(&self) -> Entries<'a> {
        Entries {
            frame: *self,
            index: 0,
        }
    }

    /// The entries as a batch of their own.
    pub fn to_batch(&self) -> Batch {
        let mut batch = Batch::new(self.kind, self.labels.clone());
        self.entries().for_each(|entry| batch.push(entry.raw));
        batch
    }
}

/// The entries of a frame.
#[derive(Clone, Debug)]
pub struct Entries<'a> {
    frame: Frame<'a>,
    index: usize,
}

impl<'a> Iterator for Entries<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        let entry = self.frame.entry(self.index)?;
        self.index += 1;
        Some(entry)
    }
}

/// The id of entry `number` of an incarnation.
pub(crate) fn entry_id(received: Timestamp, incarnation: Incarnation, number: u64) -> Id {
    Id::new(received.unix_ms().max(0) as u64, incarnation, number)
}

/// Bytes as a file.
struct Bytes(Vec<u8>);

impl ReadAt for Bytes {
    fn bytes(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let from = self.0.get(offset as usize..).unwrap_or_default();
        let part = from
            .get(..buffer.len())
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        buffer.copy_from_slice(part);
        Ok(())
    }
}

/// Reads any bytes as a journal file, and again as frames whose checksums are taken for right.
///
/// Must never panic and never use memory beyond the frame bounds: the target of fuzzing.
pub fn fuzz_frames(bytes: &[u8]) {
    let source = FileHeader::decode(bytes).map_or(
        SourceId {
            incarnation: Incarnation(0),
            sequence: 0,
        },
        |header| header.source,
    );
    let path = super::path(source, super::SUFFIX_OPEN);
    let file = Arc::new(Bytes(bytes.to_vec()));
    if let Ok(journal) = JournalFile::with_limit(file, &path, bytes.len() as u64) {
        // Reading from memory cannot fail.
        let _ = journal.scan();
    }
    // Checksums keep random bytes out of the decoder; here they do not.
    let mut scratch = Scratch::default();
    if let Some((header, body)) = bytes.split_first_chunk::<FRAME_HEADER_BYTES>() {
        let header = FrameHeader::unchecked(header);
        if let Ok(decoded) = frame::decode_body(&header, body, &mut scratch) {
            let payload = decoded.payload(body, &scratch);
            assert_eq!(
                scratch.ends.last().map_or(0, |end| *end as usize),
                payload.len()
            );
        }
    }
}
