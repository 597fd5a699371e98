//! `logpond backup prune`: removes old snapshots, and what only they need.

use logpond_bucket::GRACE;

use super::{line, open};
use crate::cli::BackupPrune;
use crate::commands::progress::watched;
use crate::commands::{Exit, Failure};
use logpond_engine::backup::{Progress, prune};
use logpond_host::terminal::note;
use logpond_render::quantity;

pub(super) fn run(args: &BackupPrune) -> Result<Exit, Failure> {
    let (store, progress) = (open(&args.from)?, Progress::default());
    let pruned = watched(line(&progress), || {
        prune(&store, args.keep, GRACE, &progress)
    })?;
    note(&format!(
        "removed {} and {}, {}; {} left",
        quantity::counted(pruned.snapshots, "snapshot"),
        quantity::counted(pruned.files, "file"),
        quantity::bytes(pruned.bytes),
        quantity::counted(pruned.kept, "snapshot"),
    ));
    if pruned.is_running {
        note(
            "  files stay: a backup is running, or one was killed less than a day ago; prune again \
             later",
        );
    } else if pruned.young > 0 {
        note(&format!(
            "  {} that no snapshot needs stay for a day after their upload; prune again later",
            quantity::counted(pruned.young, "file"),
        ));
    }
    Ok(Exit::Found)
}
