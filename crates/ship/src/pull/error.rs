//! Why an import from another system ended early.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use logpond_render::quantity;

/// Why an import from another system ended before its end.
#[derive(Debug)]
pub enum PullError {
    /// The file with the position cannot be used.
    State {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Another process uses the file with the position.
    StateInUse(PathBuf),
    /// The file with the position is of another import.
    OtherImport {
        /// The file.
        path: PathBuf,
        /// The import of the file.
        import: String,
    },
    /// A server refuses a request, and would refuse it again.
    Refused {
        /// The server.
        address: String,
        /// The HTTP status.
        status: u16,
        /// The reason that the server gives.
        message: String,
        /// The remedy.
        hint: Option<&'static str>,
    },
    /// No server answered for too long.
    GaveUp {
        /// How long.
        after: Duration,
        /// The last failure.
        last: String,
    },
    /// An answer cannot be read.
    Answer {
        /// The server.
        address: String,
        /// The reason.
        reason: String,
    },
    /// More records than can be read at once have the same time.
    SameTime {
        /// The records with the same time.
        what: String,
        /// The remedy.
        hint: &'static str,
    },
    /// A server cannot be used as a source.
    Source {
        /// The server.
        address: String,
        /// The reason, with the remedy.
        reason: String,
    },
    /// The process was told to stop.
    Stopped,
}

impl fmt::Display for PullError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PullError::State { path, .. } => write!(
                f,
                "the file with the position {} cannot be used; name another by --state",
                path.display()
            ),
            PullError::StateInUse(path) => write!(
                f,
                "another 'logpond import' uses {}; wait for it, or give this one its own by --state",
                path.display()
            ),
            PullError::OtherImport { path, import } => write!(
                f,
                "{} is of another import ({import}); name another file by --state",
                path.display()
            ),
            PullError::Refused {
                address,
                status,
                message,
                hint,
            } => {
                write!(f, "{address} refuses with status {status}: {message}")?;
                hint.map_or(Ok(()), |hint| write!(f, "; {hint}"))
            }
            PullError::GaveUp { after, last } => {
                let span = quantity::span(*after);
                write!(
                    f,
                    "gave up after {span}: {last}; the same command continues later"
                )
            }
            PullError::Answer { address, reason } => {
                write!(f, "the answer of {address} cannot be read: {reason}")
            }
            PullError::SameTime { what, hint } => write!(f, "{what}; {hint}"),
            PullError::Source { address, reason } => write!(f, "{address}: {reason}"),
            PullError::Stopped => f.write_str("stopped before the end; the same command continues"),
        }
    }
}

impl std::error::Error for PullError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            PullError::State { source, .. } => Some(source),
            _ => None,
        }
    }
}
