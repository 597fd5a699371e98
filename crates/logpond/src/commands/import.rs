//! `logpond import`, and `logpond forward --journal`: flags to settings; the work is in
//! [`logpond_ship::import`].

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use logpond_protocol::intake::timezone::LABEL;
use logpond_record::cast;
use logpond_search::size::parse_duration;

use super::signals::set_by_signals;
use super::{Exit, Failure, access, variable};
use crate::cli::{Forward, Import, Servers};
use logpond_client::Address;
use logpond_host::{clock, service_manager, timezone};
use logpond_settings::Environment;
use logpond_ship::import::{self, FollowOptions, Settings, Target, Totals};

pub(super) fn run(args: Import) -> Result<Exit, Failure> {
    if args.other.from_loki.is_some() || args.other.from_elasticsearch.is_some() {
        return super::pull::run(&args);
    }
    let settings = Settings {
        target: with_zone(
            target(&args.servers, &args.label, Some(&args.give_up_after))?,
            args.timezone.as_deref(),
        )?,
        inputs: args.inputs,
        quiet: args.quiet,
    };
    // A signal ends the process: what was taken is known at the next time.
    let stop = Arc::new(AtomicBool::new(false));
    Ok(exit(&import::run(&settings, &stop)?))
}

/// Follows the journal of this machine.
pub(super) fn follow(args: Forward) -> Result<Exit, Failure> {
    let following = FollowOptions {
        target: with_zone(
            target(&args.servers, &args.label, args.give_up_after.as_deref())?,
            zone_for_all(&args.timezone)?,
        )?,
        arguments: arguments(args.journal_args.as_deref().unwrap_or_default()),
        state: args.state.map_or_else(state_default, Ok)?,
        quiet: args.quiet,
    };
    let stop = Arc::new(AtomicBool::new(false));
    set_by_signals(&stop)?;
    service_manager::tell("READY=1");
    Ok(exit(&import::follow(&following, &stop)?))
}

fn exit(totals: &Totals) -> Exit {
    if totals.is_complete() {
        Exit::Found
    } else {
        Exit::Error
    }
}

pub(super) fn target(
    servers: &Servers,
    labels: &[String],
    give_up_after: Option<&str>,
) -> Result<Target, Failure> {
    let addresses = servers.addr.iter().map(|address| Address::parse(address));
    let addresses = addresses.collect::<Result<Vec<_>, _>>()?;
    let duration = |text| match parse_duration(text) {
        Ok(nanos) => Ok(Duration::from_nanos(cast::unsigned(nanos))),
        Err(error) => Err(format!("--give-up-after: {error}")),
    };
    let mut given = Vec::new();
    for label in labels {
        let (name, value) = label
            .split_once('=')
            .filter(|(name, _)| !name.is_empty())
            .ok_or_else(|| format!("--label: expected NAME=VALUE, not '{label}'"))?;
        given.push((name.to_string(), value.to_string()));
    }
    Ok(Target {
        access: access(&servers.access, &addresses)?,
        addresses,
        labels: given,
        give_up_after: give_up_after.map(duration).transpose()?,
    })
}

/// The zone that is given for everything; entries of a journal come from no file.
fn zone_for_all(zones: &[String]) -> Result<Option<&str>, Failure> {
    match zones {
        [] => Ok(None),
        [zone] if !zone.contains('=') => Ok(Some(zone)),
        _ => Err("--timezone: with --journal there is one zone for all, --timezone ZONE".into()),
    }
}

/// The same, with the zone of times that say none.
fn with_zone(mut target: Target, zone: Option<&str>) -> Result<Target, Failure> {
    if let Some(zone) = zone {
        let rule = timezone::rule(zone, clock::now());
        let rule = rule.map_err(|error| format!("--timezone: {error}"))?;
        target.labels.push((LABEL.to_owned(), rule));
    }
    Ok(target)
}

/// Arguments of `journalctl`, with spaces between them.
fn arguments(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn state_default() -> Result<PathBuf, Failure> {
    state_file("journal.json")
}

/// A file for positions of this user.
pub(super) fn state_file(name: &str) -> Result<PathBuf, Failure> {
    let surroundings = Environment {
        variable: &variable,
        is_root: false,
    };
    let directory = surroundings
        .xdg("XDG_STATE_HOME", ".local/state")
        .ok_or("HOME is not set: name the file with the position by --state FILE")?;
    Ok(directory.join("logpond").join(name))
}
