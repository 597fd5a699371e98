//! Whether two answers say the same, and where they begin to differ.

use std::collections::{BTreeMap, BTreeSet};

use super::answer::{Answer, Entry, Labels, Point};

/// Numbers that differ by less than this part of the larger one are the same: sums are made in another
/// order.
const TOLERANCE: f64 = 1e-9;

/// And those that differ by less than this: differences of sums that should be 0.
const TOLERANCE_ABSOLUTE: f64 = 1e-12;

/// What of the answers is promised.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Promise {
    /// The most entries: which of those of the last time are answered is not defined.
    pub(super) limit: usize,
    /// Whether entries come newest first.
    pub(super) is_backward: bool,
    /// Whether lines are to be some time apart: which of those of one time is shown is not defined.
    pub(super) is_thinned: bool,
    /// Whether series come by their values.
    pub(super) is_sorted: bool,
    /// Whether of series with equal values any may be chosen.
    pub(super) chooses: bool,
}

/// The first difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Difference {
    /// Its kind, without anything of this query.
    pub(super) kind: &'static str,
    pub(super) text: String,
}

fn difference(kind: &'static str, text: String) -> Option<Difference> {
    Some(Difference { kind, text })
}

/// The first difference between Loki's answer and ours.
pub(super) fn compare(loki: &Answer, ours: &Answer, promise: Promise) -> Option<Difference> {
    match (loki, ours) {
        (_, Answer::Failed(text)) => difference("ours failed", text.clone()),
        (Answer::Refused(_) | Answer::Failed(_), Answer::Refused(_)) => None,
        (Answer::Refused(text) | Answer::Failed(text), _) => {
            difference("only Loki refuses", text.clone())
        }
        (_, Answer::Refused(text)) => difference("only we refuse", text.clone()),
        (Answer::Streams(loki), Answer::Streams(ours)) => streams(loki, ours, promise),
        (Answer::Scalar(loki), Answer::Scalar(ours)) => {
            if is_same(*loki, *ours) {
                None
            } else {
                difference("values", format!("{loki:?} and {ours:?}"))
            }
        }
        (Answer::Set(loki), Answer::Set(ours)) => set(loki, ours),
        (
            Answer::Series {
                kind: loki_kind,
                series: loki,
            },
            Answer::Series { kind, series: ours },
        ) if loki_kind == kind => all_series(loki, ours, promise),
        _ => difference("types", format!("{} and {}", loki.class(), ours.class())),
    }
}

fn set(loki: &[String], ours: &[String]) -> Option<Difference> {
    let only = |one: &[String], other: &[String]| {
        let only = one.iter().filter(|part| !other.contains(part));
        only.cloned().collect::<Vec<_>>().join("; ")
    };
    if loki == ours {
        None
    } else {
        difference(
            "sets",
            format!(
                "only Loki: {} / only we: {}",
                only(loki, ours),
                only(ours, loki)
            ),
        )
    }
}

type Streams = BTreeMap<Labels, Vec<Entry>>;

fn streams(loki: &Streams, ours: &Streams, promise: Promise) -> Option<Difference> {
    let count = |streams: &Streams| streams.values().map(Vec::len).sum::<usize>();
    if count(loki) != count(ours) {
        let text = format!(
            "{} and {}; {}",
            count(loki),
            count(ours),
            first_entry(loki, ours)
        );
        return difference("counts of entries", text);
    }
    for streams in [loki, ours] {
        for (labels, entries) in streams {
            let is_rising = entries.is_sorted_by_key(|entry| entry.time_ns);
            let is_falling = entries.is_sorted_by(|a, b| a.time_ns >= b.time_ns);
            if !is_rising && !is_falling {
                return difference("order of entries", labels.clone());
            }
        }
    }
    if promise.is_thinned {
        let times = |streams: &Streams| {
            let times = streams.values().flatten().map(|entry| entry.time_ns);
            times.collect::<BTreeSet<_>>()
        };
        return if times(loki) == times(ours) {
            None
        } else {
            difference("times of entries", first_entry(loki, ours))
        };
    }
    let is_full = count(loki) == promise.limit;
    let edge = |streams| {
        if is_full {
            edge(streams, promise.is_backward)
        } else {
            None
        }
    };
    if edge(loki) != edge(ours) {
        return difference("last entries", first_entry(loki, ours));
    }
    let (loki, ours) = (in_order(loki, edge(loki)), in_order(ours, edge(ours)));
    if loki == ours {
        return None;
    }
    let kind = if loki.keys().eq(ours.keys()) {
        "entries"
    } else {
        "labels of streams"
    };
    difference(kind, first_entry(&loki, &ours))
}

/// The time of the last entry of an answer that has no room for more.
fn edge(streams: &Streams, is_backward: bool) -> Option<i64> {
    let times = streams.values().flatten().map(|entry| entry.time_ns);
    if is_backward {
        times.min()
    } else {
        times.max()
    }
}

/// Entries by time and line, without those of one time.
fn in_order(streams: &Streams, without: Option<i64>) -> Streams {
    let streams = streams.iter().filter_map(|(labels, entries)| {
        let mut entries = entries.clone();
        entries.retain(|entry| Some(entry.time_ns) != without);
        entries.sort_by(|a, b| (a.time_ns, &a.line).cmp(&(b.time_ns, &b.line)));
        (!entries.is_empty()).then(|| (labels.clone(), entries))
    });
    streams.collect()
}

/// The first entry that only one has, with its labels, and what the other has of its time.
fn first_entry(loki: &Streams, ours: &Streams) -> String {
    let flat = |streams: &Streams| -> Vec<(i64, String)> {
        let entries = streams.iter().flat_map(|(labels, entries)| {
            entries.iter().map(move |entry| {
                let text = format!("{labels} {:?} {}", entry.line, entry.beside);
                (entry.time_ns, text)
            })
        });
        entries.collect()
    };
    let (loki, ours) = (flat(loki), flat(ours));
    let shown = |at: Option<&(i64, String)>| at.map_or("nothing", |(_, text)| text).to_owned();
    let of = |all: &[(i64, String)], time: i64, not: &[(i64, String)]| {
        shown(
            all.iter()
                .find(|entry| entry.0 == time && !not.contains(entry)),
        )
    };
    let only_loki = loki.iter().find(|entry| !ours.contains(entry));
    let only_ours = ours.iter().find(|entry| !loki.contains(entry));
    match only_loki.or(only_ours) {
        Some((time, _)) => format!(
            "at {time}\n      Loki {}\n      ours {}",
            of(&loki, *time, &ours),
            of(&ours, *time, &loki)
        ),
        None => "copies".to_owned(),
    }
}

type Series = [(Labels, Vec<Point>)];

fn all_series(loki: &Series, ours: &Series, promise: Promise) -> Option<Difference> {
    let by_labels =
        |series: &Series| -> BTreeMap<Labels, Vec<Point>> { series.iter().cloned().collect() };
    let (loki_map, ours_map) = (by_labels(loki), by_labels(ours));
    for (map, series) in [(&loki_map, loki), (&ours_map, ours)] {
        if map.len() != series.len() {
            return difference("labels twice", format!("{} series", series.len()));
        }
    }
    if promise.chooses {
        return chosen(loki, ours);
    }
    let found = first_series(&loki_map, &ours_map);
    if found.is_some() || !promise.is_sorted {
        return found;
    }
    let values = |series: &Series| -> Vec<f64> {
        let firsts = series.iter().filter_map(|(_, points)| points.first());
        firsts.map(|point| point.value).collect()
    };
    let (loki, ours) = (values(loki), values(ours));
    if loki.iter().zip(&ours).all(|(a, b)| is_near(*a, *b)) {
        None
    } else {
        difference("order of series", format!("{loki:?} and {ours:?}"))
    }
}

fn first_series(
    loki: &BTreeMap<Labels, Vec<Point>>,
    ours: &BTreeMap<Labels, Vec<Point>>,
) -> Option<Difference> {
    for (labels, points) in loki {
        match ours.get(labels) {
            None => {
                let text = format!("only Loki has {labels} {}", shown(points));
                return difference("labels of series", text);
            }
            Some(others) => {
                if let Some(text) = first_point(points, others) {
                    let kind = if points.len() == others.len() {
                        "values"
                    } else {
                        "counts of values"
                    };
                    return difference(kind, format!("{labels} {text}"));
                }
            }
        }
    }
    let only_ours = ours.iter().find(|(labels, _)| !loki.contains_key(*labels));
    let (labels, points) = only_ours?;
    let text = format!("only we have {labels} {}", shown(points));
    difference("labels of series", text)
}

fn shown(points: &[Point]) -> String {
    let first = points.first();
    first.map_or("without values".into(), |point| {
        format!(
            "{} at {} ms, and {} more",
            point.value,
            point.time_ms,
            points.len() - 1
        )
    })
}

fn first_point(loki: &[Point], ours: &[Point]) -> Option<String> {
    let at = loki
        .iter()
        .zip(ours)
        .position(|(loki, ours)| !is_same(*loki, *ours));
    match at {
        Some(at) => {
            let (loki, ours) = (loki[at], ours[at]);
            Some(if loki.time_ms == ours.time_ms {
                format!("at {} ms: {} and {}", loki.time_ms, loki.value, ours.value)
            } else {
                format!("Loki at {} ms, ours at {} ms", loki.time_ms, ours.time_ms)
            })
        }
        None if loki.len() != ours.len() => {
            Some(format!("{} and {} values", loki.len(), ours.len()))
        }
        None => None,
    }
}

/// Compares by values alone: at each time both must have the same ones, of whichever series.
fn chosen(loki: &Series, ours: &Series) -> Option<Difference> {
    let values = |series: &Series| {
        let mut values: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
        for point in series.iter().flat_map(|(_, points)| points) {
            values.entry(point.time_ms).or_default().push(point.value);
        }
        values.values_mut().for_each(|v| v.sort_by(f64::total_cmp));
        values
    };
    let (loki, ours) = (values(loki), values(ours));
    let is_same = loki.keys().eq(ours.keys())
        && loki
            .values()
            .zip(ours.values())
            .all(|(a, b)| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_near(*a, *b)));
    let first = loki
        .iter()
        .find(|(time, values)| ours.get(time) != Some(values));
    if is_same {
        None
    } else {
        difference(
            "chosen values",
            format!(
                "{first:?} and {:?}",
                first.and_then(|(time, _)| ours.get(time))
            ),
        )
    }
}

fn is_same(one: Point, other: Point) -> bool {
    one.time_ms == other.time_ms && is_near(one.value, other.value)
}

fn is_near(one: f64, other: f64) -> bool {
    let is_equal = one == other || (one.is_nan() && other.is_nan());
    let tolerance = TOLERANCE * one.abs().max(other.abs());
    is_equal || (one - other).abs() <= tolerance.max(TOLERANCE_ABSOLUTE)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(time_ns: i64, line: &str) -> Entry {
        Entry {
            time_ns,
            line: line.into(),
            beside: String::new(),
        }
    }

    fn streams_of(parts: &[(&str, &[(i64, &str)])]) -> Answer {
        let parts = parts.iter().map(|(labels, entries)| {
            let entries = entries.iter().map(|(time, line)| entry(*time, line));
            ((*labels).to_owned(), entries.collect())
        });
        Answer::Streams(parts.collect())
    }

    fn kind(loki: &Answer, ours: &Answer, promise: Promise) -> Option<&'static str> {
        compare(loki, ours, promise).map(|difference| difference.kind)
    }

    fn vector(parts: &[(&str, f64)]) -> Answer {
        let series = parts.iter().map(|(labels, value)| {
            let point = Point {
                time_ms: 1,
                value: *value,
            };
            ((*labels).to_owned(), vec![point])
        });
        Answer::Series {
            kind: "vector".into(),
            series: series.collect(),
        }
    }

    #[test]
    fn entries_of_one_time_have_no_order() {
        let one = streams_of(&[("{}", &[(1, "a"), (1, "b"), (2, "c")])]);
        let other = streams_of(&[("{}", &[(1, "b"), (1, "a"), (2, "c")])]);
        let promise = Promise::default();
        assert_eq!(kind(&one, &other, promise), None);
        let wrong = streams_of(&[("{}", &[(1, "b"), (2, "c"), (1, "a")])]);
        assert_eq!(kind(&one, &wrong, promise), Some("order of entries"));
        let fewer = streams_of(&[("{}", &[(1, "b")])]);
        assert_eq!(kind(&one, &fewer, promise), Some("counts of entries"));
    }

    #[test]
    fn any_entries_of_the_last_time_may_be_answered() {
        let one = streams_of(&[("{}", &[(1, "a"), (2, "c")])]);
        let other = streams_of(&[("{}", &[(1, "a"), (2, "d")])]);
        let limited = |limit| Promise {
            limit,
            ..Promise::default()
        };
        assert_eq!(kind(&one, &other, limited(2)), None);
        assert_eq!(kind(&one, &other, limited(3)), Some("entries"));
    }

    #[test]
    fn lines_some_time_apart_are_compared_by_times() {
        let one = streams_of(&[("{}", &[(1, "a"), (9, "c")])]);
        let other = streams_of(&[("{}", &[(1, "b"), (9, "c")])]);
        let thinned = Promise {
            is_thinned: true,
            ..Promise::default()
        };
        assert_eq!(kind(&one, &other, Promise::default()), Some("entries"));
        assert_eq!(kind(&one, &other, thinned), None);
        let later = streams_of(&[("{}", &[(1, "a"), (8, "c")])]);
        assert_eq!(kind(&one, &later, thinned), Some("times of entries"));
    }

    #[test]
    fn numbers_are_compared_by_labels() {
        let one = vector(&[("{a}", 1.0), ("{b}", 2.0)]);
        let near = vector(&[("{b}", 2.0 + 1e-12), ("{a}", 1.0)]);
        let promise = Promise::default();
        assert_eq!(kind(&one, &near, promise), None);
        let sorted = Promise {
            is_sorted: true,
            ..promise
        };
        assert_eq!(kind(&one, &near, sorted), Some("order of series"));
        let other = vector(&[("{a}", 2.0), ("{b}", 1.0)]);
        assert_eq!(kind(&one, &other, promise), Some("values"));
        let chooses = Promise {
            chooses: true,
            ..promise
        };
        assert_eq!(kind(&one, &other, chooses), None);
        let fewer = vector(&[("{a}", 1.0)]);
        assert_eq!(kind(&one, &fewer, promise), Some("labels of series"));
        assert_eq!(kind(&one, &fewer, chooses), Some("chosen values"));
    }

    #[test]
    fn refusals_are_equal_whatever_they_say() {
        let refused = |text: &str| Answer::Refused(text.into());
        let promise = Promise::default();
        assert_eq!(kind(&refused("a"), &refused("b"), promise), None);
        let none = Answer::Set(Vec::new());
        assert_eq!(
            kind(&refused("a"), &none, promise),
            Some("only Loki refuses")
        );
        assert_eq!(kind(&none, &refused("b"), promise), Some("only we refuse"));
        let failed = Answer::Failed("500".into());
        assert_eq!(kind(&failed, &failed, promise), Some("ours failed"));
    }
}
