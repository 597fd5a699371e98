//! Repair of a node: looks at what all hold, copies, gives up; and who is told what of replies.

use std::sync::Arc;

use logpond_cluster::give_up::{Attempt, GiveUp};
use logpond_cluster::repair::{Job, Member, Presence};
use logpond_cluster::{IndexedInventory, NodeId};
use logpond_record::Id;

use super::bucket::BucketReply;
use super::message::{InventoryView, Place, Reply, ReplyTarget, Request, Timer};
use super::process::GiveUpTask;
use super::world::{Mutation, World};

/// A node that has said nothing for so long is gone.
const LIVE_MS: u64 = 1_500;

impl World {
    /// Asks all what they hold, and acts on what they said before.
    pub(super) fn look(&mut self, place: Place) {
        for node in self.known(place) {
            let waiting = ReplyTarget::Look { node };
            self.request(place, self.place_of(node), Request::Inventory, waiting);
        }
        let own = self.inventory(place);
        let (me, now_ms) = (self.nodes[place].id, self.now_ms);
        self.process(place).seen.insert(me, (own, now_ms));
        let targets = self.targets(place);
        let leaving = self.leaving_seen(place);
        // Views of two nodes that hurry differ more.
        let live_ms = if self.is_eager { LIVE_MS } else { 2 * LIVE_MS };
        let copies = self.copies_wanted(place);
        let process = self.process(place);
        process.repair.set_copies(copies);
        process.trim.set_copies(copies);
        let forgotten = process.registry.nodes();
        let forgotten: Vec<NodeId> = forgotten
            .filter(|(_, known)| known.is_forgotten())
            .map(|(node, _)| node)
            .collect();
        let seen: Vec<(NodeId, Arc<IndexedInventory>, u64)> = process
            .seen
            .iter()
            .map(|(node, (seen, at_ms))| (*node, seen.stored.clone(), *at_ms))
            .collect();
        let members: Vec<Member<'_>> = seen
            .iter()
            .map(|(node, held, at_ms)| Member {
                node: *node,
                zone: process.registry.zone(*node),
                presence: match now_ms - at_ms {
                    _ if forgotten.contains(node) => Presence::Forgotten,
                    for_ms if for_ms > live_ms => Presence::Gone { for_ms },
                    _ if leaving.contains(node) => Presence::Draining,
                    _ => Presence::Live,
                },
                held,
            })
            .collect();
        let jobs = process.repair.plan(&members, &targets, now_ms);
        for job in jobs {
            match job {
                Job::Copy { segment, to } => {
                    self.report.repairs += 1;
                    let waiting = ReplyTarget::Repair { segment, node: to };
                    self.put(place, segment, self.place_of(to), waiting);
                }
                Job::GiveUp(segment) => self.give_up_segment(place, segment),
            }
        }
        self.look_for_parts(place, &members);
    }

    fn give_up_segment(&mut self, place: Place, id: Id) {
        let (attempt, peers) = (self.attempt(), self.other_stores(place));
        let (copies, is_flagged) = (self.enough(place), self.mutation != Some(Mutation::NoFlags));
        let process = self.process(place);
        if process
            .giving
            .values()
            .any(|giving| giving.segment == Some(id))
        {
            return;
        }
        let found = process.holdings.live().find(|(live, _)| *live == id);
        let Some(sources) = found.map(|(_, sources)| sources.clone()) else {
            return;
        };
        if is_flagged {
            process.holdings.flag(attempt, sources.clone());
        }
        let give_up = GiveUp::new(attempt, sources, &peers, copies);
        let segment = Some(id);
        let giving = GiveUpTask {
            give_up,
            segment,
            is_part: false,
        };
        process.giving.insert(attempt, giving);
        self.ask_holders(place, attempt);
    }

    /// Ends an attempt to give up a segment.
    pub(super) fn gave_up_segment(
        &mut self,
        place: Place,
        id: Id,
        attempt: Attempt,
        give_up: &GiveUp,
    ) {
        let (confirmed, mutation) = (give_up.confirmed(), self.mutation);
        let wanted = give_up.question().sources;
        let process = self.process(place);
        let is_gone = match mutation {
            Some(Mutation::NoFlags) if confirmed == wanted => {
                process.holdings.lose(&[id]);
                true
            }
            _ => process.holdings.give_up(id, attempt, &confirmed).is_ok(),
        };
        process.holdings.unflag(attempt);
        process.version += 1;
        if is_gone {
            self.report.given_up += 1;
            if self.nodes[place].disk.live().any(|(live, _)| live == id) {
                self.nodes[place].disk.remove(id);
            }
            self.ledger.shrunk();
            self.timer(place, 2, Timer::Named(None));
        }
    }

    /// Serves a request. No reply yet if it has to wait for something.
    pub(super) fn serve(
        &mut self,
        from: Place,
        to: Place,
        number: u64,
        request: Request,
    ) -> Option<Reply> {
        match request {
            Request::Append(frame) => self.append(to, from, number, frame),
            Request::IsReplicated(source) => {
                let is_dropped = self.process(to).dropped.contains(source);
                Some(Reply::Replicated(is_dropped))
            }
            Request::Claim => Some(self.offer(to, from)),
            Request::Fetch(sources) => Some(self.fetch(to, &sources)),
            Request::WhoHolds(question) => Some(self.who_holds(to, &question)),
            Request::Put {
                id,
                contents,
                received,
            } => self.take(to, (from, number), id, contents, received),
            Request::Report { claim, sources } => {
                self.reported(to, claim, &sources);
                None
            }
            Request::Record(registry) => self.record(to, &registry),
            Request::Inventory => Some(Reply::Inventory(self.inventory(to))),
            Request::Scan { share, open } => self.scan(to, (from, number), &share, &open),
            // Nodes are no stores of objects.
            Request::Bucket(_) => None,
        }
    }

    /// Takes a reply.
    pub(super) fn heard(&mut self, place: Place, waiting: ReplyTarget, reply: Reply) {
        match (waiting, reply) {
            (ReplyTarget::Batch(sequence), reply) => self.batch_heard(place, sequence, &reply),
            (waiting, Reply::Bucket(got)) => self.heard_of_bucket(place, &waiting, got),
            (ReplyTarget::Claim { ingester }, Reply::Claimed(Some(claim))) => {
                self.claimed(place, ingester, claim);
            }
            (ReplyTarget::Consume { number, .. }, Reply::Held(held)) => {
                if let Some(consuming) = self.process(place).consuming.get_mut(&number) {
                    consuming.consume.answered(&held);
                }
                self.consume(place, number);
            }
            (ReplyTarget::Fetch { number }, Reply::Fetched(contents, received)) => {
                self.fetched(place, number, contents, received);
            }
            (ReplyTarget::GiveUp { attempt, .. }, Reply::Held(held)) => {
                if let Some(giving) = self.process(place).giving.get_mut(&attempt) {
                    giving.give_up.answered(&held);
                }
                self.end_giving(place, attempt);
            }
            (
                ReplyTarget::Put {
                    number,
                    segment,
                    node,
                },
                Reply::Stored,
            ) => {
                if let Some(consuming) = self.process(place).consuming.get_mut(&number) {
                    consuming.consume.stored(segment, node);
                }
                self.consume(place, number);
            }
            (ReplyTarget::Repair { segment, node }, Reply::Stored) => {
                let now_ms = self.now_ms;
                self.process(place)
                    .repair
                    .copied(segment, node, true, now_ms);
            }
            (
                ReplyTarget::Record,
                Reply::Recorded {
                    node,
                    known,
                    has_joined,
                },
            ) => self.recorded_by(place, node, &known, has_joined),
            (ReplyTarget::Look { node }, Reply::Inventory(seen)) => self.saw(place, node, seen),
            (ReplyTarget::Collect { query, node }, Reply::Inventory(seen)) => {
                self.saw(place, node, seen.clone());
                self.collected(place, query, node, Some(seen));
            }
            (
                ReplyTarget::Scan { query, task },
                Reply::Scanned {
                    counted,
                    frames,
                    is_remote,
                },
            ) => {
                self.note_remote(place, query, is_remote);
                self.scanned(place, query, task, Some((counted, frames)));
            }
            (waiting @ (ReplyTarget::Put { .. } | ReplyTarget::Repair { .. }), _) => {
                self.failed(place, waiting);
            }
            _ => {}
        }
    }

    fn heard_of_bucket(&mut self, place: Place, waiting: &ReplyTarget, got: BucketReply) {
        match waiting {
            ReplyTarget::Bucket => self.bucket_heard(place, Some(got)),
            ReplyTarget::Remote { name, segment } => {
                self.remote_read(place, *name, *segment, Some(got));
            }
            _ => {}
        }
    }

    fn saw(&mut self, place: Place, node: NodeId, seen: Arc<InventoryView>) {
        let now_ms = self.now_ms;
        self.process(place).seen.insert(node, (seen, now_ms));
    }

    /// Takes note that no reply has come.
    pub(super) fn failed(&mut self, place: Place, waiting: ReplyTarget) {
        let now_ms = self.now_ms;
        match waiting {
            ReplyTarget::Batch(sequence) => self.batch_failed(place, sequence),
            ReplyTarget::Consume { number, node } => {
                if let Some(consuming) = self.process(place).consuming.get_mut(&number) {
                    consuming.consume.unheard(node);
                }
                self.consume(place, number);
            }
            ReplyTarget::Fetch { number } => {
                if let Some(consuming) = self.process(place).consuming.get_mut(&number) {
                    consuming.consume.not_built();
                }
                self.consume(place, number);
            }
            ReplyTarget::GiveUp { attempt, node } => {
                if let Some(giving) = self.process(place).giving.get_mut(&attempt) {
                    giving.give_up.failed(node);
                }
                self.end_giving(place, attempt);
            }
            ReplyTarget::Put {
                number,
                segment,
                node,
            } => {
                if let Some(consuming) = self.process(place).consuming.get_mut(&number) {
                    consuming.consume.not_stored(segment, node);
                }
                self.consume(place, number);
            }
            ReplyTarget::Repair { segment, node } => {
                self.process(place)
                    .repair
                    .copied(segment, node, false, now_ms);
            }
            ReplyTarget::Bucket => self.bucket_heard(place, None),
            ReplyTarget::Remote { name, segment } => self.remote_read(place, name, segment, None),
            ReplyTarget::Collect { query, node } => self.collected(place, query, node, None),
            ReplyTarget::Scan { query, task } => self.scanned(place, query, task, None),
            ReplyTarget::Claim { .. }
            | ReplyTarget::Record
            | ReplyTarget::Look { .. }
            | ReplyTarget::Nothing => {}
        }
    }
}
