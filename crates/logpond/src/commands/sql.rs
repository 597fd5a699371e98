//! `logpond sql`: answers to statements of SQL.

use std::fmt;
use std::io::{Read, Write};

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::ending::note_stats;
use super::listing::{exit, print, print_lines};
use super::selection::{instant, now};
use super::{Exit, Failure, client};
use crate::cli::{Sql, SqlFormat, Times};
use logpond_client::{Answer, Item, Parameters, Trailer};
use logpond_host::terminal::{Out, note};
use logpond_render::{Cells, Table};

/// The longest statement that is read; servers take shorter ones.
const STATEMENT_BYTES_MAX: u64 = 1 << 20;

/// Rows of a table that are held to be aligned, and shown.
const ROWS_MAX: usize = 100_000;

pub(super) fn run(args: Sql) -> Result<Exit, Failure> {
    let mut parameters = range(&args.times)?;
    parameters.push(("query", statement(args.statement)?));
    parameters.push(("format", "json".into()));
    if args.strict {
        parameters.push(("strict", "true".into()));
    }
    if args.output != SqlFormat::Json {
        parameters.push(("columns", "true".into()));
    }
    let answer = client(&args.server)?.get("/api/v1/sql", &parameters)?;
    let (rows, trailer) = match args.output {
        SqlFormat::Json => print_lines(answer)?,
        SqlFormat::Table => print_table(answer)?,
        SqlFormat::Csv => print_csv(answer, args.defuse)?,
    };
    if args.stats {
        note_stats(rows, trailer.bytes_scanned, trailer.elapsed_ms);
    }
    for hint in &trailer.hints {
        note(&format!("hint: {}", hint.message));
    }
    Ok(exit(rows == 0, &trailer, "no rows"))
}

/// The parameters of a range of times.
pub(super) fn range(times: &Times) -> Result<Parameters, Failure> {
    let zone = jiff::tz::TimeZone::system();
    let now = now();
    let mut parameters = Parameters::new();
    let bounds = [
        ("--since", "from", &times.since),
        ("--until", "to", &times.until),
    ];
    for (flag, name, text) in bounds {
        if let Some(time) = instant(flag, text.as_deref(), now, &zone)? {
            parameters.push((name, time.to_string()));
        }
    }
    Ok(parameters)
}

fn statement(given: Option<String>) -> Result<String, Failure> {
    if let Some(text) = given.filter(|text| text != "-") {
        return Ok(text);
    }
    let mut text = String::new();
    let input = std::io::stdin().lock();
    input.take(STATEMENT_BYTES_MAX).read_to_string(&mut text)?;
    Ok(text)
}

/// A column of the answer.
struct Column {
    name: String,
    is_number: bool,
}

/// A row: its values in the order of the columns, whatever they are called. They are what the server wrote:
/// a number that is read and written again may have other digits.
struct Values(Vec<Box<RawValue>>);

impl<'de> Deserialize<'de> for Values {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Values, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Values;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a row")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Values, A::Error> {
                let mut values = Vec::new();
                while let Some((_, value)) = map.next_entry::<IgnoredAny, Box<RawValue>>()? {
                    values.push(value);
                }
                Ok(Values(values))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

/// Reads an answer; `each` gets every row, and the columns.
fn read(
    mut answer: Answer,
    mut each: impl FnMut(&[Column], Option<Vec<Box<RawValue>>>) -> Result<(), Failure>,
) -> Result<(u64, Trailer), Failure> {
    let mut columns: Option<Vec<Column>> = None;
    let mut rows = 0;
    loop {
        match answer.next_item()? {
            Item::Row(line) => match &columns {
                None => {
                    let line: Value = serde_json::from_slice(line)?;
                    let names = line["_columns"].as_array();
                    let named = names.into_iter().flatten().map(column).collect();
                    each(columns.insert(named), None)?;
                }
                Some(columns) => {
                    let values: Values = serde_json::from_slice(line)?;
                    each(columns, Some(values.0))?;
                    rows += 1;
                }
            },
            Item::Notice(notice) => note(&notice),
            Item::Gap | Item::Progress(_) | Item::Position(_) => {}
            Item::Trailer(trailer) => return Ok((rows, trailer)),
        }
    }
}

fn column(told: &Value) -> Column {
    let text = |name: &str| told[name].as_str().unwrap_or_default().to_owned();
    let kind = text("type");
    let numbers = ["Int", "UInt", "Float", "Decimal"];
    Column {
        name: text("name"),
        is_number: numbers.iter().any(|number| kind.starts_with(number)),
    }
}

/// A value as text; nothing for a null.
fn shown(value: &RawValue) -> Result<String, Failure> {
    let written = value.get();
    Ok(match written.as_bytes().first() {
        Some(b'"') => serde_json::from_str(written)?,
        _ if written == "null" => String::new(),
        _ => written.to_owned(),
    })
}

fn cells(row: &[Box<RawValue>]) -> Result<Vec<String>, Failure> {
    row.iter().map(|value| shown(value)).collect()
}

/// What `EXPLAIN` answers: the kind of a plan and the plan, which has lines of its own.
fn is_plan(columns: &[Column]) -> bool {
    let names = columns.iter().map(|column| &*column.name);
    names.eq(["plan_type", "plan"])
}

fn print_plan(cells: &[String]) -> Result<(), Failure> {
    let lines = cells.iter().flat_map(|cell| cell.lines());
    let text: String = lines.map(|line| format!("{line}\n")).collect();
    print(text.as_bytes())
}

fn print_table(answer: Answer) -> Result<(u64, Trailer), Failure> {
    let mut table = None;
    let mut held = 0;
    let (rows, trailer) = read(answer, |columns, row| {
        if is_plan(columns) {
            return row.map_or(Ok(()), |row| print_plan(&cells(&row)?));
        }
        let table = table.get_or_insert_with(|| {
            let named = columns.iter();
            let named: Vec<(&str, bool)> = named
                .map(|column| (&*column.name, column.is_number))
                .collect();
            Table::new(&named)
        });
        if let Some(row) = row.filter(|_| held < ROWS_MAX) {
            held += 1;
            table.row(cells(&row)?);
        }
        Ok(())
    })?;
    let mut out = Vec::new();
    if let Some(table) = table.filter(|table| !table.is_empty()) {
        table.write(&mut out);
        print(&out)?;
    }
    if rows > ROWS_MAX as u64 {
        let left = rows - ROWS_MAX as u64;
        note(&format!(
            "logpond: {left} more rows: -o csv and -o json print all"
        ));
    }
    Ok((rows, trailer))
}

/// RFC 4180.
fn print_csv(answer: Answer, are_defused: bool) -> Result<(u64, Trailer), Failure> {
    let csv = Cells { are_defused };
    let mut line = Vec::new();
    let mut out = Out::of_text();
    let read = read(answer, |columns, row| {
        let cells: Vec<String> = match row {
            None => columns.iter().map(|column| column.name.clone()).collect(),
            Some(row) => cells(&row)?,
        };
        line.clear();
        for (at, cell) in cells.iter().enumerate() {
            if at > 0 {
                line.push(b',');
            }
            csv.write_text(cell.as_bytes(), &mut line);
        }
        line.extend_from_slice(b"\r\n");
        Ok(out.write_all(&line)?)
    })?;
    out.finish()?;
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_as_they_were_written() {
        let row = r#"{"a":1.5e-300,"b":12345678901234567890.123456789,"a":"x\"y","d":null,"e":"NaN",
            "f":[1.0,"a"],"g":true,"h":""}"#;
        let Values(values) = serde_json::from_str(row).unwrap();
        let expected = [
            "1.5e-300",
            "12345678901234567890.123456789",
            "x\"y",
            "",
            "NaN",
            "[1.0,\"a\"]",
            "true",
            "",
        ];
        assert_eq!(cells(&values).unwrap(), expected);
    }
}
