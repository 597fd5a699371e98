//! How long it takes until a record can be found through another node: a record of this node's own
//! every now and then, which the others are asked for.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use logpond_record::{Batch, EntryKind};

use crate::cluster::{Canary as Record, Member};
use logpond_engine::ingest::Ingest;
use logpond_host::shutdown::Shutdown;
use logpond_host::telemetry::{Counter, Histogram, Metrics};

/// What the records are labelled with, so that they can be told from others: `app`.
pub const APP: &str = "logpond-canary";

/// A record that is not found after this will not be found.
const FOUND_WITHIN: Duration = Duration::from_secs(10);

/// A node that refuses to be asked is asked again after this.
const AGAIN: Duration = Duration::from_millis(25);

/// From microseconds to half a minute, in nanoseconds.
const POWERS: (u32, u32) = (14, 35);

/// What a canary needs.
pub struct Parts {
    /// Where its records go.
    pub ingest: Ingest,
    /// Whom it asks for them.
    pub member: Arc<Member>,
    /// Where it shows what it found.
    pub metrics: Arc<Metrics>,
    /// How often.
    pub every: Duration,
}

struct Canary {
    parts: Parts,
    found: Histogram,
    failures: Counter,
}

/// Starts the thread `lp-canary`. It ends after the stop.
///
/// # Errors
/// When the system gives no thread.
pub fn start(parts: Parts, stop: &Shutdown) -> io::Result<JoinHandle<()>> {
    // Handing a record in is asynchronous, and waits with a timer.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()?;
    let canary = Arc::new(Canary {
        parts,
        found: Histogram::new(POWERS),
        failures: Counter::default(),
    });
    canary.expose();
    let stop = stop.clone();
    let thread = thread::Builder::new().name("lp-canary".to_owned());
    thread.spawn(move || {
        let mut number = 0;
        while canary.wait(&stop) {
            number += 1;
            canary.sing(&runtime, number, &stop);
        }
    })
}

impl Canary {
    fn expose(self: &Arc<Canary>) {
        let canary = Arc::downgrade(self);
        self.parts.metrics.register(Box::new(move |out| {
            let Some(canary) = canary.upgrade() else {
                return;
            };
            out.histogram(
                "logpond_canary_seconds",
                "From the acknowledgement of a canary record until another node's answer had it.",
                &canary.found,
                1e-9,
            );
            out.counters([(
                "logpond_canary_failures_total",
                "Canary records that were not taken, or not found in ten seconds.",
                canary.failures.get(),
            )]);
        }));
    }

    /// Waits until the next record is due; false at the stop.
    fn wait(&self, stop: &Shutdown) -> bool {
        stop.wait_at_most(self.parts.every);
        !stop.is_stopping()
    }

    /// Hands a record in, and asks for it until it is found.
    fn sing(&self, runtime: &tokio::runtime::Runtime, number: u64, stop: &Shutdown) {
        let own = self.parts.member.identity();
        let text = format!("canary {} {number}", own.process);
        let mut batch = Batch::new(EntryKind::Line, vec![("app".into(), APP.into())]);
        batch.push(text.as_bytes());
        let accepted = runtime.block_on(self.parts.ingest.submit_own(batch));
        let since = Instant::now();
        let Ok(accepted) = accepted else {
            return self.failures.add(1);
        };
        let canary = Record {
            id: accepted.first_id,
            text,
        };
        let others = self.parts.member.live_others();
        // One after the other; alone, itself.
        let turn = usize::try_from(number).unwrap_or(0) % others.len().max(1);
        let asked = others.get(turn).copied().unwrap_or(own.node);
        while !stop.is_stopping() && since.elapsed() < FOUND_WITHIN {
            match self.parts.member.find_canary(asked, &canary) {
                Ok(true) => {
                    self.found.observe_duration(since.elapsed());
                    return self.parts.member.note_canary(since.elapsed());
                }
                Ok(false) => {}
                // A node that is just ending refuses at once.
                Err(_) => stop.wait_at_most(AGAIN),
            }
        }
        self.failures.add(u64::from(!stop.is_stopping()));
    }
}
