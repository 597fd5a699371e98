//! Follows all nodes: streams of what they take in, and errands for what no stream brings.
//!
//! ```text
//! node ─▶ lp-follow (one for each node) ─┐
//! node ─▶ lp-follow (one for each node) ─┼─▶ events ─▶ the query's thread ─▶ rows out
//! all  ─▶ lp-follow (looks around) ──────┤               │ Followed decides
//! all  ─▶ lp-follow (an errand) ◀────────┴───────────────┘
//! ```
//!
//! Invariants: only the query's thread decides and emits; the others end at the latest when they
//! have something to say after it has ended, and nobody waits for them.

use std::collections::{BTreeMap, BTreeSet};
use std::io::BufReader;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use logpond_cluster::question::CollectionResult;
use logpond_cluster::{Cover, IndexedInventory, NodeId, Share, Target};
use logpond_record::{TimeRange, Timestamp};
use logpond_search::order::{Direction, Key};
use logpond_segment::batches::BatchSet;
use logpond_segment::sources::SourceSet;
use serde_json::json;

use super::super::follow::CHECK_INTERVAL;
use super::super::frames::{Block, Frame, Frames, JournalProgress};
use super::super::journal_rows::Row;
use super::super::output::Output;
use super::super::positions::{Positions, Region};
use super::super::question::{self, Request};
use super::super::{QueryError, Search, Trailer, rows};
use super::followed::{Errand, FollowerState};
use super::gather::{self, Participants};
use super::whole::{Part, Whole};
use super::{Cluster, Reader, Unreachable, local};

/// Events that wait for the follower, a row or a copy each at most: enough that nodes and the client
/// need not take turns.
const EVENTS_MAX: usize = 64;

/// How often a follower looks which nodes there are and what they hold.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// How often a client that wants to is told where it could go on.
const POSITION_INTERVAL: Duration = Duration::from_secs(1);

/// Rows between two such times: a client remembers their names.
const POSITION_ROWS_MAX: u64 = 1000;

/// Nodes that are followed. Each takes a thread and a connection.
const NODES_MAX: usize = 256;

/// Bytes of a copy that are held until all of it is there: several times the largest batch that a
/// sender makes. What is larger is shown in parts.
const COPY_BYTES_MAX: usize = 64 << 20;

/// Read at a time from a node.
const READ_BYTES: usize = 16 << 10;

/// What a follower is told.
enum Event {
    /// A stream has begun.
    Began(NodeId),
    /// A stream's rows from here on are in this block.
    Entered(NodeId, Block),
    /// A stream's row.
    Streamed(NodeId, Row),
    /// How far a stream is.
    Passed(NodeId, JournalProgress),
    /// A stream has ended, or none could be had.
    Ended(NodeId, String),
    /// What all nodes hold.
    Looked(CollectionResult),
    /// Which nodes have which originals.
    Originals(Vec<(NodeId, BatchSet)>),
    /// Rows of an errand, of which a client sees all or none, and the batches that may be in what it reads.
    Read(Arc<SourceSet>, Arc<BatchSet>, Vec<Row>),
    /// An errand has read these to their end, and these batches with them.
    Finished(SourceSet, Arc<BatchSet>),
    /// An errand's reading of these broke behind a row, and behind some of these batches.
    Cut(SourceSet, Key, Arc<BatchSet>),
    /// An errand could not read this.
    Missed(Vec<String>),
    /// An errand is done.
    Returned,
}

type Rows = Frames<BufReader<Reader>>;

/// Emits what there is, if the client has not had it, and then what comes.
pub(super) fn run(
    cluster: &Cluster,
    search: &Search,
    out: &mut Output,
) -> Result<Trailer, QueryError> {
    let mut trailer = Trailer::default();
    let (positions, seen) = match &search.positions {
        Some(positions) => (positions.clone(), BatchSet::default()),
        None => begin(cluster, search, out, &mut trailer)?,
    };
    let (sender, events) = sync_channel(EVENTS_MAX);
    let follower = Follower {
        cluster,
        search,
        asked: Arc::new(asked(search)),
        followed: FollowerState::new(positions, &seen),
        whole: Whole::default(),
        streams: BTreeMap::new(),
        held: Vec::new(),
        silent: Vec::new(),
        is_looking: false,
        looked_at: None,
        is_away: false,
        told: FollowStatus::default(),
        sender,
        trailer,
    };
    Ok(follower.run(&events, out))
}

/// The first part of the answer: what there is; gives what was shown by it, and the batches among
/// that.
fn begin(
    cluster: &Cluster,
    search: &Search,
    out: &mut Output,
    trailer: &mut Trailer,
) -> Result<(Positions, BatchSet), QueryError> {
    let gathered = Participants::new(cluster);
    let mut now = search.narrowed(search.within.clone());
    now.is_followed = false;
    now.wants_positions = true;
    let cursor = now.behind.take();
    // A follower that comes back has seen everything that arrived before its last record.
    now.shown
        .extend(cursor.map(|cursor| Region::arrived(cursor.id)));
    rows::emit(&gathered, &now, out, trailer)?;
    out.flush()?;
    let mut positions = gathered.positions(None);
    if let Some(cursor) = cursor {
        for (incarnation, _) in gathered.target.registry.incarnations() {
            positions.set_floor(incarnation, cursor.id);
        }
    }
    Ok((positions, gathered.batches()))
}

/// What nodes are asked for: matches whatever `to` says, in the order of arrival.
fn asked(search: &Search) -> Search {
    let mut asked = search.without_context();
    asked.scope.range = TimeRange {
        from: search.scope.range.from,
        to: Timestamp::MAX,
    };
    asked.limit = None;
    asked.direction = Direction::Forward;
    asked.behind = None;
    asked.is_followed = false;
    asked.wants_positions = true;
    asked
}

/// The notices that the client has got, and their times.
#[derive(Default)]
struct FollowStatus {
    /// Nodes that are said not to answer, and since when.
    silent: BTreeMap<NodeId, Timestamp>,
    /// When it was told where it could go on, and how many rows it had then.
    position_at: Option<Instant>,
    position_rows: u64,
    position: String,
}

struct Follower<'a> {
    cluster: &'a Cluster,
    search: &'a Search,
    asked: Arc<Search>,
    followed: FollowerState,
    whole: Whole,
    /// Nodes with a thread that streams, and whether it has begun.
    streams: BTreeMap<NodeId, bool>,
    held: Vec<Arc<IndexedInventory>>,
    silent: Vec<NodeId>,
    is_looking: bool,
    looked_at: Option<Instant>,
    /// Whether an errand is being done.
    is_away: bool,
    told: FollowStatus,
    sender: SyncSender<Event>,
    trailer: Trailer,
}

impl Follower<'_> {
    fn run(mut self, events: &Receiver<Event>, out: &mut Output) -> Trailer {
        match self.follow(events, out) {
            Ok(()) => self.trailer.has_more = true,
            Err(error) => {
                self.trailer.is_cancelled = matches!(error, QueryError::Cancelled);
                self.trailer.miss(error);
            }
        }
        self.finish()
    }

    /// Emits until the limit, or until nobody listens.
    fn follow(&mut self, events: &Receiver<Event>, out: &mut Output) -> Result<(), QueryError> {
        self.stream_all();
        out.idle();
        while self.wants_more() {
            out.check()?;
            self.look();
            match events.recv_timeout(CHECK_INTERVAL) {
                Ok(event) => self.take(event, out)?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(QueryError::Cancelled),
            }
            while self.wants_more() {
                let Ok(event) = events.try_recv() else { break };
                self.take(event, out)?;
                self.tell_position(out)?;
            }
            self.tell_position(out)?;
            out.flush()?;
        }
        Ok(())
    }

    fn wants_more(&self) -> bool {
        let rows = self.trailer.rows;
        self.search.limit.is_none_or(|limit| rows < limit)
    }

    fn take(&mut self, event: Event, out: &mut Output) -> Result<(), QueryError> {
        match event {
            Event::Began(node) => {
                self.streams.insert(node, true);
                self.followed.connect(node);
                self.tell_back(node, out)?;
            }
            Event::Entered(node, block) => {
                let part = self.whole.enter(node, block);
                self.show_streamed(part, out)?;
            }
            Event::Streamed(node, row) => {
                let part = self.whole.add(node, row);
                self.show_streamed(part, out)?;
            }
            Event::Passed(node, passed) => {
                let part = self.whole.end(node);
                self.show_streamed(part, out)?;
                if !self.wants_more() {
                    return Ok(());
                }
                self.followed.pass(node, &passed);
                self.miss(Some(node), passed.missing);
                self.tell_back(node, out)?;
            }
            Event::Ended(node, why) => {
                self.whole.forget(node);
                self.followed.disconnect(node);
                match self.streams.remove(&node) {
                    // It may only have been cut.
                    Some(true) => self.stream(node),
                    _ => self.tell_silent(node, &why, out)?,
                }
            }
            Event::Looked(collected) => {
                self.is_looking = false;
                self.held = collected.answered;
                let silent = collected.silent;
                // Those that were given up are not waited for, and another node may be at the
                // address of one.
                let others: BTreeSet<NodeId> = self.cluster.nodes.others().into_iter().collect();
                self.told.silent.retain(|node, _| others.contains(node));
                for node in silent.iter().filter(|node| others.contains(node)) {
                    self.tell_silent(*node, "it does not say what it holds", out)?;
                }
                self.silent = silent;
                self.stream_all();
                self.send_errand();
            }
            Event::Originals(found) => {
                let held: Vec<&IndexedInventory> =
                    self.held.iter().map(|indexed| &**indexed).collect();
                self.followed.note_originals(&held, &found);
            }
            Event::Read(sources, originals, rows) => {
                self.followed.begin_read(&originals);
                self.show_read(&sources, &rows, out)?;
            }
            Event::Finished(sources, batches) => self.followed.finish(&sources, &batches),
            Event::Cut(sources, last, batches) => self.followed.cut(&sources, last, &batches),
            Event::Missed(missing) => self.miss(None, missing),
            Event::Returned => {
                self.is_away = false;
                self.send_errand();
            }
        }
        Ok(())
    }

    fn show_streamed(&mut self, part: Option<Part>, out: &mut Output) -> Result<(), QueryError> {
        let Some(part) = part else { return Ok(()) };
        for row in &part.rows {
            if self.wants_more() && self.followed.take_streamed(&part.block, row.0, &row.1) {
                self.emit(row, out)?;
            }
        }
        Ok(())
    }

    fn show_read(
        &mut self,
        sources: &Arc<SourceSet>,
        rows: &[Row],
        out: &mut Output,
    ) -> Result<(), QueryError> {
        for row in rows {
            if self.wants_more() && self.followed.take_read(sources, row.0, &row.1) {
                self.emit(row, out)?;
            }
        }
        Ok(())
    }

    fn emit(&mut self, row: &Row, out: &mut Output) -> Result<(), QueryError> {
        self.trailer.rows += 1;
        self.trailer.bytes_scanned += row.1.len() as u64;
        Ok(out.line(|chunk| chunk.extend_from_slice(&row.1))?)
    }

    fn miss(&mut self, node: Option<NodeId>, missing: Vec<String>) {
        let node = node.filter(|node| *node != self.cluster.nodes.own());
        for what in missing {
            match node {
                Some(node) => {
                    let name = self.cluster.nodes.name(node);
                    self.trailer.miss(format_args!("{name}: {what}"));
                }
                None => self.trailer.miss(what),
            }
        }
    }

    /// Says once that a node does not answer.
    fn tell_silent(&mut self, node: NodeId, why: &str, out: &mut Output) -> Result<(), QueryError> {
        if self.told.silent.contains_key(&node) {
            return Ok(());
        }
        self.told.silent.insert(node, logpond_host::clock::now());
        let name = self.cluster.nodes.name(node);
        let message =
            format!("{name} does not answer; what it takes in is shown once it does: {why}");
        Ok(out
            .aside(&json!({ "_notice": { "node": name, "answers": false, "message": message } }))?)
    }

    /// Says that a node answers that was said not to.
    fn tell_back(&mut self, node: NodeId, out: &mut Output) -> Result<(), QueryError> {
        if self.told.silent.remove(&node).is_none() {
            return Ok(());
        }
        let name = self.cluster.nodes.name(node);
        let message = format!("{name} answers again");
        Ok(out
            .aside(&json!({ "_notice": { "node": name, "answers": true, "message": message } }))?)
    }

    /// Tells a client that wants to know where it could go on.
    fn tell_position(&mut self, out: &mut Output) -> Result<(), QueryError> {
        let rows = self.trailer.rows;
        let at = self.told.position_at;
        let is_due = at.is_none_or(|at| at.elapsed() >= POSITION_INTERVAL)
            || rows - self.told.position_rows >= POSITION_ROWS_MAX;
        if !self.search.wants_positions || !is_due {
            return Ok(());
        }
        self.told.position_at = Some(Instant::now());
        self.told.position_rows = rows;
        let position = self.followed.told();
        if position != self.told.position {
            out.aside(&json!({ "_position": position }))?;
            self.told.position = position;
        }
        Ok(())
    }

    /// Looks around, from time to time.
    fn look(&mut self) {
        let is_due = self
            .looked_at
            .is_none_or(|at| at.elapsed() >= LOOK_INTERVAL);
        if self.is_looking || !is_due {
            return;
        }
        self.looked_at = Some(Instant::now());
        let (cluster, sender) = (self.cluster.clone(), self.sender.clone());
        self.is_looking = spawn(move || {
            let collected = gather::collect(&cluster, true);
            let _ = sender.send(Event::Looked(collected));
        });
    }

    /// Streams from all nodes from which nothing streams.
    fn stream_all(&mut self) {
        let nodes = &self.cluster.nodes;
        let all = std::iter::once(nodes.own()).chain(nodes.others());
        let all: Vec<NodeId> = all.take(NODES_MAX).collect();
        for node in all {
            if !self.streams.contains_key(&node) {
                self.stream(node);
            }
        }
    }

    fn stream(&mut self, node: NodeId) {
        let asked = Request::Follow(&self.asked, self.followed.positions());
        let question = question::encode(&Share::default(), &BTreeMap::new(), &asked);
        let (cluster, sender) = (self.cluster.clone(), self.sender.clone());
        // Without a thread the next look tries again.
        if spawn(move || stream(&cluster, node, question, &sender)) {
            self.streams.insert(node, false);
        }
    }

    /// Has what no stream brings read, if there is anything.
    fn send_errand(&mut self) {
        if self.is_away {
            return;
        }
        let held: Vec<&IndexedInventory> = self.held.iter().map(|indexed| &**indexed).collect();
        let stored = self.cluster.stored(&self.held);
        let Some(errand) = self.followed.plan(&held, &stored) else {
            return;
        };
        let runner = Runner {
            cluster: self.cluster.clone(),
            asked: self.asked.clone(),
            held: self.held.clone(),
            sender: self.sender.clone(),
        };
        self.is_away = spawn(move || {
            let _ = runner.run(&errand);
        });
    }

    /// What the answer does not have.
    fn finish(mut self) -> Trailer {
        let nodes = &*self.cluster.nodes;
        let held: Vec<&IndexedInventory> = self.held.iter().map(|indexed| &**indexed).collect();
        let target = Target::over(&held, &self.cluster.stored(&self.held));
        let shown = self.followed.positions().begun(&target.wanted);
        gather::judge(
            nodes,
            (&target, &shown),
            &held,
            (&self.silent, &nodes.unmet()),
            &mut self.trailer,
        );
        for (node, since) in &self.told.silent {
            let name = nodes.name(*node);
            self.trailer
                .miss(format_args!("{name} has not answered since {since}"));
            self.trailer.silent.push(name);
        }
        self.trailer.newest = self.cluster.engine.newest_time();
        self.trailer.cursor = None;
        if self.search.wants_positions {
            self.trailer.position = Some(self.followed.told());
        }
        self.trailer
    }
}

fn spawn(work: impl FnOnce() + Send + 'static) -> bool {
    let thread = thread::Builder::new().name("lp-follow".to_owned());
    thread.spawn(work).is_ok()
}

/// Asks a node; this one without a socket.
fn open(
    cluster: &Cluster,
    node: NodeId,
    question: Vec<u8>,
    is_followed: bool,
) -> Result<Rows, Unreachable> {
    let reader = if node == cluster.nodes.own() {
        local::ask(&cluster.engine, question, cluster.shutdown.clone())
    } else if is_followed {
        cluster.nodes.follow(node, &question)
    } else {
        cluster.nodes.ask(node, &question)
    };
    let buffered = |reader| BufReader::with_capacity(READ_BYTES, reader);
    reader.map(|reader| Frames::new(buffered(reader)))
}

/// Passes on what a node streams, until it ends or nobody listens.
fn stream(cluster: &Cluster, node: NodeId, question: Vec<u8>, events: &SyncSender<Event>) {
    let why = match open(cluster, node, question, true) {
        Ok(mut frames) => match pass_on(node, &mut frames, events) {
            Some(why) => why,
            None => return,
        },
        Err(error) => error.to_string(),
    };
    let _ = events.send(Event::Ended(node, why));
}

/// Passes on frames; gives why they end, or nothing if nobody listens.
fn pass_on(node: NodeId, frames: &mut Rows, events: &SyncSender<Event>) -> Option<String> {
    let mut has_begun = false;
    loop {
        let event = match frames.next() {
            Ok(Frame::Block(block)) => Event::Entered(node, block),
            Ok(Frame::Row(row)) => Event::Streamed(node, row),
            Ok(Frame::Passed(passed)) => Event::Passed(node, passed),
            Ok(Frame::Failed(why)) => return Some(why),
            Ok(_) => return Some("it answers something else".to_owned()),
            Err(error) => return Some(error.to_string()),
        };
        if !has_begun {
            has_begun = true;
            events.send(Event::Began(node)).ok()?;
        }
        events.send(event).ok()?;
    }
}

/// The client is gone.
struct Disconnect;

/// What does an errand.
struct Runner {
    cluster: Cluster,
    asked: Arc<Search>,
    held: Vec<Arc<IndexedInventory>>,
    sender: SyncSender<Event>,
}

impl Runner {
    fn say(&self, event: Event) -> Result<(), Disconnect> {
        self.sender.send(event).map_err(|_| Disconnect)
    }

    fn run(&self, errand: &Errand) -> Result<(), Disconnect> {
        let nodes = &*self.cluster.nodes;
        let mut held = self.held.clone();
        if !errand.batches.is_empty() {
            let names: Vec<NodeId> = held.iter().map(|i| i.inventory().node).collect();
            let (found, unsaid) = gather::originals(nodes, &names, &errand.batches);
            // They may have originals of what was shown, so nothing of theirs is read now.
            held.retain(|indexed| !unsaid.contains(&indexed.inventory().node));
            self.say(Event::Originals(found))?;
        }
        let stored = self.cluster.stored(&held);
        for (sources, regions) in &errand.groups {
            let is_whole = errand.copies.contains_all(sources);
            self.read((&held, &stored), sources, regions, is_whole)?;
        }
        self.say(Event::Returned)
    }

    /// Reads sources that have the same regions, each where it is held.
    fn read(
        &self,
        (held, stored): (&[Arc<IndexedInventory>], &SourceSet),
        sources: &SourceSet,
        regions: &[Region],
        is_whole: bool,
    ) -> Result<(), Disconnect> {
        let range = self.asked.scope.range;
        let own = Some(self.cluster.nodes.own());
        let held: Vec<&IndexedInventory> = held.iter().map(|indexed| &**indexed).collect();
        let cover = Cover::plan_over(&held, stored, sources, range, own);
        self.say(Event::Finished(cover.pruned, Arc::default()))?;
        let mut search = self.asked.narrowed(Vec::new());
        search.shown = regions.to_vec();
        for (node, share) in cover.shares {
            self.read_share(node, &share, &search, is_whole)?;
        }
        Ok(())
    }

    fn read_share(
        &self,
        node: NodeId,
        share: &Share,
        search: &Search,
        is_whole: bool,
    ) -> Result<(), Disconnect> {
        let question = question::encode(share, &BTreeMap::new(), &Request::Rows(search));
        // The next look finds out what became of a node that does not answer.
        let Ok(mut frames) = open(&self.cluster, node, question, false) else {
            return Ok(());
        };
        let sources = Arc::new(share.sources.clone());
        let mut last = None;
        let mut batches = Arc::<BatchSet>::default();
        let (mut held, mut held_bytes) = (Vec::new(), 0);
        loop {
            match frames.next() {
                Ok(Frame::Row(row)) => {
                    held_bytes += row.1.len();
                    let key = row.0;
                    held.push(row);
                    if !is_whole || held_bytes > COPY_BYTES_MAX {
                        last = Some(key);
                        held_bytes = 0;
                        let rows = std::mem::take(&mut held);
                        self.say(Event::Read(sources.clone(), batches.clone(), rows))?;
                    }
                }
                Ok(Frame::Receipt(receipt)) => {
                    if !held.is_empty() {
                        self.say(Event::Read(sources, batches.clone(), held))?;
                    }
                    self.say(Event::Missed(receipt.trailer.missing))?;
                    return self.say(Event::Finished(receipt.sources, batches));
                }
                Ok(Frame::Passed(passed)) => batches = Arc::new(passed.batches),
                Ok(_) | Err(_) => {
                    return match last {
                        Some(last) => self.say(Event::Cut(share.sources.clone(), last, batches)),
                        None => Ok(()),
                    };
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_asked_for_matches_alone() {
        let range = TimeRange {
            from: Timestamp(5),
            to: Timestamp(9),
        };
        let mut search = Search::new(super::super::Scope::all(range));
        search.limit = Some(3);
        search.rows_before = 2;
        search.is_followed = true;
        search.direction = Direction::Backward;
        let asked = asked(&search);
        assert_eq!(asked.scope.range.from, Timestamp(5));
        assert_eq!(asked.scope.range.to, Timestamp::MAX);
        assert!(!asked.is_followed && asked.limit.is_none() && !asked.has_context());
        assert_eq!(asked.direction, Direction::Forward);
    }
}
