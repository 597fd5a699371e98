//! Why a backup cannot be made or used.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::PathBuf;

use logpond_bucket::BucketError;

use super::restore::MARKER;

/// Why a backup cannot be made or used.
#[derive(Debug)]
pub enum BackupError {
    /// The store fails.
    Bucket(BucketError),
    /// The local disk fails; the text names the file.
    Disk(io::Error),
    /// The directory is no server's.
    NoData(PathBuf),
    /// The files of the data directory went and came whenever they were looked at.
    Restless,
    /// There is no snapshot at all.
    Empty,
    /// There is no snapshot of this name.
    Unknown(String),
    /// A snapshot is not what this version writes.
    Snapshot {
        /// The object.
        object: String,
        /// What is wrong with it.
        what: &'static str,
    },
    /// An object is not what the snapshot says.
    Differs {
        /// The object.
        object: String,
        /// What is wrong with it.
        what: String,
    },
    /// Something is in the directory that is to be restored into.
    NotEmpty {
        /// The directory.
        directory: PathBuf,
        /// A file of it.
        name: String,
    },
    /// Another restore into the directory was not finished.
    OtherRestore {
        /// The directory.
        directory: PathBuf,
        /// The snapshot that it was of, and the place.
        other: String,
    },
    /// The disk is too small.
    NoRoom {
        /// The directory.
        directory: PathBuf,
        /// Bytes that are to be written.
        wanted_bytes: u64,
        /// Bytes that are free.
        free_bytes: u64,
    },
}

impl fmt::Display for BackupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BackupError::Bucket(error) => error.fmt(f),
            BackupError::Disk(error) => error.fmt(f),
            BackupError::NoData(directory) => write!(
                f,
                "{} is no data directory: it has neither journal nor segments; name it by --data",
                directory.display()
            ),
            BackupError::Restless => f.write_str(
                "the files of the data directory changed whenever they were listed; try again",
            ),
            BackupError::Empty => f.write_str("there is no backup at this place"),
            BackupError::Unknown(name) => write!(
                f,
                "there is no snapshot {name:?}; `logpond backup list` names those that there are"
            ),
            BackupError::Snapshot { object, what } => {
                write!(
                    f,
                    "{object} cannot be used: {what}; `logpond backup list` names the others"
                )
            }
            BackupError::Differs { object, what } => write!(
                f,
                "{object} is damaged in the bucket: {what}; try another snapshot"
            ),
            BackupError::NotEmpty { directory, name } => write!(
                f,
                "{} is not empty, there is {name:?}: restore into a new directory",
                directory.display()
            ),
            BackupError::OtherRestore { directory, other } => write!(
                f,
                "in {} a restore of {other} was not finished: finish that one, or empty the \
                 directory",
                directory.display()
            ),
            BackupError::NoRoom {
                directory,
                wanted_bytes,
                free_bytes,
            } => write!(
                f,
                "{} has {free_bytes} bytes free, and {wanted_bytes} are to be restored",
                directory.display()
            ),
        }
    }
}

impl Error for BackupError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            BackupError::Bucket(error) => error.source(),
            _ => None,
        }
    }
}

impl From<BucketError> for BackupError {
    fn from(error: BucketError) -> BackupError {
        BackupError::Bucket(error)
    }
}

impl From<io::Error> for BackupError {
    fn from(error: io::Error) -> BackupError {
        BackupError::Disk(error)
    }
}

/// What a server says that finds a restore that was not finished.
pub(super) fn unfinished(restore: &str) -> io::Error {
    let text = format!(
        "a restore of {restore} was not finished: run `logpond restore` again, or remove the \
         directory ({MARKER} in it says so)"
    );
    io::Error::other(text)
}
