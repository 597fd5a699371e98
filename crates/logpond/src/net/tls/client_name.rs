//! What clients are called by their certificates (RFC 5425, sections 4.2.2 and 5.2).

use aws_lc_rs::digest::{self, SHA256};
use rustls::pki_types::CertificateDer;

use super::clients::Peer;

/// The longest common name that is read (RFC 5280, appendix A.1: `ub-common-name`).
const COMMON_NAME_BYTES_MAX: usize = 64;

/// Tags of ASN.1 (X.690, section 8) that names are made of.
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OBJECT_IDENTIFIER: u8 = 0x06;
const UTF8_STRING: u8 = 0x0c;
const PRINTABLE_STRING: u8 = 0x13;

/// `id-at-commonName`, 2.5.4.3.
const COMMON_NAME: [u8; 3] = [0x55, 0x04, 0x03];

/// The name under which a client with this certificate was let in.
pub(super) fn name_of(certificate: &CertificateDer<'_>, peers: &[Peer]) -> String {
    let by_fingerprint = peers.iter().find(|peer| peer.has_fingerprint(certificate));
    if let Some(Peer::Fingerprint(digest)) = by_fingerprint {
        return fingerprint(digest);
    }
    let names = names_of(certificate);
    let is_asked_for = |name: &&String| peers.iter().any(|peer| peer.has_name(name));
    match names.iter().find(is_asked_for).or(names.first()) {
        Some(name) => name.clone(),
        None => fingerprint(digest::digest(&SHA256, certificate).as_ref()),
    }
}

/// The names of hosts in a certificate; only if it has none, its common name.
pub(super) fn names_of(certificate: &CertificateDer<'_>) -> Vec<String> {
    let Ok(certificate) = webpki::EndEntityCert::try_from(certificate) else {
        return Vec::new();
    };
    let names: Vec<String> = certificate.valid_dns_names().map(str::to_owned).collect();
    match names.is_empty() {
        true => common_name(certificate.subject()).into_iter().collect(),
        false => names,
    }
}

/// As it is written in the settings.
fn fingerprint(digest: &[u8]) -> String {
    let kind = if digest.len() == 20 {
        "sha-1"
    } else {
        "sha-256"
    };
    let pairs: Vec<String> = digest.iter().map(|byte| format!("{byte:02X}")).collect();
    format!("{kind}:{}", pairs.join(":"))
}

/// The common name in a subject, whose outer tag and length are gone.
fn common_name(subject: &[u8]) -> Option<String> {
    let mut parts = subject;
    let mut found = None;
    // Each round takes an element, so there is an end. The last one is the most specific.
    while let Some((SET, mut set, after)) = element(parts) {
        parts = after;
        while let Some((SEQUENCE, pair, after)) = element(set) {
            set = after;
            if let Some((OBJECT_IDENTIFIER, kind, value)) = element(pair)
                && kind == COMMON_NAME
                && let Some((UTF8_STRING | PRINTABLE_STRING, text, _)) = element(value)
            {
                found = Some(text);
            }
        }
    }
    let text = std::str::from_utf8(found?).ok()?;
    let is_name =
        (1..=COMMON_NAME_BYTES_MAX).contains(&text.len()) && !text.chars().any(char::is_control);
    is_name.then(|| text.to_owned())
}

/// The first element of DER: its tag, what is in it, and what follows. Elements are short here: a
/// length takes three bytes at most.
fn element(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (length, rest) = match der {
        [_, 0x81, length, rest @ ..] => (usize::from(*length), rest),
        [_, 0x82, high, low, rest @ ..] => (usize::from(u16::from_be_bytes([*high, *low])), rest),
        [_, length, rest @ ..] if *length < 0x80 => (usize::from(*length), rest),
        _ => return None,
    };
    let (inside, after) = rest.split_at_checked(length)?;
    Some((der[0], inside, after))
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair};

    use super::*;

    fn certificate(common_name: &str, names: &[&str]) -> CertificateDer<'static> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        let subject = &mut params.distinguished_name;
        subject.push(DnType::OrganizationName, "an organisation");
        subject.push(DnType::CommonName, common_name);
        let key = KeyPair::generate().unwrap();
        params.self_signed(&key).unwrap().der().clone()
    }

    fn peer(text: &str) -> Peer {
        Peer::parse(text).unwrap()
    }

    #[test]
    fn a_client_is_called_as_it_was_let_in() {
        let two = certificate("common", &["a.example.org", "b.example.org"]);
        assert_eq!(name_of(&two, &[]), "a.example.org");
        assert_eq!(name_of(&two, &[peer("b.example.org")]), "b.example.org");
        assert_eq!(name_of(&two, &[peer("*.example.org")]), "a.example.org");
        let digest = digest::digest(&SHA256, &two);
        let text = fingerprint(digest.as_ref());
        assert_eq!(text.len(), "sha-256:".len() + 32 * 3 - 1);
        assert_eq!(name_of(&two, &[peer("c.example.org"), peer(&text)]), text);
        let nameless = certificate("", &["192.0.2.7"]);
        assert_eq!(
            name_of(&nameless, &[]),
            fingerprint(digest::digest(&SHA256, &nameless).as_ref())
        );
    }

    #[test]
    fn a_common_name_counts_where_there_is_no_other() {
        assert_eq!(names_of(&certificate("sender", &[])), ["sender"]);
        assert_eq!(names_of(&certificate("sender", &["192.0.2.7"])), ["sender"]);
        assert_eq!(
            names_of(&certificate("sender", &["a.example"])),
            ["a.example"]
        );
        let long = "x".repeat(COMMON_NAME_BYTES_MAX + 1);
        for none in ["", "a\nb", &long] {
            assert!(names_of(&certificate(none, &[])).is_empty(), "{none}");
        }
        assert!(names_of(&CertificateDer::from(b"no certificate".to_vec())).is_empty());
    }

    #[test]
    fn broken_names_are_none() {
        let whole = [
            &[SET, 12, SEQUENCE, 10, OBJECT_IDENTIFIER, 3][..],
            &COMMON_NAME,
            b"\x0c\x03abc",
        ];
        let whole = whole.concat();
        assert_eq!(common_name(&whole).as_deref(), Some("abc"));
        for end in 0..whole.len() {
            assert_eq!(common_name(&whole[..end]), None);
        }
        for at in 0..whole.len() {
            for wrong in [0, 0x7f, 0x80, 0x81, 0x82, 0xff] {
                let mut broken = whole.clone();
                broken[at] = wrong;
                // Nothing panics.
                let _ = common_name(&broken);
            }
        }
    }
}
