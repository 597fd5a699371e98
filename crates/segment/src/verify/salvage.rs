//! Reads a damaged file as a segment, as far as that can be proven.
//!
//! Invariants:
//! - Nothing is taken for a row, or for what is known of one, that no checksum proves: pages have theirs in
//!   the directory, the directory has its own, and of a footer without its checksum nothing is believed but
//!   what is known of the segment from elsewhere. Rows alone do not prove a manifest: their hashes do not
//!   tell which sources they are of.
//! - Nothing is changed, whatever is found.

use std::io;
use std::sync::Arc;

use logpond_record::cast;

use super::Lines;
use crate::disk::ReadAt;
use crate::file::{
    Damage, MAGIC, Manifest, Place, ReadError, SegmentFile, Summary, TAIL_BYTES_MAX, unproven,
};

/// How far before its last byte a file may end: what is behind is read backwards, once.
const TRAILING_BYTES_MAX: u64 = 256 << 20;

/// Read at a time.
const WINDOW_BYTES: u64 = 1 << 20;

/// Places that look like the end of a segment and are tried. Bytes of pages look so once in 4 GiB.
const ENDS_MAX: usize = 1024;

/// Bytes in which the footer is looked for first: those of most.
const FOOTER_BYTES: u64 = 1 << 20;

/// A segment that was read from a damaged file.
pub struct SalvagedSegment {
    /// The segment. Of its pages each may be damaged, as ever.
    pub segment: SegmentFile,
    /// The damage of the file beyond its pages.
    pub damage: Damage,
}

/// Reads a file that cannot be opened as a segment; `known` is what is known of it from elsewhere. `None` if
/// nothing proves what its rows are.
///
/// # Errors
/// When the disk fails; damage is no error.
pub fn salvage(
    file: &Arc<dyn ReadAt>,
    known: Option<&Summary>,
) -> io::Result<Option<SalvagedSegment>> {
    if let Some(salvaged) = without_trailing(file)? {
        return Ok(Some(salvaged));
    }
    let bytes = file.bytes()?;
    for tail_bytes in [FOOTER_BYTES, TAIL_BYTES_MAX] {
        let mut tail = vec![0; cast::to_usize(tail_bytes.min(bytes))];
        file.read_at(bytes - tail.len() as u64, &mut tail)?;
        let found = without_footer(file, unproven(&tail), known)?;
        if found.is_some() || tail_bytes >= bytes {
            return Ok(found);
        }
    }
    Ok(None)
}

/// A segment with bytes behind it.
fn without_trailing(file: &Arc<dyn ReadAt>) -> io::Result<Option<SalvagedSegment>> {
    let bytes = file.bytes()?;
    let (mut end, mut tried) = (bytes, 0);
    let first = bytes.saturating_sub(TRAILING_BYTES_MAX);
    while end > first + MAGIC.len() as u64 {
        let from = end.saturating_sub(WINDOW_BYTES).max(first);
        let mut window = vec![0; cast::to_usize(end - from)];
        file.read_at(from, &mut window)?;
        for at in memchr::memmem::rfind_iter(&window, MAGIC) {
            let ends = from + (at + MAGIC.len()) as u64;
            tried += 1;
            if ends == bytes || tried > ENDS_MAX {
                continue;
            }
            match SegmentFile::open_to(Arc::clone(file), ends) {
                Ok(segment) => {
                    let damage = Damage {
                        offset: ends,
                        bytes: bytes - ends,
                        what: "bytes that belong to nothing",
                    };
                    return Ok(Some(SalvagedSegment { segment, damage }));
                }
                Err(ReadError::Damaged(_)) => {}
                Err(ReadError::Disk(error)) => return Err(error),
            }
        }
        if from == first {
            break;
        }
        // A place across two windows is in the next one.
        end = from + MAGIC.len() as u64 - 1;
    }
    Ok(None)
}

/// A segment whose footer was cut off or is damaged.
fn without_footer(
    file: &Arc<dyn ReadAt>,
    (place, text): (Option<Place>, Option<&str>),
    known: Option<&Summary>,
) -> io::Result<Option<SalvagedSegment>> {
    let Some(known) = known else {
        return Ok(None);
    };
    let is_known = |text: &&str| crc32c::crc32c(text.as_bytes()) == known.manifest_crc;
    let stated = text.filter(is_known).and_then(Manifest::from_json);
    let is_proven = stated.is_some();
    let manifest = match stated {
        Some(stated) => stated,
        // The marks of sources that yield to others would be lost.
        None if known.has_retries => return Ok(None),
        None => known.to_manifest(),
    };
    for place in [Some(known.directory), place].into_iter().flatten() {
        let opened = SegmentFile::without_footer(Arc::clone(file), manifest.clone(), place);
        let segment = match opened {
            Ok(Some(segment)) => segment,
            Ok(None) | Err(ReadError::Damaged(_)) => continue,
            Err(ReadError::Disk(error)) => return Err(error),
        };
        let offset = segment.footer_from();
        let proven = if is_proven {
            Some(segment)
        } else {
            prove(segment, known)?
        };
        return Ok(proven.map(|segment| SalvagedSegment {
            damage: Damage {
                offset,
                bytes: segment.bytes() - offset,
                what: "the footer is damaged or was cut off",
            },
            segment,
        }));
    }
    Ok(None)
}

/// Compares all rows with what is known of them, which is said of all sources together.
fn prove(segment: SegmentFile, known: &Summary) -> io::Result<Option<SegmentFile>> {
    let (tallies, is_whole) = tallies(&segment)?;
    let mut manifest = Manifest::clone(segment.manifest());
    let (mut rows, mut hash) = (0, 0u128);
    for (entry, (of_rows, of_hash)) in manifest.sources.iter_mut().zip(tallies) {
        (entry.rows, entry.hash) = (of_rows, of_hash);
        rows += of_rows;
        hash = hash.wrapping_add(of_hash);
    }
    if is_whole && (rows, hash) != (known.rows, known.hash) {
        return Ok(None);
    }
    Ok(Some(segment.with_manifest(manifest)))
}

/// Rows of each source, and the sums of their hashes, and whether nothing is damaged.
fn tallies(segment: &SegmentFile) -> io::Result<(Vec<(u64, u128)>, bool)> {
    let mut lines = Lines::new(segment, true);
    let mut is_whole = true;
    let directory = match segment.read_directory() {
        Ok(directory) => directory,
        Err(ReadError::Disk(error)) => return Err(error),
        Err(ReadError::Damaged(_)) => return Ok((Vec::new(), false)),
    };
    for number in 0..directory.row_groups.len() {
        let mut reader = segment.row_group(&directory, number);
        for block in 0..directory.row_groups[number].blocks.len() {
            match lines.add_block(&mut reader, &directory, block) {
                Ok(_) => {}
                Err(ReadError::Damaged(_)) => is_whole = false,
                Err(ReadError::Disk(error)) => return Err(error),
            }
        }
    }
    let tallies = lines.tallies.iter().flatten();
    Ok((
        tallies.map(|tally| (tally.rows, tally.hash_sum)).collect(),
        is_whole,
    ))
}
