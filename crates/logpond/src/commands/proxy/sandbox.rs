//! What a process that serves may still do, where `--sandbox` asks for it: read its own files and those
//! that programs need to start, write the spool of records and certificates that it has ordered, and none of the system calls that only an
//! intruder would make.
//!
//! Files and ports are held by Landlock, system calls by seccomp; both hold for the process that takes
//! over at SIGUSR2, too, as they do for all that is started from here. Connecting stays free: settings
//! that are read again may name other upstreams.

mod system_calls;

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, Scope, path_beneath_rules,
};

use super::upgrade;
use crate::cli::Proxy;
use crate::commands::Failure;
use logpond_host::terminal::with_causes;

/// What there must be: the first version that holds ports, too.
const LANDLOCK_MIN: ABI = ABI::V4;

/// What is wrong where there is less.
const KERNEL: &str = "the kernel does not hold files and ports; it takes Linux 6.7 with \
                      CONFIG_SECURITY_LANDLOCK, and with landlock in its parameter lsm= if it has one";

/// Whose files programs read to start and to look up names, on any system; those that are not there
/// are left out. Not all of `/etc`, where the keys of others may be, nor all of `/usr`.
const READABLE: [&str; 27] = [
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
    "/usr/share/zoneinfo",
    "/etc/ld.so.cache",
    "/etc/ld.so.preload",
    "/etc/localtime",
    "/etc/timezone",
    // Names of users, and of machines.
    "/etc/passwd",
    "/etc/group",
    "/etc/nsswitch.conf",
    "/etc/host.conf",
    "/etc/hosts",
    "/etc/gai.conf",
    "/etc/services",
    "/run/systemd/resolve",
    // The authorities that the system trusts.
    "/etc/ssl/certs",
    "/etc/pki/tls/certs",
    "/etc/pki/ca-trust",
    "/usr/share/ca-certificates",
    "/usr/local/share/ca-certificates",
    // How much of the machine is ours: a process that takes over must come to the same number of workers.
    "/proc",
    "/sys/fs/cgroup",
    "/sys/devices/system/cpu",
    "/dev/random",
    "/dev/urandom",
];

/// Read with what it leads to: it is often a link to a file that is replaced by a renamed one.
const RESOLVER: &str = "/etc/resolv.conf";

/// What starts programs, by platform. Its directory counts, as an upgrade of the C library renames it.
const LOADERS: [&str; 2] = ["/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"];

/// Records and keys are for the owner only.
const WRITTEN_MODE: u32 = 0o700;

/// Nobody's, and read and written by all.
const NULL: &str = "/dev/null";

/// A process that is held.
pub(super) struct Sandbox {
    /// The directories beneath which its own files may be.
    own: Vec<PathBuf>,
}

impl Sandbox {
    /// Holds this process, and all that it starts. Before it has other threads, since Landlock holds
    /// only the one that asks; where the process before was held this one is already.
    ///
    /// # Errors
    /// When the kernel cannot do all of it, or the files are where everything would have to be readable.
    pub(super) fn enter(
        args: &Proxy,
        files: &[PathBuf],
        written: &[PathBuf],
        has_taken_over: bool,
    ) -> Result<Sandbox, Failure> {
        let failed = |reason: String| -> Failure { format!("--sandbox: {reason}").into() };
        let access = [&args.access.token_file, &args.access.ca_file];
        let files = files.iter().chain(access.into_iter().flatten());
        let own = directories(files).map_err(failed)?;
        let held = if has_taken_over && is_held() {
            Ok(())
        } else {
            hold(&own, written)
        };
        held.map_err(failed)?;
        Ok(Sandbox { own })
    }

    /// What an error that came of these files may be about: that one is where nothing may be read.
    pub(super) fn explain(&self, files: &[PathBuf], error: Failure) -> Failure {
        let is_outside = |path: &&PathBuf| {
            let real = fs::canonicalize(path);
            real.is_ok_and(|real| !self.own.iter().any(|own| real.starts_with(own)))
        };
        let Some(file) = files.iter().find(is_outside) else {
            return error;
        };
        let own: Vec<String> = self
            .own
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        format!(
            "{}; {} is not beneath what --sandbox lets be read since the proxy was started ({})",
            with_causes(&*error),
            file.display(),
            own.join(", ")
        )
        .into()
    }
}

fn hold(own: &[PathBuf], written: &[PathBuf]) -> Result<(), String> {
    let threads = fs::read_dir("/proc/self/task").map_err(|error| error.to_string())?;
    if threads.count() != 1 {
        return Err("there are threads already, which would not be held".to_owned());
    }
    for directory in written {
        let made = DirBuilder::new()
            .recursive(true)
            .mode(WRITTEN_MODE)
            .create(directory);
        made.map_err(|error| format!("{}: {error}", directory.display()))?;
    }
    hold_files(own, written).map_err(|error| format!("{KERNEL}: {}", with_causes(&error)))?;
    system_calls::refuse()?;
    if is_held() {
        Ok(())
    } else {
        Err("the kernel took it and does not do it".to_owned())
    }
}

fn hold_files(own: &[PathBuf], written: &[PathBuf]) -> Result<(), RulesetError> {
    let read: BitFlags<AccessFs> = AccessFs::ReadFile | AccessFs::ReadDir;
    let run = read | AccessFs::Execute;
    let all = AccessFs::from_all(LANDLOCK_MIN);
    let resolver = [Path::new(RESOLVER).to_owned()];
    let resolvers = directories(&resolver).unwrap_or_default();
    let resolvers = resolvers.iter().filter(|path| !path.ends_with("etc"));
    Ruleset::default()
        .set_compatibility(CompatLevel::HardRequirement)
        .handle_access(all)?
        .handle_access(AccessNet::BindTcp)?
        // What later kernels add.
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::IoctlDev)?
        .scope(Scope::Signal)?
        .create()?
        .add_rules(path_beneath_rules(READABLE, read))?
        .add_rules(path_beneath_rules([RESOLVER], read))?
        .add_rules(path_beneath_rules(resolvers, read))?
        .add_rules(path_beneath_rules(
            [NULL],
            read | AccessFs::WriteFile | AccessFs::Truncate,
        ))?
        .add_rules(path_beneath_rules(startable(), run))?
        .add_rules(path_beneath_rules(own, read))?
        .add_rules(path_beneath_rules(written, all & !AccessFs::Execute))?
        .restrict_self()?;
    Ok(())
}

/// The directories of what is started at SIGUSR2: the program is replaced by a renamed file.
fn startable() -> Vec<PathBuf> {
    let program = upgrade::program().into_iter();
    let loaders = LOADERS.map(PathBuf::from);
    let files = program.chain(loaders);
    let real = files.filter_map(|path| fs::canonicalize(path).ok());
    real.filter_map(|path| path.parent().map(Path::to_path_buf))
        .collect()
}

/// The directories in which these files are, and in which those are that they lead to. Files are
/// replaced by renamed ones, which are in the same directory and are others.
fn directories<'a>(files: impl IntoIterator<Item = &'a PathBuf>) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    for file in files {
        let named = match file.parent() {
            Some(directory) if directory.as_os_str().is_empty() => Path::new("."),
            Some(directory) => directory,
            None => Path::new("/"),
        };
        let real = fs::canonicalize(file).ok();
        let real = real.as_deref().and_then(Path::parent);
        let directories = fs::canonicalize(named).ok().into_iter();
        for directory in directories.chain(real.map(Path::to_path_buf)) {
            if directory == Path::new("/") {
                return Err(format!(
                    "{} is in /, all of which would have to be readable; put it in a directory",
                    file.display()
                ));
            }
            if !found.contains(&directory) {
                found.push(directory);
            }
        }
    }
    Ok(found)
}

/// Whether this process is held, by what happens: everybody may otherwise see what is in `/`.
fn is_held() -> bool {
    let root = fs::read_dir("/").map(|_| ());
    let is_denied = root.is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied);
    is_denied && system_calls::are_refused()
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::TcpListener;
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::process::Command;

    use super::*;

    #[test]
    fn files_may_be_where_they_are_and_where_they_lead_to() {
        let scratch = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(scratch.path()).unwrap();
        let [live, archive] = ["live", "archive"].map(|name| root.join(name));
        fs::create_dir(&live).unwrap();
        fs::create_dir(&archive).unwrap();
        fs::write(archive.join("1.pem"), "").unwrap();
        std::os::unix::fs::symlink("../archive/1.pem", live.join("a.pem")).unwrap();
        let files = [live.join("a.pem"), live.join("not-there")];
        assert_eq!(directories(&files).unwrap(), [live, archive]);
        let files = [PathBuf::from("/a.pem")];
        let error = directories(&files).unwrap_err();
        assert!(error.starts_with("/a.pem is in /"), "{error}");
    }

    #[test]
    fn only_files_outside_are_explained() {
        let scratch = tempfile::tempdir().unwrap();
        let file = scratch.path().join("a.pem");
        fs::write(&file, "").unwrap();
        let files = [file];
        let inside = Sandbox {
            own: directories(&files).unwrap(),
        };
        assert_eq!(inside.explain(&files, "bad".into()).to_string(), "bad");
        let outside = Sandbox { own: Vec::new() };
        let error = outside.explain(&files, "bad".into());
        let text = error.to_string();
        assert!(text.starts_with("bad; "), "{text}");
        assert!(
            text.contains("a.pem is not beneath what --sandbox"),
            "{text}"
        );
    }

    /// Landlock holds one thread: the other tests go on as they were.
    #[test]
    fn a_held_thread_does_what_it_must_and_no_more() {
        let scratch = tempfile::tempdir().unwrap();
        let [own, spool, other] = ["own", "spool", "other"].map(|name| {
            let directory = fs::canonicalize(scratch.path()).unwrap().join(name);
            fs::create_dir(&directory).unwrap();
            fs::write(directory.join("file"), "text").unwrap();
            directory
        });
        let listener = UnixListener::bind(other.join("socket")).unwrap();
        let held = std::thread::spawn(move || {
            if let Err(error) = hold_files(std::slice::from_ref(&own), std::slice::from_ref(&spool))
            {
                let _ = writeln!(io::stderr(), "skipped: {KERNEL}: {}", with_causes(&error));
                return;
            }
            fs::rename(spool.join("file"), spool.join("renamed")).unwrap();
            fs::write(spool.join("file"), "more").unwrap();
            assert_eq!(fs::read(own.join("file")).unwrap(), b"text");
            UnixStream::connect(other.join("socket")).unwrap();
            let denied = [
                fs::write(own.join("file"), "other").unwrap_err(),
                fs::read(other.join("file")).unwrap_err(),
                fs::read_dir("/").unwrap_err(),
                TcpListener::bind("127.0.0.1:0").unwrap_err(),
                Command::new("/bin/sh").spawn().unwrap_err(),
            ];
            let is_denied = |error: &io::Error| error.kind() == io::ErrorKind::PermissionDenied;
            assert!(denied.iter().all(is_denied), "{denied:?}");
            let own = Command::new(std::env::current_exe().unwrap())
                .arg("--list")
                .output();
            assert!(own.unwrap().status.success());
        });
        held.join().unwrap();
        drop(listener);
    }
}
