//! Batches that are decoded and wait for room in the queue.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::Notify;

/// The bytes of the batches that wait. Cheap to clone; all clones are the same.
#[derive(Clone, Debug, Default)]
pub(super) struct Backlog(Arc<State>);

#[derive(Debug, Default)]
struct State {
    bytes: AtomicUsize,
    less: Notify,
}

/// A batch that waits, until this is dropped.
#[derive(Debug)]
pub(super) struct Waiting {
    backlog: Backlog,
    bytes: usize,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let Backlog(state) = &self.backlog;
        state.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        state.less.notify_waiters();
    }
}

impl Backlog {
    /// One more batch waits.
    pub(super) fn add(&self, bytes: usize) -> Waiting {
        self.0.bytes.fetch_add(bytes, Ordering::Relaxed);
        Waiting {
            backlog: self.clone(),
            bytes,
        }
    }

    /// The bytes that wait.
    pub(super) fn bytes(&self) -> usize {
        self.0.bytes.load(Ordering::Relaxed)
    }

    /// Waits until at most so many bytes wait.
    pub(super) async fn until_below(&self, bytes_max: usize) {
        loop {
            let less = self.0.less.notified();
            if self.bytes() <= bytes_max {
                return;
            }
            less.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    #[test]
    fn who_would_add_more_waits_until_there_is_less() {
        let backlog = Backlog::default();
        let (large, small) = (backlog.add(90), backlog.add(20));
        let mut context = Context::from_waker(Waker::noop());
        {
            let mut waiting = pin!(backlog.until_below(100));
            assert_eq!(waiting.as_mut().poll(&mut context), Poll::Pending);
            drop(small);
            assert_eq!(waiting.as_mut().poll(&mut context), Poll::Ready(()));
        }
        drop(large);
        let mut none = pin!(backlog.until_below(0));
        assert_eq!(none.as_mut().poll(&mut context), Poll::Ready(()));
    }
}
