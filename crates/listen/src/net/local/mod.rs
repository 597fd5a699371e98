//! Sockets for the programs of this machine: `/dev/log`, and those of journald; and what its kernel says.
//!
//! Invariants:
//! - No program ever waits for the journal, the disk or the network: each socket is emptied into a
//!   queue that is bounded, datagrams by a thread that does nothing else; what finds no room there is
//!   counted and told.
//! - Who sent something is the kernel's word, never the sender's.
//! - A restart is no end: while no server is there, a [`keeper`] holds the sockets and the streams, and
//!   what is sent waits in the kernel.
//!
//! ```text
//! /dev/log, socket, audit ─▶ thread: batches ───────┐
//! streams, stdout ─▶ a task each: frames, lines ────┴▶ queue (64 MiB) ─▶ task: submit ─▶ journal
//! kmsg ─▶ thread ─▶ task: submit a message each ──────────────────────────────────────────────▶
//!
//! server ─▶ keeper: the sockets, each stream, a board that says what is known of each ─▶ next server
//! ```

mod audit;
mod backlog;
mod bind;
mod cgroup;
mod dev_log;
mod dev_log_stream;
mod entries;
mod journal;
pub mod keeper;
mod kmsg;
mod process;
mod queue;
mod receive;
mod stdout;
mod streams;

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use logpond_segment::batches::BatchSet;
use tokio::task::JoinSet;

pub use audit::AuditError;
pub use bind::{PathBindError, PathGuard};
use bind::{bind_datagram, bind_listener};
use keeper::{Handover, Identity, Keeper, Kind, LeftStream, ToKeep};
use queue::{QueueReceiver, QueueSender};

use super::Context;
use logpond_host::telemetry::{Intake, warn};

/// journald's names for its sockets, below its directory.
const JOURNAL_NAME: &str = "socket";
const STDOUT_NAME: &str = "stdout";
const DEV_LOG_NAME: &str = "dev-log";

/// A socket, where it is, and what takes it away at the end, unless a keeper does.
struct BoundSocket<S> {
    path: PathBuf,
    socket: S,
    guard: Option<PathGuard>,
    identity: Identity,
    /// Whether it was taken over from an earlier server.
    is_taken_over: bool,
}

/// The sockets to open.
#[derive(Clone, Copy, Debug, Default)]
pub struct SocketOptions<'a> {
    /// Where syslog is taken.
    pub dev_log: Option<&'a Path>,
    /// Where streams of it are taken.
    pub dev_log_stream: Option<&'a Path>,
    /// Where those of journald are.
    pub journald: Option<&'a Path>,
    /// What the kernel's messages are read from.
    pub kmsg: Option<&'a Path>,
    /// How long they are kept for the next server once this one is gone, if they are.
    pub keep_for: Option<Duration>,
}

/// The sockets that are on.
#[derive(Default)]
pub struct LocalSockets {
    dev_logs: Vec<BoundSocket<UnixDatagram>>,
    dev_log_stream: Option<BoundSocket<UnixListener>>,
    journal: Option<BoundSocket<UnixDatagram>>,
    stdout: Option<BoundSocket<UnixListener>>,
    kernel: Option<(File, PathBuf)>,
    audit: Option<OwnedFd>,
    kept: Option<KeeperSession>,
}

/// The keeper that holds the sockets over a restart.
struct KeeperSession {
    keeper: Arc<Keeper>,
    keep_for: Duration,
    /// What earlier servers have left.
    streams: Vec<LeftStream>,
}

impl LocalSockets {
    /// Binds a socket for syslog, one for streams of it, and those of journald in a directory, which is
    /// made, unless an earlier server has left them; opens what the kernel's messages are read from.
    ///
    /// # Errors
    /// When somebody receives there already, or the system refuses.
    pub fn bind(wanted: SocketOptions<'_>) -> Result<LocalSockets, PathBindError> {
        let mut sockets = LocalSockets::default();
        if let Some(path) = wanted.kmsg {
            let file = bind::open_device("--kmsg", path)?;
            sockets.kernel = Some((file, path.to_owned()));
        }
        let mut left = wanted.take_over();
        if let Some(path) = wanted.dev_log {
            let bound = datagram("--dev-log", path, &mut left)?;
            sockets.dev_logs.push(bound);
        }
        if let Some(path) = wanted.dev_log_stream {
            let bound = listener("--dev-log-stream", path, &mut left)?;
            sockets.dev_log_stream = Some(bound);
        }
        if let Some(directory) = wanted.journald {
            let flag = "--journald";
            bind::make_directory(flag, directory)?;
            let in_directory = |name: &str| directory.join(name);
            let journal = datagram(flag, &in_directory(JOURNAL_NAME), &mut left)?;
            sockets.journal = Some(journal);
            let dev_log = datagram(flag, &in_directory(DEV_LOG_NAME), &mut left)?;
            sockets.dev_logs.push(dev_log);
            let stdout = listener(flag, &in_directory(STDOUT_NAME), &mut left)?;
            sockets.stdout = Some(stdout);
        }
        if let (Some(left), Some(keep_for)) = (left, wanted.keep_for) {
            sockets.keep(left, keep_for);
        }
        Ok(sockets)
    }

    /// Has them kept, if that is possible.
    fn keep(&mut self, left: Handover, keep_for: Duration) {
        let datagrams = self.dev_logs.iter().chain(&self.journal);
        let datagrams = datagrams.map(|bound| bound.to_keep(Kind::Datagrams));
        let listeners = self.dev_log_stream.iter().chain(&self.stdout);
        let listeners = listeners.map(|bound| bound.to_keep(Kind::Listener));
        let all: Vec<ToKeep<'_>> = datagrams.chain(listeners).collect();
        match Keeper::start(left, &all, self.stdout.is_some()) {
            Ok((keeper, streams)) => {
                self.leave();
                self.kept = Some(KeeperSession {
                    keeper,
                    keep_for,
                    streams,
                });
            }
            Err(error) => warn(&format!(
                "a restart will break what programs of this machine write to: nothing keeps it: {error}"
            )),
        }
    }

    /// Leaves the paths where they are: the keeper takes them away.
    fn leave(&mut self) {
        let datagrams = self.dev_logs.iter_mut().chain(&mut self.journal);
        let listeners = self.dev_log_stream.iter_mut().chain(&mut self.stdout);
        let guards = datagrams.map(|bound| &mut bound.guard);
        let guards = guards.chain(listeners.map(|bound| &mut bound.guard));
        guards.filter_map(Option::take).for_each(PathGuard::leave);
    }

    /// Listens to the kernel's audit records, too.
    ///
    /// # Errors
    /// When the kernel does not let us.
    pub fn listen_to_audit(&mut self) -> Result<(), AuditError> {
        self.audit = Some(audit::listen()?);
        Ok(())
    }

    /// Serves them until the stop; what the kernel holds then is still taken. `held` says which batches
    /// of an epoch this node has.
    ///
    /// # Errors
    /// When a socket cannot say who sends, or no thread can be started.
    pub fn serve(
        self,
        context_of: impl Fn(Intake) -> Context,
        held: &dyn Fn(u128) -> BatchSet,
        tasks: &mut JoinSet<()>,
    ) -> io::Result<()> {
        // It keeps as long as there is a server: as long as anything receives.
        let keeper = self.kept.as_ref().map(|kept| kept.keeper.clone());
        for bound in self.dev_logs {
            let context = context_of(Intake::DevLog);
            let started = dev_log::start(bound.socket, &name(&bound.path), context)?;
            tasks.spawn(empty(started, (bound.guard, keeper.clone())));
        }
        if let Some(bound) = self.journal {
            let context = context_of(Intake::Journal);
            let started = journal::start(bound.socket, &name(&bound.path), context)?;
            tasks.spawn(empty(started, (bound.guard, keeper.clone())));
        }
        if let Some(socket) = self.audit {
            let (thread, emptying) = audit::start(socket, context_of(Intake::Audit))?;
            tasks.spawn(finish(thread, emptying));
        }
        let streams = self.kept.map_or_else(Vec::new, |kept| {
            kept.keeper.serving(kept.keep_for);
            kept.streams
        });
        if let Some((file, path)) = self.kernel {
            let context = context_of(Intake::Kernel);
            tasks.spawn(kmsg::start(file, name(&path), context, held)?);
        }
        if let Some(bound) = self.dev_log_stream {
            let context = context_of(Intake::DevLogStream);
            let held = keeper.clone();
            let serve = |listener, filling, context| async move {
                dev_log_stream::serve(listener, filling, context).await;
                drop(held);
            };
            serve_streams(bound, context, serve, tasks)?;
        }
        if let Some(bound) = self.stdout {
            let context = context_of(Intake::Stdout);
            let serve = |listener, filling, context| {
                stdout::serve(listener, filling, context, keeper, streams)
            };
            serve_streams(bound, context, serve, tasks)?;
        }
        Ok(())
    }
}

impl SocketOptions<'_> {
    /// Takes over what an earlier server has left, if that is wanted and there may be something.
    fn take_over(&self) -> Option<Handover> {
        self.keep_for?;
        let control = match (self.journald, self.dev_log.or(self.dev_log_stream)) {
            (Some(directory), _) => keeper::control_in(directory),
            (None, Some(path)) => keeper::control_beside(path),
            (None, None) => return None,
        };
        Some(Handover::take_over(&control))
    }
}

impl<S: AsFd> BoundSocket<S> {
    fn to_keep(&self, kind: Kind) -> ToKeep<'_> {
        ToKeep {
            kind,
            identity: self.identity,
            path: &self.path,
            descriptor: self.socket.as_fd(),
            is_kept: self.is_taken_over,
        }
    }
}

fn datagram(
    flag: &'static str,
    path: &Path,
    left: &mut Option<Handover>,
) -> Result<BoundSocket<UnixDatagram>, PathBindError> {
    taken_over(Kind::Datagrams, path, left)
        .map_or_else(|| newly(path, bind_datagram(flag, path)), Ok)
}

fn listener(
    flag: &'static str,
    path: &Path,
    left: &mut Option<Handover>,
) -> Result<BoundSocket<UnixListener>, PathBindError> {
    taken_over(Kind::Listener, path, left)
        .map_or_else(|| newly(path, bind_listener(flag, path)), Ok)
}

/// The socket of an earlier server.
fn taken_over<S: From<OwnedFd>>(
    kind: Kind,
    path: &Path,
    left: &mut Option<Handover>,
) -> Option<BoundSocket<S>> {
    let (socket, identity) = left.as_mut()?.socket(kind, path)?;
    Some(BoundSocket {
        path: path.to_owned(),
        socket: socket.into(),
        guard: Some(PathGuard::over(path, identity)),
        identity,
        is_taken_over: true,
    })
}

fn newly<S>(
    path: &Path,
    bound: Result<(S, PathGuard), PathBindError>,
) -> Result<BoundSocket<S>, PathBindError> {
    let (socket, guard) = bound?;
    Ok(BoundSocket {
        path: path.to_owned(),
        socket,
        identity: guard.identity(),
        guard: Some(guard),
        is_taken_over: false,
    })
}

fn name(path: &Path) -> String {
    path.display().to_string()
}

/// Serves streams, and submits what comes by them, until their end.
fn serve_streams<F>(
    bound: BoundSocket<UnixListener>,
    context: Context,
    serve: impl FnOnce(tokio::net::UnixListener, QueueSender, Context) -> F,
    tasks: &mut JoinSet<()>,
) -> io::Result<()>
where
    F: Future<Output = ()> + Send + 'static,
{
    let (filling, emptying) = queue::queue(context.clone(), name(&bound.path));
    bound.socket.set_nonblocking(true)?;
    let listener = tokio::net::UnixListener::from_std(bound.socket)?;
    let serving = serve(listener, filling, context);
    let guard = bound.guard;
    tasks.spawn(async move {
        serving.await;
        drop(guard);
    });
    tasks.spawn(emptying.run());
    Ok(())
}

/// Submits what a thread receives, until it ends.
async fn empty((thread, emptying): (JoinHandle<()>, QueueReceiver), held: impl Send) {
    finish(thread, emptying).await;
    drop(held);
}

async fn finish(thread: JoinHandle<()>, emptying: QueueReceiver) {
    emptying.run().await;
    // The queue ended because the thread did.
    let _ = thread.join();
}
