//! Nodes that leave: first as ingesters, then as stores, as [`logpond_cluster::drain`] says.

use logpond_cluster::NodeId;
use logpond_cluster::births::{Publication, others_for_birth, others_for_farewell};
use logpond_cluster::drain::{DrainState, Step};

use super::message::Place;
use super::world::{Mutation, World};

impl World {
    /// Somebody has a node leave, or stay after all; those that remain must be enough to go on.
    pub(super) fn drain(&mut self, place: Place) {
        let node = &self.nodes[place];
        if node.process.is_none() || !node.disk.is_joined || !self.drains {
            return;
        }
        if self.nodes[place].disk.is_leaving {
            if self.process(place).farewell.is_none() {
                self.report.stayed += 1;
                self.nodes[place].disk.is_leaving = false;
                self.process(place).holdings.set_draining(false);
            }
            return;
        }
        let others = || {
            let others = self.nodes.iter().enumerate();
            others
                .filter(|(at, node)| *at != place && !node.is_gone && !node.disk.is_leaving)
                .map(|(_, node)| node)
        };
        let stores = others().filter(|node| node.stores).count();
        let ingesters = others().filter(|node| node.takes_in).count();
        let members = others().filter(|node| node.disk.is_joined).count();
        if stores >= self.copies && ingesters > 0 && members > self.copies {
            self.report.drains += 1;
            self.nodes[place].disk.is_leaving = true;
            self.process(place).holdings.set_draining(true);
        }
    }

    /// Goes on leaving, as far as it goes now.
    pub(super) fn leave(&mut self, place: Place) {
        if !self.nodes[place].disk.is_leaving {
            return;
        }
        match self.leaving(place).next() {
            Step::Done if self.is_empty(place) => self.bid_farewell(place),
            Step::Close => self.close_open(place),
            Step::Seal => self.seal(place),
            // Others are told of the seals as of all else; the rest is for them to do.
            Step::Refuse | Step::Publish | Step::Wait | Step::Done => {}
        }
    }

    fn leaving(&mut self, place: Place) -> DrainState {
        let needed = self.needed(place);
        let is_early = self.mutation == Some(Mutation::EarlyLeaving);
        let disk = &self.nodes[place].disk;
        let (has_open, has_files) = (
            disk.journal().any(|(_, file)| !file.is_closed),
            disk.journal().next().is_some() && !is_early,
        );
        let (me, registry) = (self.nodes[place].id, disk.registry.clone());
        let process = self.process(place);
        DrainState {
            takes_in: false,
            has_open,
            is_sealed: process.life.is_none()
                && process.ends.to_seal(me, &registry, None).is_empty(),
            is_published: process.seals.is_recorded(needed),
            has_files,
        }
    }

    /// On how many others must be recorded how a node that leaves has ended.
    pub(super) fn needed(&self, place: Place) -> usize {
        let me = self.nodes[place].id;
        let others = self.known(place).iter().filter(|node| **node != me).count();
        match self.mutation {
            Some(Mutation::BriefFarewell) => others_for_birth(self.copies, others),
            _ => others_for_farewell(self.copies, others),
        }
    }

    /// Whether nothing is left on a store.
    fn is_empty(&mut self, place: Place) -> bool {
        let is_early = self.mutation == Some(Mutation::EarlyLeaving);
        let process = self.process(place);
        is_early
            || (process.holdings.live().next().is_none()
                && process.writing.is_empty()
                && process.consuming.is_empty())
    }

    /// Ends what it wrote: nothing is appended to it any more.
    fn seal(&mut self, place: Place) {
        if self.is_full(place) {
            return;
        }
        let me = self.nodes[place].id;
        let process = self.process(place);
        process.life = None;
        process.seals = Publication::new();
        for (incarnation, end) in process.ends.to_seal(me, &process.registry, None) {
            process.registry.seal(incarnation, end);
        }
        self.write_registry(place);
    }

    /// Has others forget it, and ends once enough of them have.
    fn bid_farewell(&mut self, place: Place) {
        let (me, needed) = (self.nodes[place].id, self.needed(place));
        if let Some(farewell) = &self.process(place).farewell {
            if farewell.is_recorded(needed) {
                self.end(place);
            }
            return;
        }
        if self.is_full(place) {
            return;
        }
        let process = self.process(place);
        process.registry.forget(me);
        process.farewell = Some(Publication::new());
        self.write_registry(place);
    }

    fn end(&mut self, place: Place) {
        self.report.left += 1;
        let node = &mut self.nodes[place];
        node.process = None;
        node.is_gone = true;
        node.has_left = true;
        // What it has left behind must be elsewhere.
        self.ledger.shrunk();
    }

    /// Whether nobody is leaving any more.
    pub(super) fn all_have_left(&self) -> bool {
        let mut nodes = self.nodes.iter();
        !nodes.any(|node| node.disk.is_leaving && !node.is_gone)
    }

    /// How far those are that are leaving.
    pub(super) fn leaving_state(&self) -> Vec<String> {
        let nodes = self
            .nodes
            .iter()
            .filter(|n| n.disk.is_leaving && !n.is_gone);
        let each = nodes.map(|node| {
            let process = node.process.as_ref();
            let segments = process.map(|p| p.holdings.live().count());
            let waits = process.map(|p| (p.life.is_some(), &p.seals, &p.farewell, p.writing.len()));
            let files = node.disk.journal().count();
            format!(
                "{} has {segments:?} segments, {files} files, {waits:?}",
                node.id.0
            )
        });
        each.collect()
    }

    /// The nodes that are leaving, as far as a node has seen.
    pub(super) fn leaving_seen(&self, place: Place) -> Vec<NodeId> {
        let seen = self.nodes[place].process.iter().flat_map(|p| &p.seen);
        let leaving = seen.filter(|(_, (seen, _))| seen.is_leaving);
        leaving.map(|(node, _)| *node).collect()
    }
}
