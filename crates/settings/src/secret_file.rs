//! Files with secrets, in TOML: keys and passwords stand in a file, never in arguments.
//!
//! Invariant: no error quotes the content of a file.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use toml::de::DeTable;

/// The longest file: thousands of users.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The kind of a file with secrets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SecretFile {
    /// The flag that names it, with its dashes.
    pub flag: &'static str,
    /// The remedy of every error, behind its reason; may be empty.
    pub remedy: &'static str,
}

/// A file with secrets cannot be used.
#[derive(Debug)]
pub struct SecretFileError {
    file: SecretFile,
    path: PathBuf,
    reason: String,
}

impl fmt::Display for SecretFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SecretFileError { file, path, reason } = self;
        let (path, flag) = (path.display(), file.flag);
        write!(f, "{path} cannot be used ({flag}): {reason}{}", file.remedy)
    }
}

impl std::error::Error for SecretFileError {}

impl SecretFile {
    /// Reads a file; `parse` gives its content a meaning, or says why it has none.
    ///
    /// # Errors
    /// When the file cannot be read, or has no meaning.
    pub fn read<T>(
        self,
        path: &Path,
        parse: impl FnOnce(DeTable<'_>) -> Result<T, &'static str>,
    ) -> Result<T, SecretFileError> {
        let read = || {
            let mut text = String::new();
            let file = File::open(path)?.take(FILE_BYTES_MAX);
            { file }.read_to_string(&mut text)?;
            Ok(text)
        };
        let text = read().map_err(|error: io::Error| self.refuse(path, error.to_string()))?;
        parse_secret(&text, parse).map_err(|reason| self.refuse(path, reason.to_owned()))
    }

    /// The error of such a file.
    pub fn refuse(self, path: &Path, reason: String) -> SecretFileError {
        SecretFileError {
            file: self,
            path: path.to_owned(),
            reason,
        }
    }
}

/// Reads the text of a file.
///
/// # Errors
/// When it is no TOML, or has no meaning.
pub fn parse_secret<T>(
    text: &str,
    parse: impl FnOnce(DeTable<'_>) -> Result<T, &'static str>,
) -> Result<T, &'static str> {
    let table = DeTable::parse(text).map_err(|_| "it is no TOML")?;
    parse(table.into_inner())
}
