//! `logpond top`, `fields` and every other command of a row of aggregates.

use logpond_record::cast;
use logpond_search::hints::shell_word;
use serde_json::Value;

use super::ending::AnswerFooter;
use super::listing::{count, print, print_lines, rows, text};
use super::selection::{meaning, range_of};
use super::{Exit, Failure, client};
use crate::cli::{Aggregate, TableFormat};
use logpond_engine::query::{AnswerColumn, ColumnForm, Parameter, ParameterKind};
use logpond_render::{Table, quantity};

pub(super) fn run(args: Aggregate) -> Result<Exit, Failure> {
    let (row, selection) = (args.row, &args.matching.selection);
    let meaning = meaning(args.matching.text.as_deref(), selection)?;
    let range = range_of(selection);
    let mut parameters = meaning.parameters();
    let mut command = row.name.to_owned();
    let mut none = format!("no records match{range}");
    for Parameter { name, kind, .. } in row.parameters {
        match kind {
            ParameterKind::Field(needed) => {
                command = format!("{command} {}", shell_word(&args.field));
                none = format!("no records with {needed} '{}' match{range}", args.field);
                parameters.push((name, args.field.clone()));
            }
            ParameterKind::By => parameters.extend(args.by.clone().map(|by| (*name, by))),
            ParameterKind::Limit { .. } => parameters.push((name, args.limit.to_string())),
        }
    }
    let ending = AnswerFooter {
        command,
        selection,
        stats: args.printing.stats,
    };
    let answer = client(&args.printing.server)?.get(row.path, &parameters)?;
    if args.printing.table.output == TableFormat::Json {
        let (lines, trailer) = print_lines(answer)?;
        return Ok(ending.of_table(lines == 0, &trailer, &none));
    }
    let (rows, trailer) = rows(answer)?;
    let columns = row.columns.iter();
    let columns: Vec<_> = columns
        .map(|column| (column.heading, is_number(column.form)))
        .collect();
    let mut table = Table::new(&columns);
    for values in &rows {
        let cells = row.columns.iter();
        table.row(
            cells
                .map(|column| cell(column, values, trailer.rows))
                .collect(),
        );
    }
    let mut out = Vec::new();
    table.write(&mut out);
    if !table.is_empty() {
        print(&out)?;
    }
    Ok(ending.of_table(table.is_empty(), &trailer, &none))
}

fn is_number(form: ColumnForm) -> bool {
    match form {
        ColumnForm::Text | ColumnForm::Words => false,
        ColumnForm::Number | ColumnForm::Count | ColumnForm::Estimate(_) | ColumnForm::Share(_) => {
            true
        }
    }
}

/// A cell of the table; `records` is the number of records that match.
fn cell(column: &AnswerColumn, row: &Value, records: u64) -> String {
    let value = &row[column.member];
    match column.form {
        ColumnForm::Text | ColumnForm::Number => text(row, column.member),
        ColumnForm::Words => match value.as_array() {
            Some(words) => {
                let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
                words.join(" ")
            }
            None => text(row, column.member),
        },
        ColumnForm::Count => quantity::count(count(row, column.member)),
        ColumnForm::Estimate(is_exact) => {
            let mark = if row[is_exact] == false { "~" } else { "" };
            format!("{mark}{}", quantity::count(count(row, column.member)))
        }
        ColumnForm::Share(counted) => {
            let share = value.as_f64();
            let share = share
                .unwrap_or_else(|| cast::float(count(row, counted)) / cast::float(records.max(1)));
            format!("{:.1} %", 100.0 * share)
        }
    }
}
