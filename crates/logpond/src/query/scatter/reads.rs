//! Readings over all nodes: rows merged in order, tables added up.

use logpond_record::{Id, SourceId, TimeRange, Timestamp};
use logpond_search::order::{Direction, Key};
use logpond_segment::sources::SourceSet;
use logpond_segment::wire::Decoder;

use super::super::journal_rows::Row;
use super::super::output::Output;
use super::super::positions::{Positions, Region};
use super::super::question::Asked;
use super::super::reads::{Reads, Table, Visit};
use super::super::window::is_before;
use super::super::{QueryError, Scope, Search, Trailer};
use super::gather::Gathered;
use super::streams::{self, Next, REPLANS_MAX, Stream, Undone};

impl Reads for Gathered<'_> {
    fn each_row(
        &self,
        search: &Search,
        out: &mut Output,
        trailer: &mut Trailer,
        visit: Visit<'_>,
    ) -> Result<(), QueryError> {
        let mut merge = Merge {
            all: self,
            search,
            streams: Vec::new(),
            counted: SourceSet::new(),
            replans_left: REPLANS_MAX,
            positions: Positions::default(),
            broken: Vec::new(),
        };
        merge.plan(&self.target.wanted, search.behind);
        while let Some(row) = merge.pop(trailer) {
            if !visit(row, out, trailer)? {
                break;
            }
        }
        // What was cut off was in order up to there.
        for stream in std::mem::take(&mut merge.streams) {
            merge.count(stream);
        }
        merge.note_broken();
        self.note_positions(merge.positions);
        self.note_counted(merge.counted);
        Ok(())
    }

    fn surroundings(
        &self,
        search: &Search,
        matches: &[Timestamp],
        trailer: &mut Trailer,
    ) -> Result<Option<Vec<TimeRange>>, QueryError> {
        let cover = self.cover(&self.target.wanted, search.scope.range);
        let asked = Asked::Surroundings(search, matches);
        let (streams, _) = streams::open(self, cover.shares, &asked);
        let mut within: Option<Vec<TimeRange>> = None;
        for mut stream in streams {
            loop {
                match stream.next(self) {
                    // Each node's ranges hold enough rows of its own; so what is in all of them
                    // does of all.
                    Next::Ranges(Some(ranges)) => {
                        within = Some(match within {
                            Some(before) => common(&before, &ranges),
                            None => ranges,
                        });
                    }
                    Next::Done(receipt) => {
                        trailer.bytes_scanned += receipt.trailer.bytes_scanned;
                        break;
                    }
                    // The bounds of the others do.
                    Next::Undone => break,
                    _ => {}
                }
            }
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
            &Asked::Count(search),
            search.scope.range,
            out,
            trailer,
            |_| Ok(()),
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
        let asked = Asked::Table(scope, empty.kind());
        self.add_up(&asked, scope.range, out, trailer, |bytes| {
            let mut from = Decoder::bare(bytes);
            let merged = table.merge_encoded(&mut from).and_then(|()| from.finish());
            merged.map_err(|error| QueryError::Impossible(error.to_string()))
        })?;
        Ok(table)
    }
}

impl Gathered<'_> {
    /// Adds up what all nodes have counted; `add` takes their tables, each once.
    fn add_up(
        &self,
        asked: &Asked<'_>,
        range: TimeRange,
        out: &mut Output,
        trailer: &mut Trailer,
        mut add: impl FnMut(&[u8]) -> Result<(), QueryError>,
    ) -> Result<(), QueryError> {
        let mut counted = SourceSet::new();
        let mut open = self.target.wanted.clone();
        for _ in 0..=REPLANS_MAX {
            let cover = self.cover(&open, range);
            counted.union_with(&cover.pruned);
            let (streams, mut undone) = streams::open(self, cover.shares, asked);
            for mut stream in streams {
                out.check()?;
                // Nothing of a share counts before its receipt.
                let mut table = None;
                let receipt = loop {
                    match stream.next(self) {
                        Next::Table(bytes) => table = Some(bytes),
                        Next::Done(receipt) => break Some(receipt),
                        Next::Undone => break None,
                        Next::Row(_) | Next::Ranges(_) => {}
                    }
                };
                let Some(receipt) = receipt else {
                    undone.union_with(&stream.sources);
                    continue;
                };
                if let Some(table) = table {
                    add(&table)?;
                }
                counted.union_with(&receipt.sources);
                self.add_trailer(&stream, receipt.trailer, trailer);
            }
            open = undone;
            if open.is_empty() {
                break;
            }
        }
        self.note_counted(counted);
        Ok(())
    }

    /// Adds what a node has counted and could not read.
    fn add_trailer(&self, stream: &Stream, mut part: Trailer, trailer: &mut Trailer) {
        if stream.node != self.cluster.nodes.own() {
            let name = self.cluster.nodes.name(stream.node);
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
    all: &'a Gathered<'a>,
    search: &'a Search,
    streams: Vec<Stream>,
    counted: SourceSet,
    replans_left: usize,
    /// What a follower need not show any more.
    positions: Positions,
    /// Shares that broke.
    broken: Vec<Undone>,
}

impl Merge<'_> {
    /// Asks for these sources, from behind a row on. What nobody can be asked for is asked of
    /// others, as long as there are some.
    fn plan(&mut self, wanted: &SourceSet, behind: Option<Key>) {
        let mut open = wanted.clone();
        while !open.is_empty() {
            let cover = self.all.cover(&open, self.search.scope.range);
            self.counted.union_with(&cover.pruned);
            self.positions.finish(&cover.pruned);
            let mut search = self.search.narrowed(self.search.within.clone());
            search.behind = behind;
            search.wants_progress = false;
            let (streams, unasked) = streams::open(self.all, cover.shares, &Asked::Rows(&search));
            self.streams.extend(streams.into_iter().map(|mut stream| {
                stream.last = behind;
                stream.behind = behind;
                stream
            }));
            open = unasked;
            if self.replans_left == 0 {
                return;
            }
            self.replans_left -= usize::from(!open.is_empty());
        }
    }

    /// The next row of all.
    fn pop(&mut self, trailer: &mut Trailer) -> Option<Row> {
        self.fill(trailer);
        let mut first: Option<(Key, usize)> = None;
        for (at, stream) in self.streams.iter().enumerate() {
            if let Some((key, ..)) = &stream.head
                && first.is_none_or(|(best, _)| self.is_before(*key, best))
            {
                first = Some((*key, at));
            }
        }
        let (key, at) = first?;
        self.streams[at].last = Some(key);
        self.streams[at].head.take()
    }

    /// Takes note that a share was read, to its end or as far as was wanted.
    fn count(&mut self, stream: Stream) {
        self.counted.union_with(&stream.sources);
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
        for Undone {
            sources,
            last,
            growing,
        } in std::mem::take(&mut self.broken)
        {
            let Some(last) = last else { continue };
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
    fn fill(&mut self, trailer: &mut Trailer) {
        let mut at = 0;
        while at < self.streams.len() {
            if self.streams[at].head.is_some() {
                at += 1;
                continue;
            }
            match self.streams[at].next(self.all) {
                Next::Row(row) => self.streams[at].head = Some(row),
                Next::Done(receipt) => {
                    let stream = self.streams.swap_remove(at);
                    // Rows count when they leave.
                    let part = Trailer {
                        rows: 0,
                        ..receipt.trailer
                    };
                    self.all.add_trailer(&stream, part, trailer);
                    self.count(stream);
                }
                Next::Undone => {
                    let undone = self.streams.swap_remove(at).undone();
                    if self.replans_left > 0 {
                        self.replans_left -= 1;
                        self.plan(&undone.sources, undone.last);
                    }
                    self.broken.push(undone);
                }
                Next::Table(_) | Next::Ranges(_) => {}
            }
        }
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
        match x.to <= y.to {
            true => at_a += 1,
            false => at_b += 1,
        }
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
