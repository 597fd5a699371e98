//! One budget of memory for all queries and all caches of the process.
//!
//! Queries have leases, and ask before they take more; caches keep what there is room for, and give way first.
//! The allocator's use is measured, so memory that nobody asks for (records that come in, segments that are
//! made, decoded columns) counts, too.
//!
//! Invariants:
//! - Nothing is granted beyond the budget, neither by what was granted before nor by what was measured.
//! - A request for more than there was in the last [`FLOOR_TIME`], or for more than half of the budget, is refused at
//!   once. Any other waits for [`WAIT_MAX`] at most, and in turn; queries that run go before those that begin.
//! - Of queries that all wait for each other one is refused: the one that holds most.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use logpond_record::cast;
use logpond_search::Room;

use super::allocator::{self, Usage};
use super::lease::Lease;
use crate::telemetry::{Exposition, Metrics};

/// The least budget: the program itself, a query and some room for what comes in.
pub const BUDGET_BYTES_MIN: u64 = 32 << 20;

/// How long a query waits for memory at most: as long as for a thread.
pub(super) const WAIT_MAX: Duration = Duration::from_secs(10);

/// For how long the least use of all else is remembered: so long what is more may be given back soon, such as the rows of
/// a step of the store.
const FLOOR_TIME: Duration = WAIT_MAX;

/// How long what was measured is good enough.
const MEASURE_EVERY: Duration = Duration::from_millis(10);

/// How often free pages are given back at once while the process has more than its budget.
const PURGE_EVERY: Duration = Duration::from_millis(25);

/// How often a query is ended while more is in use than there may be: the one before has to be gone.
const END_EVERY: Duration = Duration::from_millis(500);

/// By what part of the budget more may be in use than there should be until a query is ended.
const EXCESS_SHARE: usize = 16;

/// The part of the budget that is left when memory is short: queries hold back then for the oldest, which gives all
/// back at its end.
const SHORT_SHARE: usize = 8;

/// The part of the budget that pages of files count for at most: with a small budget they would be most of it,
/// and the system takes them back when memory is short.
const FILES_SHARE: usize = 4;

/// The part of the budget that caches leave to queries.
const QUERY_SHARE: usize = 4;

/// The part of the budget that one query may have, so that there is something for others.
const ONE_QUERY_SHARE: usize = 2;

/// The part of the budget that caches may take, and the most of it: what nobody should be surprised by.
const CACHE_SHARE: usize = 12;
const CACHE_BYTES_MAX: usize = 2 << 30;

/// The columns and panels of some dashboards over four million rows. They are worth as much, but for a small
/// budget, of which they take a quarter.
const CACHE_BYTES_GOOD: usize = 128 << 20;

/// The part of the budget that a query takes to begin: its stack, decoded columns of a row group or two, and
/// what is on its way to the reader.
const QUERY_BYTES_SHARE: usize = 5;
const QUERY_BYTES_MAX: usize = 12 << 20;

/// Something that can do with less.
pub trait GivesWay: Send + Sync {
    /// The memory that it takes.
    fn bytes(&self) -> usize;

    /// Frees so many bytes if it can; gives how many.
    fn give_way(&self, bytes: usize) -> usize;
}

/// Measures what is in use.
type Meter = Box<dyn Fn() -> Usage + Send + Sync>;

/// The memory of the process. There is one in a process; tests have their own.
pub struct Budget {
    bytes: usize,
    meter: Meter,
    begun: Instant,
    /// Milliseconds since then at which was measured last.
    measured_ms: AtomicU64,
    /// How much caches may grow until it is measured again.
    room: AtomicUsize,
    /// True while less than a part of the budget is free, as it was measured last.
    is_short: AtomicBool,
    caches: Mutex<Vec<Arc<dyn GivesWay>>>,
    state: Mutex<State>,
    freed: Condvar,
    waits: AtomicU64,
    refused: AtomicU64,
}

#[derive(Default)]
struct State {
    leases: BTreeMap<u64, Arc<Account>>,
    /// All leases and turns that there ever were.
    numbers: u64,
    /// The bytes that were granted to all leases.
    held: usize,
    waiting: BTreeSet<Turn>,
    /// The bytes of the process without queries and caches, as they were seen last.
    own: usize,
    floor: Floor,
    cached: usize,
    measured: Usage,
    measured_at: Option<Instant>,
    purged_at: Option<Instant>,
    ended_at: Option<Instant>,
}

/// The least bytes of the process without queries and caches, of the last [`FLOOR_TIME`] to twice that.
#[derive(Debug, Default)]
struct Floor {
    begun: Option<Instant>,
    /// The least since then, and of the time before.
    least: usize,
    least_before: usize,
}

impl Floor {
    fn note(&mut self, own: usize) {
        match self.begun {
            Some(begun) if begun.elapsed() < FLOOR_TIME => self.least = self.least.min(own),
            begun => {
                self.least_before = if begun.is_some() { self.least } else { own };
                self.least = own;
                self.begun = Some(Instant::now());
            }
        }
    }

    fn bytes(&self) -> usize {
        self.least.min(self.least_before)
    }
}

/// The bytes that one lease holds.
#[derive(Debug, Default)]
pub(super) struct Account {
    pub(super) number: u64,
    pub(super) held: AtomicUsize,
    /// True if it waits for something to come rather than to work.
    pub(super) is_idle: AtomicBool,
    /// How many of its threads wait for memory.
    waiting: AtomicUsize,
    pub(super) refusal: OnceLock<Refusal>,
}

/// A place in the queue: those that run before those that begin, then in the order in which they came.
pub(super) type Turn = (bool, u64);

/// Why there is no memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The bytes that were asked for.
    pub asked: usize,
    /// The bytes that the query has.
    pub held: usize,
    /// The bytes that are in use.
    pub in_use: usize,
    /// The bytes of the budget.
    pub budget: usize,
    /// The bytes that are kept free for queries that run, if this one was to begin.
    pub kept_free: usize,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = |bytes: usize| format!("{:.1} MiB", cast::float(bytes) / f64::from(1 << 20));
        let (held, in_use, budget) = (mib(self.held), mib(self.in_use), mib(self.budget));
        let half = self.budget / ONE_QUERY_SHARE;
        match self.asked {
            0 => write!(
                f,
                "{in_use} of {budget} of memory are in use, and of all queries this one has most, {held}"
            ),
            asked if self.held + asked > half => write!(
                f,
                "the query has {held} of memory and needs {} more; one query may have {}, half of \
                 {budget}",
                mib(asked),
                mib(half)
            ),
            asked => write!(
                f,
                "the query has {held} of memory and needs {} more, but {in_use} of {budget} are in use",
                mib(asked)
            ),
        }?;
        if self.kept_free > 0 && self.in_use + self.asked <= self.budget {
            let kept_free = mib(self.kept_free);
            write!(f, ", and {kept_free} are kept free for queries that run")?;
        }
        f.write_str(
            ": ask for a shorter time, fewer rows or fewer groups, ask again later, or give the server \
             more with --memory",
        )
    }
}

/// The outcome of a request.
pub(super) enum Answer {
    Granted,
    /// Its account says why.
    Refused,
    /// There may be room later.
    Later,
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budget")
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

impl Budget {
    /// So many bytes for this process.
    pub fn new(bytes: u64) -> Arc<Budget> {
        let bytes = usize::try_from(bytes.max(BUDGET_BYTES_MIN)).unwrap_or(usize::MAX);
        Budget::measured_by(bytes, Box::new(Usage::now))
    }

    /// So many bytes, of which nothing is in use but what is asked for. For tests, whose process has more in use.
    pub fn unmeasured(bytes: usize) -> Arc<Budget> {
        Budget::measured_by(bytes, Box::new(Usage::default))
    }

    pub(super) fn measured_by(bytes: usize, meter: Meter) -> Arc<Budget> {
        let budget = Budget {
            bytes,
            meter,
            begun: Instant::now(),
            measured_ms: AtomicU64::new(0),
            room: AtomicUsize::new(bytes / QUERY_SHARE),
            is_short: AtomicBool::new(false),
            caches: Mutex::default(),
            state: Mutex::default(),
            freed: Condvar::new(),
            waits: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        };
        budget.measure(&mut budget.lock());
        Arc::new(budget)
    }

    /// How many bytes there are.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The memory that caches of columns and of tables may take.
    pub fn cache_bytes(&self) -> usize {
        let least = CACHE_BYTES_GOOD.min(self.bytes / QUERY_SHARE);
        (self.bytes / CACHE_SHARE).clamp(least, CACHE_BYTES_MAX)
    }

    /// The bytes that a query takes to begin.
    pub(crate) fn query_bytes(&self) -> usize {
        self.share(QUERY_BYTES_SHARE, QUERY_BYTES_MAX)
    }

    /// The bytes that one query may have.
    pub(crate) fn one_query_bytes(&self) -> usize {
        self.bytes / ONE_QUERY_SHARE
    }

    /// A part of the budget, and no more than so many bytes.
    pub fn share(&self, share: usize, bytes_max: usize) -> usize {
        (self.bytes / share).min(bytes_max)
    }

    /// Adds something that gives way to queries.
    pub fn add_cache(&self, cache: Arc<dyn GivesWay>) {
        self.caches().push(cache);
        self.measure(&mut self.lock());
    }

    /// Shows what there is in the metrics.
    pub fn expose(self: &Arc<Budget>, metrics: &Metrics) {
        let budget = Arc::clone(self);
        metrics.register(Box::new(move |out| budget.show(out)));
    }

    fn show(&self, out: &mut Exposition) {
        let (in_use, resident, held, cached) = {
            let mut state = self.lock();
            self.measure(&mut state);
            let State {
                measured,
                held,
                cached,
                ..
            } = *state;
            (measured.in_use, measured.resident, held, cached)
        };
        let gauges = [
            (
                "budget",
                "What queries and caches may take, with all else.",
                self.bytes,
            ),
            ("in_use", "What the process has taken.", in_use),
            (
                "resident",
                "What the process has from the system.",
                resident,
            ),
            ("granted", "What was granted to queries that run.", held),
            ("cached", "What caches take.", cached),
        ];
        for (what, help, bytes) in gauges {
            let name = format!("logpond_memory_{what}_bytes");
            out.family(&name, "gauge", help);
            out.sample(&name, &[], bytes);
        }
        let counters = [
            (
                "waits",
                "Requests of queries for memory that waited.",
                &self.waits,
            ),
            (
                "refused",
                "Queries that were refused for want of memory.",
                &self.refused,
            ),
        ];
        for (what, help, count) in counters {
            let name = format!("logpond_memory_{what}_total");
            out.family(&name, "counter", help);
            out.sample(&name, &[], count.load(Ordering::Relaxed));
        }
    }

    /// A lease that holds nothing.
    pub(super) fn open(self: &Arc<Budget>) -> Lease {
        let mut state = self.lock();
        state.numbers += 1;
        let account = Arc::new(Account {
            number: state.numbers,
            ..Account::default()
        });
        state.leases.insert(account.number, Arc::clone(&account));
        Lease::new(Arc::clone(self), account)
    }

    /// Takes all from a lease that has ended.
    pub(super) fn close(&self, account: &Account) {
        let mut state = self.lock();
        state.held -= account.held.swap(0, Ordering::Relaxed);
        state.leases.remove(&account.number);
        self.freed.notify_all();
    }

    /// Takes a place in the queue.
    pub(super) fn begin_to_wait(&self, account: &Account) -> Turn {
        let is_new = account.held.load(Ordering::Relaxed) == 0;
        let mut state = self.lock();
        state.numbers += 1;
        let turn = (is_new, state.numbers);
        state.waiting.insert(turn);
        account.waiting.fetch_add(1, Ordering::Relaxed);
        self.waits.fetch_add(1, Ordering::Relaxed);
        turn
    }

    /// Gives the place up.
    pub(super) fn end_to_wait(&self, account: &Account, turn: Turn) {
        self.lock().waiting.remove(&turn);
        account.waiting.fetch_sub(1, Ordering::Relaxed);
        self.freed.notify_all();
    }

    /// Waits until something may have changed.
    pub(super) fn wait(&self, time_max: Duration) {
        let state = self.lock();
        // It is of no account if it was notified: who waits asks again.
        drop(self.freed.wait_timeout(state, time_max));
    }

    /// Asks for so many bytes more; a query that begins holds nothing.
    pub(super) fn ask(&self, account: &Account, bytes: usize, turn: Option<Turn>) -> Answer {
        if account.refusal.get().is_some() {
            return Answer::Refused;
        }
        let held = account.held.load(Ordering::Relaxed);
        let mut state = self.lock();
        self.measure_if_due(&mut state);
        // A step of the store gives back what it takes.
        let never_fits = |state: &State| state.floor.bytes() + held + bytes > self.bytes;
        if never_fits(&state) {
            // Some may have been given back since.
            self.measure(&mut state);
        }
        if held + bytes > self.one_query_bytes() || never_fits(&state) {
            self.refuse(&state, account, bytes);
            return Answer::Refused;
        }
        let turn = turn.ok_or(held == 0);
        // Those that run will need more than they have begun with.
        let is_first = held > 0 || !state.is_any_at_work();
        let limit = if is_first { self.bytes } else { self.short() };
        let mut is_turn = state.is_turn(turn);
        if is_turn && state.used().saturating_add(bytes) > limit {
            let short = (state.used() + bytes).saturating_sub(limit);
            drop(state);
            let freed = self.have_caches_give_way(short);
            state = self.lock();
            if freed > 0 {
                self.measure(&mut state);
            }
            is_turn = state.is_turn(turn);
        }
        if is_turn && state.used().saturating_add(bytes) <= limit {
            state.held += bytes;
            account.held.fetch_add(bytes, Ordering::Relaxed);
            return Answer::Granted;
        }
        if !is_turn {
            return Answer::Later;
        }
        // One may have ended a moment ago.
        self.measure(&mut state);
        if state.used() + bytes <= limit {
            return Answer::Later;
        }
        let is_momentary = state.floor.bytes() + state.cached + state.held + bytes <= limit;
        if let Some(most) = state.stuck(account).filter(|_| !is_momentary) {
            if most.number == account.number {
                self.refuse(&state, &most, bytes);
                return Answer::Refused;
            }
            self.refuse(&state, &most, 0);
            self.freed.notify_all();
        }
        Answer::Later
    }

    /// Counts bytes that are there already, or will be in any case.
    pub(super) fn add(&self, account: &Account, bytes: usize) {
        self.lock().held += bytes;
        account.held.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Takes bytes back that are free.
    pub(super) fn give_back(&self, account: &Account, bytes: usize) {
        let mut state = self.lock();
        // The bytes of a lease that has ended were taken back with it.
        let less = |held: usize| Some(held - held.min(bytes));
        let held = account
            .held
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        state.held -= held.unwrap_or(0).min(bytes);
        self.freed.notify_all();
    }

    /// Refuses a lease for good, and says why.
    pub(super) fn give_up(&self, account: &Account, bytes: usize) {
        let state = self.lock();
        self.refuse(&state, account, bytes);
    }

    fn refuse(&self, state: &State, account: &Account, asked: usize) {
        let begins = asked > 0 && account.held.load(Ordering::Relaxed) == 0;
        let kept_free = if begins { self.bytes - self.short() } else { 0 };
        let refusal = Refusal {
            asked,
            held: account.held.load(Ordering::Relaxed),
            in_use: state.used(),
            budget: self.bytes,
            kept_free,
        };
        if account.refusal.set(refusal).is_ok() {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// To be called every few milliseconds of work: sees to it that no more is in use than there may be. Caches
    /// give way, free pages are given back, and if that is not enough the largest query ends.
    pub(super) fn watch(&self) {
        let now_ms = self.now_ms();
        let due_ms = cast::low_u64(MEASURE_EVERY.as_millis());
        if now_ms.saturating_sub(self.measured_ms.load(Ordering::Relaxed)) < due_ms {
            return;
        }
        let mut state = self.lock();
        self.measure_if_due(&mut state);
        let excess = state.measured.in_use.saturating_sub(self.bytes);
        if excess == 0 {
            return;
        }
        drop(state);
        let freed = self.have_caches_give_way(excess);
        let mut state = self.lock();
        if freed > 0 {
            self.measure(&mut state);
        }
        let is_due = state.ended_at.is_none_or(|at| at.elapsed() >= END_EVERY);
        let is_due = is_due && !state.is_one_ending();
        if state.measured.in_use > self.bytes + self.bytes / EXCESS_SHARE && is_due {
            let working = state.leases.values();
            let working = working.filter(|account| !account.is_idle.load(Ordering::Relaxed));
            let most = working.max_by_key(|account| account.held.load(Ordering::Relaxed));
            if let Some(most) = most.cloned() {
                self.refuse(&state, &most, 0);
                state.ended_at = Some(Instant::now());
            }
        }
    }

    /// The bytes beyond which memory is short.
    fn short(&self) -> usize {
        self.bytes - self.bytes / SHORT_SHARE
    }

    /// True if memory is short and a query should hold back, since an older one is at work.
    pub(super) fn should_hold_back(&self, account: &Account) -> bool {
        if !self.is_short.load(Ordering::Relaxed) {
            return false;
        }
        let mut state = self.lock();
        self.measure_if_due(&mut state);
        // Leases are in the order in which they began.
        let oldest = state.leases.values().find(|lease| lease.is_at_work());
        self.is_short.load(Ordering::Relaxed)
            && oldest.is_some_and(|oldest| oldest.number < account.number)
    }

    fn have_caches_give_way(&self, bytes: usize) -> usize {
        let caches = self.caches();
        let mut freed = 0;
        for cache in caches.iter() {
            if freed < bytes {
                freed += cache.give_way(bytes - freed);
            }
        }
        freed
    }

    fn measure_if_due(&self, state: &mut State) {
        let is_due = state
            .measured_at
            .is_none_or(|at| at.elapsed() >= MEASURE_EVERY);
        if is_due {
            self.measure(state);
        }
    }

    fn measure(&self, state: &mut State) {
        state.measured = (self.meter)().with_files(self.bytes / FILES_SHARE);
        let is_over = state.measured.resident > self.bytes;
        let is_due = state.purged_at.is_none_or(|at| at.elapsed() >= PURGE_EVERY);
        if is_over && is_due {
            allocator::purge();
            state.purged_at = Some(Instant::now());
        }
        let is_short = state.measured.in_use > self.short();
        self.is_short.store(is_short, Ordering::Relaxed);
        state.measured_at = Some(Instant::now());
        self.measured_ms.store(self.now_ms(), Ordering::Relaxed);
        state.cached = self.caches().iter().map(|cache| cache.bytes()).sum();
        // With what queries have taken of their memory, which is not known, so this is the most.
        let own_max = state.measured.in_use.saturating_sub(state.cached);
        state.own = if state.held == 0 {
            own_max
        } else {
            state.own.min(own_max)
        };
        let own = state.own;
        state.floor.note(own);
        let room = self.bytes - self.bytes / QUERY_SHARE;
        let room = room.saturating_sub(state.used());
        self.room.store(room, Ordering::Relaxed);
    }

    #[cfg(test)]
    pub(super) fn measure_now(&self) {
        self.measure(&mut self.lock());
    }

    /// How often somebody waited.
    #[cfg(test)]
    pub(super) fn waits(&self) -> u64 {
        self.waits.load(Ordering::Relaxed)
    }

    fn now_ms(&self) -> u64 {
        cast::low_u64(self.begun.elapsed().as_millis())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn caches(&self) -> MutexGuard<'_, Vec<Arc<dyn GivesWay>>> {
        self.caches.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Account {
    /// True if it is of a query that has begun, does not only wait for something to come, and is not to end.
    fn is_at_work(&self) -> bool {
        self.held.load(Ordering::Relaxed) > 0
            && !self.is_idle.load(Ordering::Relaxed)
            && self.refusal.get().is_none()
    }
}

impl State {
    /// The bytes in use: those that were granted, taken or not, beside all else; or those that were
    /// measured, if that is more.
    fn used(&self) -> usize {
        let granted = self
            .own
            .saturating_add(self.cached)
            .saturating_add(self.held);
        granted.max(self.measured.in_use)
    }

    /// True if a query is at work.
    fn is_any_at_work(&self) -> bool {
        self.leases.values().any(|lease| lease.is_at_work())
    }

    /// True if nobody is before this one, who is in the queue, or is not but says whether it begins.
    fn is_turn(&self, turn: Result<Turn, bool>) -> bool {
        match (self.waiting.first(), turn) {
            (None, _) => true,
            (Some(first), Ok(turn)) => *first == turn,
            // Those that run need not line up behind those that begin.
            (Some((is_first_new, _)), Err(is_new)) => *is_first_new && !is_new,
        }
    }

    /// True if a query was refused and has not given back yet what it holds.
    fn is_one_ending(&self) -> bool {
        let ending = |account: &Arc<Account>| {
            account.refusal.get().is_some() && account.held.load(Ordering::Relaxed) > 0
        };
        self.leases.values().any(ending)
    }

    /// If no query can go on, but for this one, the one that holds most.
    fn stuck(&self, asking: &Account) -> Option<Arc<Account>> {
        if self.is_one_ending() {
            return None;
        }
        let leases = self.leases.values();
        let mut holding: Vec<&Arc<Account>> = leases.filter(|lease| lease.is_at_work()).collect();
        let can_go_on = |account: &&Arc<Account>| {
            account.number != asking.number && account.waiting.load(Ordering::Relaxed) == 0
        };
        // One that begins has nothing that others wait for.
        if asking.held.load(Ordering::Relaxed) == 0 || holding.iter().any(can_go_on) {
            return None;
        }
        holding.sort_by_key(|account| account.held.load(Ordering::Relaxed));
        holding.last().map(|account| Arc::clone(account))
    }
}

/// The room that caches have.
#[derive(Debug)]
pub struct CacheRoom(Weak<Budget>);

impl CacheRoom {
    /// The room for caches within this budget.
    pub fn of(budget: &Arc<Budget>) -> Arc<CacheRoom> {
        Arc::new(CacheRoom(Arc::downgrade(budget)))
    }
}

impl Room for CacheRoom {
    fn take(&self, bytes: usize) -> bool {
        let left = |room: usize| room.checked_sub(bytes);
        self.0.upgrade().is_some_and(|budget| {
            let room = &budget.room;
            room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left)
                .is_ok()
        })
    }
}
