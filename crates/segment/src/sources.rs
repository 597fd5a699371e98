//! Sets of sources, as intervals of sequence numbers.
//!
//! Invariants: the intervals of an incarnation are sorted, disjoint and not adjacent, so that
//! equal sets are equal values, and a node's holdings cost bytes per gap, not per source.

use std::collections::BTreeMap;
use std::fmt;

use logpond_record::{Incarnation, SourceId};
use serde_json::{Map, Value};

/// Sequence numbers from the first to the last, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Interval {
    /// First number.
    pub from: u64,
    /// Last number, at least `from`.
    pub to: u64,
}

/// A set of sources.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct SourceSet {
    incarnations: BTreeMap<Incarnation, Vec<Interval>>,
}

impl SourceSet {
    /// The empty set.
    pub fn new() -> SourceSet {
        SourceSet::default()
    }

    /// The sources that are in any of these sets: in about linear time where the sets are few and
    /// large, since each is in order already.
    pub fn union_of<'a>(sets: impl IntoIterator<Item = &'a SourceSet>) -> SourceSet {
        let mut all: Vec<(Incarnation, Interval)> = Vec::new();
        sets.into_iter().for_each(|set| all.extend(set.intervals()));
        // A stable sort takes what is in order as it is and only merges it.
        all.sort();
        let mut incarnations: Vec<(Incarnation, Vec<Interval>)> = Vec::new();
        for (incarnation, interval) in all {
            match incarnations.last_mut() {
                Some((last, list)) if *last == incarnation => append(list, interval),
                _ => incarnations.push((incarnation, vec![interval])),
            }
        }
        SourceSet {
            incarnations: incarnations.into_iter().collect(),
        }
    }

    /// Adds one source.
    pub fn insert(&mut self, source: SourceId) {
        let interval = Interval {
            from: source.sequence,
            to: source.sequence,
        };
        self.insert_interval(source.incarnation, interval);
    }

    /// Adds all sources of an interval, which must not be reversed.
    pub fn insert_interval(&mut self, incarnation: Incarnation, interval: Interval) {
        debug_assert!(interval.from <= interval.to);
        let intervals = self.incarnations.entry(incarnation).or_default();
        // What touches the new interval, adjacent ones included, becomes one with it.
        let start = intervals.partition_point(|i| i.to < interval.from.saturating_sub(1));
        let end = intervals.partition_point(|i| i.from <= interval.to.saturating_add(1));
        let touched = &intervals[start..end.max(start)];
        let joined = touched.iter().fold(interval, |joined, i| Interval {
            from: joined.from.min(i.from),
            to: joined.to.max(i.to),
        });
        intervals.splice(start..end.max(start), [joined]);
    }

    /// Adds all sources of another set.
    pub fn union_with(&mut self, other: &SourceSet) {
        for (incarnation, interval) in other.intervals() {
            self.insert_interval(incarnation, interval);
        }
    }

    /// The set as JSON: for each incarnation the first and last number of each run, one behind the other.
    pub fn to_json(&self) -> Value {
        let mut incarnations = Map::new();
        for (incarnation, run) in self.intervals() {
            let list = incarnations.entry(incarnation.to_string());
            if let Value::Array(list) = list.or_insert_with(|| Value::Array(Vec::new())) {
                list.extend([run.from.into(), run.to.into()]);
            }
        }
        Value::Object(incarnations)
    }

    /// Reads what [`SourceSet::to_json`] gave; `None` for anything else.
    pub fn from_json(value: &Value) -> Option<SourceSet> {
        let mut sources = SourceSet::new();
        for (incarnation, runs) in value.as_object()? {
            let incarnation: Incarnation = incarnation.parse().ok()?;
            let (runs, rest) = runs.as_array()?.as_chunks::<2>();
            for [from, to] in runs {
                let (from, to) = (from.as_u64()?, to.as_u64()?);
                (from <= to)
                    .then(|| sources.insert_interval(incarnation, Interval { from, to }))?;
            }
            rest.is_empty().then_some(())?;
        }
        Some(sources)
    }

    /// Takes away all sources of another set: in time that grows with the other one.
    pub fn subtract(&mut self, other: &SourceSet) {
        for (incarnation, hole) in other.intervals() {
            let Some(own) = self.incarnations.get_mut(&incarnation) else {
                continue;
            };
            cut(own, hole);
            if own.is_empty() {
                self.incarnations.remove(&incarnation);
            }
        }
    }

    /// Whether a source is in the set.
    pub fn contains(&self, source: SourceId) -> bool {
        let interval = Interval {
            from: source.sequence,
            to: source.sequence,
        };
        self.contains_interval(source.incarnation, interval)
    }

    /// Whether all sources of another set are in this one.
    pub fn contains_all(&self, other: &SourceSet) -> bool {
        other
            .intervals()
            .all(|(incarnation, interval)| self.contains_interval(incarnation, interval))
    }

    /// Whether no source is in both sets.
    pub fn is_disjoint(&self, other: &SourceSet) -> bool {
        other.intervals().all(|(incarnation, interval)| {
            let own = self.of(incarnation);
            let at = own.partition_point(|i| i.to < interval.from);
            own.get(at).is_none_or(|i| i.from > interval.to)
        })
    }

    /// The sources of this set that are not in another.
    pub fn without(&self, other: &SourceSet) -> SourceSet {
        let mut rest = SourceSet::new();
        for (incarnation, interval) in self.intervals() {
            let mut from = Some(interval.from);
            let taken = other.of(incarnation);
            let start = taken.partition_point(|i| i.to < interval.from);
            for hole in taken[start..].iter().take_while(|i| i.from <= interval.to) {
                if let Some(from) = from.filter(|from| *from < hole.from) {
                    let to = hole.from - 1;
                    rest.insert_interval(incarnation, Interval { from, to });
                }
                from = hole.to.checked_add(1);
            }
            if let Some(from) = from.filter(|from| *from <= interval.to) {
                let to = interval.to;
                rest.insert_interval(incarnation, Interval { from, to });
            }
        }
        rest
    }

    /// The sources that are in this set and in another.
    pub fn common(&self, other: &SourceSet) -> SourceSet {
        let mut common = SourceSet::new();
        for (incarnation, interval) in self.intervals() {
            let theirs = other.of(incarnation);
            let start = theirs.partition_point(|i| i.to < interval.from);
            for their in theirs[start..].iter().take_while(|i| i.from <= interval.to) {
                let from = interval.from.max(their.from);
                let to = interval.to.min(their.to);
                common.insert_interval(incarnation, Interval { from, to });
            }
        }
        common
    }

    /// The last source of each incarnation.
    pub fn last_of_each(&self) -> impl Iterator<Item = SourceId> {
        let each = self.incarnations.iter();
        each.filter_map(|(incarnation, list)| {
            list.last().map(|interval| SourceId {
                incarnation: *incarnation,
                sequence: interval.to,
            })
        })
    }

    /// Number of sources, at most [`u64::MAX`].
    pub fn len(&self) -> u64 {
        let lengths = self
            .intervals()
            .map(|(_, i)| (i.to - i.from).saturating_add(1));
        lengths.fold(0, u64::saturating_add)
    }

    /// Whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.incarnations.is_empty()
    }

    /// The incarnations in order.
    pub fn incarnations(&self) -> impl Iterator<Item = Incarnation> {
        self.incarnations.keys().copied()
    }

    /// The intervals of an incarnation in order.
    pub fn intervals_of(&self, incarnation: Incarnation) -> &[Interval] {
        self.incarnations
            .get(&incarnation)
            .map_or(&[], |list| &list[..])
    }

    /// The intervals in order of incarnation and number.
    pub fn intervals(&self) -> impl Iterator<Item = (Incarnation, Interval)> {
        let each = self.incarnations.iter();
        each.flat_map(|(incarnation, list)| list.iter().map(|interval| (*incarnation, *interval)))
    }

    /// The sources in order of incarnation and number.
    pub fn iter(&self) -> impl Iterator<Item = SourceId> {
        self.intervals().flat_map(|(incarnation, interval)| {
            (interval.from..=interval.to).map(move |sequence| SourceId {
                incarnation,
                sequence,
            })
        })
    }

    fn of(&self, incarnation: Incarnation) -> &[Interval] {
        self.incarnations
            .get(&incarnation)
            .map_or(&[], Vec::as_slice)
    }

    fn contains_interval(&self, incarnation: Incarnation, interval: Interval) -> bool {
        let own = self.of(incarnation);
        let at = own.partition_point(|i| i.to < interval.from);
        own.get(at)
            .is_some_and(|i| i.from <= interval.from && interval.to <= i.to)
    }
}

/// Adds an interval to those of an incarnation of which none begins after it.
fn append(list: &mut Vec<Interval>, interval: Interval) {
    match list.last_mut() {
        Some(last) if interval.from <= last.to.saturating_add(1) => {
            last.to = last.to.max(interval.to);
        }
        _ => list.push(interval),
    }
}

/// Takes an interval off those of an incarnation.
fn cut(list: &mut Vec<Interval>, hole: Interval) {
    let start = list.partition_point(|i| i.to < hole.from);
    let end = list.partition_point(|i| i.from <= hole.to).max(start);
    let touched = &list[start..end];
    let (Some(first), Some(last)) = (touched.first(), touched.last()) else {
        return;
    };
    let before = (first.from < hole.from).then(|| Interval {
        from: first.from,
        to: hole.from - 1,
    });
    let after = (last.to > hole.to).then(|| Interval {
        from: hole.to + 1,
        to: last.to,
    });
    list.splice(start..end, before.into_iter().chain(after));
}

impl FromIterator<SourceId> for SourceSet {
    fn from_iter<T: IntoIterator<Item = SourceId>>(sources: T) -> SourceSet {
        let mut set = SourceSet::new();
        sources.into_iter().for_each(|source| set.insert(source));
        set
    }
}

/// `{0a…/0-4 0a…/7}`
impl fmt::Debug for SourceSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("{")?;
        for (index, (incarnation, interval)) in self.intervals().enumerate() {
            let space = if index == 0 { "" } else { " " };
            write!(f, "{space}{incarnation}/{}", interval.from)?;
            if interval.to > interval.from {
                write!(f, "-{}", interval.to)?;
            }
        }
        f.write_str("}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn source((incarnation, sequence): (u128, u64)) -> SourceId {
        SourceId {
            incarnation: Incarnation(incarnation),
            sequence,
        }
    }

    fn sources() -> impl Strategy<Value = Vec<(u128, u64)>> {
        // The ends of the number range are where adding and subtracting one goes wrong.
        let sequence = prop_oneof![0u64..12, (u64::MAX - 5)..=u64::MAX];
        prop::collection::vec((0u128..3, sequence), 0..30)
    }

    fn both(list: &[(u128, u64)]) -> (SourceSet, BTreeSet<SourceId>) {
        let model = list.iter().map(|pair| source(*pair));
        (model.clone().collect(), model.collect())
    }

    #[test]
    fn intervals_join() {
        let set: SourceSet = [(1, 3), (1, 5), (1, 4), (2, 0)]
            .map(source)
            .into_iter()
            .collect();
        let one = "00000000000000000000000000000001";
        let two = "00000000000000000000000000000002";
        assert_eq!(format!("{set:?}"), format!("{{{one}/3-5 {two}/0}}"));
        assert_eq!(set.len(), 4);
        let mut all = SourceSet::new();
        let interval = Interval {
            from: 0,
            to: u64::MAX,
        };
        all.insert_interval(Incarnation(1), interval);
        all.insert_interval(Incarnation(1), interval);
        assert_eq!(all.len(), u64::MAX);
        assert!(all.contains(source((1, u64::MAX))));
    }

    proptest! {
        #[test]
        fn sets_are_sets(a in sources(), b in sources()) {
            let ((set_a, model_a), (set_b, model_b)) = (both(&a), both(&b));
            prop_assert_eq!(set_a.len(), model_a.len() as u64);
            prop_assert_eq!(set_a.is_empty(), model_a.is_empty());
            prop_assert!(set_a.iter().eq(model_a.iter().copied()));
            prop_assert_eq!(set_a.contains_all(&set_b), model_a.is_superset(&model_b));
            prop_assert_eq!(set_a.is_disjoint(&set_b), model_a.is_disjoint(&model_b));
            for candidate in model_b.iter() {
                prop_assert_eq!(set_a.contains(*candidate), model_a.contains(candidate));
            }
            let mut union = set_a.clone();
            union.union_with(&set_b);
            prop_assert!(union.iter().eq(model_a.union(&model_b).copied()));
            prop_assert_eq!(&SourceSet::union_of([&set_a, &set_b]), &union);
            let lasts: Vec<SourceId> = set_a.last_of_each().collect();
            let is_last = |source: &SourceId| {
                let mut own = model_a.iter().filter(|s| s.incarnation == source.incarnation);
                own.next_back() == Some(source)
            };
            prop_assert!(model_a.iter().filter(|s| is_last(s)).eq(&lasts));
            let rest = set_a.without(&set_b);
            let mut left = set_a.clone();
            left.subtract(&set_b);
            prop_assert_eq!(&left, &rest);
            prop_assert!(rest.iter().eq(model_a.difference(&model_b).copied()));
            let common = set_a.common(&set_b);
            prop_assert!(common.iter().eq(model_a.intersection(&model_b).copied()));
            // Equal sets are equal values, whatever the order of insertion.
            let mut reversed = a.clone();
            reversed.reverse();
            prop_assert_eq!(both(&reversed).0, set_a);
        }
    }
}
