//! The right to use a small file that is replaced as a whole.
//!
//! Invariant: one process at a time has it, also when the file beside it, whose lock says so too, was deleted
//! meanwhile: the file itself is locked, and each one that takes its place is locked before it does.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::disk::open_regular;

/// How often a file is opened anew because another one took its place meanwhile: only a process that is
/// ending can do that.
const TRIES_MAX: usize = 16;

/// Held as long as this process uses the file.
#[derive(Debug)]
pub struct StateLock {
    path: PathBuf,
    /// The file of this path.
    own: File,
    /// Earlier versions of this program look at this one only.
    _beside: File,
}

impl StateLock {
    /// Takes the right to use the file at `path`, which is made if it does not exist, empty, as is its
    /// directory.
    ///
    /// # Errors
    /// Of the kind [`ErrorKind::ResourceBusy`] when another process has it; those of the system.
    pub fn take(path: &Path) -> io::Result<StateLock> {
        if let Some(directory) = path.parent().filter(|d| !d.as_os_str().is_empty()) {
            fs::create_dir_all(directory)?;
        }
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        let beside = open_regular(&mut options, &path.with_added_extension("lock"))?;
        lock(&beside)?;
        for _ in 0..TRIES_MAX {
            let own = match open_regular(OpenOptions::new().read(true), path) {
                Err(error) if error.kind() == ErrorKind::NotFound => match File::create_new(path) {
                    Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                    created => created?,
                },
                opened => opened?,
            };
            lock(&own)?;
            if is_at(&own, path)? {
                let path = path.to_path_buf();
                return Ok(StateLock {
                    path,
                    own,
                    _beside: beside,
                });
            }
        }
        Err(ErrorKind::ResourceBusy.into())
    }

    /// Replaces the file by these bytes, in one step.
    ///
    /// # Errors
    /// Those of the system; the file is as it was then.
    pub fn replace(&mut self, bytes: &[u8]) -> io::Result<()> {
        let new = self.path.with_added_extension("new");
        let mut file = File::create(&new)?;
        lock(&file)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&new, &self.path)?;
        self.own = file;
        Ok(())
    }
}

fn lock(file: &File) -> io::Result<()> {
    file.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => ErrorKind::ResourceBusy.into(),
        TryLockError::Error(error) => error,
    })
}

/// True if this file is the one that a path names.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let named = match fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        named => named?,
    };
    let own = file.metadata()?;
    Ok((own.dev(), own.ino()) == (named.dev(), named.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deleted_lock_lets_nobody_in() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a/state.json");
        let beside = path.with_added_extension("lock");
        let mut lock = StateLock::take(&path).unwrap();
        let is_refused = || {
            let error = StateLock::take(&path).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ResourceBusy);
        };
        is_refused();
        fs::remove_file(&beside).unwrap();
        is_refused();
        lock.replace(b"one").unwrap();
        fs::remove_file(&beside).unwrap();
        is_refused();
        assert_eq!(fs::read(&path).unwrap(), b"one");
        drop(lock);
        StateLock::take(&path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"one");
    }

    #[test]
    fn what_is_no_regular_file_is_refused_at_once() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};

        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state.json");
        let beside = path.with_added_extension("lock");
        // The first one is never made while the second one is in its place.
        for fifo in [&beside, &path] {
            mknodat(CWD, fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
            assert!(StateLock::take(&path).is_err(), "{}", fifo.display());
            fs::remove_file(fifo).unwrap();
        }
        StateLock::take(&path).unwrap();
    }
}
