//! How busy the machine is, whoever keeps it so.

use std::fs;
use std::thread;

use crate::run::Outcome;

/// Ticks of `/proc/stat` a second: the kernel's `USER_HZ`, which is 100 wherever Rust runs on Linux.
const TICKS_PER_SECOND: f64 = 100.0;

/// Its processors.
pub(super) fn cores() -> f64 {
    thread::available_parallelism().map_or(1.0, |n| n.get() as f64)
}

/// Seconds that all processors together were busy since the machine was started, the seconds that its
/// host took from them included.
pub(super) fn busy_seconds() -> Outcome<f64> {
    let text = fs::read_to_string("/proc/stat").map_err(|e| format!("/proc/stat: {e}"))?;
    busy_of(&text).ok_or("/proc/stat: no line of all processors".into())
}

/// By the first line of `/proc/stat` (proc_stat(5)): user, nice, system, idle, iowait, irq, softirq,
/// steal. What guests take is in user already.
fn busy_of(stat: &str) -> Option<f64> {
    let fields = stat.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Option<Vec<f64>> = fields.split_whitespace().map(|f| f.parse().ok()).collect();
    match ticks?.as_slice() {
        [user, nice, system, _idle, _iowait, irq, softirq, steal, ..] => {
            Some((user + nice + system + irq + softirq + steal) / TICKS_PER_SECOND)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_and_waiting_for_disks_is_not_busy() {
        let stat = "cpu  100 20 30 4000 500 6 7 37 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\n";
        assert_eq!(busy_of(stat), Some(2.0));
        assert_eq!(busy_of("cpu0 1 2 3 4 5 6 7 8 0 0\n"), None);
        assert_eq!(busy_of("cpu  1 2 x\n"), None);
        assert_eq!(busy_of(""), None);
    }

    #[test]
    fn this_machine_says_how_busy_it_was() {
        assert!(busy_seconds().unwrap() > 0.0);
    }
}
