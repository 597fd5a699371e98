//! Who may connect where clients show certificates (RFC 5425, section 4.2 and 5).
//!
//! A client is let in by the fingerprint of its certificate, whoever signed it, or by an authority, and
//! then by a name of its certificate if names are asked for.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use aws_lc_rs::digest::{self, Algorithm, SHA1_FOR_LEGACY_USE_ONLY, SHA256};
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, RootCertStore,
    SignatureScheme,
};

use crate::client_name::names_of;
use crate::provider;

/// The longest name of a host (RFC 1035, section 2.3.4).
const NAME_BYTES_MAX: usize = 253;

/// A client that is let in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Peer {
    /// Whose certificate has this fingerprint of the kind that its length says (SHA-1 or SHA-256).
    Fingerprint(Vec<u8>),
    /// Whose certificate is for this host; `*.` stands for one label.
    Name(String),
}

impl Peer {
    /// Reads `sha-1:AA:BB…`, `sha-256:AA:BB…` (RFC 5425, section 4.2.2), or a name.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn parse(text: &str) -> Result<Peer, String> {
        let lower = text.to_ascii_lowercase();
        let (bytes, digits) = match lower.split_once(':') {
            Some(("sha-1" | "sha1", digits)) => (20, digits),
            Some(("sha-256" | "sha256", digits)) => (32, digits),
            Some(_) => return Err(format!("'{text}' is neither sha-1:…, sha-256:… nor a name")),
            None => return Peer::name(&lower),
        };
        let read = digits.split(':').map(|pair| match pair.len() {
            2 => u8::from_str_radix(pair, 16).ok(),
            _ => None,
        });
        let read: Option<Vec<u8>> = read.collect();
        let read = read.filter(|read| read.len() == bytes);
        read.map(Peer::Fingerprint).ok_or_else(|| {
            format!(
                "expected {bytes} pairs of hexadecimal digits with colons between them in '{text}'"
            )
        })
    }

    fn name(lower: &str) -> Result<Peer, String> {
        let plain = lower.strip_prefix("*.").unwrap_or(lower);
        let is_allowed =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
        if (1..=NAME_BYTES_MAX).contains(&plain.len()) && plain.bytes().all(is_allowed) {
            Ok(Peer::Name(lower.to_owned()))
        } else {
            Err(format!("'{lower}' is no name of a host"))
        }
    }

    pub(super) fn has_fingerprint(&self, certificate: &CertificateDer<'_>) -> bool {
        let Peer::Fingerprint(expected) = self else {
            return false;
        };
        let of = |algorithm: &'static Algorithm| digest::digest(algorithm, certificate);
        match expected.len() {
            20 => of(&SHA1_FOR_LEGACY_USE_ONLY).as_ref() == expected,
            _ => of(&SHA256).as_ref() == expected,
        }
    }

    /// Whether a name of a certificate is this one's. A wildcard in either stands for one label.
    pub(super) fn has_name(&self, of_certificate: &str) -> bool {
        let Peer::Name(wanted) = self else {
            return false;
        };
        let of_certificate = of_certificate.to_ascii_lowercase();
        let behind_label = |name: &str| name.split_once('.').map(|(_, rest)| rest.to_owned());
        match (wanted.strip_prefix("*."), of_certificate.strip_prefix("*.")) {
            (Some(wanted), Some(of_certificate)) => wanted == of_certificate,
            (Some(wanted), None) => behind_label(&of_certificate).as_deref() == Some(wanted),
            (None, Some(of_certificate)) => behind_label(wanted).as_deref() == Some(of_certificate),
            (None, None) => *wanted == of_certificate,
        }
    }
}

/// Which clients may connect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientRules {
    /// The file of the authorities that sign for clients, if any do.
    pub authorities: Option<PathBuf>,
    /// Fingerprints and names; with none, whom an authority has signed.
    pub peers: Vec<Peer>,
}

impl ClientRules {
    /// Whether clients need no certificate.
    pub fn are_open(&self) -> bool {
        self.authorities.is_none() && self.peers.is_empty()
    }
}

/// Checks certificates of clients by authorities, fingerprints and names.
pub struct Clients {
    /// Who signs, if anybody is trusted for that.
    authority: Option<Arc<dyn ClientCertVerifier>>,
    peers: Vec<Peer>,
}

impl Clients {
    /// Lets in whom an authority has signed, if any is given, and whom `peers` name.
    ///
    /// # Errors
    /// When an authority cannot be used.
    pub fn new(
        authorities: &[CertificateDer<'static>],
        peers: Vec<Peer>,
    ) -> Result<Clients, String> {
        let mut roots = RootCertStore::empty();
        for authority in authorities {
            let added = roots.add(authority.clone());
            added.map_err(|error| error.to_string())?;
        }
        let authority = if roots.is_empty() {
            None
        } else {
            let built =
                WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider()).build();
            Some(built.map_err(|error| error.to_string())?)
        };
        Ok(Clients { authority, peers })
    }

    fn is_named(&self, certificate: &CertificateDer<'_>) -> bool {
        let mut names = self
            .peers
            .iter()
            .filter(|peer| matches!(peer, Peer::Name(_)))
            .peekable();
        if names.peek().is_none() {
            // With an authority alone all that it signed get in.
            return self.peers.is_empty();
        }
        let of_certificate = names_of(certificate);
        names.any(|peer| of_certificate.iter().any(|name| peer.has_name(name)))
    }
}

impl fmt::Debug for Clients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clients")
            .field("peers", &self.peers)
            .finish_non_exhaustive()
    }
}

impl ClientCertVerifier for Clients {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        let authority = self.authority.as_ref();
        // A certificate that is known by its fingerprint may be anybody's.
        if self
            .peers
            .iter()
            .any(|peer| matches!(peer, Peer::Fingerprint(_)))
        {
            &[]
        } else {
            authority.map_or(&[], |authority| authority.root_hint_subjects())
        }
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        if self
            .peers
            .iter()
            .any(|peer| peer.has_fingerprint(certificate))
        {
            return Ok(ClientCertVerified::assertion());
        }
        let Some(authority) = &self.authority else {
            return Err(CertificateError::UnknownIssuer.into());
        };
        let verified = authority.verify_client_cert(certificate, between, now)?;
        if self.is_named(certificate) {
            Ok(verified)
        } else {
            Err(CertificateError::ApplicationVerificationFailure.into())
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &provider().signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &provider().signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        provider()
            .signature_verification_algorithms
            .supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_are_fingerprints_and_names() {
        let digits = |count: usize| vec!["0A"; count].join(":");
        let sha1 = Peer::parse(&format!("sha-1:{}", digits(20)));
        assert_eq!(sha1, Ok(Peer::Fingerprint(vec![10; 20])));
        let sha256 = Peer::parse(&format!("SHA-256:{}", digits(32)));
        assert_eq!(sha256, Ok(Peer::Fingerprint(vec![10; 32])));
        assert_eq!(
            Peer::parse("Host.example"),
            Ok(Peer::Name("host.example".to_owned()))
        );
        let short = format!("sha-256:{}", digits(20));
        for wrong in [&*short, "sha-1:xx", "md5:00", "a b", "*", ""] {
            assert!(Peer::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_wildcard_is_one_label() {
        let table = [
            ("a.example.org", "a.example.org", true),
            ("a.example.org", "A.Example.ORG", true),
            ("a.example.org", "b.example.org", false),
            ("*.example.org", "a.example.org", true),
            ("*.example.org", "a.b.example.org", false),
            ("*.example.org", "example.org", false),
            ("*.example.org", "*.example.org", true),
            ("a.example.org", "*.example.org", true),
            ("a.b.example.org", "*.example.org", false),
        ];
        for (wanted, of_certificate, expected) in table {
            let peer = Peer::parse(wanted).unwrap();
            assert_eq!(
                peer.has_name(of_certificate),
                expected,
                "{wanted} {of_certificate}"
            );
        }
    }
}
