//! A real server process with data of its own, on ports that the system chose.
//!
//! The tests and the benchmark share it, so that what is measured is what is tested.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::http::{Client, encode};

/// How long anything that must happen may take; only a broken server reaches it.
const DEADLINE: Duration = Duration::from_secs(120);

/// How often a condition is looked at again.
const POLL: Duration = Duration::from_millis(2);

/// Clock ticks in a second, as `/proc/PID/stat` counts CPU time on Linux.
const TICKS_PER_SECOND: f64 = 100.0;

/// What went wrong, for a person.
pub(crate) type Outcome<T> = Result<T, String>;

/// A directory that is removed with its owner, or kept for a look after a panic.
pub(crate) struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// A new empty directory.
    pub(crate) fn new(name: &str) -> Outcome<Scratch> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("logpond-{name}-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        Ok(Scratch { path })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("kept {}", self.path.display());
        } else {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// A running server. Dropping it kills the process.
pub(crate) struct TestServer {
    child: Child,
    addresses: serde_json::Value,
    stderr: Arc<Mutex<String>>,
    /// From the start of the process until the ready file was there.
    pub(crate) start_time: Duration,
}

/// The answer of a push.
pub(crate) struct PushAnswer {
    /// HTTP status.
    pub(crate) status: u16,
    /// The body, as JSON where it is.
    pub(crate) body: serde_json::Value,
}

impl PushAnswer {
    /// How many records were accepted.
    pub(crate) fn accepted(&self) -> u64 {
        self.body["accepted"].as_u64().unwrap_or(0)
    }
}

/// The flags of all listeners for records.
pub(crate) const INTAKES: [&str; 10] = [
    "--fast",
    "--durable",
    "--bulk",
    "--syslog-udp",
    "--syslog-tcp",
    "--relp",
    "--gelf-udp",
    "--gelf-tcp",
    "--fluent",
    "--otlp-grpc",
];

/// Arguments of a server that listens on free ports only, and that keeps its data however full
/// the disk of this machine is. `role` is the command that runs it.
fn serve_arguments(role: &str, data: &Path, ready: &Path) -> Vec<String> {
    let mut arguments = [role, "--keep-free", "0%"].map(String::from).to_vec();
    let paths = [("--data", data), ("--ready-file", ready)];
    for (flag, path) in paths {
        arguments.extend([flag.to_string(), path.display().to_string()]);
    }
    let takes_in = matches!(role, "serve" | "ingest");
    let intakes = INTAKES.into_iter().filter(|_| takes_in);
    for flag in std::iter::once("--http").chain(intakes) {
        arguments.extend([flag.to_string(), "127.0.0.1:0".to_string()]);
    }
    arguments
}

impl TestServer {
    /// Starts `program serve` on this data directory and waits until it is ready.
    pub(crate) fn start(program: &Path, data: &Path, extra: &[&str]) -> Outcome<TestServer> {
        TestServer::start_under(Command::new(program), data, extra)
    }

    /// Starts `program ROLE`: `serve`, `ingest`, `store` or `query-node`.
    pub(crate) fn start_as(
        program: &Path,
        role: &str,
        data: &Path,
        extra: &[&str],
    ) -> Outcome<TestServer> {
        TestServer::start_command(Command::new(program), role, data, extra)
    }

    /// `serve` by a command that runs the program, such as a tracer.
    pub(crate) fn start_under(
        command: Command,
        data: &Path,
        extra: &[&str],
    ) -> Outcome<TestServer> {
        TestServer::start_command(command, "serve", data, extra)
    }

    fn start_command(
        mut command: Command,
        role: &str,
        data: &Path,
        extra: &[&str],
    ) -> Outcome<TestServer> {
        let ready = data.with_extension("ready.json");
        let _ = fs::remove_file(&ready);
        command
            .args(serve_arguments(role, data, &ready))
            .args(extra)
            .env_remove("LOGPOND_ADDR")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let start = Instant::now();
        let mut child = command.spawn().map_err(|e| format!("{command:?}: {e}"))?;
        let (stderr, reader) = collect(child.stderr.take());
        let mut addresses = None;
        wait_until("the server is ready", || {
            let text = fs::read_to_string(&ready).unwrap_or_default();
            addresses = serde_json::from_str(&text).ok();
            addresses.is_some() || child.try_wait().is_ok_and(|status| status.is_some())
        })?;
        let start_time = start.elapsed();
        let Some(addresses) = addresses else {
            // What it said last may still be on its way.
            let _ = reader.join();
            let said = stderr.lock().map(|s| s.clone()).unwrap_or_default();
            return Err(format!("the server ended before it was ready: {said}"));
        };
        Ok(TestServer {
            child,
            addresses,
            stderr,
            start_time,
        })
    }

    /// A bound address: `http`, `fast`, `durable`, `syslog_udp` or `syslog_tcp`.
    pub(crate) fn address(&self, name: &str) -> String {
        let address = self.addresses[name].as_str();
        address
            .unwrap_or_else(|| panic!("no address {name} in {}", self.addresses))
            .to_string()
    }

    /// The URL for `--addr`.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address("http"))
    }

    /// A new connection to the HTTP listener.
    pub(crate) fn client(&self) -> Outcome<Client> {
        Client::connect(&self.address("http")).map_err(|e| format!("cannot connect: {e}"))
    }

    /// The body of an answer; any status but 200 is an error.
    pub(crate) fn get(&self, target: &str) -> Outcome<String> {
        let mut client = self.client()?;
        let response = client
            .send("GET", target, &[("accept", "*/*")], b"")
            .map_err(|e| format!("{target}: {e}"))?;
        let status = response.status;
        let text = response.text().map_err(|e| format!("{target}: {e}"))?;
        match status {
            200 => Ok(text),
            _ => Err(format!("{target}: status {status}: {text}")),
        }
    }

    /// Pushes a body durably.
    pub(crate) fn push(&self, content_type: &str, body: &[u8]) -> Outcome<PushAnswer> {
        push(&mut self.client()?, content_type, "", body)
    }

    /// The records that a query gives over all time, and the trailer.
    pub(crate) fn query(&self, q: &str) -> Outcome<(Vec<serde_json::Value>, serde_json::Value)> {
        let target = format!("/api/v1/query?{ALL_TIME}&limit=0&q={}", encode(q));
        let text = self.get(&target)?;
        let mut rows = Vec::new();
        let mut trailer = serde_json::Value::Null;
        for line in text.lines() {
            let mut value: serde_json::Value =
                serde_json::from_str(line).map_err(|e| format!("{target}: {e} in {line}"))?;
            match value.get_mut("_trailer") {
                Some(found) => trailer = found.take(),
                None => rows.push(value),
            }
        }
        if trailer.is_null() {
            Err(format!("{target}: no trailer after {} rows", rows.len()))
        } else {
            Ok((rows, trailer))
        }
    }

    /// Has all that was taken in put into segments, and waits until it is.
    pub(crate) fn compact(&self) -> Outcome<()> {
        let mut client = self.client()?;
        let failed = |error| format!("compact: {error}");
        let response = client.send("POST", "/api/v1/compact?wait", &[], b"");
        let response = response.map_err(failed)?;
        let status = response.status;
        // The answer ends when the work does.
        let text = response.text().map_err(failed)?;
        match status {
            200 => Ok(()),
            status => Err(format!("compact: {status} {text}")),
        }
    }

    /// Sends bytes to a raw TCP listener, ends the sending side, and reads what comes back.
    pub(crate) fn send_tcp(&self, listener: &str, bytes: &[u8]) -> Outcome<String> {
        let address = self.address(listener);
        let send = || -> std::io::Result<String> {
            let mut stream = TcpStream::connect(&address)?;
            stream.set_read_timeout(Some(DEADLINE))?;
            stream.write_all(bytes)?;
            stream.shutdown(Shutdown::Write)?;
            std::io::read_to_string(stream)
        };
        send().map_err(|e| format!("{listener} {address}: {e}"))
    }

    /// The value of a metric without labels, or the sum over its labels.
    pub(crate) fn metric(&self, name: &str) -> Outcome<f64> {
        Ok(metric(&self.get("/metrics")?, name))
    }

    /// The process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until the server has said a text on stderr; gives all that it said. It reaches the test
    /// by a pipe and a thread, so what a server does may be seen before what it says of it.
    pub(crate) fn said(&self, text: &str) -> String {
        wait_until(text, || self.stderr().contains(text))
            .unwrap_or_else(|error| panic!("{error}: {}", self.stderr()));
        self.stderr()
    }

    /// What the server said on stderr so far.
    pub(crate) fn stderr(&self) -> String {
        self.stderr.lock().map(|s| s.clone()).unwrap_or_default()
    }

    /// SIGKILL, and wait until it is gone.
    pub(crate) fn kill(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// SIGTERM, and the exit status.
    pub(crate) fn terminate(self) -> Outcome<ExitStatus> {
        signal("TERM", self.pid())?;
        self.ended()
    }

    /// Waits until it has ended by itself; gives its exit status.
    pub(crate) fn ended(mut self) -> Outcome<ExitStatus> {
        let mut status = None;
        wait_until("the server has drained", || {
            status = self.child.try_wait().ok().flatten();
            status.is_some()
        })?;
        status.ok_or_else(|| "no exit status".to_string())
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let said = self.stderr();
        if std::thread::panicking() {
            eprintln!("the server said: {said}");
        } else {
            // It lives through most of its own defects, and a test would not see them.
            assert!(!said.contains("panicked"), "{said}");
        }
    }
}

/// A range that holds every record of the tests, as parameters.
pub(crate) const ALL_TIME: &str = "from=1970-01-01T00:00:00Z&to=2100-01-01T00:00:00Z";

/// Pushes a body over a connection that is kept; `parameters` go behind the `?`.
pub(crate) fn push(
    client: &mut Client,
    content_type: &str,
    parameters: &str,
    body: &[u8],
) -> Outcome<PushAnswer> {
    let target = format!("/api/v1/push?{parameters}");
    let response = client
        .send("POST", &target, &[("content-type", content_type)], body)
        .map_err(|e| format!("push: {e}"))?;
    let status = response.status;
    let text = response.text().map_err(|e| format!("push: {e}"))?;
    let body = serde_json::from_str(&text).unwrap_or(serde_json::Value::String(text));
    Ok(PushAnswer { status, body })
}

/// The value of a metric in what `/metrics` says, or the sum over its labels.
pub(crate) fn metric(exposition: &str, name: &str) -> f64 {
    let lines = exposition.lines().filter(|l| !l.starts_with('#'));
    let values = lines.filter_map(|line| {
        let (left, value) = line.rsplit_once(' ')?;
        let found = left.split('{').next() == Some(name);
        found.then(|| value.parse::<f64>().ok()).flatten()
    });
    values.sum()
}

/// Sends a signal by name to a process. One that is to stop has stopped then: its threads go on until one of
/// them, which may have to wait for a processor, takes note of the signal.
pub(crate) fn signal(name: &str, pid: u32) -> Outcome<()> {
    let status = Command::new("kill")
        .arg(format!("-{name}"))
        .arg(pid.to_string())
        .status();
    match status {
        Ok(status) if status.success() => {}
        other => return Err(format!("kill -{name} {pid}: {other:?}")),
    }
    match name {
        "STOP" => wait_until("the process has stopped", || has_stopped(pid)),
        _ => Ok(()),
    }
}

/// Whether no thread of a process runs (proc_pid_stat(5)); one that has ended runs no more either.
fn has_stopped(pid: u32) -> bool {
    let threads = fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten();
    let stats = threads
        .flatten()
        .map(|thread| fs::read_to_string(thread.path().join("stat")));
    stats.flatten().all(|stat| {
        let state = stat.rsplit_once(") ").map(|(_, rest)| rest.as_bytes()[0]);
        matches!(state, Some(b'T' | b't' | b'Z' | b'X'))
    })
}

/// Waits for a condition, looking often. The only waiting in tests: nothing waits for a time.
pub(crate) fn wait_until(what: &str, holds: impl FnMut() -> bool) -> Outcome<()> {
    wait_within(DEADLINE, what, holds)
}

/// The same with a deadline of one's own.
pub(crate) fn wait_within(
    deadline: Duration,
    what: &str,
    mut holds: impl FnMut() -> bool,
) -> Outcome<()> {
    let start = Instant::now();
    while !holds() {
        if start.elapsed() > deadline {
            return Err(format!("waited {deadline:?} in vain until {what}"));
        }
        std::thread::park_timeout(POLL);
    }
    Ok(())
}

/// CPU seconds that a process has used, user and system.
pub(crate) fn cpu_seconds(pid: u32) -> Outcome<f64> {
    let path = format!("/proc/{pid}/stat");
    let text = fs::read_to_string(&path).map_err(|e| format!("{path}: {e}"))?;
    let after_name = text
        .rsplit_once(") ")
        .map(|(_, rest)| rest)
        .unwrap_or_default();
    let fields: Vec<&str> = after_name.split(' ').collect();
    let ticks = |index: usize| fields.get(index).and_then(|f| f.parse::<f64>().ok());
    match (ticks(11), ticks(12)) {
        (Some(user), Some(system)) => Ok((user + system) / TICKS_PER_SECOND),
        _ => Err(format!("{path}: {text:?}")),
    }
}

/// A size from `/proc/PID/status` in bytes: `VmRSS` now, `VmHWM` at most so far.
pub(crate) fn memory_bytes(pid: u32, name: &str) -> Outcome<u64> {
    let path = format!("/proc/{pid}/status");
    let text = fs::read_to_string(&path).map_err(|e| format!("{path}: {e}"))?;
    text.lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
        .and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok())
        .map(|kib| kib << 10)
        .ok_or_else(|| format!("{path}: no {name}"))
}

/// Files below a directory whose names end so, sorted.
pub(crate) fn files_below(directory: &Path, suffix: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut directories = vec![directory.to_path_buf()];
    while let Some(directory) = directories.pop() {
        let Ok(entries) = fs::read_dir(&directory) else {
            continue;
        };
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                directories.push(path);
            } else if path.to_string_lossy().ends_with(suffix) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Collects what a process says, and passes nothing on; the thread ends when the process has.
fn collect(
    stream: Option<impl std::io::Read + Send + 'static>,
) -> (Arc<Mutex<String>>, JoinHandle<()>) {
    /// The most that is kept of what a server says.
    const SAID_BYTES_MAX: usize = 1 << 20;
    let said = Arc::new(Mutex::new(String::new()));
    let target = Arc::clone(&said);
    let reader = std::thread::spawn(move || {
        let Some(stream) = stream else { return };
        for line in BufReader::new(stream).lines().map_while(Result::ok) {
            if let Ok(mut text) = target.lock()
                && text.len() < SAID_BYTES_MAX
            {
                text.push_str(&line);
                text.push('\n');
            }
        }
    });
    (said, reader)
}
