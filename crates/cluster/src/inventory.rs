//! What a node holds: its segments, its journal, and what it knows of all incarnations.
//!
//! An inventory is made from the files that are there (CLUSTER R12); nothing else is remembered
//! that could disagree with them.

use std::collections::BTreeSet;
use std::sync::Arc;

use logpond_record::{Id, Incarnation, SourceId, TimeRange, Timestamp};
use logpond_segment::batches::{BatchId, RetryCopy};
use logpond_segment::sources::{Interval, SourceSet};

use crate::registry::Shape;
use crate::wire::{DecodeError, Decoder, Encoder};
use crate::{NodeId, ProcessId, Registry};

/// Version of the encoding.
const VERSION: u64 = 3;

/// Version of a [`Recent`]'s encoding.
const RECENT_VERSION: u64 = 2;

/// A live segment of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldSegment {
    /// Its name.
    pub id: Id,
    /// Hash of its manifest: copies of one segment have equal ones.
    pub digest: u128,
    /// Length of the file.
    pub bytes: u64,
    /// Number of rows.
    pub rows: u64,
    /// Earliest event time.
    pub time_min: Timestamp,
    /// Latest event time.
    pub time_max: Timestamp,
    /// Earliest receive time.
    pub received_min: Timestamp,
    /// Latest receive time.
    pub received_max: Timestamp,
    /// The sources whose rows it holds.
    pub sources: SourceSet,
    /// Whether the node reads it from a bucket, not from a disk of its own.
    pub is_remote: bool,
}

/// A journal file of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldJournal {
    /// The source that it is.
    pub source: SourceId,
    /// Length of what may be read.
    pub bytes: u64,
    /// Rows in that.
    pub rows: u64,
    /// Earliest receive time.
    pub received_min: Timestamp,
    /// Latest receive time.
    pub received_max: Timestamp,
    /// Its last row in that; [`Id::MIN`] without rows.
    pub last: Id,
    /// Whether it still grows.
    pub is_open: bool,
}

/// The incarnation that a node writes now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CurrentIncarnation {
    /// The incarnation.
    pub incarnation: Incarnation,
    /// Its sources have lower numbers than this, the open one included.
    pub end: u64,
}

/// What a node knows of a bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BucketView {
    /// It has none.
    #[default]
    None,
    /// Everything that is listed there is among what it holds.
    Read,
    /// There may be more than it could read.
    Unread,
}

impl BucketView {
    fn number(self) -> u64 {
        match self {
            BucketView::None => 0,
            BucketView::Read => 1,
            BucketView::Unread => 2,
        }
    }

    fn of_number(number: u64) -> Result<BucketView, DecodeError> {
        match number {
            0 => Ok(BucketView::None),
            1 => Ok(BucketView::Read),
            2 => Ok(BucketView::Unread),
            _ => Err(DecodeError::Malformed("what is known of a bucket")),
        }
    }
}

/// What a node holds and knows at one moment.
///
/// Shape: about 160 bytes for each segment and 7 for each interval of sources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inventory {
    /// The node.
    pub node: NodeId,
    /// The life of its process.
    pub process: ProcessId,
    /// Grows with every change within that life.
    pub version: u64,
    /// Grows with every change of the segments or the registry, which are large and change rarely.
    pub base: u64,
    /// Its live segments.
    pub segments: Arc<Vec<HeldSegment>>,
    /// Its journal files, also those whose sources its segments hold.
    pub journal: Vec<HeldJournal>,
    /// Its sources that are copies of batches that were sent again (CLUSTER R10).
    pub retries: Vec<RetryCopy>,
    /// What it writes now, or is about to once enough nodes have noted that it was born.
    pub living: Option<CurrentIncarnation>,
    /// What it knows of its bucket.
    pub bucket: BucketView,
    /// What it has heard.
    pub registry: Arc<Registry>,
}

/// What changes of an inventory with every record that comes in.
///
/// Shape: about 60 bytes for each journal file that no segment holds yet, so it says nothing of how
/// much a node has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recent {
    /// The node.
    pub node: NodeId,
    /// The life of its process.
    pub process: ProcessId,
    /// The inventory's version.
    pub version: u64,
    /// The rest of the inventory is that of any one with this base.
    pub base: u64,
    /// See [`Inventory::journal`].
    pub journal: Vec<HeldJournal>,
    /// See [`Inventory::retries`].
    pub retries: Vec<RetryCopy>,
    /// See [`Inventory::living`].
    pub living: Option<CurrentIncarnation>,
    /// See [`Inventory::bucket`].
    pub bucket: BucketView,
}

impl Recent {
    /// The part as a message.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Encoder::new(RECENT_VERSION);
        self.encode_name(&mut out);
        self.encode_rest(&mut out);
        out.finish()
    }

    /// Reads what [`Recent::to_bytes`] wrote.
    ///
    /// # Errors
    /// See [`DecodeError`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Recent, DecodeError> {
        let mut from = Decoder::new(bytes, RECENT_VERSION)?;
        let mut recent = Recent::decode_name(&mut from)?;
        recent.decode_rest(&mut from)?;
        from.finish()?;
        Ok(recent)
    }

    fn encode_name(&self, out: &mut Encoder) {
        out.wide(self.node.0);
        out.wide(self.process.0);
        out.number(self.version);
        out.number(self.base);
    }

    fn decode_name(from: &mut Decoder<'_>) -> Result<Recent, DecodeError> {
        Ok(Recent {
            node: NodeId(from.wide("the node")?),
            process: ProcessId(from.wide("the process")?),
            version: from.number("the inventory's version")?,
            base: from.number("the inventory's base")?,
            journal: Vec::new(),
            retries: Vec::new(),
            living: None,
            bucket: BucketView::None,
        })
    }

    fn encode_rest(&self, out: &mut Encoder) {
        out.count(self.journal.len());
        for file in &self.journal {
            encode_journal(file, out);
        }
        out.count(self.retries.len());
        for copy in &self.retries {
            encode_retry(copy, out);
        }
        out.flag(self.living.is_some());
        if let Some(living) = self.living {
            out.wide(living.incarnation.0);
            out.number(living.end);
        }
        out.number(self.bucket.number());
    }

    fn decode_rest(&mut self, from: &mut Decoder<'_>) -> Result<(), DecodeError> {
        for _ in 0..from.count(52, "the journal files")? {
            self.journal.push(decode_journal(from)?);
        }
        for _ in 0..from.count(43, "the copies of batches")? {
            self.retries.push(decode_retry(from)?);
        }
        if from.flag("the living incarnation")? {
            self.living = Some(CurrentIncarnation {
                incarnation: Incarnation(from.wide("the living incarnation")?),
                end: from.number("the living incarnation's end")?,
            });
        }
        self.bucket = BucketView::of_number(from.number("what is known of a bucket")?)?;
        Ok(())
    }
}

impl Inventory {
    /// Whether the node has a bucket, read or not.
    pub fn has_bucket(&self) -> bool {
        self.bucket != BucketView::None
    }

    /// A node that holds nothing.
    pub fn empty(node: NodeId, process: ProcessId) -> Inventory {
        Inventory {
            node,
            process,
            version: 0,
            base: 0,
            segments: Arc::default(),
            journal: Vec::new(),
            retries: Vec::new(),
            living: None,
            bucket: BucketView::None,
            registry: Arc::default(),
        }
    }

    /// All sources that the node holds, in whatever form.
    pub fn sources(&self) -> SourceSet {
        let mut all = self.stored();
        self.journal.iter().for_each(|file| all.insert(file.source));
        all
    }

    /// The sources in its segments.
    pub fn stored(&self) -> SourceSet {
        SourceSet::union_of(self.segments.iter().map(|segment| &segment.sources))
    }

    /// What of it changes with every record.
    pub fn recent(&self) -> Recent {
        Recent {
            node: self.node,
            process: self.process,
            version: self.version,
            base: self.base,
            journal: self.journal.clone(),
            retries: self.retries.clone(),
            living: self.living,
            bucket: self.bucket,
        }
    }

    /// The inventory as a message.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Encoder::new(VERSION);
        let recent = self.recent();
        recent.encode_name(&mut out);
        out.count(self.segments.len());
        for segment in self.segments.iter() {
            encode_segment(segment, &mut out);
        }
        recent.encode_rest(&mut out);
        self.registry.encode(&mut out);
        out.finish()
    }

    /// Reads what [`Inventory::to_bytes`] wrote.
    ///
    /// # Errors
    /// See [`DecodeError`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Inventory, DecodeError> {
        let mut from = Decoder::new(bytes, VERSION)?;
        let mut recent = Recent::decode_name(&mut from)?;
        let mut segments = Vec::new();
        for _ in 0..from.count(61, "the segments")? {
            segments.push(decode_segment(&mut from)?);
        }
        recent.decode_rest(&mut from)?;
        let registry = Registry::decode(&mut from, Shape::Now)?;
        from.finish()?;
        Ok(Inventory::of_parts(
            recent,
            segments.into(),
            registry.into(),
        ))
    }

    /// An inventory of its parts, which must be of one moment.
    pub fn of_parts(
        recent: Recent,
        segments: Arc<Vec<HeldSegment>>,
        registry: Arc<Registry>,
    ) -> Inventory {
        Inventory {
            node: recent.node,
            process: recent.process,
            version: recent.version,
            base: recent.base,
            segments,
            journal: recent.journal,
            retries: recent.retries,
            living: recent.living,
            bucket: recent.bucket,
            registry,
        }
    }
}

/// An inventory with what planning needs of it at every query, made once.
#[derive(Clone, Debug)]
pub struct IndexedInventory {
    inventory: Inventory,
    stored: Arc<SourceSet>,
    /// The same in one piece of memory: a coordinator compares and merges those of all nodes.
    runs: Arc<[(Incarnation, Interval)]>,
    registry_digest: u128,
    /// Whose sources it reads from a bucket.
    remote: Arc<BTreeSet<Incarnation>>,
    /// Event times of the segments, apart from them: a plan looks at all of these.
    times: Arc<[(Timestamp, Timestamp)]>,
}

impl IndexedInventory {
    /// Indexes an inventory.
    pub fn new(inventory: Inventory) -> IndexedInventory {
        let times = inventory.segments.iter();
        let stored = inventory.stored();
        let remote = inventory.segments.iter().filter(|s| s.is_remote);
        let remote = remote.flat_map(|s| s.sources.last_of_each());
        IndexedInventory {
            remote: Arc::new(remote.map(|source| source.incarnation).collect()),
            runs: stored.intervals().collect(),
            stored: Arc::new(stored),
            registry_digest: inventory.registry.digest(),
            times: times.map(|s| (s.time_min, s.time_max)).collect(),
            inventory,
        }
    }

    /// The same node later, when its segments and its registry are still the same. Takes time for the
    /// journal files only. `None` if they are not, or it is another node or another life of it.
    pub fn with_recent(&self, recent: Recent) -> Option<IndexedInventory> {
        let Inventory {
            node,
            process,
            base,
            segments,
            registry,
            ..
        } = &self.inventory;
        if (*node, *process, *base) != (recent.node, recent.process, recent.base) {
            return None;
        }
        Some(IndexedInventory {
            inventory: Inventory::of_parts(recent, Arc::clone(segments), Arc::clone(registry)),
            stored: Arc::clone(&self.stored),
            runs: Arc::clone(&self.runs),
            registry_digest: self.registry_digest,
            remote: Arc::clone(&self.remote),
            times: Arc::clone(&self.times),
        })
    }

    /// The inventory.
    pub fn inventory(&self) -> &Inventory {
        &self.inventory
    }

    /// The sources in its segments.
    pub fn stored(&self) -> &SourceSet {
        &self.stored
    }

    /// The intervals of [`IndexedInventory::stored`], in order.
    pub(crate) fn runs(&self) -> &Arc<[(Incarnation, Interval)]> {
        &self.runs
    }

    /// The incarnations of which it reads sources from a bucket.
    pub(crate) fn remote(&self) -> &BTreeSet<Incarnation> {
        &self.remote
    }

    /// See [`Registry::digest`].
    pub fn registry_digest(&self) -> u128 {
        self.registry_digest
    }

    /// The segments that have rows in a range, as far as their bounds say.
    pub fn overlapping(&self, range: TimeRange) -> impl Iterator<Item = &HeldSegment> {
        let each = self.times.iter().zip(self.inventory.segments.iter());
        each.filter(move |((min, max), _)| range.overlaps(*min, *max))
            .map(|(_, segment)| segment)
    }
}

fn encode_segment(segment: &HeldSegment, out: &mut Encoder) {
    out.wide(segment.id.0);
    out.wide(segment.digest);
    out.number(segment.bytes);
    out.number(segment.rows);
    out.time(segment.time_min);
    out.time(segment.time_max);
    out.time(segment.received_min);
    out.time(segment.received_max);
    out.sources(&segment.sources);
    out.flag(segment.is_remote);
}

fn decode_segment(from: &mut Decoder<'_>) -> Result<HeldSegment, DecodeError> {
    Ok(HeldSegment {
        id: Id(from.wide("a segment's name")?),
        digest: from.wide("a digest")?,
        bytes: from.number("a segment's length")?,
        rows: from.number("a segment's rows")?,
        time_min: from.time("a segment's times")?,
        time_max: from.time("a segment's times")?,
        received_min: from.time("a segment's times")?,
        received_max: from.time("a segment's times")?,
        sources: from.sources("a segment's sources")?,
        is_remote: from.flag("where a segment is")?,
    })
}

fn encode_retry(copy: &RetryCopy, out: &mut Encoder) {
    out.wide(copy.source.incarnation.0);
    out.number(copy.source.sequence);
    out.wide(copy.id.epoch);
    out.number(copy.id.sequence);
    out.number(u64::from(copy.id.attempt));
    out.time(copy.id.first_sent);
}

fn decode_retry(from: &mut Decoder<'_>) -> Result<RetryCopy, DecodeError> {
    let source = SourceId {
        incarnation: Incarnation(from.wide("a copy's source")?),
        sequence: from.number("a copy's source")?,
    };
    let (epoch, sequence) = (from.wide("a batch")?, from.number("a batch")?);
    let attempt = u32::try_from(from.number("an attempt")?);
    let id = BatchId {
        epoch,
        sequence,
        attempt: attempt.map_err(|_| DecodeError::Malformed("an attempt"))?,
        first_sent: from.time("a batch's first sending")?,
        more: 0,
    };
    Ok(RetryCopy { source, id })
}

fn encode_journal(file: &HeldJournal, out: &mut Encoder) {
    out.wide(file.source.incarnation.0);
    out.number(file.source.sequence);
    out.number(file.bytes);
    out.number(file.rows);
    out.time(file.received_min);
    out.time(file.received_max);
    out.wide(file.last.0);
    out.flag(file.is_open);
}

fn decode_journal(from: &mut Decoder<'_>) -> Result<HeldJournal, DecodeError> {
    Ok(HeldJournal {
        source: SourceId {
            incarnation: Incarnation(from.wide("a journal file's source")?),
            sequence: from.number("a journal file's source")?,
        },
        bytes: from.number("a journal file's length")?,
        rows: from.number("a journal file's rows")?,
        received_min: from.time("a journal file's times")?,
        received_max: from.time("a journal file's times")?,
        last: Id(from.wide("a journal file's last row")?),
        is_open: from.flag("a journal file's state")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Day;
    use crate::registry::tests::registries;
    use crate::registry::{Fate, RegistryEntry};
    use proptest::prelude::*;
    use std::path::PathBuf;

    fn inventory(numbers: &[(u64, i64)], registry: Registry) -> Inventory {
        let mut inventory = Inventory::empty(NodeId(7), ProcessId(u128::MAX));
        inventory.version = numbers.len() as u64;
        inventory.base = inventory.version / 2;
        inventory.bucket = BucketView::Read;
        inventory.registry = registry.into();
        for (index, (number, time)) in numbers.iter().enumerate() {
            let source = SourceId {
                incarnation: Incarnation(u128::from(number % 3)),
                sequence: *number,
            };
            let (min, max) = (Timestamp(*time), Timestamp(time.saturating_add(9)));
            if index % 2 == 0 {
                Arc::make_mut(&mut inventory.segments).push(HeldSegment {
                    id: Id(u128::from(*number)),
                    digest: u128::from(*number),
                    bytes: *number,
                    rows: index as u64,
                    time_min: min,
                    time_max: max,
                    received_min: min,
                    received_max: max,
                    sources: SourceSet::from_iter([source]),
                    is_remote: number % 4 == 0,
                });
            } else {
                inventory.journal.push(HeldJournal {
                    source,
                    bytes: *number,
                    rows: index as u64,
                    received_min: min,
                    received_max: max,
                    last: Id(u128::from(*number)),
                    is_open: number % 2 == 0,
                });
                let id = BatchId {
                    epoch: u128::from(*number),
                    sequence: *number,
                    attempt: index as u32,
                    first_sent: min,
                    more: 0,
                };
                inventory.retries.push(RetryCopy { source, id });
                inventory.living = Some(CurrentIncarnation {
                    incarnation: source.incarnation,
                    end: *number,
                });
            }
        }
        inventory
    }

    fn golden() -> Inventory {
        let mut registry = Registry::default();
        let mut fate = Fate::born(NodeId(7), Timestamp(1));
        (fate.sealed, fate.expired_below) = (Some(3), 1);
        registry.note(Incarnation(2), fate);
        let address = |name: &str| format!("{name}:7659");
        let known = RegistryEntry::there(address("10.0.0.1"), "north".into(), 300);
        registry.note_node(NodeId(7), known);
        registry.note_node(
            NodeId(8),
            RegistryEntry::there(address("b"), String::new(), 2),
        );
        registry.forget(NodeId(8));
        registry.advance(Day::of(Timestamp(i64::MAX)), &BTreeSet::new());
        inventory(&[(300, -1), (5, 2), (6, i64::MAX)], registry)
    }

    /// If this fails because the layout has changed, raise the version; `LOGPOND_BLESS=1` writes
    /// the file.
    #[test]
    fn the_bytes_are_those_of_the_golden_file() {
        let path =
            PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/cluster/v3.inventory");
        if std::env::var_os("LOGPOND_BLESS").is_some() {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, golden().to_bytes()).unwrap();
        }
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(bytes, golden().to_bytes());
        assert_eq!(Inventory::from_bytes(&bytes), Ok(golden()));
    }

    #[test]
    fn the_bytes_of_a_recent_part_are_those_of_the_golden_file() {
        let path =
            PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/cluster/v2.recent");
        if std::env::var_os("LOGPOND_BLESS").is_some() {
            std::fs::write(&path, golden().recent().to_bytes()).unwrap();
        }
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(bytes, golden().recent().to_bytes());
        assert_eq!(Recent::from_bytes(&bytes), Ok(golden().recent()));
    }

    /// What an inventory becomes by its recent part is what it would be if it came whole.
    #[test]
    fn a_recent_part_completes_what_is_known() {
        let before = golden();
        let mut now = inventory(
            &[(300, -1), (7, 4), (6, i64::MAX), (9, 1)],
            Registry::default(),
        );
        (now.segments, now.registry) = (before.segments.clone(), before.registry.clone());
        (now.base, now.version) = (before.base, before.version + 1);
        let known = IndexedInventory::new(before);
        let completed = known.with_recent(now.recent()).unwrap();
        assert_eq!(
            format!("{completed:?}"),
            format!("{:?}", IndexedInventory::new(now.clone()))
        );
        for change in [
            |recent: &mut Recent| recent.base += 1,
            |recent: &mut Recent| recent.process = ProcessId(0),
            |recent: &mut Recent| recent.node = NodeId(0),
        ] {
            let mut other = now.recent();
            change(&mut other);
            assert!(known.with_recent(other).is_none());
        }
    }

    proptest! {
        #[test]
        fn an_inventory_comes_back(
            numbers in prop::collection::vec(any::<(u64, i64)>(), 0..9),
            registry in registries(),
        ) {
            let inventory = inventory(&numbers, registry);
            let bytes = inventory.to_bytes();
            prop_assert_eq!(Inventory::from_bytes(&bytes), Ok(inventory.clone()));
            for length in 0..bytes.len() {
                prop_assert!(Inventory::from_bytes(&bytes[..length]).is_err());
            }
            let bytes = inventory.recent().to_bytes();
            prop_assert_eq!(Recent::from_bytes(&bytes), Ok(inventory.recent()));
            for length in 0..bytes.len() {
                prop_assert!(Recent::from_bytes(&bytes[..length]).is_err());
            }
        }
    }
}
