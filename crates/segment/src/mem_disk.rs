//! A disk in memory that fails as real ones do: for tests and simulation.
//!
//! Invariants of the model (POSIX at its strictest):
//! - bytes are durable once `sync` of their file returned, names once `sync_directory` returned;
//! - a crash keeps any subset of the unsynced writes, sector by sector, and of the unsynced names;
//! - a failed sync loses the bytes it was for: a later sync of the file succeeds without them,
//!   although they can still be read until the crash (as Linux does it);
//! - the same seeds and the same calls give the same disk.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use logpond_record::cast;

use crate::disk::{AppendFile, DirEntry, Disk, ReadAt, Space};

/// The unit in which unsynced bytes survive a crash or not.
const SECTOR_BYTES: usize = 512;

/// Small seeded random numbers (SplitMix64), the same everywhere and for ever.
#[derive(Clone, Debug)]
pub struct SeededRandom(u64);

impl SeededRandom {
    /// Numbers that follow from the seed.
    pub fn new(seed: u64) -> SeededRandom {
        SeededRandom(seed)
    }

    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `end`, which must not be 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.draw() % end
    }

    /// True in one of `n` cases.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// What is to go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The call fails; it may have had a part of its effect.
    Error(io::ErrorKind),
    /// The power fails during the call: it and all later ones fail until [`MemDisk::crash`].
    PowerLoss,
}

/// The kinds of calls, for counting and for choosing where faults strike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Call {
    /// `list`
    List,
    /// `create_directory`
    CreateDirectory,
    /// `create`
    Create,
    /// `open`
    Open,
    /// `open_append`
    OpenAppend,
    /// `truncate`
    Truncate,
    /// `rename`
    Rename,
    /// `remove`
    Remove,
    /// `sync_directory`
    SyncDirectory,
    /// `append`
    Append,
    /// `sync`
    Sync,
    /// `read_at`
    Read,
}

/// An in-memory disk; clones are handles of the same disk.
#[derive(Clone, Default)]
pub struct MemDisk {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    files: BTreeMap<u64, File>,
    file_next: u64,
    directories: BTreeMap<String, Directory>,
    /// Handles of earlier lives fail.
    life: u64,
    powered_off: bool,
    capacity_bytes: Option<u64>,
    calls: Vec<Call>,
    calls_count: u64,
    faults: BTreeMap<u64, Fault>,
    random: Option<(SeededRandom, u64)>,
    effects: Option<SeededRandom>,
}

#[derive(Clone, Default)]
struct File {
    /// What is read.
    data: Vec<u8>,
    /// What a crash keeps in any case.
    durable: Vec<u8>,
    /// Ranges of `data` that a sync would make durable.
    pending: Vec<(usize, usize)>,
}

#[derive(Clone, Default)]
struct Directory {
    names: BTreeMap<String, u64>,
    durable: BTreeMap<String, u64>,
    pending: Vec<NameChange>,
}

#[derive(Clone)]
enum NameChange {
    Add(String, u64),
    /// Gives a file that has the first name the second one.
    Rename(String, String, u64),
    Remove(String),
}

impl NameChange {
    /// Applies the change, if what it needs is there.
    fn apply(&self, names: &mut BTreeMap<String, u64>) {
        match self {
            NameChange::Add(name, file) => {
                names.insert(name.clone(), *file);
            }
            NameChange::Rename(from, to, file) => {
                // Where changes before this one were lost, the first name may be of another file: that
                // keeps it, as what is renamed is the file and not whatever has its name.
                if names.get(from) == Some(file) {
                    names.remove(from);
                }
                names.insert(to.clone(), *file);
            }
            NameChange::Remove(name) => {
                names.remove(name);
            }
        }
    }
}

impl MemDisk {
    /// An empty disk without faults and without end.
    pub fn new() -> MemDisk {
        MemDisk::default()
    }

    /// Makes the call with this number (counted from 0 over all calls) fail.
    pub fn fail_at(&self, call: u64, fault: Fault) {
        self.lock().faults.insert(call, fault);
    }

    /// Makes one call in `n` fail with an IO error, chosen by the seed; `n` 0 ends that.
    pub fn fail_one_in(&self, n: u64, seed: u64) {
        self.lock().random = (n > 0).then(|| (SeededRandom::new(seed), n));
    }

    /// Forgets all faults that have not struck.
    pub fn clear_faults(&self) {
        let mut state = self.lock();
        state.faults.clear();
        state.random = None;
    }

    /// Limits the bytes of all files together; `None` is no limit.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.lock().capacity_bytes = bytes;
    }

    /// How many calls were made, failed ones included.
    pub fn calls_count(&self) -> u64 {
        self.lock().calls_count
    }

    /// The calls since the last time this was asked, at most 65,536 of them.
    pub fn take_calls(&self) -> Vec<Call> {
        std::mem::take(&mut self.lock().calls)
    }

    /// Whether a [`Fault::PowerLoss`] has struck.
    pub fn is_powered_off(&self) -> bool {
        self.lock().powered_off
    }

    /// Ends all handles and keeps of the unsynced changes what the seed says.
    pub fn crash(&self, seed: u64) {
        let mut random = SeededRandom::new(seed);
        let mut state = self.lock();
        state.life += 1;
        state.powered_off = false;
        for file in state.files.values_mut() {
            file.crash(&mut random);
        }
        for directory in state.directories.values_mut() {
            directory.crash(&mut random);
        }
        state.drop_unnamed();
    }

    /// Ends all handles and keeps everything, as the end of a process does.
    pub fn end_process(&self) {
        let mut state = self.lock();
        state.life += 1;
        state.powered_off = false;
        state.drop_unnamed();
    }

    /// The bytes of a file, past all faults.
    pub fn read(&self, path: &str) -> Option<Vec<u8>> {
        let state = self.lock();
        let file = state.find(path).ok()?;
        state.files.get(&file).map(|file| file.data.clone())
    }

    /// Replaces or creates a file durably, past all faults: how tests damage files.
    pub fn write(&self, path: &str, bytes: &[u8]) {
        let mut state = self.lock();
        let file = state.file_next;
        state.file_next += 1;
        state.files.insert(
            file,
            File {
                data: bytes.to_vec(),
                durable: bytes.to_vec(),
                pending: Vec::new(),
            },
        );
        let (directory, name) = split(path);
        let directory = state.directories.entry(directory.into()).or_default();
        directory.names.insert(name.into(), file);
        directory.durable.insert(name.into(), file);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl File {
    fn crash(&mut self, random: &mut SeededRandom) {
        let pending = std::mem::take(&mut self.pending);
        let end = pending.iter().map(|range| range.1).max().unwrap_or(0);
        // All, nothing, a torn prefix, any sectors, or the later ones only: real disks do each.
        let style = random.below(5);
        let from = self.durable.len();
        let torn_at = from + cast::to_usize(random.below((end.max(from) - from) as u64 + 1));
        let sector_seed = random.draw();
        let reach = match style {
            0 | 3 | 4 => end,
            1 => 0,
            _ => torn_at,
        };
        for (range_from, range_to) in pending {
            let mut at = range_from;
            while at < range_to.min(reach) {
                let sector = at / SECTOR_BYTES;
                let to = ((sector + 1) * SECTOR_BYTES).min(range_to).min(reach);
                if self.durable.len() < to {
                    self.durable.resize(to, 0);
                }
                let is_kept = match style {
                    3 => SeededRandom::new(sector_seed ^ sector as u64).one_in(2),
                    4 => sector > torn_at / SECTOR_BYTES,
                    _ => true,
                };
                if is_kept {
                    self.durable[at..to].copy_from_slice(&self.data[at..to]);
                }
                at = to;
            }
        }
        self.data = self.durable.clone();
    }
}

impl Directory {
    fn crash(&mut self, random: &mut SeededRandom) {
        let pending = std::mem::take(&mut self.pending);
        // A journaling file system keeps a prefix of the changes, others any of them.
        let ordered = random.one_in(2);
        let reach = cast::to_usize(random.below(pending.len() as u64 + 1));
        for (index, change) in pending.iter().enumerate() {
            let kept = if ordered {
                index < reach
            } else {
                random.one_in(2)
            };
            if kept {
                change.apply(&mut self.durable);
            }
        }
        self.names = self.durable.clone();
    }
}

/// What a call that is to fail does before.
enum Part {
    /// The call works.
    All,
    /// It fails with this error, after a part of its effect.
    Failing(io::Error),
}

impl State {
    /// Counts a call and decides its fate.
    fn call(&mut self, call: Call, path: &str, life: u64) -> io::Result<Part> {
        /// Bounds the list of calls where nobody takes it.
        const CALLS_LISTED_MAX: usize = 65_536;
        let number = self.calls_count;
        self.calls_count += 1;
        if self.calls.len() < CALLS_LISTED_MAX {
            self.calls.push(call);
        }
        if self.powered_off || life != self.life {
            return Err(io::Error::other(format!("{path}: the machine is off")));
        }
        let fault = self.faults.remove(&number).or_else(|| {
            let (random, n) = self.random.as_mut()?;
            let struck = random.one_in(*n);
            struck.then_some(Fault::Error(io::ErrorKind::Other))
        });
        match fault {
            None => Ok(Part::All),
            Some(Fault::Error(kind)) => Ok(Part::Failing(io::Error::new(
                kind,
                format!("{path}: injected failure of {call:?}"),
            ))),
            Some(Fault::PowerLoss) => {
                self.powered_off = true;
                Ok(Part::Failing(io::Error::other(format!(
                    "{path}: power loss"
                ))))
            }
        }
    }

    fn chance(&mut self) -> &mut SeededRandom {
        let seed = self.calls_count;
        self.effects.get_or_insert_with(|| SeededRandom::new(seed))
    }

    /// Whether a failing call still has its effect.
    fn takes_effect(&mut self, part: &Part) -> bool {
        matches!(part, Part::All) || self.chance().one_in(2)
    }

    fn find(&self, path: &str) -> io::Result<u64> {
        let (directory, name) = split(path);
        let found = self.directories.get(directory);
        found
            .and_then(|directory| directory.names.get(name))
            .copied()
            .ok_or_else(|| not_found(path))
    }

    fn change(&mut self, directory: &str, change: NameChange) {
        let directory = self.directories.entry(directory.to_owned()).or_default();
        change.apply(&mut directory.names);
        directory.pending.push(change);
    }

    fn used_bytes(&self) -> u64 {
        let named = self
            .directories
            .values()
            .flat_map(|directory| directory.names.values());
        let files = named.filter_map(|number| self.files.get(number));
        files.map(|file| file.data.len() as u64).sum()
    }

    /// Forgets files that have no name, not even one that a crash could bring back.
    fn drop_unnamed(&mut self) {
        let directories = &self.directories;
        self.files.retain(|number, _| {
            directories.values().any(|directory| {
                let added = directory.pending.iter().filter_map(|change| match change {
                    NameChange::Add(_, file) => Some(file),
                    _ => None,
                });
                let named = directory.names.values().chain(directory.durable.values());
                named.chain(added).any(|named| named == number)
            })
        });
    }

    fn append(&mut self, file: u64, path: &str, bytes: &[u8], part: Part) -> io::Result<()> {
        let mut length = bytes.len();
        let mut result = Ok(());
        if let Part::Failing(error) = part {
            length = cast::to_usize(self.chance().below(length as u64 + 1));
            result = Err(error);
        }
        if let Some(capacity) = self.capacity_bytes {
            let free = capacity.saturating_sub(self.used_bytes());
            if (length as u64) > free {
                length = cast::to_usize(free);
                let full = io::Error::new(io::ErrorKind::StorageFull, format!("{path}: full"));
                result = result.and(Err(full));
            }
        }
        let file = self.files.get_mut(&file).ok_or_else(|| not_found(path))?;
        let from = file.data.len();
        file.data.extend_from_slice(&bytes[..length]);
        file.pending.push((from, from + length));
        result
    }

    fn sync(&mut self, file: u64, path: &str, part: Part) -> io::Result<()> {
        let File {
            data,
            durable,
            pending,
        } = self.files.get_mut(&file).ok_or_else(|| not_found(path))?;
        match part {
            Part::All => {
                for (from, to) in std::mem::take(pending) {
                    if durable.len() < to {
                        durable.resize(to, 0);
                    }
                    durable[from..to].copy_from_slice(&data[from..to]);
                }
                // The length is synced as well, whatever became of the bytes.
                durable.resize(data.len(), 0);
                Ok(())
            }
            Part::Failing(error) => {
                // The power failed: the unsynced writes stay what they were. The disk failed:
                // they are lost, though still in the cache.
                if !self.powered_off {
                    pending.clear();
                }
                Err(error)
            }
        }
    }
}

impl Part {
    fn result(self) -> io::Result<()> {
        match self {
            Part::All => Ok(()),
            Part::Failing(error) => Err(error),
        }
    }
}

impl Disk for MemDisk {
    fn list(&self, directory: &str) -> io::Result<Vec<DirEntry>> {
        let mut state = self.lock();
        let life = state.life;
        state.call(Call::List, directory, life)?.result()?;
        let Some(found) = state.directories.get(directory) else {
            return Ok(Vec::new());
        };
        let entry = |(name, file): (&String, &u64)| DirEntry {
            name: name.clone(),
            bytes: state
                .files
                .get(file)
                .map_or(0, |file| file.data.len() as u64),
        };
        Ok(found.names.iter().map(entry).collect())
    }

    fn create_directory(&self, directory: &str) -> io::Result<()> {
        let mut state = self.lock();
        let life = state.life;
        state
            .call(Call::CreateDirectory, directory, life)?
            .result()?;
        state.directories.entry(directory.to_owned()).or_default();
        Ok(())
    }

    fn create(&self, path: &str) -> io::Result<Box<dyn AppendFile>> {
        let mut state = self.lock();
        let life = state.life;
        let part = state.call(Call::Create, path, life)?;
        let (directory, name) = split(path);
        if !state.directories.contains_key(directory) {
            return Err(not_found(path));
        }
        if state.find(path).is_ok() {
            let exists = io::ErrorKind::AlreadyExists;
            return Err(io::Error::new(exists, format!("{path}: exists already")));
        }
        let file = state.file_next;
        if state.takes_effect(&part) {
            state.file_next += 1;
            state.files.insert(file, File::default());
            state.change(directory, NameChange::Add(name.into(), file));
        }
        part.result()?;
        Ok(Box::new(self.handle(path, file, life)))
    }

    fn open_append(&self, path: &str) -> io::Result<Box<dyn AppendFile>> {
        let mut state = self.lock();
        let life = state.life;
        state.call(Call::OpenAppend, path, life)?.result()?;
        let file = state.find(path)?;
        Ok(Box::new(self.handle(path, file, life)))
    }

    fn open(&self, path: &str) -> io::Result<Arc<dyn ReadAt>> {
        let mut state = self.lock();
        let life = state.life;
        state.call(Call::Open, path, life)?.result()?;
        let file = state.find(path)?;
        Ok(Arc::new(self.handle(path, file, life)))
    }

    fn truncate(&self, path: &str, bytes: u64) -> io::Result<()> {
        let mut state = self.lock();
        let life = state.life;
        let part = state.call(Call::Truncate, path, life)?;
        let file = state.find(path)?;
        if state.takes_effect(&part) {
            let file = state.files.get_mut(&file).ok_or_else(|| not_found(path))?;
            let bytes = file.data.len().min(cast::to_usize(bytes));
            file.data.truncate(bytes);
            file.durable.truncate(bytes);
            file.pending.retain_mut(|(from, to)| {
                *to = bytes.min(*to);
                from < to
            });
        }
        state.sync(file, path, part)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.lock();
        let life = state.life;
        let part = state.call(Call::Rename, from, life)?;
        let file = state.find(from)?;
        let ((directory, name), (directory_to, name_to)) = (split(from), split(to));
        if directory != directory_to {
            let text = format!("{from}: a rename across directories is not modelled");
            return Err(io::Error::new(io::ErrorKind::Unsupported, text));
        }
        if state.takes_effect(&part) {
            let change = NameChange::Rename(name.into(), name_to.into(), file);
            state.change(directory, change);
        }
        part.result()
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        let mut state = self.lock();
        let life = state.life;
        let part = state.call(Call::Remove, path, life)?;
        state.find(path)?;
        let (directory, name) = split(path);
        if state.takes_effect(&part) {
            state.change(directory, NameChange::Remove(name.into()));
        }
        part.result()
    }

    fn sync_directory(&self, directory: &str) -> io::Result<()> {
        let mut state = self.lock();
        let life = state.life;
        let part = state.call(Call::SyncDirectory, directory, life)?;
        part.result()?;
        let Some(directory) = state.directories.get_mut(directory) else {
            return Err(not_found(directory));
        };
        directory.pending.clear();
        directory.durable = directory.names.clone();
        Ok(())
    }

    fn space(&self) -> io::Result<Space> {
        let state = self.lock();
        let total_bytes = state.capacity_bytes.unwrap_or(1 << 40);
        Ok(Space {
            free_bytes: total_bytes.saturating_sub(state.used_bytes()),
            total_bytes,
        })
    }
}

impl MemDisk {
    fn handle(&self, path: &str, file: u64, life: u64) -> Handle {
        Handle {
            disk: self.clone(),
            path: path.to_owned(),
            file,
            life,
        }
    }
}

struct Handle {
    disk: MemDisk,
    path: String,
    file: u64,
    life: u64,
}

impl AppendFile for Handle {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.disk.lock();
        let part = state.call(Call::Append, &self.path, self.life)?;
        state.append(self.file, &self.path, bytes, part)
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut state = self.disk.lock();
        let part = state.call(Call::Sync, &self.path, self.life)?;
        state.sync(self.file, &self.path, part)
    }
}

impl ReadAt for Handle {
    fn bytes(&self) -> io::Result<u64> {
        let state = self.disk.lock();
        let file = state.files.get(&self.file);
        file.map(|file| file.data.len() as u64)
            .ok_or_else(|| not_found(&self.path))
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let mut state = self.disk.lock();
        state.call(Call::Read, &self.path, self.life)?.result()?;
        let file = state
            .files
            .get(&self.file)
            .ok_or_else(|| not_found(&self.path))?;
        let end = offset.saturating_add(buffer.len() as u64);
        if end > file.data.len() as u64 {
            let text = format!("{}: read past the end", self.path);
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, text));
        }
        buffer.copy_from_slice(&file.data[cast::to_usize(offset)..cast::to_usize(end)]);
        Ok(())
    }
}

fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

fn not_found(path: &str) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("{path}: no such file"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_the_suite() {
        crate::disk_suite::check(&MemDisk::new());
    }

    fn disk_with(bytes: &[u8]) -> (MemDisk, Box<dyn AppendFile>) {
        let disk = MemDisk::new();
        disk.create_directory("d").unwrap();
        let mut file = disk.create("d/f").unwrap();
        file.append(bytes).unwrap();
        (disk, file)
    }

    #[test]
    fn a_crash_keeps_what_was_synced_and_any_part_of_the_rest() {
        let mut lengths = std::collections::BTreeSet::new();
        for seed in 0..100 {
            let (disk, mut file) = disk_with(&[1; 700]);
            file.sync().unwrap();
            disk.sync_directory("d").unwrap();
            file.append(&[2; 2000]).unwrap();
            disk.crash(seed);
            let bytes = disk.read("d/f").unwrap();
            assert_eq!(bytes[..700], [1; 700]);
            assert!(bytes[700..].iter().all(|b| *b == 2 || *b == 0));
            assert!(file.append(b"x").is_err(), "a handle of an earlier life");
            lengths.insert(bytes.len());
        }
        assert!(lengths.len() > 10 && lengths.contains(&700) && lengths.contains(&2700));
    }

    #[test]
    fn an_unsynced_name_may_be_lost() {
        let survivors = (0..100).filter(|seed| {
            let (disk, mut file) = disk_with(b"x");
            file.sync().unwrap();
            disk.crash(*seed);
            disk.read("d/f").is_some()
        });
        assert!((20..80).contains(&survivors.count()));
    }

    #[test]
    fn a_failed_sync_loses_its_bytes_for_ever() {
        let (disk, mut file) = disk_with(b"lost");
        disk.sync_directory("d").unwrap();
        disk.fail_at(disk.calls_count(), Fault::Error(io::ErrorKind::Other));
        file.sync().unwrap_err();
        assert_eq!(disk.read("d/f").unwrap(), b"lost");
        file.append(b"kept").unwrap();
        file.sync().unwrap();
        disk.crash(0);
        assert_eq!(disk.read("d/f").unwrap(), b"\0\0\0\0kept");
    }

    #[test]
    fn a_full_disk_refuses_and_recovers() {
        let (disk, mut file) = disk_with(b"1234");
        disk.set_capacity(Some(6));
        let error = file.append(b"5678").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert_eq!(disk.read("d/f").unwrap(), b"123456");
        disk.truncate("d/f", 4).unwrap();
        assert_eq!(disk.space().unwrap().free_bytes, 2);
    }
}
