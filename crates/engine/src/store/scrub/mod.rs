//! The thread `lp-scrub` reads each segment of the local disk once in a while and compares all its
//! bytes with their checksums, so that damage is found while there is another copy, and not first by
//! whoever needs what is damaged.
//!
//! Invariants:
//! - It changes no segment and no list of them. What is damaged is marked as a query marks it; what
//!   becomes of that is up to the store, and in a cluster to those who see to copies.
//! - It reads a bounded piece at a time, no faster than its pace, and lets the store go first.
//! - What a restart or a lost file of its own costs is that segments are read later or again.

mod schedule;

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use logpond_record::{Timestamp, cast};
use logpond_segment::disk::Disk;
use logpond_segment::file::Damage;
use logpond_segment::verify::Checksums;

use super::live::{LiveSegment, LiveSet, Segments, local};
use logpond_host::disk::replace;
use logpond_host::panics::caught;
use logpond_host::telemetry::{Counter, Metrics, warn};
use schedule::{LocalSegment, Outcome, Schedule, ScrubStep};

const DIRECTORY: &str = "scrub";

const PATH: &str = "scrub/checked";

/// Where a file goes that says nothing of segments.
const ASIDE: &str = "scrub/checked.damaged";

/// The longest file: more than half a million segments.
const FILE_BYTES_MAX: u64 = 32 << 20;

/// How often at most is written what was checked: all of it is written each time, and what is lost with
/// the process is read again.
const SAVE_INTERVAL: Duration = Duration::from_secs(60);

/// The longest wait for the store before a piece. One that never rests makes a scrub slow, and does
/// not end it.
const GIVE_WAY_MAX: Duration = Duration::from_millis(500);

/// How often is looked whether the store rests.
const GIVE_WAY_CHECK: Duration = Duration::from_millis(20);

/// How long nothing is read after a panic.
const PANIC_PAUSE: Duration = Duration::from_secs(60);

/// What the thread works with.
pub(super) struct Parts {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) live: LiveSet,
    pub(super) clock: fn() -> Timestamp,
    pub(super) metrics: Arc<Metrics>,
    /// Whether the store is making, merging or removing segments.
    pub(super) is_store_at_work: Arc<AtomicBool>,
}

/// The thread.
pub(super) struct ScrubThread {
    thread: JoinHandle<()>,
    is_stopping: Arc<AtomicBool>,
}

impl ScrubThread {
    /// Ends it behind the piece that it reads, and waits for it.
    pub(super) fn stop(self) {
        self.is_stopping.store(true, Ordering::Relaxed);
        self.thread.thread().unpark();
        if self.thread.join().is_err() {
            warn("the thread that scrubs panicked; segments were not affected");
        }
    }
}

/// Starts the thread.
///
/// # Errors
/// When the system gives none.
pub(super) fn start(parts: Parts, every: Duration) -> io::Result<ScrubThread> {
    let is_stopping = Arc::new(AtomicBool::new(false));
    let counters = Arc::new(Counters::default());
    counters.register(&parts.metrics, parts.clock);
    let scrub = Scrub::new(parts, every, counters, Arc::clone(&is_stopping));
    let thread = thread::Builder::new().name("lp-scrub".to_owned());
    let thread = thread.spawn(move || run(scrub))?;
    Ok(ScrubThread {
        thread,
        is_stopping,
    })
}

fn run(mut scrub: Scrub) {
    scrub.read_state();
    while !scrub.is_stopping() {
        let wait = caught(|| scrub.round()).unwrap_or_else(|panicked| {
            scrub.counters.failures.add(1);
            warn(&format!("nothing is scrubbed for now: {panicked}"));
            PANIC_PAUSE
        });
        scrub.pause_until(Instant::now() + wait);
    }
    scrub.save();
}

/// What the thread has done and met.
#[derive(Debug, Default)]
struct Counters {
    segments: Counter,
    bytes: Counter,
    damaged: Counter,
    failures: Counter,
    /// Unix milliseconds; 0 if there is nothing to check.
    oldest_ms: AtomicI64,
}

impl Counters {
    fn register(self: &Arc<Counters>, metrics: &Metrics, clock: fn() -> Timestamp) {
        let counters = Arc::clone(self);
        metrics.register(Box::new(move |out| {
            out.counters([
                (
                    "logpond_scrub_segments_total",
                    "Segments whose checksums were all compared.",
                    counters.segments.get(),
                ),
                (
                    "logpond_scrub_bytes_total",
                    "Bytes of segments read to compare their checksums.",
                    counters.bytes.get(),
                ),
                (
                    "logpond_scrub_damaged_total",
                    "Segments found to be damaged by that.",
                    counters.damaged.get(),
                ),
                (
                    "logpond_scrub_failures_total",
                    "Segments that could not be read to their end, and other failures of the scrub.",
                    counters.failures.get(),
                ),
            ]);
            let oldest_ms = counters.oldest_ms.load(Ordering::Relaxed);
            let age_ms = match oldest_ms {
                0 => 0,
                since => clock().unix_ms().saturating_sub(since).max(0),
            };
            out.gauges([(
                "logpond_scrub_oldest_seconds",
                "Seconds since the segment was checked, made or first seen that waits for it longest.",
                age_ms / 1000,
            )]);
        }));
    }
}

/// The thread at work.
struct Scrub {
    parts: Parts,
    every: Duration,
    counters: Arc<Counters>,
    is_stopping: Arc<AtomicBool>,
    schedule: Schedule,
    /// Whether the schedule has what the file has not.
    is_changed: bool,
    saved_at: Option<Instant>,
    /// Whether the file could not be written last time.
    is_unsaved: bool,
}

impl Scrub {
    fn new(
        parts: Parts,
        every: Duration,
        counters: Arc<Counters>,
        is_stopping: Arc<AtomicBool>,
    ) -> Scrub {
        Scrub {
            schedule: Schedule::new(every, (parts.clock)()),
            parts,
            every,
            counters,
            is_stopping,
            is_changed: true,
            saved_at: None,
            is_unsaved: false,
        }
    }

    fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }

    /// Reads one segment if one is due; gives how long nothing else is.
    fn round(&mut self) -> Duration {
        let segments = self.parts.live.snapshot();
        let stored = describe(&segments);
        let now = (self.parts.clock)();
        self.is_changed |= self.schedule.follow(&stored, now);
        let oldest = self.schedule.oldest(&stored, now);
        let oldest_ms = oldest.map_or(0, Timestamp::unix_ms);
        self.counters.oldest_ms.store(oldest_ms, Ordering::Relaxed);
        let wait = match self.schedule.next(&stored, now) {
            ScrubStep::Wait(time) => time,
            ScrubStep::Read(id) => {
                let found = local(&segments)
                    .find(|s| s.file().manifest().id == id)
                    .cloned();
                // The others may be removed while this one is read, and their room be free.
                drop(segments);
                if let Some(segment) = found {
                    self.check(&segment, self.schedule.pace(&stored));
                }
                Duration::ZERO
            }
        };
        if self.is_changed && self.saved_at.is_none_or(|at| at.elapsed() >= SAVE_INTERVAL) {
            self.save();
        }
        wait
    }

    /// Reads a segment, and notes what comes of it.
    fn check(&mut self, segment: &Arc<LiveSegment>, pace: u64) {
        let id = segment.file().manifest().id;
        let read = caught(|| self.compare(segment, pace));
        let (outcome, what) = match read {
            Ok(Ok(None)) => return,
            Ok(Ok(Some(damages))) => match said(&damages) {
                None => (Outcome::Sound, String::new()),
                Some(what) => (Outcome::Damaged, what),
            },
            Ok(Err(error)) => (Outcome::Unreadable, error.to_string()),
            Err(panicked) => (Outcome::Defect, panicked.to_string()),
        };
        match outcome {
            Outcome::Sound | Outcome::Damaged => self.counters.segments.add(1),
            Outcome::Unreadable | Outcome::Defect => self.counters.failures.add(1),
        }
        let is_damaged = self.schedule.note(id, outcome, (self.parts.clock)());
        self.is_changed = true;
        // What was merged or given up meanwhile concerns nobody.
        if outcome == Outcome::Sound || !is_live(&self.parts.live, segment) {
            return;
        }
        if !is_damaged {
            warn(&format!(
                "segments/{id}.parquet cannot be checked, and is tried again later: {what}"
            ));
            return;
        }
        // A query may have come first, and named it in its answer.
        if !segment.is_damaged() {
            warn(&format!(
                "segments/{id}.parquet is damaged, as its scrub found: {what}"
            ));
        }
        segment.note_damage();
        self.counters.damaged.add(1);
        // In a cluster it is given up soon, and after a restart nobody would know why.
        self.save();
    }

    /// Compares a segment with its checksums, at a pace in bytes a second; `None` if the stop came in
    /// between, or the segment has gone: what still reads it keeps its room.
    fn compare(&self, segment: &Arc<LiveSegment>, pace: u64) -> io::Result<Option<Vec<Damage>>> {
        let mut checksums = Checksums::new(segment.file());
        loop {
            self.give_way();
            let began = Instant::now();
            if self.is_stopping() || !is_live(&self.parts.live, segment) {
                return Ok(None);
            }
            let Some(bytes) = checksums.step()? else {
                return Ok(Some(checksums.into_damages()));
            };
            self.counters.bytes.add(bytes);
            let time = Duration::from_secs_f64(cast::float(bytes) / cast::float(pace));
            self.pause_until(began + time);
        }
    }

    /// Waits for the store, which others wait for.
    fn give_way(&self) {
        let until = Instant::now() + GIVE_WAY_MAX;
        while self.parts.is_store_at_work.load(Ordering::Relaxed) && Instant::now() < until {
            self.pause_until((Instant::now() + GIVE_WAY_CHECK).min(until));
            if self.is_stopping() {
                return;
            }
        }
    }

    fn pause_until(&self, until: Instant) {
        while let Some(time) = until.checked_duration_since(Instant::now())
            && !time.is_zero()
            && !self.is_stopping()
        {
            thread::park_timeout(time);
        }
    }

    /// Takes up what earlier lives have checked. Nothing is better known than what is damaged.
    fn read_state(&mut self) {
        let bytes = match bytes_of(&*self.parts.disk) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return,
            Err(error) => {
                warn(&format!(
                    "{PATH} cannot be read, and the scrub begins anew: {error}"
                ));
                return;
            }
        };
        match Schedule::decode(&bytes, self.every) {
            Some(schedule) => (self.schedule, self.is_changed) = (schedule, false),
            None => {
                let moved = self.parts.disk.rename(PATH, ASIDE);
                let moved = moved.map_or_else(|error| format!(" ({error})"), |()| String::new());
                warn(&format!(
                    "{PATH} is damaged, and the scrub begins anew; it is put aside as {ASIDE}{moved}"
                ));
            }
        }
    }

    /// Writes what was checked, if anything has changed; a failure is said once while it lasts.
    fn save(&mut self) {
        if !self.is_changed {
            return;
        }
        self.saved_at = Some(Instant::now());
        let disk = &*self.parts.disk;
        let text = self.schedule.encode();
        let saved = disk
            .create_directory(DIRECTORY)
            .and_then(|()| replace(disk, DIRECTORY, PATH, text.as_bytes()));
        self.is_changed = saved.is_err();
        if let Err(error) = &saved {
            self.counters.failures.add(1);
            if !self.is_unsaved {
                warn(&format!("{PATH} cannot be written; trying again: {error}"));
            }
        }
        self.is_unsaved = saved.is_err();
    }
}

fn bytes_of(disk: &dyn Disk) -> io::Result<Option<Vec<u8>>> {
    let file = match disk.open(PATH) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    // What is longer is cut, and so no state.
    let length = file.bytes()?.min(FILE_BYTES_MAX);
    let mut bytes = vec![0; length as usize];
    file.read_at(0, &mut bytes)?;
    Ok(Some(bytes))
}

/// The segments that are to be checked.
fn describe(segments: &Segments) -> Vec<LocalSegment> {
    let each = local(segments).map(|segment| LocalSegment {
        id: segment.file().manifest().id,
        bytes: segment.file().bytes(),
        is_damaged: segment.is_damaged(),
    });
    each.collect()
}

fn is_live(live: &LiveSet, segment: &Arc<LiveSegment>) -> bool {
    live.snapshot().iter().any(|s| Arc::ptr_eq(s, segment))
}

/// What is damaged, in words, if anything is.
fn said(damages: &[Damage]) -> Option<String> {
    let first = damages.first()?;
    Some(match damages.len() {
        1 => first.to_string(),
        more => format!("{first}, and {} more", more - 1),
    })
}

#[cfg(test)]
mod tests;
