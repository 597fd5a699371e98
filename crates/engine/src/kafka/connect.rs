//! How brokers are talked to.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use krafka::Kafka;
use krafka::auth::{AuthConfig, TlsConfig};
use toml::de::{DeTable, DeValue};

use super::reader::LOOK_INTERVAL;
use logpond_settings::{SecretFile, SecretFileError};

/// The longest answer that is taken from a broker. Above the greatest fetch: a broker sends one batch of
/// messages whole, whatever was asked for.
const RESPONSE_BYTES_MAX: usize = 128 << 20;

/// How long a connection may take.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);

/// How long an answer may take.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(30);

/// The file that says how brokers are talked to.
const FILE: SecretFile = SecretFile {
    flag: "--kafka-security",
    remedy: "",
};

/// What a file says. It has no `Debug` that would show secrets.
#[derive(Clone, Default)]
pub(super) struct Security {
    /// Whether connections are encrypted.
    tls: bool,
    ca: Option<String>,
    certificate: Option<String>,
    key: Option<String>,
    sasl: Option<Sasl>,
}

#[derive(Clone)]
struct Sasl {
    mechanism: Mechanism,
    user: String,
    password: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mechanism {
    Plain,
    ScramSha256,
    ScramSha512,
}

impl Security {
    /// Reads the file; without one connections are plain.
    ///
    /// # Errors
    /// When it cannot be used. The message quotes nothing of it.
    pub(super) fn read(path: Option<&Path>) -> Result<Security, SecretFileError> {
        let Some(path) = path else {
            return Ok(Security::default());
        };
        let security = FILE.read(path, Security::parse)?;
        let files = [&security.ca, &security.certificate, &security.key];
        for file in files.into_iter().flatten() {
            File::open(file).map_err(|error| FILE.refuse(path, format!("{file}: {error}")))?;
        }
        Ok(security)
    }

    fn parse(table: DeTable<'_>) -> Result<Security, &'static str> {
        let mut security = Security::default();
        for (name, value) in table {
            match (&**name.get_ref(), value.into_inner()) {
                ("tls", DeValue::Boolean(tls)) => security.tls = tls,
                ("ca", DeValue::String(file)) => security.ca = Some(file.into_owned()),
                ("certificate", DeValue::String(file)) => {
                    security.certificate = Some(file.into_owned());
                }
                ("key", DeValue::String(file)) => security.key = Some(file.into_owned()),
                ("sasl", DeValue::Table(sasl)) => security.sasl = Some(Sasl::parse(sasl)?),
                _ => {
                    return Err(
                        "it has something else than tls = true, ca, certificate, key, and the table [sasl]",
                    );
                }
            }
        }
        let has_files = security.ca.is_some() || security.certificate.is_some();
        match security {
            _ if has_files && !security.tls => Err("it names certificates without tls = true"),
            _ if security.certificate.is_some() != security.key.is_some() => {
                Err("certificate and key belong together")
            }
            security => Ok(security),
        }
    }

    fn config(&self) -> AuthConfig {
        let plain = match &self.sasl {
            None => AuthConfig::plaintext(),
            Some(Sasl {
                mechanism,
                user,
                password,
            }) => {
                let config = match mechanism {
                    Mechanism::Plain => AuthConfig::sasl_plain,
                    Mechanism::ScramSha256 => AuthConfig::sasl_scram_sha256,
                    Mechanism::ScramSha512 => AuthConfig::sasl_scram_sha512,
                };
                config(user.clone(), password.clone())
            }
        };
        if !self.tls {
            return plain;
        }
        let mut tls = match &self.ca {
            Some(ca) => TlsConfig::new().with_ca_cert(ca.clone()),
            None => TlsConfig::new().with_native_roots(),
        };
        if let (Some(certificate), Some(key)) = (&self.certificate, &self.key) {
            tls = tls.with_client_cert(certificate.clone(), key.clone());
        }
        plain.with_tls(tls)
    }

    /// Connects to a cluster of brokers.
    ///
    /// # Errors
    /// When none of them answers, or lets us in.
    pub(super) async fn connect(&self, brokers: &str) -> krafka::Result<Kafka> {
        let kafka = Kafka::builder(brokers)
            .client_id("logpond")
            .security(self.config())
            .connect_timeout(CONNECT_TIME_MAX)
            .request_timeout(REQUEST_TIME_MAX)
            .metadata_max_age(LOOK_INTERVAL)
            .max_response_size(RESPONSE_BYTES_MAX)
            .allow_auto_create_topics(false);
        kafka.connect().await
    }
}

impl Sasl {
    fn parse(table: DeTable<'_>) -> Result<Sasl, &'static str> {
        let (mut mechanism, mut user, mut password) = (None, None, None);
        for (name, value) in table {
            let DeValue::String(text) = value.into_inner() else {
                return Err("something below [sasl] is no text");
            };
            match &**name.get_ref() {
                "mechanism" => {
                    mechanism = Some(match &*text.to_ascii_lowercase() {
                        "plain" => Mechanism::Plain,
                        "scram-sha-256" => Mechanism::ScramSha256,
                        "scram-sha-512" => Mechanism::ScramSha512,
                        _ => {
                            return Err(
                                "the mechanism of [sasl] is none of plain, scram-sha-256 and scram-sha-512",
                            );
                        }
                    });
                }
                "user" => user = Some(text.into_owned()),
                "password" => password = Some(text.into_owned()),
                _ => return Err("[sasl] has something else than mechanism, user and password"),
            }
        }
        match (mechanism, user, password) {
            (Some(mechanism), Some(user), Some(password)) => Ok(Sasl {
                mechanism,
                user,
                password,
            }),
            _ => Err("[sasl] needs mechanism, user and password"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use logpond_settings::parse_secret;

    #[test]
    fn the_file_is_checked_and_never_quoted() {
        let scram = "tls = true\nca = \"/ca.pem\"\n[sasl]\nmechanism = \"SCRAM-SHA-512\"\nuser = \"u\"\n\
                     password = \"secret\"\n";
        let security = parse_secret(scram, Security::parse).ok().unwrap();
        assert!(security.tls && security.config().requires_tls());
        assert!(security.config().requires_sasl());
        let bad = [
            ("secret", "no TOML"),
            ("tls = \"secret\"", "something else"),
            ("ca = \"/secret\"", "without tls"),
            ("tls = true\nkey = \"/secret\"", "belong together"),
            ("[sasl]\nuser = \"secret\"", "needs mechanism"),
            ("[sasl]\nmechanism = \"secret\"", "none of plain"),
            ("[sasl]\nsecret = \"x\"", "something else than mechanism"),
            ("[sasl]\nuser = 1", "no text"),
        ];
        for (text, expected) in bad {
            let error = parse_secret(text, Security::parse).err().unwrap();
            assert!(
                error.contains(expected) && !error.contains("secret"),
                "{text}: {error}"
            );
        }
    }
}
