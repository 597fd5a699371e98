//! Sockets for the programs of this machine: `/dev/log`, and those of journald.
//!
//! Invariants:
//! - No program ever waits for the journal, the disk or the network: each socket is emptied into a
//!   queue that is bounded, datagrams by a thread that does nothing else; what finds no room there is
//!   counted and told.
//! - Who sent something is the kernel's word, never the sender's.
//!
//! ```text
//! /dev/log, socket ─▶ thread: who sent it, batches ─┐
//! streams, stdout ─▶ a task each: frames, lines ────┴▶ queue (64 MiB) ─▶ task: submit ─▶ journal
//! kmsg ─▶ thread ─▶ task: submit a message each ──────────────────────────────────────────────▶
//! ```

mod bind;
mod cgroup;
mod dev_log;
mod dev_log_stream;
mod entries;
mod journal;
mod kmsg;
mod process;
mod queue;
mod receive;
mod stdout;
mod streams;

use std::fs::File;
use std::io;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use logpond_segment::batches::BatchSet;
use tokio::task::JoinSet;

pub use bind::{PathBindError, PathGuard};
use bind::{bind_datagram, bind_listener};
use queue::{Emptying, Filling};

use super::Context;
use crate::telemetry::Intake;

/// journald's names for its sockets, below its directory.
const JOURNAL_NAME: &str = "socket";
const STDOUT_NAME: &str = "stdout";
const DEV_LOG_NAME: &str = "dev-log";

/// A socket, where it is, and what takes it away at the end.
struct Bound<S> {
    path: PathBuf,
    socket: S,
    guard: PathGuard,
}

/// The sockets that are on.
#[derive(Default)]
pub struct LocalSockets {
    dev_logs: Vec<Bound<UnixDatagram>>,
    dev_log_stream: Option<Bound<UnixListener>>,
    journal: Option<Bound<UnixDatagram>>,
    stdout: Option<Bound<UnixListener>>,
    kernel: Option<(File, PathBuf)>,
}

impl LocalSockets {
    /// Binds a socket for syslog, one for streams of it, and those of journald in a directory, which is made; opens what the
    /// kernel's messages are read from.
    ///
    /// # Errors
    /// When somebody receives there already, or the system refuses.
    pub fn bind(
        dev_log: Option<&Path>,
        dev_log_stream: Option<&Path>,
        journald: Option<&Path>,
        kmsg: Option<&Path>,
    ) -> Result<LocalSockets, PathBindError> {
        let mut sockets = LocalSockets::default();
        if let Some(path) = kmsg {
            let file = bind::open_device("--kmsg", path)?;
            sockets.kernel = Some((file, path.to_owned()));
        }
        if let Some(path) = dev_log {
            sockets.dev_logs.push(datagram("--dev-log", path)?);
        }
        if let Some(path) = dev_log_stream {
            sockets.dev_log_stream = Some(stream("--dev-log-stream", path)?);
        }
        if let Some(directory) = journald {
            let flag = "--journald";
            bind::make_directory(flag, directory)?;
            let in_directory = |name: &str| directory.join(name);
            sockets.journal = Some(datagram(flag, &in_directory(JOURNAL_NAME))?);
            sockets
                .dev_logs
                .push(datagram(flag, &in_directory(DEV_LOG_NAME))?);
            sockets.stdout = Some(stream(flag, &in_directory(STDOUT_NAME))?);
        }
        Ok(sockets)
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
        for bound in self.dev_logs {
            let context = context_of(Intake::DevLog);
            let started = dev_log::start(bound.socket, &name(&bound.path), context)?;
            tasks.spawn(empty(started, bound.guard));
        }
        if let Some(bound) = self.journal {
            let context = context_of(Intake::Journal);
            let started = journal::start(bound.socket, &name(&bound.path), context)?;
            tasks.spawn(empty(started, bound.guard));
        }
        if let Some((file, path)) = self.kernel {
            let context = context_of(Intake::Kernel);
            tasks.spawn(kmsg::start(file, name(&path), context, held)?);
        }
        if let Some(bound) = self.dev_log_stream {
            let context = context_of(Intake::DevLogStream);
            serve_streams(bound, context, dev_log_stream::serve, tasks)?;
        }
        if let Some(bound) = self.stdout {
            let context = context_of(Intake::Stdout);
            serve_streams(bound, context, stdout::serve, tasks)?;
        }
        Ok(())
    }
}

fn datagram(flag: &'static str, path: &Path) -> Result<Bound<UnixDatagram>, PathBindError> {
    let (socket, guard) = bind_datagram(flag, path)?;
    let path = path.to_owned();
    Ok(Bound {
        path,
        socket,
        guard,
    })
}

fn stream(flag: &'static str, path: &Path) -> Result<Bound<UnixListener>, PathBindError> {
    let (socket, guard) = bind_listener(flag, path)?;
    let path = path.to_owned();
    Ok(Bound {
        path,
        socket,
        guard,
    })
}

fn name(path: &Path) -> String {
    path.display().to_string()
}

/// Serves streams, and submits what comes by them, until their end.
fn serve_streams<F>(
    bound: Bound<UnixListener>,
    context: Context,
    serve: impl Fn(tokio::net::UnixListener, Filling, Context) -> F,
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
async fn empty((thread, emptying): (JoinHandle<()>, Emptying), guard: PathGuard) {
    emptying.run().await;
    // The queue ended because the thread did.
    let _ = thread.join();
    drop(guard);
}
