//! Threads that help queries with work that falls into independent parts.
//!
//! Invariant: all queries together have at most as many helping threads as the machine has cores
//! beyond the first; a query that finds none left works on alone.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

/// Helping threads of one query at most: each holds the decoded columns of a row group, and a
/// table of its own.
const SPARE_THREADS_MAX: usize = 7;

/// The helping threads that do not exist now.
pub(super) struct ScanPool {
    free: AtomicUsize,
}

/// Some threads of the pool. They are given back when this is dropped.
struct ThreadLease<'h> {
    from: &'h ScanPool,
    count: usize,
}

impl Drop for ThreadLease<'_> {
    fn drop(&mut self) {
        self.from.free.fetch_add(self.count, Ordering::Relaxed);
    }
}

impl ScanPool {
    /// As many as the machine has cores beyond the first.
    pub(super) fn new() -> ScanPool {
        let cores = thread::available_parallelism().map_or(1, |cores| cores.get());
        ScanPool {
            free: AtomicUsize::new(cores - 1),
        }
    }

    fn take(&self, wanted: usize) -> ThreadLease<'_> {
        let mut count = 0;
        let take = |free: usize| {
            count = free.min(wanted).min(SPARE_THREADS_MAX);
            Some(free - count)
        };
        // The closure never refuses.
        let _ = self
            .free
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        ThreadLease { from: self, count }
    }

    /// Does the parts `0..count`, in any order, on this thread and on helping ones. `new` makes
    /// what a thread gathers, `work` does a part. This thread asks `check` before each of its
    /// parts, and its error ends the work.
    ///
    /// # Errors
    /// That of `check`.
    pub(super) fn share<S: Send, E>(
        &self,
        count: usize,
        new: impl Fn() -> S + Sync,
        work: impl Fn(&mut S, usize) + Sync,
        mut check: impl FnMut() -> Result<(), E>,
    ) -> Result<Vec<S>, E> {
        let taken = self.take(count.saturating_sub(1));
        let (next, stopped) = (AtomicUsize::new(0), AtomicBool::new(false));
        let part = || {
            let part = next.fetch_add(1, Ordering::Relaxed);
            (part < count && !stopped.load(Ordering::Relaxed)).then_some(part)
        };
        let gather = || {
            let mut gathered = new();
            while let Some(part) = part() {
                work(&mut gathered, part);
            }
            gathered
        };
        thread::scope(|scope| {
            let help = |number: usize| {
                let builder = thread::Builder::new().name(format!("lp-scan-{number}"));
                // Without a thread the others do its part.
                builder.spawn_scoped(scope, gather).ok()
            };
            let helping: Vec<_> = (0..taken.count).map_while(help).collect();
            let mut own = new();
            let outcome = loop {
                if let Err(error) = check() {
                    stopped.store(true, Ordering::Relaxed);
                    break Err(error);
                }
                match part() {
                    Some(part) => work(&mut own, part),
                    None => break Ok(()),
                }
            };
            let mut all = vec![own];
            for thread in helping {
                match thread.join() {
                    Ok(gathered) => all.push(gathered),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            outcome.map(|()| all)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spare(free: usize) -> ScanPool {
        ScanPool {
            free: AtomicUsize::new(free),
        }
    }

    #[test]
    fn every_part_is_done_once() {
        for free in [0, 1, 3, 20] {
            let spare = spare(free);
            let gathered = spare.share(
                100,
                Vec::new,
                |done, part| done.push(part),
                || Ok::<(), ()>(()),
            );
            let gathered = gathered.unwrap();
            assert!(gathered.len() <= 1 + free.min(SPARE_THREADS_MAX));
            let mut parts: Vec<usize> = gathered.concat();
            parts.sort_unstable();
            assert!(parts.into_iter().eq(0..100));
            assert_eq!(spare.free.load(Ordering::Relaxed), free);
        }
    }

    #[test]
    fn nobody_works_on_after_an_error() {
        let spare = spare(3);
        let mut left = 5;
        let check = || {
            left -= 1;
            if left == 0 { Err("enough") } else { Ok(()) }
        };
        let outcome = spare.share(usize::MAX, || (), |(), _| (), check);
        assert_eq!(outcome.unwrap_err(), "enough");
        assert_eq!(spare.free.load(Ordering::Relaxed), 3);
    }
}
