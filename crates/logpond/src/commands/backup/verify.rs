//! `logpond backup verify`: reads a snapshot's files from the store and compares them.

use super::{line, open, say_unusable};
use crate::cli::BackupVerify;
use crate::commands::listing::print;
use crate::commands::progress::watched;
use crate::commands::{Exit, Failure};
use logpond_engine::backup::{FoundSnapshot, Progress, verify};
use logpond_host::terminal::note;
use logpond_render::quantity;

pub(super) fn run(args: &BackupVerify) -> Result<Exit, Failure> {
    let store = open(&args.from)?;
    let FoundSnapshot {
        name,
        snapshot,
        unusable,
    } = logpond_engine::backup::open(&store, &args.snapshot)?;
    say_unusable(&unusable);
    let progress = Progress::default();
    let damaged = watched(line(&progress), || verify(&store, &snapshot, &progress))?;
    let lines = damaged
        .iter()
        .map(|damaged| format!("{}: {}\n", damaged.path, damaged.what));
    print(lines.collect::<String>().as_bytes())?;
    note(&format!(
        "{name}: {}, {}: {}",
        quantity::counted(snapshot.files.len() as u64, "file"),
        quantity::bytes(snapshot.bytes()),
        match damaged.len() {
            0 => "no damage".to_owned(),
            count => quantity::counted(count as u64, "file") + " damaged or gone",
        }
    ));
    Ok(if damaged.is_empty() && unusable.is_empty() {
        Exit::Found
    } else {
        Exit::None
    })
}
