//! The chains of a bucket, as one writer knows them, and its changes on their way there.
//!
//! A head is derived: all that it lists lies in the bucket and says of itself what it holds. So one that is
//! damaged, or has gone, breaks its day only, until it is made anew (see [`crate::reconcile`]).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use logpond_cluster::Day;
use logpond_cluster::chain::{
    Change, Commit, LINK_BYTES_MAX, LINKS, Link, Outcome, SegmentEntry, Step, Verdict, link_name,
    parse_link_name,
};
use logpond_record::{Timestamp, cast};

use crate::objects::{BucketError, FailureKind, Objects};

/// A link may be removed between being listed and being read, because there is a later one. How often
/// that is taken for bad luck.
const LISTINGS_MAX: usize = 8;

/// Links below a damaged head that are tried: there are as many as were written within ten minutes, and one
/// that is whole is enough.
const OLDER_LINKS_MAX: usize = 8;

/// The heads of all days, as they were read last.
pub type Heads = BTreeMap<Day, Arc<Link>>;

/// The fault of a day's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadFault {
    /// It is there and makes no sense.
    Damaged(u64),
    /// It was there, and is not any more; 0 if nobody knows its number.
    Gone(u64),
}

impl HeadFault {
    /// Its number.
    fn number(self) -> u64 {
        match self {
            HeadFault::Damaged(number) | HeadFault::Gone(number) => number,
        }
    }
}

impl fmt::Display for HeadFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HeadFault::Damaged(_) => "is damaged",
            HeadFault::Gone(_) => "has gone",
        })
    }
}

/// The result of reading a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HeadState {
    Known,
    /// It has gone since it was listed.
    Gone,
    /// It makes no sense.
    Damaged,
}

/// The chains of a bucket.
pub struct Chains {
    objects: Arc<dyn Objects>,
    heads: Heads,
    /// Days whose heads are damaged or gone. The links that were read before are among the heads.
    broken: BTreeMap<Day, HeadFault>,
    nonce: fn() -> u128,
}

impl Chains {
    /// The chains of a bucket, of which nothing is known yet. `nonce` gives random numbers.
    pub fn new(objects: Arc<dyn Objects>, nonce: fn() -> u128) -> Chains {
        Chains {
            objects,
            heads: Heads::new(),
            broken: BTreeMap::new(),
            nonce,
        }
    }

    /// The heads as they were read last.
    pub fn heads(&self) -> &Heads {
        &self.heads
    }

    /// The days whose heads cannot be read.
    pub fn broken(&self) -> &BTreeMap<Day, HeadFault> {
        &self.broken
    }

    /// Reads what is new: one listing, and the heads that are others than before. A head that is damaged or
    /// has gone breaks its day.
    ///
    /// # Errors
    /// When the store fails, or a link is of a later format; what was known before stays.
    pub fn refresh(&mut self) -> Result<(), BucketError> {
        for _ in 0..LISTINGS_MAX {
            let mut numbers: BTreeMap<Day, u64> = BTreeMap::new();
            for entry in self.objects.list(LINKS, None)? {
                if let Some((day, number)) = parse_link_name(&entry.name) {
                    let head = numbers.entry(day).or_default();
                    *head = number.max(*head);
                }
            }
            let mut is_whole = true;
            for (day, number) in &numbers {
                match self.learn(*day, *number)? {
                    HeadState::Known => drop(self.broken.remove(day)),
                    HeadState::Damaged => {
                        self.broken.insert(*day, HeadFault::Damaged(*number));
                    }
                    HeadState::Gone => is_whole = false,
                }
            }
            if is_whole {
                let is_gone = |(day, head): &(&Day, &Arc<Link>)| {
                    head.number > numbers.get(day).copied().unwrap_or(0)
                };
                let gone = self.heads.iter().filter(is_gone);
                let gone = gone.map(|(day, head)| (*day, HeadFault::Gone(head.number)));
                self.broken.extend(gone);
                return Ok(());
            }
        }
        Err(vanishing(LINKS))
    }

    /// Makes a change of a day's chain, as often as other writers are faster.
    ///
    /// # Errors
    /// When the store fails: the change may have been made or not, and may be asked for again.
    pub fn commit(
        &mut self,
        day: Day,
        change: Change,
        now: Timestamp,
    ) -> Result<Outcome, BucketError> {
        let mut commit = Commit::new(change, now);
        loop {
            let head = self.read_head(day)?;
            match commit.on_head(&head, (self.nonce)()) {
                Step::End(outcome) => return Ok(outcome),
                Step::Create(link) => {
                    let body = Bytes::from(link.to_json());
                    let name = link_name(day, link.number);
                    match self.objects.create(&name, body) {
                        // Whether it counts is what the head says.
                        Ok(_) => {}
                        Err(error) if error.kind == FailureKind::Unavailable => {}
                        Err(error) => return Err(error),
                    }
                }
            }
        }
    }

    /// The head of a day's chain as it is now.
    fn read_head(&mut self, day: Day) -> Result<Arc<Link>, BucketError> {
        let prefix = format!("{LINKS}{day}/");
        for _ in 0..LISTINGS_MAX {
            let known = self.heads.get(&day).map_or(0, |link| link.number);
            let behind = (known > 0).then(|| link_name(day, known));
            let found = self.objects.list(&prefix, behind.as_deref())?;
            let numbers = found
                .iter()
                .filter_map(|entry| parse_link_name(&entry.name));
            let Some((_, number)) = numbers.max() else {
                let empty = || Arc::new(Link::empty(day));
                return Ok(self.heads.get(&day).cloned().unwrap_or_else(empty));
            };
            match self.learn(day, number)? {
                HeadState::Known => return Ok(Arc::clone(&self.heads[&day])),
                HeadState::Gone => {}
                HeadState::Damaged => {
                    self.broken.insert(day, HeadFault::Damaged(number));
                    return Err(BucketError {
                        operation: "read",
                        name: link_name(day, number),
                        kind: FailureKind::Unavailable,
                        source: "it is damaged, and is made anew soon".into(),
                    });
                }
            }
        }
        Err(vanishing(&prefix))
    }

    /// Notes days of which segments lie there and no link: all of them may have been lost.
    pub(crate) fn note_unlisted(&mut self, days: impl Iterator<Item = Day>) {
        for day in days.filter(|day| !self.heads.contains_key(day)) {
            self.broken.entry(day).or_insert(HeadFault::Gone(0));
        }
    }

    /// Makes the head of a broken day anew: what was known of it before, and these segments, which lie in the
    /// bucket. Gives whether it is whole again; if not, another writer was faster, and it is to be read again.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) fn rebuild(
        &mut self,
        day: Day,
        mut segments: Vec<SegmentEntry>,
        now: Timestamp,
    ) -> Result<bool, BucketError> {
        let Some(broken) = self.broken.get(&day).copied() else {
            return Ok(true);
        };
        let (mut link, greatest) = self.base(day, broken, &segments)?;
        // The widest first, so that a merge wins over what it was made of.
        segments.sort_by_key(|s| std::cmp::Reverse((s.sources.len(), s.cold, s.id)));
        for segment in segments {
            if let Verdict::Write(next) = link.decide(&Change::List(segment), now) {
                link = next;
            }
        }
        if broken == HeadFault::Gone(0) && link.segments.is_empty() {
            // There is nothing to list, nor was there anything that is known of.
            self.broken.remove(&day);
            return Ok(true);
        }
        // Whoever remembers the number of a link that nobody has any more takes this one for a later one.
        let lost = cast::unsigned(now.unix_ms().max(0) / 1000);
        let number = match broken {
            HeadFault::Gone(0) => greatest.max(lost) + 1,
            _ => greatest + 1,
        };
        (link.number, link.nonce) = (number, (self.nonce)());
        let name = link_name(day, link.number);
        self.objects.create(&name, Bytes::from(link.to_json()))?;
        let is_whole = self.learn(day, link.number)? == HeadState::Known;
        if is_whole {
            self.broken.remove(&day);
        }
        Ok(is_whole)
    }

    /// The known state of a broken day: its head as it was read before, or the newest older link that can be
    /// read, of which only what is among these segments is believed to count still. Gives also the greatest
    /// number that is taken.
    fn base(
        &self,
        day: Day,
        broken: HeadFault,
        segments: &[SegmentEntry],
    ) -> Result<(Link, u64), BucketError> {
        let entries = self.objects.list(&format!("{LINKS}{day}/"), None)?;
        let numbers = entries.iter().filter_map(|e| parse_link_name(&e.name));
        let mut numbers: Vec<u64> = numbers.map(|(_, number)| number).collect();
        numbers.sort_unstable();
        let known = self.heads.get(&day);
        let greatest = numbers.last().copied().unwrap_or(0);
        let greatest = greatest
            .max(broken.number())
            .max(known.map_or(0, |k| k.number));
        if let (HeadFault::Gone(number), Some(known)) = (broken, known)
            && known.number == number
        {
            return Ok((Link::clone(known), greatest));
        }
        let is_there = |segment: &SegmentEntry| segments.iter().any(|s| s.id == segment.id);
        let mut base = known.map(|known| Link::clone(known));
        for number in numbers.into_iter().rev().take(OLDER_LINKS_MAX) {
            if base.as_ref().is_some_and(|base| base.number >= number) {
                break;
            }
            let body = self.objects.get(&link_name(day, number), LINK_BYTES_MAX)?;
            let link = body.and_then(|body| Link::from_json(&body));
            if let Some(link) = link.filter(|link| (link.day, link.number) == (day, number)) {
                base = Some(link);
                break;
            }
        }
        let mut base = base.unwrap_or_else(|| Link::empty(day));
        base.segments.retain(is_there);
        Ok((base, greatest))
    }

    /// Reads a day's head, unless it is known.
    fn learn(&mut self, day: Day, number: u64) -> Result<HeadState, BucketError> {
        if self
            .heads
            .get(&day)
            .is_some_and(|link| link.number >= number)
        {
            return Ok(HeadState::Known);
        }
        let name = link_name(day, number);
        let Some(body) = self.objects.get(&name, LINK_BYTES_MAX)? else {
            return Ok(HeadState::Gone);
        };
        if Link::is_later(&body) {
            return Err(BucketError {
                operation: "read",
                name,
                kind: FailureKind::Unsupported,
                source: "a later version of this program wrote it".into(),
            });
        }
        let link = Link::from_json(&body).filter(|link| (link.day, link.number) == (day, number));
        let Some(link) = link else {
            return Ok(HeadState::Damaged);
        };
        self.heads.insert(day, Arc::new(link));
        Ok(HeadState::Known)
    }
}

fn vanishing(name: &str) -> BucketError {
    BucketError {
        operation: "read",
        name: name.to_owned(),
        kind: FailureKind::Unavailable,
        source: "objects vanish faster than they can be read".into(),
    }
}
