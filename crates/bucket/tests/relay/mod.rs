//! A network between a client and a server that does to requests what a test wants.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

/// How long a slow answer waits, twice: within what clients wait for.
const PAUSE: Duration = Duration::from_millis(400);

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It is answered by the server.
    None,
    /// The server never sees it; this is the status of the answer.
    Answer(u16),
    /// The server carries it out, and the connection ends instead of an answer.
    LostReply,
    /// The server never sees it, and the connection ends.
    Closed,
    /// The answer comes in two pieces, with a pause before each.
    Slow,
    /// The server sees it without its condition.
    Unconditional,
}

/// Decides about a request by its number, from 0, and its head in small letters.
type Decide = fn(u64, &str) -> Fault;

/// A relay; its threads end with the test's process.
pub(crate) struct Relay {
    address: SocketAddr,
    faults: Arc<AtomicU64>,
}

impl Relay {
    /// Starts one before a server.
    pub(crate) fn start(server: SocketAddr, decide: Decide) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (faults, numbers) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let counted = Arc::clone(&faults);
        thread::spawn(move || {
            for client in listener.incoming() {
                let (faults, numbers) = (Arc::clone(&counted), Arc::clone(&numbers));
                thread::spawn(move || serve(client.unwrap(), server, decide, &faults, &numbers));
            }
        });
        Relay { address, faults }
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Requests that something was done to.
    pub(crate) fn faults(&self) -> u64 {
        self.faults.load(Ordering::Relaxed)
    }
}

fn serve(
    mut client: TcpStream,
    server: SocketAddr,
    decide: Decide,
    faults: &AtomicU64,
    numbers: &AtomicU64,
) {
    while let Some((head, body)) = request(&mut client) {
        let number = numbers.fetch_add(1, Ordering::Relaxed);
        let fault = decide(number, &head.to_ascii_lowercase());
        faults.fetch_add(u64::from(fault != Fault::None), Ordering::Relaxed);
        if let Fault::Answer(status) = fault {
            let answer = format!("HTTP/1.1 {status} Fault\r\ncontent-length: 0\r\n\r\n");
            client.write_all(answer.as_bytes()).unwrap();
            continue;
        }
        if fault == Fault::Closed {
            return;
        }
        let is_condition = |line: &&str| !line.to_ascii_lowercase().starts_with("if-none-match:");
        let lines: Vec<&str> = match fault {
            Fault::Unconditional => head.split("\r\n").filter(is_condition).collect(),
            _ => head.split("\r\n").collect(),
        };
        let mut upstream = TcpStream::connect(server).unwrap();
        // One request a connection, so that the end of the answer is the end of the stream.
        let head = lines
            .join("\r\n")
            .replacen("\r\n", "\r\nconnection: close\r\n", 1);
        upstream.write_all(head.as_bytes()).unwrap();
        upstream.write_all(&body).unwrap();
        let mut answer = Vec::new();
        upstream.read_to_end(&mut answer).unwrap();
        if fault == Fault::LostReply {
            return;
        }
        let pieces = answer.split_at(answer.len() / 2);
        for piece in [pieces.0, pieces.1] {
            if fault == Fault::Slow {
                // Nobody sends anything.
                let (_sender, never) = mpsc::channel::<()>();
                let _ = never.recv_timeout(PAUSE);
            }
            let _ = client.write_all(piece);
        }
        // The answer says that the connection ends.
        return;
    }
}

/// The head of a request with its empty line, and its body.
fn request(client: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if client.read(&mut byte).ok()? == 0 {
            return None;
        }
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let length = head.to_ascii_lowercase();
    let length = length
        .split("\r\n")
        .find_map(|line| line.strip_prefix("content-length:"))
        .map_or(0, |text| text.trim().parse().unwrap());
    let mut body = vec![0; length];
    client.read_exact(&mut body).ok()?;
    Some((head, body))
}
