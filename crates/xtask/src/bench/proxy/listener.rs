//! The server's own listener: the table of the article on Dropwizard and TLS again, by h2load. Bodies of
//! 1 to 100 kB over HTTP/1.1 and HTTP/2, with and without TLS.
//!
//! The article's server sends bodies back, which ours has no use for. What comes nearest: a push of one
//! line of that size, and the answer to a query with one such line.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256};

use super::packages::PackagedProgram;
use super::peers::Certificate;
use super::process::pin_thread;
use crate::bench::Settings;
use crate::bench::pond::{Scratch, TestServer, cpu_seconds};
use crate::bench::table::{Report, figure, load_average, median};
use crate::e2e::http::encode;
use crate::run::{Outcome, find_program, output};

/// Who asks.
const CLIENT: PackagedProgram = PackagedProgram {
    packages: &["nghttp2-client"],
    program: "h2load",
    module: None,
};

/// Rounds unless told.
const ROUNDS_DEFAULT: usize = 3;

/// The sizes of the article: from 1 to 100 kB.
const SIZES: [usize; 3] = [1_000, 10_000, 100_000];

/// Requests of a measurement: of the shortest, of messages up to 10 kB, and of those of 100 kB, of which
/// all rounds write some gigabytes.
const REQUESTS_FIXED: usize = 20_000;
const REQUESTS: usize = 10_000;
const REQUESTS_LARGE: usize = 2_000;

/// Connections, of which each waits for its answer.
const CONNECTIONS: usize = 50;

/// How clients ask.
#[derive(Clone, Copy)]
struct Way {
    name: &'static str,
    is_encrypted: bool,
    /// What h2load is told.
    arguments: &'static [&'static str],
    connections: usize,
}

const WAYS: [Way; 4] = [
    Way {
        name: "HTTP/1.1",
        is_encrypted: false,
        arguments: &["--h1"],
        connections: CONNECTIONS,
    },
    Way {
        name: "HTTP/1.1, TLS",
        is_encrypted: true,
        arguments: &["--h1"],
        connections: CONNECTIONS,
    },
    Way {
        name: "HTTP/2, TLS",
        is_encrypted: true,
        arguments: &["-m", "1"],
        connections: CONNECTIONS,
    },
    Way {
        name: "HTTP/2, TLS, 10 at a time on each of 5 connections",
        is_encrypted: true,
        arguments: &["-m", "10"],
        connections: 5,
    },
];

/// What is asked.
#[derive(Clone, Copy)]
enum Exchange {
    /// Whether the server is well: the shortest that there is.
    Healthy,
    /// A file of the page, which is in memory.
    Page,
    Push(usize),
    Answer(usize),
}

impl Exchange {
    fn all() -> impl Iterator<Item = Exchange> {
        let fixed = [Exchange::Healthy, Exchange::Page].into_iter();
        // Before there is more that a query could look at.
        let answers = SIZES.into_iter().map(Exchange::Answer);
        let pushes = SIZES.into_iter().map(Exchange::Push);
        fixed.chain(answers).chain(pushes)
    }

    fn name(self) -> String {
        let kilobytes = |bytes: usize| bytes / 1_000;
        match self {
            Exchange::Healthy => "`/-/healthy`".into(),
            Exchange::Page => "a file of 8 kB".into(),
            Exchange::Push(bytes) => format!("push of {} kB", kilobytes(bytes)),
            Exchange::Answer(bytes) => format!("answer of {} kB", kilobytes(bytes)),
        }
    }

    fn requests(self) -> usize {
        match self {
            Exchange::Push(100_000..) | Exchange::Answer(100_000..) => REQUESTS_LARGE,
            Exchange::Push(_) | Exchange::Answer(_) => REQUESTS,
            Exchange::Healthy | Exchange::Page => REQUESTS_FIXED,
        }
    }

    fn target(self) -> String {
        match self {
            Exchange::Healthy => "/-/healthy".into(),
            Exchange::Page => "/web/app.js".into(),
            Exchange::Push(_) => push("bench"),
            Exchange::Answer(bytes) => {
                let filter = encode(&format!("app={}", app(bytes)));
                format!("/api/v1/query?q={filter}&limit=1")
            }
        }
    }
}

/// What a run of h2load gives.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Sample {
    per_second: f64,
    cpu_us: f64,
    p50_ms: f64,
    p99_ms: f64,
}

/// The servers, one with TLS and one without, and what asks them.
struct Bench {
    scratch: Scratch,
    /// Without TLS first.
    ponds: [TestServer; 2],
    client: Command,
}

/// Measures it.
pub(in crate::bench) fn measure(
    program: &Path,
    settings: &Settings,
    report: &mut Report,
) -> Outcome<()> {
    let Some((client, _)) = CLIENT.find() else {
        return Err("there is no h2load, and its package cannot be unpacked".into());
    };
    // A thread of its own: the others stay where they were.
    std::thread::scope(|scope| {
        let bench = scope.spawn(|| {
            let cores = std::thread::available_parallelism().map_or(1, usize::from);
            pin_thread((cores > 1).then_some(1));
            let bench = Bench::start(program, client, cores > 1)?;
            bench.run(settings.rounds.unwrap_or(ROUNDS_DEFAULT), report)
        });
        bench.join().map_err(|_| "the benchmark panicked")?
    })
}

impl Bench {
    fn start(program: &Path, client: Command, is_pinned: bool) -> Outcome<Bench> {
        let scratch = Scratch::new("bench-listener")?;
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(|e| e.to_string())?;
        let Certificate { chain, key, .. } = super::certificate("P-256", &key, scratch.path())?;
        let [chain, key] = [chain, key].map(|path: PathBuf| path.display().to_string());
        let start = |name: &str, flags: &[&str]| {
            let command = match find_program("taskset") {
                Some(taskset) if is_pinned => {
                    let mut command = Command::new(taskset);
                    command.args(["-c", "0"]).arg(program);
                    command
                }
                _ => Command::new(program),
            };
            let server = TestServer::start_under(command, &scratch.path().join(name), flags)?;
            Ok::<_, String>(server)
        };
        let plain = start("plain", &[])?;
        let flags = ["--tls-certificate", &chain, "--tls-key", &key];
        let encrypted = start("encrypted", &flags)?;
        let bench = Bench {
            scratch,
            ponds: [plain, encrypted],
            client,
        };
        for size in SIZES {
            fs::write(bench.body(size), line(size)).map_err(|e| e.to_string())?;
        }
        Ok(bench)
    }

    /// A file with a line of this many bytes.
    fn body(&self, size: usize) -> PathBuf {
        self.scratch.path().join(format!("{size}"))
    }

    fn run(&self, rounds: usize, report: &mut Report) -> Outcome<()> {
        let said = output(self.command().arg("--version"))?;
        report.fact(said.trim().into());
        report.fact(
            "The server on one core, h2load with one thread on another one; P-256 certificate, TLS 1.3".into(),
        );
        self.fill()?;
        let mut rows = Vec::new();
        for exchange in Exchange::all() {
            let mut samples = WAYS.map(|_| Vec::new());
            for _ in 0..rounds {
                for (way, samples) in WAYS.iter().zip(&mut samples) {
                    samples.push(self.ask(way, exchange)?);
                }
            }
            eprintln!("   {}: {samples:?}", exchange.name());
            rows.push((exchange, samples));
        }
        report.fact(format!(
            "Load average after it, the benchmark's included: {}",
            load_average()
        ));
        show(report, &rows, rounds);
        Ok(())
    }

    /// Each server has a line of each size, by which answers are found.
    fn fill(&self) -> Outcome<()> {
        for way in &WAYS[..2] {
            for size in SIZES {
                let body = self.body(size);
                self.load(way, &push(&app(size)), Some(&body), 1)?;
            }
        }
        Ok(())
    }

    fn ask(&self, way: &Way, exchange: Exchange) -> Outcome<Sample> {
        let body = match exchange {
            Exchange::Push(size) => Some(self.body(size)),
            _ => None,
        };
        let requests = exchange.requests();
        let pid = self.pond(way).pid();
        let before = cpu_seconds(pid)?;
        let mut sample = self.load(way, &exchange.target(), body.as_deref(), requests)?;
        sample.cpu_us = (cpu_seconds(pid)? - before) * 1e6 / requests as f64;
        Ok(sample)
    }

    fn pond(&self, way: &Way) -> &TestServer {
        &self.ponds[usize::from(way.is_encrypted)]
    }

    fn command(&self) -> Command {
        let mut command = Command::new(self.client.get_program());
        for (name, value) in self.client.get_envs() {
            if let Some(value) = value {
                command.env(name, value);
            }
        }
        command
    }

    /// Sends so many requests; all must succeed. Gives all but the CPU time.
    fn load(
        &self,
        way: &Way,
        target: &str,
        body: Option<&Path>,
        requests: usize,
    ) -> Outcome<Sample> {
        let times = self.scratch.path().join("times");
        let _ = fs::remove_file(&times);
        let scheme = if way.is_encrypted { "https" } else { "http" };
        let url = format!("{scheme}://{}{target}", self.pond(way).address("http"));
        let connections = way.connections.min(requests).to_string();
        let mut command = self.command();
        command
            .args(["-t", "1", "-c", &connections, "-n", &requests.to_string()])
            .args(way.arguments)
            .arg("--log-file")
            .arg(&times);
        if let Some(body) = body {
            command
                .args(["-H", "content-type: text/plain", "-d"])
                .arg(body);
        }
        let said = output(command.arg(&url))?;
        let per_second = per_second(&said, requests)
            .ok_or_else(|| format!("{command:?}: not all succeeded: {said}"))?;
        let times = fs::read_to_string(&times).map_err(|e| e.to_string())?;
        let [p50_ms, p99_ms] = percentiles(&times).ok_or("h2load wrote no times")?;
        Ok(Sample {
            per_second,
            cpu_us: f64::NAN,
            p50_ms,
            p99_ms,
        })
    }
}

/// What the line of a size is found by.
fn app(size: usize) -> String {
    format!("size{size}")
}

/// Where lines of an application are pushed.
fn push(app: &str) -> String {
    format!("/api/v1/push?label={}", encode(&format!("app={app}")))
}

/// A line of text of this many bytes, its end included.
fn line(size: usize) -> String {
    let words = "the listener takes a line of some length ";
    let mut line: String = words.chars().cycle().take(size - 1).collect();
    line.push('\n');
    line
}

/// Requests a second, if all of these succeeded.
fn per_second(said: &str, requests: usize) -> Option<f64> {
    let succeeded = format!(" {requests} succeeded, 0 failed, 0 errored");
    said.contains(&succeeded).then_some(())?;
    let line = said.lines().find(|line| line.starts_with("finished in "))?;
    let rate = line
        .split(", ")
        .find_map(|part| part.strip_suffix(" req/s"))?;
    rate.parse().ok()
}

/// The median and the 99th percentile, in ms, of lines with a start, a status and µs.
fn percentiles(times: &str) -> Option<[f64; 2]> {
    let times = times
        .lines()
        .map(|line| line.split('\t').nth(2)?.parse().ok());
    let mut times: Vec<f64> = times.collect::<Option<_>>()?;
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times.get((times.len() as f64 * share) as usize);
    Some([at(0.5)? / 1e3, at(0.99)? / 1e3])
}

type Rows = [(Exchange, [Vec<Sample>; WAYS.len()])];

fn show(report: &mut Report, rows: &Rows, rounds: usize) {
    let mut columns = vec![""];
    columns.extend(WAYS.iter().map(|way| way.name));
    let mut table = |title: &str, cell: fn(&[Sample]) -> String| {
        report.table(title, &columns);
        for (exchange, samples) in rows {
            let cells = samples.iter().map(|samples| cell(samples));
            report.row(std::iter::once(exchange.name()).chain(cells).collect());
        }
    };
    table("CPU µs of the server for a request", |samples| {
        let all = samples.iter().map(|sample| sample.cpu_us);
        let best = all.clone().fold(f64::NAN, f64::min);
        let middle = median(&mut all.collect::<Vec<_>>());
        format!("{} ({})", figure(best), figure(middle))
    });
    table("Requests a second", |samples| {
        let all = samples.iter().map(|sample| sample.per_second);
        let best = all.clone().fold(f64::NAN, f64::max);
        let middle = median(&mut all.collect::<Vec<_>>());
        format!("{best:.0} ({middle:.0})")
    });
    table("Latency in ms: median, 99th percentile", |samples| {
        let middle =
            |of: fn(&Sample) -> f64| median(&mut samples.iter().map(of).collect::<Vec<_>>());
        let p50 = middle(|sample| sample.p50_ms);
        format!(
            "{}, {}",
            figure(p50),
            figure(middle(|sample| sample.p99_ms))
        )
    });
    report.note(format!(
        "The best of {rounds} rounds in which all columns take turns, with the median in parentheses; \
         latencies are medians. {REQUESTS_FIXED} requests each of the first two rows, {REQUESTS} of others, \
         {REQUESTS_LARGE} of 100 kB. Unless the column says otherwise, {CONNECTIONS} connections send the next \
         request as soon as they have their answer."
    ));
    report.note(
        "A push has one line of this size, which is durable before the answer; an answer has one such line. \
         Their cost outside of the listener is the same in all columns. So compare columns, not rows. Only the \
         listener of OTLP over gRPC speaks HTTP/2 without TLS."
            .into(),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_h2load_says_is_read() {
        let said = "finished in 1.5s, 123.25 req/s, 1.00MB/s\nrequests: 10 total, 10 started, 10 done, \
                    10 succeeded, 0 failed, 0 errored, 0 timeout\n";
        assert_eq!(per_second(said, 10), Some(123.25));
        assert_eq!(per_second(said, 11), None);
        let times: String = (0..100)
            .map(|at| format!("1000\t200\t{}\n", (100 - at) * 1_000))
            .collect();
        assert_eq!(percentiles(&times), Some([51.0, 100.0]));
        assert_eq!(percentiles("1\t200\n"), None);
        assert_eq!(line(1_000).len(), 1_000);
    }
}
