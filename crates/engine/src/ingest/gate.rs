//! Whether records are taken in at all.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use super::IngestError;

/// Why nothing is taken: any of these.
const NO_INGESTER: u8 = 1;
const LEAVING: u8 = 2;
const CLOCK_BEHIND: u8 = 4;

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
        self.set(LEAVING, is_leaving);
    }

    /// Takes nothing while the clock is behind the other nodes', or takes records again.
    pub fn set_behind(&self, is_behind: bool) {
        self.set(CLOCK_BEHIND, is_behind);
    }

    fn set(&self, reason: u8, is_so: bool) {
        if is_so {
            self.0.fetch_or(reason, Ordering::Relaxed)
        } else {
            self.0.fetch_and(!reason, Ordering::Relaxed)
        };
    }

    /// Whether records are taken.
    ///
    /// # Errors
    /// Why they are not.
    pub fn check(&self) -> Result<(), IngestError> {
        match self.0.load(Ordering::Relaxed) {
            0 => Ok(()),
            reasons if reasons & NO_INGESTER != 0 => Err(IngestError::NoIngester),
            reasons if reasons & LEAVING != 0 => Err(IngestError::Leaving),
            _ => Err(IngestError::ClockBehind),
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
        assert!(matches!(gate.check(), Err(IngestError::Leaving)));
        gate.set_leaving(false);
        assert!(gate.check().is_ok());
        gate.set_behind(true);
        assert!(matches!(gate.check(), Err(IngestError::ClockBehind)));
        gate.set_leaving(true);
        gate.set_behind(false);
        assert!(matches!(gate.check(), Err(IngestError::Leaving)));
        let never = Gate::of_no_ingester();
        never.set_leaving(true);
        never.set_leaving(false);
        assert!(matches!(never.check(), Err(IngestError::NoIngester)));
    }
}
