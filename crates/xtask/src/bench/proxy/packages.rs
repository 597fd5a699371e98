//! Programs of Debian packages, which are unpacked below `target/tools` where they are not installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::e2e::unpacked::unpacked;
use crate::run::{Outcome, check, find_program, output, target_directory};

/// A program, by the packages that it is in.
#[derive(Clone, Copy, Debug)]
pub(super) struct PackagedProgram {
    /// Its own package first.
    pub(super) packages: &'static [&'static str],
    pub(super) program: &'static str,
    /// A file of another of the packages that is needed as well, below `/`.
    pub(super) module: Option<&'static str>,
}

impl PackagedProgram {
    /// The program, and where its module is; none where it can neither be found nor unpacked.
    pub(super) fn find(&self) -> Option<(Command, Option<PathBuf>)> {
        if let Some(found) = self.look() {
            return Some(found);
        }
        if let Err(error) = self.unpack() {
            eprintln!("{error}");
        }
        self.look()
    }

    fn directory(&self) -> PathBuf {
        target_directory().join("tools").join(self.packages[0])
    }

    fn look(&self) -> Option<(Command, Option<PathBuf>)> {
        let command = unpacked(self.packages[0], self.program)?;
        let Some(module) = self.module else {
            return Some((command, None));
        };
        let places = [Path::new("/").join(module), self.directory().join(module)];
        let place = places.into_iter().find(|place| place.is_file())?;
        Some((command, Some(place)))
    }

    /// Downloads the packages and the libraries that are not installed, and unpacks them.
    fn unpack(&self) -> Outcome<()> {
        if find_program("apt-get").is_none() || find_program("dpkg-deb").is_none() {
            return Ok(());
        }
        let directory = self.directory();
        eprintln!(
            "unpacking {} below {}",
            self.packages[0],
            directory.display()
        );
        let mut names: Vec<String> = self.packages.iter().map(|name| name.to_string()).collect();
        let mut at = 0;
        while let Some(name) = names.get(at) {
            for library in libraries_of(name)? {
                if !names.contains(&library) && !is_installed(&library) {
                    names.push(library);
                }
            }
            at += 1;
        }
        let downloads = directory.join("downloads");
        fs::create_dir_all(&downloads).map_err(|e| format!("{}: {e}", downloads.display()))?;
        let mut download = Command::new("apt-get");
        download.current_dir(&downloads).args(["-qq", "download"]);
        check(download.args(&names))?;
        let entries = fs::read_dir(&downloads).map_err(|e| e.to_string())?;
        for file in entries.flatten() {
            check(
                Command::new("dpkg-deb")
                    .arg("-x")
                    .arg(file.path())
                    .arg(&directory),
            )?;
        }
        fs::remove_dir_all(&downloads).map_err(|e| e.to_string())
    }
}

/// The libraries that a package depends on, by the names of their packages.
fn libraries_of(package: &str) -> Outcome<Vec<String>> {
    let said = output(Command::new("apt-cache").args(["depends", package]))?;
    Ok(libraries(&said))
}

/// The same from what `apt-cache depends` says; alternatives, which have a bar, are not needed.
fn libraries(said: &str) -> Vec<String> {
    let names = said.lines().filter_map(|line| {
        let name = line.strip_prefix("  Depends: ")?;
        let is_library = name.starts_with("lib") || name.starts_with("zlib");
        is_library.then(|| name.to_owned())
    });
    names.collect()
}

fn is_installed(package: &str) -> bool {
    let mut query = Command::new("dpkg-query");
    output(query.args(["-W", "-f", "${db:Status-Status}", package]))
        .is_ok_and(|status| status == "installed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_libraries_that_are_needed_are_taken() {
        let said = "haproxy\n  PreDepends: dpkg\n  Depends: libc6\n |Depends: libone\n  Depends: \
                    <virtual>\n  Depends: adduser\n  Depends: zlib1g\n  Suggests: libtwo\n";
        assert_eq!(libraries(said), ["libc6", "zlib1g"]);
    }
}
