//! What was found as a table: columns, and rows of cells.

use std::borrow::Cow;
use std::collections::BTreeSet;

use logpond_record::Timestamp;
use logpond_search::metric::SeriesLabels;

use super::found::{Numbers, QueryResult, each_point};
use logpond_engine::query::Line;

/// What stands in a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Time,
    Text,
    Number,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    /// Its name, which no other column has.
    pub(crate) name: String,
    /// What stands in it.
    pub(crate) kind: Kind,
    /// The label of which it has the values.
    label: Option<Box<str>>,
}

/// What stands in a row at a column.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell<'c> {
    /// Nothing; also a number that is none.
    Nothing,
    Time(Timestamp),
    Text(Cow<'c, str>),
    Number(f64),
}

impl Cell<'_> {
    fn number(value: f64) -> Cell<'static> {
        if value.is_finite() {
            Cell::Number(value)
        } else {
            Cell::Nothing
        }
    }
}

const TIME: &str = "time";
const LINE: &str = "line";
const VALUE: &str = "value";

/// Names of columns that are no labels'.
const OWN: [&str; 3] = [TIME, LINE, VALUE];

/// In front of a label that is called like one of the own columns.
const LABEL_PREFIX: &str = "label_";

fn own(name: &str, kind: Kind) -> Column {
    Column {
        name: name.to_owned(),
        kind,
        label: None,
    }
}

/// A column for each label; those that are called like others get another name.
fn of_labels(labels: &BTreeSet<&str>) -> impl Iterator<Item = Column> {
    labels.iter().map(|label| {
        let mut name = (*label).to_owned();
        while OWN.contains(&&*name) || name != *label && labels.contains(&*name) {
            name.insert_str(0, LABEL_PREFIX);
        }
        Column {
            name,
            kind: Kind::Text,
            label: Some((*label).into()),
        }
    })
}

/// The columns of what was found: time, line, labels by name, value. Numbers of one instant have a time
/// only if that is wanted.
pub(crate) fn columns(found: &QueryResult, has_time: bool) -> Vec<Column> {
    let mut labels: BTreeSet<&str> = BTreeSet::new();
    let mut columns = Vec::new();
    let numbers = match found {
        QueryResult::Lines { lines, .. } => {
            columns.push(own(TIME, Kind::Time));
            columns.push(own(LINE, Kind::Text));
            for line in lines {
                let named = line.labels.iter().filter(|(_, value, _)| !value.is_empty());
                labels.extend(named.map(|(name, ..)| &**name));
            }
            columns.extend(of_labels(&labels));
            return columns;
        }
        QueryResult::Numbers { numbers, .. } => numbers,
    };
    let is_over_time = match numbers {
        Numbers::Series { series, .. } => {
            let all = series.iter().flat_map(|one| one.labels.iter());
            labels.extend(all.map(|(name, _)| name));
            true
        }
        Numbers::Samples(samples, _) => {
            let all = samples.iter().flat_map(|one| one.labels.iter());
            labels.extend(all.map(|(name, _)| name));
            false
        }
    };
    if is_over_time || has_time {
        columns.push(own(TIME, Kind::Time));
    }
    columns.extend(of_labels(&labels));
    columns.push(own(VALUE, Kind::Number));
    columns
}

/// Passes on the rows, whose cells are those of the columns. Instants at which a series has nothing are
/// no rows; where nothing is zero, they are.
///
/// # Errors
/// The first error of `take`, which ends it.
pub(crate) fn each_row<E>(
    found: &QueryResult,
    columns: &[Column],
    mut take: impl FnMut(&[Cell<'_>]) -> Result<(), E>,
) -> Result<(), E> {
    match found {
        QueryResult::Lines { lines, .. } => lines.iter().try_for_each(|line| {
            let cells: Vec<Cell<'_>> = columns.iter().map(|c| of_line(line, c)).collect();
            take(&cells)
        }),
        QueryResult::Numbers { numbers, .. } => match numbers {
            Numbers::Samples(samples, at) => samples.iter().try_for_each(|sample| {
                let cell = |column: &Column| of_series(&sample.labels, column, *at, sample.value);
                let cells: Vec<Cell<'_>> = columns.iter().map(cell).collect();
                take(&cells)
            }),
            Numbers::Series {
                series,
                times,
                is_additive,
            } => series.iter().try_for_each(|one| {
                each_point(one, times, *is_additive, |at, value| {
                    let Some(value) = value else {
                        return Ok(());
                    };
                    let cell = |column: &Column| of_series(&one.labels, column, at, value);
                    let cells: Vec<Cell<'_>> = columns.iter().map(cell).collect();
                    take(&cells)
                })
            }),
        },
    }
}

fn of_line<'l>(line: &'l Line, column: &Column) -> Cell<'l> {
    match (&column.label, column.kind) {
        (Some(label), _) => {
            let place = line.labels.binary_search_by(|(name, ..)| name.cmp(label));
            let value = place.map(|at| &*line.labels[at].1).unwrap_or_default();
            if value.is_empty() {
                Cell::Nothing
            } else {
                Cell::Text(Cow::Borrowed(value))
            }
        }
        (None, Kind::Time) => Cell::Time(line.key.time),
        (None, _) => Cell::Text(String::from_utf8_lossy(&line.line)),
    }
}

fn of_series<'s>(labels: &'s SeriesLabels, column: &Column, at: Timestamp, value: f64) -> Cell<'s> {
    match (&column.label, column.kind) {
        (Some(label), _) => match labels.get(label) {
            Some(text) => Cell::Text(Cow::Borrowed(text)),
            None => Cell::Nothing,
        },
        (None, Kind::Time) => Cell::Time(at),
        (None, _) => Cell::number(value),
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use logpond_record::Id;
    use logpond_search::metric::{Sample, Series, Times};
    use logpond_search::pipeline::Origin;

    use super::*;
    use logpond_engine::query::Key;

    fn rows(found: &QueryResult, has_time: bool) -> (Vec<String>, Vec<String>) {
        let columns = columns(found, has_time);
        let mut rows = Vec::new();
        let Ok(()) = each_row(found, &columns, |cells| {
            rows.push(format!("{cells:?}"));
            Ok::<(), Infallible>(())
        });
        (columns.into_iter().map(|c| c.name).collect(), rows)
    }

    #[test]
    fn lines_have_a_column_for_each_label() {
        let line = |time, labels: &[(&str, &str)]| Line {
            key: Key {
                time: Timestamp(time),
                id: Id(1),
            },
            line: b"x\xff".to_vec(),
            labels: labels
                .iter()
                .map(|(name, value)| ((*name).into(), (*value).into(), Origin::Stream))
                .collect(),
        };
        let found = QueryResult::Lines {
            lines: vec![
                line(1, &[("app", "a"), ("label_time", "u"), ("time", "t")]),
                line(2, &[("b", "")]),
            ],
            cursor: None,
            warnings: Vec::new(),
        };
        let (names, rows) = rows(&found, false);
        assert_eq!(
            names,
            ["time", "line", "app", "label_time", "label_label_time"]
        );
        assert_eq!(
            rows,
            [
                r#"[Time(1970-01-01T00:00:00.000000001Z), Text("x�"), Text("a"), Text("u"), Text("t")]"#,
                r#"[Time(1970-01-01T00:00:00.000000002Z), Text("x�"), Nothing, Nothing, Nothing]"#,
            ]
        );
    }

    #[test]
    fn numbers_have_their_labels_and_a_value() {
        let labels = std::sync::Arc::new(SeriesLabels::new([("host", "w")]));
        let samples = [1.5, f64::NAN].map(|value| Sample {
            labels: labels.clone(),
            value,
        });
        let found = |numbers| QueryResult::Numbers {
            numbers,
            warnings: Vec::new(),
        };
        let at = found(Numbers::Samples(samples.into(), Timestamp(7)));
        let (names, told) = rows(&at, false);
        assert_eq!(names, ["host", "value"]);
        assert_eq!(
            told,
            [r#"[Text("w"), Number(1.5)]"#, r#"[Text("w"), Nothing]"#]
        );
        assert_eq!(rows(&at, true).0, ["time", "host", "value"]);
        let series = Numbers::Series {
            series: vec![Series {
                labels,
                points: vec![(Timestamp(10), 2.0)],
            }],
            times: Times {
                start_ns: 0,
                step_ns: 10,
                count: 2,
            },
            is_additive: false,
        };
        let (names, told) = rows(&found(series), false);
        assert_eq!(names, ["time", "host", "value"]);
        assert_eq!(
            told,
            [r#"[Time(1970-01-01T00:00:00.000000010Z), Text("w"), Number(2.0)]"#]
        );
    }
}
