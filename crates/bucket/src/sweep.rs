//! Removing what no chain needs any more.
//!
//! Ages are by the store's own clock, so that no writer's wrong one removes what another has
//! just uploaded and not yet committed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use logpond_cluster::Day;
use logpond_cluster::chain::{
    Change, LINKS, SEGMENTS, link_name, parse_link_name, parse_segment_name, segment_name,
};
use logpond_record::{Id, Timestamp};

use crate::chains::{Chains, Heads};
use crate::objects::{BucketError, FailureKind, ObjectEntry, Objects};
use crate::reconcile::{ReconcileReport, reconcile};

/// How long what nobody lists stays: an upload must be committed within half of this, and whoever
/// still reads what was replaced has as long.
pub const GRACE: Duration = Duration::from_secs(24 * 3600);

/// How long links stay that are below the head: nobody reads them but who has just listed them, and each
/// listing has all that there are.
const LINK_GRACE: Duration = Duration::from_secs(600);

/// The most orphans of a day that are removed at a time; the others are found again.
const ORPHANS_MAX: usize = 1_000;

/// The object that is written to ask the store for the time.
const CLOCK: &str = "probe/clock";

/// The numbers of objects that a sweep removed.
#[derive(Debug, Default)]
pub struct SweepReport {
    /// Links below a head.
    pub links: u64,
    /// Segments that had been replaced or had expired.
    pub dropped: u64,
    /// Segments that were uploaded and never listed.
    pub orphans: u64,
    /// The segments that no link knew.
    pub reconciled: ReconcileReport,
    /// The store's time when the sweep began; none before the first.
    pub time: Option<SystemTime>,
}

/// Removes what has been old links, dropped segments and orphans for `grace`, which is [`GRACE`] but in
/// tests. Two sweepers do no harm to each other.
///
/// # Errors
/// When the store fails; what was not removed is found again.
pub fn sweep(
    objects: &dyn Objects,
    chains: &mut Chains,
    grace: Duration,
    now: Timestamp,
) -> Result<SweepReport, BucketError> {
    let time = store_time(objects)?;
    let is_old_link = |entry: &ObjectEntry| entry.is_older(time, grace.min(LINK_GRACE));
    // Segments before heads: what is listed by then was there when the segments were.
    let segments = objects.list(SEGMENTS, None)?;
    let reconciled = reconcile(objects, chains, &segments, now)?;
    let mut swept = SweepReport {
        links: remove_links(objects, chains.heads(), is_old_link)?,
        reconciled,
        time: Some(time),
        ..SweepReport::default()
    };
    let old = segments.iter().filter(|entry| entry.is_older(time, grace));
    let old = old.filter_map(|entry| parse_segment_name(&entry.name));
    // Only copies of listed segments are removed, and objects that nobody can read.
    let ReconcileReport {
        held, unreadable, ..
    } = &swept.reconciled;
    let old = old.filter(|orphan| held.contains(orphan) || unreadable.contains_key(orphan));
    let orphans = orphans(chains.heads(), old);
    let there = segments
        .iter()
        .filter_map(|entry| parse_segment_name(&entry.name));
    swept.dropped = remove_dropped(objects, chains, &there.collect(), grace, now)?;
    swept.orphans = remove_orphans(objects, chains, orphans, now)?;
    Ok(swept)
}

/// The store's time, or a little less: an object is written and its time read. Ages of objects are to be
/// measured by it, not by this machine's clock.
///
/// # Errors
/// When the store fails.
pub fn store_time(objects: &dyn Objects) -> Result<SystemTime, BucketError> {
    objects.put(CLOCK, Bytes::from_static(b"the time"))?;
    let entries = objects.list("probe/", None)?;
    let clock = entries.into_iter().find(|entry| entry.name == CLOCK);
    clock.map(|entry| entry.modified).ok_or(BucketError {
        operation: "list",
        name: CLOCK.to_owned(),
        kind: FailureKind::Unavailable,
        source: "what was just written is not listed".into(),
    })
}

fn is_orphan(heads: &Heads, day: Day, id: Id) -> bool {
    heads
        .get(&day)
        .is_none_or(|head| head.segment(id).is_none() && !head.is_dropped(id))
}

/// Those of some objects that no link knows.
fn orphans(heads: &Heads, all: impl Iterator<Item = (Day, Id)>) -> BTreeMap<Day, Vec<Id>> {
    let mut orphans: BTreeMap<Day, Vec<Id>> = BTreeMap::new();
    for (day, id) in all.filter(|(day, id)| is_orphan(heads, *day, *id)) {
        orphans.entry(day).or_default().push(id);
    }
    orphans
}

/// Removes objects that no link lists. First a link says that they are dropped: their writers may come back at
/// any moment, and would list what is just being removed.
fn remove_orphans(
    objects: &dyn Objects,
    chains: &mut Chains,
    orphans: BTreeMap<Day, Vec<Id>>,
    now: Timestamp,
) -> Result<u64, BucketError> {
    let mut removed = 0;
    for (day, mut ids) in orphans {
        ids.truncate(ORPHANS_MAX);
        chains.commit(day, Change::Drop(ids.clone()), now)?;
        let head = chains.heads().get(&day).cloned();
        for id in ids {
            if head.as_ref().is_some_and(|head| head.is_dropped(id)) {
                objects.remove(&segment_name(day, id))?;
                removed += 1;
            }
        }
    }
    Ok(removed)
}

/// Removes links that have been below a head for long: they are old, and so is the one behind them.
fn remove_links(
    objects: &dyn Objects,
    heads: &Heads,
    is_old: impl Fn(&ObjectEntry) -> bool,
) -> Result<u64, BucketError> {
    let entries = objects.list(LINKS, None)?;
    let mut removed = 0;
    for pair in entries.windows(2) {
        let (Some((day, number)), Some((of, _))) = (
            parse_link_name(&pair[0].name),
            parse_link_name(&pair[1].name),
        ) else {
            continue;
        };
        let is_below = heads.get(&day).is_some_and(|head| number < head.number);
        if day == of && is_below && is_old(&pair[1]) {
            objects.remove(&link_name(day, number))?;
            removed += 1;
        }
    }
    Ok(removed)
}

/// Removes segments that were dropped long ago, and forgets those of even longer ago: while one is remembered
/// nobody lists it again, whom a sweeper that stood still might remove it from.
fn remove_dropped(
    objects: &dyn Objects,
    chains: &mut Chains,
    there: &BTreeSet<(Day, Id)>,
    grace: Duration,
    now: Timestamp,
) -> Result<u64, BucketError> {
    let grace_ns = i64::try_from(grace.as_nanos()).unwrap_or(i64::MAX);
    let mut removed = 0;
    for (day, head) in chains.heads().clone() {
        let dropped_for = |periods: i64| {
            let age_ns = grace_ns.saturating_mul(periods);
            let old = head.dropped.iter();
            old.filter(move |dropped| dropped.since.saturating_add(age_ns) <= now)
                .map(|dropped| dropped.id)
        };
        for id in dropped_for(1).filter(|id| there.contains(&(day, *id))) {
            objects.remove(&segment_name(day, id))?;
            removed += 1;
        }
        let forgotten: Vec<Id> = dropped_for(2).collect();
        if !forgotten.is_empty() {
            chains.commit(day, Change::Forget(forgotten), now)?;
        }
    }
    Ok(removed)
}
