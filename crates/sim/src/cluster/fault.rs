//! What goes wrong, and what is done about it.

use logpond_cluster::NodeId;
use logpond_cluster::registry::RegistryEntry;
use logpond_record::Incarnation;

use super::message::{BUCKET, Event, Place};
use super::world::World;

/// Longer than any attempt to give something up takes, a pause in the middle of it included: who has
/// counted on a damaged copy is done with it.
const DAMAGE_PAUSE_MS: u64 = 12_000;

const YEAR_NS: i64 = 365 * 86_400_000_000_000;

impl World {
    /// Something goes wrong, and the next thing some time later.
    pub(super) fn fault(&mut self) {
        if self.is_healing() {
            return;
        }
        let after_ms = 100 + self.random.below(900);
        self.at(self.now_ms + after_ms, Event::Fault);
        let place = self.random.below(self.nodes.len() as u64) as usize;
        if self.nodes[place].has_left {
            return;
        }
        if self.nodes[place].is_gone {
            return self.forget(place);
        }
        match self.random.below(24) {
            0..5 => self.crash(place, 200, 5_000),
            5..9 => self.pause(place),
            9..13 => self.cut(place),
            13 => self.jump(place),
            14 => self.take_image(place),
            15..18 => self.restore(place),
            18 => self.lose_disk(place),
            19 => self.fill(place),
            20..22 => self.damage(place),
            22 => self.drain(place),
            _ => {
                let at = self.random.below(self.forwarders.len() as u64) as usize;
                self.forwarders[at].restart();
                self.report.crashes += 1;
            }
        }
    }

    /// Ends a process, and starts it again later.
    fn crash(&mut self, place: Place, min_ms: u64, max_ms: u64) {
        if self.nodes[place].process.take().is_none() {
            return;
        }
        self.report.crashes += 1;
        let mut random = logpond_segment::mem_disk::SeededRandom::new(self.random.draw());
        self.nodes[place].disk.crash(&mut random);
        self.nodes[place].paused_until_ms = 0;
        self.ledger.shrunk();
        let after_ms = min_ms + self.random.below(max_ms - min_ms);
        self.at(self.now_ms + after_ms, Event::Restart(place));
    }

    /// Stops a process in the middle of what it does, and lets it go on later.
    fn pause(&mut self, place: Place) {
        self.report.pauses += 1;
        self.nodes[place].paused_until_ms = self.now_ms + 200 + self.random.below(8_000);
    }

    /// Cuts a node off from some others, in one direction or both.
    fn cut(&mut self, place: Place) {
        let until_ms = self.now_ms + 500 + self.random.below(6_000);
        if self.bucket.is_some() && self.random.one_in(2) {
            return self.cut_bucket(until_ms);
        }
        let is_both = self.random.one_in(2);
        let is_all = self.random.one_in(3);
        for other in 0..self.nodes.len() {
            if other == place || !(is_all || self.random.one_in(3)) {
                continue;
            }
            self.report.cuts += 1;
            let mut links = vec![(place, other)];
            if is_both {
                links.push((other, place));
            }
            for (from, to) in links {
                self.cuts.insert((from, to));
                self.at(until_ms, Event::Uncut(from, to));
            }
        }
    }

    /// Has the object store be out of reach, of some or of all, for requests, replies or both.
    fn cut_bucket(&mut self, until_ms: u64) {
        let is_all = self.random.one_in(3);
        let ways = 1 + self.random.below(3);
        let until_ms = until_ms + self.random.below(6_000);
        for place in 0..self.nodes.len() {
            if !is_all && !self.random.one_in(2) {
                continue;
            }
            self.report.bucket_cuts += 1;
            for (bit, link) in [(1, (place, BUCKET)), (2, (BUCKET, place))] {
                if ways & bit != 0 {
                    self.cuts.insert(link);
                    self.at(until_ms, Event::Uncut(link.0, link.1));
                }
            }
        }
    }

    /// Fills a disk for a while.
    fn fill(&mut self, place: Place) {
        self.report.fulls += 1;
        self.nodes[place].disk.full_until_ms = self.now_ms + 500 + self.random.below(6_000);
    }

    /// Damages a segment, if there are enough copies of everything and nobody is still in the middle
    /// of something that began before the last one was noticed.
    fn damage(&mut self, place: Place) {
        let is_early = self.damaged_ms + DAMAGE_PAUSE_MS > self.now_ms && self.damaged_ms > 0;
        if !self.damages || is_early || !self.is_noticed() || !self.is_repaired(place) {
            return;
        }
        let all = self.safe_somewhere(self.copies);
        let live: Vec<_> = self.nodes[place].disk.live().map(|(id, _)| id).collect();
        if live.is_empty() || !all.contains_all(self.ledger.all_safe()) {
            return;
        }
        let id = live[self.random.below(live.len() as u64) as usize];
        let disk = &mut self.nodes[place].disk;
        let sources = disk.readable(id).map(super::disk::Segment::sources);
        self.damaged.union_with(&sources.unwrap_or_default());
        disk.damage(id);
        self.damaged_ms = self.now_ms;
        self.report.damages += 1;
        self.ledger.shrunk();
    }

    /// Whether no process holds what it cannot read.
    fn is_noticed(&self) -> bool {
        let mut running = self.nodes.iter().filter_map(|node| {
            let process = node.process.as_ref()?;
            Some((&node.disk, process))
        });
        !running.any(|(disk, process)| {
            let mut live = process.holdings.live();
            live.any(|(id, _)| disk.opened(id).is_some_and(|s| s.is_damaged))
        })
    }

    /// Sets a clock wrong; only one at a time, so that the others' median is right.
    fn jump(&mut self, place: Place) {
        self.report.jumps += 1;
        self.nodes
            .iter_mut()
            .for_each(|node| node.clock_offset_ns = 0);
        let ahead = self.random.one_in(2);
        self.nodes[place].clock_offset_ns = if ahead { YEAR_NS } else { -YEAR_NS };
    }

    fn take_image(&mut self, place: Place) {
        let mut image = self.nodes[place].disk.clone();
        let mut random = logpond_segment::mem_disk::SeededRandom::new(self.random.draw());
        image.crash(&mut random);
        self.nodes[place].image.get_or_insert(image);
    }

    /// Puts an earlier state of a disk back, if others can make up for what came later.
    fn restore(&mut self, place: Place) {
        if !self.restores || !self.is_repaired(place) {
            return;
        }
        let Some(image) = self.nodes[place].image.take() else {
            return;
        };
        let registry = &self.nodes[place].disk.registry;
        let is_news = |name: &Incarnation| image.registry.fate(*name).is_none();
        let others = self
            .nodes
            .iter()
            .filter(|n| !n.is_gone && n.id != self.nodes[place].id);
        let others: Vec<_> = others.map(|n| &n.disk.registry).collect();
        let news: Vec<Incarnation> = registry
            .incarnations()
            .map(|(name, _)| name)
            .filter(is_news)
            .collect();
        // A birth that would be known to fewer than the rules ask for.
        let is_known = |name: Incarnation| {
            let knowing = others.iter().filter(|r| r.fate(name).is_some());
            knowing.count() >= others.len().min(2 + self.copies)
        };
        if !news.into_iter().all(is_known) {
            return;
        }
        let node = self.nodes[place].id;
        let own = registry.incarnations().filter(|(_, f)| f.node == node);
        let own: Vec<Incarnation> = own.map(|(name, _)| name).collect();
        own.into_iter().for_each(|name| self.ledger.blur(name));
        self.report.restores += 1;
        self.ledger.restores += 1;
        self.crash(place, 200, 2_000);
        self.nodes[place].disk = image;
    }

    /// Whether every source that should be safe is on enough disks without this one's.
    fn is_repaired(&self, place: Place) -> bool {
        let all = self.safe_somewhere(self.copies);
        let disks = self
            .nodes
            .iter()
            .filter(|n| !n.is_gone && n.id != self.nodes[place].id);
        let others = disks.filter(|node| node.stores).count();
        all.contains_all(self.ledger.all_safe()) && others >= self.copies
    }

    /// Loses a disk for good; another node takes its place.
    fn lose_disk(&mut self, place: Place) {
        let is_safe = self.is_repaired(place) && self.nodes.len() < 9;
        if !self.loses_disks || !is_safe || !self.is_recorded_without(place) {
            return;
        }
        self.report.losses += 1;
        self.report.bucket_losses += u64::from(self.bucket.is_some());
        self.nodes[place].process = None;
        self.nodes[place].is_gone = true;
        self.nodes[place].disk = super::disk::Disk::default();
        let (takes_in, stores) = (self.nodes[place].takes_in, self.nodes[place].stores);
        self.add_node(takes_in, stores);
    }

    /// Whether what a node has recorded is recorded often enough on others.
    fn is_recorded_without(&self, place: Place) -> bool {
        let others = self
            .nodes
            .iter()
            .filter(|n| !n.is_gone && n.id != self.nodes[place].id);
        let others: Vec<_> = others.map(|n| &n.disk.registry).collect();
        let registry = &self.nodes[place].disk.registry;
        // Where no member is left, there is no cluster that others could have joined.
        let members = self.nodes.iter().filter(|n| n.disk.is_joined && !n.is_gone);
        let mut births = registry.incarnations();
        members.count() > self.copies + 1
            && births.all(|(name, _)| others.iter().filter(|r| r.fate(name).is_some()).count() >= 2)
    }

    /// Somebody sees to it that nodes that are gone are forgotten.
    pub(super) fn forget_all(&mut self) {
        for place in 0..self.nodes.len() {
            if self.nodes[place].is_gone && !self.nodes[place].has_left {
                self.forget(place);
            }
        }
    }

    /// Somebody tells the cluster that a node will not come back.
    pub(super) fn forget(&mut self, gone: Place) {
        let node = self.nodes[gone].id;
        let now_ms = self.now_ms;
        let able = |n: &super::world::Node| {
            n.process.is_some() && n.disk.is_joined && n.disk.full_until_ms <= now_ms
        };
        let Some(place) = self.nodes.iter().position(able) else {
            return;
        };
        let process = self.process(place);
        let known = process.registry.node(node);
        if known.is_none_or(RegistryEntry::is_forgotten) {
            return;
        }
        process.registry.forget(node);
        for (incarnation, end) in self.ends_of(place, node) {
            self.process(place).registry.declare_lost(incarnation, end);
        }
        self.report.forgotten += 1;
        self.write_registry(place);
    }

    /// The incarnations of a node that are not sealed, and as many sources as are known of them.
    pub(super) fn ends_of(&mut self, place: Place, node: NodeId) -> Vec<(Incarnation, u64)> {
        let process = self.process(place);
        let own = process.registry.incarnations();
        let own = own.filter(|(_, fate)| fate.node == node && fate.sealed.is_none());
        let own: Vec<Incarnation> = own.map(|(name, _)| name).collect();
        let seen = process.seen.values();
        let mut ends: Vec<(Incarnation, u64)> = own.into_iter().map(|name| (name, 0)).collect();
        for (seen, _) in seen {
            for (incarnation, interval) in seen.indexed.inventory().sources().intervals() {
                for (_, end) in ends.iter_mut().filter(|(name, _)| *name == incarnation) {
                    *end = interval.to.saturating_add(1).max(*end);
                }
            }
        }
        ends
    }

    /// Everything comes back, and nothing more goes wrong.
    pub(super) fn heal(&mut self) {
        self.cuts.clear();
        for place in 0..self.nodes.len() {
            self.nodes[place].paused_until_ms = 0;
            self.nodes[place].clock_offset_ns = 0;
            self.nodes[place].disk.full_until_ms = 0;
            self.start(place);
        }
        self.forget_all();
    }
}
