//! `/dev/log` as a stream socket: syslog of programs that send no datagrams.
//!
//! The C library connects so where `/dev/log` is a stream socket, and ends each message with NUL;
//! syslog-ng's `unix-stream()` sends lines or counted frames. The framing is that of syslog over TCP.
//!
//! A program must not wait for the journal: so a stream is read as fast as it comes, into the queue of
//! all of them.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use logpond_record::{EntryKind, Labels};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::Instant;

use super::process;
use super::queue::QueueSender;
use super::receive::LAST_MAX;
use super::streams;
use crate::net::framing::Framer;
use crate::net::gather::Gather;
use crate::net::{BATCH_BYTES, Context, LINGER, look_once_more};
use logpond_host::clock;

/// Read buffer of a stream that sends: one read is what the others wait for at most.
const READ_BYTES: usize = 64 << 10;

/// How often it is looked whether losses are over that were not told yet.
const TELL_EVERY: Duration = Duration::from_secs(1);

/// The state that all streams share.
struct StreamEnvironment {
    filling: Mutex<QueueSender>,
    machine: Labels,
    context: Context,
}

impl StreamEnvironment {
    fn filling(&self) -> MutexGuard<'_, QueueSender> {
        self.filling.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Serves streams until the stop; what the open ones hold then is still taken.
pub(super) async fn serve(listener: UnixListener, filling: QueueSender, context: Context) {
    let machine = process::machine(&context.hostname, "syslog");
    let shared = Arc::new(StreamEnvironment {
        filling: Mutex::new(filling),
        machine,
        context: context.clone(),
    });
    let each = |stream| serve_stream(stream, shared.clone());
    tokio::select! {
        () = streams::accept(listener, &context, Vec::new(), std::future::ready, each) => {}
        () = tell_losses(&shared) => {}
    }
    shared.filling().tell_losses(clock::now());
}

/// Tells losses also while nobody sends any more. Never ends.
async fn tell_losses(shared: &StreamEnvironment) {
    loop {
        tokio::time::sleep(TELL_EVERY).await;
        shared.filling().tell_losses(clock::now());
    }
}

async fn serve_stream(stream: UnixStream, shared: Arc<StreamEnvironment>) {
    let peer = streams::peer_of(&stream);
    let Some(labels) = streams::labels_of(peer, &shared.machine).await else {
        return;
    };
    let context = &shared.context;
    let connection = Connection {
        framing: Framer::frames(context.line_bytes_max),
        gather: Gather::new(EntryKind::Syslog, Labels::clone(&labels)),
        buffer: Vec::new(),
        linger_until: None,
        shared: &shared,
    };
    connection.run(stream).await;
}

struct Connection<'s> {
    framing: Framer,
    gather: Gather,
    buffer: Vec<u8>,
    /// When what was gathered is handed over although there is little of it.
    linger_until: Option<Instant>,
    shared: &'s StreamEnvironment,
}

impl Connection<'_> {
    async fn run(mut self, stream: UnixStream) {
        let mut shutdown = self.shared.context.shutdown.clone();
        let mut end = None;
        loop {
            if shutdown.is_stopping() {
                if end.is_none() {
                    look_once_more(stream.readable()).await;
                }
                // Somebody may send without end.
                let now = Instant::now();
                if *end.get_or_insert(now + LAST_MAX) <= now {
                    break;
                }
            }
            match self.read(&stream) {
                Ok(0) => break,
                Ok(_) => {
                    if self.gather.bytes() >= BATCH_BYTES {
                        self.hand_over();
                    }
                    // A program that sends without end must not hold up the others.
                    tokio::task::yield_now().await;
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => break,
            }
            if end.is_some() {
                break;
            }
            let now = Instant::now();
            if self.linger_until.is_some_and(|until| until <= now) {
                self.hand_over();
            }
            if !self.gather.is_empty() {
                self.linger_until.get_or_insert(now + LINGER);
            }
            tokio::select! {
                _ = stream.readable() => {}
                () = at(self.linger_until) => {}
                () = shutdown.stopping() => {}
            }
        }
        let context = &self.shared.context;
        self.framing.finish(&mut self.gather, context);
        self.hand_over();
    }

    fn read(&mut self, stream: &UnixStream) -> io::Result<usize> {
        // Idle streams have no buffer.
        self.buffer.resize(READ_BYTES, 0);
        let read = stream.try_read(&mut self.buffer);
        match &read {
            Ok(bytes) => {
                let context = &self.shared.context;
                self.framing
                    .feed(&self.buffer[..*bytes], &mut self.gather, context);
            }
            Err(_) if self.gather.is_empty() => self.buffer = Vec::new(),
            Err(_) => {}
        }
        read
    }

    fn hand_over(&mut self) {
        self.linger_until = None;
        let batches = self.gather.take();
        if batches.is_empty() {
            return;
        }
        let now = clock::now();
        let mut filling = self.shared.filling();
        for batch in batches {
            filling.push(batch, now);
        }
    }
}

/// Waits for a moment; for none, for ever.
async fn at(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
