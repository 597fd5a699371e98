//! Why certificates cannot be used.

use std::path::PathBuf;
use std::time::Duration;
use std::{error, fmt, io};

/// Why certificates cannot be used: which file, what is wrong, what to do.
#[derive(Debug)]
pub enum TlsError {
    /// A file cannot be read.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file holds nothing of what is expected, or a broken one.
    NotPem {
        /// The file.
        path: PathBuf,
        /// What is expected in it.
        expected: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// A certificate or key that is not supported.
    Unusable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: rustls::Error,
    },
    /// The key is not the certificate's.
    Mismatch {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
    },
    /// The certificate is over.
    Expired {
        /// The file.
        path: PathBuf,
        /// Its last moment, since 1970.
        not_after: Duration,
    },
    /// The certificate does not hold yet.
    NotYetValid {
        /// The file.
        path: PathBuf,
        /// Its first moment, since 1970.
        not_before: Duration,
    },
    /// A good certificate that is not one for what it is to be used for.
    NotForThis {
        /// The certificate's file.
        path: PathBuf,
        /// What is wrong, said of the certificate, and what to do.
        reason: String,
    },
    /// A revocation list that cannot be used, or is over.
    BadRevocations {
        /// The file.
        path: PathBuf,
        /// What is wrong, said of the list, and what to do.
        reason: String,
    },
    /// The library refuses the settings: a defect of this program.
    Library(rustls::Error),
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TlsError::Unreadable { path, .. } => write!(f, "{} cannot be read", path.display()),
            TlsError::NotPem {
                path,
                expected,
                reason,
            } => write!(
                f,
                "{} holds no {expected} in PEM: {reason}; expected lines from '-----BEGIN …' to \
                 '-----END …'",
                path.display()
            ),
            TlsError::Unusable { path, .. } => write!(
                f,
                "{} cannot be used; keys are ECDSA (P-256, P-384), Ed25519 or RSA from 2048 bits, \
                 without a password, and certificates X.509 version 3",
                path.display()
            ),
            TlsError::Mismatch { certificate, key } => write!(
                f,
                "the key in {} is not that of the certificate in {}; name the two that were made \
                 together, the server's own certificate first in its file",
                key.display(),
                certificate.display()
            ),
            TlsError::Expired { path, not_after } => write!(
                f,
                "the certificate in {} expired at {}; put a new one in its place",
                path.display(),
                time_text(*not_after)
            ),
            TlsError::NotYetValid { path, not_before } => write!(
                f,
                "the certificate in {} is valid only from {}; is this machine's clock right?",
                path.display(),
                time_text(*not_before)
            ),
            TlsError::NotForThis { path, reason } => {
                write!(f, "the certificate in {} {reason}", path.display())
            }
            TlsError::BadRevocations { path, reason } => {
                write!(f, "the revocation list in {} {reason}", path.display())
            }
            TlsError::Library(_) => f.write_str("the TLS library refuses the settings"),
        }
    }
}

impl error::Error for TlsError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            TlsError::Unreadable { source, .. } => Some(source),
            TlsError::Unusable { source, .. } | TlsError::Library(source) => Some(source),
            _ => None,
        }
    }
}

/// A moment since 1970 as RFC 3339 in UTC.
pub fn time_text(since_1970: Duration) -> String {
    let seconds = i64::try_from(since_1970.as_secs()).unwrap_or(i64::MAX);
    jiff::Timestamp::from_second(seconds)
        .map_or_else(|_| format!("@{seconds}"), |time| time.to_string())
}
