//! What a failed handshake means, in words about the other end.

use rustls::{AlertDescription, CertificateError, Error};

use logpond_tls::tls_error;

/// The TLS error that a failed request is about, if it is about one.
pub fn tls_error_of_request(error: &ureq::Error) -> Option<&Error> {
    match error {
        ureq::Error::Rustls(error) => Some(error),
        ureq::Error::Io(error) => tls_error(error),
        _ => None,
    }
}

/// What is wrong, said of the peer: `its certificate expired at …`. Who is let in by what a
/// certificate says of its owner is a node.
pub fn explain(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure) => {
            "its certificate is not one of a node".to_owned()
        }
        Error::AlertReceived(AlertDescription::AccessDenied) => {
            "the certificate that it was shown is not one of a node".to_owned()
        }
        other => logpond_tls::explain(other),
    }
}
