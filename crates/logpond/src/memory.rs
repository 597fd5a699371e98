//! How much memory there is.

use std::fs;

/// Where a container finds the bound of its memory (cgroup v2); the text `max` where there is none.
const CGROUP_MEMORY_MAX: &str = "/sys/fs/cgroup/memory.max";

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
