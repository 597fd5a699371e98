//! The tables of the page, and which targets were met.

use super::message::Exchange;
use super::peers::Kind;
use super::results::{Grid, IdleMemory, Openings, Sample, Series, Spread};
use crate::bench::table::{Report, Target, figure};

/// The part of what the best of the others take for large bodies.
const LARGE_BYTES: usize = 100_000;

/// What is written where nothing was measured.
const NOTHING: &str = "–";

/// Node.js over HTTPS by itself, and behind Logpond.
pub(super) const NODE_HTTPS: &str = "node, HTTPS";
pub(super) const NODE_BEHIND: &str = "node behind Logpond";

/// A measured value with a name of its own for its target.
pub(super) struct TargetComparison {
    pub(super) what: String,
    pub(super) measured: String,
    pub(super) target: String,
}

fn cell(spread: Option<Spread>) -> String {
    spread.map_or(NOTHING.into(), |Spread { best, median }| {
        format!("{} ({})", figure(best), figure(median))
    })
}

/// A table of one figure for each size, and why figures are missing.
pub(super) fn sizes(
    report: &mut Report,
    title: &str,
    grid: &Grid,
    of: impl Fn(&Series<Sample>, Exchange) -> Option<Spread>,
) {
    let mut columns = vec!["".to_owned()];
    columns.extend(grid.exchanges.iter().map(Exchange::to_string));
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    report.table(title, &columns);
    for row in &grid.rows {
        let mut cells = vec![row.name.clone()];
        let series = row.series.iter().zip(&grid.exchanges);
        cells.extend(series.map(|(series, exchange)| cell(of(series, *exchange))));
        report.row(cells);
    }
    for row in &grid.rows {
        let failed = row.series.iter().zip(&grid.exchanges);
        for (series, exchange) in failed {
            if let Some(error) = &series.failed {
                report.note(format!("{}, {exchange}: {error}.", row.name));
            }
        }
    }
}

/// CPU for a gigabyte of bodies, which cannot be said of none.
pub(super) fn cpu_s_per_gigabyte(sample: &Sample, exchange: Exchange) -> f64 {
    sample.cpu_us * 1e-6 / (exchange.moved_bytes() as f64 / 1e9)
}

/// The table of new connections.
pub(super) fn openings(report: &mut Report, all: &[Openings]) {
    report.table(
        "New connections",
        &[
            "",
            "handshake",
            "CPU µs for a connection",
            "connections for a CPU second",
            "a second",
            "resumed",
        ],
    );
    for openings in all {
        for (name, series) in &openings.rows {
            let resumed = series.most(|opening| opening.resumed);
            report.row(vec![
                name.clone(),
                openings.kind.to_owned(),
                cell(series.least(|opening| opening.cpu_us)),
                cell(series.most(|opening| 1e6 / opening.cpu_us)),
                cell(series.most(|opening| opening.per_second)),
                resumed.map_or(NOTHING.into(), |r| format!("{:.0} %", r.median * 100.0)),
            ]);
        }
    }
    for openings in all {
        for (name, series) in &openings.rows {
            if let Some(error) = &series.failed {
                report.note(format!("{name}, {}: {error}.", openings.kind));
            }
        }
    }
}

/// The table of idle connections.
pub(super) fn resting(
    report: &mut Report,
    counts: [usize; 2],
    all: &[(String, Option<IdleMemory>)],
) {
    let [fewer, more] = counts.map(|count| format!("{count} more, kB each"));
    report.table(
        "Memory of idle connections",
        &["", "before, MB", &fewer, &more],
    );
    for (name, resting) in all {
        let mut cells = vec![name.clone()];
        match resting {
            None => cells.extend([NOTHING; 3].map(String::from)),
            Some(resting) => {
                cells.push(figure(resting.before_bytes as f64 / 1e6));
                let each = resting.more_bytes.into_iter().zip(counts);
                cells.extend(each.map(|(bytes, count)| figure(kilobytes_each(bytes, count))));
            }
        }
        report.row(cells);
    }
}

/// Kilobytes of 1,000 bytes.
pub(super) fn kilobytes_each(bytes: u64, count: usize) -> f64 {
    bytes as f64 / 1e3 / count as f64
}

/// CPU for a request beside the best of the others, at each size.
pub(super) fn judge_sizes(grid: &Grid) -> Vec<TargetComparison> {
    let columns = grid.exchanges.iter().enumerate();
    columns
        .filter_map(|(column, exchange)| {
            let cpu = |name: &str| grid.series(name, column)?.least(|sample| sample.cpu_us);
            let own = cpu(Kind::Logpond.name())?.best;
            let (name, other) = best(f64::lt, |kind| Some(cpu(kind.name())?.best))?;
            let is_large = *exchange == Exchange::Echo(LARGE_BYTES);
            let target = if is_large {
                Target::at_most(0.6, "<= 0.6 times")
            } else {
                Target::at_most(1.0, "no more")
            };
            Some(TargetComparison {
                what: format!("CPU for a request, {exchange}, beside the best of the others"),
                measured: compared(own / other, own, "µs", name, other),
                target: target.judged(own / other),
            })
        })
        .collect()
}

/// Handshakes for a CPU second beside the best of the others.
pub(super) fn judge_openings(all: &[Openings]) -> Vec<TargetComparison> {
    let target = Target::at_least(2.0, ">= 2 times");
    all.iter()
        .filter_map(|openings| {
            let rate = |name: &str| openings.series(name)?.most(|opening| 1e6 / opening.cpu_us);
            let own = rate(Kind::Logpond.name())?.best;
            let (name, other) = best(f64::gt, |kind| Some(rate(kind.name())?.best))?;
            Some(TargetComparison {
                what: format!("connections for a CPU second, {}", openings.kind),
                measured: compared(own / other, own, "", name, other),
                target: target.judged(own / other),
            })
        })
        .collect()
}

/// Memory of idle connections.
pub(super) fn judge_resting(
    counts: [usize; 2],
    own: Option<IdleMemory>,
) -> Option<TargetComparison> {
    let [_, count] = counts;
    let each = kilobytes_each(own?.more_bytes[1], count);
    Some(TargetComparison {
        what: format!("memory of one of {count} idle connections"),
        measured: format!("{} kB", figure(each)),
        target: Target::at_most(10.0, "<= 10 kB").judged(each),
    })
}

/// Requests a second of node.js behind the proxy, beside its own HTTPS. Medians: these are figures of
/// wall time, and the best of one may be of a quiet moment that the other did not have.
pub(super) fn judge_node(grid: &Grid) -> Vec<TargetComparison> {
    let columns = grid.exchanges.iter().enumerate();
    columns
        .filter_map(|(column, exchange)| {
            let rate = |name| grid.series(name, column)?.most(|sample| sample.per_second);
            let (behind, alone) = (rate(NODE_BEHIND)?.median, rate(NODE_HTTPS)?.median);
            Some(TargetComparison {
                what: format!("requests a second of node behind Logpond, {exchange}"),
                measured: compared(behind / alone, behind, "", NODE_HTTPS, alone),
                target: Target::at_least(1.0, "more than its own HTTPS").judged(behind / alone),
            })
        })
        .collect()
}

fn compared(ratio: f64, own: f64, unit: &str, name: &str, other: f64) -> String {
    let space = if unit.is_empty() { "" } else { " " };
    let (own, other) = (figure(own), figure(other));
    format!("{ratio:.2} times: {own}{space}{unit}, {name} {other}{space}{unit}")
}

/// The best of those that targets are judged by.
fn best(
    is_better: fn(&f64, &f64) -> bool,
    of: impl Fn(Kind) -> Option<f64>,
) -> Option<(&'static str, f64)> {
    let others = Kind::ALL.into_iter().filter(|kind| kind.is_measure());
    others
        .filter_map(|kind| Some((kind.name(), of(kind)?)))
        .reduce(|best, next| {
            if is_better(&next.1, &best.1) {
                next
            } else {
                best
            }
        })
}

/// The table of targets.
pub(super) fn targets(report: &mut Report, comparison: Vec<TargetComparison>) {
    report.table("Targets", &["what", "measured", "target"]);
    for TargetComparison {
        what,
        measured,
        target,
    } in comparison
    {
        report.row(vec![what, measured, target]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::proxy::results::ConnectionRates;

    fn sample(cpu_us: f64) -> Sample {
        Sample {
            cpu_us,
            per_second: 1e6 / cpu_us,
            p50_ms: 1.0,
            p99_ms: 2.0,
        }
    }

    /// A grid of two sizes with two samples of each candidate.
    fn grid(costs: &[(&str, f64)]) -> Grid {
        let exchanges = [Exchange::Echo(10), Exchange::Echo(LARGE_BYTES)];
        let mut grid = Grid::new(costs.iter().map(|(name, _)| *name), &exchanges);
        for (row, (_, cost)) in grid.rows.iter_mut().zip(costs) {
            for series in &mut row.series {
                series.samples.extend([sample(*cost), sample(cost * 2.0)]);
            }
        }
        grid
    }

    #[test]
    fn tables_have_a_column_for_each_size() {
        let mut grid = grid(&[("Logpond", 10.0), ("hitch", 20.0)]);
        grid.rows[1].series[1].failed = Some("it broke".into());
        let mut report = Report::new("Test", &[], None);
        sizes(&mut report, "CPU", &grid, |series, _| {
            series.least(|sample| sample.cpu_us)
        });
        let text = report.text();
        let table = text.split("## CPU\n\n").nth(1).unwrap();
        let expected = "|  | 10 B | 100,000 B |\n| --- | --- | --- |\n\
                        | Logpond | 10.0 (10.0) | 10.0 (10.0) |\n\
                        | hitch | 20.0 (20.0) | – |\n\nhitch, 100,000 B: it broke.\n";
        assert_eq!(table, expected);
    }

    #[test]
    fn gigabytes_are_of_both_directions() {
        let cost = cpu_s_per_gigabyte(&sample(100.0), Exchange::Echo(LARGE_BYTES));
        assert!((cost - 0.5).abs() < 1e-9, "{cost}");
    }

    #[test]
    fn sizes_are_judged_by_the_best_of_the_others() {
        // What is not a measure does not count, however good it is.
        let costs = [
            ("Logpond", 10.0),
            ("hitch", 16.0),
            ("nginx", 12.5),
            ("stunnel", 1.0),
        ];
        let comparison = judge_sizes(&grid(&costs));
        assert_eq!(comparison.len(), 2);
        assert_eq!(comparison[0].measured, "0.80 times: 10.0 µs, nginx 12.5 µs");
        assert_eq!(comparison[0].target, "no more met");
        assert_eq!(comparison[1].target, "<= 0.6 times **missed**");
    }

    #[test]
    fn nothing_is_judged_without_others() {
        assert!(judge_sizes(&grid(&[("Logpond", 10.0)])).is_empty());
        assert!(judge_node(&grid(&[("Logpond", 10.0)])).is_empty());
        assert!(judge_resting([1, 2], None).is_none());
    }

    #[test]
    fn new_connections_are_judged_by_cpu() {
        let mut openings = Openings::new("P-256", ["Logpond", "haproxy"].into_iter());
        for ((_, series), cpu_us) in openings.rows.iter_mut().zip([250.0, 400.0]) {
            series.samples.push(ConnectionRates {
                cpu_us,
                per_second: 100.0,
                resumed: 0.0,
            });
        }
        let comparison = judge_openings(&[openings]);
        assert_eq!(comparison[0].measured, "1.60 times: 4000, haproxy 2500");
        assert_eq!(comparison[0].target, ">= 2 times **missed**");
    }

    #[test]
    fn idle_connections_and_node_have_targets() {
        let resting = IdleMemory {
            before_bytes: 0,
            more_bytes: [1_000_000, 45_000_000],
        };
        let comparison = judge_resting([1_000, 5_000], Some(resting)).unwrap();
        assert_eq!(comparison.measured, "9.00 kB");
        assert_eq!(comparison.target, "<= 10 kB met");
        let comparison = judge_node(&grid(&[(NODE_HTTPS, 50.0), (NODE_BEHIND, 40.0)]));
        assert_eq!(comparison[0].target, "more than its own HTTPS met");
    }
}
