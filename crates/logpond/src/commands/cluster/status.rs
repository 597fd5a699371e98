//! `logpond cluster status`: the nodes and how they are doing.

use std::time::Duration;

use logpond_cluster::expiry::OFF_NS_MAX;
use logpond_record::cast;

use super::super::listing::print;
use super::super::{Exit, Failure, client};
use super::ask_status;
use crate::cli::{ClusterStatus as Args, TableFormat};
use logpond_node::operate::{ClusterStatus, NodeReport, State};
use logpond_render::{Table, quantity};

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    let status = ask_status(&client(&args.server)?)?;
    let mut out = Vec::new();
    match args.table.output {
        TableFormat::Json => {
            serde_json::to_writer_pretty(&mut out, &status)?;
            out.push(b'\n');
        }
        TableFormat::Text => write(&status, &mut out),
    }
    print(&out)?;
    let is_gone = |node: &NodeReport| node.state == State::Gone;
    if status.nodes.iter().any(is_gone) || status.copies_lacking > 0 {
        Ok(Exit::Incomplete)
    } else {
        Ok(Exit::Found)
    }
}

fn write(status: &ClusterStatus, out: &mut Vec<u8>) {
    let has_zones = status.nodes.iter().any(|node| node.zone.is_some());
    let mut columns = vec![("address", false), ("role", false)];
    columns.extend(has_zones.then_some(("zone", false)));
    columns.extend([
        ("state", false),
        ("version", false),
        ("free", true),
        ("segments", true),
        ("rows", true),
        ("stored", true),
        ("waiting", true),
        ("oldest", true),
        ("in/s", true),
        ("out/s", true),
        ("canary", true),
        ("node", false),
    ]);
    let mut table = Table::new(&columns);
    for node in &status.nodes {
        table.row(row(node, has_zones));
    }
    table.write(out);
    out.push(b'\n');
    for line in summary(status) {
        out.extend_from_slice(line.as_bytes());
        out.push(b'\n');
    }
}

fn row(node: &NodeReport, has_zones: bool) -> Vec<String> {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let mut cells = vec![node.address.clone(), text(&node.role)];
    cells.extend(has_zones.then(|| text(&node.zone)));
    cells.extend([node.state.as_str().to_owned(), text(&node.version)]);
    match &node.status {
        Some(status) => cells.extend([
            quantity::bytes(status.free_bytes),
            quantity::count(status.segments),
            quantity::count(status.segment_rows),
            quantity::bytes(status.segment_bytes),
            quantity::bytes(status.waiting_bytes),
            match status.waiting_ms {
                0 => String::new(),
                ms => quantity::span(Duration::from_millis(ms)),
            },
            quantity::bytes(cast::whole_u64(status.offered_bytes_per_s)),
            quantity::bytes(cast::whole_u64(status.consumed_bytes_per_s)),
            status
                .canary_ms
                .map_or(String::new(), |ms| format!("{ms:.1} ms")),
        ]),
        None => cells.extend(std::iter::repeat_n(String::new(), 9)),
    }
    cells.push(node.node.clone());
    cells
}

/// What follows from all of it.
fn summary(status: &ClusterStatus) -> Vec<String> {
    let copies = match status.copies_lacking {
        0 => format!("all sources have {}", copies(status.replication)),
        lacking => format!(
            "{} lack copies; there should be {}",
            quantity::counted(lacking, "source"),
            status.replication
        ),
    };
    let pace = match status.consumed_per_offered {
        Some(ratio) => format!(
            "stores consume {ratio:.2} of what ingesters offer ({}/s of {}/s of journal); {} wait",
            quantity::bytes(cast::whole_u64(status.consumed_bytes_per_s)),
            quantity::bytes(cast::whole_u64(status.offered_bytes_per_s)),
            quantity::bytes(status.waiting_bytes),
        ),
        None => format!(
            "nothing was offered in the last minute; {} wait",
            quantity::bytes(status.waiting_bytes)
        ),
    };
    let mut lines = vec![copies, pace];
    for node in &status.nodes {
        if let Some(left) = node.status.as_ref().and_then(|status| status.leaving) {
            lines.push(format!(
                "{} is leaving: {} and {} are left, {} lack copies elsewhere",
                node.address,
                quantity::counted(left.journal_files, "journal file"),
                quantity::counted(left.segments, "segment"),
                quantity::counted(left.lacking, "source"),
            ));
        }
        if let Some(status) = node.status.as_ref().filter(|status| status.is_full) {
            lines.push(format!(
                "{} takes no copies: its disk has only {} free",
                node.address,
                quantity::bytes(status.free_bytes),
            ));
        }
        lines.extend(clock_line(node));
        if node.state == State::Gone {
            let why = node.silence.as_ref();
            let why = why.map_or(String::new(), |why| format!(" ({why})"));
            lines.push(format!(
                "{} is gone{why}; if it is so for good: logpond cluster forget {}",
                node.address,
                node.forget.as_ref().unwrap_or(&node.address)
            ));
        }
    }
    lines
}

/// What follows from a clock that is wrong.
fn clock_line(node: &NodeReport) -> Option<String> {
    let ahead_ms = node.status.as_ref()?.clock_ahead_ms?;
    if ahead_ms.saturating_mul(1_000_000).saturating_abs() <= OFF_NS_MAX {
        return None;
    }
    let off = quantity::span(Duration::from_millis(ahead_ms.unsigned_abs()));
    Some(if ahead_ms > 0 {
        format!(
            "the clock of {} is {off} ahead of the others': it removes nothing for its age",
            node.address
        )
    } else {
        format!(
            "the clock of {} is {off} behind the others': it takes no records in",
            node.address
        )
    })
}

fn copies(count: usize) -> String {
    match count {
        1 => "a copy".to_owned(),
        count => format!("{count} copies"),
    }
}
