//! What a record costs a cluster until it is in segments, beside a single process.

use std::path::Path;

use super::ROUNDS_DEFAULT;
use super::loaded::LoadResult;
use super::servers::{CONNECTIONS, COPIES, Kind, LINE, SETTLED_SHARE};
use crate::bench::Settings;
use crate::bench::table::{Report, Target};
use crate::run::Outcome;

/// How long each is loaded unless told.
const SECONDS_DEFAULT: f64 = 60.0;

/// Lines a second at which a record's cost is shown as well: they come in requests of two lines, and
/// what each is synced with costs more than the lines.
const RATE_LOW: u32 = 15_000;

/// Loads both in turn.
pub(super) fn measure(
    program: &Path,
    settings: &Settings,
    rate: u32,
    report: &mut Report,
) -> Outcome<()> {
    let columns = [
        "lines a second",
        "servers",
        "acknowledged within, ms (p50 / p99)",
        "server CPU-s a million, acknowledged / in segments",
        "syncs a thousand lines",
        "cores busy, with servers / with all",
        "records for the same CPU",
    ];
    report.table("Throughput", &columns);
    let seconds = settings.seconds.unwrap_or(SECONDS_DEFAULT);
    for (rate, is_judged) in [(rate, true), (RATE_LOW, false)] {
        for _ in 0..settings.rounds.unwrap_or(ROUNDS_DEFAULT) {
            let single = LoadResult::wholly(program, Kind::Single, rate, seconds)?;
            let cluster = LoadResult::wholly(program, Kind::Cluster, rate, seconds)?;
            let share = single.settled_s / cluster.settled_s;
            let mut said = format!("{share:.2} x");
            if is_judged {
                let judged = Target::at_least(0.5, ">= 0.5").judged(share);
                said = format!("{said}, {judged}");
            }
            report.row(cells(&single, rate, Kind::Single, String::new()));
            report.row(cells(&cluster, rate, Kind::Cluster, said));
        }
    }
    report.note(format!(
        "Lines of {LINE} over {CONNECTIONS} connections for {seconds:.0} s, durable. A cluster is three \
         ingesters and three stores with {COPIES} copies; the single process keeps one. In segments: {:.0} % \
         of the acknowledged lines are in segments, with all copies and the merges meanwhile; open files have \
         the rest. At the lower rate syncs are most of the cost, and the disk determines their number. An \
         ingester groups the requests of its own connections, a third of those that the single process can \
         group.",
        SETTLED_SHARE * 100.0
    ));
    Ok(())
}

fn cells(loaded: &LoadResult, rate: u32, kind: Kind, share: String) -> Vec<String> {
    let servers = match kind {
        Kind::Single => "`logpond serve`",
        Kind::Cluster => "3 ingesters, 3 stores",
    };
    vec![
        rate.to_string(),
        servers.into(),
        loaded.within(),
        format!("{:.2} / {:.2}", loaded.acknowledged_s, loaded.settled_s),
        format!("{:.0}", loaded.syncs),
        loaded.busy(),
        share,
    ]
}
