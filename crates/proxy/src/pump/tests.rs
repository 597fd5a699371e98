//! A client of the library in memory, before pumps that get their bytes in pieces of all sizes.

use std::io::{Read, Write};
use std::sync::Arc;

use logpond_tls::{CertificateFiles, provider, read_certificates};
use proptest::prelude::*;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore};

use super::*;
use crate::{Certificates, TlsSettings};

/// A client and the settings that it gets on with.
fn pair() -> (ClientConnection, Certificates) {
    let key = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let own = params.self_signed(&key).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let files = CertificateFiles {
        certificate: directory.path().join("a.pem"),
        key: directory.path().join("a.key"),
    };
    std::fs::write(&files.certificate, own.pem()).unwrap();
    std::fs::write(&files.key, key.serialize_pem()).unwrap();
    let mut roots = RootCertStore::empty();
    let own = read_certificates(&files.certificate).unwrap();
    roots.add(own[0].clone()).unwrap();
    let config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let client = ClientConnection::new(Arc::new(config), name).unwrap();
    let certificates = Certificates::load(&TlsSettings {
        files: vec![files],
        ..TlsSettings::default()
    })
    .unwrap();
    (client, certificates)
}

/// Gives the pump what the client has to say, in pieces of these sizes, and the client the answers.
/// What is decrypted is appended to `got`.
fn carry(client: &mut ClientConnection, pump: &mut Pump, sizes: &[usize], got: &mut Vec<u8>) {
    let mut scratch = Scratch::default();
    let mut sizes = sizes.iter().copied().cycle();
    while client.wants_write() {
        let mut bytes = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut bytes).unwrap();
        }
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(sizes.next().unwrap().min(rest.len()));
            let kept = pump.partial_length();
            scratch.incoming[kept..kept + piece.len()].copy_from_slice(piece);
            pump.receive(&mut scratch, piece.len()).unwrap();
            got.extend_from_slice(scratch.plain.filled());
            tell(client, scratch.sealed.filled());
            rest = after;
        }
    }
}

/// Gives the client these.
fn tell(client: &mut ClientConnection, mut sealed: &[u8]) {
    while !sealed.is_empty() {
        client.read_tls(&mut sealed).unwrap();
        client.process_new_packets().unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn pieces_of_all_sizes_are_put_together(
        sizes in proptest::collection::vec(1_usize..20_000, 1..8),
        length in 0_usize..60_000,
    ) {
        let (mut client, certificates) = pair();
        let mut pump = Pump::new(&certificates).unwrap();
        let mut got = Vec::new();
        prop_assert!(!pump.wants_from_upstream() && pump.wants_from_client());
        carry(&mut client, &mut pump, &sizes, &mut got);
        prop_assert!(!pump.session().is_handshaking() && pump.wants_from_upstream());
        prop_assert_eq!(pump.session().name(), Some("localhost"));

        let sent: Vec<u8> = (0..length).map(|at| (at / 3) as u8).collect();
        client.set_buffer_limit(None);
        client.writer().write_all(&sent).unwrap();
        carry(&mut client, &mut pump, &sizes, &mut got);
        prop_assert!(got == sent);
        prop_assert_eq!(pump.partial_length(), 0, "an idle connection owns nothing");

        let mut sealed = Buffer::default();
        let mut answer = Vec::new();
        for piece in sent.chunks(sizes[0]) {
            pump.send(piece, &mut sealed).unwrap();
            tell(&mut client, sealed.filled());
            // What is there is read; then it says that there could be more.
            let _ = client.reader().read_to_end(&mut answer);
        }
        prop_assert!(answer == sent);
        prop_assert_eq!(pump.bytes(), (length as u64, length as u64));

        client.send_close_notify();
        carry(&mut client, &mut pump, &sizes, &mut got);
        prop_assert!(pump.is_half_closed() && !pump.is_truncated() && !pump.is_done());
        prop_assert!(pump.shuts_upstream() && !pump.shuts_upstream());
        prop_assert!(!pump.wants_from_client() && pump.wants_from_upstream());
        pump.send(b"after the end", &mut sealed).unwrap();
        tell(&mut client, sealed.filled());
        pump.upstream_ended(&mut sealed).unwrap();
        tell(&mut client, sealed.filled());
        answer.clear();
        client.reader().read_to_end(&mut answer).unwrap();
        prop_assert_eq!(answer, b"after the end");
        prop_assert!(pump.shuts_client() && !pump.shuts_client() && pump.is_done());
    }
}

#[test]
fn one_side_waits_for_the_other() {
    let (mut client, certificates) = pair();
    let mut pump = Pump::new(&certificates).unwrap();
    carry(&mut client, &mut pump, &[1 << 14], &mut Vec::new());
    pump.for_upstream().push(b"not taken");
    assert!(!pump.wants_from_client() && pump.wants_from_upstream());
    pump.client_ended();
    assert!(!pump.shuts_upstream(), "what waits goes first");
    pump.for_upstream().advance(9);
    assert!(pump.shuts_upstream() && pump.is_truncated());
    pump.for_client().push(b"not taken");
    assert!(!pump.wants_from_upstream());
    pump.upstream_ended(&mut Buffer::default()).unwrap();
    assert!(!pump.shuts_client() && !pump.is_done());
    pump.for_client().advance(9);
    assert!(pump.shuts_client() && pump.is_done());
}

#[test]
fn a_deaf_upstream_holds_nobody_up() {
    let (mut client, certificates) = pair();
    let mut pump = Pump::new(&certificates).unwrap();
    carry(&mut client, &mut pump, &[1 << 14], &mut Vec::new());
    pump.for_upstream().push(b"not taken");
    pump.upstream_is_deaf();
    assert!(pump.wants_from_client() && pump.wants_from_upstream());
    client.writer().write_all(b"dropped").unwrap();
    let mut got = Vec::new();
    carry(&mut client, &mut pump, &[1 << 14], &mut got);
    assert_eq!(got, b"");
}

/// Bytes that are records of TLS as far as their headers go, and some that are not.
fn records() -> impl Strategy<Value = Vec<u8>> {
    let kind = prop_oneof![20u8..24, Just(22), Just(22), any::<u8>()];
    let payload = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..40),
        // The beginning of a message of a handshake.
        (1u8..24, 0u8..60).prop_map(|(kind, length)| vec![kind, 0, 0, length, 3, 3]),
    ];
    let record = (kind, payload).prop_map(|(kind, payload)| {
        let mut record = vec![kind, 3, 3, 0, payload.len() as u8];
        record.extend(payload);
        record
    });
    proptest::collection::vec(record, 1..6).prop_map(|records| records.concat())
}

proptest! {
    #[test]
    fn nonsense_is_refused_and_never_a_mistake_of_ours(
        bytes in records(),
        sizes in proptest::collection::vec(1usize..60, 1..5),
        is_behind_a_handshake in any::<bool>(),
    ) {
        let (mut client, certificates) = pair();
        let mut pump = Pump::new(&certificates).unwrap();
        if is_behind_a_handshake {
            carry(&mut client, &mut pump, &[4000], &mut Vec::new());
        }
        let (mut scratch, mut rest) = (Scratch::default(), &bytes[..]);
        let mut sizes = sizes.into_iter().cycle();
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(sizes.next().unwrap().min(rest.len()));
            rest = after;
            let kept = pump.partial_length();
            scratch.incoming[kept..kept + piece.len()].copy_from_slice(piece);
            if pump.receive(&mut scratch, piece.len()).is_err() {
                return Ok(());
            }
            if !pump.session().is_handshaking() {
                pump.send(b"answer", &mut scratch.sealed).unwrap();
            }
        }
        prop_assert!(pump.partial_length() <= PARTIAL_BYTES_MAX);
    }
}
