//! A network and disks of our own, so that both can be broken without breaking this machine's.
//!
//! The whole run is moved into a network and a mount namespace (`unshare`), which vanish with it.
//! Within, every place has a network namespace, all joined by a bridge, and nodes have a small file
//! system in memory: ext4 where it can be mounted ([`super::image`]), tmpfs otherwise. Where
//! namespaces are not permitted, everything is on loopback addresses and in plain directories:
//! networks and disks are then not broken, and that is said loudly.
//!
//! Packets from one place to another are lost by a wrong hardware address of the other (they go out
//! and nobody takes them), or refused by a route that leads nowhere.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitStatus};

use super::history::Place;
use crate::run::{Outcome, output, own_program};

/// Says that the run is in namespaces of its own already.
pub(super) const INSIDE: &str = "--inside";

/// The size of a node's disk: some minutes of load, copies of others' included.
pub(super) const DISK_BYTES: u64 = 192 << 20;

/// A hardware address that nobody has.
const NOBODY: &str = "02:00:5e:00:53:ff";

/// How much the script of [`enter`] tries: all that a run needs, so that it fails early or never.
const PROBE: &str = "mount -t tmpfs none /run && mkdir -p /run/netns && ip netns add probe \
    && ip link add probe0 type bridge && ip link add probe1 type veth peer name probe2 \
    && ip link set probe2 netns probe && ip -n probe link set lo up \
    && nsenter --net=/run/netns/probe true";

/// Where places are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum World {
    /// Each has a network and a disk of its own.
    Isolated,
    /// They share this machine's, on loopback addresses of this run.
    Loopback,
}

/// How to get namespaces: as root, or as what is root in a user namespace.
fn ways() -> [&'static [&'static str]; 2] {
    [
        &["--net", "--mount"],
        &["--net", "--mount", "--user", "--map-root-user"],
    ]
}

/// Runs this program again in namespaces of its own, to its end, or says why that cannot be. Given
/// arguments are passed on, with [`INSIDE`].
pub(super) fn enter(arguments: &[String]) -> Result<ExitStatus, String> {
    let mut why = String::new();
    for way in ways() {
        let mut probe = Command::new("unshare");
        if let Err(error) = output(probe.args(way).args(["--", "sh", "-c", PROBE])) {
            why = error;
            continue;
        }
        let mut command = Command::new("unshare");
        command.args(way).arg("--").arg(own_program()?);
        command.arg("torture").args(arguments).arg(INSIDE);
        return command.status().map_err(|e| format!("unshare: {e}"));
    }
    Err(why)
}

fn ip(arguments: &str) -> Outcome<()> {
    output(Command::new("ip").args(arguments.split(' '))).map(drop)
}

impl World {
    /// Makes room for files that vanish with the run, if it has namespaces of its own.
    pub(super) fn begin(self) -> Outcome<()> {
        match self {
            World::Loopback => Ok(()),
            World::Isolated => {
                output(Command::new("mount").args(["-t", "tmpfs", "none", "/run"])).map(drop)
            }
        }
    }

    /// Joins so many places by a network, if they are to have ones of their own.
    pub(super) fn join(self, places: usize) -> Outcome<()> {
        if self == World::Loopback {
            return Ok(());
        }
        fs::create_dir_all("/run/netns").map_err(|e| format!("/run/netns: {e}"))?;
        ip("link set lo up")?;
        ip("link add name bridge type bridge")?;
        ip("addr add 10.77.0.254/24 dev bridge")?;
        ip("link set bridge up")?;
        for place in 0..places {
            let address = self.address(place);
            ip(&format!("netns add p{place}"))?;
            ip(&format!(
                "link add v{place} type veth peer name eth0 netns p{place}"
            ))?;
            ip(&format!("link set v{place} master bridge"))?;
            ip(&format!("link set v{place} up"))?;
            ip(&format!("-n p{place} addr add {address}/24 dev eth0"))?;
            ip(&format!("-n p{place} link set eth0 up"))?;
            ip(&format!("-n p{place} link set lo up"))?;
        }
        Ok(())
    }

    /// The IP address of a place.
    pub(super) fn address(self, place: Place) -> String {
        let host = place + 1;
        match self {
            World::Isolated => format!("10.77.0.{host}"),
            // All of 127.0.0.0/8 is this machine: one part of it for each process that does this.
            World::Loopback => {
                let process = std::process::id();
                format!("127.{}.{}.{host}", 16 + process / 256 % 200, process % 256)
            }
        }
    }

    /// Makes a file system in memory for a node's data, if nodes have disks of their own.
    pub(super) fn disk(self, path: &Path) -> Outcome<()> {
        if self == World::Loopback {
            return Ok(());
        }
        let size = format!("size={DISK_BYTES}");
        let mut mount = Command::new("mount");
        output(mount.args(["-t", "tmpfs", "-o", &size, "none"]).arg(path)).map(drop)
    }

    /// A command that runs a program at a place.
    pub(super) fn command(self, place: Place, program: &Path) -> Command {
        match self {
            World::Loopback => Command::new(program),
            World::Isolated => {
                let mut command = Command::new("nsenter");
                command
                    .arg(format!("--net=/run/netns/p{place}"))
                    .arg("--")
                    .arg(program);
                command
            }
        }
    }

    /// Has packets from one place to another get lost, silently or not.
    pub(super) fn cut(self, from: Place, to: Place, is_silent: bool) -> Outcome<()> {
        let to = self.address(to);
        if is_silent {
            ip(&format!(
                "-n p{from} neigh replace {to} lladdr {NOBODY} dev eth0 nud permanent"
            ))
        } else {
            ip(&format!("-n p{from} route replace blackhole {to}"))
        }
    }

    /// Undoes that.
    pub(super) fn mend(self, from: Place, to: Place, is_silent: bool) -> Outcome<()> {
        let to = self.address(to);
        if is_silent {
            ip(&format!("-n p{from} neigh del {to} dev eth0"))
        } else {
            ip(&format!("-n p{from} route del blackhole {to}"))
        }
    }
}

/// Says loudly that some faults cannot be had here.
pub(super) fn say_that_it_is_not_isolated(why: &str) {
    eprintln!("##");
    eprintln!("## NO PARTITIONS, NO FULL DISKS, NO POWER CUTS: namespaces cannot be made here");
    eprintln!("## ({why})");
    eprintln!("## Processes are killed, stopped and restarted all the same.");
    eprintln!("##");
}
