//! `logpond patterns`: which kinds of messages there are.

use jiff::Timestamp;
use logpond_record::cast;
use serde_json::Value;

use super::ending::AnswerFooter;
use super::listing::{count, print, print_lines, rows, text};
use super::selection::{meaning, range_of};
use super::{Exit, Failure, client};
use crate::cli::{Patterns, TableFormat};
use logpond_render::{Table, quantity, sparkline};

/// The most characters of a curve.
const CURVE_CHARS_MAX: usize = 20;

pub(super) fn run(args: Patterns) -> Result<Exit, Failure> {
    let meaning = meaning(args.matching.text.as_deref(), &args.matching.selection)?;
    let none = format!("no records match{}", range_of(&args.matching.selection));
    let ending = AnswerFooter {
        command: "patterns".to_owned(),
        selection: &args.matching.selection,
        stats: args.printing.stats,
    };
    let mut parameters = meaning.parameters();
    parameters.push(("n", args.limit.to_string()));
    let answer = client(&args.printing.server)?.get("/api/v1/patterns", &parameters)?;
    if args.printing.table.output == TableFormat::Json {
        let (lines, trailer) = print_lines(answer)?;
        return Ok(ending.of_table(lines == 0, &trailer, &none));
    }
    let (rows, trailer) = rows(answer)?;
    let curves = Curves::over(&rows);
    let mut table = Table::new(&COLUMNS);
    for row in &rows {
        let share = 100.0 * cast::float(count(row, "count")) / cast::float(trailer.rows.max(1));
        table.row(vec![
            quantity::count(count(row, "count")),
            format!("{share:.1} %"),
            curves.of(row),
            text(row, "level"),
            text(row, "pattern"),
        ]);
        if args.samples {
            samples(row).for_each(|sample| table.row(sample));
        }
    }
    let mut out = Vec::new();
    table.write(&mut out);
    if !table.is_empty() {
        print(&out)?;
    }
    Ok(ending.of_table(table.is_empty(), &trailer, &none))
}

/// Headers, and which columns are numbers.
const COLUMNS: [(&str, bool); 5] = [
    ("count", true),
    ("share", true),
    ("over time", false),
    ("level", false),
    ("pattern", false),
];

/// The messages of a pattern as rows of the table, below it.
fn samples(row: &Value) -> impl Iterator<Item = Vec<String>> {
    let samples = row["samples"].as_array().into_iter().flatten();
    samples.map(|sample| {
        let mut cells = vec![String::new(); COLUMNS.len() - 1];
        cells.push(format!("  {}", text(sample, "message")));
        cells
    })
}

/// The time that all curves cover: that of all records.
struct Curves {
    from_s: i64,
    to_s: i64,
}

impl Curves {
    fn over(rows: &[Value]) -> Curves {
        let starts = || rows.iter().flat_map(buckets).map(|(start_s, _)| start_s);
        Curves {
            from_s: starts().min().unwrap_or(0),
            to_s: starts().max().unwrap_or(0),
        }
    }

    /// The curve of a pattern.
    fn of(&self, row: &Value) -> String {
        let mut counts = [0; CURVE_CHARS_MAX];
        let seconds = (self.to_s - self.from_s).max(1);
        for (start_s, count) in buckets(row) {
            let place = (start_s - self.from_s) * (cast::low_i64(CURVE_CHARS_MAX) - 1) / seconds;
            if let Some(sum) = counts.get_mut(cast::to_usize(cast::unsigned(place))) {
                *sum += count;
            }
        }
        sparkline(&counts)
    }
}

/// Start in Unix seconds and records of the buckets.
fn buckets(row: &Value) -> impl Iterator<Item = (i64, u64)> {
    let buckets = row["buckets"].as_array().into_iter().flatten();
    buckets.filter_map(|bucket| {
        let start: Timestamp = bucket[0].as_str()?.parse().ok()?;
        Some((start.as_second(), bucket[1].as_u64()?))
    })
}
