//! `logpond token revoke`: takes a token out of the file.

use super::paths;
use crate::cli::TokenRevoke;
use crate::commands::{Exit, Failure};
use logpond_host::terminal::note;
use logpond_listen::tokens::{TokenFileError, update};

pub(super) fn run(args: &TokenRevoke) -> Result<Exit, Failure> {
    let paths = paths(&args.file)?;
    let removed = update(&paths.tokens, |tokens| tokens.remove(&args.token));
    let entry = removed.map_err(|error| match error {
        // Perhaps it is in the file of another server.
        TokenFileError::Unknown(_) => format!("{}: {error}", paths.tokens.display()).into(),
        error => Failure::from(error),
    })?;
    note(&format!(
        "token {} of role {} is revoked in {}",
        match &entry.name {
            Some(name) => format!("{} ({name})", entry.id),
            None => entry.id,
        },
        entry.role.as_str(),
        paths.tokens.display()
    ));
    Ok(Exit::Found)
}
