//! The disk as this crate sees it. The real one is in the product, faulty ones in tests.
//!
//! Paths are relative to the data directory and use `/`.

use std::io;
use std::sync::Arc;

/// A directory entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirEntry {
    /// The file's name, without the directory.
    pub name: String,
    /// The file's length in bytes.
    pub bytes: u64,
}

/// Files of a data directory.
///
/// Every call may block; none is made from an async thread. Errors carry the path in their text.
pub trait Disk: Send + Sync {
    /// The files of a directory, in no particular order; sub-directories are left out.
    /// A directory that does not exist is empty.
    fn list(&self, directory: &str) -> io::Result<Vec<DirEntry>>;

    /// Creates a directory and its parents, durably, if they do not exist.
    fn create_directory(&self, directory: &str) -> io::Result<()>;

    /// Creates a file for appending; fails if it exists.
    fn create(&self, path: &str) -> io::Result<Box<dyn AppendFile>>;

    /// Opens a file that exists for appending at its end.
    fn open_append(&self, path: &str) -> io::Result<Box<dyn AppendFile>>;

    /// Opens a file for reading. It stays readable after a rename or a removal.
    fn open(&self, path: &str) -> io::Result<Arc<dyn ReadAt>>;

    /// Shortens a file and syncs it.
    fn truncate(&self, path: &str, bytes: u64) -> io::Result<()>;

    /// Renames a file within the data directory, replacing any file of the new name.
    /// Durable only after [`Disk::sync_directory`] of the directories concerned.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file. Durable only after [`Disk::sync_directory`].
    fn remove(&self, path: &str) -> io::Result<()>;

    /// Makes creations, renames and removals in a directory durable.
    fn sync_directory(&self, directory: &str) -> io::Result<()>;

    /// Free and total bytes of the file system.
    fn space(&self) -> io::Result<Space>;
}

/// Room on a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Bytes that may still be written by an ordinary user.
    pub free_bytes: u64,
    /// Size of the file system.
    pub total_bytes: u64,
}

/// A file that is written from front to back.
pub trait AppendFile: Send {
    /// Appends all bytes, or fails; after a failure the file's tail is undefined.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Makes all that was appended durable (`fdatasync`).
    ///
    /// After an error the file must not be synced again (CLUSTER rule R1).
    fn sync(&mut self) -> io::Result<()>;
}

/// A file that is read at any offset, by several threads at once.
pub trait ReadAt: Send + Sync {
    /// Length of the file in bytes at the time it was opened or later.
    fn bytes(&self) -> io::Result<u64>;

    /// Fills `buffer` from `offset`, or fails; reading past the end is `UnexpectedEof`.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;

    /// A hint that this range is about to be read, in parts and in any order. A file for which each
    /// read is expensive fetches it in one go; for others there is nothing to do. What goes wrong
    /// in that is told by the reads.
    fn will_read(&self, _offset: u64, _bytes: u64) {}

    /// A hint that the system need not keep this range in memory, so that who reads it next has it
    /// from the medium. What was not written to the medium yet is kept. Nothing goes wrong in that.
    fn forget(&self, _offset: u64, _bytes: u64) {}

    /// A hint, given once what the file holds is known, that each of these ranges (offset and
    /// length, ascending, apart from each other) is a region: who reads a second place of it will
    /// read more of it. Unlike [`ReadAt::will_read`] it does not say that any of them is read: a
    /// search reads many columns of a few row groups, a chart one column of all of them, and which
    /// it is shows only in the reads.
    fn regions(&self, _regions: &[(u64, u64)]) {}
}
