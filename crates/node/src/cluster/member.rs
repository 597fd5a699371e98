//! This node as a member of its cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use logpond_cluster::births::{lost_lives, silent_max};
use logpond_cluster::give_up::{Copies, Peer};
use logpond_cluster::placement;
use logpond_cluster::registry::RegistryEntry;
use logpond_cluster::seeds::{Seed, Seeds};
use logpond_cluster::{Fate, IndexedInventory, Inventory, NodeId, Registry, Roles};
use logpond_record::{Incarnation, Timestamp};
use logpond_search::size::Size;
use logpond_segment::batches::BatchSet;
use logpond_segment::disk::{Disk, Space};

use super::client::{
    ANSWER_TIMEOUT, CallTarget, Client, GONE_TIMEOUT, InventoryPart, InventoryUpdate, PeerError,
};
use super::clocks::Clocks;
use super::gossip::{self, Gossip};
use super::join::Join;
use super::leave::{not_forgotten, was_leaving};
use super::messages::{PATH_FOLLOW, PATH_QUESTION};
use super::past::Past;
use super::registry_file::RegistryFile;
use super::saved_queries::Told;
use super::transport::{HttpTransport, Letter};
use super::{Identity, NodeFiles};
use logpond_engine::query::{Nodes, Unreachable};
use logpond_engine::saved::SavedQueries;
use logpond_host::panics::caught;
use logpond_host::shutdown::Shutdown;
use logpond_host::telemetry::warn;
use logpond_listen::net::tls::ClusterTls;
use logpond_render::quantity;

/// How often a member looks whether others have news.
const ROUND: Duration = Duration::from_millis(500);

/// Threads that send membership messages: one that waits for a dead node does not hold up all.
const GOSSIP_THREADS: usize = 2;

/// What a member is made of.
pub struct Parts {
    /// Who it is.
    pub identity: Identity,
    /// What it does.
    pub roles: Roles,
    /// What it has heard.
    pub registry: RegistryFile,
    /// What it holds.
    pub held: NodeFiles,
    /// Its saved queries, which every node has.
    pub saved: Arc<SavedQueries>,
    /// Where others reach it.
    pub advertise: SocketAddr,
    /// What its disk fails together with; empty if nothing was said of that.
    pub zone: String,
    /// Where people reach it.
    pub http: SocketAddr,
    /// Nodes to ask first.
    pub join: Vec<Seed<SocketAddr>>,
    /// How many nodes are to hold each record.
    pub copies: usize,
    /// When the process started.
    pub started: Timestamp,
    /// The data directory, for how much room there is.
    pub disk: Arc<dyn Disk>,
    /// How much of it is kept free.
    pub keep_free: Size,
    /// How long records are kept, if not for ever.
    pub retain_age: Option<Duration>,
    /// What this node shows to others; without it calls are neither encrypted nor authenticated.
    pub tls: Option<Arc<ClusterTls>>,
}

/// What nodes have said that they hold, with the tags of it.
type Tagged = BTreeMap<NodeId, (Arc<IndexedInventory>, String)>;

/// This node among others.
pub struct Member {
    pub(super) identity: Identity,
    pub(super) roles: Roles,
    pub(super) is_leaving: AtomicBool,
    pub(super) registry: RegistryFile,
    pub(super) held: NodeFiles,
    pub(crate) saved: Arc<SavedQueries>,
    pub(super) saved_told: Mutex<Told>,
    pub(super) advertise: SocketAddr,
    /// The zone that it stores in; empty if in none, or if it stores nothing.
    pub(super) zone: String,
    pub(super) http: SocketAddr,
    pub(super) joining: Join,
    pub(super) copies: usize,
    /// Grows with each start: its time in milliseconds, or one more than that of the start before.
    pub(super) generation: u64,
    pub(super) disk: Arc<dyn Disk>,
    keep_free: Size,
    pub(super) past: Past,
    pub(super) client: Client,
    pub(super) gossip: Gossip,
    /// The last inventory of each node, with its tag.
    inventories: Mutex<Tagged>,
    /// The same of their segments only.
    stored: Mutex<Tagged>,
    clocks: Clocks,
    /// Incarnations that this process has begun.
    pub(super) lives: Mutex<BTreeSet<Incarnation>>,
    /// How long it took until the last canary record was found.
    pub(super) canary: Mutex<Option<Duration>>,
}

impl Member {
    /// A member that knows what its registry and its own files say. What earlier lives of this
    /// node have written is sealed: they write no more.
    ///
    /// # Errors
    /// When the registry cannot be written.
    pub fn new(parts: Parts) -> io::Result<Member> {
        let mut member = Member {
            identity: parts.identity,
            roles: parts.roles,
            is_leaving: AtomicBool::new(was_leaving(&*parts.disk)),
            registry: parts.registry,
            held: parts.held,
            saved: parts.saved,
            saved_told: Mutex::default(),
            advertise: parts.advertise,
            zone: if parts.roles.stores {
                parts.zone
            } else {
                String::new()
            },
            http: parts.http,
            joining: Join::open(&*parts.disk, Seeds::new(parts.join, parts.advertise)),
            copies: parts.copies,
            // Said below, once it is known what the registry has.
            generation: 0,
            disk: parts.disk,
            keep_free: parts.keep_free,
            past: Past::new(
                parts.started,
                parts.retain_age.filter(|_| parts.roles.stores),
            ),
            client: Client::new(parts.advertise, parts.tls),
            gossip: Gossip::default(),
            inventories: Mutex::default(),
            stored: Mutex::default(),
            clocks: Clocks::default(),
            lives: Mutex::default(),
            canary: Mutex::default(),
        };
        member.seal_lives()?;
        member.gossip.say_leaving(member.is_leaving());
        let own = member.known_as(parts.started);
        // Others take no note of a life that began before the one that they know: a clock that was ahead
        // and was set back must not make this one such.
        member.generation = own.version;
        member.note(|registry| registry.note_node(member.identity.node, own))?;
        member.note_joined()?;
        Ok(member)
    }

    /// Seals the incarnations of this node, none of which may be written to any more: those that its
    /// registry says, and those in its files that nobody else is known for.
    ///
    /// # Errors
    /// When the registry cannot be written.
    pub fn seal_lives(&self) -> io::Result<()> {
        let held = self.held.inventory(Arc::default());
        let mut ends: BTreeMap<Incarnation, u64> = BTreeMap::new();
        for (incarnation, interval) in held.inventory().sources().intervals() {
            ends.insert(incarnation, interval.to.saturating_add(1));
        }
        let node = self.identity.node;
        self.note(|registry| {
            let mut news = false;
            for incarnation in ends.keys() {
                if registry.fate(*incarnation).is_none() {
                    news |= registry.note(*incarnation, Fate::born(node, Timestamp::MIN));
                }
            }
            let own = unsealed(registry, node, held.inventory());
            for (incarnation, fate) in own {
                let held = ends.get(&incarnation).copied().unwrap_or(0);
                let end = held.max(fate.at_least).max(fate.expired_below);
                news |= registry.seal(incarnation, end);
            }
            news
        })
    }

    /// Whether all incarnations of this node are sealed that can be.
    pub fn is_sealed(&self) -> bool {
        let held = self.held.inventory(Arc::default());
        unsealed(&self.registry(), self.identity.node, held.inventory()).is_empty()
    }

    /// Gives up lives that others had to tell this node of: its disk came back as it was earlier,
    /// and nobody can say how many sources they had. Answers say so.
    fn declare_lost_lives(&self) -> io::Result<()> {
        let mut lost = lost_lives(self.identity.node, &self.registry(), None);
        let lives = self.lives.lock().unwrap_or_else(PoisonError::into_inner);
        lost.retain(|incarnation| !lives.contains(incarnation));
        drop(lives);
        if lost.is_empty() {
            return Ok(());
        }
        warn(&format!(
            "others know of {} of this node that its disk does not: it is as it was earlier; what \
             only it had since is lost",
            quantity::counted(lost.len() as u64, "life"),
        ));
        self.note(|registry| {
            let declare = |news, incarnation: &Incarnation| {
                let end = registry.fate(*incarnation).map_or(0, |fate| fate.at_least);
                registry.declare_lost(*incarnation, end) | news
            };
            lost.iter().fold(false, declare)
        })
    }

    /// Changes the registry, durably.
    pub(super) fn note(&self, change: impl FnOnce(&mut Registry) -> bool) -> io::Result<()> {
        self.registry.note(change)?;
        self.gossip.say_registry(self.registry.digest());
        Ok(())
    }

    /// Takes over what another node has heard. Returns once it is on disk.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn learn(&self, heard: &Registry) -> io::Result<()> {
        self.note(|registry| registry.merge(heard))?;
        self.declare_lost_lives()
    }

    /// What others are to know of this node.
    pub(super) fn known_as(&self, now: Timestamp) -> RegistryEntry {
        let known = self.registry();
        let known = known.node(self.identity.node);
        // Also after the clock was set back.
        let next = known.map_or(0, |known| known.version.saturating_add(1));
        let version = u64::try_from(now.unix_ms()).unwrap_or(0).max(next);
        RegistryEntry::there(self.advertise.to_string(), self.zone.clone(), version)
    }

    /// What this node has heard.
    pub fn registry(&self) -> Arc<Registry> {
        self.registry.known()
    }

    /// Which of some batches are here as they were first sent.
    pub fn own_originals(&self, wanted: &BatchSet) -> BatchSet {
        self.held.originals(wanted)
    }

    /// Which of some batches this node has taken in itself, as far as its journal says.
    pub fn own_taken(&self, wanted: &BatchSet) -> BatchSet {
        self.held.taken(wanted)
    }

    /// Which of some batches another node has taken in itself, as far as its journal says.
    ///
    /// # Errors
    /// When it does not answer in time.
    pub fn taken_by(&self, node: NodeId, wanted: &BatchSet) -> Result<BatchSet, PeerError> {
        let (address, _) = self.reach(node)?;
        self.client.taken(address, wanted)
    }

    /// What gossip says.
    pub fn gossip(&self) -> &Gossip {
        &self.gossip
    }

    /// Where others reach this node.
    pub fn advertise(&self) -> SocketAddr {
        self.advertise
    }

    /// Who this is.
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// What this node does.
    pub fn roles(&self) -> Roles {
        self.roles
    }

    /// How many nodes are to hold each record.
    pub fn copies(&self) -> usize {
        self.copies
    }

    /// What copies there are to be: on so many nodes, in as many zones as there are.
    pub fn copies_wanted(&self) -> Copies {
        let mut leaving = self.gossip.leaving();
        leaving.extend(self.is_leaving().then_some(self.identity.node));
        self.registry().copies(self.copies, &leaving)
    }

    /// Nodes and where they are.
    pub fn peers(&self, nodes: impl IntoIterator<Item = NodeId>) -> Vec<Peer> {
        let registry = self.registry();
        let peer = |node| Peer {
            node,
            zone: registry.zone(node),
        };
        nodes.into_iter().map(peer).collect()
    }

    /// Gossips until the stop; to be run by the runtime.
    pub async fn run_gossip(self: Arc<Member>, transport: HttpTransport, stop: Shutdown) {
        let config = gossip::Config {
            identity: self.identity,
            generation: self.generation,
            advertise: self.advertise,
            join: self.all_seeds(),
            http: self.http.to_string(),
            roles: self.roles,
            zone: self.zone.clone(),
        };
        let gossip = self.gossip.clone();
        let gossip = gossip.run(config, transport, stop.clone());
        tokio::join!(gossip, self.resolve_names(stop));
    }

    /// Starts the threads `lp-gossip`, which send membership messages, and `lp-member`, which
    /// learns what others have heard. They end after the stop.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(
        self: &Arc<Member>,
        letters: Receiver<Letter>,
        stop: &Shutdown,
    ) -> io::Result<Vec<JoinHandle<()>>> {
        let letters = Arc::new(Mutex::new(letters));
        let mut threads = Vec::new();
        for _ in 0..GOSSIP_THREADS {
            let (member, letters) = (Arc::clone(self), Arc::clone(&letters));
            let spawned = thread::Builder::new().name("lp-gossip".to_owned());
            threads.push(spawned.spawn(move || {
                while let Err(panicked) = caught(|| member.send(&letters)) {
                    warn(&format!("a message to another node was lost: {panicked}"));
                }
            })?);
        }
        let (member, stop) = (Arc::clone(self), stop.clone());
        let spawned = thread::Builder::new().name("lp-member".to_owned());
        threads.push(spawned.spawn(move || {
            for turn in 0.. {
                if stop.is_stopping() {
                    break;
                }
                let round = caught(|| {
                    member.meet(turn);
                    member.join_others();
                    member.look_around();
                });
                if let Err(panicked) = round {
                    warn(&format!(
                        "other nodes are not looked at for now: {panicked}"
                    ));
                }
                stop.wait_at_most(ROUND);
            }
        })?);
        Ok(threads)
    }

    /// Sends messages until nobody writes any.
    fn send(&self, letters: &Mutex<Receiver<Letter>>) {
        loop {
            let letter = letters
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .recv();
            let Ok((to, message)) = letter else {
                return;
            };
            // A message that does not arrive is lost; gossip is made for that.
            let _ = self.client.gossip(CallTarget::whoever(to), &message);
        }
    }

    /// Whether this node has no room for copies if its disk has so much; not if nothing is known of it.
    pub fn is_full(&self, space: Space) -> bool {
        let keep_free_bytes = self.keep_free.of(space.total_bytes);
        placement::is_full(space.free_bytes, space.total_bytes, keep_free_bytes)
    }

    /// Notes the nodes that gossip names, and asks those for their registry that have news.
    fn look_around(&self) {
        let space = self.disk.space().unwrap_or(Space {
            free_bytes: 0,
            total_bytes: 0,
        });
        self.gossip.say_space(space.free_bytes, self.is_full(space));
        let seen = self.gossip.seen();
        let noted = self.note(|registry| {
            seen.iter().fold(false, |news, (node, seen)| {
                let address = seen.address.to_string();
                let known = RegistryEntry::there(address, seen.zone.clone(), seen.generation);
                registry.note_node(*node, known) | news
            })
        });
        if let Err(error) = noted {
            warn(&format!(
                "what was heard of other nodes cannot be kept: {error}"
            ));
        }
        self.come_back();
        self.note_past();
        self.exchange_saved_queries(&seen);
        let own = self.registry.digest();
        for (node, seen) in seen {
            let is_news = seen.registry != own && seen.registry != 0;
            if node == self.identity.node || !seen.is_live || !is_news {
                continue;
            }
            // What cannot be had now is asked for again in the next round.
            if let Ok(heard) = self.client.registry(CallTarget::node(node, seen.address))
                && let Err(error) = self.learn(&heard)
            {
                warn(&format!(
                    "what another node has heard cannot be kept: {error}"
                ));
            }
        }
    }

    /// Where a node is reached, and whether it is thought to be alive.
    pub(super) fn reach(&self, node: NodeId) -> Result<(CallTarget, bool), PeerError> {
        if let Some(seen) = self.gossip.of(node) {
            return Ok((CallTarget::node(node, seen.address), seen.is_live));
        }
        let registry = self.registry.known();
        let known = registry.nodes().find(|(name, _)| *name == node);
        let address = known.and_then(|(_, known)| known.address.parse().ok());
        address
            .map(|address| (CallTarget::node(node, address), false))
            .ok_or_else(|| PeerError(format!("nobody knows where node {node} is")))
    }

    /// Asks a node what it holds; what has not changed since the last time is not sent again.
    fn fetch(&self, node: NodeId, what: InventoryPart) -> Result<Arc<IndexedInventory>, PeerError> {
        let (address, is_live) = self.reach(node)?;
        let timeout = if is_live {
            ANSWER_TIMEOUT
        } else {
            GONE_TIMEOUT
        };
        let known = self.known(what).get(&node).cloned();
        let tag = known.as_ref().map(|(_, tag)| tag.as_str());
        let answered = self.client.inventory(address, what, tag, timeout)?;
        if let Some(at) = answered.at {
            self.clocks.note(node, at);
        }
        match (answered.fetched, known) {
            (InventoryUpdate::Same, Some((inventory, _))) => Ok(inventory),
            (InventoryUpdate::Recent(recent, tag), Some((inventory, _))) => {
                let Some(inventory) = inventory.with_recent(recent) else {
                    let text = format!("{address} has told of changes of something else");
                    return Err(PeerError(text));
                };
                let inventory = Arc::new(inventory);
                self.known(what).insert(node, (Arc::clone(&inventory), tag));
                Ok(inventory)
            }
            (InventoryUpdate::Same | InventoryUpdate::Recent(..), None) => {
                Err(PeerError("its inventory is not there".to_owned()))
            }
            (InventoryUpdate::New(inventory, tag), _) => {
                if inventory.node != node {
                    let text = format!("another node, {}, is at {address}", inventory.node);
                    return Err(PeerError(text));
                }
                // Whoever it has heard of is asked, too.
                self.learn(&inventory.registry)
                    .map_err(|error| PeerError(error.to_string()))?;
                let inventory = Arc::new(IndexedInventory::new(*inventory));
                let entry = (Arc::clone(&inventory), tag);
                self.known(what).insert(node, entry);
                Ok(inventory)
            }
        }
    }

    /// The clocks of other nodes, as they have said within a minute; `None` if there are some and
    /// none has said anything.
    pub fn peer_clocks(&self) -> Option<Vec<Timestamp>> {
        let clocks = self.clocks.now();
        let is_alone = || self.others().is_empty() && self.unmet_seeds().is_empty();
        (!clocks.is_empty() || is_alone()).then_some(clocks)
    }

    fn known(&self, what: InventoryPart) -> MutexGuard<'_, Tagged> {
        let known = match what {
            InventoryPart::All => &self.inventories,
            InventoryPart::Segments => &self.stored,
        };
        known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What this node's segments are.
    pub fn own_stored(&self) -> Arc<IndexedInventory> {
        self.held.stored()
    }

    /// What another node says that its segments are now.
    ///
    /// # Errors
    /// When it does not say so in time.
    pub fn stored_of(&self, node: NodeId) -> Result<Arc<IndexedInventory>, PeerError> {
        self.fetch(node, InventoryPart::Segments)
    }

    /// What it said last, if it has said anything to this process.
    pub fn stored_last(&self, node: NodeId) -> Option<Arc<IndexedInventory>> {
        let known = self.known(InventoryPart::Segments);
        known.get(&node).map(|(inventory, _)| Arc::clone(inventory))
    }
}

/// The incarnations of a node that it has to seal: all that are not, but for lives that are lost. Of
/// those its disk has no journal file: the last one stays until the seal.
fn unsealed(registry: &Registry, node: NodeId, held: &Inventory) -> Vec<(Incarnation, Fate)> {
    let has_file = |name| {
        held.journal
            .iter()
            .any(|file| file.source.incarnation == name)
    };
    let own = registry.incarnations().filter(|(name, fate)| {
        let is_lost = fate.declared_lost.is_some() && !has_file(*name);
        fate.node == node && fate.sealed.is_none() && !is_lost
    });
    own.map(|(name, fate)| (name, *fate)).collect()
}

impl From<PeerError> for Unreachable {
    fn from(error: PeerError) -> Unreachable {
        Unreachable {
            why: error.to_string(),
        }
    }
}

impl Nodes for Member {
    fn own(&self) -> NodeId {
        self.identity.node
    }

    fn own_inventory(&self) -> Arc<IndexedInventory> {
        self.held.inventory(self.registry.known())
    }

    fn registry(&self) -> Arc<Registry> {
        self.registry.known()
    }

    fn last_inventory(&self, node: NodeId) -> Option<Arc<IndexedInventory>> {
        let known = self.known(InventoryPart::All);
        known.get(&node).map(|(inventory, _)| Arc::clone(inventory))
    }

    fn others(&self) -> Vec<NodeId> {
        let registry = self.registry.known();
        let others = not_forgotten(&registry).filter(|node| *node != self.identity.node);
        others.collect()
    }

    fn unmet(&self) -> Vec<String> {
        let mut unmet: Vec<String> = self.unjoined();
        unmet.extend(self.unmet_seeds());
        unmet.sort_unstable();
        unmet.dedup();
        unmet
    }

    fn twins(&self) -> Vec<String> {
        self.gossip.twins()
    }

    fn inventory(&self, node: NodeId) -> Result<Arc<IndexedInventory>, Unreachable> {
        Ok(self.fetch(node, InventoryPart::All)?)
    }

    fn ask(&self, node: NodeId, question: &[u8]) -> Result<Box<dyn Read + Send>, Unreachable> {
        let (address, _) = self.reach(node)?;
        Ok(self.client.ask(address, PATH_QUESTION, question)?)
    }

    fn follow(&self, node: NodeId, question: &[u8]) -> Result<Box<dyn Read + Send>, Unreachable> {
        let (address, _) = self.reach(node)?;
        Ok(self.client.ask(address, PATH_FOLLOW, question)?)
    }

    fn originals(&self, node: NodeId, wanted: &BatchSet) -> Result<BatchSet, Unreachable> {
        if node == self.identity.node {
            return Ok(self.held.originals(wanted));
        }
        let (address, _) = self.reach(node)?;
        Ok(self.client.originals(address, wanted)?)
    }

    fn silent_max(&self) -> usize {
        silent_max(self.copies)
    }

    fn name(&self, node: NodeId) -> String {
        let registry = self.registry.known();
        let is_forgotten = registry.node(node).is_some_and(RegistryEntry::is_forgotten);
        match self.reach(node) {
            // Another one may be at its address.
            Ok((address, _)) if is_forgotten => {
                format!("node {node} (forgotten, last at {address})")
            }
            Ok((address, _)) => format!("node {address}"),
            Err(_) => format!("node {node}"),
        }
    }
}
