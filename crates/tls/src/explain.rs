//! What a failed handshake means, in words about the other end.

use std::io;

use rustls::{AlertDescription, CertificateError, Error};

use super::error::time_text;

/// The TLS error that an error of a connection is about, if it is about one.
pub fn tls_error(error: &io::Error) -> Option<&Error> {
    error.get_ref()?.downcast_ref()
}

/// What is wrong, said of the peer: `its certificate expired at …`.
pub fn explain(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(error) => explain_certificate(error),
        Error::NoCertificatesPresented => "it shows no certificate".to_owned(),
        Error::AlertReceived(alert) => explain_alert(*alert),
        Error::InvalidMessage(_) => "it does not speak TLS".to_owned(),
        Error::PeerIncompatible(_) => "no version of TLS or no cipher is in common".to_owned(),
        other => other.to_string(),
    }
}

fn explain_certificate(error: &CertificateError) -> String {
    let moment = |time: &rustls::pki_types::UnixTime| {
        time_text(std::time::Duration::from_secs(time.as_secs()))
    };
    match error {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "its certificate is of an authority that is not trusted here".to_owned()
        }
        CertificateError::ExpiredContext { not_after, .. } => {
            format!("its certificate expired at {}", moment(not_after))
        }
        CertificateError::NotValidYetContext { not_before, .. } => format!(
            "its certificate is valid only from {}; are both clocks right?",
            moment(not_before)
        ),
        CertificateError::Revoked => "its certificate was revoked by its authority".to_owned(),
        CertificateError::UnknownRevocationStatus => {
            "there is no revocation list of its certificate's authority".to_owned()
        }
        CertificateError::ExpiredRevocationListContext { next_update, .. } => format!(
            "the revocation list of its certificate's authority expired at {}",
            moment(next_update)
        ),
        CertificateError::ApplicationVerificationFailure => {
            "its certificate is none of those that are let in".to_owned()
        }
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "its certificate is for another purpose".to_owned()
        }
        other => format!("its certificate is refused: {other}"),
    }
}

/// What the peer says of this end (RFC 8446, section 6.2).
fn explain_alert(alert: AlertDescription) -> String {
    let text = match alert {
        AlertDescription::CertificateRequired => "it wants a certificate, and was shown none",
        AlertDescription::UnknownCA => {
            "it does not trust the authority of the certificate that it was shown"
        }
        AlertDescription::CertificateRevoked => "the certificate that it was shown was revoked",
        AlertDescription::CertificateExpired => "the certificate that it was shown has expired",
        AlertDescription::AccessDenied => {
            "the certificate that it was shown is none of those that it lets in"
        }
        AlertDescription::ProtocolVersion | AlertDescription::HandshakeFailure => {
            "no version of TLS or no cipher is in common"
        }
        AlertDescription::BadCertificate
        | AlertDescription::UnsupportedCertificate
        | AlertDescription::CertificateUnknown
        | AlertDescription::DecryptError => {
            return format!("it refuses the certificate that it was shown ({alert:?})");
        }
        _ => return format!("it ended the handshake ({alert:?})"),
    };
    text.to_owned()
}
