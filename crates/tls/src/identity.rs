//! A certificate with its key.

use std::path::Path;
use std::time::Duration;

use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::sign::CertifiedKey;
use rustls::{CertificateError, Error, InconsistentKeys, RootCertStore};

use super::pem::{self, read_certificates, read_key};
use super::{CertificateFiles, TlsError, provider};

/// Later than the last moment that a certificate can name, the end of the year 9999.
pub const FAR_FUTURE: Duration = Duration::from_secs(253_402_300_800);

/// What a listener shows. Invariant: the key is the first certificate's, which holds now.
pub struct Identity {
    /// Both.
    pub key: CertifiedKey,
    /// The text of the key's file. A secret.
    pub key_text: Vec<u8>,
    /// The certificate's last moment, since 1970.
    pub not_after: Duration,
}

impl Identity {
    /// Reads and checks both files.
    ///
    /// # Errors
    /// When they cannot be used; see [`TlsError`].
    pub fn load(files: &CertificateFiles) -> Result<Identity, TlsError> {
        let chain = read_certificates(&files.certificate)?;
        Identity::new(chain, read_key(&files.key)?, files)
    }

    /// Checks a text that has both, and is or will be in this file.
    ///
    /// # Errors
    /// When it cannot be used; see [`TlsError`].
    pub fn of_text(text: Vec<u8>, path: &Path) -> Result<Identity, TlsError> {
        let chain = pem::certificates(&text, path)?;
        let key = pem::key(&text, path)?;
        let files = CertificateFiles {
            certificate: path.to_owned(),
            key: path.to_owned(),
        };
        Identity::new(chain, (key, text), &files)
    }

    fn new(
        chain: Vec<CertificateDer<'static>>,
        (key, key_text): (PrivateKeyDer<'static>, Vec<u8>),
        files: &CertificateFiles,
    ) -> Result<Identity, TlsError> {
        let own = chain[0].clone();
        let key = CertifiedKey::from_der(chain, key, &provider()).map_err(|error| match error {
            Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => TlsError::Mismatch {
                certificate: files.certificate.clone(),
                key: files.key.clone(),
            },
            // The certificate is parsed for the comparison, so the fault may be in either file.
            source @ Error::InvalidCertificate(_) => unusable(&files.certificate, source),
            source => unusable(&files.key, source),
        })?;
        let not_after = check_dates(&own, &files.certificate)?;
        Ok(Identity {
            key,
            key_text,
            not_after,
        })
    }
}

/// The last moment of the first certificate in a file, since 1970.
///
/// # Errors
/// When the file cannot be used, or the certificate does not hold now.
pub fn valid_until(path: &Path) -> Result<Duration, TlsError> {
    check_dates(&read_certificates(path)?[0], path)
}

/// The last moment of a certificate that holds now.
fn check_dates(certificate: &CertificateDer<'_>, path: &Path) -> Result<Duration, TlsError> {
    let (not_before, not_after) = validity(certificate).map_err(|source| unusable(path, source))?;
    let path = path.to_owned();
    let now = now().as_secs();
    if now < not_before.as_secs() {
        return Err(TlsError::NotYetValid { path, not_before });
    }
    if now > not_after.as_secs() {
        return Err(TlsError::Expired { path, not_after });
    }
    Ok(not_after)
}

/// The wall clock as the library takes it.
pub fn now() -> UnixTime {
    UnixTime::now()
}

pub(super) fn unusable(path: &Path, source: Error) -> TlsError {
    TlsError::Unusable {
        path: path.to_owned(),
        source,
    }
}

/// First and last moment of a certificate, since 1970.
///
/// The verifier looks at the dates before anything else and says which one is missed: asked at both
/// ends of time it tells both, so that no second parser of certificates is needed.
pub(super) fn validity(certificate: &CertificateDer<'_>) -> Result<(Duration, Duration), Error> {
    let certificate = ParsedCertificate::try_from(certificate)?;
    let judge = |since_1970| {
        let time = UnixTime::since_unix_epoch(since_1970);
        verify_server_cert_signed_by_trust_anchor(
            &certificate,
            &RootCertStore::empty(),
            &[],
            time,
            provider().signature_verification_algorithms.all,
        )
    };
    let since_1970 = |time: UnixTime| Duration::from_secs(time.as_secs());
    let not_after = match judge(FAR_FUTURE) {
        Err(Error::InvalidCertificate(CertificateError::ExpiredContext { not_after, .. })) => {
            since_1970(not_after)
        }
        Err(error @ Error::InvalidCertificate(_)) => return Err(error),
        _ => FAR_FUTURE,
    };
    let not_before = match judge(Duration::ZERO) {
        Err(Error::InvalidCertificate(CertificateError::NotValidYetContext {
            not_before, ..
        })) => since_1970(not_before),
        _ => Duration::ZERO,
    };
    Ok((not_before, not_after))
}
