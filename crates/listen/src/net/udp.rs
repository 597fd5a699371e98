//! Datagrams: a message of syslog, lines, or GELF in chunks or not.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsRawFd;

use logpond_protocol::intake::foreign::is_of_browser;
use logpond_protocol::intake::frames::trim_end;
use nix::sys::socket::{MsgFlags, MultiHeaders, SockaddrStorage, recvmmsg};
use tokio::io::Interest;
use tokio::net::UdpSocket;

use super::gather::{Gather, kind_of};
use super::gelf::{Assembly, BatchDecoder};
use super::{BATCH_BYTES, Context, LINGER, look_once_more, opening};
use logpond_settings::Form;

/// The largest UDP payload there is, and one byte.
const DATAGRAM_BYTES: usize = 64 << 10;

/// Datagrams received by one call: enough that the call itself costs little of each, in a buffer of
/// 2 MiB, of which small datagrams touch little.
const AT_ONCE: usize = 32;

/// Senders whose datagrams are gathered side by side; with more, the batches are submitted early.
const PEERS_MAX: usize = 64;

/// Serves the socket until the stop; what the kernel holds then is still taken.
pub async fn serve_udp(socket: UdpSocket, context: Context, form: Form) {
    let mut shutdown = context.shutdown.clone();
    let mut intake = Datagrams {
        socket,
        assembly: match form {
            Form::Line | Form::Syslog => None,
            Form::Gelf => Some(Assembly::new()),
        },
        form,
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
    look_once_more(intake.socket.readable()).await;
    while intake.drain() {
        intake.hand_over().await;
    }
    intake.hand_over().await;
    intake.expire(true);
}

struct Datagrams {
    socket: UdpSocket,
    context: Context,
    form: Form,
    /// Of GELF, whose messages may come in several.
    assembly: Option<Assembly>,
    peers: Vec<(IpAddr, Gather)>,
    buffer: Vec<u8>,
}

impl Datagrams {
    /// Takes what the kernel holds; says whether it stopped because there is enough for now.
    fn drain(&mut self) -> bool {
        if self.buffer.is_empty() {
            self.buffer = vec![0; AT_ONCE * DATAGRAM_BYTES];
        }
        let mut headers = MultiHeaders::preallocate(AT_ONCE, None);
        let mut bytes = 0;
        while bytes < BATCH_BYTES && self.peers.len() + AT_ONCE <= PEERS_MAX {
            let (socket, buffer) = (self.socket.as_raw_fd(), &mut self.buffer);
            let received = self
                .socket
                .try_io(Interest::READABLE, || receive(socket, &mut headers, buffer));
            match received {
                Ok(datagrams) => {
                    for (number, (length, peer)) in datagrams.into_iter().enumerate() {
                        bytes += length + 4;
                        self.take(number * DATAGRAM_BYTES, length, peer);
                    }
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

    /// Takes the datagram that begins there in the buffer.
    fn take(&mut self, start: usize, length: usize, peer: IpAddr) {
        if length == 0 {
            return;
        }
        let datagram = &self.buffer[start..start + length];
        if is_of_browser(datagram) {
            return opening::count(&self.context);
        }
        let known = self.peers.iter().rposition(|(address, _)| *address == peer);
        let kind = kind_of(self.form);
        let index = known.unwrap_or_else(|| {
            let labels = self.context.labels_of(peer);
            self.peers.push((peer, Gather::new(kind, labels)));
            self.peers.len() - 1
        });
        let gather = &mut self.peers[index].1;
        match (self.form, &mut self.assembly) {
            (Form::Gelf, Some(assembly)) => {
                assembly.take(peer, datagram, |message| gather.push(message));
            }
            (Form::Gelf, None) => {}
            (Form::Syslog, _) => take_record(trim_end(datagram), gather, &self.context),
            (Form::Line, _) => {
                let lines = datagram.split(|byte| *byte == b'\n');
                lines.for_each(|line| take_record(trim_end(line), gather, &self.context));
            }
        }
    }

    async fn hand_over(&mut self) {
        self.expire(false);
        for (_, mut gather) in self.peers.drain(..) {
            let mut batches = BatchDecoder::of(gather.take(), self.form);
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

/// Receives what there is, at most [`AT_ONCE`] datagrams, each into its part of the buffer; gives their
/// lengths and senders.
fn receive(
    socket: i32,
    headers: &mut MultiHeaders<SockaddrStorage>,
    buffer: &mut [u8],
) -> io::Result<Vec<(usize, IpAddr)>> {
    let mut parts: Vec<_> = (buffer.chunks_mut(DATAGRAM_BYTES))
        .map(|part| [IoSliceMut::new(part)])
        .collect();
    let received = recvmmsg(socket, headers, &mut parts, MsgFlags::MSG_DONTWAIT, None);
    let datagrams = received.map_err(io::Error::from)?;
    let peer_of = |address: Option<SockaddrStorage>| {
        let address = address?;
        let v4 = address.as_sockaddr_in().map(|peer| IpAddr::V4(peer.ip()));
        v4.or_else(|| Some(IpAddr::V6(address.as_sockaddr_in6()?.ip())))
    };
    let datagrams = datagrams.map(|datagram| {
        // The kernel gives every datagram its sender.
        let peer = peer_of(datagram.address).unwrap_or(Ipv4Addr::UNSPECIFIED.into());
        (datagram.bytes, peer.to_canonical())
    });
    Ok(datagrams.collect())
}

/// Takes a record, unless it is empty.
fn take_record(record: &[u8], gather: &mut Gather, context: &Context) {
    if !record.is_empty() {
        let kept = &record[..record.len().min(context.line_bytes_max)];
        gather.add(kept, record.len() - kept.len(), context);
    }
}
