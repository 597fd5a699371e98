//! `logpond load`: flags to settings; the work is in [`logpond_ship::load`].

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use logpond_record::cast;
use serde_json::json;

use super::listing::print;
use super::signals::set_by_signals;
use super::{Exit, Failure, access};
use crate::cli::{Load, TableFormat};
use logpond_client::Address;
use logpond_host::terminal::note;
use logpond_render::quantity;
use logpond_settings::{parse_age, parse_bytes};
use logpond_ship::load::{self, Report, Settings};

/// What is said of times: the median, what 99 of 100 are within, and the longest.
const SHARES: [f64; 3] = [0.5, 0.99, 1.0];

/// The most connections, each with a thread.
const CONNECTIONS_MAX: usize = 1024;

pub(super) fn run(args: &Load) -> Result<Exit, Failure> {
    let settings = settings(args)?;
    let stop = Arc::new(AtomicBool::new(false));
    set_by_signals(&stop)?;
    let report = load::run(&settings, &stop, |report| note(&describe(report)))?;
    let mut out = match args.table.output {
        TableFormat::Json => serde_json::to_vec_pretty(&to_json(&report))?,
        TableFormat::Text => format!("in all: {}", describe(&report)).into_bytes(),
    };
    out.push(b'\n');
    print(&out)?;
    let tally = &report.tally;
    if tally.acknowledged == tally.sent && tally.sent > 0 {
        Ok(Exit::Found)
    } else {
        Ok(Exit::Error)
    }
}

fn settings(args: &Load) -> Result<Settings, Failure> {
    let servers = &args.servers;
    let addresses = servers.addr.iter().map(|address| Address::parse(address));
    let addresses = addresses.collect::<Result<Vec<_>, _>>()?;
    if !(1..=CONNECTIONS_MAX).contains(&args.connections) {
        return Err(format!("--connections: expected a number from 1 to {CONNECTIONS_MAX}").into());
    }
    if !(args.rate.is_finite() && args.rate >= 0.0) {
        return Err("--rate: expected records a second, or 0 for as fast as they are taken".into());
    }
    let size = parse_bytes(&args.size).map_err(|error| format!("--size: {error}"))?;
    let age = |name: &str, text: &str| parse_age(text).map_err(|error| format!("{name}: {error}"));
    let time = args.time.as_deref().map(|text| age("--for", text));
    Ok(Settings {
        access: access(&servers.access, &addresses)?,
        addresses,
        id: args.id.clone(),
        rate: (args.rate > 0.0).then_some(args.rate),
        size: usize::try_from(size)?.min(logpond_record::limits::LINE_BYTES_MAX),
        connections: args.connections,
        time: time.transpose()?,
        durable: !args.fast,
        report_every: age("--report-every", &args.report_every)?,
    })
}

fn describe(report: &Report) -> String {
    let tally = &report.tally;
    let seconds = report.time.as_secs_f64().max(f64::MIN_POSITIVE);
    let rate = |count: u64| cast::whole_u64(cast::float(count) / seconds);
    let mut text = format!(
        "{} records acknowledged in {} ({}/s, {}/s)",
        quantity::count(tally.acknowledged),
        quantity::span(report.time),
        quantity::count(rate(tally.acknowledged)),
        quantity::bytes(rate(tally.bytes)),
    );
    if let Some([median, most, all]) = tally.latencies(SHARES) {
        let ms = |time: Duration| format!("{:.1}", time.as_secs_f64() * 1000.0);
        text.push_str(&format!(
            ", within {} ms half of them, {} ms 99 %, {} ms all",
            ms(median),
            ms(most),
            ms(all)
        ));
    }
    if tally.refused + tally.failed > 0 {
        text.push_str(&format!(
            "; {} refused, {} without an answer",
            quantity::count(tally.refused),
            quantity::count(tally.failed)
        ));
    }
    if let Some(error) = &tally.last_error {
        text.push_str(&format!("; last: {error}"));
    }
    text
}

fn to_json(report: &Report) -> serde_json::Value {
    let tally = &report.tally;
    let ms = tally.latencies(SHARES);
    let ms = ms.map(|times| times.map(|time| time.as_secs_f64() * 1000.0));
    let [median, most, all] = ms.map_or([None; 3], |times| times.map(Some));
    json!({
        "seconds": report.time.as_secs_f64(),
        "sent": tally.sent,
        "acknowledged": tally.acknowledged,
        "bytes": tally.bytes,
        "refused": tally.refused,
        "failed": tally.failed,
        "latency_ms_p50": median,
        "latency_ms_p99": most,
        "latency_ms_max": all,
        "last_error": tally.last_error,
    })
}
