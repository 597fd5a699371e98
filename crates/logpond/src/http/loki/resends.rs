//! Pushes that came lately, so that one that is sent again is stored once.
//!
//! Clients give up waiting after some seconds and send the same body again, and do not say that they
//! do; Loki keeps one of two entries with the same labels, time and line. A body is known by its hash.
//! What is remembered is in memory only: a server that is killed between the storing and the answer
//! does not know the body afterwards.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Mutex as AsyncMutex;

use crate::recent::Recent;

/// Whether a body is stored. Who stores it holds the lock meanwhile.
pub(super) type Stored = Arc<AsyncMutex<bool>>;

/// Bodies that came lately: Promtail gives up one after less than nine minutes.
#[derive(Default)]
pub(crate) struct Resends(Mutex<Recent<Stored>>);

impl Resends {
    /// What is known of a body, which is remembered from now on.
    pub(super) fn body(&self, identity: u128) -> Stored {
        let mut recent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(recent.of(identity))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recent::IDENTITIES_MAX;

    #[test]
    fn bodies_are_remembered_and_the_memory_is_bounded() {
        let resends = Resends::default();
        *resends.body(1).try_lock().unwrap() = true;
        assert!(*resends.body(1).try_lock().unwrap());
        assert!(!*resends.body(2).try_lock().unwrap());
        for identity in 0..2 * IDENTITIES_MAX as u128 {
            resends.body(1000 + identity);
        }
        assert!(!*resends.body(1).try_lock().unwrap(), "it is forgotten");
        assert_eq!(resends.0.lock().unwrap().count(), IDENTITIES_MAX);
    }
}
