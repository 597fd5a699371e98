//! `logpond fields`: which fields the records have.

use super::ending::Ending;
use super::listing::{count, print, print_lines, rows, text};
use super::selection::{meaning, range_of};
use super::{Exit, Failure, client};
use crate::cli::{Fields, TableFormat};
use logpond_render::{Table, quantity};

pub(super) fn run(args: Fields) -> Result<Exit, Failure> {
    let meaning = meaning(args.text.as_deref(), &args.selection)?;
    let none = format!("no records match{}", range_of(&args.selection));
    let ending = Ending {
        command: "fields".to_owned(),
        selection: &args.selection,
        stats: args.stats,
    };
    let client = client(&args.server)?;
    let answer = client.get("/api/v1/fields", &meaning.parameters())?;
    if args.table.output == TableFormat::Json {
        let (lines, trailer) = print_lines(answer)?;
        return Ok(ending.of_table(lines == 0, &trailer, &none));
    }
    let (rows, trailer) = rows(answer)?;
    let mut table = Table::new(&[
        ("field", false),
        ("records", true),
        ("share", true),
        ("distinct", true),
        ("types", false),
    ]);
    for row in &rows {
        let share = match row["share"].as_f64() {
            Some(share) => share,
            None => count(row, "rows") as f64 / trailer.rows.max(1) as f64,
        };
        let types = match row["types"].as_array() {
            Some(types) => {
                let names: Vec<&str> = types.iter().filter_map(|name| name.as_str()).collect();
                names.join(" ")
            }
            None => text(row, "types"),
        };
        table.row(vec![
            text(row, "field"),
            quantity::count(count(row, "rows")),
            format!("{:.1} %", 100.0 * share),
            format!(
                "{}{}",
                if row["distinct_is_exact"] == false {
                    "~"
                } else {
                    ""
                },
                quantity::count(count(row, "distinct"))
            ),
            types,
        ]);
    }
    let mut out = Vec::new();
    table.write(&mut out);
    if !table.is_empty() {
        print(&out)?;
    }
    Ok(ending.of_table(table.is_empty(), &trailer, &none))
}
