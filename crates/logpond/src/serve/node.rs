//! This server as a node of a cluster: composition only.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use logpond_segment::disk::Disk;
use logpond_segment::journal::Visible;

use super::access::Access;
use super::runtime::ClusterParts;
use super::{Addresses, ServeError};
use logpond_engine::ingest::Ingest;
use logpond_engine::query::{BudgetedEngine, Cluster, Engine, LocalEngine, Maintenance};
use logpond_engine::store::LiveSet;
use logpond_host::clock;
use logpond_host::shutdown::Shutdown;
use logpond_host::telemetry::Metrics;
use logpond_http::Administration;
use logpond_listen::net::tls::ClusterTls;
use logpond_node::cluster::{self, Identity, Member, NodeFiles, RegistryFile};
use logpond_node::handoff::{Handoff, Tools};
use logpond_node::operate::{Operator, canary};
use logpond_node::server::{AlertStates, Service};
use logpond_settings::Settings;

/// The engine of this node, alone or in a cluster, and its threads.
pub(super) struct NodeServices {
    /// What answers queries.
    pub(super) engine: Arc<dyn Engine>,
    /// The care of the files.
    pub(super) maintenance: Arc<dyn Maintenance>,
    /// What the runtime runs for other nodes.
    pub(super) parts: Option<ClusterParts>,
    /// What operators ask, of a cluster.
    pub(super) operator: Option<Arc<dyn Administration>>,
    /// What runs beside it.
    pub(super) threads: Vec<JoinHandle<()>>,
}

/// This node with what it holds, if it is to be one of a cluster.
pub(super) fn member(
    settings: &Settings,
    disk: &Arc<dyn Disk>,
    (live, visible, has_bucket): (LiveSet, Arc<Visible>, bool),
    addresses: &Addresses,
    access: &Access,
) -> Result<Option<Arc<Member>>, ServeError> {
    let Some(gossip) = addresses.gossip else {
        return Ok(None);
    };
    let identity = Identity::open(&**disk).map_err(ServeError::Identity)?;
    let registry = RegistryFile::open(disk.clone()).map_err(ServeError::Registry)?;
    let parts = cluster::Parts {
        identity,
        roles: settings.roles,
        registry,
        held: NodeFiles::new(identity, live, visible, has_bucket),
        advertise: settings.advertise.unwrap_or(gossip),
        zone: settings.zone.clone(),
        http: addresses.http,
        join: settings.join.clone(),
        copies: settings.replication,
        started: clock::now(),
        disk: disk.clone(),
        keep_free: settings.keep_free,
        retain_age: settings.retain_age,
        tls: access.cluster(),
        saved: access.saved(),
    };
    let member = Member::new(parts).map_err(ServeError::Data)?;
    Ok(Some(Arc::new(member)))
}

/// Starts the threads of a member, and prepares what the runtime is to run for it. A node alone
/// answers by itself.
pub(super) fn start(
    node: Option<(Arc<Member>, Arc<Handoff>)>,
    tools: Tools,
    canary: Option<(Ingest, Duration)>,
    pond: Arc<LocalEngine>,
    (tls, alerts): (Option<Arc<ClusterTls>>, Option<AlertStates>),
    metrics: &Arc<Metrics>,
    shutdown: &Shutdown,
) -> Result<NodeServices, ServeError> {
    let Some((member, handoff)) = node else {
        return Ok(NodeServices {
            engine: Arc::new(BudgetedEngine::new(pond.clone(), pond.budget())),
            maintenance: pond,
            parts: None,
            operator: None,
            threads: Vec::new(),
        });
    };
    let (transport, mail, letters) = cluster::mail();
    let mut threads = member
        .start(letters, shutdown)
        .map_err(ServeError::Thread)?;
    threads.extend(handoff.start(tools, shutdown).map_err(ServeError::Thread)?);
    let cluster = Cluster::new(pond.clone(), member.clone(), metrics, shutdown.clone());
    let cluster = Arc::new(cluster);
    let engine: Arc<dyn Engine> = Arc::new(BudgetedEngine::new(cluster.clone(), pond.budget()));
    if let Some((ingest, every)) = canary {
        let parts = canary::Parts {
            ingest,
            member: member.clone(),
            metrics: metrics.clone(),
            every,
        };
        threads.push(canary::start(parts, shutdown).map_err(ServeError::Thread)?);
    }
    let operator = Operator::new(member.clone(), handoff.clone());
    let service = Service::new(
        (member.clone(), handoff),
        (pond, engine.clone()),
        mail,
        alerts,
        metrics.clone(),
        shutdown.clone(),
    );
    Ok(NodeServices {
        engine,
        maintenance: cluster,
        operator: Some(Arc::new(operator)),
        parts: Some(ClusterParts {
            member,
            service: Arc::new(service),
            transport,
            tls,
        }),
        threads,
    })
}
