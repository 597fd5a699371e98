//! The command line as it is typed: one struct a subcommand, no work and no defaults that depend
//! on anything outside. `commands` gives it its meaning.

mod aggregate;
mod alerts;
mod backup;
mod cluster;
mod config;
mod demo;
mod help;
#[cfg(test)]
mod documents;
mod import;
mod journal;
mod load;
mod mcp;
mod node;
mod proxy;
mod saved;
mod sql;
mod tables;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use logpond_record::{Severity, cast};
use logpond_search::context::CONTEXT_ROWS_MAX;

pub use aggregate::Aggregate;
pub use alerts::{Alerts, AlertsCheck, AlertsList};
pub use backup::{Backup, BackupCommand, BackupList, BackupPrune, BackupVerify, Restore};
pub use cluster::{
    Cluster, ClusterCa, ClusterCaCreate, ClusterCertificate, ClusterDrain, ClusterForget,
    ClusterPlan, ClusterStatus,
};
pub use config::{Config, ConfigCheck, ConfigShow, Health};
pub use demo::Demo;
pub use help::{Help, parse};
pub use import::{Import, OtherSystem};
pub use journal::{Journal, JournalLooks, JournalUpkeep};
pub use load::Load;
pub use mcp::Mcp;
pub use node::{Node, Serve};
pub use proxy::{Proxy, ProxyAcme, ProxyClients, ProxyFrontend};
pub use saved::{SavedCommand, SavedList, SavedRemove, SavedRun, SavedSet, SavedShow};
pub use sql::{Export, ExportFormat, Sql, SqlFormat, Times};
pub use tables::{Histogram, OutputOptions, Patterns, RecordFilter, TableFormat, TableOutput};

use logpond_host::terminal::When;
use logpond_listen::tokens::Role;
use logpond_render::Format;

/// Takes logs in, keeps them, answers questions about them.
#[derive(Debug, Parser)]
#[command(
    name = "logpond",
    version,
    max_term_width = 100,
    disable_help_subcommand = true,
    arg_required_else_help = true
)]
#[command(
    after_help = "Try:  logpond serve &  tail -F access.log | logpond forward\n      \
                        logpond query 'timeout' --since 1h\n\n\
                        Exit status of questions: 0 found, 1 none in a complete answer, \
                        2 error, 3 answer incomplete, or records lost for good."
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Take logs in, keep them and answer queries, on this machine.
    Serve(Box<Serve>),
    /// Show a day of made-up logs with an incident in it, and questions that find it.
    Demo(Demo),
    /// Only take logs in, for the stores of a cluster.
    Ingest(Box<Serve>),
    /// Only keep what the ingesters of a cluster have taken in.
    Store(Box<Node>),
    /// Only answer queries, from what the stores and ingesters of a cluster have.
    QueryNode(Box<Node>),
    /// Send lines from standard input or files to a server.
    Forward(Forward),
    /// Send the entries of journals of systemd to a server.
    Import(Import),
    /// Send lines at a steady rate, and say how soon they are acknowledged.
    Load(Load),
    /// End TLS for an application: decrypt, and pass connections on.
    Proxy(Box<Proxy>),
    /// Print the records that match.
    #[command(visible_aliases = ["grep", "search"])]
    Query(Box<Query>),
    /// Print the newest records that match, then new ones as they arrive: `query --follow`.
    Tail(Box<Query>),
    /// Print records as journalctl does, by its options.
    Journal(Box<Journal>),
    /// Answer a statement of SQL.
    Sql(Sql),
    /// Write the records that match into a file.
    Export(Export),
    /// An aggregate of the table.
    #[command(flatten)]
    Aggregate(Aggregate),
    /// Count the records that match over time.
    Histogram(Histogram),
    /// Show which kinds of messages there are, with counts and examples.
    Patterns(Patterns),
    /// Give an assistant tools to read the logs of a server, on standard input and output.
    Mcp(Mcp),
    /// Keep queries by name at a server, and ask them.
    #[command(subcommand)]
    Saved(SavedCommand),
    /// List the segments of a server.
    Segments(Segments),
    /// Merge and recompress the segments of a server.
    Compact(Compact),
    /// Accept the loss of files that have vanished from a server's data directory.
    Forget(Forget),
    /// Check every checksum of a data directory.
    Verify(Verify),
    /// Copy a data directory into an object store; list, check and remove such backups.
    Backup(Backup),
    /// Make a data directory of a backup.
    Restore(Restore),
    /// Check alert rules, and list those of a server.
    #[command(subcommand)]
    Alerts(Alerts),
    /// Make, list and revoke the tokens of a server.
    #[command(subcommand)]
    Token(Token),
    /// Set up a cluster.
    #[command(subcommand)]
    Cluster(Cluster),
    /// Check and show settings, without a server.
    #[command(subcommand)]
    Config(Config),
    /// Ask if a server lives.
    Health(Health),
    /// Keep the sockets of a server until it is started again; servers start it.
    #[command(hide = true)]
    Keep(Keep),
    /// Explain a command, or a topic: filters, times, variables, exit-status.
    Help(Help),
    /// Print a completion script.
    Completion(Completion),
    /// Print the manual pages.
    Man(Man),
    /// Print the version.
    Version(Version),
}

/// Flags of `logpond forward`.
#[derive(Debug, Args)]
#[command(
    mut_arg("addr", |addr| addr.help(
        "Servers; one takes all batches until it fails or asks to send elsewhere"
    )),
    after_help = "Ends once everything is acknowledged as durable. A batch is sent again \
                        when an answer is lost, and the server knows it again.\n\
                        Exit status: 0 everything was taken, 2 something was not."
)]
pub struct Forward {
    /// Files to send; '-' or none is standard input. Files may be gzip or zstd compressed.
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
    /// The servers.
    #[command(flatten)]
    pub servers: Servers,
    /// Keep following the files across rotation, truncation and compression. FILE may be a quoted glob.
    #[arg(long, visible_alias = "follow", short_alias = 'F')]
    pub tail: bool,
    /// What lines are: records, or lines of containers as Docker or Kubernetes (CRI) keep them, which
    /// are unwrapped and joined.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = LineFormat::Auto)]
    pub format: LineFormat,
    /// Send the journal of this machine, and go on with what comes: what `journalctl --follow` prints.
    #[arg(long, conflicts_with_all = ["files", "tail", "bulk", "spool", "wait", "multiline", "multiline_start"])]
    pub journal: bool,
    /// Further arguments of journalctl, such as '--unit=nginx --since=now'.
    #[arg(
        long,
        value_name = "ARGUMENTS",
        requires = "journal",
        allow_hyphen_values = true
    )]
    pub journal_args: Option<String>,
    /// Put the lines of a record together: by traces, by indentation, by times, or as the lines of each
    /// file show.
    #[arg(long, value_name = "RULE", value_enum)]
    pub multiline: Option<Multiline>,
    /// A record begins with each line that this regular expression matches; others belong to it.
    #[arg(long, value_name = "REGEX", conflicts_with = "multiline")]
    pub multiline_start: Option<String>,
    /// How long more lines of a record are waited for.
    #[arg(long, value_name = "DURATION", default_value = "1s")]
    pub multiline_wait: String,
    /// Where --tail remembers positions [default: ~/.local/state/logpond/forward.json], and --journal
    /// how far it is [default: ~/.local/state/logpond/journal.json].
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub state: Option<PathBuf>,
    /// A field for all records; hostname and file are set anyway.
    #[arg(short = 'l', long, value_name = "NAME=VALUE")]
    pub label: Vec<String>,
    /// A log_format of nginx or LogFormat of Apache, for these files; may be given several times.
    #[arg(long, value_name = "NAME=FORMAT")]
    pub access_log: Vec<String>,
    /// The field with the time of objects, before all known names; may be given several times.
    #[arg(long, value_name = "NAME,...")]
    pub time_field: Vec<String>,
    /// The field with the message of objects, likewise.
    #[arg(long, value_name = "NAME,...")]
    pub message_field: Vec<String>,
    /// The zone of times that say none, also of some files; may be given several times [default: local].
    #[arg(long, value_name = "[GLOB=]ZONE", allow_hyphen_values = true)]
    pub timezone: Vec<String>,
    /// Give up when no server took a batch for this long [default: 5m; with --tail and --journal: never].
    #[arg(long, value_name = "DURATION")]
    pub give_up_after: Option<String>,
    /// Keep records in this directory until a server has them: reading goes on while none answers,
    /// and what is left is sent by the next run.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub spool: Option<PathBuf>,
    /// How large the spool may get; then reading waits.
    #[arg(long, value_name = "SIZE", requires = "spool", default_value = "1GiB")]
    pub spool_size: String,
    /// What the end of the input waits for: one server that has it on disk, or all copies.
    #[arg(long, value_name = "LEVEL", value_enum, default_value_t = Wait::Durable)]
    pub wait: Wait,
    /// Hand over whole segments of 16 MiB, each acknowledged once there are as many copies as
    /// configured. Servers are HOST:PORT of listeners for it [default: 127.0.0.1:7653].
    #[arg(long, conflicts_with_all = ["tail", "spool"])]
    pub bulk: bool,
    /// Drop new records while the spool is full, count them, and say so in the log.
    #[arg(long, requires = "spool")]
    pub drop_when_full: bool,
    /// Do not print totals.
    #[arg(short, long)]
    pub quiet: bool,
}

/// What the lines of inputs are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LineFormat {
    /// Each input's first lines say it.
    Auto,
    /// Records.
    Lines,
    /// Docker's json-file.
    Docker,
    /// Kubernetes' container runtimes.
    Cri,
}

/// Which lines belong to one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Multiline {
    /// The lines of each file decide: traces and documents, and all lines behind a time or a level, if
    /// records begin so.
    Auto,
    /// Traces of Java, .NET, Python, Go, Ruby, Node.js, PHP, Rust and others belong to the line before.
    /// Documents and indented lines belong together.
    Stacktrace,
    /// Lines that begin with a space or a tab belong to the line before.
    Indent,
    /// A record begins with a time, or like an entry of MySQL's log of slow statements.
    Sql,
    /// A record begins with a time.
    Timestamp,
}

/// What the end of `forward` waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Wait {
    /// A server has synced the records.
    Durable,
    /// As many servers as configured have copies.
    Replicated,
}

/// Which server is asked.
#[derive(Clone, Debug, Args)]
pub struct Server {
    /// The server.
    #[arg(
        long,
        value_name = "URL",
        env = "LOGPOND_ADDR",
        hide_env_values = true,
        default_value = logpond_client::ADDRESS_DEFAULT
    )]
    pub addr: String,
    /// What is shown to it.
    #[command(flatten)]
    pub access: Access,
}

/// Which servers are sent to. What becomes of several, the commands say.
#[derive(Clone, Debug, Args)]
pub struct Servers {
    /// Servers.
    #[arg(
        long,
        value_name = "URL[,URL...]",
        env = "LOGPOND_ADDR",
        hide_env_values = true,
        default_value = logpond_client::ADDRESS_DEFAULT,
        value_delimiter = ','
    )]
    pub addr: Vec<String>,
    /// What is shown to them.
    #[command(flatten)]
    pub access: Access,
}

/// What is shown to servers, and which are believed. Secrets are in files or in variables, since
/// everybody on a machine can read command lines.
#[derive(Clone, Debug, Default, Args)]
pub struct Access {
    /// A file with the token to show; without it the token is the variable LOGPOND_TOKEN.
    #[arg(
        long,
        value_name = "FILE",
        env = "LOGPOND_TOKEN_FILE",
        hide_env_values = true,
        value_hint = ValueHint::FilePath
    )]
    pub token_file: Option<PathBuf>,
    /// Authorities to trust at https addresses, in PEM [default: those of the system].
    #[arg(
        long,
        value_name = "FILE",
        env = "LOGPOND_CA_FILE",
        hide_env_values = true,
        value_hint = ValueHint::FilePath
    )]
    pub ca_file: Option<PathBuf>,
}

/// Which records are meant. All conditions must hold.
#[derive(Clone, Debug, Default, Args)]
pub struct Selection {
    /// Records whose line or message matches this regular expression.
    #[arg(short = 'e', long = "regexp", value_name = "REGEX")]
    pub regexes: Vec<OsString>,
    /// Ignore case in TEXT and REGEX.
    #[arg(short = 'i', long)]
    pub ignore_case: bool,
    /// Records that TEXT and REGEX do not match; -f and --where hold as they are.
    #[arg(short = 'v', long)]
    pub invert_match: bool,
    /// Records whose field compares so: FIELD=VALUE, !=, >, >=, <, <=, ~REGEX, !~REGEX, :TEXT, :*.
    #[arg(short = 'f', long = "field", value_name = "FIELD=VALUE")]
    pub fields: Vec<String>,
    /// Records of this level and worse: trace, debug, info, notice, warn, error, critical, alert, fatal.
    #[arg(short = 'l', long, value_name = "LEVEL", value_parser = severity)]
    pub level: Option<Severity>,
    /// A filter of the query language: AND, OR, NOT, (), field=value, "text", /regex/.
    #[arg(long = "where", value_name = "FILTER")]
    pub filter: Option<String>,
    /// Earliest time: 1h, yesterday, 09:00, 2026-11-21 10:00, RFC 3339, @epoch [default: 1h].
    #[arg(
        short = 'S',
        long,
        value_name = "TIME",
        alias = "from",
        allow_hyphen_values = true
    )]
    pub since: Option<String>,
    /// Latest time, excluded [default: now].
    #[arg(
        short = 'U',
        long,
        value_name = "TIME",
        alias = "to",
        allow_hyphen_values = true
    )]
    pub until: Option<String>,
    /// Give no answer that lacks something: say what it is and exit with 3. Counts and tables are
    /// not printed then; of records, some may have been printed before it was found. Records that are
    /// lost for good keep no answer back: they are said, with the exit status 3.
    #[arg(long, conflicts_with = "partial")]
    pub strict: bool,
    /// Answer as far as it is possible, say what is missing, and exit with 3; this is the default.
    #[arg(long)]
    pub partial: bool,
}

/// Flags of `logpond query`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 found, 1 none in a complete answer, 2 error, 3 \
                  answer incomplete, or records lost for good."
)]
pub struct Query {
    /// Text to search for, as it is; '' matches everything. '-' reads records from standard input.
    #[arg(value_name = "TEXT")]
    pub words: Vec<OsString>,
    /// Which records.
    #[command(flatten)]
    pub selection: Selection,
    /// Only count.
    #[arg(short = 'c', long, conflicts_with = "follow")]
    pub count: bool,
    /// The newest N only; 0 is no limit [default: 1000 on a terminal, else 0].
    #[arg(short = 'n', long = "limit", value_name = "N")]
    pub limit: Option<u64>,
    /// Newest first.
    #[arg(short = 'r', long, conflicts_with = "follow")]
    pub reverse: bool,
    /// Also N records after each match.
    #[arg(short = 'A', long, value_name = "N", value_parser = context_rows())]
    pub after_context: Option<u32>,
    /// Also N records before each match.
    #[arg(short = 'B', long, value_name = "N", value_parser = context_rows())]
    pub before_context: Option<u32>,
    /// Also N records before and after each match.
    #[arg(short = 'C', long, value_name = "N", value_parser = context_rows())]
    pub context: Option<u32>,
    /// Print the newest 10 (or -n N), then new records as they arrive.
    #[arg(long, conflicts_with_all = ["files", "strict"])]
    pub follow: bool,
    /// How to print [default: pretty on a terminal, else line].
    #[arg(short = 'o', long, value_enum, value_name = "FORMAT")]
    pub output: Option<Format>,
    /// With -o csv: an apostrophe before texts that spreadsheets would take for formulas.
    #[arg(long)]
    pub defuse: bool,
    /// Only these fields.
    #[arg(long = "fields", value_name = "NAME,...", value_delimiter = ',')]
    pub only_fields: Vec<String>,
    /// Search these files instead of a server; gzip and zstd are recognised.
    #[arg(long = "file", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
    /// A log_format of nginx or LogFormat of Apache, for these files; may be given several times.
    #[arg(long, value_name = "NAME=FORMAT", hide_short_help = true)]
    pub access_log: Vec<String>,
    /// The field with the time of objects in these files; may be given several times.
    #[arg(long, value_name = "NAME,...", hide_short_help = true)]
    pub time_field: Vec<String>,
    /// The field with the message of objects in these files, likewise.
    #[arg(long, value_name = "NAME,...", hide_short_help = true)]
    pub message_field: Vec<String>,
    /// The zone of times in these files that say none [default: local].
    #[arg(
        long,
        value_name = "ZONE",
        allow_hyphen_values = true,
        hide_short_help = true
    )]
    pub timezone: Option<String>,
    /// The server.
    #[command(flatten)]
    pub server: Server,
    /// Print nothing, not even a count; stop at the first match.
    #[arg(short = 'q', long, conflicts_with = "follow")]
    pub quiet: bool,
    /// Print rows, bytes and time to standard error.
    #[arg(long)]
    pub stats: bool,
    /// Print times of -o pretty in UTC.
    #[arg(long)]
    pub utc: bool,
    /// Colours.
    #[arg(long, value_enum, value_name = "WHEN", default_value = "auto")]
    pub color: When,
    /// Pager (LOGPOND_PAGER, PAGER or less).
    #[arg(long, value_enum, value_name = "WHEN", default_value = "auto")]
    pub paging: When,
    /// Send control characters of records to a terminal as they are.
    #[arg(long = "unsafe", hide_short_help = true)]
    pub control_characters: bool,
}

/// Rows of context: as many as servers and files give.
fn context_rows() -> impl clap::builder::TypedValueParser<Value = u32> {
    clap::value_parser!(u32).range(..=cast::low_i64(CONTEXT_ROWS_MAX))
}

/// A level by any of its names.
fn severity(text: &str) -> Result<Severity, String> {
    Severity::of_word(text.as_bytes()).ok_or_else(|| {
        let names: Vec<&str> = Severity::all().map(Severity::name).collect();
        format!("unknown level; levels are {}", names.join(", "))
    })
}

/// Flags of `logpond segments`.
#[derive(Debug, Args)]
pub struct Segments {
    /// How to print.
    #[command(flatten)]
    pub table: TableOutput,
    /// The server.
    #[command(flatten)]
    pub server: Server,
}

/// Flags of `logpond compact`.
#[derive(Debug, Args)]
pub struct Compact {
    /// Wait until it is done; without it the command ends once the server has begun.
    #[arg(long)]
    pub wait: bool,
    /// Compress as hard as cold data is.
    #[arg(long)]
    pub cold: bool,
    /// The server.
    #[command(flatten)]
    pub server: Server,
}

/// Flags of `logpond forget`.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 forgotten, 1 no file is missing, 2 error.")]
pub struct Forget {
    /// Files to forget, by their names as answers and `verify` give them.
    #[arg(
        value_name = "FILE",
        required_unless_present = "all",
        conflicts_with = "all"
    )]
    pub files: Vec<String>,
    /// Forget all files that are missing.
    #[arg(long)]
    pub all: bool,
    /// The server.
    #[command(flatten)]
    pub server: Server,
}

/// Flags of `logpond verify`.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 no damage, 1 damage, 2 error.")]
pub struct Verify {
    /// Data directory [default: as for serve].
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub data: Option<String>,
    /// Settings file [default: as for serve].
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub config: Option<PathBuf>,
    /// Print rows, bytes and time to standard error.
    #[arg(long)]
    pub stats: bool,
}

/// What is done with tokens.
#[derive(Debug, Subcommand)]
pub enum Token {
    /// Make a token and print it, once.
    Create(TokenCreate),
    /// List the tokens, without their secrets.
    List(TokenList),
    /// Revoke a token; servers refuse it within a second or two.
    Revoke(TokenRevoke),
}

/// Which file of tokens is meant.
#[derive(Debug, Args)]
pub struct TokenFile {
    /// The server's data directory [default: as for serve].
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub data: Option<String>,
    /// The file of tokens [default: as for serve].
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub tokens: Option<String>,
    /// Settings file [default: as for serve].
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub config: Option<PathBuf>,
}

/// Flags of `logpond token create`.
#[derive(Debug, Args)]
#[command(
    after_help = "Try:  logpond token create --role write --name shipper > shipper.token\n      \
                        logpond forward --token-file shipper.token access.log"
)]
pub struct TokenCreate {
    /// What it allows.
    #[arg(long, value_enum, value_name = "ROLE")]
    pub role: Role,
    /// What to call it in lists and answers.
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// How long it can be used [default: until it is revoked].
    #[arg(long, value_name = "DURATION")]
    pub expires: Option<String>,
    /// Read only records that meet this condition.
    #[arg(long, value_name = "QUERY")]
    pub only: Option<String>,
    /// Give this label to every record that it writes; may be given several times.
    #[arg(long, value_name = "NAME=VALUE")]
    pub label: Vec<String>,
    /// The file.
    #[command(flatten)]
    pub file: TokenFile,
}

/// Flags of `logpond token list`.
#[derive(Debug, Args)]
pub struct TokenList {
    /// How to print.
    #[command(flatten)]
    pub table: TableOutput,
    /// The file.
    #[command(flatten)]
    pub file: TokenFile,
}

/// Flags of `logpond token revoke`.
#[derive(Debug, Args)]
pub struct TokenRevoke {
    /// The token's id or name.
    #[arg(value_name = "ID|NAME")]
    pub token: String,
    /// The file.
    #[command(flatten)]
    pub file: TokenFile,
}

/// Arguments of `logpond keep`.
#[derive(Debug, Args)]
pub struct Keep {
    /// Where servers connect.
    #[arg(value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub control: PathBuf,
}

/// Flags of `logpond completion`.
#[derive(Debug, Args)]
pub struct Completion {
    /// The shell.
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

/// Flags of `logpond man`.
#[derive(Debug, Args)]
pub struct Man {
    /// Write one page a command into this directory instead of printing the first.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub out: Option<PathBuf>,
}

/// Flags of `logpond version`.
#[derive(Debug, Args)]
pub struct Version {
    /// As JSON.
    #[arg(long)]
    pub json: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    /// All subcommands, also those of subcommands, with their names as they are typed.
    fn all_subcommands(command: &clap::Command) -> Vec<(String, &clap::Command)> {
        let mut found = Vec::new();
        for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
            let name = sub.get_name();
            found.push((name.to_owned(), sub));
            let below = all_subcommands(sub).into_iter();
            found.extend(below.map(|(below, sub)| (format!("{name} {below}"), sub)));
        }
        found
    }

    #[test]
    fn the_definition_is_sound_and_short_help_fits_a_screen() {
        let mut command = Cli::command();
        command.build();
        command.clone().debug_assert();
        for (name, sub) in all_subcommands(&command) {
            let lines = sub.clone().render_help().to_string().lines().count();
            assert!(lines <= 50, "{name} -h has {lines} lines");
        }
    }

    #[test]
    fn the_reference_page_is_up_to_date() {
        let mut page = String::from(
            "# The command line\n\n\
             Made from `crates/logpond/src/cli.rs`; a test compares.\n\n\
             Variables that all commands know: `LOGPOND_ADDR` (the server), `LOGPOND_TOKEN` (the \
             token for it), `LOGPOND_PAGER` and \
             `PAGER`, `NO_COLOR`, `CLICOLOR_FORCE` and `CLICOLOR`, `TZ`. Another variable \
             `LOGPOND_…` is named on standard error with the one that was probably meant, and is \
             otherwise ignored; see the [settings](settings.md).\n",
        );
        let mut command = Cli::command();
        command.build();
        for (name, sub) in all_subcommands(&command) {
            let help = sub.clone().render_long_help().to_string();
            let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
            page.push_str(&format!(
                "\n## {name}\n\n```text\n{}\n```\n",
                lines.join("\n")
            ));
        }
        expect_test::expect_file!["../../../docs/reference/cli.md"].assert_eq(&page);
    }

    #[test]
    fn every_setting_is_a_flag_of_serve() {
        let command = Cli::command();
        let serve = command.find_subcommand("serve").unwrap();
        for row in &logpond_settings::TABLE {
            assert!(
                serve
                    .get_arguments()
                    .any(|a| a.get_long() == Some(row.name)),
                "--{} is missing",
                row.name
            );
        }
    }

    #[test]
    fn times_before_now_are_taken() {
        let cli = Cli::try_parse_from(["logpond", "query", "x", "-S", "-1h", "-n0"]).unwrap();
        let Command::Query(query) = cli.command else {
            panic!("not a query");
        };
        assert_eq!(query.selection.since.as_deref(), Some("-1h"));
        assert_eq!((query.limit, query.words.len()), (Some(0), 1));
    }
}
