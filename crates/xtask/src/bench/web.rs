//! A web application that logs much of each request to its machine's syslog: how many requests it
//! serves, whoever takes the messages.

use std::fs::{File, OpenOptions};
use std::hint::black_box;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::daemons::{Daemon, Input, Kind};
use super::messages::text;
use super::pond::{Scratch, TestServer, cpu_seconds, wait_until};
use super::table::{Report, Target, median};
use crate::run::Outcome;

/// Lines that a request logs.
const LINES: u64 = 60;

/// Requests that are served at once.
const CLIENTS: usize = 5;

/// What a request computes for beside that, on one core.
const WORK: Duration = Duration::from_millis(5);

/// How long each run takes.
const RUN: Duration = Duration::from_millis(2500);

/// Runs of each way, which take turns. What counts is the fastest: whatever else the machine does
/// makes runs slower and none faster.
const ROUNDS: usize = 6;

/// Where the application logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Nowhere,
    File,
    Logpond,
    Daemon(Kind),
}

const WAYS: [Way; 6] = [
    Way::Nowhere,
    Way::File,
    Way::Logpond,
    Way::Daemon(Kind::Rsyslog),
    Way::Daemon(Kind::SyslogNg),
    Way::Daemon(Kind::Syncing),
];

impl Way {
    fn name(self) -> &'static str {
        match self {
            Way::Nowhere => "no log",
            Way::File => "file, written by the application",
            Way::Logpond => "Logpond, durable",
            Way::Daemon(kind) => kind.name(),
        }
    }
}

/// The result of a run.
struct ServeResult {
    per_second: f64,
    /// CPU seconds for each thousand requests: of the application with its clients, and of whoever
    /// takes the messages.
    cpu: [f64; 2],
    lost: f64,
}

/// Measures all ways.
pub(super) fn measure(program: &Path, report: &mut Report) -> Outcome<()> {
    let columns = [
        "log",
        "requests a second",
        "of the file's rate",
        "CPU-s a thousand requests: application, daemon",
        "lines lost",
        "target",
    ];
    report.table("A web application that logs 60 lines a request", &columns);
    let rounds = rounds_of(WORK);
    let mut runs: Vec<Vec<ServeResult>> = WAYS.map(|_| Vec::new()).into();
    for _ in 0..ROUNDS {
        for (way, runs) in WAYS.into_iter().zip(&mut runs) {
            runs.extend(run(program, way, rounds)?);
        }
    }
    let best = |runs: &[ServeResult]| {
        runs.iter()
            .map(|run| run.per_second)
            .fold(f64::NAN, f64::max)
    };
    let file = WAYS.iter().position(|way| *way == Way::File);
    let file = file.map_or(f64::NAN, |at| best(&runs[at]));
    for (way, runs) in WAYS.into_iter().zip(&runs) {
        if runs.is_empty() {
            report.row(vec![way.name().into(), "not installed".into()]);
            continue;
        }
        let middle =
            |of: fn(&ServeResult) -> f64| median(&mut runs.iter().map(of).collect::<Vec<_>>());
        let share = best(runs) / file;
        let target = Target::at_least(0.95, ">= 95 % of the file's");
        report.row(vec![
            way.name().into(),
            format!("{:.0}", best(runs)),
            format!("{:.1} %", 100.0 * share),
            format!(
                "{:.2}, {:.2}",
                middle(|run| run.cpu[0]),
                middle(|run| run.cpu[1])
            ),
            format!("{:.0}", middle(|run| run.lost)),
            match way {
                Way::Logpond => target.judged(share),
                _ => String::new(),
            },
        ]);
    }
    report.note(format!(
        "HTTP over loopback, {CLIENTS} connections, a thread each. A request computes for {} ms, and sends \
         {LINES} lines of 150 bytes to a socket like /dev/log, or writes them to a file, one by one. All \
         processes share the cores of this machine. {} s each, the fastest of {ROUNDS} runs, taking turns; CPU \
         and lines are medians.",
        WORK.as_millis(),
        RUN.as_secs_f64()
    ));
    Ok(())
}

/// What a request computes with.
fn compute(rounds: u64) {
    let mut value = 0u64;
    for round in 0..rounds {
        value = black_box(
            value
                .wrapping_mul(0x5851_f42d_4c95_7f2d)
                .wrapping_add(round),
        );
    }
    black_box(value);
}

/// How many rounds of computing take so long, by the fastest of some trials.
fn rounds_of(time: Duration) -> u64 {
    let trial = 2_000_000;
    let taken = (0..20).map(|_| {
        let start = Instant::now();
        compute(trial);
        start.elapsed().as_secs_f64()
    });
    (trial as f64 * time.as_secs_f64() / taken.fold(f64::INFINITY, f64::min)) as u64
}

/// A log as the application sees it.
enum Log {
    Nowhere,
    File(File),
    Socket(UnixDatagram),
}

impl Log {
    fn open(way: Way, path: &Path) -> Outcome<Log> {
        let fails = |e: std::io::Error| format!("{}: {e}", path.display());
        Ok(match way {
            Way::Nowhere => Log::Nowhere,
            Way::File => {
                let file = OpenOptions::new().create(true).append(true).open(path);
                Log::File(file.map_err(fails)?)
            }
            Way::Logpond | Way::Daemon(_) => {
                let socket = UnixDatagram::unbound().map_err(fails)?;
                socket.connect(path).map_err(fails)?;
                Log::Socket(socket)
            }
        })
    }

    fn line(&mut self, line: &str) -> std::io::Result<()> {
        match self {
            Log::Nowhere => Ok(()),
            Log::File(file) => file.write_all(line.as_bytes()),
            Log::Socket(socket) => socket.send(line.as_bytes()).map(drop),
        }
    }
}

/// The application's side of a connection.
fn serve(stream: TcpStream, mut log: Log, rounds: u64, numbers: &AtomicU64) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut stream = stream;
    let mut line = String::new();
    loop {
        loop {
            line.clear();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            if line == "\r\n" {
                break;
            }
        }
        let number = numbers.fetch_add(1, Ordering::Relaxed);
        compute(rounds);
        for part in 0..LINES {
            let text = text(number * LINES + part, 120);
            log.line(&format!("<14>Mar  2 10:00:00 shop[4242]: {text}\n"))?;
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok\n")?;
    }
}

/// A client, which asks until it is told to stop; gives how often it was answered.
fn ask(address: SocketAddr, is_over: &AtomicBool) -> std::io::Result<u64> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut answered, mut line) = (0, String::new());
    while !is_over.load(Ordering::Relaxed) {
        stream.write_all(b"GET / HTTP/1.1\r\nHost: shop\r\n\r\n")?;
        loop {
            line.clear();
            reader.read_line(&mut line)?;
            if line == "ok\n" || line.is_empty() {
                break;
            }
        }
        answered += 1;
    }
    Ok(answered)
}

/// Serves for a while; gives requests and seconds.
fn load(way: Way, path: &Path, rounds: u64) -> Outcome<(u64, f64)> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|e| e.to_string())?;
    let address = listener.local_addr().map_err(|e| e.to_string())?;
    let is_over = Arc::new(AtomicBool::new(false));
    let numbers = AtomicU64::new(0);
    thread::scope(|scope| {
        let start = Instant::now();
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| scope.spawn(|| ask(address, &is_over)))
            .collect();
        for _ in 0..CLIENTS {
            let (stream, _) = listener.accept().map_err(|e| e.to_string())?;
            stream.set_nodelay(true).map_err(|e| e.to_string())?;
            let log = Log::open(way, path)?;
            scope.spawn(|| serve(stream, log, rounds, &numbers));
        }
        thread::sleep(RUN);
        is_over.store(true, Ordering::Relaxed);
        let mut answered = 0;
        for client in clients {
            let count = client.join().map_err(|_| "a client panicked".to_string())?;
            answered += count.map_err(|e| e.to_string())?;
        }
        Ok((answered, start.elapsed().as_secs_f64()))
    })
}

fn run(program: &Path, way: Way, rounds: u64) -> Outcome<Option<ServeResult>> {
    let scratch = Scratch::new("bench-web")?;
    let path = scratch.path().join("log");
    let (socket, mut server, mut daemon) = (path.display().to_string(), None, None);
    match way {
        Way::Nowhere | Way::File => {}
        Way::Logpond => {
            let data = scratch.path().join("data");
            server = Some(TestServer::start(program, &data, &["--dev-log", &socket])?);
        }
        Way::Daemon(kind) => {
            let directory = scratch.path().join("daemon");
            daemon = Daemon::start(kind, &Input::Socket(path.clone()), &directory)?;
            if daemon.is_none() {
                return Ok(None);
            }
        }
    }
    let pid = server
        .as_ref()
        .map(TestServer::pid)
        .or(daemon.as_ref().map(Daemon::pid));
    let cpu = || pid.map_or(Ok(0.0), cpu_seconds);
    let before = [cpu_seconds(std::process::id())?, cpu()?];
    let (requests, seconds) = load(way, &path, rounds)?;
    let application = cpu_seconds(std::process::id())? - before[0];
    let sent = requests * LINES;
    let mut stored = || match (&server, &mut daemon) {
        (Some(server), _) => server.metric("logpond_ingest_records_total").unwrap_or(0.0),
        (_, Some(daemon)) => daemon.lines().unwrap_or(0) as f64,
        _ => sent as f64,
    };
    // A syncing daemon has what it has taken; the others are given the time to write.
    let (mut last, mut since) = (stored(), Instant::now());
    wait_until("everything is written", || {
        let now = stored();
        if now != last {
            (last, since) = (now, Instant::now());
        }
        now >= sent as f64 || since.elapsed() > Duration::from_secs(3)
    })?;
    Ok(Some(ServeResult {
        per_second: requests as f64 / seconds,
        cpu: [application, cpu()? - before[1]].map(|seconds| seconds / (requests as f64 / 1e3)),
        lost: sent as f64 - last,
    }))
}
