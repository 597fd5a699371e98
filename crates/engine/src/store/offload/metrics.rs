//! What is counted of the bucket.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use logpond_bucket::{Cache, CacheCounters, Store, StoreCounters};

use logpond_host::telemetry::{Counter, Exposition, Gauge, Metrics};

/// What the thread has done and met.
#[derive(Debug, Default)]
pub(super) struct Counters {
    /// Segments uploaded.
    pub(super) uploads: Counter,
    /// Bytes of these.
    pub(super) uploaded_bytes: Counter,
    /// Links written.
    pub(super) commits: Counter,
    /// Segments whose sources others had listed first.
    pub(super) held: Counter,
    /// Objects removed that nothing needed any more.
    pub(super) swept: Counter,
    /// Passes that failed.
    pub(super) failures: Counter,
    /// Versions of the table written.
    pub(super) table_versions: Counter,
    /// Attempts to bring it up to date that failed.
    pub(super) table_failures: Counter,
    /// Fields that have columns in segments and none in the table.
    pub(super) table_left_out: Gauge,
    /// Segments that wait to be uploaded.
    pub(super) waiting: Gauge,
    /// Segments in the bucket.
    pub(super) listed: Gauge,
    /// Bytes of these.
    pub(super) listed_bytes: Gauge,
    /// 1 while the bucket could be read last time.
    pub(super) reachable: Gauge,
}

/// Shows the counters, those of the store, and those of the cache.
pub(super) fn register(
    metrics: &Metrics,
    counters: &Arc<Counters>,
    store: &Arc<Store>,
    cache: Cache,
) {
    let (counters, store) = (Arc::clone(counters), Arc::clone(store));
    metrics.register(Box::new(move |out| {
        expose(out, &counters);
        expose_store(out, store.counters());
        expose_cache(out, cache.counters());
    }));
}

fn load(counter: &AtomicU64) -> i64 {
    i64::try_from(counter.load(Ordering::Relaxed)).unwrap_or(i64::MAX)
}

fn expose(out: &mut Exposition, counters: &Counters) {
    out.counters([
        (
            "logpond_bucket_uploads_total",
            "Segments uploaded to the bucket.",
            counters.uploads.get(),
        ),
        (
            "logpond_bucket_uploaded_bytes_total",
            "Bytes of segments uploaded to the bucket.",
            counters.uploaded_bytes.get(),
        ),
        (
            "logpond_bucket_commits_total",
            "Changes of what counts in the bucket.",
            counters.commits.get(),
        ),
        (
            "logpond_bucket_held_total",
            "Segments whose records others had put into the bucket first.",
            counters.held.get(),
        ),
        (
            "logpond_bucket_swept_total",
            "Objects removed that nothing needed any more.",
            counters.swept.get(),
        ),
        (
            "logpond_bucket_failures_total",
            "Passes over the bucket that failed.",
            counters.failures.get(),
        ),
        (
            "logpond_bucket_table_versions_total",
            "Versions written of the bucket's open table.",
            counters.table_versions.get(),
        ),
        (
            "logpond_bucket_table_failures_total",
            "Attempts to bring the bucket's open table up to date that failed.",
            counters.table_failures.get(),
        ),
    ]);
    out.gauges([
        (
            "logpond_bucket_waiting",
            "Segments that wait to be uploaded.",
            counters.waiting.get(),
        ),
        (
            "logpond_bucket_segments",
            "Segments in the bucket.",
            counters.listed.get(),
        ),
        (
            "logpond_bucket_bytes",
            "Bytes of segments in the bucket.",
            counters.listed_bytes.get(),
        ),
        (
            "logpond_bucket_reachable",
            "1 while the bucket did all that was asked last time.",
            counters.reachable.get(),
        ),
        (
            "logpond_bucket_table_fields_left_out",
            "Fields that are columns of segments and not of the bucket's open table.",
            counters.table_left_out.get(),
        ),
    ]);
}

fn expose_store(out: &mut Exposition, asked: &StoreCounters) {
    out.counters([
        (
            "logpond_bucket_reads_total",
            "Objects or parts of them read from the bucket.",
            load(&asked.reads),
        ),
        (
            "logpond_bucket_read_bytes_total",
            "Bytes read from the bucket.",
            load(&asked.read_bytes),
        ),
        (
            "logpond_bucket_writes_total",
            "Objects or parts of them written to the bucket.",
            load(&asked.writes),
        ),
        (
            "logpond_bucket_written_bytes_total",
            "Bytes written to the bucket.",
            load(&asked.written_bytes),
        ),
        (
            "logpond_bucket_lists_total",
            "Listings of the bucket.",
            load(&asked.lists),
        ),
        (
            "logpond_bucket_removals_total",
            "Objects removed from the bucket.",
            load(&asked.removals),
        ),
        (
            "logpond_bucket_requests_total",
            "Requests to the bucket on the wire, each attempt counted.",
            load(&asked.attempts),
        ),
    ]);
}

fn expose_cache(out: &mut Exposition, cache: &CacheCounters) {
    out.counters([
        (
            "logpond_bucket_cache_hits_total",
            "Reads of the bucket's segments that the local disk answered.",
            load(&cache.hits),
        ),
        (
            "logpond_bucket_cache_misses_total",
            "Reads of the bucket's segments that had to wait for it.",
            load(&cache.misses),
        ),
        (
            "logpond_bucket_cache_evictions_total",
            "Files dropped from the cache to make room.",
            load(&cache.evictions),
        ),
        (
            "logpond_bucket_cache_unsound_blocks_total",
            "Blocks of the cache that did not have their checksum and were read anew.",
            load(&cache.unsound_blocks),
        ),
        (
            "logpond_bucket_cache_disk_failures_total",
            "Failures of the disk under the cache.",
            load(&cache.disk_failures),
        ),
    ]);
    out.gauges([(
        "logpond_bucket_cache_bytes",
        "Bytes of the bucket's segments that are kept on the local disk.",
        load(&cache.held_bytes),
    )]);
}
