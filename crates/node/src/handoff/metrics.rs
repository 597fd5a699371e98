//! What the hand-off has done, as metrics.

use std::sync::Arc;

use super::Handoff;
use logpond_host::telemetry::{Counter, Exposition};

/// What was handed on.
#[derive(Debug, Default)]
pub(super) struct Counters {
    /// Journal files that this node's store has made segments of.
    pub(super) consumed_files: Counter,
    /// Rows in them.
    pub(super) consumed_rows: Counter,
    /// Lines in them that no format of access logs fits, though some were declared.
    pub(super) unfit_lines: Counter,
    /// Lines in them that are kept without fields, since reading them panicked.
    pub(super) panicked_lines: Counter,
    /// Copies that other nodes have synced.
    pub(super) copies_sent: Counter,
    /// Copies that this node has synced for others.
    pub(super) copies_received: Counter,
    /// Copies that this node has sent since there were too few.
    pub(super) repairs: Counter,
    /// Damaged segments that were given up since others have what was in them.
    pub(super) damaged: Counter,
    /// Segments that this node has given up since enough others have what is in them.
    pub(super) given_up: Counter,
    /// Sources that this node has left out of segments since enough others have them.
    pub(super) trimmed_sources: Counter,
    /// Bytes that became free by that.
    pub(super) trimmed_bytes: Counter,
    /// Journal files that were removed since enough nodes hold them.
    pub(super) released: Counter,
    /// Steps that failed and are tried again.
    pub(super) failures: Counter,
    /// Sources of which two nodes hold different rows: never right.
    pub(super) conflicts: Counter,
}

impl Counters {
    fn expose(&self, out: &mut Exposition) {
        let table = [
            (
                "logpond_handoff_consumed_files_total",
                "Journal files that this node has made segments of, its own and others'.",
                self.consumed_files.get(),
            ),
            (
                "logpond_handoff_consumed_rows_total",
                "Rows in them.",
                self.consumed_rows.get(),
            ),
            (
                "logpond_handoff_unfit_lines_total",
                "Lines of text in them that none of the access-log formats declared for them fits.",
                self.unfit_lines.get(),
            ),
            (
                "logpond_handoff_panicked_lines_total",
                "Lines in them kept as text without fields, since reading them met a defect of this program.",
                self.panicked_lines.get(),
            ),
            (
                "logpond_handoff_copies_sent_total",
                "Copies of segments that other nodes have synced.",
                self.copies_sent.get(),
            ),
            (
                "logpond_handoff_copies_received_total",
                "Copies of segments that this node has synced for others.",
                self.copies_received.get(),
            ),
            (
                "logpond_handoff_released_total",
                "Journal files removed since enough nodes hold their rows.",
                self.released.get(),
            ),
            (
                "logpond_handoff_failures_total",
                "Steps of the hand-off that failed and are tried again.",
                self.failures.get(),
            ),
            (
                "logpond_handoff_conflicts_total",
                "Sources of which two nodes hold different rows.",
                self.conflicts.get(),
            ),
        ];
        out.counters(table);
        self.expose_repair(out);
    }

    fn expose_repair(&self, out: &mut Exposition) {
        let table = [
            (
                "logpond_repair_copies_total",
                "Copies of segments sent since there were too few.",
                self.repairs.get(),
            ),
            (
                "logpond_repair_given_up_total",
                "Segments given up since enough other nodes have what is in them.",
                self.given_up.get(),
            ),
            (
                "logpond_repair_trimmed_sources_total",
                "Sources left out of segments that were written anew, since enough other nodes have them.",
                self.trimmed_sources.get(),
            ),
            (
                "logpond_repair_trimmed_bytes_total",
                "Bytes by which segments became shorter when sources were left out of them.",
                self.trimmed_bytes.get(),
            ),
            (
                "logpond_repair_damaged_total",
                "Damaged segments given up since other nodes have what was in them.",
                self.damaged.get(),
            ),
        ];
        out.counters(table);
    }
}

impl Handoff {
    /// Shows the counters, and what waits, as long as there is somebody who has the hand-off.
    pub(super) fn expose(self: &Arc<Handoff>) {
        let handoff = Arc::downgrade(self);
        self.parts.metrics.register(Box::new(move |out| {
            if let Some(handoff) = handoff.upgrade() {
                handoff.counters.expose(out);
                handoff.expose_state(out);
            }
        }));
    }

    fn expose_state(&self, out: &mut Exposition) {
        let state = self.state();
        let bytes = i64::try_from(state.offers.bytes()).unwrap_or(i64::MAX);
        let age = state.offers.oldest_age_ms(self.now_ms()).unwrap_or(0);
        let gauges = [
            (
                "logpond_unreplicated_bytes",
                "Bytes of closed journal files of which this node has the only copy, as far as it knows.",
                bytes,
            ),
            (
                "logpond_unreplicated_age_ms",
                "Milliseconds since the oldest of them was closed.",
                i64::try_from(age).unwrap_or(i64::MAX),
            ),
            (
                "logpond_copies_lacking",
                "Sources of which too few nodes that are there have a copy.",
                i64::try_from(state.copies.lacking).unwrap_or(i64::MAX),
            ),
            (
                "logpond_copies_superfluous",
                "Sources of which more nodes have a copy than need to.",
                i64::try_from(state.copies.superfluous).unwrap_or(i64::MAX),
            ),
        ];
        out.gauges(gauges);
        drop(state);
        let name = "logpond_clock_ahead_ms";
        let help =
            "Milliseconds that the clock is ahead of the median of other nodes', if they say.";
        out.family(name, "gauge", help);
        if let Some(ahead_ms) = self.clock_ahead_ms() {
            out.sample(name, &[], ahead_ms);
        }
    }
}
