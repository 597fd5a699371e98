//! Topics of Kafka as an input: each message becomes one record, exactly once.
//!
//! ```text
//!  Kafka ──fetch──▶ runs (which offsets go into which batch) ──▶ ingest (durable, by name) ──▶ positions
//! ```
//!
//! A batch is named by its partition and by all offsets from its first to its last (a run, see
//! [`logpond_segment::batches`]). A start goes on behind the offsets that are held, so nothing
//! beside the records themselves has to be right for each to be there once.
//!
//! Invariants:
//! - Of a partition one batch is under way at a time, and it is offered as it was until it is durable:
//!   what a node has read has no gap but what Kafka had none of, and what rules dropped.
//! - Copies of it may have gaps, as they are made in no order. Where a node was given up, reading begins at
//!   the first of them, and no batch has an offset that is held.
//! - Nothing is read of a partition before it is known what each node holds of it.
//! - A partition of a topic that was created anew is another one: its name has the topic's id in it.
//! - What waits in memory is bounded: one fetch that is being stored, and one that comes meanwhile. A fetch
//!   is one batch of each broker, of at most 64 MiB, until what came stayed small (see `appetite`).
//! - `lp-kafka` alone waits for brokers, decodes what they send and writes positions.

mod appetite;
mod connect;
mod counters;
mod entry;
mod others;
mod positions;
mod reader;
mod runs;
mod storing;

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use logpond_record::Timestamp;
use logpond_segment::batches::BatchSet;
use logpond_segment::disk::Disk;

use counters::Counters;
pub use others::{PeerNodes, RemoteBatches, of_all};
use positions::Positions;
use reader::{Reader, ReaderContext};

use crate::ingest::Ingest;
use logpond_host::panics::StopAtPanic;
use logpond_host::shutdown::Shutdown;
use logpond_host::telemetry::Metrics;
use logpond_settings::{KafkaSettings, SecretFileError};

/// What says which named batches of an epoch this node holds.
pub type Held = Arc<dyn Fn(u128) -> BatchSet + Send + Sync>;

/// What reading needs of the server.
pub struct Parts {
    /// Where records go.
    pub ingest: Ingest,
    /// Where they are counted.
    pub metrics: Arc<Metrics>,
    /// Where positions are kept.
    pub disk: Arc<dyn Disk>,
    /// What this node holds.
    pub held: Held,
    /// The other nodes; a node alone has none.
    pub others: Option<Arc<dyn PeerNodes>>,
    /// The longest line that is taken whole, in bytes.
    pub line_bytes_max: usize,
    /// What the time is.
    pub clock: fn() -> Timestamp,
    /// When to stop.
    pub shutdown: Shutdown,
}

/// Why reading cannot begin.
#[derive(Debug)]
pub enum StartError {
    /// The file that says how brokers are talked to cannot be used.
    Security(SecretFileError),
    /// The positions of an earlier life cannot be read, or there is no thread.
    Io(io::Error),
}

impl std::fmt::Display for StartError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            StartError::Security(_) => f.write_str("Kafka cannot be read"),
            StartError::Io(_) => {
                f.write_str("Kafka cannot be read: its positions are not to be had")
            }
        }
    }
}

impl std::error::Error for StartError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            StartError::Security(error) => Some(error),
            StartError::Io(error) => Some(error),
        }
    }
}

/// Starts the thread `lp-kafka`, which reads until the stop. Brokers need not be there yet. A panic of it
/// stops the server: nothing else would take its place.
///
/// # Errors
/// See [`StartError`].
pub fn start(
    settings: &KafkaSettings,
    parts: Parts,
    at_panic: StopAtPanic,
) -> Result<JoinHandle<()>, StartError> {
    let security = connect::Security::read(settings.security.as_deref());
    let security = security.map_err(StartError::Security)?;
    let positions = Positions::open(parts.disk.clone()).map_err(StartError::Io)?;
    let counters = Counters::register(&parts.metrics);
    let shared = ReaderContext::new(parts, settings.start, positions, counters);
    let readers = Reader::of_each_cluster(&settings.topics, &security, &shared);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .thread_name("lp-blocking")
        .build()
        .map_err(StartError::Io)?;
    let work = move || {
        runtime.block_on(async {
            let all = readers.into_iter().map(Reader::run);
            futures_util::future::join_all(all).await;
            shared.save();
        });
        runtime.shutdown_background();
    };
    spawn(at_panic, work).map_err(StartError::Io)
}

fn spawn(
    at_panic: StopAtPanic,
    work: impl FnOnce() + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let thread = thread::Builder::new().name("lp-kafka".to_owned());
    thread.spawn(move || {
        let _at_panic = at_panic;
        work();
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use logpond_host::shutdown;

    #[test]
    fn a_server_whose_reading_panicked_stops() {
        for panics in [false, true] {
            let (stopper, shutdown) = shutdown::pair();
            let at_panic = StopAtPanic(Arc::new(stopper));
            let thread = spawn(at_panic, move || assert!(!panics, "a defect"));
            assert_eq!(thread.unwrap().join().is_err(), panics);
            assert_eq!(shutdown.is_stopping(), panics);
        }
    }
}
