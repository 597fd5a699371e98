//! A bounded memory of what was read or computed; what was not asked for longest goes first.
//!
//! Questions go over everything again and again, in the same order. Where that is more than there is room
//! for, making room for each part would push out the very one that is asked for next, and nothing would
//! ever be found. So what was asked for a short while ago stays, and the new is not kept.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};

/// How many uses for each entry an entry must have been idle before it makes room.
const IDLE_USES: u64 = 4;

/// Values by keys, together of a bounded size. It is shared by threads.
///
/// Invariant: the sizes that were given for the values add up to no more than the bound.
#[derive(Debug)]
pub struct Lru<K, V> {
    bytes_max: usize,
    kept: Mutex<Kept<K, V>>,
}

#[derive(Debug)]
struct Kept<K, V> {
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
        let kept = Kept {
            entries: HashMap::new(),
            by_use: BTreeMap::new(),
            bytes: 0,
            uses: 0,
        };
        Lru {
            bytes_max,
            kept: Mutex::new(kept),
        }
    }

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

    /// Keeps a value that takes so many bytes, its key included, if there is room, or if what has not been
    /// asked for in a long while can make room.
    pub fn put(&self, key: K, value: V, bytes: usize) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.uses += 1;
        kept.remove(&key);
        if bytes > self.bytes_max || !kept.make_room(self.bytes_max - bytes) {
            return;
        }
        let used = kept.uses;
        kept.bytes += bytes;
        kept.by_use.insert(used, key.clone());
        kept.entries.insert(key, Entry { value, bytes, used });
    }

    /// The sizes of all values, added up.
    pub fn bytes(&self) -> usize {
        let kept = self.kept.lock();
        kept.unwrap_or_else(PoisonError::into_inner).bytes
    }
}

impl<K: Clone + Eq + Hash, V> Kept<K, V> {
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
    use super::*;

    #[test]
    fn what_was_not_asked_for_longest_makes_room_once_it_was_idle_for_long() {
        let lru: Lru<u32, u32> = Lru::new(100);
        (0..10).for_each(|number| lru.put(number, number * 2, 10));
        lru.put(10, 20, 10);
        assert_eq!(lru.get(&10), None, "all were used a moment ago");
        // The first ones are asked for all the time.
        for _ in 0..2 * IDLE_USES * 10 {
            assert_eq!(lru.get(&0), Some(0));
        }
        lru.put(11, 22, 30);
        let found: Vec<u32> = (0..12).filter(|number| lru.get(number).is_some()).collect();
        assert_eq!(found, [0, 4, 5, 6, 7, 8, 9, 11]);
        assert_eq!(lru.bytes(), 100);
    }

    #[test]
    fn a_part_of_what_is_read_in_turns_is_found() {
        let lru: Lru<u32, u32> = Lru::new(100);
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
        let lru: Lru<&str, u32> = Lru::new(100);
        lru.put("a", 1, 40);
        lru.put("a", 2, 50);
        assert_eq!((lru.get(&"a"), lru.bytes()), (Some(2), 50));
        lru.put("b", 3, 101);
        assert_eq!((lru.get(&"b"), lru.bytes()), (None, 50));
    }
}
