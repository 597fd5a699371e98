//! The file of tokens: read with a bound, replaced in one step.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::entry::Tokens;
use logpond_host::disk::read_bounded;
use logpond_host::private_file;

/// The most tokens of one file. A token for each machine of a large site fits; an entry takes 200
/// bytes and a look-up passes over all of them.
pub const TOKENS_MAX: usize = 2_000;

/// The longest file that is read: many times [`TOKENS_MAX`] entries.
const FILE_BYTES_MAX: u64 = 2 << 20;

/// Why tokens cannot be read or changed.
#[derive(Debug)]
pub enum TokenFileError {
    /// The file cannot be read or written.
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is not what the commands write.
    Syntax {
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        what: String,
    },
    /// What is wrong with a file.
    In {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        error: Box<TokenFileError>,
    },
    /// A name that no token can have.
    Name(String),
    /// A name that a token has.
    NameTaken(String),
    /// Bounds that no token can have; why.
    Bounds(String),
    /// There are [`TOKENS_MAX`] tokens.
    TooMany,
    /// No token is called so.
    Unknown(String),
}

impl fmt::Display for TokenFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TokenFileError::Io { path, .. } => write!(
                f,
                "the file of tokens {} cannot be used; name another by --tokens",
                path.display()
            ),
            TokenFileError::Syntax { line, what } => write!(f, "line {line}: {what}"),
            TokenFileError::In { path, error } => {
                write!(f, "the file of tokens {}: {error}", path.display())
            }
            TokenFileError::Bounds(what) => f.write_str(what),
            TokenFileError::Name(name) => write!(
                f,
                "'{name}' is no name for a token: expected up to {} letters, digits, '.', '-' \
                 and '_'",
                super::NAME_BYTES_MAX
            ),
            TokenFileError::NameTaken(name) => write!(
                f,
                "there is a token '{name}' already; revoke it, or choose another name"
            ),
            TokenFileError::TooMany => write!(
                f,
                "there are {TOKENS_MAX} tokens already; revoke some: logpond token revoke ID"
            ),
            TokenFileError::Unknown(name) => write!(
                f,
                "there is no token with the id or name '{name}'; logpond token list shows all"
            ),
        }
    }
}

impl std::error::Error for TokenFileError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            TokenFileError::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// Reads all tokens; no file is no tokens.
///
/// # Errors
/// When the file cannot be read or understood; the error names it.
pub fn read(path: &Path) -> Result<Tokens, TokenFileError> {
    let bytes = match read_bounded(path, FILE_BYTES_MAX) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Tokens::default()),
        Err(source) => return Err(unusable(path)(source)),
    };
    let in_file = |error| TokenFileError::In {
        path: path.to_owned(),
        error: Box::new(error),
    };
    let text = String::from_utf8(bytes).map_err(|_| {
        in_file(TokenFileError::Syntax {
            line: 1,
            what: "not UTF-8 text".to_owned(),
        })
    })?;
    Tokens::parse(&text).map_err(in_file)
}

/// Changes the tokens: reads, lets `change` work on them, writes, and syncs. Others who change them
/// wait meanwhile, by a lock on the directory.
///
/// # Errors
/// When the file cannot be read or written, or as `change` says; then nothing was changed.
pub fn update<T>(
    path: &Path,
    change: impl FnOnce(&mut Tokens) -> Result<T, TokenFileError>,
) -> Result<T, TokenFileError> {
    // A link leads to the file that is meant; replacing the link would hide it from others.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let directory = File::open(parent).map_err(unusable(path))?;
    directory.lock().map_err(unusable(path))?;
    let mut tokens = read(path)?;
    let outcome = change(&mut tokens)?;
    // Hashes of secrets are no secrets, but nobody else needs them.
    private_file::replace(path, &directory, tokens.render().as_bytes()).map_err(unusable(path))?;
    Ok(outcome)
}

fn unusable(path: &Path) -> impl Fn(io::Error) -> TokenFileError {
    move |source| TokenFileError::Io {
        path: path.to_owned(),
        source,
    }
}
