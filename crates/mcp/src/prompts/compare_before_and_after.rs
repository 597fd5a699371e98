//! `compare_before_and_after`: what a change changed.

use super::super::arguments::{Arguments, QUERY, optional, required};
use super::{Prompt, RULES, about};

pub(super) const PROMPT: Prompt = Prompt {
    name: "compare_before_and_after",
    title: "Compare before and after",
    help: "Compares the logs before and after a moment, such as a deployment.",
    arguments: &[
        required(
            "time",
            "The moment, as a UTC time such as 2026-11-21T10:00:00Z.",
        ),
        optional("minutes", "Minutes before and after it; the default is 30."),
        QUERY,
    ],
    text,
};

fn text(arguments: &Arguments) -> String {
    let time = arguments.text("time").unwrap_or_default();
    let minutes = arguments.text("minutes").unwrap_or("30");
    let about = about(arguments);
    format!(
        "Compare the logs of {minutes} minutes before and after {time}.{about}\n\
         1. Call `changes` with `from` = `{time}`, `to` {minutes} minutes later, and `before_from` {minutes} minutes \
         earlier.\n\
         2. For each change that matters, call `search` for an example, and `histogram` to see if it began at that \
         moment or before.\n\
         3. Call `stats` for durations and sizes of both ranges, if `fields` lists any.\n\
         4. Report: what is new, what is gone, what is more or less frequent, and which changes are likely due to the \
         moment.\n\
         {RULES}"
    )
}
