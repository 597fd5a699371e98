//! Segments of more rows than are to be held in memory: sorted parts on disk, merged a few at a time.
//!
//! Parts are temporary files beside the segment's own, and no segments: whatever ends the work early,
//! [`super::discard`] or the next start removes them.

use std::collections::VecDeque;
use std::io;

use logpond_record::{Id, SourceId, cast};

use super::merger::Output;
use super::{BuildError, BuildLimits, DIRECTORY, SUFFIX_TEMPORARY, path, remove_if_there};
use crate::batches::BatchSet;
use crate::disk::Disk;
use crate::file::{
    FinishedFile, Profile, ROW_GROUP_BYTES_MAX, ROW_GROUP_ROWS_MAX, SegmentFile, SegmentWriter,
    SourceEntry,
};
use crate::rows::{RowsBuilder, memory_bytes};

/// The most parts that are merged at a time, however much memory there is: it bounds the open files.
const FAN_IN_MAX: u64 = 16;

/// The fewest, however little there is: with fewer a merge would not end.
const FAN_IN_MIN: u64 = 2;

/// The path of a part.
fn part_path(id: Id, number: u32) -> String {
    path(id, &format!(".{number}{SUFFIX_TEMPORARY}"))
}

/// Removes what is left of the parts of a segment.
pub(super) fn remove_parts(disk: &dyn Disk, id: Id) -> io::Result<()> {
    let prefix = format!("{id}.");
    for entry in disk.list(DIRECTORY)? {
        let is_part = |rest: &str| {
            let number = rest.strip_suffix(SUFFIX_TEMPORARY);
            number.is_some_and(|number| number.parse::<u32>().is_ok())
        };
        if entry.name.strip_prefix(&prefix).is_some_and(is_part) {
            remove_if_there(disk, &format!("{DIRECTORY}/{}", entry.name))?;
        }
    }
    Ok(())
}

/// About the memory of rows with so many bytes beside their lines.
fn memory_bytes_of(builder: &RowsBuilder, bytes_beside: u64) -> u64 {
    builder.memory_bytes().saturating_add(bytes_beside)
}

/// Rows of a segment on their way, by parts if they are many.
pub(super) struct Parts<'d> {
    disk: &'d dyn Disk,
    id: Id,
    within: BuildLimits<'d>,
    /// Of all parts.
    sources: Vec<SourceId>,
    /// Those that wait to be merged, by number, in the order in which they were written.
    waiting: VecDeque<u32>,
    count: u32,
    /// The most memory of a row group of a part.
    group_memory_bytes: u64,
}

impl<'d> Parts<'d> {
    /// No part yet of a segment with rows of these sources, in order.
    pub(super) fn new(
        disk: &'d dyn Disk,
        id: Id,
        within: BuildLimits<'d>,
        sources: Vec<SourceId>,
    ) -> Parts<'d> {
        Parts {
            disk,
            id,
            within,
            sources,
            waiting: VecDeque::new(),
            count: 0,
            group_memory_bytes: 0,
        }
    }

    fn next_number(&mut self) -> u32 {
        self.count += 1;
        self.waiting.push_back(self.count);
        self.count
    }

    /// True if a file fits into memory with the rows so far: it has `bytes`, and those before it had
    /// `bytes_read` and have so many `bytes_beside` their lines. Nothing fits behind rows in parts.
    pub(super) fn fits(
        &self,
        builder: &RowsBuilder,
        bytes_beside: u64,
        (bytes, bytes_read): (u64, u64),
    ) -> bool {
        let memory = memory_bytes_of(builder, bytes_beside);
        // The rows that come are much like those that have come.
        let next = u128::from(memory) * u128::from(bytes) / u128::from(bytes_read.max(1));
        let all = u128::from(memory) + next;
        self.waiting.is_empty() && all < u128::from(self.within.memory_bytes_max)
    }

    /// Writes the rows so far as a part, if they take as much memory as is allowed together with so
    /// many `bytes_beside` them.
    pub(super) fn spill(
        &mut self,
        builder: &mut RowsBuilder,
        bytes_beside: &mut u64,
    ) -> Result<(), BuildError> {
        if memory_bytes_of(builder, *bytes_beside) < self.within.memory_bytes_max {
            return Ok(());
        }
        *bytes_beside = 0;
        self.write(builder)
    }

    /// Writes the rows so far as a part.
    fn write(&mut self, builder: &mut RowsBuilder) -> Result<(), BuildError> {
        if (self.within.is_stopped)() {
            return Err(BuildError::Stopped);
        }
        let counts = builder.counts();
        let schema = counts.schema();
        let line_bytes = builder.line_bytes().min(ROW_GROUP_BYTES_MAX);
        let rows = builder.take(&schema);
        let of_group = rows.len().min(ROW_GROUP_ROWS_MAX) as u64;
        let of_group = memory_bytes(of_group, schema.row_bytes(), line_bytes);
        self.group_memory_bytes = self.group_memory_bytes.max(of_group);
        let mut sources = self.entries();
        for source in &rows.source {
            sources[*source as usize].rows += 1;
        }
        let path = part_path(self.id, self.next_number());
        let file = self.disk.create(&path)?;
        let mut writer = SegmentWriter::new(file, self.id, Profile::Hot, counts, schema, sources)?;
        writer.leave_summaries();
        writer.write(&rows)?;
        writer.finish()?;
        Ok(())
    }

    /// The sources, with no rows yet.
    fn entries(&self) -> Vec<SourceEntry> {
        let entry = |source: &SourceId| SourceEntry {
            source: *source,
            rows: 0,
            hash: 0,
            retry: None,
        };
        self.sources.iter().map(entry).collect()
    }

    /// Writes the segment under its temporary name: the rows in parts and those in the builder.
    pub(super) fn finish(
        mut self,
        mut builder: RowsBuilder,
        sources: Vec<SourceEntry>,
        batches: BatchSet,
    ) -> Result<FinishedFile, BuildError> {
        let path = path(self.id, SUFFIX_TEMPORARY);
        if self.waiting.is_empty() {
            let counts = builder.counts();
            let schema = counts.schema();
            let file = self.disk.create(&path)?;
            let mut writer =
                SegmentWriter::new(file, self.id, Profile::Hot, counts, schema.clone(), sources)?;
            writer.set_batches(batches);
            writer.write(&builder.take(&schema))?;
            return Ok(writer.finish()?);
        }
        if !builder.is_empty() {
            self.write(&mut builder)?;
        }
        drop(builder);
        let fan_in = self.within.memory_bytes_max / self.group_memory_bytes.max(1);
        let fan_in = fan_in.clamp(FAN_IN_MIN, FAN_IN_MAX) as usize;
        while self.waiting.len() > fan_in {
            let inputs: Vec<u32> = self.waiting.drain(..fan_in).collect();
            let number = self.next_number();
            let mut merged = self.entries();
            let files = self.open(&inputs)?;
            for file in &files {
                let of_file = file.manifest().sources.iter();
                let each = merged.iter_mut().zip(of_file);
                each.for_each(|(source, part)| source.rows += part.rows);
            }
            self.merge(
                part_path(self.id, number),
                &files,
                merged,
                BatchSet::default(),
            )?;
            self.remove(&inputs)?;
        }
        let inputs: Vec<u32> = self.waiting.drain(..).collect();
        let written = self.merge(path, &self.open(&inputs)?, sources, batches)?;
        self.remove(&inputs)?;
        Ok(written)
    }

    fn open(&self, numbers: &[u32]) -> Result<Vec<SegmentFile>, BuildError> {
        let open = |number: &u32| {
            let file = self.disk.open(&part_path(self.id, *number))?;
            Ok(SegmentFile::open(file)?)
        };
        numbers.iter().map(open).collect()
    }

    fn remove(&self, numbers: &[u32]) -> Result<(), BuildError> {
        for number in numbers {
            remove_if_there(self.disk, &part_path(self.id, *number))?;
        }
        Ok(())
    }

    fn merge(
        &self,
        path: String,
        inputs: &[SegmentFile],
        sources: Vec<SourceEntry>,
        batches: BatchSet,
    ) -> Result<FinishedFile, BuildError> {
        // All parts name the same sources, and each has rows of its own.
        let map: Vec<u32> = (0..cast::low_u32(sources.len())).collect();
        let output = Output {
            disk: self.disk,
            id: self.id,
            path,
            profile: Profile::Hot,
            sources,
            batches,
        };
        output.merge(inputs, vec![map; inputs.len()], self.within.is_stopped)
    }
}
