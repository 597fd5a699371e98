//! Which processes there are, where, and how they are started, stopped and found dead.

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use super::history::Place;
use super::image::Image;
use super::limits::Limit;
use super::patience::patient;
use super::sources::Listener;
use super::tools::Tools;
use super::world::World;
use crate::e2e::pond::{INTAKES, signal, wait_within};
use crate::run::{Outcome, output};

/// How long a process may take to start or to stop: many times what it needs on a busy machine.
const PROCESS_DEADLINE: Duration = Duration::from_secs(120);

/// How long a node may be gone until copies of what it has are made anew: shorter than most faults,
/// so that copies are made in vain and given up again.
const REPAIR_AFTER: &str = "3s";

/// When certificates of nodes begin to be valid: before the time of any wrong clock.
const CERTIFICATE_DAYS: i64 = -10;

/// Where nodes answer people.
const HTTP_PORT: u16 = 7650;

/// Where nodes answer nodes.
const GOSSIP_PORT: u16 = 7659;

/// What a process is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Takes records in, keeps them and answers.
    Serve,
    /// Takes records in for the stores.
    Ingest,
    /// Keeps what ingesters have taken in.
    Store,
    /// Answers from what the others have, as all nodes do.
    QueryNode,
    /// Sends the lines of a file that grows, and keeps in a spool what no node has.
    Forward,
}

impl Role {
    /// Whether it is a node of the cluster.
    pub(super) fn is_node(self) -> bool {
        self != Role::Forward
    }

    /// Whether clients send to it.
    pub(super) fn ingests(self) -> bool {
        matches!(self, Role::Serve | Role::Ingest)
    }

    /// Whether it has nothing but copies, so that its disk may be lost.
    pub(super) fn is_store_only(self) -> bool {
        self == Role::Store
    }

    /// The subcommand.
    fn name(self) -> &'static str {
        match self {
            Role::Serve => "serve",
            Role::Ingest => "ingest",
            Role::Store => "store",
            Role::QueryNode => "query-node",
            Role::Forward => "forward",
        }
    }
}

/// Under what a process runs.
#[derive(Clone, Copy, Debug)]
pub(super) enum Condition<'a> {
    Normal,
    /// It has little memory.
    Memory(&'a Limit),
    /// Its clock is wrong by so many days.
    Clock(i64),
}

/// How nodes are started.
#[derive(Clone, Debug)]
pub(super) struct Launch {
    pub(super) world: World,
    /// The program under test.
    pub(super) program: PathBuf,
    /// Where logs, spools and data are.
    pub(super) directory: PathBuf,
    /// Whether nodes have certificates for each other.
    pub(super) has_certificates: bool,
    /// The copies that are kept.
    pub(super) copies: usize,
    /// The directory that is the bucket behind the nodes, if there is one.
    pub(super) bucket: Option<PathBuf>,
    /// The listeners for records of nodes that ingest; all others are off.
    pub(super) listeners: Vec<Listener>,
    /// The port of the listener for clients of PostgreSQL, if nodes have one.
    pub(super) postgres: Option<u16>,
    /// Tools of the system.
    pub(super) tools: Tools,
}

/// A process of the topology, running or not.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) place: Place,
    pub(super) role: Role,
    launch: Launch,
    /// All nodes, this one included.
    nodes: Vec<Place>,
    /// Those that take records in.
    intakes: Vec<Place>,
    /// Its disk, if its power can be cut.
    image: OnceLock<Image>,
    child: Mutex<Option<Child>>,
}

/// The processes of a run: so many of each role, in this order.
pub(super) fn processes(launch: &Launch, roles: &[(Role, usize)]) -> Vec<Process> {
    let roles = roles
        .iter()
        .flat_map(|(role, count)| std::iter::repeat_n(*role, *count));
    let roles: Vec<Role> = roles.collect();
    let places = |is_so: fn(Role) -> bool| -> Vec<Place> {
        (0..roles.len())
            .filter(|place| is_so(roles[*place]))
            .collect()
    };
    let (nodes, intakes) = (places(Role::is_node), places(Role::ingests));
    let processes = roles.iter().enumerate().map(|(place, role)| Process {
        place,
        role: *role,
        launch: launch.clone(),
        nodes: nodes.clone(),
        intakes: intakes.clone(),
        image: OnceLock::new(),
        child: Mutex::new(None),
    });
    processes.collect()
}

impl Process {
    /// Its name in logs and directories.
    pub(super) fn name(&self) -> String {
        format!("{}-{}", self.role.name(), self.place)
    }

    fn path(&self, suffix: &str) -> PathBuf {
        self.launch
            .directory
            .join(format!("{}{suffix}", self.name()))
    }

    /// The disk of a node; its data directory is on it.
    pub(super) fn disk(&self) -> PathBuf {
        self.path("")
    }

    /// The data directory of a node.
    pub(super) fn data(&self) -> PathBuf {
        self.disk().join("data")
    }

    /// The file whose lines a forwarder sends.
    pub(super) fn input(&self) -> PathBuf {
        self.path(".input")
    }

    /// The address of a listener.
    pub(super) fn address(&self, port: u16) -> String {
        format!("{}:{port}", self.launch.world.address(self.place))
    }

    /// Where a node answers people.
    pub(super) fn http(&self) -> String {
        self.address(HTTP_PORT)
    }

    /// Where a node answers nodes, which is how they name each other.
    pub(super) fn gossip(&self) -> String {
        self.address(GOSSIP_PORT)
    }

    /// Makes what the process needs to be there before it starts for the first time.
    pub(super) fn prepare(&self) -> Outcome<()> {
        if self.role == Role::Forward {
            return File::create(self.input())
                .map(drop)
                .map_err(|e| format!("input: {e}"));
        }
        self.make_disk()?;
        if !self.launch.has_certificates {
            return Ok(());
        }
        let ca = self.launch.directory.join("ca");
        let run = |arguments: &[&str]| {
            let mut command = Command::new(&self.launch.program);
            // They are valid also for a node whose clock is behind.
            if self.launch.tools.faketime.is_some() {
                self.set_clock(&mut command, CERTIFICATE_DAYS)?;
            }
            output(command.arg("cluster").args(arguments)).map(drop)
        };
        let (ca, out) = (text(&ca), text(&self.path(".tls")));
        if !Path::new(&ca).exists() {
            run(&["ca", "create", "--out", &ca])?;
        }
        let address = self.launch.world.address(self.place);
        let whose = ["--name", &self.name(), "--address", &address, "--out", &out];
        run(&[&["certificate", "--ca", &ca][..], &whose[..]].concat())
    }

    fn make_disk(&self) -> Outcome<()> {
        let disk = self.disk();
        fs::create_dir_all(&disk).map_err(|e| format!("{}: {e}", disk.display()))?;
        if !self.launch.tools.has_images {
            return self.launch.world.disk(&disk);
        }
        let image = Image::create(&self.name(), &disk)?;
        self.image.get_or_init(|| image);
        Ok(())
    }

    /// The disk of a node, if its power can be cut.
    pub(super) fn image(&self) -> Option<&Image> {
        self.image.get()
    }

    fn addresses(&self, of: &[Place], scheme: &str, port: u16) -> String {
        let world = self.launch.world;
        let addresses = of
            .iter()
            .map(|place| format!("{scheme}{}:{port}", world.address(*place)));
        addresses.collect::<Vec<_>>().join(",")
    }

    fn arguments(&self) -> Vec<String> {
        let mut arguments: Vec<String> = vec![self.role.name().to_owned()];
        let mut add = |words: &[&str]| arguments.extend(words.iter().map(ToString::to_string));
        if self.role == Role::Forward {
            let (state, spool) = (text(&self.path(".state")), text(&self.path(".spool")));
            add(&["--tail", "--quiet", "--spool", &spool, "--state", &state]);
            let servers = self.addresses(&self.intakes, "http://", HTTP_PORT);
            add(&["--addr", &servers, &text(&self.input())]);
            return arguments;
        }
        if self.role.ingests() {
            for flag in INTAKES {
                let mut listeners = self.launch.listeners.iter();
                match listeners.find(|listener| listener.flag == flag) {
                    Some(listener) => add(&[flag, &self.address(listener.port)]),
                    None => add(&[flag, "off"]),
                }
            }
        }
        add(&[
            "--replication",
            &self.launch.copies.to_string(),
            "--repair-after",
            REPAIR_AFTER,
            "--keep-free",
            "0%",
        ]);
        add(&[
            "--data",
            &text(&self.data()),
            "--ready-file",
            &text(&self.path(".ready")),
        ]);
        add(&[
            "--insecure",
            "--http",
            &self.http(),
            "--gossip",
            &self.gossip(),
        ]);
        add(&["--join", &self.addresses(&self.nodes, "", GOSSIP_PORT)]);
        if let Some(port) = self.launch.postgres {
            add(&["--postgres", &self.address(port)]);
        }
        if let Some(bucket) = &self.launch.bucket {
            add(&["--bucket", &format!("file:{}", text(bucket))]);
        }
        if self.launch.has_certificates {
            add(&["--cluster-tls", &text(&self.path(".tls"))]);
        }
        arguments
    }

    /// The program, to be run at its place.
    fn command(&self, condition: Condition<'_>) -> Outcome<Command> {
        let (world, program) = (self.launch.world, &self.launch.program);
        match condition {
            Condition::Normal => Ok(world.command(self.place, program)),
            Condition::Memory(limit) => {
                let mut command = limit.command(|first| world.command(self.place, first));
                command.arg(program);
                Ok(command)
            }
            Condition::Clock(days) => {
                let mut command = world.command(self.place, program);
                self.set_clock(&mut command, days)?;
                Ok(command)
            }
        }
    }

    fn set_clock(&self, command: &mut Command, days: i64) -> Outcome<()> {
        let library = self.launch.tools.faketime.as_ref();
        command
            .env("LD_PRELOAD", library.ok_or("there is no libfaketime")?)
            .env("FAKETIME", format!("{days:+}d"))
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        Ok(())
    }

    /// Starts the process, and waits until a node is ready.
    pub(super) fn start(&self) -> Outcome<()> {
        self.start_under(Condition::Normal)
    }

    /// Starts the process under a condition, and waits until a node is ready.
    pub(super) fn start_under(&self, condition: Condition<'_>) -> Outcome<()> {
        let ready = self.path(".ready");
        let _ = fs::remove_file(&ready);
        let log = self.path(".log");
        let log = OpenOptions::new().append(true).create(true).open(&log);
        let log = log.map_err(|e| format!("{}: {e}", self.name()))?;
        let mut command = self.command(condition)?;
        command
            .args(self.arguments())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        let child = command.spawn().map_err(|e| format!("{command:?}: {e}"))?;
        *self.child() = Some(child);
        if !self.role.is_node() {
            return Ok(());
        }
        let what = format!("{} is ready", self.name());
        wait_within(patient(PROCESS_DEADLINE), &what, || {
            ready.exists() || self.death().is_some()
        })?;
        match self.death() {
            Some(status) => Err(format!(
                "{} ended before it was ready: {status}",
                self.name()
            )),
            None => Ok(()),
        }
    }

    fn child(&self) -> std::sync::MutexGuard<'_, Option<Child>> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How it ended, if it did so by itself.
    pub(super) fn death(&self) -> Option<ExitStatus> {
        let mut child = self.child();
        child
            .as_mut()
            .and_then(|child| child.try_wait().ok().flatten())
    }

    /// The id of the running process.
    pub(super) fn pid(&self) -> Outcome<u32> {
        match &*self.child() {
            Some(child) => Ok(child.id()),
            None => Err(format!("{} is not running", self.name())),
        }
    }

    /// Sends a signal.
    pub(super) fn signal(&self, name: &str) -> Outcome<()> {
        signal(name, self.pid()?)
    }

    /// SIGSTOP, and waits until no thread of it runs, not even within a system call.
    pub(super) fn stop(&self) -> Outcome<()> {
        self.signal("STOP")?;
        let tasks = format!("/proc/{}/task", self.pid()?);
        wait_within(patient(PROCESS_DEADLINE), "all threads are stopped", || {
            let threads = fs::read_dir(&tasks).into_iter().flatten().flatten();
            let mut states = threads.map(|thread| fs::read_to_string(thread.path().join("status")));
            states.all(|status| status.map_or(true, |text| text.contains("State:\tT")))
        })
    }

    /// The threads of the process, each with its name, its state and its place in the kernel.
    fn threads(&self) -> String {
        let tasks = self.pid().map(|pid| format!("/proc/{pid}/task"));
        let entries = tasks.ok().and_then(|tasks| fs::read_dir(tasks).ok());
        let threads = entries.into_iter().flatten().flatten().map(|entry| {
            let read = |name: &str| fs::read_to_string(entry.path().join(name)).unwrap_or_default();
            let (name, place, call) = (read("comm"), read("wchan"), read("syscall"));
            let call = call.split(' ').next().unwrap_or_default();
            format!("{} {place} {call}", name.trim())
        });
        threads.collect::<Vec<_>>().join(", ")
    }

    /// The name that a node has given itself, which is in its data directory.
    pub(super) fn node_id(&self) -> Outcome<String> {
        let path = self.data().join("cluster/node");
        let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(text.trim().to_owned())
    }

    /// Loses everything that a node has on its disk.
    pub(super) fn wipe(&self) -> Outcome<()> {
        fs::remove_dir_all(self.data()).map_err(|e| format!("{}: {e}", self.name()))
    }

    /// SIGKILL, and waits until it is gone.
    pub(super) fn kill(&self) {
        if let Some(mut child) = self.child().take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Waits until it has ended after SIGTERM; one that does not, or with a failure, is an error.
    pub(super) fn wait_for_end(&self) -> Outcome<()> {
        let what = format!("{} has ended", self.name());
        let ended = wait_within(patient(PROCESS_DEADLINE), &what, || self.death().is_some());
        ended.map_err(|error| format!("{error}; its threads: {}", self.threads()))?;
        let status = self.death();
        *self.child() = None;
        match status {
            Some(status) if status.success() => Ok(()),
            other => Err(format!(
                "{} ended with {other:?} after SIGTERM",
                self.name()
            )),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

fn text(path: &Path) -> String {
    path.display().to_string()
}
