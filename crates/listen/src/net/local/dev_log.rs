//! `/dev/log`: syslog datagrams of programs on this machine.
//!
//! A thread of its own receives, so that nothing else that the process does makes a program wait.
//! What a program says in its message stands beside what the kernel says of the program.

use std::io;
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

use logpond_protocol::intake::frames::trim_end;
use logpond_record::{EntryKind, Labels};

use super::process::{self, Processes};
use super::queue::{self, QueueReceiver, QueueSender};
use super::receive::{DatagramHandler, DatagramInfo, Receiver};
use crate::net::gather::Gather;
use crate::net::{BATCH_BYTES, Context};
use logpond_host::clock;

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
) -> io::Result<(JoinHandle<()>, QueueReceiver)> {
    let receiver = Receiver::new(socket, context.line_bytes_max)?;
    let labels = process::machine(&context.hostname, "syslog");
    let (filling, emptying) = queue::queue(context.clone(), path.to_owned());
    let shutdown = context.shutdown.clone();
    let intake = DevLog {
        processes: Processes::new(labels),
        filling,
        senders: Vec::new(),
        bytes: 0,
        context,
    };
    Ok((receiver.start("lp-dev-log", intake, shutdown)?, emptying))
}

struct DevLog {
    processes: Processes,
    filling: QueueSender,
    senders: Vec<(Arc<Labels>, Gather)>,
    /// Bytes in them.
    bytes: usize,
    context: Context,
}

impl DatagramHandler for DevLog {
    fn take(&mut self, sent: DatagramInfo, bytes: &[u8]) {
        let message = trim_end(bytes);
        if message.is_empty() {
            return;
        }
        let labels = self.processes.of(sent.credentials, Instant::now());
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
        let kept = &message[..message.len().min(self.context.line_bytes_max)];
        let is_whole = kept.len() == message.len() && !sent.is_cut;
        let missing = if is_whole { 0 } else { sent.bytes - kept.len() };
        gather.add(kept, missing, &self.context);
        self.bytes += gather.bytes() - before;
    }

    fn is_empty(&self) -> bool {
        self.senders.is_empty()
    }

    fn is_full(&self) -> bool {
        self.bytes >= BATCH_BYTES || self.senders.len() > SENDERS_MAX
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
