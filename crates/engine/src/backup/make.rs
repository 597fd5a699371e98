//! Making a backup.
//!
//! Rounds: each lists what there is, chooses, and uploads what is not in the store yet. While that is
//! much, files may go meanwhile: what they held is in others then, which the next round finds. As soon
//! as it is little, all missing files are opened right after the listing; an open file stays
//! readable whatever becomes of its name. If all can be opened, the listing is the snapshot, however long
//! uploading takes.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::sync::{Arc, Mutex, TryLockError};
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use logpond_bucket::{CreateOutcome, GRACE, ObjectEntry, Objects, store_time};
use logpond_record::{Id, Timestamp};
use logpond_segment::compact::Live;
use logpond_segment::disk::{Disk, ReadAt};
use logpond_segment::file::{ReadError, SegmentFile};
use logpond_segment::inventory::{Inventory, InventoryState};
use logpond_segment::journal::JournalFile;
use logpond_segment::sources::SourceSet;
use logpond_segment::{build, journal};

use super::check::{DamagedFile, examine};
use super::choose::choose;
use super::fetch::{length_wrong, lengths};
use super::list::{Listing, list};
use super::snapshot::{Entry, Kind, LeftOut, Snapshot, SnapshotName};
use super::transfers::{MeteredFile, Progress};
use super::{BackupError, FILES, RUNNING, STATE_PATHS, snapshots};

/// So many files are held open at most.
const HELD_MAX: usize = 256;

/// How often is begun again because a file was gone between its listing and its opening.
const ROUNDS_MAX: usize = 1000;

/// How often a running backup says that it is.
const RUNNING_INTERVAL: Duration = Duration::from_secs(600);

/// How many names are tried, each a millisecond later, if backups begin at the same time.
const NAMES_MAX: usize = 100;

/// What is to be backed up, and where to.
pub struct Job<'a> {
    /// The data directory.
    pub disk: &'a dyn Disk,
    /// The store.
    pub objects: &'a dyn Objects,
    /// This machine's name.
    pub host: &'a str,
    /// The time.
    pub now: Timestamp,
    /// Tells this backup from others that run.
    pub nonce: u128,
    /// Where it says how far it is.
    pub progress: &'a Progress,
}

/// The result of a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupReport {
    /// Its name.
    pub name: SnapshotName,
    /// What is in it.
    pub snapshot: Snapshot,
    /// Files that were uploaded; the others were there.
    pub uploaded_files: u64,
    /// Bytes of these.
    pub uploaded_bytes: u64,
    /// Files that are damaged in the data directory, and were copied as they are.
    pub damaged: Vec<DamagedFile>,
    /// Files that should be in the data directory and are not, with what they held.
    pub vanished: Vec<String>,
    /// The host of the snapshot before, if it is another one.
    pub other_host: Option<String>,
}

/// Makes a backup: uploads what is new, then writes a snapshot.
///
/// # Errors
/// When the disk or the store fails. Then there is no new snapshot, and what was uploaded is used
/// by the next backup.
pub fn make(job: &Job<'_>) -> Result<BackupReport, BackupError> {
    let running = RunMarker::begin(job)?;
    let made = Maker::new(job).and_then(|mut maker| maker.run(&running));
    let ended = job.objects.remove(&running.object);
    let made = made?;
    ended?;
    Ok(made)
}

/// The mark in the store of a running backup, so that nobody removes the files that it counts on.
struct RunMarker<'a> {
    objects: &'a dyn Objects,
    object: String,
    said_at: Mutex<Instant>,
}

impl<'a> RunMarker<'a> {
    fn begin(job: &Job<'a>) -> Result<RunMarker<'a>, BackupError> {
        let object = format!("{RUNNING}{:032x}", job.nonce);
        job.objects.put(&object, Bytes::from_static(b"running"))?;
        Ok(RunMarker {
            objects: job.objects,
            object,
            said_at: Mutex::new(Instant::now()),
        })
    }

    fn go_on(&self) -> Result<(), BackupError> {
        let mut said_at = match self.said_at.try_lock() {
            Ok(said_at) => said_at,
            Err(TryLockError::Poisoned(said_at)) => said_at.into_inner(),
            // Another transfer is just saying it.
            Err(TryLockError::WouldBlock) => return Ok(()),
        };
        if said_at.elapsed() >= RUNNING_INTERVAL {
            self.objects
                .put(&self.object, Bytes::from_static(b"running"))?;
            *said_at = Instant::now();
        }
        Ok(())
    }
}

/// A file that was listed and is not in the store yet.
struct PendingFile {
    kind: Kind,
    path: String,
}

/// A file that is in the store.
struct StoredFile {
    entry: Entry,
    damaged: Option<DamagedFile>,
    is_new: bool,
}

/// What a snapshot is made of, all in the store.
struct Complete {
    files: Vec<Entry>,
    sources: SourceSet,
    left_out: LeftOut,
}

struct Maker<'a> {
    job: &'a Job<'a>,
    /// The files that should be there, as they were listed before the first round.
    inventory: InventoryState,
    newest: Option<SnapshotName>,
    other_host: Option<String>,
    /// What the newest snapshot lists, by path.
    known: HashMap<String, Entry>,
    /// The objects that may be counted on; see [`counted_on`].
    there: HashMap<String, u64>,
    /// Manifests of segments; `None` of those that cannot be read.
    manifests: BTreeMap<Id, Option<Live>>,
    /// Files that are in the store, by path.
    done: BTreeMap<String, Entry>,
    uploaded_files: u64,
    uploaded_bytes: u64,
    damaged: Vec<DamagedFile>,
}

impl<'a> Maker<'a> {
    fn new(job: &'a Job<'a>) -> Result<Maker<'a>, BackupError> {
        let time = store_time(job.objects)?;
        let newest = snapshots::names(job.objects)?.pop();
        let last = newest
            .as_ref()
            .map(|name| snapshots::read(job.objects, name));
        // One that cannot be read does not keep others from being made.
        let last = match last {
            Some(Err(BackupError::Bucket(error))) => return Err(error.into()),
            Some(Ok(snapshot)) => Some(snapshot),
            Some(Err(_)) | None => None,
        };
        let files = last.iter().flat_map(|snapshot| snapshot.files.iter());
        let known: HashMap<String, Entry> = files
            .map(|entry| (entry.path.clone(), entry.clone()))
            .collect();
        let listed: BTreeSet<String> = known.values().map(Entry::object).collect();
        let objects = job.objects.list(FILES, None)?;
        let there = objects
            .into_iter()
            .filter(|object| counted_on(object, &listed, time));
        Ok(Maker {
            job,
            inventory: Inventory::read(job.disk)?,
            newest,
            other_host: last.map(|last| last.host).filter(|host| host != job.host),
            known,
            there: there.map(|object| (object.name, object.bytes)).collect(),
            manifests: BTreeMap::new(),
            done: BTreeMap::new(),
            uploaded_files: 0,
            uploaded_bytes: 0,
            damaged: Vec::new(),
        })
    }

    fn run(&mut self, running: &RunMarker<'_>) -> Result<BackupReport, BackupError> {
        for _ in 0..ROUNDS_MAX {
            if let Some(complete) = self.round(running)? {
                return self.finish(complete);
            }
        }
        Err(BackupError::Restless)
    }

    /// One round; gives the files of the snapshot with their sources once they are all in the store.
    fn round(&mut self, running: &RunMarker<'_>) -> Result<Option<Complete>, BackupError> {
        let listing = list(self.job.disk)?;
        if !self.read_manifests(&listing.segments)? {
            return Ok(None);
        }
        let (paths, sources) = self.chosen(&listing);
        let is_missing = |(_, path): &&(Kind, String)| !self.done.contains_key(path);
        let missing: Vec<PendingFile> = paths
            .iter()
            .filter(is_missing)
            .map(|(kind, path)| PendingFile {
                kind: *kind,
                path: path.clone(),
            })
            .collect();
        let progress = self.job.progress;
        if missing.len() > HELD_MAX {
            let kept = progress.transfer(&missing, |missing| {
                let file = open(self.job.disk, &missing.path)?;
                let kept = file.map(|file| self.keep(missing, &file, running));
                kept.transpose()
            })?;
            kept.into_iter().flatten().for_each(|kept| self.note(kept));
            return Ok(None);
        }
        let mut held = Vec::with_capacity(missing.len());
        for missing in missing {
            match open(self.job.disk, &missing.path)? {
                Some(file) => held.push((missing, file)),
                None => return Ok(None),
            }
        }
        let left_out = self.left_out(&listing)?;
        let state = self.keep_state(running)?;
        let kept = progress.transfer(&held, |(missing, file)| self.keep(missing, file, running))?;
        kept.into_iter().for_each(|kept| self.note(kept));
        let chosen = paths
            .iter()
            .filter_map(|(_, path)| self.done.get(path).cloned());
        let mut files: Vec<Entry> = chosen.chain(state).collect();
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Some(Complete {
            files,
            sources,
            left_out,
        }))
    }

    /// Reads the manifests that are not known yet; gives whether all of the segments were there.
    fn read_manifests(&mut self, segments: &[Id]) -> Result<bool, BackupError> {
        for id in segments {
            if self.manifests.contains_key(id) {
                continue;
            }
            let path = build::path(*id, build::SUFFIX_LIVE);
            let Some(file) = open(self.job.disk, &path)? else {
                return Ok(false);
            };
            let live = match SegmentFile::open(file) {
                Ok(segment) => Some(Live::new(segment.manifest(), segment.bytes()))
                    // What has another one's name is damaged, too.
                    .filter(|live| live.id == *id),
                Err(ReadError::Disk(error)) => return Err(error.into()),
                Err(ReadError::Damaged(_)) => None,
            };
            self.manifests.insert(*id, live);
        }
        Ok(true)
    }

    /// The files that belong into the snapshot, and their sources. A segment whose manifest cannot be
    /// read belongs there, too, as evidence.
    fn chosen(&self, listing: &Listing) -> (Vec<(Kind, String)>, SourceSet) {
        let manifests = listing.segments.iter();
        let live: Vec<Live> = manifests
            .filter_map(|id| self.manifests.get(id).cloned().flatten())
            .collect();
        let choice = choose(&listing.closed, &live);
        let is_chosen = |id: &&Id| {
            choice.segments.contains(id) || self.manifests.get(id).is_some_and(Option::is_none)
        };
        let segments = listing.segments.iter().filter(is_chosen);
        let segments = segments.map(|id| (Kind::Segment, build::path(*id, build::SUFFIX_LIVE)));
        let closed = choice.journal.iter();
        let closed = closed.map(|source| {
            (
                Kind::Journal,
                journal::path(*source, journal::SUFFIX_CLOSED),
            )
        });
        (segments.chain(closed).collect(), choice.sources)
    }

    /// Has a file in the store: it is there, or is checked and uploaded.
    fn keep(
        &self,
        missing: &PendingFile,
        file: &Arc<dyn ReadAt>,
        running: &RunMarker<'_>,
    ) -> Result<StoredFile, BackupError> {
        running.go_on()?;
        let known = self.known.get(&missing.path);
        if let Some(known) = known.filter(|known| self.is_there(known)) {
            return Ok(recognised(known, file.bytes()?));
        }
        let (entry, damaged) = examine(missing.kind, &missing.path, file)?;
        let is_new = self.upload(&entry, &**file)?;
        Ok(StoredFile {
            entry,
            damaged,
            is_new,
        })
    }

    /// Takes note of a file that is in the store now.
    fn note(&mut self, kept: StoredFile) {
        let StoredFile { entry, damaged, .. } = kept;
        if kept.is_new {
            self.there.insert(entry.object(), entry.bytes);
            self.uploaded_files += 1;
            self.uploaded_bytes += entry.bytes;
        }
        self.damaged.extend(damaged);
        self.done.insert(entry.path.clone(), entry);
    }

    /// The small files, as they are now.
    fn keep_state(&mut self, running: &RunMarker<'_>) -> Result<Vec<Entry>, BackupError> {
        let mut entries = Vec::new();
        for path in STATE_PATHS {
            running.go_on()?;
            // Whoever replaces one gives a new file its name; this one stays as it is.
            if let Some(file) = open(self.job.disk, path)? {
                let (entry, damaged) = examine(Kind::State, path, &file)?;
                let is_new = self.upload(&entry, &*file)?;
                entries.push(entry.clone());
                self.note(StoredFile {
                    entry,
                    damaged,
                    is_new,
                });
            }
        }
        Ok(entries)
    }

    fn is_there(&self, entry: &Entry) -> bool {
        self.there.get(&entry.object()) == Some(&entry.bytes)
    }

    /// Uploads a file unless it is there; gives whether it did.
    fn upload(&self, entry: &Entry, file: &dyn ReadAt) -> Result<bool, BackupError> {
        if self.is_there(entry) {
            return Ok(false);
        }
        let progress = self.job.progress;
        let counted = MeteredFile { file, progress };
        self.job.objects.put_file(&entry.object(), &counted)?;
        Ok(true)
    }

    /// What is not in the snapshot. An open file may be closed or gone by now; its rows count here
    /// all the same, as they were not closed when it was listed.
    fn left_out(&self, listing: &Listing) -> Result<LeftOut, BackupError> {
        let mut left_out = LeftOut {
            put_aside: listing.put_aside,
            ..LeftOut::default()
        };
        for path in &listing.open {
            left_out.open_files += 1;
            let Some(file) = open(self.job.disk, path)? else {
                continue;
            };
            // One whose end is just being written or cut says nothing yet.
            let scanned = JournalFile::from_file(file, path).map(|journal| journal.scan());
            if let Ok(Ok(scanned)) = scanned {
                left_out.open_rows += scanned.summary.rows();
            }
        }
        Ok(left_out)
    }

    /// Makes sure that the store has everything, and writes the snapshot.
    fn finish(&mut self, complete: Complete) -> Result<BackupReport, BackupError> {
        let there = lengths(self.job.objects)?;
        for entry in &complete.files {
            if let Some(what) = length_wrong(&there, entry) {
                let object = entry.object();
                return Err(BackupError::Differs { object, what });
            }
        }
        let vanished = self.vanished(&complete.sources)?;
        let snapshot = Snapshot {
            created: self.job.now,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            host: self.job.host.to_owned(),
            files: complete.files,
            sources: complete.sources.len(),
            left_out: complete.left_out,
        };
        Ok(BackupReport {
            name: self.write(&snapshot)?,
            snapshot,
            uploaded_files: self.uploaded_files,
            uploaded_bytes: self.uploaded_bytes,
            damaged: std::mem::take(&mut self.damaged),
            vanished,
            other_host: self.other_host.take(),
        })
    }

    /// The files that should be there and are not, while these sources are in the snapshot.
    fn vanished(&self, sources: &SourceSet) -> io::Result<Vec<String>> {
        // In a cluster other nodes may hold them.
        let listed = match &self.inventory {
            InventoryState::Sound(listed) if !listed.is_cluster => listed,
            _ => return Ok(Vec::new()),
        };
        let still = listed.still_absent(self.job.disk, sources)?;
        Ok(still.iter().map(ToString::to_string).collect())
    }

    /// Writes the snapshot under a name that is free.
    fn write(&self, snapshot: &Snapshot) -> Result<SnapshotName, BackupError> {
        let body = Bytes::from(snapshot.to_json() + "\n");
        let mut name = SnapshotName::new(self.job.now, self.newest.as_ref());
        for _ in 0..NAMES_MAX {
            let object = name.object();
            match self.job.objects.create(&object, body.clone())? {
                CreateOutcome::New => return Ok(name),
                // The answer to an earlier attempt may have been lost.
                CreateOutcome::Exists
                    if self
                        .job
                        .objects
                        .get(&object, body.len() as u64)
                        .is_ok_and(|found| found.as_ref() == Some(&body)) =>
                {
                    return Ok(name);
                }
                CreateOutcome::Exists => name = SnapshotName::new(self.job.now, Some(&name)),
            }
        }
        Err(BackupError::Restless)
    }
}

/// A file that was uploaded by an earlier backup, and has so many bytes now.
fn recognised(known: &Entry, bytes: u64) -> StoredFile {
    let what = match (known.is_damaged, bytes == known.bytes) {
        (true, _) => Some("it was when it was uploaded"),
        (false, false) => Some("its length has changed; the backup has it as it was"),
        (false, true) => None,
    };
    StoredFile {
        entry: known.clone(),
        damaged: what.map(|what| DamagedFile {
            path: known.path.clone(),
            what: what.to_owned(),
        }),
        is_new: false,
    }
}

/// Whether an object will not be removed while this backup runs: the newest snapshot lists it, which
/// no `prune` removes, or it is young.
fn counted_on(object: &ObjectEntry, listed: &BTreeSet<String>, time: SystemTime) -> bool {
    listed.contains(&object.name) || !object.is_older(time, GRACE / 2)
}

/// Opens a file; `None` if it is gone.
fn open(disk: &dyn Disk, path: &str) -> io::Result<Option<Arc<dyn ReadAt>>> {
    match disk.open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
