//! The five questions that find the incident.

use super::story::BAD_RELEASE;

/// A question that the demo prints.
pub struct Question {
    /// The question of a person.
    pub text: &'static str,
    /// The arguments of `logpond` that answer it.
    pub arguments: &'static [&'static str],
    /// The part of the page's address that answers it.
    pub page: &'static str,
    /// A word of the answer that leads on.
    pub clue: &'static str,
}

/// The questions, in their order: each answer leads to the next question.
pub static QUESTIONS: [Question; 5] = [
    Question {
        text: "When do requests fail?",
        arguments: &[
            "histogram",
            "-f",
            "status>=500",
            "--since",
            "1d",
            "--step",
            "10m",
        ],
        page: "?q=status>=500&from=24h",
        clue: "",
    },
    Question {
        text: "Which page fails?",
        arguments: &["top", "path", "-f", "status>=500", "--since", "1d"],
        page: "?view=access&q=status>=500&from=24h",
        clue: "/checkout",
    },
    Question {
        text: "Which service logs errors?",
        arguments: &["top", "service", "-l", "error", "--since", "1d"],
        page: "?q=level=error&from=24h",
        clue: "checkout",
    },
    Question {
        text: "What do its errors say?",
        arguments: &[
            "patterns",
            "-f",
            "service=checkout",
            "-l",
            "error",
            "--since",
            "1d",
        ],
        page: "?view=patterns&q=service=checkout+level=error&from=24h",
        clue: "is exhausted",
    },
    Question {
        text: "What changed just before?",
        arguments: &["query", "rolled out", "--since", "1d"],
        page: "?q=rolled+out&from=24h",
        clue: BAD_RELEASE,
    },
];
