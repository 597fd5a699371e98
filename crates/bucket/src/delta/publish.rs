//! The log in the store: read, written, summed up and cut off behind.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use logpond_cluster::Day;
use logpond_cluster::chain::SegmentEntry;
use logpond_record::Timestamp;
use serde_json::{Value, json};

use super::actions::{Action, Commit};
use super::checkpoint;
use super::columns::Columns;
use super::names::{LAST_CHECKPOINT, LOG, LogName, before};
use super::table::{NextVersion, Table};
use crate::chains::Heads;
use crate::objects::{BucketError, CreateOutcome, FailureKind, ObjectEntry, Objects};
use crate::sweep::GRACE;

/// The longest version that is read and written: some kilobytes for each segment that comes, by how many columns
/// it has. An answer of a store may be no longer, so that whatever is written can be read.
const COMMIT_BYTES_MAX: u64 = 64 << 20;

/// The longest checkpoint that is read and written, for the same reason.
const CHECKPOINT_BYTES_MAX: u64 = 64 << 20;

/// The longest hint that is read.
const HINT_BYTES_MAX: u64 = 64 << 10;

/// How often a version is tried again because another server was faster, and the log read again because objects
/// of it have gone meanwhile.
const ROUNDS_MAX: usize = 8;

/// What a log may come to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Versions from one checkpoint to the next.
    pub(super) checkpoint_interval: u64,
    /// For how long versions can be read, by the store's clock: as long as their segments are there.
    pub(super) retention: Duration,
    /// After so many lines a version gets no more days.
    pub(super) actions_max: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            checkpoint_interval: 100,
            retention: GRACE,
            actions_max: 1_000,
        }
    }
}

/// Gives the columns of a segment of a day.
pub type ColumnsOf<'a> = dyn FnMut(Day, &SegmentEntry) -> Result<Columns, BucketError> + 'a;

/// A day that the table does not follow, as it has a segment that cannot be read.
#[derive(Debug)]
pub struct SkippedDay {
    /// The day.
    pub day: Day,
    /// Why.
    pub source: BucketError,
}

impl fmt::Display for SkippedDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the open table stays behind on {}", self.day)
    }
}

impl std::error::Error for SkippedDay {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// The result of a publication.
#[derive(Debug, Default)]
pub struct PublishReport {
    /// The version that was written.
    pub version: Option<u64>,
    /// Segments that came into the table.
    pub added: u64,
    /// Segments that went.
    pub removed: u64,
    /// Checkpoints written.
    pub checkpoints: u64,
    /// Fields that have columns in segments and none in the table; `None` if no version was written.
    pub left_out: Option<usize>,
    /// What could not be done.
    pub skipped: Vec<SkippedDay>,
    /// Whether nothing is left to do at once, but for these.
    pub is_whole: bool,
}

/// A version as it was read.
struct TableVersion {
    version: u64,
    table: Table,
    /// Of the object that makes it.
    stamp: Stamp,
}

/// An object of the same name is another one if it has not this length and time.
type Stamp = (u64, SystemTime);

/// Objects of the log in the order of versions.
type Entries = [(LogName, ObjectEntry)];

/// The table of a bucket, as one writer knows it.
pub struct OpenTable {
    objects: Arc<dyn Objects>,
    nonce: fn() -> u128,
    limits: Limits,
    /// The last version, if there is any. What was written here is read, too, before it is believed.
    known: Option<TableVersion>,
    /// The last checkpoint.
    checkpoint: Option<u64>,
}

impl OpenTable {
    /// The table of a bucket, of which nothing is known yet. `nonce` gives random numbers.
    pub fn new(objects: Arc<dyn Objects>, nonce: fn() -> u128) -> OpenTable {
        OpenTable::with_limits(objects, nonce, Limits::default())
    }

    pub(super) fn with_limits(
        objects: Arc<dyn Objects>,
        nonce: fn() -> u128,
        limits: Limits,
    ) -> OpenTable {
        OpenTable {
            objects,
            nonce,
            limits,
            known: None,
            checkpoint: None,
        }
    }

    /// Brings the table to what these heads list, unless it is further already; by one version, which may not be
    /// all of it. `columns` is asked once for each segment that comes.
    ///
    /// # Errors
    /// When the store fails, or the log is none that this program writes: it stays as it is.
    pub fn publish(
        &mut self,
        heads: &Heads,
        columns: &mut ColumnsOf<'_>,
        now: Timestamp,
    ) -> Result<PublishReport, BucketError> {
        let mut published = PublishReport::default();
        let mut learned = BTreeMap::new();
        let mut unwritten = None;
        for _ in 0..ROUNDS_MAX {
            self.catch_up()?;
            published.checkpoints += u64::from(self.sum_up_if_due(now)?);
            // Whoever loses a race asks for the same again.
            let mut columns = |day: Day, segment: &SegmentEntry| {
                if let Some(known) = learned.get(&segment.id) {
                    return Ok(Columns::clone(known));
                }
                let columns = columns(day, segment)?;
                learned.insert(segment.id, columns.clone());
                Ok(columns)
            };
            let known = self.known.as_ref();
            let (number, empty) = (known.map_or(0, |k| k.version + 1), Table::default());
            let table = known.map_or(&empty, |known| &known.table);
            let at = (now, (self.nonce)());
            let plan = table.plan(heads, &mut columns, at, self.limits.actions_max);
            let skipped = plan.skipped.into_iter();
            published.skipped = skipped
                .map(|(day, source)| SkippedDay { day, source })
                .collect();
            published.is_whole = plan.is_whole;
            let Some(next) = plan.next else {
                return Ok(published);
            };
            match self.write(number, &next) {
                Ok(true) => {
                    published.version = Some(number);
                    published.left_out = Some(next.left_out);
                    (published.added, published.removed) = (next.added, next.removed);
                    return Ok(published);
                }
                Ok(false) => {}
                // It may be there all the same, which reading tells.
                Err(error) if error.kind == FailureKind::Unavailable => unwritten = Some(error),
                Err(error) => return Err(error),
            }
        }
        published.is_whole = false;
        match unwritten {
            Some(error) => Err(error),
            None => Ok(published),
        }
    }

    /// The table as it is read now.
    #[cfg(test)]
    pub(super) fn read_all(&mut self) -> Table {
        self.catch_up().unwrap();
        self.known
            .take()
            .map(|known| known.table)
            .unwrap_or_default()
    }

    /// Writes a version, and says whether this was seen to succeed. What the version is then, reading tells.
    fn write(&self, number: u64, next: &NextVersion) -> Result<bool, BucketError> {
        let name = LogName::Commit(number).to_string();
        let body = Bytes::from(next.commit.to_text());
        if body.len() as u64 > COMMIT_BYTES_MAX {
            let what = "too many segments have come at once";
            return Err(unsupported("create", &name, what));
        }
        let created = self.objects.create(&name, body)?;
        Ok(created == CreateOutcome::New)
    }

    /// Reads what is new.
    fn catch_up(&mut self) -> Result<(), BucketError> {
        if let Some(known) = self.known.take() {
            let entries = self.list(known.version)?;
            if let Some(known) = self.follow(&entries, known)? {
                // Others sum up what is known here, too.
                self.checkpoint = last_checkpoint(&entries).max(self.checkpoint);
                self.known = Some(known);
                return Ok(());
            }
        }
        // What is known is not of this log, or of a part that has been cut off.
        for _ in 0..ROUNDS_MAX {
            if self.load()? {
                return Ok(());
            }
        }
        Err(BucketError {
            operation: "read",
            name: LOG.to_owned(),
            kind: FailureKind::Unavailable,
            source: "versions are missing from the log of the table".into(),
        })
    }

    /// Reads the log from its last checkpoint on; false if objects of it have gone.
    fn load(&mut self) -> Result<bool, BucketError> {
        (self.known, self.checkpoint) = (None, None);
        let mut entries = self.list(self.read_hint()?)?;
        let mut checkpoint = last_checkpoint(&entries);
        if checkpoint.is_none() {
            // There is none yet, or the hint is of another log.
            entries = self.list(0)?;
            checkpoint = last_checkpoint(&entries);
        }
        if entries.is_empty() {
            return Ok(true);
        }
        let (version, mut table) = (checkpoint.unwrap_or(0), Table::default());
        if checkpoint.is_some() {
            let Some(lines) = self.read_checkpoint(version)? else {
                return Ok(false);
            };
            lines.into_iter().for_each(|line| table.apply_action(line));
        }
        let (Some(commit), Some(stamp)) = (self.read_commit(version)?, stamp(&entries, version))
        else {
            return Ok(false);
        };
        match checkpoint {
            // The rest of it is in there.
            Some(_) => table.nonce = commit.nonce,
            None => table.apply(commit),
        }
        let known = TableVersion {
            version,
            table,
            stamp,
        };
        self.known = self.follow(&entries, known)?;
        self.checkpoint = checkpoint;
        Ok(self.known.is_some())
    }

    /// The version that the hint names, from which on there is a checkpoint.
    fn read_hint(&self) -> Result<u64, BucketError> {
        let hint = self.objects.get(LAST_CHECKPOINT, HINT_BYTES_MAX)?;
        let hint = hint.and_then(|text| serde_json::from_slice::<Value>(&text).ok());
        let version = hint.and_then(|hint| hint.get("version")?.as_u64());
        Ok(version.unwrap_or(0))
    }

    /// The objects of this version and later ones, in ascending order.
    fn list(&self, from: u64) -> Result<Vec<(LogName, ObjectEntry)>, BucketError> {
        let entries = self.objects.list(LOG, Some(&before(from)))?;
        let named = entries
            .into_iter()
            .filter_map(|entry| Some((LogName::parse(&entry.name)?, entry)));
        Ok(named.collect())
    }

    /// Goes on to the last version that is listed; `None` if the one that is known is none of this log, or some
    /// are missing.
    fn follow(
        &self,
        entries: &Entries,
        mut known: TableVersion,
    ) -> Result<Option<TableVersion>, BucketError> {
        if stamp(entries, known.version) != Some(known.stamp) {
            return Ok(None);
        }
        for (name, entry) in entries {
            let version = match name {
                LogName::Commit(version) if *version > known.version => *version,
                _ => continue,
            };
            if version != known.version + 1 {
                return Ok(None);
            }
            match self.read_commit(version)? {
                Some(commit) if commit.parent == known.table.nonce => known.table.apply(commit),
                _ => return Ok(None),
            }
            (known.version, known.stamp) = (version, (entry.bytes, entry.modified));
        }
        Ok(Some(known))
    }

    fn read_checkpoint(&self, version: u64) -> Result<Option<Vec<Action>>, BucketError> {
        let name = LogName::Checkpoint(version).to_string();
        let Some(body) = self.objects.get(&name, CHECKPOINT_BYTES_MAX)? else {
            return Ok(None);
        };
        let lines = checkpoint::read(body).map_err(|error| unsupported("read", &name, error))?;
        lines.map(Some).ok_or_else(|| foreign(&name))
    }

    fn read_commit(&self, version: u64) -> Result<Option<Commit>, BucketError> {
        let name = LogName::Commit(version).to_string();
        let Some(text) = self.objects.get(&name, COMMIT_BYTES_MAX)? else {
            return Ok(None);
        };
        let commit = Commit::from_text(&text);
        commit.map(Some).ok_or_else(|| foreign(&name))
    }

    /// Writes a checkpoint, and removes what is behind an older one, if it is time. So the log grows no further
    /// while it cannot be summed up.
    fn sum_up_if_due(&mut self, now: Timestamp) -> Result<bool, BucketError> {
        let Some(TableVersion { version, table, .. }) = &mut self.known else {
            return Ok(false);
        };
        let (version, since) = (*version, self.checkpoint.map_or(0, |last| last + 1));
        if (version + 1).saturating_sub(since) < self.limits.checkpoint_interval {
            return Ok(false);
        }
        table.forget_removed(now);
        let actions = table.actions(now);
        let name = LogName::Checkpoint(version).to_string();
        let file = checkpoint::write(&actions);
        let file = file.map_err(|error| unsupported("create", &name, error))?;
        if file.len() as u64 > CHECKPOINT_BYTES_MAX {
            return Err(unsupported(
                "create",
                &name,
                "the table has too many segments",
            ));
        }
        self.objects.create(&name, Bytes::from(file))?;
        let count = |is: fn(&Action) -> bool| actions.iter().filter(|action| is(action)).count();
        let hint = json!({
            "version": version,
            "size": actions.len(),
            "numOfAddFiles": count(|action| matches!(action, Action::Add(..))),
        });
        self.objects
            .put(LAST_CHECKPOINT, Bytes::from(hint.to_string()))?;
        self.checkpoint = Some(version);
        self.cut_off()?;
        Ok(true)
    }

    /// Removes the versions before a checkpoint that has been there for long.
    fn cut_off(&self) -> Result<(), BucketError> {
        // What was just written has the store's time.
        let entries = self.objects.list(LOG, None)?;
        let Some(time) = entries.iter().map(|entry| entry.modified).max() else {
            return Ok(());
        };
        let entries = entries.iter();
        let named = entries.filter_map(|entry| Some((LogName::parse(&entry.name)?, entry)));
        let named: Vec<(LogName, &ObjectEntry)> = named.collect();
        let Some(first) = first_kept(&named, time, self.limits.retention) else {
            return Ok(());
        };
        // The latest first: what is left if this is cut short has a gap behind it.
        for (_, entry) in named
            .iter()
            .rev()
            .filter(|(name, _)| name.version() < first)
        {
            self.objects.remove(&entry.name)?;
        }
        Ok(())
    }
}

/// The last version with a checkpoint.
fn last_checkpoint(entries: &Entries) -> Option<u64> {
    let mut names = entries.iter().rev().map(|(name, _)| *name);
    let last = names.find(|name| matches!(name, LogName::Checkpoint(_)));
    last.map(LogName::version)
}

/// Of the object that makes a version.
fn stamp(entries: &Entries, version: u64) -> Option<Stamp> {
    let mut commits = entries
        .iter()
        .filter(|(name, _)| *name == LogName::Commit(version));
    let (_, entry) = commits.next()?;
    Some((entry.bytes, entry.modified))
}

/// The last version with a checkpoint that is older than that.
fn first_kept(
    named: &[(LogName, &ObjectEntry)],
    time: SystemTime,
    retention: Duration,
) -> Option<u64> {
    let is_old = |entry: &ObjectEntry| {
        let age = time.duration_since(entry.modified);
        age.is_ok_and(|age| age >= retention)
    };
    let old = named
        .iter()
        .filter(|(name, entry)| matches!(name, LogName::Checkpoint(_)) && is_old(entry));
    old.map(|(name, _)| name.version()).max()
}

fn foreign(name: &str) -> BucketError {
    let what = "it is damaged, or another program or a later version of this one wrote it";
    unsupported("read", name, what)
}

fn unsupported(
    operation: &'static str,
    name: &str,
    source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> BucketError {
    BucketError {
        operation,
        name: name.to_owned(),
        kind: FailureKind::Unsupported,
        source: source.into(),
    }
}
