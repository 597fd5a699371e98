//! The journal: where records are made durable before they are sorted into segments.
//!
//! Invariants:
//! - What [`Writer::sync`] returned for is read back after any crash, exactly once, in order.
//! - Nothing beyond the synced length of an open file is shown to readers (R1).
//! - A file that could not be synced is never synced again: its good prefix is copied to a new
//!   file (R1).
//! - A closed file never changes (R2); its number is dense within its incarnation. It ends with an
//!   end mark, so that one that was cut anywhere is told from a whole one.
//! - Each frame states how far the file was synced when it was written. What is lost before that
//!   is damage. What is lost behind the greatest statement was never known to be synced: it is cut
//!   and is no damage, so a power loss alone never looks like damage. Whatever was acknowledged as
//!   durable and is followed by a readable frame or mark is before a statement.
//! - No bytes make reading fail: what does not check out is skipped, named and counted.
//!
//! ```text
//! append ─▶ <incarnation>-<sequence>.open ──end, sync, rename──▶ ….journal ─▶ consumed, removed
//!               │ error: cut at the synced length, go on with the next sequence
//!               └ a crash: recover cuts what was not synced and is lost, and closes it
//! ```
//!
//! The layout is in `docs/format/journal.md`.

mod frame;
mod damage;
mod open_error;
mod read;
mod span;
mod window;
mod visible;
mod salvage;
mod write_error;
mod writer;
mod recover;
mod unclosed;
mod upload;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod format_tests;
#[cfg(test)]
mod named_tests;
#[cfg(test)]
mod runs_tests;
#[cfg(test)]
mod upload_tests;

pub use damage::{DAMAGES_LISTED_MAX, Damage, Damages};
pub use frame::{
    Codec, END_MARK_BYTES, END_MARKER, FILE_HEADER_BYTES, FILE_MAGIC, FORMAT_VERSION,
    FRAME_BODY_BYTES_MAX, FRAME_ENTRIES_MAX, FRAME_HEADER_BYTES, FRAME_MARKER,
    FRAME_PAYLOAD_BYTES_MAX, FRAME_PAYLOAD_BYTES_TARGET, FRAME_VERSION, FileHeader,
    FileHeaderError, LABELS_BYTES_MAX, LABELS_MAX, Reason,
};
pub use open_error::OpenError;
pub use read::{Entries, Frame, Frames, JournalFile, ScanResult, fuzz_frames};
pub use recover::{CutRange, RecoverError, RecoveryReport, UnusableFile, recover, set_aside};
pub use span::Span;
pub use upload::{UploadError, UploadPart, UploadReader, UploadWriter, fuzz_uploads};
pub use visible::{ClosedFile, OpenState, ReleasedBatches, Snapshot, Summary, Visible};
pub use write_error::WriteError;
pub use writer::{
    AppendReceipt, FILE_ROWS_MAX, NAMED_BATCHES_MAX, Settings, UNCLOSED_FILES_MAX, Writer,
};

use logpond_record::{Incarnation, SourceId};

/// The directory of the journal, below the data directory.
pub const DIRECTORY: &str = "journal";

/// Suffix of a file that is being written, or was when its process ended.
pub const SUFFIX_OPEN: &str = ".open";
/// Suffix of a file that never changes again.
pub const SUFFIX_CLOSED: &str = ".journal";
/// Suffix of the copy of a good prefix, before it is complete.
pub const SUFFIX_SALVAGE: &str = ".salvage";
/// Suffix of a file in which nothing readable was found; it is kept for people to look at.
pub const SUFFIX_QUARANTINED: &str = ".quarantined";

/// The path of a source's file with this suffix.
pub fn path(source: SourceId, suffix: &str) -> String {
    format!(
        "{DIRECTORY}/{}-{:016}{suffix}",
        source.incarnation, source.sequence
    )
}

/// Reads a file name (without the directory) back into its source and suffix.
///
/// `None` for names that the journal does not give.
pub fn parse_name(name: &str) -> Option<(SourceId, &'static str)> {
    let (stem, suffix) = [
        SUFFIX_OPEN,
        SUFFIX_CLOSED,
        SUFFIX_SALVAGE,
        SUFFIX_QUARANTINED,
    ]
    .into_iter()
    .find_map(|suffix| Some((name.strip_suffix(suffix)?, suffix)))?;
    let (incarnation, sequence) = stem.split_once('-')?;
    let lower_hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    let well_formed = incarnation.len() == 32
        && incarnation.bytes().all(lower_hex)
        && (16..=20).contains(&sequence.len())
        && sequence.bytes().all(|b| b.is_ascii_digit());
    let source = SourceId {
        incarnation: incarnation.parse::<Incarnation>().ok()?,
        sequence: sequence.parse().ok()?,
    };
    // One name for one source: a longer form with leading zeros is not ours.
    (well_formed && path(source, suffix).ends_with(name)).then_some((source, suffix))
}
