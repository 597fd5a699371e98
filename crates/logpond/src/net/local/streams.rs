//! Streams of this machine's programs: who connected, and how many at a time.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use logpond_record::Labels;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use super::process::{Credentials, Processes};
use super::receive::LAST_MAX;
use crate::net::{Context, RETRY_PAUSE};
use crate::shutdown::DRAIN_TIME_MAX;

/// Streams of a socket at a time, as many as journald has; further ones wait to be accepted, with
/// what the kernel takes of them.
const STREAMS_MAX: usize = 4096;

/// Accepts streams until the stop, and those that wait then; what they hold is still taken.
pub(super) async fn accept<F>(
    listener: UnixListener,
    context: &Context,
    serve: impl Fn(UnixStream) -> F,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let slots = Arc::new(Semaphore::new(STREAMS_MAX));
    let mut shutdown = context.shutdown.clone();
    let mut open = JoinSet::new();
    let begin = |(slot, stream), open: &mut JoinSet<()>| {
        let (metrics, intake) = (context.metrics.clone(), context.intake);
        metrics.intake(intake).connections_total.add(1);
        let serving = serve(stream);
        open.spawn(async move {
            let _slot: OwnedSemaphorePermit = slot;
            let _held = metrics.intake(intake).connections.hold();
            serving.await;
        });
    };
    loop {
        let accepted = tokio::select! {
            accepted = next(&listener, &slots) => accepted,
            Some(_) = open.join_next() => continue,
            () = shutdown.stopping() => break,
        };
        match accepted {
            Ok(accepted) => begin(accepted, &mut open),
            // Out of descriptors, or the program is gone already.
            Err(_) => tokio::time::sleep(RETRY_PAUSE).await,
        }
    }
    // A program that has sent something may have ended since; others may connect without end.
    let until = Instant::now() + LAST_MAX;
    while Instant::now() < until
        && let Ok(Ok(accepted)) =
            tokio::time::timeout(Duration::ZERO, next(&listener, &slots)).await
    {
        begin(accepted, &mut open);
    }
    drop(listener);
    let all = async { while open.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(DRAIN_TIME_MAX, all).await;
}

async fn next(
    listener: &UnixListener,
    slots: &Arc<Semaphore>,
) -> io::Result<(OwnedSemaphorePermit, UnixStream)> {
    let slot = slots.clone().acquire_owned().await;
    let slot = slot.map_err(io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    Ok((slot, stream))
}

/// The labels of what comes by a stream: of the process that connected, by the kernel's word. `None`
/// at the end of this process.
pub(super) async fn labels_of(stream: &UnixStream, machine: &Labels) -> Option<Arc<Labels>> {
    let said = stream.peer_cred().ok().and_then(|said| {
        let pid = u32::try_from(said.pid()?).ok().filter(|pid| *pid > 0)?;
        let (uid, gid) = (said.uid(), said.gid());
        Some(Credentials { pid, uid, gid })
    });
    let mut processes = Processes::new(machine.clone());
    // `/proc` is read elsewhere than where connections are served.
    let labels = tokio::task::spawn_blocking(move || processes.of(said, Instant::now()));
    labels.await.ok()
}
