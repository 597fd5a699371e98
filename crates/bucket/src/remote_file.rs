//! A file in the object store, read in ranges and kept on the local disk as far as there is room.
//!
//! What a segment costs that nothing is known of, for a search that finds its rows in one row group: a
//! request for directory and footer, one for the token indexes of all row groups, one for the first
//! columns that are read, and one for the rest of the row group.

#[cfg(test)]
mod tests;

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use bytes::Bytes;
use logpond_record::cast;
use logpond_segment::disk::ReadAt;

use crate::cache::{BLOCK_BYTES, BlockClaim, Cache, Claim, Entry, Geometry, lock, plan};
use crate::objects::Objects;

/// Requests of one read at a time.
const REQUESTS_AT_ONCE: usize = 4;

/// How often a read looks for its blocks in the cache before it asks the store for its bytes only. More
/// than a few times is when others fetch parts of it, or drop them at once for want of room.
const ROUNDS_MAX: usize = 8;

/// What reads have fetched from the store: of a query, say. What another thread has fetched that this
/// one has waited for is not in it.
#[derive(Debug, Default)]
pub struct Costs {
    /// Number of requests.
    pub requests: AtomicU64,
    /// Bytes that came of them.
    pub bytes: AtomicU64,
}

/// An object of the store as a file. It must not change as long as anything of it is in the cache: no
/// other object may ever get its name.
pub struct RemoteFile {
    object: Arc<Object>,
    costs: Option<Arc<Costs>>,
}

/// What the clones of a file share.
struct Object {
    objects: Arc<dyn Objects>,
    cache: Cache,
    name: String,
    bytes: u64,
    /// `None` if the cache cannot have it.
    entry: Option<Arc<Entry>>,
}

impl Drop for Object {
    fn drop(&mut self) {
        if let Some(entry) = &self.entry {
            self.cache.release(entry);
        }
    }
}

impl RemoteFile {
    /// A file of `bytes` bytes. From `index_from` on it is fetched as a whole, and kept longer than the
    /// rest: a segment's directory and footer. Nothing is read for this.
    ///
    /// One file is made for a segment and kept as long as its directory is: where the row groups lie is
    /// told when the directory is read, and is known as long as the file is there.
    pub fn new(
        cache: &Cache,
        objects: Arc<dyn Objects>,
        name: &str,
        bytes: u64,
        index_from: u64,
    ) -> RemoteFile {
        let object = Object {
            objects,
            cache: cache.clone(),
            name: name.to_owned(),
            bytes,
            entry: cache.entry(name, Geometry::new(bytes, index_from)),
        };
        RemoteFile {
            object: Arc::new(object),
            costs: None,
        }
    }

    /// The same file, which also adds to these costs what it fetches.
    #[must_use]
    pub fn counted(&self, costs: Arc<Costs>) -> RemoteFile {
        RemoteFile {
            object: Arc::clone(&self.object),
            costs: Some(costs),
        }
    }

    /// Drops what the cache holds of it, as when the bytes that came were wrong: the next read asks the store again.
    pub fn distrust(&self) {
        if let Some(entry) = &self.object.entry {
            self.object.cache.drop_held(entry);
        }
    }

    /// Reads with the help of the cache; `false` if some blocks were neither fetched nor there, for
    /// another thread has fetched them, and they were dropped at once.
    fn read_blocks(&self, entry: &Arc<Entry>, offset: u64, buffer: &mut [u8]) -> io::Result<bool> {
        let asked = entry
            .geometry
            .covering(offset, offset + buffer.len() as u64);
        match entry.claim(&asked) {
            Claim::Present => Ok(self.object.cache.read(entry, offset, buffer)),
            Claim::Wait(flight) => {
                let outcome = flight.wait();
                // What failed may be another part of what was fetched.
                if self.object.cache.read(entry, offset, buffer) {
                    Ok(true)
                } else {
                    outcome.map(|()| false)
                }
            }
            Claim::Fetch(claimed) => {
                self.object.cache.check_left_behind(entry, &claimed.blocks);
                let (fetched, error) = self.fetch_claimed(entry, &claimed, &asked);
                claimed.settle(error.as_ref());
                if self.assemble(entry, &fetched, offset, buffer) {
                    Ok(true)
                } else {
                    // Without an error something is missing that was not claimed.
                    error.map_or(Ok(false), Err)
                }
            }
        }
    }

    /// Fetches the claimed blocks that are not present, and keeps them. Gives what there is of the
    /// blocks that are asked for, and the first failure.
    fn fetch_claimed(
        &self,
        entry: &Arc<Entry>,
        claimed: &BlockClaim,
        asked: &Range<u64>,
    ) -> (Vec<(u64, Bytes)>, Option<io::Error>) {
        let missing = claimed.blocks.iter().copied();
        let missing: Vec<u64> = missing.filter(|block| !entry.present.has(*block)).collect();
        let ranges = plan(&missing, |block| claimed.may_bridge(block));
        let (next, failure) = (AtomicUsize::new(0), Mutex::new(None));
        let fetched = Mutex::new(Vec::new());
        let fetch_some = || {
            let has_failed = || lock(&failure).is_some();
            while let Some(blocks) = ranges.get(next.fetch_add(1, Ordering::Relaxed))
                && !has_failed()
            {
                match self.fetch(entry.geometry.bytes_of(blocks)) {
                    Ok(bytes) => {
                        self.keep(entry, &missing, blocks, &bytes);
                        if blocks.start < asked.end && asked.start < blocks.end {
                            lock(&fetched).push((blocks.start * BLOCK_BYTES, bytes));
                        }
                    }
                    Err(error) => {
                        lock(&failure).get_or_insert(error);
                    }
                }
            }
        };
        thread::scope(|scope| {
            for _ in 1..ranges.len().min(REQUESTS_AT_ONCE) {
                // If there is no thread to be had, the others fetch more each.
                let _ = thread::Builder::new().spawn_scoped(scope, fetch_some);
            }
            fetch_some();
        });
        let failure = failure.into_inner().unwrap_or_else(PoisonError::into_inner);
        (
            fetched.into_inner().unwrap_or_else(PoisonError::into_inner),
            failure,
        )
    }

    /// Gives to the cache those of the blocks of a fetched range that it had not.
    fn keep(&self, entry: &Arc<Entry>, missing: &[u64], blocks: &Range<u64>, bytes: &Bytes) {
        let from = missing.partition_point(|block| *block < blocks.start);
        let to = missing.partition_point(|block| *block < blocks.end);
        let is_next =
            |a: &u64, b: &u64| a + 1 == *b && entry.geometry.kind(*a) == entry.geometry.kind(*b);
        for run in missing[from..to].chunk_by(is_next) {
            let place = entry
                .geometry
                .bytes_of(&(run[0]..run[0] + run.len() as u64));
            let fetched_from = blocks.start * BLOCK_BYTES;
            let part = cast::to_usize(place.start - fetched_from)
                ..cast::to_usize(place.end - fetched_from);
            self.object.cache.store(entry, run[0], &bytes[part]);
        }
    }

    /// Fills the buffer from what was fetched, and from the cache where nothing was.
    fn assemble(
        &self,
        entry: &Entry,
        fetched: &[(u64, Bytes)],
        offset: u64,
        buffer: &mut [u8],
    ) -> bool {
        let end = offset + buffer.len() as u64;
        let mut at = offset;
        while at < end {
            let inside =
                |(from, bytes): &&(u64, Bytes)| (*from..*from + bytes.len() as u64).contains(&at);
            let rest = &mut buffer[cast::to_usize(at - offset)..];
            let length = match fetched.iter().find(inside) {
                Some((from, bytes)) => {
                    let bytes = &bytes[cast::to_usize(at - from)..];
                    let length = bytes.len().min(rest.len());
                    rest[..length].copy_from_slice(&bytes[..length]);
                    length
                }
                None => {
                    let length = ((at / BLOCK_BYTES + 1) * BLOCK_BYTES).min(end) - at;
                    if !self
                        .object
                        .cache
                        .read(entry, at, &mut rest[..cast::to_usize(length)])
                    {
                        return false;
                    }
                    cast::to_usize(length)
                }
            };
            at += length as u64;
        }
        true
    }

    /// One request.
    fn fetch(&self, range: Range<u64>) -> io::Result<Bytes> {
        let wanted = range.end - range.start;
        let fetched = self
            .object
            .objects
            .read(&self.object.name, range.start, wanted);
        let bytes = fetched.as_ref().map_or(0, Bytes::len);
        self.object.cache.count_fetched(bytes);
        if let Some(costs) = &self.costs {
            costs.requests.fetch_add(1, Ordering::Relaxed);
            costs.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        }
        let fetched = fetched?;
        if fetched.len() as u64 == wanted {
            Ok(fetched)
        } else {
            let (name, got) = (&self.object.name, fetched.len());
            let text = format!(
                "{got} bytes came of {wanted} of {name:?} from {}",
                range.start
            );
            Err(io::Error::new(io::ErrorKind::InvalidData, text))
        }
    }
}

impl ReadAt for RemoteFile {
    fn bytes(&self) -> io::Result<u64> {
        Ok(self.object.bytes)
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let end = offset.checked_add(buffer.len() as u64);
        let Some(end) = end.filter(|end| *end <= self.object.bytes) else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        if buffer.is_empty() {
            return Ok(());
        }
        if let Some(entry) = &self.object.entry {
            if self.object.cache.read(entry, offset, buffer) {
                self.object.cache.count_hit(buffer.len());
                return Ok(());
            }
            self.object.cache.count_miss();
            for _ in 0..ROUNDS_MAX {
                if self.read_blocks(entry, offset, buffer)? {
                    return Ok(());
                }
            }
        }
        buffer.copy_from_slice(&self.fetch(offset..end)?);
        Ok(())
    }

    fn will_read(&self, offset: u64, bytes: u64) {
        if let Some(entry) = &self.object.entry {
            entry.add_hint(offset, offset.saturating_add(bytes));
        }
    }

    fn regions(&self, regions: &[(u64, u64)]) {
        if let Some(entry) = &self.object.entry {
            entry.set_regions(regions);
        }
    }
}
