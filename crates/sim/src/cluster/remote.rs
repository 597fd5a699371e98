//! What a store does about what the bucket lists: reads it for queries, and leaves to it what the local
//! disk need not keep.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use logpond_cluster::BucketView;
use logpond_record::{Id, SourceId};
use logpond_segment::sources::SourceSet;

use super::bucket::{Ask, BucketReply, Object};
use super::disk::{Contents, Frame};
use super::message::{BUCKET, Place, Reply, ReplyTarget, Request};
use super::world::{Mutation, World};

/// Segments of the bucket.
pub(super) type Remote = Vec<(Id, Arc<Object>)>;

/// A share of a question that waits for the store.
#[derive(Debug)]
pub(super) struct ReadTask {
    pub(super) to: Place,
    pub(super) number: u64,
    pub(super) counted: SourceSet,
    pub(super) frames: Vec<(SourceId, Frame)>,
    /// What has not come yet, with what is not to be counted of it.
    pub(super) left: BTreeMap<Id, SourceSet>,
}

impl World {
    /// The sources that are read from the local disk for good: not those of copies or of what is leaving.
    pub(super) fn staying(&self, place: Place) -> SourceSet {
        let mut staying = SourceSet::new();
        let process = self.nodes[place].process.as_ref();
        if let Some(process) = process {
            let live = process.holdings.live();
            let is_leaving = |id: &Id| process.offload.as_ref().is_some_and(|o| o.is_leaving(*id));
            live.filter(|(id, _)| !is_leaving(id))
                .for_each(|(_, sources)| staying.union_with(sources));
        }
        staying
    }

    /// Takes over what is new in the bucket, drops what is no longer there, and gives up what can be
    /// read from there.
    pub(super) fn follow_bucket(&mut self, place: Place) {
        let here = self.staying(place);
        let offload = self.offload(place);
        let before: BTreeSet<Id> = offload.remote.keys().copied().collect();
        for (id, object) in &offload.opened {
            let is_wanted = !offload.remote.contains_key(id) && !offload.expired.contains(id);
            if is_wanted && !here.contains_all(&object.sources()) {
                offload.remote.insert(*id, Arc::clone(object));
            }
        }
        let opened = &offload.opened;
        offload.remote.retain(|id, _| opened.contains_key(id));
        offload.followed();
        if !before.iter().eq(offload.remote.keys()) {
            self.process(place).version += 1;
        }
        self.leave_some(place);
        self.give_up_leaving(place);
    }

    /// Now and then the disk is to keep less.
    fn leave_some(&mut self, place: Place) {
        if !self.random.one_in(4) {
            return;
        }
        let listed = self.offload(place).listed();
        let live: Vec<(Id, SourceSet)> = self
            .process(place)
            .holdings
            .live()
            .map(|(id, sources)| (id, sources.clone()))
            .collect();
        for (id, sources) in live {
            let may_go = match self.mutation {
                Some(Mutation::DropUnlisted) => {
                    listed.contains_all(&sources) || self.offload(place).has_uploaded(id)
                }
                _ => listed.contains_all(&sources),
            };
            if may_go && self.random.one_in(2) {
                self.offload(place).leaving.insert(id);
            }
        }
    }

    /// Gives up the local segments that are to go and whose sources can all be read from the bucket.
    fn give_up_leaving(&mut self, place: Place) {
        let offload = self.offload(place);
        let sets: Vec<SourceSet> = offload.remote.values().map(|o| o.sources()).collect();
        let there = SourceSet::union_of(&sets);
        let is_hasty = self.mutation == Some(Mutation::DropUnlisted);
        let process = self.process(place);
        let live: Vec<(Id, SourceSet)> = process
            .holdings
            .live()
            .map(|(id, sources)| (id, sources.clone()))
            .collect();
        let is_live = |id: &Id| live.iter().any(|(live, _)| live == id);
        let offload = self.offload(place);
        offload.leaving.retain(is_live);
        let gone: Vec<Id> = live
            .iter()
            .filter(|(id, sources)| {
                let is_asked = is_hasty && offload.leaving.contains(id);
                offload.is_leaving(*id) && (there.contains_all(sources) || is_asked)
            })
            .map(|(id, _)| *id)
            .collect();
        if gone.is_empty() {
            return;
        }
        for id in &gone {
            offload.leaving.remove(id);
            offload.copies.remove(id);
        }
        self.report.left_to_bucket += gone.len() as u64;
        let process = self.process(place);
        process.holdings.lose(&gone);
        process.version += 1;
        let disk = &mut self.nodes[place].disk;
        let named: Vec<Id> = disk.live().map(|(id, _)| id).collect();
        let named: Vec<Id> = gone.into_iter().filter(|id| named.contains(id)).collect();
        disk.retire(&named);
        self.ledger.shrunk();
        self.timer(place, 2, super::message::Timer::Named(None));
    }

    /// What of its own a node is to merge with what the bucket lists of the same sources, and that.
    pub(super) fn overlapping(&self, place: Place) -> Option<(Vec<Id>, Remote)> {
        let process = self.nodes[place].process.as_ref()?;
        let offload = process.offload.as_ref()?;
        let here = self.staying(place);
        let is_shared = |object: &Object| {
            let sources = object.sources();
            !sources.is_disjoint(&here) && !here.contains_all(&sources)
        };
        let (_, first) = offload.remote.iter().find(|(_, o)| is_shared(o))?;
        let mut sources = first.sources();
        let live = || {
            process
                .holdings
                .live()
                .filter(|(id, _)| !offload.is_leaving(*id))
        };
        loop {
            let size = sources.len();
            let own = live().filter(|(_, own)| !own.is_disjoint(&sources));
            let sets: Vec<SourceSet> = own.map(|(_, own)| own.clone()).collect();
            sets.iter().for_each(|own| sources.union_with(own));
            for object in offload.remote.values() {
                let of = object.sources();
                if !of.is_disjoint(&sources) {
                    sources.union_with(&of);
                }
            }
            if sources.len() == size {
                break;
            }
        }
        let own = live().filter(|(_, own)| !own.is_disjoint(&sources));
        let own: Vec<Id> = own.map(|(id, _)| id).collect();
        let remote = offload.remote.iter();
        let remote = remote.filter(|(_, object)| !object.sources().is_disjoint(&sources));
        let remote = remote
            .map(|(id, object)| (*id, Arc::clone(object)))
            .collect();
        Some((own, remote))
    }

    /// What a node says that it knows of the bucket.
    pub(super) fn bucket_view(&self, place: Place) -> BucketView {
        let process = self.nodes[place].process.as_ref();
        match process.and_then(|process| process.offload.as_ref()) {
            None => BucketView::None,
            Some(offload) if offload.is_unread => BucketView::Unread,
            Some(_) => BucketView::Read,
        }
    }

    /// Asks the store for what a share needs of it. The reply follows.
    pub(super) fn read_remote(&mut self, place: Place, reading: ReadTask) {
        let ids: Vec<Id> = reading.left.keys().copied().collect();
        let name = self.random.draw();
        self.process(place).reading.insert(name, reading);
        for segment in ids {
            let waiting = ReplyTarget::Remote { name, segment };
            self.request(
                place,
                BUCKET,
                Request::Bucket(Ask::Segment(segment)),
                waiting,
            );
        }
    }

    /// The store has replied to one who reads, or has not: then the rows are not counted.
    pub(super) fn remote_read(
        &mut self,
        place: Place,
        name: u64,
        segment: Id,
        got: Option<BucketReply>,
    ) {
        let Some(reading) = self.process(place).reading.get_mut(&name) else {
            return;
        };
        let excluded = reading.left.remove(&segment).unwrap_or_default();
        let object = match got {
            Some(BucketReply::Segment(object)) => object,
            _ => None,
        };
        match object {
            Some(object) => {
                let part = (&mut reading.counted, &mut reading.frames);
                count(&object.contents, &excluded, false, part);
                self.report.remote_reads += 1;
            }
            None => self.report.remote_failures += 1,
        }
        let process = self.process(place);
        if process
            .reading
            .get(&name)
            .is_some_and(|r| r.left.is_empty())
            && let Some(done) = process.reading.remove(&name)
        {
            let reply = Reply::Scanned {
                counted: done.counted,
                frames: done.frames,
                is_remote: true,
            };
            self.reply(place, done.to, done.number, reply);
        }
    }
}

impl super::offload::Offload {
    /// Whether a local segment is to be given up once it can be read from the bucket.
    pub(super) fn is_leaving(&self, id: Id) -> bool {
        self.copies.contains_key(&id) || self.leaving.contains(&id)
    }
}

/// Counts what is in a segment, but for some of it.
pub(super) fn count(
    contents: &Contents,
    excluded: &SourceSet,
    ignores_exclusions: bool,
    (counted, frames): (&mut SourceSet, &mut Vec<(SourceId, Frame)>),
) {
    for (source, rows) in contents {
        let is_excluded = excluded.contains(*source);
        if !is_excluded {
            counted.insert(*source);
        }
        if !is_excluded || ignores_exclusions {
            frames.extend(rows.iter().map(|frame| (*source, *frame)));
        }
    }
}
