//! How much memory there is, and when it is given back.

use std::fs;
use std::hint::black_box;

/// Where a container finds the bound of its memory (cgroup v2); the text `max` where there is none.
const CGROUP_MEMORY_MAX: &str = "/sys/fs/cgroup/memory.max";

/// More than any piece of memory that a small query takes.
const PIECE_BYTES: usize = 6 << 20;

/// Has the allocator keep the memory that small queries free for the next ones: giving it back, and asking for it
/// page by page again, took two fifths of the time of the last 100 rows.
///
/// That of glibc gives back what is free at the end of a heap beyond twice the largest piece that was mapped on its
/// own and freed, 128 KiB at first; so a piece is freed, of which no page was touched. Larger queries free such pieces
/// themselves. Other allocators are left as they are.
pub(crate) fn keep_freed() {
    drop(black_box(Vec::<u8>::with_capacity(PIECE_BYTES)));
}

/// The memory of the machine, or of the container if it has less, in bytes.
pub(crate) fn bytes() -> u64 {
    let of_machine = rustix::system::sysinfo();
    // Both are numbers of the C library, as wide as the platform's words.
    let of_machine = of_machine.totalram as u64 * u64::from(of_machine.mem_unit);
    of_machine.min(limit(fs::read_to_string(CGROUP_MEMORY_MAX).ok().as_deref()))
}

fn limit(text: Option<&str>) -> u64 {
    let number = text.and_then(|text| text.trim().parse().ok());
    number.unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_may_have_less_than_the_machine() {
        assert_eq!(limit(Some("536870912\n")), 512 << 20);
        assert_eq!([limit(Some("max\n")), limit(None)], [u64::MAX; 2]);
        assert!(bytes() > 1 << 20);
    }
}
