//! The kernel's messages.
//!
//! The kernel keeps the newest ones in a ring and waits for nobody, so they are read as fast as they are
//! taken in. After a start all of the ring is read again; each message is a batch with a name made of
//! the boot and its number, and what this node has of them is passed over. A gap in the numbers is
//! what was overwritten before it was read: it is counted, and a record says so.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use logpond_protocol::intake::journal_entry::SENT_AT;
use logpond_protocol::intake::kmsg::{MESSAGE_BYTES_MAX, Message};
use logpond_record::{Batch, EntryKind, Labels, Timestamp, cast};
use logpond_segment::batches::{BatchId, BatchSet};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rustix::time::{ClockId, clock_gettime};
use tokio::sync::mpsc;
use xxhash_rust::xxh3::xxh3_128;

use super::entries::{Entries, Field};
use super::process;
use crate::net::{Context, RETRY_PAUSE};
use logpond_host::clock;
use logpond_host::hostname;
use logpond_host::shutdown::Shutdown;
use logpond_host::telemetry::warn;

/// What the names of batches are told apart by from those of other intakes.
const EPOCH_PREFIX: &[u8] = b"kmsg ";

/// Names of fields are put behind this, as journald does.
const FIELD_PREFIX: &str = "_KERNEL_";

/// Readings that fail for another reason than that there is nothing, before it is given up.
const FAILURES_MAX: u32 = 100;

/// How often the stop is looked for while nothing comes.
const IDLE_WAIT_MS: u16 = 250;

/// Messages that were read and are not taken in yet; then the kernel keeps them.
const MESSAGES_MAX: usize = 64;

/// Starts a thread that reads what the kernel writes until the stop, and gives what takes it in. `held`
/// says which batches of an epoch are there.
///
/// # Errors
/// When no thread can be started.
pub(super) fn start(
    file: File,
    path: String,
    context: Context,
    held: &dyn Fn(u128) -> BatchSet,
) -> io::Result<impl Future<Output = ()> + use<>> {
    let (sender, mut receiver) = mpsc::channel(MESSAGES_MAX);
    let (shutdown, of) = (context.shutdown.clone(), path.clone());
    let thread = thread::Builder::new().name("lp-kmsg".to_owned());
    thread.spawn(move || read(&file, &of, &shutdown, &sender))?;
    let machine = process::machine(&context.hostname, "kernel");
    let epoch = epoch(&machine);
    let mut reader = Reader {
        epoch,
        held: held(epoch),
        entries: Entries::of_kernel(context.clone()),
        machine,
        next: None,
        path,
        context,
    };
    Ok(async move {
        while let Some(bytes) = receiver.recv().await {
            reader.take(&bytes).await;
        }
    })
}

/// Reads messages until the stop.
fn read(mut file: &File, path: &str, shutdown: &Shutdown, sender: &mpsc::Sender<Vec<u8>>) {
    let mut buffer = vec![0; MESSAGE_BYTES_MAX];
    let mut failures = 0;
    while !shutdown.is_stopping() && failures < FAILURES_MAX {
        match file.read(&mut buffer) {
            Ok(bytes) => {
                failures = 0;
                if sender.blocking_send(buffer[..bytes].to_vec()).is_err() {
                    return;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                let mut polled = [PollFd::new(file.as_fd(), PollFlags::POLLIN)];
                // Whatever it says, the next reading says it, too.
                let _ = poll(&mut polled, PollTimeout::from(IDLE_WAIT_MS));
            }
            // What comes next was overwritten; its number says how much.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                failures += 1;
                if failures == 1 {
                    warn(&format!("{path} cannot be read: {error}"));
                }
                thread::sleep(RETRY_PAUSE);
            }
        }
    }
    if failures == FAILURES_MAX {
        warn(&format!("{path} is not read any more"));
    }
}

/// The name of this boot's messages.
fn epoch(machine: &Labels) -> u128 {
    let boot = machine.iter().find(|(name, _)| &**name == "_BOOT_ID");
    let boot = boot.map_or("", |(_, boot)| boot);
    xxh3_128(&[EPOCH_PREFIX, boot.as_bytes()].concat())
}

struct Reader {
    epoch: u128,
    /// What was there at the start.
    held: BatchSet,
    entries: Entries,
    machine: Labels,
    /// The number that the next message should have.
    next: Option<u64>,
    path: String,
    context: Context,
}

impl Reader {
    async fn take(&mut self, bytes: &[u8]) {
        let Some(message) = Message::read(bytes) else {
            let metrics = self.context.metrics.intake(self.context.intake);
            metrics.malformed.add(1);
            return self.context.count_lost(1);
        };
        if let Some(next) = self.next
            && message.sequence > next
        {
            self.tell_loss(message.sequence - next).await;
        }
        self.next = Some(message.sequence + 1);
        if self.held.contains(self.epoch, message.sequence) {
            return;
        }
        self.add(&message);
        if self.entries.is_empty() {
            return;
        }
        let name = BatchId {
            epoch: self.epoch,
            sequence: message.sequence,
            attempt: 0,
            first_sent: Timestamp(0),
            more: 0,
        };
        let batch = self.entries.take();
        self.submit(&batch, Some(name)).await;
    }

    fn add(&mut self, message: &Message) {
        let (writer, pid, text) = message.writer();
        let numbers = [
            ("PRIORITY", u64::from(message.severity())),
            ("SYSLOG_FACILITY", u64::from(message.facility())),
            ("_SOURCE_BOOTTIME_TIMESTAMP", message.since_boot_us),
        ]
        .map(|(name, number)| (name, number.to_string()));
        let written_us = written_us(message.since_boot_us, clock::now()).to_string();
        let beside = message.fields.iter();
        let beside: Vec<(String, &[u8])> = beside
            .map(|(name, value)| (format!("{FIELD_PREFIX}{name}"), &value[..]))
            .collect();
        let mut fields: Vec<Field<'_>> = vec![
            ("MESSAGE", text),
            ("SYSLOG_IDENTIFIER", writer.unwrap_or("kernel").as_bytes()),
            (SENT_AT, written_us.as_bytes()),
        ];
        fields.extend(pid.map(|pid| ("SYSLOG_PID", pid.as_bytes())));
        fields.extend(
            numbers
                .iter()
                .map(|(name, number)| (*name, number.as_bytes())),
        );
        fields.extend(beside.iter().map(|(name, value)| (&**name, *value)));
        self.entries.add(&fields, &self.machine, true);
    }

    /// Writes a record of what was overwritten.
    async fn tell_loss(&mut self, lost: u64) {
        self.context
            .count_lost(usize::try_from(lost).unwrap_or(usize::MAX));
        let labels = hostname::labels_of_server(&self.context.hostname);
        let mut batch = Batch::new(EntryKind::Line, labels);
        let line = format!(
            "time={} level=warning msg=\"{lost} messages of the kernel were overwritten before they \
             were read\" lost={lost} file=\"{}\"",
            clock::now(),
            self.path
        );
        batch.push(line.as_bytes());
        self.submit(&Arc::new(batch), None).await;
    }

    async fn submit(&self, batch: &Arc<Batch>, name: Option<BatchId>) {
        let submitted = self.context.submit_patiently(batch, name, false).await;
        if let Err(refused) = submitted {
            self.context.count_lost(batch.len());
            warn(&format!("a message of {} is lost: {refused}", self.path));
        }
    }
}

/// When a message was written, in microseconds since 1970, if the clock was as it is now.
fn written_us(since_boot_us: u64, now: Timestamp) -> i64 {
    let up = clock_gettime(ClockId::Boottime);
    let up = Duration::new(up.tv_sec.unsigned_abs(), cast::low_u32(up.tv_nsec));
    let ago_us = cast::low_i64(up.as_micros()) - cast::signed(since_boot_us);
    now.0 / 1000 - ago_us.max(0)
}
