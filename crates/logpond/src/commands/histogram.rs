//! `logpond histogram`: how many records match, over time.

use super::ending::Ending;
use super::listing::{count, print, print_lines, rows, text};
use super::selection::{meaning, range_of};
use super::{Exit, Failure, client};
use crate::cli::{Histogram, TableFormat};
use crate::output::Bars;
use crate::terminal;

pub(super) fn run(args: Histogram) -> Result<Exit, Failure> {
    let meaning = meaning(args.text.as_deref(), &args.selection)?;
    let none = format!("no records match{}", range_of(&args.selection));
    let ending = Ending {
        command: "histogram".to_owned(),
        selection: &args.selection,
        stats: args.stats,
    };
    let mut parameters = meaning.parameters();
    if let Some(step) = &args.step {
        parameters.push(("step", step.clone()));
    }
    let answer = client(&args.server)?.get("/api/v1/histogram", &parameters)?;
    if args.table.output == TableFormat::Json {
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
    let buckets = rows.iter().map(|row| (label(row), count(row, "count")));
    let mut out = Vec::new();
    Bars::new(buckets.collect()).write(is_terminal.then(terminal::width), &mut out);
    print(&out)?;
    let is_empty = rows.iter().all(|row| count(row, "count") == 0);
    Ok(ending.of_table(is_empty, &trailer, &none))
}
