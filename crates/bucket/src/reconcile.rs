//! Brings together the objects in a bucket and the lists of the chains.
//!
//! A link says alone what counts; so a head that is lost would take all of its day with it, while every
//! segment is there and says in its footer what it holds. Invariants:
//! - A segment that no link knows counts from now on if it has what the listed ones lack: its writer came to
//!   an end before it was listed, or the link that listed it is gone.
//! - A segment counts as held only if listed segments hold all its sources: only such a one may be removed.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

use logpond_cluster::Day;
use logpond_cluster::chain::{
    Change, NoWriteReason, Outcome, SEGMENTS, SegmentEntry, parse_segment_name, segment_name,
};
use logpond_record::{Id, Timestamp, cast};
use logpond_segment::disk::ReadAt;
use logpond_segment::file::{ReadError, SegmentFile};

use crate::chains::{Chains, HeadFault};
use crate::objects::{BucketError, FailureKind, ObjectEntry, Objects};

/// Bytes read of an object's end: first those that most footers have, at last what the largest ones have.
const TAIL_BYTES: [u64; 3] = [64 << 10, 1 << 20, 64 << 20];

/// The result of a reconciliation.
#[derive(Debug, Default)]
pub struct ReconcileReport {
    /// Days whose heads were made anew, what had been wrong with them, and how many segments they list.
    pub rebuilt: Vec<(Day, HeadFault, usize)>,
    /// Segments that no link knew, and that count from now on.
    pub adopted: Vec<(Day, Id)>,
    /// Segments that no link knows, and of which listed ones hold every row.
    pub held: BTreeSet<(Day, Id)>,
    /// Segments that no link knows, and that cannot be read, with the reasons.
    pub unreadable: BTreeMap<(Day, Id), String>,
}

/// Reads the heads, and sees to what they do not list: `entries` are all objects below [`SEGMENTS`], listed
/// before. Costs a request or two for each segment that no head lists, and all of a broken day's.
///
/// # Errors
/// When the store fails; what was done stays done.
pub fn reconcile(
    objects: &dyn Objects,
    chains: &mut Chains,
    entries: &[ObjectEntry],
    now: Timestamp,
) -> Result<ReconcileReport, BucketError> {
    chains.refresh()?;
    let mut reconciled = ReconcileReport::default();
    let mut days: BTreeMap<Day, Vec<(Id, u64)>> = BTreeMap::new();
    for entry in entries {
        if let Some((day, id)) = parse_segment_name(&entry.name) {
            days.entry(day).or_default().push((id, entry.bytes));
        }
    }
    chains.note_unlisted(days.keys().copied());
    for (day, broken) in chains.broken().clone() {
        let there = days.get(&day).map_or(&[][..], Vec::as_slice);
        let segments = examine(objects, day, there, &mut reconciled)?;
        if chains.rebuild(day, segments, now)? {
            let listed = chains.heads().get(&day);
            let count = listed.map_or(0, |head| head.segments.len());
            if count > 0 {
                reconciled.rebuilt.push((day, broken, count));
            }
        }
    }
    for (day, there) in days {
        let head = chains.heads().get(&day).map(Arc::clone);
        let is_unknown = |(id, _): &(Id, u64)| {
            head.as_ref()
                .is_none_or(|head| head.segment(*id).is_none() && !head.is_dropped(*id))
                && !reconciled.unreadable.contains_key(&(day, *id))
        };
        let unknown: Vec<(Id, u64)> = there.into_iter().filter(is_unknown).collect();
        let mut segments = examine(objects, day, &unknown, &mut reconciled)?;
        segments.sort_by_key(|s| std::cmp::Reverse((s.sources.len(), s.cold, s.id)));
        for segment in segments {
            let id = segment.id;
            match chains.commit(day, Change::List(segment), now)? {
                Outcome::Written(_) => reconciled.adopted.push((day, id)),
                Outcome::Settled(NoWriteReason::Held, _) => drop(reconciled.held.insert((day, id))),
                // Its writer, or whoever reads both, brings it together with the others.
                Outcome::Settled(..) | Outcome::Contended => {}
            }
        }
    }
    Ok(reconciled)
}

/// All objects below [`SEGMENTS`], for [`reconcile`].
///
/// # Errors
/// When the store fails.
pub fn segment_objects(objects: &dyn Objects) -> Result<Vec<ObjectEntry>, BucketError> {
    objects.list(SEGMENTS, None)
}

/// Reads the footers of segments; those that cannot be read are named.
fn examine(
    objects: &dyn Objects,
    day: Day,
    there: &[(Id, u64)],
    reconciled: &mut ReconcileReport,
) -> Result<Vec<SegmentEntry>, BucketError> {
    let mut found = Vec::new();
    for (id, bytes) in there {
        let name = segment_name(day, *id);
        let what = match read(objects, &name, *bytes) {
            Ok(Ok(listed)) if listed.id == *id && listed.day() == day => {
                found.push(listed);
                continue;
            }
            Ok(Ok(_)) => "it is another segment".to_owned(),
            Ok(Err(what)) => what,
            // It was removed since it was listed.
            Err(error) if error.kind == FailureKind::Missing => continue,
            Err(error) => return Err(error),
        };
        let what = format!("{name}: no list has it, and it cannot be read: {what}");
        reconciled.unreadable.insert((day, *id), what);
    }
    Ok(found)
}

/// Reads a segment's footer, or says why it cannot be read.
fn read(
    objects: &dyn Objects,
    name: &str,
    bytes: u64,
) -> Result<Result<SegmentEntry, String>, BucketError> {
    for tail_bytes in TAIL_BYTES {
        let from = bytes.saturating_sub(tail_bytes);
        let tail = objects.read(name, from, bytes - from)?;
        let tail = Tail { bytes, from, tail };
        match SegmentFile::open(Arc::new(tail)) {
            Ok(segment) => {
                let (manifest, index_from) = (segment.manifest(), segment.index_from());
                return Ok(Ok(SegmentEntry::new(manifest, bytes, index_from)));
            }
            // More of it is needed.
            Err(ReadError::Disk(_)) if from > 0 => {}
            Err(error) => return Ok(Err(error.to_string())),
        }
    }
    Ok(Err("its footer is too large".to_owned()))
}

/// The end of an object, as a file.
struct Tail {
    bytes: u64,
    from: u64,
    tail: bytes::Bytes,
}

impl ReadAt for Tail {
    fn bytes(&self) -> io::Result<u64> {
        Ok(self.bytes)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let Some(at) = offset.checked_sub(self.from) else {
            return Err(io::Error::other("it is before what was read"));
        };
        let range = self
            .tail
            .get(cast::to_usize(at)..cast::to_usize(at) + buffer.len());
        buffer.copy_from_slice(range.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}
