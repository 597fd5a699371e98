//! Why a file is not taken for one of the journal.

use std::fmt;
use std::io;

use logpond_record::SourceId;

use super::frame::FORMAT_VERSION;

/// Why a file cannot be read as a journal file at all.
#[derive(Debug)]
pub enum OpenError {
    /// The disk failed; the file may be fine.
    Disk(io::Error),
    /// The name is none that the journal gives.
    Name(String),
    /// The file was written by a newer version.
    Version {
        /// The file.
        path: String,
        /// Its version.
        version: u32,
    },
    /// The file says that it is another source than its name says.
    Renamed {
        /// The file.
        path: String,
        /// What its header says.
        source: SourceId,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Disk(error) => write!(f, "cannot read a journal file: {error}"),
            OpenError::Name(path) => write!(f, "{path} is not named like a journal file"),
            OpenError::Version { path, version } => write!(
                f,
                "{path} has format version {version}, this program reads {FORMAT_VERSION}; use a newer one"
            ),
            OpenError::Renamed { path, source } => write!(
                f,
                "{path} holds the source {source}; give it that name to have it read"
            ),
        }
    }
}

impl std::error::Error for OpenError {}

impl From<io::Error> for OpenError {
    fn from(error: io::Error) -> OpenError {
        OpenError::Disk(error)
    }
}
