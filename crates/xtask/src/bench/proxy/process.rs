//! What processes cost, all that come of one together.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit};

use crate::bench::pond::{cpu_seconds, wait_until};
use crate::run::{Outcome, find_program};

/// A process with those that it has started. Dropping it kills all of them.
pub(super) struct Tree {
    child: Child,
}

impl Tree {
    /// Starts a command on a core, with what it says in a file, and waits until it is ready.
    ///
    /// # Errors
    ///
    /// If it cannot be started, or ends before it is ready; with what it said.
    pub(super) fn start(
        command: &Command,
        core: Option<usize>,
        said: &Path,
        is_ready: impl Fn() -> bool,
    ) -> Outcome<Tree> {
        let fails = |e: std::io::Error| format!("{}: {e}", said.display());
        let file = fs::File::create(said).map_err(fails)?;
        let mut command = pinned(command, core);
        let child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(file)
            .spawn()
            .map_err(|e| format!("{command:?}: {e}"))?;
        let mut tree = Tree { child };
        let mut has_ended = false;
        wait_until("a server listens", || {
            has_ended = tree.child.try_wait().is_ok_and(|status| status.is_some());
            has_ended || is_ready()
        })?;
        if has_ended {
            let text = fs::read_to_string(said).map_err(fails)?;
            return Err(match text.trim().lines().last() {
                Some(line) => format!("it ended, and said: {line}"),
                None => "it ended".into(),
            });
        }
        Ok(tree)
    }

    /// Its processes, the first one first.
    pub(super) fn pids(&self) -> Vec<u32> {
        let parents = parents();
        let mut pids = vec![self.child.id()];
        let mut at = 0;
        while let Some(parent) = pids.get(at).copied() {
            pids.extend(
                parents
                    .iter()
                    .filter(|(_, p)| **p == parent)
                    .map(|(pid, _)| pid),
            );
            at += 1;
        }
        pids
    }

    /// CPU seconds so far, user and system, of ended threads, too.
    pub(super) fn cpu(&self) -> Outcome<f64> {
        self.pids().into_iter().map(cpu_seconds).sum()
    }

    /// Bytes of memory; what several processes share is divided among them.
    pub(super) fn memory_bytes(&self) -> Outcome<u64> {
        let pids = self.pids().into_iter();
        pids.map(|pid| {
            let path = format!("/proc/{pid}/smaps_rollup");
            let text = fs::read_to_string(&path).map_err(|e| format!("{path}: {e}"))?;
            proportional_bytes(&text).ok_or_else(|| format!("{path} has no Pss"))
        })
        .sum()
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        for pid in self.pids() {
            if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
        let _ = self.child.wait();
    }
}

/// The same command by `taskset`, where there is one.
fn pinned(command: &Command, core: Option<usize>) -> Command {
    let (Some(core), Some(taskset)) = (core, find_program("taskset")) else {
        let mut same = Command::new(command.get_program());
        copy(command, &mut same);
        return same;
    };
    let mut outer = Command::new(taskset);
    outer
        .args(["-c", &core.to_string()])
        .arg(command.get_program());
    copy(command, &mut outer);
    outer
}

fn copy(from: &Command, to: &mut Command) {
    to.args(from.get_args());
    for (name, value) in from.get_envs() {
        match value {
            Some(value) => to.env(name, value),
            None => to.env_remove(name),
        };
    }
}

/// Has the calling thread, and those that it starts, run on a core only, where there is `taskset`.
pub(super) fn pin_thread(core: Option<usize>) {
    let thread = fs::read_link("/proc/thread-self").unwrap_or_default();
    let (Some(core), Some(taskset), Some(thread)) =
        (core, find_program("taskset"), thread.file_name())
    else {
        return;
    };
    let mut command = Command::new(taskset);
    command.args(["-cp", &core.to_string()]).arg(thread);
    if let Err(error) = crate::run::output(&mut command) {
        eprintln!("the client is not pinned: {error}");
    }
}

/// The parent of every process.
fn parents() -> BTreeMap<u32, u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter_map(|pid| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        Some((pid, parent(&stat)?))
    })
    .collect()
}

/// The parent in what `/proc/PID/stat` says; names may have spaces and parentheses.
fn parent(stat: &str) -> Option<u32> {
    let (_, rest) = stat.rsplit_once(") ")?;
    rest.split(' ').nth(1)?.parse().ok()
}

fn proportional_bytes(rollup: &str) -> Option<u64> {
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib << 10)
}

/// Raises the limit of open files as far as it goes, for what is started, too; gives it.
pub(super) fn raise_open_files() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    let _ = setrlimit(Resource::Nofile, raised);
    let limit = getrlimit(Resource::Nofile);
    limit.current.unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parents_are_found_behind_any_name() {
        assert_eq!(parent("12 (a) b (c) S 7 12 12 0"), Some(7));
        assert_eq!(parent("12 (a"), None);
        assert_eq!(
            parents().get(&std::process::id()),
            Some(&std::os::unix::process::parent_id())
        );
    }

    #[test]
    fn memory_is_read_in_bytes() {
        let rollup =
            "55a-7ff ---p 0 [rollup]\nRss:  20 kB\nPss:                  12 kB\nPss_Anon: 3 kB\n";
        assert_eq!(proportional_bytes(rollup), Some(12 << 10));
        assert_eq!(proportional_bytes("Rss: 20 kB\n"), None);
    }
}
