//! The journal under simulated disks. `LOGPOND_SIM_SEED=<n>` replays one seed.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "tests cast numbers that they know"
)]

use logpond_segment::mem_disk::Fault;
use logpond_sim::pond::{Faults, SimulatedJournal};
use logpond_sim::report::Report;

/// Steps of a random run: enough for a dozen crashes.
const STEPS: u64 = 400;

/// The seeds of a plain run; a failing one of elsewhere is added here.
const SEEDS: std::ops::Range<u64> = 1..81;

/// Says how to replay a seed if the run panics.
struct Replay(u64, &'static str);

impl Drop for Replay {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Replay(seed, test) = self;
            eprintln!("seed {seed} failed; replay it with");
            eprintln!(
                "  LOGPOND_SIM_SEED={seed} cargo test -p logpond-sim --test journal {test} -- --nocapture"
            );
        }
    }
}

fn seeds() -> Vec<u64> {
    match std::env::var("LOGPOND_SIM_SEED") {
        Ok(seed) => vec![seed.parse().expect("LOGPOND_SIM_SEED is a number")],
        Err(_) => SEEDS.collect(),
    }
}

fn run(seed: u64, test: &'static str) -> Report {
    let _replay = Replay(seed, test);
    let mut pond = SimulatedJournal::new(seed, Faults::ALL);
    pond.run(STEPS);
    pond.finish()
}

#[test]
fn every_acknowledged_row_is_there_once() {
    let mut total = Report::default();
    let seeds = seeds();
    for seed in &seeds {
        total.add(&run(*seed, "every_acknowledged_row_is_there_once"));
    }
    println!("{} seeds: {total}", seeds.len());
    let runs = seeds.len() as u64;
    assert!(
        total.acknowledgements >= 300 * runs,
        "too few acknowledgements: {total}"
    );
    assert!(total.crashes >= 8 * runs, "too few crashes: {total}");
    assert!(total.cuts >= 2 * runs, "too few cuts: {total}");
    assert!(total.checks >= 20 * runs, "too few checks: {total}");
    assert!(total.errors >= 10 * runs, "too few errors: {total}");
    assert!(
        total.files_consumed >= 5 * runs,
        "too few files consumed: {total}"
    );
}

#[test]
fn a_seed_gives_the_same_run_every_time() {
    for seed in seeds().into_iter().take(5) {
        let (first, second) = (
            run(seed, "a_seed_gives_the_same_run_every_time"),
            run(seed, "a_seed_gives_the_same_run_every_time"),
        );
        assert_eq!(first, second, "seed {seed}");
        assert!(first.trace.len() > STEPS as usize / 2);
    }
    assert_ne!(
        run(1, "a_seed_gives_the_same_run_every_time").trace,
        run(2, "a_seed_gives_the_same_run_every_time").trace
    );
}

/// Runs a short workload without faults but one, at each of its disk calls in turn.
fn fault_at_every_call(fault: Fault, test: &'static str) -> (u64, Report) {
    const SHORT: u64 = 120;
    let seed = seeds()[0];
    let mut undisturbed = SimulatedJournal::new(seed, Faults::NONE);
    undisturbed.run(SHORT);
    let calls = undisturbed.disk().calls_count();
    let mut total = Report::default();
    for call in 0..calls {
        let _replay = Replay(seed, test);
        let mut pond = SimulatedJournal::new(seed, Faults::NONE);
        pond.disk().fail_at(call, fault);
        pond.run(SHORT);
        total.add(&pond.finish());
    }
    println!("{calls} calls: {total}");
    assert!(total.checks >= calls, "one check for each call at least");
    (calls, total)
}

#[test]
fn the_power_may_fail_at_every_call() {
    let (calls, total) = fault_at_every_call(Fault::PowerLoss, "the_power_may_fail_at_every_call");
    assert!(
        calls >= 60 && total.acknowledgements >= 30 * calls,
        "{total}"
    );
    // One at the call, one at the end. Calls that only readers make are not always reached.
    assert!(total.crashes >= calls + calls / 2, "{total}");
}

#[test]
fn the_disk_may_fail_at_every_call() {
    let fault = Fault::Error(std::io::ErrorKind::Other);
    let (calls, total) = fault_at_every_call(fault, "the_disk_may_fail_at_every_call");
    // Of the journal's calls, and of those that make segments.
    let errors = total.errors + total.segment_errors;
    assert!(
        calls >= 60 && total.errors >= 60 && errors >= calls / 2,
        "{total}"
    );
}
