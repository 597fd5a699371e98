//! `logpond segments`: the files of a server, or of all nodes of its cluster.

use super::listing::{count, exit, print, print_lines, rows, text};
use super::{Exit, Failure, client};
use crate::cli::{Segments, TableFormat};
use logpond_client::Parameters;
use logpond_render::{Table, quantity};

pub(super) fn run(args: &Segments) -> Result<Exit, Failure> {
    let answer = client(&args.server)?.get("/api/v1/segments", &Parameters::new())?;
    if args.table.output == TableFormat::Json {
        let (_, trailer) = print_lines(answer)?;
        return Ok(exit(false, &trailer, ""));
    }
    let (rows, trailer) = rows(answer)?;
    let are_of_nodes = rows.iter().any(|row| !row["node"].is_null());
    let columns = [
        ("node", false),
        ("state", false),
        ("rows", true),
        ("bytes", true),
        ("raw", true),
        ("path", false),
    ];
    // A server alone has no name.
    let from = usize::from(!are_of_nodes);
    let mut table = Table::new(&columns[from..]);
    for row in &rows {
        let cells = [
            text(row, "node"),
            text(row, "state"),
            quantity::count(count(row, "rows")),
            quantity::bytes(count(row, "bytes")),
            quantity::bytes(count(row, "raw_bytes")),
            text(row, "path"),
        ];
        table.row(cells[from..].to_vec());
    }
    let mut out = Vec::new();
    table.write(&mut out);
    print(&out)?;
    Ok(exit(false, &trailer, ""))
}
