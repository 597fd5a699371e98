//! `logpond saved`: queries by name that a server keeps.

mod list;
mod remove;
mod run;
mod set;
mod show;

use serde_json::Value;

use super::{Exit, Failure};
use crate::cli::SavedCommand;
use logpond_client::{Answer, ClientError, encode};

/// The longest answer that is read: that of a query has a limit of lines.
const ANSWER_BYTES_MAX: u64 = 256 << 20;

pub(super) fn run(saved: &SavedCommand) -> Result<Exit, Failure> {
    match saved {
        SavedCommand::List(args) => list::run(args),
        SavedCommand::Show(args) => show::run(args),
        SavedCommand::Set(args) => set::run(args),
        SavedCommand::Remove(args) => remove::run(args),
        SavedCommand::Run(args) => run::run(args),
    }
}

/// Where a query is.
fn path(name: &str) -> String {
    let mut path = "/api/v1/saved-queries/".to_owned();
    encode(name.as_bytes(), &mut path);
    path
}

fn parse(answer: Answer) -> Result<Value, Failure> {
    let text = answer.into_text(ANSWER_BYTES_MAX)?;
    if text.len() as u64 == ANSWER_BYTES_MAX {
        return Err("the answer is too long to be printed: take a smaller --limit".into());
    }
    let value = serde_json::from_slice(&text);
    Ok(value.map_err(|error| ClientError::Nonsense(Box::new(error)))?)
}

/// The parts of `NAME=VALUE`.
fn pair(text: &str) -> Result<(&str, &str), Failure> {
    text.split_once('=')
        .filter(|(name, _)| !name.is_empty())
        .ok_or_else(|| format!("--variable: expected NAME=VALUE, not '{text}'").into())
}
