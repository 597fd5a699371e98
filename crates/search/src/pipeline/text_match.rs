//! Conditions on the text of a label, compiled.

use crate::logql::{LabelMatcher, MatchOperator, Place, whole_label};
use crate::pattern::Finder;

/// A compiled condition on a label's text.
#[derive(Clone, Debug)]
pub(super) struct TextMatch {
    pub(super) name: Box<str>,
    is_negated: bool,
    test: Test,
}

#[derive(Clone, Debug)]
enum Test {
    Is(Box<str>),
    Finds(Box<Finder>),
}

impl TextMatch {
    pub(super) fn new(matcher: &LabelMatcher, place: Place) -> Result<TextMatch, String> {
        let test = match matcher.operator {
            MatchOperator::Equal | MatchOperator::NotEqual => Test::Is(matcher.value.clone()),
            MatchOperator::Regex | MatchOperator::NotRegex => {
                let pattern = whole_label(&matcher.value, place);
                let finder = pattern.and_then(|pattern| Finder::new(&pattern));
                let finder = finder.map_err(|e| format!("error parsing regexp: {}", e.message))?;
                Test::Finds(Box::new(finder))
            }
        };
        let is_negated = matches!(
            matcher.operator,
            MatchOperator::NotEqual | MatchOperator::NotRegex
        );
        Ok(TextMatch {
            name: matcher.name.clone(),
            is_negated,
            test,
        })
    }

    /// Whether a text is wanted; of a label that is not there, the empty one.
    pub(super) fn accepts(&self, text: &str) -> bool {
        let is_it = match &self.test {
            Test::Is(wanted) => **wanted == *text,
            Test::Finds(finder) => finder.is_match(text.as_bytes()),
        };
        is_it != self.is_negated
    }
}
