//! The parser alone: lines of access logs and of syslog as records, nothing kept.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::pond::Scratch;
use super::table::{Report, Target, median};
use crate::run::{Outcome, cargo, check, output, target_directory};

/// Lines of each kind; a fresh parser reads all of them for a second, again and again.
const LINES: u32 = 50_000;

/// Runs of each kind, which take turns.
const ROUNDS: usize = 5;

/// nginx's `combined` with the host and what the request took.
const FORMAT: &str = "$remote_addr - $remote_user [$time_local] \"$request\" $status \
                      $body_bytes_sent \"$http_referer\" \"$http_user_agent\" \"$host\" \
                      $request_time";

/// A kind of lines.
struct Kind {
    name: &'static str,
    file: &'static str,
    /// How the lines are to be read.
    way: &'static str,
    format: Option<&'static str>,
    line: fn(u32) -> String,
}

const KINDS: [Kind; 3] = [
    Kind {
        name: "access log, combined and the host",
        file: "combined.log",
        way: "line",
        format: None,
        line: combined,
    },
    Kind {
        name: "access log, by a declared format",
        file: "declared.log",
        way: "line",
        format: Some(FORMAT),
        line: declared,
    },
    Kind {
        name: "syslog, RFC 5424",
        file: "syslog.log",
        way: "syslog",
        format: None,
        line: syslog,
    },
];

/// Measures all kinds.
pub(super) fn measure(report: &mut Report) -> Outcome<()> {
    let build = [
        "build",
        "--release",
        "--locked",
        "--package",
        "logpond-protocol",
    ];
    check(cargo().args(build).args(["--example", "throughput"]))?;
    let program = target_directory().join("release/examples/throughput");
    let scratch = Scratch::new("bench-parser")?;
    report.table(
        "The parser alone",
        &["lines", "bytes a line", "records per CPU-s", "target"],
    );
    let mut rates: Vec<Vec<f64>> = KINDS.iter().map(|_| Vec::new()).collect();
    for kind in &KINDS {
        write_lines(scratch.path(), kind)?;
    }
    for _ in 0..ROUNDS {
        for (kind, rates) in KINDS.iter().zip(&mut rates) {
            rates.push(run(&program, scratch.path(), kind)?);
        }
    }
    for (kind, rates) in KINDS.iter().zip(&mut rates) {
        let bytes = fs::metadata(scratch.path().join(kind.file)).map_err(|e| e.to_string())?;
        let rate = median(rates);
        let target = Target::at_least(1e6, ">= 1 M records");
        report.row(vec![
            kind.name.to_owned(),
            format!("{:.0}", bytes.len() as f64 / f64::from(LINES)),
            format!("{:.2} M", rate / 1e6),
            match kind.way {
                "line" => target.judged(rate),
                _ => String::new(),
            },
        ]);
    }
    report.note(format!(
        "{LINES} different lines of each kind, from memory. Each is parsed into a record with typed fields, \
         which is dropped. Medians of {ROUNDS} runs, taking turns. The format: `{FORMAT}`"
    ));
    Ok(())
}

fn write_lines(directory: &Path, kind: &Kind) -> Outcome<()> {
    let mut text = String::new();
    for number in 0..LINES {
        let _ = writeln!(text, "{}", (kind.line)(number));
    }
    fs::write(directory.join(kind.file), text).map_err(|error| error.to_string())
}

/// Records per CPU second.
fn run(program: &Path, directory: &Path, kind: &Kind) -> Outcome<f64> {
    let mut command = std::process::Command::new(program);
    command.arg(directory.join(kind.file)).args([kind.way, "1"]);
    let said = output(command.args(kind.format))?;
    let rate = said.split(" records/s").next().and_then(|before| {
        let word = before.rsplit(' ').next()?;
        word.parse().ok()
    });
    rate.ok_or_else(|| format!("the measuring program says {said:?}"))
}

fn combined(number: u32) -> String {
    let [a, b, c] = [number % 223, number / 223 % 251, number * 7 % 241];
    let (minute, second) = (number / 60 % 60, number % 60);
    let status = [200, 200, 200, 304, 404, 500][number as usize % 6];
    format!(
        "203.{a}.{b}.{c} - - [02/Mar/2026:10:{minute:02}:{second:02} +0000] \"GET \
         /blog/{number}/post?page={c} HTTP/1.1\" {status} {} \"https://www.example.com/list/{b}\" \
         \"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/12{}.0\" \
         \"shop{}.example.com\"",
        number * 37 % 100_000,
        number % 10,
        number % 5,
    )
}

fn declared(number: u32) -> String {
    format!("{} 0.{:03}", combined(number), number % 1000)
}

fn syslog(number: u32) -> String {
    let (minute, second) = (number / 60 % 60, number % 60);
    format!(
        "<134>1 2026-03-02T10:{minute:02}:{second:02}.{:06}Z web-{} shop {} - - order {number} of \
         customer {} was accepted after {} ms",
        number * 13 % 1_000_000,
        number % 50,
        1000 + number % 7,
        number * 31 % 100_000,
        number % 900,
    )
}
