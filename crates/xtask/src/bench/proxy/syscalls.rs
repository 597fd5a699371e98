//! How many system calls processes make, counted by `strace`.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::bench::pond::wait_until;
use crate::run::{Outcome, find_program};

/// A running count. Dropping it ends the count without a result.
pub(super) struct Count {
    strace: Child,
    result: std::path::PathBuf,
}

impl Count {
    /// Whether there is anything to count with.
    pub(super) fn is_possible() -> bool {
        find_program("strace").is_some()
    }

    /// Begins to count what these processes and their threads do.
    pub(super) fn start(pids: &[u32], result: &Path) -> Outcome<Count> {
        let strace = find_program("strace").ok_or("there is no strace")?;
        let mut command = Command::new(strace);
        command.args(["-f", "-c", "-o"]).arg(result);
        for pid in pids {
            command.args(["-p", &pid.to_string()]);
        }
        let strace = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|e| format!("strace: {e}"))?;
        let mut count = Count {
            strace,
            result: result.to_owned(),
        };
        let mut has_ended = false;
        wait_until("strace watches", || {
            has_ended = count.strace.try_wait().is_ok_and(|status| status.is_some());
            has_ended || pids.iter().all(|pid| is_traced(*pid))
        })?;
        if has_ended {
            Err("strace may not watch the processes".into())
        } else {
            Ok(count)
        }
    }

    /// Ends it; gives how many there were.
    pub(super) fn end(mut self) -> Outcome<u64> {
        self.stop(Signal::INT);
        let text = fs::read_to_string(&self.result);
        let text = text.map_err(|e| format!("{}: {e}", self.result.display()))?;
        Ok(calls(&text))
    }

    fn stop(&mut self, signal: Signal) {
        let pid = i32::try_from(self.strace.id()).ok().and_then(Pid::from_raw);
        if let (Some(pid), Ok(None)) = (pid, self.strace.try_wait()) {
            let _ = kill_process(pid, signal);
        }
        let _ = self.strace.wait();
    }
}

impl Drop for Count {
    fn drop(&mut self) {
        // It lets go of what it watches at any signal that it can take.
        self.stop(Signal::TERM);
    }
}

/// Whether all threads of a process are watched.
fn is_traced(pid: u32) -> bool {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return false;
    };
    threads.flatten().all(|thread| {
        let status = fs::read_to_string(thread.path().join("status")).unwrap_or_default();
        let tracer = status.lines().find_map(|l| l.strip_prefix("TracerPid:"));
        tracer.is_some_and(|tracer| tracer.trim() != "0")
    })
}

/// The sum of the calls in the table that `strace -c` writes.
fn calls(table: &str) -> u64 {
    let rows = table.lines().filter_map(|line| {
        let cells: Vec<&str> = line.split_whitespace().collect();
        cells[..].first()?.parse::<f64>().ok()?;
        match cells.last() {
            Some(&"total") => None,
            _ => cells.get(3)?.parse::<u64>().ok(),
        }
    });
    rows.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_summed_without_their_total() {
        let table = "\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 61.01    0.000180          18        10           write
 38.99    0.000115          11        10         3 read
  0.00    0.000000           0         1           epoll_wait
------ ----------- ----------- --------- --------- ----------------
100.00    0.000295          14        21         3 total
";
        assert_eq!(calls(table), 21);
        assert_eq!(calls(""), 0);
    }
}
