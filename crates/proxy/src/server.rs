//! Starts the workers, and ends them.

use std::io::Write;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::{Arc, PoisonError, RwLock};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{error, fmt, io};

use rustls::ServerConfig;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::sync::watch;
use tokio::task::LocalSet;
use tokio::time::Instant;

use crate::limits::Admission;
use crate::upstream::Upstreams;
use crate::worker::{self, Worker};
use crate::{Certificates, Limits, ProxyHeader, Target, sink};

/// Connections that wait to be accepted, for each worker.
const BACKLOG: i32 = 1024;

/// Which peers are proxies that say whom they speak for.
#[derive(Clone, Default)]
pub struct Trust(Option<Arc<dyn Fn(IpAddr) -> bool + Send + Sync>>);

impl Trust {
    /// Those that this says; they must begin with a header of the PROXY protocol.
    pub fn new(is_trusted: impl Fn(IpAddr) -> bool + Send + Sync + 'static) -> Trust {
        Trust(Some(Arc::new(is_trusted)))
    }

    pub(crate) fn is_trusted(&self, address: IpAddr) -> bool {
        let is_trusted = self.0.as_ref();
        is_trusted.is_some_and(|is_trusted| is_trusted(address.to_canonical()))
    }
}

impl fmt::Debug for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Trust").finish_non_exhaustive()
    }
}

/// What a proxy does.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where it listens; port 0 is any free one.
    pub listen: SocketAddr,
    /// Where connections go, in turn; at least one.
    pub upstreams: Vec<Target>,
    /// Bounds.
    pub limits: Limits,
    /// What upstreams are told first.
    pub proxy_header: Option<ProxyHeader>,
    /// Who tells whom it speaks for.
    pub trust: Trust,
    /// Threads that serve connections; at least one.
    pub workers: usize,
}

/// Why a proxy does not start.
#[derive(Debug)]
pub enum StartError {
    /// The address cannot be listened on.
    Listen(SocketAddr, io::Error),
    /// The system gives no thread or no event loop.
    Thread(io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Listen(address, _) => write!(f, "cannot listen on {address}"),
            StartError::Thread(_) => f.write_str("cannot start a worker"),
        }
    }
}

impl error::Error for StartError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            StartError::Listen(_, source) | StartError::Thread(source) => Some(source),
        }
    }
}

/// A running proxy. Where nothing is left of it and of its [`Stopper`]s, connections are cut.
#[derive(Debug)]
pub struct Running {
    address: SocketAddr,
    config: Arc<RwLock<Arc<ServerConfig>>>,
    stop: watch::Sender<Option<Instant>>,
    workers: Vec<JoinHandle<usize>>,
    records: sink::Thread,
}

/// Starts a proxy; it listens when this returns. Its records go to `output`, a line of JSON each.
///
/// # Errors
/// When it cannot listen, or the system gives no thread.
pub fn start(
    settings: Settings,
    certificates: &Certificates,
    output: impl Write + Send + 'static,
) -> Result<Running, StartError> {
    let failed = |error| StartError::Listen(settings.listen, error);
    let listeners = listen(settings.listen, settings.workers.max(1)).map_err(failed)?;
    let address = listeners[0].local_addr().map_err(failed)?;
    let (sender, records) = sink::start(output).map_err(StartError::Thread)?;
    let config = Arc::new(RwLock::new(certificates.config()));
    let upstreams = Arc::new(Upstreams::new(settings.upstreams.clone()));
    let (settings, admission) = (Arc::new(settings), Arc::new(Admission::default()));
    let (stop, asked) = watch::channel(None);
    let mut workers = Vec::with_capacity(listeners.len());
    for (number, listener) in listeners.into_iter().enumerate() {
        let shared = (settings.clone(), config.clone(), upstreams.clone());
        let (admission, sender, asked) = (admission.clone(), sender.clone(), asked.clone());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()
            .map_err(StartError::Thread)?;
        let run = move || {
            let (settings, config, upstreams) = shared;
            let worker = Rc::new(Worker {
                settings,
                config,
                upstreams,
                admission,
                records: sender,
                scratch: Default::default(),
                turn: number.into(),
            });
            let serve = async {
                // It fails only outside of an event loop.
                match tokio::net::TcpListener::from_std(listener) {
                    Ok(listener) => worker::run(worker, listener, asked).await,
                    Err(_) => 0,
                }
            };
            LocalSet::new().block_on(&runtime, serve)
        };
        let thread = thread::Builder::new().name(format!("lp-proxy-{number}"));
        workers.push(thread.spawn(run).map_err(StartError::Thread)?);
    }
    Ok(Running {
        address,
        config,
        stop,
        workers,
        records,
    })
}

impl Running {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What replaces its certificates: for the next connections, no other notices.
    pub fn replacer(&self) -> Replacer {
        Replacer(self.config.clone())
    }

    /// What ends it.
    pub fn stopper(&self) -> Stopper {
        Stopper(self.stop.clone())
    }

    /// Waits until all connections have ended or were cut, after [`Stopper::drain`]. Gives how many
    /// were cut, and how many records were not written.
    pub fn join(self) -> (usize, u64) {
        let cut = self
            .workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or(0))
            .sum();
        (cut, self.records.join().unwrap_or(0))
    }
}

/// Replaces the certificates of a running proxy. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Replacer(Arc<RwLock<Arc<ServerConfig>>>);

impl Replacer {
    /// Shows these from the next connection on.
    pub fn replace(&self, certificates: &Certificates) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = certificates.config();
    }
}

/// Sockets that listen on one address, among which the system divides connections.
fn listen(address: SocketAddr, count: usize) -> io::Result<Vec<TcpListener>> {
    // Sockets that share an address are given it even where another program has some of the kind:
    // that this one is not is found out by asking for it alone.
    let alone = socket(address)?;
    alone.bind(&address.into())?;
    let address = match alone.local_addr()?.as_socket() {
        Some(bound) => bound,
        None => address,
    };
    drop(alone);
    (0..count)
        .map(|_| {
            let socket = socket(address)?;
            socket.set_reuse_port(true)?;
            socket.bind(&address.into())?;
            socket.listen(BACKLOG)?;
            Ok(socket.into())
        })
        .collect()
}

fn socket(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    // Connections of a process before must not keep the next from starting.
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Ends a running proxy. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Stopper(watch::Sender<Option<Instant>>);

impl Stopper {
    /// Stops listening, and gives connections so long to end. Called again, the shorter time counts.
    pub fn drain(&self, time: Duration) {
        let end = Instant::now() + time;
        self.0.send_modify(|asked| {
            *asked = Some(asked.map_or(end, |before| before.min(end)));
        });
    }
}
