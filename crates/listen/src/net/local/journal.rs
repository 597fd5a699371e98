//! journald's native socket: entries with fields, as `sd_journal_send` sends them.
//!
//! An entry that is too large for a datagram comes as a file in memory, sealed so that it cannot change
//! while it is read; no other file is looked at, since a sender may hand over what it must not read.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::net::UnixDatagram;
use std::thread::JoinHandle;
use std::time::Instant;

use logpond_protocol::intake::journal_entry::SENT_AT;
use logpond_protocol::intake::journal_native::NativeEntries;
use logpond_record::limits::LINE_BYTES_MAX;
use rustix::fs::SealFlags;

use super::entries::Entries;
use super::process::{self, Processes};
use super::queue::{self, QueueReceiver, QueueSender};
use super::receive::{DATAGRAM_BYTES_MAX, DatagramHandler, DatagramInfo, Receiver};
use crate::net::Context;
use logpond_host::clock;

/// The longest file that is read: an entry with the longest line, and as much again of fields, would not
/// be kept anyhow.
const FILE_BYTES_MAX: u64 = LINE_BYTES_MAX as u64 + (1 << 20);

/// Starts to receive; what is received comes out of the queue that is given back.
///
/// # Errors
/// When the socket cannot tell who sends, or no thread can be started.
pub(super) fn start(
    socket: UnixDatagram,
    path: &str,
    context: Context,
) -> io::Result<(JoinHandle<()>, QueueReceiver)> {
    let receiver = Receiver::new(socket, DATAGRAM_BYTES_MAX)?;
    let labels = process::machine(&context.hostname, "journal");
    let (filling, emptying) = queue::queue(context.clone(), path.to_owned());
    let shutdown = context.shutdown.clone();
    let intake = Journal {
        processes: Processes::new(labels),
        filling,
        entries: Entries::new(context.clone()),
        context,
    };
    Ok((receiver.start("lp-journal-in", intake, shutdown)?, emptying))
}

struct Journal {
    processes: Processes,
    filling: QueueSender,
    entries: Entries,
    context: Context,
}

impl DatagramHandler for Journal {
    fn take(&mut self, mut sent: DatagramInfo, bytes: &[u8]) {
        let labels = self.processes.of(sent.credentials, Instant::now());
        let in_file = match (sent.bytes, sent.files.pop()) {
            (0, Some(file)) => read_sealed(file),
            (0, None) if sent.files_refused > 0 => Err(io::ErrorKind::PermissionDenied.into()),
            _ => Ok(Vec::new()),
        };
        let Ok(in_file) = in_file else {
            return self.context.count_lost(1);
        };
        let bytes = if in_file.is_empty() { bytes } else { &in_file };
        let at_us = sent.at_us.map(|at_us| at_us.to_string());
        for mut entry in NativeEntries::new(bytes) {
            if entry.fields.is_empty() {
                self.context.count_lost(1);
                continue;
            }
            let at = at_us.iter().map(|at_us| (SENT_AT, at_us.as_bytes()));
            entry.fields.extend(at);
            let is_whole = entry.left_out == 0 && !sent.is_cut;
            self.entries.add(&entry.fields, &labels, is_whole);
        }
    }

    fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn is_full(&self) -> bool {
        self.entries.is_full()
    }

    fn hand_over(&mut self) {
        let now = clock::now();
        self.entries.push_to(&mut self.filling, now);
        self.filling.tell_losses(now);
    }
}

/// Reads a file that nobody can change any more.
fn read_sealed(file: File) -> io::Result<Vec<u8>> {
    let needed = SealFlags::SHRINK | SealFlags::GROW | SealFlags::WRITE;
    let refused = |reason| Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
    if !rustix::fs::fcntl_get_seals(&file)?.contains(needed) {
        return refused("the file is not sealed");
    }
    if file.metadata()?.len() > FILE_BYTES_MAX {
        return refused("the file is too large");
    }
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}
