//! What was received and waits for the journal.
//!
//! A socket of this machine is emptied whatever the journal does, so that no program waits for it: so
//! there must be room for what comes meanwhile, and an end to it.
//!
//! Invariant: at most [`QUEUE_BYTES_MAX`] wait; what finds no room is counted, and a record of the loss
//! is queued once half of the queue is empty again, or at the end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use logpond_record::{Batch, EntryKind, Labels, Timestamp};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::net::Context;
use logpond_host::hostname;

/// The most bytes that wait: minutes of what a machine logs, seconds of the most that it could.
pub(super) const QUEUE_BYTES_MAX: usize = 64 << 20;

/// Senders whose losses are told apart; those of further ones are counted together.
const LOSERS_MAX: usize = 64;

/// What a batch takes beside its payload.
const BATCH_BYTES: usize = 512;

/// What an entry takes beside its bytes.
const ENTRY_BYTES: usize = 4;

/// The end of a queue that a thread fills.
pub(super) struct QueueSender {
    sender: UnboundedSender<Arc<Batch>>,
    queued_bytes: Arc<AtomicUsize>,
    losses: Losses,
    context: Context,
    /// Which socket it is, for the record of a loss.
    socket: String,
}

/// The end that the runtime empties.
pub(super) struct QueueReceiver {
    receiver: UnboundedReceiver<Arc<Batch>>,
    queued_bytes: Arc<AtomicUsize>,
    context: Context,
}

/// An empty queue.
pub(super) fn queue(context: Context, socket: String) -> (QueueSender, QueueReceiver) {
    let (sender, receiver) = unbounded_channel();
    let queued_bytes = Arc::new(AtomicUsize::new(0));
    let filling = QueueSender {
        sender,
        queued_bytes: queued_bytes.clone(),
        losses: Losses::default(),
        context: context.clone(),
        socket,
    };
    let emptying = QueueReceiver {
        receiver,
        queued_bytes,
        context,
    };
    (filling, emptying)
}

impl QueueSender {
    /// Queues a batch of a sender, or counts it as lost.
    pub(super) fn push(&mut self, batch: Arc<Batch>, now: Timestamp) {
        self.tell_losses(now);
        if let Err(batch) = self.try_push(batch) {
            let count = batch.len();
            self.context.count_lost(count);
            self.losses.add(name_of(&batch.labels), count as u64, now);
        }
    }

    fn try_push(&mut self, batch: Arc<Batch>) -> Result<(), Arc<Batch>> {
        let bytes = bytes_of(&batch);
        let queued = self.queued_bytes.load(Ordering::Relaxed);
        if queued > 0 && queued + bytes > QUEUE_BYTES_MAX {
            return Err(batch);
        }
        self.queued_bytes.fetch_add(bytes, Ordering::Relaxed);
        // Nobody receives any more only when the process ends.
        self.sender.send(batch).map_err(|refused| refused.0)
    }

    /// Queues what is to be said of losses, if they are over.
    pub(super) fn tell_losses(&mut self, now: Timestamp) {
        let is_filled = self.queued_bytes.load(Ordering::Relaxed) > QUEUE_BYTES_MAX / 2;
        let is_over = !is_filled || self.context.shutdown.is_stopping();
        if self.losses.is_empty() || !is_over {
            return;
        }
        let lines = self.losses.lines(&self.socket, now);
        let labels = hostname::labels_of_server(&self.context.hostname);
        let mut batch = Batch::new(EntryKind::Line, labels);
        for line in &lines {
            batch.push(line.as_bytes());
        }
        if self.try_push(Arc::new(batch)).is_ok() {
            self.losses = Losses::default();
        }
    }
}

impl QueueReceiver {
    /// Submits what is queued, in order, until nothing comes any more.
    pub(super) async fn run(mut self) {
        while let Some(batch) = self.receiver.recv().await {
            let submitted = self.context.submit_patiently(&batch, None, false).await;
            self.queued_bytes
                .fetch_sub(bytes_of(&batch), Ordering::Relaxed);
            if submitted.is_err() {
                self.context.count_lost(batch.len());
            }
        }
    }
}

fn bytes_of(batch: &Batch) -> usize {
    BATCH_BYTES + batch.payload().len() + ENTRY_BYTES * batch.len()
}

/// What a sender is called in a record of a loss.
fn name_of(labels: &Labels) -> String {
    let value = |name: &str| labels.iter().find(|(n, _)| &**n == name).map(|(_, v)| &**v);
    match (value("_COMM"), value("_PID")) {
        (Some(name), Some(pid)) => format!("{name}[{pid}]"),
        (None, Some(pid)) => format!("[{pid}]"),
        _ => "an unknown process".to_owned(),
    }
}

/// What was lost since it was last told.
#[derive(Debug, Default)]
struct Losses(BTreeMap<String, LossPeriod>);

/// Lost messages and their times.
#[derive(Debug)]
struct LossPeriod {
    count: u64,
    since: Timestamp,
    until: Timestamp,
}

impl Losses {
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn add(&mut self, sender: String, count: u64, now: Timestamp) {
        let is_full = self.0.len() >= LOSERS_MAX && !self.0.contains_key(&sender);
        let sender = if is_full { "others".to_owned() } else { sender };
        let lost = self.0.entry(sender).or_insert(LossPeriod {
            count: 0,
            since: now,
            until: now,
        });
        lost.count += count;
        lost.until = now;
    }

    /// A line for each sender.
    fn lines(&self, socket: &str, now: Timestamp) -> Vec<String> {
        let line = |(sender, lost): (&String, &LossPeriod)| {
            let LossPeriod {
                count,
                since,
                until,
            } = lost;
            let sender = sender.replace(['"', '\\'], "?");
            format!(
                "time={now} level=warning msg=\"{count} records of {sender} were lost, because \
                 what waits for the journal is limited to {} MiB\" lost={count} sender=\"{sender}\" \
                 socket=\"{socket}\" since={since} until={until}",
                QUEUE_BYTES_MAX >> 20
            )
        };
        self.0.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_told_by_sender() {
        let mut losses = Losses::default();
        for number in 0..LOSERS_MAX as u64 + 5 {
            losses.add(format!("p[{number:03}]"), 2, Timestamp(1_000_000_000));
        }
        losses.add("p[000]".to_owned(), 1, Timestamp(2_000_000_000));
        let lines = losses.lines("/dev/log", Timestamp(3_000_000_000));
        assert_eq!(lines.len(), LOSERS_MAX + 1);
        assert!(
            lines[0].starts_with("time=1970-01-01T00:00:03"),
            "{lines:?}"
        );
        assert!(
            lines
                .iter()
                .any(|line| line.contains("lost=3 sender=\"p[000]\""))
        );
        assert!(
            lines
                .iter()
                .any(|line| line.contains("lost=10 sender=\"others\""))
        );
    }
}
