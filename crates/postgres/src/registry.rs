//! The sessions that can be cancelled.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

/// The sessions of a listener, by their numbers. No more than sessions are open.
#[derive(Debug, Default)]
pub(crate) struct Registry(Mutex<Sessions>);

#[derive(Debug, Default)]
struct Sessions {
    last: i32,
    open: HashMap<i32, (i32, Arc<Notify>)>,
}

/// A session that can be cancelled, until this is dropped.
#[derive(Debug)]
pub(crate) struct RegistryGuard {
    registry: Arc<Registry>,
    pub(crate) process_id: i32,
    pub(crate) secret: i32,
    pub(crate) cancels: Arc<Notify>,
}

impl Registry {
    /// Takes a session in, with a number and a secret of its own. Without randomness there is none.
    pub(crate) fn enter(self: &Arc<Registry>) -> Option<RegistryGuard> {
        let mut bytes = [0; 4];
        getrandom::fill(&mut bytes).ok()?;
        let secret = i32::from_be_bytes(bytes);
        let cancels = Arc::new(Notify::new());
        let mut sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            sessions.last = sessions.last.checked_add(1).unwrap_or(1);
            if !sessions.open.contains_key(&sessions.last) {
                break;
            }
        }
        let process_id = sessions.last;
        let entry = (secret, Arc::clone(&cancels));
        sessions.open.insert(process_id, entry);
        Some(RegistryGuard {
            registry: Arc::clone(self),
            process_id,
            secret,
            cancels,
        })
    }

    /// Cancels the statement that a session runs, if this is its secret. A session that runs none goes on.
    pub(crate) fn cancel(&self, process_id: i32, secret: i32) {
        let sessions = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = sessions.open.get(&process_id);
        if let Some((_, cancels)) = found.filter(|(known, _)| *known == secret) {
            cancels.notify_waiters();
        }
    }
}

impl Drop for RegistryGuard {
    fn drop(&mut self) {
        let mut sessions = self
            .registry
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        sessions.open.remove(&self.process_id);
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::task::{Context, Waker};

    use super::*;

    #[test]
    fn only_the_secret_cancels() {
        let registry = Arc::new(Registry::default());
        let (one, other) = (registry.enter().unwrap(), registry.enter().unwrap());
        assert_ne!(one.process_id, other.process_id);
        let cancels = Arc::clone(&one.cancels);
        let mut cancelled = std::pin::pin!(cancels.notified());
        let mut context = Context::from_waker(Waker::noop());
        assert!(cancelled.as_mut().poll(&mut context).is_pending());
        registry.cancel(one.process_id, one.secret.wrapping_add(1));
        registry.cancel(other.process_id, other.secret);
        assert!(cancelled.as_mut().poll(&mut context).is_pending());
        registry.cancel(one.process_id, one.secret);
        assert!(cancelled.as_mut().poll(&mut context).is_ready());
    }
}
