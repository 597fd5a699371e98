//! Certificates made for each test, and real sockets.

mod authority;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream as StdStream};
use std::time::Duration;

use rcgen::CertificateParams;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use tokio::sync::oneshot;

use super::acceptor::HANDSHAKE_RECORD;
use super::*;
use authority::{Authority, TestCertificate, files};
use logpond_host::clock;
use logpond_tls::FAR_FUTURE;

/// Longer than anything may take; a test that waits so long has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// Seconds since 1970, some hours from now.
fn hours_from_now(hours: i64) -> u64 {
    let (seconds, _) = clock::now().seconds();
    (seconds + hours * 3600).try_into().unwrap()
}

/// Makes this the first and last moment of a certificate.
fn valid(params: &mut CertificateParams, from_hours: i64, to_hours: i64) {
    let start = rcgen::date_time_ymd(1970, 1, 1);
    params.not_before = start + Duration::from_secs(hours_from_now(from_hours));
    params.not_after = start + Duration::from_secs(hours_from_now(to_hours));
}

fn said(error: &TlsError) -> String {
    logpond_host::terminal::with_causes(error)
}

#[test]
fn bad_files_are_named_with_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    let good = authority.issue(&["localhost"], |_| {});
    let other = authority.issue(&["localhost"], |_| {});
    let over = authority.issue(&["localhost"], |params| valid(params, -48, -24));
    let early = authority.issue(&["localhost"], |params| valid(params, 24, 48));
    let encrypted =
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    let rubbish = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let cut = &good.certificate[..good.certificate.len() - 30];
    let table = [
        (
            &*good.certificate,
            &*other.key,
            "server.key is not that of the certificate",
        ),
        (&*over.certificate, &*over.key, "server.pem expired at 20"),
        (&*early.certificate, &*early.key, "is valid only from 20"),
        (
            "",
            &*good.key,
            "server.pem holds no certificate in PEM: there is none",
        ),
        (cut, &*good.key, "an '-----END …' line is missing"),
        (rubbish, &*good.key, "server.pem cannot be used"),
        (&*good.key, &*good.key, "server.pem holds no certificate"),
        (
            &*good.certificate,
            &*good.certificate,
            "server.key holds no private key",
        ),
        (
            &*good.certificate,
            encrypted,
            "it is encrypted by a password",
        ),
    ];
    let files = files(directory.path());
    for (certificate, key, want) in table {
        let made = TestCertificate {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
        };
        made.write(&files);
        let error = said(&Identity::load(&files).err().unwrap());
        assert!(error.contains(want), "{want}: {error}");
        assert!(!error.contains("AAAA"), "{error}");
    }
    std::fs::remove_file(&files.key).unwrap();
    let error = said(&Identity::load(&files).err().unwrap());
    assert!(
        error.contains("server.key cannot be read: No such file"),
        "{error}"
    );
    std::fs::write(&files.key, vec![b'-'; 2 << 20]).unwrap();
    let error = said(&Identity::load(&files).err().unwrap());
    assert!(error.contains("longer than"), "{error}");
}

#[test]
fn the_last_moment_is_known() {
    let directory = tempfile::tempdir().unwrap();
    let files = files(directory.path());
    let authority = Authority::new();
    authority
        .issue(&["localhost"], |params| valid(params, -1, 5))
        .write(&files);
    let identity = Identity::load(&files).unwrap();
    let hour = hours_from_now(5);
    let seconds = identity.not_after.as_secs();
    assert!((hour - 60..=hour).contains(&seconds), "{seconds} {hour}");
    // That of a certificate without an end (RFC 5280, section 4.1.2.5).
    let end = rcgen::date_time_ymd(9999, 12, 31);
    authority
        .issue(&["localhost"], |params| params.not_after = end)
        .write(&files);
    let identity = Identity::load(&files).unwrap();
    assert!(identity.not_after < FAR_FUTURE && identity.not_after.as_secs() > 253_000_000_000);
}

/// A listener that greets whoever gets through, until it is dropped.
struct Greeter {
    address: SocketAddr,
    watched: Box<dyn WatchTarget>,
    metrics: Arc<Metrics>,
    files: CertificateFiles,
    _stop: oneshot::Sender<()>,
    _directory: tempfile::TempDir,
}

impl Greeter {
    fn start(made: &TestCertificate) -> Greeter {
        let directory = tempfile::tempdir().unwrap();
        let files = files(directory.path());
        made.write(&files);
        let metrics = Arc::new(Metrics::default());
        let (acceptor, watched) = https(&files, &metrics).unwrap();
        let (address, stop) = listen(move |stream| greet(acceptor.clone(), stream));
        Greeter {
            address,
            watched,
            metrics,
            files,
            _stop: stop,
            _directory: directory,
        }
    }

    fn counts(&self) -> [i64; 4] {
        let tls = self.metrics.access.tls(TlsListener::Http);
        [&tls.done, &tls.failed, &tls.slow, &tls.plain].map(|counter| counter.get())
    }

    fn reloads(&self) -> [i64; 2] {
        let reloads = self.metrics.access.reloads(ReloadTarget::HttpCertificate);
        [reloads.done.get(), reloads.failed.get()]
    }
}

/// Serves connections on an event loop of its own until what it gives is dropped.
pub(crate) fn listen<F>(
    serve: impl Fn(tokio::net::TcpStream) -> F + Send + 'static,
) -> (SocketAddr, oneshot::Sender<()>)
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, mut stopped) = oneshot::channel();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    std::thread::spawn(move || {
        runtime.block_on(async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            loop {
                tokio::select! {
                    accepted = listener.accept() => drop(tokio::spawn(serve(accepted.unwrap().0))),
                    _ = &mut stopped => return,
                }
            }
        });
    });
    (address, stop)
}

async fn greet(acceptor: Arc<Acceptor>, stream: tokio::net::TcpStream) {
    use tokio::io::AsyncWriteExt;
    match acceptor.accept(stream).await {
        Ok(IncomingStream::Tls(mut stream)) => {
            let _ = stream.write_all(b"hello").await;
            let _ = stream.shutdown().await;
        }
        Ok(IncomingStream::Plain(mut stream)) => {
            let _ = stream.write_all(b"plain").await;
        }
        Err(_) => {}
    }
}

fn trusting(pem: &str, versions: &[&'static rustls::SupportedProtocolVersion]) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
        roots.add(certificate.unwrap()).unwrap();
    }
    ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth()
}

/// What is said to a client that speaks TLS, and the version and certificate that it sees.
fn ask(
    address: SocketAddr,
    config: ClientConfig,
) -> std::io::Result<(String, rustls::ProtocolVersion, Vec<u8>)> {
    ask_over(StdStream::connect(address)?, config)
}

fn ask_over(
    socket: StdStream,
    config: ClientConfig,
) -> std::io::Result<(String, rustls::ProtocolVersion, Vec<u8>)> {
    let name = ServerName::try_from("localhost").unwrap();
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    socket.set_read_timeout(Some(PATIENCE))?;
    let mut stream = StreamOwned::new(connection, socket);
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    let version = stream.conn.protocol_version().unwrap();
    let certificate = stream.conn.peer_certificates().unwrap()[0].to_vec();
    Ok((text, version, certificate))
}

#[test]
fn both_versions_of_tls_get_through_and_nothing_else() {
    let authority = Authority::new();
    let greeter = Greeter::start(&authority.issue(&["localhost"], |_| {}));
    for version in rustls::ALL_VERSIONS {
        let config = trusting(&authority.pem(), &[version]);
        let (text, spoken, _) = ask(greeter.address, config).unwrap();
        assert_eq!((&*text, spoken), ("hello", version.version));
        // A client that does not trust the certificate leaves.
        let config = trusting(&Authority::new().pem(), &[version]);
        assert!(ask(greeter.address, config).is_err());
    }
    let mut plain = StdStream::connect(greeter.address).unwrap();
    plain.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let mut text = [0; 5];
    plain.read_exact(&mut text).unwrap();
    assert_eq!(&text, b"plain");
    // A greeting without anything in it.
    let mut broken = StdStream::connect(greeter.address).unwrap();
    let greeting = b"\x16\x03\x01\x00\x04\x01\x00\x00\x00";
    broken.write_all(greeting).unwrap();
    let mut rest = Vec::new();
    let _ = broken.read_to_end(&mut rest);
    assert_ne!(rest, b"hello");
    // The last of them hear of it before it is counted.
    let started = std::time::Instant::now();
    while greeter.counts() != [2, 3, 0, 1] {
        assert!(started.elapsed() < PATIENCE, "{:?}", greeter.counts());
        std::thread::yield_now();
    }
}

#[test]
fn one_address_cannot_keep_others_from_shaking_hands() {
    let authority = Authority::new();
    let greeter = Greeter::start(&authority.issue(&["localhost"], |_| {}));
    let begun = (0..HANDSHAKES_MAX + 1).map(|_| {
        let mut stream = StdStream::connect(greeter.address).unwrap();
        stream.write_all(&[HANDSHAKE_RECORD]).unwrap();
        stream
    });
    let begun: Vec<StdStream> = begun.collect();
    let started = std::time::Instant::now();
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    let own: SocketAddr = "127.0.0.2:0".parse().unwrap();
    socket.bind(&own.into()).unwrap();
    socket.connect(&greeter.address.into()).unwrap();
    let config = trusting(&authority.pem(), rustls::ALL_VERSIONS);
    let (text, _, _) = ask_over(socket.into(), config).unwrap();
    assert_eq!(text, "hello");
    // Those that began before are not over yet.
    assert!(
        started.elapsed() < HANDSHAKE_TIME_MAX,
        "{:?}",
        started.elapsed()
    );
    drop(begun);
}

#[tokio::test(start_paused = true)]
async fn who_says_nothing_is_not_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let files = files(directory.path());
    let metrics = Arc::new(Metrics::default());
    Authority::new().issue(&["localhost"], |_| {}).write(&files);
    let (acceptor, _) = https(&files, &metrics).unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent = StdStream::connect(listener.local_addr().unwrap()).unwrap();
    let mut begun = StdStream::connect(listener.local_addr().unwrap()).unwrap();
    begun.write_all(&[HANDSHAKE_RECORD]).unwrap();
    for _ in [&silent, &begun] {
        let (stream, _) = listener.accept().await.unwrap();
        let started = tokio::time::Instant::now();
        let error = acceptor.accept(stream).await.unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::TimedOut, "{error}");
        assert!(started.elapsed() >= HANDSHAKE_TIME_MAX);
    }
    assert_eq!(metrics.access.tls(TlsListener::Http).slow.get(), 2);
}

#[test]
fn new_files_are_taken_in_and_bad_ones_leave_what_was_there() {
    let authority = Authority::new();
    let old = authority.issue(&["localhost"], |_| {});
    let mut greeter = Greeter::start(&old);
    let address = greeter.address;
    let shown = || {
        let config = trusting(&authority.pem(), rustls::ALL_VERSIONS);
        ask(address, config).unwrap().2
    };
    let der = |made: &TestCertificate| {
        let der = CertificateDer::from_pem_slice(made.certificate.as_bytes());
        der.unwrap().to_vec()
    };
    assert_eq!(shown(), der(&old));
    greeter.watched.look(false);
    assert_eq!(greeter.reloads(), [0, 0], "nothing has changed");

    // One file after the other: in between they do not fit, which is nobody's fault.
    let new = authority.issue(&["localhost"], |params| valid(params, -1, 5));
    std::fs::write(&greeter.files.certificate, &new.certificate).unwrap();
    greeter.watched.look(false);
    assert_eq!((shown(), greeter.reloads()), (der(&old), [0, 0]));
    std::fs::write(&greeter.files.key, &new.key).unwrap();
    greeter.watched.look(false);
    assert_eq!((shown(), greeter.reloads()), (der(&new), [1, 0]));
    let tls = greeter.metrics.access.tls(TlsListener::Http);
    let hour = hours_from_now(5).cast_signed();
    assert!((hour - 60..=hour).contains(&tls.not_after_s.get()));

    // Bad for longer is said once.
    let over = authority.issue(&["localhost"], |params| valid(params, -5, -1));
    over.write(&greeter.files);
    for _ in 0..5 {
        greeter.watched.look(false);
    }
    assert_eq!((shown(), greeter.reloads()), (der(&new), [1, 1]));
    greeter.watched.look(true);
    assert_eq!(greeter.reloads(), [1, 2], "who asks is told again");
    std::fs::remove_file(&greeter.files.key).unwrap();
    greeter.watched.look(true);
    assert_eq!((shown(), greeter.reloads()), (der(&new), [1, 3]));
    old.write(&greeter.files);
    greeter.watched.look(false);
    assert_eq!((shown(), greeter.reloads()), (der(&old), [2, 3]));
}
