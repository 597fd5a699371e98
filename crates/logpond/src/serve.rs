//! All roles in one process: composition only.
//!
//! Invariants:
//! - Nothing listens before the journal is recovered; the ready file is written only once
//!   everything listens.
//! - The async runtime has one thread, `lp-runtime`; everything that touches files happens before
//!   it starts, after it ended, or on other threads.
//! - The end runs in order, see [`logpond_host::shutdown`]; it takes at most the drain's time and one
//!   sync.

mod absent;
mod access;
mod alerts;
mod announce;
mod error;
mod kafka;
mod node;
mod postgres;
mod runtime;
/// The part of the memory that statements may sort, group and join in before they spill.
#[cfg(feature = "sql")]
const SQL_SHARE: u64 = 4;

/// Answers SQL.
#[cfg(feature = "sql")]
fn sql(settings: &Settings) -> logpond_sql::Sql {
    let budget = settings.memory.of(memory::bytes());
    let share = usize::try_from(budget / SQL_SHARE).unwrap_or(usize::MAX);
    let bytes = logpond_sql::MEMORY_BYTES_MAX.min(share);
    let sql = logpond_sql::Sql::with_memory(spill_directory(&settings.data), bytes);
    match memory::address_room() {
        Some(room) => sql.within_addresses(room),
        None => sql,
    }
}

#[cfg(test)]
mod tests;

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use logpond_record::Id;
use logpond_segment::build;
use logpond_segment::disk::Disk;
use logpond_segment::journal::{self, RecoveryReport};

pub use announce::Addresses;
pub use error::ServeError;

use access::Access;
use logpond_engine::backup;
use logpond_engine::ingest::{
    self, DiskJournal, Gate, Ingest, Journal, News, OneCopy, Replication, Writer,
};
use logpond_engine::query::LocalEngine;
#[cfg(feature = "sql")]
use logpond_engine::query::spill_directory;
use logpond_engine::resends::Resends;
use logpond_engine::store::{
    self, Board, Elsewhere, LiveSegment, LiveSet, LoadedInventory, Policy, Store, StoreThread,
};
use logpond_host::clock;
use logpond_host::disk::{DataLock, RealDisk};
use logpond_host::hostname;
use logpond_host::memory::incoming::QUEUE;
use logpond_host::memory::{self, Budget};
use logpond_host::open_files;
use logpond_host::panics::StopAtPanic;
use logpond_host::service_manager;
use logpond_host::shutdown::{self, Shutdown, Stopper};
use logpond_host::telemetry::{self, Metrics, warn};
use logpond_http as http;
use logpond_http::{App, Hosts};
use logpond_listen::net::tls::ClusterTls;
use logpond_listen::net::{self, RelpPeers};
use logpond_node::cluster::Member;
use logpond_node::handoff::{self, Handoff};
use logpond_settings::{Protocol, Settings};
use runtime::{Listeners, Parts};

/// A server that runs.
pub struct Server {
    addresses: Addresses,
    listening: Arc<net::ListenerStatus>,
    recovered: RecoveryReport,
    is_new: bool,
    stopper: Arc<Stopper>,
    metrics: Arc<Metrics>,
    runtime: JoinHandle<()>,
    store: StoreThread,
    writer: Writer,
    access: Access,
    /// The threads that talk to other nodes.
    members: Vec<JoinHandle<()>>,
    /// Held until everything has ended.
    _lock: DataLock,
}

/// Runs a server until SIGTERM or SIGINT, and drains it.
///
/// # Errors
/// See [`ServeError`].
pub fn run(settings: &Settings) -> Result<(), ServeError> {
    let started = Instant::now();
    begin();
    memory::check_address_space().map_err(ServeError::AddressSpace)?;
    let server = Server::start_with(settings, true)?;
    if let Some(path) = &settings.ready_file {
        server.addresses.write_ready_file(path)?;
    }
    service_manager::tell("READY=1");
    announce::print(settings, &server, started.elapsed());
    server.join()
}

/// Prepares the process for a server: its log, its limit of open files, its allocator.
pub fn begin() {
    telemetry::begin_log();
    open_files::raise_limit();
    memory::begin();
}

impl Server {
    /// Starts everything; returns once it listens. Only [`Server::stop`] ends it, no signal.
    ///
    /// # Errors
    /// See [`ServeError`].
    pub fn start(settings: &Settings) -> Result<Server, ServeError> {
        Server::start_with(settings, false)
    }

    fn start_with(settings: &Settings, ends_by_signal: bool) -> Result<Server, ServeError> {
        let is_new = !settings.data.exists();
        let (disk, lock) = take_data(&settings.data).map_err(ServeError::Data)?;
        let metrics = Arc::new(Metrics::default());
        let access = Access::start(settings, &disk, &metrics)?;
        let listeners = Listeners::bind(settings, ends_by_signal)?;
        let (addresses, listening) = (listeners.addresses(), listeners.listening());
        let recovered = recover(&*disk, &metrics)?;
        let (resends, relp_peers) = remembered(settings, &disk, &recovered);
        let (stopper, shutdown) = stopping();
        let found = (&addresses, &recovered, &resends);
        let roles = Roles::start(settings, disk, found, &access, &metrics, &stopper)?;
        let (budget, tools) = (roles.pond.budget(), roles.tools(settings, &stopper));
        let canary = roles.canary(settings);
        let needs = roles.needs_of_alerts(settings, addresses.http);
        let audit = access.write_audit(&roles.ingest)?;
        let kafka = kafka::start(settings, &roles, &metrics, (&stopper, &shutdown))?;
        let known = (access.cluster(), access.alerts().map(alerts::states));
        let (pond, member) = (roles.pond, roles.node);
        let mut node = node::start(member, tools, canary, pond, known, &metrics, &shutdown)?;
        needs.start(access.alerts(), &mut node, &shutdown)?;
        let app = App::new(http::Parts {
            ingest: roles.ingest.clone(),
            engine: (node.engine, node.maintenance),
            store: roles.store,
            metrics: metrics.clone(),
            shutdown: shutdown.clone(),
            line_bytes_max: settings.line_bytes_max,
            hosts: Hosts::new(hostname::own_names(), &settings.http_host, "--http-host"),
            listening: listening.clone(),
            resends,
            memory: budget.clone(),
            operator: node.operator,
            is_encrypted: settings.tls.is_some(),
            #[cfg(feature = "sql")]
            sql: Some(sql(settings)),
            access: access.of_requests(),
            tenant_header: settings.tenant_header.clone(),
        });
        let parts = Parts {
            listeners,
            app: Arc::new(app),
            cluster: node.parts,
            ingest: roles.ingest,
            metrics: metrics.clone(),
            stopper: stopper.clone(),
            shutdown,
            line_bytes_max: settings.line_bytes_max,
            zones: Arc::new(roles.zones),
            ends_by_signal,
            watcher: access.watcher(),
            security: access.security(),
            tls: access.tls(),
            syslog_tls: access.syslog(),
            relp_peers,
            budget_bytes: budget.bytes() as u64,
        };
        Ok(Server {
            addresses,
            listening,
            recovered,
            is_new,
            stopper,
            metrics,
            runtime: start_runtime(parts)?,
            access,
            store: roles.store_thread,
            writer: roles.writer,
            members: node.threads.into_iter().chain(kafka).chain(audit).collect(),
            _lock: lock,
        })
    }

    /// Where it listens.
    pub fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    /// What this node needs to talk with the others, if the settings name its certificate.
    pub fn cluster_tls(&self) -> Option<Arc<ClusterTls>> {
        self.access.cluster()
    }

    /// What was found when the journal was opened.
    pub fn recovered(&self) -> &RecoveryReport {
        &self.recovered
    }

    /// The server's counters.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// Asks for the stop; [`Server::join`] waits for it.
    pub fn stop(&self) {
        self.stopper.stop();
    }

    /// Waits for the end: everything drained, the journal closed and synced.
    ///
    /// # Errors
    /// When the journal could not be closed in order.
    pub fn join(self) -> Result<(), ServeError> {
        let drained = self.runtime.join();
        self.access.stop();
        let members = join_each(self.members);
        let keeper = self.store.stop();
        // The writer ends once the runtime has dropped the last handle to it.
        self.writer.join().map_err(ServeError::End)?;
        if let Some(mut keeper) = keeper {
            keeper.write_now();
        }
        drained.map_err(|_| ServeError::Panic).and(members)
    }
}

/// Waits for each of some threads, also for those behind one that panicked.
fn join_each(threads: Vec<JoinHandle<()>>) -> Result<(), ServeError> {
    let ends = threads.into_iter().map(JoinHandle::join);
    let panicked = ends.filter(Result::is_err).count();
    match panicked {
        0 => Ok(()),
        _ => Err(ServeError::Panic),
    }
}

/// The roles of one process, joined in memory.
struct Roles {
    /// Of a cluster: this node among others.
    node: Option<(Arc<Member>, Arc<Handoff>)>,
    ingest: Ingest,
    /// The zones of peers.
    zones: net::Zones,
    writer: Writer,
    store: Store,
    store_thread: StoreThread,
    pond: Arc<LocalEngine>,
    disk: Arc<dyn Disk>,
}

impl Roles {
    /// Starts them over what is on the disk; the journal is recovered.
    fn start(
        settings: &Settings,
        disk: Arc<dyn Disk>,
        (addresses, recovered, resends): (&Addresses, &RecoveryReport, &Arc<Resends>),
        access: &Access,
        metrics: &Arc<Metrics>,
        stopper: &Arc<Stopper>,
    ) -> Result<Roles, ServeError> {
        let mut journal = DiskJournal::new(disk.clone(), journal::Settings::default());
        let visible = journal.visible();
        visible.add_closed(recovered.closed.clone());
        let opened = open_segments(&*disk, recovered, settings.gossip.is_some())?;
        let live = opened.live;
        note_unusable(recovered, &live);
        let bucket = settings.bucket.clone();
        let bucket = bucket.map(|bucket| (bucket, Board::default()));
        let board = bucket.as_ref().map(|(_, board)| board.clone());
        let held = (live.clone(), visible.clone(), board.is_some());
        let member = node::member(settings, &disk, held, addresses, access)?;
        let memory_bytes = settings.memory.of(memory::bytes());
        if let Some(member) = &member {
            journal.announce_to(member.clone());
        }
        let news = News::default();
        let handoff = member.clone().map(|member| {
            Handoff::new(handoff::Parts {
                member,
                disk: disk.clone(),
                visible: visible.clone(),
                live: live.clone(),
                changes: news.closed.clone(),
                board,
                clock: clock::now,
                metrics: metrics.clone(),
                resends: resends.clone(),
                memory_bytes,
            })
        });
        let queue_bytes = QUEUE.bytes(memory_bytes);
        let known = (&news, metrics, queue_bytes);
        let (zones, parts) = ingest_parts(settings, access, known, handoff.clone())?;
        let started = ingest::start(journal, parts, StopAtPanic(stopper.clone()));
        let (ingest, writer) = started.map_err(ServeError::Thread)?;
        let parts = store::Parts {
            disk: disk.clone(),
            visible: visible.clone(),
            changes: news.closed.clone(),
            live: live.clone(),
            trash: opened.trash,
            listed: opened.listed,
            resends: resends.clone(),
            salvaged: opened.salvaged,
            closer: ingest.closer(),
            clock: clock::now,
            metrics: metrics.clone(),
            cluster: handoff.clone().map(|handoff| handoff as Arc<dyn Elsewhere>),
            bucket,
            scrub_every: settings.scrub_every,
            memory_bytes,
        };
        let (store, store_thread) =
            store::start(parts, Policy::new(settings)).map_err(ServeError::from)?;
        let budget = Budget::new(memory_bytes);
        budget.expose(metrics);
        let shown = (visible, live);
        let pond = LocalEngine::new(disk.clone(), shown, news.grown, store.clone(), budget);
        Ok(Roles {
            disk,
            node: member.zip(handoff),
            ingest,
            zones,
            writer,
            store,
            store_thread,
            pond: Arc::new(pond),
        })
    }
}

impl Roles {
    /// What evaluations of alert rules need.
    fn needs_of_alerts(&self, settings: &Settings, http: SocketAddr) -> alerts::EvaluationContext {
        alerts::EvaluationContext {
            ingest: self.ingest.clone(),
            disk: self.disk.clone(),
            member: self.node.as_ref().map(|(member, _)| member.clone()),
            external_url: alerts::external_url(settings, http),
        }
    }

    /// What measures how soon records are found, if it is asked for.
    fn canary(&self, settings: &Settings) -> Option<(Ingest, Duration)> {
        let every = settings.canary.filter(|_| settings.roles.ingests)?;
        Some((self.ingest.clone(), every))
    }

    /// What a node moves of itself to hand on what it has, and to leave.
    fn tools(&self, settings: &Settings, stopper: &Arc<Stopper>) -> handoff::Tools {
        handoff::Tools {
            store: self.store.clone(),
            closer: self.ingest.closer(),
            gate: self.ingest.gate().clone(),
            stopper: stopper.clone(),
            repair_after: settings.repair_after,
            retain_age: settings.retain_age,
        }
    }
}

/// What stops the server, for whoever may, and what learns of it.
fn stopping() -> (Arc<Stopper>, Shutdown) {
    let (stopper, shutdown) = shutdown::pair();
    (Arc::new(stopper), shutdown)
}

/// The gate of all intakes: open, unless this node takes nothing in.
fn gate_of(settings: &Settings) -> Gate {
    if settings.roles.ingests {
        Gate::default()
    } else {
        Gate::of_no_ingester()
    }
}

/// The zones of peers, and the parts of the ingestion, of which they are one.
fn ingest_parts(
    settings: &Settings,
    access: &Access,
    (news, metrics, queue_bytes): (&News, &Arc<Metrics>, usize),
    handoff: Option<Arc<Handoff>>,
) -> Result<(net::Zones, ingest::Parts), ServeError> {
    let zones = net::Zones::new(&settings.timezones, clock::now());
    let zones = zones.map_err(ServeError::Timezone)?;
    let declared = settings.access_logs.iter().chain(&settings.field_names);
    let declared = declared.cloned().chain(zones.label()).collect();
    let replication: Arc<dyn Replication> = match handoff {
        Some(handoff) => handoff,
        None => Arc::new(OneCopy),
    };
    let parts = ingest::Parts {
        news: news.clone(),
        metrics: metrics.clone(),
        clock: clock::now,
        replication,
        gate: gate_of(settings),
        declared,
        rules: access.rules(),
        queue_bytes,
    };
    Ok((zones, parts))
}

/// The segments of earlier lives.
struct StartupSegments {
    live: LiveSet,
    /// Retired segments with their lengths.
    trash: Vec<(Id, u64)>,
    /// Live ones that were read from damaged files.
    salvaged: Vec<Id>,
    /// The files that should be there and are not.
    listed: LoadedInventory,
}

/// Opens the segments of earlier lives; what is damaged is put aside and named, as is what is gone; what
/// others cover is retired. The journal is recovered.
fn open_segments(
    disk: &dyn Disk,
    recovered: &RecoveryReport,
    is_cluster: bool,
) -> Result<StartupSegments, ServeError> {
    disk.create_directory(build::DIRECTORY)
        .map_err(ServeError::Data)?;
    let mut listed = LoadedInventory::read(disk).map_err(ServeError::Data)?;
    let found = build::open_known(disk, listed.segments()).map_err(ServeError::Data)?;
    let live = LiveSet::default();
    for (path, why) in found.quarantined {
        warn(&format!("{path} was put aside: {why}"));
        live.put_aside().add(&[&path], &why);
    }
    for path in found.superseded {
        warn(&format!(
            "{path} was put aside: another file has all that was in it"
        ));
    }
    for (id, damage) in &found.salvaged {
        warn(&format!(
            "segments/{id}.parquet is damaged ({damage}); its rows are proven and can be read, and are \
             written to a new file"
        ));
    }
    let settled = build::settle(disk, found.live);
    if let Some(error) = settled.error {
        warn(&format!("segments cannot be retired: {error}"));
    }
    let salvaged: Vec<Id> = found.salvaged.into_iter().map(|(id, _)| id).collect();
    for segment in settled.live {
        let segment = Arc::new(LiveSegment::new(segment));
        let id = segment.file().manifest().id;
        if salvaged.contains(&id) || settled.damaged.contains(&id) {
            segment.note_damage();
        }
        live.replace(&[], Some(segment));
    }
    let mut trash = found.trash;
    trash.extend(settled.covered);
    listed
        .miss(disk, (&live, recovered), is_cluster)
        .map_err(ServeError::Data)?;
    Ok(StartupSegments {
        live,
        trash,
        salvaged,
        listed,
    })
}

/// Names in every answer the journal files that cannot be used. What is not named like one never
/// was one.
fn note_unusable(recovered: &RecoveryReport, live: &LiveSet) {
    for file in &recovered.unusable {
        let name = file.path.rsplit('/').next().unwrap_or_default();
        if journal::parse_name(name).is_some() {
            live.put_aside().add(&[&file.path], &file.reason);
        }
    }
}

/// Starts `lp-runtime`; returns once it has taken over the listeners.
fn start_runtime(parts: Parts) -> Result<JoinHandle<()>, ServeError> {
    let (is_up, up) = mpsc::channel();
    let thread = thread::Builder::new()
        .name("lp-runtime".to_owned())
        .spawn(move || runtime::run(parts, &is_up))
        .map_err(ServeError::Thread)?;
    match up.recv() {
        Ok(result) => result.map(|()| thread).map_err(ServeError::Runtime),
        Err(_) => Err(ServeError::Panic),
    }
}

/// The memory of what left the journal, and what clients of RELP may send again after this start.
fn remembered(
    settings: &Settings,
    disk: &Arc<dyn Disk>,
    recovered: &RecoveryReport,
) -> (Arc<Resends>, Arc<RelpPeers>) {
    let mut on = settings.listeners.on();
    let has_relp = on.any(|(listener, _)| listener.protocol == Protocol::Relp);
    let resends = Resends::open(disk.clone(), has_relp);
    let peers = RelpPeers::default();
    if has_relp && let Err(error) = peers.read(&resends, &**disk, &recovered.closed) {
        warn(&format!(
            "the journal could not be read to its end ({error}): what clients of RELP send again may be \
             stored twice"
        ));
    }
    (Arc::new(resends), Arc::new(peers))
}

/// The data directory, which nobody else changes from now on, and which is whole.
fn take_data(data: &Path) -> io::Result<(Arc<dyn Disk>, DataLock)> {
    let disk = RealDisk::create(data)?;
    let lock = disk.lock()?;
    backup::refuse_unfinished(&disk)?;
    Ok((Arc::new(disk), lock))
}

/// Recovers the journal, and shows what was found.
fn recover(disk: &dyn Disk, metrics: &Metrics) -> Result<RecoveryReport, ServeError> {
    let recovered = journal::recover(disk).map_err(ServeError::Recover)?;
    expose_recovery(metrics, &recovered);
    Ok(recovered)
}

/// What recovery found, as metrics: it does not change any more.
fn expose_recovery(metrics: &Metrics, recovered: &RecoveryReport) {
    let table = [
        (
            "logpond_recovered_files",
            "Journal files found at start.",
            recovered.closed.len() as u64,
        ),
        (
            "logpond_recovered_damages",
            "Damaged ranges found at start.",
            recovered.damages_count,
        ),
        (
            "logpond_recovered_cuts",
            "Unsynced ranges of journal files cut at start.",
            recovered.cuts.len() as u64,
        ),
        (
            "logpond_recovered_unusable",
            "Unusable files found at start.",
            recovered.unusable.len() as u64,
        ),
    ];
    metrics.register(Box::new(move |out| {
        out.gauges(table);
    }));
}
