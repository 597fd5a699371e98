//! The async half of the server: listeners, HTTP, signals, and the watch over its own delays.

use std::any::Any;
use std::future;
use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::panic;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use logpond_segment::batches::BatchSet;
use logpond_segment::sources::Interval;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::{JoinError, JoinSet};

use super::absent::{self, BoundSocket};
use super::{Addresses, ServeError, postgres};
use logpond_engine::ingest::Ingest;
use logpond_host::memory::incoming::{DECODED, UNFINISHED};
use logpond_host::shutdown::{Shutdown, Stopper};
use logpond_host::telemetry::{Intake, Metrics, kernel_drops, warn};
use logpond_host::watch::Watcher;
use logpond_host::{hostname, service_manager};
use logpond_http as http;
use logpond_http::App;
use logpond_listen::net;
use logpond_listen::net::local::LocalSockets;
use logpond_listen::net::tls::ClusterTls;
use logpond_node::cluster::{HttpTransport, Member};
use logpond_node::server::{self, Service};
use logpond_settings::{
    EnabledListener, IntakeAddresses, Listener, Protection, Protocol, Settings,
};

/// Threads that decode bodies: with two, one large body does not hold up the others, and their
/// memory stays twice that of a body.
const BLOCKING_THREADS_MAX: usize = 2;

/// How long an idle blocking thread is kept.
const BLOCKING_KEPT: Duration = Duration::from_secs(10);

/// How long blocking work may hold up the end once everything is drained.
const BLOCKING_END_MAX: Duration = Duration::from_secs(1);

/// Ports that are tried for two sockets side by side.
const PORTS_TRIED_MAX: usize = 16;

/// How often the runtime's delay is measured: often enough to see a stall, rare enough to cost
/// nothing while idle.
const DELAY_CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// A listener with its socket and the address that was bound.
type BoundTo<S> = (&'static Listener, S, SocketAddr);

/// Bound sockets of all intakes that are on.
pub(super) struct Listeners {
    http: (TcpListener, SocketAddr),
    streams: Vec<BoundTo<TcpListener>>,
    datagrams: Vec<BoundTo<UdpSocket>>,
    local: LocalSockets,
    gossip: Option<(TcpListener, SocketAddr)>,
    postgres: Option<(TcpListener, SocketAddr)>,
    /// Where clients of the Forward protocol look whether it is there.
    heartbeats: Option<UdpSocket>,
    /// What is on only by default, and could not be had.
    absent: Vec<EnabledListener>,
    listening: Arc<net::ListenerStatus>,
    /// The name of this machine in records.
    hostname: Arc<str>,
}

/// What the runtime runs for other nodes.
pub(super) struct ClusterParts {
    pub(super) member: Arc<Member>,
    pub(super) service: Arc<Service>,
    pub(super) transport: HttpTransport,
    pub(super) tls: Option<Arc<ClusterTls>>,
}

/// What the runtime runs.
pub(super) struct Parts {
    pub(super) listeners: Listeners,
    pub(super) app: Arc<App>,
    pub(super) cluster: Option<ClusterParts>,
    pub(super) ingest: Ingest,
    pub(super) metrics: Arc<Metrics>,
    pub(super) stopper: Arc<Stopper>,
    pub(super) shutdown: Shutdown,
    pub(super) line_bytes_max: usize,
    /// The zones that peers write times in.
    pub(super) zones: Arc<net::Zones>,
    pub(super) ends_by_signal: bool,
    /// What SIGHUP asks to look at files again, if there is something to look at.
    pub(super) watcher: Watcher,
    /// What clients of the Forward protocol must know, if anything.
    pub(super) security: Option<Arc<net::SharedSecurity>>,
    /// What encrypts HTTP, if anything does.
    pub(super) tls: Option<Arc<net::tls::Acceptor>>,
    /// What encrypts syslog, if anything does.
    pub(super) syslog_tls: Option<Arc<net::tls::Acceptor>>,
    /// What clients of RELP may send again.
    pub(super) relp_peers: Arc<net::RelpPeers>,
    /// The memory of queries and caches, by which pools of incoming records are sized.
    pub(super) budget_bytes: u64,
}

impl Listeners {
    /// Binds all of them. `is_process` is false of one server among others in a process: nobody can
    /// keep sockets for one of these.
    pub(super) fn bind(settings: &Settings, is_process: bool) -> Result<Listeners, ServeError> {
        let tcp = |flag, address| net::bind_tcp(flag, address).map_err(ServeError::Bind);
        let http = tcp("http", settings.http)?;
        let (mut streams, mut datagrams) = (Vec::new(), Vec::new());
        let (mut absent, mut off, mut all) = (Vec::new(), Vec::new(), vec![("http", http.1)]);
        for wanted in settings.intakes() {
            let (kind, name) = (wanted.listener, wanted.listener.name);
            match absent::bind(&wanted) {
                Ok((BoundSocket::Stream(listener), bound)) => {
                    all.push((name, bound));
                    streams.push((kind, listener, bound));
                }
                Ok((BoundSocket::Datagrams(socket), bound)) => {
                    all.push((name, bound));
                    datagrams.push((kind, socket, bound));
                }
                Err(error) if wanted.is_asked_for => return Err(ServeError::Bind(error)),
                Err(error) => {
                    all.push((name, error.address));
                    off.push(net::PendingListener::new(name, &error));
                    absent.push(wanted);
                }
            }
        }
        let gossip = settings.gossip.map(|address| tcp("gossip", address));
        let gossip = gossip.transpose()?;
        all.extend(gossip.iter().map(|(_, bound)| ("gossip", *bound)));
        let postgres = postgres::bind(settings)?;
        all.extend(postgres.iter().map(|(_, bound)| ("postgres", *bound)));
        let local = net::local::SocketOptions {
            dev_log: settings.dev_log.as_deref(),
            dev_log_stream: settings.dev_log_stream.as_deref(),
            journald: settings.journald.as_deref(),
            kmsg: settings.kmsg.as_deref(),
            keep_for: settings.keep_sockets.filter(|_| is_process),
        };
        let mut local = LocalSockets::bind(local).map_err(ServeError::BindPath)?;
        if settings.audit {
            local.listen_to_audit().map_err(ServeError::Audit)?;
        }
        let heartbeats = heartbeats_beside(&mut streams, settings);
        Ok(Listeners {
            http,
            streams,
            datagrams,
            local,
            gossip,
            postgres,
            heartbeats,
            absent,
            listening: Arc::new(net::ListenerStatus::new(all, off)),
            hostname: match &*settings.hostname {
                "" => hostname::own().into(),
                hostname => hostname.into(),
            },
        })
    }

    /// Which of them could be had.
    pub(super) fn listening(&self) -> Arc<net::ListenerStatus> {
        self.listening.clone()
    }

    pub(super) fn addresses(&self) -> Addresses {
        let streams = self.streams.iter().map(|(kind, _, at)| (kind, *at));
        let datagrams = self.datagrams.iter().map(|(kind, _, at)| (kind, *at));
        let mut intakes = IntakeAddresses::default();
        for (kind, address) in streams.chain(datagrams) {
            intakes.set(kind.intake, Some(address));
        }
        Addresses {
            http: self.http.1,
            intakes,
            gossip: self.gossip.as_ref().map(|(_, address)| *address),
            postgres: self.postgres.as_ref().map(|(_, address)| *address),
        }
    }
}

/// A socket for heartbeats at the port of the Forward protocol. Where the system chose the port, and
/// somebody has it for datagrams, another is chosen; where it is given, there are none then: only old
/// versions of Fluentd want them.
fn heartbeats_beside(
    streams: &mut [BoundTo<TcpListener>],
    settings: &Settings,
) -> Option<UdpSocket> {
    let mut streams = streams.iter_mut();
    let (kind, listener, bound) = streams.find(|(kind, ..)| kind.protocol == Protocol::Forward)?;
    let wanted = settings.listeners.of(kind.intake);
    for _ in 0..PORTS_TRIED_MAX {
        if let Ok((socket, _)) = net::bind_udp(kind.name, *bound) {
            return Some(socket);
        }
        let wanted = wanted.filter(|wanted| wanted.port() == 0)?;
        (*listener, *bound) = net::bind_tcp(kind.name, wanted).ok()?;
    }
    None
}

/// Runs to the end of the drain. Says by `is_up` whether it listens.
pub(super) fn run(parts: Parts, is_up: &mpsc::Sender<io::Result<()>>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .thread_name("lp-blocking")
        .max_blocking_threads(BLOCKING_THREADS_MAX)
        .thread_keep_alive(BLOCKING_KEPT)
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(e) => return drop(is_up.send(Err(e))),
    };
    runtime.block_on(async {
        match RuntimeState::start(parts) {
            Ok(running) => {
                let _ = is_up.send(Ok(()));
                running.serve().await;
            }
            Err(e) => drop(is_up.send(Err(e))),
        }
    });
    runtime.shutdown_timeout(BLOCKING_END_MAX);
}

struct RuntimeState {
    tasks: JoinSet<()>,
    /// What tells losses at the end, and the name of this machine.
    last: (Ingest, Arc<str>),
    signals: Signals,
    stopper: Arc<Stopper>,
    shutdown: Shutdown,
}

/// The named batches of an epoch that this node has.
fn held_of(epoch: u128, app: &App) -> BatchSet {
    let mut all = BatchSet::default();
    let (from, to) = (0, u64::MAX);
    all.insert_run(epoch, Interval { from, to });
    // Files of the journal first: what leaves them meanwhile is in a segment by then.
    let mut held = app.ingest.durability().states(&all).durable;
    held.union_with(&app.store.batches_of(epoch));
    held
}

/// Serves the listeners for records that are bound.
fn serve_bound(
    tasks: &mut JoinSet<()>,
    (streams, datagrams): (Vec<BoundTo<TcpListener>>, Vec<BoundTo<UdpSocket>>),
    context_of: &impl Fn(Intake) -> net::Context,
    shared: &ConnectionContext,
) -> io::Result<()> {
    for (kind, listener, _) in streams {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let context = context_of(kind.intake);
        accept_stream(tasks, kind, listener, context, shared.clone());
    }
    for (kind, socket, address) in datagrams {
        let context = context_of(kind.intake);
        expose_drops(&context.metrics, kind.intake, address);
        take_datagrams(tasks, kind, socket, context)?;
    }
    Ok(())
}

pub(super) fn take_datagrams(
    tasks: &mut JoinSet<()>,
    kind: &Listener,
    socket: UdpSocket,
    context: net::Context,
) -> io::Result<()> {
    let socket = tokio::net::UdpSocket::from_std(socket)?;
    match kind.protocol {
        Protocol::Datagrams(form) => drop(tasks.spawn(net::serve_udp(socket, context, form))),
        // They have no sockets for datagrams.
        Protocol::Stream(_)
        | Protocol::Relp
        | Protocol::Bulk
        | Protocol::Forward
        | Protocol::Http
        | Protocol::Grpc
        | Protocol::Nodes
        | Protocol::Postgres => {}
    }
    Ok(())
}

impl RuntimeState {
    fn start(parts: Parts) -> io::Result<RuntimeState> {
        let Parts {
            listeners,
            app,
            cluster,
            ingest,
            metrics,
            stopper,
            shutdown,
            line_bytes_max,
            zones,
            ends_by_signal,
            watcher,
            security,
            tls,
            syslog_tls,
            relp_peers,
            budget_bytes,
        } = parts;
        let context = net::Context {
            ingest: ingest.clone(),
            metrics: metrics.clone(),
            shutdown: shutdown.clone(),
            intake: Intake::Http,
            decoded_bytes_max: DECODED.bytes(budget_bytes),
            line_bytes_max,
            hostname: listeners.hostname,
            zones,
            unfinished: Arc::new(net::UnfinishedParts::new(UNFINISHED.bytes(budget_bytes))),
        };
        let context_of = |intake| net::Context {
            intake,
            ..context.clone()
        };
        let mut tasks = JoinSet::new();
        let fluent = net::Fluent::new(security);
        let shared = ConnectionContext::of(fluent, &app, &tls, syslog_tls, relp_peers);
        let bound = (listeners.streams, listeners.datagrams);
        serve_bound(&mut tasks, bound, &context_of, &shared)?;
        answer_heartbeats(&mut tasks, listeners.heartbeats, &shutdown)?;
        let absent = (listeners.absent, listeners.listening);
        absent::begin(&mut tasks, absent, &context, shared);
        let held = |epoch| held_of(epoch, &app);
        listeners.local.serve(context_of, &held, &mut tasks)?;
        let of_postgres = context_of(Intake::Postgres);
        postgres::serve(&mut tasks, listeners.postgres, (&app, &tls), of_postgres)?;
        let listener = tokio::net::TcpListener::from_std(listeners.http.0)?;
        let serve = move |stream, _peer, context| {
            http::serve_accepted(stream, context, app.clone(), tls.clone())
        };
        let most = net::CONNECTIONS_MAX;
        tasks.spawn(net::accept(listener, context_of(Intake::Http), most, serve));
        if let (Some((listener, _)), Some(parts)) = (listeners.gossip, cluster) {
            let context = context_of(Intake::Cluster);
            talk_to_nodes(&mut tasks, listener, parts, context)?;
        }
        let last = (ingest.clone(), context.hostname.clone());
        keep_up(&mut tasks, &last, &metrics, &shutdown);
        if ends_by_signal {
            let hangup = signal(SignalKind::hangup())?;
            tasks.spawn(pass_hangups_on(hangup, watcher, shutdown.clone()));
        }
        Ok(RuntimeState {
            tasks,
            last,
            signals: Signals::new(ends_by_signal)?,
            stopper,
            shutdown,
        })
    }

    /// Waits for the stop, then for everything that is open. A second signal ends the waiting.
    async fn serve(mut self) {
        let mut panic = None;
        tokio::select! {
            () = self.signals.next() => {}
            () = self.shutdown.stopping() => {}
            payload = first_panic(&mut self.tasks) => {
                warn("a task that listens panicked, and the server stops; please report it");
                panic = Some(payload);
            }
        }
        self.stopper.stop();
        let told = tokio::task::spawn_blocking(|| service_manager::tell("STOPPING=1"));
        let drained = async {
            while self.tasks.join_next().await.is_some() {}
            let _ = told.await;
        };
        tokio::select! {
            () = drained => {}
            () = self.signals.next() => {}
        }
        let (ingest, hostname) = &self.last;
        ingest.tell_last_losses(hostname).await;
        if let Some(payload) = panic {
            panic::resume_unwind(payload);
        }
    }
}

/// Waits for a task that panics, for ever if none does: the server would go on without a part of it.
async fn first_panic(tasks: &mut JoinSet<()>) -> Box<dyn Any + Send> {
    while let Some(ended) = tasks.join_next().await {
        if let Err(payload) = ended.map_err(JoinError::try_into_panic)
            && let Ok(payload) = payload
        {
            return payload;
        }
    }
    future::pending().await
}

/// Starts what the server does for itself.
fn keep_up(
    tasks: &mut JoinSet<()>,
    (ingest, hostname): &(Ingest, Arc<str>),
    metrics: &Arc<Metrics>,
    shutdown: &Shutdown,
) {
    tasks.spawn(measure_delay(metrics.clone(), shutdown.clone()));
    let (ingest, hostname) = (ingest.clone(), hostname.clone());
    tasks.spawn(ingest.tell_losses(hostname, shutdown.clone()));
}

/// Serves other nodes, and tells them of this one.
fn talk_to_nodes(
    tasks: &mut JoinSet<()>,
    listener: TcpListener,
    parts: ClusterParts,
    context: net::Context,
) -> io::Result<()> {
    let ClusterParts {
        member,
        service,
        transport,
        tls,
    } = parts;
    let listener = tokio::net::TcpListener::from_std(listener)?;
    tasks.spawn(member.run_gossip(transport, context.shutdown.clone()));
    let serve = move |stream, peer, context| {
        server::serve_connection(stream, peer, context, service.clone(), tls.clone())
    };
    tasks.spawn(net::accept(listener, context, net::CONNECTIONS_MAX, serve));
    Ok(())
}

pub(super) fn answer_heartbeats(
    tasks: &mut JoinSet<()>,
    socket: Option<UdpSocket>,
    shutdown: &Shutdown,
) -> io::Result<()> {
    if let Some(socket) = socket {
        let socket = tokio::net::UdpSocket::from_std(socket)?;
        tasks.spawn(net::answer_heartbeats(socket, shutdown.clone()));
    }
    Ok(())
}

/// The state that connections of all listeners share.
#[derive(Clone)]
pub(super) struct ConnectionContext {
    fluent: net::Fluent,
    app: Arc<App>,
    tls: Option<Arc<net::tls::Acceptor>>,
    syslog_tls: Option<Arc<net::tls::Acceptor>>,
    relp_peers: Arc<net::RelpPeers>,
}

impl ConnectionContext {
    fn of(
        fluent: net::Fluent,
        app: &Arc<App>,
        tls: &Option<Arc<net::tls::Acceptor>>,
        syslog_tls: Option<Arc<net::tls::Acceptor>>,
        relp_peers: Arc<net::RelpPeers>,
    ) -> ConnectionContext {
        // Chunks are recognised that segments hold.
        let store = app.store.clone();
        ConnectionContext {
            fluent: fluent.recognising(Arc::new(move |epoch| store.batches_of(epoch))),
            app: app.clone(),
            tls: tls.clone(),
            syslog_tls,
            relp_peers,
        }
    }
}

/// Serves a listener of records or of uploads.
pub(super) fn accept_stream(
    tasks: &mut JoinSet<()>,
    kind: &Listener,
    listener: tokio::net::TcpListener,
    context: net::Context,
    shared: ConnectionContext,
) {
    let ConnectionContext {
        fluent,
        app,
        tls,
        syslog_tls,
        relp_peers,
    } = shared;
    let acceptor = match kind.protection {
        // There is one if there is such a listener.
        Protection::ClientCertificates if syslog_tls.is_none() => return,
        Protection::ClientCertificates => syslog_tls,
        Protection::Open | Protection::Http | Protection::Nodes => None,
    };
    let most = net::CONNECTIONS_MAX;
    match kind.protocol {
        Protocol::Stream(protocol) => {
            let serve = move |stream, peer, context| {
                net::serve_stream(stream, peer, context, protocol, acceptor.clone())
            };
            tasks.spawn(net::accept(listener, context, most, serve));
        }
        Protocol::Relp => {
            let serve = move |stream, peer, context| {
                net::serve_relp(stream, peer, context, relp_peers.clone(), acceptor.clone())
            };
            tasks.spawn(net::accept(listener, context, most, serve));
        }
        Protocol::Bulk => {
            let (most, room) = (net::BULK_CONNECTIONS_MAX, net::Room::default());
            let serve = move |stream, _, context| net::serve_bulk(stream, context, room.clone());
            tasks.spawn(net::accept(listener, context, most, serve));
        }
        Protocol::Forward => {
            let serve = move |stream, peer, context| {
                net::serve_fluent(stream, peer, context, fluent.clone())
            };
            tasks.spawn(net::accept(listener, context, most, serve));
        }
        Protocol::Grpc => {
            let serve = move |stream, _, context| {
                http::serve_grpc(stream, context, app.clone(), tls.clone())
            };
            tasks.spawn(net::accept(listener, context, most, serve));
        }
        Protocol::Http => {
            let serve = move |stream, _, context| {
                http::serve_accepted(stream, context, app.clone(), tls.clone())
            };
            tasks.spawn(net::accept(listener, context, most, serve));
        }
        // The first have no connections, and the others are served by `talk_to_nodes` and `postgres`.
        Protocol::Datagrams(_) | Protocol::Nodes | Protocol::Postgres => {}
    }
}

/// SIGTERM and SIGINT, if they are this server's business.
struct Signals(Option<(Signal, Signal)>);

impl Signals {
    fn new(is_wanted: bool) -> io::Result<Signals> {
        if !is_wanted {
            return Ok(Signals(None));
        }
        let terminate = signal(SignalKind::terminate())?;
        Ok(Signals(Some((terminate, signal(SignalKind::interrupt())?))))
    }

    async fn next(&mut self) {
        let Some((terminate, interrupt)) = &mut self.0 else {
            return std::future::pending().await;
        };
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    }
}

/// Has files read again at SIGHUP.
async fn pass_hangups_on(mut hangup: Signal, watcher: Watcher, mut shutdown: Shutdown) {
    loop {
        tokio::select! {
            _ = hangup.recv() => watcher.look_now(),
            () = shutdown.stopping() => return,
        }
    }
}

/// Measures how late a timer is: whatever holds this thread shows here.
async fn measure_delay(metrics: Arc<Metrics>, mut shutdown: Shutdown) {
    loop {
        let due = Instant::now() + DELAY_CHECK_INTERVAL;
        tokio::select! {
            () = tokio::time::sleep_until(due.into()) => {}
            () = shutdown.stopping() => return,
        }
        metrics.runtime_delay_ns.observe_duration(due.elapsed());
    }
}

pub(super) fn expose_drops(metrics: &Metrics, intake: Intake, address: SocketAddr) {
    let name = format!("logpond_{}_kernel_drops_total", intake.as_str());
    metrics.register(Box::new(move |out| {
        if let Some(drops) = kernel_drops(address) {
            let help = "Datagrams the kernel dropped before they were read.";
            out.family(&name, "counter", help);
            out.sample(&name, &[], drops);
        }
    }));
}
