//! `logpond cluster plan`: how many stores a load needs.

use std::time::Duration;

use logpond_cluster::plan::{Demand, Plan, Service};
use logpond_record::cast;
use serde_json::json;

use super::super::listing::print;
use super::super::{Exit, Failure, client};
use super::ask_status;
use crate::cli::{ClusterPlan, TableFormat};
use logpond_node::cluster::ServiceTimes;
use logpond_node::handoff::CLAIM_BYTES;
use logpond_node::operate::ClusterStatus;
use logpond_render::quantity;
use logpond_settings::{parse_age, parse_bytes};

/// The average hour has this part of the load of the busiest one, where nothing else is said.
const PEAK_PER_MEAN: f64 = 3.0;

/// What merging takes of a store's time: data is rewritten two or three times.
const MERGING: f64 = 0.3;

/// Bursts are never planned for as less than independent senders would make.
const ARRIVAL_VARIATION_MIN: f64 = 1.0;

/// Fewer claims say nothing.
const CLAIMS_MIN: u64 = 8;

pub(super) fn run(args: &ClusterPlan) -> Result<Exit, Failure> {
    let status = ask_status(&client(&args.server)?)?;
    let measured = average(&status).ok_or_else(|| {
        format!(
            "the stores of this cluster have carried out fewer than {CLAIMS_MIN} claims lately, so \
             nothing can be said: send it a typical load for a few minutes (logpond load), then \
             ask again"
        )
    })?;
    let wanted = wanted(args)?;
    let service = service(&measured);
    let plan = match args.stores {
        Some(stores) => Plan::with(stores.max(1), &wanted, &service),
        None => Plan::new(&wanted, &service)
            .ok_or("no number of stores does: the rate is beyond everything that was measured")?,
    };
    let mut out = Vec::new();
    match args.table.output {
        TableFormat::Json => {
            serde_json::to_writer_pretty(&mut out, &to_json(&plan, &wanted, &service, &measured))?;
            out.push(b'\n');
        }
        TableFormat::Text => {
            for line in lines(&plan, &wanted, &service, &measured) {
                out.extend_from_slice(line.as_bytes());
                out.push(b'\n');
            }
        }
    }
    print(&out)?;
    Ok(Exit::Found)
}

/// What all stores have measured, each weighed by its claims.
fn average(status: &ClusterStatus) -> Option<ServiceTimes> {
    let all: Vec<ServiceTimes> = status
        .nodes
        .iter()
        .filter_map(|node| Some(node.status.as_ref()?.service))
        .filter(|service| service.claims > 0)
        .collect();
    let claims: u64 = all.iter().map(|service| service.claims).sum();
    if claims < CLAIMS_MIN {
        return None;
    }
    let mean = |of: fn(&ServiceTimes) -> f64| {
        let sum: f64 = all.iter().map(|s| of(s) * cast::float(s.claims)).sum();
        sum / cast::float(claims)
    };
    Some(ServiceTimes {
        claims,
        claim_bytes: mean(|s| s.claim_bytes),
        seconds: mean(|s| s.seconds),
        fixed_seconds: mean(|s| s.fixed_seconds),
        variation: mean(|s| s.variation),
        arrival_variation: mean(|s| s.arrival_variation),
        raw_per_journal_byte: mean(|s| s.raw_per_journal_byte),
        stored_per_raw_byte: mean(|s| s.stored_per_raw_byte),
    })
}

fn wanted(args: &ClusterPlan) -> Result<Demand, Failure> {
    let mean = rate(&args.rate)?;
    let peak = args.peak.as_deref().map(rate).transpose()?;
    Ok(Demand {
        raw_bytes_per_s: peak.unwrap_or(mean * PEAK_PER_MEAN),
        raw_bytes_per_s_mean: mean,
        retain_s: parse_age(&args.retain)?.as_secs_f64(),
        copies: args.rf.max(1),
        claim_bytes: cast::float(CLAIM_BYTES),
        outage_s: parse_age(&args.outage)?.as_secs_f64(),
    })
}

/// Bytes a second of `1TB/d`.
fn rate(text: &str) -> Result<f64, Failure> {
    let wrong = || format!("'{text}' is no rate: expected a SIZE and a time, as 1TB/d or 20MB/s");
    let (bytes, time) = text.split_once('/').ok_or_else(wrong)?;
    let bytes = parse_bytes(bytes.trim()).map_err(|_| wrong())?;
    let time = time.trim();
    // A unit alone is one of it.
    let time = if time.starts_with(|c: char| c.is_ascii_digit()) {
        time.to_owned()
    } else {
        format!("1{time}")
    };
    let seconds = parse_age(&time).map_err(|_| wrong())?.as_secs_f64();
    if bytes == 0 || seconds <= 0.0 {
        return Err(wrong().into());
    }
    Ok(cast::float(bytes) / seconds)
}

fn service(measured: &ServiceTimes) -> Service {
    let per_byte_s = (measured.seconds - measured.fixed_seconds) / measured.claim_bytes.max(1.0);
    Service {
        fixed_s: measured.fixed_seconds,
        per_byte_s,
        variation: measured.variation,
        arrival_variation: measured.arrival_variation.max(ARRIVAL_VARIATION_MIN),
        merging: MERGING,
        journal_per_raw: 1.0 / measured.raw_per_journal_byte.max(f64::MIN_POSITIVE),
        stored_per_raw: measured.stored_per_raw_byte,
    }
}

fn to_json(
    plan: &Plan,
    wanted: &Demand,
    service: &Service,
    measured: &ServiceTimes,
) -> serde_json::Value {
    json!({
        "stores": plan.stores,
        "utilisation": plan.utilisation,
        "utilisation_one_lost": plan.utilisation_one_lost,
        "service_s": plan.service_s,
        "wait_s_mean": plan.wait_s_mean,
        "wait_s_p99": plan.wait_s_p99,
        "queue_claims": plan.queue_claims,
        "catch_up_s": plan.catch_up_s,
        "store_disk_bytes": plan.store_disk_bytes,
        "ingester_disk_bytes": plan.ingester_disk_bytes,
        "network_bytes_per_s": plan.network_bytes_per_s,
        "raw_bytes_per_s": wanted.raw_bytes_per_s,
        "fixed_s": service.fixed_s,
        "per_byte_s": service.per_byte_s,
        "measured": measured,
    })
}

fn lines(plan: &Plan, wanted: &Demand, service: &Service, measured: &ServiceTimes) -> Vec<String> {
    let bytes = |bytes: f64| quantity::bytes(cast::whole_u64(bytes));
    let span = |seconds: f64| {
        if seconds.is_finite() {
            quantity::span(Duration::from_secs_f64(seconds))
        } else {
            "for ever".to_owned()
        }
    };
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    vec![
        format!(
            "{} for {}/s of lines at the busiest hour, each record on {}",
            quantity::counted(plan.stores as u64, "store"),
            bytes(wanted.raw_bytes_per_s),
            quantity::counted(wanted.copies as u64, "node"),
        ),
        format!(
            "  they work {} of their time, {} with one of them lost",
            percent(plan.utilisation),
            percent(plan.utilisation_one_lost)
        ),
        format!(
            "  a claim of {} takes {}; it waits {} on average, one in a hundred {}",
            bytes(wanted.claim_bytes),
            span(plan.service_s),
            span(plan.wait_s_mean),
            span(plan.wait_s_p99)
        ),
        format!(
            "  {:.2} claims wait, {} of journal",
            plan.queue_claims,
            bytes(plan.queue_claims * wanted.claim_bytes)
        ),
        format!(
            "  after {} without stores they have caught up in {}",
            span(wanted.outage_s),
            span(plan.catch_up_s)
        ),
        format!(
            "disks: {} of segments on each store, {} of journal on all ingesters together",
            bytes(plan.store_disk_bytes),
            bytes(plan.ingester_disk_bytes)
        ),
        format!(
            "network: {}/s between nodes",
            bytes(plan.network_bytes_per_s)
        ),
        format!(
            "measured on {} claims of {}: {} each, {} of it however small; a byte of lines is {:.2} \
             of journal and {:.2} of segments before merges; merging is taken to need {}",
            measured.claims,
            bytes(measured.claim_bytes),
            span(measured.seconds),
            span(measured.fixed_seconds),
            service.journal_per_raw,
            service.stored_per_raw,
            percent(service.merging),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_sizes_over_times() {
        let table = [
            ("20MB/s", 20e6),
            ("86400MB/d", 1e6),
            ("1 GB / 10s", 1e8),
            ("3600KiB/h", 1024.0),
        ];
        for (text, expected) in table {
            let found = rate(text).unwrap();
            assert!((found - expected).abs() < 1e-6, "{text}: {found}");
        }
        for text in ["20MB", "x/s", "1MB/x", "0B/s", "1MB/0s", "/", ""] {
            assert!(rate(text).is_err(), "{text}");
        }
    }
}
