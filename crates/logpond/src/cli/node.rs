//! Flags of the commands that run a node, made from the table of settings.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches, ValueHint};
use logpond_settings::{Count, Hint, Setting, TABLE};

/// Said of all commands that run a node.
const SETTINGS_HELP: &str = "Each setting is also a key of logpond.toml and, as LOGPOND_<NAME>, an \
                             environment variable. Flags win over the environment, the \
                             environment over the file.\nADDR is IP:PORT, IP, PORT or :PORT; \
                             port 0 is any free one; 'off' turns a listener off.";

/// The flag that names the settings file.
const CONFIG: &str = "config";

/// Flags of `logpond serve` and `logpond ingest`.
#[derive(Debug, Default)]
pub struct Serve(Node);

impl Serve {
    /// The flags as a node has them.
    pub fn node(&self) -> &Node {
        &self.0
    }
}

/// Flags of every command that runs a node. Their meaning is in `settings`; they have the same names there.
#[derive(Debug, Default)]
pub struct Node {
    /// The settings file, if one is named.
    pub config: Option<PathBuf>,
    /// The flags that were given, by their names in the table of settings.
    pub given: Vec<(&'static str, String)>,
}

fn of_all(row: &&Setting) -> bool {
    !row.is_of_intakes
}

fn of_serve(_: &&Setting) -> bool {
    true
}

impl Args for Serve {
    fn augment_args(command: Command) -> Command {
        with_flags(command, of_serve)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Serve::augment_args(command)
    }
}

impl Args for Node {
    fn augment_args(command: Command) -> Command {
        with_flags(command, of_all)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Node::augment_args(command)
    }
}

impl FromArgMatches for Serve {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Serve, Error> {
        Ok(Serve(given(matches, of_serve)))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Serve::from_arg_matches(matches)?;
        Ok(())
    }
}

impl FromArgMatches for Node {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Node, Error> {
        Ok(given(matches, of_all))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Node::from_arg_matches(matches)?;
        Ok(())
    }
}

fn with_flags(command: Command, has: fn(&&Setting) -> bool) -> Command {
    let config = Arg::new(CONFIG)
        .long(CONFIG)
        .value_name("FILE")
        .value_hint(ValueHint::FilePath)
        .value_parser(clap::value_parser!(PathBuf))
        .help(
            "Settings file [default: /etc/logpond/logpond.toml, then ~/.config/logpond/logpond.toml]",
        );
    command
        .arg(config)
        .args(TABLE.iter().filter(has).map(flag))
        .after_help(SETTINGS_HELP)
}

fn flag(row: &Setting) -> Arg {
    let flag = Arg::new(row.name)
        .long(row.name)
        .help(row.short_help())
        .hide_short_help(row.is_advanced);
    let flag = if row.more.is_empty() {
        flag
    } else {
        flag.long_help(format!("{}.\n\n{}", row.short_help(), row.more))
    };
    let hint = match row.hint {
        Hint::Text => ValueHint::Unknown,
        Hint::File => ValueHint::FilePath,
        Hint::Directory => ValueHint::DirPath,
        Hint::Path => ValueHint::AnyPath,
    };
    let action = match row.count {
        Count::Switch => return flag.action(ArgAction::SetTrue),
        Count::One => ArgAction::Set,
        Count::Many => ArgAction::Append,
    };
    flag.value_name(row.value_name())
        .value_hint(hint)
        .action(action)
        .allow_hyphen_values(row.takes_hyphens)
}

fn given(matches: &ArgMatches, has: fn(&&Setting) -> bool) -> Node {
    let text = |row: &Setting| match row.count {
        Count::Switch => matches.get_flag(row.name).then(|| "true".to_owned()),
        Count::One | Count::Many => {
            let texts = matches.get_many::<String>(row.name)?;
            let texts: Vec<&str> = texts.map(String::as_str).collect();
            Some(texts.join("\n"))
        }
    };
    let rows = TABLE.iter().filter(has);
    Node {
        config: matches.get_one::<PathBuf>(CONFIG).cloned(),
        given: rows
            .filter_map(|row| Some((row.name, text(row)?)))
            .collect(),
    }
}
