//! The texts of settings, read as values.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use logpond_cluster::seeds::Seed;
use logpond_host::host_name::is_name;
use logpond_host::memory::BUDGET_BYTES_MIN;
use logpond_record::limits::LINE_BYTES_DEFAULT;
use logpond_search::size::Size;
use logpond_tls::{CertificateFiles, ClientRules, Peer};

use super::listeners::{self, IntakeAddresses, Protection, record_listeners};
use super::receiver::{Receiver, ReceiverForm};
use super::{
    AlertSettings, AtStart, GOSSIP_PORT, Origin, QuantityError, SOCKET_WAIT_MAX, SettingValue,
    SettingsError, parse_address, parse_age, parse_room, row,
};

/// The most copies of a record; each further one costs as much as the first.
const COPIES_MAX: usize = 7;

/// The shortest period of a scrub: below that it would read without a rest.
const SCRUB_TIME_MIN: Duration = Duration::from_secs(1);

pub(super) fn truth(text: &str) -> Result<bool, String> {
    match text {
        "true" | "1" | "yes" => Ok(true),
        "false" | "0" | "no" | "" => Ok(false),
        _ => Err("expected true or false".to_string()),
    }
}

pub(super) fn off_or<T>(
    text: &str,
    parse: impl Fn(&str) -> Result<T, QuantityError>,
) -> Result<Option<T>, String> {
    if text == "off" {
        return Ok(None);
    }
    parse(text).map(Some).map_err(|e| e.to_string())
}

/// The same of a limit of what is kept: none of zero, which would keep nothing.
pub(super) fn off_or_some<T: PartialEq + Default>(
    text: &str,
    parse: impl Fn(&str) -> Result<T, QuantityError>,
) -> Result<Option<T>, String> {
    match off_or(text, parse)? {
        Some(limit) if limit == T::default() => {
            Err("it would keep nothing; say off to keep everything".to_owned())
        }
        limit => Ok(limit),
    }
}

/// A file or a directory.
pub(super) fn optional_file(text: &str) -> Result<Option<PathBuf>, String> {
    Ok((text != "off").then(|| PathBuf::from(text)))
}

/// The address of a node.
pub(super) fn node(text: &str) -> Result<Option<SocketAddr>, String> {
    off_or(text, |text| parse_address(text, GOSSIP_PORT))
}

/// Addresses and names with commas between them.
pub(super) fn seeds(text: &str) -> Result<Vec<Seed<SocketAddr>>, String> {
    match text {
        "off" => Ok(Vec::new()),
        text => text.split(',').map(|text| seed(text.trim())).collect(),
    }
}

fn seed(text: &str) -> Result<Seed<SocketAddr>, String> {
    if let Ok(address) = parse_address(text, GOSSIP_PORT) {
        return Ok(Seed::Address(address));
    }
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) => (host, port.parse().ok()),
        None => (text, Some(GOSSIP_PORT)),
    };
    let name = host.strip_suffix('.').unwrap_or(host);
    // A number at the end is one of an address that lacks something.
    let last = name.rsplit('.').next().unwrap_or_default();
    let is_name = is_name(name) && !last.bytes().all(|byte| byte.is_ascii_digit());
    match port {
        Some(port) if is_name => Ok(Seed::Name {
            host: host.into(),
            port,
        }),
        _ => Err("expected an address or a name, such as 10.0.0.7, 10.0.0.7:7659 or node-1.example.org:7659".to_owned()),
    }
}

/// Fingerprints and names with commas between them.
pub(super) fn peers(text: &str) -> Result<Vec<Peer>, String> {
    match text {
        "off" => Ok(Vec::new()),
        text => text
            .split(',')
            .map(|peer| Peer::parse(peer.trim()))
            .collect(),
    }
}

/// An address for links, without a slash at its end.
fn external_url(text: &str) -> Result<Option<String>, String> {
    let text = text.trim_end_matches('/');
    let is_web = text.starts_with("http://") || text.starts_with("https://");
    match text {
        "off" | "" => Ok(None),
        _ if is_web && !text.contains(char::is_whitespace) => Ok(Some(text.to_owned())),
        _ => Err("expected http://HOST:PORT/PATH or https://HOST/PATH".to_owned()),
    }
}

pub(super) fn kept_time(text: &str) -> Result<Option<Duration>, String> {
    match off_or(text, parse_age)? {
        Some(time) if time > SOCKET_WAIT_MAX => {
            let most = SOCKET_WAIT_MAX.as_secs();
            Err(format!("nothing is kept longer than {most} s"))
        }
        time => Ok(time),
    }
}

pub(super) fn scrub_time(text: &str) -> Result<Option<Duration>, String> {
    match off_or(text, parse_age)? {
        Some(time) if time < SCRUB_TIME_MIN => {
            Err("nothing is read more often than once a second".to_owned())
        }
        time => Ok(time),
    }
}

/// The smallest share of memory: what is less is a mistake.
const MEMORY_PERCENT_MIN: f64 = 1.0;

pub(super) fn memory(text: &str) -> Result<Size, String> {
    match parse_room(text).map_err(|error| error.to_string())? {
        Size::Bytes(bytes) if bytes < BUDGET_BYTES_MIN => Err(format!(
            "expected at least {} MiB: less has no room for a query",
            BUDGET_BYTES_MIN >> 20
        )),
        Size::Percent(percent) if percent < MEMORY_PERCENT_MIN => {
            Err(format!("expected at least {MEMORY_PERCENT_MIN}%"))
        }
        memory => Ok(memory),
    }
}

pub(super) fn copies(text: &str) -> Result<usize, String> {
    let copies = text.parse().ok();
    copies
        .filter(|copies| (1..=COPIES_MAX).contains(copies))
        .ok_or_else(|| format!("expected a number from 1 to {COPIES_MAX}"))
}

pub(super) fn age(text: &str) -> Result<Duration, String> {
    parse_age(text).map_err(|error| error.to_string())
}

/// A name of at most so many letters, digits, `-`, `_` and `.`; empty for `off`.
pub(super) fn word(text: &str, bytes_max: usize) -> Result<String, String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    match text {
        "off" => Ok(String::new()),
        _ if (1..=bytes_max).contains(&text.len()) && text.chars().all(is_part) => {
            Ok(text.to_owned())
        }
        _ => Err(format!(
            "expected up to {bytes_max} letters, digits, '-', '_' and '.'"
        )),
    }
}

pub(super) fn room(text: &str) -> Result<Size, String> {
    parse_room(text).map_err(|error| error.to_string())
}

// The table's default is text; the lower crates' constant must mean the same.
const _: () = assert!(LINE_BYTES_DEFAULT == 1 << 20);

/// Values by name.
pub(super) struct Values<'a>(pub(super) &'a [SettingValue]);

impl Values<'_> {
    pub(super) fn last(&self, name: &str) -> Option<&SettingValue> {
        self.0.iter().rev().find(|given| given.name == name)
    }

    pub(super) fn given(&self, name: &'static str) -> SettingValue {
        let default = || SettingValue {
            name,
            text: row(name).map_or("", |row| row.default).to_string(),
            origin: Origin::Default,
        };
        self.last(name).cloned().unwrap_or_else(default)
    }

    pub(super) fn refuse(&self, name: &'static str, reason: String) -> SettingsError {
        let given = self.given(name);
        SettingsError::Value {
            origin: given.origin,
            name,
            text: given.text,
            reason,
        }
    }

    pub(super) fn read<T>(
        &self,
        name: &'static str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Result<T, SettingsError> {
        parse(self.given(name).text.trim()).map_err(|reason| self.refuse(name, reason))
    }

    /// Certificate and key of HTTP: both or none.
    pub(super) fn certificate_files(&self) -> Result<Option<CertificateFiles>, SettingsError> {
        let file = |name| {
            let given = self.given(name);
            let is_on = !matches!(given.text.trim(), "off" | "");
            is_on.then(|| PathBuf::from(given.text))
        };
        match (file("tls-certificate"), file("tls-key")) {
            (Some(certificate), Some(key)) => Ok(Some(CertificateFiles { certificate, key })),
            (None, None) => Ok(None),
            (Some(_), None) => Err(self.refuse(
                "tls-certificate",
                "its key is missing: name it by tls-key".to_string(),
            )),
            (None, Some(_)) => Err(self.refuse(
                "tls-key",
                "its certificate is missing: name it by tls-certificate".to_string(),
            )),
        }
    }

    /// An address for what is sent over TLS, which needs a certificate.
    pub(super) fn encrypted(
        &self,
        name: &'static str,
        has_certificate: bool,
        may_be_open: bool,
    ) -> Result<Option<SocketAddr>, SettingsError> {
        let address = self.address(name, may_be_open)?;
        if address.is_some() && !has_certificate {
            let reason = "it has no certificate: name one by tls-certificate and tls-key";
            return Err(self.refuse(name, reason.to_string()));
        }
        Ok(address)
    }

    /// Refuses names of clients that nobody vouches for.
    pub(super) fn check_clients(&self, clients: &ClientRules) -> Result<(), SettingsError> {
        let mut peers = clients.peers.iter();
        let are_names_signed =
            clients.authorities.is_some() || peers.all(|peer| matches!(peer, Peer::Fingerprint(_)));
        if are_names_signed {
            Ok(())
        } else {
            let reason = "names are believed only of certificates that somebody signed: name \
                              the authority by syslog-tls-ca";
            Err(self.refuse("syslog-tls-peers", reason.to_string()))
        }
    }

    pub(super) fn at_start(&self) -> Result<AtStart, SettingsError> {
        Ok(AtStart {
            confirms_retention: self.read("confirm-retention", truth)?,
            trusts_clock: self.read("trust-clock", truth)?,
        })
    }

    pub(super) fn alerts(&self) -> Result<AlertSettings, SettingsError> {
        Ok(AlertSettings {
            rules: self.read("alert-rules", optional_file)?,
            receivers: self.receivers()?,
            external_url: self.read("external-url", external_url)?,
        })
    }

    /// The receivers of alerts. Their addresses may hold secrets, which no error shows.
    pub(super) fn receivers(&self) -> Result<Vec<Receiver>, SettingsError> {
        let forms = [
            ("alertmanager", ReceiverForm::Alertmanager),
            ("alert-webhook", ReceiverForm::Webhook),
        ];
        let mut all = Vec::new();
        for (name, form) in forms {
            let given = self.given(name);
            let receivers = Receiver::parse_all(form, given.text.trim());
            all.extend(receivers.map_err(|reason| SettingsError::Value {
                origin: given.origin,
                name,
                text: "…".to_owned(),
                reason,
            })?);
        }
        if all.is_empty() || !matches!(self.given("alert-rules").text.trim(), "off" | "") {
            Ok(all)
        } else {
            let reason = "somebody is to be told of alerts, and there are no rules for any: name \
                              their file or directory";
            Err(self.refuse("alert-rules", reason.to_string()))
        }
    }

    /// The addresses of listeners for records. `is_known` is true if clients over TLS may be anywhere.
    pub(super) fn listeners(
        &self,
        insecure: bool,
        has_certificate: bool,
        is_known: bool,
    ) -> Result<IntakeAddresses, SettingsError> {
        let mut addresses = IntakeAddresses::default();
        for listener in record_listeners() {
            let name = listener.name;
            let address = match listener.protection {
                Protection::Open | Protection::Nodes => self.address(name, insecure),
                Protection::Http => self.address(name, insecure || has_certificate),
                Protection::ClientCertificates => self.encrypted(name, has_certificate, is_known),
            };
            addresses.set(listener.intake, address?);
        }
        Ok(addresses)
    }

    /// Names of the listeners that nothing is said of.
    pub(super) fn default_listeners(&self) -> Vec<&'static str> {
        let names = listeners::listeners().map(|listener| listener.name);
        names.filter(|name| self.last(name).is_none()).collect()
    }

    pub(super) fn address(
        &self,
        name: &'static str,
        insecure: bool,
    ) -> Result<Option<SocketAddr>, SettingsError> {
        let port = listeners::port_of(name);
        let address = self.read(name, |text| off_or(text, |t| parse_address(t, port)))?;
        match address {
            Some(address) if !address.ip().is_loopback() && !insecure => Err(SettingsError::Open {
                origin: self.given(name).origin,
                name,
                address,
            }),
            address => Ok(address),
        }
    }
}
