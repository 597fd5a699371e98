//! A bounded memory of what was read or computed; what was not asked for longest goes first.
//!
//! Questions go over everything again and again, in the same order. Where that is more than there is room
//! for, making room for each part would push out the very one that is asked for next, and nothing would
//! ever be found. So what was asked for a short while ago stays, and the new is not kept.
//!
//! Sizes are those of the memory that is taken: an allocation counts as what an allocator hands out for it,
//! and an entry has places in two maps.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;
use std::hash::Hash;
use std::mem::size_of;
use std::sync::{Arc, Mutex, PoisonError};

/// How many uses for each entry an entry must have been idle before it makes room.
const IDLE_USES: u64 = 4;

/// The smallest allocation, and the step of the sizes of small ones.
const ALLOCATION_BYTES_MIN: usize = 16;

/// Allocators hand out four sizes between a power of two and the next one.
const SIZES_PER_DOUBLING: usize = 4;

/// The memory that an allocation of so many bytes takes, by the sizes that allocators hand out.
pub fn allocated(bytes: usize) -> usize {
    let step = match bytes {
        0 => return 0,
        1..=128 => ALLOCATION_BYTES_MIN,
        // The power of two at or above it has as many steps as the one below.
        _ => bytes.next_power_of_two() / 2 / SIZES_PER_DOUBLING,
    };
    bytes.next_multiple_of(step)
}

/// Says whether what is kept may grow. All that keeps something may share one memory.
pub trait Room: Debug + Send + Sync {
    /// Takes so many bytes if there are as many.
    fn take(&self, bytes: usize) -> bool;
}

/// Values by keys, together of a bounded size. It is shared by threads.
///
/// Invariant: the sizes that were given for the values, and what the entries take beside them, add up to no
/// more than the bound.
#[derive(Debug)]
pub struct Lru<K, V> {
    bytes_max: usize,
    room: Option<Arc<dyn Room>>,
    kept: Mutex<CacheState<K, V>>,
}

/// The entries of a cache and their order of use.
#[derive(Debug)]
struct CacheState<K, V> {
    entries: HashMap<K, Entry<V>>,
    /// Keys by when they were last asked for.
    by_use: BTreeMap<u64, K>,
    bytes: usize,
    uses: u64,
}

#[derive(Debug)]
struct Entry<V> {
    value: V,
    bytes: usize,
    used: u64,
}

impl<K: Clone + Eq + Hash, V: Clone> Lru<K, V> {
    /// An empty memory for values of together `bytes_max` bytes.
    pub fn new(bytes_max: usize) -> Lru<K, V> {
        let kept = CacheState {
            entries: HashMap::new(),
            by_use: BTreeMap::new(),
            bytes: 0,
            uses: 0,
        };
        Lru {
            bytes_max,
            room: None,
            kept: Mutex::new(kept),
        }
    }

    /// The same, which keeps only what this has room for, too.
    #[must_use]
    pub fn within(mut self, room: Arc<dyn Room>) -> Lru<K, V> {
        self.room = Some(room);
        self
    }

    /// The bytes of an entry beside its value: its key twice, in a hash table that is mostly between a half and
    /// seven eighths full, and in a tree whose nodes are half full, since entries move from one end of it to
    /// the other.
    pub const ENTRY_BYTES: usize =
        (size_of::<(K, Entry<V>)>() + 1) * 8 / 5 + size_of::<(u64, K)>() * 2;

    /// The value of a key.
    pub fn get(&self, key: &K) -> Option<V> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = &mut *kept;
        let entry = kept.entries.get_mut(key)?;
        kept.uses += 1;
        if let Some(key) = kept.by_use.remove(&entry.used) {
            kept.by_use.insert(kept.uses, key);
        }
        entry.used = kept.uses;
        Some(entry.value.clone())
    }

    /// Keeps a value if there is room, or if what has not been asked for in a long while can make room. So
    /// many bytes are what the value and its key refer to.
    pub fn put(&self, key: K, value: V, bytes: usize) {
        let bytes = bytes + Self::ENTRY_BYTES;
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.uses += 1;
        kept.remove(&key);
        if bytes > self.bytes_max || !kept.make_room(self.bytes_max - bytes) {
            return;
        }
        if self.room.as_ref().is_some_and(|room| !room.take(bytes)) {
            return;
        }
        let used = kept.uses;
        kept.bytes += bytes;
        kept.by_use.insert(used, key.clone());
        kept.entries.insert(key, Entry { value, bytes, used });
    }

    /// The memory that all takes.
    pub fn bytes(&self) -> usize {
        let kept = self.kept.lock();
        kept.unwrap_or_else(PoisonError::into_inner).bytes
    }

    /// Forgets what was not asked for longest, until so many bytes are free or nothing is left; gives how
    /// many are.
    pub fn give_way(&self, bytes: usize) -> usize {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let before = kept.bytes;
        while before - kept.bytes < bytes {
            let Some(oldest) = kept.by_use.first_key_value().map(|(_, key)| key.clone()) else {
                break;
            };
            kept.remove(&oldest);
        }
        // The tables are a part of what the entries take.
        if kept.entries.len() < kept.entries.capacity() / 4 {
            kept.entries.shrink_to_fit();
        }
        before - kept.bytes
    }
}

impl<K: Clone + Eq + Hash, V> CacheState<K, V> {
    fn remove(&mut self, key: &K) {
        if let Some(entry) = self.entries.remove(key) {
            self.bytes -= entry.bytes;
            self.by_use.remove(&entry.used);
        }
    }

    /// Removes idle entries until no more than so many bytes are left; says whether that could be done.
    fn make_room(&mut self, bytes_max: usize) -> bool {
        while self.bytes > bytes_max {
            let idle_uses = IDLE_USES * self.entries.len() as u64;
            let oldest = self.by_use.first_key_value();
            let idle = oldest.filter(|(used, _)| self.uses - **used > idle_uses);
            let Some(oldest) = idle.map(|(_, key)| key.clone()) else {
                return false;
            };
            self.remove(&oldest);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// The bytes that an entry of these tests takes at all.
    const ENTRY: usize = Lru::<u32, u32>::ENTRY_BYTES + 10;

    #[test]
    fn what_was_not_asked_for_longest_makes_room_once_it_was_idle_for_long() {
        let lru: Lru<u32, u32> = Lru::new(10 * ENTRY);
        (0..10).for_each(|number| lru.put(number, number * 2, 10));
        lru.put(10, 20, 10);
        assert_eq!(lru.get(&10), None, "all were used a moment ago");
        // The first ones are asked for all the time.
        for _ in 0..2 * IDLE_USES * 10 {
            assert_eq!(lru.get(&0), Some(0));
        }
        lru.put(11, 22, 10 + 2 * ENTRY);
        let found: Vec<u32> = (0..12).filter(|number| lru.get(number).is_some()).collect();
        assert_eq!(found, [0, 4, 5, 6, 7, 8, 9, 11]);
        assert_eq!(lru.bytes(), 10 * ENTRY);
    }

    #[test]
    fn a_part_of_what_is_read_in_turns_is_found() {
        let lru: Lru<u32, u32> = Lru::new(10 * ENTRY);
        let mut found = 0;
        for turn in 0..10 {
            for number in 0..20 {
                match lru.get(&number) {
                    Some(_) => found += u32::from(turn > 0),
                    None => lru.put(number, number, 10),
                }
            }
        }
        assert!(found >= 80, "{found} of 180");
    }

    #[test]
    fn a_key_has_one_value_and_what_is_too_large_has_no_place() {
        let entry = Lru::<&str, u32>::ENTRY_BYTES;
        let lru: Lru<&str, u32> = Lru::new(100 + entry);
        lru.put("a", 1, 40);
        lru.put("a", 2, 50);
        assert_eq!((lru.get(&"a"), lru.bytes()), (Some(2), 50 + entry));
        lru.put("b", 3, 101);
        assert_eq!((lru.get(&"b"), lru.bytes()), (None, 50 + entry));
    }

    #[test]
    fn what_is_kept_gives_way_oldest_first() {
        let lru: Lru<u32, u32> = Lru::new(10 * ENTRY);
        (0..10).for_each(|number| lru.put(number, number, 10));
        assert_eq!(lru.get(&0), Some(0));
        assert_eq!(lru.give_way(ENTRY + 1), 2 * ENTRY);
        let found: Vec<u32> = (0..10).filter(|number| lru.get(number).is_some()).collect();
        assert_eq!(found, [0, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(lru.give_way(usize::MAX), 8 * ENTRY);
        assert_eq!((lru.bytes(), lru.give_way(1)), (0, 0));
    }

    #[derive(Debug)]
    struct SharedRoom(AtomicUsize);

    impl Room for SharedRoom {
        fn take(&self, bytes: usize) -> bool {
            let left = |left: usize| left.checked_sub(bytes);
            self.0
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, left)
                .is_ok()
        }
    }

    #[test]
    fn room_is_shared() {
        let room = Arc::new(SharedRoom(AtomicUsize::new(3 * ENTRY)));
        let lrus = [0, 1].map(|_| Lru::<u32, u32>::new(10 * ENTRY).within(room.clone()));
        for number in 0..4 {
            lrus.iter().for_each(|lru| lru.put(number, number, 10));
        }
        assert_eq!(lrus[0].bytes() + lrus[1].bytes(), 3 * ENTRY);
    }

    #[test]
    fn allocations_have_the_sizes_of_allocators() {
        let table = [
            (0, 0),
            (1, 16),
            (16, 16),
            (17, 32),
            (128, 128),
            (129, 160),
            (256, 256),
            (257, 320),
            (5000, 5120),
            (1 << 20, 1 << 20),
            ((1 << 20) + 1, 5 << 18),
        ];
        for (bytes, taken) in table {
            assert_eq!(allocated(bytes), taken, "{bytes}");
        }
    }
}
