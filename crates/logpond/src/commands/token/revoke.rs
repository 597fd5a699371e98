//! `logpond token revoke`: takes a token out of the file.

use super::paths;
use crate::cli::TokenRevoke;
use crate::commands::{Exit, Failure};
use crate::terminal::note;
use crate::tokens::update;

pub(super) fn run(args: &TokenRevoke) -> Result<Exit, Failure> {
    let paths = paths(&args.file)?;
    let entry = update(&paths.tokens, |tokens| tokens.remove(&args.token))?;
    note(&format!(
        "token {} of role {} is revoked",
        match &entry.name {
            Some(name) => format!("{} ({name})", entry.id),
            None => entry.id,
        },
        entry.role.as_str()
    ));
    Ok(Exit::Found)
}
