//! The memory of all bodies of requests, and who gives it up when it is short.
//!
//! Invariants:
//! - The bytes of all bodies in flight are bounded. A body has a share for each chunk before it is kept.
//! - A body that comes too slowly ends: it is waited for as long as [`BODY_GRACE`] and its bytes at
//!   [`BODY_BYTES_PER_S_MIN`] allow, and never longer than [`BODY_IDLE_MAX`] at once. Only time in which
//!   the server waits for the client counts.
//! - When there is no room, bodies that hold some of it and do not come are dropped, the slowest first,
//!   until there is: nobody can keep others out by standing still.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hyper::body::Bytes;
use logpond_record::cast;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, SemaphorePermit};
use tokio::time::Instant;

use super::body::next_chunk_ever;
use super::error::{ApiError, Kind};
use super::inflow::Inflow;
use logpond_engine::ingest::ROOM_WAIT_MAX;
use logpond_host::memory::incoming::{BODIES, DECODED};

/// How long a request's body may make no progress.
pub(super) const BODY_IDLE_MAX: Duration = Duration::from_secs(30);

/// How long a body may take, beside what its bytes are good for.
pub(super) const BODY_GRACE: Duration = Duration::from_secs(30);

/// The slowest that a body may come: as over a telephone line. Nobody holds a connection longer with
/// fewer bytes.
pub(super) const BODY_BYTES_PER_S_MIN: u64 = 1 << 10;

/// How long nothing of a body came before it may be dropped for others.
const STALLED_MIN: Duration = Duration::from_secs(1);

/// Below this a body may be dropped for others, too, once it was waited for so long: it would hold its
/// share of the memory for minutes.
const SLOW_BYTES_PER_S_MAX: u64 = 64 << 10;
const SLOW_AFTER: Duration = Duration::from_secs(2);

/// How often bodies are looked at while somebody waits for room.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// With less memory for bodies, one is decoded at a time: it may take as much as the longest one twice, as it was
/// sent and as records.
const TWO_DECODERS_BYTES: usize = BODIES.bytes_max;

/// The memory of all bodies of a server.
pub struct Bodies {
    bytes_max: usize,
    /// The most bytes that one body may have, decompressed.
    decoded_bytes_max: usize,
    room: Arc<Semaphore>,
    /// One permit for each body that may be decoded at once.
    decoders: Semaphore,
    next: AtomicU64,
    /// Bodies that are being received: one for each request at most.
    coming: Mutex<BTreeMap<u64, Arc<IncomingBody>>>,
}

/// A body that is being received.
#[derive(Debug)]
struct IncomingBody {
    pace: Mutex<Pace>,
    dropped: Notify,
}

/// How fast a body comes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Pace {
    /// What came.
    bytes: u64,
    /// What is held of the room.
    held_bytes: usize,
    /// How long the client was waited for.
    waited: Duration,
    /// Since when it is waited for now.
    since: Option<Instant>,
    is_dropped: bool,
}

/// Why a body may be dropped for others; the worst is the greatest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Slowness {
    /// It comes, at so many bytes a second.
    Slow(Reverse<u64>),
    /// It does not come, for so long.
    Stalled(Duration),
}

impl Pace {
    /// How much longer the client may be waited for.
    fn patience(&self) -> Duration {
        let earned = Duration::from_millis(self.bytes * 1000 / BODY_BYTES_PER_S_MIN);
        let left = (BODY_GRACE + earned).saturating_sub(self.waited);
        left.min(BODY_IDLE_MAX)
    }

    fn note_waiting(&mut self, now: Instant) {
        self.since = Some(now);
    }

    fn note_chunk(&mut self, bytes: usize, now: Instant) {
        let since = self.since.take();
        self.waited += since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
        self.bytes += bytes as u64;
    }

    /// Whether it may be dropped, and how much it deserves it.
    fn slowness(&self, now: Instant) -> Option<Slowness> {
        // A body that waits for the server is not slow.
        let idle = now.saturating_duration_since(self.since?);
        if self.held_bytes == 0 || self.is_dropped {
            return None;
        }
        if idle >= STALLED_MIN {
            return Some(Slowness::Stalled(idle));
        }
        let waited = self.waited + idle;
        let per_s = self.bytes * 1000 / cast::low_u64(waited.as_millis()).max(1);
        let is_slow = waited >= SLOW_AFTER && per_s < SLOW_BYTES_PER_S_MAX;
        is_slow.then_some(Slowness::Slow(Reverse(per_s)))
    }
}

impl Bodies {
    /// The memory for bodies with such a budget, in bytes.
    pub fn new(budget_bytes: u64) -> Bodies {
        Bodies::of(BODIES.bytes(budget_bytes), DECODED.bytes(budget_bytes))
    }

    fn of(bytes_max: usize, decoded_bytes_max: usize) -> Bodies {
        Bodies {
            bytes_max,
            decoded_bytes_max,
            room: Arc::new(Semaphore::new(bytes_max)),
            decoders: Semaphore::new(if bytes_max < TWO_DECODERS_BYTES { 1 } else { 2 }),
            next: AtomicU64::new(0),
            coming: Mutex::default(),
        }
    }

    /// The right to decode a body of records, until it is dropped.
    pub(super) async fn decoder(&self) -> Option<SemaphorePermit<'_>> {
        // The semaphore is never closed.
        self.decoders.acquire().await.ok()
    }

    /// The most bytes that one body may have, decompressed.
    pub(super) fn decoded_bytes_max(&self) -> usize {
        self.decoded_bytes_max
    }

    /// The most bytes that one body may have.
    pub(super) fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// A body begins to come.
    pub(super) fn begin(&self) -> BodyGuard<'_> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let coming = Arc::new(IncomingBody {
            pace: Mutex::default(),
            dropped: Notify::new(),
        });
        self.locked().insert(number, coming.clone());
        BodyGuard {
            bodies: self,
            number,
            coming,
            room: None,
        }
    }

    /// Room for so many bytes, as soon as there is some.
    pub(super) async fn room(&self, bytes: usize) -> Result<OwnedSemaphorePermit, ApiError> {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        let waiting = self.room.clone().acquire_many_owned(bytes);
        let mut waiting = std::pin::pin!(waiting);
        let busy = || {
            let message = "too many request bodies are in flight; send smaller ones or try again";
            ApiError::new(Kind::Busy, message)
        };
        let until = Instant::now() + ROOM_WAIT_MAX;
        let mut look_at = Instant::now();
        loop {
            tokio::select! {
                biased;
                room = waiting.as_mut() => return room.map_err(|_| busy()),
                () = tokio::time::sleep_until(look_at.min(until)) => {}
            }
            let now = Instant::now();
            if now >= until {
                return Err(busy());
            }
            self.drop_slowest(now);
            look_at = now + LOOK_INTERVAL;
        }
    }

    /// Drops the slowest body, if one is slow.
    fn drop_slowest(&self, now: Instant) {
        let coming = self.locked();
        let slow = coming.values().filter_map(|coming| {
            let slowness = coming.pace().slowness(now)?;
            Some((slowness, coming))
        });
        if let Some((_, coming)) = slow.max_by_key(|(slowness, _)| *slowness) {
            coming.pace().is_dropped = true;
            coming.dropped.notify_one();
        }
    }

    fn locked(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<IncomingBody>>> {
        self.coming.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl IncomingBody {
    fn pace(&self) -> MutexGuard<'_, Pace> {
        self.pace.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A body that is being received, until this is dropped.
pub(super) struct BodyGuard<'b> {
    bodies: &'b Bodies,
    number: u64,
    coming: Arc<IncomingBody>,
    room: Option<OwnedSemaphorePermit>,
}

impl Drop for BodyGuard<'_> {
    fn drop(&mut self) {
        self.bodies.locked().remove(&self.number);
    }
}

impl BodyGuard<'_> {
    /// The next chunk, with room for it; `None` at the end of the body.
    pub(super) async fn next(&mut self, body: &mut Inflow) -> Result<Option<Bytes>, ApiError> {
        let patience = self.coming.pace().patience();
        let next = self.while_waiting(next_chunk_ever(body));
        let next = match tokio::time::timeout(patience, next).await {
            Ok(next) => next.and_then(|next| next),
            Err(_) => Err(self.too_slow()),
        };
        // What does not come need not be waited for to be thrown away.
        let next = next.inspect_err(|error| {
            if error.kind == Kind::BodyTooSlow {
                body.give_up();
            }
        })?;
        if let Some(chunk) = &next {
            self.coming.pace().note_chunk(chunk.len(), Instant::now());
        }
        Ok(next)
    }

    /// What comes of waiting for the client, unless its body is dropped for others meanwhile.
    pub(super) async fn while_waiting<T>(
        &self,
        waiting: impl Future<Output = T>,
    ) -> Result<T, ApiError> {
        self.coming.pace().note_waiting(Instant::now());
        let outcome = tokio::select! {
            biased;
            outcome = waiting => Ok(outcome),
            () = self.coming.dropped.notified() => Err(self.dropped()),
        };
        self.coming.pace().note_chunk(0, Instant::now());
        outcome
    }

    /// Holds room for so many bytes in all.
    pub(super) async fn hold(&mut self, bytes: usize) -> Result<(), ApiError> {
        let has = self
            .room
            .as_ref()
            .map_or(0, OwnedSemaphorePermit::num_permits);
        match &mut self.room {
            Some(room) if has > bytes => drop(room.split(has - bytes)),
            Some(room) if has < bytes => room.merge(self.bodies.room(bytes - has).await?),
            None if bytes > 0 => self.room = Some(self.bodies.room(bytes).await?),
            _ => {}
        }
        self.coming.pace().held_bytes = bytes;
        Ok(())
    }

    /// The room that it holds.
    pub(super) fn into_room(mut self) -> Option<OwnedSemaphorePermit> {
        self.room.take()
    }

    fn too_slow(&self) -> ApiError {
        let bytes = self.coming.pace().bytes;
        let (idle, rate) = (BODY_IDLE_MAX.as_secs(), BODY_BYTES_PER_S_MIN);
        let message = format!(
            "the body came too slowly: {bytes} bytes so far, and then nothing for {idle} s, or less \
             than {rate} bytes a second"
        );
        ApiError::new(Kind::BodyTooSlow, message)
    }

    fn dropped(&self) -> ApiError {
        let bytes = self.coming.pace().bytes;
        let message = format!(
            "the body came too slowly: {bytes} bytes so far, and others needed the memory that it held"
        );
        ApiError::new(Kind::BodyTooSlow, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64, base: Instant) -> Instant {
        base + Duration::from_secs(seconds)
    }

    #[test]
    fn patience_is_earned_by_bytes() {
        let base = Instant::now();
        let mut pace = Pace::default();
        assert_eq!(pace.patience(), BODY_GRACE);
        // A byte each 20 seconds is no progress.
        pace.note_waiting(base);
        pace.note_chunk(1, at(20, base));
        assert_eq!(pace.patience().as_secs(), 10);
        pace.note_waiting(at(20, base));
        pace.note_chunk(1, at(40, base));
        assert_eq!(pace.patience(), Duration::ZERO);
        // What waits for the server is not waited for.
        let mut pace = Pace::default();
        pace.note_chunk(1 << 20, at(0, base));
        pace.note_waiting(at(500, base));
        pace.note_chunk(1, at(510, base));
        assert_eq!(pace.patience(), BODY_IDLE_MAX);
        assert_eq!(pace.waited.as_secs(), 10);
    }

    #[test]
    fn the_one_that_stands_still_longest_is_the_slowest() {
        let base = Instant::now();
        let pace = |bytes, waited, since| Pace {
            bytes,
            held_bytes: 1,
            waited: Duration::from_secs(waited),
            since: Some(at(since, base)),
            is_dropped: false,
        };
        let now = at(100, base);
        let stalled = pace(16 << 20, 0, 98).slowness(now);
        let longer = pace(1 << 20, 0, 90).slowness(now);
        let trickling = pace(1000, 50, 100).slowness(now);
        let slow = pace(1 << 20, 50, 100).slowness(now);
        assert!(longer > stalled && stalled > trickling && trickling > slow);
        assert!(slow.is_some());
        for fast in [pace(16 << 20, 50, 100), pace(10, 1, 100), pace(10, 0, 100)] {
            assert_eq!(fast.slowness(now), None);
        }
        let none = [
            Pace {
                since: None,
                ..pace(1, 50, 0)
            },
            Pace {
                held_bytes: 0,
                ..pace(1, 50, 0)
            },
            Pace {
                is_dropped: true,
                ..pace(1, 50, 0)
            },
        ];
        assert!(none.iter().all(|pace| pace.slowness(now).is_none()));
    }

    #[tokio::test(start_paused = true)]
    async fn room_is_made_by_those_who_stand_still() {
        let bodies = Bodies::of(100, 100);
        let mut stalled = bodies.begin();
        stalled.hold(90).await.unwrap();
        let waits = async {
            let dropped = stalled.while_waiting(std::future::pending::<()>()).await;
            assert_eq!(dropped.unwrap_err().kind, Kind::BodyTooSlow);
            drop(stalled);
        };
        let other = async {
            let mut other = bodies.begin();
            other.hold(50).await.unwrap();
            assert_eq!(bodies.room.available_permits(), 50);
        };
        tokio::join!(waits, other);
        // One that is served keeps its share, and others are refused.
        let mut served = bodies.begin();
        served.hold(90).await.unwrap();
        let refused = bodies.room(50).await.unwrap_err();
        assert_eq!(refused.kind, Kind::Busy);
        drop(served);
        assert!(bodies.locked().is_empty());
    }
}
