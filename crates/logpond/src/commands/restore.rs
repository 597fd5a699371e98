//! `logpond restore`: a backup becomes a data directory.

use std::time::Instant;

use super::progress::watched;
use super::{Exit, Failure, backup, verify};
use crate::cli::Restore;
use logpond_engine::backup::{Progress, restore};
use logpond_host::disk::RealDisk;
use logpond_host::terminal::note;
use logpond_render::quantity;

pub(super) fn run(args: &Restore) -> Result<Exit, Failure> {
    let started = Instant::now();
    let store = backup::open(&args.from)?;
    let place = args.from.to_string();
    let progress = Progress::default();
    let restored = watched(backup::line(&progress), || {
        restore(&store, &place, &args.snapshot, &args.data, &progress)
    })?;
    backup::say_unusable(&restored.unusable);
    let snapshot = &restored.snapshot;
    note(&format!(
        "restored {} from {place}: {}, {}, {}, {} in {}",
        restored.name,
        quantity::counted(snapshot.rows(), "row"),
        quantity::counted(snapshot.sources, "source"),
        quantity::counted(snapshot.files.len() as u64, "file"),
        quantity::bytes(snapshot.bytes()),
        quantity::span(started.elapsed()),
    ));
    if restored.kept_files > 0 {
        note(&format!(
            "  {} had been restored by an earlier attempt",
            quantity::counted(restored.kept_files, "file")
        ));
    }
    if args.no_verify {
        return Ok(Exit::Found);
    }
    let (totals, exit) = verify::check(&RealDisk::open(&args.data)?)?;
    if totals.rows != snapshot.rows() {
        return Err(format!(
            "{} can be read in {}, and the snapshot has {}; restore again into another directory",
            quantity::counted(totals.rows, "row"),
            args.data.display(),
            snapshot.rows(),
        )
        .into());
    }
    Ok(exit)
}
