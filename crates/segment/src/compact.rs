//! Which segments to merge, rewrite or retire. Plans only: the store carries them out.
//!
//! Invariants:
//! - A plan never loses a source: what a job takes away, its output or other live segments list.
//! - The inputs of a plan's jobs are disjoint, so jobs run in any order and any of them may fail.
//! - Planning and carrying out ends: a plan for what a plan has made is empty after a few rounds.
//! - A row is rewritten once per size tier, once when its bucket is over and once when it is cold.
//!
//! Segments are merged only within a *bucket*: a stretch of receive time. Otherwise a quiet
//! server's segments would span years, and rows could not be retired by age. While a bucket is
//! filling, neighbours of the same size tier are merged; when it is over, all that is left in it.

use std::collections::BTreeMap;

use logpond_record::{Id, Timestamp};

use crate::file::Manifest;
use crate::sources::SourceSet;

/// The smallest tier ends here; below, files differ less than their fixed costs.
const TIER_RAW_BYTES_BASE: u64 = 1 << 10;

/// Bytes of lines that a row counts as at least: it bounds the rows of a merged segment, whose directory
/// has an entry for each block of them, to 64 Mi where all lines are empty.
pub const ROW_RAW_BYTES_MIN: u64 = 16;

/// Segments of one tier differ by less than this factor.
const TIER_FACTOR_LOG2: u32 = 3;

/// A live segment, as its manifest describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Live {
    /// The segment.
    pub id: Id,
    /// The sources whose rows it holds, all of them.
    pub sources: SourceSet,
    /// Earliest event time.
    pub time_min: Timestamp,
    /// Latest event time.
    pub time_max: Timestamp,
    /// Earliest receive time.
    pub received_min: Timestamp,
    /// Latest receive time.
    pub received_max: Timestamp,
    /// Number of rows.
    pub rows: u64,
    /// Length of the file.
    pub bytes: u64,
    /// Bytes of the lines in it, each counted as at least [`ROW_RAW_BYTES_MIN`].
    pub raw_bytes: u64,
    /// Whether it is compressed for rest.
    pub cold: bool,
    /// True if a part of it cannot be read: another segment with the same sources counts before it.
    pub is_damaged: bool,
}

impl Live {
    /// What the manifest of a segment file of `bytes` bytes says.
    pub fn new(manifest: &Manifest, bytes: u64) -> Live {
        Live {
            id: manifest.id,
            sources: manifest.sources.iter().map(|entry| entry.source).collect(),
            time_min: manifest.time_min,
            time_max: manifest.time_max,
            received_min: manifest.received_min,
            received_max: manifest.received_max,
            rows: manifest.rows,
            bytes,
            raw_bytes: manifest
                .line_bytes
                .max(manifest.rows.saturating_mul(ROW_RAW_BYTES_MIN)),
            cold: manifest.cold,
            is_damaged: false,
        }
    }
}

/// When to merge what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Merged segments have no more raw bytes than this, single sources aside.
    pub target_raw_bytes: u64,
    /// So many neighbours of a tier are worth a merge, at least 2.
    pub fan_in_min: usize,
    /// The most inputs of a merge while a bucket is filling; bounds its memory.
    pub fan_in_max: usize,
    /// The most inputs of a merge of a bucket that is over: bounds the open files.
    pub pack_in_max: usize,
    /// Length of a bucket of receive time, in nanoseconds, at least 1.
    pub bucket_ns: i64,
    /// Segments this long without new rows are compressed for rest, in nanoseconds.
    pub cold_age_ns: i64,
}

impl Default for Settings {
    /// 1 GiB, 8 inputs, 64 to pack, a day, a day.
    fn default() -> Settings {
        Settings {
            target_raw_bytes: 1 << 30,
            fan_in_min: 8,
            fan_in_max: 8,
            pack_in_max: 64,
            bucket_ns: 86_400_000_000_000,
            cold_age_ns: 86_400_000_000_000,
        }
    }
}

/// Something to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Job {
    /// Retire a segment: others list all its sources. To be checked again with [`is_covered`] in
    /// the step that retires it (R5).
    Retire(Id),
    /// Write one segment with all sources of the inputs, then retire the inputs.
    Merge {
        /// The inputs, in order of event time. One input is rewritten.
        inputs: Vec<Id>,
        /// Whether to compress for rest.
        cold: bool,
        /// Whether inputs share sources; a shared source is taken from the first input that lists
        /// it and left out of the others.
        shared: bool,
    },
}

/// Whether other live segments list all sources of segment `id`, which is live itself. Damaged ones cover
/// nothing: what they list may not be there.
pub fn is_covered(id: Id, live: &[Live]) -> bool {
    let Some(segment) = live.iter().find(|segment| segment.id == id) else {
        return false;
    };
    let others = live.iter();
    let others = others.filter(|other| other.id != id && !other.is_damaged);
    covers(others, &segment.sources)
}

/// The segments that count, in the order given: together they list every source of the live ones,
/// and each source once wherever that is possible. The others are covered, and may be retired where
/// [`is_covered`] says so. A damaged one counts only for what no other lists.
///
/// It is possible whenever segments share sources as a merge shares them with its inputs: of two
/// segments either one contains the other, or a third one makes up for what the smaller lacks.
/// Where it is not, segments that share some sources are both among those that count, until
/// [`plan`] has made one of them.
pub fn cover(live: &[Live]) -> Vec<Id> {
    let shares = share_sources(live);
    let mut chosen: Vec<bool> = shares.iter().map(|shares| !shares).collect();
    let mut sharing: Vec<usize> = (0..live.len()).filter(|at| shares[*at]).collect();
    // The widest go first, so that a merge wins over its inputs; of equals the newest. Sound ones come
    // before all that are damaged.
    sharing.sort_by_key(|at| {
        let segment = &live[*at];
        let sizes = (segment.sources.len(), segment.rows, segment.id);
        (segment.is_damaged, std::cmp::Reverse(sizes))
    });
    let mut listed = SourceSet::new();
    let mut take = |wanted: &dyn Fn(&SourceSet, &SourceSet) -> bool| {
        for at in &sharing {
            let sources = &live[*at].sources;
            if !chosen[*at] && wanted(&listed, sources) {
                chosen[*at] = true;
                listed.union_with(sources);
            }
        }
    };
    take(&|listed, sources| listed.is_disjoint(sources));
    // What is left of sources that no choice of disjoint segments lists.
    take(&|listed, sources| !listed.contains_all(sources));
    let each = live.iter().zip(&chosen);
    each.filter(|(_, chosen)| **chosen)
        .map(|(segment, _)| segment.id)
        .collect()
}

/// What to do now, the most useful first.
pub fn plan(live: &[Live], now: Timestamp, settings: &Settings) -> Vec<Job> {
    let (mut jobs, left) = settle_shared(live, false);
    for (bucket, segments) in buckets(left, settings) {
        let end = bucket.saturating_add(1).saturating_mul(settings.bucket_ns);
        let cold_at = |s: &Live| s.received_max.saturating_add(settings.cold_age_ns);
        if now.0 < end {
            merge_tiers(&segments, settings, &mut jobs);
        } else {
            let is_cold = |s: &Live| cold_at(s) <= now;
            pack(&segments, settings, is_cold, &mut jobs);
        }
    }
    jobs
}

/// What to do to have as few segments as the settings allow, compressed for rest if `cold`.
pub fn plan_all(live: &[Live], cold: bool, settings: &Settings) -> Vec<Job> {
    let (mut jobs, left) = settle_shared(live, cold);
    for (_, segments) in buckets(left, settings) {
        pack(&segments, settings, |s| cold || s.cold, &mut jobs);
    }
    jobs
}

/// Plans for the segments that share sources with others; gives those that are left alone.
fn settle_shared(live: &[Live], cold: bool) -> (Vec<Job>, Vec<&Live>) {
    let shares = share_sources(live);
    let with = |wanted: bool| {
        let each = live.iter().zip(&shares);
        each.filter(move |(_, shares)| **shares == wanted)
            .map(|(segment, _)| segment)
    };
    let counting = cover(live);
    let (left, covered): (Vec<&Live>, Vec<&Live>) =
        with(true).partition(|segment| counting.contains(&segment.id));
    let covered = covered.iter().filter(|s| is_covered(s.id, live));
    let mut jobs: Vec<Job> = covered.map(|s| Job::Retire(s.id)).collect();
    let mut alone = merge_shared(left, cold, &mut jobs);
    alone.extend(with(false));
    (jobs, alone)
}

/// For each segment whether another one lists a source of it. Takes n log n steps, since a pond
/// may have thousands of segments and hardly ever any that share.
pub(crate) fn share_sources(live: &[Live]) -> Vec<bool> {
    let mut intervals: Vec<_> = live
        .iter()
        .enumerate()
        .flat_map(|(index, segment)| {
            let each = segment.sources.intervals();
            each.map(move |(incarnation, interval)| (incarnation, interval, index))
        })
        .collect();
    intervals.sort();
    let mut shares = vec![false; live.len()];
    let mut reach = None;
    for (incarnation, interval, index) in intervals {
        match reach {
            Some((reached, to, by)) if reached == incarnation && interval.from <= to => {
                shares[index] = true;
                shares[by] = true;
                if interval.to > to {
                    reach = Some((incarnation, interval.to, index));
                }
            }
            _ => reach = Some((incarnation, interval.to, index)),
        }
    }
    shares
}

/// Plans to merge segments that share sources; gives the rest.
fn merge_shared<'a>(mut left: Vec<&'a Live>, cold: bool, jobs: &mut Vec<Job>) -> Vec<&'a Live> {
    let mut alone = Vec::new();
    while let Some(first) = left.pop() {
        let mut group = vec![first];
        let mut sources = first.sources.clone();
        // What shares a source with one that was found may share others with the rest.
        while let Some(at) = left.iter().position(|s| !s.sources.is_disjoint(&sources)) {
            let found = left.swap_remove(at);
            sources.union_with(&found.sources);
            group.push(found);
        }
        if group.len() == 1 {
            alone.push(first);
        } else {
            sort_by_time(&mut group);
            jobs.push(Job::Merge {
                cold: cold || group.iter().all(|segment| segment.cold),
                inputs: group.iter().map(|segment| segment.id).collect(),
                shared: true,
            });
        }
    }
    alone
}

/// The segments by the bucket of their earliest receive time, each bucket in order of event time.
fn buckets<'a>(left: Vec<&'a Live>, settings: &Settings) -> BTreeMap<i64, Vec<&'a Live>> {
    let mut buckets: BTreeMap<i64, Vec<&Live>> = BTreeMap::new();
    for segment in left {
        let bucket = segment.received_min.0.div_euclid(settings.bucket_ns.max(1));
        buckets.entry(bucket).or_default().push(segment);
    }
    buckets
        .values_mut()
        .for_each(|segments| sort_by_time(segments));
    buckets
}

/// Plans to merge neighbours of the same tier where enough have come together.
fn merge_tiers(segments: &[&Live], settings: &Settings, jobs: &mut Vec<Job>) {
    let mut tiers: BTreeMap<u32, Vec<&Live>> = BTreeMap::new();
    for segment in segments.iter().filter(|segment| !segment.cold) {
        tiers
            .entry(tier(segment.raw_bytes))
            .or_default()
            .push(segment);
    }
    for members in tiers.values() {
        let mut rest = &members[..];
        while rest.len() >= settings.fan_in_min.max(2) {
            let count = fitting(rest, settings.fan_in_max, settings.target_raw_bytes);
            let (group, after) = rest.split_at(count);
            if group.len() >= settings.fan_in_min.max(2) {
                jobs.push(merge(group, false));
            }
            rest = after;
        }
    }
}

/// Plans to merge everything into as few segments as fit, and to rewrite what is to be cold.
fn pack(
    segments: &[&Live],
    settings: &Settings,
    is_cold: impl Fn(&Live) -> bool,
    jobs: &mut Vec<Job>,
) {
    let mut rest = segments;
    while !rest.is_empty() {
        let count = fitting(rest, settings.pack_in_max.max(2), settings.target_raw_bytes);
        let (group, after) = rest.split_at(count);
        let cold = group.iter().all(|segment| is_cold(segment));
        let rewritten = cold && !group[0].cold;
        if group.len() > 1 || rewritten {
            jobs.push(merge(group, cold));
        }
        rest = after;
    }
}

/// How many segments from the start fit into one of the target's size; at least 1.
fn fitting(segments: &[&Live], count_max: usize, target_raw_bytes: u64) -> usize {
    let mut raw_bytes = 0u64;
    let fits = segments.iter().take(count_max).take_while(|segment| {
        raw_bytes = raw_bytes.saturating_add(segment.raw_bytes);
        raw_bytes <= target_raw_bytes
    });
    fits.count().max(1)
}

fn merge(group: &[&Live], cold: bool) -> Job {
    Job::Merge {
        inputs: group.iter().map(|segment| segment.id).collect(),
        cold,
        shared: false,
    }
}

fn tier(raw_bytes: u64) -> u32 {
    (raw_bytes / TIER_RAW_BYTES_BASE)
        .checked_ilog2()
        .map_or(0, |log2| 1 + log2 / TIER_FACTOR_LOG2)
}

fn sort_by_time(segments: &mut [&Live]) {
    segments.sort_by_key(|segment| (segment.time_min, segment.time_max, segment.id));
}

fn covers<'a>(segments: impl Iterator<Item = &'a Live>, sources: &SourceSet) -> bool {
    let mut missing = sources.clone();
    for segment in segments {
        missing = missing.without(&segment.sources);
        if missing.is_empty() {
            return true;
        }
    }
    missing.is_empty()
}

#[cfg(test)]
mod tests;
