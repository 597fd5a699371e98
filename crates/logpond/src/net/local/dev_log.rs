//! `/dev/log`: syslog datagrams of programs on this machine.
//!
//! A thread of its own receives, so that nothing else that the process does makes a program wait.
//! What a program says in its message stands beside what the kernel says of the program.

use std::io;
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Instant;

use logpond_record::{EntryKind, Labels};

use super::process::{self, Processes};
use super::queue::{self, Emptying, Filling};
use super::receive::{Receiver, Sent};
use crate::clock;
use crate::net::gather::Gather;
use crate::net::{BATCH_BYTES, Context};

/// Processes whose messages are gathered side by side; with more, the batches are queued early.
const SENDERS_MAX: usize = 64;

/// Starts to receive; what is received comes out of the queue that is given back.
///
/// # Errors
/// When the socket cannot tell who sends, or no thread can be started.
pub(super) fn start(
    socket: UnixDatagram,
    path: &str,
    context: Context,
) -> io::Result<(JoinHandle<()>, Emptying)> {
    let receiver = Receiver::new(socket, context.line_bytes_max)?;
    let mut labels = process::machine(&context.hostname);
    labels.push(("_TRANSPORT".into(), "syslog".into()));
    let (filling, emptying) = queue::queue(context.clone(), path.to_owned());
    let intake = DevLog {
        receiver,
        processes: Processes::new(labels),
        filling,
        senders: Vec::new(),
        bytes: 0,
        context,
    };
    let thread = thread::Builder::new().name("lp-dev-log".to_owned());
    Ok((thread.spawn(move || intake.run())?, emptying))
}

struct DevLog {
    receiver: Receiver,
    processes: Processes,
    filling: Filling,
    senders: Vec<(Arc<Labels>, Gather)>,
    /// Bytes in them.
    bytes: usize,
    context: Context,
}

impl DevLog {
    fn run(mut self) {
        while !self.context.shutdown.is_stopping() {
            let is_idle = self.senders.is_empty();
            match self.receiver.next(is_idle) {
                Ok(Some(sent)) => {
                    self.take(sent);
                    if self.bytes >= BATCH_BYTES || self.senders.len() > SENDERS_MAX {
                        self.hand_over();
                    }
                }
                Ok(None) => self.hand_over(),
                Err(error) => {
                    self.receiver.complain(&error);
                    self.hand_over();
                }
            }
        }
        // What the kernel holds already.
        while let Ok(Some(sent)) = self.receiver.at_once() {
            self.take(sent);
        }
        self.hand_over();
    }

    fn take(&mut self, sent: Sent) {
        let message = trim_end(self.receiver.bytes(&sent));
        if message.is_empty() {
            return;
        }
        let labels = match sent.credentials {
            Some(credentials) => self.processes.labels(credentials, Instant::now()),
            None => self.processes.unknown(),
        };
        let known = self
            .senders
            .iter()
            .rposition(|(of, _)| Arc::ptr_eq(of, &labels));
        let index = known.unwrap_or_else(|| {
            let gather = Gather::new(EntryKind::Syslog, Labels::clone(&labels));
            self.senders.push((labels, gather));
            self.senders.len() - 1
        });
        let gather = &mut self.senders[index].1;
        let before = gather.bytes();
        let limit = self.context.line_bytes_max;
        if sent.bytes > message.len() && sent.is_cut || message.len() > limit {
            let metrics = self.context.metrics.intake(self.context.intake);
            metrics.truncated.add(1);
            let kept = &message[..message.len().min(limit)];
            gather.push_cut(kept, sent.bytes as u64);
        } else {
            gather.push(message);
        }
        self.bytes += gather.bytes() - before;
    }

    fn hand_over(&mut self) {
        let now = clock::now();
        for (_, mut gather) in self.senders.drain(..) {
            for batch in gather.take() {
                self.filling.push(batch, now);
            }
        }
        self.filling.tell_losses(now);
        self.bytes = 0;
    }
}

/// Without the line end or NUL that some senders put behind the message.
fn trim_end(datagram: &[u8]) -> &[u8] {
    let end = datagram
        .iter()
        .rposition(|b| !matches!(b, b'\n' | b'\r' | 0));
    &datagram[..end.map_or(0, |at| at + 1)]
}
