//! Listeners for raw lines, uploads, syslog and what ships logs to other systems.
//!
//! Invariants:
//! - Memory per connection is bounded: one read buffer, one partial record up to the line limit,
//!   one batch of [`BATCH_BYTES`].
//! - While the journal has no room, a connection is not read: the sender feels it through TCP.
//!   What cannot be kept (a datagram, a batch that a failed sync took away) is counted.
//! - A durable connection gets `OK <count>` only after the sync of these records, a bulk connection
//!   its answer only once as many nodes as configured have copies.

mod bind;
mod bulk;
mod framing;
mod gather;
mod gelf;
mod fluent;
mod listening;
mod opening;
mod places;
mod relp;
mod stream;
mod udp;
mod unfinished;
mod wire;
mod zones;
pub mod local;
pub mod tls;
#[cfg(test)]
mod tests;

use std::future::Future;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use logpond_proxy::{Admission, AdmissionGuard, Limits};
use logpond_record::{Batch, Labels};
use logpond_segment::batches::BatchId;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

pub use bind::{BindError, bind_tcp, bind_udp};
pub use bulk::{CONNECTIONS_MAX as BULK_CONNECTIONS_MAX, Room, serve_bulk};
pub use fluent::{Fluent, SharedSecurity, WatchedSecurity, answer_heartbeats, serve_fluent};
pub use listening::{ListenerStatus, PendingListener};
pub use places::{PlaceRefusal, SharedPlaces};
pub use relp::Peers as RelpPeers;
pub use stream::{serve_relp, serve_stream};
pub use udp::serve_udp;
pub use unfinished::UnfinishedParts;
pub use zones::Zones;

use logpond_engine::ingest::{Ingest, IngestError};
use logpond_host::hostname;
use logpond_host::shutdown::{DRAIN_TIME_MAX, Shutdown};
use logpond_host::telemetry::{Intake, Metrics, warn};

/// Connections one listener serves at a time; further ones wait in the kernel's queue. At 64 KiB
/// of buffer each this is 128 MiB at the very worst.
pub const CONNECTIONS_MAX: usize = 2048;

/// How many of a listener's connections one address may have; of IPv6 one network of 64 bits. Further
/// ones wait beside the others for at most [`SHARE_WAIT_MAX`], then they are closed, so that those behind them are
/// reached: nobody alone can keep others out.
pub const fn connections_per_address_max(connections_max: usize) -> usize {
    connections_max / 2
}

/// How long a connection waits whose address has as many as it may. Loggers that open a connection for each record
/// close it at once, so a place is free soon.
pub const SHARE_WAIT_MAX: Duration = Duration::from_secs(2);

/// Connections of a listener that wait so; further ones are closed at once. They have no buffer yet, and take no
/// place of other addresses.
pub const SHARE_WAITING_MAX: usize = 4096;

/// How often a waiting connection looks for a place.
const SHARE_WAIT_STEP: Duration = Duration::from_millis(50);

/// How often it is said that an address has as many connections as it may: whoever can connect decides
/// how often it happens.
const WARN_INTERVAL: Duration = Duration::from_secs(60);

/// How long a socket is waited for at the stop: the runtime has looked at what the kernel holds by then.
const LAST_LOOK: Duration = Duration::from_millis(1);

/// Bytes gathered before a batch is submitted although more could be read. One connection that
/// waits 2 ms for each sync still gets 250 MB/s.
const BATCH_BYTES: usize = 512 << 10;

/// How long a small batch of a fast intake waits for company. With the journal's own 50 ms it
/// stays below the 100 ms promised.
const LINGER: Duration = Duration::from_millis(20);

/// Pause before a batch is offered again that a full disk refused, and after a failed accept.
const RETRY_PAUSE: Duration = Duration::from_millis(250);

/// How long a connection may be silent before the kernel asks whether the peer is still there.
const KEEPALIVE_TIME: Duration = Duration::from_secs(60);

/// What every listener needs.
#[derive(Clone)]
pub struct Context {
    /// Where records go.
    pub ingest: Ingest,
    /// Where they are counted.
    pub metrics: Arc<Metrics>,
    /// When to stop.
    pub shutdown: Shutdown,
    /// Which intake this is.
    pub intake: Intake,
    /// A message has at most so many bytes when decompressed.
    pub decoded_bytes_max: usize,
    /// Longer records are cut to this many bytes and marked.
    pub line_bytes_max: usize,
    /// The name of this machine.
    pub hostname: Arc<str>,
    /// The zones that peers write times in.
    pub zones: Arc<Zones>,
    /// The memory of records that are not whole yet.
    pub unfinished: Arc<UnfinishedParts>,
}

impl Context {
    /// The labels of what a peer sends: its name, and its zone.
    fn labels_of(&self, peer: IpAddr) -> Labels {
        let mut labels = hostname::labels_of(peer, &self.hostname);
        self.zones.add_to(&mut labels, peer);
        labels
    }

    /// Submits a batch, waiting as long as it takes: for room, or for the disk to have space
    /// again. Gives up only when the journal failed or the process stops.
    async fn submit_patiently(
        &self,
        batch: &Arc<Batch>,
        id: Option<BatchId>,
        durable: bool,
    ) -> Result<u64, IngestError> {
        loop {
            let submitted = self.ingest.submit_named(batch.clone(), id, durable);
            match submitted.await {
                Ok(accepted) => {
                    self.count_accepted(batch);
                    return Ok(accepted.count);
                }
                Err(IngestError::Busy | IngestError::Full(_)) if !self.shutdown.is_stopping() => {
                    tokio::time::sleep(RETRY_PAUSE).await;
                }
                Err(refused) => return Err(refused),
            }
        }
    }

    fn count_accepted(&self, batch: &Batch) {
        let metrics = self.metrics.intake(self.intake);
        metrics.records.add(batch.len() as u64);
        metrics.bytes.add(batch.payload().len() as u64);
    }

    fn count_lost(&self, records: usize) {
        self.metrics.intake(self.intake).lost.add(records as u64);
    }
}

/// Waits for what a socket holds at the stop, not for what may still come. Without a wait the runtime does
/// not know of what came since it looked last; of a socket that is new it knows nothing.
async fn look_once_more<T>(ready: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(LAST_LOOK, ready).await.ok()
}

/// Accepts connections until the stop, then waits for the open ones, at most
/// [`DRAIN_TIME_MAX`].
pub async fn accept<F>(
    listener: TcpListener,
    context: Context,
    connections_max: usize,
    serve: impl Fn(TcpStream, IpAddr, Context) -> F,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let door = Arc::new(ConnectionSlots::new(&context, connections_max));
    let mut open = JoinSet::new();
    let mut shutdown = context.shutdown.clone();
    loop {
        let accepted = tokio::select! {
            accepted = next(&listener, &door.slots) => accepted,
            Some(_) = open.join_next() => continue,
            () = shutdown.stopping() => break,
        };
        let Ok((slot, stream, peer)) = accepted else {
            // Out of descriptors, or the peer is gone already.
            tokio::time::sleep(RETRY_PAUSE).await;
            continue;
        };
        let Some(entry) = door.entry(slot, peer) else {
            door.refuse(peer);
            continue;
        };
        prepare(&stream);
        // It does nothing before it is awaited.
        let serving = serve(stream, peer, context.clone());
        let door = door.clone();
        open.spawn(async move {
            let Some(_places) = door.enter(entry, peer).await else {
                door.refuse(peer);
                return;
            };
            let metrics = door.metrics.intake(door.intake);
            metrics.connections_total.add(1);
            let _held = metrics.connections.hold();
            serving.await;
        });
    }
    drop(listener);
    let all = async { while open.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(DRAIN_TIME_MAX, all).await;
}

/// The places of a listener's connections.
struct ConnectionSlots {
    slots: Arc<Semaphore>,
    shares: Arc<Admission>,
    waiting: Arc<Semaphore>,
    limits: Limits,
    intake: Intake,
    metrics: Arc<Metrics>,
    warned: Mutex<Option<Instant>>,
}

/// The places that a served connection holds: one of the listener's, and one of its address.
type Places = (OwnedSemaphorePermit, AdmissionGuard);

/// How a connection comes in: at once, or when its address has a place.
enum Entry {
    Served(Places),
    Waits(OwnedSemaphorePermit),
}

impl ConnectionSlots {
    fn new(context: &Context, connections_max: usize) -> ConnectionSlots {
        ConnectionSlots {
            slots: Arc::new(Semaphore::new(connections_max)),
            shares: Arc::new(Admission::default()),
            waiting: Arc::new(Semaphore::new(SHARE_WAITING_MAX)),
            limits: Limits {
                connections_max,
                connections_per_address_max: connections_per_address_max(connections_max),
                ..Limits::default()
            },
            intake: context.intake,
            metrics: context.metrics.clone(),
            warned: Mutex::new(None),
        }
    }

    /// A place for one more connection of this address, if it has one.
    fn share(&self, peer: IpAddr) -> Option<AdmissionGuard> {
        let mut share = self.shares.admit(&self.limits)?;
        share.admit_address(peer, &self.limits).then_some(share)
    }

    /// `None` if it has to be closed: too many wait already. One that waits gives its place of the listener back.
    fn entry(&self, slot: OwnedSemaphorePermit, peer: IpAddr) -> Option<Entry> {
        match self.share(peer) {
            Some(share) => Some(Entry::Served((slot, share))),
            None => {
                let place = self.waiting.clone().try_acquire_owned();
                place.ok().map(Entry::Waits)
            }
        }
    }

    /// Waits for a place of the address, then for one of the listener; `None` if that takes too long.
    async fn enter(&self, entry: Entry, peer: IpAddr) -> Option<Places> {
        let _waiting = match entry {
            Entry::Served(places) => return Some(places),
            Entry::Waits(place) => place,
        };
        let started = Instant::now();
        while started.elapsed() < SHARE_WAIT_MAX {
            tokio::time::sleep(SHARE_WAIT_STEP).await;
            if let Some(share) = self.share(peer) {
                let slot = self.slots.clone().acquire_owned().await.ok()?;
                return Some((slot, share));
            }
        }
        None
    }

    /// Counts a connection that is closed, and says so once in a while.
    fn refuse(&self, peer: IpAddr) {
        self.metrics.intake(self.intake).connections_refused.add(1);
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        if warned.is_none_or(|at| at.elapsed() >= WARN_INTERVAL) {
            *warned = Some(Instant::now());
            drop(warned);
            warn(&refusal(peer, self.intake, &self.limits));
        }
    }
}

fn refusal(peer: IpAddr, intake: Intake, limits: &Limits) -> String {
    let most = limits.connections_per_address_max;
    let intake = intake.as_str();
    format!(
        "{peer} has {most} connections to {intake}, as many as one address may have: its further ones are \
         closed"
    )
}

/// The next connection, with its place among those that may be open; waits for both.
pub async fn next(
    listener: &TcpListener,
    slots: &Arc<Semaphore>,
) -> std::io::Result<(OwnedSemaphorePermit, TcpStream, IpAddr)> {
    let slot = slots.clone().acquire_owned().await;
    let slot = slot.map_err(std::io::Error::other)?;
    let (stream, peer) = listener.accept().await?;
    Ok((slot, stream, peer.ip().to_canonical()))
}

/// Options that help but are not needed.
fn prepare(stream: &TcpStream) {
    let _ = stream.set_nodelay(true);
    let keepalive = socket2::TcpKeepalive::new().with_time(KEEPALIVE_TIME);
    let _ = socket2::SockRef::from(stream).set_tcp_keepalive(&keepalive);
}
