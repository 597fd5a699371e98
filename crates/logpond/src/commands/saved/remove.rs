//! `logpond saved remove`: removes a query.

use super::{parse, path};
use crate::cli::SavedRemove;
use crate::commands::{Exit, Failure, client};
use logpond_host::terminal::note;

pub(super) fn run(args: &SavedRemove) -> Result<Exit, Failure> {
    parse(client(&args.server)?.delete(&path(&args.name))?)?;
    note(&format!("removed '{}'", args.name));
    Ok(Exit::Found)
}
