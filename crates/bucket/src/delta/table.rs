//! A version of the table, and what the next one is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use logpond_cluster::Day;
use logpond_cluster::chain::{Link, SegmentEntry};
use logpond_record::{Id, Timestamp};

use super::actions::{Action, AddAction, Commit, Metadata, random_id};
use super::columns::Columns;
use super::schema::TableSchema;
use super::stats::stats;
use crate::chains::Heads;

/// For how long is said which segments were removed, in milliseconds.
const TOMBSTONE_TIME_MS: i64 = 24 * 3600 * 1000;

/// Where a segment is in the table.
type Key = (Day, Id);

/// A version of the table. The one before the first has no metadata.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Table {
    /// Random: which version it is, whatever its number.
    pub(super) nonce: u128,
    metadata: Option<Metadata>,
    /// The head of each day that it was made from, and when.
    heads: BTreeMap<Day, (u64, i64)>,
    live: BTreeMap<Key, AddAction>,
    removed: BTreeMap<Key, i64>,
    /// Segments have the same columns mostly: these are in memory once.
    columns: BTreeSet<Arc<Columns>>,
}

/// What is to be done about a version.
#[derive(Debug)]
pub(super) struct Plan<E> {
    /// What follows it, if it is not up to date.
    pub(super) next: Option<NextVersion>,
    /// Whether that has all that the heads have.
    pub(super) is_whole: bool,
    /// Days that stay as they are, since the columns of a segment could not be learned.
    pub(super) skipped: Vec<(Day, E)>,
}

/// A version to be written.
#[derive(Debug)]
pub(super) struct NextVersion {
    pub(super) commit: Commit,
    /// Fields that have columns in segments and none in the table.
    pub(super) left_out: usize,
    /// Segments that come.
    pub(super) added: u64,
    /// Segments that go.
    pub(super) removed: u64,
}

impl Table {
    /// Takes in what a version has beyond this one.
    pub(super) fn apply(&mut self, commit: Commit) {
        self.nonce = commit.nonce;
        for action in commit.actions {
            self.apply_action(action);
        }
    }

    /// Takes in a line of the log.
    pub(super) fn apply_action(&mut self, action: Action) {
        match action {
            Action::Protocol => {}
            Action::Metadata(metadata) => self.metadata = Some(metadata),
            Action::Head {
                day,
                number,
                since_ms,
            } => {
                self.heads.insert(day, (number, since_ms));
            }
            Action::Add(day, id, mut added) => {
                added.columns = self.intern(added.columns);
                self.removed.remove(&(day, id));
                self.live.insert((day, id), added);
            }
            Action::Remove { day, id, since_ms } => {
                self.live.remove(&(day, id));
                self.removed.insert((day, id), since_ms);
            }
        }
    }

    fn intern(&mut self, columns: Arc<Columns>) -> Arc<Columns> {
        if let Some(known) = self.columns.get(&columns) {
            return Arc::clone(known);
        }
        // Those of segments that have gone.
        self.columns.retain(|known| Arc::strong_count(known) > 1);
        self.columns.insert(Arc::clone(&columns));
        columns
    }

    /// All that it has, as a checkpoint has it.
    pub(super) fn actions(&self, now: Timestamp) -> Vec<Action> {
        let mut actions = vec![Action::Protocol];
        actions.extend(self.metadata.clone().map(Action::Metadata));
        let heads = self.heads.iter();
        actions.extend(heads.map(|(day, (number, since_ms))| Action::Head {
            day: *day,
            number: *number,
            since_ms: *since_ms,
        }));
        let live = self.live.iter();
        actions.extend(live.map(|((day, id), added)| Action::Add(*day, *id, added.clone())));
        let oldest = now.unix_ms().saturating_sub(TOMBSTONE_TIME_MS);
        let removed = self.removed.iter().filter(|(_, since)| **since > oldest);
        actions.extend(removed.map(|((day, id), since_ms)| Action::Remove {
            day: *day,
            id: *id,
            since_ms: *since_ms,
        }));
        actions
    }

    /// Forgets what was removed long ago.
    pub(super) fn forget_removed(&mut self, now: Timestamp) {
        let oldest = now.unix_ms().saturating_sub(TOMBSTONE_TIME_MS);
        self.removed.retain(|_, since| *since > oldest);
    }

    /// What brings the table to what these heads list; of each day all of it or nothing, until there are
    /// `actions_max` lines.
    pub(super) fn plan<E>(
        &self,
        heads: &Heads,
        columns: &mut dyn FnMut(Day, &SegmentEntry) -> Result<Columns, E>,
        (now, nonce): (Timestamp, u128),
        actions_max: usize,
    ) -> Plan<E> {
        let at_ms = now.unix_ms();
        let (mut actions, mut skipped, mut is_whole) = (Vec::new(), Vec::new(), true);
        for (day, head) in heads {
            if actions.len() >= actions_max {
                is_whole = false;
                break;
            }
            match self.plan_day(*day, head, columns, at_ms) {
                Ok(lines) => actions.extend(lines),
                Err(error) => skipped.push((*day, error)),
            }
        }
        let next = (!actions.is_empty()).then(|| self.follow(actions, at_ms, nonce));
        Plan {
            next,
            is_whole,
            skipped,
        }
    }

    /// The version with these changes of segments.
    fn follow(&self, actions: Vec<Action>, at_ms: i64, nonce: u128) -> NextVersion {
        let (mut added, mut removed) = (Vec::new(), BTreeSet::new());
        for action in &actions {
            match action {
                Action::Add(_, _, segment) => added.push((&*segment.columns, segment.rows)),
                Action::Remove { day, id, .. } => drop(removed.insert((*day, *id))),
                _ => {}
            }
        }
        let stays = self.live.iter().filter(|(key, _)| !removed.contains(key));
        let stays = stays.map(|(_, segment)| (&*segment.columns, segment.rows));
        let schema = TableSchema::of(stays.chain(added.iter().copied()));
        let counts = (added.len() as u64, removed.len() as u64);
        NextVersion {
            commit: Commit {
                nonce,
                parent: self.nonce,
                at_ms,
                actions: self.with_metadata(schema.text, actions, (at_ms, nonce)),
            },
            left_out: schema.left_out,
            added: counts.0,
            removed: counts.1,
        }
    }

    /// What brings a day to what this head lists; nothing if the table has a later one.
    fn plan_day<E>(
        &self,
        day: Day,
        head: &Link,
        columns: &mut dyn FnMut(Day, &SegmentEntry) -> Result<Columns, E>,
        at_ms: i64,
    ) -> Result<Vec<Action>, E> {
        let known = self.heads.get(&day).map_or(0, |(number, _)| *number);
        if head.number <= known {
            return Ok(Vec::new());
        }
        let live = self.live.range((day, Id(0))..=(day, Id(u128::MAX)));
        let gone = live.filter(|((_, id), _)| head.segment(*id).is_none());
        let mut actions: Vec<Action> = gone
            .map(|((_, id), _)| Action::Remove {
                day,
                id: *id,
                since_ms: at_ms,
            })
            .collect();
        for segment in &head.segments {
            if !self.live.contains_key(&(day, segment.id)) {
                let added = AddAction {
                    bytes: segment.bytes,
                    rows: segment.rows,
                    since_ms: at_ms,
                    stats: stats(segment),
                    columns: Arc::new(columns(day, segment)?),
                };
                actions.push(Action::Add(day, segment.id, added));
            }
        }
        // A link that lists the same is no reason for a version.
        if !actions.is_empty() {
            actions.push(Action::Head {
                day,
                number: head.number,
                since_ms: at_ms,
            });
        }
        Ok(actions)
    }

    /// These lines, behind those about the table where these are new.
    fn with_metadata(
        &self,
        schema: String,
        lines: Vec<Action>,
        (at_ms, nonce): (i64, u128),
    ) -> Vec<Action> {
        let mut actions = Vec::new();
        match &self.metadata {
            Some(known) if known.schema == schema => {}
            Some(known) => actions.push(Action::Metadata(Metadata {
                schema,
                ..known.clone()
            })),
            None => {
                actions.push(Action::Protocol);
                actions.push(Action::Metadata(Metadata {
                    id: random_id(nonce),
                    schema,
                    created_ms: at_ms,
                }));
            }
        }
        actions.extend(lines);
        actions
    }

    /// The segments that count.
    #[cfg(test)]
    pub(super) fn live(&self) -> impl Iterator<Item = Key> {
        self.live.keys().copied()
    }

    /// The head of each day.
    #[cfg(test)]
    pub(super) fn heads(&self) -> BTreeMap<Day, u64> {
        self.heads
            .iter()
            .map(|(day, (number, _))| (*day, *number))
            .collect()
    }
}
