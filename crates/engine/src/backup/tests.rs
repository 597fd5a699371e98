//! Backups into directories and back, of servers that go on meanwhile.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use logpond_bucket::{
    BucketError, CreateOutcome, FailureKind, GRACE, Location, ObjectEntry, Objects, Store,
};
use logpond_protocol::intake::Parser;
use logpond_record::{Batch, EntryKind, Id, Incarnation, SourceId, Timestamp};
use logpond_segment::disk::{AppendFile, DirEntry, Disk, ReadAt, Space};
use logpond_segment::file::Profile;
use logpond_segment::inventory::{self, Inventory, JournalEntry};
use logpond_segment::journal::{self, ClosedFile, Writer};
use logpond_segment::mem_disk::{MemDisk, SeededRandom};
use logpond_segment::{build, verify};
use tempfile::TempDir;

use super::*;
use logpond_host::disk::RealDisk;

const NOW: Timestamp = Timestamp(1_763_921_100_000_000_000);

/// What a server does to its files.
struct TestNode {
    disk: MemDisk,
    writer: Writer,
    parser: Parser,
    /// Closed files that no segment holds.
    closed: Vec<ClosedFile>,
    /// Closed files that a segment holds and that are there still.
    consumed: Vec<ClosedFile>,
    live: Vec<Id>,
    /// Rows of each closed source.
    rows: BTreeMap<SourceId, u64>,
    made: u64,
}

impl TestNode {
    fn new() -> TestNode {
        let disk = MemDisk::new();
        disk.create_directory(build::DIRECTORY).unwrap();
        let writer = Writer::new(Arc::new(disk.clone()), journal::Settings::default());
        TestNode {
            disk,
            writer,
            parser: Parser::new(),
            closed: Vec::new(),
            consumed: Vec::new(),
            live: Vec::new(),
            rows: BTreeMap::new(),
            made: 0,
        }
    }

    fn append(&mut self, rows: u64) {
        self.made += 1;
        let mut batch = Batch::new(EntryKind::Line, vec![("hostname".into(), "ash".into())]);
        for row in 0..rows {
            batch.push(format!("row {row} of {} level=info", self.made).as_bytes());
        }
        let now = NOW.saturating_add(self.made as i64 * 1_000_000);
        self.writer.append(&batch, now, || Incarnation(7)).unwrap();
        self.writer.sync().unwrap();
    }

    fn close(&mut self) {
        self.writer.close().unwrap();
        for file in self.writer.visible().snapshot().closed.iter() {
            if self.rows.insert(file.source, file.summary.rows()).is_none() {
                self.closed.push(file.clone());
            }
        }
    }

    fn next_id(&mut self) -> Id {
        self.made += 1;
        Id(u128::from(self.made))
    }

    /// Puts the closed files into a segment, and leaves them.
    fn make_segment(&mut self) {
        if !self.closed.is_empty() {
            let id = self.next_id();
            let (parser, files) = (&mut self.parser, std::mem::take(&mut self.closed));
            build::from_journal(&self.disk, id, &files, |entry| parser.parse(entry)).unwrap();
            self.live.push(id);
            self.consumed.extend(files);
        }
    }

    /// Removes journal files that a segment holds.
    fn release(&mut self) {
        for file in std::mem::take(&mut self.consumed) {
            self.disk.remove(&file.path).unwrap();
        }
    }

    /// Merges all segments; gives the inputs, which are there still.
    fn merge(&mut self) -> Vec<Id> {
        if self.live.len() < 2 {
            return Vec::new();
        }
        let id = self.next_id();
        let inputs = std::mem::replace(&mut self.live, vec![id]);
        let files = inputs
            .iter()
            .map(|id| build::open(&self.disk, *id).unwrap());
        let files: Vec<_> = files.collect();
        build::merge(&self.disk, id, &files, Profile::Hot, &|| false).unwrap();
        inputs
    }

    fn retire(&mut self, inputs: &[Id]) {
        build::retire(&self.disk, inputs).unwrap();
        build::purge(&self.disk, inputs).unwrap();
    }
}

/// A place for backups.
struct Place {
    directory: TempDir,
    store: Store,
}

impl Place {
    fn new() -> Place {
        let directory = tempfile::tempdir().unwrap();
        let location = Location::Directory(directory.path().to_owned());
        let store = Store::open(&location, &[]).unwrap();
        Place { directory, store }
    }

    fn path(&self, object: &str) -> PathBuf {
        self.directory.path().join(object)
    }
}

fn back_up(
    disk: &dyn Disk,
    objects: &dyn Objects,
    nonce: u128,
) -> Result<BackupReport, BackupError> {
    make(&Job {
        disk,
        objects,
        host: "ash",
        now: NOW,
        nonce,
        progress: &Progress::default(),
    })
}

fn restore_into(place: &Place, data: &Path, name: &str) -> Result<RestoreReport, BackupError> {
    restore(
        &place.store,
        "file:/place",
        name,
        data,
        &Progress::default(),
    )
}

/// What a restored directory holds: the rows of each source. Each must be there once.
fn held(data: &Path) -> BTreeMap<SourceId, u64> {
    let disk = RealDisk::open(data).unwrap();
    let totals = verify::data_directory(&disk, &mut |finding| panic!("{finding:?}")).unwrap();
    let mut rows = BTreeMap::new();
    for segment in build::open_all(&disk).unwrap().live {
        for entry in &segment.manifest().sources {
            assert_eq!(rows.insert(entry.source, entry.rows), None);
        }
    }
    for file in journal::recover(&disk).unwrap().closed {
        assert_eq!(rows.insert(file.source, file.summary.rows()), None);
    }
    assert_eq!(rows.values().sum::<u64>(), totals.rows);
    rows
}

fn restored(place: &Place) -> BTreeMap<SourceId, u64> {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    restore_into(place, &data, "latest").unwrap();
    held(&data)
}

/// A disk on which a server does something before a call now and then.
struct BusyDisk {
    disk: MemDisk,
    server: Mutex<(TestNode, SeededRandom, Vec<Id>)>,
}

impl BusyDisk {
    fn turn(&self) {
        let mut server = self.server.lock().unwrap();
        let (pond, seeded, inputs) = &mut *server;
        for _ in 0..seeded.below(3) {
            match seeded.below(12) {
                0 => pond.append(1 + pond.made % 3),
                1 => pond.close(),
                2 | 3 => pond.make_segment(),
                4 => pond.release(),
                5 if inputs.is_empty() => *inputs = pond.merge(),
                6 | 7 => pond.retire(&std::mem::take(inputs)),
                _ => {}
            }
        }
    }
}

impl Disk for BusyDisk {
    fn list(&self, directory: &str) -> io::Result<Vec<DirEntry>> {
        self.turn();
        self.disk.list(directory)
    }
    fn create_directory(&self, directory: &str) -> io::Result<()> {
        self.disk.create_directory(directory)
    }
    fn create(&self, path: &str) -> io::Result<Box<dyn AppendFile>> {
        self.disk.create(path)
    }
    fn open_append(&self, path: &str) -> io::Result<Box<dyn AppendFile>> {
        self.disk.open_append(path)
    }
    fn open(&self, path: &str) -> io::Result<Arc<dyn ReadAt>> {
        self.turn();
        self.disk.open(path)
    }
    fn truncate(&self, path: &str, bytes: u64) -> io::Result<()> {
        self.disk.truncate(path, bytes)
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.disk.rename(from, to)
    }
    fn remove(&self, path: &str) -> io::Result<()> {
        self.disk.remove(path)
    }
    fn sync_directory(&self, directory: &str) -> io::Result<()> {
        self.disk.sync_directory(directory)
    }
    fn space(&self) -> io::Result<Space> {
        self.disk.space()
    }
}

#[test]
fn everything_closed_is_in_a_backup_while_the_server_goes_on() {
    for seed in 0..40 {
        let mut pond = TestNode::new();
        for rows in 1..4 {
            pond.append(rows);
            pond.close();
            if rows < 3 {
                pond.make_segment();
            }
        }
        let busy = BusyDisk {
            disk: pond.disk.clone(),
            server: Mutex::new((pond, SeededRandom::new(seed), Vec::new())),
        };
        let place = Place::new();
        for nonce in 0..3 {
            let before = busy.server.lock().unwrap().0.rows.clone();
            let made = back_up(&busy, &place.store, nonce).unwrap();
            let after = busy.server.lock().unwrap().0.rows.clone();
            assert_eq!(made.damaged, []);
            let held = restored(&place);
            assert_eq!(made.snapshot.rows(), held.values().sum::<u64>());
            assert_eq!(made.snapshot.sources, held.len() as u64);
            for (source, rows) in &before {
                assert_eq!(held.get(source), Some(rows), "seed {seed}: {source:?}");
            }
            for (source, rows) in &held {
                assert_eq!(after.get(source), Some(rows), "seed {seed}: {source:?}");
            }
        }
    }
}

#[test]
fn a_second_backup_uploads_what_is_new() {
    let mut pond = TestNode::new();
    pond.append(5);
    pond.close();
    pond.make_segment();
    pond.append(7);
    pond.close();
    pond.append(11);
    pond.disk.write("tokens.toml", b"one");
    let place = Place::new();
    let first = back_up(&pond.disk, &place.store, 1).unwrap();
    assert_eq!(first.uploaded_files, 3);
    assert_eq!(first.snapshot.rows(), 12);
    // The segment holds the file that it was made of; the open file is not in it.
    assert_eq!(first.snapshot.sources, 2);
    let left_out = first.snapshot.left_out;
    assert_eq!((left_out.open_files, left_out.open_rows), (1, 11));

    let before = place.store.counters().writes.load(Ordering::Relaxed);
    let second = back_up(&pond.disk, &place.store, 2).unwrap();
    assert_eq!((second.uploaded_files, second.uploaded_bytes), (0, 0));
    assert_eq!(second.snapshot.files, first.snapshot.files);
    // That it runs, the time, and the snapshot.
    let written = place.store.counters().writes.load(Ordering::Relaxed) - before;
    assert_eq!(written, 3);

    pond.close();
    pond.disk.write("tokens.toml", b"two");
    let third = back_up(&pond.disk, &place.store, 3).unwrap();
    assert_eq!(third.uploaded_files, 2);
    assert_eq!(third.snapshot.rows(), 23);
    assert_eq!(restored(&place), pond.rows);
    assert!(first.name < second.name && second.name < third.name);
    assert_eq!(names(&place.store).unwrap().len(), 3);
    assert!(place.store.list(RUNNING, None).unwrap().is_empty());
}

/// A store that fails from a certain upload on.
struct FailingStore<'a> {
    store: &'a Store,
    left: AtomicU64,
}

impl Objects for FailingStore<'_> {
    fn read(&self, name: &str, offset: u64, bytes: u64) -> Result<Bytes, BucketError> {
        self.store.read(name, offset, bytes)
    }
    fn get(&self, name: &str, bytes_max: u64) -> Result<Option<Bytes>, BucketError> {
        self.store.get(name, bytes_max)
    }
    fn create(&self, name: &str, body: Bytes) -> Result<CreateOutcome, BucketError> {
        self.store.create(name, body)
    }
    fn put(&self, name: &str, body: Bytes) -> Result<(), BucketError> {
        self.store.put(name, body)
    }
    fn put_file(&self, name: &str, file: &dyn ReadAt) -> Result<(), BucketError> {
        match self.left.load(Ordering::Relaxed) {
            0 => Err(BucketError {
                operation: "write",
                name: name.to_owned(),
                kind: FailureKind::Unavailable,
                source: "cut".into(),
            }),
            left => {
                self.left.store(left - 1, Ordering::Relaxed);
                self.store.put_file(name, file)
            }
        }
    }
    fn list(&self, prefix: &str, behind: Option<&str>) -> Result<Vec<ObjectEntry>, BucketError> {
        self.store.list(prefix, behind)
    }
    fn remove(&self, name: &str) -> Result<(), BucketError> {
        self.store.remove(name)
    }
}

#[test]
fn an_interrupted_backup_is_none_and_the_next_one_goes_on() {
    let mut pond = TestNode::new();
    for rows in 1..6 {
        pond.append(rows);
        pond.close();
    }
    let place = Place::new();
    let failing = FailingStore {
        store: &place.store,
        left: AtomicU64::new(3),
    };
    let error = back_up(&pond.disk, &failing, 1).unwrap_err().to_string();
    assert!(error.contains("backup/files/journal/"), "{error}");
    assert!(matches!(
        find(&place.store, "latest"),
        Err(BackupError::Empty)
    ));
    let made = back_up(&pond.disk, &place.store, 2).unwrap();
    assert_eq!(made.uploaded_files, 2);
    assert_eq!(restored(&place), pond.rows);
}

/// A place with a segment, a journal file and tokens.
fn filled() -> (TestNode, Place, BackupReport) {
    let mut pond = TestNode::new();
    pond.append(5);
    pond.close();
    pond.make_segment();
    pond.release();
    pond.append(7);
    pond.close();
    pond.disk.write("tokens.toml", b"hashes");
    pond.disk.write("cluster/node", b"me");
    let place = Place::new();
    let made = back_up(&pond.disk, &place.store, 1).unwrap();
    (pond, place, made)
}

#[test]
fn a_damaged_object_is_named_and_a_restore_goes_on_once_it_is_whole() {
    use std::os::unix::fs::PermissionsExt;

    let (pond, place, made) = filled();
    let segment = made.snapshot.files[1].clone();
    assert!(segment.path.starts_with("segments/"));
    let path = place.path(&format!("backup/files/{}", segment.path));
    let good = fs::read(&path).unwrap();
    let mut bad = good.clone();
    bad[good.len() / 2] ^= 1;
    fs::write(&path, &bad).unwrap();
    let damaged = super::verify(&place.store, &made.snapshot, &Progress::default()).unwrap();
    assert!(damaged.len() == 1 && damaged[0].path.contains(&segment.path));

    let directory = tempfile::tempdir().unwrap();
    let data = directory.path();
    let error = restore_into(&place, data, "latest")
        .unwrap_err()
        .to_string();
    assert!(
        error.contains(&segment.path) && error.contains("checksum"),
        "{error}"
    );
    let disk = RealDisk::open(data).unwrap();
    assert!(disk.list(build::DIRECTORY).unwrap().is_empty());
    let error = refuse_unfinished(&disk).unwrap_err().to_string();
    assert!(error.contains("logpond restore"), "{error}");

    // Another one does not mix with it.
    back_up(&pond.disk, &place.store, 2).unwrap();
    let error = restore_into(&place, data, "latest").unwrap_err();
    assert!(matches!(error, BackupError::OtherRestore { .. }), "{error}");

    fs::write(&path, &bad[1..]).unwrap();
    assert!(restore_into(&place, data, &made.name.to_string()).is_err());
    fs::remove_file(&path).unwrap();
    let error = restore_into(&place, data, &made.name.to_string());
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains(&segment.path) && error.contains("no such object"),
        "{error}"
    );
    fs::write(&path, &good).unwrap();
    let restored = restore_into(&place, data, &made.name.to_string()).unwrap();
    // The file before it is there; the one behind it was being restored at the same time.
    assert!((1..=2).contains(&restored.kept_files), "{restored:?}");
    refuse_unfinished(&disk).unwrap();
    let mode = |name| fs::metadata(data.join(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("tokens.toml"), 0o600);
    assert!(!data.join("cluster").exists());
    assert_eq!(held(data), pond.rows);

    let error = restore_into(&place, data, "latest").unwrap_err();
    assert!(matches!(error, BackupError::NotEmpty { .. }), "{error}");
    let error = restore_into(&place, data, "2025").unwrap_err();
    assert!(matches!(error, BackupError::Unknown(_)), "{error}");
}

#[test]
fn damaged_files_are_copied_as_they_are_and_said_each_time() {
    let (pond, _, _) = filled();
    let path = build::path(pond.live[0], build::SUFFIX_LIVE);
    let mut bytes = pond.disk.read(&path).unwrap();
    let end = bytes.len() - 9;
    for at in [100, end] {
        bytes[at] ^= 1;
        pond.disk.write(&path, &bytes);
        let place = Place::new();
        for nonce in 1..3 {
            let made = back_up(&pond.disk, &place.store, nonce).unwrap();
            assert_eq!(made.damaged.len(), 1);
            assert_eq!(made.damaged[0].path, path);
            assert!(made.snapshot.files.iter().any(|entry| entry.is_damaged));
        }
        let directory = tempfile::tempdir().unwrap();
        restore_into(&place, directory.path(), "latest").unwrap();
        assert_eq!(fs::read(directory.path().join(&path)).unwrap(), bytes);
    }
}

#[test]
fn a_file_that_vanished_is_named() {
    let mut pond = TestNode::new();
    pond.append(5);
    pond.close();
    pond.append(7);
    pond.close();
    let mut inventory = Inventory::default();
    for file in &pond.closed {
        let entry = JournalEntry::new(&file.summary, false);
        inventory.journal.insert(file.source, entry);
    }
    pond.disk.write(inventory::PATH, &inventory.to_bytes());
    let place = Place::new();
    let whole = back_up(&pond.disk, &place.store, 1).unwrap();
    assert_eq!(whole.vanished, [""; 0]);
    let gone = pond.closed[0].path.clone();
    pond.disk.remove(&gone).unwrap();
    let made = back_up(&pond.disk, &place.store, 2).unwrap();
    let [vanished] = &made.vanished[..] else {
        panic!("{:?}", made.vanished)
    };
    assert!(
        vanished.starts_with(&gone) && vanished.contains("5 records"),
        "{vanished}"
    );
}

#[test]
fn a_damaged_snapshot_hides_no_older_one() {
    let (mut pond, place, first) = filled();
    let rows = pond.rows.clone();
    pond.append(2);
    pond.close();
    let second = back_up(&pond.disk, &place.store, 2).unwrap();
    let newest = place.path(&second.name.object());
    let bytes = fs::read(&newest).unwrap();
    fs::write(&newest, &bytes[..bytes.len() - 10]).unwrap();
    let found = super::open(&place.store, "latest").unwrap();
    assert_eq!(found.name, first.name);
    assert!(
        found.unusable[0].contains("cannot be used"),
        "{:?}",
        found.unusable
    );
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let report = restore_into(&place, &data, "latest").unwrap();
    assert_eq!(
        (report.name, report.unusable.len()),
        (first.name.clone(), 1)
    );
    assert_eq!(held(&data), rows);
    // Who names it is told, and so is everybody once there is no other one.
    let named = super::open(&place.store, &second.name.to_string());
    assert!(matches!(named, Err(BackupError::Snapshot { .. })));
    place.store.remove(&first.name.object()).unwrap();
    let only = super::open(&place.store, "latest");
    assert!(matches!(only, Err(BackupError::Snapshot { .. })));
}

#[test]
fn pruning_keeps_what_is_needed() {
    let keep = |count| NonZeroUsize::new(count).unwrap();
    let (mut pond, place, first) = filled();
    pond.append(2);
    pond.close();
    pond.make_segment();
    pond.release();
    back_up(&pond.disk, &place.store, 2).unwrap();
    let inputs = pond.merge();
    pond.retire(&inputs);
    let third = back_up(&pond.disk, &place.store, 3).unwrap();
    assert_eq!(third.snapshot.files.len(), 2);
    // Merged: two segments, and the journal file that went into one of them.
    let there = || place.store.list(FILES, None).unwrap().len();
    assert_eq!(there(), 5);

    let pruned = prune(&place.store, keep(3), Duration::ZERO, &Progress::default()).unwrap();
    assert_eq!((pruned.kept, pruned.snapshots, pruned.files), (3, 0, 0));
    // A backup runs.
    place
        .store
        .put(&format!("{RUNNING}1"), Bytes::new())
        .unwrap();
    let pruned = prune(&place.store, keep(1), GRACE, &Progress::default()).unwrap();
    assert_eq!((pruned.snapshots, pruned.files), (2, 0));
    assert!(pruned.is_running);
    place.store.remove(&format!("{RUNNING}1")).unwrap();
    // All are young.
    let pruned = prune(&place.store, keep(1), GRACE, &Progress::default()).unwrap();
    assert_eq!((pruned.files, pruned.young), (0, 3));
    let pruned = prune(&place.store, keep(1), Duration::ZERO, &Progress::default()).unwrap();
    assert_eq!((pruned.kept, pruned.files, pruned.young), (1, 3, 0));
    assert_eq!(there(), 2);
    assert_eq!(restored(&place), pond.rows);
    assert!(find(&place.store, &first.name.to_string()).is_err());

    // A snapshot that cannot be read might need anything.
    let newest = place.path(&third.name.object());
    fs::write(&newest, b"{}").unwrap();
    assert!(prune(&place.store, keep(1), Duration::ZERO, &Progress::default()).is_err());
    assert_eq!(there(), 2);
    fs::remove_file(&newest).unwrap();
    prune(&place.store, keep(1), Duration::ZERO, &Progress::default()).unwrap();
    assert_eq!(there(), 2);
}

#[test]
fn the_next_backup_repairs_what_is_gone_from_the_store() {
    let (pond, place, made) = filled();
    let object = made.snapshot.files[0].object();
    fs::remove_file(place.path(&object)).unwrap();
    let wrong = super::verify(&place.store, &made.snapshot, &Progress::default()).unwrap();
    assert!(wrong.len() == 1 && wrong[0].path == object);
    let again = back_up(&pond.disk, &place.store, 2).unwrap();
    assert_eq!(again.uploaded_files, 1);
    assert_eq!(restored(&place), pond.rows);
}
