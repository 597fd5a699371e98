//! Frontends as they are written become frontends that a proxy can be given.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use logpond_proxy::{
    Certificates, ClientAuth, Frontend, Limits, OrderedCertificate, ProxyHeader, Route, SniRule,
    TlsSettings, Trust, Upstream,
};
use logpond_tls::{CertificateFiles, ClientFiles, staple_path};

use super::acme::{self, Orders};
use super::source::Placed;
use crate::commands::Failure;
use logpond_host::open_files;
use logpond_host::terminal::with_causes;
use logpond_settings::{
    Age, ClientAuthMode, ProxySection, ProxyVersion, RouteSection, WeighedTarget,
};

/// Open files that are no connections: the program's own, listeners, event loops.
const FILES_RESERVED: u64 = 128;

/// Open files of a connection: to the client, and to the upstream.
const FILES_PER_CONNECTION: u64 = 2;

/// The shortest time between two checks of an upstream.
const CHECK_INTERVAL_MIN: Duration = Duration::from_millis(100);

/// The files that frontends are made of.
pub(super) fn files(sections: &[Placed]) -> Vec<PathBuf> {
    let of_section = |(_, section): &Placed| {
        let staples = section.cert.iter().map(|path| staple_path(path));
        [
            section.cert.clone(),
            section.key.clone(),
            staples.collect(),
            section.client_ca.clone(),
            section.client_crl.clone(),
            section.ticket_secret.iter().cloned().collect(),
            section.acme_ca.iter().cloned().collect(),
        ]
    };
    let files = sections.iter().flat_map(of_section).flatten();
    files.collect()
}

/// Frontends, and the orders of certificates that they have.
#[derive(Clone, Default)]
pub(super) struct FrontendSet {
    pub(super) frontends: Vec<Frontend>,
    pub(super) orders: Orders,
}

/// Reads the certificates and makes frontends. Those of `before` hand their keys for tickets on, and orders that
/// stay as they were go on.
///
/// # Errors
/// When certificates cannot be used, or what is written does not go together.
pub(super) fn load(sections: &[Placed], before: &FrontendSet) -> Result<FrontendSet, Failure> {
    let connections = connections(sections)?;
    let is_one = sections.len() == 1;
    let mut frontends: Vec<Frontend> = Vec::with_capacity(sections.len());
    let mut orders = Orders::default();
    for (at, (origin, section)) in sections.iter().enumerate() {
        let certificates_before = before.frontends.get(at);
        let certificates_before = certificates_before.map(|frontend| &frontend.certificates);
        let loaded = acme::order(section, &before.orders, &mut orders).and_then(|ordered| {
            let certificates = certificates(section, ordered, certificates_before)?;
            frontend(section, certificates, connections[at], is_one)
        });
        let frontend = loaded.map_err(|error| match origin {
            Some(origin) => format!("{origin}: {}", with_causes(&*error)).into(),
            None => error,
        })?;
        let is_same = |other: &&Frontend| other.name == frontend.name;
        if let Some(Frontend {
            name: Some(name), ..
        }) = frontends.iter().find(is_same)
        {
            return Err(format!("two frontends have the name '{name}'").into());
        }
        frontends.push(frontend);
    }
    Ok(FrontendSet { frontends, orders })
}

fn frontend(
    section: &ProxySection,
    certificates: Certificates,
    connections_max: usize,
    is_one: bool,
) -> Result<Frontend, Failure> {
    let Some(first) = section.listen.first() else {
        return Err("it listens nowhere; listen needs an address".into());
    };
    let name = match &section.name {
        Some(name) => Some(Arc::from(name.as_str())),
        None if is_one => None,
        None => Some(first.to_string().into()),
    };
    Ok(Frontend {
        name,
        listen: section.listen.clone(),
        certificates,
        routes: routes(section)?,
        limits: limits(section, connections_max),
        proxy_header: section.proxy_protocol.map(|version| match version {
            ProxyVersion::V1 => ProxyHeader::V1,
            ProxyVersion::V2 => ProxyHeader::V2,
        }),
        trust: trust(section),
    })
}

fn certificates(
    section: &ProxySection,
    ordered: Option<Arc<OrderedCertificate>>,
    before: Option<&Certificates>,
) -> Result<Certificates, Failure> {
    if section.cert.is_empty() && section.key.is_empty() && ordered.is_none() {
        return Err(
            "there is no certificate; name its file by cert, and that of its key by key".into(),
        );
    }
    if section.cert.len() != section.key.len() {
        return Err(format!(
            "there are {} certificates and {} keys; each certificate needs its key, in the same order",
            section.cert.len(),
            section.key.len()
        )
        .into());
    }
    let pairs = section.cert.iter().zip(&section.key);
    let files: Vec<CertificateFiles> = pairs
        .map(|(certificate, key)| CertificateFiles {
            certificate: certificate.clone(),
            key: key.clone(),
        })
        .collect();
    let settings = TlsSettings {
        files,
        ordered,
        alpn: protocols(&section.alpn)?,
        sni: if section.strict_sni {
            SniRule::Refuse
        } else {
            SniRule::ShowFirst
        },
        clients: client_auth(section)?,
        ticket_secret: section.ticket_secret.clone(),
    };
    Ok(match before {
        Some(before) => before.load_again(&settings)?,
        None => Certificates::load(&settings)?,
    })
}

/// The names of protocols as they are written: each by itself, or several with commas. A list that passed for
/// one name, which no client offers, would have every client refused.
fn protocols(written: &[String]) -> Result<Vec<String>, Failure> {
    let names = written.iter().flat_map(|names| names.split(','));
    let checked = names.map(str::trim).map(|name| {
        let is_wrong = |c: char| c == ';' || c.is_whitespace() || c.is_control();
        if (1..=255).contains(&name.len()) && !name.contains(is_wrong) {
Ok(name.to_owned())
} else {
Err(format!(
                "alpn: '{name}' is no name of a protocol, such as h2 or http/1.1; several stand with \
                 commas: h2,http/1.1"
            )
            .into())
}
    });
    checked.collect()
}

/// `None` if clients are asked for no certificate.
fn client_auth(section: &ProxySection) -> Result<Option<ClientAuth>, Failure> {
    if section.client_ca.is_empty() {
        let is_silent = section.client_auth.is_none()
            && section.client_crl.is_empty()
            && section.client_allow.is_empty();
        return if is_silent {
            Ok(None)
        } else {
            Err(
                "clients are asked for certificates only where client-ca says by whom \
                          they are to be issued"
                    .into(),
            )
        };
    }
    Ok(Some(ClientAuth {
        is_optional: section.client_auth == Some(ClientAuthMode::Optional),
        files: ClientFiles {
            authorities: section.client_ca.clone(),
            revocations: section.client_crl.clone(),
        },
        rules: section
            .client_allow
            .iter()
            .map(|rule| rule.0.clone())
            .collect(),
    }))
}

/// The routes, and behind them where all others go.
fn routes(section: &ProxySection) -> Result<Vec<Route>, Failure> {
    let mut routes = Vec::with_capacity(section.route.len() + 1);
    let offered = protocols(&section.alpn)?;
    for route in &section.route {
        let spoken = protocols(&route.alpn)?;
        if let Some(name) = spoken.iter().find(|name| !offered.contains(name)) {
            return Err(format!(
                "a route is for the protocol '{name}', which clients are not offered; add it to \
                 alpn of the [[proxy]] section"
            )
            .into());
        }
        routes.push(self::route(route)?);
    }
    if !section.to.is_empty() {
        routes.push(Route {
            upstreams: upstreams(&section.to),
            check: check(section.check_interval)?,
            ..Route::default()
        });
    }
    if routes.is_empty() {
        Err("connections go nowhere; to needs an upstream, such as \
                     unix:/run/app.sock"
            .into())
    } else {
        Ok(routes)
    }
}

fn route(section: &RouteSection) -> Result<Route, Failure> {
    if section.to.is_empty() {
        return Err("a route leads nowhere; its to needs an upstream".into());
    }
    Ok(Route {
        names: section.sni.iter().map(|name| name.0.clone()).collect(),
        alpn: protocols(&section.alpn)?,
        upstreams: upstreams(&section.to),
        check: check(section.check_interval)?,
    })
}

fn upstreams(written: &[WeighedTarget]) -> Vec<Upstream> {
    let upstream = |one: &WeighedTarget| Upstream {
        target: one.target.clone(),
        weight: one.weight,
    };
    written.iter().map(upstream).collect()
}

fn check(written: Option<Age>) -> Result<Option<Duration>, Failure> {
    match written {
        Some(every) if every.0 < CHECK_INTERVAL_MIN => {
            Err("check-interval: upstreams are checked every 100ms at most".into())
        }
        written => Ok(written.map(|every| every.0)),
    }
}

fn limits(section: &ProxySection, connections_max: usize) -> Limits {
    let default = Limits::default();
    let time = |written: Option<Age>, default| written.map_or(default, |age| age.0);
    Limits {
        handshake_time: time(section.handshake_timeout, default.handshake_time),
        connect_time: time(section.connect_timeout, default.connect_time),
        idle_time: time(section.idle_timeout, default.idle_time),
        half_close_time: time(section.half_close_timeout, default.half_close_time),
        connections_max,
        connections_per_address_max: section
            .connections_per_address_max
            .unwrap_or(default.connections_per_address_max),
        handshakes_per_address_per_second_max: section
            .handshakes_per_address_per_second_max
            .map_or(default.handshakes_per_address_per_second_max, u32::from),
    }
}

/// How many connections each frontend may have, for which the limit of open files is raised.
fn connections(sections: &[Placed]) -> Result<Vec<usize>, Failure> {
    let files = open_files::raise_limit();
    let possible = files.saturating_sub(FILES_RESERVED) / FILES_PER_CONNECTION;
    let possible = usize::try_from(possible).unwrap_or(usize::MAX);
    let asked = sections.iter().map(|(_, section)| section.connections_max);
    let sum = asked.clone().flatten().fold(0, usize::saturating_add);
    if sum > possible {
        return Err(format!(
            "connections-max: {sum} connections need more than the {files} open files that are \
             allowed; raise the limit (ulimit -n, or LimitNOFILE= of the service)"
        )
        .into());
    }
    let others = asked.clone().filter(Option::is_none).count().max(1);
    let share = Limits::default()
        .connections_max
        .min((possible - sum) / others);
    Ok(asked.map(|asked| asked.unwrap_or(share)).collect())
}

fn trust(section: &ProxySection) -> Trust {
    if section.accept_proxy.is_empty() {
        return Trust::default();
    }
    let networks = section.accept_proxy.clone();
    Trust::new(move |address: IpAddr| networks.iter().any(|network| network.0.contains(address)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protocols_are_told_apart() {
        let read = |written: &[&str]| {
            let written: Vec<String> = written.iter().map(|&name| name.to_owned()).collect();
            protocols(&written).map_err(|error| error.to_string())
        };
        let both = Ok(vec!["h2".to_owned(), "http/1.1".to_owned()]);
        for written in [&["h2", "http/1.1"][..], &["h2,http/1.1"], &["h2, http/1.1"]] {
            assert_eq!(read(written), both, "{written:?}");
        }
        assert_eq!(read(&[]), Ok(Vec::new()));
        for wrong in ["", "h2,", "h2 http/1.1", "h2;http/1.1", &"x".repeat(256)] {
            let error = read(&[wrong]).unwrap_err();
            assert!(error.contains("h2,http/1.1"), "{wrong}: {error}");
        }
    }
}
