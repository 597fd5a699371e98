//! Pushes that came lately, so that one that is sent again is stored once.
//!
//! Clients give up waiting after some seconds and send the same body again, and do not say that they
//! do; Loki keeps one of two entries with the same labels, time and line. A body is known by its hash.
//! What is remembered is in memory only: a server that is killed between the storing and the answer
//! does not know the body afterwards.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Mutex as AsyncMutex;

/// Bodies that are remembered: those of ten minutes of a hundred clients that push each second, while
/// Promtail gives up a body after less than nine. They take some 9 MB.
const BODIES_MAX: usize = 65_536;

/// Whether a body is stored. Who stores it holds the lock meanwhile.
pub(super) type Stored = Arc<AsyncMutex<bool>>;

/// Bodies that came lately.
#[derive(Default)]
pub(crate) struct Resends(Mutex<Recent>);

#[derive(Default)]
struct Recent {
    bodies: HashMap<u128, Stored>,
    order: VecDeque<u128>,
}

impl Resends {
    /// What is known of a body, which is remembered from now on.
    pub(super) fn body(&self, identity: u128) -> Stored {
        let mut recent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(stored) = recent.bodies.get(&identity) {
            return Arc::clone(stored);
        }
        if recent.order.len() == BODIES_MAX
            && let Some(oldest) = recent.order.pop_front()
        {
            recent.bodies.remove(&oldest);
        }
        let stored = Stored::default();
        recent.order.push_back(identity);
        recent.bodies.insert(identity, Arc::clone(&stored));
        stored
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_remembered_and_the_memory_is_bounded() {
        let resends = Resends::default();
        *resends.body(1).try_lock().unwrap() = true;
        assert!(*resends.body(1).try_lock().unwrap());
        assert!(!*resends.body(2).try_lock().unwrap());
        for identity in 0..2 * BODIES_MAX as u128 {
            resends.body(1000 + identity);
        }
        assert!(!*resends.body(1).try_lock().unwrap(), "it is forgotten");
        let recent = resends.0.lock().unwrap();
        assert_eq!(recent.bodies.len(), BODIES_MAX);
        assert_eq!(recent.order.len(), BODIES_MAX);
    }
}
