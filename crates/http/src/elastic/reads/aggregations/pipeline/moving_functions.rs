//! `MovingFunctions`: functions of the values of a window, in the order of the buckets.

use logpond_record::cast;

use super::super::super::json::bad;
use crate::error::ApiError;

/// A function of values, with further arguments.
pub(super) type Function = fn(&[f64], &[f64]) -> f64;

/// The functions, with the numbers of their further arguments.
const FUNCTIONS: [(&str, usize, Function); 8] = [
    ("ewma", 1, |values, further| weighted(values, further[0])),
    ("holt", 2, |values, further| {
        trend(values, further[0], further[1])
    }),
    ("linearWeightedAvg", 0, |values, _| linear(values)),
    ("max", 0, |values, _| extreme(values, f64::max)),
    ("min", 0, |values, _| extreme(values, f64::min)),
    ("stdDev", 1, |values, further| deviation(values, further[0])),
    ("sum", 0, |values, _| values.iter().sum()),
    ("unweightedAvg", 0, |values, _| {
        values.iter().sum::<f64>() / cast::float(values.len())
    }),
];

/// The function of a name, with the number of its further arguments.
///
/// # Errors
/// When there is none.
pub(super) fn find(name: &str) -> Result<(Function, usize), ApiError> {
    let found = FUNCTIONS.iter().find(|(known, ..)| *known == name);
    let known: Vec<&str> = FUNCTIONS.iter().map(|(known, ..)| *known).collect();
    found
        .map(|(_, count, function)| (*function, *count))
        .ok_or_else(|| {
            bad(format!(
                "[MovingFunctions.{name}] is not supported; there are {}",
                known.join(", ")
            ))
        })
}

fn extreme(values: &[f64], function: fn(f64, f64) -> f64) -> f64 {
    values.iter().copied().reduce(function).unwrap_or(f64::NAN)
}

fn deviation(values: &[f64], mean: f64) -> f64 {
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / cast::float(values.len())).sqrt()
}

/// The mean with weights from 1 up. The sum of the weights is one more than they are, as in Elasticsearch.
fn linear(values: &[f64]) -> f64 {
    let (mut sum, mut weights, mut weight) = (0.0, 1.0, 1.0);
    for value in values {
        sum += value * weight;
        weights += weight;
        weight += 1.0;
    }
    if values.is_empty() {
        f64::NAN
    } else {
        sum / weights
    }
}

/// The mean whose weights fall by a factor from value to value (exponential smoothing).
fn weighted(values: &[f64], alpha: f64) -> f64 {
    let mean = |mean: f64, value: f64| value * alpha + mean * (1.0 - alpha);
    values.iter().copied().reduce(mean).unwrap_or(f64::NAN)
}

/// The level of exponential smoothing with a trend (Holt, 1957).
fn trend(values: &[f64], alpha: f64, beta: f64) -> f64 {
    let Some((first, rest)) = values.split_first() else {
        return f64::NAN;
    };
    let (mut level, mut slope) = (*first, 0.0);
    for value in rest {
        let before = level;
        level = alpha * value + (1.0 - alpha) * (before + slope);
        slope = beta * (level - before) + (1.0 - beta) * slope;
    }
    level
}
