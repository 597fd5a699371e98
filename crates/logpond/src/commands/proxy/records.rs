//! Where the records of connections go: to standard output, or to servers that acknowledge them.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use logpond_protocol::intake::container::Format;

use crate::cli::Proxy;
use crate::client::Address;
use crate::clock;
use crate::commands::{
    Failure, access,
    forward::{WAIT_FIRST, WAIT_LONGEST, spool},
};
use crate::forward::{
    Backoff, FileZones, ForwardError, Reading, Settings, Stream, Totals, run_stream,
};
use crate::telemetry::warn;
use crate::terminal::with_causes;

/// What a spool for records may take.
const SPOOL_SIZE: &str = "1GiB";

/// How long the last records are tried to be sent once the proxy has ended.
const LAST_TIME: Duration = Duration::from_secs(10);

/// Where records go.
pub(super) struct Records {
    /// What they are written to.
    pub(super) output: Box<dyn Write + Send>,
    /// What sends them on from there.
    pub(super) sending: Option<Sending>,
}

/// The thread that sends records. It ends once nothing is left of the output.
pub(super) struct Sending {
    outcome: Receiver<Result<Totals, ForwardError>>,
    stop: Arc<AtomicBool>,
}

impl Records {
    /// # Errors
    /// When an address or a token is none, or the system gives no pipe or no thread.
    pub(super) fn new(args: &Proxy) -> Result<Records, Failure> {
        if args.records.is_empty() {
            return Ok(Records {
                output: Box::new(io::stdout()),
                sending: None,
            });
        }
        let settings = settings(args)?;
        let (reader, output) = io::pipe()?;
        let stop = Arc::new(AtomicBool::new(false));
        let of_thread = stop.clone();
        let (sender, outcome) = mpsc::channel();
        let run = move || {
            let stream = Stream {
                name: "records of connections",
                reader: Box::new(reader),
            };
            // Nobody waits for it where the proxy could not start.
            let _ = sender.send(run_stream(&settings, stream, &of_thread));
        };
        let thread = thread::Builder::new().name("lp-records-out".to_owned());
        thread.spawn(run)?;
        Ok(Records {
            output: Box::new(output),
            sending: Some(Sending { outcome, stop }),
        })
    }
}

impl Sending {
    /// Waits until the last records are sent or spooled, not for ever, and says what was not.
    pub(super) fn finish(self) {
        let outcome = self.outcome.recv_timeout(LAST_TIME).or_else(|_| {
            self.stop.store(true, Ordering::Relaxed);
            self.outcome.recv()
        });
        match outcome {
            Ok(Ok(totals)) if totals.rejected + totals.dropped > 0 => warn(&format!(
                "of the records of connections {} were not taken and {} found no room in the spool",
                totals.rejected, totals.dropped
            )),
            Ok(Ok(_)) => {}
            Ok(Err(error)) => warn(&format!(
                "records of connections are not all sent: {}",
                with_causes(&error)
            )),
            Err(_) => warn("what sends records of connections has failed"),
        }
    }
}

fn settings(args: &Proxy) -> Result<Settings, Failure> {
    let addresses = args.records.iter().map(|text| Address::parse(text));
    let addresses = addresses.collect::<Result<Vec<_>, _>>();
    let addresses = addresses.map_err(|error| format!("--records: {error}"))?;
    let spool_at = args.records_spool.clone();
    Ok(Settings {
        access: access(&args.access, &addresses)?,
        addresses,
        bulk: None,
        reading: Reading {
            format: Some(Format::Lines),
            rule: None,
            record_wait: Duration::ZERO,
        },
        inputs: Vec::new(),
        tail: None,
        labels: vec![("hostname".to_owned(), crate::hostname::own())],
        zones: FileZones::new("", clock::now()).map_err(|error| error.to_string())?,
        backoff: Backoff {
            first: WAIT_FIRST,
            longest: WAIT_LONGEST,
            give_up_after: None,
        },
        spool: spool_at
            .map(|path| spool(path, SPOOL_SIZE, true))
            .transpose()?,
        waits_for_replication: false,
        quiet: true,
    })
}
