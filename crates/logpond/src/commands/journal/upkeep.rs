//! What journalctl does beside printing records, as far as it means something here: what does not is
//! refused with what to do instead, so that no script takes it for done.

use logpond_search::journal;
use serde_json::Value;

use crate::cli::{self, Journal, JournalUpkeep};
use crate::commands::listing::{count, exit, rows};
use crate::commands::{Exit, Failure, client, segments, verify};
use logpond_client::Parameters;
use logpond_host::terminal::note;
use logpond_render::quantity;

/// The longest answer to a vacuum that is read.
const ANSWER_BYTES_MAX: u64 = 64 << 10;

/// Does it, if the options ask for something else than records.
pub(super) fn run(args: &Journal) -> Result<Option<Exit>, Failure> {
    let upkeep = &args.upkeep;
    if upkeep.list_catalog {
        return Err("there is no catalogue of messages".into());
    }
    if args.facilities.iter().any(|name| name == "help") {
        return list_facilities(args.looks.quiet).map(Some);
    }
    let done = match upkeep {
        upkeep if upkeep.disk_usage => disk_usage(args)?,
        upkeep if upkeep.removes() || upkeep.rotate => vacuum(args)?,
        upkeep if upkeep.verify => verified(args)?,
        upkeep if upkeep.header => header(args)?,
        // Both are true at any moment; that a server is there is worth knowing.
        upkeep if upkeep.sync || upkeep.flush => {
            client(&args.server)?.get("/api/v1/segments", &Parameters::new())?;
            Exit::Found
        }
        _ => return Ok(None),
    };
    Ok(Some(done))
}

impl JournalUpkeep {
    /// Whether files are to be removed.
    fn removes(&self) -> bool {
        let limits = [&self.vacuum_size, &self.vacuum_time, &self.vacuum_files];
        limits.iter().any(|limit| limit.is_some())
    }
}

/// Removes the oldest files of a server, or has it begin a new one.
fn vacuum(args: &Journal) -> Result<Exit, Failure> {
    if !args.files.is_empty() || args.directory.is_some() {
        return Err(
            "--rotate and --vacuum-* are about a server's files; journalctl removes journal files"
                .into(),
        );
    }
    if selects(args) {
        return Err(
            "whole files are removed, whatever is in them: leave out what chooses records".into(),
        );
    }
    let upkeep = &args.upkeep;
    let given = [
        ("age", &upkeep.vacuum_time),
        ("size", &upkeep.vacuum_size),
        ("files", &upkeep.vacuum_files),
    ];
    let given = given.into_iter();
    let mut parameters: Parameters = given
        .filter_map(|(name, value)| Some((name, value.clone()?)))
        .collect();
    if upkeep.rotate {
        parameters.push(("rotate", "true".into()));
    }
    let answer = client(&args.server)?.post("/api/v1/vacuum", &parameters)?;
    let removed: Value = serde_json::from_slice(&answer.into_text(ANSWER_BYTES_MAX)?)?;
    if upkeep.removes() && !args.looks.quiet {
        let (files, records) = (count(&removed, "files"), count(&removed, "records"));
        note(&format!(
            "Vacuuming done, freed {} of archived journals: {} with {}.",
            short_bytes(count(&removed, "bytes")),
            quantity::counted(files, "file"),
            quantity::counted(records, "record"),
        ));
    }
    Ok(Exit::Found)
}

/// Whether some records are asked for and not all.
fn selects(args: &Journal) -> bool {
    let lists = [
        &args.units,
        &args.user_units,
        &args.identifiers,
        &args.excluded,
    ];
    let texts = [&args.priority, &args.grep, &args.since, &args.until];
    let looks = &args.looks;
    !args.matches.is_empty()
        || lists.iter().any(|list| !list.is_empty())
        || texts.iter().any(|text| text.is_some())
        || !args.facilities.is_empty()
        || args.boot.is_some()
        || args.dmesg
        || looks.system
        || looks.user
        || looks.machine.is_some()
        || looks.namespace.is_some()
}

/// `--facility=help`
fn list_facilities(is_quiet: bool) -> Result<Exit, Failure> {
    let mut out = if is_quiet {
        String::new()
    } else {
        "Available facilities:\n".to_owned()
    };
    for (number, name) in journal::FACILITIES.iter().enumerate() {
        if name.is_empty() {
            out.push_str(&format!("{number}\n"))
        } else {
            out.push_str(&format!("{name}\n"))
        }
    }
    crate::commands::listing::print(out.as_bytes())?;
    Ok(Exit::Found)
}

fn disk_usage(args: &Journal) -> Result<Exit, Failure> {
    let (bytes, trailer) = if args.files.is_empty() && args.directory.is_none() {
        let answer = client(&args.server)?.get("/api/v1/segments", &Parameters::new())?;
        let (rows, trailer) = rows(answer)?;
        let bytes = rows.iter().map(|row| count(row, "bytes")).sum();
        (bytes, trailer)
    } else {
        let mut bytes = 0;
        for path in super::files::named(&args.files, args.directory.as_deref())? {
            bytes += std::fs::metadata(&path)?.len();
        }
        let complete = logpond_client::Trailer {
            complete: true,
            ..logpond_client::Trailer::default()
        };
        (bytes, complete)
    };
    let text = short_bytes(bytes);
    let line = format!("Archived and active journals take up {text} in the file system.\n");
    crate::commands::listing::print(line.as_bytes())?;
    Ok(exit(false, &trailer, ""))
}

/// `8.0M`
fn short_bytes(bytes: u64) -> String {
    const UNITS: [(&str, u64); 4] = [
        ("T", 1 << 40),
        ("G", 1 << 30),
        ("M", 1 << 20),
        ("K", 1 << 10),
    ];
    match UNITS.iter().find(|(_, unit)| bytes >= *unit) {
        Some((name, unit)) => format!("{}.{}{name}", bytes / unit, bytes % unit * 10 / unit),
        None => format!("{bytes}B"),
    }
}

/// Reads all of every file; a data directory is checked as `logpond verify` does.
fn verified(args: &Journal) -> Result<Exit, Failure> {
    if let Some(data) = &args.directory
        && data.join("segments").is_dir()
    {
        return verify::run(&cli::Verify {
            data: Some(data.display().to_string()),
            config: None,
            stats: false,
        });
    }
    if args.files.is_empty() && args.directory.is_none() {
        return Err(
            "--verify checks files: name them (--file, --directory), or check a server's \
                    data directory with `logpond verify --data DIR`"
                .into(),
        );
    }
    let paths = super::files::named(&args.files, args.directory.as_deref())?;
    let mut is_sound = true;
    for path in paths {
        let outcome = super::files::check(&path)?;
        let (word, name) = if outcome {
            ("PASS", path.display())
        } else {
            ("FAIL", path.display())
        };
        is_sound &= outcome;
        note(&format!("{word}: {name}"));
    }
    Ok(if is_sound { Exit::Found } else { Exit::None })
}

fn header(args: &Journal) -> Result<Exit, Failure> {
    if !args.files.is_empty() || args.directory.is_some() {
        return Err(
            "--header is about a server's files; journalctl shows those of journal files".into(),
        );
    }
    segments::run(&cli::Segments {
        table: cli::TableOutput {
            output: cli::TableFormat::Text,
        },
        server: args.server.clone(),
    })
}
