//! Senders to a socket like `/dev/log` while the disk stands still: a frozen file system.

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::daemons::{Daemon, Input, Kind};
use super::messages::text;
use super::pond::{Scratch, TestServer, wait_until};
use super::syslog::name;
use super::table::{Report, Target};
use crate::run::{Outcome, output};

/// Messages that are sent, and how many each millisecond.
const MESSAGES: usize = 30_000;
const EACH_MS: usize = 5;

/// How long a sender waits for a daemon before this counts as never.
const PATIENCE: Duration = Duration::from_secs(1);

/// How many waits in vain end a run.
const TIMEOUTS_MAX: usize = 3;

/// Size of the file system in bytes, of which little is used.
const DISK_BYTES: u64 = 1 << 30;

/// A file system of its own, which is unmounted with its owner.
struct Disk {
    path: PathBuf,
}

impl Disk {
    /// Makes one and mounts it; the error says why this is not possible here.
    fn mount(scratch: &Path) -> Outcome<Disk> {
        let (image, path) = (scratch.join("image"), scratch.join("disk"));
        let file = fs::File::create(&image).map_err(|e| e.to_string())?;
        file.set_len(DISK_BYTES).map_err(|e| e.to_string())?;
        fs::create_dir(&path).map_err(|e| e.to_string())?;
        output(Command::new("mkfs.ext4").arg("-q").arg(&image))?;
        output(
            Command::new("mount")
                .args(["-o", "loop"])
                .arg(&image)
                .arg(&path),
        )?;
        Ok(Disk { path })
    }

    /// `--freeze` or `--unfreeze`.
    fn freeze(&self, how: &str) -> Outcome<()> {
        output(Command::new("fsfreeze").arg(how).arg(&self.path)).map(drop)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = self.freeze("--unfreeze");
        let _ = Command::new("umount").arg("-l").arg(&self.path).status();
    }
}

/// The durations of sends, sorted, and the number of timeouts.
struct SendTimes {
    times: Vec<Duration>,
    timeouts: usize,
}

/// Measures Logpond and the daemons.
pub(super) fn measure(program: &Path, report: &mut Report) -> Outcome<()> {
    let columns = [
        "server",
        "sent",
        "p50 ms",
        "p99.9 ms",
        "longest ms",
        "stored afterwards",
        "target",
    ];
    report.table(
        "Sends to a socket like /dev/log while the disk is frozen",
        &columns,
    );
    for server in [None, Some(Kind::Rsyslog), Some(Kind::SyslogNg)] {
        let scratch = Scratch::new("bench-stall")?;
        let disk = match Disk::mount(scratch.path()) {
            Ok(disk) => disk,
            Err(why) => {
                report.row(vec![
                    name(server).into(),
                    format!("not possible here: {why}"),
                ]);
                continue;
            }
        };
        let socket = scratch.path().join("log");
        let measured = match server {
            None => Some(logpond(program, &disk, &socket)?),
            Some(kind) => daemon(kind, &disk, &socket)?,
        };
        let Some((sent, stored)) = measured else {
            report.row(vec![name(server).into(), "not installed".into()]);
            continue;
        };
        let at = |share: f64| {
            let index = (sent.times.len() as f64 * share) as usize;
            let time = sent
                .times
                .get(index.min(sent.times.len().saturating_sub(1)));
            time.map_or(f64::NAN, |time| time.as_secs_f64() * 1e3)
        };
        let count = match sent.timeouts {
            0 => sent.times.len().to_string(),
            _ => format!("{}, then blocked", sent.times.len() - sent.timeouts),
        };
        let target = Target::at_most(5.0, "p99.9 < 5 ms");
        report.row(vec![
            name(server).into(),
            count,
            format!("{:.3}", at(0.5)),
            format!("{:.3}", at(0.999)),
            format!("{:.3}", at(1.0)),
            stored.to_string(),
            server.map_or(target.judged(at(0.999)), |_| String::new()),
        ]);
    }
    report.note(format!(
        "{MESSAGES} messages of 170 bytes, {EACH_MS} a millisecond, each by a send that blocks for at most {} \
         s. The file system is frozen from before the first message until after the last.",
        PATIENCE.as_secs()
    ));
    Ok(())
}

fn send(socket: &Path) -> Outcome<SendTimes> {
    let sender = UnixDatagram::unbound().map_err(|e| e.to_string())?;
    sender.connect(socket).map_err(|e| e.to_string())?;
    sender
        .set_write_timeout(Some(PATIENCE))
        .map_err(|e| e.to_string())?;
    let messages: Vec<String> = (0..MESSAGES as u64)
        .map(|number| format!("<14>Mar  2 10:00:00 shop[4242]: {}\n", text(number, 140)))
        .collect();
    let mut sent = SendTimes {
        times: Vec::with_capacity(MESSAGES),
        timeouts: 0,
    };
    let start = Instant::now();
    for (number, message) in messages.iter().enumerate() {
        let due = Duration::from_micros((number / EACH_MS * 1000) as u64);
        while let Some(left) = due.checked_sub(start.elapsed()) {
            std::thread::park_timeout(left);
        }
        let begun = Instant::now();
        let done = sender.send(message.as_bytes());
        sent.times.push(begun.elapsed());
        if done.is_err() {
            sent.timeouts += 1;
            if sent.timeouts >= TIMEOUTS_MAX {
                break;
            }
        }
    }
    sent.times.sort_unstable();
    Ok(sent)
}

fn logpond(program: &Path, disk: &Disk, socket: &Path) -> Outcome<(SendTimes, u64)> {
    let path = socket.display().to_string();
    let pond = TestServer::start(program, &disk.path.join("data"), &["--dev-log", &path])?;
    disk.freeze("--freeze")?;
    let sent = send(socket);
    disk.freeze("--unfreeze")?;
    let sent = sent?;
    let wanted = (sent.times.len() - sent.timeouts) as f64;
    let records = || {
        let stored = pond.metric("logpond_ingest_records_total").unwrap_or(0.0);
        stored + pond.metric("logpond_ingest_lost_total").unwrap_or(0.0)
    };
    wait_until("everything is stored or counted as lost", || {
        records() >= wanted
    })?;
    let stored = pond.metric("logpond_ingest_records_total")?;
    Ok((sent, stored as u64))
}

fn daemon(kind: Kind, disk: &Disk, socket: &Path) -> Outcome<Option<(SendTimes, u64)>> {
    let directory = disk.path.join("daemon");
    let of = Input::Socket(socket.to_path_buf());
    let Some(mut daemon) = Daemon::start(kind, &of, &directory)? else {
        return Ok(None);
    };
    // It has its file open, as a daemon that runs has.
    let first = UnixDatagram::unbound().map_err(|e| e.to_string())?;
    first
        .send_to(b"<14>Mar  2 10:00:00 shop[4242]: first\n", socket)
        .map_err(|e| e.to_string())?;
    wait_until("the first message is written", || {
        daemon.lines().is_ok_and(|lines| lines == 1)
    })?;
    disk.freeze("--freeze")?;
    let sent = send(socket);
    disk.freeze("--unfreeze")?;
    let sent = sent?;
    let (mut last, mut since) = (0, Instant::now());
    wait_until("it is at rest", || {
        let now = daemon.lines().unwrap_or(0);
        if now != last {
            (last, since) = (now, Instant::now());
        }
        since.elapsed() > Duration::from_secs(2)
    })?;
    Ok(Some((sent, last - 1)))
}
