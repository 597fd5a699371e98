//! A TCP proxy that cuts connections, before a request is through or before its answer is.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use crate::pond::TestServer;

/// Bytes copied at once.
const CHUNK_BYTES: usize = 16 << 10;

/// The place at which a connection is cut, after so many answers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CutPoint {
    /// So many bytes into the next request.
    Request(u64),
    /// When the next answer comes, which the client does not see.
    Answer,
}

/// Passes connections on to a server that may change, and cuts every one of them.
pub(crate) struct Proxy {
    address: SocketAddr,
    /// The server; `None` while there is none.
    target: Arc<Mutex<Option<String>>>,
    cuts: Arc<AtomicU64>,
}

impl Proxy {
    /// A proxy before this server, for clients that wait for each answer.
    pub(crate) fn start(target: &str) -> Proxy {
        Proxy::start_cutting(target, |number| {
            let cut = match number % 2 {
                0 => CutPoint::Answer,
                _ => CutPoint::Request(1 + number * 7919 % 300_000),
            };
            (number % 4, cut)
        })
    }

    /// A proxy that cuts the connection of each number after so many answers.
    pub(crate) fn start_cutting(target: &str, cut: fn(u64) -> (u64, CutPoint)) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = Proxy {
            address: listener.local_addr().unwrap(),
            target: Arc::new(Mutex::new(Some(target.to_owned()))),
            cuts: Arc::default(),
        };
        let (target, cuts) = (Arc::clone(&proxy.target), Arc::clone(&proxy.cuts));
        thread::spawn(move || {
            for (number, client) in listener.incoming().flatten().enumerate() {
                let to = target.lock().unwrap().clone();
                let (answers, cut) = cut(number as u64);
                // Without a server the client's connection just ends.
                if let Some(Ok(server)) = to.map(TcpStream::connect) {
                    pass(client, server, answers, cut, &cuts);
                }
            }
        });
        proxy
    }

    /// The URL for `--addr`.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Where it listens.
    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// Kills the server at this listener, and goes on to the one that `start` gives. In between new connections go
    /// nowhere: another server, of another test, may listen on the port next.
    pub(crate) fn replace(
        &self,
        server: TestServer,
        listener: &str,
        start: impl FnOnce() -> TestServer,
    ) -> TestServer {
        *self.target.lock().unwrap() = None;
        server.kill();
        let server = start();
        *self.target.lock().unwrap() = Some(server.address(listener));
        server
    }

    /// Connections that were cut so far.
    pub(crate) fn cuts(&self) -> u64 {
        self.cuts.load(Ordering::SeqCst)
    }
}

/// Passes a connection on until it is cut, after so many answers.
fn pass(client: TcpStream, server: TcpStream, answers: u64, cut: CutPoint, cuts: &Arc<AtomicU64>) {
    let passed = Arc::new(AtomicU64::new(0));
    let streams = |a: &TcpStream, b: &TcpStream| (a.try_clone().unwrap(), b.try_clone().unwrap());
    let (mut from, mut to) = streams(&client, &server);
    let (seen, cuts_up) = (Arc::clone(&passed), Arc::clone(cuts));
    thread::spawn(move || {
        let (mut buffer, mut last) = (vec![0; CHUNK_BYTES], 0);
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            let mut count = count;
            if let CutPoint::Request(bytes) = cut
                && seen.load(Ordering::SeqCst) >= answers
            {
                count = count.min((bytes - last) as usize);
                last += count as u64;
            }
            if to.write_all(&buffer[..count]).is_err() {
                break;
            }
            if matches!(cut, CutPoint::Request(bytes) if bytes == last) {
                cuts_up.fetch_add(1, Ordering::SeqCst);
                break;
            }
        }
        let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
    });
    let (mut from, mut to) = streams(&server, &client);
    let cuts = Arc::clone(cuts);
    thread::spawn(move || {
        let mut buffer = vec![0; CHUNK_BYTES];
        // An answer to a push is small: one read has it.
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            let is_over = passed.load(Ordering::SeqCst) >= answers;
            if matches!(cut, CutPoint::Answer) && is_over {
                cuts.fetch_add(1, Ordering::SeqCst);
                break;
            }
            passed.fetch_add(1, Ordering::SeqCst);
            if to.write_all(&buffer[..count]).is_err() {
                break;
            }
        }
        let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
    });
}
