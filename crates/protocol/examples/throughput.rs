//! Measures the parser: `throughput FILE line|json|syslog [SECONDS [ACCESS-LOG FORMAT]]`.
//!
//! Prints bytes and records per CPU second (per second where the system does not count those), how
//! many lines were kept whole or had slots fixed, and what validating the same lines as pushed JSON
//! costs. Each way is repeated for `SECONDS`, 1 if not given, with a parser that has seen nothing.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "a tool casts numbers that it knows"
)]

use std::sync::LazyLock;
use std::time::Instant;

use logpond_protocol::intake::Parser;
use logpond_protocol::intake::access_format::LABEL_PREFIX;
use logpond_protocol::intake::json::validate;
use logpond_record::{Entry, EntryKind, Envelope, Id, Labels, Timestamp};

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, path, kind, rest @ ..] = &arguments[..] else {
        eprintln!("usage: throughput FILE line|json|syslog [SECONDS [FORMAT]]");
        std::process::exit(2);
    };
    let kind = match kind.as_str() {
        "json" => EntryKind::Json,
        "syslog" => EntryKind::Syslog,
        _ => EntryKind::Line,
    };
    let seconds: f64 = rest.first().and_then(|r| r.parse().ok()).unwrap_or(1.0);
    let format = rest.get(1).map(|format| {
        let name = format!("{LABEL_PREFIX}format");
        (name.into(), format.as_str().into())
    });
    let labels: Labels = format.into_iter().collect();
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
    let bytes: usize = lines.iter().map(|l| l.len()).sum();
    let mut seen = ShapeStats::default();
    let each = repeat(seconds, || seen = parse(&lines, kind, &labels));
    println!(
        "parse: {:.0} MB/s, {:.0} records/s; {} records, {:.1} slots each, {} text, {} whole, \
         {} fixed",
        bytes as f64 / each / 1e6,
        lines.len() as f64 / each,
        lines.len(),
        seen.slots as f64 / lines.len() as f64,
        seen.text,
        seen.whole,
        seen.fixed,
    );
    let mut valid = 0;
    let each = repeat(seconds, || {
        valid = lines.iter().filter(|line| validate(line).is_ok()).count();
    });
    if valid > lines.len() / 2 {
        println!("validate: {:.0} MB/s", bytes as f64 / each / 1e6);
    }
}

#[derive(Default)]
struct ShapeStats {
    slots: usize,
    text: usize,
    whole: usize,
    fixed: usize,
}

fn parse(lines: &[&[u8]], kind: EntryKind, labels: &Labels) -> ShapeStats {
    let mut parser = Parser::new();
    let mut seen = ShapeStats::default();
    for raw in lines {
        let record = parser.parse(&Entry {
            id: Id::MIN,
            received: Timestamp(1_772_409_600_000_000_000),
            kind,
            labels,
            envelope: Envelope::default(),
            raw,
        });
        seen.slots += record.values.len();
        seen.text += usize::from(record.values.len() == 1);
        seen.whole += usize::from(record.whole.is_some());
        seen.fixed += usize::from(!record.fixes.is_empty());
    }
    seen
}

/// Seconds that one `turn` takes, the mean of as many as fit into `seconds`.
fn repeat(seconds: f64, mut turn: impl FnMut()) -> f64 {
    let start = cpu_seconds();
    let mut turns = 0.0;
    loop {
        turn();
        turns += 1.0;
        let spent = cpu_seconds() - start;
        if spent >= seconds {
            return spent / turns;
        }
    }
}

/// Seconds that this thread has run; on Linux without those that it waited for a core.
fn cpu_seconds() -> f64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    let counted = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanos = counted.and_then(|c| c.split(' ').next()?.parse::<f64>().ok());
    nanos.map_or_else(|| START.elapsed().as_secs_f64(), |nanos| nanos / 1e9)
}
