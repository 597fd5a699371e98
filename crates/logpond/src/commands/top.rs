//! `logpond top`: the most frequent values of a field.

use logpond_search::hints::shell_word;

use super::ending::Ending;
use super::listing::{count, print, print_lines, rows, text};
use super::selection::{meaning, range_of};
use super::{Exit, Failure, client};
use crate::cli::{TableFormat, Top};
use logpond_render::{Table, quantity};

pub(super) fn run(args: Top) -> Result<Exit, Failure> {
    let meaning = meaning(args.text.as_deref(), &args.selection)?;
    let (field, range) = (&args.field, range_of(&args.selection));
    let none = format!("no records with a field '{field}' match{range}");
    let ending = Ending {
        command: format!("top {}", shell_word(&args.field)),
        selection: &args.selection,
        stats: args.stats,
    };
    let mut parameters = meaning.parameters();
    parameters.push(("field", args.field.clone()));
    parameters.push(("n", args.limit.to_string()));
    let answer = client(&args.server)?.get("/api/v1/top", &parameters)?;
    if args.table.output == TableFormat::Json {
        let (lines, trailer) = print_lines(answer)?;
        return Ok(ending.of_table(lines == 0, &trailer, &none));
    }
    let (rows, trailer) = rows(answer)?;
    let mut table = Table::new(&[("count", true), ("share", true), (FIELD, false)]);
    for row in &rows {
        let share = 100.0 * count(row, "count") as f64 / trailer.rows.max(1) as f64;
        table.row(vec![
            quantity::count(count(row, "count")),
            format!("{share:.1} %"),
            text(row, "value"),
        ]);
    }
    let mut out = Vec::new();
    table.write(&mut out);
    if !table.is_empty() {
        print(&out)?;
    }
    Ok(ending.of_table(table.is_empty(), &trailer, &none))
}

/// Header of the values.
const FIELD: &str = "value";
