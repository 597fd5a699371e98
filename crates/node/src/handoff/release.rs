//! Journal files go when enough nodes say that they hold what is in them (CLUSTER R6).

use logpond_cluster::NodeId;
use logpond_cluster::give_up::{CONTENTS_MAX, Content, GiveUp};
use logpond_record::cast;
use logpond_segment::journal::ClosedFile;
use logpond_segment::sources::SourceSet;

use super::{Handoff, new_attempt};
use logpond_engine::query::Nodes;
use logpond_host::side_by_side::side_by_side;
use logpond_host::telemetry::warn;

impl Handoff {
    /// Tries to let go of what stores have reported, and now and then of everything.
    pub(super) fn release(&self) {
        self.note_closed();
        let candidates = self.state().offers.candidates(self.now_ms());
        for contents in candidates.chunks(cast::to_usize(CONTENTS_MAX)) {
            self.try_release(contents);
        }
    }

    fn try_release(&self, contents: &[Content]) {
        let member = &self.parts.member;
        let wanted: SourceSet = contents.iter().map(|content| content.source).collect();
        let mut nodes = member.others();
        nodes.push(self.own());
        let peers = member.peers(nodes);
        let copies = member.copies_wanted();
        let mut attempt =
            GiveUp::new(new_attempt(), wanted.clone(), &peers, copies).expecting(contents);
        self.ask_holders(&mut attempt);
        self.warn_of_conflicts(&attempt);
        let confirmed = attempt.confirmed();
        let conflicts = attempt.conflicts().iter();
        let mut stays: SourceSet = conflicts.map(|(_, content)| content.source).collect();
        let registry = member.registry();
        let may_go = {
            let mut state = self.state();
            // Before a file goes, so that its batches are at no time neither here nor replicated.
            state.replicated.union_with(&confirmed);
            state.ends.may_go(&confirmed, &registry)
        };
        if !confirmed.is_empty() {
            self.confirmed.send_modify(|count| *count += 1);
        }
        let on_their_way = attempt.on_their_way().without(&stays);
        stays.union_with(&confirmed.without(&may_go));
        self.remove(&may_go);
        let now_ms = self.now_ms();
        let mut state = self.state();
        state.offers.dropped(&may_go);
        state.offers.safe(&stays);
        state.offers.on_their_way(&on_their_way, now_ms);
        let kept = wanted.without(&may_go).without(&stays);
        let kept = kept.without(&on_their_way);
        state.offers.kept(&kept, now_ms);
    }

    /// Asks the nodes of an attempt, this one too if it is among them, until enough is heard.
    pub(super) fn ask_holders(&self, attempt: &mut GiveUp) {
        let question = attempt.question();
        while !attempt.is_settled() {
            let to_ask: Vec<NodeId> = attempt.to_ask();
            if to_ask.is_empty() {
                break;
            }
            let answers = side_by_side(to_ask, |node| {
                if node == self.own() {
                    Some(self.holds(&question))
                } else {
                    self.parts.member.who_holds(node, &question).ok()
                }
            });
            for (node, answer) in answers {
                match answer.flatten() {
                    Some(held) => drop(attempt.answered(&held)),
                    None => attempt.failed(node),
                }
            }
        }
    }

    pub(super) fn warn_of_conflicts(&self, attempt: &GiveUp) {
        for (node, content) in attempt.conflicts() {
            self.counters.conflicts.add(1);
            let name = self.parts.member.name(*node);
            let source = content.source;
            warn(&format!(
                "{name} holds other rows of {source} than this node; both are kept, look at them"
            ));
        }
    }

    /// Removes the files of these sources.
    fn remove(&self, sources: &SourceSet) {
        let journal = self.parts.visible.snapshot();
        let going = journal.closed.iter();
        let going = going.filter(|file| sources.contains(file.source));
        let going: Vec<ClosedFile> = going.cloned().collect();
        self.parts.resends.release(&going, &journal.closed);
        for source in sources.iter() {
            let Some(file) = self.parts.visible.remove_closed(source) else {
                continue;
            };
            self.counters.released.add(1);
            if let Err(error) = self.parts.disk.remove(&file.path) {
                // It is found again at the next start, and offered again.
                warn(&format!("{} cannot be removed: {error}", file.path));
            }
        }
    }
}
