//! `logpond histogram`: how many records match, over time.

use super::ending::AnswerFooter;
use super::listing::{count, print, print_lines, rows, text};
use super::selection::{meaning, range_of};
use super::{Exit, Failure, client};
use crate::cli::{Histogram, TableFormat};
use logpond_host::terminal;
use logpond_render::{Bar, Bars};

pub(super) fn run(args: Histogram) -> Result<Exit, Failure> {
    let meaning = meaning(args.matching.text.as_deref(), &args.matching.selection)?;
    let none = format!("no records match{}", range_of(&args.matching.selection));
    let ending = AnswerFooter {
        command: "histogram".to_owned(),
        selection: &args.matching.selection,
        stats: args.printing.stats,
    };
    let mut parameters = meaning.parameters();
    if let Some(step) = &args.step {
        parameters.push(("step", step.clone()));
    }
    if let Some(field) = &args.by {
        parameters.push(("by", field.clone()));
    }
    let answer = client(&args.printing.server)?.get("/api/v1/histogram", &parameters)?;
    if args.printing.table.output == TableFormat::Json {
        let (_, trailer) = print_lines(answer)?;
        return Ok(ending.of_table(trailer.rows == 0, &trailer, &none));
    }
    let (rows, trailer) = rows(answer)?;
    let is_terminal = terminal::is_output();
    let label = |row: &serde_json::Value| {
        let time = text(row, "from");
        match time.parse::<jiff::Timestamp>() {
            Ok(time) if is_terminal => time
                .to_zoned(meaning.zone.clone())
                .strftime("%Y-%m-%d %H:%M:%S")
                .to_string(),
            _ => time,
        }
    };
    let buckets = rows.iter().map(|row| Bar {
        label: label(row),
        count: count(row, "count"),
        by: counts_by_value(row),
    });
    let mut out = Vec::new();
    Bars::new(buckets.collect()).write(is_terminal.then(terminal::width), &mut out);
    print(&out)?;
    let is_empty = rows.iter().all(|row| count(row, "count") == 0);
    Ok(ending.of_table(is_empty, &trailer, &none))
}

/// The counts of values in a bucket, the largest first.
fn counts_by_value(row: &serde_json::Value) -> Vec<(String, u64)> {
    let by = row.get("by").and_then(serde_json::Value::as_object);
    let counts = by.into_iter().flatten();
    let mut counts: Vec<(String, u64)> = counts
        .map(|(value, count)| (value.clone(), count.as_u64().unwrap_or(0)))
        .collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts
}
