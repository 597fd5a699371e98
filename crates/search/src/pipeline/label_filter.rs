//! `| status >= 500 and method = "GET"`: lines by their labels.

use std::cmp::Ordering;

use super::ip::Addresses;
use super::labels::{Labels, StageError};
use super::text_match::TextMatch;
use crate::logql::{
    self, Comparison, Place, Quantity, bytes_of, duration_ns, exact_number_of, number_of,
};
use crate::number::Number;

/// A compiled condition on labels.
#[derive(Clone, Debug)]
pub(super) enum LabelFilter {
    And(Box<[LabelFilter; 2]>),
    Or(Box<[LabelFilter; 2]>),
    Text(TextMatch),
    Ip {
        name: Box<str>,
        is_negated: bool,
        addresses: Addresses,
    },
    Quantity {
        name: Box<str>,
        comparison: Comparison,
        wanted: Comparand,
    },
}

/// The quantity that a label is compared with.
#[derive(Clone, Debug)]
pub(super) enum Comparand {
    Number {
        number: Number,
        /// The nearest one to it.
        float: f64,
    },
    Duration(i64),
    Bytes(u64),
}

impl Comparand {
    fn new(quantity: &Quantity) -> Comparand {
        match quantity {
            Quantity::Number(number) => Comparand::Number {
                float: number.to_float(),
                number: number.clone(),
            },
            Quantity::Duration(ns) => Comparand::Duration(*ns),
            Quantity::Bytes(bytes) => Comparand::Bytes(*bytes),
        }
    }
}

impl LabelFilter {
    pub(super) fn new(filter: &logql::LabelFilter) -> Result<LabelFilter, String> {
        use logql::LabelFilter as Filter;
        Ok(match filter {
            Filter::And(left, right) => LabelFilter::And(both(left, right)?),
            Filter::Or(left, right) => LabelFilter::Or(both(left, right)?),
            Filter::Text(matcher) => {
                LabelFilter::Text(TextMatch::new(matcher, Place::LabelFilter)?)
            }
            Filter::Ip {
                name,
                is_negated,
                pattern,
            } => LabelFilter::Ip {
                name: name.clone(),
                is_negated: *is_negated,
                addresses: Addresses::parse(pattern)?,
            },
            Filter::Quantity {
                name,
                comparison,
                quantity,
            } => LabelFilter::Quantity {
                name: name.clone(),
                comparison: *comparison,
                wanted: Comparand::new(quantity),
            },
        })
    }

    /// Whether a line with these labels is let through. A label that is no quantity is an error, and
    /// the line goes on. Only conditions on text see errors; of a line with one no address is asked.
    pub(super) fn accepts(&self, labels: &mut Labels) -> bool {
        match self {
            LabelFilter::And(parts) => parts.iter().all(|part| part.accepts(labels)),
            LabelFilter::Or(parts) => parts.iter().any(|part| part.accepts(labels)),
            LabelFilter::Text(matcher) => {
                matcher.accepts(labels.get(&matcher.name).unwrap_or_default())
            }
            LabelFilter::Ip { .. } if labels.error().is_some() => true,
            LabelFilter::Ip {
                name,
                is_negated,
                addresses,
            } => labels
                .own(name)
                .is_some_and(|text| addresses.is_in(text.as_bytes()) != *is_negated),
            LabelFilter::Quantity {
                name,
                comparison,
                wanted,
            } => {
                let Some(text) = labels.own(name) else {
                    return false;
                };
                match compare(text, *comparison, wanted) {
                    Ok(is_wanted) => is_wanted,
                    Err(details) => {
                        // The first error says more.
                        if labels.error().is_none() {
                            labels.fail(StageError::LabelFilter, details);
                        }
                        true
                    }
                }
            }
        }
    }
}

fn both(
    left: &logql::LabelFilter,
    right: &logql::LabelFilter,
) -> Result<Box<[LabelFilter; 2]>, String> {
    Ok(Box::new([
        LabelFilter::new(left)?,
        LabelFilter::new(right)?,
    ]))
}

fn compare(text: &str, comparison: Comparison, wanted: &Comparand) -> Result<bool, String> {
    match wanted {
        Comparand::Number { number, float } => match number_of(text) {
            Some(found) => Ok(compare_numbers(text, found, comparison, number, *float)),
            None => Err(format!("{text:?} is no number")),
        },
        Comparand::Duration(wanted) => match duration_ns(text) {
            Some(duration) => Ok(accepts(comparison, duration.cmp(wanted))),
            None => Err(format!("{text:?} is no duration")),
        },
        Comparand::Bytes(wanted) => match bytes_of(text) {
            Some(bytes) => Ok(accepts(comparison, bytes.cmp(wanted))),
            None => Err(format!("{text:?} is no amount of bytes")),
        },
    }
}

/// Compares numbers of which the nearest floats are known. Rounding keeps the order, so that digits matter only
/// where the floats are equal.
fn compare_numbers(
    text: &str,
    found: f64,
    comparison: Comparison,
    number: &Number,
    float: f64,
) -> bool {
    let exact = (found == float).then(|| exact_number_of(text));
    match exact.flatten() {
        Some(exact) => accepts(comparison, exact.compare(number)),
        // Infinities and what is no number (NaN) are never equal to what is wanted.
        None => comparison.holds(found, float),
    }
}

fn accepts(comparison: Comparison, order: Ordering) -> bool {
    match comparison {
        Comparison::Equal => order.is_eq(),
        Comparison::NotEqual => order.is_ne(),
        Comparison::Greater => order.is_gt(),
        Comparison::GreaterOrEqual => order.is_ge(),
        Comparison::Less => order.is_lt(),
        Comparison::LessOrEqual => order.is_le(),
    }
}
