//! Upstreams are tried without a client, so that no client finds out that one is down.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{MissedTickBehavior, interval};

use super::Pool;

/// Tries the upstreams of a route for ever, all at the same time; one is down that does not take a
/// connection within this time.
pub(crate) async fn check(pool: Arc<Pool>, every: Duration, connect_time: Duration) {
    let _checked = CheckGuard(&pool);
    let mut due = interval(every);
    due.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        due.tick().await;
        let mut checks = tokio::task::JoinSet::new();
        for state in pool.states() {
            let state = state.clone();
            checks.spawn(async move { state.check(connect_time).await });
        }
        checks.join_all().await;
    }
}

/// Forgets the results of a check when the check ends.
struct CheckGuard<'a>(&'a Pool);

impl Drop for CheckGuard<'_> {
    fn drop(&mut self) {
        for state in self.0.states() {
            state.is_not_checked();
        }
    }
}
