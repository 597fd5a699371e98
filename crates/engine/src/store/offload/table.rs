//! The bucket as a table for other engines, kept up beside all else: what goes wrong with it holds up nothing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use logpond_bucket::{
    BucketError, Columns, FailureKind, Heads, LOG, Objects, OpenTable, PublishReport,
};
use logpond_cluster::Day;
use logpond_cluster::chain::{SegmentEntry, segment_name};
use logpond_record::cast;

use super::guarded;
use super::passes::Offload;
use super::remote::Remote;
use crate::store::live::{LiveSegment, local};
use logpond_host::clock;
use logpond_host::telemetry::warn;
use logpond_host::terminal::with_causes;

/// The table, and when it is to be brought up to date.
pub(super) struct TableKeeper {
    table: OpenTable,
    /// At most so often.
    interval: Duration,
    tried_at: Option<Instant>,
    /// The heads that it was made from.
    done: BTreeMap<Day, u64>,
    /// Whether there is more to do at once.
    is_unfinished: bool,
    /// What was complained about last.
    complaint: Option<String>,
}

fn numbers(heads: &Heads) -> BTreeMap<Day, u64> {
    heads
        .iter()
        .map(|(day, link)| (*day, link.number))
        .collect()
}

impl TableKeeper {
    /// A table that is brought up to date at most so often.
    pub(super) fn new(objects: Arc<dyn Objects>, interval: Duration) -> TableKeeper {
        TableKeeper {
            table: OpenTable::new(objects, || clock::random().unwrap_or_default()),
            interval,
            tried_at: None,
            done: BTreeMap::new(),
            is_unfinished: false,
            complaint: None,
        }
    }

    fn is_due(&self, heads: &Heads) -> bool {
        let is_time =
            self.is_unfinished || self.tried_at.is_none_or(|at| at.elapsed() >= self.interval);
        is_time && self.done != numbers(heads)
    }

    /// Warns of a failure, once while it stays the same kind of trouble, and of its end.
    fn note(&mut self, complaint: Option<String>) {
        match &complaint {
            Some(what) if self.complaint.is_none() => warn(&format!("{what}; trying again")),
            None if self.complaint.is_some() => warn("the open table is up to date again"),
            _ => {}
        }
        self.complaint = complaint;
    }
}

impl Offload {
    /// Brings the table to what the chains list, if it is time and something has changed.
    pub(super) fn keep_table(&mut self) {
        let Some(mut keeper) = self.table.take() else {
            return;
        };
        if keeper.is_due(self.chains.heads()) {
            let result = guarded(("keep up", LOG), || self.publish_table(&mut keeper));
            // What the stop has cut short is no failure.
            if !self.is_stopping() {
                self.note_table(&mut keeper, result);
            }
        }
        self.table = Some(keeper);
    }

    fn publish_table(&self, keeper: &mut TableKeeper) -> Result<PublishReport, BucketError> {
        keeper.tried_at = Some(Instant::now());
        keeper.is_unfinished = false;
        let (opened, segments) = (self.board.opened(), self.parts.live.snapshot());
        let mut columns = |day: Day, listed: &SegmentEntry| {
            let here = local(&segments).find(|segment| segment.file().manifest().id == listed.id);
            columns_of(opened.get(&listed.id).or(here), &self.remote, day, listed)
        };
        let now = (self.parts.clock)();
        keeper.table.publish(self.chains.heads(), &mut columns, now)
    }

    fn note_table(&self, keeper: &mut TableKeeper, result: Result<PublishReport, BucketError>) {
        let complaint = match result {
            Ok(published) => {
                let counters = &self.counters;
                counters
                    .table_versions
                    .add(u64::from(published.version.is_some()));
                if let Some(left_out) = published.left_out {
                    counters.table_left_out.set(cast::low_i64(left_out));
                }
                keeper.is_unfinished = !published.is_whole;
                if published.is_whole && published.skipped.is_empty() {
                    keeper.done = numbers(self.chains.heads());
                }
                published
                    .skipped
                    .first()
                    .map(|skipped| with_causes(skipped))
            }
            Err(error) => Some(with_causes(&error)),
        };
        self.counters
            .table_failures
            .add(u64::from(complaint.is_some()));
        keeper.note(complaint);
    }
}

/// The columns of a segment, from what is open of it or from the bucket.
fn columns_of(
    open: Option<&Arc<LiveSegment>>,
    remote: &Remote,
    day: Day,
    listed: &SegmentEntry,
) -> Result<Columns, BucketError> {
    let unreadable = |what: String| BucketError {
        operation: "read",
        name: segment_name(day, listed.id),
        kind: FailureKind::Unavailable,
        source: what.into(),
    };
    let opened;
    let segment: &LiveSegment = match open {
        Some(segment) => segment,
        None => {
            opened = remote.open(day, listed).map_err(unreadable)?;
            &opened
        }
    };
    let directory = segment.file().read_directory();
    let directory = directory.map_err(|error| unreadable(with_causes(&error)))?;
    Ok(Columns::from(&directory.schema))
}
