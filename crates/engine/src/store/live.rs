//! The live segments, as queries see them.
//!
//! Invariants:
//! - The list is replaced as a whole; a reader's snapshot never changes.
//! - A segment of a snapshot stays readable as long as the snapshot is held: its file is open, so
//!   neither a rename nor a removal hurts (R13).
//! - Every source is in at most one segment of a list, or the list says which one counts.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use logpond_bucket::{Costs, RemoteFile};
use logpond_record::{Id, SourceId, Timestamp};
use logpond_segment::batches::RetryCopy;
use logpond_segment::compact::Live;
use logpond_segment::disk::Disk;
use logpond_segment::file::{Directory, ReadError, Retry, SegmentFile};
use logpond_segment::inventory::{BUCKET, VanishedFile};
use logpond_segment::retain::RetentionCandidate;
use logpond_segment::sources::SourceSet;

use super::PutAside;

/// A directory that no query has asked for in this time is forgotten; reading it again takes
/// about a millisecond.
const DIRECTORY_IDLE: Duration = Duration::from_secs(30);

/// A directory that was read.
struct CachedDirectory {
    directory: Arc<Directory>,
    bytes: usize,
    used: Instant,
}

/// A segment that queries read.
pub struct LiveSegment {
    file: SegmentFile,
    sources: SourceSet,
    retries: Vec<RetryCopy>,
    directory: Mutex<Option<CachedDirectory>>,
    is_damaged: AtomicBool,
    /// Where it is read from, if not from the local disk.
    remote: Option<Arc<RemoteFile>>,
    /// Whether another node has made it and sees to it that it comes into the bucket.
    is_copy: AtomicBool,
}

impl LiveSegment {
    /// A segment of the local disk that was opened.
    pub fn new(file: SegmentFile) -> LiveSegment {
        LiveSegment::open(file, None)
    }

    /// A copy of what another node has made.
    pub fn copy(file: SegmentFile) -> LiveSegment {
        let copy = LiveSegment::open(file, None);
        copy.is_copy.store(true, Ordering::Relaxed);
        copy
    }

    /// A segment that was opened by way of this file in the bucket.
    pub(super) fn remote(file: SegmentFile, remote: Arc<RemoteFile>) -> LiveSegment {
        LiveSegment::open(file, Some(remote))
    }

    fn open(file: SegmentFile, remote: Option<Arc<RemoteFile>>) -> LiveSegment {
        let mut sources = SourceSet::new();
        file.manifest()
            .sources
            .iter()
            .for_each(|s| sources.insert(s.source));
        let retries = file.manifest().retries();
        let with_rows = retries.filter(|(_, retry)| !retry.is_shadowed);
        LiveSegment {
            retries: with_rows
                .map(|(source, Retry { id, .. })| RetryCopy { source, id })
                .collect(),
            file,
            sources,
            directory: Mutex::new(None),
            is_damaged: AtomicBool::new(false),
            remote,
            is_copy: AtomicBool::new(false),
        }
    }

    /// Whether another node has made it, as far as this process knows, and nobody has taken it over.
    pub(super) fn is_copy(&self) -> bool {
        self.is_copy.load(Ordering::Relaxed)
    }

    /// Has this node see to it as if it had made it.
    pub(super) fn take_over(&self) {
        self.is_copy.store(false, Ordering::Relaxed);
    }

    /// Whether it is read from the bucket rather than from the local disk.
    pub fn is_remote(&self) -> bool {
        self.remote.is_some()
    }

    /// The file for one query, which adds to these costs what it asks of the bucket.
    pub fn counted(&self, costs: &Arc<Costs>) -> SegmentFile {
        match &self.remote {
            None => self.file.clone(),
            Some(remote) => {
                let counted = remote.counted(Arc::clone(costs));
                self.file.read_through(Arc::new(counted))
            }
        }
    }

    /// The file.
    pub fn file(&self) -> &SegmentFile {
        &self.file
    }

    /// The sources whose rows it holds.
    pub fn sources(&self) -> &SourceSet {
        &self.sources
    }

    /// The sources that are copies of batches that were sent again, as far as their rows are here.
    pub fn retries(&self) -> impl Iterator<Item = RetryCopy> {
        self.retries.iter().copied()
    }

    /// The directory, read if nobody has asked for it lately.
    ///
    /// # Errors
    /// When it is damaged or the disk fails.
    pub fn directory(&self) -> Result<Arc<Directory>, ReadError> {
        let mut known = self
            .directory
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &mut *known {
            known.used = Instant::now();
            return Ok(Arc::clone(&known.directory));
        }
        let directory = Arc::new(self.file.read_directory()?);
        *known = Some(CachedDirectory {
            bytes: directory.memory_bytes(),
            directory: Arc::clone(&directory),
            used: Instant::now(),
        });
        Ok(directory)
    }

    /// The memory of the directory, if it is kept.
    fn directory_bytes(&self) -> usize {
        let known = self.directory.lock();
        let known = known.unwrap_or_else(PoisonError::into_inner);
        known.as_ref().map_or(0, |known| known.bytes)
    }

    /// Forgets the directory if no query reads by it now; gives the memory that it took.
    fn forget_unused(&self) -> usize {
        let mut known = self
            .directory
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let unused = known.take_if(|known| Arc::strong_count(&known.directory) == 1);
        unused.map_or(0, |unused| unused.bytes)
    }

    /// Notes that a part of it could not be read. It counts as a copy no more, as far as this node
    /// is asked. Bytes of the bucket may be wrong on their way only, so it is asked again the next time.
    pub fn note_damage(&self) {
        if let Some(remote) = &self.remote {
            remote.distrust();
        }
        self.is_damaged.store(true, Ordering::Relaxed);
    }

    /// Whether a part of it could not be read since it was opened.
    pub fn is_damaged(&self) -> bool {
        self.is_damaged.load(Ordering::Relaxed)
    }

    fn forget_if_idle(&self) {
        let mut known = self
            .directory
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if known
            .as_ref()
            .is_some_and(|known| known.used.elapsed() > DIRECTORY_IDLE)
        {
            *known = None;
        }
    }

    /// What retention must know of it, under this name.
    pub(super) fn held<K>(&self, key: K) -> RetentionCandidate<K> {
        let manifest = self.file.manifest();
        RetentionCandidate {
            key,
            received_min: manifest.received_min,
            received_max: manifest.received_max,
            bytes: self.file.bytes(),
        }
    }

    /// What planners must know of it.
    pub fn describe(&self) -> Live {
        Live {
            is_damaged: self.is_damaged(),
            ..Live::new(self.file.manifest(), self.file.bytes())
        }
    }
}

/// A file that answers lack.
pub struct MissingFile {
    /// The file, with the reason.
    pub what: String,
    /// Earliest and latest event time of its records; `None` if they may be of any time.
    pub times: Option<(Timestamp, Timestamp)>,
}

/// A snapshot of the live segments.
pub type Segments = Arc<Vec<Arc<LiveSegment>>>;

/// The live segments. Cheap to clone; all clones are the same list.
#[derive(Clone, Default)]
pub struct LiveSet {
    segments: Arc<Mutex<Segments>>,
    put_aside: PutAside,
    /// Files that should be there and are not.
    absent: Arc<Mutex<Vec<VanishedFile>>>,
}

impl LiveSet {
    /// The segments that live now.
    pub fn snapshot(&self) -> Segments {
        self.segments
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The files that could not be read and are missing from the list.
    pub fn put_aside(&self) -> &PutAside {
        &self.put_aside
    }

    /// The files that answers lack. Costs one look at each file that was put aside.
    pub fn missing(&self, disk: &dyn Disk) -> Vec<MissingFile> {
        let put_aside = self.put_aside.list(disk).into_iter();
        let mut missing: Vec<_> = put_aside
            .map(|what| MissingFile { what, times: None })
            .collect();
        missing.extend(self.absent().into_iter().map(|absent| {
            let name = absent.path.rsplit('/').next().unwrap_or_default();
            let what = format!(
                "{absent}; {}, or accept the loss: logpond forget {name}",
                absent.remedy()
            );
            let times = absent.times;
            MissingFile { what, times }
        }));
        missing
    }

    /// The files that should be there and are not, and whose rows no segment holds.
    pub fn absent(&self) -> Vec<VanishedFile> {
        let absent = self.absent.lock().unwrap_or_else(PoisonError::into_inner);
        if absent.is_empty() {
            return Vec::new();
        }
        let segments = self.snapshot();
        let held = SourceSet::union_of(segments.iter().map(|segment| segment.sources()));
        let is_gone = |absent: &&VanishedFile| absent.is_gone(&held);
        absent.iter().filter(is_gone).cloned().collect()
    }

    /// Says which files should be there and are not.
    pub(super) fn set_absent(&self, files: Vec<VanishedFile>) {
        *self.absent.lock().unwrap_or_else(PoisonError::into_inner) = files;
    }

    /// Says that further files are gone.
    pub(super) fn add_absent(&self, files: Vec<VanishedFile>) {
        let mut absent = self.absent.lock().unwrap_or_else(PoisonError::into_inner);
        absent.extend(files);
    }

    /// Says which segments the bucket should list and does not, in place of what was said before.
    pub(super) fn set_absent_days(&self, days: &[VanishedFile]) {
        let mut absent = self.absent.lock().unwrap_or_else(PoisonError::into_inner);
        absent.retain(|file| !file.path.starts_with(BUCKET));
        absent.extend_from_slice(days);
    }

    /// Forgets those of them that are meant; gives these.
    pub(super) fn forget_absent(
        &self,
        is_meant: impl Fn(&VanishedFile) -> bool,
    ) -> Vec<VanishedFile> {
        let mut absent = self.absent.lock().unwrap_or_else(PoisonError::into_inner);
        absent.extract_if(.., |file| is_meant(file)).collect()
    }

    /// Takes segments out and puts one in, in one step as readers see it.
    pub fn replace(&self, out: &[Arc<LiveSegment>], new: Option<Arc<LiveSegment>>) {
        let mut list = self.segments.lock().unwrap_or_else(PoisonError::into_inner);
        let mut segments: Vec<Arc<LiveSegment>> = list.to_vec();
        segments.retain(|s| !out.iter().any(|o| Arc::ptr_eq(o, s)));
        segments.extend(new);
        *list = Arc::new(segments);
    }

    /// The memory of the directories that are kept.
    pub fn directory_bytes(&self) -> usize {
        let segments = self.snapshot();
        let bytes = segments.iter().map(|segment| segment.directory_bytes());
        bytes.sum()
    }

    /// Forgets directories that no query reads by now until so many bytes are free; gives how many are.
    pub fn forget_unused(&self, bytes: usize) -> usize {
        let mut freed = 0;
        for segment in self.snapshot().iter() {
            if freed < bytes {
                freed += segment.forget_unused();
            }
        }
        freed
    }

    /// Forgets directories that nobody uses.
    pub fn forget_idle(&self) {
        self.snapshot()
            .iter()
            .for_each(|segment| segment.forget_if_idle());
    }
}

/// Whether a source is in one of the segments.
pub fn holds(segments: &[Arc<LiveSegment>], source: SourceId) -> bool {
    segments
        .iter()
        .any(|segment| segment.sources.contains(source))
}

/// The segments that are read from the local disk.
pub fn local(segments: &[Arc<LiveSegment>]) -> impl Iterator<Item = &Arc<LiveSegment>> {
    segments.iter().filter(|segment| !segment.is_remote())
}

/// The sources that are to be read from the local disk for good: not those of segments that are leaving, nor
/// those of copies, which are here until the bucket has them, nor what is damaged.
pub(super) fn staying(segments: &[Arc<LiveSegment>], leaving: &BTreeSet<Id>) -> SourceSet {
    let stays = |s: &&Arc<LiveSegment>| !is_leaving(s, leaving) && !s.is_damaged();
    SourceSet::union_of(local(segments).filter(stays).map(|s| s.sources()))
}

/// Whether a local segment is to be given up once it can be read from the bucket.
pub(super) fn is_leaving(segment: &LiveSegment, leaving: &BTreeSet<Id>) -> bool {
    segment.is_copy() || leaving.contains(&segment.file().manifest().id)
}
