//! Why a server does not start, or did not end in order.

use std::path::PathBuf;
use std::{error, fmt, io};

use logpond_segment::journal::RecoverError;

use logpond_engine::alert::AlertRulesError;
use logpond_engine::ingest::EndError;
use logpond_engine::ingest::rules::RulesError;
use logpond_engine::saved::SavedError;
use logpond_engine::store::{BucketStartError, StartError};
use logpond_host::memory::AddressSpaceError;
use logpond_host::timezone::TimezoneError;
use logpond_listen::net::BindError;
use logpond_listen::net::local::{AuditError, PathBindError};
use logpond_listen::net::tls::TlsError;
use logpond_listen::tokens::TokenFileError;
use logpond_node::cluster::{IdentityError, RegistryError};
use logpond_settings::SecretFileError;

/// Why a server does not start, or did not end in order.
#[derive(Debug)]
pub enum ServeError {
    /// The limit of address space leaves too little.
    AddressSpace(AddressSpaceError),
    /// The data directory cannot be used; the text names it.
    Data(io::Error),
    /// The node has no name.
    Identity(IdentityError),
    /// What the node has heard of others cannot be read.
    Registry(RegistryError),
    /// An address cannot be bound.
    Bind(BindError),
    /// A socket in the file system cannot be bound.
    BindPath(PathBindError),
    /// The kernel's audit records cannot be listened to.
    Audit(AuditError),
    /// The certificate cannot be used.
    Tls(TlsError),
    /// Other machines could reach HTTP, and nobody has a token.
    NoToken {
        /// The file of tokens.
        tokens: PathBuf,
    },
    /// What clients of the Forward protocol must know cannot be read.
    Security(SecretFileError),
    /// A time zone cannot be read.
    Timezone(TimezoneError),
    /// The file of rules cannot be used.
    Rules(RulesError),
    /// The saved queries cannot be read.
    Saved(SavedError),
    /// The alert rules cannot be used.
    AlertRules(AlertRulesError),
    /// The directory for the state of alerts, or a thread for them, cannot be had.
    Alerts(io::Error),
    /// The file of tokens cannot be read.
    Tokens(TokenFileError),
    /// The journal of an earlier life cannot be read.
    Recover(RecoverError),
    /// Topics of Kafka cannot be read.
    Kafka(Box<dyn error::Error + Send + Sync>),
    /// This build answers no SQL.
    NoSql,
    /// The bucket cannot be used.
    Bucket(BucketStartError),
    /// The system gives no thread.
    Thread(io::Error),
    /// The async runtime cannot start.
    Runtime(io::Error),
    /// The ready file cannot be written.
    ReadyFile {
        /// Where it should be.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// The journal was not closed in order.
    End(EndError),
    /// A thread panicked: a defect of this program.
    Panic,
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServeError::AddressSpace(e) => write!(f, "{e}"),
            ServeError::Data(_) => {
                f.write_str(
                    "the data directory cannot be used; mend what is named, or choose another directory with --data DIR",
                )
            }
            ServeError::Identity(e) => write!(f, "{e}"),
            ServeError::Registry(e) => write!(f, "{e}"),
            ServeError::Bind(e) => write!(f, "{e}"),
            ServeError::BindPath(e) => write!(f, "{e}"),
            ServeError::Audit(e) => write!(f, "{e}"),
            ServeError::Tokens(e) => write!(f, "{e}"),
            ServeError::Kafka(e) => write!(f, "{e}"),
            ServeError::NoSql => f.write_str(
                "--postgres needs SQL, which this program was built without: packages of releases \
                 have it; from source: cargo build --release -p logpond --features sql",
            ),
            ServeError::Bucket(e) => write!(f, "{e}"),
            ServeError::Tls(e) => write!(f, "{e}"),
            ServeError::Security(e) => write!(f, "{e}"),
            ServeError::Timezone(e) => write!(f, "{e}"),
            ServeError::Rules(e) => write!(f, "{e}"),
            ServeError::Saved(e) => write!(f, "{e}"),
            ServeError::AlertRules(e) => write!(f, "{e}"),
            ServeError::Alerts(_) => f.write_str("alert rules cannot be evaluated"),
            ServeError::NoToken { tokens } => write!(
                f,
                "other machines could reach http, and {} has no token that can be used; make one: \
                 logpond token create --role admin --tokens {0}",
                tokens.display()
            ),
            ServeError::Recover(_) => f.write_str("the journal cannot be read"),
            ServeError::Thread(_) => f.write_str("the system gives no thread"),
            ServeError::Runtime(_) => f.write_str("the async runtime cannot start"),
            ServeError::ReadyFile { path, .. } => {
                write!(
                    f,
                    "the ready file {} cannot be written (--ready-file)",
                    path.display()
                )
            }
            ServeError::End(e) => write!(f, "{e}"),
            ServeError::Panic => f.write_str("a thread panicked; please report it"),
        }
    }
}

impl error::Error for ServeError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            ServeError::Data(source)
            | ServeError::Alerts(source)
            | ServeError::Thread(source)
            | ServeError::Runtime(source)
            | ServeError::ReadyFile { source, .. } => Some(source),
            ServeError::Recover(source) => Some(source),
            ServeError::Identity(e) => e.source(),
            ServeError::Registry(e) => e.source(),
            ServeError::Bind(e) => e.source(),
            ServeError::BindPath(e) => e.source(),
            ServeError::Audit(e) => e.source(),
            ServeError::Tokens(e) => e.source(),
            ServeError::Kafka(e) => e.source(),
            ServeError::Bucket(e) => e.source(),
            ServeError::Rules(e) => e.source(),
            ServeError::Saved(e) => e.source(),
            ServeError::AlertRules(e) => e.source(),
            ServeError::Tls(e) => e.source(),
            ServeError::End(e) => e.source(),
            ServeError::AddressSpace(_)
            | ServeError::NoToken { .. }
            | ServeError::NoSql
            | ServeError::Security(_)
            | ServeError::Timezone(_)
            | ServeError::Panic => None,
        }
    }
}

impl From<StartError> for ServeError {
    fn from(error: StartError) -> ServeError {
        match error {
            StartError::Thread(error) => ServeError::Thread(error),
            StartError::Bucket(error) => ServeError::Bucket(error),
        }
    }
}
