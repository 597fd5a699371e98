//! A store of another cluster that has the same bucket: it writes to the same chains, and nobody here
//! has heard of its nodes.
//!
//! Invariant: it keeps the rules, so whatever is wrong is wrong here.

use std::sync::Arc;

use logpond_cluster::Day;
use logpond_cluster::chain::{Change, Commit, Link, Step};
use logpond_record::{Id, Incarnation, SourceId, Timestamp};
use logpond_segment::sources::SourceSet;

use super::bucket::{Ask, BucketReply, Object};
use super::disk::{Batch, Contents, Frame};
use super::message::Event;
use super::store::RETENTION_NS;
use super::world::{EPOCH_NS, World};

/// The producers of the other cluster have numbers from this on.
const EPOCH: u64 = 1_000;

/// The other store.
#[derive(Debug)]
pub(super) struct ForeignStore {
    incarnation: Incarnation,
    next: u64,
    /// Its first sources have outlived their retention.
    old: SourceSet,
    committing: Option<(Day, Commit)>,
    /// The link that it is about to write.
    pending: Option<Link>,
}

impl ForeignStore {
    pub(super) fn new(incarnation: Incarnation) -> ForeignStore {
        ForeignStore {
            incarnation,
            next: 0,
            old: SourceSet::new(),
            committing: None,
            pending: None,
        }
    }
}

impl World {
    /// The other store does its next step.
    pub(super) fn foreign_step(&mut self) {
        let Some(mut foreign) = self.foreign.take() else {
            return;
        };
        if let Some(link) = foreign.pending.take() {
            // It reads the head again, whether this arrives or not.
            if !self.random.one_in(20) {
                self.serve_bucket(Ask::Create(Arc::new(link)));
            }
        } else if let Some((day, commit)) = &mut foreign.committing {
            let nonce = (u128::from(self.random.draw()) << 64) | u128::from(self.random.draw());
            let head = self.bucket.as_ref().map(|bucket| bucket.head(*day));
            match commit.on_head(&head.unwrap_or_else(|| Link::empty(*day)), nonce) {
                Step::Create(link) => foreign.pending = Some(link),
                Step::End(_) => {
                    self.report.foreign += 1;
                    let day = *day;
                    foreign.committing = None;
                    self.sweep_foreign(day);
                }
            }
        } else if !self.is_healing() {
            self.begin_foreign(&mut foreign);
        }
        self.foreign = Some(foreign);
        let after_ms = 1 + self.random.below(300);
        self.at(self.now_ms + after_ms, Event::Foreign);
    }

    /// Removes links that are no heads, at once: nobody needs them but who reads slowly.
    fn sweep_foreign(&mut self, day: Day) {
        let head = self
            .bucket
            .as_ref()
            .map_or(0, |bucket| bucket.head(day).number);
        if let BucketReply::Links(links) = self.serve_bucket(Ask::Links(Some(day))) {
            for (day, number, _) in links.into_iter().filter(|(_, number, _)| *number < head) {
                self.serve_bucket(Ask::RemoveLink(day, number));
            }
        }
    }

    fn begin_foreign(&mut self, foreign: &mut ForeignStore) {
        let at = Timestamp(EPOCH_NS + self.now_ms as i64 * 1_000_000);
        let (object, replaced) = if self.random.one_in(3) {
            self.merged_foreign(foreign, at)
        } else {
            (self.made_foreign(foreign, at), 0)
        };
        if replaced == 1 {
            return;
        }
        let id = Id(self.wide());
        let change = Change::List(object.listed(id));
        foreign.committing = Some((object.day(), Commit::new(change, at)));
        self.serve_bucket(Ask::Put(id, Arc::new(object)));
    }

    /// A segment of a few new sources; some are as old as what is to go.
    fn made_foreign(&mut self, foreign: &mut ForeignStore, at: Timestamp) -> Object {
        let is_old = self.random.one_in(6);
        let mut contents = Contents::new();
        for _ in 0..1 + self.random.below(3) {
            let source = SourceId {
                incarnation: foreign.incarnation,
                sequence: foreign.next,
            };
            foreign.next += 1;
            let batch = Batch {
                epoch: EPOCH,
                sequence: source.sequence,
            };
            let rows = 1 + self.random.below(9);
            let frame = Frame {
                batch,
                attempt: 0,
                rows,
            };
            self.ledger.sent(batch, rows);
            self.ledger.appended(source, frame);
            self.ledger.closed(source, &[frame]);
            contents.insert(source, vec![frame].into());
            if is_old {
                foreign.old.insert(source);
            }
        }
        let received = if is_old {
            at.saturating_add(-3 * RETENTION_NS)
        } else {
            at
        };
        Object { contents, received }
    }

    /// What some of its segments of one day come to, and how many these are.
    fn merged_foreign(&mut self, foreign: &ForeignStore, at: Timestamp) -> (Object, usize) {
        let day = Day::of(at);
        let head = self.bucket.as_ref().map(|bucket| bucket.head(day));
        let listed = head.into_iter().flat_map(|head| head.segments);
        let own = listed.filter(|s| s.sources.incarnations().any(|i| i == foreign.incarnation));
        let own: Vec<Id> = own.map(|s| s.id).take(3).collect();
        let mut merged = Object {
            contents: Contents::new(),
            received: at,
        };
        if own.len() < 2 {
            return (merged, 1);
        }
        for id in &own {
            let object = self.bucket.as_ref().and_then(|bucket| bucket.object(*id));
            let object = object.cloned();
            merged
                .contents
                .extend(object.iter().flat_map(|o| o.contents.clone()));
        }
        (merged, own.len())
    }

    /// What of the other cluster a complete answer to a question of now counts: what was listed before
    /// any node here has read the bucket last.
    pub(super) fn expected_foreign(&self) -> SourceSet {
        let (Some(bucket), Some(foreign)) = (&self.bucket, &self.foreign) else {
            return SourceSet::new();
        };
        let processes = self.nodes.iter().filter_map(|node| node.process.as_ref());
        let offloads = processes.filter_map(|process| process.offload.as_ref());
        let read_ms = offloads
            .map(|offload| offload.known_until_ms(self.now_ms))
            .min();
        let fresh = bucket.listed_before(foreign.incarnation, read_ms.unwrap_or(0));
        fresh.without(&foreign.old)
    }
}
