//! Segments of the bucket as files that queries read.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use logpond_bucket::{Cache, Objects, RemoteFile};
use logpond_cluster::Day;
use logpond_cluster::chain::{SegmentEntry, segment_name};
use logpond_segment::file::SegmentFile;

use crate::store::LiveSegment;
use logpond_settings::BucketSettings;

/// Segments that are opened side by side: each waits for one request.
const OPENERS_MAX: usize = 16;

/// Opens segments of the bucket.
pub(super) struct Remote {
    objects: Arc<dyn Objects>,
    cache: Cache,
}

impl Remote {
    pub(super) fn new(settings: &BucketSettings, objects: Arc<dyn Objects>) -> io::Result<Remote> {
        let cache = Cache::open(&settings.cache, settings.cache_bytes)?;
        Ok(Remote { objects, cache })
    }

    /// What of the bucket is kept here.
    pub(super) fn cache(&self) -> Cache {
        self.cache.clone()
    }

    /// Drops what is kept here of an object.
    pub(super) fn forget(&self, name: &str) {
        self.cache.forget(name);
    }

    /// Opens segments, several at a time; gives those that could not be, with the reason.
    pub(super) fn open_all(
        &self,
        listed: &[(Day, &SegmentEntry)],
        is_stopping: &AtomicBool,
    ) -> (Vec<Arc<LiveSegment>>, Vec<String>) {
        let next = AtomicUsize::new(0);
        let found = Mutex::new((Vec::new(), Vec::new()));
        thread::scope(|scope| {
            for _ in 0..OPENERS_MAX.min(listed.len()) {
                scope.spawn(|| {
                    while let Some((day, segment)) =
                        listed.get(next.fetch_add(1, Ordering::Relaxed))
                        && !is_stopping.load(Ordering::Relaxed)
                    {
                        let opened = self.open(*day, segment);
                        let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                        match opened {
                            Ok(segment) => found.0.push(Arc::new(segment)),
                            Err(what) => found.1.push(what),
                        }
                    }
                });
            }
        });
        found.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a segment, or says why it cannot be.
    pub(super) fn open(&self, day: Day, listed: &SegmentEntry) -> Result<LiveSegment, String> {
        let name = segment_name(day, listed.id);
        let file = RemoteFile::new(
            &self.cache,
            Arc::clone(&self.objects),
            &name,
            listed.bytes,
            listed.index_from,
        );
        let file = Arc::new(file);
        let opened = SegmentFile::open(file.clone()).map_err(|error| format!("{name}: {error}"))?;
        if opened.manifest().id == listed.id {
            Ok(LiveSegment::remote(opened, file))
        } else {
            Err(format!("{name}: it is another segment"))
        }
    }
}
