//! Blocks of objects on the local disk, up to so many bytes, those used least recently dropped first.
//!
//! ```text
//! read ─▶ blocks present? ─▶ pread of the cache's file            (nothing else: no request, no fsync)
//!                └ no ─▶ claimed ─▶ left behind and sound? ─▶ fetched ─▶ room made, written, present
//! ```
//!
//! Invariants:
//! - A block is present only while its bytes, with the checksum that they were fetched with, are in a
//!   file that this process has open.
//! - The bytes held never exceed the bound: room is reserved before anything is written.
//! - Nothing that goes wrong with the cache's files fails a read.
//!
//! What is dropped is a file as a whole: the pages of an object, or its tail (directory and footer).
//! Tails are dropped when there are no pages of others any more. Files belong to one process at a time.

mod blocks;
mod entry;
mod part;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLockReadGuard};
use std::time::SystemTime;

pub(crate) use blocks::{BLOCK_BYTES, Geometry, Kind, plan};
pub(crate) use entry::{BlockClaim, Claim, Entry, lock};
use logpond_record::cast;
use part::{Part, Slot, geometry_of, parse_file_name};

/// A bounded cache of objects on the local disk. Clones are the same cache.
#[derive(Clone)]
pub struct Cache(Arc<SharedCache>);

/// The state that all users of the cache share.
struct SharedCache {
    directory: PathBuf,
    bytes_max: u64,
    /// Goes up by one with every miss: what was used since the last one counts as used at once.
    ticks: AtomicU64,
    state: Mutex<State>,
    counters: Counters,
}

#[derive(Default)]
struct State {
    entries: BTreeMap<String, Arc<Entry>>,
    /// Bytes held of all of them.
    bytes: u64,
}

/// What the cache has done since it was opened.
#[derive(Debug, Default)]
pub struct Counters {
    /// Reads that the local disk has answered.
    pub hits: AtomicU64,
    /// Bytes of these reads.
    pub hit_bytes: AtomicU64,
    /// Reads that had to wait: for the store, or for the first look at what an earlier process has left.
    pub misses: AtomicU64,
    /// Requests to the store.
    pub requests: AtomicU64,
    /// Bytes that came of them.
    pub fetched_bytes: AtomicU64,
    /// Blocks of an earlier process that did not have their checksum.
    pub unsound_blocks: AtomicU64,
    /// Files that were dropped to make room.
    pub evictions: AtomicU64,
    /// Bytes of blocks that are held now.
    pub held_bytes: AtomicU64,
    /// Failures to write or read a file of the cache, and to make one.
    pub disk_failures: AtomicU64,
}

impl Cache {
    /// Opens a cache of at most `bytes_max` bytes (of blocks; their checksums add an eight-thousandth of
    /// the objects' lengths). What is in the directory from before is used again; files that look like
    /// the cache's and are not whole are removed, others are left alone.
    ///
    /// # Errors
    /// When the directory cannot be made or listed.
    pub fn open(directory: &Path, bytes_max: u64) -> io::Result<Cache> {
        fs::create_dir_all(directory)?;
        let cache = Cache(Arc::new(SharedCache {
            directory: directory.to_owned(),
            bytes_max,
            ticks: AtomicU64::new(0),
            state: Mutex::default(),
            counters: Counters::default(),
        }));
        let mut files = Vec::new();
        for file in fs::read_dir(directory)? {
            let file = file?;
            let name = file.file_name().to_string_lossy().into_owned();
            if let Some((object, kind)) = parse_file_name(&name) {
                let modified = file.metadata().and_then(|m| m.modified());
                let modified = modified.unwrap_or(SystemTime::UNIX_EPOCH);
                files.push((modified, file.path(), object, kind));
            }
        }
        files.sort();
        for (_, path, object, kind) in files {
            if cache.adopt(&path, object, kind).is_none() {
                // If it cannot be removed, it is replaced when its object is read.
                let _ = fs::remove_file(&path);
            }
        }
        cache.make_room(&mut lock(&cache.0.state), None, 0);
        Ok(cache)
    }

    /// Takes in a file that an earlier process has left behind; `None` if it is of no use.
    fn adopt(&self, path: &Path, object: String, kind: Kind) -> Option<()> {
        let mut state = lock(&self.0.state);
        let geometry = geometry_of(path)?;
        // Before anything is made as large as the file says that it is.
        let part = Part::new(path.to_owned(), geometry, kind);
        let marked = part.marked(&part.open(&object, geometry)?).ok()?;
        let entry = match state.entries.get(&object) {
            Some(entry) if entry.geometry == geometry => Arc::clone(entry),
            Some(_) => return None,
            None => Arc::new(Entry::new(&self.0.directory, &object, geometry)?),
        };
        if marked.is_empty() {
            return None;
        }
        for block in marked {
            entry.left_behind.add(block..block + 1);
            self.account(
                &mut state,
                entry.part(kind),
                geometry.length_of(&(block..block + 1)),
            );
        }
        self.tick();
        self.touch(entry.part(kind));
        state.entries.insert(object, entry);
        Some(())
    }

    /// What the cache has done.
    pub fn counters(&self) -> &Counters {
        &self.0.counters
    }

    /// Drops what is held of an object, as when it was removed from the store.
    pub fn forget(&self, name: &str) {
        let mut state = lock(&self.0.state);
        if let Some(entry) = state.entries.remove(name) {
            self.discard_both(&mut state, &entry);
        }
    }

    /// Drops what is held of an object that is read on.
    pub(crate) fn drop_held(&self, entry: &Entry) {
        self.discard_both(&mut lock(&self.0.state), entry);
    }

    fn discard_both(&self, state: &mut State, entry: &Entry) {
        self.discard(state, entry, Kind::Pages);
        self.discard(state, entry, Kind::Tail);
    }

    /// The entry of an object, made if there is none; `None` if the cache cannot have it.
    pub(crate) fn entry(&self, name: &str, geometry: Geometry) -> Option<Arc<Entry>> {
        let mut state = lock(&self.0.state);
        match state.entries.get(name) {
            Some(entry) if entry.geometry == geometry => return Some(Arc::clone(entry)),
            Some(other) => {
                // What an earlier process has kept of another object of this name.
                let other = Arc::clone(other);
                self.discard_both(&mut state, &other);
            }
            None => {}
        }
        let Some(entry) = Entry::new(&self.0.directory, name, geometry).map(Arc::new) else {
            self.count_failure();
            return None;
        };
        state.entries.insert(name.to_owned(), Arc::clone(&entry));
        Some(entry)
    }

    /// Gives an entry back; if nothing is held of it and nobody else has it, it is forgotten.
    pub(crate) fn release(&self, entry: &Arc<Entry>) {
        let mut state = lock(&self.0.state);
        // The map's and the one that is given back.
        let is_unused = Arc::strong_count(entry) <= 2 && held(entry) == 0;
        if is_unused && is_known(&state, entry) {
            state.entries.remove(&entry.name);
        }
    }

    /// Fills the buffer if all of it is here.
    pub(crate) fn read(&self, entry: &Entry, offset: u64, buffer: &mut [u8]) -> bool {
        let blocks = entry
            .geometry
            .covering(offset, offset + buffer.len() as u64);
        let (first, last) = (
            entry.geometry.kind(blocks.start),
            entry.geometry.kind(blocks.end - 1),
        );
        if first == last {
            return self.read_part(entry, first, blocks, offset, buffer);
        }
        let edge = entry.geometry.tail_block;
        let (pages, tail) = buffer.split_at_mut(cast::to_usize(edge * BLOCK_BYTES - offset));
        self.read_part(entry, first, blocks.start..edge, offset, pages)
            && self.read_part(entry, last, edge..blocks.end, edge * BLOCK_BYTES, tail)
    }

    fn read_part(
        &self,
        entry: &Entry,
        kind: Kind,
        blocks: Range<u64>,
        offset: u64,
        buffer: &mut [u8],
    ) -> bool {
        let part = entry.part(kind);
        let slot = shared(part);
        // Under the lock: the file is not taken away between this and the reading.
        let Some(file) = slot.file.as_ref().filter(|_| entry.present.has_all(blocks)) else {
            return false;
        };
        self.touch(part);
        let read = part.read(file, offset, buffer);
        drop(slot);
        if read.is_err() {
            self.count_failure();
            self.discard(&mut lock(&self.0.state), entry, kind);
        }
        read.is_ok()
    }

    pub(crate) fn count_hit(&self, bytes: usize) {
        let counters = &self.0.counters;
        counters.hits.fetch_add(1, Ordering::Relaxed);
        counters
            .hit_bytes
            .fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn count_miss(&self) {
        self.0.counters.misses.fetch_add(1, Ordering::Relaxed);
        self.tick();
    }

    pub(crate) fn count_fetched(&self, bytes: usize) {
        let counters = &self.0.counters;
        counters.requests.fetch_add(1, Ordering::Relaxed);
        counters
            .fetched_bytes
            .fetch_add(bytes as u64, Ordering::Relaxed);
    }

    fn count_failure(&self) {
        self.0
            .counters
            .disk_failures
            .fetch_add(1, Ordering::Relaxed);
    }

    fn tick(&self) {
        self.0.ticks.fetch_add(1, Ordering::Relaxed);
    }

    fn touch(&self, part: &Part) {
        let now = self.0.ticks.load(Ordering::Relaxed);
        if part.used.load(Ordering::Relaxed) != now {
            part.used.store(now, Ordering::Relaxed);
        }
    }

    /// Looks at those of the blocks that an earlier process has left behind: sound ones are present from
    /// here on. Who calls has claimed the blocks.
    pub(crate) fn check_left_behind(&self, entry: &Arc<Entry>, blocks: &[u64]) {
        let left = |block: &&u64| entry.left_behind.has(**block);
        for &block in blocks.iter().filter(left) {
            let kind = entry.geometry.kind(block);
            let part = entry.part(kind);
            if self.reserve(entry, kind, 0).is_none() {
                return;
            }
            let one = block..block + 1;
            let bytes = entry.geometry.length_of(&one);
            let slot = shared(part);
            // If the file was taken away meanwhile, so was the mark of the block.
            let sound = slot
                .file
                .as_ref()
                .map(|file| part.is_sound(file, block, bytes));
            if sound == Some(true) && entry.left_behind.has(block) {
                entry.present.add(one.clone());
                entry.left_behind.remove(one.clone());
            }
            let epoch = slot.epoch;
            drop(slot);
            if sound == Some(false) {
                self.0
                    .counters
                    .unsound_blocks
                    .fetch_add(1, Ordering::Relaxed);
                self.give_back(entry, kind, epoch, bytes, Some(one));
            }
        }
    }

    /// Keeps neighbouring blocks, from `block` on, of one kind, if there is room. Who calls has claimed
    /// them.
    pub(crate) fn store(&self, entry: &Arc<Entry>, block: u64, bytes: &[u8]) {
        let kind = entry.geometry.kind(block);
        let epoch = self.reserve(entry, kind, bytes.len() as u64);
        entry.is_refused.store(epoch.is_none(), Ordering::Relaxed);
        let Some(epoch) = epoch else {
            return;
        };
        self.write(entry, epoch, block, bytes);
    }

    /// Writes blocks that room was reserved for.
    fn write(&self, entry: &Entry, epoch: u64, block: u64, bytes: &[u8]) {
        let kind = entry.geometry.kind(block);
        let part = entry.part(kind);
        let slot = shared(part);
        let Some(file) = slot.file.as_ref().filter(|_| slot.epoch == epoch) else {
            // Taken away already, and with it what was reserved.
            return;
        };
        let written = part.write(file, block, bytes);
        if written.is_ok() {
            let blocks = (bytes.len() as u64).div_ceil(BLOCK_BYTES);
            entry.present.add(block..block + blocks);
            self.touch(part);
            return;
        }
        drop(slot);
        self.count_failure();
        entry.is_refused.store(true, Ordering::Relaxed);
        self.give_back(entry, kind, epoch, bytes.len() as u64, None);
    }

    /// Makes room for bytes of a part and takes them as held, with the part's file open; gives the
    /// file's epoch. `None` if there is no room or no file.
    fn reserve(&self, entry: &Arc<Entry>, kind: Kind, bytes: u64) -> Option<u64> {
        let mut state = lock(&self.0.state);
        if !is_known(&state, entry) || !self.make_room(&mut state, Some((entry, kind)), bytes) {
            return None;
        }
        let part = entry.part(kind);
        let is_left = part.held.load(Ordering::Relaxed) > 0;
        let mut slot = part.slot.write().unwrap_or_else(PoisonError::into_inner);
        if slot.file.is_none() {
            let file = if is_left {
                part.open(&entry.name, entry.geometry)
                    .ok_or(io::ErrorKind::InvalidData.into())
            } else {
                part.create(&entry.name, entry.geometry)
            };
            match file {
                Ok(file) => slot.file = Some(file),
                Err(_) => {
                    drop(slot);
                    self.count_failure();
                    self.discard(&mut state, entry, kind);
                    return None;
                }
            }
        }
        let epoch = slot.epoch;
        drop(slot);
        self.account(&mut state, part, bytes);
        Some(epoch)
    }

    /// Takes bytes as not held that were reserved, or of a block that was left behind, unless the file
    /// was taken away since.
    fn give_back(
        &self,
        entry: &Entry,
        kind: Kind,
        epoch: u64,
        bytes: u64,
        left: Option<Range<u64>>,
    ) {
        let mut state = lock(&self.0.state);
        let part = entry.part(kind);
        if shared(part).epoch == epoch {
            entry.left_behind.remove(left.unwrap_or(0..0));
            self.unaccount(&mut state, part, bytes);
        }
    }

    /// Drops files until so many bytes more are within the bound; `false` if they cannot be. Those of
    /// the object that the room is for stay, but a tail may take the place of pages.
    fn make_room(&self, state: &mut State, user: Option<(&Entry, Kind)>, bytes: u64) -> bool {
        let bytes_max = self.0.bytes_max;
        if state.bytes.saturating_add(bytes) <= bytes_max {
            return true;
        }
        if bytes > bytes_max {
            return false;
        }
        let stays = |entry: &Entry, kind| {
            user.is_some_and(|(user, for_kind)| user.name == entry.name && kind >= for_kind)
        };
        let mut candidates = Vec::new();
        for entry in state.entries.values() {
            for kind in [Kind::Pages, Kind::Tail] {
                let part = entry.part(kind);
                if part.held.load(Ordering::Relaxed) > 0 && !stays(entry, kind) {
                    let used = part.used.load(Ordering::Relaxed);
                    candidates.push((kind, used, Arc::clone(entry)));
                }
            }
        }
        candidates.sort_by_key(|(kind, used, _)| (*kind, *used));
        for (kind, _, entry) in candidates {
            if state.bytes + bytes <= bytes_max {
                break;
            }
            self.discard(state, &entry, kind);
            self.0.counters.evictions.fetch_add(1, Ordering::Relaxed);
        }
        let is_used = |entry: &Arc<Entry>| Arc::strong_count(entry) > 1 || held(entry) > 0;
        state.entries.retain(|_, entry| is_used(entry));
        state.bytes + bytes <= bytes_max
    }

    /// Takes a file away, and everything that is known of its blocks. Who reads it finishes first.
    fn discard(&self, state: &mut State, entry: &Entry, kind: Kind) {
        let part = entry.part(kind);
        let mut slot = part.slot.write().unwrap_or_else(PoisonError::into_inner);
        let is_there = slot.file.take().is_some() || part.held.load(Ordering::Relaxed) > 0;
        slot.epoch += 1;
        entry.present.remove(part.blocks.clone());
        entry.left_behind.remove(part.blocks.clone());
        drop(slot);
        if is_there && fs::remove_file(&part.path).is_err() {
            self.count_failure();
        }
        let held = part.held.load(Ordering::Relaxed);
        self.unaccount(state, part, held);
    }

    fn account(&self, state: &mut State, part: &Part, bytes: u64) {
        part.held.fetch_add(bytes, Ordering::Relaxed);
        state.bytes += bytes;
        self.0
            .counters
            .held_bytes
            .store(state.bytes, Ordering::Relaxed);
    }

    fn unaccount(&self, state: &mut State, part: &Part, bytes: u64) {
        part.held.fetch_sub(bytes, Ordering::Relaxed);
        state.bytes -= bytes;
        self.0
            .counters
            .held_bytes
            .store(state.bytes, Ordering::Relaxed);
    }
}

/// Bytes held of an object.
fn held(entry: &Entry) -> u64 {
    let held = |kind| entry.part(kind).held.load(Ordering::Relaxed);
    held(Kind::Pages) + held(Kind::Tail)
}

/// Whether an entry is the one that the cache has of its object.
fn is_known(state: &State, entry: &Arc<Entry>) -> bool {
    let known = state.entries.get(&entry.name);
    known.is_some_and(|known| Arc::ptr_eq(known, entry))
}

/// A part's file, which is not taken away while this is held.
fn shared(part: &Part) -> RwLockReadGuard<'_, Slot> {
    part.slot.read().unwrap_or_else(PoisonError::into_inner)
}
