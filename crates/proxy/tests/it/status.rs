//! What a proxy says of itself while it runs.

use std::io::Read;
use std::net::TcpStream;
use std::sync::Arc;

use logpond_proxy::ClientOrder;

use crate::setting::*;

#[test]
fn connections_are_counted_while_they_last_and_when_they_end() {
    let scratch = Scratch::new();
    let files = scratch.localhost();
    let name = upstream(echo);
    let asked = settings(std::slice::from_ref(&name));
    let proxy = Proxy::start(asked, &load(std::slice::from_ref(&files)));
    let control = proxy.running().control();
    let config = Arc::new(trusting(&[&files]));
    let mut clients: Vec<Client> = (0..3)
        .map(|_| {
            let mut client = connect(proxy.address(), &config, "localhost");
            exchange(&mut client, b"hello").unwrap();
            client
        })
        .collect();
    drop(TcpStream::connect(proxy.address()).unwrap());
    assert_eq!(proxy.record()["close_reason"], "handshake_aborted");
    let status = control.status();
    let [frontend] = &status.frontends[..] else {
        panic!("{status:?}")
    };
    assert_eq!((&*frontend.name, frontend.traffic.active()), ("0", 3));
    let certificate = &frontend.certificates[0];
    assert_eq!(certificate.names, ["localhost"]);
    assert!(certificate.not_after.as_secs() > logpond_tls::now().as_secs());
    assert_eq!(frontend.traffic.handshake_times.count(), 3);
    assert_eq!(frontend.traffic.bytes_from_client, 15);
    let upstream = &status.upstreams[0];
    assert_eq!((&upstream.upstream, upstream.is_up), (&name, true));
    assert_eq!((upstream.active, upstream.connected), (3, 3));
    // Bytes count before a connection has ended.
    let top = control.clients(10, ClientOrder::Bytes);
    assert_eq!((top.known, &*top.clients[0].client), (1, "127.0.0.1"));
    assert_eq!(top.clients[0].active, 3);
    assert_eq!(top.clients[0].bytes_to_client, 15);
    for client in &mut clients {
        close(client);
        assert_eq!(client.read(&mut [0]).unwrap(), 0);
        assert_eq!(proxy.record()["close_reason"], "client");
    }
    let traffic = &control.status().frontends[0].traffic;
    assert_eq!((traffic.accepted, traffic.active()), (4, 0));
    assert!(traffic.closed.contains(&("client", 3)));
    assert!(traffic.closed.contains(&("handshake_aborted", 1)));
    let handshakes: u64 = traffic.handshakes.iter().map(|one| one.count).sum();
    assert_eq!(handshakes, 3);
}
