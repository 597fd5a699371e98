//! The journal's writer: appends, syncs, closes.
//!
//! Invariants:
//! - Record numbers and the receive time never step back within an incarnation, also after errors:
//!   a number is given out once.
//! - After an error every batch above [`Writer::durable_mark`] has failed, and its bytes are cut
//!   off before its file is closed.
//! - An original that failed is written again only once what was left of it is gone for good.
//! - A file is closed only with rows in it, so the sequence numbers of closed files are dense.
//! - A closed file ends with an end mark, which was synced under the file's first name. It goes in
//!   before the last sync; nothing is appended behind it.
//! - A frame states no greater synced length than [`Writer::sync`] has returned for.
//! - A batch that its producer named is one frame, so that it is there whole or not at all, and is
//!   in one file of the journal only, however often it is sent. A retry whose batch is in none has
//!   a file to itself (CLUSTER R10).

use std::sync::Arc;

use logpond_record::{Batch, Id, Incarnation, SourceId, Timestamp, line_of};

use super::frame::{
    Codec, Encoder, EndMark, FILE_HEADER_BYTES, FRAME_ENTRIES_MAX, FRAME_PAYLOAD_BYTES_MAX,
    FRAME_PAYLOAD_BYTES_TARGET, FileHeader, FrameParts, LABELS_BYTES_MAX, LABELS_MAX, labels_bytes,
};
use super::read::entry_id;
use super::unclosed::{Fate, UnclosedFile, open_state};
use super::visible::{ClosedFile, Summary, Visible};
use super::write_error::WriteError;
use super::{DIRECTORY, SUFFIX_OPEN, path};
use crate::batches::{BatchId, HeldBatches};
use crate::disk::{AppendFile, Disk, ReadAt};

/// The most files that may wait for being closed after errors. The disk fails at everything when
/// so many wait; refusing is better than leaving ever more behind.
pub const UNCLOSED_FILES_MAX: usize = 16;

/// The most named batches of one file. Each may be a run of its own in the index, so this bounds
/// the index of a file to some megabytes, whatever producers call their batches.
pub const NAMED_BATCHES_MAX: u64 = 65_536;

/// The rows of a file by default. In memory, as columns, a row takes some 130 bytes beside its line,
/// however short that is: with so many rows a file of empty lines takes about as much as one of long
/// lines does.
pub const FILE_ROWS_MAX: u64 = 1 << 20;

/// How much a file may exceed its bytes by the batch that completes it. Larger batches begin a file.
const ROTATE_OVERSHOOT_BYTES_MAX: u64 = FRAME_PAYLOAD_BYTES_TARGET as u64;

/// How long a file that could not be closed is left alone before the next attempt.
const RETRY_NS: i64 = 5_000_000_000;

/// The frame buffer is given back above this: a single huge entry must not cost memory for ever.
const BUFFER_BYTES_KEPT: usize = 2 * FRAME_PAYLOAD_BYTES_TARGET;

/// When files end, and how payloads are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// A file is closed this long after its first append, in nanoseconds.
    pub rotate_age_ns: i64,
    /// A file is closed once it has this many bytes.
    pub rotate_bytes: u64,
    /// A file is closed once it has this many rows, and before a batch that would make them more: only
    /// a batch that has more by itself goes beyond.
    pub rotate_rows: u64,
    /// How payloads are stored.
    pub codec: Codec,
}

impl Default for Settings {
    /// 30 seconds, 16 MiB, [`FILE_ROWS_MAX`], not compressed.
    fn default() -> Settings {
        Settings {
            rotate_age_ns: 30_000_000_000,
            rotate_bytes: 16 << 20,
            rotate_rows: FILE_ROWS_MAX,
            codec: Codec::None,
        }
    }
}

/// The ids of appended records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppendReceipt {
    /// Id of the first entry; the others follow by one. [`Id::MIN`] for an empty batch.
    pub first_id: Id,
    /// Number of entries.
    pub count: u64,
    /// The source that has it; `None` for an empty batch.
    pub source: Option<SourceId>,
    /// Whether the journal had the batch already and nothing was written; `first_id` is
    /// [`Id::MIN`] then.
    pub is_known: bool,
    /// The batch is durable once [`Writer::durable_mark`] has reached this.
    pub mark: u64,
}

/// A length of a file without its end mark, what is in it, and the mark of its last batch.
#[derive(Clone, Copy, Default)]
pub(super) struct Reach {
    pub(super) bytes: u64,
    frames: u64,
    pub(super) summary: Summary,
    mark: u64,
}

impl Reach {
    /// What the end mark behind this says, if the file is synced so far when it is written.
    pub(super) fn end_mark(&self, synced: &Reach) -> EndMark {
        EndMark {
            frames: self.frames,
            entries: self.summary.rows(),
            synced_bytes: synced.bytes,
        }
    }
}

/// The file that is being written.
struct OpenFile {
    file: Box<dyn AppendFile>,
    reader: Arc<dyn ReadAt>,
    source: SourceId,
    begun: Timestamp,
    appended: Reach,
    synced: Reach,
    /// Named batches up to `synced`, and from there on, with their number in all.
    batches: Arc<HeldBatches>,
    batches_unsynced: HeldBatches,
    batches_count: u64,
    /// Whether it has its end mark. It has nothing unsynced then but between calls.
    ended: bool,
    /// Whether the file's name is durable.
    named: bool,
}

impl OpenFile {
    /// Notes that everything appended is durable.
    fn note_synced(&mut self) {
        self.synced = self.appended;
        let unsynced = std::mem::take(&mut self.batches_unsynced);
        if unsynced != HeldBatches::default() {
            // Readers keep the set that they have.
            Arc::make_mut(&mut self.batches).union_with(&unsynced);
        }
    }

    fn holds(&self, id: &BatchId) -> Option<bool> {
        let [synced, rest] = [&*self.batches, &self.batches_unsynced];
        Some(synced.holds(id)? || rest.holds(id)?)
    }

    /// Whether a batch of this name, or without one, must not go into this file.
    fn is_over_for(&self, id: Option<&BatchId>) -> bool {
        let is_retry = self
            .batches
            .retry()
            .or(self.batches_unsynced.retry())
            .is_some();
        is_retry || id.is_some_and(|id| id.is_retry() || self.batches_count >= NAMED_BATCHES_MAX)
    }

    /// Appends the end mark.
    fn end(&mut self) -> Result<(), WriteError> {
        let mark = self.appended.end_mark(&self.synced);
        let mark = mark.encode(self.source, self.appended.bytes);
        self.file.append(&mark).map_err(|error| {
            WriteError::disk("append to", &path(self.source, SUFFIX_OPEN), error)
        })?;
        self.ended = true;
        Ok(())
    }

    /// Syncs what was appended, the first time with the file's name.
    fn sync(&mut self, disk: &dyn Disk) -> Result<(), WriteError> {
        let synced = self.file.sync();
        synced.map_err(|error| WriteError::disk("sync", &path(self.source, SUFFIX_OPEN), error))?;
        if self.named {
            Ok(())
        } else {
            disk.sync_directory(DIRECTORY)
                .map_err(|error| WriteError::disk("sync the directory", DIRECTORY, error))
        }
    }
}

/// A new file, for appending and for reading.
type Created = (Box<dyn AppendFile>, Arc<dyn ReadAt>);

/// Appends batches to the journal. One thread owns it.
pub struct Writer {
    disk: Arc<dyn Disk>,
    settings: Settings,
    visible: Arc<Visible>,
    incarnation: Option<Incarnation>,
    sequence_next: u64,
    number_next: u64,
    received_last: Timestamp,
    durable_mark: u64,
    directory_made: bool,
    open: Option<OpenFile>,
    unclosed: Vec<UnclosedFile>,
    retry_at: Timestamp,
    encoder: Encoder,
    buffer: Vec<u8>,
}

impl Writer {
    /// A writer that has not written; it touches the disk at the first append.
    pub fn new(disk: Arc<dyn Disk>, settings: Settings) -> Writer {
        Writer {
            disk,
            settings,
            visible: Arc::default(),
            incarnation: None,
            sequence_next: 0,
            number_next: 0,
            received_last: Timestamp(0),
            durable_mark: 0,
            directory_made: false,
            open: None,
            unclosed: Vec::new(),
            retry_at: Timestamp::MIN,
            encoder: Encoder::new(settings.codec),
            buffer: Vec::new(),
        }
    }

    /// What readers may read, kept up to date by this writer.
    pub fn visible(&self) -> Arc<Visible> {
        self.visible.clone()
    }

    /// Closes the current file and ends the incarnation: what is appended from now on belongs to
    /// another one, which begins at 0.
    ///
    /// # Errors
    /// As for [`Writer::close`]; the incarnation goes on then.
    pub fn end_incarnation(&mut self) -> Result<(), WriteError> {
        self.close()?;
        if !self.unclosed.is_empty() {
            return Err(WriteError::Unclosed {
                count: self.unclosed.len(),
            });
        }
        self.incarnation = None;
        (self.sequence_next, self.number_next) = (0, 0);
        Ok(())
    }

    /// The writer's incarnation, once something was appended.
    pub fn incarnation(&self) -> Option<Incarnation> {
        self.incarnation
    }

    /// Batches with marks up to this are durable. After an error the others have failed.
    pub fn durable_mark(&self) -> u64 {
        self.durable_mark
    }

    /// Bytes that were appended and not yet synced.
    pub fn unsynced_bytes(&self) -> u64 {
        let open = self.open.as_ref();
        open.map_or(0, |open| open.appended.bytes - open.synced.bytes)
    }

    /// Appends a batch, closing the current file before if it is due.
    ///
    /// The batch is written but not durable. After an error (but [`WriteError::Labels`] and [`WriteError::Entry`]) the batch
    /// and all above [`Writer::durable_mark`] have failed; the next append begins a new file.
    /// `mint` gives the random incarnation and is called at the first append only.
    pub fn append(
        &mut self,
        batch: &Batch,
        now: Timestamp,
        mint: impl FnOnce() -> Incarnation,
    ) -> Result<AppendReceipt, WriteError> {
        self.append_identified(batch, None, now, mint)
    }

    /// [`Writer::append`] of a batch that its producer named. It is not written if the journal has
    /// it, or is about to: then its mark is that of the writing it joins.
    pub fn append_identified(
        &mut self,
        batch: &Batch,
        batch_id: Option<BatchId>,
        now: Timestamp,
        mint: impl FnOnce() -> Incarnation,
    ) -> Result<AppendReceipt, WriteError> {
        if batch.is_empty() {
            return Ok(AppendReceipt {
                first_id: Id::MIN,
                count: 0,
                source: None,
                is_known: false,
                mark: self.durable_mark,
            });
        }
        check_bounds(batch, batch_id)?;
        let known = match batch_id {
            Some(id) => self.known(&id).ok_or(WriteError::Run { id })?,
            None => None,
        };
        if let Some((source, mark)) = known {
            return Ok(AppendReceipt {
                first_id: Id::MIN,
                count: batch.len() as u64,
                source: Some(source),
                is_known: true,
                mark,
            });
        }
        if let Some(id) = batch_id {
            self.rule_out_revival(id)?;
        }
        self.rotate_if_due(now)?;
        let open = self.open.as_ref();
        let is_over =
            |open: &OpenFile| open.is_over_for(batch_id.as_ref()) || self.lacks_room(open, batch);
        if open.is_some_and(is_over) {
            self.end_file()?;
        }
        let incarnation = *self.incarnation.get_or_insert_with(mint);
        // The receive time never steps back, so that ids increase.
        let received = now.max(self.received_last);
        self.received_last = received;
        if self.open.is_none() {
            self.begin(incarnation, received)?;
        }
        // Numbers of a batch that fails are not given out again: its frames may come back to
        // life in a crash before they are cut off.
        let first = self.number_next;
        self.number_next += batch.len() as u64;
        match self.write_frames(batch, batch_id, received, first) {
            Ok(reach) => {
                if let Some(open) = &mut self.open {
                    open.appended = reach;
                    open.batches_unsynced.add(batch_id);
                    open.batches_count += u64::from(batch_id.is_some());
                }
            }
            Err(error) => {
                self.abandon(false, batch_id);
                return Err(error);
            }
        }
        Ok(AppendReceipt {
            first_id: entry_id(received, incarnation, first),
            count: batch.len() as u64,
            source: self.open.as_ref().map(|open| open.source),
            is_known: false,
            mark: self.number_next,
        })
    }

    /// Sees to it that an original that failed before cannot come back to life beside this writing of
    /// it. (A retry yields to what comes back.)
    fn rule_out_revival(&mut self, id: BatchId) -> Result<(), WriteError> {
        let may_revive = |file: &UnclosedFile| file.failed.holds(&id) != Some(false);
        if id.is_retry() || !self.unclosed.iter().any(may_revive) {
            return Ok(());
        }
        // What fails stays in the list.
        let _ = self.settle();
        if self.unclosed.iter().any(may_revive) {
            Err(WriteError::Unsettled { id })
        } else {
            Ok(())
        }
    }

    /// Where the journal has a batch already, and the mark from which on it is durable; `None` of a run
    /// of which it has a part. What was one batch is in one file.
    fn known(&self, id: &BatchId) -> Option<Option<(SourceId, u64)>> {
        if let Some(open) = &self.open
            && open.holds(id)?
        {
            return Some(Some((open.source, open.appended.mark)));
        }
        let closed = self.visible.snapshot().closed;
        let unclosed = self
            .unclosed
            .iter()
            .map(|file| (file.source, &file.batches));
        let closed = closed.iter().map(|file| (file.source, &file.batches));
        for (source, batches) in unclosed.chain(closed) {
            if batches.holds(id)? {
                return Some(Some((source, self.durable_mark)));
            }
        }
        Some(None)
    }

    /// Makes everything that was appended durable, and visible to readers.
    ///
    /// After an error all batches above [`Writer::durable_mark`] have failed.
    pub fn sync(&mut self) -> Result<(), WriteError> {
        let open = self.open.as_ref();
        // The end mark of a file that is complete needs no sync of its own.
        let ends = open.is_some_and(|open| self.is_complete(open));
        self.sync_open(ends)
    }

    /// Whether nothing more goes into the current file: it is large enough, or a retry.
    fn is_complete(&self, open: &OpenFile) -> bool {
        open.appended.bytes >= self.settings.rotate_bytes
            || open.appended.summary.rows() >= self.settings.rotate_rows
            || open.is_over_for(None)
    }

    /// Whether the current file would become too large by a batch, which then begins the next one.
    fn lacks_room(&self, open: &OpenFile, batch: &Batch) -> bool {
        let Settings {
            rotate_bytes,
            rotate_rows,
            ..
        } = self.settings;
        let bytes = open.appended.bytes + batch.payload().len() as u64 + batch.len() as u64;
        let rows = open.appended.summary.rows() + batch.len() as u64;
        let has_rows = open.appended.summary.rows() > 0;
        has_rows
            && (rows > rotate_rows
                || bytes > rotate_bytes.saturating_add(ROTATE_OVERSHOOT_BYTES_MAX))
    }

    /// Syncs the current file, before with its end mark if it `ends` here.
    fn sync_open(&mut self, ends: bool) -> Result<(), WriteError> {
        let Some(open) = &mut self.open else {
            return Ok(());
        };
        let ends = ends && !open.ended;
        if open.synced.bytes == open.appended.bytes && !ends {
            return Ok(());
        }
        let mark = open.appended.mark;
        let result = if ends { open.end() } else { Ok(()) };
        let (result, sync_failed) = match result {
            Ok(()) => (open.sync(&*self.disk), true),
            Err(error) => (Err(error), false),
        };
        match result {
            Ok(()) => {
                open.named = true;
                open.note_synced();
                self.durable_mark = open.synced.mark;
                self.publish(None);
                Ok(())
            }
            Err(error) => {
                self.abandon(sync_failed, None);
                // Only the end mark may be missing; that is made up for.
                if self.durable_mark == mark {
                    Ok(())
                } else {
                    Err(error)
                }
            }
        }
    }

    /// Closes the current file if it is old or large enough, and tries again to close files that
    /// could not be closed. To be called at least every second or so while idle.
    ///
    /// Fails only if unsynced batches were lost by it; a file that is synced but could not be
    /// renamed is tried again later.
    pub fn rotate_if_due(&mut self, now: Timestamp) -> Result<(), WriteError> {
        if !self.unclosed.is_empty() && now >= self.retry_at {
            self.retry_at = now.saturating_add(RETRY_NS);
            // Those that fail again stay in the list.
            let _ = self.settle();
        }
        let now = now.max(self.received_last);
        let due = self.open.as_ref().is_some_and(|open| {
            now >= open.begun.saturating_add(self.settings.rotate_age_ns) || self.is_complete(open)
        });
        if due { self.end_file() } else { Ok(()) }
    }

    /// Syncs and ends the current file. Fails only if unsynced batches were lost by it.
    fn end_file(&mut self) -> Result<(), WriteError> {
        self.sync_open(true)?;
        self.finish();
        // What fails is tried again later.
        let _ = self.settle();
        Ok(())
    }

    /// Syncs and closes the current file. Everything that was appended is durable afterwards.
    ///
    /// An error with [`Writer::durable_mark`] at the last mark says that all is durable but a file
    /// has not got its final name; [`super::recover`] gives it at the next start.
    pub fn close(&mut self) -> Result<(), WriteError> {
        self.sync_open(true)?;
        self.finish();
        self.settle()
    }

    /// Begins the file with the next sequence number.
    fn begin(&mut self, incarnation: Incarnation, received: Timestamp) -> Result<(), WriteError> {
        // A file without synced rows has the number that is needed now.
        if self.unclosed.iter().any(|file| file.fate == Fate::Remove) {
            self.settle()?;
        }
        if self.unclosed.len() >= UNCLOSED_FILES_MAX {
            return Err(WriteError::Unclosed {
                count: self.unclosed.len(),
            });
        }
        if !self.directory_made {
            self.disk
                .create_directory(DIRECTORY)
                .map_err(|error| WriteError::disk("create the directory", DIRECTORY, error))?;
            self.directory_made = true;
        }
        let source = SourceId {
            incarnation,
            sequence: self.sequence_next,
        };
        let (file, reader) = match self.create(source, received) {
            Ok(created) => created,
            Err(error) => {
                // Incarnations are random, so whatever has this name is what this attempt left.
                self.unclosed.push(UnclosedFile {
                    reader: None,
                    source,
                    synced: Reach::default(),
                    batches: Arc::default(),
                    failed: HeldBatches::default(),
                    fate: Fate::Remove,
                });
                return Err(error);
            }
        };
        self.sequence_next += 1;
        self.open = Some(OpenFile {
            file,
            reader,
            source,
            begun: received,
            appended: Reach {
                bytes: FILE_HEADER_BYTES as u64,
                ..Reach::default()
            },
            synced: Reach::default(),
            batches: Arc::default(),
            batches_unsynced: HeldBatches::default(),
            batches_count: 0,
            ended: false,
            named: false,
        });
        Ok(())
    }

    /// Creates a file with its header, and opens it for readers.
    fn create(&self, source: SourceId, created: Timestamp) -> Result<Created, WriteError> {
        let path = path(source, SUFFIX_OPEN);
        let create = || {
            let mut file = self.disk.create(&path)?;
            file.append(&FileHeader { source, created }.encode())?;
            Ok((file, self.disk.open(&path)?))
        };
        create().map_err(|error| WriteError::disk("create", &path, error))
    }

    /// Appends the batch's frames to the open file; gives how far the file then reaches.
    fn write_frames(
        &mut self,
        batch: &Batch,
        batch_id: Option<BatchId>,
        received: Timestamp,
        first: u64,
    ) -> Result<Reach, WriteError> {
        // `begin` has been called.
        let Some(open) = &mut self.open else {
            return Ok(Reach::default());
        };
        let mut reach = open.appended;
        let mut lengths = batch.lengths();
        let mut payload = batch.payload();
        let mut number = first;
        while !lengths.is_empty() {
            let (count, bytes) = match batch_id {
                // What was checked to fit goes into one frame.
                Some(_) => (lengths.len(), payload.len()),
                None => frame_extent(lengths),
            };
            let (frame_lengths, lengths_after) = lengths.split_at(count);
            let (frame_payload, payload_after) = payload.split_at(bytes);
            let parts = FrameParts {
                kind: batch.kind,
                labels: &batch.labels,
                lengths: frame_lengths,
                payload: frame_payload,
                first_number: number,
                received,
                batch_id,
                synced_bytes: open.synced.bytes,
            };
            self.encoder
                .encode(open.source, reach.bytes, &parts, &mut self.buffer);
            let written = open.file.append(&self.buffer);
            reach.bytes += self.buffer.len() as u64;
            reach.frames += 1;
            if self.buffer.capacity() > BUFFER_BYTES_KEPT {
                self.buffer = Vec::new();
            }
            written.map_err(|error| {
                WriteError::disk("append to", &path(open.source, SUFFIX_OPEN), error)
            })?;
            (lengths, payload) = (lengths_after, payload_after);
            number += count as u64;
        }
        for (index, held) in batch.iter().enumerate() {
            let (_, _, raw) = line_of(batch.kind, held);
            let id = entry_id(received, open.source.incarnation, first + index as u64);
            reach.summary.add_row(id, received, raw);
        }
        reach.mark = number;
        Ok(reach)
    }

    /// Takes no more frames into the current file, after an error, as of writing a batch of this name.
    fn abandon(&mut self, sync_failed: bool, failed: Option<BatchId>) {
        let Some(mut open) = self.open.take() else {
            return;
        };
        let mut fate = Fate::Salvage;
        if !sync_failed && open.appended.summary.rows() > 0 {
            // No sync has failed yet, so the batches before the failed one may still be saved.
            let durable = open.file.sync().is_ok()
                && (open.named || self.disk.sync_directory(DIRECTORY).is_ok());
            if durable {
                open.note_synced();
                self.durable_mark = open.synced.mark;
                fate = Fate::Cut;
            }
        }
        if open.synced.summary.rows() == 0 {
            fate = Fate::Remove;
            self.sequence_next = open.source.sequence;
        }
        if failed.is_some() {
            open.batches_unsynced.add(failed);
        }
        self.set_aside(open, fate);
        self.retry_at = Timestamp::MIN;
        // What fails again stays in the list.
        let _ = self.settle();
    }

    /// Takes no more frames into the current file, which is synced.
    fn finish(&mut self) {
        if let Some(open) = self.open.take() {
            debug_assert!(open.ended && open.synced.bytes == open.appended.bytes);
            self.set_aside(open, Fate::Rename);
        }
    }

    fn set_aside(&mut self, open: OpenFile, fate: Fate) {
        self.unclosed.push(UnclosedFile {
            reader: Some(open.reader),
            source: open.source,
            synced: open.synced,
            batches: open.batches,
            failed: open.batches_unsynced,
            fate,
        });
        self.publish(None);
    }

    /// Tries to close all files that wait for it; the last error, if any.
    fn settle(&mut self) -> Result<(), WriteError> {
        let mut result = Ok(());
        let mut index = 0;
        while index < self.unclosed.len() {
            match self.unclosed[index].settle(&*self.disk) {
                Ok(closed) => {
                    self.unclosed.remove(index);
                    self.publish(closed);
                }
                Err(error) => {
                    index += 1;
                    result = Err(error);
                }
            }
        }
        result
    }

    fn publish(&self, closed: Option<ClosedFile>) {
        let unclosed = self.unclosed.iter().filter_map(UnclosedFile::state);
        let open = self.open.iter();
        let open =
            open.map(|open| open_state(open.source, &open.synced, &open.batches, &open.reader));
        let readable = unclosed
            .chain(open)
            .filter(|state| state.summary.rows() > 0);
        self.visible.publish(readable.collect(), closed);
    }
}

/// Refuses what no frame may hold.
pub(super) fn check_bounds(batch: &Batch, batch_id: Option<BatchId>) -> Result<(), WriteError> {
    let bytes = labels_bytes(&batch.labels);
    let count = batch.labels.len();
    if bytes > LABELS_BYTES_MAX || count > LABELS_MAX {
        return Err(WriteError::Labels { bytes, count });
    }
    let longest = batch.lengths().iter().copied().max().unwrap_or(0) as usize;
    if longest > FRAME_PAYLOAD_BYTES_MAX {
        return Err(WriteError::Entry { bytes: longest });
    }
    let (count, bytes) = (batch.len(), batch.payload().len());
    let fits = count <= FRAME_ENTRIES_MAX && bytes <= FRAME_PAYLOAD_BYTES_MAX;
    if batch_id.is_some() && !fits {
        return Err(WriteError::Batch { count, bytes });
    }
    if let Some(id) = batch_id.filter(|id| id.more > 0 && id.is_retry()) {
        return Err(WriteError::Run { id });
    }
    Ok(())
}

/// How many entries, and how many bytes of payload, go into the next frame.
fn frame_extent(lengths: &[u32]) -> (usize, usize) {
    let mut bytes = 0;
    for (index, &length) in lengths.iter().take(FRAME_ENTRIES_MAX).enumerate() {
        let with = bytes + length as usize;
        // An entry stays whole, however long it is.
        if index > 0 && with > FRAME_PAYLOAD_BYTES_TARGET {
            return (index, bytes);
        }
        bytes = with;
    }
    (lengths.len().min(FRAME_ENTRIES_MAX), bytes)
}
