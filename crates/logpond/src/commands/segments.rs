//! `logpond segments`: the files of a server.

use super::listing::{count, print, print_lines, rows, text};
use super::{Exit, Failure, client};
use crate::cli::{Segments, TableFormat};
use crate::client::Parameters;
use crate::output::{Table, quantity};

pub(super) fn run(args: &Segments) -> Result<Exit, Failure> {
    let answer = client(&args.server)?.get("/api/v1/segments", &Parameters::new())?;
    if args.output == TableFormat::Json {
        print_lines(answer)?;
        return Ok(Exit::Found);
    }
    let (rows, _) = rows(answer)?;
    let mut table = Table::new(&[
        ("state", false),
        ("rows", true),
        ("bytes", true),
        ("raw", true),
        ("path", false),
    ]);
    for row in &rows {
        table.row(vec![
            text(row, "state"),
            quantity::count(count(row, "rows")),
            quantity::bytes(count(row, "bytes")),
            quantity::bytes(count(row, "raw_bytes")),
            text(row, "path"),
        ]);
    }
    let mut out = Vec::new();
    table.write(&mut out);
    print(&out)?;
    Ok(Exit::Found)
}
