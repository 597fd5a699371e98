//! Whether clients show certificates, and which clients are let in.
//!
//! Invariant: nobody is let in whom the authorities, the revocation lists and the rules that are there at
//! the end of its handshake do not let in. Handshakes that resume a session verify nothing by
//! themselves, and others may have begun before a change, so that these clients are judged again.

use std::cell::RefCell;
use std::sync::Arc;

use logpond_tls::{ClientFiles, ClientTrust, TlsError};
use rustls::client::danger::HandshakeSignatureValid;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};

use crate::ClientRule;

thread_local! {
    /// The certificate that this thread refused last. The library calls the verifier while it is given
    /// the certificate's bytes, and tells nowhere else what it was.
    static REFUSED: RefCell<Option<CertificateDer<'static>>> = const { RefCell::new(None) };
}

/// The certificate that the bytes held which the library was just given by this thread, once, if it was
/// refused. Whether it is the client's own is not known.
pub(crate) fn refused_certificate() -> Option<CertificateDer<'static>> {
    REFUSED.take()
}

/// Which clients are let in by certificates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientAuth {
    /// Whether clients without a certificate are let in. Those with one must have a good one even so.
    pub is_optional: bool,
    /// By what certificates are judged.
    pub files: ClientFiles,
    /// Of those that are good, the ones that meet any of these are let in; with none, all.
    pub rules: Vec<ClientRule>,
}

/// Judges clients.
#[derive(Debug)]
pub(crate) struct Clients {
    auth: ClientAuth,
    trust: ClientTrust,
}

/// Whether the same clients are let in.
impl PartialEq for Clients {
    fn eq(&self, other: &Clients) -> bool {
        self.auth == other.auth && self.trust == other.trust
    }
}

impl Clients {
    /// Reads the files.
    ///
    /// # Errors
    /// When they cannot be used; see [`TlsError`].
    pub(crate) fn load(auth: ClientAuth) -> Result<Arc<Clients>, TlsError> {
        let trust = ClientTrust::load(&auth.files, !auth.is_optional)?;
        Ok(Arc::new(Clients { auth, trust }))
    }

    /// Judges a client by what it has shown, now or when its session began.
    ///
    /// # Errors
    /// Why it is not let in.
    pub(crate) fn judge(
        &self,
        chain: Option<&[CertificateDer<'_>]>,
        now: UnixTime,
    ) -> Result<(), Error> {
        match chain.and_then(<[_]>::split_first) {
            Some((own, between)) => self.judge_certificate(own, between, now),
            None if self.auth.is_optional => Ok(()),
            None => Err(Error::NoCertificatesPresented),
        }
    }

    fn judge_certificate(
        &self,
        own: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), Error> {
        self.trust.judge(own, between, now)?;
        let rules = &self.auth.rules;
        if rules.is_empty() || rules.iter().any(|rule| rule.is_met(own)) {
            Ok(())
        } else {
            // The client is told that access is denied.
            Err(CertificateError::ApplicationVerificationFailure.into())
        }
    }

    fn verifier(&self) -> &dyn ClientCertVerifier {
        &**self.trust.verifier()
    }
}

impl ClientCertVerifier for Clients {
    fn client_auth_mandatory(&self) -> bool {
        !self.auth.is_optional
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.verifier().root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        own: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let judged = self.judge_certificate(own, between, now);
        if judged.is_err() {
            REFUSED.set(Some(own.clone().into_owned()));
        }
        judged.map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let verifier = self.verifier();
        verifier.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let verifier = self.verifier();
        verifier.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.verifier().supported_verify_schemes()
    }
}
