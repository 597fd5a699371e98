//! A thread with an event loop: it accepts connections and serves them.

use std::cell::RefCell;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use std::{io, net};

use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::mpsc::Receiver;
use tokio::sync::watch;
use tokio::task::{JoinSet, LocalSet};
use tokio::time::{Instant, sleep, sleep_until};

use crate::balance::{AcceptedConnection, Balance};
use crate::buffer::Scratch;
use crate::client_table::ClientTable;
use crate::connection::serve;
use crate::counters::{Counters, Lateness};
use crate::frontend::Frontend;
use crate::limits::BufferBudget;
use crate::sink::Sender;

/// How long no connection is accepted after the system had no descriptor for one.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// How often it is looked how late timers are.
const LATENESS_INTERVAL: Duration = Duration::from_millis(500);

/// The state that workers share.
#[derive(Debug)]
pub(crate) struct WorkerContext {
    pub(crate) frontends: Vec<Frontend>,
    pub(crate) balance: Balance,
    pub(crate) clients: ClientTable,
    pub(crate) waiting: BufferBudget,
    /// Of each worker's event loop.
    pub(crate) lateness: Vec<Lateness>,
}

/// What the connections of a worker share.
#[derive(Debug)]
pub(crate) struct Worker {
    number: usize,
    pub(crate) shared: Arc<WorkerContext>,
    pub(crate) records: Sender,
    /// Borrowed only between two waits.
    pub(crate) scratch: RefCell<Scratch>,
}

impl Worker {
    pub(crate) fn new(number: usize, shared: Arc<WorkerContext>, records: Sender) -> Worker {
        Worker {
            number,
            shared,
            records,
            scratch: RefCell::default(),
        }
    }

    /// What it counts of a frontend.
    pub(crate) fn counters<'a>(&self, frontend: &'a Frontend) -> &'a Counters {
        &frontend.counters[self.number]
    }

    /// Finds out for ever how late timers are.
    async fn watch_lateness(&self) {
        loop {
            let due = Instant::now() + LATENESS_INTERVAL;
            sleep_until(due).await;
            let lateness = &self.shared.lateness[self.number];
            lateness.add(Instant::now().saturating_duration_since(due));
        }
    }
}

/// Where a worker's connections come from.
#[derive(Debug)]
pub(crate) struct Sources {
    /// Each with the number of its frontend.
    pub(crate) listeners: Vec<(usize, net::TcpListener)>,
    /// From other workers.
    pub(crate) handed: Receiver<AcceptedConnection>,
}

/// Listeners within an event loop.
struct Listeners {
    all: Vec<(usize, TcpListener)>,
    /// Which is asked first.
    turn: usize,
}

impl Listeners {
    /// Outside of an event loop it fails.
    fn new(listeners: Vec<(usize, net::TcpListener)>) -> io::Result<Listeners> {
        let within = |(frontend, listener)| Ok((frontend, TcpListener::from_std(listener)?));
        Ok(Listeners {
            all: listeners
                .into_iter()
                .map(within)
                .collect::<io::Result<_>>()?,
            turn: 0,
        })
    }

    fn poll_accept(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<(usize, TcpStream, SocketAddr)>> {
        let count = self.all.len();
        for at in 0..count {
            let turn = (self.turn + at) % count;
            let (frontend, listener) = &self.all[turn];
            if let Poll::Ready(accepted) = listener.poll_accept(cx) {
                self.turn = turn + 1;
                return Poll::Ready(accepted.map(|(stream, peer)| (*frontend, stream, peer)));
            }
        }
        Poll::Pending
    }
}

/// Serves until the end is asked for, then until the connections have ended or the moment is there
/// that was given. Gives how many connections were cut.
pub(crate) fn run(
    runtime: &Runtime,
    worker: Worker,
    sources: Sources,
    stop: watch::Receiver<Option<Instant>>,
) -> usize {
    let worker = Rc::new(worker);
    let run = async {
        let Ok(listeners) = Listeners::new(sources.listeners) else {
            return 0;
        };
        let watching = worker.clone();
        let watch = tokio::task::spawn_local(async move { watching.watch_lateness().await });
        let connections = Connections::new(worker);
        let cut = connections.serve(listeners, sources.handed, stop).await;
        watch.abort();
        cut
    };
    LocalSet::new().block_on(runtime, run)
}

/// The connections of a worker.
struct Connections {
    worker: Rc<Worker>,
    all: JoinSet<()>,
}

impl Connections {
    fn new(worker: Rc<Worker>) -> Connections {
        Connections {
            worker,
            all: JoinSet::new(),
        }
    }

    fn begin(&mut self, frontend: usize, stream: TcpStream, peer: SocketAddr) {
        let worker = self.worker.clone();
        worker.shared.balance.begin(worker.number);
        self.all.spawn_local(async move {
            let counted = WorkerGuard(&worker);
            serve(&worker, frontend, stream, peer).await;
            drop(counted);
        });
    }

    /// Begins it here, or where there are fewer.
    fn begin_somewhere(&mut self, frontend: usize, stream: TcpStream, peer: SocketAddr) {
        let balance = &self.worker.shared.balance;
        if let Some(stream) = balance.hand_on(self.worker.number, stream, peer, frontend) {
            self.begin(frontend, stream, peer);
        }
    }

    fn begin_handed(&mut self, accepted: AcceptedConnection) {
        // It fails only outside of an event loop.
        if let Ok(stream) = TcpStream::from_std(accepted.stream) {
            self.begin(accepted.frontend, stream, accepted.peer);
        }
    }

    async fn serve(
        mut self,
        mut listeners: Listeners,
        mut handed: Receiver<AcceptedConnection>,
        mut stop: watch::Receiver<Option<Instant>>,
    ) -> usize {
        loop {
            tokio::select! {
                accepted = poll_fn(|cx| listeners.poll_accept(cx)) => match accepted {
                    Ok((frontend, stream, peer)) => self.begin_somewhere(frontend, stream, peer),
                    // Of a connection that is gone already, or of a lack that passes.
                    Err(_) => sleep(ACCEPT_PAUSE).await,
                },
                Some(accepted) = handed.recv() => self.begin_handed(accepted),
                Some(_) = self.all.join_next() => {}
                _ = stop.wait_for(Option::is_some) => break,
            }
        }
        // Who waits in a listener's queue was told by the system that the connection stands.
        while let Poll::Ready(Ok((frontend, stream, peer))) =
            poll_fn(|cx| Poll::Ready(listeners.poll_accept(cx))).await
        {
            self.begin(frontend, stream, peer);
        }
        drop(listeners);
        handed.close();
        self.end(handed, stop).await
    }

    async fn end(
        mut self,
        mut handed: Receiver<AcceptedConnection>,
        mut stop: watch::Receiver<Option<Instant>>,
    ) -> usize {
        let mut is_handed = true;
        while is_handed || !self.all.is_empty() {
            let end = stop.borrow_and_update().unwrap_or_else(Instant::now);
            tokio::select! {
                accepted = handed.recv(), if is_handed => match accepted {
                    Some(accepted) => self.begin_handed(accepted),
                    None => is_handed = false,
                },
                Some(_) = self.all.join_next() => {}
                () = sleep_until(end) => break,
                changed = stop.changed() => if changed.is_err() { break },
            }
        }
        let cut = self.all.len();
        self.all.shutdown().await;
        cut
    }
}

/// A connection that is counted for its worker until this is dropped.
struct WorkerGuard<'a>(&'a Worker);

impl Drop for WorkerGuard<'_> {
    fn drop(&mut self) {
        self.0.shared.balance.end(self.0.number);
    }
}
