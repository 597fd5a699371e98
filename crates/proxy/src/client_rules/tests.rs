use rcgen::{CertificateParams, DnType, KeyPair, PublicKeyData, SanType};

use super::*;

/// A certificate of this subject and these names.
fn certificate(common_name: &str, unit: &str, names: &[SanType]) -> CertificateDer<'static> {
    let mut params = CertificateParams::default();
    let subject = &mut params.distinguished_name;
    subject.push(DnType::OrganizationalUnitName, unit);
    subject.push(DnType::CommonName, common_name);
    params.subject_alt_names = names.to_vec();
    let key = KeyPair::generate().unwrap();
    params.self_signed(&key).unwrap().der().clone()
}

fn dns_name(name: &str) -> SanType {
    SanType::DnsName(name.try_into().unwrap())
}

fn is_met(rule: &str, certificate: &CertificateDer<'_>) -> bool {
    rule.parse::<ClientRule>().unwrap().is_met(certificate)
}

#[test]
fn rules_ask_for_what_they_name_and_nothing_else() {
    let certificate = certificate(
        "billing",
        "payments",
        &[
            dns_name("a.example.org"),
            dns_name("*.wild.example.org"),
            SanType::URI("spiffe://example.org/ns/prod/sa/web".try_into().unwrap()),
            SanType::IpAddress("192.0.2.7".parse().unwrap()),
            SanType::IpAddress("2001:db8::7".parse().unwrap()),
        ],
    );
    for rule in [
        "cn=billing",
        "ou=payments",
        "dns=a.example.org",
        "dns=A.Example.ORG",
        "dns=*.example.org",
        "dns=*.wild.example.org",
        "uri=spiffe://example.org/ns/prod/sa/web",
        "uri=spiffe://example.org/ns/*/sa/*",
        "uri=spiffe://example.org/**",
        "uri=spiffe://example.org/ns/prod/sa/**",
        "ip=192.0.2.7",
        "ip=2001:db8:0::7",
    ] {
        assert!(is_met(rule, &certificate), "{rule}");
    }
    for rule in [
        "cn=Billing",
        "cn=payments",
        "cn=a.example.org",
        "ou=billing",
        "dns=billing",
        "dns=example.org",
        "dns=*.org",
        // A wildcard in a certificate makes nobody another host.
        "dns=b.wild.example.org",
        "uri=spiffe://example.org/ns/prod/sa",
        "uri=spiffe://example.org/*",
        "uri=spiffe://example.org/ns/prod/sa/web/**",
        "uri=spiffe://example.com/**",
        "uri=SPIFFE://example.org/ns/prod/sa/web",
        "ip=192.0.2.8",
        "ip=::ffff:192.0.2.7",
    ] {
        assert!(!is_met(rule, &certificate), "{rule}");
    }
    assert!(!is_met(
        "cn=billing",
        &CertificateDer::from(b"none".to_vec())
    ));
}

#[test]
fn parts_of_uris_are_whole_and_plain() {
    let table = [
        ("spiffe://a/*", "spiffe://a/b", true),
        ("spiffe://a/*", "spiffe://a/", false),
        ("spiffe://a/*", "spiffe://a", false),
        ("spiffe://a/*", "spiffe://a/b/c", false),
        ("spiffe://a/*/c", "spiffe://a/b/c", true),
        ("spiffe://a/*/c", "spiffe://a//c", false),
        ("spiffe://a/*/c", "spiffe://a/../c", false),
        ("spiffe://a/*/c", "spiffe://a/b%2fx/c", false),
        ("spiffe://a/*", "spiffe://a/b?c", false),
        ("spiffe://a/*", "spiffe://a/b#c", false),
        ("spiffe://a/**", "spiffe://a/b", true),
        ("spiffe://a/**", "spiffe://a/b/c", true),
        ("spiffe://a/**", "spiffe://a/b/c/", false),
        ("spiffe://a/**", "spiffe://a/b/../../c", false),
        ("spiffe://a/**", "spiffe://a/", false),
        ("spiffe://a/**", "spiffe://a", false),
        ("spiffe://a/**", "spiffe://a.b/c", false),
        ("spiffe://a/b", "spiffe://a/b", true),
        ("spiffe://a/b", "spiffe://a/*", false),
        ("urn:uuid:1", "urn:uuid:1", true),
        ("urn:uuid:1", "urn:uuid:12", false),
    ];
    for (wanted, uri, expected) in table {
        assert_eq!(is_uri(wanted, uri), expected, "{wanted} {uri}");
    }
}

#[test]
fn keys_are_pinned_by_their_hash() {
    let key = KeyPair::generate().unwrap();
    let one = CertificateParams::default().self_signed(&key).unwrap();
    let one = one.der();
    let hash = fingerprint(&key.subject_public_key_info());
    let hex: String = hash.iter().map(|byte| format!("{byte:02X}")).collect();
    let pairs: Vec<String> = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    let base64 = STANDARD.encode(hash);
    let unpadded = base64.trim_end_matches('=');
    for hash in [&*hex, &pairs.concat(), &pairs.join(":"), &base64, unpadded] {
        let rule = format!("spki-sha256={hash}");
        assert!(is_met(&rule, one), "{rule}");
        assert!(!is_met(&rule, &certificate("one", "unit", &[])), "{rule}");
    }
}

#[test]
fn what_is_no_rule_is_told_what_one_is() {
    let digits = "0".repeat(64);
    let table = [
        ("", "write cn=NAME"),
        ("billing", "write cn=NAME"),
        ("san=a", "write cn=NAME"),
        ("CN=a", "write cn=NAME"),
        ("cn=", "at least one character"),
        ("cn=*", "only dns= and uri="),
        ("ou=pay*", "only dns= and uri="),
        ("dns=", "a host's name"),
        ("dns=*", "a host's name"),
        ("dns=a.*.org", "a host's name"),
        ("dns=*a.org", "a host's name"),
        ("dns=a..org", "a host's name"),
        ("uri=example", "begins with a scheme"),
        ("uri=*://a/b", "a whole part"),
        ("uri=spiffe://*/b", "a whole part"),
        ("uri=spiffe://a*/b", "a whole part"),
        ("uri=spiffe://a/b*", "a whole part"),
        ("uri=spiffe://a/**/b", "a whole part"),
        ("uri=urn:*", "a whole part"),
        ("ip=192.0.2.0/24", "an address"),
        ("ip=localhost", "an address"),
        ("spki-sha256=", "64 hexadecimal digits"),
        ("spki-sha256=sha256//abc", "64 hexadecimal digits"),
        (&format!("spki-sha256={}g", &digits[1..]), "64 hexadecimal"),
        (&format!("spki-sha256={digits}0"), "64 hexadecimal digits"),
    ];
    for (text, expected) in table {
        let error = text.parse::<ClientRule>().unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
        assert!(
            error.starts_with(&format!("'{text}' is no rule")),
            "{error}"
        );
    }
}
