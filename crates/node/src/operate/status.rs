//! How the nodes of a cluster are doing.

use std::time::Instant;

use logpond_cluster::registry::RegistryEntry;
use logpond_cluster::{NodeId, Registry};
use serde::{Deserialize, Serialize};

use super::Operator;
use crate::cluster::{GossipEntry, NodeStatus};
use logpond_host::side_by_side::side_by_side;

/// Whether a node is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It answers.
    Live,
    /// It answers, and is leaving.
    Leaving,
    /// It does not answer.
    Gone,
    /// It was given up, or has left.
    Forgotten,
}

impl State {
    /// The name in tables.
    pub fn as_str(self) -> &'static str {
        match self {
            State::Live => "live",
            State::Leaving => "leaving",
            State::Gone => "gone",
            State::Forgotten => "forgotten",
        }
    }
}

/// A node.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NodeReport {
    /// Its name for ever.
    pub node: String,
    /// Where nodes reach it.
    pub address: String,
    /// Where people reach it, if that is known.
    pub http: Option<String>,
    /// The command that runs it, if that is known.
    pub role: Option<String>,
    /// The zone that it stores in, if it is in one.
    pub zone: Option<String>,
    /// The release that it runs, if that is known.
    pub version: Option<String>,
    /// Whether it is there.
    pub state: State,
    /// Milliseconds that its answer took.
    pub answer_ms: Option<f64>,
    /// What it says of itself.
    pub status: Option<NodeStatus>,
    /// The name for `logpond cluster forget`, if it does not answer. Its id, where
    /// another node is at its address.
    #[serde(default)]
    pub forget: Option<String>,
    /// Why it does not answer, if it does not.
    #[serde(default)]
    pub silence: Option<String>,
}

/// A cluster.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ClusterStatus {
    /// How many nodes are to hold each record, as the node that was asked is told.
    pub replication: usize,
    /// The nodes, forgotten ones last.
    pub nodes: Vec<NodeReport>,
    /// Journal bytes that ingesters have offered a second, over the last minute.
    pub offered_bytes_per_s: f64,
    /// Those of which stores have made enough copies.
    pub consumed_bytes_per_s: f64,
    /// The one by the other: below 1 stores fall behind. Null where nothing was offered.
    pub consumed_per_offered: Option<f64>,
    /// Bytes of which an ingester has the only copy.
    pub waiting_bytes: u64,
    /// Sources of which too few nodes have a copy.
    pub copies_lacking: u64,
    /// Sources of which more have one than need to.
    pub copies_superfluous: u64,
}

impl Operator {
    /// Asks all nodes at once how they are doing.
    pub fn cluster_status(&self) -> ClusterStatus {
        let registry = self.member.registry();
        let mut nodes = self.reports(&registry);
        nodes.sort_by(|a, b| {
            let is_forgotten = |node: &NodeReport| node.state == State::Forgotten;
            (is_forgotten(a), &a.address).cmp(&(is_forgotten(b), &b.address))
        });
        let said = || nodes.iter().filter_map(|node| node.status.as_ref());
        let offered: f64 = said().map(|status| status.offered_bytes_per_s).sum();
        let consumed: f64 = said().map(|status| status.consumed_bytes_per_s).sum();
        let copies = self.handoff.copy_state();
        ClusterStatus {
            replication: self.member.copies(),
            offered_bytes_per_s: offered,
            consumed_bytes_per_s: consumed,
            consumed_per_offered: (offered > 0.0).then_some(consumed / offered),
            waiting_bytes: said().map(|status| status.waiting_bytes).sum(),
            copies_lacking: copies.lacking,
            copies_superfluous: copies.superfluous,
            nodes,
        }
    }

    fn reports(&self, registry: &Registry) -> Vec<NodeReport> {
        let (forgotten, there): (Vec<_>, Vec<_>) = registry
            .nodes()
            .partition(|(_, known)| known.is_forgotten());
        let asked = side_by_side(there, |(node, _)| self.ask(node)).into_iter();
        let panicked = || Err("asking it met a defect of this program".to_owned());
        let asked = asked.map(|(node, answer)| (node, Some(answer.unwrap_or_else(panicked))));
        let unasked = forgotten.into_iter().map(|node| (node, None));
        let reports = asked.chain(unasked).map(|((node, known), answer)| {
            let seen = self.member.gossip().of(node);
            report(node, known, seen, answer)
        });
        let mut reports: Vec<NodeReport> = reports.collect();
        name_for_forget(&mut reports);
        reports
    }

    /// What a node says, and how long that took.
    fn ask(&self, node: NodeId) -> Result<(NodeStatus, f64), String> {
        let since = Instant::now();
        let status = if node == self.member.identity().node {
            self.handoff.status()
        } else {
            self.member
                .status_of(node)
                .map_err(|error| error.to_string())?
        };
        Ok((status, since.elapsed().as_secs_f64() * 1000.0))
    }
}

/// Says how those are given up that do not answer.
fn name_for_forget(reports: &mut [NodeReport]) {
    let is_there = |report: &NodeReport| report.state != State::Forgotten;
    let addresses: Vec<String> = reports
        .iter()
        .filter(|report| is_there(report))
        .map(|report| report.address.clone())
        .collect();
    for report in reports.iter_mut().filter(|r| r.state == State::Gone) {
        let same = addresses
            .iter()
            .filter(|address| **address == report.address);
        report.forget = Some(match same.count() {
            1 => report.address.clone(),
            _ => report.node.clone(),
        });
    }
}

/// `answer` is none where nobody was asked.
fn report(
    node: NodeId,
    known: &RegistryEntry,
    seen: Option<GossipEntry>,
    answer: Option<Result<(NodeStatus, f64), String>>,
) -> NodeReport {
    let state = match &answer {
        None => State::Forgotten,
        Some(Err(_)) => State::Gone,
        Some(Ok((status, _))) if status.leaving.is_some() => State::Leaving,
        Some(Ok(_)) => State::Live,
    };
    let silence = answer
        .as_ref()
        .and_then(|said| said.as_ref().err())
        .cloned();
    let (status, answer_ms) = answer.and_then(Result::ok).unzip();
    NodeReport {
        node: node.to_string(),
        address: known.address.clone(),
        http: seen.as_ref().map(|seen| seen.http.clone()),
        role: seen.as_ref().map(|seen| seen.roles.to_string()),
        zone: Some(known.zone.clone()).filter(|zone| !zone.is_empty()),
        version: seen.map(|seen| seen.version),
        state,
        answer_ms,
        status,
        forget: None,
        silence,
    }
}
