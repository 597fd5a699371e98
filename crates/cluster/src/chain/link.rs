//! One link of a chain, and what the next one may be.

use logpond_record::{Id, Timestamp};
use logpond_segment::file::Manifest;
use logpond_segment::sources::SourceSet;

use crate::Day;

/// The most segments of a link: at a gibibyte of lines each some hundred terabytes a day.
pub const SEGMENTS_MAX: usize = 100_000;

/// A segment as a link lists it: what planners and the first read of it need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SegmentEntry {
    /// Its name.
    pub id: Id,
    /// Length of the object in bytes.
    pub bytes: u64,
    /// Where its directory begins: all behind it is read in one go.
    pub index_from: u64,
    /// Its rows.
    pub rows: u64,
    /// Bytes of its lines.
    pub line_bytes: u64,
    /// Earliest and latest event time.
    pub time: (Timestamp, Timestamp),
    /// Earliest and latest receive time.
    pub received: (Timestamp, Timestamp),
    /// Whether it is compressed for rest.
    pub cold: bool,
    /// What it holds.
    pub sources: SourceSet,
}

impl SegmentEntry {
    /// A segment of which this is the manifest, so many bytes long.
    pub fn new(manifest: &Manifest, bytes: u64, index_from: u64) -> SegmentEntry {
        SegmentEntry {
            id: manifest.id,
            bytes,
            index_from,
            rows: manifest.rows,
            line_bytes: manifest.line_bytes,
            time: (manifest.time_min, manifest.time_max),
            received: (manifest.received_min, manifest.received_max),
            cold: manifest.cold,
            sources: manifest.sources.iter().map(|s| s.source).collect(),
        }
    }

    /// The day that it belongs to.
    pub fn day(&self) -> Day {
        Day::of(self.received.0)
    }
}

/// An object that counts no more and may still be read by those who have not heard of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DroppedObject {
    /// The segment.
    pub id: Id,
    /// Since when, by the clock of the writer who dropped it.
    pub since: Timestamp,
}

/// A link: what counts of a day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The day.
    pub day: Day,
    /// Its place in the chain; 0 is the empty one that nobody wrote.
    pub number: u64,
    /// Random: tells its writer, if the reply was lost, that this one is its own.
    pub nonce: u128,
    /// What counts, in the order of ids.
    pub segments: Vec<SegmentEntry>,
    /// What counts no more and has not been removed.
    pub dropped: Vec<DroppedObject>,
    /// Sources that were listed and have expired: they must not come back.
    pub expired: SourceSet,
}

/// What a writer wants of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// List a segment whose object is there, in place of those whose sources it holds.
    List(SegmentEntry),
    /// Let segments go that are too old, or too many; those among them that are listed.
    Expire(Vec<Id>),
    /// Drop objects that no link lists: they are to be removed, and nobody may list them from then on.
    Drop(Vec<Id>),
    /// Forget dropped segments whose objects were removed.
    Forget(Vec<Id>),
}

/// The reason why nothing needs to be written, or must not be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoWriteReason {
    /// It is as was wanted.
    Done,
    /// Other segments hold all sources of the one that was to be listed, or did until they expired. Its
    /// writer gives it up and takes these.
    Held,
    /// These hold some of its sources and others; somebody must merge them with it first.
    Overlaps(Vec<Id>),
    /// Its object was dropped, and may be removed at any moment. Its writer puts its rows into another one.
    Dropped,
    /// The day has [`SEGMENTS_MAX`] segments; some must be merged first.
    Full,
}

/// What is to be done about a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Write this link; its nonce is still to be chosen.
    Write(Link),
    /// Nothing.
    Settled(NoWriteReason),
}

impl Link {
    /// The link before the first one.
    pub fn empty(day: Day) -> Link {
        Link {
            day,
            number: 0,
            nonce: 0,
            segments: Vec::new(),
            dropped: Vec::new(),
            expired: SourceSet::new(),
        }
    }

    /// The segment of this name, if it counts.
    pub fn segment(&self, id: Id) -> Option<&SegmentEntry> {
        let at = self.segments.binary_search_by_key(&id, |s| s.id).ok()?;
        Some(&self.segments[at])
    }

    /// Whether an object is to be removed, or was.
    pub fn is_dropped(&self, id: Id) -> bool {
        self.dropped.iter().any(|dropped| dropped.id == id)
    }

    /// All sources that count.
    pub fn sources(&self) -> SourceSet {
        SourceSet::union_of(self.segments.iter().map(|s| &s.sources))
    }

    /// What a change asked for at `now` comes to behind this link.
    pub fn decide(&self, change: &Change, now: Timestamp) -> Verdict {
        match change {
            Change::List(segment) => self.list(segment, now),
            Change::Expire(ids) => self.expire(ids, now),
            Change::Drop(ids) => self.drop_unlisted(ids, now),
            Change::Forget(ids) => self.forget(ids),
        }
    }

    fn list(&self, new: &SegmentEntry, now: Timestamp) -> Verdict {
        if self.segment(new.id).is_some() {
            return Verdict::Settled(NoWriteReason::Done);
        }
        let touched: Vec<&SegmentEntry> = self
            .segments
            .iter()
            .filter(|s| !s.sources.is_disjoint(&new.sources))
            .collect();
        let mut known = SourceSet::union_of(touched.iter().map(|s| &s.sources));
        known.union_with(&self.expired);
        let ids = || touched.iter().map(|s| s.id);
        let is_larger = |s: &&SegmentEntry| new.sources.contains_all(&s.sources);
        let replaces = touched.iter().all(is_larger) && new.sources.is_disjoint(&self.expired);
        let is_better = match touched[..] {
            [] => true,
            // Two writers made the same of the same files: the first one stays, or they would
            // replace each other for ever.
            [one] => one.sources != new.sources || (new.cold && !one.cold),
            _ => true,
        };
        if known.contains_all(&new.sources) && !(replaces && is_better) {
            return Verdict::Settled(NoWriteReason::Held);
        }
        if !replaces {
            return Verdict::Settled(NoWriteReason::Overlaps(ids().collect()));
        }
        if self.is_dropped(new.id) {
            return Verdict::Settled(NoWriteReason::Dropped);
        }
        if self.segments.len() - touched.len() >= SEGMENTS_MAX {
            return Verdict::Settled(NoWriteReason::Full);
        }
        let mut next = self.next();
        next.drop_all(&ids().collect::<Vec<_>>(), now);
        let at = next.segments.partition_point(|s| s.id < new.id);
        next.segments.insert(at, new.clone());
        Verdict::Write(next)
    }

    fn expire(&self, ids: &[Id], now: Timestamp) -> Verdict {
        let ids: Vec<Id> = ids
            .iter()
            .copied()
            .filter(|id| self.segment(*id).is_some())
            .collect();
        if ids.is_empty() {
            return Verdict::Settled(NoWriteReason::Done);
        }
        let mut next = self.next();
        for segment in ids.iter().filter_map(|id| self.segment(*id)) {
            next.expired.union_with(&segment.sources);
        }
        next.drop_all(&ids, now);
        Verdict::Write(next)
    }

    fn drop_unlisted(&self, ids: &[Id], now: Timestamp) -> Verdict {
        let is_new = |id: &Id| self.segment(*id).is_none() && !self.is_dropped(*id);
        let ids: Vec<Id> = ids.iter().copied().filter(is_new).collect();
        if ids.is_empty() {
            return Verdict::Settled(NoWriteReason::Done);
        }
        let mut next = self.next();
        next.drop_all(&ids, now);
        Verdict::Write(next)
    }

    fn forget(&self, ids: &[Id]) -> Verdict {
        let mut next = self.next();
        next.dropped.retain(|dropped| !ids.contains(&dropped.id));
        if next.dropped.len() == self.dropped.len() {
            Verdict::Settled(NoWriteReason::Done)
        } else {
            Verdict::Write(next)
        }
    }

    fn next(&self) -> Link {
        Link {
            number: self.number + 1,
            nonce: 0,
            ..self.clone()
        }
    }

    fn drop_all(&mut self, ids: &[Id], now: Timestamp) {
        self.segments.retain(|segment| !ids.contains(&segment.id));
        let dropped = ids.iter().map(|id| DroppedObject {
            id: *id,
            since: now,
        });
        self.dropped.extend(dropped);
    }
}
