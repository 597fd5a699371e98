//! Tables of the segment part of a view: what is known of earlier questions, and the rest row group by row
//! group, side by side.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use logpond_record::Timestamp;
use logpond_search::scan::GroupScan;

use super::aggregates::Table;
use super::kept::{Cache, CacheEntry, CacheKey};
use super::output::Output;
use super::progress::Progress;
use super::segment_rows::{
    Group, GroupSelection, OpenSegments, SegmentPass, SummaryKind, each_block,
};
use super::{QueryError, Trailer};
use logpond_host::memory::Charge;

/// A table that is to be filled.
pub(super) struct SegmentTables<'a, T> {
    pub(super) pass: SegmentPass<'a>,
    pub(super) kept: &'a Cache,
    /// The table as it begins.
    pub(super) empty: &'a T,
}

/// The tables of one thread.
struct ThreadTables<T> {
    /// Of row groups that count as a whole.
    whole: T,
    /// Of the others.
    others: T,
    charge: Charge,
}

impl<T: Table> ThreadTables<T> {
    fn bytes(&self) -> usize {
        self.whole.bytes() + self.others.bytes()
    }
}

/// Statistics of a table that is being filled.
struct FillStats {
    /// Whether what row groups add is small enough to be kept, as far as it was seen.
    is_small: AtomicBool,
    /// Rows that were selected in row groups that count as a whole.
    whole_rows: AtomicU64,
}

impl<T: Table> SegmentTables<'_, T> {
    /// The table of all row groups.
    pub(super) fn fill(
        &self,
        out: &mut Output,
        trailer: &mut Trailer,
        progress: &mut Progress,
    ) -> Result<T, QueryError> {
        let mut chosen = self.pass.choose(trailer);
        let summary = self.empty.told_by();
        let told = summary.map(|kind| self.add_summaries(kind, &mut chosen, trailer));
        if self.empty.wants_newest_first() {
            chosen
                .groups
                .sort_by_key(|group| std::cmp::Reverse(group.max));
        }
        let asked = self.together(&chosen);
        let known = asked.as_ref().and_then(|(asked, _)| self.kept.get(asked));
        if let Some(known) = &known {
            let GroupSelection { opened, groups } = &mut chosen;
            groups.retain(|group| !opened.is_whole(group, self.pass.scope.range));
            trailer.rows += known.rows;
        }
        let missing = trailer.missing.len();
        let seen = FillStats {
            is_small: AtomicBool::new(true),
            whole_rows: AtomicU64::new(0),
        };
        let lease = out.lease().map(Arc::clone);
        let new = || ThreadTables {
            whole: self.empty.clone(),
            others: self.empty.clone(),
            charge: Charge::new(lease.as_ref()),
        };
        let visit = |scan: &mut GroupScan<'_>, group: &Group, filled: &mut ThreadTables<T>| {
            self.add_group(&chosen.opened, scan, group, filled, &seen)
        };
        let tables = self.pass.run(&chosen, out, trailer, progress, new, visit)?;
        let (mut whole, mut others, mut charges) = (Vec::new(), Vec::new(), Vec::new());
        for filled in tables {
            whole.push(filled.whole);
            others.push(filled.others);
            charges.push(filled.charge);
        }
        let mut table = match (known, asked) {
            (Some(known), _) => {
                let mut table = self.empty.clone();
                table.add_part(&*known.part);
                table
            }
            (None, Some(asked)) if trailer.missing.len() == missing => {
                let rows = seen.whole_rows.into_inner();
                self.keep(asked, self.merged(whole), rows)
            }
            _ => self.merged(whole),
        };
        table.merge(self.merged(others));
        if let Some(told) = told {
            table.merge(told);
        }
        drop(charges);
        let mut charge = out.charge();
        out.take(&mut charge, table.bytes())?;
        // For as long as the answer is made of it.
        charge.leave();
        Ok(table)
    }

    /// The table of the segments whose records are all wanted, as far as their summaries tell enough; their
    /// row groups are not read.
    fn add_summaries(
        &self,
        kind: SummaryKind,
        chosen: &mut GroupSelection<'_>,
        trailer: &mut Trailer,
    ) -> T {
        let GroupSelection { opened, groups } = chosen;
        let mut table = self.empty.clone();
        let mut told = HashSet::new();
        for segment in opened.whole_segments(self.pass.scope) {
            let summary = opened.summary(segment, kind, trailer);
            if let Some(summary) = summary.filter(|summary| table.add_summary(summary)) {
                trailer.rows += summary.rows();
                told.insert(segment);
            }
        }
        groups.retain(|group| !told.contains(&group.segment()));
        table
    }

    fn merged(&self, tables: Vec<T>) -> T {
        let mut tables = tables.into_iter();
        let mut all = tables.next().unwrap_or_else(|| self.empty.clone());
        tables.for_each(|table| all.merge(table));
        all
    }

    /// What is asked of all row groups that count as a whole, with the time of their first row, if it can be
    /// kept.
    fn together(
        &self,
        GroupSelection { opened, groups }: &GroupSelection<'_>,
    ) -> Option<(CacheKey, Timestamp)> {
        let is_whole = |group: &&Group| opened.is_whole(group, self.pass.scope.range);
        let whole: Vec<&Group> = groups.iter().filter(is_whole).collect();
        let from = whole.iter().map(|group| group.min).min()?;
        let to = whole.iter().map(|group| group.max).max()?;
        let place = |group: &&Group| (opened.segment_id(group), group.number());
        let asked = CacheKey {
            question: self.question(from, to)?,
            groups: whole.iter().map(place).collect(),
        };
        (whole.len() > 1).then_some((asked, from))
    }

    /// The filter, and what the table is of.
    fn question(&self, from: Timestamp, to: Timestamp) -> Option<Box<[u8]>> {
        let question = self.empty.question(from, to)?;
        let filter = self.pass.scope.text.as_bytes();
        Some([filter, b"\0", &question].concat().into())
    }

    /// Keeps what all row groups that count as a whole add to the table.
    fn keep(&self, (asked, from): (CacheKey, Timestamp), table: T, rows: u64) -> T {
        match table.into_part(from) {
            Ok((part, bytes)) => {
                let mut table = self.empty.clone();
                table.add_part(&*part);
                self.kept.put(asked, CacheEntry { part, rows }, bytes);
                table
            }
            Err(table) => *table,
        }
    }

    /// Adds the selected rows of a row group to a table: what is known of an earlier question that they
    /// add, or what is read of them. Gives how many they are.
    fn add_group(
        &self,
        opened: &OpenSegments<'_>,
        scan: &mut GroupScan<'_>,
        group: &Group,
        filled: &mut ThreadTables<T>,
        seen: &FillStats,
    ) -> io::Result<u64> {
        if !opened.is_whole(group, self.pass.scope.range) {
            let beside = filled.whole.bytes();
            let rows = add(scan, &mut filled.others, beside, &mut filled.charge)?;
            filled.others.end_group();
            return Ok(rows);
        }
        let rows = self.add_whole(scan, group, filled, seen)?;
        let bytes = filled.bytes();
        filled.charge.set_soon(bytes);
        seen.whole_rows.fetch_add(rows, Ordering::Relaxed);
        Ok(rows)
    }

    fn add_whole(
        &self,
        scan: &mut GroupScan<'_>,
        group: &Group,
        filled: &mut ThreadTables<T>,
        seen: &FillStats,
    ) -> io::Result<u64> {
        let (table, charge) = (&mut filled.whole, &mut filled.charge);
        let beside = filled.others.bytes();
        let is_small = seen.is_small.load(Ordering::Relaxed);
        let question = is_small.then(|| self.question(group.min, group.max));
        let Some(question) = question.flatten() else {
            let rows = add(scan, table, beside, charge)?;
            table.end_group();
            return Ok(rows);
        };
        let asked = CacheKey {
            groups: [(scan.segment_id(), group.number())].into(),
            question,
        };
        if let Some(CacheEntry { part, rows }) = self.kept.get(&asked) {
            table.add_part(&*part);
            return Ok(rows);
        }
        let mut alone = self.empty.clone();
        let rows = add(scan, &mut alone, beside + table.bytes(), charge)?;
        // One that ended for want of memory has not seen all.
        let is_known = scan.damages().is_empty() && !charge.is_refused();
        match alone.into_part(group.min) {
            Ok((part, bytes)) => {
                table.add_part(&*part);
                // Others will be too large, too.
                let is_small = self.kept.takes(bytes);
                seen.is_small.fetch_and(is_small, Ordering::Relaxed);
                if is_known {
                    self.kept.put(asked, CacheEntry { part, rows }, bytes);
                }
            }
            Err(alone) => table.merge(*alone),
        }
        Ok(rows)
    }
}

/// Adds the selected rows of a row group to a table, and takes the memory that it needs block by block, with
/// what the thread has beside. Ends early if there is none.
fn add<T: Table>(
    scan: &mut GroupScan<'_>,
    table: &mut T,
    beside: usize,
    charge: &mut Charge,
) -> io::Result<u64> {
    each_block(scan, |scan, selected| {
        table.add_block(scan, &selected)?;
        charge.set_soon(beside + table.bytes());
        Ok(!charge.is_refused())
    })
}
