//! Where the records of connections go: to standard output, or to servers that acknowledge them.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use logpond_protocol::intake::container::Format;

use crate::cli::Proxy;
use crate::commands::forward::{WAIT_FIRST, WAIT_LONGEST, spool};
use crate::commands::{Failure, access};
use logpond_client::Address;
use logpond_host::clock;
use logpond_host::telemetry::warn;
use logpond_host::terminal::{Out, with_causes};
use logpond_ship::forward::{
    Backoff, FileZones, ForwardError, Outflow, ReadOptions, Settings, Stream,
};

/// What a spool for records may take.
const SPOOL_SIZE: &str = "1GiB";

/// Within a spool's directory, the spool of a process that took over while the one before it, whose
/// spool that is, had not ended.
const SPOOL_OF_NEXT: &str = "next";

/// How long the last records are tried to be sent once the proxy has ended.
const LAST_TIME: Duration = Duration::from_secs(10);

/// Where records go.
pub(super) struct Records {
    /// What they are written to.
    pub(super) output: Box<dyn Write + Send>,
    /// What sends them on from there.
    pub(super) sending: Vec<SenderThread>,
}

/// A thread that sends records. It ends once nothing is left of the output.
pub(super) struct SenderThread {
    ended: Receiver<()>,
    stop: Arc<AtomicBool>,
}

impl Records {
    /// `is_next` says that the process before may not have ended.
    ///
    /// # Errors
    /// When an address or a token is none, the spool cannot be used, or the system gives no pipe or no
    /// thread.
    pub(super) fn new(args: &Proxy, is_next: bool) -> Result<Records, Failure> {
        if args.records.is_empty() {
            return Ok(Records {
                output: Box::new(Out::of_text()),
                sending: Vec::new(),
            });
        }
        let (reader, output) = io::pipe()?;
        let spool = args.records_spool.as_deref();
        let of_next = spool.map(|path| path.join(SPOOL_OF_NEXT));
        let mut sending = Vec::new();
        let first = SenderThread::start(settings(args, spool)?, reader.try_clone()?);
        match (first, of_next) {
            (Ok(first), None) => sending.push(first),
            (Ok(first), Some(of_next)) => {
                sending.push(first);
                // What it holds is sent; nothing is added to it.
                if of_next.exists() {
                    match SenderThread::start(settings(args, Some(&of_next))?, io::empty()) {
                        Ok(next) => sending.push(next),
                        // The process before took over itself: it is its spool, and it sends what it holds.
                        Err(ForwardError::Spool { .. }) if is_next => {}
                        Err(error) => return Err(error.into()),
                    }
                }
            }
            (Err(ForwardError::Spool { .. }), Some(of_next)) if is_next => {
                sending.push(SenderThread::start(
                    settings(args, Some(&of_next))?,
                    reader,
                )?);
            }
            (Err(error), _) => return Err(error.into()),
        }
        Ok(Records {
            output: Box::new(output),
            sending,
        })
    }
}

impl SenderThread {
    fn start(
        settings: Settings,
        reader: impl Read + Send + 'static,
    ) -> Result<SenderThread, ForwardError> {
        let stop = Arc::new(AtomicBool::new(false));
        let outflow = Outflow::open(&settings, &stop)?;
        let (sender, ended) = mpsc::channel();
        let run = move || {
            let stream = Stream {
                name: "records of connections",
                reader: Box::new(reader),
            };
            match outflow.run(&settings, Some(stream)) {
                Ok(totals) if totals.rejected + totals.dropped > 0 => warn(&format!(
                    "of the records of connections {} were not taken and {} found no room in the \
                     spool",
                    totals.rejected, totals.dropped
                )),
                Ok(_) => {}
                Err(error) => warn(&format!(
                    "records of connections are not sent any more: {}",
                    with_causes(&error)
                )),
            }
            drop(sender);
        };
        let thread = thread::Builder::new().name("lp-records-out".to_owned());
        match thread.spawn(run) {
            Ok(_) => Ok(SenderThread { ended, stop }),
            Err(source) => Err(ForwardError::Input {
                name: "records of connections".to_owned(),
                source,
            }),
        }
    }

    /// Waits until the last records are sent or spooled, not for ever.
    pub(super) fn finish(self) {
        // Nothing is ever sent: the other end is gone with the thread.
        if self.ended.recv_timeout(LAST_TIME) == Err(mpsc::RecvTimeoutError::Timeout) {
            self.stop.store(true, Ordering::Relaxed);
            let _ = self.ended.recv();
        }
    }
}

fn settings(args: &Proxy, spool_at: Option<&Path>) -> Result<Settings, Failure> {
    let addresses = args.records.iter().map(|text| Address::parse(text));
    let addresses = addresses.collect::<Result<Vec<_>, _>>();
    let addresses = addresses.map_err(|error| format!("--records: {error}"))?;
    let spool = |path: &Path| spool(PathBuf::from(path), SPOOL_SIZE, true);
    Ok(Settings {
        access: access(&args.access, &addresses)?,
        addresses,
        bulk: None,
        read_options: ReadOptions {
            format: Some(Format::Lines),
            rule: None,
            record_wait: Duration::ZERO,
            says_choices: false,
        },
        inputs: Vec::new(),
        tail: None,
        labels: vec![("hostname".to_owned(), logpond_host::hostname::own())],
        zones: FileZones::new("", clock::now()).map_err(|error| error.to_string())?,
        backoff: Backoff {
            first: WAIT_FIRST,
            longest: WAIT_LONGEST,
            give_up_after: None,
        },
        spool: spool_at.map(spool).transpose()?,
        waits_for_replication: false,
        quiet: true,
    })
}
