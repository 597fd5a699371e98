//! `| status >= 500 and method = "GET"`: lines by their labels.

use super::ip::Addresses;
use super::labels::{Labels, StageError};
use super::text_match::TextMatch;
use crate::logql::{self, Comparison, Place, Quantity, bytes_of, duration_ns, number_of};

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
        quantity: Quantity,
    },
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
                quantity: *quantity,
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
                quantity,
            } => {
                let Some(text) = labels.own(name) else {
                    return false;
                };
                match compare(text, *comparison, *quantity) {
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

fn compare(text: &str, comparison: Comparison, quantity: Quantity) -> Result<bool, String> {
    let accepts = |order: std::cmp::Ordering| match comparison {
        Comparison::Equal => order.is_eq(),
        Comparison::NotEqual => order.is_ne(),
        Comparison::Greater => order.is_gt(),
        Comparison::GreaterOrEqual => order.is_ge(),
        Comparison::Less => order.is_lt(),
        Comparison::LessOrEqual => order.is_le(),
    };
    match quantity {
        Quantity::Number(wanted) => match number_of(text) {
            Some(number) => Ok(comparison.holds(number, wanted)),
            None => Err(format!("{text:?} is no number")),
        },
        Quantity::Duration(wanted) => match duration_ns(text) {
            Some(duration) => Ok(accepts(duration.cmp(&wanted))),
            None => Err(format!("{text:?} is no duration")),
        },
        Quantity::Bytes(wanted) => match bytes_of(text) {
            Some(bytes) => Ok(accepts(bytes.cmp(&wanted))),
            None => Err(format!("{text:?} is no amount of bytes")),
        },
    }
}
