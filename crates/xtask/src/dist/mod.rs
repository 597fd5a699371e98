//! `cargo xtask dist`: everything of a release, below `target/dist`.
//!
//! ```text
//! page, program ─▶ symbols apart ─▶ root (files as they are installed) ─▶ tarball, deb, rpm, image
//!                                   Cargo.lock ─▶ SBOM                     all ─▶ SHA256SUMS
//! ```
//!
//! Invariants: the same inputs give the same bytes, so every time is `SOURCE_DATE_EPOCH`, every list
//! is sorted, and no path of the machine is in a file; a package without the built page is refused.

mod archive;
mod bill;
mod image;
#[cfg(test)]
mod manifests;
mod packages;
mod program;
mod tree;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::run::{Outcome, check, find_program, output, root};

/// The variable with the time of all files, in seconds since 1970.
const EPOCH: &str = "SOURCE_DATE_EPOCH";

/// The platform of the packages, and how others name it.
#[derive(Clone, Copy)]
pub(crate) struct Platform {
    /// The target of rustc.
    pub(crate) target: &'static str,
    /// The name in packages of Debian and in images.
    pub(crate) debian: &'static str,
    /// The name in packages of Fedora and in names of files.
    pub(crate) machine: &'static str,
    /// What the names of the binutils begin with where they are not this machine's.
    pub(crate) tools: &'static str,
    /// Programs that run programs of this platform elsewhere: the first that is there is taken.
    pub(crate) emulators: [&'static str; 2],
}

/// The platforms of releases.
const PLATFORMS: [Platform; 2] = [
    Platform {
        target: "x86_64-unknown-linux-gnu",
        debian: "amd64",
        machine: "x86_64",
        tools: "x86_64-linux-gnu-",
        emulators: ["qemu-x86_64", "qemu-x86_64-static"],
    },
    Platform {
        target: "aarch64-unknown-linux-gnu",
        debian: "arm64",
        machine: "aarch64",
        tools: "aarch64-linux-gnu-",
        emulators: ["qemu-aarch64", "qemu-aarch64-static"],
    },
];

/// One run.
pub(crate) struct Release {
    /// The version of the workspace.
    pub(crate) version: String,
    pub(crate) platform: Platform,
    /// Seconds since 1970 of every file.
    pub(crate) epoch: u64,
    /// Where everything is made.
    pub(crate) directory: PathBuf,
}

impl Release {
    /// The tree of files as they are installed.
    pub(crate) fn tree(&self) -> PathBuf {
        self.directory.join("root")
    }

    /// The beginning of the names of files.
    pub(crate) fn name(&self) -> String {
        format!("logpond-{}-linux-{}", self.version, self.platform.machine)
    }

    /// A file of the release.
    pub(crate) fn file(&self, end: &str) -> PathBuf {
        self.directory.join(format!("{}{end}", self.name()))
    }
}

/// Makes the files of a release, of this source or of a program that is built.
///
/// # Errors
/// When a tool is missing, or a part fails.
pub(crate) fn run(arguments: &[String]) -> Outcome<()> {
    let (mut given, mut targets) = (None, Vec::new());
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let mut value = || {
            rest.next()
                .cloned()
                .ok_or(format!("{argument} needs a value"))
        };
        match argument.as_str() {
            "--program" => given = Some(PathBuf::from(value()?)),
            "--target" => targets.push(value()?),
            other => return Err(format!("dist: no argument {other}")),
        }
    }
    need_tools()?;
    let host = host()?;
    if targets.is_empty() {
        targets.push(host.clone());
    }
    for target in targets {
        let known = PLATFORMS.iter().find(|platform| platform.target == target);
        let platform = *known.ok_or(format!("dist: no packages for {target}"))?;
        if let Some(lack) = program::lack(platform, &host) {
            eprintln!("skipped: no packages for {target} because {lack}");
            continue;
        }
        make(platform, given.as_deref())?;
    }
    Ok(())
}

fn make(platform: Platform, given: Option<&Path>) -> Outcome<()> {
    let release = Release {
        version: version()?,
        platform,
        epoch: epoch()?,
        directory: root().join("target/dist").join(platform.machine),
    };
    let _ = fs::remove_dir_all(&release.directory);
    made(fs::create_dir_all(&release.directory), &release.directory)?;
    let names = program::page()?;
    let built = match given {
        Some(path) => path.to_owned(),
        None => program::build(platform, release.epoch)?,
    };
    program::need_page(&built, &names)?;
    let symbols = program::split(&release, &built)?;
    tree::make(&release)?;
    archive::pack(&release, &release.tree(), &release.file(".tar.gz"))?;
    archive::pack(&release, &symbols, &release.file("-debug.tar.gz"))?;
    bill::write_of_lock(&release)?;
    packages::make(&release)?;
    image::make(&release)?;
    sums(&release)
}

/// Writes the checksums of the files, in the order of their names.
fn sums(release: &Release) -> Outcome<()> {
    let mut names = Vec::new();
    for entry in listed(&release.directory)? {
        if entry.is_file() {
            names.push(entry.file_name().unwrap_or_default().to_owned());
        }
    }
    let mut command = Command::new("sha256sum");
    let text = output(command.current_dir(&release.directory).args(&names))?;
    write(&release.directory.join("SHA256SUMS"), &text)?;
    eprint!("{text}");
    eprintln!("== the release is in {}", release.directory.display());
    Ok(())
}

/// Paths in a directory, sorted.
pub(crate) fn listed(directory: &Path) -> Outcome<Vec<PathBuf>> {
    let entries = fs::read_dir(directory).map_err(|e| format!("{}: {e}", directory.display()))?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    let mut paths: Vec<PathBuf> = paths.collect::<Result<_, _>>().map_err(|e| e.to_string())?;
    paths.sort();
    Ok(paths)
}

/// Writes a file, with its directory.
pub(crate) fn write(path: &Path, content: impl AsRef<[u8]>) -> Outcome<()> {
    if let Some(directory) = path.parent() {
        made(fs::create_dir_all(directory), directory)?;
    }
    made(fs::write(path, content), path)
}

/// Names the file of a failure.
pub(crate) fn made<T>(result: std::io::Result<T>, path: &Path) -> Outcome<T> {
    result.map_err(|error| format!("{}: {error}", path.display()))
}

/// Tools of any Linux distribution that the packages are made with.
fn need_tools() -> Outcome<()> {
    let tools = ["tar", "gzip", "sha256sum", "objcopy", "git"];
    let missing = tools.iter().filter(|tool| find_program(tool).is_none());
    let missing: Vec<&str> = missing.copied().collect();
    if missing.is_empty() {
        Ok(())
    } else {
        Err(format!("dist needs {}; install them", missing.join(", ")))
    }
}

/// The platform of this machine.
fn host() -> Outcome<String> {
    let text = output(Command::new("rustc").args(["--version", "--verbose"]))?;
    let line = text.lines().find_map(|line| line.strip_prefix("host: "));
    line.map(str::to_owned)
        .ok_or("rustc does not name its host".to_owned())
}

/// The time of the release: the variable, or the time of the last commit.
fn epoch() -> Outcome<u64> {
    let text = match std::env::var(EPOCH) {
        Ok(text) => text,
        Err(_) => {
            output(
                Command::new("git")
                    .current_dir(root())
                    .args(["log", "-1", "--format=%ct"]),
            )?
        }
    };
    text.trim()
        .parse()
        .map_err(|_| format!("{EPOCH}: expected seconds since 1970"))
}

fn version() -> Outcome<String> {
    let manifest = root().join("Cargo.toml");
    let text = made(fs::read_to_string(&manifest), &manifest)?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("version = \""));
    let version = line.and_then(|rest| rest.strip_suffix('"'));
    version
        .map(str::to_owned)
        .ok_or("Cargo.toml has no version".to_owned())
}

/// Runs a tool with the time of the release.
pub(crate) fn at_epoch(release: &Release, command: &mut Command) -> Outcome<()> {
    check(command.env(EPOCH, release.epoch.to_string()))
}
