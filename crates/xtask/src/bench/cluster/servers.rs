//! The processes of a measurement: a cluster with all of its nodes on this machine, or a single process.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Instant;

use super::LOOK_EVERY;
use super::steady::Sample;
use crate::bench::pond::{Scratch, TestServer, cpu_seconds, wait_until};
use crate::run::Outcome;

/// The roles of the cluster's nodes.
const ROLES: [(&str, usize); 2] = [("ingest", 3), ("store", 3)];

/// How many nodes hold each record.
pub(super) const COPIES: &str = "2";

/// What is sent: lines of this length over so many connections.
pub(super) const LINE: &str = "300B";
pub(super) const CONNECTIONS: &str = "6";

/// What is in segments of all that was acknowledged once it counts as settled: files that are still
/// open may have the rest.
pub(super) const SETTLED_SHARE: f64 = 0.99;

/// What is measured.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    Single,
    Cluster,
}

/// The processes of one measurement.
pub(super) struct Servers {
    /// Those that take records in, then the others.
    pub(super) nodes: Vec<TestServer>,
    /// How many those are.
    intakes: usize,
    _scratch: Scratch,
}

impl Servers {
    pub(super) fn start(program: &Path, kind: Kind) -> Outcome<Servers> {
        let scratch = Scratch::new("bench-cluster")?;
        let mut nodes = Vec::new();
        let roles: &[(&str, usize)] = match kind {
            Kind::Single => &[("serve", 1)],
            Kind::Cluster => &ROLES,
        };
        for (role, count) in roles {
            for number in 0..*count {
                let data = scratch.path().join(format!("{role}-{number}"));
                let join = nodes
                    .first()
                    .map_or("off".into(), |n: &TestServer| n.address("gossip"));
                let of_cluster = ["--gossip", "127.0.0.1:0", "--replication", COPIES];
                let extra = match kind {
                    Kind::Single => vec![],
                    Kind::Cluster => [&of_cluster[..], &["--join", &join]].concat(),
                };
                nodes.push(TestServer::start_as(program, role, &data, &extra)?);
            }
        }
        let servers = Servers {
            nodes,
            intakes: roles[0].1,
            _scratch: scratch,
        };
        servers.meet()?;
        Ok(servers)
    }

    /// Waits until each node knows all others, and what they take in.
    fn meet(&self) -> Outcome<()> {
        let all = self.nodes.len();
        let knows_all = |node: &TestServer| match all {
            1 => true,
            _ => status(node).is_ok_and(|said| {
                let nodes = said["nodes"].as_array().map_or(&[][..], Vec::as_slice);
                nodes.iter().filter(|n| n["state"] == "live").count() == all
            }),
        };
        wait_until("all nodes know each other", || {
            self.nodes.iter().all(knows_all)
        })?;
        let is_complete = |node: &TestServer| {
            let answer = node.query("nothing");
            answer.is_ok_and(|(_, trailer)| trailer["complete"] == true)
        };
        wait_until("answers are complete", || {
            self.intakes().iter().all(is_complete)
        })
    }

    pub(super) fn intakes(&self) -> &[TestServer] {
        &self.nodes[..self.intakes]
    }

    pub(super) fn cpu(&self) -> Outcome<f64> {
        self.nodes.iter().map(|node| cpu_seconds(node.pid())).sum()
    }

    /// How often journals were synced.
    pub(super) fn syncs(&self) -> Outcome<f64> {
        let of = |node: &TestServer| node.metric("logpond_journal_sync_seconds_count");
        self.intakes().iter().map(of).sum()
    }

    /// Starts the sender.
    pub(super) fn load(&self, program: &Path, rate: u32, seconds: f64) -> Outcome<Child> {
        let urls: Vec<String> = self.intakes().iter().map(TestServer::url).collect();
        let (rate, seconds) = (rate.to_string(), format!("{seconds}s"));
        Command::new(program)
            .args(["load", "--addr", &urls.join(","), "--rate", &rate])
            .args(["--size", LINE, "--connections", CONNECTIONS])
            .args(["--for", &seconds, "--report-every", "1h", "-o", "json"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| format!("{}: {e}", program.display()))
    }

    /// Waits until records are in segments, with all their copies.
    pub(super) fn settle(&self, records: f64) -> Outcome<()> {
        let rows = |node: &TestServer| {
            let of = |name| node.metric(name).unwrap_or(0.0);
            of("logpond_store_consumed_rows_total") + of("logpond_handoff_consumed_rows_total")
        };
        wait_until("stores have consumed what was sent", || {
            // Asking costs the servers some CPU, too.
            thread::sleep(LOOK_EVERY);
            let consumed: f64 = self.nodes.iter().map(rows).sum();
            consumed >= records * SETTLED_SHARE && self.waiting_mb() == 0.0
        })
    }

    /// What ingesters have offered and stores have consumed since they were started.
    pub(super) fn sample(&self, start: Instant) -> Outcome<Sample> {
        let said = status(&self.nodes[0])?;
        let nodes = said["nodes"].as_array().map_or(&[][..], Vec::as_slice);
        let of_all = |name: &str| {
            nodes
                .iter()
                .filter_map(|n| n["status"][name].as_f64())
                .sum()
        };
        Ok(Sample {
            at_s: start.elapsed().as_secs_f64(),
            offered: of_all("offered_bytes"),
            consumed: of_all("consumed_bytes"),
        })
    }

    /// Megabytes of journal files that no store has made segments of yet.
    fn waiting_mb(&self) -> f64 {
        let waiting = self
            .intakes()
            .iter()
            .map(|node| node.metric("logpond_unreplicated_bytes").unwrap_or(0.0));
        waiting.sum::<f64>() / 1e6
    }
}

/// What a cluster says of itself.
pub(super) fn status(node: &TestServer) -> Outcome<serde_json::Value> {
    serde_json::from_str(&node.get("/api/v1/cluster")?).map_err(|e| e.to_string())
}
