//! Writing a segment file.

use std::ops::Range;
use std::sync::Arc;

use logpond_record::{Id, TimeSource, Timestamp, cast};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::ColumnDescPtr;

use super::chunk::{ChunkEncoder, Input};
use super::directory::{
    BlockEntry, Directory, Place, RowGroupEntry, TOKEN_PART_BYTES, TokensEntry, WordsEntry,
};
use super::footer::{
    CRC_PLACEHOLDER, FIXED, KEY_DIRECTORY, KEY_MANIFEST, KEY_TAIL, Sink, TIME_SOURCE,
    parquet_schema, physical,
};
use super::index::RowGroupTokens;
use super::manifest::{FORMAT_VERSION, Manifest, SourceEntry};
use crate::batches::BatchSet;
use crate::disk::AppendFile;
use crate::overview::{OVERVIEW_BYTES_MAX, Overview, OverviewBuilder};
use crate::patterns::{PATTERNS_BYTES_MAX, PatternTable, PatternTableBuilder};
use crate::rows::{
    Column, ColumnType, FieldCounts, Numbers, Plans, Rows, Schema, StringColumn, Strings,
    sorted_order, templates_of, time_slices,
};
use crate::timeline::{RowKinds, TIMELINE_BYTES_MAX, Timeline, TimelineBuilder};
use crate::tokens::{List, ListBuilder, TokenCollector, WordSet};

/// How much work goes into a file's size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// For files that will soon be merged: fast.
    Hot,
    /// For files at rest: small.
    Cold,
}

impl Profile {
    /// zstd level: 1 and 3 give the same size on sorted rows, 9 a seventh less at a fifth of the
    /// speed (measured).
    fn zstd_level(self) -> i32 {
        match self {
            Profile::Hot => 1,
            Profile::Cold => 9,
        }
    }

    /// Bytes of lines in a block. Blocks of 4 MiB are a tenth smaller at rest, but a rare word then
    /// costs three times as much (measured).
    fn block_bytes(self) -> u64 {
        1 << 20
    }

    /// Rows in a block: bounds what one look-up decodes when lines are very short.
    fn block_rows(self) -> usize {
        8192
    }
}

/// Bytes of lines in a row group at most: what a reader or a merge holds decoded at once.
pub const ROW_GROUP_BYTES_MAX: u64 = 24 << 20;

/// Rows in a row group at most.
pub const ROW_GROUP_ROWS_MAX: usize = 1 << 17;

/// A finished file.
#[derive(Clone, Debug)]
pub struct FinishedFile {
    /// What was written.
    pub manifest: Manifest,
    /// Length of the file in bytes.
    pub bytes: u64,
}

/// A segment of fewer rows has no summaries: reading it takes no longer.
const SUMMARY_ROWS_MIN: u64 = 8192;

/// A table of patterns is at most this part of the rest of its file.
const PATTERNS_SHARE: u64 = 16;

/// A summary of a file on its way.
pub(crate) enum FileSummary<B, S> {
    /// Made of the rows.
    Counted(B),
    /// Known before.
    Known(S),
    /// There is none.
    Absent,
}

/// The summaries of a file on its way.
pub(crate) struct Summaries {
    pub(crate) overview: FileSummary<OverviewBuilder, Overview>,
    pub(crate) timeline: FileSummary<TimelineBuilder, Timeline>,
    pub(crate) patterns: FileSummary<PatternTableBuilder, PatternTable>,
}

impl Summaries {
    /// Summaries that are made of the rows.
    fn counted() -> Summaries {
        Summaries {
            overview: FileSummary::of(None),
            timeline: FileSummary::of(None),
            patterns: FileSummary::of(None),
        }
    }

    /// No summaries.
    fn absent() -> Summaries {
        Summaries {
            overview: FileSummary::Absent,
            timeline: FileSummary::Absent,
            patterns: FileSummary::Absent,
        }
    }
}

impl<B: Default, S> FileSummary<B, S> {
    /// A known one, or one that is made of the rows.
    pub(crate) fn of(known: Option<S>) -> FileSummary<B, S> {
        known.map_or_else(|| FileSummary::Counted(B::default()), FileSummary::Known)
    }

    fn finish(self, finish: impl FnOnce(B) -> Option<S>) -> Option<S> {
        match self {
            FileSummary::Counted(counted) => finish(counted),
            FileSummary::Known(known) => Some(known),
            FileSummary::Absent => None,
        }
    }
}

/// Writes one segment file, row group by row group.
///
/// Row groups must come in time order. Dropping the writer leaves an unfinished file behind,
/// which has no footer and is not a segment.
pub struct SegmentWriter {
    file: SerializedFileWriter<Sink>,
    profile: Profile,
    encoder: ChunkEncoder,
    tokens: TokenCollector,
    words: ListBuilder,
    /// The token indexes of the row groups so far, and the lists of words, compressed. They are
    /// written together behind the last row group, so that a reader gets all of them with one
    /// read. They are about 1.2 % of the bytes of the lines: 12 MiB of a file of 1 GiB.
    indexes: Vec<Vec<u8>>,
    lists: Vec<Vec<u8>>,
    summaries: Summaries,
    directory: Directory,
    manifest: Manifest,
    /// Rows written of each source.
    source_rows: Vec<u64>,
}

impl SegmentWriter {
    /// Starts a file for rows with these field counts.
    pub fn new(
        file: Box<dyn AppendFile>,
        id: Id,
        profile: Profile,
        counts: FieldCounts,
        schema: Schema,
        sources: Vec<SourceEntry>,
    ) -> Result<SegmentWriter, ParquetError> {
        let properties = WriterProperties::builder()
            .set_created_by(created_by())
            .build();
        let parquet = parquet_schema(&schema)?;
        let file = SerializedFileWriter::new(Sink::new(file), parquet, Arc::new(properties))?;
        Ok(SegmentWriter {
            file,
            profile,
            encoder: ChunkEncoder::new(profile.zstd_level())?,
            tokens: TokenCollector::default(),
            words: ListBuilder::default(),
            indexes: Vec::new(),
            lists: Vec::new(),
            summaries: Summaries::counted(),
            directory: Directory {
                schema,
                counts,
                row_groups: Vec::new(),
                words: Vec::new(),
                overview: None,
                timeline: None,
                patterns: None,
            },
            source_rows: vec![0; sources.len()],
            manifest: Manifest {
                format: FORMAT_VERSION,
                id,
                sources,
                batches: BatchSet::default(),
                rows: 0,
                line_bytes: 0,
                whole_lines: 0,
                whole_bytes: 0,
                time_min: Timestamp::MAX,
                time_max: Timestamp::MIN,
                received_min: Timestamp::MAX,
                received_max: Timestamp::MIN,
                cold: profile == Profile::Cold,
            },
        })
    }

    /// Says which named batches the sources hold that are no retries.
    pub fn set_batches(&mut self, batches: BatchSet) {
        self.manifest.batches = batches;
    }

    /// Counts whole numbers beside lines as the rows have them: inputs of earlier writers do not tell.
    pub(crate) fn count_labels_of(&mut self, rows: &FieldCounts) {
        self.directory.counts.count_labels_of(rows);
    }

    /// Says what the rows hold, as far as it is known; they are counted for the rest.
    pub(crate) fn set_summaries(&mut self, summaries: Summaries) {
        self.summaries = summaries;
    }

    /// Writes a file without summaries: one that is merged soon.
    pub(crate) fn leave_summaries(&mut self) {
        self.summaries = Summaries::absent();
    }

    /// The columns of the file.
    pub fn schema(&self) -> &Schema {
        &self.directory.schema
    }

    /// Writes rows as one row group, or as several where they are too many for one. All of them
    /// must come after those written before, in time.
    pub fn write(&mut self, rows: &Rows) -> Result<(), ParquetError> {
        if rows.is_empty() {
            return Ok(());
        }
        for slice in time_slices(rows, ROW_GROUP_BYTES_MAX, ROW_GROUP_ROWS_MAX) {
            self.write_row_group(rows, &slice)?;
        }
        self.count(rows)
    }

    fn write_row_group(&mut self, rows: &Rows, slice: &[u32]) -> Result<(), ParquetError> {
        let templates = templates_of(rows, slice);
        let order = sorted_order(rows, slice, templates.as_ref());
        let templates = match &templates {
            Some(templates) => Column::Strings(templates.in_order(&order)),
            None => Column::Absent,
        };
        let rows = &rows.in_order(&order);
        let blocks = self.cut_blocks(rows);
        let mut entry = RowGroupEntry {
            blocks: blocks
                .iter()
                .map(|block| block_entry(rows, block.clone()))
                .collect(),
            ..RowGroupEntry::default()
        };
        self.write_columns((rows, &templates), &blocks, &mut entry)?;
        self.summarise(rows, &templates);
        let words;
        (entry.tokens, words) = self.collect_tokens(rows, &blocks);
        self.directory.row_groups.push(entry);
        self.add_words(words)
    }

    /// Adds the rows of a row group, with their templates, to the summaries that are made of rows.
    fn summarise(&mut self, rows: &Rows, templates: &Column) {
        let Directory { schema, counts, .. } = &self.directory;
        let summaries = &mut self.summaries;
        if let FileSummary::Counted(overview) = &mut summaries.overview {
            overview.add(rows, schema, counts);
        }
        let timeline = match &mut summaries.timeline {
            FileSummary::Counted(timeline) => Some(timeline),
            _ => None,
        };
        let patterns = match &mut summaries.patterns {
            FileSummary::Counted(patterns) if !patterns.is_over() => Some(patterns),
            _ => None,
        };
        if timeline.is_none() && patterns.is_none() {
            return;
        }
        let kinds = RowKinds::of(rows, schema, counts);
        if let Some(timeline) = timeline {
            timeline.add(&rows.time, kinds.as_ref());
        }
        if let Some(patterns) = patterns {
            patterns.add(rows, schema, templates, kinds.as_ref());
        }
    }

    /// Puts the words of the last row group into the list.
    fn add_words(&mut self, words: Option<WordSet>) -> Result<(), ParquetError> {
        let groups = cast::low_u32(self.directory.row_groups.len());
        match words {
            Some(words) => {
                let list = self.words.add(&words);
                self.keep_words(list, groups)
            }
            None => {
                let list = self.words.finish();
                self.keep_words(list, groups - 1)
            }
        }
    }

    /// Keeps a list with the words of the row groups before `groups_to`, to be written at the end.
    fn keep_words(&mut self, list: Option<List>, groups_to: u32) -> Result<(), ParquetError> {
        let Some(list) = list else {
            return Ok(());
        };
        let packed = zstd::bulk::compress(&list.bytes, self.profile.zstd_level())?;
        self.directory.words.push(WordsEntry {
            groups_from: groups_to - list.groups,
            groups_to,
            offset: 0,
            bytes: cast::low_u32(packed.len()),
            plain_bytes: cast::low_u32(list.bytes.len()),
            crc: crc32c::crc32c(&packed),
        });
        self.lists.push(packed);
        Ok(())
    }

    fn cut_blocks(&self, rows: &Rows) -> Vec<Range<usize>> {
        let mut blocks = Vec::new();
        let (mut from, mut bytes) = (0, 0);
        for (at, line) in rows.line_bytes.iter().enumerate() {
            let line = u64::from(*line);
            let full =
                bytes + line > self.profile.block_bytes() || at - from >= self.profile.block_rows();
            if full && at > from {
                blocks.push(from..at);
                (from, bytes) = (at, 0);
            }
            bytes += line;
        }
        blocks.push(from..rows.len());
        blocks
    }

    fn write_columns(
        &mut self,
        (rows, templates): (&Rows, &Column),
        blocks: &[Range<usize>],
        entry: &mut RowGroupEntry,
    ) -> Result<(), ParquetError> {
        let descriptors: Vec<ColumnDescPtr> = self.file.schema_descr().columns().to_vec();
        let mut offset = self.file.bytes_written() as u64;
        let fixed = fixed_columns(rows);
        let kinds = FIXED.iter().map(|(_, kind, optional)| (*kind, *optional));
        let fields = self.directory.schema.columns.iter().map(|c| (c.kind, true));
        let kinds: Vec<(ColumnType, bool)> = kinds
            .chain([(ColumnType::Text, true)])
            .chain(fields)
            .chain([(ColumnType::Text, true)])
            .collect();
        let behind = std::slice::from_ref(templates);
        let columns: Vec<&Column> = fixed.iter().chain(&rows.fields).chain(behind).collect();
        let mut group = self.file.next_row_group()?;
        for (number, (kind, optional)) in kinds.into_iter().enumerate() {
            let input = Input {
                column: columns[number],
                optional,
                physical: physical(kind),
                keeps_codes: number == TIME_SOURCE,
                rows: rows.len(),
                blocks,
            };
            let chunk = self.encoder.encode(&input, &descriptors[number])?;
            let mut column_entry = chunk.entry;
            column_entry
                .dictionary
                .iter_mut()
                .chain(&mut column_entry.pages)
                .for_each(|p| p.offset += offset);
            entry.columns.push(column_entry);
            offset += chunk.bytes.len() as u64;
            group.append_column(&chunk.bytes, chunk.close)?;
        }
        group.close()?;
        Ok(())
    }

    /// Makes the token index of a row group, which is written at the end.
    fn collect_tokens(
        &mut self,
        rows: &Rows,
        blocks: &[Range<usize>],
    ) -> (TokensEntry, Option<WordSet>) {
        let mut plans = Plans::default();
        let mut collector = RowGroupTokens::new(rows, &self.directory.schema, &mut plans);
        for (number, block) in blocks.iter().enumerate() {
            collector.add_block(block.clone(), cast::low_u32(number), &mut self.tokens);
        }
        let index = self.tokens.finish();
        let bytes = index.bytes;
        let entry = TokensEntry {
            offset: 0,
            bytes: cast::low_u32(bytes.len()),
            crcs: bytes.chunks(TOKEN_PART_BYTES).map(crc32c::crc32c).collect(),
            long_ids: index.long_ids,
        };
        self.indexes.push(bytes);
        (entry, index.words)
    }

    /// Writes all token indexes, then all lists of words.
    fn write_indexes(&mut self) -> Result<(), ParquetError> {
        let groups = &mut self.directory.row_groups;
        for (group, bytes) in groups.iter_mut().zip(&self.indexes) {
            group.tokens.offset = self.file.bytes_written() as u64;
            self.file.write_all(bytes)?;
        }
        for (list, bytes) in self.directory.words.iter_mut().zip(&self.lists) {
            list.offset = self.file.bytes_written() as u64;
            self.file.write_all(bytes)?;
        }
        self.write_summaries()
    }

    fn write_summaries(&mut self) -> Result<(), ParquetError> {
        let summaries = std::mem::replace(&mut self.summaries, Summaries::absent());
        let overview = summaries.overview.finish(OverviewBuilder::finish);
        let timeline = summaries.timeline.finish(TimelineBuilder::finish);
        let patterns = summaries.patterns.finish(PatternTableBuilder::finish);
        let rows = self.manifest.rows;
        let is_worth = |counted: u64| counted == rows && rows >= SUMMARY_ROWS_MIN;
        if let Some(overview) = overview.filter(|overview| is_worth(overview.rows)) {
            let most = (OVERVIEW_BYTES_MAX, u64::MAX);
            self.directory.overview = self.write_summary(&overview.encode(), most)?;
        }
        if let Some(timeline) = timeline.filter(|timeline| is_worth(timeline.rows())) {
            let most = (TIMELINE_BYTES_MAX, u64::MAX);
            self.directory.timeline = self.write_summary(&timeline.encode(), most)?;
        }
        let mut patterns = patterns.filter(|patterns| is_worth(patterns.rows()));
        let share = self.file.bytes_written() as u64 / PATTERNS_SHARE;
        while let Some(table) = patterns {
            let most = (PATTERNS_BYTES_MAX, share);
            self.directory.patterns = self.write_summary(&table.encode(), most)?;
            patterns = match self.directory.patterns {
                Some(_) => None,
                None => table.lighter(),
            };
        }
        Ok(())
    }

    /// Writes a summary, and gives its place; `None` if it is too long before or after compression.
    fn write_summary(
        &mut self,
        plain: &[u8],
        (plain_bytes_max, bytes_max): (usize, u64),
    ) -> Result<Option<Place>, ParquetError> {
        if plain.len() > plain_bytes_max {
            return Ok(None);
        }
        let packed = zstd::bulk::compress(plain, self.profile.zstd_level())?;
        if packed.len() as u64 > bytes_max {
            return Ok(None);
        }
        let place = Place {
            offset: self.file.bytes_written() as u64,
            bytes: packed.len(),
            plain_bytes: plain.len(),
            crc: crc32c::crc32c(&packed),
        };
        self.file.write_all(&packed)?;
        Ok(Some(place))
    }

    fn count(&mut self, rows: &Rows) -> Result<(), ParquetError> {
        for source in &rows.source {
            let Some(count) = self.source_rows.get_mut(*source as usize) else {
                let text = format!("a row of source number {source}, which there is not");
                return Err(ParquetError::General(text));
            };
            *count += 1;
        }
        let manifest = &mut self.manifest;
        manifest.rows += rows.len() as u64;
        manifest.line_bytes += rows.line_bytes.iter().map(|b| u64::from(*b)).sum::<u64>();
        let bounds = |values: &[i64]| {
            values.iter().fold((i64::MAX, i64::MIN), |(min, max), v| {
                (min.min(*v), max.max(*v))
            })
        };
        let (min, max) = bounds(&rows.time);
        manifest.time_min = manifest.time_min.min(Timestamp(min));
        manifest.time_max = manifest.time_max.max(Timestamp(max));
        let (min, max) = bounds(&rows.received);
        manifest.received_min = manifest
            .received_min
            .min(Timestamp(min.saturating_mul(1000)));
        manifest.received_max = manifest
            .received_max
            .max(Timestamp(max.saturating_mul(1000)));
        for row in 0..rows.len() {
            if let Some(whole) = rows.whole.get(row) {
                manifest.whole_lines += 1;
                manifest.whole_bytes += whole.len() as u64;
            }
        }
        Ok(())
    }

    /// Writes directory and footer and syncs the file.
    ///
    /// The rows per source that were written must be those that the sources say (R4).
    pub fn finish(mut self) -> Result<FinishedFile, ParquetError> {
        for (entry, rows) in self.manifest.sources.iter().zip(&self.source_rows) {
            if entry.rows != *rows {
                let (source, expected) = (entry.source, entry.rows);
                return Err(ParquetError::General(format!(
                    "{rows} rows written of {expected} rows of source {source}"
                )));
            }
        }
        let list = self.words.finish();
        self.keep_words(list, cast::low_u32(self.directory.row_groups.len()))?;
        self.write_indexes()?;
        let plain = self.directory.encode();
        let packed = zstd::bulk::compress(&plain, 3)?;
        let offset = self.file.bytes_written();
        self.file.write_all(&packed)?;
        let place = format!(
            "{offset} {} {} {:08x}",
            packed.len(),
            plain.len(),
            crc32c::crc32c(&packed)
        );
        self.file.flush()?;
        self.file.inner_mut().start_tail()?;
        let mut key = |key: &str, value: String| {
            self.file
                .append_key_value_metadata(KeyValue::new(key.to_owned(), value));
        };
        key(KEY_MANIFEST, self.manifest.to_json());
        key(KEY_DIRECTORY, place);
        key(KEY_TAIL, CRC_PLACEHOLDER.to_owned());
        // Taking the sink out writes the footer into it.
        let bytes = self.file.into_inner()?.finish()?;
        Ok(FinishedFile {
            manifest: self.manifest,
            bytes,
        })
    }
}

fn created_by() -> String {
    format!("logpond version {}", env!("CARGO_PKG_VERSION"))
}

fn block_entry(rows: &Rows, block: Range<usize>) -> BlockEntry {
    let line_bytes = rows.line_bytes[block.clone()].iter();
    let times = &rows.time[block];
    BlockEntry {
        rows: cast::low_u32(times.len()),
        line_bytes: line_bytes.fold(0, |sum, bytes| sum.saturating_add(*bytes)),
        time_min: times.iter().copied().min().unwrap_or(i64::MAX),
        time_max: times.iter().copied().max().unwrap_or(i64::MIN),
    }
}

/// Names of time sources that a file states: those of whole instants, and all up to the last in use.
fn time_source_names(codes: &[u32]) -> u8 {
    let last = codes.iter().max().copied().unwrap_or(0);
    u8::try_from(last + 1).map_or(cast::low_u8(TimeSource::COUNT), |count| count.max(4))
}

/// The columns that every file has, in the order of [`FIXED`], and the overflow column.
fn fixed_columns(rows: &Rows) -> Vec<Column> {
    let ints = |values: Vec<i64>| {
        Column::Ints(Numbers {
            values,
            valid: Vec::new(),
        })
    };
    let rests: Vec<i64> = rows.time.iter().map(|t| t.rem_euclid(1000)).collect();
    let valid: Vec<bool> = rests.iter().map(|r| *r != 0).collect();
    let rest = if valid.contains(&true) {
        Column::Ints(Numbers {
            values: rests,
            valid,
        })
    } else {
        Column::Absent
    };
    let mut names = Strings::default();
    for code in 0..time_source_names(&rows.time_source) {
        let source = TimeSource::from_code(code);
        names.push(source.map_or("", |s| s.as_str()).as_bytes());
    }
    let time_source = StringColumn {
        codes: rows.time_source.clone(),
        values: Arc::new(names),
    };
    vec![
        ints(rows.time.iter().map(|t| t.div_euclid(1000)).collect()),
        rest,
        ints(rows.received.clone()),
        ints(rows.number.clone()),
        ints(rows.source.iter().map(|s| i64::from(*s)).collect()),
        Column::Strings(time_source),
        Column::Strings(rows.shape.clone()),
        Column::Strings(rows.message.clone()),
        Column::Strings(rows.message_bytes.clone()),
        Column::Strings(rows.whole.clone()),
        Column::Strings(rows.fix.clone()),
        Column::Strings(rows.more.clone()),
    ]
}
