//! Certificates that come while the proxy runs, from an authority that asks over TLS whether this proxy
//! answers for their names (ACME's `tls-alpn-01`, RFC 8737).

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use logpond_tls::provider;
use rustls::ServerConfig;
use rustls::server::{ClientHello, NoServerSessionStorage, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::CertificateStatus;
use crate::certificates::names_of;

/// The only protocol that authorities offer when they ask.
const CHALLENGE_PROTOCOL: &[u8] = b"acme-tls/1";

/// A certificate that was ordered, and what authorities are answered until it comes. Frontends that are given
/// the same one show the same.
pub struct OrderedCertificate {
    /// In lower case.
    names: Vec<String>,
    shown: RwLock<Option<CurrentCertificate>>,
    answers: RwLock<Option<Arc<dyn ResolvesServerCert>>>,
}

#[derive(Clone)]
struct CurrentCertificate {
    key: Arc<CertifiedKey>,
    /// What it holds for, in lower case.
    names: Arc<[String]>,
    not_after: Duration,
}

impl OrderedCertificate {
    /// One for these names that has not come yet.
    pub fn new(names: &[String]) -> OrderedCertificate {
        OrderedCertificate {
            names: names.iter().map(|name| name.to_ascii_lowercase()).collect(),
            shown: RwLock::default(),
            answers: RwLock::default(),
        }
    }

    /// The names that it is for, in lower case.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// It has come, or another one after it: clients are shown this one from now on. `not_after` is its last
    /// moment, since 1970.
    pub fn show(&self, key: CertifiedKey, not_after: Duration) {
        self.set_shown(CurrentCertificate {
            names: names_of(&key).into(),
            key: Arc::new(key),
            not_after,
        });
    }

    /// Until it comes, clients are shown what another one has got, if that is for one of the names.
    pub fn show_meanwhile(&self, other: &OrderedCertificate) {
        let is_for_one =
            |shown: &CurrentCertificate| shown.names.iter().any(|name| self.names.contains(name));
        if self.shown().is_none()
            && let Some(shown) = other.shown().filter(is_for_one)
        {
            self.set_shown(shown);
        }
    }

    /// Authorities that ask are answered by this from now on.
    pub fn answer(&self, answers: Arc<dyn ResolvesServerCert>) {
        let mut now = self.answers.write().unwrap_or_else(PoisonError::into_inner);
        *now = Some(answers);
    }

    /// Its last moment since 1970, if it has come.
    pub fn not_after(&self) -> Option<Duration> {
        self.shown().map(|shown| shown.not_after)
    }

    pub(crate) fn key(&self) -> Option<Arc<CertifiedKey>> {
        self.shown().map(|shown| shown.key)
    }

    /// Whether what has come, or is to come, is for a name in lower case.
    pub(crate) fn is_for(&self, name: &str) -> bool {
        let is_in = |names: &[String]| names.iter().any(|own| own == name);
        is_in(&self.names) || self.shown().is_some_and(|shown| is_in(&shown.names))
    }

    pub(crate) fn status(&self) -> Option<CertificateStatus> {
        let shown = self.shown()?;
        Some(CertificateStatus {
            names: shown.names.to_vec(),
            not_after: shown.not_after,
            staple_until: None,
        })
    }

    /// How handshakes with authorities are done, whatever clients are asked for.
    ///
    /// # Errors
    /// When the library refuses: a defect of this program.
    pub(crate) fn config(
        self: &Arc<OrderedCertificate>,
    ) -> Result<Arc<ServerConfig>, rustls::Error> {
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(Answers(self.clone())));
        config.alpn_protocols = vec![CHALLENGE_PROTOCOL.to_vec()];
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Arc::new(config))
    }

    fn set_shown(&self, now: CurrentCertificate) {
        let mut shown = self.shown.write().unwrap_or_else(PoisonError::into_inner);
        *shown = Some(now);
    }

    fn shown(&self) -> Option<CurrentCertificate> {
        let shown = self.shown.read().unwrap_or_else(PoisonError::into_inner);
        shown.clone()
    }
}

impl fmt::Debug for OrderedCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = f.debug_struct("Ordered");
        text.field("names", &self.names).finish_non_exhaustive()
    }
}

/// Whether they are the same one: what is shown changes in both then.
impl PartialEq for OrderedCertificate {
    fn eq(&self, other: &OrderedCertificate) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for OrderedCertificate {}

/// Whether a hello is that of an authority that asks.
pub(crate) fn is_challenge(hello: &ClientHello<'_>) -> bool {
    let mut offered = hello.alpn().into_iter().flatten();
    offered.next() == Some(CHALLENGE_PROTOCOL) && offered.next().is_none()
}

/// Answers authorities, and nobody else.
#[derive(Debug)]
struct Answers(Arc<OrderedCertificate>);

impl ResolvesServerCert for Answers {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        if !is_challenge(&hello) {
            return None;
        }
        let answers = self.0.answers.read();
        let answers = answers.unwrap_or_else(PoisonError::into_inner).clone()?;
        answers.resolve(hello)
    }
}
