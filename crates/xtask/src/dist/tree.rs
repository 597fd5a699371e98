//! The files of a release as they are installed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use super::program::runner;
use super::{Release, at_epoch, listed, made, write};
use crate::run::{Outcome, output, root};

/// Files of the repository, and the paths at which they are installed.
const FILES: [(&str, &str); 15] = [
    (
        "contrib/systemd/logpond.service",
        "usr/lib/systemd/system/logpond.service",
    ),
    (
        "contrib/systemd/logpond-forward.service",
        "usr/lib/systemd/system/logpond-forward.service",
    ),
    (
        "contrib/systemd/logpond-proxy.service",
        "usr/lib/systemd/system/logpond-proxy.service",
    ),
    (
        "contrib/systemd/logpond.sysusers",
        "usr/lib/sysusers.d/logpond.conf",
    ),
    (
        "contrib/systemd/logpond.tmpfiles",
        "usr/lib/tmpfiles.d/logpond.conf",
    ),
    (
        "contrib/systemd/drop-ins/journald.conf",
        "usr/share/doc/logpond/examples/journald.conf",
    ),
    (
        "contrib/systemd/drop-ins/low-ports.conf",
        "usr/share/doc/logpond/examples/low-ports.conf",
    ),
    (
        "contrib/prometheus/logpond.rules.yml",
        "usr/share/doc/logpond/examples/logpond.rules.yml",
    ),
    ("README.md", "usr/share/doc/logpond/README.md"),
    ("CHANGELOG.md", "usr/share/doc/logpond/CHANGELOG.md"),
    (
        "docs/reference/settings.md",
        "usr/share/doc/logpond/settings.md",
    ),
    ("docs/reference/cli.md", "usr/share/doc/logpond/cli.md"),
    (
        "docs/reference/metrics.md",
        "usr/share/doc/logpond/metrics.md",
    ),
    ("docs/security.md", "usr/share/doc/logpond/security.md"),
    ("LICENSE", "usr/share/doc/logpond/copyright"),
];

/// Shells, and the paths at which they look for completions.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/logpond"),
    ("zsh", "usr/share/zsh/vendor-completions/_logpond"),
    ("fish", "usr/share/fish/vendor_completions.d/logpond.fish"),
];

/// The settings file: every setting is commented out, at its default.
const SETTINGS: &str = "etc/logpond/logpond.toml";

/// Bits of programs and directories, and of all other files.
const PROGRAM_MODE: u32 = 0o755;
const FILE_MODE: u32 = 0o644;

/// Fills the tree; the program is in it.
pub(super) fn make(release: &Release) -> Outcome<()> {
    let tree = release.tree();
    for (from, to) in FILES {
        let from = root().join(from);
        write(&tree.join(to), made(fs::read(&from), &from)?)?;
    }
    let program = tree.join("usr/bin/logpond");
    let ask = |arguments: &[&str]| output(runner(release.platform, &program).args(arguments));
    for (shell, to) in COMPLETIONS {
        write(&tree.join(to), ask(&["completion", shell])?)?;
    }
    write(&tree.join(SETTINGS), ask(&["config", "default"])?)?;
    let manuals = tree.join("usr/share/man/man1");
    ask(&["man", "--out", &manuals.display().to_string()])?;
    for page in listed(&manuals)? {
        let mut gzip = Command::new("gzip");
        at_epoch(release, gzip.args(["--no-name", "--best"]).arg(page))?;
    }
    set_modes(&tree, &program)
}

/// Gives every file the bits that it has when it is installed, whatever the umask is here.
fn set_modes(directory: &Path, program: &Path) -> Outcome<()> {
    for path in listed(directory)? {
        let is_open = path.is_dir() || path == program;
        let mode = if is_open { PROGRAM_MODE } else { FILE_MODE };
        made(
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)),
            &path,
        )?;
        if path.is_dir() {
            set_modes(&path, program)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The worst exposure that a service may have, by `systemd-analyze security`, in tenths.
    const EXPOSURE_MAX: &str = "20";

    #[test]
    fn services_are_confined() {
        let Some(tool) = crate::run::find_program("systemd-analyze") else {
            eprintln!("skipped: services are confined because systemd-analyze is not installed");
            return;
        };
        let units = FILES.iter().filter(|(from, _)| from.ends_with(".service"));
        for (from, _) in units {
            let threshold = format!("--threshold={EXPOSURE_MAX}");
            let mut command = Command::new(&tool);
            command.args(["security", "--offline=yes", "--no-pager", &threshold]);
            let said = output(command.arg(root().join(from)));
            assert!(said.is_ok(), "{from}: {said:?}");
        }
    }

    #[test]
    fn the_files_of_a_release_exist() {
        for (from, _) in FILES {
            assert!(root().join(from).is_file(), "no {from}");
        }
    }
}
