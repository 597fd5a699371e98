//! Which certificate a client is shown.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use logpond_tls::{CertificateFiles, Identity, TlsError, provider};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs::Ticketer;
use rustls::server::{ClientHello, ProducesTickets, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::ClientAuth;
use crate::clients::Clients;

thread_local! {
    /// The hello that this thread looked at last. The library calls the resolver while it is given the
    /// hello's bytes, and tells nowhere else what came of it.
    static HELLO: RefCell<Option<Hello>> = const { RefCell::new(None) };
}

/// What a hello asks for, and what it is answered with.
pub(crate) struct Hello {
    /// The name, in lower case.
    pub(crate) name: Option<String>,
    /// The certificate that is shown.
    pub(crate) shown: Option<Arc<CertifiedKey>>,
}

/// The hello that the library was just given by this thread, once.
pub(crate) fn heard_hello() -> Option<Hello> {
    HELLO.take()
}

/// What becomes of clients that ask for a name that no certificate has, or for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SniRule {
    /// They are shown the first certificate.
    #[default]
    ShowFirst,
    /// They are refused.
    Refuse,
}

/// What is read from files, and made of it: it can be replaced under a running proxy.
#[derive(Clone)]
pub struct Certificates {
    config: Arc<ServerConfig>,
    status: Vec<CertificateStatus>,
    /// Which clients are let in, if they are asked for certificates.
    clients: Option<Arc<Clients>>,
}

/// A certificate that clients are shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateStatus {
    /// The names that it holds for.
    pub names: Vec<String>,
    /// Its last moment, since 1970.
    pub not_after: Duration,
}

impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificates").finish_non_exhaustive()
    }
}

impl Certificates {
    /// Reads and checks all files; there is at least one pair. `alpn` are the application's protocols,
    /// the preferred first; with none of them clients are not answered about protocols.
    ///
    /// # Errors
    /// When a pair cannot be used; see [`TlsError`].
    pub fn load(
        files: &[CertificateFiles],
        alpn: &[String],
        rule: SniRule,
    ) -> Result<Certificates, TlsError> {
        Certificates::load_with(files, alpn, rule, None, new_tickets()?)
    }

    /// The same where clients are asked for certificates.
    ///
    /// # Errors
    /// As of [`Certificates::load`], also for the files of `clients`.
    pub fn load_with_clients(
        files: &[CertificateFiles],
        alpn: &[String],
        rule: SniRule,
        clients: ClientAuth,
    ) -> Result<Certificates, TlsError> {
        let clients = Some(Clients::load(clients)?);
        Certificates::load_with(files, alpn, rule, clients, new_tickets()?)
    }

    /// The same from the files as they are now. Sessions of before can be resumed, unless other clients
    /// are let in now: then all begin anew, so that those who are not are told why.
    ///
    /// # Errors
    /// As of [`Certificates::load`], also for the files of `clients`.
    pub fn load_again(
        &self,
        files: &[CertificateFiles],
        alpn: &[String],
        rule: SniRule,
        clients: Option<ClientAuth>,
    ) -> Result<Certificates, TlsError> {
        let clients = clients.map(Clients::load).transpose()?;
        let tickets = match clients == self.clients {
            true => self.config.ticketer.clone(),
            false => new_tickets()?,
        };
        Certificates::load_with(files, alpn, rule, clients, tickets)
    }

    fn load_with(
        files: &[CertificateFiles],
        alpn: &[String],
        rule: SniRule,
        clients: Option<Arc<Clients>>,
        tickets: Arc<dyn ProducesTickets>,
    ) -> Result<Certificates, TlsError> {
        let mut shown = Shown {
            rule,
            ..Shown::default()
        };
        let mut status = Vec::with_capacity(files.len());
        for files in files {
            let Identity { key, not_after, .. } = Identity::load(files)?;
            let names = names_of(&key);
            status.push(CertificateStatus { names, not_after });
            shown.add(Arc::new(key));
        }
        let builder = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Library)?;
        let builder = match &clients {
            Some(clients) => builder.with_client_cert_verifier(clients.clone()),
            None => builder.with_no_client_auth(),
        };
        let mut config = builder.with_cert_resolver(Arc::new(shown));
        config.alpn_protocols = alpn.iter().map(|name| name.clone().into_bytes()).collect();
        // Keys of its own that change every six hours, in memory only.
        config.ticketer = tickets;
        Ok(Certificates {
            config: Arc::new(config),
            status,
            clients,
        })
    }

    pub(crate) fn status(&self) -> Vec<CertificateStatus> {
        self.status.clone()
    }

    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        self.config.clone()
    }

    pub(crate) fn clients(&self) -> Option<Arc<Clients>> {
        self.clients.clone()
    }
}

fn new_tickets() -> Result<Arc<dyn ProducesTickets>, TlsError> {
    Ticketer::new().map_err(TlsError::Library)
}

/// The certificates of one name: one for each kind of key.
type Kinds = Vec<Arc<CertifiedKey>>;

/// Certificates by what they hold for.
#[derive(Debug, Default)]
struct Shown {
    rule: SniRule,
    /// By name in lower case; wildcards by what follows their `*.`.
    exact: HashMap<String, Kinds>,
    wildcard: HashMap<String, Kinds>,
    /// The first that was named, and those of the same names.
    first: Kinds,
}

impl Shown {
    fn add(&mut self, key: Arc<CertifiedKey>) {
        let names = names_of(&key);
        let is_of_first = match self.first.first() {
            None => true,
            Some(first) => names_of(first) == names,
        };
        if is_of_first {
            self.first.push(key.clone());
        }
        for name in names {
            let kinds = match name.strip_prefix("*.") {
                Some(rest) => self.wildcard.entry(rest.to_owned()),
                None => self.exact.entry(name),
            };
            kinds.or_default().push(key.clone());
        }
    }

    /// The certificates for a name in lower case.
    fn kinds(&self, name: Option<&str>) -> Option<&Kinds> {
        let found = name.and_then(|name| {
            let parent = || name.split_once('.').map_or("", |(_, parent)| parent);
            let wildcard = || self.wildcard.get(parent());
            self.exact.get(name).or_else(wildcard)
        });
        found.or(match self.rule {
            SniRule::ShowFirst => Some(&self.first),
            SniRule::Refuse => None,
        })
    }
}

impl ResolvesServerCert for Shown {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name().map(str::to_ascii_lowercase);
        let can_sign = |key: &&Arc<CertifiedKey>| {
            let scheme = key.key.choose_scheme(hello.signature_schemes());
            scheme.is_some()
        };
        let shown = self.kinds(name.as_deref()).and_then(|kinds| {
            // Where none fits, the library says so better than silence would.
            kinds.iter().find(can_sign).or(kinds.first()).cloned()
        });
        HELLO.set(Some(Hello {
            name,
            shown: shown.clone(),
        }));
        shown
    }
}

/// The names that a certificate holds for, in lower case and order.
fn names_of(key: &CertifiedKey) -> Vec<String> {
    let own = key.cert.first().map(webpki::EndEntityCert::try_from);
    let Some(Ok(certificate)) = own else {
        return Vec::new();
    };
    let names = certificate.valid_dns_names();
    let mut names: Vec<String> = names.map(str::to_ascii_lowercase).collect();
    names.sort_unstable();
    names.dedup();
    names
}

#[cfg(test)]
mod tests;
