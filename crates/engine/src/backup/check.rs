//! What a file of the data directory holds: its checksum, its rows, and whether it is damaged.

use std::io;
use std::sync::Arc;

use logpond_record::cast;
use logpond_segment::disk::ReadAt;
use logpond_segment::journal::{JournalFile, OpenError};
use logpond_segment::verify;
use xxhash_rust::xxh3::Xxh3;

use super::snapshot::{Entry, Kind};

/// How much is read at a time.
const PART_BYTES: usize = 1 << 20;

/// A file that is damaged where it is, and was copied as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedFile {
    /// The file, below the data directory.
    pub path: String,
    /// What is wrong.
    pub what: String,
}

/// Reads a whole file of this kind; gives its entry, and what is damaged.
///
/// # Errors
/// When the disk fails; damage is no error.
pub(super) fn examine(
    kind: Kind,
    path: &str,
    file: &Arc<dyn ReadAt>,
) -> io::Result<(Entry, Option<DamagedFile>)> {
    let (bytes, checksum) = checksum(&**file)?;
    let (rows, what) = match kind {
        Kind::State => (0, None),
        Kind::Segment => {
            let checked = verify::file(Arc::clone(file), None)?;
            let first = checked.damages.first();
            (checked.rows, first.map(|damage| damage.what.to_owned()))
        }
        Kind::Journal => match JournalFile::from_file(Arc::clone(file), path) {
            Ok(journal) => {
                let scanned = journal.scan()?;
                let first = scanned.damages.listed.first();
                let what = first.map(|damage| damage.reason.to_string());
                (scanned.summary.rows(), what)
            }
            Err(OpenError::Disk(error)) => return Err(error),
            Err(error) => (0, Some(error.to_string())),
        },
    };
    let entry = Entry {
        path: path.to_owned(),
        bytes,
        checksum,
        rows,
        is_damaged: what.is_some(),
    };
    let path = path.to_owned();
    Ok((entry, what.map(|what| DamagedFile { path, what })))
}

/// Length and checksum of a file.
pub(super) fn checksum(file: &dyn ReadAt) -> io::Result<(u64, u128)> {
    let bytes = file.bytes()?;
    let mut hash = Xxh3::new();
    let mut part = vec![0; PART_BYTES];
    let mut offset = 0;
    while offset < bytes {
        let length = (bytes - offset).min(PART_BYTES as u64);
        let part = &mut part[..cast::to_usize(length)];
        file.read_at(offset, part)?;
        hash.update(part);
        offset += length;
    }
    Ok((bytes, hash.digest128()))
}

#[cfg(test)]
mod tests {
    use logpond_segment::disk::Disk;
    use logpond_segment::mem_disk::MemDisk;
    use xxhash_rust::xxh3::xxh3_128;

    use super::*;

    #[test]
    fn a_checksum_is_that_of_all_bytes() {
        let disk = MemDisk::new();
        for (number, length) in [0, 1, PART_BYTES - 1, PART_BYTES, 2 * PART_BYTES + 7]
            .into_iter()
            .enumerate()
        {
            let bytes: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
            let path = format!("{number}");
            disk.write(&path, &bytes);
            let found = checksum(&*disk.open(&path).unwrap()).unwrap();
            assert_eq!(found, (length as u64, xxh3_128(&bytes)));
        }
    }
}
