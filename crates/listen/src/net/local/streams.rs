//! Streams of this machine's programs: who connected, and how many at a time.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Instant;

use logpond_record::Labels;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use super::process::{Credentials, Processes};
use super::receive::LAST_MAX;
use crate::net::{Context, RETRY_PAUSE, look_once_more};
use logpond_host::shutdown::DRAIN_TIME_MAX;

/// Streams of a socket at a time, as many as journald has; further ones wait to be accepted, with
/// what the kernel takes of them.
pub(super) const STREAMS_MAX: usize = 4096;

/// Goes on with streams of an earlier server, and accepts others until the stop, and those that wait
/// then; what they hold is still taken. `begin` is done with each that is accepted before the next one is.
pub(super) async fn accept<S, B, F>(
    listener: UnixListener,
    context: &Context,
    earlier: Vec<S>,
    begin: impl Fn(UnixStream) -> B,
    serve: impl Fn(S) -> F,
) where
    B: Future<Output = S>,
    F: Future<Output = ()> + Send + 'static,
{
    let slots = Arc::new(Semaphore::new(STREAMS_MAX));
    let mut shutdown = context.shutdown.clone();
    let mut open = JoinSet::new();
    let go_on = |slot, stream, open: &mut JoinSet<()>| {
        let (metrics, intake) = (context.metrics.clone(), context.intake);
        metrics.intake(intake).connections_total.add(1);
        let serving = serve(stream);
        open.spawn(async move {
            let _slot: OwnedSemaphorePermit = slot;
            let _held = metrics.intake(intake).connections.hold();
            serving.await;
        });
    };
    for stream in earlier {
        // There are not more of them.
        if let Ok(slot) = slots.clone().try_acquire_owned() {
            go_on(slot, stream, &mut open);
        }
    }
    loop {
        let accepted = tokio::select! {
            accepted = next(&listener, &slots) => accepted,
            Some(_) = open.join_next() => continue,
            () = shutdown.stopping() => break,
        };
        match accepted {
            Ok((slot, stream)) => go_on(slot, begin(stream).await, &mut open),
            // Out of descriptors, or the program is gone already.
            Err(_) => tokio::time::sleep(RETRY_PAUSE).await,
        }
    }
    // A program that has sent something may have ended since; others may connect without end.
    let until = Instant::now() + LAST_MAX;
    while Instant::now() < until
        && let Some(Ok((slot, stream))) = look_once_more(next(&listener, &slots)).await
    {
        go_on(slot, begin(stream).await, &mut open);
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

/// Who connected, by the kernel's word.
pub(super) fn peer_of(stream: &UnixStream) -> Option<Credentials> {
    let said = stream.peer_cred().ok()?;
    let pid = u32::try_from(said.pid()?).ok().filter(|pid| *pid > 0)?;
    let (uid, gid) = (said.uid(), said.gid());
    Some(Credentials { pid, uid, gid })
}

/// The labels of what a peer sends. `None` at the end of this process.
pub(super) async fn labels_of(peer: Option<Credentials>, machine: &Labels) -> Option<Arc<Labels>> {
    let mut processes = Processes::new(machine.clone());
    // `/proc` is read elsewhere than where connections are served.
    let labels = tokio::task::spawn_blocking(move || processes.of(peer, Instant::now()));
    labels.await.ok()
}
