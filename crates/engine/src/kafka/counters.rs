//! What was read, for `/metrics`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use logpond_host::telemetry::{Exposition, Metrics};

/// A partition's counters.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Partition {
    /// Messages that were fetched.
    pub(super) fetched: u64,
    /// Messages that are durable here.
    pub(super) stored: u64,
    /// Messages that were fetched and here already.
    pub(super) known: u64,
    /// Messages without a value.
    pub(super) empty: u64,
    /// Offsets that Kafka had removed before they were read.
    pub(super) lost: u64,
    /// The offset to read next.
    pub(super) next: u64,
    /// Offsets from there to the end that may be read.
    pub(super) lag: u64,
    /// Whether it is read now.
    pub(super) is_read: bool,
}

type Partitions = BTreeMap<(Arc<str>, i32), Partition>;

/// All counters.
#[derive(Default)]
pub(super) struct Counters {
    partitions: Mutex<Partitions>,
    /// Failures by the brokers that were named.
    errors: Mutex<BTreeMap<Arc<str>, u64>>,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Counters {
    /// None yet, shown among the server's metrics.
    pub(super) fn register(metrics: &Metrics) -> Arc<Counters> {
        let counters = Arc::new(Counters::default());
        let shown = counters.clone();
        metrics.register(Box::new(move |out| shown.expose(out)));
        counters
    }

    /// Changes a partition's counters.
    pub(super) fn of(&self, topic: &Arc<str>, partition: i32, change: impl FnOnce(&mut Partition)) {
        let mut partitions = lock(&self.partitions);
        change(partitions.entry((topic.clone(), partition)).or_default());
    }

    /// Counts a failure.
    pub(super) fn add_error(&self, brokers: &Arc<str>) {
        *lock(&self.errors).entry(brokers.clone()).or_default() += 1;
    }

    fn expose(&self, out: &mut Exposition) {
        let partitions = lock(&self.partitions);
        for (name, kind, help, value) in ROWS {
            out.family(name, kind, help);
            for ((topic, partition), counters) in &*partitions {
                let number = partition.to_string();
                let labels = [("topic", &**topic), ("partition", &*number)];
                out.sample(name, &labels, value(counters));
            }
        }
        let (name, help) = ERRORS;
        out.family(name, "counter", help);
        for (brokers, count) in &*lock(&self.errors) {
            out.sample(name, &[("brokers", &**brokers)], count);
        }
    }
}

/// Name, kind, meaning and value of a metric.
type Row = (
    &'static str,
    &'static str,
    &'static str,
    fn(&Partition) -> u64,
);

/// The metrics of each partition.
#[rustfmt::skip]
const ROWS: [Row; 8] = [
    ("logpond_kafka_fetched_total", "counter", "Messages fetched from Kafka.", |p| p.fetched),
    ("logpond_kafka_stored_total", "counter", "Messages of Kafka that are durable.", |p| p.stored),
    ("logpond_kafka_known_total", "counter", "Messages fetched that were here already.", |p| p.known),
    ("logpond_kafka_empty_total", "counter", "Messages without a value, which are no records.", |p| p.empty),
    ("logpond_kafka_lost_total", "counter", "Offsets that Kafka removed before they were read.", |p| p.lost),
    ("logpond_kafka_offset", "gauge", "Offset to be read next.", |p| p.next),
    ("logpond_kafka_lag", "gauge", "Offsets that are not read yet.", |p| p.lag),
    ("logpond_kafka_reading", "gauge", "Whether the partition is read.", |p| u64::from(p.is_read)),
];

/// Name and meaning of the metric of failures.
const ERRORS: (&str, &str) = (
    "logpond_kafka_errors_total",
    "Failed attempts to read from brokers, or to store what they sent.",
);
