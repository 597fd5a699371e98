//! What the process says about itself: every metric, in one registry without globals.
//!
//! Invariants:
//! - Recording is one atomic operation: no lock, no allocation, on any thread.
//! - No label has values that a sender can choose; the size of the exposition is bounded.
//! - Durations are kept in nanoseconds and exposed in seconds, in buckets of powers of two.

mod access;
mod instrument;
mod exposition;
mod intake;
mod process;
mod log;
#[cfg(test)]
mod tests;

use std::sync::Mutex;

pub use access::{AccessMetrics, ReloadTarget, TlsListener};
pub use exposition::Exposition;
pub use instrument::{Counter, Gauge, Histogram};
pub use intake::{INTAKES, Intake};
pub use log::{begin_log, say, stamp, warn};
pub use process::expose as expose_process;
pub use process::kernel_drops;

/// Counters of one intake.
#[derive(Debug, Default)]
pub struct IntakeMetrics {
    /// Records accepted.
    pub records: Counter,
    /// Bytes of accepted records.
    pub bytes: Counter,
    /// Records refused by name: bad lines of a push.
    pub rejected: Counter,
    /// Records that were cut to the line limit.
    pub truncated: Counter,
    /// Records that were received and could not be kept.
    pub lost: Counter,
    /// Records that were not in the form of their protocol, kept or lost.
    pub malformed: Counter,
    /// Records that were stored already when they were sent again, and known by their text.
    pub resent: Counter,
    /// Connections that were ended because they spoke HTTP or TLS where neither is taken.
    pub foreign: Counter,
    /// Connections closed because their address has as many as it may.
    pub connections_refused: Counter,
    /// Connections now open.
    pub connections: Gauge,
    /// Connections taken since the start.
    pub connections_total: Counter,
}

type ReadIntake = fn(&IntakeMetrics) -> i64;

/// The metrics of each intake: name, type, meaning, and the number.
const INTAKE_TABLE: [(&str, &str, &str, ReadIntake); 11] = [
    (
        "logpond_ingest_records_total",
        "counter",
        "Records accepted.",
        |m| m.records.get(),
    ),
    (
        "logpond_ingest_bytes_total",
        "counter",
        "Bytes of accepted records.",
        |m| m.bytes.get(),
    ),
    (
        "logpond_ingest_rejected_total",
        "counter",
        "Bad lines refused by name.",
        |m| m.rejected.get(),
    ),
    (
        "logpond_ingest_truncated_total",
        "counter",
        "Records cut to the line limit.",
        |m| m.truncated.get(),
    ),
    (
        "logpond_ingest_lost_total",
        "counter",
        "Records received but not kept.",
        |m| m.lost.get(),
    ),
    (
        "logpond_ingest_malformed_total",
        "counter",
        "Records not in the form of their protocol: kept as text, or lost.",
        |m| m.malformed.get(),
    ),
    (
        "logpond_ingest_resent_records_total",
        "counter",
        "Records of RELP that were sent again, were there already and not written again.",
        |m| m.resent.get(),
    ),
    (
        "logpond_ingest_foreign_connections_total",
        "counter",
        "Connections ended because they speak HTTP or TLS where neither is taken, and datagrams of STUN or DTLS.",
        |m| m.foreign.get(),
    ),
    (
        "logpond_connections_refused_total",
        "counter",
        "Connections closed because their address has its share.",
        |m| m.connections_refused.get(),
    ),
    ("logpond_connections", "gauge", "Open connections.", |m| {
        m.connections.get()
    }),
    (
        "logpond_connections_total",
        "counter",
        "Connections taken.",
        |m| m.connections_total.get(),
    ),
];

/// Every metric of the process. One per process, shared by reference.
pub struct Metrics {
    intakes: [IntakeMetrics; INTAKES.len()],
    /// Time of one `fdatasync` of the journal.
    pub sync_ns: Histogram,
    /// Time of one append to the journal.
    pub write_ns: Histogram,
    /// Time from the submission of a batch to its append.
    pub queue_wait_ns: Histogram,
    /// Payload bytes of the batches appended.
    pub batch_bytes: Histogram,
    /// Batches served by one sync.
    pub group_batches: Histogram,
    /// Submissions refused because the queue stayed full.
    pub refused_busy: Counter,
    /// Submissions refused because the disk is full.
    pub refused_full: Counter,
    /// Submissions that failed: the journal could not be written or synced.
    pub refused_failed: Counter,
    /// Submissions refused because too few other nodes know of this one.
    pub refused_not_joined: Counter,
    /// Named batches that said they were sent before.
    pub resends: Counter,
    /// Named batches that the journal had, so that they were not written again.
    pub resends_known: Counter,
    /// Records that were acknowledged after the write and lost with a failed sync.
    pub unsynced_lost: Counter,
    /// Lateness of a timer on the async thread: how long something else held it.
    pub runtime_delay_ns: Histogram,
    /// HTTP answers by status class, 1xx to 5xx.
    pub http_answers: [Counter; 5],
    /// Who was let in.
    pub access: AccessMetrics,
    /// Queries running now, followers included.
    pub queries_active: Gauge,
    /// Queries that wait until one of those ends.
    pub queries_waiting: Gauge,
    /// Time from the start of a query to its last row.
    pub query_ns: Histogram,
    /// Bytes that queries read.
    pub query_bytes: Counter,
    /// Queries that ended because their reader went away.
    pub queries_cancelled: Counter,
    /// Queries that were ended for others because their reader did not read.
    pub queries_given_up: Counter,
    collectors: Mutex<Vec<Collector>>,
}

/// Adds metrics of another part of the process at each exposition. May block; runs on no async
/// thread.
pub type Collector = Box<dyn Fn(&mut Exposition) + Send + Sync>;

/// Durations: 1 µs to 17 s.
const DURATION: (u32, u32) = (10, 34);
/// Sizes: 64 B to 64 MiB.
const BYTES: (u32, u32) = (6, 26);
/// Counts: 1 to 4096.
const COUNT: (u32, u32) = (0, 12);

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics {
            intakes: std::array::from_fn(|_| IntakeMetrics::default()),
            sync_ns: Histogram::new(DURATION),
            write_ns: Histogram::new(DURATION),
            queue_wait_ns: Histogram::new(DURATION),
            batch_bytes: Histogram::new(BYTES),
            group_batches: Histogram::new(COUNT),
            refused_busy: Counter::default(),
            refused_full: Counter::default(),
            refused_failed: Counter::default(),
            refused_not_joined: Counter::default(),
            resends: Counter::default(),
            resends_known: Counter::default(),
            unsynced_lost: Counter::default(),
            runtime_delay_ns: Histogram::new(DURATION),
            http_answers: Default::default(),
            access: AccessMetrics::default(),
            queries_active: Gauge::default(),
            queries_waiting: Gauge::default(),
            query_ns: Histogram::new(DURATION),
            query_bytes: Counter::default(),
            queries_cancelled: Counter::default(),
            queries_given_up: Counter::default(),
            collectors: Mutex::default(),
        }
    }
}

impl Metrics {
    /// The counters of one intake.
    pub fn intake(&self, intake: Intake) -> &IntakeMetrics {
        &self.intakes[intake as usize]
    }

    /// Adds a collector for the life of the process.
    pub fn register(&self, collector: Collector) {
        if let Ok(mut collectors) = self.collectors.lock() {
            collectors.push(collector);
        }
    }

    /// The whole exposition in the Prometheus text format 0.0.4. Reads `/proc`: not for an async
    /// thread.
    pub fn expose(&self) -> String {
        let mut out = Exposition::default();
        out.family("logpond_build_info", "gauge", "The version that runs.");
        out.sample(
            "logpond_build_info",
            &[("version", env!("CARGO_PKG_VERSION"))],
            1,
        );
        self.expose_intakes(&mut out);
        self.expose_journal(&mut out);
        self.expose_answers(&mut out);
        self.access.expose(&mut out);
        process::expose(&mut out);
        if let Ok(collectors) = self.collectors.lock() {
            collectors.iter().for_each(|collect| collect(&mut out));
        }
        out.finish()
    }

    fn expose_intakes(&self, out: &mut Exposition) {
        for (name, kind, help, read) in INTAKE_TABLE {
            out.family(name, kind, help);
            for intake in INTAKES {
                out.sample(
                    name,
                    &[("intake", intake.as_str())],
                    read(self.intake(intake)),
                );
            }
        }
    }

    fn expose_journal(&self, out: &mut Exposition) {
        const NS: f64 = 1e-9;
        let name = "logpond_ingest_refused_batches_total";
        out.family(name, "counter", "Batches refused, by reason.");
        out.sample(name, &[("reason", "busy")], self.refused_busy.get());
        out.sample(name, &[("reason", "disk_full")], self.refused_full.get());
        out.sample(
            name,
            &[("reason", "journal_failed")],
            self.refused_failed.get(),
        );
        out.sample(
            name,
            &[("reason", "not_joined")],
            self.refused_not_joined.get(),
        );
        self.expose_batches(out);
        let table = [
            (
                "logpond_journal_sync_seconds",
                "Time of one journal sync.",
                &self.sync_ns,
                NS,
            ),
            (
                "logpond_journal_write_seconds",
                "Time of one journal append.",
                &self.write_ns,
                NS,
            ),
            (
                "logpond_journal_queue_wait_seconds",
                "Time a batch waited for its append.",
                &self.queue_wait_ns,
                NS,
            ),
            (
                "logpond_journal_batch_bytes",
                "Payload of appended batches.",
                &self.batch_bytes,
                1.0,
            ),
            (
                "logpond_journal_group_batches",
                "Batches made durable by one sync.",
                &self.group_batches,
                1.0,
            ),
            (
                "logpond_runtime_delay_seconds",
                "Lateness of the async thread.",
                &self.runtime_delay_ns,
                NS,
            ),
        ];
        for (name, help, histogram, unit) in table {
            out.histogram(name, help, histogram, unit);
        }
    }

    fn expose_batches(&self, out: &mut Exposition) {
        let table = [
            (
                "logpond_ingest_resends_total",
                "Batches that were sent again by their producers.",
                self.resends.get(),
            ),
            (
                "logpond_ingest_resends_known_total",
                "Batches that were there already and not written again.",
                self.resends_known.get(),
            ),
            (
                "logpond_ingest_unsynced_lost_total",
                "Records acknowledged by fast intakes and lost with a failed sync.",
                self.unsynced_lost.get(),
            ),
        ];
        out.counters(table);
    }

    fn expose_answers(&self, out: &mut Exposition) {
        let name = "logpond_http_answers_total";
        out.family(name, "counter", "HTTP answers by class of status.");
        for (class, counter) in ["1xx", "2xx", "3xx", "4xx", "5xx"]
            .iter()
            .zip(&self.http_answers)
        {
            out.sample(name, &[("status", class)], counter.get());
        }
        out.gauges([
            (
                "logpond_queries_active",
                "Queries running, followers included.",
                self.queries_active.get(),
            ),
            (
                "logpond_queries_waiting",
                "Queries that wait until one of those that run ends.",
                self.queries_waiting.get(),
            ),
        ]);
        out.histogram(
            "logpond_query_seconds",
            "Time of a query to its last row.",
            &self.query_ns,
            1e-9,
        );
        out.counters([
            (
                "logpond_query_scanned_bytes_total",
                "Bytes that queries read.",
                self.query_bytes.get(),
            ),
            (
                "logpond_queries_cancelled_total",
                "Queries whose reader went away.",
                self.queries_cancelled.get(),
            ),
            (
                "logpond_queries_given_up_total",
                "Queries ended for others because their reader did not read.",
                self.queries_given_up.get(),
            ),
        ]);
    }
}
