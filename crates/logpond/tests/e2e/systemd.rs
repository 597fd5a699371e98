//! The real service manager keeps what a service has, over restarts and kills.
//!
//! It runs as a user's manager, in a control group and name spaces of its own.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::http::Client;
use crate::pond::{ALL_TIME, INTAKES, Scratch, TestServer, wait_until};
use crate::restarts::{Machine, header, there};
use crate::surroundings::{program, say};

/// Where the manager is found.
const MANAGER: &str = "/usr/lib/systemd/systemd";

/// Becomes the manager that thinks it runs on a machine of systemd's; `$0` is its control group.
const BECOME: &str = "
    echo $$ > \"$0/cgroup.procs\"
    exec unshare --mount --cgroup --propagation private sh -ec '
        umount -l /sys/fs/cgroup; mount -t tmpfs none /sys/fs/cgroup
        mount -t cgroup2 none /sys/fs/cgroup
        mount -t tmpfs none /run/systemd; mkdir -p /run/systemd/system
        exec \"$0\" --user --unit=basic.target' \"$1\"";

/// A manager that runs.
struct Manager {
    child: Child,
    group: PathBuf,
    runtime: PathBuf,
}

impl Manager {
    /// Starts one that knows these units; `None` where that is not possible.
    fn start(scratch: &Scratch, units: &Path) -> Option<Manager> {
        let group = own_group()?.join(format!("logpond-test-{}", std::process::id()));
        let runtime = scratch.path().join("runtime");
        fs::create_dir(&runtime).unwrap();
        let is_there = Path::new(MANAGER).exists() && fs::create_dir(&group).is_ok();
        if !is_there {
            return None;
        }
        let mut command = Command::new("sh");
        command
            .args(["-ec", BECOME])
            .arg(&group)
            .arg(MANAGER)
            .env("XDG_RUNTIME_DIR", &runtime)
            .env("SYSTEMD_UNIT_PATH", units)
            .env("SYSTEMD_LOG_TARGET", "null")
            .stdin(Stdio::null())
            .stderr(Stdio::null());
        let child = command.spawn().unwrap();
        let mut manager = Manager {
            child,
            group,
            runtime,
        };
        let mut is_up = false;
        wait_until("the manager runs or does not", || {
            is_up = manager.control(&["show", "--property=Version"]).is_some();
            is_up || manager.child.try_wait().unwrap().is_some()
        })
        .unwrap();
        is_up.then_some(manager)
    }

    /// What it answers, if it does what it is told.
    fn control(&self, arguments: &[&str]) -> Option<String> {
        let done = Command::new("systemctl")
            .arg("--user")
            .args(arguments)
            .env("XDG_RUNTIME_DIR", &self.runtime)
            .output();
        let done = done.ok().filter(|done| done.status.success())?;
        Some(String::from_utf8(done.stdout).unwrap())
    }

    fn property(&self, name: &str) -> String {
        let [value] = self.properties([name]);
        value
    }

    /// What they are at one moment: between two questions one may change.
    fn properties<const N: usize>(&self, names: [&str; N]) -> [String; N] {
        let list = format!("--property={}", names.join(","));
        let told = self.control(&["show", &list, "logpond.service"]).unwrap();
        let told: BTreeMap<&str, &str> = told
            .lines()
            .filter_map(|line| line.split_once('='))
            .collect();
        names.map(|name| told[name].to_owned())
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        // All that is in the group, and nothing else.
        let _ = fs::write(self.group.join("cgroup.kill"), "1");
        let _ = self.child.wait();
        let _ = wait_until("its groups are gone", || {
            remove_group(&self.group);
            !self.group.exists()
        });
    }
}

/// The control group of this process.
fn own_group() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let mount = mounts.lines().find(|line| line.contains(" - cgroup2 "))?;
    let group = fs::read_to_string("/proc/self/cgroup").ok()?;
    let group = group.lines().find_map(|line| line.strip_prefix("0::/"))?;
    Some(Path::new(mount.split(' ').nth(4)?).join(group))
}

fn remove_group(group: &Path) {
    for entry in fs::read_dir(group).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_group(&entry.path());
        }
    }
    let _ = fs::remove_dir(group);
}

/// The file in which a server says its addresses.
const READY: &str = "ready.json";

/// How many records have a word, by the server that this file is of.
fn rows(ready: &Path, word: &str) -> u64 {
    let text = fs::read_to_string(ready).unwrap_or_default();
    let said: Value = serde_json::from_str(&text).unwrap_or_default();
    let address = said["http"].as_str().unwrap_or_default();
    let target = format!("/api/v1/query?{ALL_TIME}&limit=0&q={word}");
    let answer = || -> std::io::Result<String> {
        let mut client = Client::connect(address)?;
        let response = client.send("GET", &target, &[], b"")?;
        response.text()
    };
    answer().map_or(0, |text| text.lines().count() as u64 - 1)
}

/// Writes the units: the service, and the one that the manager starts with.
fn write_units(units: &Path, data: &Path, directory: &Path) {
    fs::create_dir(units).unwrap();
    fs::write(units.join("basic.target"), "[Unit]\nDescription=basic\n").unwrap();
    let listeners = ["--http"].into_iter().chain(INTAKES);
    let listeners: Vec<String> = listeners
        .map(|flag| format!("{flag} 127.0.0.1:0"))
        .collect();
    let unit = format!(
        "[Unit]\nStartLimitIntervalSec=0\n\
         [Service]\nType=notify\nFileDescriptorStoreMax=4200\nRestart=always\nRestartSec=0\n\
         ExecStart={} serve --keep-free 0%% --data {} --journald {} --ready-file {} {}\n",
        program().display(),
        data.display(),
        directory.display(),
        units.join(READY).display(),
        listeners.join(" ")
    );
    fs::write(units.join("logpond.service"), unit).unwrap();
}

#[test]
fn the_real_service_manager_keeps_what_a_service_has() {
    let mut machine = Machine::new("systemd", &[]);
    let (data, directory) = (machine.path("data"), machine.directory());
    let units = machine.path("units");
    write_units(&units, &data, &directory);
    let Some(manager) = Manager::start(machine.scratch(), &units) else {
        say("skipped: systemd, which cannot be run here");
        return;
    };
    let service = "logpond.service";
    manager.control(&["start", service]).unwrap();
    let mut kept = UnixStream::connect(directory.join("stdout")).unwrap();
    kept.write_all(header("printer").as_bytes()).unwrap();
    kept.write_all(b"first 0\nfir").unwrap();
    machine.write_all();
    for _ in 0..3 {
        machine.progress();
        manager.control(&["restart", service]).unwrap();
    }
    machine.progress();
    // The board, three sockets, and streams.
    let count: usize = manager.property("NFileDescriptorStore").parse().unwrap();
    assert!(count > 4, "{count}");
    let written = machine.stop();
    manager.control(&["restart", service]).unwrap();
    // A killed process takes with it what it has read and not yet written.
    for (word, count) in &written {
        let what = format!("{count} of {word} are read");
        wait_until(&what, || rows(&units.join(READY), word) >= *count).unwrap();
    }
    let before = manager.property("MainPID");
    manager
        .control(&["kill", "--signal=KILL", service])
        .unwrap();
    wait_until("it is started again", || {
        let [state, process] = manager.properties(["ActiveState", "MainPID"]);
        state == "active" && process != before
    })
    .unwrap();
    kept.write_all(b"second 0\n").unwrap();
    manager.control(&["stop", service]).unwrap();
    let told = kept.write_all(b"nobody reads this");
    assert!(told.is_err(), "a stop is for good");
    // What there is, is on the disk.
    let server = TestServer::start(program(), &data, &[]).unwrap();
    for (word, count) in &written {
        let found: BTreeMap<u64, _> = there(&server, word);
        let missing: Vec<u64> = (0..*count).filter(|n| !found.contains_key(n)).collect();
        assert!(
            found.len() as u64 == *count,
            "{word} of {count}: {missing:?}"
        );
    }
    assert_eq!(there(&server, "first").len(), 1);
    let (rows, _) = server.query("second").unwrap();
    assert_eq!(rows.len(), 1, "{rows:?}");
    assert_eq!(rows[0]["app"], "printer");
    say(&format!("systemd: {written:?} over restarts, each once"));
}
