//! `logpond serve`: flags to settings, then the server.

use super::{Exit, Failure, variable};
use crate::cli::Serve;
use crate::settings::{Settings, Surroundings, gather};

pub(super) fn run(args: &Serve) -> Result<Exit, Failure> {
    crate::serve::run(&settings(args)?)?;
    Ok(Exit::Found)
}

/// The settings that flags, environment and files give.
pub(super) fn settings(args: &Serve) -> Result<Settings, Failure> {
    let surroundings = Surroundings {
        variable: &variable,
        is_root: rustix::process::geteuid().is_root(),
    };
    let given = gather(args.config.as_deref(), args.given(), &surroundings)?;
    Ok(Settings::resolve(&given, &surroundings)?)
}
