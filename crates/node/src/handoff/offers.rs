//! The ingester's half: what is offered, who is given what, and what stores say of it.

use std::sync::Arc;
use std::time::Duration;

use logpond_cluster::Day;
use logpond_cluster::give_up::{Content, HoldingsReply, WhoHolds};
use logpond_cluster::offers::{Claim, ClaimId, OfferedFile};
use logpond_cluster::placement::Store;
use logpond_cluster::{Holdings, NodeId};
use logpond_record::SourceId;
use logpond_segment::disk::ReadAt;
use logpond_segment::journal::ClosedFile;
use logpond_segment::sources::SourceSet;
use tokio::sync::watch;

use super::{Handoff, new_claim};

/// A closed journal file that another node reads.
pub struct JournalPiece {
    /// The file.
    pub file: Arc<dyn ReadAt>,
    /// Its length.
    pub bytes: u64,
}

/// What is in a closed file.
pub(super) fn content_of(file: &ClosedFile) -> Content {
    Content {
        source: file.source,
        rows: file.summary.rows(),
        hash: file.summary.tally.hash_sum,
    }
}

impl Handoff {
    /// Offers what was closed; forgets what somebody else has removed.
    pub(super) fn note_closed(&self) {
        let journal = self.parts.visible.snapshot();
        let now_ms = self.now_ms();
        let mut state = self.state();
        let known = state.offers.sources();
        let mut is_news = false;
        let mut there = SourceSet::new();
        for file in journal.closed.iter() {
            there.insert(file.source);
            state.ends.note(file.source);
            if !known.contains(file.source) {
                let offered = OfferedFile {
                    content: content_of(file),
                    bytes: file.bytes,
                };
                let day = Day::of(file.summary.received_min);
                state.offers.add(offered, day, now_ms);
                state.pace.offer(file.bytes);
                is_news = true;
            }
        }
        journal
            .open
            .iter()
            .for_each(|open| state.ends.note(open.source));
        let gone = known.without(&there);
        state.offers.dropped(&gone);
        let waiting_bytes = state.offers.bytes();
        state.pace.sample(waiting_bytes, now_ms);
        drop(state);
        if is_news {
            self.note_offers();
        }
    }

    /// Gives files to a store that asks for some. This node's own store comes first: what it makes
    /// has not to be sent to it. Without one it is the turn of one of the others for a while; the
    /// rest may take what has waited for long.
    pub fn claim(&self, store: NodeId) -> Option<Claim> {
        self.note_closed();
        let takers = self.takers();
        let now_ms = self.now_ms();
        let mut state = self.state();
        state.offers.claim(store, &takers, new_claim(), now_ms).ok()
    }

    /// The stores that take turns.
    fn takers(&self) -> Vec<NodeId> {
        let member = &self.parts.member;
        if member.keeps() {
            return vec![self.own()];
        }
        let stores = member.stores().into_iter();
        stores.filter(Store::can_take).map(|s| s.node).collect()
    }

    /// Whether there is something for a store; else when there may be, at the latest, and what
    /// changes when there may be sooner.
    pub fn is_offered(&self, store: NodeId) -> (bool, Option<Duration>, watch::Receiver<u64>) {
        // First, so that nothing is missed that comes between the two.
        let news = self.offered.subscribe();
        let (takers, now_ms) = (self.takers(), self.now_ms());
        match self.state().offers.is_ready(store, &takers, now_ms) {
            Ok(()) => (true, None, news),
            Err(nothing) => {
                let next = nothing
                    .until_ms
                    .map(|until_ms| until_ms.saturating_sub(now_ms));
                (false, next.map(Duration::from_millis), news)
            }
        }
    }

    /// Says that there may be something to claim.
    pub(super) fn note_offers(&self) {
        self.offered.send_modify(|count| *count += 1);
    }

    /// Takes a store's word for what became of a claim; without sources it has failed.
    pub fn reported(&self, claim: ClaimId, sources: Option<&SourceSet>) {
        let now_ms = self.now_ms();
        let mut state = self.state();
        match sources {
            Some(sources) => state.offers.reported(claim, sources, now_ms),
            None => state.offers.failed(claim, now_ms),
        }
        drop(state);
        // There may be something to release, or to claim again.
        self.parts.changes.notify();
        self.note_offers();
    }

    /// The file of a closed source, if it is there.
    pub fn journal(&self, source: SourceId) -> Option<JournalPiece> {
        let closed = self.closed(source)?;
        let file = self.parts.disk.open(&closed.path).ok()?;
        Some(JournalPiece {
            file,
            bytes: closed.bytes,
        })
    }

    pub(super) fn closed(&self, source: SourceId) -> Option<ClosedFile> {
        let journal = self.parts.visible.snapshot();
        journal
            .closed
            .iter()
            .find(|file| file.source == source)
            .cloned()
    }

    /// What this node holds and is not giving up, at one moment: a segment that an attempt has given up
    /// is gone before its flag is.
    fn unflagged(&self) -> Holdings {
        let state = self.state();
        let mut holdings = self.holdings();
        holdings.set_draining(self.parts.member.is_leaving());
        for (attempt, sources) in &state.flags {
            holdings.flag(*attempt, sources.clone());
        }
        holdings
    }

    /// Which of the sources that are asked for this node's segments or its bucket hold, and what is in
    /// them.
    pub fn holds(&self, question: &WhoHolds) -> HoldingsReply {
        let holdings = self.unflagged();
        let sources = holdings.answer(question);
        let listed = holdings.answer_listed(question);
        let mut contents = Vec::new();
        if question.with_contents {
            let live = self.parts.live.snapshot();
            let entries = live.iter().flat_map(|s| s.file().manifest().sources.iter());
            let mut all = sources.clone();
            all.union_with(listed.as_ref().unwrap_or(&SourceSet::new()));
            let asked = entries.filter(|entry| all.contains(entry.source));
            contents.extend(asked.map(Content::of));
            contents.sort_unstable_by_key(|content| content.source);
            contents.dedup_by_key(|content| content.source);
        }
        HoldingsReply {
            attempt: question.attempt,
            node: self.own(),
            sources,
            listed,
            contents,
        }
    }
}
