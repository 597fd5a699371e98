//! Rows of several segments in the order of time.
//!
//! Invariants:
//! - Of each input at most one row group is open: its row groups are in order, and so are the rows of
//!   one time in them. So the memory is bounded by the number of inputs, also where all rows are of
//!   one instant.
//! - Every row of a source that is not left out comes once, whatever order the inputs have.

use std::sync::Arc;

use logpond_record::{Id, Incarnation, cast};

use super::BuildError;
use crate::batches::BatchSet;
use crate::disk::Disk;
use crate::file::{
    Directory, FileSummary, FinishedFile, Profile, ROW_GROUP_ROWS_MAX, SegmentFile, SegmentWriter,
    SourceEntry, Summaries,
};
use crate::overview::OverviewBuilder;
use crate::patterns::PatternTableBuilder;
use crate::rows::{Block, FieldCounts, Rows, RowsBuilder, memory_bytes};
use crate::timeline::TimelineBuilder;

/// Lines collected before a merge writes a row group.
const MERGE_BYTES: u64 = 16 << 20;

/// Marks a source whose rows another input gives, or nobody.
const LEFT_OUT: u32 = u32::MAX;

/// For each input, the place of its sources in the output's list; [`LEFT_OUT`] for those that an
/// earlier input has or that are not in the list, and for copies of batches that another source of the
/// output has.
pub(super) fn source_maps(inputs: &[SegmentFile], sources: &[SourceEntry]) -> Vec<Vec<u32>> {
    let mut taken = vec![false; sources.len()];
    let mut place = |entry: &SourceEntry| {
        let at = sources
            .binary_search_by_key(&entry.source, |s| s.source)
            .ok()?;
        let is_shadowed = sources[at].retry.is_some_and(|retry| retry.is_shadowed);
        let is_left_out = is_shadowed || std::mem::replace(&mut taken[at], true);
        (!is_left_out).then_some(cast::low_u32(at))
    };
    let map = |input: &SegmentFile| {
        input
            .manifest()
            .sources
            .iter()
            .map(|entry| place(entry).unwrap_or(LEFT_OUT))
            .collect()
    };
    inputs.iter().map(map).collect()
}

/// The row groups of all inputs, merged by time.
struct Merger<'a> {
    inputs: &'a [SegmentFile],
    directories: &'a [Directory],
    /// For each input, the place of its sources in the output's list.
    source_maps: Vec<Vec<u32>>,
    incarnations: Vec<Incarnation>,
    /// For each input, how many of its row groups were opened.
    opened: Vec<usize>,
    /// Inputs of which no row group is open and some are left, with the time at which the next one
    /// begins; the earliest last.
    waiting: Vec<(i64, usize)>,
    active: Vec<Group>,
}

/// A row group whose rows are being merged.
struct Group {
    input: usize,
    /// One entry per block.
    blocks: Vec<Block>,
    /// Block and row of each row, the earliest last.
    order: Vec<(u32, u32)>,
}

impl Group {
    fn next_key(&self, incarnations: &[Incarnation], source_map: &[u32]) -> Option<(i64, Id)> {
        let (block, row) = self.order.last()?;
        let rows = self.blocks[*block as usize].rows();
        let row = *row as usize;
        Some((rows.time[row], id_of(rows, row, incarnations, source_map)))
    }
}

fn id_of(rows: &Rows, row: usize, incarnations: &[Incarnation], source_map: &[u32]) -> Id {
    let source = source_map
        .get(rows.source[row] as usize)
        .copied()
        .unwrap_or(0);
    let incarnation = incarnations
        .get(source as usize)
        .copied()
        .unwrap_or_default();
    Id::new(
        cast::unsigned(rows.received[row].div_euclid(1000)),
        incarnation,
        cast::unsigned(rows.number[row]),
    )
}

impl<'a> Merger<'a> {
    /// Merges what the inputs have of some sources; `source_maps` say for each input where in their
    /// list its own are.
    fn new(
        inputs: &'a [SegmentFile],
        directories: &'a [Directory],
        sources: &[SourceEntry],
        source_maps: Vec<Vec<u32>>,
    ) -> Merger<'a> {
        let mut merger = Merger {
            inputs,
            directories,
            source_maps,
            incarnations: sources.iter().map(|s| s.source.incarnation).collect(),
            opened: vec![0; inputs.len()],
            waiting: Vec::new(),
            active: Vec::new(),
        };
        (0..inputs.len()).for_each(|input| merger.wait_for(input));
        merger
    }

    /// Puts an input without an open row group among those that wait, if it has one more.
    fn wait_for(&mut self, input: usize) {
        let groups = &self.directories[input].row_groups;
        if let Some(group) = groups.get(self.opened[input]) {
            let next = (group.time_bounds().0, input);
            let at = self.waiting.partition_point(|waiting| *waiting > next);
            self.waiting.insert(at, next);
        }
    }

    /// Appends the next row in time; `false` at the end.
    fn push_next(&mut self, builder: &mut RowsBuilder) -> Result<bool, BuildError> {
        loop {
            let next = self.first_active();
            let opens = self
                .waiting
                .last()
                .is_some_and(|(time, _)| next.is_none_or(|((t, _), _)| *time <= t));
            if opens {
                self.open_group()?;
                continue;
            }
            let Some((_, at)) = next else {
                return Ok(false);
            };
            self.push_from(at, builder);
            if self.active[at].order.is_empty() {
                let done = self.active.swap_remove(at);
                self.wait_for(done.input);
            }
            return Ok(true);
        }
    }

    fn first_active(&self) -> Option<((i64, Id), usize)> {
        let key =
            |group: &Group| group.next_key(&self.incarnations, &self.source_maps[group.input]);
        self.active
            .iter()
            .enumerate()
            .filter_map(|(at, group)| Some((key(group)?, at)))
            .min()
    }

    fn open_group(&mut self) -> Result<(), BuildError> {
        let Some((_, input)) = self.waiting.pop() else {
            return Ok(());
        };
        let number = self.opened[input];
        self.opened[input] += 1;
        let directory = &self.directories[input];
        let mut reader = self.inputs[input].row_group(directory, number);
        let mut blocks = Vec::new();
        for block in 0..directory.row_groups[number].blocks.len() {
            blocks.push(Block::new(reader.rows(block)?));
        }
        let mut order: Vec<(u32, u32)> = Vec::new();
        let map = &self.source_maps[input];
        for (block, rows) in blocks.iter().map(Block::rows).enumerate() {
            let taken = |row: &usize| map.get(rows.source[*row] as usize) != Some(&LEFT_OUT);
            order.extend(
                (0..rows.len())
                    .filter(taken)
                    .map(|row| (cast::low_u32(block), cast::low_u32(row))),
            );
        }
        if order.is_empty() {
            self.wait_for(input);
            return Ok(());
        }
        order.sort_by_cached_key(|(block, row)| {
            let rows = blocks[*block as usize].rows();
            let id = id_of(rows, *row as usize, &self.incarnations, map);
            std::cmp::Reverse((rows.time[*row as usize], id))
        });
        self.active.push(Group {
            input,
            blocks,
            order,
        });
        Ok(())
    }

    fn push_from(&mut self, at: usize, builder: &mut RowsBuilder) {
        let group = &mut self.active[at];
        let Some((block, row)) = group.order.pop() else {
            return;
        };
        let block = &mut group.blocks[block as usize];
        let row = row as usize;
        let map = &self.source_maps[group.input];
        let source = block.rows().source[row] as usize;
        let source = map.get(source).copied().unwrap_or(0);
        builder.append(block, &self.directories[group.input].schema, row, source);
    }
}

/// A file that a merge writes.
pub(super) struct Output<'o> {
    pub(super) disk: &'o dyn Disk,
    pub(super) id: Id,
    /// Where; not live there.
    pub(super) path: String,
    pub(super) profile: Profile,
    pub(super) sources: Vec<SourceEntry>,
    pub(super) batches: BatchSet,
}

impl Output<'_> {
    /// Writes what the inputs have of the sources. `source_maps` as for [`Merger::new`].
    pub(super) fn merge(
        self,
        inputs: &[SegmentFile],
        source_maps: Vec<Vec<u32>>,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<FinishedFile, BuildError> {
        let mut counts = FieldCounts::default();
        let mut directories = Vec::new();
        for input in inputs {
            let directory = input.read_directory()?;
            counts.merge(&directory.counts);
            directories.push(directory);
        }
        let schema = counts.schema();
        let file = self.disk.create(&self.path)?;
        let sources = self.sources.clone();
        let (id, profile) = (self.id, self.profile);
        let mut writer = SegmentWriter::new(file, id, profile, counts, schema.clone(), sources)?;
        writer.set_batches(self.batches);
        let is_whole = source_maps.iter().flatten().all(|place| *place != LEFT_OUT);
        if is_whole {
            writer.set_summaries(merged_summaries(inputs, &directories));
        }
        let mut merger = Merger::new(inputs, &directories, &self.sources, source_maps);
        let mut builder = RowsBuilder::new();
        let mut found = FieldCounts::default();
        while merger.push_next(&mut builder)? {
            if builder.line_bytes() >= MERGE_BYTES || builder.len() >= ROW_GROUP_ROWS_MAX {
                if is_stopped() {
                    return Err(BuildError::Stopped);
                }
                found.merge(&builder.counts());
                writer.write(&builder.take(&schema))?;
            }
        }
        found.merge(&builder.counts());
        writer.count_labels_of(&found);
        writer.write(&builder.take(&schema))?;
        Ok(writer.finish()?)
    }
}

/// The summaries of all rows of the inputs, each `None` if it is to be made of the rows.
fn merged_summaries(inputs: &[SegmentFile], directories: &[Directory]) -> Summaries {
    let inputs = || inputs.iter().zip(directories);
    // Damaged ones are made anew, as those that earlier writers did not make.
    let overview = || {
        let mut merged = OverviewBuilder::default();
        for (input, directory) in inputs() {
            merged.merge(&input.overview(directory).ok()??);
        }
        merged.finish()
    };
    let timeline = || {
        let mut merged = TimelineBuilder::default();
        for (input, directory) in inputs() {
            merged.merge(&input.timeline(directory).ok()??);
        }
        merged.finish()
    };
    let patterns = || {
        let mut merged = PatternTableBuilder::default();
        for (input, directory) in inputs() {
            let table = input.patterns(directory).ok()??;
            merged.merge(&table).then_some(())?;
        }
        // Counting would find as many.
        Some(
            merged
                .finish()
                .map_or(FileSummary::Absent, FileSummary::Known),
        )
    };
    Summaries {
        overview: FileSummary::of(overview()),
        timeline: FileSummary::of(timeline()),
        patterns: patterns().unwrap_or_else(|| FileSummary::of(None)),
    }
}

/// About the most memory of what is open at a time when these files are merged: of each of those that
/// overlap in time its largest row group, decoded.
pub fn open_memory_bytes_max(directories: &[Arc<Directory>]) -> u64 {
    let mut changes: Vec<(i64, bool, u64)> = Vec::new();
    for directory in directories {
        let groups = &directory.row_groups;
        let Some(from) = groups.iter().map(|group| group.time_bounds().0).min() else {
            continue;
        };
        let to = groups.iter().map(|group| group.time_bounds().1).max();
        let row_bytes = directory.schema.row_bytes();
        let memory = groups
            .iter()
            .map(|group| memory_bytes(group.rows() as u64, row_bytes, group.line_bytes()));
        let memory = memory.max().unwrap_or(0);
        // At the same instant, what opens comes before what closes: both are open then.
        changes.push((from, false, memory));
        changes.push((to.unwrap_or(from), true, memory));
    }
    changes.sort_unstable();
    let (mut open, mut most) = (0, 0);
    for (_, closes, bytes) in changes {
        open = if closes { open - bytes } else { open + bytes };
        most = most.max(open);
    }
    most
}

/// The most row groups that are open at a time when these inputs are merged.
#[cfg(test)]
pub(super) fn most_open(inputs: &[SegmentFile]) -> usize {
    let directories: Vec<_> = inputs.iter().map(|i| i.read_directory().unwrap()).collect();
    let sources: Vec<SourceEntry> = inputs
        .iter()
        .flat_map(|input| input.manifest().sources.clone())
        .collect();
    let maps = source_maps(inputs, &sources);
    let mut merger = Merger::new(inputs, &directories, &sources, maps);
    let mut builder = RowsBuilder::new();
    let mut most = 0;
    while merger.push_next(&mut builder).unwrap() {
        most = most.max(merger.active.len());
    }
    most
}
