//! Certificates that come while the proxy runs, and authorities that ask whether it answers for their names.

use std::io::{self, Read};
use std::sync::Arc;

use logpond_proxy::{
    Certificates, ClientAuth, OrderedCertificate, ProxyHeader, SniRule, TlsSettings,
};
use logpond_tls::{CertificateFiles, ClientFiles, Identity};
use rustls::SupportedProtocolVersion;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::setting::*;

/// Answers all who ask with one certificate.
#[derive(Debug)]
struct Answer(Arc<CertifiedKey>);

impl ResolvesServerCert for Answer {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.clone())
    }
}

fn ordered(name: &str) -> Arc<OrderedCertificate> {
    Arc::new(OrderedCertificate::new(&[name.to_owned()]))
}

/// Settings with an order, and these files.
fn ordering(ordered: &Arc<OrderedCertificate>, files: &[CertificateFiles]) -> TlsSettings {
    TlsSettings {
        ordered: Some(ordered.clone()),
        ..tls(files)
    }
}

/// An order's certificate has come.
fn show(ordered: &OrderedCertificate, files: &CertificateFiles) {
    let identity = Identity::load(files).unwrap();
    ordered.show(identity.key, identity.not_after);
}

/// Asks as an authority does, which trusts this one.
fn ask(
    proxy: &Proxy,
    files: &CertificateFiles,
    version: &'static SupportedProtocolVersion,
) -> (Client, io::Result<(usize, usize)>) {
    let mut config = trusting_in(&[files], &[version]);
    config.alpn_protocols = vec![b"acme-tls/1".to_vec()];
    let mut client = connect(proxy.address(), &Arc::new(config), "a.test");
    let shaken = client.conn.complete_io(&mut client.sock);
    (client, shaken)
}

/// The versions of TLS.
const VERSIONS: [&SupportedProtocolVersion; 2] = [&rustls::version::TLS12, &rustls::version::TLS13];

#[test]
fn authorities_are_answered_and_go_no_further() {
    let scratch = Scratch::new();
    let [own, challenge] =
        ["own", "challenge"].map(|file| scratch.certificate(file, &["a.test"], Key::P256));
    let order = ordered("A.test");
    let settings_of_tls = TlsSettings {
        alpn: vec!["h2".to_owned()],
        sni: SniRule::Refuse,
        clients: Some(ClientAuth {
            files: ClientFiles {
                authorities: vec![own.certificate.clone()],
                revocations: Vec::new(),
            },
            ..ClientAuth::default()
        }),
        ..ordering(&order, std::slice::from_ref(&own))
    };
    let mut asked = settings(&["tcp:127.0.0.1:1".to_owned()]);
    asked.proxy_header = Some(ProxyHeader::V2);
    let proxy = Proxy::start(asked, &Certificates::load(&settings_of_tls).unwrap());
    for version in VERSIONS {
        // Nobody has said what to answer.
        ask(&proxy, &challenge, version).1.unwrap_err();
        let record = proxy.record();
        assert_eq!(record["close_reason"], "acme", "{record}");
        assert!(record["error"].is_string(), "{record}");
    }
    let key = Identity::load(&challenge).unwrap().key;
    order.answer(Arc::new(Answer(Arc::new(key))));
    for version in VERSIONS {
        let (mut client, shaken) = ask(&proxy, &challenge, version);
        shaken.unwrap();
        assert_eq!(client.conn.alpn_protocol(), Some(&b"acme-tls/1"[..]));
        assert_eq!(client.read(&mut [0]).unwrap(), 0);
        drop(client);
        let record = proxy.record();
        assert_eq!(record["close_reason"], "acme", "{record}");
        assert_eq!(record["sni"], "a.test");
        assert_eq!(record["alpn"], "acme-tls/1");
        let has = |field| record.get(field).is_some();
        assert!(!has("upstream") && !has("error"), "{record}");
    }
    // Who offers anything else, too, is a client like all others.
    let mut config = trusting(&[&own]);
    config.alpn_protocols = vec![b"acme-tls/1".to_vec(), b"h2".to_vec()];
    let mut client = connect(proxy.address(), &Arc::new(config), "a.test");
    assert!(exchange(&mut client, b"x").is_err());
    assert_eq!(proxy.record()["close_reason"], "client_certificate");
}

#[test]
fn where_nothing_is_ordered_nobody_is_an_authority() {
    let scratch = Scratch::new();
    let own = scratch.localhost();
    let proxy = Proxy::start(
        settings(&[upstream(echo)]),
        &load(std::slice::from_ref(&own)),
    );
    let mut config = trusting(&[&own]);
    config.alpn_protocols = vec![b"acme-tls/1".to_vec()];
    let mut client = connect(proxy.address(), &Arc::new(config), "localhost");
    assert_eq!(exchange(&mut client, b"as ever").unwrap(), b"as ever");
}

#[test]
fn what_has_come_is_shown_for_its_names() {
    let scratch = Scratch::new();
    let [first, of_file, come] = [("first", "b.test"), ("file", "a.test"), ("come", "a.test")]
        .map(|(file, name)| scratch.certificate(file, &[name], Key::P256));
    let order = ordered("a.test");
    let files = [first.clone(), of_file.clone()];
    let certificates = Certificates::load(&ordering(&order, &files)).unwrap();
    let proxy = Proxy::start(settings(&[upstream(echo)]), &certificates);
    let is_shown = |files: &CertificateFiles, name| {
        let mut client = connect(proxy.address(), &Arc::new(trusting(&[files])), name);
        exchange(&mut client, b"x").is_ok()
    };
    // Until it comes, that of the file is.
    assert!(is_shown(&of_file, "a.test"));
    show(&order, &come);
    assert!(is_shown(&come, "a.test") && !is_shown(&of_file, "a.test"));
    assert!(is_shown(&first, "b.test"));
    let status = proxy.running().control().status();
    let names = status.frontends[0]
        .certificates
        .iter()
        .map(|one| one.names[0].as_str());
    assert_eq!(names.collect::<Vec<_>>(), ["b.test", "a.test", "a.test"]);
}

#[test]
fn what_others_have_got_is_shown_meanwhile() {
    let scratch = Scratch::new();
    let come = scratch.certificate("come", &["a.test"], Key::P256);
    let before = ordered("a.test");
    show(&before, &come);
    let other = ordered("b.test");
    other.show_meanwhile(&before);
    assert!(other.not_after().is_none());
    let order = Arc::new(OrderedCertificate::new(
        &["a.test", "b.test"].map(str::to_owned),
    ));
    order.show_meanwhile(&before);
    assert_eq!(order.not_after(), before.not_after());
    let files = [scratch.certificate("file", &["c.test"], Key::P256)];
    let certificates = Certificates::load(&ordering(&order, &files)).unwrap();
    let proxy = Proxy::start(settings(&[upstream(echo)]), &certificates);
    let mut client = connect(proxy.address(), &Arc::new(trusting(&[&come])), "a.test");
    assert_eq!(exchange(&mut client, b"x").unwrap(), b"x");
}

#[test]
fn who_comes_before_the_certificate_is_told_so() {
    let scratch = Scratch::new();
    let come = scratch.certificate("come", &["a.test"], Key::P256);
    let order = ordered("a.test");
    let config = Arc::new(trusting(&[&come]));
    for sni in [SniRule::ShowFirst, SniRule::Refuse] {
        let settings_of_tls = TlsSettings {
            sni,
            ..ordering(&order, &[])
        };
        let certificates = Certificates::load(&settings_of_tls).unwrap();
        let proxy = Proxy::start(settings(&[upstream(echo)]), &certificates);
        let speak = |name| exchange(&mut connect(proxy.address(), &config, name), b"x");
        if sni == SniRule::ShowFirst {
            speak("a.test").unwrap_err();
            let record = proxy.record();
            assert_eq!(record["close_reason"], "no_certificate", "{record}");
            assert_eq!(
                record["error"],
                "the certificate that was ordered has not come yet"
            );
            show(&order, &come);
        }
        assert_eq!(speak("a.test").unwrap(), b"x");
        assert_eq!(proxy.record()["close_reason"], "client_truncated");
        // The only one there is, unless strangers are refused; for this one it does not hold.
        speak("b.test").unwrap_err();
        let expected = match sni {
            SniRule::ShowFirst => "it refuses the certificate that it was shown (BadCertificate)",
            SniRule::Refuse => "no server certificate chain resolved",
        };
        let record = proxy.record();
        assert_eq!(record["close_reason"], "handshake_failed");
        let error = record["error"].as_str().unwrap();
        assert!(error.ends_with(expected), "{error}");
    }
}
