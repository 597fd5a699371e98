//! What journalctl does beside printing records, as far as it means something here: what does not is
//! refused with what to do instead, so that no script takes it for done.

use logpond_search::journal;

use crate::cli::{self, Journal};
use crate::client::Parameters;
use crate::commands::listing::{count, exit, rows};
use crate::commands::{Exit, Failure, client, segments, verify};
use crate::terminal::note;

/// Does it, if the options ask for something else than records.
pub(super) fn run(args: &Journal) -> Result<Option<Exit>, Failure> {
    let upkeep = &args.upkeep;
    let vacuum = [
        &upkeep.vacuum_size,
        &upkeep.vacuum_time,
        &upkeep.vacuum_files,
    ];
    if vacuum.iter().any(|given| given.is_some()) {
        return Err(
            "--vacuum-size, --vacuum-time and --vacuum-files are not available: a server removes \
             what is beyond its retention by itself (`logpond serve --retain-age DURATION \
             --retain-size SIZE`)"
                .into(),
        );
    }
    if upkeep.rotate {
        return Err(
            "--rotate is not available: a server begins new files when it is due; \
                    `logpond compact` has it merge what there is"
                .into(),
        );
    }
    if upkeep.list_catalog {
        return Err("there is no catalogue of messages".into());
    }
    if args.facilities.iter().any(|name| name == "help") {
        return list_facilities(args.looks.quiet).map(Some);
    }
    let done = match upkeep {
        upkeep if upkeep.disk_usage => disk_usage(args)?,
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

/// `--facility=help`
fn list_facilities(is_quiet: bool) -> Result<Exit, Failure> {
    let mut out = match is_quiet {
        true => String::new(),
        false => "Available facilities:\n".to_owned(),
    };
    for (number, name) in journal::FACILITIES.iter().enumerate() {
        match name.is_empty() {
            true => out.push_str(&format!("{number}\n")),
            false => out.push_str(&format!("{name}\n")),
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
        let complete = crate::client::Trailer {
            complete: true,
            ..crate::client::Trailer::default()
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
        let (word, name) = match outcome {
            true => ("PASS", path.display()),
            false => ("FAIL", path.display()),
        };
        is_sound &= outcome;
        note(&format!("{word}: {name}"));
    }
    Ok(match is_sound {
        true => Exit::Found,
        false => Exit::None,
    })
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
