//! Whether stores keep up with ingesters at four fifths of the most that they keep up with.
//!
//! Load is a share of that rate and not of the cores: a journal that is synced for each answer takes
//! more records at a time the more there are, so cores are as busy at half of the rate.

use std::path::Path;

use super::ROUNDS_DEFAULT;
use super::loaded::LoadResult;
use super::servers::{CONNECTIONS, Kind, LINE};
use super::steady::{Sample, SteadyState};
use crate::bench::Settings;
use crate::bench::table::{Report, Target};
use crate::run::Outcome;

/// What is loaded, of the most that stores keep up with.
const LOAD_SHARE: f64 = 0.8;

/// How the most is found on a machine: between these rates, by loads of this length, until what is kept
/// up with and what is not are this near, all in lines a second. What merges cost grows with what there is:
/// half a minute says too little of it.
const RATE_LEAST: u32 = 16_000;
const RATE_MOST: u32 = 336_000;
const RATE_NEAR: u32 = 15_000;
const PROBE_SECONDS: f64 = 120.0;

/// Stores keep up with a probe if what waits for them in its last quarter is at most what ingesters close
/// in this time, seconds: being a twentieth short makes five of a probe.
const WAITING_S_MAX: f64 = 4.0;

/// And what is sent has to be acknowledged as it comes, this share of it at least.
const ACKNOWLEDGED_SHARE: f64 = 0.98;

/// To what rates are cut.
const RATE_STEP: u32 = 1000;

/// How long each load is unless told: over a minute, whole files that come and go hide what is less than
/// a tenth.
const SECONDS_DEFAULT: f64 = 240.0;

/// The most lines a second that stores keep up with on this machine, to [`RATE_NEAR`].
pub(super) fn rate_max(program: &Path) -> Outcome<u32> {
    let (mut kept, mut not_kept) = (RATE_LEAST, RATE_MOST);
    while not_kept - kept > RATE_NEAR {
        let rate = whole((kept + not_kept) / 2);
        if is_kept_up(program, rate)? {
            kept = rate;
        } else {
            not_kept = rate;
        }
    }
    Ok(kept)
}

/// What is loaded where that is the most.
pub(super) fn rate_of_load(rate_max: u32) -> u32 {
    whole((f64::from(rate_max) * LOAD_SHARE) as u32)
}

fn whole(rate: u32) -> u32 {
    rate / RATE_STEP * RATE_STEP
}

fn is_kept_up(program: &Path, rate: u32) -> Outcome<bool> {
    let probe = LoadResult::of(program, Kind::Cluster, rate, PROBE_SECONDS)?;
    let share = probe.acknowledged / (f64::from(rate) * PROBE_SECONDS);
    let offered_per_s = probe.samples.last().map_or(0.0, |s| s.offered / s.at_s);
    let quarter = probe.samples.len() - probe.samples.len() / 4;
    let waiting_s = waiting(&probe.samples[quarter..]) / offered_per_s;
    let in_time = probe.took_s * ACKNOWLEDGED_SHARE <= PROBE_SECONDS;
    let keeps_up = share >= ACKNOWLEDGED_SHARE && in_time && waiting_s <= WAITING_S_MAX;
    eprintln!(
        "   {rate} lines a second: {:.1} % acknowledged in {:.1} s, {waiting_s:.1} s of it waited; {}",
        share * 100.0,
        probe.took_s,
        if keeps_up { "kept up" } else { "not kept up" }
    );
    Ok(keeps_up)
}

/// What waited for stores on average, bytes.
fn waiting(samples: &[Sample]) -> f64 {
    let waited: f64 = samples.iter().map(|s| s.offered - s.consumed).sum();
    waited / samples.len().max(1) as f64
}

/// Loads a cluster for long, with [`LOAD_SHARE`] of the most.
pub(super) fn measure(
    program: &Path,
    settings: &Settings,
    rate_max: u32,
    report: &mut Report,
) -> Outcome<()> {
    let columns = [
        "lines a second",
        "acknowledged within, ms (p50 / p99)",
        "cores busy, with servers / with all",
        "waiting for stores, MB (first / second half)",
        "consumed for each offered, last minute",
        "the same in the steady second half",
    ];
    report.table("Keeping up", &columns);
    let rate = rate_of_load(rate_max);
    let seconds = settings.seconds.unwrap_or(SECONDS_DEFAULT);
    for _ in 0..settings.rounds.unwrap_or(ROUNDS_DEFAULT) {
        let loaded = LoadResult::wholly(program, Kind::Cluster, rate, seconds)?;
        report.row(cells(&loaded, rate, seconds));
    }
    report.note(format!(
        "This is {:.0} % of {rate_max} lines a second, the highest rate at which three stores kept up with \
         three ingesters here. The rate was found to within {RATE_NEAR} by loads of {PROBE_SECONDS:.0} s: at \
         their end at most {WAITING_S_MAX:.0} s of closed journal files waited. Lines of {LINE} over \
         {CONNECTIONS} connections for {seconds:.0} s, durable. Consumed and offered are bytes of journal \
         files, as `logpond cluster status` reports them. The second half uses the trend of the waiting bytes, \
         with twice its standard error; the target is judged within it. Waiting bytes are whole files of up to \
         16 MiB.",
        LOAD_SHARE * 100.0
    ));
    Ok(())
}

fn cells(loaded: &LoadResult, rate: u32, seconds: f64) -> Vec<String> {
    let half = loaded.samples.len() / 2;
    let [first, second] = [&loaded.samples[..half], &loaded.samples[half..]];
    let ratio = loaded.consumed_per_offered;
    let steady = SteadyState::of(&loaded.samples, seconds).map(|steady| {
        let target = Target::at_least(1.0, ">= 1");
        let judged = steady.at_most().map(|ratio| target.judged(ratio));
        let judged = judged.unwrap_or_else(|| "too coarse to be judged".into());
        format!("{:.3} ± {:.3}, {judged}", steady.ratio, steady.resolution)
    });
    vec![
        rate.to_string(),
        loaded.within(),
        loaded.busy(),
        format!("{:.0} / {:.0}", waiting(first) / 1e6, waiting(second) / 1e6),
        ratio.map_or(String::new(), |ratio| format!("{ratio:.2}")),
        steady.unwrap_or_default(),
    ]
}
