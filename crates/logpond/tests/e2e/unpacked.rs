//! Programs of packages that `./test` unpacks below `target/tools` instead of installing them.
//!
//! The tests and the benchmark share it.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program of such a package, or the one that is installed; none where there is neither.
pub(crate) fn unpacked(package: &str, name: &str) -> Option<Command> {
    let runs = |command: &mut Command| command.arg("-V").output().is_ok();
    if runs(&mut Command::new(name)) {
        return Some(Command::new(name));
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let target = env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from);
    let directory = target.join("tools").join(package);
    let paths = ["usr/sbin", "usr/bin"].map(|part| directory.join(part).join(name));
    let path = paths.iter().find(|path| path.exists())?;
    let libraries = library_directories(&directory.join("usr/lib"));
    let make = || {
        let mut command = Command::new(path);
        command
            .env("SYSLOGNG_PREFIX", directory.join("usr"))
            .env("LD_LIBRARY_PATH", &libraries);
        command
    };
    runs(&mut make()).then(make)
}

/// Where such a package has libraries: those of syslog-ng, and those of each platform, as a list.
fn library_directories(libraries: &Path) -> OsString {
    let entries = fs::read_dir(libraries).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path()).filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name == "syslog-ng" || name.ends_with("-linux-gnu")
    });
    env::join_paths(paths).unwrap_or_default()
}
