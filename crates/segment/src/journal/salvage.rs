//! Completing a file that was not closed in order: by a copy, or where it is.
//!
//! After a failed sync a system may keep the bytes in its cache, call them clean, and report
//! success at the next sync; what is read back then is not what a crash would leave. A copy in a
//! new file, synced as a whole, is. Frames know their place by offset, so a copied prefix is valid;
//! frames behind a range that is left out move forward and are placed anew.
//!
//! Invariant: what gets the name of a closed file has its end mark, and all of it is synced.

use std::io;

use logpond_record::{SourceId, cast};

use super::frame::{EndMark, FRAME_HEADER_BYTES, FileHeader, place};
use super::read::JournalFile;
use super::visible::Summary;
use super::{SUFFIX_CLOSED, SUFFIX_SALVAGE, path};
use crate::disk::{AppendFile, Disk};

/// How much is copied at once.
const COPY_BYTES: usize = 1 << 20;

/// Copies a file to the closed name of its source, through a synced temporary file that must hold
/// exactly `summary`: the bytes before `in_place_end` as they are, from there on the frames that
/// check out, and an end mark with these counts. Gives the length of the copy.
///
/// The caller makes the name durable, and removes the original only after that.
pub(super) fn salvage(
    disk: &dyn Disk,
    original: &JournalFile,
    in_place_end: u64,
    counts: EndMark,
    summary: &Summary,
) -> io::Result<u64> {
    let source = original.source();
    let copy = path(source, SUFFIX_SALVAGE);
    remove_if_there(disk, &copy)?;
    let mut out = disk.create(&copy)?;
    copy_prefix(original, in_place_end, &mut *out)?;
    let bytes = copy_frames(original, in_place_end, &mut *out)?;
    // Nothing of the copy is synced yet.
    let mark = EndMark {
        synced_bytes: 0,
        ..counts
    };
    let mark = mark.encode(source, bytes);
    out.append(&mark)?;
    out.sync()?;
    let journal = JournalFile::open(disk, &copy).map_err(io::Error::other)?;
    let scanned = journal.scan()?;
    if scanned.summary != *summary || !scanned.is_ended() {
        let text = format!("{copy}: the copy does not hold what was in the original");
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    disk.rename(&copy, &path(source, SUFFIX_CLOSED))?;
    Ok(bytes + mark.len() as u64)
}

fn copy_prefix(original: &JournalFile, bytes: u64, out: &mut dyn AppendFile) -> io::Result<()> {
    let mut buffer = vec![0; cast::to_usize(bytes.min(COPY_BYTES as u64))];
    let mut offset = 0;
    while offset < bytes {
        let length = cast::to_usize((bytes - offset).min(COPY_BYTES as u64));
        original.file().read_at(offset, &mut buffer[..length])?;
        out.append(&buffer[..length])?;
        offset += length as u64;
    }
    Ok(())
}

/// Appends the frames from `from` on, one behind the other; gives where they end.
fn copy_frames(original: &JournalFile, from: u64, out: &mut dyn AppendFile) -> io::Result<u64> {
    let source = original.source();
    let mut offset = from;
    let mut buffer = Vec::new();
    let mut frames = original.frames_from(from);
    while let Some(frame) = frames.next()? {
        if offset == 0 {
            // The header is among what was lost. The file was begun with its first frame.
            let created = frame.received();
            let header = FileHeader { source, created }.encode();
            out.append(&header)?;
            offset = header.len() as u64;
        }
        // A frame that was read is within the bounds of frames.
        buffer.resize(cast::to_usize(frame.bytes()), 0);
        original.file().read_at(frame.offset(), &mut buffer)?;
        let header = &mut buffer[..FRAME_HEADER_BYTES];
        place(source, offset, frame.synced_bytes(), header);
        out.append(&buffer)?;
        offset += buffer.len() as u64;
    }
    Ok(offset)
}

/// Cuts a file of which no sync has failed behind `bytes`, syncs it, and gives it an end mark with
/// these counts, synced as well. To be called again after an error, or to be replaced by a copy.
pub(super) fn end_in_place(
    disk: &dyn Disk,
    source: SourceId,
    path: &str,
    bytes: u64,
    counts: EndMark,
) -> io::Result<u64> {
    disk.truncate(path, bytes)?;
    let mark = EndMark {
        synced_bytes: bytes,
        ..counts
    };
    let mark = mark.encode(source, bytes);
    let mut file = disk.open_append(path)?;
    file.append(&mark)?;
    file.sync()?;
    Ok(bytes + mark.len() as u64)
}

/// Whether an error says that there is no room.
pub(super) fn is_full(error: &io::Error) -> bool {
    let kind = error.kind();
    matches!(
        kind,
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

/// Removes a file that may be absent.
pub(super) fn remove_if_there(disk: &dyn Disk, path: &str) -> io::Result<()> {
    match disk.remove(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
