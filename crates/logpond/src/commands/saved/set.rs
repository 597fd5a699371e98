//! `logpond saved set`: saves a query.

use std::io::Read;

use serde_json::{Map, json};

use super::{pair, parse, path};
use crate::cli::SavedSet;
use crate::commands::{Exit, Failure, client};
use logpond_engine::saved::QUERY_BYTES_MAX;
use logpond_host::terminal::note;

pub(super) fn run(args: &SavedSet) -> Result<Exit, Failure> {
    let mut variables = Map::new();
    for variable in &args.variable {
        let (name, value) = pair(variable)?;
        variables.insert(name.to_owned(), value.into());
    }
    let body = json!({
        "query": query(&args.query)?,
        "language": args.language,
        "description": args.description,
        "legend": args.legend,
        "format": args.format,
        "variables": variables,
    });
    parse(client(&args.server)?.put(&path(&args.name), &body)?)?;
    note(&format!("saved '{}'", args.name));
    Ok(Exit::Found)
}

fn query(text: &str) -> Result<String, Failure> {
    if text != "-" {
        return Ok(text.to_owned());
    }
    let mut query = String::new();
    // One more byte tells that there is too much, which the server then says.
    let input = std::io::stdin().lock();
    let read = input
        .take(QUERY_BYTES_MAX as u64 + 1)
        .read_to_string(&mut query);
    read.map_err(|error| format!("standard input cannot be read as a query: {error}"))?;
    Ok(query.trim_end().to_owned())
}
