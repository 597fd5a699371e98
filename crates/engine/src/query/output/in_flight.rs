//! Bytes that were sent and have not left yet: memory that a slow reader holds.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use hyper::body::Bytes;

use logpond_host::memory::{Charge, Lease};

/// How often one who waits for a reader looks whether it is there.
const CHECK_EVERY: Duration = Duration::from_millis(100);

/// Bytes that were sent, until those who write them have let go of them.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    bytes: Mutex<usize>,
    left: Condvar,
    lease: OnceLock<Arc<Lease>>,
}

/// A chunk on its way.
struct InFlightChunk {
    chunk: Vec<u8>,
    of: Arc<InFlight>,
    _charge: Option<Charge>,
}

impl AsRef<[u8]> for InFlightChunk {
    fn as_ref(&self) -> &[u8] {
        &self.chunk
    }
}

impl Drop for InFlightChunk {
    fn drop(&mut self) {
        *self.of.lock() -= self.chunk.capacity();
        self.of.left.notify_all();
    }
}

impl InFlight {
    /// Counts what is on its way as this one's.
    pub(super) fn count_in(&self, lease: Arc<Lease>) {
        // There is one already if the query was asked to begin twice.
        let _ = self.lease.set(lease);
    }

    /// Waits until a chunk and all others on their way have at most so many bytes, or until it is the only
    /// one; `None` if that is in vain.
    pub(super) fn begin(
        self: &Arc<InFlight>,
        chunk: Vec<u8>,
        bytes_max: usize,
        goes_on: impl Fn() -> bool,
    ) -> Option<Bytes> {
        let taken = chunk.capacity();
        let mut bytes = self.lock();
        while *bytes > 0 && *bytes + taken > bytes_max {
            if !goes_on() {
                return None;
            }
            let waited = self.left.wait_timeout(bytes, CHECK_EVERY);
            bytes = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        *bytes += taken;
        drop(bytes);
        let sent = InFlightChunk {
            _charge: self.lease.get().map(|lease| Charge::of(lease, taken)),
            of: Arc::clone(self),
            chunk,
        };
        Some(Bytes::from_owner(sent))
    }

    fn lock(&self) -> MutexGuard<'_, usize> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn no_more_waits_for_a_reader_than_may_or_one_chunk() {
        let all: Arc<InFlight> = Arc::default();
        let begin = |bytes: usize| all.begin(vec![7; bytes], 100, || false);
        let large = begin(1000).unwrap();
        assert_eq!(&large[..2], [7, 7]);
        assert!(begin(1).is_none());
        drop(large);
        let two = [begin(60).unwrap(), begin(40).unwrap()];
        assert!(begin(1).is_none());
        let waiting = thread::spawn({
            let all = Arc::clone(&all);
            move || all.begin(vec![7; 50], 100, || true)
        });
        let [first, second] = two;
        drop(first);
        let third = waiting.join().unwrap();
        assert!(third.is_some());
        drop((second, third));
        assert_eq!(*all.lock(), 0);
    }
}
