//! A load of one rate, and what was seen of the servers under it.

use std::path::Path;
use std::thread;
use std::time::Instant;

use serde_json::Value;

use super::LOOK_EVERY;
use super::servers::{Kind, Servers, status};
use super::steady::Sample;
use crate::bench::machine;
use crate::run::Outcome;

/// The cost of ingest, and the lag of the stores.
pub(super) struct LoadResult {
    /// Records that were acknowledged, and those that were not: refused, or without an answer.
    pub(super) acknowledged: f64,
    pub(super) not_taken: f64,
    /// From the first record to the last acknowledgement.
    pub(super) took_s: f64,
    /// Acknowledgements, milliseconds: half of them, and 99 of 100.
    pub(super) within_ms: [f64; 2],
    /// CPU seconds of all servers for a million records, until the last acknowledgement, and until
    /// all are in segments.
    pub(super) acknowledged_s: f64,
    pub(super) settled_s: f64,
    /// Syncs of the journals for a thousand records.
    pub(super) syncs: f64,
    /// Cores that the servers kept busy until the last acknowledgement, and that anybody did.
    pub(super) busy_servers: f64,
    pub(super) busy_all: f64,
    /// What the cluster says of its stores, over its last minute.
    pub(super) consumed_per_offered: Option<f64>,
    /// What was seen of the cluster's stores during the load.
    pub(super) samples: Vec<Sample>,
}

impl LoadResult {
    /// Starts servers, loads them for so many seconds, and waits until all is in segments.
    pub(super) fn of(program: &Path, kind: Kind, rate: u32, seconds: f64) -> Outcome<LoadResult> {
        let servers = Servers::start(program, kind)?;
        let (before, all_before) = (servers.cpu()?, machine::busy_seconds()?);
        let start = Instant::now();
        let mut sender = servers.load(program, rate, seconds)?;
        let mut samples = Vec::new();
        while sender.try_wait().map_err(|e| e.to_string())?.is_none() {
            thread::sleep(LOOK_EVERY);
            if let Kind::Cluster = kind {
                samples.push(servers.sample(start)?);
            }
        }
        let took = start.elapsed().as_secs_f64();
        let all = machine::busy_seconds()? - all_before;
        let sent = sender.wait_with_output().map_err(|e| e.to_string())?;
        let said: Value =
            serde_json::from_slice(&sent.stdout).map_err(|e| format!("logpond load: {e}"))?;
        let number = |name: &str| {
            let number = said[name].as_f64();
            number.ok_or_else(|| format!("logpond load: no {name}"))
        };
        let acknowledged = number("acknowledged")?;
        let at_end = servers.cpu()? - before;
        let syncs = servers.syncs()?;
        let consumed_per_offered = match kind {
            Kind::Single => None,
            Kind::Cluster => status(&servers.nodes[0])?["consumed_per_offered"].as_f64(),
        };
        servers.settle(acknowledged)?;
        Ok(LoadResult {
            acknowledged,
            not_taken: number("refused")? + number("failed")?,
            took_s: number("seconds")?,
            within_ms: [number("latency_ms_p50")?, number("latency_ms_p99")?],
            acknowledged_s: at_end / (acknowledged / 1e6),
            settled_s: (servers.cpu()? - before) / (acknowledged / 1e6),
            syncs: syncs / (acknowledged / 1e3),
            busy_servers: at_end / took,
            busy_all: all / took,
            consumed_per_offered,
            samples,
        })
    }

    /// The same, where all has to be taken.
    pub(super) fn wholly(
        program: &Path,
        kind: Kind,
        rate: u32,
        seconds: f64,
    ) -> Outcome<LoadResult> {
        let loaded = LoadResult::of(program, kind, rate, seconds)?;
        match loaded.not_taken {
            0.0 => Ok(loaded),
            lost => Err(format!("{lost} records were not taken at {rate} a second")),
        }
    }

    /// Both times of acknowledgements, as a cell.
    pub(super) fn within(&self) -> String {
        let [half, most] = self.within_ms;
        format!("{half:.1} / {most:.1}")
    }

    /// How busy the cores were, as a cell.
    pub(super) fn busy(&self) -> String {
        let (servers, all, cores) = (self.busy_servers, self.busy_all, machine::cores());
        format!("{servers:.2} / {all:.2} of {cores}")
    }
}
