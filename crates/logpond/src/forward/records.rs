//! Records on their way out, in the two forms that servers and spools take.

use std::borrow::Cow;

use logpond_protocol::intake::push::entries;
use logpond_record::{Batch, EntryKind, Labels};

use super::cutter::count_lines;

/// Records of one batch.
#[derive(Clone, Copy)]
pub(super) enum Records<'a> {
    /// Lines with their ends, each a record.
    Lines(&'a [u8]),
    /// Entries of kind [`EntryKind::Enveloped`].
    Entries(&'a Batch),
}

impl<'a> Records<'a> {
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
