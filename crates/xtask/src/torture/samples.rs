//! Memory and descriptors of nodes while the load lasts, and the rule by which they count as flat.
//!
//! A series is the samples of one process from its start to its end, or those of one place over the whole load. A
//! series counts if it has at least [`SAMPLES_MIN`] samples. Its first quarter is its start. It is flat if the
//! median of its last quarter is at most [`GROWTH_MAX`] times the median of its second quarter, and a slack.

use std::collections::BTreeMap;
use std::fs;
use std::sync::PoisonError;
use std::thread;
use std::time::Duration;

use super::Run;
use super::checker::Violation;
use super::history::{Micros, Place};
use crate::e2e::pond::memory_bytes;

/// How often nodes are sampled.
const INTERVAL: Duration = Duration::from_secs(1);

/// The fewest samples of a series that is judged: four quarters of a few samples each.
const SAMPLES_MIN: usize = 40;

/// The growth of a median that still counts as flat.
const GROWTH_MAX: f64 = 1.5;

/// Megabytes of growth that always count as flat: a debug build that fills its buffers.
const MEMORY_SLACK_MB: f64 = 64.0;

/// Bytes of a megabyte.
const MEGABYTE: f64 = 1e6;

/// Descriptors that may always be added: connections of clients and nodes come and go.
const DESCRIPTORS_SLACK: f64 = 64.0;

/// The state of a process at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sample {
    pub(super) place: Place,
    pub(super) pid: u32,
    pub(super) at: Micros,
    /// Resident memory that no file backs.
    pub(super) memory_bytes: u64,
    pub(super) descriptors: u64,
}

/// A measure of a sample.
pub(super) struct Measure {
    pub(super) name: &'static str,
    slack: f64,
    pub(super) value: fn(&Sample) -> f64,
}

/// All measures.
pub(super) const MEASURES: [Measure; 2] = [
    Measure {
        name: "memory in MB",
        slack: MEMORY_SLACK_MB,
        value: |sample| sample.memory_bytes as f64 / MEGABYTE,
    },
    Measure {
        name: "descriptors",
        slack: DESCRIPTORS_SLACK,
        value: |sample| sample.descriptors as f64,
    },
];

/// The judgement of a measure over all series.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Judgement {
    /// Series that were long enough.
    pub(super) series: usize,
    /// The largest ratio of the last quarter to the second one.
    pub(super) growth_max: f64,
    /// The largest sample.
    pub(super) peak: f64,
    /// Series that are not flat.
    pub(super) grown: Vec<String>,
}

/// Samples all nodes until the load stops.
pub(super) fn sample(run: &Run) {
    while !run.is_load_over() {
        for place in run.nodes() {
            let sample = read(run, place);
            let mut samples = run.samples.lock().unwrap_or_else(PoisonError::into_inner);
            samples.extend(sample);
        }
        thread::sleep(INTERVAL);
    }
}

/// The state of a node, if it runs.
fn read(run: &Run, place: Place) -> Option<Sample> {
    let pid = run.processes[place].pid().ok()?;
    let memory_bytes = memory_bytes(pid, "RssAnon").ok()?;
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).ok()?.count();
    Some(Sample {
        place,
        pid,
        at: run.history.now(),
        memory_bytes,
        descriptors: descriptors as u64,
    })
}

/// Judges a measure.
pub(super) fn judge(samples: &[Sample], measure: &Measure) -> Judgement {
    let mut judgement = Judgement::default();
    let mut processes: BTreeMap<u32, Vec<&Sample>> = BTreeMap::new();
    let mut places: BTreeMap<Place, Vec<&Sample>> = BTreeMap::new();
    for sample in samples {
        judgement.peak = judgement.peak.max((measure.value)(sample));
        processes.entry(sample.pid).or_default().push(sample);
        places.entry(sample.place).or_default().push(sample);
    }
    let processes = processes
        .into_iter()
        .map(|(pid, series)| (format!("process {pid}"), series));
    let places = places
        .into_iter()
        .map(|(place, series)| (format!("place {place}"), series));
    for (name, series) in processes.chain(places) {
        let values: Vec<f64> = series
            .iter()
            .map(|sample| (measure.value)(sample))
            .collect();
        let Some((before, after)) = quarters(&values) else {
            continue;
        };
        judgement.series += 1;
        judgement.growth_max = judgement.growth_max.max(after / before.max(1.0));
        if after > before * GROWTH_MAX + measure.slack {
            judgement
                .grown
                .push(format!("{name}: {before:.0} became {after:.0}"));
        }
    }
    judgement
}

/// Medians of the second and of the last quarter of a series that is long enough.
fn quarters(values: &[f64]) -> Option<(f64, f64)> {
    let length = values.len();
    if length < SAMPLES_MIN {
        return None;
    }
    Some((
        median(&values[length / 4..length / 2]),
        median(&values[length * 3 / 4..]),
    ))
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

/// A violation for each measure that is not flat.
pub(super) fn check(samples: &[Sample]) -> Vec<Violation> {
    let judged = MEASURES
        .iter()
        .map(|measure| (measure, judge(samples, measure)));
    let grown = judged.filter(|(_, judgement)| !judgement.grown.is_empty());
    let violation = grown.map(|(measure, judgement)| Violation {
        kind: "NOT FLAT",
        text: format!("{}: {}", measure.name, judgement.grown.join("; ")),
    });
    violation.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn samples(memory_bytes: impl Fn(u64) -> u64) -> Vec<Sample> {
        let sample = |second| Sample {
            place: 0,
            pid: 7,
            at: second * 1_000_000,
            memory_bytes: memory_bytes(second),
            descriptors: 50,
        };
        (0..100).map(sample).collect()
    }

    #[test]
    fn a_start_and_a_wave_are_flat() {
        let wave = samples(|second| (second.min(20) * 20 + second % 7 * 5) * MIB);
        assert_eq!(check(&wave), []);
        assert_eq!(judge(&wave, &MEASURES[1]).series, 2);
    }

    #[test]
    fn steady_growth_is_not_flat() {
        let growing = samples(|second| (100 + second * 10) * MIB);
        let found = check(&growing);
        assert_eq!(found.len(), 1);
        assert!(
            found[0].text.contains("memory in MB: process 7"),
            "{found:?}"
        );
    }

    #[test]
    fn a_short_life_is_not_judged() {
        let growing = samples(|second| (100 + second * 100) * MIB);
        assert_eq!(check(&growing[..SAMPLES_MIN - 1]), []);
    }
}
