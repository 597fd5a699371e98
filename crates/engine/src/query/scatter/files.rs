//! The files of all nodes, each with its node.

use std::collections::BTreeMap;
use std::io::BufReader;

use logpond_cluster::{NodeId, Share};
use serde_json::{Value, json};

use super::super::frames::{Frame, Frames};
use super::super::question::{self, Request};
use super::super::{Trailer, files};
use super::{Cluster, Nodes};
use logpond_host::side_by_side::side_by_side;

/// What a node says that it has.
fn ask(nodes: &dyn Nodes, node: NodeId) -> Result<Vec<Value>, String> {
    let question = question::encode(&Share::default(), &BTreeMap::new(), &Request::Files);
    let reader = nodes.ask(node, &question).map_err(|e| e.to_string())?;
    let mut frames = Frames::new(BufReader::new(reader));
    let mut found = Vec::new();
    loop {
        match frames.next().map_err(|error| error.to_string())? {
            Frame::Row((_, file, _)) => {
                found.push(serde_json::from_slice(&file).map_err(|error| error.to_string())?);
            }
            Frame::Receipt(_) => return Ok(found),
            Frame::Failed(why) => return Err(why),
            _ => return Err("it answers something else".to_owned()),
        }
    }
}

/// The files of all nodes, this one's first; a node that does not answer has an object, too.
pub(super) fn list(cluster: &Cluster) -> (Vec<Value>, Trailer) {
    let nodes = &*cluster.nodes;
    let asked = side_by_side(nodes.others(), |node| ask(nodes, node));
    let asked = asked.into_iter().map(|(node, answer)| {
        let unasked = || Err("it could not be asked".to_owned());
        (node, answer.unwrap_or_else(unasked))
    });
    let (mut files, mut trailer) = (Vec::new(), Trailer::default());
    let own = (nodes.own(), Ok(files::all(&cluster.engine)));
    for (node, answer) in std::iter::once(own).chain(asked) {
        let name = nodes.name(node);
        match answer {
            Ok(found) => {
                trailer.rows += found.len() as u64;
                files.extend(found.into_iter().map(|mut file| {
                    file["node"] = name.as_str().into();
                    file
                }));
            }
            Err(why) => {
                files.push(json!({ "node": name, "state": "no-answer" }));
                trailer.miss(format_args!("the files of {name}: {why}"));
                trailer.silent.push(name);
            }
        }
    }
    trailer.newest = cluster.engine.newest_time();
    (files, trailer)
}
