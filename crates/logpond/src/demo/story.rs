//! The incident: a release of the checkout keeps connections to its database, and its pool runs dry.
//!
//! ```text
//! deployed ── 4 min ── failing ............ 27 min ............ rolled back
//! ```

/// How long before the demo's start the release is deployed.
const BEFORE_START: i64 = 3 * 3600 + 12 * 60;

/// How long the pool lasts.
const UNTIL_FAILURE: i64 = 4 * 60;

/// How long it fails until the release is rolled back.
const FAILURE: i64 = 27 * 60;

/// The release that is rolled out, and the one before and after it.
pub(super) const BAD_RELEASE: &str = "4.18.0";
pub(super) const GOOD_RELEASE: &str = "4.17.3";

/// Connections of the pool.
pub(super) const POOL: u64 = 20;

/// The times of the incident, in seconds since 1970.
pub(super) struct IncidentTimes {
    /// The release is deployed.
    pub(super) deployed: i64,
    /// The pool is dry.
    pub(super) failing: i64,
    /// The release before it is back.
    pub(super) rolled_back: i64,
}

impl IncidentTimes {
    /// The incident of the day before this time. It begins at a full minute.
    pub(super) fn before(now: i64) -> IncidentTimes {
        let deployed = (now - BEFORE_START).div_euclid(60) * 60;
        let failing = deployed + UNTIL_FAILURE;
        IncidentTimes {
            deployed,
            failing,
            rolled_back: failing + FAILURE,
        }
    }

    /// True while the checkout cannot reach its database.
    pub(super) fn is_failing(&self, second: i64) -> bool {
        (self.failing..self.rolled_back).contains(&second)
    }

    /// True while the bad release runs.
    pub(super) fn is_deployed(&self, second: i64) -> bool {
        (self.deployed..self.rolled_back).contains(&second)
    }

    /// The release of the checkout.
    pub(super) fn release(&self, second: i64) -> &'static str {
        if self.is_deployed(second) {
            BAD_RELEASE
        } else {
            GOOD_RELEASE
        }
    }

    /// Connections of the pool that are in use before it is dry; `None` at other times.
    pub(super) fn connections_in_use(&self, second: i64) -> Option<u64> {
        let is_filling = (self.deployed..self.failing).contains(&second);
        let passed = u64::try_from(second - self.deployed).ok();
        passed
            .filter(|_| is_filling)
            .map(|passed| 4 + passed * (POOL - 4) / UNTIL_FAILURE.unsigned_abs())
    }
}
