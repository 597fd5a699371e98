//! `| drop` and `| keep`: some labels, and no others.

use super::labels::{ERROR, ERROR_DETAILS, Labels};
use super::text_match::TextMatch;
use crate::logql::{LabelChoice, Place};

/// Labels by name, or by name and value.
#[derive(Clone, Debug)]
pub(super) struct Choices(Vec<Choice>);

#[derive(Clone, Debug)]
enum Choice {
    Name(Box<str>),
    Value(TextMatch),
}

impl Choice {
    fn accepts(&self, name: &str, value: &str) -> bool {
        match self {
            Choice::Name(wanted) => **wanted == *name,
            Choice::Value(matcher) => *matcher.name == *name && matcher.accepts(value),
        }
    }
}

impl Choices {
    pub(super) fn new(choices: &[LabelChoice]) -> Result<Choices, String> {
        let choices = choices.iter().map(|choice| match choice {
            LabelChoice::Name(name) => Ok(Choice::Name(name.clone())),
            LabelChoice::Matcher(matcher) => {
                TextMatch::new(matcher, Place::Selector).map(Choice::Value)
            }
        });
        choices.collect::<Result<_, String>>().map(Choices)
    }

    fn has(&self, name: &str, value: &str) -> bool {
        self.0.iter().any(|choice| choice.accepts(name, value))
    }

    /// Takes these labels away.
    pub(super) fn drop(&self, labels: &mut Labels) {
        if let Some(value) = labels.get(ERROR)
            && self.has(ERROR, value)
        {
            labels.forgive();
        }
        if let Some(value) = labels.get(ERROR_DETAILS)
            && self.has(ERROR_DETAILS, value)
        {
            labels.forget_details();
        }
        self.remove(labels, true);
    }

    /// Takes all others away, but for errors.
    pub(super) fn keep(&self, labels: &mut Labels) {
        self.remove(labels, false);
    }

    fn remove(&self, labels: &mut Labels, chosen: bool) {
        for place in 0..labels.places() {
            let found = labels.at(place);
            if found.is_some_and(|(name, value, _)| self.has(name, value) == chosen) {
                labels.remove_at(place);
            }
        }
    }
}
