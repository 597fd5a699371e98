//! Segments that somebody has deleted under the server: they are open, and are written again.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use logpond_segment::build;

use super::live::{LiveSegment, local};
use super::steps::Worker;
use logpond_host::telemetry::warn;

/// How often deleted files are looked for: it takes a look at each name.
pub(super) const LOOK_INTERVAL: Duration = Duration::from_secs(60);

/// Bytes that are written again while the server stops: nobody waits for more.
const LAST_BYTES_MAX: u64 = 1 << 30;

impl Worker {
    /// Writes deleted files of live segments again; when the server stops only as many as take no long time.
    pub(super) fn put_back_deleted(&mut self, is_last: bool) {
        let deleted = match self.deleted() {
            Ok(deleted) => deleted,
            // The next look finds them.
            Err(_) => return,
        };
        let mut bytes = 0;
        for segment in deleted {
            bytes += segment.file().bytes();
            if is_last && bytes > LAST_BYTES_MAX {
                return;
            }
            let id = segment.file().manifest().id;
            match build::put_back(&*self.parts.disk, segment.file()) {
                Ok(()) => warn(&format!(
                    "segments/{id}.parquet was deleted, and is written again from the open file"
                )),
                Err(error) => {
                    let what = "a deleted segment cannot be written again";
                    warn(&self.failed(id, what, &error));
                    return;
                }
            }
        }
    }

    /// The live segments of the local disk without a file.
    fn deleted(&self) -> io::Result<Vec<Arc<LiveSegment>>> {
        // The segments first: one that comes meanwhile has its file.
        let segments = self.parts.live.snapshot();
        let entries = self.parts.disk.list(build::DIRECTORY)?;
        let names: BTreeSet<String> = entries.into_iter().map(|entry| entry.name).collect();
        let is_deleted = |segment: &&Arc<LiveSegment>| {
            let id = segment.file().manifest().id;
            !names.contains(&format!("{id}{}", build::SUFFIX_LIVE))
        };
        Ok(local(&segments).filter(is_deleted).cloned().collect())
    }
}
