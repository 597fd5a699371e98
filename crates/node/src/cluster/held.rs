//! What this node holds, as an inventory.
//!
//! An inventory is made anew only when something has changed; the part of the segments and of what
//! was heard, which is large and changes rarely, only when these have.

use std::sync::{Arc, Mutex, PoisonError};

use logpond_cluster::{
    BucketView, CurrentIncarnation, HeldJournal, HeldSegment, IndexedInventory, Inventory, Recent,
    Registry,
};
use logpond_record::{Incarnation, SourceId};
use logpond_segment::batches::BatchSet;
use logpond_segment::journal::{Snapshot, Summary, Visible};
use xxhash_rust::xxh3::xxh3_128;

use super::Identity;
use logpond_engine::query;
use logpond_engine::store::{LiveSegment, LiveSet, Segments, local};

/// The files of this node.
pub struct NodeFiles {
    identity: Identity,
    live: LiveSet,
    visible: Arc<Visible>,
    has_bucket: bool,
    /// What was born last; it may not have written anything yet.
    born: Mutex<Option<Incarnation>>,
    last: Mutex<Option<LastInventory>>,
    stored: Mutex<Option<(Segments, Arc<IndexedInventory>)>>,
}

/// The last inventory, and what it was made of.
struct LastInventory {
    segments: Segments,
    journal: u64,
    registry: Arc<Registry>,
    inventory: Arc<IndexedInventory>,
}

impl NodeFiles {
    /// What is held in these.
    pub fn new(
        identity: Identity,
        live: LiveSet,
        visible: Arc<Visible>,
        has_bucket: bool,
    ) -> NodeFiles {
        NodeFiles {
            identity,
            live,
            visible,
            has_bucket,
            born: Mutex::default(),
            last: Mutex::new(None),
            stored: Mutex::new(None),
        }
    }

    /// Notes an incarnation that is about to take records in, before anybody hears of it: who has
    /// heard of it is told then that it has none yet.
    pub fn note_born(&self, incarnation: Incarnation) {
        *self.born.lock().unwrap_or_else(PoisonError::into_inner) = Some(incarnation);
    }

    /// What is written now, as far as a snapshot shows; `born` is of before that.
    fn living(journal: &Snapshot, born: Option<Incarnation>) -> Option<CurrentIncarnation> {
        let written = journal.latest.map(|source| CurrentIncarnation {
            incarnation: source.incarnation,
            end: source.sequence + 1,
        });
        let unwritten = born.map(|incarnation| CurrentIncarnation {
            incarnation,
            end: 0,
        });
        let is_latest =
            |living: &CurrentIncarnation| Some(living.incarnation) == born || born.is_none();
        written.filter(is_latest).or(unwritten)
    }

    /// Which of some batches are here as they were first sent.
    pub fn originals(&self, wanted: &BatchSet) -> BatchSet {
        // The journal first: what moves between the two steps is then in both.
        let journal = self.visible.snapshot();
        query::originals(&journal, &self.live.snapshot(), wanted)
    }

    /// Which of some batches were taken in here, as far as the journal says: what others sent is in no
    /// file of it, and what left it is remembered for a while.
    pub fn taken(&self, wanted: &BatchSet) -> BatchSet {
        let journal = self.visible.snapshot();
        let mut taken = query::originals(&journal, &[], wanted);
        taken.union_with(&journal.released.intersection(wanted));
        taken
    }

    /// What is known of the bucket.
    fn bucket(&self) -> BucketView {
        if !self.has_bucket {
            BucketView::None
        } else if self.live.put_aside().has_elsewhere() {
            BucketView::Unread
        } else {
            BucketView::Read
        }
    }

    /// The inventory now, of segments on this node's disk alone: it changes rarely.
    pub fn stored(&self) -> Arc<IndexedInventory> {
        let segments = self.live.snapshot();
        let mut last = self.stored.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, inventory)) = &*last
            && Arc::ptr_eq(of, &segments)
        {
            return Arc::clone(inventory);
        }
        let version = last
            .as_ref()
            .map_or(0, |(_, last)| last.inventory().version + 1);
        let mut inventory = Inventory::empty(self.identity.node, self.identity.process);
        (inventory.version, inventory.base) = (version, version);
        let on_disk = local(&segments).map(|segment| describe(segment));
        inventory.segments = Arc::new(on_disk.collect());
        let inventory = Arc::new(IndexedInventory::new(inventory));
        *last = Some((segments, Arc::clone(&inventory)));
        inventory
    }

    /// The inventory now.
    pub fn inventory(&self, registry: Arc<Registry>) -> Arc<IndexedInventory> {
        // The journal first: what moves between the two steps is then in both.
        let bucket = self.bucket();
        let born = *self.born.lock().unwrap_or_else(PoisonError::into_inner);
        let journal = self.visible.snapshot();
        let segments = self.live.snapshot();
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = &*last
            && Arc::ptr_eq(&last.segments, &segments)
            && last.journal == journal.version
            && last.inventory.inventory().bucket == bucket
            && Arc::ptr_eq(&last.registry, &registry)
        {
            return Arc::clone(&last.inventory);
        }
        let before = last.take();
        let known = before.as_ref().map(|last| last.inventory.inventory());
        let recent = Recent {
            node: self.identity.node,
            process: self.identity.process,
            version: known.map_or(0, |known| known.version + 1),
            base: known.map_or(0, |known| known.base),
            journal: journal_files(&journal),
            retries: query::copies(&journal, &segments),
            living: NodeFiles::living(&journal, born),
            bucket,
        };
        let same = before.as_ref().filter(|last| {
            Arc::ptr_eq(&last.segments, &segments) && Arc::ptr_eq(&last.registry, &registry)
        });
        let inventory = same.and_then(|last| last.inventory.with_recent(recent.clone()));
        let inventory = inventory.unwrap_or_else(|| {
            let listed = match &before {
                Some(last) if Arc::ptr_eq(&last.segments, &segments) => {
                    Arc::clone(&last.inventory.inventory().segments)
                }
                _ => Arc::new(describe_all(&segments)),
            };
            IndexedInventory::new(Inventory::of_parts(
                Recent {
                    base: recent.base + 1,
                    ..recent
                },
                listed,
                Arc::clone(&registry),
            ))
        });
        let inventory = Arc::new(inventory);
        *last = Some(LastInventory {
            segments,
            journal: journal.version,
            registry,
            inventory: Arc::clone(&inventory),
        });
        inventory
    }
}

fn describe_all(segments: &Segments) -> Vec<HeldSegment> {
    segments.iter().map(|segment| describe(segment)).collect()
}

fn describe(segment: &LiveSegment) -> HeldSegment {
    let manifest = segment.file().manifest();
    HeldSegment {
        id: manifest.id,
        digest: xxh3_128(manifest.to_json().as_bytes()),
        bytes: segment.file().bytes(),
        rows: manifest.rows,
        time_min: manifest.time_min,
        time_max: manifest.time_max,
        received_min: manifest.received_min,
        received_max: manifest.received_max,
        sources: segment.sources().clone(),
        is_remote: segment.is_remote(),
    }
}

fn journal_files(journal: &Snapshot) -> Vec<HeldJournal> {
    let file = |source: SourceId, bytes, summary: &Summary, is_open| HeldJournal {
        source,
        bytes,
        rows: summary.rows(),
        received_min: summary.received_min,
        received_max: summary.received_max,
        last: summary.last,
        is_open,
    };
    let closed = journal.closed.iter();
    let closed = closed.map(|c| file(c.source, c.bytes, &c.summary, false));
    let open = journal.open.iter();
    let open = open.map(|o| file(o.source, o.synced_bytes, &o.summary, true));
    closed.chain(open).collect()
}

#[cfg(test)]
mod tests {
    use logpond_cluster::{NodeId, ProcessId};

    use super::*;

    #[test]
    fn what_is_born_has_nothing_until_it_has_written() {
        let held = |latest: Option<(u128, u64)>, born: Option<u128>| {
            let latest = latest.map(|(incarnation, sequence)| SourceId {
                incarnation: Incarnation(incarnation),
                sequence,
            });
            let journal = Snapshot {
                latest,
                ..Snapshot::default()
            };
            let living = NodeFiles::living(&journal, born.map(Incarnation));
            living.map(|living| (living.incarnation.0, living.end))
        };
        assert_eq!(held(None, None), None);
        assert_eq!(held(Some((1, 4)), None), Some((1, 5)));
        assert_eq!(held(None, Some(1)), Some((1, 0)));
        assert_eq!(held(Some((1, 0)), Some(1)), Some((1, 1)));
        // The one before it has ended.
        assert_eq!(held(Some((1, 4)), Some(2)), Some((2, 0)));
    }

    /// A birth changes the registry, and with it the inventory.
    #[test]
    fn an_inventory_tells_of_a_birth() {
        let identity = Identity {
            node: NodeId(1),
            process: ProcessId(2),
        };
        let held = NodeFiles::new(identity, LiveSet::default(), Arc::default(), false);
        let before = held.inventory(Arc::default());
        assert_eq!(before.inventory().living, None);
        held.note_born(Incarnation(3));
        let living = held.inventory(Arc::default()).inventory().living;
        let nothing_yet = CurrentIncarnation {
            incarnation: Incarnation(3),
            end: 0,
        };
        assert_eq!(living, Some(nothing_yet));
    }
}
