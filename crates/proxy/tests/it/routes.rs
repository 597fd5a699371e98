//! Which upstream a connection goes to.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use logpond_proxy::{Certificates, Frontend, ReplaceError, Route, TlsSettings, Upstream};
use rustls::ClientConfig;
use socket2::{Domain, Socket, Type};

use crate::setting::*;

/// An upstream that says a letter to whom sends something.
fn saying(letter: u8) -> String {
    upstream(move |mut stream| {
        let mut buffer = [0; 64];
        while let Ok(1..) = stream.read(&mut buffer) {
            if stream.write_all(&[letter]).is_err() {
                return;
            }
        }
    })
}

/// What the upstream says to a client that asks for this name and offers this protocol.
fn ask(proxy: &Proxy, config: &ClientConfig, name: &str, alpn: &str) -> Option<char> {
    let mut config = config.clone();
    if !alpn.is_empty() {
        config.alpn_protocols = vec![alpn.into()];
    }
    let mut client = connect(proxy.address(), &Arc::new(config), name);
    client.write_all(b"?").ok()?;
    let mut letter = [0];
    client.read_exact(&mut letter).ok()?;
    close(&mut client);
    assert_eq!(client.read(&mut [0]).unwrap(), 0);
    Some(char::from(letter[0]))
}

#[test]
fn names_and_protocols_choose_upstreams() {
    let scratch = Scratch::new();
    let names = ["a.test", "b.test", "*.c.test", "d.test"];
    let files = scratch.certificate("all", &names, Key::P256);
    let alpn = ["h2".to_owned(), "http/1.1".to_owned()];
    let certificates = Certificates::load(&TlsSettings {
        alpn: alpn.into(),
        ..tls(std::slice::from_ref(&files))
    });
    let route = |names: &[&str], alpn: &[&str], letter| Route {
        names: names.iter().map(|name| name.parse().unwrap()).collect(),
        alpn: alpn.iter().map(|&name| name.to_owned()).collect(),
        ..Route::to(targets(&[saying(letter)]))
    };
    let mut asked = settings(&[]);
    asked.routes = vec![
        route(&["a.test"], &["h2"], b'1'),
        route(&["a.test", "*.c.test"], &[], b'2'),
        route(&[], &["http/1.1"], b'3'),
        route(&["b.test"], &[], b'4'),
    ];
    let proxy = Proxy::start(asked, &certificates.unwrap());
    let config = trusting(&[&files]);
    for (name, alpn, expected) in [
        ("a.test", "h2", Some('1')),
        ("A.test", "h2", Some('1')),
        ("a.test", "http/1.1", Some('2')),
        ("a.test", "", Some('2')),
        ("x.c.test", "h2", Some('2')),
        ("d.test", "http/1.1", Some('3')),
        ("b.test", "h2", Some('4')),
        ("d.test", "h2", None),
        ("d.test", "", None),
    ] {
        assert_eq!(ask(&proxy, &config, name, alpn), expected, "{name} {alpn}");
        let reason = match expected {
            Some(_) => "client",
            None => "no_route",
        };
        assert_eq!(proxy.record()["close_reason"], reason, "{name} {alpn}");
    }
}

#[test]
fn weights_are_shares() {
    let scratch = Scratch::new();
    let files = scratch.localhost();
    let letters = [(b'a', 3), (b'b', 1), (b'c', 0)];
    let upstreams = letters.map(|(letter, weight)| Upstream {
        target: saying(letter).parse().unwrap(),
        weight,
    });
    let mut asked = settings(&[]);
    asked.routes = vec![Route {
        upstreams: upstreams.into(),
        ..Route::default()
    }];
    let proxy = Proxy::start(asked, &load(std::slice::from_ref(&files)));
    let config = trusting(&[&files]);
    let said: String = (0..40)
        .filter_map(|_| ask(&proxy, &config, "localhost", ""))
        .collect();
    let count = |letter| said.matches(letter).count();
    assert_eq!([count('a'), count('b'), count('c')], [30, 10, 0]);
}

/// Waits until the proxy has found out whether this upstream is up.
fn wait_until(proxy: &Proxy, name: &str, is_up: bool) {
    let control = proxy.running().control();
    let is_so = || {
        let upstreams = control.upstreams();
        let mut upstreams = upstreams.iter();
        upstreams.any(|one| one.upstream == name && one.is_up == is_up)
    };
    while !is_so() {
        thread::yield_now();
    }
}

#[test]
fn checked_upstreams_are_known_to_be_down_before_a_client_comes() {
    let scratch = Scratch::new();
    let files = scratch.localhost();
    // Nobody else gets the port, and nobody listens there yet.
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
    socket.bind(&any.into()).unwrap();
    let address = socket.local_addr().unwrap().as_socket().unwrap();
    let (name, good) = (format!("tcp:{address}"), saying(b'g'));
    let mut asked = settings(&[name.clone(), good.clone()]);
    asked.routes[0].check = Some(Duration::from_millis(20));
    let certificates = load(std::slice::from_ref(&files));
    let proxy = Proxy::start(asked, &certificates);
    wait_until(&proxy, &name, false);
    let config = trusting(&[&files]);
    for _ in 0..4 {
        assert_eq!(ask(&proxy, &config, "localhost", ""), Some('g'));
    }
    // No client had to find out.
    let failed = |proxy: &Proxy| {
        let upstreams = proxy.running().control().upstreams();
        upstreams.iter().map(|one| one.failed).sum::<u64>()
    };
    assert_eq!(failed(&proxy), 0);
    // Once it is there, it is used again.
    socket.listen(16).unwrap();
    let listener = TcpListener::from(socket);
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            // Checks send nothing.
            if let Ok(1) = stream.read(&mut [0]) {
                let _ = stream.write_all(b"n");
                let _ = stream.read(&mut [0]);
            }
        }
    });
    wait_until(&proxy, &name, true);
    let said: String = (0..4)
        .filter_map(|_| ask(&proxy, &config, "localhost", ""))
        .collect();
    assert_eq!((said.matches('n').count(), failed(&proxy)), (2, 0));
}

#[test]
fn frontends_are_apart_and_may_have_several_addresses() {
    let scratch = Scratch::new();
    let (ours, theirs) = (
        scratch.certificate("ours", &["localhost"], Key::P256),
        scratch.certificate("theirs", &["localhost"], Key::P256),
    );
    let frontend = |name: &str, files, letter| -> Frontend {
        let asked = settings(&[saying(letter)]);
        let mut frontend = asked.with(&load(std::slice::from_ref(files)));
        frontend.listen.push("[::1]:0".parse().unwrap());
        frontend.name = Some(name.into());
        frontend
    };
    let frontends = vec![
        frontend("ours", &ours, b'o'),
        frontend("theirs", &theirs, b't'),
    ];
    let proxy = Proxy::start_all(frontends.clone());
    let addresses = proxy.running().addresses();
    for (at, (name, files)) in [("ours", &ours), ("theirs", &theirs)]
        .into_iter()
        .enumerate()
    {
        let config = Arc::new(trusting(&[files]));
        for address in &addresses[at] {
            let stream = TcpStream::connect(address).unwrap();
            let mut client = over(stream, &config, "localhost");
            let letter = exchange(&mut client, b"?").unwrap();
            assert_eq!(letter, &name.as_bytes()[..1]);
            close(&mut client);
            assert_eq!(client.read(&mut [0]).unwrap(), 0);
            assert_eq!(proxy.record()["frontend"], *name);
        }
    }
    let control = proxy.running().control();
    assert_eq!(control.replace(&frontends[..1]), Err(ReplaceError::Listen));
    let mut elsewhere = frontends.clone();
    elsewhere[1].listen.pop();
    assert_eq!(control.replace(&elsewhere), Err(ReplaceError::Listen));
    let swapped = [frontends[1].clone(), frontends[0].clone()];
    control.replace(&swapped).unwrap();
    let config = Arc::new(trusting(&[&theirs]));
    let mut client = connect(addresses[0][0], &config, "localhost");
    assert_eq!(exchange(&mut client, b"?").unwrap(), b"t");
    close(&mut client);
    assert_eq!(client.read(&mut [0]).unwrap(), 0);
    assert_eq!(proxy.record()["frontend"], "theirs");
}
