//! `[[proxy]]` of `logpond.toml`: frontends of the TLS proxy, as they are written.
//!
//! Keys are the flags of `logpond proxy`; what may be given several times there may be a list here.

use std::fmt;
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use clap::ValueEnum;
use logpond_proxy::{ClientRule, NamePattern, Target};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer, StrDeserializer};
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use toml::Spanned;

use super::file::{place, read_text};
use super::{Network, Origin, SettingsError, parse_age};

/// The largest weight of an upstream.
const WEIGHT_MAX: u16 = 1000;

/// One frontend as it is written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ProxySection {
    /// As records and metrics have it.
    pub name: Option<String>,
    /// Where it listens.
    #[serde(deserialize_with = "list")]
    pub listen: Vec<SocketAddr>,
    /// Certificates.
    #[serde(default, deserialize_with = "list")]
    pub cert: Vec<PathBuf>,
    /// Their keys in the same order.
    #[serde(default, deserialize_with = "list")]
    pub key: Vec<PathBuf>,
    /// Names of hosts for which one is ordered by ACME.
    #[serde(default, deserialize_with = "list")]
    pub acme: Vec<Name>,
    /// Where the ACME server writes to if something is the matter.
    #[serde(default, deserialize_with = "list")]
    pub acme_contact: Vec<String>,
    /// The ACME server.
    pub acme_directory: Option<String>,
    /// Where the account's key and what came are kept.
    pub acme_dir: Option<PathBuf>,
    /// By whom the ACME server's own certificate is issued; none is who the system trusts.
    pub acme_ca: Option<PathBuf>,
    /// Protocols of the application, the preferred first.
    #[serde(default, deserialize_with = "list")]
    pub alpn: Vec<String>,
    /// Whether clients are refused that ask for a name that no certificate has.
    #[serde(default)]
    pub strict_sni: bool,
    /// The file of a secret that other processes have, too, so that they take each other's tickets.
    pub ticket_secret: Option<PathBuf>,
    /// Authorities whose clients are let in; none asks for no certificate.
    #[serde(default, deserialize_with = "list")]
    pub client_ca: Vec<PathBuf>,
    /// Whether clients without a certificate are refused.
    pub client_auth: Option<ClientAuthMode>,
    /// Lists of certificates that are revoked.
    #[serde(default, deserialize_with = "list")]
    pub client_crl: Vec<PathBuf>,
    /// Which clients are let in; none lets all of the authorities in.
    #[serde(default, deserialize_with = "list")]
    pub client_allow: Vec<AllowedClient>,
    /// Where connections go that no route is for.
    #[serde(default, deserialize_with = "list")]
    pub to: Vec<WeighedTarget>,
    /// How often those are tried without a client.
    pub check_interval: Option<Age>,
    /// Where others go: the first that fits.
    #[serde(default)]
    pub route: Vec<RouteSection>,
    /// What upstreams are told first.
    pub proxy_protocol: Option<ProxyVersion>,
    /// Who tells whom it speaks for.
    #[serde(default, deserialize_with = "list")]
    pub accept_proxy: Vec<Networks>,
    /// How long a handshake may take; this and others that are not given are as in
    /// [`logpond_proxy::Limits`].
    pub handshake_timeout: Option<Age>,
    /// How long connecting to an upstream may take.
    pub connect_timeout: Option<Age>,
    /// How long a connection may be silent.
    pub idle_timeout: Option<Age>,
    /// How long it may be silent once one side has ended.
    pub half_close_timeout: Option<Age>,
    /// Connections at a time.
    pub connections_max: Option<usize>,
    /// Of these from one address.
    pub connections_per_address_max: Option<usize>,
    /// Handshakes of one address in a second.
    pub handshakes_per_address_per_second_max: Option<NonZeroU32>,
}

/// One route as it is written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RouteSection {
    /// The names that clients ask for.
    #[serde(default, deserialize_with = "list")]
    pub sni: Vec<Name>,
    /// What was agreed on.
    #[serde(default, deserialize_with = "list")]
    pub alpn: Vec<String>,
    /// Where these connections go.
    #[serde(deserialize_with = "list")]
    pub to: Vec<WeighedTarget>,
    /// How often they are tried without a client.
    pub check_interval: Option<Age>,
}

/// A version of the PROXY protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum ProxyVersion {
    /// A line with the addresses.
    V1,
    /// Addresses, the name that was asked for, and what TLS agreed on.
    V2,
}

/// Which clients need a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum ClientAuthMode {
    /// Those that show none are let in, too.
    Optional,
    /// All.
    Required,
}

/// An upstream, alone or as `{ to = "UPSTREAM", weight = N }`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeighedTarget {
    /// Where it listens.
    pub target: Target,
    /// Its share.
    pub weight: u16,
}

impl WeighedTarget {
    /// One with an equal share.
    pub fn new(target: Target) -> WeighedTarget {
        let weight = WeighedTarget::weight_default();
        WeighedTarget { target, weight }
    }

    fn weight_default() -> u16 {
        1
    }
}

/// A value that is written as a text in a form of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextValue<T>(pub T);

/// A duration.
pub type Age = TextValue<Duration>;
/// Addresses that begin with the same bits.
pub type Networks = TextValue<Network>;
/// A name, or a wildcard.
pub type Name = TextValue<NamePattern>;
/// What a client's certificate must have.
pub type AllowedClient = TextValue<ClientRule>;

/// Parses a text, or gives the error in it.
trait FromText: Sized {
    fn of(text: &str) -> Result<Self, String>;
}

impl FromText for Duration {
    fn of(text: &str) -> Result<Duration, String> {
        parse_age(text).map_err(|error| error.to_string())
    }
}

impl FromText for Network {
    fn of(text: &str) -> Result<Network, String> {
        Network::parse(text).ok_or_else(|| format!("'{text}' is no ADDRESS or ADDRESS/BITS"))
    }
}

impl FromText for NamePattern {
    fn of(text: &str) -> Result<NamePattern, String> {
        NamePattern::from_str(text).map_err(|error| error.to_string())
    }
}

impl FromText for ClientRule {
    fn of(text: &str) -> Result<ClientRule, String> {
        ClientRule::from_str(text).map_err(|error| error.to_string())
    }
}

impl<T: FromText> FromStr for TextValue<T> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        T::of(text).map(TextValue)
    }
}

impl<'de, T: FromText> Deserialize<'de> for TextValue<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for WeighedTarget {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TargetVisitor)
    }
}

struct TargetVisitor;

impl<'de> Visitor<'de> for TargetVisitor {
    type Value = WeighedTarget;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an upstream in quotes, or { to = \"UPSTREAM\", weight = N }")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<WeighedTarget, E> {
        text.parse().map(WeighedTarget::new).map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<WeighedTarget, A::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Fields {
            to: String,
            #[serde(default = "WeighedTarget::weight_default")]
            weight: u16,
        }
        let Fields { to, weight } = Fields::deserialize(MapAccessDeserializer::new(map))?;
        if weight > WEIGHT_MAX {
            let message = format!("a weight is at most {WEIGHT_MAX}");
            return Err(A::Error::custom(message));
        }
        let target = to.parse().map_err(A::Error::custom)?;
        Ok(WeighedTarget { target, weight })
    }
}

/// One value, or a list of them.
fn list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    deserializer.deserialize_any(ListVisitor(PhantomData))
}

struct ListVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ListVisitor<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text in quotes, or a list of them")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Vec<T>, E> {
        Ok(vec![T::deserialize(StrDeserializer::new(text))?])
    }

    fn visit_seq<A: SeqAccess<'de>>(self, values: A) -> Result<Vec<T>, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Vec<T>, A::Error> {
        Ok(vec![T::deserialize(MapAccessDeserializer::new(map))?])
    }
}

/// What of a settings file concerns proxies.
#[derive(Deserialize)]
struct File {
    #[serde(default)]
    proxy: Vec<Spanned<ProxySection>>,
}

/// Reads the sections of a settings file, each with its place.
///
/// # Errors
/// When the file cannot be read, is no TOML, or a section says what it cannot.
pub fn read_proxies(path: &Path) -> Result<Vec<(Origin, ProxySection)>, SettingsError> {
    parse(&read_text(path)?, path)
}

fn parse(text: &str, path: &Path) -> Result<Vec<(Origin, ProxySection)>, SettingsError> {
    let origin = |at| place(text, path, at);
    let file: File = toml::from_str(text).map_err(|error| SettingsError::Syntax {
        origin: origin(error.span().map_or(0, |span| span.start)),
        message: error.message().to_string(),
    })?;
    let sections = file.proxy.into_iter();
    let placed = sections.map(|section| (origin(section.span().start), section.into_inner()));
    Ok(placed.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<(Origin, ProxySection)>, String> {
        parse(text, Path::new("logpond.toml")).map_err(|error| error.to_string())
    }

    #[test]
    fn sections_are_read() {
        let text = r#"
            http = "127.0.0.1:7650"

            [[proxy]]
            listen = "0.0.0.0:443"
            cert = "a.pem"
            key = "a.key"
            to = "unix:/run/app.sock"

            [[proxy]]
            name = "all"
            listen = ["0.0.0.0:8443", "[::]:8443"]
            cert = ["a.pem", "b.pem"]
            key = ["a.key", "b.key"]
            alpn = ["h2", "http/1.1"]
            strict-sni = true
            proxy-protocol = "v2"
            accept-proxy = ["10.0.0.0/8", "::1"]
            idle-timeout = "10m"
            connections-max = 5000
            to = ["tcp:a:1", { to = "tcp:b:2", weight = 3 }, { to = "tcp:d:4" }]
            check-interval = "5s"
            client-ca = "ca.pem"
            client-auth = "optional"
            client-allow = ["cn=a", "dns=*.b.test"]
            acme = ["a.test", "b.test"]
            acme-contact = "mailto:a@a.test"
            acme-directory = "https://acme.a.test/directory"
            acme-dir = "/var/lib/acme"
            acme-ca = "authority.pem"

            [[proxy.route]]
            sni = "*.example.org"
            alpn = "h2"
            to = { to = "tcp:c:3", weight = 0 }
        "#;
        let sections = read(text).unwrap();
        let [(first_place, first), (_, second)] = &sections[..] else {
            panic!("{sections:?}")
        };
        assert_eq!(first_place.to_string(), "logpond.toml:4:13");
        assert_eq!(
            first.to,
            [WeighedTarget::new("unix:/run/app.sock".parse().unwrap())]
        );
        assert_eq!((first.listen.len(), first.idle_timeout), (1, None));
        assert_eq!(second.listen[1].to_string(), "[::]:8443");
        assert_eq!(
            second.idle_timeout,
            Some(TextValue(Duration::from_secs(600)))
        );
        assert_eq!(second.proxy_protocol, Some(ProxyVersion::V2));
        let weights = second.to.iter().map(|one| one.weight);
        assert_eq!(weights.collect::<Vec<_>>(), [1, 3, 1]);
        assert_eq!(second.client_auth, Some(ClientAuthMode::Optional));
        assert_eq!(second.client_allow.len(), 2);
        assert_eq!((first.acme.len(), second.acme.len()), (0, 2));
        let route = &second.route[0];
        assert_eq!((route.to[0].weight, &route.alpn[0][..]), (0, "h2"));
        assert_eq!(read("fast = \"127.0.0.1:7651\"").unwrap().len(), 0);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let whole = "[[proxy]]\nlisten = \"0.0.0.0:443\"\ncert = \"a\"\nkey = \"b\"\n";
        for (more, expected) in [
            ("to = 'app'", "logpond.toml:5:6: 'app' is no upstream"),
            (
                "to = { to = 'tcp:a:1', weight = 2000 }",
                "a weight is at most 1000",
            ),
            ("to = { to = 'tcp:a:1', wait = 1 }", "unknown field `wait`"),
            ("lissten = 1", "logpond.toml:5:1: unknown field `lissten`"),
            ("idle-timeout = 'soon'", "logpond.toml:5:16: "),
            (
                "accept-proxy = '10.0.0.0/40'",
                "'10.0.0.0/40' is no ADDRESS",
            ),
            (
                "[[proxy.route]]\nsni = 'a b'\nto = 'tcp:a:1'",
                "'a b' is no host's name",
            ),
            ("[[proxy.route]]\nsni = 'a'", "missing field `to`"),
            ("listen = 'x'", "duplicate key"),
            (
                "client-allow = 'nobody'",
                "logpond.toml:5:16: 'nobody' is no rule for clients",
            ),
            ("proxy-protocol = 'v3'", "unknown variant `v3`"),
            ("connections-max = -1", "logpond.toml:5:19: "),
        ] {
            let error = read(&format!("{whole}{more}\n")).unwrap_err();
            assert!(error.contains(expected), "{more}: {error}");
        }
        let error = read("[[proxy]]\nlisten = 5\n").unwrap_err();
        assert!(error.contains("a text in quotes, or a list"), "{error}");
    }
}
