//! Whom a certificate is said to be of.

use crate::der::{
    IA5_STRING, OBJECT_IDENTIFIER, PRINTABLE_STRING, SEQUENCE, SET, UTF8_STRING, element,
};

/// The longest name that is read (RFC 5280, appendix A.1: `ub-common-name` and
/// `ub-organizational-unit-name`).
const NAME_BYTES_MAX: usize = 64;

/// `id-at-commonName`, 2.5.4.3.
const COMMON_NAME: [u8; 3] = [0x55, 0x04, 0x03];

/// `id-at-organizationalUnitName`, 2.5.4.11.
const ORGANIZATIONAL_UNIT: [u8; 3] = [0x55, 0x04, 0x0b];

/// The common name in a subject, whose outer tag and length are gone; of several the last, which is the
/// most specific. Names that are empty, too long, or have control characters are none.
pub fn common_name(subject: &[u8]) -> Option<String> {
    texts(subject, COMMON_NAME).pop().flatten()
}

/// The organizational units in a subject, in their order; those that could be no common name are left
/// out.
pub fn organizational_units(subject: &[u8]) -> Vec<String> {
    let units = texts(subject, ORGANIZATIONAL_UNIT);
    units.into_iter().flatten().collect()
}

/// The values of a kind in a subject; `None` for one that is not read.
fn texts(subject: &[u8], wanted: [u8; 3]) -> Vec<Option<String>> {
    let mut parts = subject;
    let mut found = Vec::new();
    // Each round takes an element, so there is an end.
    while let Some((SET, mut set, after)) = element(parts) {
        parts = after;
        while let Some((SEQUENCE, pair, after)) = element(set) {
            set = after;
            if let Some((OBJECT_IDENTIFIER, kind, value)) = element(pair)
                && kind == wanted
            {
                found.push(text(value));
            }
        }
    }
    found
}

fn text(value: &[u8]) -> Option<String> {
    let Some((UTF8_STRING | PRINTABLE_STRING | IA5_STRING, bytes, _)) = element(value) else {
        return None;
    };
    let text = str::from_utf8(bytes).ok()?;
    let is_name = (1..=NAME_BYTES_MAX).contains(&text.len()) && !text.chars().any(char::is_control);
    is_name.then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair};
    use rustls::pki_types::CertificateDer;

    use super::*;

    fn certificate(common_name: &str, units: &[&str]) -> CertificateDer<'static> {
        let mut params = CertificateParams::default();
        let subject = &mut params.distinguished_name;
        subject.push(DnType::OrganizationName, "an organisation");
        subject.push(DnType::CommonName, common_name);
        for unit in units {
            subject.push(DnType::OrganizationalUnitName, *unit);
        }
        let key = KeyPair::generate().unwrap();
        params.self_signed(&key).unwrap().der().clone()
    }

    fn subject_of(certificate: &CertificateDer<'_>) -> Vec<u8> {
        let certificate = webpki::EndEntityCert::try_from(certificate).unwrap();
        certificate.subject().to_vec()
    }

    #[test]
    fn names_are_read_from_certificates() {
        let subject = subject_of(&certificate("sender ä", &["a unit"]));
        assert_eq!(common_name(&subject).as_deref(), Some("sender ä"));
        assert_eq!(organizational_units(&subject), ["a unit"]);
        let long = "x".repeat(NAME_BYTES_MAX + 1);
        for none in ["", "a\nb", "a\0b", &long] {
            let subject = subject_of(&certificate(none, &[none]));
            assert_eq!(common_name(&subject), None, "{none:?}");
            assert!(organizational_units(&subject).is_empty(), "{none:?}");
        }
    }

    fn pair(kind: [u8; 3], text: &[u8]) -> Vec<u8> {
        let length = u8::try_from(text.len()).unwrap();
        let head = [SET, length + 9, SEQUENCE, length + 7, OBJECT_IDENTIFIER, 3];
        [&head[..], &kind, &[UTF8_STRING, length], text].concat()
    }

    #[test]
    fn the_last_common_name_and_all_units_count() {
        let subject = [
            pair(ORGANIZATIONAL_UNIT, b"one"),
            pair(COMMON_NAME, b"general"),
            pair(ORGANIZATIONAL_UNIT, b"two"),
            pair(COMMON_NAME, b"specific"),
        ]
        .concat();
        assert_eq!(common_name(&subject).as_deref(), Some("specific"));
        assert_eq!(organizational_units(&subject), ["one", "two"]);
        // A last one that is not read does not make the one before it count.
        let subject = [pair(COMMON_NAME, b"general"), pair(COMMON_NAME, b"a\xff")].concat();
        assert_eq!(common_name(&subject), None);
    }

    #[test]
    fn broken_names_are_none() {
        let whole = pair(COMMON_NAME, b"abc");
        assert_eq!(common_name(&whole).as_deref(), Some("abc"));
        for end in 0..whole.len() {
            assert_eq!(common_name(&whole[..end]), None);
        }
        for at in 0..whole.len() {
            for wrong in [0, 0x7f, 0x80, 0x81, 0x82, 0x83, 0xff] {
                let mut broken = whole.clone();
                broken[at] = wrong;
                // Nothing panics.
                let _ = (common_name(&broken), organizational_units(&broken));
            }
        }
    }
}
