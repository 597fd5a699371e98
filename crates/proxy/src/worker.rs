//! A thread with an event loop: it accepts connections and serves them.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::{Arc, PoisonError, RwLock};
use std::task::Poll;
use std::time::Duration;

use rustls::ServerConfig;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use crate::buffer::Scratch;
use crate::connection::serve;
use crate::limits::Admission;
use crate::server::Settings;
use crate::sink::Sender;
use crate::upstream::Upstreams;

/// How long no connection is accepted after the system had no descriptor for one.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// What the connections of a worker share.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) settings: Arc<Settings>,
    pub(crate) config: Arc<RwLock<Arc<ServerConfig>>>,
    pub(crate) upstreams: Arc<Upstreams>,
    pub(crate) admission: Arc<Admission>,
    pub(crate) records: Sender,
    /// Borrowed only between two waits.
    pub(crate) scratch: RefCell<Scratch>,
    /// Which upstream is next.
    pub(crate) turn: Cell<usize>,
}

impl Worker {
    /// What connections that come now are shown.
    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        let config = self.config.read().unwrap_or_else(PoisonError::into_inner);
        config.clone()
    }
}

/// Serves until the end is asked for, then until the connections have ended or the moment is there
/// that was given. Gives how many connections were cut.
pub(crate) async fn run(
    worker: Rc<Worker>,
    listener: TcpListener,
    mut stop: watch::Receiver<Option<Instant>>,
) -> usize {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => {
                    connections.spawn_local(serve(worker.clone(), stream, peer));
                }
                // Of a connection that is gone already, or of a lack that passes.
                Err(_) => sleep(ACCEPT_PAUSE).await,
            },
            Some(_) = connections.join_next() => {}
            _ = stop.wait_for(Option::is_some) => break,
        }
    }
    // Who waits in the listener's queue was told by the system that the connection stands.
    while let Poll::Ready(Ok((stream, peer))) =
        poll_fn(|cx| Poll::Ready(listener.poll_accept(cx))).await
    {
        connections.spawn_local(serve(worker.clone(), stream, peer));
    }
    drop(listener);
    while !connections.is_empty() {
        let end = stop.borrow_and_update().unwrap_or_else(Instant::now);
        tokio::select! {
            _ = connections.join_next() => {}
            () = sleep_until(end) => break,
            changed = stop.changed() => if changed.is_err() { break },
        }
    }
    let cut = connections.len();
    connections.shutdown().await;
    cut
}
