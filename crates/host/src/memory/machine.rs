//! How much memory the process may have: that of the machine, of the containers that it is in, or of its own
//! limits, whichever is least.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::{env, fmt, fs};

use rustix::process::{Resource, getrlimit};

use super::allocator;

/// Files of a control group that bound its memory (version 2); the text is `max` where there is no bound.
/// Above the second one the kernel slows the group down.
const V2_FILES: [&str; 2] = ["memory.max", "memory.high"];

/// The same of version 1; a number beyond all memory where there is no bound.
const V1_FILES: [&str; 1] = ["memory.limit_in_bytes"];

/// How many arenas the allocator of the C library makes.
const ARENAS: &str = "MALLOC_ARENA_MAX";

/// Settings of the program's own allocator: it gives address space back at once, and has few arenas.
const ALLOCATOR: (&str, &str) = (
    "_RJEM_MALLOC_CONF",
    "retain:false,narenas:2,dirty_decay_ms:0,muzzy_decay_ms:0",
);

/// A shell that begins the program that its first argument names, with the further ones. The standard library
/// catches the two signals of a stack that overflows only where nobody ignores them. Where it does, each thread
/// allocates a second stack as it begins, and the whole process is aborted if there is no room for one. The kernel
/// still ends a process whose ignored signal is a fault of its own. A shell says it because setting a signal takes
/// `unsafe`.
const WITHOUT_SECOND_STACKS: &str = "trap '' SEGV BUS; exec \"$0\" \"$@\"";

/// Has the process begin again where its address space is limited: with one arena for C code, because each further
/// one reserves 64 MiB of it, with an allocator that does not keep what it has freed, and with threads that need no
/// second stack.
pub fn begin_within_limits() {
    if getrlimit(Resource::As).current.is_none() || env::var_os(ARENAS).is_some() {
        return;
    }
    let mut arguments = env::args_os();
    let (Some(name), Ok(program)) = (arguments.next(), env::current_exe()) else {
        return;
    };
    // A shell would end where the program is not there any more.
    if !program.exists() {
        return;
    }
    let arguments: Vec<OsString> = arguments.collect();
    let (allocator, own) = ALLOCATOR;
    let of_allocator = env::var_os(allocator).unwrap_or_else(|| own.into());
    let variables = [(ARENAS, "1".into()), (allocator, of_allocator)];
    let mut by_shell = Command::new("/bin/sh");
    by_shell.arg("-c").arg(WITHOUT_SECOND_STACKS).arg(&program);
    // Each only returns if it cannot be done; what may fail later says so itself.
    let _ = by_shell.args(&arguments).envs(variables.clone()).exec();
    let mut without_shell = Command::new(program);
    let _ = without_shell
        .arg0(name)
        .args(arguments)
        .envs(variables)
        .exec();
}

/// Addresses that are left to the stacks of threads, 2 MiB each, and to what the allocator has beside what it handed out.
const STACKS_BYTES: u64 = 64 << 20;

/// The least memory that a server can work in under a limit of address space: the largest batch of one body takes most
/// of it while it grows. Where the system refuses memory, the standard library ends the process.
const ADDRESSED_BYTES_MIN: u64 = 160 << 20;

/// The limit of address space leaves too little beside the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressSpaceError {
    /// The limit.
    limit: u64,
    /// The least limit that is enough.
    limit_min: u64,
}

impl fmt::Display for AddressSpaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = |bytes: u64| bytes.div_ceil(1 << 20);
        write!(
            f,
            "the address space is limited to {} MiB (ulimit -v), and a server needs {} MiB: the program, its threads and \
             {} MiB of memory; raise the limit, or limit memory by --memory or a control group",
            mib(self.limit),
            mib(self.limit_min),
            ADDRESSED_BYTES_MIN >> 20
        )
    }
}

impl std::error::Error for AddressSpaceError {}

/// Looks whether a limit of address space leaves enough for a server.
///
/// # Errors
/// When it does not, with the limit that would.
pub fn check_address_space() -> Result<(), AddressSpaceError> {
    let Some(limit) = getrlimit(Resource::As).current else {
        return Ok(());
    };
    check_within(limit, &allocator::status())
}

fn check_within(limit: u64, status: &str) -> Result<(), AddressSpaceError> {
    let mapped = allocator::status_bytes(status, &["VmSize:"]) as u64;
    let limit_min = mapped + STACKS_BYTES + ADDRESSED_BYTES_MIN;
    if limit < limit_min {
        return Err(AddressSpaceError { limit, limit_min });
    }
    Ok(())
}

/// The bytes of address space that are left beside what the process has mapped and beside stacks; `None` without a limit.
pub fn address_room() -> Option<u64> {
    let limit = getrlimit(Resource::As).current?;
    Some(without_mapped([Some(limit), None], &allocator::status()))
}

/// The memory that this process may have, in bytes. A limit of address space counts without what the process has
/// mapped so far and without stacks: they are not memory that a query could have.
pub fn bytes() -> u64 {
    let of_machine = rustix::system::sysinfo();
    // Both are numbers of the C library, as wide as the platform's words.
    let of_machine = of_machine.totalram as u64 * u64::from(of_machine.mem_unit);
    let limits = [Resource::As, Resource::Data].map(|resource| getrlimit(resource).current);
    let of_process = without_mapped(limits, &allocator::status());
    let of_groups = of_groups(&|path| fs::read_to_string(path).ok());
    of_machine.min(of_groups).min(of_process)
}

/// The least of the limits of a process: of its address space and its data, each without what the status of the
/// process says that it has of it.
fn without_mapped(limits: [Option<u64>; 2], status: &str) -> u64 {
    let left = limits.into_iter().zip(["VmSize:", "VmData:"]);
    let left = left.filter_map(|(limit, line)| {
        let mapped = allocator::status_bytes(status, &[line]) as u64;
        Some(limit?.saturating_sub(mapped + STACKS_BYTES))
    });
    left.min().unwrap_or(u64::MAX)
}

/// The least bound of the control groups that the process is in. In a container the kernel shows only those
/// from the container's own on; without, a service has one of its own below those of the system.
fn of_groups(read: &dyn Fn(&str) -> Option<String>) -> u64 {
    let memberships = read("/proc/self/cgroup").unwrap_or_default();
    let mut least = u64::MAX;
    for line in memberships.lines() {
        // `NUMBER:CONTROLLERS:PATH`; version 2 has no controllers here.
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
            continue;
        };
        let (root, files) = match controllers {
            "" => ("/sys/fs/cgroup", &V2_FILES[..]),
            _ if controllers.split(',').any(|name| name == "memory") => {
                ("/sys/fs/cgroup/memory", &V1_FILES[..])
            }
            _ => continue,
        };
        let mut path = path.trim_end_matches('/');
        loop {
            for file in files {
                least = least.min(limit(read(&format!("{root}{path}/{file}")).as_deref()));
            }
            match path.rfind('/') {
                Some(parent) => path = &path[..parent],
                None => break,
            }
        }
    }
    least
}

fn limit(text: Option<&str>) -> u64 {
    let number = text.and_then(|text| text.trim().parse().ok());
    number.unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(files: &[(&str, &str)]) -> u64 {
        of_groups(&|path| {
            let found = files.iter().find(|(name, _)| *name == path);
            found.map(|(_, text)| (*text).to_owned())
        })
    }

    #[test]
    fn a_container_may_have_less_than_the_machine() {
        assert_eq!(limit(Some("536870912\n")), 512 << 20);
        assert_eq!([limit(Some("max\n")), limit(None)], [u64::MAX; 2]);
        assert!(bytes() > 1 << 20);
    }

    #[test]
    fn limits_count_without_what_is_mapped() {
        let status = "VmPeak:\t409600 kB\nVmSize:\t307200 kB\nVmData:\t 51200 kB\n";
        let of = |limits: [Option<u64>; 2]| {
            let limits = limits.map(|limit| limit.map(|mib| mib << 20));
            without_mapped(limits, status) >> 20
        };
        assert_eq!(of([None, None]), u64::MAX >> 20);
        assert_eq!(of([Some(512), None]), 512 - 300 - 64);
        assert_eq!(of([Some(512), Some(128)]), 128 - 50 - 64);
        assert_eq!(of([Some(100), None]), 0);
    }

    #[test]
    fn too_few_addresses_are_refused_with_the_number_that_would_do() {
        let status = "VmSize:\t307200 kB\n";
        assert_eq!(check_within(524 << 20, status), Ok(()));
        let refused = check_within(523 << 20, status).unwrap_err().to_string();
        for part in ["limited to 523 MiB (ulimit -v)", "needs 524 MiB"] {
            assert!(refused.contains(part), "{refused}");
        }
    }

    #[test]
    fn the_least_of_all_groups_counts() {
        let container = [
            ("/proc/self/cgroup", "0::/\n"),
            ("/sys/fs/cgroup/memory.max", "1073741824\n"),
        ];
        assert_eq!(of(&container), 1 << 30);
        let service = [
            ("/proc/self/cgroup", "0::/system.slice/logpond.service\n"),
            (
                "/sys/fs/cgroup/system.slice/logpond.service/memory.max",
                "max",
            ),
            (
                "/sys/fs/cgroup/system.slice/logpond.service/memory.high",
                "400",
            ),
            ("/sys/fs/cgroup/system.slice/memory.max", "500"),
        ];
        assert_eq!(of(&service), 400);
        assert_eq!(of(&service[..2]), u64::MAX);
        let version_1 = [
            (
                "/proc/self/cgroup",
                "9:cpu,cpuacct:/a\n7:memory:/docker/a\n",
            ),
            ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "600"),
            ("/sys/fs/cgroup/memory.max", "1"),
        ];
        assert_eq!(of(&version_1), 600);
        assert_eq!(of(&[]), u64::MAX);
    }
}
