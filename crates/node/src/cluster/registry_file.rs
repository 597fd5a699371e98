//! The registry on disk.
//!
//! Invariant: what [`RegistryFile::note`] returned for survives a crash.

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
}

impl fmt::Display for RegistryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RegistryError::Disk(_) => write!(f, "{PATH} cannot be read"),
            RegistryError::Decode(_) => write!(
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
            Some(bytes) => Registry::from_bytes(&bytes).map_err(RegistryError::Decode)?,
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
            replace(&*self.disk, DIRECTORY, PATH, &bytes)?;
            *state = State {
                known: Arc::new(registry),
                digest: xxh3_64(&bytes),
            };
        }
        Ok(())
    }
}
