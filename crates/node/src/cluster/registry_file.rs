//! The registry on disk.
//!
//! Invariants: what [`RegistryFile::note`] returned for survives a crash. A damaged file is refused: what is in it
//! goes to all other nodes, and a number that is one bit off would have all of them take sources for expired.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use logpond_cluster::Registry;
use logpond_cluster::wire::DecodeError;
use logpond_segment::disk::Disk;
use xxhash_rust::xxh3::xxh3_64;

use super::identity::{DIRECTORY, read_small};
use logpond_host::disk::replace;

const PATH: &str = "cluster/registry";

/// A registry of a hundred nodes that restart every hour for a month takes 5 MB.
pub(crate) const BYTES_MAX: u64 = 64 << 20;

/// The first bytes of a file. Files of earlier builds are a message only, which begins with its version: 1 or 2.
const MAGIC: &[u8] = b"registry 1\n";

/// The registry of a node.
pub struct RegistryFile {
    disk: Arc<dyn Disk>,
    state: Mutex<State>,
}

struct State {
    known: Arc<Registry>,
    /// Hash of its bytes.
    digest: u64,
}

/// The registry cannot be read.
#[derive(Debug)]
pub enum RegistryError {
    /// The disk fails.
    Disk(io::Error),
    /// The bytes are no registry.
    Decode(DecodeError),
    /// The bytes are not those that were written.
    Checksum,
}

impl fmt::Display for RegistryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RegistryError::Disk(_) => write!(f, "{PATH} cannot be read"),
            RegistryError::Decode(_) | RegistryError::Checksum => write!(
                f,
                "{PATH} is damaged; remove it, and the node learns from the others what was in it"
            ),
        }
    }
}

impl std::error::Error for RegistryError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            RegistryError::Disk(source) => Some(source),
            RegistryError::Decode(source) => Some(source),
            RegistryError::Checksum => None,
        }
    }
}

impl RegistryFile {
    /// Reads the registry of a data directory; it is empty at first.
    ///
    /// # Errors
    /// See [`RegistryError`].
    pub fn open(disk: Arc<dyn Disk>) -> Result<RegistryFile, RegistryError> {
        let bytes = read_small(&*disk, PATH, BYTES_MAX).map_err(RegistryError::Disk)?;
        let known = match bytes {
            Some(bytes) => decode(&bytes)?,
            None => Registry::default(),
        };
        let state = State {
            digest: xxh3_64(&known.to_bytes()),
            known: Arc::new(known),
        };
        Ok(RegistryFile {
            disk,
            state: Mutex::new(state),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known, all of it on disk.
    pub fn known(&self) -> Arc<Registry> {
        self.state().known.clone()
    }

    /// A number that differs where what is known does.
    pub fn digest(&self) -> u64 {
        self.state().digest
    }

    /// Changes the registry; `change` says whether anything of it is news. Returns once that is on
    /// disk; blocks for a sync if there was news.
    ///
    /// # Errors
    /// When it cannot be written; nothing has changed then.
    pub fn note(&self, change: impl FnOnce(&mut Registry) -> bool) -> io::Result<()> {
        let mut state = self.state();
        let mut registry = Registry::clone(&state.known);
        if change(&mut registry) {
            let bytes = registry.to_bytes();
            replace(&*self.disk, DIRECTORY, PATH, &encode(&bytes))?;
            *state = State {
                known: Arc::new(registry),
                digest: xxh3_64(&bytes),
            };
        }
        Ok(())
    }
}

/// The file of a registry that has these bytes.
fn encode(registry: &[u8]) -> Vec<u8> {
    let mut file = [MAGIC, registry].concat();
    let checksum = xxh3_64(&file);
    file.extend_from_slice(&checksum.to_le_bytes());
    file
}

fn decode(file: &[u8]) -> Result<Registry, RegistryError> {
    let message = match file.split_last_chunk::<8>() {
        // An earlier build has written it.
        _ if matches!(file.first(), Some(1 | 2)) => file,
        Some((rest, checksum)) if xxh3_64(rest) == u64::from_le_bytes(*checksum) => {
            rest.strip_prefix(MAGIC).ok_or(RegistryError::Checksum)?
        }
        _ => return Err(RegistryError::Checksum),
    };
    Registry::from_bytes(message).map_err(RegistryError::Decode)
}

#[cfg(test)]
mod tests {
    use logpond_segment::mem_disk::MemDisk;

    use super::*;

    const GOLDEN: &[u8] = include_bytes!("../../../../testdata/cluster/v1.registry-file");

    #[test]
    fn the_bytes_are_those_of_the_format() {
        let registry = decode(GOLDEN).unwrap();
        assert_ne!(registry.to_bytes(), Registry::default().to_bytes());
        assert_eq!(encode(&registry.to_bytes()), GOLDEN);
        // As an earlier build has written it.
        let earlier = decode(&registry.to_bytes()).unwrap();
        assert_eq!(earlier.to_bytes(), registry.to_bytes());
    }

    #[test]
    fn no_flipped_bit_and_no_torn_file_is_a_registry() {
        let disk = MemDisk::new();
        disk.create_directory(DIRECTORY).unwrap();
        let is_refused = |bytes: &[u8]| {
            disk.write(PATH, bytes);
            RegistryFile::open(Arc::new(disk.clone())).is_err()
        };
        assert!(!is_refused(GOLDEN));
        let mut bytes = GOLDEN.to_vec();
        for bit in 0..8 * bytes.len() {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(is_refused(&bytes), "bit {bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        assert!((0..bytes.len()).all(|length| is_refused(&bytes[..length])));
    }
}
