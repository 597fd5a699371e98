//! Certificates of clients before authorities and revocation lists.

use std::fs;

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyIdMethod, KeyPair, KeyUsagePurpose,
    RevokedCertParams, SerialNumber, date_time_ymd,
};
use tempfile::TempDir;

use super::*;
use crate::explain;

/// An authority, and the directory that its files are in.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    own: CertificateDer<'static>,
    pem: String,
}

fn authority(name: &str, years: [i32; 2], signer: Option<&Authority>) -> Authority {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.not_before = date_time_ymd(years[0], 1, 1);
    params.not_after = date_time_ymd(years[1], 1, 1);
    let own = match signer {
        Some(signer) => params.signed_by(&key, &signer.issuer).unwrap(),
        None => params.self_signed(&key).unwrap(),
    };
    Authority {
        own: own.der().clone(),
        pem: own.pem(),
        issuer: Issuer::new(params, key),
    }
}

const ALWAYS: [i32; 2] = [2000, 3000];

impl Authority {
    /// The certificate of a client with this serial number.
    fn client(&self, serial: u8, years: [i32; 2]) -> CertificateDer<'static> {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.serial_number = Some(SerialNumber::from_slice(&[serial]));
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        params.not_before = date_time_ymd(years[0], 1, 1);
        params.not_after = date_time_ymd(years[1], 1, 1);
        let own = params.signed_by(&key, &self.issuer).unwrap();
        own.der().clone()
    }

    /// A list of these serial numbers, up to a year.
    fn revoke(&self, serials: &[u8], until: i32) -> rcgen::CertificateRevocationList {
        let revoked = serials.iter().map(|serial| RevokedCertParams {
            serial_number: SerialNumber::from_slice(&[*serial]),
            revocation_time: date_time_ymd(2020, 1, 1),
            reason_code: None,
            invalidity_date: None,
        });
        let params = CertificateRevocationListParams {
            this_update: date_time_ymd(2001, 1, 1),
            next_update: date_time_ymd(until, 1, 1),
            crl_number: SerialNumber::from_slice(&[1]),
            issuing_distribution_point: None,
            revoked_certs: revoked.collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        params.signed_by(&self.issuer).unwrap()
    }
}

/// Files of authorities and lists with these contents.
fn files(authorities: &[&str], lists: &[&[u8]]) -> (TempDir, ClientFiles) {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, at: usize, bytes: &[u8]| {
        let path = directory.path().join(format!("{name}{at}"));
        fs::write(&path, bytes).unwrap();
        path
    };
    let authorities = authorities.iter().enumerate();
    let lists = lists.iter().enumerate();
    let files = ClientFiles {
        authorities: authorities
            .map(|(at, text)| write("authority", at, text.as_bytes()))
            .collect(),
        revocations: lists.map(|(at, bytes)| write("list", at, bytes)).collect(),
    };
    (directory, files)
}

fn load(authorities: &[&str], lists: &[&[u8]]) -> Result<ClientTrust, TlsError> {
    let (_directory, files) = files(authorities, lists);
    ClientTrust::load(&files, true)
}

/// What is wrong with a chain, in words.
fn judge(trust: &ClientTrust, chain: &[&CertificateDer<'static>], at: UnixTime) -> Option<String> {
    let between: Vec<_> = chain[1..].iter().map(|one| (*one).clone()).collect();
    let judged = trust.judge(chain[0], &between, at);
    judged.err().map(|error| explain(&error))
}

#[test]
fn authorities_let_their_clients_in() {
    let (one, other) = (
        authority("one", ALWAYS, None),
        authority("other", ALWAYS, None),
    );
    let trust = load(&[&one.pem], &[]).unwrap();
    let verdict = |chain: &[&CertificateDer<'static>]| judge(&trust, chain, now());
    assert_eq!(verdict(&[&one.client(1, ALWAYS)]), None);
    let foreign = verdict(&[&other.client(1, ALWAYS)]).unwrap();
    assert!(foreign.contains("not trusted here"), "{foreign}");
    let old = verdict(&[&one.client(1, [2000, 2010])]).unwrap();
    assert_eq!(old, "its certificate expired at 2010-01-01T00:00:00Z");
    let early = verdict(&[&one.client(1, [2900, 3000])]).unwrap();
    assert!(early.contains("valid only from 2900-01-01"), "{early}");
    // Both, in one file and in two.
    let both = [&*one.pem, &other.pem].concat();
    for authorities in [&[&*both][..], &[&one.pem, &other.pem]] {
        let trust = load(authorities, &[]).unwrap();
        assert_eq!(judge(&trust, &[&other.client(1, ALWAYS)], now()), None);
    }
}

#[test]
fn an_authority_between_is_shown_by_the_client() {
    let root = authority("root", ALWAYS, None);
    let between = authority("between", ALWAYS, Some(&root));
    let client = between.client(1, ALWAYS);
    let trust = load(&[&root.pem], &[]).unwrap();
    assert_eq!(judge(&trust, &[&client, &between.own], now()), None);
    assert!(judge(&trust, &[&client], now()).is_some());
    // Both have to have a list.
    let (of_root, of_between) = (root.revoke(&[], 3000), between.revoke(&[7], 3000));
    let trust = load(&[&root.pem], &[of_between.der()]).unwrap();
    let unknown = judge(&trust, &[&client, &between.own], now()).unwrap();
    assert!(unknown.contains("no revocation list"), "{unknown}");
    let trust = load(&[&root.pem], &[of_between.der(), of_root.der()]).unwrap();
    assert_eq!(judge(&trust, &[&client, &between.own], now()), None);
    let revoked = between.client(7, ALWAYS);
    let revoked = judge(&trust, &[&revoked, &between.own], now()).unwrap();
    assert_eq!(revoked, "its certificate was revoked by its authority");
}

#[test]
fn lists_keep_clients_out() {
    let (one, other) = (
        authority("one", ALWAYS, None),
        authority("other", ALWAYS, None),
    );
    let list = one.revoke(&[7, 8], 2900);
    let (good, revoked) = (one.client(1, ALWAYS), one.client(7, ALWAYS));
    let authorities = [&*one.pem, &other.pem];
    let pem = list.pem().unwrap();
    // In PEM, in DER, and beside an older one that has none of them.
    let empty = one.revoke(&[], 2800).pem().unwrap();
    let two = [&*empty, &pem].concat();
    for list in [pem.as_bytes(), list.der(), two.as_bytes()] {
        let trust = load(&authorities, &[list]).unwrap();
        assert_eq!(judge(&trust, &[&good], now()), None);
        let verdict = judge(&trust, &[&revoked], now()).unwrap();
        assert!(verdict.contains("was revoked"), "{verdict}");
        // The other authority has none, so that nothing is known of its clients.
        let verdict = judge(&trust, &[&other.client(1, ALWAYS)], now()).unwrap();
        assert!(verdict.contains("no revocation list"), "{verdict}");
    }
    // Once the list is over, nobody is let in by it.
    let trust = load(&authorities, &[pem.as_bytes()]).unwrap();
    let later = UnixTime::since_unix_epoch(Duration::from_secs(940 * 31_556_952));
    let verdict = judge(&trust, &[&good], later).unwrap();
    assert!(verdict.contains("expired at 2900-01-01"), "{verdict}");
    // A list of the same name by another's key counts for nobody.
    let impostor = authority("one", ALWAYS, None).revoke(&[1], 3000);
    let trust = load(&[&one.pem], &[impostor.der()]).unwrap();
    assert!(judge(&trust, &[&good], now()).is_some());
}

#[test]
fn what_cannot_be_used_is_said_with_its_file() {
    let one = authority("one", ALWAYS, None);
    let old = authority("old", [2000, 2010], None);
    let early = authority("early", [2900, 3000], None);
    let text = |authorities: &[&str], lists: &[&[u8]]| {
        let error = load(authorities, lists).unwrap_err().to_string();
        let name = if lists.is_empty() {
            "/authority0"
        } else {
            "/list0"
        };
        assert!(error.contains(name), "{error}");
        error
    };
    assert!(text(&[""], &[]).contains("holds no certificate in PEM: there is none in it"));
    assert!(text(&[&old.pem], &[]).contains("expired at 2010-01-01"));
    assert!(text(&[&early.pem], &[]).contains("valid only from 2900-01-01"));
    let broken = one.pem.replace('M', "!");
    assert!(text(&[&broken], &[]).contains("it is not base 64"));
    assert!(text(&[&one.pem], &[b"nothing"]).contains("holds no revocation list in PEM"));
    assert!(text(&[&one.pem], &[one.pem.as_bytes()]).contains("there is none in it"));
    assert!(text(&[&one.pem], &[&one.own]).contains("cannot be used"));
    let list = one.revoke(&[7], 2020);
    let error = text(&[&one.pem], &[list.der()]);
    assert!(
        error.contains("expired at 2020-01-01T00:00:00Z; put"),
        "{error}"
    );
    let list = one.revoke(&[7], 3000);
    for end in 0..list.der().len() {
        text(&[&one.pem], &[&list.der()[..end]]);
    }
    // One that is over beside one that holds is not missed.
    let both = [&*old.pem, &one.pem].concat();
    let trust = load(&[&both], &[]).unwrap();
    assert_eq!(judge(&trust, &[&one.client(1, ALWAYS)], now()), None);
    assert!(judge(&trust, &[&old.client(1, ALWAYS)], now()).is_some());
}

#[test]
fn trust_is_the_same_by_what_is_in_the_files() {
    let (one, other) = (
        authority("one", ALWAYS, None),
        authority("other", ALWAYS, None),
    );
    let (list, longer) = (one.revoke(&[7], 2900), one.revoke(&[7, 8], 2900));
    let (list, longer): (&[u8], &[u8]) = (list.der(), longer.der());
    let of = |authorities: &[&str], lists: &[&[u8]]| load(authorities, lists).unwrap();
    assert!(of(&[&one.pem], &[list]) == of(&[&one.pem], &[list]));
    assert!(of(&[&one.pem], &[list]) != of(&[&one.pem], &[longer]));
    assert!(of(&[&one.pem], &[list]) != of(&[&one.pem], &[]));
    assert!(of(&[&one.pem], &[]) != of(&[&one.pem, &other.pem], &[]));
}
