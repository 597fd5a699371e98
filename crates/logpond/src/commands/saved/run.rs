//! `logpond saved run`: asks a query, by its name or as it is.

use jiff::tz::TimeZone;
use serde_json::Value;

use super::{pair, parse};
use crate::cli::{SavedRun, TableFormat};
use crate::commands::listing::{lacks, print, text};
use crate::commands::selection::instant;
use crate::commands::{Exit, Failure, client};
use logpond_client::{Parameters, Trailer};
use logpond_host::clock;
use logpond_host::terminal::note;
use logpond_render::Table;

pub(super) fn run(args: &SavedRun) -> Result<Exit, Failure> {
    let answer = client(&args.server)?.ask("/api/query", &parameters(args)?)?;
    let page = parse(answer)?;
    let rows = page["rows"].as_array().map_or(&[][..], Vec::as_slice);
    match args.table.output {
        TableFormat::Json => {
            let lines: String = rows.iter().map(|row| format!("{row}\n")).collect();
            print(lines.as_bytes())?;
        }
        TableFormat::Text if !rows.is_empty() => print(&table(rows))?,
        TableFormat::Text => {}
    }
    for warning in page["warnings"].as_array().into_iter().flatten() {
        note(&format!(
            "logpond: {}",
            warning.as_str().unwrap_or_default()
        ));
    }
    if page["cursor"].is_string() {
        note(&format!(
            "there are more than {} lines (--limit)",
            args.limit
        ));
    }
    let lost = page["lost"].as_array().into_iter().flatten();
    let lost: Vec<String> = lost
        .filter_map(|lost| Some(lost.as_str()?.to_owned()))
        .collect();
    // The warnings name the missing parts.
    let lacking = Trailer {
        lost,
        ..Trailer::whole()
    };
    let lacking = lacks(&lacking);
    if page["complete"] == false || lacking.is_some() {
        return Ok(Exit::Incomplete);
    }
    if !rows.is_empty() {
        if args.since.is_none() && args.until.is_none() {
            note("-- the last hour was searched; --since reaches further back --");
        }
        return Ok(Exit::Found);
    }
    let range = if args.since.is_none() && args.until.is_none() {
        " in the last hour (--since reaches further back)"
    } else {
        ""
    };
    note(&format!("nothing is found{range}"));
    Ok(Exit::None)
}

fn parameters(args: &SavedRun) -> Result<Vec<(String, String)>, Failure> {
    let zone = TimeZone::system();
    let now = clock::now();
    let mut parameters = Parameters::new();
    parameters.push(("query", args.query.clone()));
    parameters.push(("format", "page".to_owned()));
    parameters.push(("limit", args.limit.to_string()));
    if let Some(since) = instant("--since", args.since.as_deref(), now, &zone)? {
        parameters.push(("from", since.to_string()));
    }
    if let Some(until) = instant("--until", args.until.as_deref(), now, &zone)? {
        parameters.push(("to", until.to_string()));
    }
    if let Some(step) = &args.step {
        parameters.push(("step", step.clone()));
    }
    let owned = parameters.into_iter();
    let mut parameters: Vec<(String, String)> = owned
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    for variable in &args.variable {
        let (name, value) = pair(variable)?;
        parameters.push((format!("var-{name}"), value.to_owned()));
    }
    Ok(parameters)
}

/// Lines with their times only; numbers with their labels.
fn table(rows: &[Value]) -> Vec<u8> {
    let names: Vec<&str> = match rows.first().and_then(Value::as_object) {
        Some(row) if row.contains_key("line") => vec!["time", "line"],
        Some(row) => {
            let is_end = |name: &&str| matches!(*name, "time" | "value");
            let labels = row.keys().map(String::as_str).filter(|name| !is_end(name));
            std::iter::once("time")
                .chain(labels)
                .chain(["value"])
                .collect()
        }
        None => Vec::new(),
    };
    let columns: Vec<(&str, bool)> = names.iter().map(|name| (*name, *name == "value")).collect();
    let mut table = Table::new(&columns);
    for row in rows {
        table.row(names.iter().map(|name| text(row, name)).collect());
    }
    let mut out = Vec::new();
    table.write(&mut out);
    out
}
