//! What the store has done and met, as metrics.

use std::sync::Arc;

use logpond_segment::disk::Disk;

use super::live::{LiveSegment, LiveSet, local};
use logpond_host::telemetry::{Counter, Exposition, Gauge, Metrics};

/// What the store has done and met.
#[derive(Debug, Default)]
pub struct Counters {
    /// Journal files that went into segments.
    pub consumed_files: Counter,
    /// Rows that went into segments.
    pub consumed_rows: Counter,
    /// Lines among them that no format of access logs fits, though some were declared.
    pub unfit_lines: Counter,
    /// Lines among them that are kept without fields, since reading them panicked.
    pub panicked_lines: Counter,
    /// Merges and rewrites done.
    pub merges: Counter,
    /// Segments retired because others hold their rows.
    pub retired: Counter,
    /// Segments and journal files retired for age, size or free space.
    pub expired: Counter,
    /// Damaged parts of journal files whose rows are lost.
    pub damages: Counter,
    /// Steps that failed.
    pub failures: Counter,
    /// Milliseconds that the clock went ahead of the time that has passed: expiry is so far behind.
    pub expiry_lag_ms: Gauge,
    /// 1 while nothing expires for its age.
    pub expiry_stopped: Gauge,
    /// Milliseconds that limits wait still which would remove most of what is there.
    pub retention_waits_ms: Gauge,
    /// Records that they would remove.
    pub retention_held_records: Gauge,
    /// Bytes of retired segments that are still on the disk.
    pub trash_bytes: Gauge,
}

impl Counters {
    pub(super) fn register(
        self: &Arc<Counters>,
        metrics: &Metrics,
        live: LiveSet,
        disk: Arc<dyn Disk>,
    ) {
        let counters = Arc::clone(self);
        metrics.register(Box::new(move |out| {
            counters.expose(out);
            let segments = live.snapshot();
            let sum = |of: fn(&LiveSegment) -> u64| segments.iter().map(|s| of(s)).sum::<u64>();
            let table = [
                ("logpond_segments", "Live segments.", segments.len() as u64),
                (
                    "logpond_segment_bytes",
                    "Bytes of live segments.",
                    sum(|s| s.file().bytes()),
                ),
                (
                    "logpond_segment_rows",
                    "Rows in live segments.",
                    sum(|s| s.file().manifest().rows),
                ),
                (
                    "logpond_segment_raw_bytes",
                    "Bytes of the lines in live segments.",
                    sum(|s| s.file().manifest().line_bytes),
                ),
                (
                    "logpond_segments_damaged",
                    "Live segments on the local disk that are known to be damaged.",
                    local(&segments).filter(|s| s.is_damaged()).count() as u64,
                ),
                (
                    "logpond_files_put_aside",
                    "Damaged files whose rows are missing from every answer.",
                    live.put_aside().list(&*disk).len() as u64,
                ),
                (
                    "logpond_files_absent",
                    "Files that have vanished from the data directory; their rows are missing from every answer.",
                    live.absent().len() as u64,
                ),
            ];
            out.gauges(table);
            expose_space(&*disk, out);
        }));
    }

    fn expose(&self, out: &mut Exposition) {
        let table = [
            (
                "logpond_store_consumed_files_total",
                "Journal files put into segments.",
                self.consumed_files.get(),
            ),
            (
                "logpond_store_consumed_rows_total",
                "Rows put into segments.",
                self.consumed_rows.get(),
            ),
            (
                "logpond_store_unfit_lines_total",
                "Lines of text among them that none of the access-log formats declared for them fits.",
                self.unfit_lines.get(),
            ),
            (
                "logpond_store_panicked_lines_total",
                "Lines kept as text without fields, since reading them met a defect of this program.",
                self.panicked_lines.get(),
            ),
            (
                "logpond_store_merges_total",
                "Merges and rewrites of segments.",
                self.merges.get(),
            ),
            (
                "logpond_store_retired_total",
                "Segments retired because others hold their rows.",
                self.retired.get(),
            ),
            (
                "logpond_store_expired_total",
                "Files retired for age, size or free space.",
                self.expired.get(),
            ),
            (
                "logpond_store_damages_total",
                "Damaged parts of journal files; their rows are lost.",
                self.damages.get(),
            ),
            (
                "logpond_store_failures_total",
                "Steps of the store that failed.",
                self.failures.get(),
            ),
        ];
        out.counters(table);
        self.expose_retention(out);
    }

    fn expose_retention(&self, out: &mut Exposition) {
        out.gauges([
            (
                "logpond_expiry_lag_ms",
                "Milliseconds that removal by age is behind the clock: it was set ahead, or nobody agrees with it yet.",
                self.expiry_lag_ms.get(),
            ),
            (
                "logpond_expiry_stopped",
                "1 while nothing is removed by age: the clock is ahead of other nodes', or unchecked.",
                self.expiry_stopped.get(),
            ),
            (
                "logpond_retention_waits_ms",
                "Milliseconds until limits remove what is more than half of the records; 0: nothing waits.",
                self.retention_waits_ms.get(),
            ),
            (
                "logpond_retention_held_records",
                "Records that limits of retention would remove and that wait.",
                self.retention_held_records.get(),
            ),
            (
                "logpond_trash_bytes",
                "Bytes of retired segments that are still on the disk.",
                self.trash_bytes.get(),
            ),
        ]);
    }
}

/// The room of the data directory. A file system that does not answer has no lines.
fn expose_space(disk: &dyn Disk, out: &mut Exposition) {
    let Ok(space) = disk.space() else {
        return;
    };
    out.gauges([
        (
            "logpond_disk_free_bytes",
            "Bytes that may still be written to the file system of the data directory.",
            space.free_bytes,
        ),
        (
            "logpond_disk_total_bytes",
            "Size of the file system of the data directory.",
            space.total_bytes,
        ),
    ]);
}
