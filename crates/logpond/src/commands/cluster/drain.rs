//! `logpond cluster drain`: has a node leave.

use std::thread;
use std::time::Duration;

use super::super::{Exit, Failure, client};
use super::{ask_status, tell};
use crate::cli::ClusterDrain;
use logpond_client::{Client, ClientError, Parameters};
use logpond_host::terminal::note;
use logpond_node::cluster::LeavingStatus;
use logpond_node::operate::State;
use logpond_render::quantity;

/// How often it is looked how far the node is.
const LOOK_EVERY: Duration = Duration::from_millis(500);

pub(super) fn run(args: &ClusterDrain) -> Result<Exit, Failure> {
    let client = client(&args.server)?;
    let mut parameters: Parameters = Parameters::new();
    parameters.extend(args.node.iter().map(|node| ("node", node.clone())));
    if args.cancel {
        parameters.push(("cancel", "true".to_owned()));
    }
    let told = tell(&client, "/api/v1/cluster/drain", &parameters)?;
    if args.cancel {
        note("the node stays");
        return Ok(Exit::Found);
    }
    if !args.wait {
        note("the node is leaving; `logpond cluster status` shows how far it is");
        return Ok(Exit::Found);
    }
    wait(&client, &told.node)?;
    note("the node has left");
    Ok(Exit::Found)
}

/// Waits until a node has left, and says how far it is.
fn wait(client: &Client, node: &str) -> Result<(), ClientError> {
    let mut said = String::new();
    loop {
        let status = match ask_status(client) {
            Ok(status) => status,
            // It was this node, and it has ended.
            Err(ClientError::Unreachable { .. }) => return Ok(()),
            Err(error) => return Err(error),
        };
        let mut nodes = status.nodes.into_iter();
        // Who was told of it knows it until it has left.
        let Some(found) = nodes.find(|known| known.node == node) else {
            return Ok(());
        };
        if found.state == State::Forgotten {
            return Ok(());
        }
        let progress = found.status.and_then(|status| status.leaving);
        let now = progress.map_or("it prepares".to_owned(), describe);
        if now != said {
            note(&now);
            said = now;
        }
        thread::sleep(LOOK_EVERY);
    }
}

fn describe(left: LeavingStatus) -> String {
    format!(
        "left: {}, {}, of which {} lack copies elsewhere",
        quantity::counted(left.journal_files, "journal file"),
        quantity::counted(left.segments, "segment"),
        quantity::counted(left.lacking, "source"),
    )
}
