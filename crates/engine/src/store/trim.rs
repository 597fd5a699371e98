//! Segments that are superfluous in part: what other nodes hold is left out of a new one.
//!
//! Invariant: a segment goes only once the one that takes its place is durable and lists all of its
//! sources but those that others have confirmed, compared in the step that retires it (R5, R6). Until
//! then, and after a crash in between, it holds everything: at a start it covers the other one.

use std::sync::Arc;

use logpond_record::Id;
use logpond_segment::build;
use logpond_segment::file::Profile;
use logpond_segment::sources::SourceSet;

use super::live::{LiveSegment, local};
use super::steps::Worker;

/// The result of a trim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrimReport {
    /// Sources that are held here no more.
    pub sources: u64,
    /// Bytes by which the new file is shorter.
    pub bytes: u64,
}

impl Worker {
    /// Writes a segment anew without what was `confirmed` to be held elsewhere, and retires it. `None`,
    /// and it stays, if it is not there any more, or nothing or everything would be left out, or the
    /// store is stopping. What a bucket lists is left to the bucket.
    pub(super) fn trim(
        &mut self,
        id: Id,
        confirmed: &SourceSet,
    ) -> Result<Option<TrimReport>, String> {
        let segments = self.parts.live.snapshot();
        let found = local(&segments).find(|s| s.file().manifest().id == id);
        let Some(segment) = found.filter(|s| !s.is_damaged()).cloned() else {
            return Ok(None);
        };
        let manifest = segment.file().manifest();
        let left_out = segment.sources().common(confirmed);
        let kept = segment.sources().without(&left_out);
        let is_able = !left_out.is_empty() && manifest.rows_of(&kept) > 0 && self.board.is_none();
        if !is_able || self.unmergeable.contains(&id) {
            return Ok(None);
        }
        let profile = if manifest.cold {
            Profile::Cold
        } else {
            Profile::Hot
        };
        let written =
            self.write_anew(&[Arc::clone(&segment)], |disk, output, files, stopped| {
                build::trim(disk, output, &files[0], &left_out, profile, stopped)
            })?;
        let Some(written) = written else {
            return Ok(None);
        };
        self.take_place(&segment, written, &left_out)
    }

    /// Has what was written take the place of a segment, if it lists all but what was left out.
    fn take_place(
        &mut self,
        segment: &Arc<LiveSegment>,
        written: LiveSegment,
        left_out: &SourceSet,
    ) -> Result<Option<TrimReport>, String> {
        let mut elsewhere = written.sources().clone();
        elsewhere.union_with(left_out);
        if !elsewhere.contains_all(segment.sources()) {
            let lacking = segment.sources().without(&elsewhere);
            let error = std::io::Error::other(format!("{lacking:?} are missing in it"));
            let id = written.file().manifest().id;
            return Err(self.failed(id, "a segment could not be trimmed", &error));
        }
        let trimmed = TrimReport {
            sources: left_out.len(),
            bytes: segment
                .file()
                .bytes()
                .saturating_sub(written.file().bytes()),
        };
        self.counters.merges.add(1);
        self.counters.retired.add(1);
        self.retire(&[Arc::clone(segment)], Some(Arc::new(written)))?;
        Ok(Some(trimmed))
    }
}

#[cfg(test)]
mod tests;
