//! Syslog datagrams.

use std::io;
use std::net::IpAddr;

use logpond_record::EntryKind;
use tokio::net::UdpSocket;

use super::gather::Gather;
use super::{BATCH_BYTES, Context, LINGER};
use crate::hostname;

/// The largest UDP payload there is, and one byte.
const DATAGRAM_BYTES: usize = 64 << 10;

/// Senders whose datagrams are gathered side by side; with more, the batches are submitted early.
const PEERS_MAX: usize = 64;

/// Serves the socket until the stop; what the kernel holds then is still taken.
pub async fn serve_udp(socket: UdpSocket, context: Context) {
    let mut shutdown = context.shutdown.clone();
    let mut intake = Datagrams {
        socket,
        context,
        peers: Vec::new(),
        buffer: Vec::new(),
    };
    loop {
        tokio::select! {
            ready = intake.socket.readable() => if ready.is_err() { return },
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
}

struct Datagrams {
    socket: UdpSocket,
    context: Context,
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

    fn take(&mut self, length: usize, peer: IpAddr) {
        let datagram = trim_end(&self.buffer[..length]);
        if datagram.is_empty() {
            return;
        }
        let known = self.peers.iter().rposition(|(address, _)| *address == peer);
        let index = known.unwrap_or_else(|| {
            let labels = hostname::labels_of(peer, &self.context.hostname);
            self.peers
                .push((peer, Gather::new(EntryKind::Syslog, labels)));
            self.peers.len() - 1
        });
        let gather = &mut self.peers[index].1;
        let limit = self.context.line_bytes_max;
        if datagram.len() > limit {
            self.context
                .metrics
                .intake(self.context.intake)
                .truncated
                .add(1);
            gather.push_cut(&datagram[..limit], datagram.len() as u64);
        } else {
            gather.push(datagram);
        }
    }

    async fn hand_over(&mut self) {
        for (_, mut gather) in self.peers.drain(..) {
            for batch in gather.take() {
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

/// Without the line end or NUL that some senders put behind the message.
fn trim_end(datagram: &[u8]) -> &[u8] {
    let end = datagram
        .iter()
        .rposition(|b| !matches!(b, b'\n' | b'\r' | 0));
    &datagram[..end.map_or(0, |at| at + 1)]
}
