//! What is made of several series at an instant.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use logpond_record::cast;

use super::evaluate::Sample;
use super::series::SeriesLabels;
use crate::logql::{Grouping, VectorAggregation, VectorFunction};

/// Aggregates a vector.
pub(super) fn aggregate(of: Vec<Sample>, by: &VectorAggregation) -> Vec<Sample> {
    let none = Grouping::default();
    let grouping = by.grouping.as_ref().unwrap_or(&none);
    let wanted = wanted_of(by);
    match by.function {
        VectorFunction::Sort => first(of, usize::MAX, false),
        VectorFunction::SortDesc => first(of, usize::MAX, true),
        VectorFunction::Topk | VectorFunction::ApproxTopk | VectorFunction::Bottomk => {
            let is_descending = by.function != VectorFunction::Bottomk;
            let groups = groups(of, grouping).into_iter();
            groups
                .flat_map(|(_, group)| first(group, wanted, is_descending))
                .collect()
        }
        function => groups(of, grouping)
            .into_iter()
            .map(|(labels, group)| Sample {
                labels: Arc::new(labels),
                value: number(function, &group),
            })
            .collect(),
    }
}

/// How many series are wanted of a group.
pub(super) fn wanted_of(by: &VectorAggregation) -> usize {
    by.parameter
        .map_or(usize::MAX, |k| usize::try_from(k).unwrap_or(usize::MAX))
}

/// Whether the answer is the same in whichever order the series come.
pub(super) fn ignores_order(by: &VectorAggregation) -> bool {
    matches!(
        by.function,
        VectorFunction::Sort
            | VectorFunction::SortDesc
            | VectorFunction::Topk
            | VectorFunction::ApproxTopk
            | VectorFunction::Bottomk
            | VectorFunction::Count
    )
}

/// The groups in the order of their labels, their samples in the order in which they came.
fn groups(of: Vec<Sample>, grouping: &Grouping) -> Vec<(SeriesLabels, Vec<Sample>)> {
    if of.is_empty() {
        return Vec::new();
    }
    if grouping.is_of_all() {
        return vec![(SeriesLabels::default(), of)];
    }
    let mut groups: BTreeMap<SeriesLabels, Vec<Sample>> = BTreeMap::new();
    for sample in of {
        groups
            .entry(sample.labels.grouped(grouping))
            .or_default()
            .push(sample);
    }
    groups.into_iter().collect()
}

fn first(of: Vec<Sample>, wanted: usize, is_descending: bool) -> Vec<Sample> {
    first_by(
        of,
        (wanted, is_descending),
        |sample| sample.value,
        |a, b| a.labels.cmp(&b.labels),
    )
}

/// The first so many by value, equal ones by their labels; what is no number comes last.
pub(super) fn first_by<T>(
    mut of: Vec<T>,
    (wanted, is_descending): (usize, bool),
    value: impl Fn(&T) -> f64,
    compare_labels: impl Fn(&T, &T) -> Ordering,
) -> Vec<T> {
    let compare_values = |a: f64, b: f64| {
        let by_value = if is_descending {
            b.partial_cmp(&a)
        } else {
            a.partial_cmp(&b)
        };
        a.is_nan()
            .cmp(&b.is_nan())
            .then(by_value.unwrap_or(Ordering::Equal))
    };
    let compare =
        |x: &T, y: &T| compare_values(value(x), value(y)).then_with(|| compare_labels(x, y));
    if wanted == 0 {
        return Vec::new();
    }
    if wanted < of.len() {
        // Many have the same number, most of them one that is not wanted: their labels do not matter.
        of.select_nth_unstable_by(wanted - 1, |x, y| compare_values(value(x), value(y)));
        let last = value(&of[wanted - 1]);
        of.retain(|x| compare_values(value(x), last).is_le());
    }
    if wanted < of.len() {
        of.select_nth_unstable_by(wanted - 1, compare);
        of.truncate(wanted);
    }
    of.sort_by(compare);
    of
}

fn number(function: VectorFunction, group: &[Sample]) -> f64 {
    let values = || group.iter().map(|sample| sample.value);
    let count = cast::float(group.len());
    match function {
        VectorFunction::Count => count,
        VectorFunction::Min => {
            values().fold(f64::NAN, |a, b| if b < a || a.is_nan() { b } else { a })
        }
        VectorFunction::Max => {
            values().fold(f64::NAN, |a, b| if b > a || a.is_nan() { b } else { a })
        }
        VectorFunction::Avg => mean(values()),
        VectorFunction::Stddev => variance(values()).sqrt(),
        VectorFunction::Stdvar => variance(values()),
        _ => values().sum(),
    }
}

/// The mean, which does not overflow where the values do not.
fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (mut mean, mut count) = (0.0f64, 0.0);
    for value in values {
        count += 1.0;
        let stays = mean.is_infinite()
            && (value.is_finite() || (value.is_infinite() && (mean > 0.0) == (value > 0.0)));
        if !stays {
            mean += (value - mean) / count;
        }
    }
    mean
}

/// The population variance (Welford).
fn variance(values: impl Iterator<Item = f64>) -> f64 {
    let (mut mean, mut count, mut spread) = (0.0, 0.0, 0.0);
    for value in values {
        count += 1.0;
        let delta = value - mean;
        mean += delta / count;
        spread += delta * (value - mean);
    }
    spread / count
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_first_are_those_of_all_in_order(
            values in proptest::collection::vec(prop_oneof![Just(f64::NAN), (0..4).prop_map(f64::from)], 0..40),
            wanted in 0usize..45,
            is_descending in any::<bool>(),
        ) {
            let all: Vec<(usize, f64)> = values.into_iter().enumerate().collect();
            let take = |wanted| {
                first_by(all.clone(), (wanted, is_descending), |x| x.1, |a, b| a.0.cmp(&b.0))
            };
            let places = |some: &[(usize, f64)]| some.iter().map(|x| x.0).collect::<Vec<_>>();
            let sorted = take(usize::MAX);
            let is_in_order = |pair: &[(usize, f64)]| {
                let (a, b) = (pair[0], pair[1]);
                let (low, high) = if is_descending { (b.1, a.1) } else { (a.1, b.1) };
                low < high || (b.1.is_nan() && !a.1.is_nan()) || a.0 < b.0
            };
            prop_assert!(sorted.windows(2).all(is_in_order));
            prop_assert_eq!(places(&take(wanted)), places(&sorted[..wanted.min(sorted.len())]));
        }
    }
}
