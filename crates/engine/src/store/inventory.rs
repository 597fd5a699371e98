//! The list of what should be on the disk, kept up to date by the store.
//!
//! Invariants:
//! - A file that goes for good is taken off the list, and that is synced, before it goes
//!   ([`Keeper::release`]). There is no need to if others here hold the same rows.
//! - A new file is listed within some seconds, and everything at the end, after the journal was closed.
//! - A file that was found to be gone stays listed, over any number of starts, until its rows are somewhere again or
//!   somebody has accepted the loss ([`Keeper::forget`]).
//! - A list that cannot be written keeps nobody from making room: it is removed then, and made anew later.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use logpond_record::{Id, SourceId};
use logpond_segment::build;
use logpond_segment::disk::Disk;
use logpond_segment::file::Summary;
use logpond_segment::inventory::{self, Inventory, InventoryState, JournalEntry, VanishedFile};
use logpond_segment::journal::{self, RecoveryReport, Snapshot, Visible};
use logpond_segment::sources::SourceSet;

use super::bucket_days::BucketMemory;
use super::live::{LiveSet, Segments, local};
use super::offload::Board;
use logpond_host::disk::replace;
use logpond_host::telemetry::warn;

/// How often at most the list is written for what is new: it takes two syncs.
const WRITE_INTERVAL: Duration = Duration::from_secs(2);

/// How long nothing is written after a failure.
const FAILURE_PAUSE: Duration = Duration::from_secs(10);

/// The list as a start reads it.
#[derive(Default)]
pub struct LoadedInventory {
    inventory: Inventory,
    /// True if there was a list, and it was sound.
    is_sound: bool,
}

impl LoadedInventory {
    /// Reads the list. A damaged one is said, and taken for none.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn read(disk: &dyn Disk) -> io::Result<LoadedInventory> {
        Ok(match Inventory::read(disk)? {
            InventoryState::Sound(inventory) => LoadedInventory {
                inventory,
                is_sound: true,
            },
            InventoryState::None => LoadedInventory::default(),
            InventoryState::Damaged(what) => {
                warn(&format!(
                    "{}: {what}; it is made anew of the files that are there, and files that vanished \
                     before this start are not missed",
                    inventory::PATH
                ));
                LoadedInventory::default()
            }
        })
    }

    /// The listed segments: their files may be damaged.
    pub fn segments(&self) -> &BTreeMap<Id, Summary> {
        &self.inventory.segments
    }

    /// Keeps of it what is gone, and has answers name that. In a cluster it is only said: other nodes may hold
    /// the same, and all of them together know what nobody holds.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn miss(
        &mut self,
        disk: &dyn Disk,
        (live, recovered): (&LiveSet, &RecoveryReport),
        is_cluster: bool,
    ) -> io::Result<()> {
        if !self.is_sound {
            return Ok(());
        }
        self.compare_rows(recovered);
        let segments = live.snapshot();
        let held = SourceSet::union_of(segments.iter().map(|segment| segment.sources()));
        let absent = self.inventory.absent(&inventory::files(disk)?, &held);
        for absent in &absent {
            warn(&if is_cluster || self.inventory.is_cluster {
                format!("{absent}; other nodes may hold them")
            } else {
                absent.to_string()
            });
        }
        let is_kept = |path: &str| absent.iter().any(|absent| absent.path == path);
        if is_cluster || self.inventory.is_cluster {
            self.inventory = Inventory::default();
        } else {
            let Inventory {
                segments, journal, ..
            } = &mut self.inventory;
            segments.retain(|id, _| is_kept(&build::path(*id, build::SUFFIX_LIVE)));
            journal.retain(|source, _| is_kept(&journal::path(*source, journal::SUFFIX_CLOSED)));
            live.set_absent(absent);
        }
        Ok(())
    }

    /// Marks journal files that have fewer rows than they had. Only rows that were synced are on the list, so
    /// no crash takes any of them. Damage in the middle of a file is found by its checksums, and is named by
    /// where it is.
    fn compare_rows(&mut self, recovered: &RecoveryReport) {
        for file in &recovered.closed {
            let is_damaged = recovered
                .damages
                .iter()
                .any(|damage| damage.path == file.path);
            let entry = self.inventory.journal.get_mut(&file.source);
            let Some(entry) = entry.filter(|_| !is_damaged) else {
                continue;
            };
            let lost = entry.rows.saturating_sub(file.summary.rows());
            if lost > 0 && !entry.is_shortened {
                (entry.rows, entry.is_shortened) = (lost, true);
            }
        }
    }
}

/// The state of the store that the list describes.
struct ListState {
    segments: Segments,
    files_version: u64,
    open: Vec<SourceId>,
}

/// Keeps the list.
pub struct Keeper {
    disk: Arc<dyn Disk>,
    live: LiveSet,
    visible: Arc<Visible>,
    is_cluster: bool,
    /// The list on disk; `None` if it is not there.
    written: Option<Inventory>,
    /// The files that are gone.
    absent: Inventory,
    /// The segments that the bucket listed.
    bucket: BucketMemory,
    seen: Option<ListState>,
    written_at: Option<Instant>,
    failed_at: Option<Instant>,
}

impl Keeper {
    /// A keeper of what is live; `listed` is what is gone, and what the bucket listed. The nodes of a cluster
    /// know together what the bucket should have.
    pub(super) fn new(
        (disk, live, visible): (Arc<dyn Disk>, LiveSet, Arc<Visible>),
        (mut listed, board): (LoadedInventory, Option<Board>),
        is_cluster: bool,
    ) -> Keeper {
        let days = std::mem::take(&mut listed.inventory.bucket);
        let bucket = if is_cluster {
            BucketMemory::default()
        } else {
            BucketMemory::new(board, days)
        };
        Keeper {
            disk,
            live,
            visible,
            is_cluster,
            // Whatever it says, it is written anew.
            written: None,
            absent: listed.inventory,
            bucket,
            seen: None,
            written_at: None,
            failed_at: None,
        }
    }

    /// Looks at what the bucket lists, if that is news.
    pub(super) fn look_at_bucket(&mut self) {
        if self.bucket.look(&self.live) {
            self.seen = None;
        }
    }

    /// Writes the list if something has changed and it is time.
    pub(super) fn follow(&mut self) {
        let waits = |at: Option<Instant>, time| at.is_some_and(|at| at.elapsed() < time);
        if waits(self.written_at, WRITE_INTERVAL) || waits(self.failed_at, FAILURE_PAUSE) {
            return;
        }
        let journal = self.visible.snapshot();
        let segments = self.live.snapshot();
        let is_seen = self.seen.as_ref().is_some_and(|seen| {
            Arc::ptr_eq(&seen.segments, &segments)
                && seen.files_version == journal.files_version
                && seen.open.iter().eq(open(&journal))
        });
        if !is_seen {
            self.write_now();
        }
    }

    /// Writes the list as it is to be: at the end, once the journal is closed.
    pub fn write_now(&mut self) {
        let journal = self.visible.snapshot();
        let segments = self.live.snapshot();
        self.settle_absent(&segments);
        let current = self.current(&journal, &segments);
        let seen = ListState {
            files_version: journal.files_version,
            open: open(&journal).copied().collect(),
            segments,
        };
        match self.write(current) {
            Ok(()) => self.seen = Some(seen),
            Err(error) => {
                if self.failed_at.is_none() {
                    warn(&format!(
                        "the list of files cannot be written ({error}): a file that vanishes now is not \
                         missed; trying again"
                    ));
                }
                self.failed_at = Some(Instant::now());
            }
        }
    }

    /// The files that are there, and those that are gone.
    fn current(&mut self, journal: &Snapshot, segments: &Segments) -> Inventory {
        // A local segment goes once the bucket lists it: it is on the list all the while.
        self.bucket.look(&self.live);
        let mut current = self.absent.clone();
        current.bucket = self.bucket.days().clone();
        current.is_cluster = self.is_cluster;
        let known = self.written.as_ref().map(|written| &written.segments);
        for segment in local(segments) {
            let id = segment.file().manifest().id;
            let known = known.and_then(|known| known.get(&id)).cloned();
            let summary = known.unwrap_or_else(|| Summary::of(segment.file()));
            current.segments.insert(id, summary);
        }
        let closed = journal.closed.iter();
        let closed = closed.map(|file| (file.source, JournalEntry::new(&file.summary, false)));
        let open = journal.open.iter();
        let open = open.map(|file| (file.source, JournalEntry::new(&file.summary, true)));
        for (source, entry) in closed.chain(open).filter(|(_, entry)| entry.rows > 0) {
            // One that is missed stays as it is missed.
            current.journal.entry(source).or_insert(entry);
        }
        current
    }

    /// Drops files that are somewhere again.
    fn settle_absent(&mut self, segments: &Segments) {
        if self.absent == Inventory::default() {
            return;
        }
        let held = SourceSet::union_of(segments.iter().map(|segment| segment.sources()));
        let Inventory {
            segments, journal, ..
        } = &mut self.absent;
        segments.retain(|_, summary| !held.contains_all(&summary.sources));
        journal.retain(|source, entry| entry.is_shortened || !held.contains(*source));
    }

    fn write(&mut self, inventory: Inventory) -> io::Result<()> {
        replace(&*self.disk, "", inventory::PATH, &inventory.to_bytes()).inspect_err(|_| {
            // It takes room that others need, if that is what is missing.
            let _ = self.disk.remove(&format!("{}.new", inventory::PATH));
        })?;
        self.written = Some(inventory);
        self.written_at = Some(Instant::now());
        self.failed_at = None;
        Ok(())
    }

    /// Takes files off the list that are about to go for good.
    ///
    /// # Errors
    /// When the list can be neither written nor removed; then nothing may go.
    pub(super) fn release(&mut self, segments: Vec<Id>, journal: Vec<SourceId>) -> io::Result<()> {
        if segments.is_empty() && journal.is_empty() {
            return Ok(());
        }
        // Not the list on disk: it may have files that were merged since, and whose rows go now.
        let mut released = self.current(&self.visible.snapshot(), &self.live.snapshot());
        released.forget(segments, journal);
        self.seen = None;
        if self.write(released).is_ok() {
            return Ok(());
        }
        self.written = None;
        match self.disk.remove(inventory::PATH) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => self.disk.sync_directory(""),
        }
    }

    /// Accepts the loss of files that are gone: of the one with this path or name, or of all. Gives what was
    /// lost with them.
    ///
    /// # Errors
    /// When the list cannot be written; the files are missed again after the next start then.
    pub(super) fn forget(&mut self, name: Option<&str>) -> io::Result<Vec<VanishedFile>> {
        let is_meant = |absent: &VanishedFile| name.is_none_or(|name| is_named(absent, name));
        let forgotten = self.live.forget_absent(is_meant);
        self.bucket.forget(&forgotten);
        let paths: Vec<&str> = forgotten.iter().map(|absent| &*absent.path).collect();
        let stays = |path: &str| !paths.contains(&path);
        let Inventory {
            segments, journal, ..
        } = &mut self.absent;
        segments.retain(|id, _| stays(&build::path(*id, build::SUFFIX_LIVE)));
        journal.retain(|source, _| stays(&journal::path(*source, journal::SUFFIX_CLOSED)));
        let current = self.current(&self.visible.snapshot(), &self.live.snapshot());
        self.write(current)?;
        Ok(forgotten)
    }

    /// Notes that a closed file of the journal is gone.
    pub(super) fn miss(&mut self, file: &journal::ClosedFile) {
        let entry = JournalEntry::new(&file.summary, false);
        self.absent.journal.insert(file.source, entry);
        let gone = Inventory {
            journal: [(file.source, entry)].into(),
            ..Inventory::default()
        };
        let absent = gone.absent(&Default::default(), &SourceSet::new());
        absent.iter().for_each(|absent| warn(&absent.to_string()));
        self.live.add_absent(absent);
        self.seen = None;
    }
}

/// The files that are being written and have rows.
fn open(journal: &Snapshot) -> impl Iterator<Item = &SourceId> {
    journal.open.iter().map(|open| &open.source)
}

/// True if a name means a file: its path, or the path's last part with or without its ending.
fn is_named(absent: &VanishedFile, name: &str) -> bool {
    let path = &*absent.path;
    let file = path.rsplit('/').next().unwrap_or(path);
    let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
    [path, file, stem].contains(&name)
}
