//! Limits of a node's memory: a control group, or the address space of the process.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::run::{Outcome, output};

/// The memory of a node that is limited.
const BYTES: u64 = 512 << 20;

/// The directories in which groups are made, and the files that have the limit: of version 1 and 2.
const ROOTS: [(&str, &str); 2] = [
    ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
    ("/sys/fs/cgroup", "memory.max"),
];

/// The limit of the memory of a process.
#[derive(Debug)]
pub(super) enum Limit {
    /// A control group: what the process uses counts, and pages of files that it wrote.
    Group(Group),
    /// RLIMIT_AS: what the process maps counts, used or not.
    Address,
}

impl Limit {
    /// A command that runs a program within the limit: it takes the program as its first argument.
    pub(super) fn command(&self, run: impl FnOnce(&Path) -> Command) -> Command {
        match self {
            Limit::Group(group) => {
                let mut command = run(Path::new("sh"));
                command.args(["-c", &group.enter()]);
                command
            }
            Limit::Address => {
                let mut command = run(Path::new("prlimit"));
                command.arg(format!("--as={BYTES}"));
                command
            }
        }
    }
}

/// A control group; it is removed when dropped, once its processes have ended.
#[derive(Debug)]
pub(super) struct Group(PathBuf);

impl Group {
    /// Makes a group of this process with a limit.
    pub(super) fn create(name: &str) -> Outcome<Group> {
        let name = format!("logpond-torture-{}-{name}", std::process::id());
        let made = ROOTS.map(|(root, file)| make(&Path::new(root).join(&name), file));
        let [first, second] = made;
        first.or(second)
    }

    /// A script that moves itself into the group and becomes its arguments.
    fn enter(&self) -> String {
        let path = self.0.display();
        format!("echo $$ > '{path}/cgroup.procs' && exec \"$0\" \"$@\"")
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

fn make(path: &Path, file: &str) -> Outcome<Group> {
    let failed = |e: io::Error| format!("{}: {e}", path.display());
    fs::create_dir(path).map_err(failed)?;
    let group = Group(path.to_owned());
    // A group that has no such file is not one of memory.
    let limit = fs::OpenOptions::new().write(true).open(path.join(file));
    let set =
        limit.and_then(|mut file| io::Write::write_all(&mut file, BYTES.to_string().as_bytes()));
    set.map_err(failed).map(|()| group)
}

/// Runs a program in a group.
///
/// # Errors
/// Why that cannot be done.
pub(super) fn probe() -> Outcome<()> {
    let group = Limit::Group(Group::create("probe")?);
    let mut command = group.command(|program| Command::new(program));
    output(command.arg("true")).map(drop)
}
