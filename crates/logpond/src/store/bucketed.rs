//! What the store does about a bucket: it takes over what is listed there, and leaves to it what the
//! local disk need not keep.

use std::collections::BTreeSet;
use std::sync::Arc;

use logpond_segment::retain::{self, Held, Reason, Room};
use logpond_segment::sources::SourceSet;

use super::live::LiveSegment;
use super::steps::Worker;

impl Worker {
    /// Takes over what is new in the bucket, and drops what is no longer there. What a local segment
    /// holds is read here.
    pub(super) fn follow_bucket(&mut self) -> Result<(), String> {
        let Some(board) = self.board.clone() else {
            return Ok(());
        };
        let (opened, expired) = (board.opened(), board.expired());
        let live = &self.parts.live;
        let segments = live.snapshot();
        let id = |segment: &Arc<LiveSegment>| segment.file().manifest().id;
        let known: BTreeSet<_> = segments.iter().map(id).collect();
        let local = segments.iter().filter(|s| !s.is_remote());
        let here = SourceSet::union_of(local.map(|s| s.sources()));
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
        let wanted = board.wanted();
        for local in segments.iter().filter(|s| !s.is_remote()) {
            if let Some(remote) = opened
                .get(&id(local))
                .filter(|_| wanted.contains(&id(local)))
            {
                self.retire(&[Arc::clone(local)], Some(Arc::clone(remote)))?;
            }
        }
        Ok(())
    }

    /// Gives up local copies of what the bucket has, where settings or the disk ask for it. Gives whether
    /// the disk did.
    pub(super) fn leave_to_bucket(&self, settings: &retain::Settings, room: &Room) -> bool {
        let Some(board) = &self.board else {
            return false;
        };
        let listed = board.listed();
        let segments = self.parts.live.snapshot();
        let local = segments.iter().filter(|segment| {
            !segment.is_remote() && listed.contains(&segment.file().manifest().id)
        });
        let held: Vec<Held<Arc<LiveSegment>>> = local.map(held).collect();
        let settings = retain::Settings {
            age_ns: self.policy.local.age_ns,
            size_bytes: self.policy.local.size_bytes,
            keep_size_bytes: 0,
            ..*settings
        };
        let plan = retain::plan(&held, Some((self.parts.clock)()), &settings, room);
        let gives_room = plan.iter().any(|(_, reason)| *reason == Reason::Free);
        // They go once they can be read from there.
        plan.iter()
            .for_each(|(segment, _)| board.want(segment.file().manifest().id));
        gives_room
    }
}

fn held(segment: &Arc<LiveSegment>) -> Held<Arc<LiveSegment>> {
    let manifest = segment.file().manifest();
    Held {
        key: Arc::clone(segment),
        received_min: manifest.received_min,
        received_max: manifest.received_max,
        bytes: segment.file().bytes(),
    }
}
