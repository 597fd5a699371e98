//! What is measured of candidates, which take turns.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;

use super::client::{self, AtEdge, Destination, Edge, Idle, Load, keep_asking, shake_hands};
use super::message::Exchange;
use super::process::Tree;
use super::results::{ConnectionRates, Grid, IdleMemory, Openings, Sample, Series};
use super::syscalls::Count;
use crate::run::Outcome;

/// Connections that ask at a time.
pub(super) const CONNECTIONS: usize = 50;

/// The same while system calls are counted, which takes its time.
pub(super) const CONNECTIONS_COUNTED: usize = 20;

/// Connections that are opened and ended at a time.
pub(super) const OPENED_AT_A_TIME: usize = 8;

/// What idle connections have asked for, and what new ones ask for.
const SMALL: Exchange = Exchange::Echo(10);

/// How long memory is left alone before it is looked at.
const SETTLES: Duration = Duration::from_millis(500);

/// Somebody who is asked.
pub(super) struct Candidate<'t> {
    pub(super) name: String,
    pub(super) address: SocketAddr,
    /// Whose certificate clients trust; none speaks without TLS.
    pub(super) trusted: Option<&'t [u8]>,
    /// Whose CPU counts.
    pub(super) trees: Vec<&'t Tree>,
}

impl Candidate<'_> {
    fn destination(&self, resumes: bool) -> Outcome<Destination> {
        let tls: Option<Arc<ClientConfig>> = match self.trusted {
            Some(certificate) => Some(client::trusting(certificate, resumes)?),
            None => None,
        };
        Ok(Destination {
            address: self.address,
            tls,
        })
    }

    fn cpu(&self) -> Outcome<f64> {
        self.trees.iter().map(|tree| tree.cpu()).sum()
    }

    fn pids(&self) -> Vec<u32> {
        self.trees.iter().flat_map(|tree| tree.pids()).collect()
    }
}

/// For how long, and how often.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) rounds: usize,
    pub(super) warm_up: Duration,
    pub(super) duration: Duration,
    /// Idle connections, fewer first.
    pub(super) idle: [usize; 2],
    /// Where the counts of system calls go.
    pub(super) counts: PathBuf,
}

impl Plan {
    fn load(&self, destination: Destination, connections: usize, exchange: Exchange) -> Load {
        Load {
            destination,
            connections,
            exchange,
            warm_up: self.warm_up,
            duration: self.duration,
        }
    }

    /// CPU and times of all candidates for each size, in rounds.
    pub(super) fn grid(&self, candidates: &[Candidate], exchanges: &[Exchange]) -> Grid {
        let mut grid = Grid::new(candidates.iter().map(|c| c.name.as_str()), exchanges);
        for round in 1..=self.rounds {
            for (column, exchange) in exchanges.iter().enumerate() {
                eprintln!("   round {round}: {exchange}");
                for (row, candidate) in candidates.iter().enumerate() {
                    let series = &mut grid.rows[row].series[column];
                    take(series, &candidate.name, || {
                        self.sample(candidate, *exchange)
                    });
                }
            }
        }
        grid
    }

    fn sample(&self, candidate: &Candidate, exchange: Exchange) -> Outcome<Sample> {
        let load = self.load(candidate.destination(false)?, CONNECTIONS, exchange);
        let mut cpu_s = 0.0;
        let took = keep_asking(&load, &mut |edge| {
            cpu_s = difference(edge, cpu_s, candidate.cpu()?);
            Ok(())
        })?;
        Sample::new(cpu_s, took.seconds, took.latencies_us)
    }

    /// System calls for a request.
    pub(super) fn count_calls(&self, candidate: &Candidate, exchange: Exchange) -> Outcome<f64> {
        let destination = candidate.destination(false)?;
        let load = self.load(destination, CONNECTIONS_COUNTED, exchange);
        self.counted(candidate, |at_edge| {
            Ok(keep_asking(&load, at_edge)?.latencies_us.len() as u64)
        })
    }

    /// System calls for a new connection with a request.
    pub(super) fn count_calls_of_opening(&self, candidate: &Candidate) -> Outcome<f64> {
        let load = self.load(candidate.destination(false)?, OPENED_AT_A_TIME, SMALL);
        self.counted(candidate, |at_edge| Ok(shake_hands(&load, at_edge)?.count))
    }

    /// System calls for each of what a load gives the number of.
    fn counted(
        &self,
        candidate: &Candidate,
        load: impl FnOnce(AtEdge) -> Outcome<u64>,
    ) -> Outcome<f64> {
        let pids = candidate.pids();
        let mut count = None;
        let mut calls = 0;
        let done = load(&mut |edge| {
            match edge {
                Edge::Begin => count = Some(Count::start(&pids, &self.counts)?),
                Edge::End => calls = count.take().ok_or("nothing was counted")?.end()?,
            }
            Ok(())
        })?;
        match done {
            0 => Err("nothing was done while system calls were counted".into()),
            done => Ok(calls as f64 / done as f64),
        }
    }

    /// CPU of new connections of all candidates, in rounds.
    pub(super) fn openings(
        &self,
        kind: &'static str,
        candidates: &[Candidate],
        resumes: bool,
    ) -> Openings {
        let mut openings = Openings::new(kind, candidates.iter().map(|c| c.name.as_str()));
        for round in 1..=self.rounds {
            eprintln!("   round {round}: {kind}");
            for (row, candidate) in candidates.iter().enumerate() {
                let series = &mut openings.rows[row].1;
                take(series, &candidate.name, || self.opening(candidate, resumes));
            }
        }
        openings
    }

    fn opening(&self, candidate: &Candidate, resumes: bool) -> Outcome<ConnectionRates> {
        let destination = candidate.destination(resumes)?;
        let load = self.load(destination, OPENED_AT_A_TIME, SMALL);
        let mut cpu_s = 0.0;
        let done = shake_hands(&load, &mut |edge| {
            cpu_s = difference(edge, cpu_s, candidate.cpu()?);
            Ok(())
        })?;
        if done.count == 0 {
            return Err("no connection was over in time".into());
        }
        Ok(ConnectionRates {
            cpu_us: cpu_s * 1e6 / done.count as f64,
            per_second: done.count as f64 / done.seconds,
            resumed: done.resumed as f64 / done.count as f64,
        })
    }

    /// Memory of idle connections, of somebody who has had none yet.
    pub(super) fn resting(&self, candidate: &Candidate) -> Outcome<IdleMemory> {
        let memory = || -> Outcome<u64> {
            std::thread::sleep(SETTLES);
            candidate.trees.iter().map(|tree| tree.memory_bytes()).sum()
        };
        let before_bytes = memory()?;
        let mut idle = Idle::new(candidate.destination(false)?)?;
        let mut more_bytes = [0; 2];
        for (count, more) in self.idle.into_iter().zip(&mut more_bytes) {
            idle.grow(count, SMALL)?;
            *more = memory()?.saturating_sub(before_bytes);
        }
        Ok(IdleMemory {
            before_bytes,
            more_bytes,
        })
    }
}

/// What was before at the beginning, what has come to it at the end.
fn difference(edge: Edge, before: f64, now: f64) -> f64 {
    match edge {
        Edge::Begin => now,
        Edge::End => now - before,
    }
}

/// Takes a sample, unless one has failed already.
fn take<T>(series: &mut Series<T>, name: &str, sample: impl FnOnce() -> Outcome<T>) {
    if series.failed.is_some() {
        return;
    }
    match sample() {
        Ok(sample) => series.samples.push(sample),
        Err(error) => {
            eprintln!("   {name}: {error}");
            series.failed = Some(error);
        }
    }
}
