//! What a proxy is told, all of it valid on its own.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use std::{error, fmt};

use crate::{Certificates, Limits, Target};

/// What a proxy does.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where it listens, and what becomes of connections there; at least one.
    pub frontends: Vec<Frontend>,
    /// Threads that serve connections; at least one.
    pub workers: usize,
    /// What may wait in all connections for sides that do not take it. Beyond it connections end for
    /// which more would wait.
    pub waiting_bytes_max: usize,
    /// How often records tell the state of certificates and upstreams, if they do.
    pub state_interval: Option<Duration>,
}

/// Addresses whose connections are treated alike.
#[derive(Clone, Debug)]
pub struct Frontend {
    /// As records and metrics have it; where there is one frontend only, it may have none.
    pub name: Option<Arc<str>>,
    /// Where it listens, at least one; port 0 is any free one.
    pub listen: Vec<SocketAddr>,
    /// What clients are shown.
    pub certificates: Certificates,
    /// Where connections go: the first that fits. Those that none fits are closed.
    pub routes: Vec<Route>,
    /// Bounds.
    pub limits: Limits,
    /// What upstreams are told first.
    pub proxy_header: Option<ProxyHeader>,
    /// Who tells whom it speaks for.
    pub trust: Trust,
}

/// Upstreams, and which connections go there.
#[derive(Clone, Debug, Default)]
pub struct Route {
    /// The names that clients ask for (SNI); none fits any, and clients that ask for none.
    pub names: Vec<NamePattern>,
    /// What was agreed on by ALPN; none fits any, and no agreement.
    pub alpn: Vec<String>,
    /// Those of which one is connected to.
    pub upstreams: Vec<Upstream>,
    /// How often they are tried without a client, if they are.
    pub check: Option<Duration>,
}

impl Route {
    /// Where all connections go, in equal shares.
    pub fn to(targets: impl IntoIterator<Item = Target>) -> Route {
        let upstream = |target| Upstream { target, weight: 1 };
        Route {
            upstreams: targets.into_iter().map(upstream).collect(),
            ..Route::default()
        }
    }
}

/// Where connections go, and how many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    /// Where it listens.
    pub target: Target,
    /// Its share of the connections, to the sum of all weights; with 0 it is connected to only if no
    /// other takes a connection.
    pub weight: u16,
}

/// Names that clients ask for: a host's, or `*.` and the rest, for a single label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamePattern {
    /// In lower case; of a wildcard what follows its `*.`.
    name: String,
    is_wildcard: bool,
}

impl NamePattern {
    /// The name in lower case, if it is that of one host.
    pub fn host(&self) -> Option<&str> {
        (!self.is_wildcard).then_some(&self.name)
    }

    /// Whether a name in lower case is of these.
    pub(crate) fn is_of(&self, name: &str) -> bool {
        if self.is_wildcard {
            name.split_once('.')
                .is_some_and(|(label, rest)| !label.is_empty() && rest == self.name)
        } else {
            name == self.name
        }
    }
}

/// What was written is no name of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameError(String);

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "'{}' is no host's name; write app.example.org, or *.example.org for all one label longer",
            self.0
        )
    }
}

impl error::Error for NameError {}

impl std::str::FromStr for NamePattern {
    type Err = NameError;

    fn from_str(text: &str) -> Result<NamePattern, NameError> {
        let (rest, is_wildcard) = match text.strip_prefix("*.") {
            Some(rest) => (rest, true),
            None => (text, false),
        };
        let is_label = |label: &str| {
            let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
            (1..=63).contains(&label.len()) && label.bytes().all(is_part)
        };
        if rest.len() > 253 || !rest.split('.').all(is_label) {
            return Err(NameError(text.to_owned()));
        }
        Ok(NamePattern {
            name: rest.to_ascii_lowercase(),
            is_wildcard,
        })
    }
}

/// The header that upstreams are sent before a connection's first byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyHeader {
    /// The line of version 1: addresses.
    V1,
    /// Version 2: addresses, and what TLS agreed on.
    V2,
}

/// Which peers are proxies that say whom they speak for.
#[derive(Clone, Default)]
pub struct Trust(Option<Arc<dyn Fn(IpAddr) -> bool + Send + Sync>>);

impl Trust {
    /// Those that this says; they must begin with a header of the PROXY protocol.
    pub fn new(is_trusted: impl Fn(IpAddr) -> bool + Send + Sync + 'static) -> Trust {
        Trust(Some(Arc::new(is_trusted)))
    }

    pub(crate) fn is_trusted(&self, address: IpAddr) -> bool {
        let is_trusted = self.0.as_ref();
        is_trusted.is_some_and(|is_trusted| is_trusted(address.to_canonical()))
    }
}

impl fmt::Debug for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Trust").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_of_patterns() {
        let is_of = |pattern: &str, name| pattern.parse::<NamePattern>().unwrap().is_of(name);
        for (pattern, name) in [
            ("app.example.org", "app.example.org"),
            ("App.Example.ORG", "app.example.org"),
            ("*.example.org", "a.example.org"),
            ("*.Example.org", "b.example.org"),
            ("localhost", "localhost"),
            ("_x.test", "_x.test"),
        ] {
            assert!(is_of(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("example.org", "a.example.org"),
            ("*.example.org", "example.org"),
            ("*.example.org", "a.b.example.org"),
            ("*.example.org", ".example.org"),
            ("*.org", "a.example.org"),
        ] {
            assert!(!is_of(pattern, name), "{pattern} {name}");
        }
    }

    #[test]
    fn what_is_no_name_is_refused() {
        let long = "a".repeat(64);
        for text in [
            "", "*", "*.", "a..b", ".a", "a.", "a b", "a.*", "*.*.a", "é.org", &long,
        ] {
            assert!(text.parse::<NamePattern>().is_err(), "{text}");
        }
    }
}
