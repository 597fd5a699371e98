//! Whose certificates of clients are good.
//!
//! An authority has signed them, they hold, and no revocation list has them. Once there is one such
//! list, each authority between a client and the authority that is trusted needs one that holds: what
//! nobody vouches for is refused.

use std::cmp::Reverse;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::digest::{self, SHA256, digest};
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{Error, RootCertStore};

use super::identity::{unusable, validity};
use super::revocation::{RevocationList, read_revocations};
use super::{TlsError, now, provider, read_certificates};

/// The files by which certificates of clients are judged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientFiles {
    /// PEM: the authorities that sign for clients, at least one file.
    pub authorities: Vec<PathBuf>,
    /// Revocation lists, several in PEM or one in DER; with none, nothing is revoked.
    pub revocations: Vec<PathBuf>,
}

impl ClientFiles {
    /// All of them.
    pub fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        self.authorities.iter().chain(&self.revocations)
    }
}

/// What was read of [`ClientFiles`].
#[derive(Clone)]
pub struct ClientTrust {
    verifier: Arc<dyn ClientCertVerifier>,
    digest: [u8; 32],
}

impl fmt::Debug for ClientTrust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientTrust").finish_non_exhaustive()
    }
}

/// Whether the same clients are trusted.
impl PartialEq for ClientTrust {
    fn eq(&self, other: &ClientTrust) -> bool {
        self.digest == other.digest
    }
}

impl ClientTrust {
    /// Reads and checks all files. Authorities that do not hold now are left out. With `is_required`
    /// handshakes without a certificate fail.
    ///
    /// # Errors
    /// When a file cannot be used, no authority in it holds, or a list in it is over.
    pub fn load(files: &ClientFiles, is_required: bool) -> Result<ClientTrust, TlsError> {
        let now = Duration::from_secs(now().as_secs());
        let mut content = digest::Context::new(&SHA256);
        let mut authorities = RootCertStore::empty();
        for path in &files.authorities {
            for authority in read_authorities(path, now)? {
                content.update(digest(&SHA256, &authority).as_ref());
                let added = authorities.add(authority);
                added.map_err(|source| unusable(path, source))?;
            }
        }
        let mut lists = Vec::new();
        for path in &files.revocations {
            lists.extend(read_revocations(path, now)?);
        }
        for list in &lists {
            content.update(digest(&SHA256, &list.der).as_ref());
        }
        let mut whole = [0; 32];
        whole.copy_from_slice(content.finish().as_ref());
        Ok(ClientTrust {
            verifier: verifier(authorities, lists, is_required)?,
            digest: whole,
        })
    }

    /// What judges in handshakes.
    pub fn verifier(&self) -> &Arc<dyn ClientCertVerifier> {
        &self.verifier
    }

    /// Judges a client's own certificate and those between it and an authority. A handshake that resumes
    /// a session does not do it.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn judge(
        &self,
        own: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), Error> {
        let verified = self.verifier.verify_client_cert(own, between, now);
        verified.map(drop)
    }
}

/// SHA-256 of something, such as a certificate.
pub fn fingerprint(der: &[u8]) -> [u8; 32] {
    let mut fingerprint = [0; 32];
    fingerprint.copy_from_slice(digest(&SHA256, der).as_ref());
    fingerprint
}

/// The authorities in a file that hold; at least one. The verifier does not look at their dates.
fn read_authorities(path: &Path, now: Duration) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let mut good = Vec::new();
    let mut wrong = None;
    for authority in read_certificates(path)? {
        let dates = validity(&authority).map_err(|source| unusable(path, source));
        let path = path.to_owned();
        match dates? {
            (not_before, _) if now < not_before => {
                wrong.get_or_insert(TlsError::NotYetValid { path, not_before });
            }
            (_, not_after) if now > not_after => {
                wrong.get_or_insert(TlsError::Expired { path, not_after });
            }
            _ => good.push(authority),
        }
    }
    match wrong {
        Some(error) if good.is_empty() => Err(error),
        _ => Ok(good),
    }
}

fn verifier(
    authorities: RootCertStore,
    mut lists: Vec<RevocationList>,
    is_required: bool,
) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    // Of several of one authority the first counts: the newest.
    lists.sort_by_key(|list| Reverse(list.next_update));
    let lists = lists.into_iter().map(|list| list.der);
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(authorities), provider())
        .with_crls(lists)
        // An old list says nothing of who was revoked since.
        .enforce_revocation_expiration();
    let builder = if is_required {
        builder
    } else {
        builder.allow_unauthenticated()
    };
    // Everything was parsed already.
    let built = builder.build();
    built.map_err(|error| TlsError::Library(Error::General(error.to_string())))
}

#[cfg(test)]
mod tests;
