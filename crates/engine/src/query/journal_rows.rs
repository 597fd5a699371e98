//! Reading the journal part of a view, row by row.
//!
//! Journal data is little and recent: what is old is in segments. So every pass reads all of it, but for
//! what a text is known not to be in, and a window keeps the next rows in order.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicI64, Ordering};

use logpond_protocol::intake::Parser;
use logpond_record::limits::UNLISTED_FIELD;
use logpond_record::{Id, Record, Timestamp};
use logpond_search::Scratch;
use logpond_search::order::{Direction, Key};
use logpond_segment::journal::JournalFile;

use super::journal_grams::JournalGrams;
use super::journal_spans::JournalSpans;
use super::output::Output;
use super::positions::Region;
use super::progress::Progress;
use super::view::View;
use super::window::{WINDOW_BYTES_MAX, WINDOW_SHARE, Window, is_before};
use super::{QueryError, Scope, Search, Trailer};
use logpond_host::memory::{Budget, Charge, GivesWay};

/// Results of journal reads that later reads use.
#[derive(Debug, Default)]
pub(super) struct JournalCache {
    pub(super) newest: Newest,
    pub(super) grams: JournalGrams,
    pub(super) spans: JournalSpans,
}

impl JournalCache {
    /// Nothing yet; what is kept is within this memory.
    pub(super) fn within(budget: &Budget) -> JournalCache {
        JournalCache {
            newest: Newest::default(),
            grams: JournalGrams::within(budget),
            spans: JournalSpans::default(),
        }
    }
}

impl GivesWay for JournalCache {
    fn bytes(&self) -> usize {
        self.grams.bytes()
    }

    fn give_way(&self, bytes: usize) -> usize {
        self.grams.give_way(bytes)
    }
}

/// Event time of the newest journal record that was ever read.
#[derive(Debug)]
pub(super) struct Newest(AtomicI64);

impl Default for Newest {
    fn default() -> Newest {
        Newest(AtomicI64::new(i64::MIN))
    }
}

impl Newest {
    pub(super) fn note(&self, time: Timestamp) {
        self.0.fetch_max(time.0, Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> Option<Timestamp> {
        let newest = self.0.load(Ordering::Relaxed);
        (newest != i64::MIN).then_some(Timestamp(newest))
    }
}

/// Where the rows of an answer begin.
pub(super) struct Start {
    direction: Direction,
    /// Rows up to here have left.
    pub(super) behind: Option<Key>,
    /// A follower that comes back has seen everything that arrived before its last record.
    arrived_after: Option<Id>,
    /// What was shown already.
    shown: Vec<Region>,
}

impl Start {
    pub(super) fn of(search: &Search) -> Start {
        let (behind, arrived_after) = if search.is_followed {
            (None, search.behind.map(|cursor| cursor.id))
        } else {
            (search.behind, None)
        };
        Start {
            direction: search.direction,
            behind,
            arrived_after,
            shown: search.shown.clone(),
        }
    }

    pub(super) fn is_before(&self, key: Key) -> bool {
        self.behind
            .is_none_or(|behind| is_before(self.direction, behind, key))
            && self.arrived_after.is_none_or(|id| key.id > id)
            && !self.shown.iter().any(|region| region.contains(key))
    }
}

/// Records of a frame between two looks at whether anybody waits still, and whether they should hear
/// that the work goes on: a frame may have thousands, and a slow machine takes a while for each.
pub(super) const CHECK_ROWS: usize = 64;

/// Bytes of frames between two such looks: a millisecond of work at most.
const STEP_BYTES: u64 = 64 << 10;

/// One reading of the journal.
pub(super) struct Pass<'a> {
    /// What arrived up to here is not wanted.
    pub(super) arrived_after: Option<Id>,
    /// True if the answer depends on names of fields.
    pub(super) looks_at_fields: bool,
    pub(super) view: &'a View,
    pub(super) known: &'a JournalCache,
    pub(super) out: &'a mut Output,
    pub(super) trailer: &'a mut Trailer,
    pub(super) progress: &'a mut Progress,
}

impl Pass<'_> {
    /// Hands over every record that may match the scope.
    pub(super) fn run(
        &mut self,
        scope: &Scope,
        mut each: impl FnMut(&Record<'_>),
    ) -> Result<(), QueryError> {
        let view = self.view;
        let mut parser = Parser::new();
        self.known.grams.retain(&view.snapshot);
        self.known.spans.retain(&view.snapshot);
        let (looks_at_fields, mut unlisted) = (self.looks_at_fields, 0);
        let mut each = |record: &Record<'_>| {
            let may_lack = looks_at_fields && record.whole.is_some();
            let lacks = may_lack && record.field(UNLISTED_FIELD).is_some();
            unlisted += u64::from(lacks && scope.range.contains(record.time));
            each(record);
        };
        for file in &view.journal {
            self.file(file, scope, &mut parser, &mut each)?;
        }
        self.trailer.miss_unlisted(unlisted, "the journal");
        Ok(())
    }

    /// Hands over every record that the scope wants.
    pub(super) fn matches(
        &mut self,
        scope: &Scope,
        mut each: impl FnMut(&Record<'_>),
    ) -> Result<(), QueryError> {
        let mut scratch = Scratch::new();
        self.run(scope, |record| {
            if scope.range.contains(record.time) && scope.matcher.matches(record, &mut scratch) {
                each(record);
            }
        })
    }

    fn file(
        &mut self,
        file: &JournalFile,
        scope: &Scope,
        parser: &mut Parser,
        each: &mut impl FnMut(&Record<'_>),
    ) -> Result<(), QueryError> {
        let prefilter = scope.matcher.raw_prefilter();
        let may_match = |raw: &[u8]| prefilter.is_none_or(|p| p.may_match(raw));
        let mut grams = prefilter.map(|p| (p, self.known.grams.of(file.source())));
        let mut frames = file.frames();
        frames.pass_over(self.arrived_after);
        let mut step_at = self.trailer.bytes_scanned + STEP_BYTES;
        // Where the last frame is, if its last record was not read.
        let mut unread = None;
        let mut span: Option<(Timestamp, Timestamp)> = None;
        loop {
            if let Some((prefilter, grams)) = &mut grams {
                unread = grams.pass_over(&mut frames, prefilter).or(unread);
            }
            match frames.next() {
                Ok(None) => break,
                Ok(Some(frame)) => {
                    self.trailer.bytes_scanned += frame.payload().len() as u64;
                    unread = Some(frame.offset());
                    if let Some((_, grams)) = &mut grams {
                        grams.add(&frame);
                    }
                    if may_match(frame.payload()) {
                        for (index, entry) in frame.entries().enumerate() {
                            if index % CHECK_ROWS == CHECK_ROWS - 1 {
                                step_at = 0;
                                let (bytes, rows) = (self.trailer.bytes_scanned, self.trailer.rows);
                                self.progress.step(bytes, rows, self.out)?;
                            }
                            if may_match(entry.raw) {
                                let record = parser.parse(&entry);
                                self.known.newest.note(record.time);
                                let (from, to) = span.unwrap_or((record.time, record.time));
                                span = Some((from.min(record.time), to.max(record.time)));
                                each(&record);
                            }
                        }
                    }
                }
                Err(error) => {
                    self.trailer.miss(format_args!("{}: {error}", file.path()));
                    break;
                }
            }
            if self.trailer.bytes_scanned >= step_at {
                step_at = self.trailer.bytes_scanned + STEP_BYTES;
                self.progress
                    .step(self.trailer.bytes_scanned, self.trailer.rows, self.out)?;
            }
        }
        self.trailer.miss_damages(&frames.into_damages());
        match (grams, span) {
            (Some((_, grams)), _) => grams.finish(),
            (None, Some(span)) if self.arrived_after.is_none() => {
                self.known.spans.note(file.source(), span);
            }
            (None, _) => {}
        }
        if let Some(at) = unread {
            self.note_last(file, at, parser);
        }
        Ok(())
    }

    /// The last record of a file tells how new the data is, whatever is looked for.
    fn note_last(&self, file: &JournalFile, frame_at: u64, parser: &mut Parser) {
        let mut frames = file.frames_from(frame_at);
        // What cannot be read was named when it was read first.
        if let Ok(Some(frame)) = frames.next()
            && let Some(entry) = frame.entry(frame.count() - 1)
        {
            self.known.newest.note(parser.parse(&entry).time);
        }
    }
}

/// A row on its way out, and whether it matches or is only near a match.
pub(super) type Row = (Key, Box<[u8]>, bool);

/// The journal's rows in order, a window at a time.
pub(super) struct JournalRows {
    waiting: VecDeque<Row>,
    /// For the rows that wait.
    charge: Charge,
    start: Start,
    is_last: bool,
}

impl JournalRows {
    pub(super) fn new(search: &Search, view: &View) -> JournalRows {
        JournalRows {
            waiting: VecDeque::new(),
            charge: Charge::default(),
            start: Start::of(search),
            is_last: view.journal.is_empty(),
        }
    }

    /// The key of the next row.
    pub(super) fn peek(
        &mut self,
        search: &Search,
        pass: &mut Pass<'_>,
    ) -> Result<Option<Key>, QueryError> {
        if self.waiting.is_empty() && !self.is_last {
            self.fill(search, pass)?;
        }
        Ok(self.waiting.front().map(|(key, ..)| *key))
    }

    /// The next row, after [`JournalRows::peek`].
    pub(super) fn pop(&mut self) -> Option<Row> {
        self.waiting.pop_front()
    }

    fn fill(&mut self, search: &Search, pass: &mut Pass<'_>) -> Result<(), QueryError> {
        let rows_max = if search.has_context() {
            usize::MAX
        } else {
            search
                .limit
                .and_then(|l| usize::try_from(l).ok())
                .unwrap_or(usize::MAX)
        };
        let bytes_max = pass.out.share(WINDOW_SHARE, WINDOW_BYTES_MAX);
        let mut window = Window::new(search.direction, rows_max.max(1), bytes_max);
        let mut charge = pass.out.charge();
        let mut scratch = Scratch::new();
        let mut buffer = Vec::new();
        let (missing, missing_count) = (pass.trailer.missing.len(), pass.trailer.missing_count);
        let has_passed = self.start.behind != search.behind;
        let start = &self.start;
        let around;
        let scope = if search.has_context() {
            around = search
                .scope
                .around()
                .map_err(|e| QueryError::Impossible(e.message))?;
            &around
        } else {
            &search.scope
        };
        pass.run(scope, |record| {
            let key = Key {
                time: record.time,
                id: record.id,
            };
            if !search.looks_at(key.time) || !start.is_before(key) {
                return;
            }
            let is_match = search.scope.matcher.matches(record, &mut scratch);
            let mut is_around =
                || search.has_context() && scope.matcher.matches(record, &mut scratch);
            if (is_match || is_around()) && window.admits(key) {
                buffer.clear();
                search.write_row(record, &mut buffer);
                let row: Box<[u8]> = buffer.as_slice().into();
                window.insert(key, (row, is_match), buffer.len());
                // The pass ends soon if there is no more memory.
                charge.set_soon(window.bytes());
            }
        })?;
        pass.out.take(&mut charge, window.bytes())?;
        self.charge = charge;
        if has_passed {
            // What is missing was named by the first pass.
            pass.trailer.missing.truncate(missing);
            pass.trailer.missing_count = missing_count;
        }
        self.is_last = !window.has_overflowed();
        self.waiting.extend(
            window
                .into_rows()
                .map(|(key, (row, is_match))| (key, row, is_match)),
        );
        if let Some((key, ..)) = self.waiting.back() {
            self.start.behind = Some(*key);
        }
        Ok(())
    }
}
