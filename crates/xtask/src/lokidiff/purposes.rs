//! Differences that are kept on purpose: each with its reason and with what tells it from mistakes.

use super::answer::Answer;
use super::ask::Question;

/// A question with both answers, which differ.
pub(super) struct Case<'a> {
    pub(super) question: &'a Question,
    pub(super) loki: &'a Answer,
    pub(super) ours: &'a Answer,
    /// What our answer warns of.
    pub(super) warnings: &'a [String],
}

/// A difference that is kept.
pub(super) struct Purpose {
    pub(super) reason: &'static str,
    holds: fn(&Case<'_>) -> bool,
}

/// All of them.
const PURPOSES: [Purpose; 2] = [
    Purpose {
        reason: "lines that a stage could not read are counted with a warning; Loki fails the query",
        holds: |case| {
            is_refused_with(case, "pipeline error")
                && !case.warnings.is_empty()
                && is_answer(case.ours)
        },
    },
    Purpose {
        reason: "selectors that match everything are allowed",
        holds: |case| {
            is_refused_with(case, "at least one regexp or equality matcher") && is_answer(case.ours)
        },
    },
];

/// Why two answers differ on purpose, if they do.
pub(super) fn reason(case: &Case<'_>) -> Option<&'static str> {
    let found = PURPOSES.iter().find(|purpose| (purpose.holds)(case));
    found.map(|purpose| purpose.reason)
}

/// Whether Loki says that the question is wrong, with these words.
fn is_refused_with(case: &Case<'_>, words: &str) -> bool {
    matches!(case.loki, Answer::Refused(text) if text.contains(words))
}

fn is_answer(answer: &Answer) -> bool {
    !matches!(answer, Answer::Refused(_) | Answer::Failed(_))
}
