//! `logpond import --from-loki` and `--from-elasticsearch`: flags to settings; the work is in
//! [`logpond_ship::pull`].

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use jiff::tz::TimeZone;
use logpond_record::Timestamp;

use super::import::{state_file, target};
use super::selection::{instant, now};
use super::signals::set_by_signals;
use super::{Exit, Failure};
use crate::cli::{Import, OtherSystem};
use logpond_client::{Access, Address, Credentials};
use logpond_ship::pull::{self, PullRange, Settings, System};

pub(super) fn run(args: &Import) -> Result<Exit, Failure> {
    let settings = settings(args)?;
    let stop = Arc::new(AtomicBool::new(false));
    set_by_signals(&stop)?;
    let totals = pull::run(&settings, &stop)?;
    Ok(if totals.is_complete() {
        Exit::Found
    } else {
        Exit::Error
    })
}

fn settings(args: &Import) -> Result<Settings, Failure> {
    let other = &args.other;
    let source = source(other)?;
    let target = target(&args.servers, &args.label, Some(&args.give_up_after))?;
    let (zone, now) = (TimeZone::system(), now());
    let range = PullRange {
        from: instant("--since", other.since.as_deref(), now, &zone)?,
        to: instant("--until", other.until.as_deref(), now, &zone)?,
    };
    if let PullRange {
        from: Some(from),
        to: Some(to),
    } = range
        && from >= to
    {
        return Err(format!("--since {from} is not before --until {to}").into());
    }
    let import = identity(args, &source);
    let state = match &other.state {
        Some(path) => path.clone(),
        None => state_of(&import)?,
    };
    Ok(Settings {
        access: source_access(other, &source)?,
        source,
        system: system(args)?,
        range: with_end(other, range, now),
        page_records: other.page_size,
        target,
        state,
        import,
        quiet: args.quiet,
    })
}

fn source(other: &OtherSystem) -> Result<Address, Failure> {
    let (text, port) = match (&other.from_loki, &other.from_elasticsearch) {
        (Some(text), _) => (text, 3100),
        (None, Some(text)) => (text, 9200),
        (None, None) => return Err("name the source by --from-loki or --from-elasticsearch".into()),
    };
    Ok(Address::parse_with_port(text, port)?)
}

fn system(args: &Import) -> Result<System, Failure> {
    let other = &args.other;
    let Some(index) = &other.index else {
        let labels = args.label.iter().filter_map(|label| label.split_once('='));
        let labels = labels.map(|(name, value)| (name.to_owned(), value.to_owned()));
        return Ok(System::Loki {
            query: other.query.clone(),
            labels: labels.collect(),
        });
    };
    if !args.label.is_empty() {
        return Err("--label: documents of Elasticsearch stay as they are".into());
    }
    Ok(System::Elasticsearch {
        index: index.clone(),
        query: other.query.clone(),
        time_field: other.time_field.clone(),
    })
}

/// Loki's queries end at some time.
fn with_end(other: &OtherSystem, range: PullRange, now: Timestamp) -> PullRange {
    let to = range.to.or(other.from_loki.as_ref().map(|_| now));
    PullRange { to, ..range }
}

fn source_access(other: &OtherSystem, source: &Address) -> Result<Access, Failure> {
    let basic = other
        .source_user
        .as_ref()
        .zip(other.source_password_file.as_ref());
    let basic = basic.map(|(user, path)| Credentials::Basic {
        user: user.clone(),
        password_file: path.clone(),
    });
    let bearer = other.source_token_file.clone().map(Credentials::Bearer);
    let api_key = other.source_api_key_file.clone().map(Credentials::ApiKey);
    let credentials = basic.or(bearer).or(api_key);
    let mut access = Access::of_credentials(credentials.as_ref(), other.source_org_id.as_deref())?;
    if source.is_encrypted() {
        access.trust(other.source_ca_file.as_deref())?;
    }
    Ok(access)
}

/// The source and the selection, as they are given.
fn identity(args: &Import, source: &Address) -> String {
    let other = &args.other;
    let mut text = source.to_string();
    let parts = [
        ("tenant", &other.source_org_id),
        ("index", &other.index),
        ("query", &other.query),
        ("since", &other.since),
        ("until", &other.until),
    ];
    for (name, value) in parts {
        if let Some(value) = value {
            text += &format!(" {name}={value}");
        }
    }
    for label in &args.label {
        text += &format!(" label={label}");
    }
    text
}

fn state_of(import: &str) -> Result<PathBuf, Failure> {
    state_file(&pull::state_name(import))
}
