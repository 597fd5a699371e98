//! `logpond cluster forget`: gives up a node that is gone for good.

use super::super::{Exit, Failure, client};
use super::tell;
use crate::cli::ClusterForget;
use logpond_client::Parameters;
use logpond_host::terminal::note;

pub(super) fn run(args: &ClusterForget) -> Result<Exit, Failure> {
    let parameters: Parameters = vec![("node", args.node.clone())];
    tell(
        &client(&args.server)?,
        "/api/v1/cluster/forget",
        &parameters,
    )?;
    note(&format!(
        "{} is forgotten: answers wait for it no more, and others make up for its copies",
        args.node
    ));
    Ok(Exit::Found)
}
