//! The audit: who asked what, and every administration, as records of a stream of their own.
//!
//! Invariants:
//! - Nothing waits for the audit: what finds no room in its queue is counted as lost.
//! - Its records are like results of a recording rule of the name [`AUDIT_STREAM`](crate::query::AUDIT_STREAM): queries
//!   that do not name it leave them out, and only administrators can read them.
//! - The audit does not go through endpoints, so that reading it is audited once.

mod engine;
mod trail;
mod writer;

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use logpond_host::telemetry::{Counter, Exposition, Metrics};
use logpond_settings::AuditLevel;
use serde_json::{Map, Value};

pub use engine::AuditedEngine;
pub use trail::{QuestionSource, TEXT_BYTES_MAX, Trail};
pub use writer::start;

/// Events that wait to be written. With the longest texts they take 64 MiB.
const EVENTS_MAX: usize = 8192;

/// One event, ready to be written.
pub(super) type Event = Map<String, Value>;

/// Takes events. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Audit(Option<Arc<Open>>);

#[derive(Debug)]
struct Open {
    level: AuditLevel,
    queue: SyncSender<Event>,
    counters: Arc<Counters>,
}

#[derive(Debug, Default)]
struct Counters {
    written: Counter,
    lost: Counter,
}

/// The events that are to be written.
#[derive(Debug)]
pub struct Events {
    queue: Receiver<Event>,
    counters: Arc<Counters>,
}

impl Audit {
    /// An audit of this level, and its events; there are none where it is off.
    pub fn new(level: AuditLevel, metrics: &Metrics) -> (Audit, Option<Events>) {
        if level == AuditLevel::Off {
            return (Audit::default(), None);
        }
        let (queue, events) = sync_channel(EVENTS_MAX);
        let counters: Arc<Counters> = Arc::default();
        let exposed = Arc::clone(&counters);
        metrics.register(Box::new(move |out| expose(&exposed, out)));
        let open = Open {
            level,
            queue,
            counters: Arc::clone(&counters),
        };
        let events = Events {
            queue: events,
            counters,
        };
        (Audit(Some(Arc::new(open))), Some(events))
    }

    /// True if events are taken.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// True if the text of questions is kept.
    pub fn has_texts(&self) -> bool {
        self.0
            .as_ref()
            .is_some_and(|open| open.level == AuditLevel::Queries)
    }

    /// Takes an event that is no request, such as a change of a file: what happened, and to what.
    pub fn note(&self, action: &str, what: &str) {
        let mut event = Event::new();
        event.insert("action".to_owned(), action.into());
        event.insert("what".to_owned(), what.into());
        self.take(event);
    }

    /// Takes an event; one that finds no room is lost.
    fn take(&self, mut event: Event) {
        let Some(open) = &self.0 else { return };
        let now = logpond_host::clock::now();
        event.insert("time".to_owned(), now.to_string().into());
        if open.queue.try_send(event).is_err() {
            open.counters.lost.add(1);
        }
    }
}

fn expose(counters: &Counters, out: &mut Exposition) {
    out.counters([
        (
            "logpond_audit_records_total",
            "Records of the audit that were written.",
            counters.written.get(),
        ),
        (
            "logpond_audit_lost_total",
            "Records of the audit that found no room or could not be written.",
            counters.lost.get(),
        ),
    ]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_finds_no_room_is_counted() {
        let metrics = Metrics::default();
        let (audit, events) = Audit::new(AuditLevel::Metadata, &metrics);
        let events = events.unwrap();
        for _ in 0..EVENTS_MAX + 3 {
            audit.note("test", "x");
        }
        assert_eq!(events.counters.lost.get(), 3);
        assert_eq!(events.queue.try_iter().count(), EVENTS_MAX);
        assert!(metrics.expose().contains("logpond_audit_lost_total 3\n"));
        let (off, none) = Audit::new(AuditLevel::Off, &metrics);
        off.note("test", "x");
        assert!(none.is_none() && !off.is_on());
    }
}
