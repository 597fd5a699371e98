//! `logpond token`: makes, lists and revokes tokens, in the file that servers read.
//!
//! It works on the file and asks no server, so it works beside a running one and without one.

mod create;
mod list;
mod revoke;

use super::{Exit, Failure, variable};
use crate::cli::{Token, TokenFile};
use crate::settings::{Paths, Surroundings, gather};

pub(super) fn run(token: &Token) -> Result<Exit, Failure> {
    match token {
        Token::Create(args) => create::run(args),
        Token::List(args) => list::run(args),
        Token::Revoke(args) => revoke::run(args),
    }
}

/// Where the tokens are: as the server that has these settings finds them.
fn paths(file: &TokenFile) -> Result<Paths, Failure> {
    let surroundings = Surroundings {
        variable: &variable,
        is_root: rustix::process::geteuid().is_root(),
    };
    let flags = [("data", &file.data), ("tokens", &file.tokens)];
    let flags = flags
        .into_iter()
        .filter_map(|(name, text)| Some((name, text.clone()?)));
    let given = gather(file.config.as_deref(), flags.collect(), &surroundings)?;
    Ok(Paths::resolve(&given, &surroundings)?)
}
