//! What one query sees: the journal files and segments of one moment.
//!
//! Invariant: every record that was visible when the view was taken is in exactly one of its
//! files, excluded sources aside. All journal files are open, so that the store may remove them
//! meanwhile.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use logpond_bucket::Costs;
use logpond_cluster::Share;
use logpond_record::TimeRange;
use logpond_segment::disk::Disk;
use logpond_segment::journal::{JournalFile, OpenError, Snapshot, Visible};
use logpond_segment::sources::SourceSet;

use super::question::Open;
use super::{QueryError, Trailer, retries};
use crate::store::{LiveSegment, LiveSet, MissingFile, Segments, holds};

/// How often a view is taken anew because the store moved a file meanwhile. It moves one a second
/// at most; each try takes well below a millisecond.
const TRIES_MAX: usize = 100;

/// A segment, and what of it is counted elsewhere.
pub(super) struct SegmentView {
    pub(super) segment: Arc<LiveSegment>,
    /// Sources whose rows are in no answer; whatever set, the segment need not list them.
    pub(super) excluded: Arc<SourceSet>,
}

/// The files of one moment.
pub(super) struct View {
    /// The journal, also files that are in segments.
    pub(super) snapshot: Snapshot,
    /// Journal files that no segment holds, without those that repeat a batch.
    pub(super) journal: Vec<JournalFile>,
    /// The live segments.
    pub(super) segments: Vec<SegmentView>,
    /// Journal files that cannot be opened and files that were put aside, with the reason.
    missing: Vec<MissingFile>,
    /// What was asked of the bucket for it.
    pub(super) costs: Arc<Costs>,
}

impl View {
    pub(super) fn take(
        disk: &dyn Disk,
        visible: &Visible,
        live: &LiveSet,
    ) -> Result<View, QueryError> {
        for tries_left in (0..TRIES_MAX).rev() {
            // The journal first: what moves between the two steps is then in both, and counted
            // in the segment.
            let snapshot = visible.snapshot();
            let segments = live.snapshot();
            // A file that is gone for good was deleted by somebody else.
            let is_last = tries_left == 0;
            if let Some(mut view) = View::open(disk, snapshot, segments, is_last) {
                view.missing.extend(live.missing(disk));
                return Ok(view);
            }
        }
        Err(QueryError::Disk(
            "the journal changed too fast to be read; try again".into(),
        ))
    }

    /// The files of a share, those that grow only so far; `None` if one of them is not there, or no
    /// longer.
    pub(super) fn of_share(
        disk: &dyn Disk,
        visible: &Visible,
        live: &LiveSet,
        (share, open): (&Share, &Open),
    ) -> Result<Option<View>, QueryError> {
        let mut view = View::without_files(visible.snapshot());
        let live = live.snapshot();
        for wanted in &share.segments {
            let found = live.iter().find(|s| s.file().manifest().id == wanted.id);
            let Some(segment) = found else {
                return Ok(None);
            };
            view.segments.push(SegmentView {
                segment: Arc::clone(segment),
                excluded: Arc::new(wanted.excluded.clone()),
            });
        }
        for source in share.journal.iter() {
            let mut growing = view.snapshot.open.iter();
            let mut closed = view.snapshot.closed.iter();
            let file = if let Some(state) = growing.find(|o| o.source == source) {
                JournalFile::from_open(state)
            } else if let Some(file) = closed.find(|c| c.source == source) {
                JournalFile::from_closed(disk, file)
            } else {
                return Ok(None);
            };
            match file {
                Ok(file) => view.journal.push(match open.get(&source) {
                    Some(reach) => file.synced_to(reach.bytes.min(file.limit())),
                    None => file,
                }),
                Err(OpenError::Disk(error)) if error.kind() == io::ErrorKind::NotFound => {
                    return Ok(None);
                }
                Err(error) => return Err(QueryError::Disk(format!("{source}: {error}"))),
            }
        }
        Ok(Some(view))
    }

    /// What segments hold of these sources, each once.
    pub(super) fn of_sources(snapshot: Snapshot, segments: &Segments, wanted: &SourceSet) -> View {
        let mut left = wanted.clone();
        let viewed = segments.iter().filter_map(|segment| {
            let held = segment.sources().common(&left);
            left.subtract(&held);
            (!held.is_empty()).then(|| SegmentView {
                segment: Arc::clone(segment),
                excluded: Arc::new(segment.sources().without(&held)),
            })
        });
        View {
            segments: viewed.collect(),
            ..View::without_files(snapshot)
        }
    }

    /// No files yet.
    fn without_files(snapshot: Snapshot) -> View {
        View {
            snapshot,
            journal: Vec::new(),
            segments: Vec::new(),
            missing: Vec::new(),
            costs: Arc::default(),
        }
    }

    /// `None` if a file is gone: a segment has it by now. If that was awaited long enough, it is missing.
    fn open(
        disk: &dyn Disk,
        snapshot: Snapshot,
        segments: Segments,
        is_last: bool,
    ) -> Option<View> {
        let excluded = Arc::new(retries::excluded(&snapshot, &segments));
        let mut view = View {
            segments: counted_once(&segments, &excluded),
            ..View::without_files(snapshot)
        };
        for closed in view.snapshot.closed.iter() {
            if holds(&segments, closed.source) || excluded.contains(closed.source) {
                continue;
            }
            match JournalFile::from_closed(disk, closed) {
                Ok(file) => view.journal.push(file),
                Err(OpenError::Disk(error))
                    if error.kind() == io::ErrorKind::NotFound && !is_last =>
                {
                    return None;
                }
                Err(error) => view.missing.push(unopened(&closed.path, &error)),
            }
        }
        for open in &view.snapshot.open {
            if holds(&segments, open.source) || excluded.contains(open.source) {
                continue;
            }
            match JournalFile::from_open(open) {
                Ok(file) => view.journal.push(file),
                Err(error) => view.missing.push(unopened(&open.path, &error)),
            }
        }
        Some(view)
    }

    /// Says in the trailer what was asked of the bucket so far.
    pub(super) fn note_costs(&self, trailer: &mut Trailer) {
        trailer.bucket_requests = self.costs.requests.load(Ordering::Relaxed);
        trailer.bucket_bytes = self.costs.bytes.load(Ordering::Relaxed);
    }

    /// Names in the trailer the files that cannot be opened and may have records of one of these ranges.
    pub(super) fn note_missing(&self, ranges: &[TimeRange], trailer: &mut Trailer) {
        for missing in &self.missing {
            let overlaps = |range: &TimeRange| match missing.times {
                Some((min, max)) => range.overlaps(min, max),
                None => true,
            };
            if ranges.iter().any(overlaps) {
                trailer.miss(&missing.what);
            }
        }
    }

    /// Bytes of all files: what a full scan reads at most.
    pub(super) fn bytes(&self) -> u64 {
        let journal: u64 = self.journal.iter().map(JournalFile::limit).sum();
        let segments = self.segments.iter().map(|s| s.segment.file().bytes());
        journal + segments.sum::<u64>()
    }
}

/// A file that cannot be opened.
fn unopened(path: &str, error: &OpenError) -> MissingFile {
    let what = format!("{path}: {error}");
    MissingFile { what, times: None }
}

/// The segments, each without the sources that are in no answer, and those that a sound one or one with more
/// rows has as well. Of these a node alone has none, unless it was one of several before.
fn counted_once(segments: &Segments, excluded: &Arc<SourceSet>) -> Vec<SegmentView> {
    let mut all: Vec<&Arc<LiveSegment>> = segments.iter().collect();
    all.sort_by_key(|segment| {
        let rows = segment.file().manifest().rows;
        (segment.is_damaged(), std::cmp::Reverse(rows))
    });
    let mut taken = SourceSet::new();
    let viewed = all.into_iter().map(|segment| {
        let mut counted = segment.sources().common(&taken);
        taken.union_with(segment.sources());
        let excluded = if counted.is_empty() {
            Arc::clone(excluded)
        } else {
            counted.union_with(excluded);
            Arc::new(counted)
        };
        SegmentView {
            segment: Arc::clone(segment),
            excluded,
        }
    });
    viewed.collect()
}
