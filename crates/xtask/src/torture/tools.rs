//! Tools of the system that some faults need, and what is said where they are missing.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::world::World;
use super::{image, limits, tracer};
use crate::run::{Outcome, find_program, is_ci};

/// 61 KB that are 60 MiB of line ends: more records than a push may have.
const BOMB: &str = "yes '' | head -c 62914560 | gzip -9";

/// The tools that there are.
#[derive(Clone, Debug, Default)]
pub(super) struct Tools {
    /// strace, and the right to attach it.
    pub(super) has_tracer: bool,
    /// File systems that can lose what was not synced.
    pub(super) has_images: bool,
    /// Control groups that limit memory.
    pub(super) has_groups: bool,
    /// A push of very many records, for nodes whose memory is limited.
    pub(super) bomb: Vec<u8>,
    /// A library that sets the clock of a process.
    pub(super) faketime: Option<PathBuf>,
}

impl Tools {
    /// Looks for all, and says what is left out.
    ///
    /// # Errors
    /// A missing tool, if `CI=true`.
    pub(super) fn find(world: World) -> Outcome<Tools> {
        let mut tools = Tools::default();
        match find_program("strace") {
            None => missing("strace", "no system call fails")?,
            Some(_) => match tracer::probe() {
                Ok(()) => tools.has_tracer = true,
                Err(why) => say_left_out("no system call fails", &why),
            },
        }
        match world {
            // This was said with the partitions.
            World::Loopback => {}
            World::Isolated => match image::probe() {
                Ok(()) => tools.has_images = true,
                Err(why) => say_left_out("no power is cut", &why),
            },
        }
        match limits::probe() {
            Ok(()) => tools.has_groups = true,
            Err(why) => say_left_out("no memory is limited", &why),
        }
        tools.bomb = bomb()?;
        tools.faketime = faketime();
        if tools.faketime.is_none() {
            missing("libfaketime", "no clock is wrong")?;
        }
        Ok(tools)
    }
}

fn missing(tool: &str, consequence: &str) -> Outcome<()> {
    if is_ci() {
        return Err(format!("{tool} is not installed; ./test installs it"));
    }
    let why = format!("{tool} is not installed (./test installs it)");
    say_left_out(consequence, &why);
    Ok(())
}

fn say_left_out(consequence: &str, why: &str) {
    eprintln!("torture: {consequence}: {why}");
}

fn bomb() -> Outcome<Vec<u8>> {
    let mut command = Command::new("sh");
    command.args(["-c", BOMB]).stdin(Stdio::null());
    let made = command.output().map_err(|e| format!("sh: {e}"))?;
    if made.status.success() && !made.stdout.is_empty() {
        Ok(made.stdout)
    } else {
        Err(format!("{BOMB}: {}", made.status))
    }
}

fn faketime() -> Option<PathBuf> {
    let libraries = fs::read_dir("/usr/lib").ok()?.flatten();
    let mut paths = libraries.map(|entry| entry.path().join("faketime/libfaketime.so.1"));
    paths.find(|path| path.exists())
}
