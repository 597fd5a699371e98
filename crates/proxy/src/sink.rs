//! Writes records, by a thread of its own: nobody who reads slowly holds a connection up.

use std::io::{self, BufWriter, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Records that wait to be written; further ones are lost, and counted.
const RECORDS_MAX: usize = 8192;

/// How long records are gathered before they are written.
const GATHERING_TIME: Duration = Duration::from_millis(10);

/// Takes records. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    lines: SyncSender<Vec<u8>>,
    lost: Arc<AtomicU64>,
}

/// The thread. It ends once all senders are gone, and gives how many records were lost.
pub(crate) type Thread = JoinHandle<u64>;

impl Sender {
    pub(crate) fn send(&self, line: Vec<u8>) {
        if self.lines.try_send(line).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Starts the thread.
///
/// # Errors
/// When the system gives none.
pub(crate) fn start(output: impl Write + Send + 'static) -> io::Result<(Sender, Thread)> {
    let (lines, waiting) = sync_channel(RECORDS_MAX);
    let lost: Arc<AtomicU64> = Arc::default();
    let of_thread = lost.clone();
    let run = move || {
        let unwritten = write_all(BufWriter::new(output), &waiting);
        unwritten + of_thread.load(Ordering::Relaxed)
    };
    let thread = thread::Builder::new()
        .name("lp-records".to_owned())
        .spawn(run)?;
    Ok((Sender { lines, lost }, thread))
}

/// Writes until all senders are gone. Gives how many records the output did not take.
fn write_all(mut output: BufWriter<impl Write>, waiting: &Receiver<Vec<u8>>) -> u64 {
    let mut unwritten = 0;
    while let Ok(first) = waiting.recv() {
        let mut next = Ok(first);
        // Who sends meanwhile wakes nobody: under load a record costs no switch of threads, and no
        // write of its own.
        thread::sleep(GATHERING_TIME);
        while let Ok(line) = next {
            unwritten += u64::from(output.write_all(&line).is_err());
            next = waiting.try_recv();
        }
        // Its error comes again with the next line.
        let _ = output.flush();
        if next == Err(TryRecvError::Disconnected) {
            break;
        }
    }
    unwritten
}
