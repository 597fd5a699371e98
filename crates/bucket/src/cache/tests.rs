//! Claims and what is on the disk, without a store.

use std::os::unix::fs::FileExt;

use super::*;

impl Cache {
    /// Checks that what is held is what is present or was left behind, and within the bound. Nobody
    /// may use the cache meanwhile.
    pub(crate) fn check(&self) {
        let state = lock(&self.0.state);
        let mut held = 0;
        for entry in state.entries.values() {
            for kind in [Kind::Pages, Kind::Tail] {
                let part = entry.part(kind);
                let has = |block: &u64| entry.present.has(*block) || entry.left_behind.has(*block);
                let blocks = part.blocks.clone().filter(has);
                let bytes: u64 = blocks
                    .map(|block| entry.geometry.length_of(&(block..block + 1)))
                    .sum();
                assert_eq!(bytes, part.held.load(Ordering::Relaxed), "{:?}", part.path);
                assert_eq!(part.path.exists(), bytes > 0 || shared(part).file.is_some());
                held += bytes;
            }
        }
        assert_eq!(held, state.bytes);
        assert_eq!(held, self.0.counters.held_bytes.load(Ordering::Relaxed));
        assert!(held <= self.0.bytes_max);
    }

    fn known(&self) -> Vec<String> {
        lock(&self.0.state).entries.keys().cloned().collect()
    }
}

const MIB: u64 = 1 << 20;

fn entry(cache: &Cache, name: &str) -> Arc<Entry> {
    cache.entry(name, Geometry::new(4 * MIB, 3 * MIB)).unwrap()
}

fn claimed(entry: &Arc<Entry>, blocks: Range<u64>) -> BlockClaim {
    match entry.claim(&blocks) {
        Claim::Fetch(claimed) => claimed,
        _ => panic!("nothing to fetch of {blocks:?}"),
    }
}

fn count(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

#[test]
fn one_fetches_and_others_wait() {
    let directory = tempfile::tempdir().unwrap();
    let cache = Cache::open(directory.path(), MIB).unwrap();
    let entry = entry(&cache, "a");
    let first = claimed(&entry, 2..5);
    let Claim::Wait(flight) = entry.claim(&(4..6)) else {
        panic!("block 4 is claimed");
    };
    let second = claimed(&entry, 6..8);
    assert!(!first.may_bridge(5) && !first.may_bridge(6));
    cache.store(&entry, 2, &[7; 3 * BLOCK_BYTES as usize]);
    first.settle(None);
    flight.wait().unwrap();
    assert_eq!(claimed(&entry, 4..6).blocks, [5]);
    assert!(second.may_bridge(4));
    let Claim::Wait(flight) = entry.claim(&(6..7)) else {
        panic!("block 6 is claimed");
    };
    second.settle(Some(&io::Error::other("no route")));
    assert_eq!(flight.wait().unwrap_err().to_string(), "no route");
    assert_eq!(claimed(&entry, 6..7).blocks, [6]);
}

#[test]
fn waiters_of_a_panic_try_for_themselves() {
    let directory = tempfile::tempdir().unwrap();
    let cache = Cache::open(directory.path(), MIB).unwrap();
    let entry = entry(&cache, "a");
    let first = claimed(&entry, 2..5);
    let Claim::Wait(flight) = entry.claim(&(2..3)) else {
        panic!("block 2 is claimed");
    };
    drop(first);
    flight.wait().unwrap();
    assert_eq!(claimed(&entry, 2..3).blocks, [2]);
}

/// Hints bring their range, the tail comes whole, and regions first in part.
#[test]
fn more_is_fetched_where_it_will_be_read() {
    let directory = tempfile::tempdir().unwrap();
    let cache = Cache::open(directory.path(), 8 * MIB).unwrap();
    let entry = entry(&cache, "a");
    let fetch = |asked: Range<u64>| {
        let claimed = claimed(&entry, asked);
        let blocks = claimed.blocks.clone();
        for &block in &blocks {
            cache.store(&entry, block, &[1; BLOCK_BYTES as usize]);
        }
        (blocks[0], *blocks.last().unwrap(), blocks.len())
    };
    assert_eq!(fetch(50..51), (48, 63, 16));
    assert_eq!(fetch(3..4), (3, 3, 1));
    entry.add_hint(4 * BLOCK_BYTES + 5, 7 * BLOCK_BYTES + 1);
    assert_eq!(fetch(6..7), (4, 7, 4));
    // From within block 8 to within block 30, and on to the tail.
    entry.set_regions(&[
        (9 * BLOCK_BYTES - 1, 21 * BLOCK_BYTES),
        (30 * BLOCK_BYTES - 1, 17 * BLOCK_BYTES),
    ]);
    assert_eq!(fetch(12..13), (12, 19, 8));
    assert_eq!(fetch(22..23), (8, 29, 14));
    assert_eq!(fetch(30..43), (30, 42, 13));
    assert_eq!(fetch(43..44), (43, 46, 4));
    cache.check();
}

#[test]
fn pages_go_before_tails_and_the_least_used_first() {
    let directory = tempfile::tempdir().unwrap();
    let cache = Cache::open(directory.path(), 8 * BLOCK_BYTES).unwrap();
    let block = [1; BLOCK_BYTES as usize];
    let entries = ["a", "b", "c"].map(|name| entry(&cache, name));
    for entry in &entries {
        cache.count_miss();
        cache.store(entry, 0, &block);
        cache.store(entry, 60, &block);
    }
    let mut buffer = [0; 100];
    cache.count_miss();
    assert!(cache.read(&entries[0], 5, &mut buffer));
    // Two are free, so the pages of b go for the third.
    cache.store(&entries[2], 1, &[2; 3 * BLOCK_BYTES as usize]);
    let has = |block| entries.each_ref().map(|entry| entry.present.has(block));
    assert_eq!((has(0), has(60)), ([true, false, true], [true; 3]));
    // As many as there is room for: everything but the tail of the same object goes.
    cache.store(&entries[2], 4, &[2; 3 * BLOCK_BYTES as usize]);
    assert_eq!(
        (has(0), has(60)),
        ([false, false, true], [false, false, true])
    );
    // Too many: they are not kept. Of another object: they are.
    cache.store(&entries[2], 7, &[2; 3 * BLOCK_BYTES as usize]);
    assert!(entries[2].is_refused.load(Ordering::Relaxed));
    cache.check();
    cache.store(&entries[1], 7, &[2; 6 * BLOCK_BYTES as usize]);
    assert_eq!(has(7), [false, true, false]);
    assert_eq!(count(&cache.counters().evictions), 5);
    cache.check();
}

#[test]
fn files_of_others_stay_and_damaged_ones_go() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let cache = Cache::open(directory.path(), 8 * MIB).unwrap();
    for name in ["s/whole", "s/short", "s/long", "s/renamed", "s/flipped"] {
        cache.store(&entry(&cache, name), 3, &[5; 4 * BLOCK_BYTES as usize]);
    }
    drop(cache);
    fs::write(path("notes.txt"), "mine").unwrap();
    fs::write(path("empty.tail"), "").unwrap();
    fs::write(path("other.pages"), [9; 5000]).unwrap();
    fs::rename(path("s%2Frenamed.pages"), path("s%2Fother.pages")).unwrap();
    let open = |name: &str| fs::OpenOptions::new().write(true).open(path(name)).unwrap();
    open("s%2Fshort.pages").set_len(9 * BLOCK_BYTES).unwrap();
    open("s%2Flong.pages")
        .write_all_at(&[1; 100], 100 * BLOCK_BYTES)
        .unwrap();
    open("s%2Fflipped.pages")
        .write_all_at(b"x", 5 * BLOCK_BYTES + 77)
        .unwrap();
    let cache = Cache::open(directory.path(), 8 * MIB).unwrap();
    assert_eq!(cache.known(), ["s/flipped", "s/whole"]);
    let mut left: Vec<_> = fs::read_dir(directory.path()).unwrap().collect();
    left.sort_by_key(|file| file.as_ref().unwrap().file_name());
    assert_eq!(left.len(), 3, "{left:?}");
    cache.check();
    let entry = entry(&cache, "s/flipped");
    cache.check_left_behind(&entry, &[2, 3, 4, 5, 6, 7]);
    let present = [2, 3, 4, 5, 6, 7].map(|block| entry.present.has(block));
    assert_eq!(present, [false, true, true, false, true, false]);
    assert_eq!(count(&cache.counters().unsound_blocks), 1);
    cache.check();
    // Reopened with less room, and for an object of another length.
    drop((entry, cache));
    let cache = Cache::open(directory.path(), 5 * BLOCK_BYTES).unwrap();
    assert_eq!(count(&cache.counters().evictions), 1);
    let other = cache
        .entry("s/whole", Geometry::new(5 * MIB, 3 * MIB))
        .unwrap();
    assert!(!other.left_behind.has(3));
    cache.check();
}

/// A directory that is taken away, as a disk that fails: what was open is still read, nothing new kept.
#[test]
fn a_failing_disk_is_counted() {
    let directory = tempfile::tempdir().unwrap();
    let inside = directory.path().join("cache");
    let cache = Cache::open(&inside, MIB).unwrap();
    let entry = entry(&cache, "a");
    cache.store(&entry, 0, &[3; BLOCK_BYTES as usize]);
    fs::remove_dir_all(&inside).unwrap();
    let mut buffer = [0; 100];
    assert!(cache.read(&entry, 5, &mut buffer));
    cache.store(&entry, 60, &[3; BLOCK_BYTES as usize]);
    assert!(!entry.present.has(60) && entry.is_refused.load(Ordering::Relaxed));
    assert_eq!(count(&cache.counters().disk_failures), 1);
    let long = "x".repeat(300);
    assert!(cache.entry(&long, Geometry::new(1, 0)).is_none());
    assert_eq!(count(&cache.counters().disk_failures), 2);
    assert_eq!(count(&cache.counters().held_bytes), BLOCK_BYTES);
}

#[test]
fn entries_go_with_their_files() {
    let directory = tempfile::tempdir().unwrap();
    let cache = Cache::open(directory.path(), MIB).unwrap();
    let kept = entry(&cache, "kept");
    let empty = entry(&cache, "empty");
    cache.store(&kept, 0, &[3; BLOCK_BYTES as usize]);
    cache.release(&kept);
    cache.release(&empty);
    assert_eq!(cache.known(), ["kept"]);
    cache.forget("kept");
    assert_eq!(cache.known(), [""; 0]);
    assert!(!kept.present.has(0));
    // A reader that still has it goes on without the cache.
    cache.store(&kept, 0, &[3; BLOCK_BYTES as usize]);
    assert!(!kept.present.has(0));
    cache.check();
}

/// A file that is dropped while it is being written takes with it what was reserved, and what was to be
/// written does not get into its successor.
#[test]
fn what_was_dropped_meanwhile_stays_dropped() {
    let directory = tempfile::tempdir().unwrap();
    let cache = Cache::open(directory.path(), MIB).unwrap();
    let entry = entry(&cache, "a");
    let drop_pages = || {
        let mut state = lock(&cache.0.state);
        cache.discard(&mut state, &entry, Kind::Pages);
    };
    let block = [3; BLOCK_BYTES as usize];
    let written = cache.reserve(&entry, Kind::Pages, BLOCK_BYTES).unwrap();
    let failed = cache.reserve(&entry, Kind::Pages, BLOCK_BYTES).unwrap();
    drop_pages();
    cache.write(&entry, written, 0, &block);
    cache.store(&entry, 1, &block);
    cache.write(&entry, written, 0, &block);
    cache.give_back(&entry, Kind::Pages, failed, BLOCK_BYTES, None);
    assert!(!entry.present.has(0) && entry.present.has(1));
    cache.check();
    let failed = cache.reserve(&entry, Kind::Pages, BLOCK_BYTES).unwrap();
    cache.give_back(&entry, Kind::Pages, failed, BLOCK_BYTES, None);
    cache.check();
}
