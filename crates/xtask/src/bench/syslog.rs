//! Syslog, beside rsyslog and syslog-ng on the same messages: what a million costs over TCP, and what
//! is lost of many datagrams.

use std::fs;
use std::io::Write;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::daemons::{Daemon, Input, Kind};
use super::ingest::{bytes_below, settle};
use super::messages::{SYSLOG_BYTES, syslog};
use super::pond::{Scratch, TestServer, cpu_seconds, memory_bytes, wait_until, wait_within};
use super::table::{Report, Target, median, megabytes};
use crate::run::{Outcome, free_address};

/// Messages over TCP.
const MESSAGES: u64 = 1_000_000;

/// Datagrams a second, and for how many seconds.
const DATAGRAMS_PER_SECOND: u64 = 100_000;
const SECONDS: u64 = 10;

/// Runs of each server, which take turns.
const ROUNDS: usize = 3;

/// Who takes in; none is Logpond.
type Server = Option<Kind>;
const SERVERS: [Server; 3] = [None, Some(Kind::Rsyslog), Some(Kind::SyslogNg)];

/// How long a daemon may take to write what it has in memory.
const QUIET: Duration = Duration::from_secs(20);

pub(super) fn name(server: Server) -> &'static str {
    server.map_or("Logpond", Kind::name)
}

/// Measures both ways.
pub(super) fn measure(program: &Path, report: &mut Report) -> Outcome<()> {
    over_tcp(program, report)?;
    over_udp(program, report)
}

/// What a run over TCP cost.
struct Cost {
    cpu: f64,
    wall: f64,
    peak: f64,
    disk: f64,
}

fn over_tcp(program: &Path, report: &mut Report) -> Outcome<()> {
    let columns = [
        "server",
        "CPU-s a million, all stored",
        "wall s",
        "peak memory",
        "disk",
        "target",
    ];
    report.table("A million syslog messages over TCP", &columns);
    let mut input = Vec::with_capacity((MESSAGES as usize) * (SYSLOG_BYTES + 1));
    for number in 0..MESSAGES {
        input.extend_from_slice(syslog(number).as_bytes());
        input.push(b'\n');
    }
    let mut costs: Vec<Vec<Cost>> = SERVERS.map(|_| Vec::new()).into();
    for _ in 0..ROUNDS {
        for (server, costs) in SERVERS.into_iter().zip(&mut costs) {
            costs.extend(match server {
                None => Some(tcp_to_logpond(program, &input)?),
                Some(kind) => tcp_to_daemon(kind, &input)?,
            });
        }
    }
    for (server, costs) in SERVERS.into_iter().zip(&costs) {
        if costs.is_empty() {
            report.row(vec![name(server).into(), "not installed".into()]);
            continue;
        }
        let middle = |of: fn(&Cost) -> f64| median(&mut costs.iter().map(of).collect::<Vec<_>>());
        let cpu = middle(|cost| cost.cpu);
        let target = Target::at_most(1.5, "<= 1.5 CPU-s");
        report.row(vec![
            name(server).into(),
            format!("{cpu:.2}"),
            format!("{:.1}", middle(|cost| cost.wall)),
            megabytes(middle(|cost| cost.peak)),
            megabytes(middle(|cost| cost.disk)),
            server.map_or(target.judged(cpu), |_| String::new()),
        ]);
    }
    report.note(format!(
        "Different RFC 5424 messages of {SYSLOG_BYTES} bytes over one connection; medians of {ROUNDS} runs, \
         taking turns. Stored means in segments, indexed, with the journal consumed; wall time includes the \
         wait until the journal closes. For the others it means in a file as they write it by default, without \
         an index and not synced."
    ));
    Ok(())
}

fn send_all(address: &str, input: &[u8]) -> Outcome<()> {
    let sent = TcpStream::connect(address).and_then(|mut stream| stream.write_all(input));
    sent.map_err(|e| format!("{address}: {e}"))
}

fn tcp_to_logpond(program: &Path, input: &[u8]) -> Outcome<Cost> {
    let scratch = Scratch::new("bench-syslog")?;
    let data = scratch.path().join("data");
    let pond = TestServer::start(program, &data, &[])?;
    let (start, before) = (Instant::now(), cpu_seconds(pond.pid())?);
    send_all(&pond.address("syslog_tcp"), input)?;
    let records = || pond.metric("logpond_ingest_records_total").unwrap_or(0.0);
    wait_until("all messages are taken", || records() >= MESSAGES as f64)?;
    settle(&data)?;
    Ok(Cost {
        cpu: cpu_seconds(pond.pid())? - before,
        wall: start.elapsed().as_secs_f64(),
        peak: memory_bytes(pond.pid(), "VmHWM")? as f64,
        disk: bytes_below(&data.join("segments"), ".parquet") as f64,
    })
}

fn tcp_to_daemon(kind: Kind, input: &[u8]) -> Outcome<Option<Cost>> {
    let scratch = Scratch::new("bench-daemon")?;
    let address = free_address()?;
    let of = Input::Tcp(parsed(&address)?);
    let Some(mut daemon) = Daemon::start(kind, &of, scratch.path())? else {
        return Ok(None);
    };
    let (start, before) = (Instant::now(), cpu_seconds(daemon.pid())?);
    send_all(&address, input)?;
    wait_until("all messages are written", || {
        daemon.lines().is_ok_and(|lines| lines >= MESSAGES)
    })?;
    let file = scratch.path().join("messages");
    Ok(Some(Cost {
        cpu: cpu_seconds(daemon.pid())? - before,
        wall: start.elapsed().as_secs_f64(),
        peak: memory_bytes(daemon.pid(), "VmHWM")? as f64,
        disk: fs::metadata(&file).map_or(f64::NAN, |file| file.len() as f64),
    }))
}

fn parsed(address: &str) -> Outcome<SocketAddr> {
    address.parse().map_err(|e| format!("{address}: {e}"))
}

fn over_udp(program: &Path, report: &mut Report) -> Outcome<()> {
    let title = "100,000 syslog datagrams a second for 10 seconds";
    report.table(
        title,
        &[
            "server",
            "stored",
            "lost",
            "CPU-s",
            "sent a second",
            "target",
        ],
    );
    let mut runs: Vec<Vec<(f64, f64, f64)>> = SERVERS.map(|_| Vec::new()).into();
    for _ in 0..ROUNDS {
        for (server, runs) in SERVERS.into_iter().zip(&mut runs) {
            runs.extend(match server {
                None => Some(udp_to_logpond(program)?),
                Some(kind) => udp_to_daemon(kind)?,
            });
        }
    }
    let sent = (DATAGRAMS_PER_SECOND * SECONDS) as f64;
    for (server, runs) in SERVERS.into_iter().zip(&runs) {
        if runs.is_empty() {
            report.row(vec![name(server).into(), "not installed".into()]);
            continue;
        }
        let middle =
            |of: fn(&(f64, f64, f64)) -> f64| median(&mut runs.iter().map(of).collect::<Vec<_>>());
        let stored = middle(|run| run.0);
        let lost = sent - stored;
        let target = Target::at_most(0.0, "none lost");
        report.row(vec![
            name(server).into(),
            format!("{stored:.0}"),
            format!("{lost:.0} ({:.2} %)", 100.0 * lost / sent),
            format!("{:.2}", middle(|run| run.1)),
            format!("{:.0}", middle(|run| run.2)),
            server.map_or(target.judged(lost), |_| String::new()),
        ]);
    }
    report.note(format!(
        "The same messages from one socket, a hundred each millisecond, which alone takes most of a core. \
         Medians of {ROUNDS} runs, taking turns. The daemons have receive buffers of 16 MiB; Logpond chooses \
         its own."
    ));
    Ok(())
}

/// Sends the datagrams at their rate; gives how many a second it were.
fn send_datagrams(address: SocketAddr) -> Outcome<f64> {
    let socket = UdpSocket::bind("127.0.0.1:0").map_err(|e| e.to_string())?;
    socket.connect(address).map_err(|e| e.to_string())?;
    let each_ms = DATAGRAMS_PER_SECOND / 1000;
    let messages: Vec<String> = (0..100_000).map(syslog).collect();
    let start = Instant::now();
    for ms in 0..SECONDS * 1000 {
        let due = Duration::from_millis(ms);
        while let Some(left) = due.checked_sub(start.elapsed()) {
            thread::park_timeout(left);
        }
        for number in ms * each_ms..(ms + 1) * each_ms {
            let message = &messages[number as usize % messages.len()];
            socket.send(message.as_bytes()).map_err(|e| e.to_string())?;
        }
    }
    Ok((DATAGRAMS_PER_SECOND * SECONDS) as f64 / start.elapsed().as_secs_f64())
}

/// Waits until no more messages come; gives how many there are.
fn at_rest(mut count: impl FnMut() -> Outcome<f64>) -> Outcome<f64> {
    let (mut last, mut since) = (count()?, Instant::now());
    let sent = (DATAGRAMS_PER_SECOND * SECONDS) as f64;
    wait_within(QUIET, "the daemon is at rest", || {
        let now = count().unwrap_or(f64::NAN);
        if now != last {
            (last, since) = (now, Instant::now());
        }
        now >= sent || since.elapsed() > Duration::from_secs(2)
    })?;
    Ok(last)
}

/// Messages stored, CPU seconds, and messages sent a second.
fn udp_to_logpond(program: &Path) -> Outcome<(f64, f64, f64)> {
    let scratch = Scratch::new("bench-udp")?;
    let pond = TestServer::start(program, &scratch.path().join("data"), &[])?;
    let before = cpu_seconds(pond.pid())?;
    let rate = send_datagrams(parsed(&pond.address("syslog_udp"))?)?;
    let stored = at_rest(|| pond.metric("logpond_ingest_records_total"))?;
    Ok((stored, cpu_seconds(pond.pid())? - before, rate))
}

fn udp_to_daemon(kind: Kind) -> Outcome<Option<(f64, f64, f64)>> {
    let scratch = Scratch::new("bench-udp")?;
    let address = parsed(&free_address()?)?;
    let Some(mut daemon) = Daemon::start(kind, &Input::Udp(address), scratch.path())? else {
        return Ok(None);
    };
    let before = cpu_seconds(daemon.pid())?;
    let rate = send_datagrams(address)?;
    let stored = at_rest(|| daemon.lines().map(|lines| lines as f64))?;
    let cpu = cpu_seconds(daemon.pid())? - before;
    Ok(Some((stored, cpu, rate)))
}
