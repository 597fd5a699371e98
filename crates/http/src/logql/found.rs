//! What was found: lines, or numbers at instants.

use std::fmt::Write;

use logpond_record::{Timestamp, cast};
use logpond_search::metric::{Sample, Series, SeriesLabels, Times};

use logpond_engine::query::{Key, Line};

/// An answer.
pub(crate) enum QueryResult {
    /// Lines, in the order that was asked for.
    Lines {
        /// The lines.
        lines: Vec<Line>,
        /// The last one, if there are more behind it.
        cursor: Option<Key>,
        /// What users should know.
        warnings: Vec<String>,
    },
    /// Numbers.
    Numbers {
        /// The numbers.
        numbers: Numbers,
        /// What users should know.
        warnings: Vec<String>,
    },
}

/// Numbers of series.
pub(crate) enum Numbers {
    /// Over time.
    Series {
        /// The series.
        series: Vec<Series>,
        /// All instants that were asked for.
        times: Times,
        /// Whether an instant without a number is one with zero.
        is_additive: bool,
    },
    /// At this instant.
    Samples(Vec<Sample>, Timestamp),
}

impl QueryResult {
    /// What users should know.
    pub(crate) fn warnings(&self) -> &[String] {
        match self {
            QueryResult::Lines { warnings, .. } | QueryResult::Numbers { warnings, .. } => warnings,
        }
    }

    /// How many numbers or lines it has: about what it takes in memory and on the wire.
    pub(crate) fn size(&self) -> usize {
        match self {
            QueryResult::Lines { lines, .. } => lines.len(),
            QueryResult::Numbers { numbers, .. } => match numbers {
                Numbers::Samples(samples, _) => samples.len(),
                Numbers::Series { series, times, .. } => {
                    series.len().saturating_mul(cast::to_usize(times.count))
                }
            },
        }
    }
}

impl Numbers {
    /// Has a series without labels where there is none at all: a sum of nothing is zero.
    pub(super) fn at_least_one(&mut self) {
        let labels = || SeriesLabels::default().into();
        match self {
            Numbers::Series { series, .. } if series.is_empty() => series.push(Series {
                labels: labels(),
                points: Vec::new(),
            }),
            Numbers::Samples(samples, _) if samples.is_empty() => samples.push(Sample {
                labels: labels(),
                value: 0.0,
            }),
            _ => {}
        }
    }
}

/// Passes all instants of a series on with their numbers; an instant without one has zero, or nothing.
pub(crate) fn each_point<E>(
    series: &Series,
    times: &Times,
    is_additive: bool,
    mut take: impl FnMut(Timestamp, Option<f64>) -> Result<(), E>,
) -> Result<(), E> {
    let absent = is_additive.then_some(0.0);
    let mut points = series.points.iter().peekable();
    for number in 0..times.count {
        let at = times.at(number);
        while points.next_if(|(time, _)| time.0 < at).is_some() {}
        let value = points.next_if(|(time, _)| time.0 == at);
        take(Timestamp(at), value.map(|(_, value)| *value).or(absent))?;
    }
    Ok(())
}

/// How a series is called: by the legend, else by its only label, else by all its labels, else so.
pub(crate) fn name_of(labels: &SeriesLabels, legend: &str, otherwise: &str) -> String {
    if !legend.is_empty() {
        return fill(legend, labels);
    }
    let mut pairs = labels.iter();
    match (pairs.next(), pairs.next()) {
        (None, _) => otherwise.to_owned(),
        (Some((_, value)), None) if !value.is_empty() => value.to_owned(),
        _ => {
            let mut name = "{".to_owned();
            for (at, (label, value)) in labels.iter().enumerate() {
                let comma = if at > 0 { ", " } else { "" };
                // Writing to a text cannot fail.
                let _ = write!(name, "{comma}{label}=\"{value}\"");
            }
            name.push('}');
            name
        }
    }
}

/// A legend with labels for `{{label}}`; nothing for one that is not there.
fn fill(legend: &str, labels: &SeriesLabels) -> String {
    let mut name = String::new();
    let mut rest = legend;
    while let Some((before, after)) = rest.split_once("{{") {
        let Some((label, behind)) = after.split_once("}}") else {
            break;
        };
        name.push_str(before);
        let label = label.trim().trim_start_matches('.');
        name.push_str(labels.get(label).unwrap_or_default());
        rest = behind;
    }
    name.push_str(rest);
    name
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    #[test]
    fn series_have_names() {
        let none = SeriesLabels::default();
        let one = SeriesLabels::new([("host", "w1")]);
        let empty = SeriesLabels::new([("host", "")]);
        let two = SeriesLabels::new([("host", "w1"), ("status", "200")]);
        let table = [
            (&none, "", "sum"),
            (&one, "", "w1"),
            (&empty, "", "{host=\"\"}"),
            (&two, "", "{host=\"w1\", status=\"200\"}"),
            (&two, "{{status}} at {{ .host }}{{x}}", "200 at w1"),
            (&two, "a {{host", "a {{host"),
            (&none, "bytes", "bytes"),
        ];
        for (labels, legend, expected) in table {
            assert_eq!(name_of(labels, legend, "sum"), expected);
        }
    }

    #[test]
    fn gaps_are_zero_or_nothing() {
        let series = Series {
            labels: SeriesLabels::default().into(),
            points: vec![(Timestamp(10), 1.0), (Timestamp(30), 3.0)],
        };
        let times = Times {
            start_ns: 0,
            step_ns: 10,
            count: 5,
        };
        let table = [
            (
                true,
                [Some(0.0), Some(1.0), Some(0.0), Some(3.0), Some(0.0)],
            ),
            (false, [None, Some(1.0), None, Some(3.0), None]),
        ];
        for (is_additive, expected) in table {
            let mut found = Vec::new();
            let take = |_, value| {
                found.push(value);
                Ok::<(), Infallible>(())
            };
            let Ok(()) = each_point(&series, &times, is_additive, take);
            assert_eq!(found, expected);
        }
    }
}
