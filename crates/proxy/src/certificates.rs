//! Which certificate a client is shown.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use logpond_tls::{CertificateFiles, Identity, SharedTickets, Staple, TlsError, provider};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs::Ticketer;
use rustls::pki_types::UnixTime;
use rustls::server::{ClientHello, NoServerSessionStorage, ProducesTickets, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::ClientAuth;
use crate::clients::Clients;
use crate::ordered::{OrderedCertificate, is_challenge};

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
    /// What it is answered with is found elsewhere, or has not come yet.
    pub(crate) ordered: Option<OrderedHello>,
}

/// A hello for which no certificate is shown because one was ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OrderedHello {
    /// It is that of an authority, which wants to know whether this proxy answers for a name.
    Challenge,
    /// The certificate has not come yet.
    Missing,
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

/// What is said about TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsSettings {
    /// Certificates with their keys, at least one pair unless one is ordered.
    pub files: Vec<CertificateFiles>,
    /// A certificate that comes while the proxy runs. For its names it is shown before those of files.
    pub ordered: Option<Arc<OrderedCertificate>>,
    /// The application's protocols, the preferred first; with none clients are not answered about
    /// them.
    pub alpn: Vec<String>,
    /// What becomes of clients that ask for other names.
    pub sni: SniRule,
    /// Which clients are let in by certificates, if they are asked for some.
    pub clients: Option<ClientAuth>,
    /// The file of a secret that other processes have, too, so that they take each other's tickets.
    /// Without one tickets are for this process, and their keys nowhere but in its memory.
    pub ticket_secret: Option<PathBuf>,
}

/// What is read from files, and made of it: it can be replaced under a running proxy.
#[derive(Clone)]
pub struct Certificates {
    config: Arc<ServerConfig>,
    status: Vec<CertificateStatus>,
    warnings: Vec<String>,
    /// Which clients are let in, if they are asked for certificates.
    clients: Option<Arc<Clients>>,
    ordered: Option<Arc<OrderedCertificate>>,
    /// How handshakes of authorities are done that ask about what was ordered.
    challenges: Option<Arc<ServerConfig>>,
    /// Whether other processes take its tickets.
    shares_tickets: bool,
}

/// A certificate that clients are shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CertificateStatus {
    /// The names that it holds for.
    pub names: Vec<String>,
    /// Its last moment, since 1970.
    pub not_after: Duration,
    /// Until when a response of its authority is shown with it, since 1970, if one is; it may be for ever.
    pub staple_until: Option<Option<Duration>>,
}

impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificates").finish_non_exhaustive()
    }
}

impl Certificates {
    /// Reads and checks all files.
    ///
    /// # Errors
    /// When one cannot be used; see [`TlsError`].
    pub fn load(settings: &TlsSettings) -> Result<Certificates, TlsError> {
        Certificates::load_after(settings, None)
    }

    /// Those of other settings, or of the same with the files as they are now. Sessions of before can be
    /// resumed, unless other clients are let in now: then all begin anew, so that those who are not are
    /// told why.
    ///
    /// # Errors
    /// As of [`Certificates::load`].
    pub fn load_again(&self, settings: &TlsSettings) -> Result<Certificates, TlsError> {
        Certificates::load_after(settings, Some(self))
    }

    fn load_after(
        settings: &TlsSettings,
        before: Option<&Certificates>,
    ) -> Result<Certificates, TlsError> {
        let clients = settings.clients.clone().map(Clients::load).transpose()?;
        let before = before.filter(|before| before.clients == clients && !before.shares_tickets);
        let tickets: Arc<dyn ProducesTickets> = match (&settings.ticket_secret, before) {
            (Some(path), _) => SharedTickets::load(path)?,
            (None, Some(before)) => before.config.ticketer.clone(),
            (None, None) => new_tickets()?,
        };
        Certificates::load_with(settings, clients, tickets)
    }

    fn load_with(
        settings: &TlsSettings,
        clients: Option<Arc<Clients>>,
        tickets: Arc<dyn ProducesTickets>,
    ) -> Result<Certificates, TlsError> {
        let mut shown = CertificateIndex {
            rule: settings.sni,
            ordered: settings.ordered.clone(),
            ..CertificateIndex::default()
        };
        let mut status = Vec::with_capacity(settings.files.len());
        let mut warnings = Vec::new();
        for files in &settings.files {
            let Identity { key, not_after, .. } = Identity::load(files)?;
            let staple = match key.cert.first() {
                Some(own) => Staple::beside(&files.certificate, own),
                None => Ok(None),
            };
            let staple = staple.unwrap_or_else(|warning| {
                warnings.push(warning);
                None
            });
            status.push(CertificateStatus {
                names: names_of(&key),
                not_after,
                staple_until: staple.as_ref().map(|staple| staple.good_until),
            });
            shown.add(Arc::new(StapledCertificate::new(key, staple)));
        }
        let builder = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Library)?;
        let builder = match &clients {
            Some(clients) => builder.with_client_cert_verifier(clients.clone()),
            None => builder.with_no_client_auth(),
        };
        let mut config = builder.with_cert_resolver(Arc::new(shown));
        let alpn = settings.alpn.iter().map(|name| name.clone().into_bytes());
        config.alpn_protocols = alpn.collect();
        config.ticketer = tickets;
        // Who takes no tickets makes a whole handshake: nobody's secrets are kept here, for however long.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        // Each costs a derivation and an encryption in each handshake, and most clients need one.
        config.send_tls13_tickets = 1;
        let ordered = settings.ordered.clone();
        let challenges = ordered.as_ref().map(OrderedCertificate::config).transpose();
        Ok(Certificates {
            config: Arc::new(config),
            status,
            warnings,
            clients,
            ordered,
            challenges: challenges.map_err(TlsError::Library)?,
            shares_tickets: settings.ticket_secret.is_some(),
        })
    }

    /// What is wrong with files that it does without: responses of authorities.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    pub(crate) fn status(&self) -> Vec<CertificateStatus> {
        let ordered = self.ordered.as_ref().and_then(|ordered| ordered.status());
        self.status.iter().cloned().chain(ordered).collect()
    }

    /// How handshakes of authorities are done, if something was ordered.
    pub(crate) fn challenges(&self) -> Option<Arc<ServerConfig>> {
        self.challenges.clone()
    }

    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        self.config.clone()
    }

    pub(crate) fn clients(&self) -> Option<Arc<Clients>> {
        self.clients.clone()
    }
}

/// Keys that change every six hours.
fn new_tickets() -> Result<Arc<dyn ProducesTickets>, TlsError> {
    Ticketer::new().map_err(TlsError::Library)
}

/// A certificate with its key, and with what its authority says of it while that holds.
#[derive(Debug)]
struct StapledCertificate {
    alone: Arc<CertifiedKey>,
    /// With the response.
    stapled: Option<Arc<CertifiedKey>>,
    /// The response's last moment.
    until: Option<Duration>,
}

impl StapledCertificate {
    fn new(key: CertifiedKey, staple: Option<Staple>) -> StapledCertificate {
        let (response, until) = match staple {
            Some(staple) => (Some(staple.response), staple.good_until),
            None => (None, None),
        };
        let with = |response| CertifiedKey {
            ocsp: Some(response),
            ..key.clone()
        };
        StapledCertificate {
            stapled: response.map(with).map(Arc::new),
            until,
            alone: Arc::new(key),
        }
    }

    /// What is shown now. Clients refuse what is over.
    fn at(&self, now: UnixTime) -> Arc<CertifiedKey> {
        let is_over = self
            .until
            .is_some_and(|until| until.as_secs() < now.as_secs());
        let stapled = self.stapled.as_ref().filter(|_| !is_over);
        stapled.unwrap_or(&self.alone).clone()
    }
}

/// The certificates of one name: one for each kind of key.
type Kinds = Vec<Arc<StapledCertificate>>;

/// Certificates by what they hold for.
#[derive(Debug, Default)]
struct CertificateIndex {
    rule: SniRule,
    /// By name in lower case; wildcards by what follows their `*.`.
    exact: HashMap<String, Kinds>,
    wildcard: HashMap<String, Kinds>,
    /// The first that was named, and those of the same names.
    first: Kinds,
    ordered: Option<Arc<OrderedCertificate>>,
}

impl CertificateIndex {
    fn add(&mut self, key: Arc<StapledCertificate>) {
        let names = names_of(&key.alone);
        let is_of_first = match self.first.first() {
            None => true,
            Some(first) => names_of(&first.alone) == names,
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

impl CertificateIndex {
    /// What a client that asks for a name in lower case is shown.
    fn shown(&self, name: Option<&str>, hello: &ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let can_sign = |key: &CertifiedKey| key.key.choose_scheme(hello.signature_schemes());
        let ordered = self.ordered_for(name).and_then(|ordered| ordered.key());
        if let Some(key) = ordered.as_ref().filter(|key| can_sign(key).is_some()) {
            return Some(key.clone());
        }
        let of_files = self.kinds(name).and_then(|kinds| {
            let mut fitting = kinds.iter().filter(|key| can_sign(&key.alone).is_some());
            // Where none fits, the library says so better than silence would.
            let chosen = fitting.next().or(kinds.first())?;
            Some(chosen.at(logpond_tls::now()))
        });
        of_files.or(ordered)
    }

    /// What was ordered, if it is for a name, or for who is shown what there is.
    fn ordered_for(&self, name: Option<&str>) -> Option<&Arc<OrderedCertificate>> {
        let is_only = self.first.is_empty() && self.rule == SniRule::ShowFirst;
        let is_for = |ordered: &&Arc<OrderedCertificate>| {
            is_only || name.is_some_and(|name| ordered.is_for(name))
        };
        self.ordered.as_ref().filter(is_for)
    }
}

impl ResolvesServerCert for CertificateIndex {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name().map(str::to_ascii_lowercase);
        // The session begins anew with other settings then, of which these have no part.
        let is_challenge = self.ordered.is_some() && is_challenge(&hello);
        let shown = if is_challenge {
            None
        } else {
            self.shown(name.as_deref(), &hello)
        };
        let ordered = match &shown {
            None if is_challenge => Some(OrderedHello::Challenge),
            None if self.ordered_for(name.as_deref()).is_some() => Some(OrderedHello::Missing),
            _ => None,
        };
        HELLO.set(Some(Hello {
            name,
            shown: shown.clone(),
            ordered,
        }));
        shown
    }
}

/// The names that a certificate holds for, in lower case and order.
pub(crate) fn names_of(key: &CertifiedKey) -> Vec<String> {
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
