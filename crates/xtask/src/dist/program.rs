//! The page and the program of a release, and its symbols.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{EPOCH, Platform, Release, made};
use crate::run::{FEATURES, Outcome, cargo, check, find_program, output, root, target_directory};

/// Builds the page; gives the names of its files, which the program must have.
pub(super) fn page() -> Outcome<Vec<String>> {
    let web = root().join("web");
    check(&mut Command::new(web.join("build")))
        .map_err(|error| format!("a release has the page, which needs npm of Node 20: {error}"))?;
    let index = web.join("dist/index.html");
    let text = made(fs::read_to_string(&index), &index)?;
    let names: Vec<String> = text
        .split('"')
        .filter_map(|part| part.strip_prefix("./"))
        .map(str::to_owned)
        .collect();
    if names.is_empty() {
        Err(format!("{} names no file of the page", index.display()))
    } else {
        Ok(names)
    }
}

/// Fails unless the program has these names: one without the page was built before it.
pub(super) fn need_page(program: &Path, names: &[String]) -> Outcome<()> {
    let bytes = made(fs::read(program), program)?;
    for name in names {
        if !contains(&bytes, name.as_bytes()) {
            return Err(format!(
                "{} has no {name} of the page; build it again",
                program.display()
            ));
        }
    }
    Ok(())
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    let Some(&first) = part.first() else {
        return true;
    };
    let starts = bytes.iter().enumerate().filter(|(_, byte)| **byte == first);
    starts
        .map(|(at, _)| at)
        .any(|at| bytes[at..].starts_with(part))
}

/// The reason why nothing can be built for a platform here; none if it can be.
pub(super) fn lack(platform: Platform, host: &str) -> Option<String> {
    if platform.target == host {
        return None;
    }
    let compiler = format!("{}gcc", platform.tools);
    let Ok(library) = output(Command::new("rustc").args([
        "--print",
        "target-libdir",
        "--target",
        platform.target,
    ])) else {
        return Some("this rustc does not know it".to_owned());
    };
    if !Path::new(library.trim()).is_dir() {
        return Some(format!(
            "its standard library is missing (rustup target add {})",
            platform.target
        ));
    }
    if find_program(&compiler).is_none() {
        return Some(format!(
            "{compiler} is missing (apt-get install gcc-aarch64-linux-gnu)"
        ));
    }
    let [emulator, _] = platform.emulators;
    emulator_of(platform)
        .is_none()
        .then(|| format!("{emulator} is missing (apt-get install qemu-user)"))
}

fn emulator_of(platform: Platform) -> Option<PathBuf> {
    let mut programs = platform.emulators.into_iter();
    programs.find_map(find_program)
}

/// A command that runs a program of a platform, which writes its own manual pages and completions.
pub(super) fn runner(platform: Platform, program: &Path) -> Command {
    let is_foreign = platform.machine != std::env::consts::ARCH;
    match emulator_of(platform).filter(|_| is_foreign) {
        Some(emulator) => {
            let mut command = Command::new(emulator);
            command.arg(program);
            command
        }
        None => Command::new(program),
    }
}

/// Builds the program as releases have it: static, with all features, without paths of this machine.
pub(super) fn build(platform: Platform, epoch: u64) -> Outcome<PathBuf> {
    eprintln!("== building the program of a release, which takes many minutes");
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let mut maps = vec![(root(), "/logpond")];
    maps.extend(home.map(|home| (home, "/cargo")));
    let sysroot = PathBuf::from(output(Command::new("rustc").args(["--print", "sysroot"]))?.trim());
    maps.push((sysroot, "/rust"));
    let mut flags = vec!["-Ctarget-feature=+crt-static".to_owned()];
    let mut of_c = String::from("-g0");
    for (from, to) in &maps {
        flags.push(format!("--remap-path-prefix={}={to}", from.display()));
        of_c += &format!(" -ffile-prefix-map={}={to}", from.display());
    }
    let underscored = platform.target.replace('-', "_");
    let mut command = cargo();
    command
        .args(["build", "--release", "--locked", "--package", "logpond"])
        .args(FEATURES)
        .args(["--target", platform.target])
        // Flags are parted by this character.
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"))
        .env(format!("CFLAGS_{underscored}"), &of_c)
        .env(format!("CXXFLAGS_{underscored}"), &of_c)
        .env(EPOCH, epoch.to_string());
    let compiler = format!("{}gcc", platform.tools);
    if find_program(&compiler).is_some() {
        let linker = format!("CARGO_TARGET_{}_LINKER", underscored.to_uppercase());
        command.env(linker, &compiler);
        command.env(format!("CC_{underscored}"), &compiler);
    }
    check(&mut command)?;
    Ok(target_directory()
        .join(platform.target)
        .join("release/logpond"))
}

/// Puts the program without symbols into the tree, and its symbols into a tree of their own, which is
/// given: `gdb` finds them below `/usr/lib/debug`.
pub(super) fn split(release: &Release, built: &Path) -> Outcome<PathBuf> {
    let program = release.tree().join("usr/bin/logpond");
    let symbols = release.directory.join("symbols");
    let debug = symbols.join("usr/lib/debug/usr/bin/logpond.debug");
    for path in [&program, &debug] {
        let directory = path.parent().unwrap_or(path);
        made(fs::create_dir_all(directory), directory)?;
    }
    let tool = format!("{}objcopy", release.platform.tools);
    let tool = find_program(&tool).map_or_else(|| "objcopy".into(), OsString::from);
    let objcopy = |arguments: &[&str], from: &Path, to: Option<&Path>| {
        let mut command = Command::new(&tool);
        command.args(arguments).arg(from).args(to);
        check(&mut command)
    };
    objcopy(&["--only-keep-debug"], built, Some(&debug))?;
    objcopy(&["--strip-all"], built, Some(&program))?;
    let link = format!("--add-gnu-debuglink={}", debug.display());
    objcopy(&[&link], &program, None)?;
    Ok(symbols)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_wherever_it_stands() {
        assert!(contains(b"aab", b"ab"));
        assert!(contains(b"ab", b""));
        assert!(!contains(b"aab", b"abc"));
    }

    #[test]
    fn an_unknown_platform_is_left_out() {
        let other = Platform {
            target: "none-unknown-none",
            debian: "none",
            machine: "none",
            tools: "none-",
            emulators: ["qemu-none", "qemu-none-static"],
        };
        assert!(lack(other, "x86_64-unknown-linux-gnu").is_some());
        assert!(lack(other, "none-unknown-none").is_none());
        assert!(emulator_of(other).is_none());
    }
}
