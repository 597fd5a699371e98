//! `logpond serve`, `ingest`, `store` and `query-node`: flags to settings, then the server.

use std::path::Path;

use logpond_cluster::Roles;

use super::{Exit, Failure, variable};
use crate::cli::{Node, Serve};
use logpond_host::private_file::withhold_from_others;
use logpond_settings::{Environment, Settings, gather};

/// Runs a node that takes records in.
pub(super) fn run(args: &Serve, roles: Roles) -> Result<Exit, Failure> {
    withhold_from_others();
    let settings = of_node(args.node())?;
    crate::serve::run(&settings.limited_to(roles)?)?;
    Ok(Exit::Found)
}

/// Runs a node that does not.
pub(super) fn run_node(args: &Node, roles: Roles) -> Result<Exit, Failure> {
    withhold_from_others();
    let settings = of_node(args)?;
    crate::serve::run(&settings.limited_to(roles)?)?;
    Ok(Exit::Found)
}

fn of_node(args: &Node) -> Result<Settings, Failure> {
    settings(args.config.as_deref(), args.given.clone())
}

/// The settings that flags, environment and files give.
pub(super) fn settings(
    config: Option<&Path>,
    flags: Vec<(&'static str, String)>,
) -> Result<Settings, Failure> {
    let surroundings = Environment {
        variable: &variable,
        is_root: rustix::process::geteuid().is_root(),
    };
    let given = gather(config, flags, &surroundings)?;
    Ok(Settings::resolve(&given, &surroundings)?)
}
