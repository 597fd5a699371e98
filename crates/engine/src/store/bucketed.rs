//! What the store does about a bucket: it takes over what is listed there, and leaves to it what the
//! local disk need not keep.

use std::collections::BTreeSet;
use std::sync::Arc;

use logpond_record::Id;
use logpond_segment::retain::{self, Reason, Room};
use logpond_segment::sources::SourceSet;

use super::live::{LiveSegment, is_leaving, local, staying};
use super::offload::Board;
use super::steps::{Worker, describe};
use logpond_host::telemetry::warn;

impl Worker {
    /// Takes over what is new in the bucket, and drops what is no longer there. What a local segment
    /// holds is read here.
    pub(super) fn follow_bucket(&mut self) -> Result<(), String> {
        self.keeper.look_at_bucket();
        let Some(board) = self.board.clone() else {
            return Ok(());
        };
        self.note_expired(&board)?;
        let (opened, expired) = (board.opened(), board.expired());
        let live = &self.parts.live;
        let segments = live.snapshot();
        let id = |segment: &Arc<LiveSegment>| segment.file().manifest().id;
        let known: BTreeSet<_> = segments.iter().filter(|s| s.is_remote()).map(id).collect();
        let leaving = board.leaving();
        let here = staying(&segments, &leaving);
        for (id, remote) in opened.iter() {
            let is_wanted = !known.contains(id) && !expired.contains(id);
            if is_wanted && !here.contains_all(remote.sources()) {
                live.replace(&[], Some(Arc::clone(remote)));
            }
        }
        live.put_aside().set_elsewhere(board.missing());
        // Behind those that have come in their place: readers count each source once.
        let is_gone = |s: &&Arc<LiveSegment>| s.is_remote() && !opened.contains_key(&id(s));
        let gone: Vec<_> = segments.iter().filter(is_gone).cloned().collect();
        if !gone.is_empty() {
            live.replace(&gone, None);
        }
        self.give_up_leaving(&board, &leaving)?;
        // One that was merged meanwhile is not there any more, and that is enough.
        board
            .take_renewing()
            .into_iter()
            .try_for_each(|id| self.renew(id))
    }

    /// Has a cluster know what has expired in the bucket, before it is missed: who let it go may be none of
    /// its nodes.
    fn note_expired(&self, board: &Board) -> Result<(), String> {
        let Some(cluster) = &self.parts.cluster else {
            return Ok(());
        };
        cluster
            .expire(&board.expired_sources())
            .map_err(|error| describe("what has expired in the bucket cannot be noted", &error))
    }

    /// Gives up the local segments that are to leave, or are damaged, and whose sources can all be read from the
    /// bucket.
    fn give_up_leaving(&mut self, board: &Board, leaving: &BTreeSet<Id>) -> Result<(), String> {
        let segments = self.parts.live.snapshot();
        let remote = segments.iter().filter(|s| s.is_remote() && !s.is_damaged());
        let there = SourceSet::union_of(remote.map(|s| s.sources()));
        let goes = |s: &&Arc<LiveSegment>| is_leaving(s, leaving) || s.is_damaged();
        for segment in local(&segments).filter(goes) {
            if there.contains_all(segment.sources()) {
                self.retire(&[Arc::clone(segment)], None)?;
                let id = segment.file().manifest().id;
                board.left(id);
                if segment.is_damaged() {
                    warn(&format!(
                        "segments/{id}.parquet is damaged; the bucket has what was in it, and it is read from there"
                    ));
                }
            }
        }
        let is_there = |id: &Id| local(&segments).any(|s| s.file().manifest().id == *id);
        // What was merged meanwhile may stay, as far as this is known.
        leaving
            .iter()
            .filter(|id| !is_there(id))
            .for_each(|id| board.left(*id));
        Ok(())
    }

    /// Gives up local copies of what the bucket has, where settings or the disk ask for it. Gives whether
    /// the disk did.
    pub(super) fn leave_to_bucket(&self, settings: &retain::Settings, room: &Room) -> bool {
        let Some(board) = &self.board else {
            return false;
        };
        let listed = board.sources();
        let segments = self.parts.live.snapshot();
        let held: Vec<_> = local(&segments)
            .filter(|segment| listed.contains_all(segment.sources()))
            .map(|segment| segment.held(segment.file().manifest().id))
            .collect();
        let settings = retain::Settings {
            age_ns: self.policy.local.age_ns,
            size_bytes: self.policy.local.size_bytes,
            keep_size_bytes: 0,
            ..*settings
        };
        let plan = retain::plan(&held, Some((self.parts.clock)()), &settings, room);
        let gives_room = plan.iter().any(|(_, reason)| *reason == Reason::Free);
        // They go once they can be read from there.
        plan.into_iter().for_each(|(id, _)| board.leave(id));
        gives_room
    }
}
