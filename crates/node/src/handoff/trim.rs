//! Segments that are superfluous in part are written anew without what enough other nodes hold.
//!
//! The sources are flagged until the old segment has gone: then no answer has counted on what was left
//! out (CLUSTER R6). It may take as long as a merge.

use logpond_cluster::give_up::Copies;
use logpond_cluster::repair::Member as Seen;
use logpond_cluster::trim::{Part, Trim};
use logpond_record::Id;
use logpond_segment::sources::SourceSet;

use super::Handoff;
use super::repair::Round;
use logpond_engine::store::{RequestError, Store, local};
use logpond_host::telemetry::warn;

impl Handoff {
    /// Trims a segment of this node if that is worth it. True if it was done. What a bucket lists is
    /// nobody's copy, and what is on its way there goes soon.
    pub(super) fn trim(
        &self,
        trim: &mut Trim,
        members: &[Seen<'_>],
        round: &Round,
        store: &Store,
    ) -> bool {
        if self.parts.board.is_some() {
            return false;
        }
        let live = self.parts.live.snapshot();
        let rows_of = |id: Id, sources: &SourceSet| {
            let segment = local(&live).find(|s| s.file().manifest().id == id);
            segment.map_or(0, |segment| segment.file().manifest().rows_of(sources))
        };
        let Some(part) = trim.plan(members, &round.expired, &rows_of, self.now_ms()) else {
            return false;
        };
        let is_trimmed = self
            .trim_part(&part, round.copies, store)
            .unwrap_or_else(|error| {
                self.counters.failures.add(1);
                warn(&format!(
                    "a segment cannot be written anew without what others hold: {error}"
                ));
                false
            });
        trim.ended(part.segment, is_trimmed, self.now_ms());
        is_trimmed
    }

    /// True if the part is held here no more.
    fn trim_part(&self, part: &Part, copies: Copies, store: &Store) -> Result<bool, RequestError> {
        let live = self.parts.live.snapshot();
        let Some(segment) = local(&live).find(|s| s.file().manifest().id == part.segment) else {
            return Ok(false);
        };
        if segment.is_damaged() {
            return Ok(false);
        }
        if part.sources.contains_all(segment.sources()) {
            return Ok(self.give_up(part.segment, copies, store));
        }
        let flag = self.flag(&part.sources);
        let confirmed = self.ask_for(segment, &part.sources, copies, flag.attempt);
        let trimmed = store.trim(part.segment, &confirmed)?;
        // Only now: an answer between the two would have counted on it.
        drop(flag);
        let Some(trimmed) = trimmed else {
            return Ok(false);
        };
        self.counters.trimmed_sources.add(trimmed.sources);
        self.counters.trimmed_bytes.add(trimmed.bytes);
        Ok(true)
    }
}
