//! What is wrong with files of alert rules.

use std::path::PathBuf;
use std::{error, fmt, io};

use logpond_search::alert::RuleFileError;

/// Why alert rules cannot be used.
#[derive(Debug)]
pub enum AlertRulesError {
    /// A file or directory cannot be read.
    Unreadable {
        /// Which.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// Something in a file is wrong.
    Wrong {
        /// The file.
        path: PathBuf,
        /// What, and where.
        error: RuleFileError,
    },
    /// There are more files than are read.
    TooMany {
        /// The directory.
        path: PathBuf,
        /// How many are read.
        most: usize,
    },
}

impl fmt::Display for AlertRulesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AlertRulesError::Unreadable { path, .. } => {
                write!(f, "alert rules cannot be read from {}", path.display())
            }
            AlertRulesError::Wrong { path, error } => write!(f, "{}:{error}", path.display()),
            AlertRulesError::TooMany { path, most } => write!(
                f,
                "{} has more than {most} files of alert rules; put several into one",
                path.display()
            ),
        }
    }
}

impl error::Error for AlertRulesError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            AlertRulesError::Unreadable { source, .. } => Some(source),
            AlertRulesError::Wrong { .. } | AlertRulesError::TooMany { .. } => None,
        }
    }
}
