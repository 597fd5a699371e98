//! The allocator of the process: jemalloc, which says what it has handed out, and gives back what is free.

use std::fs;

use tikv_jemalloc_ctl::{Access, AsName, arenas, background_thread, epoch, stats};
use tikv_jemallocator::Jemalloc;

#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

/// Pages that the process has in memory, by kind.
const STATUS: &str = "/proc/self/status";
const FILE_LINES: [&str; 2] = ["RssFile:", "RssShmem:"];
const ANONYMOUS_LINES: [&str; 1] = ["RssAnon:"];

/// The memory of the process, in bytes. All zero if it cannot be measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// The memory that the allocator has handed out, with the rest of its pages and with its own notes, and what others
    /// than the allocator have: C code (zstd, cryptography) and stacks.
    pub in_use: usize,
    /// The memory that the system has given and did not get back, without pages of files.
    pub resident: usize,
    /// Pages of the program and of other files. The system takes them back when memory is short.
    pub files: usize,
}

impl Usage {
    /// The same with the pages of files, of which so many count.
    pub(super) fn with_files(self, files_max: usize) -> Usage {
        let files = self.files.min(files_max);
        Usage {
            in_use: self.in_use + files,
            resident: self.resident + files,
            files: self.files,
        }
    }

    /// The usage at this moment. Takes some ten microseconds.
    pub(super) fn now() -> Usage {
        // Numbers are those of the last epoch.
        if epoch::advance().is_err() {
            return Usage::default();
        }
        let read = |number: Result<usize, _>| number.unwrap_or(0);
        let status = status();
        let resident = read(stats::resident::read());
        // The allocator counts pages that it has not touched yet, so this is the least that others have.
        let others = status_bytes(&status, &ANONYMOUS_LINES).saturating_sub(resident);
        Usage {
            in_use: read(stats::active::read()) + read(stats::metadata::read()) + others,
            resident: resident + others,
            files: status_bytes(&status, &FILE_LINES),
        }
    }
}

/// The status of this process; empty if it cannot be read.
pub(super) fn status() -> String {
    fs::read_to_string(STATUS).unwrap_or_default()
}

/// The sum of some lines of the status of a process, which are in KiB.
pub(super) fn status_bytes(status: &str, names: &[&str]) -> usize {
    let kib = status.lines().filter_map(|line| {
        let value = names.iter().find_map(|name| line.strip_prefix(name))?;
        value.split_ascii_whitespace().next()?.parse::<usize>().ok()
    });
    kib.sum::<usize>() << 10
}

/// Has threads of the allocator give back pages that were free for some ten seconds, also while nothing is
/// allocated.
pub fn begin() {
    // Without such threads pages are given back by later allocations.
    let _ = background_thread::write(true);
}

/// Gives back all pages that are free.
pub(super) fn purge() {
    let count = arenas::narenas::read().unwrap_or(0);
    for number in 0..count {
        // Arenas that nothing was allocated in yet are not there.
        let name = format!("arena.{number}.dirty_decay_ms\0");
        let decay = name.as_str().name();
        let Ok(before) = Access::<isize>::read(decay) else {
            continue;
        };
        // A decay in no time is a purge.
        if decay.write(0_isize).is_ok() {
            let _ = decay.write(before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Set in the process of its own in which memory is looked at.
    const ALONE: &str = "LOGPOND_TEST_ALLOCATOR_ALONE";

    /// Other tests allocate and free as they like, so this one looks at memory in a process of its own.
    #[test]
    fn what_is_allocated_is_in_use_and_given_back() {
        const BYTES: usize = 64 << 20;
        if std::env::var_os(ALONE).is_none() {
            let name = "memory::allocator::tests::what_is_allocated_is_in_use_and_given_back";
            let own = std::env::current_exe().unwrap();
            let alone = std::process::Command::new(own)
                .args(["--exact", name])
                .env(ALONE, "1")
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&alone.stdout);
            assert!(
                alone.status.success() && said.contains("1 passed"),
                "{said}"
            );
            return;
        }
        let before = Usage::now();
        let block = vec![1_u8; BYTES];
        let during = Usage::now();
        assert!(
            during.in_use >= before.in_use + BYTES,
            "{before:?} {during:?}"
        );
        assert!(during.resident >= BYTES);
        drop(block);
        purge();
        let after = Usage::now();
        assert!(after.in_use + BYTES / 2 < during.in_use, "{after:?}");
    }
}
