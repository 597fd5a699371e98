//! Whether records are taken in at all.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use super::Refused;

const OPEN: u8 = 0;
const NO_INGESTER: u8 = 1;
const LEAVING: u8 = 2;

/// What all ways in ask first. Cheap to clone; all clones are the same gate.
#[derive(Clone, Debug, Default)]
pub struct Gate(Arc<AtomicU8>);

impl Gate {
    /// A gate that never opens: this node has another role.
    pub fn of_no_ingester() -> Gate {
        Gate(Arc::new(AtomicU8::new(NO_INGESTER)))
    }

    /// Takes nothing from now on, since the node leaves its cluster; or takes records again.
    pub fn set_leaving(&self, is_leaving: bool) {
        let (from, to) = match is_leaving {
            true => (OPEN, LEAVING),
            false => (LEAVING, OPEN),
        };
        // A gate that never opens stays as it is.
        let _ = self
            .0
            .compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Whether records are taken.
    ///
    /// # Errors
    /// Why they are not.
    pub fn check(&self) -> Result<(), Refused> {
        match self.0.load(Ordering::Relaxed) {
            OPEN => Ok(()),
            LEAVING => Err(Refused::Leaving),
            _ => Err(Refused::NoIngester),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ingesters_open() {
        let gate = Gate::default();
        assert!(gate.check().is_ok());
        gate.set_leaving(true);
        assert!(matches!(gate.check(), Err(Refused::Leaving)));
        gate.set_leaving(false);
        assert!(gate.check().is_ok());
        let never = Gate::of_no_ingester();
        never.set_leaving(true);
        never.set_leaving(false);
        assert!(matches!(never.check(), Err(Refused::NoIngester)));
    }
}
