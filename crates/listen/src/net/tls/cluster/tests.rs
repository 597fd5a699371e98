//! Nodes, and others who would like to be taken for one, over real sockets.

use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, channel};

use rcgen::{CertificateParams, ExtendedKeyUsagePurpose, KeyPair, SanType};
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use rustls::sign::CertifiedKey;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::oneshot;

use super::*;
use crate::net::tls::tests::listen;
use crate::net::tls::{Authority, IssuedCertificate, Name};
use logpond_client::tls_error_of_request;
use logpond_host::clock;

const YEAR: Duration = Duration::from_secs(365 * 86_400);

/// An authority, opened again from its files, as the command does.
struct Ca {
    made: IssuedCertificate,
    authority: Authority,
}

impl Ca {
    fn new() -> Ca {
        let made = Authority::create(clock::now()).unwrap();
        let authority = Authority::open(&made.certificate, &made.key).unwrap();
        Ca { made, authority }
    }

    fn node(&self, name: &str) -> IssuedCertificate {
        let local = [
            Name::Address([127, 0, 0, 1].into()),
            Name::Dns("localhost".into()),
        ];
        let now = clock::now();
        self.authority.issue_node(name, &local, now, YEAR).unwrap()
    }

    /// A certificate of this authority that is changed as the test wants it, and names no role.
    fn other(&self, change: impl FnOnce(&mut CertificateParams)) -> IssuedCertificate {
        let mut params = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.authority.issuer).unwrap();
        IssuedCertificate {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        }
    }
}

fn write(directory: &Path, ca: &Ca, own: &IssuedCertificate) {
    std::fs::write(directory.join(AUTHORITIES_NAME), &ca.made.certificate).unwrap();
    std::fs::write(directory.join(CERTIFICATE_NAME), &own.certificate).unwrap();
    std::fs::write(directory.join(KEY_NAME), &own.key).unwrap();
}

/// The directory of a node.
fn directory(ca: &Ca, own: &IssuedCertificate) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), ca, own);
    directory
}

fn load(directory: &Path) -> (Arc<ClusterTls>, Box<dyn WatchTarget>) {
    cluster(directory, &Arc::new(Metrics::default())).unwrap()
}

/// What a client does who looks at nothing before it connects: trusts one, shows another's.
fn unchecked_agent(trusted: &Ca, own: &IssuedCertificate) -> ureq::Agent {
    let der = |pem: &str| CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(own.key.as_bytes()).unwrap();
    let chain = vec![der(&own.certificate)];
    let identity = Identity {
        key: CertifiedKey::from_der(chain, key, &provider()).unwrap(),
        key_text: own.key.clone().into_bytes(),
        not_after: Duration::ZERO,
    };
    agent(&[der(&trusted.made.certificate)], &identity).unwrap()
}

/// A listener of a cluster that answers nodes by their names.
struct TestListener {
    address: SocketAddr,
    /// Who got through, or why somebody did not.
    seen: Receiver<Result<String, String>>,
    _stop: oneshot::Sender<()>,
}

impl TestListener {
    fn start(tls: &Arc<ClusterTls>) -> TestListener {
        let (sender, seen) = channel();
        let tls = tls.clone();
        let (address, stop) = listen(move |stream| answer(tls.clone(), stream, sender.clone()));
        TestListener {
            address,
            seen,
            _stop: stop,
        }
    }

    /// What the client heard, and what the listener saw.
    fn ask(&self, agent: &ureq::Agent) -> (Result<String, String>, Result<String, String>) {
        let answer = agent.get(format!("https://{}/", self.address)).call();
        let heard = match answer {
            Ok(mut answer) => Ok(answer.body_mut().read_to_string().unwrap()),
            Err(error) => Err(match tls_error_of_request(&error) {
                Some(error) => explain(error),
                None => error.to_string(),
            }),
        };
        (heard, self.seen.recv().unwrap())
    }
}

async fn answer(
    tls: Arc<ClusterTls>,
    stream: TcpStream,
    seen: std::sync::mpsc::Sender<Result<String, String>>,
) {
    let peer = stream.peer_addr().unwrap().ip();
    let accepted = tls.accept(stream, peer).await;
    let said = match &accepted {
        Ok(from) => Ok(from.node.clone()),
        Err(refused) => Err(refused.reason.clone()),
    };
    seen.send(said).unwrap();
    let Ok(FromNode { mut stream, node }) = accepted else {
        return;
    };
    let mut head = [0; 4096];
    let mut length = 0;
    while !head[..length].ends_with(b"\r\n\r\n") {
        length += stream.read(&mut head[length..]).await.unwrap();
    }
    let text = format!(
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{node}",
        node.len()
    );
    stream.write_all(text.as_bytes()).await.unwrap();
    let _ = stream.shutdown().await;
}

#[test]
fn nodes_of_a_cluster_talk() {
    let ca = Ca::new();
    let (a, b) = (
        directory(&ca, &ca.node("node-a")),
        directory(&ca, &ca.node("node-b")),
    );
    let ((a, _), (b, _)) = (load(a.path()), load(b.path()));
    assert_eq!((&*a.node(), &*b.node()), ("node-a", "node-b"));
    let listening = TestListener::start(&a);
    let both = || Ok("node-b".to_owned());
    assert_eq!(listening.ask(&b.agent()), (both(), both()));
    let plain = b
        .agent()
        .get(format!("http://{}/", listening.address))
        .call();
    assert!(
        matches!(plain, Err(ureq::Error::RequireHttpsOnly(_))),
        "{plain:?}"
    );
}

#[test]
fn nobody_else_gets_in_and_both_ends_know_why() {
    let (ca, foreign) = (Ca::new(), Ca::new());
    let kept = directory(&ca, &ca.node("node-a"));
    let (tls, _) = load(kept.path());
    let listening = TestListener::start(&tls);
    let now = clock::now();
    let old = now.saturating_add(-2 * 365 * 86_400 * 1_000_000_000);
    let over = ca.authority.issue_node("node-b", &[], old, YEAR).unwrap();
    let role = |uri: &str| SanType::URI(uri.try_into().unwrap());
    let client = ca.other(|params| {
        params
            .subject_alt_names
            .push(role("logpond://client/node-b"));
        params.subject_alt_names.push(role("logpond://node/../x y"));
    });
    let server_only = ca.other(|params| {
        params.subject_alt_names.push(role("logpond://node/node-b"));
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    });
    let table = [
        (
            unchecked_agent(&ca, &foreign.node("node-b")),
            "its certificate is of an authority that is not trusted here",
            "it does not trust the authority of the certificate that it was shown",
        ),
        (
            unchecked_agent(&foreign, &ca.node("node-b")),
            "it left within the handshake; it may not trust the certificate",
            "its certificate is of an authority that is not trusted here",
        ),
        (
            unchecked_agent(&ca, &over),
            "its certificate expired at 20",
            "the certificate that it was shown has expired",
        ),
        (
            unchecked_agent(&ca, &client),
            "its certificate is not one of a node",
            "the certificate that it was shown is not one of a node",
        ),
        (
            unchecked_agent(&ca, &ca.other(|_| {})),
            "its certificate is not one of a node",
            "the certificate that it was shown is not one of a node",
        ),
        (
            unchecked_agent(&ca, &server_only),
            "its certificate is for another purpose",
            "it refuses the certificate that it was shown",
        ),
    ];
    for (agent, seen, heard) in table {
        let (client_heard, listener_saw) = listening.ask(&agent);
        let (client_heard, listener_saw) = (client_heard.unwrap_err(), listener_saw.unwrap_err());
        assert!(client_heard.starts_with(heard), "{heard}: {client_heard}");
        assert!(listener_saw.starts_with(seen), "{seen}: {listener_saw}");
    }
}

#[test]
fn without_a_certificate_nobody_gets_in() {
    let ca = Ca::new();
    let kept = directory(&ca, &ca.node("node-a"));
    let (tls, _) = load(kept.path());
    let listening = TestListener::start(&tls);
    let mut access = logpond_client::Access::default();
    access
        .trust(Some(&kept.path().join(AUTHORITIES_NAME)))
        .unwrap();
    let without = logpond_client::agent(None, &access);
    let (heard, saw) = listening.ask(&without);
    assert_eq!(saw, Err("it shows no certificate".to_owned()));
    assert_eq!(
        heard,
        Err("it wants a certificate, and was shown none".to_owned())
    );
    let mut plain = std::net::TcpStream::connect(listening.address).unwrap();
    plain.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let saw = listening.seen.recv().unwrap();
    assert_eq!(saw, Err("it does not speak TLS".to_owned()));
    // A real node gets in all the same.
    let (heard, _) = listening.ask(&tls.agent());
    assert_eq!(heard, Ok("node-a".to_owned()));
}

#[test]
fn a_node_believes_only_the_address_that_it_asked_and_only_servers() {
    let ca = Ca::new();
    let kept = directory(&ca, &ca.node("node-a"));
    let (tls, _) = load(kept.path());
    let elsewhere = [Name::Dns("node-b.example.com".into())];
    let now = clock::now();
    let moved = ca.authority.issue_node("node-b", &elsewhere, now, YEAR);
    let there = directory(&ca, &moved.unwrap());
    let listening = TestListener::start(&load(there.path()).0);
    let (heard, _) = listening.ask(&tls.agent());
    let heard = heard.unwrap_err();
    assert!(heard.contains("only valid for"), "{heard}");
}

#[test]
fn what_others_would_refuse_is_no_start() {
    let (ca, foreign) = (Ca::new(), Ca::new());
    let old = clock::now().saturating_add(-2 * 365 * 86_400 * 1_000_000_000);
    let over = ca.authority.issue_node("node-b", &[], old, YEAR).unwrap();
    let mixed = IssuedCertificate {
        certificate: ca.node("node-b").certificate,
        key: ca.node("node-b").key,
    };
    let table = [
        (
            foreign.node("node-b"),
            "node.pem is not signed by an authority of",
        ),
        (over, "node.pem expired at 20"),
        (ca.other(|_| {}), "node.pem is not one of a node"),
        (mixed, "node.key is not that of the certificate"),
    ];
    for (own, want) in table {
        let directory = directory(&ca, &own);
        let metrics = Arc::new(Metrics::default());
        let error = cluster(directory.path(), &metrics).err().unwrap();
        let error = logpond_host::terminal::with_causes(&error);
        assert!(error.contains(want), "{want}: {error}");
    }
    let empty = tempfile::tempdir().unwrap();
    let error = cluster(empty.path(), &Arc::new(Metrics::default())).err();
    let error = error.unwrap().to_string();
    assert!(error.contains("ca.pem cannot be read"), "{error}");
    let (other, own) = (Ca::new().made, &ca.made);
    assert!(Authority::open(&own.certificate, &other.key).is_err());
}

#[test]
fn acceptor_and_agent_follow_the_files_together() {
    let (ca, next) = (Ca::new(), Ca::new());
    let at_a = directory(&ca, &ca.node("node-a"));
    let at_b = directory(&ca, &ca.node("node-b"));
    let ((a, mut watch_a), (b, mut watch_b)) = (load(at_a.path()), load(at_b.path()));
    let listening = TestListener::start(&a);
    assert_eq!(listening.ask(&b.agent()).0, Ok("node-b".to_owned()));
    // One has moved to another authority, the other not yet.
    write(at_a.path(), &next, &next.node("node-a"));
    watch_a.look(false);
    assert!(listening.ask(&b.agent()).0.is_err());
    write(at_b.path(), &next, &next.node("node-b2"));
    watch_b.look(false);
    assert_eq!(&*b.node(), "node-b2");
    assert_eq!(listening.ask(&b.agent()).0, Ok("node-b2".to_owned()));
    // What does not fit together changes nothing.
    write(at_a.path(), &ca, &next.node("node-a"));
    watch_a.look(true);
    assert_eq!(listening.ask(&b.agent()).0, Ok("node-b2".to_owned()));
}
