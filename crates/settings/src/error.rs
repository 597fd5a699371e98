//! Why settings cannot be used, in words that say what to do.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use logpond_cluster::Roles;

use super::{Origin, TABLE};

/// Why settings cannot be used.
#[derive(Debug)]
pub enum SettingsError {
    /// A settings file cannot be read.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A settings file is not TOML.
    Syntax {
        /// Where the file stops making sense.
        origin: Origin,
        /// What was expected.
        message: String,
    },
    /// A name that no setting has.
    Unknown {
        /// Where it stands.
        origin: Origin,
        /// The name.
        name: String,
        /// The setting that was probably meant.
        meant: Option<&'static str>,
    },
    /// A value that its setting cannot take.
    Value {
        /// Where it stands.
        origin: Origin,
        /// The setting.
        name: &'static str,
        /// The value.
        text: String,
        /// What is wrong, and what would be right.
        reason: String,
    },
    /// An address that other machines can reach.
    Open {
        /// Where it stands.
        origin: Origin,
        /// The setting.
        name: &'static str,
        /// The address.
        address: SocketAddr,
    },
    /// A node that is to be one of several, and does not say where the others reach it.
    Alone {
        /// What it is to do.
        roles: Roles,
    },
    /// There is no usual place for the data: neither `HOME` nor `STATE_DIRECTORY` is set.
    NoHome,
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingsError::Unreadable { path, .. } => {
                write!(f, "settings file {} cannot be read", path.display())
            }
            SettingsError::Syntax { origin, message } => write!(f, "{origin}: {message}"),
            SettingsError::Unknown {
                origin,
                name,
                meant,
            } => {
                write!(f, "{origin}: there is no setting '{name}'")?;
                match meant {
                    Some(meant) => write!(f, ", did you mean '{meant}'?"),
                    None => {
                        let names: Vec<&str> = TABLE.iter().map(|s| s.name).collect();
                        write!(f, "; settings are {}", names.join(", "))
                    }
                }
            }
            SettingsError::Value {
                origin,
                name,
                text,
                reason,
            } => write!(f, "{origin}: '{text}' is no value for {name}: {reason}"),
            SettingsError::Open {
                origin,
                name,
                address,
            } => {
                write!(
                    f,
                    "{origin}: other machines could reach {name} at {address}, and nothing there \
                     is encrypted or authenticated. Either stay on this machine: --{name} \
                     127.0.0.1:{}; or ",
                    address.port()
                )?;
                f.write_str(match *name {
                    "gossip" => {
                        "give it a certificate of its cluster: logpond cluster ca create --out CA; \
                         logpond cluster certificate --ca CA --name NAME --address ADDRESS --out \
                         DIR; --cluster-tls DIR"
                    }
                    "http" | "postgres" => {
                        "give it a certificate and a token: logpond cluster ca create --out CA; \
                         logpond cluster certificate --ca CA --name NAME --address IP,DNS --out \
                         DIR; logpond token create --role admin; and then --tls-certificate \
                         DIR/node.pem --tls-key DIR/node.key"
                    }
                    _ => "take the lines in by HTTP, which can be encrypted: logpond forward",
                })?;
                write!(
                    f,
                    "; or, in a network you trust: --{name} {address} --insecure"
                )
            }
            SettingsError::Alone { roles } => write!(
                f,
                "`logpond {roles}` is one node of several: say where it talks with the others by \
                 --gossip ADDR, and whom it asks first for them by --join ADDR; `logpond serve` \
                 works alone"
            ),
            SettingsError::NoHome => f.write_str(
                "there is no place for the data: neither HOME nor STATE_DIRECTORY is set; \
                 say it by --data DIR",
            ),
        }
    }
}

impl std::error::Error for SettingsError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            SettingsError::Unreadable { source, .. } => Some(source),
            _ => None,
        }
    }
}
