//! Who is there, as far as gossip says.
//!
//! Nothing that must be right depends on it: it says whom to ask, and for how long to wait.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use chitchat::transport::Transport;
use chitchat::{ChitchatConfig, ChitchatId, FailureDetectorConfig, NodeState};
use logpond_cluster::registry::ZONE_BYTES_MAX;
use logpond_cluster::twins::{Life, Twins};
use logpond_cluster::{NodeId, Roles};
use logpond_record::cast;

use super::Identity;
use logpond_host::shutdown::Shutdown;
use logpond_host::telemetry::warn;

/// How often a node tells some others what it knows.
const ROUND: Duration = Duration::from_millis(500);

/// How long a node that was never heard of twice may be silent, to begin with.
const SILENCE_EXPECTED: Duration = Duration::from_secs(1);

/// How sure it must be that a silent node is gone (phi, after Hayashibara et al., "The phi accrual
/// failure detector"): one in 10^8.
const PHI_MAX: f64 = 8.0;

/// How long the state of a node that is gone is kept and passed on.
const GONE_KEPT: Duration = Duration::from_secs(3600);

/// Clusters that speak to each other by mistake do not mix.
const CLUSTER: &str = "logpond";

/// Keys of what a node says of itself.
const KEY_REGISTRY: &str = "registry";
const KEY_SAVED: &str = "saved";
const KEY_HTTP: &str = "http";
const KEY_VERSION: &str = "version";
const KEY_ROLES: &str = "roles";
const KEY_ZONE: &str = "zone";
const KEY_LEAVING: &str = "leaving";
const KEY_FREE: &str = "free";
const KEY_FULL: &str = "full";
const KEY_ALERT_RULES: &str = "alert_rules";

/// Room is said in units of 64 MiB, so that it is no news all the time.
const SPACE_SHIFT: u32 = 26;

/// The facts of a node that gossip spreads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GossipEntry {
    /// Where it is reached by nodes.
    pub address: SocketAddr,
    /// When its process started, in milliseconds by its own clock.
    pub generation: u64,
    /// The last heartbeat of its process that was heard of.
    pub heartbeat: u64,
    /// Digest of its registry.
    pub registry: u64,
    /// Digest of its saved queries; 0 if it says nothing of any.
    pub saved: u64,
    /// Where it is reached by people.
    pub http: String,
    /// The release that it runs.
    pub version: String,
    /// What it does.
    pub roles: Roles,
    /// The zone that it stores in; empty if in none.
    pub zone: String,
    /// Whether it is leaving the cluster.
    pub is_leaving: bool,
    /// Room on its disk.
    pub free_bytes: u64,
    /// Whether it has no room for copies.
    pub is_full: bool,
    /// Digest of its alert rules; 0 is none.
    pub alert_rules: u64,
    /// Whether it is thought to be alive.
    pub is_live: bool,
}

/// What gossip says.
#[derive(Clone, Default)]
pub struct Gossip {
    seen: Arc<Mutex<BTreeMap<NodeId, GossipEntry>>>,
    own: Arc<Mutex<OwnEntry>>,
    /// The addresses of each node that runs at several at once.
    twins: Arc<Mutex<Vec<String>>>,
}

/// The facts of this node that it spreads.
#[derive(Clone, Copy, Default)]
struct OwnEntry {
    registry: u64,
    saved: u64,
    is_leaving: bool,
    free_bytes: u64,
    is_full: bool,
    alert_rules: u64,
}

impl Gossip {
    /// All nodes, this one too.
    pub fn seen(&self) -> BTreeMap<NodeId, GossipEntry> {
        self.seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// What is said of one.
    pub fn of(&self, node: NodeId) -> Option<GossipEntry> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.get(&node).cloned()
    }

    /// Whether a node is thought to be alive.
    pub fn is_live(&self, node: NodeId) -> bool {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.get(&node).is_some_and(|seen| seen.is_live)
    }

    /// The nodes that are leaving the cluster.
    pub fn leaving(&self) -> Vec<NodeId> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let leaving = seen.iter().filter(|(_, seen)| seen.is_leaving);
        leaving.map(|(node, _)| *node).collect()
    }

    /// The addresses of each node that runs at several at once.
    pub fn twins(&self) -> Vec<String> {
        let twins = self.twins.lock().unwrap_or_else(PoisonError::into_inner);
        twins.clone()
    }

    fn note_twins(&self, running: &BTreeMap<NodeId, Vec<SocketAddr>>) {
        let listed = |addresses: &Vec<SocketAddr>| {
            let texts: Vec<String> = addresses.iter().map(SocketAddr::to_string).collect();
            texts.join(" and ")
        };
        let now: Vec<String> = running.values().map(listed).collect();
        let mut twins = self.twins.lock().unwrap_or_else(PoisonError::into_inner);
        for addresses in now.iter().filter(|addresses| !twins.contains(addresses)) {
            warn(&format!(
                "the nodes at {addresses} run on copies of one data directory, so answers lack what one of them has: stop \
                 them, remove cluster/node from one of the copies, and start them again"
            ));
        }
        *twins = now;
    }

    /// Says from now on that this node's registry has this digest.
    pub fn say_registry(&self, digest: u64) {
        self.own().registry = digest;
    }

    /// Says from now on that this node's saved queries have this digest.
    pub fn say_saved(&self, digest: u64) {
        self.own().saved = digest;
    }

    /// Says from now on whether this node is leaving the cluster.
    pub fn say_leaving(&self, is_leaving: bool) {
        self.own().is_leaving = is_leaving;
    }

    /// Says from now on that this node's disk has so much room, and whether that is too little for
    /// copies.
    pub fn say_space(&self, free_bytes: u64, is_full: bool) {
        let mut own = self.own();
        (own.free_bytes, own.is_full) = (free_bytes, is_full);
    }

    /// Says from now on that this node's alert rules have this digest.
    pub fn say_alert_rules(&self, digest: u64) {
        self.own().alert_rules = digest;
    }

    fn own(&self) -> MutexGuard<'_, OwnEntry> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gossips until the stop.
    pub(super) async fn run(self, config: Config, transport: impl Transport, mut stop: Shutdown) {
        let own = ChitchatId::new(
            config.identity.node.to_string(),
            config.generation,
            config.advertise,
        );
        let chitchat_config = ChitchatConfig {
            chitchat_id: own.clone(),
            cluster_id: CLUSTER.to_owned(),
            gossip_interval: ROUND,
            listen_addr: config.advertise,
            seed_nodes: config.join.clone(),
            failure_detector_config: FailureDetectorConfig {
                phi_threshold: PHI_MAX,
                initial_interval: SILENCE_EXPECTED,
                dead_node_grace_period: GONE_KEPT,
                ..FailureDetectorConfig::default()
            },
            marked_for_deletion_grace_period: GONE_KEPT,
            catchup_callback: None,
            extra_liveness_predicate: None,
        };
        let said = vec![
            (KEY_HTTP.to_owned(), config.http.clone()),
            (KEY_VERSION.to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
            (KEY_ROLES.to_owned(), config.roles.to_string()),
            (KEY_ZONE.to_owned(), config.zone.clone()),
        ];
        let handle = match chitchat::spawn_chitchat(chitchat_config, said, &transport).await {
            Ok(handle) => handle,
            Err(error) => {
                let text = format!("gossip cannot start, this node finds no others: {error}");
                return warn(&text);
            }
        };
        let mut round = tokio::time::interval(ROUND / 2);
        let (began, mut twins) = (Instant::now(), Twins::default());
        loop {
            tokio::select! {
                _ = round.tick() => {}
                () = stop.stopping() => break,
            }
            let said = *self.own();
            let seen = handle
                .with_chitchat(|chitchat| {
                    let state = chitchat.self_node_state();
                    state.set(KEY_REGISTRY, said.registry);
                    state.set(KEY_SAVED, said.saved);
                    state.set(KEY_LEAVING, u8::from(said.is_leaving));
                    state.set(KEY_FREE, said.free_bytes >> SPACE_SHIFT);
                    state.set(KEY_FULL, u8::from(said.is_full));
                    state.set(KEY_ALERT_RULES, said.alert_rules);
                    let live: Vec<ChitchatId> = chitchat.live_nodes().cloned().collect();
                    let states = chitchat.node_states().iter();
                    states
                        .filter_map(|(id, state)| {
                            let is_live = *id == own || live.contains(id);
                            Some((id.node_id.parse().ok()?, read(id, state, is_live)))
                        })
                        .collect::<Vec<_>>()
                })
                .await;
            let now_ms = cast::low_u64(began.elapsed().as_millis());
            let lives: Vec<_> = seen.iter().map(life).collect();
            twins.note(now_ms, &lives);
            self.note_twins(&twins.running(now_ms));
            self.replace(seen);
        }
        let _ = handle.shutdown().await;
    }

    /// Of several lives of a node the latest counts.
    fn replace(&self, all: Vec<(NodeId, GossipEntry)>) {
        let mut latest: BTreeMap<NodeId, GossipEntry> = BTreeMap::new();
        for (node, seen) in all {
            match latest.get(&node) {
                Some(known) if known.generation > seen.generation => {}
                _ => drop(latest.insert(node, seen)),
            }
        }
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = latest;
    }
}

/// What gossip needs to know to begin.
pub(super) struct Config {
    pub(super) identity: Identity,
    /// When this process started, in milliseconds.
    pub(super) generation: u64,
    /// Where others reach this node.
    pub(super) advertise: SocketAddr,
    /// Nodes to ask first.
    pub(super) join: Vec<String>,
    /// Where people reach this node.
    pub(super) http: String,
    /// What it does.
    pub(super) roles: Roles,
    /// The zone that it stores in; empty if in none.
    pub(super) zone: String,
}

fn life((node, entry): &(NodeId, GossipEntry)) -> Life<SocketAddr> {
    Life {
        node: *node,
        generation: entry.generation,
        address: entry.address,
        heartbeat: entry.heartbeat,
    }
}

fn read(id: &ChitchatId, state: &NodeState, is_live: bool) -> GossipEntry {
    let text = |key| state.get(key).unwrap_or_default().to_owned();
    let number = |key| state.get(key).and_then(|d| d.parse().ok()).unwrap_or(0u64);
    GossipEntry {
        address: id.gossip_advertise_addr,
        generation: id.generation_id,
        heartbeat: state.heartbeat().into(),
        registry: number(KEY_REGISTRY),
        saved: number(KEY_SAVED),
        http: text(KEY_HTTP),
        version: text(KEY_VERSION),
        // Of a node that does not say so it is believed that it does nothing.
        roles: text(KEY_ROLES).parse().unwrap_or(Roles::QUERY),
        zone: Some(text(KEY_ZONE))
            .filter(|zone| zone.len() <= ZONE_BYTES_MAX)
            .unwrap_or_default(),
        is_leaving: number(KEY_LEAVING) != 0,
        free_bytes: number(KEY_FREE).saturating_mul(1 << SPACE_SHIFT),
        is_full: number(KEY_FULL) != 0,
        alert_rules: number(KEY_ALERT_RULES),
        is_live,
    }
}
