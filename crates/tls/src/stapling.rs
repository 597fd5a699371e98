//! What an authority says of a certificate, shown together with it (OCSP, RFC 6960; stapling, RFC
//! 6066, section 8).

use std::path::{Path, PathBuf};
use std::time::Duration;

use aws_lc_rs::digest::{Algorithm, SHA1_FOR_LEGACY_USE_ONLY, SHA256, digest};
use rustls::pki_types::CertificateDer;
use x509_cert::Certificate;
use x509_cert::der::asn1::ObjectIdentifier;
use x509_cert::der::{Decode, Encode};
use x509_ocsp::{
    BasicOcspResponse, CertId, CertStatus, OcspGeneralizedTime, OcspResponse, OcspResponseStatus,
};

use super::error::time_text;
use super::pem::read;
use super::{TlsError, now};

/// The longest response that is read: with the certificate of who signed it some 3 KB.
const RESPONSE_BYTES_MAX: u64 = 64 << 10;

/// SHA-1, and what the library calls it.
const SHA1: (ObjectIdentifier, &Algorithm) = (
    ObjectIdentifier::new_unwrap("1.3.14.3.2.26"),
    &SHA1_FOR_LEGACY_USE_ONLY,
);

/// SHA-256, and what the library calls it.
const SHA2: (ObjectIdentifier, &Algorithm) = (
    ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.2.1"),
    &SHA256,
);

/// A response that says of a certificate that it is good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Staple {
    /// As it is sent.
    pub response: Vec<u8>,
    /// Until when it says so, since 1970; it may say nothing of that.
    pub good_until: Option<Duration>,
}

/// Where the response for a certificate is: beside it, with `.ocsp` behind its name.
pub fn staple_path(certificate: &Path) -> PathBuf {
    let mut path = certificate.as_os_str().to_owned();
    path.push(".ocsp");
    path.into()
}

impl Staple {
    /// Reads the response for a certificate that is read from this file; `None` where there is none.
    ///
    /// # Errors
    /// Why it is not to be shown: it cannot be read, is of another certificate or time, or says
    /// something else than that the certificate is good. Where none is shown, clients ask by themselves.
    pub fn beside(path: &Path, certificate: &CertificateDer<'_>) -> Result<Option<Staple>, String> {
        let path = staple_path(path);
        if !path.exists() {
            return Ok(None);
        }
        let bytes = read(&path, RESPONSE_BYTES_MAX).map_err(|error| match error {
            TlsError::Unreadable { source, .. } => {
                format!("{} cannot be read: {source}", path.display())
            }
            error => error.to_string(),
        })?;
        let now = Duration::from_secs(now().as_secs());
        let staple = Staple::new(bytes, certificate, now);
        let staple = staple.map_err(|reason| {
            let path = path.display();
            format!("the OCSP response in {path} {reason}; it is not shown to clients")
        });
        staple.map(Some)
    }

    fn new(
        response: Vec<u8>,
        certificate: &CertificateDer<'_>,
        now: Duration,
    ) -> Result<Staple, String> {
        let broken = |_| "is none, or broken".to_owned();
        let outer = OcspResponse::from_der(&response).map_err(broken)?;
        let bytes = match (outer.response_status, &outer.response_bytes) {
            (OcspResponseStatus::Successful, Some(bytes)) => bytes.response.as_bytes(),
            (status, _) => return Err(format!("says that the request failed ({status:?})")),
        };
        let basic = BasicOcspResponse::from_der(bytes).map_err(broken)?;
        let certificate = Certificate::from_der(certificate).map_err(broken)?;
        let mut single = basic.tbs_response_data.responses.iter();
        let single = single.find(|single| is_of(&single.cert_id, &certificate));
        let single = single.ok_or("is of another certificate")?;
        match single.cert_status {
            CertStatus::Good(_) => {}
            CertStatus::Revoked(_) => return Err("says that the certificate is revoked".to_owned()),
            CertStatus::Unknown(_) => {
                return Err("says that nobody knows the certificate".to_owned());
            }
        }
        let since_1970 = |time: &OcspGeneralizedTime| time.0.to_unix_duration();
        let (from, until) = (
            since_1970(&single.this_update),
            single.next_update.as_ref().map(since_1970),
        );
        if from > now {
            return Err(format!("is of the future ({})", time_text(from)));
        }
        if let Some(until) = until.filter(|until| *until < now) {
            return Err(format!("is over since {}", time_text(until)));
        }
        Ok(Staple {
            response,
            good_until: until,
        })
    }
}

/// Whether a response is of a certificate: of its number, by the name of its authority.
fn is_of(id: &CertId, certificate: &Certificate) -> bool {
    let certificate = &certificate.tbs_certificate;
    let hashes = [SHA1, SHA2];
    let mut hash = hashes
        .iter()
        .filter(|(oid, _)| *oid == id.hash_algorithm.oid);
    let is_issuer = match (hash.next(), certificate.issuer.to_der()) {
        (Some((_, algorithm)), Ok(issuer)) => {
            digest(algorithm, &issuer).as_ref() == id.issuer_name_hash.as_bytes()
        }
        // Nobody could tell.
        _ => true,
    };
    is_issuer && id.serial_number == certificate.serial_number
}

#[cfg(test)]
mod tests;
