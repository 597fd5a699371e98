//! Old files go: for their age, for want of room, or because there is more than is to be kept.
//!
//! Invariants:
//! - Whatever goes is said, with its records, the time range of these, and the reason.
//! - What a limit would remove of more than half of what is there at a start waits for a day, or for
//!   the operator ([`hold`]); what only a doubted clock takes for old waits, too.
//! - A full disk waits for nobody.

mod state;

use std::time::{Duration, Instant};

use logpond_cluster::expiry::Deletion;
use logpond_record::Timestamp;
use logpond_segment::retain::hold::{Hold, Limits, Share, Verdict};
use logpond_segment::retain::{self, Reason, RetentionCandidate, Room};

use super::expiry::{ClockSnapshot, Expiry};
use super::offload::Board;
use super::steps::{RetainedFile, Worker, describe};
use logpond_host::clock::{self, Boot};
use logpond_host::disk::replace;
use logpond_host::telemetry::{say, stamp, warn};
use logpond_render::quantity;
use state::State;

/// How often ages, sizes and free space are looked at.
const INTERVAL: Duration = Duration::from_secs(10);

/// The newest data that stays although the disk has less free than asked for, unless it is all but
/// full: this or a tenth of the disk, whichever is less.
const KEEP_SIZE_BYTES_MAX: u64 = 1 << 30;

/// A disk with less free than this, or a twenty-fifth of it, is all but full.
const RESERVE_BYTES_MAX: u64 = 64 << 20;

/// How often is written what the next process must know, while nothing waits: within a boot it is as
/// good as new, and a machine that ends in between has lost only so much time.
const KEEP_INTERVAL: Duration = Duration::from_secs(600);

/// How often while something waits: so much of the waiting is lost at most.
const KEEP_INTERVAL_WAITING: Duration = Duration::from_secs(60);

/// The state of retention beside the files.
pub(super) struct Retention {
    expiry: Expiry,
    hold: Hold,
    boot: Boot,
    looked_at: Option<Instant>,
    kept_at: Option<Instant>,
    /// The hold and the doubt as they were kept last: a change is kept at once.
    kept: Option<(bool, bool)>,
    /// The warnings that were given: limits wait, a clock is doubted, the state cannot be written.
    said: WarningFlags,
}

/// The conditions that were logged.
#[derive(Clone, Copy, Debug, Default)]
struct WarningFlags {
    hold: bool,
    doubt: bool,
    failure: bool,
}

/// Files that go together, in words.
#[derive(Clone, Copy, Debug)]
struct Sum {
    files: u64,
    records: u64,
    bytes: u64,
    received_min: Timestamp,
    received_max: Timestamp,
}

impl Sum {
    /// Of some files, if there are any.
    fn of<'h>(files: impl Iterator<Item = &'h RetentionCandidate<RetainedFile>>) -> Option<Sum> {
        files.fold(None, |sum, file| {
            let (records, bytes) = (file.key.records(), file.bytes);
            let (first, last) = (file.received_min, file.received_max);
            Some(match sum {
                None => Sum {
                    files: 1,
                    records,
                    bytes,
                    received_min: first,
                    received_max: last,
                },
                Some(sum) => Sum {
                    files: sum.files + 1,
                    records: sum.records + records,
                    bytes: sum.bytes + bytes,
                    received_min: sum.received_min.min(first),
                    received_max: sum.received_max.max(last),
                },
            })
        })
    }
}

impl std::fmt::Display for Sum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} in {} ({}), received from {} to {}",
            quantity::counted(self.records, "record"),
            quantity::counted(self.files, "file"),
            quantity::bytes(self.bytes),
            stamp(self.received_min),
            stamp(self.received_max),
        )
    }
}

impl Retention {
    /// A process that begins with these files.
    pub(super) fn new(worker: &Worker) -> Retention {
        let boot = Boot::current();
        let earlier = read_state(worker);
        let policy = &worker.policy;
        let now = (worker.parts.clock)();
        let newest = worker.held().iter().map(|file| file.received_max).max();
        let deletion = match &earlier {
            Some(state) => {
                // Within a boot it is known how much time has passed.
                let is_same = !boot.id.is_empty() && boot.id == state.boot;
                let since_ms = boot.now_ms().saturating_sub(state.uptime_ms);
                let passed_ms = if is_same { since_ms } else { 0 };
                let passed_ns = i64::try_from(passed_ms).unwrap_or(i64::MAX);
                let passed_ns = passed_ns.saturating_mul(1_000_000);
                let reached = state.reached.saturating_add(passed_ns);
                Deletion::resume(reached, state.doubt, boot.now_ms())
            }
            None => {
                // Without any file nothing can be removed too early; a bucket that could not be read
                // may have more.
                let is_unread = |board: &Board| !board.missing().is_empty();
                let nothing = if worker.board.as_ref().is_some_and(is_unread) {
                    Timestamp(0)
                } else {
                    now
                };
                let newest = newest.unwrap_or(nothing).min(now);
                Deletion::resume(newest, None, boot.now_ms())
            }
        };
        let limits = Limits {
            age_ns: policy.retain.age_ns,
            size_bytes: policy.retain.size_bytes,
        };
        let held = earlier.and_then(|state| state.held);
        let counters = worker.counters.clone();
        Retention {
            expiry: Expiry::new(deletion, policy.at_start.trusts_clock, counters),
            hold: Hold::new(limits, held, policy.at_start.confirms_retention),
            boot,
            looked_at: None,
            kept_at: None,
            kept: None,
            said: WarningFlags::default(),
        }
    }
}

/// The state that an earlier process has left, if it can be read.
fn read_state(worker: &Worker) -> Option<State> {
    let file = worker.parts.disk.open(state::PATH).ok()?;
    let length = file.bytes().ok().filter(|bytes| *bytes <= state::BYTES_MAX);
    let mut bytes = vec![0; usize::try_from(length?).ok()?];
    file.read_at(0, &mut bytes).ok()?;
    State::decode(&bytes)
}

impl Worker {
    pub(super) fn retain_if_due(&mut self) {
        let looked_at = self.retention.as_ref().and_then(|known| known.looked_at);
        if looked_at.is_some_and(|at| at.elapsed() < INTERVAL) {
            return;
        }
        if let Err(what) = self.retain() {
            self.note_failure(&what);
        }
    }

    /// The state, made when it is first needed: a bucket is followed by then.
    fn retention(&mut self) -> &mut Retention {
        let known = match self.retention.take() {
            Some(known) => known,
            None => Retention::new(self),
        };
        self.retention.insert(known)
    }

    fn retain(&mut self) -> Result<(), String> {
        let last = self.retention().looked_at.replace(Instant::now());
        let passed = last.map_or(Duration::ZERO, |at| at.elapsed());
        let space = self
            .parts
            .disk
            .space()
            .map_err(|error| describe("the free space is not known", &error))?;
        let mut settings = self.policy.retain;
        settings.keep_free_bytes = self.policy.keep_free.of(space.total_bytes);
        settings.keep_size_bytes = KEEP_SIZE_BYTES_MAX.min(space.total_bytes / 10);
        settings.reserve_bytes = RESERVE_BYTES_MAX.min(space.total_bytes / 25);
        self.purge(space.free_bytes < settings.keep_free_bytes)?;
        let room = Room {
            space,
            trash_bytes: self.trash_bytes(),
        };
        let gives_room = self.leave_to_bucket(&settings, &room);
        if self.board.is_some() {
            // What is not in the bucket yet is kept, and what is costs no room here.
            settings.keep_free_bytes = 0;
        }
        let held = self.held();
        let keyed = by_index(&held);
        let by = self.expires_by();
        let plan = retain::plan(&keyed, by, &settings, &room);
        self.warn_of_doubt(&held, plan.len(), &settings, &room);
        let plan = match self.judge(&held, &plan, passed) {
            None => plan,
            Some(limits) => {
                let settings = retain::Settings {
                    age_ns: limits.age_ns,
                    size_bytes: limits.size_bytes,
                    ..settings
                };
                retain::plan(&keyed, by, &settings, &room)
            }
        };
        let needs_room = plan.iter().any(|(_, reason)| *reason == Reason::Free);
        self.announce(&held, &plan, space.free_bytes, &settings);
        let files = plan.into_iter().map(|(at, _)| held[at].key.clone());
        self.remove(files.collect())?;
        self.keep_state();
        self.purge(needs_room || gives_room)
    }

    /// The time by which files expire, if clocks can be believed.
    pub(super) fn expires_by(&mut self) -> Option<Timestamp> {
        let peers = match &self.parts.cluster {
            Some(cluster) => cluster.peer_clocks(),
            None => Some(Vec::new()),
        };
        let now = (self.parts.clock)();
        let from_bucket = self.board.as_ref().and_then(|board| board.clock());
        let known = self.retention();
        let now_ms = known.boot.now_ms();
        let is_vouched_for = from_bucket.is_some_and(|clock| clock.agrees(now, now_ms))
            || clock::is_synchronised(now);
        known.expiry.now(ClockSnapshot {
            now,
            now_ms,
            peers: peers.as_deref(),
            is_vouched_for,
        })
    }

    /// True if the time that ages count up to is far behind the clock.
    pub(super) fn is_doubted(&mut self) -> bool {
        self.retention().expiry.is_doubted()
    }

    /// Says once what only a doubted clock takes for old.
    fn warn_of_doubt(
        &mut self,
        held: &[RetentionCandidate<RetainedFile>],
        planned: usize,
        settings: &retain::Settings,
        room: &Room,
    ) {
        let now = (self.parts.clock)();
        let known = self.retention();
        if !known.expiry.is_doubted() {
            known.said.doubt = false;
            return;
        }
        let (reached, doubt) = known.expiry.reached();
        let (Some(doubt), false) = (doubt, known.said.doubt) else {
            return;
        };
        let would = retain::plan(&by_index(held), Some(now), settings, room);
        if would.len() <= planned {
            return;
        }
        let Some(sum) = Sum::of(would[planned..].iter().map(|(at, _)| &held[*at])) else {
            return;
        };
        known.said.doubt = true;
        let ahead = Duration::from_nanos(now.0.saturating_sub(reached.0).unsigned_abs());
        warn(&format!(
            "the clock says {}, {} after the last time that is known to be right ({}), and no time server, \
             other node or bucket agrees with it: {sum} would be removed for their age, and stay. \
             If the clock is right, start the server once with --trust-clock; otherwise it is believed when it \
             has stayed like that for {}",
            stamp(now),
            quantity::span(ahead),
            stamp(reached),
            quantity::span(Duration::from_millis(doubt.left_ms())),
        ));
    }

    /// Judges a plan: `None` if it may be carried out, else the limits for another plan.
    fn judge(
        &mut self,
        held: &[RetentionCandidate<RetainedFile>],
        plan: &[(usize, Reason)],
        passed: Duration,
    ) -> Option<Limits> {
        let has_age = self.policy.retain.age_ns.is_some();
        let known = self.retention();
        // The wait for a clock was the one for what it removes.
        let is_told = known.expiry.has_yielded();
        let is_judged = |reason: Reason| match reason {
            Reason::Age => !is_told,
            Reason::Size | Reason::Files => true,
            Reason::Free => false,
        };
        let judged = plan.iter().filter(|(_, reason)| is_judged(*reason));
        let going = Sum::of(judged.map(|(at, _)| &held[*at]));
        let total = Sum::of(held.iter());
        let share = Share {
            records: going.map_or(0, |sum| sum.records),
            records_total: total.map_or(0, |sum| sum.records),
            bytes: going.map_or(0, |sum| sum.bytes),
            bytes_total: total.map_or(0, |sum| sum.bytes),
        };
        let passed_ms = u64::try_from(passed.as_millis()).unwrap_or(u64::MAX);
        let is_certain = !(has_age && known.expiry.is_doubted());
        let verdict = known.hold.judge(&share, passed_ms, is_certain);
        let (counters, age_ns) = (self.counters.clone(), self.policy.retain.age_ns);
        let Verdict::Wait(left_ms) = verdict else {
            counters.retention_waits_ms.set(0);
            counters.retention_held_records.set(0);
            return None;
        };
        let as_gauge = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        counters.retention_waits_ms.set(as_gauge(left_ms));
        counters.retention_held_records.set(as_gauge(share.records));
        if let (Some(sum), Some(total)) = (going, total)
            && !self.retention().said.hold
        {
            self.retention().said.hold = true;
            warn(&format!(
                "retention: {} would remove {sum}, more than half of the {} that are there; nothing is removed \
                 for {}. Correct the setting, or start the server once with --confirm-retention to remove them \
                 now",
                self.limits_in_words(),
                quantity::counted(total.records, "record"),
                quantity::span(Duration::from_millis(left_ms)),
            ));
        }
        Some(Limits {
            age_ns: age_ns.filter(|_| is_told),
            size_bytes: None,
        })
    }

    /// The limits as they are set.
    fn limits_in_words(&self) -> String {
        let retain = &self.policy.retain;
        let age = retain.age_ns.map(|ns| {
            let age = Duration::from_nanos(ns.unsigned_abs());
            format!("--retain-age {}", quantity::span(age))
        });
        let size = retain
            .size_bytes
            .map(|bytes| format!("--retain-size {}", quantity::bytes(bytes)));
        let all: Vec<String> = age.into_iter().chain(size).collect();
        all.join(" and ")
    }

    /// Says what goes, and why.
    fn announce(
        &self,
        held: &[RetentionCandidate<RetainedFile>],
        plan: &[(usize, Reason)],
        free_bytes: u64,
        settings: &retain::Settings,
    ) {
        for reason in [Reason::Age, Reason::Size, Reason::Files, Reason::Free] {
            let of_it = plan.iter().filter(|(_, why)| *why == reason);
            let Some(sum) = Sum::of(of_it.map(|(at, _)| &held[*at])) else {
                continue;
            };
            match reason {
                Reason::Age => {
                    let age = Duration::from_nanos(settings.age_ns.unwrap_or(0).unsigned_abs());
                    let age = quantity::span(age);
                    say(&format!(
                        "retention removes {sum}: they are older than --retain-age {age}"
                    ));
                }
                Reason::Size => {
                    let size = quantity::bytes(settings.size_bytes.unwrap_or(0));
                    say(&format!(
                        "retention removes {sum}: all together is more than --retain-size {size}"
                    ));
                }
                Reason::Files => say(&format!("retention removes {sum}: there are more files")),
                Reason::Free => {
                    let (free, wanted) = (free_bytes >> 20, settings.keep_free_bytes >> 20);
                    warn(&format!(
                        "the disk has {free} MiB free and --keep-free asks for {wanted} MiB: \
                         retention removes {sum}, the oldest files"
                    ));
                }
            }
        }
    }

    /// Writes what the next process must know, if that is due.
    fn keep_state(&mut self) {
        let known = self.retention();
        let (reached, doubt) = known.expiry.reached();
        let held = known.hold.held();
        let waits = (known.expiry.is_doubted(), held.is_some());
        let interval = match waits {
            (false, false) => KEEP_INTERVAL,
            _ => KEEP_INTERVAL_WAITING,
        };
        let is_due = known.kept_at.is_none_or(|at| at.elapsed() >= interval);
        if !is_due && known.kept == Some(waits) {
            return;
        }
        let state = State {
            boot: known.boot.id.clone(),
            uptime_ms: known.boot.now_ms(),
            reached,
            doubt,
            held,
        };
        (known.kept_at, known.kept) = (Some(Instant::now()), Some(waits));
        let disk = self.parts.disk.clone();
        let written = disk.create_directory(state::DIRECTORY).and_then(|()| {
            let text = state.encode();
            replace(&*disk, state::DIRECTORY, state::PATH, text.as_bytes())
        });
        let known = self.retention();
        match written {
            Ok(()) => known.said.failure = false,
            Err(_) if known.said.failure => {}
            Err(error) => {
                known.said.failure = true;
                // A full disk ends waits later, never earlier.
                let what = describe("what retention waits for cannot be written", &error);
                warn(&format!("{what}; a restart may begin the wait anew"));
            }
        }
    }
}

/// The same files, called by their places.
fn by_index(held: &[RetentionCandidate<RetainedFile>]) -> Vec<RetentionCandidate<usize>> {
    let indexed = held.iter().enumerate();
    indexed
        .map(|(at, file)| RetentionCandidate {
            key: at,
            received_min: file.received_min,
            received_max: file.received_max,
            bytes: file.bytes,
        })
        .collect()
}
