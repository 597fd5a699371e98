//! The journal of this machine as it grows: what `journalctl --follow` prints, from where the last run
//! ended.
//!
//! ```text
//! journalctl -o export --follow --after-cursor=… ─▶ reader thread ─▶ 4 chunks ─▶ batcher ─▶ server
//!                                    ▲                                             │
//!                                    └──────────── state file: cursor ◀────────────┘
//! ```
//!
//! Invariants: the cursor in the file is of an entry that a server has, and so are those before it; the
//! journal itself keeps what comes while no server answers. What is sent again after a crash, since the
//! file is behind, is known to the server.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use logpond_protocol::intake::journal_export::{ExportSplitter, Exported};
use serde::{Deserialize, Serialize};

use super::{Batcher, Entries, ImportError, Target, Totals, UploadError, is_stopped};
use logpond_host::state_lock::StateLock;
use logpond_host::terminal::note;

/// Bytes that are read at once.
const CHUNK_BYTES: usize = 64 << 10;

/// Chunks between the thread that reads and the one that sends.
const CHUNKS_MAX: usize = 4;

/// How long an entry waits for others to share its request.
const LINGER: Duration = Duration::from_millis(200);

/// How long nothing may come before the stop is looked at.
const IDLE: Duration = Duration::from_millis(100);

/// The cursor is written at most so often: what is behind is sent again, and known.
const SAVE_EVERY: Duration = Duration::from_secs(1);

/// A `journalctl` that ended is started again after this long.
const RESTART_AFTER: Duration = Duration::from_secs(1);

/// One that ends sooner than this without an entry will not do.
const LIFE_MIN: Duration = Duration::from_secs(5);

/// The longest file with a cursor that is read.
const STATE_BYTES_MAX: u64 = 64 << 10;

/// Version of the file with the cursor.
const STATE_VERSION: u32 = 1;

/// The parameters of an import that follows.
#[derive(Clone, Debug)]
pub struct FollowOptions {
    /// Where entries go.
    pub target: Target,
    /// Further arguments of `journalctl`.
    pub arguments: Vec<String>,
    /// Where the cursor is remembered.
    pub state: PathBuf,
    /// Whether totals are left unsaid.
    pub quiet: bool,
}

#[derive(Serialize, Deserialize)]
struct State {
    version: u32,
    cursor: String,
}

/// The file with the cursor.
struct StateFile {
    path: PathBuf,
    saved: String,
    saved_at: Option<Instant>,
    lock: StateLock,
}

impl StateFile {
    fn open(path: &Path) -> Result<StateFile, ImportError> {
        let failed = |source| ImportError::State {
            path: path.to_owned(),
            source,
        };
        let lock = StateLock::take(path).map_err(|error| match error.kind() {
            io::ErrorKind::ResourceBusy => ImportError::StateInUse(path.to_owned()),
            _ => failed(error),
        })?;
        Ok(StateFile {
            saved: read_state(path).map_err(failed)?,
            path: path.to_owned(),
            saved_at: None,
            lock,
        })
    }

    /// Remembers a cursor, if the last time was long ago or it `must` be.
    fn save(&mut self, cursor: &[u8], must: bool) -> Result<(), ImportError> {
        let cursor = String::from_utf8_lossy(cursor);
        let is_due = self.saved_at.is_none_or(|at| at.elapsed() >= SAVE_EVERY);
        if cursor.is_empty() || cursor == self.saved || !(is_due || must) {
            return Ok(());
        }
        self.saved = cursor.into_owned();
        self.saved_at = Some(Instant::now());
        self.replace().map_err(|source| ImportError::State {
            path: self.path.clone(),
            source,
        })
    }

    /// Replaces the file as a whole, so that it is never half written.
    fn replace(&mut self) -> io::Result<()> {
        let state = State {
            version: STATE_VERSION,
            cursor: self.saved.clone(),
        };
        let mut text = serde_json::to_vec_pretty(&state).map_err(io::Error::other)?;
        text.push(b'\n');
        self.lock.replace(&text)
    }
}

/// The cursor in a file; empty if there is none.
fn read_state(path: &Path) -> io::Result<String> {
    let mut text = Vec::new();
    match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(String::new()),
        file => file?.take(STATE_BYTES_MAX).read_to_end(&mut text)?,
    };
    if text.is_empty() {
        // It was made to be locked.
        return Ok(String::new());
    }
    let nonsense = |reason: String| io::Error::new(io::ErrorKind::InvalidData, reason);
    let state: State =
        serde_json::from_slice(&text).map_err(|error| nonsense(error.to_string()))?;
    match state.version {
        STATE_VERSION => Ok(state.cursor),
        other => Err(nonsense(format!("it is of version {other}"))),
    }
}

/// A `journalctl` that runs. It ends with this.
struct Journalctl {
    child: Child,
    chunks: Receiver<io::Result<Vec<u8>>>,
    started: Instant,
}

impl Journalctl {
    fn start(arguments: &[String], cursor: &str) -> Result<Journalctl, ImportError> {
        let mut command = Command::new("journalctl");
        command
            .args([
                "--output=export",
                "--follow",
                "--lines=all",
                "--quiet",
                "--all",
            ])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        if !cursor.is_empty() {
            command.arg(format!("--after-cursor={cursor}"));
        }
        let no = |error: io::Error| ImportError::Journalctl(format!("cannot be run: {error}"));
        let mut child = command.spawn().map_err(no)?;
        let stdout = child.stdout.take();
        let (sender, chunks) = mpsc::sync_channel(CHUNKS_MAX);
        let read = move || {
            let Some(mut stdout) = stdout else {
                return;
            };
            loop {
                let mut chunk = vec![0; CHUNK_BYTES];
                let read = stdout.read(&mut chunk);
                let is_over = !matches!(read, Ok(1..));
                let sent = sender.send(read.map(|count| {
                    chunk.truncate(count);
                    chunk
                }));
                if is_over || sent.is_err() {
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name("lp-journalctl".to_owned());
        thread.spawn(read).map_err(no)?;
        Ok(Journalctl {
            child,
            chunks,
            started: Instant::now(),
        })
    }
}

impl Drop for Journalctl {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends the entries of the journal, and those that come, until `stop` is set.
///
/// # Errors
/// When a server refuses entries, `journalctl` does not work, or the cursor cannot be remembered.
pub fn follow(following: &FollowOptions, stop: &Arc<AtomicBool>) -> Result<Totals, ImportError> {
    let started = Instant::now();
    let mut state = StateFile::open(&following.state)?;
    let mut batcher = Batcher::new(following.target.clone(), Arc::clone(stop), false);
    batcher.begin(Path::new("the journal"));
    let outcome = run(following, stop, &mut state, &mut batcher);
    let saved = state.save(&batcher.cursor_sent, true);
    if !following.quiet && (outcome.is_ok() || batcher.totals != Totals::default()) {
        let address = batcher.uploader.address();
        note(&batcher.totals.text(&address, started.elapsed()));
    }
    match outcome {
        // Told to stop, which is how it ends.
        Err(ImportError::Upload(UploadError::Stopped)) => saved,
        outcome => outcome.and(saved),
    }
    .map(|()| batcher.totals)
}

fn run(
    following: &FollowOptions,
    stop: &AtomicBool,
    state: &mut StateFile,
    batcher: &mut Batcher,
) -> Result<(), ImportError> {
    while !is_stopped(stop) {
        let before = batcher.entries;
        let mut journalctl = Journalctl::start(&following.arguments, &state.saved)?;
        take_all(&journalctl, stop, state, batcher)?;
        if is_stopped(stop) {
            break;
        }
        let lived = journalctl.started.elapsed();
        let status = journalctl.child.wait().map(|status| status.to_string());
        let status = status.unwrap_or_else(|error| error.to_string());
        if lived < LIFE_MIN && batcher.entries == before {
            return Err(ImportError::Journalctl(format!("ended at once ({status})")));
        }
        note(&format!(
            "logpond: journalctl ended ({status}); it is started again"
        ));
        // It goes on behind what a server has.
        state.save(&batcher.cursor_sent, true)?;
        thread::sleep(RESTART_AFTER);
    }
    Ok(())
}

/// Takes what comes until it ends or the process is told to stop.
fn take_all(
    journalctl: &Journalctl,
    stop: &AtomicBool,
    state: &mut StateFile,
    batcher: &mut Batcher,
) -> Result<(), ImportError> {
    let mut splitter = ExportSplitter::new();
    let mut waiting_since: Option<Instant> = None;
    while !is_stopped(stop) {
        let linger = waiting_since.map(|since| LINGER.saturating_sub(since.elapsed()));
        match journalctl.chunks.recv_timeout(linger.unwrap_or(IDLE)) {
            Ok(Ok(chunk)) if !chunk.is_empty() => take_chunk(&mut splitter, &chunk, batcher)?,
            Err(RecvTimeoutError::Timeout) => {}
            // It has ended; an entry that is not whole is read again by the next one.
            Ok(_) | Err(RecvTimeoutError::Disconnected) => return batcher.flush(),
        }
        match batcher.body.entries {
            0 => waiting_since = None,
            _ => {
                waiting_since.get_or_insert_with(Instant::now);
            }
        }
        if waiting_since.is_some_and(|since| since.elapsed() >= LINGER) {
            batcher.flush()?;
            waiting_since = None;
        }
        state.save(&batcher.cursor_sent, false)?;
    }
    batcher.flush()
}

fn take_chunk(
    splitter: &mut ExportSplitter,
    chunk: &[u8],
    batcher: &mut Batcher,
) -> Result<(), ImportError> {
    let mut outcome = Ok(());
    let take = |entry: Exported<'_>| match entry {
        Ok(_) if outcome.is_err() => {}
        Ok(fields) => outcome = batcher.add(fields.iter()),
        Err(fault) => batcher.reject(&fault),
    };
    let fed = splitter.feed(chunk, take);
    outcome?;
    fed.map_err(|error| ImportError::Journalctl(format!("printed something else: {error}")))
}
