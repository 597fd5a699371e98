//! System calls that a proxy never makes, and an intruder might.
//!
//! They are refused (EPERM) rather than all others: a new version of the C library or of a runtime uses
//! new harmless ones, and a proxy that dies of it at night helps nobody.

use std::collections::BTreeMap;
use std::fs;

use logpond_record::cast;
use nix::libc;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, apply_filter_all_threads,
};

/// Into other processes, into the kernel, and out of what holds this one.
const REFUSED: [libc::c_long; 54] = [
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_fanotify_init,
    libc::SYS_fanotify_mark,
    libc::SYS_personality,
    libc::SYS_mknodat,
    libc::SYS_syslog,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_reboot,
    libc::SYS_vhangup,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    libc::SYS_lookup_dcookie,
];

/// Only some platforms have these.
#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: [libc::c_long; 6] = [
    libc::SYS_kexec_file_load,
    libc::SYS_mknod,
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS_uselib,
];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_HERE: [libc::c_long; 0] = [];

/// Calls of programs with short pointers (x32) have the numbers of others and this bit; some have
/// numbers of their own.
const X32: libc::c_long = 0x4000_0000;
const X32_ONLY: std::ops::RangeInclusive<libc::c_long> = 512..=547;

/// Namespaces, within which a process has rights that it has not outside.
const NAMESPACES: [libc::c_int; 7] = [
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];

/// Refuses them, for all threads and all that is started, for good.
///
/// # Errors
/// When the kernel has no seccomp.
pub(super) fn refuse() -> Result<(), String> {
    let failed = |error: String| format!("system calls cannot be refused: {error}");
    for filter in filters().map_err(|error| failed(error.to_string()))? {
        apply_filter_all_threads(&filter).map_err(|error| failed(error.to_string()))?;
    }
    Ok(())
}

/// Whether some are refused.
pub(super) fn are_refused() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mode = status
        .lines()
        .find_map(|line| line.strip_prefix("Seccomp:"));
    mode.is_some_and(|mode| mode.trim() == "2")
}

type Calls = BTreeMap<i64, Vec<SeccompRule>>;

fn filters() -> Result<[BpfProgram; 2], BackendError> {
    let refused = SeccompAction::Errno(libc::EPERM as u32);
    // Its flags are where a filter cannot look; the C library does without it where it is not there.
    let not_there = SeccompAction::Errno(libc::ENOSYS as u32);
    let clone3 = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    Ok([filter(calls()?, refused)?, filter(clone3, not_there)?])
}

fn calls() -> Result<Calls, BackendError> {
    let always = REFUSED.iter().chain(&REFUSED_HERE);
    let mut calls: Calls = always.map(|number| (*number, Vec::new())).collect();
    let mut rules = Vec::new();
    for flag in NAMESPACES {
        let flag = cast::low_u64(flag);
        let is_set = SeccompCmpOp::MaskedEq(flag);
        let condition = SeccompCondition::new(0, SeccompCmpArgLen::Dword, is_set, flag)?;
        rules.push(SeccompRule::new(vec![condition])?);
    }
    calls.insert(libc::SYS_clone, rules);
    if cfg!(target_arch = "x86_64") {
        let all: Vec<i64> = calls.keys().copied().chain(X32_ONLY).collect();
        calls.extend(all.iter().map(|number| (number | X32, Vec::new())));
    }
    Ok(calls)
}

fn filter(calls: Calls, action: SeccompAction) -> Result<BpfProgram, BackendError> {
    let platform = std::env::consts::ARCH.try_into()?;
    SeccompFilter::new(calls, SeccompAction::Allow, action, platform)?.try_into()
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// A filter holds one thread: the other tests go on as they were.
    #[test]
    fn refused_calls_fail_and_all_others_work() {
        let held = std::thread::spawn(|| {
            for filter in filters().unwrap() {
                seccompiler::apply_filter(&filter).unwrap();
            }
            // Root could do it otherwise; it changes nothing.
            let refused = rustix::process::chroot("/");
            assert_eq!(refused.unwrap_err(), rustix::io::Errno::PERM);
            // Both clone.
            std::thread::spawn(|| ()).join().unwrap();
            let program = std::env::current_exe().unwrap();
            let output = Command::new(program).arg("--list").output().unwrap();
            assert!(output.status.success());
        });
        held.join().unwrap();
    }
}
