//! The settings of `logpond serve`: a file, then the environment, then flags, each over the one before.
//!
//! Invariants: every setting is one row of [`TABLE`], which also makes its reference page; a name
//! that is not in the table is an error, as a variable a warning, and never silently ignored; values stay
//! text until [`Settings::resolve`] gives all their meaning at once, so that an error can say where the
//! text came from.

mod access_logs;
mod audit_log;
mod bucket;
mod cluster;
mod error;
mod field_names;
mod file;
mod kafka;
mod listeners;
mod names;
mod proxy;
mod quantity;
mod receiver;
mod reference;
mod secret_file;
mod table;
mod token;
mod timezones;
mod values;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{fmt, time::Duration};

pub use access_logs::access_logs;
pub use audit_log::AuditLevel;
pub use bucket::BUCKET_CACHE;
pub use bucket::{BucketSettings, Local, vendor_variables};
pub use error::SettingsError;
pub use field_names::{flagged_fields, message_fields, time_fields};
pub use file::position;
pub use file::read_file;
pub use kafka::{KafkaSettings, KafkaStart, KafkaTopic};
pub use listeners::{
    EnabledListener, Form, Framing, IntakeAddresses, Listener, Protection, Protocol,
    StreamProtocol, Transport, listeners,
};
pub use logpond_host::host_name::{HostName, host_names};
pub use names::{UnknownVariable, unknown_variables};
pub use proxy::{
    Age, AllowedClient, ClientAuthMode, Name, Networks, ProxySection, ProxyVersion, RouteSection,
    TextValue, WeighedTarget, read_proxies,
};
use quantity::line_bytes;
pub use quantity::{QuantityError, parse_address, parse_age, parse_bytes, parse_room};
pub use receiver::{Receiver, ReceiverForm};
pub use reference::{default_file, reference};
pub use secret_file::{SecretFile, SecretFileError, parse_secret};
use table::CompositeSettings;
pub use table::{Count, Hint, Setting, Settings, TABLE};
pub use timezones::{Named, Network, Timezones, named_zones};
pub use token::{HASH_BYTES, Token, is_id};

use logpond_cluster::Roles;
use logpond_tls::ClientRules;
use values::{Values, optional_file, peers, truth};

/// The longest that anything waits for a server.
pub const SOCKET_WAIT_MAX: Duration = Duration::from_secs(3600);

/// The port for uploads, where none is named.
pub const BULK_PORT: u16 = 7653;

/// The port for other nodes, where none is named.
const GOSSIP_PORT: u16 = 7659;

/// What the names of our environment variables begin with.
const PREFIX: &str = "LOGPOND_";

/// Where a value came from; it is named in every complaint about the value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The table's default.
    Default,
    /// A line of a settings file.
    File {
        /// The file.
        path: PathBuf,
        /// Line of the value, from 1.
        line: usize,
        /// Column of the value in characters, from 1.
        column: usize,
    },
    /// An environment variable.
    Variable(String),
    /// A flag.
    Flag(&'static str),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::File { path, line, column } => {
                write!(f, "{}:{line}:{column}", path.display())
            }
            Origin::Variable(name) => f.write_str(name),
            Origin::Flag(name) => write!(f, "--{name}"),
        }
    }
}

/// A setting's text and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingValue {
    /// Name of a row of [`TABLE`].
    pub name: &'static str,
    /// The value as it was written.
    pub text: String,
    /// Where it was written.
    pub origin: Origin,
}

/// What is done about alerts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AlertSettings {
    /// The file or directory of rules.
    pub rules: Option<PathBuf>,
    /// Who is told.
    pub receivers: Vec<Receiver>,
    /// Where people reach the server, if that is not where it listens.
    pub external_url: Option<String>,
}

/// The operator's word for one start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AtStart {
    /// True if the removal by limits of retention is confirmed, however much it is.
    pub confirms_retention: bool,
    /// True if the clock is right, whatever the records say.
    pub trusts_clock: bool,
}

impl Settings {
    /// Leaves out what a node of these roles has nothing to do with: one that takes no records in listens for none.
    ///
    /// # Errors
    /// When it cannot work alone and is to.
    pub fn limited_to(mut self, roles: Roles) -> Result<Settings, SettingsError> {
        if roles != Roles::ALL && self.gossip.is_none() {
            return Err(SettingsError::Alone { roles });
        }
        self.roles = roles;
        if !roles.ingests {
            self.listeners = IntakeAddresses::default();
            (self.dev_log, self.dev_log_stream) = (None, None);
            (self.journald, self.kmsg, self.rules) = (None, None, None);
            self.audit = false;
            self.kafka = KafkaSettings::default();
        }
        Ok(self)
    }

    /// Whether other machines can reach HTTP, and so must show a token.
    pub fn is_http_guarded(&self) -> bool {
        let on = self.listeners.on();
        let guarded = on.filter(|(listener, _)| listener.protection == Protection::Http);
        let beside = [Some(self.http), self.postgres].into_iter().flatten();
        let mut all = guarded.map(|(_, address)| address).chain(beside);
        all.any(|address| !address.ip().is_loopback()) && !self.insecure
    }
}

/// What the commands need that work on a server's files beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paths {
    /// The data directory; it may not exist yet.
    pub data: PathBuf,
    /// The file of tokens; it may not exist.
    pub tokens: PathBuf,
}

/// Name of the file of tokens in a data directory.
pub const TOKENS_NAME: &str = "tokens.toml";

impl Paths {
    /// Gives these values their meaning; the others may be wrong.
    pub fn resolve(
        given: &[SettingValue],
        environment: &Environment<'_>,
    ) -> Result<Paths, SettingsError> {
        let values = Values(given);
        let data = match values.last("data") {
            Some(given) => PathBuf::from(&given.text),
            None => environment.data_directory().ok_or(SettingsError::NoHome)?,
        };
        let tokens = match values.last("tokens") {
            None => data.join(TOKENS_NAME),
            // The variables LOGPOND_TOKENS and LOGPOND_TOKEN are easily mistaken.
            Some(given) if Token::parse(&given.text).is_some() => {
                return Err(SettingsError::Value {
                    origin: given.origin.clone(),
                    name: "tokens",
                    text: "lp_…".to_owned(),
                    reason: "it is a token; expected the name of the file of tokens".to_owned(),
                });
            }
            Some(given) => PathBuf::from(&given.text),
        };
        Ok(Paths { data, tokens })
    }
}

/// The environment of the process, as far as settings depend on it.
pub struct Environment<'a> {
    /// Reads an environment variable.
    pub variable: &'a dyn Fn(&str) -> Option<OsString>,
    /// Whether the process runs as root.
    pub is_root: bool,
}

impl Environment<'_> {
    fn path(&self, name: &str) -> Option<PathBuf> {
        (self.variable)(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    }

    /// A directory of the XDG base directory specification: its variable, else below `HOME`.
    pub fn xdg(&self, variable: &str, below_home: &str) -> Option<PathBuf> {
        self.path(variable)
            .filter(|path| path.is_absolute())
            .or_else(|| Some(self.path("HOME")?.join(below_home)))
    }

    fn data_directory(&self) -> Option<PathBuf> {
        if let Some(state) = self.path("STATE_DIRECTORY") {
            // systemd joins several directories by a colon; the first is ours.
            let text = state.to_string_lossy();
            return text.split(':').next().map(PathBuf::from);
        }
        if self.is_root {
            return Some(PathBuf::from("/var/lib/logpond"));
        }
        Some(self.xdg("XDG_DATA_HOME", ".local/share")?.join("logpond"))
    }

    /// The settings files that are read when none is named; each may be absent.
    pub fn files(&self) -> Vec<PathBuf> {
        let own = self.xdg("XDG_CONFIG_HOME", ".config");
        std::iter::once(PathBuf::from("/etc"))
            .chain(own)
            .map(|directory| directory.join("logpond/logpond.toml"))
            .collect()
    }
}

/// The row with this name; `_` counts as `-`.
fn row(name: &str) -> Option<&'static Setting> {
    let name = name.replace('_', "-");
    TABLE.iter().find(|row| row.name == name)
}

/// Gathers what files, environment and flags say, weakest first.
///
/// `named` is the file of `--config` or `LOGPOND_CONFIG`: it must exist and replaces the usual
/// ones. `flags` are names of the table with their values.
pub fn gather(
    named: Option<&Path>,
    flags: Vec<(&'static str, String)>,
    environment: &Environment<'_>,
) -> Result<Vec<SettingValue>, SettingsError> {
    let mut given = Vec::new();
    let named = named
        .map(Path::to_path_buf)
        .or_else(|| environment.path("LOGPOND_CONFIG"));
    match named {
        Some(path) => given.extend(read_file(&path)?.unwrap_or_default()),
        None => {
            for path in environment.files() {
                given.extend(file::read_file_if_present(&path)?.unwrap_or_default());
            }
        }
    }
    for row in &TABLE {
        let variable = row.variable();
        if let Some(text) = (environment.variable)(&variable) {
            given.push(SettingValue {
                name: row.name,
                text: text.to_string_lossy().into_owned(),
                origin: Origin::Variable(variable),
            });
        }
    }
    given.extend(flags.into_iter().map(|(name, text)| SettingValue {
        name,
        text,
        origin: Origin::Flag(name),
    }));
    Ok(given)
}

/// The value of each setting that counts, in the order of [`TABLE`].
pub fn effective(given: &[SettingValue]) -> Vec<SettingValue> {
    let values = Values(given);
    TABLE.iter().map(|row| values.given(row.name)).collect()
}

impl Settings {
    /// Gives the values their meaning; of several for one setting the last one counts.
    pub fn resolve(
        given: &[SettingValue],
        environment: &Environment<'_>,
    ) -> Result<Settings, SettingsError> {
        let values = Values(given);
        let Paths { data, tokens } = Paths::resolve(given, environment)?;
        let insecure = values.read("insecure", truth)?;
        let tls = values.certificate_files()?;
        let http = values.address("http", insecure || tls.is_some())?;
        let off = "HTTP cannot be off: the commands need it";
        let http = http.ok_or_else(|| values.refuse("http", off.to_owned()))?;
        let cluster_tls = values.read("cluster-tls", optional_file)?;
        let syslog_clients = ClientRules {
            authorities: values.read("syslog-tls-ca", optional_file)?,
            peers: values.read("syslog-tls-peers", peers)?,
        };
        values.check_clients(&syslog_clients)?;
        let is_known = insecure || !syslog_clients.are_open();
        let listeners = values.listeners(insecure, tls.is_some(), is_known)?;
        let composed = CompositeSettings {
            roles: Roles::ALL,
            bucket: values.bucket(&data)?,
            data,
            http,
            listeners,
            syslog_clients,
            default_listeners: values.default_listeners(),
            kafka: values.kafka()?,
            // Nodes identify each other by their certificates.
            gossip: values.address("gossip", insecure || cluster_tls.is_some())?,
            postgres: values.address("postgres", insecure || tls.is_some())?,
            at_start: values.at_start()?,
            field_names: values.field_names()?,
            alerts: values.alerts()?,
            insecure,
            tokens,
            tls,
            cluster_tls,
        };
        let settings = composed.complete(&values)?;
        // Last, so that a wrong value is named as such.
        values.check_of_nodes(&settings)?;
        Ok(settings)
    }
}

#[cfg(test)]
mod tests;
