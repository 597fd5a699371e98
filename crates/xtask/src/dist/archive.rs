//! Archives whose bytes depend only on what is in them.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};

use super::{Release, made};
use crate::run::{Outcome, check};

/// Writes an archive with the files of a directory; they belong to root.
pub(super) fn tar(release: &Release, directory: &Path, to: &Path) -> Outcome<()> {
    // Names without `./` before them, as packages have them.
    let names = super::listed(directory)?;
    let names = names.iter().filter_map(|path| path.file_name());
    check(
        tool(release, "--create", directory, to, 0)
            .arg("--")
            .args(names),
    )
}

/// Appends directories of a directory, which belong to this user, without those above them.
pub(super) fn append(
    release: &Release,
    directory: &Path,
    names: &[&str],
    to: &Path,
    owner: u32,
) -> Outcome<()> {
    check(
        tool(release, "--append", directory, to, owner)
            .arg("--")
            .args(names),
    )
}

fn tool(release: &Release, action: &str, directory: &Path, to: &Path, owner: u32) -> Command {
    let mut command = Command::new("tar");
    command
        .args([action, "--format=gnu", "--sort=name", "--numeric-owner"])
        .arg(format!("--mtime=@{}", release.epoch))
        .arg(format!("--owner={owner}"))
        .arg(format!("--group={owner}"))
        .args(["--mode=go-w,u+rwX,go+rX", "--no-xattrs"])
        .arg("--file")
        .arg(to)
        .arg("--directory")
        .arg(directory);
    command
}

/// Compresses a file; no name and no time is in the result.
pub(super) fn gzip(from: &Path, to: &Path) -> Outcome<()> {
    let out = made(File::create(to), to)?;
    let mut command = Command::new("gzip");
    command.args(["--no-name", "--best", "--stdout"]).arg(from);
    check(command.stdout(Stdio::from(out)))
}

/// Writes a compressed archive of a tree.
pub(super) fn pack(release: &Release, tree: &Path, to: &Path) -> Outcome<()> {
    let plain = to.with_extension("plain");
    tar(release, tree, &plain)?;
    gzip(&plain, to)?;
    made(std::fs::remove_file(&plain), &plain)
}
