//! What the store does, step by step. Each step leaves everything in order.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use logpond_cluster::Day;
use logpond_protocol::intake::Parser;
use logpond_record::{Id, SourceId};
use logpond_segment::build::{self, BuildError, BuildLimits, FileSelection};
use logpond_segment::compact::{self, Job};
use logpond_segment::disk::Disk;
use logpond_segment::file::{Directory, FinishedFile, Profile, SegmentFile};
use logpond_segment::journal::{self, ClosedFile, Damages, JournalFile};
use logpond_segment::retain::RetentionCandidate;
use logpond_segment::sources::SourceSet;

use super::counters::Counters;
use super::deleted::LOOK_INTERVAL;
use super::inventory::Keeper;
use super::live::{LiveSegment, holds, is_leaving, local, staying};
use super::offload::Board;
use super::retention::Retention;
use super::{Parts, Policy};
use crate::step_mark::StepMark;
use logpond_host::clock;
use logpond_host::panics::caught;
use logpond_host::telemetry::warn;
use logpond_host::terminal::with_causes;

/// Journal data that goes into one segment at most; it is held in memory while it is sorted. What is
/// waiting together is rewritten less often by merges. Rows cost memory beside their bytes: files
/// together take no more of it than a step may.
const CONSUME_BYTES_MAX: u64 = 48 << 20;

/// The name of the mark of this thread's steps.
const STEP_MARK: &str = "store";

/// The most runs of named batches in the inputs of a merge: the manifest lists them, and a footer
/// of some 30 MiB is the most that should have to be read. It takes ten thousand producers a
/// hundred gaps each to get there.
const BATCH_RUNS_MAX: usize = 1 << 20;

/// How long retired segments stay on disk before they are removed. Nobody reads them; they are
/// there for the case that retiring them was a mistake of this program.
const TRASH_TIME: Duration = Duration::from_secs(600);

/// How long those stay whose records nobody else has: longer than a clock or a limit waits, so that who
/// reads the log the day after can still take them back. A disk that is short of room ends it.
const TRASH_TIME_EXPIRED: Duration = Duration::from_secs(25 * 3600);

/// How long a compaction that was asked for waits until other nodes have copies of everything.
const HANDOVER_TIME_MAX: Duration = Duration::from_secs(30);

/// How often it looks.
const HANDOVER_CHECK: Duration = Duration::from_millis(25);

/// How long the store waits after a failure, so that a full disk is not hammered.
const FAILURE_PAUSE: Duration = Duration::from_secs(5);

/// Whether to stop between two row groups.
type Stopped<'a> = &'a dyn Fn() -> bool;

/// A file that retention may take.
#[derive(Clone)]
pub(super) enum RetainedFile {
    Journal(ClosedFile),
    Segment(Arc<LiveSegment>),
}

impl RetainedFile {
    pub(super) fn bytes(&self) -> u64 {
        match self {
            RetainedFile::Journal(file) => file.bytes,
            RetainedFile::Segment(segment) => segment.file().bytes(),
        }
    }

    pub(super) fn records(&self) -> u64 {
        match self {
            RetainedFile::Journal(file) => file.summary.tally.rows,
            RetainedFile::Segment(segment) => segment.file().manifest().rows,
        }
    }
}

/// The store's thread at work.
pub(super) struct Worker {
    pub(super) parts: Parts,
    /// What is known of the bucket, if there is one.
    pub(super) board: Option<Board>,
    pub(super) policy: Policy,
    pub(super) counters: Arc<Counters>,
    is_stopping: Arc<AtomicBool>,
    /// How large steps are, and what says so after a process that ended in one.
    mark: Arc<StepMark>,
    parser: Parser,
    trash: Vec<Trash>,
    /// Failed attempts of which something may be left on disk.
    failed: Vec<Id>,
    ids_made: u64,
    /// Segments that cannot be merged because they are damaged.
    pub(super) unmergeable: HashSet<Id>,
    failed_at: Option<Instant>,
    /// When deleted files were looked for.
    looked_at: Instant,
    pub(super) keeper: Keeper,
    pub(super) retention: Option<Retention>,
}

/// A retired segment whose file is still there.
struct Trash {
    id: Id,
    bytes: u64,
    since: Instant,
    /// How long it stays.
    time: Duration,
}

impl Worker {
    pub(super) fn new(
        mut parts: Parts,
        board: Option<Board>,
        policy: Policy,
        counters: Arc<Counters>,
        is_stopping: Arc<AtomicBool>,
    ) -> Worker {
        let since = Instant::now();
        let listed = std::mem::take(&mut parts.listed);
        let files = (
            parts.disk.clone(),
            parts.live.clone(),
            parts.visible.clone(),
        );
        let keeper = Keeper::new(files, (listed, board.clone()), parts.cluster.is_some());
        // Why they were retired is not known any more.
        let trash = parts.trash.iter().map(|(id, bytes)| Trash {
            id: *id,
            bytes: *bytes,
            since,
            time: TRASH_TIME_EXPIRED,
        });
        let worker = Worker {
            trash: trash.collect(),
            failed: Vec::new(),
            retention: None,
            mark: Arc::new(StepMark::new(
                Arc::clone(&parts.disk),
                STEP_MARK,
                parts.memory_bytes,
            )),
            ids_made: 0,
            parts,
            board,
            policy,
            counters,
            is_stopping,
            parser: Parser::new(),
            unmergeable: HashSet::new(),
            failed_at: None,
            looked_at: since,
            keeper,
        };
        worker.count_trash();
        worker
    }

    pub(super) fn wait_for_changes(&self, seen: u64, time_max: Duration) -> u64 {
        self.parts.changes.wait(seen, time_max)
    }

    /// Everything that is due, one step of each kind.
    pub(super) fn tick(&mut self) {
        self.keeper.follow();
        if self
            .failed_at
            .is_some_and(|at| at.elapsed() < FAILURE_PAUSE)
        {
            // Retention goes on: it is what makes room again.
            self.put_back_deleted_if_due();
            self.retain_if_due();
            return;
        }
        self.failed_at = None;
        let result = self.follow_bucket();
        let result = result.and_then(|()| self.consume_all());
        let result = result.and_then(|()| self.renew_salvaged());
        if let Err(what) = result.and_then(|()| self.compact_once()) {
            self.note_failure(&what);
        }
        self.put_back_deleted_if_due();
        self.retain_if_due();
        self.parts.live.forget_idle();
    }

    pub(super) fn note_failure(&mut self, what: &str) {
        self.counters.failures.add(1);
        self.failed_at = Some(Instant::now());
        warn(&format!("{what}; trying again"));
    }

    fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }

    /// Puts everything into as few segments as the settings allow.
    pub(super) fn compact_all(&mut self, cold: bool) -> Result<(), String> {
        let closed = self.parts.closer.close();
        self.consume_all()?;
        self.wait_for_handover();
        loop {
            let jobs = compact::plan_all(&self.describe(), cold, &self.policy.compact);
            if jobs.is_empty() || self.is_stopping() {
                return closed;
            }
            for job in jobs {
                self.carry_out(&job)?;
            }
        }
    }

    /// Puts all closed journal files into segments.
    fn consume_all(&mut self) -> Result<(), String> {
        if self.parts.cluster.is_some() {
            return Ok(());
        }
        while !self.is_stopping() {
            let files = self.next_files();
            if files.is_empty() {
                break;
            }
            self.consume(&files)?;
        }
        Ok(())
    }

    /// In a cluster others make the segments: waits until they have, but not for ever.
    fn wait_for_handover(&self) {
        let since = Instant::now();
        while let Some(cluster) = &self.parts.cluster
            && !cluster.is_handed_over()
            && !self.is_stopping()
            && since.elapsed() < HANDOVER_TIME_MAX
        {
            std::thread::sleep(HANDOVER_CHECK);
        }
    }

    /// The oldest closed files, as many as one segment takes. Files that a segment holds already
    /// are removed on the way: the process ended between the two steps.
    fn next_files(&mut self) -> Vec<ClosedFile> {
        let segments = self.parts.live.snapshot();
        let mut files = Vec::new();
        let (mut bytes, mut memory) = (0, 0);
        let memory_max = self.mark.memory_bytes_max();
        for file in self.parts.visible.snapshot().closed.iter() {
            if holds(&segments, file.source) {
                self.let_go(file);
                continue;
            }
            let more = build::journal_memory_bytes(file.summary.rows(), file.bytes);
            let is_full = bytes + file.bytes > CONSUME_BYTES_MAX || memory + more > memory_max;
            if !files.is_empty() && is_full {
                break;
            }
            // Who else makes segments of them meets this node in the chain of their day.
            let day = |file: &ClosedFile| Day::of(file.summary.received_min);
            if self.board.is_some() && files.first().is_some_and(|first| day(first) != day(file)) {
                break;
            }
            (bytes, memory) = (bytes + file.bytes, memory + more);
            files.push(file.clone());
        }
        files
    }

    fn consume(&mut self, files: &[ClosedFile]) -> Result<(), String> {
        self.discard_failed()?;
        let id = self.new_id();
        let parser = &mut self.parser;
        // What an attempt that failed has counted is counted again.
        parser.take_met();
        let disk = &*self.parts.disk;
        let is_stopping = Arc::clone(&self.is_stopping);
        let within = BuildLimits {
            memory_bytes_max: self.mark.memory_bytes_max(),
            is_stopped: &|| is_stopping.load(Ordering::Relaxed),
            takes: FileSelection::Fitting,
        };
        let parse = || build::from_journal_within(disk, id, files, within, |e| parser.parse(e));
        let built = self.mark.during(|| caught(parse));
        let what = "journal files could not be put into a segment";
        let built = built.map_err(|error| self.failed(id, what, &error))?;
        let built = built.map_err(|panicked| self.failed(id, what, &panicked))?;
        if matches!(built, Err(BuildError::Stopped)) {
            self.failed(id, "", &BuildError::Stopped);
            return Ok(());
        }
        let built = built.map_err(|error| {
            self.miss_gone(files);
            self.failed(id, what, &error)
        })?;
        let file = build::open(&*self.parts.disk, id)
            .map_err(|error| self.failed(id, "a new segment cannot be read", &error))?;
        let segment = Arc::new(LiveSegment::new(file));
        // The others come with the next step.
        let is_taken = |file: &&ClosedFile| segment.sources().contains(file.source);
        let files: Vec<ClosedFile> = files.iter().filter(is_taken).cloned().collect();
        self.counters.consumed_files.add(files.len() as u64);
        self.counters.consumed_rows.add(built.written.manifest.rows);
        let met = self.parser.take_met();
        self.counters.unfit_lines.add(met.unfit);
        self.counters.panicked_lines.add(met.panicked);
        if built.damages.count > 0 {
            self.counters.damages.add(built.damages.count);
            for damage in &built.damages.listed {
                warn(&format!("rows were lost: {damage}"));
            }
            // Before the segment takes the place of the files, so that no answer is without it.
            for file in &files {
                self.note_lost(file);
            }
        }
        self.parts.live.replace(&[], Some(segment));
        let journal = self.parts.visible.snapshot().closed;
        self.parts.resends.release(&files, &journal);
        for file in &files {
            match built.damages.count {
                0 => self.drop_journal(file),
                _ => self.let_go(file),
            }
        }
        Ok(())
    }

    /// Names in every answer from now on the journal files that somebody has deleted.
    fn miss_gone(&mut self, files: &[ClosedFile]) {
        let is_gone = |file: &&ClosedFile| {
            let opened = self.parts.disk.open(&file.path);
            opened.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
        };
        let gone: Vec<&ClosedFile> = files.iter().filter(is_gone).collect();
        for file in gone {
            self.keeper.miss(file);
            self.parts.visible.remove_closed(file.source);
        }
    }

    /// Names in every answer from now on what is lost of a journal file. Gives whether anything is.
    fn note_lost(&self, file: &ClosedFile) -> bool {
        let damages = damages_of(&*self.parts.disk, file);
        let Some(first) = damages.listed.first() else {
            return false;
        };
        let lost = match damages.count {
            1 => first.to_string(),
            more => format!("{first}, and {} more", more - 1),
        };
        let aside = journal::path(file.source, journal::SUFFIX_QUARANTINED);
        let put_aside = self.parts.live.put_aside();
        put_aside.add(&[&file.path, &aside], &lost);
        true
    }

    /// Lets go of a journal file whose source a live segment lists: removes it, or puts it aside
    /// if parts of it are damaged.
    fn let_go(&self, file: &ClosedFile) {
        let journal = self.parts.visible.snapshot().closed;
        let released = std::slice::from_ref(file);
        self.parts.resends.release(released, &journal);
        if !self.note_lost(file) {
            return self.drop_journal(file);
        }
        match journal::set_aside(&*self.parts.disk, file) {
            Ok(_) => {
                self.parts.visible.remove_closed(file.source);
            }
            // It stays in the list, and its source in a segment: the next round tries again.
            Err(error) => warn(&describe(
                &format!("{} cannot be put aside", file.path),
                &error,
            )),
        }
    }

    /// Removes a journal file whose source a live segment lists.
    fn drop_journal(&self, file: &ClosedFile) {
        self.parts.visible.remove_closed(file.source);
        if let Err(error) = self.parts.disk.remove(&file.path) {
            // It is found again at the next start, and removed then.
            warn(&describe(
                &format!("{} cannot be removed", file.path),
                &error,
            ));
        }
    }

    fn new_id(&mut self) -> Id {
        self.ids_made += 1;
        clock::mint_segment_id((self.parts.clock)(), self.ids_made)
    }

    pub(super) fn failed(&mut self, id: Id, what: &str, error: &dyn std::error::Error) -> String {
        self.failed.push(id);
        // If this fails too, the next attempt begins with it.
        let _ = self.discard_failed();
        describe(what, error)
    }

    /// Removes what failed attempts have left; nothing may be made before that.
    fn discard_failed(&mut self) -> Result<(), String> {
        while let Some(id) = self.failed.last() {
            build::discard(&*self.parts.disk, *id)
                .map_err(|error| describe("a failed attempt cannot be removed", &error))?;
            self.failed.pop();
        }
        Ok(())
    }

    fn describe(&self) -> Vec<compact::Live> {
        let segments = self.parts.live.snapshot();
        let leaving = self.board.as_ref().map(Board::leaving);
        let leaving = leaving.unwrap_or_default();
        let here = staying(&segments, &leaving);
        let is_leaving = |s: &LiveSegment| self.board.is_some() && is_leaving(s, &leaving);
        // What is in the bucket only is read from there for a merge if others share its sources.
        // What is on its way there stays as it is.
        let mergeable = segments.iter().filter(|s| {
            !self.unmergeable.contains(&s.file().manifest().id)
                && if s.is_remote() {
                    !s.sources().is_disjoint(&here)
                } else {
                    !is_leaving(s)
                }
        });
        mergeable.map(|s| s.describe()).collect()
    }

    /// Carries out the most useful job, if there is one.
    fn compact_once(&mut self) -> Result<(), String> {
        let now = (self.parts.clock)();
        match compact::plan(&self.describe(), now, &self.policy.compact).first() {
            Some(job) => self.carry_out(job),
            None => Ok(()),
        }
    }

    fn carry_out(&mut self, job: &Job) -> Result<(), String> {
        match job {
            Job::Retire(id) => {
                let segments = self.parts.live.snapshot();
                let segment = segments.iter().find(|s| s.file().manifest().id == *id);
                match segment {
                    Some(segment) if compact::is_covered(*id, &self.describe()) => {
                        self.retire(&[Arc::clone(segment)], None)?;
                        self.counters.retired.add(1);
                        Ok(())
                    }
                    _ => Ok(()),
                }
            }
            Job::Merge { inputs, cold, .. } => self.merge(inputs, *cold),
        }
    }

    /// Retires a segment if others hold here, or were `confirmed` to hold elsewhere, what is in it.
    pub(super) fn give_up(&mut self, id: Id, confirmed: &SourceSet) -> Result<bool, String> {
        let segments = self.parts.live.snapshot();
        let Some(segment) = segments.iter().find(|s| s.file().manifest().id == id) else {
            return Ok(false);
        };
        let others = segments.iter().filter(|s| s.file().manifest().id != id);
        let mut elsewhere = confirmed.clone();
        others.for_each(|other| elsewhere.union_with(other.sources()));
        if !elsewhere.contains_all(segment.sources()) {
            return Ok(false);
        }
        self.retire(&[Arc::clone(segment)], None)?;
        self.counters.retired.add(1);
        Ok(true)
    }

    /// Puts what a segment holds into a new one.
    pub(super) fn renew(&mut self, id: Id) -> Result<(), String> {
        let segments = self.parts.live.snapshot();
        match local(&segments).find(|s| s.file().manifest().id == id) {
            Some(segment) => self.merge(&[id], segment.file().manifest().cold),
            None => Ok(()),
        }
    }

    /// Puts what was read of damaged files into new ones, each once: those whose pages are damaged, too, stay.
    fn renew_salvaged(&mut self) -> Result<(), String> {
        while let Some(id) = self.parts.salvaged.pop() {
            self.renew(id)?;
        }
        Ok(())
    }

    fn merge(&mut self, inputs: &[Id], cold: bool) -> Result<(), String> {
        let segments = self.parts.live.snapshot();
        let inputs: Vec<Arc<LiveSegment>> = inputs
            .iter()
            .filter_map(|id| {
                segments
                    .iter()
                    .find(|s| s.file().manifest().id == *id)
                    .cloned()
            })
            .collect();
        let (inputs, is_partial) = bounded(inputs, self.mark.memory_bytes_max())?;
        if batch_runs(&inputs) > BATCH_RUNS_MAX {
            self.unmergeable.extend(ids_of(&inputs));
            return Err(
                "segments name too many batches to be merged; they stay as they are".into(),
            );
        }
        // After a process that ended in a step even two may be too much; nothing is lost if they stay.
        if self.mark.halvings() > 0 && open_memory(&inputs)? > self.mark.memory_bytes_max() {
            self.unmergeable.extend(ids_of(&inputs));
            return Err("segments take too much memory to be merged; they stay as they are".into());
        }
        // A part is merged again soon: it need not be small.
        let profile = if cold && !is_partial {
            Profile::Cold
        } else {
            Profile::Hot
        };
        let merged = self.write_anew(&inputs, |disk, id, files, stopped| {
            build::merge(disk, id, files, profile, stopped)
        })?;
        let Some(merged) = merged else {
            return Ok(());
        };
        self.counters.merges.add(1);
        self.counters.retired.add(inputs.len() as u64);
        self.retire(&inputs, Some(Arc::new(merged)))
    }

    /// Writes a segment of what others hold, which stay as they are; `None` if the store is stopping.
    pub(super) fn write_anew(
        &mut self,
        inputs: &[Arc<LiveSegment>],
        write: impl Fn(&dyn Disk, Id, &[SegmentFile], Stopped<'_>) -> Result<FinishedFile, BuildError>,
    ) -> Result<Option<LiveSegment>, String> {
        let files: Vec<_> = inputs.iter().map(|s| s.file().clone()).collect();
        self.discard_failed()?;
        let id = self.new_id();
        let is_stopping = Arc::clone(&self.is_stopping);
        let stopped = move || is_stopping.load(Ordering::Relaxed);
        let disk = &*self.parts.disk;
        let mark = Arc::clone(&self.mark);
        let written = mark.during(|| caught(|| write(disk, id, &files, &stopped)));
        let written =
            written.map_err(|error| self.failed(id, "segments could not be merged", &error))?;
        let written = written.map_err(|panicked| {
            // What brings it out stays as it is, and does not keep others from being merged.
            self.unmergeable.extend(ids_of(inputs));
            self.failed(id, "segments could not be merged", &panicked)
        })?;
        match written {
            Ok(_) => {}
            Err(error @ BuildError::Input(_)) => {
                self.set_aside_damaged(inputs);
                return Err(self.failed(id, "segments could not be merged", &error));
            }
            Err(error @ BuildError::Differs(_)) => {
                // Whichever it is that is not as its manifest says, they are whole as they are.
                self.unmergeable.extend(ids_of(inputs));
                return Err(self.failed(id, "segments could not be merged", &error));
            }
            Err(BuildError::Stopped) => {
                self.failed(id, "", &BuildError::Stopped);
                return Ok(None);
            }
            Err(error) => return Err(self.failed(id, "segments could not be merged", &error)),
        }
        let file = build::open(&*self.parts.disk, id)
            .map_err(|error| self.failed(id, "a merged segment cannot be read", &error))?;
        Ok(Some(LiveSegment::new(file)))
    }

    /// Finds out which inputs are damaged; they stay as they are.
    fn set_aside_damaged(&mut self, inputs: &[Arc<LiveSegment>]) {
        for input in inputs {
            let damages = logpond_segment::verify::pages(input.file());
            if !matches!(damages, Ok(damages) if damages.is_empty()) {
                input.note_damage();
                self.unmergeable.insert(input.file().manifest().id);
            }
        }
    }

    /// Takes segments out of the list, and then off the disk's live files.
    pub(super) fn retire(
        &mut self,
        out: &[Arc<LiveSegment>],
        new: Option<Arc<LiveSegment>>,
    ) -> Result<(), String> {
        self.retire_for(TRASH_TIME, out, new)
    }

    fn retire_for(
        &mut self,
        time: Duration,
        out: &[Arc<LiveSegment>],
        new: Option<Arc<LiveSegment>>,
    ) -> Result<(), String> {
        self.release(out, new.as_ref())?;
        self.parts.live.replace(out, new);
        let local = || out.iter().filter(|s| !s.is_remote());
        let ids: Vec<Id> = local().map(|s| s.file().manifest().id).collect();
        let since = Instant::now();
        self.trash.extend(local().map(|s| Trash {
            id: s.file().manifest().id,
            bytes: s.file().bytes(),
            since,
            time,
        }));
        self.count_trash();
        // If this fails, the next start finds the segments live, and retires them again.
        build::retire(&*self.parts.disk, &ids)
            .map_err(|error| describe("segments cannot be retired", &error))
    }

    /// Takes off the list of files what goes with rows that no other local segment holds.
    fn release(
        &mut self,
        out: &[Arc<LiveSegment>],
        new: Option<&Arc<LiveSegment>>,
    ) -> Result<(), String> {
        let segments = self.parts.live.snapshot();
        let is_out = |segment: &Arc<LiveSegment>| out.iter().any(|o| Arc::ptr_eq(o, segment));
        let others = local(&segments).filter(|segment| !is_out(segment));
        let held = SourceSet::union_of(others.chain(new).map(|segment| segment.sources()));
        let goes = |s: &&Arc<LiveSegment>| !s.is_remote() && !held.contains_all(s.sources());
        let gone = out.iter().filter(goes);
        let ids: Vec<Id> = gone.map(|segment| segment.file().manifest().id).collect();
        self.unlist(ids, Vec::new())
    }

    fn unlist(&mut self, segments: Vec<Id>, journal: Vec<SourceId>) -> Result<(), String> {
        let released = self.keeper.release(segments, journal);
        released.map_err(|error| describe("files cannot be taken off the list of files", &error))
    }

    /// Writes deleted files again, if it is time to look for some.
    fn put_back_deleted_if_due(&mut self) {
        if self.looked_at.elapsed() >= LOOK_INTERVAL {
            self.looked_at = Instant::now();
            self.put_back_deleted(false);
        }
    }

    /// Removes files; what of them is elsewhere, too, counts nowhere from then on.
    pub(super) fn remove(&mut self, files: Vec<RetainedFile>) -> Result<(), String> {
        let (mut journals, mut segments) = (Vec::new(), Vec::new());
        for kept in files {
            match kept {
                RetainedFile::Journal(file) => journals.push(file),
                RetainedFile::Segment(segment) => segments.push(segment),
            }
        }
        if let Some(cluster) = &self.parts.cluster {
            let mut sources: SourceSet = journals.iter().map(|file| file.source).collect();
            segments
                .iter()
                .for_each(|s| sources.union_with(s.sources()));
            cluster
                .expire(&sources)
                .map_err(|error| describe("what is to be removed cannot be noted", &error))?;
        }
        let ids = segments.iter().filter(|segment| !segment.is_remote());
        let ids = ids.map(|segment| segment.file().manifest().id).collect();
        self.unlist(ids, journals.iter().map(|file| file.source).collect())?;
        self.counters
            .expired
            .add((journals.len() + segments.len()) as u64);
        if let Some(board) = &self.board {
            board.expire(segments.iter().map(|s| s.file().manifest().id));
        }
        journals.iter().for_each(|file| self.drop_journal(file));
        if !segments.is_empty() {
            self.retire_for(TRASH_TIME_EXPIRED, &segments, None)?;
        }
        Ok(())
    }

    pub(super) fn held(&self) -> Vec<RetentionCandidate<RetainedFile>> {
        let journals = self.parts.visible.snapshot();
        let journals = journals.closed.iter().map(|file| RetentionCandidate {
            received_min: file.summary.received_min,
            received_max: file.summary.received_max,
            bytes: file.bytes,
            key: RetainedFile::Journal(file.clone()),
        });
        let segments = self.parts.live.snapshot();
        let segments = segments
            .iter()
            .map(|segment| segment.held(RetainedFile::Segment(Arc::clone(segment))));
        journals.chain(segments).collect()
    }

    /// Removes trash that is old enough, or all of it if room is needed now.
    pub(super) fn purge(&mut self, all: bool) -> Result<(), String> {
        let due: Vec<Id> = self
            .trash
            .iter()
            .filter(|trash| all || trash.since.elapsed() >= trash.time)
            .map(|trash| trash.id)
            .collect();
        if due.is_empty() {
            return Ok(());
        }
        build::purge(&*self.parts.disk, &due)
            .map_err(|error| describe("retired segments cannot be removed", &error))?;
        self.trash.retain(|trash| !due.contains(&trash.id));
        self.count_trash();
        Ok(())
    }

    /// Bytes of retired segments that are still there.
    pub(super) fn trash_bytes(&self) -> u64 {
        self.trash.iter().map(|trash| trash.bytes).sum()
    }

    fn count_trash(&self) {
        let bytes = i64::try_from(self.trash_bytes()).unwrap_or(i64::MAX);
        self.counters.trash_bytes.set(bytes);
    }
}

fn ids_of(segments: &[Arc<LiveSegment>]) -> impl Iterator<Item = Id> {
    segments.iter().map(|segment| segment.file().manifest().id)
}

/// What is damaged in a closed file.
fn damages_of(disk: &dyn Disk, file: &ClosedFile) -> Damages {
    let scanned = JournalFile::from_closed(disk, file).map(|journal| journal.scan());
    match scanned {
        Ok(Ok(scanned)) => scanned.damages,
        // It cannot be read; its rows are in a segment, as far as they could be.
        _ => Damages::default(),
    }
}

/// The inputs of a merge, fewer if all of them would take too much memory at once: their merge
/// comes in several rounds then. Says whether some were left out.
fn bounded(
    mut inputs: Vec<Arc<LiveSegment>>,
    memory_bytes_max: u64,
) -> Result<(Vec<Arc<LiveSegment>>, bool), String> {
    let wanted = inputs.len();
    let mut directories = directories_of(&inputs)?;
    while directories.len() > 2
        && (build::open_memory_bytes_max(&directories) > memory_bytes_max
            || batch_runs(&inputs[..directories.len()]) > BATCH_RUNS_MAX)
    {
        directories.pop();
    }
    inputs.truncate(directories.len());
    Ok((inputs, directories.len() < wanted))
}

fn directories_of(segments: &[Arc<LiveSegment>]) -> Result<Vec<Arc<Directory>>, String> {
    let each = segments.iter().map(|segment| segment.directory());
    let read: Result<Vec<_>, _> = each.collect();
    read.map_err(|error| describe("a segment cannot be merged", &error))
}

/// About the memory that a merge of these takes.
fn open_memory(segments: &[Arc<LiveSegment>]) -> Result<u64, String> {
    Ok(build::open_memory_bytes_max(&directories_of(segments)?))
}

/// Runs of named batches in the manifests.
fn batch_runs(segments: &[Arc<LiveSegment>]) -> usize {
    let manifests = segments.iter().map(|s| s.file().manifest());
    manifests.map(|m| m.batches.runs().count()).sum()
}

/// What failed, with all causes in one line.
pub(super) fn describe(what: &str, error: &dyn std::error::Error) -> String {
    format!("{what}: {}", with_causes(error))
}
