//! Records on their way out, in the two forms that servers and spools take.

use std::borrow::Cow;
use std::time::Duration;

use logpond_protocol::intake::assembly::{self, Assembler};
use logpond_protocol::intake::container::Format;
use logpond_protocol::intake::push::entries;
use logpond_record::limits::LINE_BYTES_DEFAULT;
use logpond_record::{Batch, EntryKind, Labels};

use super::Totals;
use super::cutter::count_lines;

/// Records of one batch.
#[derive(Clone, Copy)]
pub(super) enum Records<'a> {
    /// Lines with their ends, each a record.
    Lines(&'a [u8]),
    /// Entries of kind [`EntryKind::Enveloped`].
    Entries(&'a Batch),
}

/// Lines of which some are longer than a server takes by default, as entries, with the long ones cut as those of
/// containers are; `None` if there is no such line.
pub(super) fn cut(lines: &[u8], totals: &mut Totals) -> Option<Batch> {
    let whole = lines.strip_suffix(b"\n").unwrap_or(lines);
    let each = || whole.split(|byte| *byte == b'\n');
    // Most batches are shorter than such a line.
    if lines.len() <= LINE_BYTES_DEFAULT || each().all(|line| line.len() <= LINE_BYTES_DEFAULT) {
        return None;
    }
    let mut batch = Batch::new(EntryKind::Enveloped, Labels::new());
    let mut lines = Assembler::new(assembly::Settings::of(Format::Lines));
    for line in each() {
        lines.push(line, 0, Duration::ZERO, &mut |record| {
            record.push_to(&mut batch);
        });
    }
    totals.count(&lines.take_counts());
    Some(batch)
}

impl<'a> Records<'a> {
    /// These lines, or the entries that were made of them.
    pub(super) fn of(lines: &'a [u8], cut: &'a Option<Batch>) -> Records<'a> {
        cut.as_ref().map_or(Records::Lines(lines), Records::Entries)
    }

    /// How many there are.
    pub(super) fn count(&self) -> u64 {
        match self {
            Records::Lines(lines) => count_lines(lines),
            Records::Entries(batch) => batch.len() as u64,
        }
    }

    /// Bytes of all of them.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Records::Lines(lines) => lines.len(),
            Records::Entries(batch) => batch.payload().len(),
        }
    }

    /// The same as a batch of a journal.
    pub(super) fn to_batch(self, labels: Labels) -> Batch {
        match self {
            Records::Lines(lines) => {
                let mut batch = Batch::new(EntryKind::Line, labels);
                let whole = lines.strip_suffix(b"\n").unwrap_or(lines);
                let each = whole.split(|byte| *byte == b'\n');
                each.for_each(|line| batch.push(line));
                batch
            }
            Records::Entries(entries) => {
                let mut batch = entries.clone();
                batch.labels = labels;
                batch
            }
        }
    }

    /// The same as the body of a push.
    pub(super) fn to_body(self) -> Body<'a> {
        match self {
            Records::Lines(lines) => Body::of_lines(Cow::Borrowed(lines)),
            Records::Entries(batch) => Body::of_entries(batch.iter()),
        }
    }
}

/// The body of a push.
pub(super) struct Body<'a> {
    /// Its `Content-Type`.
    pub(super) content_type: &'static str,
    /// Its bytes.
    pub(super) bytes: Cow<'a, [u8]>,
}

impl<'a> Body<'a> {
    /// Lines with their ends.
    pub(super) fn of_lines(bytes: Cow<'a, [u8]>) -> Body<'a> {
        Body {
            content_type: "text/plain",
            bytes,
        }
    }

    /// Entries of kind [`EntryKind::Enveloped`].
    pub(super) fn of_entries<'e>(each: impl Iterator<Item = &'e [u8]>) -> Body<'static> {
        Body {
            content_type: entries::CONTENT_TYPE,
            bytes: Cow::Owned(entries::encode(each)),
        }
    }
}
