//! What all tests need: certificates, upstreams, a proxy, a client.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use logpond_proxy::{
    Certificates, Frontend, Limits, ListenSockets, ProxyHeader, Route, RunningProxy, Settings,
    Target, TlsSettings, Trust, start,
};
use logpond_tls::{CertificateFiles, provider};
use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ED25519};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned, SupportedProtocolVersion,
};
use serde_json::Value;
use tempfile::TempDir;

/// How long anything is waited for that must come.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A directory with certificates.
pub(crate) struct Scratch(TempDir);

/// A kind of key.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Key {
    P256,
    Ed25519,
}

impl Scratch {
    pub(crate) fn new() -> Scratch {
        Scratch(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A certificate for these names that is its own authority, in files of this name.
    pub(crate) fn certificate(&self, name: &str, of: &[&str], key: Key) -> CertificateFiles {
        let key = KeyPair::generate_for(match key {
            Key::P256 => &PKCS_ECDSA_P256_SHA256,
            Key::Ed25519 => &PKCS_ED25519,
        });
        let key = key.unwrap();
        let names: Vec<String> = of.iter().map(|name| (*name).to_owned()).collect();
        let own = CertificateParams::new(names)
            .unwrap()
            .self_signed(&key)
            .unwrap();
        let files = CertificateFiles {
            certificate: self.path(&format!("{name}.pem")),
            key: self.path(&format!("{name}.key")),
        };
        fs::write(&files.certificate, own.pem()).unwrap();
        fs::write(&files.key, key.serialize_pem()).unwrap();
        files
    }

    /// One for `localhost`.
    pub(crate) fn localhost(&self) -> CertificateFiles {
        self.certificate("localhost", &["localhost"], Key::P256)
    }
}

/// Settings of TLS with these alone.
pub(crate) fn tls(files: &[CertificateFiles]) -> TlsSettings {
    TlsSettings {
        files: files.to_vec(),
        ..TlsSettings::default()
    }
}

pub(crate) fn load(files: &[CertificateFiles]) -> Certificates {
    Certificates::load(&tls(files)).unwrap()
}

/// A running proxy and the records of its connections.
pub(crate) struct Proxy {
    running: RunningProxy,
    frontends: Vec<Frontend>,
    records: Receiver<Vec<u8>>,
    /// Records that came with others.
    waiting: RefCell<VecDeque<Value>>,
}

/// Passes what is written on to a test.
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

/// The options of a frontend, without certificates.
pub(crate) struct FrontendOptions {
    pub(crate) listen: SocketAddr,
    pub(crate) routes: Vec<Route>,
    pub(crate) limits: Limits,
    pub(crate) proxy_header: Option<ProxyHeader>,
    pub(crate) trust: Trust,
}

/// A frontend before these upstreams.
pub(crate) fn settings(upstreams: &[String]) -> FrontendOptions {
    FrontendOptions {
        listen: "127.0.0.1:0".parse().unwrap(),
        routes: vec![Route::to(targets(upstreams))],
        limits: Limits::default(),
        proxy_header: None,
        trust: Trust::default(),
    }
}

pub(crate) fn targets(upstreams: &[String]) -> Vec<Target> {
    upstreams.iter().map(|text| text.parse().unwrap()).collect()
}

impl FrontendOptions {
    pub(crate) fn with(self, certificates: &Certificates) -> Frontend {
        Frontend {
            name: None,
            listen: vec![self.listen],
            certificates: certificates.clone(),
            routes: self.routes,
            limits: self.limits,
            proxy_header: self.proxy_header,
            trust: self.trust,
        }
    }
}

impl Proxy {
    pub(crate) fn start(options: FrontendOptions, certificates: &Certificates) -> Proxy {
        Proxy::start_all(vec![options.with(certificates)])
    }

    /// One with two workers.
    pub(crate) fn start_all(frontends: Vec<Frontend>) -> Proxy {
        Proxy::start_with(frontends, 64 << 20)
    }

    /// One in which so much may wait.
    pub(crate) fn start_with(frontends: Vec<Frontend>, waiting_bytes_max: usize) -> Proxy {
        Proxy::take_over(frontends, waiting_bytes_max, Vec::new())
    }

    /// One that goes on where these sockets listen.
    pub(crate) fn take_over(
        frontends: Vec<Frontend>,
        waiting_bytes_max: usize,
        inherited: Vec<ListenSockets>,
    ) -> Proxy {
        let (sender, records) = channel();
        let settings = Settings {
            frontends: frontends.clone(),
            workers: 2,
            waiting_bytes_max,
            state_interval: None,
        };
        let running = start(&settings, inherited, Output(sender)).unwrap();
        Proxy {
            running,
            frontends,
            records,
            waiting: RefCell::default(),
        }
    }

    /// A proxy with the same settings takes over from this one, which is left to end.
    pub(crate) fn hand_over(self) -> (Proxy, Proxy) {
        let inherited = self.running.stopper().listening().unwrap();
        let next = Proxy::take_over(self.frontends.clone(), 64 << 20, inherited);
        self.running.stopper().drain(PATIENCE);
        (self, next)
    }

    /// Shows these from the next connection on.
    pub(crate) fn show(&self, certificates: &Certificates) {
        let mut frontends = self.frontends.clone();
        frontends[0].certificates = certificates.clone();
        self.running.control().replace(&frontends).unwrap();
    }

    pub(crate) fn running(&self) -> &RunningProxy {
        &self.running
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.running.addresses()[0][0]
    }

    /// Ends it, without waiting for connections; gives all records and how many were cut.
    pub(crate) fn end(self) -> (Vec<Value>, usize) {
        self.running.stopper().drain(Duration::ZERO);
        self.wait()
    }

    /// Waits for its end.
    pub(crate) fn wait(self) -> (Vec<Value>, usize) {
        let (cut, lost) = self.running.join();
        assert_eq!(lost, 0);
        let written: Vec<u8> = self.records.iter().flatten().collect();
        let lines = written
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty());
        let records = lines.map(|line| serde_json::from_slice(line).unwrap());
        let waiting = self.waiting.into_inner().into_iter();
        (waiting.chain(records).collect(), cut)
    }

    /// The next record.
    pub(crate) fn record(&self) -> Value {
        let mut waiting = self.waiting.borrow_mut();
        while waiting.is_empty() {
            let lines = self.records.recv_timeout(PATIENCE).expect("a record");
            let lines = lines.split(|byte| *byte == b'\n');
            let records = lines.filter(|line| !line.is_empty());
            waiting.extend(records.map(|line| serde_json::from_slice::<Value>(line).unwrap()));
        }
        waiting.pop_front().unwrap()
    }
}

/// An upstream over TCP whose connections each have a thread.
pub(crate) fn upstream(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serve = Arc::new(serve);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let serve = serve.clone();
            thread::spawn(move || serve(stream));
        }
    });
    format!("tcp:{address}")
}

/// Sends back what comes, until nothing more comes.
pub(crate) fn echo(mut stream: TcpStream) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(read @ 1..) = stream.read(&mut buffer) {
        if stream.write_all(&buffer[..read]).is_err() {
            return;
        }
    }
}

/// A TLS client.
pub(crate) type Client = StreamOwned<ClientConnection, TcpStream>;

/// Settings of a client that trusts these certificates.
pub(crate) fn trusting(files: &[&CertificateFiles]) -> ClientConfig {
    trusting_in(files, rustls::DEFAULT_VERSIONS)
}

/// The same in these versions of TLS.
pub(crate) fn trusting_in(
    files: &[&CertificateFiles],
    versions: &[&'static SupportedProtocolVersion],
) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    for files in files {
        let own = CertificateDer::from_pem_file(&files.certificate).unwrap();
        roots.add(own).unwrap();
    }
    ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth()
}

/// Connects; the handshake comes with the first byte.
pub(crate) fn connect(address: SocketAddr, config: &Arc<ClientConfig>, name: &str) -> Client {
    over(TcpStream::connect(address).unwrap(), config, name)
}

/// The same over a connection.
pub(crate) fn over(stream: TcpStream, config: &Arc<ClientConfig>, name: &str) -> Client {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    StreamOwned::new(ClientConnection::new(config.clone(), name).unwrap(), stream)
}

/// Says that nothing more comes, in TLS and below it.
pub(crate) fn close(client: &mut Client) {
    client.conn.send_close_notify();
    client.flush().unwrap();
    client.sock.shutdown(std::net::Shutdown::Write).unwrap();
}

/// Sends these and reads as many bytes.
pub(crate) fn exchange(client: &mut Client, bytes: &[u8]) -> io::Result<Vec<u8>> {
    client.write_all(bytes)?;
    client.flush()?;
    let mut answer = vec![0; bytes.len()];
    client.read_exact(&mut answer)?;
    Ok(answer)
}

/// Bytes in which a shift or a swap would be noticed.
pub(crate) fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 31 + at / 251) as u8).collect()
}
