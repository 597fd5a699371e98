//! Deadlines of a run, which a busy machine needs longer.
//!
//! All deadlines are for a machine that does nothing else. The factor of a run multiplies them, so that a process
//! that has no processor is not taken for one that hangs.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// The largest factor: a deadline of two minutes is then two hours.
pub(super) const FACTOR_MAX: u32 = 60;

/// The factor of this run.
static FACTOR: AtomicU32 = AtomicU32::new(1);

/// Sets the factor, once and before the run begins.
pub(super) fn set(factor: u32) {
    FACTOR.store(factor.clamp(1, FACTOR_MAX), Ordering::SeqCst);
}

/// A deadline, multiplied by the factor.
pub(super) fn patient(deadline: Duration) -> Duration {
    deadline * FACTOR.load(Ordering::SeqCst)
}
