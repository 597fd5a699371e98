//! What the kernel says of a process that sent something.
//!
//! The numbers come with each message, by the kernel's word; the rest is read from `/proc` when a
//! process is first heard of and then at most once in [`FRESH_FOR`]. A process may be gone before it
//! is looked at: then what was known of it is kept and marked, or there is just its number.
//!
//! Invariants: at most [`PROCESSES_MAX`] are remembered; what is read is bounded; a number that was
//! given to another process is noticed by the time of its start.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::sync::Arc;
use std::time::{Duration, Instant};

use logpond_record::Labels;

use super::cgroup::Group;

/// Processes that are remembered; beyond that the table starts anew.
const PROCESSES_MAX: usize = 4096;

/// How long what was read is taken as it is, as journald does.
const FRESH_FOR: Duration = Duration::from_secs(1);

/// The most of a file in `/proc` that is read: command lines may be megabytes.
const FILE_BYTES_MAX: u64 = 4 << 10;

/// Who sent a message, by the kernel's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Credentials {
    pub(super) pid: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
}

/// The cached facts of a process.
struct ProcessEntry {
    credentials: Credentials,
    /// Clock ticks since boot, as `/proc` has it; `None` if that could not be read.
    started: Option<u64>,
    read_at: Instant,
    labels: Arc<Labels>,
    is_stale: bool,
}

/// Processes that sent something lately.
pub(super) struct Processes {
    known: HashMap<u32, ProcessEntry>,
    /// What is the same for all.
    machine: Labels,
}

impl Processes {
    /// None yet. `machine` is added to the labels of each.
    pub(super) fn new(machine: Labels) -> Processes {
        Processes {
            known: HashMap::new(),
            machine,
        }
    }

    /// The labels of what somebody sends, who may be unknown; the same `Arc` as long as nothing
    /// changes of a process.
    pub(super) fn of(&mut self, sender: Option<Credentials>, now: Instant) -> Arc<Labels> {
        match sender {
            Some(credentials) => self.labels(credentials, now),
            None => Arc::new(self.machine.clone()),
        }
    }

    fn labels(&mut self, credentials: Credentials, now: Instant) -> Arc<Labels> {
        if let Some(known) = self.known.get(&credentials.pid)
            && known.credentials == credentials
            && now.saturating_duration_since(known.read_at) < FRESH_FOR
        {
            return known.labels.clone();
        }
        self.look(credentials, now)
    }

    fn look(&mut self, credentials: Credentials, now: Instant) -> Arc<Labels> {
        let started = started(credentials.pid);
        let before = self.known.remove(&credentials.pid);
        let same = before.filter(|known| {
            known.credentials == credentials && (started.is_none() || known.started == started)
        });
        let known = match (same, started) {
            (Some(known), None) => gone(known, now),
            (same, _) => self.read(credentials, started, same, now),
        };
        let labels = known.labels.clone();
        if self.known.len() >= PROCESSES_MAX {
            self.known.clear();
        }
        self.known.insert(credentials.pid, known);
        labels
    }

    fn read(
        &self,
        credentials: Credentials,
        started: Option<u64>,
        same: Option<ProcessEntry>,
        now: Instant,
    ) -> ProcessEntry {
        let mut labels = self.machine.clone();
        describe(credentials, &mut labels);
        let labels = match same {
            Some(known) if *known.labels == labels => known.labels,
            _ => Arc::new(labels),
        };
        ProcessEntry {
            credentials,
            started,
            read_at: now,
            labels,
            is_stale: false,
        }
    }
}

/// The same, marked as what was last known.
fn gone(known: ProcessEntry, now: Instant) -> ProcessEntry {
    if known.is_stale {
        let read_at = now;
        return ProcessEntry { read_at, ..known };
    }
    let mut labels = Labels::clone(&known.labels);
    labels.push(("_STALE".into(), "1".into()));
    ProcessEntry {
        labels: Arc::new(labels),
        read_at: now,
        is_stale: true,
        ..known
    }
}

/// Appends what is known of a process, under journald's names (systemd.journal-fields(7)).
fn describe(credentials: Credentials, labels: &mut Labels) {
    let mut add = |name: &str, value: &str| {
        if !value.is_empty() {
            labels.push((name.into(), value.into()));
        }
    };
    let Credentials { pid, uid, gid } = credentials;
    for (name, number) in [("_PID", pid), ("_UID", uid), ("_GID", gid)] {
        add(name, &number.to_string());
    }
    add("_COMM", read(pid, "comm").trim_end());
    let program = std::fs::read_link(format!("/proc/{pid}/exe"));
    add(
        "_EXE",
        &program.map_or(String::new(), |path| path.to_string_lossy().into_owned()),
    );
    add("_CMDLINE", &command_line(&read(pid, "cmdline")));
    for (name, file) in [
        ("_AUDIT_LOGINUID", "loginuid"),
        ("_AUDIT_SESSION", "sessionid"),
    ] {
        let number = read(pid, file);
        // The number of nobody and of no session.
        add(
            name,
            if number.trim_end() == "4294967295" {
                ""
            } else {
                number.trim_end()
            },
        );
    }
    let groups = read(pid, "cgroup");
    let group = Group::of_file(&groups);
    add("_SYSTEMD_CGROUP", group.path);
    add("_SYSTEMD_UNIT", group.unit);
    add("_SYSTEMD_USER_UNIT", group.user_unit);
    add("_SYSTEMD_SLICE", group.slice);
    add("_SYSTEMD_SESSION", group.session);
    add("_SYSTEMD_OWNER_UID", group.owner_uid);
    add("unit", group.unit);
    add("container_id", group.container_id);
}

/// The start of a file of a process; empty if there is none.
fn read(pid: u32, name: &str) -> String {
    let mut bytes = Vec::new();
    let read = File::open(format!("/proc/{pid}/{name}"))
        .and_then(|file| file.take(FILE_BYTES_MAX).read_to_end(&mut bytes));
    match read {
        Ok(_) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(_) => String::new(),
    }
}

/// Arguments with spaces between them.
fn command_line(text: &str) -> String {
    text.trim_end_matches('\0').replace('\0', " ")
}

/// When a process started, in clock ticks since boot: field 22 of `/proc/PID/stat`, behind the name
/// in parentheses, which may hold any bytes.
fn started(pid: u32) -> Option<u64> {
    let text = read(pid, "stat");
    let (_, fields) = text.rsplit_once(')')?;
    fields.split_ascii_whitespace().nth(19)?.parse().ok()
}

/// What is the same for all records of this machine: its name, this boot and its identity.
/// And which socket they came by, in journald's words.
pub(super) fn machine(hostname: &str, transport: &str) -> Labels {
    let plain = |path| {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        text.trim().replace('-', "")
    };
    let each = [
        ("hostname", hostname.to_owned()),
        ("_HOSTNAME", hostname.to_owned()),
        ("_BOOT_ID", plain("/proc/sys/kernel/random/boot_id")),
        ("_MACHINE_ID", plain("/etc/machine-id")),
        ("_TRANSPORT", transport.to_owned()),
    ];
    let said = each.into_iter().filter(|(_, value)| !value.is_empty());
    said.map(|(name, value)| (name.into(), value.into()))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Child, Command, Stdio};

    use super::*;

    fn value<'a>(labels: &'a Labels, name: &str) -> Option<&'a str> {
        let found = labels.iter().find(|(label, _)| &**label == name);
        found.map(|(_, value)| &**value)
    }

    /// A program that has answered, so that nothing of the process it was started from is left:
    /// between fork and exec it has this test's name, and a little later no arguments.
    fn running_cat() -> Child {
        let mut cat = Command::new("cat");
        cat.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = cat.spawn().unwrap();
        child.stdin.as_mut().unwrap().write_all(b"?").unwrap();
        let mut answer = [0];
        child
            .stdout
            .as_mut()
            .unwrap()
            .read_exact(&mut answer)
            .unwrap();
        child
    }

    #[test]
    fn a_process_is_described_and_remembered_when_it_is_gone() {
        let mut child = running_cat();
        let credentials = Credentials {
            pid: child.id(),
            uid: 7,
            gid: 8,
        };
        let mut processes = Processes::new(machine("ash", "syslog"));
        let start = Instant::now();
        let first = processes.labels(credentials, start);
        assert_eq!(value(&first, "_COMM"), Some("cat"));
        assert_eq!(value(&first, "_UID"), Some("7"));
        assert_eq!(value(&first, "hostname"), Some("ash"));
        assert_eq!(value(&first, "_CMDLINE"), Some("cat"));
        let again = processes.labels(credentials, start + Duration::from_millis(1500));
        assert!(Arc::ptr_eq(&first, &again), "nothing has changed");
        drop(child.stdin.take());
        child.wait().unwrap();
        let soon = processes.labels(credentials, start + Duration::from_millis(2000));
        assert!(Arc::ptr_eq(&first, &soon), "it is not looked at yet");
        let late = processes.labels(credentials, start + Duration::from_secs(10));
        assert_eq!(value(&late, "_COMM"), Some("cat"));
        assert_eq!(value(&late, "_STALE"), Some("1"));
        let later = processes.labels(credentials, start + Duration::from_secs(20));
        assert!(Arc::ptr_eq(&late, &later));
    }

    #[test]
    fn a_process_that_nobody_saw_is_its_number() {
        let mut child = Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let credentials = Credentials {
            pid: child.id(),
            uid: 0,
            gid: 0,
        };
        let labels = Processes::new(Labels::new()).labels(credentials, Instant::now());
        let names: Vec<&str> = labels.iter().map(|(name, _)| &**name).collect();
        assert_eq!(names, ["_PID", "_UID", "_GID"]);
    }
}
