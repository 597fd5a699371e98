//! A mark on disk of the work in which the process is: what ends the process in it, such as the system
//! for want of memory, would do so again after each restart, so it is tried in smaller steps then.
//!
//! Invariants:
//! - The mark is there while a step is made, and at no other time, unless the process has ended in one.
//! - It decides how large steps are, never what is read or removed: without it, or with a wrong one, the
//!   same segments are made. So it is not synced: it is to outlive the process, not the machine.

use std::io::{self, ErrorKind};
use std::sync::Arc;

use logpond_segment::build::{MEMORY_BYTES_MAX, MEMORY_BYTES_MIN};
use logpond_segment::disk::Disk;

use logpond_host::telemetry::warn;

/// The directory of marks.
const DIRECTORY: &str = "steps";

/// How often steps are halved at most: from [`MEMORY_BYTES_MAX`] to less than [`MEMORY_BYTES_MIN`].
const HALVINGS_MAX: u32 = 5;

/// The part of the memory of the process that a step takes: queries and what comes in have the rest.
const STEP_SHARE: u64 = 6;

/// The longest mark; it is a number.
const MARK_BYTES_MAX: u64 = 16;

/// The mark of one thread's steps.
pub struct StepMark {
    disk: Arc<dyn Disk>,
    path: String,
    /// About the memory of a step that was not halved.
    bytes_max: u64,
    halvings: u32,
}

impl StepMark {
    /// The mark of a thread that is called `name`, in a process that may have so much memory. If an earlier process has ended in a step, those of this
    /// one are half as large as its were.
    pub fn new(disk: Arc<dyn Disk>, name: &str, process_bytes: u64) -> StepMark {
        let path = format!("{DIRECTORY}/{name}");
        let bytes_max = (process_bytes / STEP_SHARE).min(MEMORY_BYTES_MAX);
        let halvings = match left_over(&*disk, &path) {
            None => 0,
            Some(halvings) => {
                let halvings = (halvings + 1).min(HALVINGS_MAX);
                let mib = memory_bytes(bytes_max, halvings) >> 20;
                warn(&format!(
                    "the last process ended while it made a segment ({path} is left of it): steps are \
                     made smaller, with about {mib} MiB of memory; if the system ended it for want \
                     of memory, give it more"
                ));
                halvings
            }
        };
        StepMark {
            disk,
            path,
            bytes_max,
            halvings,
        }
    }

    /// About the memory that the rows of a step may take.
    pub fn memory_bytes_max(&self) -> u64 {
        memory_bytes(self.bytes_max, self.halvings)
    }

    /// How often steps were halved.
    pub(crate) fn halvings(&self) -> u32 {
        self.halvings
    }

    /// Makes a step, with the mark on disk meanwhile.
    ///
    /// # Errors
    /// When the mark cannot be written, and the step is not made, or cannot be removed behind it: then
    /// what it has made is to be discarded.
    pub fn during<T>(&self, step: impl FnOnce() -> T) -> io::Result<T> {
        self.set()?;
        let made = step();
        self.disk.remove(&self.path)?;
        Ok(made)
    }

    fn set(&self) -> io::Result<()> {
        self.disk.create_directory(DIRECTORY)?;
        let mut file = match self.disk.create(&self.path) {
            // An earlier process has left it.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                self.disk.remove(&self.path)?;
                self.disk.create(&self.path)?
            }
            created => created?,
        };
        file.append(self.halvings.to_string().as_bytes())
    }
}

fn memory_bytes(bytes_max: u64, halvings: u32) -> u64 {
    (bytes_max >> halvings).max(MEMORY_BYTES_MIN)
}

/// What the mark of an earlier process says; `None` if there is none.
fn left_over(disk: &dyn Disk, path: &str) -> Option<u32> {
    let file = disk.open(path).ok()?;
    let read = || {
        let bytes = file.bytes().ok()?.min(MARK_BYTES_MAX);
        let mut text = vec![0; bytes as usize];
        file.read_at(0, &mut text).ok()?;
        std::str::from_utf8(&text).ok()?.parse().ok()
    };
    // One that cannot be read was left all the same.
    Some(read().unwrap_or(0).min(HALVINGS_MAX))
}

#[cfg(test)]
mod tests {
    use logpond_segment::mem_disk::MemDisk;

    use super::*;

    #[test]
    fn a_step_that_ended_the_process_is_halved() {
        let disk = MemDisk::new();
        let new = || StepMark::new(Arc::new(disk.clone()), "store", u64::MAX);
        let small = StepMark::new(Arc::new(disk.clone()), "store", 240 << 20);
        assert_eq!(small.memory_bytes_max(), 40 << 20);
        let mark = new();
        assert_eq!(
            (mark.halvings(), mark.memory_bytes_max()),
            (0, MEMORY_BYTES_MAX)
        );
        assert_eq!(mark.during(|| 7).unwrap(), 7);
        assert_eq!(new().halvings(), 0, "it has ended in order");
        for halvings in 1..=HALVINGS_MAX + 2 {
            // The process ends in the step.
            new().set().unwrap();
            disk.end_process();
            let expected = halvings.min(HALVINGS_MAX);
            assert_eq!(new().halvings(), expected);
            assert!(new().memory_bytes_max() >= MEMORY_BYTES_MIN);
        }
        let mark = new();
        mark.during(|| ()).unwrap();
        assert_eq!(new().halvings(), 0);
        disk.write("steps/store", b"no number");
        assert_eq!(new().halvings(), 1);
        disk.write("steps/store", &[b'9'; 100]);
        assert_eq!(new().halvings(), 1);
    }
}
