//! A server that speaks S3, and a gate before it that fails at chosen moments.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::http::Client;
use crate::pond::signal;

/// The bucket that each server has.
const BUCKET: &str = "logs";

/// What a request must have so that an object is given, whoever has signed it.
const SIGNED: &str = "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request, \
                      SignedHeaders=host, Signature=0";

/// Requests that are answered without credentials that the server knows, where it looks at them.
const FREE_REQUESTS: &str = "1";

/// moto, a kept reimplementation in Python, with an empty bucket; ends with this.
pub(crate) struct S3Server {
    process: Child,
    address: SocketAddr,
}

impl S3Server {
    /// Starts one that takes every request.
    pub(crate) fn start(python: &Path) -> S3Server {
        S3Server::run(Command::new(python))
    }

    /// Starts one that knows no credentials, and refuses.
    pub(crate) fn start_refusing(python: &Path) -> S3Server {
        let mut command = Command::new(python);
        command.env("INITIAL_NO_AUTH_ACTION_COUNT", FREE_REQUESTS);
        S3Server::run(command)
    }

    fn run(mut command: Command) -> S3Server {
        let mut process = command
            .args(["-m", "moto.server", "-H", "127.0.0.1", "-p", "0"])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let running = |line: std::io::Result<String>| {
            let line = line.ok()?;
            let (_, address) = line.split_once("http://")?;
            address.trim().parse().ok()
        };
        let address = lines
            .by_ref()
            .find_map(running)
            .expect("moto says where it is");
        // What it says of requests must not fill the pipe.
        thread::spawn(move || lines.for_each(drop));
        let server = S3Server { process, address };
        assert_eq!(server.ask("PUT", &format!("/{BUCKET}")).0, 200);
        server
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sends it a signal by name.
    pub(crate) fn signal(&self, name: &str) {
        signal(name, self.process.id()).unwrap();
    }

    fn ask(&self, method: &str, target: &str) -> (u16, String) {
        let mut client = Client::connect(&self.address.to_string()).unwrap();
        let headers = [("authorization", SIGNED)];
        let response = client.send(method, target, &headers, b"").unwrap();
        (response.status, response.text().unwrap())
    }

    /// The rows that the heads of all chains below a prefix list, as `docs/format/bucket.md` has it.
    pub(crate) fn listed_rows(&self, prefix: &str) -> u64 {
        let (_, listing) = self.ask("GET", &format!("/{BUCKET}?list-type=2&prefix={prefix}/m/"));
        let names = listing.split("<Key>").skip(1);
        let names: Vec<&str> = names.filter_map(|rest| rest.split('<').next()).collect();
        let day = |name: &str| name.rsplit_once('/').map(|(day, _)| day.to_string());
        let is_head = |at: &usize| {
            let next = names.get(at + 1);
            next.is_none_or(|next| day(next) != day(names[*at]))
        };
        let heads = (0..names.len()).filter(is_head);
        let rows = heads.map(|at| {
            let (status, text) = self.ask("GET", &format!("/{BUCKET}/{}", names[at]));
            assert_eq!(status, 200, "{text}");
            let link: serde_json::Value = serde_json::from_str(&text).unwrap();
            let segments = link["segments"].as_array().unwrap();
            let rows = segments.iter().map(|s| s["rows"].as_u64().unwrap());
            rows.sum::<u64>()
        });
        rows.sum()
    }
}

impl Drop for S3Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// When a write to the store gets stuck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// It does not arrive.
    Before,
    /// It is done, and the reply does not arrive.
    After,
}

/// A write that gets stuck: the first one to a name with this part.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trap {
    /// The part of the name.
    pub(crate) part: &'static str,
    /// When.
    pub(crate) moment: Moment,
}

#[derive(Default)]
struct GateState {
    trap: Option<Trap>,
    /// Whether something has been caught since the trap was set.
    has_caught: bool,
    /// Whether nothing gets through.
    is_closed: bool,
    connections: Vec<TcpStream>,
}

/// What stands between a server and its store.
pub(crate) struct Gate {
    address: SocketAddr,
    state: Arc<Mutex<GateState>>,
}

fn lock(state: &Mutex<GateState>) -> MutexGuard<'_, GateState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Gate {
    /// An open gate before a store.
    pub(crate) fn before(store: SocketAddr) -> Gate {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let gate = Gate {
            address: listener.local_addr().unwrap(),
            state: Arc::default(),
        };
        let state = Arc::clone(&gate.state);
        thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                // A store that ends takes its connections with it.
                let _ = connect(client, store, &state);
            }
        });
        gate
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Lets one write get stuck.
    pub(crate) fn set(&self, trap: Trap) {
        let mut state = lock(&self.state);
        (state.trap, state.has_caught) = (Some(trap), false);
    }

    /// Whether it is stuck.
    pub(crate) fn has_caught(&self) -> bool {
        lock(&self.state).has_caught
    }

    /// Cuts all connections, and new ones as soon as they are made.
    pub(crate) fn close(&self) {
        let mut state = lock(&self.state);
        state.is_closed = true;
        for connection in state.connections.drain(..) {
            let _ = connection.shutdown(Shutdown::Both);
        }
    }

    /// Lets everything through again.
    pub(crate) fn open(&self) {
        lock(&self.state).is_closed = false;
    }
}

fn connect(
    client: TcpStream,
    store: SocketAddr,
    state: &Arc<Mutex<GateState>>,
) -> std::io::Result<()> {
    let mut locked = lock(state);
    if locked.is_closed {
        return Ok(());
    }
    let store = TcpStream::connect(store)?;
    let is_mute = Arc::new(AtomicBool::new(false));
    locked.connections.push(client.try_clone()?);
    locked.connections.push(store.try_clone()?);
    drop(locked);
    let requests = (client.try_clone()?, store.try_clone()?);
    let (shared, mute) = (Arc::clone(state), Arc::clone(&is_mute));
    thread::spawn(move || pass_requests(requests, &shared, &mute));
    let state = Arc::clone(state);
    thread::spawn(move || pass_replies((store, client), &state, &is_mute));
    Ok(())
}

/// Sends on what comes until either side ends.
fn pass((mut from, mut to): (TcpStream, TcpStream), mut goes_on: impl FnMut(&[u8]) -> bool) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(count) = from.read(&mut buffer)
        && count > 0
    {
        if goes_on(&buffer[..count]) && to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}

fn pass_requests(streams: (TcpStream, TcpStream), state: &Mutex<GateState>, is_mute: &AtomicBool) {
    let mut is_stuck = false;
    pass(streams, |bytes| {
        let mut state = lock(state);
        if let Some(trap) = state.trap
            && is_write(bytes, trap.part)
        {
            state.trap = None;
            match trap.moment {
                Moment::Before => (is_stuck, state.has_caught) = (true, true),
                Moment::After => is_mute.store(true, Ordering::SeqCst),
            }
        }
        !is_stuck
    });
}

fn pass_replies(streams: (TcpStream, TcpStream), state: &Mutex<GateState>, is_mute: &AtomicBool) {
    pass(streams, |_| {
        let is_stuck = is_mute.load(Ordering::SeqCst);
        if is_stuck {
            lock(state).has_caught = true;
        }
        !is_stuck
    });
}

/// Whether a request that begins here writes to a name with this part. Requests come one after another.
fn is_write(bytes: &[u8], part: &str) -> bool {
    let line = bytes.split(|byte| *byte == b'\r').next().unwrap_or(bytes);
    let line = String::from_utf8_lossy(line);
    line.starts_with("PUT ") && line.contains(part)
}
