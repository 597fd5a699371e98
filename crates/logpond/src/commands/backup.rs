//! `logpond backup`: makes, lists, checks and removes backups.

mod list;
mod prune;
mod verify;

use std::time::{Duration, Instant};

use logpond_bucket::{Location, Store};
use logpond_segment::{build, journal};

use super::progress::{amount, watched};
use super::{Exit, Failure, serve};
use crate::cli::{Backup, BackupCommand};
use logpond_engine::backup::{BackupError, BackupReport, Job, Progress, make};
use logpond_host::disk::RealDisk;
use logpond_host::private_file::withhold_from_others;
use logpond_host::terminal::note;
use logpond_host::{clock, hostname};
use logpond_render::quantity;
use logpond_settings::{BUCKET_CACHE, vendor_variables};

pub(super) fn run(args: &Backup) -> Result<Exit, Failure> {
    withhold_from_others();
    match &args.command {
        Some(BackupCommand::List(args)) => list::run(args),
        Some(BackupCommand::Verify(args)) => verify::run(args),
        Some(BackupCommand::Prune(args)) => prune::run(args),
        None => back_up(args),
    }
}

/// Says which newer snapshots were passed over.
pub(super) fn say_unusable(unusable: &[String]) {
    for error in unusable {
        note(&format!("logpond: {error}"));
    }
}

/// The store at a place that backups are read from. A directory must be there: a mistyped one must
/// not pass for one without backups.
pub(super) fn open(from: &Location) -> Result<Store, Failure> {
    if let Location::Directory(directory) = from
        && !directory.is_dir()
    {
        return Err(format!("{} is no directory", directory.display()).into());
    }
    Ok(Store::open(from, &vendor_variables())?)
}

/// `3.1 GB of 8.4 GB · 1.6 GB/s · 4.0 s left · 12 of 300 files`, of what is done with so far.
pub(super) fn line(progress: &Progress) -> impl Fn(Duration) -> String + Send {
    move |elapsed| {
        let reached = progress.reached();
        // What is read again after a failed attempt counts again.
        let bytes = match reached.bytes_total {
            0 => reached.bytes,
            total => reached.bytes.min(total),
        };
        let read = amount(bytes, reached.bytes_total, elapsed);
        let files = quantity::count(reached.files);
        let all = quantity::counted(reached.files_total, "file");
        format!("{read} · {files} of {all}")
    }
}

fn back_up(args: &Backup) -> Result<Exit, Failure> {
    // Required by the command line.
    let to = args.to.as_ref().ok_or("--to says where")?;
    let data = args.data.iter().map(|data| ("data", data.clone()));
    let settings = serve::settings(args.config.as_deref(), data.collect())?;
    let disk = RealDisk::open(&settings.data)?;
    let is_there = |name: &str| disk.root().join(name).is_dir();
    if ![journal::DIRECTORY, build::DIRECTORY]
        .into_iter()
        .any(is_there)
    {
        return Err(BackupError::NoData(disk.root().to_path_buf()).into());
    }
    let started = Instant::now();
    let store = Store::open(to, &vendor_variables())?;
    let progress = Progress::default();
    let job = Job {
        disk: &disk,
        objects: &store,
        host: &hostname::own(),
        now: clock::now(),
        nonce: clock::random().unwrap_or_default(),
        progress: &progress,
    };
    let made = watched(line(&progress), || make(&job))?;
    say(&made, to);
    // What of a data directory says that there is a bucket with more.
    if is_there(BUCKET_CACHE) {
        note("  not in it: what is only in the bucket of the server (serve --bucket)");
    }
    note(&format!("  took {}", quantity::span(started.elapsed())));
    println_name(&made)?;
    Ok(if made.damaged.is_empty() && made.vanished.is_empty() {
        Exit::Found
    } else {
        Exit::None
    })
}

fn println_name(made: &BackupReport) -> Result<(), Failure> {
    super::listing::print(format!("{}\n", made.name).as_bytes())
}

fn say(made: &BackupReport, to: &Location) {
    if let Some(host) = &made.other_host {
        note(&format!(
            "logpond: the snapshot before this one is of another host, {host:?}: give each data \
             directory a place of its own"
        ));
    }
    for damaged in &made.damaged {
        note(&format!(
            "logpond: {} is damaged: {}; it was copied as it is, `logpond verify` says more",
            damaged.path, damaged.what
        ));
    }
    for vanished in &made.vanished {
        note(&format!("logpond: {vanished}; it is not in this backup"));
    }
    let snapshot = &made.snapshot;
    note(&format!(
        "backed up to {to}: {}, {}, {}, {}",
        quantity::counted(snapshot.rows(), "row"),
        quantity::counted(snapshot.sources, "source"),
        quantity::counted(snapshot.files.len() as u64, "file"),
        quantity::bytes(snapshot.bytes()),
    ));
    note(&format!(
        "  uploaded {}, {}; the others were there",
        quantity::counted(made.uploaded_files, "file"),
        quantity::bytes(made.uploaded_bytes),
    ));
    let left_out = snapshot.left_out;
    if left_out.open_files > 0 {
        note(&format!(
            "  not in it: {} in {} still being written; the next backup has them",
            quantity::counted(left_out.open_rows, "row"),
            quantity::counted(left_out.open_files, "journal file"),
        ));
    }
    if left_out.put_aside > 0 {
        note(&format!(
            "  not in it: {} that the server had put aside as not readable",
            quantity::counted(left_out.put_aside, "file"),
        ));
    }
}
