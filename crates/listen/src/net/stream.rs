//! One TCP connection of records: raw lines, fast or durable, framed syslog, RELP, or GELF; syslog and RELP
//! also over TLS.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use tokio::net::TcpStream;

use super::framing::Framer;
use super::gather::{Gather, kind_of};
use super::gelf::BatchDecoder;
use super::opening::{self, ConnectionPrefix};
use super::relp::{Peer, Peers, RelpSession};
use super::tls::{Acceptor, IncomingStream};
use super::unfinished::Holder;
use super::wire::Wire;
use super::{BATCH_BYTES, Context, LINGER, look_once_more};
use logpond_engine::ingest::IngestError;
use logpond_host::hostname;
use logpond_settings::{self as settings, Form, StreamProtocol};

/// Read buffer of a connection.
const READ_BYTES: usize = 64 << 10;

/// Reads of a connection until others of the thread have their turn, HTTP among them: not all that comes makes a
/// record, and so a batch.
const READS_IN_TURN_MAX: u32 = 4;

/// Why reading paused.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pause {
    /// There is a batch to submit; the connection goes on.
    Batch,
    /// The peer closed its side, or the connection broke.
    Ended,
    /// It held a part of a record for longest when memory for such parts was short.
    GivenUp,
    /// The process stops.
    Stopping,
}

/// The field that names the client that showed a certificate. Like all that is the server's own word
/// it begins with `_`, so that no message can pretend it.
const CLIENT_FIELD: &str = "_tls_client";

/// RELP as a stream: its records are messages of syslog, each acknowledged.
const RELP: StreamProtocol = StreamProtocol {
    framing: settings::Framing::Frames,
    form: Form::Syslog,
    is_durable: true,
    speaks: "RELP",
};

/// Serves one connection to its end. With an acceptor it must be encrypted (RFC 5425), or is closed; its
/// records name the client, if that showed a certificate.
pub async fn serve_stream(
    stream: TcpStream,
    peer: IpAddr,
    context: Context,
    protocol: StreamProtocol,
    acceptor: Option<Arc<Acceptor>>,
) {
    // A failure is counted, and the peer was told.
    if let Some(stream) = wire(stream, acceptor).await {
        let framing = Framer::of(protocol, context.line_bytes_max);
        serve(stream, peer, context, (protocol, framing)).await;
    }
}

/// Serves one connection of RELP; with an acceptor as [`serve_stream`] does.
pub async fn serve_relp(
    stream: TcpStream,
    peer: IpAddr,
    context: Context,
    peers: Arc<Peers>,
    acceptor: Option<Arc<Acceptor>>,
) {
    if let Some(stream) = wire(stream, acceptor).await {
        let session = relp_session(peer, &context, peers);
        serve(stream, peer, context, (RELP, session)).await;
    }
}

async fn wire(stream: TcpStream, acceptor: Option<Arc<Acceptor>>) -> Option<Wire> {
    let Some(acceptor) = acceptor else {
        return Some(Wire::Plain(stream));
    };
    match acceptor.accept(stream).await {
        Ok(IncomingStream::Tls(stream)) => {
            let client = acceptor.client_of(&stream);
            Some(Wire::Tls(stream, client.map(String::into_boxed_str)))
        }
        _ => None,
    }
}

fn relp_session(peer: IpAddr, context: &Context, peers: Arc<Peers>) -> Framer {
    let name = hostname::of_peer(peer, &context.hostname);
    let peer = Peer::new(name, peers);
    Framer::Relp(RelpSession::new(context.line_bytes_max, peer))
}

async fn serve(
    stream: Wire,
    peer: IpAddr,
    context: Context,
    (protocol, framing): (StreamProtocol, Framer),
) {
    let mut labels = context.labels_of(peer);
    let client = stream.client();
    labels.extend(client.map(|name| (CLIENT_FIELD.into(), name.into())));
    let opening = match framing {
        Framer::Relp(_) => ConnectionPrefix::of_frames(),
        Framer::Lines(_) | Framer::Frames(_) => ConnectionPrefix::of_lines(),
    };
    let connection = Connection {
        stream,
        opening,
        protocol,
        is_durable: protocol.is_durable,
        framing,
        gather: Gather::new(kind_of(protocol.form), labels),
        buffer: Vec::new(),
        unfinished: context.unfinished.begin(),
        context,
    };
    connection.run().await;
}

struct Connection {
    stream: Wire,
    opening: ConnectionPrefix,
    context: Context,
    protocol: StreamProtocol,
    is_durable: bool,
    framing: Framer,
    gather: Gather,
    buffer: Vec<u8>,
    unfinished: Holder,
}

impl Connection {
    async fn run(mut self) {
        let mut shutdown = self.context.shutdown.clone();
        tokio::select! {
            () = shutdown.stopping() => {}
            () = self.framing.wait_for_earlier() => {}
        }
        let foreign = loop {
            let pause = self.fill().await;
            if pause == Pause::Ended {
                self.end_opening();
            }
            if let Some(foreign) = self.opening.foreign() {
                break Some(foreign);
            }
            // A durable sender that was not told `OK` sends the torn line again.
            if pause == Pause::Ended || (pause == Pause::Stopping && !self.is_durable) {
                self.framing.finish(&mut self.gather, &self.context);
            }
            let handed_over = self.hand_over().await;
            if handed_over.is_err() || pause != Pause::Batch || self.framing.is_over() {
                break None;
            }
        };
        self.framing.end();
        match foreign {
            Some(foreign) => {
                let speaks = self.protocol.speaks;
                opening::refuse(self.stream, foreign, speaks, &self.context).await;
            }
            None => {
                let _ = self.stream.shutdown().await;
            }
        }
    }

    /// Whether nothing more is to be read for now.
    fn is_full(&self) -> bool {
        let is_over = self.framing.is_over() || self.opening.foreign().is_some();
        self.gather.bytes() >= BATCH_BYTES || self.framing.is_full() || is_over
    }

    /// Reads until a batch is worth submitting.
    async fn fill(&mut self) -> Pause {
        let mut lingered = self.is_durable;
        let mut reads = 0;
        // A batch may be over at once, and the next one be there already.
        if !self.gives_way().await {
            return Pause::GivenUp;
        }
        loop {
            match self.read() {
                Ok(0) => return Pause::Ended,
                Ok(_) if self.is_full() => return Pause::Batch,
                Ok(_) => {
                    reads += 1;
                    if reads % READS_IN_TURN_MAX == 0 && !self.gives_way().await {
                        return Pause::GivenUp;
                    }
                    continue;
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return Pause::Ended,
            }
            if (!self.gather.is_empty() || self.framing.has_waiting()) && lingered {
                return Pause::Batch;
            }
            if self.gather.is_empty() {
                self.framing.note_idle();
            }
            let mut shutdown = self.context.shutdown.clone();
            let stopping = tokio::select! {
                biased;
                () = shutdown.stopping() => true,
                () = self.unfinished.given_up() => return Pause::GivenUp,
                () = self.framing.awaited() => false,
                _ = self.stream.readable(), if self.gather.is_empty() => false,
                // Also ends by itself when more can be read.
                _ = tokio::time::timeout(LINGER, self.stream.readable()),
                    if !self.gather.is_empty() => {
                    lingered = true;
                    false
                }
            };
            if stopping {
                look_once_more(self.stream.readable()).await;
                return self.read_rest();
            }
        }
    }

    /// Lets others have their turn; false if this connection was given up meanwhile.
    async fn gives_way(&self) -> bool {
        tokio::select! {
            biased;
            () = self.unfinished.given_up() => false,
            () = tokio::task::yield_now() => true,
        }
    }

    /// Takes what the kernel has received already, once, for the last batch.
    fn read_rest(&mut self) -> Pause {
        while !self.is_full() {
            match self.read() {
                Ok(0) => return Pause::Ended,
                Ok(_) => {}
                Err(_) => break,
            }
        }
        Pause::Stopping
    }

    fn read(&mut self) -> io::Result<usize> {
        // Idle connections have no buffer.
        self.buffer.resize(READ_BYTES, 0);
        let read = self.stream.try_read(&mut self.buffer);
        match &read {
            Ok(bytes) => self.take_in(*bytes),
            Err(_) if self.gather.is_empty() => self.buffer = Vec::new(),
            Err(_) => {}
        }
        read
    }

    /// Makes records of so many bytes of the buffer, if the connection is one of records.
    fn take_in(&mut self, bytes: usize) {
        let Connection {
            opening,
            framing,
            gather,
            context,
            buffer,
            ..
        } = self;
        opening.pass(&buffer[..bytes], |new| framing.feed(new, gather, context));
        self.unfinished.hold(self.framing.held_bytes());
    }

    /// The connection has ended: what was held back is known now.
    fn end_opening(&mut self) {
        let Connection {
            opening,
            framing,
            gather,
            context,
            ..
        } = self;
        opening.end(|held| framing.feed(held, gather, context));
    }

    /// Submits what was gathered, and tells a durable sender.
    async fn hand_over(&mut self) -> Result<(), ()> {
        let mut acknowledged = 0;
        let mut failed = None;
        self.framing.note_storing();
        let mut batches = BatchDecoder::of(self.gather.take(), self.protocol.form);
        while let Some(batch) = batches.next(&self.context).await {
            let durable = self.is_durable;
            match self.context.submit_patiently(&batch, None, durable).await {
                Ok(count) => acknowledged += count,
                Err(refused) => {
                    self.context.count_lost(batch.len());
                    failed = Some(refused);
                    if self.is_durable {
                        break;
                    }
                }
            }
        }
        if self.is_durable {
            self.answer(acknowledged, failed.as_ref()).await?;
        }
        match failed {
            Some(IngestError::Stopping | IngestError::Leaving | IngestError::ClockBehind) => {
                Err(())
            }
            Some(_) if self.is_durable => Err(()),
            _ => Ok(()),
        }
    }

    async fn answer(&mut self, acknowledged: u64, failed: Option<&IngestError>) -> Result<(), ()> {
        let answer = self.framing.answer(acknowledged, failed);
        self.stream.write_all(&answer).await.map_err(|_| ())
    }
}
