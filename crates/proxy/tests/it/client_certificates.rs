//! Clients that show certificates, those that should, and those that must not be let in.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

use logpond_protocol::proxy::{Tls, decode};
use logpond_proxy::{Certificates, ClientAuth, ProxyHeader, TlsSettings};
use logpond_tls::{CertificateFiles, ClientFiles, TlsError, fingerprint, provider};
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyIdMethod, KeyPair, KeyUsagePurpose,
    RevokedCertParams, SanType, SerialNumber, date_time_ymd,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};
use serde_json::Value;

use crate::setting::*;

/// An authority that signs for clients, whose certificate is in a file.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    path: PathBuf,
}

impl Authority {
    fn new(scratch: &Scratch, name: &str) -> Authority {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let path = scratch.path(name);
        fs::write(&path, params.self_signed(&key).unwrap().pem()).unwrap();
        let issuer = Issuer::new(params, key);
        Authority { issuer, path }
    }

    /// A client of this name and serial number.
    fn client(&self, scratch: &Scratch, name: &str, serial: u8) -> CertificateFiles {
        self.client_until(scratch, name, serial, 3000)
    }

    fn client_until(
        &self,
        scratch: &Scratch,
        name: &str,
        serial: u8,
        year: i32,
    ) -> CertificateFiles {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        let uri = format!("spiffe://example.org/client/{name}");
        params.subject_alt_names = vec![SanType::URI(uri.try_into().unwrap())];
        params.serial_number = Some(SerialNumber::from_slice(&[serial]));
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        params.not_after = date_time_ymd(year, 1, 1);
        let files = CertificateFiles {
            certificate: scratch.path(&format!("{name}.pem")),
            key: scratch.path(&format!("{name}.key")),
        };
        let own = params.signed_by(&key, &self.issuer).unwrap();
        fs::write(&files.certificate, own.pem()).unwrap();
        fs::write(&files.key, key.serialize_pem()).unwrap();
        files
    }

    /// A file with a list of these serial numbers.
    fn revoke(&self, scratch: &Scratch, serials: &[u8]) -> PathBuf {
        let revoked = serials.iter().map(|serial| RevokedCertParams {
            serial_number: SerialNumber::from_slice(&[*serial]),
            revocation_time: date_time_ymd(2020, 1, 1),
            reason_code: None,
            invalidity_date: None,
        });
        let params = CertificateRevocationListParams {
            this_update: date_time_ymd(2020, 1, 1),
            next_update: date_time_ymd(3000, 1, 1),
            crl_number: SerialNumber::from_slice(&[1]),
            issuing_distribution_point: None,
            revoked_certs: revoked.collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        let list = params.signed_by(&self.issuer).unwrap();
        let path = scratch.path("revoked.pem");
        fs::write(&path, list.pem().unwrap()).unwrap();
        path
    }
}

fn auth(authority: &Authority, lists: &[&PathBuf], rules: &[&str]) -> ClientAuth {
    ClientAuth {
        is_optional: false,
        files: ClientFiles {
            authorities: vec![authority.path.clone()],
            revocations: lists.iter().map(|path| (*path).clone()).collect(),
        },
        rules: rules.iter().map(|rule| rule.parse().unwrap()).collect(),
    }
}

fn load_with(files: &CertificateFiles, auth: &ClientAuth) -> Certificates {
    Certificates::load(&asking(files, auth)).unwrap()
}

fn asking(files: &CertificateFiles, auth: &ClientAuth) -> TlsSettings {
    TlsSettings {
        clients: Some(auth.clone()),
        ..tls(std::slice::from_ref(files))
    }
}

/// Settings of a client that shows this, over one version of TLS.
fn showing(
    server: &CertificateFiles,
    client: Option<&CertificateFiles>,
    version: &'static SupportedProtocolVersion,
) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    let own = CertificateDer::from_pem_file(&server.certificate).unwrap();
    roots.add(own).unwrap();
    let builder = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[version])
        .unwrap()
        .with_root_certificates(roots);
    Arc::new(match client {
        None => builder.with_no_client_auth(),
        Some(files) => {
            let own = CertificateDer::from_pem_file(&files.certificate).unwrap();
            let key = PrivateKeyDer::from_pem_file(&files.key).unwrap();
            builder.with_client_auth_cert(vec![own], key).unwrap()
        }
    })
}

const VERSIONS: [&SupportedProtocolVersion; 2] = [&rustls::version::TLS12, &rustls::version::TLS13];

/// As records have it.
fn fingerprint_of(files: &CertificateFiles) -> String {
    let own = CertificateDer::from_pem_file(&files.certificate).unwrap();
    let hash = fingerprint(&own);
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Sends a word and ends; gives the record, or also the error of a client that is refused.
fn talk(proxy: &Proxy, config: &Arc<ClientConfig>) -> Result<Value, (String, Value)> {
    let mut client = connect(proxy.address(), config, "localhost");
    let outcome = exchange(&mut client, b"hello").map(|_| {
        close(&mut client);
        assert_eq!(client.read(&mut [0]).unwrap(), 0);
    });
    drop(client);
    let record = proxy.record();
    outcome
        .map(|()| record.clone())
        .map_err(|error| (error.to_string(), record))
}

#[test]
fn clients_are_let_in_by_certificates_and_told_why_not() {
    let scratch = Scratch::new();
    let files = scratch.localhost();
    let authority = Authority::new(&scratch, "authority");
    let other = Authority::new(&scratch, "other");
    let list = authority.revoke(&scratch, &[7]);
    let good = authority.client(&scratch, "good", 1);
    let wrong = [
        (None, "CertificateRequired", "it shows no certificate"),
        (
            Some(other.client(&scratch, "foreign", 1)),
            "UnknownCA",
            "its certificate is of an authority that is not trusted here",
        ),
        (
            Some(authority.client_until(&scratch, "old", 2, 2020)),
            "CertificateExpired",
            "its certificate expired at 2020-01-01T00:00:00Z",
        ),
        (
            Some(authority.client(&scratch, "stolen", 7)),
            "CertificateRevoked",
            "its certificate was revoked by its authority",
        ),
        (
            Some(authority.client(&scratch, "other", 3)),
            "AccessDenied",
            "its certificate is none of those that are let in",
        ),
    ];
    let rules = ["cn=nobody", "uri=spiffe://example.org/client/good"];
    let proxy = Proxy::start(
        settings(&[upstream(echo)]),
        &load_with(&files, &auth(&authority, &[&list], &rules)),
    );
    for version in VERSIONS {
        let record = talk(&proxy, &showing(&files, Some(&good), version)).unwrap();
        assert_eq!(record["client_cn"], "good");
        assert_eq!(record["client_fingerprint"], fingerprint_of(&good));
        assert_eq!(record["close_reason"], "client");
        for (client, alert, why) in &wrong {
            let config = showing(&files, client.as_ref(), version);
            let (error, record) = talk(&proxy, &config).unwrap_err();
            assert!(error.contains(alert), "{error} {record}");
            assert_eq!(record["close_reason"], "client_certificate", "{record}");
            assert_eq!(record["error"], *why);
            assert!(record.get("upstream").is_none(), "{record}");
            let shown = client.as_ref().map(fingerprint_of);
            assert_eq!(record["client_fingerprint"].as_str(), shown.as_deref());
            assert_eq!(record["client_cn"].is_string(), client.is_some());
        }
    }
}

/// Sends back the header it was sent, once the client has ended.
fn reflect(mut stream: TcpStream) {
    let mut all = Vec::new();
    stream.read_to_end(&mut all).unwrap();
    stream.write_all(&all).unwrap();
}

/// What the upstream is told of a client, and its record.
fn told(proxy: &Proxy, config: &Arc<ClientConfig>) -> (Tls, Value) {
    let mut client = connect(proxy.address(), config, "localhost");
    client.write_all(b"hello").unwrap();
    close(&mut client);
    let mut all = Vec::new();
    client.read_to_end(&mut all).unwrap();
    let (header, length) = decode(&all).unwrap().unwrap();
    assert_eq!(&all[length..], b"hello");
    (header.extensions.tls.unwrap(), proxy.record())
}

#[test]
fn upstreams_are_told_whose_certificate_it_is() {
    let scratch = Scratch::new();
    let files = scratch.localhost();
    let authority = Authority::new(&scratch, "authority");
    let client = authority.client(&scratch, "billing", 1);
    let optional = ClientAuth {
        is_optional: true,
        ..auth(&authority, &[], &["cn=billing"])
    };
    let mut settings = settings(&[upstream(reflect)]);
    settings.proxy_header = Some(ProxyHeader::V2);
    let proxy = Proxy::start(settings, &load_with(&files, &optional));
    for version in VERSIONS {
        let config = showing(&files, Some(&client), version);
        let (tls, record) = told(&proxy, &config);
        assert_eq!(record["resumed"], false);
        let first = Tls {
            has_certificate: true,
            had_certificate: true,
            is_verified: true,
            version: record["version"].as_str().map(str::to_owned),
            common_name: Some("billing".to_owned()),
            cipher: record["cipher"].as_str().map(str::to_owned),
            signature_algorithm: Some("ecdsa-with-SHA256".to_owned()),
            key_algorithm: Some("EC256".to_owned()),
        };
        assert_eq!(tls, first);
        // The session goes on without the certificate being shown again.
        let (tls, record) = told(&proxy, &config);
        assert_eq!(record["resumed"], true);
        assert_eq!(record["client_cn"], "billing");
        let resumed = Tls {
            has_certificate: false,
            ..first
        };
        assert_eq!(tls, resumed);
        // Who has none is let in here, and is not passed off as somebody.
        let (tls, record) = told(&proxy, &showing(&files, None, version));
        assert!(!tls.has_certificate && !tls.had_certificate && !tls.is_verified);
        assert_eq!(tls.common_name, None);
        assert!(record.get("client_cn").is_none() && record.get("client_fingerprint").is_none());
        // Who has one that is not let in is not taken for one without.
        let other = authority.client(&scratch, "other", 2);
        let (error, _) = talk(&proxy, &showing(&files, Some(&other), version)).unwrap_err();
        assert!(error.contains("AccessDenied"), "{error}");
    }
}

#[test]
fn nobody_comes_back_by_a_ticket_who_was_revoked_since() {
    let scratch = Scratch::new();
    let files = scratch.localhost();
    let authority = Authority::new(&scratch, "authority");
    let list = authority.revoke(&scratch, &[]);
    let auth = auth(&authority, &[&list], &[]);
    let (good, bad) = (
        authority.client(&scratch, "good", 1),
        authority.client(&scratch, "bad", 7),
    );
    for version in VERSIONS {
        authority.revoke(&scratch, &[]);
        let certificates = load_with(&files, &auth);
        let proxy = Proxy::start(settings(&[upstream(echo)]), &certificates);
        let (good, bad) = (
            showing(&files, Some(&good), version),
            showing(&files, Some(&bad), version),
        );
        let again = || certificates.load_again(&asking(&files, &auth));
        for is_resumed in [false, true] {
            assert_eq!(talk(&proxy, &good).unwrap()["resumed"], is_resumed);
            assert_eq!(talk(&proxy, &bad).unwrap()["resumed"], is_resumed);
        }
        // Files that say the same end no session.
        proxy.show(&again().unwrap());
        assert_eq!(talk(&proxy, &bad).unwrap()["resumed"], true);
        // What cannot be used changes nothing.
        fs::write(&list, "nothing").unwrap();
        let error = again().unwrap_err();
        assert!(matches!(error, TlsError::NotPem { .. }), "{error}");
        assert_eq!(talk(&proxy, &bad).unwrap()["resumed"], true);

        authority.revoke(&scratch, &[7]);
        proxy.show(&again().unwrap());
        for _ in 0..2 {
            let (error, record) = talk(&proxy, &bad).unwrap_err();
            assert!(error.contains("CertificateRevoked"), "{error}");
            assert_eq!(record["close_reason"], "client_certificate");
            assert_eq!(record["client_cn"], "bad");
        }
        for is_resumed in [false, true] {
            assert_eq!(talk(&proxy, &good).unwrap()["resumed"], is_resumed);
        }
    }
}

#[test]
fn a_new_authority_ends_the_sessions_of_the_old_one() {
    let scratch = Scratch::new();
    let files = scratch.localhost();
    let (old, new) = (
        Authority::new(&scratch, "old"),
        Authority::new(&scratch, "new"),
    );
    let (of_old, of_new) = (
        old.client(&scratch, "of-old", 1),
        new.client(&scratch, "of-new", 1),
    );
    let auth = auth(&old, &[], &[]);
    let certificates = load_with(&files, &auth);
    let proxy = Proxy::start(settings(&[upstream(echo)]), &certificates);
    for version in VERSIONS {
        fs::write(&old.path, {
            let text = fs::read_to_string(&old.path).unwrap();
            text + &fs::read_to_string(&new.path).unwrap()
        })
        .unwrap();
        let (of_old, of_new) = (
            showing(&files, Some(&of_old), version),
            showing(&files, Some(&of_new), version),
        );
        let take_in = || {
            let again = certificates.load_again(&asking(&files, &auth));
            proxy.show(&again.unwrap());
        };
        take_in();
        assert_eq!(talk(&proxy, &of_old).unwrap()["resumed"], false);
        assert_eq!(talk(&proxy, &of_old).unwrap()["resumed"], true);
        assert_eq!(talk(&proxy, &of_new).unwrap()["resumed"], false);
        let both = fs::read_to_string(&old.path).unwrap();
        fs::copy(&new.path, &old.path).unwrap();
        take_in();
        let (error, _) = talk(&proxy, &of_old).unwrap_err();
        assert!(error.contains("UnknownCA"), "{error}");
        assert_eq!(talk(&proxy, &of_new).unwrap()["client_cn"], "of-new");
        let first = both.find("-----END CERTIFICATE-----\n").unwrap() + 26;
        fs::write(&old.path, &both[..first]).unwrap();
    }
}

#[test]
fn openssl_is_let_in_by_its_certificate() {
    if !Command::new("openssl")
        .arg("version")
        .stdout(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
    {
        let _ = writeln!(std::io::stderr(), "skipped: there is no openssl");
        return;
    }
    let scratch = Scratch::new();
    let files = scratch.localhost();
    let authority = Authority::new(&scratch, "authority");
    let (good, other) = (
        authority.client(&scratch, "good", 1),
        authority.client(&scratch, "other", 2),
    );
    let certificates = load_with(&files, &auth(&authority, &[], &["cn=good"]));
    let proxy = Proxy::start(settings(&[upstream(echo)]), &certificates);
    let s_client = |arguments: &[&str], client: Option<&CertificateFiles>| {
        let mut command = Command::new("openssl");
        command.args(["s_client", "-servername", "localhost", "-connect"]);
        command.arg(proxy.address().to_string()).args(arguments);
        if let Some(client) = client {
            command.arg("-cert").arg(&client.certificate);
            command.arg("-key").arg(&client.key);
        }
        let output = command.stdin(Stdio::null()).output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (String::from_utf8_lossy(&text).into_owned(), proxy.record())
    };
    for version in ["-tls1_2", "-tls1_3"] {
        let (text, record) = s_client(&[version], Some(&good));
        assert_eq!(record["close_reason"], "client", "{text}");
        assert_eq!(record["client_cn"], "good");
        // The alerts of version 1.3 come when the client believes that all is well: it has to read on.
        let (text, record) = s_client(&[version, "-ign_eof"], None);
        assert!(text.contains("alert certificate required"), "{text}");
        assert_eq!(record["close_reason"], "client_certificate");
        let (text, record) = s_client(&[version, "-ign_eof"], Some(&other));
        assert!(text.contains("alert access denied"), "{text}");
        assert_eq!(record["client_cn"], "other");
    }
}
