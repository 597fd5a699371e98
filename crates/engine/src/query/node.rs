//! Answers another node's question about a share of what this node holds.

use std::collections::BTreeMap;

use logpond_record::{Id, SourceId, TimeRange, Timestamp};
use logpond_search::order::Key;
use logpond_segment::batches::BatchSet;
use logpond_segment::wire::Encoder;

use super::aggregates::Table;
use super::frames::{self, JournalProgress, Receipt};
use super::node_follow::NodeFollower;
use super::output::{Cancellation, Output};
use super::pond::{EngineSnapshot, LocalEngine};
use super::question::{self, Kind, Question, QuestionError};
use super::reads::Reads;
use super::view::View;
use super::{QueryError, Scope, Search, Trailer, files, retries};

impl LocalEngine {
    /// Reads a question of another node.
    ///
    /// # Errors
    /// When the bytes are none.
    pub fn read_question(bytes: &[u8]) -> Result<Question, QuestionError> {
        question::decode(bytes)
    }

    /// Answers in frames: rows or a table, then a receipt; or that something is not there, or why
    /// there is no answer.
    pub fn answer_node(&self, question: &Question, out: &mut Output) {
        out.stay_alive(frames::ALIVE, frames::ALIVE_EVERY);
        // Whoever asked is gone: there is nobody to tell.
        let _ = self.answer_question(question, out);
    }

    fn answer_question(&self, question: &Question, out: &mut Output) -> Result<(), Cancellation> {
        match out.begin(&self.budget) {
            Ok(()) => {}
            Err(QueryError::Cancelled) => return Err(Cancellation),
            Err(error) => return frames::write_failed(&error.to_string(), out),
        }
        if let Kind::Follow(search, positions) = &question.kind {
            let positions = positions.clone();
            return NodeFollower::new(self, search, positions).run(out);
        }
        let view = View::of_share(
            &*self.disk,
            &self.visible,
            &self.live,
            (&question.share, &question.open),
        );
        let view = match view {
            Ok(Some(view)) => view,
            Ok(None) => return frames::write_gone(out),
            Err(error) => return frames::write_failed(&error.to_string(), out),
        };
        // All files are open: from here on nobody can take them away.
        frames::write_alive(out)?;
        if let Kind::Rows(search) = &question.kind {
            frames::write_passed(&growing(&view, question, search.wants_positions), out)?;
        }
        let look = EngineSnapshot {
            engine: self,
            view,
            seen: 0,
        };
        let mut trailer = Trailer::default();
        // A node of a cluster names only what it cannot read, which may be of any time.
        look.view.note_missing(&[TimeRange::ALL], &mut trailer);
        let answered = answer(&look, &question.kind, out, &mut trailer);
        match answered.map_err(|error| out.explained(error)) {
            Ok(()) => {
                trailer.newest = self.newest_time();
                let receipt = Receipt {
                    sources: question.share.sources.clone(),
                    trailer,
                };
                frames::write_receipt(&receipt, out)
            }
            Err(QueryError::Cancelled) => Err(Cancellation),
            Err(error) => frames::write_failed(&error.to_string(), out),
        }
    }
}

fn answer(
    look: &EngineSnapshot<'_>,
    kind: &Kind,
    out: &mut Output,
    trailer: &mut Trailer,
) -> Result<(), QueryError> {
    match kind {
        Kind::Rows(search) => rows(look, search, out, trailer),
        Kind::Count(search) => {
            trailer.rows = look.count(search, out, trailer)?;
            Ok(())
        }
        Kind::Surroundings(search, matches) => {
            let ranges = look.surroundings(search, matches, out, trailer)?;
            Ok(frames::write_ranges(ranges.as_deref(), out)?)
        }
        Kind::Table(scope, empty) => table(look, scope, empty, out, trailer),
        // It has no end that a receipt could tell of.
        Kind::Follow(..) => Ok(()),
        Kind::Files => files(look, out, trailer),
    }
}

/// Emits the files, as rows in no order.
fn files(
    look: &EngineSnapshot<'_>,
    out: &mut Output,
    trailer: &mut Trailer,
) -> Result<(), QueryError> {
    for file in files::all(look.engine) {
        trailer.rows += 1;
        let key = Key {
            time: Timestamp(0),
            id: Id::MIN,
        };
        let file = file.to_string().into_bytes();
        frames::write_row(&(key, file.into(), true), out)?;
    }
    Ok(())
}

/// How far files that grow are read: whoever follows goes on there.
fn growing(view: &View, question: &Question, is_followed: bool) -> JournalProgress {
    let sources = &question.share.journal;
    let open = view.snapshot.open.iter();
    let read = open.filter(|file| sources.contains(file.source));
    let read = read.map(|file| (file.source, file.summary.last));
    // Of these only so much is read, whatever has become of them.
    let mut growing: BTreeMap<SourceId, Id> = read.collect();
    let planned = question
        .open
        .iter()
        .filter(|(source, _)| sources.contains(**source));
    growing.extend(planned.map(|(source, reach)| (*source, reach.last)));
    JournalProgress {
        growing: growing.into_iter().collect(),
        batches: if is_followed {
            retries::originals_in(view, sources)
        } else {
            BatchSet::default()
        },
        ..JournalProgress::default()
    }
}

/// Emits rows up to the match behind the limit, which says that there are more.
fn rows(
    look: &EngineSnapshot<'_>,
    search: &Search,
    out: &mut Output,
    trailer: &mut Trailer,
) -> Result<(), QueryError> {
    let limit = search.limit.filter(|_| !search.has_context());
    let mut matches = 0;
    look.each_row(search, out, trailer, &mut |row, out, _| {
        frames::write_row(&row, out)?;
        matches += u64::from(row.2);
        Ok(limit.is_none_or(|limit| matches <= limit))
    })
}

fn table<T: Table>(
    look: &EngineSnapshot<'_>,
    scope: &Scope,
    empty: &T,
    out: &mut Output,
    trailer: &mut Trailer,
) -> Result<(), QueryError> {
    let table = look.table(scope, empty, out, trailer)?;
    let mut message = Encoder::default();
    table.encode(&mut message);
    Ok(frames::write_table(message, out)?)
}
