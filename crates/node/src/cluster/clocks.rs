//! What time it is elsewhere, as other nodes' answers say.
//!
//! HTTP answers carry the time at which they were made (RFC 9110, section 6.6.1, `Date`), to the
//! second: enough to see that a clock is wrong by minutes.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use logpond_cluster::NodeId;
use logpond_record::Timestamp;

/// What was said longer ago says nothing: the clock may have been set since. Nodes hear of each
/// other every few seconds.
const AGE_MAX: Duration = Duration::from_secs(60);

/// The clocks of other nodes.
#[derive(Default)]
pub(super) struct Clocks(Mutex<BTreeMap<NodeId, (Timestamp, Instant)>>);

impl Clocks {
    /// Notes what a node's clock says now.
    pub(super) fn note(&self, node: NodeId, says: Timestamp) {
        let mut heard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        heard.retain(|_, (_, at)| at.elapsed() < AGE_MAX);
        heard.insert(node, (says, Instant::now()));
    }

    /// What the clocks say now of those that were heard of a short time ago.
    pub(super) fn now(&self) -> Vec<Timestamp> {
        let heard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let recent = heard.values().filter(|(_, at)| at.elapsed() < AGE_MAX);
        recent
            .map(|(said, at)| {
                let since_ns = i64::try_from(at.elapsed().as_nanos()).unwrap_or(i64::MAX);
                said.saturating_add(since_ns)
            })
            .collect()
    }
}

/// The time in a header `Date`.
pub(super) fn read(date: &str) -> Option<Timestamp> {
    let time = jiff::fmt::rfc2822::parse(date).ok()?;
    let ns = time.timestamp().as_nanosecond();
    i64::try_from(ns).ok().map(Timestamp)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_go_on() {
        let clocks = Clocks::default();
        assert!(clocks.now().is_empty());
        clocks.note(NodeId(1), Timestamp(5));
        clocks.note(NodeId(2), Timestamp(7));
        clocks.note(NodeId(1), Timestamp(1 << 60));
        let now = clocks.now();
        assert_eq!(now.len(), 2);
        assert!(
            now[0] >= Timestamp(1 << 60) && now[1] >= Timestamp(7),
            "{now:?}"
        );
    }

    #[test]
    fn dates_are_read_as_http_has_them() {
        let read = |text| read(text).map(|time| time.0);
        assert_eq!(
            read("Sun, 06 Nov 1994 08:49:37 GMT"),
            Some(784_111_777_000_000_000)
        );
        assert_eq!(read("yesterday"), None);
    }
}
