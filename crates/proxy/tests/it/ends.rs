//! Ends that are not orderly, and what takes too long.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use socket2::SockRef;

use crate::setting::*;

/// Closes with a reset.
fn reset(stream: &TcpStream) {
    SockRef::from(stream)
        .set_linger(Some(Duration::ZERO))
        .unwrap();
}

#[test]
fn a_reset_by_the_client_reaches_the_upstream() {
    let scratch = Scratch::new();
    let files = scratch.localhost();
    let (sender, seen) = channel();
    let sender = Mutex::new(sender);
    let watching = upstream(move |mut stream| {
        let mut buffer = [0; 5];
        stream.read_exact(&mut buffer).unwrap();
        stream.write_all(&buffer).unwrap();
        let end = stream.read(&mut buffer).map_err(|error| error.kind());
        sender.lock().unwrap().send(end).unwrap();
    });
    let proxy = Proxy::start(settings(&[watching]), &load(std::slice::from_ref(&files)));
    let config = Arc::new(trusting(&[&files]));
    let mut client = connect(proxy.address(), &config, "localhost");
    assert_eq!(exchange(&mut client, b"hello").unwrap(), b"hello");
    reset(&client.sock);
    drop(client);
    assert_eq!(
        seen.recv_timeout(PATIENCE).unwrap(),
        Err(ErrorKind::ConnectionReset)
    );
    assert_eq!(proxy.record()["close_reason"], "client_reset");

    // Without the end of TLS it is passed on as an end, and called by its name.
    let mut client = connect(proxy.address(), &config, "localhost");
    assert_eq!(exchange(&mut client, b"hello").unwrap(), b"hello");
    drop(client);
    assert_eq!(seen.recv_timeout(PATIENCE).unwrap(), Ok(0));
    assert_eq!(proxy.record()["close_reason"], "client_truncated");
}

#[test]
fn a_reset_by_the_upstream_is_no_end_for_the_client() {
    let scratch = Scratch::new();
    let files = scratch.localhost();
    let resetting = upstream(|mut stream| {
        let mut buffer = [0; 5];
        stream.read_exact(&mut buffer).unwrap();
        reset(&stream);
    });
    let proxy = Proxy::start(settings(&[resetting]), &load(std::slice::from_ref(&files)));
    let config = Arc::new(trusting(&[&files]));
    let mut client = connect(proxy.address(), &config, "localhost");
    client.write_all(b"hello").unwrap();
    let error = client.read(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    assert_eq!(proxy.record()["close_reason"], "upstream_reset");
}

#[test]
fn a_client_that_sends_to_nobody_any_more_is_not_cut_off() {
    let scratch = Scratch::new();
    let files = scratch.localhost();
    // It answers and goes without having read most of what was sent.
    let early = upstream(|mut stream| {
        let mut buffer = [0; 5];
        stream.read_exact(&mut buffer).unwrap();
        stream.write_all(b"too much").unwrap();
        stream.shutdown(std::net::Shutdown::Both).unwrap();
    });
    let proxy = Proxy::start(settings(&[early]), &load(std::slice::from_ref(&files)));
    let config = Arc::new(trusting(&[&files]));
    let mut client = connect(proxy.address(), &config, "localhost");
    client.write_all(b"first").unwrap();
    let mut answer = [0; 8];
    client.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"too much");
    // Once the end is here as well, the upstream is gone for good.
    assert_eq!(client.read(&mut [0]).unwrap(), 0);
    client.write_all(&pattern(1 << 20)).unwrap();
    close(&mut client);
    assert_eq!(proxy.record()["close_reason"], "upstream");
}

#[test]
fn silence_ends_and_data_keeps_half_closed_connections() {
    let scratch = Scratch::new();
    let files = scratch.localhost();
    let mut idle = settings(&[upstream(echo)]);
    idle.limits.idle_time = Duration::from_millis(200);
    let proxy = Proxy::start(idle, &load(std::slice::from_ref(&files)));
    let config = Arc::new(trusting(&[&files]));
    let mut client = connect(proxy.address(), &config, "localhost");
    assert_eq!(exchange(&mut client, b"hello").unwrap(), b"hello");
    assert!(client.read(&mut [0]).is_err());
    assert_eq!(proxy.record()["close_reason"], "idle");

    // The upstream takes longer than the limit, but says a word before each is over.
    let half_close_time = Duration::from_millis(400);
    let (sender, ticks) = channel::<()>();
    let ticks = Mutex::new(ticks);
    let talking = upstream(move |mut stream| {
        stream.read_to_end(&mut Vec::new()).unwrap();
        for _ in 0..10 {
            // Nobody sends: it is the time that passes.
            let _ = ticks.lock().unwrap().recv_timeout(half_close_time / 4);
            stream.write_all(b"x").unwrap();
        }
        // Then it holds its tongue until it is cut off.
        let _ = stream.read(&mut [0]);
        let _ = ticks.lock().unwrap().recv();
    });
    let mut settings = settings(&[talking]);
    settings.limits.half_close_time = half_close_time;
    let proxy = Proxy::start(settings, &load(std::slice::from_ref(&files)));
    let mut client = connect(proxy.address(), &config, "localhost");
    let begun = Instant::now();
    client.write_all(b"hello").unwrap();
    close(&mut client);
    let mut answer = [0; 10];
    client.read_exact(&mut answer).unwrap();
    assert!(begun.elapsed() > half_close_time);
    assert!(client.read(&mut [0]).is_err());
    assert_eq!(proxy.record()["close_reason"], "half_close_timeout");
    drop(sender);
}
