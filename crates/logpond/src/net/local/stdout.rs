//! journald's stream socket: what services print.
//!
//! A service blocks where its output is not read; so a connection is read as fast as it comes, into the
//! queue of all of them. Empty lines are no records, as in journald.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use logpond_protocol::intake::journal_stdout::{StdoutSplitter, level};
use logpond_protocol::intake::lines::Line;
use logpond_record::Labels;
use logpond_record::limits::TRUNCATED_FIELD;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::entries::Entries;
use super::process::{self, Credentials, Processes};
use super::queue::Filling;
use crate::clock;
use crate::net::{Context, RETRY_PAUSE};
use crate::shutdown::DRAIN_TIME_MAX;

/// Streams at a time, as in journald; further ones wait to be accepted.
const STREAMS_MAX: usize = 4096;

/// Read buffer of a stream.
const READ_BYTES: usize = 16 << 10;

/// What all streams share.
struct Shared {
    filling: Mutex<Filling>,
    machine: Labels,
    context: Context,
}

/// Accepts streams until the stop; what the open ones hold then is still taken.
pub(super) async fn serve(listener: UnixListener, filling: Filling, context: Context) {
    let mut machine = process::machine(&context.hostname);
    machine.push(("_TRANSPORT".into(), "stdout".into()));
    let mut shutdown = context.shutdown.clone();
    let shared = Arc::new(Shared {
        filling: Mutex::new(filling),
        machine,
        context,
    });
    let slots = Arc::new(Semaphore::new(STREAMS_MAX));
    let mut open = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = accept(&listener, &slots) => accepted,
            Some(_) = open.join_next() => continue,
            () = shutdown.stopping() => break,
        };
        let Ok((slot, stream)) = accepted else {
            tokio::time::sleep(RETRY_PAUSE).await;
            continue;
        };
        let shared = shared.clone();
        open.spawn(async move {
            let _slot = slot;
            let metrics = shared.context.metrics.intake(shared.context.intake);
            metrics.connections_total.add(1);
            let _held = metrics.connections.hold();
            serve_stream(stream, &shared).await;
        });
    }
    drop(listener);
    let all = async { while open.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(DRAIN_TIME_MAX, all).await;
}

async fn accept(
    listener: &UnixListener,
    slots: &Arc<Semaphore>,
) -> io::Result<(tokio::sync::OwnedSemaphorePermit, UnixStream)> {
    let slot = slots.clone().acquire_owned().await;
    let slot = slot.map_err(io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    Ok((slot, stream))
}

async fn serve_stream(stream: UnixStream, shared: &Shared) {
    let said = stream.peer_cred().ok().and_then(|said| {
        let pid = u32::try_from(said.pid()?).ok().filter(|pid| *pid > 0)?;
        let (uid, gid) = (said.uid(), said.gid());
        Some(Credentials { pid, uid, gid })
    });
    let mut processes = Processes::new(shared.machine.clone());
    // `/proc` is read elsewhere than where connections are served.
    let labels = tokio::task::spawn_blocking(move || processes.of(said, Instant::now()));
    let Ok(labels) = labels.await else {
        return;
    };
    let connection = Connection {
        splitter: StdoutSplitter::new(shared.context.line_bytes_max),
        entries: Entries::new(shared.context.clone()),
        is_root: said.is_some_and(|said| said.uid == 0),
        labels,
        shared,
    };
    connection.run(stream).await;
}

struct Connection<'s> {
    splitter: StdoutSplitter,
    entries: Entries,
    is_root: bool,
    labels: Arc<Labels>,
    shared: &'s Shared,
}

impl Connection<'_> {
    async fn run(mut self, stream: UnixStream) {
        let mut shutdown = self.shared.context.shutdown.clone();
        let mut is_stopping = false;
        let mut buffer = vec![0; READ_BYTES];
        loop {
            match stream.try_read(&mut buffer) {
                Ok(0) => break,
                Ok(bytes) => {
                    if self.feed(&buffer[..bytes]).is_err() {
                        return;
                    }
                    // A service that prints without end must not hold up the others.
                    tokio::task::yield_now().await;
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.hand_over(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => break,
            }
            if is_stopping {
                break;
            }
            tokio::select! {
                _ = stream.readable() => {}
                () = shutdown.stopping() => is_stopping = true,
            }
        }
        self.finish();
    }

    fn feed(&mut self, bytes: &[u8]) -> Result<(), ()> {
        let mut lines = Vec::new();
        let fed = self.splitter.feed(bytes, |line| lines.push(own(&line)));
        for (line, truncated_bytes) in lines {
            self.add(&line, truncated_bytes, "");
        }
        if self.entries.is_full() {
            self.hand_over();
        }
        fed.map_err(|_| ())
    }

    fn finish(mut self) {
        let mut last = None;
        self.splitter.finish(|line| last = Some(own(&line)));
        if let Some((line, truncated_bytes)) = last {
            self.add(&line, truncated_bytes, "eof");
        }
        self.hand_over();
    }

    fn add(&mut self, line: &[u8], truncated_bytes: usize, line_break: &str) {
        let Some(header) = self.splitter.header() else {
            return;
        };
        let (severity, message) = level(line, header);
        if message.is_empty() {
            return;
        }
        let severity = severity.to_string();
        let facility = (header.priority >> 3).to_string();
        let sent = (line.len() + truncated_bytes).to_string();
        let has_unit = self
            .labels
            .iter()
            .any(|(name, _)| &**name == "_SYSTEMD_UNIT");
        let unit = if self.is_root && !has_unit {
            &*header.unit
        } else {
            ""
        };
        let mut fields = vec![
            ("MESSAGE", message),
            ("PRIORITY", severity.as_bytes()),
            ("SYSLOG_FACILITY", facility.as_bytes()),
        ];
        let others = [
            ("SYSLOG_IDENTIFIER", &*header.identifier),
            ("_SYSTEMD_UNIT", unit),
            ("_LINE_BREAK", line_break),
            (
                TRUNCATED_FIELD,
                if truncated_bytes > 0 { &*sent } else { "" },
            ),
        ];
        let said = others.into_iter().filter(|(_, value)| !value.is_empty());
        fields.extend(said.map(|(name, value)| (name, value.as_bytes())));
        self.entries
            .add(&fields, &self.labels, truncated_bytes == 0);
    }

    fn hand_over(&mut self) {
        if self.entries.is_empty() {
            return;
        }
        let filling = &self.shared.filling;
        let mut filling = filling.lock().unwrap_or_else(PoisonError::into_inner);
        filling.push(self.entries.take(), clock::now());
    }
}

fn own(line: &Line<'_>) -> (Vec<u8>, usize) {
    (line.bytes.to_vec(), line.truncated_bytes)
}
