//! What clients are called by their certificates (RFC 5425, sections 4.2.2 and 5.2).

use aws_lc_rs::digest::{self, SHA256};
use rustls::pki_types::CertificateDer;

use crate::common_name;
use crate::peers::Peer;

/// The name under which a client with this certificate was let in.
pub fn client_name(certificate: &CertificateDer<'_>, peers: &[Peer]) -> String {
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
    if names.is_empty() {
        common_name(certificate.subject()).into_iter().collect()
    } else {
        names
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
        assert_eq!(client_name(&two, &[]), "a.example.org");
        assert_eq!(client_name(&two, &[peer("b.example.org")]), "b.example.org");
        assert_eq!(client_name(&two, &[peer("*.example.org")]), "a.example.org");
        let digest = digest::digest(&SHA256, &two);
        let text = fingerprint(digest.as_ref());
        assert_eq!(text.len(), "sha-256:".len() + 32 * 3 - 1);
        assert_eq!(
            client_name(&two, &[peer("c.example.org"), peer(&text)]),
            text
        );
        let nameless = certificate("", &["192.0.2.7"]);
        assert_eq!(
            client_name(&nameless, &[]),
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
        for none in ["", "a\nb"] {
            assert!(names_of(&certificate(none, &[])).is_empty(), "{none}");
        }
        assert!(names_of(&CertificateDer::from(b"no certificate".to_vec())).is_empty());
    }
}
