//! `logpond saved show`: a query as it would be typed.

use super::{parse, path};
use crate::cli::{SavedShow, TableFormat};
use crate::commands::listing::{print, text};
use crate::commands::{Exit, Failure, client};
use logpond_client::Parameters;

pub(super) fn run(args: &SavedShow) -> Result<Exit, Failure> {
    let answer = client(&args.server)?.get(&path(&args.name), &Parameters::new())?;
    let query = parse(answer)?;
    let shown = match args.table.output {
        TableFormat::Json => format!("{query}\n"),
        TableFormat::Text => format!("{}\n", text(&query, "query")),
    };
    print(shown.as_bytes())?;
    Ok(Exit::Found)
}
