//! The thread that writes events down.

use std::io;
use std::thread::{self, JoinHandle};

use logpond_record::{Batch, EntryKind, RULE_FIELD};
use logpond_search::query::RECORD_FIELD;
use serde_json::Value;

use super::{Event, Events};
use crate::ingest::Ingest;
use crate::query::AUDIT_STREAM;

/// Events of one batch: they share a sync.
const BATCH_EVENTS_MAX: usize = 256;

/// Starts the thread `lp-audit`. It ends when nothing takes events any more, and all are written.
///
/// # Errors
/// When the system gives no thread, or no timer.
pub fn start(events: Events, ingest: Ingest) -> io::Result<JoinHandle<()>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()?;
    let work = move || {
        while let Ok(first) = events.queue.recv() {
            let others = events.queue.try_iter().take(BATCH_EVENTS_MAX - 1);
            let batch = batch_of(std::iter::once(first).chain(others));
            let count = batch.len() as u64;
            match runtime.block_on(ingest.submit_own(batch)) {
                Ok(_) => events.counters.written.add(count),
                Err(_) => events.counters.lost.add(count),
            }
        }
    };
    thread::Builder::new()
        .name("lp-audit".to_owned())
        .spawn(work)
}

fn batch_of(events: impl Iterator<Item = Event>) -> Batch {
    let labels = [RECORD_FIELD, RULE_FIELD].map(|label| (label.into(), AUDIT_STREAM.into()));
    let mut batch = Batch::new(EntryKind::Json, labels.to_vec());
    events.for_each(|event| batch.push(Value::Object(event).to_string().as_bytes()));
    batch
}
