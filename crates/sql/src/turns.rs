//! Which statements run, and which wait until one of them has ended.
//!
//! Invariant: statements begin in the order in which they came.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::engine::Stop;
use crate::error::{Blame, SqlError};

/// Statements at a time. Each may keep every core busy.
pub const STATEMENTS_MAX: usize = 4;

/// Statements that wait: a page of panels asks all its questions at once.
pub const STATEMENTS_WAITING_MAX: usize = 64;

/// How long one waits at most, as a query does.
pub const STATEMENT_WAIT_MAX: Duration = Duration::from_secs(10);

/// How often it is looked whether anybody waits for the answer still.
const CHECK_EVERY: Duration = Duration::from_millis(20);

/// Who runs and who waits.
#[derive(Debug, Default)]
struct Places {
    running: usize,
    /// Numbers of those that wait.
    waiting: VecDeque<u64>,
    next: u64,
}

/// Gives statements their turns.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turns(Arc<(Mutex<Places>, Condvar)>);

/// A statement that runs: as long as it takes processors and memory, also if nobody waits for it.
#[derive(Debug)]
pub(crate) struct RunningStatement(Turns);

impl Drop for RunningStatement {
    fn drop(&mut self) {
        self.0.places().running -= 1;
        self.0.0.1.notify_all();
    }
}

impl Turns {
    fn places(&self) -> MutexGuard<'_, Places> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.places().running == 0
    }

    /// Waits for a turn, as long as `check` says that somebody waits for the answer.
    pub(crate) fn wait(
        &self,
        wait_max: Duration,
        mut check: impl FnMut() -> Result<(), Stop>,
    ) -> Result<RunningStatement, SqlError> {
        let began = Instant::now();
        let mut places = self.places();
        if places.waiting.len() >= STATEMENTS_WAITING_MAX {
            return Err(busy("and as many wait as may"));
        }
        let number = places.next;
        places.next += 1;
        places.waiting.push_back(number);
        let waited = loop {
            if places.running < STATEMENTS_MAX && places.waiting.front() == Some(&number) {
                places.running += 1;
                break Ok(RunningStatement(self.clone()));
            }
            if began.elapsed() >= wait_max {
                break Err(busy(&format!("and none ended in {} s", wait_max.as_secs())));
            }
            let woken = self.0.1.wait_timeout(places, CHECK_EVERY);
            drop(woken.unwrap_or_else(PoisonError::into_inner));
            // May block, or ask others.
            let checked = check();
            places = self.places();
            if checked.is_err() {
                break Err(SqlError::new(
                    Blame::Cancelled,
                    "the statement was cancelled",
                ));
            }
        };
        places.waiting.retain(|waiting| *waiting != number);
        drop(places);
        self.0.1.notify_all();
        waited
    }
}

fn busy(what: &str) -> SqlError {
    let message = format!("{STATEMENTS_MAX} statements are running, {what}; try again later");
    SqlError::new(Blame::Busy, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_wait_for_their_turn_and_not_for_ever() {
        let turns = Turns::default();
        let go = || Ok(());
        let wait = |wait_max| turns.wait(wait_max, go);
        let mut running: Vec<RunningStatement> = (0..STATEMENTS_MAX)
            .map(|_| wait(Duration::ZERO).unwrap())
            .collect();
        let error = wait(Duration::from_millis(1)).unwrap_err();
        assert_eq!(error.blame, Blame::Busy, "{error}");
        let gone = turns.wait(STATEMENT_WAIT_MAX, || Err(Stop)).unwrap_err();
        assert_eq!(gone.blame, Blame::Cancelled);
        let waiting = {
            let turns = turns.clone();
            std::thread::spawn(move || turns.wait(STATEMENT_WAIT_MAX, go).is_ok())
        };
        while turns.places().waiting.is_empty() {
            std::thread::yield_now();
        }
        running.pop();
        assert!(waiting.join().unwrap());
        running.clear();
        assert!(turns.is_idle() && turns.places().waiting.is_empty());
    }
}
