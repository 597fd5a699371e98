//! System calls of a running node that fail, by strace.
//!
//! strace is attached to a node for the time of the fault and changes the results of its calls.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::plan::Calls;
use crate::e2e::pond::{signal, wait_within};
use crate::run::Outcome;

/// How long strace may take to attach or detach: it stops each thread once.
const DEADLINE: Duration = Duration::from_secs(10);

/// Files of the journal that follow on an open one: more than a node opens during a fault.
const FOLLOWING_MAX: u64 = 64;

/// Files that are written under these names, and then renamed or removed.
const TEMPORARY: [&str; 4] = [
    "inventory.new",
    "retention/state.new",
    "cluster/registry.new",
    "steps/store",
];

/// strace, attached to a process.
#[derive(Debug)]
pub(super) struct Tracer(Child);

impl Tracer {
    /// Has one of `step` calls of each thread of a process fail from now on.
    pub(super) fn attach(pid: u32, data: &Path, (calls, step): (Calls, u64)) -> Outcome<Tracer> {
        let (names, error) = match calls {
            Calls::Sync => ("fsync,fdatasync", "EIO"),
            Calls::Write => ("write,writev,pwrite64,pwritev", "ENOSPC"),
            Calls::Rename => ("?rename,renameat,renameat2,?unlink,unlinkat", "EIO"),
        };
        let mut command = Command::new("strace");
        let inject = format!("inject={names}:error={error}:when=1+{step}");
        command.args(["-e", &format!("trace={names}"), "-e", &inject]);
        if calls == Calls::Write {
            let paths = paths(data).map_err(|e| format!("{}: {e}", data.display()))?;
            for path in paths {
                command.arg("-P").arg(path);
            }
        }
        // A pipe that nobody reads would stop strace, and the node with it.
        command.stderr(Stdio::null());
        Tracer::start(command, pid)
    }

    /// Attaches strace with these arguments, and waits until each thread is traced.
    fn start(mut command: Command, pid: u32) -> Outcome<Tracer> {
        command.args(["-f", "-qq", "-o", "/dev/null", "-p", &pid.to_string()]);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.spawn().map_err(|e| format!("strace: {e}"))?;
        let mut tracer = Tracer(child);
        let mut is_over = false;
        let attached = wait_within(DEADLINE, "strace is attached", || {
            is_over = matches!(tracer.0.try_wait(), Ok(Some(_)));
            is_over || is_traced(pid)
        });
        match (attached, is_over) {
            (Ok(()), false) => Ok(tracer),
            (Ok(()), true) => Err(format!("strace ended: {}", tracer.complaint())),
            (Err(error), _) => Err(error),
        }
    }

    fn complaint(&mut self) -> String {
        let text = self.0.stderr.take().map(io::read_to_string);
        let text = text.and_then(Result::ok).unwrap_or_default();
        text.trim().to_owned()
    }

    /// Detaches it. True if strace was still there, so that calls failed all the time.
    pub(super) fn detach(mut self) -> Outcome<bool> {
        if matches!(self.0.try_wait(), Ok(Some(_))) {
            return Ok(false);
        }
        signal("TERM", self.0.id())?;
        wait_within(DEADLINE, "strace is detached", || {
            matches!(self.0.try_wait(), Ok(Some(_)))
        })?;
        Ok(true)
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Tries strace on a process that does nothing.
///
/// # Errors
/// Why it cannot be attached.
pub(super) fn probe() -> Outcome<()> {
    let mut idle = Command::new("cat")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .map_err(|e| format!("cat: {e}"))?;
    let inject = ["-e", "trace=fsync", "-e", "inject=fsync:error=EIO"];
    let mut command = Command::new("strace");
    command.args(inject).stderr(Stdio::piped());
    let traced = Tracer::start(command, idle.id()).and_then(Tracer::detach);
    let _ = idle.kill();
    let _ = idle.wait();
    traced.map(drop)
}

/// True if each thread of a process has a tracer.
fn is_traced(pid: u32) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return false;
    };
    threads.flatten().all(|thread| {
        // A thread that has ended needs none.
        let status = fs::read_to_string(thread.path().join("status"));
        status.map_or(true, |text| !text.contains("TracerPid:\t0\n"))
    })
}

/// Files whose writes fail: those that are there, and those that are written next. strace compares whole
/// paths, and writes to sockets must not fail with them.
fn paths(data: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    let mut directories = vec![data.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory)? {
            let path = entry?.path();
            if path.is_dir() {
                directories.push(path);
                continue;
            }
            paths.extend(following(&path));
            paths.push(path);
        }
    }
    paths.extend(TEMPORARY.map(|name| data.join(name)));
    Ok(paths)
}

/// The names of the next files of the journal, if this is an open one: `INCARNATION-SEQUENCE.open`.
fn following(path: &Path) -> Vec<PathBuf> {
    let name = path.file_name().and_then(|name| name.to_str());
    let stem = name.and_then(|name| name.strip_suffix(".open"));
    let parts = stem.and_then(|stem| stem.split_once('-'));
    let Some((incarnation, Ok(sequence))) =
        parts.map(|(incarnation, hex)| (incarnation, u64::from_str_radix(hex, 16)))
    else {
        return Vec::new();
    };
    let next = (1..=FOLLOWING_MAX).map(|ahead| sequence.saturating_add(ahead));
    let names = next.map(|sequence| format!("{incarnation}-{sequence:016x}.open"));
    names.map(|name| path.with_file_name(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_files_of_a_journal_are_known() {
        let next = following(Path::new("/d/journal/0a-00000000000000ff.open"));
        assert_eq!(next.len() as u64, FOLLOWING_MAX);
        assert_eq!(next[0], Path::new("/d/journal/0a-0000000000000100.open"));
        for other in [
            "/d/journal/0a-0000000000000001.journal",
            "/d/x.open",
            "/d/a-x.open",
        ] {
            assert!(following(Path::new(other)).is_empty(), "{other}");
        }
    }
}
