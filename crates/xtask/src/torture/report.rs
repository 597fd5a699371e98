//! The page of a run: figures as Markdown, and a picture beside it for each topology.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;

use super::checker::Violation;
use super::history::{Event, Micros};
use super::samples::{self, MEASURES, Sample};
use super::summary::Summary;
use crate::bench::svg::{Mark, Panel, Series, picture};
use crate::run::Outcome;

/// Microseconds of a second.
const SECOND: f64 = 1e6;

/// The columns of a picture: each is a point of a line.
const POINTS: usize = 120;

/// A run of one topology.
pub(super) struct Results<'a> {
    pub(super) topology: &'static str,
    pub(super) seed: u64,
    /// Names of processes, by place.
    pub(super) names: Vec<String>,
    /// Names of clients.
    pub(super) clients: Vec<String>,
    pub(super) events: &'a [Event],
    pub(super) samples: &'a [Sample],
    pub(super) summary: &'a Summary,
    pub(super) violations: &'a [Violation],
    /// When the load stopped.
    pub(super) load_ended: Micros,
}

/// Writes the head of a page.
pub(super) fn begin(page: &Path, arguments: &[String]) -> Outcome<()> {
    let head = format!(
        "# Torture\n\n\
         `cargo xtask torture {}`\n\n\
         All sources send and all interfaces are queried at once, while faults are injected. A checker knows every\n\
         acknowledged record and every answer. CONTRIBUTING.md describes faults, rules and the checker.\n",
        arguments.join(" ")
    );
    fs::write(page, head).map_err(|e| format!("{}: {e}", page.display()))
}

/// Appends the section of a run, and writes its picture.
pub(super) fn append(page: &Path, results: &Results<'_>) -> Outcome<()> {
    let stem = page.file_stem().unwrap_or_default().to_string_lossy();
    let name = format!("{stem}-{}.svg", results.topology);
    let drawing = page.with_file_name(&name);
    let title = format!("Topology {}: seed {}", results.topology, results.seed);
    let svg = picture(&title, &panels(results), &marks(results), length_s(results));
    fs::write(&drawing, svg).map_err(|e| format!("{}: {e}", drawing.display()))?;
    let failed = |e: std::io::Error| format!("{}: {e}", page.display());
    let mut file = OpenOptions::new()
        .append(true)
        .create(true)
        .open(page)
        .map_err(failed)?;
    file.write_all(section(results, &name).as_bytes())
        .map_err(failed)
}

fn length_s(results: &Results<'_>) -> f64 {
    (results.load_ended as f64 / SECOND).max(1.0)
}

/// Faults with their beginnings and ends, by their texts.
fn marks(results: &Results<'_>) -> Vec<Mark> {
    let mut open: BTreeMap<&str, Micros> = BTreeMap::new();
    let mut marks = Vec::new();
    for event in results.events {
        match event {
            Event::Broken { fault, at, .. } => {
                open.insert(fault, *at);
            }
            Event::Healed { fault, at, .. } => {
                if let Some(from) = open.remove(fault.as_str()) {
                    marks.push(Mark {
                        from: from as f64 / SECOND,
                        to: *at as f64 / SECOND,
                        text: fault.clone(),
                    });
                }
            }
            _ => {}
        }
    }
    marks.retain(|mark| mark.from <= length_s(results));
    marks
}

/// A rate over time.
fn rate(
    results: &Results<'_>,
    amount: impl Fn(&Event) -> Option<(Micros, u64)>,
) -> Vec<(f64, f64)> {
    let width = length_s(results) / POINTS as f64;
    let mut sums = vec![0_u64; POINTS];
    for (at, amount) in results.events.iter().filter_map(amount) {
        let point = (at as f64 / SECOND / width) as usize;
        if let Some(sum) = sums.get_mut(point) {
            *sum += amount;
        }
    }
    let points = sums.iter().enumerate();
    points
        .map(|(point, sum)| ((point as f64 + 0.5) * width, *sum as f64 / width))
        .collect()
}

fn panels(results: &Results<'_>) -> Vec<Panel> {
    let acknowledged = rate(results, |event| match event {
        Event::Acknowledged { numbers, at, .. } => Some((*at, numbers.end - numbers.start)),
        _ => None,
    });
    let answers = |is_complete: bool| {
        rate(results, move |event| match event {
            Event::Answered(answer) if answer.is_complete == is_complete => Some((answer.ended, 1)),
            _ => None,
        })
    };
    let mut panels = vec![
        Panel {
            title: "acknowledged records a second".to_owned(),
            series: vec![Series::own(acknowledged)],
        },
        Panel {
            title: "answers a second: complete, and incomplete (dashed)".to_owned(),
            series: vec![Series::own(answers(true)), Series::peer(answers(false))],
        },
    ];
    panels.extend(MEASURES.iter().map(|measure| {
        let series = (0..results.names.len()).map(|place| {
            let samples = results.samples.iter().filter(|s| s.place == place);
            let points = samples.map(|s| (s.at as f64 / SECOND, (measure.value)(s)));
            Series::own(points.collect())
        });
        Panel {
            title: format!("{} of each node", measure.name),
            series: series.collect(),
        }
    }));
    panels
}

fn section(results: &Results<'_>, drawing: &str) -> String {
    let mut text = format!(
        "\n## Topology {}\n\n![Rates, memory, descriptors and faults]({drawing})\n\n\
         Seed {}, {:.0} s of load, {} violations. Processes: {}.\n\n",
        results.topology,
        results.seed,
        length_s(results),
        results.violations.len(),
        results.names.join(", "),
    );
    text += "| source | sent | acknowledged | refused |\n| --- | --- | --- | --- |\n";
    for (client, name) in results.clients.iter().enumerate() {
        let sum = results.summary.client(client);
        let _ = writeln!(
            text,
            "| {name} | {} | {} | {} |",
            sum.sent, sum.acknowledged, sum.refused
        );
    }
    text += "\n| interface | complete | incomplete | unanswered |\n| --- | --- | --- | --- |\n";
    for (name, sum) in results.summary.interfaces() {
        let _ = writeln!(
            text,
            "| {name} | {} | {} | {} |",
            sum.complete, sum.incomplete, sum.unanswered
        );
    }
    text += "\n| fault | count |\n| --- | --- |\n";
    for (kind, count) in results.summary.faults() {
        let _ = writeln!(text, "| {kind} | {count} |");
    }
    text += "\n| measure | peak | series | largest growth | not flat |\n| --- | --- | --- | --- | --- |\n";
    for measure in &MEASURES {
        let judged = samples::judge(results.samples, measure);
        let (grown, growth) = (judged.grown.len(), judged.growth_max);
        let _ = writeln!(
            text,
            "| {} | {:.0} | {} | {growth:.2} | {grown} |",
            measure.name, judged.peak, judged.series
        );
    }
    if !results.violations.is_empty() {
        text += "\n| violation | count |\n| --- | --- |\n";
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for violation in results.violations {
            *counts.entry(violation.kind).or_default() += 1;
        }
        for (kind, count) in counts {
            let _ = writeln!(text, "| {kind} | {count} |");
        }
    }
    text
}
