//! What a node says of how it is doing, to other nodes and through them to operators.

use serde::{Deserialize, Serialize};

/// The longest text of it.
pub(super) const BYTES_MAX: u64 = 64 << 10;

/// How a node is doing. Counts and sizes are of this node alone, totals since its process started.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeStatus {
    /// Live segments.
    pub segments: u64,
    /// Rows in them.
    pub segment_rows: u64,
    /// Bytes of their files.
    pub segment_bytes: u64,
    /// Room on the disk.
    pub free_bytes: u64,
    /// Size of the disk.
    pub total_bytes: u64,
    /// Whether that is too little room for copies of other nodes' records.
    pub is_full: bool,
    /// Closed journal files of which this node has the only copy, as far as it knows.
    pub waiting_files: u64,
    /// Bytes of them.
    pub waiting_bytes: u64,
    /// Milliseconds since the oldest of them was closed.
    pub waiting_ms: u64,
    /// Journal bytes closed and offered to stores.
    pub offered_bytes: u64,
    /// Those of them of which there are enough copies now.
    pub consumed_bytes: u64,
    /// Bytes offered a second, over the last minute.
    pub offered_bytes_per_s: f64,
    /// Bytes consumed a second, over the last minute.
    pub consumed_bytes_per_s: f64,
    /// Of a store: what it takes to make segments.
    pub service: ServiceTimes,
    /// Sources of which too few nodes have a copy, as of this node's last look.
    pub copies_lacking: u64,
    /// Sources of which more have one than need to.
    pub copies_superfluous: u64,
    /// Of a node that is leaving: what is left here.
    pub leaving: Option<LeavingStatus>,
    /// Milliseconds from the acknowledgement of a canary record of this node until another node's
    /// answer had it: of the last one, if there are any.
    pub canary_ms: Option<f64>,
    /// Milliseconds that this node's clock is ahead of the median of the others', to about a second;
    /// negative if it is behind. Nothing if none was heard of lately.
    pub clock_ahead_ms: Option<i64>,
}

/// What it took to make segments of the last claims.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServiceTimes {
    /// Claims of which this is said.
    pub claims: u64,
    /// Journal bytes of a claim, on average.
    pub claim_bytes: f64,
    /// Seconds for one, from the claim until all copies are synced, on average.
    pub seconds: f64,
    /// Of these, seconds that a claim takes however small it is, as far as the sizes of the claims
    /// tell.
    pub fixed_seconds: f64,
    /// Squared coefficient of variation of these times, but for what follows from the sizes.
    pub variation: f64,
    /// Squared coefficient of variation of the times between claims.
    pub arrival_variation: f64,
    /// Bytes of lines in a byte of journal.
    pub raw_per_journal_byte: f64,
    /// Bytes of segments made of a byte of lines, before merges.
    pub stored_per_raw_byte: f64,
}

/// What is left on a node that is leaving.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LeavingStatus {
    /// Journal files.
    pub journal_files: u64,
    /// Segments.
    pub segments: u64,
    /// Sources of which too few others have a copy.
    pub lacking: u64,
}
