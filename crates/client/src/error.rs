//! What can go wrong between a command and a server.

use std::fmt;
use std::path::PathBuf;

use serde::Deserialize;

use super::Address;
use super::explain::{explain, tls_error_of_request};
use logpond_tls::TlsError;

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
    /// The authorities to trust cannot be read.
    Authorities(TlsError),
    /// The system trusts no authority.
    NoAuthorities,
    /// The server could not be believed, or does not believe this client.
    Tls {
        /// The server.
        address: String,
        /// What is wrong.
        reason: String,
        /// What to do about it.
        hint: Option<&'static str>,
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

/// The most characters of a refusal that is no object of a Logpond server.
const FOREIGN_CHARS_MAX: usize = 200;

impl ClientError {
    /// True if the same request may be taken later although this answer is no failure: the answer is of something
    /// else than a Logpond server, such as a load balancer, or about the token.
    pub fn may_pass(&self) -> bool {
        match self {
            ClientError::Nonsense(_) => true,
            // Too long for whatever stands before a server, too.
            ClientError::Refused { status: 413, .. } => false,
            ClientError::Refused { status, code, .. } => {
                code.is_empty() || matches!(status, 401 | 403 | 404 | 405)
            }
            _ => false,
        }
    }

    /// True if a Logpond server has answered: its refusals have a code.
    pub fn is_of_logpond(&self) -> bool {
        matches!(self, ClientError::Refused { code, .. } if !code.is_empty())
    }

    /// Whether there is an answer, only not a complete one.
    pub fn is_incomplete(&self) -> bool {
        match self {
            ClientError::Broken(_) => true,
            ClientError::Refused { code, .. } => code == "incomplete",
            _ => false,
        }
    }

    /// The error of a request that got no answer.
    pub fn no_answer(address: &Address, source: ureq::Error) -> ClientError {
        let address = address.to_string();
        match tls_error_of_request(&source) {
            Some(error) => ClientError::Tls {
                address,
                reason: explain(error),
                hint: hint(error),
            },
            None => ClientError::Unreachable {
                address,
                source: Box::new(source),
            },
        }
    }

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
                message: foreign_message(status, body),
                span: None,
                hint: None,
            },
        }
    }
}

/// The refusal in a body that is not ours, on one line. Of a page only the status is of use.
fn foreign_message(status: u16, body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let text = text.trim();
    if text.is_empty() || text.starts_with('<') {
        return match status {
            300..=399 | 404 | 405 => {
                format!("it answers with status {status}; is this a Logpond server?")
            }
            _ => String::new(),
        };
    }
    let line = text.lines().next().unwrap_or_default();
    line.chars().take(FOREIGN_CHARS_MAX).collect()
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
            ClientError::Authorities(error) => {
                write!(f, "the authorities to trust (--ca-file): {error}")
            }
            ClientError::NoAuthorities => f.write_str(
                "this system has no list of trusted authorities (ca-certificates); name a file \
                 with those to trust by --ca-file or LOGPOND_CA_FILE",
            ),
            ClientError::Tls {
                address,
                reason,
                hint,
            } => {
                write!(f, "no safe connection to {address}: {reason}")?;
                match hint {
                    Some(hint) => write!(f, "; {hint}"),
                    None => Ok(()),
                }
            }
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

/// What the user can do about a handshake that failed, where it is this end's to do.
fn hint(error: &rustls::Error) -> Option<&'static str> {
    use rustls::CertificateError::{BadSignature, UnknownIssuer};
    match error {
        rustls::Error::InvalidCertificate(UnknownIssuer | BadSignature) => {
            Some("name the file of its authority by --ca-file or LOGPOND_CA_FILE")
        }
        rustls::Error::InvalidMessage(_) => Some("ask at http:// instead of https://"),
        _ => None,
    }
}

/// A failed request in words: of TLS, in ours.
pub fn describe(error: &ureq::Error) -> String {
    tls_error_of_request(error).map_or_else(|| error.to_string(), explain)
}

impl std::error::Error for ClientError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ClientError::Unreachable { source, .. } => Some(source.as_ref()),
            ClientError::Authorities(error) => error.source(),
            ClientError::TokenFile { source, .. } | ClientError::Broken(Some(source)) => {
                Some(source)
            }
            ClientError::Nonsense(source) => Some(source.as_ref()),
            _ => None,
        }
    }
}
