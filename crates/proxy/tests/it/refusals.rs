//! Those who are not let in, and do no harm.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::setting::*;

/// Sends these as they are and reads until the end, whatever kind it is.
fn tell(proxy: &Proxy, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(proxy.address()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    // It may be cut off before it has said everything.
    let _ = stream.write_all(bytes);
    let mut answer = Vec::new();
    let mut buffer = [0; 1024];
    while let Ok(read @ 1..) = stream.read(&mut buffer) {
        answer.extend_from_slice(&buffer[..read]);
    }
    answer
}

#[test]
fn garbage_is_answered_by_an_alert() {
    let scratch = Scratch::new();
    let proxy = Proxy::start(settings(&[upstream(echo)]), &load(&[scratch.localhost()]));
    for bytes in [&b"GET / HTTP/1.1\r\nhost: a\r\n\r\n"[..], &[0xff; 70_000]] {
        let answer = tell(&proxy, bytes);
        assert_eq!(answer.first(), Some(&21), "an alert of TLS: {answer:?}");
        let record = proxy.record();
        assert_eq!(record["close_reason"], "handshake_failed", "{record}");
        assert_eq!(record["error"], "it does not speak TLS");
        assert!(record.get("upstream").is_none(), "{record}");
    }
    // Nothing at all is no handshake either.
    drop(TcpStream::connect(proxy.address()).unwrap());
    assert_eq!(proxy.record()["close_reason"], "handshake_aborted");
}

/// What was begun and is not whole is remembered while the alert is made.
#[test]
fn garbage_behind_a_part_of_a_hello_is_answered_by_an_alert() {
    let scratch = Scratch::new();
    let proxy = Proxy::start(settings(&[upstream(echo)]), &load(&[scratch.localhost()]));
    let mut bytes = vec![22, 3, 1, 0, 4, 1, 0, 2, 0];
    bytes.extend([0xff; 100]);
    let answer = tell(&proxy, &bytes);
    assert_eq!(answer.first(), Some(&21), "an alert of TLS: {answer:?}");
    let record = proxy.record();
    assert_eq!(record["close_reason"], "handshake_failed", "{record}");
}

#[test]
fn an_endless_hello_is_cut() {
    let scratch = Scratch::new();
    let proxy = Proxy::start(settings(&[upstream(echo)]), &load(&[scratch.localhost()]));
    // Records of the handshake with the beginning of a hello of 65,000 bytes, which never ends.
    let mut bytes = Vec::new();
    let mut message = vec![1, 0, 0xfd, 0xe8];
    message.resize(60_000, 0);
    for part in message.chunks(16_000) {
        bytes.extend([22, 3, 1]);
        bytes.extend(u16::try_from(part.len()).unwrap().to_be_bytes());
        bytes.extend(part);
    }
    tell(&proxy, &bytes);
    let record = proxy.record();
    assert_eq!(record["close_reason"], "handshake_failed", "{record}");
    let error = record["error"].as_str().unwrap();
    assert!(error.contains("longer than 20480 bytes"), "{error}");
}

#[test]
fn slow_handshakes_are_cut() {
    let scratch = Scratch::new();
    let files = scratch.localhost();
    let mut settings = settings(&[upstream(echo)]);
    settings.limits.handshake_time = Duration::from_millis(300);
    let proxy = Proxy::start(settings, &load(std::slice::from_ref(&files)));
    // A byte now and then keeps nothing alive.
    let begun = Instant::now();
    let mut stream = TcpStream::connect(proxy.address()).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_millis(50)))
        .unwrap();
    for byte in [22, 3, 1, 2, 0].into_iter().chain([1; 200]) {
        let is_cut = match stream.write_all(&[byte]) {
            Err(_) => true,
            Ok(()) => matches!(stream.read(&mut [0]), Ok(0)),
        };
        if is_cut {
            break;
        }
    }
    assert!(
        begun.elapsed() < Duration::from_secs(10),
        "{:?}",
        begun.elapsed()
    );
    let record = proxy.record();
    assert_eq!(record["close_reason"], "handshake_timeout");
    assert!(record["duration_s"].as_f64().unwrap() >= 0.3);
    // Others are served all the while.
    let mut client = connect(proxy.address(), &Arc::new(trusting(&[&files])), "localhost");
    assert_eq!(exchange(&mut client, b"hello").unwrap(), b"hello");
}

#[test]
fn there_are_only_so_many_connections() {
    let scratch = Scratch::new();
    let files = scratch.localhost();
    let config = Arc::new(trusting(&[&files]));
    for is_by_address in [false, true] {
        let mut settings = settings(&[upstream(echo)]);
        if is_by_address {
            settings.limits.connections_per_address_max = 2
        } else {
            settings.limits.connections_max = 2
        }
        let proxy = Proxy::start(settings, &load(std::slice::from_ref(&files)));
        let mut clients: Vec<Client> = Vec::new();
        for _ in 0..2 {
            let mut client = connect(proxy.address(), &config, "localhost");
            exchange(&mut client, b"hello").unwrap();
            clients.push(client);
        }
        let mut third = connect(proxy.address(), &config, "localhost");
        assert!(exchange(&mut third, b"hello").is_err());
        assert_eq!(proxy.record()["close_reason"], "limit");
        // Those that are there are as they were, and one that goes makes room.
        let mut gone = clients.pop().unwrap();
        exchange(&mut gone, b"hello").unwrap();
        close(&mut gone);
        assert_eq!(gone.read(&mut [0]).unwrap(), 0);
        assert_eq!(proxy.record()["close_reason"], "client");
        let mut third = connect(proxy.address(), &config, "localhost");
        exchange(&mut third, b"hello").unwrap();
        exchange(&mut clients[0], b"hello").unwrap();
    }
}

#[test]
fn handshakes_of_an_address_come_only_so_fast() {
    let scratch = Scratch::new();
    let files = scratch.localhost();
    let config = Arc::new(trusting(&[&files]));
    let mut settings = settings(&[upstream(echo)]);
    settings.limits.handshakes_per_address_per_second_max = 1;
    let proxy = Proxy::start(settings, &load(std::slice::from_ref(&files)));
    let is_served = |_| {
        let mut client = connect(proxy.address(), &config, "localhost");
        exchange(&mut client, b"hello").is_ok()
    };
    let served = (0..50).filter(|at| is_served(*at)).count();
    assert!((3..50).contains(&served), "{served}");
    let (records, _) = proxy.end();
    let mut limited = records.iter().filter(|one| one["close_reason"] == "limit");
    let error = &limited.next().unwrap()["error"];
    assert_eq!(error, "handshakes of one address come too fast");
    assert_eq!(limited.count() + 1, 50 - served);
}

#[test]
fn only_so_much_waits_for_sides_that_take_nothing() {
    let scratch = Scratch::new();
    let files = scratch.localhost();
    let config = Arc::new(trusting(&[&files]));
    let (keep, kept) = std::sync::mpsc::channel();
    let keep = std::sync::Mutex::new(keep);
    let deaf = upstream(move |stream| {
        let _ = keep.lock().unwrap().send(stream);
    });
    let frontend = settings(&[deaf]).with(&load(std::slice::from_ref(&files)));
    let proxy = Proxy::start_with(vec![frontend], 1000);
    let mut client = connect(proxy.address(), &config, "localhost");
    let bytes = pattern(1 << 20);
    while client.write_all(&bytes).is_ok() {}
    let record = proxy.record();
    assert_eq!(record["close_reason"], "limit");
    assert_eq!(
        record["error"],
        "too much waits for sides that do not take it"
    );
    assert_eq!(proxy.running().control().status().waiting_bytes, 0);
    drop(kept);
}
