//! The memory of records that are not whole yet, of all connections to listeners for records together.
//!
//! Invariants:
//! - All of them hold no more than their pool has, and what one read of each brings.
//! - When they hold more, the one of which nothing came for longest is given up, and its part of a record is lost:
//!   it is counted, and said once a minute. So nobody keeps others out by standing still.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::time::Instant;

/// Parts up to this size are not looked at: 2048 connections with as much hold 8 MiB.
const SMALL_BYTES: usize = 4 << 10;

/// The parts of all connections.
#[derive(Debug)]
pub struct UnfinishedParts {
    bytes_max: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    bytes: usize,
    parts: BTreeMap<u64, Part>,
}

#[derive(Debug)]
struct Part {
    bytes: usize,
    /// When something of it came last.
    at: Instant,
    given_up: Arc<Notify>,
}

/// The part of one connection.
#[derive(Debug)]
pub(super) struct Holder {
    number: u64,
    unfinished: Arc<UnfinishedParts>,
    given_up: Arc<Notify>,
    bytes: usize,
}

impl UnfinishedParts {
    /// Parts of so many bytes together.
    pub fn new(bytes_max: usize) -> UnfinishedParts {
        UnfinishedParts {
            bytes_max,
            state: Mutex::default(),
        }
    }

    /// A connection that holds nothing.
    pub(super) fn begin(self: &Arc<UnfinishedParts>) -> Holder {
        let mut state = self.locked();
        state.next += 1;
        Holder {
            number: state.next,
            unfinished: Arc::clone(self),
            given_up: Arc::default(),
            bytes: 0,
        }
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Holder {
    /// Says how much it holds, after something came.
    pub(super) fn hold(&mut self, bytes: usize) {
        let bytes = if bytes > SMALL_BYTES { bytes } else { 0 };
        if bytes == 0 && self.bytes == 0 {
            return;
        }
        self.bytes = bytes;
        let mut state = self.unfinished.locked();
        state.set(self.number, bytes, &self.given_up);
        while state.bytes > self.unfinished.bytes_max && state.give_up_oldest() {}
    }

    /// Waits until it is given up, which may be never.
    pub(super) async fn given_up(&self) {
        self.given_up.notified().await;
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.unfinished.locked().set(self.number, 0, &self.given_up);
        }
    }
}

impl State {
    fn set(&mut self, number: u64, bytes: usize, given_up: &Arc<Notify>) {
        let before = self.parts.remove(&number);
        self.bytes -= before.map_or(0, |part| part.bytes);
        if bytes > 0 {
            self.bytes += bytes;
            let part = Part {
                bytes,
                at: Instant::now(),
                given_up: Arc::clone(given_up),
            };
            self.parts.insert(number, part);
        }
    }

    /// Gives the part up of which nothing came for longest. False if there is none.
    fn give_up_oldest(&mut self) -> bool {
        let oldest = self.parts.iter().min_by_key(|(_, part)| part.at);
        let Some(number) = oldest.map(|(number, _)| *number) else {
            return false;
        };
        if let Some(part) = self.parts.remove(&number) {
            self.bytes -= part.bytes;
            part.given_up.notify_one();
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const BYTES_MAX: usize = 64 << 20;

    #[tokio::test(start_paused = true)]
    async fn who_stands_still_for_longest_is_given_up() {
        let unfinished = Arc::new(UnfinishedParts::new(BYTES_MAX));
        let mut holders: Vec<Holder> = (0..3).map(|_| unfinished.begin()).collect();
        let most = BYTES_MAX / 2;
        for holder in &mut holders {
            tokio::time::advance(Duration::from_secs(1)).await;
            holder.hold(most - SMALL_BYTES);
        }
        assert_eq!(unfinished.locked().parts.len(), 2);
        holders[0].given_up().await;
        // A whole record holds nothing, nor does an ended connection, nor a small part.
        holders[1].hold(0);
        drop(holders.pop());
        holders[0].hold(SMALL_BYTES);
        let state = unfinished.locked();
        assert_eq!((state.bytes, state.parts.len()), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn who_goes_on_is_not_given_up() {
        let unfinished = Arc::new(UnfinishedParts::new(BYTES_MAX));
        let (mut slow, mut busy) = (unfinished.begin(), unfinished.begin());
        slow.hold(BYTES_MAX / 2);
        for part in 1..=20 {
            tokio::time::advance(Duration::from_millis(1)).await;
            busy.hold(part * BYTES_MAX / 32);
        }
        slow.given_up().await;
        assert_eq!(unfinished.locked().parts.len(), 1);
    }
}
