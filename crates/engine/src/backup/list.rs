//! What is in a data directory at one moment, though a server may be working in it.
//!
//! The server never removes a closed journal file before a live segment lists its source, nor an input
//! of a merge before its output is live. So the journal is listed first and the segments second: what
//! is gone from the journal by then is in a segment.
//!
//! One reading of a directory may miss an output that comes and an input that goes while it is
//! read. So segments are listed until two listings are equal: to be missed by both, records would have
//! to be merged twice, once within each, and a merge takes much longer than a listing.

use std::io;

use logpond_record::{Id, SourceId};
use logpond_segment::disk::{DirEntry, Disk};
use logpond_segment::{build, journal};

use super::BackupError;

/// How often segments are listed. A server changes them about once a second.
const LISTINGS_MAX: usize = 100;

/// What there is.
#[derive(Debug, Default)]
pub(super) struct Listing {
    /// Closed journal files.
    pub(super) closed: Vec<SourceId>,
    /// Paths of journal files that are being written, or were when their process ended.
    pub(super) open: Vec<String>,
    /// Live segments.
    pub(super) segments: Vec<Id>,
    /// Files that were put aside as not readable.
    pub(super) put_aside: u64,
}

/// Lists the journal, then the segments.
pub(super) fn list(disk: &dyn Disk) -> Result<Listing, BackupError> {
    let mut listing = Listing::default();
    for entry in names(disk, journal::DIRECTORY)? {
        match journal::parse_name(&entry) {
            Some((source, journal::SUFFIX_CLOSED)) => listing.closed.push(source),
            Some((_, journal::SUFFIX_OPEN)) => {
                listing.open.push(format!("{}/{entry}", journal::DIRECTORY));
            }
            Some((_, journal::SUFFIX_QUARANTINED)) => listing.put_aside += 1,
            _ => {}
        }
    }
    for name in settled_segments(disk)? {
        let id = name.strip_suffix(build::SUFFIX_LIVE);
        match id.and_then(|id| id.parse().ok()) {
            Some(id) => listing.segments.push(id),
            None if name.ends_with(journal::SUFFIX_QUARANTINED) => listing.put_aside += 1,
            None => {}
        }
    }
    Ok(listing)
}

/// The names of the segments and of what was put aside, once they are the same twice.
fn settled_segments(disk: &dyn Disk) -> Result<Vec<String>, BackupError> {
    let list = || -> io::Result<Vec<String>> {
        let mut names = names(disk, build::DIRECTORY)?;
        // Files that are being written and retired ones come and go.
        names.retain(|name| {
            name.ends_with(build::SUFFIX_LIVE) || name.ends_with(journal::SUFFIX_QUARANTINED)
        });
        Ok(names)
    };
    let mut last = list()?;
    for _ in 0..LISTINGS_MAX {
        let next = list()?;
        if next == last {
            return Ok(next);
        }
        last = next;
    }
    Err(BackupError::Restless)
}

fn names(disk: &dyn Disk, directory: &str) -> io::Result<Vec<String>> {
    let entries: Vec<DirEntry> = disk.list(directory)?;
    let mut names: Vec<String> = entries.into_iter().map(|entry| entry.name).collect();
    names.sort_unstable();
    Ok(names)
}
