//! What a bucket holds: one chain of manifests per day (CLUSTER R14).
//!
//! Whoever writes to a bucket uploads a segment, which counts for nothing yet, and then *commits*: it
//! writes the next link of a chain, which lists what counts, under a name that must not be taken. Of two
//! writers one gets the name; the other reads what the first has written and decides again. No writer
//! is special, and none waits for another.
//!
//! ```text
//! m/2026-11-23/…017.json   lists A, B           ◀─ head: the greatest number
//!                 …018.json   lists C, E           C has the sources of A and B; E is new
//! segments/2026-11-23/<ULID>.parquet               A, B, C, E, and D, which nobody has committed
//! ```
//!
//! Invariants:
//! - The segments of a link share no source, so that readers who know nothing of sources count each
//!   row once.
//! - What a link lists, later links list too, in the same segments or in others, or say that it has
//!   expired.
//! - A source belongs to one day, whoever asks: that of its first row's receive time. Segments
//!   hold sources of one day only, so that writers of the same source meet in the same chain.
//! - Names are never reused while anybody may still write them in vain: a link that was written below
//!   the head counts for nothing, and its writer finds that out, since it reads the head again.

mod commit;
mod format;
mod link;
mod names;
#[cfg(test)]
mod tests;

pub use commit::{Commit, Outcome, ROUNDS_MAX, Step};
pub use format::LINK_BYTES_MAX;
pub use link::{Change, DroppedObject, Link, NoWriteReason, SEGMENTS_MAX, SegmentEntry, Verdict};
pub use names::{LINKS, SEGMENTS, link_name, parse_link_name, parse_segment_name, segment_name};
