//! Journals among the files: exports of systemd's journal, and its own files. Each entry is a record.

use std::fmt;
use std::io::Read;
use std::path::Path;

use logpond_protocol::intake::journal_entry::Sealer;
use logpond_protocol::intake::journal_file::MAGIC;
use logpond_record::limits::LINE_BYTES_MAX;
use logpond_record::{Batch, Entry, EntryKind, Id, Incarnation, Labels, line_of};

use super::Search;
use crate::commands::query::sink::Sink;
use logpond_host::terminal::NamedFaults;
use logpond_ship::import::source;
use logpond_ship::import::{Entries, ImportError};
use logpond_ship::input;

/// Starts of journals: the addresses that an export has before the fields of an entry, and journal files.
const STARTS: [&[u8]; 4] = [b"__CURSOR=", b"__REALTIME_TIMESTAMP=", b"__SEQNUM=", MAGIC];

/// The most bytes of a start.
const START_BYTES: usize = 24;

/// True if a file is a journal. A file that cannot be read is none.
pub(super) fn is_journal(path: &Path) -> bool {
    let mut start = Vec::with_capacity(START_BYTES);
    let limit = u64::try_from(START_BYTES).unwrap_or(u64::MAX);
    let read = input::open(path).and_then(|file| file.take(limit).read_to_end(&mut start));
    read.is_ok() && STARTS.iter().any(|known| start.starts_with(known))
}

/// Searches a journal. A fault makes the answer incomplete.
pub(super) fn read(search: &mut Search<'_>, path: &Path, labels: &Labels, sink: &mut Sink) {
    let mut entries = JournalEntries {
        sealer: Sealer::new(LINE_BYTES_MAX),
        search,
        labels,
        sink,
        input: String::new(),
        count: 0,
        faults: NamedFaults::default(),
    };
    let read = source::read(path, &mut entries);
    let is_incomplete = read.is_err() || entries.faults.count() > 0;
    if let Err(error) = read {
        logpond_host::terminal::complain(&error);
    }
    search.unreadable += usize::from(is_incomplete);
    search.bytes += input::plain_length(path).unwrap_or(0);
}

/// Entries that are records of a search.
struct JournalEntries<'s, 'q> {
    search: &'s mut Search<'q>,
    labels: &'s Labels,
    sink: &'s mut Sink,
    sealer: Sealer,
    input: String,
    count: u64,
    faults: NamedFaults,
}

impl JournalEntries<'_, '_> {
    /// Searches a sealed entry, as a server would read it.
    fn take(&mut self, batch: &Batch) {
        for held in batch.iter() {
            let (kind, envelope, raw) = line_of(EntryKind::Enveloped, held);
            let search = &mut *self.search;
            let entry = Entry {
                id: Id::new(
                    u64::try_from(search.received.unix_ms()).unwrap_or(0),
                    Incarnation(0),
                    search.number,
                ),
                received: search.received,
                kind,
                labels: self.labels,
                envelope,
                raw,
            };
            search.number += 1;
            let record = search.parser.parse(&entry);
            if let Err(failure) = search.record(record, self.sink) {
                search.failure = Some(failure);
            }
        }
    }

    fn name(&mut self, what: &dyn fmt::Display) {
        self.faults.add(&format_args!("{}: {what}", self.input));
    }
}

impl Entries for JournalEntries<'_, '_> {
    fn begin(&mut self, path: &Path) {
        self.input = path.display().to_string();
        self.count = 0;
    }

    fn count(&self) -> u64 {
        self.count
    }

    fn add<'f>(
        &mut self,
        fields: impl Iterator<Item = (&'f str, &'f [u8])> + Clone,
    ) -> Result<(), ImportError> {
        self.count += 1;
        // A failure was kept, and is said at the end.
        if self.search.failure.is_some() || self.search.is_done {
            return Ok(());
        }
        let mut batch = Batch::new(EntryKind::Enveloped, Labels::new());
        match self.sealer.seal(fields, &mut batch) {
            Ok(_) => self.take(&batch),
            Err(reason) => {
                let count = self.count;
                self.name(&format!("entry {count} is left out: {reason}"));
            }
        }
        Ok(())
    }

    fn reject(&mut self, reason: &dyn fmt::Display) {
        let next = self.count + 1;
        self.name(&format!("entry {next} is left out: {reason}"));
    }

    fn damage(&mut self, what: &dyn fmt::Display) {
        self.name(what);
    }

    fn lack(&mut self, what: &str) {
        self.name(&what);
    }

    fn miss(&mut self, names: &[String]) {
        self.name(&format!("values are missing of {}", names.join(", ")));
    }
}
