//! The chains of a bucket, as one writer knows them, and its changes on their way there.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use logpond_cluster::Day;
use logpond_cluster::chain::{
    Change, Commit, LINK_BYTES_MAX, LINKS, Link, Outcome, Step, link_name, parse_link_name,
};
use logpond_record::Timestamp;

use crate::objects::{BucketError, FailureKind, Objects};

/// A link may be removed between being listed and being read, because there is a later one. How often
/// that is taken for bad luck.
const LISTINGS_MAX: usize = 8;

/// The heads of all days, as they were read last.
pub type Heads = BTreeMap<Day, Arc<Link>>;

/// The chains of a bucket.
pub struct Chains {
    objects: Arc<dyn Objects>,
    heads: Heads,
    nonce: fn() -> u128,
}

impl Chains {
    /// The chains of a bucket, of which nothing is known yet. `nonce` gives random numbers.
    pub fn new(objects: Arc<dyn Objects>, nonce: fn() -> u128) -> Chains {
        Chains {
            objects,
            heads: Heads::new(),
            nonce,
        }
    }

    /// The heads as they were read last.
    pub fn heads(&self) -> &Heads {
        &self.heads
    }

    /// Reads what is new: one listing, and the heads that are others than before.
    ///
    /// # Errors
    /// When the store fails, or a link is of a format this program does not know; what was known
    /// before stays.
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
            for (day, number) in numbers {
                is_whole &= self.learn(day, number)?;
            }
            if is_whole {
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
            if self.learn(day, number)? {
                return Ok(Arc::clone(&self.heads[&day]));
            }
        }
        Err(vanishing(&prefix))
    }

    /// Reads a day's head, unless it is known; false if it has gone.
    fn learn(&mut self, day: Day, number: u64) -> Result<bool, BucketError> {
        if self
            .heads
            .get(&day)
            .is_some_and(|link| link.number >= number)
        {
            return Ok(true);
        }
        let name = link_name(day, number);
        let Some(body) = self.objects.get(&name, LINK_BYTES_MAX)? else {
            return Ok(false);
        };
        let link = Link::from_json(&body).filter(|link| (link.day, link.number) == (day, number));
        let link = link.ok_or_else(|| BucketError {
            operation: "read",
            name,
            kind: FailureKind::Unsupported,
            source: "it is damaged, or a later version of this program wrote it".into(),
        })?;
        self.heads.insert(day, Arc::new(link));
        Ok(true)
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
