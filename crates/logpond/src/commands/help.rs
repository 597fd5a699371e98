//! `logpond help`: explains a command or a topic.

use clap::CommandFactory;
use logpond_search::nearest;

use super::listing::print;
use super::{Exit, Failure};
use crate::cli::{Cli, Help};

/// What is explained beside the commands.
const TOPICS: [(&str, &str); 4] = [
    ("filters", FILTERS),
    ("times", TIMES),
    ("variables", VARIABLES),
    ("exit-status", EXIT_STATUS),
];

/// Other names of topics.
const OTHER_NAMES: [(&str, &str); 8] = [
    ("filter", "filters"),
    ("where", "filters"),
    ("language", "filters"),
    ("time", "times"),
    ("since", "times"),
    ("environment", "variables"),
    ("exit", "exit-status"),
    ("status", "exit-status"),
];

const FILTERS: &str = "\
Records are chosen by flags, all of which must hold, or by a filter (--where, and q of the API):

  TEXT                        the line or the message has this text, spaces included
  -e 'timeout|error'          a regular expression; -i in any case, -v records that do not match
  -f status=500               a field; also != > >= < <= ~REGEX !~REGEX :TEXT and :* (there is one)

  --where 'level=error timeout'                both; terms side by side are joined by AND
  --where 'status>=500 OR path~/^\\/api/'       also AND, NOT and parentheses, in upper case
  --where '\"exact text\" NOT user=ann'          != and NOT hold for records without the field, too
  --where 'i\"any case\" _msg:refused'           reserved: _time _received _msg _raw _id _time_source

'logpond fields' lists the fields that there are.
";

const TIMES: &str = "\
--since and --until, of which the latter is excluded, take

  1h, 2 days ago, now-5m      before now
  today, yesterday 09:00, monday, 2pm, 09:30, boot
  2026-11-21, 2026-11-21 10:00, 2026-11-21T10:00:00.5+01:00
  @1763719200.5               Unix time

without a zone in this machine's. query, top, fields, histogram, patterns and saved run search the last
hour where no --since is given; export and sql all times. Times are those of events, not of arrival.
";

const VARIABLES: &str = "\
LOGPOND_ADDR                  the server, as --addr
LOGPOND_TOKEN                 the token for it; LOGPOND_TOKEN_FILE names a file with it
LOGPOND_CA_FILE               authorities to trust
LOGPOND_PAGER, PAGER          the pager of query and journal
NO_COLOR, CLICOLOR_FORCE, CLICOLOR
TZ                            the zone of times
LOGPOND_CONFIG                the settings file of serve
LOGPOND_SETTING               each setting of serve, such as LOGPOND_RETAIN_AGE for --retain-age
";

const EXIT_STATUS: &str = "\
Questions: 0 something was found, 1 nothing in a complete answer, 2 error, 3 the answer is not complete.
verify:    0 no damage, 1 damage, 2 error.
Others:    0 done, 2 error. An interrupted command ends with 130.
";

pub(super) fn run(args: &Help) -> Result<Exit, Failure> {
    let text = text(&args.topic)?;
    print(text.as_bytes())?;
    Ok(Exit::Found)
}

fn text(topic: &[String]) -> Result<String, Failure> {
    let mut command = Cli::command();
    command.build();
    let mut at = &command;
    for (depth, word) in topic.iter().enumerate() {
        match at.find_subcommand(word) {
            Some(below) => at = below,
            None if depth == 0 && topic.len() == 1 => return explained(word, &command),
            None => return Err(unknown(word, at, &[])),
        }
    }
    Ok(at.clone().render_long_help().to_string())
}

fn explained(word: &str, command: &clap::Command) -> Result<String, Failure> {
    let lower = word.to_lowercase();
    let other = OTHER_NAMES.iter().find(|(name, _)| *name == lower);
    let name = other.map_or(&*lower, |(_, topic)| topic);
    match TOPICS.iter().find(|(topic, _)| *topic == name) {
        Some((_, text)) => Ok((*text).to_owned()),
        None => Err(unknown(word, command, &TOPICS.map(|(topic, _)| topic))),
    }
}

fn unknown(word: &str, above: &clap::Command, topics: &[&str]) -> Failure {
    let visible = above.get_subcommands().filter(|known| !known.is_hide_set());
    let names: Vec<&str> = visible
        .map(clap::Command::get_name)
        .chain(topics.iter().copied())
        .collect();
    let rest = match nearest(word, names.iter().copied()) {
        Some(meant) => format!("did you mean '{meant}'?"),
        None if names.is_empty() => format!("'{}' has no commands of its own", above.get_name()),
        None => format!("there are {}", names.join(", ")),
    };
    format!("there is no help on '{word}'; {rest}").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(words: &[&str]) -> String {
        let topic: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        text(&topic).unwrap_or_else(|error| error.to_string())
    }

    #[test]
    fn commands_and_topics_are_explained() {
        for (topic, part) in [
            (&[][..], "Commands:"),
            (&["query"], "Usage: logpond query"),
            (&["grep"], "Usage: logpond query"),
            (&["cluster", "status"], "Usage: logpond cluster status"),
            (&["filters"], "-f status=500"),
            (&["Times"], "yesterday 09:00"),
            (&["environment"], "LOGPOND_ADDR"),
            (&["exit-status"], "0 something was found"),
            (&["qurey"], "did you mean 'query'?"),
            (&["fliters"], "did you mean 'filters'?"),
            (&["frobnicate"], "there are serve, demo, ingest"),
            (&["cluster", "statsu"], "did you mean 'status'?"),
        ] {
            let text = said(topic);
            assert!(text.contains(part), "{topic:?}: {text}");
        }
    }
}
