//! The ingester of a node: batches into journal files, files to stores, and away.

use logpond_cluster::Day;
use logpond_cluster::Fate;
use logpond_cluster::births::{Publication, others_for_birth};
use logpond_cluster::expiry::{OFF_NS_MAX, is_behind};
use logpond_cluster::give_up::{GiveUp, Peer};
use logpond_cluster::offers::{ClaimId, OfferedFile};
use logpond_record::{Incarnation, SourceId};
use logpond_segment::sources::SourceSet;

use super::disk::{Contents, Frame, content};
use super::message::{Place, Reply, ReplyTarget, Request, Timer};
use super::process::{GiveUpTask, Life, UnsyncedBatch};
use super::world::{Mutation, World};

/// A journal file is closed after this.
const OPEN_MS: u64 = 300;

impl World {
    /// Takes a batch in. No reply yet if that has to wait for a sync.
    pub(super) fn append(
        &mut self,
        place: Place,
        to: Place,
        number: u64,
        frame: Frame,
    ) -> Option<Reply> {
        let node = &self.nodes[place];
        let is_behind = is_behind(self.clock(place), &self.peer_clocks(place), OFF_NS_MAX)
            && self.mutation != Some(Mutation::EarlyStamps);
        if !node.takes_in || !node.disk.is_joined || node.disk.is_leaving || is_behind {
            return Some(Reply::Refused);
        }
        if self.is_full(place) {
            self.report.refused_full += 1;
            return Some(self.refuse_full(place, frame));
        }
        if self.process(place).life.is_none() {
            self.mint(place);
        }
        if !self.is_born(place) {
            return Some(Reply::Refused);
        }
        let source = match frame.attempt {
            0 => self.open(place),
            _ => self.create(place),
        };
        let file = self.nodes[place].disk.file_mut(source)?;
        file.frames.push(frame);
        let count = file.frames.len();
        self.ledger.appended(source, frame);
        let after_ms = 1 + self.random.below(8);
        self.timer(place, after_ms, Timer::Synced { source, count });
        if self.mutation == Some(Mutation::AckBeforeSync) {
            self.note_ack(place, source, frame);
            return Some(Reply::Acked(source));
        }
        let unsynced = UnsyncedBatch {
            source,
            index: count - 1,
            to,
            number,
        };
        self.process(place).unsynced.push(unsynced);
        None
    }

    /// What is replied where nothing can be written.
    fn refuse_full(&mut self, place: Place, frame: Frame) -> Reply {
        let life = self.process(place).life.as_ref();
        let open = life.and_then(|life| life.open);
        match (self.mutation, open) {
            (Some(Mutation::AckWhenFull), Some((source, _))) => {
                self.note_ack(place, source, frame);
                Reply::Acked(source)
            }
            _ => Reply::Refused,
        }
    }

    /// Begins an incarnation.
    fn mint(&mut self, place: Place) {
        let (node, born) = (self.nodes[place].id, self.clock(place));
        let incarnation = match self.mutation {
            Some(Mutation::CountedIncarnations) => {
                let lives = &mut self.nodes[place].disk.lives;
                *lives += 1;
                Incarnation((node.0 << 64) | u128::from(*lives))
            }
            _ => Incarnation(self.wide()),
        };
        let is_known = self.mutation != Some(Mutation::UnknownBirths);
        let process = self.process(place);
        process.life = Some(Life {
            incarnation,
            birth: Publication::new(),
            next: 0,
            open: None,
        });
        if is_known {
            process.registry.note(incarnation, Fate::born(node, born));
            self.write_registry(place);
        }
    }

    /// Whether as many know of the incarnation as must.
    fn is_born(&mut self, place: Place) -> bool {
        if self.mutation == Some(Mutation::UnknownBirths) {
            return true;
        }
        let me = self.nodes[place].id;
        let others = self.known(place).iter().filter(|n| **n != me).count();
        let needed = others_for_birth(self.copies, others);
        let life = self.process(place).life.as_ref();
        life.is_some_and(|life| life.birth.is_recorded(needed))
    }

    fn open(&mut self, place: Place) -> SourceId {
        let life = self.process(place).life.as_ref();
        if let Some((source, _)) = life.and_then(|life| life.open) {
            return source;
        }
        let source = self.create(place);
        let now_ms = self.now_ms;
        if let Some(life) = &mut self.process(place).life {
            life.open = Some((source, now_ms));
        }
        source
    }

    fn create(&mut self, place: Place) -> SourceId {
        let received = self.clock(place);
        let process = self.process(place);
        let life = process.life.as_mut().expect("it was minted before");
        let mut source = SourceId {
            incarnation: life.incarnation,
            sequence: life.next,
        };
        life.next += 1;
        while self.nodes[place].disk.file(source).is_some() {
            // Only where incarnations are counted: an earlier life had the same.
            let life = self.process(place).life.as_mut();
            source.sequence += 1;
            life.expect("it was minted before").next = source.sequence + 1;
        }
        self.process(place).ends.note(source);
        self.nodes[place].disk.create(source, received);
        source
    }

    /// A sync of a journal file has returned.
    pub(super) fn synced(&mut self, place: Place, source: SourceId, count: usize) {
        let has_failed = !self.is_healing() && self.random.one_in(300);
        let Some(file) = self.nodes[place].disk.file_mut(source) else {
            return;
        };
        if file.is_closed {
            return;
        }
        if has_failed {
            // What was not synced before may be on the disk or not; nobody looks at it again.
            file.frames.truncate(file.synced);
            self.report.sync_errors += 1;
            let process = self.process(place);
            process.unsynced.retain(|waiting| waiting.source != source);
            return self.close(place, source);
        }
        file.synced = file.synced.max(count);
        let (synced, frames) = (file.synced, file.frames.clone());
        let process = self.process(place);
        process.version += 1;
        let is_done = |u: &mut UnsyncedBatch| u.source == source && u.index < synced;
        let done: Vec<UnsyncedBatch> = process.unsynced.extract_if(.., is_done).collect();
        for waiting in done {
            self.note_ack(place, source, frames[waiting.index]);
            self.reply(place, waiting.to, waiting.number, Reply::Acked(source));
        }
        if frames[0].attempt > 0 {
            self.close(place, source);
        }
    }

    fn note_ack(&mut self, place: Place, source: SourceId, frame: Frame) {
        self.report.acknowledgements += 1;
        let file = self.nodes[place].disk.file(source);
        let durable = file.map_or(0, |file| file.synced);
        let is_durable = file.is_some_and(|f| f.frames[..durable].contains(&frame));
        self.ledger.acked(frame.batch, source, is_durable);
        let me = self.nodes[place].id;
        let others = self.nodes.iter().filter(|node| node.id != me);
        let knowing = others.filter(|node| {
            let registry = &node.disk.registry;
            registry.fate(source.incarnation).is_some()
        });
        let known = self.known(place).len() - 1;
        let needed = others_for_birth(self.copies, known);
        if knowing.count() < needed && !self.loses_disks && !self.restores {
            self.ledger
                .violate("R3: an unknown incarnation acknowledges");
        }
    }

    fn close(&mut self, place: Place, source: SourceId) {
        let now_ms = self.now_ms;
        let Some(file) = self.nodes[place].disk.file_mut(source) else {
            return;
        };
        file.is_closed = true;
        let (frames, day) = (file.frames.clone(), Day::of(file.received));
        self.ledger.closed(source, &frames);
        let content = content(source, &frames);
        let process = self.process(place);
        let bytes = content.rows;
        process
            .offers
            .add(OfferedFile { content, bytes }, day, now_ms);
        process.version += 1;
        if let Some(life) = &mut process.life
            && life.open.is_some_and(|(open, _)| open == source)
        {
            life.open = None;
        }
    }

    /// Closes the file that is open, if all of it is synced.
    pub(super) fn close_open(&mut self, place: Place) {
        let life = self.process(place).life.as_ref();
        if let Some((source, _)) = life.and_then(|life| life.open) {
            let file = self.nodes[place].disk.file(source);
            if file.is_some_and(|file| file.synced == file.frames.len()) {
                self.close(place, source);
            }
        }
    }

    /// Closes what is old, and tries to give up what stores may have.
    pub(super) fn ingest(&mut self, place: Place) {
        let life = self.process(place).life.as_ref();
        if let Some((_, since_ms)) = life.and_then(|life| life.open)
            && since_ms + OPEN_MS <= self.now_ms
        {
            self.close_open(place);
        }
        let process = self.process(place);
        let mut giving = process.giving.values();
        if !giving.any(|giving| giving.segment.is_none()) {
            self.give_up_files(place);
        }
    }

    fn give_up_files(&mut self, place: Place) {
        let (now_ms, attempt) = (self.now_ms, self.attempt());
        let among = self.stores_known(place);
        let among = among.into_iter();
        let peers: Vec<Peer> = among.map(|node| self.peer(place, node)).collect();
        let copies = self.enough(place);
        let contents = self.process(place).offers.candidates(now_ms);
        if contents.is_empty() {
            return;
        }
        let wanted: SourceSet = contents.iter().map(|c| c.source).collect();
        let give_up = GiveUp::new(attempt, wanted, &peers, copies).expecting(&contents);
        let giving = GiveUpTask {
            give_up,
            segment: None,
            is_part: false,
        };
        self.process(place).giving.insert(attempt, giving);
        self.ask_holders(place, attempt);
    }

    /// Ends an attempt to give up journal files.
    pub(super) fn gave_up_files(&mut self, place: Place, give_up: &GiveUp) {
        if !give_up.conflicts().is_empty() {
            self.report.conflicts += 1;
            if !self.restores {
                self.ledger.violate("R2: a source has two contents");
            }
        }
        self.dropped(place, &give_up.confirmed());
        let (now_ms, asked) = (self.now_ms, give_up.question().sources);
        let conflicts = give_up.conflicts().iter();
        let disputed: SourceSet = conflicts.map(|(_, content)| content.source).collect();
        let kept = asked.without(&give_up.confirmed()).without(&disputed);
        let on_their_way = give_up.on_their_way().without(&disputed);
        self.report.on_their_way += on_their_way.len();
        let offers = &mut self.process(place).offers;
        offers.on_their_way(&on_their_way, now_ms);
        offers.kept(&kept.without(&on_their_way), now_ms);
        offers.safe(&disputed.without(&give_up.confirmed()));
    }

    /// Drops journal files of which there are enough copies, but for those that must stay.
    fn dropped(&mut self, place: Place, confirmed: &SourceSet) {
        // A seal that is not durable is none.
        let durable = self.nodes[place].disk.registry.clone();
        let process = self.process(place);
        let gone = process.ends.may_go(confirmed, &durable);
        process.offers.dropped(&gone);
        process.offers.safe(&confirmed.without(&gone));
        process.dropped.union_with(confirmed);
        process.version += 1;
        self.report.dropped_sources += gone.len();
        self.nodes[place].disk.remove_files(&gone);
        self.ledger.safe(confirmed);
        self.timer(place, 3, Timer::Named(None));
    }

    /// Gives files to a store.
    pub(super) fn offer(&mut self, place: Place, store: Place) -> Reply {
        let (now_ms, id) = (self.now_ms, ClaimId(self.wide()));
        let live = self.stores_known(place);
        let store = self.nodes[store].id;
        let claim = self.process(place).offers.claim(store, &live, id, now_ms);
        Reply::Claimed(claim.ok())
    }

    /// Gives what is in closed files to a store.
    pub(super) fn fetch(&mut self, place: Place, sources: &SourceSet) -> Reply {
        let disk = &self.nodes[place].disk;
        let closed = disk.journal().filter(|(_, file)| file.is_closed);
        let wanted = closed.filter(|(source, _)| sources.contains(*source));
        let mut received = logpond_record::Timestamp::MIN;
        let mut contents = Contents::new();
        for (source, file) in wanted {
            received = received.max(file.received);
            contents.insert(source, file.frames.clone().into());
        }
        Reply::Fetched(contents, received)
    }

    /// A store says that sources are where they should be.
    pub(super) fn reported(&mut self, place: Place, claim: ClaimId, sources: &SourceSet) {
        let now_ms = self.now_ms;
        self.process(place).offers.reported(claim, sources, now_ms);
    }

    /// Asks all whom an attempt wants asked.
    pub(super) fn ask_holders(&mut self, place: Place, attempt: logpond_cluster::give_up::Attempt) {
        let giving = self.process(place).giving.get(&attempt);
        let Some((question, to_ask)) = giving.map(|g| (g.give_up.question(), g.give_up.to_ask()))
        else {
            return;
        };
        for node in to_ask {
            let waiting = ReplyTarget::GiveUp { attempt, node };
            let request = Request::WhoHolds(question.clone());
            self.request(place, self.place_of(node), request, waiting);
        }
        self.end_giving(place, attempt);
    }

    /// Ends an attempt if nothing can change it any more.
    pub(super) fn end_giving(&mut self, place: Place, attempt: logpond_cluster::give_up::Attempt) {
        let process = self.process(place);
        let giving = process.giving.get(&attempt);
        if !giving.is_some_and(|giving| giving.give_up.is_settled()) {
            return;
        }
        let Some(giving) = process.giving.remove(&attempt) else {
            return;
        };
        match giving.segment {
            None => self.gave_up_files(place, &giving.give_up),
            Some(id) if giving.is_part => {
                self.leave_out(place, id, attempt, giving.give_up.confirmed());
            }
            Some(id) => self.gave_up_segment(place, id, attempt, &giving.give_up),
        }
    }
}
