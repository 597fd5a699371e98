//! What the table says of the rows of a segment, so that engines need not open it.

use logpond_cluster::chain::SegmentEntry;
use logpond_record::Timestamp;
use serde_json::json;

const MILLISECOND_NS: i64 = 1_000_000;

/// The number of rows, and the bounds of their times, outward to milliseconds, which is all that
/// readers take.
pub(super) fn stats(segment: &SegmentEntry) -> String {
    let ((first, last), (from, to)) = (segment.time, segment.received);
    json!({
        "numRecords": segment.rows,
        "minValues": { "_time": millisecond(first), "_received": millisecond(from) },
        "maxValues": {
            "_time": millisecond(round_up(last)),
            "_received": millisecond(round_up(to)),
        },
        "nullCount": { "_time": 0, "_received": 0 },
    })
    .to_string()
}

fn round_up(time: Timestamp) -> Timestamp {
    time.saturating_add(MILLISECOND_NS - 1)
}

/// A time in RFC 3339, rounded down.
fn millisecond(time: Timestamp) -> String {
    let text = time.to_string();
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, "000"));
    format!("{whole}.{}Z", fraction.get(..3).unwrap_or("000"))
}
