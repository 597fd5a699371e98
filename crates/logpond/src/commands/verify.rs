//! `logpond verify`: checks a data directory.
//!
//! It takes no lock and writes nothing, so it works beside a running server and without one.

use std::io::Write;
use std::time::Instant;

use logpond_segment::verify::{Finding, Totals, data_directory};
use logpond_segment::{build, journal};

use super::ending::note_stats;
use super::{Exit, Failure, serve};
use crate::cli::Verify;
use logpond_host::disk::RealDisk;
use logpond_host::terminal::{Out, note};
use logpond_render::quantity;

pub(super) fn run(args: &Verify) -> Result<Exit, Failure> {
    let data = args.data.iter().map(|data| ("data", data.clone()));
    let settings = serve::settings(args.config.as_deref(), data.collect())?;
    let disk = RealDisk::open(&settings.data)?;
    // A server makes both when it starts; a mistyped directory must not pass for an undamaged one.
    if ![journal::DIRECTORY, build::DIRECTORY]
        .iter()
        .any(|name| settings.data.join(name).is_dir())
    {
        let directory = settings.data.display();
        return Err(format!(
            "{directory} is no data directory: it has neither {} nor {}",
            journal::DIRECTORY,
            build::DIRECTORY
        )
        .into());
    }
    let started = Instant::now();
    let (totals, exit) = check(&disk)?;
    if args.stats {
        note_stats(
            totals.rows,
            totals.bytes,
            started.elapsed().as_secs_f64() * 1000.0,
        );
    }
    Ok(exit)
}

/// Checks a data directory and says what it finds.
pub(super) fn check(disk: &RealDisk) -> Result<(Totals, Exit), Failure> {
    let mut out = Out::of_text();
    let mut written = Ok(());
    let totals = data_directory(disk, &mut |finding| match finding {
        Finding::Damage {
            path,
            what,
            from,
            to,
        } if written.is_ok() => {
            written = writeln!(out, "{path}: {what} (bytes {from} to {to})");
        }
        Finding::Damage { .. } => {}
        Finding::Remark { path, what } => note(&format!("{path}: {what}")),
        Finding::Error { path, error } => note(&format!("logpond: {path}: {error}")),
    })?;
    note(&describe(&totals));
    written.and_then(|()| out.finish())?;
    let exit = exit(&totals);
    Ok((totals, exit))
}

fn describe(totals: &Totals) -> String {
    let count = |count: u64, one: &str| match count {
        1 => format!("1 {one}"),
        _ => format!("{} {one}s", quantity::count(count)),
    };
    let damages = match totals.damages {
        0 => "no damage".to_owned(),
        some => count(some, "damage"),
    };
    let mut text = format!(
        "{}, {}, {}, {}: {damages}",
        count(totals.segments, "segment"),
        count(totals.journal_files, "journal file"),
        count(totals.rows, "row"),
        quantity::bytes(totals.bytes),
    );
    if totals.errors > 0 {
        text.push_str(&format!(", {} not readable", count(totals.errors, "file")));
    }
    text
}

/// An error comes first: what could not be read may be damaged or not.
fn exit(totals: &Totals) -> Exit {
    match (totals.errors, totals.damages) {
        (0, 0) => Exit::Found,
        (0, _) => Exit::None,
        _ => Exit::Error,
    }
}
