//! What LogQL does with each line: a stage takes a line and its labels, and yields the same, others, or
//! nothing.
//!
//! One file for each stage, so that what one does is in one place.

pub mod ip;
pub mod like;

use crate::logql::{LineChoice, LineOperator, StageKind};
use crate::pattern::check_expression;

/// Checks that a stage compiles: its expressions, patterns and templates.
///
/// # Errors
/// What is wrong with it.
pub fn check(stage: &StageKind) -> Result<(), String> {
    match stage {
        StageKind::LineFilter(filter) => {
            for choice in &filter.choices {
                let LineChoice::Text(text) = choice else {
                    continue;
                };
                match filter.operator {
                    LineOperator::Matches | LineOperator::NotMatches => expression(text)?,
                    LineOperator::Like | LineOperator::NotLike => {
                        like::Like::parse(text)?;
                    }
                    LineOperator::Contains | LineOperator::NotContains => {}
                }
            }
            Ok(())
        }
        StageKind::Regexp(source) => expression(source),
        _ => Ok(()),
    }
}

fn expression(source: &str) -> Result<(), String> {
    check_expression(source).map_err(|error| format!("error parsing regexp: {}", error.message))
}
