//! What this node asks of others, one by one: how they are, and what the hand-off between them takes.

use std::io::Read;
use std::sync::PoisonError;
use std::time::Duration;

use logpond_cluster::NodeId;
use logpond_cluster::give_up::{HoldingsReply as Answer, WhoHolds};
use logpond_cluster::offers::{Claim, ClaimId};
use logpond_cluster::placement::Store;
use logpond_record::{Id, SourceId};
use logpond_segment::sources::SourceSet;

use super::Member;
use super::canary::Canary;
use super::client::{CallTarget, PeerError};
use super::messages::Report;
use super::status::NodeStatus;
use logpond_engine::query::Nodes;

impl Member {
    /// Other nodes that are thought to be alive.
    pub fn live_others(&self) -> Vec<NodeId> {
        let others = self.others().into_iter();
        others.filter(|node| self.gossip.is_live(*node)).collect()
    }

    /// Other nodes that may be given copies, as they say themselves.
    pub fn stores(&self) -> Vec<Store> {
        let others = self.live_others().into_iter();
        let registry = self.registry();
        let store = |node| {
            let seen = self.gossip.of(node).filter(|seen| seen.roles.stores)?;
            Some(Store {
                node,
                zone: registry.zone(node),
                free_bytes: seen.free_bytes,
                is_full: seen.is_full,
                is_draining: seen.is_leaving,
            })
        };
        others.filter_map(store).collect()
    }

    /// Asks a node how it is doing.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn status_of(&self, node: NodeId) -> Result<NodeStatus, PeerError> {
        let (address, _) = self.reach(node)?;
        self.client.status(address)
    }

    /// Asks a node whether its answers have a canary record.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn find_canary(&self, node: NodeId, canary: &Canary) -> Result<bool, PeerError> {
        let address = if node == self.identity.node {
            CallTarget::node(node, self.advertise)
        } else {
            self.reach(node)?.0
        };
        self.client.find_canary(address, canary)
    }

    /// What a node says that it knows of alerts; bytes of at most `bytes_max`.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn alert_states_of(&self, node: NodeId, bytes_max: u64) -> Result<Vec<u8>, PeerError> {
        let (address, _) = self.reach(node)?;
        self.client.alert_states(address, bytes_max)
    }

    /// Notes how long it took until a canary record was found.
    pub fn note_canary(&self, took: Duration) {
        *self.canary.lock().unwrap_or_else(PoisonError::into_inner) = Some(took);
    }

    /// How long it took with the last one.
    pub fn canary(&self) -> Option<Duration> {
        *self.canary.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has a node leave the cluster, or stay after all.
    ///
    /// # Errors
    /// When it does not answer, or cannot.
    pub fn tell_to_leave(&self, node: NodeId, leaves: bool) -> Result<(), PeerError> {
        let (address, _) = self.reach(node)?;
        self.client.leave(address, leaves)
    }

    /// Asks an ingester for journal files to make a segment of.
    ///
    /// # Errors
    /// When it does not answer; so for all that follow.
    pub fn claim_from(&self, ingester: NodeId) -> Result<Option<Claim>, PeerError> {
        let (address, _) = self.reach(ingester)?;
        self.client.claim(address, self.identity.node)
    }

    /// Waits until a node has journal files for this one's store, for a while; whether it has.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn wait_for_offer(&self, ingester: NodeId) -> Result<bool, PeerError> {
        let (address, _) = self.reach(ingester)?;
        self.client.wait_for_offer(address, self.identity.node)
    }

    /// Tells an ingester which sources of a claim are where they should be; that none are is a
    /// failure.
    pub fn report_to(
        &self,
        ingester: NodeId,
        claim: ClaimId,
        sources: Option<&SourceSet>,
    ) -> Result<(), PeerError> {
        let (address, _) = self.reach(ingester)?;
        let report = Report {
            claim,
            sources: sources.cloned(),
        };
        self.client.report(address, &report)
    }

    /// Asks a node what it holds.
    pub fn who_holds(&self, node: NodeId, question: &WhoHolds) -> Result<Answer, PeerError> {
        let (address, _) = self.reach(node)?;
        let held = self.client.who_holds(address, question)?;
        if held.node == node {
            Ok(held)
        } else {
            Err(PeerError::new(format!("another node is at {address}")))
        }
    }

    /// Reads a closed journal file of an ingester.
    pub fn journal_of(
        &self,
        ingester: NodeId,
        source: SourceId,
    ) -> Result<Box<dyn Read + Send>, PeerError> {
        let (address, _) = self.reach(ingester)?;
        self.client.journal(address, source)
    }

    /// Sends a copy of a segment with this hash and length; returns once it is synced there.
    pub fn send_segment(
        &self,
        to: NodeId,
        segment: Id,
        hash: u128,
        bytes: u64,
        from: &mut (dyn Read + Send),
    ) -> Result<(), PeerError> {
        let (address, _) = self.reach(to)?;
        self.client.segment(address, segment, (hash, bytes), from)
    }
}
