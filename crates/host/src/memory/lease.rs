//! The memory of one query.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use logpond_record::cast;

use super::budget::{Account, Answer, Budget, Refusal, Turn, WAIT_MAX};

/// Memory is asked for in such pieces, so that small steps cost nothing.
const PIECE_BYTES: usize = 256 << 10;

/// The bytes that a follower holds between two things that come: its chunk and its stack.
const IDLE_BYTES: usize = 64 << 10;

/// How long a query holds back for an older one each time that it looks at the memory, and in all.
const HOLD_BACK_EACH: Duration = Duration::from_secs(1);
const HOLD_BACK_MAX: Duration = Duration::from_secs(30);

/// How often one who waits looks whether anybody waits for its answer.
const CHECK_EVERY: Duration = Duration::from_millis(50);

/// How long one waits who cannot see whether anybody waits for its answer.
const SOON: Duration = Duration::from_secs(1);

/// A query must end for lack of memory; its lease has the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseStopped;

/// The memory of a query. All is given back when it is dropped.
#[derive(Debug)]
pub struct Lease {
    budget: Arc<Budget>,
    account: Arc<Account>,
    /// Bytes that it holds for what the query will ask for.
    reserve: AtomicUsize,
    /// For how many milliseconds it has held back for older queries.
    held_back_ms: AtomicU64,
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.budget.close(&self.account);
    }
}

/// A place in the queue, which is given up with it.
struct QueuePlace<'l> {
    lease: &'l Lease,
    turn: Turn,
}

impl Drop for QueuePlace<'_> {
    fn drop(&mut self) {
        let QueuePlace { lease, turn } = self;
        lease.budget.end_to_wait(&lease.account, *turn);
    }
}

impl Lease {
    pub(super) fn new(budget: Arc<Budget>, account: Arc<Account>) -> Lease {
        Lease {
            budget,
            account,
            reserve: AtomicUsize::new(0),
            held_back_ms: AtomicU64::new(0),
        }
    }

    /// A lease of a query that begins; it does not before it has the bytes that it is known to need. Waits for memory
    /// while `goes_on`.
    ///
    /// # Errors
    /// When there is none; why, if it was not that the query is not wanted any more.
    pub fn of_query(
        budget: &Arc<Budget>,
        bytes: usize,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<Arc<Lease>, Option<Refusal>> {
        let lease = budget.open();
        let base = budget.query_bytes();
        match lease.take_more(base.max(bytes), goes_on) {
            Ok(()) => {
                let reserve = bytes.saturating_sub(base);
                lease.reserve.store(reserve, Ordering::Relaxed);
                Ok(Arc::new(lease))
            }
            Err(LeaseStopped) => Err(lease.refusal()),
        }
    }

    /// The bytes with which the query may come to its end if it begins anew, once it was refused. `None` if it can
    /// never have as many as it asked for.
    pub fn bytes_for_another_try(&self) -> Option<usize> {
        let refusal = self.refusal()?;
        let most = self.budget.one_query_bytes();
        let needed = refusal.held + refusal.asked;
        let is_possible = needed <= most && refusal.held < most;
        is_possible.then(|| needed.max(2 * refusal.held).min(most))
    }

    /// A part of the budget, and no more than so many bytes.
    pub fn share(&self, share: usize, bytes_max: usize) -> usize {
        self.budget.share(share, bytes_max)
    }

    /// Why it is to end, if it is.
    pub fn refusal(&self) -> Option<Refusal> {
        self.account.refusal.get().copied()
    }

    /// Sees to the memory of the process now and then; says whether the query may go on. While memory is short, all
    /// but the oldest query pause here, for [`HOLD_BACK_MAX`] in all.
    pub fn watch(&self) -> bool {
        self.budget.watch();
        self.hold_back();
        self.account.refusal.get().is_none()
    }

    /// Waits while memory is short and an older query is at work.
    fn hold_back(&self) {
        let before = Duration::from_millis(self.held_back_ms.load(Ordering::Relaxed));
        let each = HOLD_BACK_EACH.min(HOLD_BACK_MAX.saturating_sub(before));
        let holds_back = || {
            let goes_on = self.account.refusal.get().is_none();
            goes_on && self.budget.should_hold_back(&self.account)
        };
        if each.is_zero() || !holds_back() {
            return;
        }
        let begun = Instant::now();
        while begun.elapsed() < each && holds_back() {
            self.budget.wait(CHECK_EVERY);
        }
        let waited_ms = cast::low_u64(begun.elapsed().as_millis());
        self.held_back_ms.fetch_add(waited_ms, Ordering::Relaxed);
    }

    /// A lease of what is on its way to a reader, however slow: it is there already, and no query.
    pub fn of_reader(budget: &Arc<Budget>) -> Arc<Lease> {
        let lease = budget.open();
        lease.account.is_idle.store(true, Ordering::Relaxed);
        Arc::new(lease)
    }

    /// Gives back most while there is nothing to do but to wait.
    pub fn idle(&self) {
        if !self.account.is_idle.swap(true, Ordering::Relaxed) {
            let base = self.budget.query_bytes();
            self.budget
                .give_back(&self.account, base.saturating_sub(IDLE_BYTES));
        }
    }

    /// Takes so many bytes more, first of the reserve; waits for them while `goes_on`.
    fn take(&self, bytes: usize, goes_on: &mut dyn FnMut() -> bool) -> Result<(), LeaseStopped> {
        let less = |reserve: usize| Some(reserve.saturating_sub(bytes));
        let reserve = self
            .reserve
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        let drawn = reserve.unwrap_or_default().min(bytes);
        if drawn == bytes {
            return Ok(());
        }
        self.take_more(bytes - drawn, goes_on).inspect_err(|_| {
            self.reserve.fetch_add(drawn, Ordering::Relaxed);
        })
    }

    /// Waits for so many bytes of the budget while `goes_on`.
    fn take_more(
        &self,
        bytes: usize,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<(), LeaseStopped> {
        match self.budget.ask(&self.account, bytes, None) {
            Answer::Granted => return Ok(()),
            Answer::Refused => return Err(LeaseStopped),
            Answer::Later => {}
        }
        let waiting = QueuePlace {
            turn: self.budget.begin_to_wait(&self.account),
            lease: self,
        };
        let until = Instant::now() + WAIT_MAX;
        loop {
            match self.budget.ask(&self.account, bytes, Some(waiting.turn)) {
                Answer::Granted => return Ok(()),
                Answer::Refused => return Err(LeaseStopped),
                Answer::Later if Instant::now() >= until => {
                    self.budget.give_up(&self.account, bytes);
                    return Err(LeaseStopped);
                }
                Answer::Later => self.budget.wait(CHECK_EVERY),
            }
            if !goes_on() {
                return Err(LeaseStopped);
            }
        }
    }
}

/// A part of a lease that grows and shrinks with what it is for. Without a lease it counts nothing.
#[derive(Debug, Default)]
pub struct Charge {
    lease: Option<Arc<Lease>>,
    bytes: usize,
    /// Since when it has less than it needs.
    short_since: Option<Instant>,
}

impl Charge {
    /// Nothing yet.
    pub fn new(lease: Option<&Arc<Lease>>) -> Charge {
        Charge {
            lease: lease.map(Arc::clone),
            ..Charge::default()
        }
    }

    /// Has so many bytes soon: who works where nobody can say that the work goes on waits for a second,
    /// asks again a little later, and ends if the query [`Charge::is_refused`]. What it takes between is above the
    /// budget, so it may take [`WAIT_MAX`] over [`SOON`] steps at most until it is refused.
    pub fn set_soon(&mut self, bytes: usize) {
        let until = Instant::now() + SOON;
        if self
            .set_while(bytes, &mut || Instant::now() < until)
            .is_ok()
        {
            self.short_since = None;
            return;
        }
        let since = *self.short_since.get_or_insert_with(Instant::now);
        if let Some(lease) = &self.lease
            && since.elapsed() >= WAIT_MAX
        {
            lease.budget.give_up(&lease.account, bytes - self.bytes);
        }
    }

    /// Has so many bytes; waits for what is missing while `goes_on`.
    ///
    /// # Errors
    /// When there is no more, and the query is to end; or when it does not go on.
    pub fn set_while(
        &mut self,
        bytes: usize,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<(), LeaseStopped> {
        let Some(lease) = &self.lease else {
            return Ok(());
        };
        let pieces = bytes.next_multiple_of(PIECE_BYTES);
        if pieces > self.bytes {
            lease.take(pieces - self.bytes, goes_on)?;
            self.bytes = pieces;
        } else if pieces + PIECE_BYTES < self.bytes {
            lease.budget.give_back(&lease.account, self.bytes - pieces);
            self.bytes = pieces;
        }
        Ok(())
    }

    /// Counts bytes that are there already.
    pub fn of(lease: &Arc<Lease>, bytes: usize) -> Charge {
        lease.budget.add(&lease.account, bytes);
        Charge {
            lease: Some(Arc::clone(lease)),
            bytes,
            short_since: None,
        }
    }

    /// True if the query is to end for want of memory.
    pub fn is_refused(&self) -> bool {
        self.refusal().is_some()
    }

    /// Why the query is to end, if it is.
    pub fn refusal(&self) -> Option<Refusal> {
        self.lease.as_ref().and_then(|lease| lease.refusal())
    }

    /// Leaves what it has to the lease, for as long as that lasts.
    pub fn leave(mut self) {
        self.bytes = 0;
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        if let Some(lease) = self.lease.as_ref().filter(|_| self.bytes > 0) {
            lease.budget.give_back(&lease.account, self.bytes);
        }
    }
}

#[cfg(test)]
mod tests;
