//! What an intake hands to the journal: raw entries in batches.
//!
//! The journal keeps what was received, byte for byte; parsing into [`crate::Record`]s happens
//! when entries are read. So no parser's mistake can lose a byte.

use crate::cast;
use crate::envelope::{self, Envelope};
use crate::id::Id;
use crate::time::Timestamp;
use crate::value::Value;

/// How the bytes of an entry are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum EntryKind {
    /// A line of text whose form is recognised from its content.
    Line = 0,
    /// A JSON object that was pushed as a structured record; it is known to be valid.
    Json = 1,
    /// A syslog message, RFC 5424 or RFC 3164.
    Syslog = 2,
    /// One of the others with a time and fields beside its line, see [`crate::envelope`].
    Enveloped = 3,
    /// A line of text whose form is not looked for: what its sender said of it counts, whatever
    /// stands in it.
    Text = 4,
}

impl EntryKind {
    /// The kind with this number.
    pub fn from_u8(number: u8) -> Option<EntryKind> {
        let all = [
            EntryKind::Line,
            EntryKind::Json,
            EntryKind::Syslog,
            EntryKind::Enveloped,
            EntryKind::Text,
        ];
        all.into_iter().find(|k| *k as u8 == number)
    }
}

/// Fields that a sender or listener declares for all records of a batch (`hostname`, `file`).
pub type Labels = Vec<(Box<str>, Box<str>)>;

/// One raw entry of the journal, with its identity.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// The record's id.
    pub id: Id,
    /// When it was received.
    pub received: Timestamp,
    /// How to read it; never [`EntryKind::Enveloped`].
    pub kind: EntryKind,
    /// Fields declared for all of its batch.
    pub labels: &'a Labels,
    /// What its sender said of it alone.
    pub envelope: Envelope<'a>,
    /// The line: what was received, without framing and envelope.
    pub raw: &'a [u8],
}

/// Takes what a batch of this kind holds apart: the kind of the line, its envelope and the line.
///
/// An envelope that cannot be opened is no reason to lose a line: all of it is one, of text.
pub fn line_of(kind: EntryKind, held: &[u8]) -> (EntryKind, Envelope<'_>, &[u8]) {
    let plain = |kind| (kind, Envelope::default(), held);
    match kind {
        EntryKind::Enveloped => envelope::open(held).unwrap_or(plain(EntryKind::Line)),
        kind => plain(kind),
    }
}

/// From this length on a batch grows by a quarter, not to the double: what senders say once for many lines makes
/// large batches of small bodies.
const LARGE_BYTES: usize = 8 << 20;

/// Room for what an entry has beside its line; an entry that has more has a large batch grow to the double.
const ENVELOPE_BYTES: usize = 64 << 10;

/// Entries of one kind with the same labels, received together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// How to read the entries.
    pub kind: EntryKind,
    /// Fields declared for all of them.
    pub labels: Labels,
    payload: Vec<u8>,
    lengths: Vec<u32>,
}

impl Batch {
    /// An empty batch.
    pub fn new(kind: EntryKind, labels: Labels) -> Batch {
        Batch {
            kind,
            labels,
            payload: Vec::new(),
            lengths: Vec::new(),
        }
    }

    /// Appends an entry. It must be no longer than [`crate::limits::LINE_BYTES_MAX`].
    pub fn push(&mut self, raw: &[u8]) {
        debug_assert!(raw.len() <= crate::limits::LINE_BYTES_MAX);
        self.make_room(raw.len());
        self.payload.extend_from_slice(raw);
        self.lengths.push(cast::low_u32(raw.len()));
    }

    /// Appends an entry of a batch of kind [`EntryKind::Enveloped`]: a line of this kind with what
    /// its sender said of it. Gives how many fields had to be left out, see [`envelope::seal`].
    pub fn push_enveloped<'f>(
        &mut self,
        kind: EntryKind,
        time: Option<Timestamp>,
        fields: impl IntoIterator<Item = (&'f str, &'f Value<'f>)>,
        line: &[u8],
    ) -> usize {
        debug_assert!(self.kind == EntryKind::Enveloped);
        self.make_room(line.len() + ENVELOPE_BYTES);
        let from = self.payload.len();
        let left_out = envelope::seal(kind, time, fields, line, &mut self.payload);
        self.lengths.push(cast::low_u32(self.payload.len() - from));
        left_out
    }

    fn make_room(&mut self, bytes: usize) {
        let length = self.payload.len();
        if length >= LARGE_BYTES && self.payload.capacity() - length < bytes {
            self.payload.reserve_exact(bytes.max(length / 4));
        }
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.lengths.len()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.lengths.is_empty()
    }

    /// Bytes of all entries together.
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }

    /// Length of each entry in bytes.
    pub fn lengths(&self) -> &[u32] {
        &self.lengths
    }

    /// The entries in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = &self.payload[..];
        self.lengths.iter().map(move |&length| {
            let (entry, after) = rest.split_at(length as usize);
            rest = after;
            entry
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_back_as_they_went_in() {
        let mut batch = Batch::new(EntryKind::Line, Labels::new());
        let entries: [&[u8]; 4] = [b"a", b"", b"\0%\xff", b"z\r"];
        entries.iter().for_each(|e| batch.push(e));
        assert!(batch.iter().eq(entries));
        assert_eq!((batch.len(), batch.payload().len()), (4, 6));
    }
}
