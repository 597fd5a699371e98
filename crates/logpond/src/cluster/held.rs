//! What this node holds, as an inventory.
//!
//! An inventory is made anew only when something has changed; the part of the segments and of what
//! was heard, which is large and changes rarely, only when these have.

use std::sync::{Arc, Mutex, PoisonError};

use logpond_cluster::{HeldJournal, HeldSegment, Indexed, Inventory, Living, Recent, Registry};
use logpond_record::SourceId;
use logpond_segment::batches::BatchSet;
use logpond_segment::journal::{Snapshot, Summary, Visible};
use xxhash_rust::xxh3::xxh3_128;

use super::Identity;
use crate::query;
use crate::store::{LiveSegment, LiveSet, Segments};

/// The files of this node.
pub struct Held {
    identity: Identity,
    live: LiveSet,
    visible: Arc<Visible>,
    last: Mutex<Option<Last>>,
    stored: Mutex<Option<(Segments, Arc<Indexed>)>>,
}

/// The last inventory, and what it was made of.
struct Last {
    segments: Segments,
    journal: u64,
    registry: Arc<Registry>,
    inventory: Arc<Indexed>,
}

impl Held {
    /// What is held in these.
    pub fn new(identity: Identity, live: LiveSet, visible: Arc<Visible>) -> Held {
        Held {
            identity,
            live,
            visible,
            last: Mutex::new(None),
            stored: Mutex::new(None),
        }
    }

    /// Which of some batches are here as they were first sent.
    pub fn originals(&self, wanted: &BatchSet) -> BatchSet {
        // The journal first: what moves between the two steps is then in both.
        let journal = self.visible.snapshot();
        query::originals(&journal, &self.live.snapshot(), wanted)
    }

    /// The inventory now, of segments alone: it changes rarely.
    pub fn stored(&self) -> Arc<Indexed> {
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
        inventory.segments = Arc::new(describe_all(&segments));
        let inventory = Arc::new(Indexed::new(inventory));
        *last = Some((segments, Arc::clone(&inventory)));
        inventory
    }

    /// The inventory now.
    pub fn inventory(&self, registry: Arc<Registry>) -> Arc<Indexed> {
        // The journal first: what moves between the two steps is then in both.
        let journal = self.visible.snapshot();
        let segments = self.live.snapshot();
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = &*last
            && Arc::ptr_eq(&last.segments, &segments)
            && last.journal == journal.version
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
            living: journal.latest.map(|source| Living {
                incarnation: source.incarnation,
                end: source.sequence + 1,
            }),
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
            Indexed::new(Inventory::of_parts(
                Recent {
                    base: recent.base + 1,
                    ..recent
                },
                listed,
                Arc::clone(&registry),
            ))
        });
        let inventory = Arc::new(inventory);
        *last = Some(Last {
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
