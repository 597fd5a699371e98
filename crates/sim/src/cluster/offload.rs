//! What a process does with the bucket, one request after the other, as the product's thread does: reads
//! the heads, opens what is only there, uploads what is here and has it listed, and removes what
//! nobody needs.
//!
//! Between any two requests the process may end, stand still, or have its request lost or come late.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use logpond_cluster::Day;
use logpond_cluster::chain::{Change, Commit, Link, NoWriteReason, Outcome, Step};
use logpond_record::Id;
use logpond_segment::sources::SourceSet;

use super::bucket::{Ask, BucketReply, Object};
use super::message::{BUCKET, Place, ReplyTarget, Request};
use super::world::{Mutation, World};

/// How often is looked for what others have written.
const REFRESH_MS: u64 = 1_000;

/// How often what nobody needs is looked for.
const SWEEP_MS: u64 = 1_000;

/// How long what nobody lists stays; longer than a process stands still, by far, as in the product.
const GRACE_MS: u64 = 40_000;

/// How long links stay that are below the head.
const LINK_GRACE_MS: u64 = 100;

/// What could not be committed for so long is uploaded again.
const COMMIT_MS_MAX: u64 = 8_000;

/// A copy waits for so long for the one who made it to upload it.
const COPY_MS: u64 = 2_000;

/// What could not be listed, or uploaded, waits for so long.
const PUT_OFF_MS: u64 = 1_000;

/// Listings of links that vanish before they are read.
const LISTINGS_MAX: u32 = 8;

/// What is to be done once a head is known.
#[derive(Clone, Debug)]
enum Purpose {
    Refresh,
    /// Reads all heads, to remove what they do not need of these.
    Sweep(Vec<(Day, Id, u64)>),
    Commit(Box<PendingCommit>),
}

/// A change on its way.
#[derive(Clone, Debug)]
struct PendingCommit {
    day: Day,
    commit: Commit,
    /// The segment that is to be listed, if it is that.
    segment: Option<Id>,
}

/// The purpose of the outstanding request.
#[derive(Debug, Default)]
enum RequestPurpose {
    #[default]
    Nothing,
    Listing(Purpose, u32),
    Reading {
        left: Vec<(Day, u64)>,
        purpose: Purpose,
        listings: u32,
    },
    Creating(Box<PendingCommit>, Arc<Link>),
    Opening(Vec<Id>),
    Putting(Id, Arc<Object>),
    SweepingSegments,
    SweepingLinks(Vec<(Day, Id, u64)>),
    Removing {
        left: VecDeque<Ask>,
        forget: Vec<(Day, Vec<Id>)>,
    },
}

/// What is next.
#[derive(Clone, Debug)]
enum Job {
    Refresh,
    Open,
    Expire,
    Upload,
    Sweep,
    Drop(Day, Vec<Id>),
    Forget(Day, Vec<Id>),
}

/// What a process knows of the bucket.
#[derive(Debug, Default)]
pub(super) struct Offload {
    heads: BTreeMap<Day, Arc<Link>>,
    /// What was opened of what the heads list.
    pub(super) opened: BTreeMap<Id, Arc<Object>>,
    /// When the last reading of all heads began that has ended.
    pub(super) read_ms: Option<u64>,
    reading_ms: u64,
    /// Everything that was listed before this was opened.
    shown_ms: Option<u64>,
    /// The same of what queries read.
    followed_ms: Option<u64>,
    /// Whether something could not be opened.
    lacks: bool,
    has_failed: bool,
    /// Local segments that are to go once they can be read from the bucket.
    pub(super) leaving: BTreeSet<Id>,
    /// Local segments whose names are used up: what they hold is to get another one.
    pub(super) renewing: BTreeSet<Id>,
    /// Segments that have outlived their retention.
    pub(super) expired: BTreeSet<Id>,
    /// Copies of what others have made, and since when they wait for them.
    pub(super) copies: BTreeMap<Id, u64>,
    /// What queries read from the bucket.
    pub(super) remote: BTreeMap<Id, Arc<Object>>,
    /// Whether queries are told that there may be more.
    pub(super) is_unread: bool,
    doing: RequestPurpose,
    jobs: VecDeque<Job>,
    uploaded: BTreeMap<Id, u64>,
    held: BTreeSet<Id>,
    put_off: BTreeMap<Id, u64>,
    refreshed_ms: Option<u64>,
    swept_ms: u64,
}

impl Offload {
    /// Of which nothing is known yet.
    pub(super) fn new(now_ms: u64) -> Offload {
        Offload {
            swept_ms: now_ms,
            is_unread: true,
            ..Offload::default()
        }
    }

    /// The sources that the heads list, as they were read last.
    pub(super) fn listed(&self) -> SourceSet {
        let sets: Vec<SourceSet> = self.heads.values().map(|head| head.sources()).collect();
        SourceSet::union_of(&sets)
    }

    /// The segments that they list.
    pub(super) fn ids(&self) -> BTreeSet<Id> {
        let segments = self.heads.values().flat_map(|head| &head.segments);
        segments.map(|segment| segment.id).collect()
    }

    /// Notes that queries read what was opened.
    pub(super) fn followed(&mut self) {
        self.followed_ms = self.shown_ms;
        self.is_unread = self.lacks || self.shown_ms.is_none();
    }

    /// What queries read has everything that was listed before this, or will have once all of it can be
    /// read.
    pub(super) fn known_until_ms(&self, now_ms: u64) -> u64 {
        let reading_ms = Some(self.reading_ms).filter(|at| *at > 0);
        let known = self.followed_ms.or(self.read_ms).or(reading_ms);
        known.unwrap_or(now_ms)
    }

    /// Whether something uploaded has not been seen to be listed.
    pub(super) fn has_uploaded(&self, id: Id) -> bool {
        self.uploaded.contains_key(&id)
    }

    fn learn(&mut self, link: Arc<Link>) {
        let known = self.heads.get(&link.day).map_or(0, |known| known.number);
        if link.number > known {
            self.heads.insert(link.day, link);
        }
    }

    fn head(&self, day: Day) -> Link {
        let head = self.heads.get(&day);
        head.map_or_else(|| Link::empty(day), |link| Link::clone(link))
    }
}

impl World {
    /// What the process at a place knows of the bucket; there is one.
    pub(super) fn offload(&mut self, place: Place) -> &mut Offload {
        let offload = self.process(place).offload.as_mut();
        offload.expect("only stores with a bucket ask it for anything")
    }

    /// Begins another round, unless one is under way.
    pub(super) fn begin_offload(&mut self, place: Place) {
        let now_ms = self.now_ms;
        let offload = self.offload(place);
        if !matches!(offload.doing, RequestPurpose::Nothing) {
            return;
        }
        if offload
            .refreshed_ms
            .is_none_or(|at| at + REFRESH_MS <= now_ms)
        {
            offload.jobs.push_back(Job::Refresh);
        }
        offload.jobs.extend([Job::Open, Job::Expire, Job::Upload]);
        if offload.swept_ms + SWEEP_MS <= now_ms {
            offload.jobs.push_back(Job::Sweep);
        }
        self.next_job(place);
    }

    fn next_job(&mut self, place: Place) {
        let now_ms = self.now_ms;
        while let Some(job) = self.offload(place).jobs.pop_front() {
            match job {
                Job::Refresh => {
                    self.offload(place).reading_ms = now_ms;
                    self.list_links(place, Purpose::Refresh, 0);
                }
                Job::Open => self.open_listed(place),
                Job::Expire => self.expire_listed(place),
                Job::Upload => self.upload(place),
                Job::Sweep => {
                    self.offload(place).swept_ms = now_ms;
                    self.ask_bucket(place, Ask::Segments, RequestPurpose::SweepingSegments);
                }
                Job::Drop(day, ids) => self.commit(place, day, Change::Drop(ids), None),
                Job::Forget(day, ids) => self.commit(place, day, Change::Forget(ids), None),
            }
            if !matches!(self.offload(place).doing, RequestPurpose::Nothing) {
                return;
            }
        }
    }

    fn ask_bucket(&mut self, place: Place, ask: Ask, doing: RequestPurpose) {
        self.offload(place).doing = doing;
        self.request(place, BUCKET, Request::Bucket(ask), ReplyTarget::Bucket);
    }

    /// The store has replied, or has not.
    pub(super) fn bucket_heard(&mut self, place: Place, got: Option<BucketReply>) {
        let doing = std::mem::take(&mut self.offload(place).doing);
        match (doing, got) {
            (RequestPurpose::Listing(purpose, listings), Some(BucketReply::Links(names))) => {
                self.listed_links(place, &names, purpose, listings);
            }
            (
                RequestPurpose::Reading {
                    left,
                    purpose,
                    listings,
                },
                Some(BucketReply::Link(link)),
            ) => match link {
                Some(link) => {
                    self.offload(place).learn(link);
                    self.read_links(place, left, purpose, listings);
                }
                // There is a later one.
                None if listings < LISTINGS_MAX => self.list_links(place, purpose, listings),
                None => self.give_round_up(place),
            },
            // Whether it counts is what the head says, also where no reply has come.
            (RequestPurpose::Creating(committing, link), got) => {
                self.created(place, committing, link, got)
            }
            (RequestPurpose::Opening(left), got) => self.opened(place, left, got),
            (RequestPurpose::Putting(id, object), Some(BucketReply::Done)) => {
                let now_ms = self.now_ms;
                self.offload(place).uploaded.insert(id, now_ms);
                self.show_listed(place);
                self.commit_segment(place, id, &object);
            }
            (RequestPurpose::Putting(id, _), _) => {
                let now_ms = self.now_ms;
                self.offload(place).put_off.insert(id, now_ms);
                self.give_round_up(place);
            }
            (RequestPurpose::SweepingSegments, Some(BucketReply::Segments(segments))) => {
                self.list_links(place, Purpose::Sweep(segments), 0);
            }
            (RequestPurpose::SweepingLinks(segments), Some(BucketReply::Links(links))) => {
                self.sweep(place, &segments, &links);
            }
            (RequestPurpose::Removing { left, forget }, Some(_)) => {
                self.remove_next(place, left, forget)
            }
            _ => self.give_round_up(place),
        }
    }

    /// The store does not answer: everything else is for the next round.
    fn give_round_up(&mut self, place: Place) {
        self.report.unreachable += 1;
        let offload = self.offload(place);
        offload.doing = RequestPurpose::Nothing;
        offload.jobs.clear();
        // Nobody could upload them.
        offload
            .copies
            .values_mut()
            .for_each(|since| *since = u64::MAX);
    }

    fn list_links(&mut self, place: Place, purpose: Purpose, listings: u32) {
        let day = match &purpose {
            Purpose::Commit(committing) => Some(committing.day),
            Purpose::Refresh | Purpose::Sweep(_) => None,
        };
        let doing = RequestPurpose::Listing(purpose, listings + 1);
        self.ask_bucket(place, Ask::Links(day), doing);
    }

    fn listed_links(
        &mut self,
        place: Place,
        names: &[(Day, u64, u64)],
        purpose: Purpose,
        listings: u32,
    ) {
        let mut last: BTreeMap<Day, u64> = BTreeMap::new();
        for (day, number, _) in names {
            let head = last.entry(*day).or_default();
            *head = (*head).max(*number);
        }
        let offload = self.offload(place);
        last.retain(|day, number| offload.head(*day).number < *number);
        self.read_links(place, last.into_iter().collect(), purpose, listings);
    }

    fn read_links(
        &mut self,
        place: Place,
        mut left: Vec<(Day, u64)>,
        purpose: Purpose,
        listings: u32,
    ) {
        if let Some((day, number)) = left.pop() {
            let doing = RequestPurpose::Reading {
                left,
                purpose,
                listings,
            };
            return self.ask_bucket(place, Ask::Link(day, number), doing);
        }
        let now_ms = self.now_ms;
        match purpose {
            Purpose::Refresh => {
                let offload = self.offload(place);
                offload.refreshed_ms = Some(now_ms);
                self.show_listed(place);
                self.next_job(place);
            }
            Purpose::Sweep(segments) => {
                self.show_listed(place);
                self.ask_bucket(
                    place,
                    Ask::Links(None),
                    RequestPurpose::SweepingLinks(segments),
                );
            }
            Purpose::Commit(committing) => self.decide(place, committing),
        }
    }

    fn commit(&mut self, place: Place, day: Day, change: Change, segment: Option<Id>) {
        let committing = PendingCommit {
            day,
            commit: Commit::new(change, self.clock(place)),
            segment,
        };
        self.list_links(place, Purpose::Commit(Box::new(committing)), 0);
    }

    /// The head is known.
    fn decide(&mut self, place: Place, mut committing: Box<PendingCommit>) {
        let nonce = self.wide();
        let head = self.offload(place).head(committing.day);
        match committing.commit.on_head(&head, nonce) {
            Step::Create(link) => self.create_link(place, committing, link),
            Step::End(Outcome::Settled(NoWriteReason::Overlaps(_), _))
                if self.mutation == Some(Mutation::SharedListing) =>
            {
                let Some(object) = committing
                    .segment
                    .and_then(|id| self.local_object(place, id))
                else {
                    return self.next_job(place);
                };
                let mut link = head;
                (link.number, link.nonce) = (link.number + 1, nonce);
                let id = committing.segment.unwrap_or(Id(0));
                link.segments.push(object.listed(id));
                link.segments.sort_by_key(|segment| segment.id);
                self.create_link(place, committing, link);
            }
            Step::End(outcome) => self.committed(place, committing.segment, &outcome),
        }
    }

    fn create_link(&mut self, place: Place, committing: Box<PendingCommit>, link: Link) {
        let link = Arc::new(link);
        let doing = RequestPurpose::Creating(committing, Arc::clone(&link));
        self.ask_bucket(place, Ask::Create(link), doing);
    }

    fn created(
        &mut self,
        place: Place,
        committing: Box<PendingCommit>,
        link: Arc<Link>,
        got: Option<BucketReply>,
    ) {
        if matches!(got, Some(BucketReply::Created(false))) {
            self.report.lost_races += 1;
        }
        let is_written = matches!(got, Some(BucketReply::Created(true)));
        if self.mutation == Some(Mutation::WrittenIsListed) && is_written {
            let offload = self.offload(place);
            offload.heads.insert(link.day, Arc::clone(&link));
            let outcome = Outcome::Written(Link::clone(&link));
            return self.committed(place, committing.segment, &outcome);
        }
        self.list_links(place, Purpose::Commit(committing), 0);
    }

    /// A change has come to an end.
    fn committed(&mut self, place: Place, segment: Option<Id>, outcome: &Outcome) {
        let now_ms = self.now_ms;
        if let Some(id) = segment {
            let offload = self.offload(place);
            match outcome {
                Outcome::Written(_) | Outcome::Settled(NoWriteReason::Done, _) => {
                    offload.uploaded.remove(&id);
                }
                Outcome::Settled(NoWriteReason::Held, _) => {
                    offload.held.insert(id);
                    self.report.held += 1;
                }
                // Once the others are opened, this node merges them with this one.
                Outcome::Settled(NoWriteReason::Overlaps(_), _) => {
                    offload.put_off.insert(id, now_ms);
                    self.report.overlaps += 1;
                }
                // Its name is used up: what it holds gets another one.
                Outcome::Settled(NoWriteReason::Dropped, _) => {
                    offload.renewing.insert(id);
                    offload.uploaded.remove(&id);
                    offload.put_off.insert(id, now_ms);
                    self.report.renewals += 1;
                }
                Outcome::Contended | Outcome::Settled(NoWriteReason::Full, _) => {
                    offload.put_off.insert(id, now_ms);
                }
            }
            offload_jobs(self.offload(place));
        }
        self.show_listed(place);
        self.next_job(place);
    }

    /// Tells who asks what the heads list.
    fn show_listed(&mut self, place: Place) {
        let counts_uploads = self.mutation == Some(Mutation::UploadedIsListed);
        let reading_ms = self.offload(place).reading_ms;
        let offload = self.offload(place);
        let mut listed = offload.listed();
        if offload.refreshed_ms.is_some() {
            offload.read_ms = Some(reading_ms);
        }
        if counts_uploads {
            let uploaded: Vec<Id> = offload.uploaded.keys().copied().collect();
            for id in uploaded {
                let object = self.local_object(place, id);
                listed.union_with(&object.map(|o| o.sources()).unwrap_or_default());
            }
        }
        let process = self.process(place);
        process.repair.set_listed(listed.clone());
        process.holdings.set_listed(Some(listed));
    }

    /// A segment of the local disk, as it is uploaded.
    pub(super) fn local_object(&self, place: Place, id: Id) -> Option<Object> {
        let segment = self.nodes[place].disk.readable(id)?;
        Some(Object {
            contents: segment.contents.clone(),
            received: segment.received,
        })
    }

    /// Opens what is new and not here for good.
    fn open_listed(&mut self, place: Place) {
        let here = self.staying(place);
        let offload = self.offload(place);
        let segments = offload.heads.values().flat_map(|head| &head.segments);
        let unread = segments.filter(|segment| {
            !offload.opened.contains_key(&segment.id) && !here.contains_all(&segment.sources)
        });
        let left: Vec<Id> = unread.map(|segment| segment.id).collect();
        offload.has_failed = false;
        self.open_next(place, left);
    }

    fn open_next(&mut self, place: Place, left: Vec<Id>) {
        if let Some(id) = left.last() {
            let ask = Ask::Segment(*id);
            return self.ask_bucket(place, ask, RequestPurpose::Opening(left));
        }
        let offload = self.offload(place);
        let listed = offload.ids();
        offload.lacks = offload.has_failed;
        if !offload.lacks {
            // What replaces them may be among what could not be opened.
            offload.opened.retain(|id, _| listed.contains(id));
            offload.shown_ms = offload.read_ms;
        }
        offload.expired.retain(|id| listed.contains(id));
        self.next_job(place);
    }

    fn opened(&mut self, place: Place, mut left: Vec<Id>, got: Option<BucketReply>) {
        let offload = self.offload(place);
        match (left.pop(), got) {
            (Some(id), Some(BucketReply::Segment(Some(object)))) => {
                offload.opened.insert(id, object);
            }
            _ => offload.has_failed = true,
        }
        self.open_next(place, left);
    }

    /// Takes off what has outlived its retention.
    fn expire_listed(&mut self, place: Place) {
        let offload = self.offload(place);
        for (day, head) in &offload.heads {
            let listed = head.segments.iter().map(|segment| segment.id);
            let ids: Vec<Id> = listed.filter(|id| offload.expired.contains(id)).collect();
            if !ids.is_empty() {
                let day = *day;
                self.report.expiries += 1;
                return self.commit(place, day, Change::Expire(ids), None);
            }
        }
    }

    /// Uploads the next segment that is not in the bucket.
    fn upload(&mut self, place: Place) {
        let now_ms = self.now_ms;
        let live: Vec<Id> = self.process(place).holdings.live().map(|l| l.0).collect();
        for id in &live {
            self.notice_damage(place, *id);
        }
        let live: BTreeSet<Id> = self.process(place).holdings.live().map(|l| l.0).collect();
        let offload = self.offload(place);
        let listed = offload.ids();
        offload.copies.retain(|id, _| live.contains(id));
        offload.held.retain(|id| live.contains(id));
        offload.uploaded.retain(|id, _| live.contains(id));
        offload
            .put_off
            .retain(|id, at| live.contains(id) && *at + PUT_OFF_MS > now_ms);
        let is_waiting = |id: &&Id| {
            !listed.contains(id) && !offload.held.contains(id) && !offload.put_off.contains_key(id)
        };
        let waiting: Vec<Id> = live.iter().filter(is_waiting).copied().collect();
        let next = waiting
            .into_iter()
            .find(|id| !offload.is_left_to_maker(*id, now_ms));
        let Some(id) = next else {
            return;
        };
        let is_there = |at: &u64| at + COMMIT_MS_MAX > now_ms;
        let is_uploaded = offload.uploaded.get(&id).is_some_and(is_there);
        match self.local_object(place, id) {
            Some(object) if is_uploaded => self.commit_segment(place, id, &object),
            Some(object) => {
                let object = Arc::new(object);
                let ask = Ask::Put(id, Arc::clone(&object));
                self.ask_bucket(place, ask, RequestPurpose::Putting(id, object));
            }
            None => {}
        }
    }

    fn commit_segment(&mut self, place: Place, id: Id, object: &Object) {
        let change = Change::List(object.listed(id));
        self.commit(place, object.day(), change, Some(id));
    }

    /// Removes what nobody needs.
    fn sweep(&mut self, place: Place, segments: &[(Day, Id, u64)], links: &[(Day, u64, u64)]) {
        let now = self.clock(place);
        let grace_ms = match self.mutation {
            Some(Mutation::HastySweep) => 0,
            _ => GRACE_MS,
        };
        let is_hasty = self.mutation == Some(Mutation::HastySweep);
        let mut drop: BTreeMap<Day, Vec<Id>> = BTreeMap::new();
        let offload = self.offload(place);
        let mut left = VecDeque::new();
        for pair in links.windows(2) {
            let ((day, number, _), (of, _, age_ms)) = (pair[0], pair[1]);
            let is_below = number < offload.head(day).number;
            if day == of && is_below && age_ms >= LINK_GRACE_MS {
                left.push_back(Ask::RemoveLink(day, number));
            }
        }
        for (day, id, age_ms) in segments {
            let head = offload.head(*day);
            let is_known = head.segment(*id).is_some() || head.dropped.iter().any(|d| d.id == *id);
            if !is_known && *age_ms >= grace_ms {
                if is_hasty {
                    left.push_back(Ask::RemoveSegment(*id))
                } else {
                    // They go once it is known that nobody lists them any more.
                    drop.entry(*day).or_default().push(*id)
                }
            }
        }
        let mut forget = Vec::new();
        let grace_ns = GRACE_MS as i64 / 8 * 1_000_000;
        // A sweeper may stand still for as long.
        let forget_ns = grace_ns + GRACE_MS as i64 * 1_000_000;
        for (day, head) in &offload.heads {
            let dropped = head.dropped.iter();
            let due = dropped.filter(|d| d.since.saturating_add(grace_ns) <= now);
            let is_there = |id: &Id| segments.iter().any(|(_, there, _)| there == id);
            let due = due.map(|dropped| dropped.id).filter(is_there);
            left.extend(due.map(Ask::RemoveSegment));
            let old = head.dropped.iter();
            let old = old.filter(|d| d.since.saturating_add(forget_ns) <= now);
            let old: Vec<Id> = old.map(|dropped| dropped.id).collect();
            if !old.is_empty() {
                forget.push((*day, old));
            }
        }
        let drop = drop.into_iter().map(|(day, ids)| Job::Drop(day, ids));
        self.offload(place).jobs.extend(drop);
        self.remove_next(place, left, forget);
    }

    fn remove_next(&mut self, place: Place, mut left: VecDeque<Ask>, forget: Vec<(Day, Vec<Id>)>) {
        if let Some(ask) = left.pop_front() {
            return self.ask_bucket(place, ask, RequestPurpose::Removing { left, forget });
        }
        let forget = forget.into_iter().map(|(day, ids)| Job::Forget(day, ids));
        self.offload(place).jobs.extend(forget);
        self.next_job(place);
    }
}

impl Offload {
    /// Whether another node is to upload a segment. It is taken over from one that does not.
    fn is_left_to_maker(&mut self, id: Id, now_ms: u64) -> bool {
        match self.copies.get_mut(&id) {
            None => false,
            Some(since) if *since == u64::MAX => {
                *since = now_ms;
                true
            }
            Some(since) if *since + COPY_MS > now_ms => true,
            Some(_) => {
                self.copies.remove(&id);
                false
            }
        }
    }
}

/// What follows a segment: what others have listed meanwhile is opened, and the next one goes.
fn offload_jobs(offload: &mut Offload) {
    offload.jobs.push_front(Job::Upload);
    offload.jobs.push_front(Job::Open);
}
