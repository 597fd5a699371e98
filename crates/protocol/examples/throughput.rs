//! Measures the parser: `throughput FILE line|json|syslog [ROUNDS]`.
//!
//! Prints bytes and records per second of one core, how many lines were kept whole or had slots
//! fixed, and what validating the same lines as pushed JSON costs.

use std::time::Instant;

use logpond_protocol::intake::Parser;
use logpond_protocol::intake::json::validate;
use logpond_record::{Entry, EntryKind, Id, Labels, Timestamp};

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, path, kind, rest @ ..] = &arguments[..] else {
        eprintln!("usage: throughput FILE line|json|syslog [ROUNDS]");
        std::process::exit(2);
    };
    let kind = match kind.as_str() {
        "json" => EntryKind::Json,
        "syslog" => EntryKind::Syslog,
        _ => EntryKind::Line,
    };
    let rounds: u32 = rest.first().and_then(|r| r.parse().ok()).unwrap_or(5);
    let data = match std::fs::read(path) {
        Ok(data) => data,
        Err(error) => {
            eprintln!("{path}: {error}");
            std::process::exit(2);
        }
    };
    let lines: Vec<&[u8]> = data
        .split(|b| *b == b'\n')
        .filter(|l| !l.is_empty())
        .collect();
    parse(&lines, kind, rounds);
    let (mut valid, mut best) = (0, f64::MAX);
    for _ in 0..rounds {
        let start = Instant::now();
        valid = lines.iter().filter(|line| validate(line).is_ok()).count();
        best = best.min(start.elapsed().as_secs_f64());
    }
    if valid > lines.len() / 2 {
        let bytes: usize = lines.iter().map(|l| l.len()).sum();
        println!("validate: {:.0} MB/s", bytes as f64 / best / 1e6);
    }
}

fn parse(lines: &[&[u8]], kind: EntryKind, rounds: u32) {
    let labels = Labels::new();
    let bytes: usize = lines.iter().map(|l| l.len()).sum();
    let mut best = f64::MAX;
    let (mut whole, mut fixed, mut fields, mut text) = (0, 0, 0, 0);
    for _ in 0..rounds {
        let mut parser = Parser::new();
        (whole, fixed, fields, text) = (0, 0, 0, 0);
        let start = Instant::now();
        for raw in lines {
            let record = parser.parse(&Entry {
                id: Id::MIN,
                received: Timestamp(1_772_409_600_000_000_000),
                kind,
                labels: &labels,
                raw,
            });
            whole += usize::from(record.whole.is_some());
            fixed += usize::from(!record.fixes.is_empty());
            fields += record.values.len();
            text += usize::from(record.values.len() == 1);
        }
        best = best.min(start.elapsed().as_secs_f64());
    }
    println!(
        "parse: {:.0} MB/s, {:.0} records/s; {} records, {:.1} slots each, {text} text, \
         {whole} whole, {fixed} fixed",
        bytes as f64 / best / 1e6,
        lines.len() as f64 / best,
        lines.len(),
        fields as f64 / lines.len() as f64,
    );
}
