//! Listeners that are on by default and could not be had at the start: another program has their ports.
//! They are tried again until they can be had.

use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::panic;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::{JoinError, JoinSet};

use super::runtime::{
    ConnectionContext, accept_stream, answer_heartbeats, expose_drops, take_datagrams,
};
use logpond_host::telemetry::say;
use logpond_listen::net::{self, BindError, ListenerStatus};
use logpond_settings::{EnabledListener, Listener, Protocol, Transport};

/// How often: a port that was freed is taken within this time, and each attempt is three system calls.
const RETRY_INTERVAL: Duration = Duration::from_secs(2);

/// A socket that listens.
pub(super) enum BoundSocket {
    Stream(TcpListener),
    Datagrams(UdpSocket),
}

/// Binds a listener; gives the address that was bound, too.
pub(super) fn bind(wanted: &EnabledListener) -> Result<(BoundSocket, SocketAddr), BindError> {
    let (flag, address) = (wanted.listener.name, wanted.address);
    match wanted.listener.transport() {
        Transport::Tcp => {
            let (listener, bound) = net::bind_tcp(flag, address)?;
            Ok((BoundSocket::Stream(listener), bound))
        }
        Transport::Udp => {
            let (socket, bound) = net::bind_udp(flag, address)?;
            Ok((BoundSocket::Datagrams(socket), bound))
        }
    }
}

/// Begins to try for those that are absent, and shows which listeners there are.
pub(super) fn begin(
    tasks: &mut JoinSet<()>,
    (absent, listening): (Vec<EnabledListener>, Arc<ListenerStatus>),
    context: &net::Context,
    shared: ConnectionContext,
) {
    listening.expose_in(&context.metrics);
    if !absent.is_empty() {
        tasks.spawn(try_again(absent, listening, context.clone(), shared));
    }
}

/// Tries to have listeners until all can be had, and serves them until the stop.
async fn try_again(
    mut absent: Vec<EnabledListener>,
    listening: Arc<ListenerStatus>,
    context: net::Context,
    shared: ConnectionContext,
) {
    let mut shutdown = context.shutdown.clone();
    // These listeners end before this task does.
    let mut tasks = JoinSet::new();
    while !absent.is_empty() {
        tokio::select! {
            () = tokio::time::sleep(RETRY_INTERVAL) => {}
            Some(ended) = tasks.join_next() => pass_panic_on(ended),
            () = shutdown.stopping() => break,
        }
        absent.retain(|wanted| {
            let Ok((bound, address)) = bind(wanted) else {
                return true;
            };
            let name = wanted.listener.name;
            let context = net::Context {
                intake: wanted.listener.intake,
                ..context.clone()
            };
            let bound = (bound, address);
            let serving = serve(&mut tasks, wanted.listener, bound, context, &shared);
            if serving.is_ok() {
                listening.note_on(name);
                say(&format!("{name} listens at {address} now"));
            }
            serving.is_err()
        });
    }
    while let Some(ended) = tasks.join_next().await {
        pass_panic_on(ended);
    }
}

fn serve(
    tasks: &mut JoinSet<()>,
    kind: &Listener,
    (bound, address): (BoundSocket, SocketAddr),
    context: net::Context,
    shared: &ConnectionContext,
) -> io::Result<()> {
    match bound {
        BoundSocket::Datagrams(socket) => {
            expose_drops(&context.metrics, context.intake, address);
            take_datagrams(tasks, kind, socket, context)
        }
        BoundSocket::Stream(listener) => {
            let listener = tokio::net::TcpListener::from_std(listener)?;
            if kind.protocol == Protocol::Forward {
                // Only old versions of Fluentd want heartbeats.
                let socket = net::bind_udp(kind.name, address).ok();
                answer_heartbeats(tasks, socket.map(|(socket, _)| socket), &context.shutdown)?;
            }
            accept_stream(tasks, kind, listener, context, shared.clone());
            Ok(())
        }
    }
}

/// A panic of a listener is one of this task.
fn pass_panic_on(ended: Result<(), JoinError>) {
    if let Err(payload) = ended.map_err(JoinError::try_into_panic)
        && let Ok(payload) = payload
    {
        panic::resume_unwind(payload);
    }
}
