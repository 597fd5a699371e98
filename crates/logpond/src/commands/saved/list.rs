//! `logpond saved list`: all queries of a server.

use serde_json::Value;

use super::parse;
use crate::cli::{SavedList, TableFormat};
use crate::commands::listing::{print, text};
use crate::commands::{Exit, Failure, client};
use logpond_client::Parameters;
use logpond_render::Table;

pub(super) fn run(args: &SavedList) -> Result<Exit, Failure> {
    let answer = client(&args.server)?.get("/api/v1/saved-queries", &Parameters::new())?;
    let answer = parse(answer)?;
    let queries = answer["queries"].as_array().map_or(&[][..], Vec::as_slice);
    let out = match args.table.output {
        TableFormat::Json => {
            let lines: String = queries.iter().map(|query| format!("{query}\n")).collect();
            lines.into_bytes()
        }
        TableFormat::Text => table(queries),
    };
    print(&out)?;
    Ok(Exit::Found)
}

fn table(queries: &[Value]) -> Vec<u8> {
    let columns = ["name", "language", "format", "variables", "description"];
    let mut table = Table::new(&columns.map(|name| (name, false)));
    for query in queries {
        let variables = query["variables"].as_object().into_iter().flatten();
        let variables: Vec<&str> = variables.map(|(name, _)| &**name).collect();
        let built_in = if query["built_in"] == true {
            "(built in) "
        } else {
            ""
        };
        table.row(vec![
            text(query, "name"),
            text(query, "language"),
            text(query, "format"),
            variables.join(" "),
            format!("{built_in}{}", text(query, "description")),
        ]);
    }
    let mut out = Vec::new();
    table.write(&mut out);
    out
}
