//! A cluster with all of its nodes on this machine, beside a single process: what a record costs until
//! it is in segments, whether stores keep up with ingesters, and how soon a record that one node has
//! acknowledged is found through another.

mod found_soon;
mod keeping_up;
mod loaded;
mod servers;
mod steady;
mod throughput;

use std::path::Path;
use std::time::Duration;

use super::Settings;
use super::table::Report;
use crate::run::Outcome;

/// How often each is measured unless told.
const ROUNDS_DEFAULT: usize = 2;

/// How often it is seen what waits for stores.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Measures the most that stores keep up with, what four fifths of it cost, whether they do keep up with
/// that, and how soon records are found.
pub(super) fn measure(program: &Path, settings: &Settings, report: &mut Report) -> Outcome<()> {
    let rate_max = keeping_up::rate_max(program)?;
    let rate = keeping_up::rate_of_load(rate_max);
    throughput::measure(program, settings, rate, report)?;
    keeping_up::measure(program, settings, rate_max, report)?;
    found_soon::measure(program, report)
}
