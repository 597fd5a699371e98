//! How this node is doing.

use logpond_cluster::expiry::ahead_ns;
use logpond_segment::disk::Space;

use super::Handoff;
use crate::cluster::{LeavingStatus, NodeStatus};

impl Handoff {
    /// How far this node's clock is ahead of the median of the others'.
    pub(super) fn clock_ahead_ms(&self) -> Option<i64> {
        let peers = self.parts.member.peer_clocks()?;
        let ahead_ns = ahead_ns((self.parts.clock)(), &peers)?;
        Some(ahead_ns / 1_000_000)
    }

    /// How this node is doing now.
    pub fn status(&self) -> NodeStatus {
        let live = self.parts.live.snapshot();
        let sum =
            |of: fn(&logpond_engine::store::LiveSegment) -> u64| live.iter().map(|s| of(s)).sum();
        let closed = self.parts.visible.snapshot().closed.len() as u64;
        let space = self.parts.disk.space().unwrap_or(Space {
            free_bytes: 0,
            total_bytes: 0,
        });
        let now_ms = self.now_ms();
        let state = self.state();
        let waiting_bytes = state.offers.bytes();
        let rates = state.pace.rates(waiting_bytes, now_ms);
        let offered_bytes = state.pace.offered_bytes();
        NodeStatus {
            segments: live.len() as u64,
            segment_rows: sum(|s| s.file().manifest().rows),
            segment_bytes: sum(|s| s.file().bytes()),
            free_bytes: space.free_bytes,
            total_bytes: space.total_bytes,
            is_full: self.parts.member.is_full(space),
            waiting_files: state.offers.waiting_count() as u64,
            waiting_bytes,
            waiting_ms: state.offers.oldest_age_ms(now_ms).unwrap_or(0),
            offered_bytes,
            consumed_bytes: offered_bytes.saturating_sub(waiting_bytes),
            offered_bytes_per_s: rates.offered,
            consumed_bytes_per_s: rates.consumed,
            service: state.pace.service(),
            copies_lacking: state.copies.lacking,
            copies_superfluous: state.copies.superfluous,
            leaving: state.copies.leaving.map(|progress| LeavingStatus {
                journal_files: closed,
                segments: progress.segments as u64,
                lacking: progress.lacking,
            }),
            canary_ms: self
                .parts
                .member
                .canary()
                .map(|took| took.as_secs_f64() * 1000.0),
            clock_ahead_ms: self.clock_ahead_ms(),
        }
    }
}
