//! Operators between numbers, and between series of two sides.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::evaluate::{EvaluationError, Sample};
use super::series::SeriesLabels;
use crate::logql::{BinaryOperation, ManySide, Matching, Operator};

/// Of two numbers. Comparisons give 1 and 0; by zero nothing can be divided.
pub(super) fn of_numbers(operator: Operator, left: f64, right: f64) -> f64 {
    if let Some(comparison) = operator.comparison() {
        return f64::from(u8::from(comparison.holds(left, right)));
    }
    match operator {
        Operator::Add => left + right,
        Operator::Sub => left - right,
        Operator::Mul => left * right,
        Operator::Div if right == 0.0 => f64::NAN,
        Operator::Div => left / right,
        Operator::Mod if right == 0.0 => f64::NAN,
        Operator::Mod => left % right,
        Operator::Pow => left.powf(right),
        _ => f64::NAN,
    }
}

/// The number that is left of two, of which `kept` stays where a comparison holds.
fn merged(operation: &BinaryOperation, left: f64, right: f64, kept: f64) -> Option<f64> {
    let number = of_numbers(operation.operator, left, right);
    match operation.operator.comparison() {
        Some(_) if !operation.is_bool => (number != 0.0).then_some(kept),
        _ => Some(number),
    }
}

/// Of series and a number.
pub(super) fn with_number(
    operation: &BinaryOperation,
    series: Vec<Sample>,
    number: f64,
    number_is_left: bool,
) -> Vec<Sample> {
    let samples = series.into_iter().filter_map(|sample| {
        let (left, right) = if number_is_left {
            (number, sample.value)
        } else {
            (sample.value, number)
        };
        let value = merged(operation, left, right, sample.value)?;
        Some(Sample { value, ..sample })
    });
    samples.collect()
}

/// Of series of two sides.
pub(super) fn of_series(
    operation: &BinaryOperation,
    left: Vec<Sample>,
    right: Vec<Sample>,
) -> Result<Vec<Sample>, EvaluationError> {
    let signature = |sample: &Sample| signature(&sample.labels, &operation.matching);
    if operation.operator.is_set() {
        let of_other =
            |side: &[Sample]| -> BTreeSet<SeriesLabels> { side.iter().map(signature).collect() };
        return Ok(match operation.operator {
            Operator::Or => {
                let known = of_other(&left);
                let more = right.into_iter().filter(|s| !known.contains(&signature(s)));
                let more: Vec<Sample> = more.collect();
                left.into_iter().chain(more).collect()
            }
            operator => {
                let known = of_other(&right);
                let is_wanted =
                    |s: &Sample| known.contains(&signature(s)) == (operator == Operator::And);
                left.into_iter().filter(is_wanted).collect()
            }
        });
    }
    // Many are on the left from here on.
    let is_swapped = operation.matching.many == ManySide::Right;
    let (many, one) = if is_swapped {
        (right, left)
    } else {
        (left, right)
    };
    let mut ones: BTreeMap<SeriesLabels, Sample> = BTreeMap::new();
    for sample in one {
        if ones.insert(signature(&sample), sample).is_some() {
            return Err(EvaluationError::Duplicates(if is_swapped {
                "left"
            } else {
                "right"
            }));
        }
    }
    matched(operation, many, &ones, is_swapped)
}

fn matched(
    operation: &BinaryOperation,
    many: Vec<Sample>,
    ones: &BTreeMap<SeriesLabels, Sample>,
    is_swapped: bool,
) -> Result<Vec<Sample>, EvaluationError> {
    let mut results = Vec::new();
    let mut seen = BTreeSet::new();
    for sample in many {
        let signature = signature(&sample.labels, &operation.matching);
        let Some(other) = ones.get(&signature) else {
            continue;
        };
        let labels = result_labels(&sample.labels, &other.labels, &operation.matching);
        let is_new = match operation.matching.many {
            ManySide::Neither => seen.insert(signature),
            _ => seen.insert(labels.clone()),
        };
        if !is_new {
            return Err(match operation.matching.many {
                ManySide::Neither => EvaluationError::ManyToOne,
                _ => EvaluationError::Ambiguous,
            });
        }
        let (left, right) = if is_swapped {
            (other.value, sample.value)
        } else {
            (sample.value, other.value)
        };
        if let Some(value) = merged(operation, left, right, left) {
            let labels = Arc::new(labels);
            results.push(Sample { labels, value });
        }
    }
    Ok(results)
}

/// What two series have in common that belong together. A label without text is as good as none.
fn signature(labels: &SeriesLabels, matching: &Matching) -> SeriesLabels {
    match &matching.labels {
        None => labels.without(&[]),
        Some(names) if names.is_on => labels.only(&names.labels),
        Some(names) => labels.without(&names.labels),
    }
}

fn result_labels(many: &SeriesLabels, one: &SeriesLabels, matching: &Matching) -> SeriesLabels {
    let labels = match matching.many {
        ManySide::Neither => signature(many, matching),
        _ => many.clone(),
    };
    matching.include.iter().fold(labels, |labels, name| {
        labels.with(name, one.get(name).unwrap_or_default())
    })
}
