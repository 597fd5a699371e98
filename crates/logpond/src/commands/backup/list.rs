//! `logpond backup list`: the snapshots of a place.

use serde_json::json;

use super::open;
use crate::cli::{BackupList, TableFormat};
use crate::commands::listing::print;
use crate::commands::{Exit, Failure};
use logpond_engine::backup::{Snapshot, SnapshotName, names, read};
use logpond_host::terminal::note;
use logpond_render::{Table, quantity};

pub(super) fn run(args: &BackupList) -> Result<Exit, Failure> {
    let store = open(&args.from)?;
    let mut table = Table::new(&[
        ("snapshot", false),
        ("host", false),
        ("version", false),
        ("rows", true),
        ("files", true),
        ("size", true),
    ]);
    let (mut lines, mut unusable, mut is_empty) = (String::new(), false, true);
    for name in names(&store)? {
        match read(&store, &name) {
            Ok(snapshot) => {
                is_empty = false;
                lines.push_str(&json_line(&name, &snapshot));
                table.row(vec![
                    name.to_string(),
                    snapshot.host.clone(),
                    snapshot.version.clone(),
                    quantity::count(snapshot.rows()),
                    quantity::count(snapshot.files.len() as u64),
                    quantity::bytes(snapshot.bytes()),
                ]);
            }
            Err(error) => {
                unusable = true;
                note(&format!("logpond: {error}"));
            }
        }
    }
    if args.table.output == TableFormat::Json {
        print(lines.as_bytes())?;
    } else if !is_empty {
        let mut out = Vec::new();
        table.write(&mut out);
        print(&out)?;
    }
    if is_empty && !unusable {
        note(&format!("there is no backup at {}", args.from));
    }
    Ok(match (unusable, is_empty) {
        (true, _) => Exit::Error,
        (false, true) => Exit::None,
        (false, false) => Exit::Found,
    })
}

fn json_line(name: &SnapshotName, snapshot: &Snapshot) -> String {
    let value = json!({
        "snapshot": name.to_string(),
        "created": snapshot.created.to_string(),
        "host": snapshot.host,
        "version": snapshot.version,
        "rows": snapshot.rows(),
        "sources": snapshot.sources,
        "files": snapshot.files.len(),
        "bytes": snapshot.bytes(),
    });
    format!("{value}\n")
}
