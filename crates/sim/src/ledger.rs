//! What was handed over and what was promised: the judge of every check.

use std::collections::{BTreeMap, BTreeSet};

use logpond_record::{Id, SourceId};
use logpond_segment::file::SourceEntry;
use logpond_segment::tally::Tally;

/// A row as the pond holds it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row {
    /// Its id.
    pub id: Id,
    /// Its bytes; the workload makes every row's bytes unique.
    pub raw: Vec<u8>,
}

/// Everything known about the rows of a run.
#[derive(Debug, Default)]
pub struct Ledger {
    attempted: BTreeSet<Vec<u8>>,
    pending: Vec<(u64, Row)>,
    acknowledged: BTreeMap<Vec<u8>, Id>,
    tallies: BTreeMap<SourceId, Tally>,
}

impl Ledger {
    /// Notes a row before it is handed over.
    pub fn attempt(&mut self, raw: &[u8]) {
        let new = self.attempted.insert(raw.to_vec());
        assert!(new, "the workload must make every row unique");
    }

    /// Notes a row that was taken; it is durable once the writer's mark reaches `mark`.
    pub fn taken(&mut self, mark: u64, row: Row) {
        self.pending.push((mark, row));
    }

    /// Notes how far the writer's promises go; gives the number of rows acknowledged by it.
    pub fn promise(&mut self, mark: u64) -> u64 {
        let before = self.acknowledged.len();
        for (_, row) in self.pending.extract_if(.., |(m, _)| *m <= mark) {
            self.acknowledged.insert(row.raw, row.id);
        }
        (self.acknowledged.len() - before) as u64
    }

    /// Notes an error or a crash: what was not promised may be lost, but need not.
    pub fn give_up_pending(&mut self) {
        self.pending.clear();
    }

    /// Notes that readers were shown a row: from now on it must stay.
    pub fn shown(&mut self, row: Row) {
        assert!(
            self.attempted.contains(&row.raw),
            "a reader saw an invented row: {row:?}"
        );
        let known = self.acknowledged.insert(row.raw.clone(), row.id);
        assert!(
            known.is_none_or(|id| id == row.id),
            "a row changed its id: {row:?}"
        );
    }

    /// Notes a closed source; its content never changes (R2).
    pub fn closed(&mut self, source: SourceId, tally: Tally) {
        let known = self.tallies.insert(source, tally);
        assert!(known.is_none_or(|known| known == tally), "{source} changed");
    }

    /// Notes what a segment says of a source: it must be what the journal said of it (R4).
    pub fn listed(&self, entry: &SourceEntry) {
        let known = self.tallies.get(&entry.source);
        let known = known.map(|tally| (tally.rows, tally.hash_sum));
        let source = entry.source;
        assert_eq!(known, Some((entry.rows, entry.hash)), "{source} changed");
    }

    /// Compares what journal and segments hold with what they must and what they may hold; gives
    /// the number of rows that were looked at.
    pub fn check(&self, rows: &[Row]) -> u64 {
        let mut found = BTreeMap::new();
        for row in rows {
            assert!(self.attempted.contains(&row.raw), "invented: {row:?}");
            let twice = found.insert(&*row.raw, row.id);
            assert!(twice.is_none(), "there twice: {row:?} and {twice:?}");
        }
        for (raw, id) in &self.acknowledged {
            let text = String::from_utf8_lossy(raw);
            assert_eq!(
                found.get(&**raw),
                Some(id),
                "acknowledged and not there: {text}"
            );
        }
        found.len() as u64
    }
}
