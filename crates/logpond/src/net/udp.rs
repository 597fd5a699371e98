//! Datagrams: syslog, and GELF in chunks or not.

use std::io;
use std::net::IpAddr;

use logpond_protocol::intake::frames::trim_end;
use logpond_record::EntryKind;
use tokio::net::UdpSocket;

use super::gather::Gather;
use super::gelf::{Assembly, Decoding};
use super::{BATCH_BYTES, Context, LINGER};
use crate::hostname;
use crate::telemetry::Intake;

/// The largest UDP payload there is, and one byte.
const DATAGRAM_BYTES: usize = 64 << 10;

/// Senders whose datagrams are gathered side by side; with more, the batches are submitted early.
const PEERS_MAX: usize = 64;

/// Serves the socket until the stop; what the kernel holds then is still taken.
pub async fn serve_udp(socket: UdpSocket, context: Context) {
    let mut shutdown = context.shutdown.clone();
    let mut intake = Datagrams {
        socket,
        assembly: (context.intake == Intake::GelfUdp).then(Assembly::new),
        context,
        peers: Vec::new(),
        buffer: Vec::new(),
    };
    loop {
        tokio::select! {
            ready = intake.socket.readable() => if ready.is_err() { return },
            () = intake.expiry() => {
                intake.expire(false);
                continue;
            }
            () = shutdown.stopping() => break,
        }
        // A single datagram waits a little for company; then everything there is goes together.
        if !intake.drain() {
            tokio::time::sleep(LINGER).await;
            intake.drain();
        }
        intake.hand_over().await;
    }
    while intake.drain() {
        intake.hand_over().await;
    }
    intake.hand_over().await;
    intake.expire(true);
}

struct Datagrams {
    socket: UdpSocket,
    context: Context,
    /// Of GELF, whose messages may come in several.
    assembly: Option<Assembly>,
    peers: Vec<(IpAddr, Gather)>,
    buffer: Vec<u8>,
}

impl Datagrams {
    /// Takes what the kernel holds; says whether it stopped because there is enough for now.
    fn drain(&mut self) -> bool {
        self.buffer.resize(DATAGRAM_BYTES, 0);
        let mut bytes = 0;
        while bytes < BATCH_BYTES && self.peers.len() < PEERS_MAX {
            match self.socket.try_recv_from(&mut self.buffer) {
                Ok((length, peer)) => {
                    bytes += length + 4;
                    self.take(length, peer.ip().to_canonical());
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return false,
                // An ICMP answer to nothing we sent, or an interrupted call.
                Err(_) => bytes += 1,
            }
        }
        true
    }

    /// Waits until a message whose datagrams did not all come is to be given up.
    async fn expiry(&self) {
        match self.assembly.as_ref().and_then(Assembly::deadline) {
            Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
            None => std::future::pending().await,
        }
    }

    fn expire(&mut self, is_end: bool) {
        if let Some(assembly) = &mut self.assembly {
            assembly.expire(is_end, &self.context);
        }
    }

    fn take(&mut self, length: usize, peer: IpAddr) {
        if length == 0 {
            return;
        }
        let known = self.peers.iter().rposition(|(address, _)| *address == peer);
        let kind = match self.assembly {
            Some(_) => EntryKind::Line,
            None => EntryKind::Syslog,
        };
        let index = known.unwrap_or_else(|| {
            let labels = hostname::labels_of(peer, &self.context.hostname);
            self.peers.push((peer, Gather::new(kind, labels)));
            self.peers.len() - 1
        });
        let gather = &mut self.peers[index].1;
        let datagram = &self.buffer[..length];
        match &mut self.assembly {
            Some(assembly) => assembly.take(peer, datagram, |message| gather.push(message)),
            None => take_syslog(datagram, gather, &self.context),
        }
    }

    async fn hand_over(&mut self) {
        self.expire(false);
        for (_, mut gather) in self.peers.drain(..) {
            let mut batches = Decoding::of(gather.take());
            while let Some(batch) = batches.next(&self.context).await {
                let records = batch.len();
                // One bounded wait for room, in which the kernel's buffer takes the load.
                match self.context.ingest.submit(batch.clone(), false).await {
                    Ok(_) => self.context.count_accepted(&batch),
                    Err(_) => self.context.count_lost(records),
                }
            }
        }
        self.buffer = Vec::new();
    }
}

fn take_syslog(datagram: &[u8], gather: &mut Gather, context: &Context) {
    let message = trim_end(datagram);
    if !message.is_empty() {
        let kept = &message[..message.len().min(context.line_bytes_max)];
        gather.add(kept, message.len() - kept.len(), context);
    }
}
