//! `logpond help` as it is typed, and mistakes of the command line with what was meant.
//!
//! The parser's own suggestions go by how words begin: `--follow` of `forward` became `--format`, and an unknown
//! `-l` the advice to write `-- -l`. Here a suggestion is a word that is known to mean the same elsewhere, or
//! one that is a slip away.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, CommandFactory, FromArgMatches};
use logpond_host::terminal::guard::clean;
use logpond_search::nearest;

use super::Cli;

/// Flags of `logpond help`.
#[derive(Debug, Args)]
pub struct Help {
    /// A command, such as `cluster status`, or a topic.
    #[arg(value_name = "TOPIC")]
    pub topic: Vec<String>,
}

/// Options that other programs, or other commands of this one, know: what is typed, and what to write.
const OPTIONS: [(&str, &str); 33] = [
    (
        "--after",
        "--since TIME, or -A N for records after each match",
    ),
    (
        "--before",
        "--until TIME, or -B N for records before each match",
    ),
    ("--end", "--until TIME"),
    ("--start", "--since TIME"),
    ("--begin", "--since TIME"),
    ("--last", "--since 1h"),
    ("--range", "--since TIME and --until TIME"),
    ("--tail", "--follow, or 'logpond tail'"),
    ("--watch", "--follow, or 'logpond tail'"),
    ("-F", "--follow, or 'logpond tail'"),
    ("--lines", "-n N"),
    ("--tail-lines", "-n N"),
    ("--head", "-n N"),
    ("--max-count", "-n N"),
    ("-m", "-n N"),
    ("--json", "-o json"),
    ("--format", "-o FORMAT"),
    ("--raw", "-o raw"),
    ("--grep", "TEXT without an option, or -e REGEX"),
    ("--text", "TEXT without an option"),
    ("--pattern", "-e REGEX"),
    ("-E", "-e REGEX"),
    ("-P", "-e REGEX"),
    ("--filter", "--where FILTER"),
    ("--level", "-f level=error"),
    ("-l", "-f level=error"),
    (
        "--host",
        "--addr URL for a server, -f hostname=NAME for records",
    ),
    ("--server", "--addr URL"),
    ("--url", "--addr URL"),
    ("--to", "--addr URL for a server, --until TIME for an end"),
    ("--target", "--addr URL"),
    (
        "--token",
        "--token-file FILE, or the variable LOGPOND_TOKEN",
    ),
    ("--follow", "'logpond tail'"),
];

/// The same of commands.
const COMMANDS: [(&str, &str); 22] = [
    ("find", "query"),
    ("show", "query"),
    ("logs", "query"),
    ("cat", "query"),
    ("less", "query"),
    ("filter", "query"),
    ("follow", "tail"),
    ("watch", "tail"),
    ("stream", "tail"),
    ("count", "query --count"),
    ("stats", "histogram"),
    ("send", "forward"),
    ("ship", "forward"),
    ("agent", "forward"),
    ("push", "forward"),
    ("start", "serve"),
    ("server", "serve"),
    ("run", "serve"),
    ("status", "cluster status"),
    ("check", "verify"),
    ("select", "sql"),
    ("tokens", "token list"),
];

/// Reads the command line of the process; ends it where there is nothing to do or a mistake.
pub fn parse() -> Cli {
    let words: Vec<OsString> = std::env::args_os().collect();
    read(words.iter().cloned()).unwrap_or_else(|error| exit(&words, error))
}

/// Ends the process with what is to be said of its arguments. These may be names of files that others chose, so that
/// nothing of them moves the cursor of a terminal.
fn exit(words: &[OsString], error: clap::Error) -> ! {
    let cleaned = words.iter().map(|word| clean(&word.to_string_lossy()));
    let cleaned: Vec<OsString> = cleaned.map(OsString::from).collect();
    let error = if *cleaned == *words {
        error
    } else {
        read(cleaned).err().unwrap_or(error)
    };
    let code = error.exit_code();
    // Help that could not be written is not done.
    std::process::exit(if error.print().is_ok() { code } else { 1 })
}

pub(super) fn read(words: impl IntoIterator<Item = OsString>) -> Result<Cli, clap::Error> {
    let mut command = Cli::command();
    let words: Vec<OsString> = words.into_iter().collect();
    let matches = command.try_get_matches_from_mut(words.iter().cloned());
    let cli = matches.and_then(|matches| Cli::from_arg_matches(&matches));
    cli.map_err(|error| explained(error, &mut command, &words))
}

/// The error with what was probably meant in place of the parser's guess.
fn explained(
    mut error: clap::Error,
    command: &mut clap::Command,
    words: &[OsString],
) -> clap::Error {
    let typed = |error: &clap::Error, kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    };
    let tip = match error.kind() {
        ErrorKind::UnknownArgument => {
            let Some(typed) = typed(&error, ContextKind::InvalidArg) else {
                return error;
            };
            command.build();
            option_meant(&typed, at(command, words))
        }
        ErrorKind::InvalidSubcommand => {
            let Some(typed) = typed(&error, ContextKind::InvalidSubcommand) else {
                return error;
            };
            command.build();
            command_meant(&typed, at(command, words))
        }
        _ => return error,
    };
    for guess in [
        ContextKind::SuggestedArg,
        ContextKind::SuggestedSubcommand,
        ContextKind::Suggested,
    ] {
        error.remove(guess);
    }
    let tips = tip.into_iter().map(Into::into).collect();
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    error
}

/// The command that the words name.
fn at<'c>(command: &'c clap::Command, words: &[OsString]) -> &'c clap::Command {
    let mut at = command;
    for word in words.iter().skip(1) {
        let found = word.to_str().and_then(|word| at.find_subcommand(word));
        match found {
            Some(below) => at = below,
            None if at.has_subcommands() => {}
            None => break,
        }
    }
    at
}

/// What to write instead of an option that a command does not have.
fn option_meant(typed: &str, command: &clap::Command) -> Option<String> {
    let name = typed.split('=').next().unwrap_or(typed);
    let has = |word: &str| {
        command.get_arguments().any(|known| {
            let longs = known.get_long_and_visible_aliases().unwrap_or_default();
            let shorts = known.get_short_and_visible_aliases().unwrap_or_default();
            match word.strip_prefix("--") {
                Some(long) => longs.contains(&long),
                None => word
                    .chars()
                    .nth(1)
                    .is_some_and(|short| shorts.contains(&short)),
            }
        })
    };
    let elsewhere = OPTIONS.iter().filter(|(theirs, _)| *theirs == name);
    // Only what this command has is a help.
    let mut useful = elsewhere.filter(|(_, ours)| {
        let first = ours.split([' ', ',']).next().unwrap_or_default();
        if first.starts_with('-') {
            has(first)
        } else {
            has("-e")
        }
    });
    if let Some((_, ours)) = useful.next() {
        return Some(format!("write {ours}"));
    }
    let long = name.strip_prefix("--")?;
    let longs = command
        .get_arguments()
        .filter_map(|known| known.get_long_and_visible_aliases())
        .flatten();
    let meant = nearest(long, longs)?;
    Some(format!("a similar option is --{meant}"))
}

/// What to write instead of a command that there is not.
fn command_meant(typed: &str, above: &clap::Command) -> Option<String> {
    if let Some((_, ours)) = COMMANDS.iter().find(|(theirs, _)| *theirs == typed) {
        return Some(format!("write 'logpond {ours}'"));
    }
    let names = above
        .get_subcommands()
        .filter(|known| !known.is_hide_set())
        .flat_map(|known| std::iter::once(known.get_name()).chain(known.get_visible_aliases()));
    let meant = nearest(typed, names)?;
    Some(format!("a similar command is '{meant}'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mistake(line: &str) -> String {
        let words = line.split(' ').map(OsString::from);
        read(words).map(|_| ()).unwrap_err().to_string()
    }

    #[test]
    fn mistakes_are_told_with_what_was_meant() {
        for (line, tip) in [
            ("logpond query --last 2h", "tip: write --since 1h"),
            ("logpond query x --json", "tip: write -o json"),
            (
                "logpond query --grep x",
                "tip: write TEXT without an option, or -e REGEX",
            ),
            (
                "logpond top status --stast",
                "tip: a similar option is --stats",
            ),
            ("logpond query --token lp_x", "tip: write --token-file FILE"),
            (
                "logpond forward --multilin indent",
                "tip: a similar option is --multiline",
            ),
            ("logpond status", "tip: write 'logpond cluster status'"),
            ("logpond find x", "tip: write 'logpond query'"),
            ("logpond qurey x", "tip: a similar command is 'query'"),
            (
                "logpond cluster statsu",
                "tip: a similar command is 'status'",
            ),
        ] {
            let said = mistake(line);
            assert!(said.contains(tip), "{line}: {said}");
        }
    }

    #[test]
    fn nothing_is_guessed_that_is_not_near() {
        for line in [
            "logpond forward --colour x",
            "logpond forward -z x",
            "logpond frobnicate",
            "logpond serve --frobnicate",
        ] {
            let said = mistake(line);
            assert!(!said.contains("tip:"), "{line}: {said}");
        }
    }

    #[test]
    fn words_of_other_programs_are_known() {
        for line in [
            "logpond forward --follow x.log",
            "logpond forward -F x.log",
            "logpond forward -l env=prod x.log",
            "logpond import -l env=prod x.journal",
            "logpond grep timeout -i",
            "logpond search timeout",
            "logpond tail timeout -n 5",
            "logpond help",
            "logpond help cluster status",
        ] {
            let words = line.split(' ').map(OsString::from);
            assert!(read(words).is_ok(), "{line}");
        }
    }
}
