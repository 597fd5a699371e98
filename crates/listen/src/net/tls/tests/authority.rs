//! An authority for certificates of tests. The tests of the server use this file, too.

use std::path::Path;

use logpond_tls::CertificateFiles;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};

/// An authority for certificates of tests.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate and its key, in PEM.
pub(crate) struct TestCertificate {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Authority {
    pub(crate) fn new() -> Authority {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "a test");
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap());
        Authority {
            issuer: issuer.unwrap(),
        }
    }

    /// The authority's own certificate.
    pub(crate) fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// A certificate for these names, changed as the test wants it.
    pub(crate) fn issue(
        &self,
        names: &[&str],
        change: impl FnOnce(&mut CertificateParams),
    ) -> TestCertificate {
        let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        TestCertificate {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        }
    }
}

impl TestCertificate {
    /// Writes both files.
    pub(crate) fn write(&self, files: &CertificateFiles) {
        std::fs::write(&files.certificate, &self.certificate).unwrap();
        std::fs::write(&files.key, &self.key).unwrap();
    }
}

/// The files of a certificate in this directory.
pub(crate) fn files(directory: &Path) -> CertificateFiles {
    CertificateFiles {
        certificate: directory.join("server.pem"),
        key: directory.join("server.key"),
    }
}
