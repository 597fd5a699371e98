//! Closed journal files and the stores that are to make segments of them: the ingester's side.
//!
//! Nothing here is needed for safety. A claim says who is at work on what, so that no two stores
//! do the same; when it is wrong, they do, and readers count each source once all the same. A
//! file goes only by an attempt to give it up (CLUSTER R6), which is made for everything from time
//! to time, whatever stores have reported or forgotten to.
//!
//! Invariants: every closed source that has not been dropped is offered, claimed, reported or safe; a
//! claim ends by its lease at the latest, a report by the next attempt; then the source is offered
//! again. Times are monotonic milliseconds of the ingester.

use std::collections::BTreeMap;

use logpond_record::{SourceId, cast};
use logpond_segment::sources::SourceSet;

use crate::Day;
use crate::NodeId;
use crate::give_up::{CONTENT_BYTES_MIN, CONTENTS_MAX, Content};
use crate::placement::Key;
use crate::wire::{DecodeError, Decoder, Encoder};

/// Version of the encoding.
const VERSION: u64 = 1;

/// When what is offered to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// A claim of which nothing is heard ends after this.
    pub lease_ms: u64,
    /// A claim is handed out when there is as much as this, and is never larger, single files
    /// aside: larger ones make larger segments, but keep more in flight.
    pub claim_bytes: u64,
    /// So many rows are as much: each takes memory beside its bytes.
    pub claim_rows: u64,
    /// Or when something has waited for this long: it bounds how long data has one copy only.
    pub gather_ms: u64,
    /// The same store consumes what is written during this time, so that its segments hold runs.
    pub slot_ms: u64,
    /// Another store may take what has waited for longer than this.
    pub steal_ms: u64,
    /// Everything is tried to be dropped this often without a report.
    pub retry_ms: u64,
    /// The most claims of one store at a time: while one is being written to its partners, the next
    /// one is read.
    pub claims_per_store_max: usize,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            lease_ms: 60_000,
            claim_bytes: 64 << 20,
            claim_rows: 1 << 20,
            gather_ms: 1_000,
            slot_ms: 600_000,
            steal_ms: 30_000,
            retry_ms: 30_000,
            claims_per_store_max: 2,
        }
    }
}

/// After a failed claim its files wait for a second, then twice as long, and so on up to this.
const BACKOFF_MS_MAX: u64 = 30_000;

/// Until files are asked for again that a bucket did not list yet.
const LISTING_MS: u64 = 1_000;

/// Names a claim. Random.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClaimId(pub u128);

/// A closed journal file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfferedFile {
    /// The source that it is, and what is in it.
    pub content: Content,
    /// Length of the file.
    pub bytes: u64,
}

/// Files that one store is to make a segment of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Its name.
    pub id: ClaimId,
    /// The files in order.
    pub files: Vec<OfferedFile>,
    /// How long it is the store's alone if nothing more is heard of it.
    pub lease_ms: u64,
}

impl Claim {
    /// The sources of its files.
    pub fn sources(&self) -> SourceSet {
        self.files.iter().map(|file| file.content.source).collect()
    }

    /// The claim as a message.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Encoder::new(VERSION);
        out.wide(self.id.0);
        out.number(self.lease_ms);
        out.count(self.files.len());
        for file in &self.files {
            file.content.encode(&mut out);
            out.number(file.bytes);
        }
        out.finish()
    }

    /// Reads what [`Claim::to_bytes`] wrote.
    ///
    /// # Errors
    /// See [`DecodeError`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Claim, DecodeError> {
        let mut from = Decoder::new(bytes, VERSION)?;
        let mut claim = Claim {
            id: ClaimId(from.wide("the claim")?),
            lease_ms: from.number("the lease")?,
            files: Vec::new(),
        };
        for _ in 0..from.count(CONTENT_BYTES_MIN + 1, "the claimed files")? {
            claim.files.push(OfferedFile {
                content: Content::decode(&mut from)?,
                bytes: from.number("a file's length")?,
            });
        }
        from.finish()?;
        Ok(claim)
    }
}

/// The answer that no file waits for this store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoWork {
    /// When to ask again even if no file is closed before; never if there is no file.
    pub until_ms: Option<u64>,
}

/// Files that may be given to a store, and how much of them.
struct ReadyFiles {
    free: Vec<SourceId>,
    bytes_max: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Offered {
        from_ms: u64,
    },
    Claimed {
        claim: ClaimId,
    },
    Reported {
        /// It is not asked for before this.
        from_ms: u64,
    },
    /// No store needs to take it, but the file stays for now.
    Safe,
}

#[derive(Clone, Debug)]
struct Offer {
    file: OfferedFile,
    day: Day,
    closed_ms: u64,
    state: State,
    failures: u32,
    tried_ms: u64,
}

/// A file that a store has claimed.
#[derive(Clone, Debug)]
struct Grant {
    store: NodeId,
    until_ms: u64,
}

/// The closed journal files of an ingester.
#[derive(Clone, Debug)]
pub struct Offers {
    node: NodeId,
    settings: Settings,
    offers: BTreeMap<SourceId, Offer>,
    claims: BTreeMap<ClaimId, Grant>,
}

impl Offers {
    /// An ingester without closed files.
    pub fn new(node: NodeId, settings: Settings) -> Offers {
        Offers {
            node,
            settings,
            offers: BTreeMap::new(),
            claims: BTreeMap::new(),
        }
    }

    /// Adds a closed file: just closed, or found at the start. `day` is that of the first record in it
    /// that came in: files of two days are never claimed together, see [`crate::chain`].
    pub fn add(&mut self, file: OfferedFile, day: Day, now_ms: u64) {
        let offer = Offer {
            file,
            day,
            closed_ms: now_ms,
            state: State::Offered { from_ms: now_ms },
            failures: 0,
            tried_ms: now_ms,
        };
        self.offers.entry(file.content.source).or_insert(offer);
    }

    /// Gives files to a store that asks for some, of the stores that are live. `id` is fresh.
    ///
    /// # Errors
    /// With how long to wait, when there is nothing for it.
    pub fn claim(
        &mut self,
        store: NodeId,
        live: &[NodeId],
        id: ClaimId,
        now_ms: u64,
    ) -> Result<Claim, NoWork> {
        let ReadyFiles { free, bytes_max } = self.ready(store, live, now_ms)?;
        Ok(self.grant(store, &free, bytes_max, id, now_ms))
    }

    /// Whether there are files for a store now.
    ///
    /// # Errors
    /// With how long to wait, when there is nothing for it.
    pub fn is_ready(&mut self, store: NodeId, live: &[NodeId], now_ms: u64) -> Result<(), NoWork> {
        self.ready(store, live, now_ms).map(drop)
    }

    fn ready(&mut self, store: NodeId, live: &[NodeId], now_ms: u64) -> Result<ReadyFiles, NoWork> {
        self.end_leases(now_ms);
        let own = self.claims.values().filter(|c| c.store == store).count();
        let mut free: Vec<SourceId> = Vec::new();
        let mut until_ms = self.claims.values().map(|c| c.until_ms).min();
        let mut wait = |until: u64| until_ms = Some(until_ms.map_or(until, |u| u.min(until)));
        let (mut bytes, mut rows, mut oldest_ms) = (0u64, 0u64, u64::MAX);
        for (source, offer) in &self.offers {
            match offer.state {
                State::Offered { from_ms } if from_ms <= now_ms => {
                    free.push(*source);
                    bytes = bytes.saturating_add(offer.file.bytes);
                    rows = rows.saturating_add(offer.file.content.rows);
                    oldest_ms = oldest_ms.min(offer.closed_ms);
                }
                State::Offered { from_ms } => wait(from_ms),
                State::Claimed { .. } | State::Reported { .. } | State::Safe => {}
            }
        }
        if free.is_empty() || own >= self.settings.claims_per_store_max {
            return Err(NoWork { until_ms });
        }
        let is_owner = self.owner(live, now_ms).is_none_or(|owner| owner == store);
        let is_full = bytes >= self.settings.claim_bytes || rows >= self.settings.claim_rows;
        let ready_ms = if !is_owner {
            oldest_ms.saturating_add(self.settings.steal_ms + 1)
        } else if is_full {
            now_ms
        } else {
            oldest_ms.saturating_add(self.settings.gather_ms)
        };
        if ready_ms > now_ms {
            wait(ready_ms);
            return Err(NoWork { until_ms });
        }
        // Who helps out takes a fair share of what waits, so that the others find some too.
        let share = bytes.div_ceil(live.len().max(1) as u64);
        let bytes_max = if is_owner {
            self.settings.claim_bytes
        } else {
            self.settings.claim_bytes.min(share)
        };
        Ok(ReadyFiles { free, bytes_max })
    }

    /// The store whose turn it is.
    fn owner(&self, live: &[NodeId], now_ms: u64) -> Option<NodeId> {
        let key = Key::Run {
            ingester: self.node,
            slot: now_ms / self.settings.slot_ms.max(1),
        };
        key.rank(live.iter().copied()).first().copied()
    }

    fn grant(
        &mut self,
        store: NodeId,
        free: &[SourceId],
        bytes_max: u64,
        id: ClaimId,
        now_ms: u64,
    ) -> Claim {
        let mut claim = Claim {
            id,
            files: Vec::new(),
            lease_ms: self.settings.lease_ms,
        };
        let (mut bytes, mut rows, mut day) = (0u64, 0u64, None);
        for source in free {
            let Some(offer) = self.offers.get_mut(source) else {
                continue;
            };
            if *day.get_or_insert(offer.day) != offer.day {
                continue;
            }
            bytes = bytes.saturating_add(offer.file.bytes);
            rows = rows.saturating_add(offer.file.content.rows);
            let is_full = bytes > bytes_max
                || rows > self.settings.claim_rows
                || claim.files.len() as u64 == CONTENTS_MAX;
            if is_full && !claim.files.is_empty() {
                break;
            }
            offer.state = State::Claimed { claim: id };
            claim.files.push(offer.file);
        }
        let until_ms = now_ms.saturating_add(self.settings.lease_ms);
        self.claims.insert(id, Grant { store, until_ms });
        claim
    }

    /// Notes a sign of life of the store that works on a claim. False if the claim has ended; the
    /// store may go on all the same.
    pub fn extend(&mut self, id: ClaimId, now_ms: u64) -> bool {
        let Some(granted) = self.claims.get_mut(&id) else {
            return false;
        };
        granted.until_ms = now_ms.saturating_add(self.settings.lease_ms);
        true
    }

    /// Notes that a store has given a claim back: its files are offered again after a while.
    pub fn failed(&mut self, id: ClaimId, now_ms: u64) {
        self.claims.remove(&id);
        for offer in self.offers.values_mut() {
            if offer.state == (State::Claimed { claim: id }) {
                let wait_ms = 1000u64 << offer.failures.min(20);
                offer.failures = offer.failures.saturating_add(1);
                let from_ms = now_ms.saturating_add(wait_ms.min(BACKOFF_MS_MAX));
                offer.state = State::Offered { from_ms };
            }
        }
    }

    /// Offers what belongs to claims whose leases are over.
    fn end_leases(&mut self, now_ms: u64) {
        let ended = self.claims.extract_if(.., |_, c| c.until_ms <= now_ms);
        let ended: Vec<ClaimId> = ended.map(|(id, _)| id).collect();
        for id in ended {
            self.failed(id, now_ms);
        }
    }

    /// Notes that a store says that these are where they should be. They are the next ones to be
    /// tried, see [`Offers::candidates`].
    pub fn reported(&mut self, id: ClaimId, sources: &SourceSet, now_ms: u64) {
        for (source, offer) in &mut self.offers {
            if sources.contains(*source) {
                offer.state = State::Reported { from_ms: now_ms };
            }
        }
        // What the claim held beyond that is offered again.
        self.failed(id, now_ms);
    }

    /// What to try to give up now: what was reported, and whatever was not tried for a while. Each
    /// is then to be given to [`Offers::dropped`], [`Offers::safe`] or [`Offers::kept`].
    pub fn candidates(&mut self, now_ms: u64) -> Vec<Content> {
        let retry_ms = self.settings.retry_ms;
        let due = self.offers.values_mut().filter(|offer| {
            let again_ms = offer.tried_ms.saturating_add(retry_ms);
            let is_due = matches!(offer.state, State::Reported { from_ms } if from_ms <= now_ms);
            is_due || again_ms <= now_ms
        });
        due.take(cast::to_usize(CONTENTS_MAX))
            .map(|offer| {
                offer.tried_ms = now_ms;
                offer.file.content
            })
            .collect()
    }

    /// Notes that files were dropped.
    pub fn dropped(&mut self, sources: &SourceSet) {
        self.offers.retain(|source, _| !sources.contains(*source));
    }

    /// Notes that these could not be given up: what was reported or safe of them is offered again, after
    /// a while from the second time on. Where copies are in too few zones a store has nothing to
    /// do but to report them.
    pub fn kept(&mut self, sources: &SourceSet, now_ms: u64) {
        for (source, offer) in &mut self.offers {
            let is_done = matches!(offer.state, State::Reported { .. } | State::Safe);
            if is_done && sources.contains(*source) {
                let wait_ms = match offer.failures {
                    0 => 0,
                    failures => 500u64 << failures.min(20),
                };
                offer.failures = offer.failures.saturating_add(1);
                let from_ms = now_ms.saturating_add(wait_ms.min(BACKOFF_MS_MAX));
                offer.state = State::Offered { from_ms };
            }
        }
    }

    /// Notes files that may go once a bucket lists them: they are asked for again in a while.
    pub fn on_their_way(&mut self, sources: &SourceSet, now_ms: u64) {
        let from_ms = now_ms.saturating_add(LISTING_MS);
        for (source, offer) in &mut self.offers {
            if sources.contains(*source) {
                offer.state = State::Reported { from_ms };
            }
        }
    }

    /// Notes files that stay although no store needs to take them: enough stores have them and they
    /// are the last of an incarnation ([`crate::births::Ends::may_go`]), or stores have something
    /// else of the same name ([`crate::give_up::GiveUp::conflicts`]), which is for somebody to look
    /// at. They are offered no more, and tried to be dropped now and then.
    pub fn safe(&mut self, sources: &SourceSet) {
        for (source, offer) in &mut self.offers {
            if sources.contains(*source) {
                offer.state = State::Safe;
            }
        }
    }

    /// All closed sources that have not been dropped.
    pub fn sources(&self) -> SourceSet {
        self.offers.keys().copied().collect()
    }

    /// Whether everything was dropped.
    pub fn is_empty(&self) -> bool {
        self.offers.is_empty()
    }

    fn files_at_risk(&self) -> impl Iterator<Item = &Offer> {
        self.offers.values().filter(|o| o.state != State::Safe)
    }

    /// Bytes of all files that stores may not have: what the loss of this disk would take of
    /// producers that do not keep their data themselves.
    pub fn bytes(&self) -> u64 {
        let each = self.files_at_risk().map(|offer| offer.file.bytes);
        each.fold(0, u64::saturating_add)
    }

    /// Files that no store is at work on.
    pub fn waiting_count(&self) -> usize {
        let is_waiting = |offer: &&Offer| matches!(offer.state, State::Offered { .. });
        self.offers.values().filter(is_waiting).count()
    }

    /// How long the oldest file that stores may not have has been closed.
    pub fn oldest_age_ms(&self, now_ms: u64) -> Option<u64> {
        let oldest = self.files_at_risk().map(|offer| offer.closed_ms).min();
        oldest.map(|closed_ms| now_ms.saturating_sub(closed_ms))
    }
}

#[cfg(test)]
mod tests;
