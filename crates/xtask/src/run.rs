//! Running programs, and where things are.

use std::env;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// What went wrong, for a person.
pub(crate) type Outcome<T> = Result<T, String>;

/// Tests that run at once for each core.
const TESTS_PER_CORE: usize = 2;

/// Says how many tests run at once.
const TEST_THREADS: &str = "RUST_TEST_THREADS";

/// The features of the product, all of them, as packages of releases have them. Whatever is built to be
/// tested is built with these: a second set would build nearly all dependencies a second time, and the
/// product, since the query engine wants more of what they have in common.
pub(crate) const FEATURES: [&str; 2] = ["--features", "logpond/sql,logpond/acme,logpond/kafka"];

/// The program that builds our own packages in CI, and lints them on the way. A check of its own would go through all
/// packages of others once more, for five minutes.
const LINTER: (&str, &str) = ("RUSTC_WORKSPACE_WRAPPER", "crates/xtask/linter");

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .expect("the crate is in crates/xtask")
        .to_path_buf()
}

/// The path of this program when it began.
static OWN_PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Notes where this program is, before a build of the workspace puts a new one there: Linux gives the path of a file
/// that was replaced with ` (deleted)` behind it.
pub(crate) fn note_own_program() -> Outcome<()> {
    let path = env::current_exe().map_err(|e| format!("this program is not there: {e}"))?;
    OWN_PROGRAM.get_or_init(|| path);
    Ok(())
}

/// This program, to be run again: the one that a build since its beginning has made, if there was one.
pub(crate) fn own_program() -> Outcome<&'static Path> {
    let path = OWN_PROGRAM
        .get()
        .ok_or("nobody noted this program's path")?;
    Ok(path)
}

/// Where cargo puts what it builds.
pub(crate) fn target_directory() -> PathBuf {
    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// An address of this machine that nobody listens at.
pub(crate) fn free_address() -> Outcome<String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|e| e.to_string())?;
    let address = listener.local_addr().map_err(|e| e.to_string())?;
    Ok(address.to_string())
}

/// The cargo that runs us.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// `cargo test` of everything, with more tests at once than there are cores: most of those that take long
/// wait for processes, disks and clocks.
///
/// The program as it is built beside all tests is not what would be built alone, since cargo gives
/// dependencies what any package of a selection wants of them.
pub(crate) fn cargo_test() -> Command {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut command = cargo();
    command.args(["test", "--workspace", "--locked", "--quiet"]);
    command.args(FEATURES);
    if is_ci() {
        lint_on_the_way(&mut command);
    }
    if env::var_os(TEST_THREADS).is_none() {
        command.env(TEST_THREADS, (cores * TESTS_PER_CORE).to_string());
    }
    command
}

/// Has a build lint our own packages; what is found is a failure.
pub(crate) fn lint_on_the_way(build: &mut Command) {
    let (variable, linter) = LINTER;
    build.env(variable, root().join(linter));
}

/// Builds the program as the tests have it, with the checks of a debug build.
pub(crate) fn tested_program() -> Outcome<PathBuf> {
    check(cargo_test().arg("--no-run"))?;
    Ok(target_directory().join("debug/logpond"))
}

/// Says that a tool is missing: a failure of CI, and a step that is skipped elsewhere.
pub(crate) fn missing(tool: &str, consequence: &str) -> Outcome<()> {
    if is_ci() {
        return Err(format!("{tool} is not installed; ./test installs it"));
    }
    eprintln!("skipped: {consequence} because {tool} is not installed (./test installs it)");
    Ok(())
}

/// Whether missing tools are failures rather than skipped steps.
pub(crate) fn is_ci() -> bool {
    env::var("CI").is_ok_and(|value| value == "true" || value == "1")
}

/// Runs a command to its end; anything but success is an error that shows the command.
pub(crate) fn check(command: &mut Command) -> Outcome<()> {
    let status = command
        .status()
        .map_err(|e| format!("cannot run {}: {e}", shown(command)))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{} failed: {status}", shown(command)))
    }
}

/// Runs a command and gives what it printed; anything but success is an error with its complaint.
pub(crate) fn output(command: &mut Command) -> Outcome<String> {
    let output = command
        .output()
        .map_err(|e| format!("cannot run {}: {e}", shown(command)))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(format!(
            "{} failed: {}: {}",
            shown(command),
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        ))
    }
}

/// The path of a program, looked for where `./test` installs packages and then in `PATH`.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let own = target_directory().join("venv/bin");
    std::iter::once(own)
        .chain(env::split_paths(&path))
        .map(|directory| directory.join(name))
        .find(|program| program.is_file())
}

fn shown(command: &Command) -> String {
    let arguments = command.get_args().map(|a| a.to_string_lossy());
    std::iter::once(command.get_program().to_string_lossy())
        .chain(arguments)
        .collect::<Vec<_>>()
        .join(" ")
}
