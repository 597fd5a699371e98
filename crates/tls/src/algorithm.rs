//! What a certificate is signed by, and what its key is of, as OpenSSL names them.

use rustls::pki_types::CertificateDer;

use crate::der::{BIT_STRING, INTEGER, OBJECT_IDENTIFIER, SEQUENCE, tagged};

/// Signatures that certificates have (RFC 4055, 5758 and 8410).
const SIGNATURES: [(&[u8], &str); 8] = [
    (
        &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 11],
        "RSA-SHA256",
    ),
    (
        &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 12],
        "RSA-SHA384",
    ),
    (
        &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 13],
        "RSA-SHA512",
    ),
    (
        &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 10],
        "RSASSA-PSS",
    ),
    (
        &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2],
        "ecdsa-with-SHA256",
    ),
    (
        &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 3],
        "ecdsa-with-SHA384",
    ),
    (
        &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 4],
        "ecdsa-with-SHA512",
    ),
    (&[0x2b, 0x65, 0x70], "ED25519"),
];

/// Kinds of keys (RFC 3279 and 8410).
const RSA_KEY: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1];
const EC_KEY: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1];
const ED25519_KEY: &[u8] = &[0x2b, 0x65, 0x70];

/// Curves (RFC 5480).
const CURVES: [(&[u8], &str); 3] = [
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7], "EC256"),
    (&[0x2b, 0x81, 0x04, 0, 0x22], "EC384"),
    (&[0x2b, 0x81, 0x04, 0, 0x23], "EC521"),
];

/// What a certificate is signed by, such as `ecdsa-with-SHA256`; `None` if that has no name here.
pub fn signature_algorithm(certificate: &CertificateDer<'_>) -> Option<&'static str> {
    let (whole, _) = tagged(SEQUENCE, certificate)?;
    let (_, rest) = tagged(SEQUENCE, whole)?;
    let (algorithm, _) = tagged(SEQUENCE, rest)?;
    let (kind, _) = tagged(OBJECT_IDENTIFIER, algorithm)?;
    named(&SIGNATURES, kind)
}

/// What a certificate's key is of, such as `RSA2048` or `EC256`; `None` if that has no name here.
pub fn key_algorithm(certificate: &CertificateDer<'_>) -> Option<String> {
    let certificate = webpki::EndEntityCert::try_from(certificate).ok()?;
    let info = certificate.subject_public_key_info();
    let (info, _) = tagged(SEQUENCE, &info)?;
    let (algorithm, key) = tagged(SEQUENCE, info)?;
    match tagged(OBJECT_IDENTIFIER, algorithm)? {
        (RSA_KEY, _) => Some(format!("RSA{}", modulus_bits(key)?)),
        (EC_KEY, curve) => {
            let (curve, _) = tagged(OBJECT_IDENTIFIER, curve)?;
            named(&CURVES, curve).map(str::to_owned)
        }
        (ED25519_KEY, _) => Some("ED25519".to_owned()),
        _ => None,
    }
}

/// The length of an RSA key, which is a bit string with two numbers in it.
fn modulus_bits(key: &[u8]) -> Option<usize> {
    let (bits, _) = tagged(BIT_STRING, key)?;
    let (numbers, _) = tagged(SEQUENCE, bits.split_first()?.1)?;
    let (modulus, _) = tagged(INTEGER, numbers)?;
    let zeros = modulus.iter().take_while(|byte| **byte == 0).count();
    let first = modulus.get(zeros)?;
    Some((modulus.len() - zeros) * 8 - first.leading_zeros() as usize)
}

fn named(table: &[(&[u8], &'static str)], wanted: &[u8]) -> Option<&'static str> {
    let found = table.iter().find(|(kind, _)| *kind == wanted);
    found.map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, SignatureAlgorithm};

    use super::*;

    fn certificate(algorithm: &'static SignatureAlgorithm) -> CertificateDer<'static> {
        let key = KeyPair::generate_for(algorithm).unwrap();
        let own = CertificateParams::default().self_signed(&key).unwrap();
        own.der().clone()
    }

    #[test]
    fn algorithms_have_the_names_of_openssl() {
        let table = [
            (&rcgen::PKCS_RSA_SHA256, "RSA-SHA256", "RSA2048"),
            (&rcgen::PKCS_RSA_SHA512, "RSA-SHA512", "RSA2048"),
            (&rcgen::PKCS_ECDSA_P256_SHA256, "ecdsa-with-SHA256", "EC256"),
            (&rcgen::PKCS_ECDSA_P384_SHA384, "ecdsa-with-SHA384", "EC384"),
            (&rcgen::PKCS_ED25519, "ED25519", "ED25519"),
        ];
        for (algorithm, signature, key) in table {
            let certificate = certificate(algorithm);
            assert_eq!(signature_algorithm(&certificate), Some(signature));
            assert_eq!(key_algorithm(&certificate).as_deref(), Some(key));
        }
    }

    #[test]
    fn what_is_no_certificate_has_none() {
        let whole = certificate(&rcgen::PKCS_ECDSA_P256_SHA256);
        for end in 0..whole.len() {
            let part = CertificateDer::from(whole[..end].to_vec());
            assert_eq!(signature_algorithm(&part), None);
            assert_eq!(key_algorithm(&part), None);
        }
    }
}
