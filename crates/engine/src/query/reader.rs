//! The reading end of an answer, which can be taken from a reader that does not read.
//!
//! Invariants: what was sent before the reader was given up still reaches it, and behind it a last chunk
//! that says why there is no more, or else the answer breaks off; a reader that is gone ends the work.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyper::body::Bytes;
use tokio::sync::mpsc;

/// A reader, as those see it who work for it.
#[derive(Debug)]
pub struct Reader {
    receiver: Mutex<mpsc::Receiver<Bytes>>,
    /// Since when the next chunk waits to be taken.
    stalled_since: Mutex<Option<Instant>>,
    is_given_up: AtomicBool,
    /// True once an operator has ended the work.
    is_stopped: AtomicBool,
    /// Rows that were written for it.
    rows: AtomicU64,
    /// Bytes that were read for it, and those of all that may have to be read.
    bytes: AtomicU64,
    bytes_total: AtomicU64,
    last: Mutex<Option<Bytes>>,
}

impl Reader {
    pub(super) fn new(receiver: mpsc::Receiver<Bytes>) -> Arc<Reader> {
        Arc::new(Reader {
            receiver: Mutex::new(receiver),
            stalled_since: Mutex::default(),
            is_given_up: AtomicBool::default(),
            is_stopped: AtomicBool::default(),
            rows: AtomicU64::default(),
            bytes: AtomicU64::default(),
            bytes_total: AtomicU64::default(),
            last: Mutex::default(),
        })
    }

    /// For how long it has not taken the next chunk.
    pub fn stalled_for(&self) -> Option<Duration> {
        locked(&self.stalled_since).map(|since| since.elapsed())
    }

    /// Ends the work for it. What was sent stays there to be read.
    pub fn give_up(&self) {
        self.is_given_up.store(true, Ordering::Release);
        locked(&self.receiver).close();
    }

    /// Ends the work for it because an operator says so.
    pub fn stop(&self) {
        self.is_stopped.store(true, Ordering::Release);
        self.give_up();
    }

    /// True once an operator has ended the work for it.
    pub fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Acquire)
    }

    /// Rows that were written for it so far.
    pub fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    /// Notes how many rows were written for it so far.
    pub(super) fn note_rows(&self, rows: u64) {
        self.rows.store(rows, Ordering::Relaxed);
    }

    /// Bytes that were read for it so far, and those of all that may have to be read, as far as it is known.
    pub fn bytes(&self) -> (u64, u64) {
        let bytes = self.bytes.load(Ordering::Relaxed);
        (bytes, self.bytes_total.load(Ordering::Relaxed).max(bytes))
    }

    /// Notes how many bytes were read for it so far, and how many there are.
    pub(super) fn note_bytes(&self, bytes: u64, bytes_total: u64) {
        self.bytes.store(bytes, Ordering::Relaxed);
        self.bytes_total.store(bytes_total, Ordering::Relaxed);
    }

    /// Whether the work for it was ended.
    pub fn is_given_up(&self) -> bool {
        self.is_given_up.load(Ordering::Acquire)
    }

    /// What is sent behind all else once the reader was given up.
    pub(super) fn leave(&self, last: Bytes) {
        *locked(&self.last) = Some(last);
    }

    /// Notes whether the next chunk waits to be taken.
    pub(super) fn note_stalled(&self, is_stalled: bool) {
        *locked(&self.stalled_since) = is_stalled.then(Instant::now);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The chunks of an answer. Dropped, it ends the work.
#[derive(Debug)]
pub struct Chunks(Arc<Reader>);

impl Chunks {
    pub(super) fn of(reader: Arc<Reader>) -> Chunks {
        Chunks(reader)
    }

    /// The next chunk; `None` at the end.
    pub fn poll_recv(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let polled = locked(&self.0.receiver).poll_recv(context);
        let Poll::Ready(None) = polled else {
            return polled;
        };
        let last = locked(&self.0.last).take();
        if last.is_some() {
            // It says why there is no more.
            self.0.is_given_up.store(false, Ordering::Release);
        }
        Poll::Ready(last)
    }

    /// Waits for the next chunk; `None` at the end.
    pub async fn recv(&mut self) -> Option<Bytes> {
        std::future::poll_fn(|context| self.poll_recv(context)).await
    }

    /// Whether the answer ends before it is whole, without a word.
    pub fn is_broken_off(&self) -> bool {
        self.0.is_given_up()
    }
}

impl Drop for Chunks {
    fn drop(&mut self) {
        locked(&self.0.receiver).close();
    }
}
