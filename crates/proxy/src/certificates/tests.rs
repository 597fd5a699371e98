//! Sessions that are resumed by tickets of other settings: the keys of tickets are the same here, which
//! they are not where settings are read again.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use logpond_tls::{ClientFiles, read_certificates};
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DnType, IsCa, Issuer,
    KeyIdMethod, KeyPair, RevokedCertParams, SerialNumber, date_time_ymd,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::Value;
use tempfile::TempDir;

use super::*;
use crate::{Frontend, Limits, Route, RunningProxy, Settings, Target, Trust, start};

/// A server's certificate, an authority of clients, one of its clients and a list with that client.
struct Files {
    _directory: TempDir,
    server: CertificateFiles,
    authority: PathBuf,
    client: CertificateFiles,
    revoked: PathBuf,
}

fn files() -> Files {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = directory.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let pair = |name: &str, certificate: &rcgen::Certificate, key: &KeyPair| CertificateFiles {
        certificate: write(&format!("{name}.pem"), &certificate.pem()),
        key: write(&format!("{name}.key"), &key.serialize_pem()),
    };
    let key = KeyPair::generate().unwrap();
    let server = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let server = pair("server", &server.self_signed(&key).unwrap(), &key);
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = write("authority", &params.self_signed(&key).unwrap().pem());
    let issuer = Issuer::new(params, key);
    let serial_number = SerialNumber::from_slice(&[7]);
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "client");
    params.serial_number = Some(serial_number.clone());
    let client = pair("client", &params.signed_by(&key, &issuer).unwrap(), &key);
    let list = CertificateRevocationListParams {
        this_update: date_time_ymd(2020, 1, 1),
        next_update: date_time_ymd(3000, 1, 1),
        crl_number: SerialNumber::from_slice(&[1]),
        issuing_distribution_point: None,
        revoked_certs: vec![RevokedCertParams {
            serial_number,
            revocation_time: date_time_ymd(2020, 1, 1),
            reason_code: None,
            invalidity_date: None,
        }],
        key_identifier_method: KeyIdMethod::Sha256,
    };
    let list = list.signed_by(&issuer).unwrap().pem().unwrap();
    let revoked = write("revoked", &list);
    Files {
        _directory: directory,
        server,
        authority,
        client,
        revoked,
    }
}

impl Files {
    fn auth(&self, lists: &[&PathBuf], rules: &[&str]) -> ClientAuth {
        ClientAuth {
            is_optional: false,
            files: ClientFiles {
                authorities: vec![self.authority.clone()],
                revocations: lists.iter().map(|path| (*path).clone()).collect(),
            },
            rules: rules.iter().map(|rule| rule.parse().unwrap()).collect(),
        }
    }

    /// Certificates by the keys of these tickets.
    fn load(&self, auth: Option<ClientAuth>, tickets: &Arc<dyn ProducesTickets>) -> Certificates {
        let clients = auth.map(|auth| Clients::load(auth).unwrap());
        let settings = TlsSettings {
            files: vec![self.server.clone()],
            ..TlsSettings::default()
        };
        Certificates::load_with(&settings, clients, tickets.clone()).unwrap()
    }

    fn config(&self, version: &'static rustls::SupportedProtocolVersion) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        let server = read_certificates(&self.server.certificate).unwrap();
        roots.add(server[0].clone()).unwrap();
        let own = read_certificates(&self.client.certificate).unwrap();
        let key = PrivateKeyDer::from_pem_file(&self.client.key).unwrap();
        let builder = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[version])
            .unwrap()
            .with_root_certificates(roots);
        Arc::new(builder.with_client_auth_cert(own, key).unwrap())
    }
}

/// Passes records on to a test.
struct Output(Sender<Vec<u8>>);

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // A test that has seen enough looks no more.
        let _ = self.0.send(bytes.to_vec());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

const PATIENCE: Duration = Duration::from_secs(30);

type Client = StreamOwned<ClientConnection, TcpStream>;

fn connect(address: SocketAddr, config: &Arc<ClientConfig>) -> Client {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let client = ClientConnection::new(config.clone(), name).unwrap();
    StreamOwned::new(client, stream)
}

/// Asks for a byte; gives what came of it, and the record.
fn ask(mut client: Client, records: &Receiver<Vec<u8>>) -> (io::Result<()>, Value) {
    let mut byte = [0];
    let outcome = client.write_all(b"x").and_then(|()| {
        client.flush()?;
        client.read_exact(&mut byte)
    });
    drop(client);
    let line = records.recv_timeout(PATIENCE).expect("a record");
    (outcome, serde_json::from_slice(&line).unwrap())
}

/// An upstream that says a byte to each connection.
fn greeter() -> Target {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            // Who is gone needs no greeting.
            let _ = stream.write_all(b"x");
            let _ = stream.read(&mut [0; 16]);
        }
    });
    Target::Tcp("127.0.0.1".to_owned(), port)
}

/// A proxy before a greeter, and its records.
fn proxy(certificates: &Certificates) -> (Proxy, Receiver<Vec<u8>>) {
    let frontend = Frontend {
        name: None,
        listen: vec!["127.0.0.1:0".parse().unwrap()],
        certificates: certificates.clone(),
        routes: vec![Route::to([greeter()])],
        limits: Limits::default(),
        proxy_header: None,
        trust: Trust::default(),
    };
    let settings = Settings {
        frontends: vec![frontend],
        workers: 1,
        waiting_bytes_max: 1 << 20,
        state_interval: None,
    };
    let (sender, records) = channel();
    let running = start(&settings, Vec::new(), Output(sender)).unwrap();
    let [frontend] = settings.frontends.try_into().unwrap();
    (Proxy { running, frontend }, records)
}

struct Proxy {
    running: RunningProxy,
    frontend: Frontend,
}

impl Proxy {
    fn address(&self) -> SocketAddr {
        self.running.addresses()[0][0]
    }

    /// Shows these from the next connection on.
    fn show(&self, certificates: &Certificates) {
        let mut frontend = self.frontend.clone();
        frontend.certificates = certificates.clone();
        self.running.control().replace(&[frontend]).unwrap();
    }
}

#[test]
fn a_resumed_session_lets_in_nobody_who_would_not_be_let_in_anew() {
    let files = files();
    let tickets = new_tickets().unwrap();
    let open = files.load(Some(files.auth(&[], &[])), &tickets);
    let anybody = files.load(None, &tickets);
    let good = files.auth(&[], &["cn=client"]);
    // What was so when the session began, what is so now, and what is said.
    let table = [
        (&open, good, None),
        (
            &open,
            files.auth(&[&files.revoked], &[]),
            Some("its certificate was revoked by its authority"),
        ),
        (
            &open,
            files.auth(&[], &["cn=other"]),
            Some("its certificate is none of those that are let in"),
        ),
        (
            &anybody,
            files.auth(&[], &[]),
            Some("it shows no certificate"),
        ),
    ];
    let (proxy, records) = proxy(&open);
    let address = proxy.address();
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        for (before, now, why) in &table {
            let config = files.config(version);
            proxy.show(before);
            let (outcome, record) = ask(connect(address, &config), &records);
            outcome.unwrap();
            assert_eq!(record["resumed"], false);
            let now = files.load(Some(now.clone()), &tickets);
            proxy.show(&now);
            let (outcome, record) = ask(connect(address, &config), &records);
            assert_eq!(record["resumed"], true, "{record}");
            assert_eq!(outcome.is_ok(), why.is_none(), "{record}");
            assert_eq!(record["error"].as_str(), *why);
            if let Err(error) = outcome {
                // TLS ends in order: nobody has cut anything off.
                assert_eq!(error.to_string(), "failed to fill whole buffer");
                assert_eq!(record["close_reason"], "client_certificate");
                assert!(record.get("upstream").is_none(), "{record}");
            }
        }
    }
}

#[test]
fn a_change_counts_for_handshakes_that_have_begun() {
    let files = files();
    let tickets = new_tickets().unwrap();
    let open = files.load(Some(files.auth(&[], &[])), &tickets);
    let anybody = files.load(None, &tickets);
    let strict = files.load(Some(files.auth(&[&files.revoked], &[])), &tickets);
    let (proxy, records) = proxy(&open);
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        for (before, why) in [
            (&open, "its certificate was revoked by its authority"),
            (&anybody, "it shows no certificate"),
        ] {
            proxy.show(before);
            let mut client = connect(proxy.address(), &files.config(version));
            client.conn.write_tls(&mut client.sock).unwrap();
            while !client.conn.wants_write() {
                client.conn.read_tls(&mut client.sock).unwrap();
                client.conn.process_new_packets().unwrap();
            }
            proxy.show(&strict);
            let (outcome, record) = ask(client, &records);
            assert!(outcome.is_err());
            assert_eq!(record["close_reason"], "client_certificate", "{record}");
            assert_eq!(record["error"], why);
            assert!(record.get("upstream").is_none(), "{record}");
        }
    }
}
