//! The Forward protocol of Fluentd and Fluent Bit over TCP.
//!
//! ```text
//! read until a message is whole ─▶ decode, on a thread for that ─▶ submit ─▶ durable: {"ack": chunk}
//! ```
//!
//! Invariants:
//! - A chunk is acknowledged once all of its records are durable. What cannot be taken is not
//!   acknowledged, and ends the connection: its sender sends it again.
//! - A chunk is a batch of a name that is made of its own name and its records, so that the same chunk
//!   sent again counts once: also after a restart, and over another connection.
//! - While the journal has no room, a connection is not read. Idle connections have no buffer, and at
//!   most [`SLOTS_MAX`] of them are in messages longer than [`INLINE_BYTES_MAX`]. Parts of shorter ones
//!   are bounded with those of other listeners ([`UnfinishedParts`](super::UnfinishedParts)).

mod handshake;
mod names;
mod security;

use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use logpond_protocol::intake::foreign::{self, Foreign, OpeningLook};
use logpond_protocol::intake::push::fluent::{self, DecodedEvents, FluentError, ValueEnd};
use logpond_segment::batches::BatchSet;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpStream, UdpSocket};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use handshake::Security;
pub use security::{SharedSecurity, WatchedSecurity};

use self::names::Names;
use super::Context;
use super::opening::{self, UNDECIDED_BYTES_MAX};
use super::unfinished::Holder;
use super::wire::Wire;
use logpond_host::hostname;
use logpond_host::shutdown::Shutdown;

/// The longest message: four times the buffer of Fluentd in memory, as a chunk is by default.
const MESSAGE_BYTES_MAX: usize = 32 << 20;

/// Messages up to this need no slot: ordinary ones of loggers and of small chunks.
const INLINE_BYTES_MAX: usize = 256 << 10;

/// Connections that may be within a longer message at a time.
const SLOTS_MAX: usize = 4;

/// How long such a message may take: its slot is held meanwhile. The longest one comes in time at
/// 280 kB/s.
const MESSAGE_TIME_MAX: Duration = Duration::from_secs(120);

/// How long nothing of it may come: others may wait for its slot.
const MESSAGE_IDLE_MAX: Duration = Duration::from_secs(10);

/// How long a client may take to say who it is.
const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(30);

/// The longest answer to the server's greeting.
const PING_BYTES_MAX: usize = 16 << 10;

/// How often it is said that a connection ended for what it sent: whoever can connect decides how often
/// it happens.
const WARN_INTERVAL: Duration = Duration::from_secs(60);

/// Bytes read at a time.
const READ_BYTES: usize = 64 << 10;

/// What the connections of one listener share.
#[derive(Clone)]
pub struct Fluent {
    slots: Arc<Semaphore>,
    names: Arc<Names>,
    security: Option<Arc<SharedSecurity>>,
    warned: Arc<Mutex<Option<Instant>>>,
    in_segments: InSegments,
}

/// Tells the batches of an epoch that segments hold. Blocks for a moment.
pub(crate) type InSegments = Arc<dyn Fn(u128) -> BatchSet + Send + Sync>;

impl Fluent {
    /// Asks clients who they are, if `security` says how.
    pub fn new(security: Option<Arc<SharedSecurity>>) -> Fluent {
        Fluent {
            slots: Arc::new(Semaphore::new(SLOTS_MAX)),
            names: Arc::default(),
            security,
            warned: Arc::default(),
            in_segments: Arc::new(|_| BatchSet::default()),
        }
    }

    /// Also recognises chunks whose records are in segments only.
    #[must_use]
    pub fn recognising(mut self, in_segments: InSegments) -> Fluent {
        self.in_segments = in_segments;
        self
    }

    /// Whether nothing was said for long enough; all is counted.
    fn may_warn(&self) -> bool {
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        let may = warned.is_none_or(|at| at.elapsed() >= WARN_INTERVAL);
        if may {
            *warned = Some(Instant::now());
        }
        may
    }
}

/// Answers the datagrams by which old versions of Fluentd find out whether a server is there.
pub async fn answer_heartbeats(socket: UdpSocket, mut shutdown: Shutdown) {
    let mut buffer = [0; 16];
    loop {
        let received = tokio::select! {
            received = socket.recv_from(&mut buffer) => received,
            () = shutdown.stopping() => return,
        };
        // One byte for one: nobody else is hit harder through us.
        if let Ok((1, sender)) = received {
            let _ = socket.try_send_to(&[0], sender);
        }
    }
}

/// The protocol, for clients of other protocols.
const SPEAKS: &str = "the Forward protocol";

/// Serves one connection to its end.
pub async fn serve_fluent(stream: TcpStream, peer: IpAddr, context: Context, fluent: Fluent) {
    let sender = hostname::of_peer(peer, &context.hostname);
    let mut connection = Connection {
        stream,
        unfinished: context.unfinished.begin(),
        context,
        fluent,
        sender,
        buffer: Vec::new(),
        look: OpeningLook::default(),
        opening: foreign::OpeningVerdict::Undecided,
    };
    let end = connection.run().await;
    if let Err(End::Foreign(foreign)) = end {
        let stream = Wire::Plain(connection.stream);
        return opening::refuse(stream, foreign, SPEAKS, &connection.context).await;
    }
    if let Err(End::Trouble(trouble)) = end {
        let metrics = connection.context.metrics.intake(connection.context.intake);
        metrics.malformed.add(1);
        if connection.fluent.may_warn() {
            let sender = &connection.sender;
            logpond_host::telemetry::warn(&format!(
                "a connection of {sender} to fluent ended: {trouble}"
            ));
        }
    }
    let _ = connection.stream.shutdown().await;
}

/// Why a connection ends.
enum End {
    /// In order, or broken, or because the process stops.
    Over,
    /// Its client sent what cannot be taken.
    Trouble(String),
    /// Its client speaks another protocol.
    Foreign(Foreign),
}

impl From<io::Error> for End {
    fn from(_: io::Error) -> End {
        End::Over
    }
}

impl From<FluentError> for End {
    fn from(error: FluentError) -> End {
        End::Trouble(error.to_string())
    }
}

/// True if one of these messages may be compressed: its options say so by this name.
fn may_be_compressed(messages: &[u8]) -> bool {
    memchr::memmem::find(messages, b"compressed").is_some()
}

fn given_up() -> End {
    let why = "a message was not whole for so long that others needed the memory of its part";
    End::Trouble(why.to_owned())
}

struct Connection {
    stream: TcpStream,
    context: Context,
    fluent: Fluent,
    /// Who sends, where a record does not say it.
    sender: Arc<str>,
    /// What came and is not taken yet.
    buffer: Vec<u8>,
    /// Its share of the memory of messages that are not whole and have no slot.
    unfinished: Holder,
    /// What the connection speaks.
    look: OpeningLook,
    opening: foreign::OpeningVerdict,
}

impl Connection {
    async fn run(&mut self) -> Result<(), End> {
        if let Some(security) = self.fluent.security.as_ref().map(|shared| shared.now()) {
            let shaking = self.shake_hands(&security);
            let shaken = tokio::time::timeout(HANDSHAKE_TIME_MAX, shaking).await;
            shaken.unwrap_or_else(|_| Err(End::Trouble("no PING came".to_owned())))?;
        }
        loop {
            let (messages, slot) = self.messages(MESSAGE_BYTES_MAX).await?;
            // A few bytes may become many records, which are held until all of them are taken.
            let _slot = match slot {
                None if may_be_compressed(&messages) => Some(self.slot().await?),
                slot => slot,
            };
            let sender = self.sender.clone();
            let bounds = (self.context.decoded_bytes_max, self.context.line_bytes_max);
            let in_segments = self.fluent.in_segments.clone();
            let work = move || {
                let (parts, outcome) = fluent::decode(&messages, &sender, bounds);
                let known = parts.iter().map(|part| {
                    let chunk = part.chunk.as_ref();
                    chunk.is_some_and(|c| names::are_all(&in_segments, c.identity(), part))
                });
                let known: Vec<bool> = known.collect();
                (parts.into_iter().zip(known), outcome)
            };
            // Blocking work is only thrown away when the process ends.
            let decoded = tokio::task::spawn_blocking(work).await;
            let (parts, outcome) = decoded.map_err(|_| End::Over)?;
            for (part, is_in_segments) in parts {
                self.take(part, is_in_segments).await?;
            }
            outcome?;
        }
    }

    async fn shake_hands(&mut self, security: &Security) -> Result<(), End> {
        let mut handshake = security.begin().map_err(End::Trouble)?;
        self.stream.write_all(&handshake.hello).await?;
        let (ping, _) = self.messages(PING_BYTES_MAX).await?;
        let answer = handshake.answer(&ping, &self.context.hostname);
        self.stream.write_all(&answer.pong).await?;
        match answer.refused {
            Some(why) => Err(End::Trouble(why.to_owned())),
            None => {
                self.sender = answer.hostname.unwrap_or_else(|| self.sender.clone());
                Ok(())
            }
        }
    }

    /// The messages that are whole, at least one, and the slot of a long one.
    async fn messages(
        &mut self,
        bytes_max: usize,
    ) -> Result<(Vec<u8>, Option<OwnedSemaphorePermit>), End> {
        let too_long = |error| End::from(FluentError::Msgpack(error));
        let (mut end, mut whole) = (ValueEnd::default(), 0);
        let mut slot = None;
        let mut shutdown = self.context.shutdown.clone();
        let late = tokio::time::sleep(Duration::MAX);
        tokio::pin!(late);
        loop {
            while self.is_own()
                && let Some(length) = end
                    .find(&self.buffer[whole..], bytes_max)
                    .map_err(too_long)?
            {
                whole += length;
                end = ValueEnd::default();
            }
            if whole > 0 {
                let rest = self.buffer.split_off(whole);
                self.unfinished.hold(rest.len());
                return Ok((std::mem::replace(&mut self.buffer, rest), slot));
            }
            if self.buffer.len() > INLINE_BYTES_MAX && slot.is_none() {
                slot = Some(self.slot().await?);
                late.as_mut()
                    .reset((Instant::now() + MESSAGE_TIME_MAX).into());
            }
            if self.buffer.is_empty() {
                // Idle connections have no buffer.
                self.buffer = Vec::new();
            }
            // Messages with a slot are bounded by the number of slots.
            let without_slot = if slot.is_none() { self.buffer.len() } else { 0 };
            self.unfinished.hold(without_slot);
            tokio::select! {
                biased;
                () = shutdown.stopping() => return Err(End::Over),
                () = self.unfinished.given_up() => return Err(given_up()),
                () = &mut late => return Err(End::Trouble("a message came too slowly".to_owned())),
                () = tokio::time::sleep(MESSAGE_IDLE_MAX), if slot.is_some() => {
                    return Err(End::Trouble("a message came too slowly".to_owned()));
                }
                ready = self.stream.readable() => ready?,
            }
            self.read()?;
        }
    }

    /// One of the slots for long messages, once there is one.
    async fn slot(&self) -> Result<OwnedSemaphorePermit, End> {
        let mut shutdown = self.context.shutdown.clone();
        let free = self.fluent.slots.clone().acquire_owned();
        tokio::select! {
            free = free => free.map_err(|_| End::Over),
            () = shutdown.stopping() => Err(End::Over),
            () = self.unfinished.given_up() => Err(given_up()),
        }
    }

    fn read(&mut self) -> Result<(), End> {
        let filled = self.buffer.len();
        self.buffer.resize(filled + READ_BYTES, 0);
        let read = self.stream.try_read(&mut self.buffer[filled..]);
        self.buffer
            .truncate(filled + read.as_ref().copied().unwrap_or(0));
        match read {
            Ok(0) => Err(End::Over),
            Ok(_) => self.look_at(filled),
            Err(e)
                if matches!(
                    e.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) =>
            {
                Ok(())
            }
            Err(_) => Err(End::Over),
        }
    }

    /// Looks at what came behind so many bytes, as long as it is not known what the connection speaks.
    fn look_at(&mut self, filled: usize) -> Result<(), End> {
        if self.opening == foreign::OpeningVerdict::Undecided {
            self.opening = self.look.look(&self.buffer[filled..]);
        }
        match self.opening {
            foreign::OpeningVerdict::Foreign(foreign) => Err(End::Foreign(foreign)),
            _ => Ok(()),
        }
    }

    /// Whether what came may be taken for messages. The first byte of each says so.
    fn is_own(&self) -> bool {
        self.opening == foreign::OpeningVerdict::Own || self.buffer.len() > UNDECIDED_BYTES_MAX
    }

    /// Has the records of messages taken, and acknowledges those of a chunk.
    async fn take(&mut self, part: DecodedEvents, is_in_segments: bool) -> Result<(), End> {
        let metrics = self.context.metrics.intake(self.context.intake);
        metrics.malformed.add(part.malformed as u64);
        metrics.truncated.add(part.truncated as u64);
        let Some(chunk) = part.chunk else {
            for batch in part.batches {
                let (records, batch) = (batch.len(), Arc::new(batch));
                let submitted = self.context.submit_patiently(&batch, None, false).await;
                if submitted.is_err() {
                    self.context.count_lost(records);
                    return Err(End::Over);
                }
            }
            return Ok(());
        };
        let name = chunk.identity();
        let durability = self.context.ingest.durability();
        if is_in_segments || names::is_durable(durability, name, part.batches.len()) {
            let batches = part.batches.len() as u64;
            self.context.metrics.resends.add(batches);
            self.context.metrics.resends_known.add(batches);
        } else {
            let attempt = self.fluent.names.attempt(name);
            for (batch, id) in part.batches.into_iter().zip(names::ids(name, attempt)) {
                let batch = Arc::new(batch);
                let submitted = self.context.submit_patiently(&batch, Some(id), true);
                if submitted.await.is_err() {
                    return Err(End::Over);
                }
            }
        }
        let mut ack = Vec::new();
        chunk.write_ack(&mut ack);
        self.stream.write_all(&ack).await?;
        Ok(())
    }
}
