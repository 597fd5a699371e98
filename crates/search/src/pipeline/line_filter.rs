//! `|=`, `|~`, `|>` and their negations: lines by their text.

use super::ip::Addresses;
use super::like::LikePattern;
use crate::logql::{self, LineChoice, LineOperator};
use crate::pattern::Finder;
use crate::query::Pattern;

/// A compiled condition on a line.
#[derive(Clone, Debug)]
pub(super) struct LineFilter {
    is_negated: bool,
    choices: Vec<Choice>,
}

#[derive(Clone, Debug)]
enum Choice {
    Find(Box<Finder>),
    Like(LikePattern),
    Ip(Addresses),
}

impl LineFilter {
    pub(super) fn new(filter: &logql::LineFilter) -> Result<LineFilter, String> {
        let choices = filter.choices.iter().map(|c| choice(filter.operator, c));
        Ok(LineFilter {
            is_negated: filter.operator.is_negated(),
            choices: choices.collect::<Result<_, _>>()?,
        })
    }

    /// Whether a line is let through.
    pub(super) fn accepts(&self, line: &[u8]) -> bool {
        let is_found = self.choices.iter().any(|choice| match choice {
            Choice::Find(finder) => finder.is_match(line),
            Choice::Like(like) => like.is_match(line),
            Choice::Ip(addresses) => addresses.is_in(line),
        });
        is_found != self.is_negated
    }
}

fn choice(operator: LineOperator, choice: &LineChoice) -> Result<Choice, String> {
    let text = match choice {
        LineChoice::Ip(pattern) => return Addresses::parse(pattern).map(Choice::Ip),
        LineChoice::Text(text) => text,
    };
    let pattern = match operator {
        LineOperator::Contains | LineOperator::NotContains => {
            Ok(Pattern::substring(text.as_bytes(), false))
        }
        LineOperator::Matches | LineOperator::NotMatches => logql::in_line(text),
        LineOperator::Like | LineOperator::NotLike => {
            return LikePattern::parse(text).map(Choice::Like);
        }
    };
    let finder = pattern.and_then(|pattern| Finder::new(&pattern));
    let finder = finder.map_err(|error| format!("error parsing regexp: {}", error.message))?;
    Ok(Choice::Find(Box::new(finder)))
}
