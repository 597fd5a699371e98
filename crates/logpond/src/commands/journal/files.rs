//! Journal files, exports and JSON that are read here, without a server: each entry becomes the record
//! that a server would have of it.

use std::path::{Path, PathBuf};

use logpond_protocol::intake::Parser;
use logpond_protocol::intake::journal_entry::Sealer;
use logpond_record::limits::LINE_BYTES_MAX;
use logpond_record::{
    Batch, Entry, EntryKind, Id, Incarnation, Labels, Record, TimeRange, Timestamp, line_of,
};
use logpond_search::order::{Direction, Key};
use logpond_search::query::Filter;
use logpond_search::{Matcher, Scratch};

use super::source::RecordQuery;
use crate::commands::Failure;
use crate::commands::query::HELD_BYTES_MAX;
use crate::commands::selection::now;
use logpond_client::Trailer;
use logpond_host::terminal::NamedFaults;
use logpond_render::Row;
use logpond_ship::import::source::{files_of, read as read_file, verify as verify_file};
use logpond_ship::import::{Entries, ImportError};

/// The files that the options name.
pub(super) fn named(
    patterns: &[String],
    directory: Option<&Path>,
) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    for pattern in patterns {
        if !pattern.contains(['*', '?', '[']) || Path::new(pattern).exists() {
            found.push(PathBuf::from(pattern));
            continue;
        }
        let before = found.len();
        for path in glob::glob(pattern)? {
            found.push(path?);
        }
        if found.len() == before {
            return Err(format!("no files are named {pattern}").into());
        }
    }
    if let Some(directory) = directory {
        let is_ours = ["journal", "segments"]
            .iter()
            .all(|name| directory.join(name).is_dir());
        if is_ours {
            let directory = directory.display();
            return Err(format!(
                "{directory} is a data directory of Logpond: its server answers (--addr), which \
                 `logpond serve --data {directory}` starts"
            )
            .into());
        }
        found.extend(files_of(directory)?);
    }
    Ok(found)
}

/// The rows that were read.
pub(super) struct FileRows {
    /// In the order that was asked for.
    pub(super) rows: Vec<Row<'static>>,
    pub(super) trailer: Trailer,
}

/// Reads the wanted entries of all files.
pub(super) fn read(paths: &[PathBuf], wanted: &RecordQuery<'_>) -> Result<FileRows, Failure> {
    let mut reading = FileReader::new(wanted)?;
    let mut failed = 0;
    for path in paths {
        match read_file(path, &mut reading) {
            Ok(()) => {}
            Err(error) => {
                logpond_host::terminal::complain(&error);
                failed += 1;
            }
        }
        if let Some(failure) = reading.failure.take() {
            return Err(failure);
        }
    }
    if failed == paths.len() && failed > 0 {
        return Err("none of the files could be read".into());
    }
    reading.sort();
    reading.cut();
    let rows: Vec<Row<'static>> = reading.rows.into_iter().map(|(_, row)| row).collect();
    Ok(FileRows {
        trailer: Trailer {
            rows: rows.len() as u64,
            complete: reading.faults.count() == 0 && failed == 0,
            newest: reading.newest.map(|time| time.to_string()),
            ..Trailer::default()
        },
        rows,
    })
}

/// Reads all of a file; says what is wrong with it, and whether nothing is.
pub(super) fn check(path: &Path) -> Result<bool, Failure> {
    let wanted = RecordQuery {
        filter: &Filter::All,
        range: TimeRange::ALL,
        direction: Direction::Forward,
        behind: None,
        // Reading is enough.
        limit: Some(0),
    };
    let mut reading = FileReader::new(&wanted)?;
    if let Err(error) = verify_file(path, &mut reading) {
        logpond_host::terminal::complain(&error);
        return Ok(false);
    }
    Ok(reading.faults.count() == 0)
}

struct FileReader<'w> {
    wanted: &'w RecordQuery<'w>,
    matcher: Matcher,
    scratch: Scratch,
    sealer: Sealer,
    parser: Parser,
    received: Timestamp,
    number: u64,
    input: String,
    count: u64,
    /// What was not read, or not whole.
    faults: NamedFaults,
    rows: Vec<(Key, Row<'static>)>,
    bytes: usize,
    newest: Option<Timestamp>,
    failure: Option<Failure>,
}

impl<'w> FileReader<'w> {
    fn new(wanted: &'w RecordQuery<'w>) -> Result<FileReader<'w>, Failure> {
        Ok(FileReader {
            wanted,
            matcher: Matcher::new(wanted.filter).map_err(|error| error.to_string())?,
            scratch: Scratch::new(),
            sealer: Sealer::new(LINE_BYTES_MAX),
            parser: Parser::new(),
            received: now(),
            number: 0,
            input: String::new(),
            count: 0,
            faults: NamedFaults::default(),
            rows: Vec::new(),
            bytes: 0,
            newest: None,
            failure: None,
        })
    }

    /// Reads what was sealed as a server would.
    fn take(&mut self, batch: &Batch) {
        let labels = Labels::new();
        for held in batch.iter() {
            let (kind, envelope, raw) = line_of(EntryKind::Enveloped, held);
            let entry = Entry {
                id: Id::new(0, Incarnation(0), self.number),
                received: self.received,
                kind,
                labels: &labels,
                envelope,
                raw,
            };
            self.number += 1;
            let record = self.parser.parse(&entry).into_owned();
            self.see(&record);
        }
    }

    fn see(&mut self, record: &Record<'_>) {
        self.newest = self.newest.max(Some(record.time));
        let key = Key {
            time: record.time,
            id: record.id,
        };
        let direction = self.wanted.direction;
        let is_behind = |behind: Key| direction.compare(key, behind).is_gt();
        let is_wanted = self.wanted.range.contains(record.time)
            && self.wanted.behind.is_none_or(is_behind)
            && self.matcher.matches(record, &mut self.scratch);
        if !is_wanted {
            return;
        }
        let row = Row::from_record(record, true).into_owned();
        self.bytes += row.bytes();
        self.rows.push((key, row));
        if self.bytes > HELD_BYTES_MAX {
            self.make_room();
        }
    }

    /// Forgets what is beyond the limit; without one there is no room.
    fn make_room(&mut self) {
        self.sort();
        self.cut();
        self.bytes = self.rows.iter().map(|(_, row)| row.bytes()).sum();
        if self.bytes > HELD_BYTES_MAX / 2 {
            let what = "the entries take more than 128 MB, too much to put them in order: choose \
                        fewer of them, or bring the files to a server with `logpond import`";
            self.failure = Some(what.into());
        }
    }

    fn sort(&mut self) {
        let direction = self.wanted.direction;
        self.rows
            .sort_by(|(a, _), (b, _)| direction.compare(*a, *b));
    }

    fn cut(&mut self) {
        if let Some(limit) = self.wanted.limit {
            self.rows
                .truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        }
    }

    fn name(&mut self, what: &str) {
        self.faults.add(&format_args!("{}: {what}", self.input));
    }
}

impl Entries for FileReader<'_> {
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
        // What there is no room for was said; the rest is passed over.
        if self.failure.is_some() {
            return Ok(());
        }
        let mut batch = Batch::new(EntryKind::Enveloped, Labels::new());
        match self.sealer.seal(fields, &mut batch) {
            Ok(_) => self.take(&batch),
            Err(reason) => {
                let count = self.count;
                self.name(&format!("entry {count} cannot be read: {reason}"));
            }
        }
        Ok(())
    }

    fn reject(&mut self, reason: &dyn std::fmt::Display) {
        self.count += 1;
        let count = self.count;
        self.name(&format!("entry {count} cannot be read: {reason}"));
    }

    fn damage(&mut self, what: &dyn std::fmt::Display) {
        self.name(&what.to_string());
    }

    fn lack(&mut self, what: &str) {
        self.name(what);
    }

    fn miss(&mut self, names: &[String]) {
        let (count, names) = (self.count + 1, names.join(", "));
        self.name(&format!(
            "entry {count}: {names} was left out when it was written"
        ));
    }
}
