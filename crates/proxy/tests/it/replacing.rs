//! Certificates by name, new ones under load, and the end under load.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use logpond_proxy::{Certificates, Settings, SniRule, TlsSettings};
use rustls::ClientConfig;
use rustls::crypto::CryptoProvider;

use crate::setting::*;

#[test]
fn names_choose_certificates() {
    let scratch = Scratch::new();
    let files = [
        scratch.certificate("first", &["first.example"], Key::P256),
        scratch.certificate("wild", &["*.wild.example"], Key::P256),
        scratch.certificate("exact", &["a.wild.example", "b.example"], Key::P256),
    ];
    let table = [
        ("first.example", 0),
        ("FIRST.example", 0),
        ("x.wild.example", 1),
        ("a.wild.example", 2),
        ("b.example", 2),
    ];
    for rule in [SniRule::ShowFirst, SniRule::Refuse] {
        let settings_of_tls = TlsSettings {
            sni: rule,
            ..tls(&files)
        };
        let certificates = Certificates::load(&settings_of_tls).unwrap();
        let proxy = Proxy::start(settings(&[upstream(echo)]), &certificates);
        for (name, expected) in table {
            let config = Arc::new(trusting(&[&files[expected]]));
            let mut client = connect(proxy.address(), &config, name);
            assert_eq!(exchange(&mut client, b"hello").unwrap(), b"hello", "{name}");
            close(&mut client);
            assert_eq!(client.read(&mut [0]).unwrap(), 0);
            let asked = name.to_ascii_lowercase();
            assert_eq!(proxy.record()["sni"], *asked);
        }
        for name in ["other.example", "x.a.wild.example", "wild.example"] {
            let config = Arc::new(trusting(&[&files[0]]));
            let mut client = connect(proxy.address(), &config, name);
            let error = exchange(&mut client, b"hello").unwrap_err().to_string();
            // The first certificate is not one for these names, which the client finds out.
            match rule {
                SniRule::ShowFirst => assert!(error.contains("not valid for name"), "{error}"),
                SniRule::Refuse => assert!(error.contains("received fatal alert"), "{error}"),
            }
            assert_eq!(proxy.record()["close_reason"], "handshake_failed");
        }
    }
}

/// A client that can verify only this kind of signature.
fn of_kind(config: &ClientConfig, files: &logpond_tls::CertificateFiles, key: Key) -> ClientConfig {
    let all = CryptoProvider::clone(config.crypto_provider());
    let schemes = all.signature_verification_algorithms.mapping;
    let is_kind = |scheme: &rustls::SignatureScheme| match key {
        Key::P256 => *scheme == rustls::SignatureScheme::ECDSA_NISTP256_SHA256,
        Key::Ed25519 => *scheme == rustls::SignatureScheme::ED25519,
    };
    let one = schemes.iter().filter(|(scheme, _)| is_kind(scheme));
    let one: Vec<_> = one.copied().collect();
    let provider = CryptoProvider {
        signature_verification_algorithms: rustls::crypto::WebPkiSupportedAlgorithms {
            all: all.signature_verification_algorithms.all,
            mapping: one.leak(),
        },
        ..all
    };
    let mut roots = rustls::RootCertStore::empty();
    roots
        .add(logpond_tls::read_certificates(&files.certificate).unwrap()[0].clone())
        .unwrap();
    ClientConfig::builder_with_provider(provider.into())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth()
}

#[test]
fn kinds_of_keys_stand_side_by_side() {
    let scratch = Scratch::new();
    let files = [
        scratch.certificate("p256", &["localhost"], Key::P256),
        scratch.certificate("ed25519", &["localhost"], Key::Ed25519),
    ];
    let proxy = Proxy::start(settings(&[upstream(echo)]), &load(&files));
    for (files, key) in files.iter().zip([Key::P256, Key::Ed25519]) {
        let config = Arc::new(of_kind(&trusting(&[files]), files, key));
        let mut client = connect(proxy.address(), &config, "localhost");
        assert_eq!(
            exchange(&mut client, b"hello").unwrap(),
            b"hello",
            "{key:?}"
        );
    }
}

#[test]
fn nobody_notices_new_certificates() {
    let scratch = Scratch::new();
    let files = scratch.localhost();
    let certificates = load(std::slice::from_ref(&files));
    let proxy = Proxy::start(settings(&[upstream(echo)]), &certificates);
    let address = proxy.address();
    let mut old = connect(address, &Arc::new(trusting(&[&files])), "localhost");
    exchange(&mut old, b"hello").unwrap();
    let other = scratch.certificate("other", &["localhost"], Key::P256);
    let config = Arc::new(trusting(&[&files, &other]));
    let (is_over, requests) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let mut client = connect(address, &config, "localhost");
                    for _ in 0..3 {
                        exchange(&mut client, b"hello").unwrap();
                        requests.fetch_add(1, Ordering::Relaxed);
                    }
                    close(&mut client);
                    assert_eq!(client.read(&mut [0]).unwrap(), 0);
                }
            });
        }
        for round in 0..50 {
            let shown = [&other, &files][round % 2];
            let again = certificates.load_again(&tls(std::slice::from_ref(shown)));
            proxy.show(&again.unwrap());
            let seen = requests.load(Ordering::Relaxed);
            while requests.load(Ordering::Relaxed) < seen + 10 {
                thread::yield_now();
            }
            let config = Arc::new(trusting(&[shown]));
            exchange(&mut connect(address, &config, "localhost"), b"new").unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
    });
    // The connection of before lives on.
    exchange(&mut old, b"hello").unwrap();
    // Files that are bad are said to be so, and change nothing.
    std::fs::write(&files.key, "nothing").unwrap();
    let error = certificates.load_again(&tls(std::slice::from_ref(&files)));
    assert!(
        error
            .unwrap_err()
            .to_string()
            .contains("holds no private key")
    );
    exchange(&mut old, b"hello").unwrap();
}

#[test]
fn a_drain_lets_requests_end_and_cuts_what_does_not() {
    let scratch = Scratch::new();
    let files = scratch.localhost();
    let proxy = Proxy::start(
        settings(&[upstream(echo)]),
        &load(std::slice::from_ref(&files)),
    );
    let config = Arc::new(trusting(&[&files]));
    let mut clients: Vec<Client> = (0..20)
        .map(|_| {
            let mut client = connect(proxy.address(), &config, "localhost");
            exchange(&mut client, b"hello").unwrap();
            client
        })
        .collect();
    proxy.running().stopper().drain(PATIENCE);
    // All go on, with more than was under way; the listener is gone once a connection is refused.
    for client in &mut clients {
        let bytes = pattern(1 << 20);
        assert!(exchange(client, &bytes[..200_000]).unwrap() == bytes[..200_000]);
    }
    while std::net::TcpStream::connect(proxy.address()).is_ok() {
        thread::yield_now();
    }
    let stays = clients.pop().unwrap();
    for client in &mut clients {
        close(client);
        assert_eq!(client.read(&mut [0]).unwrap(), 0);
    }
    // Less time than was given first.
    proxy.running().stopper().drain(Duration::from_millis(100));
    let (records, cut) = proxy.wait();
    assert_eq!(cut, 1);
    let count = |reason| {
        records
            .iter()
            .filter(|one| one["close_reason"] == reason)
            .count()
    };
    assert_eq!((count("client"), count("drained")), (19, 1));
    drop(stays);
}

#[test]
fn nobody_notices_a_new_proxy() {
    let scratch = Scratch::new();
    let files = scratch.localhost();
    let certificates = load(std::slice::from_ref(&files));
    let mut proxy = Proxy::start(settings(&[upstream(echo)]), &certificates);
    let address = proxy.address();
    let config = Arc::new(trusting(&[&files]));
    let (is_over, requests) = (AtomicBool::new(false), AtomicUsize::new(0));
    let last = thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let mut client = connect(address, &config, "localhost");
                    exchange(&mut client, b"hello").unwrap();
                    requests.fetch_add(1, Ordering::Relaxed);
                    close(&mut client);
                    assert_eq!(client.read(&mut [0]).unwrap(), 0);
                }
            });
        }
        for _ in 0..20 {
            let seen = requests.load(Ordering::Relaxed);
            let mut old = connect(address, &config, "localhost");
            exchange(&mut old, b"hello").unwrap();
            let (before, next) = proxy.hand_over();
            // What was open lives on, with the proxy of before.
            exchange(&mut old, b"hello").unwrap();
            close(&mut old);
            assert_eq!(old.read(&mut [0]).unwrap(), 0);
            let (_, cut) = before.wait();
            assert_eq!(cut, 0);
            proxy = next;
            while requests.load(Ordering::Relaxed) < seen + 10 {
                thread::yield_now();
            }
        }
        is_over.store(true, Ordering::Relaxed);
        proxy
    });
    assert_eq!(last.address(), address);
}

#[test]
fn an_address_in_use_is_said_to_be_so() {
    let scratch = Scratch::new();
    let certificates = load(&[scratch.localhost()]);
    let first = Proxy::start(settings(&[upstream(echo)]), &certificates);
    let mut second = settings(&[upstream(echo)]);
    second.listen = first.address();
    let frontends = vec![second.with(&certificates)];
    let second = Settings {
        frontends,
        workers: 2,
        waiting_bytes_max: 0,
        state_interval: None,
    };
    let error = logpond_proxy::start(&second, Vec::new(), std::io::sink()).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("cannot listen on {}", first.address())
    );
    let (records, cut) = first.end();
    assert_eq!((records.len(), cut), (0, 0));
}
