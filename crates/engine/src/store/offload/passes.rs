//! What the thread does again and again.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use logpond_bucket::{
    BucketError, Chains, GRACE, Location, Objects, ReconcileReport, probe, reconcile,
    segment_objects, sweep,
};
use logpond_cluster::Day;
use logpond_cluster::chain::{Change, LINKS, NoWriteReason, Outcome, SegmentEntry, segment_name};
use logpond_record::{Id, Timestamp, cast};
use logpond_segment::sources::SourceSet;
use logpond_segment::{build, verify};

use super::board::{Board, StoreClock};
use super::metrics::Counters;
use super::remote::Remote;
use super::table::TableKeeper;
use super::{Parts, guarded};
use crate::store::live::{LiveSegment, local, staying};
use logpond_host::clock;
use logpond_host::telemetry::warn;
use logpond_host::terminal::with_causes;

/// How often is looked for what other writers have put there: listings cost money.
const REFRESH_INTERVAL: Duration = Duration::from_secs(10);

/// How often what nothing needs is looked for.
const SWEEP_INTERVAL: Duration = Duration::from_secs(600);

/// An upload that could not be committed for so long is made again: half of the time after which it
/// is taken for forgotten.
const COMMIT_TIME_MAX: Duration = Duration::from_secs(GRACE.as_secs() / 2);

/// How long a copy of another node's segment waits for that node to put it into the bucket. Then this
/// one does, and sees to it from then on.
const COPY_TIME: Duration = Duration::from_secs(30);

/// How long a segment waits that could not be listed, or not be uploaded, while others go on.
const PUT_OFF_TIME: Duration = Duration::from_secs(30);

/// The thread at work.
pub(super) struct Offload {
    pub(super) objects: Arc<dyn Objects>,
    pub(super) chains: Chains,
    pub(super) remote: Remote,
    pub(super) parts: Parts,
    pub(super) board: Board,
    pub(super) counters: Arc<Counters>,
    pub(super) is_stopping: Arc<AtomicBool>,
    /// Whether the store was seen to keep conditions.
    pub(super) is_proven: bool,
    /// Objects that were uploaded and are not committed.
    pub(super) uploaded: Vec<PendingCommit>,
    /// Local segments whose sources others have listed.
    pub(super) held: Vec<Id>,
    /// Objects that no list has and nobody can read, with the reasons.
    pub(super) unlisted: Vec<String>,
    /// Segments that wait, since when.
    pub(super) put_off: Vec<(Id, Instant)>,
    /// Copies of other nodes' segments that are not in the bucket, since when they could be.
    pub(super) copies: Vec<(Id, Instant)>,
    pub(super) refreshed_at: Option<Instant>,
    pub(super) swept_at: Option<Instant>,
    /// Measures when its clock was asked.
    pub(super) boot: clock::Boot,
    /// True if the store is on another machine, and so has a clock of its own.
    pub(super) is_elsewhere: bool,
    /// What was complained about last.
    pub(super) complaint: Option<String>,
    /// The table for other engines, if there is to be one.
    pub(super) table: Option<TableKeeper>,
}

/// An object that was uploaded and is not committed.
pub(super) struct PendingCommit {
    id: Id,
    /// When its upload began: by a clock that nobody sets, and by one that does not stand still while the
    /// machine sleeps.
    began: (Instant, Timestamp),
}

impl PendingCommit {
    /// Whether nobody can have taken it for forgotten yet.
    fn is_fresh(&self, now: Timestamp) -> bool {
        let (instant, time) = self.began;
        let max_ns = cast::low_i64(COMMIT_TIME_MAX.as_nanos());
        instant.elapsed() < COMMIT_TIME_MAX && (0..max_ns).contains(&now.0.saturating_sub(time.0))
    }
}

/// Whether a segment may be the copy that counts from now on, if its file can be read. What is damaged is left
/// to whoever has it whole.
fn is_sound(segment: &LiveSegment) -> io::Result<bool> {
    if segment.is_damaged() {
        return Ok(false);
    }
    if verify::pages(segment.file())?.is_empty() {
        return Ok(true);
    }
    segment.note_damage();
    let id = segment.file().manifest().id;
    warn(&format!(
        "segments/{id}.parquet is damaged, and is not put into the bucket"
    ));
    Ok(false)
}

impl Offload {
    pub(super) fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }

    /// Names in every answer that the bucket has not been read.
    pub(super) fn note_unread(&self, location: &Location) {
        let missing = vec![format!("{location}: the bucket has not been read yet")];
        self.board.set_missing(missing);
    }

    /// Warns of a failure, once while it stays the same, and of its end.
    pub(super) fn note(&mut self, error: Option<&BucketError>) {
        self.counters.reachable.set(i64::from(error.is_none()));
        let complaint = error.map(|error| with_causes(error));
        if let Some(what) = &complaint {
            self.counters.failures.add(1);
            if self.complaint.is_none() {
                warn(&format!("{what}; trying again"));
            }
            // Nobody could put them there.
            self.copies.clear();
        } else if self.complaint.is_some() {
            warn("the bucket is available again");
        }
        self.complaint = complaint;
    }

    /// Makes sure that the store can be used, and reads what there is.
    pub(super) fn read(&mut self) -> Result<(), BucketError> {
        if !self.is_proven {
            probe(&*self.objects, clock::random().unwrap_or_default())?;
            self.is_proven = true;
        }
        let is_due = |at: Instant| at.elapsed() >= REFRESH_INTERVAL;
        if self.refreshed_at.is_none_or(is_due) {
            self.chains.refresh()?;
            // Segments that no list has are looked for at a start, and if a list cannot be read.
            let brought = if self.refreshed_at.is_none() || !self.chains.broken().is_empty() {
                self.bring_together()
            } else {
                Ok(())
            };
            if brought.is_err() && self.refreshed_at.is_some() {
                // Answers name the days that are not whole.
                self.publish();
            }
            brought?;
            self.refreshed_at = Some(Instant::now());
        }
        self.publish();
        Ok(())
    }

    /// Makes lists anew that cannot be read, and has those count that no list has.
    fn bring_together(&mut self) -> Result<(), BucketError> {
        let entries = segment_objects(&*self.objects)?;
        let now = (self.parts.clock)();
        let reconciled = reconcile(&*self.objects, &mut self.chains, &entries, now)?;
        self.note_reconciled(reconciled);
        Ok(())
    }

    fn note_reconciled(&mut self, reconciled: ReconcileReport) {
        for (day, broken, segments) in &reconciled.rebuilt {
            warn(&format!(
                "the bucket's list of {day} {broken}; it was made anew of the {segments} segments that lie there"
            ));
        }
        if !reconciled.adopted.is_empty() {
            let (count, (day, id)) = (reconciled.adopted.len(), reconciled.adopted[0]);
            warn(&format!(
                "{count} segments lay in the bucket and were in no list, {} first; they count from now on",
                segment_name(day, id)
            ));
        }
        for what in reconciled.unreadable.values() {
            if !self.unlisted.contains(what) {
                warn(what);
            }
        }
        self.unlisted = reconciled.unreadable.into_values().collect();
    }

    /// Everything that is due.
    pub(super) fn pass(&mut self) -> Result<(), BucketError> {
        self.read()?;
        self.expire()?;
        self.upload_all()?;
        self.sweep_if_due()
    }

    /// The segments that the chains list, with their days.
    fn listed(&self) -> BTreeMap<Id, (Day, &SegmentEntry)> {
        let heads = self.chains.heads().iter();
        heads
            .flat_map(|(day, link)| link.segments.iter().map(|s| (s.id, (*day, s))))
            .collect()
    }

    /// Opens what is new and not here, and shows what there is to the store.
    fn publish(&mut self) {
        let segments = self.parts.live.snapshot();
        let here = staying(&segments, &self.board.leaving());
        let before = self.board.opened();
        let listed = self.listed();
        let (mut opened, mut unread) = (BTreeMap::new(), Vec::new());
        for (id, (day, segment)) in &listed {
            if let Some(known) = before.get(id) {
                opened.insert(*id, Arc::clone(known));
            } else if !here.contains_all(&segment.sources) {
                unread.push((*day, *segment));
            }
        }
        let (new, mut failed) = self.remote.open_all(&unread, &self.is_stopping);
        opened.extend(new.into_iter().map(|s| (s.file().manifest().id, s)));
        if !failed.is_empty() {
            // What replaces them may be among those that could not be opened.
            for (id, known) in before.iter() {
                opened.entry(*id).or_insert_with(|| Arc::clone(known));
            }
        }
        for (id, known) in before.iter().filter(|(id, _)| !opened.contains_key(id)) {
            let day = Day::of(known.file().manifest().received_min);
            self.remote.forget(&segment_name(day, *id));
        }
        failed.extend(self.unlisted.iter().cloned());
        let broken = self.chains.broken().iter();
        failed.extend(broken.map(|(day, broken)| {
            format!("{LINKS}{day}: the list of this day {broken}, and is being made anew")
        }));
        failed.sort_unstable();
        self.counters.listed.set(cast::low_i64(listed.len()));
        let bytes: u64 = listed.values().map(|(_, segment)| segment.bytes).sum();
        self.counters
            .listed_bytes
            .set(i64::try_from(bytes).unwrap_or(i64::MAX));
        let heads = self.chains.heads().values();
        let expired = SourceSet::union_of(heads.map(|link| &link.expired));
        if self.board.publish((&listed, expired), opened, failed) {
            // It is the store that has queries read it.
            self.parts.changes.notify();
        }
    }

    /// Takes off what the store lets go.
    fn expire(&mut self) -> Result<(), BucketError> {
        let expired = self.board.expired();
        if expired.is_empty() {
            return Ok(());
        }
        let listed = self.listed();
        let mut days: BTreeMap<Day, Vec<Id>> = BTreeMap::new();
        for id in expired {
            if let Some((day, _)) = listed.get(&id) {
                days.entry(*day).or_default().push(id);
            }
        }
        for (day, ids) in days {
            self.commit(day, Change::Expire(ids))?;
        }
        self.publish();
        Ok(())
    }

    fn commit(&mut self, day: Day, change: Change) -> Result<Outcome, BucketError> {
        let outcome = self.chains.commit(day, change, (self.parts.clock)())?;
        if matches!(outcome, Outcome::Written(_)) {
            self.counters.commits.add(1);
        }
        Ok(outcome)
    }

    /// Uploads what is not in the bucket, the oldest first.
    fn upload_all(&mut self) -> Result<(), BucketError> {
        let listed = self.board.listed();
        let segments = self.parts.live.snapshot();
        let mut waiting: Vec<_> = local(&segments).collect();
        let ids: BTreeSet<Id> = waiting.iter().map(|s| s.file().manifest().id).collect();
        self.copies.retain(|(id, _)| ids.contains(id));
        self.held.retain(|id| ids.contains(id));
        self.uploaded.retain(|uploaded| ids.contains(&uploaded.id));
        self.put_off
            .retain(|(id, at)| ids.contains(id) && at.elapsed() < PUT_OFF_TIME);
        waiting.retain(|s| {
            let id = &s.file().manifest().id;
            !listed.contains(id) && !self.held.contains(id) && !self.is_left_to_maker(s)
        });
        waiting.sort_by_key(|s| s.file().manifest().received_min);
        let mut left = cast::low_i64(waiting.len());
        self.counters.waiting.set(left);
        for segment in waiting {
            if self.is_stopping() {
                return Ok(());
            }
            let id = segment.file().manifest().id;
            if self.put_off.iter().any(|(waiting, _)| *waiting == id) {
                continue;
            }
            let name = segment_name(Day::of(segment.file().manifest().received_min), id);
            match guarded(("upload", &name), || match is_sound(segment) {
                Ok(true) => self.upload(segment),
                Ok(false) | Err(_) => Ok(false),
            }) {
                Ok(true) => left -= 1,
                Ok(false) => self.put_off.push((id, Instant::now())),
                Err(error) => {
                    // If it is this file that cannot be read, the others go first next time.
                    self.put_off.push((id, Instant::now()));
                    return Err(error);
                }
            }
            self.counters.waiting.set(left);
        }
        Ok(())
    }

    /// Whether another node is to upload a segment. It is taken over from one that does not.
    fn is_left_to_maker(&mut self, segment: &LiveSegment) -> bool {
        if !segment.is_copy() {
            return false;
        }
        let id = segment.file().manifest().id;
        match self.copies.iter().find(|(known, _)| *known == id) {
            Some((_, since)) if since.elapsed() < COPY_TIME => true,
            Some(_) => {
                segment.take_over();
                false
            }
            None => {
                self.copies.push((id, Instant::now()));
                true
            }
        }
    }

    /// Whether a segment's object is there and may be committed.
    fn is_uploaded(&self, id: Id) -> bool {
        let now = (self.parts.clock)();
        let mut uploaded = self.uploaded.iter();
        uploaded.any(|uploaded| uploaded.id == id && uploaded.is_fresh(now))
    }

    /// Uploads a segment and has the chain list it. Gives whether nothing is left to do for it.
    fn upload(&mut self, segment: &LiveSegment) -> Result<bool, BucketError> {
        let (file, manifest) = (segment.file(), segment.file().manifest());
        let listed = SegmentEntry::new(manifest, file.bytes(), file.index_from());
        let (id, day) = (listed.id, listed.day());
        if !self.is_uploaded(id) {
            let began = (Instant::now(), (self.parts.clock)());
            let path = build::path(id, build::SUFFIX_LIVE);
            let Ok(local) = self.parts.disk.open(&path) else {
                // It was merged meanwhile; what it went into comes next.
                return Ok(true);
            };
            self.objects.put_file(&segment_name(day, id), &*local)?;
            self.counters.uploads.add(1);
            self.counters.uploaded_bytes.add(listed.bytes);
            self.uploaded.retain(|uploaded| uploaded.id != id);
            self.uploaded.push(PendingCommit { id, began });
        }
        if !self.is_uploaded(id) {
            // It took too long, or the machine slept meanwhile.
            return Ok(false);
        }
        let is_done = match self.commit(day, Change::List(listed))? {
            Outcome::Written(_) | Outcome::Settled(NoWriteReason::Done, _) => {
                self.uploaded.retain(|uploaded| uploaded.id != id);
                true
            }
            Outcome::Settled(NoWriteReason::Held, _) => {
                self.counters.held.add(1);
                self.held.push(id);
                true
            }
            // It had been uploaded long ago, and is being removed.
            Outcome::Settled(NoWriteReason::Dropped, _) => {
                self.board.renew(id);
                self.uploaded.retain(|uploaded| uploaded.id != id);
                false
            }
            // Once the others are opened, the store merges them with this one.
            Outcome::Settled(NoWriteReason::Overlaps(_), _) | Outcome::Contended => false,
            Outcome::Settled(NoWriteReason::Full, _) => {
                warn(&format!(
                    "the bucket lists too many segments of {day}; no more are added until some are merged"
                ));
                false
            }
        };
        self.publish();
        Ok(is_done)
    }

    fn sweep_if_due(&mut self) -> Result<(), BucketError> {
        if self
            .swept_at
            .is_some_and(|at| at.elapsed() < SWEEP_INTERVAL)
        {
            return Ok(());
        }
        self.swept_at = Some(Instant::now());
        let asked_ms = self.boot.now_ms();
        let swept = sweep(
            &*self.objects,
            &mut self.chains,
            GRACE,
            (self.parts.clock)(),
        )?;
        self.note_reconciled(swept.reconciled);
        self.counters
            .swept
            .add(swept.links + swept.dropped + swept.orphans);
        // A directory's times are those of this machine, and prove nothing.
        if let (true, Some(time)) = (self.is_elsewhere, swept.time) {
            let since = time
                .duration_since(SystemTime::UNIX_EPOCH)
                .unwrap_or_default();
            let time = Timestamp(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX));
            self.board.note_clock(StoreClock { time, asked_ms });
        }
        Ok(())
    }
}
