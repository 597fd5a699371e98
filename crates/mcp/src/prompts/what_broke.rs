//! `what_broke`: finds the cause of an incident that goes on.

use super::super::arguments::{Arguments, QUERY, optional};
use super::{Prompt, RULES, about};

pub(super) const PROMPT: Prompt = Prompt {
    name: "what_broke",
    title: "What broke?",
    help: "Finds out what went wrong, when it began, and what it began with.",
    arguments: &[
        optional(
            "since",
            "When all was still well: a UTC time, or an age such as 2h. The default is 1h.",
        ),
        QUERY,
    ],
    text,
};

fn text(arguments: &Arguments) -> String {
    let since = arguments.text("since").unwrap_or("1h");
    let about = about(arguments);
    format!(
        "Something broke after {since}. Find out what, when it began and why, from the logs.{about}\n\
         1. Call `changes` with `from` = `{since}`: patterns that are new or more frequent come first.\n\
         2. Call `histogram` for the most suspicious pattern, to find the minute in which it began; narrow `step`.\n\
         3. Call `group` for errors in that minute, by host, service and other fields that `fields` lists.\n\
         4. Call `search` with `order` = `oldest` from that minute on, and `context` for the first record, to see \
         what came before: deployments, restarts, changes of configuration, full disks, lost connections.\n\
         5. Report in a few lines: what broke, since when, what is affected, the likely cause and the evidence.\n\
         {RULES}"
    )
}
