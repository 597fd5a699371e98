//! Why a file of rules cannot be used, in words that say what to do.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why a file of rules cannot be used.
#[derive(Debug)]
pub enum RulesError {
    /// A file cannot be read.
    Unreadable {
        /// What it is: the file of rules, or that of the key.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Something in the file is wrong.
    Wrong {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// What is wrong, and what would be right.
        message: String,
    },
}

impl fmt::Display for RulesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RulesError::Unreadable { what, path, .. } => {
                write!(f, "{what} {} cannot be read (--rules)", path.display())
            }
            RulesError::Wrong {
                path,
                line,
                column,
                message,
            } => write!(f, "{}:{line}:{column}: {message}", path.display()),
        }
    }
}

impl std::error::Error for RulesError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            RulesError::Unreadable { source, .. } => Some(source),
            RulesError::Wrong { .. } => None,
        }
    }
}
