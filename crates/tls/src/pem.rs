//! Files of certificates and keys.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::TlsError;

/// The longest file that is read: the bundle of all public authorities has a quarter of it.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Reads the certificates of a PEM file, in their order; there is at least one.
///
/// # Errors
/// When the file cannot be read, holds none, or a broken one.
pub fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    certificates(&read(path, FILE_BYTES_MAX)?, path)
}

/// The certificates in a text that is, or will be, in this file.
pub(super) fn certificates(
    text: &[u8],
    path: &Path,
) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => Err(not_pem(path, CERTIFICATE, &pem::Error::NoItemsFound)),
        Err(error) => Err(not_pem(path, CERTIFICATE, &error)),
    }
}

/// Reads the first private key of a PEM file: PKCS #8, SEC 1 or PKCS #1. Gives the file's text, too.
///
/// # Errors
/// When the file cannot be read, holds none, or a broken one.
pub(super) fn read_key(path: &Path) -> Result<(PrivateKeyDer<'static>, Vec<u8>), TlsError> {
    let text = read(path, FILE_BYTES_MAX)?;
    Ok((key(&text, path)?, text))
}

/// The first private key in a text that is, or will be, in this file.
pub(super) fn key(text: &[u8], path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_slice(text).map_err(|error| {
        let mut error = not_pem(path, "private key", &error);
        let is_encrypted = memchr::memmem::find(text, b"ENCRYPTED").is_some();
        if let (true, TlsError::NotPem { reason, .. }) = (is_encrypted, &mut error) {
            *reason = "it is encrypted by a password".to_owned();
        }
        error
    })
}

const CERTIFICATE: &str = "certificate";

/// What is in a file of at most so many bytes.
pub(super) fn read(path: &Path, bytes_max: u64) -> Result<Vec<u8>, TlsError> {
    let unreadable = |source| TlsError::Unreadable {
        path: path.to_owned(),
        source,
    };
    let mut text = Vec::new();
    File::open(path)
        .and_then(|file| file.take(bytes_max + 1).read_to_end(&mut text))
        .map_err(unreadable)?;
    if text.len() as u64 > bytes_max {
        let reason = format!("it is longer than {bytes_max} bytes");
        return Err(unreadable(io::Error::new(ErrorKind::FileTooLarge, reason)));
    }
    Ok(text)
}

pub(super) fn not_pem(path: &Path, expected: &'static str, error: &pem::Error) -> TlsError {
    // The library's own words print bytes as numbers, and could show parts of a key.
    let reason = match error {
        pem::Error::NoItemsFound => "there is none in it",
        pem::Error::MissingSectionEnd { .. } => "an '-----END …' line is missing",
        pem::Error::IllegalSectionStart { .. } => "a '-----BEGIN …' line is broken",
        pem::Error::Base64Decode(_) => "it is not base 64",
        _ => "it cannot be parsed",
    };
    TlsError::NotPem {
        path: path.to_owned(),
        expected,
        reason: reason.to_owned(),
    }
}
