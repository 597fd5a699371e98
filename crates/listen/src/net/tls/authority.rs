//! The cluster's own authority: makes certificates that only its nodes have.
//!
//! Keys are ECDSA on P-256. The authority signs nothing but ends of chains. Its name holds a part of
//! the hash of its key, so that it follows from the key alone, and two authorities are told apart.
//! Nothing here touches files, and `now` is an argument.

use std::net::IpAddr;
use std::time::Duration;
use std::{error, fmt};

use aws_lc_rs::digest::{SHA256, digest};
use logpond_record::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PublicKeyData, SanType,
};

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::server::ParsedCertificate;

use super::role::node_uri;

/// How long an authority holds.
const AUTHORITY_VALID: Duration = Duration::from_secs(3_653 * 86_400);

/// How long a node's certificate holds unless told otherwise.
pub const NODE_VALID: Duration = Duration::from_secs(365 * 86_400);

/// How far a certificate reaches back, for machines whose clocks are behind.
const CLOCK_SKEW_MAX: Duration = Duration::from_secs(300);

/// Bytes of the hash in the authority's name.
const NAME_HASH_BYTES: usize = 4;

/// A certificate and its private key, in PEM.
pub struct IssuedCertificate {
    /// The certificate.
    pub certificate: String,
    /// The key, PKCS #8. A secret.
    pub key: String,
}

/// What one end of a certificate is called by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Name {
    /// An IP address.
    Address(IpAddr),
    /// A DNS name, without a wildcard.
    Dns(String),
}

/// Why an authority cannot be used.
#[derive(Debug)]
pub enum OpenError {
    /// Its key is none.
    Key(rcgen::Error),
    /// Its certificate is none.
    Certificate,
    /// Its certificate is that of another key.
    Mismatch,
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            OpenError::Key(_) => "the authority's key cannot be used",
            OpenError::Certificate => "the authority's certificate cannot be used",
            OpenError::Mismatch => "the authority's key is not that of its certificate",
        })
    }
}

impl error::Error for OpenError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            OpenError::Key(source) => Some(source),
            _ => None,
        }
    }
}

/// An authority with its key.
pub struct Authority {
    pub(super) issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// Makes an authority. Gives its certificate and key.
    ///
    /// # Errors
    /// When there is no randomness for a key.
    pub fn create(now: Timestamp) -> Result<IssuedCertificate, rcgen::Error> {
        let key = KeyPair::generate()?;
        let mut params = params_of(&key);
        set_validity(&mut params, now, AUTHORITY_VALID);
        let certificate = params.self_signed(&key)?;
        Ok(IssuedCertificate {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        })
    }

    /// The authority of this certificate and key, in PEM.
    ///
    /// # Errors
    /// When they are none, or do not belong together.
    pub fn open(certificate: &str, key: &str) -> Result<Authority, OpenError> {
        let key = KeyPair::from_pem(key).map_err(OpenError::Key)?;
        let certificate = CertificateDer::from_pem_slice(certificate.as_bytes());
        let certificate = certificate.map_err(|_| OpenError::Certificate)?;
        let parsed = ParsedCertificate::try_from(&certificate);
        let parsed = parsed.map_err(|_| OpenError::Certificate)?;
        if parsed.subject_public_key_info().as_ref() != key.subject_public_key_info() {
            return Err(OpenError::Mismatch);
        }
        Ok(Authority {
            issuer: Issuer::new(params_of(&key), key),
        })
    }

    /// Makes the certificate of a node: it serves as that of a server at each of `names` and as that
    /// of a client, and says that it is a node.
    ///
    /// # Errors
    /// When a name cannot be one, or there is no randomness for a key.
    pub fn issue_node(
        &self,
        name: &str,
        names: &[Name],
        now: Timestamp,
        valid: Duration,
    ) -> Result<IssuedCertificate, rcgen::Error> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::default();
        params.distinguished_name.remove(DnType::CommonName);
        params.distinguished_name.push(DnType::CommonName, name);
        for name in names {
            params.subject_alt_names.push(match name {
                Name::Address(address) => SanType::IpAddress(*address),
                Name::Dns(name) => SanType::DnsName(name.as_str().try_into()?),
            });
        }
        let role = SanType::URI(node_uri(name).as_str().try_into()?);
        params.subject_alt_names.push(role);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        params.use_authority_key_identifier_extension = true;
        set_validity(&mut params, now, valid);
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(IssuedCertificate {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        })
    }
}

/// What is the same in an authority's own certificate and in what it signs.
fn params_of(key: &KeyPair) -> CertificateParams {
    let hash = digest(&SHA256, key.public_key_raw());
    let hash: String = hash.as_ref()[..NAME_HASH_BYTES]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let mut params = CertificateParams::default();
    let name = format!("Logpond cluster authority {hash}");
    params.distinguished_name.remove(DnType::CommonName);
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

fn set_validity(params: &mut CertificateParams, now: Timestamp, valid: Duration) {
    let (seconds, _) = now.seconds();
    let now = Duration::from_secs(seconds.try_into().unwrap_or(0));
    let start = rcgen::date_time_ymd(1970, 1, 1);
    params.not_before = start + now.saturating_sub(CLOCK_SKEW_MAX);
    params.not_after = start + now + valid;
}
