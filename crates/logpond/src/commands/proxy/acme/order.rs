//! What is ordered, and of whom, as a section of the settings says it.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use logpond_proxy::OrderedCertificate;
use logpond_tls::{provider, read_certificates};
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};
use rustls_acme::{AcmeConfig, AcmeState};

use super::store::Store;
use crate::commands::Failure;
use logpond_settings::{Name, ProxySection};

/// Let's Encrypt, as it issues certificates that clients trust.
const LETS_ENCRYPT: &str = "https://acme-v02.api.letsencrypt.org/directory";

/// All that a proxy has.
#[derive(Clone, Default)]
pub(in super::super) struct Orders(Vec<Order>);

impl Orders {
    pub(super) fn iter(&self) -> impl Iterator<Item = &Order> {
        self.0.iter()
    }

    /// Where what comes of them is kept.
    pub(in super::super) fn directories(&self) -> Vec<PathBuf> {
        let stores = self.iter().map(Order::store);
        stores.map(|store| store.directory().to_owned()).collect()
    }
}

/// One of them. Cheap to clone; two are the same if one is the clone of the other.
#[derive(Clone)]
pub(super) struct Order(Arc<PreparedOrder>);

struct PreparedOrder {
    request: OrderRequest,
    /// How the server is talked to.
    client: Arc<ClientConfig>,
    store: Store,
    /// Whether it came before this process began with it.
    is_kept: bool,
}

/// The parameters of an order: names, contact and authority.
#[derive(Debug, PartialEq, Eq)]
struct OrderRequest {
    /// In lower case.
    names: Vec<String>,
    contact: Vec<String>,
    directory: String,
    store: PathBuf,
    /// Who vouches for the server; none is who the system trusts.
    authorities: Option<Vec<CertificateDer<'static>>>,
}

impl PartialEq for Order {
    fn eq(&self, other: &Order) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Order {
    /// Reads what came of it before, too.
    fn new(request: OrderRequest) -> Result<Order, Failure> {
        let ordered = Arc::new(OrderedCertificate::new(&request.names));
        let account = [
            &request.contact[..],
            std::slice::from_ref(&request.directory),
        ]
        .concat();
        let store = Store::new(&request.store, ordered, &request.directory, &account);
        Ok(Order(Arc::new(PreparedOrder {
            is_kept: store.show(),
            client: client(request.authorities.as_deref())?,
            request,
            store,
        })))
    }

    pub(super) fn ordered(&self) -> &Arc<OrderedCertificate> {
        self.0.store.ordered()
    }

    pub(super) fn store(&self) -> &Store {
        &self.0.store
    }

    /// Whether it came before this process began with it.
    pub(super) fn is_kept(&self) -> bool {
        self.0.is_kept
    }

    /// Its names in words.
    pub(super) fn names(&self) -> String {
        self.0.request.names.join(", ")
    }

    pub(super) fn directory(&self) -> &str {
        &self.0.request.directory
    }

    /// What talks to the server.
    pub(super) fn state(&self) -> AcmeState<std::io::Error> {
        let PreparedOrder {
            request,
            client,
            store,
            ..
        } = &*self.0;
        AcmeConfig::new_with_client_config(&request.names, client.clone())
            .contact(&request.contact)
            .directory(&request.directory)
            .cache(store.clone())
            .state()
    }
}

/// What a section orders, if it does: the same as one of `before` or `now`, to which it belongs then, if that asked
/// for the same.
///
/// # Errors
/// When what is written does not go together, or files cannot be used.
pub(in super::super) fn order(
    section: &ProxySection,
    before: &Orders,
    now: &mut Orders,
) -> Result<Option<Arc<OrderedCertificate>>, Failure> {
    let Some(request) = asked(section)? else {
        return Ok(None);
    };
    if let Some(same) = now.iter().find(|order| order.0.request == request) {
        return Ok(Some(same.ordered().clone()));
    }
    let same = before.iter().find(|order| order.0.request == request);
    let order = same.cloned().map_or_else(|| Order::new(request), Ok)?;
    for other in before.iter() {
        order.ordered().show_meanwhile(other.ordered());
    }
    now.0.push(order.clone());
    Ok(Some(order.ordered().clone()))
}

fn asked(section: &ProxySection) -> Result<Option<OrderRequest>, Failure> {
    if section.acme.is_empty() {
        let is_silent = section.acme_contact.is_empty()
            && section.acme_directory.is_none()
            && section.acme_dir.is_none()
            && section.acme_ca.is_none();
        return if is_silent {
            Ok(None)
        } else {
            Err("certificates are ordered only where acme names whom they are for".into())
        };
    }
    let Some(store) = section.acme_dir.clone() else {
        return Err(
            "acme needs acme-dir, where the account's key and certificates are kept, \
                    such as /var/lib/logpond-proxy/acme"
                .into(),
        );
    };
    let is_no_contact = |contact: &&String| !contact.starts_with("mailto:");
    if let Some(contact) = section.acme_contact.iter().find(is_no_contact) {
        return Err(
            format!("acme-contact: '{contact}' is none; write mailto:you@example.org").into(),
        );
    }
    let directory = section.acme_directory.as_deref().unwrap_or(LETS_ENCRYPT);
    if !directory.starts_with("https://") {
        let error = format!("acme-directory: '{directory}' is none; it begins with https://");
        return Err(error.into());
    }
    let authorities = section.acme_ca.as_deref().map(read_certificates);
    Ok(Some(OrderRequest {
        names: names(&section.acme)?,
        contact: section.acme_contact.clone(),
        directory: directory.to_owned(),
        store,
        authorities: authorities.transpose()?,
    }))
}

/// Each once.
fn names(written: &[Name]) -> Result<Vec<String>, Failure> {
    let mut names: Vec<String> = Vec::with_capacity(written.len());
    for name in written {
        let Some(name) = name.0.host() else {
            return Err("acme: a name with * cannot be proved by TLS; name each host".into());
        };
        if name.parse::<IpAddr>().is_ok() {
            return Err(format!("acme: {name} is an address; certificates are for names").into());
        }
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

/// How the server is talked to: trusting those who vouch for it, or whom the system trusts.
fn client(authorities: Option<&[CertificateDer<'static>]>) -> Result<Arc<ClientConfig>, Failure> {
    let trusted = match authorities {
        Some(authorities) => authorities.to_vec(),
        None => rustls_native_certs::load_native_certs().certs,
    };
    let mut roots = RootCertStore::empty();
    // Single bad ones are left out, as everywhere on a system.
    let (good, _) = roots.add_parsable_certificates(trusted);
    if good == 0 {
        return Err(
            "nobody is trusted to vouch for the ACME server; install ca-certificates, or \
                    name its authority by acme-ca"
                .into(),
        );
    }
    let config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}
