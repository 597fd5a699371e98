//! What can go wrong between a command and a server.

use std::fmt;
use std::path::PathBuf;

use serde::Deserialize;

/// Why a question got no answer.
#[derive(Debug)]
pub enum ClientError {
    /// The address cannot be used.
    Address {
        /// What was given.
        text: String,
        /// What would be right.
        reason: &'static str,
    },
    /// A token cannot be read.
    TokenFile {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// What should be a token is none.
    NoToken {
        /// The file or the variable.
        origin: String,
    },
    /// No answer came.
    Unreachable {
        /// The server.
        address: String,
        /// What failed.
        source: Box<ureq::Error>,
    },
    /// The server said no.
    Refused {
        /// The HTTP status.
        status: u16,
        /// The reason's stable name, such as `query.syntax`; empty if the server gave none.
        code: String,
        /// The reason.
        message: String,
        /// The characters of the filter it is about, from and to.
        span: Option<(usize, usize)>,
        /// What to do about it.
        hint: Option<String>,
    },
    /// The answer broke off before its end.
    Broken(Option<std::io::Error>),
    /// A line of the answer is longer than any that a server makes.
    LineTooLong,
    /// A line of the answer makes no sense.
    Nonsense(Box<dyn std::error::Error + Send + Sync>),
}

impl ClientError {
    /// The refusal in the body of an answer, which may be anything.
    pub fn refused(status: u16, body: &[u8]) -> ClientError {
        #[derive(Deserialize)]
        struct Body {
            error: Details,
        }
        #[derive(Deserialize)]
        struct Details {
            #[serde(default)]
            code: String,
            message: String,
            start: Option<usize>,
            end: Option<usize>,
            hint: Option<String>,
        }
        match serde_json::from_slice::<Body>(body) {
            Ok(Body { error }) => ClientError::Refused {
                status,
                code: error.code,
                message: error.message,
                span: error.start.zip(error.end),
                hint: error.hint,
            },
            Err(_) => ClientError::Refused {
                status,
                code: String::new(),
                message: String::from_utf8_lossy(body).trim().to_string(),
                span: None,
                hint: None,
            },
        }
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientError::Address { text, reason } => {
                write!(f, "'{text}' is no address of a server: {reason}")
            }
            ClientError::TokenFile { path, .. } => {
                write!(f, "the token cannot be read from {}", path.display())
            }
            ClientError::NoToken { origin } => write!(
                f,
                "{origin} holds no token: expected one word, as 'logpond token create' prints it"
            ),
            ClientError::Unreachable { address, .. } => write!(
                f,
                "no server answers at {address}; start one by 'logpond serve', or name another \
                 by --addr or LOGPOND_ADDR"
            ),
            ClientError::Refused {
                status,
                message,
                hint,
                ..
            } => {
                match message.as_str() {
                    "" => write!(f, "the server answered with status {status}")?,
                    message => f.write_str(message)?,
                }
                match hint {
                    Some(hint) => write!(f, "; {hint}"),
                    None => Ok(()),
                }
            }
            ClientError::Broken(_) => f.write_str("the answer broke off before its end"),
            ClientError::LineTooLong => f.write_str("a line of the answer is too long"),
            ClientError::Nonsense(_) => {
                f.write_str("the answer makes no sense; is this a Logpond server?")
            }
        }
    }
}

impl std::error::Error for ClientError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ClientError::Unreachable { source, .. } => Some(source.as_ref()),
            ClientError::TokenFile { source, .. } | ClientError::Broken(Some(source)) => {
                Some(source)
            }
            ClientError::Nonsense(source) => Some(source.as_ref()),
            _ => None,
        }
    }
}
