//! Copying the good prefix of a file whose own bytes cannot be trusted to be on the disk.
//!
//! After a failed sync a system may keep the bytes in its cache, call them clean, and report
//! success at the next sync; what is read back then is not what a crash would leave. A copy in a
//! new file, synced as a whole, is. Frames know their place by offset, so a copied prefix is valid.

use std::io;

use logpond_record::SourceId;

use super::read::JournalFile;
use super::visible::Summary;
use super::{SUFFIX_CLOSED, SUFFIX_SALVAGE, path};
use crate::disk::{Disk, ReadAt};

/// How much is copied at once.
const COPY_BYTES: usize = 1 << 20;

/// Copies the first `bytes` of a file to the closed name of `source`, through a synced temporary
/// file that must hold exactly `summary`.
///
/// The caller makes the name durable, and removes the original only after that.
pub(super) fn salvage(
    disk: &dyn Disk,
    source: SourceId,
    original: &dyn ReadAt,
    bytes: u64,
    summary: &Summary,
) -> io::Result<()> {
    let copy = path(source, SUFFIX_SALVAGE);
    remove_if_there(disk, &copy)?;
    let mut out = disk.create(&copy)?;
    let mut buffer = vec![0; bytes.min(COPY_BYTES as u64) as usize];
    let mut offset = 0;
    while offset < bytes {
        let length = (bytes - offset).min(COPY_BYTES as u64) as usize;
        original.read_at(offset, &mut buffer[..length])?;
        out.append(&buffer[..length])?;
        offset += length as u64;
    }
    out.sync()?;
    let journal = JournalFile::open(disk, &copy).map_err(io::Error::other)?;
    if journal.scan()?.summary != *summary {
        let text = format!("{copy}: the copy does not hold what was in the original");
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    disk.rename(&copy, &path(source, SUFFIX_CLOSED))
}

/// Removes a file that may be absent.
pub(super) fn remove_if_there(disk: &dyn Disk, path: &str) -> io::Result<()> {
    match disk.remove(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
