//! What goes in comes out.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;

use logpond_proxy::{Certificates, TlsSettings};
use rustls::ClientConfig;
use rustls::version::{TLS12, TLS13};
use socket2::{Domain, SockAddr, Socket, Type};

use crate::setting::*;

#[test]
fn all_lengths_come_back_in_both_versions() {
    let scratch = Scratch::new();
    let files = scratch.localhost();
    let proxy = Proxy::start(
        settings(&[upstream(echo)]),
        &load(std::slice::from_ref(&files)),
    );
    for (version, name) in [(&TLS12, "TLSv1.2"), (&TLS13, "TLSv1.3")] {
        let versions = rustls::ClientConfig::builder_with_provider(logpond_tls::provider());
        let versions = versions.with_protocol_versions(&[version]).unwrap();
        let mut roots = rustls::RootCertStore::empty();
        let own = logpond_tls::read_certificates(&files.certificate).unwrap();
        roots.add(own[0].clone()).unwrap();
        let config = Arc::new(versions.with_root_certificates(roots).with_no_client_auth());
        let mut client = connect(proxy.address(), &config, "localhost");
        let lengths = [1, 10, 16_383, 16_384, 16_385, 65_535, 65_536, 100_000];
        for length in lengths {
            let bytes = pattern(length);
            assert!(exchange(&mut client, &bytes).unwrap() == bytes, "{length}");
        }
        close(&mut client);
        assert_eq!(client.read(&mut [0]).unwrap(), 0);
        let record = proxy.record();
        let total: usize = lengths.iter().sum();
        assert_eq!(record["version"], name);
        assert_eq!(record["close_reason"], "client", "{record}");
        assert_eq!(record["bytes_from_client"], total);
        assert_eq!(record["bytes_to_client"], total);
        assert_eq!(record["sni"], "localhost");
        assert_eq!(record["client"], "127.0.0.1");
        assert_eq!(record["resumed"], false);
        for time in ["handshake_s", "duration_s"] {
            assert!(record[time].as_f64().unwrap() > 0.0, "{record}");
        }
    }
}

#[test]
fn megabytes_pass_while_both_sides_are_slow_in_turn() {
    let scratch = Scratch::new();
    let files = scratch.localhost();
    // It first takes everything, then gives everything: what is under way fills all buffers.
    let store = upstream(|mut stream| {
        let mut all = Vec::new();
        stream.read_to_end(&mut all).unwrap();
        stream.write_all(&all).unwrap();
    });
    let proxy = Proxy::start(
        settings(&[store, upstream(echo)]),
        &load(std::slice::from_ref(&files)),
    );
    let config = Arc::new(trusting(&[&files]));
    let bytes = pattern(20 << 20);
    for _ in 0..2 {
        let mut client = connect(proxy.address(), &config, "localhost");
        let (mut answer, mut sent) = (Vec::new(), 0);
        // The echo is read only so often that nobody can go on without waiting for the other.
        client.conn.complete_io(&mut client.sock).unwrap();
        client.sock.set_nonblocking(true).unwrap();
        let mut buffer = vec![0; 128 << 10];
        while sent < bytes.len() {
            let end = bytes.len().min(sent + (64 << 10));
            match client.write(&bytes[sent..end]) {
                Ok(written) => sent += written,
                Err(_) => match client.read(&mut buffer) {
                    Ok(read) => answer.extend_from_slice(&buffer[..read]),
                    Err(_) => thread::yield_now(),
                },
            }
        }
        client.sock.set_nonblocking(false).unwrap();
        close(&mut client);
        client.read_to_end(&mut answer).unwrap();
        assert!(answer == bytes);
        assert_eq!(proxy.record()["close_reason"], "client");
    }
}

#[test]
fn upstreams_may_be_unix_sockets_and_fail() {
    let scratch = Scratch::new();
    let files = scratch.localhost();
    let path = scratch.path("app.sock");
    let listener = UnixListener::bind(&path).unwrap();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut all = Vec::new();
            stream.read_to_end(&mut all).unwrap();
            stream.write_all(&all).unwrap();
        }
    });
    let unix = format!("unix:{}", path.display());
    let missing = format!("unix:{}", scratch.path("nobody.sock").display());
    let both = Proxy::start(
        settings(&[missing.clone(), unix.clone()]),
        &load(std::slice::from_ref(&files)),
    );
    let config = Arc::new(trusting(&[&files]));
    for _ in 0..4 {
        let mut client = connect(both.address(), &config, "localhost");
        client.write_all(b"hello").unwrap();
        close(&mut client);
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, "hello");
        assert_eq!(both.record()["upstream"], *unix);
    }
    let none = Proxy::start(
        settings(std::slice::from_ref(&missing)),
        &load(std::slice::from_ref(&files)),
    );
    let mut client = connect(none.address(), &config, "localhost");
    assert!(
        exchange(&mut client, b"hello").is_err(),
        "no end that TLS would call one"
    );
    let record = none.record();
    assert_eq!(record["close_reason"], "upstream_unreachable");
    assert_eq!(record["upstream"], *missing);
    assert_eq!(record["version"], "TLSv1.3");
}

#[test]
fn a_full_queue_of_an_upstream_is_waited_for() {
    let scratch = Scratch::new();
    let files = scratch.localhost();
    let path = scratch.path("full.sock");
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
    socket.bind(&SockAddr::unix(&path).unwrap()).unwrap();
    // Room for one that nobody has accepted.
    socket.listen(0).unwrap();
    let _first = UnixStream::connect(&path).unwrap();
    let upstream = format!("unix:{}", path.display());
    let proxy = Proxy::start(settings(&[upstream]), &load(std::slice::from_ref(&files)));
    let config = Arc::new(trusting(&[&files]));
    let mut client = connect(proxy.address(), &config, "localhost");
    client.write_all(b"hello").unwrap();
    let listener = UnixListener::from(OwnedFd::from(socket));
    let _first_accepted = listener.accept().unwrap();
    let (mut accepted, _) = listener.accept().unwrap();
    let mut read = [0; 5];
    accepted.read_exact(&mut read).unwrap();
    assert_eq!(&read, b"hello");
    drop((accepted, client));
    assert_eq!(proxy.running().control().upstreams()[0].failed, 0);
}

#[test]
fn half_closed_connections_go_on() {
    let scratch = Scratch::new();
    let files = scratch.localhost();
    let (sender, received) = channel();
    let sender = std::sync::Mutex::new(sender);
    // Each side says something only after the other has ended.
    let last_word = upstream(move |mut stream| {
        let mut all = String::new();
        stream.read_to_string(&mut all).unwrap();
        sender.lock().unwrap().send(all).unwrap();
        stream.write_all(b"after your end").unwrap();
    });
    let proxy = Proxy::start(settings(&[last_word]), &load(std::slice::from_ref(&files)));
    let config = Arc::new(trusting(&[&files]));
    let mut client = connect(proxy.address(), &config, "localhost");
    client.write_all(b"question").unwrap();
    close(&mut client);
    assert_eq!(received.recv_timeout(PATIENCE).unwrap(), "question");
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "after your end");
    assert_eq!(proxy.record()["close_reason"], "client");

    let (sender, received) = channel();
    let sender = std::sync::Mutex::new(sender);
    let first_word = upstream(move |mut stream| {
        stream.write_all(b"greeting").unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut all = String::new();
        stream.read_to_string(&mut all).unwrap();
        sender.lock().unwrap().send(all).unwrap();
    });
    let proxy = Proxy::start(settings(&[first_word]), &load(std::slice::from_ref(&files)));
    let mut client = connect(proxy.address(), &config, "localhost");
    let mut greeting = String::new();
    client.read_to_string(&mut greeting).unwrap();
    assert_eq!(greeting, "greeting");
    client.write_all(b"still here").unwrap();
    close(&mut client);
    assert_eq!(received.recv_timeout(PATIENCE).unwrap(), "still here");
    assert_eq!(proxy.record()["close_reason"], "upstream");
}

/// Whether the client's session is resumed by this proxy.
fn is_resumed(proxy: &Proxy, config: &Arc<ClientConfig>) -> bool {
    let mut client = connect(proxy.address(), config, "localhost");
    exchange(&mut client, b"hello").unwrap();
    close(&mut client);
    assert_eq!(client.read(&mut [0]).unwrap(), 0);
    proxy.record()["resumed"] == true
}

#[test]
fn who_shares_a_secret_resumes_sessions_of_the_other() {
    let scratch = Scratch::new();
    let files = scratch.localhost();
    let secret = |name: &str, byte| {
        let path = scratch.path(name);
        std::fs::write(&path, [byte; 48]).unwrap();
        Some(path)
    };
    let proxy = |ticket_secret| {
        let certificates = Certificates::load(&TlsSettings {
            ticket_secret,
            ..tls(std::slice::from_ref(&files))
        });
        Proxy::start(settings(&[upstream(echo)]), &certificates.unwrap())
    };
    let first = proxy(secret("shared", 1));
    let second = proxy(secret("shared", 1));
    let others = [proxy(secret("other", 2)), proxy(None)];
    let config = Arc::new(trusting(&[&files]));
    assert!(!is_resumed(&first, &config));
    assert!(is_resumed(&second, &config));
    assert!(is_resumed(&first, &config));
    for other in &others {
        let config = Arc::new(trusting(&[&files]));
        assert!(!is_resumed(&first, &config));
        assert!(!is_resumed(other, &config));
    }
}

#[test]
fn sessions_are_resumed() {
    let scratch = Scratch::new();
    let files = scratch.localhost();
    let proxy = Proxy::start(
        settings(&[upstream(echo)]),
        &load(std::slice::from_ref(&files)),
    );
    let config = Arc::new(trusting(&[&files]));
    for is_resumed in [false, true] {
        let mut client = connect(proxy.address(), &config, "localhost");
        exchange(&mut client, b"hello").unwrap();
        close(&mut client);
        assert_eq!(client.read(&mut [0]).unwrap(), 0);
        assert_eq!(proxy.record()["resumed"], is_resumed);
    }
}
