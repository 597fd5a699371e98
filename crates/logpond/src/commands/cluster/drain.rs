//! `logpond cluster drain`: has a node leave.

use std::thread;
use std::time::Duration;

use super::super::{Exit, Failure, client};
use super::{ask_status, tell};
use crate::cli::ClusterDrain;
use crate::client::{ClientError, Parameters};
use crate::cluster::LeavingStatus;
use crate::operate::{ClusterStatus, State};
use crate::output::quantity;
use crate::terminal::note;

/// How often it is looked how far the node is.
const LOOK_EVERY: Duration = Duration::from_millis(500);

pub(super) fn run(args: &ClusterDrain) -> Result<Exit, Failure> {
    let client = client(&args.server)?;
    let before = ask_status(&client)?;
    let name = args.node.as_deref();
    let mut parameters: Parameters = Parameters::new();
    parameters.extend(name.map(|node| ("node", node.to_owned())));
    if args.cancel {
        parameters.push(("cancel", "true".to_owned()));
    }
    tell(&args.server, "/api/v1/cluster/drain", &parameters)?;
    if args.cancel {
        note("the node stays");
        return Ok(Exit::Found);
    }
    if !args.wait {
        note("the node is leaving; `logpond cluster status` shows how far it is");
        return Ok(Exit::Found);
    }
    let leaving = |status: &ClusterStatus| {
        let mut nodes = status.nodes.iter();
        let found = nodes.find(|node| match name {
            Some(name) => is_called(&node.address, &node.node, name),
            // The one that is asked knows of itself without asking.
            None => node.state == State::Leaving,
        });
        found.map(|node| (node.state, node.status.as_ref().and_then(|s| s.leaving)))
    };
    let mut said = String::new();
    loop {
        let status = match ask_status(&client) {
            Ok(status) => status,
            // It was this node, and it has ended.
            Err(ClientError::Unreachable { .. }) => break,
            Err(error) => return Err(error.into()),
        };
        match leaving(&status) {
            Some((State::Forgotten, _)) => break,
            Some((_, progress)) => {
                let now = progress.map_or("it prepares".to_owned(), describe);
                if now != said {
                    note(&now);
                    said = now;
                }
            }
            None if before.nodes.len() > 1 => {}
            None => return Err("nobody knows the node any more".into()),
        }
        thread::sleep(LOOK_EVERY);
    }
    note("the node has left");
    Ok(Exit::Found)
}

fn is_called(address: &str, node: &str, name: &str) -> bool {
    let host = address.rsplit_once(':').map(|(host, _)| host);
    address == name || host == Some(name) || node.starts_with(name)
}

fn describe(left: LeavingStatus) -> String {
    format!(
        "left: {}, {}, of which {} lack copies elsewhere",
        quantity::counted(left.journal_files, "journal file"),
        quantity::counted(left.segments, "segment"),
        quantity::counted(left.lacking, "source"),
    )
}
