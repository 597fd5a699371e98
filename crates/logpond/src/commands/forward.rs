//! `logpond forward`: flags to settings; the work is in [`logpond_ship::forward`].

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use logpond_protocol::intake::container::Format;
use logpond_protocol::intake::multiline::Rule;
use logpond_record::cast;
use logpond_search::Finder;
use logpond_search::query::Pattern;
use logpond_search::size::{Size, parse_duration, parse_size};
use signal_hook::consts::SIGINT;

use super::signals::set_by_signals;
use super::{Exit, Failure, access, variable};
use crate::cli::{Forward, LineFormat, Multiline, Wait};
use logpond_client::{ADDRESS_DEFAULT, Address, ClientError, HostPort};
use logpond_host::private_file::withhold_from_others;
use logpond_host::{clock, service_manager};
use logpond_settings::{BULK_PORT, Environment, access_logs, flagged_fields};
use logpond_ship::forward::{
    self, Backoff, FileZones, ForwardError, ReadOptions, Settings, SpoolSettings,
};

/// The first wait after no server took a batch.
pub(super) const WAIT_FIRST: Duration = Duration::from_millis(100);

/// The longest wait: after an outage records flow again within this time.
pub(super) const WAIT_LONGEST: Duration = Duration::from_secs(10);

/// The smallest spool: a few batches, so that one can be written while another is sent.
const SPOOL_BYTES_MIN: u64 = 4 << 20;

/// How long a forwarder that ends with its input tries, unless told otherwise.
const GIVE_UP_AFTER: Duration = Duration::from_secs(300);

pub(super) fn run(args: Forward) -> Result<Exit, Failure> {
    withhold_from_others();
    let settings = settings(args)?;
    let stop = Arc::new(AtomicBool::new(false));
    let interrupted = Arc::new(AtomicBool::new(false));
    if settings.tail.is_some() {
        set_by_signals(&stop)?;
        signal_hook::flag::register(SIGINT, Arc::clone(&interrupted))?;
        service_manager::tell("READY=1");
    }
    let totals = forward::run(&settings, &stop)?;
    if totals.rejected > 0 {
        return Ok(Exit::Error);
    }
    if interrupted.load(std::sync::atomic::Ordering::Relaxed) {
        Ok(Exit::Interrupted)
    } else {
        Ok(Exit::Found)
    }
}

fn settings(args: Forward) -> Result<Settings, Failure> {
    let given = &args.servers.addr;
    let bulk = if args.bulk {
        Some(listeners(given).map_err(ForwardError::Address)?)
    } else {
        None
    };
    let http = if args.bulk { &[][..] } else { given };
    let addresses = http
        .iter()
        .map(|address| Address::parse(address))
        .collect::<Result<Vec<_>, _>>()
        .map_err(ForwardError::Address)?;
    let give_up_after = match (&args.give_up_after, args.tail) {
        (Some(text), _) => Some(Duration::from_nanos(cast::unsigned(
            parse_duration(text).map_err(|error| format!("--give-up-after: {error}"))?,
        ))),
        (None, true) => None,
        (None, false) => Some(GIVE_UP_AFTER),
    };
    let mut labels = Vec::new();
    for label in &args.label {
        let (name, value) = label
            .split_once('=')
            .filter(|(name, _)| !name.is_empty())
            .ok_or_else(|| format!("--label: expected NAME=VALUE, not '{label}'"))?;
        labels.push((name.to_string(), value.to_string()));
    }
    if !labels.iter().any(|(name, _)| name == "hostname") {
        labels.push(("hostname".to_string(), logpond_host::hostname::own()));
    }
    labels.extend(declared_formats(&args.access_log)?);
    let declared = flagged_fields(&args.time_field, &args.message_field)?;
    let declared = declared.into_iter();
    labels.extend(declared.map(|(name, text)| (name.into(), text.into())));
    let zones = FileZones::new(&args.timezone.join("\n"), clock::now());
    let zones = zones.map_err(|error| format!("--timezone: {error}"))?;
    let read_options = read_options(&args)?;
    let tail = match (args.tail, args.state) {
        (false, Some(_)) => return Err("--state goes with --tail or --journal".into()),
        (false, None) => None,
        (true, Some(state)) => Some(state),
        (true, None) => Some(state_default()?),
    };
    Ok(Settings {
        access: access(&args.servers.access, &addresses)?,
        addresses,
        bulk,
        read_options,
        inputs: args.files,
        tail,
        labels,
        zones,
        backoff: Backoff {
            first: WAIT_FIRST,
            longest: WAIT_LONGEST,
            give_up_after,
        },
        spool: args
            .spool
            .map(|path| spool(path, &args.spool_size, args.drop_when_full))
            .transpose()?,
        waits_for_replication: args.wait == Wait::Replicated,
        quiet: args.quiet,
    })
}

/// The labels that declare formats of access logs.
fn declared_formats(formats: &[String]) -> Result<Vec<(String, String)>, Failure> {
    if formats.is_empty() {
        return Ok(Vec::new());
    }
    let declared = access_logs(&formats.join("\n"));
    let declared = declared.map_err(|error| format!("--access-log: {error}"))?;
    let each = declared.into_iter();
    Ok(each
        .map(|(name, text)| (name.into(), text.into()))
        .collect())
}

fn read_options(args: &Forward) -> Result<ReadOptions, Failure> {
    let named = args.multiline.map(|name| match name {
        Multiline::Auto => Rule::auto(),
        Multiline::Stacktrace => Rule::stacktrace(),
        Multiline::Indent => Rule::indent(),
        Multiline::Sql => Rule::sql(),
        Multiline::Timestamp => Rule::timestamp(),
    });
    let starting = args.multiline_start.as_deref().map(starting).transpose()?;
    let wait = parse_duration(&args.multiline_wait);
    let wait = wait.map_err(|error| format!("--multiline-wait: {error}"))?;
    Ok(ReadOptions {
        format: format(args.format),
        rule: named.or(starting),
        record_wait: Duration::from_nanos(wait.unsigned_abs()),
        says_choices: !args.quiet,
    })
}

/// The rule that a record begins with a line that this matches.
fn starting(source: &str) -> Result<Rule, Failure> {
    let pattern = Pattern::regex(source, false);
    let finder = Finder::new(&pattern).map_err(|error| format!("--multiline-start: {error}"))?;
    Ok(Rule::starting(move |line| finder.is_match(line)))
}

/// The format of inputs; `None` is to be recognised.
fn format(given: LineFormat) -> Option<Format> {
    match given {
        LineFormat::Auto => None,
        LineFormat::Lines => Some(Format::Lines),
        LineFormat::Docker => Some(Format::Docker),
        LineFormat::Cri => Some(Format::Cri),
    }
}

/// Where uploads go.
fn listeners(addresses: &[String]) -> Result<Vec<HostPort>, ClientError> {
    let each = addresses.iter().map(|address| match address.as_str() {
        // Nobody has named one.
        ADDRESS_DEFAULT => HostPort::parse("127.0.0.1", BULK_PORT),
        address => HostPort::parse(address, BULK_PORT),
    });
    each.collect()
}

pub(super) fn spool(
    path: PathBuf,
    size: &str,
    drops_when_full: bool,
) -> Result<SpoolSettings, Failure> {
    let bytes_max = match parse_size(size) {
        Ok(Size::Bytes(bytes)) if bytes >= SPOOL_BYTES_MIN => bytes,
        Ok(Size::Bytes(_)) => {
            return Err("--spool-size: a spool needs at least 4MiB"
                .to_owned()
                .into());
        }
        Ok(Size::Percent(_)) => {
            return Err("--spool-size: expected a size such as 1GiB"
                .to_owned()
                .into());
        }
        Err(error) => return Err(format!("--spool-size: {error}").into()),
    };
    Ok(SpoolSettings {
        path,
        bytes_max,
        drops_when_full,
    })
}

fn state_default() -> Result<PathBuf, Failure> {
    let surroundings = Environment {
        variable: &variable,
        is_root: false,
    };
    let directory = surroundings
        .xdg("XDG_STATE_HOME", ".local/state")
        .ok_or("HOME is not set: say where positions are remembered by --state FILE")?;
    Ok(directory.join("logpond/forward.json"))
}
