//! The disk of a node: journal files, segments and the registry, written, synced and renamed in
//! separate steps.
//!
//! Invariants: what a sync has covered stays; of the rest a crash keeps any part that a file
//! system may keep: a prefix of what was appended, any of the renames and removals. A segment is
//! renamed only after its bytes were synced, so one that has its name is whole.

use std::collections::BTreeMap;
use std::sync::Arc;

use logpond_cluster::Registry;
use logpond_cluster::give_up::Content;
use logpond_record::{Id, SourceId, Timestamp};
use logpond_segment::mem_disk::SeededRandom;
use logpond_segment::sources::SourceSet;

/// A producer's name for a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Batch {
    /// The producer.
    pub(super) epoch: u64,
    /// Its number.
    pub(super) sequence: u64,
}

/// A batch as a journal file holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Frame {
    /// The batch.
    pub(super) batch: Batch,
    /// 0 for the first sending.
    pub(super) attempt: u32,
    /// Its rows.
    pub(super) rows: u64,
}

impl Frame {
    /// A number that every row of the batch carries; what sums are made of.
    pub(super) fn value(&self) -> u64 {
        let key = (self.batch.epoch << 32) ^ self.batch.sequence;
        SeededRandom::new(key).draw() >> 20
    }
}

/// What a closed source holds.
pub(super) type Rows = Arc<Vec<Frame>>;

/// What a segment holds.
pub(super) type Contents = BTreeMap<SourceId, Rows>;

/// What the tally of a source says.
pub(super) fn content(source: SourceId, frames: &[Frame]) -> Content {
    let hash = |frame: &Frame| {
        let of = frame.value() ^ u64::from(frame.attempt);
        let seed = of
            .wrapping_add(source.sequence)
            .wrapping_add(source.incarnation.0 as u64);
        u128::from(SeededRandom::new(seed).draw())
    };
    Content {
        source,
        rows: frames.iter().map(|frame| frame.rows).sum(),
        hash: frames.iter().map(hash).fold(0, u128::wrapping_add),
    }
}

/// A journal file.
#[derive(Clone, Debug)]
pub(super) struct Journal {
    /// Its batches.
    pub(super) frames: Vec<Frame>,
    /// So many of them are synced.
    pub(super) synced: usize,
    /// Whether it no longer grows.
    pub(super) is_closed: bool,
    /// When it was begun, by the node's clock.
    pub(super) received: Timestamp,
    /// Whether it was removed; the removal is not synced.
    is_removed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Name {
    /// A temporary name.
    Temporary,
    /// Its own; the rename is not synced.
    Renamed,
    Live,
    /// Retired; the rename is not synced.
    Retiring,
    Retired,
    /// Removed; that is not synced.
    Removed,
}

/// A segment file.
#[derive(Clone, Debug)]
pub(super) struct Segment {
    /// Its rows.
    pub(super) contents: Contents,
    /// When they were received at the earliest.
    pub(super) received: Timestamp,
    /// Whether its rows cannot be read any more.
    pub(super) is_damaged: bool,
    name: Name,
}

impl Segment {
    /// Its sources.
    pub(super) fn sources(&self) -> SourceSet {
        self.contents.keys().copied().collect()
    }
}

/// A disk.
#[derive(Clone, Debug, Default)]
pub(super) struct Disk {
    journal: BTreeMap<SourceId, Journal>,
    segments: BTreeMap<Id, Segment>,
    /// The registry as synced.
    pub(super) registry: Registry,
    /// One that is being written.
    registry_next: Option<Registry>,
    /// Incarnations that were begun here, for those who would count them.
    pub(super) lives: u64,
    /// Whether enough others have recorded the node.
    pub(super) is_joined: bool,
    /// Whether the node is leaving its cluster.
    pub(super) is_leaving: bool,
    /// Nothing more can be written until then.
    pub(super) full_until_ms: u64,
}

impl Disk {
    /// The journal files.
    pub(super) fn journal(&self) -> impl Iterator<Item = (SourceId, &Journal)> {
        let each = self.journal.iter();
        each.filter(|(_, file)| !file.is_removed)
            .map(|(source, file)| (*source, file))
    }

    /// A journal file.
    pub(super) fn file(&self, source: SourceId) -> Option<&Journal> {
        self.journal.get(&source).filter(|file| !file.is_removed)
    }

    /// A journal file, to write to it.
    pub(super) fn file_mut(&mut self, source: SourceId) -> Option<&mut Journal> {
        let file = self.journal.get_mut(&source);
        file.filter(|file| !file.is_removed)
    }

    /// Creates a journal file.
    pub(super) fn create(&mut self, source: SourceId, received: Timestamp) {
        let file = Journal {
            frames: Vec::new(),
            synced: 0,
            is_closed: false,
            received,
            is_removed: false,
        };
        let before = self.journal.insert(source, file);
        debug_assert!(before.is_none(), "{source} was there");
    }

    /// Removes journal files.
    pub(super) fn remove_files(&mut self, sources: &SourceSet) {
        for (source, file) in &mut self.journal {
            file.is_removed |= sources.contains(*source);
        }
    }

    /// Writes a segment under a temporary name, synced but for the name.
    pub(super) fn write(&mut self, id: Id, contents: Contents, received: Timestamp) {
        let segment = Segment {
            contents,
            received,
            is_damaged: false,
            name: Name::Temporary,
        };
        self.segments.insert(id, segment);
    }

    /// Gives a segment its name.
    pub(super) fn rename(&mut self, id: Id) {
        if let Some(segment) = self.segments.get_mut(&id) {
            segment.name = Name::Renamed;
        }
    }

    /// Takes the names of retired segments away; they can still be read.
    pub(super) fn retire(&mut self, ids: &[Id]) {
        for id in ids {
            if let Some(segment) = self.segments.get_mut(id) {
                segment.name = Name::Retiring;
            }
        }
    }

    /// Removes a segment.
    pub(super) fn remove(&mut self, id: Id) {
        if let Some(segment) = self.segments.get_mut(&id) {
            segment.name = Name::Removed;
        }
    }

    /// Removes everything that is retired.
    pub(super) fn purge(&mut self) {
        let retired = |name| matches!(name, Name::Retired);
        self.segments.retain(|_, segment| !retired(segment.name));
    }

    /// Syncs the directories.
    pub(super) fn sync_names(&mut self) {
        self.journal.retain(|_, file| !file.is_removed);
        self.segments
            .retain(|_, segment| segment.name != Name::Removed);
        for segment in self.segments.values_mut() {
            segment.name = match segment.name {
                Name::Renamed => Name::Live,
                Name::Retiring => Name::Retired,
                name => name,
            };
        }
    }

    /// Begins to write the registry.
    pub(super) fn write_registry(&mut self, registry: &Registry) {
        self.registry_next = Some(registry.clone());
    }

    /// Syncs what was written of the registry.
    pub(super) fn sync_registry(&mut self) {
        if let Some(next) = self.registry_next.take() {
            self.registry = next;
        }
    }

    /// The segments that the next process finds, and that are synced, name and all.
    pub(super) fn live(&self) -> impl Iterator<Item = (Id, &Segment)> {
        self.named().filter(|(_, segment)| !segment.is_damaged)
    }

    /// The same with those that are damaged: who has opened one before knows what it lists.
    pub(super) fn named(&self) -> impl Iterator<Item = (Id, &Segment)> {
        let live = |segment: &&Segment| segment.name == Name::Live;
        let each = self.segments.iter().map(|(id, segment)| (*id, segment));
        each.filter(move |(_, segment)| live(segment))
    }

    /// A segment that is open: live, or retired a short time ago. It may be damaged.
    pub(super) fn opened(&self, id: Id) -> Option<&Segment> {
        let opened = |segment: &&Segment| {
            !matches!(
                segment.name,
                Name::Temporary | Name::Renamed | Name::Removed
            )
        };
        self.segments.get(&id).filter(opened)
    }

    /// A segment that can be read.
    pub(super) fn readable(&self, id: Id) -> Option<&Segment> {
        self.opened(id).filter(|segment| !segment.is_damaged)
    }

    /// Damages a segment.
    pub(super) fn damage(&mut self, id: Id) {
        if let Some(segment) = self.segments.get_mut(&id) {
            segment.is_damaged = true;
        }
    }

    /// What is left after the process or the power has ended.
    pub(super) fn crash(&mut self, random: &mut SeededRandom) {
        for file in self.journal.values_mut() {
            file.is_removed &= random.one_in(2);
            let unsynced = (file.frames.len() - file.synced) as u64;
            let kept = file.synced + random.below(unsynced + 1) as usize;
            file.frames.truncate(kept);
        }
        for segment in self.segments.values_mut() {
            let was = segment.name;
            segment.name = match (was, random.one_in(2)) {
                (Name::Temporary, _) | (Name::Renamed, false) => Name::Removed,
                (Name::Retiring, true) => Name::Retired,
                (Name::Removed, true) => Name::Removed,
                (Name::Retired, _) => Name::Retired,
                (Name::Live | Name::Renamed | Name::Retiring | Name::Removed, _) => Name::Live,
            };
        }
        if random.one_in(2) {
            self.sync_registry()
        } else {
            self.registry_next = None;
        }
        self.sync_names();
    }
}
