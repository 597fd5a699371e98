//! Files in a store in memory, read through a cache on the disk.

mod needle;

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use logpond_segment::mem_disk::SeededRandom;
use proptest::prelude::*;

use super::*;
use crate::objects::{BucketError, CreateOutcome, FailureKind, ObjectEntry};

/// Objects in memory that only are read, and what is asked of them.
#[derive(Default)]
struct Store {
    objects: BTreeMap<String, Bytes>,
    requests: Mutex<Vec<(String, Range<u64>)>>,
    fails: AtomicBool,
    /// True if each byte is another one than it should be.
    lies: AtomicBool,
    /// One of so many requests fails, if it is not 0.
    fails_one_in: AtomicU64,
}

impl Store {
    fn taken(&self) -> Vec<(String, Range<u64>)> {
        std::mem::take(&mut *lock(&self.requests))
    }
}

fn failed(name: &str, kind: FailureKind) -> BucketError {
    BucketError {
        operation: "read",
        name: name.to_owned(),
        kind,
        source: "as the test wants it".into(),
    }
}

impl Objects for Store {
    fn read(&self, name: &str, offset: u64, bytes: u64) -> Result<Bytes, BucketError> {
        let mut requests = lock(&self.requests);
        requests.push((name.to_owned(), offset..offset + bytes));
        let one_in = self.fails_one_in.load(Ordering::Relaxed);
        if self.fails.load(Ordering::Relaxed)
            || one_in > 0 && (requests.len() as u64).is_multiple_of(one_in)
        {
            return Err(failed(name, FailureKind::Unavailable));
        }
        let object = self.objects.get(name);
        let object = object.ok_or_else(|| failed(name, FailureKind::Missing))?;
        assert!(bytes > 0 && offset + bytes <= object.len() as u64);
        let part = object.slice(offset as usize..(offset + bytes) as usize);
        if self.lies.load(Ordering::Relaxed) {
            return Ok(part.iter().map(|byte| !byte).collect());
        }
        Ok(part)
    }

    fn get(&self, name: &str, _: u64) -> Result<Option<Bytes>, BucketError> {
        Ok(self.objects.get(name).cloned())
    }

    fn create(&self, name: &str, _: Bytes) -> Result<CreateOutcome, BucketError> {
        Err(failed(name, FailureKind::Unsupported))
    }

    fn put(&self, name: &str, _: Bytes) -> Result<(), BucketError> {
        Err(failed(name, FailureKind::Unsupported))
    }

    fn list(&self, prefix: &str, _: Option<&str>) -> Result<Vec<ObjectEntry>, BucketError> {
        Err(failed(prefix, FailureKind::Unsupported))
    }

    fn remove(&self, name: &str) -> Result<(), BucketError> {
        Err(failed(name, FailureKind::Unsupported))
    }
}

const KIB: u64 = 1 << 10;

/// Name, length and where the index begins. No part of one looks like another.
const OBJECTS: [(&str, u64, u64); 4] = [
    ("segments/a", 3000 * KIB + 17, 2800 * KIB),
    ("segments/b", 1024 * KIB, 900 * KIB),
    ("segments/c", 200 * KIB + 1, 200 * KIB),
    ("d", 5, 0),
];

fn store() -> Arc<Store> {
    let mut random = SeededRandom::new(1);
    let objects = OBJECTS.map(|(name, bytes, _)| {
        let bytes: Vec<u8> = (0..bytes).map(|_| random.draw() as u8).collect();
        (name.to_owned(), bytes.into())
    });
    Arc::new(Store {
        objects: objects.into(),
        ..Store::default()
    })
}

fn open_files(cache: &Cache, store: &Arc<Store>) -> Vec<RemoteFile> {
    let files = OBJECTS.map(|(name, bytes, index_from)| {
        RemoteFile::new(cache, store.clone(), name, bytes, index_from)
    });
    files[0].regions(&[
        (4, 700 * KIB),
        (4 + 700 * KIB, 1400 * KIB),
        (2200 * KIB, 600 * KIB),
    ]);
    files.into()
}

/// What happens in a test.
#[derive(Clone, Debug)]
enum Step {
    Read {
        object: usize,
        place: f64,
        bytes: usize,
        fails: bool,
    },
    Hint {
        object: usize,
        place: f64,
        bytes: u64,
    },
    Forget {
        object: usize,
    },
    /// The process ends, files are damaged, and it begins anew with another bound.
    Restart {
        kib_max: u64,
        damage: Vec<(usize, f64, u8)>,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let (object, place) = (0..OBJECTS.len(), 0.0..1.0f64);
    let bytes = prop_oneof![4 => 0usize..9000, 1 => 0usize..1_500_000];
    let damage = prop::collection::vec((0usize..8, 0.0..1.0f64, any::<u8>()), 0..3);
    prop_oneof![
        12 => (object.clone(), place.clone(), bytes, prop::bool::weighted(0.15))
            .prop_map(|(object, place, bytes, fails)| Step::Read { object, place, bytes, fails }),
        2 => (object.clone(), place, 0u64..2_000_000)
            .prop_map(|(object, place, bytes)| Step::Hint { object, place, bytes }),
        1 => object.prop_map(|object| Step::Forget { object }),
        1 => (0u64..6000, damage).prop_map(|(kib_max, damage)| Step::Restart { kib_max, damage }),
    ]
}

/// Damages a file of the cache.
fn damage(directory: &Path, file: usize, place: f64, how: u8) {
    let mut files: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|f| f.unwrap().path())
        .collect();
    files.sort();
    let Some(path) = files.get(file) else {
        return;
    };
    let open = OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .unwrap();
    let length = open.metadata().unwrap().len();
    if length < 64 {
        return;
    }
    let at = (place * length as f64) as u64;
    match how % 4 {
        0 => open.set_len(at).unwrap(),
        1 => open.set_len(length + at).unwrap(),
        2 => fs::remove_file(path).unwrap(),
        // Also the marks and the trailer are hit.
        _ => {
            let at = if how > 128 {
                length - 1 - u64::from(how % 64)
            } else {
                at
            };
            let mut byte = [0];
            open.read_exact_at(&mut byte, at).unwrap();
            open.write_all_at(&[byte[0] ^ how], at).unwrap();
        }
    }
}

/// Reads, and compares with the object and with what had to be fetched.
fn check_read(store: &Store, files: &[RemoteFile], object: usize, place: f64, bytes: usize) {
    let (file, expected) = (&files[object], &store.objects[OBJECTS[object].0]);
    let from = (place * expected.len() as f64) as usize;
    let to = (from + bytes).min(expected.len());
    let entry = file.object.entry.as_ref().unwrap();
    let is_present = |block: u64| entry.present.has(block);
    let before: Vec<bool> = (0..entry.geometry.blocks()).map(is_present).collect();
    let has_all = entry
        .present
        .has_all(entry.geometry.covering(from as u64, to as u64));
    let counters = file.object.cache.counters();
    let evictions = || counters.evictions.load(Ordering::Relaxed);
    let evicted = evictions();
    let mut buffer = vec![0; to - from];
    match file.read_at(from as u64, &mut buffer) {
        Ok(()) => assert!(buffer == expected[from..to], "{object} {from} {to}"),
        Err(_) => assert!(store.fails.load(Ordering::Relaxed) && !has_all),
    }
    let requests = store.taken();
    assert!(requests.is_empty() || !has_all);
    if evictions() != evicted {
        // A tail may take the place of pages that the read has found present.
        return;
    }
    let mut fetched = vec![false; before.len()];
    for (name, range) in requests {
        assert_eq!(name, OBJECTS[object].0);
        let blocks = entry.geometry.covering(range.start, range.end);
        // What is present is fetched only between what is not.
        assert!(!before[blocks.start as usize] && !before[blocks.end as usize - 1]);
        for block in blocks {
            let again = std::mem::replace(&mut fetched[block as usize], true);
            assert!(!again, "block {block} is fetched twice");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn bytes_are_those_of_the_objects(steps in prop::collection::vec(step(), 1..40)) {
        let directory = tempfile::tempdir().unwrap();
        let store = store();
        let mut cache = Cache::open(directory.path(), 2000 * KIB).unwrap();
        let mut files = open_files(&cache, &store);
        for step in steps {
            match step {
                Step::Read { object, place, bytes, fails } => {
                    store.fails.store(fails, Ordering::Relaxed);
                    check_read(&store, &files, object, place, bytes);
                }
                Step::Hint { object, place, bytes } => {
                    files[object].will_read((place * OBJECTS[object].1 as f64) as u64, bytes);
                }
                Step::Forget { object } => cache.forget(OBJECTS[object].0),
                Step::Restart { kib_max, damage: damages } => {
                    drop((files, cache));
                    damages.iter().for_each(|(file, place, how)| damage(directory.path(), *file, *place, *how));
                    cache = Cache::open(directory.path(), kib_max * KIB).unwrap();
                    files = open_files(&cache, &store);
                }
            }
            cache.check();
        }
    }
}

/// Several threads, too little room, and a store that fails now and then.
#[test]
fn threads_that_read_the_same_get_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let store = store();
    for (kib_max, fails_one_in) in [(8000, 0), (1500, 7), (300, 0), (0, 5)] {
        store.fails_one_in.store(fails_one_in, Ordering::Relaxed);
        let cache = Cache::open(directory.path(), kib_max * KIB).unwrap();
        let files = open_files(&cache, &store);
        let read_some = |seed: u64| {
            let mut random = SeededRandom::new(seed);
            for _ in 0..400 {
                let object = random.below(3) as usize;
                let expected = &store.objects[OBJECTS[object].0];
                let length = expected.len() as u64;
                let bytes = (1 << random.below(21)).min(length);
                let from = random.below(length - bytes + 1);
                if random.one_in(10) {
                    files[object].will_read(from, bytes * 3);
                }
                let mut buffer = vec![0; bytes as usize];
                match files[object].read_at(from, &mut buffer) {
                    Ok(()) => assert!(buffer == expected[from as usize..(from + bytes) as usize]),
                    Err(error) => assert!(fails_one_in > 0, "{error}"),
                }
            }
        };
        thread::scope(|scope| {
            for seed in 1..5 {
                let read_some = &read_some;
                scope.spawn(move || read_some(seed));
            }
        });
        cache.check();
    }
}

/// Threads that miss the same blocks at the same time fetch each of them once.
#[test]
fn nothing_is_fetched_twice() {
    let directory = tempfile::tempdir().unwrap();
    let store = store();
    let cache = Cache::open(directory.path(), 8000 * KIB).unwrap();
    let file = &open_files(&cache, &store)[1];
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for block in 0..16 {
                    file.read_at(block * BLOCK_BYTES, &mut [0; 100]).unwrap();
                }
            });
        }
    });
    let requests = store.taken();
    let bytes: u64 = requests
        .iter()
        .map(|(_, range)| range.end - range.start)
        .sum();
    // One for each block, but for the two of the tail.
    assert_eq!((requests.len(), bytes), (15, 1024 * KIB));
}

/// A long range comes with several requests, and what one of them has brought is kept if another fails.
/// Wrong bytes are kept as long as nobody notices, and not after that, nor after a start.
#[test]
fn wrong_bytes_are_fetched_again() {
    let directory = tempfile::tempdir().unwrap();
    let store = store();
    store.lies.store(true, Ordering::Relaxed);
    let expected = store.objects["segments/b"].clone();
    {
        let cache = Cache::open(directory.path(), 8000 * KIB).unwrap();
        let file = &open_files(&cache, &store)[1];
        let mut buffer = vec![0; expected.len()];
        file.read_at(0, &mut buffer).unwrap();
        assert_ne!(buffer, expected);
        store.lies.store(false, Ordering::Relaxed);
        file.read_at(0, &mut buffer).unwrap();
        assert_ne!(buffer, expected, "nobody has noticed");
        file.distrust();
        file.read_at(5, &mut buffer[5..]).unwrap();
        assert_eq!(buffer[5..], expected[5..]);
    }
    let cache = Cache::open(directory.path(), 8000 * KIB).unwrap();
    let file = &open_files(&cache, &store)[1];
    let mut buffer = vec![0; expected.len()];
    file.read_at(0, &mut buffer).unwrap();
    assert_eq!(buffer, expected);
}

#[test]
fn long_ranges_come_in_parts() {
    let directory = tempfile::tempdir().unwrap();
    let bytes = 40 * KIB * KIB;
    let object: Vec<u8> = (0..bytes).map(|at| (at / 1000) as u8).collect();
    let store = Arc::new(Store {
        objects: [("long".to_owned(), object.clone().into())].into(),
        ..Store::default()
    });
    let cache = Cache::open(directory.path(), 2 * bytes).unwrap();
    let costs = Arc::new(Costs::default());
    let file = RemoteFile::new(&cache, store.clone(), "long", bytes, bytes).counted(costs.clone());
    store.fails_one_in.store(3, Ordering::Relaxed);
    file.will_read(0, bytes);
    let mut buffer = vec![0; object.len()];
    file.read_at(0, &mut buffer).unwrap_err();
    let tried = store.taken().len();
    store.fails_one_in.store(0, Ordering::Relaxed);
    file.read_at(0, &mut buffer).unwrap();
    assert!(buffer == object && tried == 3);
    assert_eq!(store.taken().len(), 1, "only what has failed");
    assert_eq!(costs.requests.load(Ordering::Relaxed), 4);
    assert_eq!(costs.bytes.load(Ordering::Relaxed), bytes);
    file.read_at(bytes - 1, &mut buffer[..2]).unwrap_err();
    cache.check();
}
