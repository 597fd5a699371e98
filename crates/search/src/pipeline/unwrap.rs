//! `| unwrap`: the number that a label is.

use logpond_record::cast;

use super::Work;
use super::label_filter::LabelFilter;
use super::labels::StageError;
use crate::logql::{self, Conversion, bytes_of, duration_ns, number_of};

/// A compiled unwrapping.
#[derive(Clone, Debug)]
pub struct Unwrap {
    label: Box<str>,
    conversion: Conversion,
    filters: Vec<LabelFilter>,
}

impl Unwrap {
    /// Compiles an unwrapping.
    ///
    /// # Errors
    /// What is wrong with a condition; what was parsed always compiles.
    pub fn new(unwrap: &logql::Unwrap) -> Result<Unwrap, String> {
        let filters = unwrap.filters.iter().map(LabelFilter::new);
        Ok(Unwrap {
            label: unwrap.label.clone(),
            conversion: unwrap.conversion,
            filters: filters.collect::<Result<_, _>>()?,
        })
    }

    /// The label whose number is taken.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// The number of a line's label; `None` for a line without the label, or one that a condition does
    /// not let through. A label that is no number is an error, and the line counts as 0.
    pub fn run(&self, work: &mut Work<'_>) -> Option<f64> {
        let text = work
            .labels
            .get(&self.label)
            .filter(|text| !text.is_empty())?;
        let number = match self.conversion {
            Conversion::Number => number_of(text),
            Conversion::Bytes => bytes_of(text).map(cast::float),
            Conversion::Duration | Conversion::DurationSeconds => {
                duration_ns(text).map(|ns| cast::float(ns) / 1e9)
            }
        };
        if number.is_none() {
            let details = format!("{text:?} is no number");
            work.labels.fail(StageError::SampleExtraction, details);
        }
        self.accepts(work).then_some(number.unwrap_or(0.0))
    }

    /// Whether there are conditions behind.
    pub(crate) fn has_conditions(&self) -> bool {
        !self.filters.is_empty()
    }

    /// Whether the conditions behind let a line through whose label was a number.
    pub(crate) fn accepts(&self, work: &mut Work<'_>) -> bool {
        let labels = &mut work.labels;
        self.filters.iter().all(|filter| filter.accepts(labels))
    }
}
