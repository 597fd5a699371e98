//! What the cache knows of one object: which blocks are there, and who fetches which.

use std::collections::BTreeMap;
use std::io;
use std::mem;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use super::blocks::{BLOCK_BYTES, Bits, Geometry, Kind};
use super::part::{Part, file_name};

/// Blocks that the first read of a region fetches: half a MiB. It is what one column of a row group has
/// at most, as a rule.
const PIECE_BLOCKS: u64 = (512 << 10) / BLOCK_BYTES;

/// Hints that are remembered: those of some searches at a time.
const HINTS_MAX: usize = 16;

/// An object. All that read it share one of these, and the cache has it as long as it holds any of its
/// blocks.
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) geometry: Geometry,
    /// Blocks whose bytes are known to be right.
    pub(crate) present: Bits,
    /// Blocks that an earlier process has left behind, and nobody has looked at.
    pub(crate) left_behind: Bits,
    parts: [Part; 2],
    /// Whether the cache has not taken what was fetched last: then nothing is fetched ahead.
    pub(crate) is_refused: AtomicBool,
    flights: Mutex<Flights>,
    hints: Mutex<Vec<Range<u64>>>,
    regions: OnceLock<Vec<Range<u64>>>,
}

/// Blocks that are being fetched.
type Flights = BTreeMap<u64, Arc<Flight>>;

/// What is to be done for a read.
pub(crate) enum Claim {
    /// Nothing: all blocks are there.
    Present,
    /// To wait for another thread, which fetches what is missing.
    Wait(Arc<Flight>),
    /// To fetch these blocks; others wait until the claim is dropped.
    Fetch(BlockClaim),
}

/// Blocks that this thread fetches.
pub(crate) struct BlockClaim {
    entry: Arc<Entry>,
    flight: Arc<Flight>,
    outcome: Outcome,
    /// In ascending order.
    pub(crate) blocks: Vec<u64>,
}

impl Entry {
    /// `None` if the name is too long for a file.
    pub(crate) fn new(directory: &Path, name: &str, geometry: Geometry) -> Option<Entry> {
        let part = |kind| {
            let path = directory.join(file_name(name, kind)?);
            Some(Part::new(path, geometry, kind))
        };
        Some(Entry {
            name: name.to_owned(),
            geometry,
            present: Bits::new(geometry.blocks()),
            left_behind: Bits::new(geometry.blocks()),
            parts: [part(Kind::Pages)?, part(Kind::Tail)?],
            is_refused: AtomicBool::new(false),
            flights: Mutex::default(),
            hints: Mutex::default(),
            regions: OnceLock::new(),
        })
    }

    pub(crate) fn part(&self, kind: Kind) -> &Part {
        &self.parts[kind as usize]
    }

    /// Takes note of a range (of bytes) that will be read: its first block that is missed brings all.
    pub(crate) fn add_hint(&self, from: u64, to: u64) {
        let blocks = self.geometry.covering(from, to);
        if self.present.has_all(blocks.clone()) {
            return;
        }
        let mut hints = lock(&self.hints);
        hints.retain(|hint| *hint != blocks && !self.present.has_all(hint.clone()));
        if hints.len() == HINTS_MAX {
            hints.remove(0);
        }
        hints.push(blocks);
    }

    /// Takes note of the regions, in bytes. Later ones than the first are of the same file, and are the
    /// same.
    pub(crate) fn set_regions(&self, regions: &[(u64, u64)]) {
        let range = |(from, bytes): &(u64, u64)| *from..from.saturating_add(*bytes);
        self.regions
            .get_or_init(|| regions.iter().map(range).collect());
    }

    /// Decides what is to be done for a read of these blocks.
    pub(crate) fn claim(self: &Arc<Entry>, asked: &Range<u64>) -> Claim {
        let mut flights = lock(&self.flights);
        let missing = asked.clone().find(|block| !self.present.has(*block));
        let Some(missing) = missing else {
            return Claim::Present;
        };
        if let Some(flight) = flights.get(&missing) {
            return Claim::Wait(Arc::clone(flight));
        }
        let wanted = self.extent(missing, asked, &flights);
        let is_free = |block: &u64| !self.present.has(*block) && !flights.contains_key(block);
        let blocks: Vec<u64> = wanted.filter(is_free).collect();
        let flight = Arc::new(Flight::default());
        flights.extend(blocks.iter().map(|block| (*block, Arc::clone(&flight))));
        Claim::Fetch(BlockClaim {
            entry: Arc::clone(self),
            flight,
            outcome: Outcome::Abandoned,
            blocks,
        })
    }

    /// The blocks to fetch when one is missing: those asked for, and more where it is likely that they
    /// will be read.
    fn extent(&self, missing: u64, asked: &Range<u64>, flights: &Flights) -> Range<u64> {
        let more = if self.is_refused.load(Ordering::Relaxed) {
            None
        } else {
            self.likely(missing, flights)
        };
        match more {
            Some(more) => more.start.min(asked.start)..more.end.max(asked.end),
            None => asked.clone(),
        }
    }

    fn likely(&self, missing: u64, flights: &Flights) -> Option<Range<u64>> {
        if self.geometry.kind(missing) == Kind::Tail {
            return Some(self.geometry.of(Kind::Tail));
        }
        let hints = lock(&self.hints);
        if let Some(hint) = hints.iter().find(|hint| hint.contains(&missing)) {
            return Some(hint.clone());
        }
        drop(hints);
        let byte = missing * BLOCK_BYTES;
        let regions = self.regions.get()?;
        // The region that the block ends in, if it lies in two: that is where a reader goes on.
        let at = regions.partition_point(|region| region.start < byte + BLOCK_BYTES);
        let region = regions
            .get(at.checked_sub(1)?)
            .filter(|region| byte < region.end)?;
        let blocks = self.geometry.covering(region.start, region.end);
        // Blocks at the edges may be here for the sake of the neighbours.
        let inner = region.start.div_ceil(BLOCK_BYTES)..region.end / BLOCK_BYTES;
        let inner = inner.start..inner.end.max(inner.start);
        let is_known = self.present.has_any(inner.clone())
            || self.left_behind.has_any(inner.clone())
            || flights.range(inner).next().is_some();
        if is_known || blocks.end - blocks.start <= PIECE_BLOCKS {
            Some(blocks)
        } else {
            Some(missing..(missing + PIECE_BLOCKS).min(blocks.end))
        }
    }
}

impl BlockClaim {
    /// Ends the claim and tells those who wait how it went.
    pub(crate) fn settle(mut self, error: Option<&io::Error>) {
        self.outcome = Outcome::Done(error.map(|error| (error.kind(), error.to_string())));
    }

    /// Whether a block that is not claimed may be fetched nevertheless: not if another thread does it.
    pub(crate) fn may_bridge(&self, block: u64) -> bool {
        self.entry.present.has(block)
    }
}

impl Drop for BlockClaim {
    fn drop(&mut self) {
        let mut flights = lock(&self.entry.flights);
        self.blocks.iter().for_each(|block| {
            flights.remove(block);
        });
        drop(flights);
        // Now that who tries again finds the blocks free.
        let outcome = mem::replace(&mut self.outcome, Outcome::Abandoned);
        *lock(&self.flight.outcome) = Some(outcome);
        self.flight.landed.notify_all();
    }
}

/// A fetch that others may wait for.
#[derive(Default)]
pub(crate) struct Flight {
    outcome: Mutex<Option<Outcome>>,
    landed: Condvar,
}

enum Outcome {
    Done(Option<(io::ErrorKind, String)>),
    /// Its thread has panicked; who waits tries for itself.
    Abandoned,
}

impl Flight {
    /// Waits for the other thread.
    ///
    /// # Errors
    /// The other one's: to try again at once would make every one of many readers wait for all attempts.
    pub(crate) fn wait(&self) -> io::Result<()> {
        let outcome = lock(&self.outcome);
        let outcome = self.landed.wait_while(outcome, |outcome| outcome.is_none());
        match &*outcome.unwrap_or_else(PoisonError::into_inner) {
            Some(Outcome::Done(Some((kind, text)))) => Err(io::Error::new(*kind, text.clone())),
            _ => Ok(()),
        }
    }
}

/// No data behind these locks is left half changed by a panic.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
