//! One connection: from the socket that was accepted to its record.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use logpond_protocol::proxy::{self, Addresses, Extensions, HEADER_BYTES_MAX, Header, Tls};
use logpond_tls::{key_algorithm, signature_algorithm};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use crate::buffer::Scratch;
use crate::certificates::OrderedHello;
use crate::client_rules::common_name_of;
use crate::client_table::Visit;
use crate::frontend::{Frontend, Rules};
use crate::limits::{AdmissionGuard, Limits, Share, counted_as};
use crate::pump::{Pump, PumpError, Side};
use crate::record::{CloseReason, Record};
use crate::settings::ProxyHeader;
use crate::upstream::{ConnectionGuard, Stream, UpstreamConnection};
use crate::worker::Worker;

/// Rounds of reading and writing before another connection's turn: with 64 KiB each way in each,
/// half a megabyte.
const ROUNDS_MAX: usize = 4;

/// How long a client that was told why it is refused is listened to: who closes while something
/// unread waits resets the connection, and the client may never see the reason.
const REFUSED_TIME: Duration = Duration::from_secs(1);

/// Bytes of such a client that are dropped.
const REFUSED_BYTES_MAX: u64 = 256 << 10;

/// The close reason of a connection, and its error.
#[derive(Debug)]
struct ConnectionEnd {
    reason: CloseReason,
    error: Option<String>,
}

impl ConnectionEnd {
    fn new(reason: CloseReason) -> ConnectionEnd {
        let error = None;
        ConnectionEnd { reason, error }
    }

    fn because(reason: CloseReason, error: impl ToString) -> ConnectionEnd {
        let error = Some(error.to_string());
        ConnectionEnd { reason, error }
    }
}

/// Serves a connection until it ends.
pub(crate) async fn serve(worker: &Worker, frontend: usize, client: TcpStream, peer: SocketAddr) {
    let frontend = &worker.shared.frontends[frontend];
    let rules = frontend.rules();
    let counters = worker.counters(frontend);
    let mut record = Record::new(peer, rules.name.clone(), &worker.records, counters);
    let Some(mut admitted) = frontend.admission.admit(&rules.limits) else {
        record.close_reason = CloseReason::Limit;
        return;
    };
    let ended = match carry(
        worker,
        (frontend, &rules),
        client,
        peer,
        &mut record,
        &mut admitted,
    )
    .await
    {
        Ok(ended) | Err(ended) => ended,
    };
    record.close_reason = ended.reason;
    record.error = ended.error;
}

/// All steps of a connection.
async fn carry(
    worker: &Worker,
    (frontend, rules): (&Frontend, &Rules),
    mut client: TcpStream,
    peer: SocketAddr,
    record: &mut Record<'_>,
    admitted: &mut AdmissionGuard,
) -> Result<ConnectionEnd, ConnectionEnd> {
    let limits = &rules.limits;
    let deadline = record.accepted() + limits.handshake_time;
    let mut addresses = Addresses::Internet {
        source: peer,
        // Asked of the system only where somebody is told.
        destination: match rules.proxy_header {
            Some(_) => client.local_addr().unwrap_or(peer),
            None => peer,
        },
    };
    let mut first = Vec::new();
    if rules.trust.is_trusted(peer.ip()) {
        let read = timeout_at(deadline, read_header(&mut client)).await;
        let late = || ConnectionEnd::because(CloseReason::ProxyHeader, "it did not come in time");
        let (header, rest) = read.map_err(|_| late())??;
        if let Addresses::Internet { source, .. } = &header.addresses {
            record.client = source.ip().to_canonical().to_string();
            record.client_port = source.port();
            addresses = header.addresses;
        }
        first = rest;
    }
    let from = match &addresses {
        Addresses::Internet { source, .. } => source.ip(),
        _ => peer.ip(),
    };
    if !admitted.admit_address(from, limits) {
        return Err(ConnectionEnd::because(CloseReason::Limit, "of one address"));
    }
    let visit = worker.shared.clients.visit(counted_as(from));
    if !visit.may_shake_hands(limits.handshakes_per_address_per_second_max) {
        let why = "handshakes of one address come too fast";
        return Err(ConnectionEnd::because(CloseReason::Limit, why));
    }
    let mut link = Link::new(rules, client)?;
    link.shake_hands(worker, &first, deadline, record).await?;
    if link.pump.session().ordered() == Some(OrderedHello::Challenge) {
        // The authority has seen what it came for.
        let ended = ConnectionEnd::new(CloseReason::Acme);
        return Ok(link.dismiss(worker, ended).await);
    }
    link.judge_client(worker, frontend).await?;
    drop(first);
    link.connect(rules, addresses, record).await?;
    Ok(link.relay(worker, limits, &visit, record).await)
}

/// Reads the header of another proxy, and what came with it.
async fn read_header(client: &mut TcpStream) -> Result<(Header, Vec<u8>), ConnectionEnd> {
    let wrong = |error: String| ConnectionEnd::because(CloseReason::ProxyHeader, error);
    let mut bytes = Vec::with_capacity(512);
    loop {
        let room = HEADER_BYTES_MAX.saturating_sub(bytes.len());
        // A whole header is at most that long, so that there is room while one is not whole.
        let read = (&mut *client).take(room as u64).read_buf(&mut bytes).await;
        if read.map_err(|error| wrong(error.to_string()))? == 0 {
            return Err(wrong("the connection ended before it".to_owned()));
        }
        let decoded = proxy::decode(&bytes).map_err(|error| wrong(error.to_string()))?;
        if let Some((header, length)) = decoded {
            bytes.drain(..length);
            return Ok((header, bytes));
        }
    }
}

/// The two sockets and what is between them.
struct Link {
    pump: Pump,
    client: TcpStream,
    upstream: Option<Stream>,
    /// Counts the connection for the upstream.
    held: Option<ConnectionGuard>,
    /// When a byte last went anywhere.
    moved: Instant,
}

impl Link {
    fn new(rules: &Rules, client: TcpStream) -> Result<Link, ConnectionEnd> {
        let pump = Pump::new(&rules.certificates);
        let failed = |error| ConnectionEnd::because(CloseReason::HandshakeFailed, error);
        Ok(Link {
            pump: pump.map_err(failed)?,
            client,
            upstream: None,
            held: None,
            moved: Instant::now(),
        })
    }

    /// Does the handshake; `first` was read already.
    async fn shake_hands(
        &mut self,
        worker: &Worker,
        first: &[u8],
        deadline: Instant,
        record: &mut Record<'_>,
    ) -> Result<(), ConnectionEnd> {
        let mut outcome = Ok(());
        if !first.is_empty() {
            let mut scratch = worker.scratch.borrow_mut();
            scratch.incoming[..first.len()].copy_from_slice(first);
            outcome = self.take_from_client(&mut scratch, first.len());
        }
        if outcome.is_ok() {
            let step = poll_fn(|cx| self.poll_handshake(cx, &mut worker.scratch.borrow_mut()));
            let late = || ConnectionEnd::new(CloseReason::HandshakeTimeout);
            let shaken = timeout_at(deadline, step).await;
            outcome = shaken.unwrap_or_else(|_| Err(late()));
        }
        let session = self.pump.session();
        record.sni = session.name().map(str::to_owned);
        if let Some(client) = session.client() {
            record.shown_by_client(client);
        }
        match outcome {
            Ok(()) => {
                record.agreed(&session.agreed());
                Ok(())
            }
            Err(ended) => Err(self.refuse(ended).await),
        }
    }

    /// Finds out whether the client is let in by what holds now, which need not be what held when its
    /// handshake began.
    async fn judge_client(
        &mut self,
        worker: &Worker,
        frontend: &Frontend,
    ) -> Result<(), ConnectionEnd> {
        let now = &frontend.rules().certificates;
        match self.pump.judge_client(now, logpond_tls::now()) {
            Ok(()) => Ok(()),
            Err(error) => {
                let why = logpond_tls::explain(&error);
                let ended = ConnectionEnd::because(CloseReason::ClientCertificate, why);
                Err(self.dismiss(worker, ended).await)
            }
        }
    }

    /// Ends the connection with a client whose handshake is over, but which goes nowhere. There is no
    /// alert that could say why: the library sends those only that it thinks of itself.
    async fn dismiss(&mut self, worker: &Worker, ended: ConnectionEnd) -> ConnectionEnd {
        {
            let mut scratch = worker.scratch.borrow_mut();
            // Without an end of TLS the client hears of an end of its socket.
            let _ = self.pump.upstream_ended(&mut scratch.sealed);
            self.pump.for_client().push(scratch.sealed.filled());
        }
        self.refuse(ended).await
    }

    /// Lets a client know what it did wrong, if that is what ended the connection.
    async fn refuse(&mut self, ended: ConnectionEnd) -> ConnectionEnd {
        if self.pump.for_client().is_empty() {
            return ended;
        }
        let told = async {
            self.client
                .write_all(self.pump.for_client().waiting())
                .await?;
            self.client.shutdown().await?;
            let mut dropped = tokio::io::sink();
            let mut rest = (&mut self.client).take(REFUSED_BYTES_MAX);
            tokio::io::copy(&mut rest, &mut dropped).await
        };
        // Whether it listens is its business.
        let _ = timeout(REFUSED_TIME, told).await;
        ended
    }

    /// Connects to an upstream and prepares what it is sent first.
    async fn connect(
        &mut self,
        rules: &Rules,
        addresses: Addresses,
        record: &mut Record<'_>,
    ) -> Result<(), ConnectionEnd> {
        let session = self.pump.session();
        let Some(pool) = rules.pool(session.name(), session.alpn()) else {
            let _ = self.client.set_zero_linger();
            return Err(ConnectionEnd::new(CloseReason::NoRoute));
        };
        match pool.connect(rules.limits.connect_time).await {
            Ok(UpstreamConnection { stream, held }) => {
                record.upstream = Some(held.name());
                self.upstream = Some(stream);
                self.held = Some(held);
            }
            Err((error, name)) => {
                record.upstream = Some(name);
                // Without an end of TLS: nobody may take nothing for an answer.
                let _ = self.client.set_zero_linger();
                return Err(ConnectionEnd::because(
                    CloseReason::UpstreamUnreachable,
                    error,
                ));
            }
        }
        if let Some(header) = rules.proxy_header {
            let mut bytes = Vec::new();
            match header {
                ProxyHeader::V1 => proxy::encode_text(&addresses, &mut bytes),
                ProxyHeader::V2 => proxy::encode_binary(&self.header(addresses), false, &mut bytes),
            }
            bytes.extend_from_slice(self.pump.for_upstream().waiting());
            *self.pump.for_upstream() = Default::default();
            self.pump.for_upstream().push(&bytes);
        }
        self.moved = Instant::now();
        Ok(())
    }

    fn header(&self, addresses: Addresses) -> Header {
        let agreed = self.pump.session().agreed();
        let (client, shown) = (self.pump.session().client(), self.pump.session().shown());
        let tls = Tls {
            has_certificate: client.is_some() && !agreed.is_resumed,
            had_certificate: client.is_some(),
            // Who showed a bad one is not here any more; what is not there is not verified either.
            is_verified: client.is_some(),
            version: agreed.version.map(str::to_owned),
            common_name: client.and_then(common_name_of),
            cipher: agreed.cipher.map(str::to_owned),
            signature_algorithm: shown.and_then(signature_algorithm).map(str::to_owned),
            key_algorithm: shown.and_then(key_algorithm),
        };
        Header {
            addresses,
            extensions: Extensions {
                alpn: agreed.alpn,
                authority: self.pump.session().name().map(str::to_owned),
                unique_id: None,
                tls: Some(tls),
            },
        }
    }

    /// Moves bytes until the connection ends.
    async fn relay(
        mut self,
        worker: &Worker,
        limits: &Limits,
        visit: &Visit,
        record: &mut Record<'_>,
    ) -> ConnectionEnd {
        let mut watchdog = pin!(sleep_until(self.deadline(limits)));
        let mut share = Share::new(&worker.shared.waiting);
        let ended = poll_fn(|cx| {
            let moved = self.poll_relay(cx, &mut worker.scratch.borrow_mut());
            let (from, to) = record.moved(self.pump.bytes());
            if from + to > 0 {
                visit.moved(from, to);
            }
            if let Poll::Ready(ended) = moved {
                return Poll::Ready(ended);
            }
            if !share.set(self.pump.waiting_bytes()) {
                let why = "too much waits for sides that do not take it";
                return Poll::Ready(ConnectionEnd::because(CloseReason::Limit, why));
            }
            // A deadline moves with each byte; the timer follows only when it is due, or late.
            let deadline = self.deadline(limits);
            if deadline < watchdog.deadline() {
                watchdog.as_mut().reset(deadline);
            }
            while watchdog.as_mut().poll(cx).is_ready() {
                if Instant::now() >= deadline {
                    return Poll::Ready(ConnectionEnd::new(if self.pump.is_half_closed() {
                        CloseReason::HalfCloseTimeout
                    } else {
                        CloseReason::Idle
                    }));
                }
                watchdog.as_mut().reset(deadline);
            }
            Poll::Pending
        })
        .await;
        match ended.reason {
            CloseReason::Client | CloseReason::Upstream | CloseReason::ClientTruncated => ended,
            CloseReason::UpstreamReset => {
                let _ = self.client.set_zero_linger();
                ended
            }
            reason => {
                if let Some(upstream) = self.upstream.take() {
                    upstream.reset();
                }
                match reason {
                    CloseReason::ClientError => self.refuse(ended).await,
                    _ => ended,
                }
            }
        }
    }

    fn deadline(&self, limits: &Limits) -> Instant {
        self.moved
            + if self.pump.is_half_closed() {
                limits.half_close_time
            } else {
                limits.idle_time
            }
    }

    fn poll_handshake(
        &mut self,
        cx: &mut Context<'_>,
        scratch: &mut Scratch,
    ) -> Poll<Result<(), ConnectionEnd>> {
        while self.pump.session().is_handshaking() {
            let is_flushed = self.poll_flush_client(cx)?;
            if self.pump.is_half_closed() {
                return Poll::Ready(Err(ConnectionEnd::new(CloseReason::HandshakeAborted)));
            }
            let is_read = self.poll_read_client(cx, scratch)?;
            if is_flushed.is_pending() && is_read.is_pending() {
                return Poll::Pending;
            }
        }
        // The last word of a handshake of TLS 1.2 does not wait for the upstream.
        let _ = self.poll_flush_client(cx)?;
        Poll::Ready(Ok(()))
    }

    fn poll_relay(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch) -> Poll<ConnectionEnd> {
        for _ in 0..ROUNDS_MAX {
            match self.poll_round(cx, scratch) {
                Ok(Poll::Pending) => return Poll::Pending,
                Ok(Poll::Ready(())) if self.pump.is_done() => {
                    return Poll::Ready(ConnectionEnd::new(match self.pump.first_end() {
                        _ if self.pump.is_truncated() => CloseReason::ClientTruncated,
                        Some(Side::Upstream) => CloseReason::Upstream,
                        _ => CloseReason::Client,
                    }));
                }
                Ok(Poll::Ready(())) => {}
                Err(ended) => return Poll::Ready(ended),
            }
        }
        // Others first.
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Moves what can be moved; pending if that is nothing.
    fn poll_round(
        &mut self,
        cx: &mut Context<'_>,
        scratch: &mut Scratch,
    ) -> Result<Poll<()>, ConnectionEnd> {
        let steps = [
            self.poll_flush_client(cx)?,
            self.poll_flush_upstream(cx),
            self.poll_read_client(cx, scratch)?,
            self.poll_read_upstream(cx, scratch)?,
            self.poll_shut(cx),
        ];
        Ok(if steps.iter().any(Poll::is_ready) {
            self.moved = Instant::now();
            Poll::Ready(())
        } else {
            Poll::Pending
        })
    }

    fn poll_flush_client(&mut self, cx: &mut Context<'_>) -> Result<Poll<()>, ConnectionEnd> {
        if self.pump.for_client().is_empty() {
            return Ok(Poll::Pending);
        }
        let written = Pin::new(&mut self.client).poll_write(cx, self.pump.for_client().waiting());
        match written {
            Poll::Ready(Ok(bytes)) => {
                self.pump.for_client().advance(bytes);
                Ok(Poll::Ready(()))
            }
            Poll::Ready(Err(error)) => Err(self.client_failed(&error)),
            Poll::Pending => Ok(Poll::Pending),
        }
    }

    fn poll_flush_upstream(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(upstream) = &mut self.upstream else {
            return Poll::Pending;
        };
        if self.pump.for_upstream().is_empty() {
            return Poll::Pending;
        }
        match ready!(Pin::new(upstream).poll_write(cx, self.pump.for_upstream().waiting())) {
            Ok(bytes) => self.pump.for_upstream().advance(bytes),
            Err(_) => self.pump.upstream_is_deaf(),
        }
        Poll::Ready(())
    }

    fn poll_read_client(
        &mut self,
        cx: &mut Context<'_>,
        scratch: &mut Scratch,
    ) -> Result<Poll<()>, ConnectionEnd> {
        if !self.pump.wants_from_client() {
            return Ok(Poll::Pending);
        }
        let kept = self.pump.partial_length();
        let mut buffer = ReadBuf::new(&mut scratch.incoming[kept..]);
        match Pin::new(&mut self.client).poll_read(cx, &mut buffer) {
            Poll::Pending => return Ok(Poll::Pending),
            Poll::Ready(Err(error)) => return Err(self.client_failed(&error)),
            Poll::Ready(Ok(())) => {}
        }
        match buffer.filled().len() {
            0 => self.pump.client_ended(),
            received => {
                self.take_from_client(scratch, received)?;
                self.write_on(cx, scratch);
            }
        }
        Ok(Poll::Ready(()))
    }

    /// Has the pump take what was read. Before there is an upstream, what comes of it waits.
    fn take_from_client(
        &mut self,
        scratch: &mut Scratch,
        received: usize,
    ) -> Result<(), ConnectionEnd> {
        let is_handshaking = self.pump.session().is_handshaking();
        let outcome = self.pump.receive(scratch, received);
        self.pump.for_client().push(scratch.sealed.filled());
        if self.upstream.is_none() {
            self.pump.for_upstream().push(scratch.plain.filled());
        }
        let ordered = self.pump.session().ordered();
        outcome.map_err(|error| {
            let reason = match &error {
                _ if !is_handshaking => CloseReason::ClientError,
                _ if ordered == Some(OrderedHello::Challenge) => CloseReason::Acme,
                _ if ordered == Some(OrderedHello::Missing) => {
                    let why = "the certificate that was ordered has not come yet";
                    return ConnectionEnd::because(CloseReason::NoCertificate, why);
                }
                error if error.is_of_certificate() => CloseReason::ClientCertificate,
                _ => CloseReason::HandshakeFailed,
            };
            ConnectionEnd::because(reason, error)
        })
    }

    /// Writes what was just decrypted; what is not taken waits.
    fn write_on(&mut self, cx: &mut Context<'_>, scratch: &Scratch) {
        let (plain, Some(upstream)) = (scratch.plain.filled(), &mut self.upstream) else {
            return;
        };
        if plain.is_empty() {
            return;
        }
        match Pin::new(upstream).poll_write(cx, plain) {
            Poll::Ready(Ok(written)) => self.pump.for_upstream().push(&plain[written..]),
            Poll::Ready(Err(_)) => self.pump.upstream_is_deaf(),
            Poll::Pending => self.pump.for_upstream().push(plain),
        }
    }

    fn poll_read_upstream(
        &mut self,
        cx: &mut Context<'_>,
        scratch: &mut Scratch,
    ) -> Result<Poll<()>, ConnectionEnd> {
        let Some(upstream) = &mut self.upstream else {
            return Ok(Poll::Pending);
        };
        if !self.pump.wants_from_upstream() {
            return Ok(Poll::Pending);
        }
        let mut buffer = ReadBuf::new(&mut scratch.incoming);
        match Pin::new(upstream).poll_read(cx, &mut buffer) {
            Poll::Pending => return Ok(Poll::Pending),
            Poll::Ready(Err(error)) => {
                return Err(ConnectionEnd::because(CloseReason::UpstreamReset, error));
            }
            Poll::Ready(Ok(())) => {}
        }
        let sent = match buffer.filled() {
            [] => self.pump.upstream_ended(&mut scratch.sealed),
            plain => self.pump.send(plain, &mut scratch.sealed),
        };
        sent.map_err(|error: PumpError| ConnectionEnd::because(CloseReason::ClientError, error))?;
        let sealed = scratch.sealed.filled();
        match Pin::new(&mut self.client).poll_write(cx, sealed) {
            Poll::Ready(Ok(written)) => self.pump.for_client().push(&sealed[written..]),
            Poll::Ready(Err(error)) => return Err(self.client_failed(&error)),
            Poll::Pending => self.pump.for_client().push(sealed),
        }
        Ok(Poll::Ready(()))
    }

    /// Passes ends on.
    fn poll_shut(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut is_shut = false;
        // Shutting down never waits, and fails where the other side is gone.
        if self.pump.shuts_client() {
            let _ = Pin::new(&mut self.client).poll_shutdown(cx);
            is_shut = true;
        }
        if let Some(upstream) = &mut self.upstream
            && self.pump.shuts_upstream()
        {
            let _ = Pin::new(upstream).poll_shutdown(cx);
            is_shut = true;
        }
        if is_shut {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }

    /// What an error of the client's socket means. Who was told everything, or had said that nothing
    /// more comes, has simply left.
    fn client_failed(&mut self, error: &io::Error) -> ConnectionEnd {
        let was_told = self.pump.for_client().is_empty();
        *self.pump.for_client() = Default::default();
        if self.pump.session().is_handshaking() {
            return ConnectionEnd::because(CloseReason::HandshakeAborted, error);
        }
        match self.pump.first_end() {
            Some(Side::Upstream) if was_told => ConnectionEnd::new(CloseReason::Upstream),
            Some(Side::Client) if !self.pump.is_truncated() => {
                ConnectionEnd::new(CloseReason::Client)
            }
            _ => ConnectionEnd::because(CloseReason::ClientReset, error),
        }
    }
}
