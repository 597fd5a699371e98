//! The PROXY protocol, both ways.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use logpond_protocol::proxy::{Addresses, decode, encode_binary, encode_text};
use logpond_proxy::{Certificates, ProxyHeader, TlsSettings, Trust};

use crate::setting::*;

/// Sends back the header it was sent, with what followed it, once the client has ended.
fn reflect(mut stream: TcpStream) {
    let mut all = Vec::new();
    stream.read_to_end(&mut all).unwrap();
    stream.write_all(&all).unwrap();
}

#[test]
fn upstreams_are_told_who_comes() {
    let scratch = Scratch::new();
    let files = scratch.localhost();
    for version in [ProxyHeader::V1, ProxyHeader::V2] {
        let mut settings = settings(&[upstream(reflect)]);
        settings.proxy_header = Some(version);
        let alpn = ["h2".to_owned(), "http/1.1".to_owned()];
        let settings_of_tls = TlsSettings {
            alpn: alpn.into(),
            ..tls(std::slice::from_ref(&files))
        };
        let certificates = Certificates::load(&settings_of_tls).unwrap();
        let proxy = Proxy::start(settings, &certificates);
        let mut config = trusting(&[&files]);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let mut client = connect(proxy.address(), &Arc::new(config), "localhost");
        let source = client.sock.local_addr().unwrap();
        client.write_all(b"hello").unwrap();
        close(&mut client);
        let mut all = Vec::new();
        client.read_to_end(&mut all).unwrap();
        let (header, length) = decode(&all).unwrap().unwrap();
        assert_eq!(&all[length..], b"hello");
        let destination = proxy.address();
        assert_eq!(
            header.addresses,
            Addresses::Internet {
                source,
                destination
            }
        );
        let record = proxy.record();
        assert_eq!(record["alpn"], "http/1.1");
        assert_eq!(record["bytes_from_client"], 5, "without the header");
        if version == ProxyHeader::V2 {
            let tls = header.extensions.tls.unwrap();
            assert!(!tls.has_certificate && !tls.is_verified);
            assert_eq!(tls.version.as_deref(), record["version"].as_str());
            assert_eq!(tls.cipher.as_deref(), record["cipher"].as_str());
            assert_eq!(header.extensions.authority.as_deref(), Some("localhost"));
            assert_eq!(header.extensions.alpn.as_deref(), Some(&b"http/1.1"[..]));
        }
    }
}

#[test]
fn trusted_proxies_say_who_comes() {
    let scratch = Scratch::new();
    let files = scratch.localhost();
    let config = Arc::new(trusting(&[&files]));
    let mut settings = settings(&[upstream(reflect)]);
    settings.proxy_header = Some(ProxyHeader::V1);
    settings.trust = Trust::new(|address| address.is_loopback());
    let proxy = Proxy::start(settings, &load(std::slice::from_ref(&files)));
    let addresses = Addresses::Internet {
        source: "192.0.2.7:4711".parse().unwrap(),
        destination: "192.0.2.1:443".parse().unwrap(),
    };
    let header = logpond_protocol::proxy::Header {
        addresses: addresses.clone(),
        ..Default::default()
    };
    let (mut text, mut binary) = (Vec::new(), Vec::new());
    encode_text(&addresses, &mut text);
    encode_binary(&header, true, &mut binary);
    for (bytes, split) in [(&text, 0), (&text, 9), (&binary, 0), (&binary, 20)] {
        let mut stream = TcpStream::connect(proxy.address()).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.write_all(&bytes[..split]).unwrap();
        stream.write_all(&bytes[split..]).unwrap();
        let mut client = over(stream, &config, "localhost");
        client.write_all(b"hello").unwrap();
        close(&mut client);
        let mut all = Vec::new();
        client.read_to_end(&mut all).unwrap();
        assert_eq!(all, [&text[..], b"hello"].concat());
        let record = proxy.record();
        assert_eq!(record["client"], "192.0.2.7");
        assert_eq!(record["client_port"], 4711);
    }
    // Who is trusted must say it.
    let mut client = connect(proxy.address(), &config, "localhost");
    assert!(exchange(&mut client, b"hello").is_err());
    let record = proxy.record();
    assert_eq!(record["close_reason"], "proxy_header");
    assert_eq!(record["error"], "there is no header of the PROXY protocol");
}

#[test]
fn others_may_not_say_who_comes() {
    let scratch = Scratch::new();
    let mut settings = settings(&[upstream(echo)]);
    settings.trust = Trust::new(|address| !address.is_loopback());
    let proxy = Proxy::start(settings, &load(&[scratch.localhost()]));
    let mut stream = TcpStream::connect(proxy.address()).unwrap();
    stream
        .write_all(b"PROXY TCP4 192.0.2.7 192.0.2.1 4711 443\r\n")
        .unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let record = proxy.record();
    assert_eq!(record["close_reason"], "handshake_failed");
    assert_eq!(record["client"], "127.0.0.1");
}
