//! What becomes of the connections of some addresses, as it is now and may be replaced.

use std::net::SocketAddr;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use crate::certificates::{CertificateStatus, Certificates};
use crate::counters::{Counters, TrafficStatus};
use crate::limits::{Admission, Limits};
use crate::settings::{self, NamePattern, ProxyHeader, Route, Trust};
use crate::upstream::{Pool, Upstreams};

/// One of a running proxy.
#[derive(Debug)]
pub(crate) struct Frontend {
    /// As settings have them.
    pub(crate) listen: Vec<SocketAddr>,
    /// As the system gave them.
    pub(crate) addresses: Vec<SocketAddr>,
    pub(crate) admission: Arc<Admission>,
    /// Of each worker.
    pub(crate) counters: Vec<Counters>,
    rules: RwLock<Arc<Rules>>,
}

/// What its settings say; a connection keeps those that it began with.
#[derive(Debug)]
pub(crate) struct Rules {
    pub(crate) name: Option<Arc<str>>,
    pub(crate) certificates: Certificates,
    routes: Vec<RouteTarget>,
    pub(crate) limits: Limits,
    pub(crate) proxy_header: Option<ProxyHeader>,
    pub(crate) trust: Trust,
}

/// A route and where it leads.
#[derive(Debug)]
struct RouteTarget {
    names: Vec<NamePattern>,
    alpn: Vec<String>,
    check: Option<Duration>,
    pool: Arc<Pool>,
}

impl Frontend {
    pub(crate) fn new(
        listen: Vec<SocketAddr>,
        addresses: Vec<SocketAddr>,
        workers: usize,
        rules: Arc<Rules>,
    ) -> Frontend {
        Frontend {
            listen,
            addresses,
            admission: Arc::default(),
            counters: (0..workers).map(|_| Counters::default()).collect(),
            rules: RwLock::new(rules),
        }
    }

    /// What holds for connections that come now.
    pub(crate) fn rules(&self) -> Arc<Rules> {
        let rules = self.rules.read().unwrap_or_else(PoisonError::into_inner);
        rules.clone()
    }

    pub(crate) fn replace(&self, rules: Arc<Rules>) {
        *self.rules.write().unwrap_or_else(PoisonError::into_inner) = rules;
    }
}

/// A frontend as it is, and what was counted of it.
#[derive(Clone, Debug)]
pub struct FrontendStatus {
    /// Its own, or its number.
    pub name: Arc<str>,
    /// What was counted.
    pub traffic: TrafficStatus,
    /// What clients are shown.
    pub certificates: Vec<CertificateStatus>,
}

impl Frontend {
    pub(crate) fn status(&self, number: usize) -> FrontendStatus {
        let mut traffic = TrafficStatus::default();
        self.counters
            .iter()
            .for_each(|one| one.add_to(&mut traffic));
        let rules = self.rules();
        FrontendStatus {
            name: rules
                .name
                .clone()
                .unwrap_or_else(|| number.to_string().into()),
            traffic,
            certificates: rules.certificates.status(),
        }
    }
}

impl Rules {
    pub(crate) fn new(settings: &settings::Frontend, known: &Upstreams) -> Rules {
        let chosen = |route: &Route| RouteTarget {
            names: route.names.clone(),
            alpn: route.alpn.clone(),
            check: route.check,
            pool: Pool::new(&route.upstreams, known).into(),
        };
        Rules {
            name: settings.name.clone(),
            certificates: settings.certificates.clone(),
            routes: settings.routes.iter().map(chosen).collect(),
            limits: settings.limits.clone(),
            proxy_header: settings.proxy_header,
            trust: settings.trust.clone(),
        }
    }

    /// Where a connection goes, by the name in lower case that it asked for and by what was agreed on.
    pub(crate) fn pool(&self, name: Option<&str>, alpn: Option<&[u8]>) -> Option<&Pool> {
        let mut routes = self.routes.iter();
        let chosen = routes.find(|route| route.is_for(name, alpn))?;
        Some(&chosen.pool)
    }

    /// The upstreams that are tried without clients, and how often.
    pub(crate) fn checked(&self) -> impl Iterator<Item = (Arc<Pool>, Duration)> {
        let checked = |route: &RouteTarget| Some((route.pool.clone(), route.check?));
        self.routes.iter().filter_map(checked)
    }
}

impl RouteTarget {
    fn is_for(&self, name: Option<&str>, alpn: Option<&[u8]>) -> bool {
        let is_named = |name| self.names.iter().any(|pattern| pattern.is_of(name));
        let is_spoken = |alpn| self.alpn.iter().any(|spoken| spoken.as_bytes() == alpn);
        (self.names.is_empty() || name.is_some_and(is_named))
            && (self.alpn.is_empty() || alpn.is_some_and(is_spoken))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(names: &[&str], alpn: &[&str], known: &Upstreams) -> RouteTarget {
        RouteTarget {
            names: names.iter().map(|name| name.parse().unwrap()).collect(),
            alpn: alpn.iter().map(|name| (*name).to_owned()).collect(),
            check: None,
            pool: Pool::new(&[], known).into(),
        }
    }

    #[test]
    fn routes_are_for_names_and_protocols() {
        let known = Upstreams::new();
        let any = route(&[], &[], &known);
        let named = route(&["a.test", "*.b.test"], &[], &known);
        let spoken = route(&[], &["h2", "http/1.1"], &known);
        let both = route(&["a.test"], &["h2"], &known);
        let for_whom = |name, alpn: Option<&str>| {
            let alpn = alpn.map(str::as_bytes);
            [&any, &named, &spoken, &both].map(|route| u8::from(route.is_for(name, alpn)))
        };
        assert_eq!(for_whom(None, None), [1, 0, 0, 0]);
        assert_eq!(for_whom(Some("a.test"), None), [1, 1, 0, 0]);
        assert_eq!(for_whom(Some("x.b.test"), Some("http/1.1")), [1, 1, 1, 0]);
        assert_eq!(for_whom(Some("a.test"), Some("h2")), [1, 1, 1, 1]);
        assert_eq!(for_whom(Some("c.test"), Some("mqtt")), [1, 0, 0, 0]);
    }
}
