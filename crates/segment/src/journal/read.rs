//! Reading journal files, damaged or not.
//!
//! Invariants:
//! - Every frame that checks out before the end mark is yielded, in file order, once; but for those
//!   that the reader passes over by their ids.
//! - Every other range up to the limit is in the damages, and so is the absence of the end mark
//!   of a closed file. Of a file that was left open by its process, a scan tells from the damages
//!   what is unsynced: the ranges behind all that any sound frame or mark states to have been
//!   synced. Nothing that was acknowledged as durable is known to have been in those.
//! - Memory is bounded by one frame and one read-ahead; any bytes at all are fine.

use std::io;
use std::sync::Arc;

use logpond_record::{
    Batch, Entry, EntryKind, Id, Incarnation, Labels, SourceId, Timestamp, cast, line_of,
};
use memchr::memmem;

use super::damage::{Damage, Damages};
use super::frame::{
    self, END_MARK_BYTES, EndMark, FILE_HEADER_BYTES, FRAME_HEADER_BYTES, FileHeader,
    FileHeaderError, FrameHeader, Head, MARKER_START, Reason, Scratch, batch_of,
};
use super::open_error::OpenError;
use super::span::Span;
use super::visible::{ClosedFile, OpenState, Summary};
use super::window::{READ_BYTES, Window};
use super::{SUFFIX_CLOSED, SUFFIX_OPEN};
use crate::batches::{BatchId, HeldBatches};
use crate::disk::{Disk, ReadAt};

/// A journal file, or its readable part.
#[derive(Clone)]
pub struct JournalFile {
    path: String,
    source: SourceId,
    created: Option<Timestamp>,
    limit: u64,
    stage: Stage,
    file: Arc<dyn ReadAt>,
}

/// What is known of a file's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// It is complete, with an end mark.
    Closed,
    /// It is synced up to the limit and may go on behind.
    Synced,
    /// Its process may have ended before it was synced, or may be writing it.
    Left,
}

impl JournalFile {
    /// Opens a file by its path (`journal/<name>`), to be read to its end.
    ///
    /// A damaged header is not an error: the name tells the identity, and the frames check it.
    pub fn open(disk: &dyn Disk, path: &str) -> Result<JournalFile, OpenError> {
        JournalFile::from_file(disk.open(path)?, path)
    }

    /// A file that was opened by this path, to be read to its end; it may have another name by now, or
    /// none.
    pub fn from_file(file: Arc<dyn ReadAt>, path: &str) -> Result<JournalFile, OpenError> {
        let limit = file.bytes()?;
        let stage = if path.ends_with(SUFFIX_CLOSED) {
            Stage::Closed
        } else {
            Stage::Left
        };
        JournalFile::with_limit(file, path, limit, stage)
    }

    /// The synced part of a file that is still being written.
    pub fn from_open(state: &OpenState) -> Result<JournalFile, OpenError> {
        let file = state.file.clone();
        JournalFile::with_limit(file, &state.path, state.synced_bytes, Stage::Synced)
    }

    /// Opens a closed file.
    pub fn from_closed(disk: &dyn Disk, closed: &ClosedFile) -> Result<JournalFile, OpenError> {
        if closed.path.ends_with(SUFFIX_OPEN) {
            // Recovery had no room for its end mark.
            let file = disk.open(&closed.path)?;
            return JournalFile::with_limit(file, &closed.path, closed.bytes, Stage::Synced);
        }
        JournalFile::open(disk, &closed.path)
    }

    fn with_limit(
        file: Arc<dyn ReadAt>,
        path: &str,
        limit: u64,
        stage: Stage,
    ) -> Result<JournalFile, OpenError> {
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
            stage,
            file,
        })
    }

    /// The same file as if it were synced up to `limit`, which must be the end of a frame, and no more.
    pub fn synced_to(&self, limit: u64) -> JournalFile {
        JournalFile {
            limit,
            stage: Stage::Synced,
            ..self.clone()
        }
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
        self.frames_split(u64::MAX)
    }

    /// The frames from `offset` on, which must be the [`Frames::offset`] of an earlier reading;
    /// this is how a reader follows a file that grows.
    pub fn frames_from(&self, offset: u64) -> Frames {
        let mut frames = self.frames_at(offset.max(FILE_HEADER_BYTES as u64));
        frames.is_over = frames.offset == self.limit;
        frames
    }

    /// The frames from the first one, with bad ranges from `unsynced_from` on set apart.
    fn frames_split(&self, unsynced_from: u64) -> Frames {
        let mut frames = self.frames_at(FILE_HEADER_BYTES as u64);
        frames.is_whole = true;
        frames.unsynced_from = unsynced_from;
        if self.created.is_none() && self.limit > 0 {
            let to = self.limit.min(FILE_HEADER_BYTES as u64);
            frames.note(0, to, Reason::FileHeader, None);
        }
        frames
    }

    fn frames_at(&self, offset: u64) -> Frames {
        Frames {
            journal: self.clone(),
            offset: offset.min(self.limit),
            good_end: offset.min(self.limit),
            window: Window::default(),
            scratch: Scratch::default(),
            damages: Damages::default(),
            unsynced: Damages::default(),
            unsynced_from: u64::MAX,
            damage_end: 0,
            is_end_lost: false,
            counts: EndMark::default(),
            end_mark_at: None,
            is_whole: false,
            is_over: false,
            passed_over: None,
            kinds: None,
        }
    }

    /// Reads everything and counts it.
    pub fn scan(&self) -> io::Result<ScanResult> {
        let unsynced_from = match self.stage {
            Stage::Left => self.synced_stated()?,
            Stage::Closed | Stage::Synced => u64::MAX,
        };
        let mut frames = self.frames_split(unsynced_from);
        let mut summary = Summary::default();
        let mut batches = HeldBatches::default();
        while let Some(frame) = frames.next()? {
            batches.add(frame.batch_id());
            for entry in frame.entries() {
                summary.add_row(entry.id, entry.received, entry.raw);
            }
        }
        Ok(ScanResult {
            summary,
            batches,
            good_end: frames.good_end,
            damage_end: frames.damage_end,
            counts: frames.counts,
            end_mark_at: frames.end_mark_at,
            bytes: self.limit,
            damages: frames.damages,
            unsynced: frames.unsynced,
        })
    }

    /// The greatest length that anything sound in the file states to have been synced.
    fn synced_stated(&self) -> io::Result<u64> {
        let mut frames = self.frames();
        while frames.next()?.is_some() {}
        Ok(frames.counts.synced_bytes)
    }
}

/// The result of reading a whole file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScanResult {
    /// What checks out.
    pub summary: Summary,
    /// The named batches among it.
    pub batches: HeldBatches,
    /// End of the last frame that checks out, or of the header.
    pub good_end: u64,
    /// What does not, although it was synced, as far as the file tells.
    pub damages: Damages,
    /// What does not, in a file that was left open, and is not known to have been synced.
    pub unsynced: Damages,
    /// End of the last damage.
    damage_end: u64,
    /// What an end mark behind that has to say.
    pub(super) counts: EndMark,
    end_mark_at: Option<u64>,
    bytes: u64,
}

impl ScanResult {
    /// Whether the file ends with an end mark.
    pub fn is_ended(&self) -> bool {
        let end = self.end_mark_at.map(|at| at + END_MARK_BYTES as u64);
        end == Some(self.bytes)
    }

    /// End of what checks out and what is damaged.
    pub(super) fn content_end(&self) -> u64 {
        self.good_end.max(self.damage_end)
    }

    /// Whether unsynced ranges can be left out of a copy: frames move, but damage does not.
    pub(super) fn is_separable(&self) -> bool {
        let first = self.unsynced.listed.first();
        first.is_none_or(|range| self.damage_end <= range.from)
    }

    /// How far a copy without unsynced ranges has everything where it is: up to the first of
    /// them, or to the end of the content.
    pub(super) fn in_place_end(&self) -> u64 {
        let first = self.unsynced.listed.first();
        first.map_or(self.content_end(), |range| range.from)
    }
}

/// Iterates over the frames of a file. Not an `Iterator`: a frame borrows the buffer.
pub struct Frames {
    journal: JournalFile,
    offset: u64,
    good_end: u64,
    window: Window,
    scratch: Scratch,
    damages: Damages,
    unsynced: Damages,
    /// Bad ranges from here on are unsynced, not damaged.
    unsynced_from: u64,
    damage_end: u64,
    /// Whether a damage of unknown content reaches the limit.
    is_end_lost: bool,
    /// Frames and entries that were read, or are damaged but have a sound header; and the most
    /// that was stated to be synced.
    counts: EndMark,
    end_mark_at: Option<u64>,
    /// Whether the reading began with the first frame.
    is_whole: bool,
    /// Whether the end was reached.
    is_over: bool,
    /// Frames of which all entries have ids up to this are not looked into.
    passed_over: Option<Id>,
    /// Frames of other kinds are not looked into; `None` is every kind.
    kinds: Option<&'static [EntryKind]>,
}

impl Frames {
    /// Passes over frames of all other kinds: their headers are checked, and nothing else of them.
    pub fn only(&mut self, kinds: &'static [EntryKind]) {
        self.kinds = Some(kinds);
    }

    /// Passes over frames of which all entries have ids up to `up_to`: their headers are checked,
    /// and nothing else of them.
    pub fn pass_over(&mut self, up_to: Option<Id>) {
        self.passed_over = up_to;
    }

    fn is_passed_over(&self, header: &FrameHeader) -> bool {
        if let Some(kinds) = self.kinds
            && EntryKind::from_u8(header.kind).is_none_or(|kind| !kinds.contains(&kind))
        {
            return true;
        }
        let Some(up_to) = self.passed_over else {
            return false;
        };
        let last = header.first_number + (header.count as u64 - 1);
        entry_id(header.received, self.journal.source.incarnation, last) <= up_to
    }

    /// Passes over frames that were read before, if they are what comes next; says whether they are.
    pub fn pass_span(&mut self, span: &Span) -> bool {
        if span.from() != self.offset || span.to() > self.journal.limit {
            return false;
        }
        self.offset = span.to();
        self.good_end = self.offset;
        self.counts.add_all(&span.counts);
        true
    }

    /// The next frame that checks out; `None` at the limit. Fails only if the disk fails.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> io::Result<Option<Frame<'_>>> {
        let Some((header, body)) = self.advance()? else {
            return Ok(None);
        };
        let from = self.offset;
        let body_from = cast::to_usize(from - self.window.at()) + FRAME_HEADER_BYTES;
        let bytes = &self.window.bytes()[body_from..body_from + header.body_bytes];
        self.offset += (FRAME_HEADER_BYTES + header.body_bytes) as u64;
        self.good_end = self.offset;
        self.counts.add(header.count as u64);
        Ok(Some(Frame {
            synced_bytes: header.synced_bytes,
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
            let header = match self.head_at(self.offset)? {
                Ok(Head::Frame(header)) => header,
                Ok(Head::End(mark)) => {
                    self.end(mark);
                    break;
                }
                Err(reason) => {
                    let next = self.find_head(self.offset + 1)?;
                    self.skip(next, reason, None);
                    continue;
                }
            };
            // Also that of a frame with a damaged body: the header has a checksum of its own.
            self.counts.note_synced(header.synced_bytes);
            let rows = Some(header.count as u64);
            let total = FRAME_HEADER_BYTES + header.body_bytes;
            if total as u64 > left {
                self.skip(limit, Reason::Torn, rows);
                break;
            }
            if self.is_passed_over(&header) {
                self.offset += total as u64;
                self.good_end = self.offset;
                self.counts.add(header.count as u64);
                continue;
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
        self.miss_end();
        Ok(None)
    }

    /// Ends the reading at the end mark.
    fn end(&mut self, mark: EndMark) {
        self.counts.note_synced(mark.synced_bytes);
        if self.is_whole && self.unsynced.count == 0 {
            self.compare(mark);
        }
        self.end_mark_at = Some(self.offset);
        self.offset += END_MARK_BYTES as u64;
        self.is_over = true;
        if self.offset < self.journal.limit {
            self.skip(self.journal.limit, Reason::AfterEnd, None);
        }
    }

    /// Compares what was found with what the end mark says: the difference is what was in ranges
    /// that cannot tell.
    fn compare(&mut self, mark: EndMark) {
        if (self.counts.frames, self.counts.entries) == (mark.frames, mark.entries) {
            return;
        }
        let rows = mark.entries.checked_sub(self.counts.entries);
        let damages = &mut self.damages;
        let mut others = damages.count - damages.listed.len() as u64;
        let mut cannot_tell: Option<&mut Damage> = None;
        for damage in &mut damages.listed {
            if damage.rows.is_none() && damage.reason != Reason::FileHeader {
                others += u64::from(cannot_tell.is_some());
                cannot_tell = Some(damage);
            }
        }
        match cannot_tell {
            Some(damage) if others == 0 => damage.rows = rows,
            None if others == 0 => {
                let end = self.offset + END_MARK_BYTES as u64;
                return self.note(self.offset, end, Reason::EndWrong, rows);
            }
            // Several cannot tell.
            _ => {}
        }
        // A copy has the same damage, and its mark says the same.
        (self.counts.frames, self.counts.entries) = (mark.frames, mark.entries);
    }

    /// Notes at the end of a closed file that it has no end mark, unless there is a range up to
    /// the end that cannot tell what was in it.
    fn miss_end(&mut self) {
        if self.journal.stage == Stage::Closed && !self.is_over && !self.is_end_lost {
            self.note(self.offset, self.offset, Reason::EndMissing, None);
        }
        self.is_over = true;
    }

    fn head_at(&mut self, offset: u64) -> io::Result<Result<Head, Reason>> {
        let journal = &self.journal;
        let bytes = self
            .window
            .fill(&*journal.file, offset, FRAME_HEADER_BYTES, journal.limit)?;
        let head = bytes.first_chunk().ok_or(Reason::Torn);
        Ok(head.and_then(|head| Head::decode(head, journal.source, offset)))
    }

    /// The first offset at or after `from` where a frame's header or an end mark checks out, or
    /// the limit.
    fn find_head(&mut self, from: u64) -> io::Result<u64> {
        let limit = self.journal.limit;
        let finder = memmem::Finder::new(&MARKER_START);
        let mut offset = from;
        while offset + FRAME_HEADER_BYTES as u64 <= limit {
            // What is in memory is searched before more is read: moving the window for every
            // marker would make the search quadratic.
            let length = match self.window.available(offset) {
                available if available >= FRAME_HEADER_BYTES => available,
                _ => cast::to_usize((limit - offset).min(READ_BYTES as u64)),
            };
            let bytes = self
                .window
                .fill(&*self.journal.file, offset, length, limit)?;
            match finder.find(bytes) {
                Some(at) => {
                    offset += at as u64;
                    if offset + FRAME_HEADER_BYTES as u64 <= limit && self.head_at(offset)?.is_ok()
                    {
                        return Ok(offset);
                    }
                    offset += 1;
                }
                // A marker may begin in the last bytes.
                None => offset += (length - (MARKER_START.len() - 1)) as u64,
            }
        }
        Ok(limit)
    }

    /// Reports the range up to `to` and goes on after it.
    fn skip(&mut self, to: u64, reason: Reason, rows: Option<u64>) {
        self.note(self.offset, to, reason, rows);
        self.offset = to;
    }

    /// Reports a range: what of it was synced as damaged, and the rest as unsynced.
    fn note(&mut self, from: u64, to: u64, reason: Reason, rows: Option<u64>) {
        let unsynced_from = match reason {
            // It is whole, so no crash has taken anything of it.
            Reason::Unsupported | Reason::Inconsistent => to,
            _ => self.unsynced_from.clamp(from, to),
        };
        let damage = |from, to| Damage {
            path: self.journal.path.clone(),
            from,
            to,
            reason,
            rows,
        };
        let is_unsynced = unsynced_from < to;
        if is_unsynced {
            self.unsynced.add(damage(unsynced_from, to));
        }
        // A missing end mark is a range without bytes.
        if from < unsynced_from || !is_unsynced {
            self.damages.add(damage(from, unsynced_from));
            self.damage_end = unsynced_from;
            self.is_end_lost = rows.is_none() && to == self.journal.limit;
            if let Some(rows) = rows {
                self.counts.add(rows);
            }
        }
    }
}

/// A frame: entries of one kind with the same labels, received together.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    offset: u64,
    synced_bytes: u64,
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

    /// How far the file was synced when the frame was written, as far as it says.
    pub(super) fn synced_bytes(&self) -> u64 {
        self.synced_bytes
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
        let (kind, envelope, raw) = line_of(self.kind, &self.payload[from..end]);
        Some(Entry {
            id: self.id(index),
            received: self.received,
            kind,
            labels: self.labels,
            envelope,
            raw,
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
        batch_of(self.kind, self.labels, self.payload, self.ends)
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
    Id::new(
        cast::unsigned(received.unix_ms().max(0)),
        incarnation,
        number,
    )
}

/// Bytes as a file.
struct Bytes(Vec<u8>);

impl ReadAt for Bytes {
    fn bytes(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let from = self.0.get(cast::to_usize(offset)..).unwrap_or_default();
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
    let path = super::path(source, SUFFIX_OPEN);
    let file = Arc::new(Bytes(bytes.to_vec()));
    let limit = bytes.len() as u64;
    for stage in [Stage::Closed, Stage::Synced, Stage::Left] {
        if let Ok(journal) = JournalFile::with_limit(file.clone(), &path, limit, stage) {
            let scanned = journal.scan().expect("reading from memory cannot fail");
            assert!(scanned.content_end() <= limit && scanned.in_place_end() <= scanned.bytes);
            let is_whole = scanned.damages.count == 0 && stage == Stage::Closed;
            assert!(!is_whole || scanned.is_ended());
        }
    }
    // Checksums keep random bytes out of the decoder; here they do not.
    let mut scratch = Scratch::default();
    if let Some((header, body)) = bytes.split_first_chunk::<FRAME_HEADER_BYTES>() {
        let header = FrameHeader::unchecked(header, 0);
        if let Ok(decoded) = frame::decode_body(&header, body, &mut scratch) {
            let payload = decoded.payload(body, &scratch);
            assert_eq!(
                scratch.ends.last().map_or(0, |end| *end as usize),
                payload.len()
            );
        }
    }
}
