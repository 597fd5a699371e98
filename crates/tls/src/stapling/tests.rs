use std::fs;
use std::process::{Command, Stdio};

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, SerialNumber};
use tempfile::TempDir;

use super::*;

/// An authority whose responses openssl makes, and certificates of it.
struct Authority {
    directory: TempDir,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new(name: &str) -> Authority {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params
            .distinguished_name
            .push(rcgen::DnType::CommonName, name);
        let own = params.self_signed(&key).unwrap();
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("ca.pem"), own.pem()).unwrap();
        fs::write(directory.path().join("ca.key"), key.serialize_pem()).unwrap();
        let issuer = Issuer::new(params, key);
        Authority { directory, issuer }
    }

    fn certificate(&self, serial: u64) -> CertificateDer<'static> {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.serial_number = Some(SerialNumber::from(serial));
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let path = self.directory.path().join(format!("{serial}.pem"));
        fs::write(path, certificate.pem()).unwrap();
        certificate.der().clone()
    }

    /// What openssl answers for a certificate that the authority's list calls `status`.
    fn respond(&self, serial: u64, status: &str, more: &[&str]) -> Vec<u8> {
        let path = |name: &str| self.directory.path().join(name);
        let revoked = if status == "R" { "250101000000Z" } else { "" };
        let line = format!("{status}\t491231000000Z\t{revoked}\t{serial:02X}\tunknown\t/CN=x\n");
        fs::write(path("index.txt"), line).unwrap();
        let output = Command::new("openssl")
            .current_dir(self.directory.path())
            .args([
                "ocsp",
                "-index",
                "index.txt",
                "-CA",
                "ca.pem",
                "-rsigner",
                "ca.pem",
            ])
            .args([
                "-rkey",
                "ca.key",
                "-issuer",
                "ca.pem",
                "-cert",
                &format!("{serial}.pem"),
            ])
            .args(["-noverify", "-respout", "out.ocsp"])
            .args(more)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        fs::read(path("out.ocsp")).unwrap()
    }
}

fn has_openssl() -> bool {
    let mut command = Command::new("openssl");
    let command = command.arg("version").stdout(Stdio::null());
    let is_here = command.status().is_ok_and(|status| status.success());
    if !is_here {
        use std::io::Write;
        let _ = writeln!(std::io::stderr(), "skipped: there is no openssl");
    }
    is_here
}

fn seconds(time: u64) -> Duration {
    Duration::from_secs(time)
}

#[test]
fn only_good_responses_of_the_certificate_are_shown_while_they_hold() {
    if !has_openssl() {
        return;
    }
    let authority = Authority::new("authority");
    let (own, other) = (authority.certificate(0x1234), authority.certificate(0x1235));
    let stranger = Authority::new("stranger").certificate(0x1234);
    let now = seconds(now().as_secs());
    let good = authority.respond(0x1234, "V", &["-ndays", "7"]);
    let staple = Staple::new(good.clone(), &own, now).unwrap();
    assert_eq!(staple.response, good);
    let until = staple.good_until.unwrap();
    assert!(until > now + seconds(6 * 86_400) && until < now + seconds(8 * 86_400));
    let forever = authority.respond(0x1234, "V", &[]);
    assert_eq!(Staple::new(forever, &own, now).unwrap().good_until, None);
    let revoked = authority.respond(0x1234, "R", &["-ndays", "7"]);
    let week = seconds(8 * 86_400);
    for (response, certificate, at, expected) in [
        (&good, &other, now, "is of another certificate"),
        (&good, &stranger, now, "is of another certificate"),
        (&good, &own, now + week, "is over since "),
        (&good, &own, now - week, "is of the future"),
        (&revoked, &own, now, "says that the certificate is revoked"),
        (
            &good[..good.len() - 1].to_vec(),
            &own,
            now,
            "is none, or broken",
        ),
        (&Vec::new(), &own, now, "is none, or broken"),
        (
            &vec![0x30, 3, 10, 1, 3],
            &own,
            now,
            "says that the request failed (TryLater)",
        ),
    ] {
        let error = Staple::new(response.clone(), certificate, at).unwrap_err();
        assert!(error.starts_with(expected), "{expected}: {error}");
    }
    let unknown = authority.respond(0x1235, "V", &["-ndays", "7"]);
    let error = Staple::new(unknown, &own, now).unwrap_err();
    assert_eq!(error, "is of another certificate");
}

#[test]
fn a_response_is_beside_its_certificate_or_not_there() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("own.pem");
    let key = KeyPair::generate().unwrap();
    let own = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let own = own.self_signed(&key).unwrap();
    assert_eq!(Staple::beside(&path, own.der()), Ok(None));
    for bytes in [&b"nothing"[..], &[0x30; 65 << 10]] {
        fs::write(directory.path().join("own.pem.ocsp"), bytes).unwrap();
        let error = Staple::beside(&path, own.der()).unwrap_err();
        assert!(error.contains("own.pem.ocsp"), "{error}");
    }
}
