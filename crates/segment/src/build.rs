//! Making segments: from closed journal files, and from other segments.
//!
//! Invariants:
//! - A source goes into a segment whole or not at all (R4): what cannot be read ends the merge.
//!   Only a copy of a batch whose rows are in the same segment is listed without its own (R10), or
//!   were in it until a [`trim`] has left them to other nodes.
//!   What was written is read back before anything depends on it: its lines must be those of the
//!   journal files or segments it was made of, source by source, by number and sum of hashes.
//! - The file is complete and synced under a temporary name before it gets its own; only a file
//!   with its own name is a segment.
//! - What failed is discarded before anything else is made ([`discard`]). So of two live segments
//!   that share sources one holds all sources of the other, whatever a crash brings back, and
//!   [`settle`] can count each source once.

mod merger;
mod parts;

use std::fmt;
use std::io;

use logpond_record::{Entry, Id, Incarnation, Record, cast};
use parquet::errors::ParquetError;

use crate::batches::{BatchSet, HeldBatches, RetryCopy, yielding};
use crate::disk::Disk;
use crate::file::{FinishedFile, Profile, ReadError, Retry, SegmentFile, SourceEntry};
use crate::journal::{ClosedFile, Damages, JournalFile, OpenError};
use crate::rows::{RowsBuilder, Schema, memory_bytes};
use crate::sources::SourceSet;
use crate::tally::Tally;
use crate::verify;
pub use merger::open_memory_bytes_max;
use merger::{Output, source_maps};
use parts::Parts;

/// Directory of the segments.
pub const DIRECTORY: &str = "segments";
/// Ending of live segments.
pub const SUFFIX_LIVE: &str = ".parquet";
/// Ending of files that are being written.
pub const SUFFIX_TEMPORARY: &str = ".tmp";
/// Ending of segments that have been retired and wait to be removed.
pub const SUFFIX_TRASH: &str = ".trash";
/// Ending of files that cannot be read as segments.
pub const SUFFIX_QUARANTINED: &str = ".quarantined";
/// Ending of files of which a live segment holds every row: the damaged one of two, or a copy under another
/// name. Nobody reads them, and the program never removes them.
pub const SUFFIX_SUPERSEDED: &str = ".superseded";

/// Memory in which a segment is made of journal files unless less is allowed. Files of ordinary lines
/// of together some 50 MiB take no more, and are put in order at once; what takes more is written in
/// parts.
pub const MEMORY_BYTES_MAX: u64 = 192 << 20;

/// The most batches of a segment that it names although they are named by what is in them: of each such
/// segment these take some 100 KiB of memory. Those of the latest sources stay, and none of a segment at rest.
/// The node that took them in remembers more of them.
const CONTENT_NAMES_MAX: usize = 1024;

/// Bytes of a deleted file that are written again at a time.
const PUT_BACK_BYTES: u64 = 1 << 20;

/// The least memory that is of use: a row group of each of two parts that are merged.
pub const MEMORY_BYTES_MIN: u64 = 8 << 20;

/// The limits within which a segment is made of journal files.
#[derive(Clone, Copy)]
pub struct BuildLimits<'a> {
    /// About the memory that rows may take that are collected or being merged, at least
    /// [`MEMORY_BYTES_MIN`].
    pub memory_bytes_max: u64,
    /// Whether to stop; asked between parts.
    pub is_stopped: &'a dyn Fn() -> bool,
    /// The files that go into the segment.
    pub takes: FileSelection,
}

/// The journal files that a segment takes of those that it is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSelection {
    /// All of them, in parts if they do not fit into memory together: a claim of a cluster is one segment.
    All,
    /// At least the first, by source, and of the others those that fit into memory with it: writing rows in
    /// parts and merging these costs as much again as reading them. The manifest lists those that were taken.
    Fitting,
}

impl Default for BuildLimits<'_> {
    fn default() -> Self {
        BuildLimits {
            memory_bytes_max: MEMORY_BYTES_MAX,
            is_stopped: &|| false,
            takes: FileSelection::All,
        }
    }
}

/// The path of a segment in one of its states.
pub fn path(id: Id, suffix: &str) -> String {
    format!("{DIRECTORY}/{id}{suffix}")
}

/// Why no segment was made. What is left behind is for [`discard`].
#[derive(Debug)]
pub enum BuildError {
    /// A journal file cannot be opened.
    Journal(OpenError),
    /// An input segment cannot be read, or is damaged.
    Input(ReadError),
    /// The segment cannot be encoded or written.
    Write(ParquetError),
    /// The segment that was written does not hold what went into it.
    Differs(ReadError),
    /// The disk failed.
    Disk(io::Error),
    /// The caller wanted it to stop.
    Stopped,
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BuildError::Journal(_) => "a journal file cannot be opened",
            BuildError::Input(_) => "a segment cannot be merged",
            BuildError::Write(_) => "a segment cannot be written",
            BuildError::Differs(_) => "a segment does not hold what went into it; nothing is lost",
            BuildError::Disk(_) => "the disk failed while a segment was made",
            BuildError::Stopped => "the making of a segment was stopped",
        })
    }
}

impl std::error::Error for BuildError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            BuildError::Journal(error) => Some(error),
            BuildError::Input(error) => Some(error),
            BuildError::Write(error) => Some(error),
            BuildError::Differs(error) => Some(error),
            BuildError::Disk(error) => Some(error),
            BuildError::Stopped => None,
        }
    }
}

impl From<ParquetError> for BuildError {
    fn from(error: ParquetError) -> BuildError {
        BuildError::Write(error)
    }
}

impl From<ReadError> for BuildError {
    fn from(error: ReadError) -> BuildError {
        BuildError::Input(error)
    }
}

impl From<io::Error> for BuildError {
    fn from(error: io::Error) -> BuildError {
        BuildError::Disk(error)
    }
}

/// A segment that was made and is live on disk.
pub struct BuiltSegment {
    /// What was written.
    pub written: FinishedFile,
    /// Damaged parts of the journal files; their rows are lost.
    pub damages: Damages,
}

/// Makes a segment of closed journal files; `decode` reads their entries. Takes about
/// [`MEMORY_BYTES_MAX`] of memory, however many rows there are.
pub fn from_journal(
    disk: &dyn Disk,
    id: Id,
    closed: &[ClosedFile],
    decode: impl for<'e> FnMut(&Entry<'e>) -> Record<'e>,
) -> Result<BuiltSegment, BuildError> {
    from_journal_within(disk, id, closed, BuildLimits::default(), decode)
}

/// [`from_journal`] within other bounds.
pub fn from_journal_within(
    disk: &dyn Disk,
    id: Id,
    closed: &[ClosedFile],
    within: BuildLimits<'_>,
    mut decode: impl for<'e> FnMut(&Entry<'e>) -> Record<'e>,
) -> Result<BuiltSegment, BuildError> {
    let mut closed: Vec<&ClosedFile> = closed.iter().collect();
    closed.sort_by_key(|file| file.source);
    let mut parts = Parts::new(disk, id, within, closed.iter().map(|f| f.source).collect());
    let mut builder = expecting(&closed, within);
    let mut damages = Damages::default();
    let (mut sources, mut batches) = (Vec::new(), BatchSet::default());
    let mut named = Vec::new();
    // What senders said beside the lines: fields of envelopes.
    let (mut bytes_beside, mut bytes_read) = (0, 0);
    for (number, file) in closed.iter().enumerate() {
        let may_wait = within.takes == FileSelection::Fitting && number > 0;
        if may_wait && !parts.fits(&builder, bytes_beside, (file.bytes, bytes_read)) {
            break;
        }
        bytes_read += file.bytes;
        let journal = JournalFile::from_closed(disk, file).map_err(BuildError::Journal)?;
        let (mut rows, mut bytes, mut held) = (0, 0, HeldBatches::default());
        let mut frames = journal.frames();
        while let Some(frame) = frames.next()? {
            held.add(frame.batch_id());
            bytes_beside += frame.payload().len() as u64;
            for entry in frame.entries() {
                let line_bytes = entry.raw.len() as u64;
                (rows, bytes) = (rows + 1, bytes + line_bytes);
                bytes_beside = bytes_beside.saturating_sub(line_bytes);
                let row = number_of(entry.id, file.source.incarnation);
                builder.push(&decode(&entry), row, cast::low_u32(number), entry.raw.len());
            }
            parts.spill(&mut builder, &mut bytes_beside)?;
        }
        damages.merge(frames.into_damages());
        let written = file.summary.tally;
        let tally = if (rows, bytes) == (written.rows, written.bytes) {
            written
        } else {
            tally_of(&journal)?
        };
        sources.push(SourceEntry {
            source: file.source,
            rows: tally.rows,
            hash: tally.hash_sum,
            retry: held.retry().map(|id| Retry {
                id,
                is_shadowed: false,
            }),
        });
        if let Some(originals) = held.originals() {
            let (content, others) = originals.split_content();
            batches.union_with(&others);
            named.push(content);
        }
    }
    add_content(&mut batches, named.iter().rev());
    let written = parts.finish(builder, sources, batches)?;
    prove(disk, id)?;
    publish(disk, id)?;
    Ok(BuiltSegment { written, damages })
}

/// Adds batches that are named by what is in them, as many as a segment may have; `newest` has the latest
/// first.
fn add_content<'a>(batches: &mut BatchSet, newest: impl Iterator<Item = &'a BatchSet>) {
    let runs = newest.flat_map(BatchSet::runs);
    for (epoch, run) in runs.take(CONTENT_NAMES_MAX) {
        batches.insert_run(epoch, run);
    }
}

/// About the memory that the rows of a journal file take, of which there are so many, when a segment is
/// made of it.
pub fn journal_memory_bytes(rows: u64, file_bytes: u64) -> u64 {
    memory_bytes(rows, Schema::default().row_bytes(), file_bytes)
}

/// A builder for the rows of these files, as far as they are held together.
fn expecting(closed: &[&ClosedFile], within: BuildLimits<'_>) -> RowsBuilder {
    let tallies = || closed.iter().map(|file| &file.summary.tally);
    let rows: u64 = tallies().map(|tally| tally.rows).sum();
    let bytes: u64 = tallies().map(|tally| tally.bytes).sum();
    if journal_memory_bytes(rows, bytes) < within.memory_bytes_max {
        RowsBuilder::expecting(rows, bytes)
    } else {
        // Of how many rows a part will be is not known before.
        RowsBuilder::new()
    }
}

/// What can be read of a file that was damaged after its rows were counted.
fn tally_of(journal: &JournalFile) -> io::Result<Tally> {
    let (mut tally, mut frames) = (Tally::default(), journal.frames());
    while let Some(frame) = frames.next()? {
        let entries = frame.entries();
        entries.for_each(|entry| tally.add_row(entry.id, entry.raw));
    }
    Ok(tally)
}

/// The number of a record within its incarnation.
fn number_of(id: Id, incarnation: Incarnation) -> u64 {
    cast::low_u64((id.0 & ((1 << 80) - 1)).wrapping_sub(incarnation.entropy_base()))
}

/// Reads a finished file back and compares its lines with the sources.
fn prove(disk: &dyn Disk, id: Id) -> Result<(), BuildError> {
    let file = disk.open(&path(id, SUFFIX_TEMPORARY))?;
    let proven = SegmentFile::open(file).and_then(|segment| verify::lines(&segment));
    proven.map_err(|error| match error {
        ReadError::Disk(error) => BuildError::Disk(error),
        ReadError::Damaged(_) => BuildError::Differs(error),
    })
}

/// Makes a finished and synced file that came from elsewhere live: gives it its own name.
///
/// # Errors
/// When the disk fails; then it is for [`discard`].
pub fn adopt(disk: &dyn Disk, id: Id) -> io::Result<()> {
    publish(disk, id)
}

/// Writes the file of a live segment again that somebody has deleted: it is open, and can be read.
///
/// # Errors
/// When the disk fails; then it is for [`discard`].
pub fn put_back(disk: &dyn Disk, segment: &SegmentFile) -> io::Result<()> {
    let id = segment.manifest().id;
    let mut file = disk.create(&path(id, SUFFIX_TEMPORARY))?;
    let (mut at, end) = (0, segment.bytes());
    while at < end {
        let mut piece = vec![0; cast::to_usize(PUT_BACK_BYTES.min(end - at))];
        segment.on_disk().read_at(at, &mut piece)?;
        file.append(&piece)?;
        at += piece.len() as u64;
    }
    file.sync()?;
    publish(disk, id)
}

/// Gives a finished file its own name.
fn publish(disk: &dyn Disk, id: Id) -> io::Result<()> {
    disk.rename(&path(id, SUFFIX_TEMPORARY), &path(id, SUFFIX_LIVE))?;
    disk.sync_directory(DIRECTORY)
}

/// Removes what a failed attempt may have left: temporary files, or a finished one that could not
/// be made durable under its own name. What went into it is all still there.
///
/// To be called, until it succeeds, before the next segment is made. Otherwise that one could take
/// other inputs along, and after a crash two segments would share some of their sources only.
///
/// # Errors
/// When the disk fails.
pub fn discard(disk: &dyn Disk, id: Id) -> io::Result<()> {
    for suffix in [SUFFIX_TEMPORARY, SUFFIX_LIVE] {
        remove_if_there(disk, &path(id, suffix))?;
    }
    parts::remove_parts(disk, id)
}

fn remove_if_there(disk: &dyn Disk, path: &str) -> io::Result<()> {
    match disk.remove(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Merges segments into one. A source that several inputs list is taken from the first of them and
/// left out of the others. A copy of a batch that was sent again is left out if the output has the
/// batch in a source that counts before it ([`yielding`]); the output lists it with no rows.
///
/// Holds one row group of each of the inputs that overlap in time at any one moment, decoded
/// ([`open_memory_bytes_max`]). `is_stopped` is asked between row groups.
pub fn merge(
    disk: &dyn Disk,
    id: Id,
    inputs: &[SegmentFile],
    profile: Profile,
    is_stopped: &dyn Fn() -> bool,
) -> Result<FinishedFile, BuildError> {
    merge_sources(
        disk,
        id,
        inputs,
        merged_sources(inputs, profile),
        profile,
        is_stopped,
    )
}

/// Writes a segment anew without some of its sources, of which enough other nodes have said that they
/// hold them (CLUSTER R6). Something must be left: a source with rows.
///
/// It goes on to name the batches of all of them: which source a batch was in is not known, and a copy
/// that was sent again is to yield wherever its original is.
pub fn trim(
    disk: &dyn Disk,
    id: Id,
    input: &SegmentFile,
    left_out: &SourceSet,
    profile: Profile,
    is_stopped: &dyn Fn() -> bool,
) -> Result<FinishedFile, BuildError> {
    let inputs = std::slice::from_ref(input);
    let (mut sources, batches) = merged_sources(inputs, profile);
    sources.retain(|entry| !left_out.contains(entry.source));
    merge_sources(disk, id, inputs, (sources, batches), profile, is_stopped)
}

/// Merges what the inputs have of these sources.
fn merge_sources(
    disk: &dyn Disk,
    id: Id,
    inputs: &[SegmentFile],
    (sources, batches): (Vec<SourceEntry>, BatchSet),
    profile: Profile,
    is_stopped: &dyn Fn() -> bool,
) -> Result<FinishedFile, BuildError> {
    let source_maps = source_maps(inputs, &sources);
    let output = Output {
        disk,
        id,
        path: path(id, SUFFIX_TEMPORARY),
        profile,
        sources,
        batches,
    };
    let written = output.merge(inputs, source_maps, is_stopped)?;
    prove(disk, id)?;
    publish(disk, id)?;
    Ok(written)
}

/// The sources of the output, and the batches that count wherever else they are.
fn merged_sources(inputs: &[SegmentFile], profile: Profile) -> (Vec<SourceEntry>, BatchSet) {
    let manifests = || inputs.iter().map(SegmentFile::manifest);
    let mut batches = BatchSet::default();
    let mut named = Vec::new();
    for manifest in manifests() {
        let (content, others) = manifest.batches.split_content();
        batches.union_with(&others);
        named.push((manifest.received_max, content));
    }
    if profile == Profile::Hot {
        named.sort_by_key(|(received_max, _)| std::cmp::Reverse(*received_max));
        add_content(&mut batches, named.iter().map(|(_, content)| content));
    }
    let each = manifests().flat_map(|manifest| manifest.sources.iter().copied());
    let mut sources: Vec<SourceEntry> = each.collect();
    // Stable: what counts of a shared source is what its first input says, as for the rows.
    sources.sort_by_key(|entry| entry.source);
    sources.dedup_by_key(|entry| entry.source);
    let copies: Vec<RetryCopy> = manifests()
        .flat_map(|manifest| manifest.retries())
        .map(|(source, Retry { id, .. })| RetryCopy { source, id })
        .collect();
    // Whatever an input has left out already is in another source of that input.
    let shadowed = yielding(&copies, |id| batches.contains(id.epoch, id.sequence));
    for entry in &mut sources {
        if let Some(retry) = &mut entry.retry
            && shadowed.contains(entry.source)
        {
            (entry.rows, entry.hash, retry.is_shadowed) = (0, 0, true);
        }
    }
    (sources, batches)
}

fn open_live(disk: &dyn Disk, path: &str) -> Result<SegmentFile, ReadError> {
    SegmentFile::open(disk.open(path)?)
}

/// Opens a segment that was just made.
pub fn open(disk: &dyn Disk, id: Id) -> Result<SegmentFile, ReadError> {
    open_live(disk, &path(id, SUFFIX_LIVE))
}

/// Takes segments out of the live ones: from now on they are trash, and no restart counts them.
///
/// The caller has made sure that other live segments list all their sources (R5), or that they
/// have expired (R8).
pub fn retire(disk: &dyn Disk, ids: &[Id]) -> io::Result<()> {
    for id in ids {
        disk.rename(&path(*id, SUFFIX_LIVE), &path(*id, SUFFIX_TRASH))?;
    }
    disk.sync_directory(DIRECTORY)
}

/// Removes retired segments for good, also those that [`retire`] could not rename. May be called
/// again for the same ones after an error.
pub fn purge(disk: &dyn Disk, ids: &[Id]) -> io::Result<()> {
    for id in ids {
        for suffix in [SUFFIX_TRASH, SUFFIX_LIVE] {
            remove_if_there(disk, &path(*id, suffix))?;
        }
    }
    disk.sync_directory(DIRECTORY)
}

mod start;

pub use start::{SettledSegments, StartupScan, open_all, open_known, settle};

#[cfg(test)]
mod retries_tests;
#[cfg(test)]
mod start_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod values_tests;
