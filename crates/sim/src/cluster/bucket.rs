//! The object store behind the nodes: what it holds, what it is asked for, and what must be true of it
//! (CLUSTER R14).
//!
//! Invariant: it does at once what it is asked for and loses nothing. What the network does to requests
//! and replies makes it unreachable, slow and late.

use std::collections::BTreeMap;
use std::sync::Arc;

use logpond_cluster::Day;
use logpond_cluster::chain::{Link, SegmentEntry};
use logpond_record::{Id, Incarnation, SourceId, Timestamp};
use logpond_segment::sources::SourceSet;

use super::disk::Contents;
use super::world::World;

/// A segment as the store holds it.
#[derive(Clone, Debug)]
pub(super) struct Object {
    /// Its rows.
    pub(super) contents: Contents,
    /// When they were received.
    pub(super) received: Timestamp,
}

impl Object {
    /// Its sources.
    pub(super) fn sources(&self) -> SourceSet {
        self.contents.keys().copied().collect()
    }

    /// The day of its chain.
    pub(super) fn day(&self) -> Day {
        Day::of(self.received)
    }

    /// What a link says of it.
    pub(super) fn listed(&self, id: Id) -> SegmentEntry {
        let frames = self.contents.values().flat_map(|rows| rows.iter());
        SegmentEntry {
            id,
            bytes: 1,
            index_from: 0,
            rows: frames.map(|frame| frame.rows).sum(),
            line_bytes: 1,
            time: (Timestamp(0), Timestamp(0)),
            received: (self.received, self.received),
            cold: false,
            sources: self.sources(),
        }
    }
}

/// What the store is asked for.
#[derive(Clone, Debug)]
pub(super) enum Ask {
    /// The names of links, of a day or of all.
    Links(Option<Day>),
    Link(Day, u64),
    /// Writes a link if its name is free.
    Create(Arc<Link>),
    Put(Id, Arc<Object>),
    Segment(Id),
    /// The names of segments.
    Segments,
    RemoveLink(Day, u64),
    RemoveSegment(Id),
}

/// The reply of the bucket.
#[derive(Clone, Debug)]
pub(super) enum BucketReply {
    /// Names and ages.
    Links(Vec<(Day, u64, u64)>),
    Link(Option<Arc<Link>>),
    Created(bool),
    Segment(Option<Arc<Object>>),
    /// Names and ages.
    Segments(Vec<(Day, Id, u64)>),
    Done,
}

/// The store.
#[derive(Debug, Default)]
pub(super) struct Bucket {
    /// With the moment when each was written.
    links: BTreeMap<(Day, u64), (Arc<Link>, u64)>,
    objects: BTreeMap<Id, (Arc<Object>, u64)>,
    heads: BTreeMap<Day, Arc<Link>>,
    /// What the heads list.
    listed: SourceSet,
    /// What has expired, as the heads say.
    expired: SourceSet,
    /// When each source was listed first.
    since_ms: BTreeMap<SourceId, u64>,
}

impl Bucket {
    /// The sources that counted until they expired.
    pub(super) fn expired(&self) -> &SourceSet {
        &self.expired
    }

    /// The sources that count.
    pub(super) fn listed(&self) -> &SourceSet {
        &self.listed
    }

    /// The sources of an incarnation that count and were listed before a moment.
    pub(super) fn listed_before(&self, incarnation: Incarnation, at_ms: u64) -> SourceSet {
        let all = self.since_ms.iter();
        let earlier = all.filter(|(source, since_ms)| {
            source.incarnation == incarnation
                && **since_ms < at_ms
                && self.listed.contains(**source)
        });
        earlier.map(|(source, _)| *source).collect()
    }

    /// A segment, whether it counts or not.
    pub(super) fn object(&self, id: Id) -> Option<&Object> {
        self.objects.get(&id).map(|(object, _)| &**object)
    }

    /// The head of a day's chain.
    pub(super) fn head(&self, day: Day) -> Link {
        let head = self.heads.get(&day);
        head.map_or_else(|| Link::empty(day), |link| Link::clone(link))
    }

    /// What counts.
    pub(super) fn objects(&self) -> impl Iterator<Item = &Object> {
        let listed = self.heads.values().flat_map(|link| link.segments.iter());
        listed.filter_map(|listed| self.objects.get(&listed.id).map(|(object, _)| &**object))
    }

    fn links_of(&self, day: Option<Day>, now_ms: u64) -> Vec<(Day, u64, u64)> {
        let all = self.links.iter();
        all.filter(|((of, _), _)| day.is_none_or(|day| day == *of))
            .map(|((day, number), (_, at_ms))| (*day, *number, now_ms - at_ms))
            .collect()
    }

    /// Writes a link if its name is free, and says what is wrong with it if it counts.
    pub(super) fn create(&mut self, link: Arc<Link>, now_ms: u64) -> Result<bool, String> {
        let name = (link.day, link.number);
        if self.links.contains_key(&name) {
            return Ok(false);
        }
        self.links.insert(name, (Arc::clone(&link), now_ms));
        let before = self.head(link.day);
        if link.number > before.number {
            self.judge(&before, &link)?;
            self.heads.insert(link.day, link);
            let heads = || self.heads.values();
            let (mut listed, mut expired) = (SourceSet::new(), SourceSet::new());
            heads().for_each(|head| listed.union_with(&head.sources()));
            heads().for_each(|head| expired.union_with(&head.expired));
            for source in listed.without(&self.listed).iter() {
                self.since_ms.entry(source).or_insert(now_ms);
            }
            (self.listed, self.expired) = (listed, expired);
        }
        Ok(true)
    }

    /// What must be true of a head.
    fn judge(&self, before: &Link, head: &Link) -> Result<(), String> {
        let others = self.heads.values().filter(|other| other.day != head.day);
        let mut seen =
            SourceSet::union_of(others.map(|link| link.sources()).collect::<Vec<_>>().iter());
        for segment in &head.segments {
            if !seen.is_disjoint(&segment.sources) {
                return Err("R14: two segments that are listed share a source".to_owned());
            }
            seen.union_with(&segment.sources);
            let object = self.objects.get(&segment.id);
            if object.is_none_or(|(object, _)| object.sources() != segment.sources) {
                return Err("R14: what is listed is not there".to_owned());
            }
        }
        let known = |link: &Link| {
            let mut known = link.sources();
            known.union_with(&link.expired);
            known
        };
        if known(head).contains_all(&known(before)) && head.expired.contains_all(&before.expired) {
            Ok(())
        } else {
            Err("R14: what was listed is not listed any more".to_owned())
        }
    }

    pub(super) fn put(&mut self, id: Id, object: Arc<Object>, now_ms: u64) {
        self.objects.insert(id, (object, now_ms));
    }

    fn remove_link(&mut self, day: Day, number: u64) -> Result<(), String> {
        self.links.remove(&(day, number));
        if self.head(day).number == number {
            Err("R14: a head is removed".to_owned())
        } else {
            Ok(())
        }
    }

    fn remove_segment(&mut self, id: Id) -> Result<(), String> {
        self.objects.remove(&id);
        let mut heads = self.heads.values();
        if heads.any(|link| link.segment(id).is_some()) {
            Err("R14: what is listed is removed".to_owned())
        } else {
            Ok(())
        }
    }
}

impl World {
    /// Does what the store is asked for.
    pub(super) fn serve_bucket(&mut self, ask: Ask) -> BucketReply {
        let now_ms = self.now_ms;
        let Some(bucket) = &mut self.bucket else {
            return BucketReply::Done;
        };
        let mut done = Ok(());
        let got = match ask {
            Ask::Links(day) => BucketReply::Links(bucket.links_of(day, now_ms)),
            Ask::Link(day, number) => {
                let link = bucket.links.get(&(day, number));
                BucketReply::Link(link.map(|(link, _)| Arc::clone(link)))
            }
            Ask::Create(link) => {
                let created = bucket.create(link, now_ms);
                done = created.as_ref().map(|_| ()).map_err(String::clone);
                self.report.links += u64::from(created == Ok(true));
                BucketReply::Created(created == Ok(true))
            }
            Ask::Put(id, object) => {
                bucket.put(id, object, now_ms);
                self.report.uploads += 1;
                BucketReply::Done
            }
            Ask::Segment(id) => {
                let object = bucket.objects.get(&id);
                BucketReply::Segment(object.map(|(object, _)| Arc::clone(object)))
            }
            Ask::Segments => {
                let all = bucket.objects.iter();
                let all = all.map(|(id, (object, at_ms))| (object.day(), *id, now_ms - at_ms));
                BucketReply::Segments(all.collect())
            }
            Ask::RemoveLink(day, number) => {
                done = bucket.remove_link(day, number);
                self.report.swept_links += 1;
                BucketReply::Done
            }
            Ask::RemoveSegment(id) => {
                done = bucket.remove_segment(id);
                self.report.swept_segments += 1;
                BucketReply::Done
            }
        };
        if let Err(what) = done {
            self.ledger.violate(&what);
        }
        got
    }

    /// The sources that the bucket lists. None of this cluster's own expire in the time of a run.
    pub(super) fn listed_in_bucket(&self) -> SourceSet {
        let bucket = self.bucket.as_ref();
        bucket
            .map(|bucket| bucket.listed().clone())
            .unwrap_or_default()
    }
}
