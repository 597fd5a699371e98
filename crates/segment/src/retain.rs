//! What has to go: by age, by total size, by number, by free disk space.
//!
//! Invariants: the oldest received goes first, whatever its kind; nothing goes for size, number or
//! space once enough has gone; the newest file never goes for them, because emptying a pond on a disk
//! that others fill helps nobody; the plan depends on its arguments only.

pub mod hold;

use logpond_record::Timestamp;

use crate::disk::Space;

/// A file that may be retired: a segment or a closed journal file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetentionCandidate<K> {
    /// How the caller names the file.
    pub key: K,
    /// Earliest receive time in it.
    pub received_min: Timestamp,
    /// Latest receive time in it.
    pub received_max: Timestamp,
    /// Its length.
    pub bytes: u64,
}

/// How much to keep. `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Rows are kept at least this long after they were received, in nanoseconds.
    pub age_ns: Option<i64>,
    /// The most bytes of all files together.
    pub size_bytes: Option<u64>,
    /// The most files.
    pub files_max: Option<usize>,
    /// Bytes of the disk that are left free.
    pub keep_free_bytes: u64,
    /// Up to so many bytes of files are kept although less is free: a disk that others fill does
    /// not become free by removing the little that is here.
    pub keep_size_bytes: u64,
    /// With less free than this, that does not hold either: what is here would stop growing.
    pub reserve_bytes: u64,
}

impl Settings {
    /// The free space below which files go when so many bytes of them are held.
    fn free_bytes_min(&self, size: u64) -> u64 {
        if size > self.keep_size_bytes {
            self.keep_free_bytes
        } else {
            self.keep_free_bytes.min(self.reserve_bytes)
        }
    }
}

/// Why a file goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// All its rows are older than the limit.
    Age,
    /// The files together are larger than the limit.
    Size,
    /// There are more files than the limit.
    Files,
    /// The disk has less free space than the limit.
    Free,
}

/// The room there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// What the disk says.
    pub space: Space,
    /// Bytes of retired files that a purge will free; they count as free here.
    pub trash_bytes: u64,
}

/// Which files to retire, oldest first, and why. Ages are those at `now`, which is nothing where no
/// clock can be believed.
pub fn plan<K: Clone>(
    held: &[RetentionCandidate<K>],
    now: Option<Timestamp>,
    settings: &Settings,
    room: &Room,
) -> Vec<(K, Reason)> {
    let mut oldest_first: Vec<&RetentionCandidate<K>> = held.iter().collect();
    oldest_first.sort_by_key(|file| (file.received_max, file.received_min, file.bytes));
    let count = oldest_first.len();
    let mut size: u64 = held.iter().map(|file| file.bytes).sum();
    let mut free = room.space.free_bytes.saturating_add(room.trash_bytes);
    let mut retired = Vec::new();
    for (index, file) in oldest_first.into_iter().enumerate() {
        let newest = index + 1 == count;
        let expires = |age| file.received_max.saturating_add(age);
        let is_old = |(age, now)| expires(age) < now;
        let reason = if settings.age_ns.zip(now).is_some_and(is_old) {
            Reason::Age
        } else if !newest && settings.size_bytes.is_some_and(|limit| size > limit) {
            Reason::Size
        } else if !newest
            && settings
                .files_max
                .is_some_and(|limit| count - index > limit)
        {
            Reason::Files
        } else if !newest && free < settings.free_bytes_min(size) {
            Reason::Free
        } else {
            // Later files are younger, and size, number and space are as they are now.
            break;
        };
        size -= file.bytes;
        free = free.saturating_add(file.bytes);
        retired.push((file.key.clone(), reason));
    }
    retired
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn file(key: u32, received: i64, bytes: u64) -> RetentionCandidate<u32> {
        RetentionCandidate {
            key,
            received_min: Timestamp(received - 1),
            received_max: Timestamp(received),
            bytes,
        }
    }

    fn room(free_bytes: u64) -> Room {
        Room {
            space: Space {
                free_bytes,
                total_bytes: 1000,
            },
            trash_bytes: 0,
        }
    }

    #[test]
    fn little_is_kept_on_a_disk_that_others_fill() {
        let files = [file(1, 10, 30), file(2, 20, 50), file(3, 30, 100)];
        let settings = Settings {
            keep_free_bytes: 200,
            keep_size_bytes: 150,
            reserve_bytes: 20,
            ..Settings::default()
        };
        let gone = |free| {
            let plan = plan(&files, Some(Timestamp(40)), &settings, &room(free));
            plan.into_iter().map(|(key, _)| key).collect::<Vec<_>>()
        };
        assert!(gone(200).is_empty());
        assert_eq!(gone(199), [1]);
        assert_eq!(gone(20), [1]);
        assert_eq!(gone(0), [1]);
        let tight = Settings {
            reserve_bytes: 70,
            ..settings
        };
        let plan = plan(&files, Some(Timestamp(40)), &tight, &room(0));
        assert_eq!(plan.iter().map(|(key, _)| *key).collect::<Vec<_>>(), [1, 2]);
    }

    #[test]
    fn table() {
        let files = [file(2, 20, 50), file(1, 10, 30), file(3, 30, 100)];
        let none = Settings::default();
        let check = |settings: Settings, free: u64, now: i64, expected: &[(u32, Reason)]| {
            assert_eq!(
                plan(&files, Some(Timestamp(now)), &settings, &room(free)),
                expected
            );
        };
        let age = |ns| Settings {
            age_ns: Some(ns),
            ..none
        };
        let size = |bytes| Settings {
            size_bytes: Some(bytes),
            ..none
        };
        let free = |bytes| Settings {
            keep_free_bytes: bytes,
            ..none
        };
        check(none, 0, 1000, &[]);
        check(age(15), 0, 25, &[]);
        check(age(15), 0, 26, &[(1, Reason::Age)]);
        check(
            age(0),
            0,
            99,
            &[(1, Reason::Age), (2, Reason::Age), (3, Reason::Age)],
        );
        check(size(180), 0, 0, &[]);
        check(size(179), 0, 0, &[(1, Reason::Size)]);
        check(size(149), 0, 0, &[(1, Reason::Size), (2, Reason::Size)]);
        check(size(0), 0, 0, &[(1, Reason::Size), (2, Reason::Size)]);
        let number = |max| Settings {
            files_max: Some(max),
            ..none
        };
        check(number(3), 0, 0, &[]);
        check(number(2), 0, 0, &[(1, Reason::Files)]);
        check(number(0), 0, 0, &[(1, Reason::Files), (2, Reason::Files)]);
        check(free(40), 40, 0, &[]);
        check(free(40), 39, 0, &[(1, Reason::Free)]);
        check(free(900), 0, 0, &[(1, Reason::Free), (2, Reason::Free)]);
        let both = Settings {
            age_ns: Some(15),
            size_bytes: Some(149),
            keep_free_bytes: 0,
            ..none
        };
        check(both, 0, 30, &[(1, Reason::Age), (2, Reason::Size)]);
        let unsure = plan(&files, None, &both, &room(0));
        assert_eq!(unsure, [(1, Reason::Size), (2, Reason::Size)]);
    }

    #[test]
    fn trash_counts_as_free() {
        let settings = Settings {
            keep_free_bytes: 100,
            ..Settings::default()
        };
        let room = Room {
            trash_bytes: 60,
            ..room(40)
        };
        let files = [file(1, 1, 5), file(2, 2, 5)];
        assert_eq!(plan(&files, Some(Timestamp(9)), &settings, &room), []);
    }

    proptest! {
        #[test]
        fn plans_are_enough_and_not_too_much(
            files in prop::collection::vec((0i64..100, 1u64..50), 0..20),
            now in 0i64..200,
            (age, size, files_max) in (
                prop::option::of(0i64..100),
                prop::option::of(0u64..500),
                prop::option::of(0usize..25),
            ),
            keep in 0u64..300,
            free in 0u64..300,
        ) {
            let files: Vec<_> = files
                .iter()
                .enumerate()
                .map(|(key, (received, bytes))| file(key as u32, *received, *bytes))
                .collect();
            let settings = Settings { age_ns: age, size_bytes: size, files_max, keep_free_bytes: keep, ..Settings::default() };
            let plan = plan(&files, Some(Timestamp(now)), &settings, &room(free));
            let goes = |key: u32| plan.iter().any(|(k, _)| *k == key);
            let (gone, left): (Vec<&RetentionCandidate<u32>>, Vec<&RetentionCandidate<u32>>) = files.iter().partition(|f| goes(f.key));
            let gone_max = gone.iter().map(|f| f.received_max).max();
            let left_min = left.iter().map(|f| f.received_max).min();
            prop_assert!(left_min.is_none_or(|left| gone_max.is_none_or(|gone| gone <= left)));
            let old = |f: &RetentionCandidate<u32>| age.is_some_and(|age| f.received_max.0 + age < now);
            prop_assert!(!left.iter().any(|f| old(f)));
            let bytes = |list: &[&RetentionCandidate<u32>]| list.iter().map(|f| f.bytes).sum::<u64>();
            if left.len() > 1 {
                prop_assert!(size.is_none_or(|limit| bytes(&left) <= limit));
                prop_assert!(files_max.is_none_or(|limit| left.len() <= limit.max(1)));
                prop_assert!(free + bytes(&gone) >= keep);
            }
            // Without the last one the plan would not have been enough.
            if let Some((last, reason)) = plan.last() {
                let last = files[*last as usize];
                match reason {
                    Reason::Age => prop_assert!(old(&last)),
                    Reason::Size => {
                        prop_assert!(size.is_some_and(|limit| bytes(&left) + last.bytes > limit));
                    }
                    Reason::Files => prop_assert!(files_max.is_some_and(|limit| left.len() + 1 > limit)),
                    Reason::Free => prop_assert!(free + bytes(&gone) - last.bytes < keep),
                }
            }
        }
    }
}
