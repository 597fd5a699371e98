//! How far partitions were read, on disk: `kafka/positions` below the data directory.
//!
//! The records themselves say it as long as they are there; this says it when they have expired, and
//! where a partition was begun that has none yet.
//!
//! Invariant: a position is noted only once everything below it is durable.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::sync::Arc;

use logpond_segment::disk::Disk;

use logpond_host::disk::replace;

const DIRECTORY: &str = "kafka";

const PATH: &str = "kafka/positions";

/// The first line.
const HEADER: &str = "logpond kafka positions 1";

/// The longest file: some hundred thousand partitions.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// How far partitions were read.
pub(super) struct Positions {
    disk: Arc<dyn Disk>,
    /// By epoch: the offset to read next, and what people call the partition.
    known: BTreeMap<u128, (u64, String)>,
    is_changed: bool,
}

impl Positions {
    /// Reads the file, which may not exist yet.
    ///
    /// # Errors
    /// When it cannot be read, or is something else.
    pub(super) fn open(disk: Arc<dyn Disk>) -> io::Result<Positions> {
        disk.create_directory(DIRECTORY)?;
        let known = match disk.open(PATH) {
            Ok(file) => {
                let length = file.bytes()?.min(FILE_BYTES_MAX);
                let mut bytes = vec![0; length as usize];
                file.read_at(0, &mut bytes)?;
                decode(&bytes).ok_or_else(|| {
                    let text = format!(
                        "{PATH} is damaged; without it reading goes on behind the records that are held, and \
                         what has expired of Kafka's newest may be read again: remove it if that is so"
                    );
                    io::Error::new(ErrorKind::InvalidData, text)
                })?
            }
            Err(error) if error.kind() == ErrorKind::NotFound => BTreeMap::new(),
            Err(error) => return Err(error),
        };
        Ok(Positions {
            disk,
            known,
            is_changed: false,
        })
    }

    /// The offset to read next.
    pub(super) fn next(&self, epoch: u128) -> Option<u64> {
        self.known.get(&epoch).map(|(next, _)| *next)
    }

    /// Notes that everything below an offset is durable; a position never goes back.
    pub(super) fn note(&mut self, epoch: u128, next: u64, name: impl FnOnce() -> String) {
        let known = self.known.entry(epoch).or_insert_with(|| {
            self.is_changed = true;
            (next, name())
        });
        if known.0 < next {
            known.0 = next;
            self.is_changed = true;
        }
    }

    /// Writes them if they have changed. Blocks for two syncs.
    ///
    /// # Errors
    /// When they cannot be written; they are tried again with the next change.
    pub(super) fn save(&mut self) -> io::Result<()> {
        if !std::mem::take(&mut self.is_changed) {
            return Ok(());
        }
        let saved = replace(&*self.disk, DIRECTORY, PATH, encode(&self.known).as_bytes());
        self.is_changed = saved.is_err();
        saved
    }
}

fn encode(known: &BTreeMap<u128, (u64, String)>) -> String {
    let mut text = format!("{HEADER}\n");
    for (epoch, (next, name)) in known {
        text.push_str(&format!("{epoch:032x} {next} {name}\n"));
    }
    text
}

fn decode(bytes: &[u8]) -> Option<BTreeMap<u128, (u64, String)>> {
    let text = std::str::from_utf8(bytes).ok()?;
    let lines = text.strip_prefix(HEADER)?.strip_prefix('\n')?;
    if !lines.is_empty() && !lines.ends_with('\n') {
        return None;
    }
    let mut known = BTreeMap::new();
    for line in lines.lines() {
        let (epoch, rest) = line.split_once(' ')?;
        let (next, name) = rest.split_once(' ')?;
        let epoch = u128::from_str_radix(epoch, 16).ok()?;
        known.insert(epoch, (next.parse().ok()?, name.to_owned()));
    }
    Some(known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use logpond_host::disk::RealDisk;

    #[test]
    fn positions_are_there_after_a_start_and_never_go_back() {
        let directory = tempfile::tempdir().unwrap();
        let disk: Arc<dyn Disk> = Arc::new(RealDisk::create(directory.path()).unwrap());
        let mut positions = Positions::open(disk.clone()).unwrap();
        assert_eq!(positions.next(7), None);
        positions.note(7, 10, || "logs/0".to_owned());
        positions.note(7, 8, || "logs/0".to_owned());
        positions.note(8, 0, || "logs/1".to_owned());
        positions.save().unwrap();
        positions.save().unwrap();
        let again = Positions::open(disk.clone()).unwrap();
        assert_eq!((again.next(7), again.next(8)), (Some(10), Some(0)));
        let path = directory.path().join(PATH);
        let text = std::fs::read_to_string(&path).unwrap();
        for damaged in [&text[..text.len() - 1], &text[1..], ""] {
            std::fs::write(&path, damaged).unwrap();
            let error = Positions::open(disk.clone()).err().unwrap();
            assert!(error.to_string().contains("damaged"), "{error}");
        }
    }
}
