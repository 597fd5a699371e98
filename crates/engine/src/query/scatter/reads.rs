//! Readings over all nodes: rows merged in order, tables added up.

use logpond_cluster::NodeId;
use logpond_cluster::question::{Question, Task};
use logpond_record::{Id, SourceId, TimeRange, Timestamp};
use logpond_search::order::{Direction, Key};
use logpond_segment::sources::SourceSet;
use logpond_segment::wire::Decoder;

use super::super::aggregates::Table;
use super::super::journal_rows::Row;
use super::super::output::Output;
use super::super::positions::{Positions, Region};
use super::super::question::Request;
use super::super::reads::{Reads, Visit};
use super::super::window::is_before;
use super::super::{QueryError, Scope, Search, Trailer};
use super::calls::{Calls, TaskOutcome};
use super::gather::Participants;
use super::streams::{Remainder, Stream, StreamStep};

/// How many times the bytes of a table between nodes it takes in memory, at most mostly.
const DECODED_TIMES: usize = 4;

impl Reads for Participants<'_> {
    fn each_row(
        &self,
        search: &Search,
        out: &mut Output,
        trailer: &mut Trailer,
        visit: Visit<'_>,
    ) -> Result<(), QueryError> {
        let (question, tasks) = self.question(search.scope.range);
        let mut merge = Merge {
            all: self,
            search,
            question,
            streams: Vec::new(),
            positions: Positions::default(),
            broken: Vec::new(),
        };
        merge.begin(tasks, search.behind, out)?;
        while let Some(row) = merge.pop(out, trailer)? {
            if !visit(row, out, trailer)? {
                break;
            }
        }
        // What was cut off was in order up to there.
        for stream in std::mem::take(&mut merge.streams) {
            merge.count(stream);
        }
        merge.note_broken();
        if !search.is_beside {
            self.note_positions(merge.positions);
        }
        self.note(&merge.question);
        Ok(())
    }

    fn surroundings(
        &self,
        search: &Search,
        matches: &[Timestamp],
        out: &mut Output,
        trailer: &mut Trailer,
    ) -> Result<Option<Vec<TimeRange>>, QueryError> {
        let (mut question, tasks) = self.question(search.scope.range);
        let request = Request::Surroundings(search, matches);
        let mut within: Option<Vec<TimeRange>> = None;
        let mut calls = Calls::start(self, &request, tasks);
        while let Some(done) = calls.next(&mut question, out)? {
            // Without one the bounds of the others do.
            let TaskOutcome::Opened(_, opening) = done else {
                continue;
            };
            // Each node's ranges hold enough rows of its own; so what is in all of them does of all.
            if let Some(ranges) = opening.ranges {
                within = Some(match within {
                    Some(before) => common(&before, &ranges),
                    None => ranges,
                });
            }
            let read = opening.receipt.map(|receipt| receipt.trailer.bytes_scanned);
            trailer.bytes_scanned += read.unwrap_or(0);
        }
        Ok(within)
    }

    fn count(
        &self,
        search: &Search,
        out: &mut Output,
        trailer: &mut Trailer,
    ) -> Result<u64, QueryError> {
        let before = trailer.rows;
        self.add_up(
            &Request::Count(search),
            search.scope.range,
            out,
            trailer,
            |_, _| Ok(()),
        )?;
        Ok(trailer.rows - before)
    }

    fn table<T: Table>(
        &self,
        scope: &Scope,
        empty: &T,
        out: &mut Output,
        trailer: &mut Trailer,
    ) -> Result<T, QueryError> {
        let mut table = empty.clone();
        let mut charge = out.charge();
        let request = Request::Table(scope, empty);
        self.add_up(&request, scope.range, out, trailer, |bytes, out| {
            // The bytes of a node's answer take some times as much decoded.
            out.take(&mut charge, table.bytes() + DECODED_TIMES * bytes.len())?;
            let mut from = Decoder::bare(bytes);
            let merged = table.merge_encoded(&mut from).and_then(|()| from.finish());
            merged.map_err(|error| QueryError::Impossible(error.to_string()))?;
            Ok(out.take(&mut charge, table.bytes())?)
        })?;
        // For as long as the answer is made of it.
        charge.leave();
        Ok(table)
    }
}

impl Participants<'_> {
    /// Adds up what all nodes have counted; `add` takes their tables, each once.
    fn add_up(
        &self,
        request: &Request<'_>,
        range: TimeRange,
        out: &mut Output,
        trailer: &mut Trailer,
        mut add: impl FnMut(&[u8], &mut Output) -> Result<(), QueryError>,
    ) -> Result<(), QueryError> {
        let (mut question, mut tasks) = self.question(range);
        while !tasks.is_empty() {
            let mut undone = SourceSet::new();
            let mut calls = Calls::start(self, request, tasks);
            while let Some(done) = calls.next(&mut question, out)? {
                let (task, opening) = match done {
                    TaskOutcome::Opened(task, opening) => (task, opening),
                    TaskOutcome::Undone(task) => {
                        undone.union_with(&task.share.sources);
                        continue;
                    }
                };
                // Nothing of a task counts before its receipt.
                let receipt = opening.receipt;
                let Some(receipt) = receipt.filter(|r| question.receipt(task.id, &r.sources))
                else {
                    question.failed(task.id);
                    undone.union_with(&task.share.sources);
                    continue;
                };
                if let Some(table) = opening.table {
                    add(&table, out)?;
                }
                self.add_trailer(task.node, receipt.trailer, trailer);
            }
            tasks = if undone.is_empty() {
                Vec::new()
            } else {
                self.plan_again(&mut question, &undone)
            };
        }
        self.note(&question);
        Ok(())
    }

    /// Adds what a node has counted and could not read.
    fn add_trailer(&self, node: NodeId, mut part: Trailer, trailer: &mut Trailer) {
        if node != self.cluster.nodes.own() {
            let name = self.cluster.nodes.name(node);
            part.missing
                .iter_mut()
                .for_each(|what| *what = format!("{name}: {what}"));
        }
        trailer.newest = trailer.newest.max(part.newest);
        trailer.add(part);
    }
}

/// Rows of several nodes on their way into one order.
struct Merge<'a> {
    all: &'a Participants<'a>,
    search: &'a Search,
    question: Question,
    streams: Vec<Stream>,
    /// What a follower need not show any more.
    positions: Positions,
    /// Streams that broke.
    broken: Vec<Remainder>,
}

impl Merge<'_> {
    /// Has these tasks done, from behind a row on; what is not is planned again, as long as there are
    /// nodes for it.
    fn begin(
        &mut self,
        mut tasks: Vec<Task>,
        behind: Option<Key>,
        out: &mut Output,
    ) -> Result<(), QueryError> {
        let mut search = self.search.narrowed(self.search.within.clone());
        search.behind = behind;
        search.wants_progress = false;
        let request = Request::Rows(&search);
        loop {
            self.positions.finish(self.question.pruned());
            let mut undone = SourceSet::new();
            let mut calls = Calls::start(self.all, &request, tasks);
            while let Some(done) = calls.next(&mut self.question, out)? {
                match done {
                    TaskOutcome::Opened(task, opening) => {
                        self.streams.push(Stream::new(task, *opening, behind));
                    }
                    TaskOutcome::Undone(task) => undone.union_with(&task.share.sources),
                }
            }
            if undone.is_empty() {
                return Ok(());
            }
            tasks = self.all.plan_again(&mut self.question, &undone);
        }
    }

    /// The next row of all.
    fn pop(&mut self, out: &mut Output, trailer: &mut Trailer) -> Result<Option<Row>, QueryError> {
        self.fill(out, trailer)?;
        let mut first: Option<(Key, usize)> = None;
        for (at, stream) in self.streams.iter().enumerate() {
            if let Some((key, ..)) = &stream.head
                && first.is_none_or(|(best, _)| self.is_before(*key, best))
            {
                first = Some((*key, at));
            }
        }
        let Some((key, at)) = first else {
            return Ok(None);
        };
        self.streams[at].last = Some(key);
        Ok(self.streams[at].head.take())
    }

    /// Takes note that a share was read, to its end or as far as was wanted.
    fn count(&mut self, stream: Stream) {
        self.question.receipt(stream.task, &stream.sources);
        self.all.note_batches(&stream.batches);
        let mut whole = stream.sources;
        // What grew while it was read may have got rows before those behind which it went on.
        let broken = self.broken.iter().flat_map(|undone| &undone.growing);
        let grown: Vec<SourceId> = broken.map(|(source, _)| *source).collect();
        let again = grown.iter().map(|source| (*source, Id::MAX));
        for (source, last) in stream.growing.iter().copied().chain(again) {
            if !whole.contains(source) {
                continue;
            }
            whole = whole.without(&SourceSet::from_iter([source]));
            let region = match stream.behind.filter(|_| grown.contains(&source)) {
                Some(behind) => Region::read(last, behind, self.search.direction.reversed()),
                None => Region::arrived(last),
            };
            self.positions.pass(source, region);
        }
        self.positions.finish(&whole);
    }

    /// Takes note of what was read of the shares that broke and nobody went on with.
    fn note_broken(&mut self) {
        for Remainder {
            sources,
            last,
            growing,
            batches,
        } in std::mem::take(&mut self.broken)
        {
            let Some(last) = last else { continue };
            // Of these some were shown: what was sent again of them is not, and the rest comes with them.
            self.all.note_batches(&batches);
            for source in sources.iter() {
                let grew = growing.iter().find(|(name, _)| *name == source);
                let up_to = grew.map_or(Id::MAX, |(_, up_to)| *up_to);
                let region = Region::read(up_to, last, self.search.direction);
                self.positions.pass(source, region);
            }
        }
    }

    fn is_before(&self, a: Key, b: Key) -> bool {
        let direction: Direction = self.search.direction;
        is_before(direction, a, b)
    }

    /// Reads on until each stream has a row or has ended; goes on elsewhere with those that broke.
    fn fill(&mut self, out: &mut Output, trailer: &mut Trailer) -> Result<(), QueryError> {
        let mut at = 0;
        while at < self.streams.len() {
            if self.streams[at].head.is_some() {
                at += 1;
                continue;
            }
            match self.streams[at].next() {
                StreamStep::Row(row) => self.streams[at].head = Some(row),
                StreamStep::Done(receipt) => {
                    let stream = self.streams.swap_remove(at);
                    // Rows count when they leave.
                    let part = Trailer {
                        rows: 0,
                        ..receipt.trailer
                    };
                    self.all.add_trailer(stream.node, part, trailer);
                    self.count(stream);
                }
                StreamStep::Undone => {
                    let stream = self.streams.swap_remove(at);
                    self.question.failed(stream.task);
                    let undone = stream.undone();
                    let tasks = self.all.plan_again(&mut self.question, &undone.sources);
                    let behind = undone.last;
                    self.broken.push(undone);
                    self.begin(tasks, behind, out)?;
                }
            }
        }
        Ok(())
    }
}

/// What is in both of two lists of ranges, each in order without overlaps.
fn common(a: &[TimeRange], b: &[TimeRange]) -> Vec<TimeRange> {
    let mut both = Vec::new();
    let (mut at_a, mut at_b) = (0, 0);
    while let (Some(x), Some(y)) = (a.get(at_a), b.get(at_b)) {
        let (from, to) = (x.from.max(y.from), x.to.min(y.to));
        if from < to {
            both.push(TimeRange { from, to });
        }
        if x.to <= y.to { at_a += 1 } else { at_b += 1 }
    }
    both
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_ranges() {
        let range = |(from, to)| TimeRange {
            from: Timestamp(from),
            to: Timestamp(to),
        };
        let list = |list: &[(i64, i64)]| list.iter().copied().map(range).collect::<Vec<_>>();
        let both = common(
            &list(&[(0, 5), (8, 20)]),
            &list(&[(3, 9), (10, 11), (19, 30)]),
        );
        assert_eq!(both, list(&[(3, 5), (8, 9), (10, 11), (19, 20)]));
        assert_eq!(common(&[], &list(&[(3, 9)])), []);
    }
}
