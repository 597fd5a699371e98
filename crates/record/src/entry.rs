//! What an intake hands to the journal: raw entries in batches.
//!
//! The journal keeps what was received, byte for byte; parsing into [`crate::Record`]s happens
//! when entries are read. So no parser's mistake can lose a byte.

use crate::id::Id;
use crate::time::Timestamp;

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
}

impl EntryKind {
    /// The kind with this number.
    pub fn from_u8(number: u8) -> Option<EntryKind> {
        [EntryKind::Line, EntryKind::Json, EntryKind::Syslog]
            .into_iter()
            .find(|k| *k as u8 == number)
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
    /// How to read it.
    pub kind: EntryKind,
    /// Fields declared for it.
    pub labels: &'a Labels,
    /// What was received, without framing.
    pub raw: &'a [u8],
}

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
        self.payload.extend_from_slice(raw);
        self.lengths.push(raw.len() as u32);
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
