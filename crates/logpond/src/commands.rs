//! What the subcommands do, one file each.
//!
//! Invariants: nothing but data goes to standard output; errors are said once, on standard error,
//! by [`run`]; a reader of the output that goes away ends a command silently and with success.

mod selection;
mod query;
mod listing;
mod ending;
mod help;
mod sql;
mod export;
mod aggregate;
mod histogram;
mod patterns;
mod saved;
mod segments;
mod alerts;
mod compact;
mod config;
mod demo;
mod health;
mod forget;
mod forward;
mod import;
mod pull;
mod journal;
mod keep;
mod progress;
mod load;
mod mcp;
mod proxy;
mod serve;
mod signals;
mod verify;
mod backup;
mod restore;
mod token;
mod cluster;
mod pages;

use std::error::Error;
use std::process::ExitCode;

use logpond_cluster::Roles;

use crate::cli::{self, Cli, Command, Server};
use logpond_client::{Access, Address, Client, TOKEN_VARIABLE};
use logpond_host::terminal::{complain, note};
use logpond_settings::unknown_variables;

/// How a command ended: the table of exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Done; of a question: something was found.
    Found = 0,
    /// Nothing was found, in a complete answer; of `verify`: there is damage.
    None = 1,
    /// It did not work.
    Error = 2,
    /// The answer is not complete.
    Incomplete = 3,
    /// The user interrupted it.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

/// Why a command failed; it is shown with its causes.
pub type Failure = Box<dyn Error>;

/// Does what the command line says.
pub fn run(cli: Cli) -> Exit {
    warn_of_variables(&cli.command);
    let outcome = match cli.command {
        Command::Serve(args) => serve::run(&args, Roles::ALL),
        Command::Demo(args) => demo::run(&args),
        Command::Ingest(args) => serve::run(&args, Roles::INGEST),
        Command::Store(args) => serve::run_node(&args, Roles::STORE),
        Command::QueryNode(args) => serve::run_node(&args, Roles::QUERY),
        Command::Forward(args) if args.journal => import::follow(args),
        Command::Forward(args) => forward::run(args),
        Command::Import(args) => import::run(args),
        Command::Load(args) => load::run(&args),
        Command::Proxy(args) => proxy::run(&args),
        Command::Query(args) => query::run(*args),
        Command::Tail(args) => query::tail(*args),
        Command::Journal(args) => journal::run(*args),
        Command::Sql(args) => sql::run(args),
        Command::Export(args) => export::run(args),
        Command::Aggregate(args) => aggregate::run(args),
        Command::Histogram(args) => histogram::run(args),
        Command::Patterns(args) => patterns::run(args),
        Command::Mcp(args) => mcp::run(&args),
        Command::Saved(saved) => saved::run(&saved),
        Command::Segments(args) => segments::run(&args),
        Command::Compact(args) => compact::run(&args),
        Command::Forget(args) => forget::run(&args),
        Command::Verify(args) => verify::run(&args),
        Command::Backup(args) => backup::run(&args),
        Command::Restore(args) => restore::run(&args),
        Command::Alerts(alerts) => alerts::run(&alerts),
        Command::Token(token) => token::run(&token),
        Command::Cluster(cluster) => cluster::run(&cluster),
        Command::Config(config) => config::run(&config),
        Command::Health(args) => health::run(&args),
        Command::Keep(args) => keep::run(&args),
        Command::Help(args) => help::run(&args),
        Command::Completion(args) => pages::completion(&args),
        Command::Man(args) => pages::man(&args),
        Command::Version(args) => pages::version(&args),
    };
    outcome.unwrap_or_else(|error| {
        // Who pipes into `head` has seen enough.
        if is_broken_pipe(error.as_ref()) {
            return Exit::Found;
        }
        complain(error.as_ref());
        match error.downcast_ref::<logpond_client::ClientError>() {
            Some(error) if error.is_incomplete() => Exit::Incomplete,
            _ => Exit::Error,
        }
    })
}

/// Says which variables begin like ours and are not: a mistyped one must not pass for a set one.
fn warn_of_variables(command: &Command) {
    if matches!(
        command,
        Command::Completion(_)
            | Command::Help(_)
            | Command::Man(_)
            | Command::Version(_)
            | Command::Keep(_)
    ) {
        return;
    }
    let names = std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned());
    for unknown in unknown_variables(names) {
        note(&format!("logpond: {unknown}"));
    }
}

fn is_broken_pipe(error: &(dyn Error + 'static)) -> bool {
    error
        .downcast_ref::<std::io::Error>()
        .is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

/// A client of the server that is named, which is shown what was given for it.
fn client(server: &Server) -> Result<Client, Failure> {
    let address = Address::parse(&server.addr)?;
    let access = access(&server.access, std::slice::from_ref(&address))?;
    Ok(Client::new(address, &access))
}

/// What the servers at these addresses are shown, and how they are believed.
fn access(args: &cli::Access, addresses: &[Address]) -> Result<Access, Failure> {
    let token = variable(TOKEN_VARIABLE).filter(|token| !token.is_empty());
    let token = token.as_ref().map(|token| token.to_string_lossy());
    let mut access = Access::new(args.token_file.as_deref(), token.as_deref())?;
    if addresses.iter().any(Address::is_encrypted) {
        access.trust(args.ca_file.as_deref())?;
    }
    Ok(access)
}

/// Reads an environment variable.
fn variable(name: &str) -> Option<std::ffi::OsString> {
    std::env::var_os(name)
}
