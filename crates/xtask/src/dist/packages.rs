//! Packages for Debian and for Fedora, by cargo-deb and cargo-generate-rpm. Their settings are in
//! `crates/logpond/Cargo.toml`, and their scripts in `contrib/packaging`.

use std::path::PathBuf;
use std::process::Command;

use super::{Release, at_epoch, made};
use crate::run::{Outcome, cargo, check, root};

/// The tools and their versions; another version may write other bytes.
const DEB: (&str, &str) = ("cargo-deb", "3.8.0");
const RPM: (&str, &str) = ("cargo-generate-rpm", "0.21.1");

/// Makes both packages.
pub(super) fn make(release: &Release) -> Outcome<()> {
    let link = root().join("target/dist/root");
    // The settings name the files below one path, whatever the platform is.
    let _ = std::fs::remove_file(&link);
    made(std::os::unix::fs::symlink(release.tree(), &link), &link)?;
    let version = &release.version;
    let debian = release.platform.debian;
    let name = format!("logpond_{version}-1_{debian}.deb");
    let mut deb = Command::new(tool(DEB)?);
    deb.current_dir(root())
        .args([
            "deb",
            "--quiet",
            "--no-build",
            "--no-strip",
            "--package",
            "logpond",
        ])
        .args(["--target", release.platform.target, "--output"])
        .arg(release.directory.join(name));
    at_epoch(release, &mut deb)?;
    let machine = release.platform.machine;
    let name = format!("logpond-{version}-1.{machine}.rpm");
    let mut rpm = Command::new(tool(RPM)?);
    rpm.current_dir(root())
        .args([
            "generate-rpm",
            "--package",
            "crates/logpond",
            "--auto-req",
            "no",
        ])
        .args([
            "--target",
            release.platform.target,
            "--arch",
            machine,
            "--output",
        ])
        .arg(release.directory.join(name));
    at_epoch(release, &mut rpm)
}

/// The path of a tool, which is installed below `target/tools` the first time.
fn tool((name, version): (&str, &str)) -> Outcome<PathBuf> {
    let directory = root()
        .join("target/tools")
        .join(format!("{name}-{version}"));
    let program = directory.join("bin").join(name);
    if !program.is_file() {
        eprintln!(
            "== installing {name} {version} below {}",
            directory.display()
        );
        let mut install = cargo();
        install
            .args([
                "install",
                "--locked",
                "--quiet",
                name,
                "--version",
                version,
                "--root",
            ])
            .arg(&directory);
        check(&mut install)?;
    }
    Ok(program)
}
