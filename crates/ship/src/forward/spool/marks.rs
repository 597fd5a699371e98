//! How far a spool was sent: a small file beside its journal.
//!
//! Invariant: a batch that may have been sent is before the `sent` mark of its file, or its file is
//! listed as one of which nothing is known. The mark is durable before the batch is sent, and no
//! mark is replaced before the file that it is about is gone for good.

use std::collections::BTreeSet;
use std::io;

use logpond_record::{SourceId, cast};
use logpond_segment::disk::Disk;
use logpond_segment::journal::ClosedFile;
use serde::{Deserialize, Serialize};

use crate::forward::position::Position;

/// The directory of the file, below that of the spool.
const DIRECTORY: &str = "state";

/// The file.
const PATH: &str = "state/sent.json";

/// The file before it is complete.
const PATH_NEW: &str = "state/sent.json.new";

/// Version of the file.
const VERSION: u32 = 1;

/// The longest file that is read: marks and the names of a full spool's files.
const BYTES_MAX: u64 = 16 << 20;

/// Batches that are marked as sent at a time, so that the mark is seldom written. After a crash so
/// many batches at most are sent as retries although they were never sent.
pub(super) const SENT_AHEAD: u64 = 16;

/// Positions that are kept: those of the files that were read last. Others are remembered where
/// all positions are.
const POSITIONS_MAX: usize = 1000;

/// How far a spool was sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Marks {
    /// The file that is being sent.
    pub(super) source: Option<SourceId>,
    /// Batches of it that need not be sent again.
    pub(super) acknowledged: u64,
    /// Batches of it that may have been sent.
    pub(super) sent: u64,
    /// Files of which it is not known what was sent.
    pub(super) unknown: BTreeSet<SourceId>,
    /// How far followed files were read in files of the spool that are gone, the latest last.
    pub(super) positions: Vec<Position>,
}

#[derive(Serialize, Deserialize)]
struct File {
    version: u32,
    source: Option<String>,
    acknowledged: u64,
    sent: u64,
    unknown: Vec<String>,
    positions: Vec<Position>,
}

impl Marks {
    /// Remembers how far a file was read.
    pub(super) fn add_position(&mut self, position: Position) {
        self.positions
            .retain(|known| known.identity != position.identity);
        if self.positions.len() >= POSITIONS_MAX {
            self.positions.remove(0);
        }
        self.positions.push(position);
    }

    /// What is known of these files. Without a mark that makes sense it is nothing.
    pub(super) fn load(disk: &dyn Disk, files: &[ClosedFile]) -> io::Result<Marks> {
        disk.create_directory(DIRECTORY)?;
        let known = match read(disk) {
            Ok(known) => known,
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        let there: BTreeSet<SourceId> = files.iter().map(|file| file.source).collect();
        let marks = match known {
            Some(mut marks) => {
                marks.unknown.retain(|source| there.contains(source));
                marks
            }
            None => Marks {
                unknown: there,
                ..Marks::default()
            },
        };
        marks.save(disk)?;
        Ok(marks)
    }

    /// Makes the marks durable.
    pub(super) fn save(&self, disk: &dyn Disk) -> io::Result<()> {
        let file = File {
            version: VERSION,
            source: self.source.map(|source| source.to_string()),
            acknowledged: self.acknowledged,
            sent: self.sent,
            unknown: self.unknown.iter().map(SourceId::to_string).collect(),
            positions: self.positions.clone(),
        };
        match disk.remove(PATH_NEW) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut new = disk.create(PATH_NEW)?;
        new.append(&serde_json::to_vec(&file).map_err(io::Error::other)?)?;
        new.sync()?;
        disk.rename(PATH_NEW, PATH)?;
        disk.sync_directory(DIRECTORY)
    }
}

/// Reads the file; `None` if it makes no sense.
fn read(disk: &dyn Disk) -> io::Result<Option<Marks>> {
    let file = disk.open(PATH)?;
    let bytes = file.bytes()?;
    if bytes > BYTES_MAX {
        return Ok(None);
    }
    let mut text = vec![0; cast::to_usize(bytes)];
    file.read_at(0, &mut text)?;
    let Ok(file) = serde_json::from_slice::<File>(&text) else {
        return Ok(None);
    };
    let unknown: Option<_> = file.unknown.iter().map(|text| source_of(text)).collect();
    let source = match &file.source {
        Some(text) => source_of(text).map(Some),
        None => Some(None),
    };
    let marks = match (source, unknown) {
        (Some(source), Some(unknown)) if file.version == VERSION => Some(Marks {
            source,
            acknowledged: file.acknowledged,
            sent: file.sent,
            unknown,
            positions: file.positions,
        }),
        _ => None,
    };
    Ok(marks)
}

/// Reads what `SourceId` displays.
fn source_of(text: &str) -> Option<SourceId> {
    let (incarnation, sequence) = text.split_once('/')?;
    Some(SourceId {
        incarnation: incarnation.parse().ok()?,
        sequence: sequence.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use logpond_record::Incarnation;
    use logpond_segment::journal::Summary;
    use logpond_segment::mem_disk::MemDisk;

    use super::*;

    fn source(sequence: u64) -> SourceId {
        SourceId {
            incarnation: Incarnation(7),
            sequence,
        }
    }

    fn file(sequence: u64) -> ClosedFile {
        ClosedFile {
            path: String::new(),
            source: source(sequence),
            bytes: 0,
            summary: Summary::default(),
            batches: Default::default(),
        }
    }

    #[test]
    fn marks_come_back_and_lost_ones_make_everything_unknown() {
        let disk = MemDisk::new();
        let files = [file(1), file(2)];
        assert_eq!(Marks::load(&disk, &[]).unwrap(), Marks::default());
        let marks = Marks {
            source: Some(source(1)),
            acknowledged: 3,
            sent: 19,
            unknown: [source(2), source(9)].into(),
            positions: Vec::new(),
        };
        marks.save(&disk).unwrap();
        disk.crash(1);
        let loaded = Marks::load(&disk, &files).unwrap();
        // What is gone needs no mark.
        let unknown = [source(2)].into();
        assert_eq!(loaded, Marks { unknown, ..marks });
        for nonsense in [&b"{"[..], b"{\"version\":2}", b""] {
            disk.write(PATH, nonsense);
            let loaded = Marks::load(&disk, &files).unwrap();
            assert_eq!(loaded.unknown, [source(1), source(2)].into());
            assert_eq!(loaded.source, None);
        }
    }
}
