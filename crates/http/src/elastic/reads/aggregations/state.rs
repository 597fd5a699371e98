//! The state of aggregations while records are added.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use logpond_engine::query::Key as Place;
use logpond_host::memory::Charge;
use serde_json::Value as Json;

use super::super::json::bad;
use super::columns::RowView;
use super::keys::Key;
use super::sums::Sums;
use super::text_buckets::TextBuckets;
use super::top_metrics::FirstRows;
use super::tuples::COMBINATIONS_MAX;
use super::{Aggregation, BUCKETS_MAX, Kind, Tree};
use crate::error::ApiError;

/// The most groups before an order and a size choose among them.
pub(in super::super) const GROUPS_MAX: u64 = 1_000_000;

/// The most values that are held for percentiles and for distinct values.
pub(in super::super) const VALUES_MAX: u64 = 20_000_000;

/// About the memory of a group without what is in it: its bucket, and its share of the maps that lead to it.
const GROUP_BYTES: usize = 480;

/// The states of the aggregations of a level.
#[derive(Debug, Default)]
pub(super) struct Level {
    pub(super) states: Vec<State>,
}

#[derive(Debug)]
pub(super) enum State {
    Buckets(BucketMap),
    Metric(MetricState),
    Top(TopPlaces),
}

/// The places of the first hits of a bucket.
#[derive(Debug, Default)]
pub(super) struct TopPlaces {
    pub(super) places: Vec<Place>,
    /// How many hits there are.
    pub(super) records: u64,
}

/// Buckets by their keys; an aggregation has keys of one kind.
#[derive(Debug, Default)]
pub(super) struct BucketMap {
    pub(super) numbers: BTreeMap<i64, Bucket>,
    pub(super) texts: TextBuckets,
    /// Those of which only the first ones are kept.
    pub(super) tuples: BTreeMap<Box<[u8]>, Bucket>,
}

impl BucketMap {
    /// The bucket of a place in a list, or an empty one.
    pub(super) fn take(&mut self, at: usize, children: &Tree) -> Bucket {
        let key = i64::try_from(at).unwrap_or(i64::MAX);
        let found = self.numbers.remove(&key);
        found.unwrap_or_else(|| Bucket::empty(children))
    }

    /// The first and the last number, if these two are to be among them.
    pub(super) fn extent(&self, low: Option<i64>, high: Option<i64>) -> Option<(i64, i64)> {
        let first = self.numbers.keys().next().copied();
        let last = self.numbers.keys().next_back().copied();
        let first = first.into_iter().chain(low).min();
        Some((first?, last.into_iter().chain(high).max()?))
    }

    /// Adds an empty bucket, unless there is one of this number.
    pub(super) fn add_empty(&mut self, number: i64, children: &Tree) {
        let entry = self.numbers.entry(number);
        entry.or_insert_with(|| Bucket::empty(children));
    }
}

#[derive(Debug)]
pub(super) struct Bucket {
    pub(super) records: u64,
    pub(super) level: Level,
}

impl Bucket {
    /// A bucket without records.
    pub(super) fn empty(children: &Tree) -> Bucket {
        Bucket {
            records: 0,
            level: Level::new(&children.list),
        }
    }

    /// Adds another bucket, whose memory was counted.
    pub(super) fn join(&mut self, other: Bucket, children: &Tree) {
        // Nothing new is taken.
        let mut usage = Usage {
            groups: u64::MAX,
            values: u64::MAX,
            ..Usage::default()
        };
        self.records += other.records;
        self.level.merge(&children.list, other.level, &mut usage);
    }
}

/// The state of a metric.
#[derive(Debug)]
pub(super) enum MetricState {
    /// How many values there are.
    Count(u64),
    Sums(Sums),
    /// Hashes of values.
    Distinct(BTreeSet<u128>),
    Values(Vec<f64>),
    /// The sums of values by their weights, and of the weights.
    Weighted(Sums, Sums),
    /// The values of the first records of an order.
    First(FirstRows),
}

/// The memory and the counts that states take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) groups: u64,
    pub(super) values: u64,
    pub(super) bytes: usize,
    /// True if a record has more combinations of values than are counted.
    pub(super) has_many_combinations: bool,
}

impl Usage {
    /// Both together.
    pub(super) fn plus(self, other: Usage) -> Usage {
        Usage {
            groups: self.groups + other.groups,
            values: self.values + other.values,
            bytes: self.bytes + other.bytes,
            has_many_combinations: self.has_many_combinations || other.has_many_combinations,
        }
    }

    /// Refuses what is too much.
    ///
    /// # Errors
    /// With the bound.
    pub(super) fn check(self) -> Result<(), ApiError> {
        if self.groups > GROUPS_MAX {
            return Err(bad(format!(
                "the aggregations have more than {GROUPS_MAX} groups before [order] and [size] choose: narrow the \
                 query, or use a field with fewer values"
            )));
        }
        if self.has_many_combinations {
            return Err(bad(format!(
                "a record has lists with more than {COMBINATIONS_MAX} combinations of values: take fewer fields"
            )));
        }
        if self.values > VALUES_MAX {
            return Err(bad(format!(
                "exact percentiles and cardinalities hold at most {VALUES_MAX} values: narrow the query"
            )));
        }
        Ok(())
    }
}

impl Level {
    /// Nothing yet.
    pub(super) fn new(list: &[Aggregation]) -> Level {
        let state = |one: &Aggregation| match &one.kind {
            Kind::Buckets(_) => State::Buckets(BucketMap::default()),
            Kind::Metric(metric) => State::Metric(metric.empty()),
            Kind::TopHits(_) => State::Top(TopPlaces::default()),
        };
        Level {
            states: list.iter().map(state).collect(),
        }
    }

    /// Adds a record. Recursion is bounded by the depth of aggregations.
    pub(super) fn add(&mut self, list: &[Aggregation], row: &RowView<'_>, usage: &mut Usage) {
        for (one, state) in list.iter().zip(&mut self.states) {
            match (&one.kind, state) {
                (Kind::Buckets(buckets), State::Buckets(map)) => {
                    let kept_max = buckets.kept_max();
                    buckets.assign(row, &mut |key| {
                        let found = bucket(map, (key, kept_max), &one.children, usage);
                        let Some(bucket) = found else { return };
                        bucket.records += 1;
                        bucket.level.add(&one.children.list, row, usage);
                    });
                }
                (Kind::Metric(metric), State::Metric(state)) => {
                    let before = state.held();
                    metric.add(row, state);
                    let more = state.held() - before;
                    usage.values += more as u64;
                    usage.bytes += more * 2 * size_of::<u128>();
                }
                (Kind::TopHits(top), State::Top(found)) => {
                    usage.bytes += top.add(row, found) * size_of::<Place>();
                }
                // States are made of the kinds.
                _ => {}
            }
        }
    }
}

/// The bucket of a key, unless so many are kept before it.
fn bucket<'m>(
    map: &'m mut BucketMap,
    (key, kept_max): (Key<'_>, Option<usize>),
    children: &Tree,
    usage: &mut Usage,
) -> Option<&'m mut Bucket> {
    let mut make = |key_bytes: usize| {
        usage.groups += 1;
        usage.bytes += GROUP_BYTES + key_bytes + children.list.len() * size_of::<State>();
        Bucket::empty(children)
    };
    match key {
        Key::Number(number) => Some(map.numbers.entry(number).or_insert_with(|| make(0))),
        Key::Text(text) => Some(map.texts.entry(text, || make(text.len()))),
        Key::TooMany => {
            usage.has_many_combinations = true;
            None
        }
        Key::Tuple(tuple) => {
            let kept_max = kept_max.unwrap_or(usize::MAX);
            if !map.tuples.contains_key(tuple) {
                let last = map.tuples.last_key_value();
                let is_behind = last.is_some_and(|(last, _)| **last < *tuple);
                if is_behind && map.tuples.len() >= kept_max {
                    return None;
                }
                map.tuples.insert(tuple.into(), make(tuple.len()));
                keep_first(&mut map.tuples, kept_max, usage);
            }
            map.tuples.get_mut(tuple)
        }
    }
}

/// Drops the last buckets, so that no more than some are kept.
fn keep_first(tuples: &mut BTreeMap<Box<[u8]>, Bucket>, kept_max: usize, usage: &mut Usage) {
    while tuples.len() > kept_max && tuples.pop_last().is_some() {
        usage.groups = usage.groups.saturating_sub(1);
    }
}

impl Level {
    /// The state of one aggregation whose buckets are known.
    pub(super) fn of_buckets(numbers: BTreeMap<i64, Bucket>) -> Level {
        let map = BucketMap {
            numbers,
            ..BucketMap::default()
        };
        Level {
            states: vec![State::Buckets(map)],
        }
    }
}

impl Level {
    /// Adds the states of other records, and the memory and the counts of these. Recursion is bounded by the
    /// depth of aggregations.
    pub(super) fn merge(&mut self, list: &[Aggregation], other: Level, usage: &mut Usage) {
        for ((one, state), other) in list.iter().zip(&mut self.states).zip(other.states) {
            match (&one.kind, state, other) {
                (Kind::Buckets(buckets), State::Buckets(map), State::Buckets(more)) => {
                    map.merge(&one.children, more, usage);
                    if let Some(kept_max) = buckets.kept_max() {
                        keep_first(&mut map.tuples, kept_max, usage);
                    }
                }
                (Kind::Metric(_), State::Metric(state), State::Metric(more)) => {
                    usage.values -= state.merge(more) as u64;
                }
                (Kind::TopHits(top), State::Top(found), State::Top(more)) => top.merge(found, more),
                // States are made of the kinds.
                _ => {}
            }
        }
    }
}

impl BucketMap {
    fn merge(&mut self, children: &Tree, other: BucketMap, usage: &mut Usage) {
        let mut join = |mine: &mut Bucket, more: Bucket| {
            // It was counted in both.
            usage.groups -= 1;
            mine.records += more.records;
            mine.level.merge(&children.list, more.level, usage);
        };
        join_maps(&mut self.numbers, other.numbers, &mut join);
        join_maps(&mut self.tuples, other.tuples, &mut join);
        for (text, more) in other.texts.into_pairs() {
            let mut more = Some(more);
            let mine = self
                .texts
                .entry(&text, || more.take().unwrap_or_else(|| unreachable!()));
            if let Some(more) = more {
                join(mine, more);
            }
        }
    }
}

/// Adds the buckets of another map: `join` adds one to that of the same key.
fn join_maps<K: Ord>(
    mine: &mut BTreeMap<K, Bucket>,
    other: BTreeMap<K, Bucket>,
    join: &mut impl FnMut(&mut Bucket, Bucket),
) {
    for (key, more) in other {
        match mine.entry(key) {
            Entry::Vacant(place) => {
                place.insert(more);
            }
            Entry::Occupied(mut mine) => join(mine.get_mut(), more),
        }
    }
}

/// The texts of the buckets of aggregations that have a place also without records, by the numbers of these.
pub(super) type Zeros = BTreeMap<usize, BTreeSet<Box<[u8]>>>;

impl Level {
    /// Adds the texts of the buckets that have a place also without records. Recursion is bounded by the depth of
    /// aggregations.
    pub(super) fn gather(&self, list: &[Aggregation], zeros: &mut Zeros) {
        for (one, state) in list.iter().zip(&self.states) {
            let (Kind::Buckets(buckets), State::Buckets(map)) = (&one.kind, state) else {
                continue;
            };
            if let Some(number) = buckets.zeros() {
                let texts = zeros.entry(number).or_default();
                texts.extend(map.texts.keys().map(Box::from));
            }
            let all = map.numbers.values().chain(map.tuples.values());
            for bucket in all.chain(map.texts.buckets()) {
                bucket.level.gather(&one.children.list, zeros);
            }
        }
    }
}

impl MetricState {
    /// Adds the values of other records; says how many of those that are held were held by both.
    fn merge(&mut self, other: MetricState) -> usize {
        match (self, other) {
            (MetricState::Count(count), MetricState::Count(more)) => *count += more,
            (MetricState::Sums(sums), MetricState::Sums(more)) => sums.merge(&more),
            (MetricState::Values(values), MetricState::Values(more)) => values.extend(more),
            (MetricState::Weighted(values, weights), MetricState::Weighted(more, heavier)) => {
                values.merge(&more);
                weights.merge(&heavier);
            }
            (MetricState::First(rows), MetricState::First(more)) => rows.merge(more),
            (MetricState::Distinct(hashes), MetricState::Distinct(mut more)) => {
                let both = hashes.len() + more.len();
                hashes.append(&mut more);
                return both - hashes.len();
            }
            // An aggregation has one kind of state.
            _ => {}
        }
        0
    }

    /// How many values it holds.
    fn held(&self) -> usize {
        match self {
            MetricState::Count(_) | MetricState::Sums(_) | MetricState::Weighted(..) => 0,
            MetricState::First(rows) => rows.held(),
            MetricState::Distinct(hashes) => hashes.len(),
            MetricState::Values(values) => values.len(),
        }
    }
}

/// Reads the hits at places.
pub(super) type Fetch<'f> =
    &'f mut dyn FnMut(&[Place], &super::top_hits::TopHits) -> Result<Vec<Json>, ApiError>;

/// The making of an answer.
pub(super) struct Finish<'f> {
    pub(super) has_typed_keys: bool,
    pub(super) fetch: Fetch<'f>,
    /// The start of the closest interval of time around, in milliseconds.
    pub(super) start_ms: Option<i64>,
    pub(super) zeros: Zeros,
    buckets: u64,
    empty: u64,
    pub(super) hits: u64,
    memory: AnswerMemory,
}

/// The memory of an answer, beside that of the states it is made of.
#[derive(Debug, Default)]
pub(super) struct AnswerMemory {
    charge: Charge,
    bytes: usize,
}

impl AnswerMemory {
    /// The memory of states, which take so much.
    pub(super) fn of_states(charge: Charge, bytes: usize) -> AnswerMemory {
        AnswerMemory { charge, bytes }
    }

    /// Takes more, and waits for it.
    fn take(&mut self, bytes: usize) -> Result<(), ApiError> {
        self.bytes += bytes;
        let taken = self.charge.set_while(self.bytes, &mut || true);
        taken.map_err(|_| ApiError::no_memory(&self.charge))
    }

    /// Leaves it to the query until its answer is sent.
    fn leave(self) {
        self.charge.leave();
    }
}

/// About the memory of a node of the tree of an object, which has room for some members.
const OBJECT_BYTES: usize = 640;

/// About the memory of a text or a list beside what is in it.
const TEXT_BYTES: usize = 48;

/// About the memory of the JSON of a bucket; buckets within it are counted by themselves. Recursion is bounded by the
/// depth of aggregations.
fn bytes_of(json: &Json) -> usize {
    match json {
        Json::String(text) => TEXT_BYTES + text.len(),
        Json::Array(list) => {
            let items = list.iter().map(|item| size_of::<Json>() + bytes_of(item));
            TEXT_BYTES + items.sum::<usize>()
        }
        Json::Object(members) => {
            let own = members.iter().filter(|(name, _)| *name != "buckets");
            let own = own.map(|(name, value)| TEXT_BYTES + name.len() + bytes_of(value));
            OBJECT_BYTES + own.sum::<usize>()
        }
        _ => 0,
    }
}

impl<'f> Finish<'f> {
    /// Nothing yet.
    pub(super) fn new(has_typed_keys: bool, fetch: Fetch<'f>) -> Finish<'f> {
        Finish {
            has_typed_keys,
            fetch,
            start_ms: None,
            zeros: Zeros::new(),
            buckets: 0,
            empty: 0,
            hits: 0,
            memory: AnswerMemory::default(),
        }
    }

    /// Goes on with the memory of states.
    pub(super) fn begin(&mut self, memory: AnswerMemory) {
        self.memory = memory;
    }

    /// Takes the memory of a bucket of the answer.
    ///
    /// # Errors
    /// When there is none.
    pub(super) fn keep(&mut self, bucket: &Json) -> Result<(), ApiError> {
        self.memory.take(bytes_of(bucket))
    }

    /// Leaves the memory of the answer to the query.
    pub(super) fn end(&mut self) {
        std::mem::take(&mut self.memory).leave();
    }

    /// The name of an answer.
    pub(super) fn key(&self, typed: &str, name: &str) -> String {
        if self.has_typed_keys {
            format!("{typed}#{name}")
        } else {
            name.to_owned()
        }
    }

    /// Counts a bucket of the answer.
    ///
    /// # Errors
    /// When there are too many.
    pub(super) fn count_bucket(&mut self) -> Result<(), ApiError> {
        self.buckets = self.buckets.saturating_add(1);
        if self.buckets > BUCKETS_MAX {
            return Err(too_many_buckets());
        }
        Ok(())
    }

    /// Adds the buckets without records that an aggregation has of this number.
    ///
    /// # Errors
    /// When there are too many.
    pub(super) fn add_zeros(
        &mut self,
        number: usize,
        found: &mut TextBuckets,
        children: &Tree,
    ) -> Result<(), ApiError> {
        for text in self.zeros.get(&number).into_iter().flatten() {
            self.empty += 1;
            found.entry(text, || Bucket::empty(children));
        }
        let usage = Usage {
            groups: self.empty,
            ..Usage::default()
        };
        usage.check()
    }
}

/// The error of an answer with too many buckets.
pub(super) fn too_many_buckets() -> ApiError {
    ApiError::bad_request(format!(
        "Trying to create too many buckets. Must be less than or equal to: [{BUCKETS_MAX}]: take a longer interval, \
         a shorter range or a smaller size"
    ))
}
